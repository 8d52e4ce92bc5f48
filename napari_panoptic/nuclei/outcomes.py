"""The outcome of each object: status, cause, partner, IoU and distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.ambiguity import JudgedOverlap
from napari_panoptic.nuclei.causes import Statuses, decide
from napari_panoptic.nuclei.distances import PairDistances
from napari_panoptic.nuclei.matching import NO_PARTNER, Matches
from napari_panoptic.nuclei.overlap import OverlapTable
from napari_panoptic.tables.columns import TableSpec, unshown
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.vocabulary import (
    CAUSES,
    SIDES,
    STATUS_CODE,
    STATUSES,
    Side,
    Status,
    of_side,
)
from napari_panoptic.values.windowed_labels import TiledPair

if TYPE_CHECKING:
    import pandas as pd

OBJECTS = TableSpec(
    "objects.csv",
    "object, team and region",
    [
        unshown("team", "patient", "region"),
        unshown("side", "id", "class", "status", "cause", "partner_id", "partner_class"),
        unshown(
            "iou",
            about="with the partner; of an unmatched object its best IoU, of an ignored one empty",
        ),
        unshown("hausdorff_px", "hausdorff_um"),
        unshown("area_px", about="after the policy"),
        unshown("centroid_y_px", "centroid_x_px"),
        unshown("score", about="of the model, empty if its file has none; edited objects keep it"),
    ],
)
PLACE_COLUMNS = ("team", "patient", "region")
"""The first columns of `OBJECTS`: the place of an object."""
OBJECT_COLUMNS = tuple(OBJECTS.keys[len(PLACE_COLUMNS) :])
"""Its other columns: the object."""
NO_ID = -1
ObjectColumns = Mapping[str, NDArray[Any]]
"""Name -> array (n, …), one row per object.

``side`` (int8, position in ``SIDES``), ``id``, ``row`` (in the outcomes), ``class`` and
``partner_class`` (1-based, 0 for none), ``status`` and ``cause`` (codes), ``partner_id`` (`NO_ID`
for none), ``iou``, ``hausdorff_px`` and ``hausdorff95_px`` (NaN if unknown), ``area_px``,
``centroid_yx_px`` (n, 2), ``bbox`` (n, 4): y0, x0, y1, x1, half open, and ``score``.
"""


@dataclass(frozen=True, eq=False)
class SideOutcomes:
    """The outcomes of one side; one row per object."""

    #: Reference or prediction.
    side: Side
    #: int64 (n,): ids, ascending.
    ids: NDArray[np.int64]
    #: int16 (n,): 1-based index into the class list.
    class_index: NDArray[np.int16]
    #: int8 (n,): positions in ``STATUSES`` and ``CAUSES``.
    status: NDArray[np.int8]
    cause: NDArray[np.int8]
    #: int32 (n,): row of the matched object on the other side, or -1.
    partner: NDArray[np.int32]
    #: float64 (n,): IoU with the partner; for an unmatched object its best IoU with any object; NaN
    #: where ignored.
    iou: NDArray[np.float64]
    #: float64 (n,): contour distances to the partner; NaN without one.
    hausdorff_px: NDArray[np.float64]
    hausdorff95_px: NDArray[np.float64]
    #: int64 (n,): pixels that the ambiguous policy leaves; all pixels of an object if it leaves
    #: none.
    area_px: NDArray[np.int64]
    #: float64 (n, 2): centroid of these pixels.
    centroid_yx_px: NDArray[np.float64]
    #: int32 (n, 4): bounding box of the whole object: y0, x0, y1, x1, half open.
    bbox: NDArray[np.int32]
    #: float64 (n,): the model's confidence in the object, as its file has it; NaN if it has none.
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
    """The outcomes of all objects of a label pair."""

    #: The two sides.
    reference: SideOutcomes
    prediction: SideOutcomes
    #: The scored classes, in order.
    class_names: tuple[str, ...]
    #: Micrometres per pixel, or None.
    mpp: float | None

    def side(self, side: Side) -> SideOutcomes:
        """Return one side."""
        return of_side(side, self.reference, self.prediction)

    def other(self, side: Side) -> SideOutcomes:
        """Return the opposite side."""
        return self.side(side.other)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per object with the columns ``OBJECT_COLUMNS``.

        Reference objects come first, each side by ascending id. Undefined
        values are NaN or, for partners and causes, missing or empty.
        """
        return object_frame(self.all_columns(), self.class_names, self.mpp)

    def all_columns(self) -> dict[str, NDArray[Any]]:
        """Return the objects of both sides as columns of numbers, in the order of `to_frame`."""
        parts = [self.columns(side) for side in SIDES]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def side_frame(self, side: Side) -> pd.DataFrame:
        """Return the rows of one side as `to_frame` has them."""
        return object_frame(self.columns(side), self.class_names, self.mpp)

    def columns(self, side: Side, rows: NDArray[np.integer] | None = None) -> ObjectColumns:
        """Return the objects of a side, or those of some rows (k,), as columns of numbers."""
        own, other = self.side(side), self.other(side)
        chosen = np.arange(len(own)) if rows is None else rows
        partner = own.partner[chosen]
        is_matched = partner != NO_PARTNER
        partner_id = np.full(len(chosen), NO_ID, np.int64)
        partner_class = np.zeros(len(chosen), np.int16)
        partner_id[is_matched] = other.ids[partner[is_matched]]
        partner_class[is_matched] = other.class_index[partner[is_matched]]
        return {
            "side": np.full(len(chosen), SIDES.index(side), np.int8),
            "id": own.ids[chosen],
            "row": chosen.astype(np.int64),
            "class": own.class_index[chosen],
            "status": own.status[chosen],
            "cause": own.cause[chosen],
            "partner_id": partner_id,
            "partner_class": partner_class,
            "iou": own.iou[chosen],
            "hausdorff_px": own.hausdorff_px[chosen],
            "hausdorff95_px": own.hausdorff95_px[chosen],
            "area_px": own.area_px[chosen],
            "centroid_yx_px": own.centroid_yx_px[chosen],
            "bbox": own.bbox[chosen],
            "score": own.score[chosen],
        }


