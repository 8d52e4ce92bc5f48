"""Pictures of objects: outlines, lines, dashes, hatching and ellipses."""

import numpy as np

from libc.math cimport floor, sqrtf
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from napari_panoptic.kernels._border cimport expect, expect_boxes, expect_shape
from napari_panoptic.kernels._clones cimport cloned_int

cdef enum:
    # The number of colours of a picture of objects: labels beyond it start again from 1.
    most_objects = (1 << 16) - 2
    # Distance between the lines of a hatched area along a row, in px.
    hatch_spacing = 14
    # Values in a picture of marks: the light and the dark dashes.
    mark = 1
    mark_edge = 2

MAX_OBJECTS, HATCH_SPACING_PX, MARK, MARK_EDGE = most_objects, hatch_spacing, mark, mark_edge

ctypedef fused label_type:
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused index_type:
    uint8_t
    int32_t


def outline_pixels(labels, int thickness):
    """Keep the rim of every object.

    Parameters
    ----------
    labels
        Unsigned or signed whole numbers (y, x), 0 for background.
    thickness
        How many pixels wide the rim is, from 1 to 254: a pixel belongs to it
        if one of another object or of the background is at most this many
        steps up, down, left or right away. What lies beyond the image is no
        other object.

    Returns
    -------
    The same type (y, x): the label on rims, 0 elsewhere.
    """
    image = np.ascontiguousarray(labels)
    expect(image.ndim == 2 and image.dtype.kind in "iub", "labels are whole numbers (y, x)")
    result = np.empty_like(image)
    if image.size == 0:
        return result
    # Labels are only compared with each other and with 0: their signs do not matter.
    unsigned = np.dtype(f"u{image.dtype.itemsize}")
    keep_rims(image.view(unsigned), result.view(unsigned), thickness)
    return result


def keep_rims(
    const label_type[:, ::1] labels not None, label_type[:, ::1] kept not None, int thickness
):
    cdef uint8_t[:, ::1] rim = np.zeros((labels.shape[0], labels.shape[1]), np.uint8)
    cdef uint8_t[:, ::1] narrower = np.zeros((labels.shape[0], labels.shape[1]), np.uint8)
    cdef Py_ssize_t y, last = labels.shape[0] - 1
    cdef int _step
    with nogil:
        for y in range(last + 1):
            mark_edges(labels, y, max(y - 1, 0), min(y + 1, last), rim)
        # Where all four neighbours are of the same object, the rim grows to it from any of them.
        for _step in range(thickness - 1):
            narrower[:, :] = rim
            for y in range(last + 1):
                widen(labels, narrower, y, max(y - 1, 0), min(y + 1, last), rim)
        for y in range(last + 1):
            keep_marked(labels, y, rim, kept)


cdef cloned_int keep_marked(
    const label_type[:, ::1] labels,
    Py_ssize_t y,
    const uint8_t[:, ::1] rim,
    label_type[:, ::1] kept,
) except -1 nogil:
    """Keep the labels of the marked pixels of a row."""
    cdef Py_ssize_t x
    for x in range(labels.shape[1]):
        kept[y, x] = labels[y, x] * rim[y, x]
    return 0


cdef cloned_int mark_edges(
    const label_type[:, ::1] labels,
    Py_ssize_t y,
    Py_ssize_t above,
    Py_ssize_t below,
    uint8_t[:, ::1] rim,
) except -1 nogil:
    """Mark object pixels of a row with a neighbour that is not of the same object."""
    cdef Py_ssize_t x, width = labels.shape[1]
    # Without a branch, so that many pixels are looked at at a time.
    for x in range(width):
        rim[y, x] = (labels[above, x] != labels[y, x]) | (labels[below, x] != labels[y, x])
    for x in range(width - 1):
        rim[y, x] |= labels[y, x] != labels[y, x + 1]
    for x in range(1, width):
        rim[y, x] |= labels[y, x] != labels[y, x - 1]
    for x in range(width):
        rim[y, x] &= labels[y, x] != 0
    return 0


