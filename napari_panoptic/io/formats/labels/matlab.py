"""Numeric variables of MATLAB 5 files, with every length, type and index checked.

SciPy reads the same files, and lists their variables here. Values it reads
without a look at the type of the stored numbers, and at the indices of sparse
matrices: damaged files end the process, or have it write outside of its
memory. Layout: The MathWorks, "MAT-File Format", version 5.
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

_HEADER_BYTES = 128
_MATRIX, _COMPRESSED = 14, 15
_SPARSE = 5
_COMPLEX = 0x0800
_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}

_Element = tuple[int, bytes]


def read_variable(path: Path, name: str) -> NDArray[Any]:
    """Read a numeric variable, full or sparse, as an array.

    Returns
    -------
    array
        Of the type in which the numbers are stored, which is often a smaller
        one than the variable has in MATLAB.

    Raises
    ------
    ValueError
        Where the file has none of that name, or it is damaged.
    """
    data = path.read_bytes()
    order = ">" if data[126:128] == b"MI" else "<"
    for kind, body in _elements(data[_HEADER_BYTES:], order):
        if kind == _COMPRESSED:
            kind, body = next(_elements(zlib.decompress(body), order), (0, b""))
        parts = list(_elements(body, order)) if kind == _MATRIX else []
        if len(parts) >= 4 and parts[2][1].rstrip(b"\0").decode("latin-1") == name.rstrip("\0"):
            return _value(parts, order)
    raise ValueError(f"there is no whole variable '{name}'")


def _elements(data: bytes, order: str) -> Iterator[_Element]:
    """Yield type and content of the elements that follow each other."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:  # a small one: its size is in the same word, its content in the next
            kind, size = kind & 0xFFFF, min(kind >> 16, 4)
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
