"""A compiled scanner of GeoJSON, which reads vertices without a Python object for each.

It takes the rings out of a file, block by block, and leaves the rest, the *skeleton*, to an
ordinary parser. What is not written plainly is not taken.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t

from napari_panoptic.kernels._border cimport expect

# Vertices farther out, in px, are not taken.
LARGEST = 2**29
# The key that stands for a ring of a skeleton; its value is the ring's number.
RING = "ring"

cdef enum:
    not_plain = -3
    cut_off = -2
    no_room = -4
    # Places in the state of `split_features`: open brackets; whether the list of features is
    # open; whether the next list at depth 1 is it; the depth of its elements; elements in the
    # batch.
    depth = 0
    inside = 1
    armed = 2
    list_depth = 3
    elements = 4

# What stands for the end of a number that is not complete in its block.
CUT_OFF = cut_off
DEPTH, INSIDE, ARMED, LIST_DEPTH, ELEMENTS = depth, inside, armed, list_depth, elements

cdef const char* FEATURES = b'"features"'
cdef const char* OPEN_MARK = b'{"ring":'

ctypedef struct Value:
    # A number, or a position; and its end, or why there is none.
    double x
    double y
    Py_ssize_t end


def split_features(
    const uint8_t[::1] data not None,
    Py_ssize_t at,
    int64_t most_elements,
    int64_t[::1] state not None,
    uint8_t[::1] frame not None,
    uint8_t[::1] batch not None,
    double[:, ::1] xy not None,
    int64_t[::1] ring_sizes not None,
    int64_t[::1] counts not None,
):
    """Take the rings out of a block of GeoJSON, and keep its features apart from the rest.

    A ring is a list of lists of plain numbers; it is replaced by
    ``{"ring": number}``.

    Parameters
    ----------
    data
        uint8 (n,): the block.
    at
        Where to begin in it.
    most_elements
        The number of features that completes a batch.
    state
        int64 (5,): see `DEPTH`. Changed in place.
    frame
        uint8: receives the text without features.
    batch
        uint8: receives the text of features, with the commas between them.
    xy, ring_sizes
        float64 (v, 2), int64 (r,): receive the vertices, and how many each
        ring has.
    counts
        int64 (4,): how much of ``frame``, ``batch``, ``xy``, ``ring_sizes`` is
        used. Changed in place.

    Returns
    -------
    Where it stopped: at the end, at a token that the block cuts off, or after
    the comma behind a complete batch; and whether it was that comma.
    """
    cdef bint is_complete = False
    cdef Py_ssize_t end
    expect(state.shape[0] == 5 and counts.shape[0] == 4 and xy.shape[1] == 2, "buffers of another shape")
    expect(
        at >= 0
        and 0 <= counts[0] <= frame.shape[0] and 0 <= counts[1] <= batch.shape[0]
        and 0 <= counts[2] <= xy.shape[0] and 0 <= counts[3] <= ring_sizes.shape[0],
        "more is used than there is",
    )
    with nogil:
        end = split(
            data, at, most_elements, state, frame, batch, xy, ring_sizes, counts, &is_complete
        )
    expect(end != no_room, "a buffer is too small")
    return end, is_complete


cdef Py_ssize_t split(
    const uint8_t[::1] data,
    Py_ssize_t at,
    int64_t most_elements,
    int64_t[::1] state,
    uint8_t[::1] frame,
    uint8_t[::1] batch,
    double[:, ::1] xy,
    int64_t[::1] ring_sizes,
    int64_t[::1] counts,
    bint* is_complete,
) except -1 nogil:
    cdef Py_ssize_t n = data.shape[0], end
    cdef uint8_t byte
    while at < n:
        byte = data[at]
        end = at + 1
        if byte == b'"':
            end = string_end(data, at)
            if end < 0:
                return at
            if state[depth] == 1 and state[list_depth] == 2:
                state[armed] = is_text(data, at, end, FEATURES)
        elif byte == b"[":
            if state[inside]:
                end = read_ring(data, at, xy, ring_sizes, counts)
                if end == cut_off:
                    return at
                if end == no_room or end > 0 and not write_mark(batch, counts):
                    return no_room
                if end > 0:
                    at = end
                    continue
                end = at + 1
            state[depth] += 1
            if state[armed] and not state[inside] and state[depth] == state[list_depth]:
                # The bracket itself belongs to the frame.
                if not copy(data, at, end, frame, counts, 0):
                    return no_room
                state[inside] = 1
                at = end
                continue
        elif byte == b"{":
            state[depth] += 1
        elif byte == b"]" or byte == b"}":
            if state[inside] and state[depth] == state[list_depth]:
                state[inside] = 0
                state[armed] = 0
            state[depth] -= 1
        elif byte == b",":
            if state[inside] and state[depth] == state[list_depth]:
                state[elements] += 1
                if state[elements] >= most_elements:
                    state[elements] = 0
                    is_complete[0] = True
                    return end
        else:
            while end < n and not is_structure(data[end]):
                end += 1
        if state[inside]:
            if not copy(data, at, end, batch, counts, 1):
                return no_room
        elif not copy(data, at, end, frame, counts, 0):
            return no_room
        at = end
    return at


cdef inline bint is_structure(uint8_t byte) noexcept nogil:
    return (
        byte == b'"' or byte == b"," or byte == b"[" or byte == b"]" or byte == b"{" or byte == b"}"
    )


cdef inline bint copy(
    const uint8_t[::1] data,
    Py_ssize_t at,
    Py_ssize_t end,
    uint8_t[::1] target,
    int64_t[::1] counts,
    int which,
) except -1 nogil:
    """Append bytes to a text; return whether there was room."""
    cdef Py_ssize_t k, used = counts[which]
    if end - at > target.shape[0] - used:
        return False
    for k in range(at, end):
        target[used + k - at] = data[k]
    counts[which] += end - at
    return True


cdef bint is_text(
    const uint8_t[::1] data, Py_ssize_t at, Py_ssize_t end, const char* text
) except -1 nogil:
    cdef Py_ssize_t k
    for k in range(at, end):
        if text[k - at] == 0 or data[k] != <uint8_t>text[k - at]:
            return False
    return text[end - at] == 0


cdef Py_ssize_t string_end(const uint8_t[::1] data, Py_ssize_t at) except -1 nogil:
    """Return the end of a JSON string that begins here."""
    cdef Py_ssize_t k = at + 1
    while k < data.shape[0]:
        if data[k] == b'"':
            return k + 1
        k += 2 if data[k] == b"\\" else 1
    return cut_off


cdef Py_ssize_t read_ring(
    const uint8_t[::1] data,
    Py_ssize_t at,
    double[:, ::1] xy,
    int64_t[::1] ring_sizes,
    int64_t[::1] counts,
) except -1 nogil:
    """Read ``[[1, 2], [3, 4]]``; a last vertex equal to the first is left out."""
    cdef Py_ssize_t n = data.shape[0], first = counts[2], points = first
    cdef Py_ssize_t k = after_space(data, at + 1)
    cdef Value position
    while True:
        if k >= n:
            return cut_off
        if data[k] != b"[":
            return not_plain
        position = read_position(data, k)
        k = position.end
        if k < 0:
            return k
        if points == xy.shape[0]:
            return no_room
        xy[points, 0] = position.x
        xy[points, 1] = position.y
        points += 1
        k = after_space(data, k)
        if k >= n:
            return cut_off
        if data[k] == b"]":
            break
        if data[k] != b",":
            return not_plain
        k = after_space(data, k + 1)
    if (
        points - first > 1
        and xy[points - 1, 0] == xy[first, 0]
        and xy[points - 1, 1] == xy[first, 1]
    ):
        points -= 1
    if counts[3] == ring_sizes.shape[0]:
        return no_room
    ring_sizes[counts[3]] = points - first
    counts[2] = points
    counts[3] += 1
    return k + 1


cdef Value read_position(const uint8_t[::1] data, Py_ssize_t at) noexcept nogil:
    """Read ``[1, 2]``, further numbers ignored."""
    cdef Py_ssize_t n = data.shape[0], k = at + 1
    cdef int place = 0
    cdef Value number, position
    position.x = position.y = 0.0
    while True:
        number = read_number(data, after_space(data, k))
        k = number.end
        if k < 0:
            position.end = k
            return position
        if place == 0:
            position.x = number.x
        elif place == 1:
            position.y = number.x
        place += 1
        k = after_space(data, k)
        if k >= n:
            position.end = cut_off
            return position
        if data[k] == b"]":
            position.end = k + 1 if place > 1 else not_plain
            return position
        if data[k] != b",":
            position.end = not_plain
            return position
        k += 1


cdef bint write_mark(uint8_t[::1] batch, int64_t[::1] counts) except -1 nogil:
    """Write the mark of the last ring; return whether there was room."""
    cdef Py_ssize_t used = counts[1], k = 0
    cdef int64_t number = counts[3] - 1, scale = 1
    if batch.shape[0] - used < 8 + 19 + 1:
        return False
    while OPEN_MARK[k]:
        batch[used] = <uint8_t>OPEN_MARK[k]
        used += 1
        k += 1
    while number // scale >= 10:
        scale *= 10
    while scale:
        batch[used] = <uint8_t>(48 + number // scale % 10)
        used += 1
        scale //= 10
    batch[used] = b"}"
    counts[1] = used + 1
    return True


def number_at(const uint8_t[::1] data not None, Py_ssize_t at):
    """Return a number as the scanner reads it, and its end; negative if it is not taken."""
    expect(at >= 0, "a text begins at 0")
    cdef Value number = read_number(data, at)
    return number.x, number.end


cdef Value read_number(const uint8_t[::1] data, Py_ssize_t at) noexcept nogil:
    """Read digits with at most one point, exactly as Python does.

    The end tells what is cut off or not plain: with other characters, more than 18 digits, an
    exponent, or beyond `LARGEST`; of more than 15 digits also with more than 18 decimals.
    """
    cdef Py_ssize_t n = data.shape[0], k = at, begin, point = -1, whole_digits
    cdef double sign = 1.0
    cdef int64_t digits = 0
    cdef int significant = 0, decimals = 0
    cdef uint8_t byte
    cdef Value number
    number.x = number.y = 0.0
    number.end = not_plain
    if k < n and data[k] == b"-":
        sign = -1.0
        k += 1
    begin = k
    while k < n:
        byte = data[k]
        if byte == b"." and point < 0:
            point = k
        elif b"0" <= byte <= b"9":
            if significant == 18 or decimals == 22:
                return number
            digits = digits * 10 + (byte - 48)
            significant += digits > 0
            decimals += point >= 0
        else:
            break
        k += 1
    if k >= n:
        number.end = cut_off
        return number
    whole_digits = (point if point >= 0 else k) - begin
    if (
        data[k] == b"E"
        or data[k] == b"e"
        or whole_digits == 0
        or (point >= 0 and decimals == 0)
        or (whole_digits > 1 and data[begin] == b"0")
    ):
        return number
    number.x = quotient(digits, decimals)
    if number.x <= 1 << 29:
        number.x *= sign
        number.end = k
    else:
        number.x = 0.0
    return number


cdef double quotient(int64_t digits, int decimals) noexcept nogil:
    """Divide by a power of ten, rounded once, to the nearest number (an even one if two are).

    Up to 2^53 and 10^22 both are numbers that a float64 has, and the processor
    divides them so; beyond, the division is done bit by bit.
    """
    cdef double power = 1.0, scale = 1.0
    cdef int64_t divisor = 1, whole, rest
    cdef int _k
    cdef bint half
    if decimals == 0:
        return <double>digits
    if digits < <int64_t>1 << 53:
        for _k in range(decimals):
            power *= 10.0
        return digits / power
    if decimals > 18:
        return INFINITY  # far below any digit that matters: let Python read it
    for _k in range(decimals):
        divisor *= 10
    whole = digits // divisor
    rest = digits - whole * divisor
    # One bit more than a float64 has: it tells which side is nearer.
    while whole < <int64_t>1 << 53:
        rest *= 2
        whole *= 2
        if rest >= divisor:
            rest -= divisor
            whole += 1
        scale *= 0.5
    half = whole & 1
    whole >>= 1
    if half and (rest > 0 or whole & 1):
        whole += 1
    return <double>whole * (scale * 2.0)


cdef inline Py_ssize_t after_space(const uint8_t[::1] data, Py_ssize_t at) noexcept nogil:
    while at < data.shape[0] and (
        data[at] == b" " or data[at] == b"\n" or data[at] == b"\r" or data[at] == b"\t"
    ):
        at += 1
    return at
