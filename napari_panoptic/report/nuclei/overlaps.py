"""A part of the report: what it changes whether objects keep the pixels that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from napari_panoptic.nuclei.cohort_evaluation import CohortEvaluation
from napari_panoptic.nuclei.cohort_report import CohortReport
from napari_panoptic.nuclei.patients import summed
from napari_panoptic.nuclei.values.settings import Overlaps
from napari_panoptic.report.cells import note, number, team_cell
from napari_panoptic.report.page import Cell, Child, Table, element, paragraph, table
from napari_panoptic.report.text import count, ratio, signed

_FIGURES = ("objects", "tp", "fp", "fn", "pq")
_USED: Mapping[Overlaps, str] = {
    Overlaps.FLATTEN: "every pixel goes to one object, the one drawn last (flatten)",
    Overlaps.KEEP: "every object keeps all of its pixels (keep)",
}


def overlaps_table(kept: CohortEvaluation) -> pd.DataFrame:
    """Put the figures of teams both ways beside each other.

    Parameters
    ----------
    kept
        Objects with the pixels that they share, and beside it without them, of
        the same regions.

    Returns
    -------
    DataFrame
        A row per team with predicted objects that share pixels, or against
        annotated ones that do: ``team``, ``predicted_sharing``,
        ``annotated_sharing``, then ``<figure>_flatten``, ``<figure>_keep`` and
        ``<figure>_difference`` (keep - flatten) for ``objects`` (predicted, those that
        count), ``tp``, ``fp``, ``fn`` (summed over classes) and ``pq`` (mean over
        patients).
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
    """Describe which choice was used, and what the other one would change."""
    used = report.request.settings.overlaps
    said = paragraph(
        "Where objects of one side claim the same pixel, in this report ",
        element("b", _USED[used]),
        ".",
    )
    frame = overlaps_table(report.overlaps)
    if frame.empty:
        return [said, note("No two objects of one side share a pixel: the choice changes nothing.")]
    rows = [[*_names(report, record), *_cells(record)] for record in frame.to_dict("records")]
    header: list[Child] = [
        "team",
        "predicted objects that share pixels",
        "annotated objects that share pixels",
        *("objects", "TP", "FP", "FN", "PQ"),
    ]
    caption = (
        "Both ways, for teams whose figures it can concern: flattened, then kept, and below the "
        "difference. Objects are the predicted ones that count; TP, FP and FN are summed over "
        "classes and regions; PQ is the mean over patients, with disentangled scoring. Regions "
        "that were read in windows cannot keep overlaps, and are left out both ways."
    )
    return [said, table(Table("overlaps", caption, header, rows, frame))]


def _names(report: CohortReport, record: Mapping[Any, Any]) -> list[Cell]:
    shared = (number(record[f"{side}_sharing"], count) for side in ("predicted", "annotated"))
    return [team_cell(report, record["team"]), *shared]


def _cells(record: Mapping[Any, Any]) -> list[Cell]:
    """Write each figure both ways, with the difference below."""
    cells = []
    for name in _FIGURES:
        is_ratio = name == "pq"
        write = ratio if is_ratio else count
        one, other, change = (record[f"{name}_{k}"] for k in ("flatten", "keep", "difference"))
        below = element("span", signed(change, 3 if is_ratio else 0), class_="rank")
        both = f"{write(one)} \N{RIGHTWARDS ARROW} {write(other)}"
        cells.append(Cell(element("span", both, element("br"), below), change))
    return cells
