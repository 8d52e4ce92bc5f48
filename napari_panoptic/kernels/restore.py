"""Loops that restore objects from colour-coded masks: classify, components, grow, shrink."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.changes import blank_notes, list_changes
from napari_panoptic.kernels.jit import bands_of, compiled, in_threads

UNKNOWN = 255
"""The class of a pixel whose colour is not in the table of `classify`."""
# Columns of a run: where it starts and ends (half open) in its line, and its component.
_START, _END, _NUMBER = 0, 1, 2


def classify(
    pixels: NDArray[np.uint8], codes: NDArray[np.int32], values: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Look up the colour of each pixel.

    Parameters
    ----------
    pixels
        uint8 (y, x, 3), contiguous.
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
        lambda band: _classify(pixels[band], codes, values, result[band]), bands_of(result.shape)
    )
    return result


@compiled
def _classify(
    pixels: NDArray[np.uint8],
    codes: NDArray[np.int32],
    values: NDArray[np.uint8],
    result: NDArray[np.uint8],
) -> None:
    """Classify a band of rows; see `classify`. Loops without a branch, for vector instructions."""
    packed = np.empty(pixels.shape[1], np.int32)
    for y in range(len(pixels)):
        colours, line = pixels[y].ravel(), result[y]
        for x in range(len(packed)):
            red, green = np.int32(colours[3 * x]), np.int32(colours[3 * x + 1])
            packed[x] = (red << 16) | (green << 8) | np.int32(colours[3 * x + 2])
        line[:] = UNKNOWN
        for i in range(len(codes)):
            code, value = codes[i], values[i]
            for x in range(len(packed)):
                line[x] = value if packed[x] == code else line[x]


def components(class_image: NDArray[np.uint8]) -> NDArray[np.int32]:
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


def counted_components(
    class_image: NDArray[np.uint8],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
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
    # NumPy requests large pages of memory, kernels do not: writing them takes half the time.
    numbers = np.empty(class_image.shape, np.int32)
    return numbers, _label_components(class_image, numbers)


@compiled
def _label_components(
    class_image: NDArray[np.uint8], numbers: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Write the number of each pixel's component; return the last number of each class."""
    height, width = class_image.shape
    runs = np.empty((width + 4096, 3), np.int32)
    first = np.zeros(height + 1, np.int64)  # run of each line
    notes = blank_notes(width)
    changed, _, changes = notes
    count_of = np.zeros(256, np.int32)
    used = 0
    for y in range(height if width else 0):
        if used + width + 1 > len(runs):
            larger = np.empty((2 * len(runs) + width, 3), np.int32)
            larger[:used] = runs[:used]
            runs = larger
        line = class_image[y]
        for x in range(1, width):
            changed[x] = line[x] != line[x - 1]
        n_changes = list_changes(notes)
        changes[n_changes] = width
        start = 0
        for k in range(n_changes + 1):
            # Overwritten by the next run if it is background.
            runs[used, _START], runs[used, _END], runs[used, _NUMBER] = start, changes[k], used
            used += int(line[start] != 0)
            start = changes[k]
        first[y + 1] = used
        _join_lines(class_image, y, runs, first, count_of)
    last = np.cumsum(count_of).astype(np.int32)
    _paint(class_image, runs, first, last, numbers)
    return last


@compiled
def _join_lines(
    class_image: NDArray[np.uint8],
    y: int,
    runs: NDArray[np.int32],
    first: NDArray[np.int64],
    count_of: NDArray[np.int32],
) -> None:
    """Join the runs of a line with those above that touch them; count the components.

    The number of a run is that of an earlier run of its component, or its own.
    """
    candidate = first[y - 1] if y else 0
    for run in range(first[y], first[y + 1]):
        start, end = runs[run, _START], runs[run, _END]
        kind = class_image[y, start]
        count_of[kind] += 1
        while candidate < first[y] and runs[candidate, _END] < start:
            candidate += 1
        other = candidate
        while other < first[y] and runs[other, _START] <= end:
            if class_image[y - 1, runs[other, _START]] == kind:
                a, b = _root(runs, run), _root(runs, other)
                count_of[kind] -= a != b
                runs[max(a, b), _NUMBER] = min(a, b)
            other += 1


@compiled
def _root(runs: NDArray[np.int32], run: int) -> int:
    """Return the first run of a component, and shorten the path for later calls."""
    while runs[run, _NUMBER] != run:
        runs[run, _NUMBER] = runs[runs[run, _NUMBER], _NUMBER]
        run = runs[run, _NUMBER]
    return run


@compiled
def _paint(
    class_image: NDArray[np.uint8],
    runs: NDArray[np.int32],
    first: NDArray[np.int64],
    last: NDArray[np.int32],
    numbers: NDArray[np.int32],
) -> None:
    """Write the numbers of the components, and overwrite the runs."""
    given = np.zeros(256, np.int32)
    given[1:] = last[:-1]
    for y in range(len(class_image)):
        line = numbers[y]
        line[:] = 0
        for run in range(first[y], first[y + 1]):
            earlier = runs[run, _NUMBER]
            if earlier == run:
                kind = class_image[y, runs[run, _START]]
                given[kind] += 1
                number = given[kind]
            else:
                number = runs[earlier, _NUMBER]  # final by now
            runs[run, _NUMBER] = number
            line[runs[run, _START] : runs[run, _END]] = number


