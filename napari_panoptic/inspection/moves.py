"""Other places of objects, and how well objects there overlap those of the other side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.inspection.looking import SampledSide, Shape
from napari_panoptic.io.cohorts.description import SLIDE_BOUNDS, forms_of_rule
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, PixelRule, Polygons
from napari_panoptic.io.formats.polygons.outline_rules import (
    LEAST_DIAGONALS,
    LEAST_SHARE,
    count_traced_outlines,
)
from napari_panoptic.io.formats.polygons.trace import as_contours
from napari_panoptic.kernels.fill import draw
from napari_panoptic.nuclei.overlap import Areas
from napari_panoptic.values.cohort import Axes, OutlineRules, Source

SURE = 0.7
"""Dice coefficient of the areas of both sides above which objects are only moved a little."""
_SEARCHED = 2
"""In how many regions, those with most objects, places are searched."""
_MOST_OBJECTS = (600, 200)
"""How many objects of both sides are compared for that in each."""
_STEP, _STEPS = 1.04, 6
"""Scales that are tried: steps up and down from the ratio of sizes."""
_FITS = 12
"""How often a place is fitted to the objects that are next to each other."""
_LEAST_FITTED, _TINY = 3, 1e-12
_MUCH_THE_SAME = 0.005
"""Of two places whose Dice coefficients differ by less, the simpler one is taken."""

_NOTHING = Areas(0, 0, 0, 0, 0)
_Filled = NDArray[np.bool_]
_Points = NDArray[np.float64]


@dataclass(frozen=True)
class Move:
    """How to move the objects of one side: swap x and y, scale, shift, then mirror."""

    #: Whether x and y are exchanged.
    is_swapped: bool = False
    #: Pixels of the image per pixel of the objects.
    scale: float = 1.0
    #: The shift after that along x and y, in px.
    offset_xy: tuple[float, float] = (0.0, 0.0)
    #: Whether the image is then mirrored along x, and along y.
    mirrored: tuple[bool, bool] = (False, False)
    #: Whether the pixels were counted row by row, instead of column by column.
    by_rows: bool = False
    #: Whether they count from the bounds of their slide.
    from_bounds: bool = False

    @property
    def words(self) -> str:
        """The place in a sentence."""
        parts = []
        if self.by_rows:
            parts.append("with run lengths that go row by row (COCO's go column by column)")
        if self.from_bounds:
            parts.append("counted from the bounds of its slide, as QuPath does,")
        if any(self.mirrored):
            parts.append(_TURNS[self.is_swapped, *self.mirrored])
        elif self.is_swapped:
            parts.append("with x and y swapped")
        if self.scale != 1:
            parts.append(f"at {self.scale:g} times the px")
        if self.offset_xy != (0, 0):
            x, y = self.offset_xy
            parts.append(f"moved by {x:g} px along x and {y:g} along y")
        return " and ".join(parts)

    def settings(self, rules: OutlineRules) -> dict[str, object]:
        """Return the settings that place objects there, for files now read under other rules.

        Empty if no rules do.
        """
        if any(self.mirrored) or self.by_rows:
            return {}
        if self.from_bounds:
            return {"offset": SLIDE_BOUNDS}
        scale, (x, y) = rules.scale or 1.0, rules.offset_xy or (0.0, 0.0)
        if self.is_swapped:
            x, y = y, x
        found: dict[str, object] = {}
        if self.is_swapped:
            found["axes"] = str(Axes.AS_STATED if rules.is_swapped else Axes.SWAPPED)
        if self.scale != 1:
            found["scale"] = whole_if_whole(float(f"{scale * self.scale:.6g}"))
        offset = (self.scale * x + self.offset_xy[0], self.scale * y + self.offset_xy[1])
        if offset != (rules.offset_xy or (0.0, 0.0)):
            found["offset"] = [whole_if_whole(round(each, 2)) for each in offset]
        return found


AS_READ = Move()
AT_BOUNDS = Move(from_bounds=True)
_BY_ROWS = Move(by_rows=True)
_TURNS = {
    (False, True, False): "mirrored left to right",
    (False, False, True): "mirrored top to bottom",
    (False, True, True): "turned by 180 degrees",
    (True, True, False): "turned by 90 degrees clockwise",
    (True, False, True): "turned by 90 degrees counter-clockwise",
    (True, True, True): "turned by 90 degrees and mirrored",
}
"""Symmetries of a rectangle that no rule undoes, by whether x and y are swapped, x and y mirrored
then."""


@dataclass(frozen=True, eq=False)
class _Region:
    """Both sides of a region."""

    #: The first side, and where its objects are.
    first: SampledSide
    fixed: _Filled
    side: SampledSide
    #: The outlines of the second side as its pixels follow from them; None for masks.
    polygons: Polygons | None

    @classmethod
    def of(cls, first: SampledSide, second: SampledSide) -> _Region | None:
        fixed = first.filled
        if fixed is None or (second.masks is None and second.outlines is None):
            return None
        own = None if second.shape is None else second.polygons
        if own is not None:  # excluded areas are no objects
            own = own.of_rows(own.class_index > AMBIGUOUS)
        return cls(first, fixed, second, None if own is None else _by_centres(own, second))

    def filled(self, move: Move) -> _Filled | None:
        """Return where objects of the second side are at another place."""
        image = self.side.filled
        if move == AS_READ or image is None:
            return image
        if move.by_rows:
            return np.ascontiguousarray(image.T).reshape(image.shape)
        if self.polygons is not None and self.side.shape is not None:
            return _drawn(_placed(self.polygons, self._at(move), self.side.shape), self.side.shape)
        if (move.scale, move.offset_xy, move.from_bounds) != (1, (0, 0), False):
            return None
        return _mirrored(image.T if move.is_swapped else image, move.mirrored)

    def areas(self, other: _Filled | None) -> Areas:
        """Return the pixels of the first side and of an image, none if their sizes differ."""
        if other is None or other.shape != self.fixed.shape:
            return _NOTHING
        pixels = map(np.count_nonzero, (self.fixed, other, self.fixed & other))
        return Areas(0, 0, *map(int, pixels))

    def _at(self, move: Move) -> Move:
        if not move.from_bounds or self.side.image is None:
            return move
        x, y = self.side.image.bounds_xy
        return replace(move, offset_xy=(float(x), float(y)))


class Places:
    """Tries other places of the objects of one side.

    Parameters
    ----------
    pairs
        The side that stays, and the one whose objects are moved, of each region.
    """

    def __init__(self, pairs: Sequence[tuple[SampledSide, SampledSide]]) -> None:
        found = [_Region.of(*pair) for pair in pairs]
        self._regions = [region for region in found if region is not None]

    def agreement(self, move: Move = AS_READ) -> float:
        """Return the Dice coefficient of the areas of both sides, 0 for empty ones."""
        areas = [region.areas(region.filled(move)) for region in self._regions]
        return sum(areas, start=_NOTHING).dice

    @property
    def have_bounds(self) -> bool:
        """Whether slides of outlines, which nothing places yet, have bounds."""
        return any(
            region.side.image is not None and region.side.image.bounds_xy != (0, 0)
            for region in self._regions
        ) and all(
            region.polygons is not None and not region.side.files.rules.is_placed
            for region in self._regions
        )

    def best(self) -> tuple[float, Move]:
        """Return the best place that was found, and the Dice coefficient there."""
        present = self.agreement()
        found = [(present, AS_READ)]
        rules = {region.side.files.rules for region in self._regions}
        if len(rules) != 1 or any(r.side.files.patch for r in self._regions):
            return found[0]
        (own,) = rules
        has_outlines = all(region.polygons is not None for region in self._regions)
        if present < SURE:
            found += [(self.agreement(move), move) for move in self._turned()]
        if max(found, key=_dice_of)[0] < SURE or present >= SURE:
            for is_swapped in (False, True) if present < SURE else (False,):
                if has_outlines and not own.from_bounds:
                    found += self._searched(is_swapped, is_near=present >= SURE)
        best = max(found, key=_dice_of)
        return next(each for each in found if each[0] >= best[0] - _MUCH_THE_SAME)

    def other_regions(self) -> tuple[float, str]:
        """Return the Dice coefficient with objects of other regions each, and an example."""
        from scipy.optimize import linear_sum_assignment

        n = len(self._regions)
        images = [region.side.filled for region in self._regions]
        if n < 2:
            return 0.0, ""
        areas = [[region.areas(image) for image in images] for region in self._regions]
        dice = np.array([[each.dice for each in row] for row in areas])
        np.fill_diagonal(dice, 0)
        rows, columns = linear_sum_assignment(dice, maximize=True)
        at = int(dice[rows, columns].argmax())
        files = [self._regions[n].side.files for n in (rows[at], columns[at])]
        names = [own.item or own.all_paths[0].name for own in files]
        chosen = (areas[y][x] for y, x in zip(rows, columns, strict=True))
        dice_of_all = sum(chosen, start=_NOTHING).dice
        return dice_of_all, f"{names[1]} fits where {names[0]} is"

    def _turned(self) -> Iterator[Move]:
        """Yield places that need no search."""
        sides = [region.side for region in self._regions]
        if self.have_bounds:
            yield AT_BOUNDS
        yield Move(is_swapped=True)
        for turn in _TURNS:
            yield Move(is_swapped=turn[0], mirrored=(turn[1], turn[2]))
        if all(side.files.source == Source.COCO_INSTANCES for side in sides):
            yield _BY_ROWS

    def _searched(self, is_swapped: bool, *, is_near: bool) -> list[tuple[float, Move]]:
        """Search scale and offset of outlines; return the best ones, the simplest first."""
        points = [own for r in self._regions if (own := _Objects.of(r, is_swapped)) is not None]
        points = sorted(points, key=lambda own: -min(len(own.fixed), len(own.moved)))[:_SEARCHED]
        if not points:
            return []
        start = Move(is_swapped=is_swapped)
        images = [region.side.image for region in self._regions]
        resolutions = {1 / image.mpp for image in images if image is not None and image.mpp}
        usual = [1.0, *(resolutions if len(resolutions) == 1 else ())]
        if is_near:
            starts = [start]
        else:
            ratio = _ratio(points)
            usual.append(2.0 ** round(math.log2(ratio)))
            steps = [ratio * _STEP**n for n in range(-_STEPS, _STEPS + 1)]
            starts = [_voted(points, replace(start, scale=s)) for s in (*usual, *steps)]
            starts += [replace(start, scale=scale) for scale in usual]
        fitted = [_fitted(points, own) for own in starts]
        best = max(fitted, key=lambda own: _near(points, own))
        scaled = _fitted(points, best, is_moved=False)
        scales = [*usual, *(float(f"{scaled.scale:.{digits}g}") for digits in (4, 6))]
        moves = [replace(start, scale=scale) for scale in scales]
        scales = [*usual, *(float(f"{best.scale:.{digits}g}") for digits in (4, 6))]
        moves += [_offset_at(scale, points, best) for scale in scales]
        return [(self.agreement(move), move) for move in moves]


@dataclass(frozen=True, eq=False)
class _Objects:
    """Objects of both sides of a region: the middle of each, and how wide it is, in px."""

    fixed: _Points
    moved: _Points
    fixed_px: NDArray[np.float64]
    moved_px: NDArray[np.float64]
    tree: Any

    @classmethod
    def of(cls, region: _Region, is_swapped: bool) -> _Objects | None:
        from scipy.ndimage import find_objects
        from scipy.spatial import KDTree

        if region.polygons is None or region.first.masks is None:
            return None
        found = [box for box in find_objects(region.first.masks.labels.index) if box is not None]
        fixed = np.array([[(x.start, y.start), (x.stop, y.stop)] for y, x in found], np.float64)
        moved = _boxes(region.polygons)
        if not len(fixed) or not len(moved):
            return None
        moved = moved[..., ::-1] if is_swapped else moved
        fixed, moved = (
            own[:: -(-len(own) // n)] for own, n in zip((fixed, moved), _MOST_OBJECTS, strict=True)
        )
        widths = [np.sqrt(np.prod(own[:, 1] - own[:, 0], axis=1)) for own in (fixed, moved)]
        one, other = (own.mean(axis=1) for own in (fixed, moved))
        return cls(one, other, widths[0], widths[1], KDTree(one))

    def nearest(self, move: Move) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return, at a place of the second side, how far each of its objects is from which one."""
        far, row = self.tree.query(move.scale * self.moved + np.array(move.offset_xy))
        return far, row


