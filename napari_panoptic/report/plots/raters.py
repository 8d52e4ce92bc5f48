"""Plots of a cohort of several raters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from numpy.typing import NDArray

from napari_panoptic.common.visible import shortened, visible
from napari_panoptic.nuclei.palette import hex_colour, team_styles
from napari_panoptic.raters.cohort import RatersSettings
from napari_panoptic.raters.evaluate import RatedEvaluation
from napari_panoptic.raters.levels import levels_reached, levels_reached_by_votes
from napari_panoptic.raters.outlines import (
    PREDICTION_COLOURS,
    REFERENCE_COLOURS,
    level_colours,
    outline_segments,
    rater_colour,
)
from napari_panoptic.report.plots import Plot

_SMALL, _NORMAL = 7.5, 8.5
_INK, _PALE = "#222222", "#b8b8b8"
_LONGEST_NAME = 30


def spread_plot(evaluation: RatedEvaluation) -> Plot:
    """Draw each team among the raters: a row per structure, means over cases.

    Grey bars reach from the lowest to the highest rater against the mean of the
    others, small dots are raters, and teams stand on the same scale, measured
    against the same references.
    """
    structures = list(evaluation.cohort.structures)
    styles = team_styles(evaluation.cohort.teams)
    figure = Figure(figsize=(7.4, 1.2 + 0.5 * len(structures)), layout="constrained")
    axes = figure.subplots()
    rows = evaluation.structures.to_dict("records")
    means = {(r["team"], r["structure"]): float(r["left_out_dice"]) for r in rows}
    for row, structure in enumerate(structures):
        results = evaluation.of_structure(structure)
        spreads = np.array([result.raters.spread for result in results]).reshape(-1, 2)
        if len(spreads) and not np.isnan(spreads).all():
            low, high = np.nanmean(spreads, axis=0)
            axes.barh(row, high - low, left=low, height=0.5, color="#dddddd", zorder=1)
        for rater in evaluation.cohort.raters:
            own = [
                float(result.raters.left_out_mean[result.raters.raters.index(rater)])
                for result in results
                if rater in result.raters.raters
            ]
            axes.plot(np.mean(own or [math.nan]), row, ".", color="#777777", ms=4, zorder=2)
        for place, team in enumerate(evaluation.teams):
            shift = 0.32 * ((place + 0.5) / len(evaluation.teams) - 0.5)
            style = styles[team]
            value = means.get((team, structure), math.nan)
            axes.plot(value, row + shift, style.marker, color=style.colour, ms=5.5, zorder=3)
    axes.set_yticks(range(len(structures)), [_name(name) for name in structures])
    axes.set_ylim(len(structures) - 0.5, -0.5)
    axes.set_xlabel("Dice against all raters but one, mean over levels and cases", fontsize=_SMALL)
    _finish(axes)
    handles = [_team_handle(team, styles[team]) for team in evaluation.teams]
    handles.append(Line2D([], [], linestyle="none", marker=".", color="#777777", label="a rater"))
    _legend(figure, handles)
    return _plot(figure)


def levels_plot(evaluation: RatedEvaluation) -> Plot:
    """Draw Dice over levels, mean over cases: a panel per structure, a line per team."""
    structures = list(evaluation.cohort.structures)
    styles = team_styles(evaluation.cohort.teams)
    columns = min(3, max(1, len(structures)))
    rows = max(1, math.ceil(len(structures) / columns))
    figure = Figure(figsize=(7.4, 0.6 + 2.1 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes in panels[len(structures) :]:
        axes.set_axis_off()
    levels = evaluation.settings.levels
    for axes, structure in zip(panels, structures, strict=False):
        results = evaluation.of_structure(structure)
        for team in evaluation.teams:
            dice = [result.teams[team][1].dice(evaluation.settings) for result in results]
            style = styles[team]
            axes.plot(
                levels,
                _mean_of_rows(dice, len(levels)),
                marker=style.marker,
                color=style.colour,
                ms=4,
                lw=1,
            )
        axes.set_title(_name(structure), fontsize=_NORMAL, color=_INK)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xticks(levels)
        axes.set_xlabel("level", fontsize=_SMALL)
        axes.set_ylabel("Dice", fontsize=_SMALL)
        _finish(axes)
    _legend(figure, [_team_handle(team, styles[team]) for team in evaluation.teams])
    return _plot(figure)


def reliability_plot(evaluation: RatedEvaluation) -> Plot:
    """Draw how often raters marked what was predicted with which probability."""
    styles = team_styles(evaluation.cohort.teams)
    figure = Figure(figsize=(4.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=_PALE, lw=0.8, ls="--")
    for team in evaluation.teams:
        found = evaluation.reliability(team)
        is_there = found.voxels > 0
        axes.plot(
            found.predicted[is_there] / found.voxels[is_there],
            found.observed[is_there] / found.voxels[is_there],
            marker=styles[team].marker,
            color=styles[team].colour,
            ms=4,
            lw=1,
        )
    axes.set_xlabel("predicted probability (mean of the bin)", fontsize=_SMALL)
    axes.set_ylabel("share of raters who marked it", fontsize=_SMALL)
    axes.set_aspect("equal")
    _finish(axes)
    _legend(figure, [_team_handle(team, styles[team]) for team in evaluation.teams])
    return _plot(figure)


def outlines_picture(
    image: NDArray[Any] | None,
    masks: NDArray[np.bool_],
    probabilities: NDArray[np.floating],
    raters: Sequence[int],
    settings: RatersSettings,
) -> Plot:
    """Draw one slice three times: raters, the levels of their mean, and those of a prediction.

    Parameters
    ----------
    image
        (y, x) or (y, x, colour); None for black.
    masks
        bool (n, y, x).
    probabilities
        (y, x).
    raters
        The place of each rater in the cohort, for the colour.
    settings
        The levels.
    """
    votes = masks.sum(axis=0)
    n_levels = len(settings.levels)
    inside = levels_reached_by_votes(len(masks), settings)[votes]
    predicted = levels_reached(probabilities, settings)
    shown = [
        ("raters", [(mask, rater_colour(r)) for mask, r in zip(masks, raters, strict=True)]),
        ("their mean", _level_sets(inside, level_colours(REFERENCE_COLOURS, n_levels))),
        ("prediction", _level_sets(predicted, level_colours(PREDICTION_COLOURS, n_levels))),
    ]
    height, width = masks.shape[1:]
    window = _field((inside > 0) | (predicted > 0))
    figure = Figure(figsize=(7.4, 2.75), layout="constrained")
    for axes, (title, sets) in zip(figure.subplots(1, 3), shown, strict=True):
        ground = np.zeros((height, width)) if image is None else image
        low, high = _contrast(ground[window])
        axes.imshow(ground, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
        for mask, colour in sets:
            segments = outline_segments(mask)[:, :, ::-1]
            axes.add_collection(LineCollection(list(segments), colors=hex_colour(colour), lw=0.9))
        axes.set_xlim(window[1].start - 0.5, window[1].stop - 0.5)
        axes.set_ylim(window[0].stop - 0.5, window[0].start - 0.5)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title(title, fontsize=_NORMAL, color=_INK)
    return _plot(figure)


def _level_sets(reached: NDArray[Any], colours: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [(reached > place, colour) for place, colour in enumerate(colours)]


def _field(wanted: NDArray[np.bool_], room: int = 12) -> tuple[slice, slice]:
    """Return the window around what is to be seen, the whole where nothing is."""
    found = []
    for axis, size in enumerate(wanted.shape):
        places = np.flatnonzero(wanted.any(axis=1 - axis))
        ends = (places[0], places[-1] + 1) if places.size else (0, size)
        found.append(slice(max(0, int(ends[0]) - room), min(size, int(ends[1]) + room)))
    return found[0], found[1]


def _contrast(values: NDArray[Any]) -> tuple[float, float]:
    low, high = np.percentile(values[np.isfinite(values)], [1, 99]) if values.size else (0, 1)
    return float(low), float(max(high, low + 1e-6))


def _mean_of_rows(rows: Sequence[NDArray[np.float64]], n: int) -> list[float]:
    stacked = np.array(rows).reshape(-1, n)
    columns = [column[~np.isnan(column)] for column in stacked.T]
    return [float(column.mean()) if column.size else math.nan for column in columns]


def _team_handle(team: str, style: Any) -> Line2D:
    marker, colour = style.marker, style.colour
    return Line2D([], [], linestyle="none", marker=marker, color=colour, ms=5, label=_name(team))


def _legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    if handles:
        figure.legend(
            handles=list(handles),
            loc="outside upper center",
            ncols=min(len(handles), 4),
            frameon=False,
            fontsize=_SMALL,
        )


def _finish(axes: Axes) -> None:
    axes.tick_params(labelsize=_SMALL, colors=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=_PALE, linewidth=0.3)
    axes.set_axisbelow(True)


def _plot(figure: Figure) -> Plot:
    for text in figure.findobj(Text):
        if isinstance(text, Text):
            text.set_parse_math(False)  # a $ in a name is no formula
    return Plot(figure, {})


def _name(name: str) -> str:
    return shortened(visible(name), _LONGEST_NAME)
