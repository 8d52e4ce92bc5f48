"""What became of each object and why: the rules, compiled.

Every rule looks at an object, at what it overlaps, and at what that overlaps
in turn. So objects that no chain of overlaps joins have nothing to do with
each other, and the rules may be given any part of an overlap that leaves no
pair of its objects out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled
from napari_panoptic.nuclei.ambiguity import JudgedOverlap, JudgedSide
from napari_panoptic.nuclei.matching import NO_PARTNER, Matches
from napari_panoptic.nuclei.values.settings import AmbiguousPolicy
from napari_panoptic.nuclei.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause, Status

_TP, _MISCLASSIFIED = STATUS_CODE[Status.TP], STATUS_CODE[Status.MISCLASSIFIED]
_FN, _FP, _IGNORED = (
    STATUS_CODE[Status.FN],
    STATUS_CODE[Status.FP],
    STATUS_CODE[Status.IGNORED],
)
_SPILL, _SPLIT, _MERGED = (
    CAUSE_CODE[Cause.AMBIGUOUS_SPILL],
    CAUSE_CODE[Cause.SPLIT],
    CAUSE_CODE[Cause.MERGED],
)
_FRAGMENT, _MERGER, _DUPLICATE = (
    CAUSE_CODE[Cause.FRAGMENT],
    CAUSE_CODE[Cause.MERGER],
    CAUSE_CODE[Cause.DUPLICATE],
)
_TOO_SMALL, _TOO_LARGE, _DISPLACED = (
    CAUSE_CODE[Cause.TOO_SMALL],
    CAUSE_CODE[Cause.TOO_LARGE],
    CAUSE_CODE[Cause.DISPLACED],
)
_MISSED, _SPURIOUS = CAUSE_CODE[Cause.MISSED], CAUSE_CODE[Cause.SPURIOUS]

_Pairs = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]
"""Of each pair: reference row, prediction row, shared pixels, IoU."""
_Objects = tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64], NDArray[np.int16]]
"""Of each object: area, whether it is gone, its ambiguous share, its class."""
_Both = tuple[NDArray[np.int8], NDArray[np.int8]]
"""Codes of the reference objects and of the predictions."""
_Inside = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Of each pair: whether the prediction is inside the reference object; the reverse."""
_Decided = tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Decisions:
    """What became of the objects of one side.

    Parameters
    ----------
    status, cause
        int8 (n,): positions in ``STATUSES`` and ``CAUSES``.
    iou
        float64 (n,): IoU with the partner; for an unmatched object its best
        IoU with any object; NaN where ignored.
    """

    status: NDArray[np.int8]
    cause: NDArray[np.int8]
    iou: NDArray[np.float64]


def decide(
    judged: JudgedOverlap,
    matches: Matches,
    reference_class: NDArray[np.int16],
    prediction_class: NDArray[np.int16],
    *,
    near_iou: float,
) -> tuple[Decisions, Decisions]:
    """Decide status, cause and IoU of every object.

    Parameters
    ----------
    judged, matches
        The stages before this one.
    reference_class, prediction_class
        int16 (n,): 1-based class of each object.
    near_iou
        Least IoU at which an unmatched pair explains a failure.

    Returns
    -------
    reference, prediction
        The decisions on either side.
    """
    reference, prediction = _decided(
        (judged.pair_reference, judged.pair_prediction, judged.intersection, judged.iou),
        _objects(judged.reference, reference_class),
        _objects(judged.prediction, prediction_class),
        (matches.reference_partner, matches.prediction_partner, matches.pair),
        judged.policy is AmbiguousPolicy.MAJORITY,
        near_iou,
    )
    return Decisions(*reference), Decisions(*prediction)


def _objects(side: JudgedSide, class_index: NDArray[np.int16]) -> _Objects:
    return side.area, side.gone, side.ambiguous_share, class_index


@compiled
def _statuses(
    own: _Objects,
    other_class: NDArray[np.int16],
    partner: NDArray[np.int32],
    is_majority: bool,
    unmatched: int,
) -> NDArray[np.int8]:
    _, gone, ambiguous_share, class_index = own
    status = np.empty(len(partner), np.int8)
    for row in range(len(partner)):
        other = partner[row]
        if other != NO_PARTNER:
            is_same = class_index[row] == other_class[other]
            status[row] = _TP if is_same else _MISCLASSIFIED
        elif ambiguous_share[row] > 0.5 if is_majority else gone[row]:
            status[row] = _IGNORED
        else:
            status[row] = unmatched
    return status


@compiled
def _ious(
    rows: NDArray[np.int32],
    iou: NDArray[np.float64],
    matched: NDArray[np.int64],
    status: NDArray[np.int8],
) -> NDArray[np.float64]:
    best = np.zeros(len(status))
    for k in range(len(rows)):
        best[rows[k]] = max(best[rows[k]], iou[k])
    for k in matched:
        best[rows[k]] = iou[k]
    for row in range(len(status)):
        if status[row] == _IGNORED:
            best[row] = np.nan
    return best


@compiled
def _is_better(pairs: _Pairs, k: int, best: int, area_k: int, area_best: int) -> bool:
    """Return whether a pair explains a failure better than the best one so far.

    Best IoU first; of equals the larger intersection, then the smaller
    counterpart: what is equal after that gives the same cause, so that causes
    do not depend on labels.
    """
    _, _, shared, iou = pairs
    if iou[k] != iou[best]:
        return bool(iou[k] > iou[best])
    if shared[k] != shared[best]:
        return bool(shared[k] > shared[best])
    return area_k < area_best


