"""Objects somebody edited become a file, in the form that its name asks for."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from napari_panoptic.errors import PanopticError, english_list
from napari_panoptic.evaluation.labels import LabelImage
from napari_panoptic.io._files import replaced_when_complete
from napari_panoptic.io.geojson import UnwritableFileError, objects_and_areas, write_geojson
from napari_panoptic.io.imagescope import write_annotation
from napari_panoptic.io.label_images import write_labels
from napari_panoptic.io.outlines import imagescope_polygons
from napari_panoptic.io.registry import Objects
from napari_panoptic.regions import Cohort

AMBIGUOUS_SUFFIX = "_ambiguous.tif"
"""Ending of the mask of the ambiguous area beside a label image."""


def write_objects(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write objects as label TIFF, GeoJSON or ImageScope XML.

    A label TIFF gets a table of classes beside it, and a mask of the ambiguous
    area where there is one.

    Parameters
    ----------
    path
        Where to write; the ending tells the form. Existing files are replaced.
    objects
        What to write.

    Returns
    -------
    tuple of Path
        Every file that was written, the one asked for first.

    Raises
    ------
    PanopticError
        For an ending that stands for no form.
    UnwritableFileError
        Where a file cannot be written; one that was there is as it was.
    """
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise PanopticError(
            f"the ending of the file's name tells its form: expected "
            f"{english_list(list(_WRITERS))}, found '{path.suffix}'",
            path=path,
        )
    objects = replace(objects, labels=_without_erased(objects.labels))
    try:
        return writer(path, objects)
    except OSError as error:
        raise UnwritableFileError(
            f"the file cannot be written ({error.strerror or error}); choose another place, or "
            f"free some space. Nothing that was drawn is lost",
            path=path,
        ) from error


def _without_erased(labels: LabelImage) -> LabelImage:
    """Leave out objects that have no pixel left, and sort the others by id."""
    names = dict(zip(labels.ids.tolist(), labels.class_names_of_objects().tolist(), strict=True))
    return LabelImage.from_array(labels.id_image(), names, labels.class_names)


def files_of(cohort: Cohort) -> frozenset[Path]:
    """List the files of a cohort that are never to be written over."""
    paths = {path for region in cohort.regions if (path := region.image) is not None}
    for region in cohort.regions:
        paths.update(() if region.reference is None else region.reference.all_paths)
    for forms in cohort.predictions.values():
        for files in forms.values():
            paths.update(files.all_paths)
    return frozenset(path.resolve() for path in paths)


def _write_tiff(path: Path, objects: Objects) -> tuple[Path, ...]:
    table, written = path.with_suffix(".csv"), [path]
    names = objects.labels.class_names_of_objects()
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("id", "class"))
    writer.writerows(zip(objects.labels.ids.tolist(), names, strict=True))
    # The classes first: a label image without them cannot be read.
    with replaced_when_complete(table) as file:
        file.write(lines.getvalue().encode("utf-8"))
    written.append(table)
    if objects.ambiguous is not None:
        mask = path.with_name(path.stem + AMBIGUOUS_SUFFIX)
        write_labels(mask, objects.ambiguous.astype(np.uint8))
        written.append(mask)
    write_labels(path, objects.labels.id_image())
    return tuple(written)


def _write_geojson(path: Path, objects: Objects) -> tuple[Path, ...]:
    write_geojson(path, objects_and_areas(objects), scheme=objects.scheme)
    return (path,)


def _write_xml(path: Path, objects: Objects) -> tuple[Path, ...]:
    polygons = imagescope_polygons(
        objects.labels, ambiguous=objects.ambiguous, ambiguous_class=objects.ambiguous_class
    )
    write_annotation(path, polygons, objects.mpp)
    return (path,)


_WRITERS: Mapping[str, Callable[[Path, Objects], tuple[Path, ...]]] = {
    ".tif": _write_tiff,
    ".tiff": _write_tiff,
    ".geojson": _write_geojson,
    ".json": _write_geojson,
    ".xml": _write_xml,
}
