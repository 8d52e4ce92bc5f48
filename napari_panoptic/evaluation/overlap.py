"""From two label images to areas and intersections, in one pass over the pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic._compiled import compiled
from napari_panoptic.evaluation.counting import (
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
    filled,
    grown,
    pair_counts,
    pair_key,
    place_of,
)
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
    # Row 0 is the background, unused.
    reference = blank_rows(n_reference + 1)
    prediction = blank_rows(n_prediction + 1)
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
        reference=side_table(reference, pair.reference.shape),
        prediction=side_table(prediction, pair.reference.shape),
        pair_reference=((keys >> 32) - 1).astype(np.int32),
        pair_prediction=((keys & 0xFFFFFFFF) - 1).astype(np.int32),
        intersection=total[order],
        void_intersection=in_void[order],
    )


def side_table(rows: NDArray[np.int64], shape: tuple[int, int]) -> SideTable:
    """Freeze the counts of rows; the first one is the background and left out."""
    objects = rows[1:]
    bbox = np.minimum(objects[:, [Y0, X0, Y1, X1]], max(shape)).astype(np.int32)
    return SideTable(
        area=objects[:, AREA].copy(),
        void_area=objects[:, VOID_AREA].copy(),
        sum_yx=objects[:, [SUM_Y, SUM_X]],
        void_sum_yx=objects[:, [VOID_SUM_Y, VOID_SUM_X]],
        bbox=bbox,
        first_pixel=objects[:, FIRST].copy(),
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
    row[AREA] += length
    row[SUM_Y] += sum_y
    row[SUM_X] += sum_x
    row[VOID_AREA] += void * length
    row[VOID_SUM_Y] += void * sum_y
    row[VOID_SUM_X] += void * sum_x
    row[Y0] = min(row[Y0], y)
    row[X0] = min(row[X0], x0)
    row[Y1] = y + 1
    row[X1] = max(row[X1], x1)
    row[FIRST] = min(row[FIRST], y * width + x0)


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
    table: PairCounts,
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
        key = pair_key(r, p)
        place = place_of(keys, key)
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
) -> PairCounts:
    """Walk over the runs of equal (reference, prediction, void) of each image row.

    Background is counted like an object and dropped by the caller: asking what
    a run is costs more than counting it.
    """
    height, width = reference.shape
    keys, total, in_void = pair_counts(4096)
    used = 0
    ends = np.empty(width + 1, np.int64)
    no_void = np.zeros(0, np.uint8)
    for y in range(height if width else 0):
        void_row = void[y] if has_void else no_void
        n_runs = _run_ends(reference[y], prediction[y], void_row, ends)
        # Room for every run of the row beforehand: a table that may be replaced
        # between two runs is several times slower.
        while 2 * (used + n_runs) > len(keys):
            keys, total, in_void = grown(keys, total, in_void)
        used += _count_runs(
            y,
            ends[:n_runs],
            (reference[y], prediction[y], void_row),
            (reference_rows, prediction_rows),
            (keys, total, in_void),
        )
    return filled(keys, total, in_void)