def words_of(words: Sequence[str], codes: NDArray[np.integer]) -> NDArray[np.object_]:
    """Return the word of each code, such as one of ``STATUSES``."""
    found: NDArray[np.object_] = np.array([str(word) for word in words], object)[codes]
    return found


def object_frame(
    columns: ObjectColumns,
    class_names: Sequence[str],
    mpp: float | NDArray[np.float64] | None,
) -> pd.DataFrame:
    """Return columns of numbers as a table with the columns `OBJECT_COLUMNS`, codes as words.

    Parameters
    ----------
    columns, class_names
        The objects, and the scored classes in order.
    mpp
        Micrometres per pixel, of all objects or of each; None or NaN if unknown.
    """
    import pandas as pd

    classes, partner_id = ("", *class_names), columns["partner_id"]
    values = {name: columns[name] for name in OBJECT_COLUMNS if name in columns} | {
        "side": words_of(SIDES, columns["side"]),
        "class": words_of(classes, columns["class"]),
        "status": words_of(STATUSES, columns["status"]),
        "cause": words_of(CAUSES, columns["cause"]),
        "partner_id": pd.arrays.IntegerArray(partner_id, partner_id == NO_ID),
        "partner_class": words_of(classes, columns["partner_class"]),
        "hausdorff_um": columns["hausdorff_px"] * (np.nan if mpp is None else mpp),
        "centroid_y_px": columns["centroid_yx_px"][:, 0],
        "centroid_x_px": columns["centroid_yx_px"][:, 1],
    }
    return pd.DataFrame(values, columns=list(OBJECT_COLUMNS))


def outcomes(
    pair: LabelPair | TiledPair,
    table: OverlapTable,
    judged: JudgedOverlap,
    matches: Matches,
    statuses: Statuses,
    distances: PairDistances | None,
    *,
    near_iou: float,
) -> Outcomes:
    """Decide the cause of every failure, and gather what is known of every object.

    Parameters
    ----------
    pair, table, judged, matches, statuses
        The label pair and the stages before this one.
    distances
        Contour distances of ``matches.pair``, or None if they are not computed.
    near_iou
        Least IoU at which an unmatched pair explains a failure.
    """
    decided = decide(judged, matches, statuses, near_iou=near_iou)

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
