"""What a planned review is to find out, how precisely, and in what time; and the plan for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.records import decoded, encoded
from napari_panoptic.review.plan.conclusions import difference
from napari_panoptic.review.plan.corrected import ALL, Quantity
from napari_panoptic.review.plan.design import Plan, draw, least_items
from napari_panoptic.review.plan.estimates import Estimates, Expected, expected, items_needed
from napari_panoptic.review.plan.units import Units
from napari_panoptic.values.cohort import Source
from napari_panoptic.values.settings import EvaluationSettings


@dataclass(frozen=True)
class Goal:
    """What a planned review is to find out."""

    #: The figure of interest, over all classes.
    quantity: Quantity
    #: The team; two teams for the difference of their figures.
    teams: tuple[str, ...]
    #: Half of the width that the 95 % interval is to have, above 0.
    half_width: float
    #: The time available, above 0.
    minutes: float
    #: How long a verdict takes, above 0.
    seconds_per_item: float

    def __post_init__(self) -> None:
        """Check the numbers and the number of teams."""
        numbers = (self.half_width, self.minutes, self.seconds_per_item)
        if not all(math.isfinite(number) and number > 0 for number in numbers):
            raise SettingsError("expected a precision, a time and seconds per item above 0")
        if len(set(self.teams)) != len(self.teams) or len(self.teams) not in (1, 2):
            raise SettingsError("expected one team, or two teams to compare; choose another team")

    @property
    def affordable(self) -> int:
        """Number of items that can be reviewed in the time."""
        return int(60 * self.minutes // self.seconds_per_item)


@dataclass(frozen=True)
class EstimateInterval:
    """An estimate with its 95 % interval; NaN if undefined."""

    estimate: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, eq=False)
class Offer:
    """The plan that a goal leads to."""

    #: The smallest plan that is precise enough, or as many items as the time allows, or as wanted.
    plan: Plan
    #: Items that are needed for the precision.
    needed: int
    #: Items that any plan needs: some for each outcome of each team.
    least: int
    #: Half of the expected width of the interval with this plan; NaN if undefined.
    half_width: float
    #: Whether the plan has all items of its teams.
    has_all: bool


def offer(units: Units, goal: Goal, seed: int, items: int | None = None) -> Offer:
    """Draw the plan for a goal.

    Parameters
    ----------
    units
        The population of the teams.
    goal
        What to find out.
    seed
        The seed of the plan.
    items
        The number of items, if it does not follow from precision and time. Not less than any plan
        needs.

    Raises
    ------
    SettingsError
        If there is nothing to review.
    """
    # The intervals of two independent figures, each this wide, give the difference the width.
    own_width = goal.half_width / math.sqrt(len(goal.teams))
    needed = items_needed(units, goal.quantity, own_width, seed=seed)
    least = least_items(units)
    wanted = min(needed, goal.affordable) if items is None else items
    plan = draw(units, max(least, wanted), seed)
    half_width = expected_half_width(goal, expected(plan, units))
    return Offer(plan, needed, least, half_width, len(plan) == len(units))


def expected_half_width(goal: Goal, rows: tuple[Expected, ...]) -> float:
    """Return half of the expected width of the interval that a goal asks for.

    Parameters
    ----------
    goal
        What to find out.
    rows
        What is expected of the figures of its teams.
    """
    widths = [
        row.half_width
        for row in rows
        if (row.quantity, row.class_name) == (goal.quantity, ALL) and row.team in goal.teams
    ]
    return math.hypot(*widths) if len(widths) == len(goal.teams) else math.nan


def reached(goal: Goal, estimates: Estimates) -> EstimateInterval:
    """Return the figure, or the difference, that a goal asks for, as far as it is reviewed.

    Parameters
    ----------
    goal
        What to find out.
    estimates
        Of its teams.
    """
    if len(goal.teams) == 2:
        found = difference(estimates, goal.quantity, *goal.teams)
        return EstimateInterval(found.estimate, found.low, found.high)
    for row in estimates.rows:
        if (row.quantity, row.team, row.class_name) == (goal.quantity, goal.teams[0], ALL):
            return EstimateInterval(row.estimate, row.low, row.high)
    return EstimateInterval(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class PlanSetup:
    """How the population of a plan was evaluated, and how it is reviewed."""

    #: What to find out; None if unknown.
    goal: Goal | None = None
    #: How to evaluate, and which format of the predictions; None for the default.
    settings: EvaluationSettings = field(default_factory=EvaluationSettings)
    source: Source | None = None
    #: Whether one verdict per item is enough, by any reviewer.
    is_shared: bool = False
    #: Whether team and status are hidden from the reviewer.
    is_blind: bool = False

    def as_record(self) -> dict[str, Any]:
        """Return a plain dictionary, for JSON."""
        return {
            "goal": encoded(self.goal),
            "evaluation": self.settings.as_record(),
            "source": None if self.source is None else str(self.source),
            "is_shared": self.is_shared,
            "is_blind": self.is_blind,
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> PlanSetup:
        """Return the setup that `as_record` made a dictionary of; defaults for what is missing.

        Raises
        ------
        PanopticError
            If it cannot be understood.
        """
        try:
            source, goal = record.get("source"), record.get("goal")
            return cls(
                None if goal is None else decoded(Goal, goal),
                EvaluationSettings(**record.get("evaluation", {})),
                None if source is None else Source(source),
                bool(record.get("is_shared", False)),
                bool(record.get("is_blind", False)),
            )
        except (TypeError, ValueError, LookupError) as error:
            raise PanopticError(
                f"the settings of the plan cannot be understood ({error}); they were changed by "
                f"another program: draw a new plan"
            ) from error
