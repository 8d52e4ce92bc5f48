"""Polygons as label images, whole or in windows, with reports on vanished and overlapping objects.

Objects are found by squares of the image, and drawn square by square: so a window of a slide needs
only the objects near it, and while a whole image is drawn, its pixels stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.formats.format import TiledMasks
from napari_panoptic.io.formats.labels.masks import vanished_findings
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, Polygons, starts_of
from napari_panoptic.io.formats.reading import here
from napari_panoptic.kernels.fill import (
    Flat,
    bounds,
    draw,
    draw_counted,
    draw_where_free,
    have_pixels,
)
from napari_panoptic.values.cohort import ClassScheme
from napari_panoptic.values.labels import (
    IdImage,
    LabelImage,
    LazyMasks,
    Vanished,
    pixels_of_ids,
    size_text,
)
from napari_panoptic.values.windowed_labels import Box, TiledArea, TiledLabels, if_any

NO_PIXEL = "no inner pixel"
OUTSIDE = "outside the image"
COVERED = "covered by later objects of the class"
CONTAINED = "contained in a later object of the class, such as an outline of an area"
MOST_PLANES = 64
"""The largest number of images over which objects that share pixels are spread."""
SQUARE_PX = 1024
"""Edge of the squares by which objects are found."""
MOST_PER_OBJECT = 16
"""Squares are enlarged until objects lie in at most this number of them on average."""


def rasterize_polygons(
    polygons: Polygons,
    shape: tuple[int, int],
    scheme: ClassScheme,
    *,
    path: Path | None = None,
    is_patch: bool = False,
) -> TiledMasks:
    """Make polygons readable as pixels, whole or in windows.

    By vertices, objects have the pixels of ``skimage.draw.polygon``; by centres,
    those whose centres lie inside, see `Polygons`. Within a class a later object
    overwrites an earlier one; then classes are flattened in the scheme's order.
    Labels below the ambiguous area are kept.

    Parameters
    ----------
    polygons
        The objects. Kept, not copied.
    shape
        Height and width of the image in px.
    scheme
        The classes.
    path
        The file, for findings.
    is_patch
        Whether polygons are those of a slide, so that those that reach beyond the image are
        nothing to report.
    """
    scored, side = _scored_rows(polygons), "annotation" if here().team is None else "prediction"
    numbers, excluded = _labels_of(polygons, scored), polygons.class_index == AMBIGUOUS

    @cache  # a whole image is drawn without it
    def index() -> SquareIndex:
        return SquareIndex.of(polygons.flat, _drawing_order(polygons), numbers, shape)

    @cache
    def index_of_area() -> SquareIndex:
        ones = np.ones(len(polygons), np.int32)
        return SquareIndex.of(polygons.flat, np.flatnonzero(excluded), ones, shape)

    def whole() -> tuple[LabelImage, tuple[Finding, ...]]:
        labels = _drawn(polygons, shape, scheme)
        found = vanished_findings(labels.vanished, path=path)
        return labels, (*found, *_overlapping(labels.overlapping_px, side, path))

    labels = TiledLabels(
        shape=shape,
        ids=polygons.ids[scored],
        class_index=polygons.class_index[scored],
        original_ids=polygons.ids[scored],
        class_names=scheme.names,
        read=lambda box: index().read(box),
    )
    area = TiledArea(shape, lambda box: if_any(index_of_area().read(box) > 0))
    return TiledMasks(
        labels,
        area if excluded.any() else None,
        () if is_patch else tuple(_outside(polygons, shape, path)),
        whole=whole,
    )


@dataclass(frozen=True, eq=False)
class SquareIndex:
    """Objects in drawing order, found by squares of the image."""

    #: All objects.
    flat: Flat
    #: int64 (m,): rows of those to draw, in drawing order.
    order: NDArray[np.int64]
    #: int32 (n,): the label of each object.
    labels: NDArray[np.int32]
    #: Height and width of the image.
    shape: tuple[int, int]
    #: Edge of the squares.
    square_px: int
    #: int64 (squares + 1,): where each square starts in ``places``.
    starts: NDArray[np.int64]
    #: int64: the objects in each square, as places in ``order``, ascending.
    places: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        flat: Flat,
        order: NDArray[np.int64],
        labels: NDArray[np.int32],
        shape: tuple[int, int],
    ) -> SquareIndex:
        """Sort objects into squares; those outside the image into none."""
        boxes = bounds(flat)[order]
        boxes[:, :2] = np.maximum(boxes[:, :2], 0)
        boxes[:, 2:] = np.minimum(boxes[:, 2:], shape)
        boxes[(boxes[:, 2:] <= boxes[:, :2]).any(axis=1)] = 0
        square_px = SQUARE_PX
        while _spans(boxes, square_px).prod(axis=1).sum() > MOST_PER_OBJECT * len(order):
            square_px *= 2
        n_columns = -(-shape[1] // square_px)
        n_squares = -(-shape[0] // square_px) * n_columns
        height, width = _spans(boxes, square_px).T
        counts = height * width
        places = np.repeat(np.arange(len(order)), counts)
        within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows, columns = np.divmod(within, np.repeat(width, counts))
        first = boxes[:, 0] // square_px * n_columns + boxes[:, 1] // square_px
        squares = first[places] + rows * n_columns + columns
        sizes = np.bincount(squares, minlength=n_squares)
        in_order = places[np.argsort(squares, kind="stable")]
        return cls(flat, order, labels, shape, square_px, starts_of(sizes), in_order)

    def read(self, box: Box) -> NDArray[np.int32]:
        """Draw a window."""
        image = np.zeros((box[2] - box[0], box[3] - box[1]), np.int32)
        rows = self._rows_in(box)
        if len(rows):
            draw(self.flat, rows, self.labels, box, image)
        return image

    def squares(self) -> Iterator[tuple[Box, NDArray[np.int64]]]:
        """Yield the squares that have objects, and the rows of these in drawing order."""
        edge, n_columns = self.square_px, -(-self.shape[1] // self.square_px)
        for square in np.flatnonzero(np.diff(self.starts)).tolist():
            y, x = square // n_columns * edge, square % n_columns * edge
            box = (y, x, min(y + edge, self.shape[0]), min(x + edge, self.shape[1]))
            yield box, self.order[self.places[self.starts[square] : self.starts[square + 1]]]

    def _rows_in(self, box: Box) -> NDArray[np.int64]:
        """Return the objects in the squares that a window touches, each once, in order."""
        y0, x0, y1, x1 = box
        if y0 >= y1 or x0 >= x1:
            return self.order[:0]
        edge, n_columns = self.square_px, -(-self.shape[1] // self.square_px)
        found = []
        for row in range(y0 // edge, (y1 - 1) // edge + 1):
            start = self.starts[row * n_columns + x0 // edge]
            found.append(self.places[start : self.starts[row * n_columns + (x1 - 1) // edge + 1]])
        return self.order[np.unique(np.concatenate(found))]


def _spans(boxes: NDArray[np.int64], square_px: int) -> NDArray[np.int64]:
    """Return int64 (n, 2): over how many squares each box extends along y and x."""
    spans: NDArray[np.int64] = -(-boxes[:, 2:] // square_px) - boxes[:, :2] // square_px
    return spans


def _scored_rows(polygons: Polygons) -> NDArray[np.int64]:
    """Return int64 (n,): the rows of the scored objects, in document order."""
    return np.flatnonzero(polygons.class_index > AMBIGUOUS)


def _drawing_order(polygons: Polygons) -> NDArray[np.int64]:
    """Return int64 (n,): the rows of the scored objects, later ones lie over earlier ones."""
    rows = _scored_rows(polygons)
    return rows[np.argsort(polygons.class_index[rows], kind="stable")]


def _labels_of(polygons: Polygons, rows: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return int32 (n,): 1, 2 … for the objects in some rows, 0 for all others."""
    labels = np.zeros(len(polygons), np.int32)
    labels[rows] = np.arange(1, len(rows) + 1, dtype=np.int32)
    return labels


