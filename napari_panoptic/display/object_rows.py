"""The rows of the object table: columns, filters and orders. Pure: arrays only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.choices import MenuChoice
from napari_panoptic.common.spreadsheets import inert
from napari_panoptic.display import styles
from napari_panoptic.display.glossary import OBJECT_MEANINGS, VERDICT_WORDS
from napari_panoptic.explain.impact import PatientMean
from napari_panoptic.nuclei.metrics import count
from napari_panoptic.nuclei.outcomes import NO_ID, ObjectColumns, Outcomes
from napari_panoptic.values.vocabulary import (
    CAUSE_CODE,
    CAUSES,
    SIDES,
    STATUS_CODE,
    STATUSES,
    Cause,
    Side,
    Status,
)

SIDE_WORDS = ("ref", "pred")
"""Word for each side in a table."""
NONE_WORD = "none"
"""Word for the empty side of a pair of classes, as in the confusion matrix."""


class Kind(StrEnum):
    """How the values of a column are written and aligned."""

    WORD = "word"  # text
    COUNT = "count"  # whole numbers
    ID = "id"  # whole numbers without separators
    RATIO = "ratio"  # three decimals
    DECIMAL = "decimal"  # one decimal


@dataclass(frozen=True)
class ObjectColumn:
    """A column of the object table."""

    #: Key of the column in `ObjectRows.values`.
    name: str
    #: Text of the header.
    title: str
    #: How values are written.
    kind: Kind
    #: One sentence for the tooltip.
    meaning: str


COLUMNS: tuple[ObjectColumn, ...] = (
    ObjectColumn(
        "side", "Side", Kind.WORD, "Whose object it is: ref, the annotation's; pred, the team's."
    ),
    ObjectColumn(
        "id", "Id", Kind.ID, "The object's id; for the annotation, its number in the file."
    ),
    ObjectColumn("status", "Status", Kind.WORD, OBJECT_MEANINGS["status"]),
    ObjectColumn("cause", "Cause", Kind.WORD, OBJECT_MEANINGS["cause"]),
    ObjectColumn("iou", "IoU", Kind.RATIO, OBJECT_MEANINGS["iou"]),
    ObjectColumn("hausdorff_px", "HD px", Kind.DECIMAL, OBJECT_MEANINGS["hausdorff_px"]),
    ObjectColumn("class", "Class", Kind.WORD, "The object's own class."),
    ObjectColumn("verdict", "Verdict", Kind.WORD, "Your verdict; empty if there is none yet."),
    ObjectColumn("area_px", "Area px", Kind.COUNT, OBJECT_MEANINGS["area_px"]),
    ObjectColumn("partner_id", "Partner", Kind.ID, "Id of the matched object on the other side."),
    ObjectColumn("partner_class", "Partner class", Kind.WORD, "Class of the matched object."),
    ObjectColumn("hausdorff_um", "HD µm", Kind.DECIMAL, OBJECT_MEANINGS["hausdorff_um"]),
    ObjectColumn("hausdorff95_px", "HD95 px", Kind.DECIMAL, OBJECT_MEANINGS["hausdorff95_px"]),
    ObjectColumn("centroid_y_px", "y px", Kind.DECIMAL, "Row of the centroid, from the top."),
    ObjectColumn("centroid_x_px", "x px", Kind.DECIMAL, "Column of the centroid, from the left."),
    ObjectColumn("score", "Score", Kind.RATIO, OBJECT_MEANINGS["score"]),
)


class WorstFirst(MenuChoice):
    """What makes one failure worse than another."""

    IMPACT = (
        "impact",
        "The failures come first that cost most: those that would add most to the mean PQ over "
        "patients if they alone were mended (in one region: to its PQ). The larger comes first "
        "among equals.",
        "Impact",
    )
    IOU = (
        "lowest IoU",
        "Failures that overlap nothing come first, then those that nearly match.",
        "IoU",
    )
    AREA = "largest area", "The largest failures come first.", "Area"
    SCORE = (
        "highest score",
        "The predictions come first of which the model was surest; what has no score comes last.",
        "Score",
    )
    CAUSE = (
        "cause",
        "Failures of one cause come together, in the order of the cause menu.",
        "Cause",
    )
    RANDOM = "random", "A random order, always the same.", "Random"


@dataclass(frozen=True)
class ObjectFilter:
    """Which objects to list; None everywhere means all."""

    #: The words that are let through, per column.
    sides: frozenset[str] | None = None
    statuses: frozenset[str] | None = None
    classes: frozenset[str] | None = None
    causes: frozenset[str] | None = None
    verdicts: frozenset[str] | None = None
    #: ``(reference class, prediction class)`` that are let through, as in the confusion matrix:
    #: ``none`` on the side where an object has no partner. Ignored objects belong to no such pair.
    pairs: frozenset[tuple[str, str]] | None = None
    #: What the listed objects are called, if they are those behind a figure.
    title: str = field(default="", compare=False)

    @property
    def words(self) -> Mapping[str, frozenset[str] | None]:
        """Column -> the words that are let through."""
        return {
            "side": self.sides,
            "status": self.statuses,
            "class": self.classes,
            "cause": self.causes,
            "verdict": self.verdicts,
        }

    @property
    def is_open(self) -> bool:
        """Whether everything is let through."""
        return self == ObjectFilter()


@dataclass(frozen=True, eq=False)
class GivenVerdicts:
    """The verdicts on the objects of one side."""

    #: int64 (n,): ids of the objects, each once.
    ids: NDArray[np.int64]
    #: int16 (n,): the number of the verdict on each, from 1; 0 for none.
    codes: NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class ObjectRows:
    """Every object of a label pair: reference objects first, then predictions."""

    #: How many rows belong to the reference.
    n_reference: int
    #: Column name -> array (n, …): the columns of `ObjectColumns`, those of `COLUMNS`, and
    #: ``impact``: what mending a failure alone would add to the region's PQ. Words are codes into
    #: ``words``.
    values: ObjectColumns
    #: Column name -> the words that codes stand for.
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.values["id"])

    @classmethod
    def from_outcomes(cls, outcomes: Outcomes) -> ObjectRows:
        """Take the outcomes of a label pair."""
        values = outcomes.all_columns()
        yx = values["centroid_yx_px"]
        values |= {
            "verdict": np.zeros(len(yx), np.int16),
            "impact": PatientMean.of([("", count(outcomes))]).gains(
                np.zeros(len(yx), np.intp), values
            ),
            "hausdorff_um": values["hausdorff_px"]
            * (np.nan if outcomes.mpp is None else outcomes.mpp),
            "centroid_y_px": yx[:, 0],
            "centroid_x_px": yx[:, 1],
        }
        return cls(len(outcomes.reference), values, object_words(outcomes.class_names))

    @classmethod
    def prepared(cls, outcomes: Outcomes, by: WorstFirst | None = None) -> ObjectRows:
        """Take outcomes whose rows may have been made in another thread already.

        Parameters
        ----------
        outcomes
            The outcomes. Their rows are kept as long as they live.
        by
            Sort them as well, so that the window does not wait for that later.
        """
        rows = _PREPARED.get(outcomes)
        if rows is None:
            rows = _PREPARED.setdefault(outcomes, cls.from_outcomes(outcomes))
        if by is not None:
            rows.worst_first(by)
        return rows

    def with_verdicts(self, given: Mapping[Side, GivenVerdicts]) -> ObjectRows:
        """Take verdicts over; everything else stays.

        Parameters
        ----------
        given
            Side -> the verdicts on its objects. Objects that are not named have
            none.
        """
        verdicts = self.verdicts_of(given)
        if not len(self) or np.array_equal(verdicts, self.values["verdict"]):
            return self
        result = replace(self, values={**self.values, "verdict": verdicts})
        result._known_orders.update(self._known_orders)
        return result

    def verdicts_of(self, given: Mapping[Side, GivenVerdicts]) -> NDArray[np.int16]:
        """Return the number of the verdict of each row, 0 for none: int16 (n,)."""
        parts = [
            _looked_up(self.values["id"][rows], given.get(side))
            for side, rows in (
                (Side.REFERENCE, slice(self.n_reference)),
                (Side.PREDICTION, slice(self.n_reference, None)),
            )
        ]
        return np.concatenate(parts)

    @classmethod
    def empty(cls) -> ObjectRows:
        """Make a table without objects."""
        names = (*(column.name for column in COLUMNS), "impact")
        none = {name: np.zeros(0) for name in names}
        return cls(0, {**none, "centroid_yx_px": np.zeros((0, 2))})

    def row_of(self, side: Side, object_row: int) -> int:
        """Return the table row of an object."""
        return object_row if side is Side.REFERENCE else self.n_reference + object_row

    def object_of(self, row: int) -> tuple[Side, int]:
        """Return the object of a table row: its side, and its row on that side."""
        if row < self.n_reference:
            return Side.REFERENCE, row
        return Side.PREDICTION, row - self.n_reference

    def text(self, row: int, column: ObjectColumn) -> str:
        """Return one value as the table shows it."""
        return self.text_of(self.values[column.name][row], column)

    def text_of(self, value: float, column: ObjectColumn) -> str:
        """Return a value of a column as the table shows it."""
        if column.kind is Kind.WORD:
            word = self.words[column.name][int(value)]
            return styles.CAUSE_WORDS[Cause(word)] if column.name == "cause" else word
        if column.kind is Kind.ID:
            return styles.UNDEFINED if value == NO_ID else str(int(value))
        if column.kind is Kind.RATIO:
            return styles.ratio_text(float(value))
        if column.kind is Kind.DECIMAL:
            return styles.decimal_text(float(value))
        return styles.count_text(int(value))

    def failures(self) -> NDArray[np.bool_]:
        """Mark the rows that need a look."""
        codes = [STATUS_CODE[status] for status in styles.FAILURES]
        return np.isin(self.values["status"], codes)

    def listed_failures(self, order: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the failures among listed rows (k,), in their order.

        A misclassified pair is there only once where both sides are listed.
        """
        marks = self.failures()
        misclassified = self.values["status"] == STATUS_CODE[Status.MISCLASSIFIED]
        on_reference = np.arange(len(self)) < self.n_reference
        if (misclassified & on_reference)[order].any():
            marks &= on_reference | ~misclassified
        return order[marks[order]]

    def let_through(self, wanted: ObjectFilter) -> NDArray[np.bool_]:
        """Mark the rows that a filter lets through."""
        return let_through(self.values, self.words, wanted)

    def worst_first(self, by: WorstFirst = WorstFirst.IOU) -> NDArray[np.intp]:
        """Order failures first, then what is in order, then what is ignored.

        Each of these as `worst_first` does; the order is kept.
        """
        if by not in self._known_orders:
            order = worst_first(self.values, by)
            severity = SEVERITY[self.values["status"][order].astype(np.intp)]
            self._known_orders[by] = order[np.argsort(severity, kind="stable")]
        return self._known_orders[by]

    def ordered_by(self, name: str, *, descending: bool) -> NDArray[np.intp]:
        """Order the rows by a column; equals keep their order, undefined comes last."""
        keys = self.values[name]
        if name in self.words:
            alphabet = np.argsort(np.argsort(self.words[name]))
            keys = alphabet[keys.astype(np.intp)]
        if keys.dtype.kind != "f":
            keys = np.where(keys == NO_ID, np.nan, keys)
        return np.argsort(-keys if descending else keys, kind="stable")

    def tab_separated(self, rows: NDArray[np.intp], columns: Sequence[ObjectColumn]) -> str:
        """Write some rows for a spreadsheet: a header, plain figures, undefined ones empty.

        Parameters
        ----------
        rows
            Which rows, in the order wanted.
        columns
            Which columns.
        """
        written = [self._plain(column, rows) for column in columns]
        lines = ["\t".join(column.name for column in columns)]
        lines += ["\t".join(cells) for cells in zip(*written, strict=True)]
        return "\n".join(lines) + "\n"

    @cached_property
    def _known_orders(self) -> dict[WorstFirst, NDArray[np.intp]]:
        return {}

    def _plain(self, column: ObjectColumn, rows: NDArray[np.intp]) -> list[str]:
        values = self.values[column.name][rows].tolist()
        if column.kind is Kind.WORD:
            words = self.words[column.name]
            return [inert(words[code]) for code in values]
        if column.kind is Kind.ID:
            return ["" if value == NO_ID else str(value) for value in values]
        return ["" if value != value else repr(value) for value in values]  # NaN is not itself


