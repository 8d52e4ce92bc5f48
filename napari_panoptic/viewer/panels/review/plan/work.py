"""Work of the plan panel in other threads, and the inputs of that work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

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
from napari_panoptic.viewer.jobs.jobs import Job

PRECISION, MINUTES, SECONDS = 0.05, 60, 20
"""The usual goal, with which the form starts."""


@dataclass(frozen=True)
class PopulationInputs:
    """The inputs of a population besides the files."""

    reading: Reading
    has_suspects: bool = False


@dataclass(frozen=True, eq=False)
class CurrentPlan:
    """The plan under review."""

    #: The plan in the review file, with team names as this cohort spells them.
    plan: Plan
    #: How it was set up.
    setup: PlanSetup

    def wanted(self, held_up_to_px: int) -> PopulationInputs:
        """Return the inputs of the population of the plan; regions of more pixels are left out."""
        units, setup = self.plan.units, self.setup
        has_suspects = bool(units.is_suspect.any())
        reading = Reading(setup.settings, setup.source, self.plan.teams, held_up_to_px)
        return PopulationInputs(reading, has_suspects)

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


def counted(cohort: Cohort, wanted: PopulationInputs, job: Job[Population]) -> Iterator[Population]:
    """Evaluate teams over the cohort; for workers."""
    found = population(cohort, wanted.reading, job.progress)
    if wanted.has_suspects:
        units = with_cohort_suspects(found.units, cohort, wanted.reading.source)
        found = replace(found, units=units)
    yield found


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
