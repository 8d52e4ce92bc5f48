"""Outlines of labels layers as lines of the same width at every zoom.

A layer's ``contour`` states whether its objects are outlined, as everywhere in napari. The graphics
card then draws lines along the edges of their pixels (`outline_shader`). Where it cannot do that,
as with the 3-D display or an old driver, napari draws its contours of image pixels.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from napari.layers import Labels
from numpy.typing import NDArray
from qtpy.QtCore import QTimer
from vispy.gloo import Texture2D
from vispy.visuals.shaders import Function

from napari_panoptic.kernels.drawing import outline_pixels
from napari_panoptic.viewer.kit.napari_private import (
    Drawn,
    draw_contours_with,
    is_shader_accepted,
    redraw,
    shade_labels_with,
)
from napari_panoptic.viewer.layers import outline_shader

CASING_PX, CASING_ALPHA = 0.75, 0.6
"""Width and opacity of the pale line on either side of an outline."""
_LONGEST_SIDE_PX = 255
"""Lines of objects whose size is not known are as wide as those of such objects."""
_WIDEST_PX = 254
_LABELS = 1 << 16
_SELECTED_MORE_PX = 1.0
_LOGGER = logging.getLogger(__name__)
_OUTLINES: weakref.WeakKeyDictionary[Labels, weakref.ref[Outlines]] = weakref.WeakKeyDictionary()


@dataclass
class _Driver:
    """What is known of the graphics driver."""

    accepts: bool | None = None
    """Whether it compiles the programs; None until the first of them is needed."""


_DRIVER = _Driver()


def draw_outlines_fast(layer: Labels, unless: Callable[[], bool] = lambda: False) -> bool:
    """Let a layer with 2-D data and background 0 find napari's contours in one pass.

    Parameters
    ----------
    layer
        The layer.
    unless
        Returns whether it is to find none, because its outlines are lines.

    Returns
    -------
    bool
        Whether that is possible.
    """
    return draw_contours_with(
        layer, lambda part, px: outline_pixels(part, min(px, _WIDEST_PX)), unless
    )


def outlines_of(layer: Labels, viewer: Any) -> Outlines:
    """Return what draws the outlines of a layer of a viewer; the same each time."""
    known = _OUTLINES.get(layer)
    found = None if known is None else known()
    if found is None:
        found = Outlines(layer, viewer)
        _OUTLINES[layer] = weakref.ref(found)
    return found


class Outlines:
    """The outlines of one labels layer with 2-D data of 8 or 16 bits and background 0."""

    def __init__(self, layer: Labels, viewer: Any) -> None:
        # The layer holds this object, by the function that finds its contours, and not the reverse.
        self._layer, self._viewer = weakref.ref(layer), weakref.ref(viewer)
        self._width_px, self._selected = 1.5, 0
        self._sides: NDArray[np.uint8] | None = None
        self._programs: _Programs | None = None
        self._is_lined = False
        self._replaces = draw_outlines_fast(layer, lambda: self._is_lined)
        # After napari: it may have changed what draws the layer.
        layer.events.set_data.connect(self._follow, position="last")
        self._follow()

    @property
    def are_lines(self) -> bool:
        """Whether lines are drawn; napari's contours of image pixels are if not."""
        return self._is_lined

    def set_width(self, width_px: float) -> None:
        """Set the width of lines on the screen."""
        self._follow()  # the layer may have left the viewer and come back
        if width_px != self._width_px:
            self._width_px = width_px
            self._redraw()

    def select(self, label: int | None) -> None:
        """Draw the line of one object a pixel wider."""
        if (label or 0) != self._selected:
            self._selected = label or 0
            self._redraw()

    def set_boxes(
        self, boxes: NDArray[np.integer[Any]], values: NDArray[np.int64] | None = None
    ) -> None:
        """Set where objects lie: no line is wider than a quarter of the shorter side of a box.

        Parameters
        ----------
        boxes
            (n, 4): y0, x0, y1, x1 of each object in px, half open.
        values
            int64 (n,): the label of each object, if they are not 1..n.
        """
        labels = np.arange(1, len(boxes) + 1) if values is None else values
        shorter = (boxes[:, 2:] - boxes[:, :2]).min(axis=1, initial=_LONGEST_SIDE_PX)
        inside = (labels > 0) & (labels < _LABELS)
        sides = np.full(_LABELS, _LONGEST_SIDE_PX, np.uint8)
        sides[labels[inside]] = shorter[inside]
        self._set_sides(sides)

    def set_usual_side(self, side_px: float) -> None:
        """Set the shorter side of all objects, where labels do not tell which one is meant."""
        side = min(max(round(side_px), 1), _LONGEST_SIDE_PX)
        self._set_sides(np.full(_LABELS, side, np.uint8))

    def _set_sides(self, sides: NDArray[np.uint8]) -> None:
        if self._sides is None or not np.array_equal(sides, self._sides):
            self._sides = sides
            if self._programs is not None:
                self._programs.set_sides(sides)
            self._redraw()

    def _follow(self, _event: object = None) -> None:
        """Take over the drawing of the layer, also after its type of data or the view changed."""
        layer, viewer = self._layer(), self._viewer()
        if layer is None or viewer is None:
            return
        is_lined = (
            self._replaces
            and _DRIVER.accepts is not False
            and shade_labels_with(layer, viewer, self._look_up, _colour())
        )
        if is_lined != self._is_lined:
            self._is_lined = is_lined
            if layer.contour:
                layer.refresh()

    def _look_up(self, drawn: Drawn) -> Function | None:
        """Choose the program for the present zoom; None for what napari draws."""
        layer = self._layer()
        if layer is None or layer.contour < 1 or not self._is_lined:
            return None
        if _DRIVER.accepts is None:
            _DRIVER.accepts = _accepts_programs()
        if not _DRIVER.accepts:
            self._is_lined = False
            # The layer is not sliced while it is drawn.
            QTimer.singleShot(0, layer.refresh)
            return None
        if self._programs is None:
            self._programs = _Programs()
            if self._sides is not None:
                self._programs.set_sides(self._sides)
        factor = layer.downsample_factors[layer.data_level][-1] if layer.multiscale else 1
        return self._programs.present(drawn, self._width_px, self._selected, float(factor))

    def _redraw(self) -> None:
        layer, viewer = self._layer(), self._viewer()
        if self._is_lined and layer is not None and viewer is not None:
            redraw(layer, viewer)


