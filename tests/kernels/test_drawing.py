"""Outlines found in one pass, against distances measured pixel by pixel."""

from __future__ import annotations

import napari.layers
import numpy as np
import pytest
from napari.layers.labels._labels_utils import get_contours
from scipy import ndimage

from napari_panoptic.kernels.drawing import outline_pixels
from napari_panoptic.viewer.layers.labels import draw_outlines_fast


def random_labels(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 40, 2))
    noise = ndimage.gaussian_filter(rng.normal(size=shape), 1.5)
    blobs = ndimage.label(noise > 0)[0]
    blocks = rng.integers(0, 2, shape).repeat(4, 0).repeat(4, 1)[: shape[0], : shape[1]]
    return np.where(blobs > 0, 2 * blobs + blocks, 0).astype(np.uint16)


def slow(labels: np.ndarray, thickness: int) -> np.ndarray:
    """For every object, count the steps to the nearest pixel that is no part of it."""
    result = np.zeros_like(labels)
    for label in np.unique(labels[labels > 0]):
        own = labels == label
        if own.all():
            continue
        rim = own & (ndimage.distance_transform_cdt(own, "taxicab") <= thickness)
        result[rim] = label
    return result


@pytest.mark.parametrize("thickness", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", range(40))
def test_every_pixel_within_reach_of_the_edge(seed: int, thickness: int) -> None:
    labels = random_labels(seed)
    np.testing.assert_array_equal(outline_pixels(labels, thickness), slow(labels, thickness))


def test_like_napari_around_objects_that_do_not_touch() -> None:
    labels = ndimage.label(random_labels(3) > 0)[0].astype(np.uint16)
    for thickness in (1, 2, 4):
        np.testing.assert_array_equal(
            outline_pixels(labels, thickness), get_contours(labels, thickness, 0)
        )


@pytest.mark.parametrize("contour", [1, 3])
def test_painting_on_a_layer_redraws_what_a_full_refresh_would(contour: int) -> None:
    rng = np.random.default_rng(5)
    labels = ndimage.label(ndimage.gaussian_filter(rng.normal(size=(60, 70)), 2) > 0)[0]
    layer = napari.layers.Labels(labels.astype(np.uint16))
    layer.contour = contour
    draw_outlines_fast(layer)
    layer.refresh()
    for _ in range(20):
        layer.brush_size = int(rng.integers(1, 12))
        layer.paint(tuple(rng.integers(0, 60, 2)), int(rng.integers(0, 6)))
        part = np.asarray(layer._slice.image.view).copy()
        layer.refresh()
        np.testing.assert_array_equal(part, layer._slice.image.view)
    shown = np.asarray(layer._slice.image.view) > 0
    np.testing.assert_array_equal(shown, slow(np.asarray(layer.data), contour) > 0)
    layer.contour = 0
    np.testing.assert_array_equal(np.asarray(layer._slice.image.view) > 0, layer.data > 0)
