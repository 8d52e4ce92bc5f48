"""Numeric variables of MATLAB files of versions 5 to 7.3, read within bounds.

Written by hand, since SciPy and HDF5 are not safe with files from others: damaged MATLAB 5
files end the process or make SciPy write outside its memory, and both packages take as much
memory as a stream claims.

Layout: The MathWorks, "MAT-File Format", version 5. Files of version 7.3 are HDF5, read by the
optional package h5py.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.guard import (
    BYTES_PER_PX,
    DEFLATE_RATIO,
    check_inflated,
    check_length,
    check_pixels,
    check_segment,
    largest_px,
)
from napari_panoptic.io.pixels.decode import decoding
from napari_panoptic.io.pixels.extras import import_extra

WHAT = "a MATLAB file with an n-ary mask"
MOST_VARIABLES = 10_000
"""Largest number of variables in a file; each holds one mask."""

# Version 5: the header and its last two bytes; types of elements, flags and numbers.
_HEADER_BYTES = 128
_BYTE_ORDERS = {b"IM": "<", b"MI": ">"}
_INT8, _MATRIX, _COMPRESSED = 1, 14, 15
# Classes of variables: sparse, double, single, and whole numbers of 8 to 64 bits.
_NUMERIC = range(5, 16)
_SPARSE, _OPAQUE = 5, 17
_HEAD_BYTES = 1 << 16
"""Bytes at the start of a variable that hold its type, its size and its name."""
_NO_NAME = "__function_workspace__"
"""The name by which SciPy returns the only variable without one."""
_COMPLEX = 0x0800
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
_TYPES |= {12: "i8", 13: "u8"}
# Version 4: the header of a variable; the first number tells the type of its numbers.
_HEADER_4_BYTES = 20
_LAST_KIND_4 = 5000
# Version 7.3: MATLAB puts 512 bytes of its own before the HDF5 data; numbers of HDF5's filters.
_MAGIC = b"\x89HDF\r\n\x1a\n"
_STARTS = (0, 512)
_DEFLATE, _SHUFFLE, _CHECKSUM = 1, 2, 3
_CHECKSUM_BYTES = 4

Shape = tuple[int, ...]
_Element = tuple[int, bytes]


def mat_variables(path: Path) -> dict[str, Shape]:
    """Return the numeric variables of a file and their shapes.

    Raises
    ------
    UnreadableFileError
        If it is no MATLAB file, or is of version 4.
    MissingPackageError
        If it is of version 7.3 and h5py is not installed.
    """
    with decoding(path, WHAT):
        if _is_hdf5(path):
            return _hdf5_variables(path)
        check_length(path, WHAT, largest_px() * BYTES_PER_PX + _HEADER_BYTES)
        listed = list(_version_5_variables(path))
    names = [name for name, _, _ in listed]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise UnreadableFileError(
            f"expected variables of different names, found {english_list(doubled)} twice; "
            f"keep one of them",
            path=path,
        )
    return {name: shape for name, shape, is_numeric in listed if is_numeric}


def mat_value(path: Path, name: str) -> NDArray[Any]:
    """Read a numeric variable of a file, full or sparse, rows first.

    Returns
    -------
    array
        Of the type in which the numbers are stored, which is often smaller than that of the
        variable in MATLAB.

    Raises
    ------
    UnreadableFileError
        If it cannot be decoded, or would take too much memory.
    """
    with decoding(path, WHAT):
        return _hdf5_value(path, name) if _is_hdf5(path) else _version_5_value(path, name)


# --- version 5 -----------------------------------------------------------------------------------


def _version_5_variables(path: Path) -> Iterator[tuple[str, Shape, bool]]:
    """Yield the name and the shape of each variable, and whether it is numeric.

    Raises
    ------
    UnreadableFileError
        If a compressed variable inflates beyond the limit, or the file is of version 4.
    ValueError
        If there is anything but variables.
    """
    limit, file_bytes = largest_px() * BYTES_PER_PX, path.stat().st_size
    variables = 0
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
        _check_no_version_4(header, path)
        if len(header) < _HEADER_BYTES or header[126:] not in _BYTE_ORDERS:
            raise ValueError("its first bytes are not those of a MATLAB file")
        order = _BYTE_ORDERS[header[126:]]
        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            variables += 1
            if kind not in (_MATRIX, _COMPRESSED) or not size or variables > MOST_VARIABLES:
                raise ValueError(f"its element {variables} is no variable of a MATLAB file")
            end = file.tell() + size
            is_large = kind == _COMPRESSED and size * DEFLATE_RATIO > limit
            data = file.read(min(size, file_bytes if is_large else _HEAD_BYTES))
            if is_large:  # inflate the content, whatever size is claimed
                check_inflated(data, limit, path=path)
            if kind == _COMPRESSED:
                data = zlib.decompressobj().decompress(data, _HEAD_BYTES)[8:]
            if (head := _head(data, order)) is not None:
                yield head
            file.seek(end)
        if tag:
            raise ValueError("it is cut off")


def _head(data: bytes, order: str) -> tuple[str, Shape, bool] | None:
    """Return name and shape of a variable, and whether it is numeric; None for Java objects."""
    elements = _elements(data, order)
    flags = _numbers(next(elements, (0, b"")), order)
    kind = int(flags[0]) & 0xFF if len(flags) else 0
    if kind == _OPAQUE:
        return None
    dims, name = (next(elements, (0, b"")) for _ in range(2))
    shape = tuple(_numbers(dims, order).tolist())
    if min(shape, default=-1) < 0:
        raise ValueError("a variable has a negative size")
    if name[0] != _INT8:
        raise ValueError("a variable has no name")
    return _text(name) or _NO_NAME, shape, kind in _NUMERIC


def _text(element: _Element) -> str:
    return element[1].rstrip(b"\0").decode("latin-1")


def _check_no_version_4(header: bytes, path: Path) -> None:
    """Refuse files of version 4, which begin with numbers: type, sizes, length of a name."""
    for order in "<>" if len(header) >= _HEADER_4_BYTES else "":
        kind, *_, is_complex, name_bytes = struct.unpack(f"{order}5i", header[:_HEADER_4_BYTES])
        if 0 <= kind < _LAST_KIND_4 and is_complex in (0, 1) and 0 < name_bytes < _HEAD_BYTES:
            raise UnreadableFileError(
                "this is a MATLAB file of version 4, which is not read; save it again, in MATLAB "
                "with save(..., '-v7'), in Python with scipy.io.savemat",
                path=path,
            )


def _version_5_value(path: Path, name: str) -> NDArray[Any]:
    """Read a numeric variable; raise ValueError if there is none, or it is damaged."""
    data = path.read_bytes()
    order = ">" if data[126:128] == b"MI" else "<"
    for kind, body in _elements(data[_HEADER_BYTES:], order):
        if kind == _COMPRESSED:
            kind, body = next(_elements(zlib.decompress(body), order), (0, b""))
        parts = list(_elements(body, order)) if kind == _MATRIX else []
        if len(parts) >= 4 and (_text(parts[2]) or _NO_NAME) == name:
            return _value(parts, order)
    raise ValueError(f"there is no whole variable '{name}'")


def _elements(data: bytes, order: str) -> Iterator[_Element]:
    """Yield the type and content of each element."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:  # a small element: its size is in the same word, its content in the next
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                raise ValueError(f"a small element of {size} bytes, which can have 4 at most")
            yield kind, data[at + 4 : at + 4 + size]
            at += 8
            continue
        at += 8
        if at + size > len(data):
            raise ValueError("an element is longer than the file")
        yield kind, data[at : at + size]
        # Compressed elements follow each other without a gap, others on multiples of 8 bytes.
        at += size if kind == _COMPRESSED else size + -size % 8


