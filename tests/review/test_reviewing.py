"""Session and review file joined, without a window."""

import errno
import json
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from napari_panoptic.nuclei.evaluate import evaluate_pair
from napari_panoptic.review.file import ReviewFile
from napari_panoptic.review.judged import Subjects
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.vocabulary import Side, Verdict
from tests.support.paths import REPOSITORY
from tests.support.small_pairs import SCHEME, four_fates
from tests.support.waiting import wait_until

EACH = 15
"""Verdicts that each of two windows gives."""
RING, INSIDE = (Side.REFERENCE, 0), (Side.REFERENCE, 1)


def ring_and_nucleus():
    """Make an annotation of a ring and a small nucleus in its middle, both missed."""
    y, x = np.mgrid[:40, :40]
    distance = np.hypot(y - 20, x - 20)
    reference = np.where(distance < 12, 1, 0)
    reference[distance < 6] = 0
    reference[distance < 3] = 2
    return evaluate_pair(
        reference,
        np.zeros_like(reference),
        reference_classes={1: "Round", 2: "Round"},
        prediction_classes={},
        class_names=SCHEME.names,
    )


def session_of(evaluation):
    snapshot = SimpleNamespace(region=SimpleNamespace(name="R"))
    return SimpleNamespace(evaluation=evaluation, team="T", snapshot=snapshot)


@pytest.fixture
def reviewing(tmp_path):
    reviewing = Reviewing(
        session_of(ring_and_nucleus()), reviewer="Ada", path=tmp_path / "r.sqlite"
    )
    reviewing.begin()
    yield reviewing
    reviewing.close()


def closing_review(evaluation, path):
    reviewing = Reviewing(session_of(evaluation), reviewer="Ada", path=path)
    reviewing.begin()
    return closing(reviewing)


def shown(reviewing):
    return {place: record.verdict for place, record in reviewing.judged.records.items()}


def polled(reviewing):
    """Look at the file as the window does, at once."""
    check = reviewing.file_check()
    return () if check is None else reviewing.apply_changes(check())


def test_the_reviewer_has_the_name_that_the_file_keeps(reviewing):
    reviewing.use(reviewer="  Zoe\u0308   Smith ")
    record = reviewing.give(*RING, Verdict.BOTH_WRONG)
    assert reviewing.reviewer == record.reviewer == "Zo\u00eb Smith"
    assert reviewing.store.reviewers() == [reviewing.reviewer]
    assert reviewing.store.verdicts(reviewer="Zoe\u0308  Smith") == [record]


def test_changes_that_cannot_be_read_are_reported_once(reviewing):
    noticed = []
    reviewing.noticed.connect(noticed.append)
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    with closing(sqlite3.connect(reviewing.path)) as connection, connection:
        connection.execute("INSERT INTO changes VALUES (7, 'R', 'verdict-given', 'now', '{}')")
    assert polled(reviewing) == ()
    reviewing.use()
    reviewing.refresh()
    (notice,) = noticed
    assert "change 7 of the review file cannot be read" in notice.message
    assert shown(reviewing) == {RING: Verdict.BOTH_WRONG}


def test_only_annotations_are_found_under_another_team(tmp_path):
    session = session_of(four_fates())
    reviewing = Reviewing(session, reviewer="Ada", path=tmp_path / "r.sqlite")
    reviewing.begin()
    with closing(reviewing):
        rows = [
            (side, row)
            for side in Side
            for row in range(len(session.evaluation.outcomes.side(side)))
            if reviewing.give(side, row, Verdict.BOTH_WRONG).side is side
        ]
        records = [reviewing.record(*at) for at in rows]
        assert [reviewing.find(record) for record in records] == rows
        session.team = "U"
        reviewing.refresh()
        expected = [at if at[0] is Side.REFERENCE else None for at in rows]
        assert [reviewing.find(record) for record in records] == expected
        assert {Side.REFERENCE, Side.PREDICTION} == {side for side, _ in rows}
        session.team, session.snapshot.region.name = "T", "S"
        reviewing.refresh()
        assert not any(map(reviewing.find, records))


