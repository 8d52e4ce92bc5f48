"""The line above the image: region, team and rules, and the room that panels leave."""

import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractButton

from napari_panoptic.display.names import distinct_names
from napari_panoptic.viewer.kit.widgets import is_in_sight
from tests.viewer.finding import FIRST, SECOND, show_inspect


@pytest.fixture(scope="module")
def shown_parts():
    """Show no panel beside the table."""
    return ()


@pytest.fixture
def at_first(fresh_desk, wait_until):
    show_inspect(fresh_desk, wait_until)


def click(box, step):
    place = QPoint(box.width() - 5 if step > 0 else 5, box.height() // 2)
    QTest.mouseClick(box, Qt.MouseButton.LeftButton, pos=place)


def test_the_arrows_go_to_other_regions_and_teams(desk, wait_until):
    title, session = desk.panels.title, desk.session
    assert title.region.choice == FIRST
    click(title.region, 1)
    wait_until(lambda: desk.is_settled and session.snapshot.region.name == SECOND)
    assert title.region.choice == SECOND
    click(title.region, -1)
    wait_until(lambda: desk.is_settled and session.snapshot.region.name == FIRST)
    teams = session.cohort.team_names
    seen = []
    for _ in teams:
        click(title.team, 1)
        wait_until(lambda: desk.is_settled)
        assert title.team.choice == session.team
        seen.append(session.team)
    assert sorted(seen) == sorted(teams)
    assert seen[-1] == "careful"


def test_the_lists_choose_a_region_and_a_team(desk, wait_until):
    title, session = desk.panels.title, desk.session
    title.region.choose(SECOND)
    wait_until(lambda: desk.is_settled and session.snapshot.region.name == SECOND)
    title.team.choose("merger")
    wait_until(lambda: desk.is_settled)
    assert session.team == "merger"


def test_names_are_short_and_tooltips_have_them_in_full(desk):
    title, session = desk.panels.title, desk.session
    names = [region.name for region in session.cohort.regions]
    assert title.region.currentText() == distinct_names(names)[names.index(FIRST)]
    assert FIRST in title.region.toolTip()


def test_a_blind_reviewer_sees_no_team(desk):
    title = desk.panels.title
    desk.state.is_blind = True
    try:
        assert title.team.isHidden()
        assert "careful" not in title.title()
        desk.session.set_team("merger")
        assert title.team.choice is None
    finally:
        desk.state.is_blind = False
        desk.session.set_team("careful")
    assert title.team.choice == "careful"


def test_the_rules_lead_to_the_settings(desk, wait_until):
    settings = desk.docked()["Settings"]
    assert not is_in_sight(settings)
    QTest.mouseClick(desk.panels.title.rules, Qt.MouseButton.LeftButton)
    wait_until(lambda: is_in_sight(settings))
    desk.reset_workspace("Inspect")


def test_buttons_of_a_panel_are_seen_while_the_mouse_is_over_it(desk, wait_until):
    dock = desk.dock("Objects")
    buttons = dock.titleBarWidget().findChildren(QAbstractButton)
    assert len(buttons) == 3
    QTest.mouseMove(desk.strip, QPoint(5, 5))
    wait_until(lambda: not any(button.isVisible() for button in buttons))
    QTest.mouseMove(dock, dock.rect().center())
    wait_until(lambda: all(button.isVisible() for button in buttons))
    QTest.mouseMove(desk.strip, QPoint(5, 5))
    wait_until(lambda: not any(button.isVisible() for button in buttons))
