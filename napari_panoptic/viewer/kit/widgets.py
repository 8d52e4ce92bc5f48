"""Small pieces that the panels share."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from psygnal import Signal
from qtpy.QtCore import QEvent, QPoint, QRectF, QSize, Qt
from qtpy.QtGui import (  # type: ignore[attr-defined]
    QAction,
    QColor,
    QIcon,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
)
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDockWidget,
    QFrame,
    QLineEdit,
    QMainWindow,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QTextEdit,
    QToolButton,
    QWidget,
)

from napari_panoptic.values.cohort import Rgb
from napari_panoptic.viewer.kit.shown import PlainLabel, RichLabel, shown

TISSUE: Rgb = (214, 178, 205)
"""Background of sample outlines, similar to stained tissue."""


CLICKED = (QAbstractButton, QAbstractSlider, QComboBox)
"""Widgets that are operated with the mouse above all."""
TYPED_INTO = (QAbstractSpinBox, QLineEdit, QTextEdit)
"""Widgets that text or numbers are typed into."""


def opens_menu(button: QToolButton) -> None:
    """Let a button open its menu at once, with the arrow beside its text and not upon it."""
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    button.setStyleSheet("QToolButton { padding-right: 9px }")


def qcolor(rgb: Rgb) -> QColor:
    """Return Qt's form of a colour."""
    return QColor(*rgb)


def outline_icon(rgb: Rgb, *widths_px: float, size: int = 18) -> QIcon:
    """Draw nucleus-shaped outlines, one in the other, on a tissue-coloured ground.

    They look the same in selected rows.
    """
    pixmap = QPixmap(QSize(2 * size, 2 * size))  # twice as fine, for sharp screens
    pixmap.setDevicePixelRatio(2.0)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(qcolor(TISSUE))
    painter.drawRoundedRect(QRectF(0, 0, size, size), 3, 3)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    edge = 2.0
    for width_px in widths_px:
        pen = QPen(qcolor(rgb))
        pen.setWidthF(width_px)
        painter.setPen(pen)
        inset = edge + width_px / 2
        painter.drawEllipse(QRectF(inset, inset + 0.5, size - 2 * inset, size - 2 * inset - 1))
        edge += width_px + 1
    painter.end()
    return _untinted(pixmap)


def arrow_icon(*, size: int = 12) -> QIcon:
    """Draw the arrow of a menu, in a grey that is seen in every theme."""
    pixmap = QPixmap(size, size)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setPen(qcolor(_RIM))
    painter.drawText(pixmap.rect(), int(Qt.AlignmentFlag.AlignCenter), "▾")
    painter.end()
    return QIcon(pixmap)


_RIM: Rgb = (150, 150, 150)
"""Colour of the rim of swatches."""


def swatch_icon(rgb: Rgb, *, size: int = 10) -> QIcon:
    """Draw a filled square, the same in selected rows; its rim shows dark colours on dark."""
    pixmap = QPixmap(size, size)
    pixmap.fill(qcolor(_RIM))
    painter = QPainter(pixmap)
    painter.fillRect(1, 1, size - 2, size - 2, qcolor(rgb))
    painter.end()
    return _untinted(pixmap)


def _untinted(pixmap: QPixmap) -> QIcon:
    """Make an icon whose colours mean something: Qt mixes those of a selection into others."""
    icon = QIcon(pixmap)
    icon.addPixmap(pixmap, QIcon.Mode.Selected)
    return icon


def is_desk_key(event: QKeyEvent | None) -> bool:
    """Return whether a key is a letter, which the desk wants and lists would search for."""
    return event is not None and event.text().isalpha()


def viewport_of(area: QAbstractScrollArea) -> QWidget:
    """Return the part of a scroll area that scrolls."""
    viewport = area.viewport()
    if viewport is None:
        raise RuntimeError("a scroll area always has a viewport")
    return viewport


