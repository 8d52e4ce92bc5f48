"""Mark the pixels that lie near the edge of an object."""

import numpy as np

from libc.stdint cimport int32_t, uint8_t

from napari_panoptic.kernels._border cimport expect, expect_shape, expect_void
from napari_panoptic.kernels._clones cimport cloned_int

# What is added to the codes.
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
        uint8 image (y, x) of these lines, changed in place: `UNCERTAIN` is added where marked.

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

    Of the last lines is kept where each differs from the one above (`across`), and how near the
    next change within it is (`nearest`, see :func:`spread`).
    """
    cdef Py_ssize_t lines = reach.shape[0], n = lines // 2, width = labels.shape[1]
    cdef Py_ssize_t first = max(start - n, 0), last = min(stop + n, labels.shape[0])
    cdef Py_ssize_t y, own, k
    cdef bint is_whole = void.shape[0] == 0 and kept.shape[0] == 0
    cdef const int32_t* above = NULL
    cdef const int32_t* now
    if width == 0:
        return 0
    for own in range(first, stop + n):
        if own < last:
            now = &labels[own, 0] if is_whole else &line[own % 2, 0]
            if not is_whole and take_line(labels, void, kept, own, line[own % 2]) < 0:
                return -2
            if own > first:
                differ(above, now, width, &across[own % lines, 0])
            above = now
            differ(now, now + 1, width - 1, &edges[widest + 1])
            spread(&edges[0], width, widest, &marked[0], &nearest[own % lines, 0])
        y = own - n
        if y < start:
            continue
        clear(&marked[0], width)
        for k in range(max(y - n, 0), min(y + n + 1, last)):
            join(&nearest[k % lines, 0], <uint8_t>(widest - reach[k - y + n]), width, &marked[0])
            if k > y - n and k > first:
                join(&across[k % lines, 0], 0, width, &marked[0])
        write(&marked[0], width, &codes[y - start, 0])
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


# The loops below have no branches and use plain pointers, so that they compile to vector
# instructions.


cdef inline void differ(
    const int32_t* a, const int32_t* b, Py_ssize_t n, uint8_t* found
) noexcept nogil:
    """Write 1 where two lines differ, else 0."""
    cdef Py_ssize_t x
    for x in range(n):
        found[x] = a[x] != b[x]


cdef inline void spread(
    const uint8_t* edges, Py_ssize_t width, int32_t widest, uint8_t* near, uint8_t* nearest
) noexcept nogil:
    """Write 0 where no change of a line is within the widest reach, else 1 + widest - distance."""
    cdef Py_ssize_t x, w
    cdef const uint8_t* left
    cdef const uint8_t* right
    for x in range(width):
        near[x] = 0
        nearest[x] = 0
    for w in range(1, widest + 1):
        left = edges + widest - w + 1
        right = edges + widest + w
        for x in range(width):
            near[x] |= left[x] | right[x]
            nearest[x] += near[x]


cdef inline void clear(uint8_t* line, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t x
    for x in range(n):
        line[x] = 0


cdef inline void join(
    const uint8_t* values, uint8_t least, Py_ssize_t n, uint8_t* marked
) noexcept nogil:
    """Mark where values are above a limit."""
    cdef Py_ssize_t x
    for x in range(n):
        marked[x] |= values[x] > least


cdef inline void write(const uint8_t* marked, Py_ssize_t n, uint8_t* codes) noexcept nogil:
    cdef Py_ssize_t x
    for x in range(n):
        codes[x] |= marked[x] << 1
