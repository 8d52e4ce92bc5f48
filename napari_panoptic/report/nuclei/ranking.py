"""Sections on the ranking: effect of protocol, average and settings, and certainty; its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from napari_panoptic.common.spreadsheets import csv_bytes
from napari_panoptic.common.text import english_list
from napari_panoptic.nuclei.averages import UNDEFINED_RULES, ClassMean, Unit
from napari_panoptic.nuclei.regions.conditions import RADII, THRESHOLDS
from napari_panoptic.nuclei.regions.shifts import SHIFTS
from napari_panoptic.report import plots
from napari_panoptic.report.columns import table
from napari_panoptic.report.nuclei.cohort_report import CohortReport, Varied
from napari_panoptic.report.nuclei.tables import patients_table
from napari_panoptic.report.nuclei.teams import all_teams
from napari_panoptic.report.page import team_label
from napari_panoptic.report.plots.embed import plot_figure
from napari_panoptic.report.statistics import StatisticsTables
from napari_panoptic.report.writing import check_writable, write_bytes
from napari_panoptic.statistics.friedman import PairedFigures
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    across,
    figure_of,
    name_column,
    ranked,
    words,
)
from napari_panoptic.tables.figures import FIGURE_NAMES, count
from napari_panoptic.tables.markup import (
    Child,
    Html,
    bullets,
    element,
    folded,
    fragment,
    named,
    note,
    paragraph,
)
from napari_panoptic.values.settings import Correction, Scoring, protocol

if TYPE_CHECKING:
    import pandas as pd

_UNIT_WORDS: Mapping[Unit, str] = {
    Unit.REGION: "each region",
    Unit.PATIENT: "the regions of each patient",
    Unit.GROUP: "the regions of each group",
    Unit.POOLED: "all regions",
}
_MEAN_WORDS: Mapping[ClassMean, str] = {
    ClassMean.PRESENT: "classes present",
    ClassMean.ALL: "all classes",
    ClassMean.WEIGHTED: "by number of nuclei",
}


def _ranked_teams(
    report: CohortReport, names: Sequence[str], value: str = "pq"
) -> list[TableColumn]:
    """Return a column per team with its figure and rank."""
    teams = all_teams(report)
    return [ranked(team_label(own, teams), ("team", own), value) for own in names]


def protocols_section(report: CohortReport) -> list[Child]:
    """Show scores and ranks under the challenge's scoring with and without its errors."""
    found, frame = report.protocols, _protocols_frame(report)

    def mean_over(row: Record) -> CellContent:
        units = sorted({row["team", team]["units"] for team in found.teams})
        settings = protocol(row["protocol"])
        is_by_patient = (
            settings.scoring is Scoring.DISENTANGLED
            or Correction.PER_PATIENT in settings.corrections
        )
        span = count(units[0]) if len(units) == 1 else f"{units[0]} to {units[-1]}"
        return CellContent(f"{span} {'patients' if is_by_patient else 'regions'}")

    columns = [
        words("protocol"),
        *_ranked_teams(report, found.teams, "score"),
        TableColumn("mean over", mean_over),
    ]
    caption = (
        "Score (rank) as the challenge computed it, with each of its errors corrected alone, "
        "together, and by the disentangled evaluation; settings other than those of the protocols "
        "are not applied here."
    )
    return [
        table("protocols", caption, columns, frame, across(frame, ["protocol"], "team")),
        plot_figure(
            plots.rank_lines(found, all_teams(report)),
            "protocol-ranks",
            "Rank of each team under every protocol; equal ranks are drawn side by side.",
        ),
    ]


def aggregation_section(report: CohortReport) -> list[Child]:
    """Show how the ranking depends on the way to average."""
    found, frame = report.aggregation, _averages_frame(report)

    def way(row: Record) -> CellContent:
        unit, mean = Unit(row["unit"]), ClassMean(row["class_mean"])
        return CellContent(f"{_UNIT_WORDS[unit]}, {_MEAN_WORDS[mean]}")

    def units(row: Record) -> CellContent:
        numbers = {row["team", team]["defined"] for team in found.teams}
        return CellContent(english_list([count(n) for n in sorted(numbers)]))

    columns = [
        TableColumn("summed over, and mean of classes", way),
        *_ranked_teams(report, found.teams),
        TableColumn("units", units),
    ]
    rows = across(frame, ["unit", "class_mean"], "team")
    orders = {tuple(found.ranks[team, *way] for team in found.teams) for way in found.ways}
    conclusion = (
        "All ways give the same ranking."
        if len(orders) == 1
        else f"They give {len(orders)} different rankings."
    )
    caption = "PQ (rank) of the same counts, averaged in every way."
    parts: list[Child] = [
        note(conclusion if len(found.teams) > 1 else "There is one team: nothing to rank."),
        table("aggregation", caption, columns, frame, rows),
        bullets(f"{_MEAN_WORDS[mean]}: {rule}" for mean, rule in UNDEFINED_RULES.items()),
    ]
    if any(unit is Unit.GROUP for unit, _ in found.ways):
        parts.append(_groups(report))
    return parts


