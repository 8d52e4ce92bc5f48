"""The numbers in a mask file, window by window: TIFF, NPY and OME-Zarr of any size."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.files.guard import SEGMENT_BYTES, check_slide
from napari_panoptic.io.pixels.decode import (
    check_exact,
    check_page_complete,
    check_segments,
    decoding,
    file_kind,
    foreign_decoder,
    map_npy,
    open_tiff,
    read_pixels,
    tiff_series,
)
from napari_panoptic.io.pixels.packed_arrays import holds_objects
from napari_panoptic.io.pixels.tiff_windows import PageWindows
from napari_panoptic.values.windowed_labels import Box

ZARR_METADATA = ("zarr.json", ".zgroup", ".zarray", ".zattrs")
"""A Zarr folder has at least one of these files."""

Read = Callable[[Box], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class TiledPixels:
    """An image (y, x) that can be read in windows."""

    #: The file, or folder.
    path: Path
    #: Height and width in px.
    shape: tuple[int, int]
    #: Edge of the tiles that it is stored in, or 0 where any window costs the same.
    tile_px: int
    #: Returns a window, in this machine's byte order. May be called from several threads. Raises
    #: `UnreadableFileError`.
    read: Read


def open_pixels(path: Path, what: str) -> TiledPixels:
    """Open a mask file without reading its pixels, as far as its form allows that.

    Parameters
    ----------
    path
        A TIFF file in tiles or strips (of a pyramid its largest level is
        taken), an NPY file, a folder with an OME-Zarr image or a plain Zarr
        array, or a small file of another form.
    what
        What is expected, for error messages.

    Raises
    ------
    UnreadableFileError
        For files that cannot be decoded, have several planes, or are too large
        to be read whole where that is the only way.
    """
    with decoding(path, what):
        if is_zarr(path):
            return _open_zarr(path, what)
        check_exact(path, what)
        match file_kind(path):
            case "tiff":
                return _open_tiff(path, what)
            case "npy" if not holds_objects(path):
                return _open_npy(path, what)
    return _held(path, what)


def is_zarr(path: Path) -> bool:
    """Return whether this is a folder that holds a Zarr image."""
    return any((path / name).is_file() for name in ZARR_METADATA)


def _plane(shape: tuple[int, ...], path: Path, what: str) -> tuple[int, int]:
    """Check that there is one plane; dimensions of one before it do not matter."""
    if len(shape) < 2 or any(size != 1 for size in shape[:-2]):
        raise UnreadableFileError(
            f"expected {what} with one plane (rows, columns), which alone can be read in windows; "
            f"found an array of shape {shape}",
            path=path,
        )
    return int(shape[-2]), int(shape[-1])


def _reading(path: Path, what: str, read: Read) -> Read:
    """Make typed errors of whatever a decoder raises; numbers get this machine's byte order."""

    def safely(box: Box) -> NDArray[Any]:
        with decoding(path, what):
            window = read(box)
        return np.ascontiguousarray(window, window.dtype.newbyteorder("="))

    return safely


# --- arrays on disk, as they are in memory ----------------------------------------------------


def _mapped(
    path: Path, what: str, array: NDArray[Any], offset: int, *, by_columns: bool = False
) -> TiledPixels:
    """Read windows of an array that lies in a file as it is, from an offset in bytes."""
    shape, dtype = _plane(array.shape, path, what), array.dtype

    def read(box: Box) -> NDArray[Any]:
        # Mapped again for each window, so that pages read earlier leave the memory.
        order = "F" if by_columns else "C"
        pixels = np.memmap(path, dtype, "r", offset, shape, order)  # type: ignore[call-overload]
        y0, x0, y1, x1 = box
        return np.array(pixels[y0:y1, x0:x1], order="C")

    return TiledPixels(path, shape, 0, _reading(path, what, read))


def _open_npy(path: Path, what: str) -> TiledPixels:
    array = map_npy(path, what)
    by_columns = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
    return _mapped(path, what, array, array.offset, by_columns=by_columns)


def _held(path: Path, what: str) -> TiledPixels:
    """Read a file of a form that has no windows."""
    pixels = read_pixels(path, what, colour=False)
    shape = _plane(pixels.shape, path, what)
    return TiledPixels(path, shape, 0, lambda box: pixels[box[0] : box[2], box[1] : box[3]].copy())


# --- Zarr -------------------------------------------------------------------------------------


def _open_zarr(path: Path, what: str) -> TiledPixels:
    array, shape, (y, x) = _zarr_plane(path, what)
    # Shards are files; one chunk is decoded at a time.
    edges = array.chunks[y], array.chunks[x]

    def read(box: Box) -> NDArray[Any]:
        within = {y: slice(box[0], box[2]), x: slice(box[1], box[3])}
        with foreign_decoder():
            window = np.asarray(array[tuple(within.get(axis, 0) for axis in range(array.ndim))])
        return window if y < x else window.T

    tile_px = int(edges[0]) if edges[0] == edges[1] else 0
    return TiledPixels(path, shape, tile_px, _reading(path, what, read))


def _zarr_plane(path: Path, what: str) -> tuple[Any, tuple[int, int], tuple[int, int]]:
    """Open the array of an image with one plane, whose metadata are checked; see `bounded`.

    Returned are also height and width in px, and the places of y and x among the axes: the last
    two, unless the metadata of OME-Zarr name others.
    """
    from napari_panoptic.io.pixels.zarr_chunks import bounded

    plain, attributes = zarr_label(path, what)
    array = bounded(plain, path, what)
    axes = [
        str(axis["name"] if isinstance(axis, Mapping) else axis)
        for scales in (attributes.get("multiscales") or ())[:1]
        for axis in scales.get("axes") or ()
    ]
    is_named = len(axes) == array.ndim and axes.count("y") == axes.count("x") == 1
    y, x = (axes.index("y"), axes.index("x")) if is_named else (array.ndim - 2, array.ndim - 1)
    others = [size for axis, size in enumerate(array.shape) if axis not in (y, x)]
    rows_columns = (array.shape[y], array.shape[x]) if array.ndim > 1 else array.shape
    shape = _plane((*others, *rows_columns), path, what)
    check_slide(shape, path=path)
    return array, shape, (y, x)


