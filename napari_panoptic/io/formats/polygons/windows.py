"""Polygons of a slide too large to draw at once: windows of it, drawn when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.formats.format import LoadRequest, TiledMasks, located
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, Polygons
from napari_panoptic.io.formats.polygons.rasterize import (
    drawing_order,
    labels_by_row,
    outside_findings,
    read_outlines,
    scored_rows,
)
from napari_panoptic.kernels.fill import Flat, bounds, boxes_by_tile, draw_window
from napari_panoptic.nuclei.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.nuclei.values.windowed_labels import Box, TiledArea, TiledLabels

TILE_PX = 1024
"""Edge of the squares by which objects are found."""
MOST_PER_OBJECT = 16
"""Squares are enlarged until objects lie in no more of them on average."""


def open_polygon_tiles(
    files: MaskFiles,
    scheme: ClassScheme,
    shape: tuple[int, int],
    *,
    region: str | None = None,
    team: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> TiledMasks:
    """Read the polygons of a slide; draw nothing yet.

    Any window has the pixels, and objects have the ids, that `rasterize_polygons` gives the
    whole slide.

    Parameters
    ----------
    files
        The polygons, in one of the forms of
        `napari_panoptic.io.formats.polygons.rasterize.READERS`.
    scheme
        The classes.
    shape
        Height and width of the slide in px.
    region, team
        Names, for findings.
    progress
        Is told bytes read and bytes in all.
    is_wanted
        Asked now and then whether to go on.

    Raises
    ------
    UnreadableFileError
        Where the file cannot be read.
    ReadingStoppedError
        Where ``is_wanted`` said no.
    """
    path = files.all_paths[0]
    file = read_outlines(files, scheme, team=team, progress=progress, is_wanted=is_wanted)
    tiles = polygon_tiles(file.polygons, scheme, shape)
    findings = (*file.findings, *outside_findings(file.polygons, shape, region=region))
    request = LoadRequest(shape=shape, region=region, team=team)
    return TiledMasks(
        replace(tiles.labels, known_scores=file.scores),
        tiles.ambiguous,
        located(findings, request, path=path),
        magnification=file.magnification,
    )


def polygon_tiles(polygons: Polygons, scheme: ClassScheme, shape: tuple[int, int]) -> TiledMasks:
    """Make polygons readable by windows.

    Parameters
    ----------
    polygons
        The objects. Kept, not copied.
    scheme
        The classes.
    shape
        Height and width of the slide in px.

    Returns
    -------
    TiledMasks
        Without findings.
    """
    flat = polygons.flat
    scored = scored_rows(polygons)
    labels = labels_by_row(polygons, scored)
    objects = _Drawn.of(flat, drawing_order(polygons), labels, shape)
    ids = polygons.ids[scored]
    area = None
    excluded = np.flatnonzero(polygons.class_index == AMBIGUOUS)
    if len(excluded):
        area = TiledArea(shape, _Drawn.of(flat, excluded, labels + np.int32(1), shape).area)
    return TiledMasks(
        TiledLabels(
            shape=shape,
            ids=ids,
            class_index=polygons.class_index[scored],
            original_ids=ids,
            class_names=scheme.names,
            read=objects.labels_in,
        ),
        area,
    )


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Objects that are drawn window by window.

    Parameters
    ----------
    flat
        All objects.
    order
        int64 (m,): rows of those to draw, in the order in which they are drawn.
    labels
        int32 (n,): what to write for each.
    tile_px
        Edge of the squares.
    columns
        How many squares there are side by side.
    starts
        int64 (squares + 1,): where each square starts in ``places``.
    places
        int32: the objects in each square, as places in ``order``, ascending.
    """

    flat: Flat
    order: NDArray[np.int64]
    labels: NDArray[np.int32]
    tile_px: int
    columns: int
    starts: NDArray[np.int64]
    places: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        flat: Flat,
        order: NDArray[np.int64],
        labels: NDArray[np.int32],
        shape: tuple[int, int],
    ) -> _Drawn:
        """Sort objects into squares; those outside the slide into none."""
        boxes = _clipped_bounds(flat, order, shape)
        tile_px = TILE_PX
        while _squares(boxes, tile_px) > MOST_PER_OBJECT * len(order):
            tile_px *= 2
        rows, columns = -(-shape[0] // tile_px), -(-shape[1] // tile_px)
        starts, places = boxes_by_tile(boxes, tile_px, rows, columns)
        return cls(flat, order, labels, tile_px, columns, starts, places)

    def labels_in(self, box: Box) -> NDArray[np.int32]:
        """Draw a window."""
        image = np.zeros((box[2] - box[0], box[3] - box[1]), np.int32)
        self._draw(box, image)
        return image

    def area(self, box: Box) -> NDArray[np.bool_] | None:
        """Draw where a window is covered; None where it is not."""
        image = np.zeros((box[2] - box[0], box[3] - box[1]), np.bool_)
        self._draw(box, image)
        return image if image.any() else None

    def _draw(self, box: Box, image: NDArray[Any]) -> None:
        places = self._places_in(box)
        if len(places):
            draw_window(self.flat, self.order[places], self.labels, box[0], box[1], image)

    def _places_in(self, box: Box) -> NDArray[np.int32]:
        """Return the objects in the squares that a window touches, each once, in order."""
        y0, x0, y1, x1 = box
        if y0 >= y1 or x0 >= x1:
            return self.places[:0]
        first, last = x0 // self.tile_px, (x1 - 1) // self.tile_px
        found = []
        for row in range(y0 // self.tile_px, (y1 - 1) // self.tile_px + 1):
            start = self.starts[row * self.columns + first]
            found.append(self.places[start : self.starts[row * self.columns + last + 1]])
        return np.unique(np.concatenate(found))


def _clipped_bounds(
    flat: Flat, order: NDArray[np.int64], shape: tuple[int, int]
) -> NDArray[np.int64]:
    """Return the boxes of objects inside the slide, empty for those outside."""
    boxes = bounds(flat)[order]
    boxes[:, :2] = np.maximum(boxes[:, :2], 0)
    boxes[:, 2:] = np.minimum(boxes[:, 2:], shape)
    boxes[(boxes[:, 2:] <= boxes[:, :2]).any(axis=1)] = 0
    return boxes


def _squares(boxes: NDArray[np.int64], tile_px: int) -> int:
    """Count in how many squares objects lie, each object by itself."""
    spans = -(-boxes[:, 2:] // tile_px) - boxes[:, :2] // tile_px
    return int(spans.prod(axis=1).sum())
