"""Many overlapping sets of objects, tested at once for more failures than expected by chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.progress import UNWATCHED, Progress

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

PERMUTATIONS = 1000
SEED = 0
_AT_ONCE = 50
# Of equal sums that are added in another order; statistics are at most some hundreds.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SetFamily:
    """Sets of objects, each a union of cells that the objects are counted in."""

    #: int32 (n, k): the k cells in which each object lies, one of each of k partitions. Those of a
    #: partition are numbered one after the other.
    cells: NDArray[np.int32]
    #: (m, cells) of 0 and 1: the cells of each set, all of the same partition.
    members: csr_array

    def __len__(self) -> int:
        """Count the sets."""
        return int(self.members.shape[0])

    def counts(self, rows: IntArray) -> IntArray:
        """Return int64 (m,): how many of some objects are in each set."""
        return np.asarray(self.members @ self.in_cells(rows))

    def in_cells(self, rows: IntArray) -> IntArray:
        """Return int64 (cells,): how many of some objects are in each cell."""
        return np.bincount(self.cells[rows].ravel(), minlength=self.members.shape[1])

    def part(self, rows: IntArray, sets: IntArray) -> SetFamily:
        """Return some of the sets, of some of the objects."""
        return SetFamily(self.cells[rows], self.members[sets])

    def without_unused(self) -> SetFamily:
        """Leave out the partitions of which no set is made, which take time to count."""
        if not self.cells.size:
            return self
        used = np.unique(self.members.indices)
        # The cells of a partition are numbered one after the other.
        first, last = self.cells.min(axis=0), self.cells.max(axis=0)
        kept = np.searchsorted(used, last, side="right") > np.searchsorted(used, first)
        return SetFamily(self.cells[:, kept], self.members)


@dataclass(frozen=True, eq=False)
class MaxT:
    """Sets tested together."""

    #: float64 (m,): the statistic of each set; NaN where no set of its sizes could differ.
    z: FloatArray
    #: float64 (m,): family-wise p-value, one-sided; 1 where z is NaN.
    p: FloatArray


def stratified_z(family: SetFamily, is_failure: BoolArray, strata: IntArray) -> FloatArray:
    """Return the Mantel-Haenszel statistic of each set, stratified, without correction.

    In stratum k with n objects, m of them failures, a set with s objects has the number of
    failures of a hypergeometric distribution if nothing but chance assigns them: its mean is
    s m / n and its variance s (n - s) m (n - m) / (n² (n - 1)). The statistic is the number of
    failures in the set minus the sum of the means, divided by the root of the sum of the
    variances (Mantel and Haenszel, Journal of the National Cancer Institute 22, 1959).

    Parameters
    ----------
    family
        The sets.
    is_failure
        bool (n,): of each object.
    strata
        int64 (n,): of each object; any numbers.

    Returns
    -------
    float64 (m,)
        Positive where a set fails more than its strata; NaN where the variance is 0.
    """
    expected, variance = _moments(family, is_failure, strata)
    return _z(family.counts(np.flatnonzero(is_failure)), expected, variance)


def set_z(inside: BoolArray, is_failure: BoolArray, strata: IntArray) -> float:
    """Return the statistic of `stratified_z` for one set.

    Parameters
    ----------
    inside
        bool (n,): which objects are in the set.
    is_failure, strata
        As in `stratified_z`.

    Returns
    -------
    float
        NaN where the variance is 0: then the set cannot differ from its strata.
    """
    _, place = np.unique(strata, return_inverse=True)
    n = np.bincount(place)
    m, s = np.bincount(place, weights=is_failure), np.bincount(place, weights=inside)
    found = np.count_nonzero(inside & is_failure)
    variance = (s * (n - s) * m * (n - m) / (n**2 * np.maximum(n - 1, 1))).sum()
    return float((found - (s * m / n).sum()) / np.sqrt(variance)) if variance > 0 else np.nan


def max_t(
    family: SetFamily,
    is_failure: BoolArray,
    strata: IntArray,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = SEED,
    progress: Progress = UNWATCHED,
) -> MaxT:
    """Test all sets for more failures than their strata have, with family-wise p-values.

    The failures of each stratum are assigned to its objects at random again and again, and the
    largest statistic of all sets is noted (Westfall and Young, Resampling-based multiple
    testing, 1993: single step). The p-value of a set is the share of these assignments, and of
    the one that was found, whose largest statistic is at least that of the set. Sets overlap
    in the assignments as they do in the data, so that nested ones cost little.

    Parameters
    ----------
    family, is_failure, strata
        As in `stratified_z`.
    permutations
        Number of assignments: the least p-value is 1 / (permutations + 1).
    seed
        Of the random numbers (`numpy.random.default_rng`).
    progress
        Checked for cancellation, and told the share of assignments done.

    Raises
    ------
    StoppedError
        If cancelled.
    """
    expected, variance = _moments(family, is_failure, strata)
    found = _z(family.counts(np.flatnonzero(is_failure)), expected, variance)
    testable = np.flatnonzero(~np.isnan(found))
    p = np.ones(len(found))
    if not len(testable):
        return MaxT(found, p)
    # What is the same in every assignment takes no part.
    rows = _informative(is_failure, strata)
    tested = family.part(rows, testable).without_unused()
    # Objects of other strata count in all assignments alike.
    fixed = np.setdiff1d(np.flatnonzero(is_failure), rows, assume_unique=True)
    always = family.part(fixed, testable).counts(np.arange(len(fixed)))
    highest = np.empty(permutations)
    draws = _assignments(is_failure[rows], strata[rows], np.random.default_rng(seed))
    for start in range(0, permutations, _AT_ONCE):
        progress.check()
        stop = min(start + _AT_ONCE, permutations)
        cells = np.stack([tested.in_cells(next(draws)) for _ in range(start, stop)], axis=1)
        z = _z(
            tested.members @ cells + always[:, None],
            expected[testable, None],
            variance[testable, None],
        )
        highest[start:stop] = z.max(axis=0)
        progress.tell(stop / permutations, "testing slices")
    below = np.searchsorted(np.sort(highest), found[testable] - _ROUNDING)
    p[testable] = (1 + permutations - below) / (1 + permutations)
    return MaxT(found, p)


def _z(counts: NDArray[np.number], expected: FloatArray, variance: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        z: FloatArray = np.where(variance > 0, (counts - expected) / np.sqrt(variance), np.nan)
    return z


def _moments(
    family: SetFamily, is_failure: BoolArray, strata: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the number of failures in each set."""
    expected, variance = np.zeros((2, len(family)))
    order = np.argsort(strata, kind="stable")
    starts = np.flatnonzero(np.diff(strata[order])) + 1
    for rows in np.split(order, starts):
        n, m = len(rows), int(is_failure[rows].sum())
        if not m:
            continue
        sizes = family.counts(rows)
        expected += sizes * (m / n)
        if m < n:
            variance += sizes * (n - sizes) * (m * (n - m) / (n**2 * (n - 1)))
    return expected, variance


def _informative(is_failure: BoolArray, strata: IntArray) -> IntArray:
    """Return the objects of strata that have failures and others."""
    _, place = np.unique(strata, return_inverse=True)
    n, m = np.bincount(place), np.bincount(place, weights=is_failure)
    return np.flatnonzero(((m > 0) & (m < n))[place])


def _assignments(
    is_failure: BoolArray, strata: IntArray, rng: np.random.Generator
) -> Iterator[IntArray]:
    """Yield the objects that fail if failures are assigned at random within strata."""
    _, place = np.unique(strata, return_inverse=True)
    n, m = np.bincount(place), np.bincount(place, weights=is_failure).astype(np.int64)
    # Sorted by stratum, the first m of the n objects of each stratum fail.
    within = np.arange(len(place)) - np.repeat(np.cumsum(n) - n, n)
    fail = np.flatnonzero(within < np.repeat(m, n))
    while True:
        yield np.argsort(place + rng.random(len(place)))[fail]
