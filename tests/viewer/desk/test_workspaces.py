"""Workspaces, the way to objects of other regions, and what the next window remembers."""

import time
from dataclasses import replace
from itertools import pairwise

import pytest
from qtpy.QtCore import QCoreApplication, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractButton, QDockWidget, QMainWindow, QTabBar, QTextEdit

from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status
from napari_panoptic.viewer.desk.nuclei import WORKSPACES
from napari_panoptic.viewer.desk.workspaces import (
    REST_MS,
    Arrangement,
    DockArea,
    Stack,
    WorkspaceBar,
)
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.layers.camera import canvas_size
from napari_panoptic.viewer.state.desk_state import DeskState
from napari_panoptic.viewer.state.preferences import Preferences, Queue, Tool, ToolInHand, ViewMode
from tests.viewer.finding import FIRST, SECOND, handle_events, show_inspect

CTRL = Qt.KeyboardModifier.ControlModifier
NAMES = [workspace.name for workspace in WORKSPACES]


@pytest.fixture
def at_first(fresh_desk, wait_until):
    fresh_desk.state.team_view = ViewMode.GRID
    show_inspect(fresh_desk, wait_until)


def rest(desk, wait_until):
    handle_events()
    wait_until(lambda: desk.is_arranged and desk.is_settled)


def window_of(desk):
    window = desk.strip.window()
    assert isinstance(window, QMainWindow)
    return window


def shown_panels(desk):
    return {title for title in desk.docked() if is_in_sight(desk.docked()[title])}


@pytest.mark.parametrize(
    "number",
    [1, 4, *(pytest.param(number, marks=pytest.mark.long) for number in (2, 3, 5, 6, 7))],
)
def test_ctrl_and_a_number_show_a_workspace(desk, wait_until, number):
    canvas = desk.link.scene and window_of(desk).centralWidget()
    QTest.keyClick(window_of(desk), getattr(Qt.Key, f"Key_{number}"), CTRL)
    rest(desk, wait_until)
    workspace = WORKSPACES[number - 1]
    assert desk.workspace is workspace
    assert desk.state.workspace == workspace.name
    there = set(desk.docked())
    stacks = [at for column in workspace.arrangement.areas.values() for at in column.stacks]
    fronts = {next((n for n in at.docks if n in there), None) for at in stacks}
    assert shown_panels(desk) == fronts - {None}
    assert canvas.isVisible() is workspace.arrangement.has_image


class TestKeys:
    """Keys go the way of the user's own: through the window to the widget with the focus."""

    def press_and_rest(self, desk, wait_until, key, modifiers=Qt.KeyboardModifier.NoModifier):
        QTest.keyClick(window_of(desk).windowHandle(), key, modifiers)
        rest(desk, wait_until)

    def select_with_n(self, desk, wait_until):
        desk.session.select(None)
        self.press_and_rest(desk, wait_until, Qt.Key.Key_N)
        return desk.session.selection is not None

    def button(self, desk, text):
        buttons = window_of(desk).findChildren(QAbstractButton)
        return next(button for button in buttons if button.text() == text)

    def test_they_work_after_the_widget_with_the_focus_is_hidden(self, desk, wait_until):
        desk.show_workspace("Teams")
        rest(desk, wait_until)
        QTest.mouseClick(self.button(desk, "One team"), Qt.MouseButton.LeftButton)
        self.press_and_rest(desk, wait_until, Qt.Key.Key_N, Qt.KeyboardModifier.AltModifier)
        assert is_in_sight(desk.docked()["Versions"])
        self.press_and_rest(desk, wait_until, Qt.Key.Key_2, CTRL)
        assert desk.workspace.name == "Failures"
        assert self.select_with_n(desk, wait_until)

    @pytest.mark.parametrize(
        "name", [pytest.param(n, marks=pytest.mark.long) if n != "Cohort" else n for n in NAMES]
    )
    def test_they_work_after_a_field_in_another_workspace(self, desk, wait_until, name):
        desk.panels.navigator.focus_filter()
        self.press_and_rest(desk, wait_until, getattr(Qt.Key, f"Key_{NAMES.index(name) + 1}"), CTRL)
        assert desk.workspace.name == name
        if name not in ("Inspect", "Cohort"):  # the field is in sight in these, and keeps them
            assert self.select_with_n(desk, wait_until)
        self.press_and_rest(desk, wait_until, Qt.Key.Key_6, CTRL)
        assert desk.workspace.name == "Review"
        assert self.select_with_n(desk, wait_until)

    def test_a_menu_leaves_keys_with_ctrl_or_alt_to_the_desk(self, desk, wait_until):
        desk.panels.title.team.setFocus()
        self.press_and_rest(desk, wait_until, Qt.Key.Key_3, CTRL)
        assert desk.workspace.name == "Groups"


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_workspace_gives_its_panels_the_room_that_it_declares(desk, wait_until, name):
    desk.show_workspace(name)
    rest(desk, wait_until)
    window = window_of(desk)
    for side, column in next(w for w in WORKSPACES if w.name == name).arrangement.areas.items():
        titles = [t for at in column.stacks for t in at.docks if t in desk.docked()]
        seen = next((t for t in titles if is_in_sight(desk.dock(t))), None)
        if seen is None:
            continue
        dock = desk.dock(seen)
        share = (
            dock.height() / window.height() if side == "bottom" else dock.width() / window.width()
        )
        assert share == pytest.approx(column.share, abs=0.1), side


