"""Sections on the ranking: effect of protocol, average and settings, and certainty."""

from __future__ import annotations

from collections.abc import Sequence

from napari_panoptic.common.text import english_list
from napari_panoptic.nuclei.averages import summed
from napari_panoptic.nuclei.metrics import FIGURE_NAMES, unit_metrics
from napari_panoptic.nuclei.regions.conditions import RADII, THRESHOLDS
from napari_panoptic.nuclei.regions.shifts import SHIFTS
from napari_panoptic.report import plots
from napari_panoptic.report.columns import table
from napari_panoptic.report.nuclei.cohort_report import CohortReport, Varied
from napari_panoptic.report.nuclei.teams import all_teams
from napari_panoptic.report.page import team_label
from napari_panoptic.report.plots.embed import plot_figure
from napari_panoptic.report.statistics import StatisticsTables
from napari_panoptic.statistics.friedman import PairedFigures
from napari_panoptic.tables.columns import (
    TableColumn,
    across,
    figure_of,
    name_column,
    ranked,
    words,
)
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


def _ranked_teams(
    report: CohortReport, names: Sequence[str], value: str = "pq"
) -> list[TableColumn]:
    """Return a column per team with its figure and rank."""
    teams = all_teams(report)
    return [ranked(team_label(own, teams), ("team", own), value) for own in names]


def groups_section(report: CohortReport) -> list[Child]:
    """Show PQ of each group of patients; nothing without groups."""
    import pandas as pd

    teams, names = all_teams(report), report.detailed.team_names
    group_of = report.request.group_of
    groups = sorted({group for p in report.cohort.patients if (group := group_of(p))})
    if not groups:
        return []
    frame = pd.DataFrame(
        [
            {"group": group, "team": team, "pq": unit_metrics(summed(own, classes)).pq}
            for classes in [report.cohort.scheme.names]
            for group in groups
            for team in names
            for own in [
                [
                    counts
                    for patient, counts in report.detailed.summaries[team].patients.items()
                    if group_of(patient) == group
                ]
            ]
        ]
    )
    columns = [
        name_column("group", report.request.group_column),
        *(figure_of(team_label(team, teams), ("team", team)) for team in names),
    ]
    alone = [p for p in report.cohort.patients if not report.request.group_of(p)]
    caption = "PQ of the counts summed over each group, mean over the classes present."
    if alone:
        caption += f" Patients without a group are left out: {english_list(alone)}."
    return [table("groups", caption, columns, frame, across(frame, ["group"], "team"))]


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
