"""A plan and its verdicts in the review file, beside the verdicts that are given without a plan.

The tables are added to the file when the first plan is saved. Programs that do not know them still
read and write all other verdicts, so that the version of the file's layout is the same.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from napari_panoptic.review.file import ReviewError, explained, now, open_to_read, stamp
from napari_panoptic.review.identity import one_spelling, reviewer_name
from napari_panoptic.review.plan.design import Level, Plan
from napari_panoptic.review.plan.estimates import ItemVerdict
from napari_panoptic.review.plan.units import (
    KINDS,
    MOST_COUNTED,
    NO_ID,
    SIDES,
    ItemKind,
    ItemSide,
    Units,
)
from napari_panoptic.review.rows import LARGEST_PX, Row, understood
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import Share
from napari_panoptic.statistics.kappa import Kappa, cohens_kappa
from napari_panoptic.values.vocabulary import Verdict

_Read = Callable[[str, Mapping[str, Any]], list[Any]]
"""Runs a statement with named values, and returns all rows."""
_ITEM_COLUMNS = (
    "item, team, patient, region, side, object_id, y_px, x_px, kind, detail, reference_class, "
    "prediction_class, iou, stratum, probability"
)
_ITEM_NAMES = tuple(_ITEM_COLUMNS.split(", "))
_ANSWER_COLUMNS = "reviewer, item, verdict, count, note, given_at"
_TABLES = (
    """CREATE TABLE IF NOT EXISTS plans (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        seed TEXT NOT NULL,
        level TEXT NOT NULL,
        class_names TEXT NOT NULL,
        settings TEXT NOT NULL,
        made_at TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS plan_items (
        plan INTEGER NOT NULL REFERENCES plans (id),
        item INTEGER NOT NULL,
        team TEXT NOT NULL,
        patient TEXT NOT NULL,
        region TEXT NOT NULL,
        side TEXT NOT NULL,
        object_id INTEGER,
        y_px REAL NOT NULL,
        x_px REAL NOT NULL,
        kind TEXT NOT NULL,
        detail TEXT NOT NULL,
        reference_class INTEGER NOT NULL,
        prediction_class INTEGER NOT NULL,
        iou REAL NOT NULL,
        stratum TEXT NOT NULL,
        probability REAL NOT NULL,
        PRIMARY KEY (plan, item))""",
    """CREATE TABLE IF NOT EXISTS plan_verdicts (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        plan INTEGER NOT NULL REFERENCES plans (id),
        item INTEGER NOT NULL,
        reviewer TEXT NOT NULL,
        verdict TEXT NOT NULL,
        count INTEGER,
        note TEXT NOT NULL,
        given_at TEXT NOT NULL,
        replaces INTEGER REFERENCES plan_verdicts (id),
        withdrawn_at TEXT,
        writer TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS plan_verdicts_by_item ON plan_verdicts (plan, reviewer, item)",
    "CREATE INDEX IF NOT EXISTS plan_verdicts_by_replaced ON plan_verdicts (replaces)",
)
_LEAST_PROBABILITY = 1e-12
"""No item of a population that fits into memory is less likely to be drawn."""
_MOST_CLASSES = 2**15 - 1
_STANDING = (
    "withdrawn_at IS NULL AND NOT EXISTS (SELECT 1 FROM plan_verdicts AS later "
    "WHERE later.replaces = plan_verdicts.id AND later.withdrawn_at IS NULL)"
)


@dataclass(frozen=True, eq=False)
class StoredPlan:
    """A plan as it is in a review file."""

    #: Its number in the file; the largest is the current one.
    number: int
    #: The plan, with its seed.
    plan: Plan
    #: How the population was evaluated.
    settings: Mapping[str, Any]


class PlannedReview(ReviewStore):
    """The review of a plan: which item is next, and the verdicts on items.

    Everything is on disk when a method returns, and nothing is deleted. After a kill at any moment
    the same file continues at the same item. Verdicts of `ReviewStore.give` are no verdicts on
    items, even on the same object: they belong to no estimate.
    """

    def save_plan(self, plan: Plan, settings: Mapping[str, Any] | None = None) -> int:
        """Save a plan, which is the current one from now on; older ones stay in the file.

        Parameters
        ----------
        plan
            The plan, with its seed.
        settings
            How the population was evaluated, for JSON.

        Returns
        -------
        int
            Its number.

        Raises
        ------
        ReviewError
            If it was not saved.
        """
        with self._writing("the plan was NOT saved") as connection:
            for statement in _TABLES:
                connection.execute(statement)
            made = connection.execute(
                "INSERT INTO plans (seed, level, class_names, settings, made_at) "
                "VALUES (?, ?, ?, ?, ?)",
                (
                    "" if plan.seed is None else str(plan.seed),
                    str(plan.level),
                    json.dumps(plan.units.class_names),
                    json.dumps(dict(settings or {}), sort_keys=True),
                    stamp(now()),
                ),
            )
            number = int(made.lastrowid or 0)
            _insert_items(connection, number, plan, 0)
        return number

    def extend_plan(self, plan: Plan) -> None:
        """Replace the current plan by one that continues it; verdicts stay.

        Parameters
        ----------
        plan
            The current plan with further items, as `napari_panoptic.review.plan.design.extend`
            returns it.

        Raises
        ------
        ReviewError
            If it does not continue the current plan, or was not saved.
        """
        stored = self._required()
        n = len(stored.plan)
        if plan.units.keys[:n] != stored.plan.units.keys or plan.seed != stored.plan.seed:
            raise ReviewError(
                "expected the current plan with further items, found another plan; save it as a "
                "new plan",
                path=self.path,
            )
        with self._writing("the plan was NOT extended") as connection:
            _insert_items(connection, stored.number, plan, n)
            connection.executemany(
                "UPDATE plan_items SET probability = ? WHERE plan = ? AND item = ?",
                [
                    (value, stored.number, item)
                    for item, value in enumerate(plan.probability[:n].tolist(), start=1)
                ],
            )

    def stored_plan(self) -> StoredPlan | None:
        """Return the current plan, or None.

        Raises
        ------
        ReviewError
            If the file cannot be read, or holds a plan that cannot be understood.
        """
        return _stored_plan(self._read, self.path)

    def answer(
        self, item: int, verdict: Verdict, *, count: int | None = None, note: str = ""
    ) -> ItemVerdict:
        """Save the verdict on an item; an earlier one by the same reviewer is replaced.

        Parameters
        ----------
        item
            Number of the item.
        verdict
            Who is right; for a tile, only whether it can be judged.
        count
            Of a tile, the nuclei in it that have no outline.
        note
            A remark, or empty.

        Raises
        ------
        ReviewError
            If there is no such item, if a tile has no count or another item has one, or if it was
            not saved.
        """
        stored = self._required()
        given = ItemVerdict(item, verdict, self._checked_count(stored.plan, item, verdict, count))
        with self._writing("the verdict was NOT saved") as connection:
            replaced = connection.execute(
                f"SELECT max(id) FROM plan_verdicts WHERE plan = ? AND item = ? "  # noqa: S608
                f"AND reviewer = ? AND {_STANDING}",
                (stored.number, item, self.reviewer),
            ).fetchone()[0]
            connection.execute(
                "INSERT INTO plan_verdicts "
                "(plan, item, reviewer, verdict, count, note, given_at, replaces, writer) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    stored.number,
                    item,
                    self.reviewer,
                    str(verdict),
                    given.count,
                    one_spelling(note).strip(),
                    stamp(now()),
                    replaced,
                    self._writer,
                ),
            )
        return given

    def undo_answer(self) -> int | None:
        """Withdraw the newest verdict on an item that this window gave.

        The verdict that it replaced stands again.

        Returns
        -------
        int or None
            The item; None if no verdict of this window stands.

        Raises
        ------
        ReviewError
            If it could not be withdrawn.
        """
        if not self._has_tables():
            return None
        with self._writing("the verdict was NOT undone") as connection:
            found = connection.execute(
                f"SELECT id, item FROM plan_verdicts WHERE reviewer = ? AND writer = ? "  # noqa: S608
                f"AND plan = (SELECT max(id) FROM plans) AND {_STANDING} ORDER BY id DESC LIMIT 1",
                (self.reviewer, self._writer),
            ).fetchone()
            if found is None:
                return None
            with understood("verdict", self.path):
                item = Row(("item",), found[1:]).whole("item", 1)
            connection.execute(
                "UPDATE plan_verdicts SET withdrawn_at = ? WHERE id = ?", (stamp(now()), found[0])
            )
        return item

    def answers(self, reviewer: str | None = None) -> list[ItemVerdict]:
        """Return a reviewer's verdicts on the items of the current plan, by item.

        Parameters
        ----------
        reviewer
            The name; this reviewer's if None.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        return self._answers().get(reviewer_name(reviewer or self.reviewer), [])

    def pooled_answers(self) -> list[ItemVerdict]:
        """Return the verdicts of all reviewers who share the plan, by item.

        The verdict on an object on which they differ is `Verdict.CANNOT_TELL`, until one of them
        changes theirs. A tile that all have counted has the mean of their counts, rounded to a
        whole number.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        return _all_pooled(self._answers())

    def next_item(self, *, is_shared: bool = False) -> int | None:
        """Return the first item that still needs a verdict; None if there is none.

        Parameters
        ----------
        is_shared
            Whether a verdict of any reviewer will do; else this reviewer's own is needed.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        stored = self.stored_plan()
        if stored is None:
            return None
        done = {answer.item for answer in self._done(is_shared=is_shared)}
        return next((item for item in range(1, len(stored.plan) + 1) if item not in done), None)

    def plan_progress(self, *, is_shared: bool = False) -> Share:
        """Return the number of items with a verdict, and of all items; see `next_item`.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        stored = self.stored_plan()
        total = 0 if stored is None else len(stored.plan)
        return Share(len(self._done(is_shared=is_shared)), total)

    def plan_agreement(self, first: str, second: str) -> Kappa:
        """Compare two reviewers over the objects of the plan that both have judged.

        Tiles are left out: their verdicts are counts.

        Parameters
        ----------
        first, second
            Their names.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        own, other = (
            {answer.item: str(answer.verdict) for answer in self.answers(name)}
            for name in (first, second)
        )
        stored = self.stored_plan()
        tiles = set() if stored is None else _tiles(stored.plan)
        both = sorted(own.keys() & other.keys() - tiles)
        order = [str(verdict) for verdict in Verdict]
        return cohens_kappa([own[k] for k in both], [other[k] for k in both], order=order)

    def plan_reviewers(self) -> list[str]:
        """Return the names of all reviewers with a verdict on an item, sorted.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        return sorted(self._answers())

    def _done(self, *, is_shared: bool) -> list[ItemVerdict]:
        return self.pooled_answers() if is_shared else self.answers()

    def _answers(self) -> dict[str, list[ItemVerdict]]:
        """Return the verdicts on the items of the current plan, by reviewer."""
        return _by_reviewer(_given(self._read, self.path))

    def _has_tables(self) -> bool:
        return _has_tables(self._read)

    def _required(self) -> StoredPlan:
        stored = self.stored_plan()
        if stored is None:
            raise ReviewError(
                "expected a plan in the review file, found none; draw a plan first", path=self.path
            )
        return stored

    def _checked_count(
        self, plan: Plan, item: int, verdict: Verdict, count: int | None
    ) -> int | None:
        if not 1 <= item <= len(plan):
            raise ReviewError(
                f"expected an item of the plan, 1 to {len(plan)}, found {item}", path=self.path
            )
        if item not in _tiles(plan) or verdict is Verdict.CANNOT_TELL:
            if count is not None:
                raise ReviewError(
                    f"expected no count for item {item}, found {count}; leave it out",
                    path=self.path,
                )
            return None
        if count is None or not 0 <= count <= MOST_COUNTED:
            raise ReviewError(
                f"expected the number of nuclei without an outline for item {item}, found "
                f"{'none' if count is None else count}; enter a number from 0 to {MOST_COUNTED}",
                path=self.path,
            )
        return count


