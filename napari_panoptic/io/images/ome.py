"""OME-TIFF and OME-Zarr as images: channels as their metadata declare them, and all their levels.

Definitions: https://docs.openmicroscopy.org/ome-model/ and https://ngff.openmicroscopy.org/
(versions 0.1 to 0.5, with the transitional ``omero`` metadata for colours).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.guard import SEGMENT_BYTES, check_pixels, check_slide
from napari_panoptic.io.files.xml_files import Element, xml_text_root
from napari_panoptic.io.images.lazy_levels import LazyLevel
from napari_panoptic.io.images.resolution import micrometres
from napari_panoptic.io.pixels.decode import (
    check_page_complete,
    check_segments,
    decoding,
    file_kind,
    foreign_decoder,
    open_tiff,
)
from napari_panoptic.io.pixels.label_windows import is_zarr, opened_zarr, zarr_attributes
from napari_panoptic.io.pixels.tiff_windows import KEPT_BYTES, PageWindows
from napari_panoptic.values.windowed_labels import Box

Rgb = tuple[int, int, int]
Planes = Callable[[Box], NDArray[Any]]
"""Returns a window (y, x, channel)."""

WHITE: Rgb = (255, 255, 255)
PRIMARY: tuple[Rgb, ...] = ((255, 0, 0), (0, 255, 0), (0, 0, 255))
_NAMED = dict(zip(("red", "green", "blue", "r", "g", "b"), PRIMARY * 2, strict=True))
MOST_LEVELS = 32
MOST_CHANNELS = 256
_CHECKED_BY_TILE = (7, 33003, 33005, 34712)
"""Compressions whose tiles are checked when they are decoded: reading all of a slide takes long."""


@dataclass(frozen=True)
class Channel:
    """One channel, as the metadata describe it."""

    #: May be empty.
    name: str = ""
    #: Colour of its highest value; None if it is not declared.
    colour: Rgb | None = None
    #: Values that are shown black and in full colour; None for the range of the type.
    window: tuple[float, float] | None = None
    #: Whether it is to be shown.
    is_active: bool = True


@dataclass(frozen=True, eq=False)
class OmeImage:
    """An image with OME metadata, opened without its pixels."""

    #: The first at full resolution, each next one smaller.
    levels: tuple[LazyLevel, ...]
    #: Micrometres per pixel down and across; None if they are not stated.
    mpp_yx: tuple[float | None, float | None]
    #: Problems found, and the assumed channels if none are declared.
    findings: tuple[Finding, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width in px at full resolution."""
        return self.levels[0].shape[:2]


def open_ome(path: Path, what: str) -> OmeImage | None:
    """Open an OME-TIFF file or a folder with an OME-Zarr image.

    Parameters
    ----------
    path
        The file or folder.
    what
        What is expected, for errors.

    Returns
    -------
    OmeImage or None
        None if the file has no OME metadata.

    Raises
    ------
    UnreadableFileError
        If it is damaged, not a single plane of channels, or its planes are in other files.
    """
    with decoding(path, what):
        image = _opened(path, what)
    if image is not None:
        check_slide(image.shape, path=path)
    return image


def _opened(path: Path, what: str) -> OmeImage | None:
    if is_zarr(path):
        return _open_zarr(path, what)
    return _open_tiff(path, what) if path.is_file() and file_kind(path) == "tiff" else None


# --- channels ---------------------------------------------------------------------------------


