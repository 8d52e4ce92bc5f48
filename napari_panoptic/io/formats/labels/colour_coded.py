"""Colour-coded RGB masks: a colour per class, borders drawn over the objects."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.formats.format import Format, LoadedMasks, OpenRequest
from napari_panoptic.io.formats.labels.masks import vanished_findings
from napari_panoptic.io.formats.reading import note, reading, refuse
from napari_panoptic.io.pixels.decode import check_size, pixel_shape, read_pixels
from napari_panoptic.kernels.restore import (
    UNKNOWN,
    classify,
    counted_components,
    grow,
    half_widths,
    shrink,
)
from napari_panoptic.values.cohort import ClassScheme, MaskFiles, Rgb, Source
from napari_panoptic.values.labels import LabelImage, LazyMasks, Vanished, compact
from napari_panoptic.values.settings import Restoration

WHAT = "a colour-coded mask (an RGB image with one colour per class)"
KEPT_UP_TO_PX = 1 << 24
"""Above this size components are found again for each restoration."""
COLOURS_SHOWN = 3
"""Number of unknown colours that a finding names."""


@dataclass(frozen=True, eq=False)
class ColourCodedMask:
    """A colour-coded mask, colours turned into classes."""

    #: uint8 (y, x): 0 for background and borders, k for the k-th class of the scheme.
    class_image: NDArray[np.uint8]

    _kept: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = field(
        default_factory=list, init=False, repr=False
    )

    def numbered(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the components as `counted_components` does; not to be changed.

        They are kept, unless the image is so large that memory matters more
        than the time to find them again.
        """
        if self.class_image.size > KEPT_UP_TO_PX:
            return counted_components(self.class_image)
        if not self._kept:
            # Not a cached_property: in Python 3.11 its lock is one for all masks, and
            # threads that restore different ones would wait for each other.
            self._kept.append(counted_components(self.class_image))
        return self._kept[0]


def read_colour_coded(
    path: Path, scheme: ClassScheme, shape: tuple[int, int] | None = None
) -> ColourCodedMask:
    """Read a colour-coded mask. Colours must match the scheme's exactly.

    Pixels of any other colour count as background and are reported; so are
    transparent ones where there is an alpha channel.

    Parameters
    ----------
    path
        TIFF, PNG or any image that Pillow opens.
    scheme
        The classes with their colours, border and background colours.
    shape
        Height and width in px that the mask must have, if known.

    Raises
    ------
    UnreadableFileError
        If the file cannot be decoded, is no RGB image, has another size, or
        has not one pixel of a known colour.
    """
    pixels = read_pixels(path, WHAT, colour=True)
    check_size(pixels.shape, shape, path=path, what="the colour-coded mask")
    rgb, transparent = _rgb(pixels)
    known = dict.fromkeys((*scheme.background, *scheme.border), 0)
    known |= {colour: number for number, colour in enumerate(scheme.colours, start=1)}
    codes = np.array([_code(colour) for colour in known], dtype=np.int32)
    class_image = classify(rgb, codes, np.array(list(known.values()), dtype=np.uint8))
    if transparent is not None:
        class_image[transparent] = 0
        note(_alpha_finding(transparent))
    _settle_unknown(class_image, rgb, known)
    return ColourCodedMask(class_image)


def restore(
    mask: ColourCodedMask, scheme: ClassScheme, restoration: Restoration, radius: int
) -> LabelImage:
    """Recover the objects of a colour-coded mask.

    The 8-connected components of each class become objects, numbered in raster
    order. Under ``border-dilated`` each is then changed by a disk of ``|radius|``
    px (as ``skimage.morphology.disk`` draws it):

    - radius 1: each object, in label order, overwrites what it covers. Two
      objects of a class never touch, so this only ever takes background, and a
      pixel that two objects reach goes to the higher label: the maximum over a
      3 x 3 cross.
    - radius > 1: objects grow into background only, that is, into pixels that
      are no object of that class; where two arrive the higher label wins.
    - radius < 0: each object is eroded by itself. What lies beyond the image
      counts as object, so the image's edge erodes nothing. Objects that erode
      away have vanished.
    - radius 0: the same as ``border-removed``.

    Classes are flattened in the scheme's order, later ones over earlier ones.

    Parameters
    ----------
    mask
        Not changed.
    scheme
        The classes.
    restoration
        ``border-removed`` or ``border-dilated``.
    radius
        In px; without effect under ``border-removed``.
    """
    applied = radius if restoration == Restoration.BORDER_DILATED else 0
    numbers, last = mask.numbered()
    ends = last[: len(scheme.names) + 1].tolist()
    spans = dict(zip(scheme.names, itertools.pairwise(ends), strict=True))
    spans = {name: span for name, span in spans.items() if span[0] < span[1]}
    own_ids = {name: np.arange(1, end - begin + 1) for name, (begin, end) in spans.items()}
    vanished: list[Vanished] = []
    overlapping_px = 0
    flat = numbers
    if applied > 0:
        flat, overlapping_px = grow(numbers, mask.class_image, last, half_widths(applied))
    elif applied < 0:
        flat, rows = compact(shrink(numbers, half_widths(-applied)))
        is_left = np.isin(np.arange(1, ends[-1] + 1), rows)
        for name, (begin, end) in spans.items():
            here, ids = is_left[begin:end], own_ids[name]
            vanished += [Vanished(id_, name, "eroded away") for id_ in ids[~here].tolist()]
            own_ids[name] = ids[here]
    return LabelImage.from_flattened(
        flat,
        {name: ids for name, ids in own_ids.items() if len(ids)},
        scheme.names,
        class_masks=LazyMasks(spans, partial(_class_mask, mask.class_image, scheme, applied)),
        vanished=vanished,
        overlapping_px=overlapping_px,
    )


