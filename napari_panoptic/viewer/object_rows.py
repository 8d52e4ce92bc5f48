"""The rows of the object table: columns, filters and orders. Pure: arrays only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.evaluation.matching import NO_PARTNER
from napari_panoptic.evaluation.outcomes import Outcomes, SideOutcomes
from napari_panoptic.evaluation.vocabulary import CAUSES, STATUS_CODE, STATUSES, Side, Status
from napari_panoptic.viewer import styles

SIDES: tuple[Side, ...] = tuple(Side)
SIDE_WORDS = ("ref", "pred")
"""What a table says for each side."""
NO_ID = -1


class Kind(StrEnum):
    """How the values of a column are written and aligned."""

    WORD = "word"  # text
    COUNT = "count"  # whole numbers
    ID = "id"  # whole numbers without separators
    RATIO = "ratio"  # three decimals
    DECIMAL = "decimal"  # one decimal


@dataclass(frozen=True)
class Column:
    """A column of the object table.

    Parameters
    ----------
    name
        The contract's name of the column.
    title
        What the header says.
    kind
        How values are written.
    meaning
        One sentence for the tooltip.
    width
        Width in px that its values need.
    """

    name: str
    title: str
    kind: Kind
    meaning: str
    width: int


COLUMNS: tuple[Column, ...] = (
    Column(
        "side",
        "Side",
        Kind.WORD,
        "Whose object it is: ref, the annotation's; pred, the team's.",
        42,
    ),
    Column("id", "Id", Kind.ID, "The object's id; for the annotation, its number in the file.", 38),
    Column("status", "Status", Kind.WORD, "What became of the object.", 106),
    Column("cause", "Cause", Kind.WORD, "Why the object is unmatched.", 98),
    Column("class", "Class", Kind.WORD, "The object's own class.", 84),
    Column("iou", "IoU", Kind.RATIO, "Overlap with the partner; unmatched: the best overlap.", 46),
    Column("hausdorff_px", "HD px", Kind.DECIMAL, "Largest distance between the two outlines.", 50),
    Column("area_px", "Area px", Kind.COUNT, "Area that counts, after the ambiguous policy.", 60),
    Column("partner_id", "Partner", Kind.ID, "Id of the matched object on the other side.", 58),
    Column("partner_class", "Partner class", Kind.WORD, "Class of the matched object.", 92),
    Column("hausdorff_um", "HD µm", Kind.DECIMAL, "The same distance in micrometres.", 54),
    Column(
        "hausdorff95_px", "HD95 px", Kind.DECIMAL, "95th percentile of the outline distances.", 62
    ),
    Column("centroid_y_px", "y px", Kind.DECIMAL, "Row of the centroid, from the top.", 52),
    Column("centroid_x_px", "x px", Kind.DECIMAL, "Column of the centroid, from the left.", 52),
)


@dataclass(frozen=True)
class ObjectFilter:
    """Which objects to list; None everywhere means all.

    Parameters
    ----------
    sides, statuses, classes, causes
        The words that are let through, per column.
    """

    sides: frozenset[str] | None = None
    statuses: frozenset[str] | None = None
    classes: frozenset[str] | None = None
    causes: frozenset[str] | None = None

    @property
    def is_open(self) -> bool:
        """Whether everything is let through."""
        return self == ObjectFilter()


@dataclass(frozen=True, eq=False)
class ObjectRows:
    """Every object of a label pair: reference objects first, then predictions.

    Parameters
    ----------
    n_reference
        How many rows belong to the reference.
    values
        Column name -> array (n,). Words are int16 codes into ``words``;
        missing ids are -1, undefined figures NaN.
    words
        Column name -> the words that codes stand for.
    """

    n_reference: int
    values: Mapping[str, NDArray[np.generic]]
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.values["id"])

    @classmethod
    def from_outcomes(cls, outcomes: Outcomes) -> ObjectRows:
        """Take the outcomes of a label pair."""
        parts = [_side_values(outcomes, side) for side in SIDES]
        values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        classes = ("", *outcomes.class_names)
        return cls(
            n_reference=len(outcomes.reference),
            values=values,
            words={
                "side": SIDE_WORDS,
                "status": tuple(str(status) for status in STATUSES),
                "cause": tuple(str(cause) for cause in CAUSES),
                "class": classes,
                "partner_class": classes,
            },
        )

    @classmethod
    def empty(cls) -> ObjectRows:
        """Make a table without objects."""
        return cls(0, {column.name: np.zeros(0) for column in COLUMNS})

    def row_of(self, side: Side, object_row: int) -> int:
        """Give the table row of an object."""
        return object_row if side is Side.REFERENCE else self.n_reference + object_row

    def object_of(self, row: int) -> tuple[Side, int]:
        """Give the object of a table row: its side, and its row on that side."""
        if row < self.n_reference:
            return Side.REFERENCE, row
        return Side.PREDICTION, row - self.n_reference

    def text(self, row: int, column: Column) -> str:
        """Write one value for people."""
        value = self.values[column.name][row]
        if column.kind is Kind.WORD:
            return self.words[column.name][int(value)]
        if column.kind is Kind.ID:
            return styles.UNDEFINED if value == NO_ID else str(int(value))
        if column.kind is Kind.RATIO:
            return styles.ratio_text(float(value))
        if column.kind is Kind.DECIMAL:
            return styles.decimal_text(float(value))
        return styles.count_text(int(value))

    def failures(self) -> NDArray[np.bool_]:
        """Mark the rows that somebody has to look at."""
        codes = [STATUS_CODE[status] for status in styles.FAILURES]
        return np.isin(self.values["status"], codes)

    def let_through(self, wanted: ObjectFilter) -> NDArray[np.bool_]:
        """Mark the rows that a filter lets through."""
        passes = np.ones(len(self), bool)
        for name, words in (
            ("side", wanted.sides),
            ("status", wanted.statuses),
            ("class", wanted.classes),
            ("cause", wanted.causes),
        ):
            if words is not None and len(self):
                allowed = np.array([word in words for word in self.words[name]])
                passes &= allowed[self.values[name].astype(np.intp)]
        return passes

    def worst_first(self) -> NDArray[np.intp]:
        """Order failures first, then the rest by how badly they match.

        Among equals the lower IoU comes first, then the larger object.
        """
        if not len(self):
            return np.zeros(0, np.intp)
        severity = np.full(len(STATUSES), 1)
        for status in styles.FAILURES:
            severity[STATUS_CODE[status]] = 0
        ranks = severity[self.values["status"].astype(np.intp)]
        ignored = self.values["status"] == STATUS_CODE[Status.IGNORED]
        return np.lexsort(
            (
                -self.values["area_px"].astype(np.int64),
                np.nan_to_num(self.values["iou"].astype(np.float64), nan=2.0),
                np.where(ignored, 2, ranks),
            )
        )

    def ordered_by(self, name: str, *, descending: bool) -> NDArray[np.intp]:
        """Order the rows by a column; equals keep their order, undefined comes last."""
        values = self.values[name]
        if name in self.words:
            alphabet = np.argsort(np.argsort(self.words[name]))
            values = alphabet[values.astype(np.intp)]
        undefined = np.isnan(values) if values.dtype.kind == "f" else values == NO_ID
        keys = values.astype(np.float64)
        return np.lexsort((-keys if descending else keys, undefined))


def _side_values(outcomes: Outcomes, side: Side) -> dict[str, NDArray[np.generic]]:
    own, other = outcomes.side(side), outcomes.other(side)
    um_per_px = np.nan if outcomes.mpp is None else outcomes.mpp
    return {
        "side": np.full(len(own), SIDES.index(side), np.int16),
        "id": own.ids,
        "status": own.status.astype(np.int16),
        "cause": own.cause.astype(np.int16),
        "class": own.class_index,
        "iou": own.iou,
        "hausdorff_px": own.hausdorff_px,
        "area_px": own.area_px,
        "partner_id": _across(own, other.ids, NO_ID),
        "partner_class": _across(own, other.class_index.astype(np.int64), 0),
        "hausdorff_um": own.hausdorff_px * um_per_px,
        "hausdorff95_px": own.hausdorff95_px,
        "centroid_y_px": own.centroid_yx_px[:, 0],
        "centroid_x_px": own.centroid_yx_px[:, 1],
    }


def _across(own: SideOutcomes, values: NDArray[np.int64], without: int) -> NDArray[np.int64]:
    matched = own.partner != NO_PARTNER
    result = np.full(len(own), without, np.int64)
    result[matched] = values[own.partner[matched]]
    return result
