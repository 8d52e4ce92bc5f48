"""The outcome of each object: status, cause, partner, IoU and distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.ambiguity import JudgedOverlap
from napari_panoptic.nuclei.causes import decide
from napari_panoptic.nuclei.distances import PairDistances
from napari_panoptic.nuclei.matching import NO_PARTNER, Matches
from napari_panoptic.nuclei.overlap import OverlapTable
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.vocabulary import CAUSES, STATUS_CODE, STATUSES, Side, Status
from napari_panoptic.values.windowed_labels import TiledPair

if TYPE_CHECKING:
    import pandas as pd

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
    "score",
)


@dataclass(frozen=True, eq=False)
class SideOutcomes:
    """The outcomes of one side; one row per object.

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
        object if it leaves none.
    centroid_yx_px
        float64 (n, 2): centroid of these pixels.
    bbox
        int32 (n, 4): bounding box of the whole object: y0, x0, y1, x1, half open.
    score
        float64 (n,): the model's confidence in the object, as its file has it; NaN if it has none.
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
    score: NDArray[np.float64]

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.ids)

    def row_of(self, id_: int) -> int | None:
        """Return the row of an id, or None if there is no such object."""
        row = int(np.searchsorted(self.ids, id_))
        return row if row < len(self.ids) and self.ids[row] == id_ else None

    def count(self, status: Status) -> int:
        """Count the objects of a status."""
        return int(np.count_nonzero(self.status == STATUS_CODE[status]))


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcomes of all objects of a label pair.

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
        """Return one side."""
        return self.reference if side is Side.REFERENCE else self.prediction

    def other(self, side: Side) -> SideOutcomes:
        """Return the opposite side."""
        return self.side(side.other)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per object with the columns ``OBJECT_COLUMNS``.

        Reference objects come first, each side by ascending id. Undefined
        values are NaN or, for partners and causes, missing or empty.
        """
        import pandas as pd

        frames = [self.side_frame(side) for side in Side]
        return pd.concat(frames, ignore_index=True)

    def side_frame(self, side: Side) -> pd.DataFrame:
        """Return the rows of one side as `to_frame` has them."""
        import pandas as pd

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
                "score": own.score,
            },
            columns=list(OBJECT_COLUMNS),
        )


def outcomes(
    pair: LabelPair | TiledPair,
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
        Contour distances of ``matches.pair``, or None if they are not computed.
    near_iou
        Least IoU at which an unmatched pair explains a failure.
    """
    decided = decide(pair, judged, matches, near_iou=near_iou)

    def of_side(side: Side) -> SideOutcomes:
        labels, own, decisions = pair.side(side), judged.side(side), decided[side]
        hausdorff, hausdorff95 = np.full((2, len(labels)), np.nan)
        if distances is not None:
            rows = judged.rows_of_pairs(side)[matches.pair]
            hausdorff[rows] = distances.hausdorff_px
            hausdorff95[rows] = distances.hausdorff95_px
        return SideOutcomes(
            side=side,
            ids=labels.ids,
            class_index=labels.class_index,
            status=decisions.status,
            cause=decisions.cause,
            partner=matches.partner(side),
            iou=decisions.iou,
            hausdorff_px=hausdorff,
            hausdorff95_px=hausdorff95,
            area_px=np.where(own.gone, table.side(side).area, own.area),
            centroid_yx_px=own.centroid_yx_px,
            bbox=own.bbox,
            score=labels.scores,
        )

    return Outcomes(
        reference=of_side(Side.REFERENCE),
        prediction=of_side(Side.PREDICTION),
        class_names=pair.class_names,
        mpp=pair.mpp,
    )