@compiled
def _taking_part(pairs: _Pairs, statuses: _Both) -> NDArray[np.int64]:
    """List the pairs of objects that are not ignored."""
    rows, columns, _, _ = pairs
    reference_status, prediction_status = statuses
    found = np.empty(len(rows), np.int64)
    count = 0
    for k in range(len(rows)):
        found[count] = k
        count += reference_status[rows[k]] != _IGNORED and prediction_status[columns[k]] != _IGNORED
    return found[:count]


@compiled
def _nearest(
    pairs: _Pairs,
    near: NDArray[np.int64],
    own_rows: NDArray[np.int32],
    other_rows: NDArray[np.int32],
    other_area: NDArray[np.int64],
    n_own: int,
) -> NDArray[np.int64]:
    """Find the pair of each object that decides between size and place, or -1."""
    found = np.full(n_own, -1, np.int64)
    for k in near:
        best = found[own_rows[k]]
        if best < 0 or _is_better(
            pairs, k, best, other_area[other_rows[k]], other_area[other_rows[best]]
        ):
            found[own_rows[k]] = k
    return found


@compiled
def _split_or_spilt(
    pairs: _Pairs, part: NDArray[np.int64], statuses: _Both, references: _Objects, inside: _Inside
) -> NDArray[np.int8]:
    """Find the FNs to which the first two rules apply; 0 for all others."""
    rows, _, shared, _ = pairs
    area, _, ambiguous_share, _ = references
    # The predictions inside each object, and the pixels that they cover together.
    pieces, covered = np.zeros(len(area), np.int32), np.zeros(len(area), np.int64)
    for k in part:
        if inside[0][k]:
            pieces[rows[k]] += 1
            covered[rows[k]] += shared[k]
    cause = np.zeros(len(area), np.int8)
    for r in range(len(area)):
        if statuses[0][r] != _FN:
            continue
        if ambiguous_share[r] > 0.5:
            cause[r] = _SPILL
        elif pieces[r] >= 2 and 2 * covered[r] > area[r]:
            cause[r] = _SPLIT
    return cause


@compiled
def _size_or_place(inside: _Inside, k: int) -> int:
    prediction_inside, reference_inside = inside
    if prediction_inside[k] and not reference_inside[k]:
        return _TOO_SMALL
    if reference_inside[k] and not prediction_inside[k]:
        return _TOO_LARGE
    return _DISPLACED


@compiled
def _causes(
    pairs: _Pairs, statuses: _Both, references: _Objects, predictions: _Objects, near_iou: float
) -> _Both:
    """Describe why objects are unmatched: of each side's rules the first that applies.

    A pair is "inside" one of its objects where the intersection is more than
    half of the other one. Ignored objects take no part.
    """
    rows, columns, shared, iou = pairs
    reference_status, prediction_status = statuses
    reference_area, prediction_area = references[0], predictions[0]
    inside = (2 * shared > prediction_area[columns], 2 * shared > reference_area[rows])
    part = _taking_part(pairs, statuses)
    reference_cause = _split_or_spilt(pairs, part, statuses, references, inside)

    swallowed = np.zeros(len(prediction_area), np.int32)
    is_fragment = np.zeros(len(prediction_area), np.bool_)
    is_duplicate = np.zeros(len(prediction_area), np.bool_)
    near, n_near = np.empty(len(part), np.int64), 0
    for k in part:
        r, p = rows[k], columns[k]
        swallowed[p] += inside[1][k]
        if inside[0][k]:
            is_fragment[p] |= reference_cause[r] == _SPLIT
            is_duplicate[p] |= reference_status[r] != _FN
        near[n_near] = k
        is_unmatched = reference_status[r] == _FN and prediction_status[p] == _FP
        n_near += is_unmatched and iou[k] >= near_iou
    for k in part:
        r = rows[k]
        is_open = reference_status[r] == _FN and reference_cause[r] == 0
        if is_open and inside[1][k] and swallowed[columns[k]] >= 2:
            reference_cause[r] = _MERGED

    best = _nearest(pairs, near[:n_near], rows, columns, prediction_area, len(reference_area))
    for r in range(len(reference_area)):
        if reference_status[r] == _FN and reference_cause[r] == 0:
            reference_cause[r] = _size_or_place(inside, best[r]) if best[r] >= 0 else _MISSED
    best = _nearest(pairs, near[:n_near], columns, rows, reference_area, len(prediction_area))
    prediction_cause = np.zeros(len(prediction_area), np.int8)
    for p in range(len(prediction_area)):
        if prediction_status[p] != _FP:
            continue
        if predictions[2][p] > 0.5:
            prediction_cause[p] = _SPILL
        elif is_fragment[p]:
            prediction_cause[p] = _FRAGMENT
        elif swallowed[p] >= 2:
            prediction_cause[p] = _MERGER
        elif is_duplicate[p]:
            prediction_cause[p] = _DUPLICATE
        else:
            prediction_cause[p] = _size_or_place(inside, best[p]) if best[p] >= 0 else _SPURIOUS
    return reference_cause, prediction_cause


@compiled
def _decided(
    pairs: _Pairs,
    references: _Objects,
    predictions: _Objects,
    matches: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]],
    is_majority: bool,
    near_iou: float,
) -> tuple[_Decided, _Decided]:
    rows, columns, _, iou = pairs
    reference_partner, prediction_partner, matched = matches
    statuses = (
        _statuses(references, predictions[3], reference_partner, is_majority, _FN),
        _statuses(predictions, references[3], prediction_partner, is_majority, _FP),
    )
    causes = _causes(pairs, statuses, references, predictions, near_iou)
    return (
        (statuses[0], causes[0], _ious(rows, iou, matched, statuses[0])),
        (statuses[1], causes[1], _ious(columns, iou, matched, statuses[1])),
    )
