"""Figures with their names, and small tables of figures; both can be links."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace

from psygnal import Signal
from qtpy.QtCore import QEvent, QModelIndex, QRectF, Qt
from qtpy.QtGui import (
    QEnterEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from qtpy.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QSizePolicy,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.values.cohort import Rgb
from napari_panoptic.viewer.kit.shown import PlainLabel, RichLabel, shown
from napari_panoptic.viewer.kit.widgets import is_desk_key, qcolor, swatch_icon, viewport_of

LINK_HINT = "Click to show only these objects; click again to show all."
"""Second line of the tooltip of every figure that can be clicked."""
_PRESS_KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)


class Figure(QWidget):
    """A figure with its name above it; as a link, it can be clicked.

    Parameters
    ----------
    name
        What it is called.
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
        """Return what is shown."""
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
        if event is not None and self._is_link and event.key() in _PRESS_KEYS:
            self.clicked.emit()
        else:
            super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent | None) -> None:  # noqa: N802
        """Underline what can be clicked."""
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
    #: What a click on it requests; None if it cannot be clicked.
    target: object = None


_TINT: Rgb = (90, 150, 210)
"""Colour of shaded cells."""
_LEAST_ROW_PX, _ROW_MARGIN_PX = 22, 6
"""Height of a row in small letters, and what it has beside larger ones."""
_CELL_ROLE = Qt.ItemDataRole.UserRole
"""Of the whole cell: PySide returns a target that is a string or a tuple as another type."""


class _LinkDelegate(QStyledItemDelegate):
    """Underlines the figure under the mouse, frames the chosen one and the one with the keys."""

    def __init__(self, table: FigureTable) -> None:
        super().__init__(table)
        self._table = table

    def initStyleOption(  # noqa: N802
        self, option: QStyleOptionViewItem | None, index: QModelIndex
    ) -> None:
        """Underline what lies under the mouse and can be clicked."""
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


