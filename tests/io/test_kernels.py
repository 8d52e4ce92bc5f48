"""The compiled loops against scikit-image and SciPy, on random images."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage
from skimage.draw import polygon
from skimage.measure import label
from skimage.morphology import dilation, disk

from napari_panoptic.io import _kernels as kernels


def blobs(seed: int, *, classes: int = 3) -> NDArray[np.uint8]:
    generator = np.random.default_rng(seed)
    height, width = generator.integers(1, 40, 2)
    noise = ndimage.uniform_filter(generator.random((height, width)), generator.integers(1, 5))
    kinds = generator.integers(1, classes + 1, (height, width))
    kinds = np.repeat(np.repeat(kinds, 3, 0), 3, 1)[:height, :width]
    return np.where(noise > np.median(noise), kinds, 0).astype(np.uint8)


def offsets(radius: int) -> NDArray[np.int64]:
    return np.argwhere(disk(radius)).astype(np.int64) - radius


@pytest.mark.parametrize("seed", range(60))
def test_components_are_numbered_as_scikit_image_does(seed: int) -> None:
    class_image = blobs(seed)
    found, last = kernels.counted_components(class_image)
    assert last[0] == 0
    for number in (1, 2, 3):
        here = class_image == number
        expected = label(here)
        assert last[number] - last[number - 1] == expected.max()
        own = np.where(here, found - last[number - 1], 0)
        np.testing.assert_array_equal(own, expected)
    assert not found[class_image == 0].any()
    np.testing.assert_array_equal(kernels.components(class_image), found)


def test_components_of_a_checkerboard_of_classes() -> None:
    """Every pixel is new to its neighbours: the most provisional numbers there can be."""
    class_image = (np.arange(40)[:, None] % 2 * 2 + np.arange(41) % 2 + 1).astype(np.uint8)
    found = kernels.components(class_image)
    assert found.max() == 40 * 41


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("radius", [1, 2, 3, 5])
def test_grow_is_the_highest_label_within_reach(seed: int, radius: int) -> None:
    image = blobs(seed, classes=1)
    labels = label(image > 0).astype(np.int32)
    reached = ndimage.maximum_filter(labels, footprint=disk(radius), mode="constant")
    expected = np.where(labels > 0, labels, reached)
    grown, taken = kernels.grow(labels, image, offsets(radius))
    np.testing.assert_array_equal(grown, expected)
    assert taken == 0


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("radius", [1, 2, 5])
def test_grow_lays_classes_grown_by_themselves_over_each_other(seed: int, radius: int) -> None:
    image = blobs(seed, classes=4)
    labels = kernels.components(image)
    expected, layers = np.zeros_like(labels), np.zeros(labels.shape, int)
    for number in (1, 2, 3, 4):
        own = np.where(image == number, labels, 0)
        reached = ndimage.maximum_filter(own, footprint=disk(radius), mode="constant")
        own = np.where(own > 0, own, reached)
        expected[own > 0] = own[own > 0]
        layers += own > 0
    grown, taken = kernels.grow(labels, image, offsets(radius))
    np.testing.assert_array_equal(grown, expected)
    assert taken == np.maximum(layers - 1, 0).sum()


@pytest.mark.parametrize("seed", range(30))
def test_grow_by_one_is_dilating_and_overwriting_in_label_order(seed: int) -> None:
    image = blobs(seed, classes=1)
    labels = label(image > 0).astype(np.int32)
    expected = labels.copy()
    for number in range(1, labels.max() + 1):
        expected[dilation(labels == number, disk(1))] = number
    np.testing.assert_array_equal(kernels.grow(labels, image, offsets(1))[0], expected)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("radius", [1, 2, 4])
def test_shrink_erodes_each_object_by_itself(seed: int, radius: int) -> None:
    # Touching objects of one mask, too: numbers of blocks cut the blobs apart.
    image = blobs(seed, classes=1)
    blocks = np.arange(image.size, dtype=np.int32).reshape(image.shape) // 7 + 1
    labels = np.where(image > 0, blocks, 0).astype(np.int32)
    expected = np.zeros_like(labels)
    for number in np.unique(labels[labels > 0]):
        kept = ndimage.binary_erosion(labels == number, disk(radius), border_value=1)
        expected[kept] = number
    np.testing.assert_array_equal(kernels.shrink(labels, offsets(radius)), expected)


coordinate = st.integers(-6, 20)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=9),
    st.tuples(st.integers(1, 16), st.integers(1, 16)),
)
def test_polygons_have_the_pixels_of_scikit_image(
    points: list[tuple[int, int]], shape: tuple[int, int]
) -> None:
    xs, ys = np.ascontiguousarray(np.array(points, dtype=np.int64).T)
    expected = np.zeros(shape, np.int32)
    expected[polygon(ys, xs, shape)] = 5
    mask, claims = np.zeros(shape, np.int32), np.zeros(shape, np.uint8)
    written = kernels.fill_polygon(xs, ys, 5, mask, claims)
    np.testing.assert_array_equal(mask, expected)
    np.testing.assert_array_equal(claims, expected > 0)
    assert written == np.count_nonzero(expected)


def test_far_vertices_do_not_overflow() -> None:
    far = 2**29
    xs = np.array([-far, far, far, -far], dtype=np.int64)
    ys = np.array([-far, -far, far, far], dtype=np.int64)
    mask, claims = np.zeros((3, 4), np.int32), np.zeros((3, 4), np.uint8)
    assert kernels.fill_polygon(xs, ys, 1, mask, claims) == 12


@pytest.mark.parametrize(
    ("points", "crosses"),
    [
        ([(0, 0), (4, 4), (4, 0), (0, 4)], True),
        ([(0, 0), (4, 0), (4, 4), (0, 4)], False),
        # Going out and back along the same line touches, but does not cross.
        ([(0, 0), (4, 0), (8, 0), (4, 0), (4, 4)], False),
        ([(0, 0), (4, 0), (2, 0), (2, 4)], False),
    ],
)
def test_crossing_outlines(points: list[tuple[float, float]], crosses: bool) -> None:
    xs, ys = np.ascontiguousarray(np.array(points, dtype=np.float64).T)
    assert kernels.crosses_itself(xs, ys) is crosses
