"""Outlines of objects as lines of constant width, in pictures and on pages.

They look as on the canvas, where the graphics card draws them: closed lines from middle to middle
of the pixel edges, so that single steps become straight and longer ones are chamfered. No line is
further from the edges of the pixels than 0.36 px (a pixel of the picture from afar), or wider
than a quarter of its object's shorter side. A thin pale casing sets it off from pink and purple
tissue.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display.object_layers import checks
from napari_panoptic.kernels.drawing import nearest_lines, paint_lines
from napari_panoptic.kernels.trace import chamfer, walk_borders

CASING_PX, CASING_ALPHA = 0.75, 0.6
"""Width and opacity of the pale line on either side of an outline."""
SELECTED_MORE_PX = 1.0
"""Additional width of the line around the object in question."""
WIDEST_SHARE = 0.25
"""Greatest width of a line, in shorter sides of its object."""
FINE_ENOUGH_PX = 1.0
"""Distance in the picture within which pixels of the image are left out when zoomed out."""
_SMOOTH_PX = 0.5
"""Distance beyond its width at which a line covers parts of pixels."""


@dataclass(frozen=True, eq=False)
class LineRings:
    """Closed lines around the objects of a window.

    Between corners they run straight. Pixels of an object that touch only by a corner have lines
    of their own. An object that extends beyond the window has a line along its edge.
    """

    #: int32 (m, 2): corners x, y in halves of a pixel, ring after ring.
    halves_xy: NDArray[np.int32]
    #: int64 (r + 1,): ring ``i`` is ``halves_xy[start[i]:start[i + 1]]``.
    start: NDArray[np.int64]
    #: int32 (r,): the label of the object.
    label: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Lined:
    """Objects of a window, and how their outlines look."""

    #: int32 (y, x): labels, 0 for background.
    labels: NDArray[np.int32]
    #: (n + 1,): the shorter side of the object of each label in px, as of `shorter_sides`.
    shorter: NDArray[np.number]
    #: uint8 (n + 1, 4): the colour of the line of each label.
    colours: NDArray[np.uint8]
    #: Width of lines in points.
    width: float
    #: The label of the object whose line is wider; 0 for none.
    wider: int = 0
    #: Length of dashes in points; 0 for whole lines. Dashes have no casing.
    dash: float = 0.0


def shorter_sides(boxes: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return the shorter side of each label, int32 (n + 1,), 0 for the background.

    Parameters
    ----------
    boxes
        (n, 4): y0, x0, y1, x1 of each object in px, half open.
    """
    sides = (boxes[:, 2:] - boxes[:, :2]).min(axis=1).astype(np.int32)
    return np.concatenate([np.zeros(1, np.int32), sides])


def margin_px(scale: float, per_point: float = 1.0, width: float = 2.5) -> int:
    """Return how far a window has to extend beyond its picture, in px of the image.

    Lines beside the picture reach into it, and objects that its edge cuts have no line there.

    Parameters
    ----------
    scale
        Pixels of the picture per pixel of the image.
    per_point
        Pixels of the picture per point.
    width
        Greatest width of lines in points, without that of the object in question.
    """
    reach = ((width + SELECTED_MORE_PX) / 2 + CASING_PX) * per_point + _SMOOTH_PX
    return math.ceil(reach / scale) + 1


def line_rings(labels: NDArray[np.int32]) -> LineRings:
    """Trace the lines around all objects of a window."""
    framed = np.zeros((labels.shape[0] + 2, labels.shape[1] + 2), np.int32)
    framed[1:-1, 1:-1] = labels
    corners, start, label, _ = walk_borders(framed, False, False)
    return LineRings(*chamfer(corners, start), label)


def draw_outlines(
    layers: Sequence[Lined], shape: tuple[int, int], *, margin_px: int, per_point: float = 1.0
) -> NDArray[np.uint8]:
    """Draw the outlines of objects as lines.

    Parameters
    ----------
    layers
        Objects of the same window, from below to the top. All casings lie below all lines.
    shape
        Height and width of the picture.
    margin_px
        How far the window extends beyond the picture on every side, in px of the image.
    per_point
        Pixels of the picture per point.

    Returns
    -------
    uint8 (y, x, 4)
        Red, green, blue and opacity.
    """
    picture = np.zeros((*shape, 4), np.uint8)
    seen = [_Seen(layer, shape, margin_px, per_point) for layer in layers]
    for each in seen:
        each.paint_casing(picture)
    for each in seen:
        each.paint(picture)
    return picture


class _Seen:
    """The lines of one layer, as far as they can be seen in a picture."""

    def __init__(
        self, layer: Lined, shape: tuple[int, int], margin_px: int, per_point: float
    ) -> None:
        height, width = shape
        inner = layer.labels.shape[0] - 2 * margin_px, layer.labels.shape[1] - 2 * margin_px
        scale = height / inner[0]
        step = max(int(FINE_ENOUGH_PX / scale), 1)
        labels = np.ascontiguousarray(layer.labels[::step, ::step])
        rings = line_rings(labels)
        xy = rings.halves_xy * (step / 2) - (margin_px + (step - 1) / 2)
        wanted = per_point * (layer.width + SELECTED_MORE_PX * (rings.label == layer.wider)) / 2
        most = WIDEST_SHARE / 2 * scale * layer.shorter[rings.label]
        self._half = np.minimum(wanted, most).astype(np.float32)
        self._colours = layer.colours[rings.label]
        casing = 0.0 if layer.dash else CASING_PX * per_point
        self._casing = np.minimum(np.float32(casing), self._half)
        self._nearest, self._far = nearest_lines(
            labels,
            (margin_px + _middles(height, inner[0])) // step,
            (margin_px + _middles(width, inner[1])) // step,
            (scale * xy).astype(np.float32),
            rings.start,
            rings.label,
            self._half,
            self._half + self._casing + np.float32(_SMOOTH_PX),
        )
        if layer.dash:
            self._nearest[~checks(shape, max(round(layer.dash * per_point), 1))] = -1

    def paint_casing(self, picture: NDArray[np.uint8]) -> None:
        """Paint a pale line on either side of the lines."""
        if self._casing.any():
            pale = np.full_like(self._colours, 255)
            pale[:, 3] = np.rint(self._colours[:, 3] * CASING_ALPHA)
            half = self._half + self._casing
            # Not below the line itself: it may be transparent.
            paint_lines(picture, self._nearest, self._far, half, self._half, pale)

    def paint(self, picture: NDArray[np.uint8]) -> None:
        """Paint the lines themselves."""
        no_gaps = np.zeros_like(self._half)
        paint_lines(picture, self._nearest, self._far, self._half, no_gaps, self._colours)


def _middles(length: int, inner: int) -> NDArray[np.int64]:
    """Return in which pixel of the image the middle of each pixel of the picture lies."""
    return ((np.arange(length) + 0.5) * inner / length).astype(np.int64)
