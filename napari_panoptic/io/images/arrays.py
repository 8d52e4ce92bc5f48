"""NPY arrays of many regions: image, row, column, channel, as PanNuke and CoNIC have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.files.guard import check_file
from napari_panoptic.io.pixels.decode import file_kind, map_npy

IMAGES_WHAT = "images (an NPY array: image, row, column, colour)"


def opened_array(path: Path, what: str) -> NDArray[Any]:
    """Map an NPY array, without reading it.

    Raises
    ------
    UnreadableFileError
        If it is not valid.
    """
    check_file(path, what)
    if file_kind(path) != "npy":
        raise UnreadableFileError(f"expected {what}, found a file of another form", path=path)
    array = map_npy(path, what)
    if array.ndim == 0:
        raise UnreadableFileError(f"expected {what}, found a single value", path=path)
    return array


def region_of(path: Path, item: str | None, what: str, channels: int | None = None) -> NDArray[Any]:
    """Map one region (y, x, channel) of an array of four dimensions.

    Parameters
    ----------
    path
        The array.
    item
        The number of the region; None for the first.
    what
        The expected content, for errors.
    channels
        The number of channels; None for any.

    Raises
    ------
    UnreadableFileError
        If it is no such array, or has fewer regions.
    """
    array = opened_array(path, what)
    if array.ndim != 4 or (channels is not None and array.shape[3] != channels):
        last = "" if channels is None else f", the last one {channels} long"
        raise UnreadableFileError(
            f"expected {what}: four dimensions{last}; found an array of shape {array.shape}",
            path=path,
        )
    index = int(item or 0)
    if not 0 <= index < len(array):
        raise UnreadableFileError(
            f"expected at least {index + 1} regions, found {len(array)}: the file was changed; "
            f"open the cohort again",
            path=path,
        )
    region: NDArray[Any] = array[index]
    return region


def holds_many_images(path: Path) -> bool:
    """Return whether this is an array of many images; False for what cannot be read."""
    if path.suffix.casefold() != ".npy":
        return False
    try:
        return opened_array(path, IMAGES_WHAT).ndim == 4
    except UnreadableFileError:
        return False


def image_shape(path: Path, item: str) -> tuple[int, int]:
    """Return height and width of one image of an array, without reading it."""
    height, width = region_of(path, item, IMAGES_WHAT).shape[:2]
    return height, width


def read_array_image(path: Path, item: str) -> NDArray[Any]:
    """Read one image (y, x, channel) of an array; whole numbers up to 255 as uint8.

    The distribution of PanNuke has them as float64.

    Raises
    ------
    UnreadableFileError
        If it cannot be read.
    """
    pixels = region_of(path, item, IMAGES_WHAT)
    if pixels.dtype != np.uint8 and pixels.dtype.kind in "iuf":
        with np.errstate(invalid="ignore"):
            narrow = pixels.astype(np.uint8)
        if np.array_equal(narrow, pixels):
            return narrow
    return np.array(pixels)
