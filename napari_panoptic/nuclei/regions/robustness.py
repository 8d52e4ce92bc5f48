"""Robustness: how figures and ranks change with the conditions of an evaluation.

Table 1 of Foucart, Debeir and Decaestecker (Pattern Recognition, 2023) has
restorations by matching rules; curves over a radius, a threshold or a shift are
read in the same way. A rank that changes between neighbouring conditions is no
property of the teams.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.averages import summarise_team
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.statistics.ranks import competition_ranks

LESSONS_NEIGHBOURS = ((0, 1), (2, 3), (0, 2), (1, 3))
"""The sides of a 2 x 2 table whose four conditions are listed row by row."""


@dataclass(frozen=True)
class RankChange:
    """A team whose rank differs between two neighbouring conditions.

    Parameters
    ----------
    team
        The team.
    conditions
        The names of the two.
    ranks
        Its rank by PQ under each; 1 for the best.
    """

    team: str
    conditions: tuple[str, str]
    ranks: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Robustness:
    """Teams in rows, conditions in columns.

    Parameters
    ----------
    teams, conditions
        T names and K names.
    pq, sq, dq
        float64 (T, K): the mean over the patients for which the figure is
        defined; NaN if it is undefined for all.
    n_patients
        int64 (T, K): patients with a PQ.
    ranks
        int64 (T, K): by PQ, 1 for the best; equal ones share a rank, and the
        ranks after it are left out. 0 without a PQ.
    changes
        Changes of a team's rank between neighbours; teams without a PQ under one of
        the two are left out.
    """

    teams: tuple[str, ...]
    conditions: tuple[str, ...]
    pq: NDArray[np.float64]
    sq: NDArray[np.float64]
    dq: NDArray[np.float64]
    n_patients: NDArray[np.int64]
    ranks: NDArray[np.int64]
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


def star(n: int) -> tuple[tuple[int, int], ...]:
    """Return the neighbours of shifts: the first condition with each of the others."""
    return tuple((0, k) for k in range(1, n))
