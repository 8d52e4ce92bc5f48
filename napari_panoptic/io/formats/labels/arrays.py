"""Arrays of the masks of many regions: those of PanNuke and CoNIC."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.lib.format import dtype_to_descr, write_array_header_1_0
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError, UnwritableFileError
from napari_panoptic.common.findings import Finding
from napari_panoptic.io.files.stated_names import checked_name
from napari_panoptic.io.formats.class_numbers import ClassNumbers
from napari_panoptic.io.formats.format import FileItem, Format, Objects, OpenRequest, TiledMasks
from napari_panoptic.io.formats.labels.label_images import (
    check_background_is_last,
    masks_from_channels,
    masks_from_class_numbers,
)
from napari_panoptic.io.formats.labels.masks import extra_files, whole_numbers
from napari_panoptic.io.formats.reading import note, reading
from napari_panoptic.io.images.arrays import opened_array, region_of
from napari_panoptic.io.pixels.decode import check_size
from napari_panoptic.io.tables.csv_tables import read_rows
from napari_panoptic.kernels.relabel import split_channels
from napari_panoptic.values.cohort import ClassScheme, MaskFiles, Source
from napari_panoptic.values.labels import size_text
from napari_panoptic.values.windowed_labels import TiledArea

PANNUKE_WHAT = "masks of PanNuke (an NPY array: image, row, column, class)"
CONIC_WHAT = "labels of CoNIC (an NPY array: image, row, column, ids and classes)"
REGIONS_TABLE = "regions.csv"
"""Beside an array: the name of each region, and its patient."""
AREAS = "ambiguous.npy"
"""Beside an array: the excluded areas, bool (n, y, x)."""
_TYPES = "types.npy"
_TYPES_WHAT = "types of PanNuke (an NPY array of texts)"
_PATCHES = "patch_info.csv"

_HIGHEST_ID = np.iinfo(np.int32).max


def array_items(path: Path) -> Iterator[FileItem]:
    """List the regions of an array, by their numbers from 0000.

    A file ``regions.csv`` beside the array may give them other names (column
    region) and patients (column patient). Else ``types.npy`` (PanNuke: the tissue)
    or ``patch_info.csv`` (CoNIC: ``patient-number``) there give the patients.

    Raises
    ------
    UnreadableFileError
        If a file is no array of regions, or a table has another length.
    """
    count = len(opened_array(path, "an array of regions"))
    names, patients, tables = _names_and_patients(path.parent, count)
    if (areas := path.with_name(AREAS)).is_file():
        tables = (*tables, areas)
    for index, (name, patient) in enumerate(zip(names, patients, strict=True)):
        yield FileItem(name, str(index), patient, tables)


def _names_and_patients(
    folder: Path, count: int
) -> tuple[list[str], list[str | None], tuple[Path, ...]]:
    """Return the name and the patient of each region, and the table that names them."""
    width = max(4, len(str(count - 1)))
    numbers = [f"{index:0{width}d}" for index in range(count)]
    if (table := folder / REGIONS_TABLE).is_file():
        rows = _rows(table, "region", count)
        names = [row["region"] for row in rows]
        if len(set(map(str.casefold, names))) < count or not all(names):
            raise UnreadableFileError(
                "expected a different name of a region in every row, found some empty or repeated",
                path=table,
            )
        patients = [row.get("patient", "") for row in rows]
        return _checked_names(names, "a region", table), _patients(patients, table), (table,)
    if (types := folder / _TYPES).is_file():
        tissues = opened_array(types, _TYPES_WHAT)
        _check_count(tissues.size, count, types)
        return numbers, _patients(_texts(tissues, types), types), (types,)
    if (patches := folder / _PATCHES).is_file():
        rows = _rows(patches, "patch_info", count)
        patients = [row["patch_info"].rpartition("-")[0] for row in rows]
        return numbers, _patients(patients, patches), (patches,)
    return numbers, [None] * count, ()


def _patients(names: Sequence[str], path: Path) -> list[str | None]:
    """Return the names of patients, None for empty ones."""
    _checked_names([name for name in names if name], "a patient", path)
    return [name or None for name in names]


def _checked_names(names: list[str], what: str, path: Path) -> list[str]:
    try:
        return [checked_name(name, what) for name in names]
    except ValueError as error:
        raise UnreadableFileError(f"{error}; correct it", path=path) from error


def _texts(array: NDArray[Any], path: Path) -> list[str]:
    """Return the texts of an array, which may be bytes or whole numbers, too."""
    if array.dtype.kind not in "USiu":
        raise UnreadableFileError(
            f"expected {_TYPES_WHAT}, found an array of the type {array.dtype}", path=path
        )
    values = array.ravel().tolist()
    texts = (each.decode("utf-8", "replace") if type(each) is bytes else each for each in values)
    return [str(text).strip() for text in texts]


def _rows(path: Path, column: str, count: int) -> list[dict[str, str]]:
    rows = [row for _, row in read_rows(path, "a table of regions", (column,))]
    _check_count(len(rows), count, path)
    return rows


def _check_count(found: int, expected: int, path: Path) -> None:
    if found != expected:
        raise UnreadableFileError(
            f"expected a row for each of the {expected} regions of the array beside it, "
            f"found {found}",
            path=path,
        )


def open_pannuke(files: MaskFiles, scheme: ClassScheme, request: OpenRequest) -> TiledMasks:
    """Read a region of an array (n, y, x, C + 1): ids in a channel per class, then background."""

    def read(path: Path) -> TiledMasks:
        pixels = _narrow(region_of(path, files.item, PANNUKE_WHAT, len(scheme.names) + 1))
        check_background_is_last(pixels)
        numbers = _checked(pixels[..., :-1], path, request.shape)
        return masks_from_channels(numbers, path, scheme, may_be_binary=False)

    return _opened(read, files)


def open_conic(files: MaskFiles, scheme: ClassScheme, request: OpenRequest) -> TiledMasks:
    """Read a region of an array (n, y, x, 2): ids, and class numbers from 1."""

    def read(path: Path) -> TiledMasks:
        numbers = _checked(region_of(path, files.item, CONIC_WHAT, 2), path, request.shape)
        return masks_from_class_numbers(numbers, path, scheme, may_be_binary=False)

    return _opened(read, files)


def _narrow(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return pixels (y, x, channel) as int32, each channel contiguous; as they are if they differ.

    Every channel is then checked and numbered without reading the others.
    """
    if pixels.dtype.kind not in "iuf":
        return pixels
    if pixels.dtype == np.float64 and pixels.flags.c_contiguous:  # as PanNuke is distributed
        channels = split_channels(pixels)
        return pixels if channels is None else np.moveaxis(channels, 0, -1)
    with np.errstate(invalid="ignore"):
        narrow = pixels.astype(np.int32)
    if not np.array_equal(narrow, pixels):
        return pixels
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(narrow, -1, 0)), 0, -1)


