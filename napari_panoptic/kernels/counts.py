"""Count the pixels of objects, and of pairs of objects, window by window.

Counts are additive: a whole image is one window, a slide is many, and an edit subtracts the
window that it changes and adds it again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.changes import blank_notes, list_changes
from napari_panoptic.kernels.jit import compiled

# Columns of a row of counts. Y0 to X1 are the half-open bounding box, FIRST is the raster
# position of the first pixel; FAR, FAR, 0, 0, FAR if there is no pixel.
AREA, SUM_Y, SUM_X, VOID_AREA, VOID_SUM_Y, VOID_SUM_X = 0, 1, 2, 3, 4, 5
Y0, X0, Y1, X1, FIRST = 6, 7, 8, 9, 10
FAR = np.int64(1) << 40
"""Y0, X0 and FIRST of an object without pixels."""

# Columns of a run: the rows of the objects that share it, its pixels, those in the void.
_REFERENCE, _PREDICTION, _LENGTH, _VOID_LENGTH = 0, 1, 2, 3
# Sorts after all keys.
_LAST = np.int64(2**63 - 1)


class Pairs(NamedTuple):
    """Pairs of objects that share pixels, sorted by key.

    Parameters
    ----------
    keys
        int64 (m,): see :func:`pair_keys`.
    shared, void_shared
        int64 (m,): shared pixels, and those of them inside the void.
    """

    keys: NDArray[np.int64]
    shared: NDArray[np.int64]
    void_shared: NDArray[np.int64]


def no_pairs() -> Pairs:
    """Return an empty list of pairs."""
    return Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


def pair_keys(reference: NDArray[np.integer], prediction: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return one number for each pair of rows, ascending by reference, then by prediction."""
    keys: NDArray[np.int64] = (reference.astype(np.int64) << 32) | prediction
    return keys


