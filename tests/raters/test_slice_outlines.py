"""Outlines on slices: those of the slice asked for, whoever found them first, in told colours."""

import itertools
from concurrent.futures import wait

import numpy as np
import pytest

from napari_panoptic.raters.slice_outlines import (
    PREDICTION_COLOURS,
    RATER_COLOURS,
    REFERENCE_COLOURS,
    CasePicture,
    OutlineChoice,
    OutlinePrefetcher,
    Shown,
    SliceOutlines,
    contrast,
    level_colours,
    outline_segments,
)
from napari_panoptic.values.raters import RatersSettings
from tests.support.vision import VISIONS, difference

SETTINGS = RatersSettings(levels=(0.3, 0.5))


@pytest.fixture
def picture():
    rng = np.random.default_rng(5)
    masks = rng.random((3, 6, 8, 9)) < 0.5
    votes = masks.sum(axis=0).astype(np.uint8)
    probabilities = rng.random((6, 8, 9)).astype(np.float32)
    return CasePicture({}, {}, masks, (0, 1, 4), votes, probabilities, (1.0, 1.0, 1.0), False)


def _expected(mask):
    segments = outline_segments(mask)
    return np.stack([segments[:, 0], segments[:, 1] - segments[:, 0]], axis=1)


def test_outlines_are_those_of_the_slice_and_the_level(picture):
    found = SliceOutlines(picture, SETTINGS)
    for z in (0, 4, 0):
        reference = found.of(z, OutlineChoice(Shown.REFERENCE, level=1))
        np.testing.assert_array_equal(reference.vectors, _expected(picture.votes[z] >= 1.5))
        prediction = found.of(z, OutlineChoice(Shown.PREDICTION, level=0))
        np.testing.assert_array_equal(
            prediction.vectors, _expected(picture.probabilities[z] >= np.float32(0.3))
        )
        raters = found.of(z, OutlineChoice(Shown.RATERS))
        own = [_expected(mask[z]) for mask in picture.masks]
        np.testing.assert_array_equal(raters.vectors, np.concatenate(own))
        alone = found.of(z, OutlineChoice(Shown.RATERS, rater=2))
        np.testing.assert_array_equal(alone.vectors, own[2])
        np.testing.assert_allclose(alone.colours[:, :3] * 255, [RATER_COLOURS[4]] * len(own[2]))


def test_all_levels_are_drawn_with_the_chosen_one_opaque(picture):
    drawn = SliceOutlines(picture, SETTINGS).of(
        1, OutlineChoice(Shown.REFERENCE, level=0, is_only=False)
    )
    low, high = (_expected(picture.votes[1] >= least) for least in (0.9, 1.5))
    np.testing.assert_array_equal(drawn.vectors, np.concatenate([low, high]))
    assert (drawn.colours[: len(low), 3] == 1).all()
    assert (drawn.colours[len(low) :, 3] < 1).all()


def test_slices_around_are_found_ahead_and_are_the_same(picture):
    prefetcher, found = OutlinePrefetcher(), SliceOutlines(picture, SETTINGS)
    look = OutlineChoice(Shown.RATERS)
    prefetcher.request(found, 2, 6, {look})
    wait(prefetcher._waiting, timeout=60)
    assert {z for z, _ in found._found} == {0, 1, 3, 4, 5} - {0}
    for z in (1, 3, 4, 5):
        by_hand = SliceOutlines(picture, SETTINGS).of(z, look)
        np.testing.assert_array_equal(found.of(z, look).vectors, by_hand.vectors)
    prefetcher.close()


def test_contrast_leaves_out_what_is_no_number():
    values = np.array([[np.nan, 0.0], [10.0, np.inf]])
    assert contrast(values) == pytest.approx((0.1, 9.9, 0.0, 10.0))
    assert contrast(np.full((2, 2), np.nan)) == (0.0, 1.0, 0.0, 1.0)


def test_every_eye_tells_raters_apart():
    middles = [level_colours(ends, 5)[2] for ends in (REFERENCE_COLOURS, PREDICTION_COLOURS)]
    for vision in VISIONS:
        for one, other in itertools.combinations(RATER_COLOURS, 2):
            assert difference(one, other, vision) >= 16
        for colour, middle in itertools.product(RATER_COLOURS, middles):
            assert difference(colour, middle, vision) >= 9


@pytest.mark.parametrize("ground", [*((grey,) * 3 for grey in range(30, 231, 40)), (245, 190, 245)])
def test_raters_stand_out_from_the_image_and_where_they_are_divided(ground):
    assert all(difference(colour, ground, "normal") >= 17 for colour in RATER_COLOURS)
