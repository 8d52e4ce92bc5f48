"""Plots of what a cohort's evaluation found, as matplotlib figures.

No window and no global state: figures are made by matplotlib's objects alone.
Every point knows whose it is, so that whoever shows a figure can tell what was
picked.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from numpy.typing import NDArray

from napari_panoptic.errors import PanopticError
from napari_panoptic.evaluation.protocols import ProtocolTable
from napari_panoptic.evaluation.robustness import Robustness
from napari_panoptic.evaluation.statistics import CriticalDifference
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.palette import TeamStyle, team_styles
from napari_panoptic.report.text import UNDEFINED, count, ratio, signed
from napari_panoptic.report.writing import write_bytes
from napari_panoptic.visible import shortened, visible

FIGURE_NAMES: Mapping[str, str] = {
    "pq": "PQ",
    "sq": "SQ",
    "dq": "DQ",
    "detection_precision": "detection precision",
    "detection_recall": "detection recall",
    "detection_f1": "detection F1",
    "detection_accuracy": "detection accuracy",
    "balanced_accuracy": "balanced accuracy",
    "mean_iou": "mean IoU",
    "mean_hausdorff_px": "mean Hausdorff distance (px)",
    "mean_hausdorff95_px": "mean Hausdorff distance, 95th percentile (px)",
}
"""What axes and columns are called."""

PNG_DPI = 200
_HASH_SALT = "napari-panoptic"
_LONGEST_NAME = 26
_SMALL, _NORMAL = 7.5, 8.5
_INK, _PALE = "#222222", "#b8b8b8"
_SHARES = LinearSegmentedColormap.from_list("shares", ["#ffffff", "#08519c"])
_GAINS = LinearSegmentedColormap.from_list("gains", ["#a6611a", "#f7f7f7", "#018571"])
_DARK = 0.55
_ISO = (0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True)
class Point:
    """Something shown that belongs to a team.

    Parameters
    ----------
    x, y
        Where, in data coordinates of its axes.
    team
        Whose.
    patient, region
        Of whom; empty for what sums up many.
    text
        What it shows, in words.
    """

    x: float
    y: float
    team: str
    patient: str = ""
    region: str = ""
    text: str = ""


@dataclass(frozen=True, eq=False)
class Plot:
    """A figure, and what its points stand for.

    Parameters
    ----------
    figure
        Not shown anywhere yet.
    points
        Artist -> its points, in the order in which matplotlib numbers them: a
        pick event's ``artist`` and each of its ``ind`` lead to one.
    """

    figure: Figure
    points: Mapping[Artist, tuple[Point, ...]]


class _Drawing:
    """A figure on the way to a `Plot`."""

    def __init__(self, width: float, height: float) -> None:
        self.figure = Figure(figsize=(width, height), layout="constrained")
        self.points: dict[Artist, tuple[Point, ...]] = {}

    def panels(self, names: Sequence[str], columns: int, *, share: bool = True) -> list[Axes]:
        """Make an axes per name, row by row."""
        rows = math.ceil(len(names) / columns)
        grid = self.figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share)
        axes = list(grid.flat)
        for unused in axes[len(names) :]:
            unused.set_axis_off()
        for own, name in zip(axes, names, strict=False):
            if name:
                own.set_title(_label(name, 60), fontsize=_NORMAL, color=_INK)
            own.tick_params(labelsize=_SMALL, colors=_INK)
            own.spines[["top", "right"]].set_visible(False)
        return axes[: len(names)]

    def mark(self, axes: Axes, points: Sequence[Point], style: TeamStyle, **look: object) -> None:
        """Draw points that can be picked, in a team's colour and shape."""
        looks: dict[str, object] = {
            "linestyle": "none",
            "marker": style.marker,
            "color": style.colour,
            "markersize": 4.0,
            "picker": True,
            "pickradius": 5.0,
        }
        looks |= look
        (line,) = axes.plot([p.x for p in points], [p.y for p in points], **looks)  # type: ignore[arg-type]
        self.points[line] = tuple(points)

    def legend(self, styles: Mapping[str, TeamStyle], *, lines: bool = False) -> None:
        """Name the teams above everything."""
        handles = [
            Line2D(
                [],
                [],
                linestyle="-" if lines else "none",
                marker=style.marker,
                color=style.colour,
                markersize=5,
                label=_label(team),
            )
            for team, style in styles.items()
        ]
        if handles:
            self.figure.legend(
                handles=handles,
                loc="outside upper center",
                ncols=min(len(handles), 4),
                frameon=False,
                fontsize=_SMALL,
            )

    def done(self) -> Plot:
        """Take all text as it is: a ``$`` in a name is no formula."""
        for text in self.figure.findobj(Text):
            if isinstance(text, Text):
                text.set_parse_math(False)
        return Plot(self.figure, self.points)


