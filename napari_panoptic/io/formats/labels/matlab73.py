"""Numeric variables of MATLAB 7.3 files, which are HDF5, by the optional package h5py.

Only numbers that lie in the file are seen: links to other files, numbers kept
elsewhere and numbers put together from other files are left out. Chunks are inflated
here, up to the size that they must have: HDF5 itself takes memory for whatever comes
out of a stream.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.limits import check_pixels, check_segment

_MAGIC = b"\x89HDF\r\n\x1a\n"
# MATLAB puts 512 bytes of its own before the HDF5 data.
_STARTS = (0, 512)
# What is done to the bytes of a chunk, by the numbers that HDF5 gives it.
_DEFLATE, _SHUFFLE, _CHECKSUM = 1, 2, 3
_CHECKSUM_BYTES = 4


def is_hdf5(path: Path) -> bool:
    """Tell HDF5 files by their first bytes."""
    with path.open("rb") as file:
        start = file.read(max(_STARTS) + len(_MAGIC))
    return any(start[at:].startswith(_MAGIC) for at in _STARTS)


def variables(path: Path) -> dict[str, tuple[int, ...]]:
    """List the numeric variables of a file with their shapes, rows first.

    Raises
    ------
    UnreadableFileError
        Where the package h5py is missing.
    OSError, RuntimeError, ValueError
        Where the file is damaged.
    """
    h5py = _h5py(path)
    with h5py.File(path, "r") as file:
        return {
            name: tuple(item.shape[::-1])
            for name in file
            # Other links lead to other files, which whoever made this one may choose.
            if isinstance(file.get(name, getlink=True), h5py.HardLink)
            if isinstance(item := file[name], h5py.Dataset) and item.dtype.kind in "biuf"
            if not (item.shape is None or item.external or item.is_virtual)
        }


def value(path: Path, name: str, what: str) -> NDArray[Any]:
    """Read one of the variables that :func:`variables` lists, rows first.

    Raises
    ------
    UnreadableFileError
        Where the package h5py is missing, or the numbers would take too much memory.
    OSError, RuntimeError, ValueError
        Where the file is damaged.
    """
    with _h5py(path).File(path, "r") as file:
        dataset = file[name]
        check_pixels(dataset.shape, dataset.dtype.itemsize, path=path, what=what)
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
    try:
        return importlib.import_module("h5py")
    except ImportError:
        raise UnreadableFileError(
            "this is a MATLAB file of version 7.3 (HDF5), which takes the Python package h5py to "
            "read; save it again, in MATLAB with save(..., '-v7'), in Python with "
            "scipy.io.savemat, or install h5py",
            path=path,
        ) from None


def _chunks(dataset: Any) -> Iterator[tuple[tuple[int, ...], NDArray[Any]]]:
    """Yield where each stored chunk begins, and its numbers."""
    properties = dataset.id.get_create_plist()
    steps = [properties.get_filter(k)[0] for k in range(properties.get_nfilters())]
    for k in range(dataset.id.get_num_chunks()):
        first = dataset.id.get_chunk_info(k).chunk_offset
        skipped, data = dataset.id.read_direct_chunk(first)
        if skipped:
            raise ValueError("a chunk is stored otherwise than the file says")
        data = _unpacked(data, steps, dataset)
        yield first, np.frombuffer(data, dataset.dtype).reshape(dataset.chunks)


def _unpacked(data: bytes, steps: list[int], dataset: Any) -> bytes:
    """Undo what was done to the bytes of a chunk, the last step first."""
    size = dataset.dtype.itemsize
    expected = int(np.prod(dataset.chunks)) * size
    for step in reversed(steps):
        if step == _CHECKSUM:
            data = data[:-_CHECKSUM_BYTES]  # not compared: zlib has one of its own
        elif step == _DEFLATE:
            stream = zlib.decompressobj()
            data = stream.decompress(data, expected + 1)
        elif step == _SHUFFLE:
            planes = np.frombuffer(data, np.uint8).reshape(size, -1)
            data = np.ascontiguousarray(planes.T).tobytes()
        else:
            raise ValueError(f"chunks are stored in a way that is not known (filter {step})")
    if len(data) != expected:
        raise ValueError(f"a chunk has {len(data)} bytes or more, expected {expected}")
    return data
