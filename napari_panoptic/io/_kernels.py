"""Compiled loops over pixels: components, growing, shrinking, filling of polygons."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic._compiled import compiled

UNKNOWN = 255
"""What `classify` gives a pixel whose colour is not in its table."""


@compiled
def classify(
    pixels: NDArray[np.uint8], codes: NDArray[np.int64], values: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Look up the colour of each pixel.

    Parameters
    ----------
    pixels
        uint8 (y, x, 3).
    codes
        int64 (n,): red * 65536 + green * 256 + blue of the known colours.
    values
        uint8 (n,): what each known colour stands for.

    Returns
    -------
    uint8 (y, x), `UNKNOWN` where the colour is not known.
    """
    height, width = pixels.shape[:2]
    result = np.empty((height, width), np.uint8)
    last_code = np.int64(-1)
    last_value = np.uint8(255)
    for y in range(height):
        for x in range(width):
            code = (
                (np.int64(pixels[y, x, 0]) << 16)
                | (np.int64(pixels[y, x, 1]) << 8)
                | np.int64(pixels[y, x, 2])
            )
            # Neighbours mostly share their colour.
            if code != last_code:
                last_code = code
                last_value = np.uint8(255)
                for i in range(len(codes)):
                    if codes[i] == code:
                        last_value = values[i]
                        break
            result[y, x] = last_value
    return result


def components(class_image: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Find the 8-connected components of each class.

    Parameters
    ----------
    class_image
        uint8 (y, x): 0 for background, k for class k.

    Returns
    -------
    int32 (y, x): numbers from 1, class by class and in raster order within one.
    """
    return counted_components(class_image)[0]


@compiled
def counted_components(
    class_image: NDArray[np.uint8],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Find the components and count those of each class.

    Parameters
    ----------
    class_image
        As in :func:`components`.

    Returns
    -------
    numbers
        int32 (y, x), as there.
    last
        int32 (256,): the last number of each class, or of those before it
        where it has none; 0 for the background.
    """
    height, width = class_image.shape
    provisional = np.zeros((height, width), np.int32)
    parent = np.empty(height * width + 1, np.int32)
    kind = np.empty(height * width + 1, np.uint8)
    parent[0] = 0
    used = 0
    for y in range(height):
        for x in range(width):
            value = class_image[y, x]
            if value == 0:
                continue
            west = x > 0 and class_image[y, x - 1] == value
            if y > 0 and class_image[y - 1, x] == value:
                # The pixel above touches the three others: they are joined already.
                provisional[y, x] = provisional[y - 1, x]
                continue
            north_west = y > 0 and x > 0 and class_image[y - 1, x - 1] == value
            north_east = y > 0 and x + 1 < width and class_image[y - 1, x + 1] == value
            label = 0
            if west:
                label = provisional[y, x - 1]
            elif north_west:
                label = provisional[y - 1, x - 1]
            if north_east:
                other = provisional[y - 1, x + 1]
                if label == 0:
                    label = other
                else:
                    a = label
                    while parent[a] != a:
                        a = parent[a]
                    b = other
                    while parent[b] != b:
                        b = parent[b]
                    root = min(a, b)
                    parent[a] = root
                    parent[b] = root
                    # Shorten the path for those who come later.
                    parent[label] = root
                    parent[other] = root
            if label == 0:
                used += 1
                label = used
                parent[label] = label
                kind[label] = value
            provisional[y, x] = label
    last = np.zeros(256, np.int32)
    for label in range(1, used + 1):
        last[kind[label]] += parent[label] == label
    last = np.cumsum(last).astype(np.int32)
    # A parent is never above its child, so one ascending pass settles everything.
    given = np.zeros(256, np.int32)
    given[1:] = last[:-1]
    final = np.zeros(used + 1, np.int32)
    for label in range(1, used + 1):
        if parent[label] == label:
            given[kind[label]] += 1
            final[label] = given[kind[label]]
        else:
            final[label] = final[parent[label]]
    for y in range(height):
        for x in range(width):
            if provisional[y, x]:
                provisional[y, x] = final[provisional[y, x]]
    return provisional, last


@compiled
def grow(
    labels: NDArray[np.int32], class_image: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int32], int]:
    """Grow the objects of every class as if each class had an image of its own.

    In that image an object grows into the background only, and where two
    arrive the higher label wins. Then the classes are laid over each other, a
    later one over the earlier.

    Parameters
    ----------
    labels
        int32 (y, x): objects, those of a class above those of all before it.
        Not changed.
    class_image
        uint8 (y, x): the class of each pixel, 0 for background.
    offsets
        int64 (n, 2): the structuring element as steps (dy, dx).

    Returns
    -------
    grown
        int32 (y, x).
    overlapping_px
        How many pixels were taken from the classes before, counted once for
        each class that takes one.
    """
    height, width = labels.shape
    result = labels.copy()
    claimed_by = np.zeros((height, width), np.uint8)
    # Every pixel that an object reaches is reached from its rim.
    start = np.zeros(257, np.int64)
    rim = np.empty((4096, 2), np.int32)
    count = 0
    for y in range(height):
        # Beyond the image edge there is nothing to grow into.
        above = class_image[max(y - 1, 0)]
        here = class_image[y]
        below = class_image[min(y + 1, height - 1)]
        if count + width > len(rim):
            larger = np.empty((2 * len(rim) + width, 2), np.int32)
            larger[:count] = rim[:count]
            rim = larger
        for x in range(width):
            kind = here[x]
            if kind > 0 and (
                above[x] != kind
                or below[x] != kind
                or here[max(x - 1, 0)] != kind
                or here[min(x + 1, width - 1)] != kind
            ):
                rim[count, 0] = y
                rim[count, 1] = x
                count += 1
                start[kind + 1] += 1
    start = np.cumsum(start)
    by_class = np.empty((count, 2), np.int32)
    for k in range(count):
        kind = class_image[rim[k, 0], rim[k, 1]]
        by_class[start[kind]] = rim[k]
        start[kind] += 1
    taken = 0
    for k in range(count):
        y = by_class[k, 0]
        x = by_class[k, 1]
        kind = class_image[y, x]
        label = labels[y, x]
        for i in range(len(offsets)):
            v = y + offsets[i, 0]
            u = x + offsets[i, 1]
            if not (0 <= v < height and 0 <= u < width) or class_image[v, u] == kind:
                continue
            if claimed_by[v, u] != kind:
                claimed_by[v, u] = kind
                taken += result[v, u] > 0
            result[v, u] = max(result[v, u], label)
    return result, taken


