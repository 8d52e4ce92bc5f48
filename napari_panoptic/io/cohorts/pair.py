"""Label files of one image become a cohort: an annotation and predictions, without a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from napari_panoptic.common.errors import PanopticError, UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import composed, english_list
from napari_panoptic.io.files.guard import check_file
from napari_panoptic.io.formats.class_tables import read_class_table
from napari_panoptic.io.formats.labels.label_images import (
    area_beside,
    sidecars_beside,
)
from napari_panoptic.io.formats.labels.matlab import mat_variables
from napari_panoptic.io.formats.labels.ome_zarr import label_classes
from napari_panoptic.io.formats.polygons.tiatoolbox_zarr import holds_contours
from napari_panoptic.io.formats.recognise import foreign_tool, source_of
from napari_panoptic.io.formats.registry import form_of, known_forms
from napari_panoptic.io.images.slides import probe_image
from napari_panoptic.io.pixels.decode import pixel_shape, read_pixels
from napari_panoptic.io.pixels.label_windows import has_labels, is_zarr
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    ONLY_CLASS,
    ClassScheme,
    Cohort,
    MaskFiles,
    Region,
    Rgb,
    Source,
    Team,
)

PAIR = "pair"
"""Name of the only region of such a cohort, and of its patient."""

REFERENCE_WORDS = (
    *("annotation", "annot", "ground", "truth", "gt", "reference", "manual", "expert"),
    *("consensus", "label", "mask"),
)
"""Words in the names of files and folders that point to an annotation, the clearest first."""
_FURTHER_ENDINGS = {
    ".ome.zarr": Source.LABELS,
    ".zarr": Source.LABELS,
    ".npy": Source.LABELS,
    ".npz": Source.LABELS,
    ".roi": Source.IMAGEJ_ROI,
    ".geojson.gz": Source.GEOJSON,
    ".geojson.zip": Source.GEOJSON,
}
"""Endings of files that formats read but do not write."""
_PICTURES = (".tif", ".tiff", ".png", ".bmp", ".gif")
_SHARED_ENDINGS = (
    *_PICTURES,
    ".dcm",
    ".ann.dcm",
    ".seg.dcm",
    ".json",
    ".hovernet.json",
    ".mat",
    ".xml",
)
"""Endings of files whose content decides the format."""
_COLOURS: tuple[Rgb, ...] = (
    *MONUSAC_CLASSES.colours,
    *((255, 128, 0), (128, 0, 255), (0, 255, 255), (255, 0, 255)),
)


def format_of(path: Path) -> Source:
    """Recognise the format of one file with objects.

    Parameters
    ----------
    path
        A label image (TIFF, PNG, NPY, Zarr), a colour-coded mask, or a file of
        outlines in any format that is read.

    Raises
    ------
    UnreadableFileError
        For a missing file, or one of no known format.
    """
    name = path.name.casefold()
    if not name.endswith(".zarr"):
        check_file(path, "a file with objects")
        _refuse_foreign(path)
    elif is_zarr(path) and holds_contours(path):
        return Source.TIATOOLBOX_ZARR
    elif is_zarr(path) and not has_labels(path):
        raise UnreadableFileError(
            "expected a label image, found an OME-Zarr image without labels; give it as the image",
            path=path,
        )
    endings = {
        ending: form.source
        for form in reversed(list(known_forms().values()))  # so that built-in ones win
        if form.load is not None
        for ending in form.endings
        if ending not in _SHARED_ENDINGS
    }
    endings |= _FURTHER_ENDINGS
    if found := [ending for ending in endings if name.endswith(ending.casefold())]:
        return endings[max(found, key=len)]
    if name.endswith(_PICTURES):
        return _picture_format(path)
    if (recognised := source_of(path)) is not None:
        return recognised
    if name.endswith(".mat"):
        return Source.HOVERNET_MAT if "inst_map" in mat_variables(path) else Source.SUBMISSION
    content = " and the content of none" if name.endswith((".json", ".xml")) else ""
    raise UnreadableFileError(
        "expected a label image (TIFF, PNG, NPY, NPZ, OME-Zarr) or outlines (GeoJSON, ImageScope "
        "or ASAP XML, HALO, HoVer-Net, CellViT, COCO or DSA JSON, HoVer-Net .mat, ImageJ ROIs, "
        "Cellpose outlines, TIAToolbox .db, DICOM annotations, CSV of napari or NuCLS), "
        f"found a file with the ending '{path.suffix}'{content}. Convert it to one of these",
        path=path,
    )


def _refuse_foreign(path: Path) -> None:
    """Refuse a file of a known program that no format reads."""
    if what := foreign_tool(path):
        raise UnreadableFileError(
            f"expected a label image or outlines, found {what}",
            path=path,
        )


def _picture_format(path: Path) -> Source:
    """Return whether a picture is a colour-coded mask rather than a label image."""
    what = "a label image or a colour-coded mask"
    if path.suffix.casefold() in (".tif", ".tiff") and len(pixel_shape(path, what)) == 2:
        return Source.LABELS  # a slide's may be too large to decode
    pixels = read_pixels(path, what, colour=False)
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or pixels.dtype != np.uint8:
        return Source.LABELS
    known = (*MONUSAC_CLASSES.colours, *MONUSAC_CLASSES.border, *MONUSAC_CLASSES.background)
    found = np.unique(pixels[..., :3].reshape(-1, 3), axis=0)
    if {tuple(colour) for colour in found.tolist()} <= set(known):
        return Source.COLOUR_CODED
    raise UnreadableFileError(
        f"expected a label image (one number per object), found an RGB picture with {len(found)} "
        "colours. Save the labels as a single-channel image of integers",
        path=path,
    )


def pair_cohort(
    reference: Path,
    predictions: Sequence[Path],
    *,
    image: Path | None = None,
    classes: Sequence[str] | None = None,
    class_table: Path | None = None,
) -> Cohort:
    """Make a cohort of one region from the files of one image.

    Parameters
    ----------
    reference
        The annotation.
    predictions
        One file per team; teams are named after their files.
    image
        The image, or None. Outlines need it, unless a label image gives the size.
    classes
        Names of the classes. By default those that the files state, if all of
        them do; else every object has the one class `ONLY_CLASS`.
    class_table
        A table (columns id and class) for label images without one of their own.

    Returns
    -------
    Cohort
        With the region and the patient `PAIR`.

    Raises
    ------
    PanopticError
        For a file that is missing or of no known format, two predictions that
        are the same file, or outlines of an image of unknown size.
    """
    if len({path.resolve() for path in predictions}) < len(predictions):
        raise PanopticError("the same prediction was given twice; give each file once")
    sides: list[_Side] = []
    for path in (reference, *predictions):
        # A list of results names images by the numbers that the annotation gives them.
        names = [image.stem] if image is not None else []
        names += [side.item for side in sides if side.item is not None]
        sides.append(_Side.of(path, class_table, names))
    scheme, findings = _scheme(sides, classes)
    if image is None and not any(form_has_size(side.source) for side in sides):
        raise PanopticError(
            "outlines do not contain the size of the image: give the image (--image), or a label "
            "image for one of the sides",
            path=reference,
        )
    names = _team_names(predictions)
    return Cohort(
        name=f"{_stem(reference)} / {english_list(names)}",
        root=reference,
        scheme=scheme,
        regions=(Region(PAIR, PAIR, image, sides[0].files(scheme)),),
        teams=tuple(Team(name) for name in names),
        predictions={
            (name, PAIR): {side.source: side.files(scheme)}
            for name, side in zip(names, sides[1:], strict=True)
        },
        findings=tuple(findings),
    )


def pair_of_files(paths: Sequence[Path]) -> Cohort:
    """Make a cohort of files in any order: an annotation, predictions, and perhaps the image.

    The annotation is the file whose name says so (`REFERENCE_WORDS`), else the first.

    Raises
    ------
    PanopticError
        As :func:`pair_cohort`, and where fewer than two files hold objects.
    """
    objects: list[Path] = []
    images: list[Path] = []
    for path in paths:
        (objects if _holds_objects(path) else images).append(path)
    if len(objects) < 2 or len(images) > 1:
        raise PanopticError(
            "expected an annotation and at least one prediction (label images or outlines), and "
            f"at most one image; found {len(objects)} file(s) with objects and {len(images)} "
            "image(s)"
        )
    reference = min(objects, key=lambda path: _reference_rank(path.name))
    predictions = [path for path in objects if path is not reference]
    return pair_cohort(reference, predictions, image=images[0] if images else None)


def _holds_objects(path: Path) -> bool:
    """Return whether a file has objects; False for an image.

    Raises
    ------
    UnreadableFileError
        For a file that is neither.
    """
    try:
        format_of(path)
    except UnreadableFileError as error:
        try:
            probe_image(path)
        except PanopticError:
            raise error from None
        return False
    return True


def _reference_rank(name: str) -> int:
    words = (rank for rank, word in enumerate(REFERENCE_WORDS) if word in name.casefold())
    return next(words, len(REFERENCE_WORDS))


def form_has_size(source: Source) -> bool:
    """Return whether files of a format tell the size of the image."""
    form = form_of(source)
    return form is None or form.outlines is None


@dataclass(frozen=True)
class _Side:
    """One file with objects, its format, and the classes that it states."""

    path: Path
    source: Source
    tables: tuple[Path, ...]
    classes: tuple[str, ...]
    item: str | None

    @classmethod
    def of(cls, path: Path, class_table: Path | None, image_names: Sequence[str]) -> _Side:
        source = format_of(path)
        tables: tuple[Path, ...] = ()
        if source == Source.LABELS:
            beside = tuple(sidecars_beside(path))
            tables = beside[:1] or (() if class_table is None else (class_table,))
        item = _item_of(path, source, image_names)
        return cls(path, source, tables, stated_classes(path, source, tables, item), item)

    def files(self, scheme: ClassScheme) -> MaskFiles:
        """Return the files of this side, as readers take them."""
        paths: list[Path] = [self.path, *self.tables]
        if self.source == Source.LABELS and (area := area_beside(self.path)) is not None:
            paths.append(area)
        key = scheme.names[0] if self.source == Source.SUBMISSION else ""
        return MaskFiles(self.source, {key: tuple(paths)}, self.item)


def _item_of(path: Path, source: Source, image_names: Sequence[str]) -> str | None:
    """Return which of the images of a file is meant; None if it has only one."""
    form = form_of(source)
    items = [] if form is None or form.items is None else list(form.items(path))
    if len(items) < 2:
        return None
    keys = {composed(item.name).casefold(): item.key for item in items}
    for name in image_names:
        if (key := keys.get(composed(name).casefold())) is not None:
            return key
    raise UnreadableFileError(
        f"expected the objects of one image, or of several of which one is called like the file "
        f"that --image names; found {len(items)} images: {english_list([i.name for i in items])}",
        path=path,
    )


@dataclass(frozen=True)
class _RecordingScheme(ClassScheme):
    """Records the names by which a file calls the classes of its objects."""

    seen: dict[tuple[str, ...], None] = field(default_factory=dict)

    def first_known(self, names: Sequence[str]) -> str | None:
        """Record the names; every class but the ambiguous one is taken for the only class."""
        is_ambiguous = any(super(_RecordingScheme, self).canonical(n) for n in names)
        if not is_ambiguous:
            self.seen[tuple(name.strip() for name in names)] = None
        return self.ambiguous if is_ambiguous else self.names[0]


def stated_classes(
    path: Path,
    source: Source,
    tables: tuple[Path, ...] | None = None,
    item: str | None = None,
) -> tuple[str, ...]:
    """List the classes that a file states, in its order; empty unless every object has one.

    Parameters
    ----------
    path, source
        The file and its format.
    tables
        Tables of classes of a label image; those beside it where None.
    item
        Which of the images of a file is meant; None for the only one.

    Raises
    ------
    UnreadableFileError
        For a file or table that cannot be read.
    """
    if tables is None:
        tables = tuple(sidecars_beside(path)) if source == Source.LABELS else ()
    if source == Source.COLOUR_CODED:
        return MONUSAC_CLASSES.names
    if source == Source.LABELS:
        stated = label_classes(path) if is_zarr(path) else None
        if tables:
            one_class = ClassScheme((ONLY_CLASS,), _COLOURS[:1])
            stated = read_class_table(tables[0], one_class).as_mapping()
        names = list(dict.fromkeys(name.strip() for name in (stated or {}).values()))
        ambiguous = str(MONUSAC_CLASSES.ambiguous).casefold()
        return tuple(name for name in names if name and name.casefold() != ambiguous)
    form = form_of(source)
    if form is None or form.outlines is None:
        return ()
    # A name that no object can have, so that it is never taken for the file's own.
    recording = _RecordingScheme(("\0",), _COLOURS[:1])
    of_item: dict[str, Any] = {} if form.items is None else {"item": item}
    form.outlines(path, recording, **of_item)
    # QuPath's most precise name comes first; elsewhere numbers come before what they mean.
    preferred = 0 if source == Source.GEOJSON else -1
    chosen = [names[preferred] if names else "" for names in recording.seen]
    if any(not name or name.isdigit() for name in chosen):
        return ()
    return tuple(dict.fromkeys(chosen))


def _scheme(
    sides: Sequence[_Side], classes: Sequence[str] | None
) -> tuple[ClassScheme, list[Finding]]:
    """Decide on the classes; see `pair_cohort`."""
    if classes:
        return scheme_of(list(classes)), []
    if all(side.classes for side in sides):
        return scheme_of([name for side in sides for name in side.classes]), []
    findings = [
        Finding(
            FindingKind.FALLBACK,
            f"{side.path.name} states the classes {english_list(side.classes)}, and not every "
            "other file states classes: all objects were taken for one class. Give --classes, or "
            "a table of classes for each label image",
            path=side.path,
        )
        for side in sides
        if side.classes
    ]
    return ClassScheme((ONLY_CLASS,), _COLOURS[:1], default=ONLY_CLASS), findings


def scheme_of(names: Sequence[str]) -> ClassScheme:
    """Make a scheme of class names; some may differ in case only."""
    spellings: dict[str, str] = {}
    for name in names:
        spellings.setdefault(name.casefold(), name)
    unique = tuple(spellings.values())
    if {name.casefold() for name in unique} <= {n.casefold() for n in MONUSAC_CLASSES.names}:
        return MONUSAC_CLASSES
    colours = tuple(_COLOURS[n % len(_COLOURS)] for n in range(len(unique)))
    return ClassScheme(unique, colours)


def _team_names(paths: Sequence[Path]) -> list[str]:
    """Name teams after their files, or after their folders where files share a name."""
    places = [(_stem(path), *path.absolute().parent.parts[::-1]) for path in paths]
    for level in range(min(len(place) for place in places)):
        names = [place[level] for place in places]
        if len(set(names)) == len(names):
            return names
    # No single folder distinguishes them: use the paths.
    return [str(path) for path in paths]


def split_name(path: Path) -> tuple[str, str]:
    """Split a file's name into stem and ending, as ``("a", ".ome.zarr")``."""
    name = path.name
    for ending in _all_endings():
        if name.casefold().endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)], name[-len(ending) :]
    return path.stem, path.suffix


@cache
def _all_endings() -> tuple[str, ...]:
    formats = [form for form in known_forms().values() if form.outlines is not None]
    of_formats = (ending for form in formats for ending in form.endings)
    known = {*_FURTHER_ENDINGS, *of_formats, *_PICTURES, ".ome.tif", ".ome.tiff", ".json", ".mat"}
    return tuple(sorted(known, key=len, reverse=True))


def _stem(path: Path) -> str:
    stem, ending = split_name(path)
    return _stem(Path(stem)) if ending.casefold() in _all_endings() else stem
