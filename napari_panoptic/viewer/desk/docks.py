"""Docks of a desk: added to napari's window, in napari's font size, and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from napari.settings import get_settings
from qtpy.QtWidgets import QDockWidget, QWidget

from napari_panoptic.viewer.jobs.jobs import single_shot
from napari_panoptic.viewer.kit.layouts import ShrinkingPanel
from napari_panoptic.viewer.kit.napari_private import on_cross

_STYLE = """
QToolButton, QLineEdit, QPlainTextEdit, QAbstractItemView, QHeaderView {{ font-size: {size}pt }}
#QtCustomTitleBar[vertical="False"] {{ padding: 0px 1px }}
#QtCustomTitleBar[vertical="False"] > QWidget {{ font-size: {title}pt }}
"""
"""napari's style sheet sets the size of labels and push buttons, but not that of tables, fields
and tool buttons. The titles of its docks are 25 px high whatever their font size."""
_LARGEST_TITLE_PT = 13


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


def after_layout(owner: QWidget, action: Callable[[], None]) -> None:
    """Do something when Qt has handled pending events; never after its owner is gone."""
    timer = single_shot(0, action, owner)
    timer.timeout.connect(timer.deleteLater)
    timer.start()


class DockFonts:
    """Applies napari's font size to docks, until it is released.

    Styling a dock styles all that is in it, which takes long: a hidden one waits until it is shown.

    Parameters
    ----------
    docks
        The docks.
    """

    def __init__(self, docks: Iterable[QDockWidget]) -> None:
        self._docks = list(docks)
        self._changed = get_settings().appearance.events.font_size
        self._changed.connect(self._apply)
        self._applied: dict[QDockWidget, int] = {}
        for dock in self._docks:
            dock.visibilityChanged.connect(partial(self._on_seen, dock))
        self._apply()

    def release(self) -> None:
        """Stop following the settings."""
        self._changed.disconnect(self._apply)
        self._docks, self._applied = [], {}

    def _apply(self, _event: object = None) -> None:
        for dock in self._docks:
            self._on_seen(dock, not dock.isHidden())

    def _on_seen(self, dock: QDockWidget, seen: bool) -> None:
        size = int(get_settings().appearance.font_size)
        if not seen or dock not in self._docks or self._applied.get(dock) == size:
            return
        self._applied[dock] = size
        title = min(size + 1, _LARGEST_TITLE_PT)  # as napari enlarges labels
        dock.setStyleSheet(_STYLE.format(size=size, title=title))
