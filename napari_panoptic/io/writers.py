"""Objects become one file per region, in each form that is written so.

Every function takes a path and objects, and gives the files that it wrote,
the one asked for first; existing files are replaced when the new ones are complete.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.evaluation.labels import LabelImage
from napari_panoptic.io._files import replaced_together
from napari_panoptic.io._kernels import components
from napari_panoptic.io.geojson import geo_objects, write_geojson
from napari_panoptic.io.imagescope import write_annotation
from napari_panoptic.io.label_images import AMBIGUOUS_SUFFIX, write_label_pixels
from napari_panoptic.io.outlines import imagescope_polygons
from napari_panoptic.io.registry import Objects


def write_label_tiff(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write a label TIFF, a table of classes and a mask of the excluded area, if there is one."""
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


def write_features(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write GeoJSON."""
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


def write_xml(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write ImageScope XML."""
    polygons = imagescope_polygons(
        objects.labels, ambiguous=objects.ambiguous, ambiguous_class=objects.ambiguous_class
    )
    write_annotation(path, polygons, objects.mpp)
    return (path,)
