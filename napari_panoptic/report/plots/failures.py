"""Plots of failures: confused classes, causes, and sizes of objects."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import NDArray

from napari_panoptic.report.plots.theme import (
    INK,
    NORMAL,
    PALE,
    SMALL,
    Drawing,
    Plot,
    Point,
    grid,
    label,
    name_axes,
    nothing_to_show,
    points_of,
    shown_teams,
    slanted_names,
)
from napari_panoptic.tables.figures import area_text, count, ratio
from napari_panoptic.values.vocabulary import Side

_SHARES = LinearSegmentedColormap.from_list("shares", ["#ffffff", "#08519c"])
_DARK = 0.55
SIZE_FIGURES = ("recall", "precision", "mean_iou")
"""Ratios that are drawn against the size of objects, a panel each."""


def confusion_matrices(
    table: pd.DataFrame,
    classes: Sequence[str],
    teams: Sequence[str],
    *,
    normalised: bool = False,
) -> Plot:
    """Draw the confusion matrix of each team.

    Parameters
    ----------
    table
        Columns ``team``, ``reference``, ``prediction``, ``count``, with
        ``none`` for an empty side.
    classes
        The scored classes, in order.
    teams
        All teams of the cohort, in its order.
    normalised
        If True, show shares of the matched nuclei of each class; rows without any
        are undefined. If False, show all counts, including unmatched objects, shaded
        by their share of the row.
    """
    shown = shown_teams([table], teams)
    if not shown:
        return nothing_to_show("no team has a figure to show")
    names = list(classes) if normalised else ["none", *classes]
    columns = min(len(shown), 2)
    rows = math.ceil(len(shown) / columns)
    side = 1.3 + 0.42 * len(names)
    drawing = Drawing(max(3.7 * columns, (side + 0.4) * columns), side * rows)
    axes = drawing.panels(shown, columns, share=False)
    for own, team in zip(axes, shown, strict=True):
        cells = table[table["team"] == team].pivot_table(
            index="reference", columns="prediction", values="count", aggfunc="sum", fill_value=0
        )
        counts = cells.reindex(index=names, columns=names, fill_value=0).to_numpy(np.float64)
        _matrix(drawing, own, counts, names, team, normalised=normalised)
    return drawing.done()


def _matrix(
    drawing: Drawing,
    axes: Axes,
    counts: NDArray[np.float64],
    names: Sequence[str],
    team: str,
    *,
    normalised: bool,
) -> None:
    total = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)
    n = len(names)
    edges = np.arange(n + 1) - 0.5
    points = []
    for row, column in np.ndindex(n, n):
        share, number = float(shares[row, column]), float(counts[row, column])
        both_none = not normalised and row == column == 0  # there are no such objects
        text = "" if both_none else ratio(share, 2) if normalised else count(number)
        colour = "white" if not math.isnan(share) and share > _DARK else INK
        axes.text(column, row, text, ha="center", va="center", fontsize=SMALL, color=colour)
        what = f"{names[row]} as {names[column]}: {count(number)}, {ratio(share)} of the row"
        points.append(Point(column, row, team, text=what))
    look = {"cmap": _SHARES, "vmin": 0, "vmax": 1, "edgecolors": "#dddddd", "linewidth": 0.5}
    drawing.cells(axes, edges, np.nan_to_num(shares), points, **look)
    labels = [label(name, 14) for name in names]
    slanted_names(axes, range(n), labels, rotation=35)
    axes.set_yticks(range(n), labels)
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    name_axes(axes, "prediction", "reference")


def cause_dots(table: pd.DataFrame, teams: Sequence[str]) -> Plot:
    """Draw the share of each cause among a team's FN and FP, a panel per side.

    Parameters
    ----------
    table
        The result of `napari_panoptic.explain.breakdown.by_cause`.
    teams
        All teams of the cohort, in its order.
    """
    shown = shown_teams([table], teams)
    if not shown:
        return nothing_to_show("no team has a failure to show")
    titles = {
        str(Side.REFERENCE): "FN: annotated nuclei",
        str(Side.PREDICTION): "FP: predictions",
    }
    panels = {title: table[table["side"] == side] for side, title in titles.items()}
    panels = {title: rows for title, rows in panels.items() if len(rows)}
    n_causes = max(rows["cause"].nunique() for rows in panels.values())
    drawing = Drawing(7.4, 1.1 + 0.3 * n_causes, teams)
    drawn = drawing.panels(list(panels), len(panels), share=False)
    for axes, rows in zip(drawn, panels.values(), strict=True):
        causes = list(dict.fromkeys(rows["cause"]))
        for team in shown:
            points = [
                Point(
                    float(row["share"]),
                    float(causes.index(row["cause"])),
                    team,
                    text=f"{row['cause']}: {row['count']} of {row['failures']}",
                )
                for row in rows[rows["team"] == team].to_dict("records")
                if not math.isnan(row["share"])
            ]
            drawing.mark(axes, points, team, markersize=6, alpha=0.9)
        axes.set_yticks(range(len(causes)), causes)
        axes.set(xlim=(-0.03, 1.03), ylim=(len(causes) - 0.5, -0.5))
        grid(axes)
        axes.set_xlabel("share of the team's failures on this side", fontsize=SMALL, wrap=True)
    drawing.legend(shown)
    return drawing.done()


def size_lines(
    table: pd.DataFrame,
    teams: Sequence[str],
) -> Plot:
    """Draw `SIZE_FIGURES` against the size of objects, a panel per figure.

    Parameters
    ----------
    table
        The result of `napari_panoptic.explain.breakdown.by_size`.
    teams
        All teams of the cohort, in its order.
    """
    shown = shown_teams([table], teams)
    if not shown:
        return nothing_to_show("no team has a figure to show")
    drawing = Drawing(7.4, 3.0, teams)
    titles = [name.replace("mean_iou", "mean IoU") for name in SIZE_FIGURES]
    panels = drawing.panels(titles, len(titles))
    sizes = table.drop_duplicates("size")
    names = [
        area_text(low, high)
        for low, high in zip(sizes["area_from"], sizes["area_below"], strict=True)
    ]
    for axes, name in zip(panels, SIZE_FIGURES, strict=True):
        for team in shown:
            rows = table[table["team"] == team].dropna(subset=[name])
            points = points_of(team, rows["size"], rows[name], map(ratio, rows[name]))
            drawing.mark(axes, points, team, linestyle="-", linewidth=1.3)
        slanted_names(axes, sizes["size"].tolist(), names, rotation=25)
        axes.set_ylim(-0.02, 1.02)
        axes.grid(color=PALE, linewidth=0.4)
        axes.set_xlabel(f"area ({table['area_unit'].iloc[0]})", fontsize=NORMAL)
    drawing.legend(shown, lines=True)
    return drawing.done()
