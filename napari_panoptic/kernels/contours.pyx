"""Find the contours of objects, and measure the distances between them."""

import numpy as np

from libc.math cimport NAN, sqrt
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t

from napari_panoptic.kernels._border cimport expect, expect_boxes, expect_void
from napari_panoptic.kernels._clones cimport cloned_int, cloned_size
from napari_panoptic.kernels._lines cimport word_at
from napari_panoptic.kernels._sorting cimport sort

cdef enum:
    # No squared distance of two contours that extend over this together exceeds an int32.
    NARROW_PX = 32767


def contours_in_boxes(
    index,
    const uint8_t[:, ::1] void not None,
    const int32_t[::1] labels not None,
    const int64_t[:, ::1] boxes not None,
):
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
    cdef const int32_t[:, ::1] image = np.ascontiguousarray(index)
    cdef Py_ssize_t height = image.shape[0], width = image.shape[1], n = labels.shape[0]
    cdef Py_ssize_t largest = 0, k, marked, count = 0
    expect_boxes(boxes, n, height, width)
    expect_void(void.shape, height, width)
    for k in range(n):
        if is_filled(boxes, k):
            largest = max(largest, framed_size(boxes, k))
    starts = np.zeros(n + 2, np.int64)
    pixels = np.empty((4096, 2), np.int32)
    cdef int64_t[::1] start = starts
    cdef int32_t[:, ::1] yx = pixels
    cdef uint8_t[::1] alone = np.empty(largest, np.uint8)
    cdef uint8_t[::1] marks = np.zeros(largest, np.uint8)
    with nogil:
        for k in range(n):
            if is_filled(boxes, k):
                cut_out(image, void, labels[k], boxes, k, alone)
                marked = mark_contour(alone, marks, row_size(boxes, k), framed_size(boxes, k))
                if count + marked >= yx.shape[0]:
                    with gil:
                        more = np.empty((count + 2 * marked, 2), np.int32)
                        pixels = np.concatenate([pixels[:count], more])
                        yx = pixels
                count = append_marked(marks, boxes, k, yx, count)
            start[k + 2] = count
    return starts, pixels[:count].copy()


cdef inline bint is_filled(const int64_t[:, ::1] boxes, Py_ssize_t k) except -1 nogil:
    """Return whether a box has pixels; that of an object without any ends before it begins."""
    return boxes[k, 0] < boxes[k, 2] and boxes[k, 1] < boxes[k, 3]


cdef inline Py_ssize_t row_size(const int64_t[:, ::1] boxes, Py_ssize_t k) except -1 nogil:
    """Return the width of a box with its frame, in whole words of eight."""
    return (boxes[k, 3] - boxes[k, 1] + 2 + 7) // 8 * 8


cdef inline Py_ssize_t framed_size(const int64_t[:, ::1] boxes, Py_ssize_t k) except -1 nogil:
    """Return the number of pixels of a box with its frame."""
    return row_size(boxes, k) * (boxes[k, 2] - boxes[k, 0] + 2)


cdef cloned_int cut_out(
    const int32_t[:, ::1] index,
    const uint8_t[:, ::1] void,
    int32_t label,
    const int64_t[:, ::1] boxes,
    Py_ssize_t k,
    uint8_t[::1] alone,
) except -1 nogil:
    """Cut out an object: 1 for its pixels outside the void.

    A frame of one pixel surrounds it. It is 0, but beyond the image edge it repeats the edge
    pixels as 2, since the image edge is no contour. Lines are padded to whole words.
    """
    cdef Py_ssize_t y0 = boxes[k, 0], x0 = boxes[k, 1], y1 = boxes[k, 2], x1 = boxes[k, 3]
    cdef Py_ssize_t row = row_size(boxes, k), last = framed_size(boxes, k) - row
    cdef Py_ssize_t width = x1 - x0, x, y, at
    for x in range(last + row):
        alone[x] = 0
    for y in range(y0, y1):
        at = (y - y0 + 1) * row + 1
        for x in range(width):
            alone[at + x] = index[y, x0 + x] == label
        if void.shape[0]:
            for x in range(width):
                alone[at + x] &= void[y, x0 + x] == 0
        if x0 == 0:
            alone[at - 1] = 2 * alone[at]
        if x1 == index.shape[1]:
            alone[at + width] = 2 * alone[at + width - 1]
    if y0 == 0:
        for x in range(row):
            alone[x] = alone[row + x]
    if y1 == index.shape[0]:
        for x in range(row):
            alone[last + x] = alone[last - row + x]
    return 0


cdef cloned_size mark_contour(
    const uint8_t[::1] alone, uint8_t[::1] marks, Py_ssize_t row, Py_ssize_t size
) except -1 nogil:
    """Mark the pixels of an object in its frame that have a neighbour outside; count them.

    All lines are processed as one: single lines are too short for vector instructions.
    """
    cdef Py_ssize_t x, count = 0
    cdef uint8_t is_inner
    for x in range(row, size - row):
        is_inner = (
            (alone[x - row] != 0)
            & (alone[x + row] != 0)
            & (alone[x - 1] != 0)
            & (alone[x + 1] != 0)
        )
        marks[x] = (alone[x] == 1) & (is_inner == 0)
        count += marks[x]
    return count


cdef Py_ssize_t append_marked(
    const uint8_t[::1] marks,
    const int64_t[:, ::1] boxes,
    Py_ssize_t k,
    int32_t[:, ::1] yx,
    Py_ssize_t count,
) except -1 nogil:
    """Append the marked pixels of a window in raster order; return the new number of pixels.

    Each pixel of a word is written, and overwritten by the next if it is not marked: there
    must be room for one more pixel.
    """
    cdef Py_ssize_t row = row_size(boxes, k), at, word, x
    cdef int32_t y, left
    for y in range(<int32_t>(boxes[k, 2] - boxes[k, 0])):
        at = (y + 1) * row
        for word in range(at, at + row, 8):
            if word_at(marks, word) != 0:
                left = <int32_t>(boxes[k, 1] - 1 - at)
                for x in range(word, word + 8):
                    yx[count, 0] = <int32_t>boxes[k, 0] + y
                    yx[count, 1] = left + <int32_t>x
                    count += marks[x]
    return count