def _boxes(polygons: Polygons) -> NDArray[np.float64]:
    """Return float64 (n, 2, 2): the lowest and the highest x and y of objects with vertices."""
    starts = polygons.ring_starts[polygons.object_starts]
    starts = starts[:-1][np.diff(starts) > 0]
    if not len(starts):
        return np.zeros((0, 2, 2))
    xy = polygons.vertices_xy
    ends = [np.minimum.reduceat(xy, starts), np.maximum.reduceat(xy, starts)]
    if polygons.rule is PixelRule.VERTEX:
        ends[1] = ends[1] + 1
    return np.stack(ends, axis=1)


def _ratio(objects: Sequence[_Objects]) -> float:
    """Return the median size of the first side's objects over that of the second's."""
    fixed, moved = (
        float(np.median(np.concatenate([getattr(own, name) for own in objects])))
        for name in ("fixed_px", "moved_px")
    )
    return fixed / moved if fixed > 0 and moved > 0 else 1.0


def _voted(objects: Sequence[_Objects], move: Move) -> Move:
    """Return the offset at which most objects of both sides lie over each other."""
    width = float(np.median(np.concatenate([own.fixed_px for own in objects]))) / 2
    apart = [(own.fixed[:, None] - move.scale * own.moved).reshape(-1, 2) for own in objects]
    cells = np.rint(np.concatenate(apart) / max(width, 1.0)).astype(np.int64)
    low = cells.min(axis=0)
    span = int(np.ptp(cells[:, 1])) + 1
    keys = (cells[:, 0] - low[0]) * span + cells[:, 1] - low[1]
    values, counts = np.unique(keys, return_counts=True)
    x, y = divmod(int(values[counts.argmax()]), span)
    offset = (np.array([x, y]) + low) * max(width, 1.0)
    return replace(move, offset_xy=(float(offset[0]), float(offset[1])))


