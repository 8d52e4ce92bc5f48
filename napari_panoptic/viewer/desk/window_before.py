"""The window as it was before a desk was opened, and the way back when it is closed.

The state of the whole window (``QMainWindow.saveState``) is not used: restoring it undoes what
the user did meanwhile, and crashes Qt where another dock was floated or moved to another side.
"""

from __future__ import annotations

import weakref
from itertools import pairwise
from typing import Any

from qtpy.compat import isalive
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDockWidget, QMainWindow

from napari_panoptic.viewer.kit.napari_private import napari_docks, window_of

_LEFT = Qt.DockWidgetArea.LeftDockWidgetArea
_RIGHT = Qt.DockWidgetArea.RightDockWidgetArea
_CORNERS = (
    Qt.Corner.TopLeftCorner,
    Qt.Corner.BottomLeftCorner,
    Qt.Corner.TopRightCorner,
    Qt.Corner.BottomRightCorner,
)


class WindowBefore:
    """Corners, tabs and napari's own docks before a desk changes them.

    Parameters
    ----------
    viewer
        The viewer whose window it is, before any dock of the desk is in it.
    """

    def __init__(self, viewer: Any) -> None:
        window = window_of(viewer)
        # Weakly: a window must not be held by what lives in it.
        self._window = None if window is None else weakref.ref(window)
        if window is not None:
            self._note(window)
        self._viewer = viewer
        self._has_scale_bar = viewer.canvas.overlays.scale_bar.visible
        self._axis_labels = viewer.dims.axis_labels

    def restore(self) -> None:
        """Undo what desks change; docks that the user moved, floated or hid stay as they are.

        The desk's own docks must have been removed.
        """
        window = None if self._window is None else self._window()
        if window is None or not isalive(window):  # type: ignore[no-untyped-call]
            return
        for corner, area in self._corners.items():
            window.setCorner(corner, area)
        window.setTabPosition(_RIGHT, self._tabs)
        self._restore_column(window)
        self._restore_sizes(window)
        self._viewer.canvas.overlays.scale_bar.visible = self._has_scale_bar
        if self._viewer.dims.ndim == len(self._axis_labels):
            self._viewer.dims.axis_labels = self._axis_labels

    def _note(self, window: QMainWindow) -> None:
        self._corners = {corner: window.corner(corner) for corner in _CORNERS}
        self._tabs = window.tabPosition(_RIGHT)
        layer_list, controls = napari_docks(window)
        self._were_tabbed = layer_list is not None and controls in window.tabifiedDockWidgets(
            layer_list
        )
        docks = [dock for dock in window.findChildren(QDockWidget) if _is_docked(window, dock)]
        self._areas = {dock: window.dockWidgetArea(dock) for dock in docks}
        self._sizes = {dock: dock.size() for dock in docks if dock.isVisible()}
        self._column = sorted(
            (dock for dock in docks if self._areas[dock] == _LEFT), key=lambda dock: dock.y()
        )

    def _restore_column(self, window: QMainWindow) -> None:
        """Stack layer list and layer controls again, unless the user moved one of them."""
        layer_list, controls = napari_docks(window)
        if self._were_tabbed or layer_list is None or controls is None:
            return
        if controls not in window.tabifiedDockWidgets(layer_list):
            return
        # Both: Qt would keep the bar of tabs for one that stays.
        were_hidden = [(dock, dock.isHidden()) for dock in (controls, layer_list)]
        for dock, _ in were_hidden:
            window.removeDockWidget(dock)
        for dock, was_hidden in were_hidden:
            window.addDockWidget(_LEFT, dock)
            dock.setVisible(not was_hidden)
        # A dock that is split off a tab would only become another tab.
        column = [
            dock
            for dock in self._column
            if self._is_in_place(window, dock) and not window.tabifiedDockWidgets(dock)
        ]
        for upper, lower in pairwise(column):
            window.splitDockWidget(upper, lower, Qt.Orientation.Vertical)

    def _restore_sizes(self, window: QMainWindow) -> None:
        docks = [dock for dock in self._sizes if self._is_in_place(window, dock)]
        sizes = [self._sizes[dock] for dock in docks]
        for orientation, lengths in (
            (Qt.Orientation.Horizontal, [size.width() for size in sizes]),
            (Qt.Orientation.Vertical, [size.height() for size in sizes]),
        ):
            window.resizeDocks(docks, lengths, orientation)

    def _is_in_place(self, window: QMainWindow, dock: QDockWidget) -> bool:
        if not isalive(dock):  # type: ignore[no-untyped-call]
            return False
        return _is_docked(window, dock) and window.dockWidgetArea(dock) == self._areas[dock]


def _is_docked(window: QMainWindow, dock: QDockWidget) -> bool:
    nowhere = Qt.DockWidgetArea.NoDockWidgetArea
    return not dock.isFloating() and window.dockWidgetArea(dock) != nowhere
