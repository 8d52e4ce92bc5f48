"""Review files with changes that this program never writes: each costs itself, and is listed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.review.store import ReviewStore, read_review
from napari_panoptic.values.vocabulary import Verdict
from tests.support.review_cases import subject


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a review file with two verdicts of Ada (1, 3) and one of Bo (2)."""
    path = tmp_path / "review.sqlite"
    for number, reviewer in enumerate(("Ada", "Bo", "Ada"), start=1):
        with ReviewStore(path, reviewer=reviewer) as store:
            store.give(subject(number), Verdict.BOTH_WRONG)
    return path


def write(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def damage(path: Path, change: Callable[[dict[str, Any]], object], number: int = 2) -> None:
    """Change the value of a change as another program would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        row = connection.execute("SELECT value FROM changes WHERE number = ?", (number,)).fetchone()
        value = json.loads(row[0])
        change(value)
        text = json.dumps(value)
        connection.execute("UPDATE changes SET value = ? WHERE number = ?", (text, number))


def check_only_one_is_lost(path: Path, said: str, number: int = 2) -> None:
    found = read_review(path)
    assert [record.object_id for record in found.verdicts] == [n for n in (1, 2, 3) if n != number]
    (finding,) = found.findings
    assert (finding.kind, finding.path) == (FindingKind.UNREADABLE, path)
    assert f"change {number} of the review file cannot be read" in finding.message
    assert said in finding.message
    with ReviewStore(path, reviewer="Ada") as store:
        assert store.verdicts(include_others=True) == list(found.verdicts)
        assert [notice.message for notice in store.notices] == [finding.message]
        store.give(subject(9), Verdict.CANNOT_TELL)
        assert len(store.verdicts()) == 1 + sum(r.reviewer == "Ada" for r in found.verdicts)


def set_record(name: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda change: change["record"].update({name: value})


def set_place(name: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda change: change["record"]["fingerprint"].update({name: value})


@pytest.mark.parametrize(
    "change",
    [
        *(set_record(name, 5) for name in ("reviewer", "team", "region", "tag", "note")),
        *(set_record(name, "other") for name in ("side", "verdict", "role", "region")),
        *(set_record("object_id", value) for value in ("1", 1.5, True, None, 2**63 - 1, 10**30)),
        *(set_place("area_px", value) for value in ("large", 1.5, -1, 2**63 - 1)),
        *(set_place("centroid_y_px", value) for value in ("far", 1e308, float("nan"), 10**400)),
        *(set_place("centroid_x_px", value) for value in (None, float("inf"), [])),
        set_place("class_name", None),
        *(set_record("given_at", value) for value in ("yesterday", "", "0001-01-01", "9999-12-31")),
        set_record("given_at", 5),
        set_record("mood", "fine"),
        lambda change: change.pop("record"),
        lambda change: change.update(replaces="1"),
        lambda change: change.update(writer=None),
    ],
)
def test_a_value_that_no_verdict_has(
    path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    damage(path, change)
    check_only_one_is_lost(path, "")


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("value", "{", "Expecting"),
        ("value", "[]", "expected a dict"),
        ("value", b"\0x", "expected a text as value"),
        ("value", "[" * 100_000, "nested too deeply"),
        ("value", "9" * 5000, ""),
        ("kind", "verdict-taken", "expected a kind of change"),
        ("at", "never", "Invalid isoformat"),
        ("at", b"5", "expected a str"),
    ],
)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_row_that_no_change_has(
    path: Path, column: str, value: object, said: str, number: int
) -> None:
    write(path, f"UPDATE changes SET {column} = ? WHERE number = ?", value, number)  # noqa: S608
    check_only_one_is_lost(path, said, number)


def test_names_of_regions_that_are_no_texts(path: Path) -> None:
    write(path, "UPDATE changes SET region = ? WHERE number = 2", b"\0x")
    with ReviewStore(path, reviewer="Bo") as store:
        assert store.verdicts(include_others=True)[0].object_id == 1
        assert store.regions(team="T") == []
        assert store.recent(5) == []
        assert store.reviewers() == ["Ada"]


def test_a_withdrawal_that_cannot_be_read_withdraws_nothing(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        given = store.give(subject(4), Verdict.BOTH_WRONG)
        assert store.undo() == [given]
    damage(path, lambda change: change.update(number="five"), number=5)
    with ReviewStore(path, reviewer="Ada") as store:
        assert given in store.verdicts()
        assert len(store.notices) == 1


def test_a_withdrawal_of_a_change_that_is_not_there_is_nothing(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(4), Verdict.BOTH_WRONG)
        store.undo()
    damage(path, lambda change: change.update(number=99), number=5)
    with ReviewStore(path, reviewer="Ada") as store:
        assert len(store.verdicts()) == 3
        assert store.notices == ()


@pytest.mark.parametrize(
    ("text", "hour"), [("2026-01-01T10:00", 10), ("2026-01-01T10:00+02:00", 8)]
)
def test_times_are_in_utc(path: Path, text: str, hour: int) -> None:
    """Without a time zone they could not be compared with others."""
    damage(path, set_record("given_at", text))
    (other,) = (record for record in read_review(path).verdicts if record.reviewer == "Bo")
    assert other.values()["given_at"] == f"2026-01-01T{hour:02d}:00:00.000000+00:00"


def test_a_whole_number_as_centroid_is_a_number(path: Path) -> None:
    damage(path, set_place("centroid_y_px", 20))
    assert read_review(path).verdicts[1].fingerprint.centroid_y_px == 20.0
