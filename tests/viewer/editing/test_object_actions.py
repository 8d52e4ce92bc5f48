"""Actions on objects in a real window: by key, exactly undone, in one order with strokes."""

import json
import shutil
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import QPoint, QRect, QSize, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QMessageBox

from napari_panoptic.explain.failures import FailureName
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.mends import Covered
from napari_panoptic.values.vocabulary import (
    CAUSE_CODE,
    SIDES,
    STATUS_CODE,
    Cause,
    Side,
    Status,
    Verdict,
)
from napari_panoptic.viewer.desk.link import NOT_PAINTED
from napari_panoptic.viewer.editing.object_actions import ACTION_TEXTS, Asking, ObjectAction
from napari_panoptic.viewer.panels.edits import corrections
from napari_panoptic.viewer.panels.edits.panel import OWN
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from tests.support.corrected import assert_same_figures, evaluation_of
from tests.viewer.editing.mending import (
    MENDING_PARTS,
    figures,
    fresh,
    layer_shows,
    press_on_canvas,
    select,
    state,
    without_edits,
)
from tests.viewer.finding import FIRST, SECOND, canvas_of, hold, on_canvas

FIRST_TEAM = "merger"

PLAIN = Qt.KeyboardModifier.NoModifier
CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture(scope="module")
def shown_parts():
    return MENDING_PARTS


@pytest.fixture
def at_first(fresh_desk, wait_until):
    yield from without_edits(fresh_desk, wait_until)


@pytest.mark.parametrize(
    ("action", "side", "status", "cause"),
    [
        (ObjectAction.ACCEPT, Side.PREDICTION, Status.TP, None),
        (ObjectAction.MARK_AMBIGUOUS, Side.PREDICTION, Status.FP, None),
        # That these are undone to the last pixel, tests of actions without a window show as well.
        *(
            pytest.param(*own, marks=pytest.mark.long)
            for own in (
                (ObjectAction.DELETE, Side.REFERENCE, Status.FN, None),
                (ObjectAction.DELETE, Side.PREDICTION, Status.FP, None),
                (ObjectAction.SPLIT, Side.REFERENCE, Status.FN, Cause.MERGED),
            )
        ),
    ],
)
def test_an_action_by_its_key_is_undone_to_the_last_pixel(
    desk, wait_until, action, side, status, cause
):
    select(desk, side, status, cause)
    before = state(desk)
    press_on_canvas(desk, getattr(Qt.Key, f"Key_{ACTION_TEXTS[action].key.upper()}"))
    wait_until(lambda: desk.is_settled)
    after = state(desk)
    assert after != before
    assert figures(desk.session.evaluation) == figures(fresh(desk))
    assert all(layer_shows(desk, own) for own in Side)
    press_on_canvas(desk, Qt.Key.Key_Z, CTRL)
    wait_until(lambda: desk.is_settled)
    assert state(desk) == before
    assert all(layer_shows(desk, own) for own in Side)
    press_on_canvas(desk, Qt.Key.Key_Z, CTRL | SHIFT)
    wait_until(lambda: desk.is_settled)
    assert state(desk) == after
    press_on_canvas(desk, Qt.Key.Key_Z, CTRL)
    wait_until(lambda: desk.is_settled)
    assert desk.presenter(EditsPresenter).edits.unsaved == ()


def test_an_object_that_is_being_left_is_not_changed(desk, wait_until):
    select(desk, Side.REFERENCE, Status.FN)
    before, steps = state(desk), len(desk.presenter(EditsPresenter).mending.done)
    region = desk.session.snapshot.region.name
    desk.link.go_to(desk.session.cohort.regions[1].name)
    desk.presenter(EditsPresenter).do(ObjectAction.DELETE)  # before any event
    wait_until(lambda: desk.is_settled)
    assert len(desk.presenter(EditsPresenter).mending.done) == steps
    desk.link.go_to(region)
    wait_until(lambda: desk.is_settled)
    assert state(desk) == before


