"""Seeded images and polygons of the sizes that the benchmarks speak of."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.segmentation import find_boundaries

from napari_panoptic.values.cohort import MONUSAC_CLASSES

Labels = NDArray[np.int32]


@dataclass(frozen=True)
class Size:
    """A name for an image side in px and a number of reference objects."""

    name: str
    side: int
    objects: int


SMALL = Size("S", 600, 60)
MEDIUM = Size("M", 1500, 800)
LARGE = Size("L", 8192, 25_000)
CLASSES = MONUSAC_CLASSES.names
NOISE_IDS = 3001
"""So many ids that in an image of M nearly every pixel is another pair."""


def label_pair(size: Size, *, seed: int = 1) -> tuple[Labels, Labels]:
    """Draw reference and prediction: ellipses on a jittered grid.

    Of ten predictions eight fit, one lies far beside, and one is missing; ids
    are dealt at random on both sides.
    """
    rng = np.random.default_rng(seed)
    per_side = int(np.ceil(np.sqrt(size.objects)))
    cell = size.side / per_side
    cells = rng.permutation(per_side**2)[: size.objects]
    centres = (np.stack(np.divmod(cells, per_side), axis=1) + 0.5) * cell
    centres += rng.uniform(-0.12, 0.12, centres.shape) * cell
    axes = min(0.28 * cell, 14.0) * rng.uniform(0.75, 1.15, centres.shape)
    shift = rng.normal(0, 1.0, centres.shape)
    kind = np.arange(size.objects) % 10
    shift[kind == 8] += axes[kind == 8] * 1.1
    found = kind != 9
    reference = _painted(size, centres, axes, rng)
    prediction = _painted(
        size, (centres + shift)[found], (axes * rng.uniform(0.92, 1.1, axes.shape))[found], rng
    )
    return reference, prediction


def _painted(
    size: Size, centres: NDArray[np.float64], axes: NDArray[np.float64], rng: np.random.Generator
) -> Labels:
    labels = np.zeros((size.side, size.side), np.int32)
    paint_ellipses(labels, centres, axes, rng.permutation(len(centres)) + 1)
    return labels


def paint_ellipses(
    labels: NDArray[Any], centres: NDArray[Any], axes: NDArray[Any], ids: NDArray[Any]
) -> None:
    """Draw ellipses, also such as reach beyond the image; earlier ones stay on top."""
    for (y, x), (a, b), label in zip(centres, axes, ids, strict=True):
        reach = int(max(a, b)) + 2
        y0, x0 = max(0, int(y) - reach), max(0, int(x) - reach)
        window = labels[y0 : max(0, int(y) + reach), x0 : max(0, int(x) + reach)]
        yy, xx = np.ogrid[: window.shape[0], : window.shape[1]]
        inside = ((yy + y0 - y) / a) ** 2 + ((xx + x0 - x) / b) ** 2 <= 1
        window[inside & (window == 0)] = label


def class_image(labels: Labels) -> NDArray[np.uint8]:
    """Give every object one of four classes, and draw borders as colour-coded masks have them."""
    classes = np.where(labels > 0, labels % len(CLASSES) + 1, 0).astype(np.uint8)
    classes[find_boundaries(labels, mode="thick")] = 0
    return classes


def colour_coded(labels: Labels) -> NDArray[np.uint8]:
    """Draw an RGB image (y, x, 3): objects in the colours of their classes, brown borders."""
    colours = np.array([(0, 0, 0), *MONUSAC_CLASSES.colours], np.uint8)
    pixels = colours[class_image(labels)]
    pixels[(labels > 0) & (pixels == 0).all(axis=2)] = MONUSAC_CLASSES.border[0]
    return pixels


def worst_pairs(size: Size) -> dict[str, tuple[Labels, Labels]]:
    """Give label pairs that are unlike tissue."""
    rng = np.random.default_rng(3)
    shape = (size.side, size.side)
    reference, prediction = label_pair(size)
    sparse = rng.permutation(np.arange(1, 2**31 - 1, 2**31 // (2 * size.objects), dtype=np.int32))
    sparse[0] = 0
    empty = np.zeros(shape, np.int32)
    single = empty.copy()
    single[size.side // 4 : -size.side // 4, size.side // 4 : -size.side // 4] = 1
    cell = int(np.ceil(size.side / np.sqrt(size.objects)))
    y, x = np.indices(shape, np.int32) // cell
    covered = y * (x.max() + 1) + x + 1
    return {
        "noise": (
            rng.integers(1, NOISE_IDS, shape, np.int32),
            rng.integers(1, NOISE_IDS, shape, np.int32),
        ),
        "sparse": (sparse[reference], sparse[prediction]),
        "one": (single, np.roll(single, 3, axis=1)),
        "none": (empty, empty.copy()),
        "covered": (covered, np.roll(covered, 2, axis=1)),
    }


def polygons(size: Size) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw round polygons of 12 to 40 vertices, some over each other and over the edge.

    Gives the vertices (n, 2) as x, y in px, and where each polygon starts among them.
    """
    rng = np.random.default_rng(4)
    counts = rng.integers(12, 41, size.objects)
    starts = np.concatenate([[0], np.cumsum(counts)])
    owner = np.repeat(np.arange(size.objects), counts)
    turn = (np.arange(len(owner)) - starts[owner]) / counts[owner] * 2 * np.pi
    radius = rng.uniform(8, 16, size.objects)[owner] * rng.uniform(0.85, 1.15, len(owner))
    centre = rng.uniform(0, size.side, (size.objects, 2))[owner]
    vertices = centre + radius[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return vertices.round(2), starts
