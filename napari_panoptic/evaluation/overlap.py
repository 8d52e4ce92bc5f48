"""From two label images to areas and intersections, in one pass over the pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic._compiled import compiled
from napari_panoptic.evaluation.labels import LabelPair


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
    n_reference, n_prediction = len(pair.reference), len(pair.prediction)
    has_void = pair.ambiguous is not None
    void = (
        np.ascontiguousarray(pair.ambiguous).view(np.uint8)
        if pair.ambiguous is not None
        else np.zeros((1, 1), np.uint8)
    )
    reference = _blank_rows(n_reference)
    prediction = _blank_rows(n_prediction)
    keys, total, in_void = _scan(
        np.ascontiguousarray(pair.reference.index),
        np.ascontiguousarray(pair.prediction.index),
        void,
        has_void,
        reference,
        prediction,
    )
    is_pair = np.flatnonzero((keys >> 32 > 0) & (keys & 0xFFFFFFFF > 0))
    order = is_pair[np.argsort(keys[is_pair])]
    keys = keys[order]
    return OverlapTable(
        reference=_side_table(reference, pair.reference.shape),
        prediction=_side_table(prediction, pair.reference.shape),
        pair_reference=((keys >> 32) - 1).astype(np.int32),
        pair_prediction=((keys & 0xFFFFFFFF) - 1).astype(np.int32),
        intersection=total[order],
        void_intersection=in_void[order],
    )


# Columns of the rows that the kernel fills; row 0 is the background, unused.
_AREA, _SUM_Y, _SUM_X, _VOID_AREA, _VOID_SUM_Y, _VOID_SUM_X = 0, 1, 2, 3, 4, 5
_Y0, _X0, _Y1, _X1, _FIRST = 6, 7, 8, 9, 10
_FAR = np.int64(1) << 40
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _blank_rows(n: int) -> NDArray[np.int64]:
    rows = np.zeros((n + 1, 11), np.int64)
    rows[:, [_Y0, _X0, _FIRST]] = _FAR
    return rows


def _side_table(rows: NDArray[np.int64], shape: tuple[int, int]) -> SideTable:
    objects = rows[1:]
    bbox = np.minimum(objects[:, [_Y0, _X0, _Y1, _X1]], max(shape)).astype(np.int32)
    return SideTable(
        area=objects[:, _AREA].copy(),
        void_area=objects[:, _VOID_AREA].copy(),
        sum_yx=objects[:, [_SUM_Y, _SUM_X]],
        void_sum_yx=objects[:, [_VOID_SUM_Y, _VOID_SUM_X]],
        bbox=bbox,
        first_pixel=objects[:, _FIRST].copy(),
    )


@compiled
def _add_run(
    rows: NDArray[np.int64],
    label: np.int32,
    y: int,
    x0: np.int64,
    x1: np.int64,
    void: np.int64,
    width: int,
) -> None:
    """Add the pixels (y, x0..x1-1) to one object's row."""
    row = rows[label]
    length = x1 - x0
    sum_y = length * y
    sum_x = length * (x0 + x1 - 1) // 2
    row[_AREA] += length
    row[_SUM_Y] += sum_y
    row[_SUM_X] += sum_x
    row[_VOID_AREA] += void * length
    row[_VOID_SUM_Y] += void * sum_y
    row[_VOID_SUM_X] += void * sum_x
    row[_Y0] = min(row[_Y0], y)
    row[_X0] = min(row[_X0], x0)
    row[_Y1] = y + 1
    row[_X1] = max(row[_X1], x1)
    row[_FIRST] = min(row[_FIRST], y * width + x0)


@compiled
def _slot(keys: NDArray[np.int64], key: np.int64) -> np.int64:
    """Find a key's place in an open-addressing table, or the free place for it."""
    mask = len(keys) - 1
    # Fibonacci hashing: neighbouring pairs of labels spread over the table.
    place = np.int64((np.uint64(key) * _GOLDEN) >> np.uint64(32)) & mask
    while keys[place] != 0 and keys[place] != key:
        place = (place + 1) & mask
    return place


