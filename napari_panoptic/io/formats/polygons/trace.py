"""Label images become polygons: along pixel edges, or as ImageScope vertices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.formats.polygons.imagescope import Polygon
from napari_panoptic.kernels.jit import compiled
from napari_panoptic.kernels.restore import components
from napari_panoptic.nuclei.values.labels import LabelImage

_Whole = TypeVar("_Whole", np.int32, np.int64)


@dataclass(frozen=True, eq=False)
class Part:
    """One connected piece of an object, as a simple polygon with holes.

    Pixel (y, x) is the square from (x, y) to (x + 1, y + 1), as in QuPath.
    Rings are not closed: the last vertex is joined to the first.

    Parameters
    ----------
    exterior
        int32 (m, 2): corners x, y in px, clockwise on the screen.
    holes
        The same for each hole, anticlockwise on the screen.
    """

    exterior: NDArray[np.int32]
    holes: tuple[NDArray[np.int32], ...] = ()


@dataclass(frozen=True, eq=False)
class Outlines:
    """The outlines of all objects of one label image, exact to the pixel.

    Every ring is simple: it neither crosses nor touches itself. Pixels that
    touch only by a corner belong to different parts.

    Parameters
    ----------
    vertices_xy
        int32 (m, 2): corners of all rings, ring after ring.
    ring_start
        int64 (r + 1,): ring ``i`` is ``vertices_xy[ring_start[i]:ring_start[i + 1]]``.
    is_hole
        bool (r,).
    first_ring
        int64 (n + 1,): the rings of the object of row ``k`` (0-based) are
        ``first_ring[k]`` to ``first_ring[k + 1]``, exteriors before holes.
    """

    vertices_xy: NDArray[np.int32]
    ring_start: NDArray[np.int64]
    is_hole: NDArray[np.bool_]
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


def pixel_outlines(index: NDArray[np.int32], n: int) -> Outlines:
    """Trace every object along the edges of its pixels.

    Filling the rings by the even-odd rule gives exactly the same pixels.

    Parameters
    ----------
    index
        int32 image (y, x), 0 for background, objects 1..n. Not changed.
    n
        The number of objects.
    """
    traced = _traced(np.ascontiguousarray(index), False, False)
    vertices, start, label = _split_where_touching(*traced)
    is_hole = _doubled_areas(vertices, start) < 0
    order = np.lexsort((is_hole, label))
    vertices, start = _reordered(vertices, start, order)
    return Outlines(
        vertices_xy=vertices,
        ring_start=start,
        is_hole=is_hole[order],
        first_ring=np.searchsorted(label[order], np.arange(1, n + 2)),
    )


def imagescope_vertices(index: NDArray[np.int32], n: int) -> list[NDArray[np.int32]]:
    """Trace every object so that `rasterize` gives exactly the same pixels back.

    ImageScope knows one closed line per object. It runs through the centres of
    the object's border pixels, which the reader's fill includes. Holes and
    separate parts are joined to it by bridges, lines that go forth and back:
    a bridge covers no pixel by itself, so objects with holes, with several
    parts, of one pixel or one pixel wide come back unchanged as well.

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
    vertices, start, label, _ = _traced(np.ascontiguousarray(index), True, True)
    vertices, start = _without_straight(vertices, start, index.shape[0], index.shape[1])
    order = np.argsort(label, kind="stable")
    first = np.searchsorted(label[order], np.arange(1, n + 2))
    rings = [vertices[start[ring] : start[ring + 1]] for ring in order]
    return [joined(rings[first[row] : first[row + 1]]) for row in range(n)]


def imagescope_polygons(
    labels: LabelImage,
    *,
    ambiguous: NDArray[np.bool_] | None = None,
    ambiguous_class: str = "Ambiguous",
) -> tuple[Polygon, ...]:
    """Turn a label image into the polygons of an ImageScope file.

    Written by `write_annotation`, read and filled again, they give the same
    pixels, classes and ambiguous area. Ids become running numbers then.

    Parameters
    ----------
    labels
        The objects, in the order in which they are written.
    ambiguous
        bool image (y, x) of the excluded area, written last, one polygon per
        8-connected piece.
    ambiguous_class
        The name of its class.
    """
    rows = imagescope_vertices(labels.index, len(labels))
    objects = zip(labels.ids.tolist(), labels.class_names_of_objects(), rows, strict=True)
    polygons = [Polygon(id_, str(name), xy.astype(np.float64)) for id_, name, xy in objects]
    if ambiguous is not None:
        pieces = components(np.ascontiguousarray(ambiguous).view(np.uint8))
        after = int(labels.ids.max(initial=0))
        outlines = imagescope_vertices(pieces, int(pieces.max(initial=0)))
        polygons += [
            Polygon(after + number, ambiguous_class, xy.astype(np.float64))
            for number, xy in enumerate(outlines, start=1)
        ]
    return tuple(polygons)


