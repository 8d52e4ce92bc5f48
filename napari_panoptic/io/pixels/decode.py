"""Pixels of TIFF, NPY, PNG and JPEG files; errors of decoders; sizes and axes of images."""

from __future__ import annotations

import io
import logging
import math
import re
import struct
import threading
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import visible
from napari_panoptic.io.files.guard import check_file, check_pixels, check_segment
from napari_panoptic.io.pixels.packed_arrays import (
    holds_objects,
    is_npz,
    masks_of_cellpose,
    npz_labels,
    npz_shape,
    objects_refused,
)
from napari_panoptic.io.pixels.page_chain import check_page_chain
from napari_panoptic.values.labels import size_text

DECODING_ERRORS: tuple[type[Exception], ...] = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AssertionError,
    RuntimeError,
    EOFError,
    AttributeError,
    MemoryError,
    tifffile.TiffFileError,  # a ValueError in later versions only
    struct.error,
    tokenize.TokenError,
    zlib.error,
    zipfile.BadZipFile,
    Image.DecompressionBombError,
)
"""Errors that decoders raise on damaged files: they share no common base.

Errors that only a mistake in a program raises are left out; see `foreign_decoder`.
"""
_MISTAKES = (NameError, SyntaxError)
"""Raised on damaged files as well: SyntaxError by Pillow, UnboundLocalError by tifffile."""

_FORMATS = ("PNG", "JPEG", "JPEG2000", "BMP", "GIF", "WEBP", "PPM")
"""Formats that Pillow may open. It knows more: EPS is a program that Ghostscript would run."""

_SERIES_OF_OTHERS = {
    f"is_{kind}": False
    for kind in (
        *("mmstack", "micromanager", "ome", "ndtiff", "fluoview", "stk", "sis", "scn", "qpi"),
        *("ndpi", "bif", "avs", "eer", "philips", "scanimage", "indica", "nih", "mdgel", "lsm"),
    )
}
"""Dialects of TIFF that tifffile must not follow.

Several parse XML from the file with a parser that expands entities, and OME,
MMStack and NDTiff open whatever other files the metadata name. Their pixels
are in ordinary pages.
"""
_OrdinaryTiff = type("_OrdinaryTiff", (tifffile.TiffFile,), _SERIES_OF_OTHERS)
"""Without dialects: as arguments, these fail in versions of tifffile until early 2026."""

_IMAGE_CODECS = {
    **dict.fromkeys((6, 7, 99, 33007, 34892), "JPEG"),
    **dict.fromkeys((33003, 33004, 33005, 34712), "JPEG2000"),
    **dict.fromkeys((34927, 50001), "WEBP"),
    34933: "PNG",
}
"""Compressions of TIFF whose data are pictures with a size of their own, as Pillow calls them."""
_LOSSY_JPEG = (6, 7, 33007)
"""Compressions of TIFF that are JPEG with losses."""
_CMYK = 1
"""The value of the TIFF tag *InkSet* for the usual four inks."""
_UNBOUNDED_CODECS = (9, 10, 22610, 34661, 34715, 34887, 34934, 48124, 50002, 52546)
"""Compressions whose size is not known beforehand: JBIG, JPEG XR and XL, LERC, Jetraw."""

# Without a handler, Python prints what tifffile logs of damaged files beside our own error.
logging.getLogger("tifffile").addHandler(logging.NullHandler())
_pillow = threading.Lock()

TIFF_MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")

MOST_CHANNELS = 16
"""If the dimensions have no names, one longer than this is height or width."""


@contextmanager
def foreign_decoder() -> Iterator[None]:
    """Turn NameError and SyntaxError of another package's decoder into ValueError.

    Put only calls of such decoders inside: raised by this package, the same errors are
    mistakes in it, and no file is damaged.
    """
    try:
        yield
    except _MISTAKES as error:
        raise ValueError(str(error) or type(error).__name__) from error


