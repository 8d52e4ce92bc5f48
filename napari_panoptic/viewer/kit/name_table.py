"""A table of things with names and a field that filters them, and a list of sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QWidget,
)

from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.keys import FILTER_KEYS
from napari_panoptic.viewer.kit.layouts import Grow, lay_out
from napari_panoptic.viewer.kit.shown import WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import is_desk_key

LEAST_TABLE_PX = 46
"""The header and a row: a low dock must not make the window higher than a small screen."""
SPACING_PX = 3
NOTHING_MATCHES = "No name contains this text. Press Esc to list all."


class NameTable(QWidget):
    """A sortable table whose rows have names; the field above it filters them.

    Parameters
    ----------
    title
        What assistive technology calls the table.
    hint
        The text of the empty field; no field if empty.
    """

    chosen = Signal(str)
    clicked = Signal(str)  # also a row that was current before

    def __init__(self, title: str, hint: str = "") -> None:
        super().__init__()
        self.table = ArrayTable()
        self.table.setAccessibleName(title)
        self.table.setMinimumHeight(LEAST_TABLE_PX)
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.filter = _FilterField(hint)
        self.filter_row = QHBoxLayout()
        self.filter_row.addWidget(self.filter, 1)
        self._nothing = WrappedLabel(NOTHING_MATCHES)
        self._nothing.hide()
        self._names: tuple[str, ...] = ()
        self._columns: tuple[Column, ...] = ()
        self._words: list[str] = []
        self._marked: str | None = None
        self.filter.setVisible(bool(hint))
        self.filter.textChanged.connect(lambda _: self._show())
        self.filter.down_pressed.connect(self._enter_table)
        self.filter.entered.connect(self._choose_first)
        self.table.row_chosen.connect(lambda row, _column: self._on_row(row))
        self.table.centre_wanted.connect(self._on_row)
        self.table.clicked.connect(lambda _index: self._on_clicked())
        lay_out(self, self.filter_row, self._nothing, Grow(self.table))

    def show_rows(
        self, names: Sequence[str], columns: Sequence[Column], groups: Sequence[str] | None = None
    ) -> None:
        """Show rows, sorted and filtered as before.

        Parameters
        ----------
        names
            The name of each row.
        columns
            Their values.
        groups
            Texts that the filter searches beside the names, such as patients.
        """
        is_same = self._names == tuple(names)
        self._names, self._columns = tuple(names), tuple(columns)
        searched = names if groups is None else map("\n".join, zip(names, groups, strict=True))
        self._words = [words.casefold() for words in searched]
        if not is_same:
            self.table.show_rows(self._columns, self._listed())
        self._show()

    def height_for(self, rows: int) -> int:
        """Return the height in px with the field and a number of rows in sight."""
        table, heading = self.table, self.table.heading.sizeHint().height()
        field = 0 if self.filter.isHidden() else self.filter_row.sizeHint().height() + SPACING_PX
        return field + heading + rows * table.row_height + 2 * table.frameWidth()

    def mark(self, name: str | None) -> None:
        """Select a row without choosing it; it stays so while it is filtered out."""
        self._marked = name
        self.table.select(self._names.index(name) if name in self._names else None)

    def choose(self, name: str) -> None:
        """Choose a row, as a click on it does."""
        self.table.select_row(self.table.rows().index(self._names.index(name)))

    def focus_filter(self) -> None:
        """Put the keyboard focus into the field."""
        self.filter.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.filter.selectAll()

    def selected(self) -> str | None:
        """Return the name of the selected row."""
        row = self.table.selected()
        return None if row is None else self._names[row]

    def listed(self) -> list[str]:
        """Return the names in the order in which they are listed."""
        return [self._names[row] for row in self.table.rows()]

    def text(self, name: str, title: str) -> str:
        """Return the text of a row below a heading."""
        return self._column(title).cell(self._names.index(name))

    def tooltip(self, name: str, title: str) -> str:
        """Return the tooltip of a row below a heading."""
        tooltip = self._column(title).tooltip
        return "" if tooltip is None else tooltip(self._names.index(name)) or ""

    def _column(self, title: str) -> Column:
        return self._columns[self.table.titles().index(title)]

    def _listed(self) -> NDArray[np.bool_] | None:
        """Mark the rows that contain all words of the field, in any order."""
        wanted = self.filter.text().casefold().split()
        if not wanted:
            return None
        return np.array([all(word in words for word in wanted) for words in self._words], bool)

    def _show(self) -> None:
        listed = self._listed()
        self.table.update_rows(self._columns, listed)
        if self._marked is not None and self.table.selected() is None:
            self.mark(self._marked)
        self._nothing.setVisible(listed is not None and not listed.any())

    def _enter_table(self) -> None:
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)
        if self.table.selected() is None:
            self.table.select_row(0 if self.table.rows() else None)

    def _choose_first(self) -> None:
        if rows := self.table.rows():
            self.table.select(rows[0])
            self._on_row(rows[0])
            self.filter.left.emit()

    def _on_clicked(self) -> None:
        row = self.table.selected()
        if row is not None:
            self.clicked.emit(self._names[row])

    def _on_row(self, row: int) -> None:
        self._marked = self._names[row]
        self.chosen.emit(self._names[row])


class _FilterField(QLineEdit):
    """A field that gives the keys back with Esc, and leads into the table below it."""

    left = Signal()  # by Esc, or by Enter where a row was chosen with it
    entered, down_pressed = Signal(), Signal()

    def __init__(self, hint: str) -> None:
        super().__init__()
        self.setPlaceholderText(hint)
        self.setAccessibleName(hint)
        self.setClearButtonEnabled(True)
        keys = [f"{key.text}: {key.meaning}" for key in FILTER_KEYS]
        self.setToolTip("\n".join((f"{hint}. Several words must all occur.", *keys)))

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Take Esc, Enter and Down; everything else is typed."""
        if event is None or event.key() not in _FIELD_SIGNALS:
            super().keyPressEvent(event)
            return
        event.accept()
        if event.key() == Qt.Key.Key_Escape:
            self.clear()
        getattr(self, _FIELD_SIGNALS[event.key()]).emit()


