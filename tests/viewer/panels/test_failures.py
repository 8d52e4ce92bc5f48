"""The Failures panel, used by real clicks and keys, and N over the whole cohort.

One window serves all of these tests; each finds it as it was opened.
"""

import time
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_panoptic.display import styles
from napari_panoptic.display.crop_reader import CropReader, CropSize
from napari_panoptic.display.crops import CropSource
from napari_panoptic.display.failure_sections import SMALL, GroupBy, passing, sections
from napari_panoptic.display.object_rows import ObjectFilter, ObjectRows, WorstFirst
from napari_panoptic.display.styles import CAUSE_WORDS
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.nuclei.outcomes import OBJECT_COLUMNS
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import CAUSES, STATUS_CODE, STATUSES, Side, Status
from napari_panoptic.viewer.desk.failure_steps import FIRST as FIRST_OF_ALL
from napari_panoptic.viewer.desk.failure_steps import LAST, LAST_CHOSEN
from napari_panoptic.viewer.kit.questions import FolderDialog
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.failures.crops import KEPT_BYTES, Crops
from napari_panoptic.viewer.panels.failures.panel import (
    ALL_HIDDEN,
    FILTERED,
    NO_FAILURES,
    FailuresPanel,
    FailuresPresenter,
    Scope,
)
from napari_panoptic.viewer.panels.failures.view import FailureView
from napari_panoptic.viewer.panels.object_card import ObjectPresenter
from napari_panoptic.viewer.state.preferences import Queue
from tests.support.many_failures import many_failures
from tests.viewer.finding import (
    FIRST,
    SECOND,
    THIRD,
    answering,
    nearest_view_middle,
    row_of_status,
    shown_text,
)

FIRST_TEAM = "merger"
"""It fails more."""

FEW = ObjectFilter(
    statuses=frozenset({"FP"}),
    classes=frozenset({"Lymphocyte"}),
    causes=frozenset({"too-large"}),
)
"""Eight failures in four of the five regions."""
NO_KEYS = Qt.KeyboardModifier.NoModifier
CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture(scope="module")
def shown_parts():
    """Show the gallery, and the object that is selected in it."""
    return (ObjectPresenter, FailuresPresenter)


@pytest.fixture
def at_first(fresh_desk):
    fresh_desk.state.order = WorstFirst.IOU


@pytest.fixture
def table(desk):
    return desk.panels.objects


@pytest.fixture
def failures(desk, canvas, wait_until):
    """Bring the panel to the front by its key, over all regions, and wait for its crops."""
    part = desk.presenter(FailuresPresenter)
    panel = part.panel
    panel.clear_filters()
    panel.scope.choose(Scope.ALL)
    panel.group_by.choose(GroupBy.CAUSE)
    panel.view.items.set_closed(set())
    QTest.keyClick(canvas, Qt.Key.Key_G)
    wait_until(lambda: is_in_sight(panel) and len(panel.view.items.rows) and desk.is_settled)
    return part


@pytest.fixture
def view(failures):
    return failures.panel.view


def selected(desk):
    chosen = desk.session.selection
    region = desk.session.snapshot.region.name
    return None if chosen is None else (region, chosen.side, chosen.id)


def place_of(failures, row):
    name = failures.failures.name(int(row))
    return name.region, name.side, name.id


def click(view, row, modifier=NO_KEYS):
    item = view.items.index(view.items.item_of(int(row)))
    view.scrollTo(item)
    place = view.cell_rect(int(row)).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, modifier, place)


def n_failed(desk, team):
    """Count the failures of a team from the figures of all regions."""
    lines = [line for line in desk.session.summaries.values() if line.team == team]
    assert len(lines) == len(desk.session.cohort.regions)
    confusion = sum(line.counts.confusion for line in lines)
    return confusion.sum() - np.trace(confusion)


