"""What an action draws on one side: outlines that go, then outlines that come.

A `Canvas` collects both, and returns their effect as `CanvasChange`. Pixels are raster positions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.live.mends import BoolArray, Box, Claim, IntArray, SideChange
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.statistics.graphs import connected_components
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side


class SideObjects:
    """The objects of one side of an evaluation: pixels, area and class by row."""

    def __init__(self, evaluation: Evaluation, side: Side) -> None:
        self.side = side
        self.labels: LabelImage = evaluation.pair.side(side)
        self.bbox = evaluation.table.side(side).bbox
        self.area = evaluation.table.side(side).area
        self.width = self.labels.shape[1]

    def id(self, row: int) -> int:
        """Return the id of an object."""
        return int(self.labels.ids[row])

    def class_name(self, row: int) -> str:
        """Return the class of an object."""
        return self.labels.class_names[int(self.labels.class_index[row]) - 1]

    def box(self, row: int) -> Box:
        """Return the bounding box of an object."""
        y0, x0, y1, x1 = self.bbox[row].tolist()
        return y0, x0, y1, x1

    def mask(self, row: int) -> BoolArray:
        """Return the object within its bounding box."""
        y0, x0, y1, x1 = self.box(row)
        mask: BoolArray = self.labels.index[y0:y1, x0:x1] == row + 1
        return mask

    def pixels(self, row: int) -> IntArray:
        """Return the pixels of an object."""
        y0, x0, _, _ = self.box(row)
        return self.positions(self.mask(row), y0, x0)

    def positions(self, mask: BoolArray, y0: int, x0: int) -> IntArray:
        """Return the pixels of a mask whose first pixel is at y0, x0."""
        y, x = np.nonzero(mask)
        return (y + y0) * self.width + (x + x0)


@dataclass(frozen=True, eq=False)
class CanvasChange:
    """What a canvas changes of its side."""

    #: None if neither pixels nor classes change.
    change: SideChange | None
    #: The pixels that each painted outline gets.
    areas: list[int]
    #: int64 (n + 1,): the pixels that each object loses, by row plus one.
    lost: IntArray
    #: Id -> pixels within painted outlines, of objects that were not cleared.
    claimed_px: dict[int, int]
    #: The ids of those that lose all their pixels.
    vanished: list[int]


class Canvas:
    """Collects the outlines of one side that go, and those that come."""

    def __init__(self, objects: SideObjects) -> None:
        self._objects = objects
        self._cleared: list[IntArray] = []
        #: bool (n + 1,): by row plus one, the objects that go; the background is free as well.
        self._is_free = np.zeros(len(objects.labels) + 1, np.bool_)
        self._is_free[0] = True
        self._painted: list[tuple[IntArray, int]] = []
        self._classes: dict[int, str] = {}

    def clear(self, row: int) -> None:
        """Remove the outline of an object."""
        if not self._is_free[row + 1]:
            self._is_free[row + 1] = True
            self._cleared.append(self._objects.pixels(row))

    def paint(self, pixels: IntArray, id_: int, class_name: str) -> int:
        """Let an object have pixels; return the number of the outline, from 0."""
        self._painted.append((pixels, id_))
        self._classes[id_] = class_name
        return len(self._painted) - 1

    def rename(self, id_: int, class_name: str) -> None:
        """Let an object have another class."""
        self._classes[id_] = class_name

    def drawn(self, claim: Claim) -> CanvasChange:
        """Return what is changed; all outlines go before the first one comes."""
        objects, claimed_px = self._objects, dict[int, int]()
        index, ids = objects.labels.index.ravel(), np.concatenate([[0], objects.labels.ids])
        outlines = [self._claimed(pixels, index, claim, claimed_px) for pixels, _ in self._painted]
        positions = np.concatenate([*self._cleared, *outlines, np.zeros(0, np.int64)])
        # Number 0 is what is cleared, number k the outline k - 1.
        lengths = [sum(map(len, self._cleared)), *map(len, outlines)]
        numbers = np.repeat(np.arange(len(lengths)), lengths)
        is_kept = is_last(positions, objects.width)
        positions, numbers = positions[is_kept], numbers[is_kept]
        rows = index[positions]
        ids_before = ids[rows]
        ids_after = np.array([0, *(id_ for _, id_ in self._painted)], np.int64)[numbers]
        changed = ids_before != ids_after
        y, x = np.divmod(positions[changed], objects.width)
        lost = np.bincount(rows[changed], minlength=len(ids))
        classes = self._classes_before({*ids[np.flatnonzero(lost)].tolist(), *self._classes})
        change = SideChange(
            side=objects.side,
            y=y.astype(np.int32),
            x=x.astype(np.int32),
            ids_before=ids_before[changed],
            ids_after=ids_after[changed],
            classes_before=classes,
            classes_after=classes | self._classes,
        )
        return CanvasChange(
            change=change if len(y) or change.renamed else None,
            areas=np.bincount(numbers, minlength=len(lengths))[1:].tolist(),
            lost=lost,
            claimed_px={objects.id(row): number for row, number in claimed_px.items()},
            vanished=[objects.id(row) for row in claimed_px if lost[row + 1] == objects.area[row]],
        )

    def _claimed(
        self,
        pixels: IntArray,
        index: NDArray[np.int32],
        claim: Claim,
        claimed_px: dict[int, int],
    ) -> IntArray:
        """Return the pixels that an outline gets; count those of other objects, by row."""
        rows = index[pixels]
        is_free = self._is_free[rows]
        if is_free.all():
            return pixels
        others, counts = np.unique(rows[~is_free] - 1, return_counts=True)
        for row, number in zip(others.tolist(), counts.tolist(), strict=True):
            claimed_px[row] = claimed_px.get(row, 0) + number
        return pixels[is_free] if claim is Claim.KEEP else pixels

    def _classes_before(self, ids: Iterable[int]) -> dict[int, str]:
        """Return id -> class of those ids that have an object."""
        objects = self._objects
        rows = np.flatnonzero(np.isin(objects.labels.ids, list(ids))).tolist()
        return {objects.id(row): objects.class_name(row) for row in rows}


def is_last(positions: IntArray, width: int) -> BoolArray:
    """Return which raster positions (n,) do not occur again later."""
    if not len(positions):
        return np.zeros(0, np.bool_)
    first = int(positions.min()) // width * width
    # Memory of the rows between; the system provides only the pages that are written.
    last = np.zeros(int(positions.max()) - first + 1, np.int32)
    order = np.arange(len(positions), dtype=np.int32)
    last[positions - first] = order
    is_kept: BoolArray = last[positions - first] == order
    return is_kept


def clusters(bbox: NDArray[np.integer]) -> IntArray:
    """Return the cluster, from 0, of each of some boxes (n, 4) that `closed` can connect."""
    y0, x0, y1, x1 = bbox.T
    reach = 2
    is_near = (y0[:, np.newaxis] < y1 + reach + 1) & (x0[:, np.newaxis] < x1 + reach + 1)
    one, other = np.nonzero(is_near & is_near.T)
    return connected_components(one, other, len(bbox))


def closed(mask: BoolArray) -> BoolArray:
    """Return a mask with its gaps of at most 2 px closed, by a square of 3 x 3 px."""
    grown = np.pad(mask, 2)
    grown = _over_square(grown, np.logical_or)
    return _over_square(grown, np.logical_and)[2:-2, 2:-2]


def _over_square(mask: BoolArray, join: np.ufunc) -> BoolArray:
    """Join each pixel with its eight neighbours; those at the edge of the image are False."""
    rows = np.zeros_like(mask)
    rows[1:-1] = join(join(mask[:-2], mask[2:]), mask[1:-1])
    result = np.zeros_like(mask)
    result[:, 1:-1] = join(join(rows[:, :-2], rows[:, 2:]), rows[:, 1:-1])
    return result
