"""Compiled loops over pixels: components, growing, shrinking."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.changes import Notes, blank_notes, list_changes
from napari_panoptic.kernels.jit import bands_of, compiled, in_threads

UNKNOWN = 255
"""What `classify` gives a pixel whose colour is not in its table."""
# Columns of a run: where it starts and ends (half open) in its line, and a number.
_START, _END, _NUMBER = 0, 1, 2
# Bits are counted so many pixels at a time: bytes of a word.
_WORD = 8
# Sets of classes are kept in the bits of a byte.
_CLASSES_AT_ONCE = 8


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
        uint8 (n,): what each known colour stands for.

    Returns
    -------
    uint8 (y, x), `UNKNOWN` where the colour is not known.
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
    """Do so with some lines."""
    line = np.empty(pixels.shape[1], np.int32)
    for y in range(len(pixels)):
        _pack(pixels[y].ravel(), line)
        here = result[y]
        here[:] = UNKNOWN
        for i in range(len(codes)):
            _write_where(line, codes[i], values[i], here)


@compiled
def _pack(colours: NDArray[np.uint8], line: NDArray[np.int32]) -> None:
    """Make one number of the three bytes of each pixel."""
    for x in range(len(line)):
        line[x] = (
            (np.int32(colours[3 * x]) << 16)
            | (np.int32(colours[3 * x + 1]) << 8)
            | np.int32(colours[3 * x + 2])
        )


@compiled
def _write_where(
    line: NDArray[np.int32], code: np.int32, value: np.uint8, here: NDArray[np.uint8]
) -> None:
    """Write a value where a line has a code; without a branch, for vector instructions."""
    for x in range(len(line)):
        here[x] = value if line[x] == code else here[x]


def components(class_image: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Find the 8-connected components of each class.

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
    """Find the components and count those of each class.

    Runs of equal pixels are joined, not pixels: memory grows with the number
    of runs.

    Parameters
    ----------
    class_image
        As in :func:`components`.

    Returns
    -------
    numbers
        int32 (y, x), as there.
    last
        int32 (256,): the last number of each class, or of those before it
        where it has none; 0 for the background.
    """
    # NumPy asks for large pages of memory, kernels do not: half the time to write them first.
    numbers = np.empty(class_image.shape, np.int32)
    return numbers, _number(np.ascontiguousarray(class_image), numbers)


@compiled
def _number(class_image: NDArray[np.uint8], numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """Write the numbers of all components; return the last of each class."""
    height, width = class_image.shape
    runs = np.empty((width + 4096, 3), np.int32)
    first = np.zeros(height + 1, np.int64)
    notes = blank_notes(width)
    count_of = np.zeros(256, np.int32)
    used = 0
    for y in range(height):
        if used + width + 1 > len(runs):
            larger = np.empty((2 * len(runs) + width, 3), np.int32)
            larger[:used] = runs[:used]
            runs = larger
        before = first[y - 1] if y else 0
        here = used
        used = _append_runs(class_image[y], notes, runs, used)
        first[y], first[y + 1] = here, used
        above = class_image[max(y - 1, 0)]
        _join_lines(class_image[y], above, runs, (before, here, used), count_of)
    last = np.cumsum(count_of).astype(np.int32)
    _paint(class_image, runs, first, last, numbers)
    return last


@compiled
def _append_runs(line: NDArray[np.uint8], notes: Notes, runs: NDArray[np.int32], used: int) -> int:
    """Append the runs of a line that are no background, each its own component at first.

    Returns
    -------
    int
        How many runs there are then.
    """
    changed, _, changes = notes
    if len(line) == 0:
        return used
    for x in range(1, len(line)):
        changed[x] = line[x] != line[x - 1]
    n_changes = list_changes(notes)
    changes[n_changes] = len(line)
    start = 0
    for k in range(n_changes + 1):
        # Written in any case, and over it the next time where it is background.
        runs[used, _START], runs[used, _END], runs[used, _NUMBER] = start, changes[k], used
        used += int(line[start] != 0)
        start = changes[k]
    return used


@compiled
def _join_lines(
    line: NDArray[np.uint8],
    above: NDArray[np.uint8],
    runs: NDArray[np.int32],
    bounds: tuple[int, int, int],
    count_of: NDArray[np.int32],
) -> None:
    """Join the runs of a line with those of the line above that touch them.

    The number of a run is that of an earlier run of its component, or its own;
    ``bounds`` are the first run above, the first of the line, and its end.
    ``count_of`` is kept at the number of components of each class.
    """
    candidate, here, end = bounds
    for run in range(here, end):
        kind = line[runs[run, _START]]
        count_of[kind] += 1
        while candidate < here and runs[candidate, _END] < runs[run, _START]:
            candidate += 1
        other = candidate
        while other < here and runs[other, _START] <= runs[run, _END]:
            if above[runs[other, _START]] == kind:
                a, b = _root(runs, run), _root(runs, other)
                count_of[kind] -= a != b
                runs[max(a, b), _NUMBER] = min(a, b)
            other += 1


@compiled
def _root(runs: NDArray[np.int32], run: int) -> int:
    """Find the first run of a component; shorten the way for those who come later."""
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
    """Give the components their numbers and write them; the runs are used up."""
    given = np.zeros(256, np.int32)
    given[1:] = last[:-1]
    for y in range(len(class_image)):
        here = numbers[y]
        here[:] = 0
        for run in range(first[y], first[y + 1]):
            earlier = runs[run, _NUMBER]
            if earlier == run:
                kind = class_image[y, runs[run, _START]]
                given[kind] += 1
                number = given[kind]
            else:
                # It has its final number by now.
                number = runs[earlier, _NUMBER]
            runs[run, _NUMBER] = number
            for x in range(runs[run, _START], runs[run, _END]):
                here[x] = number


def half_widths(radius: int) -> NDArray[np.int64]:
    """Give, for each distance from the middle line of a disk, how far its line reaches to a side.

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

    In that image an object grows into the background only, and where two
    arrive the higher label wins. Then the classes are laid over each other, a
    later one over the earlier.

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
        How many pixels were taken from the classes before, counted once for
        each class that takes one.
    """
    result = np.empty_like(labels)
    highest_class = int(np.searchsorted(last, last[-1]))

    def grown(band: slice) -> int:
        covered = _write_grown(labels, class_image, last, widths, result[band], band.start)
        # Each class covers what it reaches: what exceeds the area of all together is taken.
        reached = sum(
            _count_reached(class_image, before, widths, band.start, band.stop)
            for before in range(0, highest_class, _CLASSES_AT_ONCE)
        )
        return reached - covered

    return result, sum(in_threads(grown, bands_of(result.shape)))


@compiled
def _write_grown(
    labels: NDArray[np.int32],
    class_image: NDArray[np.uint8],
    last: NDArray[np.int32],
    widths: NDArray[np.int64],
    result: NDArray[np.int32],
    top: int,
) -> int:
    """Write the grown objects in some lines, from one on; return how many pixels they cover."""
    height, width = labels.shape
    radius, band = len(widths) - 1, len(result)
    spread = np.zeros(width, np.int32)
    covered = 0
    if width == 0:
        return covered
    if radius == 1:
        for k in range(band):
            _lay_cross(labels, top + k, spread, result[k], False)
            covered += _count_covered(result[k])
        return covered
    # Line by line, so that each is in the cache from its first touch to its last.
    for at in range(-radius, band + radius):
        if at + radius < band:
            result[at + radius] = labels[top + at + radius]
        if 0 <= top + at < height:
            _dilate_line(labels[top + at], at, widths, result, spread, False)
        if at >= radius:
            here = result[at - radius]
            if radius > 1:
                y = top + at - radius
                _keep_own(here, labels[y], class_image[y], last)
            covered += _count_covered(here)
    return covered


@compiled
def _count_covered(line: NDArray[np.int32]) -> int:
    count = np.int32(0)
    for x in range(len(line)):
        count += np.int32(line[x] != 0)
    return int(count)


@compiled
def _keep_own(
    here: NDArray[np.int32],
    own: NDArray[np.int32],
    kinds: NDArray[np.uint8],
    last: NDArray[np.int32],
) -> None:
    """Take back what objects took of others of their class.

    Later classes have the higher labels, so what lies on top is the highest
    label within reach, unless that is of the pixel's own class. (Objects of a
    class do not touch: by one pixel they do not reach each other.)
    """
    for x in range(len(here)):
        if own[x] > 0 and here[x] != own[x] and here[x] <= last[kinds[x]]:
            here[x] = own[x]


@compiled
def _count_reached(
    class_image: NDArray[np.uint8], before: int, widths: NDArray[np.int64], top: int, bottom: int
) -> int:
    """Add up the areas that some classes reach, those that follow a number, in some lines."""
    radius = len(widths) - 1
    first = max(top - radius, 0)
    bits = _class_bits(class_image[first : bottom + radius], before)
    spread = np.zeros(bits.shape[1], np.uint8)
    if radius == 1:
        reached = np.empty((bottom - top, bits.shape[1]), np.uint8)
        for k in range(len(reached)):
            _lay_cross(bits, top - first + k, spread, reached[k], True)
    else:
        reached = bits[top - first : bottom - first].copy()
        for k in range(len(bits)):
            _dilate_line(bits[k], first + k - top, widths, reached, spread, True)
    # Beyond the image lie only the rests of words.
    reached[:, class_image.shape[1] :] = 0
    return _count_bits(reached)


@compiled
def _class_bits(class_image: NDArray[np.uint8], before: int) -> NDArray[np.uint8]:
    """Set the bit of its class in each pixel, for the classes that follow; lines in whole words."""
    height, width = class_image.shape
    bits = np.zeros((height, (width // _WORD + 1) * _WORD), np.uint8)
    for y in range(height):
        here, line = bits[y], class_image[y]
        for x in range(width):
            place = np.int32(line[x]) - np.int32(1 + before)
            here[x] = np.int32(1) << place if 0 <= place < _CLASSES_AT_ONCE else 0
    return bits


@compiled
def _count_bits(image: NDArray[np.uint8]) -> int:
    """Count the bits of an image whose lines are whole words: in each two, four, eight bits."""
    words = image.view(np.uint64).ravel()
    count = 0
    for k in range(len(words)):
        word = words[k]
        word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
        word = (word & np.uint64(0x3333333333333333)) + (
            (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
        )
        word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        count += int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
    return count


@compiled
def _dilate_line(
    line: NDArray[np.integer],
    at: int,
    widths: NDArray[np.int64],
    result: NDArray[np.integer],
    spread: NDArray[np.integer],
    of_sets: bool,
) -> None:
    """Lay a line, which has its place in a result or beside it, over all that a disk on it reaches.

    It is spread to the sides as far as the disk goes at some distance, and
    laid over the lines at that distance; ``spread`` is room for that.
    """
    width, height = len(line), len(result)
    spread[:] = line
    reach = 0
    for distance in range(len(widths) - 1, -1, -1):
        while reach < min(widths[distance], width - 1):
            reach += 1
            _lay_over(spread[reach:], line, of_sets)
            _lay_over(spread, line[reach:], of_sets)
        if 0 <= at - distance < height:
            _lay_over(result[at - distance], spread, of_sets)
        if distance > 0 and 0 <= at + distance < height:
            _lay_over(result[at + distance], spread, of_sets)


@compiled
def _lay_cross(
    image: NDArray[np.integer],
    y: int,
    nothing: NDArray[np.integer],
    result: NDArray[np.integer],
    of_sets: bool,
) -> None:
    """Give what a line's pixels have of themselves and their four neighbours, as `_lay_over` does.

    What :func:`_dilate_line` does with a disk of radius 1, at a quarter of its cost:
    everything is read once. ``nothing`` is a line of 0, which lies beyond the image.
    """
    own, last = image[y], image.shape[1] - 1
    above = image[y - 1] if y > 0 else nothing
    below = image[y + 1] if y + 1 < len(image) else nothing
    if of_sets:
        for x in range(1, last):
            result[x] = own[x - 1] | own[x] | own[x + 1] | above[x] | below[x]
        for x in (0, last):
            sides = own[max(x - 1, 0)] | own[x] | own[min(x + 1, last)]
            result[x] = sides | above[x] | below[x]
    else:
        for x in range(1, last):
            sides = max(max(own[x - 1], own[x + 1]), own[x])
            result[x] = max(sides, max(above[x], below[x]))
        for x in (0, last):
            sides = max(max(own[max(x - 1, 0)], own[min(x + 1, last)]), own[x])
            result[x] = max(sides, max(above[x], below[x]))


@compiled
def _lay_over(target: NDArray[np.integer], source: NDArray[np.integer], of_sets: bool) -> None:
    """Raise each entry to the other's, or unite them as sets of bits; as far as both reach."""
    n = min(len(target), len(source))
    if of_sets:
        for x in range(n):
            target[x] |= source[x]
    else:
        for x in range(n):
            target[x] = max(target[x], source[x])


