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

from napari_panoptic.display.object_layers import HALO
from napari_panoptic.display.outlines import CASING_ALPHA, CASING_PX, SELECTED_MORE_PX
from napari_panoptic.kernels.drawing import outline_pixels
from napari_panoptic.viewer.kit.napari_private import (
    Drawn,
    Shading,
    draw_contours_with,
    is_shader_accepted,
    redraw,
    shade_labels_with,
)
from napari_panoptic.viewer.layers import outline_shader

AROUND_PX = 1.5
"""Width of the line around the partner of the selected object; that around itself is wider."""
_WIDEST_PX = 254
_LABELS = 1 << 16
_LONGEST_SIDE_PX = 255
"""Lines of objects whose size is not known are as wide as those of such objects."""
_STEPS_PER_PX = 64
"""In which an object's line can be wider than those of others."""
_SIDE, _MORE = 0, 1
"""Columns of the table of labels on the graphics card."""
_LOGGER = logging.getLogger(__name__)
_OUTLINES: weakref.WeakKeyDictionary[Labels, weakref.ref[LayerOutlines]] = (
    weakref.WeakKeyDictionary()
)


@dataclass
class _Driver:
    """Properties of the graphics driver."""

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


def outlines_of(layer: Labels, viewer: Any) -> LayerOutlines:
    """Return what draws the outlines of a layer of a viewer; the same each time."""
    known = _OUTLINES.get(layer)
    found = None if known is None else known()
    if found is None:
        found = LayerOutlines(layer, viewer)
        _OUTLINES[layer] = weakref.ref(found)
    return found


def line_around(layer: Labels, viewer: Any, wanted: bool) -> None:
    """Draw a line around the values of an emphasis image, or its pixels as they are."""
    lines = outlines_of(layer, viewer)
    lines.set_width(AROUND_PX)
    lines.select(HALO if wanted else None)
    if layer.contour != int(wanted):
        layer.contour = int(wanted)


