"""Find the labels of images and of windows of them, and write other labels over them."""

import numpy as np

from napari_panoptic.kernels.threads import bands_of, in_threads

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from napari_panoptic.kernels._border cimport expect, expect_shape
from napari_panoptic.kernels._clones cimport cloned_int
from napari_panoptic.kernels._lines cimport list_changes, padded

cdef enum:
    # Size of the first list of labels; it grows.
    FIRST_LABELS = 1 << 16

ctypedef fused id_type:
    uint32_t
    uint64_t


def look_up(lookup, values, result):
    """Write the entry of every value in a lookup table; return the result.

    Parameters
    ----------
    lookup
        int32 (highest value + 1,): from 0.
    values
        int32 image (y, x).
    result
        int32 image (y, x), contiguous; may be ``values``.

    Raises
    ------
    ValueError
        For a value without an entry.
    """
    expect(values.dtype == np.int32, "the values are no labels")
    expect(values.shape == result.shape, "the images differ in shape")
    # As an unsigned number, a negative value is far too high.
    ids, table = np.ascontiguousarray(values).view(np.uint32), np.append(lookup, np.int32(-1))
    has_strangers = in_threads(
        lambda band: look_up_ids(ids[band], table, result[band]), bands_of(values.shape)
    )
    expect(not any(has_strangers), "a value has no entry in the table")
    return result


def shift_labels(image, first, by, last, to):
    """Add a number to all labels of an image from a first one on, in place.

    As `look_up` without a table, in a third of the time.

    Parameters
    ----------
    image
        int32 (y, x), lines contiguous.
    first
        The first label that changes, above 0.
    by
        What is added.
    last, to
        A label that becomes another one instead; -1 for none.
    """
    expect(first > 0, "the background has no label")
    in_threads(lambda band: shift_window(image[band], first, by, last, to), bands_of(image.shape))


def shift_window(
    int32_t[:, ::1] image not None, int32_t first, int32_t by, int32_t last, int32_t to
):
    """Shift the labels of a window; see `shift_labels`."""
    with nogil:
        write_shifted(image, first, by, last, to)


cdef cloned_int write_shifted(
    int32_t[:, ::1] image, int32_t first, int32_t by, int32_t last, int32_t to
) except -1 nogil:
    """Write the shifted labels."""
    cdef Py_ssize_t y, x
    cdef int32_t label
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            label = image[y, x]
            image[y, x] = to if label == last else label + by * (label >= first)
    return 0


def present_labels(values, highest):
    """Return a mask of the labels 0..highest that occur; the background, 0, never does.

    Assumes that there are no other values.
    """
    present = np.zeros(highest + 1, np.bool_)
    bands = bands_of(values.shape)
    for _, found in in_threads(lambda band: list_labels(values[band], highest), bands):
        present[: len(found)] |= found
    return present


