"""Label images (TIFF, PNG, NPY, Zarr): one number per object, classes beside them."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tifffile
from numpy.typing import ArrayLike, NDArray

from napari_panoptic.common.errors import Finding, FindingKind, UnreadableFileError, english_list
from napari_panoptic.io.files import (
    check_exact,
    check_file,
    check_size,
    pixel_shape,
    read_pixels,
    replaced_when_complete,
)
from napari_panoptic.io.formats.format import LoadedMasks, LoadRequest, located
from napari_panoptic.io.formats.labels.masks import object_mask, vanished_findings, whole_numbers
from napari_panoptic.io.formats.labels.ome_zarr import AMBIGUOUS_LABEL, label_classes
from napari_panoptic.io.label_windows import (
    TiledPixels,
    absent_chunks,
    is_zarr,
    open_pixels,
    zarr_areas,
)
from napari_panoptic.io.limits import check_length
from napari_panoptic.nuclei.values.cohort import ClassScheme, MaskFiles
from napari_panoptic.nuclei.values.labels import LabelImage, checked_array, compact

WHAT = "a label image (one positive number per object)"
WHAT_TABLE = "a table of classes (id,class)"
SIDECAR_SUFFIXES = (".csv", ".json")
"""Files that give the class of each id, beside a label image of the same stem."""

MOST_CLASS_NUMBERS = 100
"""A channel with more different numbers than this holds no class numbers."""
AMBIGUOUS_SUFFIX = "_ambiguous.tif"
"""Ending of the mask of the ambiguous area beside a label image of the same stem."""

ClassMasks = dict[str, NDArray[np.int32]]


def read_labels(
    files: MaskFiles,
    scheme: ClassScheme,
    *,
    shape: tuple[int, int] | None = None,
    region: str | None = None,
    team: str | None = None,
) -> LoadedMasks:
    """Read the label images of one region.

    What is understood:

    - one file per class (under each class name), the ambiguous class included:
      any positive number there marks an excluded area;
    - one file (under the key ``""``), 2-D, with a sidecar that gives the class of
      each id: ``<stem>.csv`` with the columns id and class, or ``<stem>.json``
      with ``{id: class}``, or a file with such an ending among the paths. With
      a single class no sidecar is needed, nor where the properties of an
      OME-Zarr label image have the key ``class``. A TIFF may have a mask of the
      ambiguous area beside it, ``<stem>_ambiguous.tif``; an OME-Zarr image with
      labels, one that is called ambiguous;
    - one file (y, x, 2): object ids and class numbers (1 for the first class).
      The class of an object is that of most of its pixels;
    - one file (y, x, C) with C the number of classes, or one more: ids per
      class; a last channel too many is the background and is not read. Where
      C is 2, the second channel is taken for class numbers if it is filled
      exactly where the first is and holds only numbers of classes.

    Parameters
    ----------
    files
        The files.
    scheme
        The classes.
    shape
        Height and width that the images must have. May be None where there is
        at least one file.
    region, team
        Names, for findings and errors.

    Raises
    ------
    UnreadableFileError
        Where a file cannot be read, has another size, or does not tell the
        classes of its objects.
    """
    request = LoadRequest(shape=shape, region=region, team=team)
    if files.paths.get(""):
        loaded = _read_single(files.paths[""], scheme, request)
    else:
        loaded = _read_per_class(files, scheme, request)
    labels, ambiguous, findings = loaded
    findings.extend(vanished_findings(labels))
    if ambiguous is not None and not ambiguous.any():
        ambiguous = None
    return LoadedMasks(labels, ambiguous, located(findings, request))


def write_labels(path: Path, labels: ArrayLike) -> None:
    """Write a label image as TIFF, in the smallest of uint16 and uint32 that holds it.

    The file appears only when it is complete.

    Parameters
    ----------
    path
        Where to write; an existing file is replaced.
    labels
        Whole numbers (y, x), 0 for background.

    Raises
    ------
    LabelError
        Where they are not 2-D or not whole non-negative numbers.
    """
    with replaced_when_complete(path) as file:
        write_label_pixels(file, labels)


def write_label_pixels(file: BinaryIO, labels: ArrayLike) -> None:
    """Write a label image into an open file, otherwise as `write_labels`."""
    array = checked_array(labels, "label image")
    highest = int(array.max(initial=0))
    if highest > np.iinfo(np.uint32).max:
        array = compact(array)[0].astype(np.int64)
        highest = int(array.max(initial=0))
    smallest = np.uint16 if highest <= np.iinfo(np.uint16).max else np.uint32
    tifffile.imwrite(
        file,
        array.astype(smallest),
        photometric="minisblack",
        compression="adobe_deflate",
        metadata=None,
    )


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
            "tells its size",
            region=request.region,
        )
    labels = LabelImage.from_class_masks(masks, scheme.names, shape)
    return labels.with_class_overlaps(), ambiguous, findings


def _numbers(
    path: Path, shape: tuple[int, int] | None, region: str | None, what: str
) -> NDArray[Any]:
    """Read a label image as a whole; one of another size is not read where that can be told."""
    if not is_zarr(path):
        check_exact(path, WHAT)
        return read_pixels(path, WHAT, colour=False)
    pixels = open_pixels(path, WHAT)
    check_size(pixels.shape, shape, path=path, region=region, what=what)
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


def extra_files(name: str, paths: tuple[Path, ...]) -> list[Finding]:
    """Say of several files for one class, or for all of them, that only the first is read."""
    if len(paths) < 2:
        return []
    message = (
        f"{len(paths)} files for {name}: {paths[0].name} was read, "
        f"{english_list([path.name for path in paths[1:]])} not"
    )
    return [
        Finding(FindingKind.EXTRA, message, path=paths[1], class_name=name, count=len(paths) - 1)
    ]


def _read_single(paths: tuple[Path, ...], scheme: ClassScheme, request: LoadRequest) -> _Parts:
    images = images_of(paths)
    sidecars = [path for path in paths if path.suffix.lower() in SIDECAR_SUFFIXES]
    if not images:
        raise UnreadableFileError(
            f"expected {WHAT}, found only a table of classes", path=paths[0], region=request.region
        )
    path = images[0]
    findings = [*extra_files("all classes", tuple(images)), *absent_chunks(path)]
    what = "the label image"
    pixels = _numbers(path, request.shape, request.region, what)
    pixels = _oriented(pixels, request.shape, len(scheme.names))
    check_size(pixels.shape, request.shape, path=path, region=request.region, what=what)
    if pixels.ndim == 2:
        labels, ambiguous = _from_sidecar(pixels, path, sidecars, scheme, request, findings)
        if (area := excluded_area(path, scheme)) is not None:
            check_size(area.shape, pixels.shape, path=area.path, region=request.region)
            excluded = area.read((0, 0, *area.shape)) > 0
            ambiguous = excluded if ambiguous is None else ambiguous | excluded
        return labels, ambiguous, findings
    table = next(iter(sidecars), None) or next(sidecars_beside(path), None)
    if pixels.ndim == 3 and table is not None:
        raise UnreadableFileError(
            f"expected a label image with one number per pixel, since the table {table.name} "
            f"gives the class of each number; found an array of shape {pixels.shape}, such as a "
            f"picture in colours. Save one channel, or remove the table",
            path=path,
            region=request.region,
        )
    if pixels.ndim == 3:
        channels = pixels.shape[2]
        numbers = whole_numbers(pixels, path=path, what=what, region=request.region)
        if channels == 2 and _second_is_class(numbers, len(scheme.names)):
            return labels_from_class_numbers(numbers, path, scheme, findings), None, findings
        if channels in (len(scheme.names), len(scheme.names) + 1):
            if channels > len(scheme.names):
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
    """Put channels last also where the array is too small to tell them by size."""
    if pixels.ndim != 3:
        return pixels
    allowed = (2, classes, classes + 1)
    first = shape is not None and pixels.shape[1:] == shape and pixels.shape[:2] != shape
    if first or (pixels.shape[2] not in allowed and pixels.shape[0] in allowed):
        return np.moveaxis(pixels, 0, -1)
    return pixels


def _check_background(numbers: NDArray[np.integer], path: Path, region: str | None) -> None:
    """Check that the last channel can be the background, which is not read.

    Raises
    ------
    UnreadableFileError
        Where it holds several numbers, or lies under objects.
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


