"""Teams beside each other, the audit and the groups, used by real clicks and keys."""

import gc
from dataclasses import replace

import numpy as np
import pytest
from napari.layers import Points
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_panoptic.display import styles, team_pictures
from napari_panoptic.display.glossary import SETTING_WORDS
from napari_panoptic.display.regions import ambiguous as audit_question
from napari_panoptic.display.regions import groups as groups_question
from napari_panoptic.display.regions import teams as teams_question
from napari_panoptic.display.regions.here import Here
from napari_panoptic.display.styles import Display, Look
from napari_panoptic.display.team_pictures import level_colours
from napari_panoptic.display.title import STANDARD
from napari_panoptic.explain.failure_groups import failure_groups, lost_over
from napari_panoptic.explain.policy_audit import audit_policies, spill_table
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.questions.groups import ALL, Groups
from napari_panoptic.tables.figures import signed
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status
from napari_panoptic.viewer.desk.nuclei import PARTS as ALL_PARTS
from napari_panoptic.viewer.desk.nuclei import REGION_QUESTIONS
from napari_panoptic.viewer.kit.widgets import dock_of
from napari_panoptic.viewer.layers import outlines
from napari_panoptic.viewer.layers.consensus_view import CONSENSUS_LAYER, FP_LAYER
from napari_panoptic.viewer.layers.outlines import LayerOutlines, outlines_of
from napari_panoptic.viewer.layers.team_grid import OBJECTS
from napari_panoptic.viewer.panels.navigator import NavigatorPresenter
from napari_panoptic.viewer.panels.region_panel import WAITING
from napari_panoptic.viewer.panels.teams import TeamsPresenter
from napari_panoptic.viewer.state.preferences import ViewMode
from tests.support.small_pairs import four_fates
from tests.viewer.finding import (
    click,
    handle_events,
    names_of_visible,
    on_canvas,
    other_source,
    shown_text,
)

PARTS = ("image", "objects", "ring")
AuditPresenter, GroupsPresenter = REGION_QUESTIONS["ambiguous"], REGION_QUESTIONS["groups"]
MARKS_LAYER, GROUP_LAYER = (kind.kind.marks_name for kind in (AuditPresenter, GroupsPresenter))
(COSTS,) = (kind for kind in ALL_PARTS if kind.title == Groups.title)
LEFT, PLAIN = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture(scope="module")
def shown_cohort(sample_folder):
    """Show four regions and all teams."""
    cohort = open_cohort(sample_folder)
    return replace(cohort, regions=cohort.regions[:4], teams=cohort.competing_teams)


@pytest.fixture(scope="module")
def shown_parts():
    """Show only the panels that compare, and what groups cost."""
    return (TeamsPresenter, AuditPresenter, GroupsPresenter, COSTS)


@pytest.fixture
def at_first(fresh_desk, request, wait_until):
    """Leave the view of another class of tests."""
    teams, wanted = fresh_desk.presenter(TeamsPresenter), getattr(request.cls, "mode", ViewMode.ONE)
    fresh_desk.state.team_view = (
        wanted  # else the workspace for teams builds the cells of all first
    )
    if teams.mode is not wanted:
        teams.set_mode(ViewMode.ONE)
    wait_until(lambda: fresh_desk.is_settled)


@pytest.fixture
def teams(desk, wait_until):
    return raised(desk, TeamsPresenter, wait_until)


@pytest.fixture
def audit(desk, wait_until):
    return raised(desk, AuditPresenter, wait_until)


@pytest.fixture
def groups(desk, wait_until):
    return raised(desk, GroupsPresenter, wait_until)


def raised(desk, kind, wait_until):
    """Bring a panel to the front and wait until it shows what is so."""
    found = desk.presenter(kind)
    desk.raise_part(found)
    wait_until(lambda: found.is_in_sight and desk.is_settled)
    return found


def click_button(button):
    QTest.mouseClick(button, LEFT, PLAIN)


def list_button(panel, heading):
    """Return the button of a list."""
    return next(panel.which.button(own) for own in panel.which.values if own.heading == heading)


def press_row(table, row, column):
    """Click a cell of a table."""
    index = table.model().index(row, column)
    table.scrollTo(index)
    QTest.mouseClick(table.viewport(), LEFT, PLAIN, table.visualRect(index).center())


def go_to_region_with(desk, wait_until, condition):
    """Show the first region of which something is so."""
    for region in desk.session.cohort.regions:
        desk.link.request(region=region.name)
        wait_until(lambda: desk.is_settled)
        if condition():
            return
    pytest.fail("no region of the sample is like that")


