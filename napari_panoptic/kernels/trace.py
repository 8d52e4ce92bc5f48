"""Compiled walks along the borders of objects, and along the lines of contours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled
from napari_panoptic.kernels.sorting import sort


@compiled
def walk_borders(
    padded: NDArray[np.int32], joining: bool, by_pixel: bool
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
    """Walk once along every border between an object and what is not this object.

    The object is on the walker's right. Each border has an edge with the
    object below it, so that looking at the upper edges of pixels finds all.

    Parameters
    ----------
    padded
        int32 (y + 2, x + 2), 0 for background: the image in a frame of 0.
    joining
        Whether to cross over where two pixels of the object touch by a corner only.
    by_pixel
        Return the pixels walked along instead of the corners turned.

    Returns
    -------
    vertices
        int32 (m, 2): x, y.
    start
        int64 (r + 1,): where each ring starts.
    label
        int32 (r,): whose border it is.
    touching
        bool (r,): whether the walk passed two pixels that touch by a corner.
    """
    height, width = padded.shape[0] - 2, padded.shape[1] - 2
    step_x = np.array([1, 0, -1, 0])  # east, south, west, north
    step_y = np.array([0, 1, 0, -1])
    seen = np.zeros((height, width), np.bool_)
    vertices = np.empty((4096, 2), np.int32)
    rings = np.empty((1024, 3), np.int64)  # label, touching, end
    n_rings = 0
    used = 0
    for top in range(height):
        for left in range(width):
            label = padded[top + 1, left + 1]
            if label == 0 or seen[top, left] or padded[top, left + 1] == label:
                continue
            y, x, way = top, left, 0
            touching = 0
            first = used
            while True:
                if way == 0:
                    if seen[y, x]:
                        break
                    seen[y, x] = True
                if used + 2 > len(vertices):
                    vertices = np.concatenate((vertices, np.empty_like(vertices)))
                if by_pixel and (
                    used == first or vertices[used - 1, 0] != x or (vertices[used - 1, 1] != y)
                ):
                    vertices[used, 0] = x
                    vertices[used, 1] = y
                    used += 1
                # The two pixels ahead, to the right and to the left of the line walked on.
                right_y, right_x = y + step_y[way], x + step_x[way]
                left_y, left_x = right_y + step_y[way - 1], right_x + step_x[way - 1]
                on_right = padded[right_y + 1, right_x + 1] == label
                on_left = padded[left_y + 1, left_x + 1] == label
                if on_left and not on_right:
                    touching = 1
                if on_right and not on_left:
                    y, x = right_y, right_x
                    continue
                if not by_pixel:
                    # The corner ahead of the pixel on its left.
                    vertices[used, 0] = x + (way == 0 or way == 1)
                    vertices[used, 1] = y + (way == 1 or way == 2)
                    used += 1
                if on_left and (on_right or joining):
                    y, x, way = left_y, left_x, (way + 3) % 4
                else:
                    way = (way + 1) % 4
            if (
                by_pixel
                and used > first + 1
                and (
                    vertices[used - 1, 0] == vertices[first, 0]
                    and vertices[used - 1, 1] == vertices[first, 1]
                )
            ):
                used -= 1
            if n_rings == len(rings):
                rings = np.concatenate((rings, np.empty_like(rings)))
            rings[n_rings, 0] = label
            rings[n_rings, 1] = touching
            rings[n_rings, 2] = used
            n_rings += 1
    start = np.zeros(n_rings + 1, np.int64)
    start[1:] = rings[:n_rings, 2]
    return (
        vertices[:used].copy(),
        start,
        rings[:n_rings, 0].astype(np.int32),
        rings[:n_rings, 1] == 1,
    )


@compiled
def cut_loops(
    vertices: NDArray[np.int32], start: NDArray[np.int64], earlier: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Cut a loop off a ring wherever it comes back to a corner.

    Parameters
    ----------
    vertices, start
        The rings.
    earlier
        int64 (m,): for each vertex the number of an equal one before it in the
        same ring, or -1.

    Returns
    -------
    vertices, start
        The rings that are left.
    source
        int64 (r,): which ring each is from.
    """
    most = len(start) - 1 + np.count_nonzero(earlier >= 0)
    result = np.empty_like(vertices)
    new_start = np.zeros(most + 1, np.int64)
    source = np.empty(most, np.int64)
    count = 0
    used = 0
    # The walk so far without the loops cut off from it, and each vertex's place in it.
    walk = np.empty(len(vertices), np.int64)
    place = np.full(len(vertices), -1, np.int64)
    for ring in range(len(start) - 1):
        length = 0
        for i in range(start[ring], start[ring + 1] + 1):
            ends = i == start[ring + 1]
            corner = 0
            if not ends:
                corner = place[earlier[i]] if earlier[i] >= 0 else -1
                if corner < 0:
                    walk[length] = i
                    place[i] = length
                    length += 1
                    continue
            for k in range(corner, length):
                result[used] = vertices[walk[k]]
                used += 1
                if k > corner:
                    place[walk[k]] = -1
            source[count] = ring
            count += 1
            new_start[count] = used
            length = corner + 1
    return result, new_start[: count + 1], source[:count]


