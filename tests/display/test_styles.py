import colorsys
import itertools
import math

import numpy as np
import pytest

from napari_panoptic.display import styles
from napari_panoptic.display.failure_cells import SHARE_ALPHAS, SHARE_COLOURS
from napari_panoptic.display.styles import ColourBy, Display, Look
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import CAUSES, STATUS_CODE, STATUSES, Side, Status
from tests.support.vision import VISIONS, difference, seen_as

LEAST_DIFFERENCE = 20.0
LEAST_DIFFERENCE_OF_SHADES = 10.0
"""Squares lie side by side and above a scale; statuses are told apart by themselves."""


@pytest.fixture(scope="module")
def tissue(nuclei_sample):
    """Give the median colours of nuclei and of what lies between them, per sample region."""
    cohort = open_cohort(nuclei_sample)
    colours = []
    for region in cohort.regions:
        snapshot = load_region(cohort, region.name, EvaluationSettings(distances=False))
        pixels = np.asarray(snapshot.image.levels[0])
        nuclei = snapshot.reference.index > 0
        colours += [np.median(pixels[nuclei], axis=0), np.median(pixels[~nuclei], axis=0)]
    return colours


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(Status, 2)))
def test_any_two_statuses_can_be_told_apart(one, other, vision):
    colours = styles.STATUS_COLOURS
    assert difference(colours[one], colours[other], vision) >= LEAST_DIFFERENCE


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("status", styles.FAILURES)
def test_failures_stand_out_from_nuclei_and_stroma(status, vision, tissue):
    colour = styles.STATUS_COLOURS[status]
    assert min(difference(colour, ground, vision) for ground in tissue) >= LEAST_DIFFERENCE


@pytest.mark.parametrize("vision", VISIONS)
def test_squares_of_failures_are_ordered_and_can_be_told_apart(vision, tissue):
    """Over tissue and over glass: any two shades, and each from where nothing failed."""
    for ground in (*tissue, np.full(3, 240.0)):
        shades = [ground] + [
            alpha * np.array(colour) + (1 - alpha) * ground
            for colour, alpha in zip(SHARE_COLOURS, SHARE_ALPHAS, strict=True)
        ]
        for one, other in itertools.combinations(shades, 2):
            assert difference(one, other, vision) >= LEAST_DIFFERENCE_OF_SHADES
        lightness = [seen_as(shade, vision)[0] for shade in shades[1:]]
        assert (np.diff(lightness) < 0).all()  # the more failures, the darker


def test_the_hues_of_squares_go_one_way():
    hues = [colorsys.rgb_to_hsv(*(part / 255 for part in colour))[0] for colour in SHARE_COLOURS]
    assert hues == sorted(hues)


def test_the_measure_agrees_with_a_published_pair():
    # Sharma, Wu and Dalal 2005 test the formula; here: white and black differ by 100.
    assert difference((255, 255, 255), (0, 0, 0), "normal") == pytest.approx(100, abs=0.1)


def test_status_lut_colours_every_label_and_nothing_else():
    status = np.array([STATUS_CODE[s] for s in (Status.FN, Status.TP)], np.int8)

    lut = styles.status_lut(status)

    assert lut.shape == (styles.LUT_LENGTH, 4)
    assert lut.dtype == np.float32
    assert not lut[0].any()
    assert not lut[3:].any()
    np.testing.assert_allclose(lut[1, :3] * 255, styles.STATUS_COLOURS[Status.FN], atol=1e-3)
    np.testing.assert_allclose(lut[2, :3] * 255, styles.STATUS_COLOURS[Status.TP], atol=1e-3)


def test_failures_are_opaque():
    table = styles.status_colour_table()
    assert [table[STATUS_CODE[status], 3] for status in styles.FAILURES] == [1, 1, 1]


def test_class_lut_takes_the_colours_of_the_scheme():
    lut = styles.class_lut(np.array([2, 1], np.int16), ((255, 0, 0), (0, 0, 255)))
    assert lut[1].tolist() == [0, 0, 1, 1]
    assert lut[2].tolist() == [1, 0, 0, 1]


def test_neutral_lut_of_no_objects_is_transparent():
    assert not styles.neutral_lut(0).any()


@pytest.mark.parametrize("zoom", [0.1, 0.6, 1.0, 1.5, 2.0, 8.0])
def test_reference_outlines_are_heavier(zoom):
    look = Look()
    assert look.contour(Side.REFERENCE, zoom) > look.contour(Side.PREDICTION, zoom) >= 1


def test_outlines_are_heavier_from_far_away():
    look = Look()
    assert look.contour(Side.PREDICTION, 0.5) > look.contour(Side.PREDICTION, 4.0)


def test_filled_objects_have_no_contour_and_let_tissue_through():
    look = Look(ColourBy.STATUS, Display.FILL)
    assert look.contour(Side.REFERENCE) == 0
    assert look.opacity < 1


def test_only_filled_objects_have_an_opacity_of_their_own():
    assert Look(display=Display.FILL, fill_opacity=0.3).opacity == 0.3
    assert Look(display=Display.OUTLINE, fill_opacity=0.3).opacity == 1
    for impossible in (0.0, 1.01, math.nan):
        with pytest.raises(ValueError, match="expected an opacity"):
            Look(fill_opacity=impossible)


def test_display_goes_round():
    assert Display.OUTLINE.following.following.following is Display.OUTLINE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (styles.ratio_text(0.12345), "0.123"),
        (styles.ratio_text(math.nan), "–"),
        (styles.length_text(1234.56), "1\u2009234.6\u2009px"),
        (styles.length_text(2.0, "µm"), "2.0\u2009µm"),
        (styles.length_text(math.nan), "–"),
        (styles.decimal_text(1000.25), "1\u2009000.2"),
        (styles.decimal_text(math.nan), "–"),
        (styles.count_text(17158), "17\u2009158"),
        (styles.short_count_text(9999), "9\u2009999"),
        (styles.short_count_text(10_000), "10k"),
        (styles.short_count_text(999_499), "999k"),
        (styles.short_count_text(999_500), "1.0M"),
        (styles.short_count_text(1_234_567), "1.2M"),
        (styles.hex_colour((0, 15, 255)), "#000fff"),
    ],
)
def test_numbers_are_written_for_people(text, expected):
    assert text == expected


def test_every_word_is_explained():
    assert set(styles.STATUS_MEANINGS) == set(STATUSES) == set(styles.STATUS_COLOURS)
    assert set(styles.CAUSE_MEANINGS) == set(CAUSES)


def test_lines_have_the_width_that_the_user_chose() -> None:
    assert Look().line_px(Side.REFERENCE) == 2.5
    assert Look().line_px(Side.PREDICTION) == 1.5
    chosen = Look(reference_line_px=3, prediction_line_px=2)
    assert [chosen.line_px(side) for side in (Side.REFERENCE, Side.PREDICTION)] == [3, 2]


@pytest.mark.parametrize("width", [0.0, 7.0, float("nan")])
def test_lines_of_other_widths_are_refused(width: float) -> None:
    with pytest.raises(ValueError, match="width"):
        Look(reference_line_px=width)
