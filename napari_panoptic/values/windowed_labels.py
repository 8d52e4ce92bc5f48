"""Label images too large to hold: the objects are known, the pixels are read window by window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.relabel import look_up, present_labels
from napari_panoptic.values.labels import (
    IdImage,
    LabelImage,
    LazyMasks,
    Scores,
    check_pair,
    pixels_of_ids,
    scores_of,
)
from napari_panoptic.values.vocabulary import Side, of_side

Box = tuple[int, int, int, int]
"""A window in px: y0, x0, y1, x1, half open, inside the image."""


def tiles_in(box: Box, edges: tuple[int, int]) -> list[tuple[int, int]]:
    """Return row and column of each tile that a window touches; tiles are ``edges`` px large."""
    y0, x0, y1, x1 = box
    height, width = edges
    if y0 >= y1 or x0 >= x1:
        return []
    return [
        (row, column)
        for row in range(y0 // height, (y1 - 1) // height + 1)
        for column in range(x0 // width, (x1 - 1) // width + 1)
    ]


def tile_box(tile: tuple[int, int], edges: tuple[int, int], shape: tuple[int, int]) -> Box:
    """Return the part of an image that a tile covers, by its row and column."""
    y, x = tile[0] * edges[0], tile[1] * edges[1]
    return y, x, min(y + edges[0], shape[0]), min(x + edges[1], shape[1])


def common_box(one: Box, other: Box) -> Box:
    """Return the common part of two windows."""
    (a, b, c, d), (y0, x0, y1, x1) = one, other
    return max(a, y0), max(b, x0), min(c, y1), min(d, x1)


def paste(window: NDArray[Any], box: Box, tile: NDArray[Any], corner_yx: tuple[int, int]) -> None:
    """Copy the pixels of a tile into the window of a box, as far as they lie in it.

    Parameters
    ----------
    window, box
        Pixels (y, x, ...) and their place; `window` is changed.
    tile, corner_yx
        Pixels (y, x, ...), and the place of the first one.
    """
    y, x = corner_yx
    inside, place = overlap(tile.shape, (box[0] - y, box[1] - x, box[2] - y, box[3] - x))
    window[place] = tile[inside]


def window(picture: NDArray[Any], box: Box) -> NDArray[Any]:
    """Return a window of a picture (y, x), which may lie beyond its edges: zero there."""
    inside, place = overlap(picture.shape, box)
    found = np.zeros((box[2] - box[0], box[3] - box[1]), picture.dtype)
    found[place] = picture[inside]
    return found


def overlap(shape: tuple[int, ...], box: Box) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return the common part of a picture and a window as slices of each."""
    y0, x0, y1, x1 = box
    rows, place_y = _common(y0, y1, shape[0])
    columns, place_x = _common(x0, x1, shape[1])
    return (rows, columns), (place_y, place_x)


def _common(start: int, end: int, length: int) -> tuple[slice, slice]:
    low, high = min(max(start, 0), length), min(max(end, 0), length)
    return slice(low, high), slice(low - start, max(high, low) - start)