def _drawn(polygons: Polygons, shape: tuple[int, int], scheme: ClassScheme) -> LabelImage:
    """Draw all classes into one image: what lies below is covered, and counted at once."""
    rows = _scored_rows(polygons)
    labels = _labels_of(polygons, rows)
    flat = polygons.flat
    image = np.zeros(shape, np.int32)
    visible = np.zeros(len(rows) + 1, np.int64)
    claimed_twice = np.zeros(shape, np.bool_)
    overlapping = 0
    vanished: list[Vanished] = []
    for number, name in enumerate(scheme.names, start=1):
        own = rows[polygons.class_index[rows] == number]
        if not len(own):
            continue
        for box, chosen in SquareIndex.of(flat, own, labels, shape).squares():
            overlapping += draw_counted(flat, chosen, labels, box, image, visible, claimed_twice)
        gone = own[visible[labels[own]] == 0]
        reasons = _why_vanished(flat, gone, shape)
        ids = polygons.ids[gone].tolist()
        vanished += [Vanished(id_, name, why) for id_, why in zip(ids, reasons, strict=True)]
    lost_before = {lost.id for lost in vanished}
    ids = polygons.ids[rows]
    names = np.array(scheme.names, dtype=object)[polygons.class_index[rows] - 1]
    vanished += [
        Vanished(id_, name, "covered by another class")
        for id_, name in zip(ids[visible[1:] == 0].tolist(), names[visible[1:] == 0], strict=True)
        if id_ not in lost_before
    ]
    drawn = LabelImage(
        index=image,
        ids=ids,
        class_index=polygons.class_index[rows],
        original_ids=ids,
        class_names=scheme.names,
        class_masks=_class_masks(polygons, shape, scheme),
        vanished=tuple(vanished),
        overlapping_px=int(overlapping),
    )
    drawn = drawn.of_rows(visible[1:] > 0, image) if vanished else drawn
    whole = cache(partial(_with_all_pixels, polygons, drawn))  # drawn on request: rarely needed
    return replace(drawn, other_form=whole) if overlapping else drawn


