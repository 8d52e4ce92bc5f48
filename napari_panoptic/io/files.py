"""What every reader needs: checked paths, decoded pixels, sizes, safe writing."""

from __future__ import annotations

import errno
import io
import logging
import math
import os
import re
import struct
import threading
import tokenize
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import Any, BinaryIO

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.visible import visible
from napari_panoptic.io.guard import check_pixels, check_segment, is_endless
from napari_panoptic.nuclei.values.labels import size_text

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
    Image.DecompressionBombError,
)
"""What decoders raise on damaged files: they share no common base.

Errors that only a mistake in a program raises are not among them; see `foreign_decoder`.
"""
_MISTAKES = (NameError, SyntaxError)
"""What decoders, too, raise on damaged files: Pillow SyntaxError, tifffile UnboundLocalError."""

_FORMATS = ("PNG", "JPEG", "JPEG2000", "BMP", "GIF", "WEBP", "PPM")
"""What Pillow may open. It knows more: EPS, for one, is a program that Ghostscript would run."""

_SERIES_OF_OTHERS = {
    f"is_{kind}": False
    for kind in (
        *("mmstack", "micromanager", "ome", "ndtiff", "fluoview", "stk", "sis", "scn", "qpi"),
        *("ndpi", "bif", "avs", "eer", "philips", "scanimage", "indica", "nih", "mdgel", "lsm"),
    )
}
"""Dialects of TIFF that tifffile is not to follow.

Several parse XML from the file with a parser that expands entities, and OME,
MMStack and NDTiff open whatever other files the metadata name. Their pixels
are in ordinary pages.
"""
_OrdinaryTiff = type("_OrdinaryTiff", (tifffile.TiffFile,), _SERIES_OF_OTHERS)
"""Has no dialects. Passed to tifffile as arguments they fail with versions until early in 2026."""

_IMAGE_CODECS = {
    **dict.fromkeys((6, 7, 99, 33007, 34892), "JPEG"),
    **dict.fromkeys((33003, 33004, 33005, 34712), "JPEG2000"),
    **dict.fromkeys((34927, 50001), "WEBP"),
    34933: "PNG",
}
"""Compressions of TIFF whose data are pictures with a size of their own, as Pillow calls them."""
_LOSSY_JPEG = (6, 7, 33007)
"""Compressions of TIFF that are JPEG with losses."""
_UNBOUNDED_CODECS = (9, 10, 22610, 34661, 34715, 34887, 34934, 48124, 50002, 52546)
"""Such whose size cannot be told beforehand: JBIG, JPEG XR and XL, LERC, Jetraw."""

logging.getLogger("tifffile").addHandler(logging.NullHandler())
# Else Python prints what it logs of damaged files, beside the error that reports them.
_pillow = threading.Lock()
_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
"""What file systems answer that cannot be asked to bring a file to the disk."""

TIFF_MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")

MOST_PAGES = 10_000
"""TIFF files with more pages than this are not read."""
MOST_CHANNELS = 16
"""Where nothing names the dimensions, one longer than this is height or width."""


@contextmanager
def foreign_decoder() -> Iterator[None]:
    """Turn the errors of another package's decoder into ones of `DECODING_ERRORS`.

    Only calls of such decoders belong in here: raised by this package, the same errors
    are its own mistakes, and no file is damaged.

    Raises
    ------
    ValueError
        Where the decoder raises NameError or SyntaxError.
    """
    try:
        yield
    except _MISTAKES as error:
        raise ValueError(str(error) or type(error).__name__) from error


