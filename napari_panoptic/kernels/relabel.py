"""Find the labels of images and of windows of them, and write other labels over them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.changes import blank_notes, list_changes
from napari_panoptic.kernels.jit import bands_of, compiled, in_threads, read_only
from napari_panoptic.kernels.sorting import first_not_below

# Size of the first list of labels; it grows.
_FIRST_LABELS = 1 << 16


def look_up(
    lookup: NDArray[np.int32], values: NDArray[np.int32], result: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Write the entry of every value in a lookup table; return the result.

    Parameters
    ----------
    lookup
        int32 (highest value + 1,).
    values
        int32 image (y, x).
    result
        int32 image (y, x), may be ``values``.
    """
    source = read_only(values)
    in_threads(
        lambda band: _look_up_lines(lookup, source[band], result[band]), bands_of(values.shape)
    )
    return result


def present_labels(values: NDArray[np.int32], highest: int) -> NDArray[np.bool_]:
    """Return a mask of the labels 0..highest that occur; the background, 0, never does.

    Assumes that there are no other values.
    """
    image = read_only(np.ascontiguousarray(values))
    present = np.zeros(highest + 1, np.bool_)
    bands = bands_of(image.shape)
    for _, found in in_threads(lambda band: list_labels(image[band], highest), bands):
        present[: len(found)] |= found
    return present


@compiled
def list_labels(values: NDArray[np.int32], limit: int) -> tuple[int, NDArray[np.bool_]]:
    """Find the labels of an image in one pass.

    Returns
    -------
    lowest
        0, or a negative label that occurs.
    present
        bool (highest + 1,): the labels that occur, without 0; empty if a label is below 0 or
        above the limit.
    """
    height, width = values.shape
    present = np.zeros(min(limit, _FIRST_LABELS) + 1, np.bool_)
    highest = 0
    notes = blank_notes(width)
    changed, _, changes = notes
    for y in range(height if width else 0):
        line = values[y]
        # By index and in one loop, so that it compiles to vector instructions.
        low, high = min(line[0], np.int32(0)), max(line[0], np.int32(0))
        for x in range(1, width):
            low = min(low, line[x])
            high = max(high, line[x])
            changed[x] = line[x] != line[x - 1]
        if low < 0 or high > limit:
            return int(low), present[:0]
        highest = max(highest, high)
        if highest >= len(present):
            longer = np.zeros(min(limit, 2 * highest) + 1, np.bool_)
            longer[: len(present)] = present
            present = longer
        present[line[0]] = True
        for k in range(list_changes(notes)):
            present[line[changes[k]]] = True
    present[0] = False
    return 0, present[: highest + 1]


@compiled
def _look_up_lines(
    lookup: NDArray[np.int32], values: NDArray[np.int32], result: NDArray[np.int32]
) -> None:
    height, width = values.shape
    for y in range(height):
        for x in range(width):
            result[y, x] = lookup[values[y, x]]


@compiled
def lay_over(flat: NDArray[np.int32], index: NDArray[np.int32], offset: int) -> int:
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
    taken = 0
    height, width = flat.shape
    for y in range(height):
        for x in range(width):
            if index[y, x] > 0:
                taken += flat[y, x] > 0
                flat[y, x] = index[y, x] + offset
    return taken


@compiled
def look_up_ids(
    window: NDArray[np.unsignedinteger[Any]],
    places: NDArray[np.int32],
    numbers: NDArray[np.int32],
) -> bool:
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
    last = np.uint64(len(places) - 1)
    lowest = np.int32(0)
    height, width = window.shape
    for y in range(height):
        line, target = window[y], numbers[y]
        for x in range(width):
            number = places[min(np.uint64(line[x]), last)]
            target[x] = number
            lowest = min(lowest, number)
    return bool(lowest < 0)


@compiled
def search_ids(
    window: NDArray[np.unsignedinteger[Any]],
    ids: NDArray[np.int64],
    id_numbers: NDArray[np.int32],
    numbers: NDArray[np.int32],
) -> bool:
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
    lowest = np.int32(0)
    height, width = window.shape
    for y in range(height):
        line, target = window[y], numbers[y]
        number = np.int32(0)
        for x in range(width):
            id_ = np.int64(line[x])
            if x == 0 or id_ != np.int64(line[x - 1]):
                place = first_not_below(ids, id_)
                is_known = place < len(ids) and ids[place] == id_
                number = id_numbers[place] if is_known else np.int32(-1)
                lowest = min(lowest, number)
            target[x] = number
    return bool(lowest < 0)


@compiled
def run_values(window: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int64]:
    """Return the value of each run of equal values, line by line."""
    height, width = window.shape
    values = np.empty(1024, np.int64)
    n = 0
    for y in range(height):
        line = window[y]
        if n + width > len(values):
            larger = np.empty(2 * len(values) + width, np.int64)
            larger[:n] = values[:n]
            values = larger
        for x in range(width):
            if x == 0 or line[x] != line[x - 1]:
                values[n] = line[x]
                n += 1
    return values[:n].copy()