def list_labels(values, int64_t limit):
    """Find the labels of an image in one pass.

    Parameters
    ----------
    values
        int32 image (y, x).
    limit
        The highest label that may occur.

    Returns
    -------
    lowest
        0, or a negative label that occurs.
    present
        bool (highest + 1,): the labels that occur, without 0; empty if a label is below 0 or
        above the limit.
    """
    cdef const int32_t[:, ::1] image = np.ascontiguousarray(values)
    cdef Py_ssize_t width = image.shape[1], y, k
    cdef int32_t low = 0, high = 0, highest = 0, n_changes
    found = np.zeros(min(limit, FIRST_LABELS) + 1, np.bool_)
    cdef uint8_t[::1] present = found
    cdef uint8_t[::1] changed = np.zeros(padded(width), np.uint8)
    cdef int32_t[::1] words = np.empty(padded(width) // 8 + 1, np.int32)
    cdef int32_t[::1] changes = np.empty(width + 1, np.int32)
    cdef int32_t[2] ends
    with nogil:
        for y in range(image.shape[0] if width else 0):
            mark_changes(image, y, changed, &ends[0])
            low = ends[0]
            high = ends[1]
            if low < 0 or high > limit:
                break
            highest = max(highest, high)
            if highest >= present.shape[0]:
                with gil:
                    longer = np.zeros(min(limit, 2 * <int64_t>highest) + 1, np.bool_)
                    longer[: len(found)] = found
                    found = longer
                    present = found
            present[image[y, 0]] = True
            n_changes = list_changes(changed, words, changes)
            for k in range(n_changes):
                present[image[y, changes[k]]] = True
    if low < 0 or high > limit:
        return low, found[:0]
    found[0] = False
    return 0, found[: highest + 1]


cdef cloned_int mark_changes(
    const int32_t[:, ::1] image, Py_ssize_t y, uint8_t[::1] changed, int32_t* ends
) except -1 nogil:
    """Mark where a line changes, and write its lowest and highest number, or 0."""
    cdef int32_t low = min(image[y, 0], 0), high = max(image[y, 0], 0)
    cdef Py_ssize_t x
    # In one loop without a branch, so that it compiles to vector instructions.
    for x in range(1, image.shape[1]):
        low = min(low, image[y, x])
        high = max(high, image[y, x])
        changed[x] = image[y, x] != image[y, x - 1]
    ends[0] = low
    ends[1] = high
    return 0


def split_channels(const double[:, :, ::1] pixels not None):
    """Return the channels of an image (y, x, channel) of whole numbers, one after the other.

    Returns
    -------
    int32 (channel, y, x)
        None if a number has a fraction, is not finite, or needs more bits.
    """
    cdef Py_ssize_t y, x, c, height = pixels.shape[0], width = pixels.shape[1]
    cdef double value
    cdef int32_t number
    cdef int n_odd = 0
    channels = np.empty((pixels.shape[2], height, width), np.int32)
    cdef int32_t[:, :, ::1] written = channels
    with nogil:
        for y in range(height):
            for c in range(pixels.shape[2]):
                for x in range(width):
                    value = pixels[y, x, c]
                    # A number that is not below the limits, such as NaN, must not be cast.
                    number = <int32_t>value if -2147483648.0 <= value <= 2147483647.0 else 0
                    n_odd |= number != value
                    written[c, y, x] = number
    return None if n_odd else channels


def lay_over(int32_t[:, ::1] flat not None, const int32_t[:, ::1] index not None, int32_t offset):
    """Write the objects of an image over those of another; return the number of pixels taken.

    Parameters
    ----------
    flat
        int32 (y, x), changed in place.
    index
        int32 (y, x) of one class, 0 for background.
    offset
        Added to the labels of ``index``.
    """
    cdef Py_ssize_t y, x, taken = 0
    expect_shape(flat.shape, index.shape[0], index.shape[1])
    with nogil:
        for y in range(flat.shape[0]):
            for x in range(flat.shape[1]):
                # Without a branch: the ends of objects cannot be predicted.
                taken += index[y, x] > 0 and flat[y, x] > 0
                flat[y, x] = index[y, x] + offset if index[y, x] > 0 else flat[y, x]
    return taken


def look_up_ids(
    const id_type[:, ::1] window not None,
    const int32_t[::1] places not None,
    int32_t[:, ::1] numbers not None,
):
    """Write the number of each pixel's id; return whether any was -1.

    Without a branch per pixel: the ends of objects cannot be predicted.

    Parameters
    ----------
    window
        uint32 or uint64 (y, x): ids.
    places
        int32: the number of each id from 0; the last one is for all higher ids.
    numbers
        int32 (y, x): receives the numbers.
    """
    cdef int has_strangers
    expect(0 < places.shape[0] < INT32_MAX, "the table is empty, or too large")
    expect_shape(window.shape, numbers.shape[0], numbers.shape[1])
    with nogil:
        has_strangers = write_places(window, places, numbers)
    return has_strangers == 1


cdef cloned_int write_places(
    const id_type[:, ::1] window, const int32_t[::1] places, int32_t[:, ::1] numbers
) except -1 nogil:
    """Write the number of each pixel's id; return 1 if any was below 0."""
    cdef id_type last = <id_type>(places.shape[0] - 1)
    cdef int32_t number, lowest = 0
    cdef Py_ssize_t y, x
    for y in range(window.shape[0]):
        for x in range(window.shape[1]):
            number = places[<int32_t>min(window[y, x], last)]
            numbers[y, x] = number
            lowest = min(lowest, number)
    return lowest < 0


def search_ids(
    const id_type[:, ::1] window not None,
    const int64_t[::1] ids not None,
    const int32_t[::1] id_numbers not None,
    int32_t[:, ::1] numbers not None,
):
    """Write the number of each pixel's id like `look_up_ids`, for ids too far apart for a table.

    Parameters
    ----------
    window
        uint32 or uint64 (y, x): ids.
    ids, id_numbers
        The ids, ascending from 0, and the number of each; other ids have the number -1.
    numbers
        int32 (y, x): receives the numbers.
    """
    cdef int32_t lowest = 0, number = 0
    cdef Py_ssize_t y, x, place
    expect(id_numbers.shape[0] >= ids.shape[0], "an id has no number")
    expect_shape(window.shape, numbers.shape[0], numbers.shape[1])
    with nogil:
        for y in range(window.shape[0]):
            for x in range(window.shape[1]):
                if x == 0 or window[y, x] != window[y, x - 1]:
                    place = first_not_below(ids, <int64_t>window[y, x])
                    number = -1
                    if place < ids.shape[0] and ids[place] == <int64_t>window[y, x]:
                        number = id_numbers[place]
                    lowest = min(lowest, number)
                numbers[y, x] = number
    return lowest < 0


cdef inline Py_ssize_t first_not_below(
    const int64_t[::1] ascending, int64_t value
) except -1 nogil:
    """Return the place of the first number that is not below a value; the length if all are."""
    cdef Py_ssize_t low = 0, high = ascending.shape[0], middle
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def run_values(const id_type[:, ::1] window not None):
    """Return the value of each run of equal values, line by line, as int64 (n,)."""
    cdef Py_ssize_t y, x, n = 0, width = window.shape[1]
    found = np.empty(1024, np.int64)
    cdef int64_t[::1] values = found
    with nogil:
        for y in range(window.shape[0]):
            if n + width > values.shape[0]:
                with gil:
                    found = np.concatenate([found[:n], np.empty(n + 1024 + width, np.int64)])
                    values = found
            for x in range(width):
                if x == 0 or window[y, x] != window[y, x - 1]:
                    values[n] = <int64_t>window[y, x]
                    n += 1
    return found[:n].copy()
