"""Count areas and intersections of two label images in one pass over the pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

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
    Pairs,
    add_pairs,
    blank_rows,
    count_window,
    no_pairs,
    pair_keys,
    pair_rows,
    sum_runs,
)
from napari_panoptic.kernels.threads import THREADS_FROM_PX, bands_of, in_threads
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.vocabulary import Side, of_side
from napari_panoptic.values.windowed_labels import Box

# Each thread needs rows of its own; below this mean object size one thread is faster.
_THREADS_FROM_PX_PER_OBJECT = 32
# Below this size, the start of a second thread takes longer than it saves.
_THREADS_FROM_PX = 1 << 22
# Pixels that the kernel counts in one call, to limit the memory for their runs. With 1 << 15,
# the calls themselves took a third of the time for an image of 1500 x 1500 px.
_STRIP_PX = 100_000
# Pixels of a zone that are marked in one call, for one byte each: lines around them are read, too.
_ZONE_PX = 1 << 21
_SUMS = [AREA, SUM_Y, SUM_X, VOID_AREA, VOID_SUM_Y, VOID_SUM_X]
_LEAST, _MOST = [Y0, X0, FIRST], [Y1, X1]

Codes = Callable[[LabelPair, Box], NDArray[np.uint8]]
"""Returns which pixels of a box (y0, x0, y1, x1) lie in a zone, see `OverlapCounter.add_zone`."""


@dataclass(frozen=True, eq=False)
class SideTable:
    """Areas, coordinate sums and boxes of the objects of one side.

    All arrays have one row per object, in the order of the label image.
    """

    #: int64 (n,): pixels of the object.
    area: NDArray[np.int64]
    #: int64 (n,): its pixels inside the ambiguous area.
    void_area: NDArray[np.int64]
    #: int64 (n, 2): coordinate sums over these pixels, for centroids.
    sum_yx: NDArray[np.int64]
    void_sum_yx: NDArray[np.int64]
    #: int32 (n, 4): y0, x0, y1, x1 of the bounding box, half open; of an object without pixels
    #: y1 and x1 are 0.
    bbox: NDArray[np.int32]
    #: int64 (n,): raster position of the first pixel. It orders objects independently of their
    #: labels.
    first_pixel: NDArray[np.int64]

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.area)

    def renumbered(self, places: NDArray[np.integer]) -> SideTable:
        """Return the objects in other rows, see `OverlapTable.renumbered`."""
        rows = np.argsort(places, kind="stable")[np.count_nonzero(places < 0) :]
        return SideTable(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


@dataclass(frozen=True)
class Areas:
    """The objects of both sides of a region, or of several, and their pixels."""

    #: The number of objects with pixels.
    n_reference: int
    n_prediction: int
    #: Their pixels, and those that both sides share.
    reference_px: int
    prediction_px: int
    shared_px: int

    def __add__(self, other: Areas) -> Areas:
        """Sum the areas of different regions."""
        return Areas(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    @property
    def dice(self) -> float:
        """The Dice coefficient of the areas of both sides, 0 for empty ones."""
        total = self.reference_px + self.prediction_px
        return 2 * self.shared_px / total if total else 0.0


@dataclass(frozen=True, eq=False)
class OverlapTable:
    """Areas of all objects and intersections of all pairs that share a pixel.

    Pixels inside the ambiguous area are also counted separately, so that one table serves
    every ambiguous policy.
    """

    #: The counts of each side's objects.
    reference: SideTable
    prediction: SideTable
    #: int32 (m,): the rows of the two objects of each pair that shares at least one pixel; sorted
    #: by reference row, then prediction row.
    pair_reference: NDArray[np.int32]
    pair_prediction: NDArray[np.int32]
    #: int64 (m,): shared pixels of the pair.
    intersection: NDArray[np.int64]
    #: int64 (m,): shared pixels inside the ambiguous area.
    void_intersection: NDArray[np.int64]

    def side(self, side: Side) -> SideTable:
        """Return the counts of one side's objects."""
        return of_side(side, self.reference, self.prediction)

    @property
    def areas(self) -> Areas:
        """The sums of all objects."""
        reference, prediction = self.reference.area, self.prediction.area
        return Areas(
            int(np.count_nonzero(reference)),
            int(np.count_nonzero(prediction)),
            int(reference.sum()),
            int(prediction.sum()),
            int(self.intersection.sum()),
        )

    def with_places_of(self, other: OverlapTable) -> OverlapTable:
        """Return these counts with boxes and first pixels from another table of the objects."""
        reference, prediction = (
            replace(self.side(s), bbox=other.side(s).bbox, first_pixel=other.side(s).first_pixel)
            for s in Side
        )
        return replace(self, reference=reference, prediction=prediction)

    def renumbered(
        self, reference: NDArray[np.integer], prediction: NDArray[np.integer]
    ) -> OverlapTable:
        """Return the counts with the objects in other rows, or without some.

        Parameters
        ----------
        reference, prediction
            Integers (n,): the new row of each object, -1 to leave it out.
        """
        rows, columns = reference[self.pair_reference], prediction[self.pair_prediction]
        kept = np.flatnonzero((rows >= 0) & (columns >= 0))
        kept = kept[np.lexsort((columns[kept], rows[kept]))]
        return OverlapTable(
            reference=self.reference.renumbered(reference),
            prediction=self.prediction.renumbered(prediction),
            pair_reference=rows[kept].astype(np.int32),
            pair_prediction=columns[kept].astype(np.int32),
            intersection=self.intersection[kept],
            void_intersection=self.void_intersection[kept],
        )