def _value(parts: list[_Element], order: str) -> NDArray[Any]:
    flags, dims = _numbers(parts[0], order), _numbers(parts[1], order)
    if not len(flags) or not len(dims) or dims.min() < 0:
        raise ValueError("a variable has no type or no size")
    if int(flags[0]) & 0xFF == _SPARSE:
        return _dense(dims, parts, order)
    values = _numbers(parts[3], order)
    if int(flags[0]) & _COMPLEX and len(parts) > 4:
        values = values + 1j * _numbers(parts[4], order)
    if len(values) != math.prod(dims.tolist()):
        raise ValueError(f"{len(values)} numbers do not fill a variable of size {dims.tolist()}")
    return values.reshape(dims.tolist(), order="F")


def _dense(dims: NDArray[Any], parts: list[_Element], order: str) -> NDArray[Any]:
    if len(parts) < 5:
        raise ValueError("a sparse matrix is cut off")
    rows, starts = _numbers(parts[3], order), _numbers(parts[4], order)
    values = _numbers(parts[5], order) if len(parts) > 5 else np.zeros(0)
    if len(dims) != 2 or len(starts) != dims[1] + 1:
        raise ValueError("a sparse matrix needs two dimensions and a start for each column")
    height, width = dims.tolist()
    starts, rows = starts.astype(np.int64), rows.astype(np.int64)
    n = int(starts[-1])
    if starts[0] != 0 or (np.diff(starts) < 0).any() or n > min(len(rows), len(values)):
        raise ValueError("the columns of a sparse matrix do not follow each other")
    if n and not 0 <= rows[:n].min() <= rows[:n].max() < height:
        raise ValueError("a sparse matrix has values outside of itself")
    dense = np.zeros((height, width), values.dtype)
    dense[rows[:n], np.repeat(np.arange(width), np.diff(starts))] = values[:n]
    return dense


