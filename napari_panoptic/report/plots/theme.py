"""How plots are drawn and written: as matplotlib figures, whose points know whose they are.

No window and no global state: figures are made by matplotlib's objects alone. Writing an SVG
needs two entries of ``rcParams`` that only matplotlib's SVG writer reads.
"""

from __future__ import annotations

import io
import math
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.visible import shortened, visible
from napari_panoptic.nuclei.palette import TeamStyle
from napari_panoptic.report.text import UNDEFINED
from napari_panoptic.report.writing import write_bytes

PNG_DPI = 200
_HASH_SALT = "napari-panoptic"
_LONGEST_NAME = 26
_writing = threading.Lock()
SMALL, NORMAL = 7.5, 8.5
INK, PALE = "#222222", "#b8b8b8"


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


class Drawing:
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
                own.set_title(label(name, 60), fontsize=NORMAL, color=INK, wrap=True)
            own.tick_params(labelsize=SMALL, colors=INK)
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
                label=label(team),
            )
            for team, style in styles.items()
        ]
        if handles:
            self.figure.legend(
                handles=handles,
                loc="outside upper center",
                ncols=min(len(handles), 4),
                frameon=False,
                fontsize=SMALL,
            )

    def done(self) -> Plot:
        """Take all text as it is: a ``$`` in a name is no formula."""
        for text in self.figure.findobj(Text):
            if isinstance(text, Text):
                text.set_parse_math(False)
        return Plot(self.figure, self.points)


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
    """Return a figure as an SVG document.

    Parameters
    ----------
    plot
        What to write.
    salt
        Figures in one page need different ones, or their inner names clash.
    """
    target = io.StringIO()
    with _one_at_a_time(), _svg_parameters(salt):
        _figure_of(plot).savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    return target.getvalue()


def png_bytes(plot: Plot | Figure, *, dpi: int = PNG_DPI) -> bytes:
    """Return a figure as a PNG file."""
    target = io.BytesIO()
    with _one_at_a_time():
        _figure_of(plot).savefig(target, format="png", dpi=dpi, metadata={"Software": None})
    return target.getvalue()


@contextmanager
def _svg_parameters(salt: str) -> Iterator[None]:
    """Set what the SVG writer reads from ``rcParams``, and nothing else.

    ``mpl.rc_context`` would put back *all* parameters, also those that a window or another
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
    """Let one thread write at a time: parameters and warning filters are the whole process's."""
    with _writing, warnings.catch_warnings():
        # A team may have a name in letters that the bundled font lacks; browsers have others.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _figure_of(plot: Plot | Figure) -> Figure:
    return plot.figure if isinstance(plot, Plot) else plot


def nothing_to_show(why: str) -> Plot:
    """Describe why there is nothing to draw."""
    drawing = Drawing(7.0, 0.8)
    drawing.figure.text(0.5, 0.5, why, ha="center", va="center", fontsize=NORMAL, wrap=True)
    return drawing.done()


def label(name: str, length: int = _LONGEST_NAME) -> str:
    """Write a name in one line, cut off where it is long."""
    return shortened(visible(name), length) or UNDEFINED


def shown_teams(tables: Iterable[pd.DataFrame], teams: Sequence[str]) -> list[str]:
    """Name the teams that have a row in some table, in the order of the cohort."""
    present = {team for table in tables for team in table["team"]}
    return [team for team in teams if team in present]