def _with_their_holes(
    exteriors: list[NDArray[np.int32]], holes: list[NDArray[np.int32]]
) -> tuple[Part, ...]:
    """Assign each hole to the smallest exterior around the object's pixel beside it."""
    sizes = [abs(int(_doubled_area(ring))) for ring in exteriors]
    smallest_first = np.argsort(sizes, kind="stable").tolist()
    owned: dict[int, list[NDArray[np.int32]]] = {number: [] for number in smallest_first}
    for hole in holes:
        x, y = _beside(hole)
        owner = next(number for number in smallest_first if _contains(exteriors[number], x, y))
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
    line = rings[0]
    for ring in rings[1:]:
        at, start = _nearest(line, ring)
        detour = np.concatenate([ring[start:], ring[: start + 1], line[at : at + 1]])
        line = np.concatenate([line[: at + 1], detour, line[at + 1 :]])
    return line


def _nearest(line: NDArray[np.int32], ring: NDArray[np.int32]) -> tuple[int, int]:
    """Find where a short bridge from a line to a ring can stand."""
    # Exact for the line's vertex; the ring's is the best one seen from there.
    at = int(np.argmin(_squared_distances(line, ring[0])))
    start = int(np.argmin(_squared_distances(ring, line[at])))
    return int(np.argmin(_squared_distances(line, ring[start]))), start


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


@compiled
def _is(index: NDArray[np.int32], y: int, x: int, label: np.int32) -> bool:
    inside = 0 <= y < index.shape[0] and 0 <= x < index.shape[1]
    return inside and bool(index[y, x] == label)


@compiled
def _longer(array: NDArray[_Whole]) -> NDArray[_Whole]:
    result = np.empty((2 * len(array), array.shape[1]), array.dtype)
    result[: len(array)] = array
    return result


