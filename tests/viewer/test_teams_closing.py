"""A desk that is closed while the canvas shows several teams."""

from unittest.mock import patch

import pytest

from napari_panoptic.viewer.widgets.audit_panel import AuditPart
from napari_panoptic.viewer.widgets.desk import desk_of
from napari_panoptic.viewer.widgets.groups_panel import GroupsPart
from napari_panoptic.viewer.widgets.teams_panel import TeamsPart, ViewMode
from tests.viewer.finding import names_of_visible


@pytest.fixture
def desk(make_napari_viewer, cohort, wait_until):
    """Open two teams beside each other."""
    viewer = make_napari_viewer(show=True)
    with patch("napari_panoptic.viewer.widgets.desk.PARTS", (TeamsPart, AuditPart, GroupsPart)):
        desk = desk_of(viewer)
    desk.show_cohort(cohort)
    wait_until(lambda: desk.is_settled)
    desk.parts[0].set_mode(ViewMode.GRID)
    wait_until(lambda: desk.parts[0].grid.is_on and desk.is_settled)
    return desk


def test_closing_the_desk_brings_the_view_of_one_team_back(desk, qtbot):
    viewer, grid = desk._viewer, desk.parts[0].grid
    desk.close()
    qtbot.wait(20)
    assert not grid.is_on
    assert not viewer.canvas.grid.enabled
    assert names_of_visible(viewer)[:2] == ["image", "reference"]


def test_closing_the_window_touches_nothing_that_is_gone(desk, qtbot):
    """What is left behind, and warnings, make the window's fixture fail."""
    grid = desk.parts[0].grid
    desk._viewer.close()
    qtbot.wait(20)
    assert desk.link is None
    assert not grid.is_on