# --- figures per patient -----------------------------------------------------------------------


def patient_boxes(
    panels: Mapping[str, pd.DataFrame], teams: Sequence[str], *, figure: str = "pq"
) -> Plot:
    """Draw the distribution of a figure over patients, a box per team.

    As figure 4 of Foucart et al. (Pattern Recognition, 2023): boxes from the
    first to the third quartile with the median, whiskers to the furthest value
    within 1.5 times their length; every patient is a point, the mean a cross.

    Parameters
    ----------
    panels
        Title -> table with columns ``team``, ``patient``, the figure, and
        ``region`` where a row is one.
    teams
        All teams of the cohort, in its order.
    figure
        A column of the tables.
    """
    shown = _shown_teams(panels.values(), teams)
    styles = team_styles(teams)
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / max(columns, 1))
    if not shown:
        return _nothing("no team has a figure to show")
    drawing = _Drawing(7.4, 0.7 + rows * (0.55 + 0.36 * len(shown)))
    axes = drawing.panels(list(panels), columns)
    for own, table in zip(axes, panels.values(), strict=True):
        for place, team in enumerate(shown):
            rows_of_team = _defined(table[table["team"] == team], [figure])
            _box(drawing, own, rows_of_team, figure, team, styles[team], place)
        own.set_yticks(range(len(shown)), [_label(team) for team in shown])
        own.set_ylim(len(shown) - 0.45, -0.55)
        own.grid(axis="x", color=_PALE, linewidth=0.4)
        own.set_axisbelow(True)
        if not _is_distance(figure):
            own.set_xlim(-0.02, 1.02)
    for own in axes[-columns:]:
        own.set_xlabel(FIGURE_NAMES.get(figure, figure), fontsize=_NORMAL)
    return drawing.done()


def _box(
    drawing: _Drawing,
    axes: Axes,
    rows: pd.DataFrame,
    figure: str,
    team: str,
    style: TeamStyle,
    place: int,
) -> None:
    values = rows[figure].to_numpy(np.float64)
    if not len(values):
        note = axes.text(0.02, place, "no patient has a figure", fontsize=_SMALL, va="center")
        note.set_color("#666666")
        return
    _draw_box(axes, values, place, style.colour)
    # Apart from each other, and at the same place in every drawing.
    aside = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(1)
    points = _points(rows, values, place + aside, team, figure)
    drawing.mark(axes, points, style, alpha=0.65, markersize=3.5)
    mean = float(values.mean())
    mark = Point(mean, place, team, text=f"mean over {len(values)}: {ratio(mean)}")
    drawing.mark(
        axes, [mark], style, marker="x", color=_INK, markersize=6, markeredgewidth=1.6, zorder=5
    )


def _draw_box(axes: Axes, values: NDArray[np.float64], place: float, colour: str) -> None:
    """Draw quartiles, median and whiskers.

    By hand: matplotlib's own ``boxplot`` looks at all global settings, and so
    chooses a backend for the whole process.
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

    As figure 5 of Foucart et al. (Pattern Recognition, 2023). Grey curves join
    places of one product.

    Parameters
    ----------
    panels, teams
        As in `patient_boxes`; the tables have columns ``dq`` and ``sq``.
    """
    return _scatter(panels, teams, "dq", "sq", _iso_product())


def detection_scatter(panels: Mapping[str, pd.DataFrame], teams: Sequence[str]) -> Plot:
    """Draw detection precision against recall, a point per patient, with each team's mean.

    As figure 6 of Foucart et al. (Pattern Recognition, 2023). Grey curves join
    places of one F1.

    Parameters
    ----------
    panels, teams
        As in `patient_boxes`; the tables have columns ``detection_precision``
        and ``detection_recall``.
    """
    return _scatter(panels, teams, "detection_recall", "detection_precision", _iso_f1())


