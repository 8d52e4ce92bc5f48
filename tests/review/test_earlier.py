"""Review files of earlier versions (in tests/data/previous): left as they are, and taken over."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.review.earlier import take_over
from napari_panoptic.review.file import ReviewError
from napari_panoptic.review.plan.estimates import ItemVerdict
from napari_panoptic.review.store import ReviewStore, read_review
from napari_panoptic.review.verdicts import Role
from napari_panoptic.values.vocabulary import Verdict
from tests.support.review_cases import subject

PREVIOUS = Path(__file__).parents[1] / "data" / "previous"


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """Return a copy of a file with verdicts, decisions and a plan."""
    return Path(shutil.copy(PREVIOUS / "planned-review.sqlite", tmp_path / "earlier.sqlite"))


@pytest.fixture
def with_verdicts_only(tmp_path: Path) -> Path:
    """Return a copy of a file from before objects could be mended."""
    name = "panoptic-review.sqlite"
    return Path(shutil.copy(PREVIOUS / name, tmp_path / name))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "review.sqlite"


def test_an_earlier_file_is_left_as_it_is_and_the_command_is_named(earlier: Path) -> None:
    before = earlier.read_bytes()
    for opened in (lambda: ReviewStore(earlier, reviewer="Ada"), lambda: read_review(earlier)):
        with pytest.raises(ReviewError, match=r"import-verdicts earlier-earlier\.sqlite COHORT"):
            opened()
    assert earlier.read_bytes() == before
    assert list(earlier.parent.iterdir()) == [earlier]


def test_verdicts_with_their_history_are_taken_over(earlier: Path, place: Path) -> None:
    before = earlier.read_bytes()
    taken = take_over(earlier, place)
    assert (taken.verdicts, taken.findings) == (7, ())
    with ReviewStore(place, reviewer="Ada") as store:
        found = [(r.object_id, r.verdict, r.region) for r in store.verdicts()]
        history = [(e.record.verdict, e.standing) for e in store.history(subject(1))]
        (first, _) = store.history(subject(1))
        (withdrawn,) = store.history(subject(2, region="R_2"))
        assert store.undo() == []  # given by another window
        assert [r.object_id for r in store.recent(2)] == [4, 3]
    assert found == [
        (1, Verdict.CANNOT_TELL, "R_1"),
        (3, Verdict.PREDICTION_RIGHT, "R_1"),
        (4, Verdict.PREDICTION_RIGHT, "R_1"),
    ]
    assert history == [(Verdict.BOTH_WRONG, False), (Verdict.CANNOT_TELL, True)]
    assert (first.record.tag, first.record.note) == ("pale", "n")
    assert withdrawn.withdrawn_at is not None
    with closing(sqlite3.connect(earlier)) as connection:
        stamps = [row[0] for row in connection.execute("SELECT given_at FROM verdicts ORDER BY id")]
    assert first.record.values()["given_at"] == stamps[0]
    with ReviewStore(place, reviewer="Cy", adjudicates=("Ada", "Bo")) as store:
        assert [record.role for record in store.verdicts()] == [Role.ADJUDICATOR]
    assert earlier.read_bytes() == before


def test_a_plan_and_its_verdicts_are_taken_over(earlier: Path, place: Path) -> None:
    taken = take_over(earlier, place)
    assert (taken.plans, taken.answers) == (1, 7)
    with ReviewStore(place, reviewer="Ada") as review:
        stored = review.plan.stored()
        assert stored is not None
        assert (len(stored.plan), stored.plan.seed) == (12, 7)
        assert stored.settings == {"restoration": "border-removed"}
        assert [answer.item for answer in review.plan.answers()] == [1, 2, 3, 4, 5]
        assert {answer.verdict for answer in review.plan.answers()} == {Verdict.ANNOTATION_RIGHT}
        assert review.plan.answers("Bo") == [ItemVerdict(1, Verdict.BOTH_WRONG)]
        assert review.plan.next_item() == 6


def test_a_file_without_a_plan_is_taken_over(with_verdicts_only: Path, place: Path) -> None:
    assert take_over(with_verdicts_only, place).verdicts == 4
    with ReviewStore(place, reviewer="Ada") as store:
        records = store.verdicts()
        assert [record.verdict for record in records] == list(Verdict)[:3]
        assert {(record.tag, record.note) for record in records} == {("tag", "note")}
        assert store.take_back(records[1:]) == records[1:]
        assert store.take_back(records[1:]) == []
        assert store.verdicts() == records[:1]


def test_verdicts_that_were_given_since_stay(earlier: Path, place: Path) -> None:
    with ReviewStore(place, reviewer="Ada") as store:
        newer = store.give(subject(1), Verdict.ANNOTATION_RIGHT)
    take_over(earlier, place)
    with ReviewStore(place, reviewer="Ada") as store:
        assert [record.object_id for record in store.verdicts()] == [1, 3, 4]
        assert newer in store.verdicts()
        assert len(store.history(subject(1))) == 3


def test_a_file_is_taken_over_once(earlier: Path, place: Path) -> None:
    take_over(earlier, place)
    before = read_review(place).verdicts
    with pytest.raises(ReviewError, match="imported before"):
        take_over(earlier, place)
    assert read_review(place).verdicts == before


def test_two_plans_in_one_file_are_refused(earlier: Path, place: Path, tmp_path: Path) -> None:
    take_over(earlier, place)
    other = shutil.copy(earlier, tmp_path / "other.sqlite")
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("UPDATE verdicts SET note = 'another file'")
    with pytest.raises(ReviewError, match="both review files have a plan"):
        take_over(other, place)


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("UPDATE verdicts SET side = 'above' WHERE id = 1", (6, 1, 7)),
        ("UPDATE verdicts SET area_px = 'large' WHERE id = 1", (6, 1, 7)),
        ("UPDATE plans SET class_names = '['", (7, 0, 0)),
        ("UPDATE plan_items SET iou = 7 WHERE item = 3", (7, 0, 0)),
        ("UPDATE plan_verdicts SET verdict = 'maybe' WHERE id = 1", (7, 1, 6)),
        ("UPDATE plan_verdicts SET given_at = 'then' WHERE id = 1", (7, 1, 6)),
    ],
)
def test_rows_that_cannot_be_read_are_listed(
    earlier: Path, place: Path, statement: str, left: tuple[int, int, int]
) -> None:
    with closing(sqlite3.connect(earlier)) as connection, connection:
        connection.execute(statement)
    taken = take_over(earlier, place)
    assert (taken.verdicts, taken.plans, taken.answers) == left
    assert all("cannot be read" in finding.message for finding in taken.findings)
    assert len(taken.findings) == 15 - sum(left)


def test_the_command_takes_over_into_the_file_of_the_window(
    earlier: Path, nuclei_sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort = shutil.copytree(nuclei_sample, tmp_path / "cohort")
    assert main(["import-verdicts", str(earlier), str(cohort)]) == 0
    place = cohort / "panoptic-review.sqlite"
    assert f"7 verdicts, 1 plan and 7 verdicts on items of plans taken over into {place}" in (
        capsys.readouterr().out
    )
    assert len(read_review(place).verdicts) == 5
    with pytest.raises(SystemExit, match="2"):
        main(["import-verdicts", str(earlier), str(cohort), "--reviewer", "Ada"])


def test_other_databases_are_refused(tmp_path: Path, place: Path) -> None:
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE patients (name)")
    with pytest.raises(ReviewError, match="found another database"):
        take_over(other, place)
    assert not place.exists()