@pytest.mark.parametrize("stall_ms", [0, REST_MS + 50])
def test_a_workspace_chosen_while_the_last_one_is_laid_out_gets_its_room(
    desk, wait_until, stall_ms
):
    desk.show_workspace("Inspect")
    handle_events()
    desk.show_workspace("Cohort")
    time.sleep(stall_ms / 1000)  # a busy machine
    handle_events()
    wait_until(lambda: desk.is_arranged)
    declared = next(w for w in WORKSPACES if w.name == "Cohort").arrangement.right
    share = desk.dock("Ranking").width() / window_of(desk).width()
    assert share == pytest.approx(declared.share, abs=0.05)


def test_a_whole_region_fills_the_canvas_of_the_next_workspace(desk, wait_until):
    scene, viewer = desk.link.scene, desk.viewer
    scene.camera.fit()
    before = viewer.scene.camera.zoom
    desk.show_workspace("Failures")
    rest(desk, wait_until)
    assert scene.camera.is_whole_in_sight(canvas_size(viewer))
    assert viewer.scene.camera.zoom != before


def test_a_whole_region_fills_the_canvas_also_if_an_object_is_shown_at_once(desk, wait_until):
    scene, camera = desk.link.scene, desk.viewer.scene.camera
    scene.camera.fit()
    desk.show_workspace("Review")
    QCoreApplication.processEvents()
    y, x = camera.center[-2:]
    camera.center = (0.0, y + 1, x + 1)
    rest(desk, wait_until)
    assert scene.camera.is_whole_in_sight(canvas_size(desk.viewer))


def test_the_next_workspace_leaves_a_zoomed_view_as_it_is(desk, wait_until):
    camera, rows = desk.viewer.scene.camera, desk.session.shown.outcomes.reference
    desk.session.select_row(Side.REFERENCE, 0)
    assert len(rows)
    desk.link.scene.camera.centre(desk.session.selection)
    camera.zoom *= 1.5
    before = (camera.center, camera.zoom)
    desk.show_workspace("Review")
    rest(desk, wait_until)
    assert (camera.center, camera.zoom) == before


def test_an_object_at_the_border_is_shown_with_no_wider_border_after_the_teams(desk, wait_until):
    viewer, scene = desk.viewer, desk.link.scene
    rows = desk.session.evaluation.outcomes.reference
    scene.camera.fit()
    desk.session.select_row(Side.REFERENCE, int(rows.centroid_yx_px[:, 0].argmax()))
    viewer.scene.camera.zoom *= 4
    scene.camera.show_object(desk.session.selection)
    for name in ("Teams", "Review"):
        desk.show_workspace(name)
        rest(desk, wait_until)
    height, _ = canvas_size(viewer) / viewer.scene.camera.zoom
    beyond = viewer.scene.camera.center[-2] + height / 2 - viewer.layers["image"].extent.world[1][0]
    assert beyond <= 4 / viewer.scene.camera.zoom
    assert scene.camera.is_object_in_sight(desk.session.selection, canvas_size(viewer))


