"""Compiled loops over polygons: which pixels they cover, and whether they cross themselves.

Many polygons lie in flat arrays, see `napari_panoptic.io.formats.polygons.model.Polygons`: the
vertices (x, y), where each ring starts among them, whether it is a hole, where each object starts
among the rings, and the rule. By the rule, vertices are pixels (see `vertex_spans`), or objects
have the pixels whose centres lie inside (see `Spans`). A row of pixels that a polygon covers is a
*span*: row, first column, column after the last.
"""

import numpy as np

cimport cython
from libc.math cimport ceil, floor
from libc.stdint cimport int32_t, int64_t, uint8_t

from napari_panoptic.kernels._border cimport expect, expect_shape
from napari_panoptic.kernels._sorting cimport sort

cdef enum:
    # Bit of `odd_shapes`: fewer than three different vertices.
    degenerate = 1
    # Bit of `odd_shapes`: an outline crosses itself.
    crossing = 2
    # Number of edges from which sorting them pays.
    MANY = 64
    # Vertices of objects that are drawn lie at most so far out, in px.
    FARTHEST_PX = 1 << 30

DEGENERATE, CROSSING = degenerate, crossing

# See above.
Flat = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]

ctypedef struct Window:
    # Of pixels, half open.
    int64_t y0
    int64_t x0
    int64_t y1
    int64_t x1