@compiled
def _grown(
    keys: NDArray[np.int64], total: NDArray[np.int64], in_void: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Move a hash table into one of four times the size."""
    size = len(keys) * 4
    new_keys = np.zeros(size, np.int64)
    new_total = np.zeros(size, np.int64)
    new_void = np.zeros(size, np.int64)
    for old in range(len(keys)):
        if keys[old] != 0:
            place = _slot(new_keys, keys[old])
            new_keys[place] = keys[old]
            new_total[place] = total[old]
            new_void[place] = in_void[old]
    return new_keys, new_total, new_void


@compiled
def _run_ends(
    reference: NDArray[np.int32],
    prediction: NDArray[np.int32],
    void: NDArray[np.uint8],
    ends: NDArray[np.int64],
) -> int:
    """Write where the runs of one image row end; return how many there are.

    Without a branch per pixel: ends of runs cannot be predicted, and a wrong
    guess costs more than all other work on the pixel.
    """
    width = len(reference)
    count = 0
    for x in range(1, width):
        changed = (reference[x] ^ reference[x - 1]) | (prediction[x] ^ prediction[x - 1])
        if len(void):
            changed |= np.int32(void[x] ^ void[x - 1])
        ends[count] = x
        count += changed != 0
    ends[count] = width
    return count + 1


@compiled
def _count_runs(
    y: int,
    ends: NDArray[np.int64],
    rows_of_image: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]],
    rows_of_sides: tuple[NDArray[np.int64], NDArray[np.int64]],
    table: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
) -> int:
    """Count the runs of one image row; return how many pairs were new to the table."""
    reference, prediction, void = rows_of_image
    reference_rows, prediction_rows = rows_of_sides
    keys, total, in_void = table
    width = len(reference)
    new = 0
    start = np.int64(0)
    for end in ends:
        r = reference[start]
        p = prediction[start]
        v = np.int64(void[start] if len(void) else 0)
        _add_run(reference_rows, r, y, start, end, v, width)
        _add_run(prediction_rows, p, y, start, end, v, width)
        key = ((np.int64(r) << 32) | np.int64(p)) + 1
        place = _slot(keys, key)
        new += keys[place] == 0
        keys[place] = key
        total[place] += end - start
        in_void[place] += v * (end - start)
        start = end
    return new


@compiled
def _scan(
    reference: NDArray[np.int32],
    prediction: NDArray[np.int32],
    void: NDArray[np.uint8],
    has_void: bool,
    reference_rows: NDArray[np.int64],
    prediction_rows: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Walk over the runs of equal (reference, prediction, void) of each image row.

    Background is counted like an object and dropped by the caller: asking what
    a run is costs more than counting it. Keys are one more than the pair's, so
    that 0 marks a free place.
    """
    height, width = reference.shape
    keys = np.zeros(4096, np.int64)
    total = np.zeros(4096, np.int64)
    in_void = np.zeros(4096, np.int64)
    used = 0
    ends = np.empty(width + 1, np.int64)
    no_void = np.zeros(0, np.uint8)
    for y in range(height if width else 0):
        void_row = void[y] if has_void else no_void
        n_runs = _run_ends(reference[y], prediction[y], void_row, ends)
        # Room for every run of the row beforehand: a table that may be replaced
        # between two runs is several times slower.
        while 2 * (used + n_runs) > len(keys):
            keys, total, in_void = _grown(keys, total, in_void)
        used += _count_runs(
            y,
            ends[:n_runs],
            (reference[y], prediction[y], void_row),
            (reference_rows, prediction_rows),
            (keys, total, in_void),
        )
    filled = np.flatnonzero(keys)
    return keys[filled] - 1, total[filled], in_void[filled]
