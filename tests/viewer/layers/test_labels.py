"""Labels layers that change in one go show what the same changes one by one show."""

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers import Labels

from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.viewer.layers.labels import drawn_once, label_colours, put_data, set_colours
from tests.viewer.finding import lut_of

WHOLE, HALF = PixelSize.from_mpp(None), PixelSize.from_mpp(0.5)
WIDE, TALL = np.zeros((40, 60), np.uint16), np.zeros((70, 30), np.uint16)
WIDE[5:20, 5:30] = 1
TALL[10:60, 5:20] = 2
TALL[0:8, 20:30] = 300


def colours():
    lut = np.zeros((65535, 4), np.float32)
    lut[1], lut[2], lut[300] = (1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1)
    return label_colours(lut)


@pytest.fixture
def viewer():
    viewer = ViewerModel()
    viewer.add_layer(Labels(WIDE.copy(), colormap=colours()))
    return viewer


class TestData:
    def test_data_and_outlines_are_sliced_once(self, viewer):
        layer, sliced = viewer.layers[0], []
        layer.events.set_data.connect(lambda _event: sliced.append(layer.contour))
        with drawn_once(layer):
            put_data(layer, TALL, WHOLE)
            layer.contour = 2
        assert sliced == [2]  # notices when the private name that holds slicing back is gone
        assert np.array_equal(layer._slice.image.raw, TALL)
        assert not layer.editable

    @pytest.mark.parametrize("is_seen", [True, False])
    @pytest.mark.parametrize("pixels", [WHOLE, HALF])
    def test_the_viewer_knows_how_far_the_new_data_reach(self, viewer, is_seen, pixels):
        layer = viewer.layers[0]
        assert tuple(viewer.layers.extent.world[1]) == (39, 59)
        layer.visible = is_seen
        with drawn_once(layer):
            put_data(layer, TALL, pixels)
        assert tuple(layer.scale) == pixels.scale
        reach = np.array([69, 29]) * pixels.scale
        assert np.array_equal(viewer.layers.extent.world[1], reach)

    @pytest.mark.long
    def test_data_of_another_type_are_told(self, viewer):
        layer, told = viewer.layers[0], []
        layer.events.data.connect(told.append)
        with drawn_once(layer):
            put_data(layer, TALL, HALF)
        assert not told
        with drawn_once(layer):
            put_data(layer, WIDE.astype(np.int32), HALF)
        assert len(told) == 1

    @pytest.mark.long
    def test_the_window_shows_what_it_shows_of_a_new_layer(self, make_napari_viewer):
        viewer = make_napari_viewer(show=True)
        layer = viewer.add_layer(Labels(WIDE.copy(), colormap=colours(), opacity=1))
        viewer.screenshot()
        with drawn_once(layer):
            put_data(layer, TALL, HALF)
            layer.contour = 1
        viewer.reset_view()
        shown = viewer.screenshot()
        viewer.layers.clear()
        fresh = Labels(TALL, colormap=colours(), opacity=1, scale=HALF.scale, units=HALF.units)
        fresh.contour = 1
        viewer.add_layer(fresh)
        viewer.reset_view()
        assert np.array_equal(shown, viewer.screenshot())
        assert (shown[..., :3] == (0, 0, 255)).all(-1).any()


class TestColours:
    def test_every_label_gets_its_own_colour(self):
        layer = Labels(np.array([[0, 1], [2, 40_000]], np.uint16))
        lut = lut_of((0, 0, 0, 1))
        lut[2], lut[40_000] = (1, 0, 0, 1), (0, 1, 0, 1)
        set_colours(layer, lut)
        assert layer.get_color(2).tolist() == [1, 0, 0, 1]
        assert layer.get_color(40_000).tolist() == [0, 1, 0, 1]

    def test_pixels_are_not_sliced_again(self):
        layer, sliced = Labels(np.array([[0, 1]], np.uint16)), []
        layer.events.set_data.connect(sliced.append)
        set_colours(layer, lut_of((1, 0, 0, 1)))
        assert sliced == []
