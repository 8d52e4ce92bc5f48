"""The table of the window: columns of values, sorted and filtered without moving one of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QAbstractTableModel, QEvent, QItemSelectionModel, QModelIndex, Qt
from qtpy.QtGui import QFont, QFontInfo, QFontMetrics, QIcon, QKeyEvent, QMouseEvent, QResizeEvent
from qtpy.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTableView,
    QWidget,
)

from napari_panoptic.values.cohort import Rgb
from napari_panoptic.viewer.kit.events import Within
from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.kit.widgets import is_desk_key, outline_icon, qcolor, viewport_of

_MARGIN_PX = 12
"""Beside the longest text of a column."""
_ARROW_PX = 14
"""Of the arrow beside the heading of the column that is sorted by."""
_ICON_PX = 22
"""Of the icon of a cell, with its margin."""
_LEAST_PX = 40
"""Of a column that shares the room left by others."""
_LETTERS_PX = 12
"""Height of the letters for which the least widths of columns are made."""
_NARROWEST_COLUMN = 24
_LEAST_ROW_PX, _ROW_MARGIN_PX = 20, 4
"""Height of a row in small letters, and its margin beside larger ones."""
_MOST_CODES = 100
"""Integers in a smaller range may be codes of words, so that each of them is written."""
_MEASURED = 20
"""How many of the longest texts of a column are measured."""
_TINT: Rgb = (90, 150, 210)
"""Colour of shaded cells."""
CENTRE_KEYS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter)
"""Keys that bring the subject of a row into view."""


def _small_outline(colour: Rgb) -> QIcon:
    return outline_icon(colour, 2.5, size=14)


@dataclass(frozen=True, eq=False)
class Column:
    """One column: values, and how to show them."""

    #: Its heading, and one sentence about it.
    title: str
    meaning: str
    #: (n,): the keys for sorting. NaN comes last.
    values: NDArray[Any]
    #: Returns the text of a value.
    text: Callable[[Any], str] = str
    #: Returns the tooltip of a row; None for no tooltips.
    tooltip: Callable[[int], str | None] | None = None
    #: Colour of a row's icon; None for no icon.
    colour: Callable[[int], Rgb | None] | None = None
    #: Draws the icon of a colour.
    icon: Callable[[Rgb], QIcon] = _small_outline
    #: Returns how strongly a row is tinted, from 0 to 1; None for no tint.
    shade: Callable[[int], float] | None = None
    #: Returns whether a row is bold; None if none is.
    is_bold: Callable[[int], bool] | None = None
    #: Returns the request of a click on a row; None if nothing can be clicked.
    target: Callable[[int], object] | None = None
    #: The request of a click on the heading.
    title_target: object = None
    #: Least width in px in a table of which no column shares the room.
    width: int = 60
    #: Whether it is aligned left, as words are.
    is_text: bool = False
    #: The subject of the column, however its title is written; None for most.
    key: str | None = None
    #: Row -> its text, for rows in which it does not follow from the value.
    instead: Mapping[int, str] = field(default_factory=dict)
    #: Whether the column takes a share of the room that the others leave.
    stretch: bool = False
    #: Whether a column that shares the room is never narrower than its texts; the table scrolls
    #: instead.
    is_whole: bool = False
    #: Width in px, with letters of 12 px, to which a column shrinks where there is no room for its
    #: texts; None for columns that are never cut, or that share the room.
    least: int | None = None

    def cell(self, row: int) -> str:
        """Return the text of a row."""
        return self.instead.get(row) or self.text(self.values[row])

    @property
    def alignment(self) -> Qt.AlignmentFlag:
        """Where texts and heading stand: words on the left, figures on the right."""
        side = Qt.AlignmentFlag.AlignLeft if self.is_text else Qt.AlignmentFlag.AlignRight
        return side | Qt.AlignmentFlag.AlignVCenter

    @cached_property
    def longest(self) -> tuple[str, ...]:
        """The longest texts, of which letters decide which one is the widest.

        Of numbers only the smallest and the largest are written.
        """
        texts = {*map(self.text, _extremes(self.values)), *self.instead.values()}
        return tuple(sorted(texts, key=lambda text: (-len(text), text))[:_MEASURED])


def _extremes(values: NDArray[Any]) -> list[Any]:
    """Return the values of which one has the longest text."""
    if not len(values) or values.dtype.kind not in "fiu":
        return list(set(values.tolist()))
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)  # NaN only where all are
    if values.dtype.kind == "f":
        return [] if np.isnan(low) else [low, high]
    if high - low < _MOST_CODES:
        return [low + code for code in np.flatnonzero(np.bincount((values - low).astype(np.intp)))]
    return [low, high]


def share_room(
    room: int, least: Sequence[int], wanted: Sequence[int], grows: Sequence[bool]
) -> list[int]:
    """Return the widths of columns in a room.

    If there is not enough for all, the wide columns shrink, down to the width of the narrower
    ones; none becomes narrower than its least width. Room that is left goes to the columns that
    grow, the narrower ones first.
    """
    low, high = np.array(least, int), np.array(wanted, int)
    if high.sum() <= room:
        low, high = high, np.where(grows, room, high)
    levels = range(room + 1)
    level = bisect_right(levels, room, key=lambda width: int(np.clip(width, low, high).sum())) - 1
    widths = np.clip(max(level, 0), low, high)
    resizable = np.flatnonzero(widths < high)
    if len(resizable) and widths.sum() < room:
        widths[resizable[0]] += room - widths.sum()  # pixels that cannot be divided
    return [int(width) for width in widths]


class ArrayModel(QAbstractTableModel):
    """Columns of one length, and the order in which their rows are shown."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: tuple[Column, ...] = ()
        #: The row in the columns of each row of the table.
        self.order: NDArray[np.intp] = np.zeros(0, np.intp)
        self._chosen: NDArray[np.bool_] | None = None
        self._sort = (-1, False)
        self._icons: dict[tuple[Callable[[Rgb], QIcon], Rgb], QIcon] = {}

    def show(self, columns: Sequence[Column], chosen: NDArray[np.bool_] | None = None) -> None:
        """Show other columns; of their rows only the chosen ones."""
        self.beginResetModel()
        self.columns, self._chosen = tuple(columns), chosen
        self.order = self._arranged()
        self.endResetModel()

    def update(self, columns: Sequence[Column], chosen: NDArray[np.bool_] | None = None) -> None:
        """Show other values of the same rows; the selection is kept."""
        self.layoutAboutToBeChanged.emit()
        before, kept = self.order, self.persistentIndexList()
        self.columns, self._chosen = tuple(columns), chosen
        self.order = self._arranged()
        if kept:
            places = np.full(max(before.max(), self.order.max(initial=0)) + 1, -1)
            places[self.order] = np.arange(len(self.order))
            moved = [self.index(int(places[before[at.row()]]), at.column()) for at in kept]
            self.changePersistentIndexList(kept, moved)
        self.layoutChanged.emit()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; -1 for the rows' own order. The selection is kept."""
        self._sort = column, order == Qt.SortOrder.DescendingOrder
        self.update(self.columns, self._chosen)

    def rowCount(self, parent: QModelIndex | None = None) -> int:  # noqa: N802
        """Count the rows shown."""
        return 0 if parent is not None and parent.isValid() else len(self.order)

    def columnCount(self, parent: QModelIndex | None = None) -> int:  # noqa: N802
        """Count the columns."""
        return 0 if parent is not None and parent.isValid() else len(self.columns)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what Qt asks for of a cell."""
        if not index.isValid():
            return None
        column, row = self.columns[index.column()], int(self.order[index.row()])
        roles = Qt.ItemDataRole
        if role == roles.DisplayRole:
            return shown(column.cell(row))
        if role == roles.TextAlignmentRole:
            return column.alignment
        if role == roles.ToolTipRole and column.tooltip is not None:
            return shown(column.tooltip(row) or "") or None
        if role == roles.DecorationRole and column.colour is not None:
            colour = column.colour(row)
            return None if colour is None else self._icon(column.icon, colour)
        if role == roles.FontRole and column.is_bold is not None and column.is_bold(row):
            font = QFont()
            font.setBold(True)
            return font
        if role == roles.BackgroundRole and column.shade is not None and column.shade(row) > 0:
            tint = qcolor(_TINT)
            tint.setAlphaF(min(0.15 + 0.7 * column.shade(row), 1.0))
            return tint
        return None

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return title and meaning of a column."""
        if orientation != Qt.Orientation.Horizontal or section >= len(self.columns):
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return shown(column.title)
        if role == Qt.ItemDataRole.ToolTipRole:
            return shown(column.meaning)
        return column.alignment if role == Qt.ItemDataRole.TextAlignmentRole else None

    def target(self, index: QModelIndex) -> object:
        """Return the request of a click on a cell, or None."""
        target = self.columns[index.column()].target if index.isValid() else None
        return None if target is None else target(int(self.order[index.row()]))

    def _icon(self, draw: Callable[[Rgb], QIcon], colour: Rgb) -> QIcon:
        if (draw, colour) not in self._icons:
            self._icons[draw, colour] = draw(colour)
        return self._icons[draw, colour]

    def _arranged(self) -> NDArray[np.intp]:
        """Return the rows to show, in their order."""
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


