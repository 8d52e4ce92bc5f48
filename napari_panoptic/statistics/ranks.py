"""Ranks that depend neither on the order of figures nor on their rounding errors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROUNDING = 1e-12
"""Figures that differ by at most this share of the largest one differ by a rounding error."""


def with_ties(
    values: NDArray[np.float64], *, scale: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Make figures equal that differ by no more than a rounding error.

    Neighbours in ascending order are tied if they differ by at most `ROUNDING`
    of the largest figure; the smallest of the tied figures replaces them all.
    Unlike rounding to a number of digits, this never separates two figures that
    lie close to each other.

    Parameters
    ----------
    values
        float64, of any shape; NaN stays.
    scale
        The figures whose largest value is the yardstick, if not `values`:
        differences have the rounding errors of the numbers subtracted.
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


def competition_ranks(scores: ArrayLike) -> NDArray[np.int64]:
    """Rank scores, the highest first: 1 + the number of higher ones.

    Scores that differ by no more than a rounding error share a rank, see
    `with_ties`; the ranks after it are left out.

    Parameters
    ----------
    scores
        float64 (T,), or (T, P) to rank the rows of each column; NaN where undefined.

    Returns
    -------
    int64, of the same shape; 0 where undefined.
    """
    values = np.asarray(scores, np.float64)
    tied = np.empty_like(values)
    for place in np.ndindex(values.shape[1:]):
        tied[:, *place] = with_ties(values[:, *place])
    higher = (tied[None, :] > tied[:, None]).sum(axis=1)
    return np.where(np.isnan(tied), 0, higher + 1).astype(np.int64)


def ranked_teams(figures: Mapping[str, float]) -> dict[str, int]:
    """Return team -> `competition_ranks` of its figure, without the undefined ones."""
    ranks = competition_ranks(list(figures.values())).tolist()
    return {team: rank for team, rank in zip(figures, ranks, strict=True) if rank}
