"""Compiled walks along the borders of objects, and along the lines of contours."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from napari_panoptic.kernels._border cimport expect
from napari_panoptic.kernels._sorting cimport sort

cdef enum:
    # Pixels on an edge between vertices of at most 2^29.
    MOST_STEPS = 1 << 30


def walk_borders(const int32_t[:, ::1] padded not None, bint joining, bint by_pixel):
    """Walk once along every border between an object and what is not this object.

    The object is on the walker's right. Each border has an edge with the
    object below it, so that looking at the upper edges of pixels finds all.

    Parameters
    ----------
    padded
        int32 (y + 2, x + 2), 0 for background: the image in a frame of 0.
    joining
        Whether to cross over where two pixels of the object touch by a corner only.
    by_pixel
        Return the pixels walked along instead of the corners turned.

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
    cdef Py_ssize_t height = padded.shape[0] - 2, width = padded.shape[1] - 2
    cdef Py_ssize_t top, left, y, x, right_y, right_x, left_y, left_x, first
    cdef Py_ssize_t used = 0, n_rings = 0
    cdef int way
    cdef int32_t label
    cdef bint on_right, on_left, touching
    expect(height >= 0 and width >= 0, "the image has no frame")
    whole = np.asarray(padded)
    expect(
        not (
            whole[0].any() or whole[height + 1].any()
            or whole[:, 0].any() or whole[:, width + 1].any()
        ),
        "the frame of the image is not 0",
    )
    cdef int[4] step_x = [1, 0, -1, 0]  # east, south, west, north
    cdef int[4] step_y = [0, 1, 0, -1]
    cdef uint8_t[:, ::1] seen = np.zeros((height, width), np.uint8)
    walked, found = np.empty((4096, 2), np.int32), np.empty((1024, 3), np.int64)
    cdef int32_t[:, ::1] vertices = walked
    cdef int64_t[:, ::1] rings = found  # label, touching, end
    with nogil:
        for top in range(height):
            for left in range(width):
                label = padded[top + 1, left + 1]
                if label == 0 or seen[top, left] or padded[top, left + 1] == label:
                    continue
                y = top
                x = left
                way = 0
                touching = False
                first = used
                while True:
                    if way == 0:
                        if seen[y, x]:
                            break
                        seen[y, x] = True
                    if used + 2 > vertices.shape[0]:
                        with gil:
                            walked = np.concatenate((walked, np.empty_like(walked)))
                            vertices = walked
                    if by_pixel and (
                        used == first or vertices[used - 1, 0] != x or vertices[used - 1, 1] != y
                    ):
                        vertices[used, 0] = <int32_t>x
                        vertices[used, 1] = <int32_t>y
                        used += 1
                    # The two pixels ahead, to the right and to the left of the line walked on.
                    right_y = y + step_y[way]
                    right_x = x + step_x[way]
                    left_y = right_y + step_y[(way + 3) % 4]
                    left_x = right_x + step_x[(way + 3) % 4]
                    on_right = padded[right_y + 1, right_x + 1] == label
                    on_left = padded[left_y + 1, left_x + 1] == label
                    if on_left and not on_right:
                        touching = True
                    if on_right and not on_left:
                        y = right_y
                        x = right_x
                        continue
                    if not by_pixel:
                        # The corner ahead of the pixel on its left.
                        vertices[used, 0] = <int32_t>(x + (way == 0 or way == 1))
                        vertices[used, 1] = <int32_t>(y + (way == 1 or way == 2))
                        used += 1
                    if on_left and (on_right or joining):
                        y = left_y
                        x = left_x
                        way = (way + 3) % 4
                    else:
                        way = (way + 1) % 4
                if (
                    by_pixel
                    and used > first + 1
                    and vertices[used - 1, 0] == vertices[first, 0]
                    and vertices[used - 1, 1] == vertices[first, 1]
                ):
                    used -= 1
                if n_rings == rings.shape[0]:
                    with gil:
                        found = np.concatenate((found, np.empty_like(found)))
                        rings = found
                rings[n_rings, 0] = label
                rings[n_rings, 1] = touching
                rings[n_rings, 2] = used
                n_rings += 1
    found = found[:n_rings]
    start = np.concatenate((np.zeros(1, np.int64), found[:, 2]))
    return walked[:used].copy(), start, found[:, 0].astype(np.int32), found[:, 1] == 1


