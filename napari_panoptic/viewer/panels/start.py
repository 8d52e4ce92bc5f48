"""The panel of a desk without a cohort: ways to begin, as large buttons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qtpy.compat import isalive
from qtpy.QtCore import Qt
from qtpy.QtGui import QDragEnterEvent, QDropEvent, QResizeEvent
from qtpy.QtWidgets import QProgressBar, QSizePolicy, QWidget

from napari_panoptic.values.cohort import Task
from napari_panoptic.viewer.kit.layouts import lay_out
from napari_panoptic.viewer.kit.shown import OpeningReport, WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import ElidedLabel, PushButton, heading
from napari_panoptic.viewer.state.preferences import PLUGIN, PREFERENCES

TITLE = "Compare predicted nuclei with an annotation"
DROP_HINT = (
    "Or drop a cohort folder here, or an annotation and predictions of one image "
    "(label images, GeoJSON, XML and other formats)."
)
BUTTON_PX = 58
"""Height of a button: two lines of text and a margin."""


COMPARE_LAYERS = "Compare layers"
NOT_INSTALLED = (
    "Cannot open “Compare layers”: napari does not know this plugin. Install it with "
    "“pip install napari-panoptic” and start napari again."
)


class StartPanel(QWidget):
    """Ways to begin; shows the progress of reading, and why something could not be opened.

    Parameters
    ----------
    viewer
        In whose window layers are compared.
    open_cohort
        Opens a folder, dropped files, the sample of a task, or (None) a folder that it asks for,
        and reports here how that goes.
    """

    def __init__(self, viewer: Any, open_cohort: Callable[[Any, OpeningReport], object]) -> None:
        super().__init__()
        self._viewer, self._open = viewer, open_cohort
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
        below = (self.reading, self._bar, self.failure, WrappedLabel(DROP_HINT))
        rows = (heading(TITLE), *self._buttons, *below)
        lay_out(self, *rows, margins=(12, 10, 12, 10)).setSpacing(8)
        self.show_over()
        self.show_failed("")
        self.show_last(PREFERENCES.last_cohort)
        self.continue_button.pushed.connect(self._continue)
        self.cohort_button.pushed.connect(self._ask)
        self.layers_button.pushed.connect(self._compare_layers)
        self.sample_button.pushed.connect(self._open_sample)

    def show_last(self, folder: Path | None) -> None:
        """Offer to continue with the cohort that was open last; None if there is none."""
        self._last = folder
        self.continue_button.setVisible(folder is not None)
        self._write_last()

    def show_reading(self, name: str) -> None:
        """Show that something is being read; the buttons wait for it."""
        if isalive(self):  # type: ignore[no-untyped-call]
            self.show_failed("")
            self.reading.set_text(f"Reading {name} …")
            self._set_reading(True)

    def show_over(self) -> None:
        """Show that reading has ended."""
        if isalive(self):  # type: ignore[no-untyped-call]
            self._set_reading(False)

    def show_failed(self, message: str) -> None:
        """Show why nothing was opened; empty for nothing to report."""
        if isalive(self):  # type: ignore[no-untyped-call]
            self.failure.setText(f"⚠ {message}" if message else "")
            self.failure.setVisible(bool(message))

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:  # noqa: N802
        """Accept files and folders."""
        if event is not None and dropped_files(event):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent | None) -> None:  # noqa: N802
        """Open dropped files."""
        if event is not None and (paths := dropped_files(event)):
            event.acceptProposedAction()
            self._open(paths, self)

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Shorten the name of the last cohort to the width."""
        super().resizeEvent(event)
        self._write_last()

    def _ask(self) -> None:
        self._open(None, self)

    def _open_sample(self) -> None:
        self._open(Task.NUCLEI, self)

    def _continue(self) -> None:
        last = PREFERENCES.last_cohort
        if last is None:
            self.show_failed("Cannot find the cohort that was open last. Open its folder.")
            self.show_last(None)
        else:
            self._open(last, self)

    def _compare_layers(self) -> None:
        """Open the dock in which layers are chosen; in front, if it is open already."""
        try:
            dock, _ = self._viewer.window.add_plugin_dock_widget(PLUGIN, COMPARE_LAYERS)
        except (KeyError, ValueError):  # it was only imported
            self.show_failed(NOT_INSTALLED)
            return
        dock.show()
        dock.raise_()

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
