"""Compare teams in pairs: difference, interval and p-value."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.statistics.bootstrap import RESAMPLES, SEED, Interval, mean_intervals
from napari_panoptic.statistics.friedman import (
    PairedFigures,
    TeamFigures,
    paired_figures,
)
from napari_panoptic.statistics.ranks import with_ties

_MOST_EXACT = 200


@dataclass(frozen=True, eq=False)
class PairComparison:
    """Two teams compared by one metric over the patients that have figures of both."""

    #: The teams.
    first: str
    second: str
    #: The compared figures, and the patients that were left out.
    figures: PairedFigures
    #: Mean over patients of the first team's figure minus the second's, with its bootstrap
    #: interval, paired by patient.
    difference: Interval
    #: Matched-pairs rank-biserial correlation: 1 where the first team has the higher figure for
    #: every patient, -1 where the second has; NaN where undefined.
    rank_biserial: float
    #: Two-sided p-value of the Wilcoxon signed-rank test; NaN where undefined.
    wilcoxon_p: float
    #: The same after Holm's correction over all pairs with a p-value.
    holm_p: float
    #: Why there is neither correlation nor test, in words; empty where there are.
    why_undefined: str

    @property
    def n_patients(self) -> int:
        """Number of patients that compare."""
        return len(self.figures.patients)


def compare_pairs(
    figures: TeamFigures,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[PairComparison, ...]:
    """Compare every pair of teams.

    Each pair is compared over its own patients: a gap of a third team leaves
    no patient out.

    Parameters
    ----------
    figures
        The figures of the teams.
    resamples, seed
        As in `mean_intervals`.

    Returns
    -------
    tuple of PairComparison
        In the order of teams; empty for fewer than two.

    Raises
    ------
    ValueError, SettingsError
        As in `paired_figures`.
    """
    paired = [
        paired_figures(figures.of(first, second))
        for first, second in itertools.combinations(figures.by_team, 2)
    ]
    intervals = mean_intervals(
        [both.values[0] - both.values[1] for both in paired],
        resamples=resamples,
        seed=seed,
        unit=figures.unit,
    )
    pairs = [_compare(both, own) for both, own in zip(paired, intervals, strict=True)]
    corrected = holm([pair.wilcoxon_p for pair in pairs])
    return tuple(replace(pair, holm_p=p) for pair, p in zip(pairs, corrected, strict=True))


def _compare(paired: PairedFigures, difference: Interval) -> PairComparison:
    first, second = paired.teams
    apart = paired.values[0] - paired.values[1]
    # Equal differences may differ by a rounding error; they have to tie, by size.
    sizes = with_ties(np.append(np.abs(apart), 0.0), scale=paired.values)[:-1]
    ranked = np.copysign(sizes, apart)
    rank_biserial, p = signed_ranks(ranked)
    return PairComparison(
        first=first,
        second=second,
        figures=paired,
        difference=difference,
        rank_biserial=rank_biserial,
        wilcoxon_p=p,
        holm_p=p,
        why_undefined=_why_undefined(ranked, paired.unit),
    )


def _why_undefined(apart: NDArray[np.float64], unit: str) -> str:
    if len(apart) == 0:
        return f"no {unit} has a figure of both teams"
    if not apart.any():
        return f"both teams have equal figures for each of the {len(apart)} {unit}s"
    return ""


def signed_ranks(apart: NDArray[np.float64]) -> tuple[float, float]:
    """Return the matched-pairs rank-biserial correlation and the Wilcoxon p-value.

    Differences of 0 are left out; the others are ranked by their size, equal
    ones sharing the mean of their ranks. With W+ and W- the sums of ranks of
    positive and negative differences, the correlation is
    (W+ - W-) / (W+ + W-) (Kerby, Comprehensive Psychology 2014). The two-sided
    p-value of W+ is exact, given the ties, up to 200 differences, and from the
    normal approximation with correction for ties above.

    Parameters
    ----------
    apart
        float64 (n,): difference per patient.

    Returns
    -------
    correlation, p
        NaN if all differences are 0.
    """
    from scipy import stats  # takes longer than a window to open

    apart = apart[apart != 0]
    if len(apart) == 0:
        return float("nan"), float("nan")
    ranks = stats.rankdata(np.abs(apart))
    upper, total = float(ranks[apart > 0].sum()), float(ranks.sum())
    correlation = (2 * upper - total) / total
    if len(apart) > _MOST_EXACT:
        z = (upper - total / 2) / np.sqrt((ranks**2).sum() / 4)
        return correlation, float(2 * stats.norm.sf(abs(z)))
    return correlation, _exact_p(ranks, upper)


def _exact_p(ranks: NDArray[np.float64], upper: float) -> float:
    """Return the exact two-sided p-value of W+ under random signs."""
    doubled = np.rint(2 * ranks).astype(np.int64)  # shared ranks are halves
    chance = np.zeros(int(doubled.sum()) + 1)
    chance[0] = 1.0
    for rank in doubled:
        with_it = np.zeros_like(chance)
        with_it[rank:] = chance[:-rank]
        chance = (chance + with_it) / 2
    found = round(2 * upper)
    tail = min(chance[: found + 1].sum(), chance[found:].sum())
    return float(min(1.0, 2 * tail))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number (Holm, Scandinavian Journal of Statistics 1979).

    The i-th smallest of m is multiplied by m - i + 1, and is at least as large
    as those before it. NaN stays, and does not count.
    """
    corrected = np.array(p_values, np.float64)
    order = np.argsort(corrected, kind="stable")[: int((~np.isnan(corrected)).sum())]
    factors = np.arange(len(order), 0, -1)
    raised = np.maximum.accumulate(corrected[order] * factors)
    corrected[order] = np.minimum(1.0, raised)
    return [float(p) for p in corrected]