def test_a_verdict_on_an_object_around_stays(reviewing):
    reviewing.give(*INSIDE, Verdict.BOTH_WRONG)
    assert shown(reviewing) == {INSIDE: Verdict.BOTH_WRONG}
    # Their centres are the same.
    reviewing.give(*RING, Verdict.CANNOT_TELL)
    both = {INSIDE: Verdict.BOTH_WRONG, RING: Verdict.CANNOT_TELL}
    assert shown(reviewing) == both
    reviewing.refresh()
    assert shown(reviewing) == both


def test_what_others_did_is_there_after_the_next_look(reviewing):
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    reviewing.undo()
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    subjects = Subjects(reviewing.judged.evaluation, region="R", team="T")
    with (
        ReviewStore(reviewing.path, reviewer="Ada") as same,
        ReviewStore(reviewing.path, reviewer="Bo") as other,
    ):
        other.give(subjects.of(*RING), Verdict.PREDICTION_RIGHT)
        assert polled(reviewing) == ()
        same.give(subjects.of(*RING), Verdict.CANNOT_TELL)
    assert polled(reviewing) == ("R",)
    assert shown(reviewing) == {RING: Verdict.CANNOT_TELL}


def missed_row(count):
    """Make an annotation of so many nuclei in a row, all missed."""
    reference = np.zeros((12, 12 * count), int)
    for number in range(count):
        reference[2:9, 12 * number + 2 : 12 * number + 9] = number + 1
    return evaluate_pair(
        reference,
        np.zeros_like(reference),
        reference_classes=dict.fromkeys(range(1, count + 1), "Round"),
        prediction_classes={},
        class_names=SCHEME.names,
    )


def test_a_file_that_answers_slowly_is_not_waited_for(tmp_path, monkeypatch):
    """The look hangs, and all the while verdicts are given, shown and let go of."""
    threads, is_asked, answers = [], threading.Event(), threading.Event()
    read = ReviewFile.read

    def slow_read(file, statement, /, **values):
        own = reviewing.store
        if own is None or file is not own._file:  # that of the window is as quick as ever
            threads.append(threading.get_ident())
            is_asked.set()
            assert answers.wait(20)
        return read(file, statement, **values)

    with closing_review(missed_row(4), tmp_path / "r.sqlite") as reviewing:
        reviewing.give(*RING, Verdict.BOTH_WRONG)
        subjects = Subjects(reviewing.judged.evaluation, region="R", team="T")
        with ReviewStore(reviewing.path, reviewer="Ada") as same:
            same.give(subjects.of(Side.REFERENCE, 1), Verdict.CANNOT_TELL)
        monkeypatch.setattr(ReviewFile, "read", slow_read)
        with ThreadPoolExecutor(1) as pool:
            look = pool.submit(reviewing.file_check())
            assert is_asked.wait(20)
            reviewing.give(Side.REFERENCE, 2, Verdict.PREDICTION_RIGHT)
            assert not look.done()
            answers.set()
            # It was asked before the verdict, which must not vanish for it.
            assert reviewing.apply_changes(look.result()) == ("R",)
            assert (Side.REFERENCE, 2) in shown(reviewing)
            reviewing.apply_changes(pool.submit(reviewing.file_check()).result())
        assert shown(reviewing) == {
            RING: Verdict.BOTH_WRONG,
            (Side.REFERENCE, 1): Verdict.CANNOT_TELL,
            (Side.REFERENCE, 2): Verdict.PREDICTION_RIGHT,
        }
        assert threading.get_ident() not in threads
        # Nor is it waited for on closing: the look closes its file itself.
        is_asked.clear()
        answers.clear()
        with ThreadPoolExecutor(1) as pool:
            look = pool.submit(reviewing.file_check())
            assert is_asked.wait(20)
            watch = reviewing._watch
            reviewing.close()
            assert not look.done()
            answers.set()
        assert watch._twin is None
        assert reviewing.apply_changes(look.result()) == ()


def test_a_file_that_was_moved_is_not_made_anew_by_a_look(reviewing):
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    reviewing.path.unlink()
    assert polled(reviewing) == ()
    assert not reviewing.path.exists()


def keep_giving(reviewing, row, verdict):
    """Give a verdict as people do: again, where it is said that another window holds the file."""

    def try_again():
        assert "holds the review file" in reviewing.problem.message
        reviewing.try_again()

    wait_until(
        lambda: reviewing.give(Side.REFERENCE, row, verdict) is not None, meanwhile=try_again
    )
    polled(reviewing)


