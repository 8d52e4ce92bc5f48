"""The review on a desk in a real window: verdicts by keys and mouse."""

import csv
import json
import shutil
import sqlite3
import threading
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from napari.settings import get_settings
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QFileDialog, QLabel

from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.display.styles import UNDEFINED
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.review.file import REVIEW_FILE
from napari_panoptic.review.judged import Judged, Subjects
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.watch import Watch
from napari_panoptic.values.vocabulary import (
    CAUSES,
    STATUS_CODE,
    STATUSES,
    Side,
    Status,
    Verdict,
)
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.jobs import jobs
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.object_card import ObjectPresenter
from napari_panoptic.viewer.panels.region_panel import Sight
from napari_panoptic.viewer.panels.review import files, presenter, review_queue
from napari_panoptic.viewer.panels.review.compare import THIRD_NEEDED, TOO_FEW
from napari_panoptic.viewer.panels.review.history import LAST_VERDICTS, NO_HISTORY, THIS_OBJECT
from napari_panoptic.viewer.panels.review.panel import ReviewExport
from napari_panoptic.viewer.panels.review.presenter import NOTHING_TO_UNDO, ReviewPresenter
from napari_panoptic.viewer.state.preferences import PREFERENCES
from tests.viewer.finding import FIRST, SECOND, THIRD, handle_events

FIRST_TEAM = "merger"

ALT, PLAIN = Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.NoModifier


@pytest.fixture(scope="module")
def review_cohort(nuclei_sample, tmp_path_factory):
    """Open a part of a sample cohort of this module's own, whose reviews nobody else sees."""
    folder = shutil.copytree(nuclei_sample, tmp_path_factory.mktemp("review") / "cohort")
    cohort = open_cohort(folder)
    teams = tuple(team for team in cohort.teams if team.name in ("careful", "merger"))
    return replace(cohort, regions=cohort.regions[:3], teams=teams)


@pytest.fixture(scope="module")
def shown_cohort(review_cohort):
    return review_cohort


@pytest.fixture(scope="module")
def shown_parts():
    wanted = (ObjectPresenter, FailuresPresenter, ReviewPresenter)
    return tuple(part for part in PARTS if part in wanted)


@pytest.fixture
def told(monkeypatch):
    """Collect notifications instead of showing them."""
    told = []
    for module in (presenter, review_queue, files):
        for name in ("show_info", "show_error", "show_warning"):
            monkeypatch.setattr(module, name, told.append, raising=False)
    monkeypatch.setattr(jobs, "show_error", told.append)
    return told


@pytest.fixture
def at_first(fresh_desk, review_cohort, told):  # noqa: ARG001
    """Begin a review without any verdict."""
    part = part_of(fresh_desk)
    part.reviewing.close()
    for path in review_cohort.root.glob("panoptic-review*"):
        path.unlink(missing_ok=True)
    part.counting.forget_all()
    PREFERENCES.reviewer = "Ada"
    part.reviewing.use(reviewer="Ada", path=review_cohort.root / REVIEW_FILE)
    part.say("")
    yield
    part.reviewing.close()


@pytest.fixture
def large_letters():
    """Make letters large for one test, and return their size in points."""
    appearance = get_settings().appearance
    before = appearance.font_size
    appearance.font_size = 12
    yield 12
    appearance.font_size = before


@pytest.fixture
def part(desk):
    return part_of(desk)


@pytest.fixture
def panel(part):
    return part.panel


def part_of(desk):
    return desk.presenter(ReviewPresenter)


def verdict_texts(desk):
    rows = desk.panels.objects.model.rows
    words = rows.words["verdict"]
    return [words[code] for code in rows.values["verdict"]]


def stored(desk, reviewer="Ada"):
    with ReviewStore(desk.session.cohort.root / REVIEW_FILE, reviewer=reviewer) as store:
        return store.verdicts()


def row_of(desk, side, status):
    codes = desk.session.evaluation.outcomes.side(side).status
    return int((codes == STATUS_CODE[status]).nonzero()[0][0])


