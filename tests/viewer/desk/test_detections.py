"""The desk of detections in one window: what is shown, edited, saved; and other desks beside it."""

import shutil
import sys
from types import SimpleNamespace

import napari
import numpy as np
import pytest
from napari.settings import get_settings
from qtpy.QtCore import QCoreApplication, QEvent, QPointF, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QDockWidget, QFileDialog, QMessageBox, QToolButton

from napari_panoptic.detections.evaluate import count_frame, evaluate_detections
from napari_panoptic.detections.pairing import DetectionSettings
from napari_panoptic.display.styles import STATUS_COLOURS
from napari_panoptic.io.formats.points.point_files import read_points
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.values.detections import Points
from napari_panoptic.values.vocabulary import STATUSES, Side, Status
from napari_panoptic.viewer.desk import detections as desk_module
from napari_panoptic.viewer.desk.detections import detection_desk_in
from napari_panoptic.viewer.desk.nuclei import desk_in
from napari_panoptic.viewer.jobs import detection_work
from napari_panoptic.viewer.layers import owned
from napari_panoptic.viewer.layers.camera import canvas_size
from napari_panoptic.viewer.layers.owned import is_own
from napari_panoptic.viewer.opening import TITLE_END, open_in
from napari_panoptic.viewer.panels.detections.lists import PointTable
from napari_panoptic.viewer.state.preferences import Tool, ToolInHand
from tests.support.small_cohort import write_cohort
from tests.viewer.finding import (
    answering,
    canvas_of,
    click,
    close_viewer,
    handle_events,
    on_canvas,
    shown_text,
)


@pytest.fixture(scope="module")
def viewer(qapp, napari_application):  # noqa: ARG001
    viewer = napari.Viewer()
    viewer.window.resize(1280, 800)
    yield viewer
    close_viewer(viewer)
    qapp.processEvents()


@pytest.fixture
def points_desk(viewer, detection_sample, wait_until):
    """Open the sample anew: no test sees another one's edits."""
    known = detection_desk_in(viewer)
    if known is None:
        desk = open_in(viewer, detection_sample)
    else:
        desk = known
        desk.show_cohort(desk.cohort_for_tests)
    wait_until(lambda: desk.is_settled)
    desk.cohort_for_tests = desk.session.cohort
    return desk


@pytest.fixture
def layers(viewer, points_desk):  # noqa: ARG001
    return {
        Side.REFERENCE: viewer.layers["annotated points"],
        Side.PREDICTION: viewer.layers["detections"],
    }


def _colours(layer):
    colours = np.asarray(layer.border_color if layer.symbol[0] == "disc" else layer.face_color)
    return np.rint(colours[:, :3] * 255).astype(int).tolist()


def _expected(status):
    return [list(STATUS_COLOURS[STATUSES[code]]) for code in status]


def _agree(desk, layers):
    """Check that layers, title, legend, figures and lists show what the session says."""
    session = desk.session
    judged, counts = session.judged, session.judged.counts
    assert np.array_equal(layers[Side.PREDICTION].data[:, ::-1], judged.prediction.xy_px)
    assert _colours(layers[Side.REFERENCE]) == _expected(judged.reference_status)
    assert _colours(layers[Side.PREDICTION]) == _expected(judged.prediction_status)
    assert f"F {counts.f_measure:.3f}" in desk.panels.title.figure.text()
    assert desk.panels.legend.text(Side.PREDICTION, Status.FP) == f"FP {counts.fp}"
    desk.link.show_lists()
    texts = desk.panels.figures.table.texts()
    assert texts[0][1:] == [
        f"{counts.f_measure:.3f}",
        f"{session.pooled(session.team).f_measure:.3f}",
    ]
    name = session.shown.frame.name
    assert desk.panels.navigator.places.text(name, "F") == f"{counts.f_measure:.3f}"
    assert len(desk.panels.points.table.rows()) == len(judged.reference) + len(judged.prediction)


def test_circles_have_the_distance_and_colours_the_status(points_desk, layers):
    _agree(points_desk, layers)
    layer = layers[Side.REFERENCE]
    mpp = points_desk.session.shown.mpp_xy
    assert np.allclose(layer.size * np.mean(mpp), 16.0)
    assert tuple(layer.scale) == mpp[::-1]
    points_desk.link.set_settings(type(points_desk.session.settings)(5.0))
    assert np.allclose(layer.size * np.mean(mpp), 10.0)
    _agree(points_desk, layers)


