"""A desk that is closed while the canvas shows several teams."""

import gc
from unittest.mock import patch

import pytest

from napari_panoptic.viewer.desk.nuclei import REGION_QUESTIONS, desk_of
from napari_panoptic.viewer.panels.teams import TeamsPresenter
from napari_panoptic.viewer.state.preferences import ViewMode
from tests.viewer.finding import handle_events

PARTS = tuple(REGION_QUESTIONS.values())


@pytest.fixture
def grid_desk(make_napari_viewer, cohort, wait_until):
    """Open two teams beside each other."""
    viewer = make_napari_viewer(show=True)
    with patch("napari_panoptic.viewer.desk.nuclei.PARTS", PARTS):
        desk = desk_of(viewer)
    desk.show_cohort(cohort)
    wait_until(lambda: desk.is_settled)
    desk.presenter(TeamsPresenter).set_mode(ViewMode.GRID)
    wait_until(lambda: desk.presenter(TeamsPresenter).grid.is_on and desk.is_settled)
    return desk


def test_closing_the_desk_brings_the_view_of_one_team_back(grid_desk):
    viewer, grid = grid_desk.viewer, grid_desk.presenter(TeamsPresenter).grid
    grid_desk.close()
    handle_events()
    assert not grid.is_on
    assert not viewer.canvas.grid.enabled
    assert list(viewer.layers) == []


@pytest.mark.long
@pytest.mark.parametrize("mode", [ViewMode.ONE, ViewMode.CONSENSUS])
def test_closing_the_desk_leaves_no_layer_of_a_cell_that_was_left(grid_desk, mode):
    viewer, teams = grid_desk.viewer, grid_desk.presenter(TeamsPresenter)
    cells = [teams.grid.layer(team, "objects") for team in teams.grid.teams]
    teams.set_mode(mode)
    grid_desk.close()
    handle_events()
    assert not any(layer in viewer.layers for layer in cells)


@pytest.mark.long
def test_closing_the_window_touches_nothing_that_is_gone(grid_desk):
    """What is left behind, and warnings, make the window's fixture fail."""
    grid = grid_desk.presenter(TeamsPresenter).grid
    grid_desk.viewer.close()
    handle_events()
    assert grid_desk.link is None
    assert not grid.is_on


@pytest.mark.long
def test_a_desk_does_not_keep_its_window_alive(make_napari_viewer, cohort, wait_until):
    """A window that only the end of the interpreter destroys makes PyQt crash there."""
    viewer = make_napari_viewer(show=True)
    desk = desk_of(viewer)
    desk.show_cohort(cohort)
    wait_until(lambda: desk.is_settled)
    window = viewer.window._qt_window
    others = [holder for holder in gc.get_referrers(window) if type(holder) is dict]
    assert [holder for holder in others if holder is not vars(viewer.window)] == []