class TestTeamsTable:
    def test_there_is_a_column_for_every_team_with_its_pq(self, desk, teams):
        titles = teams.panel.table.titles()
        for team, evaluation in desk.session.snapshot.evaluations.items():
            assert f"{team}\n{evaluation.metrics.pq:.3f}" in titles

    def test_a_heading_has_what_distinguishes_a_name(self):
        teams = [
            "ensemble of five folds, seed 12",
            "ensemble of one fold",
            "ensemble of 300 models",
        ]
        here = Here("", teams[0], dict.fromkeys(teams, four_fates()))
        columns = teams_question.RegionTeams().answered(here).tables[0].spec.columns
        assert [str(column.title).split("\n")[0] for column in columns[3:6]] == [
            "five folds, seed 12",
            "one fold",
            "300 models",
        ]
        assert str(columns[3].title).endswith(f"\n{four_fates().metrics.pq:.3f}")

    def test_cells_tell_the_status_of_each_team(self, desk, teams):
        table, evaluations = teams.panel.table, desk.session.snapshot.evaluations
        titles = [title.split("\n")[0] for title in table.titles()]
        for line in table.texts():
            row = int(np.searchsorted(desk.session.snapshot.reference.ids, int(line[0])))
            for team, evaluation in evaluations.items():
                code = evaluation.outcomes.reference.status[row]
                status = list(Status)[code]
                assert line[titles.index(team)] == styles.SHORT_STATUS_WORDS[status]

    @pytest.mark.parametrize(
        "listed",
        [
            teams_question.ALL,
            teams_question.FN_IN_ALL,
            teams_question.TP_IN_ONE,
            teams_question.FP_IN_SEVERAL,
        ],
    )
    def test_one_click_lists_what_is_asked_for(self, desk, teams, listed):
        click_button(list_button(teams.panel, listed))
        evaluations = desk.session.snapshot.evaluations
        status = np.stack([e.outcomes.reference.status for e in evaluations.values()], axis=1)
        found = (status == STATUS_CODE[Status.TP]).sum(axis=1)
        missed = (status == STATUS_CODE[Status.FN]).sum(axis=1)
        ignored = (status == STATUS_CODE[Status.IGNORED]).sum(axis=1)
        expected = {
            teams_question.ALL: len(found),
            teams_question.FN_IN_ALL: int(((missed > 0) & (missed + ignored == 4)).sum()),
            teams_question.TP_IN_ONE: int((found == 1).sum()),
        }
        number = len(teams.panel.table.rows())
        assert list_button(teams.panel, listed).text() == f"{listed} {number}"
        if listed in expected:
            assert number == expected[listed]
        click_button(list_button(teams.panel, teams_question.ALL))

    def test_a_row_selects_its_object_and_its_team(self, desk, teams):
        table = teams.panel.table
        press_row(table, 2, 0)
        row = desk.session.selection.row
        assert desk.session.selection.side is Side.REFERENCE
        assert table.texts()[2][0] == str(desk.session.selection.id)
        assert f"Reference {desk.session.selection.id}" in teams.panel.row_line.text()
        column = next(k for k, title in enumerate(table.titles()) if title.startswith("merger"))
        press_row(table, 2, column)
        assert (desk.session.team, desk.session.selection.row) == ("merger", row)

    def test_an_object_selects_its_row(self, desk, teams):
        desk.session.select_row(Side.REFERENCE, 5)
        table = teams.panel.table
        places = table.rows()
        selected = table.texts()[places.index(table.selected())]
        assert selected[0] == str(desk.session.selection.id)

    def test_an_invented_place_selects_a_prediction_there(self, desk, teams, wait_until):
        def has_places():
            return bool(teams.value.consensus.shared_fp_places(2))

        go_to_region_with(desk, wait_until, has_places)
        click_button(list_button(teams.panel, teams_question.FP_IN_SEVERAL))
        press_row(teams.panel.table, 0, 0)
        place = teams.value.consensus.shared_fp_places(2)[0]
        chosen = desk.session.selection
        assert chosen.side is Side.PREDICTION
        assert chosen.row in place.rows[chosen.team]
        click_button(list_button(teams.panel, teams_question.ALL))


class TestWhileAnotherRegionComes:
    """Lists of the region before, when the next one is shown and its figures are to come."""

    @pytest.fixture
    def far(self, desk):
        """Name a region that is not read ahead, so that its teams come one after the other."""
        return desk.session.cohort.regions[2].name

    def seen_on_arrival(self, desk, region, look, wait_until):
        """Go to a region, and look once as soon as it is shown."""
        seen = []

        def arrive(snapshot):
            if snapshot.region.name == region and not seen:
                seen.append(look(snapshot))

        desk.session.region_changed.connect(arrive)
        desk.link.go_to(region)
        wait_until(lambda: desk.is_settled)
        desk.session.region_changed.disconnect(arrive)
        return seen

    def test_a_click_in_the_list_of_teams_selects_no_object_of_the_new_region(
        self, desk, teams, far, wait_until
    ):
        def look(snapshot):
            assert snapshot.pending
            if teams.panel.table.isVisible():
                press_row(teams.panel.table, 0, 0)
            return desk.session.selection, shown_text(teams.panel.headline)

        assert self.seen_on_arrival(desk, far, look, wait_until) == [(None, WAITING)]
        assert teams.panel.table.isVisible()
        press_row(teams.panel.table, 0, 0)
        assert teams.panel.table.texts()[0][0] == str(desk.session.selection.id)

    def test_groups_select_and_mark_no_object_of_the_new_region(
        self, desk, viewer, groups, far, wait_until
    ):
        desk.session.set_team("merger")
        wait_until(lambda: desk.is_settled)
        press_row(groups.panel.table, 0, 0)
        assert GROUP_LAYER in names_of_visible(viewer)
        desk.session.select(None)

        def look(_snapshot):
            press_row(groups.panel.members, 0, 0)
            press_row(groups.panel.table, 1, 0)
            return desk.session.selection, GROUP_LAYER in names_of_visible(viewer)

        assert self.seen_on_arrival(desk, far, look, wait_until) == [(None, False)]

    def test_the_audit_selects_and_marks_no_object_of_the_new_region(
        self, desk, viewer, audit, wait_until
    ):
        def listed():
            if audit.value.answer is None:
                return False
            click_button(list_button(audit.panel, "In the area"))
            return bool(audit.panel.table.rows())

        desk.session.set_team("merger")
        go_to_region_with(desk, wait_until, listed)
        wait_until(lambda: MARKS_LAYER in names_of_visible(viewer))
        names = [region.name for region in desk.session.cohort.regions]
        here = names.index(desk.session.snapshot.region.name)

        def look(_snapshot):
            press_row(audit.panel.table, 0, 0)
            return desk.session.selection, MARKS_LAYER in names_of_visible(viewer)

        other = names[(here + 2) % len(names)]
        assert self.seen_on_arrival(desk, other, look, wait_until) == [(None, False)]
        desk.link.go_to(names[here])
        wait_until(lambda: desk.is_settled)
        assert audit.panel.shown_table.heading == "In the area"  # also past regions without one
        click_button(list_button(audit.panel, "Changed"))


