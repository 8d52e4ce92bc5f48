"""Counting again what an edit changed: compiled kernels that look at its pixels alone.

All of them update the rows of both sides' objects in place and mark the rows
that they touched. Pixels are taken run by run, so that a fill of millions of
pixels costs a fraction of a full count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.counts import (
    AREA,
    FAR,
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
    PairTable,
    add_to_pair,
    filled,
    pair_key,
    pair_table,
    with_room,
)
from napari_panoptic.kernels.jit import compiled

Counts = tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]
"""Rows, marks and touched rows, as in `EditedSide`."""

# Marks of rows: touched at all, and perhaps smaller than its bounding box now.
TOUCHED, DOUBTFUL = 1, 2
# A pair table for the few pairs of a stroke; it grows.
_PLACES = 256
# So many single pixels are set before the pair table may grow.
_PIXELS = 2048


@dataclass(frozen=True, eq=False)
class EditedSide:
    """What the kernels need of a side.

    Parameters
    ----------
    index
        int32 image (y, x): 0 is background, else the row of the object.
    rows
        int64 (n + 1, 11): counts, as in `counting`; row 0 is the background, unused.
    marks
        uint8 (n + 1,): what was done to each row.
    touched
        int64 (n + 2,): how many rows have a mark, then these rows.
    """

    index: NDArray[np.int32]
    rows: NDArray[np.int64]
    marks: NDArray[np.uint8]
    touched: NDArray[np.int64]

    @classmethod
    def untouched(cls, index: NDArray[np.int32], rows: NDArray[np.int64]) -> EditedSide:
        """Start without a mark."""
        return cls(index, rows, np.zeros(len(rows), np.uint8), np.zeros(len(rows) + 1, np.int64))

    @property
    def counts(self) -> Counts:
        """What kernels change besides the image."""
        return self.rows, self.marks, self.touched


def recount_pixels(
    own: EditedSide,
    facing: NDArray[np.int32],
    void: NDArray[np.bool_] | None,
    y: NDArray[np.int64],
    x: NDArray[np.int64],
    slots: NDArray[np.int32],
    *,
    is_reference: bool,
) -> tuple[int, PairCounts]:
    """Set single pixels of a side.

    Parameters
    ----------
    own
        The side that is edited, changed in place.
    facing
        int32 image of the other side.
    void
        The ambiguous area, or None.
    y, x
        (n,): pixels, each at most once.
    slots
        (n,) or (1,): what they become.
    is_reference
        Whether `own` is the reference.

    Returns
    -------
    changed_px
        Number of pixels that are another object's now.
    pairs
        Keys ``reference << 32 | prediction``, and by how much their shared
        pixels, and those in the void, changed.
    """
    return _recount_pixels(
        (own.index, facing, _as_bytes(void)), own.counts, (y, x, slots), is_reference
    )


def recount_window(
    own: EditedSide,
    facing: NDArray[np.int32],
    void: NDArray[np.bool_] | None,
    corner_yx: tuple[int, int],
    numbers: NDArray[np.uint16],
    slot_of_number: NDArray[np.int32],
    *,
    is_reference: bool,
) -> tuple[int, PairCounts]:
    """Set all pixels of a window; the rest as in :func:`recount_pixels`."""
    return _recount_window(
        (own.index, facing, _as_bytes(void)),
        own.counts,
        corner_yx,
        numbers,
        slot_of_number,
        is_reference,
    )


def numbers_in(numbers: NDArray[np.uint16]) -> NDArray[np.intp]:
    """List the numbers that an image has, ascending."""
    return np.flatnonzero(_present(numbers))


def recount_void(
    reference: EditedSide,
    prediction: EditedSide,
    before: NDArray[np.bool_] | None,
    after: NDArray[np.bool_] | None,
) -> PairCounts:
    """Count again what lies in the void, where the ambiguous area is another than before.

    Returns
    -------
    PairCounts
        As the pairs of :func:`recount_pixels`; no pair shares more or less than before.
    """
    return _recount_void(
        reference.index,
        reference.counts,
        prediction.index,
        prediction.counts,
        _as_bytes(before),
        _as_bytes(after),
    )


def settle(own: EditedSide) -> NDArray[np.int64]:
    """Find bounding boxes and first pixels again where they are in doubt, and take marks away.

    Objects are looked for in their boxes; boxes that cover more than the image
    together cost more than one pass over it.

    Returns
    -------
    int64 (k,)
        The rows that had a mark, ascending, without the background.
    """
    return _settle(own.index, own.counts)


def extent(y: NDArray[np.int64], x: NDArray[np.int64]) -> tuple[int, int, int, int]:
    """Return the box of pixels, of which there is one at least: y0, x0, y1, x1, half-open."""
    return _extent(y, x)


def _as_bytes(void: NDArray[np.bool_] | None) -> NDArray[np.uint8]:
    if void is None:
        return np.zeros((0, 0), np.uint8)
    return np.ascontiguousarray(void).view(np.uint8)


@compiled
def _extent(y: NDArray[np.int64], x: NDArray[np.int64]) -> tuple[int, int, int, int]:
    y0, x0, y1, x1 = y[0], x[0], y[0], x[0]
    for k in range(len(y)):
        y0, x0, y1, x1 = min(y0, y[k]), min(x0, x[k]), max(y1, y[k]), max(x1, x[k])
    return y0, x0, y1 + 1, x1 + 1


@compiled
def _mark(counts: Counts, row: np.integer, what: int) -> None:
    _, marks, touched = counts
    if marks[row] == 0:
        touched[0] += 1
        touched[touched[0]] = row
    marks[row] |= what


@compiled
def _present(numbers: NDArray[np.uint16]) -> NDArray[np.bool_]:
    found = np.zeros(1 << 16, np.bool_)
    for line in numbers:
        last = line[0]
        found[last] = True
        for number in line:
            if number != last:
                found[number] = True
                last = number
    return found


@compiled
def _add_to_row(
    row: NDArray[np.int64], y: int, x0: np.int64, x1: np.int64, sign: int, void: np.int64
) -> None:
    """Add (+1) or take away (-1) the pixels (y, x0..x1-1), without its place."""
    length = (x1 - x0) * sign
    sum_y = length * y
    # Exact: of two factors one is even.
    sum_x = sign * ((x1 - x0) * (x0 + x1 - 1) // 2)
    row[AREA] += length
    row[SUM_Y] += sum_y
    row[SUM_X] += sum_x
    row[VOID_AREA] += void * length
    row[VOID_SUM_Y] += void * sum_y
    row[VOID_SUM_X] += void * sum_x


@compiled
def _count_pair(
    table: PairTable, reference: np.int32, prediction: np.int32, change: np.int64, void: np.int64
) -> int:
    """Note a pair's change; return 1 where it is new to the table."""
    if reference == 0 or prediction == 0:
        return 0
    return int(add_to_pair(table, pair_key(reference, prediction), change, void))