class LayerOutlines:
    """The outlines of one labels layer with 2-D data of 8 or 16 bits and background 0."""

    def __init__(self, layer: Labels, viewer: Any) -> None:
        # The layer holds this object, by the function that finds its contours, and not the reverse.
        self._layer, self._viewer = weakref.ref(layer), weakref.ref(viewer)
        self._width_px, self._selected = 1.5, 0
        self._objects: _Objects | int = _LONGEST_SIDE_PX
        self._is_reported = False
        """Whether the graphics card knows them."""
        self._beneath: Beneath | None = None
        self._beneath_px = 0.0
        self._programs: _Programs | None = None
        self._is_lined = False
        self._replaces = draw_outlines_fast(layer, lambda: self._is_lined)
        # After napari: it may have changed what draws the layer.
        layer.events.set_data.connect(self._follow, position="last")
        self._follow()

    @property
    def are_lines(self) -> bool:
        """Whether lines are drawn; napari's contours of image pixels are if not."""
        return self._is_lined and _DRIVER.accepts is not False

    def set_width(self, width_px: float) -> None:
        """Set the width of lines on the screen."""
        self._follow()  # the layer may have left the viewer and come back
        if width_px != self._width_px:
            self._width_px = width_px
            self._redraw()

    def put_beneath(self, beneath: Beneath | None, width_px: float = 0.0) -> None:
        """Draw outlines of other labels beneath those of the layer; None for no others."""
        if beneath is not self._beneath:
            self._beneath, self._programs = beneath, None
        self._beneath_px = width_px
        self._redraw()

    def select(self, label: int | None) -> None:
        """Draw the line of one object a pixel wider."""
        if (label or 0) != self._selected:
            self._selected = label or 0
            self._redraw_objects()

    def set_boxes(
        self,
        boxes: NDArray[np.integer[Any]],
        values: NDArray[np.int64] | None = None,
        more_px: NDArray[np.floating[Any]] | float = 0.0,
    ) -> None:
        """Set where objects lie: no line is wider than a quarter of the shorter side of a box.

        Parameters
        ----------
        boxes
            (n, 4): y0, x0, y1, x1 of each object in px, half open.
        values
            int64 (n,): the label of each object, if they are not 1..n.
        more_px
            How much wider than others the line of each is on the screen, up to 3 px.
        """
        objects, before = _Objects(boxes, values, more_px), self._objects
        if not isinstance(before, _Objects) or not before.is_same(objects):
            self._objects = objects
            self._redraw_objects()

    def set_usual_side(self, side_px: float) -> None:
        """Set the shorter side of all objects, if labels do not identify a single one."""
        side = min(max(round(side_px), 1), _LONGEST_SIDE_PX)
        if side != self._objects:
            self._objects = side
            self._redraw_objects()

    def _redraw_objects(self) -> None:
        """Draw with the present table of labels."""
        self._is_reported = False
        self._redraw()

    def table(self) -> NDArray[np.uint8]:
        """Return the table of labels, uint8 (65536, 2): `_SIDE` and `_MORE`."""
        table = np.zeros((_LABELS, 2), np.uint8)
        table[:, _SIDE] = _LONGEST_SIDE_PX
        if isinstance(self._objects, _Objects):
            self._objects.write(table)
        else:
            table[:, _SIDE] = self._objects
        if self._selected:
            table[self._selected % _LABELS, _MORE] += round(SELECTED_MORE_PX * _STEPS_PER_PX)
        return table

    def _follow(self, _event: object = None) -> None:
        """Take over the drawing of the layer, also after its type of data or the view changed."""
        layer, viewer = self._layer(), self._viewer()
        if layer is None or viewer is None:
            return
        is_lined = (
            self._replaces
            and _DRIVER.accepts is not False
            and shade_labels_with(layer, viewer, self._shading)
        )
        if is_lined != self._is_lined:
            self._is_lined = is_lined
            if layer.contour:
                layer.refresh()

    def _shading(self, drawn: Drawn) -> Shading | None:
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
            self._programs = _Programs(self.table(), self._beneath)
        elif not self._is_reported:
            self._programs.set_objects(self.table())
        self._is_reported = True
        factor = layer.downsample_factors[layer.data_level][-1] if layer.multiscale else 1
        widths_px = self._width_px, self._beneath_px
        return self._programs.present(drawn, widths_px, float(factor))

    def _redraw(self) -> None:
        layer, viewer = self._layer(), self._viewer()
        if self._is_lined and layer is not None and viewer is not None:
            redraw(layer, viewer)


@dataclass(frozen=True, eq=False)
class _Objects:
    """Where objects lie, as `LayerOutlines.set_boxes` has it; looked into when they are drawn."""

    boxes: NDArray[np.integer[Any]]
    values: NDArray[np.int64] | None
    more_px: NDArray[np.floating[Any]] | float

    def is_same(self, other: _Objects) -> bool:
        """Return whether another one holds the same arrays."""
        fields = ("boxes", "values", "more_px")
        return all(getattr(self, name) is getattr(other, name) for name in fields)

    def write(self, table: NDArray[np.uint8]) -> None:
        """Write the table of labels."""
        boxes, labels = self.boxes, self.values
        if labels is None:
            labels = np.arange(1, len(boxes) + 1)
        height, width = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
        shorter = np.minimum(np.minimum(height, width), _LONGEST_SIDE_PX)
        more = np.broadcast_to(np.rint(np.multiply(self.more_px, _STEPS_PER_PX)), len(boxes))
        inside = (labels > 0) & (labels < _LABELS)
        table[labels[inside], _SIDE] = shorter[inside]
        table[labels[inside], _MORE] = more[inside]


class Beneath:
    """Labels whose outlines lie beneath those of layers with as many pixels; several can share it.

    Parameters
    ----------
    labels
        uint16 (y, x): other labels than those of the layers.
    area
        The one of them that is hatched.
    """

    def __init__(self, labels: NDArray[np.uint16], area: int) -> None:
        self.area = area
        self.texture = Texture2D(labels, internalformat="r16", interpolation="nearest")


