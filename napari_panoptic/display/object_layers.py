"""From label images and outcomes to what layers hold. Pure: arrays in, arrays out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display import styles
from napari_panoptic.display.styles import ColourBy
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.kernels.drawing import HATCH_SPACING_PX, MAX_OBJECTS, outline_pixels
from napari_panoptic.nuclei.outcomes import SideOutcomes
from napari_panoptic.values.cohort import ClassScheme, Placement
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.windowed_labels import Box, window

HATCH_RIM_PX = 2
"""Width of the outline of ambiguous areas."""

HATCH_COLOUR = (0.1, 0.1, 0.1, 0.75)
"""RGBA of hatch lines."""

ZONE_COLOUR = (0.6, 0.6, 0.6, 0.85)
"""RGBA of the uncertain border: no hue, since tissue has one, and no lines, as ambiguous areas."""

SELECTED, SELECTED_EDGE, PARTNER, PARTNER_EDGE, HALO, PARTNER_HALO = range(1, 7)
"""Values in an emphasis image: two rings around the object, and around its partner; or whatever
lies within a line around the object, and around its partner."""

EMPHASIS_COLOURS: dict[int, tuple[float, float, float, float]] = {
    0: (0.0, 0.0, 0.0, 0.0),
    SELECTED: (1.0, 1.0, 1.0, 1.0),
    SELECTED_EDGE: (0.0, 0.0, 0.0, 1.0),
    PARTNER: (1.0, 1.0, 1.0, 0.8),
    PARTNER_EDGE: (0.0, 0.0, 0.0, 0.55),
    HALO: (0.0, 0.0, 0.0, 1.0),
    PARTNER_HALO: (0.0, 0.0, 0.0, 0.6),
}
"""RGBA of these values: white stands out on nuclei, black on pale tissue."""

DASHES_PER_RING = 3
"""Length of the dashes of a partner's ring, in ring widths."""


class Placed(Protocol):
    """What PixelSize needs of a region's snapshot."""

    @property
    def mpp(self) -> float | None:
        """Micrometres per pixel, or None."""

    @property
    def placement(self) -> Placement | None:
        """Where its pixels lie, where layers of the user's say so."""


@dataclass(frozen=True)
class PixelSize:
    """How large pixels are in the world of the viewer, and where they begin."""

    #: World units per pixel, (y, x).
    scale: tuple[float, float]
    #: Their names: micrometres where known, else pixels.
    units: tuple[str, str]
    #: World position of the middle of the first pixel, (y, x).
    origin: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def from_mpp(cls, mpp: float | None) -> PixelSize:
        """Take micrometres per pixel, or None if unknown."""
        if mpp is None:
            return cls((1.0, 1.0), ("pixel", "pixel"))
        return cls((mpp, mpp), ("micrometer", "micrometer"))

    @classmethod
    def of(cls, placed: Placed | None) -> PixelSize:
        """Take the placement of a region, or else its micrometres per pixel."""
        if placed is None or placed.placement is None:
            return cls.from_mpp(None if placed is None else placed.mpp)
        found = placed.placement
        return cls(found.scale_yx, found.units, found.translate_yx)

    def to_world(self, point_yx_px: tuple[float, float]) -> tuple[float, float]:
        """Return the world position of a pixel position."""
        y, x = self.extent(point_yx_px)
        return y + self.origin[0], x + self.origin[1]

    def extent(self, size_yx_px: tuple[float, float]) -> tuple[float, float]:
        """Return height and width in world units."""
        return size_yx_px[0] * self.scale[0], size_yx_px[1] * self.scale[1]

    def to_px(self, point_yx: tuple[float, float]) -> tuple[int, int]:
        """Return the pixel that a world position lies in."""
        placed = zip(point_yx, self.origin, self.scale, strict=True)
        y, x = (math.floor((p - o) / s + 0.5) for p, o, s in placed)
        return y, x

    def px_inside(
        self, position: Sequence[float], shape_yx: tuple[int, int]
    ) -> tuple[int, int] | None:
        """Return the pixel (y, x) under a world position (…, y, x); None beside the image."""
        y, x = self.to_px((position[-2], position[-1]))
        return (y, x) if 0 <= y < shape_yx[0] and 0 <= x < shape_yx[1] else None

    def lies_at(self, layer: Any) -> bool:
        """Return whether a layer has this scale and origin."""
        return tuple(layer.scale) == self.scale and tuple(layer.translate) == self.origin


