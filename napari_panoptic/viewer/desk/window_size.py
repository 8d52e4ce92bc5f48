"""The size of the window: panels that need more room than there is do not enlarge it."""

from __future__ import annotations

import weakref

from psygnal import Signal
from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject, QPoint, QSize
from qtpy.QtWidgets import QLayout, QMainWindow, QWidget

from napari_panoptic.viewer.kit.layouts import QWIDGETSIZE_MAX, ShrinkingPanel

_LEAST_PX = QSize(160, 40)
"""What a panel may still insist on where the window is too small for all of them."""
_UNLIMITED = QSize(QWIDGETSIZE_MAX, QWIDGETSIZE_MAX)


class WindowSize(QObject):
    """Keeps a window as large as the user made it, and within its screen.

    By itself, Qt enlarges a window to the least size of its docks, also beyond the screen, and
    never shrinks it again.

    Parameters
    ----------
    window
        The window.
    """

    limited = Signal()  # the panels have less room than they need

    def __init__(self, window: QMainWindow) -> None:
        super().__init__()
        # Weakly: a window must not be held by what lives in it.
        self._window = weakref.ref(window)
        self._limit = _UNLIMITED
        self._needed = QSize()  # when the limit was set
        layout = window.layout()
        if layout is not None:
            layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        window.installEventFilter(self)

    @property
    def is_limited(self) -> bool:
        """Whether the window is too small for what the panels need."""
        return bool(self._limit != _UNLIMITED)

    def lift_limits(self) -> None:
        """Let all panels have the room that they need, as far as the window has it."""
        window = self._living_window()
        if window is not None:
            self._needed = QSize()
            self._set_limit(window, _UNLIMITED)

    def release(self) -> None:
        """Return the size of the window to Qt."""
        window = self._living_window()
        if window is not None:
            window.removeEventFilter(self)
            window.setMinimumSize(0, 0)
            layout = window.layout()
            if layout is not None:
                layout.setSizeConstraint(QLayout.SizeConstraint.SetDefaultConstraint)
        self._window = lambda: None  # type: ignore[assignment]

    def eventFilter(self, _watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Notice when docks need more room, or the window has more; pass events on."""
        window = self._living_window()
        if window is not None and event is not None:
            if event.type() == QEvent.Type.LayoutRequest:
                self._keep(window)
            elif event.type() == QEvent.Type.Resize:
                is_enough = window.size().expandedTo(self._needed) == window.size()
                if self.is_limited and is_enough:
                    self.lift_limits()
        return False

    def _keep(self, window: QMainWindow) -> None:
        """Limit the panels if they need more than the window has."""
        room = room_for(window)
        needed, free = window.minimumSizeHint(), window.size().boundedTo(room)
        limit = QSize(
            _LEAST_PX.width() if needed.width() > free.width() else self._limit.width(),
            _LEAST_PX.height() if needed.height() > free.height() else self._limit.height(),
        )
        if limit == self._limit:
            window.setMinimumSize(needed.boundedTo(room))
        else:
            self._needed = self._needed.expandedTo(needed)
            self._set_limit(window, limit)
            self.limited.emit()

    def _living_window(self) -> QMainWindow | None:
        window = self._window()
        if window is None or not isalive(window):  # type: ignore[no-untyped-call]
            return None
        return window

    def _set_limit(self, window: QMainWindow, limit: QSize) -> None:
        self._limit = limit
        for panel in window.findChildren(ShrinkingPanel):
            panel.limit(limit)


def room_for(window: QWidget) -> QSize:
    """Return how large a window can be on its screen, with its title bar."""
    screen = window.screen()
    if screen is None:
        return _UNLIMITED
    return screen.availableGeometry().size() - (window.frameGeometry().size() - window.size())


def fit_into_screen(window: QWidget) -> None:
    """Shrink and move a window so that it lies on its screen with its title bar."""
    screen = window.screen()
    if screen is None:
        return
    if (size := window.size().boundedTo(room_for(window))) != window.size():
        window.resize(size)
    free, frame = screen.availableGeometry(), window.frameGeometry()
    beyond = QPoint(max(frame.right() - free.right(), 0), max(frame.bottom() - free.bottom(), 0))
    if not beyond.isNull():
        window.move(frame.topLeft() - beyond)
