"""From two label images to areas and intersections, in one pass over the pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_panoptic.kernels.changes import blank_notes, list_changes
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
from napari_panoptic.kernels.jit import (
    THREADS,
    THREADS_FROM_PX,
    compiled,
    in_threads,
    read_only,
    take_next,
)
from napari_panoptic.nuclei.values.labels import LabelImage, LabelPair

# Each thread counts in rows of its own: not worth it where objects are smaller than this.
_THREADS_FROM_PX_PER_OBJECT = 32
# Into so many parts an image is cut for the threads, which count one after the other.
_BANDS = 8
_NO_OBJECT = "the images hold numbers that no object has"
# Columns of a shared run that waits to be added to the pairs.
_REFERENCE, _PREDICTION, _LENGTH, _VOID_LENGTH = 0, 1, 2, 3
# So many wait at least.
_WAITING = 1 << 15
# Ids up to this many are counted by a list of all up to the highest one.
_LISTED_IDS = 1 << 16
# So many places the list has at first.
_FIRST_IDS = 1 << 10
# A table with a place for every two objects may have so many places for each that waits.
_DENSE = 2
_Waiting = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Shared runs that wait, int32 (m, 4), and as much room to sort them."""
# After all keys.
_LAST = np.int64(2**63 - 1)


@dataclass(frozen=True, eq=False)
class SideTable:
    """What one pass over the pixels tells of the objects of one side.

    All arrays have one row per object, in the order of the label image.

    Parameters
    ----------
    area
        int64 (n,): pixels of the object.
    void_area
        int64 (n,): those of them inside the ambiguous area.
    sum_yx, void_sum_yx
        int64 (n, 2): coordinate sums over these pixels, for centroids.
    bbox
        int32 (n, 4): y0, x0, y1, x1 of the bounding box, half open.
    first_pixel
        int64 (n,): raster position of the first pixel: an order of objects
        that does not depend on their labels.
    """

    area: NDArray[np.int64]
    void_area: NDArray[np.int64]
    sum_yx: NDArray[np.int64]
    void_sum_yx: NDArray[np.int64]
    bbox: NDArray[np.int32]
    first_pixel: NDArray[np.int64]

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.area)


@dataclass(frozen=True, eq=False)
class OverlapTable:
    """Areas of all objects and intersections of all pairs that share a pixel.

    Inside and outside the ambiguous area are counted apart, so that every
    ambiguous policy can be read from the one table.

    Parameters
    ----------
    reference, prediction
        What is known of each side's objects.
    pair_reference, pair_prediction
        int32 (m,): the rows of the two objects of each pair that shares at
        least one pixel; sorted by reference row, then prediction row.
    intersection
        int64 (m,): shared pixels of the pair.
    void_intersection
        int64 (m,): those of them inside the ambiguous area.
    """

    reference: SideTable
    prediction: SideTable
    pair_reference: NDArray[np.int32]
    pair_prediction: NDArray[np.int32]
    intersection: NDArray[np.int64]
    void_intersection: NDArray[np.int64]


def overlap_table(pair: LabelPair) -> OverlapTable:
    """Count areas and intersections of a label pair in one pass.

    Parameters
    ----------
    pair
        Reference, prediction and ambiguous area; not changed.

    Returns
    -------
    OverlapTable
        Memory grows with the number of overlapping pairs, not with the product
        of the numbers of objects.
    """
    if pair.has_planes:
        return _table_of_planes(pair)
    sides = pair.reference.index, pair.prediction.index
    sizes = len(pair.reference), len(pair.prediction)
    counter = _counted(sides, pair.ambiguous, sizes, grows=False)
    if counter is None:
        raise ValueError(_NO_OBJECT)
    return counter.table()


def _table_of_planes(pair: LabelPair) -> OverlapTable:
    """Count objects that share pixels, every two planes by themselves.

    An object lies whole in one plane. So what it shares with another is
    counted once, where their two planes meet; its own pixels would be
    counted once for each plane of the other side, and are taken from the first.
    """
    sizes = len(pair.reference), len(pair.prediction)
    total = TileCounter(*sizes, pair.reference.shape)
    for i, reference in enumerate(pair.reference.sheets):
        for j, prediction in enumerate(pair.prediction.sheets):
            counter = TileCounter(*sizes, pair.reference.shape)
            counter.add((0, 0), reference, prediction, pair.ambiguous)
            total.merge(counter, rows=(j == 0, i == 0))
    return total.table()


