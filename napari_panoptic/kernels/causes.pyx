"""Why objects are unmatched: the first rule that applies to each.

Compiled, since NumPy takes 0.1 ms of the 0.4 ms that a stroke may take with 800
objects, and 0.9 of 3 ms with 25,000 (`benchmarks.run --stages stroke`).
"""

from typing import NamedTuple

import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from napari_panoptic.kernels._border cimport expect

# Positions in `napari_panoptic.values.vocabulary.CAUSES`.
cdef enum:
    none, ambiguous_spill, split, merged, fragment, merger, duplicate
    too_small, too_large, displaced, missed, spurious

AMBIGUOUS_SPILL, SPLIT, MERGED = ambiguous_spill, split, merged
FRAGMENT, MERGER, DUPLICATE = fragment, merger, duplicate
TOO_SMALL, TOO_LARGE, DISPLACED, MISSED, SPURIOUS = too_small, too_large, displaced, missed, spurious


class OverlappingPairs(NamedTuple):
    """The pairs of objects that share pixels, each field (m,)."""

    reference: np.ndarray
    prediction: np.ndarray
    shared: np.ndarray
    iou: np.ndarray


class Objects(NamedTuple):
    """The objects of one side, each field (n,): what the rules ask about them."""

    area: np.ndarray
    takes_part: np.ndarray
    is_failure: np.ndarray
    is_spill: np.ndarray


def causes(pairs, reference, prediction, double near_iou):
    """Return the cause of every failure of both sides, int8 (n,) each; 0 for all other objects.

    An object is "inside" another one if more than half of it is. Objects that take no part,
    the ignored ones, explain nothing.
    """
    cdef const int32_t[::1] rows = pairs.reference, columns = pairs.prediction
    cdef const int64_t[::1] shared = pairs.shared
    cdef const double[::1] iou = pairs.iou
    cdef const int64_t[::1] area = reference.area, other_area = prediction.area
    cdef const uint8_t[::1] takes_part = reference.takes_part
    cdef const uint8_t[::1] other_takes_part = prediction.takes_part
    cdef const uint8_t[::1] fails = reference.is_failure, other_fails = prediction.is_failure
    cdef const uint8_t[::1] spills = reference.is_spill, other_spills = prediction.is_spill
    cdef Py_ssize_t n = area.shape[0], m = other_area.shape[0], count = rows.shape[0], k, r, p
    expect(
        columns.shape[0] == count and shared.shape[0] == count and iou.shape[0] == count,
        "the columns of pairs differ in length",
    )
    expect(
        takes_part.shape[0] == n and fails.shape[0] == n and spills.shape[0] == n
        and other_takes_part.shape[0] == m and other_fails.shape[0] == m
        and other_spills.shape[0] == m,
        "the columns of objects differ in length",
    )
    for k in range(count):
        expect(0 <= rows[k] < n and 0 <= columns[k] < m, "a pair has an object that is not there")
    causes_, other_causes = np.zeros(n, np.int8), np.zeros(m, np.int8)
    cdef int8_t[::1] cause = causes_, other_cause = other_causes
    cdef int64_t[::1] pieces = np.zeros(n, np.int64), covered = np.zeros(n, np.int64)
    cdef int64_t[::1] swallowed = np.zeros(m, np.int64)
    cdef uint8_t[::1] is_merged = np.zeros(n, np.uint8)
    cdef uint8_t[::1] is_fragment = np.zeros(m, np.uint8), is_duplicate = np.zeros(m, np.uint8)
    cdef int64_t[::1] nearest = np.full(n, -1, np.int64)
    cdef int64_t[::1] other_nearest = np.full(m, -1, np.int64)
    with nogil:
        for k in range(count):
            r = rows[k]
            p = columns[k]
            if takes_part[r] and other_takes_part[p]:
                if 2 * shared[k] > other_area[p]:
                    pieces[r] += 1
                    covered[r] += shared[k]
                if 2 * shared[k] > area[r]:
                    swallowed[p] += 1

        for r in range(n):
            if fails[r]:
                if spills[r]:
                    cause[r] = ambiguous_spill
                elif pieces[r] >= 2 and 2 * covered[r] > area[r]:
                    cause[r] = split

        for k in range(count):
            r = rows[k]
            p = columns[k]
            if not (takes_part[r] and other_takes_part[p]):
                continue
            if 2 * shared[k] > other_area[p]:
                is_fragment[p] |= cause[r] == split
                is_duplicate[p] |= fails[r] == 0
            if 2 * shared[k] > area[r]:
                is_merged[r] |= swallowed[p] >= 2
            if fails[r] and other_fails[p] and iou[k] >= near_iou:
                if is_nearer(shared, iou, columns, other_area, k, nearest[r]):
                    nearest[r] = k
                if is_nearer(shared, iou, rows, area, k, other_nearest[p]):
                    other_nearest[p] = k

        for r in range(n):
            if fails[r] and cause[r] == none:
                k = nearest[r]
                if is_merged[r]:
                    cause[r] = merged
                elif k >= 0:
                    cause[r] = size_or_place(shared[k], area[r], other_area[columns[k]])
                else:
                    cause[r] = missed
        for p in range(m):
            if other_fails[p]:
                k = other_nearest[p]
                if other_spills[p]:
                    other_cause[p] = ambiguous_spill
                elif is_fragment[p]:
                    other_cause[p] = fragment
                elif swallowed[p] >= 2:
                    other_cause[p] = merger
                elif is_duplicate[p]:
                    other_cause[p] = duplicate
                elif k >= 0:
                    other_cause[p] = size_or_place(shared[k], area[rows[k]], other_area[p])
                else:
                    other_cause[p] = spurious
    return causes_, other_causes


cdef inline bint is_nearer(
    const int64_t[::1] shared,
    const double[::1] iou,
    const int32_t[::1] other,
    const int64_t[::1] other_area,
    Py_ssize_t k,
    Py_ssize_t best,
) except -1 nogil:
    """Return whether a pair explains a failure better than the best one so far, -1 for none.

    The better pair has the higher IoU; of equals the larger intersection, then the smaller
    counterpart. Pairs that are equal after that give the same cause, so that causes do not
    depend on labels.
    """
    if best < 0:
        return True
    if iou[k] != iou[best]:
        return iou[k] > iou[best]
    if shared[k] != shared[best]:
        return shared[k] > shared[best]
    return other_area[other[k]] < other_area[other[best]]


cdef inline int size_or_place(int64_t shared, int64_t area, int64_t other_area) except -1 nogil:
    """Return the cause of a pair that did not match."""
    cdef bint prediction_inside = 2 * shared > other_area, reference_inside = 2 * shared > area
    if prediction_inside == reference_inside:
        return displaced
    return too_small if prediction_inside else too_large
