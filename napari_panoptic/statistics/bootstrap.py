"""How sure a mean over patients is: bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
SEED = 0
LEVEL = 0.95
_DRAWN_AT_ONCE = 2**20
_ROUNDING = 1e-12


class IntervalMethod(StrEnum):
    """How the ends of an interval were found."""

    BCA = "bca"  # bias-corrected and accelerated
    PERCENTILE = "percentile"  # quantiles of the resampled means, where BCa is undefined
    UNDEFINED = "undefined"  # there is no interval


@dataclass(frozen=True)
class Interval:
    """A mean over patients, and its bootstrap interval.

    Parameters
    ----------
    n
        Patients with a figure.
    mean
        Over these patients; NaN without any.
    low, high
        Ends of the interval; NaN with fewer than two patients.
    method
        How they were found.
    why
        Why it is not BCa, in words; empty where it is.
    """

    n: int
    mean: float
    low: float
    high: float
    method: IntervalMethod
    why: str = ""


def mean_interval(
    figures: Sequence[float] | NDArray[np.float64],
    *,
    weights: Sequence[float] | NDArray[np.float64] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    unit: str = "patient",
) -> Interval:
    """Return a mean over patients with its bootstrap interval.

    Patients are drawn with replacement, as many as there are. The interval is
    BCa (Efron, JASA 1987; Efron and Tibshirani 1993, chapter 14): with z0 the
    normal quantile of the share of resampled means below the mean (those equal
    to it count half), and a = sum(d^3) / (6 sum(d^2)^(3/2)), d being the mean of
    the jackknife means minus each of them, its ends are the quantiles
    Phi(z0 + (z0 + z) / (1 - a (z0 + z))) of the resampled means, z being the
    normal quantiles of the level. Where that is undefined, the quantiles of the
    level are taken as they are.

    The same seed and number of patients give the same draws, so two metrics are
    resampled alike. A difference of teams is resampled paired by patient by
    giving the differences as figures.

    Parameters
    ----------
    figures
        One per patient; NaN where there is none: such patients are left out.
    weights
        With how much weight each patient enters the mean, such as the number of
        its regions for a mean over regions, resampled by patient; 1 where None.
        Patients of weight 0 are left out.
    level
        Share of resampled means inside the interval, between 0 and 1.
    resamples
        How often patients are drawn.
    seed
        Of the random numbers.
    unit
        What patients are called in reasons.

    Raises
    ------
    ValueError
        For a level or a number of resamples that cannot be.
    """
    if not 0 < level < 1 or resamples < 1:
        raise ValueError(
            "expected a level between 0 and 1 and at least one resample, "
            f"found {level} and {resamples}"
        )
    values = np.asarray(figures, np.float64)
    shares = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    used = ~np.isnan(values) & (shares > 0)
    values, shares = values[used], shares[used]
    n = len(values)
    if n == 0:
        nan = float("nan")
        return Interval(0, nan, nan, nan, IntervalMethod.UNDEFINED, f"no {unit} has a figure")
    mean = float((shares * values).sum() / shares.sum())
    if n == 1:
        nan = float("nan")
        why = f"an interval needs at least two {unit}s, found 1"
        return Interval(1, mean, nan, nan, IntervalMethod.UNDEFINED, why)
    if (np.abs(values - mean) <= _rounding(values)).all():
        why = f"all {n} figures are equal: the interval is a point"
        return Interval(n, mean, mean, mean, IntervalMethod.PERCENTILE, why)
    drawn = resampled_means(values, shares, resamples, seed)
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    corrected = _bca_tails(values, shares, mean, drawn, tails)
    low, high = np.quantile(drawn, tails if corrected is None else corrected)
    if corrected is None:
        why = "BCa is undefined: its correction is infinite"
        return Interval(n, mean, float(low), float(high), IntervalMethod.PERCENTILE, why)
    return Interval(n, mean, float(low), float(high), IntervalMethod.BCA)


def resampled_means(
    values: NDArray[np.float64], weights: NDArray[np.float64], resamples: int, seed: int
) -> NDArray[np.float64]:
    """Return the weighted means of patients drawn with replacement.

    Parameters
    ----------
    values, weights
        float64 (n,) without gaps; at least one.
    resamples, seed
        As in ``mean_interval``.

    Returns
    -------
    float64 (resamples,)
    """
    rng = np.random.default_rng(seed)
    n = len(values)
    weighted = weights * values
    means = np.empty(resamples)
    step = max(1, _DRAWN_AT_ONCE // n)  # bounded memory, however many patients
    for start in range(0, resamples, step):
        part = means[start : start + step]
        patients = rng.integers(0, n, (len(part), n))
        part[:] = weighted[patients].sum(axis=1) / weights[patients].sum(axis=1)
    return means


def _bca_tails(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    mean: float,
    drawn: NDArray[np.float64],
    tails: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """Correct the tails for bias and skewness; None where that is undefined."""
    from scipy.stats import norm  # takes longer than a window to open

    # A resample that holds each patient once may miss the mean by a rounding error.
    equal = np.abs(drawn - mean) <= _rounding(values)
    below = (drawn < mean) & ~equal
    share = (below.sum() + equal.sum() / 2) / len(drawn)
    if not 0 < share < 1:
        return None
    # By how much the mean falls when one patient is left out.
    fall = weights * (values - mean) / (weights.sum() - weights)
    deviation = fall - fall.mean()
    squares = float((deviation**2).sum())
    acceleration = float((deviation**3).sum()) / (6.0 * squares**1.5)
    z0 = norm.ppf(share)
    z = z0 + norm.ppf(tails)
    stretch = 1 - acceleration * z
    if (stretch <= 0).any():
        return None
    corrected: NDArray[np.float64] = norm.cdf(z0 + z / stretch)
    return corrected


def _rounding(values: NDArray[np.float64]) -> float:
    return _ROUNDING * float(np.abs(values).max())
