"""Layers of the desks: recognised by identity, found again, kept in place and removed."""

import numpy as np
import pytest
from napari.components import ViewerModel
from napari.layers import Image, Labels, Points
from qtpy.QtWidgets import QAbstractButton

from napari_panoptic.viewer.layers import owned
from napari_panoptic.viewer.layers.owned import (
    STAYS,
    OwnedLayers,
    Owner,
    Slot,
    is_own,
    remove_owned,
    set_units,
)
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter


@pytest.fixture
def told(monkeypatch):
    told = []
    monkeypatch.setattr(owned, "show_info", told.append)
    return told


@pytest.mark.parametrize(
    "layer", [Points(np.array([[5.0, 5.0], [20.0, 20.0]])), Labels(np.ones((30, 30), np.uint8))]
)
def test_the_tool_that_moves_a_layer_is_put_down_and_its_button_with_it(
    make_napari_viewer, told, layer
):
    viewer = make_napari_viewer(show=True)
    OwnedLayers(viewer, Owner.DESK, Slot).add("role", layer)
    layer.editable = True  # as labels are while they are edited
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


@pytest.mark.long
def test_every_layer_of_the_desk_stays_in_place(new_desk, told):
    viewer = new_desk.viewer
    new_desk.presenter(EditsPresenter).edits.set_on(True)
    own = [layer for layer in viewer.layers if is_own(layer)]
    assert len(own) >= 3
    for layer in own:
        layer.visible = True
        layer.mode = "transform"
        assert str(layer.mode) == "pan_zoom"
    assert STAYS in told


@pytest.fixture
def viewer():
    return ViewerModel()


@pytest.fixture
def own(viewer):
    return OwnedLayers(viewer, Owner.DESK, Slot)


def labels(name="objects"):
    return Labels(np.ones((8, 8), np.uint16), name=name)


def test_a_layer_is_found_until_the_user_deletes_it(viewer, own):
    slot = own.add("objects", labels())
    assert own.slot("objects") is slot
    assert not slot.layer.editable
    viewer.layers.remove(slot.layer)
    assert own.slot("objects") is None
    assert list(own) == []


def test_a_copy_by_the_user_is_not_own(viewer, own):
    slot = own.add("objects", labels())
    data, options, kind = slot.layer.as_layer_data_tuple()
    copy = viewer._add_layer_from_data(data, options, kind)[0]
    viewer.layers.remove(slot.layer)
    assert own.slot("objects") is None
    assert not is_own(copy)
    remove_owned(viewer)
    assert list(viewer.layers) == [copy]


def test_layers_that_an_earlier_view_left_are_taken_over(viewer, own):
    layer = own.add("objects", labels()).layer
    other = OwnedLayers(viewer, Owner.SLIDE, Slot).add("objects", labels()).layer
    own.release()
    later = OwnedLayers(viewer, Owner.DESK, Slot)
    assert layer not in later
    assert later.layer("objects") is layer
    again = OwnedLayers(viewer, Owner.DESK, Slot)
    again.adopt_all()
    assert [slot.layer for slot in again] == [layer]
    assert other not in again


def test_only_what_others_do_to_an_eye_is_by_hand(own):
    slot = own.add("objects", labels())
    own.set_visible("objects", False)
    own.set_visible("objects", True)
    assert slot.user_visible is None
    slot.layer.visible = False
    assert slot.user_visible is False
    slot.layer.visible = True
    assert slot.user_visible is True
    own.forget_user()
    own.notes_user = False
    slot.layer.visible = False
    assert slot.user_visible is None


def test_a_layer_that_was_put_away_comes_back_with_contents(own):
    slot = own.add("objects", labels())
    own.show_content("objects", "these")
    own.hide_empty("objects")
    assert (slot.content, slot.layer.visible) == (None, False)
    own.show_content("objects", "others")
    assert (slot.content, slot.layer.visible) == ("others", True)


def test_the_active_layer_stays_active(viewer, own):
    mine = viewer.add_layer(labels("mine"))
    own.add("objects", labels(), at=0)
    assert viewer.layers.selection.active is mine
    assert list(viewer.layers)[1] is mine


def test_layers_are_put_in_order_among_those_of_others(viewer, own):
    for role in ("c", "a", "b"):
        own.add(role, labels(role))
        viewer.add_layer(labels("mine"))
    own.arrange(["a", "missing", "b", "c"])
    names = [layer.name for layer in viewer.layers if is_own(layer)]
    assert names == ["a", "b", "c"]


@pytest.mark.long
def test_names_of_the_users_layers_are_not_taken(viewer, own):
    viewer.add_layer(labels("reference"))
    assert own.free_name("reference") == "reference (results)"
    own.add("prediction", labels("prediction"))
    assert own.free_name("prediction") == "prediction"


def test_units_change_on_own_and_on_hidden_layers_only(viewer, own):
    mine, volume = labels("mine"), Image(np.zeros((2, 8, 8)), visible=False)
    viewer.add_layer(mine)
    visible = own.add("objects", labels()).layer
    hidden = OwnedLayers(viewer, Owner.RATERS, Slot).add("image", volume).layer
    other = OwnedLayers(viewer, Owner.SLIDE, Slot).add("objects", labels()).layer
    set_units(viewer, ("micrometer", "micrometer"), Owner.DESK)
    found = {layer: {str(unit) for unit in layer.units} for layer in viewer.layers}
    assert found[visible] == found[hidden] == {"micrometer"}
    assert found[mine] == found[other] == {"pixel"}