def overlap_table(pair: LabelPair) -> OverlapTable:
    """Count areas and intersections of a label pair in one pass.

    Memory grows with the number of overlapping pairs, not with the product of the numbers of
    objects.

    Raises
    ------
    ValueError
        If an image holds a number that no object has.
    """

    def counted(i: int, j: int, rows: slice) -> OverlapCounter:
        counter = OverlapCounter.for_pair(pair)
        void = None if pair.ambiguous is None else pair.ambiguous[rows]
        sheets = pair.reference.sheets[i][rows], pair.prediction.sheets[j][rows]
        counter.add((rows.start, 0), *sheets, void)
        return counter

    return _summed(pair, None, counted).table()


def table_outside(pair: LabelPair, whole: OverlapTable, codes: Codes) -> OverlapTable:
    """Count the pixels of a label pair that lie outside of a zone.

    Parameters
    ----------
    pair
        The label pair.
    whole
        The counts of all its pixels.
    codes
        Tells which of them lie in the zone; only they are counted again.

    Returns
    -------
    OverlapTable
        In the rows of all counts, with the same boxes and first pixels.
    """
    width = pair.reference.shape[1]

    def counted(i: int, j: int, rows: slice) -> OverlapCounter:
        counter = OverlapCounter.for_pair(pair)
        for part in _strips((rows.stop - rows.start, width), _ZONE_PX):
            start, stop = rows.start + part.start, rows.start + part.stop
            sheets = pair.reference.sheets[i][start:stop], pair.prediction.sheets[j][start:stop]
            zone = codes(pair, (start, 0, stop, width))
            counter.add_zone((start, 0), *sheets, zone, sign=-1)
        return counter

    start = OverlapCounter.from_table(whole, pair.reference.shape)
    found = _summed(pair, start, counted, threads_from_px=THREADS_FROM_PX)
    return found.table().with_places_of(whole)


def _summed(
    pair: LabelPair,
    total: OverlapCounter | None,
    counted: Callable[[int, int, slice], OverlapCounter],
    *,
    threads_from_px: int = _THREADS_FROM_PX,
) -> OverlapCounter:
    """Add the counts of bands of lines, and of every two planes where objects share pixels.

    Each object lies in one plane. So the pixels that two objects share are counted once,
    where their planes meet. The object's own pixels would be counted once for each plane of
    the other side; they are taken from the first.
    """
    reference, prediction = pair.reference, pair.prediction
    shape = reference.shape
    is_small = shape[0] * shape[1] < max(
        threads_from_px, _THREADS_FROM_PX_PER_OBJECT * (len(reference) + len(prediction))
    )
    bands = [slice(0, shape[0])] if is_small else bands_of(shape)
    for i in range(len(reference.sheets)):
        for j in range(len(prediction.sheets)):
            for counter in in_threads(partial(counted, i, j), bands):
                if total is None:
                    total = counter
                else:
                    total.merge(counter, rows=(j == 0, i == 0))
    return total or OverlapCounter.for_pair(pair)


