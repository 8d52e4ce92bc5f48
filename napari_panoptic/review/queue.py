"""The order in which objects are reviewed: open failures, or open disagreements."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.display.object_rows import SIDES, ObjectRows
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.review.identity import Subject
from napari_panoptic.review.judged import NO_VERDICT, Judged, Object
from napari_panoptic.review.verdicts import (
    AgreementItem,
    ReviewerAgreement,
    ReviewRecord,
    Share,
)


def next_open(
    judged: Judged,
    rows: ObjectRows,
    order: NDArray[np.intp],
    failures: NDArray[np.intp],
    start: Object | None,
    leave_out: Collection[Object] = (),
) -> Object | None:
    """Return the next listed failure without a verdict, from the first again after the last.

    Parameters
    ----------
    judged
        The verdicts.
    rows
        All objects of the table.
    order
        The row of each listed object, in the order of the table.
    failures
        The rows of the listed failures, in the same order.
    start
        The object to start after; None starts at the first.
    leave_out
        Objects that are not returned, with their partners.
    """
    codes = np.concatenate([judged.codes[side] for side in SIDES])
    if len(codes) != len(rows):
        return None  # the table is about to follow an edit
    places = np.full(len(rows), -1)
    places[order] = np.arange(len(order))
    still_open = failures[codes[failures] == NO_VERDICT]
    same = {at for place in leave_out for at in with_partner(judged.evaluation, place)}
    still_open = still_open[~np.isin(still_open, [rows.row_of(*place) for place in same])]
    if not len(still_open):
        return None
    here = -1 if start is None else int(places[rows.row_of(*start)])
    after = still_open[places[still_open] > here]
    return rows.object_of(int((after if len(after) else still_open)[0]))


def with_partner(evaluation: Evaluation, place: Object) -> set[Object]:
    """Return an object and, of a matched pair, its partner."""
    side, row = place
    partner = int(evaluation.outcomes.side(side).partner[row])
    other = Side.PREDICTION if side is Side.REFERENCE else Side.REFERENCE
    return {place} if partner == NO_PARTNER else {place, (other, partner)}


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
