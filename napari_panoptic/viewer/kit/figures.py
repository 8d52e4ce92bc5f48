"""Figures with their names, and small tables of figures; both can be links."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from psygnal import Signal
from qtpy.QtCore import QEvent, QModelIndex, QRectF, Qt
from qtpy.QtGui import QEnterEvent, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from qtpy.QtWidgets import (
    QAbstractItemView,
    QSizePolicy,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.values.cohort import Rgb
from napari_panoptic.viewer.kit.array_table import CENTRE_KEYS, ArrayTable, Column
from napari_panoptic.viewer.kit.shown import PlainLabel, RichLabel, shown
from napari_panoptic.viewer.kit.widgets import swatch_icon, viewport_of

LINK_HINT = "Click to show only these objects; click again to show all."
"""Second line of the tooltip of every figure that can be clicked."""


class Figure(QWidget):
    """A figure with its name above it; as a link, it can be clicked.

    Parameters
    ----------
    name
        Its name.
    meaning
        One sentence for the tooltip.
    large
        Whether it is a headline.
    is_link
        Whether it can be clicked.
    """

    clicked = Signal()

    def __init__(
        self, name: str, meaning: str, *, large: bool = False, is_link: bool = False
    ) -> None:
        super().__init__()
        self._meaning = f"{meaning}\n{LINK_HINT}" if is_link else meaning
        self._is_link = is_link
        self._is_chosen = False
        self._is_under_mouse = False
        if is_link:
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            self.setCursor(Qt.CursorShape.PointingHandCursor)
        caption = PlainLabel(name)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._text = ""
        # Relative to the theme's own size, which style sheets would overrule.
        self._style = "font-size: x-large" if large else ""
        self._value = RichLabel()
        for label in (caption, self._value):
            label.setIndent(0)  # many figures stand beside each other
        self.set_text("–")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(caption)
        layout.addWidget(self._value)
        if is_link:
            layout.setContentsMargins(2, 1, 2, 1)  # room for the frame of the chosen one
        self.setToolTip(shown(self._meaning))
        self.setAccessibleName(name)

    def text(self) -> str:
        """Return the shown content."""
        return self._text

    def set_text(self, text: str, *, reason: str = "") -> None:
        """Show a value, and in the tooltip why it is undefined."""
        self._text = text
        self._show_text()
        self.setToolTip(shown(f"{self._meaning} {reason}".strip()))

    def show_chosen(self, is_chosen: bool) -> None:
        """Frame the figure whose objects are listed."""
        self._is_chosen = is_chosen
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Emit a signal for a click."""
        if event is None or not self._is_link:
            super().mouseReleaseEvent(event)
            return
        is_left = event.button() == Qt.MouseButton.LeftButton
        if is_left and self.rect().contains(event.position().toPoint()):
            self.clicked.emit()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Keep the mouse until it is released, where there is something to click."""
        if event is not None and not self._is_link:
            super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Take Enter and Space for a click."""
        if event is not None and self._is_link and event.key() in CENTRE_KEYS:
            self.clicked.emit()
        else:
            super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent | None) -> None:  # noqa: N802
        """Underline clickable parts."""
        self._is_under_mouse = True
        self._show_text()
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Take the line away again."""
        self._is_under_mouse = False
        self._show_text()
        super().leaveEvent(event)

    def focusInEvent(self, event: QFocusEvent | None) -> None:  # noqa: N802
        """Show where the keys go."""
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent | None) -> None:  # noqa: N802
        """Show that the keys go elsewhere."""
        self.update()
        super().focusOutEvent(event)

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802
        """Draw the frames of the chosen figure and of the one that has the keys."""
        super().paintEvent(event)
        if self._is_link and (self._is_chosen or self.hasFocus()):
            painter = QPainter(self)
            draw_frame(painter, QRectF(self.rect()), self, is_chosen=self._is_chosen)
            painter.end()

    def _show_text(self) -> None:
        underlined = self._is_link and self._is_under_mouse
        line = "; text-decoration: underline" if underlined else ""
        self._value.set_rich(f"<b style='{self._style}{line}'>{html.escape(self._text)}</b>")


def draw_frame(painter: QPainter, around: QRectF, widget: QWidget, *, is_chosen: bool) -> None:
    """Frame something: heavily if it is chosen, dotted if it only has the keys."""
    pen = QPen(widget.palette().color(widget.foregroundRole()))
    pen.setWidthF(2.0 if is_chosen else 1.0)
    if not is_chosen:
        pen.setStyle(Qt.PenStyle.DotLine)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(around.adjusted(1, 1, -1, -1), 3, 3)


@dataclass(frozen=True)
class Cell:
    """A cell of a table of figures."""

    #: Its text.
    text: str
    #: One sentence about it.
    tooltip: str = ""
    #: Colour of a swatch before the text.
    colour: Rgb | None = None
    #: 0 (none) to 1 (full): how strongly it is tinted.
    shade: float = 0.0
    #: Whether it stands out.
    bold: bool = False
    #: The request of a click on it; None if it cannot be clicked.
    target: object = None
    #: The effect of a click, in a sentence.
    hint: str = LINK_HINT


class _LinkDelegate(QStyledItemDelegate):
    """Underlines the figure under the mouse, frames the chosen one and the one with the keys."""

    def __init__(self, table: FigureTable) -> None:
        super().__init__(table)
        self._table = table

    def initStyleOption(  # noqa: N802
        self, option: QStyleOptionViewItem | None, index: QModelIndex
    ) -> None:
        """Underline the clickable part under the mouse."""
        super().initStyleOption(option, index)
        if option is not None and self._table.is_link_under_mouse(index):
            font = option.font
            font.setUnderline(True)
            option.font = font

    def paint(
        self, painter: QPainter | None, option: QStyleOptionViewItem, index: QModelIndex
    ) -> None:
        """Draw the cell, and a frame around it where that says something."""
        super().paint(painter, option, index)
        is_chosen = self._table.is_chosen(index)
        has_keys = self._table.hasFocus() and index == self._table.currentIndex()
        if painter is not None and (is_chosen or has_keys):
            painter.save()
            draw_frame(painter, QRectF(option.rect), self._table, is_chosen=is_chosen)
            painter.restore()


class FigureTable(ArrayTable):
    """A small table of figures that is as high as its contents.

    Cells with a target can be clicked, or reached by the arrow keys and pressed
    by Enter or Space; the headings too, by the mouse.

    Parameters
    ----------
    stretch_first
        Whether the first column takes the room that is left; if not, all are
        as wide as their contents. If there is not enough room, headings are
        cut first, and then the table scrolls.
    """

    chosen = Signal(object)

    def __init__(self, *, stretch_first: bool = True) -> None:
        super().__init__()
        self._stretch_first = stretch_first
        self._chosen_target: object = None
        self._shown: tuple[tuple[Cell, ...], ...] = ()
        self._under_mouse = QModelIndex()
        self.setItemDelegate(_LinkDelegate(self))
        self.setMouseTracking(True)
        self.clicked.connect(lambda index: self._press(self._model.target(index)))
        self.heading.sectionClicked.connect(
            lambda column: self._press(self._model.columns[column].title_target)
        )
        self.setSortingEnabled(False)
        self.heading.setSectionsClickable(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # until there is something to press
        self.setTabKeyNavigation(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def fill(self, header: Sequence[Cell], rows: Sequence[Sequence[Cell]]) -> None:
        """Show rows below a header; the first column is aligned left, the others right."""
        wanted = tuple(tuple(cells) for cells in (header, *rows))
        before, self._shown = self._shown, wanted
        if wanted == before:
            return
        columns = [
            _column(head, [cells[number] for cells in rows], is_first=number == 0)
            for number, head in enumerate(header)
        ]
        if self._stretch_first:
            columns[0] = replace(columns[0], stretch=True)
        if [len(cells) for cells in before] == [len(cells) for cells in wanted]:
            self._model.update(columns)  # the cell that has the keys keeps them
            self.fit_columns()
        else:
            self.show_rows(columns)
        has_links = any(cell.target is not None for cells in rows for cell in cells)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if has_links else Qt.FocusPolicy.NoFocus)
        self._under_mouse = QModelIndex()

    def fit_columns(self) -> None:
        """Fit the columns to the room, and the height to heading and rows."""
        super().fit_columns()
        bar = None if self._stretch_first else self.horizontalScrollBar()
        height = self.heading.sizeHint().height() + self.row_height * self._model.rowCount() + 4
        self.setFixedHeight(height + (0 if bar is None else bar.sizeHint().height()))

    def show_chosen(self, target: object) -> None:
        """Frame the figures whose target it is; None frames nothing."""
        self._chosen_target = target
        viewport_of(self).update()

    def is_chosen(self, index: QModelIndex) -> bool:
        """Return whether a cell is framed."""
        target = self._model.target(index)
        return target is not None and bool(target == self._chosen_target)

    def is_link_under_mouse(self, index: QModelIndex) -> bool:
        """Return whether the mouse is over a cell that can be clicked."""
        return index == self._under_mouse and self._model.target(index) is not None

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Mark clickable parts."""
        super().mouseMoveEvent(event)
        if event is not None:
            self._look_under(self.indexAt(event.position().toPoint()))

    def leaveEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Show that the mouse has gone."""
        super().leaveEvent(event)
        self._look_under(QModelIndex())

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Take Enter and Space for a click."""
        if event is not None and event.key() in CENTRE_KEYS:
            self._press(self._model.target(self.currentIndex()))
        else:
            super().keyPressEvent(event)

    def _look_under(self, index: QModelIndex) -> None:
        self._under_mouse = index
        is_link = self._model.target(index) is not None
        shape = Qt.CursorShape.PointingHandCursor if is_link else Qt.CursorShape.ArrowCursor
        viewport_of(self).setCursor(shape)
        viewport_of(self).update()

    def _press(self, target: object) -> None:
        if target is not None:
            self.chosen.emit(target)

    def _least_px(self, number: int) -> int:
        """Return the width to which a column may shrink: headings are cut before figures are."""
        return super()._least_px(number) if self._stretch_first else self._text_px(number)


def _column(head: Cell, cells: Sequence[Cell], *, is_first: bool) -> Column:
    """Return a column of single cells."""
    has_colours = any(cell.colour is not None for cell in cells)
    return Column(
        head.text,
        _hint(head) or head.text,
        np.array([cell.text for cell in cells], object),
        tooltip=lambda row: _hint(cells[row]),
        colour=(lambda row: cells[row].colour) if has_colours else None,
        icon=swatch_icon,
        shade=lambda row: cells[row].shade,
        is_bold=(lambda row: cells[row].bold) if any(cell.bold for cell in cells) else None,
        target=lambda row: cells[row].target,
        title_target=head.target,
        width=0,
        is_text=is_first,
    )


def _hint(cell: Cell) -> str:
    return cell.tooltip if cell.target is None else f"{cell.tooltip}\n{cell.hint}".strip()