@compiled
def without_straight(
    vertices: NDArray[np.int32], start: NDArray[np.int64], height: int, width: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Leave out pixels in the middle of straight stretches that are walked once.

    A pixel that is walked twice stays a vertex: the two lines over it cancel
    out in the fill, and only vertices are always covered.
    """
    visits = np.zeros((height, width), np.uint8)
    for i in range(len(vertices)):
        x, y = vertices[i]
        visits[y, x] = min(2, visits[y, x] + 1)
    result = np.empty_like(vertices)
    new_start = np.zeros_like(start)
    used = 0
    for ring in range(len(start) - 1):
        first, last = start[ring], start[ring + 1] - 1
        for i in range(first, last + 1):
            before = vertices[i - 1 if i > first else last]
            after = vertices[i + 1 if i < last else first]
            x, y = vertices[i]
            straight = x - before[0] == after[0] - x and y - before[1] == after[1] - y
            if last == first or not straight or visits[y, x] > 1:
                result[used] = vertices[i]
                used += 1
        new_start[ring + 1] = used
    return result[:used].copy(), new_start


@compiled
def name_line_pixels(
    xy: NDArray[np.int32], ring_starts: NDArray[np.int64], steps: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Make all pixels on the outline vertices, for outlines that run twice through a pixel.

    Parameters
    ----------
    xy
        int32 (v, 2): vertices, x and y in px, of at most 2^29.
    ring_starts
        int64 (r + 1,): where each ring starts among them.
    steps
        int64 (v,): the number of pixels exactly on the edge that begins at each
        vertex, its end not counted, at least 1.

    Returns
    -------
    xy, ring_starts
        The same with more vertices.
    """
    starts = np.zeros(len(ring_starts), np.int64)
    result = np.empty((steps.sum(), 2), np.int32)
    used = 0
    for ring in range(len(ring_starts) - 1):
        first, last = ring_starts[ring], ring_starts[ring + 1]
        count = steps[first:last].sum()
        line, keys = result[used : used + count], np.empty(count, np.int64)
        at = 0
        for i in range(first, last):
            j = i + 1 if i + 1 < last else first
            dx, dy = (xy[j, 0] - xy[i, 0]) // steps[i], (xy[j, 1] - xy[i, 1]) // steps[i]
            for step in range(steps[i]):
                line[at, 0], line[at, 1] = xy[i, 0] + dx * step, xy[i, 1] + dy * step
                keys[at] = (np.int64(line[at, 1]) << 32) + line[at, 0]
                at += 1
        sort(keys)
        if count == last - first or not (keys[1:] == keys[:-1]).any():
            count = last - first
            result[used : used + count] = xy[first:last]
        used += count
        starts[ring + 1] = used
    return result[:used].copy(), starts
