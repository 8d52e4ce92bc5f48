"""A desk that is opened, filled, disturbed and closed; a new desk for each test."""

import numpy as np
import pytest
from napari._vispy import canvas as canvas_module
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QDockWidget, QMessageBox, QToolButton

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.display.glossary import (
    NO_ANNOTATION,
    NO_ANNOTATION_MEANING,
    NO_IMAGE_MEANING,
)
from napari_panoptic.display.listed import Others
from napari_panoptic.display.object_rows import COLUMNS, ObjectFilter, WorstFirst
from napari_panoptic.display.styles import ColourBy, Look
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer import opening
from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.jobs import region_work as work
from napari_panoptic.viewer.kit import shown
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.navigator import NavigatorPresenter
from napari_panoptic.viewer.state.preferences import Queue
from tests.support.nested_names import cohort_with_type_info
from tests.viewer.finding import FIRST, SECOND, handle_events, shown_text, tick_column


class TestChanging:
    @pytest.mark.long
    def test_restoration_changes_the_masks_shown(self, new_desk, viewer, wait_until):
        team = new_desk.session.team
        before = np.count_nonzero(viewer.layers[team].data)
        new_desk.panels.settings.combos["restoration"].choose("border-dilated")
        wait_until(lambda: new_desk.is_settled)
        assert np.count_nonzero(viewer.layers[team].data) > before

    @pytest.mark.long
    def test_layers_are_reused_for_another_region(self, new_desk, viewer, wait_until):
        before = list(viewer.layers)
        new_desk.panels.navigator.places.choose(SECOND)
        wait_until(lambda: new_desk.is_settled)
        assert list(viewer.layers) == before
        shape = new_desk.session.snapshot.shape
        # Layers out of sight follow when nothing else is to be done; the ring is as large as the
        # object that was selected at opening.
        layers = [layer for layer in before if layer.name != "selected object"]
        wait_until(lambda: all(layer.data.shape[:2] == shape for layer in layers))

    @pytest.mark.long
    def test_only_the_newest_of_many_requests_is_shown(self, new_desk, wait_until):
        shown = []
        new_desk.session.region_changed.connect(lambda snapshot: shown.append(snapshot.region.name))
        for _ in range(4):
            new_desk.link.presenter(NavigatorPresenter).go_on()
        wait_until(lambda: new_desk.is_settled)
        # At once where it was read ahead, else with the team that is looked at before the others.
        last = new_desk.session.cohort.regions[4].name
        assert shown in ([last], [last, last])

    @pytest.mark.long
    def test_an_outlined_region_that_cannot_be_read_is_told(
        self, new_desk, wait_until, monkeypatch
    ):
        from napari_panoptic.common.errors import PanopticError
        from napari_panoptic.viewer.desk import link

        def fail(*_args, **_kwargs):
            raise PanopticError("the disk is on fire")

        told = []
        monkeypatch.setattr(work, "load_in_steps", fail)
        monkeypatch.setattr(link, "show_error", told.append)
        new_desk.panels.navigator.places.choose(SECOND)
        wait_until(lambda: new_desk.is_settled)
        assert told == ["the disk is on fire"]
        assert new_desk.session.snapshot.region.name == FIRST
        assert FIRST in new_desk.panels.title.title()


