from dataclasses import replace

import numpy as np
import pytest

from napari_panoptic.display.crop_reader import CropReader, CropSize, crop_of
from napari_panoptic.display.crops import (
    BEYOND,
    FIELD_STEP_PX,
    LARGEST_FIELD_PX,
    OTHER_TEAM_RGBA,
    SMALLEST_FIELD_PX,
    CropSource,
    bounded_field_px,
    cut,
)
from napari_panoptic.display.styles import STATUS_COLOURS
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.questions.engines.cohort_failures import FailureName, FailureSet
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Status
from tests.support.small_cohort import write_cohort
from tests.support.small_pairs import four_fates


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    return open_cohort(write_cohort(tmp_path_factory.mktemp("crops") / "cohort"))


def image(levels=1):
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[..., 0] = np.arange(40)[:, None]
    pixels[..., 1] = np.arange(60)
    shapes = tuple(pixels[:: 2**k, :: 2**k] for k in range(levels))
    return SlideImage(shapes, 0.5, (), (40, 60))


def source(picture=None):
    pair = four_fates().pair
    return CropSource(picture, pair.reference, pair.prediction, four_fates().outcomes)


def colours(crop, alpha=255):
    shown = crop.outlines[crop.outlines[..., 3] == alpha][:, :3]
    return {tuple(int(value) for value in colour) for colour in shown}


def test_the_object_is_in_the_middle_of_its_tissue():
    crop = cut(source(image()), Side.REFERENCE, 2, field_px=32, size_px=64)
    # Its box is 24..34 by 4..16: the crop begins at row 13 and column -6.
    assert crop.tissue.shape == (32, 32, 3)
    assert crop.tissue[0, 6].tolist() == [13, 0, 0]
    assert (crop.tissue[:, :6] == BEYOND).all()
    assert (crop.tissue[27:] == BEYOND).all()


def test_outlines_have_the_colour_of_the_status():
    crop = cut(source(), Side.REFERENCE, 2, field_px=32, size_px=64)
    assert crop.outlines.shape == (64, 64, 4)
    assert STATUS_COLOURS[Status.FN] in colours(crop)


def test_the_reference_is_drawn_heavier():
    # The reference is drawn 1 px outside its border and 3 inside, the prediction 2 inside.
    crops = [
        cut(source(), side, row, field_px=32, size_px=64)
        for side, row in ((Side.REFERENCE, 2), (Side.PREDICTION, 2))
    ]
    wanted = [STATUS_COLOURS[Status.FN], STATUS_COLOURS[Status.FP]]
    middle = [crop.outlines[32, :32] for crop in crops]
    widths = [
        int(((line[:, :3] == colour).all(axis=1) & (line[:, 3] == 255)).sum())
        for line, colour in zip(middle, wanted, strict=True)
    ]
    assert widths == [4, 2]


def test_what_does_not_touch_the_object_is_fainter():
    crop = cut(source(), Side.PREDICTION, 2, field_px=48, size_px=96)
    assert STATUS_COLOURS[Status.FP] in colours(crop)
    assert STATUS_COLOURS[Status.FN] not in colours(crop)
    assert (crop.outlines[..., 3] == int(255 * 0.45)).any()


def test_an_object_larger_than_its_crop_is_dashed_along_the_edge():
    small = cut(source(), Side.REFERENCE, 2, field_px=8, size_px=64)
    top = small.outlines[0, :, 3]
    assert 0 < np.count_nonzero(top) < len(top)
    large = cut(source(), Side.REFERENCE, 2, field_px=32, size_px=64)
    assert not (large.outlines[0, :, 3] == 255).any()


def test_a_coarser_level_is_read_where_it_is_fine_enough():
    fine = cut(source(image(2)), Side.REFERENCE, 2, field_px=32, size_px=64)
    coarse = cut(source(image(2)), Side.REFERENCE, 2, field_px=32, size_px=16)
    assert fine.tissue.shape == (32, 32, 3)
    assert coarse.tissue.shape == (16, 16, 3)


def test_without_an_image_the_ground_is_plain():
    assert (cut(source(), Side.REFERENCE, 0, field_px=32, size_px=32).tissue == BEYOND).all()


@pytest.mark.parametrize(
    ("wanted", "given"),
    [(0, SMALLEST_FIELD_PX), (70, 64), (73, 80), (1e6, LARGEST_FIELD_PX)],
)
def test_crops_have_bounded_widths(wanted, given):
    assert bounded_field_px(wanted) == given
    assert given % FIELD_STEP_PX == 0


def test_another_version_is_dashed_on_top():
    own, other = source(), four_fates().pair.reference
    both = replace(own, beside=(other,))
    one, two = (cut(at, Side.REFERENCE, 2, field_px=32, size_px=64) for at in (own, both))
    is_dash = (two.outlines == OTHER_TEAM_RGBA).all(axis=-1)
    np.testing.assert_array_equal(one.outlines[~is_dash], two.outlines[~is_dash])
    np.testing.assert_array_equal(one.tissue, two.tissue)

    # On the border pixels of its objects, twice as large on the screen, and not on all of them.
    window = other.index[13:45, :26]
    inside = np.zeros((32, 32), np.int32)
    inside[: len(window), 6:32] = window
    large = inside.repeat(2, axis=0).repeat(2, axis=1)
    padded = np.pad(large, 2, mode="edge")
    moved = [
        padded[2 + y : 66 + y, 2 + x : 66 + x]
        for step in (1, 2)
        for y, x in ((step, 0), (-step, 0), (0, step), (0, -step))
    ]
    border = (large > 0) & np.any([neighbour != large for neighbour in moved], axis=0)
    assert is_dash.any()
    assert not (is_dash & ~border).any()
    assert 0.3 < is_dash.sum() / border.sum() < 0.7


def test_crops_of_two_versions_are_read_with_both(cohort):
    region = cohort.regions[0].name
    teams = tuple(team.name for team in cohort.competing_teams[:2])
    found = load_region(cohort, region, EvaluationSettings().replaced(distances=False))
    failures = found.evaluations[teams[1]].outcomes.reference
    name = FailureName(teams[1], region, Side.REFERENCE, int(failures.ids[0]))
    size = CropSize(64, 128)
    for versions, expected in ((None, None), (teams, teams[0]), (("x", "y"), None)):
        shown = FailureSet("", frozenset(), versions)
        reader = CropReader(cohort, EvaluationSettings(), None, shown.outlined)
        crop = reader.crop(name, size)
        reader.close()
        beside = () if expected is None else (found.predictions[expected],)
        live = CropSource(
            found.image,
            found.reference,
            found.predictions[teams[1]],
            found.evaluations[teams[1]].outcomes,
            beside,
        )
        np.testing.assert_array_equal(crop.outlines, crop_of(live, name, size).outlines)
