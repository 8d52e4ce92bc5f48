"""Layers of a desk cannot be moved, turned or stretched."""

import numpy as np
import pytest
from napari.layers import Labels, Points
from qtpy.QtWidgets import QAbstractButton

from napari_panoptic.viewer.layers import kept_in_place
from napari_panoptic.viewer.layers.kept_in_place import STAYS, keep_in_place
from napari_panoptic.viewer.layers.owned import is_own


@pytest.fixture
def told(monkeypatch):
    told = []
    monkeypatch.setattr(kept_in_place, "show_info", told.append)
    return told


@pytest.mark.parametrize(
    "layer", [Points(np.array([[5.0, 5.0], [20.0, 20.0]])), Labels(np.ones((30, 30), np.uint8))]
)
def test_the_tool_that_moves_a_layer_is_put_down_and_its_button_with_it(
    make_napari_viewer, told, layer
):
    viewer = make_napari_viewer(show=True)
    viewer.add_layer(layer)
    keep_in_place(layer)
    layer.mode = "transform"
    assert str(layer.mode) == "pan_zoom"
    assert told == [STAYS]
    controls = viewer.window._qt_viewer.controls.widgets[layer]
    checked = {
        button.mode
        for button in controls.findChildren(QAbstractButton)
        if hasattr(button, "mode") and button.isChecked()
    }
    assert checked == {"pan_zoom"}
    layer.mode = "select" if isinstance(layer, Points) else "paint"
    assert str(layer.mode) != "pan_zoom"
    assert told == [STAYS]


def test_every_layer_of_the_desk_stays_in_place(desk, told):
    viewer = desk._viewer
    edits = next(part for part in desk.link._parts if part.title == "Edits")
    edits.edits.set_on(True)
    own = [layer for layer in viewer.layers if is_own(layer)]
    assert len(own) >= 3
    for layer in own:
        layer.visible = True
        layer.mode = "transform"
        assert str(layer.mode) == "pan_zoom"
    assert STAYS in told
