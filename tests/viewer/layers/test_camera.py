"""Where the camera looks to show an object: near the middle, and not beside the image."""

import numpy as np
import pytest
from napari.components import ViewerModel

from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.viewer.layers import camera

SHAPE = (1000, 2000)
CLEAR = camera.CLEAR_ON_SCREEN_PX
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
        ((100, 900, 140, 940), (199.5, 919.5)),  # the view ends at the upper border
        ((860, 1860, 900, 1900), (799.5, 1699.5)),  # at the lower and the right border
        ((0, 900, 40, 940), (200 - CLEAR - 0.5, 919.5)),  # so near that a title would cover it
        ((960, 1960, 1000, 2000), (800 + CLEAR - 0.5, 1700 + CLEAR - 0.5)),
        ((0, 900, 380, 940), (189.5, 919.5)),  # too large to be kept from the edges
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


def test_an_empty_border_is_dropped_unless_it_keeps_an_object_clear_of_the_edge(viewer):
    viewer.scene.camera.center = (0, 0.5 * (900 - 0.5), 0.5 * 1000)
    camera.drop_border(viewer, SHAPE, PIXELS)
    np.testing.assert_allclose(middle_px(viewer), (799.5, 1000))
    camera.centre(viewer, (960, 900, 1000, 940), PIXELS, within=SHAPE)
    before = viewer.scene.camera.center
    camera.drop_border(viewer, SHAPE, PIXELS)
    assert viewer.scene.camera.center == before


def test_an_image_that_is_smaller_than_the_canvas_is_in_the_middle(viewer):
    camera.centre(viewer, (100, 300, 140, 340), PIXELS, within=(300, 2000))
    np.testing.assert_allclose(middle_px(viewer), (149.5, 319.5))


def test_the_border_is_that_at_the_zoom_to_which_an_object_is_enlarged(viewer):
    viewer.scene.camera.zoom = 0.5
    camera.Follow().bring(viewer, (60, 900, 80, 920), PIXELS, within=SHAPE)
    px_on_screen = viewer.scene.camera.zoom * 0.5
    assert px_on_screen == pytest.approx(camera.AIM_ON_SCREEN_PX / 20)
    np.testing.assert_allclose(middle_px(viewer), (69.5, 909.5))


def test_an_origin_of_its_own_moves_the_border_too(viewer):
    pixels = PixelSize((0.5, 0.5), ("micrometer", "micrometer"), (100.0, -50.0))
    camera.centre(viewer, (100, 100, 140, 140), pixels, within=SHAPE)
    np.testing.assert_allclose(viewer.scene.camera.center[-2:], (199.75, 99.75))


def test_an_object_that_can_be_seen_leaves_the_view_alone(viewer):
    before = viewer.scene.camera.center
    camera.centre(viewer, (480, 980, 500, 1000), PIXELS, within=SHAPE, only_if_hidden=True)
    assert viewer.scene.camera.center == before
    camera.centre(viewer, (0, 0, 20, 20), PIXELS, within=SHAPE, only_if_hidden=True)
    np.testing.assert_allclose(middle_px(viewer), (199.5 - CLEAR, 299.5 - CLEAR))