_FIELD_SIGNALS: dict[int, str] = {
    Qt.Key.Key_Escape: "left",
    Qt.Key.Key_Return: "entered",
    Qt.Key.Key_Enter: "entered",
    Qt.Key.Key_Down: "down_pressed",
}


_LEAST_PX = 90


class SentenceList(QListWidget):
    """Sentences of which one is chosen by a click, Enter or Space; hidden without any."""

    opened = Signal(int)
    rested = Signal(int)  # the row that the keys or the mouse went to

    def __init__(self, title: str) -> None:
        super().__init__()
        self.setWordWrap(True)
        self.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setSpacing(2)
        self.setMinimumHeight(_LEAST_PX)
        self.setAccessibleName(title)
        self.currentRowChanged.connect(self._on_row)
        self.itemClicked.connect(lambda item: self.opened.emit(self.row(item)))

    def fill(self, sentences: Sequence[str], tooltips: Sequence[str] = ()) -> None:
        """Show other sentences, the first one current."""
        self.clear()
        for place, text in enumerate(sentences):
            item = QListWidgetItem(shown(f"{place + 1}. {text}"))
            item.setToolTip(shown(tooltips[place]) if tooltips else "")
            self.addItem(item)
        self.setVisible(bool(sentences))
        if sentences:
            self.setCurrentRow(0)

    def texts(self) -> list[str]:
        """Return the sentences."""
        items = (self.item(row) for row in range(self.count()))
        return [item.text() for item in items if item is not None]

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Open on Enter and Space; letters go to the desk."""
        keys = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
        if event is not None and event.key() in keys and self.currentRow() >= 0:
            self.opened.emit(self.currentRow())
        elif event is not None and is_desk_key(event):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def _on_row(self, row: int) -> None:
        if row >= 0:
            self.rested.emit(row)
