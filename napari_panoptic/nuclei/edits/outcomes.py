"""The outcomes of a label pair under edit, decided anew where an edit can have changed them.

Matching, status and cause of an object depend on the objects that chains of
overlaps join to it, and on no other: so these are decided anew, by the same
functions as all objects in a full evaluation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled
from napari_panoptic.nuclei.ambiguity import JudgedOverlap, JudgedSide, judge
from napari_panoptic.nuclei.causes import Decisions, decide
from napari_panoptic.nuclei.distance_cache import KnownDistances, matched_distances
from napari_panoptic.nuclei.distances import PairDistances
from napari_panoptic.nuclei.edits.columns import GrowingColumn
from napari_panoptic.nuclei.edits.pairs import Joined
from napari_panoptic.nuclei.matching import NO_PARTNER, Matches, match
from napari_panoptic.nuclei.outcomes import (
    Outcomes,
    SideOutcomes,
    slot_outcomes,
)
from napari_panoptic.nuclei.overlap import OverlapTable, SideTable
from napari_panoptic.nuclei.values.labels import LabelImage, LabelPair
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.nuclei.values.vocabulary import Side

# The columns that are decided anew, as the kernel below takes them.
_DECIDED = ("status", "cause", "partner", "iou", "area_px", "centroid_yx_px", "bbox")
# What objects begin with that come to be.
_BLANK = {"partner": NO_PARTNER, "hausdorff_px": np.nan, "hausdorff95_px": np.nan}
# Between so few rows that are left out, the others are copied in whole stretches.
_FEW_GONE = 50
Column = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Edited:
    """A label pair with edits, as far as they concern outcomes.

    Parameters
    ----------
    pair
        The label pair as it is now.
    joined
        The objects that the edits concern, with all that overlaps join to them.
    reference, prediction
        The counts of these objects, in this order.
    table
        The counts of all objects, which the next edit may change, and of the pairs
        that edits concern.
    repixelled
        The rows of each side whose pixels, or ambiguous pixels, are others.
    """

    pair: LabelPair
    joined: Joined
    reference: SideTable
    prediction: SideTable
    table: OverlapTable
    repixelled: Mapping[Side, Collection[int]]


class LiveOutcomes:
    """The outcomes of a label pair under one set of settings, through its edits.

    Parameters
    ----------
    pair, table
        The label pair and its counts, to start from.
    settings
        How to evaluate.
    known
        Distances that were measured on the same pixels before.
    """

    def __init__(
        self,
        pair: LabelPair,
        table: OverlapTable,
        settings: EvaluationSettings,
        known: KnownDistances,
    ) -> None:
        self.settings = settings
        judged = judge(table, settings.ambiguous)
        matches = match(pair, table, judged, settings)
        distances: PairDistances | None = None
        if settings.distances:
            distances, known = matched_distances(
                pair, table, judged, matches, settings.outlines, known
            )
        self.distances = known
        slots = slot_outcomes(pair, table, judged, matches, distances, near_iou=settings.near_iou)
        self._class_names, self._mpp, self._pair = pair.class_names, pair.mpp, pair
        self._columns = {side: _Columns(slots.side(side)) for side in Side}
        self._judged = {
            side: {f.name: GrowingColumn(getattr(own, f.name).copy()) for f in fields(own)}
            for side, own in zip(Side, (judged.reference, judged.prediction), strict=True)
        }

    def outcomes(self) -> Outcomes:
        """Return the outcomes as they are now; later edits do not change them."""
        reference, prediction = (self._columns[side] for side in Side)
        reference.put_in_order()
        prediction.put_in_order()
        return Outcomes(
            reference.frozen(prediction.order),
            prediction.frozen(reference.order),
            self._class_names,
            self._mpp,
        )

    def follow(self, edited: Edited) -> None:
        """Decide anew what edits concern."""
        self._take_classes(edited.pair)
        joined, settings = edited.joined, self.settings
        counted = _counted_apart(edited)
        apart = judge(counted, settings.ambiguous)
        rows = joined.reference, joined.prediction
        matches = match(edited.pair, counted, apart, settings, rows=rows)
        reference, prediction = decide(
            apart,
            matches,
            edited.pair.reference.class_index[joined.reference],
            edited.pair.prediction.class_index[joined.prediction],
            near_iou=settings.near_iou,
        )
        if settings.distances:
            self._measure(edited, self._in_place(apart, joined), matches)
        self._columns[Side.REFERENCE].decided(
            rows, edited.reference, apart.reference, reference, matches.reference_partner
        )
        self._columns[Side.PREDICTION].decided(
            rows[::-1], edited.prediction, apart.prediction, prediction, matches.prediction_partner
        )

    def _take_classes(self, pair: LabelPair) -> None:
        """Take over ids and classes, and make room for new objects."""
        if pair is self._pair:
            return
        self._pair = pair
        for side, labels in zip(Side, (pair.reference, pair.prediction), strict=True):
            more = len(labels) - len(self._judged[side]["area"].values)
            self._columns[side].take_classes(labels, more)
            for column in self._judged[side].values() if more else ():
                column.append_blank(more, 0)

    def _in_place(self, apart: JudgedOverlap, joined: Joined) -> JudgedOverlap:
        """Put what was judged apart among all other objects; no pairs but these."""
        for side, rows, own in (
            (Side.REFERENCE, joined.reference, apart.reference),
            (Side.PREDICTION, joined.prediction, apart.prediction),
        ):
            for name, column in self._judged[side].items():
                column.values[rows] = getattr(own, name)
        reference, prediction = (
            JudgedSide(**{name: column.values for name, column in self._judged[side].items()})
            for side in Side
        )
        return JudgedOverlap(
            policy=apart.policy,
            reference=reference,
            prediction=prediction,
            pair_reference=joined.reference[apart.pair_reference].astype(np.int32),
            pair_prediction=joined.prediction[apart.pair_prediction].astype(np.int32),
            intersection=apart.intersection,
            iou=apart.iou,
        )

    def _measure(self, edited: Edited, judged: JudgedOverlap, matches: Matches) -> None:
        """Measure the pairs that edits concern; to be called before partners are written.

        Pairs that were matched before are as far apart as then, unless pixels
        of theirs are others.
        """
        rows = judged.pair_reference[matches.pair]
        columns = judged.pair_prediction[matches.pair]
        before = self._columns[Side.REFERENCE]
        new = before["partner"][rows] != columns
        new |= _among(rows, edited.repixelled[Side.REFERENCE])
        new |= _among(columns, edited.repixelled[Side.PREDICTION])
        distances, _ = matched_distances(
            edited.pair,
            edited.table,
            judged,
            Matches(matches.reference_partner, matches.prediction_partner, matches.pair[new]),
            self.settings.outlines,
            KnownDistances.none(),
        )
        for name in ("hausdorff_px", "hausdorff95_px"):
            figures = before[name][rows]
            figures[new] = getattr(distances, name)
            for side, at, joined in (
                (Side.REFERENCE, rows, edited.joined.reference),
                (Side.PREDICTION, columns, edited.joined.prediction),
            ):
                column = np.full(len(joined), np.nan)
                column[np.searchsorted(joined, at)] = figures
                self._columns[side].write(joined, **{name: column})


class _Columns:
    """The columns of one side's outcomes, written in place and frozen on demand."""

    def __init__(self, start: SideOutcomes) -> None:
        self._side, self._ids, self._class_index = start.side, start.ids, start.class_index
        self._columns = {
            f.name: GrowingColumn(getattr(start, f.name).copy())
            for f in fields(start)
            if f.name not in ("side", "ids", "class_index")
        }
        self._frozen: dict[str, Column] = {}
        self.order = _Order.of(self._ids, np.flatnonzero(start.area_px == 0))
        self._came_or_went = False
        self._order_across: _Order | None = None

    def __getitem__(self, name: str) -> Column:
        return self._columns[name].values

    def decided(
        self,
        rows: tuple[NDArray[np.int64], NDArray[np.int64]],
        counted: SideTable,
        judged: JudgedSide,
        decisions: Decisions,
        partner: NDArray[np.int32],
    ) -> None:
        """Write what was counted, judged and decided of some rows.

        `rows` are those of this side and of the other, among which `partner` counts.
        """
        changed, came_or_went = _put(
            tuple(self[name] for name in _DECIDED),
            (decisions.status, decisions.cause, partner, decisions.iou),
            (judged.area, judged.gone, judged.centroid_yx_px),
            (counted.area, counted.bbox),
            rows,
        )
        self._came_or_went |= came_or_went
        for name, is_changed in zip(_DECIDED, changed, strict=True):
            if is_changed:
                self._frozen.pop(name, None)

    def write(self, rows: NDArray[np.int64], **values: Column) -> None:
        """Write some rows of columns."""
        for name, new in values.items():
            column = self[name]
            if name in self._frozen and not (column[rows] == new).all():
                del self._frozen[name]
            column[rows] = new

    def take_classes(self, labels: LabelImage, more: int) -> None:
        """Take over ids and classes, with blank rows for new objects."""
        if self._class_index is not labels.class_index:
            self._frozen.pop("class_index", None)
        self._ids, self._class_index = labels.ids, labels.class_index
        for name, column in self._columns.items() if more else ():
            column.append_blank(more, _BLANK.get(name, 0))
        self._came_or_went |= more > 0

    def put_in_order(self) -> None:
        """Notice which objects have come to be or gone."""
        if self._came_or_went:
            self.order = _Order.of(self._ids, np.flatnonzero(self["area_px"] == 0))
            self._frozen.clear()
            self._came_or_went = False

    def frozen(self, across: _Order) -> SideOutcomes:
        """Return copies of the columns: of what was not written since the last time the same."""
        if self._order_across is not across:
            self._frozen.pop("partner", None)
            self._order_across = across
        columns: dict[str, Column] = {"ids": self._ids, "class_index": self._class_index}
        columns |= {name: column.values for name, column in self._columns.items()}
        for name, column in columns.items():
            if name not in self._frozen:
                self._frozen[name] = np.concatenate([column[part] for part in self.order.parts])
                if name == "partner" and across.places is not None:
                    self._frozen[name] = across.places[self._frozen[name]]
        return SideOutcomes(side=self._side, **self._frozen)


