"""A mask image for each nucleus, as the Data Science Bowl 2018 has them: ``REGION/masks/*.png``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.io.formats.class_numbers import ClassNumbers
from napari_panoptic.io.formats.format import Format, LoadedMasks, OpenRequest, PerClass
from napari_panoptic.io.formats.reading import note, refuse
from napari_panoptic.io.pixels.decode import check_size, pixel_shape, read_pixels
from napari_panoptic.values.cohort import ClassScheme, MaskFiles, Source
from napari_panoptic.values.labels import LabelImage

WHAT = "the mask of one nucleus"


def open_files(files: MaskFiles, scheme: ClassScheme, request: OpenRequest) -> LoadedMasks:
    """Read the nuclei of one region: ids are the places of their files, in natural order.

    Every pixel above 0 belongs to the nucleus, also where it is of several pieces. The class is
    that of the files, else the only one, or the one with the alias ``""``; files of the ambiguous
    class are excluded areas. A later nucleus lies over an earlier one.

    Raises
    ------
    UnreadableFileError
        If a file cannot be read or has another size, or the class is not known.
    """
    shape = request.shape or files_shape(files)
    if shape is None:
        raise refuse("expected masks of nuclei, found none")
    index, area = np.zeros(shape, np.int32), np.zeros(shape, np.bool_)
    classes: dict[int, str] = {}
    shared: set[int] = set()
    for name, paths in files.paths.items():
        class_name = name or _only_class(scheme, paths[0])
        for path in paths:
            is_filled = _filled(path, shape)
            if class_name == scheme.ambiguous:
                area |= is_filled
                continue
            number = len(classes) + 1
            classes[number] = class_name
            below = np.unique(index[is_filled])
            shared.update(below[below > 0].tolist())
            index[is_filled] = number
    labels = LabelImage.from_array(index, classes, scheme.names)
    lost = tuple(sorted(set(classes) - set(labels.ids.tolist())))
    for kind, what, ids in (
        (FindingKind.OVERLAPPING, "nuclei lie partly below another", tuple(sorted(shared))),
        (FindingKind.VANISHED, "masks have no pixel of their own", lost),
    ):
        if ids:
            message, folder = f"{len(ids)} {what}: {english_list(ids)}", files.all_paths[0].parent
            note(Finding(kind, message, path=folder, count=len(ids), object_ids=ids))
    return LoadedMasks(labels, area if area.any() else None)


def files_shape(files: MaskFiles) -> tuple[int, int] | None:
    """Return height and width in px from the header of the first file."""
    for path in files.object_paths[:1]:
        height, width = pixel_shape(path, WHAT)[:2]
        return height, width
    return None


def _only_class(scheme: ClassScheme, path: Path) -> str:
    if name := ClassNumbers(None, scheme).name_of(None):
        return name
    raise UnreadableFileError(
        "masks of nuclei state no class, and the cohort has several: add {class} to their "
        'pattern in cohort.toml, or "" = "CLASS" under [aliases]',
        path=path,
    )


def _filled(path: Path, shape: tuple[int, int]) -> NDArray[np.bool_]:
    pixels = read_pixels(path, WHAT, colour=False)
    check_size(pixels.shape, shape, path=path, what=WHAT)
    if pixels.ndim == 3:  # without the opacity
        pixels = pixels[..., : 3 if pixels.shape[2] > 2 else 1].max(axis=2)
    is_filled: NDArray[np.bool_] = pixels > 0
    return is_filled


FORMAT = Format(
    name=Source.NUCLEUS_MASKS,
    title="One mask image per nucleus",
    open=open_files,
    shape=files_shape,
    per_class=PerClass.EITHER,
)
