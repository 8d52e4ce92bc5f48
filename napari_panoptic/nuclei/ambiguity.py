"""The four ambiguous policies: what of the overlap counts, and which objects are judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled
from napari_panoptic.nuclei.overlap import OverlapTable
from napari_panoptic.nuclei.values.settings import AmbiguousPolicy

_Counted = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Of each object: area, ambiguous area, sums of coordinates, those of ambiguous pixels."""
_Shared = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]
"""Of each pair: reference row, prediction row, shared pixels, ambiguous ones among them."""
_Judged = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]
"""As in `JudgedSide`."""
_Pairs = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]
"""Of each pair: reference row, prediction row, shared pixels, IoU."""


@dataclass(frozen=True, eq=False)
class JudgedSide:
    """The objects of one side after an ambiguous policy.

    Parameters
    ----------
    area
        int64 (n,): pixels that count.
    centroid_yx_px
        float64 (n, 2): centroid of these pixels; of the whole object where
        none counts.
    gone
        bool (n,): objects with no pixel that counts.
    ambiguous_share
        float64 (n,): share of the object's area, before any cut, that lies in
        the ambiguous area.
    """

    area: NDArray[np.int64]
    centroid_yx_px: NDArray[np.float64]
    gone: NDArray[np.bool_]
    ambiguous_share: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JudgedOverlap:
    """The overlap table after an ambiguous policy.

    Parameters
    ----------
    policy
        The policy applied.
    reference, prediction
        The two sides' objects.
    pair_reference, pair_prediction
        int32 (m,): rows of the objects of each pair that shares a counting pixel.
    intersection
        int64 (m,): the pixels they share.
    iou
        float64 (m,): intersection over union.
    """

    policy: AmbiguousPolicy
    reference: JudgedSide
    prediction: JudgedSide
    pair_reference: NDArray[np.int32]
    pair_prediction: NDArray[np.int32]
    intersection: NDArray[np.int64]
    iou: NDArray[np.float64]

    @property
    def cuts_reference(self) -> bool:
        """Whether ambiguous pixels are cut from reference objects."""
        return self.policy is AmbiguousPolicy.CLIP

    @property
    def cuts_prediction(self) -> bool:
        """Whether ambiguous pixels are cut from predicted objects."""
        return self.policy in (AmbiguousPolicy.CLIP, AmbiguousPolicy.CLIP_PREDICTIONS)


def judge(table: OverlapTable, policy: AmbiguousPolicy) -> JudgedOverlap:
    """Apply an ambiguous policy to an overlap table.

    Under ``majority`` objects keep all their pixels and only IoU leaves the
    ambiguous ones out, of intersection and union (Kirillov et al., Panoptic
    Segmentation, CVPR 2019, void rule).

    Parameters
    ----------
    table
        The counts; not changed.
    policy
        Which pixels count.
    """
    reference, prediction = table.reference, table.prediction
    judged_reference, judged_prediction, pairs = _judged(
        (reference.area, reference.void_area, reference.sum_yx, reference.void_sum_yx),
        (prediction.area, prediction.void_area, prediction.sum_yx, prediction.void_sum_yx),
        (
            table.pair_reference,
            table.pair_prediction,
            table.intersection,
            table.void_intersection,
        ),
        policy is AmbiguousPolicy.CLIP,
        policy in (AmbiguousPolicy.CLIP, AmbiguousPolicy.CLIP_PREDICTIONS),
        policy is AmbiguousPolicy.MAJORITY,
    )
    return JudgedOverlap(
        policy, JudgedSide(*judged_reference), JudgedSide(*judged_prediction), *pairs
    )


@compiled
def _judged(
    reference: _Counted,
    prediction: _Counted,
    pairs: _Shared,
    cut_reference: bool,
    cut_prediction: bool,
    is_majority: bool,
) -> tuple[_Judged, _Judged, _Pairs]:
    references = _judged_side(reference, cut_reference)
    predictions = _judged_side(prediction, cut_prediction)
    # Under majority the IoU alone leaves ambiguous pixels out.
    reference_area = reference[0] - reference[1] if is_majority else references[0]
    prediction_area = prediction[0] - prediction[1] if is_majority else predictions[0]
    pair_reference, pair_prediction, shared, void_shared = pairs
    intersection = shared - void_shared if cut_prediction else shared
    counting = np.flatnonzero(intersection > 0)
    rows, columns = pair_reference[counting], pair_prediction[counting]
    iou = np.zeros(len(counting))
    for k in range(len(counting)):
        place = counting[k]
        common = intersection[place] - (void_shared[place] if is_majority else 0)
        union = reference_area[rows[k]] + prediction_area[columns[k]] - common
        if union > 0:
            iou[k] = common / union
    return references, predictions, (rows, columns, intersection[counting], iou)


@compiled
def _judged_side(side: _Counted, cut: bool) -> _Judged:
    counted, void_counted, sums, void_sums = side
    n = len(counted)
    area, centroid = counted.copy(), np.empty((n, 2))
    gone, share = np.empty(n, np.bool_), np.empty(n)
    for k in range(n):
        if cut:
            area[k] -= void_counted[k]
        gone[k] = area[k] == 0
        # What is gone keeps the place where it was, so that it can be looked at.
        is_cut = cut and not gone[k]
        pixels = max(area[k] if is_cut else counted[k], 1)
        for axis in range(2):
            cut_away = void_sums[k, axis] if is_cut else 0
            centroid[k, axis] = (sums[k, axis] - cut_away) / pixels
        share[k] = void_counted[k] / max(counted[k], 1)
    return area, centroid, gone, share