def zarr_label(path: Path, what: str) -> tuple[Any, Mapping[str, Any]]:
    """Return the full-resolution array of an OME-Zarr label image and its metadata.

    Returns
    -------
    array
        By itself, of a multiscale image, or of the first of an image's labels.
    attributes
        The metadata of its multiscale image; empty for a plain array.

    Raises
    ------
    UnreadableFileError
        If there is no such array.
    """
    with decoding(path, what):
        return _label_in(opened_zarr(path), path, what)


def zarr_areas(path: Path, names: Container[str]) -> tuple[Path, ...]:
    """Return the folders of an OME-Zarr image's labels, the first left out, that have such a name.

    Names are compared without regard to case.
    """
    with decoding(path, "an OME-Zarr image with labels"):
        node = opened_zarr(path)
        if hasattr(node, "chunks") or "labels" not in node:
            return ()
        listed = zarr_attributes(node["labels"]).get("labels") or []
        return tuple(path / "labels" / name for name in listed[1:] if name.casefold() in names)


def has_labels(path: Path) -> bool:
    """Return whether a Zarr folder may hold labels; False for an image in colours without any.

    An image with one plane of numbers can be a label image of any program.
    """
    with decoding(path, "an OME-Zarr image"):
        node = opened_zarr(path)
        if hasattr(node, "chunks") or "labels" in node:
            return True
        attributes = zarr_attributes(node)
        if "bioformats2raw.layout" in attributes:
            return False
        scales = attributes.get("multiscales")
        if not scales or "image-label" in attributes:
            return True
        array = node[str(scales[0]["datasets"][0]["path"])]
        return "omero" not in attributes and all(size == 1 for size in array.shape[:-2])


def absent_chunks(path: Path) -> list[Finding]:
    """Report how many chunks of a Zarr label image have no file; nothing for other images.

    They count as background. Most programs write no file for a chunk without an
    object, but one that was not copied looks the same.
    """
    if not is_zarr(path):
        return []
    from napari_panoptic.io.pixels.zarr_chunks import count_pieces

    what = "a label image"
    with decoding(path, what):
        array, *_ = _zarr_plane(path, what)
        n_there, n_all = count_pieces(array)
    if n_there >= n_all:
        return []
    absent = n_all - n_there
    pieces = "shards" if array.shards else "chunks"
    message = (
        f"{absent} of the {n_all} {pieces} of this Zarr image are not there and count as "
        f"background: either they hold no object, or they were not copied"
    )
    return [Finding(FindingKind.MISSING, message, path=path, count=absent)]


def opened_zarr(path: Path, *, follows_links: bool = True) -> Any:
    """Open the group or array of a folder, with bounded files.

    Parameters
    ----------
    path
        The folder.
    follows_links
        Whether links may lead out of it.
    """
    import zarr  # takes half a second, and few cohorts need it

    from napari_panoptic.io.pixels.zarr_chunks import BoundedStore

    with foreign_decoder():
        return zarr.open(BoundedStore(path, follows_links=follows_links), mode="r")


def _label_in(node: Any, path: Path, what: str) -> tuple[Any, Mapping[str, Any]]:
    # An image, its labels, and the first of these. A label without a name would be its own group.
    for _ in range(3):
        if hasattr(node, "chunks"):
            return node, {}
        attributes = zarr_attributes(node)
        if "labels" in node and "image-label" not in attributes:
            node = node["labels"]
        elif scales := attributes.get("multiscales"):
            return node[str(scales[0]["datasets"][0]["path"])], attributes
        elif names := attributes.get("labels"):
            node = node[str(names[0])]
        else:
            break
    raise UnreadableFileError(
        f"expected {what} as a Zarr array or an OME-Zarr image (a group with 'multiscales'), found "
        f"a group with neither",
        path=path,
    )


def zarr_attributes(node: Any) -> Mapping[str, Any]:
    """Return the metadata of a group, those of OME-Zarr 0.5 as in older versions."""
    attributes = dict(node.attrs)
    # OME-Zarr 0.5 has its metadata under a key of their own.
    return {**attributes, **_mapping(attributes.get("ome"))}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# --- TIFF -------------------------------------------------------------------------------------


def _open_tiff(path: Path, what: str) -> TiledPixels:
    with open_tiff(path) as tiff:
        level = tiff_series(tiff).levels[0]
        shape = _plane(_without_samples(level), path, what)
        page = level.pages[0].aspage()
        if page.shape[:2] != shape:
            raise ValueError(f"planes of {page.shape} for an image of {shape}")
        check_page_complete(path, page)
        check_segments(path, page)
        if page.is_memmappable and page.is_contiguous:
            array = np.broadcast_to(np.zeros((), tiff.byteorder + page.dtype.char), shape)
            return _mapped(path, what, array, page.dataoffsets[0])
        windows = PageWindows(path, page, 0 if page.is_tiled else SEGMENT_BYTES)
    tile_px = page.tilelength if page.is_tiled and page.tilelength == page.tilewidth else 0
    return TiledPixels(path, shape, tile_px, _reading(path, what, windows.read))


def _without_samples(level: Any) -> tuple[int, ...]:
    return tuple(
        size
        for size, axis in zip(level.shape, level.axes, strict=True)
        if axis in "YX" or size != 1
    )