class OverlapCounter:
    """Counts of an image to which windows are added, or from which they are subtracted.

    Windows may come in any order, each pixel at most once.

    Parameters
    ----------
    n_reference, n_prediction
        Numbers of objects.
    shape
        Height and width of the whole image in px.

    Attributes
    ----------
    rows
        Of reference and prediction, int64 (n + 1, 11): the counts of each object, see
        `napari_panoptic.kernels.counts`. Row 0 is the background, unused.
    """

    def __init__(self, n_reference: int, n_prediction: int, shape: tuple[int, int]) -> None:
        self._shape = shape
        self.rows = [blank_rows(n_reference + 1), blank_rows(n_prediction + 1)]
        self._pairs = no_pairs()
        self._runs: list[NDArray[np.int32]] = []

    @classmethod
    def for_pair(cls, pair: LabelPair) -> OverlapCounter:
        """Return a counter for a label pair, with nothing counted yet."""
        return cls(len(pair.reference), len(pair.prediction), pair.reference.shape)

    @classmethod
    def from_table(cls, table: OverlapTable, shape: tuple[int, int]) -> OverlapCounter:
        """Return a counter that continues from a table."""
        counter = cls(len(table.reference), len(table.prediction), shape)
        for rows, side in zip(counter.rows, (table.reference, table.prediction), strict=True):
            _write_side(rows[1:], side)
        keys = pair_keys(table.pair_reference + 1, table.pair_prediction + 1)
        counter._pairs = Pairs(keys, table.intersection, table.void_intersection)
        return counter

    def add(
        self,
        corner_yx: tuple[int, int],
        reference: NDArray[np.int32],
        prediction: NDArray[np.int32],
        void: NDArray[np.bool_] | None = None,
        *,
        sign: int = 1,
    ) -> None:
        """Add a window, or subtract it. Releases the GIL.

        Parameters
        ----------
        corner_yx
            Position of its first pixel in the whole image, in px.
        reference, prediction
            int32 images (y, x) of one shape: 0 is background, else the row of the
            object, plus one.
        void
            bool image (y, x): the ambiguous area, or None if there is none.
        sign
            1 to add, -1 to subtract; bounding boxes and first pixels do not shrink then.

        Raises
        ------
        ValueError
            For a number that no object has.
        """
        area = np.zeros((0, 0), np.uint8) if void is None else void.view(np.uint8)
        self._add(corner_yx, (reference, prediction, area), sign, zone_only=False)

    def add_zone(
        self,
        corner_yx: tuple[int, int],
        reference: NDArray[np.int32],
        prediction: NDArray[np.int32],
        codes: NDArray[np.uint8],
        *,
        sign: int = 1,
    ) -> None:
        """Add the pixels of a window that lie in a zone, or subtract them; else as :meth:`add`.

        Parameters
        ----------
        codes
            uint8 image (y, x): 2 in the zone, 3 where the ambiguous area is, too.
        """
        self._add(corner_yx, (reference, prediction, codes), sign, zone_only=True)

    def _add(
        self,
        corner_yx: tuple[int, int],
        images: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]],
        sign: int,
        *,
        zone_only: bool,
    ) -> None:
        top, left = int(corner_yx[0]), int(corner_yx[1])
        for rows in _strips(images[0].shape):
            runs = count_window(
                images[0][rows],
                images[1][rows],
                images[2][rows],
                (top + rows.start, left),
                self._shape[1],
                sign,
                self.rows[0],
                self.rows[1],
                zone_only=zone_only,
            )
            if len(runs):
                self._runs.append(runs.copy())  # the kernel returns a part of a long buffer
            del runs  # frees the buffer before the next one is allocated
            if sum(map(len, self._runs)) > _STRIP_PX:
                self._sum_runs()

    def make_room(self, side: int, n: int) -> None:
        """Make rows for n objects of the reference (0) or the prediction (1)."""
        rows = self.rows[side]
        if n >= len(rows):
            self.rows[side] = np.concatenate([rows, blank_rows(n + 1 - len(rows))])

    def renumber(self, side: int, places: NDArray[np.integer]) -> None:
        """Move the counts of a side's objects to other rows.

        Parameters
        ----------
        side
            The reference (0) or the prediction (1).
        places
            Integers (n,): the new row of each object, -1 for one without a pixel.
        """
        pairs, kept = self._sum_runs(), np.flatnonzero(places >= 0)
        moved = blank_rows(len(kept) + 1)
        moved[places[kept] + 1] = self.rows[side][1:][kept]
        self.rows[side] = moved
        both = list(pair_rows(pairs.keys))
        both[side] = places[both[side] - 1].astype(np.int32) + 1
        keys = pair_keys(*both)
        if (keys[1:] > keys[:-1]).all():
            self._pairs = pairs._replace(keys=keys)
        else:
            order = np.argsort(keys)
            self._pairs = Pairs(*(own[order] for own in (keys, *pairs[1:])))

    def merge(self, other: OverlapCounter, *, rows: tuple[bool, bool] = (True, True)) -> None:
        """Add the counts of another counter of the same image, which does not change.

        Parameters
        ----------
        other
            The other counter.
        rows
            Whether to add the objects of the reference, and of the prediction;
            pairs are added in any case.
        """
        for own, theirs, is_added in zip(self.rows, other.rows, rows, strict=True):
            if is_added:
                _add_rows(own, theirs)
        self._pairs = add_pairs(self._sum_runs(), other._sum_runs())

    def table(
        self, known: tuple[SideTable | None, SideTable | None] = (None, None)
    ) -> OverlapTable:
        """Return the counts so far; later windows do not change them.

        Parameters
        ----------
        known
            The reference's and the prediction's side of an earlier table, if no count of
            that side has changed since; None to copy the counts.
        """
        keys, shared, void_shared = self._sum_runs()
        reference, prediction = pair_rows(keys)
        return OverlapTable(
            reference=self._side(0) if known[0] is None else known[0],
            prediction=self._side(1) if known[1] is None else known[1],
            pair_reference=reference - 1,
            pair_prediction=prediction - 1,
            intersection=shared.copy(),  # these arrays have room for more
            void_intersection=void_shared.copy(),
        )

    def _sum_runs(self) -> Pairs:
        """Add the runs since the last time to the pairs, and return them."""
        if self._runs:
            runs = np.concatenate(self._runs)
            self._runs.clear()
            self._pairs = add_pairs(self._pairs, sum_runs(runs, *map(len, self.rows)))
        return self._pairs

    def _side(self, side: int) -> SideTable:
        rows = self.rows[side][1:]
        area, far = rows[:, AREA].copy(), max(self._shape)
        bbox = rows[:, Y0 : X1 + 1].astype(np.int32)
        bbox[area == 0] = far, far, 0, 0
        return SideTable(
            area=area,
            void_area=rows[:, VOID_AREA].copy(),
            sum_yx=rows[:, SUM_Y : SUM_X + 1].copy(),
            void_sum_yx=rows[:, VOID_SUM_Y : VOID_SUM_X + 1].copy(),
            bbox=bbox,
            first_pixel=rows[:, FIRST].copy(),
        )


def _write_side(rows: NDArray[np.int64], side: SideTable) -> None:
    """Write the counts of a side to the rows of its objects."""
    present = side.area > 0
    rows[:, AREA], rows[:, VOID_AREA] = side.area, side.void_area
    rows[:, [SUM_Y, SUM_X]], rows[:, [VOID_SUM_Y, VOID_SUM_X]] = side.sum_yx, side.void_sum_yx
    rows[present, Y0 : X1 + 1] = side.bbox[present]
    rows[present, FIRST] = side.first_pixel[present]


def _add_rows(rows: NDArray[np.int64], others: NDArray[np.int64]) -> None:
    rows[:, _SUMS] += others[:, _SUMS]
    rows[:, _LEAST] = np.minimum(rows[:, _LEAST], others[:, _LEAST])
    rows[:, _MOST] = np.maximum(rows[:, _MOST], others[:, _MOST])


def _strips(shape: tuple[int, ...], at_most_px: int = _STRIP_PX) -> Iterator[slice]:
    height, width = shape
    step = max(1, at_most_px // max(width, 1))
    for top in range(0, height, step):
        yield slice(top, min(top + step, height))