def image_layer_data(
    image: SlideImage, pixels: PixelSize | None = None
) -> tuple[Any, dict[str, Any], str]:
    """Return data, options and type of the layer that shows a region's pixels.

    Parameters
    ----------
    image
        The pixels.
    pixels
        How large they are and where they lie; as the image says if None.
    """
    several = len(image.levels) > 1
    pixels = pixels or PixelSize.from_mpp(image.mpp)
    options = {
        "name": "image",
        "rgb": True,
        "multiscale": several,
        "scale": pixels.scale,
        "translate": pixels.origin,
        "units": pixels.units,
    }
    return (list(image.levels) if several else image.levels[0]), options, "image"


@dataclass(frozen=True, eq=False)
class Emphasis:
    """A small picture that marks the selected object and its partner."""

    #: uint8 (y, x): rings, as named by the constants of this module.
    image: NDArray[np.uint8]
    #: Where its upper left corner lies in the region.
    origin_yx_px: tuple[int, int]


def label_data(labels: LabelImage, out: NDArray[np.uint16] | None = None) -> NDArray[np.uint16]:
    """Return the image that a labels layer shows: label ``k`` is the object of row ``k - 1``.

    16 bits, because the graphics card then looks the colours up itself.
    Beyond 65,534 objects labels start over at 1: their colours are then those
    of the first ones, which `too_many_objects` tells.

    Parameters
    ----------
    labels
        The objects.
    out
        An image of the same shape to write to; a new one where None.
    """
    picture = np.empty(labels.shape, np.uint16) if out is None else out
    if not too_many_objects(labels):
        np.copyto(picture, labels.index, casting="unsafe")
    else:
        wrapped = (labels.index - 1) % MAX_OBJECTS + 1
        np.copyto(picture, np.where(labels.index == 0, 0, wrapped), casting="unsafe")
    return picture


def too_many_objects(labels: LabelImage) -> bool:
    """Return whether there are more objects than colours."""
    return len(labels) > MAX_OBJECTS


def object_lut(
    labels: LabelImage,
    outcomes: SideOutcomes | None,
    scheme: ClassScheme,
    colour_by: ColourBy,
    values: NDArray[np.int64] | None = None,
) -> NDArray[np.float32]:
    """Colour the objects of one side.

    Parameters
    ----------
    labels
        The objects.
    outcomes
        Their outcomes; None if they were not evaluated: coloured by
        status they are then all of one neutral colour.
    scheme
        The classes.
    colour_by
        What colours tell.
    values
        int64 (n,): the label of each object, if they are not 1..n because the objects were edited.

    Returns
    -------
    float32 (65535, 4): RGBA of each label.
    """
    if colour_by is ColourBy.CLASS:
        colours = styles.class_colours(len(scheme.names))
        return styles.class_lut(labels.class_index, colours, values)
    if outcomes is None:
        return styles.neutral_lut(len(labels))
    return styles.status_lut(outcomes.status, values)


