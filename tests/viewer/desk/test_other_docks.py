"""Closing a desk beside the docks of another plugin."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDockWidget, QLabel

from napari_panoptic.samples.write import write_raters_sample
from napari_panoptic.viewer.opening import open_in
from tests.viewer.finding import handle_events
from tests.viewer.in_a_process import run_in_process

pytestmark = pytest.mark.long

LEFT, RIGHT = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea
BOTTOM = Qt.DockWidgetArea.BottomDockWidgetArea

MOVED_MEANWHILE = """
for move in ("float", "bottom"):
    viewer = open_window()
    window = viewer.window._qt_window
    dock = viewer.window.add_dock_widget(QLabel("another plugin"), name="other", area="right")
    draw()
    desk = open_desk(viewer)
    if move == "float":
        dock.setFloating(True)
    else:
        window.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, dock)
    draw()
    desk.close()
    draw()
    assert dock.isVisible(), move
    assert dock.isFloating() == (move == "float"), move
    viewer.close()
    draw()
print("closed")
"""


@pytest.fixture(params=["nuclei", "detections", "raters"])
def folder(request, tmp_path, sample_folder):
    """Give a cohort for each kind of desk."""
    if request.param == "nuclei":
        return sample_folder
    if request.param == "detections":
        return request.getfixturevalue("detection_sample")
    return write_raters_sample(tmp_path / "raters")


@pytest.mark.usefixtures("qtbot")
@pytest.mark.parametrize("kind", ["nuclei", "detections"])
def test_a_desk_closes_after_another_dock_was_floated_or_moved(
    kind, sample_folder, detection_sample, tmp_path
):
    folder = {"nuclei": sample_folder, "detections": detection_sample}[kind]
    assert "closed" in run_in_process(MOVED_MEANWHILE, folder, tmp_path / "around")


def test_docks_that_the_user_hid_or_moved_stay_so(
    make_napari_viewer, folder, close_desk, wait_until
):
    viewer = make_napari_viewer(show=True)
    window = viewer.window._qt_window
    hidden, moved, kept = (
        viewer.window.add_dock_widget(QLabel(name), name=name, area="right")
        for name in ("hidden", "moved", "kept")
    )
    handle_events()
    desk = open_in(viewer, folder)
    wait_until(lambda: desk.is_settled)
    hidden.hide()
    window.addDockWidget(BOTTOM, moved)
    close_desk(desk)
    handle_events()
    assert hidden.isHidden()
    assert window.dockWidgetArea(moved) == BOTTOM
    assert moved.isVisible()
    assert kept.isVisible()
    assert window.dockWidgetArea(kept) == RIGHT


def test_layer_controls_that_the_user_moved_stay_there(
    make_napari_viewer, folder, close_desk, wait_until
):
    viewer = make_napari_viewer(show=True)
    window = viewer.window._qt_window
    controls = window.findChild(QDockWidget, "layer controls")
    desk = open_in(viewer, folder)
    wait_until(lambda: desk.is_settled)
    window.addDockWidget(RIGHT, controls)
    handle_events()
    close_desk(desk)
    assert window.dockWidgetArea(controls) == RIGHT
    assert not controls.isHidden()
