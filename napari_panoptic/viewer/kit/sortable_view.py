"""What all tables have in common: rows chosen whole, and sorted by a click on a heading."""

from __future__ import annotations

from qtpy.QtCore import QAbstractTableModel, QEvent, QItemSelectionModel, QModelIndex, Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

_LEAST_ROW_PX, _ROW_MARGIN_PX = 20, 4
"""Height of a row in small letters, and what it has beside larger ones."""
CENTRE_KEYS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)
"""Keys that bring what a row stands for into view."""
_NARROWEST_COLUMN = 24


class SortableView(QTableView):
    """A table view without numbers and lines.

    A third click on a heading brings back the rows' own order, which models
    give for the column -1. Ctrl and the arrow keys sort too: left and right by
    another column, up and down ascending and descending.

    Parameters
    ----------
    model
        What it shows.
    parent
        As in Qt.
    """

    def __init__(self, model: QAbstractTableModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModel(model)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setWordWrap(False)
        vertical, horizontal = self.verticalHeader(), self.horizontalHeader()
        if vertical is not None:
            vertical.setVisible(False)
            vertical.setDefaultSectionSize(self.row_height)
            vertical.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        if horizontal is not None:
            horizontal.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
            horizontal.setSortIndicatorClearable(True)
            horizontal.setMinimumSectionSize(_NARROWEST_COLUMN)
            horizontal.setHighlightSections(False)
            horizontal.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setSortingEnabled(True)
        if horizontal is not None:  # once it is sorted
            horizontal.sortIndicatorChanged.connect(lambda _column, _order: self._show_current())

    @property
    def row_height(self) -> int:
        """Height of a row in px, also of larger letters."""
        return max(_LEAST_ROW_PX, self.fontMetrics().height() + _ROW_MARGIN_PX)

    def changeEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Make rows as high as other letters need."""
        super().changeEvent(event)
        vertical = self.verticalHeader()
        if event is not None and event.type() == QEvent.Type.FontChange and vertical is not None:
            vertical.setDefaultSectionSize(self.row_height)

    @property
    def sorted_by(self) -> int:
        """The column that the rows are sorted by; -1 for their own order."""
        horizontal = self.horizontalHeader()
        return -1 if horizontal is None else horizontal.sortIndicatorSection()

    def selection(self) -> QItemSelectionModel:
        """Return what is selected."""
        selection = self.selectionModel()
        if selection is None:
            raise RuntimeError("a table view with a model always has a selection model")
        return selection

    def select_row(self, row: int | None) -> None:
        """Select a row of the table alone, and scroll to it; None deselects."""
        model = self.model()
        if row is None or model is None:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
            return
        index = model.index(row, max(self.currentIndex().column(), 0))
        flags = QItemSelectionModel.SelectionFlag
        self.selection().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
        self.scrollTo(index, QAbstractItemView.ScrollHint.EnsureVisible)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Sort with Ctrl and an arrow key."""
        is_ctrl = event is not None and event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if event is not None and is_ctrl and event.key() in _STEPS:
            self._sort_by_next(_STEPS[event.key()])
        elif event is not None and is_ctrl and event.key() in _ORDERS:
            self.sortByColumn(self.sorted_by, _ORDERS[event.key()])
        else:
            super().keyPressEvent(event)

    def _sort_by_next(self, step: int) -> None:
        """Sort by the next visible column, after the last one by none."""
        horizontal, model = self.horizontalHeader(), self.model()
        if horizontal is None or model is None:
            return
        columns = [k for k in range(-1, model.columnCount()) if k < 0 or not self.isColumnHidden(k)]
        place = columns.index(self.sorted_by) if self.sorted_by in columns else 0
        self.sortByColumn(columns[(place + step) % len(columns)], horizontal.sortIndicatorOrder())

    def _show_current(self) -> None:
        """Keep the selected row in sight where it is sorted elsewhere."""
        if self.currentIndex().isValid():
            self.scrollTo(self.currentIndex())


_STEPS: dict[int, int] = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_ORDERS: dict[int, Qt.SortOrder] = {
    Qt.Key.Key_Up: Qt.SortOrder.AscendingOrder,
    Qt.Key.Key_Down: Qt.SortOrder.DescendingOrder,
}
