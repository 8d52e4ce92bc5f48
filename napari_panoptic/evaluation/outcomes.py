"""What became of each object, and why."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_panoptic.evaluation.ambiguity import JudgedOverlap, JudgedSide
from napari_panoptic.evaluation.distances import PairDistances
from napari_panoptic.evaluation.labels import LabelImage, LabelPair
from napari_panoptic.evaluation.matching import NO_PARTNER, Matches
from napari_panoptic.evaluation.overlap import OverlapTable, SideTable
from napari_panoptic.evaluation.settings import AmbiguousPolicy
from napari_panoptic.evaluation.vocabulary import (
    CAUSE_CODE,
    CAUSES,
    STATUS_CODE,
    STATUSES,
    Cause,
    Side,
    Status,
)

OBJECT_COLUMNS = (
    "side",
    "id",
    "class",
    "status",
    "cause",
    "partner_id",
    "partner_class",
    "iou",
    "hausdorff_px",
    "hausdorff_um",
    "area_px",
    "centroid_y_px",
    "centroid_x_px",
)


@dataclass(frozen=True, eq=False)
class SideOutcomes:
    """What became of the objects of one side; one row per object.

    Parameters
    ----------
    side
        Reference or prediction.
    ids
        int64 (n,): ids, ascending.
    class_index
        int16 (n,): 1-based index into the class list.
    status, cause
        int8 (n,): positions in ``STATUSES`` and ``CAUSES``.
    partner
        int32 (n,): row of the matched object on the other side, or -1.
    iou
        float64 (n,): IoU with the partner; for an unmatched object its best
        IoU with any object; NaN where ignored.
    hausdorff_px, hausdorff95_px
        float64 (n,): contour distances to the partner; NaN without one.
    area_px
        int64 (n,): pixels that the ambiguous policy leaves; all pixels of an
        object of which it leaves none.
    centroid_yx_px
        float64 (n, 2): centroid of these pixels.
    bbox
        int32 (n, 4): bounding box of the whole object: y0, x0, y1, x1, half open.
    """

    side: Side
    ids: NDArray[np.int64]
    class_index: NDArray[np.int16]
    status: NDArray[np.int8]
    cause: NDArray[np.int8]
    partner: NDArray[np.int32]
    iou: NDArray[np.float64]
    hausdorff_px: NDArray[np.float64]
    hausdorff95_px: NDArray[np.float64]
    area_px: NDArray[np.int64]
    centroid_yx_px: NDArray[np.float64]
    bbox: NDArray[np.int32]

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.ids)

    def row_of(self, id_: int) -> int | None:
        """Find the row of an id, or None where there is no such object."""
        row = int(np.searchsorted(self.ids, id_))
        return row if row < len(self.ids) and self.ids[row] == id_ else None

    def count(self, status: Status) -> int:
        """Count the objects of a status."""
        return int(np.count_nonzero(self.status == STATUS_CODE[status]))


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What became of every object of a label pair.

    Parameters
    ----------
    reference, prediction
        The two sides.
    class_names
        The scored classes, in order.
    mpp
        Micrometres per pixel, or None.
    """

    reference: SideOutcomes
    prediction: SideOutcomes
    class_names: tuple[str, ...]
    mpp: float | None

    def side(self, side: Side) -> SideOutcomes:
        """Give one side."""
        return self.reference if side is Side.REFERENCE else self.prediction

    def other(self, side: Side) -> SideOutcomes:
        """Give the side across."""
        return self.prediction if side is Side.REFERENCE else self.reference

    def to_frame(self) -> pd.DataFrame:
        """Give one row per object with the columns ``OBJECT_COLUMNS``.

        Reference objects come first, each side by ascending id. Undefined
        values are NaN or, for partners and causes, missing or empty.
        """
        frames = [self._side_frame(side) for side in Side]
        return pd.concat(frames, ignore_index=True)

    def _side_frame(self, side: Side) -> pd.DataFrame:
        own, other = self.side(side), self.other(side)
        names = np.array(self.class_names, dtype=object)
        matched = own.partner != NO_PARTNER
        partner_id = np.zeros(len(own), np.int64)
        partner_id[matched] = other.ids[own.partner[matched]]
        partner_class = np.full(len(own), "", dtype=object)
        partner_class[matched] = names[other.class_index[own.partner[matched]] - 1]
        return pd.DataFrame(
            {
                "side": np.full(len(own), str(side), dtype=object),
                "id": own.ids,
                "class": names[own.class_index - 1],
                "status": np.array([str(s) for s in STATUSES], dtype=object)[own.status],
                "cause": np.array([str(c) for c in CAUSES], dtype=object)[own.cause],
                "partner_id": pd.arrays.IntegerArray(partner_id, ~matched),
                "partner_class": partner_class,
                "iou": own.iou,
                "hausdorff_px": own.hausdorff_px,
                "hausdorff_um": own.hausdorff_px * (np.nan if self.mpp is None else self.mpp),
                "area_px": own.area_px,
                "centroid_y_px": own.centroid_yx_px[:, 0],
                "centroid_x_px": own.centroid_yx_px[:, 1],
            },
            columns=list(OBJECT_COLUMNS),
        )


