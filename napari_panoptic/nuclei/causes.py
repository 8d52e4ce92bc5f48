"""Decide the status of each object, and the cause of each failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.ambiguity import JudgedOverlap, JudgedSide
from napari_panoptic.nuclei.matching import NO_PARTNER, Matches
from napari_panoptic.nuclei.values.settings import AmbiguousPolicy
from napari_panoptic.nuclei.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause, Status

_Flags = NDArray[np.bool_]
_Codes = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Decisions:
    """The status and cause of the objects of one side.

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
    rows, columns, iou = judged.pair_reference, judged.pair_prediction, judged.iou
    partners = matches.reference_partner, matches.prediction_partner
    is_majority = judged.policy is AmbiguousPolicy.MAJORITY
    statuses = (
        _statuses(
            judged.reference, reference_class, prediction_class, partners[0], is_majority, Status.FN
        ),
        _statuses(
            judged.prediction,
            prediction_class,
            reference_class,
            partners[1],
            is_majority,
            Status.FP,
        ),
    )
    causes = _causes(judged, *statuses, near_iou)
    return (
        Decisions(statuses[0], causes[0], _ious(rows, iou, matches.pair, statuses[0])),
        Decisions(statuses[1], causes[1], _ious(columns, iou, matches.pair, statuses[1])),
    )


def _statuses(
    side: JudgedSide,
    own_class: NDArray[np.int16],
    other_class: NDArray[np.int16],
    partner: NDArray[np.int32],
    is_majority: bool,
    unmatched: Status,
) -> _Codes:
    is_ignored = side.ambiguous_share > 0.5 if is_majority else side.gone
    status = np.full(len(partner), STATUS_CODE[unmatched], np.int8)
    status[is_ignored] = STATUS_CODE[Status.IGNORED]
    matched = np.flatnonzero(partner != NO_PARTNER)
    is_same = own_class[matched] == other_class[partner[matched]]
    status[matched] = np.where(is_same, STATUS_CODE[Status.TP], STATUS_CODE[Status.MISCLASSIFIED])
    return status


def _ious(
    rows: NDArray[np.int32], iou: NDArray[np.float64], matched: NDArray[np.int64], status: _Codes
) -> NDArray[np.float64]:
    best = np.zeros(len(status))
    is_unmatched = (status == STATUS_CODE[Status.FN]) | (status == STATUS_CODE[Status.FP])
    pairs = np.flatnonzero(is_unmatched[rows])
    np.maximum.at(best, rows[pairs], iou[pairs])
    best[rows[matched]] = iou[matched]
    best[status == STATUS_CODE[Status.IGNORED]] = np.nan
    return best


def _causes(
    judged: JudgedOverlap, reference_status: _Codes, prediction_status: _Codes, near_iou: float
) -> tuple[_Codes, _Codes]:
    """Assign a cause to every unmatched object: the first rule that applies.

    A pair is "inside" one of its objects if the intersection is more than half of the other
    one. Ignored objects take no part.
    """
    ignored = STATUS_CODE[Status.IGNORED]
    is_fn = reference_status == STATUS_CODE[Status.FN]
    is_fp = prediction_status == STATUS_CODE[Status.FP]
    rows, columns = judged.pair_reference, judged.pair_prediction
    # The predictions that are unmatched, or overlap an unmatched reference object.
    is_asked = is_fp.copy()
    is_asked[columns[is_fn[rows]]] = True
    takes_part = (reference_status != ignored)[rows] & (is_asked & (prediction_status != ignored))[
        columns
    ]
    pairs = np.flatnonzero(takes_part)
    rows, columns = rows[pairs], columns[pairs]
    shared, iou = judged.intersection[pairs], judged.iou[pairs]
    reference_area, prediction_area = judged.reference.area, judged.prediction.area
    prediction_inside = 2 * shared > prediction_area[columns]
    reference_inside = 2 * shared > reference_area[rows]

    def any_of(objects: NDArray[np.int32], n: int, pairs: _Flags) -> _Flags:
        """Return which of n objects have one of these pairs."""
        found = np.zeros(n, np.bool_)
        found[objects[pairs]] = True
        return found

    # The predictions inside each reference object, and the pixels that they cover together.
    n, m = len(is_fn), len(is_fp)
    pieces = np.bincount(rows[prediction_inside], minlength=n)
    covered = np.bincount(rows[prediction_inside], shared[prediction_inside], minlength=n)
    is_spill = judged.reference.ambiguous_share > 0.5
    is_split = (pieces >= 2) & (2 * covered > reference_area)
    is_merger = np.bincount(columns[reference_inside], minlength=m) >= 2
    split_fn = is_fn & ~is_spill & is_split
    size_or_place = _size_or_place(prediction_inside, reference_inside)
    near = np.flatnonzero(is_fn[rows] & is_fp[columns] & (iou >= near_iou))
    nearest = [
        _nearest(own[near], iou[near], shared[near], area[other[near]], size_or_place[near], count)
        for own, other, area, count in (
            (rows, columns, prediction_area, n),
            (columns, rows, reference_area, m),
        )
    ]
    reference_cause = _first_of(
        is_fn,
        [
            (is_spill, Cause.AMBIGUOUS_SPILL),
            (is_split, Cause.SPLIT),
            (any_of(rows, n, reference_inside & is_merger[columns]), Cause.MERGED),
        ],
        np.where(nearest[0] > 0, nearest[0], CAUSE_CODE[Cause.MISSED]),
    )
    prediction_cause = _first_of(
        is_fp,
        [
            (judged.prediction.ambiguous_share > 0.5, Cause.AMBIGUOUS_SPILL),
            (any_of(columns, m, prediction_inside & split_fn[rows]), Cause.FRAGMENT),
            (is_merger, Cause.MERGER),
            (any_of(columns, m, prediction_inside & ~is_fn[rows]), Cause.DUPLICATE),
        ],
        np.where(nearest[1] > 0, nearest[1], CAUSE_CODE[Cause.SPURIOUS]),
    )
    return reference_cause, prediction_cause


def _first_of(is_open: _Flags, rules: Sequence[tuple[_Flags, Cause]], otherwise: _Codes) -> _Codes:
    """Return the code of the first rule that applies to each open object; 0 for all others."""
    cause = otherwise.astype(np.int8)
    for applies, name in reversed(rules):
        cause[applies] = CAUSE_CODE[name]
    cause[~is_open] = 0
    return cause


def _size_or_place(prediction_inside: _Flags, reference_inside: _Flags) -> _Codes:
    """Return the cause that each pair would explain."""
    cause = np.full(len(prediction_inside), CAUSE_CODE[Cause.DISPLACED], np.int8)
    cause[prediction_inside & ~reference_inside] = CAUSE_CODE[Cause.TOO_SMALL]
    cause[reference_inside & ~prediction_inside] = CAUSE_CODE[Cause.TOO_LARGE]
    return cause


def _nearest(
    objects: NDArray[np.int32],
    iou: NDArray[np.float64],
    shared: NDArray[np.int64],
    other_area: NDArray[np.int64],
    cause: _Codes,
    n: int,
) -> _Codes:
    """Return the cause of each object's best pair; 0 if it has none.

    The best pair has the highest IoU; of equals the larger intersection, then the smaller
    counterpart. Pairs that are equal after that give the same cause, so that causes do not
    depend on labels.
    """
    found = np.zeros(n, np.int8)
    worst_first = np.lexsort((-other_area, shared, iou))
    found[objects[worst_first]] = cause[worst_first]
    return found