def draw(
    flat,
    const int64_t[::1] chosen not None,
    const int32_t[::1] labels not None,
    window,
    int32_t[:, ::1] image not None,
):
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
        Position of the window: y0, x0, y1, x1 in px, half open.
    image
        int32 (y, x): the pixels of the window. Changed in place.
    """
    cdef Spans of = Spans(flat, chosen, window, labels.shape[0])
    cdef Window at = of.window
    cdef Py_ssize_t place, count
    expect(
        image.shape[0] >= at.y1 - at.y0 and image.shape[1] >= at.x1 - at.x0,
        "the image is smaller than the window",
    )
    with nogil:
        for place in range(chosen.shape[0]):
            count = of.write(chosen[place])
            fill(of.spans, count, labels[chosen[place]], at.y0, at.x0, image)


cdef inline int fill(
    const int64_t[:, ::1] spans,
    Py_ssize_t count,
    int32_t label,
    int64_t y0,
    int64_t x0,
    int32_t[:, ::1] image,
) except -1 nogil:
    cdef Py_ssize_t k, x
    for k in range(count):
        for x in range(spans[k, 1] - x0, spans[k, 2] - x0):
            image[spans[k, 0] - y0, x] = label
    return 0


def draw_counted(
    flat,
    const int64_t[::1] chosen not None,
    const int32_t[::1] labels not None,
    window,
    int32_t[:, ::1] image not None,
    int64_t[::1] visible not None,
    uint8_t[:, ::1] claimed_twice not None,
):
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
    cdef Spans of = Spans(flat, chosen, window, labels.shape[0])
    cdef Py_ssize_t place, count, newly = 0, found = 0
    expect(
        0 <= of.window.y0 and of.window.y1 <= image.shape[0]
        and 0 <= of.window.x0 and of.window.x1 <= image.shape[1],
        "the window reaches beyond the image",
    )
    expect_shape(claimed_twice.shape, image.shape[0], image.shape[1])
    for place in range(chosen.shape[0]):
        expect(0 < labels[chosen[place]] < visible.shape[0], "a label has no count")
    with nogil:
        for place in range(chosen.shape[0]):
            count = of.write(chosen[place])
            found = fill_counted(
                of.spans, count, labels[chosen[place]], image, visible, claimed_twice
            )
            if found < 0:
                break
            newly += found
    expect(found >= 0, "the image holds a label without a count")
    return newly


cdef Py_ssize_t fill_counted(
    const int64_t[:, ::1] spans,
    Py_ssize_t count,
    int32_t label,
    int32_t[:, ::1] image,
    int64_t[::1] visible,
    uint8_t[:, ::1] claimed_twice,
) except -1 nogil:
    """Draw an object; return the pixels claimed newly, -2 if the image holds another label."""
    cdef Py_ssize_t k, x, y, begin, end, newly = 0
    cdef int32_t below, earlier
    for k in range(count):
        y = spans[k, 0]
        begin = spans[k, 1]
        end = spans[k, 2]
        below = 0
        for x in range(begin, end):
            below |= image[y, x]
        if below == 0:
            for x in range(begin, end):
                image[y, x] = label
            visible[label] += end - begin
            continue
        for x in range(begin, end):
            earlier = image[y, x]
            if earlier == label:
                continue
            if earlier >= visible.shape[0]:
                return -2
            image[y, x] = label
            visible[label] += 1
            if earlier > 0:
                visible[earlier] -= 1
                newly += claimed_twice[y, x] == 0
                claimed_twice[y, x] = True
    return newly


def draw_where_free(
    flat,
    const int64_t[::1] chosen not None,
    const int32_t[::1] labels not None,
    int32_t[:, ::1] image not None,
):
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
    cdef Spans of = Spans(flat, chosen, (0, 0, image.shape[0], image.shape[1]), labels.shape[0])
    result = np.ones(chosen.shape[0], np.bool_)
    cdef uint8_t[::1] drawn = result
    cdef Py_ssize_t place, count
    with nogil:
        for place in range(chosen.shape[0]):
            count = of.write(chosen[place])
            drawn[place] = is_free(of.spans, count, image)
            if drawn[place]:
                fill(of.spans, count, labels[chosen[place]], 0, 0, image)
    return result


cdef bint is_free(
    const int64_t[:, ::1] spans, Py_ssize_t count, const int32_t[:, ::1] image
) except -1 nogil:
    cdef Py_ssize_t k, x
    for k in range(count):
        for x in range(spans[k, 1], spans[k, 2]):
            if image[spans[k, 0], x]:
                return False
    return True


def have_pixels(flat, const int64_t[::1] chosen not None, shape):
    """Return bool (m,): whether each chosen object has a pixel in an image of this shape."""
    cdef Spans of = Spans(flat, chosen, (0, 0, shape[0], shape[1]))
    result = np.zeros(chosen.shape[0], np.bool_)
    cdef uint8_t[::1] found = result
    cdef Py_ssize_t place, k
    with nogil:
        for place in range(chosen.shape[0]):
            for k in range(of.write(chosen[place])):
                found[place] |= of.spans[k, 1] < of.spans[k, 2]
    return result


def bounds(flat):
    """Return int64 (n, 4): the box y0, x0, y1, x1 of each object, half open, empty if it is."""
    vertices, rings, _, objects, by_vertex_ = flat
    cdef const double[:, ::1] xy = vertices
    cdef const int64_t[::1] ring_starts = rings, object_starts = objects
    cdef bint by_vertex = by_vertex_
    cdef Py_ssize_t n = object_starts.shape[0] - 1, row
    cdef Window box
    for row in range(n):
        expect_object(xy, ring_starts, object_starts, row)
    result = np.empty((max(n, 0), 4), np.int64)
    cdef int64_t[:, ::1] boxes = result
    with nogil:
        for row in range(n):
            box = box_of(
                xy, ring_starts[object_starts[row]], ring_starts[object_starts[row + 1]], by_vertex
            )
            boxes[row, 0] = box.y0
            boxes[row, 1] = box.x0
            boxes[row, 2] = box.y1
            boxes[row, 3] = box.x1
    return result


cdef int expect_object(
    const double[:, ::1] xy,
    const int64_t[::1] ring_starts,
    const int64_t[::1] object_starts,
    Py_ssize_t row,
) except -1:
    """Check that an object, its rings and their vertices are there."""
    cdef Py_ssize_t ring
    expect(0 <= row < object_starts.shape[0] - 1 and xy.shape[1] == 2, "there is no such object")
    expect(
        0 <= object_starts[row] <= object_starts[row + 1] <= ring_starts.shape[0] - 1,
        "a ring of an object is not there",
    )
    for ring in range(object_starts[row], object_starts[row + 1]):
        expect(
            0 <= ring_starts[ring] <= ring_starts[ring + 1] <= xy.shape[0],
            "a vertex of a ring is not there",
        )
    return 0


cdef Window box_of(
    const double[:, ::1] xy, Py_ssize_t first, Py_ssize_t end, bint by_vertex
) noexcept nogil:
    """Return the box of the pixels that an outline can have."""
    cdef double low_x, high_x, low_y, high_y
    cdef Py_ssize_t i
    cdef Window box
    box.y0 = box.x0 = box.y1 = box.x1 = 0
    if first >= end:
        return box
    low_x = high_x = xy[first, 0]
    low_y = high_y = xy[first, 1]
    for i in range(first + 1, end):
        low_x = min(low_x, xy[i, 0])
        high_x = max(high_x, xy[i, 0])
        low_y = min(low_y, xy[i, 1])
        high_y = max(high_y, xy[i, 1])
    if by_vertex:
        box.y0 = <int64_t>low_y
        box.x0 = <int64_t>low_x
        box.y1 = <int64_t>high_y + 1
        box.x1 = <int64_t>high_x + 1
    else:
        box.y0 = <int64_t>floor(low_y)
        box.x0 = <int64_t>floor(low_x)
        box.y1 = <int64_t>ceil(high_y)
        box.x1 = <int64_t>ceil(high_x)
    return box


@cython.final
cdef class Spans:
    """Finds the spans of objects in a window, with buffers for the largest of them.

    Where vertices are pixels, see `vertex_spans`. Otherwise a pixel belongs to
    the object if its centre lies inside one of its parts: if the number of edges
    crossed on the way from it to the left is odd, whichever rings of the part
    they belong to. (An edge is crossed if exactly one of its ends lies below the
    centre; it is on the left also if the centre lies exactly on it.) So a centre
    on an upper or left edge lies inside, on a lower or right one outside: parts
    that share an edge share no pixel, and leave none between them.

    Crossings are computed in float64: exact for axis-parallel edges; a centre
    within rounding error of a slanted edge can fall on either side.
    """

    cdef const double[:, ::1] xy
    cdef const int64_t[::1] ring_starts, object_starts
    cdef const uint8_t[::1] is_hole
    cdef bint by_vertex
    cdef Window window
    # Ends of the crossings of lines, crossings, and spans.
    cdef int64_t[::1] stops, above, below
    cdef int64_t[:, ::1] spans

    def __init__(self, flat, const int64_t[::1] chosen, window, Py_ssize_t n_labels=-1):
        """Check the chosen objects; also that each has a label, unless their number is -1."""
        self.xy, self.ring_starts, self.is_hole, self.object_starts, self.by_vertex = flat
        self.window.y0, self.window.x0, self.window.y1, self.window.x1 = window
        cdef Py_ssize_t place, row, i, crossings, vertices
        cdef Py_ssize_t most_crossings = 0, most_spans = 0
        expect(
            -FARTHEST_PX <= self.window.y0 <= self.window.y1 <= FARTHEST_PX
            and -FARTHEST_PX <= self.window.x0 <= self.window.x1 <= FARTHEST_PX,
            "the window ends before it begins, or lies too far out",
        )
        expect(
            self.is_hole.shape[0] >= self.ring_starts.shape[0] - 1,
            "whether a ring is an outline or hole is not given",
        )
        for place in range(chosen.shape[0]):
            row = chosen[place]
            expect(n_labels < 0 or row < n_labels, "an object has no label")
            expect_object(self.xy, self.ring_starts, self.object_starts, row)
            vertices = self.ring_starts[self.object_starts[row + 1]]
            for i in range(self.ring_starts[self.object_starts[row]], vertices):
                expect(
                    -FARTHEST_PX <= self.xy[i, 0] <= FARTHEST_PX
                    and -FARTHEST_PX <= self.xy[i, 1] <= FARTHEST_PX,
                    "a vertex lies too far out",
                )
            vertices -= self.ring_starts[self.object_starts[row]]
            crossings = self.count_crossings(row)
            most_crossings = max(most_crossings, crossings)
            most_spans = max(most_spans, crossings + vertices)
        self.stops = np.empty(self.window.y1 - self.window.y0 + 2, np.int64)
        self.above = np.empty(most_crossings, np.int64)
        self.below = np.empty(most_crossings if self.by_vertex else 0, np.int64)
        self.spans = np.empty((most_spans, 3), np.int64)

    cdef Py_ssize_t count_crossings(self, Py_ssize_t row) except -1:
        """Return how often the edges of an object cross lines of the window."""
        cdef Py_ssize_t ring, i, j, count = 0
        cdef Lines lines
        for ring in range(self.object_starts[row], self.object_starts[row + 1]):
            j = self.ring_starts[ring + 1] - 1
            for i in range(self.ring_starts[ring], self.ring_starts[ring + 1]):
                lines = lines_crossed(
                    self.xy[i, 1], self.xy[j, 1], self.by_vertex, self.window.y0 - 1,
                    self.window.y1,
                )
                count += max(0, lines.end - lines.first)
                j = i
        return count

    cdef Py_ssize_t write(self, Py_ssize_t row) except -1 nogil:
        """Write the spans of an object, some possibly repeated or empty; return their number."""
        cdef Py_ssize_t first = self.object_starts[row], last = self.object_starts[row + 1]
        cdef Py_ssize_t end, count = 0
        while first < last:
            end = first + 1
            while end < last and self.is_hole[end]:
                end += 1
            count += part_spans(
                self.xy, self.ring_starts, first, end, self.by_vertex, self.window, self.stops,
                self.above, self.below, self.spans, count,
            )
            first = end
        return count


cdef Py_ssize_t part_spans(
    const double[:, ::1] xy,
    const int64_t[::1] starts,
    Py_ssize_t ring,
    Py_ssize_t last_ring,
    bint by_vertex,
    Window window,
    int64_t[::1] stops,
    int64_t[::1] above,
    int64_t[::1] below,
    int64_t[:, ::1] spans,
    Py_ssize_t at,
) except -1 nogil:
    """Write the spans of a part, an outline with its holes, from a place on; return their number."""
    cdef Window box = box_of(xy, starts[ring], starts[last_ring], by_vertex)
    cdef Py_ssize_t begin = 0, stop, y, k, count = 0
    cdef int64_t from_, to
    box.y0 = max(box.y0, window.y0)
    box.x0 = max(box.x0, window.x0)
    box.y1 = min(box.y1, window.y1)
    box.x1 = min(box.x1, window.x1)
    if box.y0 >= box.y1 or box.x0 >= box.x1:
        return 0
    cross(xy, starts, ring, last_ring, by_vertex, box.y0 - by_vertex, box.y1, stops, above, below)
    if by_vertex:
        return vertex_spans(
            xy, starts[ring], starts[last_ring], box, stops, above, below, spans, at
        )
    for y in range(box.y0, box.y1):
        stop = stops[y - box.y0]
        sort(above, begin, stop)
        for k in range(begin, stop, 2):
            from_ = max(above[k], box.x0)
            to = min(above[k + 1], box.x1)
            if from_ < to:
                count += write_span(spans, at + count, y, from_, to)
        begin = stop
    return count


cdef inline int write_span(
    int64_t[:, ::1] spans, Py_ssize_t at, int64_t y, int64_t begin, int64_t end
) except -1 nogil:
    spans[at, 0] = y
    spans[at, 1] = begin
    spans[at, 2] = end
    return 1


ctypedef struct Lines:
    int64_t first
    int64_t end


cdef inline Lines lines_crossed(
    double ya, double yb, bint by_vertex, int64_t first, int64_t end
) noexcept nogil:
    """Return which lines from ``first`` to ``end - 1`` an edge crosses, half open.

    By centres, line k runs through the centres of row k; by vertices, it is the
    gap between the rows k and k + 1.
    """
    cdef double low = min(ya, yb), high = max(ya, yb)
    cdef Lines lines
    if not by_vertex:
        low = ceil(low - 0.5)
        high = ceil(high - 0.5)
    lines.first = max(<int64_t>low, first)
    lines.end = min(<int64_t>high, end)
    return lines


cdef inline int64_t floor_quotient(int64_t value, int64_t divisor) noexcept nogil:
    """Divide by a positive number, rounding down: C rounds towards 0."""
    cdef int64_t quotient = value // divisor
    return quotient - (value - quotient * divisor < 0)


cdef int cross(
    const double[:, ::1] xy,
    const int64_t[::1] starts,
    Py_ssize_t first_ring,
    Py_ssize_t last_ring,
    bint by_vertex,
    int64_t first,
    int64_t end,
    int64_t[::1] stops,
    int64_t[::1] above,
    int64_t[::1] below,
) except -1 nogil:
    """Find where the edges of a part cross the lines ``first`` to ``end - 1``.

    Parameters
    ----------
    xy, starts, first_ring, last_ring
        The vertices, where each ring starts among them, and the rings of the part.
    by_vertex, first, end
        As in `lines_crossed`.
    stops
        int64: receives where each line's crossings end in ``above`` and ``below``.
    above, below
        int64 (m,): receive columns, line by line. By centres, only ``above`` does: the first with
        its centre on the crossing or right of it. By vertices: that of the
        crossing in the row above the gap rounded up, in the row below rounded down.
    """
    cdef Py_ssize_t ring, i, j, upper, lower, at
    cdef int64_t k, line, there = 0, start = 0, along, over, step, more, whole, rest, skipped
    cdef double xa, ya, xb, yb
    cdef Lines lines
    for k in range(end - first + 1):
        stops[k] = 0
    for ring in range(first_ring, last_ring):
        j = starts[ring + 1] - 1
        for i in range(starts[ring], starts[ring + 1]):
            lines = lines_crossed(xy[i, 1], xy[j, 1], by_vertex, first, end)
            if lines.first < lines.end:
                stops[lines.first - first] += 1
                stops[lines.end - first] -= 1
            j = i
    # From how many edges begin and end in each line to where its crossings start.
    for k in range(end - first):
        there += stops[k]
        stops[k] = start
        start += there
    for ring in range(first_ring, last_ring):
        j = starts[ring + 1] - 1
        for i in range(starts[ring], starts[ring + 1]):
            lines = lines_crossed(xy[i, 1], xy[j, 1], by_vertex, first, end)
            upper = i if xy[i, 1] <= xy[j, 1] else j
            lower = j if upper == i else i
            j = i
            if lines.first >= lines.end:
                continue
            xa = xy[upper, 0]
            ya = xy[upper, 1]
            xb = xy[lower, 0]
            yb = xy[lower, 1]
            if not by_vertex:
                for line in range(lines.first, lines.end):
                    at = stops[line - first]
                    above[at] = <int64_t>ceil(
                        xa + (line + 0.5 - ya) * (xb - xa) / (yb - ya) - 0.5
                    )
                    stops[line - first] = at + 1
                continue
            # The column as a whole number and a fraction rest / over, from row to row.
            along = <int64_t>xb - <int64_t>xa
            over = <int64_t>yb - <int64_t>ya
            step = floor_quotient(along, over)
            more = along - step * over
            whole = <int64_t>xa
            rest = 0
            if lines.first > ya:
                skipped = (lines.first - <int64_t>ya) * along
                whole += floor_quotient(skipped, over)
                rest = skipped - floor_quotient(skipped, over) * over
            for line in range(lines.first, lines.end):
                at = stops[line - first]
                above[at] = whole + (rest > 0)
                whole += step
                rest += more
                if rest >= over:
                    rest -= over
                    whole += 1
                below[at] = whole
                stops[line - first] = at + 1
    return 0


cdef Py_ssize_t vertex_spans(
    const double[:, ::1] xy,
    Py_ssize_t first_vertex,
    Py_ssize_t last_vertex,
    Window window,
    const int64_t[::1] stops,
    int64_t[::1] above,
    int64_t[::1] below,
    int64_t[:, ::1] spans,
    Py_ssize_t at,
) except -1 nogil:
    """Write the spans of a ring whose vertices are pixels; return their number.

    A pixel belongs to it if it is a vertex, or if the number of edges crossed
    on the way from it to the right is odd, or the number to the left. (An edge
    is crossed to the right if exactly one of its ends lies below the pixel's
    row, to the left if exactly one lies above it.) These are the pixels of
    ``skimage.draw.polygon``; whole-number arithmetic makes them exact.
    """
    cdef int64_t left = window.x0, right = window.x1, y, x, begin, stop
    cdef int64_t other_begin, other_stop
    # Where the crossings begin and end of the gap above a row; then that below.
    cdef Py_ssize_t a = 0, b = stops[0], c, k, i, row, rows, count = 0
    cdef bint is_apart
    for y in range(window.y0, window.y1):
        c = stops[y - window.y0 + 1]
        if max(b - a, c - b) == 2:
            # Nearly always: one way in, one way out, almost the same on both sides.
            begin = right
            stop = left
            is_apart = False
            if b > a:
                begin = min(below[a], below[a + 1]) + 1
                stop = max(below[a], below[a + 1]) + 1
            if c > b:
                other_begin = min(above[b], above[b + 1])
                other_stop = max(above[b], above[b + 1])
                is_apart = b > a and (begin > other_stop or other_begin > stop)
                begin = min(begin, other_begin)
                stop = max(stop, other_stop)
            if not is_apart:
                begin = max(begin, left)
                # Written even if it is empty: spans are found by their row below.
                count += write_span(spans, at + count, y, begin, max(begin, min(stop, right)))
                a = b
                b = c
                continue
        sort(below, a, b)
        sort(above, b, c)
        for k in range(a, b, 2):
            begin = max(below[k] + 1, left)
            stop = min(below[k + 1] + 1, right)
            if begin < stop:
                count += write_span(spans, at + count, y, begin, stop)
        for k in range(b, c, 2):
            begin = max(above[k], left)
            stop = min(above[k + 1], right)
            if begin < stop:
                count += write_span(spans, at + count, y, begin, stop)
        a = b
        b = c
    rows = count
    for i in range(first_vertex, last_vertex):
        x = <int64_t>xy[i, 0]
        y = <int64_t>xy[i, 1]
        if window.y0 <= y < window.y1 and left <= x < right:
            row = y - window.y0
            if (
                row < rows
                and spans[at + row, 0] == y
                and spans[at + row, 1] <= x < spans[at + row, 2]
            ):
                continue
            count += write_span(spans, at + count, y, x, x + 1)
    return count


def odd_shapes(
    const double[:, ::1] xy not None,
    const int64_t[::1] ring_starts not None,
    const int64_t[::1] object_starts not None,
):
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
    there is no ring; `CROSSING` if two edges of a ring cross; edges that only touch do not count.
    """
    cdef Py_ssize_t n = object_starts.shape[0] - 1, row, ring, first, end
    result = np.zeros(max(n, 0), np.uint8)
    cdef uint8_t[::1] odd = result
    cdef const int64_t[::1] order
    for row in range(n):
        expect_object(xy, ring_starts, object_starts, row)
    identity = np.arange(MANY, dtype=np.int64)
    order = identity
    with nogil:
        for row in range(n):
            if object_starts[row] == object_starts[row + 1]:
                odd[row] = degenerate
            for ring in range(object_starts[row], object_starts[row + 1]):
                first = ring_starts[ring]
                end = ring_starts[ring + 1]
                if not has_three(xy, first, end):
                    odd[row] |= degenerate
                elif end - first < MANY:
                    odd[row] |= crossing * crosses_itself(xy, first, end - first, order)
                else:
                    with gil:
                        ys = np.asarray(xy[first:end, 1])
                        order = np.argsort(np.minimum(ys, np.roll(ys, -1))).astype(np.int64, copy=False)
                    odd[row] |= crossing * crosses_itself(xy, first, end - first, order)
                    with gil:
                        order = identity
    return result