def _checked(
    pixels: NDArray[Any], path: Path, shape: tuple[int, int] | None
) -> NDArray[np.integer]:
    check_size(pixels.shape, shape, path=path)
    return whole_numbers(pixels, path=path, what="the masks")


def _opened(read: Callable[[Path], TiledMasks], files: MaskFiles) -> TiledMasks:
    with reading(files.all_paths[0]):
        masks = read(files.all_paths[0])
        tables = (REGIONS_TABLE, AREAS, _TYPES, _PATCHES)
        arrays = tuple(path for path in files.object_paths if path.name not in tables)
        note(*extra_files("all classes", arrays))
        return replace(masks, ambiguous=_area_of(files, masks.labels.shape))


def _area_of(files: MaskFiles, shape: tuple[int, int]) -> TiledArea | None:
    """Read the excluded area of a region; return None if there is none."""
    path = next((path for path in files.all_paths if path.name == AREAS), None)
    if path is None:
        return None
    array = opened_array(path, "excluded areas (an NPY array: image, row, column)")
    index = int(files.item or 0)
    if array.ndim != 3 or index >= len(array) or array.dtype.kind not in "biuf":
        raise UnreadableFileError(
            f"expected excluded areas of as many regions as the array beside it has, found an "
            f"array of shape {array.shape} and type {array.dtype}",
            path=path,
        )
    check_size(array.shape[1:], shape, path=path, what="the excluded area")
    return TiledArea.of_image(np.array(array[index]) > 0)