class _Programs:
    """The programs of one layer on the graphics card.

    Parameters
    ----------
    objects
        uint8 (65536, 2): of each label the shorter side in px and how much wider its line is.
    beneath
        Other labels beneath those of the layer.
    """

    def __init__(self, objects: NDArray[np.uint8], beneath: Beneath | None = None) -> None:
        picture = _as_picture(objects)
        self._objects = Texture2D(
            picture, format="rg", internalformat="rg8", interpolation="nearest"
        )
        self._programs = {
            way: _Program(way, are_two=beneath is not None) for way in outline_shader.WAYS
        }
        for program in self._programs.values():
            program.set(objects=self._objects)
            if beneath is not None:
                program.set(beneath=beneath.texture, area=float(beneath.area))
        self._note(objects)

    def set_objects(self, objects: NDArray[np.uint8]) -> None:
        """Exchange the table of labels."""
        self._objects.set_data(_as_picture(objects))
        self._note(objects)

    def _note(self, objects: NDArray[np.uint8]) -> None:
        self._most_more_px = float(objects[:, _MORE].max()) / _STEPS_PER_PX
        known = objects[:, _SIDE][objects[:, _SIDE] < _LONGEST_SIDE_PX]
        self._usual_side_px = float(np.median(known)) if len(known) else float(_LONGEST_SIDE_PX)

    def present(self, drawn: Drawn, widths_px: tuple[float, float], factor: float = 1.0) -> Shading:
        """Return the program for a zoom, which knows the width of lines in pixels of the screen."""
        half_px, half_beneath_px = (drawn.ratio * width_px / 2 for width_px in widths_px)
        widest_px = max(half_px, half_beneath_px) + drawn.ratio * self._most_more_px / 2
        reach_px = (widest_px + 0.25) * drawn.px
        way = outline_shader.FAR
        if reach_px < outline_shader.NEAR_PX:
            way = outline_shader.NEAR
        elif reach_px < outline_shader.BETWEEN_PX:
            way = outline_shader.BETWEEN
        else:
            # Around small objects its places lie nearer together, but as far as pixels do.
            most_px = self._usual_side_px / 8 / (drawn.px * factor)
            half_px = max(min(half_px, most_px), 0.5)
            half_beneath_px = max(min(half_beneath_px, most_px), 0.5)
        program = self._programs[way]
        program.set(
            shape=tuple(map(float, drawn.size)),
            most=float(drawn.most),
            px=drawn.px,
            side_px=drawn.px * factor,
            half_width=half_px,
            half_width_beneath=half_beneath_px,
            more=drawn.ratio * 255 / _STEPS_PER_PX / 2,
            casing=drawn.ratio * CASING_PX,
        )
        return program.shading


class _Program:
    """One program; only changed values are sent to it."""

    def __init__(self, way: str, *, are_two: bool) -> None:
        code = outline_shader.program(way, are_two=are_two)
        colour = outline_shader.colour(CASING_ALPHA, are_two=are_two)
        self.shading = Shading(Function(code), colour)
        self._needed = outline_shader.needed(code)
        self._sent: dict[str, object] = {}

    def set(self, **uniforms: object) -> None:
        for name, value in uniforms.items():
            if self._sent.get(name) != value and name in self._needed:
                self.shading.read[name] = self._sent[name] = value


def _as_picture(objects: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return objects.reshape(256, 256, 2)


def _accepts_programs() -> bool:
    programs = [
        outline_shader.program(way, are_two=are_two)
        for way in outline_shader.WAYS
        for are_two in (False, True)
    ]
    accepts = all(is_shader_accepted(outline_shader.standalone(code)) for code in programs)
    if not accepts:
        _LOGGER.warning("The graphics driver refuses lines: outlines are drawn in image pixels.")
    return accepts