class TestVerdicts:
    def test_a_key_saves_a_verdict_and_goes_to_the_next_failure(self, desk, panel, canvas):
        QTest.keyClick(canvas, Qt.Key.Key_N)
        judged = desk.session.selection
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        (record,) = stored(desk)
        assert record.verdict is Verdict.PREDICTION_RIGHT
        assert (record.side, record.object_id) == (judged.side, judged.id)
        assert panel.state.text().startswith("✓ saved")
        following = desk.session.selection
        assert (following.side, following.row) != (judged.side, judged.row)
        model = desk.panels.objects.model
        table = model.table_row(judged.side, judged.row), model.table_row(*_place(following))
        failures = np.flatnonzero(model.rows.failures()[model.order])
        assert table[1] == failures[failures > table[0]][0]

    @pytest.mark.long
    @pytest.mark.parametrize("verdict", list(Verdict))
    def test_every_verdict_has_a_button(self, desk, part, panel, verdict):
        desk.session.select_row(Side.REFERENCE, 0)
        chosen = desk.session.selection
        desk.raise_part(part)
        QTest.mouseClick(panel.verdicts.buttons[verdict], Qt.MouseButton.LeftButton)
        assert [record.verdict for record in stored(desk)] == [verdict]
        desk.session.select(chosen)
        checked = [v for v, button in panel.verdicts.buttons.items() if button.isChecked()]
        assert checked == [verdict]

    def test_a_verdict_is_in_the_table(self, desk, canvas):
        desk.session.select_row(Side.PREDICTION, 0)
        QTest.keyClick(canvas, Qt.Key.Key_4, ALT)
        row = desk.panels.objects.model.rows.row_of(Side.PREDICTION, 0)
        assert verdict_texts(desk)[row] == "cannot tell"

    def test_a_misclassified_pair_is_one_question(self, desk, part, canvas):
        desk.session.set_team("careful")
        row = row_of(desk, Side.PREDICTION, Status.MISCLASSIFIED)
        before, total = part.reviewing.judged.counts()
        desk.session.select_row(Side.PREDICTION, row)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert [record.side for record in stored(desk)] == [Side.REFERENCE]
        assert verdict_texts(desk).count("annotation right") == 2
        assert part.reviewing.judged.counts() == (before + 1, total)

    def test_undo_withdraws_and_shows_the_object(self, desk, panel, canvas):
        QTest.keyClick(canvas, Qt.Key.Key_N)
        judged = desk.session.selection
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        QTest.keyClick(canvas, Qt.Key.Key_5, ALT)
        assert stored(desk) == []
        assert desk.session.selection == judged
        assert panel.state.text().startswith("undone")
        assert set(verdict_texts(desk)) == {""}
        QTest.keyClick(canvas, Qt.Key.Key_5, ALT)
        assert panel.state.text() == NOTHING_TO_UNDO

    def test_what_an_earlier_window_gave_is_withdrawn(self, desk, part, panel, wait_until):
        desk.session.select_row(Side.REFERENCE, 1)
        assert not panel.withdrawal.isEnabled()
        subject = shown_subjects(desk).of(Side.REFERENCE, 1)
        with ReviewStore(part.reviewing.path, reviewer="Ada") as earlier:
            earlier.give(subject, Verdict.CANNOT_TELL)
        part.reviewing.try_again()
        wait_until(lambda: verdict_texts(desk)[1] == "cannot tell")
        assert panel.withdrawal.isEnabled()
        panel.withdrawal.click()
        assert panel.state.text().startswith("withdrawn: cannot tell")
        assert stored(desk) == []
        assert set(verdict_texts(desk)) == {""}
        assert not panel.withdrawal.isEnabled()

    def test_undo_leaves_what_another_window_gave(self, desk, part, panel, canvas, wait_until):
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        (mine,) = stored(desk)
        subject = shown_subjects(desk).of(Side.REFERENCE, 1)
        with ReviewStore(part.reviewing.path, reviewer="Ada") as other:
            theirs = other.give(subject, Verdict.CANNOT_TELL)
        part.reviewing.try_again()  # opens the file anew
        wait_until(lambda: verdict_texts(desk)[1] == "cannot tell")
        QTest.keyClick(canvas, Qt.Key.Key_5, ALT)
        assert panel.state.text().startswith("undone: annotation right")
        QTest.keyClick(canvas, Qt.Key.Key_5, ALT)
        assert panel.state.text() == NOTHING_TO_UNDO
        assert stored(desk) == [theirs]
        assert mine != theirs

    def test_tag_and_note_are_kept_with_the_verdict(self, desk, part, panel, canvas):
        desk.raise_part(part)
        QTest.keyClick(canvas, Qt.Key.Key_N)
        judged = desk.session.selection
        QTest.keyClicks(panel.tags.line, "debris")
        QTest.keyClicks(panel.note, "n 1 q?")
        QTest.keyClick(
            panel.note, Qt.Key.Key_3, ALT
        )  # the key works from the field, and writes nothing
        (record,) = stored(desk)
        assert (record.tag, record.note) == ("debris", "n 1 q?")
        assert panel.details() == ("", "")  # those of the next object
        desk.session.select(judged)
        assert panel.details() == ("debris", "n 1 q?")
        QTest.keyClicks(panel.note, " yes")
        QTest.keyClick(panel.note, Qt.Key.Key_Return)
        assert [record.note for record in stored(desk)] == ["n 1 q? yes"]

    @pytest.mark.parametrize("way", ["undo", "withdraw"])
    def test_a_verdict_that_is_taken_back_leaves_its_tags_and_note(
        self, desk, part, panel, canvas, way
    ):
        desk.raise_part(part)
        QTest.keyClick(canvas, Qt.Key.Key_N)
        judged = desk.session.selection
        QTest.keyClicks(panel.tags.line, "debris")
        QTest.keyClicks(panel.note, "torn")
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        if way == "undo":
            QTest.keyClick(canvas, Qt.Key.Key_5, ALT)
        else:
            desk.session.select(judged)
            panel.withdrawal.click()
        assert stored(desk) == []
        assert desk.session.selection == judged
        assert panel.details() == ("debris", "torn")
        assert panel.has_draft
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        (record,) = stored(desk)
        assert (record.tag, record.note) == ("debris", "torn")

    def test_undo_gives_the_words_of_the_earlier_verdict_back(self, desk, part, panel, canvas):
        desk.raise_part(part)
        QTest.keyClick(canvas, Qt.Key.Key_N)
        judged = desk.session.selection
        for words in ("first", " and second"):
            desk.session.select(judged)
            QTest.keyClicks(panel.note, words)
            QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        QTest.keyClick(canvas, Qt.Key.Key_5, ALT)
        assert panel.details() == ("", "first")
        assert not panel.has_draft
        assert [record.note for record in stored(desk)] == ["first"]

    def test_without_a_name_it_asks_for_one(self, desk, part, panel, canvas, told):
        part.reviewing.use(reviewer="")
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert told == [presenter.ASK_FOR_NAME]
        QTest.keyClicks(panel.name, "Grace")
        QTest.keyClick(panel.name, Qt.Key.Key_Return)
        assert PREFERENCES.reviewer == "Grace"
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert [record.reviewer for record in stored(desk, "Grace")] == ["Grace"]

    def test_without_a_name_verdicts_tags_and_note_are_in_sight(
        self, desk, part, panel, wait_until, large_letters
    ):
        assert large_letters == 12
        desk.show_workspace("Review")
        part.reviewing.use(reviewer="")
        desk.session.select_row(Side.REFERENCE, 0)
        wait_until(lambda: desk.is_arranged and desk.is_settled)
        handle_events()
        needed = [panel.name, *panel.verdicts.buttons.values(), panel.tags, panel.note]
        assert [w for w in needed if w.visibleRegion().boundingRect() != w.rect()] == []
        assert not is_in_sight(panel.place)
        panel.settings.fold.click()
        assert panel.place.isVisible()
        panel.settings.fold.click()
        part.reviewing.use(reviewer="Ada")
        assert not panel.name.isVisible()
        assert panel.reviewer_text() == "Reviewer: Ada"
        panel.shows_reviewer.click()
        assert panel.name.isVisible()
        assert panel.name.text() == "Ada"
        panel.settings.fold.click()

    @pytest.mark.parametrize("field", ["name", "note", "tags"])
    def test_after_enter_the_keys_are_the_desk_s_again(self, desk, part, panel, field):
        desk.raise_part(part)
        holder = getattr(panel, field)
        line = panel.tags.line if field == "tags" else holder
        panel.settings.fold.setChecked(True)
        window = panel.window()
        holder.setFocus()
        assert window.focusWidget() is line
        QTest.keyClick(line, Qt.Key.Key_Return)
        assert window.focusWidget() is not line

    def test_a_name_counts_without_enter(self, desk, part, panel, canvas, told):
        desk.raise_part(part)
        for name in ("Grace", "Hedy"):
            panel.name.clear()
            QTest.keyClicks(panel.name, name)
            desk.session.select_row(Side.REFERENCE, 0)
            QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert told == []
        assert stored(desk) == []
        for name in ("Grace", "Hedy"):
            assert [record.reviewer for record in stored(desk, name)] == [name]
        panel.name.clear()
        QTest.keyClicks(panel.name, "Grace")
        QTest.keyClick(canvas, Qt.Key.Key_5, ALT)
        assert stored(desk, "Grace") == []
        assert len(stored(desk, "Hedy")) == 1

    def test_without_a_selection_it_says_so(self, desk, panel, canvas, told):
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert told == [presenter.NO_OBJECT]
        assert not any(button.isEnabled() for button in panel.verdicts.buttons.values())
        assert not (desk.session.cohort.root / REVIEW_FILE).exists()

    def test_staying_is_remembered(self, desk, part, panel, canvas):
        desk.raise_part(part)
        panel.goes_on.click()
        try:
            assert not PREFERENCES.goes_on
            QTest.keyClick(canvas, Qt.Key.Key_N)
            judged = desk.session.selection
            QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
            assert desk.session.selection == judged
        finally:
            panel.goes_on.setChecked(True)

    @pytest.mark.long
    def test_a_verdict_outlives_other_settings(self, desk, canvas, wait_until):
        row = row_of(desk, Side.REFERENCE, Status.TP)
        desk.session.select_row(Side.REFERENCE, row)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        settings = desk.session.settings
        desk.panels.settings.threshold.setValue(0.95)
        wait_until(lambda: desk.is_settled)
        assert desk.session.settings != settings
        assert verdict_texts(desk)[row] == "annotation right"
        desk.panels.settings.threshold.setValue(settings.iou_threshold)
        wait_until(lambda: desk.is_settled)

    def test_a_verdict_stays_with_its_object_while_others_are_edited(self, desk, canvas):
        session = desk.session
        chosen = row_of(desk, Side.PREDICTION, Status.FP)
        session.select_row(Side.PREDICTION, chosen)
        judged = session.selection
        QTest.keyClick(canvas, Qt.Key.Key_4, ALT)
        index, ids = session.evaluation.pair.prediction.index, session.evaluation.outcomes
        gone = 0 if chosen else 1
        y, x = np.nonzero(index == gone + 1)
        try:
            session.edit(Side.PREDICTION, y, x, 0)
            outcomes = session.evaluation.outcomes.prediction
            assert len(outcomes) == len(ids.prediction) - 1
            row = outcomes.row_of(judged.id)
            table_row = desk.panels.objects.model.rows.row_of(Side.PREDICTION, row)
            assert verdict_texts(desk)[table_row] == "cannot tell"
            QTest.keyClick(canvas, Qt.Key.Key_N)
            QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
            assert len(stored(desk)) == 2
            assert session.selection is not None
        finally:
            session.discard_edits()