@dataclass(frozen=True, eq=False)
class TiledLabels:
    """The objects of one side of a slide."""

    #: Height and width in px.
    shape: tuple[int, int]
    #: int64 (n,): the objects' ids for people and files, ascending, unique, positive. Unlike in a
    #: `LabelImage`, a row may have no pixel.
    ids: NDArray[np.int64]
    #: int16 (n,): 1-based index into ``class_names``.
    class_index: NDArray[np.int16]
    #: int64 (n,): the id in the file that the object came from.
    original_ids: NDArray[np.int64]
    #: The scored classes, in order.
    class_names: tuple[str, ...]
    #: Returns a window as a new int32 image (y, x): 0 is background, ``k`` the object of row ``k -
    #: 1``. Pixels of unknown ids are background. Thread-safe, and releases the GIL if possible.
    read: Callable[[Box], NDArray[np.int32]]
    #: Edge of the tiles in which the pixels are stored, or 0 if any window costs the same. Windows
    #: are best aligned with such tiles.
    tile_px: int = 0
    #: As in `LabelImage`.
    known_scores: Scores | None = None

    @property
    def scores(self) -> NDArray[np.float64]:
        """float64 (n,): the score of each object, as in `LabelImage`."""
        return scores_of(self.known_scores, self.ids)

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.ids)

    def only(self, kept: NDArray[np.bool_]) -> TiledLabels:
        """Return the objects of some rows (bool, n); the pixels of others become background."""
        if kept.all():
            return self
        lookup = np.zeros(len(self) + 1, np.int32)
        lookup[1:][kept] = np.arange(1, np.count_nonzero(kept) + 1, dtype=np.int32)
        read_all = self.read

        def read(box: Box) -> NDArray[np.int32]:
            window = read_all(box)
            return look_up(lookup, window, np.empty_like(window))

        return replace(
            self,
            ids=self.ids[kept],
            class_index=self.class_index[kept],
            original_ids=self.original_ids[kept],
            read=read,
        )

    def held(self) -> LabelImage:
        """Read all pixels as one window; every object then has a pixel, no two share one."""
        index = self.read((0, 0, *self.shape))
        labels = LabelImage(
            index=index,
            ids=self.ids,
            class_index=self.class_index,
            original_ids=self.original_ids,
            class_names=self.class_names,
            known_scores=self.known_scores,
        )
        has_pixel = present_labels(index, len(self))[1:]
        if not has_pixel.all():
            labels = labels.of_rows(has_pixel, index)
        numbers = sorted(set(labels.class_index.tolist()))
        names = [labels.class_names[number - 1] for number in numbers]
        return replace(labels, class_masks=LazyMasks(names, partial(_mask_of, labels)))


def _mask_of(labels: LabelImage, name: str) -> IdImage:
    is_own = labels.class_index == labels.class_names.index(name) + 1
    return pixels_of_ids(labels.index, np.where(is_own, labels.original_ids, 0))


@dataclass(frozen=True, eq=False)
class TiledArea:
    """An excluded area of a slide."""

    #: Height and width in px.
    shape: tuple[int, int]
    #: Returns a window as a bool image (y, x), or None if nothing of the area lies in it.
    #: Thread-safe.
    read: Callable[[Box], NDArray[np.bool_] | None]

    @classmethod
    def of_image(cls, area: NDArray[Any]) -> TiledArea:
        """Make an area of the pixels of an image (y, x) that are not 0."""
        height, width = area.shape

        def read(box: Box) -> NDArray[np.bool_] | None:
            return if_any(np.asarray(area[box[0] : box[2], box[1] : box[3]], np.bool_))

        return cls((height, width), read)

    def joined(self, other: TiledArea | None) -> TiledArea:
        """Return the pixels of this area and of another of the same size, if there is one."""
        if other is None:
            return self

        def read(box: Box) -> NDArray[np.bool_] | None:
            one, more = self.read(box), other.read(box)
            if one is None or more is None:
                return more if one is None else one
            return one | more

        return TiledArea(self.shape, read)


def if_any(mask: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Return a mask; None if nothing is set."""
    return mask if mask.any() else None


@dataclass(frozen=True, eq=False)
class TiledPair:
    """Reference and prediction of one slide, with the ambiguous area.

    Raises
    ------
    LabelError
        If shapes or class lists differ.
    """

    #: The two sides, of one shape and one class list.
    reference: TiledLabels
    prediction: TiledLabels
    #: The excluded area; None if nothing is excluded.
    ambiguous: TiledArea | None = None
    #: Micrometres per pixel, or None if unknown.
    mpp: float | None = None

    def __post_init__(self) -> None:
        """Check that everything fits together."""
        shape = None if self.ambiguous is None else self.ambiguous.shape
        check_pair(self.reference, self.prediction, shape)

    def side(self, side: Side) -> TiledLabels:
        """Return the objects of one side."""
        return of_side(side, self.reference, self.prediction)

    @property
    def has_planes(self) -> bool:
        """Whether objects of one side may share pixels: never in windows."""
        return False

    @property
    def class_names(self) -> tuple[str, ...]:
        """The scored classes, in order."""
        return self.reference.class_names
