"""A table over arrays, sorted and filtered without moving a single value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QAbstractTableModel, QEvent, QModelIndex, Qt
from qtpy.QtGui import QKeyEvent, QResizeEvent
from qtpy.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem, QWidget

from napari_panoptic.values.cohort import Rgb
from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.kit.sortable_view import CENTRE_KEYS, SortableView
from napari_panoptic.viewer.kit.widgets import is_desk_key, outline_icon, viewport_of

_IS_CUT_AT_END = Qt.ItemDataRole.UserRole
_MARGIN_PX = 12
"""Beside the longest text of a column."""
_ARROW_PX = 14
"""Of the arrow beside the heading of the column that is sorted by."""
_ICON_PX = 22
"""Of the icon of a cell, with its margin."""
_LEAST_PX = 40
"""Of a column that shares the room left by others."""


@dataclass(frozen=True, eq=False)
class Column:
    """One column: values, and how to show them."""

    #: Its heading, and one sentence about it.
    title: str
    meaning: str
    #: (n,): what it is sorted by. NaN comes last.
    values: NDArray[Any]
    #: Returns the text of a value.
    text: Callable[[Any], str] = str
    #: Returns the tooltip of a row; None for no tooltips.
    tooltip: Callable[[int], str | None] | None = None
    #: Colour of a row's outline icon; None for no icon.
    colour: Callable[[int], Rgb | None] | None = None
    #: Width in px.
    width: int = 60
    #: Whether it is aligned left, as words are.
    is_text: bool = False
    #: What the column is about, however its title is written; None for most.
    key: str | None = None
    #: Row -> its text, for rows in which it does not follow from the value.
    instead: Mapping[int, str] = field(default_factory=dict)
    #: Whether the column shares the room that the others leave; then all columns are as wide as the
    #: table.
    stretch: bool = False
    #: Whether a column that shares the room is never narrower than its texts; the table scrolls
    #: instead.
    is_whole: bool = False
    #: Whether a text that is too long loses its end; else its middle.
    is_cut_at_end: bool = False

    def cell(self, row: int) -> str:
        """Return the text of a row."""
        return self.instead.get(row) or self.text(self.values[row])

    @cached_property
    def widest(self) -> str:
        """The longest text, for numbers that of the largest or smallest."""
        values = self.values
        if values.dtype.kind == "f":
            known = values[~np.isnan(values)]
            values = np.array([known.min(), known.max()]) if len(known) else known
        return max([*map(self.text, values), *set(self.instead.values())], key=len, default="")


class ArrayModel(QAbstractTableModel):
    """Columns of one length, and the order in which their rows are shown."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: tuple[Column, ...] = ()
        self.order: NDArray[np.intp] = np.zeros(0, np.intp)
        self._chosen: NDArray[np.bool_] | None = None
        self._sort = (-1, False)
        self._icons: dict[Rgb, Any] = {}

    def show(self, columns: Sequence[Column], chosen: NDArray[np.bool_] | None = None) -> None:
        """Show other columns; of their rows only the chosen ones."""
        self.beginResetModel()
        self.columns, self._chosen = tuple(columns), chosen
        self.order = self._arranged()
        self.endResetModel()

    def update(self, columns: Sequence[Column], chosen: NDArray[np.bool_] | None) -> None:
        """Show other values of the same rows; what is selected stays so."""
        self._rearrange(tuple(columns), chosen)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; -1 for the rows' own order. What is selected stays so."""
        self._sort = column, order == Qt.SortOrder.DescendingOrder
        self._rearrange(self.columns, self._chosen)

    def rowCount(self, parent: QModelIndex | None = None) -> int:  # noqa: N802
        """Count the rows shown."""
        return 0 if parent is not None and parent.isValid() else len(self.order)

    def columnCount(self, parent: QModelIndex | None = None) -> int:  # noqa: N802
        """Count the columns."""
        return 0 if parent is not None and parent.isValid() else len(self.columns)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return text, icon, alignment or tooltip of a cell."""
        column, row = self.columns[index.column()], int(self.order[index.row()])
        if role == Qt.ItemDataRole.DisplayRole:
            return shown(column.cell(row))
        if role == Qt.ItemDataRole.ToolTipRole and column.tooltip is not None:
            return shown(column.tooltip(row) or "") or None
        if role == Qt.ItemDataRole.DecorationRole and column.colour is not None:
            colour = column.colour(row)
            return None if colour is None else self._icon(colour)
        if role == _IS_CUT_AT_END:
            return column.is_cut_at_end
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignLeft if column.is_text else Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        return None

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return title and meaning of a column."""
        if orientation != Qt.Orientation.Horizontal or section >= len(self.columns):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return shown(self.columns[section].title)
        if role == Qt.ItemDataRole.ToolTipRole:
            return shown(self.columns[section].meaning)
        return None

    def _icon(self, colour: Rgb) -> Any:
        if colour not in self._icons:
            self._icons[colour] = outline_icon(colour, 2.5, size=14)
        return self._icons[colour]

    def _rearrange(self, columns: tuple[Column, ...], chosen: NDArray[np.bool_] | None) -> None:
        self.layoutAboutToBeChanged.emit()
        before, kept = self.order, self.persistentIndexList()
        self.columns, self._chosen = columns, chosen
        self.order = self._arranged()
        places = {int(row): place for place, row in enumerate(self.order)} if kept else {}
        moved = [places.get(int(before[at.row()])) for at in kept]
        self.changePersistentIndexList(
            kept,
            [
                QModelIndex() if place is None else self.index(place, at.column())
                for at, place in zip(kept, moved, strict=True)
            ],
        )
        self.layoutChanged.emit()

    def _arranged(self) -> NDArray[np.intp]:
        n = len(self.columns[0].values) if self.columns else 0
        number, descending = self._sort
        order = np.arange(n)
        if 0 <= number < len(self.columns):
            values = self.columns[number].values
            order = np.argsort(values, kind="stable")
            if descending:
                # Turned round, but equal ones and undefined ones stay as they were.
                order = (n - 1 - np.argsort(values[::-1], kind="stable"))[::-1]
            if values.dtype.kind == "f":
                undefined = np.isnan(values[order])
                order = np.concatenate([order[~undefined], order[undefined]])
        return order if self._chosen is None else order[self._chosen[order]]


