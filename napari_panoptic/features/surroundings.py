"""Features of the place of objects among the others of their side, and in the frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.features.feature import Feature, Need
from napari_panoptic.features.region_side import RegionSide
from napari_panoptic.values.labels import LabelImage

FloatArray = NDArray[np.float64]

NEAR_UM, NEAR_PX = 25.0, 100.0
"""Radius within which neighbours are counted: in micrometres, or in px if their size is unknown."""
DENSITY_AREA = 10_000.0
"""Densities are numbers of objects per this many px² (or µm²)."""
TOUCHING, APART = "yes", "no"
_CHORDS = 64


def local_density(side: RegionSide) -> FloatArray:
    """Return the number of centroids of other objects nearby, per 10,000 px².

    Nearby is within 25 µm (100 px if the size of a pixel is unknown), the area that of the part of
    this disc inside the frame.
    """
    if not len(side):
        return np.zeros(0)
    centroids, radius = side.centroid_yx_px, side.in_px(NEAR_UM, NEAR_PX)
    tree = _tree(centroids)
    others = tree.query_ball_point(centroids, radius, return_length=True) - 1
    density: FloatArray = DENSITY_AREA * others / _disc_areas(centroids, radius, side.labels.shape)
    return density


def frame_distance(side: RegionSide) -> FloatArray:
    """Return the pixels between each object's box and the nearest edge of the image."""
    boxes, (height, width) = side.outcomes.bbox, side.labels.shape
    edges = np.column_stack([boxes[:, :2], [height, width] - boxes[:, 2:]])
    nearest: FloatArray = edges.min(axis=1, initial=max(height, width)).astype(np.float64)
    return nearest


def neighbour_distance(side: RegionSide) -> FloatArray:
    """Return the distance from each centroid to the nearest; NaN for a single object."""
    if len(side) < 2:
        return np.full(len(side), np.nan)
    nearest: FloatArray = _tree(side.centroid_yx_px).query(side.centroid_yx_px, k=2)[0][:, 1]
    return nearest


def touching(side: RegionSide) -> NDArray[np.object_]:
    """Return whether each object touches another: by eight neighbours, or both share a pixel."""
    return np.where(_touching(side.labels), TOUCHING, APART).astype(object)


def _tree(centroids: FloatArray) -> Any:
    from scipy.spatial import cKDTree

    return cKDTree(centroids)


def _disc_areas(
    centres: NDArray[np.float64], radius: float, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Return float64 (n,): the area of a disc around each centre that lies inside the frame.

    The integral of the chords along x, by the midpoint rule over the part of the disc inside.
    """
    # Pixel centres are whole numbers: the frame begins half a pixel before the first.
    y, x = centres.T[:, :, None] + 0.5
    height, width = shape
    low, high = np.maximum(y - radius, 0), np.minimum(y + radius, height)
    step = (high - low) / _CHORDS
    offset = low + step * (np.arange(_CHORDS) + 0.5) - y
    half = np.sqrt(radius**2 - offset**2)
    chords = np.minimum(x + half, width) - np.maximum(x - half, 0)
    areas: NDArray[np.float64] = (chords * step).sum(axis=1)
    return areas


def _touching(labels: LabelImage) -> NDArray[np.bool_]:
    """Return bool (n,): whether each object touches another, or shares pixels with one."""
    found = np.zeros(len(labels) + 1, np.bool_)
    height, width = labels.shape
    for a in labels.sheets:
        for b in labels.sheets:
            for dy, dx in ((0, 0), (0, 1), (1, -1), (1, 0), (1, 1)):
                if a is b and dy == dx == 0:
                    continue
                one = a[: height - dy, max(0, -dx) : width - max(0, dx)]
                other = b[dy:, max(0, dx) : width + min(0, dx)]
                meet = (one != other) & (one > 0) & (other > 0)
                found[one[meet]] = True
                found[other[meet]] = True
    return found[1:]


def _apart(of: str) -> dict[str, Any]:
    """Return the words for a distance from something."""
    return {
        "under": f"less than {{high}} {{unit}} from {of}",
        "from_": f"{{low}} {{unit}} or more from {of}",
        "between": f"{{low}} to under {{high}} {{unit}} from {of}",
        "px_power": 1,
        "needs": Need.NEIGHBOURS,
    }


FEATURES = (
    Feature(
        key="local_density_px",
        header="local density",
        source="other centroids within 25 µm (100 px without a pixel size), per 10,000 px² of that "
        "disc inside the image",
        measure=local_density,
        needs=Need.NEIGHBOURS,
        under="with fewer than {high} neighbours per 10,000 {unit}²",
        from_="with {low} or more neighbours per 10,000 {unit}²",
        between="with {low} to under {high} neighbours per 10,000 {unit}²",
        px_power=-2,
        plain=("in a sparse area", "in a crowded area"),
    ),
    Feature(
        key="frame_distance_px",
        header="distance from the frame",
        source="from its bounding box to the image's edge",
        measure=frame_distance,
        **_apart("the frame"),
    ),
    Feature(
        key="neighbour_distance_px",
        header="distance from the nearest neighbour",
        source="to the nearest centroid of its side",
        measure=neighbour_distance,
        **_apart("the nearest neighbour"),
    ),
    Feature(
        key="touching",
        header="touching a neighbour",
        source="`yes` if another object of its side is among its eight neighbours or shares "
        "pixels; never with `border-removed` masks",
        measure=touching,
        needs=Need.NEIGHBOURS,
        values={TOUCHING: "touching a neighbour", APART: "not touching a neighbour"},
    ),
)
