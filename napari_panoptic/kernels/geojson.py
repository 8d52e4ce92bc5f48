"""A compiled scanner of GeoJSON, which reads vertices without a Python object for each.

It takes the rings out of a file, block by block, and leaves the rest, the *skeleton*, to an
ordinary parser. What is not written plainly is not taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled

LARGEST = 2**29
"""Vertices farther out, in px, are not taken."""

_FEATURES = np.frombuffer(b'"features"', np.uint8)
_OPEN_MARK = np.frombuffer(b'{"ring":', np.uint8)
RING = "ring"
"""The key that stands for a ring of a skeleton; its value is the ring's number."""

_NOT_PLAIN = -1
_CUT_OFF = -2

DEPTH, INSIDE, ARMED, LIST_DEPTH, ELEMENTS = range(5)
"""Places in the state of `split_features`: open brackets; whether the list of features is open;
whether the next list at depth 1 is it; the depth of its elements; elements in the batch."""


@compiled
def split_features(
    data: NDArray[np.uint8],
    at: int,
    most_elements: int,
    state: NDArray[np.int64],
    frame: NDArray[np.uint8],
    batch: NDArray[np.uint8],
    xy: NDArray[np.float64],
    ring_sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> tuple[int, bool]:
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
    n = len(data)
    while at < n:
        byte = data[at]
        end = at + 1
        if byte == 34:  # "
            end = _string_end(data, at)
            if end < 0:
                return at, False
            if state[DEPTH] == 1 and state[LIST_DEPTH] == 2:
                state[ARMED] = np.array_equal(data[at:end], _FEATURES)
        elif byte == 91:  # [
            if state[INSIDE]:
                end = _ring(data, at, xy, ring_sizes, counts)
                if end == _CUT_OFF:
                    return at, False
                if end > 0:
                    counts[1] = _mark(batch, counts[1], counts[3] - 1)
                    at = end
                    continue
                end = at + 1
            state[DEPTH] += 1
            if state[ARMED] and not state[INSIDE] and state[DEPTH] == state[LIST_DEPTH]:
                # The bracket itself belongs to the frame.
                frame[counts[0]] = byte
                counts[0] += 1
                state[INSIDE] = 1
                at = end
                continue
        elif byte == 123:  # {
            state[DEPTH] += 1
        elif byte == 93 or byte == 125:  # ] }
            if state[INSIDE] and state[DEPTH] == state[LIST_DEPTH]:
                state[INSIDE] = 0
                state[ARMED] = 0
            state[DEPTH] -= 1
        elif byte == 44:  # ,
            if state[INSIDE] and state[DEPTH] == state[LIST_DEPTH]:
                state[ELEMENTS] += 1
                if state[ELEMENTS] >= most_elements:
                    state[ELEMENTS] = 0
                    return end, True
        else:
            while end < n and data[end] not in (34, 44, 91, 93, 123, 125):  # " , [ ] { }
                end += 1
        target, which = (batch, 1) if state[INSIDE] else (frame, 0)
        for k in range(at, end):
            target[counts[which] + k - at] = data[k]
        counts[which] += end - at
        at = end
    return at, False


@compiled
def _string_end(data: NDArray[np.uint8], at: int) -> int:
    """Return the end of a JSON string that begins here."""
    k = at + 1
    while k < len(data):
        if data[k] == 34:
            return k + 1
        k += 2 if data[k] == 92 else 1  # backslash
    return _CUT_OFF


@compiled
def _ring(
    data: NDArray[np.uint8],
    at: int,
    xy: NDArray[np.float64],
    ring_sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> int:
    """Read ``[[1, 2], [3, 4]]``; a last vertex equal to the first is left out."""
    n = len(data)
    first = counts[2]
    points = first
    k = _after_space(data, at + 1)
    while True:
        if k >= n:
            return _CUT_OFF
        if data[k] != 91:
            return _NOT_PLAIN
        x, y, k = _position(data, k)
        if k < 0:
            return k
        xy[points, 0], xy[points, 1] = x, y
        points += 1
        k = _after_space(data, k)
        if k >= n:
            return _CUT_OFF
        if data[k] == 93:
            break
        if data[k] != 44:
            return _NOT_PLAIN
        k = _after_space(data, k + 1)
    if (
        points - first > 1
        and xy[points - 1, 0] == xy[first, 0]
        and xy[points - 1, 1] == xy[first, 1]
    ):
        points -= 1
    ring_sizes[counts[3]] = points - first
    counts[2] = points
    counts[3] += 1
    return k + 1


@compiled
def _position(data: NDArray[np.uint8], at: int) -> tuple[float, float, int]:
    """Read ``[1, 2]``, further numbers ignored."""
    n = len(data)
    x = y = 0.0
    k = at + 1
    place = 0
    while True:
        value, k = _number(data, _after_space(data, k))
        if k < 0:
            return 0.0, 0.0, k
        if place == 0:
            x = value
        elif place == 1:
            y = value
        place += 1
        k = _after_space(data, k)
        if k >= n:
            return 0.0, 0.0, _CUT_OFF
        if data[k] == 93:
            return (x, y, k + 1) if place > 1 else (0.0, 0.0, _NOT_PLAIN)
        if data[k] != 44:
            return 0.0, 0.0, _NOT_PLAIN
        k += 1


@compiled
def _mark(batch: NDArray[np.uint8], used: int, number: int) -> int:
    """Write the mark of a ring; return the end of the text."""
    for mark in _OPEN_MARK:
        batch[used] = mark
        used += 1
    scale = 1
    while number // scale >= 10:
        scale *= 10
    while scale:
        batch[used] = 48 + number // scale % 10
        used += 1
        scale //= 10
    batch[used] = 125
    return used + 1


@compiled
def _number(data: NDArray[np.uint8], at: int) -> tuple[float, int]:
    """Read digits with at most one point, exactly as Python does.

    Parameters
    ----------
    data
        The bytes.
    at
        Where the number begins.

    Returns
    -------
    The number; and its end, or that it is cut off or not plain: with
    other characters, more than 18 digits, an exponent, or beyond `LARGEST`;
    of more than 15 digits also with more than 18 decimals.
    """
    n = len(data)
    k = at
    sign = 1.0
    if k < n and data[k] == 45:  # -
        sign = -1.0
        k += 1
    digits, significant, decimals = np.int64(0), 0, 0
    begin = k
    point = -1
    while k < n:
        byte = data[k]
        if byte == 46 and point < 0:
            point = k
        elif 48 <= byte <= 57:
            if significant == 18 or decimals == 22:
                return 0.0, _NOT_PLAIN
            digits = digits * 10 + (byte - 48)
            significant += digits > 0
            decimals += point >= 0
        else:
            break
        k += 1
    if k >= n:
        return 0.0, _CUT_OFF
    whole_digits = (point if point >= 0 else k) - begin
    if data[k] == 69 or data[k] == 101:  # E e
        return 0.0, _NOT_PLAIN
    if (
        whole_digits == 0
        or (point >= 0 and decimals == 0)
        or (whole_digits > 1 and data[begin] == 48)
    ):
        return 0.0, _NOT_PLAIN
    value = _quotient(int(digits), decimals)
    return (sign * value, k) if value <= LARGEST else (0.0, _NOT_PLAIN)


@compiled
def _quotient(digits: int, decimals: int) -> float:
    """Divide by a power of ten, rounded once, to the nearest number (an even one if two are).

    Up to 2^53 and 10^22 both are numbers that a float64 has, and the processor
    divides them so; beyond, the division is done bit by bit.
    """
    if decimals == 0:
        return float(digits)
    if digits < 2**53:
        power = 1.0
        for _ in range(decimals):
            power *= 10.0
        return digits / power
    if decimals > 18:
        return np.inf  # far below any digit that matters: let Python read it
    divisor = np.int64(1)
    for _ in range(decimals):
        divisor *= 10
    quotient = digits // divisor
    rest = digits - quotient * divisor
    # One bit more than a float64 has: it tells which side is nearer.
    scale = 1.0
    while quotient < 2**53:
        rest *= 2
        quotient *= 2
        if rest >= divisor:
            rest -= divisor
            quotient += 1
        scale *= 0.5
    half = quotient & 1
    quotient >>= 1
    if half and (rest > 0 or quotient & 1):
        quotient += 1
    return float(quotient) * (scale * 2.0)


@compiled
def _after_space(data: NDArray[np.uint8], at: int) -> int:
    while at < len(data) and data[at] in (32, 10, 13, 9):
        at += 1
    return at