@contextmanager
def decoding(path: Path, what: str, *others: type[Exception]) -> Iterator[None]:
    """Turn the errors of decoders into one that names the file; suppress their warnings.

    Parameters
    ----------
    path, what
        The file, and what is expected.
    others
        Errors of a decoder beside `DECODING_ERRORS`.

    Raises
    ------
    UnreadableFileError
        If the file cannot be decoded.
    """
    try:
        with without_warnings():
            yield
    except (*DECODING_ERRORS, *others) as error:
        raise undecodable(path, what, error) from error


def read_pixels(path: Path, what: str, *, colour: bool) -> NDArray[Any]:
    """Decode a TIFF, PNG, JPEG or NPY file, whatever its name says.

    Parameters
    ----------
    path
        The file.
    what
        What is expected, for error messages.
    colour
        Whether palettes are turned into colours (else the indices are kept).

    Returns
    -------
    array
        (y, x) or (y, x, channel); further dimensions of one are dropped.

    Raises
    ------
    UnreadableFileError
        If it cannot be decoded.
    """
    check_file(path, what)
    with decoding(path, what):
        match file_kind(path):
            case "tiff":
                array = _decode_tiff(path, colour)
            case "npy" if holds_objects(path):
                array = channels_last(masks_of_cellpose(path, what))
            case "npy":
                array = _decode_npy(path, what)
            case _ if is_npz(path):
                with foreign_decoder():  # NumPy warns about damaged headers
                    array = channels_last(npz_labels(path, what))
            case _:
                array = _decode_other(path, colour)
        _checked_shape(array.shape)
    return array


def check_exact(path: Path, what: str) -> None:
    """Check that the numbers in a picture are those that were saved.

    JPEG changes them, also within TIFF; of a PNG with 16-bit colours only the upper half of
    each number is decoded.

    Raises
    ------
    UnreadableFileError
        If they are not.
    """
    check_file(path, what)
    with path.open("rb") as file:
        start = file.read(26)
    is_jpeg = start.startswith(b"\xff\xd8\xff")
    if start[:4] in TIFF_MAGIC:
        with without_warnings(), suppress(*DECODING_ERRORS), open_tiff(path) as tiff:
            is_jpeg = int(tiff.pages[0].compression) in _LOSSY_JPEG
    if is_jpeg:
        raise UnreadableFileError(
            f"expected {what}, found JPEG compression, which changes the numbers of objects; save "
            f"the image as PNG, or as TIFF with deflate or LZW compression",
            path=path,
        )
    # Bit depth and type of colour are the last bytes read of a PNG.
    if start[:8] == b"\x89PNG\r\n\x1a\n" and start[24:25] == b"\x10" and start[25:26] in b"\2\6":
        raise UnreadableFileError(
            f"expected {what}, found a PNG in colours of 16 bits each; save one channel of "
            f"numbers, as PNG or TIFF of 16 bits",
            path=path,
        )


def pixel_shape(path: Path, what: str) -> tuple[int, ...]:
    """Return the shape of an image file without decoding its pixels.

    Raises
    ------
    UnreadableFileError
        If its header cannot be understood.
    """
    check_file(path, what)
    axes = ""
    with decoding(path, what):
        match file_kind(path):
            case "tiff":
                with open_tiff(path) as tiff:
                    series = tiff_series(tiff)
                    shape, axes = tuple(series.shape), series.axes
            case "npy" if holds_objects(path):
                shape = masks_of_cellpose(path, what).shape
            case "npy":
                shape = map_npy(path, what).shape
            case _ if is_npz(path):
                with foreign_decoder():
                    shape = npz_shape(path, what)
            case _:
                with open_picture(path) as image:
                    return (image.height, image.width)
        return channels_last_shape(_checked_shape(shape), axes)


def file_kind(path: Path) -> str:
    """Return ``tiff``, ``npy`` or ``other`` by the first bytes: names mislead."""
    with path.open("rb") as file:
        start = file.read(6)
    if start[:4] in TIFF_MAGIC:
        return "tiff"
    return "npy" if start == b"\x93NUMPY" else "other"


