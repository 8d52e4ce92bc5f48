"""Slides and pictures: RGB pixels, lazily where they are many, and micrometres per pixel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from ctypes import ArgumentError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.files.guard import check_file, check_segment, check_slide, largest_px
from napari_panoptic.io.images.arrays import image_shape, read_array_image
from napari_panoptic.io.images.lazy_levels import LazyLevel, but_smallest, overview
from napari_panoptic.io.images.ome import OmeImage, open_ome
from napari_panoptic.io.images.resolution import (
    PLAUSIBLE_MPP,
    WHAT,
    imagej_entries,
    mean_mpp,
    positive,
    property_tags,
    resolution_tags,
    tag_mpp,
    tag_value,
)
from napari_panoptic.io.pixels.decode import (
    DECODING_ERRORS,
    decoding,
    file_kind,
    foreign_decoder,
    open_picture,
    open_tiff,
    pixel_shape,
    read_pixels,
)
from napari_panoptic.io.pixels.tiff_windows import VENDORS, PageWindows, level_windows
from napari_panoptic.values.labels import size_text
from napari_panoptic.values.windowed_labels import Box

if TYPE_CHECKING:
    import openslide

SLIDE_ENDINGS = ("svs", "ndpi", "scn", "mrxs", "vms", "vmu", "svslide", "bif", "czi")
"""Endings of files that only slide scanners write: Aperio, Hamamatsu, Leica, MIRAX, Sakura, Ventana
and Zeiss. Slides of Philips and Trestle, and generic tiled ones, end in .tif or .tiff."""
IMAGE_ENDINGS = (*SLIDE_ENDINGS, "ome.tif", "ome.tiff", "tif", "tiff", "png", "jpg", "jpeg")
"""Endings of the names of images of regions, the preferred first."""
LARGEST_ARRAY_PX = 4096 * 4096
"""Images up to this many pixels are read whole; larger ones lazily."""
LARGEST_OVERVIEW_PX = 4096 * 2048
"""The smallest level of a lazy image has at most this many pixels, and is held in memory."""
RGBA_BYTES = 4
_MOST_DIGITS = 10
"""Largest number of digits of an offset in px."""
_TILE_SIDES = ("height", "width")


@dataclass(frozen=True)
class ImageInfo:
    """What an image file says about itself."""

    #: Height and width in px.
    shape: tuple[int, int]
    #: Micrometres per pixel, or None if unknown.
    mpp: float | None
    #: Problems found.
    findings: tuple[Finding, ...] = ()
    #: Where the scanned area of a slide begins by OpenSlide, in px: QuPath counts from there.
    bounds_xy: tuple[int, int] = (0, 0)


@dataclass(frozen=True, eq=False)
class SlideImage:
    """The pixels of an image.

    Holds an open file where levels are lazy: close it (or use it in a ``with``
    statement) when it is no longer shown. Closing twice does no harm.
    """

    #: uint8 (y, x, 3), the first at full resolution, each next one smaller: NumPy arrays, or
    #: `LazyLevel` where the image is large.
    levels: tuple[NDArray[np.uint8] | LazyLevel, ...]
    #: Micrometres per pixel at full resolution, or None if unknown.
    mpp: float | None
    #: Problems found.
    findings: tuple[Finding, ...]
    #: Height and width in px at full resolution.
    shape: tuple[int, int]

    @property
    def is_lazy(self) -> bool:
        """Whether levels are read where they are looked at, from an open file."""
        return any(isinstance(level, LazyLevel) for level in self.levels)

    def close(self) -> None:
        """Close the file, if one is open."""
        lazy = [level for level in self.levels if isinstance(level, LazyLevel)]
        # All levels share one file.
        if lazy:
            lazy[0].close()

    def __enter__(self) -> SlideImage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SlideLevel(LazyLevel):
    """One level of a slide that OpenSlide has open.

    Parameters
    ----------
    slide
        The open slide, which may be shared between levels.
    level
        Number of the level.
    path
        The file.
    """

    def __init__(self, slide: openslide.OpenSlide, level: int, path: Path) -> None:
        import openslide

        width, height = slide.level_dimensions[level]
        super().__init__((int(height), int(width)), self._pixels, path, WHAT)
        self._slide = slide
        self._level = level
        self._factor = float(slide.level_downsamples[level])
        self._closed = False
        self._windows: PageWindows | None = None
        vendor = slide.properties.get(openslide.PROPERTY_NAME_VENDOR)
        # Else rows and columns of the level lie between those of the first, and are blended.
        if vendor in VENDORS and self._factor.is_integer():
            self._windows = level_windows(path, (int(height), int(width)), self._by_openslide)

    def close(self) -> None:
        """Close the slide, also for the other levels; more than once does no harm."""
        if not self._closed:
            self._closed = True
            self._slide.close()

    def _pixels(self, box: Box) -> NDArray[np.uint8]:
        if self._windows is None:
            return self._by_openslide(box)
        if self._closed:
            raise _closed(self._path)
        return self._windows.read(box)

    def _by_openslide(self, box: Box) -> NDArray[np.uint8]:
        y0, x0, y1, x1 = box
        # OpenSlide wants the corner in px of the first level.
        corner = (round(x0 * self._factor), round(y0 * self._factor))
        return _region(self._slide, corner, self._level, (x1 - x0, y1 - y0), self._path)


def probe_image(path: Path, item: str | None = None) -> ImageInfo:
    """Read size and resolution of an image, but no pixels.

    Parameters
    ----------
    path
        The file.
    item
        Which image of an array that holds many; see `napari_panoptic.values.cohort.Region`.

    Raises
    ------
    UnreadableFileError
        If the file is missing or no image.
    """
    if item is None and (ome := _ome_or_none(path)) is not None:
        mpp, findings = _ome_mpp(ome, path)
        return ImageInfo(ome.shape, mpp, (*ome.findings, *findings))
    check_file(path, WHAT)
    if item is not None:
        return ImageInfo(image_shape(path, item), *tag_mpp((None, None), path))
    with _open_or_none(path) or nullcontext() as slide:
        if slide is not None:
            width, height = slide.dimensions
            check_slide((height, width), path=path)
            mpp, findings = _slide_mpp(slide, path)
            findings = (*_converted_slide(slide, path), *findings)
            return ImageInfo((height, width), mpp, findings, _bounds_xy(slide))
    height, width = _plane_shape(path)
    check_slide((height, width), path=path)
    mpp, findings = tag_mpp(resolution_tags(path), path)
    return ImageInfo((height, width), mpp, (*_as_stored(path), *findings))


def _bounds_xy(slide: openslide.OpenSlide) -> tuple[int, int]:
    import openslide

    names = openslide.PROPERTY_NAME_BOUNDS_X, openslide.PROPERTY_NAME_BOUNDS_Y
    bounds = [slide.properties.get(name, "") for name in names]
    is_stated = all(text.isdecimal() and len(text) <= _MOST_DIGITS for text in bounds)
    x, y = map(int, bounds) if is_stated else (0, 0)
    return x, y


def read_image(path: Path, item: str | None = None) -> SlideImage:
    """Read an image: whole up to 4096 x 4096 px, else as a lazy pyramid.

    OpenSlide goes first, whatever the file's name; what it does not know is
    read by tifffile or Pillow. OME-TIFF and OME-Zarr have a reader of their own, since
    OpenSlide would show the first channel only, and no smaller levels. In a lazy
    pyramid, tifffile decodes the tiles for which it returns the same pixels.

    Parameters
    ----------
    path
        The file.
    item
        Which image of an array that holds many; see `napari_panoptic.values.cohort.Region`.

    Raises
    ------
    UnreadableFileError
        If the file is missing, damaged, cut off or no image.
    """
    if item is None and (ome := _ome_or_none(path)) is not None:
        return _read_ome(ome, path)
    check_file(path, WHAT)
    if item is not None:
        rgb, odd = _as_rgb(read_array_image(path, item), path)
        mpp, no_mpp = tag_mpp((None, None), path)
        return SlideImage((rgb,), mpp, (*odd, *no_mpp), (rgb.shape[0], rgb.shape[1]))
    slide = _open_or_none(path)
    if slide is None:
        return _read_plain(path)
    try:
        image = _read_slide(slide, path)
    except BaseException:
        slide.close()
        raise
    if not image.is_lazy:
        slide.close()
    return image


def _ome_or_none(path: Path) -> OmeImage | None:
    ending = path.suffix.lower().removeprefix(".")
    return None if ending in SLIDE_ENDINGS else open_ome(path, WHAT)


def _ome_mpp(ome: OmeImage, path: Path) -> tuple[float | None, tuple[Finding, ...]]:
    low, high = PLAUSIBLE_MPP
    y, x = (mpp if mpp is not None and low <= mpp <= high else None for mpp in ome.mpp_yx)
    if x is None and y is None:
        tags = (None, None) if path.is_dir() else resolution_tags(path)
        return tag_mpp(tags, path)
    return mean_mpp(x, y, path)


def _read_ome(ome: OmeImage, path: Path) -> SlideImage:
    mpp, findings = _ome_mpp(ome, path)
    levels: tuple[NDArray[np.uint8] | LazyLevel, ...]
    if math.prod(ome.shape) <= LARGEST_ARRAY_PX:
        levels = (np.asarray(ome.levels[0]),)
    else:
        levels = _with_overview(ome.levels)
    return SlideImage(levels, mpp, (*ome.findings, *findings), ome.shape)


def are_one_slide(paths: Sequence[Path]) -> bool:
    """Return whether files are parts of one DICOM slide, each of which opens all of it."""
    import openslide

    series = set()
    for path in paths:
        try:
            with openslide.OpenSlide(path) as slide:
                series.add(slide.properties.get("dicom.SeriesInstanceUID"))
        except (openslide.OpenSlideError, OSError):
            return False
    return len(series) == 1 and None not in series


def _read_slide(slide: openslide.OpenSlide, path: Path) -> SlideImage:
    width, height = slide.dimensions
    check_slide((height, width), path=path)
    _check_tiles(slide, path)
    mpp, findings = _slide_mpp(slide, path)
    levels: tuple[NDArray[np.uint8] | LazyLevel, ...]
    if width * height <= LARGEST_ARRAY_PX:
        levels = (_region(slide, (0, 0), 0, (width, height), path),)
    else:
        lazy = tuple(SlideLevel(slide, level, path) for level in range(slide.level_count))
        levels = _with_overview(lazy)
    return SlideImage(levels, mpp, (*_converted_slide(slide, path), *findings), (height, width))


def _with_overview(
    lazy: Sequence[LazyLevel],
) -> tuple[NDArray[np.uint8] | LazyLevel, ...]:
    """Replace the smallest level by one that is held in memory, or add one."""
    return (*but_smallest(lazy, LARGEST_OVERVIEW_PX), overview(lazy[-1], LARGEST_OVERVIEW_PX))


def _check_tiles(slide: openslide.OpenSlide, path: Path) -> None:
    """Make sure that tiles are not too large for the library, which would end the process."""
    for level in range(slide.level_count):
        sizes = (slide.properties.get(f"openslide.level[{level}].tile-{s}") for s in _TILE_SIDES)
        check_segment([int(size or 0) for size in sizes], RGBA_BYTES, path=path)


def _read_plain(path: Path) -> SlideImage:
    height, width = _plane_shape(path)
    if height * width > largest_px():
        raise UnreadableFileError(
            f"the image of {size_text((height, width))} is too large to be read at once; save it "
            f"as a tiled pyramid (SVS or TIFF) that OpenSlide can open",
            path=path,
        )
    rgb, findings = _as_rgb(read_pixels(path, WHAT, colour=True), path)
    mpp, mpp_findings = tag_mpp(resolution_tags(path), path)
    levels = [rgb]
    while levels[-1].shape[0] * levels[-1].shape[1] > LARGEST_ARRAY_PX:
        levels.append(np.ascontiguousarray(levels[-1][::2, ::2]))
    findings += _as_stored(path)
    return SlideImage(tuple(levels), mpp, (*findings, *mpp_findings), (height, width))


def _plane_shape(path: Path) -> tuple[int, int]:
    """Return height and width of an image in px.

    Raises
    ------
    UnreadableFileError
        If it has several planes, or cannot be understood.
    """
    shape = pixel_shape(path, WHAT)
    stated = imagej_entries(path)
    planes = stated.get("slices", stated.get("frames", "1"))
    if len(shape) > 3:
        planes = str(math.prod(shape[:-3]))
    if planes != "1":
        raise UnreadableFileError(
            f"expected an image of one plane, found a stack of {planes} planes; export one plane",
            path=path,
        )
    return shape[0], shape[1]


def _as_stored(path: Path) -> Iterator[Finding]:
    """Report an image that is stored turned, mirrored, or in other colours than it is shown."""
    orientation: Any = None
    kind: Any = None
    with suppress(*DECODING_ERRORS), foreign_decoder():  # damage is found with the pixels
        if file_kind(path) == "tiff":
            with open_tiff(path) as tiff:
                orientation = tag_value(tiff.pages[0].tags, "Orientation")
                kind = tag_value(tiff.pages[0].tags, "PhotometricInterpretation")
        else:
            with open_picture(path) as image:
                # Else the library would decode all pixels in search of it.
                orientation = image.getexif().get(_ORIENTATION) if "exif" in image.info else None
                kind = image.mode
    if orientation in range(2, 9):
        message = (
            f"the image is to be shown turned or mirrored (orientation {int(orientation)} of "
            f"EXIF), and is read as it is stored. Programs differ: if the objects were outlined on "
            f"the turned image, save it turned, without this entry"
        )
        yield Finding(FindingKind.FALLBACK, message, path=path)
    if (stored := _CONVERTED.get(kind)) is not None:
        message = f"the image is stored {stored}, and is shown converted to RGB"
        yield Finding(FindingKind.FALLBACK, message, path=path)


def _converted_slide(slide: openslide.OpenSlide, path: Path) -> Iterator[Finding]:
    """Report a tiled TIFF that OpenSlide converts; slides of scanners are in RGB."""
    import openslide

    if slide.properties.get(openslide.PROPERTY_NAME_VENDOR) == "generic-tiff":
        yield from _as_stored(path)


def _as_rgb(pixels: NDArray[Any], path: Path) -> tuple[NDArray[np.uint8], list[Finding]]:
    findings = []
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    if pixels.dtype == np.uint16:
        pixels = (pixels >> 8).astype(np.uint8)
        message = "the image has 16 bits per channel; the upper 8 are shown"
        findings.append(Finding(FindingKind.FALLBACK, message, path=path))
    if pixels.ndim == 2:
        pixels = pixels[..., np.newaxis]
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] > 4:
        raise UnreadableFileError(
            f"expected {WHAT} with 8 or 16 bits per channel, found type {pixels.dtype} and shape "
            f"{pixels.shape}; save it as 8-bit RGB",
            path=path,
        )
    # Grey with or without alpha, or colour with or without alpha.
    colour = pixels[..., :3] if pixels.shape[2] >= 3 else np.repeat(pixels[..., :1], 3, axis=2)
    return np.ascontiguousarray(colour), findings


def _region(
    slide: openslide.OpenSlide,
    corner_xy: tuple[int, int],
    level: int,
    size: tuple[int, int],
    path: Path,
) -> NDArray[np.uint8]:
    import openslide

    try:
        with decoding(path, WHAT, openslide.OpenSlideError), foreign_decoder():
            rgba = np.asarray(slide.read_region(corner_xy, level, size))
    except ArgumentError as error:
        # What the library says when its handle is closed.
        raise _closed(path) from error
    rgb = np.ascontiguousarray(rgba[..., :3])
    # Where nothing was scanned, glass is white, not black.
    empty = rgba[..., 3] == 0
    if empty.any():
        rgb[empty] = 255
    return rgb


def _closed(path: Path) -> UnreadableFileError:
    return UnreadableFileError("the slide was closed; open it again", path=path)


def _open_or_none(path: Path) -> openslide.OpenSlide | None:
    """Open a slide; None for what OpenSlide does not know, which others may."""
    import openslide

    try:
        return openslide.OpenSlide(path)
    except (openslide.OpenSlideError, OSError) as error:
        ending = path.suffix.lower().removeprefix(".")
        if ending == "svs" and file_kind(path) != "tiff":
            raise UnreadableFileError(
                "expected an Aperio slide (SVS), but OpenSlide cannot open it and it is no TIFF "
                "either: it is damaged or of another format; copy or export it again",
                path=path,
            ) from error
        if ending in SLIDE_ENDINGS and ending != "svs":
            # Others would show the label or the thumbnail that such a file begins with.
            raise UnreadableFileError(
                f"expected a slide (.{ending}), but OpenSlide cannot open it ({error}): copy it "
                f"again, with the files and the folder of its name that belong to it",
                path=path,
            ) from error
        return None


def _slide_mpp(slide: openslide.OpenSlide, path: Path) -> tuple[float | None, tuple[Finding, ...]]:
    import openslide

    properties = slide.properties
    x = positive(properties.get(openslide.PROPERTY_NAME_MPP_X))
    y = positive(properties.get(openslide.PROPERTY_NAME_MPP_Y))
    if x is None and y is None:
        return tag_mpp(property_tags(properties), path)
    return mean_mpp(x, y, path)


_CONVERTED = {0: "with white as 0", 3: "with a palette", 5: "in CMYK", "CMYK": "in CMYK"}
"""Photometric tag of a TIFF or mode of a picture -> its description in findings."""
_ORIENTATION = 274
"""The tag of EXIF and TIFF that says how an image is turned; 1 is upright."""
