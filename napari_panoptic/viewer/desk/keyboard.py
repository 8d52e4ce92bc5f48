"""The keyboard focus of the window: hidden widgets do not keep it."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from qtpy.compat import isalive
from qtpy.QtCore import QObject
from qtpy.QtWidgets import QApplication, QDockWidget, QMainWindow, QWidget

from napari_panoptic.viewer.jobs.timers import single_shot, stop_timers
from napari_panoptic.viewer.kit.napari_private import focus_canvas
from napari_panoptic.viewer.kit.widgets import is_in_sight


class Keyboard(QObject):
    """Moves the focus to the image when the widget that has it is hidden.

    Qt gives it to the next widget, such as a menu, which takes letters as its own; and a widget
    behind a tab keeps it.

    Parameters
    ----------
    viewer
        The viewer with the image.
    window
        Its window.
    docks
        Docks that can be hidden behind a tab.
    """

    def __init__(self, viewer: Any, window: QMainWindow, docks: Iterable[QDockWidget]) -> None:
        super().__init__()
        self._viewer = viewer
        # Weakly: a window must not be held by what lives in it.
        self._window = weakref.ref(window)
        self._before: QWidget | None = None  # what had the focus before it was hidden
        self._after: QWidget | None = None  # what Qt gave it to
        self._later = single_shot(0, self._settle, self)
        self._application = QApplication.instance()
        if isinstance(self._application, QApplication):
            self._application.focusChanged.connect(self._on_focus)
        for dock in docks:
            dock.visibilityChanged.connect(self._on_seen)

    def check(self) -> None:
        """Move the focus to the image, unless a widget in sight has it, once docks are laid out."""
        self._later.start()

    def release(self) -> None:
        """Leave the focus to Qt."""
        stop_timers(self._later)
        if isinstance(self._application, QApplication):
            self._application.focusChanged.disconnect(self._on_focus)
        self._application = None
        self._window = lambda: None  # type: ignore[assignment]

    def _on_focus(self, before: QWidget | None, after: QWidget | None) -> None:
        window = self._window()
        if window is None or before is None or not isalive(before) or before.isVisible():  # type: ignore[no-untyped-call]
            return
        if window.isAncestorOf(before):
            self._before = self._before or before  # docks that are moved are hidden for a moment
            self._after = after
            self.check()

    def _on_seen(self, seen: bool) -> None:
        if not seen:
            self.check()

    def _settle(self) -> None:
        window, before, after = self._window(), self._before, self._after
        self._before = self._after = None
        if window is None or not isalive(window) or not window.isVisible():  # type: ignore[no-untyped-call]
            return
        focused = window.focusWidget()
        if before is not None and focused is after:
            focused = before
        if focused is not None and isalive(focused) and is_in_sight(focused):  # type: ignore[no-untyped-call]
            focused.setFocus()
            return
        central = window.centralWidget()
        if central is not None and central.isVisible() and window.isActiveWindow():
            focus_canvas(self._viewer)
        else:  # napari handles the keys of its window like those of the image
            window.setFocus()
