"""Means and ranks that do not depend on the order of figures, nor on their rounding errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-12
"""Figures that are apart by at most this share of the largest differ by a rounding error."""


def mean_defined(values: Iterable[float]) -> float:
    """Average what is defined, from an exactly rounded sum; NaN where nothing is."""
    defined = [float(value) for value in values if not math.isnan(value)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def with_ties(
    values: NDArray[np.float64], *, scale: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Make figures equal that differ by no more than a rounding error.

    Neighbours in ascending order are tied where they are apart by at most
    `ROUNDING` of the largest figure; of figures that are tied so, the least
    stands for all. Unlike rounding to a number of digits, this never parts
    two figures that lie close to each other.

    Parameters
    ----------
    values
        float64, of any shape; NaN stays.
    scale
        The figures of which the largest counts, where these are not `values`:
        differences have the rounding errors of what was subtracted.
    """
    flat = values.ravel()
    sizes = np.abs(values if scale is None else scale)
    largest = sizes[~np.isnan(sizes)].max(initial=0.0)
    order = np.argsort(flat, kind="stable")  # NaN last
    is_new = np.diff(flat[order], prepend=-np.inf) > ROUNDING * largest
    first = np.maximum.accumulate(np.where(is_new, np.arange(len(flat)), 0))
    tied = np.empty_like(flat)
    tied[order] = flat[order][first]
    return np.where(np.isnan(values), np.nan, tied.reshape(values.shape))


def competition_ranks(scores: Sequence[float]) -> list[int | None]:
    """Rank scores: 1 + the number of better ones, as far as they differ; None for NaN.

    Scores that differ by no more than a rounding error are tied, see `with_ties`.
    """
    from scipy import stats  # takes longer than a window to open

    values = np.array(scores, np.float64)
    defined = ~np.isnan(values)
    ranks: list[int | None] = [None] * len(values)
    found = stats.rankdata(-with_ties(values[defined]), method="min").astype(int).tolist()
    for place, rank in zip(np.flatnonzero(defined).tolist(), found, strict=True):
        ranks[place] = rank
    return ranks