def test_several_objects_are_one_step(desk, wait_until):
    session = desk.session
    own = session.evaluation.outcomes.reference
    rows = np.flatnonzero(own.status == STATUS_CODE[Status.FN])[:5]
    before = state(desk)
    part = desk.presenter(EditsPresenter)
    part.mending.do(ObjectAction.DELETE, [(Side.REFERENCE, int(own.ids[row])) for row in rows])
    wait_until(lambda: desk.is_settled)
    assert len(session.evaluation.outcomes.reference) == len(own) - len(rows)
    part.undo()
    wait_until(lambda: desk.is_settled)
    assert state(desk) == before


def test_strokes_and_actions_are_undone_in_their_order(desk, wait_until):
    part = desk.presenter(EditsPresenter)
    part.edits.set_on(True, Side.PREDICTION)
    states = [state(desk)]

    def note():
        wait_until(lambda: desk.is_settled)
        states.append(state(desk))

    layer, _ = desk.link.scene.object_layer(Side.PREDICTION, desk.session.team)
    part.edits.start_new_object()
    layer.paint((20, 20), layer.selected_label)
    note()
    select(desk, Side.REFERENCE, Status.FN)
    part.do(ObjectAction.DELETE)
    note()
    other, _ = desk.link.scene.object_layer(Side.REFERENCE, desk.session.team)
    other.paint((40, 60), 3)
    note()
    select(desk, Side.PREDICTION, Status.FP)
    part.do(ObjectAction.MARK_AMBIGUOUS)
    note()
    layer.paint((22, 26), layer.selected_label)
    note()
    for expected in reversed(states[:-1]):
        layer.undo()  # whichever layer is active
        wait_until(lambda: desk.is_settled)
        assert state(desk) == expected
    assert not part.link.history.may_undo()
    for expected in states[1:]:
        part.undo(redo=True)
        wait_until(lambda: desk.is_settled)
        assert state(desk) == expected


def test_what_would_be_overwritten_is_asked_before(desk, wait_until, monkeypatch):
    part = desk.presenter(EditsPresenter)
    part.mending.asking = Asking.ASK
    asked = []
    monkeypatch.setattr(part.mending, "_ask", lambda text, *_: asked.append(text))
    before = state(desk)
    own = desk.session.evaluation.outcomes.prediction
    mergers = np.flatnonzero(own.cause == CAUSE_CODE[Cause.MERGER])
    desk.session.select_row(Side.PREDICTION, int(mergers[0]))
    part.do(ObjectAction.ACCEPT)
    wait_until(lambda: desk.is_settled)
    assert "covers the annotated objects" in asked[0]
    assert state(desk) == before  # cancelled


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Escape])
def test_enter_and_escape_replace_nothing(desk, wait_until, monkeypatch, key):
    part = desk.presenter(EditsPresenter)
    seen = []

    def press(box):
        box.show()
        box.activateWindow()
        seen.append((box.defaultButton(), box.escapeButton(), box.text()))
        QTest.keyClick(box, key)
        return box.result()

    monkeypatch.setattr(QMessageBox, "exec", press)
    before = state(desk)
    select(desk, Side.PREDICTION, Status.FP, Cause.MERGER)
    part.do(ObjectAction.ACCEPT)
    wait_until(lambda: desk.is_settled)
    [(default, escape, text)] = seen
    assert default is escape
    assert "To replace: " in text
    assert state(desk) == before


