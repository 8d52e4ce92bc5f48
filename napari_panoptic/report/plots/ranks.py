"""Plots of ranks and PQ against protocols, settings, shifts and ids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import NDArray

from napari_panoptic.nuclei.metrics import FIGURE_NAMES
from napari_panoptic.nuclei.regions.conditions import Robustness
from napari_panoptic.report.plots.theme import (
    INK,
    NORMAL,
    PALE,
    SMALL,
    Drawing,
    Plot,
    Point,
    label,
    nothing_to_show,
    points_of,
)
from napari_panoptic.statistics.friedman import CriticalDifference
from napari_panoptic.statistics.ranks import competition_ranks
from napari_panoptic.tables.figures import ratio, signed

_GAINS = LinearSegmentedColormap.from_list("gains", ["#a6611a", "#f7f7f7", "#018571"])


def critical_difference_diagram(critical: CriticalDifference, teams: Sequence[str]) -> Plot:
    """Draw mean ranks, and a bar over teams that do not differ (Demšar 2006, figure 1).

    Parameters
    ----------
    critical
        Ranks and groups. If they are undefined, the plot shows the reason.
    teams
        All teams of the cohort, in its order.
    """
    if critical.why_undefined:
        return nothing_to_show(f"No diagram: {critical.why_undefined}.")
    n = len(critical.teams)
    left = math.ceil(n / 2)
    drawing = Drawing(7.0, 1.3 + 0.27 * left + 0.14 * len(critical.groups), teams)
    (axes,) = drawing.panels([""], 1)
    axes.set_axis_off()
    axes.set(xlim=(1 - 0.9 * n / 4, n + 0.9 * n / 4))
    axes.plot([1, n], [0, 0], color=INK, linewidth=1)
    for rank in range(1, n + 1):
        axes.plot([rank, rank], [0, 0.18], color=INK, linewidth=1)
        axes.text(rank, 0.28, str(rank), ha="center", va="bottom", fontsize=SMALL)
    axes.plot([1, 1 + critical.difference], [1.35, 1.35], color=INK, linewidth=1.5, marker="|")
    axes.text(
        1,
        1.55,
        f"critical difference {critical.difference:.2f} (n = {critical.n_patients}, "
        f"α = {critical.alpha:g})",
        fontsize=SMALL,
        va="bottom",
    )
    below = 0.35 + 0.3 * len(critical.groups)
    for level, group in enumerate(critical.groups):
        ranks = [critical.mean_ranks[critical.teams.index(team)] for team in group]
        y = -0.3 - 0.3 * level
        axes.plot(
            [min(ranks) - 0.04, max(ranks) + 0.04],
            [y, y],
            color=INK,
            linewidth=3.5,
            solid_capstyle="butt",
        )
    for place, (team, rank) in enumerate(zip(critical.teams, critical.mean_ranks, strict=True)):
        is_left = place < left
        depth = -below - 0.6 * (place if is_left else n - 1 - place) - 0.4
        end = 1 - 0.1 * n / 4 if is_left else n + 0.1 * n / 4
        colour = drawing.styles[team].colour
        axes.plot([rank, rank, end], [0, depth, depth], color=colour, linewidth=1)
        drawing.mark(axes, [Point(rank, 0.0, team, text=f"mean rank {rank:.2f}")], team)
        axes.text(
            end - 0.02 * n if is_left else end + 0.02 * n,
            depth,
            # The rank comes first: a name that is written from right to left does not move it.
            f"{rank:.2f}  {label(team)}",
            ha="right" if is_left else "left",
            va="center",
            fontsize=NORMAL,
            color=INK,
        )
    axes.set_ylim(-below - 0.6 * (left - 1) - 0.8, 2.1)
    return drawing.done()


def rank_lines(
    names: Sequence[str], scores: Mapping[str, Sequence[float]], teams: Sequence[str]
) -> Plot:
    """Draw each team's rank by every convention, joined by lines.

    Parameters
    ----------
    names
        The conventions.
    scores
        Team -> its score by each of them; NaN where undefined.
    teams
        All teams of the cohort, in its order.
    """
    values = np.array(list(scores.values()), np.float64).reshape(len(scores), len(names))
    ranks = competition_ranks(values)
    if not (ranks > 0).any():
        return nothing_to_show("no team has a score to rank")
    # Names of conventions are long: they are on the vertical axis, ranks on the horizontal one.
    drawing = Drawing(7.4, 1.2 + 0.32 * len(names), teams)
    (axes,) = drawing.panels([""], 1)
    for row, team in enumerate(scores):
        tied = _beside(ranks, row)
        points = [
            Point(
                float(ranks[row, k] + tied[k]),
                float(k),
                team,
                text=f"{names[k]}: {ratio(values[row, k])}, rank {ranks[row, k]}",
            )
            for k in np.flatnonzero(ranks[row] > 0).tolist()
        ]
        drawing.mark(axes, points, team, linestyle="-", linewidth=1.6, markersize=6)
    axes.set_yticks(range(len(names)), [label(name, 48) for name in names])
    axes.set_xticks(range(1, len(scores) + 1))
    axes.set(xlim=(0.6, len(scores) + 0.4), ylim=(len(names) - 0.5, -0.5))
    axes.set_xlabel("rank (1 is the best)", fontsize=NORMAL)
    axes.grid(axis="x", color=PALE, linewidth=0.4)
    drawing.legend(tuple(scores), lines=True)
    return drawing.done()


def _beside(ranks: NDArray[np.int64], row: int) -> NDArray[np.float64]:
    """Return the horizontal shifts that place equal ranks side by side."""
    same = ranks == ranks[row]
    before = same[:row].sum(axis=0)
    step: NDArray[np.float64] = (before - (same.sum(axis=0) - 1) / 2) * 0.12
    return step


def robustness_curves(
    found: Robustness,
    positions: Sequence[float],
    teams: Sequence[str],
    *,
    x_label: str,
    usual: float | None = None,
) -> Plot:
    """Draw PQ, SQ and DQ against the varied parameter; open rings mark changes of rank by PQ.

    Parameters
    ----------
    found
        Figures under each condition.
    positions
        The position of each condition on the axis, in the order of the conditions.
    teams
        All teams of the cohort, in its order.
    x_label
        The label of the axis.
    usual
        The position of the settings of the evaluation, marked by a line.
    """
    if np.isnan(found.pq).all():
        return nothing_to_show("no team has a figure to show")
    figures = ("pq", "sq", "dq")
    drawing = Drawing(7.4, 3.1, teams)
    axes = drawing.panels([FIGURE_NAMES[name] for name in figures], len(figures))
    changed = {(change.team, change.conditions[1]) for change in found.changes}
    for own, name in zip(axes, figures, strict=True):
        values: NDArray[np.float64] = getattr(found, name)
        for row, team in enumerate(found.teams):
            shown = np.flatnonzero(~np.isnan(values[row]))
            xs, ys = np.asarray(positions, np.float64)[shown], values[row, shown]
            texts = [
                f"{found.conditions[k]}: {ratio(values[row, k])}, rank {found.ranks[row, k]}"
                for k in shown
            ]
            points = points_of(team, xs, ys, texts)
            drawing.mark(own, points, team, linestyle="-", linewidth=1.3, markersize=3.5)
            is_ringed = [name == "pq" and (team, found.conditions[k]) in changed for k in shown]
            if any(is_ringed):
                own.plot(
                    xs[is_ringed],
                    ys[is_ringed],
                    linestyle="none",
                    marker="o",
                    markerfacecolor="none",
                    markeredgecolor=INK,
                    markersize=9,
                )
        own.set_xlabel(x_label, fontsize=NORMAL)
        own.set_ylim(-0.02, 1.02)
        own.grid(color=PALE, linewidth=0.4)
        if usual is not None:
            own.axvline(usual, color="#777777", linewidth=0.9, linestyle="--", zorder=0)
    drawing.legend(found.teams, lines=True)
    return drawing.done()


def shift_maps(
    found: Robustness,
    shifts: Sequence[tuple[int, int]],
    teams: Sequence[str],
    *,
    columns: int = 4,
) -> Plot:
    """Draw the change of PQ when predictions are shifted, a map per team.

    Parameters
    ----------
    found
        Figures under each shift, (0, 0) among them.
    shifts
        (dy, dx) in px of each condition, in their order.
    teams
        All teams of the cohort, in its order.
    columns
        Maximum number of maps in a row.

    Raises
    ------
    ValueError
        If there is no condition without a shift.
    """
    if (0, 0) not in shifts:
        raise ValueError(f"expected a condition without a shift, found {list(shifts)}")
    shown = [team for team in teams if team in found.teams]
    if not shown or np.isnan(found.pq).all():
        return nothing_to_show("no team has a figure to show")
    unmoved = shifts.index((0, 0))
    change = found.pq - found.pq[:, [unmoved]]
    furthest = max(float(np.nanmax(np.abs(change), initial=0.0)), 1e-9)
    reach = max(max(abs(dy), abs(dx)) for dy, dx in shifts)
    side = 2 * reach + 1
    columns = min(len(shown), columns)
    rows = math.ceil(len(shown) / columns)
    drawing = Drawing(max(1.85 * columns, 2.2), 2.25 * rows)
    axes = drawing.panels(shown, columns)
    edges = np.arange(side + 1) - reach - 0.5
    for own, team in zip(axes, shown, strict=True):
        row = found.teams.index(team)
        cells = np.full((side, side), np.nan)
        points = [Point(x - reach, y - reach, team) for y, x in np.ndindex(side, side)]
        for k, (dy, dx) in enumerate(shifts):
            value = float(change[row, k])
            cells[dy + reach, dx + reach] = value
            is_unmoved = k == unmoved
            text = ratio(float(found.pq[row, k])) if is_unmoved else signed(value)
            own.text(dx, dy, text, ha="center", va="center", fontsize=6.5, color=INK)
            points[(dy + reach) * side + dx + reach] = Point(
                dx, dy, team, text=f"{found.conditions[k]}: {ratio(float(found.pq[row, k]))}"
            )
        look = {"vmin": -furthest, "vmax": furthest, "edgecolors": "white", "linewidth": 0.8}
        drawing.cells(own, edges, np.ma.masked_invalid(cells), points, cmap=_GAINS, **look)
        own.set(
            xlim=(edges[0], edges[-1]),
            ylim=(edges[-1], edges[0]),
            aspect="equal",
            xticks=range(-reach, reach + 1),
            yticks=range(-reach, reach + 1),
        )
        own.set_xlabel("px to the right", fontsize=SMALL)
    for own in axes[::columns]:
        own.set_ylabel("px down", fontsize=SMALL)
    return drawing.done()
