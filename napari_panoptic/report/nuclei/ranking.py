"""Parts of the report: what decides a ranking, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from napari_panoptic.common.errors import english_list
from napari_panoptic.nuclei.averages import UNDEFINED_RULES, ClassMean, Unit
from napari_panoptic.nuclei.cohort_report import RADII, THRESHOLDS, CohortReport, Varied
from napari_panoptic.nuclei.conditions import SHIFTS
from napari_panoptic.nuclei.values.settings import Correction, Scoring, protocol
from napari_panoptic.report import plots
from napari_panoptic.report.cells import (
    all_teams,
    note,
    number,
    ranked,
    team_headings,
    team_html,
)
from napari_panoptic.report.page import (
    Cell,
    Child,
    Html,
    Table,
    bullets,
    element,
    folded,
    fragment,
    named,
    paragraph,
    plot_figure,
    table,
)
from napari_panoptic.report.statistics import (
    TableWords,
    friedman_table,
    means_table,
    nemenyi_table,
    pairs_table,
)
from napari_panoptic.report.text import (
    FIGURE_NAMES,
    count,
)
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, SEED
from napari_panoptic.statistics.friedman import PairedFigures

_UNIT_WORDS: Mapping[Unit, str] = {
    Unit.REGION: "every region by itself",
    Unit.PATIENT: "regions of a patient together",
    Unit.GROUP: "regions of a group together",
    Unit.POOLED: "everything together",
}
_MEAN_WORDS: Mapping[ClassMean, str] = {
    ClassMean.PRESENT: "classes present",
    ClassMean.ALL: "all classes",
    ClassMean.WEIGHTED: "by number of nuclei",
}


def protocols_section(report: CohortReport) -> list[Child]:
    """Show scores and ranks under every version of the challenge's scoring."""
    found = report.protocols
    rows, records = [], []
    for k, name in enumerate(found.protocols):
        units = sorted(set(found.n_units[:, k].tolist()))
        settings = protocol(name)
        is_by_patient = (
            settings.scoring is Scoring.DISENTANGLED
            or Correction.PER_PATIENT in settings.corrections
        )
        per = "patients" if is_by_patient else "regions"
        span = count(units[0]) if len(units) == 1 else f"{units[0]} to {units[-1]}"
        rows.append(
            [
                Cell(name),
                *(
                    ranked(float(found.scores[row, k]), int(found.ranks[row, k]))
                    for row in range(len(found.teams))
                ),
                Cell(f"{span} {per}"),
            ]
        )
        records += [
            {
                "protocol": name,
                "team": team,
                "score": found.scores[row, k],
                "rank": int(found.ranks[row, k]) or None,
                "units": int(found.n_units[row, k]),
            }
            for row, team in enumerate(found.teams)
        ]
    header: list[Child] = [
        "protocol",
        *team_headings(report, found.teams),
        "mean over",
    ]
    caption = (
        "Score (rank) as the challenge computed it, with each of its errors corrected alone, "
        "together, and by the disentangled evaluation; settings other than those of the protocols "
        "are not applied here."
    )
    return [
        table(Table("protocols", caption, header, rows, pd.DataFrame(records))),
        plot_figure(
            plots.rank_lines(found, all_teams(report)),
            "protocol-ranks",
            "Rank of each team under every protocol; equal ranks are drawn beside each other.",
        ),
    ]


def aggregation_section(report: CohortReport) -> list[Child]:
    """Show what the way to average does to the ranking."""
    found = report.aggregation
    rows, records = [], []
    for unit, mean in found.ways:
        cells = [Cell(f"{_UNIT_WORDS[unit]}, {_MEAN_WORDS[mean]}")]
        for team in found.teams:
            own = found.aggregates[team, unit, mean]
            cells.append(ranked(own.spread.mean, found.ranks[team, unit, mean]))
            records.append(
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
            )
        counts = [found.aggregates[team, unit, mean].spread.n for team in found.teams]
        cells.append(Cell(english_list([count(n) for n in sorted(set(counts))])))
        rows.append(cells)
    header: list[Child] = [
        "summed over, and mean of classes",
        *team_headings(report, found.teams),
        "units",
    ]
    caption = "PQ (rank) of the same counts, averaged in every way."
    orders = {tuple(found.ranks[team, *way] for team in found.teams) for way in found.ways}
    said = (
        "All ways rank the teams alike."
        if len(orders) == 1
        else f"They give {len(orders)} different rankings."
    )
    parts: list[Child] = [
        note(said if len(found.teams) > 1 else "There is one team: nothing to rank."),
        table(Table("aggregation", caption, header, rows, pd.DataFrame(records))),
        bullets([f"{_MEAN_WORDS[mean]}: {rule}" for mean, rule in UNDEFINED_RULES.items()]),
    ]
    if any(unit is Unit.GROUP for unit, _ in found.ways):
        parts.append(_groups(report))
    return parts


