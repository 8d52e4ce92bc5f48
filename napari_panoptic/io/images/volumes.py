"""Images of two or three dimensions for several raters: pictures, masks, probability maps.

NIfTI, TIFF, PNG (or JPEG) and NPY. Arrays come as (y, x) or (z, y, x): the axes
of NIfTI, which names x first, are turned round, and nothing is flipped. Axes of
length one are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted
from napari_panoptic.io.files.guard import check_file
from napari_panoptic.io.images.lazy_levels import CHUNK_PX
from napari_panoptic.io.images.resolution import imagej_spacing_um
from napari_panoptic.io.images.slides import SLIDE_ENDINGS, read_image
from napari_panoptic.io.pixels.decode import (
    check_complete,
    check_segments,
    decoding,
    file_kind,
    foreign_decoder,
    map_npy,
    open_picture,
    open_tiff,
    tiff_series,
)
from napari_panoptic.io.pixels.extras import import_extra

LARGEST_VOXELS = 1 << 27
"""Images of more voxels (512 x 512 x 512) are refused before anything is allocated."""
ROUNDING = 1e-6
"""Largest distance of a probability from 0 ... 1 that single precision explains."""
SPATIAL = (2, 3)
"""Dimensions that masks and probability maps can have."""
AFFINE_TOLERANCE = 1e-3
"""Affines that differ by no more, in mm, are the same."""
MM = {"meter": 1000.0, "mm": 1.0, "micron": 1e-3, "unknown": 1.0}
NIFTI_ENDINGS = (".nii", ".nii.gz")


@dataclass(frozen=True, eq=False)
class Volume:
    """An image as read."""

    #: As stored, axes of length one dropped; colours, if any, last.
    values: NDArray[Any]
    #: Where it was read.
    path: Path
    #: Whether the last axis is colour.
    is_colour: bool = False
    #: Distance of voxels along the axes of `values` that are space, in mm; None if the file does
    #: not say.
    spacing_mm: tuple[float, ...] | None = None
    #: float64 (4, 4): from NIfTI voxel indices to mm; None for other files.
    affine: NDArray[np.float64] | None = None
    #: Whether integers are values rather than shares of the largest integer.
    is_nifti: bool = False
    #: Problems found.
    findings: tuple[Finding, ...] = ()


def is_nifti(path: Path) -> bool:
    """Return whether a file name is that of a NIfTI file."""
    return path.name.casefold().endswith(NIFTI_ENDINGS)


def read_volume(path: Path, what: str) -> Volume:
    """Read an image whole.

    Parameters
    ----------
    path
        The file.
    what
        What is expected, for error messages.

    Raises
    ------
    UnreadableFileError
        If it is missing, damaged, cut off, too large or of another format.
    MissingPackageError
        If it is NIfTI and nibabel is not installed.
    """
    check_file(path, what)
    read = _read_nifti if is_nifti(path) else _readers()[file_kind(path)]
    # What libraries warn about is either harmless, or raises an error below.
    with decoding(path, what), np.errstate(all="ignore"):
        volume = read(path, what)
    # What the header promised, a decoder may still not give.
    _check_voxels(volume.values.shape, path, what)
    return volume


def is_slide(path: Path) -> bool:
    """Return whether a file name is that of a slide as scanners write them."""
    return path.suffix.casefold().removeprefix(".") in SLIDE_ENDINGS


def read_slide(path: Path, shape: tuple[int, ...]) -> Volume:
    """Read a whole slide and its spacing.

    Parameters
    ----------
    path
        The file.
    shape
        The size that it must have; pixels of another slide are not decoded.

    Raises
    ------
    UnreadableFileError
        If it is missing, damaged, too large or of another size.
    """
    with read_image(path) as slide:
        check_fits(slide.shape, shape, path)
        _check_voxels(slide.shape, path, "a slide")
        level = slide.levels[0]
        values = np.empty((*slide.shape, 3), np.uint8)
        # In bands: OpenSlide gives four bytes per pixel, which a second whole slide would be.
        for top in range(0, slide.shape[0], CHUNK_PX):
            values[top : top + CHUNK_PX] = level[top : top + CHUNK_PX]
        spacing = None if slide.mpp is None else (slide.mpp / 1000,) * 2
    return Volume(values, path, is_colour=True, spacing_mm=spacing)


def check_fits(found: tuple[int, ...], shape: tuple[int, ...], path: Path) -> None:
    """Make sure that an image has the size of the masks.

    Raises
    ------
    UnreadableFileError
        If it has another.
    """
    if found != shape:
        raise UnreadableFileError(
            f"the image must have the masks' size of {shape_text(shape)}, found "
            f"{shape_text(found)}; make sure that it belongs to this case",
            path=path,
        )


def read_mask(path: Path, what: str) -> Volume:
    """Read a mask: bool values, True where the structure is.

    Beside 0 there may be one other value, such as 1 or 255.

    Raises
    ------
    UnreadableFileError
        As `read_volume`, and where it is not binary or has colours.
    """
    volume = _without_colour(read_volume(path, what), what)
    values = volume.values
    if values.dtype.kind == "b":
        return volume
    if values.dtype.kind not in "iuf":
        raise _not_binary(path, what, f"values of type {values.dtype}")
    highest = values.max(initial=0)
    if not highest >= 0:  # also NaN
        raise _not_binary(path, what, f"the value {highest:g}")
    mask = values == highest if highest else np.zeros(values.shape, bool)
    if np.count_nonzero(values) != np.count_nonzero(mask):
        odd = values[(values != 0) & (values != highest)]
        raise _not_binary(path, what, f"0, {odd[0]:g} and {highest:g} among the values")
    return replace(volume, values=mask)


def read_probabilities(path: Path, what: str) -> Volume:
    """Read a probability map: floating-point values from 0 to 1.

    Whole numbers of TIFF, PNG and NPY are divided by the largest of their type
    (255, 65535); where none is above 1 they are taken as they are. NIfTI holds
    the probabilities themselves.

    Raises
    ------
    UnreadableFileError
        As `read_volume`, and for colours, NaN, and values outside 0 ... 1.
    """
    volume = _without_colour(read_volume(path, what), what)
    if volume.values.dtype.kind in "iu":
        volume = _shares(volume, what)
    elif volume.values.dtype.kind == "b":
        volume = replace(volume, values=volume.values.astype(np.float32))
    elif volume.values.dtype.kind != "f":
        raise _no_probability(path, what, f"values of type {volume.values.dtype}")
    values = volume.values
    lowest, highest = float(values.min(initial=0)), float(values.max(initial=0))
    if math.isnan(lowest) or math.isnan(highest):
        count = int(np.isnan(values).sum())
        raise _no_probability(path, what, f"NaN in {counted(count, 'voxel')}")
    if lowest < -ROUNDING or highest > 1 + ROUNDING:
        raise _no_probability(path, what, f"values from {lowest:g} to {highest:g}")
    if lowest < 0 or highest > 1:
        values = np.clip(values, 0, 1)
    return replace(volume, values=values)


def _shares(volume: Volume, what: str) -> Volume:
    """Turn whole numbers into probabilities."""
    values, findings = volume.values, volume.findings
    full = int(np.iinfo(values.dtype).max)
    lowest, highest = int(values.min(initial=0)), int(values.max(initial=0))
    is_plain = volume.is_nifti or highest <= 1
    if lowest < 0 or (is_plain and highest > 1):
        raise _no_probability(volume.path, what, f"whole numbers from {lowest} to {highest}")
    if highest == 1 and not volume.is_nifti:
        message = (
            f"{what} holds the whole numbers 0 and 1 only: they were taken as probabilities, "
            f"not as shares of {full}"
        )
        findings = (*findings, Finding(FindingKind.FALLBACK, message, path=volume.path))
    kind = np.dtype(np.float32 if values.dtype.itemsize <= 2 else np.float64)
    # Correctly rounded, so that a share that equals a level still does.
    shares: NDArray[Any] = values.astype(kind)
    if not is_plain:
        shares /= kind.type(full)
    return replace(volume, values=shares, findings=findings)


def same_place(volume: Volume, other: Volume) -> bool:
    """Return whether two images lie at one place of the patient, as far as they say."""
    if volume.affine is None or other.affine is None:
        return True
    return bool(np.allclose(volume.affine, other.affine, rtol=0, atol=AFFINE_TOLERANCE))


def shape_text(shape: tuple[int, ...]) -> str:
    """Write a shape as people do: width x height x slices."""
    return " x ".join(str(size) for size in reversed(shape))


def _readers() -> dict[str, Callable[[Path, str], Volume]]:
    return {"tiff": _read_tiff, "npy": _read_npy, "other": _read_picture}


def _read_nifti(path: Path, what: str) -> Volume:
    nibabel = import_extra("nibabel", "nifti", path, "save it as TIFF or NPY")
    errors = (nibabel.filebasedimages.ImageFileError, nibabel.spatialimages.HeaderDataError)
    with decoding(path, what, *errors):
        with foreign_decoder():
            image = nibabel.load(path)
        return _volume(image, path, what)


def _volume(image: Any, path: Path, what: str) -> Volume:
    """Decode a NIfTI image that nibabel has opened."""
    _check_voxels(image.shape[::-1], path, what)
    if len(image.shape) < 2:
        raise UnreadableFileError(
            f"expected {what} of two or three dimensions, found {len(image.shape)}", path=path
        )
    zooms = [float(zoom) for zoom in image.header.get_zooms()[:3]]
    unit = MM.get(image.header.get_xyzt_units()[0], 1.0)
    with foreign_decoder():
        stored = _scaled(image)
    if stored.dtype.names or stored.dtype.kind not in "biuf":
        raise UnreadableFileError(
            f"expected {what} with one number per voxel, found values of type {stored.dtype}; "
            f"save it as numbers",
            path=path,
        )
    # x first in the file, last here; the fastest axis stays the fastest.
    values = np.ascontiguousarray(stored.T)
    sizes = values.shape
    kept = [axis for axis in range(stored.ndim) if sizes[axis] != 1 or _is_plane(axis, sizes)]
    spacing = [zooms[stored.ndim - 1 - axis] * unit for axis in kept if stored.ndim - 1 - axis < 3]
    is_told = len(spacing) >= 2 and all(math.isfinite(s) and s > 0 for s in spacing)
    return Volume(
        values.reshape([sizes[axis] for axis in kept]),
        path,
        spacing_mm=tuple(spacing) if is_told else None,
        affine=np.asarray(image.affine, np.float64),
        is_nifti=True,
    )


def _scaled(image: Any) -> NDArray[Any]:
    """Return the values of a NIfTI image, in the precision of their scale factors.

    A slope of 0.01 in single precision is 0.0099999998, by which 70 would be
    0.69999998 in double precision and not reach the level 0.7. So the slope is taken for the
    simplest fraction that rounds to it, and values are rounded to its precision.
    """
    slope, intercept = image.dataobj.slope, image.dataobj.inter
    stored = np.asanyarray(image.dataobj.get_unscaled())
    if (slope, intercept) == (1.0, 0.0) or stored.dtype.kind not in "iu":
        return np.asanyarray(image.dataobj)
    precision = image.header["scl_slope"].dtype.newbyteorder("=").type
    (slope, whole), (intercept, parts) = (
        _simplest(value, precision).as_integer_ratio() for value in (slope, intercept)
    )
    values = stored.astype(np.float64) * slope / whole + intercept / parts
    scaled: NDArray[Any] = values.astype(precision)
    return scaled


def _simplest(value: float, precision: type[np.floating[Any]]) -> Fraction:
    """Return the simplest of the fractions with up to 12 digits that round to a number."""
    exact = Fraction(value)
    simpler = (exact.limit_denominator(10**digits) for digits in range(1, 13))
    return next((f for f in simpler if precision(f) == precision(value)), exact)


def _is_plane(axis: int, sizes: tuple[int, ...]) -> bool:
    """Return whether an axis is one of the last two, which an image cannot do without."""
    return axis >= len(sizes) - 2


def _read_tiff(path: Path, what: str) -> Volume:
    with open_tiff(path) as tiff:
        series = tiff_series(tiff)
        _check_voxels(series.shape, path, what)
        check_complete(path, tiff)
        for page in filter(None, series.pages):
            check_segments(path, page.aspage())
        is_colour = series.axes.endswith("S") and series.shape[-1] in (3, 4)
        with foreign_decoder():
            values = series.asarray()
    values = _flat(values, is_colour)
    n_axes = values.ndim - is_colour
    um = [distance for distance in imagej_spacing_um(path)[-n_axes:] if distance is not None]
    spacing_mm = tuple(distance / 1000 for distance in um)
    is_stated = n_axes in SPATIAL and len(um) == n_axes
    return Volume(values, path, is_colour, spacing_mm if is_stated else None)


def _read_npy(path: Path, what: str) -> Volume:
    mapped = map_npy(path, what)
    _check_voxels(mapped.shape, path, what)
    return Volume(_flat(np.array(mapped), False), path)


def _read_picture(path: Path, what: str) -> Volume:
    with open_picture(path) as image:
        _check_voxels((image.height, image.width), path, what)
        with foreign_decoder():
            if image.mode in ("P", "PA", "CMYK", "YCbCr", "LAB", "HSV", "LA"):
                values = np.asarray(image.convert("L" if image.mode == "LA" else "RGB"))
            else:
                values = np.asarray(image)
    if values.dtype.kind == "i" and values.min(initial=0) >= 0:
        values = values.astype(np.uint16 if values.max(initial=0) < 1 << 16 else np.uint32)
    return Volume(values, path, is_colour=values.ndim == 3)


def _flat(values: NDArray[Any], is_colour: bool) -> NDArray[Any]:
    """Drop axes of length one, but never rows and columns."""
    if values.ndim < 2:
        raise ValueError(f"an array of shape {values.shape} is no image")
    spatial = values.ndim - (3 if is_colour else 2)
    axes = tuple(axis for axis in range(spatial) if values.shape[axis] == 1)
    return values.squeeze(axis=axes)


def _check_voxels(shape: tuple[int, ...], path: Path, what: str) -> None:
    voxels = math.prod(int(size) for size in shape)
    if voxels > LARGEST_VOXELS:
        raise UnreadableFileError(
            f"expected {what} of at most {LARGEST_VOXELS:,} voxels, found {shape_text(shape)}; "
            f"crop it, or save it at a lower resolution",
            path=path,
        )
    if voxels == 0:
        raise UnreadableFileError(f"expected {what}, found an image without a voxel", path=path)


def _without_colour(volume: Volume, what: str) -> Volume:
    """Take one channel of a picture that is grey in three; refuse real colours."""
    if volume.is_colour:
        first = volume.values[..., 0]
        others = volume.values[..., 1:3]
        if not (others == first[..., None]).all():
            raise UnreadableFileError(
                f"expected {what} with one number per pixel, found a picture in colours; save it "
                f"in grey",
                path=volume.path,
            )
        volume = replace(volume, values=np.ascontiguousarray(first), is_colour=False)
    if volume.values.ndim not in SPATIAL:
        raise UnreadableFileError(
            f"expected {what} of two or three dimensions, found {shape_text(volume.values.shape)}",
            path=volume.path,
        )
    return volume


def _not_binary(path: Path, what: str, found: str) -> UnreadableFileError:
    return UnreadableFileError(
        f"{what} must be binary, 0 and one other value; found {found}. Save it without "
        f"interpolation, one structure per file",
        path=path,
    )


def _no_probability(path: Path, what: str, found: str) -> UnreadableFileError:
    return UnreadableFileError(
        f"{what} must hold probabilities from 0 to 1; found {found}. Save probabilities, not "
        f"scores or labels",
        path=path,
    )