def is_in_sight(widget: QWidget) -> bool:
    """Return whether the user can see a widget.

    Qt calls a panel visible even if it is hidden behind another tab.
    """
    return widget.isVisible() and not widget.visibleRegion().isEmpty()


def show_in_front(dialog: QDialog) -> None:
    """Show a dialog that stays open over the dock that it belongs to, beside the image.

    It is put there when it opens; if the user moves it, it stays there until it is closed.
    """
    dock = dock_of(dialog.parentWidget())
    if dock is not None and not dialog.isVisible():
        _put_over(dialog, dock if is_in_sight(dock) else _column_of(dock))
    dialog.show()
    dialog.raise_()


def _column_of(dock: QDockWidget) -> QDockWidget:
    """Return a dock in sight in the right column of a dock's window; the dock itself if none is."""
    window = dock.window()
    if not isinstance(window, QMainWindow):
        return dock
    right = Qt.DockWidgetArea.RightDockWidgetArea
    docks = [at for at in window.findChildren(QDockWidget) if window.dockWidgetArea(at) == right]
    return next((at for at in docks if is_in_sight(at) and not at.isFloating()), dock)


def _put_over(dialog: QDialog, dock: QDockWidget) -> None:
    """Put a dialog at the outer edge of the column of a dock, no wider than that."""
    window, corner = dock.window(), dock.mapToGlobal(QPoint(0, 0))
    if window is None:
        return
    width = max(dock.width(), dialog.minimumSizeHint().width())
    dialog.resize(min(dialog.width(), width), dialog.height())
    left, bottom = corner.x(), window.mapToGlobal(QPoint(0, window.height())).y()
    if dock.geometry().center().x() > window.width() / 2:
        left += dock.width() - dialog.width()
    dialog.move(left, max(0, min(corner.y(), bottom - dialog.height())))


def dock_of(widget: QWidget | None) -> QDockWidget | None:
    """Find the dock that a panel is in, however deep."""
    parent = None if widget is None else widget.parentWidget()
    while parent is not None and not isinstance(parent, QDockWidget):
        parent = parent.parentWidget()
    return parent


class FormPanel(QWidget):
    """A panel that is as high as its contents need, also once a theme has other fonts."""

    def event(self, event: QEvent | None) -> bool:
        """Follow the height of the contents."""
        is_done = super().event(event)
        if event is not None and event.type() == QEvent.Type.LayoutRequest:
            self.setFixedHeight(self.sizeHint().height())
        return is_done


def give_height(panel: QWidget, height: int) -> None:
    """Set the height of a panel whose dock has its place in the window to itself."""
    dock = dock_of(panel)
    if dock is None or dock.isFloating():
        return
    window = dock.parentWidget()
    if isinstance(window, QMainWindow) and not window.tabifiedDockWidgets(dock):
        inside = dock.widget()
        bars = 0 if inside is None else dock.height() - inside.height()
        window.resizeDocks([dock], [height + bars], Qt.Orientation.Vertical)


class PushButton(QPushButton):
    """A button with a signal for presenters: Qt's `clicked` without its argument."""

    pushed = Signal()

    def __init__(self, text: str = "", tooltip: str = "") -> None:
        super().__init__(text)
        self.setToolTip(tooltip)
        self.clicked.connect(self._on_clicked)

    def _on_clicked(self, _checked: bool = False) -> None:
        self.pushed.emit()


class ToolButton(QToolButton):
    """A button as small as its text, with the signal of `PushButton`."""

    pushed = Signal()

    def __init__(self, text: str = "", tooltip: str = "") -> None:
        super().__init__()
        self.setText(text)
        self.setToolTip(tooltip)
        self.clicked.connect(self._on_clicked)

    def _on_clicked(self, _checked: bool = False) -> None:
        self.pushed.emit()


