"""The start of a desk: its buttons lead to a cohort, to two layers, or to the sample."""

from __future__ import annotations

from pathlib import Path

from qtpy.compat import isalive

from napari_panoptic.viewer.desk.shell import DeskShell
from napari_panoptic.viewer.panels.start import StartPanel
from napari_panoptic.viewer.state.preferences import PLUGIN, PREFERENCES

COMPARE_LAYERS = "Compare layers"
NOT_INSTALLED = (
    "Cannot open “Compare layers”: napari does not know this plugin. Install it with "
    "“pip install napari-panoptic” and start napari again."
)


class Start:
    """The panel of a desk without a cohort, and what its buttons do.

    Parameters
    ----------
    desk
        The desk.
    """

    def __init__(self, desk: DeskShell) -> None:
        self._desk = desk
        self.panel = StartPanel()
        self.panel.show_last(PREFERENCES.last_cohort)
        self.panel.continue_button.pushed.connect(self._continue)
        self.panel.cohort_button.pushed.connect(self._ask)
        self.panel.layers_button.pushed.connect(self._compare_layers)
        self.panel.sample_button.pushed.connect(self._open_sample)
        self.panel.dropped.connect(self._open_dropped)

    def show_reading(self, name: str) -> None:
        """Show that something is being read."""
        if isalive(self.panel):  # type: ignore[no-untyped-call]
            self.panel.show_reading(name)

    def show_failed(self, message: str) -> None:
        """Show why nothing was opened."""
        if isalive(self.panel):  # type: ignore[no-untyped-call]
            self.panel.show_failed(message)

    def show_over(self) -> None:
        """Show that reading has ended."""
        if isalive(self.panel):  # type: ignore[no-untyped-call]
            self.panel.show_over()

    def _ask(self) -> None:
        self._desk.opener.ask_for_folder(self._desk.viewer, self.panel, self)

    def _continue(self) -> None:
        last = PREFERENCES.last_cohort
        if last is None:
            self.show_failed("Cannot find the cohort that was open last. Open its folder.")
            self.panel.show_last(None)
        else:
            self._desk.opener.open_folder(self._desk.viewer, last, self)

    def _open_sample(self) -> None:
        self._desk.opener.open_sample(self._desk.viewer, self)

    def _open_dropped(self, paths: list[Path]) -> None:
        self._desk.opener.open_files(self._desk.viewer, paths, self)

    def _compare_layers(self) -> None:
        """Open the dock in which layers are chosen; in front, if it is open already."""
        try:
            dock, _ = self._desk.viewer.window.add_plugin_dock_widget(PLUGIN, COMPARE_LAYERS)
        except (KeyError, ValueError):  # it was only imported
            self.show_failed(NOT_INSTALLED)
            return
        dock.show()
        dock.raise_()
