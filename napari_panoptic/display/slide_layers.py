"""What layers show of a slide that is too large to hold. Pure: arrays in, arrays out.

Near, objects are drawn from their pixels, read window by window; until these are
there, and from afar, each is an ellipse in its bounding box, for which no pixel
is read. What is seen from further away is in `failure_cells`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.decoded_windows import DecodedWindows
from napari_panoptic.display.listed import DIMMED_ALPHA, ListedObjects, Others
from napari_panoptic.display.object_layers import HATCH_RIM_PX, Emphasis, emphasis, hatching
from napari_panoptic.display.object_rows import SEVERITY
from napari_panoptic.display.palette import class_colours, rgba_table, status_colour_table
from napari_panoptic.display.styles import LUT_LENGTH, ColourBy
from napari_panoptic.io.images.lazy_levels import read_indexed
from napari_panoptic.kernels import drawing as drawing_kernels
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import SideOutcomes
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.windowed_labels import Box, TiledArea, TiledLabels

CHUNK_PX = 512
"""Edge of the parts in which a viewer is to ask for a level."""
LEVELS_FROM_PIXELS = 2
"""Number of levels that are drawn from pixels; on coarser ones objects are ellipses."""
LARGEST_LAST_LEVEL_PX = 1024
"""Longer edge of the coarsest level, which viewers read whole and often."""
FINER_BY = 2
"""Number of levels by which the small picture of an area is finer than the coarsest."""
FAR_RIM_PX = 5
"""Width of the outline of an area on coarse levels, of which viewers may skip lines."""
OVERVIEW_WINDOW_PX = 2048
"""Edge of the windows in which it is read, in px at full resolution."""
CODES = 256
"""Number of codes, 0 for nothing included."""
CLASSES = 8
"""Added to the number of a class, to tell it from statuses."""
FADED = 128
"""Added to the code of an object that is not listed."""
MOST_CODES = FADED - 1
"""Statuses or classes that can have a colour each."""


@dataclass(frozen=True, eq=False)
class SideLook:
    """How the objects of one side are drawn."""

    #: uint8 (n + 1): what is drawn for each label, 0 for nothing.
    codes: NDArray[np.uint8]
    #: Outline width on each level that is drawn from pixels, in px of that level; 0 to fill.
    widths_px: tuple[int, ...]


class DrawnSide:
    """The objects of one side of a slide as a pyramid of pictures.

    Parameters
    ----------
    labels
        The objects, as their pixels name them.
    outcomes
        Their outcomes.
    tells_apart
        Whether pictures tell objects with the same code apart (`told_apart`).
    on_failure, on_arrival
        As in `DecodedWindows`.
    """

    def __init__(
        self,
        labels: TiledLabels,
        outcomes: SideOutcomes,
        *,
        tells_apart: bool = False,
        on_failure: Callable[[PanopticError | OSError], None] = lambda _error: None,
        on_arrival: Callable[[], None] = lambda: None,
    ) -> None:
        self.labels = labels
        self.outcomes = outcomes
        self.dtype = np.dtype(np.uint16 if tells_apart else np.uint8)
        self.windows = DecodedWindows(labels, on_failure=on_failure, on_arrival=on_arrival)
        self.look = SideLook(np.zeros(len(labels) + 1, np.uint8), (0,) * LEVELS_FROM_PIXELS)
        self.take_outcomes(outcomes)
        self._last: tuple[SideLook, NDArray[Any]] | None = None
        self.levels = tuple(DrawnLevel(self, number) for number in range(_levels(labels.shape)))

    def take_outcomes(self, outcomes: SideOutcomes) -> None:
        """Draw the same objects with their outcomes under other settings."""
        self.outcomes = outcomes
        # What failed lies on top of what did not.
        order = np.argsort(-SEVERITY[outcomes.status], kind="stable")
        self._boxes = np.ascontiguousarray(outcomes.bbox[order])
        self._labels = order + 1

    def leave(self) -> None:
        """Stop reading: the layer is going away."""
        self.windows.leave()

    def codes(self, colour_by: ColourBy, listed: ListedObjects | None) -> NDArray[np.uint8]:
        """Return the code of each label: of its status or class, and whether it is listed.

        Parameters
        ----------
        colour_by
            What colours tell.
        listed
            The objects that stand out; None if all are drawn alike.

        Returns
        -------
        uint8 (n + 1): 1 + status code, or `CLASSES` + 1-based class; 0 where
        nothing is drawn; `FADED` more for objects that are to step back.
        """
        by_class = colour_by is ColourBy.CLASS
        own = self.outcomes.class_index + CLASSES if by_class else self.outcomes.status + 1
        drawn = np.minimum(own, MOST_CODES).astype(np.uint8)
        if listed is not None and listed.others is not Others.SHOWN:
            others = ~np.isin(self.outcomes.ids, listed.ids[self.outcomes.side])
            drawn[others] = 0 if listed.others is Others.HIDDEN else drawn[others] + FADED
        return np.concatenate([np.zeros(1, np.uint8), drawn])

    def row_at(self, y: int, x: int) -> int | None:
        """Find the row, in the outcomes, of the object that is drawn at a pixel."""
        label = int(self.windows.window((y, x, y + 1, x + 1))[0, 0])
        return label - 1 if self.look.codes[label] else None

    def cut(self, row: int, box: Box) -> LabelImage:
        """Cut one object out as the only one, number 1, of a small label image."""
        index = (self.windows.window(box) == row + 1).astype(np.int32)
        one = slice(row, row + 1)
        return LabelImage(
            index,
            self.outcomes.ids[one],
            self.outcomes.class_index[one],
            self.outcomes.ids[one],
            self.labels.class_names,
        )

    def picture(self, level: int, y: int, x: int, height: int, width: int) -> NDArray[Any]:
        """Draw a window of a level, given in px of that level."""
        if level == len(self.levels) - 1:
            whole = self._last_level()
            return whole[y : y + height, x : x + width]
        return self._drawn(level, y, x, height, width)

    def _last_level(self) -> NDArray[Any]:
        if self._last is None or self._last[0] is not self.look:
            level = len(self.levels) - 1
            self._last = self.look, self._drawn(level, 0, 0, *self.levels[level].shape)
        return self._last[1]

    def _drawn(self, level: int, y: int, x: int, height: int, width: int) -> NDArray[Any]:
        factor, look = 1 << level, self.look
        if level >= LEVELS_FROM_PIXELS:
            picture = np.zeros((height, width), np.uint8)
            boxes, codes = self._in_sight(
                (y * factor, x * factor, (y + height) * factor, (x + width) * factor)
            )
            drawing_kernels.paint_ellipses(boxes, codes, float(factor), y, x, 0, picture)
            return self._written(picture)
        box = _at_full_resolution(self.labels.shape, factor, y, x, height, width)
        index, missing = self.windows.window_so_far(box, factor)
        # What an outline needs from beyond the window lies out of sight.
        thickness = look.widths_px[level]
        if thickness:
            index = drawing_kernels.outline_pixels(index, thickness)
        drawn = self._written(look.codes[index], index)
        if missing:
            boxes, codes = self._in_sight(box)
        for y0, x0, y1, x1 in missing:
            top, left = y0 // factor, x0 // factor
            part = np.zeros((-(-y1 // factor) - top, -(-x1 // factor) - left), np.uint8)
            drawing_kernels.paint_ellipses(boxes, codes, float(factor), top, left, thickness, part)
            rows, columns = part.shape
            drawn[top - y : top - y + rows, left - x : left - x + columns] = self._written(part)
        return drawn

    def _written(
        self, codes: NDArray[np.uint8], index: NDArray[np.integer[Any]] | int = 0
    ) -> NDArray[Any]:
        """Return a picture of codes, in which objects can be told apart if that is wanted."""
        return told_apart(codes, index) if self.dtype == np.uint16 else codes

    def _in_sight(self, box: Box) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return boxes and codes of the objects in a window, those that failed last."""
        found = _touching(self._boxes, *box)
        return self._boxes[found], self.look.codes[self._labels[found]]