def _fitted(objects: Sequence[_Objects], move: Move, *, is_moved: bool = True) -> Move:
    """Fit scale and offset to the pairs of objects that are next to each other there."""
    for _ in range(_FITS):
        pairs = [_neighbours(own, move) for own in objects]
        moved, fixed = (np.concatenate(own) for own in zip(*pairs, strict=True))
        if len(moved) < _LEAST_FITTED:
            return move
        middles = [own.mean(axis=0) if is_moved else np.zeros(2) for own in (moved, fixed)]
        moved, fixed = moved - middles[0], fixed - middles[1]
        scale = float((moved * fixed).sum() / max(float((moved**2).sum()), _TINY))
        if not scale > 0:
            return move
        x, y = (middles[1] - scale * middles[0]).tolist()
        after = replace(move, scale=scale, offset_xy=(x, y))
        if after == move:
            break
        move = after
    return move


def _offset_at(scale: float, objects: Sequence[_Objects], move: Move) -> Move:
    """Return the offset in whole px with another scale, for the pairs of objects of a place."""
    pairs = [_neighbours(own, move) for own in objects]
    moved, fixed = (np.concatenate(own) for own in zip(*pairs, strict=True))
    x, y = np.rint(np.median(fixed - scale * moved, axis=0)).tolist() if len(moved) else (0.0, 0.0)
    return replace(move, scale=scale, offset_xy=(x, y))