cdef cloned_int widen(
    const label_type[:, ::1] labels,
    const uint8_t[:, ::1] narrower,
    Py_ssize_t y,
    Py_ssize_t above,
    Py_ssize_t below,
    uint8_t[:, ::1] rim,
) except -1 nogil:
    """Mark object pixels of a row beside those that are marked."""
    cdef Py_ssize_t x, width = labels.shape[1]
    for x in range(width):
        rim[y, x] = narrower[above, x] | narrower[y, x] | narrower[below, x]
    for x in range(width - 1):
        rim[y, x] |= narrower[y, x + 1]
    for x in range(1, width):
        rim[y, x] |= narrower[y, x - 1]
    for x in range(width):
        rim[y, x] &= labels[y, x] != 0
    return 0


def outlines(const int32_t[:, ::1] index not None, const int64_t[::1] widths not None):
    """Keep the rim of every object, each of its own width; a width of 0 leaves an object out.

    Parameters
    ----------
    index
        int32 image (y, x): 0 is background.
    widths
        int64 (highest label + 1,).

    Returns
    -------
    uint16 (y, x): the label on rims, from 1 again beyond `MAX_OBJECTS`; 0 elsewhere.
    """
    result = np.zeros((index.shape[0], index.shape[1]), np.uint16)
    cdef uint16_t[:, ::1] drawn = result
    cdef Py_ssize_t y, x, n = widths.shape[0]
    cdef int32_t label
    cdef bint is_known = True
    with nogil:
        for y in range(index.shape[0]):
            for x in range(index.shape[1]):
                label = index[y, x]
                if label == 0:
                    continue
                if not 0 < label < n:
                    is_known = False
                elif is_rim(index, y, x, widths[label]):
                    drawn[y, x] = (label - 1) % most_objects + 1
    expect(is_known, "the image holds a label without a width")
    return result


cdef inline bint is_rim(
    const index_type[:, ::1] index, Py_ssize_t y, Py_ssize_t x, Py_ssize_t reach
) except -1 nogil:
    """Return whether another label, or none, lies so near to a pixel.

    Near is what is that many steps up, down, left or right away; beyond the image edge is
    nothing.
    """
    cdef index_type label = index[y, x]
    cdef Py_ssize_t v, u, rest
    for v in range(max(y - reach, 0), min(y + reach, index.shape[0] - 1) + 1):
        rest = reach - (v - y if v > y else y - v)
        for u in range(max(x - rest, 0), min(x + rest, index.shape[1] - 1) + 1):
            if index[v, u] != label:
                return True
    return False


