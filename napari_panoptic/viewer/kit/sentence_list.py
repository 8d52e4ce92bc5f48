"""A list of sentences of which one is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QAbstractItemView, QListWidget, QListWidgetItem

from napari_panoptic.viewer.kit.shown import shown
from napari_panoptic.viewer.kit.widgets import is_desk_key

_LEAST_PX = 90


class SentenceList(QListWidget):
    """Sentences of which one is chosen by a click, Enter or Space; hidden without any."""

    opened = Signal(int)
    rested = Signal(int)  # the row that the keys or the mouse went to

    def __init__(self, title: str) -> None:
        super().__init__()
        self.setWordWrap(True)
        self.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setSpacing(2)
        self.setMinimumHeight(_LEAST_PX)
        self.setAccessibleName(title)
        self.currentRowChanged.connect(self._on_row)
        self.itemClicked.connect(lambda item: self.opened.emit(self.row(item)))

    def fill(self, sentences: Sequence[str], tooltips: Sequence[str] = ()) -> None:
        """Show other sentences, the first one current."""
        self.clear()
        for place, text in enumerate(sentences):
            item = QListWidgetItem(shown(f"{place + 1}. {text}"))
            item.setToolTip(shown(tooltips[place]) if tooltips else "")
            self.addItem(item)
        self.setVisible(bool(sentences))
        if sentences:
            self.setCurrentRow(0)

    def texts(self) -> list[str]:
        """Return the sentences."""
        items = (self.item(row) for row in range(self.count()))
        return [item.text() for item in items if item is not None]

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Open on Enter and Space; letters go to the desk."""
        keys = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
        if event is not None and event.key() in keys and self.currentRow() >= 0:
            self.opened.emit(self.currentRow())
        elif event is not None and is_desk_key(event):
            event.ignore()
        else:
            super().keyPressEvent(event)

    def _on_row(self, row: int) -> None:
        if row >= 0:
            self.rested.emit(row)
