"""Pictures of marks against slow, obvious ones."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import ndimage

from napari_panoptic.display import marks, styles
from napari_panoptic.display.team_pictures import FP_COLOUR, grid_shape, level_colours
from tests.support.small_pairs import four_fates
from tests.support.vision import VISIONS, difference


class TestOutlines:
    @pytest.mark.parametrize("width", [1, 2, 3])
    def test_they_are_the_object_without_its_erosion(self, width):
        index = four_fates().pair.reference.index
        drawn = marks.outlines(index, width, 4)
        diamond = ndimage.generate_binary_structure(2, 1)
        for label in range(1, 5):
            mask = index == label
            inner = ndimage.binary_erosion(mask, diamond, iterations=width, border_value=1)
            np.testing.assert_array_equal(drawn == label, mask & ~inner)

    def test_each_object_can_have_a_width_of_its_own(self):
        index = four_fates().pair.reference.index
        drawn = marks.outlines(index, np.array([0, 1, 2, 1]), 4)
        assert set(np.unique(drawn)) == {0, 2, 3, 4}


class TestMarks:
    def test_dashes_lie_around_the_objects_in_both_colours(self):
        pair = four_fates().pair
        boxes = np.array([[4, 4, 14, 14]], np.int32)
        drawn = marks.dashed(pair.reference.shape, [(pair.reference, np.array([1]), boxes)])
        assert set(np.unique(drawn)) == {0, marks.MARK, marks.MARK_EDGE}
        assert not drawn[pair.reference.index == 1].any()
        near = ndimage.binary_dilation(pair.reference.index == 1, iterations=3)
        assert not drawn[~near].any()

    @pytest.mark.parametrize("width", [1, 2, 3])
    def test_dashes_are_what_objects_grow_by(self, width):
        pair = four_fates().pair
        labels, shape = pair.reference, pair.reference.shape
        boxes = np.array(
            [
                [b.start for b in s] + [b.stop for b in s]
                for s in ndimage.find_objects(labels.index)
            ],
            np.int32,
        )
        expected = np.zeros(shape, np.uint8)
        y, x = np.indices(shape)
        length = max(3 * width, 3)
        colours = np.where((y // length + x // length) % 2 == 0, marks.MARK, marks.MARK_EDGE)
        for value in range(1, len(labels) + 1):
            mask = labels.index == value
            rim = ndimage.binary_dilation(mask, iterations=width + 1) & ~mask
            expected[rim] = colours[rim]
        values = np.arange(1, len(labels) + 1)
        drawn = marks.dashed(shape, [(labels, values, boxes)], width_px=width)
        np.testing.assert_array_equal(drawn, expected)

    def test_one_ring_goes_around_all_objects_even_at_the_edge(self):
        index = np.zeros((20, 20), np.int32)
        index[0:6, 0:6], index[0:6, 7:12] = 1, 2
        pair = four_fates().pair
        labels = type(pair.reference).from_array(index, {1: "Round", 2: "Round"}, ("Round", "Long"))
        picture = marks.ring_around([(labels, np.array([1, 2]))], (0, 0, 6, 12), ring_px=2)
        y, x = picture.origin_yx_px
        _, rings = ndimage.label(picture.image > 0)
        assert rings == 1
        assert not picture.image[-y : 6 - y, -x : 6 - x].any()


class TestColours:
    @pytest.mark.parametrize("teams", [2, 3, 4, 5, 6])
    @pytest.mark.parametrize("vision", VISIONS)
    def test_numbers_of_teams_can_be_told_apart(self, teams, vision):
        colours = level_colours(teams)
        assert min(difference(a, b, vision) for a, b in pairwise(colours)) >= 8
        assert min(difference(a, FP_COLOUR, vision) for a in colours) >= 15

    @pytest.mark.parametrize("teams", [2, 4, 6])
    def test_they_go_from_light_to_dark(self, teams):
        luma = np.array(level_colours(teams)) @ [0.2126, 0.7152, 0.0722]
        assert (np.diff(luma) < 0).all()


def test_cells_stand_as_the_region_asks_for():
    assert grid_shape(4, (700, 2500), (800, 800)) == (4, 1)
    assert grid_shape(4, (1000, 1000), (800, 800)) == (2, 2)
    assert grid_shape(3, (1000, 200), (800, 800)) == (1, 3)


def test_differences_have_a_true_minus_sign():
    assert styles.signed_text(-0.0123) == "−0.0123"
    assert styles.signed_text(0.5) == "+0.5000"
    assert styles.signed_text(-0.00001) == "0.0000"
    assert styles.signed_text(float("nan")) == "–"
    assert styles.signed_count_text(-3) == "−3"