def _scatter(
    panels: Mapping[str, pd.DataFrame],
    teams: Sequence[str],
    x: str,
    y: str,
    iso: NDArray[np.float64],
) -> Plot:
    shown = _shown_teams(panels.values(), teams)
    if not shown:
        return _nothing("no team has a figure to show")
    styles = team_styles(teams)
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    drawing = _Drawing(7.4 if columns > 1 else 4.6, 0.6 + rows * 3.3)
    axes = drawing.panels(list(panels), columns)
    for own, table in zip(axes, panels.values(), strict=True):
        _iso_lines(own, iso)
        for team in shown:
            rows_of_team = _defined(table[table["team"] == team], [x, y])
            _cloud(drawing, own, rows_of_team, x, y, team, styles[team])
        own.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    for number, own in enumerate(axes):
        if number >= len(axes) - columns:
            own.set_xlabel(FIGURE_NAMES[x], fontsize=_NORMAL)
        if number % columns == 0:
            own.set_ylabel(FIGURE_NAMES[y], fontsize=_NORMAL)
    drawing.legend({team: styles[team] for team in shown})
    return drawing.done()


def _cloud(
    drawing: _Drawing,
    axes: Axes,
    rows: pd.DataFrame,
    x: str,
    y: str,
    team: str,
    style: TeamStyle,
) -> None:
    if rows.empty:
        return
    xs, ys = rows[x].to_numpy(np.float64), rows[y].to_numpy(np.float64)
    drawing.mark(axes, _points(rows, xs, ys, team, f"{x}, {y}"), style, alpha=0.55)
    centre = Point(
        float(xs.mean()),
        float(ys.mean()),
        team,
        text=f"mean over {len(xs)}: {ratio(float(xs.mean()))}, {ratio(float(ys.mean()))}",
    )
    drawing.mark(
        axes, [centre], style, markersize=10, markeredgecolor=_INK, markeredgewidth=1.3, zorder=5
    )


def _iso_lines(axes: Axes, curves: NDArray[np.float64]) -> None:
    x = np.linspace(0.01, 1, curves.shape[1])
    for level, y in zip(_ISO, curves, strict=True):
        axes.plot(x, y, color=_PALE, linewidth=0.6, zorder=0)
        axes.annotate(
            f"{level:g}",
            (1.0, float(y[-1])),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=6,
            color="#777777",
            annotation_clip=False,
        )


def _iso_product() -> NDArray[np.float64]:
    x = np.linspace(0.01, 1, 100)
    y = np.array([level / x for level in _ISO])
    return np.where(y <= 1, y, np.nan)


def _iso_f1() -> NDArray[np.float64]:
    x = np.linspace(0.01, 1, 100)
    below = np.array([2 * x - level for level in _ISO])
    y = np.array([level * x for level in _ISO]) / np.where(below > 0, below, np.nan)
    return np.where(y <= 1, y, np.nan)