@pytest.mark.long
def test_points_added_moved_and_deleted_count_at_once_and_come_back(points_desk, layers):
    layer, counts = layers[Side.PREDICTION], points_desk.session.judged.counts
    before = layer.data.copy()

    layer.add([5.0, 5.0])
    assert points_desk.session.judged.counts.fp == counts.fp + 1
    assert points_desk.session.judged.prediction.ids.tolist()[-1] == len(before) + 1
    _agree(points_desk, layers)

    row = int(np.flatnonzero(points_desk.session.judged.prediction_partner >= 0)[0])
    layer.events.data(value=layer.data, action="changing", data_indices=(row,))
    for shift in (100.0, 200.0):  # as napari moves points while the mouse is down
        layer.data[row] = before[row] + shift
        layer.refresh()
    assert points_desk.session.judged.counts.tp == counts.tp - 1
    layer.events.data(value=layer.data, action="changed", data_indices=(row,))
    _agree(points_desk, layers)

    layer.selected_data = {row}
    layer.remove_selected()
    assert len(points_desk.session.judged.prediction) == len(before)
    _agree(points_desk, layers)

    for _ in range(3):
        points_desk.session.undo()
    assert np.array_equal(layer.data, before)
    assert points_desk.session.judged.counts == counts
    assert not points_desk.session.may_undo()
    _agree(points_desk, layers)
    points_desk.session.redo()
    assert len(layer.data) == len(before) + 1
    _agree(points_desk, layers)


def test_an_added_detection_is_as_sure_as_the_surest(points_desk, layers):
    highest = points_desk.session.confidence_range[1]
    layers[Side.PREDICTION].add([50.0, 50.0])
    assert points_desk.session.judged.prediction.confidence[-1] == highest
    assert points_desk.session.curve() is not None


def test_the_annotation_is_edited_alike(points_desk, layers, viewer):
    points_desk.panels.settings.add_annotated.click()
    assert viewer.layers.selection.active is layers[Side.REFERENCE]
    assert str(layers[Side.REFERENCE].mode) == "add"
    fn = points_desk.session.judged.counts.fn
    layers[Side.REFERENCE].add([420.0, 10.0])
    assert points_desk.session.judged.counts.fn == fn + 1
    assert ("A01_00a", None) in points_desk.session.unsaved
    points_desk.panels.settings.add_annotated.click()
    assert str(layers[Side.REFERENCE].mode) == "pan_zoom"


def test_the_outcome_below_the_threshold_is_not_cut(points_desk, wait_until):
    table = points_desk.panels.points.table
    points_desk.panels.settings.slider.setValue(600)
    column = table.titles().index("Status")
    wait_until(lambda: "ignored" in [row[column] for row in table.texts()])
    row = [row[column] for row in table.texts()].index("ignored")
    place = table.visualRect(table.model().index(row, column))
    assert place.width() >= table.fontMetrics().horizontalAdvance("ignored") + place.height()
    points_desk.panels.settings.slider.setValue(0)


def test_slider_and_curve_set_the_threshold(points_desk, layers):
    points_desk.panels.settings.slider.setValue(600)
    low, high = points_desk.session.confidence_range
    assert points_desk.session.settings.confidence == pytest.approx(low + 0.6 * (high - low))
    assert Status.IGNORED in {STATUSES[c] for c in points_desk.session.judged.prediction_status}
    _agree(points_desk, layers)
    curve = points_desk.session.curve()
    place = len(curve) // 2
    at = points_desk.panels.figures.curve.place(curve.recall[place], curve.precision[place])
    QTest.mouseClick(
        points_desk.panels.figures.curve, Qt.MouseButton.LeftButton, pos=QPointF(at).toPoint()
    )
    chosen = points_desk.session.settings.confidence
    assert chosen in curve.thresholds
    found = curve.counts_at(curve.place_of(chosen))
    assert points_desk.session.pooled("careful") == found
    assert "confidence ≥" in points_desk.panels.title.title()
    points_desk.panels.settings.slider.setValue(0)
    assert points_desk.session.settings.confidence is None
    points_desk.session.set_team("offset")
    points_desk.link.show_lists()
    assert "No curve" in points_desk.panels.figures.curve.why_empty()


