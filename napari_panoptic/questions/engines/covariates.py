"""Covariates of objects: shape, stain and surroundings, and those that plugins add."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError, PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.plugins import Plugins
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.io.tables.covariates import KEY_COLUMNS
from napari_panoptic.nuclei.outcomes import SideOutcomes
from napari_panoptic.values.labels import LabelImage

ENTRY_POINTS = "napari_panoptic.covariates"
"""The group of entry points by which plugins add covariates: each names a `CovariateFunction`."""
NEAR_UM, NEAR_PX = 25.0, 100.0
"""Radius within which neighbours are counted: in micrometres, or in px if their size is unknown."""
DENSITY_AREA = 10_000.0
"""Densities are numbers of objects per this many px² (or µm²)."""
OD_PER_STAIN = 6.0
"""Decadic optical density of 1 in scikit-image's stain channels, which take logarithms to 1e-6."""
OUTCOME_COLUMNS = (*KEY_COLUMNS, "status", "cause")
"""The columns of objects beside their covariates."""
TOUCHING, APART = "yes", "no"
_HULLS_AT_ONCE = 20
_STRIP_PX = 2**22
_CHORDS = 64

Columns = Mapping[str, NDArray[Any]]
"""Covariate -> (n,): floats, NaN if undefined; or words, empty if undefined."""


@dataclass(frozen=True, eq=False)
class RegionSide:
    """The objects of one side of one region, as functions that compute covariates receive them."""

    #: Names of the patient, the region and the team.
    patient: str
    region: str
    team: str
    #: The objects as a label image, row by row those of `outcomes`.
    labels: LabelImage
    #: Their outcomes, which covariates must not depend on, and ids, classes, areas and boxes.
    outcomes: SideOutcomes
    #: The image, of the size of the label image; None if there is none that can be read.
    image: SlideImage | None
    #: Micrometres per pixel, or None.
    mpp: float | None

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.labels)

    @cached_property
    def moments(self) -> NDArray[np.float64]:
        """float64 (n, 6): area, sums of y and x, and central sums of y², x² and yx, in px."""
        return _moments(self.labels)

    @property
    def centroid_yx_px(self) -> NDArray[np.float64]:
        """float64 (n, 2): centroids of the whole objects."""
        centroids: NDArray[np.float64] = self.moments[:, 1:3] / self.moments[:, :1]
        return centroids


CovariateFunction = Callable[[RegionSide], Columns]
"""Returns covariates of the objects of a region, in the order of the label image."""


@dataclass(frozen=True)
class CovariateText:
    """The words for a condition on a covariate, which follow "nuclei"."""

    #: With the fields ``low`` and ``high``, and ``unit`` for px or µm.
    under: str
    from_: str
    between: str
    #: Value -> its words.
    values: Mapping[str, str] = field(default_factory=dict)
    #: Its dimension in px: 2 for an area, 1 for a length, 0 for a pure number.
    px_power: int = 0
    #: Plain words for objects with low and with high values; empty if the others are plain.
    plain: tuple[str, str] = ("", "")


def _named(name: str, plain: tuple[str, str] = ("", "")) -> CovariateText:
    return CovariateText(
        f"with {name} under {{high}}",
        f"with {name} of {{low}} or more",
        f"with {name} from {{low}} to under {{high}}",
        plain=plain,
    )


def _apart(of: str) -> CovariateText:
    return CovariateText(
        f"less than {{high}} {{unit}} from {of}",
        f"{{low}} {{unit}} or more from {of}",
        f"{{low}} to under {{high}} {{unit}} from {of}",
        px_power=1,
    )


TEXTS: Mapping[str, CovariateText] = {
    "class": CovariateText("", "", ""),
    "area_px": CovariateText(
        "under {high} {unit}{square}",
        "of {low} {unit}{square} or more",
        "of {low} to under {high} {unit}{square}",
        px_power=2,
        plain=("small", "large"),
    ),
    "solidity": _named("solidity", ("irregular", "compact")),
    "eccentricity": _named("eccentricity", ("round", "elongated")),
    "haematoxylin_od": _named("haematoxylin OD", ("pale", "dark")),
    "eosin_od": _named("eosin OD"),
    "local_density_px": CovariateText(
        "with fewer than {high} neighbours per 10,000 {unit}²",
        "with {low} or more neighbours per 10,000 {unit}²",
        "with {low} to under {high} neighbours per 10,000 {unit}²",
        px_power=-2,
        plain=("in a sparse area", "in a crowded area"),
    ),
    "frame_distance_px": _apart("the frame"),
    "neighbour_distance_px": _apart("the nearest neighbour"),
    "touching": CovariateText(
        "", "", "", {TOUCHING: "touching a neighbour", APART: "not touching a neighbour"}
    ),
}
"""The covariates of this package, in the order in which conditions are read."""

