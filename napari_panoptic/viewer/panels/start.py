"""The panel of a desk without a cohort: ways to begin, as large buttons."""

from __future__ import annotations

from pathlib import Path

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QDragEnterEvent, QDropEvent, QResizeEvent
from qtpy.QtWidgets import QProgressBar, QSizePolicy, QVBoxLayout, QWidget

from napari_panoptic.viewer.kit.shown import WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import ElidedLabel, PushButton, heading

TITLE = "Compare predicted nuclei with an annotation"
DROP_HINT = (
    "Or drop a cohort folder here, or an annotation and predictions of one image "
    "(label images, GeoJSON, XML and other formats)."
)
BUTTON_PX = 58
"""Height of a button: two lines of text and a margin."""


class StartPanel(QWidget):
    """Ways to begin; shows what is being read, and why something could not be opened."""

    dropped = Signal(object)  # the paths of files and folders

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAcceptDrops(True)
        self._last: Path | None = None
        self.continue_button = _button("Continue")
        self.cohort_button = _button("Open a cohort…\nA folder of regions")
        self.layers_button = _button("Compare two layers\nOpen in napari")
        self.sample_button = _button("Open the sample\nFour teams")
        self._buttons = (
            *(self.continue_button, self.cohort_button),
            *(self.layers_button, self.sample_button),
        )
        self.reading = ElidedLabel()
        self._bar = QProgressBar()
        self._bar.setRange(0, 0)
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(8)
        self.failure = WrappedLabel()
        self.failure.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        hint = WrappedLabel(DROP_HINT)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 10, 12, 10)
        layout.setSpacing(8)
        layout.addWidget(heading(TITLE))
        for widget in (*self._buttons, self.reading, self._bar, self.failure, hint):
            layout.addWidget(widget)
        layout.addStretch(1)
        self.show_over()
        self.show_failed("")
        self.show_last(None)

    def show_last(self, folder: Path | None) -> None:
        """Offer to continue with the cohort that was open last; None if there is none."""
        self._last = folder
        self.continue_button.setVisible(folder is not None)
        self._write_last()

    def show_reading(self, name: str) -> None:
        """Show that something is being read; the buttons wait for it."""
        self.show_failed("")
        self.reading.set_text(f"Reading {name} …")
        self._set_reading(True)

    def show_over(self) -> None:
        """Show that reading has ended."""
        self._set_reading(False)

    def show_failed(self, message: str) -> None:
        """Show why nothing was opened; empty for nothing to report."""
        self.failure.setText(f"⚠ {message}" if message else "")
        self.failure.setVisible(bool(message))

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:  # noqa: N802
        """Accept files and folders."""
        if event is not None and dropped_files(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent | None) -> None:  # noqa: N802
        """Hand over what was dropped."""
        if event is not None and (paths := dropped_files(event)):
            event.acceptProposedAction()
            self.dropped.emit(paths)

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Shorten the name of the last cohort to the width."""
        super().resizeEvent(event)
        self._write_last()

    def _set_reading(self, is_reading: bool) -> None:
        self.reading.setVisible(is_reading)
        self._bar.setVisible(is_reading)
        for button in self._buttons:
            button.setEnabled(not is_reading)

    def _write_last(self) -> None:
        if self._last is None:
            return
        button, room = self.continue_button, max(self.width() - 60, 100)
        place = button.fontMetrics().elidedText(
            str(self._last.parent), Qt.TextElideMode.ElideMiddle, room
        )
        name = button.fontMetrics().elidedText(
            f"Continue: {self._last.name}", Qt.TextElideMode.ElideRight, room
        )
        button.setText(shown(f"{name}\n{place}").replace("&", "&&"))
        button.setToolTip(shown(str(self._last)))


def dropped_files(event: QDropEvent) -> list[Path]:
    """List the files and folders of a drop that are on this machine."""
    data = event.mimeData()
    return [] if data is None else [Path(u.toLocalFile()) for u in data.urls() if u.isLocalFile()]


def _button(text: str) -> PushButton:
    button = PushButton(text)
    button.setMinimumHeight(BUTTON_PX)
    # Their texts fit at every width, and must not keep the panel wide.
    button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    return button