def _with_all_pixels(polygons: Polygons, drawn: LabelImage) -> LabelImage:
    """Draw each object into the first plane where it covers no earlier object."""
    rows = _scored_rows(polygons)
    labels, waiting = _labels_of(polygons, rows), _drawing_order(polygons)
    planes: list[NDArray[np.int32]] = []
    while len(waiting):
        if len(planes) == MOST_PLANES:
            raise LabelError(
                f"too many objects lie over one another to keep all of their pixels: more "
                f"than {MOST_PLANES} in one place; leave overlaps at flatten",
                object_id=int(polygons.ids[waiting[0]]),
            )
        image = np.zeros(drawn.shape, np.int32)
        waiting = waiting[~draw_where_free(polygons.flat, waiting, labels, image)]
        planes.append(image)
    ids = polygons.ids[rows]
    return drawn.in_planes(planes, ids, polygons.class_index[rows], ids)


def _class_masks(polygons: Polygons, shape: tuple[int, int], scheme: ClassScheme) -> LazyMasks:
    """Return a mask per class that has polygons, drawn on request: few are needed."""
    present = set(polygons.class_index.tolist())
    numbers = {n: k for k, n in enumerate(scheme.names, start=1) if k in present}

    def draw_class(name: str) -> IdImage:
        rows = np.arange(1, len(polygons.ids) + 1, dtype=np.int32)
        return pixels_of_ids(_all_of(polygons, numbers[name], rows, shape), polygons.ids)

    return LazyMasks(numbers, draw_class)


def _all_of(
    polygons: Polygons, class_index: int, labels: NDArray[np.int32], shape: tuple[int, int]
) -> NDArray[np.int32]:
    """Draw all objects of a class."""
    rows = np.flatnonzero(polygons.class_index == class_index)
    image = np.zeros(shape, np.int32)
    draw(polygons.flat, rows, labels, (0, 0, *shape), image)
    return image


def _why_vanished(flat: Flat, rows: NDArray[np.int64], shape: tuple[int, int]) -> list[str]:
    """Return the reason for each object that has no pixel in its class."""
    reasons, boxes = [], bounds(flat)
    drawn = have_pixels(flat, rows, shape)
    for row, any_pixel in zip(rows.tolist(), drawn.tolist(), strict=True):
        y0, x0, y1, x1 = boxes[row].tolist()
        inside = 0 <= y0 <= y1 <= shape[0] and 0 <= x0 <= x1 <= shape[1]
        if any_pixel:
            around = (boxes[row, :2] > boxes[:, :2]) & (boxes[row, 2:] < boxes[:, 2:])
            reasons.append(CONTAINED if around[row + 1 :].all(axis=1).any() else COVERED)
        else:
            reasons.append(NO_PIXEL if inside else OUTSIDE)
    return reasons


def _overlapping(count: int, side: str, path: Path | None) -> Iterator[Finding]:
    if count:
        yield Finding(
            FindingKind.OVERLAPPING,
            f"{count} px claimed by more than one object of the {side}; "
            f"the last one has them, unless overlaps are kept",
            path=path,
            count=count,
        )


def _outside(polygons: Polygons, shape: tuple[int, int], path: Path | None) -> Iterator[Finding]:
    """Report the objects, ambiguous ones too, with vertices outside the image."""
    boxes = bounds(polygons.flat)
    sticks_out = (boxes[:, :2] < 0).any(axis=1) | (boxes[:, 2:] > shape).any(axis=1)
    ids = tuple(polygons.ids[sticks_out].tolist())
    is_outside = (boxes[:, 2:] <= 0).any(axis=1) | (boxes[:, :2] >= shape).any(axis=1)
    if ids and is_outside.all():
        yield Finding(
            FindingKind.CONVENTION,
            f"{counted(len(ids), 'polygon')}, none in the image of {size_text(shape)}: "
            f"coordinates may be in px of another image or resolution, moved, or x and y swapped. "
            f"If so, set scale, offset or axes under [files] in cohort.toml (init proposes them)",
            path=path,
            count=len(ids),
        )
    if ids:
        yield Finding(
            FindingKind.OUTSIDE_IMAGE,
            f"{counted(len(ids), 'polygon')} with vertices outside the image of "
            f"{size_text(shape)}, cut at its edge: {english_list(ids)}",
            path=path,
            count=len(ids),
            object_ids=ids,
        )
