"""The section on objects that share pixels: figures with overlaps kept and flattened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from napari_panoptic.nuclei.averages import summed
from napari_panoptic.nuclei.cohort_report import CohortReport
from napari_panoptic.nuclei.regions.cohort_evaluation import CohortEvaluation
from napari_panoptic.nuclei.values.settings import Overlaps
from napari_panoptic.report.columns import Cell, Column, Record, table, team_column, whole
from napari_panoptic.report.nuclei.teams import all_teams
from napari_panoptic.report.page import Child, element, note, paragraph
from napari_panoptic.report.text import count, ratio, signed

_FIGURES = ("objects", "tp", "fp", "fn", "pq")
_USED: Mapping[Overlaps, str] = {
    Overlaps.FLATTEN: "every pixel goes to one object, the one drawn last (flatten)",
    Overlaps.KEEP: "every object keeps all of its pixels (keep)",
}


def overlaps_table(kept: CohortEvaluation) -> pd.DataFrame:
    """Return the figures of teams with overlaps flattened and kept.

    Parameters
    ----------
    kept
        The evaluation with overlaps kept; it contains the one without, of the same regions.

    Returns
    -------
    DataFrame
        A row per team for which predicted or annotated objects share pixels: ``team``,
        ``predicted_sharing``, ``annotated_sharing``, then ``<figure>_flatten``,
        ``<figure>_keep`` and ``<figure>_difference`` (keep - flatten) for ``objects``
        (predicted, those that count), ``tp``, ``fp``, ``fn`` (summed over classes) and
        ``pq`` (mean over patients).
    """
    flat = kept.without_overlaps
    rows = []
    for team in kept.team_names:
        predicted, annotated = kept.overlapping_objects(team), kept.overlapping_references(team)
        if not predicted + annotated:
            continue
        row: dict[str, Any] = {
            "team": team,
            "predicted_sharing": predicted,
            "annotated_sharing": annotated,
        }
        both = _figures(flat, team), _figures(kept, team)
        for name in _FIGURES:
            one, other = (figures[name] for figures in both)
            row |= {
                f"{name}_flatten": one,
                f"{name}_keep": other,
                f"{name}_difference": other - one,
            }
        rows.append(row)
    return pd.DataFrame(rows)


def _figures(evaluation: CohortEvaluation, team: str) -> dict[str, float]:
    summary = evaluation.summaries[team]
    total = summed(summary.patients.values(), evaluation.cohort.scheme.names)
    tp, fp, fn = (int(counts.sum()) for counts in (total.tp, total.fp, total.fn))
    pq = summary.averaged["pq"].mean
    return {"objects": tp + fp, "tp": tp, "fp": fp, "fn": fn, "pq": pq}


def overlaps_section(report: CohortReport) -> list[Child]:
    """Describe the setting for shared pixels, and the effect of the other setting."""
    used = paragraph(
        "In this report, if objects of one side claim the same pixel, ",
        element("b", _USED[report.request.settings.overlaps]),
        ".",
    )
    frame = overlaps_table(report.overlaps)
    if frame.empty:
        return [used, note("No two objects of one side share a pixel: both settings agree.")]
    columns = [
        team_column(all_teams(report)),
        whole("predicted_sharing", "predicted objects that share pixels"),
        whole("annotated_sharing", "annotated objects that share pixels"),
        *(_both_ways(name) for name in _FIGURES),
    ]
    caption = (
        "Teams with overlapping objects: flattened \N{RIGHTWARDS ARROW} kept, with the difference "
        "below. Objects are the predicted ones that count; TP, FP and FN are summed over "
        "classes and regions; PQ is the mean over patients, with disentangled scoring. Regions "
        "read in windows cannot keep overlaps, and are excluded from both."
    )
    return [used, table("overlaps", caption, columns, frame)]


def _both_ways(name: str) -> Column:
    """Return a column of a figure flattened and kept, with the difference below."""
    write, places = (ratio, 3) if name == "pq" else (count, 0)

    def cell(row: Record) -> Cell:
        flat, kept, change = (row[f"{name}_{key}"] for key in ("flatten", "keep", "difference"))
        below = element("span", signed(change, places), class_="rank")
        both = f"{write(flat)} \N{RIGHTWARDS ARROW} {write(kept)}"
        return Cell(element("span", both, element("br"), below), change)

    return Column("objects" if name == "objects" else name.upper(), cell)