def _groups(report: CohortReport) -> Html:
    found = report.aggregation
    by_team = {t: found.aggregates[t, Unit.GROUP, ClassMean.PRESENT].values for t in found.teams}
    groups = sorted({group for values in by_team.values() for group in values})
    rows = [
        [
            Cell(named(group)),
            *(number(by_team[team].get(group, math.nan)) for team in found.teams),
        ]
        for group in groups
    ]
    frame = pd.DataFrame(
        [
            {"group": group, "team": team, "pq": by_team[team].get(group, math.nan)}
            for group in groups
            for team in found.teams
        ]
    )
    header: list[Child] = [
        report.request.group_column,
        *team_headings(report, found.teams),
    ]
    alone = [p for p in report.cohort.patients if not report.request.group_of(p)]
    caption = "PQ of the counts summed over each group, mean over the classes present."
    if alone:
        caption += f" Left out, since they are in no group: {english_list(alone)}."
    return table(Table("groups", caption, header, rows, frame))


def statistics_section(report: CohortReport) -> list[Child]:
    """Show whether teams differ, by how much, and over whom."""
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
    pq = found["pq"]
    words = TableWords(all_teams(report), FIGURE_NAMES, "pq", "PQ", "patient", "figure", "metric")
    parts: list[Child] = [
        note(
            f"Over patients with figures of all teams. Intervals: {LEVEL:.0%} bootstrap, "
            f"{count(RESAMPLES)} resamples of the patients, seed {SEED}; BCa unless another "
            f"method is named."
        ),
        friedman_table(words, found),
        _left_out(report, pq.comparison.figures),
        plot_figure(
            plots.critical_difference_diagram(pq.critical, all_teams(report)),
            "critical-difference",
            "Mean ranks by PQ; teams under one bar do not differ significantly (Nemenyi).",
        ),
        nemenyi_table(words, pq),
        means_table(words, found),
        pairs_table(words, found),
    ]
    return parts


def _left_out(report: CohortReport, figures: PairedFigures) -> Html:
    if not figures.omitted:
        return note(f"PQ: all {len(report.cohort.patients)} patients are compared.")
    reasons: list[Child] = [named(omission.reason) for omission in figures.omitted]
    return fragment(
        note(
            f"PQ: {len(figures.omitted)} of {len(report.cohort.patients)} patients are left out "
            f"({figures.missing}):"
        ),
        bullets(reasons),
    )


def robustness_section(report: CohortReport) -> list[Child]:
    """Show what restoration, rule, radius, threshold and shift do to figures and ranks."""
    teams = all_teams(report)
    settings = report.request.detailed
    is_dilated = settings.dilation_radius if settings.dilation_radius in RADII else None
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
                usual=None if is_dilated is None else float(is_dilated),
            ),
            "radius",
            "Figures against the radius by which restored objects grow or shrink; dashed: this "
            "evaluation; rings: a rank by PQ that differs from that of the point before. Forms "
            "that are not restored do not change.",
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
            "Figures against the threshold of the strict-iou rule; dashed: the threshold of this "
            "evaluation.",
        ),
        _folded_curve(report, report.thresholds, "threshold"),
        element("h3", "Shift by one pixel"),
        plot_figure(
            plots.shift_maps(report.shifts.found, SHIFTS, teams),
            "shifts",
            "Change of PQ when all predictions are moved by a pixel; in the middle: PQ unmoved.",
        ),
        _rank_changes(report, report.shifts),
        _folded_curve(report, report.shifts, "shifts"),
    ]


def _folded_curve(report: CohortReport, varied: Varied, slug: str) -> Html:
    return folded("The same as a table", _varied_table(report, varied, slug, "PQ (rank)."))


def _varied_table(report: CohortReport, varied: Varied, slug: str, caption: str) -> Html:
    found = varied.found
    rows, records = [], []
    for k, condition in enumerate(found.conditions):
        rows.append(
            [
                Cell(condition),
                *(
                    ranked(float(found.pq[row, k]), int(found.ranks[row, k]))
                    for row in range(len(found.teams))
                ),
            ]
        )
        records += [
            {
                "condition": condition,
                "team": team,
                "pq": found.pq[row, k],
                "sq": found.sq[row, k],
                "dq": found.dq[row, k],
                "patients": int(found.n_patients[row, k]),
                "rank": int(found.ranks[row, k]) or None,
            }
            for row, team in enumerate(found.teams)
        ]
    header: list[Child] = ["condition", *team_headings(report, found.teams)]
    return table(Table(slug, caption, header, rows, pd.DataFrame(records)))


def _rank_changes(report: CohortReport, varied: Varied) -> Html:
    changes = varied.found.changes
    if not changes:
        return note("No rank changes.")
    return bullets(
        [
            fragment(
                team_html(report, c.team),
                f": rank {c.ranks[0]} with {c.conditions[0]}, {c.ranks[1]} with {c.conditions[1]}",
            )
            for c in changes
        ]
    )
