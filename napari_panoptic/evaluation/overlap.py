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
    order = np.argsort(keys)
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
    rows: NDArray[np.int64], label: np.int32, y: int, x0: int, x1: int, void: bool, width: int
) -> None:
    """Add the pixels (y, x0..x1-1) to one object's row."""
    row = rows[label]
    length = x1 - x0
    sum_x = length * (x0 + x1 - 1) // 2
    row[_AREA] += length
    row[_SUM_Y] += length * y
    row[_SUM_X] += sum_x
    if void:
        row[_VOID_AREA] += length
        row[_VOID_SUM_Y] += length * y
        row[_VOID_SUM_X] += sum_x
    if row[_FIRST] == _FAR:
        row[_FIRST] = y * width + x0
        row[_Y0] = y
    row[_X0] = min(row[_X0], x0)
    row[_Y1] = y + 1
    row[_X1] = max(row[_X1], x1)


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
    has_void: bool,
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
        if has_void:
            changed |= np.int32(void[x] ^ void[x - 1])
        ends[count] = x
        count += changed != 0
    ends[count] = width
    return count + 1


@compiled
def _scan(
    reference: NDArray[np.int32],
    prediction: NDArray[np.int32],
    void: NDArray[np.uint8],
    has_void: bool,
    reference_rows: NDArray[np.int64],
    prediction_rows: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Walk over the runs of equal (reference, prediction, void) of each image row."""
    height, width = reference.shape
    keys = np.zeros(4096, np.int64)
    total = np.zeros(4096, np.int64)
    in_void = np.zeros(4096, np.int64)
    used = 0
    ends = np.empty(width + 1, np.int64)
    for y in range(height if width else 0):
        n_runs = _run_ends(reference[y], prediction[y], void[y if has_void else 0], has_void, ends)
        start = 0
        for run in range(n_runs):
            end = ends[run]
            r = reference[y, start]
            p = prediction[y, start]
            v = has_void and void[y, start] != 0
            if r > 0:
                _add_run(reference_rows, r, y, start, end, v, width)
            if p > 0:
                _add_run(prediction_rows, p, y, start, end, v, width)
            if r > 0 and p > 0:
                key = (np.int64(r) << 32) | np.int64(p)
                place = _slot(keys, key)
                if keys[place] == 0:
                    keys[place] = key
                    used += 1
                total[place] += end - start
                if v:
                    in_void[place] += end - start
                if 2 * used > len(keys):
                    keys, total, in_void = _grown(keys, total, in_void)
            start = end
    filled = np.flatnonzero(keys)
    return keys[filled], total[filled], in_void[filled]
