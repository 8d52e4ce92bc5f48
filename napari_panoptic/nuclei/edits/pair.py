"""The overlap of two label images that somebody edits, kept up to date pixel by pixel.

A stroke changes some hundred pixels of millions. Counting starts from the
pixels that changed, never from the whole image, and distances are computed
again only for objects whose pixels changed. The result equals a full
recomputation after any sequence of edits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError, english_list
from napari_panoptic.kernels.counts import (
    AREA,
    FIRST,
    SUM_X,
    SUM_Y,
    VOID_AREA,
    VOID_SUM_X,
    VOID_SUM_Y,
    X0,
    X1,
    Y0,
    Y1,
    PairCounts,
    blank_rows,
)
from napari_panoptic.kernels.recount import (
    EditedSide,
    extent,
    numbers_in,
    recount_pixels,
    recount_void,
    recount_window,
    settle,
)
from napari_panoptic.nuclei.distance_cache import KnownDistances
from napari_panoptic.nuclei.edits.columns import GrowingColumn
from napari_panoptic.nuclei.edits.outcomes import Edited, LiveOutcomes
from napari_panoptic.nuclei.edits.pairs import LivePairs
from napari_panoptic.nuclei.edits.tables import LaterTable
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import count
from napari_panoptic.nuclei.overlap import OverlapTable, SideTable, overlap_table, side_table
from napari_panoptic.nuclei.values.labels import LabelImage, LabelPair
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.nuclei.values.vocabulary import Side

# Rows kept ready for new objects.
_SPARE_ROWS = 256
# Where edits concern more objects of a side, all are decided anew.
_FEW_OBJECTS = 1000


@dataclass(frozen=True)
class Edit:
    """What an edit changed.

    Parameters
    ----------
    side
        The side whose pixels were set.
    changed_px
        Number of pixels that have another id now.
    ids
        Ids that gained or lost pixels, ascending, without the background.
    """

    side: Side
    changed_px: int
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class IdWindow:
    """A part of an image, every pixel with the number of an id.

    Parameters
    ----------
    corner_yx
        Where its first pixel lies, in px.
    numbers
        uint16 image (y, x).
    ids
        int64 (k,): the id of each number; 0 is background.
    """

    corner_yx: tuple[int, int]
    numbers: NDArray[np.uint16]
    ids: NDArray[np.int64]


class _LiveSide:
    """The objects of one side, in slots that stay while the image is edited.

    A slot is a row that an object keeps even when its last pixel goes; such
    slots are left out of every result.
    """

    def __init__(self, labels: LabelImage, table: SideTable) -> None:
        self.class_names = labels.class_names
        self.index = labels.index.copy()
        self._ids = GrowingColumn(labels.ids)
        self._class_index = GrowingColumn(labels.class_index)
        self._original_ids = GrowingColumn(labels.original_ids)
        self._labels: LabelImage | None = None
        self._keep_counts_in(blank_rows(len(self.ids) + 1 + _SPARE_ROWS))
        objects = self.rows[1:]
        objects[:, AREA], objects[:, VOID_AREA] = table.area, table.void_area
        objects[:, [SUM_Y, SUM_X]] = table.sum_yx
        objects[:, [VOID_SUM_Y, VOID_SUM_X]] = table.void_sum_yx
        objects[:, [Y0, X0, Y1, X1]] = table.bbox
        objects[:, FIRST] = table.first_pixel
        objects[: len(table)][table.area == 0] = blank_rows(1)  # erased in an earlier copy
        self._table = LaterTable(table, len(table))
        self._stale: list[NDArray[np.int64]] = []
        self.slot_of = {int(id_): slot for slot, id_ in enumerate(self.ids)}

    @property
    def ids(self) -> NDArray[np.int64]:
        """int64 (n,): the id of each slot."""
        return self._ids.values

    @property
    def class_index(self) -> NDArray[np.int16]:
        """int16 (n,): the class of each slot."""
        return self._class_index.values

    @property
    def rows(self) -> NDArray[np.int64]:
        """int64 (n + 1, 11): the counts of each slot, after the background's."""
        return self._store[: len(self.ids) + 1]

    def set_class(self, slot: int, number: int) -> None:
        """Give an object another class; columns that were given away keep the one before."""
        changed = self.class_index.copy()
        changed[slot] = number
        self._class_index = GrowingColumn(changed)
        self._labels = None

    def _keep_counts_in(self, store: NDArray[np.int64]) -> None:
        self._store = store
        self.counted = EditedSide.untouched(self.index, store)
        objects = store[1:]
        self.seen = SideTable(
            area=objects[:, AREA],
            void_area=objects[:, VOID_AREA],
            sum_yx=objects[:, SUM_Y : SUM_X + 1],
            void_sum_yx=objects[:, VOID_SUM_Y : VOID_SUM_X + 1],
            bbox=objects[:, Y0 : X1 + 1],  # type: ignore[arg-type]
            first_pixel=objects[:, FIRST],
        )
        """Views of the counts, which the next edit changes; slots without pixels are odd."""

    def slots(self, ids: NDArray[np.int64], classes: Mapping[int, str]) -> NDArray[np.int32]:
        """Return the 1-based slot of each id, 0 for background; new ids get a slot.

        Ids without pixels get the class that is named for them, if any.
        """
        if len(ids) == 1:
            return self.slots_of_few(ids, classes)
        if ids.size and (ids == ids[0]).all():  # as in an undone stroke
            return np.full(ids.shape, self.slots_of_few(ids[:1], classes)[0], np.int32)
        unique, inverse = np.unique(ids, return_inverse=True)
        return self.slots_of_few(unique, classes)[inverse]

    def slots_of_few(self, ids: NDArray[np.int64], classes: Mapping[int, str]) -> NDArray[np.int32]:
        """Return the 1-based slot of each of some distinct ids, as :meth:`slots` does."""
        listed = ids.tolist()
        # Drawn again, an object without pixels is a new one.
        again = {
            self.slot_of[id_]: self._class_number(id_, classes[id_])
            for id_ in (set(listed) & classes.keys() if classes else ())
            if id_ in self.slot_of and not self.rows[self.slot_of[id_] + 1, AREA]
        }
        self._add([id_ for id_ in listed if id_ and id_ not in self.slot_of], classes)
        for slot, number in again.items():
            if self.class_index[slot] != number:
                self.set_class(slot, number)
        slots = [self.slot_of[id_] + 1 if id_ else 0 for id_ in listed]
        return np.array(slots, np.int32)

    def _add(self, ids: list[int], classes: Mapping[int, str]) -> None:
        if not ids:
            return
        numbers = [self._class_number(id_, classes.get(id_)) for id_ in ids]
        for slot, id_ in enumerate(ids, start=len(self.ids)):
            self.slot_of[id_] = slot
        self._ids.append(np.array(ids, np.int64))
        self._class_index.append(np.array(numbers, np.int16))
        self._original_ids.append(np.array(ids, np.int64))
        if len(self.ids) >= len(self._store):
            more = blank_rows(len(ids) + _SPARE_ROWS)
            self._keep_counts_in(np.concatenate([self._store, more]))
        self._labels = None

    def _class_number(self, id_: int, class_name: str | None) -> int:
        if id_ < 0:
            raise LabelError(f"ids must be positive, found {id_}", object_id=id_)
        if class_name not in self.class_names:
            raise LabelError(
                f"a new object needs a class, one of {english_list(self.class_names)}; "
                f"found {class_name}",
                object_id=id_,
            )
        return self.class_names.index(str(class_name)) + 1

    def take_touched(self) -> NDArray[np.int64]:
        """List the rows that were touched since the last time, and make sure of their places."""
        touched = settle(self.counted) - 1
        if len(touched):
            self._stale.append(touched)
        return touched

    def table(self) -> SideTable:
        """Freeze the counts; what is frozen already is given again."""
        if self._stale:
            rows = np.concatenate(self._stale)
            self._stale.clear()
            self._table = self._table.rewritten(rows, self.table_of(rows), len(self.ids))
        return self._table

    def table_of(self, slots: NDArray[np.int64]) -> SideTable:
        """Freeze the counts of some slots (0-based)."""
        table = side_table(self.rows, self.index.shape, slots + 1)
        if not table.area.all():
            gone = table.area == 0  # such slots have no place
            table.bbox[gone], table.first_pixel[gone] = 0, 0
        return table

    def labels(self) -> LabelImage:
        """Return a view of the labels; its pixels change with the next edit."""
        if self._labels is None:
            self._labels = LabelImage(
                index=self.index,
                ids=self.ids,
                class_index=self.class_index,
                original_ids=self._original_ids.values,
                class_names=self.class_names,
            )
        return self._labels