def undecodable(path: Path, what: str, error: Exception) -> UnreadableFileError:
    """Return the error for a file that a decoder cannot read."""
    reason = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
    reason = reason.replace(str(path), path.name)
    if isinstance(error, (IndexError, AttributeError)):
        # The message describes the decoder, not the file.
        reason = "a part that the format requires is missing"
    # Python's message about an expression that is not a literal contains a memory address.
    reason = re.sub(r":? *<[^<>]* object at 0x[0-9A-Fa-f]+>", "", reason)
    # Decoders quote the file, which may not be text.
    reason = visible(reason)
    return UnreadableFileError(
        f"expected {what}, but it cannot be decoded: it is damaged, cut off or of another "
        f"format ({reason[:160]}); copy or export it again",
        path=path,
    )


def channels_last(array: NDArray[Any], axes: str = "") -> NDArray[Any]:
    """Drop superfluous dimensions of one, and put channels last.

    Parameters
    ----------
    array
        As decoded.
    axes
        A letter per dimension, as tifffile names them; empty if unknown.
    """
    drop = _superfluous(array.shape, axes)
    axes = "".join(axis for i, axis in enumerate(axes) if i not in drop)
    array = array.squeeze(axis=drop)
    return np.moveaxis(array, 0, -1) if _channels_first(array.shape, axes) else array


def channels_last_shape(shape: tuple[int, ...], axes: str) -> tuple[int, ...]:
    """Return the shape that `channels_last` gives."""
    return channels_last(np.broadcast_to(np.uint8(0), shape), axes).shape


def _superfluous(shape: tuple[int, ...], axes: str) -> tuple[int, ...]:
    single = [i for i, size in enumerate(shape) if size == 1 and axes[i : i + 1] not in set("YX")]
    if len(shape) <= 2 or axes:
        return tuple(single) if len(shape) > 2 else ()
    # The dimensions have no names: a picture one pixel high stays one.
    if len(shape) == 3 and single[:1] == [0] and 1 < shape[2] <= MOST_CHANNELS:
        return ()
    return tuple(single[: len(shape) - 2])


def _channels_first(shape: tuple[int, ...], axes: str) -> bool:
    if len(shape) != 3:
        return False
    if axes.endswith("S"):
        return False
    # Few planes of a larger picture: planes are channels, whatever the file calls them.
    return axes[:1] in ("S", "C") or (shape[0] <= MOST_CHANNELS < shape[2])


def check_size(
    found: tuple[int, ...],
    expected: tuple[int, int] | None,
    *,
    path: Path,
    region: str | None = None,
    what: str = "the mask",
) -> None:
    """Check that a mask has the size of its region.

    Raises
    ------
    UnreadableFileError
        Naming both sizes, and whether width and height are swapped.
    """
    if expected is None or tuple(found[:2]) == tuple(expected):
        return
    hint = "make sure that it belongs to this region and was not scaled or padded"
    if tuple(found[:2]) == (expected[1], expected[0]):
        hint = "width and height are swapped: transpose the mask"
    raise UnreadableFileError(
        f"{what} must have the region's size of {size_text(expected)}, "
        f"found {size_text(found)}; {hint}",
        path=path,
        region=region,
    )


def _checked_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) < 2 or 0 in shape:
        raise ValueError(f"expected a 2-D or 3-D image, found an array of shape {shape}")
    return shape


