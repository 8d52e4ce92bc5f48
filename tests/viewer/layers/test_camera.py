"""Where the camera looks to show an object: near the middle, and not beside the image."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from napari.components import ViewerModel

from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.viewer.layers import camera

SHAPE = (1000, 2000)
PIXELS = PixelSize.from_mpp(0.5)


@pytest.fixture
def viewer():
    """Give a viewer that shows 400 x 600 px of an image of 1000 x 2000 px in its middle."""
    viewer = ViewerModel()
    viewer.canvas.size = (400, 600)
    viewer.scene.camera.zoom = 2.0
    viewer.scene.camera.center = (0, 250, 500)
    return viewer


def middle_px(viewer):
    return np.array(viewer.scene.camera.center[-2:]) / 0.5


@pytest.mark.parametrize(
    ("box", "middle"),
    [
        ((300, 900, 340, 940), (319.5, 919.5)),  # far from the border
        ((140, 900, 180, 940), (199.5, 919.5)),  # the view ends at the upper border
        ((800, 1740, 840, 1780), (799.5, 1699.5)),  # at the lower and the right border
        ((0, 900, 40, 940), (19.5 + 140 / 3, 919.5)),  # at the upper edge of the middle third
        ((960, 1960, 1000, 2000), (979.5 - 140 / 3, 1979.5 - 80)),
        ((0, 900, 380, 940), (189.5, 919.5)),  # too large for the middle third
    ],
)
def test_a_box_is_shown_as_near_to_the_middle_as_the_border_allows(viewer, box, middle):
    camera.centre(viewer, box, PIXELS, within=SHAPE)
    np.testing.assert_allclose(middle_px(viewer), middle)
    assert viewer.scene.camera.zoom == 2.0
    camera.Follow().bring(viewer, box, PIXELS, within=SHAPE)
    if viewer.scene.camera.zoom == 2.0:  # this one leaves a zoom that suits the box
        np.testing.assert_allclose(middle_px(viewer), middle)
    camera.centre(viewer, box, PIXELS)
    y0, x0, y1, x1 = box
    np.testing.assert_allclose(middle_px(viewer), ((y0 + y1 - 1) / 2, (x0 + x1 - 1) / 2))


@settings(max_examples=100, deadline=None)
@given(
    top=st.integers(0, 980),
    left=st.integers(0, 1980),
    size=st.integers(1, 20),
    zoom=st.floats(0.2, 20),
)
def test_an_object_is_in_the_middle_third_of_the_canvas(top, left, size, zoom):
    viewer = ViewerModel()
    viewer.canvas.size = (400, 600)
    viewer.scene.camera.zoom = zoom
    box = (top, left, top + size, left + size)
    for show in (camera.centre, camera.Follow().bring):
        show(viewer, box, PIXELS, within=SHAPE)
        middle, px = np.array(viewer.scene.camera.center[-2:]), viewer.scene.camera.zoom
        canvas = np.array([400, 600])
        corners = np.array([box[:2], box[2:]], float) - 0.5
        on_screen = (corners * 0.5 - middle) * px + canvas / 2
        if (np.diff(on_screen, axis=0) <= canvas / 3).all():
            assert (on_screen >= canvas / 3 - 1e-3).all()
            assert (on_screen <= canvas * 2 / 3 + 1e-3).all()
        # No wider border than that needs.
        shown = np.stack([-canvas / 2, canvas / 2]) / px + middle
        beyond = np.stack([-0.25 - shown[0], shown[1] - (np.array(SHAPE) * 0.5 - 0.25)])
        assert (
            beyond <= np.maximum(canvas / 3 / px, canvas / px - np.array(SHAPE) * 0.5) + 1e-3
        ).all()


def test_an_empty_border_is_dropped_unless_it_keeps_an_object_clear_of_the_edge(viewer):
    viewer.scene.camera.center = (0, 0.5 * (950 - 0.5), 0.5 * 1000)
    camera.drop_border(viewer, SHAPE, PIXELS)
    np.testing.assert_allclose(middle_px(viewer), (799.5, 1000))
    camera.centre(viewer, (960, 900, 1000, 940), PIXELS, within=SHAPE)
    before = viewer.scene.camera.center
    camera.drop_border(viewer, SHAPE, PIXELS)
    assert viewer.scene.camera.center == before


def test_an_image_that_is_smaller_than_the_canvas_is_in_the_middle(viewer):
    camera.centre(viewer, (130, 300, 170, 340), PIXELS, within=(300, 2000))
    np.testing.assert_allclose(middle_px(viewer), (149.5, 319.5))


def test_the_border_is_that_at_the_zoom_to_which_an_object_is_enlarged(viewer):
    viewer.scene.camera.zoom = 0.5
    camera.Follow().bring(viewer, (60, 900, 80, 920), PIXELS, within=SHAPE)
    px_on_screen = viewer.scene.camera.zoom * 0.5
    assert px_on_screen == pytest.approx(camera.AIM_ON_SCREEN_PX / 20)
    np.testing.assert_allclose(middle_px(viewer), (69.5, 909.5))


def test_an_origin_of_its_own_moves_the_border_too(viewer):
    pixels = PixelSize((0.5, 0.5), ("micrometer", "micrometer"), (100.0, -50.0))
    camera.centre(viewer, (150, 240, 190, 280), pixels, within=SHAPE)
    np.testing.assert_allclose(viewer.scene.camera.center[-2:], (199.75, 99.75))


def test_an_object_that_can_be_seen_leaves_the_view_alone(viewer):
    before = viewer.scene.camera.center
    camera.centre(viewer, (480, 980, 500, 1000), PIXELS, within=SHAPE, only_if_hidden=True)
    assert viewer.scene.camera.center == before
    camera.centre(viewer, (0, 0, 20, 20), PIXELS, within=SHAPE, only_if_hidden=True)
    np.testing.assert_allclose(middle_px(viewer), (9.5 + 170 / 3, 9.5 + 90))
