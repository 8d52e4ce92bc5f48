"""The four ambiguous policies: what of the overlap counts, and which objects are judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.evaluation.overlap import OverlapTable, SideTable
from napari_panoptic.evaluation.settings import AmbiguousPolicy


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
    cut_reference = policy is AmbiguousPolicy.CLIP
    cut_prediction = policy in (AmbiguousPolicy.CLIP, AmbiguousPolicy.CLIP_PREDICTIONS)
    reference = _judged_side(table.reference, cut=cut_reference)
    prediction = _judged_side(table.prediction, cut=cut_prediction)
    outside = table.intersection - table.void_intersection
    intersection = outside if cut_prediction else table.intersection
    rows, columns = table.pair_reference, table.pair_prediction
    if policy is AmbiguousPolicy.MAJORITY:
        reference_outside = table.reference.area - table.reference.void_area
        prediction_outside = table.prediction.area - table.prediction.void_area
        union = reference_outside[rows] + prediction_outside[columns] - outside
        iou = np.divide(outside, union, out=np.zeros(len(union)), where=union > 0)
    else:
        union = reference.area[rows] + prediction.area[columns] - intersection
        iou = np.divide(intersection, union, out=np.zeros(len(union)), where=union > 0)
    counts = intersection > 0
    return JudgedOverlap(
        policy=policy,
        reference=reference,
        prediction=prediction,
        pair_reference=rows[counts],
        pair_prediction=columns[counts],
        intersection=intersection[counts],
        iou=iou[counts],
    )


def _judged_side(side: SideTable, *, cut: bool) -> JudgedSide:
    area = side.area - side.void_area if cut else side.area
    sum_yx = side.sum_yx - side.void_sum_yx if cut else side.sum_yx
    gone = area == 0
    # What is gone keeps the place where it was, so that it can be looked at.
    sum_yx = np.where(gone[:, None], side.sum_yx, sum_yx)
    pixels = np.where(gone, side.area, area)
    return JudgedSide(
        area=area,
        centroid_yx_px=sum_yx / np.maximum(pixels, 1)[:, None],
        gone=gone,
        ambiguous_share=side.void_area / np.maximum(side.area, 1),
    )
