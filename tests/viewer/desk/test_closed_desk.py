"""What a closed desk leaves in a window that the user goes on using."""

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDockWidget

from napari_panoptic.samples.write import write_raters_sample
from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.opening import open_in
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from tests.support.small_cohort import write_cohort
from tests.viewer.finding import handle_events

pytestmark = pytest.mark.long


@pytest.fixture(params=["nuclei", "detections", "raters"])
def folder(request, tmp_path):
    """Give a cohort for each kind of desk."""
    if request.param == "nuclei":
        return write_cohort(tmp_path / "nuclei")
    if request.param == "detections":
        return request.getfixturevalue("detection_sample")
    return write_raters_sample(tmp_path / "raters")


def _arrangement(window):
    docks = {dock.objectName(): dock for dock in window.findChildren(QDockWidget)}
    controls, layer_list = docks["layer controls"], docks["layer list"]
    corners = [window.corner(corner) for corner in Qt.Corner]
    area = Qt.DockWidgetArea.RightDockWidgetArea
    return {
        "tabs": window.tabifiedDockWidgets(layer_list),
        "order": controls.y() < layer_list.y(),
        "visible": (controls.isVisible(), layer_list.isVisible()),
        "corners": corners,
        "side of tabs": window.tabPosition(area),
    }


def test_a_closed_desk_leaves_the_window_as_it_was(
    make_napari_viewer, folder, close_desk, wait_until
):
    viewer = make_napari_viewer(show=True)
    window = viewer.window._qt_window
    theirs = viewer.add_labels(np.ones((30, 30), "u2"), name="theirs")
    handle_events()
    before = _arrangement(window)
    drags, moves = list(viewer.mouse_drag_callbacks), list(viewer.mouse_move_callbacks)
    axis_labels, callbacks = viewer.dims.axis_labels, len(theirs.events.visible.callbacks)
    desk = open_in(viewer, folder)
    wait_until(lambda: desk.is_settled)
    assert len(viewer.layers) > 2
    close_desk(desk)
    handle_events()
    assert list(viewer.layers) == [theirs]
    assert not viewer.canvas.overlays.scale_bar.visible
    assert viewer.dims.axis_labels == axis_labels
    assert len(theirs.events.visible.callbacks) == callbacks
    assert viewer.mouse_drag_callbacks == drags
    assert viewer.mouse_move_callbacks == moves
    assert _arrangement(window) == before
    theirs.mode = "transform"
    assert theirs.mode == "transform"


def test_a_copy_that_the_user_made_stays_and_can_be_moved(
    make_napari_viewer, folder, close_desk, wait_until
):
    viewer = make_napari_viewer(show=True)
    desk = open_in(viewer, folder)
    wait_until(lambda: desk.is_settled)
    original = viewer.layers[0]
    copy = type(original).create(*original.as_layer_data_tuple())
    copy.name = "my copy"
    viewer.add_layer(copy)
    close_desk(desk)
    assert list(viewer.layers) == [copy]
    copy.mode = "transform"
    assert copy.mode == "transform"


def test_the_slice_is_right_beside_a_layer_with_more_axes(
    make_napari_viewer, close_desk, wait_until, tmp_path
):
    viewer = make_napari_viewer(show=True)
    viewer.add_image(np.zeros((5, 3, 20, 20)), name="theirs", scale=(1, 0.5, 1, 1))
    desk = open_in(viewer, write_raters_sample(tmp_path / "raters"))
    wait_until(lambda: desk.is_settled and desk.view is not None)
    n_slices = len(desk.view.picture.votes)
    assert n_slices > 2
    for number in (0, n_slices - 1, 1):
        desk.slices.strip.slice_chosen.emit(number)
        assert desk.scene.slice_number == number
        votes = viewer.layers["disagreement of the raters"]
        assert round(votes.world_to_data(viewer.dims.point)[0]) == number
    close_desk(desk)


def test_the_image_of_the_desk_is_active_when_editing_ends(
    make_napari_viewer, cohort, close_desk, wait_until
):
    viewer = make_napari_viewer(show=True)
    theirs = viewer.add_image(np.zeros((30, 30)), name="image")
    desk = desk_of(viewer)
    desk.show_cohort(cohort)
    wait_until(lambda: desk.is_settled)
    edits = desk.presenter(EditsPresenter)
    edits.edits.set_on(True)
    edits.edits.set_on(False)
    active = viewer.layers.selection.active
    assert active is not theirs
    assert active.name.startswith("image")
    close_desk(desk)