def shown_channels(
    channels: Sequence[Channel], path: Path
) -> tuple[tuple[Channel | None, ...], tuple[Finding, ...]]:
    """Decide on the colours of channels: as declared, else by a rule that is reported.

    Returns
    -------
    channels
        Each with a colour; None for those that are not shown.
    findings
        What was decided, if the file does not declare it.
    """
    named = [replace(c, colour=c.colour or _NAMED.get(c.name.casefold())) for c in channels]
    active = [c if c.is_active else None for c in named]
    on = [c for c in active if c is not None]
    if len(on) == 1:
        return tuple(c and replace(c, colour=c.colour or WHITE) for c in active), ()
    if on and all(c.colour is not None for c in on):
        return tuple(active), ()
    if any(c.colour is not None for c in on):
        shown = tuple(c if c is not None and c.colour is not None else None for c in active)
        hidden = english_list([_title(i, c) for i, c in enumerate(on) if c.colour is None], limit=4)
        message = f"the file declares no colour of its channels {hidden}: they are not shown"
    elif len(named) == 3:
        shown = tuple(replace(c, colour=rgb) for c, rgb in zip(named, PRIMARY, strict=True))
        message = (
            "the file does not declare the colours of its 3 channels: they are shown as red, "
            "green and blue"
        )
    else:
        shown = (replace(named[0], colour=WHITE), *(None for _ in named[1:]))
        message = (
            f"the file does not declare the colours of its {len(named)} channels: only "
            f"{_title(0, named[0])} is shown, in grey. Declare colours, or export RGB"
        )
    return shown, (Finding(FindingKind.FALLBACK, message, path=path),)


def _title(number: int, channel: Channel) -> str:
    return f"'{channel.name}'" if channel.name else f"number {number + 1}"


def blended(pixels: NDArray[Any], channels: Sequence[Channel | None]) -> NDArray[np.uint8]:
    """Add up the colours of channels.

    Parameters
    ----------
    pixels
        (y, x, channel).
    channels
        With colours and windows; None for a channel that is not shown.

    Returns
    -------
    array
        uint8 (y, x, 3): the sum over the channels of colour times brightness, which rises from
        0 to 1 within the window of a channel; at most 255.
    """
    plain = [c is not None and c.window == (0, 255) for c in channels]
    if pixels.dtype == np.uint8 and all(plain):
        colours = tuple(c.colour for c in channels if c is not None)
        if colours == PRIMARY:
            return np.ascontiguousarray(pixels)
        if colours == (WHITE,):
            return np.repeat(pixels, 3, axis=2)
    total = np.zeros((*pixels.shape[:2], 3), np.float32)
    for number, channel in enumerate(channels):
        if channel is None or channel.window is None or channel.colour is None:
            continue
        low, high = channel.window
        values = (pixels[..., number].astype(np.float32) - np.float32(low)) / np.float32(high - low)
        values = np.clip(np.nan_to_num(values), 0, 1)
        for axis, strength in enumerate(channel.colour):
            if strength:
                total[..., axis] += values * np.float32(strength)
    return np.rint(np.minimum(total, 255)).astype(np.uint8)


def _windowed(
    channels: Sequence[Channel | None], dtype: np.dtype[Any], bits: int | None, path: Path
) -> tuple[tuple[Channel | None, ...], tuple[Finding, ...]]:
    """Fill in the windows that the metadata do not state."""
    if dtype.kind not in "buif":
        raise ValueError(f"pixels of type {dtype}")
    if all(c is None or c.window is not None for c in channels):
        return tuple(channels), ()
    if dtype.kind in "if":
        raise UnreadableFileError(
            f"expected an image with 8 or 16 bits per channel, or with the range of values to "
            f"show, found type {dtype} without a range; save it as 8-bit RGB",
            path=path,
        )
    most = 1 if dtype.kind == "b" else 2 ** min(bits or 64, 8 * dtype.itemsize) - 1
    full = tuple(c and replace(c, window=c.window or (0, most)) for c in channels)
    if most <= 255:
        return full, ()
    message = (
        f"the image has {most.bit_length()} bits per channel and states no range of values to "
        f"show; values from 0 to {most:,d} are shown"
    )
    return full, (Finding(FindingKind.FALLBACK, message, path=path),)


def _image(
    levels: Sequence[tuple[tuple[int, int], Planes]],
    channels: Sequence[Channel],
    dtype: np.dtype[Any],
    bits: int | None,
    mpp_yx: tuple[float | None, float | None],
    findings: Sequence[Finding],
    path: Path,
    what: str,
) -> OmeImage:
    coloured, chosen = shown_channels(channels, path)
    shown, range_findings = _windowed(coloured, dtype, bits, path)
    lazy = tuple(
        LazyLevel(shape, lambda box, read=planes: blended(read(box), shown), path, what)  # type: ignore[misc]
        for shape, planes in levels
    )
    return OmeImage(lazy, mpp_yx, (*findings, *chosen, *range_findings))


