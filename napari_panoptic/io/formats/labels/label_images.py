"""Label images (TIFF, PNG, NPY, NPZ, Zarr): one number per object, with a table of classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.guard import check_pixels, has_file
from napari_panoptic.io.formats.class_tables import ClassTable, read_class_table
from napari_panoptic.io.formats.format import NOTHING_STATED, LoadedMasks, LoadRequest, located
from napari_panoptic.io.formats.labels.masks import (
    LazyMasks,
    extra_files,
    most_frequent_classes,
    object_mask,
    vanished_findings,
    whole_numbers,
)
from napari_panoptic.io.formats.labels.ome_zarr import AMBIGUOUS_LABEL, label_classes, label_scores
from napari_panoptic.io.pixels.decode import check_exact, check_size, pixel_shape, read_pixels
from napari_panoptic.io.pixels.label_windows import (
    TiledPixels,
    absent_chunks,
    is_zarr,
    open_pixels,
    zarr_areas,
)
from napari_panoptic.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.values.labels import LabelImage, Scores, checked_array, compact

WHAT = "a label image (one positive number per object)"
SIDECAR_SUFFIXES = (".csv", ".json")
"""Endings of tables of classes beside a label image of the same stem."""

MOST_CLASS_NUMBERS = 100
"""A channel with more different numbers than this holds no class numbers."""
_MOST_DIFFERING = 0.01
"""Of the pixels of a background, in which it may overlap objects or lack a pixel."""
AMBIGUOUS_SUFFIX = "_ambiguous.tif"
"""Ending of the mask of the ambiguous area beside a label image of the same stem."""

ClassMasks = dict[str, NDArray[np.int32]]


def read_labels(
    files: MaskFiles, scheme: ClassScheme, request: LoadRequest = NOTHING_STATED
) -> LoadedMasks:
    """Read the label images of one region.

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
      The class of an object is that of most of its pixels;
    - one file (y, x, C) with C the number of classes, or one more: ids per
      class; a last channel too many is the background and is not read. If
      C is 2, the second channel is taken for class numbers if it is filled
      exactly where the first is and holds only numbers of classes; a finding
      reports how the channels were read.

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
    if files.paths.get(""):
        loaded = _read_single(files, scheme, request)
    else:
        loaded = _read_per_class(files, scheme, request)
    labels, ambiguous, findings = loaded
    findings.extend(vanished_findings(labels))
    if ambiguous is not None and not ambiguous.any():
        ambiguous = None
    return LoadedMasks(labels, ambiguous, located(findings, request))


_Split = tuple[LabelImage, NDArray[np.bool_] | None]
_Parts = tuple[LabelImage, NDArray[np.bool_] | None, list[Finding]]


def _read_per_class(files: MaskFiles, scheme: ClassScheme, request: LoadRequest) -> _Parts:
    masks: ClassMasks = {}
    ambiguous: NDArray[np.bool_] | None = None
    findings: list[Finding] = []
    shape = request.shape
    for name, paths in files.paths.items():
        if not paths:
            continue
        path = paths[0]
        findings += [*extra_files(name, paths), *absent_chunks(path)]
        what = f"the {name} label image"
        pixels = _numbers(path, shape, request.region, what)
        check_size(pixels.shape, shape, path=path, region=request.region, what=what)
        shape = shape or pixels.shape[:2]
        if name == scheme.ambiguous:
            ambiguous = _plane(pixels, path, what, request.region) > 0
        elif name in scheme.names:
            masks[name], found = object_mask(
                pixels, path=path, what=what, region=request.region, class_name=name
            )
            findings.extend(found)
    if shape is None:
        raise UnreadableFileError(
            "there is no label image for this region, and neither its image nor another mask "
            "states its size; add the image",
            region=request.region,
        )
    labels = LabelImage.from_class_masks(masks, scheme.names, shape)
    return labels.with_class_overlaps(), ambiguous, findings


def _numbers(
    path: Path, shape: tuple[int, int] | None, region: str | None, what: str
) -> NDArray[Any]:
    """Read a whole label image; check its size before the pixels if the header gives it."""
    if not is_zarr(path):
        check_exact(path, WHAT)
        return read_pixels(path, WHAT, colour=False)
    pixels = open_pixels(path, WHAT)
    check_size(pixels.shape, shape, path=path, region=region, what=what)
    check_pixels(pixels.shape, 1, path=path, what=WHAT)
    height, width = pixels.shape
    return pixels.read((0, 0, height, width))


