"""Apply one of the four ambiguous policies to an overlap table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.overlap import OverlapTable, SideTable
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import Side, of_side


@dataclass(frozen=True, eq=False)
class JudgedSide:
    """The objects of one side after an ambiguous policy."""

    #: int64 (n,): pixels that count.
    area: NDArray[np.int64]
    #: float64 (n, 2): centroid of these pixels; of the whole object if none counts.
    centroid_yx_px: NDArray[np.float64]
    #: bool (n,): objects with no pixel that counts.
    gone: NDArray[np.bool_]
    #: float64 (n,): share of the object's area, before any cut, that lies in the ambiguous area.
    ambiguous_share: NDArray[np.float64]
    #: int32 (n, 4): bounding box of the whole object, as in `SideTable`.
    bbox: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class JudgedOverlap:
    """The overlap table after an ambiguous policy."""

    #: The policy applied.
    policy: AmbiguousPolicy
    #: The two sides' objects.
    reference: JudgedSide
    prediction: JudgedSide
    #: int32 (m,): rows of the objects of each pair that shares a counting pixel.
    pair_reference: NDArray[np.int32]
    pair_prediction: NDArray[np.int32]
    #: int64 (m,): the pixels they share.
    intersection: NDArray[np.int64]
    #: float64 (m,): intersection over union.
    iou: NDArray[np.float64]

    def side(self, side: Side) -> JudgedSide:
        """Return one side's objects."""
        return of_side(side, self.reference, self.prediction)

    def rows_of_pairs(self, side: Side) -> NDArray[np.int32]:
        """Return the row of one side's object in each pair."""
        return of_side(side, self.pair_reference, self.pair_prediction)

    @property
    def cuts_reference(self) -> bool:
        """Whether ambiguous pixels are cut from reference objects."""
        return _cuts_reference(self.policy)

    @property
    def cuts_prediction(self) -> bool:
        """Whether ambiguous pixels are cut from predicted objects."""
        return _cuts_prediction(self.policy)


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
    cuts_reference, cuts_prediction = _cuts_reference(policy), _cuts_prediction(policy)
    reference = _judge_side(table.reference, is_cut=cuts_reference)
    prediction = _judge_side(table.prediction, is_cut=cuts_prediction)
    areas = reference.area, prediction.area
    intersection = table.intersection
    if cuts_prediction:
        intersection = intersection - table.void_intersection
    counting = np.flatnonzero(intersection > 0)
    rows, columns = table.pair_reference[counting], table.pair_prediction[counting]
    intersection = common = intersection[counting]
    if policy is AmbiguousPolicy.MAJORITY:
        areas = (
            table.reference.area - table.reference.void_area,
            table.prediction.area - table.prediction.void_area,
        )
        common = common - table.void_intersection[counting]
    union = areas[0][rows] + areas[1][columns] - common
    iou = np.divide(common, union, out=np.zeros(len(common)), where=union > 0)
    return JudgedOverlap(policy, reference, prediction, rows, columns, intersection, iou)


def _cuts_reference(policy: AmbiguousPolicy) -> bool:
    return policy is AmbiguousPolicy.CLIP


def _cuts_prediction(policy: AmbiguousPolicy) -> bool:
    return policy in (AmbiguousPolicy.CLIP, AmbiguousPolicy.CLIP_PREDICTIONS)


def _judge_side(side: SideTable, *, is_cut: bool) -> JudgedSide:
    area, sum_yx, pixels = side.area, side.sum_yx, side.area
    if is_cut and side.void_area.any():
        area = side.area - side.void_area
        # An object that is cut completely keeps its centroid, so that it can be shown.
        is_left = area > 0
        pixels = np.where(is_left, area, side.area)
        sum_yx = sum_yx - side.void_sum_yx * is_left[:, np.newaxis]
    return JudgedSide(
        area=area,
        centroid_yx_px=sum_yx / np.maximum(pixels, 1)[:, np.newaxis],
        gone=area == 0,
        ambiguous_share=side.void_area / np.maximum(side.area, 1),
        bbox=side.bbox,
    )