@compiled
def shrink(labels: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Erode every object by itself; what lies beyond the image counts as object.

    Parameters
    ----------
    labels
        int32 (y, x). Not changed.
    offsets
        int64 (n, 2): the structuring element as steps (dy, dx).
    """
    height, width = labels.shape
    result = labels.copy()
    around = np.empty(4, np.int32)
    for y in range(height):
        above = labels[max(y - 1, 0)]
        here = labels[y]
        below = labels[min(y + 1, height - 1)]
        for x in range(width):
            own = here[x]
            around[0] = above[x]
            around[1] = below[x]
            around[2] = here[max(x - 1, 0)]
            around[3] = here[min(x + 1, width - 1)]
            if around[0] == own and around[1] == own and around[2] == own and around[3] == own:
                continue
            for side in range(4):
                label = around[side]
                if label == 0 or label == own or label in around[:side]:
                    continue
                # This pixel borders on an object that it is no part of.
                for i in range(len(offsets)):
                    b = y + offsets[i, 0]
                    a = x + offsets[i, 1]
                    if 0 <= b < height and 0 <= a < width and labels[b, a] == label:
                        result[b, a] = 0
    return result


@compiled
def fill_polygon(
    xs: NDArray[np.int64],
    ys: NDArray[np.int64],
    label: int,
    mask: NDArray[np.int32],
    claims: NDArray[np.uint8],
) -> int:
    """Write a polygon into a mask, over what is there.

    A pixel belongs to the polygon if it is a vertex, or if the number of edges
    crossed on the way from it to the right is odd, or the number to the left.
    (An edge is crossed to the right if exactly one of its ends lies below the
    pixel's row, to the left if exactly one lies above it.) These are the pixels
    of ``skimage.draw.polygon``; whole-number arithmetic makes them exact.

    Parameters
    ----------
    xs, ys
        int64 (n,): the vertices, of less than 2^30.
    label
        What to write.
    mask
        int32 (y, x). Changed in place.
    claims
        uint8 (y, x): how many objects claimed each pixel, 2 for more. Changed
        in place.

    Returns
    -------
    Number of pixels inside the image.
    """
    height, width = mask.shape
    n = len(xs)
    first_row = max(0, ys.min())
    last_row = min(height - 1, ys.max())
    first = max(0, xs.min())
    last = min(width - 1, xs.max())
    if first_row > last_row or first > last:
        return 0
    span = last - first + 1
    rightward = np.zeros(span + 1, np.uint8)
    leftward = np.zeros(span + 1, np.uint8)
    vertex = np.zeros(span, np.uint8)
    written = 0
    for y in range(first_row, last_row + 1):
        rightward[:] = 0
        leftward[:] = 0
        vertex[:] = 0
        for i in range(n):
            j = i + 1 if i + 1 < n else 0
            x1, y1, x2, y2 = xs[i], ys[i], xs[j], ys[j]
            if y1 == y and first <= x1 <= last:
                vertex[x1 - first] = 1
            if y1 == y2 or (y1 < y and y2 < y) or (y1 > y and y2 > y):
                continue
            # Where the edge meets the row, as a fraction with a positive denominator.
            over = y2 - y1
            numerator = (y - y1) * (x2 - x1)
            if over < 0:
                over, numerator = -over, -numerator
            floor = x1 + numerator // over
            ceil = x1 - (-numerator) // over
            if (y1 > y) != (y2 > y):
                # Crossed by whoever goes right from a pixel before it.
                end = min(max(ceil - first, 0), span)
                rightward[0] ^= 1
                rightward[end] ^= 1
            if (y1 < y) != (y2 < y):
                begin = min(max(floor + 1 - first, 0), span)
                leftward[begin] ^= 1
        right = 0
        left = 0
        for k in range(span):
            right ^= rightward[k]
            left ^= leftward[k]
            if right or left or vertex[k]:
                x = first + k
                mask[y, x] = label
                claims[y, x] = min(2, claims[y, x] + 1)
                written += 1
    return written


@compiled
def crosses_itself(xs: NDArray[np.float64], ys: NDArray[np.float64]) -> bool:
    """Tell whether two edges of a polygon cross; edges that only touch do not count."""
    n = len(xs)
    for i in range(n):
        i2 = i + 1 if i + 1 < n else 0
        low_x, high_x = min(xs[i], xs[i2]), max(xs[i], xs[i2])
        low_y, high_y = min(ys[i], ys[i2]), max(ys[i], ys[i2])
        for j in range(i + 2, n):
            j2 = j + 1 if j + 1 < n else 0
            if max(xs[j], xs[j2]) < low_x or min(xs[j], xs[j2]) > high_x:
                continue
            if max(ys[j], ys[j2]) < low_y or min(ys[j], ys[j2]) > high_y:
                continue
            ax, ay = xs[i2] - xs[i], ys[i2] - ys[i]
            bx, by = xs[j2] - xs[j], ys[j2] - ys[j]
            # On which side of each edge the ends of the other lie.
            from_a1 = ax * (ys[j] - ys[i]) - ay * (xs[j] - xs[i])
            from_a2 = ax * (ys[j2] - ys[i]) - ay * (xs[j2] - xs[i])
            from_b1 = bx * (ys[i] - ys[j]) - by * (xs[i] - xs[j])
            from_b2 = bx * (ys[i2] - ys[j]) - by * (xs[i2] - xs[j])
            if from_a1 * from_a2 < 0 and from_b1 * from_b2 < 0:
                return True
    return False
