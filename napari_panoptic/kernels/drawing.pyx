"""Pictures of objects: outlines, dashes, hatching and ellipses."""

import numpy as np

from libc.math cimport floor
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
