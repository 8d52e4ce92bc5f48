"""The compiled loops against scikit-image and SciPy, on random images."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage
from skimage.measure import label
from skimage.morphology import dilation, disk

from napari_panoptic.kernels import restore as kernels
from napari_panoptic.kernels import threads as _threads
from tests.support.examples import seeds


@pytest.fixture(autouse=True)
def shared_out(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two threads work on every other image, small as they are."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if parameters.get("seed", 1) % 2:
        monkeypatch.setattr(_threads, "THREADS_FROM_PX", 1)


def blobs(seed: int, *, classes: int = 3) -> NDArray[np.uint8]:
    generator = np.random.default_rng(seed)
    height, width = generator.integers(1, 40, 2)
    noise = ndimage.uniform_filter(generator.random((height, width)), generator.integers(1, 5))
    kinds = generator.integers(1, classes + 1, (height, width))
    kinds = np.repeat(np.repeat(kinds, 3, 0), 3, 1)[:height, :width]
    return np.where(noise > np.median(noise), kinds, 0).astype(np.uint8)


@pytest.mark.parametrize("seed", seeds(60))
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


@pytest.mark.parametrize("seed", seeds(20))
def test_components_of_noise(seed: int) -> None:
    """Lines of a few pixels that join each other again and again."""
    generator = np.random.default_rng(seed)
    noise = generator.random(generator.integers(1, 90, 2)) < generator.uniform(0.3, 0.7)
    np.testing.assert_array_equal(kernels.components(noise.astype(np.uint8)), label(noise))


def test_components_of_more_runs_than_there_was_room_for() -> None:
    columns = np.zeros((300, 301), np.uint8)
    columns[:, ::2] = 1
    columns[-1] = 1
    assert kernels.components(columns).max() == 1


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (1, 1)])
def test_images_of_next_to_nothing(shape: tuple[int, int]) -> None:
    image = np.ones(shape, np.uint8)
    labels, last = kernels.counted_components(image)
    np.testing.assert_array_equal(labels, image)
    for radius in (1, 3):
        widths = kernels.half_widths(radius)
        np.testing.assert_array_equal(kernels.shrink(labels, widths), image)
        grown, taken = kernels.grow(labels, image, last, widths)
        np.testing.assert_array_equal(grown, image)
        assert taken == 0


@pytest.mark.parametrize("radius", range(9))
def test_half_widths_are_those_of_the_disk_of_scikit_image(radius: int) -> None:
    widths = kernels.half_widths(radius)
    lines = disk(radius)[radius:].sum(axis=1)
    np.testing.assert_array_equal(2 * widths + 1, lines)


def test_colours_are_looked_up() -> None:
    generator = np.random.default_rng(1)
    pixels = generator.integers(0, 3, (17, 21, 3), dtype=np.uint8) * np.uint8(127)
    known = {(0, 0, 0): 0, (254, 127, 0): 1, (0, 127, 254): 2, (254, 254, 254): 7}
    codes = np.array([r << 16 | g << 8 | b for r, g, b in known], np.int32)
    values = np.array(list(known.values()), np.uint8)
    expected = [[known.get(tuple(p), kernels.UNKNOWN) for p in line] for line in pixels.tolist()]
    np.testing.assert_array_equal(kernels.classify(pixels, codes, values), expected)


@pytest.mark.parametrize("seed", seeds(30))
@pytest.mark.parametrize("radius", [1, 2, 3, 5])
def test_grow_is_the_highest_label_within_reach(seed: int, radius: int) -> None:
    image = blobs(seed, classes=1)
    labels, last = kernels.counted_components(image)
    reached = ndimage.maximum_filter(labels, footprint=disk(radius), mode="constant")
    expected = np.where(labels > 0, labels, reached)
    grown, taken = kernels.grow(labels, image, last, kernels.half_widths(radius))
    np.testing.assert_array_equal(grown, expected)
    assert taken == 0


@pytest.mark.parametrize("classes", [4, 20])  # more than the bits of a byte
@pytest.mark.parametrize("seed", seeds(30))
@pytest.mark.parametrize("radius", [1, 2, 5])
def test_grow_lays_classes_grown_by_themselves_over_each_other(
    seed: int, radius: int, classes: int
) -> None:
    image = blobs(seed, classes=classes)
    labels, last = kernels.counted_components(image)
    expected, layers = np.zeros_like(labels), np.zeros(labels.shape, int)
    for number in range(1, classes + 1):
        own = np.where(image == number, labels, 0)
        reached = ndimage.maximum_filter(own, footprint=disk(radius), mode="constant")
        own = np.where(own > 0, own, reached)
        expected[own > 0] = own[own > 0]
        layers += own > 0
    grown, taken = kernels.grow(labels, image, last, kernels.half_widths(radius))
    np.testing.assert_array_equal(grown, expected)
    assert taken == np.maximum(layers - 1, 0).sum()


@pytest.mark.parametrize("seed", seeds(30))
def test_grow_by_one_is_dilating_and_overwriting_in_label_order(seed: int) -> None:
    image = blobs(seed, classes=1)
    labels, last = kernels.counted_components(image)
    expected = labels.copy()
    for number in range(1, labels.max() + 1):
        expected[dilation(labels == number, disk(1))] = number
    grown, _ = kernels.grow(labels, image, last, kernels.half_widths(1))
    np.testing.assert_array_equal(grown, expected)


@pytest.mark.parametrize("seed", seeds(30))
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
    np.testing.assert_array_equal(kernels.shrink(labels, kernels.half_widths(radius)), expected)