@compiled
def _set_run(
    y: int,
    x0: np.int64,
    x1: np.int64,
    old: np.int32,
    new: np.int32,
    facing: np.int32,
    void: np.int64,
    counts: Counts,
    table: PairTable,
    width: int,
    is_reference: bool,
) -> int:
    """Count a run that went from one object to another; return how many pairs are new."""
    length = x1 - x0
    rows = counts[0]
    if old > 0:
        row = rows[old]
        _add_to_row(row, y, x0, x1, -1, void)
        at_edge = y == row[Y0] or y == row[Y1] - 1 or x0 == row[X0] or x1 == row[X1]
        _mark(counts, old, TOUCHED | DOUBTFUL if at_edge else TOUCHED)
    if new > 0:
        row = rows[new]
        _add_to_row(row, y, x0, x1, 1, void)
        _mark(counts, new, TOUCHED)
        row[Y0] = min(row[Y0], y)
        row[X0] = min(row[X0], x0)
        row[Y1] = max(row[Y1], y + 1)
        row[X1] = max(row[X1], x1)
        row[FIRST] = min(row[FIRST], y * width + x0)
    if is_reference:
        return _count_pair(table, old, facing, -length, -length * void) + _count_pair(
            table, new, facing, length, length * void
        )
    return _count_pair(table, facing, old, -length, -length * void) + _count_pair(
        table, facing, new, length, length * void
    )