def outcomes(
    pair: LabelPair,
    table: OverlapTable,
    judged: JudgedOverlap,
    matches: Matches,
    distances: PairDistances | None,
    *,
    near_iou: float,
) -> Outcomes:
    """Decide status and cause of every object.

    Parameters
    ----------
    pair, table, judged, matches
        The label pair and the stages before this one.
    distances
        Contour distances of ``matches.pair``, or None where not computed.
    near_iou
        Least IoU at which an unmatched pair explains a failure.
    """
    rows = judged.pair_reference[matches.pair]
    columns = judged.pair_prediction[matches.pair]
    same = pair.reference.class_index[rows] == pair.prediction.class_index[columns]
    matched_status = np.where(
        same, STATUS_CODE[Status.TP], STATUS_CODE[Status.MISCLASSIFIED]
    ).astype(np.int8)

    reference_status = _status(
        judged.reference, judged.policy, matches.reference_partner, Status.FN
    )
    prediction_status = _status(
        judged.prediction, judged.policy, matches.prediction_partner, Status.FP
    )
    reference_status[rows] = matched_status
    prediction_status[columns] = matched_status
    causes = _Causes(judged, matches, reference_status, prediction_status, near_iou)

    def side(
        which: Side,
        labels: LabelImage,
        counted: SideTable,
        status: NDArray[np.int8],
        cause: NDArray[np.int8],
    ) -> SideOutcomes:
        is_reference = which is Side.REFERENCE
        own = judged.reference if is_reference else judged.prediction
        partner = matches.reference_partner if is_reference else matches.prediction_partner
        matched_rows = rows if is_reference else columns
        pair_rows = judged.pair_reference if is_reference else judged.pair_prediction
        hausdorff, hausdorff95 = np.full((2, len(labels)), np.nan)
        if distances is not None:
            hausdorff[matched_rows] = distances.hausdorff_px
            hausdorff95[matched_rows] = distances.hausdorff95_px
        iou = np.zeros(len(labels))
        np.maximum.at(iou, pair_rows, judged.iou)
        iou[matched_rows] = judged.iou[matches.pair]
        iou[status == STATUS_CODE[Status.IGNORED]] = np.nan
        return SideOutcomes(
            side=which,
            ids=labels.ids,
            class_index=labels.class_index,
            status=status,
            cause=cause,
            partner=partner,
            iou=iou,
            hausdorff_px=hausdorff,
            hausdorff95_px=hausdorff95,
            area_px=np.where(own.gone, counted.area, own.area),
            centroid_yx_px=own.centroid_yx_px,
            bbox=counted.bbox,
        )

    decided = Outcomes(
        reference=side(
            Side.REFERENCE, pair.reference, table.reference, reference_status, causes.reference
        ),
        prediction=side(
            Side.PREDICTION,
            pair.prediction,
            table.prediction,
            prediction_status,
            causes.prediction,
        ),
        class_names=pair.class_names,
        mpp=pair.mpp,
    )
    return _of_objects_with_pixels(decided, table)


def _of_objects_with_pixels(decided: Outcomes, table: OverlapTable) -> Outcomes:
    """Drop the rows that editing has emptied, and sort the others by id.

    Label images from files have no such rows and are sorted already.
    """
    kept: dict[Side, NDArray[np.int64]] = {}
    for side, counted in zip(Side, (table.reference, table.prediction), strict=True):
        rows = np.flatnonzero(counted.area > 0)
        kept[side] = rows[np.argsort(decided.side(side).ids[rows], kind="stable")]
    unchanged = all(
        np.array_equal(rows, np.arange(len(decided.side(side)))) for side, rows in kept.items()
    )
    if unchanged:
        return decided

    def reordered(side: Side) -> SideOutcomes:
        own, rows = decided.side(side), kept[side]
        other_rows = kept[Side.PREDICTION if side is Side.REFERENCE else Side.REFERENCE]
        position = np.full(len(decided.other(side)) + 1, NO_PARTNER, np.int32)
        position[other_rows] = np.arange(len(other_rows), dtype=np.int32)
        arrays = {f.name: getattr(own, f.name)[rows] for f in fields(own) if f.name != "side"}
        arrays["partner"] = position[own.partner[rows]]
        return SideOutcomes(side=side, **arrays)

    return replace(
        decided,
        reference=reordered(Side.REFERENCE),
        prediction=reordered(Side.PREDICTION),
    )


def _status(
    side: JudgedSide, policy: AmbiguousPolicy, partner: NDArray[np.int32], unmatched: Status
) -> NDArray[np.int8]:
    status = np.full(len(partner), STATUS_CODE[unmatched], np.int8)
    ignored = side.gone
    if policy is AmbiguousPolicy.MAJORITY:
        ignored = (partner == NO_PARTNER) & (side.ambiguous_share > 0.5)
    status[ignored] = STATUS_CODE[Status.IGNORED]
    return status


