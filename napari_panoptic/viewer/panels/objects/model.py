"""The objects of a label pair as columns of a table: their texts, order and choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from qtpy.QtGui import QIcon

from napari_panoptic.display import styles
from napari_panoptic.display.object_rows import (
    COLUMNS,
    Kind,
    ObjectColumn,
    ObjectFilter,
    ObjectRows,
    WorstFirst,
)
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Cause, Side, Status
from napari_panoptic.viewer.kit.array_table import ArrayModel, Column
from napari_panoptic.viewer.kit.widgets import swatch_icon

NAMES = [column.name for column in COLUMNS]
_LEAST_PX = {
    "side": 34,
    "status": 46,
    "cause": 36,
    "iou": 40,
    "hausdorff_px": 34,
    "class": 36,
}
"""Column -> its minimum width in a narrow panel.

Words are then cut, and tooltips show them in full. Other columns are as wide as their values need:
if they are shown, the table scrolls.
"""
_TAKES_THE_REST = "cause"
_SWATCH_PX = 16


class ObjectTableModel(ArrayModel):
    """Every object, sorted and filtered as the user asked for."""

    def __init__(self) -> None:
        super().__init__()
        #: All objects, in their own order.
        self.rows = ObjectRows.empty()
        #: Which objects are listed.
        self.filter = ObjectFilter()
        #: What makes one failure worse than another.
        self.worst = WorstFirst.IMPACT
        self.set_rows(self.rows)

    def set_rows(self, rows: ObjectRows) -> None:
        """Show other objects, sorted and filtered as before."""
        self.rows = rows
        self.show([_column(rows, column) for column in COLUMNS])

    @property
    def depends_on_verdicts(self) -> bool:
        """Whether another verdict can change which objects are listed, or their order."""
        return self._sort[0] == NAMES.index("verdict") or self.filter.verdicts is not None

    def repaint_verdicts(self, rows: ObjectRows) -> None:
        """Take rows that differ in their verdicts only, which changes neither list nor order."""
        self.rows = rows
        number = NAMES.index("verdict")
        columns = list(self.columns)
        columns[number] = _column(rows, COLUMNS[number])
        self.columns = tuple(columns)
        if len(self.order):
            self.dataChanged.emit(self.index(0, number), self.index(len(self.order) - 1, number))

    def set_filter(self, wanted: ObjectFilter) -> None:
        """List only some objects."""
        self.filter = wanted
        self.show(self.columns)

    def put_worst_first(self, by: WorstFirst) -> None:
        """Put failures first, the worst of them at the top."""
        self.worst = by
        self.sort(-1)

    def table_row(self, side: Side, object_row: int) -> int | None:
        """Find an object in the table; None if a filter hides it."""
        found = np.flatnonzero(self.order == self.rows.row_of(side, object_row))
        return int(found[0]) if len(found) else None

    def object_at(self, table_row: int) -> tuple[Side, int]:
        """Return side and row of the object in a table row."""
        return self.rows.object_of(int(self.order[table_row]))

    def failures(self) -> NDArray[np.intp]:
        """Return the object rows of the listed failures, in the order of the table."""
        return self.rows.listed_failures(self.order)

    def _arranged(self) -> NDArray[np.intp]:
        """Return the rows to list: sorted by a column, or the worst first."""
        number, descending = self._sort
        if number < 0:
            order = self.rows.worst_first(self.worst)
        else:
            order = self.rows.ordered_by(NAMES[number], descending=descending)
        if self.filter.is_open:
            return order
        return order[self.rows.let_through(self.filter)[order]]


def _column(rows: ObjectRows, column: ObjectColumn) -> Column:
    """Return a column of objects as the table shows it."""
    values = rows.values[column.name]
    shown = Column(
        column.title,
        column.meaning,
        values,
        text=lambda value: rows.text_of(value, column),
        is_text=column.kind is Kind.WORD,
        stretch=column.name == _TAKES_THE_REST,
        least=_LEAST_PX.get(column.name),
    )
    match column.name:
        case "status":
            return replace(
                shown,
                text=lambda code: styles.SHORT_STATUS_WORDS[STATUSES[int(code)]],
                tooltip=lambda row: _status_meaning(STATUSES[int(values[row])]),
                colour=lambda row: styles.STATUS_COLOURS[STATUSES[int(values[row])]],
                icon=_swatch,
            )
        case "cause":
            return replace(shown, tooltip=lambda row: _cause_meaning(CAUSES[int(values[row])]))
        case "class" | "partner_class":  # cut off in a narrow panel
            return replace(shown, tooltip=shown.cell)
    return shown


def _status_meaning(status: Status) -> str:
    return f"{styles.STATUS_WORDS[status]}: {styles.STATUS_MEANINGS[status]}"


def _cause_meaning(cause: Cause) -> str | None:
    return f"{cause}: {styles.CAUSE_MEANINGS[cause]}" if cause else None


def _swatch(colour: Rgb) -> QIcon:
    return swatch_icon(colour, size=_SWATCH_PX)