class TestScope:
    def test_it_shows_every_failure_of_the_cohort_grouped_by_cause(self, failures, view, desk):
        assert len(view.items.rows) == n_failed(desk, "merger")
        assert {block.region for block in failures.failures.blocks} == {
            region.name for region in desk.session.cohort.regions
        }
        columns, small_px = failures.failures.columns, desk.link.failures.walk.order.small_px
        is_small = columns["area_px"][view.items.rows] < small_px
        assert (np.diff(is_small.astype(int)) >= 0).all()  # they come last
        causes = columns["cause"][view.items.rows[~is_small]]
        runs = np.flatnonzero(np.diff(causes)) + 1
        assert len(runs) + 1 == len(set(causes.tolist())) > 1

    def test_it_opens_at_the_worst_group_also_if_a_small_failure_is_selected(
        self, failures, view, desk, monkeypatch, wait_until
    ):
        region, side, id_ = place_of(failures, view.items.rows[-1])
        desk.link.go_to(region, side, id_)
        wait_until(lambda: desk.is_settled and selected(desk) == (region, side, id_))
        assert not view.is_at_top
        monkeypatch.setattr(type(desk.link.failures), "is_as_opened", True)
        view.deselect()
        view.scrollToTop()
        failures.compute_now()
        assert view.is_at_top
        assert view.items.section(0).title != SMALL

    def test_within_a_section_the_order_is_the_chosen_one(self, desk, failures, view):
        desk.panels.queue.order.choose(WorstFirst.AREA)
        columns = failures.failures.columns
        for code in set(columns["cause"].tolist()):
            rows = [row for row in view.items.rows if columns["cause"][row] == code]
            rows.sort(
                key=lambda row: columns["area_px"][row] < desk.link.failures.walk.order.small_px
            )
            assert (np.diff(columns["area_px"][rows]) <= 0).all()

    @pytest.mark.parametrize("by", list(GroupBy))
    def test_sections_have_headings_with_counts(self, failures, view, by):
        failures.panel.group_by.choose(by)
        items = view.items
        headings = [n for n in range(items.rowCount()) if items.is_heading(n)]
        assert sum(len(items.section(n).rows) for n in headings) == len(items.rows)
        for item in headings:
            section = items.section(item)
            assert str(len(section.rows)) in items.heading_text(item)
            frame = failures.failures.frame(section.rows)
            title = "" if section.title == "misclassified" else section.title
            if title == SMALL:
                assert (frame["area_px"] < failures.link.failures.walk.order.small_px).all()
            else:
                words = CAUSE_WORDS if by is GroupBy.CAUSE else {}
                assert {words.get(each, each) for each in frame[str(by)]} == {title}

    def test_grouped_by_team_it_shows_all_teams(self, failures, view, desk):
        failures.panel.group_by.choose(GroupBy.TEAM)
        both = n_failed(desk, "merger") + n_failed(desk, "careful")
        assert len(view.items.rows) == both

    def test_of_one_region_it_shows_what_the_table_has(self, failures, view, table):
        failures.panel.scope.choose(Scope.REGION)
        ids = failures.failures.columns["id"][view.items.rows]
        rows = table.model.failures()
        assert sorted(ids.tolist()) == sorted(table.model.rows.values["id"][rows].tolist())

    def test_listed_objects_follow_filter_and_order_of_the_table(self, failures, view, table):
        failures.panel.scope.choose(Scope.LISTED)
        table.set_filter(ObjectFilter(statuses=frozenset({"FP"})))
        table.view.sortByColumn(1, Qt.SortOrder.DescendingOrder)
        columns = failures.failures.columns
        assert set(columns["status"].tolist()) == {STATUS_CODE[Status.FP]}
        listed = table.model.rows.values["id"][table.model.failures()]
        by_cause = columns["cause"][view.items.rows]
        for code in set(by_cause.tolist()):
            shown = columns["id"][view.items.rows][by_cause == code]
            assert [id_ for id_ in listed if id_ in shown] == shown.tolist()
        table.set_filter(ObjectFilter(statuses=frozenset({"TP"})))
        assert shown_text(failures.panel.hint) == ALL_HIDDEN
        QTest.mouseClick(failures.panel.everything, Qt.MouseButton.LeftButton)
        assert shown_text(failures.panel.hint) == ""
        assert table.model.filter.is_open

    def test_its_own_filters_narrow_every_scope(self, failures, view):
        panel = failures.panel
        panel.status.uncheck("FP")
        panel.status.uncheck("misclassified")
        status = failures.failures.columns["status"][view.items.rows]
        assert set(status.tolist()) == {STATUS_CODE[Status.FN]}
        for cause in CAUSES:
            panel.cause.uncheck(str(cause))
        assert shown_text(panel.hint) == FILTERED
        QTest.mouseClick(panel.everything, Qt.MouseButton.LeftButton)
        assert shown_text(panel.hint) == ""

    def test_without_failures_it_says_what_to_do(self, failures):
        failures.panel.scope.choose(Scope.LISTED)
        nothing = np.zeros(0, np.intp)
        with patch.object(ObjectRows, "listed_failures", return_value=nothing, autospec=True):
            failures.refresh()
        assert shown_text(failures.panel.hint) == NO_FAILURES
        failures.refresh()
        assert shown_text(failures.panel.hint) == ""

    @pytest.mark.usefixtures("failures")
    def test_another_team_shows_its_own(self, view, desk):
        desk.session.set_team("careful")
        assert len(view.items.rows) == n_failed(desk, "careful")

    @pytest.mark.long
    def test_hidden_it_computes_nothing_and_catches_up(self, failures, view, desk, wait_until):
        desk.show_workspace("Inspect")
        wait_until(lambda: not is_in_sight(failures.panel))
        before = view.items.failures
        desk.session.set_team("careful")
        wait_until(lambda: desk.is_settled)
        assert view.items.failures is before
        desk.show_workspace("Failures")
        wait_until(lambda: view.items.failures is not before)
        assert len(view.items.rows) == n_failed(desk, "careful")

    @pytest.mark.long
    @pytest.mark.usefixtures("failures")
    def test_other_settings_start_again_by_themselves(self, view, desk, wait_until):
        session = desk.session
        before = len(view.items.rows)
        settings = session.settings
        desk.link.request(settings=settings.replaced(iou_threshold=0.8))
        desk.link.summary.start()
        wait_until(lambda: desk.is_settled)
        assert len(view.items.rows) == n_failed(desk, "merger") > before
        desk.link.request(settings=settings)
        desk.link.summary.start()
        wait_until(lambda: desk.is_settled)
        assert len(view.items.rows) == before

    @pytest.mark.parametrize("scope", [Scope.REGION, Scope.LISTED])
    def test_while_another_region_comes_no_crop_of_the_last_one_can_be_clicked(
        self, failures, view, desk, wait_until, scope
    ):
        session, seen = desk.session, []
        failures.panel.scope.choose(scope)
        assert {place_of(failures, row)[0] for row in view.items.rows} == {FIRST}

        def arrive(snapshot):
            if snapshot.region.name == THIRD and not seen:
                rows = view.items.rows
                seen.append((bool(snapshot.pending), [place_of(failures, row) for row in rows]))
                if len(rows):
                    click(view, rows[0])
                    assert selected(desk) == seen[0][1][0]

        session.region_changed.connect(arrive)
        desk.link.go_to(THIRD)  # no neighbour: it was not read ahead
        wait_until(lambda: desk.is_settled and session.snapshot.region.name == THIRD)
        session.region_changed.disconnect(arrive)
        ((was_pending, places),) = seen
        assert was_pending
        failed = {STATUS_CODE[status] for status in styles.FAILURES}
        for region, side, id_ in places:
            outcomes = session.evaluation.outcomes.side(side)
            assert region == THIRD
            assert outcomes.status[outcomes.row_of(id_)] in failed

    def test_progress_is_shown_and_can_be_stopped_and_continued(
        self, failures, view, desk, wait_until
    ):
        panel, summary = failures.panel, desk.link.summary
        everything = len(view.items.rows)
        summary.start()
        wait_until(lambda: summary.is_busy and "of 5 regions" in panel.progress.text())
        QTest.mouseClick(panel.halt, Qt.MouseButton.LeftButton)
        wait_until(lambda: desk.is_settled)
        assert not summary.is_busy
        assert panel.progress.text().startswith("stopped after ")
        assert len(view.items.rows) < everything
        QTest.mouseClick(panel.halt, Qt.MouseButton.LeftButton)
        wait_until(lambda: desk.is_settled)
        assert panel.progress.text() == ""
        assert len(view.items.rows) == everything

    def test_what_is_left_out_is_said_once(self, failures, desk, wait_until):
        session, summary = desk.session, desk.link.summary
        line = session.summaries[SECOND, "merger"]
        counted = failures.panel.line.text()
        session.add_summary(replace(line, failures=None))  # as of a region that cannot be read
        try:
            wait_until(lambda: "left out" in failures.panel.line.text())
            wait_until(lambda: desk.is_settled)
            for _ in range(3):
                summary.progressed.emit(summary.total, summary.total)
                assert failures.panel.line.text().count("1 region left out") == 1
        finally:
            session.add_summary(line)
            wait_until(lambda: failures.panel.line.text() == counted)