class TestLive:
    def test_an_erased_object_leaves_every_panel(self, desk, teams, wait_until):
        reference = desk.session.snapshot.reference
        before = len(teams.panel.table.rows())
        y, x = np.nonzero(reference.index == 1)
        desk.session.edit(Side.REFERENCE, y, x, 0)
        wait_until(lambda: len(teams.panel.table.rows()) == before - 1)
        assert str(reference.ids[0]) not in [line[0] for line in teams.panel.table.texts()]
        desk.session.discard_edits()
        wait_until(lambda: len(teams.panel.table.rows()) == before)

    @pytest.mark.parametrize(
        ("key", "modifier", "kind"),
        [
            (Qt.Key.Key_U, PLAIN, TeamsPresenter),
            (Qt.Key.Key_A, Qt.KeyboardModifier.AltModifier, AuditPresenter),
            (Qt.Key.Key_G, Qt.KeyboardModifier.AltModifier, GroupsPresenter),
        ],
    )
    def test_a_key_brings_each_panel_to_the_front(
        self, desk, canvas, wait_until, key, modifier, kind
    ):
        QTest.keyClick(canvas, key, modifier)
        wait_until(lambda: desk.presenter(kind).is_in_sight)


class TestSideBySide:
    mode = ViewMode.GRID

    @pytest.fixture
    def grid(self, desk, teams, wait_until):
        click_button(teams.panel.modes.button(ViewMode.GRID))
        wait_until(lambda: teams.grid.is_on and desk.is_settled)
        return teams.grid

    def cells(self, viewer, grid):
        teams = {grid.layer(team, part): team for team in grid.teams for part in PARTS}
        shape = viewer.canvas.grid.actual_shape(viewer.layers)
        found = {}
        for place in np.ndindex(shape):
            layers = viewer.canvas.grid.contents_at(place, viewer.layers)
            names = {teams.get(viewer.layers[number]) for number in layers}
            if names:
                found[place] = names
        return found

    def at(self, viewer, place, y_px, x_px):
        """Find a pixel of the region in a cell."""
        box = viewer.window._qt_viewer.canvas.grid[place]
        camera, scale = viewer.scene.camera, viewer.layers["reference"].scale
        y, x = np.array([y_px, x_px]) * scale
        left, top = box.pos
        width, height = box.size
        return QPoint(
            round(left + width / 2 + (x - camera.center[-1]) * camera.zoom),
            round(top + height / 2 + (y - camera.center[-2]) * camera.zoom),
        )

    def test_every_team_has_a_cell_of_its_own_with_name_and_pq(self, desk, viewer, grid):
        cells = self.cells(viewer, grid)
        assert list(cells.values()) == [{team} for team in grid.teams]
        assert len(cells) == 4
        for team in grid.teams:
            title = grid.layer(team, "image")
            pq = desk.session.snapshot.evaluations[team].metrics.pq
            assert title.name_overlay.visible
            assert f"{team}   PQ {pq:.3f}" in title.name

    def test_outlines_of_every_cell_are_lines(self, desk, viewer, grid):
        evaluations = desk.session.snapshot.evaluations
        drawn = team_pictures.cell_pictures(evaluations, None)
        n_reference = len(desk.session.snapshot.reference)
        for team in grid.teams:
            layer, index = grid.layer(team, OBJECTS), evaluations[team].pair.prediction.index
            assert outlines_of(layer, viewer).are_lines
            assert layer.contour == 1
            np.testing.assert_array_equal(layer.data, np.where(index, index + n_reference, 0))
        np.testing.assert_array_equal(
            np.where(drawn.reference == team_pictures.AREA, 0, drawn.reference),
            desk.session.snapshot.reference.index,
        )

    @pytest.mark.parametrize("is_filled", [True, False])
    def test_filled_cells_and_those_without_lines_are_drawn_in_pixels(
        self, desk, viewer, grid, wait_until, monkeypatch, is_filled
    ):
        if is_filled:
            desk.state.look = Look(display=Display.FILL)
            widths = (0, 0)
        else:
            monkeypatch.setattr(LayerOutlines, "are_lines", property(lambda _self: False))
            viewer.scene.camera.zoom *= 1.01
            widths = grid.wanted_widths()
        evaluations = desk.session.snapshot.evaluations
        drawn = team_pictures.cell_pictures(evaluations, widths)
        layers = {team: grid.layer(team, OBJECTS) for team in grid.teams}
        wait_until(lambda: desk.is_settled and not any(each.contour for each in layers.values()))
        for team, layer in layers.items():
            np.testing.assert_array_equal(layer.data, drawn.objects[team])
        desk.state.look = Look()

    def test_a_driver_that_refuses_the_first_lines_gets_pixels(
        self, desk, grid, wait_until, monkeypatch
    ):
        grid._on_painted()
        wait_until(lambda: grid.layer(grid.teams[0], OBJECTS).contour == 1)
        monkeypatch.setattr(outlines._DRIVER, "accepts", False)
        grid._on_painted()
        wait_until(lambda: desk.is_settled and not grid.layer(grid.teams[0], OBJECTS).contour)
        drawn = team_pictures.cell_pictures(desk.session.snapshot.evaluations, grid.wanted_widths())
        for team in grid.teams:
            np.testing.assert_array_equal(grid.layer(team, OBJECTS).data, drawn.objects[team])

    def test_of_a_long_name_the_beginning_and_the_pq_fit_the_cell(self, desk, grid, monkeypatch):
        monkeypatch.setattr(grid, "_cell_width", lambda: 125.0)  # for 18 letters
        grid._name()
        for team in grid.teams:
            pq = desk.session.snapshot.evaluations[team].metrics.pq
            title = grid.layer(team, "image").name
            assert len(title) <= 18
            assert title.removeprefix("▶ ").startswith(team[:3])
            assert title.endswith(f"   PQ {pq:.3f}")
        monkeypatch.undo()
        grid._name()

    def test_objects_are_coloured_by_the_outcomes_of_the_cells_team(self, desk, grid):
        for team in grid.teams:
            codes = desk.session.snapshot.evaluations[team].outcomes.reference.status
            layer = grid.layer(team, "objects")
            for row in range(0, len(codes), 7):
                expected = styles.STATUS_COLOURS[list(Status)[codes[row]]]
                np.testing.assert_allclose(layer.get_color(row + 1)[:3] * 255, expected, atol=1e-3)

    def test_images_come_first_and_the_desk_is_settled_when_all_can_be_seen(
        self, desk, viewer, teams, wait_until
    ):
        click_button(teams.panel.modes.button(ViewMode.ONE))
        wait_until(lambda: desk.is_settled)
        seen = []  # how many layers a drawn cell had, and whether the desk was settled
        draws = viewer.window._qt_viewer.canvas._scene_canvas.events.draw
        grid = teams.grid

        def drawn(_event):
            if grid.is_on:
                shown = [grid.layer(grid.teams[0], part) for part in ("image", "objects")]
                seen.append((sum(layer is not None for layer in shown), desk.is_settled))

        draws.connect(drawn)
        click_button(teams.panel.modes.button(ViewMode.GRID))
        assert not desk.is_settled
        assert grid.is_on  # the images come at once
        wait_until(lambda: desk.is_settled)
        draws.disconnect(drawn)
        assert seen[0] == (1, False)
        assert (2, False) in seen
        assert (1, True) not in seen
        for team in grid.teams:
            assert grid.layer(team, "image").visible
            assert grid.layer(team, "objects").visible
            assert not grid.layer(team, "ring").data.any()

    @pytest.mark.long
    def test_back_to_one_team_everything_is_as_it_was(self, desk, viewer, teams, wait_until):
        click_button(teams.panel.modes.button(ViewMode.ONE))
        wait_until(lambda: desk.is_settled)
        viewer.scene.camera.zoom *= 1.7
        wait_until(lambda: not desk.link.pointer.is_zooming)
        viewer.layers["merger"].visible = True
        layers = list(viewer.layers)
        before = (
            {layer.name: layer.visible for layer in layers if layer.visible},
            tuple(viewer.scene.camera.center),
            viewer.scene.camera.zoom,
            viewer.layers.selection.active,
            viewer.canvas.grid.enabled,
            viewer.canvas.grid.stride,
        )
        click_button(teams.panel.modes.button(ViewMode.GRID))
        wait_until(lambda: teams.grid.is_on)
        click_button(teams.panel.modes.button(ViewMode.ONE))
        after = (
            {layer.name: layer.visible for layer in viewer.layers if layer.visible},
            tuple(viewer.scene.camera.center),
            viewer.scene.camera.zoom,
            viewer.layers.selection.active,
            viewer.canvas.grid.enabled,
            viewer.canvas.grid.stride,
        )
        assert after == before
        wait_until(lambda: desk.is_settled)
        assert list(viewer.layers) == layers
        viewer.layers["merger"].visible = False

    @pytest.mark.long
    def test_it_can_be_given_up_half_way(self, viewer, desk, teams, wait_until):
        click_button(teams.panel.modes.button(ViewMode.ONE))
        wait_until(lambda: desk.is_settled)
        before = list(viewer.layers)
        click_button(teams.panel.modes.button(ViewMode.GRID))
        assert len(viewer.layers) == len(before) + len(teams.grid.teams)  # the images
        click_button(teams.panel.modes.button(ViewMode.ONE))
        wait_until(lambda: desk.is_settled)
        assert list(viewer.layers) == before
        assert not teams.grid.is_on
        assert not viewer.canvas.grid.enabled

    @pytest.mark.long
    def test_cells_in_the_making_follow_what_changes_meanwhile(self, desk, teams, wait_until):
        click_button(teams.panel.modes.button(ViewMode.ONE))
        wait_until(lambda: desk.is_settled)
        click_button(teams.panel.modes.button(ViewMode.GRID))
        assert teams.grid.is_on
        desk.panels.settings.threshold.setValue(0.8)
        wait_until(lambda: desk.is_settled and teams.grid.is_on)
        evaluations = desk.session.snapshot.evaluations
        for team in teams.grid.teams:
            assert f"{evaluations[team].metrics.pq:.3f}" in teams.grid.layer(team, "image").name

    @pytest.mark.long
    def test_other_teams_get_cells_of_their_own(
        self, viewer, canvas, desk, teams, grid, wait_until
    ):
        actions = teams.panel._menu.actions()
        left_out = actions[1].text()
        actions[1].trigger()
        wait_until(lambda: desk.is_settled and len(grid.teams) == 3)
        cells = self.cells(viewer, grid)
        assert [{team} for team in grid.teams] == list(cells.values())
        assert left_out not in grid.teams
        for place, (team,) in cells.items():
            self.click_an_object(desk, canvas, place, team)
        actions[1].trigger()
        wait_until(lambda: desk.is_settled and len(grid.teams) == 4)
        cells = self.cells(viewer, grid)
        assert len(cells) == 4
        for place, (team,) in cells.items():
            self.click_an_object(desk, canvas, place, team)

    def click_an_object(self, desk, canvas, place, team):
        """Click an object in a team's cell, and check that it is selected."""
        outcomes = desk.session.snapshot.evaluations[team].outcomes
        row = int(np.flatnonzero(outcomes.prediction.status == STATUS_CODE[Status.TP])[0])
        y, x = outcomes.prediction.centroid_yx_px[row]
        desk.session.select(None)  # a second click would select what lies beneath
        desk.viewer.screenshot(flash=False)  # cells are moved when they are drawn
        click(canvas, self.at(desk.viewer, place, y, x))
        assert desk.session.team == team
        assert (desk.session.selection.side, desk.session.selection.row) == (Side.PREDICTION, row)

    @pytest.mark.long
    def test_a_click_in_a_cell_selects_the_object_of_that_team(self, desk, viewer, canvas, grid):
        place, names = list(self.cells(viewer, grid).items())[2]
        (team,) = names
        self.click_an_object(desk, canvas, place, team)
        assert grid.layer(team, "image").name.startswith("▶")
        assert all(grid.layer(name, "ring").data.any() for name in grid.teams)

    @pytest.mark.long
    def test_another_region_and_other_settings_are_followed(self, desk, grid, wait_until):
        desk.link.presenter(NavigatorPresenter).go_on()
        wait_until(lambda: desk.is_settled)
        snapshot = desk.session.snapshot
        assert grid.layer("careful", "objects").data.shape == snapshot.shape
        assert f"{snapshot.evaluations['merger'].metrics.pq:.3f}" in (
            grid.layer("merger", "image").name
        )
        desk.panels.settings.threshold.setValue(0.9)
        wait_until(lambda: desk.is_settled)
        pq = desk.session.snapshot.evaluations["merger"].metrics.pq
        assert f"{pq:.3f}" in grid.layer("merger", "image").name

    @pytest.mark.long
    def test_layers_of_others_are_hidden_meanwhile_and_cells_stay(
        self, viewer, teams, grid, wait_until
    ):
        points = Points(np.zeros((1, 2)), name="mine")
        viewer.add_layer(points)
        wait_until(lambda: not points.visible)
        assert len(self.cells(viewer, grid)) == 4
        click_button(teams.panel.modes.button(ViewMode.ONE))
        assert points.visible
        viewer.layers.remove(points)

    @pytest.mark.long
    def test_deleting_a_layer_of_a_cell_goes_back_to_one_team(
        self, viewer, teams, grid, wait_until
    ):
        viewer.layers.remove(grid.layer("merger", "objects"))
        wait_until(lambda: teams.mode is ViewMode.ONE and not teams.is_busy)
        assert not any(grid.owns(layer) for layer in viewer.layers)
        assert names_of_visible(viewer)[:2] == ["image", "reference"]

    @pytest.mark.long
    def test_shift_u_goes_from_view_to_view(self, desk, canvas, teams, wait_until):
        click_button(teams.panel.modes.button(ViewMode.ONE))
        seen = []
        for _ in range(3):
            QTest.keyClick(canvas, Qt.Key.Key_U, Qt.KeyboardModifier.ShiftModifier)
            wait_until(lambda: desk.is_settled)
            seen.append(teams.mode)
        assert seen == [ViewMode.GRID, ViewMode.CONSENSUS, ViewMode.ONE]


