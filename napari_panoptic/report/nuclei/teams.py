"""Sections on the figures of teams: over patients and classes, and of shared pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.text import english_list
from napari_panoptic.nuclei.averages import summed
from napari_panoptic.nuclei.metrics import CLASSES, METRIC_NAMES, class_metrics
from napari_panoptic.nuclei.regions.cohort_evaluation import CohortEvaluation
from napari_panoptic.report import plots
from napari_panoptic.report.columns import spec_table, table, team_column
from napari_panoptic.report.nuclei.cohort_report import CohortReport
from napari_panoptic.report.nuclei.tables import (
    PATIENTS,
    TEAMS,
    confusion_table,
    patients_by_class_table,
    patients_table,
    teams_table,
)
from napari_panoptic.report.page import team_label
from napari_panoptic.report.plots.embed import plot_figure
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    across,
    figure_of,
    name_column,
    stacked,
    whole,
)
from napari_panoptic.tables.figures import UNDEFINED, count, ratio, signed
from napari_panoptic.tables.markup import (
    Child,
    bullets,
    element,
    folded,
    fragment,
    named,
    note,
    paragraph,
)
from napari_panoptic.values.settings import Overlaps

if TYPE_CHECKING:
    import pandas as pd

_OVERLAP_FIGURES = ("objects", "tp", "fp", "fn", "pq")
_OVERLAPS_USED: Mapping[Overlaps, str] = {
    Overlaps.FLATTEN: "every pixel goes to one object, the one drawn last (flatten)",
    Overlaps.KEEP: "every object keeps all of its pixels (keep)",
}


def all_teams(report: CohortReport) -> list[str]:
    """Return all teams of the cohort, in its order, which decides their colours."""
    return [team.name for team in report.cohort.teams]


def teams_section(report: CohortReport) -> list[Child]:
    """Show the figures of teams, and their distribution over patients."""
    teams, summaries = all_teams(report), report.evaluation.summaries
    frame = teams_table(report.evaluation)
    for key in METRIC_NAMES:
        frame[f"{key}_median"] = [summaries[t].averaged[key].median for t in frame["team"]]
    panels = {key: patients_table(own) for key, own in report.lessons.items()}
    own = patients_table(report.evaluation)
    return [
        spec_table(TEAMS, frame, teams),
        plot_figure(
            plots.patient_boxes({"": own}, teams),
            "pq-boxes",
            "PQ per patient. Boxes: quartiles and median; whiskers: furthest value within 1.5 "
            "times the box; points: patients; cross: mean.",
        ),
        plot_figure(
            plots.patient_boxes(panels, teams),
            "pq-boxes-conditions",
            "PQ per patient under two restorations and two matching rules.",
        ),
        plot_figure(
            plots.quality_scatter(panels, teams),
            "dq-sq",
            "DQ and SQ per patient; large marks: means; grey curves: equal products DQ · SQ, "
            "given at their ends.",
        ),
        plot_figure(
            plots.detection_scatter(panels, teams),
            "precision-recall",
            "Detection precision and recall per patient; large marks: means; grey curves: equal "
            "F1, given at their ends.",
        ),
    ]


def patients_section(report: CohortReport) -> list[Child]:
    """Show the metrics of every patient, and the patients without an evaluation of each team."""
    teams, patients = all_teams(report), report.cohort.patients
    frame = patients_table(report.evaluation)
    rows = frame.sort_values(["patient", "team"]).to_dict("records")
    missing = {
        name: [patient for patient in patients if patient not in summary.patients]
        for name, summary in report.evaluation.summaries.items()
    }
    gaps = [
        fragment(
            team_label(name, teams),
            f" was evaluated in {len(patients) - len(absent)} of {len(patients)} patients; not in ",
            named(english_list(absent)),
            ".",
        )
        for name, absent in missing.items()
        if absent
    ]
    return [
        bullets(gaps) if gaps else note("Every team was evaluated in every patient."),
        spec_table(PATIENTS, frame, teams, ["patient"], rows),
    ]


def classes_section(report: CohortReport) -> list[Child]:
    """Show the figures of every class."""
    teams, classes = all_teams(report), report.cohort.scheme.names
    pooled = stacked(
        {
            team: class_metrics(summed(summary.patients.values(), classes))
            for team, summary in report.evaluation.summaries.items()
        }
    )
    order = {key: place for place, key in enumerate(classes)}
    rows = pooled.sort_values("class", kind="stable", key=lambda names: names.map(order))
    caption = (
        "Counts summed over all patients. Precision, recall and F1 are of the classes given to "
        "matched nuclei, on the row-normalised confusion matrix; mean IoU and Hausdorff "
        f"distances are over all matched nuclei of any predicted class. {UNDEFINED}: undefined, "
        "for example because the cohort has no nucleus of the class."
    )
    class_column, *figures = CLASSES.shown()
    columns = [class_column, team_column(teams), *figures]
    by_patient = patients_by_class_table(report.evaluation)
    patient_columns = [name_column("patient"), team_column(teams), class_column, *figures]
    every = table("patients_by_class", "The same for each patient.", patient_columns, by_patient)
    return [
        table("classes", caption, columns, pooled, rows.to_dict("records")),
        folded(f"Classes of each patient ({count(len(by_patient))} rows)", every),
    ]


def confusion_section(report: CohortReport) -> list[Child]:
    """Show which classes are confused."""
    frame = confusion_table(report.evaluation)
    teams, classes = all_teams(report), report.cohort.scheme.names
    columns = [
        team_column(teams),
        name_column("reference"),
        *(figure_of(key, ("prediction", key), "count", count) for key in ("none", *classes)),
    ]
    rows = across(frame, ["team", "reference"], "prediction")
    caption = "Objects by annotated (rows) and predicted class; none: unmatched."
    return [
        plot_figure(
            plots.confusion_matrices(frame, classes, teams),
            "confusion",
            "Objects by annotated and predicted class, summed over the cohort; none: unmatched. "
            "Shades are shares of the row.",
        ),
        plot_figure(
            plots.confusion_matrices(frame, classes, teams, normalised=True),
            "confusion-normalised",
            "Shares of the matched nuclei of each annotated class, by predicted class. "
            f"{UNDEFINED}: no nucleus of the class was matched.",
        ),
        folded("The same as a table", table("confusion", caption, columns, frame, rows)),
    ]


# --- objects that share pixels ----------------------------------------------------------------


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
    import pandas as pd

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
        both = _overlap_figures(flat, team), _overlap_figures(kept, team)
        for name in _OVERLAP_FIGURES:
            one, other = (figures[name] for figures in both)
            row |= {
                f"{name}_flatten": one,
                f"{name}_keep": other,
                f"{name}_difference": other - one,
            }
        rows.append(row)
    return pd.DataFrame(rows)


def _overlap_figures(evaluation: CohortEvaluation, team: str) -> dict[str, float]:
    summary = evaluation.summaries[team]
    total = summed(summary.patients.values(), evaluation.cohort.scheme.names)
    tp, fp, fn = (int(counts.sum()) for counts in (total.tp, total.fp, total.fn))
    pq = summary.averaged["pq"].mean
    return {"objects": tp + fp, "tp": tp, "fp": fp, "fn": fn, "pq": pq}


def overlaps_section(report: CohortReport) -> list[Child]:
    """Describe the setting for shared pixels, and the effect of the other setting."""
    used = paragraph(
        "In this report, if objects of one side claim the same pixel, ",
        element("b", _OVERLAPS_USED[report.request.settings.overlaps]),
        ".",
    )
    frame = overlaps_table(report.overlaps)
    if frame.empty:
        return [used, note("No two objects of one side share a pixel: both settings agree.")]
    columns = [
        team_column(all_teams(report)),
        whole("predicted_sharing", "predicted objects that share pixels"),
        whole("annotated_sharing", "annotated objects that share pixels"),
        *(_both_ways(name) for name in _OVERLAP_FIGURES),
    ]
    caption = (
        "Teams with overlapping objects: flattened \N{RIGHTWARDS ARROW} kept, with the difference "
        "below. Objects are the predicted ones that count; TP, FP and FN are summed over "
        "classes and regions; PQ is the mean over patients, with disentangled scoring. Regions "
        "read in windows cannot keep overlaps, and are excluded from both."
    )
    return [used, table("overlaps", caption, columns, frame)]


def _both_ways(name: str) -> TableColumn:
    """Return a column of a figure flattened and kept, with the difference below."""
    write, places = (ratio, 3) if name == "pq" else (count, 0)

    def cell(row: Record) -> CellContent:
        flat, kept, change = (row[f"{name}_{key}"] for key in ("flatten", "keep", "difference"))
        below = element("span", signed(change, places), class_="rank")
        both = f"{write(flat)} \N{RIGHTWARDS ARROW} {write(kept)}"
        return CellContent(element("span", both, element("br"), below), change)

    return TableColumn("objects" if name == "objects" else name.upper(), cell)
