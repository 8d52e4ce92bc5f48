"""How a plan was set up: what is kept with it in the review file, so that it can be resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.records import decoded, encoded
from napari_panoptic.nuclei.values.cohort import Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.review.plan.goal import Goal


@dataclass(frozen=True)
class PlanSetup:
    """How the population of a plan was evaluated, and how it is reviewed.

    Parameters
    ----------
    goal
        What to find out; None if unknown.
    settings, source
        How to evaluate, and which format of the predictions; None for the default.
    is_shared
        Whether one verdict per item is enough, by any reviewer.
    is_blind
        Whether team and status are hidden from the reviewer.
    """

    goal: Goal | None = None
    settings: EvaluationSettings = field(default_factory=EvaluationSettings)
    source: Source | None = None
    is_shared: bool = False
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