def test_the_workspace_for_teams_shows_the_view_that_was_chosen_last(desk, wait_until):
    teams, state = desk.presenter(TeamsPresenter), desk.state
    desk.show_workspace("Inspect")
    for expected in (ViewMode.GRID, ViewMode.CONSENSUS, ViewMode.ONE):
        teams.next_mode()
        assert state.mode is expected
    desk.show_workspace("Teams")
    assert (state.mode, state.team_view) == (ViewMode.CONSENSUS, ViewMode.CONSENSUS)
    teams.next_mode()
    assert (state.mode, state.team_view) == (ViewMode.ONE, ViewMode.ONE)
    desk.show_workspace("Inspect")
    state.team_view = ViewMode.GRID
    wait_until(lambda: desk.is_settled)


@pytest.mark.long
def test_a_cohort_that_is_opened_in_the_workspace_for_teams_has_its_view(desk, wait_until):
    desk.state.team_view = ViewMode.GRID
    desk.show_workspace("Teams")
    wait_until(lambda: desk.is_settled)
    desk.show_cohort(desk.session.cohort)
    wait_until(lambda: desk.is_settled)
    assert (desk.state.mode, desk.state.team_view) == (ViewMode.GRID, ViewMode.GRID)
    assert desk.presenter(TeamsPresenter).grid.is_on
    desk.show_workspace("Inspect")
    wait_until(lambda: desk.is_settled)


