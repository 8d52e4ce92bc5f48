"""Plots of figures per patient: boxes, DQ against SQ, precision against recall."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from napari_panoptic.nuclei.metrics import FIGURE_NAMES
from napari_panoptic.report.plots.theme import (
    INK,
    LEVELS,
    NORMAL,
    SMALL,
    Drawing,
    Plot,
    Point,
    equal_f1_lines,
    grid,
    label,
    level_lines,
    nothing_to_show,
    shown_teams,
)
from napari_panoptic.tables.figures import ratio, writer


def patient_boxes(
    panels: Mapping[str, pd.DataFrame], teams: Sequence[str], *, figure: str = "pq"
) -> Plot:
    """Draw the distribution of a figure over patients, a box per team.

    As figure 4 of Foucart et al. (Pattern Recognition, 2023): boxes from the
    first to the third quartile with the median, whiskers to the furthest value
    within 1.5 times their length; points: patients; cross: mean.

    Parameters
    ----------
    panels
        Title -> table with columns ``team``, ``patient``, the figure, and
        ``region`` if a row is a region.
    teams
        All teams of the cohort, in its order.
    figure
        A column of the tables.
    """
    shown = shown_teams(panels.values(), teams)
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / max(columns, 1))
    if not shown:
        return nothing_to_show("no team has a figure to show")
    drawing = Drawing(7.4, 0.7 + rows * (0.55 + 0.36 * len(shown)), teams)
    axes = drawing.panels(list(panels), columns)
    for own, table in zip(axes, panels.values(), strict=True):
        for place, team in enumerate(shown):
            rows_of_team = table[table["team"] == team].dropna(subset=[figure])
            _box(drawing, own, rows_of_team, figure, team, place)
        own.set_yticks(range(len(shown)), [label(team) for team in shown])
        own.set_ylim(len(shown) - 0.45, -0.55)
        grid(own, axis="x")
        if not _is_distance(figure):
            own.set_xlim(-0.02, 1.02)
    for own in axes[-columns:]:
        own.set_xlabel(FIGURE_NAMES.get(figure, figure), fontsize=NORMAL)
    return drawing.done()


def _box(
    drawing: Drawing, axes: Axes, rows: pd.DataFrame, figure: str, team: str, place: int
) -> None:
    values = rows[figure].to_numpy(np.float64)
    if not len(values):
        note = axes.text(0.02, place, "no patient has a figure", fontsize=SMALL, va="center")
        note.set_color("#666666")
        return
    _draw_box(axes, values, place, drawing.styles[team].colour)
    # Spread points horizontally, in the same way in every drawing.
    aside = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(1)
    points = _points(rows, values, place + aside, team, [figure])
    drawing.mark(axes, points, team, alpha=0.65, markersize=3.5)
    mean = float(values.mean())
    mark = Point(mean, place, team, text=f"mean over {len(values)}: {writer(figure)(mean)}")
    look = {"marker": "x", "color": INK, "markersize": 6, "markeredgewidth": 1.6, "zorder": 5}
    drawing.mark(axes, [mark], team, **look)


def _draw_box(axes: Axes, values: NDArray[np.float64], place: float, colour: str) -> None:
    """Draw quartiles, median and whiskers.

    Matplotlib's ``boxplot`` is not used, because it reads all global settings, which selects a
    backend for the whole process.
    """
    low, median, high = np.percentile(values, [25, 50, 75])
    reach = 1.5 * (high - low)
    inside = values[(values >= low - reach) & (values <= high + reach)]
    first, last = min(float(inside.min()), low), max(float(inside.max()), high)
    axes.add_patch(
        Rectangle((low, place - 0.3), high - low, 0.6, facecolor="none", edgecolor=colour)
    )
    axes.plot([median, median], [place - 0.3, place + 0.3], color=colour, linewidth=2)
    for end, side in ((first, low), (last, high)):
        axes.plot([end, side], [place, place], color=colour, linewidth=1)
        axes.plot([end, end], [place - 0.15, place + 0.15], color=colour, linewidth=1)


def quality_scatter(panels: Mapping[str, pd.DataFrame], teams: Sequence[str]) -> Plot:
    """Draw DQ against SQ, a point per patient, with each team's mean.

    As figure 5 of Foucart et al. (Pattern Recognition, 2023). Grey curves:
    equal products.

    Parameters
    ----------
    panels, teams
        As in `patient_boxes`; the tables have columns ``dq`` and ``sq``.
    """
    return _scatter(panels, teams, "dq", "sq", _equal_product_lines)


def detection_scatter(panels: Mapping[str, pd.DataFrame], teams: Sequence[str]) -> Plot:
    """Draw detection precision against recall, a point per patient, with each team's mean.

    As figure 6 of Foucart et al. (Pattern Recognition, 2023). Grey curves:
    equal F1.

    Parameters
    ----------
    panels, teams
        As in `patient_boxes`; the tables have columns ``detection_precision``
        and ``detection_recall``.
    """
    return _scatter(panels, teams, "detection_recall", "detection_precision", equal_f1_lines)


def _scatter(
    panels: Mapping[str, pd.DataFrame],
    teams: Sequence[str],
    x: str,
    y: str,
    draw_levels: Callable[[Axes], None],
) -> Plot:
    shown = shown_teams(panels.values(), teams)
    if not shown:
        return nothing_to_show("no team has a figure to show")
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    drawing = Drawing(7.4 if columns > 1 else 4.6, 0.6 + rows * 3.3, teams)
    axes = drawing.panels(list(panels), columns)
    for own, table in zip(axes, panels.values(), strict=True):
        draw_levels(own)
        for team in shown:
            rows_of_team = table[table["team"] == team].dropna(subset=[x, y])
            _cloud(drawing, own, rows_of_team, x, y, team)
        own.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    for number, own in enumerate(axes):
        if number >= len(axes) - columns:
            own.set_xlabel(FIGURE_NAMES[x], fontsize=NORMAL)
        if number % columns == 0:
            own.set_ylabel(FIGURE_NAMES[y], fontsize=NORMAL)
    drawing.legend(shown)
    return drawing.done()


def _cloud(drawing: Drawing, axes: Axes, rows: pd.DataFrame, x: str, y: str, team: str) -> None:
    if rows.empty:
        return
    xs, ys = rows[x].to_numpy(np.float64), rows[y].to_numpy(np.float64)
    drawing.mark(axes, _points(rows, xs, ys, team, [x, y]), team, alpha=0.55)
    centre = Point(
        float(xs.mean()),
        float(ys.mean()),
        team,
        text=f"mean over {len(xs)}: {ratio(float(xs.mean()))}, {ratio(float(ys.mean()))}",
    )
    drawing.summary_mark(axes, centre)


def _equal_product_lines(axes: Axes) -> None:
    x = np.linspace(0.01, 1, 100)
    y = np.array([level / x for level in LEVELS])
    level_lines(axes, np.where(y <= 1, y, np.nan))


def _points(
    rows: pd.DataFrame,
    xs: NDArray[np.float64],
    ys: NDArray[np.float64],
    team: str,
    figures: Sequence[str],
) -> list[Point]:
    regions = rows["region"] if "region" in rows else [""] * len(rows)
    records = rows[list(figures)].to_dict("records")
    texts = (", ".join(_figure_text(key, own[key]) for key in figures) for own in records)
    return [
        Point(float(x), float(y), team, str(patient), str(region), text)
        for x, y, patient, region, text in zip(xs, ys, rows["patient"], regions, texts, strict=True)
    ]


def _figure_text(figure: str, value: float) -> str:
    return f"{FIGURE_NAMES.get(figure, figure)} {writer(figure)(value)}"


def _is_distance(figure: str) -> bool:
    return figure.endswith("_px")