cdef int expect_rings(const int32_t[:, ::1] vertices, const int64_t[::1] start) except -1:
    """Check that rings begin with the first vertex and lie one after the other."""
    cdef Py_ssize_t k
    expect(vertices.shape[1] == 2, "a vertex has two coordinates")
    expect(start.shape[0] > 0, "the starts of rings are missing")
    expect(start[0] == 0 and start[start.shape[0] - 1] <= vertices.shape[0], "a ring lies outside")
    for k in range(start.shape[0] - 1):
        expect(start[k] <= start[k + 1], "a ring ends before it begins")
    return 0


def chamfer(const int32_t[:, ::1] corners not None, const int64_t[::1] start not None):
    """Lead rings along the edges of pixels from middle to middle of these edges.

    Single steps become straight, longer ones are chamfered.

    Parameters
    ----------
    corners, start
        Rings of horizontal and vertical edges, each with a turn at every corner.

    Returns
    -------
    halves
        int32 (m, 2): x, y of the corners of the new rings, in halves of a pixel.
    start
        int64 (r + 1,): where each of them starts.
    """
    cdef Py_ssize_t n_rings = start.shape[0] - 1, ring, i, j, k, count, used = 0
    cdef int32_t dx, dy, step_x, step_y
    cdef int64_t before, after
    expect_rings(corners, start)
    result, starts = np.empty((2 * corners.shape[0], 2), np.int32), np.zeros(n_rings + 1, np.int64)
    cdef int32_t[:, ::1] halves = result
    cdef int64_t[::1] new_start = starts
    cdef int32_t[:, ::1] ends = np.empty((2 * corners.shape[0] + 2, 2), np.int32)
    with nogil:
        for ring in range(n_rings):
            count = 0
            for i in range(start[ring], start[ring + 1]):
                j = i + 1 if i + 1 < start[ring + 1] else start[ring]
                dx = corners[j, 0] - corners[i, 0]
                dy = corners[j, 1] - corners[i, 1]
                step_x = (dx > 0) - (dx < 0)
                step_y = (dy > 0) - (dy < 0)
                # The middles of the first and the last pixel's edge, which may be one.
                count += 1
                ends[count, 0] = 2 * corners[i, 0] + step_x
                ends[count, 1] = 2 * corners[i, 1] + step_y
                if dx != step_x or dy != step_y:
                    count += 1
                    ends[count, 0] = 2 * corners[j, 0] - step_x
                    ends[count, 1] = 2 * corners[j, 1] - step_y
            if count > 0:
                for k in range(2):
                    ends[0, k] = ends[count, k]
                    ends[count + 1, k] = ends[1, k]
            for i in range(1, count + 1):
                before = <int64_t>(ends[i, 0] - ends[i - 1, 0]) * (ends[i + 1, 1] - ends[i, 1])
                after = <int64_t>(ends[i, 1] - ends[i - 1, 1]) * (ends[i + 1, 0] - ends[i, 0])
                if before != after:  # not on a straight line
                    halves[used, 0] = ends[i, 0]
                    halves[used, 1] = ends[i, 1]
                    used += 1
            new_start[ring + 1] = used
    return result[:used].copy(), starts


