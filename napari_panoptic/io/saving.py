"""Objects somebody edited become a file, in the form that its name asks for."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.errors import PanopticError, english_list
from napari_panoptic.evaluation.labels import LabelImage
from napari_panoptic.evaluation.vocabulary import Side
from napari_panoptic.io._files import replaced_together
from napari_panoptic.io._kernels import components
from napari_panoptic.io.geojson import UnwritableFileError, geo_objects, write_geojson
from napari_panoptic.io.imagescope import write_annotation
from napari_panoptic.io.label_images import write_label_pixels
from napari_panoptic.io.outlines import imagescope_polygons
from napari_panoptic.regions import ClassScheme, Cohort

AMBIGUOUS_SUFFIX = "_ambiguous.tif"
"""Ending of the mask of the ambiguous area beside a label image."""


@dataclass(frozen=True, eq=False)
class Objects:
    """The objects of one side of a region, ready to be written.

    Parameters
    ----------
    labels
        The objects.
    side
        Which side they are on.
    region, team
        Where they are from; the team is empty for the annotation.
    ambiguous
        bool image (y, x) of the excluded area, or None where there is none, or
        none to be written.
    scheme
        The classes.
    mpp
        Micrometres per pixel, or None.
    """

    labels: LabelImage
    side: Side
    region: str
    team: str
    ambiguous: NDArray[np.bool_] | None
    scheme: ClassScheme
    mpp: float | None

    @property
    def ambiguous_class(self) -> str:
        """What the excluded area is called in files."""
        return self.scheme.ambiguous or "Ambiguous"


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
    names = objects.labels.class_names_of_objects()
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("id", "class"))
    writer.writerows(zip(objects.labels.ids.tolist(), names, strict=True))
    paths = [path, path.with_suffix(".csv")]
    if objects.ambiguous is not None:
        paths.append(path.with_name(path.stem + AMBIGUOUS_SUFFIX))
    # Together: ids mean something else under another table of classes.
    with replaced_together(paths) as (image, table, *areas):
        table.write(lines.getvalue().encode("utf-8"))
        for file in areas:
            write_label_pixels(file, np.asarray(objects.ambiguous, np.uint8))
        write_label_pixels(image, objects.labels.id_image())
    return tuple(paths)


def _write_geojson(path: Path, objects: Objects) -> tuple[Path, ...]:
    where = {"side": objects.side, "region": objects.region, "team": objects.team}
    items = list(geo_objects(objects.labels, **where))  # type: ignore[arg-type]
    if objects.ambiguous is not None:
        areas = _areas(objects.ambiguous, objects.ambiguous_class)
        items += geo_objects(areas, side=objects.side, region=objects.region, team="ambiguous")
    write_geojson(path, items, scheme=objects.scheme)
    return (path,)


def _areas(mask: NDArray[np.bool_], name: str) -> LabelImage:
    """Take every connected piece of an area for an object."""
    pieces = components(np.ascontiguousarray(mask).view(np.uint8))
    count = int(pieces.max(initial=0))
    return LabelImage.from_array(pieces, dict.fromkeys(range(1, count + 1), name), (name,))


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