@pytest.mark.long
@pytest.mark.parametrize("mode", [ViewMode.GRID, ViewMode.CONSENSUS])
def test_a_blind_reviewer_sees_one_team_without_its_name(desk, viewer, teams, mode, wait_until):
    names = [team.name for team in desk.session.cohort.teams]
    click_button(teams.panel.modes.button(mode))
    wait_until(lambda: desk.is_settled)
    desk.state.is_blind = True
    try:
        wait_until(lambda: desk.is_settled)
        assert names_of_visible(viewer)[:2] == ["image", "reference"]
        assert len(names_of_visible(viewer)) == 3
        wait_until(lambda: not any(n in layer.name for layer in viewer.layers for n in names))
        covered = shown_text(desk.panels.legend.instead)
        assert "hidden" in covered
        teams.next_mode()
        wait_until(lambda: desk.is_settled)
        assert teams.mode is ViewMode.ONE
        assert shown_text(desk.panels.legend.instead) == covered
    finally:
        desk.state.is_blind = False
    wait_until(lambda: desk.is_settled)
    assert any(desk.session.team in layer.name for layer in viewer.layers)  # has its name again


class TestConsensus:
    mode = ViewMode.CONSENSUS

    @pytest.fixture
    def view(self, teams, wait_until):
        click_button(teams.panel.modes.button(ViewMode.CONSENSUS))
        wait_until(lambda: teams.consensus_view.is_on)
        return teams.consensus_view

    def test_outlines_are_lines_the_wider_the_more_teams_failed(self, desk, viewer, teams, view):
        layer, result = view.layer(CONSENSUS_LAYER), teams.value.consensus
        lines = outlines_of(layer, viewer)
        assert lines.are_lines
        assert layer.contour > 0
        reference = desk.session.snapshot.reference
        np.testing.assert_array_equal(layer.data, reference.index)
        more_px = lines.table()[1 : len(reference) + 1, 1] / 64
        is_ignored = result.ignored == len(result.teams)
        expected = np.where(is_ignored, 0, 2 * (1 - result.found / len(result.teams)))
        np.testing.assert_allclose(more_px, expected, atol=1 / 64)
        desk.state.look = Look(display=Display.FILL)
        assert layer.contour == 0
        desk.state.look = Look()
        assert layer.contour > 0

    def test_colours_tell_how_many_teams_found_an_object(self, viewer, teams, view):
        result = teams.value.consensus
        judged = np.flatnonzero(result.ignored < 4)
        for row in judged[::9]:
            colour = view.layer(CONSENSUS_LAYER).get_color(row + 1)[:3] * 255
            expected = level_colours(4)[result.found[row]]
            np.testing.assert_allclose(colour, expected, atol=1e-3)
        assert names_of_visible(viewer)[-2:] == [FP_LAYER, CONSENSUS_LAYER]
        assert ">&nbsp;4&nbsp;<" in teams.panel.legend_text()

    @pytest.mark.long
    def test_the_legend_says_what_they_mean(self, desk, teams, view, wait_until):
        legend = desk.link.panels.legend
        wait_until(lambda: shown_text(legend.instead) == teams.panel.legend_text())
        assert view.is_on
        chips = list(legend.chips.values())
        assert not any(chip.isVisible() for chip in chips)
        click_button(teams.panel.modes.button(ViewMode.ONE))
        assert shown_text(legend.instead) == ""
        assert all(chip.isVisible() for chip in chips)

    @pytest.mark.usefixtures("view")
    def test_the_objects_of_one_team_come_back(self, desk, viewer, teams):
        click_button(teams.panel.modes.button(ViewMode.ONE))
        assert names_of_visible(viewer) == ["image", "reference", desk.session.team]
        assert CONSENSUS_LAYER not in viewer.layers

    @pytest.mark.long
    @pytest.mark.usefixtures("view")
    def test_a_click_selects_a_reference_object(self, desk, viewer, canvas):
        outcomes = desk.session.evaluation.outcomes.reference
        y, x = outcomes.centroid_yx_px[4]
        click(canvas, on_canvas(viewer, y, x))
        assert desk.session.selection.side is Side.REFERENCE
        assert desk.session.selection.row == 4