class LiveEvaluation:
    """A label pair under edit, evaluated anew after each edit at the edit's cost.

    Parameters
    ----------
    pair
        What to start from. It is copied: the original is never changed.
    known
        What came of evaluating the very same images, if that is known: its overlap
        table and distances are taken over.
    """

    def __init__(self, pair: LabelPair, *, known: Evaluation | None = None) -> None:
        table = overlap_table(pair) if known is None else known.table
        self._pair = pair
        self._void = pair.ambiguous
        self._sides = {
            Side.REFERENCE: _LiveSide(pair.reference, table.reference),
            Side.PREDICTION: _LiveSide(pair.prediction, table.prediction),
        }
        self._pairs = LivePairs(table)
        self._outcomes: LiveOutcomes | None = None
        self._known = KnownDistances.none() if known is None else known.distances
        # Rows with other pixels since `_known` was measured, and since outcomes
        # were decided last; rows that any of their rules may see otherwise since then.
        self._unmeasured: dict[Side, set[int]] = {side: set() for side in Side}
        self._repixelled: dict[Side, set[int]] = {side: set() for side in Side}
        self._concerned: dict[Side, set[int]] = {side: set() for side in Side}

    def set_pixels(
        self,
        side: Side,
        y: NDArray[np.integer],
        x: NDArray[np.integer],
        ids: NDArray[np.integer] | int,
        *,
        classes: Mapping[int, str] | None = None,
    ) -> Edit:
        """Set pixels of one side to ids, as a stroke, a fill, an undo or anything else does.

        Parameters
        ----------
        side
            The side that is edited.
        y, x
            Coordinates (n,) in px, each pixel at most once.
        ids
            One id for all, or one per pixel (n,); 0 erases.
        classes
            Id -> class name, for ids that are new or have no pixel; a known id
            without one keeps its class.

        Raises
        ------
        LabelError
            For a new id without a class, pixels outside the image, or more y than x;
            nothing is changed then.
        """
        own = self._sides[side]
        ys, xs = np.asarray(y, np.int64), np.asarray(x, np.int64)
        if ys.shape != xs.shape:
            raise LabelError(f"each pixel needs y and x, found {len(ys)} and {len(xs)}")
        if not len(ys):
            return Edit(side, 0, ())
        self._check_inside(*extent(ys, xs))
        wanted = np.asarray(ids, np.int64)
        wanted = np.broadcast_to(wanted, ys.shape) if wanted.ndim else wanted.reshape(1)
        slots = own.slots(wanted, classes or {})
        changed, pairs = recount_pixels(
            own.counted,
            self._other(side).index,
            self._void,
            ys,
            xs,
            slots,
            is_reference=side is Side.REFERENCE,
        )
        return self._after(side, changed, pairs)

    def set_window(
        self, side: Side, window: IdWindow, *, classes: Mapping[int, str] | None = None
    ) -> Edit:
        """Set all pixels of a window, as :meth:`set_pixels` does; for huge edits.

        Raises
        ------
        LabelError
            For a new id without a class, or a number that stands for no id;
            nothing is changed then.
        """
        own = self._sides[side]
        height, width = window.numbers.shape
        top, left = window.corner_yx
        if not window.numbers.size:
            return Edit(side, 0, ())
        self._check_inside(top, left, top + height, left + width)
        numbers = np.ascontiguousarray(window.numbers, np.uint16)
        present = numbers_in(numbers)
        if present[-1] >= len(window.ids):
            raise LabelError(f"found the number {present[-1]}, there are {len(window.ids)} ids")
        slot_of_number = np.zeros(int(present[-1]) + 1, np.int32)
        slot_of_number[present] = own.slots_of_few(window.ids[present], classes or {})
        changed, pairs = recount_window(
            own.counted,
            self._other(side).index,
            self._void,
            (top, left),
            numbers,
            slot_of_number,
            is_reference=side is Side.REFERENCE,
        )
        return self._after(side, changed, pairs)

    def set_ambiguous(self, ambiguous: NDArray[np.bool_] | None) -> None:
        """Replace the ambiguous area; counted again where it differs from the one before.

        Parameters
        ----------
        ambiguous
            bool image (y, x), or None. It is not copied: nobody may change it afterwards.
        """
        before, self._void = self._void, ambiguous
        self._pair = replace(self._pair, ambiguous=ambiguous)
        reference, prediction = (self._sides[side].counted for side in Side)
        self._add_shared(*recount_void(reference, prediction, before, ambiguous))
        for side, live in self._sides.items():
            self._repixelled[side].update(live.take_touched().tolist())

    def set_class(self, side: Side, id_: int, class_name: str) -> None:
        """Give an object another class.

        Raises
        ------
        LabelError
            For an object that is not there, or an unknown class.
        """
        own = self._sides[side]
        if id_ not in own.slot_of or class_name not in own.class_names:
            raise LabelError(f"there is no object {id_} or no class {class_name} on this side")
        own.set_class(own.slot_of[id_], own.class_names.index(class_name) + 1)
        self._concerned[side].add(own.slot_of[id_])

    def pair(self) -> LabelPair:
        """Return the label pair as it is now: views that the next edit changes."""
        reference, prediction = (self._sides[side].labels() for side in Side)
        if self._pair.reference is not reference or self._pair.prediction is not prediction:
            self._pair = replace(self._pair, reference=reference, prediction=prediction)
        return self._pair

    def labels(self, side: Side) -> LabelImage:
        """Return a copy of one side as it is now, with the objects that have a pixel."""
        return self._sides[side].labels().tidied()

    def table(self) -> OverlapTable:
        """Return the counts as they are now."""
        return self._pairs.table(*(self._sides[side].table() for side in Side))

    def evaluate(self, settings: EvaluationSettings) -> Evaluation:
        """Evaluate the pair as it is now; equal to a full evaluation.

        Under the settings of the last call only those objects are decided anew
        that edits since then can concern. Distances of pairs whose objects have
        the same pixels as in an earlier call are taken over from it.
        """
        result = self.decide(settings).outcomes()
        return Evaluation(
            pair=self.pair(),
            settings=settings,
            table=self.table(),
            outcomes=result,
            counts=count(result),
            distances=KnownDistances.none() if any(self._unmeasured.values()) else self._known,
        )

    def decide(self, settings: EvaluationSettings) -> LiveOutcomes:
        """Decide what became of the objects that edits since the last call concern."""
        now = self._outcomes
        if now is None or now.settings != settings:
            return self._decide_all(settings)
        if not any(rows for of in (self._concerned, self._repixelled) for rows in of.values()):
            return now
        edited = self._edited()
        if edited is None:
            return self._decide_all(settings)
        now.follow(edited)
        for side, rows in self._repixelled.items():
            self._unmeasured[side] |= rows
        self._forget_edits()
        return now

    def _decide_all(self, settings: EvaluationSettings) -> LiveOutcomes:
        known = self._known.without(*_rows(self._unmeasured)).without(*_rows(self._repixelled))
        self._outcomes = LiveOutcomes(self.pair(), self.table(), settings, known)
        self._known = self._outcomes.distances
        self._unmeasured = {side: set() for side in Side}
        self._forget_edits()
        return self._outcomes

    def _forget_edits(self) -> None:
        self._repixelled = {side: set() for side in Side}
        self._concerned = {side: set() for side in Side}

    def _edited(self) -> Edited | None:
        """Find out what edits concern; None where that is too much."""
        concerned = {side: self._concerned[side] | self._repixelled[side] for side in Side}
        reference, prediction = self._sides[Side.REFERENCE], self._sides[Side.PREDICTION]
        joined = self._pairs.joined_to(
            *_rows(concerned), (len(reference.ids), len(prediction.ids)), limit=_FEW_OBJECTS
        )
        if joined is None:
            return None
        return Edited(
            pair=self.pair(),
            joined=joined,
            reference=reference.table_of(joined.reference),
            prediction=prediction.table_of(joined.prediction),
            table=OverlapTable(
                reference.seen,
                prediction.seen,
                joined.pair_reference,
                joined.pair_prediction,
                joined.intersection,
                joined.void_intersection,
            ),
            repixelled=self._repixelled,
        )

    def _other(self, side: Side) -> _LiveSide:
        return self._sides[Side.PREDICTION if side is Side.REFERENCE else Side.REFERENCE]

    def _check_inside(self, y0: int, x0: int, y1: int, x1: int) -> None:
        height, width = self._pair.reference.shape
        if y0 < 0 or x0 < 0 or y1 > height or x1 > width:
            raise LabelError(
                f"pixels must lie in the image of {width} x {height} px, found rows {y0} to "
                f"{y1 - 1} and columns {x0} to {x1 - 1}"
            )

    def _after(self, side: Side, changed_px: int, pairs: PairCounts) -> Edit:
        """Bring the rest up to date with pixels that are set and counted."""
        own = self._sides[side]
        self._add_shared(*pairs)
        touched = own.take_touched()
        self._repixelled[side].update(touched.tolist())
        return Edit(side, changed_px, tuple(sorted(own.ids[touched].tolist())))

    def _add_shared(
        self, keys: NDArray[np.int64], change: NDArray[np.int64], void_change: NDArray[np.int64]
    ) -> None:
        """Add to what pairs share; the objects of a pair that ends are concerned, too."""
        if len(keys):
            self._concerned[Side.REFERENCE].update(((keys >> 32) - 1).tolist())
            self._concerned[Side.PREDICTION].update(((keys & 0xFFFFFFFF) - 1).tolist())
            self._pairs.add(keys, change, void_change)


def _rows(sets: Mapping[Side, set[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of reference and prediction, ascending."""
    reference, prediction = (np.array(sorted(sets[side]), np.int64) for side in Side)
    return reference, prediction