def labels_from_channels(
    numbers: NDArray[np.integer],
    path: Path,
    scheme: ClassScheme,
    findings: list[Finding],
    *,
    may_be_binary: bool = True,
) -> LabelImage:
    """Take an array (y, x, C) with the ids of each class in a channel of its own.

    Channels beyond the classes are not read. What was odd is added to the findings.
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
    """Take an array (y, x, 2) of ids and class numbers, 1 for the first class.

    The class of an object is that of most of its pixels. What was odd is added to the findings.
    """
    mask, found = object_mask(
        numbers[..., 0], path=path, what="the channel of ids", may_be_binary=may_be_binary
    )
    findings.extend(found)
    index, unique_ids = compact(mask)
    what = "the channel of class numbers"
    kinds, class_numbers = compact(checked_array(numbers[..., 1], what))
    if len(class_numbers) > MOST_CLASS_NUMBERS:
        raise UnreadableFileError(
            f"expected numbers of classes, 1 to {len(scheme.names)}, in the second channel, found "
            f"{len(class_numbers)} different numbers up to {int(class_numbers[-1])}; save ids and "
            f"class numbers, or one channel of ids per class",
            path=path,
        )
    n_kinds = len(class_numbers) + 1
    # How many pixels of each object say which class.
    votes = np.bincount(
        index.ravel().astype(np.int64) * n_kinds + kinds.ravel(),
        minlength=(len(unique_ids) + 1) * n_kinds,
    ).reshape(-1, n_kinds)[1:]
    winner = np.append(0, class_numbers)[votes.argmax(axis=1)]
    mixed = unique_ids[np.count_nonzero(votes, axis=1) > 1].tolist()
    if mixed:
        message = (
            f"{len(mixed)} object(s) with pixels of several classes; that of most of their "
            f"pixels was taken: {english_list(mixed)}"
        )
        findings.append(
            Finding(
                FindingKind.FALLBACK,
                message,
                path=path,
                count=len(mixed),
                object_ids=tuple(mixed),
            )
        )
    number_name = dict(enumerate(scheme.names, start=1))
    classes = {
        id_: number_name.get(number) or str(number)
        for id_, number in zip(unique_ids.tolist(), winner.tolist(), strict=True)
    }
    labels, _ = labels_with_classes(index, unique_ids, classes, path, scheme, findings)
    return labels


def _from_sidecar(
    pixels: NDArray[Any],
    path: Path,
    sidecars: list[Path],
    scheme: ClassScheme,
    request: LoadRequest,
    findings: list[Finding],
) -> _Split:
    what = "the label image"
    classes = _classes_of(path, sidecars, scheme, findings)
    if classes is None:
        if len(scheme.names) > 1:
            raise UnreadableFileError(
                f"the label image tells no classes: expected a table of them beside it, "
                f"{path.stem}.csv (with the header id,class) or {path.stem}.json "
                f"({{id: class}}), or one image per class",
                path=path,
                region=request.region,
            )
        mask, found = object_mask(pixels, path=path, what=what, region=request.region)
        findings.extend(found)
        one_class = {scheme.names[0]: mask}
        return LabelImage.from_class_masks(one_class, scheme.names, mask.shape), None
    numbers = _plane(pixels, path, what, request.region)
    index, ids = compact(checked_array(numbers, what))
    if (highest := int(ids.max(initial=0))) > np.iinfo(np.int32).max:
        classes = {n: classes[i] for n, i in enumerate(ids.tolist(), start=1) if i in classes}
        message = f"the label image has ids up to {highest}: objects were numbered anew"
        findings.append(Finding(FindingKind.FALLBACK, message, path=path, count=len(ids)))
        ids = np.arange(1, len(ids) + 1, dtype=np.int64)
    return labels_with_classes(index, ids, classes, path, scheme, findings)


def _classes_of(
    path: Path, sidecars: list[Path], scheme: ClassScheme, findings: list[Finding]
) -> dict[int, str] | None:
    """Read the table of classes: given, beside the image, or inside it."""
    if sidecar := next(iter(sidecars), None) or next(sidecars_beside(path), None):
        return read_sidecar(sidecar, scheme, findings)
    if not is_zarr(path) or (inside := label_classes(path)) is None:
        return None
    return _numbers_named(inside, scheme)


def images_of(paths: Collection[Path]) -> list[Path]:
    """Leave out tables of classes and masks of the ambiguous area."""
    return [
        path
        for path in paths
        if path.suffix.lower() not in SIDECAR_SUFFIXES and labels_beside(path) not in paths
    ]


def labels_beside(path: Path) -> Path | None:
    """Return the label image of which this is the mask of the ambiguous area; None for others."""
    if not path.name.endswith(AMBIGUOUS_SUFFIX):
        return None
    return path.with_name(path.name.removesuffix(AMBIGUOUS_SUFFIX) + ".tif")


def area_beside(path: Path) -> Path | None:
    """Return the mask of the ambiguous area that lies beside a label image, if one does."""
    area = path.with_name(path.stem + AMBIGUOUS_SUFFIX)
    return area if path.suffix == ".tif" and area.is_file() else None


def excluded_area(path: Path, scheme: ClassScheme) -> TiledPixels | None:
    """Open what tells the ambiguous area of a label image of all classes, where something does.

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
    """Return the objects of one image their classes, and tell the ambiguous area.

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
        Receives what is said of objects that are left out.
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
        class_masks=_ClassMasks(index, ids, class_index, scheme.names),
    )
    return labels, ambiguous


class _ClassMasks(Mapping[str, NDArray[np.int32]]):
    """A mask per class that has objects, made when it is asked for: most never are."""

    def __init__(
        self,
        index: NDArray[np.int32],
        ids: NDArray[np.int64],
        class_index: NDArray[np.int16],
        names: tuple[str, ...],
    ) -> None:
        self._index, self._ids, self._class_index = index, ids, class_index
        present = set(class_index.tolist())
        self._numbers = {name: n for n, name in enumerate(names, start=1) if n in present}

    def __getitem__(self, name: str) -> NDArray[np.int32]:
        own = np.where(self._class_index == self._numbers[name], self._ids, 0)
        return np.concatenate([[0], own]).astype(np.int32).take(self._index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def unknown_classes(
    ids: list[int],
    canonical: list[str | None],
    classes: Mapping[int, str],
    path: Path,
    scheme: ClassScheme,
) -> Iterator[Finding]:
    """Report the objects that are left out since nobody knows their class.

    Parameters
    ----------
    ids
        Of the objects in the pixels.
    canonical
        For each, the class as the scheme calls it; None where it is unknown.
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
            if (sidecar := stem.with_name(stem.name + suffix)).is_file():
                yield sidecar


