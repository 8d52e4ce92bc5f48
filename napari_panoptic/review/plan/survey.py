"""Stratified samples: allocation, variance of a total, and intervals of shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapify, heapreplace

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def allocation(
    sizes: Sequence[int] | IntArray,
    spreads: Sequence[float] | FloatArray,
    total: int,
    least: Sequence[int] | IntArray,
) -> IntArray:
    """Distribute a sample over strata so that the variance of the estimated total is smallest.

    Neyman's allocation in whole numbers: items are given one after the other to the stratum with
    the largest N_h S_h / sqrt(n_h (n_h + 1)) (Wright, The American Statistician 66, 2012,
    217-224). A larger total therefore takes nothing away from any stratum.

    Parameters
    ----------
    sizes
        Units N_h of each stratum (H,).
    spreads
        Standard deviation S_h of what is measured, known or guessed, positive.
    total
        Size of the sample; all units if there are fewer.
    least
        What each stratum gets at least, at most its size and at least 1 (0 if it is empty).

    Returns
    -------
    int64 (H,)
        Units to draw from each stratum.

    Raises
    ------
    ValueError
        If the least numbers exceed the total or a size.
    """
    size, drawn = np.asarray(sizes, np.int64), np.array(least, np.int64)
    if (drawn > size).any() or drawn.sum() > max(total, 0):
        raise ValueError(
            f"expected least numbers up to the sizes, and up to {total} together, found "
            f"{drawn.tolist()} of {size.tolist()}"
        )
    weight = size * np.asarray(spreads, np.float64)

    def entry(stratum: int) -> tuple[float, int]:
        n = int(drawn[stratum])
        if n == size[stratum]:
            return math.inf, stratum
        return -float(weight[stratum]) / math.sqrt(n * (n + 1)), stratum

    queue = [entry(stratum) for stratum in range(len(size))]
    heapify(queue)
    for _ in range(min(total, int(size.sum())) - int(drawn.sum())):
        stratum = queue[0][1]
        drawn[stratum] += 1
        heapreplace(queue, entry(stratum))
    return drawn


def variance_factors(sizes: IntArray | FloatArray, drawn: IntArray) -> FloatArray:
    """Return the factors by which the variances within strata add to that of an estimated total.

    V = sum over h of N_h² (1 - n_h / N_h) s_h² / n_h (Cochran, Sampling Techniques, 1977,
    equation 5.9): the factor is all but s_h². It is 0 for strata without drawn units.

    Parameters
    ----------
    sizes, drawn
        Units N_h, and drawn units n_h, of each stratum (H,).
    """
    factors = sizes.astype(np.float64) * (sizes - drawn) / np.maximum(drawn, 1)
    return np.where(drawn > 0, factors, 0.0)


def effective_df(parts: FloatArray, df: FloatArray) -> FloatArray:
    """Return the degrees of freedom of a sum of variances, at least 1.

    (sum V_h)² / sum (V_h² / df_h) (Satterthwaite, Biometrics Bulletin 2, 1946, 110-114); infinite
    if all variances are 0.

    Parameters
    ----------
    parts
        Variance of each stratum and variable (H, Q).
    df
        Degrees of freedom of each stratum (H,), positive.
    """
    below = (parts**2 / df[:, None]).sum(axis=0)
    above = parts.sum(axis=0) ** 2
    found = np.divide(above, below, out=np.full(len(below), np.inf), where=below > 0)
    result: FloatArray = np.maximum(found, 1.0)
    return result


def share_interval(
    share: FloatArray, variance: FloatArray, n: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the Wilson interval of shares that are estimated from a complex sample.

    The interval of Wilson (JASA 22, 1927, 209-212) for the effective number of items: those of a
    simple random sample with the same variance (Korn and Graubard, Survey Methodology 24, 1998,
    193-201; compared with other intervals by Franco et al., Journal of Survey Statistics and
    Methodology 7, 2019, 334-364). That number is p~ (1 - p~) / V with p~ = (n p + 1/2) / (n + 1),
    so that it is defined at 0 and 1.

    Parameters
    ----------
    share
        Estimates p, within 0 and 1; NaN if undefined.
    variance
        Their variances V; an interval is a point where this is 0.
    n
        Number of items behind each.
    z
        Quantile, of the normal or of a t distribution.
    """
    inner = (n * share + 0.5) / (n + 1)
    c = z**2 * variance / (inner * (1 - inner))
    middle = (share + c / 2) / (1 + c)
    half = np.sqrt(np.maximum(c * share * (1 - share) + c**2 / 4, 0.0)) / (1 + c)
    is_point = variance <= 0
    low = np.where(is_point, share, np.clip(middle - half, 0, share))
    high = np.where(is_point, share, np.clip(middle + half, share, 1))
    return low, high