def _um(value: Any, unit: Any) -> float | None:
    """Return a length in um; None if it or its unit is not understood."""
    try:
        length = float(value) * (micrometres(unit) or math.nan)
    except (TypeError, ValueError):
        return None
    return length if length > 0 and math.isfinite(length) else None


def _check_single(sizes: Mapping[str, int], path: Path) -> None:
    if stacked := [f"{axis.upper()} = {size}" for axis, size in sizes.items() if size != 1]:
        raise UnreadableFileError(
            f"expected an image of one plane, found a stack ({english_list(stacked)}); export "
            f"one plane",
            path=path,
        )


# --- OME-TIFF ---------------------------------------------------------------------------------


def _open_tiff(path: Path, what: str) -> OmeImage | None:
    with open_tiff(path) as tiff:
        with foreign_decoder():
            description = tiff.pages[0].description.strip()
        if not description.endswith("OME>"):
            return None
        image, count = _described_image(description)
        (pixels,) = image.iterfind("{*}Pixels")
        _check_single({axis: int(pixels.get(f"Size{axis}")) for axis in "ZT"}, path)
        channels = [_tiff_channel(element) for element in pixels.iterfind("{*}Channel")]
        n_all = int(pixels.get("SizeC"))
        with foreign_decoder():
            pages = _pages(tiff, pixels, path)
            stacks = [_page_levels(page) for page in pages]
        first = pages[0]
        samples = int(first.samplesperpixel)
        if first.photometric in (tifffile.PHOTOMETRIC.RGB, tifffile.PHOTOMETRIC.YCBCR):
            channels = [Channel(colour=colour) for colour in PRIMARY]
            off = [Channel(is_active=False)] * (samples - 3)
            n_all, channels, stacks = samples, [*channels, *off], stacks[:1]
        elif first.photometric not in (
            tifffile.PHOTOMETRIC.MINISBLACK,
            tifffile.PHOTOMETRIC.PALETTE,
        ):
            raise UnreadableFileError(
                f"expected an OME-TIFF in RGB or with black as 0, found colours that are stored as "
                f"{getattr(first.photometric, 'name', first.photometric)}; save it as 8-bit RGB",
                path=path,
            )
        elif len(channels) != n_all:
            channels = [Channel()] * n_all
        if not 1 <= n_all <= MOST_CHANNELS or samples * len(stacks) != n_all:
            raise ValueError(f"{len(stacks)} planes of {samples} channels where {n_all} are stated")
        levels = []
        for pages_of_level in zip(*stacks, strict=False):
            shapes = {(int(p.imagelength), int(p.imagewidth)) for p in pages_of_level}
            if len(shapes) != 1 or any(p.dtype != first.dtype for p in pages_of_level):
                break
            kept = KEPT_BYTES // len(pages_of_level)
            readers = [_page_reader(path, page, kept) for page in pages_of_level]
            levels.append((shapes.pop(), _side_by_side(readers)))
        if not levels:
            raise ValueError("its planes have several sizes")
        stated = pixels.get("SignificantBits")
        mpp_y, mpp_x = (
            _um(pixels.get(f"PhysicalSize{axis}"), pixels.get(f"PhysicalSize{axis}Unit", "µm"))
            for axis in "YX"
        )
    dtype, bits = np.dtype(first.dtype), int(stated) if stated else None
    found = _further_images(count, path)
    return _image(levels, channels, dtype, bits, (mpp_y, mpp_x), found, path, what)


def _described_image(description: str) -> tuple[Element, int]:
    """Return the first image that OME-XML describes, and how many there are."""
    images = xml_text_root(description).findall("{*}Image")
    if not images:
        raise ValueError("its OME-XML describes no image")
    return images[0], len(images)


