"""Compiled lookups of ids in windows of label images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled
from napari_panoptic.kernels.sorting import first_not_below


@compiled
def look_up(
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
def search(
    window: NDArray[np.unsignedinteger[Any]],
    ids: NDArray[np.int64],
    id_numbers: NDArray[np.int32],
    numbers: NDArray[np.int32],
) -> bool:
    """Write the number of each pixel's id like `look_up`, for ids too far apart for a table.

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
