"""Where the camera looks to show an object: near the middle, and not beside the image."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from napari.components import ViewerModel

from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.viewer.layers import camera
from tests.support.examples import examples

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
        ((0, 900, 40, 940), (199.5, 919.5)),
        ((960, 1960, 1000, 2000), (799.5, 1699.5)),  # in the lower right corner
        ((0, 900, 380, 940), (199.5, 919.5)),
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


@settings(max_examples=examples(100), deadline=None)
@given(
    top=st.integers(0, 980),
    left=st.integers(0, 1980),
    size=st.integers(1, 20),
    zoom=st.floats(0.2, 20),
)
def test_an_object_is_shown_whole_and_no_empty_border_beside_the_image(top, left, size, zoom):
    viewer = ViewerModel()
    viewer.canvas.size = (400, 600)
    viewer.scene.camera.zoom = zoom
    viewer.scene.camera.center = (0, -1e5, -1e5)  # far from the image
    box = (top, left, top + size, left + size)
    for show in (camera.centre, camera.Follow().bring):
        show(viewer, box, PIXELS, within=SHAPE)
        middle, px = np.array(viewer.scene.camera.center[-2:]), viewer.scene.camera.zoom
        half = np.array([400, 600]) / px / 2
        corners = (np.array([box[:2], box[2:]], float) - 0.5) * 0.5
        if (np.diff(corners, axis=0) <= 2 * half).all():
            assert (corners[0] >= middle - half - 1e-3).all()
            assert (corners[1] <= middle + half + 1e-3).all()
        beyond = np.stack([-0.25 - (middle - half), middle + half - (np.array(SHAPE) * 0.5 - 0.25)])
        # An image that is smaller than the canvas is in its middle.
        assert (beyond <= np.maximum(2 * half - np.array(SHAPE) * 0.5, 0) / 2 + 1e-3).all()


@pytest.mark.parametrize(
    ("box", "is_kept"),
    [
        ((460, 960, 500, 1000), True),
        ((345, 960, 385, 1000), True),  # 45 px below the upper edge of the view
        ((335, 960, 375, 1000), False),  # only 35 px
    ],
)
def test_the_view_stays_where_an_object_and_its_neighbourhood_are_in_sight(viewer, box, is_kept):
    before = viewer.scene.camera.center
    viewer.scene.camera.zoom = 4.0
    viewer.canvas.size = (800, 1200)  # the same pixels
    for show in (camera.centre, camera.Follow().bring):
        show(viewer, box, PIXELS, within=SHAPE)
        assert viewer.scene.camera.zoom == 4.0
        assert (viewer.scene.camera.center == before) is is_kept
        viewer.scene.camera.center = before


def test_an_empty_border_is_dropped(viewer):
    viewer.scene.camera.center = (0, 0.5 * (950 - 0.5), 0.5 * 1000)
    camera.drop_border(viewer, SHAPE, PIXELS)
    np.testing.assert_allclose(middle_px(viewer), (799.5, 1000))


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
    np.testing.assert_allclose(middle_px(viewer), (199.5, 299.5))
