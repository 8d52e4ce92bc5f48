"""The order in which a third reviewer decides: one open disagreement after the other."""

from __future__ import annotations

from dataclasses import replace

from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.review.identity import Subject
from napari_panoptic.review.verdicts import (
    AgreementItem,
    ReviewerAgreement,
    ReviewRecord,
    Share,
)


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
        start = 0 if number is None else number + 1
        for item in (*self._items[start:], *self._items[:start]):
            if item.decision is None:
                return item
        return None

    def _number_of(self, subject: Subject) -> int | None:
        likenesses = (
            (subject.fingerprint.likeness(item.first.fingerprint), number)
            for number, item in enumerate(self._items)
            if _context(item.first) == _context(subject)
        )
        found = [(likeness, number) for likeness, number in likenesses if likeness is not None]
        return min(found)[1] if found else None


def _context(subject: Subject) -> tuple[str, str, Side]:
    return subject.region, subject.team, subject.side