def read_sidecar(
    path: Path, scheme: ClassScheme, findings: list[Finding] | None = None
) -> dict[int, str]:
    """Read a table of classes, CSV or JSON, whatever is unusual in it.

    Parameters
    ----------
    path
        The table; its ending tells which of the two.
    scheme
        The classes. A number instead of a name means the class at that place, from 1.
    findings
        Receives the ids that come twice.

    Returns
    -------
    dict
        Id -> name of the class as it is spelt there. Of an id that comes
        twice, the last row counts.

    Raises
    ------
    UnreadableFileError
        Where it is none, or cannot be read.
    """
    check_file(path, WHAT_TABLE)
    check_length(path, WHAT_TABLE)
    try:
        text = path.read_text(encoding="utf-8-sig")
        pairs = _json_pairs(text) if path.suffix.lower() == ".json" else _csv_pairs(text)
        rows = [(object_id(id_), _name(name)) for id_, name in pairs]
    except (OSError, ValueError, TypeError, KeyError, RecursionError, csv.Error) as error:
        raise UnreadableFileError(
            f"expected {WHAT_TABLE}: CSV with the header id,class, or JSON such as "
            f'{{"1": "{scheme.names[0]}"}}; found something else ({error})',
            path=path,
        ) from error
    classes = dict(rows)
    if findings is not None and len(classes) < len(rows):
        counts = Counter(id_ for id_, _ in rows)
        findings += repeated_ids(path, [id_ for id_, count in counts.items() if count > 1])
    return _numbers_named(classes, scheme)


