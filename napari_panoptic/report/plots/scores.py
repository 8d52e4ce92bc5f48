"""Plots of the scores of a team: precision and recall, calibration, thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from napari_panoptic.display.palette import class_colours, hex_colour
from napari_panoptic.nuclei.metrics import FIGURE_NAMES
from napari_panoptic.questions.engines.calibration import Reliability
from napari_panoptic.questions.engines.cohort_scores import CohortScores
from napari_panoptic.questions.engines.precision import RECALLS
from napari_panoptic.questions.engines.thresholds import BestThreshold, ThresholdCurve
from napari_panoptic.questions.scores import CALIBRATION, PRECISION, plot_names
from napari_panoptic.report.plots.theme import (
    INK,
    PALE,
    SMALL,
    Drawing,
    Plot,
    label,
    name_axes,
    points_of,
)
from napari_panoptic.tables.figures import count, ratio

_MOST_POINTS = 101
_LINES = ("-", "--")


def score_plots(
    scores: CohortScores,
    teams: Sequence[str],
    iou: float,
    best: Sequence[BestThreshold] = (),
    only: str = "",
) -> Plot:
    """Draw precision over recall, a reliability diagram, and figures over thresholds.

    Parameters
    ----------
    scores
        The scores of a team.
    teams
        All teams of the cohort, whose order decides the colour.
    iou
        Least IoU of matching pairs, for precision and recall.
    best
        The best thresholds, which are marked with their figures.
    only
        The one of `napari_panoptic.questions.scores.plot_names` to draw, wider and without a
        title; empty for all.
    """
    names = [only] if only else plot_names(scores)
    drawing = Drawing(4.6 if only else 2.8 * len(names), 2.7, teams)
    panels = drawing.panels([""] if only else names, len(names), share=False)
    for name, axes in zip(names, panels, strict=True):
        if name == PRECISION:
            _precision(drawing, axes, scores, iou)
        elif name == CALIBRATION and scores.reliability is not None:
            _calibration(drawing, axes, scores.reliability, scores.team)
        elif scores.curve is not None:
            _thresholds(drawing, axes, scores.curve, scores.team, best)
    return drawing.done()


def _precision(drawing: Drawing, axes: Axes, scores: CohortScores, iou: float) -> None:
    colours = class_colours(len(scores.class_names))
    for name, colour in zip(scores.class_names, colours, strict=True):
        found = scores.precision_recall(iou, name)
        if found.references:
            shown = f"{name}, AP {ratio(found.average_precision)}"
            axes.plot(
                RECALLS,
                _reached(*found.at_recalls()),
                color=hex_colour(colour),
                linewidth=0.9,
                label=label(shown, 40),
            )
    whole = scores.precision_recall(iou)
    score = whole.at_recalls()[1]
    precision = _reached(*whole.at_recalls())
    xs, ys = RECALLS[::10], precision[::10]
    texts = [
        f"recall {ratio(x)}, precision {ratio(y)}, scores from {ratio(t)}"
        for x, y, t in zip(xs, ys, score[::10], strict=True)
    ]
    points = points_of(scores.team, xs, ys, texts)
    axes.plot(RECALLS, precision, color=drawing.styles[scores.team].colour, linewidth=1.8)
    shown = label(f"all, AP {ratio(whole.average_precision)}")
    drawing.mark(axes, points, scores.team, label=shown)
    name_axes(axes, "recall", "precision")
    _unit(axes)
    axes.legend(fontsize=6, frameon=False, loc="lower left")


def _reached(precision: NDArray[np.float64], score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return precision where the recall is reached, NaN elsewhere."""
    return np.where(np.isnan(score), np.nan, precision)


def _calibration(drawing: Drawing, axes: Axes, found: Reliability, team: str) -> None:
    there = np.flatnonzero(found.objects > 0)
    axes.plot([0, 1], [0, 1], color=PALE, linewidth=0.8, linestyle="--", zorder=0)
    x = found.score[there]
    ends = np.stack([found.low[there], found.high[there]])
    axes.plot(np.stack([x, x]), ends, color=drawing.styles[team].colour, linewidth=1.0)
    y = found.share[there]
    texts = [
        f"mean score {ratio(score)}, right {ratio(share)} of {count(n)}"
        for score, share, n in zip(x, y, found.objects[there], strict=True)
    ]
    points = points_of(team, x, y, texts)
    drawing.mark(axes, points, team, linestyle="-", linewidth=0.9)
    name_axes(axes, "score (mean of the bin)", "share right")
    axes.text(
        0.03,
        0.97,
        f"ECE {ratio(found.ece)} ({ratio(found.by_chance)} by chance)",
        transform=axes.transAxes,
        va="top",
        fontsize=SMALL,
        color=INK,
    )
    _unit(axes)


def _thresholds(
    drawing: Drawing,
    axes: Axes,
    curve: ThresholdCurve,
    team: str,
    best: Sequence[BestThreshold],
) -> None:
    k = len(curve.thresholds)
    shown = np.unique(np.linspace(0, k - 1, min(k, _MOST_POINTS)).round().astype(np.int64))
    x = curve.thresholds[shown]
    for found, line in zip(best, _LINES, strict=False):
        y = curve.mean(found.figure)[shown]
        name = FIGURE_NAMES[found.figure]
        texts = [f"threshold {ratio(a)}: {name} {ratio(b)}" for a, b in zip(x, y, strict=True)]
        points = points_of(team, x, y, texts)
        drawing.mark(axes, points, team, linestyle=line, linewidth=1.2, markersize=0, label=name)
        axes.axvline(found.threshold, color=PALE, linewidth=0.8, linestyle=line, zorder=0)
    name_axes(axes, "threshold of the score", "mean over patients")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=6, frameon=False, loc="lower left")


def _unit(axes: Axes) -> None:
    axes.set_xticks([0, 0.5, 1])
    axes.set_yticks([0, 0.5, 1])
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
