"""Quotients, means and standard deviations that treat undefined values alike."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Spread:
    """A figure over several units."""

    #: Number of units in which the figure is defined.
    n: int
    #: Over these units; sd is the sample standard deviation (n - 1). NaN without units, and for sd
    #: with fewer than two.
    mean: float
    sd: float
    median: float


def quotient(above: float, below: float) -> float:
    """Return a quotient; NaN if the denominator is 0."""
    return above / below if below else math.nan


def quotients(
    above: NDArray[Any], below: NDArray[Any], *, undefined: float = math.nan
) -> NDArray[np.float64]:
    """Divide arrays of one shape; `undefined` where the denominator is not positive."""
    found = np.full(np.shape(above), undefined)
    np.divide(above, below, out=found, where=np.greater(below, 0))
    return found


def means_defined(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return the means of the defined values along an axis; NaN where there are none."""
    return quotients(np.nansum(values, axis=axis), (~np.isnan(values)).sum(axis=axis))


def mean_defined(values: Iterable[float]) -> float:
    """Return the mean of the defined values, from an exactly rounded sum; NaN without any."""
    defined = _defined(values)
    return math.fsum(defined) / len(defined) if defined else math.nan


def sums_by_group(
    values: NDArray[np.float64], groups: NDArray[np.integer[Any]], n_groups: int
) -> NDArray[np.float64]:
    """Add numbers by group. Each sum is exact and rounded once, so that their order is irrelevant.

    Each number is split in two, a multiple of a power of 2 and the rest, both so short that
    sums of them are exact. Only if the sum is more than about 10¹⁵ / n times the smallest number
    are they added in ascending order instead, and rounded after each.

    Parameters
    ----------
    values
        Finite numbers (n,), none of them negative.
    groups
        The group of each, from 0 to `n_groups` - 1.
    """
    least = float(np.min(values, where=values > 0, initial=np.inf))
    if least == np.inf:
        return np.zeros(n_groups)
    unit = np.ldexp(np.spacing(least), 53 - len(values).bit_length())
    if not float(values.sum()) < unit * 2.0**52:
        order = np.argsort(values)
        return np.bincount(groups[order], values[order], n_groups).astype(np.float64)
    multiples = np.rint(values / unit) * unit
    sums = np.bincount(groups, multiples, n_groups).astype(np.float64)
    sums += np.bincount(groups, values - multiples, n_groups)
    return sums


def spread(values: Iterable[float]) -> Spread:
    """Compute mean, standard deviation and median of the defined values.

    Sums are exact and rounded once, at the end. So the mean of equal values is
    that value and their standard deviation is 0, which sums of rounded numbers
    miss by a rounding error, and the order of the values does not matter.
    """
    defined = _defined(values)
    return Spread(
        n=len(defined),
        mean=statistics.mean(defined) if defined else math.nan,
        sd=statistics.stdev(defined) if len(defined) > 1 else math.nan,
        median=statistics.median(defined) if defined else math.nan,
    )


def _defined(values: Iterable[float]) -> list[float]:
    return [float(value) for value in values if not math.isnan(value)]