class TestGoingThrough:
    @pytest.mark.long
    def test_every_failure_comes_once_and_then_the_next_region(
        self, desk, part, panel, canvas, wait_until
    ):
        desk.raise_part(part)
        desk.session.set_team("careful")
        _, total = part.reviewing.judged.counts()
        QTest.keyClick(canvas, Qt.Key.Key_N)
        for _ in range(total):
            QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert len(stored(desk)) == total
        # The first region is done: the review goes on in the next one.
        wait_until(lambda: desk.session.snapshot.region.name == SECOND and desk.is_settled)
        assert panel.verdicts.end_text() == ""
        done, _ = part.reviewing.judged.counts()
        assert done == 0
        assert part.reviewing.judged.record(*_place(desk.session.selection)) is None
        desk.link.go_to(FIRST)
        wait_until(lambda: desk.session.snapshot.region.name == FIRST and desk.is_settled)
        assert part.reviewing.judged.counts() == (total, total)
        assert panel.region_progress.format() == f"Region: {total} of {total} failures reviewed"

    def test_unreviewed_lists_what_is_left(self, desk, canvas):
        table = desk.panels.objects
        table.set_filter(ObjectFilter(statuses=frozenset({"FN", "FP"}), verdicts=frozenset({""})))
        before = table.model.rowCount()
        QTest.keyClick(canvas, Qt.Key.Key_N)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert table.model.rowCount() == before - 2
        assert len(stored(desk)) == 2

    def test_progress_counts_regions_reviewed_before(self, desk, part, panel, canvas, wait_until):
        desk.raise_part(part)
        QTest.keyClick(canvas, Qt.Key.Key_N)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        QTest.keyClick(canvas, Qt.Key.Key_J)
        wait_until(lambda: desk.session.snapshot.region.name == SECOND and desk.is_settled)
        wait_until(lambda: panel.cohort_progress.value() == 1, "the first region is not counted")
        counts = [
            summary.counts.confusion.sum() - summary.counts.confusion.trace()
            for (_, team), summary in desk.session.summaries.items()
            if team == "merger"
        ]
        assert panel.cohort_progress.maximum() == sum(counts)
        assert part.reviewing.judged.counts()[0] == 0

    @pytest.mark.long
    def test_figures_before_and_after(self, desk, part, panel, canvas, wait_until):
        desk.raise_part(part)
        row = row_of(desk, Side.PREDICTION, Status.FP)
        before = desk.session.evaluation.metrics.detection_f1
        desk.session.select_row(Side.PREDICTION, row)
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        wait_until(lambda: desk.is_settled)
        line = panel.figures()[-1]
        assert line[:2] == ["F1", f"{before:.3f}"]
        assert float(line[2]) > before
        assert line[3].startswith("+")
        assert float(line[5]) > float(line[4])