def write_pannuke(folder: Path, count: int, regions: Iterable[Objects]) -> tuple[Finding, ...]:
    """Write ``masks.npy`` as PanNuke has it, with the names of the regions beside it.

    Raises
    ------
    UnwritableFileError
        If the regions have different sizes.
    """

    def channels(objects: Objects) -> NDArray[np.int32]:
        names, ids = objects.scheme.names, objects.labels.id_image()
        numbers = np.concatenate([[0], objects.labels.class_index])[objects.labels.index]
        masks = np.zeros((*ids.shape, len(names) + 1), np.int32)
        for number in range(1, len(names) + 1):
            masks[..., number - 1] = np.where(numbers == number, ids, 0)
        masks[..., -1] = ids == 0
        return masks

    return _write_arrays(folder, "masks.npy", count, regions, channels)


def write_conic(folder: Path, count: int, regions: Iterable[Objects]) -> tuple[Finding, ...]:
    """Write ``labels.npy`` as CoNIC has it, with the names of the regions beside it.

    Raises
    ------
    UnwritableFileError
        If the regions have different sizes, or no number is read as a class of theirs.
    """
    path = folder / "labels.npy"
    numbers = np.zeros(0, np.int64)

    def channels(objects: Objects) -> NDArray[np.int32]:
        nonlocal numbers
        if not len(numbers):  # all regions have one scheme
            entries = ClassNumbers(path, objects.scheme).written()
            numbers = np.array([0, *(n if isinstance(n, int) else 0 for n in entries)])
        of_object = numbers[objects.labels.class_index]
        if not of_object.all():
            name = objects.labels.class_names_of_objects()[of_object == 0][0]
            raise UnwritableFileError(
                f"CoNIC arrays have a number for each class, and no number is read as {name}; "
                f"choose another format",
                region=objects.region,
            )
        image = np.concatenate([[0], of_object])[objects.labels.index]
        return np.stack([objects.labels.id_image(), image], axis=-1).astype(np.int32)

    return _write_arrays(folder, path.name, count, regions, channels)


def _write_arrays(
    folder: Path,
    name: str,
    count: int,
    regions: Iterable[Objects],
    channels: Callable[[Objects], NDArray[np.int32]],
) -> tuple[Finding, ...]:
    array, areas = _ArrayFile(folder / name, count), _ArrayFile(folder / AREAS, count)
    rows = []
    has_areas = False
    with array, areas:
        for objects in regions:
            highest = int(objects.labels.ids.max(initial=0))
            if highest > _HIGHEST_ID:
                raise UnwritableFileError(
                    f"arrays of regions have ids up to {_HIGHEST_ID}, found {highest} in region "
                    f"{objects.region}; choose another format"
                )
            pixels = channels(objects)
            if pixels.shape != (array.region_shape or pixels.shape):
                raise UnwritableFileError(
                    f"an array has regions of one size only: expected "
                    f"{size_text(array.region_shape)}, found {size_text(pixels.shape)} in region "
                    f"{objects.region}; choose another format"
                )
            array.append(pixels)
            area = objects.ambiguous
            has_areas |= area is not None
            areas.append(np.zeros(pixels.shape[:2], np.bool_) if area is None else area)
            rows.append((objects.region, objects.patient))
    if not has_areas:
        (folder / AREAS).unlink()
    with (folder / REGIONS_TABLE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("region", "patient"), *rows])
    return ()


class _ArrayFile:
    """An NPY file that is written region by region.

    It is not mapped: writing to a mapped file on a full disk kills the process (SIGBUS), and an
    ordinary write raises an error.
    """

    def __init__(self, path: Path, count: int) -> None:
        self._path, self._count = path, count
        self.region_shape: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, region: NDArray[Any]) -> None:
        if not self.region_shape:
            self.region_shape = region.shape
            header = {
                "descr": dtype_to_descr(region.dtype),
                "fortran_order": False,
                "shape": (self._count, *region.shape),
            }
            write_array_header_1_0(self._file, header)
        self._file.write(np.ascontiguousarray(region).data)


def files_shape(files: MaskFiles) -> tuple[int, int] | None:
    """Return height and width in px of the regions of an array."""
    what = PANNUKE_WHAT if files.source == Source.PANNUKE else CONIC_WHAT
    array = opened_array(files.all_paths[0], what)
    return (array.shape[1], array.shape[2]) if array.ndim == 4 else None


PANNUKE = Format(
    name=Source.PANNUKE,
    title="PanNuke arrays",
    open=open_pannuke,
    shape=files_shape,
    items=array_items,
    write_all=write_pannuke,
)
CONIC = Format(
    name=Source.CONIC,
    title="CoNIC arrays",
    open=open_conic,
    shape=files_shape,
    items=array_items,
    write_all=write_conic,
)