@pytest.mark.long
def test_failures_one_after_the_other(points_desk, viewer):
    judged = points_desk.session.judged
    n = judged.counts.fn + judged.counts.fp
    seen = []
    for _ in range(n):
        points_desk.link.step_failure(1)
        seen.append(points_desk.session.selection)
    assert len(set(seen)) == n
    for side, row in seen:
        status = judged.reference_status if side is Side.REFERENCE else judged.prediction_status
        assert STATUSES[status[row]] in (Status.FN, Status.FP)
    points_desk.link.step_failure(1)
    assert points_desk.session.selection == seen[0]
    points_desk.link.step_failure(-1)
    assert points_desk.session.selection == seen[-1]
    side, row = seen[-1]
    points = judged.reference if side is Side.REFERENCE else judged.prediction
    centre = np.array(viewer.scene.camera.center[-2:])
    assert np.allclose(centre, points.xy_px[row, ::-1] * points_desk.session.shown.mpp_xy[::-1])
    assert points_desk.panels.points.table.selected() is not None
    assert (
        "FP" in points_desk.panels.title.selected.text()
        or "FN" in points_desk.panels.title.selected.text()
    )


def test_where_there_is_no_failure_to_go_to_it_is_said(points_desk, viewer, monkeypatch):
    canvas = canvas_of(viewer)
    told = []
    monkeypatch.setattr(desk_module, "show_info", told.append)
    session = points_desk.session
    points = session.points(Side.REFERENCE)
    session.edit(Side.PREDICTION, points)
    QTest.keyClick(canvas, Qt.Key.Key_N)
    assert told == [desk_module.NO_FAILURE]
    assert session.selection is None
    fewer = Points(points.xy_px[1:], points.confidence[1:], points.ids[1:])
    session.edit(Side.PREDICTION, fewer)
    QTest.keyClick(canvas, Qt.Key.Key_N)
    assert len(told) == 1
    QTest.keyClick(canvas, Qt.Key.Key_N)
    assert told[1:] == [desk_module.ONLY_FAILURE]


@pytest.mark.long
def test_other_frames_and_teams(points_desk, layers, wait_until):
    points_desk.link.step_frame(1)
    wait_until(lambda: points_desk.is_settled)
    assert points_desk.panels.title.title().startswith("A01_00b")
    _agree(points_desk, layers)
    points_desk.link.step_frame(-1)
    points_desk.link.step_frame(-1)
    wait_until(lambda: points_desk.is_settled)
    assert points_desk.panels.title.title().startswith("H01_00b")
    points_desk.panels.navigator.teams.choose("offset")
    _agree(points_desk, layers)
    points_desk.panels.navigator.places.choose("A02_00b")
    wait_until(lambda: points_desk.is_settled)
    assert "file of this team: missing" in points_desk.panels.title.figure.text()
    assert not layers[Side.PREDICTION].visible
    assert points_desk.panels.navigator.teams.text("offset", "Here") == "missing"
    assert points_desk.panels.navigator.places.text("A02_00b", "F") == "missing"


def test_a_click_selects_and_keys_are_listed(points_desk):
    judged = points_desk.session.judged
    mpp = np.array(points_desk.session.shown.mpp_xy[::-1])
    missed = int(np.flatnonzero(judged.reference_partner < 0)[0])
    place = judged.reference.xy_px[missed, ::-1] * mpp
    assert points_desk.scene.point_at(place + 7.0 / np.sqrt(2)) == (Side.REFERENCE, missed)
    assert points_desk.scene.point_at(np.array([-50.0, -50.0])) is None
    assert (
        shown_text(points_desk.panels.title.notes) == "⚠ 1 note"
    )  # where the pixel size comes from
    points_desk.panels.title.notes.click()
    assert points_desk.panels.notes.isVisible()
    points_desk.panels.notes.close()
    points_desk.panels.title.keys_clicked.emit()
    assert "next frame" in dict(points_desk.keys.lines()).values()
    points_desk.keys.close()