def hatching(
    mask: NDArray[np.bool_],
    *,
    spacing_px: int = HATCH_SPACING_PX,
    rim_px: int = HATCH_RIM_PX,
    corner_px: int = 0,
) -> NDArray[np.uint8]:
    """Draw diagonal lines and an outline over an area.

    Parameters
    ----------
    mask
        bool (y, x): the area.
    spacing_px
        Distance between lines along a row.
    rim_px
        Width of the outline.
    corner_px
        Where the mask is a window of an image, the sum of its first row and column: lines
        then go on from window to window.

    Returns
    -------
    uint8 (y, x): 1 on lines and outline, 0 elsewhere.
    """
    drawn = outline_pixels(mask.view(np.uint8), rim_px)
    rows, columns = (np.arange(n) for n in mask.shape)
    # As many rows as there are different ones: a remainder for each pixel takes far longer.
    lines = (columns + np.arange(spacing_px)[:, np.newaxis] + corner_px) % spacing_px == 0
    drawn |= mask & lines[rows % spacing_px]
    return drawn


Marked = tuple[LabelImage, int, NDArray[np.int32]]
"""An object: its label image, its row there, and its bounding box y0, x0, y1, x1, half open."""


def emphasis(
    own: Marked, partner: Marked | None = None, *, ring_px: int = 2, as_line: bool = False
) -> Emphasis:
    """Draw a ring around an object and a dashed one around its partner.

    The rings lie outside the objects, so that their own outlines stay visible.

    Parameters
    ----------
    own, partner
        The object, and its partner if it has one.
    ring_px
        Width of the inner, light ring; the outer, dark one is about as wide. Of a line, its
        distance from the object.
    as_line
        Whether a line is to be drawn around what is returned, rather than rings of pixels. A
        partner has a line if half of it lies elsewhere.
    """
    reach = 2 * ring_px
    boxes = [box for _, _, box in filter(None, (own, partner))]
    y0, x0 = np.min(boxes, axis=0)[:2] - reach
    y1, x1 = np.max(boxes, axis=0)[2:] + reach
    around = int(y0), int(x0), int(y1), int(x1)
    image = np.zeros((around[2] - around[0], around[3] - around[1]), np.uint8)
    if as_line:
        near = _near(_cut(own, around), ring_px)
        if partner is not None:
            beside = _near(_cut(partner, around), ring_px)
            # Of a partner in about the same place, only scraps would be seen.
            if 2 * np.count_nonzero(beside & ~near) >= np.count_nonzero(beside):
                image[beside] = PARTNER_HALO
        image[near] = HALO
        return Emphasis(image, around[:2])
    if partner is not None:
        _draw_rings(image, _cut(partner, around), ring_px, PARTNER, PARTNER_EDGE)
        image[~checks(image.shape, DASHES_PER_RING * ring_px)] = 0
    _draw_rings(image, _cut(own, around), ring_px, SELECTED, SELECTED_EDGE)
    return Emphasis(image, around[:2])


def _cut(marked: Marked, box: Box) -> NDArray[np.bool_]:
    """Cut the whole mask of an object out."""
    labels, row, _ = marked
    mask: NDArray[np.bool_] = np.any(
        [window(sheet, box) == row + 1 for sheet in labels.sheets], axis=0
    )
    return mask


def _near(mask: NDArray[np.bool_], distance_px: int) -> NDArray[np.bool_]:
    from scipy import ndimage

    found: NDArray[np.bool_] = ndimage.distance_transform_edt(~mask) <= distance_px
    return found


def _draw_rings(
    image: NDArray[np.uint8], mask: NDArray[np.bool_], width: int, ring: int, edge: int
) -> None:
    from scipy import ndimage

    distance = ndimage.distance_transform_edt(~mask)
    image[(distance > width) & (distance <= 1.7 * width + 0.5)] = edge
    image[(distance > 0) & (distance <= width)] = ring


def checks(shape: tuple[int, ...], edge: int) -> NDArray[np.bool_]:
    """Return a mask of a chessboard, which cuts a line of any direction into dashes."""
    y, x = np.ogrid[: shape[0], : shape[1]]
    found: NDArray[np.bool_] = ((y // edge) + (x // edge)) % 2 == 0
    return found