@dataclass(frozen=True)
class GivenAnswer:
    """The verdict of one reviewer on an item."""

    reviewer: str
    answer: ItemVerdict
    note: str
    #: Time in UTC.
    given_at: datetime


@dataclass(frozen=True, eq=False)
class PlanAnswers:
    """The current plan of a review file, and the verdicts on its items."""

    stored: StoredPlan
    #: Of all reviewers, by item.
    given: tuple[GivenAnswer, ...]

    @property
    def answers(self) -> list[ItemVerdict]:
        """The verdicts as `PlannedReview.pooled_answers` returns them."""
        return _all_pooled(_by_reviewer(self.given))

    @property
    def teams(self) -> set[str]:
        """The teams with verdicts on their items."""
        names = self.stored.plan.units.team
        return {str(names[given.answer.item - 1]) for given in self.given}


def read_plan_answers(path: Path) -> PlanAnswers | None:
    """Read the current plan and its verdicts; the file does not change.

    Returns
    -------
    PlanAnswers or None
        None if the file has no plan.

    Raises
    ------
    ReviewError
        If the file is missing, damaged, or none of this program.
    """
    connection, _ = open_to_read(path)

    def read(statement: str, values: Mapping[str, Any]) -> list[Any]:
        try:
            return connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise explained(error, path, "the plan cannot be read") from error

    with closing(connection):
        stored = _stored_plan(read, path)
        if stored is None:
            return None
        return PlanAnswers(stored, tuple(_given(read, path)))