def _plane(pixels: NDArray[Any], path: Path, what: str, region: str | None) -> NDArray[np.integer]:
    if pixels.ndim != 2:
        raise UnreadableFileError(
            f"{what} must be 2-D (rows, columns), found an array of shape {pixels.shape}",
            path=path,
            region=region,
        )
    return whole_numbers(pixels, path=path, what=what, region=region)


def _read_single(files: MaskFiles, scheme: ClassScheme, request: LoadRequest) -> _Parts:
    path, sidecars, findings = single_image(files.paths[""], request)
    what = "the label image"
    pixels = _numbers(path, request.shape, request.region, what)
    pixels = _oriented(pixels, request.shape, len(scheme.names))
    check_size(pixels.shape, request.shape, path=path, region=request.region, what=what)
    if pixels.ndim == 2:
        table = class_table_of(path, sidecars, scheme, request, files.rules.score)
        labels, ambiguous = _of_one_plane(pixels, path, table, scheme, request, findings)
        if (area := excluded_area(path, scheme)) is not None:
            check_size(area.shape, pixels.shape, path=area.path, region=request.region)
            excluded = area.read((0, 0, *area.shape)) > 0
            ambiguous = excluded if ambiguous is None else ambiguous | excluded
        return labels, ambiguous, findings
    beside = next(iter(sidecars), None) or next(sidecars_beside(path), None)
    if pixels.ndim == 3 and beside is not None:
        raise UnreadableFileError(
            f"expected a label image with one number per pixel, since the table {beside.name} "
            f"gives the class of each number; found an array of shape {pixels.shape}, such as a "
            f"picture in colours. Save one channel, or remove the table",
            path=path,
            region=request.region,
        )
    if pixels.ndim == 3:
        channels = pixels.shape[2]
        numbers = whole_numbers(pixels, path=path, what=what, region=request.region)
        has_class_numbers = channels == 2 and _second_is_class(numbers, len(scheme.names))
        if channels == 2 and len(scheme.names) <= 2:
            findings.append(_guessed_channels(path, has_class_numbers))
        if has_class_numbers:
            return labels_from_class_numbers(numbers, path, scheme, findings), None, findings
        if channels in (len(scheme.names), len(scheme.names) + 1):
            if channels > len(scheme.names):
                check_background_is_last(numbers, path, request.region)
                _check_background(numbers, path, request.region)
            return labels_from_channels(numbers, path, scheme, findings), None, findings
    n = len(scheme.names)
    raise UnreadableFileError(
        f"expected a label image that is 2-D, or has two channels (ids and class numbers), or "
        f"{n} or {n + 1} channels (ids per class), found an array of shape {pixels.shape}",
        path=path,
        region=request.region,
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


def check_background_is_last(numbers: NDArray[Any], path: Path, region: str | None = None) -> None:
    """Check that the first of the channels (y, x, C) holds objects rather than the background.

    Raises
    ------
    UnreadableFileError
        If it holds one number, in just the pixels where no other channel has one, and more of
        them than the last. A single object has fewer pixels than the background around it.
    """
    first, filled = numbers[..., 0], numbers > 0
    is_free = ~filled[..., 1:].any(axis=2)
    differing = np.count_nonzero(filled[..., 0] != is_free)
    n_first, n_last = (int(np.count_nonzero(filled[..., channel])) for channel in (0, -1))
    is_one_number = n_first > 0 and np.ptp(first[filled[..., 0]]) == 0
    if n_first > n_last and is_one_number and differing <= _MOST_DIFFERING * is_free.size:
        raise UnreadableFileError(
            f"expected the ids of the first class in the first channel and the background in the "
            f"last, found one number in {n_first / is_free.size:.0%} of the first channel, just "
            f"where no other has an object: it looks like the background. Move it to the end "
            f"(numpy.roll(array, -1, axis=-1))",
            path=path,
            region=region,
        )


def _check_background(numbers: NDArray[np.integer], path: Path, region: str | None) -> None:
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
        raise UnreadableFileError(
            f"expected {n - 1} channel(s) or page(s) of ids, one per class, and one of background "
            f"(one number where no object is), found {n} of which the last holds {n_numbers} "
            f"different number(s), {n_shared} px of them under objects; save the label image alone",
            path=path,
            region=region,
        )


def _second_is_class(numbers: NDArray[np.integer], classes: int) -> bool:
    if classes > 2:
        return True
    first, second = numbers[..., 0], numbers[..., 1]
    return int(second.max(initial=0)) <= classes and bool(((first > 0) == (second > 0)).all())


def _guessed_channels(path: Path, has_class_numbers: bool) -> Finding:
    taken, other = "ids per class", "ids and class numbers"
    if has_class_numbers:
        taken, other = other, taken
    message = (
        f"the two channels were read as {taken}, by their content; if they hold {other}, save one "
        f"image per class, or ids with a table of classes"
    )
    return Finding(FindingKind.FALLBACK, message, path=path)


def labels_from_channels(
    numbers: NDArray[np.integer],
    path: Path,
    scheme: ClassScheme,
    findings: list[Finding],
    *,
    may_be_binary: bool = True,
) -> LabelImage:
    """Read an array (y, x, C) with the ids of each class in a channel of its own.

    Channels beyond the classes are not read. Problems are added to the findings.
    """
    masks: ClassMasks = {}
    for channel, name in enumerate(scheme.names):
        what = f"the {name} channel"
        masks[name], found = object_mask(
            numbers[..., channel],
            path=path,
            what=what,
            class_name=name,
            may_be_binary=may_be_binary,
        )
        findings.extend(found)
    height, width, _ = numbers.shape
    labels = LabelImage.from_class_masks(masks, scheme.names, (height, width))
    return labels.with_class_overlaps()


def labels_from_class_numbers(
    numbers: NDArray[np.integer],
    path: Path,
    scheme: ClassScheme,
    findings: list[Finding],
    *,
    may_be_binary: bool = True,
) -> LabelImage:
    """Read an array (y, x, 2) of ids and class numbers, 1 for the first class.

    The class of an object is that of most of its pixels. Problems are added to the findings.
    """
    mask, found = object_mask(
        numbers[..., 0], path=path, what="the channel of ids", may_be_binary=may_be_binary
    )
    findings.extend(found)
    index, unique_ids = compact(mask)
    what = "the channel of class numbers"
    _, class_numbers = compact(checked_array(numbers[..., 1], what))
    if len(class_numbers) > MOST_CLASS_NUMBERS:
        raise UnreadableFileError(
            f"expected numbers of classes, 1 to {len(scheme.names)}, in the second channel, found "
            f"{len(class_numbers)} different numbers up to {int(class_numbers[-1])}; save ids and "
            f"class numbers, or one channel of ids per class",
            path=path,
        )
    winners, found_mixed = most_frequent_classes(index, unique_ids, numbers[..., 1], path)
    findings.extend(found_mixed)
    number_name = dict(enumerate(scheme.names, start=1))
    classes = {
        id_: number_name.get(number) or str(number)
        for id_, number in zip(unique_ids.tolist(), winners, strict=True)
    }
    labels, _ = labels_with_classes(index, unique_ids, classes, path, scheme, findings)
    return labels


def _of_one_plane(
    pixels: NDArray[Any],
    path: Path,
    table: ClassTable | None,
    scheme: ClassScheme,
    request: LoadRequest,
    findings: list[Finding],
) -> _Split:
    what = "the label image"
    if table is None:
        mask, found = object_mask(pixels, path=path, what=what, region=request.region)
        findings.extend(found)
        one_class = {scheme.names[0]: mask}
        return LabelImage.from_class_masks(one_class, scheme.names, mask.shape), None
    findings += table.findings
    classes = table.as_mapping()
    numbers = _plane(pixels, path, what, request.region)
    index, ids = compact(checked_array(numbers, what))
    scores = table.scores
    if (highest := int(ids.max(initial=0))) > np.iinfo(np.int32).max:
        classes = {n: classes[i] for n, i in enumerate(ids.tolist(), start=1) if i in classes}
        message = f"the label image has ids up to {highest}: objects were renumbered"
        findings.append(Finding(FindingKind.FALLBACK, message, path=path, count=len(ids)))
        numbered = np.arange(1, len(ids) + 1, dtype=np.int64)
        scores = None if scores is None else Scores(numbered, scores.of(ids))
        ids = numbered
    labels, ambiguous = labels_with_classes(index, ids, classes, path, scheme, findings)
    return replace(labels, known_scores=scores), ambiguous


def single_image(
    paths: tuple[Path, ...], request: LoadRequest
) -> tuple[Path, list[Path], list[Finding]]:
    """Return the label image of all classes among some files, the tables of classes, and findings.

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
        raise UnreadableFileError(
            f"expected {WHAT}, found only a table of classes", path=paths[0], region=request.region
        )
    sidecars = [path for path in paths if path.suffix.lower() in SIDECAR_SUFFIXES]
    findings = [*extra_files("all classes", tuple(images)), *absent_chunks(images[0])]
    return images[0], sidecars, findings


def class_table_of(
    path: Path,
    sidecars: Sequence[Path],
    scheme: ClassScheme,
    request: LoadRequest,
    score: str | None = None,
) -> ClassTable | None:
    """Read the table of classes of a label image: given, beside the image, or inside it.

    Parameters
    ----------
    path, sidecars
        The label image, and tables that were given for it.
    scheme
        The classes.
    request
        Names the region in errors.
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
            region=request.region,
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


def excluded_area(path: Path, scheme: ClassScheme) -> TiledPixels | None:
    """Open the mask of the ambiguous area of a label image of all classes, if there is one.

    That is a mask beside a TIFF, or in an OME-Zarr image with labels one of
    that name, not the first.
    """
    if scheme.ambiguous is None:
        return None
    if is_zarr(path):
        inside = zarr_areas(path, {scheme.ambiguous.casefold(), AMBIGUOUS_LABEL})
        return open_pixels(inside[0], WHAT) if inside else None
    beside = area_beside(path)
    return None if beside is None else open_pixels(beside, WHAT)


def labels_with_classes(
    index: NDArray[np.int32],
    ids: NDArray[np.int64],
    classes: Mapping[int, str],
    path: Path,
    scheme: ClassScheme,
    findings: list[Finding],
) -> _Split:
    """Assign classes to the objects of one image; return them and the ambiguous area.

    No two of them share a pixel, so that classes never lie over each other.
    Those of other classes are left out.

    Parameters
    ----------
    index, ids
        As of :func:`compact`.
    classes
        Id -> name of the class, in any spelling.
    path
        The file, for findings.
    scheme
        The classes.
    findings
        Receives findings on objects that are left out.
    """
    canonical = [scheme.canonical(classes.get(id_, "")) for id_ in ids.tolist()]
    findings.extend(unknown_classes(ids.tolist(), canonical, classes, path, scheme))
    numbers = {name: number for number, name in enumerate(scheme.names, start=1)}
    class_index = np.array([numbers.get(name or "", 0) for name in canonical], np.int16)
    kept = np.flatnonzero(class_index)
    ambiguous = None
    if scheme.ambiguous is not None and scheme.ambiguous in canonical:
        is_ambiguous = [False, *(name == scheme.ambiguous for name in canonical)]
        ambiguous = np.array(is_ambiguous).take(index)
    if len(kept) < len(ids):
        rows = np.zeros(len(ids) + 1, np.int32)
        rows[kept + 1] = np.arange(1, len(kept) + 1, dtype=np.int32)
        index, ids, class_index = rows.take(index), ids[kept], class_index[kept]
    labels = LabelImage(
        index=index,
        ids=ids,
        class_index=class_index,
        original_ids=ids,
        class_names=scheme.names,
        class_masks=LazyMasks(
            [scheme.names[number - 1] for number in sorted(set(class_index.tolist()))],
            partial(_mask_of, index, ids, class_index, scheme.names),
        ),
    )
    return labels, ambiguous


def _mask_of(
    index: NDArray[np.int32],
    ids: NDArray[np.int64],
    class_index: NDArray[np.int16],
    names: tuple[str, ...],
    name: str,
) -> NDArray[np.int32]:
    own = np.where(class_index == names.index(name) + 1, ids, 0)
    return np.concatenate([[0], own]).astype(np.int32).take(index)


def unknown_classes(
    ids: list[int],
    canonical: list[str | None],
    classes: Mapping[int, str],
    path: Path,
    scheme: ClassScheme,
) -> Iterator[Finding]:
    """Report the objects that are left out because their class is unknown.

    Parameters
    ----------
    ids
        Of the objects in the pixels.
    canonical
        For each, the class as the scheme calls it; None if it is unknown.
    classes
        Id -> name of the class in the table, where it has one.
    path
        The label image.
    scheme
        The classes.

    Yields
    ------
    Finding
        One per unknown name, and one for the objects without any.
    """
    unknown = [id_ for id_, name in zip(ids, canonical, strict=True) if name is None]
    for name in sorted({classes.get(id_, "") for id_ in unknown}):
        concerned = tuple(id_ for id_ in unknown if classes.get(id_, "") == name)
        called = f"of the unknown class '{name}'" if name else "without a class"
        yield Finding(
            FindingKind.UNKNOWN_CLASS,
            f"{len(concerned)} object(s) {called} left out: {english_list(concerned)}; known "
            f"classes are {english_list(list(scheme.names))}",
            path=path,
            class_name=name or None,
            count=len(concerned),
            object_ids=concerned,
        )


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