_PREPARED: WeakKeyDictionary[Outcomes, ObjectRows] = WeakKeyDictionary()
"""Rows of outcomes that are still there."""


def _looked_up(ids: NDArray[np.generic], given: GivenVerdicts | None) -> NDArray[np.int16]:
    """Find the verdicts of some objects by their ids."""
    if given is None or not len(given.ids):
        return np.zeros(len(ids), np.int16)
    if np.array_equal(ids, given.ids):
        return given.codes
    order = np.argsort(given.ids)
    places = np.minimum(np.searchsorted(given.ids[order], ids), len(order) - 1)
    found = order[places]
    return np.where(given.ids[found] == ids, given.codes[found], 0).astype(np.int16)


def _severities() -> NDArray[np.int64]:
    severity = np.ones(len(STATUSES), np.int64)
    severity[[STATUS_CODE[status] for status in styles.FAILURES]] = 0
    severity[STATUS_CODE[Status.IGNORED]] = 2
    return severity


SEVERITY = _severities()
"""Status code -> 0 for failures, 1 for what is in order, 2 for what is ignored."""
_CAUSE_RANKS = np.arange(len(CAUSES))
_CAUSE_RANKS[CAUSE_CODE[Cause.NONE]] = len(CAUSES)
"""Cause code -> its place; what has no cause comes last."""


