"""Buttons beside each other, in as many lines as they need."""

from __future__ import annotations

from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import QWidget
from superqt import QFlowLayout

SPACING_PX = 3


class FlowBar(QWidget):
    """A line of widgets that goes on in the next one where the window is narrow.

    No word of them is cut off, and none makes the window wider than it is itself.

    Parameters
    ----------
    widgets
        What stands in the line, from the left.
    """

    def __init__(self, *widgets: QWidget) -> None:
        super().__init__()
        self._widgets = widgets
        layout = QFlowLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setHorizontalSpacing(SPACING_PX)
        layout.setVerticalSpacing(SPACING_PX)
        for widget in widgets:
            layout.addWidget(widget)

    def showEvent(self, event: QShowEvent | None) -> None:  # noqa: N802
        """Make all equally high, so that their words stand on one line."""
        super().showEvent(event)
        height = max(widget.sizeHint().height() for widget in self._widgets)
        for widget in self._widgets:
            widget.setMinimumHeight(height)