class TestReviewers:
    def test_another_reviewer_sees_nothing_of_the_first(self, desk, part, canvas):
        QTest.keyClick(canvas, Qt.Key.Key_N)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        part.reviewing.use(reviewer="Grace")
        assert set(verdict_texts(desk)) == {""}
        assert part.reviewing.judged.counts()[0] == 0

    @pytest.mark.long
    def test_agreement_and_disagreements(self, desk, part, panel, canvas, wait_until):
        desk.raise_part(part)
        places = [(Side.PREDICTION, row) for row in range(4)]
        for name, keys in (("Ada", "1122"), ("Grace", "1121")):
            part.reviewing.use(reviewer=name)
            for place, key in zip(places, keys, strict=True):
                desk.session.select_row(*place)
                QTest.keyClick(canvas, getattr(Qt.Key, f"Key_{key}"), ALT)
        QTest.mouseClick(panel.compare, Qt.MouseButton.LeftButton)
        dialog = part.panel.compare_dialog
        assert dialog.lines() == []  # nothing is shown before it is asked for
        QTest.mouseClick(dialog.go, Qt.MouseButton.LeftButton)
        assert "κ = 0.500" in dialog.text()
        ((name, first, second, _, _, team, _),) = dialog.lines()
        assert team == "merger"
        assert {first, second} == {"prediction right", "annotation right"}
        QTest.keyClick(canvas, Qt.Key.Key_J)
        wait_until(lambda: desk.session.snapshot.region.name == SECOND and desk.is_settled)
        dialog.list.itemActivated.emit(dialog.list.topLevelItem(0), 0)
        wait_until(lambda: desk.session.selection is not None)
        assert _place(desk.session.selection) == places[-1]
        assert str(desk.session.selection.id) in name
        dialog.close()

    def test_one_reviewer_has_nobody_to_be_compared_with(self, desk, part, panel, canvas):
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        part.panel.compare.click()
        assert part.panel.compare_dialog.intro.text() == TOO_FEW
        assert not part.panel.compare_dialog.go.isEnabled()
        part.panel.compare_dialog.close()
        assert panel.compare.isEnabled()

    def test_history_keeps_what_was_replaced_and_undone(self, desk, part, panel, canvas):
        desk.raise_part(part)
        desk.session.select_row(Side.REFERENCE, 0)
        assert panel.history.lines(THIS_OBJECT) == [NO_HISTORY]
        for key in (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_5):
            desk.session.select_row(Side.REFERENCE, 0)
            QTest.keyClick(canvas, key, ALT)
        newest, oldest = panel.history.lines(THIS_OBJECT)
        assert "prediction right · undone at" in newest
        assert oldest.endswith("annotation right · in effect")

    @pytest.mark.long
    def test_a_click_on_one_of_the_last_verdicts_goes_to_its_object(
        self, desk, part, panel, canvas, wait_until
    ):
        desk.raise_part(part)
        wait_until(lambda: Sight.of(part.panel).is_seen)
        desk.session.select_row(Side.PREDICTION, 2)
        judged = desk.session.selection
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        (line,) = panel.history.lines(LAST_VERDICTS)
        assert f"annotation right · merger {judged.id}" in line
        QTest.keyClick(canvas, Qt.Key.Key_J)
        wait_until(lambda: desk.session.snapshot.region.name == SECOND and desk.is_settled)
        desk.session.set_team("careful")
        panel.history.choose(LAST_VERDICTS, 0)
        wait_until(lambda: desk.session.selection is not None and desk.is_settled)
        assert desk.session.snapshot.region.name == FIRST
        assert desk.session.selection == judged

    def test_a_prediction_of_an_absent_team_leads_to_no_other_object(
        self, desk, part, panel, canvas, told
    ):
        desk.session.select_row(Side.PREDICTION, 2)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        (record,) = stored(desk)
        desk.session.select(None)
        panel.history.record_chosen.emit(replace(record, team="gone"))
        assert told == ["gone is no team of this cohort."]
        assert desk.session.selection is None
        part.reviewing.undo()


class TestSeveralObjects:
    def test_a_verdict_applies_to_all_selected_rows_and_is_one_step(
        self, desk, part, panel, canvas
    ):
        desk.raise_part(part)
        panel.goes_on.setChecked(False)
        try:
            select_table_rows(desk, 3)
            rows = desk.panels.objects.selected_objects()
            assert panel.object_title.text() == "3 objects"
            panel.tags.tick("out of focus")
            QTest.keyClick(canvas, Qt.Key.Key_4, ALT)
        finally:
            panel.goes_on.setChecked(True)
        records = stored(desk)
        assert [record.verdict for record in records] == [Verdict.CANNOT_TELL] * 3
        assert {record.tag for record in records} == {"out of focus"}
        assert "cannot tell on 3 objects" in panel.state.text()
        assert all(part.reviewing.record(*place) is not None for place in rows)
        QTest.keyClick(canvas, Qt.Key.Key_5, ALT)
        assert stored(desk) == []

    def test_the_own_note_of_each_object_stays(self, desk, part, canvas):
        desk.raise_part(part)
        model = desk.panels.objects.model
        part.reviewing.give(*model.object_at(0), Verdict.BOTH_WRONG, tag="fold", note="pale")
        select_table_rows(desk, 2)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert sorted((r.tag, r.note) for r in stored(desk)) == [("", ""), ("fold", "pale")]

    def test_after_a_verdict_on_several_the_next_failure_is_another_one(self, desk, canvas):
        QTest.keyClick(canvas, Qt.Key.Key_N)
        select_table_rows(desk, 3)
        rows = desk.panels.objects.selected_objects()
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert _place(desk.session.selection) not in rows
        assert desk.panels.objects.selected_objects() == [_place(desk.session.selection)]


