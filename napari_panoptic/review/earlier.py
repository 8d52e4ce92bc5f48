"""Review files of earlier versions, with a table for each kind of row, taken over as changes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.records import decoded
from napari_panoptic.common.text import shortened
from napari_panoptic.review.changes import (
    AnswerWithdrawn,
    ItemAnswered,
    PlanSaved,
    ReviewChanges,
    Value,
    VerdictGiven,
    VerdictsReceived,
    VerdictWithdrawn,
    check_not_received,
    checked,
)
from napari_panoptic.review.file import (
    EARLIER_TABLES,
    ReviewError,
    ReviewFile,
    explained,
    opened_as_it_is,
)
from napari_panoptic.review.plan.units import KINDS, NO_ID, SIDES
from napari_panoptic.review.store import all_verdicts
from napari_panoptic.review.verdicts import Receipt, ReviewRecord

_SQLITE = b"SQLite format 3\0"
_OF_ITEMS = ("team", "patient", "region", "y_px", "x_px", "iou", "detail")
_Row = Mapping[str, Any]


@dataclass(frozen=True)
class TakenOver:
    """What was taken over from a review file of an earlier version."""

    #: Number of verdicts, of plans, and of verdicts on items of plans, withdrawn ones included.
    verdicts: int
    plans: int
    answers: int
    #: Rows that cannot be read, which were left out.
    findings: tuple[Finding, ...]


def is_review_file(path: Path) -> bool:
    """Return whether a file is a SQLite database, as review files are."""
    try:
        with path.open("rb") as file:
            return file.read(16) == _SQLITE
    except OSError:
        return False


def take_over(earlier: Path, place: Path) -> TakenOver:
    """Append all verdicts, plans and withdrawals of an earlier version's file to a review file.

    Parameters
    ----------
    earlier
        The file of an earlier version, which does not change.
    place
        The review file; created if missing.

    Raises
    ------
    ReviewError
        If a file cannot be used, or was taken over before; nothing was changed.
    """
    rows = _Rows(earlier)
    receipt = Receipt(hashlib.sha256(earlier.read_bytes()).hexdigest(), earlier.name)
    with closing(ReviewFile(place)) as file:
        changes = ReviewChanges(file)
        check_not_received(changes, receipt)
        if rows.plans and changes.read("kind = 'plan-saved'"):
            raise ReviewError(
                "both review files have a plan; give another file by --review, and begin it with "
                "this import",
                path=place,
            )
        with file.writing("nothing was taken over"):
            changes.append(VerdictsReceived(receipt, ""))
            verdicts = _append_verdicts(changes, rows)
            plans, answers = _append_plans(changes, rows)
    return TakenOver(verdicts, plans, answers, tuple(rows.findings))


class _Rows:
    """The rows of an earlier version's file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.findings: list[Finding] = []
        with closing(opened_as_it_is(path)) as connection:
            connection.row_factory = sqlite3.Row
            names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            if not names >= EARLIER_TABLES:
                raise ReviewError(
                    "expected a review file of an earlier version, or verdicts that a page saved, "
                    "found another database; choose another file",
                    path=path,
                )
            try:
                self.verdicts, self.plans, self.items, self.answers = (
                    [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY 1")]  # noqa: S608
                    if table in names
                    else []
                    for table in ("verdicts", "plans", "plan_items", "plan_verdicts")
                )
            except sqlite3.Error as error:
                raise explained(error, path, "nothing was taken over") from error

    def understood(self, what: str, row: _Row, kind: type[Value], record: Any) -> Any:
        """Return a row as a change; None, with a finding, if that is impossible."""
        try:
            value = decoded(kind, record(row))
            return checked(value)
        except (TypeError, ValueError, LookupError, RecursionError) as error:
            self.findings.append(
                Finding(
                    FindingKind.UNREADABLE,
                    f"{what} {row['id']} of the earlier review file cannot be read "
                    f"({shortened(str(error), 300)}); it was left out",
                    path=self._path,
                )
            )
            return None


def _append_verdicts(changes: ReviewChanges, rows: _Rows) -> int:
    """Append the verdicts; those on objects that the file has a verdict on stay as history."""
    newer: dict[tuple[object, ...], list[ReviewRecord]] = defaultdict(list)
    for record in all_verdicts(changes):
        newer[_place(record)].append(record)
    numbers: dict[object, int] = {}
    for row in rows.verdicts:
        given: VerdictGiven | None = rows.understood(
            "verdict", row, VerdictGiven, lambda row: _verdict(row, numbers)
        )
        if given is not None:
            change = changes.append(given, given.record.region, at=given.record.given_at)
            numbers[row["id"]] = change.number
            place = given.record.fingerprint
            is_older = any(
                place.likeness(other.fingerprint) is not None
                for other in newer.get(_place(given.record), ())
            )
            if row["withdrawn_at"] is not None or is_older:
                withdrawn = VerdictWithdrawn(change.number, given.reviewer, given.writer)
                changes.append(withdrawn, given.record.region)
    return len(numbers)


def _place(record: ReviewRecord) -> tuple[object, ...]:
    return record.reviewer, record.role, record.team, record.region, record.side


def _verdict(row: _Row, numbers: Mapping[object, int]) -> dict[str, Any]:
    names = ("class_name", "centroid_y_px", "centroid_x_px", "area_px")
    same = ("reviewer", "team", "region", "side", "object_id", "verdict", "tag", "note", "given_at")
    return {
        "record": {
            **{name: row[name] for name in same},
            "fingerprint": {name: row[name] for name in names},
            "role": row.get("role", ""),
        },
        "replaces": numbers.get(row["replaces"]),
        "batch": -row["revision"],  # apart from the numbers of changes
        "writer": row["writer"],
    }


def _append_plans(changes: ReviewChanges, rows: _Rows) -> tuple[int, int]:
    numbers, answers = {}, 0
    for row in rows.plans:
        items = [item for item in rows.items if item["plan"] == row["id"]]
        saved: PlanSaved | None = rows.understood(
            "plan", row, PlanSaved, lambda row, items=items: _plan(row, items)
        )
        if saved is not None:
            numbers[row["id"]] = changes.append(saved).number
    for row in rows.answers:
        answer: ItemAnswered | None = rows.understood(
            "verdict on an item", row, ItemAnswered, lambda row: _answer(row, numbers)
        )
        if answer is not None:
            answers += 1
            number = changes.append(answer, at=decoded(datetime, row["given_at"])).number
            if row["withdrawn_at"] is not None:
                changes.append(AnswerWithdrawn(number, answer.reviewer))
    return len(numbers), answers


def _plan(row: _Row, items: Sequence[_Row]) -> dict[str, Any]:
    ordered = sorted(items, key=lambda item: item["item"])
    columns: dict[str, Any] = {name: [item[name] for item in ordered] for name in _OF_ITEMS}
    for name in ("reference_class", "prediction_class"):
        columns[name] = [item[name] for item in ordered]
    sides, kinds = list(map(str, SIDES)), list(map(str, KINDS))
    return {
        "plan": {
            "units": {
                "class_names": json.loads(row["class_names"]),
                **columns,
                "side": [sides.index(item["side"]) for item in ordered],
                "kind": [kinds.index(item["kind"]) for item in ordered],
                "id": [
                    NO_ID if item["object_id"] is None else item["object_id"] for item in ordered
                ],
            },
            "stratum": [item["stratum"] for item in ordered],
            "probability": [item["probability"] for item in ordered],
            "level": row["level"],
            "seed": int(row["seed"]) if row["seed"] else None,
        },
        "settings": json.loads(row["settings"]),
        "continues": None,
    }


def _answer(row: _Row, numbers: Mapping[object, int]) -> dict[str, Any]:
    same = ("item", "reviewer", "verdict", "count", "note", "writer")
    decoded(datetime, row["given_at"])
    return {"plan": numbers[row["plan"]], **{name: row[name] for name in same}}