def _numbers(element: _Element, order: str) -> NDArray[Any]:
    kind, data = element
    if kind not in _TYPES:
        raise ValueError(f"numbers of the unknown type {kind}")
    dtype = np.dtype(order + _TYPES[kind])
    if len(data) % dtype.itemsize:
        raise ValueError("numbers are cut off")
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False)


# --- version 7.3 ---------------------------------------------------------------------------------


def _is_hdf5(path: Path) -> bool:
    """Return whether the first bytes are those of an HDF5 file."""
    with path.open("rb") as file:
        start = file.read(max(_STARTS) + len(_MAGIC))
    return any(start[at:].startswith(_MAGIC) for at in _STARTS)


def _hdf5_variables(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the variables whose numbers lie in the file itself.

    Links to other files, and numbers stored outside or assembled from other files, are left
    out: the author of the file may have chosen any file of this machine.
    """
    h5py = _h5py(path)
    with h5py.File(path, "r") as file:
        return {
            name: tuple(item.shape[::-1])
            for name in file
            if isinstance(file.get(name, getlink=True), h5py.HardLink)
            if isinstance(item := file[name], h5py.Dataset) and item.dtype.kind in "biuf"
            if not (item.shape is None or item.external or item.is_virtual)
        }


def _hdf5_value(path: Path, name: str) -> NDArray[Any]:
    """Read a variable chunk by chunk, each inflated here up to the size that it must have."""
    with _h5py(path).File(path, "r") as file:
        dataset = file[name]
        check_pixels(dataset.shape, dataset.dtype.itemsize, path=path, what=WHAT)
        if dataset.chunks is None:
            return np.asarray(dataset).T  # MATLAB counts columns first, HDF5 rows first.
        check_segment(dataset.chunks, dataset.dtype.itemsize, path=path)
        result = np.full(dataset.shape, dataset.fillvalue, dataset.dtype)
        for first, numbers in _chunks(dataset):
            there = tuple(slice(at, at + n) for at, n in zip(first, dataset.chunks, strict=True))
            target = result[there]
            target[...] = numbers[tuple(slice(0, n) for n in target.shape)]  # may stick out
        return result.T


def _h5py(path: Path) -> Any:
    alternative = "save it again, in MATLAB with save(..., '-v7'), in Python with scipy.io.savemat"
    return import_extra("h5py", "matlab", path, alternative)


def _chunks(dataset: Any) -> Iterator[tuple[tuple[int, ...], NDArray[Any]]]:
    """Yield the first index and the numbers of each stored chunk."""
    properties = dataset.id.get_create_plist()
    steps = [properties.get_filter(k)[0] for k in range(properties.get_nfilters())]
    for k in range(dataset.id.get_num_chunks()):
        first = dataset.id.get_chunk_info(k).chunk_offset
        skipped, data = dataset.id.read_direct_chunk(first)
        if skipped:
            raise ValueError("a chunk is not stored as the file says")
        data = _unpacked(data, steps, dataset)
        yield first, np.frombuffer(data, dataset.dtype).reshape(dataset.chunks)


def _unpacked(data: bytes, steps: list[int], dataset: Any) -> bytes:
    """Undo the filters of a chunk, the last one first."""
    size = dataset.dtype.itemsize
    expected = int(np.prod(dataset.chunks)) * size
    for step in reversed(steps):
        if step == _CHECKSUM:
            data = data[:-_CHECKSUM_BYTES]  # not compared: zlib has its own
        elif step == _DEFLATE:
            stream = zlib.decompressobj()
            data = stream.decompress(data, expected + 1)
        elif step == _SHUFFLE:
            planes = np.frombuffer(data, np.uint8).reshape(size, -1)
            data = np.ascontiguousarray(planes.T).tobytes()
        else:
            raise ValueError(f"chunks have the unknown filter {step}")
    if len(data) != expected:
        raise ValueError(f"a chunk has {len(data)} bytes or more, expected {expected}")
    return data
