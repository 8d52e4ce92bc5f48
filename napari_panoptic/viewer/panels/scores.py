"""The value of a team's scores, and the region without predictions of low score."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import counted
from napari_panoptic.display.object_layers import too_many_objects
from napari_panoptic.display.styles import count_text, ratio_text
from napari_panoptic.display.title import threshold_text
from napari_panoptic.live.session import Session
from napari_panoptic.questions.scores import THRESHOLDS_PLOT, ScoreQuality
from napari_panoptic.viewer.jobs.jobs import show_failure
from napari_panoptic.viewer.kit.inputs import NumberSlider
from napari_panoptic.viewer.kit.layouts import Grow, lay_out
from napari_panoptic.viewer.kit.shown import WrappedLabel
from napari_panoptic.viewer.kit.widgets import PushButton
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.panels.question.presenter import NO_TEAM, QuestionPresenter
from napari_panoptic.viewer.panels.question.view import QuestionView

NO_REGION = "The region is not evaluated."
NO_SCORES = (
    "This team has no scores in this region. They are read from the file of the objects, from a "
    "table beside it, or from a probability map; docs/tasks/scores.md has the formats."
)
ON_SLIDE = "On slides that are read in windows, no threshold can be set."
EDITED = "No threshold in a region with unsaved edits: save or discard them first."
TOO_MANY = "No threshold in a region with more objects than colours."


class ThresholdBar(QWidget):
    """The threshold of the region on the screen, and the objects that it leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.slider = NumberSlider(0.0, 1.0, step=0.01, decimals=3)
        self.slider.setToolTip("Predictions with a lower score are left out of this region.")
        self.slider.setAccessibleName("Threshold of the score")
        self.reset = PushButton("Reset", "Show all predictions again.")
        self.state, self._of_slider = WrappedLabel(), QWidget()
        lay_out(self._of_slider, ("Threshold", Grow(self.slider), self.reset))
        lay_out(self, self._of_slider, self.state)

    def show_threshold(
        self, limits: tuple[float, float], threshold: float | None, text: str
    ) -> None:
        """Show a threshold between the limits of all scores, and the objects that it leaves out."""
        low, high = limits
        with QSignalBlocker(self.slider):
            self.slider.setRange(low, high)
            self.slider.setSingleStep((high - low) / 100)
        self.slider.show_value(low if threshold is None else threshold)
        self.reset.setEnabled(threshold is not None)
        self.state.setText(text)
        self._of_slider.show()

    def show_no_slider(self, why: str) -> None:
        """Show why there is no threshold to choose."""
        self._of_slider.hide()
        self.state.setText(why)


class ScoresView(QuestionView):
    """The threshold above the question."""

    def __init__(self) -> None:
        bar = ThresholdBar()
        super().__init__(ScoreQuality, bar)
        self.threshold = bar


class ScoresPresenter(QuestionPresenter):
    """The value of the shown team's scores, and the threshold of the region."""

    kind = ScoreQuality
    title, key = ScoreQuality.title, ScoreQuality.key
    panel_type = ScoresView
    panel: ScoresView

    def connections(self) -> Connections:
        """Listen to the threshold as well."""
        session, panel = self.session, self.panel
        return [
            *super().connections(),
            (session.region_changed, self._show_region),
            (session.threshold_changed, self._show_region),
            (panel.threshold.slider.chosen, self._on_slider),
            (panel.threshold.reset.pushed, self._on_reset),
            (panel.plots.view.point_chosen, self._on_point),
        ]

    def refresh(self, *changed: object) -> None:
        """Show the region, and what is known of the cohort."""
        self._show_region()
        super().refresh(*changed)

    def _on_edit(self, edited: object = None) -> None:
        self._show_region()
        super()._on_edit(edited)

    def _show_region(self, _changed: object = None) -> None:
        """Show the scores of the region, and its threshold."""
        session, bar = self.session, self.panel.threshold
        why, whole = _why_no_threshold(session), session.with_all_scores(session.team)
        if why is not None or whole is None:
            bar.show_no_slider(why or NO_REGION)
            return
        scores, threshold = whole.outcomes.prediction.score, session.threshold
        text = _region_text(scores)
        if threshold is not None and session.evaluation is not None:
            now, then = session.evaluation.metrics.pq, whole.metrics.pq
            text = threshold_text(session.n_below_threshold, threshold)
            text = f"{text[:1].upper()}{text[1:]}: PQ {ratio_text(now)}"
            text += f", with all {ratio_text(then)}. Only this region and team."
        bar.show_threshold(_limits(scores), threshold, text)

    def _on_slider(self, value: float) -> None:
        """Leave out lower scores; none at the lower end."""
        self._set(None if value <= self.panel.threshold.slider.minimum() else value)

    def _on_reset(self) -> None:
        self._set(None)

    def _on_point(self, point: Any) -> None:
        """Set the threshold of a point of the plot."""
        plot = self.panel.plots.menu.choice
        if plot.title == THRESHOLDS_PLOT and _why_no_threshold(self.session) is None:
            self._set(float(point.x))

    def _set(self, threshold: float | None) -> None:
        try:
            self.session.set_threshold(threshold)
        except PanopticError as error:
            show_failure(error)


def _why_no_threshold(session: Session) -> str | None:
    """Return why the shown region has no threshold; None if it may have one."""
    snapshot = session.snapshot
    if session.team is None:
        return NO_TEAM
    if snapshot is None or session.shown is None:
        return NO_REGION
    if snapshot.is_slide or session.evaluation is None:
        return ON_SLIDE
    whole = session.with_all_scores(session.team)
    if whole is None or np.isnan(whole.outcomes.prediction.score).all():
        return NO_SCORES
    if session.has_edits(snapshot.region.name):
        return EDITED
    return TOO_MANY if too_many_objects(snapshot.predictions[session.team]) else None


def _limits(scores: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the slider: 0 and 1 for probabilities, else whole numbers around all."""
    low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return float(math.floor(low)), float(max(math.ceil(high), math.floor(low) + 1))


def _region_text(scores: NDArray[np.float64]) -> str:
    """Describe the scores of a region."""
    known = int((~np.isnan(scores)).sum())
    low, high = (ratio_text(float(at)) for at in (np.nanmin(scores), np.nanmax(scores)))
    nouns = ("prediction here has scores", "predictions here have scores")
    own = counted(known, *nouns, write=count_text)
    text = f"{own} from {low} to {high}."
    if known < len(scores):
        text += f" {count_text(len(scores) - known)} without a score always stay."
    return text
