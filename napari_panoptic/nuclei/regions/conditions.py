"""Conditions under which a cohort is evaluated, families of them, and how figures and ranks change.

A condition is a choice of settings, of the format of the predictions, and of a
shift of them.

Table 1 of Foucart, Debeir and Decaestecker (Pattern Recognition, 2023) has
restorations by matching rules; curves over a radius, a threshold or a shift are
read in the same way. A rank that changes between neighbouring conditions is no
property of the teams.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.averages import summarise_team
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.regions.shifts import NO_SHIFT, SHIFTS, Shift
from napari_panoptic.statistics.ranks import competition_ranks
from napari_panoptic.values.cohort import Source
from napari_panoptic.values.settings import (
    EvaluationSettings,
    Matching,
    Restoration,
)

RADII = tuple(range(-3, 6))
"""Px by which objects grow, or shrink where negative."""
THRESHOLDS: tuple[float, ...] = tuple(percent / 100 for percent in range(5, 100, 5))
"""From 0.05 to 0.95 in steps of 0.05."""
LESSONS_NEIGHBOURS = ((0, 1), (2, 3), (0, 2), (1, 3))
"""The sides of a 2 x 2 table whose four conditions are listed row by row."""


@dataclass(frozen=True)
class Condition:
    """One way to evaluate."""

    #: Unique among the conditions of an experiment.
    name: str
    #: How to restore, match and score.
    settings: EvaluationSettings
    #: Which format of the predictions; None for the usual one.
    source: Source | None = None
    #: By how many whole px the predictions are moved, (dy, dx): down and to the right where
    #: positive. What leaves the image is lost, and a prediction that leaves it wholly is no
    #: prediction any more.
    shift: Shift = NO_SHIFT

    def as_record(self) -> dict[str, Any]:
        """Return a plain dictionary, for JSON."""
        return {
            "name": self.name,
            "settings": self.settings.as_record(),
            "source": None if self.source is None else str(self.source),
            "shift": list(self.shift),
        }


# --- ready-made families ----------------------------------------------------------------------


def lessons_conditions(
    base: EvaluationSettings | None = None, *, source: Source | None = None
) -> tuple[Condition, ...]:
    """Return the four conditions of table 1 of Foucart et al. (Pattern Recognition, 2023).

    Two restorations by two matching rules, the rules of one restoration beside
    each other. Names are those of both, such as ``border-removed centroid``.

    Parameters
    ----------
    base
        All other settings; the defaults where None.
    source
        Which format of the predictions.
    """
    base = base or EvaluationSettings()
    return tuple(
        Condition(
            f"{restoration} {matching}",
            base.replaced(restoration=restoration, matching=matching),
            source,
        )
        for restoration in Restoration
        for matching in Matching
    )


def radius_conditions(
    radii: Iterable[int] = RADII,
    base: EvaluationSettings | None = None,
    *,
    source: Source | None = None,
) -> tuple[Condition, ...]:
    """Return a condition per radius in px by which objects grow, or shrink where negative."""
    base = (base or EvaluationSettings()).replaced(restoration=Restoration.BORDER_DILATED)
    return tuple(Condition(f"radius {r}", base.replaced(radius=r), source) for r in radii)


def threshold_conditions(
    thresholds: Iterable[float] = THRESHOLDS,
    base: EvaluationSettings | None = None,
    *,
    source: Source | None = None,
) -> tuple[Condition, ...]:
    """Return a condition per IoU that a pair must exceed to match."""
    base = (base or EvaluationSettings()).replaced(matching=Matching.STRICT_IOU)
    return tuple(
        Condition(f"IoU > {threshold:.2f}", base.replaced(iou_threshold=threshold), source)
        for threshold in thresholds
    )


def shift_conditions(
    shifts: Iterable[Shift] = SHIFTS,
    base: EvaluationSettings | None = None,
    *,
    source: Source | None = None,
) -> tuple[Condition, ...]:
    """Return a condition per shift in px: none first, then one pixel in eight directions."""
    settings = base or EvaluationSettings()
    return tuple(
        Condition(
            "no shift" if shift == NO_SHIFT else f"shift {shift[0]:+d} {shift[1]:+d}",
            settings,
            source,
            shift,
        )
        for shift in shifts
    )


# --- changes of figures and ranks --------------------------------------------------------------


@dataclass(frozen=True)
class RankChange:
    """A team whose rank differs between two neighbouring conditions."""

    #: The team.
    team: str
    #: The names of the two.
    conditions: tuple[str, str]
    #: Its rank by PQ under each; 1 for the best.
    ranks: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Robustness:
    """Teams in rows, conditions in columns."""

    #: T names and K names.
    teams: tuple[str, ...]
    conditions: tuple[str, ...]
    #: float64 (T, K): the mean over the patients for which the figure is defined; NaN if it is
    #: undefined for all.
    pq: NDArray[np.float64]
    sq: NDArray[np.float64]
    dq: NDArray[np.float64]
    #: int64 (T, K): patients with a PQ.
    n_patients: NDArray[np.int64]
    #: int64 (T, K): by PQ, 1 for the best; equal ones share a rank, and the ranks after it are left
    #: out. 0 without a PQ.
    ranks: NDArray[np.int64]
    #: Changes of a team's rank between neighbours; teams without a PQ under one of the two are left
    #: out.
    changes: tuple[RankChange, ...]


def robustness(
    counts: Mapping[str, Sequence[Sequence[tuple[str, Counts]]]],
    conditions: Sequence[str],
    class_names: tuple[str, ...],
    *,
    neighbours: Sequence[tuple[int, int]] | None = None,
) -> Robustness:
    """Compute PQ, SQ and DQ of teams under every condition, and the changes of ranks.

    Parameters
    ----------
    counts
        Team -> per condition ``(patient, counts)`` of its evaluated regions.
    conditions
        Their names.
    class_names
        The scored classes.
    neighbours
        Positions of conditions that differ by one step. Each with the next
        if None, as along a curve; the first with each other for shifts, and
        `LESSONS_NEIGHBOURS` for two restorations by two rules.
    """
    n = len(conditions)
    pairs = [(k, k + 1) for k in range(n - 1)] if neighbours is None else neighbours
    figures = {name: np.full((len(counts), n), np.nan) for name in ("pq", "sq", "dq")}
    n_patients = np.zeros((len(counts), n), np.int64)
    for row, by_condition in enumerate(counts.values()):
        for column, regions in enumerate(by_condition):
            averaged = summarise_team(regions, class_names).averaged
            n_patients[row, column] = averaged["pq"].n
            for name, values in figures.items():
                values[row, column] = averaged[name].mean
    ranks = competition_ranks(figures["pq"])
    teams = tuple(counts)
    return Robustness(
        teams=teams,
        conditions=tuple(conditions),
        **figures,
        n_patients=n_patients,
        ranks=ranks,
        changes=_changes(teams, tuple(conditions), ranks, pairs),
    )


def star(n: int) -> tuple[tuple[int, int], ...]:
    """Return the neighbours of shifts: the first condition with each of the others."""
    return tuple((0, k) for k in range(1, n))


def _changes(
    teams: Sequence[str],
    conditions: Sequence[str],
    ranks: NDArray[np.int64],
    neighbours: Sequence[tuple[int, int]],
) -> tuple[RankChange, ...]:
    found = []
    for one, other in neighbours:
        differ = (ranks[:, one] != ranks[:, other]) & (ranks[:, one] > 0) & (ranks[:, other] > 0)
        found += [
            RankChange(
                teams[row],
                (conditions[one], conditions[other]),
                (int(ranks[row, one]), int(ranks[row, other])),
            )
            for row in np.flatnonzero(differ).tolist()
        ]
    return tuple(found)