class TestManners:
    @pytest.mark.long
    def test_layers_of_others_are_left_alone(self, new_desk, viewer, wait_until):
        mine = viewer.add_points([[1, 2]], name="reference")
        new_desk.panels.navigator.places.choose(SECOND)
        wait_until(lambda: new_desk.is_settled)
        assert mine in viewer.layers
        assert mine.data.tolist() == [[1, 2]]
        assert mine.visible

    @pytest.mark.long
    def test_a_deleted_layer_comes_back_with_the_next_region(self, new_desk, viewer, wait_until):
        viewer.layers.remove("reference")
        new_desk.session.select_row(Side.REFERENCE, 0)
        new_desk.panels.navigator.places.choose(SECOND)
        wait_until(lambda: new_desk.is_settled)
        names = [layer.name for layer in viewer.layers]
        assert names.index("image") < names.index("reference") < names.index("merger")

    @pytest.mark.long
    def test_a_closed_eye_stays_closed_until_the_display_changes(
        self, new_desk, viewer, canvas, wait_until
    ):
        viewer.layers["reference"].visible = False
        new_desk.panels.navigator.places.choose(SECOND)
        wait_until(lambda: new_desk.is_settled)
        assert not viewer.layers["reference"].visible
        QTest.keyClick(canvas, Qt.Key.Key_H)
        assert viewer.layers["reference"].visible

    @pytest.mark.long
    def test_masks_cannot_be_painted_by_accident(self, new_desk, viewer, wait_until):
        new_desk.panels.navigator.places.choose(SECOND)
        wait_until(lambda: new_desk.is_settled)
        assert not any(viewer.layers[name].editable for name in ("reference", "merger"))

    @pytest.mark.long
    def test_closing_the_desk_undoes_everything(self, new_desk, viewer):
        session = new_desk.session
        before = len(viewer.mouse_drag_callbacks), len(viewer.mouse_move_callbacks)
        new_desk.close()
        assert len(session.region_changed) == 0
        assert len(session.selection_changed) == 0
        after = len(viewer.mouse_drag_callbacks), len(viewer.mouse_move_callbacks)
        assert after == (before[0] - 1, before[1] - 1)
        assert not viewer.window.dock_widgets
        assert not viewer.window.dock_widgets
        assert list(viewer.layers) == []

    @pytest.mark.long
    def test_the_docks_of_napari_stay_as_they_are(self, new_desk):
        window = new_desk.strip.window()
        layer_list = next(
            dock for dock in window.findChildren(QDockWidget) if dock.objectName() == "layer list"
        )
        for _ in range(2):
            assert window.tabifiedDockWidgets(layer_list) == []
            assert layer_list.isVisible()
            new_desk.close()

    @pytest.mark.long
    def test_the_desk_closes_with_its_main_dock(self, new_desk, viewer):
        session = new_desk.session
        viewer.window.remove_dock_widget(new_desk.strip)
        assert len(session.region_changed) == 0
        assert not viewer.window.dock_widgets

    @pytest.mark.long
    def test_a_desk_opened_again_makes_the_same_layers(
        self, close_desk, new_desk, viewer, cohort, wait_until
    ):
        names = [layer.name for layer in viewer.layers]
        new_desk.close()
        again = desk_of(viewer)
        again.show_cohort(cohort)
        wait_until(lambda: again.is_settled)
        assert [layer.name for layer in viewer.layers] == names
        close_desk(again)

    @pytest.mark.long
    def test_another_cohort_replaces_the_first(
        self, new_desk, viewer, cohort, wait_until, monkeypatch
    ):
        from dataclasses import replace

        warned = []
        monkeypatch.setattr(canvas_module, "show_warning", warned.append)
        smaller = replace(cohort, name="smaller", teams=cohort.teams[:1])
        first = new_desk.session
        new_desk.show_cohort(smaller)
        assert "Loading the region" in shown_text(new_desk.panels.metrics.message)
        wait_until(lambda: new_desk.is_settled)
        assert len(first.region_changed) == 0
        names = [layer.name for layer in viewer.layers]
        assert names == ["image", "reference", "careful", "selected object"]

        # Without an image nothing tells the size of a pixel: layers change their unit at once.
        without = replace(cohort, regions=(replace(cohort.regions[0], image=None),))
        new_desk.show_cohort(without)
        wait_until(lambda: new_desk.is_settled)
        assert {str(layer.units[0]) for layer in viewer.layers} == {"pixel"}
        new_desk.show_cohort(cohort)
        wait_until(lambda: new_desk.is_settled)
        assert {str(layer.units[0]) for layer in viewer.layers} == {"micrometer"}
        assert warned == []


@pytest.mark.long
def test_a_folder_is_opened_in_the_background(
    close_desk, window, sample_folder, wait_until, monkeypatch, tmp_path
):
    desk = desk_of(window)
    told = []
    monkeypatch.setattr(shown, "show_error", told.append)
    opening.open_in_background(desk.viewer, tmp_path)
    wait_until(lambda: told)
    assert str(tmp_path) in told[0]
    opening.open_in_background(desk.viewer, sample_folder)
    wait_until(lambda: desk.session is not None and desk.is_settled)
    assert desk.session.snapshot.region.name == FIRST
    close_desk(desk)