def see_all(reviewing):
    """Look at the file until the verdicts of both windows are there."""

    def look():
        if reviewing.problem is not None:
            reviewing.try_again()
        polled(reviewing)

    wait_until(lambda: len(reviewing.judged.records) >= 2 * EACH, meanwhile=look, pause_s=0.01)


@pytest.mark.parametrize("goes_away_later", [False, True])
def test_a_drive_that_is_away_is_told_once(tmp_path, monkeypatch, goes_away_later):
    away, stat = tmp_path / "away", Path.stat

    def no_answer(path, **options):
        if path.is_relative_to(away):
            raise OSError(errno.EHOSTDOWN, "Host is down")
        return stat(path, **options)

    reviewing = Reviewing(session_of(ring_and_nucleus()), reviewer="Ada", path=away / "r.sqlite")
    told = []
    reviewing.failed.connect(lambda error: told.append(error.message))
    if goes_away_later:
        reviewing.begin()
        assert told == []
    monkeypatch.setattr(Path, "stat", no_answer)
    if goes_away_later:
        reviewing.apply_changes(reviewing.file_check()())
    else:
        reviewing.begin()
    assert reviewing.file_check() is None
    assert len(told) == 1
    assert "Host is down" in told[0]
    reviewing.close()


def test_two_windows_review_in_one_file(tmp_path):
    """Two processes at once: each sees what the other gave, and nothing is lost."""
    path = tmp_path / "r.sqlite"
    command = [sys.executable, "-m", "tests.review.other_window", str(path)]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY
        ) as other,
        closing_review(missed_row(2 * EACH), path) as reviewing,
    ):
        assert other.stdout.readline() == b"ready\n"
        other.stdin.write(b"go\n")
        other.stdin.flush()
        for number in range(EACH):
            keep_giving(reviewing, 2 * number, Verdict.PREDICTION_RIGHT)
        seen_there = json.loads(other.stdout.readline())
        assert other.wait(20) == 0
        see_all(reviewing)
        rows = {row: str(record.verdict) for (_, row), record in reviewing.judged.records.items()}
        assert rows == {
            row: str(Verdict.CANNOT_TELL if row % 2 else Verdict.PREDICTION_RIGHT)
            for row in range(2 * EACH)
        }
        assert seen_there == {str(row): verdict for row, verdict in sorted(rows.items())}
        assert reviewing.problem is None
    with ReviewStore(path, reviewer="Ada") as store:
        assert len(store.verdicts()) == 2 * EACH


def test_regions_reviewed_are_counted_on(reviewing):
    assert reviewing.reviewed_regions() == []
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    assert reviewing.reviewed_regions() == ["R"]
    reviewing.undo()
    assert reviewing.reviewed_regions() == []
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    subjects = Subjects(reviewing.judged.evaluation, region="R2", team="T")
    with ReviewStore(reviewing.path, reviewer="Ada") as other:
        other.give(subjects.of(*RING), Verdict.CANNOT_TELL)
    polled(reviewing)
    assert reviewing.reviewed_regions() == ["R", "R2"]


def test_another_region_has_verdicts_of_its_own(reviewing):
    session = reviewing._session
    reviewing.give(*RING, Verdict.BOTH_WRONG)
    session.snapshot.region.name = "R2"
    reviewing.refresh()
    assert shown(reviewing) == {}
    reviewing.give(Side.REFERENCE, 1, Verdict.CANNOT_TELL)
    session.snapshot.region.name = "R"
    reviewing.refresh()
    assert shown(reviewing) == {RING: Verdict.BOTH_WRONG}
    session.evaluation = four_fates()
    reviewing.refresh()
    assert shown(reviewing) == {}
    session.evaluation = None
    reviewing.refresh()
    assert reviewing.judged is None


def test_history_is_empty_where_nothing_is_held_in_memory(tmp_path):
    reviewing = closing_review(None, tmp_path / "r.sqlite")  # as on a whole slide
    with reviewing as review:
        told = []
        review.changed.connect(lambda: told.append(review.history(*RING)))
        assert review.history(*RING) == []
        assert not told
