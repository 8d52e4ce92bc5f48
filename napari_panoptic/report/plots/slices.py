"""Plots of the failure rate by the values of covariates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from napari_panoptic.questions.engines.slice_conditions import Curve, number_text
from napari_panoptic.report.plots.theme import (
    PALE,
    SMALL,
    Drawing,
    Plot,
    label,
    name_axes,
    nothing_to_show,
    points_of,
    slanted_names,
)
from napari_panoptic.tables.figures import count, ratio

_COLUMNS = 4
_MOST_VALUES = 12
_LONGEST_LABEL = 60


def covariate_curves(
    curves: Mapping[str, Curve], team: str, teams: Sequence[str], rate: float
) -> Plot:
    """Draw the failure rate by the values of each covariate, one panel per covariate.

    Parameters
    ----------
    curves
        Covariate -> its curve, from `napari_panoptic.questions.engines.slices.SliceSearch`.
    team, teams
        The team of the curves, and all teams of the cohort, whose order decides the colour.
    rate
        The share of all objects, drawn as a line.
    """
    if not curves:
        return nothing_to_show("no covariate divides the objects")
    rows = -(-len(curves) // _COLUMNS)
    drawing = Drawing(8.4, 1.75 * rows, teams)
    names = [name.replace("_", " ") for name in curves]
    axes = drawing.panels(names, _COLUMNS, share=False)
    highest = max(float(np.nanmax(curve.high)) for curve in curves.values())
    for own, curve in zip(axes, curves.values(), strict=True):
        _panel(drawing, own, curve, team, rate)
        own.set_ylim(0, 1.05 * highest or 1.0)
    for own in axes[::_COLUMNS]:
        own.set_ylabel("failure rate", fontsize=SMALL)
    return drawing.done()


def covariate_curve(curve: Curve, team: str, teams: Sequence[str], rate: float) -> Plot:
    """Draw the failure rate by the values of one covariate.

    Parameters
    ----------
    curve
        The curve, from `napari_panoptic.questions.engines.slices.SliceSearch`.
    team, teams, rate
        As in `covariate_curves`.
    """
    drawing = Drawing(4.6, 2.0, teams)
    (axes,) = drawing.panels([""], 1)
    _panel(drawing, axes, curve, team, rate)
    axes.set_ylim(0, min(1.0, 1.05 * float(np.nanmax(curve.high))) or 1.0)
    name_axes(axes, label(curve.covariate.replace("_", " "), _LONGEST_LABEL), "failure rate")
    return drawing.done()


def _panel(drawing: Drawing, axes: Axes, curve: Curve, team: str, rate: float) -> None:
    colour = drawing.styles[team].colour
    shown = np.arange(min(len(curve.bins), _MOST_VALUES))
    rates = curve.rate[shown]
    texts = [
        f"{curve.bins[k].as_formula()}: {ratio(rates[k])} of {count(curve.objects[k])}"
        for k in shown.tolist()
    ]
    points = points_of(team, shown, rates, texts)
    is_range = all(condition.value is None for condition in curve.bins)
    if is_range:
        axes.fill_between(
            shown, curve.low[shown], curve.high[shown], color=colour, alpha=0.2, linewidth=0
        )
    # Drawn as lines, which the window shows with a rim on a dark background.
    bounds = np.stack([curve.low[shown], curve.high[shown]])
    x, y = (shown, bounds.T) if is_range else (np.stack([shown, shown]), bounds)
    axes.plot(x, y, color=colour, linewidth=0.5 if is_range else 1.0)
    drawing.mark(axes, points, team, linestyle="-" if is_range else "none", linewidth=0.9)
    axes.set_xlim(-0.5, len(shown) - 0.5)
    if is_range:
        # The tick between two deciles is their common limit.
        edges = [k for k in shown.tolist()[1:] if k in (1, 5, 9)]
        axes.set_xticks([k - 0.5 for k in edges], [number_text(curve.bins[k].low) for k in edges])
    else:
        names = [label(number_text(curve.bins[k].value), 12) for k in shown.tolist()]
        slanted_names(axes, shown, names)
    axes.axhline(rate, color=PALE, linewidth=0.8, linestyle="--", zorder=0)
