"""Verdicts of reviewers on single objects.

A verdict belongs to an object, not to an outcome.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from napari_panoptic.common.spreadsheets import inert
from napari_panoptic.nuclei.values.vocabulary import Verdict
from napari_panoptic.review.identity import Subject, matched, place_of
from napari_panoptic.statistics.kappa import Kappa

CSV_COLUMNS = (
    "reviewer",
    "team",
    "region",
    "side",
    "object_id",
    "class",
    "verdict",
    "tag",
    "note",
    "given_at",
    "centroid_y_px",
    "centroid_x_px",
    "area_px",
)


@dataclass(frozen=True, kw_only=True)
class ReviewRecord(Subject):
    """One verdict on one object.

    Parameters
    ----------
    reviewer
        The reviewer's name.
    verdict
        Who is right.
    tag
        A keyword, or empty.
    note
        A remark, or empty.
    given_at
        Time in UTC.
    """

    reviewer: str
    verdict: Verdict
    tag: str = ""
    note: str = ""
    given_at: datetime

    def values(self) -> dict[str, str | int | float]:
        """Return column of `CSV_COLUMNS` -> value, in the order of the review file."""
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
        }


@dataclass(frozen=True)
class HistoryEntry:
    """A verdict from the history of an object.

    Parameters
    ----------
    record
        The verdict.
    standing
        Whether it holds.
    withdrawn_at
        When it was undone, in UTC, or None. A verdict that neither stands nor was
        undone was replaced by a later one.
    """

    record: ReviewRecord
    standing: bool
    withdrawn_at: datetime | None


@dataclass(frozen=True)
class Share:
    """Number of objects with a verdict, out of a total."""

    done: int
    total: int


@dataclass(frozen=True, eq=False)
class ReviewerAgreement:
    """Two reviewers compared.

    Parameters
    ----------
    first, second
        Their names.
    agreement
        Kappa and its interval over the objects that both have judged.
    pairs
        Their verdicts on these objects.
    disagreements
        Those of the pairs with different verdicts.
    """

    first: str
    second: str
    agreement: Kappa
    pairs: tuple[tuple[ReviewRecord, ReviewRecord], ...]
    disagreements: tuple[tuple[ReviewRecord, ReviewRecord], ...]


def paired(
    first: Sequence[ReviewRecord], second: Sequence[ReviewRecord]
) -> list[tuple[ReviewRecord, ReviewRecord]]:
    """Pair two reviewers' verdicts on the same objects.

    Objects that only one of them judged are left out.
    """
    found = matched(map(place_of, first), map(place_of, second))
    return [
        (record, second[number])
        for record, number in zip(first, found, strict=True)
        if number is not None
    ]


def csv_text(records: Iterable[ReviewRecord]) -> str:
    """Return verdicts as CSV with a header, safe to open in a spreadsheet."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for record in records:
        values = record.values() | {"given_at": record.given_at.isoformat(timespec="seconds")}
        row = [values[name] for name in CSV_COLUMNS]
        writer.writerow([inert(cell) if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()