def _has_tables(read: _Read) -> bool:
    return bool(read("SELECT 1 FROM sqlite_master WHERE name = 'plan_verdicts'", {}))


def _stored_plan(read: _Read, path: Path) -> StoredPlan | None:
    if not _has_tables(read):
        return None
    found = read(
        "SELECT id, seed, level, class_names, settings FROM plans ORDER BY id DESC LIMIT 1", {}
    )
    if not found:
        return None
    row = Row(("id", "seed", "level", "class_names", "settings"), found[0])
    with understood("plan", path):
        number, seed = row.whole("id"), row.text("seed")
        items = read(
            f"SELECT {_ITEM_COLUMNS} FROM plan_items WHERE plan = :plan ORDER BY item",  # noqa: S608
            {"plan": number},
        )
        plan = _plan(
            [Row(_ITEM_NAMES, values) for values in items],
            _class_names(row.text("class_names")),
            row.word("level", Level),
            _seed(seed) if seed else None,
        )
        settings = json.loads(row.text("settings"))
        if not isinstance(settings, dict):
            raise ValueError("expected an object of JSON as settings")
    return StoredPlan(number, plan, settings)


def _class_names(text: str) -> tuple[str, ...]:
    names = json.loads(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("expected a list of texts as class_names")
    if len(names) > _MOST_CLASSES:
        raise ValueError(f"expected up to {_MOST_CLASSES} class_names, found {len(names)}")
    return tuple(names)


def _seed(text: str) -> int:
    seed = int(text)
    if seed < 0:
        raise ValueError(f"expected a seed from 0, found {seed}")
    return seed


def _given(read: _Read, path: Path) -> list[GivenAnswer]:
    """Return the verdicts on the items of the current plan, by item."""
    if not _has_tables(read):
        return []
    kinds = dict(
        read("SELECT item, kind FROM plan_items WHERE plan = (SELECT max(id) FROM plans)", {})
    )
    rows = read(
        f"SELECT {_ANSWER_COLUMNS} FROM plan_verdicts "  # noqa: S608
        f"WHERE plan = (SELECT max(id) FROM plans) AND {_STANDING} ORDER BY item, id",
        {},
    )
    names = tuple(_ANSWER_COLUMNS.split(", "))
    with understood("verdict", path):
        return [_given_answer(Row(names, values), kinds) for values in rows]


def _given_answer(row: Row, kinds: Mapping[Any, Any]) -> GivenAnswer:
    """Return a verdict from its row.

    Parameters
    ----------
    row
        The row.
    kinds
        Item -> the word for its kind.

    Raises
    ------
    ValueError
        If the plan has no such item, or that item cannot have such a verdict.
    """
    item = row.whole("item", 1)
    if item not in kinds:
        raise ValueError(f"there is no item {item}")
    verdict, count = row.word("verdict", Verdict), row.whole_or_none("count", MOST_COUNTED)
    is_counted = kinds[item] == ItemKind.BACKGROUND and verdict is not Verdict.CANNOT_TELL
    if is_counted != (count is not None):
        expected = "a count" if is_counted else "no count"
        raise ValueError(f"expected {expected} for item {item}")
    answer = ItemVerdict(item, verdict, count)
    return GivenAnswer(row.text("reviewer"), answer, row.text("note"), row.moment("given_at"))


def _by_reviewer(given: Sequence[GivenAnswer]) -> dict[str, list[ItemVerdict]]:
    result: dict[str, list[ItemVerdict]] = {}
    for own in given:
        result.setdefault(own.reviewer, []).append(own.answer)
    return result


def _all_pooled(by_reviewer: Mapping[str, Sequence[ItemVerdict]]) -> list[ItemVerdict]:
    """Return the verdicts of all reviewers, by item; see `PlannedReview.pooled_answers`."""
    by_item: dict[int, list[ItemVerdict]] = {}
    for answers in by_reviewer.values():
        for answer in answers:
            by_item.setdefault(answer.item, []).append(answer)
    return [_pooled(by_item[item]) for item in sorted(by_item)]


def _pooled(answers: Sequence[ItemVerdict]) -> ItemVerdict:
    """Return the verdict that several reviewers have given on one item together."""
    first = answers[0]
    if all(answer == first for answer in answers):
        return first
    counts = [answer.count for answer in answers if answer.count is not None]
    if len(counts) == len(answers):
        return replace(first, count=math.floor(sum(counts) / len(counts) + 0.5))
    return ItemVerdict(first.item, Verdict.CANNOT_TELL)


def _tiles(plan: Plan) -> set[int]:
    rows = np.flatnonzero(plan.units.is_kind(ItemKind.BACKGROUND))
    return set((rows + 1).tolist())


def _insert_items(connection: sqlite3.Connection, number: int, plan: Plan, start: int) -> None:
    """Insert the items of a plan from a row on."""
    marks = ", ".join("?" * len(_ITEM_COLUMNS.split(",")))
    connection.executemany(
        f"INSERT INTO plan_items (plan, {_ITEM_COLUMNS}) VALUES (?, {marks})",  # noqa: S608
        [(number, *row) for row in _item_rows(plan)[start:]],
    )


def _item_rows(plan: Plan) -> list[tuple[Any, ...]]:
    units = plan.units
    return list(
        zip(
            range(1, len(plan) + 1),
            *(map(one_spelling, names) for names in (units.team, units.patient, units.region)),
            [str(SIDES[code]) for code in units.side.tolist()],
            [None if id_ == NO_ID else id_ for id_ in units.id.tolist()],
            units.y_px.tolist(),
            units.x_px.tolist(),
            [str(KINDS[code]) for code in units.kind.tolist()],
            units.detail,
            units.reference_class.tolist(),
            units.prediction_class.tolist(),
            units.iou.tolist(),
            map(one_spelling, plan.stratum),
            plan.probability.tolist(),
            strict=True,
        )
    )


def _plan(
    rows: Sequence[Row], class_names: tuple[str, ...], level: Level, seed: int | None
) -> Plan:
    """Return a plan from its rows.

    Raises
    ------
    ValueError
        If the rows are none of a plan.
    """
    if [row.whole("item") for row in rows] != list(range(1, len(rows) + 1)):
        raise ValueError("items are missing")

    def names(column: str) -> Any:
        return np.array([row.text(column) for row in rows], object)

    def numbers(column: str, lowest: float, highest: float) -> Any:
        return np.array([row.number(column, lowest, highest) for row in rows], np.float64)

    def classes(column: str) -> Any:
        return np.array([row.whole(column, 0, len(class_names)) for row in rows], np.int16)

    sides = [row.word("side", ItemSide) for row in rows]
    units = Units(
        class_names=class_names,
        team=names("team"),
        patient=names("patient"),
        region=names("region"),
        side=np.array([SIDES.index(side) for side in sides], np.int8),
        kind=np.array([KINDS.index(row.word("kind", ItemKind)) for row in rows], np.int8),
        id=np.array(list(map(_object_id, rows, sides)), np.int64),
        y_px=numbers("y_px", -LARGEST_PX, LARGEST_PX),
        x_px=numbers("x_px", -LARGEST_PX, LARGEST_PX),
        reference_class=classes("reference_class"),
        prediction_class=classes("prediction_class"),
        iou=numbers("iou", 0, 1),
        detail=names("detail"),
    )
    if len(set(units.keys)) < len(rows):
        raise ValueError("several items are the same object or tile")
    probability = numbers("probability", _LEAST_PROBABILITY, 1)
    return Plan(units, tuple(names("stratum")), probability, level, seed)


def _object_id(row: Row, side: ItemSide) -> int:
    """Return the id of an object, `NO_ID` for a tile."""
    id_ = row.whole_or_none("object_id")
    if (id_ is None) != (side is ItemSide.BACKGROUND):
        raise ValueError(f"expected an object_id for each object and for no tile, found {id_}")
    return NO_ID if id_ is None else id_
