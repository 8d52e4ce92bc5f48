"""Verdicts of reviewers on single objects, and the agreement of two reviewers.

A verdict belongs to an object, not to an outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from napari_panoptic.display.object_queue import ListedQueue, QueueGap
from napari_panoptic.review.identity import Subject, matched, object_key
from napari_panoptic.statistics.kappa import Kappa, cohens_kappa
from napari_panoptic.values.vocabulary import Side, Verdict


class Role(StrEnum):
    """Why a verdict was given."""

    REVIEWER = ""  # an opinion of one's own, blind to others
    ADJUDICATOR = "adjudicator"  # the decision where two reviewers disagree


@dataclass(frozen=True, kw_only=True)
class ReviewRecord(Subject):
    """One verdict on one object."""

    #: The reviewer's name.
    reviewer: str
    #: Who is right.
    verdict: Verdict
    #: A keyword, or empty.
    tag: str = ""
    #: A remark, or empty.
    note: str = ""
    #: Time in UTC.
    given_at: datetime
    #: Whether it is the reviewer's own verdict or a decision between two others.
    role: Role = Role.REVIEWER
    #: The verdict that it replaced when it was given.
    replaced: ReviewRecord | None = field(default=None, compare=False, repr=False)

    @property
    def replaced_elsewhere(self) -> ReviewRecord | None:
        """The verdict that it replaced, if the object had other pixels then, or was another."""
        old = self.replaced
        is_same = old is None or old.fingerprint.has_pixels_of(self.fingerprint)
        return None if is_same else old

    def values(self) -> dict[str, str | int | float]:
        """Return column -> value, in the order of the review file."""
        return {
            "reviewer": self.reviewer,
            "team": self.team,
            "region": self.region,
            "side": str(self.side),
            "object_id": self.object_id,
            "class": self.class_name,
            "centroid_y_px": self.fingerprint.centroid_y_px,
            "centroid_x_px": self.fingerprint.centroid_x_px,
            "area_px": self.fingerprint.area_px,
            "verdict": str(self.verdict),
            "tag": self.tag,
            "note": self.note,
            "given_at": self.given_at.isoformat(timespec="microseconds"),
            "role": str(self.role),
        }


class Judgement(NamedTuple):
    """A verdict that is about to be given; `given_at` is in UTC, None for now."""

    subject: Subject
    verdict: Verdict
    tag: str = ""
    note: str = ""
    given_at: datetime | None = None


@dataclass(frozen=True)
class Receipt:
    """A file of verdicts that was received from a reviewer."""

    #: The digest of its content.
    digest: str
    #: The id of the review package that it answers.
    package: str


@dataclass(frozen=True)
class HistoryEntry:
    """A verdict from the history of an object."""

    record: ReviewRecord
    #: Whether the verdict is still in force.
    standing: bool
    #: When it was undone, in UTC, or None. A verdict that neither stands nor was undone was
    #: replaced by a later one.
    withdrawn_at: datetime | None


@dataclass(frozen=True)
class Share:
    """Number of objects with a verdict, out of a total."""

    done: int
    total: int


@dataclass(frozen=True, eq=False)
class AgreementItem:
    """An object that two reviewers have judged."""

    first: ReviewRecord
    second: ReviewRecord
    #: The verdict of an adjudicator, or None.
    decision: ReviewRecord | None = None

    @property
    def is_agreed(self) -> bool:
        """Whether both reviewers gave the same verdict."""
        return self.first.verdict is self.second.verdict

    @property
    def final(self) -> Verdict | None:
        """The decision or, without one, what both agree on; None while undecided."""
        if self.decision is not None:
            return self.decision.verdict
        return self.first.verdict if self.is_agreed else None


@dataclass(frozen=True, eq=False)
class ReviewerAgreement:
    """Two reviewers compared."""

    #: Names of the reviewers.
    first: str
    second: str
    #: Kappa and its interval over the objects that both have judged.
    agreement: Kappa
    #: The objects that both have judged.
    items: tuple[AgreementItem, ...]

    @property
    def disagreements(self) -> tuple[AgreementItem, ...]:
        """Return the objects on which the reviewers differ, decided or not."""
        return tuple(item for item in self.items if not item.is_agreed)


def compared(
    first_verdicts: Sequence[ReviewRecord],
    second_verdicts: Sequence[ReviewRecord],
    decisions: Sequence[ReviewRecord] = (),
    *,
    first: str,
    second: str,
) -> ReviewerAgreement:
    """Compare two reviewers over the objects that both have judged.

    Parameters
    ----------
    first_verdicts, second_verdicts
        Their verdicts.
    decisions
        Those of adjudicators; the first one on an object counts.
    first, second
        Their names.
    """
    pairs = paired(first_verdicts, second_verdicts)
    found = matched([object_key(a) for a, _ in pairs], map(object_key, decisions))
    items = tuple(
        AgreementItem(a, b, None if number is None else decisions[number])
        for (a, b), number in zip(pairs, found, strict=True)
    )
    kappa = cohens_kappa(
        [str(item.first.verdict) for item in items],
        [str(item.second.verdict) for item in items],
        order=[str(verdict) for verdict in Verdict],
    )
    return ReviewerAgreement(first, second, kappa, items)


def paired(
    first: Sequence[ReviewRecord], second: Sequence[ReviewRecord]
) -> list[tuple[ReviewRecord, ReviewRecord]]:
    """Pair two reviewers' verdicts on the same objects.

    Objects that only one of them judged are left out.
    """
    found = matched(map(object_key, first), map(object_key, second), are_all=False)
    return [
        (record, second[number])
        for record, number in zip(first, found, strict=True)
        if number is not None
    ]


class Adjudication:
    """The disagreements of two reviewers, in the order of the first one's verdicts.

    Parameters
    ----------
    found
        The comparison of the two.
    """

    def __init__(self, found: ReviewerAgreement) -> None:
        self.first, self.second = found.first, found.second
        self._items = list(found.disagreements)

    @property
    def progress(self) -> Share:
        """How many disagreements are decided."""
        decided = sum(item.decision is not None for item in self._items)
        return Share(decided, len(self._items))

    def item_of(self, subject: Subject) -> AgreementItem | None:
        """Return the disagreement on an object, None if there is none."""
        number = self._number_of(subject)
        return None if number is None else self._items[number]

    def decide(self, record: ReviewRecord) -> None:
        """Take a decision that was given."""
        number = self._number_of(record)
        if number is not None:
            self._items[number] = replace(self._items[number], decision=record)

    def following(self, subject: Subject | None) -> AgreementItem | None:
        """Return the next undecided disagreement after an object, None if all are decided."""
        number = None if subject is None else self._number_of(subject)
        after = 0 if number is None else number + 1
        queue = ListedQueue(self._items)
        place = queue.step(1, QueueGap(after, after), lambda at: at.decision is None, wraps=True)
        return None if place is None else queue.item(place)

    def _number_of(self, subject: Subject) -> int | None:
        likenesses = (
            (subject.likeness(item.first), number)
            for number, item in enumerate(self._items)
            if _context(item.first) == _context(subject)
        )
        found = [(likeness, number) for likeness, number in likenesses if likeness is not None]
        return min(found)[1] if found else None


def _context(subject: Subject) -> tuple[str, str, Side]:
    return subject.region, subject.team, subject.side
