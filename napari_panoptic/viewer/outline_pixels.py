"""The pixels that an outline is drawn on, found in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled


@compiled
def outline_pixels(labels: NDArray[Any], thickness: int) -> NDArray[Any]:
    """Keep the rim of every object.

    Parameters
    ----------
    labels
        Unsigned or signed whole numbers (y, x), 0 for background.
    thickness
        How many pixels wide the rim is, from 1 to 254: a pixel belongs to it
        where one of another object or of the background is at most so many
        steps up, down, left or right away. What lies beyond the image is no
        other object.

    Returns
    -------
    The same type (y, x): the label on rims, 0 elsewhere.
    """
    height, width = labels.shape
    rim = np.zeros((height, width), np.uint8)
    for y in range(height):
        _mark_edges(labels[max(y - 1, 0)], labels[y], labels[min(y + 1, height - 1)], rim[y])
    # Where all four neighbours are of the same object, the rim grows to it from any of them.
    for _ in range(thickness - 1):
        narrower = rim.copy()
        for y in range(height):
            _widen(
                narrower[max(y - 1, 0)],
                narrower[y],
                narrower[min(y + 1, height - 1)],
                labels[y],
                rim[y],
            )
    result = np.empty_like(labels)
    for y in range(height):
        here, marked, kept = labels[y], rim[y], result[y]
        for x in range(width):
            kept[x] = here[x] if marked[x] else 0
    return result


@compiled
def _mark_edges(
    above: NDArray[Any], here: NDArray[Any], below: NDArray[Any], rim: NDArray[np.uint8]
) -> None:
    """Mark object pixels of a row with a neighbour that is not of the same object."""
    # Without a branch, so that many pixels are looked at at a time.
    for x in range(len(here)):
        rim[x] = (above[x] != here[x]) | (below[x] != here[x])
    right, rim_right = here[1:], rim[1:]
    for x in range(len(right)):
        rim[x] |= here[x] != right[x]
    for x in range(len(right)):
        rim_right[x] |= here[x] != right[x]
    for x in range(len(here)):
        rim[x] &= here[x] != 0


@compiled
def _widen(
    above: NDArray[np.uint8],
    here: NDArray[np.uint8],
    below: NDArray[np.uint8],
    labels: NDArray[Any],
    rim: NDArray[np.uint8],
) -> None:
    """Mark object pixels of a row beside those that are marked."""
    for x in range(len(here)):
        rim[x] = above[x] | here[x] | below[x]
    right, rim_right = here[1:], rim[1:]
    for x in range(len(right)):
        rim[x] |= right[x]
    for x in range(len(right)):
        rim_right[x] |= here[x]
    for x in range(len(here)):
        rim[x] &= labels[x] != 0
