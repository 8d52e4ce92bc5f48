"""Seeded label pairs of the sizes that the benchmarks speak of."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from skimage.segmentation import find_boundaries

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
CLASSES = ("Epithelial", "Lymphocyte", "Neutrophil", "Macrophage")


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
    ids = rng.permutation(len(centres)) + 1
    for (y, x), (a, b), label in zip(centres, axes, ids, strict=True):
        reach = int(max(a, b)) + 2
        y0, x0 = max(0, int(y) - reach), max(0, int(x) - reach)
        window = labels[y0 : int(y) + reach, x0 : int(x) + reach]
        yy, xx = np.ogrid[: window.shape[0], : window.shape[1]]
        inside = ((yy + y0 - y) / a) ** 2 + ((xx + x0 - x) / b) ** 2 <= 1
        window[inside & (window == 0)] = label
    return labels


def class_image(labels: Labels) -> NDArray[np.uint8]:
    """Give every object one of four classes, and draw borders as colour-coded masks have them."""
    classes = np.where(labels > 0, labels % len(CLASSES) + 1, 0).astype(np.uint8)
    classes[find_boundaries(labels, mode="thick")] = 0
    return classes
