"""The common style of all plots, and how they are written to files.

Plots are matplotlib figures whose points know their team, patient and region. There is no window
and no global state, except two entries of ``rcParams`` that only matplotlib's SVG writer reads.
"""

from __future__ import annotations

import io
import math
import re
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import shortened, visible
from napari_panoptic.display.palette import team_styles
from napari_panoptic.report.writing import write_bytes
from napari_panoptic.tables.figures import UNDEFINED

PNG_DPI = 200
_HASH_SALT = "napari-panoptic"
_LONGEST_NAME = 26
_writing = threading.Lock()
SMALL, NORMAL = 7.5, 8.5
INK, PALE = "#222222", "#b8b8b8"
MOST_COLUMNS = 4
"""Largest number of columns of a legend."""
LEVELS = (0.2, 0.4, 0.6, 0.8)
"""Values for which curves of equal F1, or of equal products, are drawn."""


@dataclass(frozen=True)
class Point:
    """A mark that belongs to a team."""

    #: Its place, in data coordinates of its axes.
    x: float
    y: float
    #: The team.
    team: str
    #: The patient and the region; empty for summaries of many.
    patient: str = ""
    region: str = ""
    #: The figures it shows, in words.
    text: str = ""

    @property
    def title(self) -> str:
        """Team, patient, region and figures, in one line."""
        place = ", ".join(visible(own) for own in (self.team, self.patient, self.region) if own)
        return f"{place}: {visible(self.text)}" if self.text else place


@dataclass(frozen=True, eq=False)
class Plot:
    """A figure and the points it shows."""

    #: The figure, not yet shown.
    figure: Figure
    #: Artist -> its points in matplotlib's order: a pick event's ``artist`` and each of its ``ind``
    #: lead to one.
    points: Mapping[Artist, tuple[Point, ...]]


class Drawing:
    """A figure that becomes a `Plot`.

    Parameters
    ----------
    width, height
        Its size in inches.
    teams
        All teams of the cohort, or whatever else has a colour and shape each, in their order,
        which decides these.
    """

    def __init__(self, width: float, height: float, teams: Sequence[str] = ()) -> None:
        self.styles = team_styles(teams)
        self.figure = Figure(figsize=(width, height), layout="constrained")
        self.points: dict[Artist, tuple[Point, ...]] = {}

    def panels(self, names: Sequence[str], columns: int, *, share: bool = True) -> list[Axes]:
        """Return axes with the given titles, row by row."""
        rows = max(1, math.ceil(len(names) / columns))
        grid = self.figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share)
        axes = list(grid.flat)
        for unused in axes[len(names) :]:
            unused.set_axis_off()
        for own, name in zip(axes, names, strict=False):
            if name:
                own.set_title(label(name, 60), fontsize=NORMAL, color=INK, wrap=True)
            own.tick_params(labelsize=SMALL, colors=INK)
            own.spines[["top", "right"]].set_visible(False)
        return axes[: len(names)]

    def mark(self, axes: Axes, points: Sequence[Point], team: str, **look: object) -> None:
        """Draw points that can be picked, in a team's colour and shape; ``look`` overrides."""
        if not points:
            return
        style = self.styles[team]
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

    def cells(
        self,
        axes: Axes,
        edges: NDArray[Any],
        values: NDArray[Any],
        points: Sequence[Point],
        **look: Any,
    ) -> None:
        """Draw a square of cells that can be picked, whose points are row by row."""
        mesh = axes.pcolormesh(edges, edges, values, **look)
        mesh.set_picker(True)
        self.points[mesh] = tuple(points)

    def summary_mark(self, axes: Axes, point: Point) -> None:
        """Draw a large mark with a dark edge."""
        look = {"markersize": 10, "markeredgecolor": INK, "markeredgewidth": 1.3, "zorder": 5}
        self.mark(axes, [point], point.team, **look)

    def legend(
        self, teams: Iterable[str], *, lines: bool = False, others: Sequence[Line2D] = ()
    ) -> None:
        """Name the teams, and then other lines, above the panels."""
        handles = [
            Line2D(
                [],
                [],
                linestyle="-" if lines else "none",
                marker=self.styles[team].marker,
                color=self.styles[team].colour,
                markersize=5,
                label=label(team),
            )
            for team in teams
        ]
        handles += others
        if handles:
            _legend(self.figure, handles, min(len(handles), MOST_COLUMNS))

    def done(self) -> Plot:
        """Return the plot. A ``$`` in a text does not start a formula."""
        for text in self.figure.findobj(Text):
            if isinstance(text, Text):
                text.set_parse_math(False)
        return Plot(self.figure, self.points)


def fit_legend(figure: Figure) -> None:
    """Set the columns of the legend above the panels: as many as the figure has room for.

    A figure in a window may be narrower than it was designed.
    """
    for shown in figure.legends:
        legend, handles = shown, [handle for handle in shown.legend_handles if handle is not None]
        for columns in range(min(len(handles), MOST_COLUMNS), 0, -1):
            legend.remove()
            legend = _legend(figure, handles, columns)
            if legend.get_window_extent().width <= figure.bbox.width:
                break


def _legend(figure: Figure, handles: Sequence[Artist], columns: int) -> Legend:
    legend = figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        fontsize=SMALL,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return legend


