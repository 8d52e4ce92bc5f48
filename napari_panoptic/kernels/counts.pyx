"""Count the pixels of objects, and of pairs of objects, window by window.

Counts are additive: a whole image is one window, a slide is many, and an edit subtracts the
window that it changes and adds it again.
"""

from typing import NamedTuple

import numpy as np

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t

from napari_panoptic.kernels._border cimport expect, expect_shape, expect_void
from napari_panoptic.kernels._clones cimport cloned_size
from napari_panoptic.kernels._lines cimport list_changes, padded

cdef enum:
    area, sum_y, sum_x, void_area, void_sum_y, void_sum_x
    top, left, bottom, right, first, COLUMNS

# Columns of a row of counts. Y0 to X1 are the half-open bounding box, FIRST is the raster
# position of the first pixel; FAR, FAR, 0, 0, FAR if there is no pixel.
AREA, SUM_Y, SUM_X = area, sum_y, sum_x
VOID_AREA, VOID_SUM_Y, VOID_SUM_X = void_area, void_sum_y, void_sum_x
Y0, X0, Y1, X1, FIRST = top, left, bottom, right, first
# Y0, X0 and FIRST of an object without pixels.
FAR = 1 << 40


class Pairs(NamedTuple):
    """Pairs of objects that share pixels, sorted by key.

    Parameters
    ----------
    keys
        int64 (m,): see :func:`pair_keys`.
    shared, void_shared
        int64 (m,): shared pixels, and those of them inside the void.
    """

    keys: np.ndarray
    shared: np.ndarray
    void_shared: np.ndarray


def no_pairs():
    """Return an empty list of pairs."""
    return Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


def pair_keys(reference, prediction):
    """Return one number for each pair of rows, ascending by reference, then by prediction."""
    return (reference.astype(np.int64) << 32) | prediction


def pair_rows(keys):
    """Return the reference and prediction rows of keys; the inverse of :func:`pair_keys`."""
    return (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)


def blank_rows(n):
    """Return the rows of n objects without pixels, int64 (n, 11)."""
    rows = np.zeros((n, COLUMNS), np.int64)
    rows[:, [Y0, X0, FIRST]] = FAR
    return rows


