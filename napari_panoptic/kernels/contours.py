"""Find the contours of objects, and measure the distances between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled
from napari_panoptic.kernels.sorting import sort

# Marks of a line are tested eight at a time, as the bytes of a word.
_WORD = 8
# No squared distance of two contours that extend over this together exceeds an int32.
_NARROW_PX = 32767


@compiled
def contours_in_boxes(
    index: NDArray[np.int32],
    void: NDArray[np.uint8],
    labels: NDArray[np.int32],
    boxes: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Find the contour pixels of some objects.

    Parameters
    ----------
    index
        int32 image (y, x): 0 is background.
    void
        uint8 image (y, x): pixels cut from every object; (0, 0) to cut nothing.
    labels
        int32 (k,): the objects.
    boxes
        int64 (k, 4): y0, x0, y1, x1 of their bounding boxes, half open.

    Returns
    -------
    start
        int64 (k + 2,): the contour of the object at position i is
        ``yx[start[i + 1]:start[i + 2]]``.
    yx
        int32 (m, 2): pixel coordinates, in raster order within an object.
    """
    start = np.zeros(len(labels) + 2, np.int64)
    yx, count = np.empty((4096, 2), np.int32), 0
    for k in range(len(labels)):
        marks, marked = _contour_of_one(_object_alone(index, void, labels[k], boxes[k]))
        if count + marked >= len(yx):
            larger = np.empty((2 * len(yx) + marked, 2), np.int32)
            larger[:count] = yx[:count]
            yx = larger
        count = _append_marked(marks, (boxes[k, 0] - 1, boxes[k, 1] - 1), yx, count)
        start[k + 2] = count
    return start, yx[:count].copy()