@dataclass(frozen=True, eq=False)
class _Order:
    """The objects of a side that have pixels, by ascending id.

    Parameters
    ----------
    ids, gone
        The ids of all rows, and the rows that have no pixel.
    parts
        The rows of the others in their order, in parts.
    places
        int32 (n + 1,): where each row comes to lie, -1 for what is gone and for
        no row (-1); None where all rows stay.
    """

    ids: NDArray[np.int64]
    gone: NDArray[np.int64]
    parts: Sequence[slice | NDArray[np.int64]]
    places: NDArray[np.int32] | None

    @classmethod
    def of(cls, ids: NDArray[np.int64], gone: NDArray[np.int64]) -> _Order:
        """Put the objects of a side in order."""
        is_ascending = bool((ids[1:] > ids[:-1]).all())
        if is_ascending and not len(gone):
            return cls(ids, gone, [slice(None)], None)
        kept = np.delete(np.arange(len(ids)), gone)
        parts: Sequence[slice | NDArray[np.int64]]
        if is_ascending and len(gone) <= _FEW_GONE:
            starts, stops = np.concatenate([[0], gone + 1]), np.concatenate([gone, [len(ids)]])
            parts = [slice(*part) for part in zip(starts.tolist(), stops.tolist(), strict=True)]
        else:
            kept = kept[np.argsort(ids[kept], kind="stable")]
            parts = [kept]
        places = np.full(len(ids) + 1, NO_PARTNER, np.int32)
        places[kept] = np.arange(len(kept), dtype=np.int32)
        return cls(ids, gone, parts, places)


