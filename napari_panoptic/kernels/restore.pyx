"""Loops that restore objects from colour-coded masks: classify, components, grow, shrink."""

import math

import numpy as np

from napari_panoptic.kernels.threads import bands_of, in_threads

from libc.stdint cimport int32_t, int64_t, uint8_t

from napari_panoptic.kernels._border cimport expect, expect_shape
from napari_panoptic.kernels._clones cimport cloned_int, cloned_size
from napari_panoptic.kernels._lines cimport list_changes, padded

cdef enum:
    # The class of a pixel whose colour is not in the table of `classify`.
    unknown = 255
    # Columns of a run: where it starts and ends (half open) in its line, and its component.
    START = 0
    END = 1
    NUMBER = 2

UNKNOWN = unknown

ctypedef fused layer:
    # Labels are laid over each other by the highest, bits by adding them.
    int32_t
    uint8_t


def classify(pixels, codes, values):
    """Look up the colour of each pixel.

    Parameters
    ----------
    pixels
        uint8 (y, x, 3).
    codes
        int32 (n,): red * 65536 + green * 256 + blue of the known colours.
    values
        uint8 (n,): the value of each known colour.

    Returns
    -------
    uint8 (y, x), `UNKNOWN` for unknown colours.
    """
    result = np.empty(pixels.shape[:2], np.uint8)
    in_threads(
        lambda band: classify_band(pixels[band], codes, values, result[band]),
        bands_of(result.shape),
    )
    return result


def classify_band(
    pixels,
    const int32_t[::1] codes not None,
    const uint8_t[::1] values not None,
    uint8_t[:, ::1] result not None,
):
    expect(pixels.ndim == 3 and pixels.shape[2] == 3, "the pixels are not red, green and blue")
    cdef const uint8_t[:, ::1] colours = np.ascontiguousarray(pixels).reshape(
        len(pixels), 3 * pixels.shape[1]
    )
    cdef int32_t[::1] packed = np.empty(result.shape[1], np.int32)
    expect(codes.shape[0] == values.shape[0], "there is not one value for each colour")
    expect_shape(colours.shape, result.shape[0], 3 * result.shape[1])
    with nogil:
        write_classes(colours, codes, values, packed, result)


cdef cloned_int write_classes(
    const uint8_t[:, ::1] colours,
    const int32_t[::1] codes,
    const uint8_t[::1] values,
    int32_t[::1] packed,
    uint8_t[:, ::1] result,
) except -1 nogil:
    """Classify pixels in loops without a branch, which compile to vector instructions.

    ``packed`` has room for the colours of a line as one number each.
    """
    cdef Py_ssize_t y, x, i, width = packed.shape[0]
    cdef int32_t code
    cdef uint8_t value, is_it
    for y in range(colours.shape[0]):
        for x in range(width):
            packed[x] = (
                (<int32_t>colours[y, 3 * x] << 16)
                | (<int32_t>colours[y, 3 * x + 1] << 8)
                | <int32_t>colours[y, 3 * x + 2]
            )
        for x in range(width):
            result[y, x] = unknown
        for i in range(codes.shape[0]):
            code = codes[i]
            value = values[i]
            for x in range(width):
                is_it = -<uint8_t>(packed[x] == code)
                result[y, x] = (result[y, x] & ~is_it) | (value & is_it)
    return 0


def components(class_image):
    """Label the 8-connected components of each class.

    Parameters
    ----------
    class_image
        uint8 (y, x): 0 for background, k for class k.

    Returns
    -------
    int32 (y, x): numbers from 1, class by class and in raster order within one.
    """
    return counted_components(class_image)[0]