@pytest.mark.parametrize("corner", ["lower left", "lower right", "upper left"])
def test_a_question_does_not_cover_the_objects_that_it_names(desk, viewer, monkeypatch, corner):
    """It lay in the lower left corner, whatever was there."""
    canvas, seen = canvas_of(viewer), []

    def look(box):
        box.show()
        seen.append(box.frameGeometry())
        return box.reject()

    monkeypatch.setattr(QMessageBox, "exec", look)
    select(desk, Side.PREDICTION, Status.FP, Cause.MERGER)
    part, frame = desk.presenter(EditsPresenter), viewer.window._qt_window.frameGeometry()
    named = QRect(QPoint(0, 0), QSize(80, 80))
    if "lower" in corner:
        named.moveBottom(frame.bottom())
    else:
        named.moveTop(frame.top())
    if "left" in corner:
        named.moveLeft(frame.left())
    else:
        named.moveRight(frame.right())
    # The camera moves the object there.
    evaluation, chosen = desk.session.evaluation, desk.session.selection
    y0, x0, y1, x1 = evaluation.outcomes.prediction.bbox[chosen.row].tolist()
    here = on_canvas(viewer, (y0 + y1) // 2, (x0 + x1) // 2)
    there = canvas.mapFromGlobal(named.center())
    camera = viewer.scene.camera
    camera.center = (
        0,
        camera.center[-2] + (here.y() - there.y()) / camera.zoom,
        camera.center[-1] + (here.x() - there.x()) / camera.zoom,
    )
    part.do(ObjectAction.ACCEPT)
    [box] = seen
    assert not box.contains(named.center())
    assert box.intersects(frame)


def test_what_was_done_is_counted_by_its_objects(desk, wait_until, monkeypatch):
    part = desk.presenter(EditsPresenter)
    monkeypatch.setattr(part.mending, "_ask", lambda *_: Covered.REPLACE)
    select(desk, Side.PREDICTION, Status.FP, Cause.MERGER)
    before = len(desk.session.evaluation.pair.reference.ids)
    part.do(ObjectAction.ACCEPT)  # in place of several
    replaced = before + 1 - len(desk.session.evaluation.pair.reference.ids)
    assert replaced > 1
    assert desk.panels.title.selected.text() == (
        f"1 object accepted, {replaced} annotated objects replaced. Ctrl+Z undoes it."
    )
    part.undo()
    select(desk, Side.REFERENCE, Status.FN, Cause.MERGED)
    part.do(ObjectAction.SPLIT)
    assert desk.panels.title.selected.text() == "1 prediction split. Ctrl+Z undoes it."
    wait_until(lambda: desk.is_settled)


def test_a_verdict_mends_at_once_and_is_undone_with_it(desk, wait_until):
    review, part = desk.presenter(ReviewPresenter), desk.presenter(EditsPresenter)
    review.panel.named.emit("Ada")
    review.panel.goes_on.setChecked(False)
    review.panel.show_mending(True)
    before = state(desk)
    id_ = select(desk, Side.REFERENCE, Status.FN)
    review.give(Verdict.PREDICTION_RIGHT)
    wait_until(lambda: desk.is_settled)
    assert id_ not in desk.session.evaluation.outcomes.reference.ids
    assert figures(desk.session.evaluation) == figures(fresh(desk))
    part.undo()
    wait_until(lambda: desk.is_settled)
    assert state(desk) == before
    assert not review.reviewing.may_undo()
    part.undo(redo=True)
    wait_until(lambda: desk.is_settled)
    assert id_ not in desk.session.evaluation.outcomes.reference.ids
    assert review.reviewing.may_undo()
    review.undo()  # the key of verdicts
    wait_until(lambda: desk.is_settled)
    assert state(desk) == before
    assert not review.reviewing.may_undo()
    review.panel.goes_on.setChecked(True)


def test_mended_failures_count_as_reviewed(desk, wait_until):
    review, part = desk.presenter(ReviewPresenter), desk.presenter(EditsPresenter)
    review.panel.named.emit("Ada")
    desk.raise_part(review)
    wait_until(lambda: desk.is_settled)

    def progress():
        wait_until(lambda: desk.is_settled)
        return review.panel.region_progress.format()

    total = review.reviewing.judged.counts()[1]
    assert progress() == f"Region: 0 of {total} failures reviewed"
    select(desk, Side.REFERENCE, Status.FN)
    part.do(ObjectAction.DELETE)
    assert progress() == f"Region: 1 of {total} failures reviewed (1 mended)"
    review.panel.show_mending(True)
    select(desk, Side.REFERENCE, Status.FN)
    review.give(Verdict.PREDICTION_RIGHT)
    assert progress() == f"Region: 2 of {total} failures reviewed (2 mended)"
    assert ", mended: prediction right" in review.panel.state.text()
    assert "2 mended" in review.panel.cohort_progress.format()
    bar = review.panel.region_progress
    assert (bar.value(), bar.maximum()) == (2, total)
    part.undo()
    part.undo()
    assert progress() == f"Region: 0 of {total} failures reviewed"


def test_chosen_objects_of_other_regions_are_not_mended_and_it_is_said(desk, wait_until):
    review, part = desk.presenter(ReviewPresenter), desk.presenter(EditsPresenter)
    review.panel.named.emit("Ada")
    review.panel.goes_on.setChecked(False)
    review.panel.show_mending(True)
    lines = desk.session.summaries
    wait_until(lambda: (SECOND, "merger") in lines)
    other = FailureName("merger", SECOND, Side.REFERENCE, first_fn(lines[SECOND, "merger"]))

    def choose_two():
        fn = select(desk, Side.REFERENCE, Status.FN)
        desk.link.failures.choose([FailureName("merger", FIRST, Side.REFERENCE, fn), other])

    choose_two()
    part.do(ObjectAction.DELETE)
    wait_until(lambda: desk.is_settled)
    said = "1 object deleted. Ctrl+Z undoes it. In other regions: 1 more."
    assert desk.panels.title.selected.text() == said
    part.undo()
    choose_two()
    review.give(Verdict.PREDICTION_RIGHT)
    wait_until(lambda: desk.is_settled)
    assert ", 1 of them mended: prediction right on 2 objects" in review.panel.state.text()
    part.undo()
    wait_until(lambda: desk.is_settled)
    desk.link.failures.choose(())
    desk.link.go_to(FIRST, team="merger")
    review.panel.goes_on.setChecked(True)


def first_fn(line):
    columns = line.failures.columns
    return int(columns["id"][columns["side"] == SIDES.index(Side.REFERENCE)][0])


def test_places_to_draw_are_listed_and_shown(desk, wait_until):
    review, part = desk.presenter(ReviewPresenter), desk.presenter(EditsPresenter)
    review.panel.named.emit("Ada")
    review.panel.goes_on.setChecked(False)
    review.panel.show_mending(True)
    before = state(desk)
    fn = select(desk, Side.REFERENCE, Status.FN)
    box = boxes(desk, Side.REFERENCE)[fn]
    review.give(Verdict.BOTH_WRONG)
    assert "to draw (Edits)" in review.panel.state.text()
    fp = select(desk, Side.PREDICTION, Status.FP)
    review.give(Verdict.BOTH_WRONG)  # nothing is annotated there
    desk.raise_part(part)
    wait_until(lambda: desk.is_settled)
    shown = part.panel.to_draw
    assert "To draw: 2 places" in shown.text()
    assert f">reference {fn}</a>" in shown.text()
    assert f">prediction {fp}</a>" in shown.text()
    desk.link.go_to(SECOND, team="careful")
    wait_until(lambda: desk.is_settled)
    shown.linkActivated.emit("0")
    wait_until(lambda: desk.is_settled and desk.session.snapshot.region.name == FIRST)
    assert desk.session.team == "merger"
    assert f"reference {fn}: press Edit" in desk.panels.title.selected.text()
    assert part.panel.chosen_side() is Side.REFERENCE
    y0, x0, y1, x1 = box
    y, x = middle_yx_px(desk)
    assert y0 - 20 <= y <= y1 + 20
    assert x0 - 20 <= x <= x1 + 20
    for _ in range(2):
        part.undo()
    wait_until(lambda: desk.is_settled)
    assert shown.isHidden()
    assert state(desk) == before
    review.panel.goes_on.setChecked(True)


def test_places_are_saved_also_where_nothing_else_changes(desk, wait_until, tmp_path):
    review, part = desk.presenter(ReviewPresenter), desk.presenter(EditsPresenter)
    review.panel.named.emit("Ada")
    review.panel.goes_on.setChecked(False)
    review.panel.show_mending(True)
    fn = select(desk, Side.REFERENCE, Status.FN)
    review.give(Verdict.BOTH_WRONG)
    desk.link.go_to(SECOND, team="merger")
    wait_until(lambda: desk.is_settled)
    fp = select(desk, Side.PREDICTION, Status.FP)
    review.give(Verdict.BOTH_WRONG)
    wait_until(lambda: desk.is_settled)
    part.corrected.save_to(tmp_path / "own")
    wait_until(lambda: desk.is_settled)
    record = json.loads((tmp_path / "own" / "corrections.json").read_text())
    places = [(at["region"], at["side"], at["id"]) for at in record["to_draw"]]
    assert places == [(FIRST, "reference", fn), (SECOND, "prediction", fp)]
    rows = pd.read_csv(tmp_path / "own" / "corrections.csv")
    assert rows["action"].tolist() == ["draw", "draw"]
    assert [file["region"] for file in record["files"]] == [FIRST]
    part.undo()
    part.undo()  # shows the region
    wait_until(lambda: desk.is_settled)
    part.undo()
    wait_until(lambda: desk.is_settled)
    assert part.mending.places_to_draw() == []
    review.panel.goes_on.setChecked(True)


def boxes(desk, side):
    table = desk.session.evaluation.table.side(side)
    ids = desk.session.evaluation.outcomes.side(side).ids
    return dict(zip(ids.tolist(), table.bbox.tolist(), strict=True))


def middle_yx_px(desk):
    """Return the pixel in the middle of the canvas."""
    layer, _ = desk.link.scene.object_layer(Side.REFERENCE, desk.session.team)
    return layer.world_to_data(desk.viewer.scene.camera.center[-2:])


@pytest.mark.usefixtures("hasty")
def test_an_object_that_was_not_painted_is_not_mended(desk, wait_until):
    part, rows = desk.presenter(EditsPresenter), desk.session.evaluation.outcomes.reference.ids
    n_before = len(rows)
    desk.session.select_row(Side.REFERENCE, n_before - 1)
    for text in ACTION_TEXTS.values():
        press_on_canvas(desk, getattr(Qt.Key, f"Key_{text.key.upper()}"))
        assert desk.panels.title.selected.text() == NOT_PAINTED
    assert not part.edits.unsaved
    assert desk.session.selection.row == n_before - 1
    wait_until(lambda: desk.is_settled)
    press_on_canvas(desk, Qt.Key.Key_D)
    assert len(desk.session.evaluation.outcomes.reference.ids) == n_before - 1


@pytest.mark.parametrize("action", ACTION_TEXTS)
def test_a_held_key_mends_once(desk, wait_until, action):
    done, key = [], getattr(Qt.Key, f"Key_{ACTION_TEXTS[action].key.upper()}")
    select(desk, Side.REFERENCE, Status.FN)
    part = desk.presenter(EditsPresenter)
    with patch.object(part.mending, "do", lambda own, *_, **__: done.append(own)):
        canvas_of(desk.viewer).setFocus()
        hold(canvas_of(desk.viewer), key, PLAIN, lambda: wait_until(lambda: desk.is_settled))
    assert done == [action]


def test_what_an_action_did_is_shown_until_another_object_is_selected(desk, wait_until):
    id_ = select(desk, Side.PREDICTION, Status.TP)
    press_on_canvas(desk, Qt.Key.Key_A)
    wait_until(lambda: desk.is_settled)
    assert desk.session.selection.id == id_
    assert desk.panels.title.selected.text() == "1 object accepted. Ctrl+Z undoes it."
    id_ = select(desk, Side.PREDICTION, Status.FP)
    assert str(id_) in desk.panels.title.selected.text()


def test_what_is_undone_is_selected_again(desk, wait_until):
    id_ = select(desk, Side.REFERENCE, Status.FN)
    press_on_canvas(desk, Qt.Key.Key_D)
    wait_until(lambda: desk.is_settled)
    assert desk.session.selection is None
    press_on_canvas(desk, Qt.Key.Key_Z, CTRL)
    wait_until(lambda: desk.is_settled)
    assert (desk.session.selection.side, desk.session.selection.id) == (Side.REFERENCE, id_)
    assert desk.panels.title.selected.text() == "Undone. Ctrl+Shift+Z does it again."
    press_on_canvas(desk, Qt.Key.Key_Z, CTRL | SHIFT)
    wait_until(lambda: desk.is_settled)
    assert desk.panels.title.selected.text() == "Done again. Ctrl+Z undoes it."
    press_on_canvas(desk, Qt.Key.Key_Z, CTRL)
    wait_until(lambda: desk.is_settled)


def test_a_cancelled_question_saves_neither_verdict_nor_mend(desk, wait_until, monkeypatch):
    part, review = desk.presenter(EditsPresenter), desk.presenter(ReviewPresenter)
    review.panel.named.emit("Ada")
    review.panel.show_mending(True)
    select(desk, Side.PREDICTION, Status.FP, Cause.MERGER)
    monkeypatch.setattr(part.mending, "_ask", lambda *_: None)
    before = state(desk)
    review.give(Verdict.PREDICTION_RIGHT)
    wait_until(lambda: desk.is_settled)
    assert "cancelled" in review.panel.state.text()
    assert state(desk) == before
    assert not review.reviewing.may_undo()


def test_the_corrected_annotation_gives_the_figures_of_the_window(
    desk, wait_until, tmp_path, monkeypatch
):
    part, review = desk.presenter(EditsPresenter), desk.presenter(ReviewPresenter)
    review.panel.named.emit("Ada")
    root = desk.session.cohort.root
    monkeypatch.setattr(part.mending, "_ask", lambda *_: Covered.BESIDE)
    files = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    shown = {}
    for name in (FIRST, SECOND):
        desk.link.go_to(name, team="merger")
        wait_until(lambda: desk.is_settled)
        for action, side, status in (
            (ObjectAction.DELETE, Side.REFERENCE, Status.FN),
            (ObjectAction.ACCEPT, Side.PREDICTION, Status.FP),
            (ObjectAction.ACCEPT, Side.PREDICTION, Status.TP),
        ):
            select(desk, side, status)
            part.do(action)
            wait_until(lambda: desk.is_settled)
        shown[name] = desk.session.evaluation
    assert len(part.edits.unsaved) == 2
    for folder, form in ((tmp_path / "own", OWN), (tmp_path / "qupath", "geojson")):
        part.corrected.save_to(folder, form)
        wait_until(lambda: desk.is_settled)
        assert part.edits.unsaved == ()
        rows = pd.read_csv(folder / "corrections.csv", keep_default_na=False)
        assert sorted(rows["action"]) == sorted(["delete", "accept", "replace"] * 2)
        assert set(rows["reviewer"]) == {"Ada"}
        assert set(rows["team"]) == {"merger"}
    assert open_cohort(tmp_path / "qupath").regions
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    shutil.copytree(tmp_path / "own", copy, dirs_exist_ok=True)
    corrected = open_cohort(copy)
    for name, expected in shown.items():
        assert_same_figures(evaluation_of(corrected, name, "merger"), expected)
    assert {path: path.read_bytes() for path in files} == files
    part.edits.discard()
    desk.link.go_to(FIRST, team="merger")
    wait_until(lambda: desk.is_settled)


def test_a_folder_with_other_files_is_refused(desk, wait_until, tmp_path, monkeypatch):
    part, said = desk.presenter(EditsPresenter), []
    monkeypatch.setattr(corrections, "show_error", said.append)
    monkeypatch.setattr(corrections, "show_info", said.append)
    part.corrected.save()
    assert said.pop() == corrections.NOTHING_TO_SAVE
    select(desk, Side.PREDICTION, Status.FP)
    part.do(ObjectAction.DELETE)
    part.corrected.save()
    assert said.pop() == corrections.NOTHING_TO_SAVE  # predictions are no annotation
    select(desk, Side.REFERENCE, Status.FN)
    part.do(ObjectAction.DELETE)
    wait_until(lambda: desk.is_settled)
    part.corrected.save_to(tmp_path / "corrected")
    wait_until(lambda: desk.is_settled)
    assert corrections.PREDICTIONS_LEFT_OUT in said.pop()
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("kept")
    part.corrected.save_to(other)
    wait_until(lambda: desk.is_settled)
    assert "mine.txt" in said.pop()
    assert [path.name for path in other.iterdir()] == ["mine.txt"]
    assert part.edits.unsaved