def cut_loops(
    const int32_t[:, ::1] vertices not None,
    const int64_t[::1] start not None,
    const int64_t[::1] earlier not None,
):
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
    cdef Py_ssize_t n = vertices.shape[0], n_rings = start.shape[0] - 1
    cdef Py_ssize_t ring, i, k, corner, length, count = 0, used = 0
    cdef bint ends
    expect_rings(vertices, start)
    expect(earlier.shape[0] == n, "there is not one number for each vertex")
    for i in range(n):
        expect(-1 <= earlier[i] < i, "a vertex refers to one that does not come before it")
    most = n_rings + np.count_nonzero(np.asarray(earlier) >= 0)
    result, new_start = np.empty((n, 2), np.int32), np.zeros(most + 1, np.int64)
    sources = np.empty(most, np.int64)
    cdef int32_t[:, ::1] left = result
    cdef int64_t[::1] starts = new_start, source = sources
    # The walk so far without the loops cut off from it, and each vertex's place in it.
    cdef int64_t[::1] walk = np.empty(n, np.int64), place = np.full(n, -1, np.int64)
    with nogil:
        for ring in range(n_rings):
            length = 0
            for i in range(start[ring], start[ring + 1] + 1):
                ends = i == start[ring + 1]
                corner = 0
                if not ends:
                    corner = place[earlier[i]] if earlier[i] >= start[ring] else -1
                    if corner < 0:
                        walk[length] = i
                        place[i] = length
                        length += 1
                        continue
                for k in range(corner, length):
                    left[used, 0] = vertices[walk[k], 0]
                    left[used, 1] = vertices[walk[k], 1]
                    used += 1
                    if k > corner:
                        place[walk[k]] = -1
                source[count] = ring
                count += 1
                starts[count] = used
                length = corner + 1
    return result, new_start[: count + 1], sources[:count]


def name_line_pixels(
    const int32_t[:, ::1] xy not None,
    const int64_t[::1] ring_starts not None,
    const int64_t[::1] steps not None,
):
    """Make all pixels on the outline vertices, for outlines that run twice through a pixel.

    Parameters
    ----------
    xy
        int32 (v, 2): vertices, x and y in px, of at most 2^29.
    ring_starts
        int64 (r + 1,): where each ring starts among them.
    steps
        int64 (v,): the number of pixels exactly on the edge that begins at each
        vertex, its end not counted, at least 1.

    Returns
    -------
    xy, ring_starts
        The same with more vertices.
    """
    cdef Py_ssize_t ring, i, j, at, first, last, count, used = 0
    cdef int64_t step, dx, dy
    cdef bint has_twins
    expect_rings(xy, ring_starts)
    expect(steps.shape[0] == xy.shape[0], "there is not one number of steps for each vertex")
    for i in range(steps.shape[0]):
        expect(1 <= steps[i] <= MOST_STEPS, "an edge has no pixel, or too many")
    n_pixels = int(np.asarray(steps).sum())
    result, starts = np.empty((n_pixels, 2), np.int32), np.zeros(ring_starts.shape[0], np.int64)
    cdef int32_t[:, ::1] line = result
    cdef int64_t[::1] new_starts = starts, keys = np.empty(n_pixels, np.int64)
    with nogil:
        for ring in range(ring_starts.shape[0] - 1):
            first = ring_starts[ring]
            last = ring_starts[ring + 1]
            count = 0
            for i in range(first, last):
                j = i + 1 if i + 1 < last else first
                # Whole steps: the pixels lie exactly on the edge.
                dx = (<int64_t>xy[j, 0] - xy[i, 0]) // steps[i]
                dy = (<int64_t>xy[j, 1] - xy[i, 1]) // steps[i]
                for step in range(steps[i]):
                    at = used + count
                    line[at, 0] = <int32_t>(xy[i, 0] + dx * step)
                    line[at, 1] = <int32_t>(xy[i, 1] + dy * step)
                    keys[count] = (<int64_t>line[at, 1] << 32) + line[at, 0]
                    count += 1
            sort(keys, 0, count)
            has_twins = False
            for i in range(1, count):
                has_twins |= keys[i] == keys[i - 1]
            if count == last - first or not has_twins:
                count = last - first
                for i in range(count):
                    line[used + i, 0] = xy[first + i, 0]
                    line[used + i, 1] = xy[first + i, 1]
            used += count
            new_starts[ring + 1] = used
    return result[:used].copy(), starts
