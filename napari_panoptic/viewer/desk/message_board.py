"""Shows messages in full where napari truncates or hides them."""

from __future__ import annotations

from collections.abc import Callable

from napari.settings import get_settings
from napari.utils.notifications import Notification, notification_manager
from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject, QPoint, Qt
from qtpy.QtGui import QEnterEvent
from qtpy.QtWidgets import QFrame, QHBoxLayout, QMainWindow, QScrollArea, QToolButton
from superqt import ensure_main_thread

from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.shown import MAY_BREAK, WrappedLabel

_WIDTH, _MARGIN = 520, 8
_HIGHEST_SHARE = 0.6
"""Of the window; a longer text is scrolled."""
_NAPARIS_TEXT_PX = 280
"""Room for one line in napari's notifications, which truncate the rest."""
_SHOWN_MS, _MS_PER_CHARACTER = 4000, 60
_MOVING = (QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.Hide)


class MessageBoard(QFrame):
    """Messages that napari cannot show in full, newest first, over the corner of the canvas.

    napari shows one line of a message inside the canvas. It truncates a long text, and shows
    nothing while a workspace hides the canvas. Messages stay for a time proportional to their
    length, and as long as the mouse is over them. The same message is listed once.

    Parameters
    ----------
    window
        The window.
    is_current
        Returns whether napari shows its messages in this window.
    """

    def __init__(self, window: QMainWindow, is_current: Callable[[], bool]) -> None:
        super().__init__(window)
        self._is_current: Callable[[], bool] | None = is_current
        self.setAutoFillBackground(True)
        self.setStyleSheet("MessageBoard { border: 1px solid gray }")
        self._messages: list[str] = []
        self._text = WrappedLabel()
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        scrolled = QScrollArea()
        scrolled.setWidgetResizable(True)
        scrolled.setFrameShape(QFrame.Shape.NoFrame)
        scrolled.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scrolled.setWidget(self._text)
        self._close = QToolButton()
        self._close.setText("✕")
        self._close.setToolTip("Close the message")
        self._close.clicked.connect(self._dismiss)
        line = QHBoxLayout(self)
        line.setContentsMargins(_MARGIN, _MARGIN, _MARGIN, _MARGIN)
        line.addWidget(scrolled, 1)
        line.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)
        self._end = single_shot(_SHOWN_MS, self.hide, self)
        # Not at once: some of napari's messages come while the canvas is drawn.
        self._begin = single_shot(0, self._show, self)
        for widget in (window, window.centralWidget()):
            if widget is not None:
                widget.installEventFilter(self)
        self.hide()
        notification_manager.notification_ready.connect(self._on_message)

    def text(self) -> str:
        """Return the messages that are shown; empty without any."""
        is_seen = self._begin.isActive() or not self.isHidden()
        return "" if not is_seen else self._text.text().replace(MAY_BREAK, "")

    def release(self) -> None:
        """Show nothing any more, and leave the window."""
        self._is_current = None
        notification_manager.notification_ready.disconnect(self._on_message)
        stop_timers(self._begin, self._end)
        if isalive(self):  # type: ignore[no-untyped-call]
            self.hide()
            self.deleteLater()

    def enterEvent(self, event: QEnterEvent | None) -> None:  # noqa: N802
        """Let the message stay while it is read."""
        super().enterEvent(event)
        self._end.stop()

    def leaveEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Hide the message after a while."""
        super().leaveEvent(event)
        self._end.start()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Stay in the corner of the canvas or window; pass events on."""
        window = self._living_window()
        moves = event is not None and event.type() in _MOVING
        if moves and window is not None and not self.isHidden():
            self._place(window)
        return super().eventFilter(watched, event)

    @ensure_main_thread  # type: ignore[untyped-decorator]
    def _on_message(self, message: Notification) -> None:
        window = self._living_window()
        if self._is_current is None or not self._is_current() or window is None:
            return
        if message.severity < get_settings().application.gui_notification_level:
            return
        text = str(message.message)
        if window.isVisible() and not (self._is_over and self._is_shown_by_napari(window, text)):
            self.show_text(f"{message.severity.value.capitalize()}: {text}")

    @property
    def _is_over(self) -> bool:
        return self.isHidden() and not self._begin.isActive()

    def show_text(self, text: str) -> None:
        """Show a text; it takes no focus."""
        if self._is_over:
            self._messages.clear()
        self._add(text)
        text = "\n\n".join(self._messages)
        self._text.set_breakable(text)
        self._end.start(max(_SHOWN_MS, _MS_PER_CHARACTER * len(text)))
        self._begin.start()

    def _dismiss(self) -> None:
        stop_timers(self._begin, self._end)
        self.hide()

    def _show(self) -> None:
        if (window := self._living_window()) is not None:
            self._place(window)
            self.show()
            self.raise_()

    def _add(self, text: str) -> None:
        """Put a message before the others; one that was shown already is not repeated."""
        if text in self._messages:
            self._messages.remove(text)
        self._messages.insert(0, text)

    def _living_window(self) -> QMainWindow | None:
        """Return the window; it is not kept, or what lives in it would hold it."""
        window = self.parentWidget()
        return window if isinstance(window, QMainWindow) else None

    def _is_shown_by_napari(self, window: QMainWindow, text: str) -> bool:
        canvas = window.centralWidget()
        if canvas is None or not canvas.isVisible() or canvas.width() < _WIDTH or "\n" in text:
            return False
        return self._text.fontMetrics().horizontalAdvance(text) <= _NAPARIS_TEXT_PX

    def _place(self, window: QMainWindow) -> None:
        """Cover napari's own message; without a canvas, take the corner of the window."""
        width = min(_WIDTH, window.width() - 2 * _MARGIN)
        beside = width - self._close.sizeHint().width() - 5 * _MARGIN
        wanted = self._text.heightForWidth(beside) + 4 * _MARGIN
        height = min(wanted, round(_HIGHEST_SHARE * window.height()))
        canvas = window.centralWidget()
        if canvas is not None and canvas.isVisible():
            corner = canvas.mapTo(window, QPoint(canvas.width(), canvas.height()))
        else:
            bar = window.statusBar()
            corner = QPoint(window.width(), window.height() - (0 if bar is None else bar.height()))
        left, top = corner.x() - width - _MARGIN, corner.y() - height - _MARGIN
        self.setGeometry(max(left, _MARGIN), max(top, _MARGIN), width, height)
