"""Contours and their distances against SciPy's, on random images."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial.distance import cdist

from napari_panoptic.kernels import contours
from tests.support.examples import seeds

NO_VOID = np.zeros((0, 0), np.uint8)


def labels(seed: int) -> NDArray[np.int32]:
    rng = np.random.default_rng(seed)
    noise = ndimage.gaussian_filter(rng.normal(size=rng.integers(1, 40, 2)), rng.choice([0.5, 2]))
    return ndimage.label(noise > 0)[0].astype(np.int32)


def found_in(
    image: NDArray[np.int32], void: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    boxes = [(y.start, x.start, y.stop, x.stop) for y, x in ndimage.find_objects(image)]
    numbers = np.arange(1, len(boxes) + 1, dtype=np.int32)
    return contours.contours_in_boxes(image, void, numbers, np.array(boxes).reshape(-1, 4))


@pytest.mark.parametrize("has_void", [False, True])
@pytest.mark.parametrize("seed", seeds(20))
def test_a_contour_is_what_erosion_takes(seed: int, has_void: bool) -> None:
    image = labels(seed)
    random = np.random.default_rng(seed).random(image.shape)
    void = (random < 0.1).astype(np.uint8) if has_void else NO_VOID
    start, yx = found_in(image, void)
    for label in range(1, image.max() + 1):
        own = image == label
        own &= void == 0 if has_void else True
        rim = own & ~ndimage.binary_erosion(own, border_value=1)
        expected = np.argwhere(rim)
        np.testing.assert_array_equal(yx[start[label] : start[label + 1]], expected)


@pytest.mark.parametrize("seed", seeds(20))
def test_distances_are_those_of_all_pixels_to_all(seed: int) -> None:
    sides = [labels(seed), labels(seed + 100)]
    (start, yx), (other_start, other_yx) = (found_in(image, NO_VOID) for image in sides)
    pairs = np.argwhere(np.ones([image.max() for image in sides], bool)).copy("C").copy("C")
    found = contours.contour_distances(start, yx, other_start, other_yx, pairs, 1 << 30, 95.0)
    for (i, j), figures in zip(pairs, found, strict=True):
        one = yx[start[i + 1] : start[i + 2]]
        other = other_yx[other_start[j + 1] : other_start[j + 2]]
        if len(one) == 0 or len(other) == 0:
            assert np.isnan(figures).all()
            continue
        between = cdist(one, other)
        nearest = between.min(axis=1), between.min(axis=0)
        expected = [max(n.max() for n in nearest), max(np.percentile(n, 95) for n in nearest)]
        np.testing.assert_allclose(figures, expected, rtol=1e-12)


def test_contours_that_are_too_long_or_too_far_apart_are_left_out() -> None:
    start, yx = np.array([0, 0, 2]), np.array([[0, 0], [0, 1]], np.int32)
    far = yx + np.int32(40_000)
    pair = np.zeros((1, 2), np.int64)
    for other, most in ((yx, 3), (far, 99)):
        found = contours.contour_distances(start, yx, start, other, pair, most, 95.0)
        assert found.tolist() == [[-1.0, -1.0]]
