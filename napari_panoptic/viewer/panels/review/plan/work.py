"""Work of the plan panel in other threads, and the inputs of that work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.questions.answer import Answer
from napari_panoptic.questions.question import Question
from napari_panoptic.review.identity import one_spelling
from napari_panoptic.review.plan.corrected import Quantity
from napari_panoptic.review.plan.design import Plan
from napari_panoptic.review.plan.estimates import Estimates, ItemVerdict, estimate, expected
from napari_panoptic.review.plan.goal import Goal, PlanSetup, expected_half_width
from napari_panoptic.review.plan.suspects import with_cohort_suspects
from napari_panoptic.review.plan.units import Population, StrArray, Units, population
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.vocabulary import Verdict

PRECISION, MINUTES, SECONDS = 0.05, 60, 20
"""The usual goal, with which the form starts."""


@dataclass(frozen=True, kw_only=True)
class PlanItems(Question):
    """Which items of a cohort can be drawn."""

    done = "counted"
    share_of_gathering = 1.0

    #: Names of the teams.
    teams: tuple[str, ...]
    #: Whether suspect annotations are marked.
    has_suspects: bool = False

    def gather(
        self,
        cohort: Cohort,
        progress: Progress = UNWATCHED,
        *,
        jobs: int | None = 1,  # noqa: ARG002 - as many regions at a time as there are processors
    ) -> Population:
        """Evaluate the teams over the cohort, and list the items."""
        reading = Reading(self.settings, self.source, self.teams, self.held_up_to_px)
        found = population(cohort, reading, progress)
        if self.has_suspects:
            units = with_cohort_suspects(found.units, cohort, self.source)
            found = replace(found, units=units)
        return found

    def answered(
        self,
        cohort: Cohort,  # noqa: ARG002 - it was read
        gathered: Population,  # noqa: ARG002 - the form describes it
        progress: Progress = UNWATCHED,  # noqa: ARG002 - it takes a moment
    ) -> Answer:
        """Return an empty answer: plans are drawn from what was gathered."""
        return Answer("")


@dataclass(frozen=True, eq=False)
class CurrentPlan:
    """The plan under review."""

    #: The plan in the review file, with team names as this cohort spells them.
    plan: Plan
    #: How it was set up.
    setup: PlanSetup

    def items(self, held_up_to_px: int) -> PlanItems:
        """Ask which items it was drawn from; regions of more pixels are left out."""
        return PlanItems(
            settings=self.setup.settings,
            source=self.setup.source,
            held_up_to_px=held_up_to_px,
            teams=self.plan.teams,
            has_suspects=bool(self.plan.units.is_suspect.any()),
        )

    @property
    def goal(self) -> Goal:
        """The goal; F1 of the first team if the plan has none."""
        usual = Goal(Quantity.F1, self.plan.teams[:1], PRECISION, MINUTES, SECONDS)
        return self.setup.goal or usual


@dataclass(frozen=True, eq=False)
class PlanEstimates:
    """The estimates from the verdicts so far."""

    #: The figures; None before a verdict that decides an item.
    estimates: Estimates | None
    #: Half of the expected width of the interval after the last item.
    at_end: float


def estimated(
    plan: Plan, units: Units, answers: Sequence[ItemVerdict], goal: Goal
) -> PlanEstimates:
    """Estimate the figures and their expected precision at the end; for workers."""
    decides = any(answer.verdict is not Verdict.CANNOT_TELL for answer in answers)
    estimates = estimate(plan, units, answers) if decides else None
    return PlanEstimates(estimates, expected_half_width(goal, expected(plan, units, answers)))


def written(
    folder: Path,
    plan: Plan,
    found: Population,
    estimates: Estimates,
    answers: Sequence[ItemVerdict],
) -> list[Path]:
    """Write the files of a reviewed plan."""
    from napari_panoptic.report.nuclei.review import ReviewedPlan, write_reviewed_plan

    review = ReviewedPlan(plan, found.units, estimates)
    return write_reviewed_plan(folder, review, answers, found.findings)


def spelt(plan: Plan, cohort: Cohort) -> Plan:
    """Return a plan with the names of teams and regions in the cohort's spelling."""
    teams = {one_spelling(team.name): team.name for team in cohort.teams}
    regions = {one_spelling(region.name): region.name for region in cohort.regions}
    units = plan.units
    return replace(
        plan,
        units=replace(
            units, team=_renamed(units.team, teams), region=_renamed(units.region, regions)
        ),
    )


def _renamed(names: StrArray, spelt: Mapping[str, str]) -> StrArray:
    return np.array([*(spelt.get(name, name) for name in names), None], object)[:-1]