def counted_pair(
    reference: ArrayLike,
    prediction: ArrayLike,
    reference_classes: Mapping[int, str] | str,
    prediction_classes: Mapping[int, str] | str,
    class_names: Sequence[str],
    *,
    ambiguous: NDArray[np.bool_] | None = None,
    mpp: float | None = None,
) -> tuple[LabelPair, OverlapTable]:
    """Make a label pair of two arrays of ids and count its overlap, in one pass over both.

    Parameters
    ----------
    reference, prediction, reference_classes, prediction_classes, class_names, ambiguous, mpp
        As for `LabelPair.from_arrays`.

    Returns
    -------
    tuple
        What `LabelPair.from_arrays` gives and :func:`overlap_table` counts of it; these
        are asked one after the other only where ids are too far apart to be listed.

    Raises
    ------
    LabelError
        As `LabelPair.from_arrays`.
    """
    arrays = np.asarray(reference), np.asarray(prediction)
    counter = None
    if all(np.can_cast(array.dtype, np.int32) for array in arrays):
        counter = _counted_ids(arrays, ambiguous)
    if counter is None:
        pair = LabelPair.from_arrays(
            *arrays,
            reference_classes,
            prediction_classes,
            class_names,
            ambiguous=ambiguous,
            mpp=mpp,
        )
        return pair, overlap_table(pair)
    reference_ids, prediction_ids = counter.numbered()
    pair = LabelPair(
        LabelImage.from_ids(
            arrays[0], reference_ids, reference_classes, class_names, side="reference"
        ),
        LabelImage.from_ids(
            arrays[1], prediction_ids, prediction_classes, class_names, side="prediction"
        ),
        ambiguous,
        mpp,
    )
    return pair, counter.table()


def _counted_ids(
    arrays: tuple[NDArray[np.integer], NDArray[np.integer]],
    ambiguous: NDArray[np.bool_] | None,
) -> TileCounter | None:
    """Count two arrays of ids as they are; None where that cannot be done."""
    shape = arrays[0].shape
    others = [arrays[1].shape, shape if ambiguous is None else ambiguous.shape]
    if len(shape) != 2 or any(other != shape for other in others):
        return None
    images = (
        np.ascontiguousarray(arrays[0], dtype=np.int32),
        np.ascontiguousarray(arrays[1], dtype=np.int32),
    )

    return _counted(images, ambiguous, (_FIRST_IDS, _FIRST_IDS), grows=True)


def _counted(
    sides: tuple[NDArray[np.int32], NDArray[np.int32]],
    void: NDArray[np.bool_] | None,
    sizes: tuple[int, int],
    *,
    grows: bool,
) -> TileCounter | None:
    """Count two whole images in threads; None where a number has no row and must not get one."""
    height, width = sides[0].shape
    n_threads, n_bands = 1, 1
    if height * width >= max(THREADS_FROM_PX, _THREADS_FROM_PX_PER_OBJECT * sum(sizes)):
        n_threads, n_bands = THREADS, _BANDS
    bands = Bands(height, n_bands)
    # Made before threads share the interpreter: from here on each is in a kernel.
    counters = [TileCounter(*sizes, (height, width)) for _ in range(n_threads)]
    if not all(in_threads(lambda own: own.add_bands(bands, *sides, void, grows=grows), counters)):
        return None
    counter, *others = counters
    for other in others:
        counter.merge(other)
    return counter