class TestFailuresOfTheGallery:
    @pytest.fixture
    def gallery(self, desk, canvas, wait_until):
        """Show the gallery of all regions."""
        found = desk.presenter(FailuresPresenter)
        QTest.keyClick(canvas, Qt.Key.Key_G)
        wait_until(lambda: desk.is_settled and len(found.panel.view.items.rows))
        yield found
        found.panel.view.deselect()

    def select(self, gallery, *names):
        """Click a failure, and the others with Ctrl."""
        view = gallery.panel.view
        for name in names:
            row = gallery.failures.find(name)
            view.scrollTo(view.items.index(view.items.item_of(row)))
            keys = PLAIN if name == names[0] else Qt.KeyboardModifier.ControlModifier
            place = view.cell_rect(row).center()
            QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, keys, place)
        assert set(gallery.selected_failures()) == set(names)

    @pytest.fixture
    def three(self, gallery, desk, wait_until):
        """Select a failure of the region shown, and one of each other region."""
        found = {}
        for row in gallery.panel.view.items.rows:
            name = gallery.failures.name(int(row))
            found.setdefault(name.region, name)
        names = found.pop(FIRST), *found.values()
        assert len(names) == 3
        self.select(gallery, *names)
        wait_until(lambda: desk.is_settled)
        return names

    @pytest.mark.long
    def test_a_verdict_with_tags_applies_to_all_and_is_one_step(
        self, desk, part, panel, canvas, three
    ):
        assert panel.object_title.text() == "3 failures in 3 regions"
        panel.tags.tick("out of focus")
        QTest.keyClick(canvas, Qt.Key.Key_3, ALT)
        records = stored(desk)
        assert {(r.team, r.region, r.side, r.object_id) for r in records} == {
            (name.team, name.region, name.side, name.id) for name in three
        }
        assert {(r.verdict, r.tag) for r in records} == {(Verdict.BOTH_WRONG, "out of focus")}
        assert "both wrong on 3 objects" in panel.state.text()
        assert not any(map(part.verdicts.is_open, three))
        QTest.keyClick(canvas, Qt.Key.Key_5, ALT)
        assert stored(desk) == []
        assert all(map(part.verdicts.is_open, three))

    @pytest.mark.long
    def test_the_verdict_is_found_where_the_object_is(self, desk, part, canvas, three, wait_until):
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        for name in three:
            desk.link.go_to(name.region, name.side, name.id)
            wait_until(lambda name=name: desk.session.snapshot.region.name == name.region)
            wait_until(lambda: desk.is_settled)
            assert part.reviewing.judged.counts()[0] == 1
            record = part.reviewing.record(*_place(desk.session.selection))
            assert record.verdict is Verdict.PREDICTION_RIGHT

    def test_afterwards_one_failure_is_selected(self, desk, gallery, canvas, three, wait_until):
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        wait_until(lambda: desk.is_settled)
        (now,) = gallery.selected_failures()
        assert now not in three
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert len(stored(desk)) == 4

    def test_without_going_on_another_choice_gets_another_verdict(
        self, desk, gallery, panel, canvas, three
    ):
        panel.goes_on.setChecked(False)
        try:
            QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
            QTest.keyClick(canvas, Qt.Key.Key_2, ALT)  # nothing was selected in the meantime
            assert {r.verdict for r in stored(desk)} == {Verdict.ANNOTATION_RIGHT}
            self.select(gallery, *three[:2])
            QTest.keyClick(canvas, Qt.Key.Key_4, ALT)
        finally:
            panel.goes_on.setChecked(True)
        found = {(r.region, r.object_id): r.verdict for r in stored(desk)}
        assert found[three[2].region, three[2].id] is Verdict.ANNOTATION_RIGHT
        assert [found[at.region, at.id] for at in three[:2]] == [Verdict.CANNOT_TELL] * 2

    @pytest.mark.long
    @pytest.mark.parametrize("leave", ["N", "click", "team"])
    def test_whoever_goes_elsewhere_judges_one_object(
        self, desk, gallery, panel, canvas, three, leave, wait_until
    ):
        if leave == "N":
            QTest.keyClick(canvas, Qt.Key.Key_N)
        elif leave == "click":
            desk.session.select_row(Side.REFERENCE, row_of(desk, Side.REFERENCE, Status.TP))
        else:
            desk.session.set_team("careful")
            desk.session.select_row(Side.REFERENCE, 0)
        wait_until(lambda: desk.is_settled)
        assert len(gallery.selected_failures()) < 2
        assert "failures in" not in panel.object_title.text()
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        (record,) = stored(desk)
        assert (record.region, record.object_id) not in {(at.region, at.id) for at in three}


class TestRegionsTable:
    def shares(self, desk):
        """Return the reviewed shares of the regions as they are written."""
        places = desk.panels.navigator.places
        return [places.text(region, "Reviewed") for region in (FIRST, SECOND, THIRD)]

    def is_there(self, desk):
        """Return whether the table has a column for the shares."""
        names = [region.name for region in desk.session.cohort.regions]
        return "Reviewed" in [at.title for at in desk.panels.navigator.place_figures(names)]

    @pytest.mark.long
    def test_it_shows_the_reviewed_share_though_the_review_is_out_of_sight(
        self, desk, part, canvas, wait_until
    ):
        desk.show_workspace("Inspect")
        wait_until(lambda: not Sight.of(part.panel).is_seen and desk.is_settled)
        assert not self.is_there(desk)
        _, total = part.reviewing.judged.counts()
        QTest.keyClick(canvas, Qt.Key.Key_N)
        for _ in range(3):
            QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert self.shares(desk) == [f"{100 * 3 / total:.0f} %", "0 %", "0 %"]
        desk.link.go_to(SECOND)
        wait_until(lambda: desk.session.snapshot.region.name == SECOND and desk.is_settled)
        assert self.shares(desk) == [f"{100 * 3 / total:.0f} %", "0 %", "0 %"]
        with patch.object(desk.panels.navigator, "show_reviewed") as shown:
            part.refresh()
            part.refresh()
        shown.assert_not_called()
        part.reviewing.use(reviewer="Grace")
        assert not self.is_there(desk)


class TestTags:
    @pytest.mark.long
    def test_own_tags_are_offered_again(self, desk, part, panel, canvas):
        desk.raise_part(part)
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClicks(panel.tags.line, "tattoo ink; mitosis")
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert [record.tag for record in stored(desk)] == ["tattoo ink, mitosis"]
        assert PREFERENCES.tags == ["tattoo ink"]
        assert panel.tags.offered()[-1] == "tattoo ink"
        assert panel.tags.offered().count("mitosis") == 1
        PREFERENCES.tags = []

    def test_a_ticked_tag_is_a_draft_until_the_verdict(self, desk, part, panel):
        desk.raise_part(part)
        desk.session.select_row(Side.REFERENCE, 0)
        panel.tags.tick("mitosis")
        panel.tags.tick("out of focus")
        panel.tags.tick("mitosis")
        assert panel.details() == ("out of focus", "")
        assert panel.has_draft
        desk.session.select_row(Side.REFERENCE, 1)
        assert panel.details() == ("", "")
        desk.session.select_row(Side.REFERENCE, 0)
        assert panel.details() == ("out of focus", "")


