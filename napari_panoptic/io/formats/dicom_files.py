"""Read DICOM files with the optional package pydicom; recognise their kind without it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from napari_panoptic.io.files.guard import check_length
from napari_panoptic.io.pixels.decode import DECODING_ERRORS, foreign_decoder, without_warnings
from napari_panoptic.io.pixels.extras import import_extra

ANNOTATIONS = "1.2.840.10008.5.1.4.1.1.91.1"
"""Microscopy Bulk Simple Annotations."""
SEGMENTATIONS = ("1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7")
"""Segmentation, and Label Map Segmentation."""
SLIDE = "1.2.840.10008.5.1.4.1.1.77.1.6"
"""VL Whole Slide Microscopy Image."""
_TRANSFER_SYNTAXES = ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.5")
"""Little endian, and pixels in run lengths. Other syntaxes inflate to unknown sizes."""
_PREAMBLE = 128
_HEADER_BYTES = 1 << 12
_CLASS_ELEMENT = re.compile(rb"\x02\x00\x02\x00UI(..)([0-9.]+)", re.DOTALL)


def dicom_class(path: Path) -> str | None:
    """Return the SOP class of a file by its header; None if it is not a DICOM file."""
    with path.open("rb") as file:
        start = file.read(_HEADER_BYTES)
    if start[_PREAMBLE : _PREAMBLE + 4] != b"DICM":
        return None
    found = _CLASS_ELEMENT.search(start)
    return "" if found is None else found[2].decode()


def read_dicom(path: Path, what: str, classes: tuple[str, ...], *, with_pixels: bool = True) -> Any:
    """Read a DICOM file of one of the given SOP classes.

    Parameters
    ----------
    path
        The file.
    what
        The expected content, for errors.
    classes
        Identifiers of SOP classes.
    with_pixels
        Whether to read pixels as well.

    Returns
    -------
    pydicom.Dataset

    Raises
    ------
    UnreadableFileError
        If the file is too long.
    MissingPackageError
        If pydicom is not installed.
    ValueError
        If it is damaged, of another class, compressed as a whole or big-endian.
    """
    check_length(path, what)
    with decoding_dicom(path) as pydicom:
        dataset = pydicom.dcmread(path, stop_before_pixels=not with_pixels)
        found = str(dataset.get("SOPClassUID", "none"))
        syntax = str(dataset.file_meta.get("TransferSyntaxUID", "none"))
    if found not in classes:
        raise ValueError(f"its SOP class is {found[:80]}, not {classes[0]}")
    if syntax not in _TRANSFER_SYNTAXES:
        raise ValueError(
            f"its transfer syntax is {syntax[:80]}; save it uncompressed, as little endian"
        )
    return dataset


@contextmanager
def decoding_dicom(path: Path) -> Iterator[Any]:
    """Turn the errors of pydicom and highdicom into ValueError; datasets are decoded when used.

    Raises
    ------
    MissingPackageError
        If pydicom is not installed.
    """
    pydicom = import_dicom("pydicom", path)
    own = (pydicom.errors.InvalidDicomError, pydicom.errors.BytesLengthException)
    try:
        with without_warnings(), foreign_decoder():
            yield pydicom
    # highdicom keeps the places of frames in a database in memory.
    except (*DECODING_ERRORS, *own, sqlite3.Error) as error:
        raise ValueError(str(error)[:160] or type(error).__name__) from error


def import_dicom(package: str, path: Path) -> Any:
    """Import a package of the extra ``dicom``; see `import_extra`."""
    return import_extra(package, "dicom", path, "export GeoJSON or a label image")
