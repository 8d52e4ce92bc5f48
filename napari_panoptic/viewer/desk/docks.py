"""What every desk does with docks: put them around the image, give them sizes, take them away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from qtpy.QtCore import QEvent, Qt, QTimer
from qtpy.QtWidgets import QDockWidget, QMainWindow, QWidget

from napari_panoptic.viewer.kit.layouts import ShrinkingPanel
from napari_panoptic.viewer.kit.napari_private import napari_docks, on_cross

_TOP = Qt.DockWidgetArea.TopDockWidgetArea
_LEFT, _RIGHT = Qt.DockWidgetArea.LeftDockWidgetArea, Qt.DockWidgetArea.RightDockWidgetArea


class DockedWidget(QWidget):
    """A widget that notices when napari takes it out of its dock."""

    def __init__(self) -> None:
        super().__init__()
        self._was_docked = False

    def taken_out(self) -> None:
        """Do what is to be done when the dock is gone."""
        raise NotImplementedError

    def event(self, event: QEvent | None) -> bool:
        """Notice a change of parent."""
        if event is not None and event.type() == QEvent.Type.ParentChange:
            if self.parent() is not None:
                self._was_docked = True
            elif self._was_docked:
                self._was_docked = False
                self.taken_out()
        return super().event(event)


def add_docks(
    viewer: Any, panels: Iterable[tuple[str, QWidget, str]], strips: Iterable[str]
) -> dict[str, QDockWidget]:
    """Dock panels; their crosses hide them, and napari's Window menu shows them again.

    Parameters
    ----------
    viewer
        The viewer.
    panels
        Name, widget and side (``left``, ``right``, ``top``, ``bottom``) of each.
    strips
        Names of those that need no title of their own.

    Returns
    -------
    dict
        Name -> dock.
    """
    docks: dict[str, QDockWidget] = {}
    strips = set(strips)
    for name, widget, where in panels:
        docks[name] = viewer.window.add_dock_widget(
            widget if name in strips else ShrinkingPanel(widget),
            name=name,
            area=where,
            add_vertical_stretch=False,
            menu=None if name in strips else viewer.window.window_menu,
        )
        # napari would take it out for good, and no key would bring it back.
        on_cross(docks[name], docks[name].hide)
    for name in strips:
        docks[name].setTitleBarWidget(QWidget())
    return docks


def remove_docks(viewer: Any, docks: Iterable[QDockWidget]) -> None:
    """Take docks and the widgets in them away."""
    for dock in docks:
        widget = dock.widget()
        on_cross(dock, None)
        viewer.window.remove_dock_widget(dock, menu=viewer.window.window_menu)
        dock.deleteLater()
        if widget is not None:
            widget.deleteLater()


def dock_of(widget: QWidget) -> QDockWidget | None:
    """Return the dock that a widget stands in."""
    parent = widget.parent()
    return parent if isinstance(parent, QDockWidget) else None


def tab_behind(
    place: QDockWidget | None, dock: QDockWidget, front: QDockWidget | None = None
) -> None:
    """Put a dock into the tabs of another one; a floating dock stays where the user put it.

    Parameters
    ----------
    place
        The dock among whose tabs it comes; nothing is done where None.
    dock
        The dock.
    front
        The tab that is in front afterwards; `place` where None.
    """
    if place is None or dock.isFloating() or not isinstance(window := dock.window(), QMainWindow):
        return
    if dock not in window.tabifiedDockWidgets(place):
        window.tabifyDockWidget(place, dock)
    after_layout(dock, (front or place).raise_)  # Qt brings what was put last to the front


def give_corners_to_sides(window: QMainWindow) -> None:
    """Let the columns at the left and the right reach down to the bottom, below the strip."""
    for corner, area in (
        (Qt.Corner.TopLeftCorner, _TOP),
        (Qt.Corner.BottomLeftCorner, _LEFT),
        (Qt.Corner.TopRightCorner, _TOP),
        (Qt.Corner.BottomRightCorner, _RIGHT),
    ):
        window.setCorner(corner, area)


def after_layout(owner: QWidget, action: Callable[[], None], wait_ms: int = 0) -> None:
    """Do something when Qt has handled what is pending; never after its owner is gone."""
    timer = QTimer(owner)
    timer.setSingleShot(True)
    timer.timeout.connect(action)
    timer.timeout.connect(timer.deleteLater)
    timer.start(wait_ms)


def arrangeable_napari_docks(window: QMainWindow) -> list[QDockWidget]:
    """Return napari's own docks if they are where napari puts them; elsewhere they are left."""
    docks = [dock for dock in napari_docks(window) if dock is not None]
    in_place = (not d.isFloating() and window.dockWidgetArea(d) == _LEFT for d in docks)
    return docks if len(docks) == 2 and all(in_place) else []
