"""Mark the pixels that lie near the edge of an object."""

import numpy as np

from libc.stdint cimport int32_t, uint8_t

from napari_panoptic.kernels._border cimport expect, expect_shape, expect_void
from napari_panoptic.kernels._clones cimport cloned_int

# What is written to the codes.
UNCERTAIN = 2


def mark_zone(
    labels,
    object void,
    const uint8_t[::1] kept not None,
    const int32_t[::1] reach not None,
    rows,
    uint8_t[:, ::1] codes not None,
):
    """Mark the pixels from which an element reaches across the edge of an object.

    A pixel is marked if one of the pixels that the element covers, centred on it, is of another
    object or of none. Pixels beyond the image are not looked at.

    Parameters
    ----------
    labels
        int32 image (y, x): 0 is background, else the object's row, plus one.
    void
        uint8 image (y, x): where not 0, the pixel counts as background; (0, 0) if nowhere.
    kept
        uint8 (n + 1,): whether an object counts, else it is background; (0,) if all count.
    reach
        int32 (2 N + 1,): how far the element reaches to each side, from N lines above to N
        below; not negative.
    rows
        The lines to mark: the first, and the one after the last.
    codes
        uint8 image (y, x) of these lines, changed in place: `UNCERTAIN` where marked.

    Raises
    ------
    ValueError
        If shapes do not fit, or the image holds a number that no object has.
    """
    cdef const int32_t[:, ::1] a = np.ascontiguousarray(labels)
    cdef const uint8_t[:, ::1] cut = np.ascontiguousarray(void)
    cdef Py_ssize_t height = a.shape[0], width = a.shape[1], start = rows[0], stop = rows[1]
    cdef int32_t widest = max(reach) if len(reach) else 0
    cdef Py_ssize_t lines = reach.shape[0], result
    expect(lines % 2 == 1 and min(reach) >= 0, "the element has no middle, or reaches nowhere")
    expect(widest < 255, "the element is too wide")
    expect_void(cut.shape, height, width)
    expect(0 <= start <= stop <= height, "the lines lie beyond the image")
    expect_shape(codes.shape, stop - start, width)
    cdef int32_t[:, ::1] line = np.zeros((2, width), np.int32)
    cdef uint8_t[::1] edges = np.zeros(width + 2 * widest + 1, np.uint8)
    cdef uint8_t[:, ::1] across = np.zeros((lines, width), np.uint8)
    cdef uint8_t[:, ::1] nearest = np.zeros((lines, width), np.uint8)
    cdef uint8_t[::1] marked = np.zeros(width, np.uint8)
    with nogil:
        result = mark_lines(
            a, cut, kept, reach, start, stop, widest, line, edges, across, nearest, marked, codes
        )
    expect(result >= 0, "the image holds numbers that no object has")


cdef cloned_int mark_lines(
    const int32_t[:, ::1] labels,
    const uint8_t[:, ::1] void,
    const uint8_t[::1] kept,
    const int32_t[::1] reach,
    Py_ssize_t start,
    Py_ssize_t stop,
    int32_t widest,
    int32_t[:, ::1] line,
    uint8_t[::1] edges,
    uint8_t[:, ::1] across,
    uint8_t[:, ::1] nearest,
    uint8_t[::1] marked,
    uint8_t[:, ::1] codes,
) except -1 nogil:
    """Mark lines; -2 for a number that no object has.

    The last lines are kept: where a line differs from the one above (`across`), and how far the
    next change within the line is (`nearest`).
    """
    cdef Py_ssize_t lines = reach.shape[0], n = lines // 2, width = labels.shape[1]
    cdef Py_ssize_t first = max(start - n, 0), last = min(stop + n, labels.shape[0])
    cdef Py_ssize_t y, own, k, x
    for own in range(first, stop + n):
        if own < last:
            if take_line(labels, void, kept, own, line[own % 2]) < 0:
                return -2
            for x in range(width):
                across[own % lines, x] = own > first and line[0, x] != line[1, x]
            find_changes(line[own % 2], widest, edges, marked, nearest[own % lines])
        y = own - n
        if y < start:
            continue
        for x in range(width):
            marked[x] = 0
        for k in range(max(y - n, 0), min(y + n + 1, last)):
            join_line(
                across[k % lines], nearest[k % lines], k > y - n, reach[k - y + n], marked
            )
        for x in range(width):
            codes[y - start, x] = 2 if marked[x] else codes[y - start, x]
    return 0


cdef inline int take_line(
    const int32_t[:, ::1] labels,
    const uint8_t[:, ::1] void,
    const uint8_t[::1] kept,
    Py_ssize_t y,
    int32_t[::1] line,
) except -1 nogil:
    """Copy a line, without what counts as background; -2 for a number that no object has."""
    cdef Py_ssize_t x
    for x in range(labels.shape[1]):
        line[x] = labels[y, x]
    if kept.shape[0]:
        for x in range(labels.shape[1]):
            if not 0 <= line[x] < kept.shape[0]:
                return -2
            line[x] = line[x] if kept[line[x]] else 0
    if void.shape[0]:
        for x in range(labels.shape[1]):
            line[x] = 0 if void[y, x] else line[x]
    return 0


cdef inline int find_changes(
    const int32_t[::1] line,
    int32_t widest,
    uint8_t[::1] edges,
    uint8_t[::1] near,
    uint8_t[::1] nearest,
) except -1 nogil:
    """Write how many pixels away the next other object of a line is; one more than the widest
    reach if it is farther."""
    cdef Py_ssize_t x, w, width = line.shape[0]
    for x in range(1, width):
        edges[widest + x] = line[x] != line[x - 1]
    for x in range(width):
        near[x] = 0
        nearest[x] = <uint8_t>(widest + 1)
    for w in range(1, widest + 1):
        for x in range(width):
            near[x] |= edges[widest + x - w + 1] | edges[widest + x + w]
            nearest[x] -= near[x]
    return 0


cdef inline int join_line(
    const uint8_t[::1] across,
    const uint8_t[::1] nearest,
    bint is_crossed,
    int32_t reach,
    uint8_t[::1] marked,
) except -1 nogil:
    """Mark where a line of the element meets another object, or lies across an edge."""
    cdef Py_ssize_t x
    for x in range(across.shape[0]):
        marked[x] |= nearest[x] <= reach
    if is_crossed:
        for x in range(across.shape[0]):
            marked[x] |= across[x]
    return 0
