"""Outlines of the objects of a label image: along pixel edges, or through pixel centres."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.model import PixelRule, Polygons
from napari_panoptic.io.formats.polygons.shapes import contains
from napari_panoptic.kernels.restore import components
from napari_panoptic.kernels.trace import (
    cut_loops,
    name_line_pixels,
    walk_borders,
)
from napari_panoptic.values.labels import LabelImage

Traced = TypeVar("Traced")
"""The outline of an object, as a format writes it."""


@dataclass(frozen=True, eq=False)
class Part:
    """One connected piece of an object, as a simple polygon with holes.

    Pixel (y, x) is the square from (x, y) to (x + 1, y + 1), as in QuPath.
    Rings are not closed: the last vertex is joined to the first.
    """

    #: int32 (m, 2): corners x, y in px, clockwise on the screen.
    exterior: NDArray[np.int32]
    #: The same for each hole, anticlockwise on the screen.
    holes: tuple[NDArray[np.int32], ...] = ()


@dataclass(frozen=True, eq=False)
class TracedOutlines:
    """The outlines of all objects of one label image, exact to the pixel.

    Every ring is simple: it neither crosses nor touches itself. Pixels that
    touch only by a corner belong to different parts.
    """

    #: int32 (m, 2): corners of all rings, ring after ring.
    vertices_xy: NDArray[np.int32]
    #: int64 (r + 1,): ring ``i`` is ``vertices_xy[ring_start[i]:ring_start[i + 1]]``.
    ring_start: NDArray[np.int64]
    #: bool (r,): whether the ring is a hole.
    is_hole: NDArray[np.bool_]
    #: int64 (n + 1,): the rings of the object of row ``k`` (0-based) are ``first_ring[k]`` to
    #: ``first_ring[k + 1]``, exteriors before holes.
    first_ring: NDArray[np.int64]

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.first_ring) - 1

    def ring(self, number: int) -> NDArray[np.int32]:
        """Return the corners (m, 2) of a ring, as x, y in px."""
        return self.vertices_xy[self.ring_start[number] : self.ring_start[number + 1]]

    def rings_of(self, row: int) -> list[NDArray[np.int32]]:
        """Return all rings of an object (0-based row), exteriors before holes."""
        return [self.ring(i) for i in range(self.first_ring[row], self.first_ring[row + 1])]

    def of(self, row: int) -> tuple[Part, ...]:
        """Return the parts of an object (0-based row); none for one without a pixel."""
        first, last = self.first_ring[row], self.first_ring[row + 1]
        n_holes = int(np.count_nonzero(self.is_hole[first:last]))
        rings = self.rings_of(row)
        exteriors, holes = rings[: len(rings) - n_holes], rings[len(rings) - n_holes :]
        if len(exteriors) == 1:
            return (Part(exteriors[0], tuple(holes)),)
        return _with_their_holes(exteriors, holes)


def pixel_outlines(index: NDArray[np.int32], n: int) -> TracedOutlines:
    """Trace every object along the edges of its pixels.

    Filling the rings by the even-odd rule gives exactly the same pixels.

    Parameters
    ----------
    index
        int32 image (y, x), 0 for background, objects 1..n. Not changed.
    n
        The number of objects.
    """
    traced = walk_borders(np.pad(index, 1), False, False)
    vertices, start, label = _split_where_touching(*traced)
    is_hole = _doubled_areas(vertices, start[:-1]) < 0
    order = np.lexsort((is_hole, label))
    vertices, start = _reordered(vertices, start, order)
    return TracedOutlines(
        vertices_xy=vertices,
        ring_start=start,
        is_hole=is_hole[order],
        first_ring=np.searchsorted(label[order], np.arange(1, n + 2)),
    )


def imagescope_vertices(index: NDArray[np.int32], n: int) -> list[NDArray[np.int32]]:
    """Trace every object through the centres of its border pixels.

    ImageScope knows one closed line per object. Its pixels belong to the object
    when the file is read and filled again, so exactly the same pixels come back.
    Holes and separate parts are joined to the line by bridges, lines that go
    forth and back: a bridge covers no pixel by itself, so objects with holes,
    with several parts, of one pixel or one pixel wide come back unchanged too.

    Parameters
    ----------
    index
        int32 image (y, x), 0 for background, objects 1..n. Not changed.
    n
        The number of objects.

    Returns
    -------
    list
        Per object int32 (m, 2): x and y in px, not closed; (0, 2) for an
        object without a pixel.
    """
    return [joined(rings) for rings in border_rings(index, n)]


def border_rings(index: NDArray[np.int32], n: int) -> list[list[NDArray[np.int32]]]:
    """Return the rings of each object that run through its border pixels, not yet joined."""
    vertices, start, label, _ = walk_borders(np.pad(index, 1), True, True)
    vertices, start = _without_straight(vertices, start)
    order = np.argsort(label, kind="stable")
    first = np.searchsorted(label[order], np.arange(1, n + 2))
    rings = [vertices[start[ring] : start[ring + 1]] for ring in order]
    return [rings[first[row] : first[row + 1]] for row in range(n)]


def _without_straight(
    vertices: NDArray[np.int32], start: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Leave out pixels in the middle of straight stretches that are walked once.

    A pixel that is walked twice stays a vertex: the two lines over it cancel
    out in the fill, and only vertices are always covered.
    """
    after = _next_in_ring(start)
    steps = vertices[after] - vertices
    before = np.empty_like(after)
    before[after] = np.arange(len(after))
    is_straight = (steps == steps[before]).all(axis=1) & (after != np.arange(len(after)))
    _, pixel, visits = np.unique(
        vertices.astype(np.int64) @ [1, 1 << 32], return_inverse=True, return_counts=True
    )
    kept = ~is_straight | (visits[pixel] > 1)
    return vertices[kept], np.concatenate([[0], np.cumsum(kept)])[start]