def shrink(labels: NDArray[np.int32], widths: NDArray[np.int64]) -> NDArray[np.int32]:
    """Erode every object by itself; what lies beyond the image counts as object.

    A pixel goes where not all of the disk around it has its label. On the way
    to one that has not, first along the line and then up or down, the label
    changes at some step, and all of that way is in the disk: so it goes where
    there is a change along its line, or between two pixels above each other.

    Parameters
    ----------
    labels
        int32 (y, x). Not changed.
    widths
        int64 (radius + 1,): the disk to erode by, from :func:`half_widths`.
    """
    result = np.empty_like(labels)
    _write_shrunk(labels, widths, result)
    return result


@compiled
def _write_shrunk(
    labels: NDArray[np.int32], widths: NDArray[np.int64], result: NDArray[np.int32]
) -> None:
    height, width = labels.shape
    gone = np.zeros((height, width), np.uint8)
    changes, spread = np.empty(width, np.uint8), np.empty(width, np.uint8)
    for y in range(height):
        _mark_changes(labels[y, : width - 1], labels[y, 1:], changes)
        for reach in range(1, min(len(widths), width)):
            _lay_over(gone[y], changes[reach - 1 : width - 1], True)
            _lay_over(gone[y, reach:], changes[: width - 1], True)
        if y + 1 == height:
            break
        _mark_changes(labels[y], labels[y + 1], changes)
        spread[:] = changes
        reach = 0
        for distance in range(len(widths) - 1, 0, -1):
            while reach < min(widths[distance], width - 1):
                reach += 1
                _lay_over(spread[reach:], changes, True)
                _lay_over(spread, changes[reach:], True)
            if y + 1 >= distance:
                _lay_over(gone[y + 1 - distance], spread, True)
            if y + distance < height:
                _lay_over(gone[y + distance], spread, True)
    for y in range(height):
        here, own, is_gone = result[y], labels[y], gone[y]
        for x in range(width):
            here[x] = 0 if is_gone[x] else own[x]


@compiled
def _mark_changes(
    line: NDArray[np.integer], other: NDArray[np.integer], changes: NDArray[np.uint8]
) -> None:
    for x in range(len(line)):
        changes[x] = line[x] != other[x]
