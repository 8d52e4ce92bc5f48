"""Font size in docks: the one chosen in napari's settings.

napari's style sheet sets the size of labels and push buttons, but not that of tables, fields
and tool buttons. The titles of its docks are 25 px high whatever their font size.
"""

from __future__ import annotations

from collections.abc import Iterable

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

    Parameters
    ----------
    docks
        The docks.
    """

    def __init__(self, docks: Iterable[QDockWidget]) -> None:
        self._docks = list(docks)
        self._changed = get_settings().appearance.events.font_size
        self._changed.connect(self._apply)
        self._apply()

    def release(self) -> None:
        """Stop following the settings."""
        self._changed.disconnect(self._apply)
        self._docks = []

    def _apply(self, _event: object = None) -> None:
        size = int(get_settings().appearance.font_size)
        title = min(size + 1, _LARGEST_TITLE_PT)  # as napari enlarges labels
        for dock in self._docks:
            dock.setStyleSheet(_STYLE.format(size=size, title=title))
