"""Rates in bins, with bands that respect groups such as patients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
RESAMPLES = 2000
SEED = 0
LEAST_GROUPS = 6


@dataclass(frozen=True, eq=False)
class RateBands:
    """Bands of rates.

    Parameters
    ----------
    low, high
        float64 (b,): NaN without objects.
    over_groups
        Whether they are bootstrapped over groups; otherwise Wilson's intervals over objects.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    over_groups: bool


def rate_bands(
    events: NDArray[np.integer],
    objects: NDArray[np.integer],
    *,
    resamples: int = RESAMPLES,
) -> RateBands:
    """Return bands of the share of events in each of several bins.

    Groups are drawn with replacement, as many as there are, and the band is between quantiles of
    the resampled rates (percentile bootstrap; resamples without an object in a bin do not
    count there). Fewer than six groups cannot tell how much groups differ: then the band is
    Wilson's interval (Journal of the American Statistical Association 22, 1927), which treats
    all objects as independent.

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
    if groups < LEAST_GROUPS:
        low, high = _wilson(k, n, tail)
        return RateBands(low, high, over_groups=False)
    rng = np.random.default_rng(SEED)
    drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=resamples).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = (drawn @ events.T) / (drawn @ objects.T)
    low, high = np.full((2, len(n)), np.nan)
    used = n > 0
    low[used], high[used] = np.nanquantile(rates[:, used], [tail, 1 - tail], axis=0)
    return RateBands(low, high, over_groups=True)


def _wilson(
    k: NDArray[np.integer], n: NDArray[np.integer], tail: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from scipy.stats import norm

    z = norm.isf(tail)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (k + z**2 / 2) / (n + z**2)
        half = z / (n + z**2) * np.sqrt(k * (n - k) / n + z**2 / 4)
    low = np.where(n > 0, np.clip(centre - half, 0, 1), np.nan)
    high = np.where(n > 0, np.clip(centre + half, 0, 1), np.nan)
    return low, high
