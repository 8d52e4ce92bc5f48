"""Tiles of a slide's levels, decoded by tifffile: faster than OpenSlide, and the same pixels.

OpenSlide goes by regions in premultiplied ARGB, which takes several times as long
as the decoding of the tiles that they consist of. Here tiles are decoded as they
are, where that is known to give the same pixels; OpenSlide reads all else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.decode import (
    DECODING_ERRORS,
    check_page_complete,
    check_tile,
    foreign_decoder,
    open_tiff,
    without_warnings,
)
from napari_panoptic.io.guard import check_segment
from napari_panoptic.kernels.jit import in_threads

VENDORS = ("aperio", "generic-tiff")
"""Slides whose levels are plain pages of a TIFF file, as OpenSlide calls them."""
COMPRESSIONS = (1, 5, 7, 8, 32946, 33005)
"""None, LZW, JPEG, deflate, and JPEG 2000 in RGB: those of which the pixels were compared."""
KEPT_BYTES = 96 << 20
"""Memory for tiles of one level that were decoded already: those of a view and around it."""
PROBED_TILES = 3
"""So many tiles of a level are compared with OpenSlide's when a slide is opened."""

Reader = Callable[[int, int, int, int], NDArray[np.uint8]]
"""Gives a window of a level: its first row and column, its height and width."""


class LevelTiles:
    """One level of a slide, whose tiles are decoded when they are asked for.

    May be used from several threads.

    Parameters
    ----------
    path
        The file.
    page
        Its page, as tifffile describes it: in tiles of uint8 (y, x, 3).
    """

    def __init__(self, path: Path, page: Any) -> None:
        self._path, self._page, self._decode = path, page, page.decode
        self._jpeg_tables = page.jpegtables
        self._edges = int(page.tilelength), int(page.tilewidth)
        self._across = -(-int(page.imagewidth) // self._edges[1])
        self._kept: OrderedDict[int, NDArray[np.uint8]] = OrderedDict()
        self._most = max(1, KEPT_BYTES // (3 * self._edges[0] * self._edges[1]))
        self._lock = Lock()

    def read(self, y: int, x: int, height: int, width: int) -> NDArray[np.uint8]:
        """Return a window inside the level, uint8 (height, width, 3).

        Raises
        ------
        OSError, ValueError, ...
            Whatever of `DECODING_ERRORS` a damaged tile leads to.
        UnreadableFileError
            For tiles that claim to be larger than the page says.
        """
        window = np.empty((height, width, 3), np.uint8)
        for number, tile in self._tiles(self._numbers(y, x, height, width)).items():
            row, column = divmod(number, self._across)
            top, left = row * self._edges[0], column * self._edges[1]
            a, b = max(top, y), min(top + self._edges[0], y + height)
            c, d = max(left, x), min(left + self._edges[1], x + width)
            window[a - y : b - y, c - x : d - x] = tile[a - top : b - top, c - left : d - left]
        return window

    def _numbers(self, y: int, x: int, height: int, width: int) -> list[int]:
        rows = range(y // self._edges[0], (y + height - 1) // self._edges[0] + 1)
        columns = range(x // self._edges[1], (x + width - 1) // self._edges[1] + 1)
        return [row * self._across + column for row in rows for column in columns]

    def _tiles(self, numbers: list[int]) -> dict[int, NDArray[np.uint8]]:
        """Return tiles, those that are not kept decoded by two threads; the latest are kept."""
        with self._lock:
            found = {number: self._kept[number] for number in numbers if number in self._kept}
        missing = [number for number in numbers if number not in found]
        if missing:
            halves = [half for half in (missing[::2], missing[1::2]) if half]
            for decoded in in_threads(self._decoded, halves):
                found |= decoded
        with self._lock:
            for number in numbers:
                self._kept[number] = found[number]
                self._kept.move_to_end(number)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found

    def _decoded(self, numbers: list[int]) -> dict[int, NDArray[np.uint8]]:
        page, tiles = self._page, {}
        with self._path.open("rb", buffering=0) as file, without_warnings():
            for number in numbers:
                file.seek(page.dataoffsets[number])
                data = file.read(page.databytecounts[number])
                check_tile(self._path, page, data)
                with foreign_decoder():
                    tile = self._decode(data, number, jpegtables=self._jpeg_tables)[0]
                tile = np.asarray(tile)[0]  # of one plane
                row, column = divmod(number, self._across)
                expected = self._size(row, column)
                if tile.shape[0] < expected[0] or tile.shape[1] < expected[1]:
                    raise ValueError(f"a tile of {tile.shape} where there must be {expected}")
                tiles[number] = tile
        return tiles

    def _size(self, row: int, column: int) -> tuple[int, int]:
        """Return how much of a tile lies inside the level."""
        height, width = self._edges
        return (
            min(height, int(self._page.imagelength) - row * height),
            min(width, int(self._page.imagewidth) - column * width),
        )

    def places(self) -> list[tuple[int, int, int, int]]:
        """Return some tiles all over the level, as windows: first row and column, height, width."""
        last = len(self._page.dataoffsets) - 1
        numbers = sorted({last * k // max(PROBED_TILES - 1, 1) for k in range(PROBED_TILES)})
        places = []
        for number in numbers:
            row, column = divmod(number, self._across)
            places.append((row * self._edges[0], column * self._edges[1], *self._size(row, column)))
        return places


def level_tiles(path: Path, shape: tuple[int, int], theirs: Reader) -> LevelTiles | None:
    """Find the tiles of a level; None where OpenSlide has to read it.

    Parameters
    ----------
    path
        A slide of one of the `VENDORS`.
    shape
        Height and width of the level in px.
    theirs
        Reads windows of the level by OpenSlide: some tiles are compared.

    Returns
    -------
    LevelTiles or None
        None also for what tifffile does not understand; OpenSlide says what is
        wrong with it, if anything is.
    """
    try:
        with without_warnings(), open_tiff(path) as tiff:
            with foreign_decoder():
                pages = list(tiff.pages)
            page = next((page for page in pages if _is_level(page, shape)), None)
            if page is None:
                return None
            check_page_complete(path, page)
            check_segment((page.tilelength, page.tilewidth, 3), 1, path=path)
            tiles = LevelTiles(path, page)
        is_same = all(np.array_equal(tiles.read(*at), theirs(*at)) for at in tiles.places())
    except UnreadableFileError:
        return None
    except DECODING_ERRORS:
        return None
    return tiles if is_same else None


def _is_level(page: Any, shape: tuple[int, int]) -> bool:
    """Return whether a page has the size of a level, and pixels that are compared elsewhere."""
    return (
        page.is_tiled
        and page.shape == (*shape, 3)
        and page.dtype == np.uint8
        and page.planarconfig == 1
        and int(page.compression) in COMPRESSIONS
        and all(page.databytecounts)  # OpenSlide has ways of its own with tiles that are missing
    )
