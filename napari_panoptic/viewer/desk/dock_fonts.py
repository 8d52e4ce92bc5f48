"""Font size in docks: the one chosen in napari's settings.

napari's style sheet sets the size of labels and push buttons, but not that of tables, fields
and tool buttons. The titles of its docks are 25 px high whatever their font size.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from napari.settings import get_settings
from qtpy.QtWidgets import QDockWidget

_STYLE = """
QToolButton, QLineEdit, QPlainTextEdit, QAbstractItemView, QHeaderView {{ font-size: {size}pt }}
#QtCustomTitleBar[vertical="False"] {{ padding: 0px 1px }}
#QtCustomTitleBar[vertical="False"] > QWidget {{ font-size: {title}pt }}
"""
_LARGEST_TITLE_PT = 13


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
