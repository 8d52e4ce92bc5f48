"""Makes a format of a function that returns what a mask file says: numbers, and their classes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.formats.class_numbers import TYPE_INFO, ClassNumbers, tables_beside
from napari_panoptic.io.formats.class_tables import ClassTable
from napari_panoptic.io.formats.format import Format, OpenRequest, PerClass, TiledMasks
from napari_panoptic.io.formats.labels.masks import extra_files
from napari_panoptic.io.formats.labels.planes import (
    ClassObjects,
    Plane,
    flattened,
    objects_of_table,
)
from napari_panoptic.io.formats.reading import note, reading, refuse
from napari_panoptic.io.pixels.decode import check_size
from napari_panoptic.io.pixels.label_windows import TiledPixels
from napari_panoptic.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.values.windowed_labels import TiledArea

Shape = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Numbered:
    """What a file says: a number per pixel, and the class of each number."""

    #: Image (y, x) of non-negative numbers, 0 for background; `TiledPixels` if it can be read in
    #: windows.
    numbers: NDArray[np.integer[Any]] | TiledPixels
    #: Number -> class as the file spells it, see `ClassNumbers.of`; None if it states none.
    entries: Mapping[int, Hashable]
    #: bool (y, x), True where the file marks an excluded area; None if it marks none.
    excluded: NDArray[np.bool_] | None = None


def mask_format(
    *,
    what: str,
    read: Callable[[Path, str | None, ClassNumbers], Numbered],
    size: Callable[[Path, str | None], tuple[int, ...] | None],
    pixels: Callable[[Path, str | None], Path] = lambda path, _: path,
    has_numbers: bool = True,
    **fields: Any,
) -> Format:
    """Return the format of files that hold all objects of a region.

    The file and its size are checked before it is read; errors of decoders refuse it. Objects of
    unknown classes are left out and reported.

    Parameters
    ----------
    what
        What such a file is, for errors.
    read
        Returns the content of a file, or of the region with a key in it; see `FileItem`. Class
        entries are looked up afterwards.
    size
        Returns the shape without reading the pixels, None if it is not stated.
    pixels
        Returns the file of the pixels, if it is another one than that which lists the objects.
    has_numbers
        Whether classes can be numbers, and a table beside the file names them.
    fields
        Further fields of the format.
    """

    def stated(path: Path, item: str | None) -> Shape | None:
        with reading(path, what):
            return _plane(size(path, item))

    def opened(files: MaskFiles, scheme: ClassScheme, request: OpenRequest) -> TiledMasks:
        path = files.all_paths[0]
        of_pixels = pixels(path, files.item)
        with reading(path):
            if found := stated(path, files.item):
                check_size(found, request.shape, path=of_pixels)
            classes = ClassNumbers(path if has_numbers else None, scheme)
            with reading(path, what):
                content = read(path, files.item, classes)
            names = {id_: classes.name_of(entry) for id_, entry in content.entries.items()}
            note(*classes.findings(path))
            check_size(content.numbers.shape, request.shape, path=of_pixels)
            plane = Plane.of(content.numbers, of_pixels, "the label image")
            masks = objects_of_table(plane, ClassTable.of_names(names), scheme)
            if files.item is None:
                others = tuple(file for file in files.object_paths if file.name != TYPE_INFO)
                note(*extra_files("all classes", others))
        if content.excluded is None:
            return masks
        return replace(
            masks, ambiguous=TiledArea.of_image(content.excluded).joined(masks.ambiguous)
        )

    def shape(files: MaskFiles) -> Shape | None:
        return stated(files.all_paths[0], files.item)

    if has_numbers:
        fields["companions"] = tables_beside
    return Format(open=opened, shape=shape, **fields)


def class_masks_format(
    *,
    what: str,
    read: Callable[[Path, str, Shape | None], ClassObjects],
    size: Callable[[Path, str], tuple[int, ...]],
    **fields: Any,
) -> Format:
    """Return the format of masks of one class each; other parameters as in `mask_format`.

    A class without a file has no objects. If any file cannot be read, the whole region
    cannot: its objects would count as FN although they may have been found.

    Parameters
    ----------
    read
        Returns the objects of a class, in a mask of the size of the region, None if it is unknown.
    size
        Returns the shape of the mask of a class without reading its pixels.
    """

    def opened(files: MaskFiles, scheme: ClassScheme, request: OpenRequest) -> TiledMasks:
        shape, own = request.shape, dict[str, ClassObjects]()
        for name, paths in files.paths.items():
            if paths and name in scheme.names:
                note(*extra_files(name, paths))
                with reading(paths[0], what):
                    own[name] = read(paths[0], name, shape)
                # All masks of a region have one size, even if it is not known beforehand.
                shape = shape or own[name].plane.shape
            elif paths:
                note(_unscored(name, paths))
        if shape is None:
            raise refuse(
                "there is no mask of a class for this region, and neither its image nor another "
                "mask states its size; add the image"
            )
        return flattened(own, shape, scheme)

    def shape(files: MaskFiles) -> Shape | None:
        for name, paths in files.paths.items():
            for path in paths[:1]:
                with reading(path, what):
                    if plane := _plane(size(path, name)):
                        return plane
        return None

    return Format(open=opened, shape=shape, per_class=PerClass.ALWAYS, **fields)


def _unscored(name: str, paths: tuple[Path, ...]) -> Finding:
    message = f"'{name}' is not a scored class: its file was not read"
    return Finding(FindingKind.EXTRA, message, path=paths[0], class_name=name, count=len(paths))


def _plane(shape: tuple[int, ...] | None) -> Shape | None:
    match shape:
        case (height, width) if height and width:
            return height, width
    return None
