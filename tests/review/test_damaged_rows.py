"""Review files with values that this program never writes: SQLite stores any type in any column."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from napari_panoptic.review.file import ReviewError
from napari_panoptic.review.store import ReviewStore, read_verdicts
from napari_panoptic.values.vocabulary import Verdict
from tests.support.review_cases import subject

TEXTS = ("reviewer", "team", "region", "class_name", "tag", "note")
NUMBERS = ("centroid_y_px", "centroid_x_px")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a review file with a verdict of each of two reviewers."""
    path = tmp_path / "review.sqlite"
    for reviewer in ("Ada", "Bo"):
        with ReviewStore(path, reviewer=reviewer) as store:
            store.give(subject(), Verdict.BOTH_WRONG)
    return path


def damage(path: Path, column: str, value: object, *, reviewer: str = "Bo") -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            f"UPDATE verdicts SET {column} = ? WHERE reviewer = ?",  # noqa: S608
            (value, reviewer),
        )


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *((name, b"\0x") for name in (*TEXTS, "side", "verdict", "role", "given_at")),
        *((name, value) for name in NUMBERS for value in ("far", b"1", 1e308, -1e308, 9e999)),
        *(("object_id", value) for value in ("x{9}", 1.5, b"1", 2**63 - 1)),
        *(("area_px", value) for value in ("large", 1.5, -1, 9e999, 2**63 - 1)),
        *((name, "other") for name in ("side", "verdict", "role")),
        *(("given_at", value) for value in ("yesterday", "", "0001-01-01", "9999-12-31T23:59:59")),
    ],
)
def test_a_value_that_no_verdict_has(path: Path, column: str, value: object) -> None:
    damage(path, column, value)
    with pytest.raises(ReviewError, match=rf"\(expected .* as {column}, found .*restore a copy"):
        read_verdicts(path)
    with ReviewStore(path, reviewer="Ada") as store:
        with pytest.raises(ReviewError, match="cannot be understood"):
            store.verdicts(include_others=True)
        assert len(store.verdicts()) == 1  # those of others are not looked at


@pytest.mark.parametrize(("column", "value"), [("centroid_y_px", "far"), ("centroid_x_px", 1e308)])
def test_reviewers_of_whom_one_has_a_damaged_centroid(
    path: Path, column: str, value: object
) -> None:
    """A text raised `ValueError`, and a large number warned."""
    damage(path, column, value)
    with ReviewStore(path, reviewer="Ada") as store, pytest.raises(ReviewError, match=column):
        store.agreement("Ada", "Bo")


@pytest.mark.parametrize(
    ("column", "value"), [("area_px", 9e999), ("area_px", "large"), ("given_at", b"")]
)
def test_a_verdict_beside_a_damaged_one_is_not_saved(
    path: Path, column: str, value: object
) -> None:
    damage(path, column, value)
    with ReviewStore(path, reviewer="Bo") as store:
        with pytest.raises(ReviewError, match=column):
            store.give(subject(), Verdict.ANNOTATION_RIGHT)
        store.give(subject(2), Verdict.ANNOTATION_RIGHT)
        with pytest.raises(ReviewError, match=column):
            store.history(subject())
        with pytest.raises(ReviewError, match=column):
            store.recent(5)


def test_a_damaged_verdict_is_not_undone(path: Path) -> None:
    """It was withdrawn before the error."""
    with ReviewStore(path, reviewer="Ada") as store:
        store.give(subject(2), Verdict.ANNOTATION_RIGHT)
        damage(path, "area_px", "large", reviewer="Ada")
        with pytest.raises(ReviewError, match="area_px"):
            store.undo()
        assert store.may_undo()


@pytest.mark.parametrize("value", [b"2026-01-01", "never", 5])
def test_a_time_of_withdrawal_that_is_none(path: Path, value: object) -> None:
    damage(path, "withdrawn_at", value)
    with (
        ReviewStore(path, reviewer="Bo") as store,
        pytest.raises(ReviewError, match=r"as withdrawn_at.*restore a copy"),
    ):
        store.history(subject())


def test_names_that_are_no_texts(path: Path) -> None:
    with ReviewStore(path, reviewer="Ada") as store:
        with ReviewStore(path, reviewer="Bo") as other:
            other.give(subject(2), Verdict.BOTH_WRONG)
        damage(path, "region", b"\0")
        with pytest.raises(ReviewError, match="expected a text as region"):
            store.poll(include_others=True)
        damage(path, "region", b"\0", reviewer="Ada")
        with pytest.raises(ReviewError, match="expected a text as region"):
            store.regions(team="T")
        damage(path, "reviewer", b"\0")
        with pytest.raises(ReviewError, match="expected a text as reviewer"):
            store.reviewers()


@pytest.mark.parametrize(
    ("text", "hour"), [("2026-01-01T10:00", 10), ("2026-01-01T10:00+02:00", 8)]
)
def test_times_are_in_utc(path: Path, text: str, hour: int) -> None:
    """Without a time zone they could not be compared with others."""
    damage(path, "given_at", text)
    own, other = sorted(read_verdicts(path), key=lambda record: record.given_at, reverse=True)
    assert (own.reviewer, other.reviewer) == ("Ada", "Bo")
    assert other.values()["given_at"] == f"2026-01-01T{hour:02d}:00:00.000000+00:00"


def test_a_whole_number_as_centroid_is_a_number(path: Path) -> None:
    damage(path, "centroid_y_px", 20)
    assert {record.fingerprint.centroid_y_px for record in read_verdicts(path)} == {20.0}