def _next_in_ring(start: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each vertex the number of the next one of its ring."""
    after = np.arange(1, start[-1] + 1)
    has_vertex = np.diff(start) > 0
    after[start[1:][has_vertex] - 1] = start[:-1][has_vertex]
    return after


@dataclass(frozen=True, eq=False)
class OutlinedEntry(Generic[Traced]):
    """An object to write, or a connected piece of the excluded area."""

    #: Its running number among the objects, or among the pieces.
    number: int
    #: Its id; those of the pieces follow those of the objects.
    id: int
    class_name: str
    #: Its class, numbered from 1; 0 for a piece of the excluded area.
    class_index: int
    #: NaN without one.
    score: float
    outline: Traced


def outlined_entries(
    objects: Objects, trace: Callable[[LabelImage], Iterable[Traced]]
) -> Iterator[OutlinedEntry[Traced]]:
    """Yield the objects of a region, and then the pieces of its excluded area.

    Parameters
    ----------
    objects
        What is written.
    trace
        Returns the outline of each object of a label image, in the order of their rows.
    """
    labels = objects.labels
    yield from label_entries(labels, trace)
    if objects.ambiguous is not None:
        areas = connected_areas(objects.ambiguous, objects.ambiguous_class)
        areas = replace(areas, ids=areas.ids + int(labels.ids.max(initial=0)))
        for entry in label_entries(areas, trace):
            yield replace(entry, class_index=0)


def label_entries(
    labels: LabelImage, trace: Callable[[LabelImage], Iterable[Traced]]
) -> Iterator[OutlinedEntry[Traced]]:
    """Yield the objects of a label image; parameters as of `outlined_entries`."""
    yield from map(
        OutlinedEntry,
        count(1),
        labels.ids.tolist(),
        labels.class_names_of_objects().tolist(),
        labels.class_index.tolist(),
        labels.scores.tolist(),
        trace(labels),
    )


def parts_of(labels: LabelImage) -> Iterator[tuple[Part, ...]]:
    """Yield the parts of each object, along the edges of its pixels."""
    outlines = pixel_outlines(labels.index, len(labels))
    yield from map(outlines.of, range(len(labels)))


def lines_of(labels: LabelImage) -> list[NDArray[np.int32]]:
    """Return the line through the border pixels of each object; see `imagescope_vertices`."""
    return imagescope_vertices(labels.index, len(labels))


def connected_areas(mask: NDArray[np.bool_], name: str) -> LabelImage:
    """Return the connected pieces of an area as objects of one class."""
    pieces = components(np.ascontiguousarray(mask).view(np.uint8))
    count = int(pieces.max(initial=0))
    return LabelImage.from_array(pieces, dict.fromkeys(range(1, count + 1), name), (name,))


def as_contours(polygons: Polygons) -> Polygons:
    """Return contours as OpenCV traces them as objects that have the pixels on and within them.

    Such contours run through the centres of border pixels. The parity rule by
    which `napari_panoptic.kernels.fill` fills covers no pixel where a contour
    runs forth and back along one line, as it does along objects that are one
    pixel wide; but vertices are always covered. So all pixels exactly on the
    edges of such a contour are made vertices of it. Several rings of an object,
    parts or holes, are then joined to one.

    Parameters
    ----------
    polygons
        With whole-number vertices. Not changed.
    """
    xy = polygons.vertices_xy.astype(np.int32)
    after = _next_in_ring(polygons.ring_starts)
    dx, dy = np.abs(xy[after] - xy).T
    steps = np.maximum(1, np.gcd(dx, dy)).astype(np.int64)
    vertices, starts = name_line_pixels(xy, polygons.ring_starts, steps)
    if (np.diff(polygons.object_starts) == 1).all():
        return replace(
            polygons,
            vertices_xy=vertices.astype(np.float64),
            ring_starts=starts,
            is_hole=np.zeros(len(polygons), np.bool_),
            rule=PixelRule.VERTEX,
        )
    lines = [
        joined([vertices[starts[ring] : starts[ring + 1]] for ring in range(first, last)])
        for first, last in pairwise(polygons.object_starts.tolist())
    ]
    return Polygons.of_rings(
        [line.astype(np.float64) for line in lines],
        polygons.class_index,
        PixelRule.VERTEX,
        ids=polygons.ids,
    )


def _with_their_holes(
    exteriors: list[NDArray[np.int32]], holes: list[NDArray[np.int32]]
) -> tuple[Part, ...]:
    """Assign each hole to the smallest exterior around the object's pixel beside it."""
    sizes = np.abs([_doubled_areas(ring, np.array([0]))[0] for ring in exteriors])
    smallest_first = np.argsort(sizes, kind="stable")
    corners = [(ring.min(axis=0), ring.max(axis=0)) for ring in exteriors]
    lowest, highest = np.reshape(corners, (-1, 2, 2))[smallest_first].transpose(1, 0, 2)
    owned: list[list[NDArray[np.int32]]] = [[] for _ in exteriors]
    for hole in holes:
        inside = _beside(hole)
        around = smallest_first[((lowest <= inside) & (inside <= highest)).all(axis=1)].tolist()
        owner = next(number for number in around if contains(exteriors[number], inside))
        owned[owner].append(hole)
    return tuple(Part(ring, tuple(owned[number])) for number, ring in enumerate(exteriors))


def _beside(ring: NDArray[np.int32]) -> tuple[float, float]:
    """Return the centre of the pixel to the right of the first edge: it is the object's."""
    (x0, y0), (x1, y1) = ring[:2].tolist()
    dx, dy = int(np.sign(x1 - x0)), int(np.sign(y1 - y0))
    return x0 + (dx - dy) / 2, y0 + (dy + dx) / 2


def joined(rings: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Join the rings of one object, parts and holes, by bridges to one closed line.

    See :func:`imagescope_vertices`.
    """
    if not rings:
        return np.zeros((0, 2), np.int32)
    if len(rings) == 1:
        return rings[0]
    line = _Line(rings[0].tolist())
    for ring in rings[1:]:
        line.join(ring)
    return line.vertices()


_CELL_PX = 32
"""Width of the squares in which vertices are looked up."""


class _Line:
    """A closed line that grows by rings, in a grid to find the vertex nearest to a point."""

    def __init__(self, vertices: list[list[int]]) -> None:
        self._vertices: list[list[int]] = []
        # The position of the vertex that follows each, and the positions in each cell of the grid.
        self._next: list[int] = []
        self._cells: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._append(vertices)
        self._next[-1] = 0

    def join(self, ring: NDArray[np.int32]) -> None:
        """Join a ring by a short bridge."""
        # Exact for the line's vertex; the ring's is the best one seen from there.
        at = self._vertices[self._nearest(*ring[0].tolist())]
        start = int(np.argmin(_squared_distances(ring, np.array(at))))
        bridge = self._nearest(*ring[start].tolist())
        detour = np.concatenate([ring[start:], ring[: start + 1]]).tolist()
        first = self._append([*detour, self._vertices[bridge]])
        self._next[-1], self._next[bridge] = self._next[bridge], first

    def vertices(self) -> NDArray[np.int32]:
        """Return x and y of all vertices in order (m, 2)."""
        order = [0]
        while (following := self._next[order[-1]]) != 0:
            order.append(following)
        return np.array(self._vertices, np.int32)[order]

    def _append(self, vertices: list[list[int]]) -> int:
        """Append vertices, each followed by the next; return the position of the first."""
        first = len(self._vertices)
        self._vertices += vertices
        self._next += range(first + 1, len(self._vertices) + 1)
        for position, (x, y) in enumerate(vertices, first):
            self._cells[x // _CELL_PX, y // _CELL_PX].append(position)
        return first

    def _nearest(self, x: int, y: int) -> int:
        """Return the position of the vertex nearest to a point, the first of several."""
        found: tuple[int, int] | None = None
        reach = 0
        # Vertices in farther cells are at least this far away.
        while found is None or found[0] >= (_CELL_PX * (reach - 1)) ** 2:
            if (2 * reach + 1) ** 2 > len(self._vertices):  # more cells than vertices
                squares = ((a - x) ** 2 + (b - y) ** 2 for a, b in self._vertices)
                return min(zip(squares, count(), strict=False))[1]
            for cell in _cells_around(x // _CELL_PX, y // _CELL_PX, reach):
                for position in self._cells.get(cell, ()):
                    x_, y_ = self._vertices[position]
                    other = (x_ - x) ** 2 + (y_ - y) ** 2, position
                    found = other if found is None else min(found, other)
            reach += 1
        return found[1]


def _cells_around(x: int, y: int, reach: int) -> Iterator[tuple[int, int]]:
    """Yield the cells of the square at a distance around a cell, or the cell itself for 0."""
    for dx in range(-reach, reach + 1):
        step = 1 if abs(dx) == reach else max(2 * reach, 1)
        yield from ((x + dx, y + dy) for dy in range(-reach, reach + 1, step))


def _squared_distances(points: NDArray[np.int32], point: NDArray[np.int32]) -> NDArray[np.int64]:
    squares: NDArray[np.int64] = ((points.astype(np.int64) - point) ** 2).sum(axis=1)
    return squares


def _reordered(
    vertices: NDArray[np.int32], start: NDArray[np.int64], order: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Put rings into another order."""
    lengths = np.diff(start)[order]
    new_start = np.concatenate([[0], np.cumsum(lengths)])
    source = np.arange(len(vertices)) + np.repeat(start[:-1][order] - new_start[:-1], lengths)
    return vertices[source], new_start


def _split_where_touching(
    vertices: NDArray[np.int32],
    start: NDArray[np.int64],
    label: NDArray[np.int32],
    touching: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Split rings that pass a corner twice into rings that do not.

    Returns
    -------
    vertices, start, label
        As before; no vertex is lost or added.
    """
    if not touching.any():
        return vertices, start, label
    ring = np.repeat(np.arange(len(label)), np.diff(start))
    candidates = np.flatnonzero(touching[ring])
    order = candidates[np.lexsort((*vertices[candidates].T, ring[candidates]))]
    same = (vertices[order[1:]] == vertices[order[:-1]]).all(axis=1)
    same &= ring[order[1:]] == ring[order[:-1]]
    earlier = np.full(len(vertices), -1, np.int64)
    earlier[order[1:][same]] = order[:-1][same]
    new_vertices, new_start, source = cut_loops(vertices, start, earlier)
    return new_vertices, new_start, label[source]


def _doubled_areas(vertices: NDArray[np.int32], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return twice the signed area of each ring: positive for exteriors, negative for holes."""
    if not len(first):
        return np.zeros(0, np.int64)
    xy = vertices.astype(np.int64)
    before = np.arange(-1, len(xy) - 1)
    before[first] = np.append(first[1:], len(xy)) - 1
    crosses = xy[before, 0] * xy[:, 1] - xy[:, 0] * xy[before, 1]
    areas: NDArray[np.int64] = np.add.reduceat(crosses, first)
    return areas
