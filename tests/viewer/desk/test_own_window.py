"""A window that the program opened itself, not a guest in the user's napari."""

from qtpy.QtWidgets import QDockWidget

from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.desk.window import mark_own
from napari_panoptic.viewer.desk.workspaces import WorkspaceBar
from napari_panoptic.viewer.kit.widgets import is_in_sight


def test_in_a_window_of_its_own_the_layer_list_is_closed_until_wanted(
    make_napari_viewer, cohort, close_desk, wait_until
):
    viewer = make_napari_viewer(show=True)
    mark_own(viewer)
    desk = desk_of(viewer)
    desk.show_cohort(cohort)
    wait_until(lambda: desk.is_settled and desk.is_arranged)
    window = desk.strip.window()
    layer_list = next(d for d in window.findChildren(QDockWidget) if d.objectName() == "layer list")
    for workspace in desk.workspaces:
        desk.show_workspace(workspace.name)
        assert not layer_list.isVisible()
    desk.show_workspace("Inspect")
    bar = desk.strip.findChild(WorkspaceBar)
    button = bar.button("Layers")
    assert bar.leave.isHidden()
    button.click()
    wait_until(lambda: is_in_sight(layer_list))
    button.click()
    wait_until(lambda: not is_in_sight(layer_list))
    close_desk(desk)