def dash(
    uint8_t[:, ::1] picture not None,
    const int32_t[:, ::1] index not None,
    const int64_t[::1] values not None,
    const int64_t[:, ::1] boxes not None,
    Py_ssize_t reach,
):
    """Draw dashes on the pixels around objects that are so near to one of theirs.

    Parameters
    ----------
    picture
        uint8 (y, x), changed in place: `MARK` and `MARK_EDGE` in turns.
    index
        int32 image (y, x) of objects.
    values, boxes
        int64 (k,) and (k, 4): the objects in it, and their boxes y0, x0, y1, x1.
    reach
        How near.
    """
    cdef Py_ssize_t height = index.shape[0], width = index.shape[1]
    cdef Py_ssize_t length = max(3 * (reach - 1), 3), k, y, x, v, u, rest
    expect_shape(picture.shape, height, width)
    expect_boxes(boxes, values.shape[0], height, width)
    with nogil:
        for k in range(values.shape[0]):
            for y in range(boxes[k, 0], boxes[k, 2]):
                for x in range(boxes[k, 1], boxes[k, 3]):
                    if index[y, x] != values[k] or not is_rim(index, y, x, 1):
                        continue
                    for v in range(max(y - reach, 0), min(y + reach, height - 1) + 1):
                        rest = reach - (v - y if v > y else y - v)
                        for u in range(max(x - rest, 0), min(x + rest, width - 1) + 1):
                            if index[v, u] != values[k]:
                                if (v // length + u // length) % 2 == 0:
                                    picture[v, u] = mark
                                else:
                                    picture[v, u] = mark_edge


def draw_cell(
    const uint16_t[:, ::1] reference not None,
    const int32_t[:, ::1] prediction not None,
    const uint8_t[:, ::1] area not None,
    bint has_area,
    Py_ssize_t width_px,
    int64_t n_reference,
    int64_t n_prediction,
):
    """Draw outlined predictions on the reference, or filled ones beneath it, on a hatched area.

    Parameters
    ----------
    reference
        uint16 (y, x): what is drawn of the reference.
    prediction
        int32 (y, x): labels.
    area
        bool (y, x): the area to hatch, looked at only where there is one.
    has_area
        Whether there is one.
    width_px
        Width of the outlines of predictions; 0 for filled ones.
    n_reference, n_prediction
        Numbers of objects: predictions follow the reference, the area follows both.
    """
    picture = np.empty((reference.shape[0], reference.shape[1]), np.uint16)
    cdef uint16_t[:, ::1] drawn = picture
    cdef Py_ssize_t y, x, height = reference.shape[0], width = reference.shape[1]
    cdef int64_t value, label
    expect_shape(prediction.shape, height, width)
    if has_area:
        expect_shape(area.shape, height, width)
    with nogil:
        for y in range(height):
            for x in range(width):
                value = reference[y, x]
                label = prediction[y, x]
                if label != 0 and (
                    value == 0 if width_px == 0 else is_rim(prediction, y, x, width_px)
                ):
                    value = n_reference + label
                elif (
                    value == 0
                    and has_area
                    and area[y, x]
                    and ((y + x) % hatch_spacing == 0 or is_rim(area, y, x, 2))
                ):
                    value = n_reference + n_prediction + 1
                # Starts over where there are more values than colours; the desk warns of that.
                drawn[y, x] = 0 if value == 0 else (value - 1) % most_objects + 1
    return picture


def paint_ellipses(
    const int32_t[:, ::1] boxes not None,
    const uint8_t[::1] codes not None,
    double factor,
    int64_t top,
    int64_t left,
    int64_t width_px,
    uint8_t[:, ::1] picture not None,
):
    """Paint the ellipse in each box, at least one pixel of it; later ones lie on top.

    With a width above 0, paint only a rim of that width, in px of the picture.

    Boxes are in px at full resolution; the picture is a window, from ``top`` and
    ``left``, of an image that is smaller by a factor.

    Parameters
    ----------
    boxes
        int32 (k, 4): y0, x0, y1, x1.
    codes
        uint8 (k,): the value of each ellipse; 0 leaves it out.
    factor, top, left, width_px
        See above.
    picture
        uint8 (y, x), changed in place.
    """
    expect(boxes.shape[0] == codes.shape[0], "there is not one code for each box")
    expect(boxes.shape[1] == 4, "a box has four columns")
    expect(factor >= 1, "the factor is below 1")
    cdef Py_ssize_t k
    with nogil:
        for k in range(boxes.shape[0]):
            if codes[k]:
                paint_ellipse(boxes, k, codes[k], factor, top, left, width_px, picture)


cdef int paint_ellipse(
    const int32_t[:, ::1] boxes,
    Py_ssize_t k,
    uint8_t code,
    double factor,
    int64_t top,
    int64_t left,
    int64_t width_px,
    uint8_t[:, ::1] picture,
) except -1 nogil:
    cdef Py_ssize_t height = picture.shape[0], width = picture.shape[1], y, x
    cdef double y0 = boxes[k, 0] / factor - top, x0 = boxes[k, 1] / factor - left
    cdef double y1 = boxes[k, 2] / factor - top, x1 = boxes[k, 3] / factor - left
    if y1 <= 0 or x1 <= 0 or y0 >= height or x0 >= width:
        return 0
    cdef double cy = (y0 + y1) / 2, cx = (x0 + x1) / 2, ry = (y1 - y0) / 2, rx = (x1 - x0) / 2
    cdef double limit = ry * ry * rx * rx, inner_y = ry - width_px, inner_x = rx - width_px
    cdef double dy, dx, own_y, own_x
    cdef Py_ssize_t middle_y = <Py_ssize_t>floor(cy), middle_x = <Py_ssize_t>floor(cx)
    cdef bint has_hole = width_px > 0 and inner_y > 0 and inner_x > 0
    if width_px == 0 and 0 <= middle_y < height and 0 <= middle_x < width:
        picture[middle_y, middle_x] = code
    for y in range(max(<Py_ssize_t>y0, 0), min(<Py_ssize_t>y1 + 1, height)):
        dy = (y + 0.5 - cy) * rx
        for x in range(max(<Py_ssize_t>x0, 0), min(<Py_ssize_t>x1 + 1, width)):
            dx = (x + 0.5 - cx) * ry
            if dy * dy + dx * dx > limit:
                continue
            if has_hole:
                own_y = (y + 0.5 - cy) / inner_y
                own_x = (x + 0.5 - cx) / inner_x
                if own_y * own_y + own_x * own_x < 1:
                    continue
            picture[y, x] = code
    return 0


def nearest_lines(
    const int32_t[:, ::1] labels not None,
    const int64_t[::1] rows not None,
    const int64_t[::1] columns not None,
    const float[:, ::1] xy not None,
    const int64_t[::1] start not None,
    const int32_t[::1] ring_label not None,
    const float[::1] half_widths not None,
    const float[::1] reaches not None,
):
    """Find the line around an object that covers most of each pixel of a picture.

    Pixels of an object see only lines of this object, so that objects that touch both keep theirs.

    Parameters
    ----------
    labels
        int32 (y, x), 0 for background.
    rows, columns
        int64 (height,) and (width,): where in the labels the middle of each pixel lies.
    xy, start
        float32 (m, 2) and int64 (r + 1,): corners of closed lines, ring after ring, in px of the
        picture.
    ring_label, half_widths
        int32 and float32 (r,): the label and half of the width of each ring.
    reaches
        float32 (r,): how far from the middle of each line pixels see it, in px of the picture.

    Returns
    -------
    nearest
        int32 (height, width): the ring, -1 for none.
    far
        float32 (height, width): how far its middle is, in px of the picture.
    """
    cdef Py_ssize_t height = rows.shape[0], width = columns.shape[0], n_rings = ring_label.shape[0]
    cdef Py_ssize_t ring, y, x
    expect(xy.shape[1] == 2, "a corner has two coordinates")
    expect(start.shape[0] == n_rings + 1, "there is not one label for each ring")
    expect(
        half_widths.shape[0] == n_rings and reaches.shape[0] == n_rings,
        "there is not one width for each ring",
    )
    for ring in range(n_rings):
        expect(
            0 <= start[ring] <= start[ring + 1] <= xy.shape[0], "a ring lies outside the corners"
        )
    for y in range(height):
        expect(0 <= rows[y] < labels.shape[0], "a row lies outside the labels")
    for x in range(width):
        expect(0 <= columns[x] < labels.shape[1], "a column lies outside the labels")
    found = np.full((height, width), -1, np.int32)
    distances = np.full((height, width), np.inf, np.float32)
    cdef int32_t[:, ::1] nearest = found
    cdef float[:, ::1] far = distances
    cdef float[:, ::1] beyond = distances.copy()  # the edge of the line
    cdef int32_t[:, ::1] owner = np.empty((height, width), np.int32)
    with nogil:
        for y in range(height):
            for x in range(width):
                owner[y, x] = labels[rows[y], columns[x]]
        for ring in range(n_rings):
            see_ring(
                owner, xy, start, ring_label[ring], ring, half_widths[ring], reaches[ring],
                nearest, far, beyond,
            )
    return found, distances


cdef int see_ring(
    const int32_t[:, ::1] owner,
    const float[:, ::1] xy,
    const int64_t[::1] start,
    int32_t label,
    Py_ssize_t ring,
    float half,
    float reach,
    int32_t[:, ::1] nearest,
    float[:, ::1] far,
    float[:, ::1] beyond,
) except -1 nogil:
    """Note a ring at the pixels that it covers more of than those before it."""
    cdef Py_ssize_t i, j, y, x, first, last, bottom, height = far.shape[0], width = far.shape[1]
    cdef float limit = reach * reach
    cdef float x0, y0, x1, y1, dx, dy, per_square, per_dy, px, py, by_x, by_y, at, one, other
    for i in range(start[ring], start[ring + 1]):
        j = i + 1 if i + 1 < start[ring + 1] else start[ring]
        x0, y0, x1, y1 = xy[i, 0], xy[i, 1], xy[j, 0], xy[j, 1]
        dx = x1 - x0
        dy = y1 - y0
        per_square = 1 / (dx * dx + dy * dy) if dx != 0 or dy != 0 else 0
        per_dy = 1 / dy if dy != 0 else 0
        bottom = clipped(max(y0, y1) + reach + 1, height)
        for y in range(clipped(min(y0, y1) - reach, height), bottom):
            py = y + <float>0.5
            one = x0
            other = x1
            if dy != 0:  # only where the line itself is near enough to the row
                one = x0 + dx * share((py - reach - y0) * per_dy)
                other = x0 + dx * share((py + reach - y0) * per_dy)
            first = clipped(min(one, other) - reach, width)
            last = clipped(max(one, other) + reach + 1, width)
            for x in range(first, last):
                px = x + <float>0.5
                at = share(((px - x0) * dx + (py - y0) * dy) * per_square)
                by_x = px - x0 - at * dx
                by_y = py - y0 - at * dy
                at = by_x * by_x + by_y * by_y
                if at >= limit or (owner[y, x] != 0 and owner[y, x] != label):
                    continue
                at = sqrtf(at)
                if at - half < beyond[y, x]:
                    nearest[y, x] = <int32_t>ring
                    far[y, x] = at
                    beyond[y, x] = at - half
    return 0


cdef inline Py_ssize_t clipped(float value, Py_ssize_t most) noexcept nogil:
    """Return a whole number from 0 to a greatest one, not above a value within these."""
    if value <= 0:
        return 0
    return <Py_ssize_t>value if value < most else most


cdef inline float share(float value) noexcept nogil:
    """Return the nearest number from 0 to 1."""
    return 0 if value < 0 else 1 if value > 1 else value


def paint_lines(
    uint8_t[:, :, ::1] picture not None,
    const int32_t[:, ::1] nearest not None,
    const float[:, ::1] far not None,
    const float[::1] half_widths not None,
    const float[::1] gaps not None,
    const uint8_t[:, ::1] colours not None,
):
    """Paint lines over a picture, their edges smooth.

    Parameters
    ----------
    picture
        uint8 (y, x, 4): red, green, blue and opacity, changed in place.
    nearest, far
        As returned by :func:`nearest_lines`.
    half_widths, gaps, colours
        float32 (r,), float32 (r,) and uint8 (r, 4), for each ring: half of the width in px, half
        of the width of a gap along its middle, and the colour. Pixels wholly in the gap are left.
    """
    cdef Py_ssize_t y, x, k, height = picture.shape[0], width = picture.shape[1]
    cdef int32_t ring
    cdef float half, alpha, below, together
    expect(picture.shape[2] == 4 and colours.shape[1] == 4, "a colour has four numbers")
    expect(
        colours.shape[0] == half_widths.shape[0] and gaps.shape[0] == half_widths.shape[0],
        "there is not one colour for each ring",
    )
    expect_shape(nearest.shape, height, width)
    expect_shape(far.shape, height, width)
    expect(
        height == 0 or width == 0 or np.max(nearest) < half_widths.shape[0],
        "a pixel is near a line that is not there",
    )
    with nogil:
        for y in range(height):
            for x in range(width):
                ring = nearest[y, x]
                if ring < 0 or far[y, x] + 0.5 <= gaps[ring]:
                    continue
                # The share of the pixel that a line at this distance covers.
                half = half_widths[ring]
                alpha = min(half, far[y, x] + 0.5) - max(-half, far[y, x] - 0.5)
                alpha = min(alpha, 1) * colours[ring, 3] / 255
                if alpha <= 0:
                    continue
                below = picture[y, x, 3] * (1 - alpha) / 255
                together = alpha + below
                for k in range(3):
                    picture[y, x, k] = <uint8_t>(
                        (colours[ring, k] * alpha + picture[y, x, k] * below) / together + 0.5
                    )
                picture[y, x, 3] = <uint8_t>(255 * together + 0.5)
