"""Actions on objects in a real window: by key, exactly undone, in one order with strokes."""

import shutil

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.actions import Covered
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.nuclei.metrics import METRIC_NAMES
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.vocabulary import CAUSE_CODE, STATUS_CODE, Cause, Side, Status, Verdict
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.editing.object_actions import ACTION_TEXTS, Asking, ObjectAction
from napari_panoptic.viewer.panels.edits import corrections
from napari_panoptic.viewer.panels.edits.panel import OWN
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from napari_panoptic.viewer.state.preferences import PREFERENCES
from tests.support.corrected import assert_same_figures, evaluation_of
from tests.viewer.finding import FIRST, SECOND

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture(scope="module")
def shown_parts():
    return tuple(part for part in PARTS if part in (EditsPresenter, ReviewPresenter))


@pytest.fixture
def desk(open_desk, wait_until):
    desk = open_desk
    desk.show_workspace("Review")
    desk.link.go_to(FIRST, team="merger")
    wait_until(lambda: desk.is_settled)
    edits = desk.presenter(EditsPresenter)
    edits.edits.set_on(False)
    edits.edits.discard()
    edits.mending.asking = Asking.KEEP
    desk.session.select(None)
    desk.link.failures.choose(())
    wait_until(lambda: desk.is_settled)
    yield desk
    PREFERENCES.mends_at_once = False
    edits.edits.discard()
    wait_until(lambda: desk.is_settled)


def select(desk, side, status, cause=None):
    own = desk.session.evaluation.outcomes.side(side)
    found = own.status == STATUS_CODE[status]
    if cause is not None:
        found &= own.cause == CAUSE_CODE[cause]
    row = int(np.flatnonzero(found)[0])
    desk.session.select_row(side, row)
    return int(own.ids[row])


def press(desk, key, modifier=Qt.KeyboardModifier.NoModifier):
    window = desk.strip.window()
    window.activateWindow()
    QTest.keyClick(desk.viewer.window._qt_viewer.canvas.native, key, modifier)


def state(desk):
    session = desk.session
    pair = session.evaluation.pair
    found = []
    for side in Side:
        labels = pair.side(side)
        names = labels.class_names_of_objects()
        found.append(
            (labels.id_image().tobytes(), dict(zip(labels.ids.tolist(), names, strict=True)))
        )
    area = pair.ambiguous
    return found, None if area is None else area.tobytes(), figures(session.evaluation)


def figures(evaluation):
    return [repr(evaluation.metrics[name]) for name in METRIC_NAMES]


def fresh(desk):
    """Evaluate what is shown from its pixels alone."""
    pair = desk.session.evaluation.pair
    return evaluate(
        LabelPair(pair.reference, pair.prediction, pair.ambiguous, pair.mpp), desk.session.settings
    )


def layer_shows(desk, side):
    layer, values = desk.link.scene.object_layer(side, desk.session.team)
    labels = desk.session.evaluation.pair.side(side)
    return np.array_equal(values.ids(np.asarray(layer.data)), labels.id_image())


@pytest.mark.parametrize(
    ("action", "side", "status", "cause"),
    [
        (ObjectAction.ACCEPT, Side.PREDICTION, Status.TP, None),
        (ObjectAction.DELETE, Side.REFERENCE, Status.FN, None),
        (ObjectAction.DELETE, Side.PREDICTION, Status.FP, None),
        (ObjectAction.SPLIT, Side.REFERENCE, Status.FN, Cause.MERGED),
        (ObjectAction.MARK_AMBIGUOUS, Side.PREDICTION, Status.FP, None),
    ],
)
def test_an_action_by_its_key_is_undone_to_the_last_pixel(
    desk, wait_until, action, side, status, cause
):
    select(desk, side, status, cause)
    before = state(desk)
    press(desk, getattr(Qt.Key, f"Key_{ACTION_TEXTS[action].key.upper()}"))
    wait_until(lambda: desk.is_settled)
    after = state(desk)
    assert after != before
    assert figures(desk.session.evaluation) == figures(fresh(desk))
    assert all(layer_shows(desk, own) for own in Side)
    press(desk, Qt.Key.Key_Z, CTRL)
    wait_until(lambda: desk.is_settled)
    assert state(desk) == before
    assert all(layer_shows(desk, own) for own in Side)
    press(desk, Qt.Key.Key_Z, CTRL | SHIFT)
    wait_until(lambda: desk.is_settled)
    assert state(desk) == after
    press(desk, Qt.Key.Key_Z, CTRL)
    wait_until(lambda: desk.is_settled)
    assert desk.presenter(EditsPresenter).edits.unsaved == ()


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


@pytest.mark.long
def test_random_actions_and_as_many_undos_restore_everything(desk, wait_until):
    rng = np.random.default_rng(3)
    part, session = desk.presenter(EditsPresenter), desk.session
    before, done = state(desk), 0
    kinds = [kind for kind in ObjectAction if kind is not ObjectAction.MERGE]
    for _ in range(300):
        side = Side.REFERENCE if rng.integers(2) else Side.PREDICTION
        ids = session.evaluation.outcomes.side(side).ids
        if len(ids):
            chosen = rng.choice(ids, min(3, len(ids)), replace=False)
            kind = kinds[rng.integers(len(kinds))]
            done += part.mending.do(kind, [(side, int(id_)) for id_ in chosen])
    assert done > 50
    for _ in range(done):
        assert part.link.history.undo() == ""
    wait_until(lambda: desk.is_settled)
    assert state(desk) == before
    assert all(layer_shows(desk, own) for own in Side)


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
    select(desk, Side.REFERENCE, Status.FN)
    part.do(ObjectAction.DELETE)
    wait_until(lambda: desk.is_settled)
    (tmp_path / "mine.txt").write_text("kept")
    part.corrected.save_to(tmp_path)
    wait_until(lambda: desk.is_settled)
    assert "mine.txt" in said.pop()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert part.edits.unsaved
