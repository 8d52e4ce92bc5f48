"""Decide the status of each object, and the cause of each failure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels import causes as kernels
from napari_panoptic.nuclei.ambiguity import JudgedOverlap, JudgedSide
from napari_panoptic.nuclei.matching import NO_PARTNER, Matches
from napari_panoptic.nuclei.values.settings import AmbiguousPolicy
from napari_panoptic.nuclei.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause, Status

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
    best: NDArray[np.float64] = kernels.best_iou(rows, iou, len(status))
    best[rows[matched]] = iou[matched]
    best[status == STATUS_CODE[Status.IGNORED]] = np.nan
    return best


def _causes(
    judged: JudgedOverlap, reference_status: _Codes, prediction_status: _Codes, near_iou: float
) -> tuple[_Codes, _Codes]:
    """Assign a cause to every unmatched object: the first rule that applies."""
    pairs = kernels.Pairs(
        judged.pair_reference, judged.pair_prediction, judged.intersection, judged.iou
    )
    reference = _asked(judged.reference, reference_status, Status.FN)
    prediction = _asked(judged.prediction, prediction_status, Status.FP)
    reference_rule, prediction_rule = kernels.causes(pairs, reference, prediction, near_iou)
    return _CODE_OF_RULE[reference_rule], _CODE_OF_RULE[prediction_rule]


def _asked(side: JudgedSide, status: _Codes, failure: Status) -> kernels.Objects:
    """Return what the rules ask about the objects of one side."""
    return kernels.Objects(
        area=side.area,
        takes_part=status != STATUS_CODE[Status.IGNORED],
        is_failure=status == STATUS_CODE[failure],
        is_spill=side.ambiguous_share > 0.5,
    )


def _codes_of_rules() -> _Codes:
    causes = {
        kernels.SPILL: Cause.AMBIGUOUS_SPILL,
        kernels.SPLIT: Cause.SPLIT,
        kernels.MERGED: Cause.MERGED,
        kernels.FRAGMENT: Cause.FRAGMENT,
        kernels.MERGER: Cause.MERGER,
        kernels.DUPLICATE: Cause.DUPLICATE,
        kernels.TOO_SMALL: Cause.TOO_SMALL,
        kernels.TOO_LARGE: Cause.TOO_LARGE,
        kernels.DISPLACED: Cause.DISPLACED,
        kernels.MISSED: Cause.MISSED,
        kernels.SPURIOUS: Cause.SPURIOUS,
    }
    codes = np.zeros(max(causes) + 1, np.int8)
    codes[list(causes)] = [CAUSE_CODE[cause] for cause in causes.values()]
    return codes


_CODE_OF_RULE = _codes_of_rules()
