"""The scores panel: a threshold, plots, and the wrong predictions with the highest scores."""

from __future__ import annotations

from collections.abc import Sequence

from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox, NumberSlider
from napari_panoptic.viewer.kit.layouts import ScrollPanel
from napari_panoptic.viewer.kit.plot_view import PlotView
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import PushButton, WorkControls
from napari_panoptic.viewer.panels.slices.panel import SliceLine, SliceList

NO_TEAM = "Choose a team with predictions."
NO_REGION = "The region is not evaluated."
NO_SCORES = (
    "This team has no scores in this region. They are read from the file of the objects, from a "
    "table beside it, or from a probability map; docs/scores.md has the formats."
)
ON_SLIDE = "On slides that are read in windows, no threshold can be set."
EDITED = "No threshold in a region with unsaved edits: save or discard them first."
TOO_MANY = "No threshold in a region with more objects than colours."
HINT = (
    "Press “Evaluate” for average precision, calibration, the best threshold, and the predictions "
    "that are sure and wrong, over the cohort."
)
COMPUTING = "Evaluating the cohort …"
STOPPED = "Stopped. Press “Evaluate” to start again."
STALE = "Outdated: the team, the settings or the files have changed. Press “Evaluate” again."
NO_SCORES_AT_ALL = (
    "No prediction of this team has a score; docs/scores.md lists where scores are read from."
)
_LEAST_LIST_PX, _LEAST_PLOT_PX = 110, 190


class ScoresPanel(ScrollPanel):
    """A threshold for the region on the screen, and statistics of the scores over the cohort."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.slider = NumberSlider(0.0, 1.0, step=0.01, decimals=3)
        self.slider.setToolTip("Predictions with a lower score are left out of this region.")
        self.slider.setAccessibleName("Threshold of the score")
        self.reset = PushButton("Reset", "Show all predictions again.")
        self.state, self.headline = WrappedLabel(), WrappedLabel()
        self.work = WorkControls(
            "Evaluate",
            "Evaluate scores over the cohort, from the files on disk.",
            stop_tooltip="Stop the evaluation.",
        )
        self.evaluate = self.work.start
        self.plots = ChoiceBox(meaning="Which plot to show.")
        self.plot = PlotView()
        self.plot.setMinimumHeight(_LEAST_PLOT_PX)
        self.failures = SliceList()
        self.failures.setAccessibleName("Sure and wrong predictions")
        self.failures.setMinimumHeight(_LEAST_LIST_PX)
        self.listed = WrappedLabel()
        self.gallery = PushButton("Gallery", "Show exactly these predictions in the gallery.")
        self._of_slider, self._of_result = QWidget(), QWidget()
        self._lay_out()
        self.show_nothing(HINT)

    def show_range(self, low: float, high: float) -> None:
        """Set the range of the slider to the scores of a region; emits nothing."""
        blocked = self.slider.blockSignals(True)
        self.slider.setRange(low, high)
        self.slider.setSingleStep((high - low) / 100)
        self.slider.blockSignals(blocked)
        self._of_slider.show()

    def show_threshold(self, threshold: float, text: str, *, is_set: bool) -> None:
        """Show a threshold and what it leaves out."""
        self.slider.show_value(threshold)
        self.reset.setEnabled(is_set)
        self.state.setText(text)

    def show_no_slider(self, why: str) -> None:
        """Show why there is no threshold to choose."""
        self._of_slider.hide()
        self.state.setText(why)

    def show_nothing(self, hint: str) -> None:
        """Show a sentence instead of results of the cohort."""
        self.headline.setText(hint)
        self.headline.setToolTip("")
        self._of_result.hide()
        self.failures.fill(())
        self.plots.offer(())
        self.plot.show_plot(None)

    def show_result(
        self, sentences: Sequence[str], plots: Sequence[Choice], listed: str, notes: str
    ) -> None:
        """Show statistics of the scores over the cohort.

        Parameters
        ----------
        sentences
            Its figures.
        plots
            Which plots there are.
        listed
            The line above the list of wrong predictions.
        notes
            What was left out, for the tooltip.
        """
        self.headline.setText("\n".join(sentences))
        self.headline.setToolTip(shown(notes))
        self.plots.offer(plots)
        self.listed.setText(listed)
        self._of_result.show()

    def show_failures(self, lines: Sequence[SliceLine]) -> None:
        """List wrong predictions."""
        self.failures.fill(lines)
        self.gallery.setEnabled(bool(lines))

    def _lay_out(self) -> None:
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        layout = self._rows
        row = QHBoxLayout(self._of_slider)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(PlainLabel("Threshold"))
        row.addWidget(self.slider, 1)
        row.addWidget(self.reset)
        layout.addWidget(self._of_slider)
        layout.addWidget(self.state)
        over = QHBoxLayout()
        over.addWidget(PlainLabel("Over the cohort"), 1)
        over.addWidget(self.evaluate)
        over.addWidget(self.work.stop)
        layout.addLayout(over)
        layout.addWidget(self.work.bar)
        layout.addWidget(self.headline)
        inner = QVBoxLayout(self._of_result)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.setSpacing(3)
        above = QHBoxLayout()
        above.addWidget(self.listed, 1)
        above.addWidget(self.gallery)
        inner.addLayout(above)
        inner.addWidget(self.failures, 1)
        inner.addWidget(self.plots)
        inner.addWidget(self.plot, 1)
        layout.addWidget(self._of_result, 1)
        layout.addStretch(0)
