"""A label pair under edit, evaluated again after each stroke.

A stroke changes some hundred pixels of millions. The box around them is subtracted from the
counts, written, and added again; then the whole chain runs on the table. Distances are
measured again only for objects whose pixels changed. The result equals a full evaluation after
any sequence of edits.

Rows are always the objects with pixels, by id. So an edit that erases an object, or draws one with
a lower id than others, also renumbers the image: one pass over the lines of the objects that move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError
from napari_panoptic.common.text import english_list
from napari_panoptic.kernels.counts import AREA, FAR, FIRST, X1, Y0, Y1
from napari_panoptic.nuclei.distances import KnownDistances
from napari_panoptic.nuclei.evaluate import Evaluation, evaluated
from napari_panoptic.nuclei.overlap import (
    OverlapCounter,
    OverlapTable,
    SideTable,
    overlap_table,
    table_outside,
)
from napari_panoptic.nuclei.zone import Zone
from napari_panoptic.values.labels import LabelImage, LabelPair, Scores
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import SIDES, Side

Box = tuple[slice, slice]
Labels = NDArray[np.int32]
Area = tuple[Any, Any]
"""Pixels of an image as two indices: arrays of rows and columns, or two slices."""
TILE = 64
"""Side of the squares, in px, that are counted again when pixels far apart are edited."""
SMALL_BOX_PX = 1 << 16
"""Boxes of up to this number of pixels are counted again as a whole."""
ROWS_AT_A_TIME = 256
"""Rows of two images that are compared at a time."""
Erased = dict[int, tuple[int, int]]
"""Id of each object whose last pixel was erased -> the number of its class, and its original id."""


@dataclass(frozen=True)
class Edit:
    """The pixels and objects that an edit changed."""

    #: The side whose pixels were set.
    side: Side
    #: Number of pixels whose id changed.
    changed_px: int
    #: Ids that gained or lost pixels, ascending, without the background.
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class IdWindow:
    """A window of an image of ids."""

    #: Position of its first pixel, in px.
    corner_yx: tuple[int, int]
    #: uint16 image (y, x).
    numbers: NDArray[np.uint16]
    #: int64 (k,): the id of each number; 0 is background.
    ids: NDArray[np.int64]
    #: The scores of all objects of the side from then on; None to keep those that are known.
    scores: Scores | None = None

    @property
    def box(self) -> tuple[int, int, int, int]:
        """y0, x0, y1, x1, half open."""
        (y, x), (height, width) = self.corner_yx, self.numbers.shape
        return y, x, y + height, x + width


class EditedSide:
    """The objects of one side under edit, and the classes of those that were erased.

    Several edited pairs may share it.

    Parameters
    ----------
    base
        The objects to start from; the first edit copies them.
    """

    def __init__(self, base: LabelImage) -> None:
        self.base = base
        #: The objects now. Edits replace it, but change its pixels in place.
        self.labels = base
        self.erased: Erased = {}
        self.row_of = {int(id_): row for row, id_ in enumerate(base.ids)}
        #: Whether the objects differ from the base; see `note_edit`.
        self.is_edited = False
        #: A pixel (y, x) that differed from the base at the last comparison.
        self._difference: tuple[int, int] | None = None
        #: y0, x0, y1, x1: the box outside of which no pixel has changed since the base.
        self._changed: tuple[int, int, int, int] | None = None

    @property
    def index(self) -> Labels:
        """The rows of the objects, plus one, as int32 image (y, x)."""
        return self.labels.index

    @property
    def known_ids(self) -> NDArray[np.int64]:
        """The ids that have a class, those of erased objects included."""
        return np.union1d(self.labels.ids, np.array(list(self.erased), np.int64))

    def note_change(self, box: Box) -> None:
        """Note that pixels of a box are about to change."""
        ys, xs = box
        y0, x0, y1, x1 = self._changed or (ys.start, xs.start, ys.stop, xs.stop)
        self._changed = (
            *(min(y0, ys.start), min(x0, xs.start)),
            *(max(y1, ys.stop), max(x1, xs.stop)),
        )

    def note_edit(self, area: Area) -> None:
        """Find out whether the objects differ from the base, after an edit of some pixels.

        All pixels that ever changed are compared only if neither the edited pixels nor the last
        known difference differs from the base: usually after the last stroke was undone.
        """
        now, base = self.labels, self.base
        same_ids = np.array_equal(now.ids, base.ids)
        self.is_edited = not same_ids or not np.array_equal(now.class_index, base.class_index)
        if self.is_edited:
            return
        known = self._difference
        if known is None or now.index[known] == base.index[known]:
            y0, x0, y1, x1 = self._changed or (0, 0, 0, 0)
            box = slice(y0, y1), slice(x0, x1)
            self._difference = _first_difference(now.index, base.index, area, box)
        self.is_edited = self._difference is not None
        if not self.is_edited:
            self._changed = None

    def _make_own(self) -> None:
        """Copy the objects before the first edit, without what only files need."""
        base = self.base
        if self.labels is base:
            self.labels = LabelImage(
                index=base.index.copy(),
                ids=base.ids,
                class_index=base.class_index,
                original_ids=base.original_ids,
                class_names=base.class_names,
                known_scores=base.known_scores,
            )

    def numbers(self, ids: NDArray[np.int64], classes: Mapping[int, str]) -> Labels:
        """Return the row of each of some distinct ids, plus one; 0 for background.

        New ids get a row after all others, and the class that is named for them. Those of erased
        objects keep theirs if none is named.
        """
        listed = ids.tolist()
        new = [id_ for id_ in listed if id_ and id_ not in self.row_of]
        class_numbers = [self.class_number(id_, classes.get(id_)) for id_ in new]
        self._make_own()
        if new:
            labels = self.labels
            originals = [self.erased.get(id_, (0, id_))[1] for id_ in new]
            self.row_of |= {id_: len(labels) + place for place, id_ in enumerate(new)}
            self.labels = replace(
                labels,
                ids=np.concatenate([labels.ids, np.array(new, np.int64)]),
                original_ids=np.concatenate([labels.original_ids, np.array(originals, np.int64)]),
                class_index=np.concatenate([labels.class_index, np.array(class_numbers, np.int16)]),
            )
        return np.array([self.row_of[id_] + 1 if id_ else 0 for id_ in listed], np.int32)

    def set_class(self, id_: int, class_name: str) -> None:
        """Set the class of an object, which may be erased."""
        number, row = self.class_number(id_, class_name), self.row_of.get(id_)
        self._make_own()
        if row is None:
            self.erased[id_] = number, self.erased[id_][1]
        elif self.labels.class_index[row] != number:
            changed = self.labels.class_index.copy()
            changed[row] = number
            self.labels = replace(self.labels, class_index=changed)

    def class_number(self, id_: int, class_name: str | None) -> int:
        """Return the number of the class of a new object."""
        if id_ < 0:
            raise LabelError(f"ids must be positive, found {id_}", object_id=id_)
        if class_name is None and id_ in self.erased:
            return self.erased[id_][0]
        names = self.labels.class_names
        if class_name not in names:
            raise LabelError(
                f"a new object needs a class, one of {english_list(names)}; found {class_name}",
                object_id=id_,
            )
        return names.index(str(class_name)) + 1

    def tidy(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Drop the rows without a pixel, and sort the others by id.

        Parameters
        ----------
        counts
            The counts of each row, see `napari_panoptic.kernels.counts`.

        Returns
        -------
        int64 (n,)
            The new place of each row, -1 for none.
        """
        before, present = self.labels, counts[:, AREA] > 0
        rows = np.flatnonzero(~present)
        known = before.ids[rows], before.class_index[rows], before.original_ids[rows]
        for id_, number, original in zip(*(column.tolist() for column in known), strict=True):
            self.erased[id_] = number, original
        ids = before.ids[present]
        if (ids[1:] > ids[:-1]).all():  # objects were only erased
            places = np.where(present, np.cumsum(present) - 1, -1)
        else:
            ids = np.sort(ids)
            places = np.where(present, np.searchsorted(ids, before.ids), -1)
        moved = counts[present & (places != np.arange(len(places)))]
        lines = slice(moved[:, Y0].min(initial=FAR), moved[:, Y1].max(initial=0))
        self.labels = before.of_rows(present, self.index, lines)
        self.row_of = dict(zip(ids.tolist(), range(len(ids)), strict=True))
        return places