class TestChosen:
    """Exactly the failures that another panel chose."""

    TITLE = "Failures of merger · every tenth"

    @pytest.fixture
    def names(self, failures):
        everything = failures.failures
        return [everything.name(row) for row in range(0, len(everything), 10)]

    @pytest.fixture
    def chosen(self, failures, desk, names, wait_until):
        failures.panel.status.uncheck("FP")
        desk.show_workspace("Inspect")
        wait_until(lambda: not is_in_sight(failures.panel))
        desk.link.show_failures(self.TITLE, names)
        assert self.shown(failures) == set(names)  # no others are seen for a moment
        wait_until(lambda: desk.is_settled and is_in_sight(failures.panel))
        yield failures
        desk.link.failures.show_only(None)

    def shown(self, part):
        items = part.panel.view.items
        return {part.failures.name(int(row)) for row in items.rows}

    def test_the_gallery_comes_to_the_front_with_exactly_these(self, chosen, names):
        assert self.shown(chosen) == set(names)
        assert chosen.panel.chosen.text() == f"{self.TITLE} · {len(names)} objects"
        assert is_in_sight(chosen.panel.show_all)
        assert chosen.panel.scope.choice is Scope.CHOSEN

    @pytest.mark.long
    def test_a_button_shows_all_again(self, chosen, view, desk):
        QTest.mouseClick(chosen.panel.show_all, Qt.MouseButton.LeftButton)
        assert len(view.items.rows) == n_failed(desk, "merger")
        assert chosen.panel.scope.choice is Scope.ALL
        assert not is_in_sight(chosen.panel.show_all)
        assert desk.link.failures.only is None

    @pytest.mark.long
    def test_another_scope_ends_the_choice(self, chosen, desk):
        chosen.panel.scope.choose(Scope.REGION)
        assert chosen.panel.scope.choice is Scope.REGION
        assert desk.link.failures.only is None
        assert not is_in_sight(chosen.panel.chosen)

    @pytest.mark.parametrize(
        "queue", [Queue.COHORT, pytest.param(Queue.REGION, marks=pytest.mark.long)]
    )
    @pytest.mark.usefixtures("chosen")
    def test_n_leads_through_exactly_these(self, desk, names, wait_until, queue):
        few = names[::5]
        desk.link.show_failures("few", few)
        desk.link.state.queue = queue
        desk.panels.objects.set_filter(FEW)  # has no effect
        walked = []
        while desk.link.failures.step(1):
            wait_until(lambda: desk.is_settled)
            walked.append(selected(desk))
            assert len(walked) <= len(few)
        assert sorted(walked) == sorted((at.region, at.side, at.id) for at in few)
        assert desk.panels.title.selected.text() == LAST_CHOSEN

    def test_the_gallery_opens_at_its_top_and_the_queue_names_the_limit(self, chosen, desk, names):
        queue = desk.panels.queue
        assert chosen.panel.view.is_at_top
        assert f"{len(names)} chosen: Failures" in queue.limit.text()
        assert is_in_sight(queue.limit)
        assert "region" not in queue.text()
        QTest.mouseClick(queue.limit, Qt.MouseButton.LeftButton)
        assert desk.link.failures.only is None
        assert not is_in_sight(queue.limit)
        assert queue.scope.choice.short.lower() in queue.text()

    def test_another_team_ends_the_choice(self, chosen, desk, wait_until):
        desk.session.set_team("careful")
        wait_until(lambda: desk.is_settled)
        assert desk.link.failures.only is None
        assert chosen.panel.scope.choice is Scope.ALL
        desk.link.failures.step()
        wait_until(lambda: desk.is_settled)
        assert desk.session.team == "careful"

    @pytest.mark.long
    def test_regions_that_are_not_evaluated_are(self, chosen, desk, names, wait_until):
        desk.link.summary.stop()
        desk.session.clear_summaries()
        desk.link.show_failures(self.TITLE, names)
        wait_until(lambda: desk.is_settled)
        assert self.shown(chosen) == set(names)

    @pytest.mark.long
    def test_other_settings_end_the_choice(self, chosen, desk, wait_until):
        session = desk.session
        before = session.settings
        try:
            desk.panels.settings.settings_chosen.emit(before.replaced(iou_threshold=0.6))
            wait_until(lambda: desk.is_settled)
            assert chosen.panel.scope.choice is Scope.ALL
            assert desk.link.failures.only is None
        finally:
            desk.panels.settings.settings_chosen.emit(before)
            wait_until(lambda: desk.is_settled)