# --- confusion ---------------------------------------------------------------------------------


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
        ``none`` for the side that has no object.
    classes
        The scored classes, in order.
    teams
        All teams of the cohort, in its order.
    normalised
        Whether to show what share of a class's matched nuclei got which class;
        rows without one are undefined. Otherwise all counts, unmatched objects
        among them, shaded by their share of the row.
    """
    shown = _shown_teams([table], teams)
    if not shown:
        return _nothing("no team has a figure to show")
    names = list(classes) if normalised else ["none", *classes]
    columns = min(len(shown), 2)
    rows = math.ceil(len(shown) / columns)
    side = 1.3 + 0.42 * len(names)
    drawing = _Drawing(max(3.7 * columns, (side + 0.4) * columns), side * rows)
    axes = drawing.panels(shown, columns, share=False)
    for own, team in zip(axes, shown, strict=True):
        cells = table[table["team"] == team].pivot_table(
            index="reference", columns="prediction", values="count", aggfunc="sum", fill_value=0
        )
        counts = cells.reindex(index=names, columns=names, fill_value=0).to_numpy(np.float64)
        _matrix(drawing, own, counts, names, team, normalised=normalised)
    return drawing.done()


def _matrix(
    drawing: _Drawing,
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
    mesh = axes.pcolormesh(
        edges,
        edges,
        np.nan_to_num(shares),
        cmap=_SHARES,
        vmin=0,
        vmax=1,
        edgecolors="#dddddd",
        linewidth=0.5,
    )
    mesh.set_picker(True)
    points = []
    for row, column in np.ndindex(n, n):
        share, number = float(shares[row, column]), float(counts[row, column])
        both_none = not normalised and row == column == 0  # nothing can be there
        text = "" if both_none else ratio(share, 2) if normalised else count(number)
        colour = "white" if not math.isnan(share) and share > _DARK else _INK
        axes.text(column, row, text, ha="center", va="center", fontsize=_SMALL, color=colour)
        what = f"{names[row]} as {names[column]}: {count(number)}, {ratio(share)} of the row"
        points.append(Point(column, row, team, text=what))
    drawing.points[mesh] = tuple(points)
    labels = [_label(name, 14) for name in names]
    axes.set_xticks(range(n), labels, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(n), labels)
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), aspect="equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("prediction", fontsize=_SMALL)
    axes.set_ylabel("reference", fontsize=_SMALL)


# --- ranks -------------------------------------------------------------------------------------


def critical_difference_diagram(critical: CriticalDifference, teams: Sequence[str]) -> Plot:
    """Draw mean ranks, and a bar over teams that do not differ (Demsar, JMLR 2006, figure 1).

    Parameters
    ----------
    critical
        Ranks and groups; where they are undefined the figure says why.
    teams
        All teams of the cohort, in its order.
    """
    if critical.why_undefined:
        return _nothing(f"No diagram: {critical.why_undefined}.")
    n = len(critical.teams)
    styles = team_styles(teams)
    left = math.ceil(n / 2)
    drawing = _Drawing(7.0, 1.3 + 0.27 * left + 0.14 * len(critical.groups))
    (axes,) = drawing.panels([""], 1)
    axes.set_axis_off()
    axes.set(xlim=(1 - 0.9 * n / 4, n + 0.9 * n / 4))
    axes.plot([1, n], [0, 0], color=_INK, linewidth=1)
    for rank in range(1, n + 1):
        axes.plot([rank, rank], [0, 0.18], color=_INK, linewidth=1)
        axes.text(rank, 0.28, str(rank), ha="center", va="bottom", fontsize=_SMALL)
    axes.plot([1, 1 + critical.difference], [1.35, 1.35], color=_INK, linewidth=1.5, marker="|")
    axes.text(
        1,
        1.55,
        f"critical difference {critical.difference:.2f} (n = {critical.n_patients}, "
        f"α = {critical.alpha:g})",
        fontsize=_SMALL,
        va="bottom",
    )
    below = 0.35 + 0.3 * len(critical.groups)
    for level, group in enumerate(critical.groups):
        ranks = [critical.mean_ranks[critical.teams.index(team)] for team in group]
        y = -0.3 - 0.3 * level
        axes.plot(
            [min(ranks) - 0.04, max(ranks) + 0.04],
            [y, y],
            color=_INK,
            linewidth=3.5,
            solid_capstyle="butt",
        )
    for place, (team, rank) in enumerate(zip(critical.teams, critical.mean_ranks, strict=True)):
        is_left = place < left
        depth = -below - 0.6 * (place if is_left else n - 1 - place) - 0.4
        end = 1 - 0.1 * n / 4 if is_left else n + 0.1 * n / 4
        style = styles[team]
        axes.plot([rank, rank, end], [0, depth, depth], color=style.colour, linewidth=1)
        drawing.mark(axes, [Point(rank, 0.0, team, text=f"mean rank {rank:.2f}")], style)
        axes.text(
            end - 0.02 * n if is_left else end + 0.02 * n,
            depth,
            f"{rank:.2f}  {_label(team)}",  # so that a name from right to left leaves it there
            ha="right" if is_left else "left",
            va="center",
            fontsize=_NORMAL,
            color=_INK,
        )
    axes.set_ylim(-below - 0.6 * (left - 1) - 0.8, 2.1)
    return drawing.done()


def rank_lines(table: ProtocolTable, teams: Sequence[str]) -> Plot:
    """Draw each team's rank under every protocol, joined by lines.

    Parameters
    ----------
    table
        Scores and ranks.
    teams
        All teams of the cohort, in its order.
    """
    n_teams, n_protocols = table.ranks.shape
    if not n_teams or not n_protocols or not (table.ranks > 0).any():
        return _nothing("no team has a score to rank")
    styles = team_styles(teams)
    # Names of protocols are long: they stand at the left, and ranks go across.
    drawing = _Drawing(7.4, 1.2 + 0.32 * n_protocols)
    (axes,) = drawing.panels([""], 1)
    for row, team in enumerate(table.teams):
        tied = _beside(table.ranks, row)
        known = table.ranks[row] > 0
        points = [
            Point(
                float(table.ranks[row, k] + tied[k]),
                float(k),
                team,
                text=f"{table.protocols[k]}: {ratio(table.scores[row, k])}, rank "
                f"{table.ranks[row, k]}",
            )
            for k in np.flatnonzero(known)
        ]
        if points:
            drawing.mark(axes, points, styles[team], linestyle="-", linewidth=1.6, markersize=6)
    axes.set_yticks(range(n_protocols), [_label(name, 48) for name in table.protocols])
    axes.set_xticks(range(1, n_teams + 1))
    axes.set(xlim=(0.6, n_teams + 0.4), ylim=(n_protocols - 0.5, -0.5))
    axes.set_xlabel("rank (1 is the best)", fontsize=_NORMAL)
    axes.grid(axis="x", color=_PALE, linewidth=0.4)
    drawing.legend({team: styles[team] for team in table.teams}, lines=True)
    return drawing.done()


def _beside(ranks: NDArray[np.int64], row: int) -> NDArray[np.float64]:
    """Give how far to shift a team's marks, so that equal ranks lie beside each other."""
    same = ranks == ranks[row]
    before = same[:row].sum(axis=0)
    step: NDArray[np.float64] = (before - (same.sum(axis=0) - 1) / 2) * 0.12
    return step


