"""Plots in the colours of the window; importing this imports matplotlib, which takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_qtagg import FigureCanvasQTAgg
from matplotlib.collections import Collection, QuadMesh
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import Normal, Stroke
from matplotlib.text import Text
from qtpy.QtCore import QEvent
from qtpy.QtGui import QColor, QResizeEvent

from napari_panoptic.report.plots.theme import fit_legend

GREY_RANGE = 0.02
"""Colours whose channels differ by no more than this are ink or paper, not a team's."""
LEAST_CONTRAST = 3.0
"""The least contrast of lines and marks with their background (WCAG 2.2, 1.4.11)."""
DARK = 0.18
"""Relative luminance below which a ground counts as dark."""
RIMS_PT = 1.6
"""Of both sides together."""


class PlotCanvas(FigureCanvasQTAgg):
    """Draws a figure, made for white paper, on the ground of the window.

    The figure itself keeps its colours: it is saved as it would be printed.

    Parameters
    ----------
    figure
        What to draw.
    drawing
        Held while it is drawn.
    """

    def __init__(self, figure: Figure, drawing: AbstractContextManager[object]) -> None:
        super().__init__(figure)  # type: ignore[no-untyped-call]
        self._drawing = drawing

    def draw(self) -> None:
        """Draw greys from the window's ground to its ink, and dark marks with a light rim."""
        palette = self.palette()
        ground = palette.color(self.backgroundRole())
        ink = palette.color(self.foregroundRole())
        with self._drawing, _in_colours(self.figure, ground, ink):
            super().draw()  # type: ignore[no-untyped-call]

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Keep the legend within the figure."""
        super().resizeEvent(event)  # type: ignore[no-untyped-call]
        with self._drawing:
            fit_legend(self.figure)

    def changeEvent(self, event: QEvent | None) -> None:  # noqa: N802
        """Follow the theme."""
        super().changeEvent(event)
        if event is not None and event.type() in (
            QEvent.Type.PaletteChange,
            QEvent.Type.StyleChange,
        ):
            self.draw_idle()  # type: ignore[no-untyped-call]


@contextmanager
def _in_colours(figure: Figure, ground: QColor, ink: QColor) -> Iterator[None]:
    """Yield a figure other colours, and take them back."""
    undo: list[Callable[[], object]] = []
    paper, pen = _rgb(ground), _rgb(ink)
    try:
        for artist in figure.findobj():
            if not _is_in_cell(artist):
                _recolour(artist, paper, pen, undo)
        yield
    finally:
        for step in reversed(undo):
            step()


def _recolour(artist: Artist, paper: Any, pen: Any, undo: list[Callable[[], object]]) -> None:
    is_lost = isinstance(artist, Line2D | Patch) and _is_lost(artist, paper)
    for name in _colour_names(artist):
        before = getattr(artist, f"get_{name}")()
        colours = to_rgba_array(before)
        grey = colours[:, :3].max(axis=1, initial=0) - colours[:, :3].min(axis=1, initial=1)
        is_grey = (grey <= GREY_RANGE) & (colours[:, 3] > 0)
        if is_grey.any():
            light = colours[is_grey, :1]
            colours[is_grey, :3] = pen + (paper - pen) * light
            change = getattr(artist, f"set_{name}")
            undo.append(partial(change, before))
            change(colours if isinstance(artist, Collection) else colours[0])
    if is_lost:
        effects = artist.get_path_effects()
        undo.append(partial(artist.set_path_effects, effects))
        width = artist.get_linewidth() + RIMS_PT  # type: ignore[attr-defined]
        artist.set_path_effects([Stroke(linewidth=width, foreground=tuple(pen)), Normal()])


def _colour_names(artist: Artist) -> tuple[str, ...]:
    match artist:
        case Text():
            return ("color",)
        case Line2D():
            return ("color", "markerfacecolor", "markeredgecolor")
        case QuadMesh():  # its cells show values
            return ()
        case Patch() | Collection():
            return ("facecolor", "edgecolor")
    return ()


def _is_in_cell(artist: Artist) -> bool:
    """Return whether a text stands on a coloured cell, for which its colour was chosen."""
    axes = artist.axes
    return (
        isinstance(artist, Text)
        and isinstance(axes, Axes)
        and artist in axes.texts
        and any(isinstance(own, QuadMesh) for own in axes.collections)
    )


def _is_lost(artist: Line2D | Patch, paper: Any) -> bool:
    """Return whether a colour, no grey, can hardly be seen on a ground."""
    colour = artist.get_color() if isinstance(artist, Line2D) else artist.get_edgecolor()
    rgba = to_rgba_array(colour)[0]
    is_grey = rgba[:3].max() - rgba[:3].min() <= GREY_RANGE
    # On a light ground they are as in print.
    is_dark = _luminance(paper) < DARK
    return bool(
        is_dark and rgba[3] > 0 and not is_grey and contrast(rgba[:3], paper) < LEAST_CONTRAST
    )


def contrast(one: Any, other: Any) -> float:
    """Return the contrast ratio of two sRGB colours (0-1), from 1 to 21, as WCAG defines it."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(rgb: Any) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])


def _rgb(colour: QColor) -> Any:
    return np.array([colour.redF(), colour.greenF(), colour.blueF()])
