"""Decide the status of each object, and the cause of each failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels import causes as kernels
from napari_panoptic.nuclei.ambiguity import JudgedOverlap, JudgedSide
from napari_panoptic.nuclei.matching import NO_PARTNER, Matches
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status
from napari_panoptic.values.windowed_labels import TiledPair

_Codes = NDArray[np.int8]
Statuses = Mapping[Side, _Codes]
"""Side -> int8 (n,): the status of its objects, positions in ``STATUSES``."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """The status and cause of the objects of one side."""

    #: int8 (n,): positions in ``STATUSES`` and ``CAUSES``.
    status: NDArray[np.int8]
    cause: NDArray[np.int8]
    #: float64 (n,): IoU with the partner; for an unmatched object its best IoU with any object; NaN
    #: where ignored.
    iou: NDArray[np.float64]


def decide(
    judged: JudgedOverlap,
    matches: Matches,
    statuses: Statuses,
    *,
    near_iou: float,
) -> dict[Side, Decisions]:
    """Decide cause and IoU of every object.

    Parameters
    ----------
    judged, matches, statuses
        The stages before this one.
    near_iou
        Least IoU at which an unmatched pair explains a failure.

    """
    causes = _causes(judged, statuses[Side.REFERENCE], statuses[Side.PREDICTION], near_iou)
    return {
        side: Decisions(
            statuses[side],
            own_causes,
            _ious(judged.rows_of_pairs(side), judged.iou, matches.pair, statuses[side]),
        )
        for side, own_causes in zip(Side, causes, strict=True)
    }


def statuses_of(pair: LabelPair | TiledPair, judged: JudgedOverlap, matches: Matches) -> Statuses:
    """Decide the status of every object."""
    return {side: _statuses(pair, judged, matches, side) for side in Side}


def _statuses(
    pair: LabelPair | TiledPair, judged: JudgedOverlap, matches: Matches, side: Side
) -> _Codes:
    partner = matches.partner(side)
    unmatched = Status.FN if side is Side.REFERENCE else Status.FP
    status = np.full(len(partner), STATUS_CODE[unmatched], np.int8)
    status[judged.ignored_if_unmatched(side)] = STATUS_CODE[Status.IGNORED]
    matched = np.flatnonzero(partner != NO_PARTNER)
    own_class, other_class = pair.side(side).class_index, pair.side(side.other).class_index
    is_same = own_class[matched] == other_class[partner[matched]]
    status[matched] = np.where(is_same, STATUS_CODE[Status.TP], STATUS_CODE[Status.MISCLASSIFIED])
    return status


def _ious(
    rows: NDArray[np.int32], iou: NDArray[np.float64], matched: NDArray[np.int64], status: _Codes
) -> NDArray[np.float64]:
    best = np.zeros(len(status))
    np.maximum.at(best, rows, iou)
    best[rows[matched]] = iou[matched]
    best[status == STATUS_CODE[Status.IGNORED]] = np.nan
    return best


def _causes(
    judged: JudgedOverlap, reference_status: _Codes, prediction_status: _Codes, near_iou: float
) -> tuple[_Codes, _Codes]:
    """Assign a cause to every unmatched object: the first rule that applies."""
    pairs = kernels.OverlappingPairs(
        judged.pair_reference, judged.pair_prediction, judged.intersection, judged.iou
    )
    reference = _asked(judged.reference, reference_status, Status.FN)
    prediction = _asked(judged.prediction, prediction_status, Status.FP)
    causes: tuple[_Codes, _Codes] = kernels.causes(pairs, reference, prediction, near_iou)
    return causes


def _asked(side: JudgedSide, status: _Codes, failure: Status) -> kernels.Objects:
    """Return what the rules ask about the objects of one side."""
    return kernels.Objects(
        area=side.area,
        takes_part=status != STATUS_CODE[Status.IGNORED],
        is_failure=status == STATUS_CODE[failure],
        is_spill=side.ambiguous_share > 0.5,
    )
