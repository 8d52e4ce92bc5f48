"""Bootstrap intervals of means over patients, and of rates over groups such as patients."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import nan

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.statistics.ranks import ROUNDING

RESAMPLES = 10_000
SEED = 0
LEVEL = 0.95
RATE_RESAMPLES = 2000
LEAST_GROUPS = 6
"""With fewer groups, bands of rates are Wilson's intervals."""
_DRAWN_AT_ONCE = 2**20
_DECIMALS = 12  # of values of at most 1; less is a rounding error


class IntervalMethod(StrEnum):
    """How the ends of an interval were computed."""

    BCA = "bca"  # bias-corrected and accelerated
    PERCENTILE = "percentile"  # quantiles of the resampled means, if BCa is undefined
    STUDENTISED = "studentised"  # t interval of figures that share one choice
    UNDEFINED = "undefined"  # there is no interval


@dataclass(frozen=True)
class Interval:
    """A mean over patients, and its bootstrap interval."""

    #: Number of patients with a figure.
    n: int
    #: Mean over these patients; NaN without any.
    mean: float
    #: Ends of the interval; NaN with fewer than two patients.
    low: float
    high: float
    #: How the ends were computed.
    method: IntervalMethod
    #: Why it is not BCa, in words; empty if it is.
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
    the BCa interval of `scipy.stats.bootstrap` (Efron, JASA 1987; Efron and
    Tibshirani 1993, chapter 14). If that is undefined, it is the percentile
    interval of the same resampled means.

    The same seed and number of patients give the same draws, so two metrics are
    resampled alike. To resample a difference between teams paired by patient,
    pass the differences as figures.

    Parameters
    ----------
    figures
        One per patient; NaN if undefined: such patients are left out.
    weights
        Weight of each patient in the mean, such as the number of its regions
        for a mean over regions, resampled by patient; 1 if None. Patients of
        weight 0 are left out.
    level
        Share of resampled means inside the interval, between 0 and 1.
    resamples
        Number of resamples.
    seed
        Seed of the random numbers (`numpy.random.default_rng`).
    unit
        The word for a patient in reasons.

    Raises
    ------
    ValueError
        For a level outside 0 to 1, or no resamples.
    """
    if not 0 < level < 1 or resamples < 1:
        raise ValueError(
            "expected a level between 0 and 1 and at least one resample, "
            f"found {level} and {resamples}"
        )
    values = np.asarray(figures, np.float64)
    shares = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    used = ~np.isnan(values) & (shares > 0)
    (found,) = _intervals(values[used][None], shares[used], level, resamples, seed, unit)
    return found


def mean_intervals(
    series: Sequence[NDArray[np.float64]],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    unit: str = "patient",
) -> list[Interval]:
    """Return the means of several series of figures with their bootstrap intervals.

    Each is that of `mean_interval`, but for rounding errors. Series of equal length have the same
    draws, and are resampled together, which is ten times as fast.

    Parameters
    ----------
    series
        Figures without NaN.
    resamples, seed, unit
        As in `mean_interval`.
    """
    found: dict[int, Interval] = {}
    for n in {len(figures) for figures in series}:
        rows = [row for row, figures in enumerate(series) if len(figures) == n]
        values = np.array([series[row] for row in rows], np.float64)
        intervals = _intervals(values, np.ones(n), LEVEL, resamples, seed, unit)
        found |= dict(zip(rows, intervals, strict=True))
    return [found[row] for row in range(len(series))]


@dataclass(frozen=True, eq=False)
class RateBands:
    """Bands of the rates of b bins, see `rate_bands`."""

    #: float64 (b,): NaN without objects.
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    #: Whether they are the wider of a bootstrap over groups and Wilson's intervals over objects;
    #: otherwise they are the latter.
    over_groups: bool


def rate_bands(
    events: NDArray[np.integer],
    objects: NDArray[np.integer],
    *,
    resamples: int = RATE_RESAMPLES,
) -> RateBands:
    """Return bands of the share of events in each of several bins.

    The band contains Wilson's interval (Journal of the American Statistical Association 22, 1927),
    which treats all objects as independent, and the rate itself. From six groups on, it is widened
    to the quantiles of resampled rates: groups are drawn with replacement, as many as there are
    (percentile bootstrap; resamples without an object in a bin do not count there). Alone, these
    have no width where all objects of a bin are of one group, or all of them are events.

    Parameters
    ----------
    events, objects
        (b, g): numbers in each bin and group.
    resamples
        Of the bootstrap.
    """
    tail = (1 - LEVEL) / 2
    n, k = objects.sum(axis=1), events.sum(axis=1)
    groups = objects.shape[1]
    low, high = _wilson(k, n, tail)
    if groups < LEAST_GROUPS:
        return RateBands(low, high, over_groups=False)
    rng = np.random.default_rng(SEED)
    drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=resamples).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = (drawn @ events.T) / (drawn @ objects.T)
    used = n > 0
    lowest, highest = np.nanquantile(rates[:, used], [tail, 1 - tail], axis=0)
    low[used], high[used] = np.minimum(low[used], lowest), np.maximum(high[used], highest)
    return RateBands(low, high, over_groups=True)


def _intervals(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    level: float,
    resamples: int,
    seed: int,
    unit: str,
) -> list[Interval]:
    """Return the interval of each row of values (k, n), whose columns have weights (n,)."""
    n = values.shape[1]
    if n == 0:
        why = f"no {unit} has a figure"
        return [Interval(0, nan, nan, nan, IntervalMethod.UNDEFINED, why) for _ in values]
    means = [float((weights * row).sum() / weights.sum()) for row in values]
    if n == 1:
        why = f"an interval needs at least two {unit}s, found 1"
        return [Interval(1, mean, nan, nan, IntervalMethod.UNDEFINED, why) for mean in means]
    why = f"all {n} figures are equal: the interval is a point"
    found = [Interval(n, mean, mean, mean, IntervalMethod.PERCENTILE, why) for mean in means]
    largest = np.abs(values).max(axis=1, keepdims=True)
    apart = np.abs(values - np.array(means)[:, None])
    differs = ~(apart <= ROUNDING * largest).all(axis=1)
    if not differs.any():
        return found
    scaled = values[differs] / largest[differs]
    low, high, is_bca = _ends(scaled, weights, level, resamples, seed)
    why = "BCa is undefined: its correction is infinite"
    for place, row in enumerate(np.flatnonzero(differs).tolist()):
        ends = float(low[place] * largest[row, 0]), float(high[place] * largest[row, 0])
        how = (IntervalMethod.BCA, "") if is_bca[place] else (IntervalMethod.PERCENTILE, why)
        found[row] = Interval(n, means[row], *ends, *how)
    return found


def _ends(
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
    level: float,
    resamples: int,
    seed: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return both ends of the interval of each row, and whether they are BCa.

    Values (k, n) are at most 1 in size; the columns have weights (n,).
    """
    from scipy import stats  # takes longer than a window to open

    data = values, np.broadcast_to(weights, values.shape)
    if len(values) == 1:  # rounding errors are those of one dimension
        data = values[0], weights

    def weighted_mean(
        values: NDArray[np.float64], weights: NDArray[np.float64], axis: int = -1
    ) -> NDArray[np.float64]:
        means = (weights * values).sum(axis) / weights.sum(axis)
        # Resamples of the same patients in another order have the same mean.
        rounded: NDArray[np.float64] = np.round(means, _DECIMALS)
        return rounded

    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore")  # the caller learns that BCa is undefined
        found = stats.bootstrap(
            data,
            weighted_mean,
            paired=True,
            axis=-1,
            n_resamples=resamples,
            batch=max(1, _DRAWN_AT_ONCE // values.size),  # limits the memory
            confidence_level=level,
            method="BCa",
            rng=np.random.default_rng(seed),
        )
    low, high = np.reshape(found.confidence_interval, (2, -1))
    is_bca: NDArray[np.bool_] = ~(np.isnan(low) | np.isnan(high))
    drawn = np.atleast_2d(found.bootstrap_distribution)[~is_bca]
    tail = (1 - level) / 2
    low[~is_bca], high[~is_bca] = np.quantile(drawn, [tail, 1 - tail], axis=-1)
    return low, high, is_bca


def _wilson(
    k: NDArray[np.integer], n: NDArray[np.integer], tail: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from scipy.stats import norm

    z = norm.isf(tail)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (k + z**2 / 2) / (n + z**2)
        half = z / (n + z**2) * np.sqrt(k * (n - k) / n + z**2 / 4)
        rate = k / n  # NaN without objects, as are the ends
    return np.clip(centre - half, 0, rate), np.clip(centre + half, rate, 1)