@pytest.mark.long
def test_tools_are_taken_and_put_down_by_buttons(points_desk, layers, viewer):
    settings, layer = points_desk.panels.settings, layers[Side.PREDICTION]
    assert viewer.layers.selection.active is layer
    settings.add_detections.click()
    assert str(layer.mode) == "add"
    assert "add detected points" in points_desk.panels.title.selected.text()
    layer.add([50.0, 50.0])
    points_desk.session.undo()
    assert str(layer.mode) == "add"  # stays in hand
    settings.add_detections.click()
    assert str(layer.mode) == "pan_zoom"
    layer.mode = "select"  # by napari's own button
    assert settings.move_points.isChecked()
    settings.move_points.click()
    points_desk.session.select((Side.REFERENCE, 2))
    settings.move_points.click()
    reference = layers[Side.REFERENCE]
    assert viewer.layers.selection.active is reference
    assert (str(reference.mode), set(reference.selected_data)) == ("select", {2})
    reference.remove_selected()
    assert len(points_desk.session.judged.reference) == len(reference.data) == 5
    settings.move_points.click()
    assert "Click a point" in points_desk.panels.title.selected.text() or "annotated" in (
        points_desk.panels.title.selected.text()
    )


@pytest.mark.long
def test_the_point_in_hand_is_the_selected_one_whichever_side_it_is_on(
    points_desk, layers, viewer, wait_until
):
    canvas, session = canvas_of(viewer), points_desk.session
    points_desk.scene.fit()
    wait_until(lambda: points_desk.is_settled)
    reference, detections = layers[Side.REFERENCE], layers[Side.PREDICTION]
    missed = int(np.flatnonzero(session.judged.reference_partner < 0)[0])
    wrong = int(np.flatnonzero(session.judged.prediction_partner < 0)[0])
    session.select((Side.REFERENCE, 0))
    points_desk.panels.settings.move_points.click()

    click(canvas, on_canvas(viewer, *reference.data[missed], layer="annotated points"))
    assert session.selection == (Side.REFERENCE, missed)
    assert set(reference.selected_data) == {missed}
    ring = viewer.layers["selected point"]
    assert np.array_equal(ring.data[0], reference.data[missed])

    click(canvas, on_canvas(viewer, *detections.data[wrong], layer="detections"))
    assert session.selection == (Side.PREDICTION, wrong)
    assert viewer.layers.selection.active is detections
    assert (str(detections.mode), set(detections.selected_data)) == ("select", {wrong})

    points_desk.link.step_failure(1)  # what Delete removes goes on with what is shown
    side, row = session.selection
    assert set(layers[side].selected_data) == {row}
    assert viewer.layers.selection.active is layers[side]
    ids = session.points(side).ids.tolist()
    layers[side].remove_selected()
    assert session.points(side).ids.tolist() == ids[:row] + ids[row + 1 :]
    assert session.selection is None
    assert not ring.visible
    points_desk.panels.settings.move_points.click()


@pytest.mark.long
def test_the_ring_stays_with_its_point(points_desk, layers, viewer):
    session, layer = points_desk.session, layers[Side.PREDICTION]
    last = len(layer.data) - 1
    session.select((Side.PREDICTION, last))
    number = int(session.points(Side.PREDICTION).ids[last])
    layer.selected_data = {0}
    layer.remove_selected()
    assert session.selection == (Side.PREDICTION, last - 1)
    layer.data[last - 1] += 20.0
    layer.refresh()  # as while it is dragged
    ring = viewer.layers["selected point"]
    assert np.array_equal(ring.data[0], layer.data[last - 1])
    for _ in range(2):
        points_desk.session.undo()
    assert session.selection == (Side.PREDICTION, last)
    assert int(session.points(Side.PREDICTION).ids[last]) == number
    assert np.array_equal(ring.data[0], layer.data[last])


def test_other_frames_follow_another_distance_and_can_be_stopped(points_desk, wait_until):
    session = points_desk.session
    points_desk.link.set_settings(DetectionSettings(3.0))
    points_desk.panels.navigator.stop.click()
    wait_until(lambda: points_desk.is_settled)
    known = session.n_known
    assert session.counts("A01_00a", "careful") == session.judged.counts
    assert known < len(session.cohort.frames)
    assert points_desk.panels.navigator.progress_text() == f"frames: {known} of 6"
    assert points_desk.panels.figures.table.titles()[2] == f"{known} of 6 frames"
    points_desk.panels.navigator.stop.click()
    wait_until(lambda: points_desk.is_settled)
    fresh = evaluate_detections(session.cohort, DetectionSettings(3.0))
    assert session.pooled("careful") == fresh.counts("careful")
    assert points_desk.panels.navigator.progress_text() == ""
    assert points_desk.panels.figures.table.titles()[2] == "all frames"