class TestAdjudication:
    @pytest.fixture
    def disagreed(self, desk, part, canvas):
        """Let Ada and Grace judge four objects, and differ on the first and the last one."""
        places = [(Side.PREDICTION, row) for row in range(4)]
        for name, keys in (("Ada", "1122"), ("Grace", "2121")):
            part.reviewing.use(reviewer=name)
            for place, key in zip(places, keys, strict=True):
                desk.session.select_row(*place)
                QTest.keyClick(canvas, getattr(Qt.Key, f"Key_{key}"), ALT)
        return [places[0], places[3]]

    def compare(self, part, panel):
        panel.compare.click()
        part.panel.compare_dialog.first.setCurrentText("Ada")
        part.panel.compare_dialog.second.setCurrentText("Grace")
        part.panel.compare_dialog.go.click()
        return part.panel.compare_dialog

    @pytest.mark.long
    def test_only_a_third_reviewer_decides(self, part, panel, disagreed):  # noqa: ARG002
        dialog = self.compare(part, panel)
        assert not dialog.decide.isEnabled()
        assert dialog.decide.toolTip() == THIRD_NEEDED
        dialog.close()

    def test_the_third_reviewer_gives_the_name_in_the_dialog(self, part, panel, disagreed):
        dialog = self.compare(part, panel)
        assert not dialog.third.isHidden()
        for name, may_decide in (("Ada ", False), (" ", False), ("Hedy  Lamarr", True)):
            dialog.third.setText(name)
            assert dialog.decide.isEnabled() == may_decide
        dialog.decide.click()
        assert part.reviewing.reviewer == "Hedy Lamarr"
        assert part.reviewing.adjudicates == ("Ada", "Grace")
        assert f"0 of {len(disagreed)} disagreements decided" in panel.adjudication_text()
        assert self.compare(part, panel).third.isHidden()
        part.panel.compare_dialog.close()

    def test_nobody_decides_their_own_disagreements_under_a_name_with_more_spaces(
        self, desk, part, panel, canvas
    ):
        desk.raise_part(part)
        panel.settings.fold.setChecked(True)
        for name, key in (("Ada  Byron", "1"), ("Grace", "2"), ("Ada  Byron", None)):
            panel.name.setFocus()
            panel.name.clear()
            QTest.keyClicks(panel.name, name)
            QTest.keyClick(panel.name, Qt.Key.Key_Return)
            desk.session.select_row(Side.PREDICTION, 0)
            if key is not None:
                QTest.keyClick(canvas, getattr(Qt.Key, f"Key_{key}"), ALT)
        panel.settings.fold.setChecked(False)
        panel.compare.click()
        dialog = part.panel.compare_dialog
        assert (dialog.first.currentText(), dialog.second.currentText()) == ("Ada Byron", "Grace")
        dialog.go.click()
        assert len(dialog.lines()) == 1
        assert not dialog.decide.isEnabled()
        dialog.close()

    @pytest.mark.long
    def test_disagreements_are_gone_through_across_regions(
        self, desk, part, panel, canvas, disagreed, wait_until
    ):
        desk.raise_part(part)
        part.reviewing.use(reviewer="Hedy")
        QTest.keyClick(canvas, Qt.Key.Key_J)
        wait_until(lambda: desk.session.snapshot.region.name == SECOND and desk.is_settled)
        self.compare(part, panel).decide.click()
        wait_until(lambda: desk.session.selection is not None)
        assert desk.session.snapshot.region.name == FIRST
        assert _place(desk.session.selection) == disagreed[0]
        shown = panel.adjudication_text()
        assert "0 of 2 disagreements decided" in shown
        assert "Ada: annotation right" in shown
        assert "Grace: prediction right" in shown
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        assert _place(desk.session.selection) == disagreed[1]
        assert "1 of 2" in panel.adjudication_text()
        QTest.keyClick(canvas, Qt.Key.Key_5, ALT)
        assert "0 of 2" in panel.adjudication_text()
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        QTest.keyClick(canvas, Qt.Key.Key_4, ALT)
        assert panel.verdicts.end_text() == review_queue.ALL_DECIDED
        # The table and the figures follow the consensus: what both agree on, and the decisions.
        found = {at: r.verdict for at, r in part.reviewing.judged.records.items()}
        assert len(found) == 4
        assert found[disagreed[1]] is Verdict.CANNOT_TELL
        panel.end_adjudication.click()
        assert panel.adjudication_text() == ""
        assert part.reviewing.judged.records == {}  # Hedy has no own verdict
        assert UNDEFINED not in panel.region_progress.text()
        assert review_queue.ALL_DECIDED not in desk.panels.title.selected.text()
        assert [len(stored(desk, name)) for name in ("Ada", "Grace", "Hedy")] == [4, 4, 0]

    def test_the_agreement_is_written(
        self, desk, part, panel, canvas, disagreed, tmp_path, wait_until
    ):
        part.reviewing.use(reviewer="Hedy")
        self.compare(part, panel).decide.click()
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        dialog = self.compare(part, panel)
        assert [line[3] for line in dialog.lines()] == ["prediction right", ""]
        path = tmp_path / "agreement.csv"
        with patch.object(QFileDialog, "getSaveFileName", return_value=(str(path), "")):
            dialog.export.click()
        wait_until(lambda: not part.is_busy)
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["final"] for row in rows] == [
            "prediction-right",
            "annotation-right",
            "prediction-right",
            "",
        ]
        assert (rows[0]["adjudicator"], rows[0]["adjudicated"]) == ("Hedy", "prediction-right")
        assert {row["kappa"] for row in rows} == {"0.0"}
        assert len(disagreed) == 2
        dialog.close()
        panel.end_adjudication.click()
        path = tmp_path / "mine.csv"  # decisions are the adjudicator's own, also afterwards
        with patch.object(QFileDialog, "getSaveFileName", return_value=(str(path), "")):
            panel.export_wanted.emit(ReviewExport.OWN)
        wait_until(lambda: not part.is_busy)
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [(row["reviewer"], row["role"]) for row in rows] == [("Hedy", "adjudicator")]
        assert desk.session.snapshot.region.name == FIRST