class _Causes:
    """Why objects are unmatched: the rules of both sides over the same pairs.

    A pair is "inside" one of its objects where the intersection is more than
    half of the other one. Ignored objects take no part.
    """

    def __init__(
        self,
        judged: JudgedOverlap,
        matches: Matches,
        reference_status: NDArray[np.int8],
        prediction_status: NDArray[np.int8],
        near_iou: float,
    ) -> None:
        ignored = STATUS_CODE[Status.IGNORED]
        takes_part = (reference_status[judged.pair_reference] != ignored) & (
            prediction_status[judged.pair_prediction] != ignored
        )
        self.r = judged.pair_reference[takes_part]
        self.p = judged.pair_prediction[takes_part]
        self.shared = judged.intersection[takes_part]
        self.iou = judged.iou[takes_part]
        self.n_r, self.n_p = len(reference_status), len(prediction_status)
        self.prediction_inside = 2 * self.shared > judged.prediction.area[self.p]
        self.reference_inside = 2 * self.shared > judged.reference.area[self.r]
        self.reference_area = judged.reference.area
        self.prediction_area = judged.prediction.area
        self.fn = reference_status == STATUS_CODE[Status.FN]
        self.fp = prediction_status == STATUS_CODE[Status.FP]
        self.reference_spill = judged.reference.ambiguous_share > 0.5
        self.prediction_spill = judged.prediction.ambiguous_share > 0.5
        self.matched_reference = matches.reference_partner != NO_PARTNER
        self.swallowed = np.bincount(self.p[self.reference_inside], minlength=self.n_p)
        self.near_iou = near_iou

    @cached_property
    def reference(self) -> NDArray[np.int8]:
        """The cause code of every reference object."""
        rules = [
            (Cause.AMBIGUOUS_SPILL, self.reference_spill),
            (Cause.SPLIT, self._has_split_pattern()),
            (Cause.MERGED, self._any_r(self.reference_inside & (self.swallowed[self.p] >= 2))),
            *self._near_rules(self.r, self.n_r, self.prediction_area[self.p]),
            (Cause.MISSED, np.ones(self.n_r, bool)),
        ]
        return _first_that_applies(rules, self.fn)

    @cached_property
    def prediction(self) -> NDArray[np.int8]:
        """The cause code of every predicted object."""
        split = self.reference == CAUSE_CODE[Cause.SPLIT]
        rules = [
            (Cause.AMBIGUOUS_SPILL, self.prediction_spill),
            (Cause.FRAGMENT, self._any_p(self.prediction_inside & split[self.r])),
            (Cause.MERGER, self.swallowed >= 2),
            (
                Cause.DUPLICATE,
                self._any_p(self.prediction_inside & self.matched_reference[self.r]),
            ),
            *self._near_rules(self.p, self.n_p, self.reference_area[self.r]),
            (Cause.SPURIOUS, np.ones(self.n_p, bool)),
        ]
        return _first_that_applies(rules, self.fp)

    def _has_split_pattern(self) -> NDArray[np.bool_]:
        """Find objects that several predictions lie in and together mostly cover."""
        r = self.r[self.prediction_inside]
        pieces = np.bincount(r, minlength=self.n_r)
        covered = np.bincount(r, weights=self.shared[self.prediction_inside], minlength=self.n_r)
        return (pieces >= 2) & (2 * covered > self.reference_area)

    def _near_rules(
        self, rows: NDArray[np.int32], n: int, other_area: NDArray[np.int64]
    ) -> list[tuple[Cause, NDArray[np.bool_]]]:
        """Let the best unmatched counterpart decide between size and place."""
        candidates = np.flatnonzero(self.fn[self.r] & self.fp[self.p] & (self.iou >= self.near_iou))
        # Best IoU first; of equals the larger intersection, then the smaller
        # counterpart: what is equal after that gives the same cause, so that
        # causes do not depend on labels.
        order = candidates[
            np.lexsort(
                (
                    other_area[candidates],
                    -self.shared[candidates],
                    -self.iou[candidates],
                    rows[candidates],
                )
            )
        ]
        _, first = np.unique(rows[order], return_index=True)
        best = order[first]
        small = self.prediction_inside[best] & ~self.reference_inside[best]
        large = self.reference_inside[best] & ~self.prediction_inside[best]

        def where(chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
            found = np.zeros(n, bool)
            found[rows[best[chosen]]] = True
            return found

        return [
            (Cause.TOO_SMALL, where(small)),
            (Cause.TOO_LARGE, where(large)),
            (Cause.DISPLACED, where(~small & ~large)),
        ]

    def _any_r(self, pairs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        found = np.zeros(self.n_r, bool)
        found[self.r[pairs]] = True
        return found

    def _any_p(self, pairs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        found = np.zeros(self.n_p, bool)
        found[self.p[pairs]] = True
        return found


def _first_that_applies(
    rules: list[tuple[Cause, NDArray[np.bool_]]], unmatched: NDArray[np.bool_]
) -> NDArray[np.int8]:
    codes = np.zeros(len(unmatched), np.int8)
    for cause, applies in reversed(rules):
        codes[applies & unmatched] = CAUSE_CODE[cause]
    return codes