@pytest.mark.long
def test_what_is_odd_in_files_is_said(points_desk, viewer, detection_sample, tmp_path, wait_until):
    folder = shutil.copytree(detection_sample, tmp_path / "odd")
    own = {
        team: folder / "teams" / team / "mitosis" / "A01_00a.csv"
        for team in points_desk.session.cohort.team_names
    }
    own["careful"].write_text("10,10,0.5\nwhat?\n")
    own["eager"].write_text("")
    own["offset"].unlink()
    own["timid"].write_text("x,y\n")
    assert open_in(viewer, folder) is points_desk
    wait_until(lambda: points_desk.is_settled)
    assert any("line 2 of A01_00a.csv" in f.message for f in points_desk.session.findings)
    assert shown_text(points_desk.panels.title.notes) == "⚠ 3 notes"
    assert shown_text(points_desk.panels.points.note) == ""
    points_desk.session.set_team("eager")
    assert "nothing detected" in points_desk.panels.title.title()
    assert "F 0.000" in points_desk.panels.title.figure.text()
    for team, word in (("offset", "missing"), ("timid", "unreadable")):
        points_desk.session.set_team(team)
        points_desk.link.show_lists()
        n_counted = sum(
            points_desk.session.counts(frame.name, team) is not None
            for frame in points_desk.session.cohort.frames
        )
        assert n_counted < 6
        heading = points_desk.panels.figures.table.titles()[2]
        assert heading == f"{n_counted} of 6 frames"  # sums are of no more
        assert f"file of this team: {word}" in points_desk.panels.title.figure.text()
        assert points_desk.panels.navigator.places.text("A01_00a", "F") == word
        assert points_desk.panels.navigator.teams.text(team, "Here") == word
        note = shown_text(points_desk.panels.points.note)
        assert points_desk.panels.points.table.rows() == []
        if word == "unreadable":
            assert f"{own[team]}: expected x,y or x,y,confidence in each line, found none" in note
            assert "Mend this file, and open the cohort again. Other teams are not" in note
        else:
            assert "Team offset has no file of frame A01_00a" in note
        told = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(desk_module, "show_info", told.append)
            points_desk.panels.settings.add_detections.click()
        assert "Cannot edit" in told[0]
        assert not points_desk.panels.settings.add_detections.isChecked()
    points_desk.session.set_team("careful")
    points_desk.link.show_lists()
    assert shown_text(points_desk.panels.points.note) == ""
    assert points_desk.panels.points.table.rows()


@pytest.mark.long
def test_frames_that_cannot_be_judged_are_said_once_and_the_others_go_on(
    points_desk, monkeypatch, wait_until
):
    tried, told = [], []

    def fail(loaded, distance_um):
        tried.append(loaded.frame.name)
        if loaded.frame.name.startswith("A02"):
            raise ValueError("no finite cost")
        return count_frame(loaded, distance_um)

    points_desk.session.judging_failed.connect(told.append)
    monkeypatch.setattr("napari_panoptic.detections.evaluate.count_frame", fail)
    points_desk.link.set_settings(DetectionSettings(3.0))
    wait_until(lambda: points_desk.is_settled)
    assert sorted(tried) == sorted(frame.name for frame in points_desk.session.cohort.frames)
    assert len(told) == 1
    assert "A02_00a cannot be judged (no finite cost)" in told[0]
    assert points_desk.panels.navigator.places.text("A02_00b", "F") == "not judged"
    assert points_desk.panels.navigator.progress_text() == ""
    assert points_desk.panels.figures.table.titles()[2] == "4 of 6 frames"
    points_desk.panels.navigator.places.choose("A02_00a")
    wait_until(lambda: points_desk.is_settled)
    assert "cannot be judged" in points_desk.panels.title.figure.text()
    assert points_desk.panels.title.title().startswith("A02_00a")
    assert "no finite cost" in shown_text(points_desk.panels.points.note)
    monkeypatch.undo()
    points_desk.link.set_settings(DetectionSettings(4.0))
    wait_until(lambda: points_desk.is_settled)
    fresh = evaluate_detections(points_desk.session.cohort, DetectionSettings(4.0))
    assert points_desk.session.pooled("careful") == fresh.counts("careful")
    assert len(told) == 1