def offer_link(view: QWidget, copy: Callable[[], object]) -> QAction:
    """Offer to copy a link to the selection of a list, in its context menu."""
    entry = QAction("Copy link", view)
    entry.setToolTip("Copy a link to the selected object, for colleagues with the same cohort.")
    entry.triggered.connect(lambda _checked=False: copy())
    view.addAction(entry)
    view.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
    return entry


def button_box(*buttons: QDialogButtonBox.StandardButton) -> QDialogButtonBox:
    """Make the buttons of a dialog without Qt's icons, which are black in every theme."""
    box = QDialogButtonBox()
    for button in buttons:
        if (added := box.addButton(button)) is not None:
            added.setIcon(QIcon())
    return box


def heading(text: str, tooltip: str = "") -> RichLabel:
    """Make the heading of a section."""
    label = RichLabel()
    label.set_rich(f"<b>{html.escape(text)}</b>")
    label.setToolTip(tooltip)
    return label


def separator() -> QFrame:
    """Make a thin horizontal line."""
    line = QFrame()
    line.setFrameShape(QFrame.Shape.HLine)
    line.setFixedHeight(1)
    return line


class ElidedLabel(PlainLabel):
    """A line of text that is cut with an ellipsis where it does not fit.

    The whole text is then in the tooltip. superqt's QElidingLabel takes markup for markup, and does
    not cut its text again in another font.
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

    @property
    def is_cut(self) -> bool:
        """Whether not all of the text is seen."""
        return self.fontMetrics().horizontalAdvance(self.text()) > self.width()

    def _explain(self) -> None:
        lines = [self.text() if self.is_cut else "", self._hint]
        self.setToolTip("\n".join(line for line in lines if line))


class Clickable:
    """Makes a widget do something when it is clicked.

    Subclasses derive from it and from a widget, and have a signal ``clicked``. It is not a widget
    itself, because PySide6 cannot paint a widget that derives from two.
    """

    def __init__(self: Any, *args: Any) -> None:
        super().__init__(*args)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def mouseReleaseEvent(self: Any, event: QMouseEvent | None) -> None:  # noqa: N802
        """Report a click."""
        if event is not None and self.rect().contains(event.position().toPoint()):
            self.clicked.emit()


class LinkLabel(Clickable, ElidedLabel):
    """A line of text that can be clicked, and is cut with an ellipsis where it does not fit."""

    clicked = Signal()


_PARTS = 1000
_HEIGHT_PX = 10


class ThinBar(QProgressBar):
    """A low progress bar without text."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextVisible(False)
        self.setFixedHeight(_HEIGHT_PX)


class WorkControls:
    """Starts work, stops it, and shows its progress; the panel lays the widgets out.

    Parameters
    ----------
    text, tooltip
        Of the button that starts the work.
    stop_tooltip
        Of the button that stops it.
    bar
        A bar with another look than the thin one.
    """

    def __init__(
        self,
        text: str,
        tooltip: str,
        *,
        stop_tooltip: str = "Stop after the region that is being evaluated.",
        bar: QProgressBar | None = None,
    ) -> None:
        self.start, self.stop = PushButton(text, tooltip), PushButton("Stop", stop_tooltip)
        self.bar = ThinBar() if bar is None else bar
        self.is_running = False
        self.bar.hide()
        self.stop.hide()

    def show_progress(
        self, share: float | None, doing: str = "", *, may_start: bool = True
    ) -> None:
        """Show the share of the work that is done; None if none is running."""
        count = None if share is None else (round(_PARTS * share), _PARTS)
        self.show_count(count, doing, may_start=may_start)

    def show_count(
        self, count: tuple[int, int] | None, doing: str = "", *, may_start: bool = True
    ) -> None:
        """Show the number that is done and the total; None if no work is running."""
        self.is_running = count is not None
        self.bar.setVisible(self.is_running)
        self.stop.setVisible(self.is_running)
        self.start.setVisible(may_start and not self.is_running)
        self.bar.setToolTip(shown(doing))
        if count is not None:
            self.bar.setMaximum(max(count[1], 1))
            self.bar.setValue(count[0])
