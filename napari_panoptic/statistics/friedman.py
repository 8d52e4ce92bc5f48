"""Whether teams differ over patients: Friedman test, Nemenyi post-hoc, ranks with ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import english_list
from napari_panoptic.statistics.ranks import with_ties

SIGNIFICANCE = 0.05


class MissingRule(StrEnum):
    """How a patient without a figure of some team is treated."""

    COMPLETE_CASES = "complete-cases"  # left out for all teams that are compared
    WORST = "worst"  # a missing figure counts as 0


@dataclass(frozen=True, eq=False)
class TeamFigures:
    """Figures of teams by one metric, and how they are compared over patients."""

    #: Team -> one figure per patient, in the same order of patients for all; NaN if undefined.
    by_team: Mapping[str, Sequence[float]]
    #: Their names; "1", "2", ... where None.
    patients: Sequence[str] | None = None
    #: Whether patients with a gap are left out, or the gap counts as the worst.
    missing: MissingRule = MissingRule.COMPLETE_CASES
    #: The values of gaps in that case, in the form of `by_team`; 0 if None. If a part of a mean is
    #: missing, it is the mean with 0 for that part.
    worst: Mapping[str, Sequence[float]] | None = None
    #: Whether higher figures are better; False for distances.
    higher_is_better: bool = True
    #: The word for a patient in reasons, such as ``case``.
    unit: str = "patient"

    def of(self, *teams: str) -> TeamFigures:
        """Return the figures of some of the teams."""
        worst = None if self.worst is None else {team: self.worst[team] for team in teams}
        return replace(self, by_team={team: self.by_team[team] for team in teams}, worst=worst)


@dataclass(frozen=True)
class Omission:
    """A patient who is left out of a comparison."""

    #: Name of the patient.
    patient: str
    #: The compared teams without a figure for this patient.
    teams: tuple[str, ...]
    #: Number of compared teams.
    of: int
    #: The word for a patient.
    unit: str = "patient"

    @property
    def reason(self) -> str:
        """The reason in words."""
        if len(self.teams) == self.of:
            return f"no team has a figure for {self.unit} {self.patient}"
        have = "has" if len(self.teams) == 1 else "have"
        return f"{english_list(self.teams)} {have} no figure for {self.unit} {self.patient}"


@dataclass(frozen=True, eq=False)
class PairedFigures:
    """Figures of teams over the same patients, each of them defined."""

    #: T names, and n names of the patients that compare.
    teams: tuple[str, ...]
    patients: tuple[str, ...]
    #: float64 (T, n).
    values: NDArray[np.float64]
    #: How gaps were treated.
    missing: MissingRule
    #: The patients that were left out.
    omitted: tuple[Omission, ...]
    #: ``(team, patient)`` of each missing figure that counts as the worst.
    counted_as_worst: tuple[tuple[str, str], ...]
    #: The word for a patient.
    unit: str = "patient"


@dataclass(frozen=True, eq=False)
class TeamComparison:
    """Teams compared over the same patients by one metric."""

    #: The compared figures, and the patients that were left out.
    figures: PairedFigures
    #: float64 (T,): mean over patients of the team's rank, 1 for the best; NaN without patients.
    mean_ranks: NDArray[np.float64]
    #: Statistic, corrected for ties, and p-value of the Friedman test; NaN if it is undefined.
    friedman_chi2: float
    friedman_p: float
    #: Kendall's W, the effect size of the Friedman test: 0 if patients rank the teams without any
    #: agreement, 1 if all rank them alike. NaN if the test is undefined.
    kendall_w: float
    #: float64 (T, T) of pairwise p-values, or None if the Friedman test finds no difference.
    nemenyi_p: NDArray[np.float64] | None
    #: Final ranks: 1 + the number of teams that are significantly better.
    ranks: tuple[int, ...]
    #: Why there is no Friedman test, in words; empty if there is one.
    why_undefined: str

    @property
    def teams(self) -> tuple[str, ...]:
        """The T names."""
        return self.figures.teams

    @property
    def n_patients(self) -> int:
        """Number of patients that compare."""
        return len(self.figures.patients)


@dataclass(frozen=True, eq=False)
class CriticalDifference:
    """The content of a critical-difference diagram (Demsar, JMLR 2006, figure 1)."""

    #: T names, the best mean rank first.
    teams: tuple[str, ...]
    #: float64 (T,), in this order.
    mean_ranks: NDArray[np.float64]
    #: Patients that the ranks are means over.
    n_patients: int
    #: Significance level.
    alpha: float
    #: Mean ranks further apart than this differ significantly; NaN where the Friedman test is
    #: undefined.
    difference: float
    #: Maximal runs of two or more teams among which no two differ significantly, the best first.
    #: All teams are one group where the Friedman test finds no difference; there is none if it is
    #: undefined.
    groups: tuple[tuple[str, ...], ...]
    #: Why, in words; empty if it is defined.
    why_undefined: str


def paired_figures(figures: TeamFigures) -> PairedFigures:
    """Find the patients over whom teams can be compared.

    A patient for whom no team has a figure is left out under either rule: there
    is nothing to compare.

    Raises
    ------
    ValueError
        If the teams have different numbers of figures, or infinite ones.
    SettingsError
        If a gap should count as 0 and 0 is the best.
    """
    fills_gaps = figures.missing is MissingRule.WORST
    if fills_gaps and not figures.higher_is_better:
        raise SettingsError(
            "missing figures can count as 0 only where 0 is the worst, "
            "found a metric for which lower is better; use complete-cases"
        )
    teams = tuple(figures.by_team)
    names, values = _as_matrix(figures.by_team, figures.patients)
    gaps = np.isnan(values)
    filled = np.zeros_like(gaps)
    if fills_gaps:
        at_worst = np.where(gaps.all(axis=0), np.nan, np.zeros_like(values))
        if figures.worst is not None:
            at_worst = _as_matrix(figures.worst, figures.patients)[1]
        filled = gaps & ~np.isnan(at_worst)
        values = np.where(filled, at_worst, values)
    left_out = np.isnan(values).any(axis=0)
    omitted = tuple(
        Omission(
            names[p], tuple(teams[t] for t in np.flatnonzero(gaps[:, p])), len(teams), figures.unit
        )
        for p in np.flatnonzero(left_out)
    )
    return PairedFigures(
        teams=teams,
        patients=tuple(names[p] for p in np.flatnonzero(~left_out)),
        values=values[:, ~left_out],
        missing=figures.missing,
        omitted=omitted,
        counted_as_worst=tuple((teams[t], names[p]) for t, p in np.argwhere(filled)),
        unit=figures.unit,
    )


def _as_matrix(
    figures: Mapping[str, Sequence[float]], patients: Sequence[str] | None
) -> tuple[list[str], NDArray[np.float64]]:
    lengths = {team: len(values) for team, values in figures.items()}
    n_listed = len(patients) if patients is not None else max(lengths.values(), default=0)
    for team, length in lengths.items():
        if length != n_listed:
            raise ValueError(
                f"expected one figure per patient, {n_listed} of each team, "
                f"found {length} of {team}; give NaN where undefined"
            )
    values = np.array(list(figures.values()), np.float64).reshape(len(lengths), n_listed)
    if np.isinf(values).any():
        raise ValueError("expected finite figures, found an infinite one; give NaN where undefined")
    names = [str(p + 1) for p in range(n_listed)] if patients is None else list(patients)
    return names, values


def compare_teams(figures: TeamFigures) -> TeamComparison:
    """Compare teams by one metric over the same patients.

    The Friedman test decides whether there is any difference; only if so
    (p < 0.05), the Nemenyi test decides between which teams (Demsar, JMLR 2006).
    Figures that differ by no more than a rounding error are tied, see `with_ties`.

    Returns
    -------
    TeamComparison
        Undefined, with the reason, for fewer than three teams or two patients,
        and where all teams have equal figures for each patient.

    Raises
    ------
    ValueError, SettingsError
        As ``paired_figures``.
    """
    from scipy import stats  # takes longer than a window to open

    paired = paired_figures(figures)
    values = with_ties(paired.values)
    n_teams, n_patients = values.shape
    ranked = stats.rankdata(-values if figures.higher_is_better else values, axis=0)
    mean_ranks = ranked.mean(axis=1) if n_patients else np.full(n_teams, np.nan)
    why_undefined = _why_undefined(values, figures.unit)
    chi2 = p = w = float("nan")
    if not why_undefined:
        test = stats.friedmanchisquare(*values)
        chi2, p = float(test.statistic), float(test.pvalue)
        w = chi2 / (n_patients * (n_teams - 1))
    nemenyi_p = _nemenyi(mean_ranks, n_patients) if p < SIGNIFICANCE else None
    return TeamComparison(
        figures=paired,
        mean_ranks=mean_ranks,
        friedman_chi2=chi2,
        friedman_p=p,
        kendall_w=w,
        nemenyi_p=nemenyi_p,
        ranks=_shared_ranks(mean_ranks, nemenyi_p),
        why_undefined=why_undefined,
    )


def critical_difference(comparison: TeamComparison) -> CriticalDifference:
    """Return the content of a critical-difference diagram at the level 0.05.

    The difference is q sqrt(k (k + 1) / (6 n)) for k teams and n patients, with
    q the 95th percentile of the studentised range of k means with infinitely
    many degrees of freedom, divided by sqrt 2 (Nemenyi 1963; Demsar 2006,
    table 5).
    """
    from scipy.stats import studentized_range

    order = np.argsort(comparison.mean_ranks, kind="stable")
    teams = tuple(comparison.teams[t] for t in order)
    difference, groups = float("nan"), []
    if not comparison.why_undefined:
        q = studentized_range.isf(SIGNIFICANCE, len(teams), np.inf) / np.sqrt(2.0)
        difference = float(q * _scale(len(teams), comparison.n_patients))
        groups = _maximal_groups(comparison.nemenyi_p, order)
    return CriticalDifference(
        teams=teams,
        mean_ranks=comparison.mean_ranks[order],
        n_patients=comparison.n_patients,
        alpha=SIGNIFICANCE,
        difference=difference,
        groups=tuple(teams[first:end] for first, end in groups),
        why_undefined=comparison.why_undefined,
    )


def _why_undefined(values: NDArray[np.float64], unit: str) -> str:
    n_teams, n_patients = values.shape
    if n_teams < 3:
        return f"the Friedman test needs at least three teams, found {n_teams}"
    if n_patients == 0:
        return f"no {unit} has a figure of every team"
    if n_patients < 2:
        return f"the Friedman test needs at least two {unit}s, found 1"
    if (values == values[0]).all():  # all ranks are tied: the statistic is 0 / 0
        return f"all teams have equal figures for each of the {n_patients} {unit}s"
    return ""


def _nemenyi(mean_ranks: NDArray[np.float64], n_patients: int) -> NDArray[np.float64]:
    from scipy.stats import studentized_range

    n_teams = len(mean_ranks)
    difference = np.abs(mean_ranks[:, None] - mean_ranks[None, :])
    p: NDArray[np.float64] = studentized_range.sf(
        difference / _scale(n_teams, n_patients) * np.sqrt(2.0), n_teams, np.inf
    )
    np.fill_diagonal(p, 1.0)
    return np.minimum(p, 1.0)


def _scale(n_teams: int, n_patients: int) -> float:
    """Return the standard error of the difference of two mean ranks."""
    return float(np.sqrt(n_teams * (n_teams + 1) / (6.0 * n_patients)))


def _shared_ranks(
    mean_ranks: NDArray[np.float64], nemenyi_p: NDArray[np.float64] | None
) -> tuple[int, ...]:
    """Rank each team behind those that are significantly better than it."""
    n_teams = len(mean_ranks)
    if nemenyi_p is None:
        return (1,) * n_teams
    better = (mean_ranks[None, :] < mean_ranks[:, None]) & (nemenyi_p < SIGNIFICANCE)
    return tuple(int(count) + 1 for count in better.sum(axis=1))


def _maximal_groups(
    nemenyi_p: NDArray[np.float64] | None, order: NDArray[np.intp]
) -> list[tuple[int, int]]:
    """Return first and end, in the order of mean ranks, of each group of two or more."""
    n_teams = len(order)
    if nemenyi_p is None:
        return [(0, n_teams)]
    groups: list[tuple[int, int]] = []
    for first in range(n_teams):
        # p decreases with the distance in rank: teams that do not differ from the first are a run.
        alike = nemenyi_p[order[first], order[first:]] >= SIGNIFICANCE
        end = first + int(alike.sum())
        if end - first > 1 and (not groups or end > groups[-1][1]):
            groups.append((first, end))
    return groups