@pytest.mark.long
def test_a_region_without_image_or_annotation_is_still_shown(
    close_desk, window, cohort, wait_until
):
    from dataclasses import replace

    first = cohort.regions[0]
    regions = (replace(first, image=None), replace(cohort.regions[1], reference=None))
    findings = (
        Finding(FindingKind.EXTRA, "files of regions that are not there"),
        Finding(FindingKind.MISSING, "another region lacks something"),
        Finding(FindingKind.MISSING, "a folder is empty", path=cohort.root / "late", team="late"),
    )
    desk = desk_of(window)
    desk.show_cohort(replace(cohort, regions=regions, findings=findings))
    wait_until(lambda: desk.is_settled)
    viewer = desk.viewer
    assert "image" not in viewer.layers
    assert "reference" in viewer.layers
    said = [NO_IMAGE_MEANING, findings[0].message, findings[2].message]
    assert desk.panels.notes.lines()[-3:] == said
    assert desk.panels.notes.words()[-3:] == [
        ("missing", ""),
        ("not used", ""),
        ("missing", "late"),
    ]
    desk.link.presenter(NavigatorPresenter).go_on()
    wait_until(lambda: desk.is_settled)
    assert viewer.layers["image"].visible
    assert "reference" not in viewer.layers
    assert NO_ANNOTATION in desk.panels.title.title().split(" · ")
    told = desk.panels.notes.lines()
    assert told[-3:] == [NO_ANNOTATION_MEANING, *said[1:]]
    assert shown_text(desk.panels.title.notes) == f"⚠ {len(told)} notes"
    assert desk.panels.metrics.content.isHidden()
    told = shown_text(desk.panels.metrics.message)
    assert told == "This region has no annotation: it can be viewed but not evaluated."
    assert desk.panels.navigator.places.text(SECOND, "PQ") == NO_ANNOTATION
    assert desk.panels.navigator.places.tooltip(SECOND, "PQ") == NO_ANNOTATION_MEANING
    assert desk.panels.navigator.teams.text("careful", "Here") == NO_ANNOTATION
    close_desk(desk)


@pytest.mark.long
def test_columns_have_their_widths_again_when_the_window_has(new_desk, viewer, wait_until):
    window = viewer.window._qt_window
    own, cohort = new_desk.dock("Objects"), new_desk.dock("Regions")

    def rest():
        handle_events()
        wait_until(lambda: new_desk.is_arranged)
        return own.width(), cohort.width(), cohort.height()

    def resize(width, height):
        window.resize(width, height)
        return rest()

    before = rest()
    assert resize(900, 500)[0] < before[0]
    assert resize(1280, 800) == before
    window.resizeDocks([own], [before[0] + 40], Qt.Orientation.Horizontal)  # as by a hand
    wider = rest()
    assert wider[0] > before[0]
    assert resize(900, 500)[0] < before[0]
    assert resize(1280, 800) == wider


@pytest.mark.long
def test_the_usual_columns_of_objects_need_no_sideways_scrolling(new_desk, viewer, wait_until):
    viewer.window.resize(1280, 800)
    new_desk.show_workspace("Inspect")
    wait_until(lambda: new_desk.is_arranged and new_desk.is_settled)
    bar = new_desk.panels.objects.view.horizontalScrollBar()
    wait_until(lambda: bar.maximum() == 0)
    new_desk.state.hidden_columns = frozenset()
    wait_until(lambda: bar.maximum() > 0)


@pytest.fixture
def question(monkeypatch):
    """Answer the question about unsaved edits; gives the answer and how often it was asked."""
    state = {"answer": "Cancel", "asked": 0}

    def answer(box):
        state["asked"] += 1
        next(b for b in box.buttons() if b.text() == state["answer"]).click()

    monkeypatch.setattr(QMessageBox, "exec", answer)
    return state