def repeated_ids(path: Path, ids: Sequence[int]) -> list[Finding]:
    """Report the ids that a table of classes has twice; nothing where there are none."""
    if not ids:
        return []
    found = tuple(sorted(ids))
    message = (
        f"{len(found)} id(s) are in several rows of the table of classes, of which the last one "
        f"counts: {english_list(found)}; keep one row for each"
    )
    return [Finding(FindingKind.MALFORMED, message, path=path, count=len(found), object_ids=found)]


def _numbers_named(classes: Mapping[int, str], scheme: ClassScheme) -> dict[int, str]:
    """Replace numbers of classes by their names, as in images: 1 is the first class."""
    numbers = {str(n): name for n, name in enumerate(scheme.names, start=1)}
    return {id_: numbers.get(name, name) for id_, name in classes.items()}


def object_id(text: str) -> int:
    """Read an id; many programs write whole numbers as 1.0.

    Raises
    ------
    ValueError
        Where it is no whole number, or one that a floating-point number does not hold exactly.
    """
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer() or abs(number) > 2**53:
            raise
        return int(number)


def _name(value: object) -> str:
    name = "" if value is None else str(value).strip()
    name.encode()  # JSON can hold halves of characters, which nobody can show or write
    return name


def _json_pairs(text: str) -> list[tuple[Any, Any]]:
    objects: list[list[tuple[str, Any]]] = []

    def kept(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        objects.append(pairs)  # the outermost comes last; a dictionary has each key once
        return dict(pairs)

    table = json.loads(text, object_pairs_hook=kept)
    if not isinstance(table, dict):
        raise TypeError(f"not a table but a {type(table).__name__}")
    return objects[-1]


def _csv_pairs(text: str) -> list[tuple[str, str]]:
    first = text.split("\n", 1)[0]
    file = io.StringIO(text, newline="")
    rows = csv.DictReader(file, delimiter=max(",;\t", key=first.count))
    columns = {name.strip().casefold(): name for name in rows.fieldnames or ()}
    if missing := [name for name in ("id", "class") if name not in columns]:
        raise KeyError(f"no column {english_list(missing)}")
    return [
        (row[columns["id"]], row[columns["class"]])
        for row in rows
        if any(str(cell or "").strip() for cell in row.values())
    ]


def load_files(files: MaskFiles, scheme: ClassScheme, request: LoadRequest) -> LoadedMasks:
    """Read the objects of one side of a region; see `napari_panoptic.io.formats.format.Format`."""
    return read_labels(files, scheme, shape=request.shape, region=request.region, team=request.team)


def files_shape(files: MaskFiles) -> tuple[int, int] | None:
    """Return height and width in px without reading all, or None where nothing tells them."""
    for path in files.all_paths:
        if path.suffix.lower() not in SIDECAR_SUFFIXES:
            if is_zarr(path):
                return open_pixels(path, WHAT).shape
            height, width = pixel_shape(path, WHAT)[:2]
            return height, width
    return None
