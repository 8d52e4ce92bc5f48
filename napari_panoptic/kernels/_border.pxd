# Checks of arguments where a kernel is entered. Typed memoryviews check type, dimensions,
# contiguity and byte order themselves.

from libc.stdint cimport int64_t


cdef inline int expect(bint holds, str otherwise) except -1:
    """Raise a ValueError with this message unless a condition holds."""
    if not holds:
        raise ValueError(otherwise)
    return 0


cdef inline int expect_shape(
    const Py_ssize_t* shape, Py_ssize_t height, Py_ssize_t width
) except -1:
    """Check the shape of an image."""
    return expect(shape[0] == height and shape[1] == width, "the images differ in shape")


cdef inline int expect_void(
    const Py_ssize_t* shape, Py_ssize_t height, Py_ssize_t width
) except -1:
    """Check the shape of an ambiguous area, (0, 0) if there is none."""
    return expect(
        shape[0] == 0 or (shape[0] == height and shape[1] == width), "the void has another shape"
    )


cdef inline int expect_boxes(
    const int64_t[:, ::1] boxes, Py_ssize_t n, Py_ssize_t height, Py_ssize_t width
) except -1:
    """Check that there are n boxes y0, x0, y1, x1, each inside an image or empty."""
    cdef Py_ssize_t k
    expect(boxes.shape[0] == n and boxes.shape[1] == 4, "there is not one box for each object")
    for k in range(n):
        if boxes[k, 0] < boxes[k, 2] and boxes[k, 1] < boxes[k, 3]:
            expect(
                boxes[k, 0] >= 0 and boxes[k, 1] >= 0
                and boxes[k, 2] <= height and boxes[k, 3] <= width,
                "a box reaches beyond the image",
            )
    return 0
