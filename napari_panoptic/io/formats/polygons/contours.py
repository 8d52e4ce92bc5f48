"""Contours as OpenCV traces them: closed lines through the centres of an object's border pixels."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import gcd

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.formats.polygons.model import Polygons
from napari_panoptic.io.formats.polygons.trace import joined
from napari_panoptic.kernels.jit import compiled


def as_contours(polygons: Polygons) -> Polygons:
    """Return objects the pixels whose centres lie inside their contours or on them.

    The parity rule by which `napari_panoptic.kernels.fill` fills has no pixel
    where a contour runs forth and back along one line, as it does where an
    object is one pixel wide; but vertices always have theirs. So all pixels
    that lie exactly on the edges of such a contour are made vertices of it.
    Several rings of an object, parts or holes, are then joined to one.

    Parameters
    ----------
    polygons
        With int32 vertices. Not changed.
    """
    vertices, starts = _with_pixels_of_lines(
        polygons.vertices_xy.astype(np.int32, copy=False), polygons.ring_starts
    )
    if len(starts) - 1 == len(polygons):
        return replace(polygons, vertices_xy=vertices, ring_starts=starts)
    lines = [
        joined([vertices[starts[ring] : starts[ring + 1]] for ring in range(first, last)])
        for first, last in pairwise(polygons.object_starts.tolist())
    ]
    return replace(
        polygons,
        vertices_xy=np.concatenate([np.zeros((0, 2), np.int32), *lines]),
        ring_starts=np.cumsum([0, *map(len, lines)], dtype=np.int64),
        is_hole=np.zeros(len(lines), np.bool_),
        object_starts=np.arange(len(lines) + 1, dtype=np.int64),
    )


@compiled
def _with_pixels_of_lines(
    xy: NDArray[np.int32], ring_starts: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Name the pixels on the outline of contours that run twice through a pixel.

    Parameters
    ----------
    xy
        int32 (v, 2): vertices, x and y in px, of at most 2^29.
    ring_starts
        int64 (r + 1,): where each ring starts among them.

    Returns
    -------
    xy, ring_starts
        The same with more vertices.
    """
    n_rings = len(ring_starts) - 1
    starts = np.zeros(n_rings + 1, np.int64)
    longest, total = 0, 0
    for ring in range(n_rings):
        n = _pixels_on(xy[ring_starts[ring] : ring_starts[ring + 1]])
        longest, total = max(longest, n), total + n
    result = np.empty((total, 2), np.int32)
    line, keys = np.empty((longest, 2), np.int32), np.empty(longest, np.int64)
    used = 0
    for ring in range(n_rings):
        vertices = xy[ring_starts[ring] : ring_starts[ring + 1]]
        n = _write_pixels_on(vertices, line)
        for k in range(n):
            keys[k] = (np.int64(line[k, 1]) << 32) + line[k, 0]
        if n > len(vertices) and _repeats(keys[:n]):
            vertices = line[:n]
        result[used : used + len(vertices)] = vertices
        used += len(vertices)
        starts[ring + 1] = used
    return result[:used].copy(), starts


@compiled
def _pixels_on(xy: NDArray[np.int32]) -> int:
    """Count the pixels exactly on the edges of a ring."""
    count = 0
    for i in range(len(xy)):
        j = i + 1 if i + 1 < len(xy) else 0
        count += max(1, gcd(abs(xy[j, 0] - xy[i, 0]), abs(xy[j, 1] - xy[i, 1])))
    return count


@compiled
def _write_pixels_on(xy: NDArray[np.int32], line: NDArray[np.int32]) -> int:
    """Write these pixels in the order in which they are met; give their number."""
    count = 0
    for i in range(len(xy)):
        j = i + 1 if i + 1 < len(xy) else 0
        dx, dy = xy[j, 0] - xy[i, 0], xy[j, 1] - xy[i, 1]
        steps = max(1, gcd(abs(dx), abs(dy)))
        for step in range(steps):
            line[count, 0] = xy[i, 0] + dx // steps * step
            line[count, 1] = xy[i, 1] + dy // steps * step
            count += 1
    return count


@compiled
def _repeats(keys: NDArray[np.int64]) -> bool:
    """Return whether two keys are equal; sorts them."""
    keys.sort()
    return bool((keys[1:] == keys[:-1]).any())