class _Delegate(QStyledItemDelegate):
    """Cuts the end of texts off in columns that ask for that."""

    def initStyleOption(  # noqa: N802
        self, option: QStyleOptionViewItem | None, index: QModelIndex
    ) -> None:
        """Set how a text is cut."""
        super().initStyleOption(option, index)
        if option is not None and index.data(_IS_CUT_AT_END):
            option.textElideMode = Qt.TextElideMode.ElideRight


class ArrayTable(SortableView):
    """Shows an array model; rows are chosen by mouse or keys.

    Signals carry the row in the arrays, wherever it stands in the table.
    Selecting from outside emits nothing.
    """

    row_chosen = Signal(int, int)  # row, column
    cell_activated = Signal(int, int)  # row, column: by a click, Enter or Space
    centre_wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        model = ArrayModel()
        super().__init__(model, parent)
        model.setParent(self)  # or garbage collection deletes it, in whatever thread
        self._model = model
        self._is_synchronising = False
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setItemDelegate(_Delegate(self))
        self.doubleClicked.connect(self._on_double_click)
        self.clicked.connect(lambda index: self._activate(index))
        self.selection().currentChanged.connect(self._on_current)
        if (horizontal := self.horizontalHeader()) is not None:
            horizontal.sortIndicatorChanged.connect(lambda _column, _order: self._fit_columns())

    def show_rows(self, columns: Sequence[Column], chosen: NDArray[np.bool_] | None = None) -> None:
        """Show other rows; what was selected is so no more."""
        is_new = [column.title for column in columns] != self.titles()
        self._is_synchronising = True
        try:
            if is_new:
                self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
            self._model.show(columns, chosen)
        finally:
            self._is_synchronising = False
        for number, column in enumerate(columns if is_new else ()):
            self.setColumnWidth(number, column.width)
        self._show_heading_lines()
        self._fit_columns()

    def update_rows(
        self, columns: Sequence[Column], chosen: NDArray[np.bool_] | None = None
    ) -> None:
        """Show other values of the rows that are listed; what is selected stays so."""
        if [column.title for column in columns] != self.titles():
            self.show_rows(columns, chosen)
            return
        self._is_synchronising = True
        try:
            self._model.update(columns, chosen)
        finally:
            self._is_synchronising = False
        self._fit_columns()

    def rows(self) -> list[int]:
        """Return the rows in the order in which they are shown."""
        return [int(row) for row in self._model.order]

    def texts(self) -> list[list[str]]:
        """Return what the cells say, row by row."""
        columns = self._model.columns
        return [[column.cell(int(row)) for column in columns] for row in self._model.order]

    def titles(self) -> list[str]:
        """Return the headings."""
        return [column.title for column in self._model.columns]

    def key(self, column: int) -> str | None:
        """Return what a column is about."""
        return self._model.columns[column].key

    def selected(self) -> int | None:
        """Return the selected row."""
        index = self.currentIndex()
        return int(self._model.order[index.row()]) if index.isValid() else None

    def select(self, row: int | None) -> None:
        """Select a row and scroll to it; one that is not listed deselects."""
        places = [] if row is None else np.flatnonzero(self._model.order == row).tolist()
        self._is_synchronising = True
        try:
            self.select_row(places[0] if places else None)
        finally:
            self._is_synchronising = False

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Centre on Space or Enter; letters go to the desk instead of searching the table."""
        row = self.selected()
        if event is not None and event.key() in CENTRE_KEYS and row is not None:
            self.centre_wanted.emit(row)
            self._activate(self.currentIndex())
        elif event is not None and is_desk_key(event):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Share out the room again."""
        super().resizeEvent(event)
        self._fit_columns()

    def changeEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Fit the columns to other letters."""
        super().changeEvent(event)
        if event is not None and event.type() == QEvent.Type.FontChange:
            self._fit_columns()

    def _fit_columns(self) -> None:
        """Fit columns to their texts; stretched ones share the room.

        Whole ones are equally wide if there is room, otherwise as wide as their texts. Of others,
        the longest takes the rest.
        """
        columns = self._model.columns
        if not any(column.stretch for column in columns):
            return
        needed = [self._needed_px(k) for k in range(len(columns))]
        stretched = sorted((k for k, c in enumerate(columns) if c.stretch), key=needed.__getitem__)
        room = viewport_of(self).width()
        for k in range(len(columns)):
            if k not in stretched:
                self.setColumnWidth(k, needed[k])
                room -= self.columnWidth(k)
        if all(columns[k].is_whole for k in stretched):
            self._share_equally(stretched, needed, room)
            return
        for place, k in enumerate(stretched, start=1):
            share = room // (len(stretched) - place + 1)
            is_last = place == len(stretched)
            self.setColumnWidth(k, max(share if is_last else min(share, needed[k]), _LEAST_PX))
            room -= self.columnWidth(k)

    def _share_equally(self, stretched: Sequence[int], needed: Sequence[int], room: int) -> None:
        """Share the room among columns, the widest first; cut none."""
        for left, k in zip(range(len(stretched), 0, -1), reversed(stretched), strict=True):
            width = max(needed[k], room // left)
            self.setColumnWidth(k, width)
            room -= width

    def _show_heading_lines(self) -> None:
        """Show headings of two lines in full: Qt cuts them as if they were one line."""
        horizontal = self.horizontalHeader()
        if horizontal is not None:
            has_lines = any("\n" in title for title in self.titles())
            mode = Qt.TextElideMode.ElideNone if has_lines else Qt.TextElideMode.ElideRight
            horizontal.setTextElideMode(mode)

    def _needed_px(self, number: int) -> int:
        """Return the width of a column's longest text, or of its heading."""
        column, metrics = self._model.columns[number], self.fontMetrics()
        heading = max(map(metrics.horizontalAdvance, column.title.split("\n")))
        heading += _ARROW_PX if number == self.sorted_by else 0
        text = metrics.horizontalAdvance(column.widest) + (_ICON_PX if column.colour else 0)
        return max(text, heading) + _MARGIN_PX

    def _on_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid() and not self._is_synchronising:
            self.row_chosen.emit(int(self._model.order[current.row()]), current.column())

    def _activate(self, index: QModelIndex) -> None:
        self.cell_activated.emit(int(self._model.order[index.row()]), index.column())

    def _on_double_click(self, index: QModelIndex) -> None:
        self.centre_wanted.emit(int(self._model.order[index.row()]))