@compiled
def _traced(
    index: NDArray[np.int32], joining: bool, by_pixel: bool
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
    """Walk once along every border between an object and what is not this object.

    The object is on the walker's right. Each border has an edge with the
    object below it, so that looking at the upper edges of pixels finds all.

    Parameters
    ----------
    index
        int32 (y, x), 0 for background.
    joining
        Where two pixels of the object touch by a corner only: whether to cross
        over from one to the other.
    by_pixel
        Give the pixels walked along instead of the corners turned.

    Returns
    -------
    vertices
        int32 (m, 2): x, y.
    start
        int64 (r + 1,): where each ring starts.
    label
        int32 (r,): whose border it is.
    touching
        bool (r,): whether the walk passed two pixels that touch by a corner.
    """
    height, width = index.shape
    step_x = np.array([1, 0, -1, 0])  # east, south, west, north
    step_y = np.array([0, 1, 0, -1])
    seen = np.zeros((height, width), np.bool_)
    vertices = np.empty((4096, 2), np.int32)
    rings = np.empty((1024, 2), np.int32)  # label, touching
    ends = np.empty((1024, 1), np.int64)
    n_rings = 0
    used = 0
    for top in range(height):
        for left in range(width):
            label = index[top, left]
            if label == 0 or seen[top, left] or (top > 0 and index[top - 1, left] == label):
                continue
            y, x, way = top, left, 0
            touching = 0
            first = used
            while True:
                if way == 0:
                    if seen[y, x]:
                        break
                    seen[y, x] = True
                if used + 2 > len(vertices):
                    vertices = _longer(vertices)
                if by_pixel and (
                    used == first or vertices[used - 1, 0] != x or (vertices[used - 1, 1] != y)
                ):
                    vertices[used, 0] = x
                    vertices[used, 1] = y
                    used += 1
                # The two pixels ahead, to the right and to the left of the line walked on.
                right_y, right_x = y + step_y[way], x + step_x[way]
                left_y, left_x = right_y + step_y[way - 1], right_x + step_x[way - 1]
                on_right = _is(index, right_y, right_x, label)
                on_left = _is(index, left_y, left_x, label)
                if on_left and not on_right:
                    touching = 1
                if on_right and not on_left:
                    y, x = right_y, right_x
                    continue
                if not by_pixel:
                    # The corner ahead of the pixel on its left.
                    vertices[used, 0] = x + (way == 0 or way == 1)
                    vertices[used, 1] = y + (way == 1 or way == 2)
                    used += 1
                if on_left and (on_right or joining):
                    y, x, way = left_y, left_x, (way + 3) % 4
                else:
                    way = (way + 1) % 4
            if (
                by_pixel
                and used > first + 1
                and (
                    vertices[used - 1, 0] == vertices[first, 0]
                    and vertices[used - 1, 1] == vertices[first, 1]
                )
            ):
                used -= 1
            if n_rings == len(rings):
                rings = _longer(rings)
                ends = _longer(ends)
            rings[n_rings, 0] = label
            rings[n_rings, 1] = touching
            ends[n_rings, 0] = used
            n_rings += 1
    start = np.zeros(n_rings + 1, np.int64)
    start[1:] = ends[:n_rings, 0]
    return (
        vertices[:used].copy(),
        start,
        rings[:n_rings, 0].copy(),
        rings[:n_rings, 1] == 1,
    )


def _split_where_touching(
    vertices: NDArray[np.int32],
    start: NDArray[np.int64],
    label: NDArray[np.int32],
    touching: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Split rings that come twice through a corner into rings that do not.

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
    new_vertices, new_start, source = _split(vertices, start, earlier)
    return new_vertices, new_start, label[source]


@compiled
def _split(
    vertices: NDArray[np.int32], start: NDArray[np.int64], earlier: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Cut a loop off a ring wherever it comes back to a corner.

    Parameters
    ----------
    vertices, start
        The rings.
    earlier
        int64 (m,): for each vertex the number of an equal one before it in the
        same ring, or -1.

    Returns
    -------
    vertices, start
        The rings that are left.
    source
        int64 (r,): which ring each is from.
    """
    most = len(start) - 1 + np.count_nonzero(earlier >= 0)
    result = np.empty_like(vertices)
    new_start = np.zeros(most + 1, np.int64)
    source = np.empty(most, np.int64)
    count = 0
    used = 0
    # The walk so far without the loops cut off from it, and each vertex's place in it.
    walk = np.empty(len(vertices), np.int64)
    place = np.full(len(vertices), -1, np.int64)
    for ring in range(len(start) - 1):
        length = 0
        for i in range(start[ring], start[ring + 1] + 1):
            ends = i == start[ring + 1]
            corner = 0
            if not ends:
                corner = place[earlier[i]] if earlier[i] >= 0 else -1
                if corner < 0:
                    walk[length] = i
                    place[i] = length
                    length += 1
                    continue
            for k in range(corner, length):
                result[used] = vertices[walk[k]]
                used += 1
                if k > corner:
                    place[walk[k]] = -1
            source[count] = ring
            count += 1
            new_start[count] = used
            length = corner + 1
    return result, new_start[: count + 1], source[:count]


@compiled
def _without_straight(
    vertices: NDArray[np.int32], start: NDArray[np.int64], height: int, width: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Leave out pixels in the middle of straight stretches that are walked once.

    A pixel that is walked twice stays a vertex: the two lines over it cancel
    each other in the fill, and only vertices are sure to be covered.
    """
    visits = np.zeros((height, width), np.uint8)
    for i in range(len(vertices)):
        x, y = vertices[i]
        visits[y, x] = min(2, visits[y, x] + 1)
    result = np.empty_like(vertices)
    new_start = np.zeros_like(start)
    used = 0
    for ring in range(len(start) - 1):
        first, last = start[ring], start[ring + 1] - 1
        for i in range(first, last + 1):
            before = vertices[i - 1 if i > first else last]
            after = vertices[i + 1 if i < last else first]
            x, y = vertices[i]
            straight = x - before[0] == after[0] - x and y - before[1] == after[1] - y
            if last == first or not straight or visits[y, x] > 1:
                result[used] = vertices[i]
                used += 1
        new_start[ring + 1] = used
    return result[:used].copy(), new_start


@compiled
def _doubled_area(ring: NDArray[np.int32]) -> np.int64:
    """Return twice the signed area: positive for an exterior, negative for a hole."""
    total = np.int64(0)
    for i in range(len(ring)):
        x0, y0 = ring[i - 1]
        x1, y1 = ring[i]
        total += np.int64(x0) * np.int64(y1) - np.int64(x1) * np.int64(y0)
    return total


@compiled
def _doubled_areas(vertices: NDArray[np.int32], start: NDArray[np.int64]) -> NDArray[np.int64]:
    areas = np.empty(len(start) - 1, np.int64)
    for ring in range(len(areas)):
        areas[ring] = _doubled_area(vertices[start[ring] : start[ring + 1]])
    return areas


@compiled
def _contains(ring: NDArray[np.int32], x: float, y: float) -> bool:
    """Return whether a point that is on no edge lies inside a ring along pixel edges."""
    inside = False
    for i in range(len(ring)):
        x0, y0 = ring[i - 1]
        y1 = ring[i, 1]
        if (y0 > y) != (y1 > y) and x0 > x:
            inside = not inside
    return inside
