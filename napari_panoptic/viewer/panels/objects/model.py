"""The objects of a label pair as Qt asks for them: their texts, order and choice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt
from qtpy.QtGui import QIcon

from napari_panoptic.display import styles
from napari_panoptic.display.object_rows import (
    COLUMNS,
    Kind,
    ObjectFilter,
    ObjectRows,
    WorstFirst,
)
from napari_panoptic.values.vocabulary import CAUSES, STATUS_CODE, STATUSES, Side, Status
from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.kit.widgets import swatch_icon

_SWATCH_PX = 16
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class ObjectTableModel(QAbstractTableModel):
    """Every object, sorted and filtered as the user asked for.

    Columns stay where they are; only an array of row numbers is sorted and
    filtered.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows = ObjectRows.empty()
        self._all_sorted: NDArray[np.intp] = np.zeros(0, np.intp)
        self._order: NDArray[np.intp] = np.zeros(0, np.intp)
        self._filter = ObjectFilter()
        self._sort: tuple[str, bool] | None = None
        self._worst = WorstFirst.IOU
        self._swatches: dict[Status, QIcon] = {}

    @property
    def rows(self) -> ObjectRows:
        """All objects, in their own order."""
        return self._rows

    @property
    def order(self) -> NDArray[np.intp]:
        """The object row of each table row."""
        return self._order

    @property
    def filter(self) -> ObjectFilter:
        """Which objects are listed."""
        return self._filter

    @property
    def worst(self) -> WorstFirst:
        """What makes one failure worse than another."""
        return self._worst

    def set_rows(self, rows: ObjectRows) -> None:
        """Show other objects, sorted and filtered as before."""
        self.beginResetModel()
        self._rows = rows
        self._all_sorted = self._sorted()
        self._order = self._filtered()
        self.endResetModel()

    @property
    def depends_on_verdicts(self) -> bool:
        """Whether another verdict can change which objects are listed, or their order."""
        by_verdict = self._sort is not None and self._sort[0] == "verdict"
        return by_verdict or self._filter.verdicts is not None

    def repaint_verdicts(self, rows: ObjectRows) -> None:
        """Take rows that differ in their verdicts only, which changes neither list nor order."""
        self._rows = rows
        if len(self._order):
            column = _column("verdict")
            self.dataChanged.emit(self.index(0, column), self.index(len(self._order) - 1, column))

    def set_filter(self, wanted: ObjectFilter) -> None:
        """List only some objects."""
        self.beginResetModel()
        self._filter = wanted
        self._order = self._filtered()
        self.endResetModel()

    def put_worst_first(self, by: WorstFirst) -> None:
        """Put failures first, the worst of them at the top."""
        self._worst = by
        self.sort_by(None)

    def sort_by(self, name: str | None, *, descending: bool = False) -> None:
        """Sort by a column; None puts the worst first."""
        self._sort = None if name is None else (name, descending)
        # The rows stay, only their order changes: what is selected stays so.
        self.layoutAboutToBeChanged.emit()
        before, kept = self._order, self.persistentIndexList()
        self._all_sorted = self._sorted()
        self._order = self._filtered()
        places = np.zeros(len(self._rows), np.intp)
        places[self._order] = np.arange(len(self._order))
        moved = [self.index(int(places[before[at.row()]]), at.column()) for at in kept]
        self.changePersistentIndexList(kept, moved)
        self.layoutChanged.emit()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort as a click on a header asks for; column -1 puts the worst first."""
        name = COLUMNS[column].name if column >= 0 else None
        self.sort_by(name, descending=order == Qt.SortOrder.DescendingOrder)

    def table_row(self, side: Side, object_row: int) -> int | None:
        """Find an object in the table; None if a filter hides it."""
        found = np.flatnonzero(self._order == self._rows.row_of(side, object_row))
        return int(found[0]) if len(found) else None

    def object_at(self, table_row: int) -> tuple[Side, int]:
        """Return side and row of the object in a table row."""
        return self._rows.object_of(int(self._order[table_row]))

    def failures(self) -> NDArray[np.intp]:
        """Return the object rows of the listed failures, in the order of the table."""
        found: NDArray[np.intp] = self._order[self._marks()[self._order]]
        return found

    def _marks(self) -> NDArray[np.bool_]:
        """Mark the failures; a misclassified pair only once where both sides are listed."""
        rows = self._rows
        marks = rows.failures()
        misclassified = rows.values["status"] == STATUS_CODE[Status.MISCLASSIFIED]
        on_reference = np.arange(len(rows)) < rows.n_reference
        if (misclassified & on_reference)[self._order].any():
            marks &= on_reference | ~misclassified
        return marks

    def rowCount(self, parent: QModelIndex | None = None) -> int:  # noqa: N802
        """Count the listed objects."""
        return 0 if parent is not None and parent.isValid() else len(self._order)

    def columnCount(self, parent: QModelIndex | None = None) -> int:  # noqa: N802
        """Count the columns."""
        return 0 if parent is not None and parent.isValid() else len(COLUMNS)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, colour swatch, alignment or explanation of a cell."""
        if not index.isValid():
            return None
        column = COLUMNS[index.column()]
        row = int(self._order[index.row()])
        if role == Qt.ItemDataRole.DisplayRole:
            if column.name == "status":
                status = STATUSES[int(self._rows.values["status"][row])]
                return styles.SHORT_STATUS_WORDS[status]
            return shown(self._rows.text(row, column))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _LEFT if column.kind is Kind.WORD else _RIGHT
        if role == Qt.ItemDataRole.DecorationRole and column.name == "status":
            return self._swatch(STATUSES[int(self._rows.values["status"][row])])
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._explanation(row, column.name)
        return None

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return title and meaning of a column."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section].title
        if role == Qt.ItemDataRole.ToolTipRole:
            return COLUMNS[section].meaning
        return None

    def _swatch(self, status: Status) -> QIcon:
        if status not in self._swatches:
            colour = styles.STATUS_COLOURS[status]
            self._swatches[status] = swatch_icon(colour, size=_SWATCH_PX)
        return self._swatches[status]

    def _explanation(self, row: int, column: str) -> str | None:
        if column == "status":
            status = STATUSES[int(self._rows.values["status"][row])]
            return f"{styles.STATUS_WORDS[status]}: {styles.STATUS_MEANINGS[status]}"
        if column == "cause":
            cause = CAUSES[int(self._rows.values["cause"][row])]
            return f"{cause}: {styles.CAUSE_MEANINGS[cause]}" if cause else None
        if column in ("class", "partner_class"):  # cut off in a narrow panel
            return shown(self._rows.text(row, COLUMNS[_column(column)])) or None
        return None

    def _sorted(self) -> NDArray[np.intp]:
        """Sort all rows, also those that the filter holds back: filtering is then no sorting."""
        if self._sort is None:
            return self._rows.worst_first(self._worst)
        return self._rows.ordered_by(self._sort[0], descending=self._sort[1])

    def _filtered(self) -> NDArray[np.intp]:
        if self._filter.is_open:
            return self._all_sorted
        chosen: NDArray[np.intp] = self._all_sorted[
            self._rows.let_through(self._filter)[self._all_sorted]
        ]
        return chosen


def _column(name: str) -> int:
    return [column.name for column in COLUMNS].index(name)