def check_file(path: Path, what: str) -> None:
    """Make sure that there is a readable, non-empty file.

    Raises
    ------
    UnreadableFileError
        With what was expected and what is there instead.
    """
    try:
        mode = path.stat().st_mode
        # Whoever reads a pipe waits for a writer, perhaps for ever; a device has no end.
        if is_endless(mode):
            raise UnreadableFileError(
                f"expected {what}, found a pipe, a socket or a device", path=path
            )
        with path.open("rb") as file:
            empty = not file.read(1)
    except FileNotFoundError:
        raise UnreadableFileError(
            f"expected {what}, but there is no such file", path=path
        ) from None
    except IsADirectoryError:
        raise UnreadableFileError(f"expected {what}, found a folder", path=path) from None
    except PermissionError:
        # Windows says so of folders, too.
        found = "found a folder" if path.is_dir() else "but there is no permission to read it"
        raise UnreadableFileError(f"expected {what}, {found}", path=path) from None
    except OSError as error:
        raise UnreadableFileError(
            f"expected {what}, but it cannot be opened ({error.strerror})", path=path
        ) from error
    except ValueError:
        raise UnreadableFileError(
            f"expected {what}, found a name with a character that no name of a file can have",
            path=path,
        ) from None
    if empty:
        raise UnreadableFileError(
            f"expected {what}, found an empty file (0 bytes); copy or export it again", path=path
        )


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
        (y, x) or (y, x, channel), without singleton dimensions where there are more.

    Raises
    ------
    UnreadableFileError
        Where it cannot be decoded.
    """
    check_file(path, what)
    try:
        with without_warnings():
            match file_kind(path):
                case "tiff":
                    array = _decode_tiff(path, colour)
                case "npy":
                    array = _decode_npy(path, what)
                case _:
                    array = _decode_other(path, colour)
        _checked_shape(array.shape)
        return array
    except DECODING_ERRORS as error:
        raise undecodable(path, what, error) from error


def check_exact(path: Path, what: str) -> None:
    """Check that the numbers in a picture are those that were saved.

    JPEG changes them, also within TIFF; of a PNG in colours of 16 bits only the upper half of
    each number is decoded.

    Raises
    ------
    UnreadableFileError
        Where they are not.
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
        Where its header cannot be understood.
    """
    check_file(path, what)
    try:
        with without_warnings():
            return _shape_of(path, what)
    except DECODING_ERRORS as error:
        raise undecodable(path, what, error) from error


def _shape_of(path: Path, what: str) -> tuple[int, ...]:
    match file_kind(path):
        case "tiff":
            with open_tiff(path) as tiff:
                series = tiff_series(tiff)
                shape, axes = tuple(series.shape), series.axes
            return channels_last_shape(_checked_shape(shape), axes)
        case "npy":
            mapped = map_npy(path, what)
            return channels_last_shape(_checked_shape(mapped.shape), "")
        case _:
            with open_picture(path) as image:
                return (image.height, image.width)


def file_kind(path: Path) -> str:
    """Tell ``tiff``, ``npy`` or ``other`` by the first bytes: names mislead."""
    with path.open("rb") as file:
        start = file.read(6)
    if start[:4] in TIFF_MAGIC:
        return "tiff"
    return "npy" if start == b"\x93NUMPY" else "other"


def undecodable(path: Path, what: str, error: Exception) -> UnreadableFileError:
    """Make the error for a file that a decoder gave up on."""
    reason = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
    reason = reason.replace(str(path), path.name)
    if isinstance(error, (IndexError, AttributeError)):
        # Says where the decoder was, not what is wrong with the file.
        reason = "a part that the format requires is missing"
    # Decoders quote what stands in the file, which may be no text at all.
    reason = visible(reason)
    return UnreadableFileError(
        f"expected {what}, but it cannot be decoded: it is damaged, cut off or of another "
        f"format ({reason[:160]}); copy or export it again",
        path=path,
    )


def channels_last(array: NDArray[Any], axes: str = "") -> NDArray[Any]:
    """Drop dimensions of one that are no part of a picture, and put channels last.

    Parameters
    ----------
    array
        As decoded.
    axes
        A letter per dimension, as tifffile names them; empty where unknown.
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
    # Nobody says which dimension is which: a picture one pixel high stays one.
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
    """Make sure that a mask has the size of its region.

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


@contextmanager
def replaced_when_complete(path: Path) -> Iterator[BinaryIO]:
    """Write a file beside its place and move it there only when it is complete.

    Whoever reads meanwhile sees the old file or the new one, never half of it;
    after an error the old one stays. When this ends without an error the file
    is on the disk, and not only on its way there.
    """
    with replaced_together([path]) as (file,):
        yield file


@contextmanager
def replaced_together(paths: Sequence[Path]) -> Iterator[tuple[BinaryIO, ...]]:
    """Write files that belong together, and move them to their places when all are complete.

    Each appears whole or not at all, and after an error all are as they were.
    Several files cannot be exchanged at once: while they are, those that were
    there lie in a folder named after the first, with ``.before`` added. It goes
    when all are in place. Only where the program is killed in between does it
    stay: then it holds, together, what was saved before.

    Parameters
    ----------
    paths
        Where to write, in one folder; existing files are replaced.
    """
    parts = [_part_of(path) for path in paths]
    try:
        with ExitStack() as stack:
            files = tuple(stack.enter_context(part.open("xb")) for part in parts)
            yield files
            for file in files:
                _bring_to_disk(file)
        if len(paths) > 1:
            exchange(parts, paths)
        else:
            parts[0].replace(paths[0])
        _bring_names_to_disk(paths[0].parent)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _part_of(path: Path) -> Path:
    """Name a file beside another that nobody else writes; what a killed program left is hidden."""
    return path.with_name(f".{path.name[:40]}.{token_hex(4)}.part")


def _bring_to_disk(file: BinaryIO) -> None:
    """Have a file on the disk before it takes the name of another one."""
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _bring_names_to_disk(folder: Path) -> None:
    """Have the new names of files on the disk, too, on systems that can be asked for it."""
    with suppress(OSError):  # Windows opens no folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def folder_to_disk(folder: Path) -> None:
    """Have all that is in a folder on the disk before it takes the name of another one."""
    for path in folder.rglob("*"):
        if path.is_dir():
            _bring_names_to_disk(path)
        else:
            with path.open("r+b") as file:
                _bring_to_disk(file)
    _bring_names_to_disk(folder)


def _checked_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) < 2 or 0 in shape:
        raise ValueError(f"an array of shape {shape} is no picture")
    return shape


_quiet_lock = threading.Lock()
_quiet: list[warnings.catch_warnings[None]] = []
_quiet_users = 0


@contextmanager
def without_warnings() -> Iterator[None]:
    """Keep what decoders warn of to ourselves: what is wrong with a file is said by errors.

    Several threads may decode at once. The filters are those of the whole
    process: the first one to come sets them, the last one to go sets them back.
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


