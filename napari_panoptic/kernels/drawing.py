"""Pictures of objects: outlines, dashes, hatching and ellipses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled

MAX_OBJECTS = (1 << 16) - 2
"""The number of colours of a picture of objects: labels beyond it start again from 1."""
HATCH_SPACING_PX = 14
"""Distance between the lines of a hatched area along a row."""
MARK, MARK_EDGE = 1, 2
"""Values in a picture of marks: the light and the dark dashes."""


@compiled
def outline_pixels(labels: NDArray[Any], thickness: int) -> NDArray[Any]:
    """Keep the rim of every object.

    Parameters
    ----------
    labels
        Unsigned or signed whole numbers (y, x), 0 for background.
    thickness
        How many pixels wide the rim is, from 1 to 254: a pixel belongs to it
        if one of another object or of the background is at most this many
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


@compiled
def outlines(index: NDArray[np.int32], widths: NDArray[np.int64]) -> NDArray[np.uint16]:
    """Keep the rim of every object, each of its own width; a width of 0 leaves an object out."""
    height, width = index.shape
    drawn = np.zeros((height, width), np.uint16)
    for y in range(height):
        for x in range(width):
            label = index[y, x]
            if label != 0 and is_rim(index, y, x, widths[label]):
                drawn[y, x] = (label - 1) % MAX_OBJECTS + 1
    return drawn


@compiled
def is_rim(index: NDArray[np.int32] | NDArray[np.bool_], y: int, x: int, reach: int) -> bool:
    """Return whether another label, or none, lies so near to a pixel; for compiled passes.

    Parameters
    ----------
    index
        int32 or bool (y, x).
    y, x
        The pixel.
    reach
        How many steps up, down, left or right are near; beyond the image edge is nothing.
    """
    label = index[y, x]
    top, bottom = max(y - reach, 0), min(y + reach, index.shape[0] - 1)
    for v in range(top, bottom + 1):
        rest = reach - abs(v - y)
        for u in range(max(x - rest, 0), min(x + rest, index.shape[1] - 1) + 1):
            if index[v, u] != label:
                return True
    return False


@compiled
def dash(
    picture: NDArray[np.uint8],
    index: NDArray[np.int32],
    values: NDArray[np.int64],
    boxes: NDArray[np.int64],
    reach: int,
) -> None:
    """Draw dashes on the pixels around objects that are so near to one of theirs."""
    height, width = index.shape
    length = max(3 * (reach - 1), 3)
    for k in range(len(values)):
        value = values[k]
        for y in range(boxes[k, 0], boxes[k, 2]):
            for x in range(boxes[k, 1], boxes[k, 3]):
                if index[y, x] != value or not is_rim(index, y, x, 1):
                    continue
                for v in range(max(y - reach, 0), min(y + reach, height - 1) + 1):
                    rest = reach - abs(v - y)
                    for u in range(max(x - rest, 0), min(x + rest, width - 1) + 1):
                        if index[v, u] != value:
                            light = (v // length + u // length) % 2 == 0
                            picture[v, u] = MARK if light else MARK_EDGE


@compiled
def draw_cell(
    reference: NDArray[np.uint16],
    prediction: NDArray[np.int32],
    area: NDArray[np.bool_],
    has_area: bool,
    width_px: int,
    n_reference: int,
    n_prediction: int,
) -> NDArray[np.uint16]:
    """Draw outlined predictions on the reference, or filled ones beneath it, on a hatched area."""
    picture = np.empty_like(reference)
    for y in range(reference.shape[0]):
        for x in range(reference.shape[1]):
            value, label = int(reference[y, x]), int(prediction[y, x])
            if label != 0 and (value == 0 if width_px == 0 else is_rim(prediction, y, x, width_px)):
                value = n_reference + label
            elif (
                value == 0
                and has_area
                and area[y, x]
                and ((y + x) % HATCH_SPACING_PX == 0 or is_rim(area, y, x, 2))
            ):
                value = n_reference + n_prediction + 1
            # Starts over where there are more values than colours; the desk warns of that.
            picture[y, x] = 0 if value == 0 else (value - 1) % MAX_OBJECTS + 1
    return picture


@compiled
def lay_down(
    whole: NDArray[np.int32],
    lines: NDArray[np.bool_],
    index: NDArray[np.int32],
    labels: NDArray[np.int64],
    boxes: NDArray[np.int64],
    numbers: NDArray[np.int64],
    spacing: NDArray[np.int64],
) -> None:
    """Mark the pixels of objects with the number of their place; the highest is on top."""
    for k in range(len(labels)):
        for y in range(boxes[k, 0], boxes[k, 2]):
            for x in range(boxes[k, 1], boxes[k, 3]):
                if index[y, x] == labels[k]:
                    whole[y, x] = max(whole[y, x], numbers[k])
                    if (y + x) % spacing[k] == 0:
                        lines[y, x] = True


@compiled
def rims_and_lines(
    whole: NDArray[np.int32], lines: NDArray[np.bool_], boxes: NDArray[np.int64]
) -> NDArray[np.uint16]:
    """Keep of each place its rim and the lines across it."""
    drawn = np.zeros(whole.shape, np.uint16)
    for k in range(len(boxes)):
        for y in range(boxes[k, 0], boxes[k, 2]):
            for x in range(boxes[k, 1], boxes[k, 3]):
                if whole[y, x] == k + 1 and (lines[y, x] or is_rim(whole, y, x, 2)):
                    drawn[y, x] = k + 1
    return drawn


@compiled
def paint_ellipses(
    boxes: NDArray[np.int32],
    codes: NDArray[np.uint8],
    factor: float,
    top: int,
    left: int,
    width_px: int,
    picture: NDArray[np.uint8],
) -> None:
    """Paint the ellipse in each box, at least one pixel of it; later ones lie on top.

    With a width above 0, paint only a rim of that width, in px of the picture.

    Boxes are in px at full resolution; the picture is a window, from ``top`` and
    ``left``, of an image that is smaller by a factor.
    """
    height, width = picture.shape
    for k in range(len(boxes)):
        if codes[k] == 0:
            continue
        y0, x0 = boxes[k, 0] / factor - top, boxes[k, 1] / factor - left
        y1, x1 = boxes[k, 2] / factor - top, boxes[k, 3] / factor - left
        if y1 <= 0 or x1 <= 0 or y0 >= height or x0 >= width:
            continue
        cy, cx = (y0 + y1) / 2, (x0 + x1) / 2
        ry, rx = (y1 - y0) / 2, (x1 - x0) / 2
        middle_y, middle_x = math.floor(cy), math.floor(cx)
        if width_px == 0 and 0 <= middle_y < height and 0 <= middle_x < width:
            picture[middle_y, middle_x] = codes[k]
        limit = ry * ry * rx * rx
        inner_y, inner_x = ry - width_px, rx - width_px
        is_rim = width_px > 0 and inner_y > 0 and inner_x > 0
        for y in range(max(int(y0), 0), min(int(y1) + 1, height)):
            dy = (y + 0.5 - cy) * rx
            for x in range(max(int(x0), 0), min(int(x1) + 1, width)):
                dx = (x + 0.5 - cx) * ry
                if dy * dy + dx * dx > limit:
                    continue
                if is_rim:
                    own_y, own_x = (y + 0.5 - cy) / inner_y, (x + 0.5 - cx) / inner_x
                    if own_y * own_y + own_x * own_x < 1:
                        continue
                picture[y, x] = codes[k]
