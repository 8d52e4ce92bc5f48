"""Objects of a region in the format of the files that they come from, at the same relative paths.

Only the files themselves are written, and the tables of their class numbers: a copy of the cohort
over which they are laid is read as before, with the new objects.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnwritableFileError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.replacing import replaced_when_complete, writing
from napari_panoptic.io.formats.class_numbers import type_info_of
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.labels.label_images import (
    AMBIGUOUS_SUFFIX,
    area_beside,
    images_and_tables,
    sidecars_beside,
)
from napari_panoptic.io.formats.labels.label_tiff import (
    class_table_text,
    smallest_type,
    write_labels,
)
from napari_panoptic.io.formats.registry import form_of
from napari_panoptic.io.formats.saving import without_erased
from napari_panoptic.io.pixels.decode import pixel_shape
from napari_panoptic.values.cohort import MaskFiles, MaskObjects, Source, Vertices
from napari_panoptic.values.labels import LabelImage

WHAT = "a label image"
_TIFF = (".tif", ".tiff")
_MASKED = ".tif"
"""Ending of label images that can have a mask of the excluded area beside them."""
_LARGEST_PNG_ID = np.iinfo(np.uint16).max


def why_not_writable(files: MaskFiles, root: Path) -> str:
    """Return why `write_like` cannot write objects in the format of files; empty if it can.

    Parameters
    ----------
    files
        The files that objects come from.
    root
        The folder of the cohort.
    """
    form, rules = form_of(files.source), files.rules
    if not all(path.is_relative_to(root) for path in files.object_paths):
        return "the files lie outside the cohort's folder"
    if files.item is not None:
        return "one file holds many regions"
    if files.patch is not None or rules.is_placed or rules.from_bounds:
        return "the files are not in px of the image"
    if files.source == Source.LABELS:
        return _why_not_labels(files)
    if form is None or form.write is None or form.outlines is None:
        return f"the format '{files.source}' cannot be written"
    if rules.vertices is Vertices.PIXEL_CENTRES:
        return "its outlines run through pixel centres, and are written along pixel edges"
    return ""


def write_like(files: MaskFiles, root: Path, folder: Path, objects: Objects) -> MaskFiles:
    """Write objects in the format of the files that they come from.

    Parameters
    ----------
    files
        These files; they do not change.
    root, folder
        The folder of the cohort, and the one in which the new files have the same relative paths.
    objects
        The objects to write.

    Returns
    -------
    MaskFiles
        The new files, to be read in the same way.

    Raises
    ------
    UnwritableFileError
        If they cannot be written, with the reason of `why_not_writable`.
    """
    if reason := why_not_writable(files, root):
        raise UnwritableFileError(
            f"the annotation cannot be written in its own format: {reason}; choose another format",
            path=files.object_paths[0] if files.object_paths else None,
            region=objects.region,
        )
    labels, original = without_erased(objects.labels), objects.original or files
    objects = replace(objects, labels=labels, original=original)

    def place(path: Path) -> Path:
        at = folder / path.relative_to(root)
        at.parent.mkdir(parents=True, exist_ok=True)
        return at

    with writing(folder):
        if files.source == Source.LABELS:
            written = _write_labels_like(files, root, place, objects)
        else:
            path, form = files.object_paths[0], form_of(files.source)
            table = type_info_of(path)
            if table is not None and table.is_relative_to(root):
                # Without it, the classes would be read differently.
                place(table).write_bytes(table.read_bytes())
            if form is not None and form.write is not None:
                form.write(place(path), objects)
            written = {"": (place(path),)}
    return replace(files, paths=written, within=None, probability=None)


# --- label images -----------------------------------------------------------------------------


def _why_not_labels(files: MaskFiles) -> str:
    if files.rules.objects is MaskObjects.PIECES:
        return "its objects are the pieces of a mask of classes"
    paths = [of_class[0] for of_class in files.paths.values() if of_class]
    endings = sorted({path.suffix.casefold() for path in paths} - _WRITERS.keys())
    if endings or any(path.is_dir() for path in paths):
        return f"label images ending in {english_list(endings or ['.zarr'])} cannot be written"
    has_channels = "" in files.paths and len(pixel_shape(paths[0], WHAT)) != 2
    if has_channels and paths[0].suffix.casefold() not in (*_TIFF, ".npy"):
        return f"arrays of channels ending in {paths[0].suffix} cannot be written"
    return ""


def _write_labels_like(
    files: MaskFiles, root: Path, place: Callable[[Path], Path], objects: Objects
) -> dict[str, tuple[Path, ...]]:
    if "" not in files.paths:
        return _write_per_class(files.paths, root, place, objects)
    (path, *_), stated = images_and_tables(files.paths[""])
    if len(shape := pixel_shape(path, WHAT)) == 2:
        return {"": (place(path), *_write_single(path, stated, place, objects))}
    _write_channels(place(path), shape, objects)
    return {"": (place(path),)}


def _write_single(
    path: Path, stated: list[Path], place: Callable[[Path], Path], objects: Objects
) -> list[Path]:
    """Write one label image, its table of classes, and the mask of the excluded area.

    Only a TIFF has such a mask beside it; another label image has the area as an object.
    """
    labels, area = objects.labels, objects.ambiguous
    image, ids = labels.id_image(), labels.ids.tolist()
    names = dict(zip(ids, labels.class_names_of_objects().tolist(), strict=True))
    scores = labels.scores.tolist()
    if path.suffix == _MASKED and (area is not None or area_beside(path) is not None):
        mask = np.zeros(labels.shape, np.uint8) if area is None else area.astype(np.uint8)
        write_labels(place(path.with_name(path.stem + AMBIGUOUS_SUFFIX)), mask)
    elif area is not None and area.any():
        number = max(ids, default=0) + 1
        image[area & (image == 0)] = number
        names[number] = objects.ambiguous_class
        scores.append(math.nan)
    _write_pixels(place(path), image)
    table = next(iter(stated), None) or next(sidecars_beside(path), None)
    if table is None and len(labels.class_names) > 1:
        table = path.with_suffix(".csv")
    if table is None:
        return []
    if table.suffix.casefold() == ".json":
        text = json.dumps({str(id_): name for id_, name in names.items()}, ensure_ascii=False)
    else:
        text = class_table_text(names.items(), scores)
    with replaced_when_complete(place(table)) as file:
        file.write(text.encode("utf-8"))
    return [place(table)] if stated else []


def _write_channels(path: Path, shape: tuple[int, ...], objects: Objects) -> None:
    """Write ids and class numbers, or the ids of each class in a channel, as in the file before."""
    labels, n_classes = objects.labels, len(objects.scheme.names)
    if objects.ambiguous is not None and objects.ambiguous.any():
        raise UnwritableFileError(
            "an array of channels has no place for an ambiguous area; choose another format",
            region=objects.region,
        )
    height_width = labels.shape
    is_first = shape[1:] == height_width and shape[:2] != height_width
    n_channels = shape[0] if is_first else shape[2]
    ids, numbers = labels.id_image(), np.concatenate([[0], labels.class_index])[labels.index]
    if n_channels == 2:
        channels = [ids, numbers]
    else:
        channels = [np.where(numbers == number, ids, 0) for number in range(1, n_classes + 1)]
        channels += [ids == 0] if n_channels > n_classes else []
    array = np.stack(channels, axis=0 if is_first else -1).astype(smallest_type(ids))
    if path.suffix.casefold() == ".npy":
        _write_npy(path, array)
        return
    import tifffile

    with replaced_when_complete(path) as file:
        tifffile.imwrite(file, array, photometric="minisblack", metadata=None)


def _write_per_class(
    paths: Mapping[str, tuple[Path, ...]],
    root: Path,
    place: Callable[[Path], Path],
    objects: Objects,
) -> dict[str, tuple[Path, ...]]:
    """Write a label image for each class, and one for the excluded area."""
    labels = objects.labels
    written: dict[str, tuple[Path, ...]] = {}
    images = {name: _of_class(labels, number) for number, name in enumerate(labels.class_names, 1)}
    if objects.scheme.ambiguous is not None and objects.ambiguous is not None:
        images[objects.scheme.ambiguous] = objects.ambiguous.astype(np.int64)
    for name, image in images.items():
        if name not in paths and not image.any():
            continue
        path = paths[name][0] if paths.get(name) else _path_of_class(name, paths, root, objects)
        _write_pixels(place(path), image)
        written[name] = (place(path),)
    return written


def _of_class(labels: LabelImage, number: int) -> NDArray[np.int64]:
    shown = np.where(labels.class_index == number, labels.ids, 0)
    image: NDArray[np.int64] = np.concatenate([[0], shown])[labels.index]
    return image


def _path_of_class(
    name: str, paths: Mapping[str, tuple[Path, ...]], root: Path, objects: Objects
) -> Path:
    """Return where the file of a class lies that has none yet, by the path of another class."""
    for other, (path, *_) in paths.items():
        within = str(path.relative_to(root))
        if other and other in within:
            return root / within.replace(other, name)
    raise UnwritableFileError(
        f"there is no file for objects of the class {name}; choose another format",
        region=objects.region,
    )


def _write_pixels(path: Path, image: NDArray[np.integer]) -> None:
    _WRITERS[path.suffix.casefold()](path, image)


def _write_npy(path: Path, image: NDArray[Any]) -> None:
    with replaced_when_complete(path) as file:
        np.save(file, image.astype(smallest_type(image)), allow_pickle=False)


def _write_png(path: Path, image: NDArray[np.integer]) -> None:
    from PIL import Image

    if int(image.max(initial=0)) > _LARGEST_PNG_ID:
        raise UnwritableFileError(
            f"a PNG holds ids up to {_LARGEST_PNG_ID}, found {int(image.max())}; choose another "
            f"format",
            path=path,
        )
    with replaced_when_complete(path) as file:
        Image.fromarray(image.astype(np.uint16)).save(file, format="png")


_WRITERS: Mapping[str, Callable[[Path, Any], None]] = {
    ".tif": write_labels,
    ".tiff": write_labels,
    ".npy": _write_npy,
    ".png": _write_png,
}
"""Ending of a label image -> the function that writes it."""