def _groups(report: CohortReport) -> Html:
    import pandas as pd

    found, teams = report.aggregation, all_teams(report)
    by_team = {t: found.aggregates[t, Unit.GROUP, ClassMean.PRESENT].values for t in found.teams}
    groups = sorted({group for values in by_team.values() for group in values})
    frame = pd.DataFrame(
        [
            {"group": group, "team": team, "pq": by_team[team].get(group, float("nan"))}
            for group in groups
            for team in found.teams
        ]
    )
    columns = [
        name_column("group", report.request.group_column),
        *(figure_of(team_label(team, teams), ("team", team)) for team in found.teams),
    ]
    alone = [p for p in report.cohort.patients if not report.request.group_of(p)]
    caption = "PQ of the counts summed over each group, mean over the classes present."
    if alone:
        caption += f" Patients without a group are left out: {english_list(alone)}."
    return table("groups", caption, columns, frame, across(frame, ["group"], "team"))


def statistics_section(report: CohortReport) -> list[Child]:
    """Show whether teams differ, by how much, and over which patients."""
    found = report.statistics
    if not found:
        competing = {team.name for team in report.cohort.competing_teams}
        n_competing = len(competing.intersection(report.evaluation.team_names))
        return [
            paragraph(
                f"Undefined: comparing teams needs at least two competing teams, found "
                f"{n_competing}."
            )
        ]
    tables = StatisticsTables(
        found, all_teams(report), FIGURE_NAMES, "pq", "PQ", unit="patient", head="figure",
        column="metric",
    )  # fmt: skip
    return tables.parts(
        "Over patients with figures of all teams.",
        _left_out(report, found["pq"].comparison.figures),
        "Mean ranks by PQ; teams under one bar do not differ significantly (Nemenyi).",
    )


def _left_out(report: CohortReport, figures: PairedFigures) -> Html:
    if not figures.omitted:
        return note(f"PQ: all {len(report.cohort.patients)} patients are compared.")
    return fragment(
        note(
            f"PQ: {len(figures.omitted)} of {len(report.cohort.patients)} patients are left out "
            f"({figures.missing}):"
        ),
        bullets(named(omission.reason) for omission in figures.omitted),
    )


def robustness_section(report: CohortReport) -> list[Child]:
    """Show how figures and ranks depend on restoration, rule, radius, threshold and shift."""
    teams = all_teams(report)
    settings = report.request.detailed
    radius = settings.dilation_radius
    return [
        element("h3", "Restoration and matching rule"),
        _varied_table(report, report.two_by_two, "two-by-two", "PQ (rank) under each."),
        _rank_changes(report, report.two_by_two),
        element("h3", "Radius"),
        plot_figure(
            plots.robustness_curves(
                report.radii.found,
                RADII,
                teams,
                x_label="radius (px)",
                usual=float(radius) if radius in RADII else None,
            ),
            "radius",
            "Metrics against the radius by which restored objects grow or shrink; dashed: this "
            "evaluation; rings: the rank by PQ differs from that of the previous point. Formats "
            "without restoration do not change.",
        ),
        _folded_curve(report, report.radii, "radius"),
        element("h3", "IoU threshold"),
        plot_figure(
            plots.robustness_curves(
                report.thresholds.found,
                THRESHOLDS,
                teams,
                x_label="IoU above which a pair matches",
                usual=settings.iou_threshold,
            ),
            "threshold",
            "Metrics against the threshold of the strict-iou rule; dashed: the threshold of this "
            "evaluation.",
        ),
        _folded_curve(report, report.thresholds, "threshold"),
        element("h3", "Shift by one pixel"),
        plot_figure(
            plots.shift_maps(report.shifts.found, SHIFTS, teams),
            "shifts",
            "Change of PQ when all predictions are shifted by one pixel; centre: PQ without shift.",
        ),
        _rank_changes(report, report.shifts),
        _folded_curve(report, report.shifts, "shifts"),
    ]