def test_a_selected_object_stays_in_sight_when_the_canvas_becomes_narrower(desk, wait_until):
    viewer, scene = desk.viewer, desk.link.scene
    desk.show_workspace("Teams")
    rest(desk, wait_until)
    desk.session.select_row(Side.REFERENCE, 0)
    desk.state.mode = ViewMode.ONE
    rest(desk, wait_until)
    selection, camera = desk.session.selection, viewer.scene.camera
    scene.camera.centre(selection)
    camera.zoom = zoom = camera.zoom * 1.5
    y, x = camera.center[-2:]
    camera.center = (0.0, y, x - 0.35 * canvas_size(viewer)[1] / zoom)
    assert scene.camera.is_object_in_sight(selection, canvas_size(viewer))
    desk.show_workspace("Failures")
    rest(desk, wait_until)
    assert scene.camera.is_object_in_sight(selection, canvas_size(viewer))
    assert camera.zoom == zoom


def test_the_object_table_needs_no_height_behind_a_tab(desk, wait_until):
    desk.show_workspace("Review")
    rest(desk, wait_until)
    table = desk.panels.objects
    assert not is_in_sight(table)
    assert table.minimumHeight() == 1
    assert desk.dock("Objects").minimumSizeHint().height() < 100
    desk.reveal("Objects")
    wait_until(lambda: is_in_sight(table) and table.minimumHeight() > 60)


@pytest.mark.long
def test_a_panel_is_found_in_the_workspace_that_is_for_it(desk, wait_until):
    for title, workspace in (("Review", "Review"), ("Ranking", "Cohort"), ("Metrics", "Inspect")):
        desk.reveal(title)
        rest(desk, wait_until)
        assert desk.workspace.name == workspace
        assert is_in_sight(desk.docked()[title])


@pytest.mark.long
def test_settings_are_shown_beside_any_workspace_and_hidden_again(desk, wait_until):
    for name in ("Review", "Teams", "Cohort"):
        desk.show_workspace(name)
        rest(desk, wait_until)
        button = desk.strip.findChild(WorkspaceBar).button("Settings")
        for wanted in (True, False):
            button.click()  # as its entry in the menu does
            rest(desk, wait_until)
            assert is_in_sight(desk.docked()["Settings"]) is wanted
            assert button.isChecked() is wanted
        desk.reset_workspace(name)
        rest(desk, wait_until)


@pytest.mark.long
def test_the_users_own_arrangement_comes_back_and_can_be_reset(desk, wait_until):
    window, objects = window_of(desk), desk.dock("Objects")
    wide = objects.width()
    window.resizeDocks([objects], [wide + 120], Qt.Orientation.Horizontal)
    desk.dock("Metrics").hide()
    rest(desk, wait_until)
    own = objects.width()
    assert own > wide + 60
    desk.show_workspace("Teams")
    rest(desk, wait_until)
    desk.show_workspace("Inspect")
    rest(desk, wait_until)
    assert objects.width() == pytest.approx(own, abs=12)
    assert desk.dock("Metrics").isHidden()
    desk.reset_workspace("Inspect")
    rest(desk, wait_until)
    assert objects.width() == pytest.approx(wide, abs=12)
    assert not desk.dock("Metrics").isHidden()


def test_tabs_keep_their_order_whichever_is_in_front(desk, wait_until):
    def tabs():
        rest(desk, wait_until)
        texts = ([bar.tabText(i) for i in range(bar.count())] for bar in visible_bars())
        return next(each for each in texts if "Slices" in each)

    def visible_bars():
        return [bar for bar in window_of(desk).findChildren(QTabBar) if bar.isVisible()]

    desk.show_workspace("Failures")
    before = tabs()
    assert before[0] == "Failures"
    desk.reveal("Scores")
    rest(desk, wait_until)
    desk.show_workspace("Inspect")
    rest(desk, wait_until)
    desk.show_workspace("Failures")
    assert tabs() == before
    assert is_in_sight(desk.docked()["Scores"])
    desk.reset_workspace("Failures")
    assert tabs() == before
    assert is_in_sight(desk.docked()["Failures"])


@pytest.mark.long
def test_docks_of_others_stay_where_they_are(desk, wait_until):
    window = window_of(desk)
    others = QDockWidget("mine", window)
    others.setWidget(QTextEdit())
    window.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, others)
    try:
        for name in (*NAMES, "Inspect"):
            desk.show_workspace(name)
            rest(desk, wait_until)
            assert others.isVisible()
            assert window.dockWidgetArea(others) == Qt.DockWidgetArea.BottomDockWidgetArea
    finally:
        window.removeDockWidget(others)
        others.deleteLater()