def contour_distances(
    const int64_t[::1] reference_start not None,
    const int32_t[:, ::1] reference_yx not None,
    const int64_t[::1] prediction_start not None,
    const int32_t[:, ::1] prediction_yx not None,
    const int64_t[:, ::1] pairs not None,
    int64_t most,
    double percent,
):
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
    expect(pairs.shape[1] == 2, "a pair has two contours")
    expect(0 <= percent <= 100, "a percentile is from 0 to 100")
    cdef Py_ssize_t longest = max(
        longest_asked(reference_start, reference_yx, pairs, 0),
        longest_asked(prediction_start, prediction_yx, pairs, 1),
    )
    found = np.empty((pairs.shape[0], 2), np.float64)
    cdef double[:, ::1] figures = found
    # y and x of both contours; squared distances to the nearest pixel of the other one.
    cdef int32_t[:, ::1] yxyx = np.empty((4, longest), np.int32)
    cdef int32_t[::1] there = np.empty(longest, np.int32), back = np.empty(longest, np.int32)
    cdef Py_ssize_t k, n, m
    with nogil:
        for k in range(pairs.shape[0]):
            n = gather(reference_start, reference_yx, pairs[k, 0], yxyx, 0)
            m = gather(prediction_start, prediction_yx, pairs[k, 1], yxyx, 2)
            if n == 0 or m == 0:
                figures[k, 0] = figures[k, 1] = NAN
            elif n * m > most or not (is_narrow(yxyx, 0, n, m) and is_narrow(yxyx, 1, n, m)):
                figures[k, 0] = figures[k, 1] = -1.0
            else:
                squares_to_nearest(yxyx, n, m, there, back)
                # These sort the squares: then the last one is the greatest.
                figures[k, 1] = max(
                    percentile_of_roots(there, n, percent), percentile_of_roots(back, m, percent)
                )
                figures[k, 0] = sqrt(<double>max(there[n - 1], back[m - 1]))
    return found


cdef Py_ssize_t longest_asked(
    const int64_t[::1] start, const int32_t[:, ::1] yx, const int64_t[:, ::1] pairs, int side
) except -1:
    """Check the places of the contours asked for; return the length of the longest."""
    cdef Py_ssize_t k, longest = 0, contour
    expect(yx.shape[1] == 2, "a pixel has two coordinates")
    for k in range(pairs.shape[0]):
        contour = pairs[k, side]
        expect(0 <= contour < start.shape[0] - 2, "a pair has a contour that is not there")
        expect(
            0 <= start[contour + 1] <= start[contour + 2] <= yx.shape[0],
            "a contour lies outside the coordinates",
        )
        longest = max(longest, start[contour + 2] - start[contour + 1])
    return longest


cdef Py_ssize_t gather(
    const int64_t[::1] start,
    const int32_t[:, ::1] yx,
    Py_ssize_t contour,
    int32_t[:, ::1] yxyx,
    int row,
) except -1 nogil:
    """Write a contour's y and x to two rows; return its length."""
    cdef Py_ssize_t first = start[contour + 1], n = start[contour + 2] - first, i
    for i in range(n):
        yxyx[row, i] = yx[first + i, 0]
        yxyx[row + 1, i] = yx[first + i, 1]
    return n


cdef int is_narrow(
    const int32_t[:, ::1] yxyx, int axis, Py_ssize_t n, Py_ssize_t m
) except -1 nogil:
    """Return whether an int32 holds all squared distances along an axis."""
    cdef int32_t low = yxyx[axis, 0], high = low
    cdef Py_ssize_t i
    for i in range(n):
        low = min(low, yxyx[axis, i])
        high = max(high, yxyx[axis, i])
    for i in range(m):
        low = min(low, yxyx[axis + 2, i])
        high = max(high, yxyx[axis + 2, i])
    return <int64_t>high - low <= NARROW_PX


cdef cloned_int squares_to_nearest(
    const int32_t[:, ::1] yxyx, Py_ssize_t n, Py_ssize_t m, int32_t[::1] there, int32_t[::1] back
) except -1 nogil:
    """Write the squared distances from each pixel to the nearest one of the other contour.

    Comparing all pixels with all compiles to vector instructions, which beat any search up to
    a length where a tree is faster.
    """
    cdef Py_ssize_t i, j
    cdef int32_t y, x, dy, dx, square, nearest
    for j in range(m):
        back[j] = INT32_MAX
    for i in range(n):
        y = yxyx[0, i]
        x = yxyx[1, i]
        nearest = INT32_MAX
        for j in range(m):
            dy = yxyx[2, j] - y
            dx = yxyx[3, j] - x
            square = dy * dy + dx * dx
            nearest = min(nearest, square)
            back[j] = min(back[j], square)
        there[i] = nearest
    return 0


cdef double percentile_of_roots(
    int32_t[::1] squares, Py_ssize_t n, double percent
) except -1 nogil:
    """Sort n squares; return the percentile of their roots, interpolated between two ranks."""
    cdef double rank = percent / 100.0 * (n - 1)
    cdef Py_ssize_t low = <Py_ssize_t>rank
    sort(squares, 0, n)
    cdef double below = sqrt(<double>squares[low])
    cdef double above = sqrt(<double>squares[min(low + 1, n - 1)])
    return below + (above - below) * (rank - low)
