"""Windows of one page of a TIFF file, whose tiles or strips are decoded when they are needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.cache import ByteCache
from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.files.guard import check_segment
from napari_panoptic.io.pixels.decode import (
    DECODING_ERRORS,
    check_page_complete,
    check_tile,
    foreign_decoder,
    open_tiff,
    without_warnings,
)
from napari_panoptic.kernels.threads import in_threads
from napari_panoptic.values.windowed_labels import Box, paste, tile_box, tiles_in

VENDORS = ("aperio", "generic-tiff")
"""Slides whose levels are plain pages of a TIFF file, as OpenSlide calls them."""
COMPRESSIONS = (1, 5, 7, 8, 32946, 33005)
"""None, LZW, JPEG, deflate, and JPEG 2000 in RGB: those whose pixels were compared."""
KEPT_BYTES = 96 << 20
"""Memory for the decoded tiles of one level: those of a view and around it."""
PROBED_TILES = 3
"""Tiles of a level that are compared with OpenSlide's when a slide is opened."""
_DEFLATE = (8, 32946)


class PageWindows:
    """Reads windows of one page; may be used from several threads.

    Parameters
    ----------
    path
        The file.
    page
        The page, as tifffile describes it, with its samples in one plane. It must be complete;
        see `napari_panoptic.io.pixels.decode.check_page_complete`.
    kept_bytes
        Memory for decoded tiles or strips: neighbouring windows need the same ones.

    Raises
    ------
    UnreadableFileError
        If its tiles or strips are too large to be held.
    """

    def __init__(self, path: Path, page: Any, kept_bytes: int) -> None:
        self._path, self._page, self._decode = path, page, page.decode
        self._jpeg_tables = page.jpegtables
        self.shape = int(page.imagelength), int(page.imagewidth)
        self._edges = (
            (int(page.tilelength), int(page.tilewidth))
            if page.is_tiled
            else (min(int(page.rowsperstrip), self.shape[0]), self.shape[1])
        )
        self._samples = (int(page.samplesperpixel),) if page.samplesperpixel > 1 else ()
        segment = (*self._edges, *self._samples)
        check_segment(segment, page.dtype.itemsize, path=path)
        self._across = -(-self.shape[1] // self._edges[1])
        self._kept: ByteCache[int, NDArray[Any] | None] = ByteCache(kept_bytes)
        self._segment_bytes = int(np.prod(segment)) * page.dtype.itemsize
        # tifffile's general decoder is several times slower than this for most label images.
        self._is_plain = (
            page.compression in _DEFLATE
            and page.predictor == 1
            and page.fillorder == 1
            and page.samplesperpixel == 1
            and page.bitspersample == 8 * page.dtype.itemsize
        )
        self._plain_type = np.dtype(page.parent.byteorder + page.dtype.char)

    def read(self, box: Box) -> NDArray[Any]:
        """Return a window inside the page, (y, x) or (y, x, sample); what was never written is 0.

        Raises
        ------
        OSError, ValueError, ...
            Whatever of `napari_panoptic.io.pixels.decode.DECODING_ERRORS` a damaged tile leads to.
        UnreadableFileError
            For tiles that claim to be larger than the page says.
        """
        y0, x0, y1, x1 = box
        window = np.zeros((y1 - y0, x1 - x0, *self._samples), self._page.dtype)
        numbers = [row * self._across + column for row, column in tiles_in(box, self._edges)]
        for number, segment in self._segments(numbers).items():
            if segment is not None:
                paste(window, box, segment, self.place(number)[:2])
        return window

    def place(self, number: int) -> Box:
        """Return the part of the page that a tile or strip covers, by its number."""
        return tile_box(divmod(number, self._across), self._edges, self.shape)

    def _segments(self, numbers: list[int]) -> dict[int, NDArray[Any] | None]:
        """Return tiles or strips; two threads decode those that are not kept."""
        found = self._kept.known(numbers)
        missing = [number for number in numbers if number not in found]
        halves = [half for half in (missing[::2], missing[1::2]) if half]
        for decoded in in_threads(self._decoded, halves) if halves else ():
            found |= decoded
        for number in missing:
            self._kept.add(number, found[number], self._segment_bytes)
        return found

    def _decoded(self, numbers: list[int]) -> dict[int, NDArray[Any] | None]:
        segments: dict[int, NDArray[Any] | None] = {}
        with self._path.open("rb", buffering=0) as file, without_warnings():
            for number in numbers:
                n_bytes = self._page.databytecounts[number]
                file.seek(self._page.dataoffsets[number])
                segments[number] = self._segment(number, file.read(n_bytes)) if n_bytes else None
        return segments

    def _segment(self, number: int, data: bytes) -> NDArray[Any]:
        top, left, bottom, right = self.place(number)
        if self._is_plain:
            height = self._edges[0] if self._page.is_tiled else bottom - top
            n = height * self._edges[1]
            pixels = imagecodecs.deflate_decode(data, out=n * self._plain_type.itemsize)
            return np.frombuffer(pixels, self._plain_type, n).reshape(height, self._edges[1])
        check_tile(self._path, self._page, data, self._edges)
        with foreign_decoder():
            decoded = self._decode(data, number, jpegtables=self._jpeg_tables)[0]
        segment: NDArray[Any] = np.asarray(decoded)[0]  # of one plane
        if segment.shape[0] < bottom - top or segment.shape[1] < right - left:
            raise ValueError(f"expected a tile of {self._edges}, found one of {segment.shape[:2]}")
        segment = segment[: self._edges[0], : self._edges[1]]
        return segment if self._samples else segment.reshape(segment.shape[:2])


def level_windows(
    path: Path, shape: tuple[int, int], by_openslide: Callable[[Box], NDArray[np.uint8]]
) -> PageWindows | None:
    """Return a reader of a slide's level that is faster than OpenSlide and gives the same pixels.

    OpenSlide composes regions in premultiplied ARGB, which takes several times as long as
    decoding the tiles.

    Parameters
    ----------
    path
        A slide of one of the `VENDORS`.
    shape
        Height and width of the level in px.
    by_openslide
        Reads windows of the level by OpenSlide: some tiles are compared.

    Returns
    -------
    PageWindows or None
        None if the pixels differ, or tifffile cannot read them: OpenSlide reads the level, and
        reports what is wrong.
    """
    try:
        with without_warnings(), open_tiff(path) as tiff:
            with foreign_decoder():
                pages = list(tiff.pages)
            page = next((page for page in pages if _is_level(page, shape)), None)
            if page is None:
                return None
            check_page_complete(path, page)
            windows = PageWindows(path, page, KEPT_BYTES)
            last = len(page.dataoffsets) - 1
        for number in {last * k // max(PROBED_TILES - 1, 1) for k in range(PROBED_TILES)}:
            box = windows.place(number)
            if not np.array_equal(windows.read(box), by_openslide(box)):
                return None
    except UnreadableFileError:
        return None
    except DECODING_ERRORS:
        return None
    return windows


def _is_level(page: Any, shape: tuple[int, int]) -> bool:
    """Return whether a page has the size of a level, and pixels that are compared elsewhere."""
    return (
        page.is_tiled
        and page.shape == (*shape, 3)
        and page.dtype == np.uint8
        and page.planarconfig == 1
        and int(page.compression) in COMPRESSIONS
        and all(page.databytecounts)  # OpenSlide fills missing tiles in ways of its own
    )