def count_window(
    reference,
    prediction,
    object void,
    corner_yx,
    int64_t image_width,
    int64_t sign,
    int64_t[:, ::1] reference_rows not None,
    int64_t[:, ::1] prediction_rows not None,
    bint zone_only=False,
):
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
    zone_only
        Whether to look only at the pixels of a zone: 2 in the void's image, 3 if the void is there,
        too. A thin zone takes a fraction of the time.

    Returns
    -------
    int32 (k, 4)
        Reference row, prediction row, signed pixels, and signed pixels in the void.

    Raises
    ------
    ValueError
        If the images hold a number without a row.
    """
    cdef const int32_t[:, ::1] a = np.ascontiguousarray(reference)
    cdef const int32_t[:, ::1] b = np.ascontiguousarray(prediction)
    cdef const uint8_t[:, ::1] cut = np.ascontiguousarray(void)
    cdef Py_ssize_t height = a.shape[0], width = a.shape[1], n
    cdef int64_t y = corner_yx[0], x = corner_yx[1]
    expect_shape(b.shape, height, width)
    expect_void(cut.shape, height, width)
    expect(
        reference_rows.shape[1] == COLUMNS and prediction_rows.shape[1] == COLUMNS,
        "a row of counts has another length",
    )
    # Memory that is never written to costs nothing.
    runs = np.empty((height * width, 4), np.int32)
    if width == 0 or height == 0:
        return runs
    cdef int32_t[:, ::1] written = runs
    cdef uint8_t[::1] changed = np.zeros(padded(width), np.uint8)
    cdef int32_t[::1] words = np.empty(padded(width) // 8 + 1, np.int32)
    cdef int32_t[::1] ends = np.empty(width + 1, np.int32)
    expect(not zone_only or cut.shape[0], "there is no zone")
    with nogil:
        if zone_only:
            n = count_zone_lines(
                a, b, cut, y, x, image_width, sign, reference_rows, prediction_rows,
                changed, words, ends, written,
            )
        else:
            n = count_lines(
                a, b, cut, y, x, image_width, sign, reference_rows, prediction_rows,
                changed, words, ends, written,
            )
    expect(n >= 0, "the images hold numbers that no object has")
    return runs[:n]


cdef cloned_size count_lines(
    const int32_t[:, ::1] reference,
    const int32_t[:, ::1] prediction,
    const uint8_t[:, ::1] void,
    int64_t corner_y,
    int64_t corner_x,
    int64_t image_width,
    int64_t sign,
    int64_t[:, ::1] reference_rows,
    int64_t[:, ::1] prediction_rows,
    uint8_t[::1] changed,
    int32_t[::1] words,
    int32_t[::1] ends,
    int32_t[:, ::1] runs,
) except -1 nogil:
    """Return the number of runs; -2 for a number without a row."""
    cdef int32_t width = <int32_t>reference.shape[1], line, start, end, i, j, k, n_changes
    cdef Py_ssize_t n = 0
    cdef int64_t length, void_length, y, x
    cdef bint has_void = void.shape[0] > 0
    for line in range(<int32_t>reference.shape[0]):
        mark_changes(reference, prediction, line, changed)
        if has_void:
            mark_void(void, line, changed)
        n_changes = list_changes(changed, words, ends)
        ends[n_changes] = width
        y = corner_y + line
        start = 0
        for k in range(n_changes + 1):
            end = ends[k]
            i = reference[line, start]
            j = prediction[line, start]
            if not (0 <= i < reference_rows.shape[0] and 0 <= j < prediction_rows.shape[0]):
                return -2
            length = sign * (end - start)
            void_length = length if has_void and void[line, start] else 0
            x = corner_x + start
            n += take_run(
                reference_rows, prediction_rows, i, j, y, x, length, void_length, sign,
                image_width, runs, n,
            )
            start = end
    return n


cdef cloned_size count_zone_lines(
    const int32_t[:, ::1] reference,
    const int32_t[:, ::1] prediction,
    const uint8_t[:, ::1] codes,
    int64_t corner_y,
    int64_t corner_x,
    int64_t image_width,
    int64_t sign,
    int64_t[:, ::1] reference_rows,
    int64_t[:, ::1] prediction_rows,
    uint8_t[::1] changed,
    int32_t[::1] words,
    int32_t[::1] ends,
    int32_t[:, ::1] runs,
) except -1 nogil:
    """Do the same for the pixels of a zone only."""
    cdef int32_t width = <int32_t>reference.shape[1], line, start, end, stop, i, j, k, n_changes
    cdef Py_ssize_t n = 0
    cdef int64_t length, void_length, y
    for line in range(<int32_t>reference.shape[0]):
        mark_ends(&codes[line, 0], width, &changed[0])
        n_changes = list_changes(changed, words, ends)
        ends[n_changes] = width
        y = corner_y + line
        start = 0
        for k in range(n_changes + 1):
            stop = ends[k]
            while start < stop and codes[line, start] > 1:
                i = reference[line, start]
                j = prediction[line, start]
                if not (0 <= i < reference_rows.shape[0] and 0 <= j < prediction_rows.shape[0]):
                    return -2
                end = start + 1
                while end < stop and reference[line, end] == i and prediction[line, end] == j:
                    end += 1
                length = sign * (end - start)
                void_length = length if codes[line, start] == 3 else 0
                n += take_run(
                    reference_rows, prediction_rows, i, j, y, corner_x + start,
                    length, void_length, sign, image_width, runs, n,
                )
                start = end
            start = stop
    return n


cdef inline void mark_ends(
    const uint8_t* codes, Py_ssize_t width, uint8_t* changed
) noexcept nogil:
    """Mark the pixels of a line where the zone, or the void inside it, begins or ends."""
    cdef Py_ssize_t x
    for x in range(1, width):
        changed[x] = codes[x] != codes[x - 1]


cdef inline int mark_changes(
    const int32_t[:, ::1] a, const int32_t[:, ::1] b, Py_ssize_t line, uint8_t[::1] changed
) except -1 nogil:
    """Mark the pixels of a line that differ from the one before in one of two images."""
    cdef Py_ssize_t x
    # Without a branch, so that it compiles to vector instructions.
    for x in range(1, a.shape[1]):
        changed[x] = (a[line, x] != a[line, x - 1]) | (b[line, x] != b[line, x - 1])
    return 0


cdef inline int mark_void(
    const uint8_t[:, ::1] void, Py_ssize_t line, uint8_t[::1] changed
) except -1 nogil:
    """Mark also the pixels where the void begins or ends."""
    cdef Py_ssize_t x
    for x in range(1, void.shape[1]):
        changed[x] |= void[line, x] != void[line, x - 1]
    return 0


cdef inline int take_run(
    int64_t[:, ::1] reference_rows,
    int64_t[:, ::1] prediction_rows,
    int32_t i,
    int32_t j,
    int64_t y,
    int64_t x,
    int64_t length,
    int64_t void_length,
    int64_t sign,
    int64_t image_width,
    int32_t[:, ::1] runs,
    Py_ssize_t n,
) except -1 nogil:
    """Add a run to the rows of its objects, 0 for the background; return whether two share it."""
    if i:
        add_run(reference_rows, i, y, x, length, void_length, sign, image_width)
    if j:
        add_run(prediction_rows, j, y, x, length, void_length, sign, image_width)
    # Written in any case, and overwritten if nothing is shared.
    runs[n, 0] = i
    runs[n, 1] = j
    runs[n, 2] = <int32_t>length
    runs[n, 3] = <int32_t>void_length
    return (i != 0) & (j != 0)


cdef inline int add_run(
    int64_t[:, ::1] rows,
    Py_ssize_t row,
    int64_t y,
    int64_t x0,
    int64_t length,
    int64_t void_length,
    int64_t sign,
    int64_t image_width,
) except -1 nogil:
    """Add pixels (y, x0...) to the row of an object; the lengths have the sign."""
    cdef int64_t x1 = x0 + sign * length
    # Exact: one of the two factors is even.
    cdef int64_t of_x = length * (x0 + x1 - 1) // 2
    rows[row, area] += length
    rows[row, sum_y] += length * y
    rows[row, sum_x] += of_x
    if void_length:
        rows[row, void_area] += length
        rows[row, void_sum_y] += length * y
        rows[row, void_sum_x] += of_x
    if sign > 0:
        rows[row, top] = min(rows[row, top], y)
        rows[row, left] = min(rows[row, left], x0)
        rows[row, bottom] = max(rows[row, bottom], y + 1)
        rows[row, right] = max(rows[row, right], x1)
        rows[row, first] = min(rows[row, first], y * image_width + x0)
    return 0


def sum_runs(int32_t[:, ::1] runs not None, Py_ssize_t n_reference, Py_ssize_t n_prediction):
    """Sum the runs of each pair of objects.

    Parameters
    ----------
    runs
        As returned by :func:`count_window`. Changed in place.
    n_reference, n_prediction
        Numbers of rows.
    """
    cdef Py_ssize_t n = runs.shape[0], result
    expect(runs.shape[1] == 4, "a run has four columns")
    expect(n_reference >= 0 and n_prediction >= 0, "a number of rows is negative")
    keys, shared, void_shared = np.empty(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    cdef int32_t[:, ::1] half_sorted = np.empty((n, 4), np.int32)
    cdef int64_t[::1] place = np.empty(max(n_reference, n_prediction) + 1, np.int64)
    cdef int64_t[::1] to_keys = keys, to_shared = shared, to_void = void_shared
    with nogil:
        result = sort_by(1, n_prediction, runs, half_sorted, place)
        if result == 0:
            result = sort_by(0, n_reference, half_sorted, runs, place)
        if result == 0:
            result = sum_sorted(runs, to_keys, to_shared, to_void)
    expect(result >= 0, "the runs hold numbers that no object has")
    return Pairs(keys[:result], shared[:result], void_shared[:result])


cdef Py_ssize_t sort_by(
    int column,
    Py_ssize_t n,
    const int32_t[:, ::1] runs,
    int32_t[:, ::1] result,
    int64_t[::1] place,
) except -1 nogil:
    """Sort runs by a column of numbers below n, in a stable way; -2 for any other number."""
    cdef Py_ssize_t k, number
    cdef int64_t at
    cdef int field
    for number in range(n + 1):
        place[number] = 0
    for k in range(runs.shape[0]):
        if not 0 <= runs[k, column] < n:
            return -2
        place[runs[k, column] + 1] += 1
    for number in range(n):
        place[number + 1] += place[number]
    for k in range(runs.shape[0]):
        at = place[runs[k, column]]
        place[runs[k, column]] = at + 1
        for field in range(4):
            result[at, field] = runs[k, field]
    return 0


cdef Py_ssize_t sum_sorted(
    const int32_t[:, ::1] runs, int64_t[::1] keys, int64_t[::1] shared, int64_t[::1] void_shared
) except -1 nogil:
    """Write key and sums of each pair of sorted runs; return the number of pairs."""
    cdef int64_t key, last = -1
    cdef Py_ssize_t k, count = 0
    for k in range(runs.shape[0]):
        key = (<int64_t>runs[k, 0] << 32) | runs[k, 1]
        if key != last:
            last = key
            keys[count] = key
            count += 1
        shared[count - 1] += runs[k, 2]
        void_shared[count - 1] += runs[k, 3]
    return count


def add_pairs(pairs, others):
    """Add two lists of pairs, and drop pairs that share nothing any more."""
    cdef const int64_t[::1] a_keys, a_shared, a_void, b_keys, b_shared, b_void
    a_keys, a_shared, a_void = pairs
    b_keys, b_shared, b_void = others
    cdef Py_ssize_t a = a_keys.shape[0], b = b_keys.shape[0], n
    expect(
        a_shared.shape[0] == a and a_void.shape[0] == a
        and b_shared.shape[0] == b and b_void.shape[0] == b,
        "the columns of pairs differ in length",
    )
    keys, shared, void_shared = (np.empty(a + b, np.int64) for _ in range(3))
    cdef int64_t[::1] to_keys = keys, to_shared = shared, to_void = void_shared
    with nogil:
        n = merge(a_keys, a_shared, a_void, b_keys, b_shared, b_void, to_keys, to_shared, to_void)
    return Pairs(keys[:n], shared[:n], void_shared[:n])


cdef Py_ssize_t merge(
    const int64_t[::1] a_keys, const int64_t[::1] a_shared, const int64_t[::1] a_void,
    const int64_t[::1] b_keys, const int64_t[::1] b_shared, const int64_t[::1] b_void,
    int64_t[::1] keys, int64_t[::1] shared, int64_t[::1] void_shared,
) except -1 nogil:
    """Write the sums of two lists; return the number of pairs that share something."""
    cdef Py_ssize_t i = 0, j = 0, n = 0
    cdef int64_t a, b
    while i < a_keys.shape[0] or j < b_keys.shape[0]:
        a = a_keys[i] if i < a_keys.shape[0] else INT64_MAX  # sorts after all others
        b = b_keys[j] if j < b_keys.shape[0] else INT64_MAX
        keys[n] = min(a, b)
        shared[n] = 0
        void_shared[n] = 0
        if a <= b and i < a_keys.shape[0]:
            shared[n] += a_shared[i]
            void_shared[n] += a_void[i]
            i += 1
        if b <= a and j < b_keys.shape[0]:
            shared[n] += b_shared[j]
            void_shared[n] += b_void[j]
            j += 1
        n += shared[n] != 0
    return n
