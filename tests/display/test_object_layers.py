import math

import numpy as np
import pytest
from scipy import ndimage

from napari_panoptic.display import object_layers as layers
from napari_panoptic.display import styles
from napari_panoptic.display.object_layers import PARTNER, SELECTED, SELECTED_EDGE, PixelSize
from napari_panoptic.display.styles import ColourBy
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Status
from tests.support.small_pairs import SCHEME, four_fates


@pytest.fixture
def evaluation():
    return four_fates()


def test_label_data_keeps_row_numbers(evaluation):
    labels = evaluation.pair.reference

    data = layers.label_data(labels)

    assert data.dtype == np.uint16
    np.testing.assert_array_equal(data, labels.index)


def test_label_data_of_very_many_objects_never_turns_one_into_background():
    n = layers.MAX_OBJECTS + 5
    index = np.arange(n + 1, dtype=np.int32).reshape(1, -1)
    ids = np.arange(1, n + 1)
    labels = LabelImage(index, ids, np.ones(n, np.int16), ids, ("Round",))

    data = layers.label_data(labels)

    assert layers.too_many_objects(labels)
    assert data[0, 0] == 0
    assert data[0, 1:].min() == 1
    assert data[0, -5:].tolist() == [1, 2, 3, 4, 5]


def test_objects_are_coloured_by_status(evaluation):
    lut = layers.object_lut(
        evaluation.pair.reference, evaluation.outcomes.reference, SCHEME, ColourBy.STATUS
    )
    expected = [Status.TP, Status.MISCLASSIFIED, Status.FN, Status.IGNORED]
    colours = [styles.STATUS_COLOURS[status] for status in expected]
    np.testing.assert_allclose(lut[1:5, :3] * 255, colours, atol=1e-3)


def test_objects_are_coloured_by_class_without_outcomes(evaluation):
    lut = layers.object_lut(evaluation.pair.prediction, None, SCHEME, ColourBy.CLASS)
    colours = styles.class_colours(len(SCHEME.names))
    expected = [colours[number - 1] for number in evaluation.pair.prediction.class_index]
    np.testing.assert_allclose(lut[1:4, :3] * 255, expected, atol=1e-3)


def test_objects_without_outcomes_are_neutral(evaluation):
    lut = layers.object_lut(evaluation.pair.reference, None, SCHEME, ColourBy.STATUS)
    assert (lut[1:5] == 1).all()


def test_pixel_size_goes_both_ways():
    pixels = PixelSize.from_mpp(0.25)
    assert pixels.units == ("micrometer", "micrometer")
    assert pixels.to_px(pixels.to_world((7, 9))) == (7, 9)
    assert pixels.to_px((0.25 * 7.4, 0.25 * 8.6)) == (7, 9)


def test_unknown_pixel_size_is_counted_in_pixels():
    assert PixelSize.from_mpp(None) == PixelSize((1.0, 1.0), ("pixel", "pixel"))


def test_hatching_is_lines_and_a_rim():
    rng = np.random.default_rng(2)
    mask = ndimage.gaussian_filter(rng.normal(size=(60, 75)), 4) > 0
    y, x = np.ogrid[:60, :75]
    inner = ndimage.binary_erosion(mask, iterations=2, border_value=1)
    expected = mask & (((y + x) % 9 == 0) | ~inner)
    drawn = layers.hatching(mask, spacing_px=9)
    assert drawn.dtype == np.uint8
    np.testing.assert_array_equal(drawn, expected)


def test_hatching_stays_inside_and_lets_tissue_through():
    mask = np.zeros((60, 60), bool)
    mask[10:50, 10:50] = True

    drawn = layers.hatching(mask)

    assert not drawn[~mask].any()
    assert drawn[10, 10:50].all()
    assert 0.1 < drawn[mask].mean() < 0.5


def test_emphasis_rings_lie_around_the_object(evaluation):
    labels, outcomes = evaluation.pair.reference, evaluation.outcomes.reference

    picture = layers.emphasis((labels, 2, outcomes.bbox[2]), ring_px=2)

    y, x = picture.origin_yx_px
    assert (y, x) == (20, 0)
    own = labels.index[24:34, 4:16] == 3
    assert not picture.image[24 - y : 34 - y, 4 - x : 16 - x][own].any()
    assert picture.image[23 - y, 10 - x] == SELECTED
    assert picture.image[21 - y, 10 - x] == SELECTED_EDGE


def test_emphasis_reaches_beyond_the_image_edge():
    index = np.zeros((6, 6), np.int32)
    index[0:2, 0:2] = 1
    one = np.array([1])
    labels = LabelImage(index, one, np.ones(1, np.int16), one, ("Round",))

    picture = layers.emphasis((labels, 0, np.array([0, 0, 2, 2], np.int32)), ring_px=1)

    assert picture.origin_yx_px == (-2, -2)
    assert picture.image[1, 2] == SELECTED


def test_emphasis_shows_the_partner_too(evaluation):
    outcomes = evaluation.outcomes
    picture = layers.emphasis(
        (evaluation.pair.reference, 0, outcomes.reference.bbox[0]),
        (evaluation.pair.prediction, 0, outcomes.prediction.bbox[0]),
    )
    assert PARTNER in picture.image
    assert SELECTED in picture.image


def test_a_line_is_drawn_around_what_lies_near_the_object_and_its_partner():
    index = np.zeros((12, 14), np.int32)
    index[3:6, 2:5] = 1
    index[6:9, 9:12] = 2
    ids = np.array([1, 2])
    labels = LabelImage(index, ids, np.ones(2, np.int16), ids, ("Round",))
    boxes = np.array([[3, 2, 6, 5], [6, 9, 9, 12]], np.int32)
    picture = layers.emphasis((labels, 0, boxes[0]), (labels, 1, boxes[1]), ring_px=2, as_line=True)
    y0, x0 = picture.origin_yx_px
    for (y, x), value in np.ndenumerate(picture.image):
        near = [
            min(math.dist((y + y0, x + x0), at) for at in np.argwhere(index == label)) <= 2
            for label in (1, 2)
        ]
        expected = layers.HALO if near[0] else layers.PARTNER_HALO if near[1] else 0
        assert value == expected
    assert {0, layers.HALO, layers.PARTNER_HALO} == set(picture.image.ravel().tolist())