class FigureTable(QTableWidget):
    """A small table of figures that is as large as its contents.

    Cells with a target can be clicked, or reached by the arrow keys and pressed
    by Enter or Space; the header's too, by the mouse.

    Parameters
    ----------
    stretch_first
        Whether the first column takes the room that is left; otherwise all are
        as wide as their contents. If there is not enough room, headings are
        cut first, and then the table scrolls.
    """

    chosen = Signal(object)

    def __init__(self, *, stretch_first: bool = True) -> None:
        super().__init__()
        self._stretch_first = stretch_first
        self._chosen_target: object = None
        self._shown: tuple[tuple[Cell | None, ...], ...] = ()
        self._under_mouse = QModelIndex()
        self.setItemDelegate(_LinkDelegate(self))
        self.setMouseTracking(True)
        self.cellClicked.connect(lambda row, column: self._press(self.item(row, column)))
        _header(self.horizontalHeader()).sectionClicked.connect(
            lambda column: self._press(self.horizontalHeaderItem(column))
        )
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # until there is something to press
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        _header(self.verticalHeader()).setVisible(False)
        _header(self.verticalHeader()).setDefaultSectionSize(self._row_px)
        _header(self.horizontalHeader()).setMinimumSectionSize(24)
        _header(self.horizontalHeader()).setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def fill(self, header: Sequence[Cell], rows: Sequence[Sequence[Cell]]) -> None:
        """Show rows below a header; the first column is aligned left, the others right."""
        wanted = tuple(tuple(cells) for cells in (header, *rows))
        shown, self._shown = self._shown, wanted
        is_new = [len(cells) for cells in shown] != [len(cells) for cells in wanted]
        if is_new:
            shown = ((None,) * len(header),) * len(wanted)
            self.setColumnCount(len(header))
            self.setRowCount(len(rows))
        if wanted != shown:
            self._put(wanted, shown)
        if is_new:
            self._fit_height()
        has_links = any(cell.target is not None for cells in rows for cell in cells)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if has_links else Qt.FocusPolicy.NoFocus)
        self._under_mouse = QModelIndex()

    def _put(
        self,
        wanted: tuple[tuple[Cell, ...], ...],
        shown: tuple[tuple[Cell | None, ...], ...],
    ) -> None:
        """Set the cells that differ. Columns become as wide as all of these, not after each."""
        horizontal = _header(self.horizontalHeader())
        horizontal.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        for row, (cells, before) in enumerate(zip(wanted, shown, strict=True), start=-1):
            for column, (cell, known) in enumerate(zip(cells, before, strict=True)):
                if cell == known:
                    continue
                if row < 0:
                    head = replace(cell, tooltip=cell.tooltip or cell.text)
                    self.setHorizontalHeaderItem(column, _item(head, column))
                else:
                    self.setItem(row, column, self._shaded(cell, column))
        if self._stretch_first:
            horizontal.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
            horizontal.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        else:
            self._fit_columns()

    @property
    def _row_px(self) -> int:
        return max(_LEAST_ROW_PX, self.fontMetrics().height() + _ROW_MARGIN_PX)

    def changeEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Fit rows and columns to other letters."""
        super().changeEvent(event)
        if event is None or event.type() != QEvent.Type.FontChange:
            return
        _header(self.verticalHeader()).setDefaultSectionSize(self._row_px)
        if self._shown:
            self._fit_height()
            if not self._stretch_first:
                self._fit_columns()

    def _fit_height(self) -> None:
        """Be as high as the heading and all rows."""
        heading = _header(self.horizontalHeader()).sizeHint().height()
        height = heading + self._row_px * self.rowCount() + 4
        bar = self.horizontalScrollBar()
        if not self._stretch_first and bar is not None:
            height += bar.sizeHint().height()
        self.setFixedHeight(height)

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Fit the columns to the room."""
        super().resizeEvent(event)
        if not self._stretch_first:
            self._fit_columns()

    def _fit_columns(self) -> None:
        """Make columns as wide as their cells, and as their headings as far as there is room."""
        columns, horizontal = range(self.columnCount()), _header(self.horizontalHeader())
        cells = [self.sizeHintForColumn(column) for column in columns]
        wanted = [max(cells[column], horizontal.sectionSizeHint(column)) for column in columns]
        spare, missing = viewport_of(self).width() - sum(cells), sum(wanted) - sum(cells)
        share = min(max(spare / missing, 0.0), 1.0) if missing else 1.0
        for column in columns:
            extra = int(share * (wanted[column] - cells[column]))
            self.setColumnWidth(column, cells[column] + extra)

    def show_chosen(self, target: object) -> None:
        """Frame the figures whose target it is; None frames nothing."""
        self._chosen_target = target
        viewport_of(self).update()

    def is_chosen(self, index: QModelIndex) -> bool:
        """Return whether a cell is framed."""
        target = _target(index)
        return target is not None and bool(target == self._chosen_target)

    def is_link_under_mouse(self, index: QModelIndex) -> bool:
        """Return whether the mouse is over a cell that can be clicked."""
        return index == self._under_mouse and _target(index) is not None

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:  # noqa: N802
        """Show what can be clicked."""
        super().mouseMoveEvent(event)
        if event is not None:
            self._look_under(self.indexAt(event.position().toPoint()))

    def leaveEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Show that the mouse has gone."""
        super().leaveEvent(event)
        self._look_under(QModelIndex())

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Take Enter and Space for a click; letters go to the desk."""
        if event is not None and event.key() in _PRESS_KEYS:
            self._press(self.currentItem())
        elif event is not None and is_desk_key(event):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def _look_under(self, index: QModelIndex) -> None:
        self._under_mouse = index
        is_link = _target(index) is not None
        shape = Qt.CursorShape.PointingHandCursor if is_link else Qt.CursorShape.ArrowCursor
        viewport_of(self).setCursor(shape)
        viewport_of(self).update()

    def _press(self, item: QTableWidgetItem | None) -> None:
        target = _target(item)
        if target is not None:
            self.chosen.emit(target)

    def texts(self) -> list[list[str]]:
        """Return what the cells say, row by row."""
        items = [
            [self.item(row, column) for column in range(self.columnCount())]
            for row in range(self.rowCount())
        ]
        return [["" if item is None else item.text() for item in row] for row in items]

    def _shaded(self, cell: Cell, column: int) -> QTableWidgetItem:
        item = _item(cell, column)
        if cell.shade > 0:
            colour = qcolor(_TINT)
            colour.setAlphaF(min(0.15 + 0.7 * cell.shade, 1.0))
            item.setBackground(colour)
        return item


def _target(place: QTableWidgetItem | QModelIndex | None) -> object:
    """Return what a click there leads to, or None."""
    cell = None if place is None else place.data(_CELL_ROLE)
    return cell.target if isinstance(cell, Cell) else None


def _item(cell: Cell, column: int) -> QTableWidgetItem:
    item = QTableWidgetItem(shown(cell.text))
    side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
    item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
    item.setData(_CELL_ROLE, cell)
    tooltip = cell.tooltip if cell.target is None else f"{cell.tooltip}\n{LINK_HINT}".strip()
    if tooltip:
        item.setToolTip(shown(tooltip))
    if cell.colour is not None:
        item.setIcon(swatch_icon(cell.colour))
    if cell.bold:
        font = item.font()
        font.setBold(True)
        item.setFont(font)
    return item


def _header(header: QHeaderView | None) -> QHeaderView:
    if header is None:
        raise RuntimeError("a table view always has headers")
    return header
