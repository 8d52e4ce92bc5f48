"""Chunks of Zarr arrays, which never take more memory than their arrays say.

The codecs of the library inflate whatever a chunk holds, and its store reads a
file whatever its size: a few KiB could fill any memory. Here both are bounded.
Importing this takes half a second, and few cohorts need it.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import math
import operator
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import imagecodecs
import numcodecs.abc
import numcodecs.blosc
import numcodecs.lz4
import numpy as np
import zarr
from zarr.abc.codec import BytesBytesCodec
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.codecs import ShardingCodec
from zarr.storage import LocalStore, StorePath

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.guard import (
    BYTES_PER_PX,
    SEGMENT_BYTES,
    check_segment,
    is_endless,
    largest_px,
)
from napari_panoptic.io.files.links import leads_out

_INFLATING = frozenset(("blosc", "gzip", "lz4", "zlib", "zstd"))
_CODECS = _INFLATING | {
    *("bytes", "endian", "transpose", "crc32", "crc32c", "adler32", "fletcher32"),
    *("shuffle", "delta", "sharding_indexed"),
}
_INDEX_BYTES = 16
"""Size of the entry of a chunk in the index of a shard: its offset and its length."""


class BoundedStore(LocalStore):
    """A folder with Zarr arrays, to be read; no file in it may be larger than a limit.

    Parameters
    ----------
    root, read_only
        As of the base class.
    most_bytes
        The limit.
    follows_links
        Whether links may lead out of the folder.
    """

    def __init__(
        self,
        root: Path | str,
        *,
        read_only: bool = True,
        most_bytes: int = SEGMENT_BYTES,
        follows_links: bool = True,
    ) -> None:
        super().__init__(root, read_only=read_only)
        self.most_bytes = most_bytes
        self.follows_links = follows_links

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """Read a file, or a part of it.

        Raises
        ------
        UnreadableFileError
            If it is too large, or no file.
        """
        self._check(key, byte_range)
        return await super().get(key, prototype, byte_range)

    def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
        """Read a file or a part of it without asyncio; see `get`."""
        self._check(key, byte_range)
        return super().get_sync(key, prototype=prototype, byte_range=byte_range)

    async def get_partial_values(self, prototype: Any, key_ranges: Any) -> list[Any]:
        """Read parts of several files; as `get`."""
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    def _check(self, key: str, byte_range: Any) -> None:
        path = self.root / key
        try:
            status = path.stat()
        except OSError:
            return  # for the library to say, to which a missing chunk is an empty one
        if is_endless(status.st_mode):
            raise UnreadableFileError(
                "expected a file of a Zarr array, found a pipe, a socket or a device; remove it, "
                "or export the array again",
                path=path,
            )
        if not self.follows_links and leads_out(path, self.root):
            raise UnreadableFileError(
                "this is a link that leads out of the Zarr image, and was not followed; copy the "
                "file that it leads to",
                path=path,
            )
        size = status.st_size
        if isinstance(byte_range, RangeByteRequest):
            size = min(size, byte_range.end) - byte_range.start
        elif isinstance(byte_range, SuffixByteRequest):
            size = min(size, byte_range.suffix)
        if size > self.most_bytes:
            raise UnreadableFileError(
                f"expected at most {self.most_bytes:,d} bytes of a Zarr array, found {size:,d}; "
                f"they were not read. The file is damaged, or made to exhaust the memory",
                path=path,
            )


def bounded(array: Any, path: Path, what: str) -> Any:
    """Return the same array with memory-bounded decoding.

    Parameters
    ----------
    array
        In a local folder.
    path, what
        The folder, and what is expected, for errors.

    Raises
    ------
    UnreadableFileError
        For a group, for types other than numbers, for chunks without pixels, for
        codecs that are not known to be harmless (one, pickle, runs whatever
        program the file holds), for huge chunks and for shards of too many; when
        it is read, where a chunk is larger than it may be.
    """
    if not hasattr(array, "chunks"):
        raise UnreadableFileError(
            f"expected {what} as a Zarr array, found a group; export it again", path=path
        )
    if array.dtype.kind not in "biuf":
        raise UnreadableFileError(
            f"expected {what} of numbers, found a Zarr array of type {array.dtype}", path=path
        )
    codecs = list(_codecs(array.metadata.to_dict()))
    if unknown := sorted({_name(codec) for codec in codecs} - _CODECS):
        raise UnreadableFileError(
            f"expected {what} in Zarr with the codecs {english_list(sorted(_CODECS))}, found "
            f"{english_list(unknown)}; save it with one of the former",
            path=path,
        )
    if min((*array.chunks, *(array.shards or ())), default=1) < 1:
        raise UnreadableFileError(
            f"expected {what} in Zarr in chunks of at least 1 px, found chunks of shape "
            f"{array.shards or array.chunks}; export it again",
            path=path,
        )
    # Of a number in its largest form on its way through the codecs.
    types = [array.dtype, *(np.dtype(codec["astype"]) for codec in codecs if codec.get("astype"))]
    itemsize = max(dtype.itemsize for dtype in types)
    check_segment(array.chunks, itemsize, path=path)
    most_bytes = _allowed(math.prod(array.chunks) * itemsize)
    metadata = array.metadata
    if metadata.zarr_format == 2:
        compressor, *filters = (
            _of_version_2(codec, most_bytes, path)
            for codec in (metadata.compressor, *(metadata.filters or ()))
        )
        metadata = replace(metadata, compressor=compressor, filters=tuple(filters) or None)
    else:
        inner = tuple(_of_version_3(codec, itemsize, path) for codec in metadata.codecs)
        metadata = replace(metadata, codecs=inner)
    if (shards := array.shards) is not None:
        check_segment((math.prod(shards) // math.prod(array.chunks),), _INDEX_BYTES, path=path)
        # Windows that cover a shard have it read as a whole.
        most_bytes = largest_px() * BYTES_PER_PX
    follows = getattr(array.store, "follows_links", True)
    store = BoundedStore(array.store.root, most_bytes=most_bytes, follows_links=follows)
    place = StorePath(store, array.store_path.path)
    return zarr.Array(zarr.AsyncArray(metadata=metadata, store_path=place))


def count_pieces(array: Any) -> tuple[int, int]:
    """Count the files of chunks, or of shards, that an array has and that it should have.

    The time depends on the files that are there, and not on the size that the metadata claim.

    Parameters
    ----------
    array
        As `bounded` returns it.
    """
    edges = array.shards or array.chunks
    grid = tuple(-(-size // edge) for size, edge in zip(array.shape, edges, strict=True))
    folder = array.store.root / array.store_path.path
    keys = (
        (Path(place) / name).relative_to(folder).as_posix()
        for place, _, names in os.walk(folder)
        for name in names
    )
    return sum(_is_piece(key, grid, array.metadata) for key in keys), math.prod(grid)


def _is_piece(key: str, grid: tuple[int, ...], metadata: Any) -> bool:
    place = tuple(map(int, re.findall("[0-9]+", key.removeprefix("c"))))
    is_inside = len(place) == len(grid) and all(map(operator.lt, place, grid))
    return is_inside and metadata.encode_chunk_key(place) == key


def _codecs(metadata: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of all codecs that the metadata of an array name, at any depth."""
    for key in ("compressor", "filters", "codecs", "index_codecs"):
        value = metadata.get(key) or ()
        for codec in value if isinstance(value, list | tuple) else [value]:
            # Version 2 has settings beside the name, version 3 apart from it; old versions of the
            # library give codecs instead.
            found = codec if isinstance(codec, Mapping) else codec.get_config()
            settings = found.get("configuration")
            settings = settings if isinstance(settings, Mapping) else {}
            yield {**found, **settings}
            yield from _codecs(settings)


