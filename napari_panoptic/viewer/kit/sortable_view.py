"""What all tables have in common: rows chosen whole, and sorted by a click on a heading."""

from __future__ import annotations

from qtpy.QtCore import QAbstractTableModel, QItemSelectionModel, QModelIndex, Qt
from qtpy.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

ROW_HEIGHT = 20
_NARROWEST_COLUMN = 24


class SortableView(QTableView):
    """A table view without numbers and lines.

    A third click on a heading brings back the rows' own order, which models
    give for the column -1.

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
            vertical.setDefaultSectionSize(ROW_HEIGHT)
            vertical.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        if horizontal is not None:
            horizontal.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
            horizontal.setSortIndicatorClearable(True)
            horizontal.setMinimumSectionSize(_NARROWEST_COLUMN)
        self.setSortingEnabled(True)

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
