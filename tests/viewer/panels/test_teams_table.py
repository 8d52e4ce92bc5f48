"""A click in the table of teams shows the team, however long its name is."""

from dataclasses import replace

import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.display.regions.teams import ALL, FP_IN_SEVERAL
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.viewer.panels.teams import TeamsPanel
from tests.viewer.compared import compared_teams

pytestmark = pytest.mark.long

LONG, OTHER = "Amirreza Mahbod", "Dark Brotherhood"


@pytest.fixture
def panel(qtbot, sample_folder):
    """Return the panel with two teams of long names, at the region that they were judged on."""
    cohort = open_cohort(sample_folder)
    teams = tuple(team for team in cohort.teams if team.name in ("careful", "merger"))
    found = load_region(
        replace(cohort, teams=teams), cohort.regions[0].name, EvaluationSettings(distances=False)
    ).evaluations
    evaluations = dict(zip((LONG, OTHER), found.values(), strict=True))
    panel = TeamsPanel()
    qtbot.addWidget(panel)
    panel.show_comparison(compared_teams(evaluations))
    panel.resize(700, 500)
    panel.show()
    return panel


@pytest.mark.parametrize(("team", "place"), [(LONG, 0), (OTHER, 1)])
@pytest.mark.parametrize("listed", [ALL, FP_IN_SEVERAL])
def test_a_click_on_a_cell_shows_its_team(panel, team, place, listed):
    asked = []
    panel.which.choose(next(own for own in panel.which.values if own.heading == listed))
    table = panel.table
    table.row_chosen.connect(lambda _row, column: asked.append(table.key(column)))
    first = next(k for k, title in enumerate(table.titles()) if "\n" in title)
    if not table.rows():
        pytest.skip("these teams invent nothing in the same place")
    index = table.model().index(0, first + place)
    table.scrollTo(index)
    QTest.mouseClick(
        table.viewport(), Qt.MouseButton.LeftButton, pos=table.visualRect(index).center()
    )
    assert asked == [team]