def _class_mask(
    class_image: NDArray[np.uint8], scheme: ClassScheme, radius: int, name: str
) -> NDArray[np.int32]:
    """Restore the mask of one class."""
    here = (class_image == scheme.names.index(name) + 1).astype(np.uint8)
    numbers, last = counted_components(here)
    if radius == 0:
        return numbers
    if radius < 0:
        return shrink(numbers, half_widths(-radius))
    return grow(numbers, here, last, half_widths(radius))[0]


def _rgb(pixels: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.bool_] | None]:
    """Split pixels into colour and, where there is an alpha channel, transparency."""
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4):
        raise refuse(_not_rgb(pixels))
    values = _eight_bit(pixels)
    rgb = np.ascontiguousarray(values[..., :3])
    return rgb, values[..., 3] == 0 if values.shape[2] == 4 else None


def _not_rgb(pixels: NDArray[Any]) -> str:
    if pixels.ndim != 2:
        return f"expected {WHAT}, found an array of shape {pixels.shape}"
    found = f"found a greyscale image with values from {pixels.min()} to {pixels.max()}"
    if pixels.dtype.kind in "iu":
        return (
            f"expected {WHAT}, {found}; if it is a label image (one number per object), list it "
            f"as labels, not as colour-coded, in cohort.toml"
        )
    return f"expected {WHAT}, {found}; save the mask in colour"


def _eight_bit(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind in "iu" and pixels.min(initial=0) >= 0:
        if pixels.max(initial=0) <= 255:
            return pixels.astype(np.uint8)
        # Eight bits stretched to sixteen: 255 became 65535.
        if pixels.dtype == np.uint16 and not (pixels % 257).any():
            return (pixels // 257).astype(np.uint8)
    raise refuse(
        f"expected {WHAT} with values from 0 to 255, found type {pixels.dtype} with values from "
        f"{pixels.min():g} to {pixels.max():g}; save the mask as 8-bit RGB"
    )


def _alpha_finding(transparent: NDArray[np.bool_]) -> Finding:
    count = int(np.count_nonzero(transparent))
    if count == 0:
        return Finding(
            FindingKind.FALLBACK, "the mask's alpha channel, opaque all over, is ignored"
        )
    message = f"{counted(count, 'transparent pixel')} of the mask treated as background"
    return Finding(FindingKind.FALLBACK, message, count=count)


def _settle_unknown(
    class_image: NDArray[np.uint8], rgb: NDArray[np.uint8], known: dict[Rgb, int]
) -> None:
    """Turn pixels of unknown colours into background, in place, and note them."""
    unknown = class_image == UNKNOWN
    count = int(np.count_nonzero(unknown))
    if count == 0:
        return
    class_image[unknown] = 0
    commonest = _commonest(rgb[unknown])
    if count == class_image.size:
        raise refuse(
            f"expected {WHAT}, found no pixel of a known colour; most frequent are {commonest}, "
            f"known are {english_list([str(c) for c in known])}: list the mask's colours under "
            f"[classes] in cohort.toml"
        )
    message = (
        f"{count} px ({count / class_image.size:.2%} of the mask) have a colour that no class "
        f"has and count as background: mostly {commonest}. Anti-aliasing, JPEG compression or "
        f"a class missing from the scheme make such colours; masks should be saved without loss"
    )
    note(Finding(FindingKind.UNKNOWN_COLOURS, message, count=count))


def _commonest(rgb: NDArray[np.uint8]) -> str:
    codes = rgb.astype(np.int64) @ (65536, 256, 1)
    values, counts = np.unique(codes, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:COLOURS_SHOWN]
    named = (
        f"({v >> 16}, {v >> 8 & 255}, {v & 255}) with {n / len(codes):.0%}"
        for v, n in zip(values[order].tolist(), counts[order].tolist(), strict=True)
    )
    return english_list([f"{text} of them" if i == 0 else text for i, text in enumerate(named)])


def _code(colour: Rgb) -> int:
    red, green, blue = colour
    return red << 16 | green << 8 | blue


def open_files(files: MaskFiles, scheme: ClassScheme, request: OpenRequest) -> LoadedMasks:
    """Read the objects of one side of a region; see `napari_panoptic.io.formats.format.Format`."""
    path = files.all_paths[0]
    with reading(path):
        mask = read_colour_coded(path, scheme, request.shape)

    def restored(restoration: Restoration, radius: int) -> LoadedMasks:
        labels = restore(mask, scheme, restoration, radius)
        vanished = tuple(vanished_findings(labels.vanished, path=path))
        return LoadedMasks(labels, None, vanished, restored=restored)

    return restored(request.restoration, request.radius)


def files_shape(files: MaskFiles) -> tuple[int, int] | None:
    """Return height and width in px from the headers, or None if they are not there."""
    height, width = pixel_shape(files.all_paths[0], WHAT)[:2]
    return height, width


FORMAT = Format(
    name=Source.COLOUR_CODED,
    title="Colour-coded mask",
    open=open_files,
    shape=files_shape,
)