@compiled
def _object_alone(
    index: NDArray[np.int32], void: NDArray[np.uint8], label: np.int32, box: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Cut out an object: 1 for its pixels outside the void.

    A frame of one pixel surrounds it. It is 0, but beyond the image edge it repeats the edge
    pixels as 2, since the image edge is no contour. Lines are padded to whole words.
    """
    y0, x0, y1, x1 = box
    width = x1 - x0
    alone = np.zeros((y1 - y0 + 2, (width + 2 + _WORD - 1) // _WORD * _WORD), np.uint8)
    for y in range(y0, y1):
        here, line = alone[y - y0 + 1, 1:], index[y, x0:x1]
        for x in range(width):
            here[x] = line[x] == label
        if void.size:
            cut = void[y, x0:x1]
            for x in range(width):
                here[x] &= cut[x] == 0
    if x0 == 0:
        alone[:, 0] = 2 * alone[:, 1]
    if x1 == index.shape[1]:
        alone[:, width + 1] = 2 * alone[:, width]
    if y0 == 0:
        alone[0] = alone[1]
    if y1 == index.shape[0]:
        alone[-1] = alone[-2]
    return alone


@compiled
def _contour_of_one(alone: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], int]:
    """Mark the pixels of an object in its frame that have a neighbour outside; count them.

    All lines are processed as one: single lines are too short for vector instructions.
    """
    width = alone.shape[1]
    flat = alone.ravel()
    above, here, below = flat[: -2 * width], flat[width:-width], flat[2 * width :]
    left, right = flat[width - 1 :], flat[width + 1 :]
    marks = np.zeros_like(alone)
    target = marks.ravel()[width:-width]
    count = 0
    for x in range(len(here)):
        is_inner = (above[x] != 0) & (below[x] != 0) & (left[x] != 0) & (right[x] != 0)
        target[x] = (here[x] == 1) & (not is_inner)
        count += target[x]
    return marks, count


@compiled
def _append_marked(
    marks: NDArray[np.uint8], origin: tuple[int, int], yx: NDArray[np.int32], count: int
) -> int:
    """Append the marked pixels of a window in raster order; return the new number of pixels.

    Each pixel of a word is written, and overwritten by the next if it is not marked: there
    must be room for one more pixel.
    """
    words = marks.view(np.uint64)
    for y in range(len(marks)):
        for word in range(words.shape[1]):
            if words[y, word] != 0:
                for x in range(word * _WORD, (word + 1) * _WORD):
                    yx[count, 0] = origin[0] + y
                    yx[count, 1] = origin[1] + x
                    count += int(marks[y, x])
    return count


@compiled
def contour_distances(
    reference_start: NDArray[np.int64],
    reference_yx: NDArray[np.int32],
    prediction_start: NDArray[np.int64],
    prediction_yx: NDArray[np.int32],
    pairs: NDArray[np.int64],
    most: int,
    percent: float,
) -> NDArray[np.float64]:
    """Compute the Hausdorff distance of each pair of contours, and its percentile.

    Parameters
    ----------
    reference_start, reference_yx, prediction_start, prediction_yx
        As returned by :func:`contours_in_boxes`.
    pairs
        int64 (k, 2): positions of the two contours.
    most
        Greatest product of two contour lengths that is compared here.
    percent
        The percentile.

    Returns
    -------
    float64 (k, 2)
        In px; NaN if a contour is empty, -1 if the two are too long or too far apart for this
        kernel.
    """
    figures = np.empty((len(pairs), 2), np.float64)
    for k in range(len(pairs)):
        row = pairs[k, 0] + 1
        a = reference_yx[reference_start[row] : reference_start[row + 1]].T.copy()
        row = pairs[k, 1] + 1
        b = prediction_yx[prediction_start[row] : prediction_start[row + 1]].T.copy()
        if a.size == 0 or b.size == 0:
            figures[k] = np.nan
        elif a.shape[1] * b.shape[1] > most or not _is_narrow(a, b):
            figures[k] = -1.0
        else:
            there, back = _squares_to_nearest(a, b)
            figures[k, 0] = np.sqrt(np.float64(max(there.max(), back.max())))
            figures[k, 1] = max(
                _percentile_of_roots(there, percent), _percentile_of_roots(back, percent)
            )
    return figures


@compiled
def _is_narrow(a: NDArray[np.int32], b: NDArray[np.int32]) -> bool:
    """Return whether an int32 holds all squared distances."""
    for axis in range(2):
        low, high = min(a[axis].min(), b[axis].min()), max(a[axis].max(), b[axis].max())
        if high - low > _NARROW_PX:
            return False
    return True


@compiled
def _squares_to_nearest(
    a: NDArray[np.int32], b: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the squared distances from each pixel to the nearest one of the other contour.

    Comparing all pixels with all compiles to vector instructions, which beat any search up to
    a length where a tree is faster.

    Parameters
    ----------
    a, b
        int32 (2, n) and (2, m): the contours, y and x.

    Returns
    -------
    int32 (n,) and (m,).
    """
    most = np.int32(2**31 - 1)
    there, back = np.empty(a.shape[1], np.int32), np.full(b.shape[1], most)
    b_y, b_x = b[0], b[1]
    for i in range(len(there)):
        y, x = a[0, i], a[1, i]
        nearest = most
        for j in range(len(back)):
            dy, dx = np.int32(b_y[j] - y), np.int32(b_x[j] - x)
            square = np.int32(dy * dy + dx * dx)
            nearest = min(nearest, square)
            back[j] = min(back[j], square)
        there[i] = nearest
    return there, back


@compiled
def _percentile_of_roots(squares: NDArray[np.int32], percent: float) -> float:
    """Return the percentile of square roots, interpolated linearly between two ranks."""
    rank = percent / 100.0 * (len(squares) - 1)
    low = int(rank)
    high = min(low + 1, len(squares) - 1)
    ordered = squares.copy()
    sort(ordered)
    above, below = np.sqrt(np.float64(ordered[high])), np.sqrt(np.float64(ordered[low]))
    return float(below + (above - below) * (rank - low))