def _folded_curve(report: CohortReport, varied: Varied, slug: str) -> Html:
    return folded("The same as a table", _varied_table(report, varied, slug, "PQ (rank)."))


def _varied_table(report: CohortReport, varied: Varied, slug: str, caption: str) -> Html:
    import pandas as pd

    found = varied.found
    frame = pd.DataFrame(
        [
            {
                "condition": condition,
                "team": team,
                "pq": found.pq[row, k],
                "sq": found.sq[row, k],
                "dq": found.dq[row, k],
                "patients": int(found.n_patients[row, k]),
                "rank": int(found.ranks[row, k]) or None,
            }
            for k, condition in enumerate(found.conditions)
            for row, team in enumerate(found.teams)
        ]
    )
    columns = [words("condition"), *_ranked_teams(report, found.teams)]
    return table(slug, caption, columns, frame, across(frame, ["condition"], "team"))


def _rank_changes(report: CohortReport, varied: Varied) -> Html:
    changes = varied.found.changes
    if not changes:
        return note("No rank changes.")
    return bullets(
        fragment(
            team_label(c.team, all_teams(report)),
            f": rank {c.ranks[0]} with {c.conditions[0]}, {c.ranks[1]} with {c.conditions[1]}",
        )
        for c in changes
    )


# --- tables as files -------------------------------------------------------------------------


def ranking_tables(report: CohortReport) -> Mapping[str, pd.DataFrame]:
    """Return file name -> table, with full precision; undefined is NaN.

    Parameters
    ----------
    report
        The evaluated cohort.
    """
    protocols = ["team", "protocol", "score", "rank", "units"]
    averages = ["team", "unit", "class_mean", "pq", "rank", "defined", "units"]
    by_average = _by_team(_averages_frame(report), averages)
    return {
        "ranking-protocols.csv": _by_team(_protocols_frame(report), protocols),
        "ranking-averages.csv": by_average.rename(columns={"defined": "defined_units"}),
        "ranking-statistics.csv": _statistics_frame(report),
        "ranking-patients.csv": patients_table(report.evaluation),
    }


def _by_team(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return some columns, with the rows of each team together; undefined ranks are empty."""
    if frame.empty:
        return frame.reindex(columns=columns).astype({"rank": "Int64"})
    order = {team: place for place, team in enumerate(dict.fromkeys(frame["team"]))}
    rows = frame.sort_values("team", kind="stable", key=lambda names: names.map(order))
    return rows[columns].astype({"rank": "Int64"})


def write_ranking_tables(report: CohortReport, folder: Path) -> list[Path]:
    """Write the tables as CSV files into a folder; existing files are replaced.

    Raises
    ------
    PanopticError
        If a file cannot be written.
    """
    tables = {folder / name: table for name, table in ranking_tables(report).items()}
    for path in tables:
        check_writable(path)
    return [write_bytes(path, csv_bytes(table)) for path, table in tables.items()]


def _protocols_frame(report: CohortReport) -> pd.DataFrame:
    """Return a row per protocol and team."""
    import pandas as pd

    found = report.protocols
    return pd.DataFrame(
        [
            {
                "protocol": name,
                "team": team,
                "score": found.scores[row, k],
                "rank": int(found.ranks[row, k]) or None,
                "units": int(found.n_units[row, k]),
            }
            for k, name in enumerate(found.protocols)
            for row, team in enumerate(found.teams)
        ]
    )


def _averages_frame(report: CohortReport) -> pd.DataFrame:
    """Return a row per way to average and team."""
    import pandas as pd

    found = report.aggregation
    return pd.DataFrame(
        [
            {
                "unit": str(unit),
                "class_mean": str(mean),
                "team": team,
                "pq": own.spread.mean,
                "sd": own.spread.sd,
                "rank": found.ranks[team, unit, mean] or None,
                "units": own.n_units,
                "defined": own.spread.n,
                "undefined": own.undefined_rule,
            }
            for unit, mean in found.ways
            for team in found.teams
            for own in [found.aggregates[team, unit, mean]]
        ]
    )


def _statistics_frame(report: CohortReport) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for metric, found in report.statistics.items():
        comparison = found.comparison
        for team, rank in zip(comparison.teams, comparison.ranks, strict=True):
            mean = found.means[team]
            row = (metric, team, mean.mean, mean.low, mean.high, rank)
            rows.append((*row, comparison.n_patients, comparison.friedman_p))
    names = ["metric", "team", "mean", "low", "high", "rank", "patients", "friedman_p"]
    return pd.DataFrame(rows, columns=names)