class ArrayTable(QTableView):
    """Shows an array model; rows are chosen whole, by mouse or keys.

    A third click on a heading brings back the rows' own order. Ctrl and the arrow keys sort too:
    left and right by another column, up and down ascending and descending. Columns are as wide as
    their texts, as far as there is room.

    Signals carry the row in the arrays, wherever it stands in the table.
    Selecting from outside emits nothing.

    Parameters
    ----------
    parent
        As in Qt.
    model
        The model; an empty one if None.
    """

    row_chosen = Signal(int, int)  # row, column
    cell_activated = Signal(int, int)  # row, column: by a click, Enter or Space
    row_wanted = Signal(int, int)  # row, column: either, but once for a click on another row
    centre_wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None, model: ArrayModel | None = None) -> None:
        super().__init__(parent)
        self._model = ArrayModel() if model is None else model
        self._model.setParent(self)  # or garbage collection deletes it, in whatever thread
        self.setModel(self._model)
        #: True while the selection changes from outside.
        self.quiet = Within()
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        vertical, horizontal = header_of(self.verticalHeader()), self.heading
        vertical.setVisible(False)
        vertical.setDefaultSectionSize(self.row_height)
        vertical.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        horizontal.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        horizontal.setSortIndicatorClearable(True)
        horizontal.setMinimumSectionSize(_NARROWEST_COLUMN)
        horizontal.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        horizontal.setHighlightSections(False)
        self.setSortingEnabled(True)
        # Connected last: the rows are sorted by then.
        horizontal.sortIndicatorChanged.connect(lambda _column, _order: self._on_sorted())
        self._model.modelReset.connect(self.fit_columns)
        self.doubleClicked.connect(lambda index: self._centre(index))
        self.clicked.connect(lambda index: self._activate(index))
        self.selection().currentChanged.connect(self._on_current)
        self._is_pressed_again = False

    def show_rows(self, columns: Sequence[Column], chosen: NDArray[np.bool_] | None = None) -> None:
        """Show other rows, none of them selected."""
        with self.quiet:
            if [column.title for column in columns] != self.titles():
                self.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
            self._model.show(columns, chosen)

    def update_rows(
        self, columns: Sequence[Column], chosen: NDArray[np.bool_] | None = None
    ) -> None:
        """Show other values of the listed rows; the selection is kept."""
        if [column.title for column in columns] != self.titles():
            self.show_rows(columns, chosen)
            return
        with self.quiet:
            self._model.update(columns, chosen)
        self.fit_columns()

    def rows(self) -> list[int]:
        """Return the rows in the order in which they are shown."""
        return [int(row) for row in self._model.order]

    def texts(self) -> list[list[str]]:
        """Return the texts of the cells, row by row."""
        columns = self._model.columns
        return [[column.cell(int(row)) for column in columns] for row in self._model.order]

    def titles(self) -> list[str]:
        """Return the headings."""
        return [column.title for column in self._model.columns]

    def key(self, column: int) -> str | None:
        """Return the subject of a column."""
        return self._model.columns[column].key

    @property
    def heading(self) -> QHeaderView:
        """The headings of the columns."""
        return header_of(self.horizontalHeader())

    @property
    def row_height(self) -> int:
        """Height of a row in px, also of larger letters."""
        return max(_LEAST_ROW_PX, self.fontMetrics().height() + _ROW_MARGIN_PX)

    @property
    def sorted_by(self) -> int:
        """The column that the rows are sorted by; -1 for their own order."""
        return self.heading.sortIndicatorSection()

    def selection(self) -> QItemSelectionModel:
        """Return the selected rows."""
        selection = self.selectionModel()
        if selection is None:
            raise RuntimeError("a table view with a model always has a selection model")
        return selection

    def selected(self) -> int | None:
        """Return the selected row."""
        index = self.currentIndex()
        return int(self._model.order[index.row()]) if index.isValid() else None

    def select(self, row: int | None) -> None:
        """Select a row and scroll to it; one that is not listed deselects."""
        places = [] if row is None else np.flatnonzero(self._model.order == row).tolist()
        with self.quiet:
            self.select_row(places[0] if places else None)

    def select_row(self, row: int | None) -> None:
        """Select a row of the table alone, and scroll to it; None deselects."""
        if row is None:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
            return
        index = self._model.index(row, max(self.currentIndex().column(), 0))
        flags = QItemSelectionModel.SelectionFlag
        self.selection().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
        self.scrollTo(index, QAbstractItemView.ScrollHint.EnsureVisible)

    def fit_columns(self) -> None:
        """Share the room among the visible columns."""
        columns = self._model.columns
        visible = [k for k in range(len(columns)) if not self.isColumnHidden(k)]
        wanted = [self._needed_px(k) for k in visible]
        least = [min(self._least_px(k), px) for k, px in zip(visible, wanted, strict=True)]
        grows = [columns[k].stretch for k in visible]
        if not any(grows):
            wanted = [max(columns[k].width, px) for k, px in zip(visible, wanted, strict=True)]
        widths = share_room(viewport_of(self).width(), least, wanted, grows)
        for k, width in zip(visible, widths, strict=True):
            self.setColumnWidth(k, width)
        # Qt cuts headings of two lines as if they were one line.
        has_lines = any("\n" in column.title for column in columns)
        mode = Qt.TextElideMode.ElideNone if has_lines else Qt.TextElideMode.ElideRight
        self.heading.setTextElideMode(mode)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Centre on Space or Enter, sort with Ctrl and an arrow key.

        Letters go to the desk instead of searching the table.
        """
        if event is None:
            return
        self._is_pressed_again = False
        is_sorting = self.isSortingEnabled() and bool(
            event.modifiers() & Qt.KeyboardModifier.ControlModifier
        )
        if event.key() in CENTRE_KEYS and self.currentIndex().isValid():
            self._centre(self.currentIndex())
            self._activate(self.currentIndex())
        elif is_sorting and event.key() in _STEPS:
            self._sort_by_next(_STEPS[event.key()])
        elif is_sorting and event.key() in _ORDERS:
            self.sortByColumn(self.sorted_by, _ORDERS[event.key()])
        elif is_desk_key(event):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Note whether the press makes another cell the current one."""
        self._is_pressed_again = False
        super().mousePressEvent(event)

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Share the room again."""
        super().resizeEvent(event)
        self.fit_columns()

    def changeEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Fit rows and columns to other letters."""
        super().changeEvent(event)
        if event is not None and event.type() == QEvent.Type.FontChange:
            header_of(self.verticalHeader()).setDefaultSectionSize(self.row_height)
            self.fit_columns()

    def _needed_px(self, number: int) -> int:
        """Return the width of a column's longest text, or of its heading."""
        title = self._model.columns[number].title
        heading = max(map(self.fontMetrics().horizontalAdvance, title.split("\n")))
        heading += _ARROW_PX if number == self.sorted_by else 0
        return max(self._text_px(number), heading + _MARGIN_PX, _NARROWEST_COLUMN)

    def _text_px(self, number: int) -> int:
        """Return the width of a column's longest text."""
        column, font = self._model.columns[number], QFont(self.font())
        font.setBold(column.is_bold is not None)
        icon = 0 if column.colour is None else _ICON_PX
        texts = map(QFontMetrics(font).horizontalAdvance, column.longest)
        return max(texts, default=0) + icon + _MARGIN_PX

    def _least_px(self, number: int) -> int:
        """Return the width to which a column may shrink."""
        column = self._model.columns[number]
        least = column.least
        if least is None and column.stretch and not column.is_whole:
            least = _LEAST_PX
        if least is None:
            return self._needed_px(number)
        return round(least * QFontInfo(self.font()).pixelSize() / _LETTERS_PX)

    def _sort_by_next(self, step: int) -> None:
        """Sort by the next visible column, after the last one by none."""
        count = self._model.columnCount()
        columns = [-1, *(k for k in range(count) if not self.isColumnHidden(k))]
        place = columns.index(self.sorted_by) if self.sorted_by in columns else 0
        following = columns[(place + step) % len(columns)]
        self.sortByColumn(following, self.heading.sortIndicatorOrder())

    def _on_sorted(self) -> None:
        """Make room for the arrow, and keep the selected row in sight."""
        self.fit_columns()
        if self.currentIndex().isValid():
            self.scrollTo(self.currentIndex())

    def _on_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid() and not self.quiet:
            self._is_pressed_again = True
            place = int(self._model.order[current.row()]), current.column()
            self.row_chosen.emit(*place)
            self.row_wanted.emit(*place)

    def _activate(self, index: QModelIndex) -> None:
        place = int(self._model.order[index.row()]), index.column()
        self.cell_activated.emit(*place)
        if not self._is_pressed_again:
            self.row_wanted.emit(*place)

    def _centre(self, index: QModelIndex) -> None:
        self.centre_wanted.emit(int(self._model.order[index.row()]))


def header_of(header: QHeaderView | None) -> QHeaderView:
    """Return a header of a table, which Qt may lack according to its types."""
    if header is None:
        raise RuntimeError("a table view always has headers")
    return header


_STEPS: dict[int, int] = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_ORDERS: dict[int, Qt.SortOrder] = {
    Qt.Key.Key_Up: Qt.SortOrder.AscendingOrder,
    Qt.Key.Key_Down: Qt.SortOrder.DescendingOrder,
}
