"""Edits that are undone and redone, also under another restoration."""

import numpy as np
import pytest

from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter

pytestmark = pytest.mark.long


@pytest.fixture
def painted(new_desk):
    """Give the layer of the team's objects, ready to be painted on, and its panel."""
    part = new_desk.presenter(EditsPresenter)
    new_desk.raise_part(part)
    part.edits.set_on(True)
    part.edits.start_new_object()
    return new_desk.link.scene.object_layer(Side.PREDICTION, new_desk.session.team)[0], part


def class_at(desk, y, x):
    labels = desk.session.edited_labels(Side.PREDICTION)
    return labels.class_names_of_objects()[labels.index[y, x] - 1] if labels.index[y, x] else None


def free_pixel(desk):
    """Find a pixel far from all objects."""
    index = desk.session.edited_labels(Side.PREDICTION).index
    return next(
        (int(y), int(x))
        for y in range(10, 200)
        for x in range(10, 200)
        if not index[y - 6 : y + 6, x - 6 : x + 6].any()
    )


def test_undo_and_redo_bring_back_the_class_of_the_time(new_desk, painted):
    layer, part = painted
    y, x = free_pixel(new_desk)
    label = layer.selected_label
    part.edits.chosen_class = "Epithelial"
    layer.paint((y, x), label)
    assert class_at(new_desk, y, x) == "Epithelial"
    part.undo()
    assert class_at(new_desk, y, x) is None
    part.edits.chosen_class = "Macrophage"
    part.undo(redo=True)
    assert class_at(new_desk, y, x) == "Epithelial"
    part.undo()
    layer.paint((y, x), label)  # the same label, drawn again
    assert class_at(new_desk, y, x) == "Macrophage"
    part.undo()
    assert not new_desk.session.is_edited(Side.PREDICTION)


def test_objects_of_the_files_keep_their_class(new_desk, painted):
    layer, part = painted
    labels = new_desk.session.edited_labels(Side.PREDICTION)
    row = int(np.bincount(labels.index.ravel())[1:].argmax())
    name = labels.class_names_of_objects()[row]
    places = np.nonzero(labels.index == row + 1)
    value = int(np.asarray(layer.data)[places][0])
    y, x = int(places[0][0]), int(places[1][0])
    part.edits.chosen_class = next(n for n in labels.class_names if n != name)
    layer.data_setitem(places, 0)
    assert class_at(new_desk, y, x) is None
    layer.data_setitem(places, value)
    assert class_at(new_desk, y, x) == name
    assert not new_desk.session.is_edited(Side.PREDICTION)


def test_an_undone_edit_shows_the_files_as_they_are_restored_now(new_desk, wait_until):
    part = new_desk.presenter(EditsPresenter)
    part.edits.set_on(True)
    session = new_desk.session
    labels = session.edited_labels(Side.PREDICTION)
    places = np.nonzero(labels.index == 1)

    def layer_and_ids():
        layer, values = new_desk.link.scene.object_layer(Side.PREDICTION, session.team)
        return layer, values.ids(np.asarray(layer.data))

    layer, _ = layer_and_ids()
    value = int(np.asarray(layer.data)[places][0])
    layer.data_setitem(places, 0)
    assert session.is_edited(Side.PREDICTION)
    new_desk.panels.settings.settings_chosen.emit(
        session.settings.replaced(restoration="border-dilated")
    )
    wait_until(lambda: new_desk.is_settled)
    assert session.is_edited(Side.PREDICTION)
    layer, _ = layer_and_ids()
    layer.data_setitem(places, value)
    wait_until(lambda: new_desk.is_settled)
    assert not session.is_edited(Side.PREDICTION)
    assert part.edits.unsaved == ()
    _, ids = layer_and_ids()
    assert not np.array_equal(ids, labels.id_image())
    np.testing.assert_array_equal(ids, session.loaded.predictions[session.team].id_image())
    assert session.evaluation is session.loaded.evaluations[session.team]