class DrawnArea:
    """An excluded area of a slide as a pyramid of pictures: hatched, with an outline.

    Near, it is drawn from its pixels, read window by window; from afar, and near until these
    are there, from a small picture of all of it, which is read once in a thread of its own.

    Parameters
    ----------
    area
        The area.
    is_hatched
        Whether it is drawn so. Otherwise it is filled, and from afar it is not drawn.
    on_failure, on_arrival
        As in `DecodedWindows`; the latter also when the small picture is there.
    """

    def __init__(
        self,
        area: TiledArea,
        *,
        is_hatched: bool = True,
        on_failure: Callable[[PanopticError | OSError], None] = lambda _error: None,
        on_arrival: Callable[[], None] = lambda: None,
    ) -> None:
        self.area = area
        self.dtype = np.dtype(np.uint8)
        self.labels = _area_as_labels(area)
        self.windows = DecodedWindows(self.labels, on_failure=on_failure, on_arrival=on_arrival)
        self.levels = tuple(DrawnLevel(self, number) for number in range(_levels(area.shape)))
        self._step = 1 << max(len(self.levels) - 1 - FINER_BY, 0)
        self._overview = np.zeros([-(-edge // self._step) for edge in area.shape], np.bool_)
        self._on_failure, self._on_arrival = on_failure, on_arrival
        self._is_left = False
        self._is_hatched = is_hatched
        self._reader = Thread(target=self._read_overview, daemon=False)
        if is_hatched:
            self._reader.start()

    @property
    def is_busy(self) -> bool:
        """Whether pixels are still being read."""
        return self._reader.is_alive() or self.windows.is_busy

    def leave(self) -> None:
        """Stop reading: the layer is going away."""
        self._is_left = True
        self.windows.leave()

    def picture(self, level: int, y: int, x: int, height: int, width: int) -> NDArray[np.uint8]:
        """Draw a window of a level, given in px of that level."""
        factor = 1 << level
        mask, rim_px = self._from_afar(factor, y, x, height, width), FAR_RIM_PX
        if level < LEVELS_FROM_PIXELS:
            box = _at_full_resolution(self.area.shape, factor, y, x, height, width)
            exact, missing = self.windows.window_so_far(box, factor)
            near = exact > 0
            for y0, x0, y1, x1 in missing:
                rows = slice(y0 // factor - y, -(-y1 // factor) - y)
                columns = slice(x0 // factor - x, -(-x1 // factor) - x)
                near[rows, columns] = mask[rows, columns]
            mask, rim_px = near, HATCH_RIM_PX
        if not self._is_hatched:
            return mask.view(np.uint8)
        return hatching(mask, rim_px=rim_px, corner_px=y + x)

    def _from_afar(self, factor: int, y: int, x: int, height: int, width: int) -> NDArray[np.bool_]:
        rows = np.arange(y, y + height) * factor // self._step
        columns = np.arange(x, x + width) * factor // self._step
        mask: NDArray[np.bool_] = self._overview[np.ix_(rows, columns)]
        return mask

    def _read_overview(self) -> None:
        """Mark each small square that the area touches, so that none of it is lost from afar."""
        step, (bottom, right) = self._step, self.area.shape
        edge = math.ceil(OVERVIEW_WINDOW_PX / step) * step
        for top in range(0, bottom, edge):
            for left in range(0, right, edge):
                if self._is_left:
                    return
                box = top, left, min(top + edge, bottom), min(left + edge, right)
                try:
                    mask = self.area.read(box)
                except (PanopticError, OSError) as error:
                    if not self._is_left:
                        self._on_failure(error)
                    return
                if mask is not None:
                    small = _touched(mask, step)
                    height, width = small.shape
                    at_y, at_x = top // step, left // step
                    self._overview[at_y : at_y + height, at_x : at_x + width] = small
        if not self._is_left:
            self._on_arrival()


def _area_as_labels(area: TiledArea) -> TiledLabels:
    """Take an area for the one object of a side, to be read and kept as such."""

    def read(box: Box) -> NDArray[np.int32]:
        mask = area.read(box)
        y0, x0, y1, x1 = box
        return np.zeros((y1 - y0, x1 - x0), np.int32) if mask is None else mask.astype(np.int32)

    one = np.ones(1, np.int64)
    return TiledLabels(area.shape, one, one.astype(np.int16), one, ("ambiguous",), read)


def _touched(mask: NDArray[np.bool_], step: int) -> NDArray[np.bool_]:
    """Return which squares of ``step`` px hold a pixel of a mask; the last ones may be cut off."""
    rows = np.logical_or.reduceat(mask, np.arange(0, mask.shape[0], step), axis=0)
    touched: NDArray[np.bool_] = np.logical_or.reduceat(
        rows, np.arange(0, mask.shape[1], step), axis=1
    )
    return touched


class DrawnLevel:
    """One level of a drawn side or area: behaves like a read-only array (y, x).

    Parameters
    ----------
    side
        What is drawn.
    number
        0 for full resolution; each next level has half the edge.
    """

    ndim = 2

    def __init__(self, side: DrawnSide | DrawnArea, number: int) -> None:
        self.dtype = side.dtype
        height, width = side.labels.shape
        factor = 1 << number
        self.shape: tuple[int, int] = (-(-height // factor), -(-width // factor))
        self.chunks = (min(CHUNK_PX, self.shape[0]), min(CHUNK_PX, self.shape[1]))
        self._side = side
        self._number = number

    @property
    def size(self) -> int:
        """Number of values."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return read_indexed(key, self.shape, self._read)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a level of a slide is always redrawn: it needs a copy")
        whole = self._read(0, 0, *self.shape)
        return whole if dtype is None else whole.astype(dtype)

    def _read(self, y: int, x: int, height: int, width: int) -> NDArray[Any]:
        return self._side.picture(self._number, y, x, height, width)


def _at_full_resolution(
    shape: tuple[int, int], factor: int, y: int, x: int, height: int, width: int
) -> Box:
    """Return a window of a level in px at full resolution, without what lies beyond the slide."""
    bottom, right = min((y + height) * factor, shape[0]), min((x + width) * factor, shape[1])
    return y * factor, x * factor, bottom, right


def _levels(shape: tuple[int, int]) -> int:
    """Count the levels: the last is small, and needs no pixels."""
    halvings = math.ceil(math.log2(max(max(shape) / LARGEST_LAST_LEVEL_PX, 1)))
    return 1 + max(halvings, LEVELS_FROM_PIXELS)


def _touching(boxes: NDArray[np.int32], y0: int, x0: int, y1: int, x1: int) -> NDArray[np.int64]:
    """Return the rows of the boxes that touch a window, in their order."""
    top, left, bottom, right = boxes.T
    touches = (bottom > y0) & (right > x0) & (top < y1) & (left < x1)
    return np.flatnonzero(touches)


def told_apart(
    codes: NDArray[np.uint8], index: NDArray[np.integer[Any]] | int = 0
) -> NDArray[np.uint16]:
    """Return codes with a number that almost always differs between objects that touch.

    Parameters
    ----------
    codes
        What is drawn at each pixel.
    index
        The label of the object at each pixel.

    Returns
    -------
    uint16: 256 times the code, and a number from 1 to 255; 0 where nothing is drawn.
    """
    number = np.asarray(index % (CODES - 1) + 1, np.uint16)
    apart: NDArray[np.uint16] = np.where(codes > 0, codes.astype(np.uint16) * CODES + number, 0)
    return apart.astype(np.uint16)


def apart_colours(scheme: ClassScheme) -> NDArray[np.float32]:
    """Return the colour of each value of `told_apart`, float32 (65535, 4) RGBA."""
    return np.repeat(code_colours(scheme), CODES, axis=0)[:LUT_LENGTH]


def code_colours(scheme: ClassScheme) -> NDArray[np.float32]:
    """Return the colour of each code, float32 (256, 4) RGBA."""
    colours = np.zeros((CODES, 4), np.float32)
    statuses = status_colour_table()
    classes = rgba_table(class_colours(len(scheme.names)))[: MOST_CODES - CLASSES]
    colours[1 : 1 + len(statuses)] = statuses
    colours[CLASSES + 1 : CLASSES + 1 + len(classes)] = classes
    colours[FADED:] = colours[:FADED] * (1, 1, 1, DIMMED_ALPHA)
    return colours


def selected_rings(
    own: DrawnSide, row: int, other: DrawnSide, *, ring_px: int, as_line: bool = False
) -> tuple[Emphasis, Box]:
    """Draw rings around an object and its partner, from the pixels around them.

    Parameters
    ----------
    own, row
        The object: its side, and its row in the outcomes of that.
    other
        The other side.
    ring_px, as_line
        As in :func:`napari_panoptic.display.object_layers.emphasis`.

    Returns
    -------
    Emphasis, Box
        The rings, and the box around both objects in px.
    """
    partner = int(own.outcomes.partner[row])
    boxes = [own.outcomes.bbox[row]]
    if partner != NO_PARTNER:
        boxes.append(other.outcomes.bbox[partner])
    y0, x0 = (int(value) for value in np.min(boxes, axis=0)[:2])
    y1, x1 = (int(value) for value in np.max(boxes, axis=0)[2:])
    around = y0, x0, y1, x1
    corner = np.array([y0, x0, y0, x0], np.int32)
    beside = None
    if partner != NO_PARTNER:
        beside = other.cut(partner, around), 0, boxes[1] - corner
    marked = own.cut(row, around), 0, boxes[0] - corner
    rings = emphasis(marked, beside, ring_px=ring_px, as_line=as_line)
    top, left = rings.origin_yx_px
    return Emphasis(rings.image, (top + y0, left + x0)), around