def audit_of(part):
    """Compare the policies that the panel compares where none was chosen."""
    return audit_policies(part.value.here.evaluation, "clip", "majority")


def spill_of(part):
    """Return the predictions that stick out, of a panel that shows an answer."""
    return spill_table(part.value.here.evaluation)


class TestAudit:
    @pytest.fixture
    def ambiguous(self, desk, audit, wait_until):
        def has_spill():
            return audit.value is not None and len(spill_of(audit)) > 0

        if has_spill():
            return audit
        for team in desk.session.cohort.teams:
            desk.session.set_team(team.name)
            for region in desk.session.cohort.regions:
                desk.link.request(region=region.name)
                wait_until(lambda: desk.is_settled)
                if has_spill():
                    return audit
        return pytest.fail("nothing spills in the sample")

    def test_without_an_area_it_says_what_to_do(self, desk, audit, wait_until):
        go_to_region_with(
            desk, wait_until, lambda: audit.value is not None and audit.value.answer is None
        )
        assert shown_text(audit.panel.headline) == audit_question.NO_AREA

    @pytest.mark.long
    def test_figures_are_those_of_the_two_policies(self, ambiguous):
        panel, audit = ambiguous.panel, audit_of(ambiguous)
        text = panel.headline.text()
        assert f"{audit.first.metrics.pq:.3f} → {audit.second.metrics.pq:.3f}" in text
        assert panel.summary.texts()[-1][0] == "region"
        row = audit.effect.iloc[-1]
        changes = [
            styles.signed_count_text(int(row[f"{k}_difference"])) for k in ("tp", "fp", "fn")
        ]
        assert panel.summary.texts()[-1][1:4] == changes
        effect = panel.summary.model()
        assert f"FP: {int(row['fp_first'])} under the first" in effect.index(
            effect.rowCount() - 1, 2
        ).data(Qt.ItemDataRole.ToolTipRole)

    def test_a_list_is_headed_by_the_policies_that_were_compared(self, desk, ambiguous, wait_until):
        panel = ambiguous.panel
        click_button(list_button(panel, "In the area"))
        before, headline = panel.table.titles(), panel.headline.text()
        other = next(own for own in panel.inputs["second"].values if own not in (None, "majority"))
        panel.inputs["second"].choose(other)
        assert ambiguous.is_busy  # a worker is comparing the others
        for listed in ("Changed", "In the area"):
            click_button(list_button(panel, listed))
            assert (panel.table.titles(), panel.headline.text()) == (before, headline)
        wait_until(lambda: desk.is_settled)
        assert panel.table.titles() != before
        assert panel.headline.text().endswith(f"to “{SETTING_WORDS[other]}”")
        panel.inputs["second"].choose(None)
        wait_until(lambda: desk.is_settled)
        assert (panel.table.titles(), panel.headline.text()) == (before, headline)
        click_button(list_button(panel, "Changed"))

    def test_flips_are_listed_with_the_reason(self, desk, ambiguous, wait_until):
        panel = ambiguous.panel
        panel.inputs["first"].setCurrentText("Removed from both")
        panel.inputs["second"].setCurrentText("Counted as usual")
        wait_until(lambda: desk.is_settled)
        frame = audit_policies(ambiguous.value.here.evaluation, "clip", "keep").objects
        assert len(panel.table.rows()) == int(frame["flips"].sum())
        click_button(list_button(panel, "In the area"))
        press_row(panel.table, 0, 0)
        (name,) = panel.shown_table.objects(panel.table.rows()[0]).names
        assert (desk.session.selection.side, desk.session.selection.id) == (name.side, name.id)
        assert "Counted as usual: " in panel.row_line.text()
        assert "judged whole" in panel.row_line.text()
        assert "Code name: clip." in panel.inputs["first"].itemData(1, Qt.ItemDataRole.ToolTipRole)
        assert panel.headline.text().endswith("from “Removed from both” to “Counted as usual”")
        assert STANDARD in desk.panels.title.title()
        assert "ambiguous areas removed from both" in desk.panels.title.rules.toolTip()
        assert "Counted as usual: " in panel.table.model().index(0, 0).data(
            Qt.ItemDataRole.ToolTipRole
        )

    def test_a_narrow_list_is_not_scrolled_sideways(self, ambiguous):
        table = ambiguous.panel.table
        table.setFixedWidth(360)
        for listed in ("Sticking out", "In the area"):
            click_button(list_button(ambiguous.panel, listed))
            handle_events()
            assert table.rows()
            assert not table.horizontalScrollBar().isVisible()
        table.setMinimumWidth(0)
        table.setMaximumWidth(16777215)

    @pytest.mark.long
    def test_spill_is_listed_and_marked_only_while_in_sight(
        self, desk, viewer, ambiguous, wait_until
    ):
        click_button(list_button(ambiguous.panel, "Sticking out"))
        wait_until(lambda: desk.is_settled)
        spill = spill_of(ambiguous)
        assert len(ambiguous.panel.table.rows()) == len(spill)
        marks = viewer.layers[MARKS_LAYER]
        row = int(spill["row"].iloc[0])
        y0, x0, y1, x1 = desk.session.evaluation.outcomes.prediction.bbox[row]
        assert marks.data[max(y0 - 2, 0) : y1 + 2, max(x0 - 2, 0) : x1 + 2].any()
        raised(desk, TeamsPresenter, wait_until)
        assert MARKS_LAYER not in viewer.layers