class TestTheFile:
    def test_what_another_window_does_is_shown(self, desk, part, canvas, wait_until):
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        subject = shown_subjects(desk).of(Side.REFERENCE, 1)
        with ReviewStore(part.reviewing.path, reviewer="Ada") as other:
            other.give(subject, Verdict.BOTH_WRONG)
        wait_until(lambda: verdict_texts(desk)[1] == "both wrong")

    def test_what_another_window_takes_back_is_no_longer_called_saved(
        self, desk, part, panel, canvas, wait_until
    ):
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        desk.session.select_row(Side.REFERENCE, 1)
        QTest.keyClick(canvas, Qt.Key.Key_3, ALT)
        (_, second) = stored(desk)
        subject = shown_subjects(desk).of(Side.REFERENCE, 0)
        with ReviewStore(part.reviewing.path, reviewer="Ada") as other:
            other.give(subject, Verdict.CANNOT_TELL)
            wait_until(lambda: verdict_texts(desk)[0] == "cannot tell")
            assert panel.state.text().startswith("✓ saved")  # that of the second object is
            other.undo()
            assert other.undo() == []
            other.give(second, Verdict.CANNOT_TELL)
        wait_until(lambda: verdict_texts(desk)[:2] == ["annotation right", "cannot tell"])
        assert panel.state.text().startswith("taken back or replaced in another window: both wrong")

    def test_a_slow_drive_does_not_hold_the_window_up(
        self, desk, part, panel, canvas, wait_until, monkeypatch
    ):
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        threads, answers = [], threading.Event()
        check = Watch.check

        def slow(*arguments, **options):
            threads.append(threading.get_ident())
            assert answers.wait(20)
            return check(*arguments, **options)

        wait_until(lambda: not part.files.is_checking)
        monkeypatch.setattr(Watch, "check", slow)
        part.files.check()
        wait_until(lambda: threads)
        part.files.check()  # no second look while the first one has not come back
        desk.session.select_row(Side.REFERENCE, 1)
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        assert panel.state.text().startswith("✓")
        assert part.files.is_checking
        assert len(threads) == 1
        answers.set()
        wait_until(lambda: not part.files.is_checking)
        assert verdict_texts(desk)[:2] == ["annotation right", "prediction right"]
        assert threads[0] != threading.get_ident()

    def test_a_place_that_cannot_be_written_is_told_and_another_one_helps(
        self, desk, part, panel, canvas, told, tmp_path
    ):
        desk.raise_part(part)
        blocked = tmp_path / "file" / "review.sqlite"
        blocked.parent.write_text("no folder")
        part.reviewing.use(path=blocked)
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert panel.state.text().startswith("✗ NOT saved")
        assert panel.problem_text()
        assert len(told) == 1
        assert not any(button.isChecked() for button in panel.verdicts.buttons.values())
        chosen = str(tmp_path / "mine.sqlite")
        with patch.object(QFileDialog, "getSaveFileName", return_value=(chosen, "")):
            QTest.mouseClick(panel.place, Qt.MouseButton.LeftButton)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert panel.problem_text() == ""
        assert panel.state.text().startswith("✓ saved")
        assert "mine.sqlite" in panel.where.text()
        assert str(PREFERENCES.review_file(desk.session.cohort.root)) == chosen

    def test_a_locked_file_loses_nothing_that_was_said_to_be_saved(
        self, desk, part, panel, canvas, told
    ):
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        blocker = sqlite3.connect(part.reviewing.path, isolation_level=None)
        try:
            blocker.execute("BEGIN IMMEDIATE")
            desk.session.select_row(Side.REFERENCE, 1)
            QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
            assert panel.state.text().startswith("✗ NOT saved")
            assert len(told) == 1
            assert desk.session.selection.row == 1  # stays, to be tried again
        finally:
            blocker.close()
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        assert panel.state.text().startswith("✓ saved")
        assert panel.problem_text() == ""
        assert len(stored(desk)) == 2

    def test_a_damaged_file_is_set_aside_and_told(self, part, told):
        path = part.reviewing.path
        path.write_bytes(b"this is no database" * 100)
        part.reviewing.use()
        assert part.reviewing.store is not None
        assert any("set aside" in text or "corrupt" in text for text in told), told
        aside = list(path.parent.glob("panoptic-review*corrupt*"))
        assert len(aside) == 1
        assert aside[0].read_bytes().startswith(b"this is no database")

    def test_a_file_of_a_newer_version_is_left_alone(self, desk, part, panel, canvas, told):
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        path = part.reviewing.path
        part.reviewing.close()
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
        part.reviewing.use()
        assert "newer version" in panel.problem_text()
        assert part.reviewing.store is None
        assert len(told) == 1


class TestWriting:
    @pytest.mark.long
    def test_verdicts_as_csv(self, desk, part, canvas, tmp_path, wait_until):
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        desk.link.go_to(SECOND, team="careful")
        wait_until(lambda: desk.session.snapshot.region.name == SECOND and desk.is_settled)
        desk.session.select_row(Side.REFERENCE, row_of(desk, Side.REFERENCE, Status.MISCLASSIFIED))
        QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
        desk.link.go_to(FIRST, team="merger")
        wait_until(lambda: desk.session.snapshot.region.name == FIRST and desk.is_settled)
        path = tmp_path / "v.csv"
        with patch.object(QFileDialog, "getSaveFileName", return_value=(str(path), "")):
            part.panel.export_wanted.emit(ReviewExport.OWN)
        wait_until(lambda: not part.is_busy)
        with path.open(newline="") as file:
            here, there = csv.DictReader(file)
        outcomes = desk.session.evaluation.outcomes.reference
        assert (here["reviewer"], here["team"]) == ("Ada", "merger")
        assert here["status"] == str(STATUSES[outcomes.status[0]])
        assert here["cause"] == str(CAUSES[outcomes.cause[0]])
        assert float(here["iou"]) == pytest.approx(outcomes.iou[0])
        assert there["region"] == SECOND
        assert there["status"] == "misclassified"
        assert there["partner_id"]
        assert there["partner_class"] != there["class"]

    def test_the_region_for_qupath(self, desk, part, panel, canvas, tmp_path, wait_until):
        desk.session.select_row(Side.REFERENCE, 0)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        path = tmp_path / "r.geojson"
        with patch.object(QFileDialog, "getSaveFileName", return_value=(str(path), "")):
            panel.export_wanted.emit(ReviewExport.REGION)
        wait_until(lambda: not part.is_busy)
        features = json.loads(path.read_text())["features"]
        outcomes = desk.session.evaluation.outcomes
        assert len(features) == len(outcomes.reference) + len(outcomes.prediction)
        told = [f["properties"]["metadata"] for f in features]
        assert sum(texts.get("verdict") == "annotation-right" for texts in told) >= 1
        assert panel.state.text() == f"{len(features)} objects written to r.geojson"

    def test_a_place_that_cannot_be_written(self, desk, part, told, tmp_path, wait_until):  # noqa: ARG002
        path = str(tmp_path / "missing" / "r.geojson")
        with patch.object(QFileDialog, "getSaveFileName", return_value=(path, "")):
            part.panel.export_wanted.emit(ReviewExport.REGION)
        wait_until(lambda: not part.is_busy)
        assert len(told) == 1
        assert "cannot be written" in told[0]


