"""A section of a panel that is opened when it is needed."""

from __future__ import annotations

from qtpy.QtCore import QSize, Qt
from qtpy.QtGui import QIcon, QPixmap
from qtpy.QtWidgets import QVBoxLayout, QWidget
from superqt import QCollapsible

from napari_panoptic.viewer.kit.shown import shown

_TITLE_STYLE = (
    "QPushButton, QPushButton:checked { text-align: left; border: none; padding: 3px; "
    "background: transparent; font-weight: bold }"
)
_ANY_HEIGHT = 16_777_215  # Qt's QWIDGETSIZE_MAX
LONGEST_TITLE = 34
"""Letters of a title, which may contain a name."""


class Section(QCollapsible):  # type: ignore[misc]
    """Widgets under a title; closed, they are hidden.

    Parameters
    ----------
    title
        What is in it.
    """

    def __init__(self, title: str) -> None:
        # The arrow is part of the text: an icon would not follow the theme's colours.
        super().__init__(expandedIcon=_no_icon(), collapsedIcon=_no_icon())
        self.toggleButton().setIconSize(QSize(1, 1))
        self._title = ""
        self.toggleButton().setStyleSheet(_TITLE_STYLE)
        self.set_title(title)
        self._body = QWidget()
        self._rows = QVBoxLayout(self._body)
        self._rows.setContentsMargins(10, 0, 0, 0)
        self._rows.setSpacing(4)
        self.setContent(self._body)
        self._body.hide()
        self.setDuration(0)
        layout = self.layout()
        if layout is not None:
            layout.setContentsMargins(0, 0, 0, 0)
            layout.setSpacing(2)
        self.toggled.connect(self._on_toggled)

    def set_title(self, title: str) -> None:
        """Show another title."""
        self._title = title if len(title) <= LONGEST_TITLE else f"{title[:LONGEST_TITLE]}…"
        self._show_title()

    def add(self, widget: QWidget) -> None:
        """Add a widget below the others."""
        self._rows.addWidget(widget)

    def _on_toggled(self, is_open: bool) -> None:
        # Wrapped lines of text need more height than the section itself would leave them.
        self._body.setMaximumHeight(_ANY_HEIGHT if is_open else 0)
        self._body.setVisible(is_open)
        self._show_title()

    def _show_title(self) -> None:
        arrow = "▾" if self.isExpanded() else "▸"
        self.setText(f"{arrow} {shown(self._title)}".replace("&", "&&"))


def _no_icon() -> QIcon:
    """Return an icon that cannot be seen; an empty one is no icon for superqt with PySide."""
    pixmap = QPixmap(1, 1)
    pixmap.fill(Qt.GlobalColor.transparent)
    return QIcon(pixmap)