class _Programs:
    """The programs of one layer on the graphics card."""

    def __init__(self) -> None:
        sides = np.full((256, 256), _LONGEST_SIDE_PX, np.uint8)
        self._sides = Texture2D(sides, internalformat="r8", interpolation="nearest")
        self._programs = {way: _Program(way, self._sides) for way in _WAYS}

    def set_sides(self, sides: NDArray[np.uint8]) -> None:
        """Set the shorter side of the object of each label."""
        self._sides.set_data(sides.reshape(256, 256))

    def present(
        self, drawn: Drawn, width_px: float, selected: int, factor: float = 1.0
    ) -> Function:
        """Return the program for a zoom, which knows the width of lines in pixels of the screen."""
        half_px, casing_px = drawn.ratio * width_px / 2, drawn.ratio * CASING_PX
        more_px = drawn.ratio * _SELECTED_MORE_PX / 2
        widest_px = (half_px + (more_px if selected else 0) + 0.25) * drawn.px
        way = outline_shader.FAR
        if widest_px < outline_shader.NEAR_PX:
            way = outline_shader.NEAR
        elif widest_px < outline_shader.BETWEEN_PX:
            way = outline_shader.BETWEEN
        program = self._programs[way]
        program.set(
            shape=tuple(map(float, drawn.size)),
            most=float(drawn.most),
            px=drawn.px,
            side_px=drawn.px * factor,
            half_width=half_px,
            more=more_px,
            casing=casing_px,
            selected=float(selected or -1),
        )
        return program.function


class _Program:
    """One program, which is told only what changed."""

    def __init__(self, way: str, sides: Texture2D) -> None:
        self.function = Function(outline_shader.program(way))
        self._needed = outline_shader.needed(way)
        if "sides" in self._needed:
            self.function["sides"] = sides
        self._told: dict[str, object] = {}

    def set(self, **uniforms: object) -> None:
        for name, value in uniforms.items():
            if self._told.get(name) != value and name in self._needed:
                self.function[name] = self._told[name] = value


_WAYS = (outline_shader.NEAR, outline_shader.BETWEEN, outline_shader.FAR)


def _colour() -> str:
    return outline_shader.COLOUR.replace("$casing_alpha", f"{CASING_ALPHA:.3f}")


def _accepts_programs() -> bool:
    accepts = all(is_shader_accepted(outline_shader.standalone(way)) for way in _WAYS)
    if not accepts:
        _LOGGER.warning("The graphics driver refuses lines: outlines are drawn in image pixels.")
    return accepts