class TestOnlyWhatIsNeeded:
    @pytest.mark.long
    def test_any_sequence_of_verdicts_is_shown_as_it_is_in_the_file(self, desk, part):
        rng = np.random.default_rng(3)
        evaluation = desk.session.evaluation
        for _ in range(40):
            side = list(Side)[rng.integers(2)]
            row = int(rng.integers(min(len(evaluation.outcomes.side(side)), 8)))
            if rng.random() < 0.2:
                part.reviewing.undo()
            else:
                part.reviewing.give(side, row, list(Verdict)[rng.integers(4)])
            region = desk.session.snapshot.region.name
            subjects = Subjects(evaluation, region=region, team="merger")
            in_file = subjects.find(part.reviewing.store.current(region=region))
            assert part.reviewing.judged.records == in_file
            codes = Judged(evaluation, in_file).codes
            table = desk.panels.objects.model.rows.values["verdict"]
            np.testing.assert_array_equal(table, np.concatenate([codes[s] for s in Side]))

    def test_a_verdict_reads_nothing_that_it_did_not_change(self, part, monkeypatch):
        part.reviewing.give(Side.REFERENCE, 0, Verdict.BOTH_WRONG)
        read = []
        verdicts = ReviewStore.verdicts
        monkeypatch.setattr(
            ReviewStore, "verdicts", lambda *a, **k: read.append(k) or verdicts(*a, **k)
        )
        part.reviewing.give(Side.REFERENCE, 1, Verdict.CANNOT_TELL)
        part.reviewing.give(Side.REFERENCE, 0, Verdict.CANNOT_TELL)
        part.refresh()
        assert read == []
        assert len(part.reviewing.judged.records) == 2

    def test_other_thresholds_read_nothing_anew(self, desk, part, monkeypatch, wait_until):
        part.reviewing.give(Side.REFERENCE, 0, Verdict.BOTH_WRONG)
        read = []
        monkeypatch.setattr(ReviewStore, "verdicts", lambda *_a, **k: read.append(k) or [])
        settings = desk.session.settings
        desk.link.request(settings=settings.replaced(iou_threshold=0.9))
        wait_until(lambda: desk.is_settled)
        assert desk.session.settings.iou_threshold == 0.9
        assert read == []
        assert verdict_texts(desk)[0] == "both wrong"
        desk.link.request(settings=settings)
        wait_until(lambda: desk.is_settled)

    def test_a_file_put_in_place_of_the_first_is_shown(self, desk, part, tmp_path):
        part.reviewing.give(Side.REFERENCE, 0, Verdict.BOTH_WRONG)
        subjects = shown_subjects(desk)
        other = tmp_path / "other.sqlite"
        with ReviewStore(other, reviewer="Ada") as store:
            store.give(subjects.of(Side.REFERENCE, 3), Verdict.ANNOTATION_RIGHT)
        other.replace(part.reviewing.path)
        part.reviewing.give(Side.REFERENCE, 1, Verdict.CANNOT_TELL)
        found = {row: r.verdict for (_, row), r in part.reviewing.judged.records.items()}
        assert found == {1: Verdict.CANNOT_TELL, 3: Verdict.ANNOTATION_RIGHT}

    def test_what_nobody_sees_is_filled_in_when_it_comes_into_sight(
        self, desk, part, panel, canvas, wait_until
    ):
        desk.raise_part(part)
        wait_until(lambda: Sight.of(part.panel).is_seen)
        desk.show_workspace("Inspect")
        wait_until(lambda: not Sight.of(part.panel).is_seen)
        before, progress = panel.figures(), panel.region_progress.format()
        desk.session.select_row(Side.PREDICTION, row_of(desk, Side.PREDICTION, Status.FP))
        with patch.object(panel, "show_figures") as filled:
            QTest.keyClick(canvas, Qt.Key.Key_2, ALT)
            part.refresh()
        filled.assert_not_called()
        assert panel.state.text().startswith("✓ saved")
        assert "prediction right" in verdict_texts(desk)
        assert (panel.figures(), panel.region_progress.format()) == (before, progress)
        desk.raise_part(part)
        wait_until(lambda: Sight.of(part.panel).is_seen)
        assert panel.figures() != before
        assert panel.region_progress.format() != progress

    @pytest.mark.long
    def test_verdicts_given_unseen_count_when_seen_from_another_region(
        self, desk, part, panel, canvas, wait_until
    ):
        desk.raise_part(part)
        wait_until(lambda: Sight.of(part.panel).is_seen and desk.is_settled)
        desk.show_workspace("Inspect")
        wait_until(lambda: not Sight.of(part.panel).is_seen)
        QTest.keyClick(canvas, Qt.Key.Key_N)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        desk.link.request(region=SECOND)
        wait_until(lambda: desk.session.snapshot.region.name == SECOND and desk.is_settled)
        desk.raise_part(part)
        wait_until(lambda: panel.cohort_progress.value() == 2, "the first region is not counted")

    @pytest.mark.long
    def test_tag_and_note_of_another_object_are_not_taken_over_unseen(
        self, desk, part, panel, canvas, wait_until
    ):
        desk.show_workspace("Inspect")
        wait_until(lambda: not Sight.of(part.panel).is_seen)
        desk.session.select_row(Side.REFERENCE, 0)
        part.reviewing.give(Side.REFERENCE, 0, Verdict.BOTH_WRONG, tag="stain", note="pale")
        assert panel.details() == ("stain", "pale")
        desk.session.select_row(Side.REFERENCE, 1)
        QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
        assert [(r.tag, r.note) for r in stored(desk)] == [("stain", "pale"), ("", "")]


class TestKeyList:
    def test_the_list_has_every_key_that_is_bound(self, desk):
        desk.panels.title.keys_clicked.emit()
        dialog = desk.panels.keys
        assert dialog.isVisible()
        listed = {key for key, _ in dialog.lines()}
        assert {"N", "Shift+N", "?", "Alt+1", "Alt+5"} <= listed
        assert len(dialog.findChildren(QLabel)) > len(listed)
        dialog.close()

    def test_the_question_mark_opens_it(self, desk, canvas, wait_until):
        window = desk.viewer.window._qt_window
        window.activateWindow()
        wait_until(window.isActiveWindow)
        for modifier in (PLAIN, Qt.KeyboardModifier.ShiftModifier):
            QTest.keyClick(canvas, Qt.Key.Key_Question, modifier)
            assert desk.panels.keys.isVisible()
            desk.panels.keys.close()


@pytest.mark.long
def test_leaving_a_cohort_lets_go_of_everything(desk, part, canvas, wait_until):
    desk.session.select_row(Side.REFERENCE, 0)
    QTest.keyClick(canvas, Qt.Key.Key_1, ALT)
    reviewing = part.reviewing
    desk.show_cohort(desk.session.cohort)
    wait_until(lambda: desk.is_settled)
    assert reviewing.store is None
    assert part_of(desk).reviewing is not reviewing
    desk.session.set_team("merger")
    assert verdict_texts(desk)[0] == "annotation right"  # read again from the file
    desk.link.request(region=THIRD)
    wait_until(lambda: desk.session.snapshot.region.name == THIRD and desk.is_settled)
    assert set(verdict_texts(desk)) == {""}


def shown_subjects(desk):
    region = desk.session.snapshot.region.name
    return Subjects(desk.session.evaluation, region=region, team="merger")


def select_table_rows(desk, count):
    """Select the first rows of the object table, as Shift and a click on the last one do."""
    view = desk.panels.objects.view
    view.select_row(0)
    view.scrollTo(view.model().index(0, 0))
    place = view.visualRect(view.model().index(count - 1, 0)).center()
    shift = Qt.KeyboardModifier.ShiftModifier
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, shift, place)
    assert len(view.selection().selectedRows()) == count


def _place(selection):
    return selection.side, selection.row
