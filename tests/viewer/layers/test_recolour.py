import numpy as np
from napari.layers import Labels

from napari_panoptic.nuclei.display.styles import LUT_LENGTH
from napari_panoptic.viewer.layers import recolour


def lut_of(colour):
    lut = np.zeros((LUT_LENGTH, 4), np.float32)
    lut[1:] = colour
    return lut


def layer_of_two():
    return Labels(np.array([[0, 1], [2, 40_000]], np.uint16))


def count_slicing(layer):
    seen = []
    layer.events.set_data.connect(lambda: seen.append(1))
    return seen


def test_every_label_gets_its_own_colour():
    layer = layer_of_two()
    lut = lut_of((0, 0, 0, 1))
    lut[2], lut[40_000] = (1, 0, 0, 1), (0, 1, 0, 1)

    recolour.set_colours(layer, lut)

    assert layer.get_color(2).tolist() == [1, 0, 0, 1]
    assert layer.get_color(40_000).tolist() == [0, 1, 0, 1]


def test_pixels_are_not_sliced_again():
    # Notices when the private name that holds a refresh back is gone.
    layer = layer_of_two()
    seen = count_slicing(layer)

    recolour.set_colours(layer, lut_of((1, 0, 0, 1)))

    assert seen == []


def test_without_the_private_name_colours_still_change():
    class Plain(Labels):
        def __getattribute__(self, name):
            if name == "_block_refresh":
                raise AttributeError(name)
            return super().__getattribute__(name)

    layer = Plain(np.array([[0, 1]], np.uint16))

    recolour.set_colours(layer, lut_of((0, 0, 1, 1)))

    assert layer.get_color(1).tolist() == [0, 0, 1, 1]