class TestCrosses:
    """The crosses in the titles of the docks, clicked with the mouse."""

    @pytest.fixture
    def edits(self, new_desk, viewer, wait_until):
        """Give the edits panel with an edit that is not saved."""
        part = new_desk.presenter(EditsPresenter)
        part.edits.set_on(True)
        layer = viewer.layers["careful"]
        layer.data[:100] = 0
        layer.refresh()
        wait_until(lambda: part.edits.unsaved and new_desk.is_settled)
        return part

    def test_the_desk_asks_before_edits_are_lost(self, new_desk, viewer, edits, question):
        session = new_desk.session
        for asked, (answer, stays) in enumerate({"Cancel": True, "Discard": False}.items(), 1):
            question["answer"] = answer
            click_close(new_desk)
            assert question["asked"] == asked
            assert bool(viewer.window.dock_widgets) is stays
            assert bool(len(session.region_changed)) is stays
            assert (new_desk.link is not None and bool(edits.edits.unsaved)) is stays

    @pytest.mark.long
    def test_without_edits_the_desk_closes_at_once(self, new_desk, viewer, question):
        click_close(new_desk)
        assert question["asked"] == 0
        assert not viewer.window.dock_widgets

    @pytest.mark.long
    def test_a_floating_desk_that_is_closed_is_only_hidden(
        self, new_desk, edits, question, wait_until
    ):
        dock = dock_around(new_desk.strip)
        dock.setFloating(True)
        wait_until(dock.isVisible)
        assert dock.close()
        assert not dock.isVisible()
        assert question["asked"] == 0
        assert edits.edits.unsaved
        dock.show()
        dock.setFloating(False)
        question["answer"] = "Discard"
        click_close(new_desk)
        assert question["asked"] == 1
        assert new_desk.link is None

    @pytest.mark.long
    def test_a_panel_is_only_hidden_and_comes_back_with_its_key(
        self, new_desk, canvas, edits, question, wait_until
    ):
        new_desk.raise_part(edits)
        wait_until(edits.panel.isVisible)
        click_cross(dock_around(edits.panel))
        assert not edits.panel.isVisible()
        assert question["asked"] == 0
        assert edits.edits.unsaved
        QTest.keyClick(canvas, Qt.Key.Key_E, Qt.KeyboardModifier.AltModifier)
        wait_until(edits.panel.isVisible)


def dock_around(widget):
    while not isinstance(widget, QDockWidget):
        widget = widget.parentWidget()
    return widget


def click_close(desk):
    button = next(b for b in desk.strip.findChildren(QToolButton) if b.text() == "✕")
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def click_cross(dock):
    QTest.mouseClick(dock.titleBarWidget().close_button, Qt.MouseButton.LeftButton)


@pytest.mark.long
def test_a_new_window_looks_as_the_last_one(
    new_desk, viewer, canvas, close_desk, cohort, preferences, wait_until
):
    objects = new_desk.panels.objects
    before = preferences.hidden_columns
    new_desk.panels.queue.order.choose(WorstFirst.AREA)
    objects.others.choose(Others.DIMMED)
    tick_column(objects, "iou")
    QTest.keyClick(canvas, Qt.Key.Key_H)
    QTest.keyClick(canvas, Qt.Key.Key_Q)
    look = new_desk.link.scene.look
    close_desk(new_desk)
    again = desk_of(viewer)
    again.show_cohort(cohort)
    wait_until(lambda: again.is_settled)
    objects = again.panels.objects
    assert objects.model.worst is again.panels.queue.order.choice is WorstFirst.AREA
    assert objects.others.choice is Others.DIMMED
    assert objects.view.isColumnHidden([column.name for column in COLUMNS].index("iou"))
    assert again.link.scene.look == look != Look()
    objects.set_filter(ObjectFilter(statuses=frozenset({"FN"})))
    assert again.link.scene.listed.others is Others.DIMMED
    assert preferences.hidden_columns == before | {"iou"}
    close_desk(again)


def test_the_next_window_goes_on_where_the_last_one_was(
    new_desk, viewer, close_desk, cohort, wait_until
):
    new_desk.link.go_to(SECOND, team="merger")
    new_desk.show_workspace("Review")
    only = ObjectFilter(statuses=frozenset({"FN"}))
    new_desk.panels.objects.set_filter(only)
    new_desk.state.order = WorstFirst.AREA
    new_desk.state.queue = Queue.COHORT
    new_desk.state.look = Look(ColourBy.CLASS)
    wait_until(lambda: new_desk.is_settled)
    close_desk(new_desk)
    again = desk_of(viewer)
    again.show_cohort(cohort)
    wait_until(lambda: again.is_settled)
    assert again.workspace.name == "Review"
    assert again.session.snapshot.region.name == SECOND
    assert again.session.team == "merger"
    assert again.panels.objects.model.filter == only
    assert again.panels.objects.model.worst is WorstFirst.AREA
    assert again.state.queue is Queue.COHORT
    assert again.link.scene.look == Look(ColourBy.CLASS)
    close_desk(again)


@pytest.mark.long
def test_a_region_beside_a_deeply_nested_table_is_shown(close_desk, window, wait_until, tmp_path):
    desk = desk_of(window)
    desk.show_cohort(open_cohort(cohort_with_type_info(tmp_path, "[" * 100_000)))
    wait_until(lambda: desk.is_settled)
    assert "reference" in [layer.name for layer in window.layers]
    close_desk(desk)
