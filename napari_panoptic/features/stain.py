"""Features of the stain of objects: optical densities of haematoxylin and eosin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from math import ceil

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.features.feature import Feature, Need
from napari_panoptic.features.region_side import RegionSide

FloatArray = NDArray[np.float64]

OD_PER_STAIN = 6.0
"""Decadic optical density of 1 in scikit-image's stain channels, which take logarithms to 1e-6."""
RING_UM, RING_PX = 1.25, 5.0
"""Width of the ring around an object: in micrometres, or in px if their size is unknown."""
_STRIP_PX = 2**22


def _with_image(
    measure: Callable[[RegionSide], FloatArray],
) -> Callable[[RegionSide], FloatArray]:
    """Return a function that returns NaN without an image of the size of the region."""

    @wraps(measure)
    def measured(side: RegionSide) -> FloatArray:
        if side.image is None or side.image.shape != side.labels.shape:
            return np.full(len(side), np.nan)
        return measure(side)

    return measured


@_with_image
def haematoxylin(side: RegionSide) -> FloatArray:
    """Return the mean optical density (decadic) of haematoxylin over each object."""
    return side.once(_means_inside)[:, 0]


@_with_image
def eosin(side: RegionSide) -> FloatArray:
    """Return the mean optical density (decadic) of eosin over each object."""
    return side.once(_means_inside)[:, 1]


@_with_image
def haematoxylin_spread(side: RegionSide) -> FloatArray:
    """Return the standard deviation of the optical density of haematoxylin over each object."""
    mean, _, of_squares = side.once(_means_inside).T
    spread: FloatArray = np.sqrt(np.clip(of_squares - mean**2, 0, None))
    return spread


@_with_image
def rim_gradient(side: RegionSide) -> FloatArray:
    """Return the mean gradient of the optical density of haematoxylin per px along the rim.

    The rim is the pixels of the object beside others, by edges. The gradient is the length of the
    vector of central differences; pixels at the edge of the image are repeated beyond it. NaN for
    an object without a rim, which fills the image.
    """
    from scipy.ndimage import correlate1d
    from skimage.segmentation import find_boundaries

    sums, pixels = np.zeros((2, len(side) + 1))
    for rgb, sheets, core in _strips(side, margin=1):
        density = _densities(rgb)[..., 0]
        steps = [correlate1d(density, [-0.5, 0, 0.5], axis, mode="nearest") for axis in (0, 1)]
        gradient = np.hypot(*steps)[core]
        for sheet in sheets:
            rim = find_boundaries(sheet, connectivity=1, mode="inner")[core]
            objects = sheet[core][rim]
            sums += np.bincount(objects, gradient[rim], minlength=len(sums))
            pixels += np.bincount(objects, minlength=len(sums))
    return _quotients(sums, pixels)


@_with_image
def ring_contrast(side: RegionSide) -> FloatArray:
    """Return the optical density of haematoxylin over each object minus that of its ring.

    The ring is the pixels of no object of the side, up to 1.25 µm away (5 px if the size of a pixel
    is unknown), which are nearest to the object. NaN for an object without a ring.
    """
    from scipy.ndimage import distance_transform_edt

    reach = side.in_px(RING_UM, RING_PX)
    sums, pixels = np.zeros((2, len(side) + 1))
    for rgb, sheets, core in _strips(side, margin=ceil(reach)):
        is_empty = np.all([sheet == 0 for sheet in sheets], axis=0)
        if is_empty.all():
            continue
        distance, nearest = distance_transform_edt(is_empty, return_indices=True)
        ring = np.zeros_like(is_empty)
        ring[core] = (is_empty & (distance <= reach))[core]
        density, (y, x) = _densities(rgb[ring][:, None])[:, 0, 0], nearest[:, ring]
        for sheet in sheets:
            objects = sheet[y, x]
            sums += np.bincount(objects, density, minlength=len(sums))
            pixels += np.bincount(objects, minlength=len(sums))
    return haematoxylin(side) - _quotients(sums, pixels)


def _means_inside(side: RegionSide) -> FloatArray:
    """Return float64 (n, 3): means of haematoxylin, of eosin, and of squares of the first."""
    sums = np.zeros((3, len(side) + 1))
    for rgb, sheets, _ in _strips(side):
        for sheet in sheets:
            inside = sheet > 0
            if inside.any():
                h, e = _densities(rgb[inside][:, None])[:, 0].T
                for k, values in enumerate((h, e, h * h)):
                    sums[k] += np.bincount(sheet[inside], values, minlength=len(side) + 1)
    means: FloatArray = sums[:, 1:].T / side.moments[:, :1]
    return means


def _densities(rgb: NDArray[np.uint8]) -> FloatArray:
    """Return the optical densities (y, x, 2) of haematoxylin and eosin."""
    from skimage.color import rgb2hed

    densities: FloatArray = OD_PER_STAIN * rgb2hed(rgb)[..., :2]
    return densities


def _quotients(sums: FloatArray, pixels: FloatArray) -> FloatArray:
    """Return the means of all objects, NaN without pixels; the first entry is the background."""
    with np.errstate(invalid="ignore"):
        means: FloatArray = sums[1:] / pixels[1:]
    return means


def _strips(
    side: RegionSide, margin: int = 0
) -> Iterator[tuple[NDArray[np.uint8], list[NDArray[np.int32]], slice]]:
    """Yield strips of the image and of the objects, and which rows are not of their margins."""
    if side.image is None:
        return
    height, width = side.labels.shape
    rows = max(1, _STRIP_PX // width)
    for top in range(0, height, rows):
        own = slice(max(0, top - margin), min(height, top + rows + margin))
        rgb = np.asarray(side.image.levels[0][own])[..., :3]
        core = slice(top - own.start, min(height, top + rows) - own.start)
        yield rgb, [sheet[own] for sheet in side.labels.sheets], core


_HED = "(`skimage.color.rgb2hed` times 6; Ruifrok and Johnston 2001)"
FEATURES = (
    Feature(
        key="haematoxylin_od",
        header="haematoxylin OD",
        source=f"mean decadic optical density {_HED}",
        measure=haematoxylin,
        needs=Need.IMAGE,
        plain=("pale", "dark"),
    ),
    Feature(
        key="eosin_od",
        header="eosin OD",
        source=f"mean decadic optical density {_HED}",
        measure=eosin,
        needs=Need.IMAGE,
    ),
    Feature(
        key="haematoxylin_sd",
        header="haematoxylin spread",
        source="standard deviation of `haematoxylin_od` over its pixels",
        measure=haematoxylin_spread,
        needs=Need.IMAGE,
        plain=("evenly stained", "unevenly stained"),
        is_usual=False,
    ),
    Feature(
        key="rim_gradient_px",
        header="gradient at the rim",
        source="mean length of the gradient (central differences) of haematoxylin's optical "
        "density, per px, over its pixels that have another pixel beside them",
        measure=rim_gradient,
        needs=Need.IMAGE,
        px_power=-1,
        plain=("blurred", "sharp"),
        is_usual=False,
    ),
    Feature(
        key="ring_contrast_od",
        header="contrast to the ring outside",
        source="`haematoxylin_od` minus that of pixels of no object of its side up to 1.25 µm away "
        "(5 px without a pixel size), which are nearest to it",
        measure=ring_contrast,
        needs=Need.IMAGE,
        is_usual=False,
    ),
)
