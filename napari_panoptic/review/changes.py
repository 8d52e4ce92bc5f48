"""The changes of a review, each as a value: what the rows of a review file say.

A verdict that is replaced or withdrawn, and a plan that is continued by a larger one, stay in the
file. What stands is found by reading the changes in order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.records import decoded, encoded
from napari_panoptic.common.text import shortened
from napari_panoptic.review.file import ReviewError, ReviewFile, now, stamp
from napari_panoptic.review.identity import LARGEST_PX, LARGEST_WHOLE
from napari_panoptic.review.plan.design import Plan, checked_plan
from napari_panoptic.review.verdicts import Receipt, ReviewRecord
from napari_panoptic.values.vocabulary import Verdict

BEFORE_ALL = -(2**63)
"""No change has a smaller number."""


@dataclass(frozen=True)
class VerdictGiven:
    """A verdict on an object."""

    record: ReviewRecord
    #: The number of the change that gave the verdict that this one replaces.
    replaces: int | None
    #: Verdicts that were given together have the same number.
    batch: int
    #: The window that gave it.
    writer: str

    @property
    def reviewer(self) -> str:
        """The reviewer who gave it."""
        return self.record.reviewer


@dataclass(frozen=True)
class VerdictWithdrawn:
    """A verdict that does not count any more; the one that it replaced stands again."""

    #: The number of the change that gave it.
    number: int
    #: The reviewer who gave it, and the window that withdrew it.
    reviewer: str
    writer: str


@dataclass(frozen=True)
class VerdictsReceived:
    """A file of verdicts that was imported."""

    receipt: Receipt
    reviewer: str


@dataclass(frozen=True, eq=False)
class PlanSaved:
    """A plan, which is the current one from now on."""

    plan: Plan
    #: How the population was evaluated.
    settings: Mapping[str, Any]
    #: The number of the change that saved the plan that this one continues; verdicts on its
    #: items are verdicts on items of this one.
    continues: int | None


@dataclass(frozen=True)
class ItemAnswered:
    """A verdict on an item of a plan."""

    #: The number of the change that saved the plan.
    plan: int
    item: int
    reviewer: str
    verdict: Verdict
    count: int | None
    note: str
    #: The window that gave it.
    writer: str


@dataclass(frozen=True)
class AnswerWithdrawn:
    """A verdict on an item that does not count any more; the one before it stands again."""

    #: The number of the change that gave it.
    number: int
    reviewer: str


Value = (
    VerdictGiven | VerdictWithdrawn | VerdictsReceived | PlanSaved | ItemAnswered | AnswerWithdrawn
)
KINDS: Mapping[str, type[Value]] = {
    "verdict-given": VerdictGiven,
    "verdict-withdrawn": VerdictWithdrawn,
    "verdicts-received": VerdictsReceived,
    "plan-saved": PlanSaved,
    "item-answered": ItemAnswered,
    "answer-withdrawn": AnswerWithdrawn,
}
_KIND_OF = {type_: kind for kind, type_ in KINDS.items()}


class ReviewChange(NamedTuple):
    """A change as it is in a review file."""

    number: int
    #: Empty for changes of a plan.
    region: str
    #: Time in UTC.
    at: datetime
    value: Value


class ReviewChanges:
    """The changes of a review file as values.

    Parameters
    ----------
    file
        The review file.
    """

    def __init__(self, file: ReviewFile) -> None:
        self.file = file
        #: Number of a change that cannot be read -> its kind, and why.
        self.unreadable: dict[int, tuple[str, str]] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The changes that cannot be read, each of which is left out."""
        return tuple(
            Finding(
                FindingKind.UNREADABLE,
                f"change {number} of the review file cannot be read ({why}): it was changed by "
                f"another program. It is left out; the others count",
                path=self.file.path,
            )
            for number, (_, why) in self.unreadable.items()
        )

    def read(self, condition: str, /, **values: object) -> list[ReviewChange]:
        """Return the changes of a condition of SQL, oldest first, without unreadable ones.

        Raises
        ------
        ReviewError
            If the file cannot be read.
        """
        rows = self.file.read(
            f"SELECT number, region, kind, at, value FROM changes WHERE {condition} "  # noqa: S608
            f"ORDER BY number",
            **values,
        )
        return self._understood(rows)

    def append(self, value: Value, region: str = "", *, at: datetime | None = None) -> ReviewChange:
        """Append a change, inside of `ReviewFile.writing`."""
        at = at or now()
        text = json.dumps(encoded(value), ensure_ascii=False, separators=(",", ":"))
        number = self.file.append(region, _KIND_OF[type(value)], at, text)
        return ReviewChange(number, region, at, value)

    def refuse(self, number: int, kind: str, why: str) -> None:
        """Note that a change cannot be read."""
        self.unreadable[number] = kind, shortened(why, 300)

    def _understood(self, rows: Sequence[Sequence[Any]]) -> list[ReviewChange]:
        result = []
        for number, region, kind, at, text in rows:
            try:
                result.append(_change(number, region, kind, at, text))
            except RecursionError:  # its message describes the decoder, not the file
                self.refuse(number, str(kind), "lists nested too deeply")
            except (TypeError, ValueError, LookupError) as error:
                self.refuse(number, str(kind), str(error))
        return result


