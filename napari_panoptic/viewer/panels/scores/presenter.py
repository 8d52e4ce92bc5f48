"""Sets the threshold of the region that is shown, and evaluates scores over the cohort."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display import styles
from napari_panoptic.display.object_layers import too_many_objects
from napari_panoptic.display.title import threshold_text
from napari_panoptic.live.session import Session
from napari_panoptic.questions.engines.cohort_failures import FailureName
from napari_panoptic.questions.engines.cohort_scores import CohortScores, cohort_scores
from napari_panoptic.questions.engines.thresholds import BestThreshold
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Job, Latest, show_failure
from napari_panoptic.viewer.kit.inputs import Choice
from napari_panoptic.viewer.kit.plot_view import DRAWING
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.cohort_run import CohortRun, RunTexts
from napari_panoptic.viewer.panels.notes import notes_in_tooltip
from napari_panoptic.viewer.panels.part import Connections, Presenter
from napari_panoptic.viewer.panels.scores import panel as texts
from napari_panoptic.viewer.panels.scores.panel import ScoresPanel
from napari_panoptic.viewer.panels.slices.panel import SliceLine

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Plot

MOST_LISTED = 200
"""The most wrong predictions that are listed."""
_TEXTS = RunTexts(texts.HINT, texts.NO_TEAM, texts.COMPUTING, texts.STOPPED, texts.STALE)

# What writes tables and plots takes long to import: it is imported when scores are there.


@dataclass(frozen=True)
class _Request:
    """What is evaluated, and how; distances are not needed."""

    cohort: Cohort
    team: str
    settings: EvaluationSettings
    source: Source | None


@dataclass(frozen=True, eq=False)
class _Found:
    """What scores are worth over the cohort, in the words and rows of the panel."""

    scores: CohortScores
    iou: float
    sentences: tuple[str, ...]
    best: tuple[BestThreshold, ...]
    rows: tuple[Mapping[str, Any], ...]


class ScoresPresenter(Presenter[ScoresPanel]):
    """What the scores of the team that is shown are worth."""

    title = "Scores"
    key = "Alt-t"
    panel_type = ScoresPanel

    def __init__(self, around: Surroundings, panel: ScoresPanel) -> None:
        super().__init__(around, panel)
        self._run: CohortRun[_Request, _Found] = CohortRun(
            panel.work, _TEXTS, wanted=self._request, take=self._on_found, clear=self._clear
        )
        self._drawing: Latest[Plot] = Latest(panel.plot.show_plot)

    @property
    def is_busy(self) -> bool:
        """Whether scores are being evaluated, or a plot drawn."""
        return self._run.is_busy or self._drawing.is_busy

    @property
    def scores(self) -> CohortScores | None:
        """Scores over the cohort; None if unknown under the present settings."""
        return None if self._found is None else self._found.scores

    @property
    def _found(self) -> _Found | None:
        return self._run.result

    def connections(self) -> Connections:
        """Listen to session and panel."""
        session, panel = self.session, self.panel
        return [
            (session.region_changed, self._show_region),
            (session.team_changed, self._on_change),
            (session.settings_changed, self._on_change),
            (session.source_changed, self._on_change),
            (session.threshold_changed, self._show_region),
            (session.edited, self._show_region),
            (session.copies_changed, self._show_region),
            (panel.slider.chosen, self._on_slider),
            (panel.reset.pushed, self.reset),
            (panel.work.start.pushed, self.evaluate),
            (panel.work.stop.pushed, self._run.stop),
            (panel.plots.chosen, self._draw),
            (panel.plot.point_chosen, self._on_point),
            (panel.failures.opened, self._on_opened),
            (panel.gallery.pushed, self._on_gallery),
        ]

    def refresh(self) -> None:
        """Show the region, and that the cohort has not been evaluated yet."""
        self._show_region()
        self._run.reset()

    def close(self) -> None:
        """Stop all work."""
        self._run.close()
        self._drawing.close()

    def reset(self) -> None:
        """Show all predictions again."""
        self.session.set_threshold(None)

    def evaluate(self) -> None:
        """Evaluate the scores of the team over the cohort, in a worker."""
        self._run.start(partial(_evaluated, held_up_to_px=self.session.held_up_to_px))

    # The region that is shown.

    def _show_region(self, _changed: object = None) -> None:
        """Show the scores of the region, and its threshold."""
        session, panel = self.session, self.panel
        why, whole = _why_no_threshold(session), session.with_all_scores(session.team)
        if why is not None or whole is None:
            panel.show_no_slider(why or texts.NO_REGION)
            return
        scores = whole.outcomes.prediction.score
        low, high = _range(scores)
        panel.show_range(low, high)
        threshold = session.threshold
        text = _region_text(scores)
        if threshold is not None and session.evaluation is not None:
            now, then = session.evaluation.metrics.pq, whole.metrics.pq
            text = threshold_text(session.n_below_threshold, threshold)
            text = f"{text[:1].upper()}{text[1:]}: PQ {styles.ratio_text(now)}"
            text += f", with all {styles.ratio_text(then)}. Only this region and team."
        value = low if threshold is None else threshold
        panel.show_threshold(value, text, is_set=threshold is not None)

    def _on_slider(self, value: float) -> None:
        """Leave out what is below; nothing at the lower end."""
        self._set(None if value <= self.panel.slider.minimum() else value)

    def _on_point(self, point: Any) -> None:
        """Set the threshold that a point of the plot stands for."""
        from napari_panoptic.report.plots.scores import THRESHOLDS

        if self.panel.plots.choice == THRESHOLDS and _why_no_threshold(self.session) is None:
            self._set(float(point.x))

    def _set(self, threshold: float | None) -> None:
        try:
            self.session.set_threshold(threshold)
        except PanopticError as error:
            show_failure(error)

    # The cohort.

    def _request(self) -> _Request | None:
        session = self.session
        if session.team is None:
            return None
        settings = session.settings.replaced(distances=False)
        return _Request(session.cohort, session.team, settings, session.source)

    def _on_change(self, _changed: object = None) -> None:
        """Show no scores of another team or other settings."""
        self._show_region()
        self._run.check()

    def _clear(self, hint: str) -> None:
        self._drawing.drop()
        self.panel.show_nothing(hint)

    def _on_found(self, found: _Found) -> None:
        from napari_panoptic.report.nuclei.scores import failure_sentence
        from napari_panoptic.report.plots.scores import plot_names

        scores, lines = found.scores, [*found.sentences]
        if not scores.has_scores:
            self._run.show_nothing(texts.NO_SCORES_AT_ALL)
            return
        count, notes = notes_in_tooltip(scores.findings)
        if count:
            lines.append(count)
        listed = f"Sure and wrong: {styles.count_text(len(found.rows))}"
        if len(found.rows) < len(scores.failures):
            listed += f" of {styles.count_text(len(scores.failures))}, highest score first"
        names = [Choice(name, name) for name in plot_names(scores)]
        self.panel.show_result(lines, names, listed, notes)
        self.panel.show_failures([SliceLine(failure_sentence(row), "") for row in found.rows])
        self._draw(names[0].value)

    def _draw(self, name: str) -> None:
        if self._found is not None:
            self._drawing.start(partial(_drawn, self._found, self.session.cohort.team_names, name))

    def _on_opened(self, row: int) -> None:
        """Go to a wrong prediction."""
        if self._found is not None:
            at, team = self._found.rows[row], self._found.scores.team
            self.link.go_to(at["region"], Side.PREDICTION, int(at["id"]), team=team)

    def _on_gallery(self) -> None:
        """Show the listed predictions in the gallery."""
        if self._found is not None:
            team = self._found.scores.team
            names = [
                FailureName(team, at["region"], Side.PREDICTION, int(at["id"]))
                for at in self._found.rows
            ]
            self.link.show_failures(f"Sure and wrong predictions of {team}", names)


def _why_no_threshold(session: Session) -> str | None:
    """Return why the region that is shown has no threshold; None if it may have one."""
    snapshot = session.snapshot
    if session.team is None:
        return texts.NO_TEAM
    if snapshot is None or session.shown is None:
        return texts.NO_REGION
    if snapshot.is_slide or session.evaluation is None:
        return texts.ON_SLIDE
    whole = session.with_all_scores(session.team)
    if whole is None or np.isnan(whole.outcomes.prediction.score).all():
        return texts.NO_SCORES
    if session.has_edits(snapshot.region.name):
        return texts.EDITED
    return texts.TOO_MANY if too_many_objects(snapshot.predictions[session.team]) else None


def _range(scores: Any) -> tuple[float, float]:
    """Return the ends of the slider: 0 and 1 for probabilities, else whole numbers around all."""
    low, high = float(np.nanmin(scores)), float(np.nanmax(scores))
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return float(math.floor(low)), float(max(math.ceil(high), math.floor(low) + 1))


def _region_text(scores: Any) -> str:
    """Describe the scores of a region."""
    known = int((~np.isnan(scores)).sum())
    low, high = (styles.ratio_text(float(at)) for at in (np.nanmin(scores), np.nanmax(scores)))
    text = f"{styles.count_text(known)} predictions here have scores from {low} to {high}."
    if known < len(scores):
        text += f" {styles.count_text(len(scores) - known)} without a score always stay."
    return text


def _evaluated(request: _Request, job: Job[_Found], *, held_up_to_px: int) -> Iterator[_Found]:
    """Evaluate the scores of a team over the cohort; for workers."""
    from napari_panoptic.report.nuclei.scores import best_thresholds, score_sentences

    scores = cohort_scores(
        request.cohort,
        [request.team],
        request.settings,
        source=request.source,
        held_up_to_px=held_up_to_px,
        progress=job.progress,
    )[request.team]
    # All that takes long, so that the window need not wait for it.
    rows = scores.failures.head(MOST_LISTED).to_dict("records")
    yield _Found(
        scores,
        request.settings.iou_threshold,
        tuple(f"{text}." for text in score_sentences(scores)),
        tuple(best_thresholds(scores)) if scores.has_scores else (),
        tuple({str(key): value for key, value in row.items()} for row in rows),
    )


def _drawn(found: _Found, teams: Sequence[str], name: str) -> Plot:
    from napari_panoptic.report.plots.scores import score_plots

    with DRAWING:
        return score_plots(found.scores, teams, iou=found.iou, best=found.best, only=name)
