"""Pictures of objects against distances measured pixel by pixel."""

from __future__ import annotations

import napari.layers
import numpy as np
import pytest
from napari.layers.labels._labels_utils import get_contours
from scipy import ndimage

from napari_panoptic.kernels import drawing
from napari_panoptic.kernels.drawing import outline_pixels
from napari_panoptic.viewer.layers.outlines import draw_outlines_fast
from tests.support.examples import seeds


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
@pytest.mark.parametrize("seed", seeds(40))
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


def indexed(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return objects from 1 to n, and their boxes."""
    labels = random_labels(seed)
    index = np.searchsorted(np.unique(labels[labels > 0]), labels, side="right").astype(np.int32)
    boxes = [(y.start, x.start, y.stop, x.stop) for y, x in ndimage.find_objects(index)]
    return index, np.array(boxes, np.int64).reshape(-1, 4)


@pytest.mark.parametrize("seed", seeds(20))
def test_outlines_of_several_widths(seed: int) -> None:
    index, boxes = indexed(seed)
    widths = np.random.default_rng(seed).integers(0, 5, len(boxes) + 1)
    all_widths = [slow(index, width) if width else 0 * index for width in range(5)]
    expected = np.array(all_widths)[(widths[index], *np.indices(index.shape))]
    np.testing.assert_array_equal(drawing.outlines(index, widths), expected)


@pytest.mark.parametrize("seed", seeds(20))
def test_dashes_lie_around_objects(seed: int) -> None:
    index, boxes = indexed(seed)
    chosen = np.arange(1, len(boxes) + 1)[::2].copy()
    picture, expected = np.zeros(index.shape, np.uint8), np.zeros(index.shape, bool)
    drawing.dash(picture, index, chosen, boxes[::2].copy(), 3)
    for label in chosen:
        own = index == label
        expected |= ~own & (ndimage.distance_transform_cdt(~own, "taxicab") <= 3)
    np.testing.assert_array_equal(picture > 0, expected)
    y, x = np.nonzero(expected)
    is_light = (y // 6 + x // 6) % 2 == 0
    assert (picture[y, x] == np.where(is_light, drawing.MARK, drawing.MARK_EDGE)).all()


@pytest.mark.parametrize("width", [0, 2])
@pytest.mark.parametrize("seed", range(10))
def test_cells_show_predictions_on_the_reference_and_the_area_beneath(
    seed: int, width: int
) -> None:
    prediction, boxes = indexed(seed)
    rng = np.random.default_rng(seed)
    reference = rng.integers(0, 8, prediction.shape) * rng.integers(0, 2, prediction.shape)
    area = ndimage.uniform_filter(rng.random(prediction.shape), 7) > 0.5
    found = drawing.draw_cell(
        reference.astype(np.uint16), prediction, area, True, width, 7, len(boxes)
    )
    rim = slow(area.astype(np.uint16), 2) > 0
    hatched = area & ((np.add(*np.indices(area.shape)) % drawing.HATCH_SPACING_PX == 0) | rim)
    beneath = np.where((reference == 0) & hatched, 7 + len(boxes) + 1, reference)
    over = slow(prediction, width) if width else prediction * (reference == 0)
    np.testing.assert_array_equal(found, np.where(over > 0, 7 + over, beneath))


@pytest.mark.parametrize("width", [0, 2])
@pytest.mark.parametrize("seed", range(10))
def test_ellipses_in_boxes(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    low = rng.integers(-20, 90, (9, 2))
    boxes = np.concatenate([low, low + rng.integers(1, 40, (9, 2))], axis=1).astype(np.int32)
    codes = rng.integers(0, 4, 9, np.uint8)
    picture, factor, corner = np.zeros((20, 30), np.uint8), 3.0, np.array([2, -1])
    drawing.paint_ellipses(boxes, codes, factor, *corner.tolist(), width, picture)
    expected = np.zeros_like(picture)
    centres = np.moveaxis(np.indices(picture.shape) + 0.5, 0, -1)
    for box, code in zip(boxes[codes > 0], codes[codes > 0], strict=True):
        near, far = box.reshape(2, 2) / factor - corner
        middle, radii = (near + far) / 2, (far - near) / 2
        own = (((centres - middle) / radii) ** 2).sum(axis=-1) <= 1
        if width == 0:
            own |= (np.floor(centres) == np.floor(middle)).all(axis=-1)
        elif (radii > width).all():
            own &= (((centres - middle) / (radii - width)) ** 2).sum(axis=-1) >= 1
        expected[own] = code
    np.testing.assert_array_equal(picture, expected)