@pytest.mark.qt_no_exception_capture
def test_counting_that_fails_is_not_started_again(points_desk, monkeypatch, wait_until):
    raised = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: raised.append(error[0]))

    def fail(*_asked):
        raise ZeroDivisionError

    stop = points_desk.panels.navigator.stop
    with monkeypatch.context() as broken:
        broken.setattr(detection_work, "count_frame_or_why", fail)
        points_desk.link.set_settings(DetectionSettings(3.0))
        wait_until(lambda: raised and points_desk.is_settled)
    assert raised == [ZeroDivisionError]
    assert points_desk.session.n_known == 1  # the frame shown
    assert stop.text() == "Continue"
    stop.click()
    wait_until(lambda: points_desk.is_settled)
    assert points_desk.session.n_known == len(points_desk.session.cohort.frames)
    assert raised == [ZeroDivisionError]


@pytest.mark.long
def test_a_drag_without_an_end_keeps_no_later_change_from_undo(points_desk, layers, wait_until):
    layer = layers[Side.PREDICTION]
    n = len(layer.data)
    layer.data[0] += 20.0
    layer.refresh()  # as while it is dragged
    layer.add([5.0, 5.0])
    points_desk.session.undo()
    assert len(layer.data) == n
    assert points_desk.session.may_undo()
    layer.data[0] += 20.0
    layer.refresh()
    points_desk.link.step_frame(1)
    wait_until(lambda: points_desk.is_settled)
    layer.data[0] += 20.0
    layer.refresh()
    assert points_desk.session.may_undo()


@pytest.mark.long
def test_undo_is_of_either_side_and_leaves_the_tool_where_it_is(points_desk, layers, viewer):
    before = {side: len(layer.data) for side, layer in layers.items()}
    layers[Side.PREDICTION].add([5.0, 5.0])
    points_desk.panels.settings.add_annotated.click()
    layers[Side.REFERENCE].add([6.0, 6.0])
    viewer.layers.selection.active = layers[Side.PREDICTION]
    points_desk.panels.settings.undo.click()
    assert len(layers[Side.REFERENCE].data) == before[Side.REFERENCE]
    assert len(layers[Side.PREDICTION].data) == before[Side.PREDICTION] + 1
    points_desk.panels.settings.undo.click()
    assert {side: len(layer.data) for side, layer in layers.items()} == before
    assert not points_desk.panels.settings.undo.isEnabled()
    assert viewer.layers.selection.active is layers[Side.PREDICTION]
    _agree(points_desk, layers)


@pytest.mark.long
def test_pasted_points_count_at_once(points_desk, layers):
    layer, counts = layers[Side.PREDICTION], points_desk.session.judged.counts
    n = len(layer.data)
    layer.selected_data = {0}
    layer._copy_data()
    layer._paste_data()
    assert len(points_desk.session.points(Side.PREDICTION)) == n + 1
    assert points_desk.session.judged.counts.fp == counts.fp + 1
    _agree(points_desk, layers)
    layer.add([5.0, 5.0])
    points_desk.session.undo()
    assert len(layer.data) == n + 1
    points_desk.session.undo()
    assert len(layer.data) == n
    _agree(points_desk, layers)


@pytest.mark.long
def test_a_layer_that_was_deleted_comes_back_with_its_points(points_desk, layers, viewer):
    layer = layers[Side.PREDICTION]
    n = len(layer.data)
    layer.add([5.0, 5.0])
    viewer.layers.remove(layer)
    points_desk.panels.settings.add_detections.click()
    again = viewer.layers["detections"]
    assert len(again.data) == n + 1
    assert _colours(again) == _expected(points_desk.session.judged.prediction_status)
    again.add([6.0, 6.0])
    assert len(points_desk.session.points(Side.PREDICTION)) == n + 2
    points_desk.panels.settings.add_detections.click()
    viewer.layers.remove(layers[Side.REFERENCE])
    points_desk.link.set_settings(DetectionSettings(6.0))
    layers = {side: viewer.layers[layers[side].name] for side in Side}
    assert np.array_equal(
        layers[Side.REFERENCE].data[:, ::-1], points_desk.session.points(Side.REFERENCE).xy_px
    )
    _agree(points_desk, layers)


