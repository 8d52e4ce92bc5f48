"""Plots of a cohort of several raters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from napari_panoptic.display.palette import hex_colour
from napari_panoptic.raters.evaluate import RatedEvaluation
from napari_panoptic.raters.levels import levels_reached, levels_reached_by_votes
from napari_panoptic.raters.slice_outlines import (
    PREDICTION_COLOURS,
    REFERENCE_COLOURS,
    level_colours,
    outline_segments,
    rater_colour,
)
from napari_panoptic.report.plots.theme import (
    PALE,
    SMALL,
    Drawing,
    Plot,
    grid,
    label,
    name_axes,
    points_of,
)
from napari_panoptic.tables.figures import ratio
from napari_panoptic.values.raters import RatersSettings

_RATER = "#777777"


def spread_plot(evaluation: RatedEvaluation) -> Plot:
    """Draw each team among the raters: a row per structure, means over cases.

    Grey bars reach from the lowest to the highest rater against the mean of the
    others, small dots are raters, and teams are on the same scale, measured
    against the same references.
    """
    structures = list(evaluation.cohort.structures)
    drawing = Drawing(7.4, 1.2 + 0.5 * len(structures), evaluation.cohort.teams)
    (axes,) = drawing.panels([""], 1)
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
            axes.plot(np.mean(own or [math.nan]), row, ".", color=_RATER, ms=4, zorder=2)
        for place, team in enumerate(evaluation.teams):
            shift = 0.32 * ((place + 0.5) / len(evaluation.teams) - 0.5)
            value = means.get((team, structure), math.nan)
            text = f"{structure}, Dice {ratio(value)}"
            points = points_of(team, [value], [row + shift], [text])
            drawing.mark(axes, points, team, markersize=5.5, zorder=3)
    axes.set_yticks(range(len(structures)), [label(name) for name in structures])
    axes.set_ylim(len(structures) - 0.5, -0.5)
    axes.set_xlabel("Dice against all raters but one, mean over levels and cases", fontsize=SMALL)
    grid(axes, 0.3)
    dot = Line2D([], [], linestyle="none", marker=".", color=_RATER, label="a rater")
    drawing.legend(evaluation.teams, others=[dot])
    return drawing.done()


def levels_plot(evaluation: RatedEvaluation) -> Plot:
    """Draw Dice over levels, mean over cases: a panel per structure, a line per team."""
    structures = list(evaluation.cohort.structures)
    columns = min(3, max(1, len(structures)))
    rows = max(1, math.ceil(len(structures) / columns))
    drawing = Drawing(7.4, 0.6 + 2.1 * rows, evaluation.cohort.teams)
    panels = drawing.panels(structures, columns)
    levels = evaluation.settings.levels
    for axes, structure in zip(panels, structures, strict=True):
        results = evaluation.of_structure(structure)
        for team in evaluation.teams:
            dice = [result.teams[team][1].dice(evaluation.settings) for result in results]
            means = _mean_of_rows(dice, len(levels))
            pairs = zip(levels, means, strict=True)
            texts = [f"{structure}, level {level:g}: Dice {ratio(value)}" for level, value in pairs]
            points = points_of(team, levels, means, texts)
            drawing.mark(axes, points, team, linestyle="-", linewidth=1)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xticks(levels)
        name_axes(axes, "level", "Dice")
        grid(axes, 0.3)
    drawing.legend(evaluation.teams)
    return drawing.done()


def reliability_plot(evaluation: RatedEvaluation) -> Plot:
    """Draw how often raters marked voxels, against the predicted probability."""
    drawing = Drawing(4.4, 4.2, evaluation.cohort.teams)
    (axes,) = drawing.panels([""], 1)
    axes.plot([0, 1], [0, 1], color=PALE, lw=0.8, ls="--")
    for team in evaluation.teams:
        found = evaluation.reliability(team)
        is_there = found.voxels > 0
        predicted = found.predicted[is_there] / found.voxels[is_there]
        observed = found.observed[is_there] / found.voxels[is_there]
        pairs = zip(predicted.tolist(), observed.tolist(), strict=True)
        texts = [f"predicted {ratio(x)}, observed {ratio(y)}" for x, y in pairs]
        points = points_of(team, predicted, observed, texts)
        drawing.mark(axes, points, team, linestyle="-", linewidth=1)
    name_axes(axes, "predicted probability (mean of the bin)", "share of raters who marked it")
    axes.set_aspect("equal")
    grid(axes, 0.3)
    drawing.legend(evaluation.teams)
    return drawing.done()


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
        bool (n, y, x), one per rater.
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
    drawing = Drawing(7.4, 2.75)
    panels = drawing.panels([title for title, _ in shown], 3)
    for axes, (_, sets) in zip(panels, shown, strict=True):
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
        axes.spines[:].set_visible(True)
    return drawing.done()


def _level_sets(reached: NDArray[Any], colours: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [(reached > place, colour) for place, colour in enumerate(colours)]


def _field(wanted: NDArray[np.bool_], room: int = 12) -> tuple[slice, slice]:
    """Return the window around some pixels; the whole image if there are none."""
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
