"""The panel that every question has, in a real window: what is asked is compared, not told."""

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.questions.causes import Causes
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.kit.questions import FolderDialog
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.question.presenter import NOT_EDITED, STALE, STOPPED
from tests.viewer.finding import answering

LEFT = Qt.MouseButton.LeftButton
CausesPresenter = next(part for part in PARTS if part.title == "Causes")


@pytest.fixture(scope="module")
def shown_parts():
    return tuple(part for part in PARTS if part in (FailuresPresenter, CausesPresenter))


@pytest.fixture
def part(open_desk, wait_until):
    desk, session = open_desk, open_desk.session
    session.set_team("merger")
    desk.link.failures.show_only(None)
    desk.show_workspace("Failures")
    desk.reveal("Causes")
    wait_until(lambda: desk.is_settled)
    part = desk.presenter(CausesPresenter)
    wait_until(lambda: is_in_sight(part.panel))
    part.forget()
    return part


def ask(part, wait_until):
    QTest.mouseClick(part.panel.work.start, LEFT)
    assert part.is_busy
    wait_until(lambda: not part.is_busy)
    assert part.answer is not None


def stale(part):
    return part.panel.headline.text() == STALE.format(verb=Causes.verb)


def test_it_shows_the_answer_of_the_command(part, open_desk, wait_until):
    assert part.panel.headline.text() == Causes.hint
    assert part.panel.work.start.toolTip().startswith("Find what each cause of failures costs")
    assert not is_in_sight(part.panel.table)
    ask(part, wait_until)
    session = open_desk.session
    wanted = Causes(team="merger", settings=session.settings).answer(session.cohort)
    assert part.panel.headline.text() == wanted.headline
    (table,) = wanted.tables
    shown = part.panel.table.texts()
    assert [row[1] for row in shown] == table.frame["cause"].tolist()
    assert [int(row[2]) for row in shown] == table.frame["failures"].tolist()
    assert [row[0] for row in shown[:2]] == ["all classes"] * 2


def test_a_row_shows_exactly_its_failures_in_the_gallery(part, open_desk, wait_until):
    ask(part, wait_until)
    (table,) = part.answer.tables
    row = int(np.flatnonzero(table.frame["cause"] == "merged")[0])
    part.panel.table.select(row)
    QTest.keyClick(part.panel.table, Qt.Key.Key_Return)
    gallery = open_desk.presenter(FailuresPresenter)
    wait_until(lambda: is_in_sight(gallery.panel) and open_desk.is_settled)
    names = {gallery.failures.name(int(own)) for own in gallery.panel.view.items.rows}
    assert names == set(table.objects(row).names)
    assert len(names) == table.frame["failures"][row] > 0


@pytest.mark.parametrize("change", ["team", "settings", "source"])
def test_an_answer_to_another_question_is_taken_away(part, open_desk, wait_until, change):
    ask(part, wait_until)
    desk, session = open_desk, open_desk.session
    settings = session.settings
    box = desk.panels.settings.source
    try:
        if change == "team":
            session.set_team("careful")
        elif change == "settings":
            desk.panels.settings.settings_chosen.emit(settings.replaced(iou_threshold=0.6))
        else:
            box.choose(next(own for own in box.values if own not in (None, session.source)))
        assert stale(part)
        assert part.answer is None
        assert not is_in_sight(part.panel.table)
        assert not is_in_sight(part.panel.save)
    finally:
        if session.settings != settings:
            desk.panels.settings.settings_chosen.emit(settings)
        if session.source is not None:
            box.choose(None)
        wait_until(lambda: desk.is_settled)


def test_a_threshold_of_scores_and_another_region_change_no_answer(part, open_desk, wait_until):
    ask(part, wait_until)
    answer, note = part.answer, part.panel.note.text()
    session = open_desk.session
    names = [region.name for region in session.cohort.regions]
    session.set_threshold(0.5)
    wait_until(lambda: open_desk.is_settled)
    session.set_threshold(None)
    open_desk.link.go_to(next(own for own in names if own != session.snapshot.region.name))
    wait_until(lambda: open_desk.is_settled)
    assert part.answer is answer
    assert part.panel.note.text() == note


def test_unsaved_edits_are_noted_while_there_are_any(part, open_desk, wait_until):
    ask(part, wait_until)
    session = open_desk.session
    own = session.known_ids(Side.PREDICTION)[0]
    y, x = np.nonzero(session.edited_labels(Side.PREDICTION).id_image() == own)
    assert NOT_EDITED not in part.panel.note.text()
    try:
        session.edit(Side.PREDICTION, y, x, 0)
        wait_until(lambda: open_desk.is_settled)
        assert NOT_EDITED in part.panel.note.text()
    finally:
        session.discard_edits()
    wait_until(lambda: open_desk.is_settled)
    assert NOT_EDITED not in part.panel.note.text()


def test_it_can_be_stopped(part, wait_until):
    QTest.mouseClick(part.panel.work.start, LEFT)
    QTest.mouseClick(part.panel.work.stop, LEFT)
    wait_until(lambda: not part.is_busy)
    assert part.panel.headline.text() == STOPPED.format(verb=Causes.verb)
    assert part.answer is None


def test_what_is_saved_is_what_is_shown(part, wait_until, tmp_path, monkeypatch):
    ask(part, wait_until)
    monkeypatch.setattr(FolderDialog, "ask", lambda *_a, **_k: str(tmp_path))
    QTest.mouseClick(part.panel.save, LEFT)
    wait_until(lambda: not part.is_busy)
    assert {path.name for path in tmp_path.iterdir()} == {"causes.csv", "causes.json"}
    found = pd.read_csv(tmp_path / "causes.csv", dtype={"class": str}).fillna({"class": ""})
    pd.testing.assert_frame_equal(found, part.answer.files["causes.csv"], check_dtype=False)


def test_a_file_that_is_there_is_replaced_only_if_the_user_agrees(
    part, wait_until, tmp_path, monkeypatch
):
    ask(part, wait_until)
    (tmp_path / "causes.csv").write_text("mine", "utf-8")
    monkeypatch.setattr(FolderDialog, "ask", lambda *_a, **_k: str(tmp_path))
    with answering("No") as asked:
        QTest.mouseClick(part.panel.save, LEFT)
    wait_until(lambda: not part.is_busy)
    assert len(asked) == 1
    assert "causes.csv" in asked[0]
    assert [path.read_text("utf-8") for path in tmp_path.iterdir()] == ["mine"]
