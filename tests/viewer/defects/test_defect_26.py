"""Edits that were undone under another restoration stayed, in a real window."""

import numpy as np
import pytest

from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter


@pytest.mark.long
def test_defect_26_an_undone_edit_shows_the_files_as_they_are_restored_now(desk, wait_until):
    part = desk.presenter(EditsPresenter)
    part.edits.set_on(True)
    session = desk.session
    labels = session.edited_labels(Side.PREDICTION)
    places = np.nonzero(labels.index == 1)

    def layer_and_ids():
        layer, values = desk.link.scene.object_layer(Side.PREDICTION, session.team)
        return layer, values.ids(np.asarray(layer.data))

    layer, _ = layer_and_ids()
    value = int(np.asarray(layer.data)[places][0])
    layer.data_setitem(places, 0)
    assert session.is_edited(Side.PREDICTION)
    desk.panels.settings.settings_chosen.emit(
        session.settings.replaced(restoration="border-dilated")
    )
    wait_until(lambda: desk.is_settled)
    assert session.is_edited(Side.PREDICTION)
    layer, _ = layer_and_ids()
    layer.data_setitem(places, value)
    wait_until(lambda: desk.is_settled)
    assert not session.is_edited(Side.PREDICTION)
    assert part.edits.unsaved == ()
    _, ids = layer_and_ids()
    assert not np.array_equal(ids, labels.id_image())
    np.testing.assert_array_equal(ids, session.loaded.predictions[session.team].id_image())
    assert session.evaluation is session.loaded.evaluations[session.team]
