"""The section of a report on one region: the answers that the window gives about any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.display.regions.here import Here
from napari_panoptic.display.regions.question import RegionQuestion, region_questions
from napari_panoptic.nuclei.metrics import unit_metrics
from napari_panoptic.nuclei.regions.looks import RegionLook, look_at
from napari_panoptic.nuclei.regions.results import RegionResult
from napari_panoptic.questions.answer import Answer, UnansweredError
from napari_panoptic.report.answers import answer_parts
from napari_panoptic.report.page import team_label
from napari_panoptic.statistics.means import mean_defined
from napari_panoptic.tables.markup import Child, element, folded, named, paragraph
from napari_panoptic.values.links import LinkMaker
from napari_panoptic.values.reading import Reading

if TYPE_CHECKING:
    from napari_panoptic.report.nuclei.cohort_report import ReportRequest


@dataclass(frozen=True, eq=False)
class AboutRegion:
    """Answers about a region."""

    #: Name of the region.
    region: str
    #: The questions that have an answer: with the team, empty if it is about all, and the answer.
    answers: tuple[tuple[RegionQuestion, str, Answer], ...]


def worst_region(results: Sequence[RegionResult]) -> str | None:
    """Return the region with the lowest mean PQ of the teams; None if no region has one."""
    by_region: dict[str, list[float]] = {}
    for result in results:
        if result.objects is not None and result.counts is not None:
            by_region.setdefault(result.region, []).append(unit_metrics(result.counts).pq)
    means = {region: mean_defined(figures) for region, figures in by_region.items()}
    return min((own for own in means if means[own] >= 0), key=means.__getitem__, default=None)


def about_region(
    request: ReportRequest, name: str | None, progress: Progress = UNWATCHED
) -> AboutRegion | None:
    """Ask all questions about a region, of each team or of all together; None for no region."""
    if name is None:
        return None
    reading = Reading(
        request.detailed.replaced(distances=False),
        request.source,
        request.team_names,
        request.held_up_to_px,
    )
    cohort = replace(request.cohort, regions=(request.cohort.region(name),))
    look = RegionLook(reading, lambda _region, teams, _image: teams, at_once=True)
    evaluations = {
        team: own.evaluation
        for (seen,) in look_at(cohort, [look], progress)
        for teams in seen.parts
        for team, own in teams.items()
        if own.evaluation is not None
    }
    answers = []
    for kind in region_questions().values():
        for team in list(evaluations)[: 1 if kind.is_about_all_teams else None]:
            question, label = kind(), "" if kind.is_about_all_teams else team
            try:
                answer = question.answered(Here(name, team, evaluations))
            except UnansweredError:
                continue
            answers.append((question, label, answer))
    return AboutRegion(name, tuple(answers))


def region_section(
    about: AboutRegion, teams: Sequence[str], links: LinkMaker | None
) -> list[Child]:
    """Return the section on a region, whose questions are folded; see `answer_parts`."""
    parts: list[Child] = [
        paragraph(named(f"{about.region}: no region has a lower mean PQ of the teams."))
    ]
    for kind, answers in groupby(about.answers, key=lambda own: type(own[0])):
        content: list[Child] = []
        for number, (_, team, answer) in enumerate(answers, start=1):
            content += [element("h3", team_label(team, teams))] if team else []
            content += answer_parts(answer, f"region-{kind.name()}-{number}", teams, links=links)
        parts.append(folded(kind.heading or kind.title, *content))
    return parts