cdef bint has_three(const double[:, ::1] xy, Py_ssize_t first, Py_ssize_t end) except -1 nogil:
    """Return whether there are three different vertices."""
    cdef Py_ssize_t second = -1, i
    for i in range(first + 1, end):
        if xy[i, 0] == xy[first, 0] and xy[i, 1] == xy[first, 1]:
            continue
        if second < 0:
            second = i
        elif xy[i, 0] != xy[second, 0] or xy[i, 1] != xy[second, 1]:
            return True
    return False


cdef bint crosses_itself(
    const double[:, ::1] xy, Py_ssize_t first, Py_ssize_t n, const int64_t[::1] order
) except -1 nogil:
    """Return whether two edges of a ring of n vertices cross, looked at in an order.

    From `MANY` edges on, the order is that of their upper ends.
    """
    cdef Py_ssize_t k, m, i, i2, j, j2
    cdef double low_x, high_x, low_y, high_y, ax, ay, bx, by, of_j, of_j2, of_i, of_i2
    if n < 4:
        return False
    for k in range(n):
        i = first + order[k]
        i2 = i + 1 if order[k] + 1 < n else first
        low_x = min(xy[i, 0], xy[i2, 0])
        high_x = max(xy[i, 0], xy[i2, 0])
        low_y = min(xy[i, 1], xy[i2, 1])
        high_y = max(xy[i, 1], xy[i2, 1])
        for m in range(k + 1, n):
            j = first + order[m]
            j2 = j + 1 if order[m] + 1 < n else first
            if min(xy[j, 1], xy[j2, 1]) > high_y:
                if n >= MANY:
                    break  # later ones lie lower still
                continue
            if (
                max(xy[j, 1], xy[j2, 1]) >= low_y
                and max(xy[j, 0], xy[j2, 0]) >= low_x
                and min(xy[j, 0], xy[j2, 0]) <= high_x
            ):
                # On which side of each edge the ends of the other lie; 0 if they share one.
                ax = xy[i2, 0] - xy[i, 0]
                ay = xy[i2, 1] - xy[i, 1]
                bx = xy[j2, 0] - xy[j, 0]
                by = xy[j2, 1] - xy[j, 1]
                of_j = ax * (xy[j, 1] - xy[i, 1]) - ay * (xy[j, 0] - xy[i, 0])
                of_j2 = ax * (xy[j2, 1] - xy[i, 1]) - ay * (xy[j2, 0] - xy[i, 0])
                of_i = bx * (xy[i, 1] - xy[j, 1]) - by * (xy[i, 0] - xy[j, 0])
                of_i2 = bx * (xy[i2, 1] - xy[j, 1]) - by * (xy[i2, 0] - xy[j, 0])
                if of_j * of_j2 < 0 and of_i * of_i2 < 0:
                    return True
    return False
