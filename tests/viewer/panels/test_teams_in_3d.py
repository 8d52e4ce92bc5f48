"""Teams beside each other in a window whose display is 3-D."""

from unittest.mock import patch

import pytest

from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.panels.teams import TeamsPresenter
from napari_panoptic.viewer.state.preferences import ViewMode

pytestmark = pytest.mark.long


@pytest.fixture
def teams_desk(make_napari_viewer, cohort, close_desk, wait_until):
    viewer = make_napari_viewer(show=True)
    with patch("napari_panoptic.viewer.desk.nuclei.PARTS", (TeamsPresenter,)):
        desk = desk_of(viewer)
    desk.show_cohort(cohort)
    wait_until(lambda: desk.is_settled)
    yield desk
    close_desk(desk)


def test_side_by_side_switches_the_display_to_2d(teams_desk, wait_until):
    viewer, teams = teams_desk.viewer, teams_desk.presenter(TeamsPresenter)
    before = list(viewer.layers)
    viewer.dims.ndisplay = 3
    teams.set_mode(ViewMode.GRID)
    wait_until(lambda: teams_desk.is_settled and teams.grid.is_on and not teams.grid.is_busy)
    assert viewer.dims.ndisplay == 2
    assert sum(layer.visible for layer in viewer.layers) == 2 * 3
    viewer.dims.ndisplay = 3
    assert viewer.dims.ndisplay == 2
    teams.set_mode(ViewMode.ONE)
    wait_until(lambda: teams_desk.is_settled and not teams.grid.is_busy)
    assert list(viewer.layers) == before
    viewer.dims.ndisplay = 3
    assert viewer.dims.ndisplay == 3