def counted_components(class_image):
    """Label the components as `components` does, and count those of each class.

    Runs of equal pixels are joined, not pixels: memory grows with the number of runs.

    Returns
    -------
    numbers
        int32 (y, x), as there.
    last
        int32 (256,): the last number of each class, or of the classes before it if it has
        none; 0 for the background.
    """
    cdef const uint8_t[:, ::1] classes = np.ascontiguousarray(class_image)
    cdef Py_ssize_t height = classes.shape[0], width = classes.shape[1], y, used = 0
    numbers = np.empty((height, width), np.int32)
    held = np.empty((width + 4096, 3), np.int32)
    cdef int32_t[:, ::1] written = numbers, runs = held
    cdef int64_t[::1] first = np.zeros(height + 1, np.int64)  # run of each line
    cdef uint8_t[::1] changed = np.zeros(padded(width), np.uint8)
    cdef int32_t[::1] words = np.empty(padded(width) // 8 + 1, np.int32)
    cdef int32_t[::1] changes = np.empty(width + 1, np.int32)
    counts = np.zeros(256, np.int32)
    cdef int32_t[::1] count_of = counts
    with nogil:
        for y in range(height if width else 0):
            if used + width + 1 > runs.shape[0]:
                with gil:
                    more = np.empty((used + 4096 + width, 3), np.int32)
                    held = np.concatenate([held[:used], more])
                    runs = held
            used = list_runs(classes, y, changed, words, changes, runs, used)
            first[y + 1] = used
            join_lines(classes, y, runs, first, count_of)
    last = np.cumsum(counts).astype(np.int32)
    cdef int32_t[::1] given = np.concatenate([np.zeros(1, np.int32), last[:255]])
    with nogil:
        paint(classes, runs, first, given, written)
    return numbers, last


cdef Py_ssize_t list_runs(
    const uint8_t[:, ::1] classes,
    Py_ssize_t y,
    uint8_t[::1] changed,
    int32_t[::1] words,
    int32_t[::1] changes,
    int32_t[:, ::1] runs,
    Py_ssize_t used,
) except -1 nogil:
    """Append the runs of a line, background left out; return the new number of runs."""
    cdef int32_t x, k, n_changes, start = 0, width = <int32_t>classes.shape[1]
    for x in range(1, width):
        changed[x] = classes[y, x] != classes[y, x - 1]
    n_changes = list_changes(changed, words, changes)
    changes[n_changes] = width
    for k in range(n_changes + 1):
        # Overwritten by the next run if it is background.
        runs[used, START] = start
        runs[used, END] = changes[k]
        runs[used, NUMBER] = <int32_t>used
        used += classes[y, start] != 0
        start = changes[k]
    return used


cdef int join_lines(
    const uint8_t[:, ::1] classes,
    Py_ssize_t y,
    int32_t[:, ::1] runs,
    const int64_t[::1] first,
    int32_t[::1] count_of,
) except -1 nogil:
    """Join the runs of a line with those above that touch them; count the components.

    The number of a run is that of an earlier run of its component, or its own.
    """
    cdef Py_ssize_t candidate = first[y - 1] if y else 0, run, other, a, b
    cdef int32_t start, end
    cdef uint8_t kind
    for run in range(first[y], first[y + 1]):
        start = runs[run, START]
        end = runs[run, END]
        kind = classes[y, start]
        count_of[kind] += 1
        while candidate < first[y] and runs[candidate, END] < start:
            candidate += 1
        other = candidate
        while other < first[y] and runs[other, START] <= end:
            if classes[y - 1, runs[other, START]] == kind:
                a = root(runs, run)
                b = root(runs, other)
                count_of[kind] -= a != b
                runs[max(a, b), NUMBER] = <int32_t>min(a, b)
            other += 1
    return 0


cdef inline Py_ssize_t root(int32_t[:, ::1] runs, Py_ssize_t run) except -1 nogil:
    """Return the first run of a component, and shorten the path for later calls."""
    while runs[run, NUMBER] != run:
        runs[run, NUMBER] = runs[runs[run, NUMBER], NUMBER]
        run = runs[run, NUMBER]
    return run


cdef int paint(
    const uint8_t[:, ::1] classes,
    int32_t[:, ::1] runs,
    const int64_t[::1] first,
    int32_t[::1] given,
    int32_t[:, ::1] numbers,
) except -1 nogil:
    """Write the numbers of the components, and overwrite the runs.

    ``given`` has the last number of each class so far.
    """
    cdef Py_ssize_t y, x, run, earlier
    cdef int32_t number
    cdef uint8_t kind
    for y in range(classes.shape[0]):
        for x in range(classes.shape[1]):
            numbers[y, x] = 0
        for run in range(first[y], first[y + 1]):
            earlier = runs[run, NUMBER]
            if earlier == run:
                kind = classes[y, runs[run, START]]
                given[kind] += 1
                number = given[kind]
            else:
                number = runs[earlier, NUMBER]  # final by now
            runs[run, NUMBER] = number
            for x in range(runs[run, START], runs[run, END]):
                numbers[y, x] = number
    return 0


def half_widths(radius):
    """Return how far each line of a disk reaches to either side, by its distance from the middle.

    The disk is that of ``skimage.morphology.disk``: dy^2 + dx^2 <= radius^2.

    Returns
    -------
    int64 (radius + 1,), descending.
    """
    return np.array([math.isqrt(radius**2 - dy**2) for dy in range(radius + 1)], dtype=np.int64)


def grow(labels, class_image, last, widths):
    """Grow the objects of every class as if each class had an image of its own.

    In that image an object grows into the background only, and if two reach a pixel the
    higher label wins. Then the classes are laid over each other, a later one over the earlier.

    Parameters
    ----------
    labels, last
        As from :func:`counted_components`. Not changed.
    class_image
        uint8 (y, x): the class of each pixel, 0 for background.
    widths
        int64 (radius + 1,): the disk to grow by, from :func:`half_widths`.

    Returns
    -------
    grown
        int32 (y, x).
    overlapping_px
        Number of pixels taken from earlier classes, counted once for each class that takes
        one.
    """
    grown = np.empty_like(labels)
    overlapping_px = in_threads(
        lambda band: grow_band(labels, class_image, last, widths, band.start, grown[band]),
        bands_of(labels.shape),
    )
    return grown, sum(overlapping_px)


def grow_band(
    const int32_t[:, ::1] labels not None,
    class_image,
    const int32_t[::1] last not None,
    const int64_t[::1] widths not None,
    Py_ssize_t top,
    int32_t[:, ::1] result not None,
):
    """Write a band of the grown objects, from row ``top`` on; return its overlapping pixels."""
    cdef const uint8_t[:, ::1] classes = np.ascontiguousarray(class_image)
    cdef Py_ssize_t height = result.shape[0], width = result.shape[1]
    cdef Py_ssize_t radius = widths.shape[0] - 1, first = max(top - radius, 0), overlapping_px
    cdef int before, kind
    expect_disk(widths)
    expect_shape(classes.shape, labels.shape[0], labels.shape[1])
    expect(
        width == labels.shape[1] and 0 <= top and top + height <= labels.shape[0],
        "the band reaches beyond the image",
    )
    expect(last.shape[0] == 256, "there is not one last number for each class")
    near = np.ascontiguousarray(class_image[first : top + height + radius])
    bit_rows, reached_rows = np.empty_like(near), np.empty((height, width), np.uint8)
    cdef const uint8_t[:, ::1] kinds = near
    cdef uint8_t[:, ::1] bits = bit_rows, reached = reached_rows
    cdef int32_t[:, ::1] spread = np.empty((1, width), np.int32)
    cdef uint8_t[:, ::1] spread_bits = np.empty((1, width), np.uint8)
    cdef uint8_t[::1] bit_count = np.array([bin(k).count("1") for k in range(256)], np.uint8)
    cdef uint8_t[::1] bit_of = np.empty(256, np.uint8)
    with nogil:
        dilate(labels, top, widths, spread, result)
        # Each class covers what it reaches: what exceeds the area of all together is taken.
        overlapping_px = -keep_own(labels, classes, last, top, radius > 1, result)
        for before in range(0, 255, 8):  # a bit for each of eight classes
            if last[before] == last[255]:
                break
            for kind in range(256):
                bit_of[kind] = 1 << (kind - before - 1) if before < kind <= before + 8 else 0
            replace(kinds, bit_of, bits)
            dilate(bits, top - first, widths, spread_bits, reached)
            overlapping_px += sum_of(reached, bit_count)
    return overlapping_px


cdef int expect_disk(const int64_t[::1] widths) except -1:
    cdef Py_ssize_t k
    expect(widths.shape[0] > 0, "the disk is empty")
    for k in range(widths.shape[0]):
        expect(widths[k] >= 0, "a line of the disk is shorter than its middle")
    return 0


cdef cloned_size keep_own(
    const int32_t[:, ::1] labels,
    const uint8_t[:, ::1] classes,
    const int32_t[::1] last,
    Py_ssize_t top,
    bint is_large,
    int32_t[:, ::1] result,
) except -1 nogil:
    """Keep objects of a pixel's own class where they are; return the number of pixels covered.

    Later classes have the higher labels: the highest one within reach lies on top, unless it
    is of the pixel's own class. (By one pixel, objects of a class do not reach each other.)
    """
    cdef Py_ssize_t k, x, covered = 0
    cdef int32_t own
    for k in range(result.shape[0]):
        if is_large:
            for x in range(result.shape[1]):
                own = labels[top + k, x]
                if own > 0 and result[k, x] <= last[classes[top + k, x]]:
                    result[k, x] = own
        for x in range(result.shape[1]):
            covered += result[k, x] > 0
    return covered


cdef cloned_int replace(
    const uint8_t[:, ::1] values, const uint8_t[::1] table, uint8_t[:, ::1] result
) except -1 nogil:
    cdef Py_ssize_t y, x
    for y in range(values.shape[0]):
        for x in range(values.shape[1]):
            result[y, x] = table[values[y, x]]
    return 0


cdef cloned_size sum_of(const uint8_t[:, ::1] values, const uint8_t[::1] table) except -1 nogil:
    cdef Py_ssize_t y, x, total = 0
    for y in range(values.shape[0]):
        for x in range(values.shape[1]):
            total += table[values[y, x]]
    return total


def shrink(const int32_t[:, ::1] labels not None, const int64_t[::1] widths not None):
    """Erode every object by itself; the outside of the image counts as object.

    A pixel goes if the disk around it holds another label. On the way there, first along the
    line and then along the column, the label changes at some step, and the whole way lies in
    the disk. So a pixel goes if the label changes along its line of the disk, or between two
    pixels above each other.

    Parameters
    ----------
    labels
        int32 (y, x). Not changed.
    widths
        int64 (radius + 1,): the disk to erode by, from :func:`half_widths`.
    """
    cdef Py_ssize_t height = labels.shape[0], width = labels.shape[1], y, reach
    result = np.empty((height, width), np.int32)
    cdef int32_t[:, ::1] kept = result
    cdef uint8_t[:, ::1] gone = np.zeros((height, width), np.uint8)
    cdef uint8_t[:, ::1] changes = np.zeros((1, width), np.uint8)
    cdef uint8_t[:, ::1] spread = np.empty((1, width), np.uint8)
    expect_disk(widths)
    with nogil:
        for y in range(height):
            mark_differences(labels, y, 0, y, 1, width - 1, changes)
            for reach in range(1, min(widths.shape[0], width)):
                lay_over(gone, y, 0, changes, 0, reach - 1, width - reach)
                lay_over(gone, y, reach, changes, 0, 0, width - reach)
            mark_differences(labels, y, 0, min(y + 1, height - 1), 0, width, changes)
            lay_disk(changes, 0, y, y + 1, widths, spread, gone)
        keep_others(labels, gone, kept)
    return result


cdef cloned_int mark_differences(
    const int32_t[:, ::1] labels,
    Py_ssize_t y,
    Py_ssize_t x,
    Py_ssize_t other_y,
    Py_ssize_t other_x,
    Py_ssize_t n,
    uint8_t[:, ::1] changes,
) except -1 nogil:
    """Mark where n pixels of a row differ from n other pixels."""
    cdef Py_ssize_t k
    for k in range(n):
        changes[0, k] = labels[y, x + k] != labels[other_y, other_x + k]
    return 0


cdef cloned_int keep_others(
    const int32_t[:, ::1] labels, const uint8_t[:, ::1] gone, int32_t[:, ::1] kept
) except -1 nogil:
    """Copy the labels of the pixels that are not marked as gone; the others become background."""
    cdef Py_ssize_t y, x
    for y in range(labels.shape[0]):
        for x in range(labels.shape[1]):
            kept[y, x] = labels[y, x] & -(gone[y, x] == 0)
    return 0


cdef int dilate(
    const layer[:, ::1] image,
    Py_ssize_t top,
    const int64_t[::1] widths,
    layer[:, ::1] spread,
    layer[:, ::1] result,
) except -1 nogil:
    """Lay the pixels in the disk around each pixel of a band over each other, see `lay_over`."""
    cdef Py_ssize_t radius = widths.shape[0] - 1, y, x
    for y in range(result.shape[0]):
        for x in range(result.shape[1]):
            result[y, x] = image[top + y, x]
    # Row by row, so that each is in the processor's cache from its first use to its last.
    for y in range(max(top - radius, 0), min(top + result.shape[0] + radius, image.shape[0])):
        lay_disk(image, y, y - top, y - top, widths, spread, result)
    return 0


cdef int lay_disk(
    const layer[:, ::1] image,
    Py_ssize_t y,
    Py_ssize_t upper,
    Py_ssize_t lower,
    const int64_t[::1] widths,
    layer[:, ::1] spread,
    layer[:, ::1] result,
) except -1 nogil:
    """Lay row y of an image over all rows that disks on it reach.

    ``upper`` and ``lower`` are its row in the result; or the two rows between which it lies.
    """
    cdef Py_ssize_t width = image.shape[1], distance, above, below, x, reach = 0
    for x in range(width):
        spread[0, x] = image[y, x]
    for distance in range(widths.shape[0] - 1, lower - upper - 1, -1):
        while reach < min(widths[distance], width - 1):
            reach += 1
            lay_over(spread, 0, reach, image, y, 0, width - reach)
            lay_over(spread, 0, 0, image, y, reach, width - reach)
        above = lower - distance
        below = upper + distance
        if 0 <= above < result.shape[0]:
            lay_over(result, above, 0, spread, 0, 0, width)
        if above != below and 0 <= below < result.shape[0]:
            lay_over(result, below, 0, spread, 0, 0, width)
    return 0


cdef cloned_int lay_over(
    layer[:, ::1] target,
    Py_ssize_t target_y,
    Py_ssize_t target_x,
    const layer[:, ::1] source,
    Py_ssize_t source_y,
    Py_ssize_t source_x,
    Py_ssize_t n,
) except -1 nogil:
    """Raise each of n values to the other's, or add its bits."""
    cdef Py_ssize_t x
    for x in range(n):
        if layer is int32_t:
            target[target_y, target_x + x] = max(
                target[target_y, target_x + x], source[source_y, source_x + x]
            )
        else:
            target[target_y, target_x + x] |= source[source_y, source_x + x]
    return 0