def half_widths(radius: int) -> NDArray[np.int64]:
    """Return how far each line of a disk reaches to either side, by its distance from the middle.

    The disk is that of ``skimage.morphology.disk``: dy^2 + dx^2 <= radius^2.

    Returns
    -------
    int64 (radius + 1,), descending.
    """
    return np.array([math.isqrt(radius**2 - dy**2) for dy in range(radius + 1)], dtype=np.int64)


def grow(
    labels: NDArray[np.int32],
    class_image: NDArray[np.uint8],
    last: NDArray[np.int32],
    widths: NDArray[np.int64],
) -> tuple[NDArray[np.int32], int]:
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
        lambda band: _grow(labels, class_image, last, widths, band.start, grown[band]),
        bands_of(labels.shape),
    )
    return grown, sum(overlapping_px)


@compiled
def _grow(
    labels: NDArray[np.int32],
    class_image: NDArray[np.uint8],
    last: NDArray[np.int32],
    widths: NDArray[np.int64],
    top: int,
    result: NDArray[np.int32],
) -> int:
    """Write a band of the grown objects, from row ``top`` on; return its overlapping pixels."""
    height, width = result.shape
    radius = len(widths) - 1
    _dilate(labels, top, widths, result, False)
    # Later classes have the higher labels: the highest one within reach lies on top, unless it
    # is of the pixel's own class. (By one pixel, objects of a class do not reach each other.)
    for k in range(height if radius > 1 else 0):
        line, own, kinds = result[k], labels[top + k], class_image[top + k]
        for x in range(width):
            if own[x] > 0 and line[x] <= last[kinds[x]]:
                line[x] = own[x]

    bit_count = np.zeros(256, np.uint8)
    for value in range(256):
        bit_count[value] = bit_count[value // 2] + value % 2
    first = max(top - radius, 0)
    near = class_image[first : top + height + radius]
    bits, reached = np.empty(near.shape, np.uint8), np.empty(result.shape, np.uint8)
    # Each class covers what it reaches: what exceeds the area of all together is taken.
    overlapping_px = 0
    for k in range(height):
        for x in range(width):
            overlapping_px -= result[k, x] > 0
    for before in range(0, 255, 8):  # a bit for each of eight classes
        if last[before] == last[255]:
            break
        bit_of = np.zeros(256, np.uint8)
        for kind in range(before + 1, min(before + 9, 256)):
            bit_of[kind] = 1 << (kind - before - 1)
        for y in range(len(near)):
            for x in range(width):
                bits[y, x] = bit_of[near[y, x]]
        _dilate(bits, top - first, widths, reached, True)
        for k in range(height):
            for x in range(width):
                overlapping_px += bit_count[reached[k, x]]
    return overlapping_px


def shrink(labels: NDArray[np.int32], widths: NDArray[np.int64]) -> NDArray[np.int32]:
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
    result = np.empty_like(labels)
    _shrink(labels, widths, result)
    return result


@compiled
def _shrink(
    labels: NDArray[np.int32], widths: NDArray[np.int64], result: NDArray[np.int32]
) -> None:
    """Write the eroded objects; see `shrink`."""
    height, width = labels.shape
    gone = np.zeros(labels.shape, np.uint8)
    changes = np.empty(width, np.uint8)
    for y in range(height):
        line, below = labels[y], labels[min(y + 1, height - 1)]
        for x in range(width - 1):
            changes[x] = line[x] != line[x + 1]
        for reach in range(1, min(len(widths), width)):
            _lay_over(gone[y], changes[reach - 1 : width - 1], True)
            _lay_over(gone[y, reach:], changes[: width - 1], True)
        for x in range(width):
            changes[x] = line[x] != below[x]
        _lay_disk(changes, (y, y + 1), widths, gone, True)
    for y in range(height):
        for x in range(width):
            result[y, x] = 0 if gone[y, x] else labels[y, x]


@compiled
def _dilate(
    image: NDArray[Any], top: int, widths: NDArray[np.int64], result: NDArray[Any], of_bits: bool
) -> None:
    """Lay the pixels in the disk around each pixel of a band over each other, see `_lay_over`."""
    radius = len(widths) - 1
    result[:] = image[top : top + len(result)]
    # Row by row, so that each is in the processor's cache from its first use to its last.
    for y in range(max(top - radius, 0), min(top + len(result) + radius, len(image))):
        _lay_disk(image[y], (y - top, y - top), widths, result, of_bits)


@compiled
def _lay_disk(
    line: NDArray[Any],
    middle: tuple[int, int],
    widths: NDArray[np.int64],
    result: NDArray[Any],
    of_bits: bool,
) -> None:
    """Lay a line over all rows that disks on it reach.

    ``middle`` is its row, twice; or the two rows between which it lies.
    """
    last, spread, reach = len(line) - 1, line.copy(), 0
    for distance in range(len(widths) - 1, middle[1] - middle[0] - 1, -1):
        while reach < min(widths[distance], last):
            reach += 1
            _lay_over(spread[reach:], line, of_bits)
            _lay_over(spread, line[reach:], of_bits)
        above, below = middle[1] - distance, middle[0] + distance
        if 0 <= above < len(result):
            _lay_over(result[above], spread, of_bits)
        if above != below and 0 <= below < len(result):
            _lay_over(result[below], spread, of_bits)


@compiled
def _lay_over(target: NDArray[Any], source: NDArray[Any], of_bits: bool) -> None:
    """Raise each value to the other's, or add its bits, as far as both reach."""
    n = min(len(target), len(source))
    if of_bits:
        for x in range(n):
            target[x] |= source[x]
    else:
        for x in range(n):
            target[x] = max(target[x], source[x])
