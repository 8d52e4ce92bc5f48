"""The pixels that an outline is drawn on, found in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic._compiled import compiled


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
    steps = np.empty((height, width), np.uint8)
    far = thickness + 1
    for y in range(height):
        above = labels[max(y - 1, 0)]
        here = labels[y]
        below = labels[min(y + 1, height - 1)]
        for x in range(width):
            label = here[x]
            if label == 0:
                steps[y, x] = 0
            elif (
                above[x] != label
                or below[x] != label
                or here[max(x - 1, 0)] != label
                or here[min(x + 1, width - 1)] != label
            ):
                steps[y, x] = 1
            else:
                # All four neighbours are of the same object.
                nearest = far
                if y > 0:
                    nearest = min(nearest, steps[y - 1, x] + 1)
                if x > 0:
                    nearest = min(nearest, steps[y, x - 1] + 1)
                steps[y, x] = nearest
    result = np.zeros_like(labels)
    for y in range(height - 1, -1, -1):
        for x in range(width - 1, -1, -1):
            if steps[y, x] == 0:
                continue
            if steps[y, x] > 1:
                if y + 1 < height:
                    steps[y, x] = min(steps[y, x], steps[y + 1, x] + 1)
                if x + 1 < width:
                    steps[y, x] = min(steps[y, x], steps[y, x + 1] + 1)
            if steps[y, x] <= thickness:
                result[y, x] = labels[y, x]
    return result