def groups_of(part):
    """Return the groups of the region and team that a panel shows."""
    return failure_groups(part.value.here.evaluation)


class TestGroups:
    @pytest.fixture
    def filled(self, desk, groups, wait_until):
        desk.session.set_team("merger")
        wait_until(lambda: desk.is_settled)
        assert groups_of(groups)
        return groups

    @pytest.fixture
    def costs(self, desk, wait_until):
        found = desk.presenter(COSTS)
        desk.raise_part(found)
        wait_until(found.panel.isVisible)
        return found

    @pytest.mark.long
    def test_groups_are_listed_and_what_if_is_told(self, viewer, filled):
        panel = filled.panel
        press_row(panel.table, 0, 0)
        group = groups_of(filled)[panel.table.selected()]
        now = filled.value.here.evaluation.metrics.pq
        assert f"PQ {now:.3f} → {now + group.pq_lost:.3f}" in panel.row_line.text()
        assert styles.signed_text(group.pq_lost) in panel.row_line.text()
        ring = viewer.layers[GROUP_LAYER]
        y, x = np.array(ring.translate) / ring.scale
        assert y < group.bbox[0]
        assert x < group.bbox[1]
        assert len(panel.members.texts()) == len(group.pair_reference)

    @pytest.mark.parametrize(
        ("classes", "words"),
        [
            (("A", "A"), ""),
            (("B", "B"), "keeps the predicted class, which is the wrong one for 2 of the 2 nuclei"),
        ],
    )
    def test_without_a_gain_it_says_why(self, classes, words):
        reference, prediction = np.zeros((2, 8, 24), np.int32)
        reference[1:7, 1:10], reference[1:7, 11:20] = 1, 2
        prediction[1:7, 1:16] = 1
        names = ("A", "B")
        evaluation = evaluate(
            LabelPair(
                LabelImage.from_array(reference, dict(enumerate(classes, 1)), names),
                LabelImage.from_array(prediction, {1: "A"}, names),
            )
        )
        (group,) = failure_groups(evaluation)
        sentence = groups_question.why_no_gain(evaluation, group)
        assert words in sentence
        assert bool(words) == bool(sentence)

    def test_an_object_selects_its_group_and_a_member_its_object(self, desk, filled):
        group = groups_of(filled)[-1]
        desk.session.select_row(Side.REFERENCE, int(group.reference_rows[0]))
        selected = groups_of(filled)[filled.panel.table.selected()]
        assert selected.reference_rows.tolist() == group.reference_rows.tolist()
        assert filled.panel.table.titles()[-1] == "PQ gain"
        for table in (filled.panel.table, filled.panel.members):
            assert not table.horizontalScrollBar().isVisible()
        press_row(filled.panel.members, 0, 1)
        assert desk.session.selection.side is Side.PREDICTION
        assert desk.session.selection.row == group.pair_prediction[0]

    @pytest.mark.long
    def test_the_cohort_is_summed_up_in_the_background(self, desk, filled, costs, wait_until):
        panel, session = costs.panel, desk.session
        click_button(panel.work.start)
        assert panel.work.is_running
        wait_until(lambda: desk.is_settled)
        assert not panel.work.is_running
        wanted = Groups(team=session.team, settings=session.settings).answer(session.cohort)
        kinds = wanted.tables[0].frame
        shown = panel.table.texts()
        assert [row[0] for row in shown] == kinds["kind"].tolist()
        assert shown[-1][0] == ALL
        assert shown[-1][4] == signed(kinds["pq_lost"].iloc[-1], 4)
        here = lost_over([filled.value.here.evaluation])
        assert int(shown[-1][1]) >= here[-1].groups
        panel.which.choose(panel.which.values[1])
        assert len(panel.table.texts()) == int(shown[-1][1])
        # A row goes to its group, in whatever region.
        groups = wanted.tables[1].frame
        other = groups["region"] != session.snapshot.region.name
        row = int(np.flatnonzero(other.to_numpy())[-1])
        press_row(panel.table, panel.table.rows().index(row), 0)
        wait_until(lambda: desk.is_settled)
        assert session.snapshot.region.name == groups["region"][row]
        ids = set(map(int, groups["reference_ids"][row].split()))
        raised(desk, GroupsPresenter, wait_until)
        group = groups_of(filled)[filled.panel.table.selected()]
        assert {int(session.shown.outcomes.reference.ids[k]) for k in group.reference_rows} == ids

    @pytest.mark.long
    @pytest.mark.usefixtures("filled")
    def test_it_can_be_stopped_and_is_dropped_with_other_settings(self, desk, costs, wait_until):
        panel = costs.panel
        click_button(panel.work.start)
        click_button(panel.work.stop)
        assert "Stopped" in panel.headline.text()
        click_button(panel.work.start)
        wait_until(lambda: desk.is_settled)
        desk.panels.settings.threshold.setValue(0.6)
        assert "settings or the files have changed" in panel.headline.text()
        wait_until(lambda: desk.is_settled)

    @pytest.mark.usefixtures("filled")
    def test_what_the_cohort_loses_is_dropped_with_another_source(self, desk, costs, wait_until):
        panel = costs.panel
        click_button(panel.work.start)
        wait_until(lambda: not costs.is_busy)
        assert panel.table.isVisible()
        with other_source(desk, wait_until):
            assert not panel.table.isVisible()
            assert "the files have changed" in panel.headline.text()

    def test_without_groups_it_says_what_to_do(self, desk, groups, wait_until):
        desk.session.set_team("careful")
        wait_until(lambda: desk.is_settled)
        assert not groups_of(groups)
        assert shown_text(groups.panel.headline) == groups_question.NO_GROUPS
        # True before and after the button was pressed; which regions, only Failures lists.
        assert "Failures, grouped by cause" in groups_question.NO_GROUPS
        assert "press" not in groups_question.NO_GROUPS
        assert not groups.panel.table.isVisible()


