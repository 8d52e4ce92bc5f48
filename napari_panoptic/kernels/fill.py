"""Compiled loops over polygons: which pixels they cover, and whether they cross themselves.

Many polygons lie in flat arrays, see `napari_panoptic.io.formats.polygons.model.Polygons`. A row
of pixels that a polygon covers is a *span*: row, first column, column after the last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled
from napari_panoptic.kernels.sorting import order_of, sort

Flat = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64], bool]
"""Vertices (x, y), where each ring starts among them, whether it is a hole, where each object
starts among the rings, and the rule: True if vertices are pixels (see `_vertex_spans`), False if
objects have the pixels whose centres lie inside (see `_object_spans`)."""

Window = tuple[int, int, int, int]
"""y0, x0, y1, x1 in px, half open."""

_Room = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

DEGENERATE = 1
"""Bit of `odd_shapes`: fewer than three different vertices."""
CROSSING = 2
"""Bit of `odd_shapes`: an outline crosses itself."""

_MANY = 64
"""Number of edges from which sorting them pays."""


@compiled
def draw(
    flat: Flat,
    chosen: NDArray[np.int64],
    labels: NDArray[np.int32],
    window: Window,
    image: NDArray[np.int32],
) -> None:
    """Draw objects over each other into a window.

    Parameters
    ----------
    flat
        The objects; vertices of at most 2^29.
    chosen
        int64 (m,): rows of objects in drawing order: a later one covers an
        earlier one.
    labels
        int32 (n,): the label of each object; labels may repeat.
    window
        Position of the window.
    image
        int32 (y, x): the pixels of the window. Changed in place.
    """
    y0, x0, _, _ = window
    room = _room(flat, chosen, window)
    for row in chosen:
        spans, count = _object_spans(flat, row, window, room)
        for k in range(count):
            y = spans[k, 0] - y0
            for x in range(spans[k, 1] - x0, spans[k, 2] - x0):
                image[y, x] = labels[row]


@compiled
def draw_counted(
    flat: Flat,
    chosen: NDArray[np.int64],
    labels: NDArray[np.int32],
    window: Window,
    image: NDArray[np.int32],
    visible: NDArray[np.int64],
    claimed_twice: NDArray[np.bool_],
) -> int:
    """Draw objects over each other into a part of an image, and count what they cover.

    Parameters
    ----------
    flat, chosen
        As in `draw`.
    labels
        int32 (n,): the label of each object, positive and unique.
    window
        The part of the image to draw.
    image
        int32 (y, x): the whole image. Changed in place.
    visible
        int64 (highest label + 1,): the number of pixels of each label. Changed
        in place.
    claimed_twice
        bool (y, x): pixels on which a second object was drawn. Changed in place.

    Returns
    -------
    The number of pixels set in ``claimed_twice``.
    """
    room = _room(flat, chosen, window)
    newly = 0
    for row in chosen:
        label = labels[row]
        spans, count = _object_spans(flat, row, window, room)
        for k in range(count):
            y, begin = spans[k, 0], spans[k, 1]
            pixels = image[y, begin : spans[k, 2]]
            below = np.int32(0)
            for x in range(len(pixels)):
                below |= pixels[x]
            if below == 0:
                pixels[:] = label
                visible[label] += len(pixels)
                continue
            for x in range(len(pixels)):
                earlier = pixels[x]
                if earlier == label:
                    continue
                pixels[x] = label
                visible[label] += 1
                if earlier > 0:
                    visible[earlier] -= 1
                    newly += not claimed_twice[y, begin + x]
                    claimed_twice[y, begin + x] = True
    return newly


@compiled
def draw_where_free(
    flat: Flat, chosen: NDArray[np.int64], labels: NDArray[np.int32], image: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Draw those objects that share no pixel with what is drawn already.

    Parameters
    ----------
    flat, chosen, labels
        As in `draw`.
    image
        int32 (y, x): the whole image. Changed in place.

    Returns
    -------
    bool (m,): whether each of the chosen was drawn; True also without a pixel.
    """
    window = (0, 0, image.shape[0], image.shape[1])
    room = _room(flat, chosen, window)
    drawn = np.ones(len(chosen), np.bool_)
    for place in range(len(chosen)):
        spans, count = _object_spans(flat, chosen[place], window, room)
        for k in range(count):
            if image[spans[k, 0], spans[k, 1] : spans[k, 2]].any():
                drawn[place] = False
                break
        for k in range(count if drawn[place] else 0):
            image[spans[k, 0], spans[k, 1] : spans[k, 2]] = labels[chosen[place]]
    return drawn


