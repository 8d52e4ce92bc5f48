"""Levels of images whose pixels are read where they are looked at."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from napari_panoptic.io.pixels.decode import decoding
from napari_panoptic.values.windowed_labels import Box

CHUNK_PX = 512
"""Tile edge that lazy levels announce; viewers fetch in such steps."""


class LazyLevel:
    """One level of an image, read where it is looked at.

    Behaves like a read-only array (y, x, 3) of uint8 as far as viewers need.
    Indexing gives NumPy arrays. Reading from several threads is safe; closing
    while another thread reads is not.

    Parameters
    ----------
    shape
        Height and width in px.
    read
        Returns a window as uint8 (y, x, 3). May raise what decoders raise.
    path, what
        The file, and what is expected, for errors.
    """

    dtype = np.dtype(np.uint8)
    ndim = 3

    def __init__(
        self,
        shape: tuple[int, int],
        read: Callable[[Box], NDArray[np.uint8]],
        path: Path,
        what: str,
    ) -> None:
        self._window, self._path, self._what = read, path, what
        height, width = shape
        self.shape: tuple[int, int, int] = (height, width, 3)
        self.chunks = (min(CHUNK_PX, height), min(CHUNK_PX, width), 3)

    @property
    def size(self) -> int:
        """Number of values."""
        height, width, channels = self.shape
        return height * width * channels

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return read_indexed(key, self.shape, self._read)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a level of a slide is decoded on each access: it needs a copy")
        whole = self._read(0, 0, self.shape[0], self.shape[1])
        return whole if dtype is None else whole.astype(dtype)

    def close(self) -> None:
        """Close the file, also for the other levels, if it is open between two reads.

        Closing more than once does no harm.
        """

    def _read(self, y: int, x: int, height: int, width: int) -> NDArray[np.uint8]:
        if height == 0 or width == 0:
            return np.zeros((height, width, 3), np.uint8)
        with decoding(self._path, self._what):
            return self._window((y, x, y + height, x + width))


def but_smallest(lazy: Sequence[LazyLevel], most_px: int) -> tuple[LazyLevel, ...]:
    """Leave out the last level where it is so small that the overview shows all of it."""
    return tuple(lazy[:-1] if len(lazy) > 1 and _step(lazy[-1], most_px) == 1 else lazy)


def overview(level: LazyLevel, most_px: int) -> NDArray[np.uint8]:
    """Read a small last level: viewers look at all of it whenever the view moves.

    Parameters
    ----------
    level
        The smallest level there is.
    most_px
        Rows and columns are left out at equal steps until it has at most this many pixels.
    """
    height, step = level.shape[0], _step(level, most_px)
    strip = max(step, CHUNK_PX // step * step)
    parts = [level[top : top + strip][::step, ::step] for top in range(0, height, strip)]
    return np.ascontiguousarray(np.concatenate(parts))


def _step(level: LazyLevel, most_px: int) -> int:
    return math.ceil(math.sqrt(level.shape[0] * level.shape[1] / most_px))


def read_indexed(
    key: Any, shape: tuple[int, ...], read: Callable[[int, int, int, int], NDArray[Any]]
) -> Any:
    """Index an array that is read where it is looked at.

    Parameters
    ----------
    key
        An index as for a NumPy array: numbers, slices and an ellipsis.
    shape
        Shape of the array, (y, x) or (y, x, channels).
    read
        Returns a window from its first row and column, height and width.

    Raises
    ------
    IndexError
        For too many indices, or a number beyond the array.
    """
    rows, columns, *rest = _of_all_axes(key, len(shape))
    y, x = _interval(rows, shape[0]), _interval(columns, shape[1])
    block = read(y.start, x.start, len(y), len(x))
    within = _within(rows, y, shape[0]), _within(columns, x, shape[1])
    return block[(*within, *rest)]


def _of_all_axes(key: Any, ndim: int) -> tuple[Any, ...]:
    """Fill up an index to as many places as there are axes."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(part is Ellipsis for part in parts):
        at = next(i for i, part in enumerate(parts) if part is Ellipsis)
        missing = ndim - (len(parts) - 1)
        parts = parts[:at] + (slice(None),) * missing + parts[at + 1 :]
    if len(parts) > ndim:
        raise IndexError(f"too many indices: a level has {ndim} dimensions, found {len(parts)}")
    return (*parts, *(slice(None),) * (ndim - len(parts)))


def _interval(part: Any, length: int) -> range:
    """Return the smallest run of positions that an index touches."""
    if isinstance(part, slice):
        touched = range(*part.indices(length))
        if not touched:
            return range(0)
        return range(min(touched[0], touched[-1]), max(touched[0], touched[-1]) + 1)
    position = int(part)
    if not -length <= position < length:
        raise IndexError(f"index {position} is out of bounds for length {length}")
    position %= length
    return range(position, position + 1)


def _within(part: Any, interval: range, length: int) -> Any:
    """Translate an index on a whole axis into one on the interval that was read."""
    if not isinstance(part, slice):
        return 0
    touched = range(*part.indices(length))
    if not touched:
        return slice(0, 0)
    start, step = touched[0] - interval.start, touched.step
    stop = touched[-1] - interval.start + (1 if step > 0 else -1)
    return slice(start, stop if stop >= 0 else None, step)