class TestWhenToCompute:
    @pytest.fixture
    def computed(self, audit, monkeypatch):
        """List the teams for which an audit is computed."""
        teams, real = [], audit.kind.answered

        def answered(question, here):
            teams.append(here.team)
            return real(question, here)

        monkeypatch.setattr(audit.kind, "answered", answered)
        return teams

    def test_the_same_evaluation_is_not_audited_twice(self, desk, computed, wait_until):
        desk.session.region_changed.emit(replace(desk.session.snapshot))
        wait_until(lambda: desk.is_settled)
        assert not computed

    def test_nothing_is_computed_for_a_team_that_is_still_coming(
        self, desk, audit, computed, monkeypatch
    ):
        snapshot, value = desk.session.snapshot, audit.value
        partial = replace(snapshot, pending=frozenset({"careful"}), results={}, predictions={})
        monkeypatch.setattr(desk.session, "_snapshot", partial)
        audit.refresh()
        assert not audit.is_busy
        assert not computed
        assert audit.value is value

    @pytest.mark.long
    def test_teams_wait_until_all_are_there(self, desk, teams, monkeypatch, wait_until):
        snapshot, shown = desk.session.snapshot, teams.value
        known = {"careful": snapshot.evaluations["careful"]}
        others = frozenset(snapshot.evaluations) - set(known)
        partial = replace(snapshot, pending=others, results=known)
        teams.refresh()
        assert teams.is_busy  # with what is of no use any more when others are asked for
        with monkeypatch.context() as patch:
            patch.setattr(desk.session, "_snapshot", partial)
            teams.refresh()
            assert not teams.is_busy
            assert teams.value is shown
        teams.refresh()
        assert teams.is_busy
        wait_until(lambda: desk.is_settled)
        assert teams.value is not shown

    @pytest.mark.long
    def test_only_while_the_panel_can_be_seen(self, desk, audit, computed, wait_until):
        dock, session = dock_of(audit.panel), desk.session
        dock.setFloating(True)
        wait_until(lambda: audit.is_in_sight)
        session.set_team("merger")
        wait_until(lambda: computed == ["merger"] and desk.is_settled)
        dock.setFloating(False)
        raised(desk, TeamsPresenter, wait_until)
        wait_until(lambda: not audit.is_in_sight)
        session.set_team("careful")
        dock.close()
        desk.viewer.window._qt_window.repaint()
        session.set_team("confuser")
        assert computed == ["merger"]
        raised(desk, AuditPresenter, wait_until)
        wait_until(lambda: computed == ["merger", "confuser"] and desk.is_settled)


@pytest.mark.long
def test_side_by_side_leaves_the_garbage_collector_alone(desk, wait_until):
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        teams = desk.presenter(TeamsPresenter)
        teams.set_mode(ViewMode.GRID)
        wait_until(lambda: desk.is_settled and teams.grid.is_on)
        assert gc.get_freeze_count() > frozen / 2  # some of them were deleted since
    finally:
        gc.unfreeze()