def save(plot: Plot | Figure, path: Path) -> Path:
    """Write a figure as SVG or PNG, completely or not at all.

    The same figure gives the same file: no dates, no random names.

    Parameters
    ----------
    plot
        The figure.
    path
        Ends in ``.svg`` or ``.png``; an existing file is replaced.

    Raises
    ------
    PanopticError
        For another ending, or if the file cannot be written.
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
    """Return a figure as an SVG document; browsers show the title of a point on hover.

    Parameters
    ----------
    plot
        The figure.
    salt
        Figures in one page need different ones, or their inner names clash.
    """
    points = list(plot.points.items()) if isinstance(plot, Plot) else []
    for number, (artist, _) in enumerate(points):
        artist.set_gid(_group(number))
    target = io.StringIO()
    with _one_at_a_time(), _svg_parameters(salt):
        _write_svg(_figure_of(plot), target)
    document = target.getvalue()
    for number, (_, own) in enumerate(points):
        # Only marks; the cells of maps show their figures as text.
        document = _with_titles(document, f'<g id="{_group(number)}">', own)
    return document


def _write_svg(figure: Figure, target: io.StringIO) -> None:
    """Lay the figure out and draw it in one pass; ``savefig`` draws it twice for the same file."""
    canvas, dpi = figure.canvas, figure.dpi
    try:
        drawn: Any = FigureCanvasSVG(figure)
        drawn.print_svg(target, metadata={"Date": None, "Creator": None})
    finally:
        figure.set_canvas(canvas)
        figure.dpi = dpi


def _group(number: int) -> str:
    return f"points_{number}"


def _with_titles(document: str, group: str, points: Sequence[Point]) -> str:
    """Add a title to each mark of a group."""
    start = document.index(group)
    end = document.find('<g id="', start + len(group))
    head, *marks = re.split(r"(?=<use )", document[start:end])
    drawn = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    if len(marks) != len(drawn):  # marks outside the figure are not in the document
        return document
    titled = (
        mark.replace("/>", f"><title>{escape(point.title, quote=False)}</title></use>", 1)
        for mark, point in zip(marks, drawn, strict=True)
    )
    return "".join([document[:start], head, *titled, document[end:]])


def png_bytes(plot: Plot | Figure, *, dpi: int = PNG_DPI) -> bytes:
    """Return a figure as a PNG file."""
    target = io.BytesIO()
    with _one_at_a_time():
        _figure_of(plot).savefig(target, format="png", dpi=dpi, metadata={"Software": None})
    return target.getvalue()


@contextmanager
def _svg_parameters(salt: str) -> Iterator[None]:
    """Set the ``rcParams`` that the SVG writer reads, and nothing else.

    ``mpl.rc_context`` would restore *all* parameters, also those that a window or another
    worker changed meanwhile. These two have no argument, and no other writer reads them.
    """
    parameters: Any = mpl.rcParams
    wanted = {"svg.hashsalt": f"{_HASH_SALT}{salt}", "svg.fonttype": "none"}
    before = {name: parameters[name] for name in wanted}
    parameters.update(wanted)
    try:
        yield
    finally:
        parameters.update(before)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Let one thread write at a time: parameters and warning filters belong to the process."""
    with _writing, warnings.catch_warnings():
        # The bundled font lacks letters of some names; browsers have other fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _figure_of(plot: Plot | Figure) -> Figure:
    return plot.figure if isinstance(plot, Plot) else plot


def points_of(
    team: str, xs: Iterable[float], ys: Iterable[float], texts: Iterable[str]
) -> list[Point]:
    """Return points of a team with the figures they show, in words."""
    places = zip(xs, ys, texts, strict=True)
    return [Point(float(x), float(y), team, text=text) for x, y, text in places]


def name_axes(axes: Axes, x: str, y: str) -> None:
    """Write what the axes show."""
    axes.set_xlabel(x, fontsize=SMALL)
    axes.set_ylabel(y, fontsize=SMALL)


def slanted_names(
    axes: Axes, places: Sequence[float] | NDArray[Any], names: Sequence[str], rotation: int = 30
) -> None:
    """Write names below the horizontal axis."""
    axes.set_xticks(places, names, rotation=rotation, ha="right", rotation_mode="anchor")


def grid(axes: Axes, width: float = 0.4, axis: Literal["both", "x", "y"] = "both") -> None:
    """Draw a grid behind everything else."""
    axes.grid(axis=axis, color=PALE, linewidth=width)
    axes.set_axisbelow(True)


def equal_f1_lines(axes: Axes) -> None:
    """Draw curves of equal F1, of recall (x) and precision (y), with their values at the ends."""
    x = np.linspace(0.01, 1, 100)
    below = np.array([2 * x - level for level in LEVELS])
    y = np.array([level * x for level in LEVELS]) / np.where(below > 0, below, np.nan)
    level_lines(axes, np.where(y <= 1, y, np.nan))


def level_lines(axes: Axes, curves: NDArray[np.float64]) -> None:
    """Draw the curve of each of the `LEVELS` over x from 0.01 to 1, with its value at its end."""
    x = np.linspace(0.01, 1, curves.shape[1])
    for level, y in zip(LEVELS, curves, strict=True):
        axes.plot(x, y, color=PALE, linewidth=0.6, zorder=0)
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


def nothing_to_show(why: str) -> Plot:
    """Return a plot that shows why there is nothing to draw."""
    drawing = Drawing(7.0, 0.8)
    drawing.figure.text(0.5, 0.5, why, ha="center", va="center", fontsize=NORMAL, wrap=True)
    return drawing.done()


def label(name: str, length: int = _LONGEST_NAME) -> str:
    """Return a name in one line; the middle of a long one is left out."""
    return shortened(visible(name), length) or UNDEFINED


def shown_teams(tables: Iterable[pd.DataFrame], teams: Sequence[str]) -> list[str]:
    """Return the teams that have a row in any table, in the order of the cohort."""
    present = {team for table in tables for team in table["team"]}
    return [team for team in teams if team in present]