def _change(number: Any, region: Any, kind: Any, at: Any, text: Any) -> ReviewChange:
    """Return a change from its row.

    Raises
    ------
    TypeError, ValueError, LookupError, RecursionError
        If this program did not write the row.
    """
    for name, each in (("region", region), ("kind", kind), ("value", text)):
        if type(each) is not str:
            raise TypeError(f"expected a text as {name}, found {shortened(repr(each), 60)}")
    if kind not in KINDS:
        raise ValueError(f"expected a kind of change, found {shortened(repr(kind), 60)}")
    value = checked(decoded(KINDS[kind], json.loads(text)))
    if isinstance(value, VerdictGiven) and value.record.region != region:
        raise ValueError(f"expected a verdict in region {region!r}, found {value.record.region!r}")
    return ReviewChange(number, region, decoded(datetime, at), value)


def checked(value: Value) -> Value:
    """Return a value that was read if this program can have written it.

    Raises
    ------
    ValueError
        If not, with the reason.
    """
    match value:
        case VerdictGiven(record):
            _check_record(record)
        case PlanSaved(plan):
            checked_plan(plan)
    return value


def as_stored(record: ReviewRecord) -> ReviewRecord:
    """Return a verdict without what is only known when it is given."""
    return replace(record, beside=None, replaced=None)


def check_not_received(changes: ReviewChanges, receipt: Receipt) -> None:
    """Check that a file of verdicts was not received before.

    Raises
    ------
    ReviewError
        If it was, or the review file cannot be read.
    """
    for change in changes.read("kind = 'verdicts-received'"):
        match change.value:
            case VerdictsReceived(other, reviewer) if other.digest == receipt.digest:
                of = f", as those of {reviewer[:200]}" if reviewer else ""
                raise ReviewError(
                    f"these verdicts were imported before{of} at {stamp(change.at)[:19]} UTC; "
                    f"nothing was changed. Save them again from the page if verdicts were added",
                    path=changes.file.path,
                )


def _check_record(record: ReviewRecord) -> None:
    place = record.fingerprint
    for name, value, lowest, highest in (
        ("object_id", record.object_id, -LARGEST_WHOLE, LARGEST_WHOLE),
        ("area_px", place.area_px, 0, LARGEST_WHOLE),
        ("centroid_y_px", place.centroid_y_px, -LARGEST_PX, LARGEST_PX),
        ("centroid_x_px", place.centroid_x_px, -LARGEST_PX, LARGEST_PX),
    ):
        if math.isnan(value) or not lowest <= value <= highest:
            raise ValueError(f"expected {name} from {lowest:g} to {highest:g}, found {value}")
