"""A panel around a list of findings."""

from __future__ import annotations

from qtpy.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from napari_panoptic.viewer.kit.array_table import ArrayTable
from napari_panoptic.viewer.kit.shown import PlainLabel

MIN_LIST_PX = 92


class ListPanel(QScrollArea):
    """A list with more above and below it, or a hint if nothing is listed.

    In a low dock the panel scrolls, so that nothing is squeezed.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table = ArrayTable()
        self.table.setMinimumHeight(MIN_LIST_PX)
        self._hint = PlainLabel()
        self._hint.setWordWrap(True)
        body = QWidget()
        self.setWidget(body)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._rows = QVBoxLayout(body)
        self._rows.setContentsMargins(4, 4, 4, 2)
        self._rows.setSpacing(3)

    def hint_text(self) -> str:
        """Return the hint; empty if something is listed."""
        return "" if self._hint.isHidden() else self._hint.text()
