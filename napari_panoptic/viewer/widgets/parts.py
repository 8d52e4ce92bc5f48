"""Small pieces that the panels share."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from qtpy.QtCore import QRectF, QSize, Qt
from qtpy.QtGui import QColor, QIcon, QKeyEvent, QPainter, QPaintEvent, QPen, QPixmap
from qtpy.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QLabel,
    QSizePolicy,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.regions import Rgb

TISSUE: Rgb = (214, 178, 205)
"""Ground on which sample outlines are drawn, alike to stained tissue."""

COMPACT_COMBO = "QComboBox { padding: 1px 0px 1px 4px } QComboBox::drop-down { width: 16px }"
"""Style of menus that have to fit into narrow strips."""


def qcolor(rgb: Rgb) -> QColor:
    """Give Qt's form of a colour."""
    return QColor(*rgb)


def outline_icon(rgb: Rgb, width_px: float, *, size: int = 18) -> QIcon:
    """Draw a nucleus-shaped outline on a tissue-coloured ground."""
    pixmap = QPixmap(QSize(2 * size, 2 * size))  # twice as fine, for sharp screens
    pixmap.setDevicePixelRatio(2.0)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(qcolor(TISSUE))
    painter.drawRoundedRect(QRectF(0, 0, size, size), 3, 3)
    pen = QPen(qcolor(rgb))
    pen.setWidthF(width_px)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    inset = 2 + width_px / 2
    painter.drawEllipse(QRectF(inset, inset + 1, size - 2 * inset, size - 2 * inset - 2))
    painter.end()
    return QIcon(pixmap)


def swatch(rgb: Rgb, *, size: int = 10) -> QPixmap:
    """Draw a filled square."""
    pixmap = QPixmap(size, size)
    pixmap.fill(qcolor(rgb))
    return pixmap


def is_desk_key(event: QKeyEvent | None) -> bool:
    """Tell whether a key is a letter, which the desk wants and lists would search for."""
    return event is not None and event.text().isalpha()


def heading(text: str, tooltip: str = "") -> QLabel:
    """Make the heading of a section."""
    label = QLabel(f"<b>{text}</b>")
    label.setToolTip(tooltip)
    return label


def separator() -> QFrame:
    """Make a thin horizontal line."""
    line = QFrame()
    line.setFrameShape(QFrame.Shape.HLine)
    line.setFixedHeight(1)
    return line


class ElidedLabel(QLabel):
    """A line of text that is cut with an ellipsis where it does not fit.

    The whole text is then in the tooltip.
    """

    def __init__(
        self,
        text: str = "",
        *,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(text, parent)
        self._mode = mode
        self._hint = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(60)

    def set_text(self, text: str, *, tooltip: str = "") -> None:
        """Show a text; the tooltip is added below it when it is cut."""
        self._hint = tooltip
        self.setText(text)
        self._explain()

    def paintEvent(self, event: QPaintEvent | None) -> None:  # noqa: N802, ARG002
        """Draw the text as far as it fits."""
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        text = self.fontMetrics().elidedText(self.text(), self._mode, self.width())
        painter.drawText(self.rect(), int(self.alignment()), text)
        painter.end()

    def resizeEvent(self, event: object) -> None:  # noqa: N802
        """Explain what got cut."""
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._explain()

    def _explain(self) -> None:
        is_cut = self.fontMetrics().horizontalAdvance(self.text()) > self.width()
        lines = [self.text() if is_cut else "", self._hint]
        self.setToolTip("\n".join(line for line in lines if line))


class Figure(QWidget):
    """A figure with its name above it.

    Parameters
    ----------
    name
        What it is called.
    meaning
        One sentence for the tooltip.
    large
        Whether it is a headline.
    """

    def __init__(self, name: str, meaning: str, *, large: bool = False) -> None:
        super().__init__()
        self._meaning = meaning
        caption = QLabel(name)
        caption.setEnabled(False)  # greyed in every theme
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._text = ""
        # Relative to the theme's own size, which style sheets would overrule.
        self._style = "font-size: x-large" if large else ""
        self._value = QLabel()
        self._value.setTextFormat(Qt.TextFormat.RichText)
        self.set_text("–")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(caption)
        layout.addWidget(self._value)
        self.setToolTip(meaning)
        self.setAccessibleName(name)

    def text(self) -> str:
        """Give what is shown."""
        return self._text

    def set_text(self, text: str, *, reason: str = "") -> None:
        """Show a value, and in the tooltip why it is undefined."""
        self._text = text
        self._value.setText(f"<b style='{self._style}'>{html.escape(text)}</b>")
        self.setToolTip(f"{self._meaning} {reason}".strip())


@dataclass(frozen=True)
class Cell:
    """A cell of a table of figures.

    Parameters
    ----------
    text
        What it says.
    tooltip
        One sentence about it.
    colour
        Colour of a swatch before the text.
    shade
        0 (none) to 1 (full): how strongly it is tinted.
    bold
        Whether it stands out.
    """

    text: str
    tooltip: str = ""
    colour: Rgb | None = None
    shade: float = 0.0
    bold: bool = False


class FigureTable(QTableWidget):
    """A small table of figures that is as large as its contents.

    Parameters
    ----------
    stretch_first
        Whether the first column takes the room that is left.
    """

    def __init__(self, *, tint: Rgb = (90, 150, 210)) -> None:
        super().__init__()
        self._tint = tint
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        _header(self.verticalHeader()).setVisible(False)
        _header(self.verticalHeader()).setDefaultSectionSize(22)
        _header(self.horizontalHeader()).setMinimumSectionSize(24)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def fill(self, header: Sequence[Cell], rows: Sequence[Sequence[Cell]]) -> None:
        """Show rows below a header; the first column is aligned left, the others right."""
        self.setColumnCount(len(header))
        self.setRowCount(len(rows))
        for column, cell in enumerate(header):
            self.setHorizontalHeaderItem(column, _item(cell, column))
        for row, cells in enumerate(rows):
            for column, cell in enumerate(cells):
                self.setItem(row, column, self._shaded(cell, column))
        horizontal = _header(self.horizontalHeader())
        horizontal.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        horizontal.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        height = horizontal.sizeHint().height() + 22 * len(rows) + 4
        self.setFixedHeight(height)

    def texts(self) -> list[list[str]]:
        """Give what the cells say, row by row."""
        items = [
            [self.item(row, column) for column in range(self.columnCount())]
            for row in range(self.rowCount())
        ]
        return [["" if item is None else item.text() for item in row] for row in items]

    def _shaded(self, cell: Cell, column: int) -> QTableWidgetItem:
        item = _item(cell, column)
        if cell.shade > 0:
            colour = qcolor(self._tint)
            colour.setAlphaF(min(0.15 + 0.7 * cell.shade, 1.0))
            item.setBackground(colour)
        return item


def _item(cell: Cell, column: int) -> QTableWidgetItem:
    item = QTableWidgetItem(cell.text)
    side = Qt.AlignmentFlag.AlignLeft if column == 0 else Qt.AlignmentFlag.AlignRight
    item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
    if cell.tooltip:
        item.setToolTip(cell.tooltip)
    if cell.colour is not None:
        item.setIcon(QIcon(swatch(cell.colour)))
    if cell.bold:
        font = item.font()
        font.setBold(True)
        item.setFont(font)
    return item


def _header(header: QHeaderView | None) -> QHeaderView:
    if header is None:
        raise RuntimeError("a table view always has headers")
    return header
