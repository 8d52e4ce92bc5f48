"""Compiled loops over polygons: which pixels they cover, and whether they cross themselves.

Many polygons lie in flat arrays, see `napari_panoptic.io.formats.polygons.model.Polygons`. A row
of pixels that a polygon covers is a *span*: row, first column, column after the last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import bands_of, compiled, in_threads

Flat = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]
"""Vertices (x, y), where each ring starts among them, whether it is a hole, and where each object
starts among the rings.

The type of the vertices tells which pixels an object has. int32 vertices are pixels that an
outline runs through, as in ImageScope; an object has one ring, see `_spans_by_vertex`. float64
vertices are points of the plane in which pixel (y, x) is the square from (x, y) to
(x + 1, y + 1), as in GeoJSON; see `_spans_by_centre`."""

Window = tuple[int, int, int, int]
"""y0, x0, y1, x1 in px, half open."""

_Room = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

_BAND = 512
"""Rows of an image that are drawn before the next are begun."""

DEGENERATE = 1
"""Bit of `odd_shapes`: fewer than three different vertices."""
CROSSING = 2
"""Bit of `odd_shapes`: an outline crosses itself."""

_MANY = 64
"""From so many edges on it pays to sort them before looking for crossings."""

_UNSURE = 1e-6
"""px: more than a crossing computed in float64 can be off, for vertices of at most 2^29 px: six
roundings of at most 2^-53 of 2^30 px."""

_SPLIT = 2.0**27 + 1
"""Times this, a float64 comes apart into two halves of its digits."""


def draw_counted(
    flat: Flat,
    chosen: NDArray[np.int64],
    labels: NDArray[np.int32],
    image: NDArray[np.int32],
    visible: NDArray[np.int64],
    claimed_twice: NDArray[np.bool_],
) -> int:
    """Draw objects over each other, and keep account of what they cover.

    Parameters
    ----------
    flat
        The objects; vertices of at most 2^29.
    chosen
        int64 (m,): rows of objects in the order in which they are drawn: a
        later one covers an earlier one.
    labels
        int32 (n,): what to write for each object, positive and each once.
    image
        int32 (y, x). Changed in place.
    visible
        int64 (highest label + 1,): how many pixels each label has. Changed in
        place.
    claimed_twice
        bool (y, x): pixels that a second object was drawn on. Changed in
        place; only touched where that is so.

    Returns
    -------
    How many pixels of ``claimed_twice`` were set.
    """

    def drawn(lines: slice) -> tuple[int, NDArray[np.int64]]:
        counted = np.zeros_like(visible)
        newly = _draw_lines(
            flat, chosen, labels, lines.start, image[lines], counted, claimed_twice[lines]
        )
        return newly, counted

    newly = 0
    for claimed, counted in in_threads(drawn, bands_of(image.shape)):
        newly += claimed
        visible += counted
    return newly


@compiled
def _draw_lines(
    flat: Flat,
    chosen: NDArray[np.int64],
    labels: NDArray[np.int32],
    top: int,
    image: NDArray[np.int32],
    visible: NDArray[np.int64],
    claimed_twice: NDArray[np.bool_],
) -> int:
    """Do so with some lines of the image, from one on."""
    height, width = image.shape
    starts, rows = _by_band(flat, chosen, top, height)
    room = _room(flat, chosen, (top, 0, top + height, width))
    newly = 0
    for band in range(len(starts) - 1):
        begin = top + band * _BAND
        window = (begin, 0, min(begin + _BAND, top + height), width)
        for row in rows[starts[band] : starts[band + 1]]:
            spans, count = _object_spans(flat, row, window, room)
            newly += _write(spans[:count], labels[row], top, image, visible, claimed_twice)
    return newly


@compiled
def _write(
    spans: NDArray[np.int64],
    label: int,
    top: int,
    image: NDArray[np.int32],
    visible: NDArray[np.int64],
    claimed_twice: NDArray[np.bool_],
) -> int:
    """Write an object's spans for `draw_counted`; give how many pixels are newly claimed twice."""
    newly = 0
    for k in range(len(spans)):
        y, begin, end = spans[k, 0] - top, spans[k, 1], spans[k, 2]
        pixels = image[y, begin:end]
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
    """Draw those objects that share no pixel with one drawn before.

    Parameters
    ----------
    flat, chosen, labels
        As in `draw_counted`.
    image
        int32 (y, x). Changed in place.

    Returns
    -------
    bool (m,): whether each of the chosen was drawn; also where it has no pixel.
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
def draw_window(
    flat: Flat,
    chosen: NDArray[np.int64],
    labels: NDArray[np.int32],
    y0: int,
    x0: int,
    image: NDArray[np.integer | np.bool_],
) -> None:
    """Draw objects over each other into a window of the image.

    Parameters
    ----------
    flat, chosen, labels
        As in `draw_counted`; labels may repeat.
    y0, x0
        Where the window lies.
    image
        (y, x), the window. Changed in place.
    """
    window = (y0, x0, y0 + image.shape[0], x0 + image.shape[1])
    room = _room(flat, chosen, window)
    for row in chosen:
        spans, count = _object_spans(flat, row, window, room)
        for k in range(count):
            y = spans[k, 0] - y0
            for x in range(spans[k, 1] - x0, spans[k, 2] - x0):
                image[y, x] = labels[row]


@compiled
def _by_band(
    flat: Flat, chosen: NDArray[np.int64], top: int, height: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort objects into bands of so many rows from one on, in each in the given order.

    Drawn band by band, an image stays in the cache wherever its objects lie.

    Returns
    -------
    starts
        int64 (bands + 1,): where the rows of each band start.
    rows
        int64: rows of objects; an object is in every band that it touches.
    """
    bands = np.zeros((len(chosen), 2), np.int64)
    starts = np.zeros((height + _BAND - 1) // _BAND + 2, np.int64)
    for k in range(len(chosen)):
        y0, _, y1, _ = _object_box(flat, chosen[k])
        bands[k, 0] = max(y0 - top, 0) // _BAND
        bands[k, 1] = (min(y1 - top, height) + _BAND - 1) // _BAND  # none where it is above first
        for band in range(bands[k, 0], bands[k, 1]):
            starts[band + 2] += 1
    starts = np.cumsum(starts)
    rows = np.empty(starts[-1], np.int64)
    for k in range(len(chosen)):
        for band in range(bands[k, 0], bands[k, 1]):
            rows[starts[band + 1]] = chosen[k]
            starts[band + 1] += 1
    return starts[:-1], rows


@compiled
def boxes_by_tile(
    boxes: NDArray[np.int64], tile_px: int, rows: int, columns: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Sort boxes into the tiles that they touch.

    Parameters
    ----------
    boxes
        int64 (n, 4): y0, x0, y1, x1, half open, inside the grid or empty.
    tile_px
        Edge of a tile.
    rows, columns
        How many tiles there are.

    Returns
    -------
    starts
        int64 (rows * columns + 1,): where each tile starts among the places.
    places
        int32: places of boxes, ascending within a tile.
    """
    starts = np.zeros(rows * columns + 2, np.int64)
    for place in range(len(boxes)):
        for row in range(boxes[place, 0] // tile_px, -(-boxes[place, 2] // tile_px)):
            for column in range(boxes[place, 1] // tile_px, -(-boxes[place, 3] // tile_px)):
                starts[row * columns + column + 2] += 1
    starts = np.cumsum(starts)
    places = np.empty(starts[-1], np.int32)
    for place in range(len(boxes)):
        for row in range(boxes[place, 0] // tile_px, -(-boxes[place, 2] // tile_px)):
            for column in range(boxes[place, 1] // tile_px, -(-boxes[place, 3] // tile_px)):
                tile = row * columns + column
                places[starts[tile + 1]] = place
                starts[tile + 1] += 1
    return starts[:-1], places


@compiled
def have_pixels(flat: Flat, chosen: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return bool (m,): whether each of some objects has a pixel in an image of this shape."""
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
    """Give int64 (n, 4): the box y0, x0, y1, x1 of each object, half open, empty without vertex."""
    result = np.empty((len(flat[3]) - 1, 4), np.int64)
    for row in range(len(result)):
        result[row] = _object_box(flat, row)
    return result


@compiled
def _object_box(flat: Flat, row: int) -> Window:
    """Return the box of an object, empty without vertex."""
    xy, ring_starts, _, object_starts = flat
    first = ring_starts[object_starts[row]]
    last = ring_starts[object_starts[row + 1]]
    return _box(xy[first:last]) if first < last else (0, 0, 0, 0)


@compiled
def _box(xy: NDArray[Any]) -> Window:
    """Return the box y0, x0, y1, x1 around vertices, of which there is at least one."""
    low_x = high_x = xy[0, 0]
    low_y = high_y = xy[0, 1]
    for i in range(1, len(xy)):
        low_x, high_x = min(low_x, xy[i, 0]), max(high_x, xy[i, 0])
        low_y, high_y = min(low_y, xy[i, 1]), max(high_y, xy[i, 1])
    y0, y1 = _pixels(low_y, high_y)
    x0, x1 = _pixels(low_x, high_x)
    return y0, x0, y1, x1


def _pixels(low: float, high: float) -> tuple[int, int]:
    """Return the first pixel from ``low`` to ``high``, and the one after the last."""
    raise NotImplementedError


def _pixels_by_type(low: Any, high: Any) -> Callable[..., Any]:  # noqa: ARG001
    if isinstance(low, types.Integer):
        return lambda low, high: (np.int64(low), np.int64(high) + 1)
    return lambda low, high: (int(np.floor(low)), int(np.ceil(high)))


overload(_pixels, strict=False)(_pixels_by_type)


@compiled
def _room(flat: Flat, chosen: NDArray[np.int64], window: Window) -> _Room:
    """Allocate what the largest object needs: rows, crossings per row, and spans."""
    xy, ring_starts, _, object_starts = flat
    y0, _, y1, _ = window
    most_crossings, most_spans = 0, 0
    for row in chosen:
        crossings = 0
        for ring in range(object_starts[row], object_starts[row + 1]):
            first, last = ring_starts[ring], ring_starts[ring + 1]
            for i in range(first, last):
                j = i + 1 if i + 1 < last else first
                low, end = _pixels(min(xy[i, 1], xy[j, 1]), max(xy[i, 1], xy[j, 1]))
                crossings += max(0, min(end, y1) - max(low, y0 - 1))
        vertices = ring_starts[object_starts[row + 1]] - ring_starts[object_starts[row]]
        most_crossings = max(most_crossings, crossings)
        most_spans = max(most_spans, crossings + vertices)
    return (
        np.empty(y1 - y0 + 2, np.int64),
        np.empty(2 * most_crossings, np.int64),
        np.empty(3 * most_spans, np.int64),
    )


def _object_spans(
    flat: Flat, row: int, window: Window, room: _Room
) -> tuple[NDArray[np.int64], int]:
    """Return the spans of an object in a window, some perhaps twice or empty; and their number."""
    raise NotImplementedError


def _object_spans_by_type(flat: Any, row: Any, window: Any, room: Any) -> Callable[..., Any]:  # noqa: ARG001
    if isinstance(flat[0].dtype, types.Integer):
        return lambda flat, row, window, room: _spans_by_vertex(flat, row, window, room)
    return lambda flat, row, window, room: _spans_by_centre(flat, row, window, room)


# The rule is chosen by the vertices' type when a kernel is compiled: who reads one form never waits
# for the loops of the other. (Not strict: numba would compare annotations, too.)
overload(_object_spans, strict=False)(_object_spans_by_type)


@compiled
def _spans_by_centre(
    flat: Flat, row: int, window: Window, room: _Room
) -> tuple[NDArray[np.int64], int]:
    """Return the spans of an object that has the pixels whose centres lie inside.

    A centre lies inside a part if the number of edges crossed on the way from
    it to the left is odd, whichever rings of the part they belong to; and inside
    an object if it lies inside a part. (An edge is crossed if exactly one of its
    ends lies below the centre; it is on the left also where the centre lies
    exactly on it.) So a centre on an upper or left edge lies inside, on a lower
    or right one outside: parts that share an edge share no pixel, and leave
    none between them.

    This is exact for the given float64 values, as long as those that are not 0
    are at least 1e-100: products of smaller ones lose digits.
    """
    xy, ring_starts, is_hole, object_starts = flat
    spans = room[2].reshape(-1, 3)
    count = 0
    first, last = object_starts[row], object_starts[row + 1]
    while first < last:
        end = first + 1
        while end < last and is_hole[end]:
            end += 1
        count += _part_spans(xy, ring_starts[first : end + 1], window, room, spans[count:])
        first = end
    return spans, count


@compiled
def _part_spans(
    xy: NDArray[np.float64],
    starts: NDArray[np.int64],
    window: Window,
    room: _Room,
    spans: NDArray[np.int64],
) -> int:
    """Write the spans of a part, an outline with its holes; give their number."""
    if starts[0] == starts[-1]:
        return 0
    box = _box(xy[starts[0] : starts[-1]])
    first, left = max(box[0], window[0]), max(box[1], window[1])
    end, right = min(box[2], window[2]), min(box[3], window[3])
    if first >= end or left >= right:
        return 0
    stops, columns, _ = room
    _cross_centres(xy, starts, (first, left, end, right), stops, columns)
    count = 0
    begin = 0
    for y in range(first, end):
        stop = stops[y - first]
        if stop - begin == 2:  # nearly always: one way in, one way out
            one, other = columns[begin], columns[begin + 1]
            columns[begin], columns[begin + 1] = min(one, other), max(one, other)
        else:
            _sort(columns[begin:stop])
        for k in range(begin, stop, 2):
            if columns[k] < columns[k + 1]:
                spans[count, 0], spans[count, 1], spans[count, 2] = y, columns[k], columns[k + 1]
                count += 1
        begin = stop
    return count


@compiled
def _cross_centres(
    xy: NDArray[np.float64],
    starts: NDArray[np.int64],
    window: Window,
    stops: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> None:
    """Find where edges cross the lines through the centres of rows.

    Parameters
    ----------
    xy
        float64 (n, 2): the vertices.
    starts
        int64 (r + 1,): where each ring starts among them.
    window
        The pixels that matter.
    stops
        int64: receives where each row's crossings end in ``columns``.
    columns
        int64: receives, row by row, the first column with its centre on the
        crossing or right of it, cut to the window.
    """
    first, left, end, right = window
    stops[: end - first + 1] = 0
    for ring in range(len(starts) - 1):
        j = starts[ring + 1] - 1
        for i in range(starts[ring], starts[ring + 1]):
            low, high = _rows_between(xy[i, 1], xy[j, 1], first, end)
            if low < high:
                stops[low - first] += 1
                stops[high - first] -= 1
            j = i
    # From how many edges begin and end in each row to where its crossings start.
    there, start = 0, 0
    for k in range(end - first):
        there += stops[k]
        stops[k] = start
        start += there
    for ring in range(len(starts) - 1):
        j = starts[ring + 1] - 1
        for i in range(starts[ring], starts[ring + 1]):
            low, high = _rows_between(xy[i, 1], xy[j, 1], first, end)
            upper, lower = (i, j) if xy[i, 1] <= xy[j, 1] else (j, i)
            xa, ya, xb, yb = xy[upper, 0], xy[upper, 1], xy[lower, 0], xy[lower, 1]
            for y in range(low, high):
                at = stops[y - first]
                columns[at] = _first_column(xa, ya, xb, yb, y, left, right)
                stops[y - first] = at + 1
            j = i


@compiled
def _rows_between(ya: float, yb: float, first: int, end: int) -> tuple[int, int]:
    """Return the rows of a window with centres from the upper of two heights to above the lower."""
    low, high = int(np.ceil(min(ya, yb) - 0.5)), int(np.ceil(max(ya, yb) - 0.5))
    return max(low, first), min(high, end)


@compiled
def _first_column(
    xa: float, ya: float, xb: float, yb: float, row: int, left: int, right: int
) -> int:
    """Return the first column with its centre on an edge or right of it, cut to a window.

    Parameters
    ----------
    xa, ya, xb, yb
        Ends of the edge, the upper one first.
    row
        A row that it crosses.
    left, right
        The window.
    """
    x = xa + (row + 0.5 - ya) / (yb - ya) * (xb - xa) - 0.5
    column = int(np.rint(x))
    if abs(x - column) > _UNSURE:
        column = int(np.ceil(x))
    elif left <= column < right and _turn(xa, ya, xb, yb, column + 0.5, row + 0.5) < 0:
        column += 1
    return max(left, min(column, right))


@compiled
def _turn(xa: float, ya: float, xb: float, yb: float, x: float, y: float) -> float:
    """Return a number with the exact sign of (x - xa)(yb - ya) - (y - ya)(xb - xa).

    It is positive where a point lies right of an edge that leads down. The
    products of the coordinates are added up without rounding, as a sum of
    numbers whose digits do not overlap (Shewchuk 1997, Adaptive precision
    floating-point arithmetic and fast robust geometric predicates).
    """
    parts = np.empty(12, np.float64)  # the smallest first, none of them 0
    n = 0
    for p, q in ((x, yb), (-x, ya), (-xa, yb), (-y, xb), (y, xa), (ya, xb)):
        product = p * q
        for term in (_rounded_off(p, q, product), product):
            rest = term
            kept = 0
            for k in range(n):
                total = rest + parts[k]
                added = total - rest
                lost = (rest - (total - added)) + (parts[k] - added)
                rest = total
                if lost != 0:
                    parts[kept] = lost
                    kept += 1
            if rest != 0:
                parts[kept] = rest
                kept += 1
            n = kept
    return parts[n - 1] if n else 0.0


@compiled
def _rounded_off(p: float, q: float, product: float) -> float:
    """Return exactly by how much the product of two numbers is larger than what was computed."""
    p_high, q_high = p * _SPLIT - (p * _SPLIT - p), q * _SPLIT - (q * _SPLIT - q)
    p_low, q_low = p - p_high, q - q_high
    rest = product - p_high * q_high - p_low * q_high - p_high * q_low
    return p_low * q_low - rest


@compiled
def _spans_by_vertex(
    flat: Flat, row: int, window: Window, room: _Room
) -> tuple[NDArray[np.int64], int]:
    """Return the spans of an object of one ring that has its vertices for pixels.

    A pixel belongs to it if it is a vertex, or if the number of edges crossed
    on the way from it to the right is odd, or the number to the left. (An edge
    is crossed to the right if exactly one of its ends lies below the pixel's
    row, to the left if exactly one lies above it.) These are the pixels of
    ``skimage.draw.polygon``; whole-number arithmetic makes them exact.
    """
    xy, ring_starts, _, object_starts = flat
    first, last = ring_starts[object_starts[row]], ring_starts[object_starts[row + 1]]
    return room[2].reshape(-1, 3), _ring_spans(xy[first:last], window, room)


@compiled
def _ring_spans(xy: NDArray[np.int32], window: Window, room: _Room) -> int:
    """Write the spans of a ring in a window, some perhaps twice or empty; give their number."""
    n = len(xy)
    if n == 0:
        return 0
    box = _box(xy)
    first, left = max(box[0], window[0]), max(box[1], window[1])
    end, right = min(box[2], window[2]), min(box[3], window[3])
    if first >= end or left >= right:
        return 0
    stops, crossings, flat_spans = room
    spans = flat_spans.reshape(-1, 3)
    _cross(xy, first, end, stops, crossings.reshape(-1, 2))
    rows = count = _between(first, end, left, right, stops, crossings.reshape(-1, 2), spans)
    for i in range(n):
        x, y = xy[i, 0], xy[i, 1]
        if first <= y < end and left <= x < right:
            row = y - first
            if row < rows and spans[row, 0] == y and spans[row, 1] <= x < spans[row, 2]:
                continue
            spans[count, 0], spans[count, 1], spans[count, 2] = y, x, x + 1
            count += 1
    return count


@compiled
def _cross(
    xy: NDArray[np.int32],
    first: int,
    end: int,
    stops: NDArray[np.int64],
    crossings: NDArray[np.int64],
) -> None:
    """Find where edges cross the rows ``first`` to ``end - 1``.

    Between each row and the next lies a gap; the first of them is that above
    ``first``. An edge that spans a gap is crossed to the right in the row above
    it, and to the left in the row below.

    Parameters
    ----------
    xy
        int32 (n, 2): the vertices of a ring.
    first, end
        The rows.
    stops
        int64: receives where each gap's crossings end in ``crossings``.
    crossings
        int64 (m, 2): receives, gap by gap, the columns of the crossings: in
        the row above rounded up, in the row below rounded down.
    """
    n = len(xy)
    top = first - 1
    gaps = end - top
    stops[:gaps] = 0
    for i in range(n):
        j = i + 1 if i + 1 < n else 0
        low, high = min(xy[i, 1], xy[j, 1]), max(xy[i, 1], xy[j, 1])
        low, high = max(low, top), min(high, end)
        if low < high:
            stops[low - top] += 1
            if high < end:
                stops[high - top] -= 1
    # From how many edges begin and end in each gap to where its crossings start.
    there, start = 0, 0
    for gap in range(gaps):
        there += stops[gap]
        stops[gap] = start
        start += there
    for i in range(n):
        j = i + 1 if i + 1 < n else 0
        if xy[i, 1] > xy[j, 1]:
            i, j = j, i  # from the upper end to the lower one
        xa, ya = np.int64(xy[i, 0]), np.int64(xy[i, 1])
        along, over = xy[j, 0] - xa, xy[j, 1] - ya
        low, high = max(int(ya), top), min(int(ya + over), end)
        if low >= high:
            continue
        # The column as a whole number and a fraction rest / over, from row to row.
        step = along // over
        more = along - step * over
        whole, rest = xa, np.int64(0)
        if low > ya:
            whole += (low - ya) * along // over
            rest = (low - ya) * along % over
        for gap in range(low - top, high - top):
            at = stops[gap]
            crossings[at, 0] = whole + (rest > 0)
            whole += step
            rest += more
            if rest >= over:
                rest -= over
                whole += 1
            crossings[at, 1] = whole
            stops[gap] = at + 1


@compiled
def _between(
    first: int,
    end: int,
    left: int,
    right: int,
    stops: NDArray[np.int64],
    crossings: NDArray[np.int64],
    spans: NDArray[np.int64],
) -> int:
    """Write the spans between crossings, cut to the columns ``left`` to ``right - 1``."""
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
                # Written even where it is empty: the place of a row tells its span.
                spans[count, 0], spans[count, 1] = y, begin
                spans[count, 2] = max(begin, min(stop, right))
                count += 1
                a, b = b, c
                continue
        _sort(crossings[a:b, 1])
        _sort(crossings[b:c, 0])
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
    return count


@compiled
def _sort(values: NDArray[np.int64]) -> None:
    if len(values) > _MANY:
        values.sort()
        return
    for i in range(1, len(values)):
        value = values[i]
        k = i
        while k > 0 and values[k - 1] > value:
            values[k] = values[k - 1]
            k -= 1
        values[k] = value


@compiled
def odd_shapes(
    xy: NDArray[np.float64], ring_starts: NDArray[np.int64], object_starts: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Return what is odd about the rings of each object.

    Parameters
    ----------
    xy
        float64 (v, 2): the vertices, before they are truncated.
    ring_starts, object_starts
        int64: where each ring starts among them, each object among the rings.

    Returns
    -------
    uint8 (n,): `DEGENERATE` where a ring, or the object for want of one, has
    fewer than three different vertices; `CROSSING` where a ring crosses itself.
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
        order = np.argsort(tops)
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
                    break  # those after it lie lower still
                continue
            if (
                max(xy[j, 1], xy[j2, 1]) >= low_y
                and max(xy[j, 0], xy[j2, 0]) >= low_x
                and min(xy[j, 0], xy[j2, 0]) <= high_x
                and _cross_each_other(xy[i], xy[i2], xy[j], xy[j2])
            ):
                return True
    return False


@compiled
def _cross_each_other(
    a1: NDArray[np.float64],
    a2: NDArray[np.float64],
    b1: NDArray[np.float64],
    b2: NDArray[np.float64],
) -> bool:
    ax, ay = a2[0] - a1[0], a2[1] - a1[1]
    bx, by = b2[0] - b1[0], b2[1] - b1[1]
    # On which side of each edge the ends of the other lie; 0 where they share one.
    from_a1 = ax * (b1[1] - a1[1]) - ay * (b1[0] - a1[0])
    from_a2 = ax * (b2[1] - a1[1]) - ay * (b2[0] - a1[0])
    from_b1 = bx * (a1[1] - b1[1]) - by * (a1[0] - b1[0])
    from_b2 = bx * (a2[1] - b1[1]) - by * (a2[0] - b1[0])
    return bool(from_a1 * from_a2 < 0 and from_b1 * from_b2 < 0)