@pytest.mark.long
def test_a_floating_panel_stays_floating(desk, wait_until):
    dock = desk.dock("Metrics")
    dock.setFloating(True)
    for name in ("Groups", "Inspect"):
        desk.show_workspace(name)
        rest(desk, wait_until)
        assert dock.isFloating()
    dock.setFloating(False)


class TestGoTo:
    def failure(self, desk):
        reference = desk.session.evaluation.outcomes.reference
        return int(reference.ids[reference.status == STATUS_CODE[Status.FN]][0])

    @pytest.mark.long
    def test_an_object_of_another_region_and_team(self, desk, wait_until):
        desk.link.go_to(SECOND, team="merger")
        rest(desk, wait_until)
        wanted = self.failure(desk)
        desk.link.go_to(FIRST, team="careful")
        rest(desk, wait_until)
        desk.link.go_to(SECOND, Side.REFERENCE, wanted, team="merger")
        rest(desk, wait_until)
        chosen = desk.session.selection
        assert (desk.session.snapshot.region.name, desk.session.team) == (SECOND, "merger")
        assert (chosen.side, chosen.id, chosen.team) == (Side.REFERENCE, wanted, "merger")

    def test_a_later_choice_of_region_wins(self, desk, wait_until):
        desk.link.go_to(SECOND, Side.REFERENCE, 1)
        desk.link.go_to(FIRST)
        rest(desk, wait_until)
        assert desk.session.snapshot.region.name == FIRST
        assert desk.session.selection is None

    def test_an_object_that_is_not_there_is_reported(self, desk, wait_until, monkeypatch):
        told = []
        monkeypatch.setattr("napari_panoptic.viewer.desk.link.show_info", told.append)
        desk.link.go_to(SECOND, Side.REFERENCE, 987654)
        rest(desk, wait_until)
        assert len(told) == 1
        assert "987654" in told[0]


def test_state_that_was_damaged_counts_as_unset():
    preferences = Preferences(
        {
            ("desk", "filter"): '{"statuses": [1, 2]}',
            ("desk", "queue"): "at random",
            ("desk", "team_view"): "upside down",
            ("desk", "tool"): "reference: hammer",
            ("desk", "arrangements"): "[1",
            ("desk", "places"): '{"/a": 3}',
        }
    )
    state = DeskState.restored(preferences)
    assert state.object_filter == ObjectFilter()
    assert state.queue is Queue.COHORT
    assert state.team_view is ViewMode.GRID
    assert state.tool == ToolInHand()
    assert preferences.arrangements() == {}


def test_the_next_window_has_the_view_of_teams_and_the_tool_but_not_the_present_mode(preferences):
    state = DeskState.restored(preferences)
    state.team_view = state.mode = ViewMode.CONSENSUS
    state.tool = ToolInHand(Side.REFERENCE, Tool.MOVE)
    following = DeskState.restored(preferences)
    assert following.team_view is ViewMode.CONSENSUS
    assert following.tool == ToolInHand(Side.REFERENCE, Tool.MOVE)
    assert following.mode is ViewMode.ONE  # it follows from the workspace
    state.tool = ToolInHand()
    assert DeskState.restored(preferences).tool == ToolInHand()


def test_arrangements_are_kept_as_plain_values():
    arrangement = Arrangement(
        left=DockArea(0.25, (Stack(("Regions", "Settings"), 0.6), Stack(("Layers",), 0.4))),
        bottom=DockArea(0.5, (Stack(("Teams",)),)),
        has_image=False,
    )
    assert Arrangement.from_json(arrangement.to_json()) == arrangement
    for damaged in (None, [], {"left": 3}, {"left": [0.2, [["Regions"]]], "has_image": True}):
        assert Arrangement.from_json(damaged) is None
    assert arrangement.is_like(replace(arrangement, bottom=DockArea(0.51, (Stack(("Teams",)),))))
    others = [
        replace(arrangement, bottom=DockArea(0.6, (Stack(("Teams",)),))),
        replace(arrangement, bottom=None),
        replace(arrangement, bottom=DockArea(0.5, (Stack(("Review",)),))),
    ]
    assert not any(arrangement.is_like(other) for other in others)
    assert all(one != other for one, other in pairwise(others))