def check_page_chain(path: Path) -> None:
    """Make sure that the pages of a TIFF file, each of which names the next one, have an end.

    The decoder follows a chain that leads back into itself for hours.

    Raises
    ------
    ValueError
        For a circle, for more than `MOST_PAGES`, and where the file ends before it says
        whether there is another page.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        order = "<" if start[:2] == b"II" else ">"
        is_big = b"+" in start[2:4]
        # How many tags a page has, how long each is, and where the next page begins.
        n_tags, tag_bytes, link = ("Q", 20, "Q") if is_big else ("H", 12, "I")
        if not is_big:
            file.seek(4)
        seen = set[int]()
        while place := _unpacked(file, order + link):
            if place in seen or len(seen) == MOST_PAGES:
                raise ValueError(f"its pages lead in a circle, or are more than {MOST_PAGES}")
            seen.add(place)
            file.seek(place)
            end = file.seek(tag_bytes * _unpacked(file, order + n_tags), os.SEEK_CUR)
            # Of a page that is cut off the decoder takes other bytes for the place of the next.
            if place < size < end + struct.calcsize(order + link):
                raise ValueError("it is cut off within the description of a page")


def _unpacked(file: BinaryIO, form: str) -> int:
    """Read a number; 0 where the file ends before it."""
    data = file.read(struct.calcsize(form))
    return int(struct.unpack(form, data)[0]) if len(data) == struct.calcsize(form) else 0


def exchange(parts: Sequence[Path], paths: Sequence[Path]) -> None:
    """Move new files or folders to their places; old ones lie together in a folder meanwhile.

    See :func:`replaced_together`.
    """
    before = paths[0].with_name(f"{paths[0].name}.before")
    try:
        for path in (path for path in paths if path.exists()):
            before.mkdir(exist_ok=True)
            # What somebody else was killed over is older than what lies here, and whole.
            if not (before / path.name).exists():
                path.replace(before / path.name)
            elif path.is_dir():
                _remove_folder(path)
        for part, path in zip(parts, paths, strict=True):
            part.replace(path)
    except BaseException:
        for path in (path for path in paths if (before / path.name).exists()):
            (before / path.name).replace(path)
        with suppress(OSError):
            before.rmdir()
        raise
    if before.is_dir():
        _remove_folder(before)


def _remove_folder(folder: Path) -> None:
    """Remove a folder by one step: half of one could be taken for the whole."""
    rmtree(folder.rename(_part_of(folder)), ignore_errors=True)


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
        return channels_last(array, series.axes)


def check_complete(path: Path, tiff: Any) -> None:
    """Refuse a file any page of which is not all there; see `check_page_complete`."""
    for page in tiff_series(tiff).pages:
        check_page_complete(path, page)


def check_page_complete(path: Path, page: Any) -> None:
    """Refuse a page whose pixel data lie beyond the end of its file, or nowhere.

    The decoder would fill what is missing with zeros, that is, background, or
    take the file's first bytes for pixels.
    """
    size = path.stat().st_size
    pieces = list(zip(page.dataoffsets, page.databytecounts, strict=True))
    needed = math.prod(page.chunked)
    # Some programs write one strip with all there is, and say that there are several.
    is_whole = page.is_contiguous and sum(page.databytecounts) >= page.nbytes
    if len(pieces) < needed and not is_whole:
        raise ValueError(f"it has {len(pieces)} of {needed} strips or tiles of pixels")
    end = max((offset + length for offset, length in pieces), default=0)
    if end > size:
        raise ValueError(f"pixel data end at byte {end}, the file at byte {size}")
    # Pieces without a byte were never written, which is background.
    if any(length and not offset for offset, length in pieces):
        raise ValueError("it does not say where its pixel data are")


def map_npy(path: Path, what: str) -> np.memmap[Any, np.dtype[Any]]:
    """Map an NPY array, without reading it.

    Pickled objects could run code: they are refused.

    Raises
    ------
    UnreadableFileError
        Where it is none.
    """
    try:
        # A size that overflows would be taken for a small one.
        with np.errstate(over="raise"), without_warnings(), foreign_decoder():
            array: np.memmap[Any, np.dtype[Any]] = np.load(path, mmap_mode="r", allow_pickle=False)
    except DECODING_ERRORS as error:
        if "pickled" not in str(error) and "Python objects" not in str(error):
            raise undecodable(path, what, error) from error
        raise UnreadableFileError(
            f"expected {what}, found pickled Python objects, which can run programs and are not "
            f"opened; save the array in it by itself with numpy.save (of a _seg.npy of Cellpose: "
            f"export the masks as PNG or TIFF, there 'Save masks as PNG/tif' or --save_tif)",
            path=path,
        ) from error
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
    """Open a TIFF file for what its own pages hold: no XML of it is read, and no other file.

    Raises
    ------
    ValueError
        Where its pages have no end.
    """
    check_page_chain(path)
    with foreign_decoder():
        return _OrdinaryTiff(path)


def tiff_series(tiff: Any) -> Any:
    """Return the first image of an open TIFF file, whose pages are read now."""
    with foreign_decoder():
        return tiff.series[0]


def check_segments(path: Path, page: Any) -> None:
    """Make sure that tiles or strips are not larger than the page says, and mean one thing only.

    Most codecs stop where the page's tile is full. Those of whole pictures
    give what the picture says, which is compared here.

    Raises
    ------
    UnreadableFileError
        Where they are, or where that cannot be told.
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
            "its pixels are not compressed but said to be differences, which some programs take "
            "for the pixels themselves; save the image again, with deflate or LZW compression",
            path=path,
        )
    if compression not in _IMAGE_CODECS:
        return
    with path.open("rb") as file:
        for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
            if size:
                file.seek(offset)
                _check_picture(path, file.read(size), _IMAGE_CODECS[compression], rows, columns)


