"""Label images within other files: NPZ archives of numpy, and the ``_seg.npy`` of Cellpose."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.guard import BYTES_PER_PX, check_length, check_pixels, largest_px
from napari_panoptic.io.pixels.inert_pickle import inert_array, inert_item, inert_value

NPZ_MAGIC = b"PK\x03\x04"
LABEL_NAMES = ("labels", "label", "masks", "mask", "instances", "inst_map", "instance_map")
"""Names of the label image in an archive of several arrays."""
MASKS = "masks"
"""The key of the label image in a file of Cellpose."""
_LONGEST_HEADER = 128


def is_npz(path: Path) -> bool:
    """Return whether this is an archive, by its first bytes."""
    with path.open("rb") as file:
        return file.read(len(NPZ_MAGIC)) == NPZ_MAGIC


def holds_objects(path: Path) -> bool:
    """Return whether an NPY file holds pickled objects instead of numbers."""
    with path.open("rb") as file:
        return b"'descr': '|O'" in file.read(_LONGEST_HEADER)


def npz_shape(path: Path, what: str) -> tuple[int, ...]:
    """Return the shape of the label image in an archive, as `npz_labels` finds it."""
    with zipfile.ZipFile(path) as archive:
        return _member(archive, path, what)[1]


def npz_labels(path: Path, what: str) -> NDArray[Any]:
    """Return the label image in an NPZ archive: its only array, or the one that is called so.

    Raises
    ------
    UnreadableFileError
        If there is no such array, several are called so, or it is too large.
    """
    with zipfile.ZipFile(path) as archive:
        name, shape, dtype = _member(archive, path, what)
        check_pixels(shape, dtype.itemsize, path=path, what=what)
        with archive.open(name) as file:
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return array


def _member(
    archive: zipfile.ZipFile, path: Path, what: str
) -> tuple[str, tuple[int, ...], np.dtype[Any]]:
    """Find the label image in an archive, and return its file, shape and type."""
    names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    found = names if len(names) == 1 else [name for name in names if name in LABEL_NAMES]
    if len(found) != 1:
        raise UnreadableFileError(
            f"expected {what} as the only array of an NPZ file, or as one called labels or masks; "
            f"found {english_list(names) or 'no array'}. Save the label image by itself",
            path=path,
        )
    with archive.open(f"{found[0]}.npy") as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"its array has the version {version}")
        formats = np.lib.format
        is_first = version == (1, 0)
        read = formats.read_array_header_1_0 if is_first else formats.read_array_header_2_0
        shape, _, dtype = read(file)
    if dtype.hasobject:
        raise objects_refused(path, what)
    return f"{found[0]}.npy", shape, dtype


def masks_of_cellpose(path: Path, what: str) -> NDArray[Any]:
    """Return the masks in a ``_seg.npy``, of whose pickle nothing is run.

    Raises
    ------
    UnreadableFileError
        If it holds other objects.
    """
    check_length(path, what, largest_px() * BYTES_PER_PX)
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            table = inert_item(inert_value(file.read()))
        masks = inert_array(table[MASKS])
    except (ValueError, LookupError, TypeError) as error:
        raise objects_refused(path, what) from error
    if masks is None:
        raise objects_refused(path, what)
    check_pixels(masks.shape, masks.dtype.itemsize, path=path, what=what)
    return masks


def objects_refused(path: Path, what: str) -> UnreadableFileError:
    """Return the error for pickled objects that are no masks of Cellpose."""
    return UnreadableFileError(
        f"expected {what}, found pickled Python objects, which can run programs and are not "
        f"opened (only the masks in a _seg.npy of Cellpose are read); save the array in it by "
        f"itself with numpy.save, or export the masks as PNG or TIFF",
        path=path,
    )