_quiet_lock = threading.Lock()
_quiet: list[warnings.catch_warnings[None]] = []
_quiet_users = 0


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress the warnings of decoders: our own errors report what is wrong with a file.

    Several threads may decode at once, and filters belong to the whole process: the first
    user sets them, and the last one restores them.
    """
    global _quiet_users
    with _quiet_lock:
        if _quiet_users == 0:
            _quiet.append(warnings.catch_warnings(action="ignore"))
            _quiet[0].__enter__()
        _quiet_users += 1
    try:
        yield
    finally:
        with _quiet_lock:
            _quiet_users -= 1
            if _quiet_users == 0:
                _quiet.pop().__exit__(None, None, None)


def _decode_tiff(path: Path, colour: bool) -> NDArray[Any]:
    with open_tiff(path) as tiff:
        series = tiff_series(tiff)
        page = tiff.pages[0]
        check_complete(path, tiff)
        check_pixels(series.shape, series.dtype.itemsize, path=path, what="a TIFF file")
        for own in filter(None, series.pages):
            check_segments(path, own.aspage())
        with foreign_decoder():
            array: NDArray[Any] = series.asarray()
        if (
            colour
            and page.photometric == tifffile.PHOTOMETRIC.PALETTE
            and page.colormap is not None
        ):
            return np.ascontiguousarray((page.colormap >> 8).astype(np.uint8).T[array])
        pixels = channels_last(array, series.axes)
        return _in_rgb(pixels, page, path) if colour else pixels


def _in_rgb(pixels: NDArray[Any], page: Any, path: Path) -> NDArray[Any]:
    """Return the pixels of a page as RGB or as grey with black as 0, by its photometric tag."""
    kinds, kind = tifffile.PHOTOMETRIC, page.photometric
    is_lossy = int(page.compression) in _LOSSY_JPEG  # its decoder returns RGB
    if kind in (kinds.MINISBLACK, kinds.RGB) or (kind == kinds.YCBCR and is_lossy):
        return pixels
    if kind == kinds.MINISWHITE and pixels.dtype.kind in "bu":
        white = pixels.dtype.type((1 << int(page.bitspersample)) - 1)
        return ~pixels if pixels.dtype.kind == "b" else white - pixels
    inks = page.tags["InkSet"].value if "InkSet" in page.tags else _CMYK
    is_cmyk = kind == kinds.SEPARATED and inks == _CMYK
    if is_cmyk and pixels.ndim == 3 and pixels.shape[2] == 4 and pixels.dtype.kind == "u":
        white = np.iinfo(pixels.dtype).max
        light = white - pixels.astype(np.uint32)
        return ((light[..., :3] * light[..., 3:] + white // 2) // white).astype(pixels.dtype)
    raise UnreadableFileError(
        f"expected an image in RGB, grey or CMYK, found a TIFF whose colours are stored as "
        f"{getattr(kind, 'name', kind)} ({pixels.dtype}); save it as 8-bit RGB",
        path=path,
    )


def check_complete(path: Path, tiff: Any) -> None:
    """Check every page of a file; see `check_page_complete`."""
    for page in tiff_series(tiff).pages:
        check_page_complete(path, page)


def check_page_complete(path: Path, page: Any) -> None:
    """Check that the pixel data of a page lie inside its file.

    The decoder would fill missing pixels with zeros, that is, background, or take the first
    bytes of the file for pixels.

    Raises
    ------
    ValueError
        If they do not.
    """
    size = path.stat().st_size
    pieces = list(zip(page.dataoffsets, page.databytecounts, strict=True))
    needed = math.prod(page.chunked)
    # Some programs write all pixels in one strip, and declare several.
    is_whole = page.is_contiguous and sum(page.databytecounts) >= page.nbytes
    if len(pieces) < needed and not is_whole:
        raise ValueError(f"it has {len(pieces)} of {needed} strips or tiles of pixels")
    end = max((offset + length for offset, length in pieces), default=0)
    if end > size:
        raise ValueError(f"pixel data end at byte {end}, the file at byte {size}")
    # Empty pieces were never written: they are background.
    if any(length and not offset for offset, length in pieces):
        raise ValueError("the place of its pixel data is missing")


def map_npy(path: Path, what: str) -> np.memmap[Any, np.dtype[Any]]:
    """Map an NPY array without reading it; pickled objects, which could run code, are refused.

    Raises
    ------
    UnreadableFileError
        If the file is not an NPY array of numbers.
    """
    try:
        # A size that overflows would be taken for a small one.
        with np.errstate(over="raise"), without_warnings(), foreign_decoder():
            array: np.memmap[Any, np.dtype[Any]] = np.load(path, mmap_mode="r", allow_pickle=False)
    except DECODING_ERRORS as error:
        if "pickled" not in str(error) and "Python objects" not in str(error):
            raise undecodable(path, what, error) from error
        raise objects_refused(path, what) from error
    return array


def _decode_npy(path: Path, what: str) -> NDArray[Any]:
    mapped = map_npy(path, what)
    check_pixels(mapped.shape, mapped.dtype.itemsize, path=path, what=what)
    return channels_last(np.array(mapped))


def _decode_other(path: Path, colour: bool) -> NDArray[Any]:
    with open_picture(path) as image:
        check_pixels((image.height, image.width), 4, path=path, what="a picture")
        with foreign_decoder():
            if colour and image.mode in ("P", "CMYK", "YCbCr", "LAB", "HSV", "PA"):
                return np.asarray(image.convert("RGBA" if "transparency" in image.info else "RGB"))
            return np.asarray(image)


def open_tiff(path: Path) -> Any:
    """Open a TIFF file for its own pages alone: neither its XML nor any other file is read.

    Raises
    ------
    ValueError
        If the pages have no end.
    """
    check_page_chain(path)
    with foreign_decoder():
        return _OrdinaryTiff(path)


def tiff_series(tiff: Any) -> Any:
    """Read the pages of an open TIFF file and return its first image."""
    with foreign_decoder():
        return tiff.series[0]


def check_segments(path: Path, page: Any) -> None:
    """Check that tiles or strips are not larger than the page says, and can be read one way only.

    Most codecs stop when the page's tile is full. Pictures within a tile have a size of their
    own, which is compared here.

    Raises
    ------
    UnreadableFileError
        If they are larger, or that is not known beforehand.
    """
    rows, columns = (
        (page.tilelength, page.tilewidth)
        if page.is_tiled
        else (max(1, min(page.rowsperstrip, page.imagelength)), page.imagewidth)
    )
    if page.is_tiled:
        check_segment((rows, columns, page.samplesperpixel), page.dtype.itemsize, path=path)
    compression = int(page.compression)
    if compression in _UNBOUNDED_CODECS:
        raise UnreadableFileError(
            f"the TIFF compression {page.compression.name} is not read; save the image with "
            f"deflate, LZW or JPEG compression",
            path=path,
        )
    if compression == 1 and int(page.predictor) != 1:
        raise UnreadableFileError(
            "the TIFF declares a predictor but no compression; programs disagree on how to read "
            "this. Save the image again, with deflate or LZW compression",
            path=path,
        )
    if compression not in _IMAGE_CODECS:
        return
    with path.open("rb") as file:
        for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
            if size:
                file.seek(offset)
                _check_picture(path, file.read(size), _IMAGE_CODECS[compression], rows, columns)


def check_tile(path: Path, page: Any, data: bytes, edges: tuple[int, int]) -> None:
    """Check that one tile or strip is not larger than the page says; see `check_segments`.

    Raises
    ------
    UnreadableFileError
        If it is.
    """
    kind = _IMAGE_CODECS.get(int(page.compression))
    if kind is not None:
        _check_picture(path, data, kind, *edges)


def _check_picture(path: Path, data: bytes, kind: str, rows: int, columns: int) -> None:
    with open_picture(io.BytesIO(data), (kind,)) as image:
        # Codecs may pad to whole blocks.
        if image.height * image.width > 4 * rows * columns + 64 * 64:
            raise UnreadableFileError(
                f"expected tiles or strips of {size_text((rows, columns))}, found one of "
                f"{size_text((image.height, image.width))}: the file is damaged, or made to "
                f"exhaust the memory; it was not decoded",
                path=path,
            )


def open_picture(file: Path | BinaryIO, formats: tuple[str, ...] = _FORMATS) -> Image.Image:
    """Open a picture without decoding pixels.

    Pillow's own size limit is switched off: callers compare the size with ours.
    """
    with _pillow:
        theirs, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            with foreign_decoder():
                return Image.open(file, formats=formats)
        finally:
            Image.MAX_IMAGE_PIXELS = theirs