def _name(codec: Mapping[str, Any]) -> str:
    # Version 2 calls them by id, version 3 by name.
    return str(codec.get("id") or codec["name"]).removeprefix("numcodecs.")


def _allowed(n_bytes: int) -> int:
    """Return how many bytes numbers may take in a codec's hands, with its checksums and headers."""
    return n_bytes + n_bytes // 64 + 2**10


def _of_version_2(codec: Any, limit: int, path: Path) -> Any:
    if codec is None or codec.codec_id not in _INFLATING:
        return codec
    return _BoundedVersion2(codec.codec_id, limit, path)


class _BoundedVersion2(numcodecs.abc.Codec):  # type: ignore[misc]
    """A codec of Zarr 2 that inflates to a limit, and not further."""

    codec_id = "bounded"

    def __init__(self, name: str, limit: int, path: Path) -> None:
        self._name, self._limit, self._path = name, limit, path

    def encode(self, buf: Any) -> Any:
        raise NotImplementedError

    def decode(self, buf: Any, out: Any = None) -> bytes:  # noqa: ARG002 - never used
        return inflated(self._name, bytes(buf), self._limit, path=self._path)


def _of_version_3(codec: Any, itemsize: int, path: Path) -> Any:
    if isinstance(codec, ShardingCodec):
        inner = tuple(_of_version_3(c, itemsize, path) for c in codec.codecs)
        index = tuple(_of_version_3(c, _INDEX_BYTES, path) for c in codec.index_codecs)
        return replace(codec, codecs=inner, index_codecs=index)
    name = _name(codec.to_dict())
    return _BoundedVersion3(name, itemsize, path) if name in _INFLATING else codec


