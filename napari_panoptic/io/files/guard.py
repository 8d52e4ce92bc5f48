"""Checks before a file is trusted: that it can be read, and that its sizes fit into memory.

A few hundred bytes can claim, or inflate to, more than any machine holds. Whatever is decoded
as a whole is therefore compared with one limit before memory is allocated. Users with larger
images raise the limit by the environment variable `VARIABLE`, which processes and workers
inherit, or by ``--max-pixels``, which sets it.
"""

from __future__ import annotations

import errno
import math
import os
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path

from napari_panoptic.common.errors import SettingsError, UnreadableFileError
from napari_panoptic.common.text import counted

VARIABLE = "NAPARI_PANOPTIC_MAX_PIXELS"
DEFAULT_PX = 2**28
"""Images of up to 16,384 x 16,384 px are decoded as a whole."""
BYTES_PER_PX = 8
"""Memory of all channels of a pixel: 16-bit RGBA, or one number of the largest type."""
SLIDE_PX = 2**36
"""Pixels of an image that is read window by window: some ten times the largest scans."""
SEGMENT_BYTES = 2**28
"""Largest decoded tile, strip or chunk; many of them are decoded one after the other."""
TABLE_BYTES = 2**28
"""Largest table with a row for each object or image; it is read as a whole."""
SMALL_TABLE_BYTES = 2**24
"""Largest table with a row for each class, region or patient, and largest description."""
DEFLATE_RATIO = 1032
"""Most bytes that one byte of a deflate stream can inflate to (zlib's technical details)."""

_BLOCK_BYTES = 2**20


def check_file(path: Path, what: str) -> None:
    """Check that a file is readable and not empty.

    Raises
    ------
    UnreadableFileError
        With the expected and the found content.
    """
    try:
        mode = path.stat().st_mode
        # Reading a pipe waits for a writer, perhaps for ever; a device has no end.
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
        # Windows also raises this for folders.
        found = "found a folder" if path.is_dir() else "but there is no permission to read it"
        raise UnreadableFileError(f"expected {what}, {found}", path=path) from None
    except OSError as error:
        raise UnreadableFileError(
            f"expected {what}, but it cannot be opened ({error.strerror})", path=path
        ) from error
    except ValueError:
        raise UnreadableFileError(
            f"expected {what}, but the file name contains an invalid character",
            path=path,
        ) from None
    if empty:
        raise UnreadableFileError(
            f"expected {what}, found an empty file (0 bytes); copy or export it again", path=path
        )


def has_file(path: Path) -> bool:
    """Return whether there is a file of this name, which may be longer than names can be.

    A name that is derived from that of another file can be too long. ``Path.is_file`` raises then.
    """
    try:
        return path.is_file()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def largest_px() -> int:
    """Return the number of pixels up to which an image is decoded as a whole.

    Raises
    ------
    SettingsError
        If the environment variable is not a positive whole number.
    """
    text = os.environ.get(VARIABLE, "")
    if not text.strip():
        return DEFAULT_PX
    try:
        limit = int(text)
    except ValueError:
        limit = 0
    if limit < 1:
        raise SettingsError(
            f"the environment variable {VARIABLE} must be a positive whole number, found "
            f"'{text[:40]}'"
        )
    return limit


def check_length(path: Path, what: str, most_bytes: int = TABLE_BYTES) -> None:
    """Check that a file that is read as a whole is not too long.

    Parameters
    ----------
    path, what
        The file, and what is expected, for the error.
    most_bytes
        The limit.

    Raises
    ------
    UnreadableFileError
        If it is longer.
    OSError
        If there is no such file.
    """
    size = path.stat().st_size
    if size > most_bytes:
        raise UnreadableFileError(
            f"expected {what} of up to {most_bytes >> 20:,d} MiB, found {size / 2**20:,.0f} MiB; "
            f"it was not read. Split it, or export it again",
            path=path,
        )


def is_endless(mode: int) -> bool:
    """Return whether reading may never end: of a pipe, a socket or a device.

    Parameters
    ----------
    mode
        As ``os.stat`` returns it.
    """
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def check_pixels(shape: Iterable[int], itemsize: int, *, path: Path, what: str) -> None:
    """Check that an array of this shape may be held in memory.

    Parameters
    ----------
    shape
        Of the array, all dimensions, as the file's header claims them.
    itemsize
        Bytes of one number.
    path, what
        The file, and what is expected, for the error.

    Raises
    ------
    UnreadableFileError
        If it is above the limit.
    """
    sizes = [int(size) for size in shape]
    limit = largest_px()
    # The two largest dimensions are rows and columns, the others channels.
    pixels = math.prod(sorted(sizes)[-2:])
    if pixels <= limit and math.prod(sizes) * itemsize <= limit * BYTES_PER_PX:
        return
    found = " x ".join(str(size) for size in sizes) or "1"
    raise UnreadableFileError(
        f"expected {what} of up to {limit:,d} px and {limit * BYTES_PER_PX:,d} bytes in memory, "
        f"found one that claims {found} numbers of {counted(itemsize, 'byte')}; it was not "
        f"decoded. If it really is that large, allow more by --max-pixels or the environment "
        f"variable {VARIABLE}",
        path=path,
    )


def check_segment(shape: Iterable[int], itemsize: int, *, path: Path) -> None:
    """Check that one tile, strip or chunk may be held in memory.

    Raises
    ------
    UnreadableFileError
        If it is larger than `SEGMENT_BYTES`.
    """
    if math.prod(int(size) for size in shape) * itemsize > SEGMENT_BYTES:
        raise UnreadableFileError(
            "the pixels are stored in pieces too large to read one by one; save the image in "
            "smaller tiles (or chunks)",
            path=path,
        )


def check_slide(shape: tuple[int, int], *, path: Path) -> None:
    """Check that an image that is read window by window can be a slide.

    Raises
    ------
    UnreadableFileError
        If it claims more than `SLIDE_PX` pixels.
    """
    if shape[0] * shape[1] > SLIDE_PX:
        raise UnreadableFileError(
            f"expected a slide of up to {SLIDE_PX:,d} px, found one that claims {shape[0]:,d} x "
            f"{shape[1]:,d}; it is damaged, or made to exhaust the memory",
            path=path,
        )


def check_inflated(data: bytes, limit: int, *, path: Path) -> None:
    """Check that a zlib or gzip stream does not inflate to more than ``limit`` bytes.

    Uses a few MiB of memory, whatever the stream claims. A damaged stream passes: its decoder
    reports what is wrong.

    Raises
    ------
    UnreadableFileError
        If it inflates to more.
    """
    if len(data) * DEFLATE_RATIO <= limit:
        return
    stream, rest, total = zlib.decompressobj(zlib.MAX_WBITS | 32), data, 0
    try:
        while rest and not stream.eof and total <= limit:
            total += len(stream.decompress(rest, _BLOCK_BYTES))
            rest = stream.unconsumed_tail
    except zlib.error:
        return
    if total > limit:
        raise UnreadableFileError(
            f"expected at most {limit:,d} bytes of compressed data, found more; it was not "
            f"decoded. If it really is that large, allow more by --max-pixels or the environment "
            f"variable {VARIABLE}",
            path=path,
        )