def test_saved_points_come_back_and_the_cohort_stays(points_desk, layers, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(desk_module, "show_error", told.append)
    monkeypatch.setattr(desk_module, "show_info", lambda _text: None)
    layers[Side.PREDICTION].add([10.5, 20.25])
    theirs = points_desk.session.cohort.predictions["careful", "A01_00a"]
    content = theirs.read_bytes()
    points_desk.link.save_to(theirs, Side.PREDICTION)
    assert "file of the cohort" in told[0]
    assert theirs.read_bytes() == content
    points_desk.link.save_to(tmp_path / "no" / "a.csv", Side.PREDICTION)
    assert "your changes are kept" in told[1]
    assert points_desk.session.unsaved
    points_desk.link.save_to(tmp_path / "a.csv", Side.PREDICTION)
    points = read_points(tmp_path / "a.csv").points
    assert np.array_equal(points.xy_px, points_desk.session.points(Side.PREDICTION).xy_px)
    assert not points_desk.session.unsaved
    assert points_desk.may_leave()


def test_a_name_without_an_ending_replaces_no_file_unasked(
    points_desk, layers, tmp_path, monkeypatch
):
    monkeypatch.setattr(desk_module, "show_info", lambda _text: None)
    layers[Side.PREDICTION].add([10.5, 20.25])
    earlier = tmp_path / "mine.csv"
    earlier.write_text("1,2\n")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "mine"), ""))
    with answering("No") as asked:
        points_desk.link.save_as()
    assert "mine.csv exists already" in asked[0]
    assert earlier.read_text() == "1,2\n"
    assert points_desk.session.unsaved
    with answering("Yes"):
        points_desk.link.save_as()
    assert len(read_points(earlier).points) == len(layers[Side.PREDICTION].data)
    assert not points_desk.session.unsaved


@pytest.mark.long
def test_layers_cannot_be_moved_without_their_points(points_desk, layers, viewer, monkeypatch):
    told = []
    monkeypatch.setattr(owned, "show_info", told.append)
    points_desk.session.select((Side.REFERENCE, 0))
    own = [layer for layer in viewer.layers if layer.visible and is_own(layer)]
    assert len(own) == 4
    for layer in own:
        layer.mode = "transform"
        assert str(layer.mode) == "pan_zoom"
    assert told == [owned.STAYS] * 3  # nothing can be done with the ring
    layers[Side.PREDICTION].mode = "select"
    assert points_desk.panels.settings.move_points.isChecked()
    points_desk.panels.settings.move_points.click()


def test_unsaved_edits_are_asked_for(points_desk, layers, monkeypatch):
    layers[Side.PREDICTION].add([10.0, 20.0])
    asked = []
    monkeypatch.setattr(QMessageBox, "exec", lambda box: asked.append(box.text()) or 0)
    assert not points_desk.may_leave()
    assert "A01_00a: careful" in asked[0]


@pytest.mark.long
def test_another_kind_of_cohort_closes_this_desk_and_back(
    points_desk, viewer, detection_sample, wait_until, tmp_path
):
    assert points_desk.may_leave()
    assert viewer.title == "napari"  # a window that is not this program's own
    viewer.title = f"first{TITLE_END}"
    nuclei = open_in(viewer, write_cohort(tmp_path / "nuclei"))
    assert viewer.title == f"{nuclei.session.cohort.name}{TITLE_END}"
    wait_until(lambda: nuclei.is_settled)
    assert detection_desk_in(viewer) is None
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    docks = {dock.objectName() for dock in viewer.window._qt_window.findChildren(QDockWidget)}
    assert "Frames" not in docks
    assert "annotated points" not in viewer.layers
    assert viewer.layers["reference"].visible
    for layer in viewer.layers:  # as where an image does not say how large its pixels are
        layer.units = ("pixel",) * layer.ndim
    back = open_in(viewer, detection_sample)
    wait_until(lambda: back.is_settled)
    assert desk_in(viewer) is None
    shown = {layer.name for layer in viewer.layers if layer.visible and is_own(layer)}
    assert shown == {"image", "annotated points", "detections"}
    # Where they differ, napari knows none.
    assert {str(unit) for unit in viewer.layers.extent.units} == {"micrometer"}
    back.close()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert detection_desk_in(viewer) is None
    assert "n" not in {str(key).lower() for key in viewer.keymap}


