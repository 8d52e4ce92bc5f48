"""Label images (TIFF, PNG, NPY, NPZ, Zarr): one number per object, with a table of classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted
from napari_panoptic.io.files.guard import check_pixels, has_file
from napari_panoptic.io.formats.class_numbers import ClassNumbers
from napari_panoptic.io.formats.class_tables import ClassTable, read_class_table
from napari_panoptic.io.formats.format import OpenRequest, TiledMasks
from napari_panoptic.io.formats.labels.masks import (
    extra_files,
    most_frequent_classes,
    whole_numbers,
)
from napari_panoptic.io.formats.labels.ome_zarr import AMBIGUOUS_LABEL, label_classes, label_scores
from napari_panoptic.io.formats.labels.planes import (
    ClassObjects,
    Plane,
    class_objects,
    flattened,
    objects_of_table,
)
from napari_panoptic.io.formats.reading import note, reading, refuse
from napari_panoptic.io.pixels.decode import check_exact, check_size, pixel_shape, read_pixels
from napari_panoptic.io.pixels.label_windows import (
    absent_chunks,
    is_zarr,
    open_pixels,
    zarr_areas,
)
from napari_panoptic.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.values.labels import checked_array, compact
from napari_panoptic.values.windowed_labels import TiledArea, if_any

WHAT = "a label image (one positive number per object)"
SIDECAR_SUFFIXES = (".csv", ".json")
"""Endings of tables of classes beside a label image of the same stem."""

MOST_CLASS_NUMBERS = 100
"""A channel with more different numbers than this holds no class numbers."""
_MOST_DIFFERING = 0.01
"""Largest share of background pixels that may overlap an object or be missing."""
AMBIGUOUS_SUFFIX = "_ambiguous.tif"
"""Ending of the mask of the ambiguous area beside a label image of the same stem."""


def open_labels(files: MaskFiles, scheme: ClassScheme, request: OpenRequest) -> TiledMasks:
    """Open the label images of one region.

    These are read:

    - one file per class (under each class name), the ambiguous class included:
      any positive number there marks an excluded area;
    - one file (under the key ``""``), 2-D, with a sidecar that gives the class of
      each id: ``<stem>.csv`` with the columns id and class, or ``<stem>.json``
      with ``{id: class}``, or a file with such an ending among the paths; a
      CSV file may have a column of scores. With
      a single class no sidecar is needed, nor where the properties of an
      OME-Zarr label image have the key ``class``. A TIFF may have a mask of the
      ambiguous area beside it, ``<stem>_ambiguous.tif``; an OME-Zarr image with
      labels, one that is called ambiguous;
    - one file (y, x, 2): object ids and class numbers (1 for the first class).
      The class of an object is that of most of its pixels; not in windows;
    - one file (y, x, C) with C the number of classes, or one more: ids per
      class; a last channel too many is the background and is not read. If
      C is 2, the second channel is taken for class numbers if it is filled
      exactly where the first is and holds only numbers of classes; a finding
      reports how the channels were read. Not in windows.

    In windows, pixels are read at once only where ids are not known otherwise: without a table of
    classes, if ids are too large, or if objects that the table lacks have the class with the
    alias ``""``.

    Parameters
    ----------
    files
        The files.
    scheme
        The classes.
    request
        Its shape may be None if there is at least one file.

    Raises
    ------
    UnreadableFileError
        If a file cannot be read, has another size, or does not tell the
        classes of its objects.
    """
    if paths := files.paths.get(""):
        return _of_all_classes(paths, files.rules.score, scheme, request)
    own, area = dict[str, ClassObjects](), None
    for name, paths in files.paths.items():
        if paths:
            note(*extra_files(name, paths), *absent_chunks(paths[0]))
            plane = _opened(paths[0], f"the {name} label image", request)
            request = replace(request, shape=request.shape or plane.shape)
            if name in scheme.names:
                own[name] = class_objects(plane, name, progress=request.progress)
            elif name == scheme.ambiguous:
                area = TiledArea(plane.shape, plane.filled)
    if request.shape is None:
        raise refuse(
            "there is no label image for this region, and neither its image nor another mask "
            "states its size; add the image"
        )
    return replace(flattened(own, request.shape, scheme), ambiguous=area)


def _of_all_classes(
    paths: tuple[Path, ...], score: str | None, scheme: ClassScheme, request: OpenRequest
) -> TiledMasks:
    path, sidecars = _single_image(paths)
    what = "the label image"
    with reading(path):
        if request.in_windows:
            plane = _opened(path, what, request)
        else:
            pixels = _numbers(path, request.shape, what)
            oriented = _oriented(pixels, request.shape, len(scheme.names))
            check_size(oriented.shape, request.shape, path=path, what=what)
            if pixels.ndim != 2:
                _check_no_table(path, sidecars, pixels)
                return _of_channels(oriented, pixels.shape, path, scheme)
            plane = Plane.held(pixels, path, what)
        if (table := class_table_of(path, sidecars, scheme, score)) is not None:
            masks = objects_of_table(plane, table, scheme, request.progress)
        else:
            own = {scheme.names[0]: class_objects(plane, None, progress=request.progress)}
            masks = replace(flattened(own, plane.shape, scheme), whole=None)
    if (excluded := _excluded_area(plane, scheme)) is None:
        return masks
    return replace(masks, ambiguous=excluded.joined(masks.ambiguous))


def _opened(path: Path, what: str, request: OpenRequest) -> Plane:
    """Open one image: in windows, or all pixels, which is faster where all are needed."""
    if not request.in_windows:
        pixels = _numbers(path, request.shape, what)
        check_size(pixels.shape, request.shape, path=path, what=what)
        return Plane.held(pixels, path, what)
    source = open_pixels(path, WHAT)
    check_size(source.shape, request.shape, path=path, what=what)
    return Plane(source, what)


def _numbers(path: Path, shape: tuple[int, int] | None, what: str) -> NDArray[Any]:
    """Read a whole label image; check its size before the pixels if the header gives it."""
    if not is_zarr(path):
        check_exact(path, WHAT)
        return read_pixels(path, WHAT, colour=False)
    pixels = open_pixels(path, WHAT)
    check_size(pixels.shape, shape, path=path, what=what)
    check_pixels(pixels.shape, 1, path=path, what=WHAT)
    height, width = pixels.shape
    return pixels.read((0, 0, height, width))


def _check_no_table(path: Path, sidecars: Sequence[Path], pixels: NDArray[Any]) -> None:
    """Check that no table gives the class of each number of an image with several per pixel."""
    beside = next(iter(sidecars), None) or next(sidecars_beside(path), None)
    if pixels.ndim == 3 and beside is not None:
        raise refuse(
            f"expected a label image with one number per pixel, since the table {beside.name} "
            f"gives the class of each number; found an array of shape {pixels.shape}, such as a "
            f"picture in colours. Save one channel, or remove the table"
        )


def _of_channels(
    pixels: NDArray[Any], in_file: tuple[int, ...], path: Path, scheme: ClassScheme
) -> TiledMasks:
    n, n_channels = len(scheme.names), pixels.shape[2] if pixels.ndim == 3 else 0
    if n_channels:
        numbers = whole_numbers(pixels, path=path, what="the label image")
        if n_channels == 2 and np.unique(numbers[..., 1]).tolist() in ([255], [65535]):
            raise refuse(
                "expected a label image, found grey with alpha, which is opaque everywhere; save "
                "it without the alpha channel"
            )
        has_class_numbers = n_channels == 2 and _second_is_class(numbers, n)
        if n_channels == 2 and n <= 2:
            note(_guessed_channels(has_class_numbers))
        if has_class_numbers:
            return masks_from_class_numbers(numbers, path, scheme)
        if n_channels in (n, n + 1):
            if n_channels > n:
                check_background_is_last(numbers)
                _check_background(numbers)
            return masks_from_channels(numbers, path, scheme)
    raise refuse(
        f"expected a label image that is 2-D, or has two channels (ids and class numbers), or "
        f"{n} or {n + 1} channels (ids per class), found an array of shape {in_file}"
    )


def _oriented(pixels: NDArray[Any], shape: tuple[int, int] | None, classes: int) -> NDArray[Any]:
    """Put channels last, even if the array is too small to recognise them by size."""
    if pixels.ndim != 3:
        return pixels
    allowed = (2, classes, classes + 1)
    first = shape is not None and pixels.shape[1:] == shape and pixels.shape[:2] != shape
    if first or (pixels.shape[2] not in allowed and pixels.shape[0] in allowed):
        return np.moveaxis(pixels, 0, -1)
    return pixels


def check_background_is_last(numbers: NDArray[Any]) -> None:
    """Check that the first of the channels (y, x, C) holds objects rather than the background.

    Raises
    ------
    UnreadableFileError
        If it holds one number, in just the pixels where no other channel has one, and more of
        them than the last. A single object has fewer pixels than the background around it.
    """
    first, last = (numbers[..., channel] for channel in (0, -1))
    if np.count_nonzero(first > 0) <= np.count_nonzero(last > 0):
        return
    filled = numbers > 0
    is_free = ~filled[..., 1:].any(axis=2)
    differing = np.count_nonzero(filled[..., 0] != is_free)
    n_first, n_last = (int(np.count_nonzero(filled[..., channel])) for channel in (0, -1))
    is_one_number = n_first > 0 and np.ptp(first[filled[..., 0]]) == 0
    if n_first > n_last and is_one_number and differing <= _MOST_DIFFERING * is_free.size:
        raise refuse(
            f"expected the ids of the first class in the first channel and the background in the "
            f"last, found one number in {n_first / is_free.size:.0%} of the first channel, just "
            f"where no other has an object: it looks like the background. Move it to the end "
            f"(numpy.roll(array, -1, axis=-1))"
        )


def _check_background(numbers: NDArray[np.integer]) -> None:
    """Check that the last channel can be the background, which is not read.

    Raises
    ------
    UnreadableFileError
        If it holds several numbers, or lies under objects.
    """
    last, others = numbers[..., -1], numbers[..., :-1]
    is_filled = last > 0
    n_numbers = len(np.unique(last[is_filled]))
    n_shared = int(np.count_nonzero(is_filled & (others > 0).any(axis=2)))
    if n_numbers > 1 or n_shared:
        n = numbers.shape[2]
        raise refuse(
            f"expected {n} channels or pages: ids of each class, and one of background "
            f"(one number where no object is), found "
            f"{counted(n_numbers, 'different number')} in the last, {n_shared} px of them under "
            f"objects; save the label image alone"
        )


def _second_is_class(numbers: NDArray[np.integer], classes: int) -> bool:
    if classes > 2:
        return True
    first, second = numbers[..., 0], numbers[..., 1]
    return int(second.max(initial=0)) <= classes and bool(((first > 0) == (second > 0)).all())


def _guessed_channels(has_class_numbers: bool) -> Finding:
    taken, other = "ids per class", "ids and class numbers"
    if has_class_numbers:
        taken, other = other, taken
    message = (
        f"the two channels were read as {taken}, by their content; if they hold {other}, save one "
        f"image per class, or ids with a table of classes"
    )
    return Finding(FindingKind.FALLBACK, message)


def masks_from_channels(
    numbers: NDArray[np.integer],
    path: Path,
    scheme: ClassScheme,
    *,
    may_be_binary: bool = True,
) -> TiledMasks:
    """Read an array (y, x, C) with the ids of each class in a channel of its own.

    Channels beyond the classes are not read.
    """
    own: dict[str, ClassObjects] = {}
    for channel, name in enumerate(scheme.names):
        plane = Plane.held(numbers[..., channel], path, f"the {name} channel")
        own[name] = class_objects(plane, name, may_be_binary=may_be_binary)
    return flattened(own, (numbers.shape[0], numbers.shape[1]), scheme)


def masks_from_class_numbers(
    numbers: NDArray[np.integer],
    path: Path,
    scheme: ClassScheme,
    *,
    may_be_binary: bool = True,
) -> TiledMasks:
    """Read an array (y, x, 2) of ids and class numbers, 1 for the first class.

    The class of an object is that of most of its pixels.
    """
    plane = Plane.held(numbers[..., 0], path, "the channel of ids")
    mask = class_objects(plane, None, may_be_binary=may_be_binary).mask()
    index, unique_ids = compact(mask)
    what = "the channel of class numbers"
    _, class_numbers = compact(checked_array(numbers[..., 1], what))
    if len(class_numbers) > MOST_CLASS_NUMBERS:
        raise refuse(
            f"expected numbers of classes, 1 to {len(scheme.names)}, in the second channel, found "
            f"{len(class_numbers)} different numbers up to {int(class_numbers[-1])}; save ids and "
            f"class numbers, or one channel of ids per class"
        )
    winners = most_frequent_classes(index, unique_ids, numbers[..., 1])
    known = ClassNumbers(None, scheme)
    classes = {
        id_: known.name_of(number) for id_, number in zip(unique_ids.tolist(), winners, strict=True)
    }
    note(*known.findings(path))
    plane = Plane.held(mask, path, "the label image")
    masks = objects_of_table(plane, ClassTable.of_names(classes), scheme)
    return replace(masks, ambiguous=None)


def images_and_tables(paths: tuple[Path, ...]) -> tuple[tuple[Path, ...], list[Path]]:
    """Return the label images of all classes among some files, and the tables of classes.

    Raises
    ------
    UnreadableFileError
        If there are only tables.
    """
    images = [
        path
        for path in paths
        if path.suffix.lower() not in SIDECAR_SUFFIXES and labels_beside(path) not in paths
    ]
    if not images:
        raise UnreadableFileError(f"expected {WHAT}, found only a table of classes", path=paths[0])
    sidecars = [path for path in paths if path.suffix.lower() in SIDECAR_SUFFIXES]
    return tuple(images), sidecars


def _single_image(paths: tuple[Path, ...]) -> tuple[Path, list[Path]]:
    images, sidecars = images_and_tables(paths)
    note(*extra_files("all classes", images), *absent_chunks(images[0]))
    return images[0], sidecars


def class_table_of(
    path: Path,
    sidecars: Sequence[Path],
    scheme: ClassScheme,
    score: str | None = None,
) -> ClassTable | None:
    """Read the table of classes of a label image: given, beside the image, or inside it.

    Parameters
    ----------
    path, sidecars
        The label image, and tables that were given for it.
    scheme
        The classes.
    score
        The name of the scores in the table; None for the well-known names.

    Returns
    -------
    ClassTable or None
        None if there is none, and every object has the only class of the scheme.

    Raises
    ------
    UnreadableFileError
        If the scheme has several classes and there is no table, or it cannot be read.
    """
    if sidecar := next(iter(sidecars), None) or next(sidecars_beside(path), None):
        return read_class_table(sidecar, scheme, score)
    if is_zarr(path) and (inside := label_classes(path)) is not None:
        scores = label_scores(path, score).values()
        return ClassTable.of(inside.items(), scheme, path, scores)
    if len(scheme.names) > 1:
        raise UnreadableFileError(
            f"the label image has no class information: expected a table of classes beside it, "
            f"{path.stem}.csv (with the header id,class) or {path.stem}.json "
            f"({{id: class}}), or one image per class",
            path=path,
        )
    return None


def labels_beside(path: Path) -> Path | None:
    """Return the label image to which a mask of the ambiguous area belongs; None for others."""
    if not path.name.endswith(AMBIGUOUS_SUFFIX):
        return None
    return path.with_name(path.name.removesuffix(AMBIGUOUS_SUFFIX) + ".tif")


def area_beside(path: Path) -> Path | None:
    """Return the mask of the ambiguous area that lies beside a label image, if one does."""
    area = path.with_name(path.stem + AMBIGUOUS_SUFFIX)
    return area if path.suffix == ".tif" and has_file(area) else None


def _excluded_area(plane: Plane, scheme: ClassScheme) -> TiledArea | None:
    """Open the mask of the ambiguous area of a label image of all classes, if there is one.

    That is a mask beside a TIFF, or in an OME-Zarr image with labels one of
    that name, not the first.
    """
    if scheme.ambiguous is None:
        return None
    if is_zarr(plane.path):
        inside = zarr_areas(plane.path, {scheme.ambiguous.casefold(), AMBIGUOUS_LABEL})
        path = next(iter(inside), None)
    else:
        path = area_beside(plane.path)
    if path is None:
        return None
    pixels = open_pixels(path, WHAT)
    check_size(pixels.shape, plane.shape, path=path)
    return TiledArea(plane.shape, lambda box: if_any(pixels.read(box) > 0))


def sidecars_beside(path: Path) -> Iterator[Path]:
    """Yield the tables of classes that lie beside a label image and have its stem.

    The stem of ``a.ome.zarr`` is ``a.ome`` or ``a``.
    """
    stems = [path.with_suffix("")]
    if stems[0].suffix.casefold() == ".ome":
        stems.append(stems[0].with_suffix(""))
    for stem in stems:
        for suffix in SIDECAR_SUFFIXES:
            if has_file(sidecar := stem.with_name(stem.name + suffix)):
                yield sidecar


def files_shape(files: MaskFiles) -> tuple[int, int] | None:
    """Return height and width in px from the headers, or None if they are not there."""
    for path in files.object_paths:
        if path.suffix.lower() not in SIDECAR_SUFFIXES:
            if is_zarr(path):
                return open_pixels(path, WHAT).shape
            height, width = pixel_shape(path, WHAT)[:2]
            return height, width
    return None