class TestView:
    def test_only_crops_in_sight_are_cut(self, view):
        assert 0 < len(view.crops) < len(view.items.rows)
        for name in view.names_in_sight():
            assert not view.crops.picture(name).isNull()

    @pytest.mark.usefixtures("qapp")
    def test_a_region_that_is_left_before_its_crops_are_cut_is_read_from_its_files(
        self, cohort, wait_until
    ):
        settings = EvaluationSettings().replaced(distances=False)
        found = load_region(cohort, FIRST, settings)
        side = found.evaluations["merger"].outcomes.prediction
        name = FailureName("merger", FIRST, Side.PREDICTION, int(side.ids[0]))
        live = CropSource(
            found.image,
            found.reference,
            found.predictions["merger"],
            found.evaluations["merger"].outcomes,
        )
        shown = {name: live}
        crops = Crops()
        pictures = []
        for leave in (False, True):
            crops.use(CropReader(cohort, settings, None), shown.get)
            crops.resize(CropSize(64, 96))
            crops.want([name])
            if leave:
                shown.clear()
            wait_until(lambda: not crops.is_busy)
            pictures.append(crops.picture(name).toImage())
        crops.close()
        assert pictures[0].width() == 96
        assert pictures[1] == pictures[0]

    def test_objects_drawn_in_a_region_that_is_left_at_once_keep_their_crops(
        self, failures, view, desk, wait_until
    ):
        session, loaded = desk.session, desk.session.loaded
        other = load_region(session.cohort, SECOND, session.settings)
        labels = session.edited_labels(Side.PREDICTION)
        new = int(labels.ids.max()) + 1
        y, x = np.nonzero(labels.id_image()[:4, :4] == 0)
        drawn = FailureName("merger", FIRST, Side.PREDICTION, new)
        try:
            session.edit(Side.PREDICTION, y, x, new, classes={new: labels.class_names[0]})
            session.deliver(session.request(region_name=SECOND), other)
            assert session.snapshot.region.name == SECOND
            wait_until(lambda: failures.failures.find(drawn) is not None)
            view.select(failures.failures.find(drawn))
            view.crops.outdate()
            view.look_again()
            wait_until(lambda: desk.is_settled and drawn in view.names_in_sight())
            assert not view.crops.picture(drawn).isNull()
        finally:
            session.deliver(session.request(region_name=FIRST), loaded)
            wait_until(lambda: desk.is_settled)
            session.discard_edits()
        wait_until(lambda: desk.is_settled)

    @pytest.mark.long
    def test_crops_of_other_regions_are_those_of_the_region_itself(
        self, failures, view, desk, wait_until
    ):
        failures.panel.group_by.choose(GroupBy.REGION)
        row = next(r for r in view.items.rows if place_of(failures, r)[0] == SECOND)
        view.select(int(row))
        name = failures.failures.name(int(row))
        wait_until(lambda: desk.is_settled and view.crops.picture(name) is not None)
        before = view.crops.picture(name).toImage()
        desk.link.go_to(SECOND)
        wait_until(lambda: desk.is_settled and desk.session.snapshot.region.name == SECOND)
        view.crops.outdate()
        view.look_again()
        wait_until(lambda: desk.is_settled)
        assert view.crops.picture(name).toImage() == before

    def test_a_click_goes_there(self, failures, view, desk):
        failures.panel.scope.choose(Scope.REGION)
        row = view.items.rows[1]
        click(view, row)
        assert selected(desk) == place_of(failures, row)
        assert view.selected() == row
        chosen = desk.session.selection
        own = desk.session.evaluation.outcomes.side(chosen.side)
        viewer = desk.viewer
        middle = nearest_view_middle(viewer, own.bbox[chosen.row])
        np.testing.assert_allclose(viewer.scene.camera.center[-2:], middle)

    def test_a_click_goes_to_another_region(self, failures, view, desk, wait_until):
        row = next(r for r in view.items.rows if place_of(failures, r)[0] == SECOND)
        click(view, row)
        wait_until(lambda: desk.is_settled and desk.session.selection is not None)
        assert selected(desk) == place_of(failures, row)
        name = failures.failures.name(view.selected())
        assert (name.region, name.side, name.id) == selected(desk)

    @pytest.mark.long
    def test_a_click_shows_the_team_of_the_failure(self, failures, view, desk, wait_until):
        failures.panel.group_by.choose(GroupBy.TEAM)
        row = next(r for r in view.items.rows if failures.failures.place(r).team == "careful")
        click(view, row)
        wait_until(lambda: desk.is_settled and desk.session.selection is not None)
        assert desk.session.team == "careful"

    @pytest.mark.long
    def test_arrows_move_and_letters_go_to_the_desk(self, failures, view, desk):
        failures.panel.scope.choose(Scope.REGION)
        view.setFocus()
        QTest.keyClick(view, Qt.Key.Key_Home)
        rows = view.items.rows
        assert selected(desk) == place_of(failures, rows[0])
        QTest.keyClick(view, Qt.Key.Key_Right)
        assert selected(desk) == place_of(failures, rows[1])
        QTest.keyClick(view, Qt.Key.Key_Left)
        QTest.keyClick(view, Qt.Key.Key_Down)
        first = view.cell_rect(int(rows[0]))
        assert view.cell_rect(view.selected()).y() > first.y()
        assert view.cell_rect(view.selected()).x() == first.x()
        QTest.keyClick(view, Qt.Key.Key_Up)
        assert view.selected() == rows[0]
        QTest.keyClick(view, Qt.Key.Key_End)
        assert view.selected() == rows[-1]
        before = desk.session.selection
        QTest.keyClick(view, Qt.Key.Key_N)
        assert desk.session.selection != before

    def test_what_is_selected_elsewhere_is_marked_and_scrolled_to(self, failures, view, desk):
        row = next(int(r) for r in view.items.rows[::-1] if place_of(failures, r)[0] == FIRST)
        side, at = failures.failures.side(row), int(failures.failures.columns["row"][row])
        desk.session.select_row(side, at)
        assert view.selected() == row
        assert view.viewport().rect().intersects(view.cell_rect(row))

    def test_several_are_selected_without_going_there(self, failures, view, desk):
        told = []
        desk.link.failures.chosen_changed.connect(told.append)
        rows = view.items.rows
        click(view, rows[0])
        before = desk.session.selection
        click(view, rows[2], CTRL)
        assert failures.selected_failures() == tuple(
            failures.failures.name(int(row)) for row in (rows[0], rows[2])
        )
        click(view, rows[4], SHIFT)
        assert failures.selected_failures() == tuple(
            failures.failures.name(int(row)) for row in (rows[0], *rows[2:5])
        )
        assert told[-1] == failures.selected_failures()
        assert desk.session.selection == before
        click(view, rows[1])
        assert failures.selected_failures() == (failures.failures.name(int(rows[1])),)

    def test_the_selection_outlives_another_order(self, desk, failures, view):
        click(view, view.items.rows[0])
        click(view, view.items.rows[3], CTRL)
        names = set(failures.selected_failures())
        desk.panels.queue.order.choose(WorstFirst.AREA)
        assert set(failures.selected_failures()) == names

    def test_the_heading_of_a_section_stays_in_sight(self, failures, view, wait_until):
        failures.panel.group_by.choose(GroupBy.CAUSE)
        view.scrollToTop()
        wait_until(lambda: view.kept_heading() is None)
        bar = view.verticalScrollBar()
        bar.setValue(40)
        wait_until(lambda: view.kept_heading() == 0)
        second = min(view.items.headings - {0})
        top = view.visualRect(view.items.index(second)).top()
        bar.setValue(bar.value() + top + 1)  # the next one takes its place
        wait_until(lambda: view.kept_heading() == second)
        view.select(int(view.items.rows[-1]))
        view.select(int(view.items.row(second + 1)))
        assert view.visualRect(view.items.index(second + 1)).top() >= 26  # the heading's height
        view.scrollToTop()

    def test_a_heading_closes_its_section_and_opens_it_again(self, failures, view):
        everything, count = view.items.rowCount(), len(view.items.section(0).rows)
        view.verticalScrollBar().setValue(0)
        place = view.visualRect(view.items.index(0)).center()
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, NO_KEYS, place)
        assert view.items.rowCount() == everything - count
        failures.refresh()
        assert view.items.is_closed(0)
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, NO_KEYS, place)
        assert view.items.rowCount() == everything

    def test_every_crop_is_as_wide_and_buttons_widen_them(self, failures):
        before = failures.field_px
        QTest.mouseClick(failures.panel.wider, Qt.MouseButton.LeftButton)
        assert failures.field_px > before
        assert "µm" in failures.panel.line.text()
        QTest.mouseClick(failures.panel.closer, Qt.MouseButton.LeftButton)
        assert failures.field_px == before

    @pytest.mark.long
    def test_the_slider_makes_crops_larger(self, failures, view, desk, wait_until):
        before, usual = view.cell_rect(int(view.items.rows[0])), failures.panel.crop_size.value()
        failures.panel.crop_size.setValue(200)
        wait_until(lambda: desk.is_settled)
        assert view.cell_rect(int(view.items.rows[0])).height() > before.height()
        assert view.crops.picture(view.names_in_sight()[0]).width() == 200
        failures.panel.crop_size.setValue(usual)
        wait_until(lambda: desk.is_settled)

    def test_hover_explains_crops_and_sections(self, failures, view):
        row = int(view.items.rows[0])
        item = view.items.index(view.items.item_of(row))
        text = view.items.data(item, Qt.ItemDataRole.ToolTipRole)
        assert str(int(failures.failures.columns["id"][row])) in text
        heading = view.items.data(view.items.index(0), Qt.ItemDataRole.ToolTipRole)
        assert heading.endswith(".")

    def test_captions_tell_status_classes_iou_and_region(self, failures, view):
        columns = failures.failures.columns
        for row in view.items.rows[:: max(len(view.items.rows) // 40, 1)]:
            caption = view.items.caption(int(row))
            status = STATUSES[columns["status"][row]]
            word = "→" if status is Status.MISCLASSIFIED else str(status)
            assert word in caption.outcome
            assert caption.figure == styles.ratio_text(float(columns["iou"][row]))
            assert caption.region == failures.failures.place(int(row)).region

    def test_an_object_that_is_erased_leaves_the_gallery(self, failures, view, desk, wait_until):
        session = desk.session
        row = row_of_status(desk, Side.PREDICTION, Status.FP)
        id_ = int(session.evaluation.outcomes.prediction.ids[row])
        y, x = np.nonzero(session.edited_labels(Side.PREDICTION).id_image() == id_)
        erased = (FIRST, Side.PREDICTION, id_)

        def shown():
            return [place_of(failures, at) for at in view.items.rows]

        assert erased in shown()
        try:
            session.edit(Side.PREDICTION, y, x, 0)
            wait_until(lambda: desk.is_settled)
            assert erased not in shown()
            assert len(shown()) == n_failed(desk, "merger")
        finally:
            session.discard_edits()
        wait_until(lambda: desk.is_settled)
        assert erased in shown()

    def test_twenty_thousand_failures_are_shown_at_once_and_scroll(self, qtbot):
        view = FailureView(Crops())
        qtbot.addWidget(view)
        view.resize(600, 500)
        view.show()
        many = many_failures(20_000, regions=80)
        found = sections(many, np.arange(len(many)), GroupBy.REGION)
        begin = time.process_time()
        view.refill(lambda: view.items.show(many, found, GroupBy.REGION))
        view.executeDelayedItemsLayout()
        assert time.process_time() - begin < 2  # 0.1 s alone on the machine
        bar = view.verticalScrollBar()
        for share in (0.2, 0.9, 1.0):
            bar.setValue(round(share * bar.maximum()))
            assert 0 < len(view.names_in_sight()) < 100
        assert view.names_in_sight()[-1].id == 20_000

    def test_pictures_are_kept_within_bounds(self, view):
        size = view.crops.size.size_px
        assert len(view.crops) * 4 * size**2 <= KEPT_BYTES


class TestQueue:
    def walk(self, desk, wait_until, step=1):
        found = []
        while desk.link.failures.step(step):
            wait_until(lambda: desk.is_settled)
            found.append(selected(desk))
            assert len(found) <= 2000
        return found

    @pytest.fixture
    def few(self, table):
        """Keep the walk through all regions short."""
        table.set_filter(FEW)

    @pytest.mark.long
    @pytest.mark.usefixtures("few")
    @pytest.mark.parametrize("queue", list(Queue))
    def test_n_reaches_every_listed_failure_once_and_says_where_it_ends(
        self, desk, failures, wait_until, queue
    ):
        desk.link.state.queue = queue
        walked = self.walk(desk, wait_until)
        everything = [
            place_of(failures, row)
            for row in range(len(failures.failures))
            if passing(failures.failures, FEW)[row]
        ]
        assert len(walked) == len(set(walked))
        assert set(walked) == set(everything)
        last = desk.session.selection
        assert desk.panels.title.selected.text() == LAST
        desk.link.failures.step()
        assert desk.session.selection == last
        assert self.walk(desk, wait_until, -1) == walked[-2::-1]
        assert desk.panels.title.selected.text() == FIRST_OF_ALL

    @pytest.mark.long
    def test_region_by_region_it_follows_the_table_and_goes_on(self, desk, table, wait_until):
        own = [table.model.rows.object_of(int(row)) for row in table.model.failures()]
        for side, row in own:
            desk.link.failures.step()
            wait_until(lambda: desk.is_settled)
            chosen = desk.session.selection
            assert (chosen.side, chosen.row) == (side, row)
        desk.link.failures.step()
        wait_until(lambda: desk.is_settled)
        assert desk.session.snapshot.region.name == SECOND
        desk.link.failures.step(-1)
        wait_until(lambda: desk.is_settled)
        assert (desk.session.selection.side, desk.session.selection.row) == own[-1]

    def test_over_the_cohort_the_worst_come_first(self, desk, failures, wait_until):
        desk.link.state.order = WorstFirst.AREA
        desk.link.state.queue = Queue.COHORT
        areas = []
        for _ in range(5):
            desk.link.failures.step()
            wait_until(lambda: desk.is_settled)
            chosen = desk.session.selection
            side = desk.session.evaluation.outcomes.side(chosen.side)
            areas.append(int(side.area_px[chosen.row]))
        assert areas == sorted(failures.failures.columns["area_px"].tolist())[::-1][:5]

    @pytest.mark.long
    def test_regions_that_are_not_evaluated_yet_are_gone_to(self, desk, wait_until, table):
        desk.link.summary.stop()
        desk.session.clear_summaries()
        table.set_filter(ObjectFilter(statuses=frozenset({"FP"})))
        seen = set()
        while desk.session.snapshot.region.name == FIRST:
            assert desk.link.failures.step(1)
            wait_until(lambda: desk.is_settled)
            assert selected(desk) not in seen
            seen.add(selected(desk))
        chosen = desk.session.selection
        own = desk.session.evaluation.outcomes.side(chosen.side)
        assert own.status[chosen.row] == STATUS_CODE[Status.FP]
        desk.link.summary.start()
        wait_until(lambda: desk.is_settled)

    @pytest.mark.long
    def test_after_an_object_is_erased_n_goes_to_the_one_after_it(self, desk, table, wait_until):
        table.set_filter(ObjectFilter(statuses=frozenset({"FP"})))
        ids = table.model.rows.values["id"][table.model.failures()].tolist()
        session = desk.session
        for _ in range(2):
            desk.link.failures.step()
        y, x = np.nonzero(session.edited_labels(Side.PREDICTION).id_image() == ids[1])
        try:
            session.edit(Side.PREDICTION, y, x, 0)
            wait_until(lambda: desk.is_settled)
            desk.link.failures.step()
            now = table.model.rows.values["id"][table.model.failures()].tolist()
            assert session.selection.id == now[now.index(ids[0]) + 1]
        finally:
            session.discard_edits()
        wait_until(lambda: desk.is_settled)

    @pytest.mark.long
    def test_only_wanted_failures_are_gone_to(self, desk, failures, wait_until):
        wanted = {place_of(failures, row) for row in range(0, len(failures.failures), 40)}
        found = []
        while desk.link.failures.step(1, lambda at: (at.region, at.side, at.id) in wanted):
            wait_until(lambda: desk.is_settled)
            found.append(selected(desk))
        assert set(found) == wanted
        assert len(found) == len(wanted)

    @pytest.mark.long
    def test_going_on_looks_into_each_region_that_is_not_evaluated_once(self, desk, wait_until):
        desk.link.summary.stop()
        desk.session.clear_summaries()
        shown, ended = [], []

        def note(snapshot):
            if snapshot.region.name not in shown[-1:]:  # teams may come in two steps
                shown.append(snapshot.region.name)

        def note_end():
            ended.append(desk.session.snapshot.region.name)

        desk.session.region_changed.connect(note)
        desk.link.failures.ended.connect(note_end)
        desk.link.failures.go_on(lambda _at: False)
        wait_until(lambda: ended and desk.is_settled)
        desk.session.region_changed.disconnect(note)
        desk.link.failures.ended.disconnect(note_end)
        # The first one again at the end: failures before the place of the start may be open.
        first, *others = [region.name for region in desk.session.cohort.regions]
        assert shown == [*others, first]
        assert ended == shown[-1:]
        desk.link.summary.start()
        wait_until(lambda: desk.is_settled)

    @pytest.mark.long
    def test_going_on_begins_again_after_the_last(self, desk, failures, wait_until):
        names = [failures.failures.name(row) for row in range(len(failures.failures))]
        first = next(name for name in names if name.region == FIRST)
        desk.link.go_to(SECOND)
        wait_until(lambda: desk.is_settled and desk.session.snapshot.region.name == SECOND)
        desk.link.failures.go_on(lambda at: at == first)
        wait_until(lambda: selected(desk) == (first.region, first.side, first.id))


class TestExport:
    @pytest.fixture
    def export(self, failures, desk, wait_until, tmp_path):
        """Save a few failures in a folder of the user's choice."""
        failures.panel.status.uncheck("FN")
        failures.panel.status.uncheck("misclassified")

        def save():
            with patch.object(FolderDialog, "ask", return_value=str(tmp_path), autospec=True):
                QTest.mouseClick(failures.panel.export, Qt.MouseButton.LeftButton)
            wait_until(lambda: desk.is_settled)
            return tmp_path

        return save

    @pytest.mark.long
    def test_table_and_crops_are_those_shown(self, export, failures, view):
        folder = export()
        table = pd.read_csv(folder / "failures.csv")
        assert list(table)[:-1] == ["team", "patient", "region", *OBJECT_COLUMNS]
        expected = failures.failures.frame(view.items.all_rows)
        assert table["id"].tolist() == expected["id"].tolist()
        assert table["region"].tolist() == expected["region"].tolist()
        assert len(table) == len(list((folder / "crops").glob("*.png")))
        for name in table["crop"]:
            with Image.open(folder / name) as crop:
                assert np.asarray(crop).std() > 0

    @pytest.mark.long
    def test_it_asks_before_files_are_replaced(self, export):
        folder = export()
        (folder / "failures.csv").write_text("mine")
        with answering("No") as asked:
            export()
        assert "failures.csv" in asked[0]
        assert (folder / "failures.csv").read_text() == "mine"

    def test_a_folder_that_cannot_be_written_is_reported(self, export, failures, tmp_path):
        (tmp_path / "crops").write_text("in the way")
        with patch("napari_panoptic.viewer.jobs.jobs.show_error") as told:
            export()
        assert "crops" in told.call_args[0][0]
        assert failures.panel.export.text() == "Export…"


@pytest.mark.long
def test_no_button_is_cut_off_in_a_narrow_panel(failures, desk, wait_until):
    panel = failures.panel
    assert panel.minimumSizeHint().width() <= 380
    panel.setFixedWidth(380)
    wait_until(lambda: panel.width() == 380 and desk.is_settled)
    try:
        for button in (panel.scope, panel.export, panel.group_by):
            right = button.mapTo(panel, QPoint(button.width() - 1, 0)).x()
            assert right < panel.width()
            assert button.width() >= button.sizeHint().width()
        assert panel.view.horizontalScrollBar().maximum() == 0
    finally:
        panel.setMinimumWidth(0)
        panel.setMaximumWidth(16777215)


def test_menus_stay_at_the_top_above_a_hint(qtbot):
    panel = FailuresPanel()
    qtbot.addWidget(panel)
    panel.resize(600, 600)
    panel.show_hint("No failures here.")
    panel.show()
    assert panel.export.y() < 150
    assert panel.hint.y() < 200
