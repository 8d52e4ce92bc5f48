"""Why objects are unmatched: the first rule that applies to each.

Compiled, since NumPy takes 0.1 ms of the 0.4 ms that a stroke may take with 800
objects, and 0.9 of 3 ms with 25,000 (`python -m benchmarks.live`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled

AMBIGUOUS_SPILL, SPLIT, MERGED, FRAGMENT, MERGER, DUPLICATE = 1, 2, 3, 4, 5, 6
TOO_SMALL, TOO_LARGE, DISPLACED, MISSED, SPURIOUS = 7, 8, 9, 10, 11
"""Positions in `napari_panoptic.nuclei.values.vocabulary.CAUSES`."""


class OverlappingPairs(NamedTuple):
    """The pairs of objects that share pixels, each field (m,)."""

    reference: NDArray[np.int32]
    prediction: NDArray[np.int32]
    shared: NDArray[np.int64]
    iou: NDArray[np.float64]


class Objects(NamedTuple):
    """The objects of one side, each field (n,): what the rules ask about them."""

    area: NDArray[np.int64]
    takes_part: NDArray[np.bool_]
    is_failure: NDArray[np.bool_]
    is_spill: NDArray[np.bool_]


@compiled
def causes(
    pairs: OverlappingPairs, reference: Objects, prediction: Objects, near_iou: float
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return the cause of every failure of both sides, int8 (n,) each; 0 for all other objects.

    An object is "inside" another one if more than half of it is. Objects that take no part,
    the ignored ones, explain nothing.
    """
    n, m = len(reference.area), len(prediction.area)
    pieces, covered = np.zeros(n, np.int64), np.zeros(n, np.int64)
    swallowed = np.zeros(m, np.int64)
    for k in range(len(pairs.shared)):
        r, p = pairs.reference[k], pairs.prediction[k]
        if reference.takes_part[r] and prediction.takes_part[p]:
            if 2 * pairs.shared[k] > prediction.area[p]:
                pieces[r] += 1
                covered[r] += pairs.shared[k]
            if 2 * pairs.shared[k] > reference.area[r]:
                swallowed[p] += 1

    reference_cause, prediction_cause = np.zeros(n, np.int8), np.zeros(m, np.int8)
    for r in range(n):
        if reference.is_failure[r]:
            if reference.is_spill[r]:
                reference_cause[r] = AMBIGUOUS_SPILL
            elif pieces[r] >= 2 and 2 * covered[r] > reference.area[r]:
                reference_cause[r] = SPLIT

    is_merged = np.zeros(n, np.bool_)
    is_fragment, is_duplicate = np.zeros(m, np.bool_), np.zeros(m, np.bool_)
    nearest_to_reference, nearest_to_prediction = np.full(n, -1), np.full(m, -1)
    for k in range(len(pairs.shared)):
        r, p = pairs.reference[k], pairs.prediction[k]
        if not (reference.takes_part[r] and prediction.takes_part[p]):
            continue
        if 2 * pairs.shared[k] > prediction.area[p]:
            is_fragment[p] |= reference_cause[r] == SPLIT
            is_duplicate[p] |= not reference.is_failure[r]
        if 2 * pairs.shared[k] > reference.area[r]:
            is_merged[r] |= swallowed[p] >= 2
        if reference.is_failure[r] and prediction.is_failure[p] and pairs.iou[k] >= near_iou:
            if _is_nearer(pairs, pairs.prediction, prediction.area, k, nearest_to_reference[r]):
                nearest_to_reference[r] = k
            if _is_nearer(pairs, pairs.reference, reference.area, k, nearest_to_prediction[p]):
                nearest_to_prediction[p] = k

    for r in range(n):
        if reference.is_failure[r] and reference_cause[r] == 0:
            nearest = nearest_to_reference[r]
            if is_merged[r]:
                reference_cause[r] = MERGED
            elif nearest >= 0:
                reference_cause[r] = _size_or_place(pairs, reference, prediction, nearest)
            else:
                reference_cause[r] = MISSED
    for p in range(m):
        if prediction.is_failure[p]:
            nearest = nearest_to_prediction[p]
            if prediction.is_spill[p]:
                prediction_cause[p] = AMBIGUOUS_SPILL
            elif is_fragment[p]:
                prediction_cause[p] = FRAGMENT
            elif swallowed[p] >= 2:
                prediction_cause[p] = MERGER
            elif is_duplicate[p]:
                prediction_cause[p] = DUPLICATE
            elif nearest >= 0:
                prediction_cause[p] = _size_or_place(pairs, reference, prediction, nearest)
            else:
                prediction_cause[p] = SPURIOUS
    return reference_cause, prediction_cause


@compiled
def _is_nearer(
    pairs: OverlappingPairs,
    other: NDArray[np.int32],
    other_area: NDArray[np.int64],
    k: int,
    best: int,
) -> bool:
    """Return whether a pair explains a failure better than the best one so far, -1 for none.

    The better pair has the higher IoU; of equals the larger intersection, then the smaller
    counterpart. Pairs that are equal after that give the same cause, so that causes do not
    depend on labels.
    """
    if best < 0:
        return True
    if pairs.iou[k] != pairs.iou[best]:
        return bool(pairs.iou[k] > pairs.iou[best])
    if pairs.shared[k] != pairs.shared[best]:
        return bool(pairs.shared[k] > pairs.shared[best])
    return bool(other_area[other[k]] < other_area[other[best]])


@compiled
def _size_or_place(pairs: OverlappingPairs, reference: Objects, prediction: Objects, k: int) -> int:
    prediction_inside = 2 * pairs.shared[k] > prediction.area[pairs.prediction[k]]
    reference_inside = 2 * pairs.shared[k] > reference.area[pairs.reference[k]]
    if prediction_inside == reference_inside:
        return DISPLACED
    return TOO_SMALL if prediction_inside else TOO_LARGE


@compiled
def best_iou(rows: NDArray[np.int32], iou: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the highest IoU of each of n objects with any other, 0 for none."""
    best = np.zeros(n)
    for k in range(len(rows)):
        best[rows[k]] = max(best[rows[k]], iou[k])
    return best
