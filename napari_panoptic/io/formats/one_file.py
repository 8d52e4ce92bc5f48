"""The format of one file with objects, the classes that it states, and its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.files.guard import check_file
from napari_panoptic.io.formats.class_tables import read_class_table
from napari_panoptic.io.formats.labels.coco_panoptic import panoptic_scheme
from napari_panoptic.io.formats.labels.label_images import sidecars_beside
from napari_panoptic.io.formats.labels.matlab import mat_variables
from napari_panoptic.io.formats.labels.ome_zarr import label_classes
from napari_panoptic.io.formats.polygons.tiatoolbox_zarr import holds_contours
from napari_panoptic.io.formats.recognise import foreign_tool, source_of
from napari_panoptic.io.formats.registry import form_of, known_forms
from napari_panoptic.io.pixels.decode import pixel_shape, read_pixels
from napari_panoptic.io.pixels.label_windows import has_labels, is_zarr
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme, Source

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
_OTHER_ENDINGS = (".ome.tif", ".ome.tiff", ".json", ".json.gz", ".mat")
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
_NO_NAME = "\0"


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
        if form.open is not None
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
    content = " and the content of none" if name.endswith((".json", ".json.gz", ".xml")) else ""
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
    """Return the format of a picture: a colour-coded mask or a label image."""
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

    Numbers of classes, which the file does not name, are texts such as ``1``.

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
    if source == Source.COCO_PANOPTIC:
        return panoptic_scheme(path).names
    if source == Source.LABELS:
        stated = label_classes(path) if is_zarr(path) else None
        if tables:
            # Number 1, which becomes the first class, remains a number.
            first_is_1 = ClassScheme(("1",), MONUSAC_CLASSES.colours[:1])
            stated = read_class_table(tables[0], first_is_1).as_mapping()
        names = list(dict.fromkeys(name.strip() for name in (stated or {}).values()))
        ambiguous = str(MONUSAC_CLASSES.ambiguous).casefold()
        return tuple(name for name in names if name and name.casefold() != ambiguous)
    form = form_of(source)
    if form is None or form.outlines is None:
        return ()
    # No object can have this name, which number 1 gets, so it is never taken for the file's own.
    recording = _RecordingScheme((_NO_NAME,), MONUSAC_CLASSES.colours[:1])
    of_item: dict[str, Any] = {} if form.items is None else {"item": item}
    form.outlines(path, recording, **of_item)
    # QuPath's most precise name comes first; elsewhere numbers come before their names.
    preferred = 0 if source == Source.GEOJSON else -1
    own = [[name for name in names if name != _NO_NAME] for names in recording.seen]
    chosen = [names[preferred] if names else "" for names in own]
    return tuple(dict.fromkeys(chosen)) if all(chosen) else ()


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
    known = {*_FURTHER_ENDINGS, *of_formats, *_PICTURES, *_OTHER_ENDINGS}
    return tuple(sorted(known, key=len, reverse=True))


def stem_of(path: Path) -> str:
    """Return the name of a file without any of its endings."""
    stem, ending = split_name(path)
    return stem_of(Path(stem)) if ending.casefold() in _all_endings() else stem