# --- robustness --------------------------------------------------------------------------------


def robustness_curves(
    found: Robustness,
    positions: Sequence[float],
    teams: Sequence[str],
    *,
    x_label: str,
    figures: Sequence[str] = ("pq", "sq", "dq"),
    usual: float | None = None,
) -> Plot:
    """Draw figures against what was varied; open rings mark where ranks by PQ change.

    Parameters
    ----------
    found
        Figures under each condition.
    positions
        Where each condition lies on the axis, in the order of the conditions.
    teams
        All teams of the cohort, in its order.
    x_label
        What the axis is.
    figures
        Of ``pq``, ``sq``, ``dq``: a panel each.
    usual
        The position of the settings of the evaluation, marked by a line.
    """
    if np.isnan(found.pq).all():
        return _nothing("no team has a figure to show")
    styles = team_styles(teams)
    drawing = _Drawing(7.4, 3.1)
    axes = drawing.panels([FIGURE_NAMES[name] for name in figures], len(figures))
    changed = {(change.team, change.conditions[1]) for change in found.changes}
    for own, name in zip(axes, figures, strict=True):
        values: NDArray[np.float64] = getattr(found, name)
        for row, team in enumerate(found.teams):
            points = [
                Point(
                    float(x), float(value), team, text=f"{condition}: {ratio(value)}, rank {rank}"
                )
                for x, value, condition, rank in zip(
                    positions, values[row], found.conditions, found.ranks[row], strict=True
                )
                if not math.isnan(value)
            ]
            if points:
                drawing.mark(
                    own, points, styles[team], linestyle="-", linewidth=1.3, markersize=3.5
                )
            rings = [
                (x, value)
                for x, value, condition in zip(
                    positions, values[row], found.conditions, strict=True
                )
                if name == "pq" and (team, condition) in changed and not math.isnan(value)
            ]
            if rings:
                own.plot(
                    *zip(*rings, strict=True),
                    linestyle="none",
                    marker="o",
                    markerfacecolor="none",
                    markeredgecolor=_INK,
                    markersize=9,
                )
        own.set_xlabel(x_label, fontsize=_NORMAL)
        own.set_ylim(-0.02, 1.02)
        own.grid(color=_PALE, linewidth=0.4)
        if usual is not None:
            own.axvline(usual, color="#777777", linewidth=0.9, linestyle="--", zorder=0)
    drawing.legend({team: styles[team] for team in found.teams}, lines=True)
    return drawing.done()


