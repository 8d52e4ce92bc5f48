"""Copies of the desks' layers belong to the user."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from napari.layers import Layer

from napari_panoptic.display.styles import ColourBy, Look
from napari_panoptic.viewer.opening import open_in
from tests.viewer.finding import FIRST, SECOND

pytestmark = pytest.mark.long


def duplicate(viewer, layer, name):
    """Copy a layer as napari's "Duplicate layer" does."""
    data, options, kind = layer.as_layer_data_tuple()
    copy = Layer.create(deepcopy(data), {**options, "name": name}, kind)
    return viewer.layers.insert(viewer.layers.index(layer) + 1, copy) or copy


def state(layer):
    """Return what must not change in a layer of the user's."""
    colours = layer.colormap.colors.copy() if hasattr(layer, "colormap") else None
    return np.array(layer.data), colours, layer.visible, layer.name, layer.contour


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def go_to(desk, region, wait_until):
    desk.panels.navigator.place_chosen.emit(region)
    wait_until(lambda: desk.is_settled and desk.session.snapshot.region.name == region)


@pytest.fixture
def own_copy(new_desk):
    """Duplicate the layer of the team that is shown."""
    viewer = new_desk.viewer
    return duplicate(viewer, viewer.layers[new_desk.session.team], "my backup")


def test_a_copy_is_not_overwritten_where_the_original_was_deleted(new_desk, own_copy, wait_until):
    viewer, team = new_desk.viewer, new_desk.session.team
    before = state(own_copy)
    viewer.layers.remove(viewer.layers[team])
    go_to(new_desk, SECOND, wait_until)
    assert own_copy in viewer.layers
    assert same(state(own_copy), before)
    assert viewer.layers[team].visible


def test_a_copy_stays_where_the_cohort_lacks_the_team(new_desk, own_copy, cohort, wait_until):
    before, team = state(own_copy), new_desk.session.team
    others = tuple(each for each in cohort.teams if each.name != team)
    new_desk.show_cohort(replace(cohort, teams=others))
    wait_until(lambda: new_desk.is_settled)
    assert team not in new_desk.viewer.layers
    assert own_copy in new_desk.viewer.layers
    assert same(state(own_copy), before)


def test_a_copy_keeps_its_colours(new_desk, own_copy, wait_until):
    before = state(own_copy)
    new_desk.panels.legend.look_chosen.emit(Look(ColourBy.CLASS))
    wait_until(lambda: new_desk.is_settled)
    assert same(state(own_copy), before)


def test_a_copy_that_shares_its_pixels_keeps_them(new_desk, cohort, wait_until):
    """As with `Layer.create(*layer.as_layer_data_tuple())`."""
    viewer, team = new_desk.viewer, new_desk.session.team
    go_to(new_desk, FIRST, wait_until)
    data, options, kind = viewer.layers[team].as_layer_data_tuple()
    copy = viewer.add_layer(Layer.create(data, {**options, "name": "my view"}, kind))
    before = state(copy)
    # The same size: the layer would be filled in place.
    regions = [each.name for each in cohort.regions if each.name != FIRST]
    for region in regions:
        go_to(new_desk, region, wait_until)
        assert same(state(copy), before)


def test_a_copy_stays_seen_when_another_desk_opens(
    new_desk, own_copy, wait_until, detection_sample, close_desk
):
    viewer = new_desk.viewer
    own_copy.visible = True
    before = state(own_copy)
    other = open_in(viewer, detection_sample)
    wait_until(lambda: other.is_settled)
    assert same(state(own_copy), before)
    points = viewer.layers["detections"]
    copy = duplicate(viewer, points, "my points")
    data = copy.data.copy()
    viewer.layers.remove(points)
    other.link.step_frame(1)
    wait_until(lambda: other.is_settled)
    np.testing.assert_array_equal(copy.data, data)
    close_desk(other)


def test_a_slide_that_the_user_opened_is_not_taken_over(window, cohort, wait_until, close_desk):
    viewer = window
    path = next(region.image for region in cohort.regions)
    (mine,) = viewer.open(str(path), plugin="napari-panoptic")
    mine.name = "my slide"
    pixels = np.asarray(mine.data[0] if mine.multiscale else mine.data).copy()
    desk = open_in(viewer, cohort.root)
    wait_until(lambda: desk.is_settled)
    go_to(desk, SECOND, wait_until)
    assert mine in viewer.layers
    now = np.asarray(mine.data[0] if mine.multiscale else mine.data)
    np.testing.assert_array_equal(now, pixels)
    close_desk(desk)