_IN_UM = frozenset(name.removesuffix("_px") + "_um" for name in TEXTS if TEXTS[name].px_power)


# --- functions of plugins ---------------------------------------------------------------------


_FUNCTIONS: dict[str, CovariateFunction] = {}
"""The functions of plugins, by name."""


def _add_plugin(name: str, function: object) -> None:
    if not callable(function):
        raise PanopticError(f"expected a function, found a {type(function).__name__}")
    _FUNCTIONS.setdefault(name, function)


_PLUGINS = Plugins(ENTRY_POINTS, "covariates", _add_plugin)
_ONE_CALL = (
    threading.Lock()
)  # regions are read in several threads; functions need not be thread-safe


def known_functions() -> Mapping[str, CovariateFunction]:
    """Return the functions that plugins added, by name."""
    with _PLUGINS.lock:
        _PLUGINS.load()
        return dict(_FUNCTIONS)


def plugin_findings() -> tuple[Finding, ...]:
    """Return findings about plugins whose covariates cannot be used."""
    return _PLUGINS.load()


# --- all covariates of a region ---------------------------------------------------------------


def built_in_covariates(side: RegionSide) -> dict[str, NDArray[Any]]:
    """Return the covariates of this package, which do not depend on the team."""
    return {
        "class": side.labels.class_names_of_objects(),
        **shapes(side),
        **stains(side),
        **surroundings(side),
    }


def region_covariates(
    side: RegionSide,
    functions: Mapping[str, CovariateFunction] | None = None,
    built_in: Columns | None = None,
) -> dict[str, NDArray[Any]]:
    """Return all covariates of the objects of a region.

    Parameters
    ----------
    side
        The objects.
    functions
        Those that compute further covariates, by name; None for `known_functions`.
    built_in
        The `built_in_covariates` of the side, if they are known.

    Returns
    -------
    dict
        Covariate -> (n,): float64, NaN if undefined; or words, empty if undefined.

    Raises
    ------
    LabelError
        If a function returns a covariate that is there already or has the name of one of
        `OUTCOME_COLUMNS`, or not one value per object.
    """
    found = dict(built_in_covariates(side) if built_in is None else built_in)
    for name, function in (known_functions() if functions is None else functions).items():
        with _ONE_CALL:
            columns = function(side)
        for covariate, values in columns.items():
            column = as_covariate(values)
            is_taken = covariate in found or covariate in (*OUTCOME_COLUMNS, *_IN_UM)
            if is_taken or column.shape != (len(side),):
                problem = (
                    "which is there already; rename it"
                    if is_taken
                    else f"expected {len(side)} values, found the shape {column.shape}; return "
                    f"one per object"
                )
                raise LabelError(
                    f"the covariates '{name}' have '{covariate}': {problem}", region=side.region
                )
            found[covariate] = column
    return found