def shift_maps(found: Robustness, shifts: Sequence[tuple[int, int]], teams: Sequence[str]) -> Plot:
    """Draw by how much PQ changes when predictions are moved, a map per team.

    Parameters
    ----------
    found
        Figures under each shift; one of the shifts is none.
    shifts
        (dy, dx) in px of each condition, in their order.
    teams
        All teams of the cohort, in its order.

    Raises
    ------
    ValueError
        Where there is no condition without a shift.
    """
    if (0, 0) not in shifts:
        raise ValueError(f"expected a condition without a shift, found {list(shifts)}")
    shown = [team for team in teams if team in found.teams]
    if not shown or np.isnan(found.pq).all():
        return _nothing("no team has a figure to show")
    unmoved = shifts.index((0, 0))
    change = found.pq - found.pq[:, [unmoved]]
    furthest = max(float(np.nanmax(np.abs(change), initial=0.0)), 1e-9)
    reach = max(max(abs(dy), abs(dx)) for dy, dx in shifts)
    side = 2 * reach + 1
    columns = min(len(shown), 4)
    rows = math.ceil(len(shown) / columns)
    drawing = _Drawing(max(1.85 * columns, 2.2), 2.25 * rows)
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
            own.text(dx, dy, text, ha="center", va="center", fontsize=6.5, color=_INK)
            points[(dy + reach) * side + dx + reach] = Point(
                dx, dy, team, text=f"{found.conditions[k]}: {ratio(float(found.pq[row, k]))}"
            )
        mesh = own.pcolormesh(
            edges,
            edges,
            np.ma.masked_invalid(cells),
            cmap=_GAINS,
            vmin=-furthest,
            vmax=furthest,
            edgecolors="white",
            linewidth=0.8,
        )
        mesh.set_picker(True)
        drawing.points[mesh] = tuple(points)
        own.set(
            xlim=(edges[0], edges[-1]),
            ylim=(edges[-1], edges[0]),
            aspect="equal",
            xticks=range(-reach, reach + 1),
            yticks=range(-reach, reach + 1),
        )
        own.set_xlabel("px to the right", fontsize=_SMALL)
    for own in axes[::columns]:
        own.set_ylabel("px down", fontsize=_SMALL)
    return drawing.done()


# --- where teams fail --------------------------------------------------------------------------


def cause_dots(table: pd.DataFrame, teams: Sequence[str]) -> Plot:
    """Draw which share of a team's FN and FP each cause has, a panel per side.

    Parameters
    ----------
    table
        As `napari_panoptic.evaluation.breakdown.by_cause` gives it.
    teams
        All teams of the cohort, in its order.
    """
    shown = _shown_teams([table], teams)
    if not shown:
        return _nothing("no team has a failure to show")
    styles = team_styles(teams)
    titles = {
        str(Side.REFERENCE): "FN: what became of annotated nuclei",
        str(Side.PREDICTION): "FP: what predictions are",
    }
    panels = {title: table[table["side"] == side] for side, title in titles.items()}
    panels = {title: rows for title, rows in panels.items() if len(rows)}
    n_causes = max(rows["cause"].nunique() for rows in panels.values())
    drawing = _Drawing(7.4, 1.1 + 0.3 * n_causes)
    grid = drawing.panels(list(panels), len(panels), share=False)
    for axes, rows in zip(grid, panels.values(), strict=True):
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
            if points:
                drawing.mark(axes, points, styles[team], markersize=6, alpha=0.9)
        axes.set_yticks(range(len(causes)), causes)
        axes.set(xlim=(-0.03, 1.03), ylim=(len(causes) - 0.5, -0.5))
        axes.grid(color=_PALE, linewidth=0.4)
        axes.set_axisbelow(True)
        axes.set_xlabel("share of the team's failures on this side", fontsize=_SMALL)
    drawing.legend({team: styles[team] for team in shown})
    return drawing.done()


