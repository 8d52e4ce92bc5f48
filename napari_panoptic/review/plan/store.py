"""A plan and its verdicts in the review file, beside the verdicts that are given without a plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from napari_panoptic.review.changes import (
    BEFORE_ALL,
    AnswerWithdrawn,
    ItemAnswered,
    PlanSaved,
    ReviewChange,
    ReviewChanges,
)
from napari_panoptic.review.file import ReviewError
from napari_panoptic.review.identity import one_spelling, reviewer_name
from napari_panoptic.review.plan.design import Plan
from napari_panoptic.review.plan.estimates import ItemVerdict
from napari_panoptic.review.plan.units import MOST_COUNTED, ItemKind
from napari_panoptic.review.verdicts import Share
from napari_panoptic.statistics.kappa import Kappa, cohens_kappa
from napari_panoptic.values.vocabulary import Verdict


@dataclass(frozen=True, eq=False)
class StoredPlan:
    """A plan as it is in a review file."""

    #: Its number in the file, which plans that continue it keep; the largest is the current one.
    number: int
    #: The plan, with its seed.
    plan: Plan
    #: How the population was evaluated.
    settings: Mapping[str, Any]


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
        """The verdicts as `PlanReview.pooled_answers` returns them."""
        return _all_pooled(_by_reviewer(self.given))

    @property
    def teams(self) -> set[str]:
        """The teams with verdicts on their items."""
        names = self.stored.plan.units.team
        return {str(names[given.answer.item - 1]) for given in self.given}


class Plans:
    """The plans of a review file, as far as its changes were taken."""

    def __init__(self) -> None:
        #: Number of the newest change that was taken.
        self.newest = BEFORE_ALL
        #: The change that saved the current plan.
        self.saved: int | None = None
        self.current: StoredPlan | None = None
        self._given: dict[int, tuple[ItemAnswered, GivenAnswer]] = {}
        # Item and reviewer -> the changes that gave their verdicts that are not withdrawn.
        self._by_item: dict[tuple[int, str], list[int]] = {}

    def take_new(self, changes: ReviewChanges) -> None:
        """Take the changes of plans that are new in a file.

        Raises
        ------
        ReviewError
            If the current plan cannot be read.
        """
        for change in changes.read("region = '' AND number > :newest", newest=self.newest):
            try:
                _check_answer(change, self.current)
            except ValueError as error:
                changes.refuse(change.number, "item-answered", str(error))
                continue
            self._take(change)
        for number, (kind, why) in changes.unreadable.items():
            if kind == "plan-saved" and number > (self.saved or 0):
                raise ReviewError(
                    f"the review file holds a plan that cannot be understood ({why}); it was "
                    f"changed by another program: restore a copy, or begin another file",
                    path=changes.file.path,
                )

    def _take(self, change: ReviewChange) -> None:
        """Take the next change."""
        self.newest = change.number
        match change.value:
            case PlanSaved(plan, settings, continues):
                self.saved = change.number
                self.current = StoredPlan(continues or change.number, plan, settings)
                if continues is None:
                    self._given, self._by_item = {}, {}
            case ItemAnswered() as value if self.current and value.plan == self.current.number:
                verdict = ItemVerdict(value.item, value.verdict, value.count)
                given = GivenAnswer(value.reviewer, verdict, value.note, change.at)
                self._given[change.number] = value, given
                self._by_item.setdefault((value.item, value.reviewer), []).append(change.number)
            case AnswerWithdrawn(number) if number in self._given:
                value, _ = self._given.pop(number)
                self._by_item[value.item, value.reviewer].remove(number)

    def given(self) -> list[GivenAnswer]:
        """Return the verdicts that stand on the items of the current plan, by item."""
        standing = ((item, n[-1]) for (item, _), n in self._by_item.items() if n)
        return [self._given[number][1] for _, number in sorted(standing)]

    def done(self, reviewer: str | None) -> set[int]:
        """Return the items on which a reviewer, or anyone if None, has given a verdict."""
        return {item for (item, name), n in self._by_item.items() if n and reviewer in (None, name)}

    def newest_of(self, reviewer: str, writer: str) -> tuple[int, int] | None:
        """Return change and item of the newest verdict of a window that stands."""
        for number, (value, _) in reversed(self._given.items()):
            is_own = (value.reviewer, value.writer) == (reviewer, writer)
            if is_own and self._by_item[value.item, reviewer][-1] == number:
                return number, value.item
        return None


class PlanReview:
    """The review of a plan in a review file: which item is next, and the verdicts on items.

    Everything is on disk when a method returns, and nothing is deleted. After a kill at any moment
    the same file continues at the same item. Verdicts of `ReviewStore.give` are no verdicts on
    items, even on the same object: they belong to no estimate.

    Parameters
    ----------
    changes
        The changes of the file.
    reviewer
        The reviewer's name, as the file keeps it.
    writer
        Id of the window.
    """

    def __init__(self, changes: ReviewChanges, reviewer: str, writer: str) -> None:
        self._changes, self._file, self._path = changes, changes.file, changes.file.path
        self._reviewer, self._writer = reviewer, writer
        self._taken: tuple[int, Plans] | None = None

    def save(self, plan: Plan, settings: Mapping[str, Any] | None = None) -> int:
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
        saved = PlanSaved(_in_one_spelling(plan), dict(settings or {}), None)
        with self._file.writing("the plan was NOT saved"):
            return self._changes.append(saved).number

    def extend(self, plan: Plan) -> None:
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
                path=self._path,
            )
        extended = PlanSaved(_in_one_spelling(plan), stored.settings, stored.number)
        with self._file.writing("the plan was NOT extended"):
            self._changes.append(extended)

    def stored(self) -> StoredPlan | None:
        """Return the current plan, or None.

        Raises
        ------
        ReviewError
            If the file cannot be read, or holds a plan that cannot be understood.
        """
        return self._plans().current

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
        answered = ItemAnswered(
            stored.number,
            item,
            self._reviewer,
            verdict,
            given.count,
            one_spelling(note).strip(),
            self._writer,
        )
        with self._file.writing("the verdict was NOT saved"):
            self._changes.append(answered)
        return given

    def undo(self) -> int | None:
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
        with self._file.writing("the verdict was NOT undone"):
            newest = self._plans().newest_of(self._reviewer, self._writer)
            if newest is None:
                return None
            number, item = newest
            self._changes.append(AnswerWithdrawn(number, self._reviewer))
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
        return self._answers().get(reviewer_name(reviewer or self._reviewer), [])

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
        stored = self.stored()
        if stored is None:
            return None
        done = self._done(is_shared=is_shared)
        return next((item for item in range(1, len(stored.plan) + 1) if item not in done), None)

    def progress(self, *, is_shared: bool = False) -> Share:
        """Return the number of items with a verdict, and of all items; see `next_item`.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        stored = self.stored()
        total = 0 if stored is None else len(stored.plan)
        return Share(len(self._done(is_shared=is_shared)), total)

    def agreement(self, first: str, second: str) -> Kappa:
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
        stored = self.stored()
        tiles = set() if stored is None else _tiles(stored.plan)
        both = sorted(own.keys() & other.keys() - tiles)
        order = [str(verdict) for verdict in Verdict]
        return cohens_kappa([own[k] for k in both], [other[k] for k in both], order=order)

    def reviewers(self) -> list[str]:
        """Return the names of all reviewers with a verdict on an item, sorted.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        return sorted(self._answers())

    def _done(self, *, is_shared: bool) -> set[int]:
        return self._plans().done(None if is_shared else self._reviewer)

    def _answers(self) -> dict[str, list[ItemVerdict]]:
        """Return the verdicts on the items of the current plan, by reviewer and item."""
        return _by_reviewer(self._plans().given())

    def _plans(self) -> Plans:
        """Return the plans, with what was appended since the last call."""
        with self._file.lock:
            opened = self._file.times_opened
            if self._taken is None or self._taken[0] != opened:
                self._taken = opened, Plans()
            plans = self._taken[1]
            plans.take_new(self._changes)
            return plans

    def _required(self) -> StoredPlan:
        stored = self.stored()
        if stored is None:
            raise ReviewError(
                "expected a plan in the review file, found none; draw a plan first",
                path=self._path,
            )
        return stored

    def _checked_count(
        self, plan: Plan, item: int, verdict: Verdict, count: int | None
    ) -> int | None:
        if not 1 <= item <= len(plan):
            raise ReviewError(
                f"expected an item of the plan, 1 to {len(plan)}, found {item}",
                path=self._path,
            )
        if item not in _tiles(plan) or verdict is Verdict.CANNOT_TELL:
            if count is not None:
                raise ReviewError(
                    f"expected no count for item {item}, found {count}; leave it out",
                    path=self._path,
                )
            return None
        if count is None or not 0 <= count <= MOST_COUNTED:
            raise ReviewError(
                f"expected the number of nuclei without an outline for item {item}, found "
                f"{'none' if count is None else count}; enter a number from 0 to {MOST_COUNTED}",
                path=self._path,
            )
        return count


def _check_answer(change: ReviewChange, current: StoredPlan | None) -> None:
    """Check that an item of the plan can have a verdict.

    Raises
    ------
    ValueError
        If the plan has no such item, or that item cannot have such a verdict.
    """
    answer = change.value
    if not isinstance(answer, ItemAnswered) or current is None or answer.plan != current.number:
        return
    if not 1 <= answer.item <= len(current.plan):
        raise ValueError(f"there is no item {answer.item}")
    is_tile = bool(current.plan.units.is_kind(ItemKind.BACKGROUND)[answer.item - 1])
    is_counted = is_tile and answer.verdict is not Verdict.CANNOT_TELL
    if is_counted != (answer.count is not None):
        expected = "a count" if is_counted else "no count"
        raise ValueError(f"expected {expected} for item {answer.item}")
    if answer.count is not None and not 0 <= answer.count <= MOST_COUNTED:
        raise ValueError(f"expected a count from 0 to {MOST_COUNTED}, found {answer.count}")


def _in_one_spelling(plan: Plan) -> Plan:
    """Return a plan with its names in one spelling, as they are stored and compared."""
    team, patient, region = (
        np.array([one_spelling(str(each)) for each in names], object)
        for names in (plan.units.team, plan.units.patient, plan.units.region)
    )
    stratum = tuple(map(one_spelling, plan.stratum))
    return replace(
        plan, units=replace(plan.units, team=team, patient=patient, region=region), stratum=stratum
    )


def _by_reviewer(given: Sequence[GivenAnswer]) -> dict[str, list[ItemVerdict]]:
    result: dict[str, list[ItemVerdict]] = {}
    for own in given:
        result.setdefault(own.reviewer, []).append(own.answer)
    return result


def _all_pooled(by_reviewer: Mapping[str, Sequence[ItemVerdict]]) -> list[ItemVerdict]:
    """Return the verdicts of all reviewers, by item; see `PlanReview.pooled_answers`."""
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