def check_tile(path: Path, page: Any, data: bytes) -> None:
    """Make sure that one tile of a page is not larger than the page says; see `check_segments`.

    Raises
    ------
    UnreadableFileError
        Where it is.
    """
    kind = _IMAGE_CODECS.get(int(page.compression))
    if kind is not None:
        _check_picture(path, data, kind, page.tilelength, page.tilewidth)


def _check_picture(path: Path, data: bytes, kind: str, rows: int, columns: int) -> None:
    with open_picture(io.BytesIO(data), (kind,)) as image:
        # Edges may be padded to whole blocks of the codec.
        if image.height * image.width > 4 * rows * columns + 64 * 64:
            raise UnreadableFileError(
                f"expected tiles or strips of {size_text((rows, columns))}, found one of "
                f"{size_text((image.height, image.width))}: the file is damaged, or made to "
                f"exhaust the memory; it was not decoded",
                path=path,
            )


def open_picture(file: Path | BinaryIO, formats: tuple[str, ...] = _FORMATS) -> Image.Image:
    """Open a picture, no pixels of which are decoded yet.

    Pillow warns of sizes by a limit of its own, and raises only at twice that;
    here callers compare the size with the one limit that there is.
    """
    with _pillow:
        theirs, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            with foreign_decoder():
                return Image.open(file, formats=formats)
        finally:
            Image.MAX_IMAGE_PIXELS = theirs