def size_lines(
    table: pd.DataFrame,
    teams: Sequence[str],
    *,
    figures: Sequence[str] = ("recall", "precision", "mean_iou"),
) -> Plot:
    """Draw figures against the size of objects, a panel per figure.

    Parameters
    ----------
    table
        As `napari_panoptic.evaluation.breakdown.by_size` gives it.
    teams
        All teams of the cohort, in its order.
    figures
        Ratios among its columns.
    """
    shown = _shown_teams([table], teams)
    if not shown:
        return _nothing("no team has a figure to show")
    styles = team_styles(teams)
    drawing = _Drawing(7.4, 3.0)
    grid = drawing.panels([name.replace("mean_iou", "mean IoU") for name in figures], len(figures))
    sizes = table.drop_duplicates("size")
    names = [
        area_text(low, high)
        for low, high in zip(sizes["area_from"], sizes["area_below"], strict=True)
    ]
    for axes, name in zip(grid, figures, strict=True):
        for team in shown:
            rows = _defined(table[table["team"] == team], [name])
            points = [
                Point(float(row["size"]), float(row[name]), team, text=ratio(row[name]))
                for row in rows.to_dict("records")
            ]
            if points:
                drawing.mark(axes, points, styles[team], linestyle="-", linewidth=1.3)
        axes.set_xticks(sizes["size"], names, rotation=25, ha="right", rotation_mode="anchor")
        axes.set_ylim(-0.02, 1.02)
        axes.grid(color=_PALE, linewidth=0.4)
        axes.set_xlabel(f"area ({table['area_unit'].iloc[0]})", fontsize=_NORMAL)
    drawing.legend({team: styles[team] for team in shown}, lines=True)
    return drawing.done()


def area_text(low: float, high: float) -> str:
    """Write a class of size by its bounds."""
    if low <= 0:
        return f"below {high:g}" if math.isfinite(high) else "all"
    return f"{low:g} to {high:g}" if math.isfinite(high) else f"from {low:g}"


# --- files -------------------------------------------------------------------------------------


def save(plot: Plot | Figure, path: Path) -> Path:
    """Write a figure as SVG or PNG, whole or not at all.

    The same figure gives the same file: no dates, no random names.

    Parameters
    ----------
    plot
        What to write.
    path
        Ends in ``.svg`` or ``.png``; an older file is replaced.

    Raises
    ------
    PanopticError
        For another ending, or where the file cannot be written.
    """
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise PanopticError(
            f"expected a name that ends in .svg or .png, found '{path.name}'", path=path
        )
    content = svg_text(plot).encode() if kind == ".svg" else png_bytes(plot)
    try:
        return write_bytes(path, content)
    except OSError as error:
        raise PanopticError(
            f"the figure cannot be written: {error.strerror}; choose another place", path=path
        ) from error


def svg_text(plot: Plot | Figure, *, salt: str = "") -> str:
    """Give a figure as an SVG document.

    Parameters
    ----------
    plot
        What to write.
    salt
        Figures in one page need different ones, or their inner names clash.
    """
    target = io.StringIO()
    with _drawing(salt):
        _figure_of(plot).savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    return target.getvalue()


def png_bytes(plot: Plot | Figure, *, dpi: int = PNG_DPI) -> bytes:
    """Give a figure as a PNG file."""
    target = io.BytesIO()
    with _drawing(""):
        _figure_of(plot).savefig(target, format="png", dpi=dpi, metadata={"Software": None})
    return target.getvalue()


@contextmanager
def _drawing(salt: str) -> Iterator[None]:
    settings: Any = {"svg.hashsalt": f"{_HASH_SALT}{salt}", "svg.fonttype": "none"}
    with mpl.rc_context(settings), warnings.catch_warnings():
        # A team may have a name in letters that the bundled font lacks; browsers have others.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _figure_of(plot: Plot | Figure) -> Figure:
    return plot.figure if isinstance(plot, Plot) else plot


# --- parts -------------------------------------------------------------------------------------


def _nothing(why: str) -> Plot:
    """Say why there is nothing to draw."""
    drawing = _Drawing(7.0, 0.8)
    drawing.figure.text(0.5, 0.5, why, ha="center", va="center", fontsize=_NORMAL, wrap=True)
    return drawing.done()


def _label(name: str, length: int = _LONGEST_NAME) -> str:
    return shortened(visible(name), length) or UNDEFINED


def _shown_teams(tables: Iterable[pd.DataFrame], teams: Sequence[str]) -> list[str]:
    present = {team for table in tables for team in table["team"]}
    return [team for team in teams if team in present]


def _defined(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    return rows.dropna(subset=list(columns))


def _points(
    rows: pd.DataFrame,
    xs: NDArray[np.float64],
    ys: NDArray[np.float64],
    team: str,
    text: str,
) -> list[Point]:
    regions = rows["region"] if "region" in rows else [""] * len(rows)
    return [
        Point(float(x), float(y), team, str(patient), str(region), text)
        for x, y, patient, region in zip(xs, ys, rows["patient"], regions, strict=True)
    ]


def _is_distance(figure: str) -> bool:
    return figure.endswith("_px")
