"""One HTML file that reports everything about a cohort, and needs nothing beside it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_panoptic.nuclei.cohort_report import CohortReport
from napari_panoptic.report.cells import (
    number,
    team_cell,
    team_list,
)
from napari_panoptic.report.nuclei.failures import causes_section, gallery_section, sizes_section
from napari_panoptic.report.nuclei.gallery import Picture, pictures, worst_failures
from napari_panoptic.report.nuclei.methods import methods_section
from napari_panoptic.report.nuclei.overlaps import overlaps_section
from napari_panoptic.report.nuclei.ranking import (
    aggregation_section,
    protocols_section,
    robustness_section,
    statistics_section,
)
from napari_panoptic.report.nuclei.teams import (
    classes_section,
    confusion_section,
    data_quality_section,
    patients_section,
    settings_section,
    teams_section,
)
from napari_panoptic.report.page import (
    Cell,
    Child,
    Section,
    Table,
    bullets,
    element,
    fragment,
    paragraph,
    table,
    write_page,
)
from napari_panoptic.report.sections import DATA_SLUG, lead, report_document
from napari_panoptic.report.text import (
    count,
    interval,
    p_value,
    ratio,
)
from napari_panoptic.statistics.bootstrap import LEVEL
from napari_panoptic.statistics.friedman import SIGNIFICANCE
from napari_panoptic.statistics.teams import TeamStatistics


def write_report(
    report: CohortReport,
    path: Path,
    *,
    date: str = "",
    is_wanted: Callable[[], bool] = lambda: True,
) -> Path | None:
    """Draw the pictures, and write the report as one HTML file, whole or not at all.

    Parameters
    ----------
    report
        What was computed.
    path
        Where to; an older file is replaced.
    date
        Of the report; without one the same files give the same report.
    is_wanted
        Asked before each region's pictures; where it says no, nothing is
        written and None comes back.

    Raises
    ------
    PanopticError
        Where the file cannot be written.
    """
    request = report.request
    failures = worst_failures(report.detailed.results)
    found = pictures(
        request.cohort,
        failures,
        request.detailed,
        request.source,
        held_up_to_px=request.held_up_to_px,
        is_wanted=is_wanted,
    )
    content = report_page(report, list(found), date=date)
    return write_page(path, content) if is_wanted() else None


def report_page(report: CohortReport, pictures: Sequence[Picture], *, date: str = "") -> str:
    """Make the page of a report.

    Parameters
    ----------
    report
        What was computed.
    pictures
        Of its worst failures.
    date
        Of the report; without one the same files give the same page.
    """
    cohort = report.cohort
    said = lead(
        f"{count(len(cohort.regions))} regions of {count(len(cohort.patients))} patients, "
        f"{count(len(report.evaluation.team_names))} team(s), protocol ",
        element("b", report.request.protocol),
        date=date,
        findings=report.findings,
        consequence="file(s) or predictions were missing or unreadable, and figures are over "
        "what was left: see",
    )
    sections = [
        Section("summary", "Summary", _summary(report)),
        Section("settings", "Settings and provenance", settings_section(report)),
        Section(DATA_SLUG, "Data quality", data_quality_section(report)),
        Section("teams", "Teams", teams_section(report)),
        Section("patients", "Patients", patients_section(report)),
        Section("classes", "Classes", classes_section(report)),
        Section("confusion", "Confusion of classes", confusion_section(report)),
        Section("protocols", "Protocols and ranks", protocols_section(report)),
        Section("aggregation", "Ways to average", aggregation_section(report)),
        Section("statistics", "Statistics", statistics_section(report)),
        Section("robustness", "Robustness", robustness_section(report)),
        Section("overlaps", "Objects that share pixels", overlaps_section(report)),
        Section("size", "By size of nucleus", sizes_section(report)),
        Section("cause", "By cause of failure", causes_section(report)),
        Section("gallery", "Worst failures", gallery_section(report, pictures)),
        Section("methods", "Methods, for a paper", _methods(report)),
    ]
    return report_document(f"Segmentation report: {cohort.name}", said, sections)


def _summary(report: CohortReport) -> list[Child]:
    evaluation = report.evaluation
    statistics = report.statistics.get("pq")
    rows, records = [], []
    scores = {team: evaluation.score(team) for team in evaluation.team_names}
    regions = Counter(result.team for result in evaluation.evaluated)
    for team in sorted(scores, key=lambda t: (math.isnan(scores[t]), -scores[t])):
        spread = evaluation.summaries[team].averaged["pq"]
        mean = None if statistics is None else statistics.means.get(team)
        low, high = (math.nan, math.nan) if mean is None else (mean.low, mean.high)
        comparison = None if statistics is None else statistics.comparison
        rank = mean_rank = math.nan
        if comparison is not None and team in comparison.teams and not comparison.why_undefined:
            place = comparison.teams.index(team)
            rank, mean_rank = comparison.ranks[place], float(comparison.mean_ranks[place])
        rows.append(
            [
                team_cell(report, team),
                number(scores[team]),
                number(spread.mean),
                Cell(interval(low, high), low),
                number(mean_rank, lambda v: ratio(v, 2)),
                number(rank, count),
                number(regions[team], count),
                number(spread.n, count),
            ]
        )
        records.append(
            {
                "team": team,
                "score": scores[team],
                "pq_mean": spread.mean,
                "low": low,
                "high": high,
                "mean_rank": mean_rank,
                "rank": rank,
                "regions": regions[team],
                "patients": spread.n,
            }
        )
    header = [
        "team",
        "score",
        "PQ, mean over patients",
        f"{LEVEL:.0%} interval",
        "mean rank",
        "rank by Nemenyi",
        "regions",
        "patients",
    ]
    caption = (
        "The score is the protocol's one number. The rank is 1 + the number of teams that are "
        "significantly better."
    )
    shown = Table("summary", caption, header, rows, pd.DataFrame(records))
    return [table(shown), bullets(_said(report, statistics))]


def _said(report: CohortReport, statistics: TeamStatistics | None) -> list[Child]:
    """Put the main results into sentences."""
    said: list[Child] = []
    if statistics is None:
        said.append("Teams are not compared: that needs at least two competing teams.")
    elif statistics.comparison.why_undefined:
        said.append(f"No Friedman test of PQ: {statistics.comparison.why_undefined}.")
    else:
        comparison = statistics.comparison
        differ = comparison.friedman_p < SIGNIFICANCE
        said.append(
            f"PQ {'differs' if differ else 'does not differ significantly'} between teams "
            f"(Friedman, p {_equals(comparison.friedman_p)}, n = {comparison.n_patients} patients, "
            f"Kendall's W = {comparison.kendall_w:.2f})."
        )
    changing = _unsteady(report.protocols.ranks)
    if len(report.protocols.teams) > 1:
        moved = [report.protocols.teams[row] for row in changing]
        said.append(
            fragment("The rank depends on the protocol for ", team_list(report, moved), ".")
            if moved
            else "Every team has the same rank under all protocols."
        )
        unsteady = {c.team for c in report.two_by_two.found.changes}
        said.append(
            fragment(
                "The rank depends on restoration or matching rule for ",
                team_list(report, [t for t in report.two_by_two.found.teams if t in unsteady]),
                ".",
            )
            if unsteady
            else "Every team has the same rank under both restorations and both matching rules."
        )
    return said


def _unsteady(ranks: np.ndarray[Any, np.dtype[np.int64]]) -> list[int]:
    return [row for row, own in enumerate(ranks) if len(set(own[own > 0].tolist())) > 1]


def _equals(p: float) -> str:
    return p_value(p) if p < 0.001 else f"= {p_value(p)}"


def _methods(report: CohortReport) -> list[Child]:
    paragraphs, references = methods_section(report.request.settings)
    return [
        *(paragraph(text) for text in paragraphs),
        element("h3", "References"),
        element("ol", *(element("li", text) for text in references)),
    ]