@compiled
def have_pixels(flat: Flat, chosen: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return bool (m,): whether each chosen object has a pixel in an image of this shape."""
    window = (0, 0, shape[0], shape[1])
    room = _room(flat, chosen, window)
    found = np.zeros(len(chosen), np.bool_)
    for k in range(len(chosen)):
        spans, count = _object_spans(flat, chosen[k], window, room)
        for m in range(count):
            found[k] |= spans[m, 1] < spans[m, 2]
    return found


@compiled
def bounds(flat: Flat) -> NDArray[np.int64]:
    """Return int64 (n, 4): the box y0, x0, y1, x1 of each object, half open, empty if it is."""
    xy, ring_starts, _, object_starts, by_vertex = flat
    result = np.empty((len(object_starts) - 1, 4), np.int64)
    for row in range(len(result)):
        first, last = ring_starts[object_starts[row]], ring_starts[object_starts[row + 1]]
        result[row] = _box(xy[first:last], by_vertex)
    return result


@compiled
def _box(xy: NDArray[np.float64], by_vertex: bool) -> Window:
    """Return the box of the pixels that an outline can have."""
    if len(xy) == 0:
        return 0, 0, 0, 0
    low_x = high_x = xy[0, 0]
    low_y = high_y = xy[0, 1]
    for i in range(1, len(xy)):
        low_x, high_x = min(low_x, xy[i, 0]), max(high_x, xy[i, 0])
        low_y, high_y = min(low_y, xy[i, 1]), max(high_y, xy[i, 1])
    if by_vertex:
        return int(low_y), int(low_x), int(high_y) + 1, int(high_x) + 1
    return int(np.floor(low_y)), int(np.floor(low_x)), int(np.ceil(high_y)), int(np.ceil(high_x))


@compiled
def _room(flat: Flat, chosen: NDArray[np.int64], window: Window) -> _Room:
    """Allocate buffers for the largest object: ends of lines, crossings, and spans."""
    xy, ring_starts, _, object_starts, by_vertex = flat
    y0, _, y1, _ = window
    most_crossings, most_spans = 0, 0
    for row in chosen:
        crossings = 0
        for ring in range(object_starts[row], object_starts[row + 1]):
            j = ring_starts[ring + 1] - 1
            for i in range(ring_starts[ring], ring_starts[ring + 1]):
                low, high = _lines_crossed(xy[i, 1], xy[j, 1], by_vertex, y0 - 1, y1)
                crossings += max(0, high - low)
                j = i
        vertices = ring_starts[object_starts[row + 1]] - ring_starts[object_starts[row]]
        most_crossings = max(most_crossings, crossings)
        most_spans = max(most_spans, crossings + vertices)
    return (
        np.empty(y1 - y0 + 2, np.int64),
        np.empty(2 * most_crossings, np.int64),
        np.empty(3 * most_spans, np.int64),
    )


@compiled
def _object_spans(
    flat: Flat, row: int, window: Window, room: _Room
) -> tuple[NDArray[np.int64], int]:
    """Return the spans of an object in a window, some possibly repeated or empty; their number.

    Where vertices are pixels, see `_vertex_spans`. Otherwise a pixel belongs to
    the object if its centre lies inside one of its parts: if the number of edges
    crossed on the way from it to the left is odd, whichever rings of the part
    they belong to. (An edge is crossed if exactly one of its ends lies below the
    centre; it is on the left also if the centre lies exactly on it.) So a centre
    on an upper or left edge lies inside, on a lower or right one outside: parts
    that share an edge share no pixel, and leave none between them.

    Crossings are computed in float64: exact for axis-parallel edges; a centre
    within rounding error of a slanted edge can fall on either side.
    """
    xy, ring_starts, is_hole, object_starts, by_vertex = flat
    spans = room[2].reshape(-1, 3)
    count = 0
    first, last = object_starts[row], object_starts[row + 1]
    while first < last:
        end = first + 1
        while end < last and is_hole[end]:
            end += 1
        starts = ring_starts[first : end + 1]
        count += _part_spans(xy, starts, by_vertex, window, room, spans[count:])
        first = end
    return spans, count


@compiled
def _part_spans(
    xy: NDArray[np.float64],
    starts: NDArray[np.int64],
    by_vertex: bool,
    window: Window,
    room: _Room,
    spans: NDArray[np.int64],
) -> int:
    """Write the spans of a part, an outline with its holes; return their number."""
    own = xy[starts[0] : starts[-1]]
    box = _box(own, by_vertex)
    first, left = max(box[0], window[0]), max(box[1], window[1])
    end, right = min(box[2], window[2]), min(box[3], window[3])
    if first >= end or left >= right:
        return 0
    stops, crossings = room[0], room[1].reshape(-1, 2)
    _cross(xy, starts, by_vertex, first - by_vertex, end, stops, crossings)
    if by_vertex:
        return _vertex_spans(own, (first, left, end, right), stops, crossings, spans)
    count = begin = 0
    for y in range(first, end):
        stop = stops[y - first]
        sort(crossings[begin:stop, 0])
        for k in range(begin, stop, 2):
            from_, to = max(crossings[k, 0], left), min(crossings[k + 1, 0], right)
            if from_ < to:
                spans[count, 0], spans[count, 1], spans[count, 2] = y, from_, to
                count += 1
        begin = stop
    return count


@compiled
def _lines_crossed(ya: float, yb: float, by_vertex: bool, first: int, end: int) -> tuple[int, int]:
    """Return which lines from ``first`` to ``end - 1`` an edge crosses, half open.

    By centres, line k runs through the centres of row k; by vertices, it is the
    gap between the rows k and k + 1.
    """
    low, high = min(ya, yb), max(ya, yb)
    if not by_vertex:
        low, high = np.ceil(low - 0.5), np.ceil(high - 0.5)
    return max(int(low), first), min(int(high), end)


@compiled
def _cross(
    xy: NDArray[np.float64],
    starts: NDArray[np.int64],
    by_vertex: bool,
    first: int,
    end: int,
    stops: NDArray[np.int64],
    crossings: NDArray[np.int64],
) -> None:
    """Find where the edges of a part cross the lines ``first`` to ``end - 1``.

    Parameters
    ----------
    xy, starts
        The vertices, and where each ring of the part starts among them.
    by_vertex, first, end
        As in `_lines_crossed`.
    stops
        int64: receives where each line's crossings end in ``crossings``.
    crossings
        int64 (m, 2): receives columns, line by line. By centres: the first with
        its centre on the crossing or right of it. By vertices: that of the
        crossing in the row above the gap rounded up, in the row below rounded down.
    """
    stops[: end - first + 1] = 0
    for ring in range(len(starts) - 1):
        j = starts[ring + 1] - 1
        for i in range(starts[ring], starts[ring + 1]):
            low, high = _lines_crossed(xy[i, 1], xy[j, 1], by_vertex, first, end)
            if low < high:
                stops[low - first] += 1
                stops[high - first] -= 1
            j = i
    # From how many edges begin and end in each line to where its crossings start.
    there, start = 0, 0
    for k in range(end - first):
        there += stops[k]
        stops[k] = start
        start += there
    for ring in range(len(starts) - 1):
        j = starts[ring + 1] - 1
        for i in range(starts[ring], starts[ring + 1]):
            low, high = _lines_crossed(xy[i, 1], xy[j, 1], by_vertex, first, end)
            upper, lower = (i, j) if xy[i, 1] <= xy[j, 1] else (j, i)
            xa, ya, xb, yb = xy[upper, 0], xy[upper, 1], xy[lower, 0], xy[lower, 1]
            j = i
            if low >= high:
                continue
            if not by_vertex:
                for line in range(low, high):
                    at = stops[line - first]
                    x = xa + (line + 0.5 - ya) * (xb - xa) / (yb - ya)
                    crossings[at, 0] = int(np.ceil(x - 0.5))
                    stops[line - first] = at + 1
                continue
            # The column as a whole number and a fraction rest / over, from row to row.
            along, over = int(xb) - int(xa), int(yb) - int(ya)
            step = along // over
            more = along - step * over
            whole, rest = int(xa), 0
            if low > ya:
                whole += (low - int(ya)) * along // over
                rest = (low - int(ya)) * along % over
            for line in range(low, high):
                at = stops[line - first]
                crossings[at, 0] = whole + (rest > 0)
                whole += step
                rest += more
                if rest >= over:
                    rest -= over
                    whole += 1
                crossings[at, 1] = whole
                stops[line - first] = at + 1


@compiled
def _vertex_spans(
    xy: NDArray[np.float64],
    window: Window,
    stops: NDArray[np.int64],
    crossings: NDArray[np.int64],
    spans: NDArray[np.int64],
) -> int:
    """Write the spans of a ring whose vertices are pixels; return their number.

    A pixel belongs to it if it is a vertex, or if the number of edges crossed
    on the way from it to the right is odd, or the number to the left. (An edge
    is crossed to the right if exactly one of its ends lies below the pixel's
    row, to the left if exactly one lies above it.) These are the pixels of
    ``skimage.draw.polygon``; whole-number arithmetic makes them exact.
    """
    first, left, end, right = window
    count = 0
    # Where the crossings begin and end of the gap above a row; then that below.
    a, b = 0, stops[0]
    for y in range(first, end):
        c = stops[y - first + 1]
        above, below = b - a, c - b
        if max(above, below) == 2:
            # Nearly always: one way in, one way out, almost the same on both sides.
            begin, stop = right, left
            apart = False
            if above:
                begin = min(crossings[a, 1], crossings[a + 1, 1]) + 1
                stop = max(crossings[a, 1], crossings[a + 1, 1]) + 1
            if below:
                other_begin = min(crossings[b, 0], crossings[b + 1, 0])
                other_stop = max(crossings[b, 0], crossings[b + 1, 0])
                apart = above > 0 and (begin > other_stop or other_begin > stop)
                begin, stop = min(begin, other_begin), max(stop, other_stop)
            if not apart:
                begin = max(begin, left)
                # Written even if it is empty: spans are found by their row below.
                spans[count, 0], spans[count, 1] = y, begin
                spans[count, 2] = max(begin, min(stop, right))
                count += 1
                a, b = b, c
                continue
        sort(crossings[a:b, 1])
        sort(crossings[b:c, 0])
        for k in range(a, b, 2):
            begin, stop = max(crossings[k, 1] + 1, left), min(crossings[k + 1, 1] + 1, right)
            if begin < stop:
                spans[count, 0], spans[count, 1], spans[count, 2] = y, begin, stop
                count += 1
        for k in range(b, c, 2):
            begin, stop = max(crossings[k, 0], left), min(crossings[k + 1, 0], right)
            if begin < stop:
                spans[count, 0], spans[count, 1], spans[count, 2] = y, begin, stop
                count += 1
        a, b = b, c
    rows = count
    for i in range(len(xy)):
        x, y = int(xy[i, 0]), int(xy[i, 1])
        if first <= y < end and left <= x < right:
            row = y - first
            if row < rows and spans[row, 0] == y and spans[row, 1] <= x < spans[row, 2]:
                continue
            spans[count, 0], spans[count, 1], spans[count, 2] = y, x, x + 1
            count += 1
    return count


@compiled
def odd_shapes(
    xy: NDArray[np.float64], ring_starts: NDArray[np.int64], object_starts: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Return the oddities of the rings of each object.

    Parameters
    ----------
    xy
        float64 (v, 2): the vertices, before they are truncated.
    ring_starts, object_starts
        int64: where each ring starts among them, each object among the rings.

    Returns
    -------
    uint8 (n,): `DEGENERATE` if a ring has fewer than three different vertices, or
    there is no ring; `CROSSING` if a ring crosses itself.
    """
    odd = np.zeros(len(object_starts) - 1, np.uint8)
    for row in range(len(odd)):
        first, last = object_starts[row], object_starts[row + 1]
        if first == last:
            odd[row] = DEGENERATE
        for ring in range(first, last):
            points = xy[ring_starts[ring] : ring_starts[ring + 1]]
            if not _has_three(points):
                odd[row] |= DEGENERATE
            elif crosses_itself(points):
                odd[row] |= CROSSING
    return odd


@compiled
def _has_three(xy: NDArray[np.float64]) -> bool:
    """Return whether there are three different vertices."""
    second = -1
    for i in range(1, len(xy)):
        if xy[i, 0] == xy[0, 0] and xy[i, 1] == xy[0, 1]:
            continue
        if second < 0:
            second = i
        elif xy[i, 0] != xy[second, 0] or xy[i, 1] != xy[second, 1]:
            return True
    return False


@compiled
def crosses_itself(xy: NDArray[np.float64]) -> bool:
    """Return whether two edges of a ring cross; edges that only touch do not count.

    Parameters
    ----------
    xy
        float64 (n, 2): the vertices.
    """
    n = len(xy)
    if n < 4:
        return False
    order = np.arange(n)
    if n >= _MANY:
        tops = np.minimum(xy[:, 1], np.roll(xy[:, 1], -1))
        order = order_of(tops)
    for k in range(n):
        i = order[k]
        i2 = i + 1 if i + 1 < n else 0
        low_x, high_x = min(xy[i, 0], xy[i2, 0]), max(xy[i, 0], xy[i2, 0])
        low_y, high_y = min(xy[i, 1], xy[i2, 1]), max(xy[i, 1], xy[i2, 1])
        for m in range(k + 1, n):
            j = order[m]
            j2 = j + 1 if j + 1 < n else 0
            if min(xy[j, 1], xy[j2, 1]) > high_y:
                if n >= _MANY:
                    break  # later ones lie lower still
                continue
            if (
                max(xy[j, 1], xy[j2, 1]) >= low_y
                and max(xy[j, 0], xy[j2, 0]) >= low_x
                and min(xy[j, 0], xy[j2, 0]) <= high_x
            ):
                # On which side of each edge the ends of the other lie; 0 if they share one.
                ax, ay = xy[i2, 0] - xy[i, 0], xy[i2, 1] - xy[i, 1]
                bx, by = xy[j2, 0] - xy[j, 0], xy[j2, 1] - xy[j, 1]
                of_j = ax * (xy[j, 1] - xy[i, 1]) - ay * (xy[j, 0] - xy[i, 0])
                of_j2 = ax * (xy[j2, 1] - xy[i, 1]) - ay * (xy[j2, 0] - xy[i, 0])
                of_i = bx * (xy[i, 1] - xy[j, 1]) - by * (xy[i, 0] - xy[j, 0])
                of_i2 = bx * (xy[i2, 1] - xy[j, 1]) - by * (xy[i2, 0] - xy[j, 0])
                if of_j * of_j2 < 0 and of_i * of_i2 < 0:
                    return True
    return False
