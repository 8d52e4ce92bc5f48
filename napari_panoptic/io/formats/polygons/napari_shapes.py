"""The CSV of a Shapes layer of napari: a row for each vertex.

Its columns are ``index``, ``shape-type``, ``vertex-index`` and ``axis-0``, ``axis-1`` …, of which
the last two are y and x. The centre of a pixel has whole numbers: the first begins at -0.5.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from itertools import groupby

import numpy as np

from napari_panoptic.io.formats.polygons.outline import Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.io.formats.polygons.shapes import Ring, ellipse
from napari_panoptic.values.cohort import Source

_AREAS = ("polygon", "rectangle", "ellipse")


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the shapes with an area; ids are those of napari plus one, and there are no classes.

    Lines and paths have no area. They get their type as class, so that they are left out and
    listed.
    """
    with file.path.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines, strict=True)
        *planes, y, x = [name for name in rows.fieldnames or () if name.startswith("axis-")]
        first: list[str] | None = None
        for index, group in groupby(rows, key=lambda row: row["index"]):
            vertices = list(group)
            for row in vertices:
                first = first or [row[name] for name in planes]
                if [row[name] for name in planes] != first:
                    raise ValueError("its shapes lie on several planes; a region is one plane")
            ring = np.array([(float(row[x]), float(row[y])) for row in vertices]) + 0.5
            kind, id_ = vertices[0]["shape-type"], int(float(index)) + 1
            if kind not in _AREAS:
                yield Outline([], kind, id_)
            else:
                yield Outline([_ellipse(ring) if kind == "ellipse" else ring], id=id_)


def _ellipse(corners: Ring) -> Ring:
    """Return the ellipse that fills a rectangle, which may be turned."""
    if len(corners) != 4:
        raise ValueError("an ellipse has four corners")
    side, other = corners[1] - corners[0], corners[2] - corners[1]
    centre_x, centre_y = corners.mean(axis=0).tolist()
    radii = math.hypot(*side) / 2, math.hypot(*other) / 2
    return ellipse((centre_x, centre_y), radii, math.atan2(side[1], side[0]))


FORMAT = polygon_format(
    OutlineReader(read_objects),
    name=Source.NAPARI_SHAPES,
    title="Shapes of napari (CSV)",
    endings=(".shapes.csv",),
)
