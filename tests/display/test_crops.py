from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage

from napari_panoptic.display.crop_reader import CropReader, CropSize, crop_of
from napari_panoptic.display.crops import (
    BEYOND,
    FIELD_STEP_PX,
    LARGEST_FIELD_PX,
    OTHER_TEAM_RGBA,
    SMALLEST_FIELD_PX,
    CropSource,
    OtherTeam,
    bounded_field_px,
    cut,
)
from napari_panoptic.display.styles import STATUS_COLOURS
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Status
from tests.support.small_pairs import four_fates


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


def width_of(crop, colour, alpha=255):
    """Return the width of the line that the middle row crosses first left of the middle."""
    size = len(crop.outlines)
    middle = crop.outlines[size // 2, size // 4 : size // 2].astype(float)
    # What is not white in the blue of these colours is line.
    blue = colour[2]
    return float((middle[:, 3] / alpha * (255 - middle[:, 2]) / (255 - blue)).sum())


@pytest.mark.parametrize("per_point", [1.0, 2.0])
def test_the_reference_is_drawn_heavier_and_the_object_itself_too(per_point):
    wanted = {Side.REFERENCE: 2.5, Side.PREDICTION: 1.5}
    for side, status in ((Side.REFERENCE, Status.FN), (Side.PREDICTION, Status.FP)):
        crop = cut(source(), side, 2, field_px=32, size_px=256, per_point=per_point)
        found = width_of(crop, STATUS_COLOURS[status])
        assert found == pytest.approx(per_point * (wanted[side] + 1), abs=0.1)


def test_what_does_not_touch_the_object_is_fainter():
    crop = cut(source(), Side.PREDICTION, 2, field_px=48, size_px=288)
    assert STATUS_COLOURS[Status.FP] in colours(crop)
    assert STATUS_COLOURS[Status.FN] not in colours(crop)
    assert STATUS_COLOURS[Status.FN] in colours(crop, alpha=int(255 * 0.45))


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
    own, pair = source(), four_fates().pair
    other = OtherTeam(pair.reference, four_fates().outcomes.reference.bbox)
    both = replace(own, beside=(other,))
    one, two = (cut(at, Side.REFERENCE, 2, field_px=32, size_px=128) for at in (own, both))
    is_dash = (two.outlines != one.outlines).any(axis=-1)
    np.testing.assert_array_equal(one.tissue, two.tissue)

    # Within a pixel and a half of the borders of its objects, on half of them.
    window = pair.reference.index[13:45, :26]
    inside = np.zeros((32, 32), np.int32)
    inside[: len(window), 6:32] = window
    large = inside.repeat(4, axis=0).repeat(4, axis=1)
    is_edge = np.zeros(large.shape, bool)
    is_edge[1:] |= large[1:] != large[:-1]
    is_edge[:, 1:] |= large[:, 1:] != large[:, :-1]
    nearly_white = np.array(OTHER_TEAM_RGBA[:3]) - 30
    assert (two.outlines[is_dash][:, :3] > nearly_white).all(axis=1).any()
    assert not (is_dash & ~ndimage.binary_dilation(is_edge, iterations=4)).any()
    assert 0.3 < is_dash.sum() / (3 * is_edge.sum()) < 0.7


def test_crops_of_two_versions_are_read_with_both(small_cohort):
    region = small_cohort.regions[0].name
    teams = tuple(team.name for team in small_cohort.competing_teams[:2])
    found = load_region(small_cohort, region, EvaluationSettings().replaced(distances=False))
    failures = found.evaluations[teams[1]].outcomes.reference
    name = FailureName(teams[1], region, Side.REFERENCE, int(failures.ids[0]))
    size = CropSize(64, 128)
    for versions, expected in ((None, None), (teams, teams[0]), (("x", "y"), None)):
        shown = FailureSet("", frozenset(), versions)
        reader = CropReader(small_cohort, EvaluationSettings(), None, shown.outlined)
        crop = reader.crop(name, size)
        reader.close()
        beside = () if expected is None else (OtherTeam.of(found.evaluations[expected]),)
        live = CropSource(
            found.image,
            found.reference,
            found.predictions[teams[1]],
            found.evaluations[teams[1]].outcomes,
            beside,
        )
        np.testing.assert_array_equal(crop.outlines, crop_of(live, name, size).outlines)
