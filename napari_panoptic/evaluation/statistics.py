"""Whether teams differ over patients: Friedman test, Nemenyi post-hoc, ranks with ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

SIGNIFICANCE = 0.05


@dataclass(frozen=True, eq=False)
class TeamComparison:
    """Teams compared over the same patients by one metric.

    Parameters
    ----------
    teams
        T names.
    n_patients
        Patients with a defined figure for every team: only these compare.
    mean_ranks
        float64 (T,): mean over patients of the team's rank, 1 for the best.
    friedman_p
        p-value of the Friedman test; NaN with fewer than three teams or two
        patients, for which the test is not defined.
    nemenyi_p
        float64 (T, T) of pairwise p-values, or None where the Friedman test
        finds no difference.
    ranks
        Final ranks; teams without a significant difference share one.
    """

    teams: tuple[str, ...]
    n_patients: int
    mean_ranks: NDArray[np.float64]
    friedman_p: float
    nemenyi_p: NDArray[np.float64] | None
    ranks: tuple[int, ...]


def compare_teams(
    figures: Mapping[str, Sequence[float]], *, higher_is_better: bool = True
) -> TeamComparison:
    """Compare teams by one metric over the same patients.

    The Friedman test asks whether any difference is there; only where it says
    so (p < 0.05) does the Nemenyi test say between which teams (Demsar,
    JMLR 2006).

    Parameters
    ----------
    figures
        Team -> one figure per patient, in the same order of patients for all;
        NaN where undefined. Such patients are left out for all teams.
    higher_is_better
        False for distances.
    """
    teams = tuple(figures)
    n_listed = max((len(values) for values in figures.values()), default=0)
    values = np.array(list(figures.values()), np.float64).reshape(len(teams), n_listed)
    values = values[:, ~np.isnan(values).any(axis=0)]
    n_patients = values.shape[1]
    ranked = stats.rankdata(-values if higher_is_better else values, axis=0)
    mean_ranks = ranked.mean(axis=1) if n_patients else np.full(len(teams), np.nan)
    friedman_p = _friedman(values)
    nemenyi_p = _nemenyi(mean_ranks, n_patients) if friedman_p < SIGNIFICANCE else None
    return TeamComparison(
        teams=teams,
        n_patients=n_patients,
        mean_ranks=mean_ranks,
        friedman_p=friedman_p,
        nemenyi_p=nemenyi_p,
        ranks=_shared_ranks(mean_ranks, nemenyi_p),
    )


def _friedman(values: NDArray[np.float64]) -> float:
    n_teams, n_patients = values.shape
    if n_teams < 3 or n_patients < 2:
        return float("nan")
    if (values == values[0]).all():
        return 1.0  # all ranks are tied: the statistic is 0 / 0, and nothing differs
    return float(stats.friedmanchisquare(*values).pvalue)


def _nemenyi(mean_ranks: NDArray[np.float64], n_patients: int) -> NDArray[np.float64]:
    n_teams = len(mean_ranks)
    difference = np.abs(mean_ranks[:, None] - mean_ranks[None, :])
    scale = np.sqrt(n_teams * (n_teams + 1) / (6.0 * n_patients))
    p: NDArray[np.float64] = stats.studentized_range.sf(
        difference / scale * np.sqrt(2.0), n_teams, np.inf
    )
    np.fill_diagonal(p, 1.0)
    return np.minimum(p, 1.0)


def _shared_ranks(
    mean_ranks: NDArray[np.float64], nemenyi_p: NDArray[np.float64] | None
) -> tuple[int, ...]:
    """Rank each team behind those that are significantly better than it."""
    n_teams = len(mean_ranks)
    if nemenyi_p is None:
        return (1,) * n_teams
    better = (mean_ranks[None, :] < mean_ranks[:, None]) & (nemenyi_p < SIGNIFICANCE)
    return tuple(int(count) + 1 for count in better.sum(axis=1))
