"""Docks that have their sizes again when a window was made smaller and is large again."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject, Qt, QTimer
from qtpy.QtWidgets import QDockWidget, QMainWindow

from napari_panoptic.viewer.jobs.timers import stop_timers
from napari_panoptic.viewer.kit.widgets import is_in_sight

REST_MS = 300
"""How long after the window's size the docks' sizes change in its wake."""
_HORIZONTAL, _VERTICAL = Qt.Orientation.Horizontal, Qt.Orientation.Vertical


class KeptSizes(QObject):
    """Restores the sizes that docks had before their window became smaller.

    Qt takes from the docks what a smaller window lacks, and a larger one gives
    all that is new to the image.

    Parameters
    ----------
    window
        The window.
    columns
        Docks whose widths are kept.
    stacks
        Pairs of docks above each other, whose shares of their common height are
        kept; the lower one may be any of several in tabs.
    """

    def __init__(
        self,
        window: QMainWindow,
        columns: Sequence[QDockWidget],
        stacks: Sequence[tuple[QDockWidget, QDockWidget]],
    ) -> None:
        super().__init__()
        # Weakly, as a window must not be held by what lives in it.
        self._window = weakref.ref(window)
        self._columns, self._stacks = tuple(columns), tuple(stacks)
        self._widths: dict[QDockWidget, int] = {}
        self._shares: dict[QDockWidget, float] = {}
        self._is_changing = False
        # Qt lays docks out after the resize event.
        self._later, self._end = QTimer(self), QTimer(self)
        for timer, wait_ms, action in (
            (self._later, 0, self._follow),
            (self._end, REST_MS, self._rest),
        ):
            timer.setSingleShot(True)
            timer.setInterval(wait_ms)
            timer.timeout.connect(action)
        for widget in self._watched(window):
            widget.installEventFilter(self)

    @property
    def is_at_rest(self) -> bool:
        """Whether every change of the window has been followed."""
        return not (self._is_changing or self._later.isActive())

    def release(self) -> None:
        """Keep nothing any more."""
        stop_timers(self._later, self._end)
        window = self._window()
        if window is not None and isalive(window):  # type: ignore[no-untyped-call]
            for widget in self._watched(window):
                if isalive(widget):  # type: ignore[no-untyped-call]
                    widget.removeEventFilter(self)
        self._window = lambda: None  # type: ignore[assignment]

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        """Notice a new size of the window, or of a dock resized by the user; pass events on."""
        if event is not None and event.type() == QEvent.Type.Resize:
            if watched is self._window():
                self._is_changing = True
                self._end.stop()
            self._later.start()
        return False

    def _watched(self, window: QMainWindow) -> list[QMainWindow | QDockWidget]:
        return [window, *self._columns, *(upper for upper, _ in self._stacks)]

    def _follow(self) -> None:
        window = self._window()
        if window is None:
            return
        if self._is_changing:
            self._give_back(window)
            self._end.start()  # resizing that follows is not the user's
        else:
            self._note(window)

    def _rest(self) -> None:
        self._is_changing = False

    def _note(self, window: QMainWindow) -> None:
        for dock in self._columns:
            if is_in_sight(dock):
                self._widths[dock] = dock.width()
        for upper, lower in self._stacks:
            heights = self._heights(window, upper, lower)
            if heights is not None:
                self._shares[upper] = heights[0] / sum(heights)

    def _give_back(self, window: QMainWindow) -> None:
        if self._widths:
            window.resizeDocks(list(self._widths), list(self._widths.values()), _HORIZONTAL)
        for upper, lower in self._stacks:
            heights = self._heights(window, upper, lower)
            if heights is not None and upper in self._shares:
                height = round(self._shares[upper] * sum(heights))
                window.resizeDocks([upper, lower], [height, sum(heights) - height], _VERTICAL)

    @staticmethod
    def _heights(
        window: QMainWindow, upper: QDockWidget, lower: QDockWidget
    ) -> tuple[int, int] | None:
        """Return the heights of two docks; None if one of them is not in sight."""
        beneath = [lower, *window.tabifiedDockWidgets(lower)]
        seen = [dock for dock in beneath if is_in_sight(dock)]
        if not seen or upper in beneath or not is_in_sight(upper):
            return None
        return upper.height(), seen[0].height()
