"""The line about a slide above the image: how far it is, and what its squares mean."""

from __future__ import annotations

from psygnal import Signal
from qtpy.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QSizePolicy, QWidget

from napari_panoptic.viewer.kit.shown import RichLabel

STOP, EVALUATE = "Stop", "Evaluate"
_STEPS = 1000


class SlideBar(QWidget):
    """A line that is seen only while a slide is shown."""

    stop_wanted = Signal()
    evaluate_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = RichLabel()
        # Rather cut than make a narrow window wider.
        self._words.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._progress = QProgressBar()
        self._progress.setRange(0, _STEPS)
        self._progress.setFixedWidth(240)
        self._button = QPushButton()
        self._button.clicked.connect(lambda _=False: self._on_button())
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._words, 1)
        row.addWidget(self._progress)
        row.addWidget(self._button)
        self.show_nothing()

    def text(self) -> str:
        """Return the text, as rich text; empty if the line is hidden."""
        return "" if self.isHidden() else self._words.text()

    def progress_text(self) -> str:
        """Return the text about work under way; empty if there is none."""
        return "" if self._progress.isHidden() else self._progress.format()

    def button_text(self) -> str:
        """Return what can be done; empty if nothing can."""
        return "" if self._button.isHidden() else self._button.text()

    def press(self) -> None:
        """Do what can be done, as a click does."""
        self._button.click()

    def show_nothing(self) -> None:
        """Hide the line: no slide is shown."""
        self.hide()

    def show_words(self, words: str, tooltip: str = "") -> None:
        """Show a text about the slide, as rich text."""
        self._words.set_rich(words)
        self._words.setToolTip(tooltip)
        self.show()

    def show_waiting(self, saying: str, share: float = 0.0) -> None:
        """Show how far the evaluation is, from 0 to 1, with a way to stop it."""
        self._progress.setValue(round(_STEPS * share))
        self._progress.setFormat(f"{saying} %p%")
        self._offer(STOP, "Stop; the slide can be evaluated later.")
        self._progress.show()

    def show_stopped(self) -> None:
        """Show that the slide is not evaluated, with a way to do that."""
        self._progress.hide()
        self._offer(EVALUATE, "Evaluate this team on this slide.")

    def show_done(self) -> None:
        """Show that nothing is under way."""
        self._progress.hide()
        self._button.hide()

    def _offer(self, word: str, tooltip: str) -> None:
        self._button.setText(word)
        self._button.setToolTip(tooltip)
        self._button.show()

    def _on_button(self) -> None:
        if self._button.text() == STOP:
            self.stop_wanted.emit()
        else:
            self.evaluate_wanted.emit()