def test_a_closed_desk_leaves_no_image_open(points_desk, viewer, monkeypatch):
    closed = []
    monkeypatch.setattr(SlideImage, "close", lambda image: closed.append(image))
    pixels = viewer.layers["image"].data
    points_desk.close()
    handle_events()
    assert [image.levels[0].shape for image in closed] == [pixels.shape]
    assert "image" not in viewer.layers
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_an_image_is_closed_once_the_next_one_is_shown(
    points_desk, viewer, monkeypatch, wait_until
):
    closed = []
    monkeypatch.setattr(SlideImage, "close", lambda image: closed.append(image))
    pixels = viewer.layers["image"].data
    points_desk.show_cohort(points_desk.cohort_for_tests)
    assert closed == []  # its layer still draws it
    wait_until(lambda: points_desk.is_settled)
    assert [np.shares_memory(image.levels[0], pixels) for image in closed] == [True]
    assert viewer.layers["image"].data is not pixels


def test_why_nothing_is_judged_has_the_room_of_the_table(points_desk):
    panel = PointTable()
    panel.show_session(
        SimpleNamespace(judged=None, why_nothing_is_judged=lambda: "There is no team.")
    )
    assert panel.table.isHidden()
    panel.show_session(points_desk.session)
    assert not panel.table.isHidden()


@pytest.mark.long
def test_the_tool_in_hand_is_taken_up_in_the_next_cohort(points_desk, layers, viewer, wait_until):
    points_desk.panels.settings.add_annotated.click()
    assert points_desk.state.tool == ToolInHand(Side.REFERENCE, Tool.ADD)
    points_desk.show_cohort(points_desk.cohort_for_tests)
    wait_until(lambda: points_desk.is_settled)
    assert points_desk.state.tool == ToolInHand(Side.REFERENCE, Tool.ADD)
    assert viewer.layers.selection.active is layers[Side.REFERENCE]
    assert str(layers[Side.REFERENCE].mode) == "add"
    assert points_desk.panels.settings.add_annotated.isChecked()
    points_desk.panels.settings.add_annotated.click()
    assert points_desk.state.tool.tool is Tool.LOOK
    layers[Side.REFERENCE].mode = "select"  # by napari's own button
    assert points_desk.state.tool == ToolInHand(Side.REFERENCE, Tool.MOVE)
    layers[Side.REFERENCE].mode = "pan_zoom"
    assert points_desk.state.tool.tool is Tool.LOOK


def test_a_frame_in_sight_as_a_whole_fills_a_canvas_of_another_size(
    points_desk, viewer, wait_until
):
    points_desk.scene.fit()
    before = viewer.scene.camera.zoom
    viewer.window.resize(1000, 640)
    handle_events()
    wait_until(lambda: points_desk.is_arranged and points_desk.is_settled)
    assert points_desk.scene.is_whole_in_sight(canvas_size(viewer))
    assert viewer.scene.camera.zoom != before
    viewer.window.resize(1280, 800)


def test_ctrl_and_a_number_show_a_workspace(viewer, points_desk):
    window, ctrl = viewer.window._qt_window, Qt.KeyboardModifier.ControlModifier
    for key, name in (
        (Qt.Key.Key_2, "Figures"),
        (Qt.Key.Key_1, "Inspect"),
    ):
        QTest.keyClick(window, key, ctrl)
        assert points_desk.workspace.name == name
    button = next(b for b in points_desk.strip.findChildren(QToolButton) if b.text() == "Figures")
    points_desk.show_workspace("Figures")
    points_desk.set_available("Figures", False)
    assert button.isHidden()
    assert points_desk.workspace.name == "Inspect"
    QTest.keyClick(window, Qt.Key.Key_2, ctrl)
    assert points_desk.workspace.name == "Inspect"
    points_desk.set_available("Figures", True)


def whole_texts(table, titles):
    """List which columns have room for their longest text."""
    columns = [table.titles().index(title) for title in titles]
    return [table.columnWidth(k) >= table._needed_px(k) for k in columns]


def test_figures_and_outcomes_of_points_are_whole(viewer, points_desk, wait_until):
    appearance = get_settings().appearance
    before, appearance.font_size = appearance.font_size, 12
    try:
        viewer.window.resize(1280, 800)
        shown = {
            "Inspect": (points_desk.panels.points.table, ("Status", "Conf", "µm", "x", "y")),
        }
        for name, (table, titles) in shown.items():
            points_desk.show_workspace(name)
            wait_until(lambda: points_desk.is_arranged and points_desk.is_settled)
            wait_until(lambda table=table: len(table.texts()) > 0)
            assert all(whole_texts(table, titles)), name
    finally:
        appearance.font_size = before
        points_desk.show_workspace("Inspect")