def _further_images(count: int, path: Path) -> tuple[Finding, ...]:
    if count < 2:
        return ()
    message = f"the file holds {count} images: the first one is read"
    return (Finding(FindingKind.FALLBACK, message, path=path),)


def _tiff_channel(element: Element) -> Channel:
    colour = element.get("Color")
    # A signed number of RGBA. -1, opaque white, is also what programs write by default.
    rgba = None if colour in (None, "-1") else int(str(colour)) % 2**32
    rgb = None if rgba is None else (rgba >> 24, rgba >> 16 & 255, rgba >> 8 & 255)
    return Channel(str(element.get("Name", "")).strip(), rgb)


def _pages(tiff: Any, pixels: Element, path: Path) -> list[Any]:
    """Return the pages of the first image, one for each channel or group of samples."""
    own = str(pixels.getparent().getparent().get("UUID", ""))
    at: dict[int, int] = {}
    n_all, n_pages = int(pixels.get("SizeC")), len(tiff.pages)
    for data in pixels.iterfind("{*}TiffData"):
        place = data.find("{*}UUID")
        if place is not None and (place.text or "").strip() not in ("", own):
            raise UnreadableFileError(
                f"expected an image in one file, found planes in others "
                f"({str(place.get('FileName', 'without a name'))[:80]}); export one OME-TIFF",
                path=path,
            )
        start, channel = int(data.get("IFD", 0)), int(data.get("FirstC", 0))
        count = int(data.get("PlaneCount", 1 if data.get("IFD") is not None else n_all))
        for step in range(min(count, n_all, n_pages)):
            at[channel + step] = start + step
    samples = int(tiff.pages[0].samplesperpixel)
    numbers = [number for _, number in sorted(at.items())] or list(range(n_all // samples))
    if not numbers or not all(0 <= number < n_pages for number in numbers):
        raise ValueError(f"planes {numbers[:4]} of a file with {n_pages} pages")
    return [tiff.pages[number].aspage() for number in numbers[: max(1, n_all // samples)]]


def _page_levels(page: Any) -> list[Any]:
    """Return a page and the smaller levels in its SubIFDs."""
    n_levels = len(page.subifds or ())
    if n_levels > MOST_LEVELS:
        raise ValueError(f"{n_levels} levels")
    smaller = [page.pages[number].aspage() for number in range(n_levels)]
    levels = [page]
    for level in smaller:
        before = levels[-1]
        is_smaller = level.imagelength < before.imagelength and level.imagewidth < before.imagewidth
        if is_smaller and level.samplesperpixel == page.samplesperpixel:
            levels.append(level)
    return levels


def _page_reader(path: Path, page: Any, kept_bytes: int) -> Planes:
    check_page_complete(path, page)
    if int(page.compression) not in _CHECKED_BY_TILE:
        check_segments(path, page)
    if page.planarconfig == 1 and math.prod(page.chunks) * page.dtype.itemsize <= SEGMENT_BYTES:
        windows = PageWindows(path, page, kept_bytes)
        return lambda box: _with_channels(windows.read(box))
    check_pixels(page.shape, page.dtype.itemsize, path=path, what="an OME-TIFF")
    check_segments(path, page)
    with foreign_decoder():
        whole = page.asarray()
    whole = np.moveaxis(whole, 0, -1) if page.planarconfig == 2 and whole.ndim == 3 else whole
    return lambda box: _with_channels(whole[box[0] : box[2], box[1] : box[3]])


def _with_channels(window: NDArray[Any]) -> NDArray[Any]:
    return window if window.ndim == 3 else window[..., np.newaxis]


def _side_by_side(readers: Sequence[Planes]) -> Planes:
    if len(readers) == 1:
        return readers[0]
    return lambda box: np.concatenate([read(box) for read in readers], axis=2)


# --- OME-Zarr ---------------------------------------------------------------------------------


def _open_zarr(path: Path, what: str) -> OmeImage:
    from napari_panoptic.io.pixels.zarr_chunks import bounded

    node = opened_zarr(path, follows_links=False)
    findings: tuple[Finding, ...] = ()
    attributes = {} if hasattr(node, "chunks") else zarr_attributes(node)
    if "bioformats2raw.layout" in attributes and "0" in node:
        findings = _further_images(sum(name.isdigit() for name in node), path)
        node = node["0"]
        attributes = zarr_attributes(node)
    if "multiscales" not in attributes or "image-label" in attributes:
        kind = "a plate; name one image in it" if "plate" in attributes else "something else"
        raise UnreadableFileError(
            f"expected an OME-Zarr image (a group with 'multiscales'), found {kind}", path=path
        )
    scales = attributes["multiscales"][0]
    datasets = list(scales["datasets"])[:MOST_LEVELS]
    arrays = [bounded(node[str(level["path"])], path, "an image") for level in datasets]
    axes = [
        dict(axis) if isinstance(axis, Mapping) else {"name": str(axis)}
        for axis in scales.get("axes") or "tczyx"
    ]
    names = [str(axis["name"]) for axis in axes]
    if names.count("y") != 1 or names.count("x") != 1 or len(names) != arrays[0].ndim:
        raise ValueError(f"the axes {', '.join(names)} of an array of {arrays[0].shape}")
    sizes = dict(zip(names, arrays[0].shape, strict=True))
    _check_single({name: size for name, size in sizes.items() if name not in "cyx"}, path)
    n_channels = sizes.get("c", 1)
    if n_channels > MOST_CHANNELS:
        raise ValueError(f"{n_channels} channels")
    levels = []
    for array in arrays:
        of_level = dict(zip(names, array.shape, strict=True))
        if of_level.get("c", 1) != n_channels or 0 in array.shape:
            raise ValueError(f"a level of {array.shape}")
        levels.append(((of_level["y"], of_level["x"]), _zarr_reader(array, names)))
    mpp_yx = _zarr_mpp(scales, datasets[0], axes)
    channels = _zarr_channels(attributes.get("omero"), n_channels)
    dtype = np.dtype(arrays[0].dtype)
    return _image(levels, channels, dtype, None, mpp_yx, findings, path, what)


def _zarr_reader(array: Any, names: Sequence[str]) -> Planes:
    def read(box: Box) -> NDArray[Any]:
        within = {"y": slice(box[0], box[2]), "x": slice(box[1], box[3]), "c": slice(None)}
        with foreign_decoder():
            window = np.asarray(array[tuple(within.get(name, 0) for name in names)])
        left = [name for name in names if name in within]
        return _with_channels(window.transpose([left.index(n) for n in "yxc" if n in left]))

    return read


def _zarr_mpp(
    scales: Mapping[str, Any], dataset: Mapping[str, Any], axes: Sequence[Mapping[str, Any]]
) -> tuple[float | None, float | None]:
    factors = dict.fromkeys((str(axis["name"]) for axis in axes), 1.0)
    is_stated = False
    for holder in (dataset, scales):
        for transform in holder.get("coordinateTransformations") or ():
            if transform.get("type") == "scale" and "scale" in transform:
                is_stated = True
                for axis, factor in zip(factors, transform["scale"], strict=True):
                    factors[axis] *= float(factor)
    units = {str(axis["name"]): axis.get("unit") for axis in axes}
    y, x = (_um(factors[axis], units[axis]) if is_stated else None for axis in "yx")
    return y, x


def _zarr_channels(omero: Any, count: int) -> list[Channel]:
    described = (omero or {}).get("channels") or []
    if len(described) != count:
        return [Channel()] * count
    return [_zarr_channel(channel) for channel in described]


def _zarr_channel(described: Mapping[str, Any]) -> Channel:
    text = str(described.get("color") or "").removeprefix("#")
    colour = None
    if re.fullmatch("[0-9a-fA-F]{6}", text):
        red, green, blue = bytes.fromhex(text)
        colour = red, green, blue
    window = described.get("window") or {}
    low, high = float(window.get("start", math.nan)), float(window.get("end", math.nan))
    is_range = -math.inf < low < high < math.inf
    name = str(described.get("label") or "").strip()
    active = bool(described.get("active", True))
    return Channel(name, colour, (low, high) if is_range else None, active)
