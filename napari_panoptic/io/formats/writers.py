"""Objects become one file per region, in each form that is written so.

Every function takes a path and objects, and gives the files that it wrote,
the one asked for first; existing files are replaced when the new ones are complete.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from napari_panoptic.io.files import replaced_together
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.labels.label_images import AMBIGUOUS_SUFFIX, write_label_pixels
from napari_panoptic.io.formats.polygons.geojson_writer import objects_and_areas, write_geojson
from napari_panoptic.io.formats.polygons.imagescope import write_annotation
from napari_panoptic.io.formats.polygons.imagescope_edits import write_edited
from napari_panoptic.io.formats.polygons.trace import imagescope_polygons
from napari_panoptic.nuclei.values.cohort import Source


def write_label_tiff(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write a label TIFF, a table of classes and a mask of the excluded area, if there is one."""
    names = objects.labels.class_names_of_objects()
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("id", "class"))
    writer.writerows(zip(objects.labels.ids.tolist(), names, strict=True))
    table_path, mask = beside_label_tiff(path)
    paths = [path, table_path]
    if objects.ambiguous is not None:
        paths.append(mask)
    # Together: ids mean something else under another table of classes.
    with replaced_together(paths) as (image, table, *areas):
        table.write(lines.getvalue().encode("utf-8"))
        for file in areas:
            write_label_pixels(file, np.asarray(objects.ambiguous, np.uint8))
        write_label_pixels(image, objects.labels.id_image())
    if objects.ambiguous is None:
        mask.unlink(missing_ok=True)  # of the label image that was replaced
    return tuple(paths)


def beside_label_tiff(path: Path) -> tuple[Path, Path]:
    """Return the table of classes and the mask of the excluded area that belong to a label TIFF."""
    return path.with_suffix(".csv"), path.with_name(path.stem + AMBIGUOUS_SUFFIX)


def write_features(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write GeoJSON."""
    write_geojson(path, objects_and_areas(objects), scheme=objects.scheme)
    return (path,)


def write_xml(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write ImageScope XML; objects from such a file into a copy of it."""
    original = objects.original
    is_edited = original is not None and original.source == Source.IMAGESCOPE
    if original is not None and is_edited and write_edited(path, original.all_paths[0], objects):
        return (path,)
    polygons = imagescope_polygons(
        objects.labels, ambiguous=objects.ambiguous, ambiguous_class=objects.ambiguous_class
    )
    write_annotation(path, polygons, objects.mpp)
    return (path,)