def _counted_apart(edited: Edited) -> OverlapTable:
    """Return the counts of the objects that edits concern, as if there were no others."""
    joined = edited.joined
    return OverlapTable(
        reference=edited.reference,
        prediction=edited.prediction,
        pair_reference=joined.place_reference,
        pair_prediction=joined.place_prediction,
        intersection=joined.intersection,
        void_intersection=joined.void_intersection,
    )


def _among(rows: NDArray[np.int32], chosen: Collection[int]) -> NDArray[np.bool_]:
    return np.array([row in chosen for row in rows.tolist()], bool)


@compiled
def _put(
    columns: tuple[Column, ...],
    decided: tuple[Column, Column, Column, Column],
    judged: tuple[Column, Column, Column],
    counted: tuple[Column, Column],
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> tuple[tuple[bool, ...], bool]:
    """Write some rows of the columns named by `_DECIDED`.

    Returns
    -------
    changed
        Which columns may have other values now.
    came_or_went
        Whether an object has pixels that had none, or has none any more.
    """
    status, cause, partner, iou, area_px, centroid, bbox = columns
    new_status, new_cause, new_partner, new_iou = decided
    new_area, gone, new_centroid = judged
    counted_area, new_bbox = counted
    own, across = rows
    other_status = other_cause = other_partner = other_iou = False
    other_area = other_centroid = other_bbox = came_or_went = False
    for k in range(len(own)):
        row = own[k]
        other_status |= status[row] != new_status[k]
        status[row] = new_status[k]
        other_cause |= cause[row] != new_cause[k]
        cause[row] = new_cause[k]
        place = np.int32(across[new_partner[k]] if new_partner[k] >= 0 else NO_PARTNER)
        other_partner |= partner[row] != place
        partner[row] = place
        other_iou |= iou[row] != new_iou[k]  # NaN is other than NaN, which does no harm
        iou[row] = new_iou[k]
        pixels = counted_area[k] if gone[k] else new_area[k]
        came_or_went |= (area_px[row] == 0) != (pixels == 0)
        other_area |= area_px[row] != pixels
        area_px[row] = pixels
        for axis in range(2):
            other_centroid |= centroid[row, axis] != new_centroid[k, axis]
            centroid[row, axis] = new_centroid[k, axis]
        for axis in range(4):
            other_bbox |= bbox[row, axis] != new_bbox[k, axis]
            bbox[row, axis] = new_bbox[k, axis]
    changed = (
        other_status,
        other_cause,
        other_partner,
        other_iou,
        other_area,
        other_centroid,
        other_bbox,
    )
    return changed, came_or_went
