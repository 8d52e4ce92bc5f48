"""Apply one of the four ambiguous policies to an overlap table, and leave out the zone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.overlap import OverlapTable, SideTable
from napari_panoptic.values.settings import AmbiguousPolicy, EvaluationSettings
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

    #: The policy applied, and the share of an object's area in ambiguous areas above which it is
    #: ignored.
    policy: AmbiguousPolicy
    share_limit: float
    #: The counts of the pixels outside of the zone; those of all pixels without one.
    counted: OverlapTable
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
        return cuts_reference(self.policy)

    @property
    def cuts_prediction(self) -> bool:
        """Whether ambiguous pixels are cut from predicted objects."""
        return cuts_prediction(self.policy)

    def has_rules_of(self, settings: EvaluationSettings) -> bool:
        """Whether some settings have the same policy and share."""
        return (self.policy, self.share_limit) == (settings.ambiguous, settings.share_limit)

    def ignored_if_unmatched(self, side: Side) -> NDArray[np.bool_]:
        """Return bool (n,): which objects of a side are ignored unless they are matched."""
        own = self.side(side)
        if self.policy is AmbiguousPolicy.MAJORITY:
            return own.gone | (own.ambiguous_share > self.share_limit)
        return own.gone


def judge(
    table: OverlapTable, settings: EvaluationSettings, counted: OverlapTable | None = None
) -> JudgedOverlap:
    """Apply the ambiguous policy of some settings to an overlap table.

    Under ``majority`` objects keep all their pixels and only IoU leaves the
    ambiguous ones out, of intersection and union (Kirillov et al., Panoptic
    Segmentation, CVPR 2019, void rule).

    Parameters
    ----------
    table
        The counts of all pixels; not changed.
    settings
        Which pixels count: the ambiguous policy, and its share.
    counted
        The counts of the pixels outside of the zone of the settings, which have one; else None.
    """
    policy, counted = settings.ambiguous, table if counted is None else counted
    is_cut = {Side.REFERENCE: cuts_reference(policy), Side.PREDICTION: cuts_prediction(policy)}
    is_removed = {side: removed(table.side(side), side, settings) for side in Side}
    reference, prediction = (
        _judge_side(table.side(side), counted.side(side), is_removed[side], is_cut=is_cut[side])
        for side in Side
    )
    areas = reference.area, prediction.area
    intersection = counted.intersection
    if is_cut[Side.PREDICTION]:
        intersection = intersection - counted.void_intersection
    is_pair = intersection > 0
    for of, gone in zip(
        (counted.pair_reference, counted.pair_prediction), is_removed.values(), strict=True
    ):
        if gone.any():
            is_pair &= ~gone[of]
    counting = np.flatnonzero(is_pair)
    rows, columns = counted.pair_reference[counting], counted.pair_prediction[counting]
    intersection = common = intersection[counting]
    if policy is AmbiguousPolicy.MAJORITY:
        areas = (
            counted.reference.area - counted.reference.void_area,
            counted.prediction.area - counted.prediction.void_area,
        )
        common = common - counted.void_intersection[counting]
    union = areas[0][rows] + areas[1][columns] - common
    iou = np.divide(common, union, out=np.zeros(len(common)), where=union > 0)
    return JudgedOverlap(
        policy,
        settings.share_limit,
        counted,
        reference,
        prediction,
        rows,
        columns,
        intersection,
        iou,
    )


def cuts_reference(policy: AmbiguousPolicy) -> bool:
    """Whether a policy cuts ambiguous pixels from reference objects."""
    return policy is AmbiguousPolicy.CLIP


def cuts_prediction(policy: AmbiguousPolicy) -> bool:
    """Whether a policy cuts ambiguous pixels from predicted objects."""
    return policy in (AmbiguousPolicy.CLIP, AmbiguousPolicy.CLIP_PREDICTIONS)


def removed(table: SideTable, side: Side, settings: EvaluationSettings) -> NDArray[np.bool_]:
    """Return which objects (n,) of a side a policy leaves out, since too much of them is ambiguous.

    Only where it cuts ambiguous areas from the objects of this side.
    """
    policy = settings.ambiguous
    if not (cuts_reference(policy) if side is Side.REFERENCE else cuts_prediction(policy)):
        return np.zeros(len(table), np.bool_)
    is_removed: NDArray[np.bool_] = ambiguous_share(table) > settings.share_limit
    return is_removed


def ambiguous_share(side: SideTable) -> NDArray[np.float64]:
    """Return the share (n,) of each object's pixels in the ambiguous area."""
    share: NDArray[np.float64] = side.void_area / np.maximum(side.area, 1)
    return share


def _judge_side(
    whole: SideTable, counted: SideTable, is_removed: NDArray[np.bool_], *, is_cut: bool
) -> JudgedSide:
    area, sum_yx = counted.area, counted.sum_yx
    if is_cut and counted.void_area.any():
        area, sum_yx = area - counted.void_area, sum_yx - counted.void_sum_yx
    if is_removed.any():
        area = np.where(is_removed, 0, area)
    gone = area == 0
    pixels = area
    if gone.any():
        # An object without a pixel that counts keeps its centroid, so that it can be shown.
        pixels = np.where(gone, whole.area, area)
        sum_yx = np.where(gone[:, np.newaxis], whole.sum_yx, sum_yx)
    return JudgedSide(
        area=area,
        centroid_yx_px=sum_yx / np.maximum(pixels, 1)[:, np.newaxis],
        gone=gone,
        ambiguous_share=ambiguous_share(whole),
        bbox=whole.bbox,
    )
