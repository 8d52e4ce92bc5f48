"""Features of the shape of whole objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.features.feature import Feature
from napari_panoptic.features.region_side import RegionSide
from napari_panoptic.values.labels import LabelImage

FloatArray = NDArray[np.float64]
_HULLS_AT_ONCE = 20


def area(side: RegionSide) -> FloatArray:
    """Return the number of pixels of each object."""
    return side.moments[:, 0]


def solidity(side: RegionSide) -> FloatArray:
    """Return area divided by that of the convex hull of the object's pixels as squares."""
    solid: FloatArray = area(side) / _hull_areas(side.labels)
    return solid


def eccentricity(side: RegionSide) -> FloatArray:
    """Return that of the ellipse with the same second central moments, as in scikit-image.

    It is 0 for a circle, and goes towards 1 for a line.
    """
    mean, apart = _axes(side)
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = np.where(mean + apart > 0, 2 * apart / (mean + apart), 0.0)
    eccentric: FloatArray = np.sqrt(np.clip(squared, 0, 1))
    return eccentric


def minor_axis(side: RegionSide) -> FloatArray:
    """Return the length in px of the minor axis of the same ellipse, as in scikit-image."""
    mean, apart = _axes(side)
    length: FloatArray = 4 * np.sqrt(np.clip(mean - apart, 0, None) / area(side))
    return length


def _axes(side: RegionSide) -> tuple[FloatArray, FloatArray]:
    """Return mean and half difference of the central sums of squares along both axes."""
    yy, xx, yx = side.moments[:, 3:].T
    return (yy + xx) / 2, np.hypot((yy - xx) / 2, yx)


def _hull_areas(labels: LabelImage) -> NDArray[np.float64]:
    """Return float64 (n,): areas of the convex hulls of the corners of all pixels."""
    import shapely

    if not len(labels):
        return np.zeros(0)
    objects, corners = [], []
    for sheet in labels.sheets:
        # In each row, corners of the hull are at the first and the last pixel of a run at most.
        changes = np.diff(np.pad(sheet, ((0, 0), (1, 1)))) != 0
        for is_end, dx in ((changes[:, :-1], 0), (changes[:, 1:], 1)):
            y, x = np.nonzero(is_end & (sheet > 0))
            for dy in (0, 1):
                objects.append(sheet[y, x] - 1)
                corners.append(np.column_stack([y + dy, x + dx]))
    owner = np.concatenate(objects)
    order = np.argsort(owner, kind="stable")
    owner, points = owner[order], np.concatenate(corners)[order].astype(np.float64)
    areas = np.full(len(labels), np.nan)
    # A few at a time: shapely holds the GIL while it makes lines, which would block a window.
    for first in range(0, len(labels), _HULLS_AT_ONCE):
        begin, end = np.searchsorted(owner, (first, first + _HULLS_AT_ONCE))
        lines = shapely.linestrings(points[begin:end], indices=owner[begin:end] - first)
        found_areas = shapely.area(shapely.convex_hull(lines))
        areas[first : first + len(found_areas)] = found_areas
    return areas


FEATURES = (
    Feature(
        key="area_px",
        header="area",
        source="number of pixels",
        measure=area,
        under="under {high} {unit}{square}",
        from_="of {low} {unit}{square} or more",
        between="of {low} to under {high} {unit}{square}",
        px_power=2,
        plain=("small", "large"),
    ),
    Feature(
        key="solidity",
        header="solidity",
        source="area divided by that of its pixels' convex hull",
        measure=solidity,
        plain=("irregular", "compact"),
    ),
    Feature(
        key="eccentricity",
        header="eccentricity",
        source="of the ellipse of equal second moments: 0 circle, 1 line",
        measure=eccentricity,
        plain=("round", "elongated"),
    ),
    Feature(
        key="minor_axis_px",
        header="minor axis",
        source="of the same ellipse, its length as in `skimage.measure.regionprops`",
        measure=minor_axis,
        under="with a minor axis under {high} {unit}",
        from_="with a minor axis of {low} {unit} or more",
        between="with a minor axis of {low} to under {high} {unit}",
        px_power=1,
        plain=("narrow", "wide"),
        is_usual=False,
    ),
)