@dataclass(frozen=True)
class _BoundedVersion3(BytesBytesCodec):
    """A codec of Zarr 3 that inflates to what the shape of a chunk allows, and not further."""

    name: str
    itemsize: int
    path: Path
    is_fixed_size = False

    async def decode(self, chunks_and_specs: Any) -> Any:
        return [
            None if chunk is None else await asyncio.to_thread(self._inflated, chunk, spec)
            for chunk, spec in chunks_and_specs
        ]

    def _inflated(self, chunk: Any, spec: Any) -> Any:
        limit = _allowed(math.prod(spec.shape) * self.itemsize)
        data = inflated(self.name, chunk.to_bytes(), limit, path=self.path)
        return spec.prototype.buffer.from_bytes(data)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError


def inflated(codec: str, data: bytes, limit: int, *, path: Path) -> bytes:
    """Inflate a chunk to at most ``limit`` bytes.

    Parameters
    ----------
    codec
        One of blosc, gzip, lz4, zlib and zstd.
    data
        As it is stored.
    limit
        In bytes.
    path
        Of the array, for errors.

    Raises
    ------
    UnreadableFileError
        If it inflates to more.
    ValueError, RuntimeError
        If it is damaged.
    """
    match codec:
        case "blosc":
            # Before the data: their sizes, and that of all of it, at 4, 8 and 12. The library
            # reads as much as it finds there.
            if len(data) < 16 or int.from_bytes(data[12:16], "little") != len(data):
                raise ValueError("a chunk is cut off")
            _check(int.from_bytes(data[4:8], "little"), limit, path)
            return bytes(numcodecs.blosc.decompress(data))
        case "lz4":
            _check(int.from_bytes(data[:4], "little"), limit, path)
            return bytes(numcodecs.lz4.decompress(data))
        case "zstd":
            try:
                return bytes(imagecodecs.zstd_decode(data, out=limit))
            except imagecodecs.ZstdError as error:
                _check(limit + ("too small" in str(error)), limit, path)
                raise
        case "gzip":
            return _gunzipped(data, limit, path)
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    _check(len(found), limit, path)
    if not stream.eof:
        raise ValueError("a chunk is cut off")
    return found


def _gunzipped(data: bytes, limit: int, path: Path) -> bytes:
    """Inflate gzip data, which may consist of several streams."""
    if not data:
        raise ValueError("a chunk is cut off")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            found = file.read(limit + 1)
    except EOFError as error:
        raise ValueError("a chunk is cut off") from error
    except (OSError, zlib.error) as error:
        raise ValueError(str(error)) from error
    _check(len(found), limit, path)
    return found


def _check(n_bytes: int, limit: int, path: Path) -> None:
    if n_bytes > limit:
        raise UnreadableFileError(
            f"expected chunks of a Zarr array of at most {limit:,d} bytes, found one that inflates "
            f"to more; it was not decoded. The file is damaged, or made to exhaust the memory",
            path=path,
        )
