"""The verdict on an item of a plan: large buttons for objects, a number for a square."""

from __future__ import annotations

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QGridLayout, QPushButton, QSpinBox, QVBoxLayout, QWidget

from napari_panoptic.nuclei.values.vocabulary import Verdict
from napari_panoptic.viewer.kit.keys import key_text
from napari_panoptic.viewer.kit.shown import PlainLabel
from napari_panoptic.viewer.panels.review.fields import is_verdict_key
from napari_panoptic.viewer.panels.review.plan.words import TILE_QUESTION
from napari_panoptic.viewer.panels.review.verdict_buttons import (
    BUTTON_PX,
    SPACING_PX,
    VERDICT_KEYS,
    VerdictButtons,
    verdict_title,
)

MOST_NUCLEI = 999


class CountBox(QSpinBox):
    """A number of nuclei; Enter saves it, and verdict keys go to the desk."""

    entered = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setRange(0, MOST_NUCLEI)
        self.setSuffix(" nuclei")
        self.setMinimumHeight(BUTTON_PX)
        self.setMinimumWidth(110)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Save on Enter."""
        if event is not None and is_verdict_key(event):
            event.ignore()
        elif event is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.interpretText()
            self.entered.emit()
        else:
            super().keyPressEvent(event)


class ItemBox(QWidget):
    """The item under review, and the question about it."""

    verdict_given = Signal(Verdict)

    def __init__(self) -> None:
        super().__init__()
        self.verdicts = VerdictButtons()
        self.verdicts.show_reviewer("anyone")  # a plan is shown only to a named reviewer
        self.nuclei = CountBox()
        keys = {verdict: key_text(key) for verdict, key in VERDICT_KEYS.items()}
        self.save = QPushButton(f"Save the number   {keys[Verdict.ANNOTATION_RIGHT]}")
        unclear = Verdict.CANNOT_TELL
        self.unclear = QPushButton(f"{verdict_title(unclear)}   {keys[unclear]}")
        self._title, self._tile = PlainLabel(), QWidget()
        self._lay_out()
        self.verdicts.given.connect(self.verdict_given.emit)
        self.nuclei.entered.connect(self._on_count)
        self.save.clicked.connect(lambda _=False: self._on_count())
        self.unclear.clicked.connect(lambda _=False: self.verdict_given.emit(Verdict.CANNOT_TELL))
        self._tile.hide()

    def show_object(self, title: str, verdict: Verdict | None) -> None:
        """Ask about an object; its earlier verdict is marked."""
        self._show(title, is_tile=False)
        self.verdicts.show_verdict(verdict, enabled=True)

    def show_tile(self, title: str, verdict: Verdict | None, count: int | None) -> None:
        """Ask for a number of nuclei; an earlier one is shown."""
        self._show(title, is_tile=True)
        self.nuclei.setValue(count or 0)
        self.unclear.setChecked(verdict is Verdict.CANNOT_TELL)
        self.nuclei.setFocus()
        self.nuclei.selectAll()

    def show_end(self, text: str, detail: str) -> None:
        """Show that all items are reviewed."""
        self._show("", is_tile=False)
        self.verdicts.show_end(text, detail)

    def title(self) -> str:
        """Return the displayed name of the item."""
        return self._title.text()

    def _show(self, title: str, *, is_tile: bool) -> None:
        self.verdicts.show_end("")
        self._title.setText(title)
        self.verdicts.setVisible(not is_tile)
        self._tile.setVisible(is_tile)

    def _on_count(self) -> None:
        # With a number, the verdict only states that the tile can be judged.
        self.verdict_given.emit(Verdict.ANNOTATION_RIGHT)

    def _lay_out(self) -> None:
        self._title.setStyleSheet("font-weight: bold")
        self._title.setWordWrap(True)
        self.unclear.setCheckable(True)
        for button in (self.save, self.unclear):
            button.setMinimumHeight(BUTTON_PX)
        question = PlainLabel(TILE_QUESTION)
        question.setWordWrap(True)
        tile, layout = QGridLayout(self._tile), QVBoxLayout(self)
        tile.setContentsMargins(0, 0, 0, 0)
        tile.setSpacing(SPACING_PX)
        layout.setContentsMargins(0, 0, 0, 0)
        tile.addWidget(question, 0, 0, 1, 2)
        tile.addWidget(self.nuclei, 1, 0)
        tile.addWidget(self.save, 1, 1)
        tile.addWidget(self.unclear, 2, 0, 1, 2)
        for widget in (self._title, self.verdicts, self._tile):
            layout.addWidget(widget)
