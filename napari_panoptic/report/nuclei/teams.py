"""Sections on the figures of teams, patients and classes."""

from __future__ import annotations

import pandas as pd

from napari_panoptic.common.text import english_list
from napari_panoptic.nuclei.averages import summed
from napari_panoptic.nuclei.cohort_report import CohortReport
from napari_panoptic.nuclei.metrics import METRIC_NAMES, class_metrics
from napari_panoptic.report import plots
from napari_panoptic.report.columns import (
    Column,
    across,
    name_column,
    number_cell,
    table,
    team_column,
)
from napari_panoptic.report.nuclei.tables import (
    CLASS_FIGURES,
    PATIENTS,
    TEAMS,
    confusion_table,
    patients_by_class_table,
    patients_table,
    teams_table,
)
from napari_panoptic.report.page import (
    Child,
    bullets,
    folded,
    fragment,
    named,
    note,
    team_label,
)
from napari_panoptic.report.plots.embed import plot_figure
from napari_panoptic.report.text import (
    UNDEFINED,
    count,
)


def all_teams(report: CohortReport) -> list[str]:
    """Return all teams of the cohort, in its order, which decides their colours."""
    return [team.name for team in report.cohort.teams]


def teams_section(report: CohortReport) -> list[Child]:
    """Show the figures of teams, and their distribution over patients."""
    teams, summaries = all_teams(report), report.evaluation.summaries
    frame = teams_table(report.evaluation)
    for key in METRIC_NAMES:
        frame[f"{key}_median"] = [summaries[t].averaged[key].median for t in frame["team"]]
    caption = (
        "Mean ± sample standard deviation (median) over the patients for whom the figure is "
        f"defined. {UNDEFINED}: defined for no patient; no ±: defined for one patient only."
    )
    panels = {key: patients_table(own) for key, own in report.lessons.items()}
    own = patients_table(report.evaluation)
    return [
        table("teams", caption, TEAMS.shown(teams), frame),
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
    columns = PATIENTS.shown(teams, ["patient"])
    caption = "Figures of the counts summed over each patient's regions."
    return [
        bullets(gaps) if gaps else note("Every team was evaluated in every patient."),
        table("patients", caption, columns, frame, rows),
    ]


def classes_section(report: CohortReport) -> list[Child]:
    """Show the figures of every class."""
    teams, classes = all_teams(report), report.cohort.scheme.names
    frames = []
    for key, summary in report.evaluation.summaries.items():
        own = class_metrics(summed(summary.patients.values(), classes))
        own.insert(0, "team", key)
        frames.append(own)
    pooled = pd.concat(frames, ignore_index=True)
    order = {key: place for place, key in enumerate(classes)}
    rows = pooled.sort_values("class", kind="stable", key=lambda names: names.map(order))
    caption = (
        "Counts summed over all patients. Precision, recall and F1 are of the classes given to "
        "matched nuclei, on the row-normalised confusion matrix; mean IoU and Hausdorff "
        f"distances are over all matched nuclei of any predicted class. {UNDEFINED}: undefined, "
        "for example because the cohort has no nucleus of the class."
    )
    class_figures = [column for column in CLASS_FIGURES if column.cell is not None]
    columns = [name_column("class"), team_column(teams), *class_figures]
    by_patient = patients_by_class_table(report.evaluation)
    patient_columns = [
        name_column("patient"),
        team_column(teams),
        name_column("class"),
        *class_figures,
    ]
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
        *(_counts(key) for key in ("none", *classes)),
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


def _counts(prediction: str) -> Column:
    key = "prediction", prediction
    return Column(prediction, lambda row: number_cell(row[key]["count"], count))