class Bands:
    """Lines of an image that threads take to count them, band by band.

    Parameters
    ----------
    height
        Number of lines.
    n
        Number of bands.
    """

    def __init__(self, height: int, n: int) -> None:
        self.lines = max(1, -(-height // n))
        self.taken = np.zeros(1, np.int64)


@dataclass(frozen=True, eq=False)
class CountedPart:
    """What was counted of a part of an image: its objects and pairs alone.

    Parameters
    ----------
    numbers
        Of reference and prediction, int64 (k,): the objects met, each its row
        plus one.
    rows
        Of both, int64 (k, 11): their rows of counts.
    pairs
        The pairs met.
    """

    numbers: tuple[NDArray[np.int64], NDArray[np.int64]]
    rows: tuple[NDArray[np.int64], NDArray[np.int64]]
    pairs: PairCounts


class TileCounter:
    """An overlap table that grows window by window, for images too large to hold.

    Windows may come in any order, but each pixel once.

    Parameters
    ----------
    n_reference, n_prediction
        Numbers of objects.
    shape
        Height and width of the whole image in px.
    """

    def __init__(self, n_reference: int, n_prediction: int, shape: tuple[int, int]) -> None:
        self._shape = shape
        # Row 0 is the background, unused.
        self._rows = blank_rows(n_reference + 1), blank_rows(n_prediction + 1)
        nothing = np.zeros(0, np.int64)
        self._pairs: PairCounts = (nothing, nothing, nothing)
        self._waiting = _room_to_wait(max(_WAITING, n_reference + n_prediction))
        self._n_waiting = 0

    def add(
        self,
        corner_yx: tuple[int, int],
        reference: NDArray[np.int32],
        prediction: NDArray[np.int32],
        void: NDArray[np.bool_] | None = None,
    ) -> None:
        """Count a window. Lets go of the interpreter.

        Parameters
        ----------
        corner_yx
            Where its first pixel lies in the whole image, in px.
        reference, prediction
            int32 images (y, x) of one shape: 0 is background, else the row of the
            object, plus one.
        void
            bool image (y, x): the ambiguous area, or None where there is none.

        Raises
        ------
        ValueError
            For a number that no object has.
        """
        sides, area = _for_kernels(reference, prediction, void)
        self._pairs, self._waiting, self._n_waiting, n_lines = _count_window(
            sides,
            area,
            (int(corner_yx[0]), int(corner_yx[1])),
            self._shape[1],
            self._rows,
            self._pairs,
            self._waiting,
            self._n_waiting,
        )
        if n_lines < len(reference):
            raise ValueError(_NO_OBJECT)

    def add_bands(
        self,
        bands: Bands,
        reference: NDArray[np.int32],
        prediction: NDArray[np.int32],
        void: NDArray[np.bool_] | None = None,
        *,
        grows: bool,
    ) -> bool:
        """Count bands of the whole image until all are taken, by this counter or another one.

        Parameters
        ----------
        bands
            What is left to count.
        reference, prediction, void
            As in :meth:`add`, of the whole image.
        grows
            Whether an object without a row gets one, unless its number is so high that a
            list of all up to it would be too long.

        Returns
        -------
        bool
            False, with nothing to be had from this counter, where a number has no row
            and gets none.
        """
        sides, area = _for_kernels(reference, prediction, void)
        under_way = np.zeros(2, np.int64)
        while True:
            self._pairs, self._waiting, self._n_waiting = _count_bands(
                sides,
                area,
                bands.lines,
                bands.taken,
                under_way,
                self._rows,
                self._pairs,
                self._waiting,
                self._n_waiting,
            )
            line, end = under_way
            if line == end:
                return True
            if not (grows and self._make_rows(reference[line], prediction[line])):
                return False

    def _make_rows(self, *lines: NDArray[np.int32]) -> bool:
        """Make rows for all objects of a line of both sides; tell whether that can be done."""
        for side, line in enumerate(lines):
            highest = int(line.max())
            if highest > _LISTED_IDS or int(line.min()) < 0:
                return False
            if highest >= len(self._rows[side]):
                self._make_room(side, 2 * highest)
        return True

    def numbered(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the objects met the numbers 1..n, in the order of the numbers they had.

        Returns
        -------
        tuple
            Of reference and prediction, int64 (n,): the numbers that they had.
        """
        keys, total, in_void = self._settled()
        ids = [np.flatnonzero(rows[1:, AREA]) + 1 for rows in self._rows]
        if any(len(side) and side[-1] != len(side) for side in ids):
            numbers = [
                np.searchsorted(side, old) + 1
                for side, old in zip(ids, (keys >> 32, keys & 0xFFFFFFFF), strict=True)
            ]
            self._pairs = (numbers[0] << 32) | numbers[1], total, in_void
        self._rows = (
            self._rows[0][np.append(0, ids[0])],
            self._rows[1][np.append(0, ids[1])],
        )
        return ids[0], ids[1]

    def _make_room(self, side: int, n: int) -> None:
        """Make rows for n objects of a side."""
        longer = blank_rows(n + 1)
        longer[: len(self._rows[side])] = self._rows[side]
        both = list(self._rows)
        both[side] = longer
        self._rows = both[0], both[1]

    def merge(self, other: TileCounter, *, rows: tuple[bool, bool] = (True, True)) -> None:
        """Add what another counter of the same image counted; its figures stay as they are.

        Parameters
        ----------
        other
            The other counter.
        rows
            Whether to add the objects of the reference, and of the prediction;
            pairs are added in any case.
        """
        for side, theirs in enumerate(other._rows):
            if len(theirs) > len(self._rows[side]):
                self._make_room(side, len(theirs) - 1)
            if rows[side]:
                _add_rows(self._rows[side][: len(theirs)], theirs)
        self._pairs = _merged(self._settled(), other._settled())

    def part(self) -> CountedPart:
        """Return what is counted so far, to be added to a counter in another process."""
        reference, prediction = (np.flatnonzero(rows[:, AREA]) for rows in self._rows)
        keys, total, in_void = self._settled()
        return CountedPart(
            (reference, prediction),
            (self._rows[0][reference], self._rows[1][prediction]),
            (keys.copy(), total.copy(), in_void.copy()),
        )

    def add_part(self, part: CountedPart) -> None:
        """Add what a counter of the same image counted elsewhere."""
        for own, numbers, counts in zip(self._rows, part.numbers, part.rows, strict=True):
            rows = own[numbers]
            _add_rows(rows, counts)
            own[numbers] = rows
        self._pairs = _merged(self._settled(), part.pairs)

    def table(self) -> OverlapTable:
        """Freeze what is counted so far."""
        keys, total, in_void = self._settled()
        reference, prediction = self._rows
        return OverlapTable(
            reference=side_table(reference, self._shape),
            prediction=side_table(prediction, self._shape),
            pair_reference=((keys >> 32) - 1).astype(np.int32),
            pair_prediction=((keys & 0xFFFFFFFF) - 1).astype(np.int32),
            intersection=total.copy(),  # These lists have room for more.
            void_intersection=in_void.copy(),
        )

    def _settled(self) -> PairCounts:
        """Return the pairs, with all that waited."""
        reference, prediction = self._rows
        self._pairs = _settled(
            self._pairs, self._waiting, self._n_waiting, len(reference), len(prediction)
        )
        self._n_waiting = 0
        return self._pairs


def _for_kernels(
    reference: NDArray[np.int32], prediction: NDArray[np.int32], void: NDArray[np.bool_] | None
) -> tuple[tuple[NDArray[np.int32], NDArray[np.int32]], NDArray[np.uint8]]:
    """Return images as kernels take them: a window without ambiguous area has an empty one."""
    area = np.zeros((0, 0), np.uint8) if void is None else np.ascontiguousarray(void).view(np.uint8)
    sides = (
        read_only(np.ascontiguousarray(reference)),
        read_only(np.ascontiguousarray(prediction)),
    )
    return sides, read_only(area)


def side_table(
    rows: NDArray[np.int64], shape: tuple[int, int], chosen: NDArray[np.int64] | None = None
) -> SideTable:
    """Freeze the counts of all rows but the first, the background; or of chosen ones."""
    if chosen is None:
        chosen = np.arange(1, len(rows))
    return SideTable(*_columns(rows, chosen, max(shape)))


@compiled
def _columns(
    rows: NDArray[np.int64], chosen: NDArray[np.int64], far: int
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int64],
]:
    """Write each row's figures to their columns, in the order of `SideTable`."""
    n = len(chosen)
    area, void_area, first = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    sums, void_sums = np.empty((n, 2), np.int64), np.empty((n, 2), np.int64)
    bbox = np.empty((n, 4), np.int32)
    for k in range(n):
        row = rows[chosen[k]]
        area[k], void_area[k], first[k] = row[AREA], row[VOID_AREA], row[FIRST]
        sums[k, 0], sums[k, 1] = row[SUM_Y], row[SUM_X]
        void_sums[k, 0], void_sums[k, 1] = row[VOID_SUM_Y], row[VOID_SUM_X]
        bbox[k, 0], bbox[k, 1] = min(row[Y0], far), min(row[X0], far)
        bbox[k, 2], bbox[k, 3] = min(row[Y1], far), min(row[X1], far)
    return area, void_area, sums, void_sums, bbox, first


@compiled
def _add_run(
    rows: NDArray[np.int64], label: np.int32, y: int, x0: int, x1: int, width: int
) -> None:
    """Add the pixels (y, x0..x1-1) to one object's row."""
    row = rows[label]
    length = x1 - x0
    row[AREA] += length
    row[SUM_Y] += length * y
    # Exact: of two factors one is even.
    row[SUM_X] += length * (x0 + x1 - 1) // 2
    row[Y0] = min(row[Y0], y)
    row[X0] = min(row[X0], x0)
    row[Y1] = max(row[Y1], y + 1)
    row[X1] = max(row[X1], x1)
    row[FIRST] = min(row[FIRST], y * width + x0)


@compiled
def _add_runs(
    rows: NDArray[np.int64],
    line: NDArray[np.int32],
    ends: NDArray[np.int32],
    n: int,
    own_ends: NDArray[np.int32],
    y: int,
    left: int,
    width: int,
) -> None:
    """Add a line of one side, which changes at some of n places, to its objects' rows."""
    n_own = 0
    for k in range(n):
        # Without a branch: which side changes next cannot be predicted.
        own_ends[n_own] = ends[k]
        n_own += line[ends[k]] != line[ends[k] - 1]
    own_ends[n_own] = len(line)
    start = 0
    for k in range(n_own + 1):
        end = own_ends[k]
        if line[start]:
            _add_run(rows, line[start], y, left + start, left + end, width)
        start = end


@compiled
def _add_void_run(rows: NDArray[np.int64], label: np.int32, y: int, x0: int, x1: int) -> None:
    """Add pixels in the void, which are counted otherwise already, to one object's row."""
    row = rows[label]
    length = x1 - x0
    row[VOID_AREA] += length
    row[VOID_SUM_Y] += length * y
    row[VOID_SUM_X] += length * (x0 + x1 - 1) // 2


@compiled
def _count_window(
    sides: tuple[NDArray[np.int32], NDArray[np.int32]],
    void: NDArray[np.uint8],
    corner_yx: tuple[int, int],
    image_width: int,
    rows_of_sides: tuple[NDArray[np.int64], NDArray[np.int64]],
    pairs: PairCounts,
    waiting: _Waiting,
    n_waiting: int,
) -> tuple[PairCounts, _Waiting, int, int]:
    """Count a window into rows and pairs, line by line; tell how many lines were counted.

    These are all lines, or those before the first one with a label that has no row.

    A line is cut wherever either side or the ambiguous area changes. What both sides
    share waits in a list and is sorted many at a time, which costs less than looking
    each run up, and as little where every pixel is another pair.
    """
    reference, prediction = sides
    reference_rows, prediction_rows = rows_of_sides
    top, left = corner_yx
    height, width = reference.shape
    if height == 0 or width == 0:
        return pairs, waiting, n_waiting, height
    notes = blank_notes(width)
    changed, _, ends = notes
    own_ends = np.empty(width + 1, np.int32)
    for line in range(height):
        y = top + line
        of_reference, of_prediction = reference[line], prediction[line]
        for x in range(1, width):
            # Without a branch, so that it compiles to vector instructions.
            changed[x] = (of_reference[x] != of_reference[x - 1]) | (
                of_prediction[x] != of_prediction[x - 1]
            )
        if len(void):
            of_void = void[line]
            for x in range(1, width):
                changed[x] |= of_void[x] != of_void[x - 1]
        n_changes = list_changes(notes)
        ends[n_changes] = width
        if not (
            _have_rows(of_reference, ends, n_changes, len(reference_rows))
            and _have_rows(of_prediction, ends, n_changes, len(prediction_rows))
        ):
            return pairs, waiting, n_waiting, line

        if n_waiting + n_changes + 1 > len(waiting[0]):
            pairs = _settled(pairs, waiting, n_waiting, len(reference_rows), len(prediction_rows))
            n_waiting = 0
            # As many may wait as there are pairs: each pair is then moved a few times only.
            if max(len(pairs[0]), n_changes + 1) > len(waiting[0]):
                waiting = _room_to_wait(max(2 * len(pairs[0]), n_changes + 1))
        entries = waiting[0]
        start = 0
        for k in range(n_changes + 1):
            end = ends[k]
            i, j = of_reference[start], of_prediction[start]
            is_void = len(void) and void[line, start] != 0
            if is_void:
                if i:
                    _add_void_run(reference_rows, i, y, left + start, left + end)
                if j:
                    _add_void_run(prediction_rows, j, y, left + start, left + end)
            entry = entries[n_waiting]
            entry[_REFERENCE], entry[_PREDICTION] = i, j
            entry[_LENGTH] = end - start
            entry[_VOID_LENGTH] = (end - start) * is_void
            n_waiting += (i != 0) & (j != 0)
            start = end
        _add_runs(reference_rows, of_reference, ends, n_changes, own_ends, y, left, image_width)
        _add_runs(prediction_rows, of_prediction, ends, n_changes, own_ends, y, left, image_width)
    return pairs, waiting, n_waiting, height


@compiled
def _count_bands(
    sides: tuple[NDArray[np.int32], NDArray[np.int32]],
    void: NDArray[np.uint8],
    lines: int,
    taken: NDArray[np.int64],
    under_way: NDArray[np.int64],
    rows_of_sides: tuple[NDArray[np.int64], NDArray[np.int64]],
    pairs: PairCounts,
    waiting: _Waiting,
    n_waiting: int,
) -> tuple[PairCounts, _Waiting, int]:
    """Count bands of so many lines, as long as there are any to be taken.

    Begins with the lines that are under way, from one up to another. Some of them stay
    where the first has a label that has no row.
    """
    reference, prediction = sides
    height, width = reference.shape
    while True:
        if under_way[0] == under_way[1]:
            top = take_next(taken) * lines
            if top >= height:
                return pairs, waiting, n_waiting
            under_way[0], under_way[1] = top, min(top + lines, height)
        first, end = under_way[0], under_way[1]
        pairs, waiting, n_waiting, done = _count_window(
            (reference[first:end], prediction[first:end]),
            void[first:end],
            (first, 0),
            width,
            rows_of_sides,
            pairs,
            waiting,
            n_waiting,
        )
        under_way[0] = first + done
        if under_way[0] < end:
            return pairs, waiting, n_waiting


@compiled
def _have_rows(line: NDArray[np.int32], ends: NDArray[np.int32], n: int, n_rows: int) -> bool:
    """Return whether the label at the begin of a line and those at its changes have rows."""
    lowest = highest = line[0]
    for k in range(n):
        lowest = min(lowest, line[ends[k]])
        highest = max(highest, line[ends[k]])
    return bool(lowest >= 0 and highest < n_rows)


@compiled
def _room_to_wait(n: int) -> _Waiting:
    return np.empty((n, 4), np.int32), np.empty((n, 4), np.int32)


@compiled
def _sort_by(column: int, n: int, entries: NDArray[np.int32], result: NDArray[np.int32]) -> None:
    """Sort entries by a column of numbers below n, equal ones in the order they came."""
    place = np.zeros(n + 1, np.int64)
    for k in range(len(entries)):
        place[entries[k, column] + 1] += 1
    for number in range(n):
        place[number + 1] += place[number]
    for k in range(len(entries)):
        entry = entries[k]
        at = place[entry[column]]
        place[entry[column]] = at + 1
        for field in range(4):
            result[at, field] = entry[field]


@compiled
def _key_of(entry: NDArray[np.int32]) -> np.int64:
    return (np.int64(entry[_REFERENCE]) << 32) | np.int64(entry[_PREDICTION])


@compiled
def _settled_densely(
    pairs: PairCounts, entries: NDArray[np.int32], n_reference: int, n_prediction: int
) -> PairCounts:
    """Do the same by a table with a place for every two objects, as is best for noise."""
    total = np.zeros((n_reference, n_prediction), np.int64)
    in_void = np.zeros((n_reference, n_prediction), np.int64)
    keys, known_total, known_void = pairs
    for k in range(len(keys)):
        i, j = keys[k] >> 32, keys[k] & 0xFFFFFFFF
        total[i, j], in_void[i, j] = known_total[k], known_void[k]
    for k in range(len(entries)):
        entry = entries[k]
        total[entry[_REFERENCE], entry[_PREDICTION]] += entry[_LENGTH]
        in_void[entry[_REFERENCE], entry[_PREDICTION]] += entry[_VOID_LENGTH]
    room = min(len(keys) + len(entries), total.size)
    new_keys = np.empty(room, np.int64)
    new_total, new_void = np.empty(room, np.int64), np.empty(room, np.int64)
    n = 0
    for i in range(n_reference):
        for j in range(n_prediction):
            if total[i, j]:
                new_keys[n] = (np.int64(i) << 32) | np.int64(j)
                new_total[n], new_void[n] = total[i, j], in_void[i, j]
                n += 1
    return new_keys[:n], new_total[:n], new_void[:n]


@compiled
def _settled(
    pairs: PairCounts, waiting: _Waiting, n_waiting: int, n_reference: int, n_prediction: int
) -> PairCounts:
    """Add what waits to the pairs, which are sorted by key."""
    if n_waiting == 0:
        return pairs
    if n_reference * n_prediction <= _DENSE * n_waiting:
        return _settled_densely(pairs, waiting[0][:n_waiting], n_reference, n_prediction)
    entries, others = waiting[0][:n_waiting], waiting[1][:n_waiting]
    _sort_by(_PREDICTION, n_prediction, entries, others)
    _sort_by(_REFERENCE, n_reference, others, entries)
    keys, total, in_void = pairs
    # Room that stays empty is never touched, and costs no memory.
    room = len(keys) + n_waiting
    new_keys = np.empty(room, np.int64)
    new_total, new_void = np.empty(room, np.int64), np.empty(room, np.int64)
    n, i, k = 0, 0, 0
    while k < n_waiting:
        key = _key_of(entries[k])
        while i < len(keys) and keys[i] < key:
            new_keys[n], new_total[n], new_void[n] = keys[i], total[i], in_void[i]
            i += 1
            n += 1
        length, void_length = np.int64(0), np.int64(0)
        if i < len(keys) and keys[i] == key:
            length, void_length = total[i], in_void[i]
            i += 1
        while k < n_waiting and _key_of(entries[k]) == key:
            length += entries[k, _LENGTH]
            void_length += entries[k, _VOID_LENGTH]
            k += 1
        new_keys[n], new_total[n], new_void[n] = key, length, void_length
        n += 1
    rest = len(keys) - i
    new_keys[n : n + rest] = keys[i:]
    new_total[n : n + rest] = total[i:]
    new_void[n : n + rest] = in_void[i:]
    n += rest
    return new_keys[:n], new_total[:n], new_void[:n]


@compiled
def _merged(pairs: PairCounts, others: PairCounts) -> PairCounts:
    """Add two lists of pairs, both sorted by key."""
    keys, total, in_void = pairs
    other_keys, other_total, other_void = others
    room = len(keys) + len(other_keys)
    new_keys = np.empty(room, np.int64)
    new_total, new_void = np.empty(room, np.int64), np.empty(room, np.int64)
    n, i, j = 0, 0, 0
    while i < len(keys) or j < len(other_keys):
        key = keys[i] if i < len(keys) else _LAST
        other_key = other_keys[j] if j < len(other_keys) else _LAST
        new_keys[n], new_total[n], new_void[n] = min(key, other_key), 0, 0
        if key <= other_key:
            new_total[n] += total[i]
            new_void[n] += in_void[i]
            i += 1
        if other_key <= key:
            new_total[n] += other_total[j]
            new_void[n] += other_void[j]
            j += 1
        n += 1
    return new_keys[:n], new_total[:n], new_void[:n]


@compiled
def _add_rows(rows: NDArray[np.int64], others: NDArray[np.int64]) -> None:
    for k in range(len(rows)):
        row, other = rows[k], others[k]
        for column in (AREA, SUM_Y, SUM_X, VOID_AREA, VOID_SUM_Y, VOID_SUM_X):
            row[column] += other[column]
        for column in (Y0, X0, FIRST):
            row[column] = min(row[column], other[column])
        for column in (Y1, X1):
            row[column] = max(row[column], other[column])
