"""Plots of sweeps: a figure, and causes of failures, over the settings of a parameter."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes

from napari_panoptic.nuclei.metrics import FIGURE_NAMES
from napari_panoptic.questions.engines.cohort_objects import CAUSES_OF
from napari_panoptic.questions.engines.sweep import CohortSweep
from napari_panoptic.questions.engines.sweep_design import value_text
from napari_panoptic.report.plots.theme import (
    NORMAL,
    PALE,
    SMALL,
    Drawing,
    Plot,
    Point,
    grid,
    label,
    nothing_to_show,
    slanted_names,
)
from napari_panoptic.statistics.bootstrap import Interval
from napari_panoptic.tables.figures import count, interval, ratio
from napari_panoptic.values.vocabulary import Side

_MOST_TICKS = 24


def sweep_figure(sweep: CohortSweep) -> Plot:
    """Draw the mean of the metric under each setting, with its interval over patients.

    Settings that differ in the last parameter only are joined by a line.
    """
    drawing = Drawing(7.4, 3.0, [sweep.metric])
    (axes,) = drawing.panels([""], 1)
    colour = drawing.styles[sweep.metric].colour
    means = sweep.means
    for run in _runs(sweep):
        shown = [place for place in run if not math.isnan(means[place].mean)]
        low, high = ([getattr(means[p], end) for p in shown] for end in ("low", "high"))
        axes.plot([shown, shown], [low, high], color=colour, linewidth=1.0)
        points = [
            Point(p, means[p].mean, sweep.design.teams[p], text=_with_interval(means[p]))
            for p in shown
        ]
        drawing.mark(axes, points, sweep.metric, linestyle="-", linewidth=0.9)
    if sweep.choice.best is not None:
        axes.axvline(sweep.choice.best, color=PALE, linewidth=0.8, linestyle="--", zorder=0)
    _settings_axis(axes, sweep)
    axes.set_ylabel(FIGURE_NAMES[sweep.metric], fontsize=SMALL)
    return drawing.done()


def sweep_causes(sweep: CohortSweep) -> Plot:
    """Draw the number of failures of each cause under each setting, a panel per side."""
    names = {
        side: [c for c in CAUSES_OF[side] if any(own[side, c] for own in sweep.causes)]
        for side in Side
    }
    causes = list(dict.fromkeys(cause for own in names.values() for cause in own))
    if not causes:
        return nothing_to_show("no setting has a failure to show")
    titles = {
        Side.REFERENCE: "annotated nuclei: FN, misclassified",
        Side.PREDICTION: "predictions: FP",
    }
    drawing = Drawing(7.4, 3.4, causes)
    panels = drawing.panels(list(titles.values()), 2, share=False)
    for axes, side in zip(panels, titles, strict=True):
        for cause in names[side]:
            for run in _runs(sweep):
                points = [
                    Point(
                        place,
                        sweep.causes[place][side, cause],
                        sweep.design.teams[place],
                        text=f"{cause}: {count(sweep.causes[place][side, cause])}",
                    )
                    for place in run
                ]
                drawing.mark(axes, points, cause, linestyle="-", linewidth=1.0)
        _settings_axis(axes, sweep)
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("objects", fontsize=SMALL)
    drawing.legend(causes, lines=True)
    return drawing.done()


def _with_interval(mean: Interval) -> str:
    """Return a mean with its interval."""
    return f"{ratio(mean.mean)} ({interval(mean.low, mean.high)})"


def _runs(sweep: CohortSweep) -> Iterator[Sequence[int]]:
    """Yield places of settings that are equal in all parameters but the last."""
    lines: dict[tuple[object, ...], list[int]] = {}
    for place, setting in enumerate(sweep.design.settings):
        lines.setdefault(setting.values[:-1], []).append(place)
    yield from lines.values()


def _settings_axis(axes: Axes, sweep: CohortSweep) -> None:
    n = len(sweep.design.settings)
    shown = np.unique(np.linspace(0, n - 1, min(n, _MOST_TICKS)).round().astype(int)).tolist()
    texts = [", ".join(map(value_text, sweep.design.settings[place].values)) for place in shown]
    slanted_names(axes, shown, [label(text) for text in texts])
    axes.set_xlim(-0.5, n - 0.5)
    axes.set_xlabel(label(", ".join(sweep.design.parameters), 60), fontsize=NORMAL)
    grid(axes)