def as_covariate(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Return values as float64, or as words where one of them is no number.

    Infinite numbers become NaN. Words are stripped; empty ones are undefined.
    """
    column = np.asarray(values)
    if column.dtype.kind in "iuf":
        numbers = column.astype(np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    if column.dtype.kind == "b":
        return np.where(column, TOUCHING, APART).astype(object)
    words = [str(value).strip() for value in column.tolist()]
    try:
        return as_covariate(np.array([float(word) if word else np.nan for word in words]))
    except ValueError:
        return np.array(words, dtype=object)


def shapes(side: RegionSide) -> dict[str, NDArray[np.float64]]:
    """Return area (px), solidity and eccentricity of whole objects.

    Solidity is the area divided by that of the convex hull of the object's pixels as squares.
    Eccentricity is that of the ellipse with the same second central moments, as in scikit-image:
    0 for a circle, towards 1 for a line.
    """
    area = side.moments[:, 0]
    yy, xx, yx = side.moments[:, 3:].T
    mean, apart = (yy + xx) / 2, np.hypot((yy - xx) / 2, yx)
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = np.where(mean + apart > 0, 2 * apart / (mean + apart), 0.0)
    return {
        "area_px": area,
        "solidity": area / _hull_areas(side.labels),
        "eccentricity": np.sqrt(np.clip(squared, 0, 1)),
    }


def stains(side: RegionSide) -> dict[str, NDArray[np.float64]]:
    """Return the mean optical density (decadic) of haematoxylin and eosin over each object.

    By the stain vectors of Ruifrok and Johnston (Analytical and Quantitative Cytology and
    Histology 23, 2001), as `skimage.color.rgb2hed` has them. NaN without an image.
    """
    sums = np.full((len(side), 2), np.nan)
    if side.image is not None and side.image.shape == side.labels.shape:
        sums = _stain_sums(side.labels, side.image) / side.moments[:, :1]
    return {"haematoxylin_od": sums[:, 0], "eosin_od": sums[:, 1]}


def surroundings(side: RegionSide) -> dict[str, NDArray[Any]]:
    """Return the place of objects among others, and in the frame.

    ``local_density_px``: centroids of other objects within 25 µm (100 px if the size of a
    pixel is unknown), per 10,000 px² of the part of that disc inside the frame.
    ``frame_distance_px``: pixels between the object's box and the nearest edge of the image.
    ``neighbour_distance_px``: from centroid to nearest centroid; NaN for a single object.
    ``touching``: whether a pixel of another object of the side is among the eight
    neighbours of one of its pixels, or both share one.
    """
    from scipy.spatial import cKDTree

    centroids, boxes = side.centroid_yx_px, side.outcomes.bbox
    height, width = side.labels.shape
    nearest, density = np.full((2, len(side)), np.nan)
    if len(side):
        tree = cKDTree(centroids)
        radius = NEAR_PX if side.mpp is None else NEAR_UM / side.mpp
        others = tree.query_ball_point(centroids, radius, return_length=True) - 1
        density = DENSITY_AREA * others / _disc_areas(centroids, radius, (height, width))
    if len(side) > 1:
        nearest = tree.query(centroids, k=2)[0][:, 1]
    edges = np.column_stack([boxes[:, :2], [height, width] - boxes[:, 2:]])
    return {
        "local_density_px": density,
        "frame_distance_px": edges.min(axis=1, initial=max(height, width)).astype(np.float64),
        "neighbour_distance_px": nearest,
        "touching": np.where(_touching(side.labels), TOUCHING, APART).astype(object),
    }


# --- pixels ------------------------------------------------------------------------------------


def _moments(labels: LabelImage) -> NDArray[np.float64]:
    sums = np.zeros((3, len(labels) + 1))
    pixels = []
    for sheet in labels.sheets:
        y, x = np.nonzero(sheet)
        objects = sheet[y, x]
        pixels.append((objects, y, x))
        for k, weights in enumerate((None, y, x)):
            sums[k] += np.bincount(objects, weights, minlength=len(labels) + 1)
    with np.errstate(invalid="ignore"):
        centre_y, centre_x = sums[1:] / sums[0]
    central = np.zeros((3, len(labels) + 1))
    for objects, y, x in pixels:
        dy, dx = y - centre_y[objects], x - centre_x[objects]
        for k, product in enumerate((dy * dy, dx * dx, dy * dx)):
            central[k] += np.bincount(objects, product, minlength=len(labels) + 1)
    return np.concatenate([sums, central])[:, 1:].T


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


def _stain_sums(labels: LabelImage, image: SlideImage) -> NDArray[np.float64]:
    """Return float64 (n, 2): sums of the optical densities of both stains, strip by strip."""
    from skimage.color import rgb2hed

    height, width = labels.shape
    sums = np.zeros((2, len(labels) + 1))
    strip = max(1, _STRIP_PX // width)
    for top in range(0, height, strip):
        rgb = np.asarray(image.levels[0][top : top + strip])[..., :3]
        for sheet in labels.sheets:
            window = sheet[top : top + strip]
            inside = window > 0
            if not inside.any():
                continue
            density = OD_PER_STAIN * rgb2hed(rgb[inside][:, None])[:, 0, :2]
            for k in range(2):
                sums[k] += np.bincount(window[inside], density[:, k], minlength=len(labels) + 1)
    return sums[:, 1:].T


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