@compiled
def _recount_pixels(
    images: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]],
    counts: Counts,
    pixels: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]],
    is_reference: bool,
) -> tuple[int, PairCounts]:
    index, facing, void = images
    ys, xs, slots = pixels
    width = index.shape[1]
    has_void = void.size > 0
    is_one = len(slots) == 1
    table = pair_table(_PLACES)
    used, changed = 0, 0
    for start in range(0, len(ys), _PIXELS):
        end = min(start + _PIXELS, len(ys))
        table = with_room(table, used, 2 * (end - start))
        k = start
        while k < end:
            y, x0, new = ys[k], xs[k], slots[0 if is_one else k]
            old, f = index[y, x0], facing[y, x0]
            v = np.int64(void[y, x0] if has_void else 0)
            x = x0
            # On to the right as long as pixels follow each other that are alike.
            while True:
                index[y, x] = new
                k, x = k + 1, x + 1
                if (
                    k == end
                    or ys[k] != y
                    or xs[k] != x
                    or (not is_one and slots[k] != new)
                    or index[y, x] != old
                    or facing[y, x] != f
                    or (has_void and void[y, x] != v)
                ):
                    break
            if old != new:
                changed += x - x0
                used += _set_run(y, x0, x, old, new, f, v, counts, table, width, is_reference)
    return changed, filled(table)


@compiled
def _recount_window(
    images: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]],
    counts: Counts,
    corner_yx: tuple[int, int],
    numbers: NDArray[np.uint16],
    slot_of_number: NDArray[np.int32],
    is_reference: bool,
) -> tuple[int, PairCounts]:
    index, facing, void = images
    top, left = corner_yx
    height, width = numbers.shape
    has_void = void.size > 0
    no_void = np.zeros(0, np.uint8)
    table = pair_table(_PLACES)
    used, changed = 0, 0
    for line in range(height):
        # Room for every run of the line beforehand, two pairs each.
        table = with_room(table, used, 2 * width)
        y = top + line
        wanted = numbers[line]
        own = index[y, left : left + width]
        across = facing[y, left : left + width]
        voids = void[y, left : left + width] if has_void else no_void
        x = 0
        while x < width:
            number, old = wanted[x], own[x]
            new = slot_of_number[number]
            if new == old:
                x += 1
                continue
            start, f = x, across[x]
            v = voids[x] if has_void else np.uint8(0)
            while (
                x < width
                and wanted[x] == number
                and own[x] == old
                and across[x] == f
                and (not has_void or voids[x] == v)
            ):
                own[x] = new
                x += 1
            changed += x - start
            used += _set_run(
                y,
                np.int64(left + start),
                np.int64(left + x),
                old,
                new,
                f,
                np.int64(v),
                counts,
                table,
                index.shape[1],
                is_reference,
            )
    return changed, filled(table)