def pair_rows(keys: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the reference and prediction rows of keys; the inverse of :func:`pair_keys`."""
    return (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)


def blank_rows(n: int) -> NDArray[np.int64]:
    """Return the rows of n objects without pixels, int64 (n, 11)."""
    rows = np.zeros((n, 11), np.int64)
    rows[:, [Y0, X0, FIRST]] = FAR
    return rows


@compiled
def count_window(
    reference: NDArray[np.int32],
    prediction: NDArray[np.int32],
    void: NDArray[np.uint8],
    corner_yx: tuple[int, int],
    image_width: int,
    sign: int,
    reference_rows: NDArray[np.int64],
    prediction_rows: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Add a window to the rows of its objects, or subtract it; list the runs that objects share.

    Each line is cut wherever one of the sides or the void changes.

    Parameters
    ----------
    reference, prediction
        int32 images (y, x): 0 is background, else the object's row.
    void
        uint8 image (y, x) of the ambiguous area; (0, 0) if there is none.
    corner_yx
        Position of the first pixel in the whole image.
    image_width
        Width of the whole image, for FIRST.
    sign
        1 to add, -1 to subtract. Subtracting leaves bounding box and first pixel unchanged.
    reference_rows, prediction_rows
        int64 (n, 11): counts, changed in place. Row 0 is the background, unused.

    Returns
    -------
    int32 (k, 4)
        Reference row, prediction row, signed pixels, and signed pixels in the void.

    Raises
    ------
    ValueError
        If the images hold a number without a row.
    """
    height, width = reference.shape
    # Memory that is never written to costs nothing.
    runs, n_runs = np.empty((height * width, 4), np.int32), 0
    if width == 0:
        return runs
    notes = blank_notes(width)
    changed, _, ends = notes
    for line in range(height):
        y = corner_yx[0] + line
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
        start = 0
        for k in range(n_changes + 1):
            end = ends[k]
            i, j = of_reference[start], of_prediction[start]
            if not (0 <= i < len(reference_rows) and 0 <= j < len(prediction_rows)):
                raise ValueError("the images hold numbers that no object has")
            length = np.int32(sign * (end - start))
            void_length = length if len(void) and void[line, start] else np.int32(0)
            x0 = corner_yx[1] + start
            if i:
                _add_run(reference_rows[i], y, x0, length, void_length, sign, image_width)
            if j:
                _add_run(prediction_rows[j], y, x0, length, void_length, sign, image_width)
            # Written in any case, and overwritten if nothing is shared.
            run = runs[n_runs]
            run[_REFERENCE], run[_PREDICTION] = i, j
            run[_LENGTH], run[_VOID_LENGTH] = length, void_length
            n_runs += (i != 0) & (j != 0)
            start = end
    return runs[:n_runs]


@compiled
def _add_run(
    row: NDArray[np.int64],
    y: int,
    x0: int,
    length: np.int32,
    void_length: np.int32,
    sign: int,
    image_width: int,
) -> None:
    """Add pixels (y, x0...) to the row of an object; the lengths have the sign."""
    x1 = x0 + sign * length
    row[AREA] += length
    row[SUM_Y] += length * y
    # Exact: one of the two factors is even.
    sum_x = length * (x0 + x1 - 1) // 2
    row[SUM_X] += sum_x
    if void_length:
        row[VOID_AREA] += length
        row[VOID_SUM_Y] += length * y
        row[VOID_SUM_X] += sum_x
    if sign > 0:
        row[Y0] = min(row[Y0], y)
        row[X0] = min(row[X0], x0)
        row[Y1] = max(row[Y1], y + 1)
        row[X1] = max(row[X1], x1)
        row[FIRST] = min(row[FIRST], y * image_width + x0)


@compiled
def sum_runs(runs: NDArray[np.int32], n_reference: int, n_prediction: int) -> Pairs:
    """Sum the runs of each pair of objects.

    Parameters
    ----------
    runs
        As returned by :func:`count_window`. Changed in place.
    n_reference, n_prediction
        Numbers of rows.
    """
    n = len(runs)
    sorted_ = np.empty_like(runs)
    _sort_by(_PREDICTION, n_prediction, runs, sorted_)
    _sort_by(_REFERENCE, n_reference, sorted_, runs)
    keys, shared, void_shared = np.empty(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    count, last = 0, np.int64(-1)
    for k in range(n):
        key = (np.int64(runs[k, _REFERENCE]) << 32) | np.int64(runs[k, _PREDICTION])
        if key != last:
            keys[count], last = key, key
            count += 1
        shared[count - 1] += runs[k, _LENGTH]
        void_shared[count - 1] += runs[k, _VOID_LENGTH]
    return Pairs(keys[:count], shared[:count], void_shared[:count])


@compiled
def _sort_by(column: int, n: int, runs: NDArray[np.int32], result: NDArray[np.int32]) -> None:
    """Sort runs by a column of numbers below n, in a stable way."""
    place = np.zeros(n + 1, np.int64)
    for k in range(len(runs)):
        place[runs[k, column] + 1] += 1
    for number in range(n):
        place[number + 1] += place[number]
    for k in range(len(runs)):
        run = runs[k]
        at = place[run[column]]
        place[run[column]] = at + 1
        for field in range(4):
            result[at, field] = run[field]


@compiled
def add_pairs(pairs: Pairs, others: Pairs) -> Pairs:
    """Add two lists of pairs, and drop pairs that share nothing any more."""
    room = len(pairs.keys) + len(others.keys)
    keys = np.empty(room, np.int64)
    shared, void_shared = np.empty(room, np.int64), np.empty(room, np.int64)
    n, i, j = 0, 0, 0
    while i < len(pairs.keys) or j < len(others.keys):
        key = pairs.keys[i] if i < len(pairs.keys) else _LAST
        other = others.keys[j] if j < len(others.keys) else _LAST
        keys[n], shared[n], void_shared[n] = min(key, other), 0, 0
        if key <= other:
            shared[n] += pairs.shared[i]
            void_shared[n] += pairs.void_shared[i]
            i += 1
        if other <= key:
            shared[n] += others.shared[j]
            void_shared[n] += others.void_shared[j]
            j += 1
        n += shared[n] != 0
    return Pairs(keys[:n], shared[:n], void_shared[:n])
