"""The ranking of a cohort as an answer: its tables and plots, and the files that they are in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from napari_panoptic.nuclei.metrics import FIGURE_NAMES
from napari_panoptic.questions.answer import Answer, AnswerPlot, AnswerRecord, AnswerTable
from napari_panoptic.questions.conventions import scores_of
from napari_panoptic.questions.ranking import statistics_rows
from napari_panoptic.report.nuclei.cohort_report import CohortReport
from napari_panoptic.report.nuclei.tables import PATIENTS, confusion_table, patients_table
from napari_panoptic.statistics.bootstrap import RESAMPLES, SEED
from napari_panoptic.statistics.teams import (
    TeamStatistics,
    bootstrap_record,
    statistics_record,
)
from napari_panoptic.tables.columns import (
    TableColumn,
    TableSpec,
    number,
    ranked_cell,
    unshown,
    whole,
    words,
)
from napari_panoptic.tables.figures import counted, interval, p_value
from napari_panoptic.values.settings import EvaluationSettings

if TYPE_CHECKING:
    pass

STATISTICS = "Statistics"
"""Title of the table of means and ranks by every metric."""
STATISTICS_FILE = TableSpec(
    "ranking-statistics.csv",
    "metric and team",
    [
        unshown("metric", "team"),
        unshown("mean", "low", "high", "rank", "patients", "friedman_p", about="as in ranking.csv"),
    ],
)
PATIENTS_FILE = replace(PATIENTS, file="ranking-patients.csv")


def ranking_answer(report: CohortReport) -> Answer:
    """Return what a report shows of the ranking: tables by convention and metric, and plots."""
    conventions, found = report.conventions, report.statistics
    asked = report.request
    files = () if conventions is None else (own for own in conventions.tables if own.spec.file)
    return Answer(
        headline="" if conventions is None else conventions.headline,
        notes=() if conventions is None else conventions.notes,
        tables=(
            *([] if conventions is None else [scores_of(conventions)]),
            *([_statistics(found)] if found else []),
            *files,
            AnswerTable(STATISTICS_FILE, STATISTICS_FILE.frame(statistics_rows(found))),
            AnswerTable(PATIENTS_FILE, patients_table(report.evaluation)),
        ),
        plots=tuple(_plots(report)),
        record=AnswerRecord(
            {
                "teams": asked.team_names,
                "protocol": asked.protocol,
                "settings": asked.settings.as_record(),
                "bootstrap": bootstrap_record(RESAMPLES, SEED),
                "statistics": {metric: statistics_record(one) for metric, one in found.items()},
            },
            tuple(report.findings),
            asked.team_names,
        ),
    )


def _statistics(found: Mapping[str, TeamStatistics]) -> AnswerTable:
    """Return the mean and rank of each team by every metric, with the teams as columns."""
    teams = next(iter(found.values())).comparison.teams
    spec = TableSpec(
        "",
        "metric",
        [
            words("metric", "Metric", "Mean over patients, (rank)."),
            whole("patients", "n", "Patients with a value for every team: those the tests compare"),
            number("friedman_p", "p", p_value, "Friedman test: is there any difference of teams?"),
            *map(_ranked, teams),
        ],
        _caption(next(iter(found.values()))),
    )
    rows = [
        {
            "metric": FIGURE_NAMES.get(metric, metric),
            "patients": one.comparison.n_patients,
            "friedman_p": one.comparison.friedman_p,
            **{f"mean {team}": one.means[team].mean for team in teams},
            **dict(zip((f"rank {team}" for team in teams), one.comparison.ranks, strict=True)),
        }
        for metric, one in found.items()
    ]
    about = [_intervals(one) for one in found.values()]
    return AnswerTable(spec, spec.frame(rows), tooltip=about.__getitem__, heading=STATISTICS)


def _ranked(team: str) -> TableColumn:
    keys = f"mean {team}", f"rank {team}"
    return TableColumn(team, lambda row: ranked_cell(row[keys[0]], row[keys[1]]), keys)


def _caption(found: TeamStatistics) -> str:
    """Describe what is shown, and how many patients are left out of the tests."""
    said = "Means over patients; the rank in brackets counts the teams that are clearly better."
    left_out = len(found.comparison.figures.omitted)
    return f"{said} {counted(left_out, 'patient')} left out of the tests." if left_out else said


def _intervals(found: TeamStatistics) -> str:
    """Describe the interval of each mean, and why a test is undefined."""
    intervals = (f"{team}: {interval(own.low, own.high)}" for team, own in found.means.items())
    return "; ".join(filter(None, (*intervals, found.comparison.why_undefined)))


# --- plots ------------------------------------------------------------------------------------


def _plots(report: CohortReport) -> Iterator[AnswerPlot]:
    from napari_panoptic.report.nuclei.teams import all_teams  # takes long to import

    teams, classes = all_teams(report), report.cohort.scheme.names
    by_patient = {"": patients_table(report.evaluation)}
    counts, settings = confusion_table(report.evaluation), report.request.detailed
    yield _plot("patient_boxes", "PQ per patient", by_patient, teams)
    yield _plot("quality_scatter", "DQ against SQ", by_patient, teams)
    yield _plot("detection_scatter", "Precision against recall", by_patient, teams)
    for title, is_share in (("Confusion, counts", False), ("Confusion, shares", True)):
        yield _plot("confusion_matrices", title, counts, classes, teams, normalised=is_share)
    if "pq" in report.statistics:
        critical = report.statistics["pq"].critical
        yield _plot("critical_difference_diagram", "Mean ranks", critical, teams)
    else:
        yield _plot("nothing_to_show", "Mean ranks", "there are fewer than two teams to compare")
    radius, threshold = float(settings.dilation_radius), settings.iou_threshold
    for title, varied, usual, label, of in (
        ("PQ against radius", report.radii, radius, "radius (px)", _radius),
        ("PQ against threshold", report.thresholds, threshold, "IoU threshold", _threshold),
    ):
        places = [of(condition.settings) for condition in varied.conditions]
        more = {"x_label": label, "usual": usual}
        yield _plot("robustness_curves", title, varied.found, places, teams, **more)
    shifts = [condition.shift for condition in report.shifts.conditions]
    yield _plot("shift_maps", "Shifts by a pixel", report.shifts.found, shifts, teams, columns=2)
    if report.sizes is None:
        yield _plot("nothing_to_show", "By size of nucleus", "no nucleus is annotated")
    else:
        yield _plot("size_lines", "By size of nucleus", report.sizes, teams)
    yield _plot("cause_dots", "Causes of failures", report.causes, teams)


def _plot(name: str, title: str, *arguments: Any, **keywords: Any) -> AnswerPlot:
    return AnswerPlot(name, title, title, arguments, keywords=keywords)


def _radius(settings: EvaluationSettings) -> float:
    return float(settings.radius)


def _threshold(settings: EvaluationSettings) -> float:
    return settings.iou_threshold