@dataclass(frozen=True, eq=False)
class _Tiles:
    """Boxes of an image that contain all pixels of an edit: one, or a row of tiles each."""

    boxes: tuple[Box, ...]
    #: The box around all.
    around: Box
    #: int64 (rows + 1, columns + 1): the number of tiles up to each corner; None for a single box.
    sums: NDArray[np.int64] | None = None

    @classmethod
    def whole(cls, box: Box) -> _Tiles:
        """Return a single box."""
        return cls((box,), box)

    @classmethod
    def of(cls, ys: NDArray[np.int64], xs: NDArray[np.int64], box: Box) -> _Tiles:
        """Return the tiles that contain some pixels, or their box if that is about as small."""
        top, left = box[0].start, box[1].start
        height, width = box[0].stop - top, box[1].stop - left
        if height * width <= SMALL_BOX_PX:
            return cls.whole(box)
        used = np.zeros((-(-height // TILE), -(-width // TILE)), np.bool_)
        used[(ys - top) // TILE, (xs - left) // TILE] = True
        return cls._of_squares(used, box)

    @classmethod
    def _of_squares(cls, used: NDArray[np.bool_], box: Box) -> _Tiles:
        """Return the squares of a box that are used, or the box if most are."""
        if 2 * np.count_nonzero(used) > used.size:
            return cls.whole(box)
        top, left = box[0].start, box[1].start
        sums = np.zeros((used.shape[0] + 1, used.shape[1] + 1), np.int64)
        sums[1:, 1:] = used.cumsum(axis=0).cumsum(axis=1)
        ends = np.flatnonzero(np.diff(np.pad(used, ((0, 0), (1, 1))).ravel().view(np.int8)))
        row, first = np.divmod(ends[::2] + 1, used.shape[1] + 2)
        y0, x0 = top + TILE * row, left + TILE * (first - 1)
        x1 = x0 + TILE * (ends[1::2] - ends[::2])
        y1, x1 = np.minimum(y0 + TILE, box[0].stop), np.minimum(x1, box[1].stop)
        corners = zip(y0.tolist(), y1.tolist(), x0.tolist(), x1.tolist(), strict=True)
        return cls(tuple((slice(a, b), slice(c, d)) for a, b, c, d in corners), box, sums)

    def grown(self, px: int, shape: tuple[int, int]) -> _Tiles:
        """Return tiles of an image that also contain all that is near, given their reach in px."""
        margin = px if self.sums is None else TILE * -(-px // TILE)
        ys, xs = self.around
        top, left = max(ys.start - margin, 0), max(xs.start - margin, 0)
        bottom, right = min(ys.stop + margin, shape[0]), min(xs.stop + margin, shape[1])
        box = slice(top, bottom), slice(left, right)
        if self.sums is None:
            return self.whole(box)
        rows, columns = np.nonzero(np.diff(np.diff(self.sums, axis=0), axis=1))
        used = np.zeros((-(-(bottom - top) // TILE), -(-(right - left) // TILE)), np.bool_)
        for y0, x0 in zip(ys.start + TILE * rows, xs.start + TILE * columns, strict=True):
            y1, x1 = y0 + TILE + px - 1, x0 + TILE + px - 1
            used[
                max(y0 - px - top, 0) // TILE : (y1 - top) // TILE + 1,
                max(x0 - px - left, 0) // TILE : (x1 - left) // TILE + 1,
            ] = True
        return self._of_squares(used, box)

    def contain(
        self,
        y0: NDArray[np.int64],
        x0: NDArray[np.int64],
        y1: NDArray[np.int64],
        x1: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Return bool (n,): which bounding boxes lie in the tiles."""
        ys, xs = self.around
        inside: NDArray[np.bool_] = (
            (y0 >= ys.start) & (x0 >= xs.start) & (y1 <= ys.stop) & (x1 <= xs.stop)
        )
        if self.sums is None:
            return inside
        rows = (y0[inside] - ys.start) // TILE, -(-(y1[inside] - ys.start) // TILE)
        columns = (x0[inside] - xs.start) // TILE, -(-(x1[inside] - xs.start) // TILE)
        sums = self.sums
        n_used = sums[rows[1], columns[1]] - sums[rows[0], columns[1]]
        n_used += sums[rows[0], columns[0]] - sums[rows[1], columns[0]]
        inside[inside] = n_used == (rows[1] - rows[0]) * (columns[1] - columns[0])
        return inside


class EditedPair:
    """A label pair under edit.

    Parameters
    ----------
    pair
        The pair to start from. It is copied; the original never changes.
    known
        An evaluation of the same images, if there is one: its overlap table and distances
        are reused.
    sides
        The sides, if other pairs share one of them; None to edit a copy of the pair's own.
    beside
        The pairs that share the reference: an edit of it changes the counts of all.

    Raises
    ------
    LabelError
        If objects of the pair or of the evaluation share pixels.
    """

    def __init__(
        self,
        pair: LabelPair,
        *,
        known: Evaluation | None = None,
        sides: Mapping[Side, EditedSide] | None = None,
        beside: Mapping[str, EditedPair] | None = None,
    ) -> None:
        if pair.has_planes or (known is not None and known.pair.has_planes):
            raise LabelError(
                'only objects that share no pixels can be edited: set overlaps to "flatten"'
            )
        table = overlap_table(pair) if known is None else known.table
        self._sides = sides or {side: EditedSide(pair.side(side)) for side in SIDES}
        self._beside = {} if beside is None else beside
        self._pair = pair
        self._counter = OverlapCounter.from_table(table, pair.reference.shape)
        #: The counts outside of the zone of the last evaluation, if it had one.
        self._outside: tuple[Zone, OverlapCounter] | None = None
        self._known: list[SideTable | None] = [None, None]
        self._distances = KnownDistances.none() if known is None else known.distances

    def set_pixels(
        self,
        side: Side,
        y: NDArray[np.integer],
        x: NDArray[np.integer],
        ids: NDArray[np.integer] | int,
        *,
        classes: Mapping[int, str] | None = None,
    ) -> Edit:
        """Set pixels of one side to ids, as a stroke, a fill or an undo does.

        Parameters
        ----------
        side
            The side that is edited.
        y, x
            Coordinates (n,) in px, each pixel at most once.
        ids
            One id for all, or one per pixel (n,); 0 erases.
        classes
            Id -> class name, for ids that are new or have no pixel; an id that was erased
            keeps its class without one.

        Raises
        ------
        LabelError
            For a new id without a class, pixels outside the image, or more y than x;
            nothing is changed then.
        """
        ys, xs = np.asarray(y, np.int64), np.asarray(x, np.int64)
        if ys.shape != xs.shape:
            raise LabelError(f"each pixel needs y and x, found {len(ys)} and {len(xs)}")
        if not len(ys):
            return Edit(side, 0, ())
        box = self._box(int(ys.min()), int(xs.min()), int(ys.max()) + 1, int(xs.max()) + 1)
        unique, inverse = np.unique(np.atleast_1d(np.asarray(ids, np.int64)), return_inverse=True)
        numbers = np.broadcast_to(self._numbers(side, unique, classes)[inverse], ys.shape)
        return self._write(side, (ys, xs), numbers, _Tiles.of(ys, xs, box))

    def set_window(
        self,
        side: Side,
        window: IdWindow,
        *,
        classes: Mapping[int, str] | None = None,
        renamed: Mapping[int, str] | None = None,
    ) -> Edit:
        """Set all pixels of a window, for huge edits.

        Parameters
        ----------
        side, classes
            As in :meth:`set_pixels`.
        window
            The new ids.
        renamed
            Id -> new class, for objects that are there already.

        Raises
        ------
        LabelError
            For a new id without a class, a number without an id, or an unknown object or class;
            nothing is changed then.
        """
        for id_, class_name in (renamed or {}).items():
            self._check_class(side, id_, class_name)
        edit = self._set_window(side, window, classes) if window.numbers.size else Edit(side, 0, ())
        for id_, class_name in (renamed or {}).items():
            self.set_class(side, id_, class_name)
        return edit

    def set_ambiguous(self, ambiguous: NDArray[np.bool_] | None, box: Box | None = None) -> None:
        """Replace the ambiguous area.

        Parameters
        ----------
        ambiguous
            bool image (y, x), or None. It is not copied and must not change afterwards.
        box
            Contains all pixels that change, at least one; None if unknown.
        """
        shape = self._pair.reference.shape
        before, after = (
            np.zeros(shape, np.bool_) if area is None else area
            for area in (self._pair.ambiguous, ambiguous)
        )
        box = _changed_box(before, after) if box is None else box
        if box is not None:
            changed = before[box] != after[box]
            self._outside = None
            self._known = [None, None]
            self._count(_Tiles.whole(box), before, sign=-1)
            self._count(_Tiles.whole(box), after, sign=1)
            reference, prediction = (
                np.unique(self._sides[side].index[box][changed]) - 1 for side in SIDES
            )
            self._distances = self._distances.without(reference, prediction)
        self._pair = replace(self._pair, ambiguous=ambiguous)

    def set_class(self, side: Side, id_: int, class_name: str) -> None:
        """Set the class of an object.

        Raises
        ------
        LabelError
            For an object that is not there, or an unknown class.
        """
        self._check_class(side, id_, class_name)
        self._sides[side].set_class(id_, class_name)

    def pair(self) -> LabelPair:
        """Return the label pair as it is now; the next edit changes its pixels."""
        reference, prediction = (self._sides[side].labels for side in SIDES)
        if self._pair.reference is not reference or self._pair.prediction is not prediction:
            self._pair = replace(self._pair, reference=reference, prediction=prediction)
        return self._pair

    def table(self) -> OverlapTable:
        """Return the counts as they are now; later edits do not change them."""
        # An edit changes the objects of one side.
        table = self._counter.table((self._known[0], self._known[1]))
        self._known = [table.reference, table.prediction]
        return table

    def evaluate(self, settings: EvaluationSettings) -> Evaluation:
        """Evaluate the pair as it is now.

        Later edits change the images of the result's ``pair``, and nothing else in it.
        """
        pair, table = self.pair(), self.table()
        counted = self._counted_outside(pair, table, settings)
        result = evaluated(pair, table, settings, self._distances, counted=counted)
        self._distances = result.distances
        return result

    def _set_window(self, side: Side, window: IdWindow, classes: Mapping[int, str] | None) -> Edit:
        box = self._box(*window.box)
        present = np.flatnonzero(np.bincount(window.numbers.ravel()))
        if present[-1] >= len(window.ids):
            raise LabelError(f"found the number {present[-1]}, there are {len(window.ids)} ids")
        lookup = np.zeros(int(present[-1]) + 1, np.int32)
        lookup[present] = self._numbers(side, window.ids[present], classes)
        if window.scores is not None:
            own = self._sides[side]
            own.labels = replace(own.labels, known_scores=window.scores)
        return self._write(side, box, lookup[window.numbers], _Tiles.whole(box))

    def _check_class(self, side: Side, id_: int, class_name: str) -> None:
        own = self._sides[side]
        is_known = id_ in own.row_of or id_ in own.erased
        if not is_known or class_name not in own.labels.class_names:
            raise LabelError(f"there is no object {id_} or no class {class_name} on this side")

    def _sharing(self, side: Side) -> list[EditedPair]:
        """Return the pairs whose counts an edit of a side changes, this one first."""
        others = self._beside.values() if side is Side.REFERENCE else ()
        return [self, *(pair for pair in others if pair is not self)]

    def _numbers(
        self, side: Side, ids: NDArray[np.int64], classes: Mapping[int, str] | None
    ) -> Labels:
        """Return the rows of ids, plus one; make rows for new ids."""
        number, own = SIDES.index(side), self._sides[side]
        numbers = own.numbers(ids, classes or {})
        for pair in self._sharing(side):
            pair._known[number] = None
            for counter in pair._counters:
                counter.make_room(number, len(own.labels))
        return numbers

    def _write(self, side: Side, place: Area, wanted: Labels, tiles: _Tiles) -> Edit:
        """Write pixels of one side, and count the tiles again that contain them."""
        number, own, pairs = SIDES.index(side), self._sides[side], self._sharing(side)
        pixels = own.index[place]
        changed = pixels != wanted
        changed_px = int(np.count_nonzero(changed))
        if not changed_px:
            return Edit(side, 0, ())
        own.note_change(tiles.around)
        rows = self._counter.rows[number]
        is_touched = np.zeros(len(rows), np.bool_)
        is_touched[pixels[changed]] = True
        lost = np.flatnonzero(is_touched[1:]) + 1
        is_touched[wanted[changed]] = True
        touched = np.flatnonzero(is_touched[1:])
        y0, x0, y1, x1 = rows[lost, Y0 : X1 + 1].T
        is_inside = tiles.contain(y0, x0, y1, x1)
        if ((y1 - y0) * (x1 - x0))[~is_inside].sum() > own.index.size:  # scattered, as in noise
            own.index[place] = wanted
            for pair in pairs:
                table = overlap_table(pair.pair())
                pair._counter = OverlapCounter.from_table(table, own.index.shape)
                pair._outside = None
        else:
            for pair in pairs:
                pair._count(tiles, pair._pair.ambiguous, sign=-1)
                pair._count_outside(side, tiles, sign=-1)
            own.index[place] = wanted
            rows[lost[is_inside], Y0:] = FAR, FAR, 0, 0, FAR
            for label in lost[~is_inside]:
                _shrink(rows[label], own.index, label)
            for pair in pairs:
                pair._counter.rows[number][lost, Y0:] = rows[lost, Y0:]
            for pair in pairs:
                pair._count(tiles, pair._pair.ambiguous, sign=1)
                pair._count_outside(side, tiles, sign=1)
        nothing = np.zeros(0, np.int64)
        both = (touched, nothing) if side is Side.REFERENCE else (nothing, touched)
        for pair in pairs:
            pair._distances = pair._distances.without(*both)
        ids = own.labels.ids[touched]
        rows, every = self._counter.rows[number], own.labels.ids
        if not (rows[touched + 1, AREA].all() and (every[1:] > every[:-1]).all()):
            places = own.tidy(rows[1:])
            for pair in pairs:
                pair._renumber(side, places)
        return Edit(side, changed_px, tuple(sorted(ids.tolist())))

    def _renumber(self, side: Side, places: NDArray[np.int64]) -> None:
        """Move the counts of the objects of a side to their new rows; -1 drops an object."""
        both = [
            places if each is side else np.arange(len(self._sides[each].labels)) for each in SIDES
        ]
        for counter in self._counters:
            counter.renumber(SIDES.index(side), places)
        self._known[SIDES.index(side)] = None
        self._distances = self._distances.renumbered(*both)

    def _count(self, tiles: _Tiles, void: NDArray[np.bool_] | None, *, sign: int) -> None:
        """Add tiles to the counts, or subtract them."""
        for box in tiles.boxes:
            reference, prediction = (self._sides[side].index[box] for side in SIDES)
            area = None if void is None else void[box]
            self._counter.add((box[0].start, box[1].start), reference, prediction, area, sign=sign)

    @property
    def _counters(self) -> list[OverlapCounter]:
        """The counts of all pixels, and those outside of the zone."""
        return [self._counter, *([] if self._outside is None else [self._outside[1]])]

    def _counted_outside(
        self, pair: LabelPair, table: OverlapTable, settings: EvaluationSettings
    ) -> OverlapTable | None:
        """Return the counts outside of the zone, counted again if it is another one."""
        zone = Zone.of(table, settings)
        if zone is None:
            self._outside = None
            return None
        if self._outside is None or not zone.is_same(self._outside[0]):
            outside = table_outside(pair, table, zone.codes)
            self._outside = zone, OverlapCounter.from_table(outside, pair.reference.shape)
        return self._outside[1].table().with_places_of(table)

    def _count_outside(self, side: Side, tiles: _Tiles, *, sign: int) -> None:
        """Add what is outside of the zone in tiles to the counts, or subtract it.

        An edit of the reference moves the zone around it, too.
        """
        if self._outside is None:
            return
        zone, counter = self._outside
        if len(zone.kept):  # the numbers of its objects may change
            self._outside = None
            return
        pair = self.pair()
        near = tiles.grown(zone.px, pair.reference.shape) if side is Side.REFERENCE else tiles
        for ys, xs in near.boxes:
            reference, prediction = (self._sides[each].index[ys, xs] for each in SIDES)
            codes = zone.codes(pair, (ys.start, xs.start, ys.stop, xs.stop))
            void = None if pair.ambiguous is None else pair.ambiguous[ys, xs]
            corner = ys.start, xs.start
            counter.add(corner, reference, prediction, void, sign=sign)
            counter.add_zone(corner, reference, prediction, codes, sign=-sign)

    def _box(self, y0: int, x0: int, y1: int, x1: int) -> Box:
        """Return the box as slices, checked to lie in the image."""
        height, width = self._pair.reference.shape
        if y0 < 0 or x0 < 0 or y1 > height or x1 > width:
            raise LabelError(
                f"pixels must lie in the image of {width} x {height} px, found rows {y0} to "
                f"{y1 - 1} and columns {x0} to {x1 - 1}"
            )
        return slice(y0, y1), slice(x0, x1)


def _shrink(row: NDArray[np.int64], index: Labels, label: int) -> None:
    """Set the bounding box and first pixel of an object that lies in its previous box."""
    y0, x0, y1, x1 = row[Y0 : X1 + 1]
    found = index[y0:y1, x0:x1] == label
    ys, xs = np.flatnonzero(found.any(axis=1)), np.flatnonzero(found.any(axis=0))
    if not len(ys):
        row[Y0:] = FAR, FAR, 0, 0, FAR
        return
    row[Y0 : X1 + 1] = y0 + ys[0], x0 + xs[0], y0 + ys[-1] + 1, x0 + xs[-1] + 1
    row[FIRST] = row[Y0] * index.shape[1] + x0 + np.argmax(found[ys[0]])


def _changed_box(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> Box | None:
    """Return the box around the pixels in which two areas differ, None if there are none."""
    changed = before != after
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    if not len(rows):
        return None
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def _first_difference(one: Labels, other: Labels, area: Area, box: Box) -> tuple[int, int] | None:
    """Return a pixel (y, x) of a box in which two images differ, or None; search an area first."""
    places = np.flatnonzero(one[area] != other[area])
    if len(places):
        rows, columns = area
        if isinstance(rows, slice):
            width = columns.stop - columns.start
            return rows.start + int(places[0]) // width, columns.start + int(places[0]) % width
        return int(rows[places[0]]), int(columns[places[0]])
    ys, xs = box
    for top in range(ys.start, ys.stop, ROWS_AT_A_TIME):
        band = slice(top, min(top + ROWS_AT_A_TIME, ys.stop)), xs
        if not np.array_equal(one[band], other[band]):
            y, x = np.argwhere(one[band] != other[band])[0]
            return top + int(y), xs.start + int(x)
    return None