def _neighbours(own: _Objects, move: Move) -> tuple[_Points, _Points]:
    """Return the objects of the second side that lie over one of the first, and these."""
    far, row = own.nearest(move)
    is_near = far <= own.fixed_px[row]
    return own.moved[is_near], own.fixed[row[is_near]]


def _near(objects: Sequence[_Objects], move: Move) -> float:
    """Return how many objects lie over one of the other side, those in the middle most."""
    total = 0.0
    for own in objects:
        far, row = own.nearest(move)
        # Where all objects are drawn together they lie over few, and many over one.
        best = np.zeros(len(own.fixed))
        np.maximum.at(best, row, 1 - np.minimum(far / np.maximum(own.fixed_px[row], 1), 1))
        total += float(best.sum())
    return total


def _dice_of(found: tuple[float, Move]) -> float:
    return found[0]


def whole_if_whole(value: float) -> float | int:
    """Return a number without a fraction as a whole one, as files write it."""
    return int(value) if value.is_integer() else value


def _mirrored(image: _Filled, mirrored: tuple[bool, bool]) -> _Filled:
    x, y = (-1 if each else 1 for each in mirrored)
    return image[::y, ::x]


def _placed(polygons: Polygons, move: Move, shape: Shape) -> Polygons:
    """Return outlines at another place in an image."""
    xy = polygons.vertices_xy[:, ::-1] if move.is_swapped else polygons.vertices_xy
    xy = xy * move.scale + np.array(move.offset_xy)
    last = np.array(shape[::-1], np.float64) - (polygons.rule is PixelRule.VERTEX)
    xy = np.where(move.mirrored, last - xy, xy)
    return replace(polygons, vertices_xy=np.ascontiguousarray(xy))


def _drawn(polygons: Polygons, shape: Shape) -> _Filled:
    image = np.zeros(shape, np.int32)
    rows, ones = np.arange(len(polygons)), np.ones(len(polygons), np.int32)
    draw(polygons.flat, rows, ones, (0, 0, *shape), image)
    return image > 0


def _by_centres(polygons: Polygons, side: SampledSide) -> Polygons:
    """Return outlines of a side as contours of pixels if they look like these."""
    is_open = side.files.source in forms_of_rule("vertices") and not side.files.rules.vertices
    return as_contours(polygons) if is_open and look_traced(polygons) else polygons


def look_traced(polygons: Polygons) -> bool:
    """Return whether outlines look traced by OpenCV, through the centres of pixels."""
    traced, others, diagonals = count_traced_outlines(polygons)
    return diagonals >= LEAST_DIAGONALS and traced >= LEAST_SHARE * (traced + others)