def object_words(class_names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the words that the codes of columns of objects stand for."""
    return {
        "side": SIDE_WORDS,
        "status": tuple(str(status) for status in STATUSES),
        "cause": tuple(str(cause) for cause in CAUSES),
        "class": ("", *class_names),
        "partner_class": ("", *class_names),
        "verdict": ("", *VERDICT_WORDS.values()),
    }


def let_through(
    columns: ObjectColumns, words: Mapping[str, tuple[str, ...]], wanted: ObjectFilter
) -> NDArray[np.bool_]:
    """Mark the objects that a filter lets through.

    Parameters
    ----------
    columns
        The objects. Without a column of verdicts, the filter ignores them.
    words
        As of `object_words`.
    wanted
        The filter.
    """
    passes = np.ones(len(columns["id"]), bool)
    if not len(passes):
        return passes
    for name, chosen in wanted.words.items():
        if chosen is not None and name in columns:
            allowed = np.array([word in chosen for word in words[name]])
            passes &= allowed[columns[name].astype(np.intp)]
    if wanted.pairs is not None:
        names = [word or NONE_WORD for word in words["class"]]
        allowed = np.array([[(a, b) in wanted.pairs for b in names] for a in names])
        own, across = columns["class"], columns["partner_class"]
        on_reference = columns["side"] == SIDES.index(Side.REFERENCE)
        passes &= allowed[np.where(on_reference, own, across), np.where(on_reference, across, own)]
        passes &= columns["status"] != STATUS_CODE[Status.IGNORED]
    return passes


def worst_first(columns: ObjectColumns, by: WorstFirst) -> NDArray[np.intp]:
    """Order objects: among equals the lower IoU comes first, then the larger area.

    Parameters
    ----------
    columns
        The objects. With a column ``impact`` if they are ordered by it.
    by
        What makes one worse than another. Undefined values come last.
    """
    area, iou = -columns["area_px"].astype(np.int64), columns["iou"]
    if by is WorstFirst.IMPACT:
        return np.lexsort((iou, area, -columns["impact"]))
    if by is WorstFirst.RANDOM:
        return np.argsort(_shuffled(columns), kind="stable")
    keys = {
        WorstFirst.IOU: iou,
        WorstFirst.AREA: area,
        WorstFirst.SCORE: -columns["score"],
        WorstFirst.CAUSE: _CAUSE_RANKS[columns["cause"].astype(np.intp)],
    }
    return np.lexsort((area, iou, keys[by]))


def _shuffled(columns: ObjectColumns) -> NDArray[np.uint64]:
    """Return a number for each object that depends on nothing but its id, side and place."""
    yx = np.round(columns["centroid_yx_px"] * 1000).astype(np.int64).astype(np.uint64)
    parts = [columns["id"].astype(np.uint64), columns["side"].astype(np.uint64), *yx.T]
    mixed = np.zeros(len(parts[0]), np.uint64)
    for part in parts:  # the steps of SplitMix64, whose overflow is meant
        mixed = mixed + part + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed
