from __future__ import annotations

import math
import multiprocessing
import os
import random
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.review import file as review_file
from napari_panoptic.review.file import ReviewError, suggested_path
from napari_panoptic.review.identity import Fingerprint, Subject
from napari_panoptic.review.store import ReviewStore, read_review
from napari_panoptic.review.verdicts import Judgement, ReviewRecord, Role, paired
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Verdict
from tests.support.review_cases import CLASSES, subject, subjects_of, verdicts_on

posix_only = pytest.mark.skipif(os.name != "posix", reason="folders are closed otherwise here")


def in_file(path: Path, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement on a review file from outside, as another program would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchall()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "review.sqlite"


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder that the test itself may not write to, also where the tests run as root."""
    folder = Path(tempfile.mkdtemp())
    was_root = os.geteuid() == 0
    if was_root:
        os.chown(folder, 65534, -1)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        folder.chmod(0o700)
        if was_root:
            os.seteuid(0)
        shutil.rmtree(folder)


def journal_mode(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


def files_like(path: Path, what: str) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.{what}-*"))


# One store


def test_a_verdict_is_there_for_the_next_window(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        given = store.give(subject(3), Verdict.BOTH_WRONG, tag=" mitosis ", note="zwölf Uhr\n")
        assert store.notices == ()
    with ReviewStore(path, reviewer="Ada") as store:
        (found,) = store.verdicts()
    assert found == given
    assert (found.tag, found.note, found.class_name) == ("mitosis", "zwölf Uhr", "Lymphocyte")
    assert found.given_at.utcoffset() is not None
    assert found.given_at.utcoffset().total_seconds() == 0  # type: ignore[union-attr]


def test_a_new_verdict_replaces_and_undo_brings_the_old_one_back(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        first = store.give(subject(1), Verdict.ANNOTATION_RIGHT)
        other = store.give(subject(2), Verdict.CANNOT_TELL)
        second = store.give(subject(1), Verdict.PREDICTION_RIGHT)
        assert store.verdicts() == [other, second]
        assert [e.standing for e in store.history(subject(1))] == [False, True]
        assert store.undo() == [second]
        assert store.verdicts() == [first, other]
        history = store.history(subject(1))
        assert [(e.record, e.standing) for e in history] == [(first, True), (second, False)]
        assert history[0].withdrawn_at is None
        assert history[1].withdrawn_at is not None
        assert [store.undo(), store.undo(), store.undo()] == [[other], [first], []]
        assert store.verdicts() == []
        third = store.give(subject(1), Verdict.BOTH_WRONG)
        assert store.verdicts() == [third]
        assert len(store.history(subject(1))) == 3


def test_verdicts_by_region_and_team(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        here = store.give(subject(1, region="R_1", team="A"), Verdict.CANNOT_TELL)
        there = store.give(subject(1, region="R_2", team="A"), Verdict.CANNOT_TELL)
        other = store.give(subject(1, region="R_1", team="B"), Verdict.CANNOT_TELL)
        side = store.give(subject(1, side=Side.PREDICTION, team="A"), Verdict.CANNOT_TELL)
        assert store.verdicts() == [here, there, other, side]
        assert store.verdicts(region="R_1") == [here, other, side]
        assert store.verdicts(region="R_1", team="A") == [here, side]
        assert store.verdicts(team="nobody") == []


def test_an_object_without_a_verdict_is_told_from_those_with_one(path: Path) -> None:
    failures = [subject(n, region=f"R_{n % 2}") for n in range(1, 8)]
    with ReviewStore(path, reviewer="Ada") as store:
        for number in (1, 2, 4):
            store.give(failures[number - 1], Verdict.CANNOT_TELL)
        store.give(subject(50, region="R_1"), Verdict.CANNOT_TELL)  # no failure any more
        found = verdicts_on(store, failures)
        assert [None if r is None else r.object_id for r in found] == [1, 2, None, 4, *[None] * 3]
        assert verdicts_on(store, []) == []


def test_verdicts_given_together_are_undone_together(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        alone = store.give(subject(1), Verdict.CANNOT_TELL)
        batch = store.give_all(
            [Judgement(subject(n), Verdict.BOTH_WRONG, f"t{n}", f"n{n}") for n in (1, 2, 3)]
        )
        assert [(r.tag, r.note) for r in batch] == [("t1", "n1"), ("t2", "n2"), ("t3", "n3")]
        assert store.verdicts() == batch
        later = store.give(subject(3), Verdict.CANNOT_TELL)
        assert store.recent(2) == [later, batch[1]]
        assert store.undo() == [later]
        assert store.undo() == batch
        assert store.verdicts() == [alone]
        assert store.give_all([]) == []


def test_an_adjudicator_decides_apart_from_own_verdicts(path: Path) -> None:
    given = {"Ada": (1, 1, 2), "Bo": (1, 2, 3), "Cy": (4, 4, 4)}
    verdicts = list(Verdict)
    for name, numbers in given.items():
        with ReviewStore(path, reviewer=name) as store:
            for number, code in enumerate(numbers, start=1):
                store.give(subject(number), verdicts[code - 1])
    with ReviewStore(path, reviewer="Cy", adjudicates=("Ada", "Bo")) as store:
        assert [r.object_id for r in store.current(region="R_1")] == [1]  # agreed
        assert not store.may_undo()
        decision = store.give(subject(2), Verdict.PREDICTION_RIGHT)
        assert decision.role is Role.ADJUDICATOR
        assert store.verdicts() == [decision]
        assert store.current(region="R_1")[0] == decision
        found = store.agreement("Ada", "Bo")
        assert [item.final for item in found.items] == [verdicts[0], verdicts[1], None]
        assert found.agreement.n == 3
        assert [item.decision for item in found.disagreements] == [decision, None]
        # The adjudicator is no judge in a comparison of their own verdicts.
        assert all(item.decision is None for item in store.agreement("Ada", "Cy").items)
        assert store.reviewers() == ["Ada", "Bo", "Cy"]
        assert store.undo() == [decision]
        assert store.undo() == []
    with ReviewStore(path, reviewer="Cy") as store:
        assert [record.role for record in store.verdicts()] == [Role.REVIEWER] * 3


def test_another_window_s_decisions_reach_an_adjudicator(path: Path) -> None:
    with (
        ReviewStore(path, reviewer="Ada") as ada,
        ReviewStore(path, reviewer="Cy", adjudicates=("Ada", "Bo")) as cy,
    ):
        ada.give(subject(1), Verdict.CANNOT_TELL)
        assert cy.poll() == ("R_1",)
        assert cy.regions(team="T") == ["R_1"]


def test_a_reviewer_needs_a_name(path: Path) -> None:
    with pytest.raises(ReviewError, match="enter a name"):
        ReviewStore(path, reviewer="  \t")
    assert not path.exists()


def test_names_are_the_same_however_they_are_typed(path: Path) -> None:
    composed, decomposed = "Ren\u00e9", "Rene\u0301"
    with ReviewStore(path, reviewer=composed) as store:
        store.give(subject(1, region=decomposed), Verdict.CANNOT_TELL)
    with ReviewStore(path, reviewer=f" {decomposed} ") as store:
        assert len(store.verdicts(region=composed)) == 1
        assert verdicts_on(store, [subject(1, region=decomposed)]) == store.verdicts()


# Objects outlive settings and numbers


def blobs() -> NDArray[np.int32]:
    labels = np.zeros((60, 90), np.int32)
    yy, xx = np.mgrid[:60, :90]
    for number in range(1, 7):
        y, x = 15 + 30 * ((number - 1) // 3), 15 + 30 * ((number - 1) % 3)
        labels[(yy - y) ** 2 + (xx - x) ** 2 < (4 + number % 3) ** 2] = number
    return labels


def subjects_in(labels: NDArray[np.int32], class_name: str = "Lymphocyte") -> list[Subject]:
    classes = dict.fromkeys(range(1, int(labels.max()) + 1), class_name)
    image = LabelImage.from_array(labels, classes, CLASSES)
    found = evaluate(LabelPair(image, image), EvaluationSettings(distances=False))
    return subjects_of(found, Side.PREDICTION, region="R_1", team="T")


def test_a_verdict_is_found_after_objects_were_numbered_anew(path: Path) -> None:
    labels = blobs()
    new_ids = np.array([0, 4, 1, 6, 2, 5, 3])
    with ReviewStore(path, reviewer="Ada") as store:
        for judged in subjects_in(labels)[:4]:
            store.give(judged, Verdict.CANNOT_TELL, tag=str(judged.object_id))
        renumbered = subjects_in(new_ids[labels].astype(np.int32))
        found = verdicts_on(store, renumbered)
    tags = {s.object_id: r.tag for s, r in zip(renumbered, found, strict=True) if r is not None}
    assert tags == {4: "1", 1: "2", 6: "3", 2: "4"}


@pytest.mark.parametrize("radius", [-3, -1, 1, 5])
def test_a_verdict_is_found_after_objects_have_grown_or_shrunk(path: Path, radius: int) -> None:
    from scipy import ndimage

    labels = blobs()
    reach = abs(radius)
    disk = np.hypot(*np.mgrid[-reach : reach + 1, -reach : reach + 1]) <= reach
    change = ndimage.binary_dilation if radius > 0 else ndimage.binary_erosion
    changed = np.zeros_like(labels)
    for number in range(1, 7):
        changed[change(labels == number, disk)] = number
    with ReviewStore(path, reviewer="Ada") as store:
        for judged in subjects_in(labels):
            store.give(judged, Verdict.CANNOT_TELL)
        found = verdicts_on(store, subjects_in(changed))
        assert [r.object_id for r in found if r is not None] == [1, 2, 3, 4, 5, 6]
        # Judged again, the object has one verdict, not two.
        store.give(subjects_in(changed)[0], Verdict.BOTH_WRONG)
        assert len(store.verdicts()) == 6


@pytest.mark.parametrize(
    "other",
    [
        subject(1, class_name="Epithelial"),
        subject(1, side=Side.PREDICTION),
        subject(1, team="another"),
        subject(1, region="R_2"),
        subject(1, y=25.0),
        subject(1, area=80 * 101),
        subject(2),
    ],
)
def test_another_object_has_no_verdict(path: Path, other: Subject) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(1, y=20.0), Verdict.CANNOT_TELL)
        assert verdicts_on(store, [other]) == [None]
        store.give(other, Verdict.BOTH_WRONG)
        assert len(store.verdicts()) == 2


def test_single_pixels_beside_each_other_are_different_objects(path: Path) -> None:
    row = [subject(n, y=5.0, x=float(n), area=1) for n in range(1, 6)]
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(row[1], Verdict.CANNOT_TELL)
        store.give(row[2], Verdict.BOTH_WRONG)
        found = verdicts_on(store, row)
    assert [None if r is None else r.object_id for r in found] == [None, 2, 3, None, None]


def test_a_verdict_is_given_to_one_object_only(path: Path) -> None:
    near = [subject(1, y=20.0), subject(2, y=20.4)]
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(9, y=20.3), Verdict.CANNOT_TELL)
        found = verdicts_on(store, near)
    assert [r is not None for r in found] == [False, True]


# Several reviewers and windows


def test_reviewers_work_blind(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as ada, ReviewStore(path, reviewer="Bo") as bo:
        mine = ada.give(subject(1), Verdict.CANNOT_TELL)
        theirs = bo.give(subject(1), Verdict.BOTH_WRONG)
        assert ada.verdicts() == [mine]
        assert verdicts_on(ada, [subject(1)]) == [mine]
        assert verdicts_on(bo, [subject(1), subject(2)]) == [theirs, None]
        assert ada.verdicts(include_others=True) == [mine, theirs]
        assert ada.verdicts(reviewer="Bo") == [theirs]
        assert ada.reviewers() == ["Ada", "Bo"]
        assert bo.undo() == [theirs]
        assert bo.undo() == []
        assert ada.reviewers() == ["Ada"]
        assert [e.record for e in ada.history(subject(1))] == [mine]


def test_changes_by_other_windows_are_noticed(path: Path) -> None:
    with (
        ReviewStore(path, reviewer="Ada") as here,
        ReviewStore(path, reviewer="Ada") as there,
        ReviewStore(path, reviewer="Bo") as bo,
        ReviewStore(path, reviewer="Cy", adjudicates=("Ada", "Bo")) as cy,
    ):
        assert here.poll() == ()
        here.give(subject(1), Verdict.CANNOT_TELL)
        assert here.poll() == ()
        there.give(subject(2, region="R_2"), Verdict.CANNOT_TELL)
        there.give(subject(1, region="R_1"), Verdict.BOTH_WRONG)
        here.give(subject(3, region="R_3"), Verdict.CANNOT_TELL)
        assert here.poll() == ("R_1", "R_2")
        assert here.poll() == ()
        assert there.poll() == ("R_1", "R_3")
        assert len(there.undo()) == 1
        assert here.poll() == ("R_1",)
        bo.give(subject(5, region="R_5"), Verdict.CANNOT_TELL)
        assert here.poll() == ()
        assert cy.poll() == ("R_1", "R_2", "R_3", "R_5")


def test_undo_takes_back_only_what_its_own_window_gave(path: Path) -> None:
    with (
        ReviewStore(path, reviewer="Ada") as here,
        ReviewStore(path, reviewer="Ada") as there,
    ):
        first = here.give(subject(1), Verdict.CANNOT_TELL)
        second = there.give(subject(2), Verdict.CANNOT_TELL)
        assert here.undo() == [first]
        assert here.undo() == []
        assert there.verdicts() == [second]
        third = here.give(subject(2), Verdict.BOTH_WRONG)  # in the place of the other window's
        assert there.undo() == []
        assert here.verdicts() == [third]
        assert here.undo() == [third]
        assert here.verdicts() == [second]
        assert there.undo() == [second]


def test_a_verdict_of_an_earlier_window_can_be_withdrawn(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as earlier:
        first = earlier.give(subject(1), Verdict.CANNOT_TELL)
        second = earlier.give(subject(1), Verdict.BOTH_WRONG)
        other = earlier.give(subject(2), Verdict.CANNOT_TELL)
    with ReviewStore(path, reviewer="Bo") as bo:
        theirs = bo.give(subject(2), Verdict.BOTH_WRONG)
        assert not bo.withdraw(second)  # Ada's is not Bo's to take back
    with ReviewStore(path, reviewer="Ada") as later:
        assert later.withdraw(second)
        assert later.verdicts() == [first, other]
        assert later.withdraw(first)
        assert not later.withdraw(first)
        assert later.verdicts(include_others=True) == [other, theirs]
        assert [entry.withdrawn_at is None for entry in later.history(subject(1))] == [False, False]


def test_a_window_that_opens_the_file_again_takes_back_what_it_gave(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada", window="left") as store:
        given = store.give(subject(1), Verdict.CANNOT_TELL)
    with ReviewStore(path, reviewer="Ada", window="right") as store:
        assert store.undo() == []
    with ReviewStore(path, reviewer="Bo", window="left") as store:
        assert store.undo() == []
    with ReviewStore(path, reviewer="Ada", window="left") as store:
        assert store.undo() == [given]


def test_two_reviewers_compared(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as ada, ReviewStore(path, reviewer="Bo") as bo:
        verdicts = [Verdict.ANNOTATION_RIGHT] * 25 + [Verdict.PREDICTION_RIGHT] * 25
        turned = {*range(5), *range(25, 35)}
        for number, verdict in enumerate(verdicts):
            ada.give(subject(number), verdict)
            bo.give(
                # Numbered otherwise, and a little larger.
                subject(100 + number, y=20.0 * number, area=90),
                verdicts[-1 - number] if number in turned else verdict,
            )
        bo.give(subject(200), Verdict.BOTH_WRONG)
        found = ada.agreement("Ada", "Bo")
    assert found.agreement.n == len(found.items) == 50
    assert found.agreement.kappa == pytest.approx(0.4)
    assert [item.first.object_id for item in found.disagreements] == sorted(turned)
    assert all(i.second.object_id == i.first.object_id + 100 for i in found.items)


def test_nothing_in_common(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as ada:
        ada.give(subject(1), Verdict.CANNOT_TELL)
        found = ada.agreement("Ada", "Bo")
        assert paired(ada.verdicts(), []) == []
    assert found.agreement.n == 0
    assert math.isnan(found.agreement.kappa)


def test_windows_of_one_process_do_not_hinder_each_other(path: Path) -> None:
    def work(name: str) -> None:
        with ReviewStore(path, reviewer=name, timeout_s=30.0) as store:
            for number in range(30):
                store.give(subject(number), Verdict.CANNOT_TELL)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("Ada", "Bo", "Cy")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ReviewStore(path, reviewer="Ada") as store:
        assert len(store.verdicts(include_others=True)) == 90


def test_a_store_can_be_used_from_several_threads(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:

        def work(start: int) -> None:
            for number in range(start, start + 20):
                store.give(subject(number), Verdict.CANNOT_TELL)

        threads = [threading.Thread(target=work, args=(start,)) for start in (0, 100, 200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store.verdicts()) == 60


# Mishaps


def test_locked_by_another_program(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada", timeout_s=0.05) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(ReviewError, match="NOT saved: another program holds") as caught:
                store.give(subject(4), Verdict.CANNOT_TELL)
            assert (caught.value.region, caught.value.object_id) == ("R_1", 4)
            with pytest.raises(ReviewError, match="NOT undone"):
                store.undo()
            with pytest.raises(ReviewError, match="another program holds"):
                ReviewStore(path, reviewer="Bo", timeout_s=0.05)
            other.execute("ROLLBACK")
        store.give(subject(4), Verdict.CANNOT_TELL)
        assert len(store.verdicts()) == 1


def test_disk_full(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        pages = store._file._connection.execute("PRAGMA page_count").fetchone()[0]
        store._file._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        saved: list[ReviewRecord] = []
        with pytest.raises(ReviewError, match="NOT saved: the disk is full"):
            saved.extend(
                store.give(subject(number), Verdict.CANNOT_TELL, note="x" * 500)
                for number in range(1000)
            )
        assert 0 < len(saved) < 1000
        assert store.verdicts() == saved
        store._file._connection.execute("PRAGMA max_page_count = 100000")
        store.give(subject(2000), Verdict.CANNOT_TELL)
    with ReviewStore(path, reviewer="Ada") as store:
        assert len(store.verdicts()) == len(saved) + 1


@pytest.mark.parametrize(
    "content", [b"reviewer,verdict\n" * 99, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_what_is_no_database_is_set_aside(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with ReviewStore(path, reviewer="Ada") as store:
        (notice,) = store.notices
        store.give(subject(1), Verdict.CANNOT_TELL)
        assert len(store.verdicts()) == 1
    (kept,) = files_like(path, "corrupt")
    assert kept.read_bytes() == content
    assert (notice.kind, notice.path) == (FindingKind.UNREADABLE, kept)
    assert kept.name in notice.message
    with ReviewStore(path, reviewer="Ada") as store:
        assert store.notices == ()


def test_a_damaged_database_is_set_aside_and_never_overwritten(path: Path) -> None:
    contents = []
    for _ in range(3):
        with ReviewStore(path, reviewer="Ada") as store:
            for number in range(200):
                store.give(subject(number), Verdict.CANNOT_TELL)
        data = bytearray(path.read_bytes())
        assert len(data) > 12288
        data[4096:12288] = b"\x5a" * 8192
        path.write_bytes(bytes(data))
        contents.append(bytes(data))
    with ReviewStore(path, reviewer="Ada") as store:
        assert store.verdicts() == []
    kept = files_like(path, "corrupt")
    assert len({file.name for file in kept}) == 3
    assert sorted(file.read_bytes() for file in kept) == sorted(contents)


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_journals_of_a_damaged_file_do_not_stay_beside_the_new_one(path: Path, suffix: str) -> None:
    path.write_bytes(b"no database" * 100)
    journal = path.with_name(path.name + suffix)
    journal.write_bytes(b"no journal" * 500)
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(1), Verdict.CANNOT_TELL)
    assert not journal.exists()
    assert files_like(path, "corrupt")[0].read_bytes() == b"no database" * 100
    with ReviewStore(path, reviewer="Ada") as store:
        assert len(store.verdicts()) == 1


def test_damage_while_in_use_is_told(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        for number in range(300):
            store.give(subject(number), Verdict.CANNOT_TELL)
    with ReviewStore(path, reviewer="Ada") as store:
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\x5a" * (size - 4096))
        store._file._connection.execute("PRAGMA shrink_memory")
        with pytest.raises(ReviewError, match="open the review again, which sets the file aside"):
            store.verdicts()
    with ReviewStore(path, reviewer="Ada") as store:
        assert store.notices[0].kind is FindingKind.UNREADABLE


def test_an_empty_file_is_begun(path: Path) -> None:
    path.touch()
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(1), Verdict.CANNOT_TELL)
        assert store.notices == ()
    assert files_like(path, "corrupt") == []


def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(1), Verdict.CANNOT_TELL)
    in_file(path, "PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(ReviewError, match=r"newer version .* \(layout 99, known up to 3\)"):
        ReviewStore(path, reviewer="Ada")
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE patients (name)")
    before = path.read_bytes()
    with pytest.raises(ReviewError, match="another program"):
        ReviewStore(path, reviewer="Ada")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON changes BEGIN DELETE FROM changes; END",
        "CREATE VIEW v AS SELECT randomblob(1000000000) FROM changes",
        "CREATE VIRTUAL TABLE f USING fts5(note)",
        "ALTER TABLE changes ADD COLUMN sum GENERATED ALWAYS AS (zeroblob(number)) VIRTUAL",
        "CREATE TABLE other (a, b GENERATED ALWAYS AS (zeroblob(a)) VIRTUAL)",
        "CREATE INDEX i ON changes (upper(value))",
        "CREATE INDEX i ON changes (value) WHERE number > 3",
    ],
)
def test_a_file_whose_schema_acts_is_left_alone(path: Path, statement: str) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(1), Verdict.CANNOT_TELL)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(ReviewError, match="would run code"):
        ReviewStore(path, reviewer="Ada")
    assert path.read_bytes() == before


def test_a_view_in_place_of_the_changes(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada"):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE changes RENAME TO others")
        connection.execute("CREATE VIEW changes AS SELECT * FROM others")
    with pytest.raises(ReviewError, match="would run code"):
        ReviewStore(path, reviewer="Ada")


def test_a_huge_file_is_left_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ReviewStore(path, reviewer="Ada"):
        pass
    monkeypatch.setattr(review_file, "LARGEST_BYTES", path.stat().st_size - 1)
    with pytest.raises(ReviewError, match="expected a review file of up to"):
        ReviewStore(path, reviewer="Ada")


def test_schemas_are_not_trusted_and_values_are_bounded(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        connection = store._file._connection
        assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
        assert connection.execute("PRAGMA cell_size_check").fetchone() == (1,)
        with pytest.raises(sqlite3.DataError, match="too big"):
            connection.execute("SELECT zeroblob(?)", (review_file.LONGEST_TEXT + 1,)).fetchone()


def test_words_that_are_sql_stay_words(path: Path) -> None:
    words = "'); DROP TABLE changes; --"
    with ReviewStore(path, reviewer=words) as store:
        given = store.give(replace(subject(1), team=words), Verdict.CANNOT_TELL, note=words)
        assert store.verdicts() == [given]
        assert (given.reviewer, given.team, given.note) == (words, words, words)


@posix_only
@pytest.mark.parametrize("exists", [False, True])
def test_a_read_only_folder(closed_folder: Path, exists: bool) -> None:
    path = closed_folder / "review.sqlite"
    if exists:
        with ReviewStore(path, reviewer="Ada") as store:
            store.give(subject(1), Verdict.CANNOT_TELL)
        path.chmod(0o444)
    closed_folder.chmod(0o555)
    with pytest.raises(ReviewError, match="choose another place for it, for example") as caught:
        ReviewStore(path, reviewer="Ada")
    assert caught.value.suggestion == suggested_path(path)


@posix_only
def test_a_folder_that_becomes_read_only(closed_folder: Path) -> None:
    path = closed_folder / "review.sqlite"
    with ReviewStore(path, reviewer="Ada") as store:
        store._file._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(ReviewError, match=r"NOT saved: .* choose another place") as caught:
            store.give(subject(1), Verdict.CANNOT_TELL)
    assert caught.value.suggestion is not None


def test_impossible_places(tmp_path: Path) -> None:
    with pytest.raises(ReviewError, match="found a folder"):
        ReviewStore(tmp_path, reviewer="Ada")
    with pytest.raises(ReviewError, match="choose another place"):
        ReviewStore(tmp_path / "no" / "such" / "review.sqlite", reviewer="Ada")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ReviewError, match="choose another place"):
        ReviewStore(file / "review.sqlite", reviewer="Ada")


def test_the_suggested_place_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    place = suggested_path(Path("cohorts") / "first" / "review.sqlite")
    other = suggested_path(Path("others") / "first" / "review.sqlite")
    assert place is not None
    assert place != other
    with ReviewStore(place, reviewer="Ada") as store:
        store.give(subject(1), Verdict.CANNOT_TELL)
    assert place.is_relative_to(tmp_path)


@posix_only
def test_a_file_that_was_deleted_takes_no_verdicts(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(1), Verdict.CANNOT_TELL)
        aside = path.with_name("elsewhere")
        path.rename(aside)
        with pytest.raises(ReviewError, match="NOT saved: the review file was moved or deleted"):
            store.give(subject(2), Verdict.CANNOT_TELL)
        aside.rename(path)
        store.give(subject(2), Verdict.CANNOT_TELL)
        assert len(store.verdicts()) == 2


@posix_only
@pytest.mark.parametrize("name", ["review.sqlite", "50 % done? #1 ä.sqlite"])
def test_a_twin_opens_the_file_and_never_creates_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / "folder" / name
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(1), Verdict.CANNOT_TELL)
        with store.twin() as twin:
            assert len(twin.verdicts()) == 1
        aside = path.parent.rename(tmp_path / "elsewhere")
        with pytest.raises(ReviewError, match="the review cannot be opened"):
            store.twin()
        assert not path.parent.exists()
        path.parent.mkdir()
        with pytest.raises(ReviewError, match="the review cannot be opened"):
            store.twin()
        assert not any(path.parent.iterdir())
        assert (aside / name).exists()


@posix_only
def test_a_twin_sets_a_damaged_file_aside(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        path.unlink()
        path.write_bytes(b"no database " * 200)
        with store.twin() as twin:
            assert len(twin.notices) == 1
            assert twin.verdicts() == []
        store.give(subject(1), Verdict.CANNOT_TELL)
        assert len(store.verdicts()) == 1


@posix_only
def test_a_file_that_was_replaced_is_followed(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with ReviewStore(other, reviewer="Ada") as store:
        theirs = store.give(subject(9), Verdict.CANNOT_TELL)
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(1), Verdict.CANNOT_TELL)
        other.replace(path)
        mine = store.give(subject(2), Verdict.CANNOT_TELL)
        assert store.verdicts() == [theirs, mine]
    with ReviewStore(path, reviewer="Ada") as store:
        assert store.verdicts() == [theirs, mine]


@posix_only
def test_a_file_that_was_replaced_by_one_that_cannot_be_used(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE patients (name)")
    with ReviewStore(path, reviewer="Ada") as store:
        other.replace(path)
        for _ in range(2):
            with pytest.raises(ReviewError, match=r"NOT saved: .*another program"):
                store.give(subject(1), Verdict.CANNOT_TELL)


def test_a_closed_store_says_so(path: Path) -> None:
    store = ReviewStore(path, reviewer="Ada")
    store.close()
    store.close()
    with pytest.raises(ReviewError, match="NOT saved"):
        store.give(subject(1), Verdict.CANNOT_TELL)
    with pytest.raises(ReviewError, match="cannot be read"):
        store.verdicts()


def test_broken_characters_do_not_cost_a_verdict(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        given = store.give(subject(1), Verdict.CANNOT_TELL, note="half \ud83d of a sign")
        assert store.verdicts() == [given]
    assert given.note == "half ? of a sign"


def test_numbers_of_numpy_are_stored_as_numbers(path: Path) -> None:
    place = Fingerprint("Lymphocyte", np.float64(3.5), np.float32(2.5), np.int64(9))  # type: ignore[arg-type]
    seen = replace(subject(1), object_id=np.int32(7), fingerprint=place)  # type: ignore[arg-type]
    with ReviewStore(path, reviewer="Ada") as store:
        given = store.give(seen, Verdict.CANNOT_TELL)
        assert store.verdicts() == [given]
    assert given.object_id == 7


# Where and how it is written


def test_the_rollback_journal_is_used_everywhere(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as here, ReviewStore(path, reviewer="Ada") as there:
        assert journal_mode(path) == "delete"
        there.give(subject(1), Verdict.CANNOT_TELL)
        assert here.poll() == ("R_1",)
        assert len(here.verdicts()) == 1


def test_a_copy_of_the_file_alone_has_every_verdict(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    with ReviewStore(path, reviewer="Ada") as store, ReviewStore(path, reviewer="Bo") as other:
        given = [store.give(subject(1), Verdict.CANNOT_TELL)]
        given.append(other.give(subject(2), Verdict.CANNOT_TELL))
        copy.write_bytes(path.read_bytes())
    with ReviewStore(copy, reviewer="Ada") as store:
        assert store.verdicts(include_others=True) == given


# Killed in mid-write


def write_until_killed(path: str, reviewer: str, first: int, told: Connection) -> None:
    """Save verdicts without end, and send the number of each saved one."""
    with ReviewStore(Path(path), reviewer=reviewer, timeout_s=30.0) as store:
        for number in range(first, first + 100_000):
            store.give(subject(number), Verdict.CANNOT_TELL, note="n" * (number % 700))
            told.send(number)
            time.sleep(0.002)  # people pause, too; without it the other process starves


def test_killed_at_any_moment_nothing_saved_is_lost(path: Path) -> None:
    """Two processes write and are killed, again and again."""
    context: Any = multiprocessing.get_context("spawn" if os.name == "nt" else "forkserver")
    if os.name != "nt":
        context.set_forkserver_preload([__name__])
    generator = random.Random(8)  # noqa: S311
    reported: dict[str, set[int]] = {"Ada": set(), "Bo": set()}
    kills = 10
    for attempt in range(kills):
        running = []
        for reviewer in reported:
            reader, writer = context.Pipe(duplex=False)
            first = 1_000_000 * (attempt + 1)
            process = context.Process(
                target=write_until_killed, args=(str(path), reviewer, first, writer)
            )
            process.start()
            writer.close()
            running.append((reviewer, reader, process))
        for _, reader, _ in running:
            assert reader.poll(60), "no verdict was ever saved"
        time.sleep(generator.uniform(0.0, 0.05))  # the moment at which they are killed
        for reviewer, reader, process in running:
            process.kill()
            process.join()
            reported[reviewer].update(received(reader))
            process.close()
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    for reviewer, numbers in reported.items():
        with ReviewStore(path, reviewer=reviewer) as store:
            assert store.notices == ()
            saved = {record.object_id for record in store.verdicts()}
        assert len(numbers) >= kills
        assert numbers <= saved
        # Killed between the saving and the telling: at most once each time.
        assert len(saved - numbers) <= kills
    assert files_like(path, "corrupt") == []


def received(reader: Connection) -> Iterator[int]:
    """Give what a process told before it was killed."""
    with reader:
        while True:
            try:
                yield reader.recv()
            except EOFError:
                return


def test_regions_of_a_team_are_named(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as ada, ReviewStore(path, reviewer="Bo") as bo:
        ada.give(subject(1, region="R2"), Verdict.CANNOT_TELL)
        ada.give(subject(1, region="R1"), Verdict.CANNOT_TELL)
        bo.give(subject(1, region="R3"), Verdict.CANNOT_TELL)
        team = subject(1).team
        assert ada.regions(team=team) == ["R1", "R2"]
        assert ada.regions(team="another") == []
        ada.undo()
        assert ada.regions(team=team) == ["R2"]


def test_a_review_is_read_without_writing(tmp_path: Path) -> None:
    path = tmp_path / "review.sqlite"
    with ReviewStore(path, reviewer="Ann") as store:
        first = store.give(subject(1), Verdict.BOTH_WRONG)
        store.give(subject(2), Verdict.BOTH_WRONG)
        second = store.give(subject(2), Verdict.PREDICTION_RIGHT)
    before = path.read_bytes()
    found = read_review(path)
    assert found.verdicts == (first, second)
    assert (found.plan, found.findings) == (None, ())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"x" * 2000])
def test_other_files_are_not_read_and_stay(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "review.sqlite"
    path.write_bytes(content)
    with pytest.raises(ReviewError):
        read_review(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]
