"""Plots of detections: precision against recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from napari_panoptic.common.visible import shortened, visible
from napari_panoptic.detections.curve import PrecisionRecall
from napari_panoptic.detections.pairing import DetectionCounts
from napari_panoptic.nuclei.palette import team_styles
from napari_panoptic.report.plots import Plot, Point
from napari_panoptic.report.text import ratio

_SMALL, _NORMAL = 7.5, 8.5
_LONGEST_NAME = 26
_PALE, _INK = "#b8b8b8", "#222222"
_ISO = (0.2, 0.4, 0.6, 0.8)


def precision_recall_curves(
    curves: Mapping[str, PrecisionRecall],
    teams: Sequence[str],
    now: Mapping[str, DetectionCounts] | None = None,
    *,
    size: tuple[float, float] = (6.0, 4.6),
) -> Plot:
    """Draw precision against recall, a point per threshold; what counts now stands out.

    Parameters
    ----------
    curves
        Team -> its curve; teams without confidences have none.
    teams
        All teams of the cohort, in its order: that decides their looks.
    now
        Team -> what counts at the present threshold, also of teams without a
        curve.
    size
        Width and height in inches.
    """
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    _iso_lines(axes)
    styles = team_styles(teams)
    points: dict[Artist, tuple[Point, ...]] = {}
    for team in teams:
        style = styles[team]
        label = shortened(visible(team), _LONGEST_NAME)
        curve = curves.get(team)
        if curve is not None and len(curve) and curve.n_reference:
            (line,) = axes.plot(
                curve.recall,
                curve.precision,
                color=style.colour,
                marker=style.marker,
                markersize=3.0,
                linewidth=1.3,
                label=label,
                picker=True,
                pickradius=6.0,
            )
            points[line] = tuple(_point(curve, place, team) for place in range(len(curve)))
            label = "_" + label  # one entry per team
        counts = (now or {}).get(team)
        if counts is not None and np.isfinite([counts.recall, counts.precision]).all():
            axes.plot(
                counts.recall,
                counts.precision,
                color=style.colour,
                marker=style.marker,
                markersize=10,
                markeredgecolor=_INK,
                markeredgewidth=1.3,
                linestyle="none",
                label=label,
                zorder=5,
            )
    axes.set_xlabel("recall", fontsize=_NORMAL)
    axes.set_ylabel("precision", fontsize=_NORMAL)
    axes.set_xlim(-0.02, 1.04)
    axes.set_ylim(-0.02, 1.04)
    axes.tick_params(labelsize=_SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        legend = figure.legend(
            handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=_SMALL
        )
        for text in legend.get_texts():
            text.set_parse_math(False)  # a $ in a name is no formula
    return Plot(figure, points)


def _point(curve: PrecisionRecall, place: int, team: str) -> Point:
    recall, precision = float(curve.recall[place]), float(curve.precision[place])
    text = (
        f"threshold {curve.thresholds[place]:g}: precision {ratio(precision)}, "
        f"recall {ratio(recall)}, F {ratio(float(curve.f_measure[place]))}"
    )
    return Point(recall, precision, team, text=text)


def _iso_lines(axes: Axes) -> None:
    """Draw lines of equal F-measure."""
    recall = np.linspace(0.01, 1, 200)
    for level in _ISO:
        beyond = 2 * recall - level
        with np.errstate(divide="ignore", invalid="ignore"):
            precision = np.where(beyond > 0, level * recall / beyond, np.nan)
        precision[precision > 1] = np.nan
        axes.plot(recall, precision, color=_PALE, linewidth=0.6, zorder=0, label=f"_F {level}")
        axes.annotate(
            f"F {level:g}",
            (1.0, float(precision[-1])),
            xytext=(-2, 3),
            textcoords="offset points",
            ha="right",
            fontsize=6,
            color="#777777",
        )