@compiled
def _differs(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    """Return whether two lines of a mask differ; without a branch per pixel."""
    found = np.uint8(0)
    for x in range(len(one)):
        found |= one[x] ^ other[x]
    return bool(found != 0)


@compiled
def _void_run(row: NDArray[np.int64], y: int, x0: np.int64, x1: np.int64, sign: np.int64) -> None:
    length = (x1 - x0) * sign
    row[VOID_AREA] += length
    row[VOID_SUM_Y] += length * y
    row[VOID_SUM_X] += sign * ((x1 - x0) * (x0 + x1 - 1) // 2)


@compiled
def _recount_void(
    reference: NDArray[np.int32],
    reference_counts: Counts,
    prediction: NDArray[np.int32],
    prediction_counts: Counts,
    before: NDArray[np.uint8],
    after: NDArray[np.uint8],
) -> PairCounts:
    height, width = reference.shape
    nothing = np.zeros(width, np.uint8)
    table = pair_table(_PLACES)
    used = 0
    for y in range(height):
        was = before[y] if before.size > 0 else nothing
        now = after[y] if after.size > 0 else nothing
        if not _differs(was, now):
            continue
        table = with_room(table, used, width)
        x = 0
        while x < width:
            if was[x] == now[x]:
                x += 1
                continue
            start, v, r, p = x, now[x], reference[y, x], prediction[y, x]
            while (
                x < width
                and was[x] != now[x]
                and now[x] == v
                and reference[y, x] == r
                and prediction[y, x] == p
            ):
                x += 1
            sign = np.int64(1) if v else np.int64(-1)
            x0, x1 = np.int64(start), np.int64(x)
            _void_run(reference_counts[0][r], y, x0, x1, sign)
            _void_run(prediction_counts[0][p], y, x0, x1, sign)
            _mark(reference_counts, r, TOUCHED)
            _mark(prediction_counts, p, TOUCHED)
            used += _count_pair(table, r, p, np.int64(0), sign * (x1 - x0))
    return filled(table)


@compiled
def _shrink(index: NDArray[np.int32], row: NDArray[np.int64], slot: np.integer) -> None:
    """Find an object again that lies within its box and has a pixel, from the box's edges on."""
    left, right = row[X0], row[X1]
    first_y, first_x = np.int64(-1), right
    for y in range(row[Y0], row[Y1]):
        for x in range(left, right):
            if index[y, x] == slot:
                first_y, first_x = np.int64(y), np.int64(x)
                break
        if first_y >= 0:
            break
    low_x, high_x, last_y = first_x, first_x, first_y
    for y in range(first_y, row[Y1]):
        line = index[y]
        for x in range(left, low_x):
            if line[x] == slot:
                low_x = np.int64(x)
                last_y = np.int64(y)
                break
        for x in range(right - 1, high_x, -1):
            if line[x] == slot:
                high_x = np.int64(x)
                last_y = np.int64(y)
                break
    # What lies between these columns only can still reach further down.
    for y in range(row[Y1] - 1, last_y, -1):
        for x in range(low_x, high_x + 1):
            if index[y, x] == slot:
                last_y = np.int64(y)
                break
        if last_y == y:
            break
    row[Y0], row[X0], row[Y1], row[X1] = first_y, low_x, last_y + 1, high_x + 1
    row[FIRST] = first_y * index.shape[1] + first_x


@compiled
def _settle(index: NDArray[np.int32], counts: Counts) -> NDArray[np.int64]:
    rows, marks, touched = counts
    slots = np.sort(touched[1 : touched[0] + 1])
    if len(slots) > 0 and slots[0] == 0:  # the background
        marks[0] = 0
        slots = slots[1:]
    _remeasure(index, rows, marks, slots)
    for slot in slots:
        marks[slot] = 0
    touched[0] = 0
    return slots


@compiled
def _remeasure(
    index: NDArray[np.int32],
    rows: NDArray[np.int64],
    marks: NDArray[np.uint8],
    slots: NDArray[np.int64],
) -> None:
    height, width = index.shape
    boxes_px = np.int64(0)
    for slot in slots:
        row = rows[slot]
        if marks[slot] & DOUBTFUL and row[AREA] > 0:
            boxes_px += (row[Y1] - row[Y0]) * (row[X1] - row[X0])
    by_box = boxes_px <= height * width
    for slot in slots:
        row = rows[slot]
        if not marks[slot] & DOUBTFUL:
            continue
        if row[AREA] > 0 and by_box:
            _shrink(index, row, slot)
        else:
            row[Y0], row[X0], row[Y1], row[X1], row[FIRST] = FAR, FAR, 0, 0, FAR
    if by_box:
        return
    for y in range(height):
        for x in range(width):
            slot = index[y, x]
            if marks[slot] & DOUBTFUL:
                row = rows[slot]
                row[Y0] = min(row[Y0], y)
                row[X0] = min(row[X0], x)
                row[Y1] = max(row[Y1], y + 1)
                row[X1] = max(row[X1], x + 1)
                row[FIRST] = min(row[FIRST], y * width + x)
