"""Rectangles and ellipses as outlines, and which outline contains a point."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.formats.polygons.model import LARGEST_COORDINATE

Point = tuple[float, float]
Ring = NDArray[np.float64]
_ELLIPSE_VERTICES = 128


def rectangle(centre: Point, radii: Point, turned: float = 0.0) -> Ring:
    """Return the corners (4, 2) of a rectangle: x and y in px.

    Parameters
    ----------
    centre, radii
        Its centre, and half of its width and height.
    turned
        Angle in radians from x to y, which is clockwise on the screen.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], np.float64)
    return _placed(corners, centre, radii, turned)


def ellipse(centre: Point, radii: Point, turned: float = 0.0) -> Ring:
    """Return a polygon (n, 2) of the area of an ellipse; parameters as in `rectangle`."""
    angles = 2 * np.pi * np.arange(_ELLIPSE_VERTICES) / _ELLIPSE_VERTICES
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    share = math.sin(2 * math.pi / _ELLIPSE_VERTICES) * _ELLIPSE_VERTICES / (2 * math.pi)
    return _placed(circle / math.sqrt(share), centre, radii, turned)


def _placed(points: Ring, centre: Point, radii: Point, turned: float) -> Ring:
    if not all(abs(value) <= LARGEST_COORDINATE for value in (*centre, *radii, turned)):
        raise ValueError("a centre, size or angle is out of range")
    cosine, sine = math.cos(turned), math.sin(turned)
    x, y = (points * np.array(radii)).T
    placed: Ring = np.stack([x * cosine - y * sine, x * sine + y * cosine], axis=1)
    placed += np.array(centre)
    return placed


def contains(ring: NDArray[np.number], point: Point) -> bool:
    """Return whether a point lies in a ring (n, 2), by the even-odd rule."""
    if not len(ring):
        return False
    (x, y), after = point, np.roll(ring, -1, axis=0)
    x0, y0, x1, y1 = *ring.T, *after.T
    crosses = (y0 > y) != (y1 > y)
    at = x0[crosses] + (y - y0[crosses]) / (y1 - y0)[crosses] * (x1 - x0)[crosses]
    return bool(np.count_nonzero(at > x) % 2)
