"""Tables of NuCLS and of programs in its tradition (MuTILs, HistomicsTK): a row for each nucleus.

The columns ``coords_x`` and ``coords_y`` hold the vertices, separated by commas, in px of the image
of the field; ``type``, if there is one, is ``polyline``, or ``rectangle`` for a nucleus of which
only a box was annotated. NuCLS has a class on three levels, other tables have a ``group``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator

import numpy as np

from napari_panoptic.io.formats.polygons.outline import Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.values.cohort import Source, Vertices

_CLASSES = ("group", "raw_classification", "super_classification", "main_classification")
_BOX = "rectangle"
_FIELD = "fov"
"""The class of the outline of the whole field."""


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the nuclei of a file; ids are running numbers.

    The class is the first of the three levels that the cohort knows. A box outlines no nucleus: its
    class is ``rectangle``, so that it is left out and listed unless the cohort has an alias for it.
    """
    with file.path.open(encoding="utf-8-sig", newline="") as lines:
        for row in csv.DictReader(lines, strict=True):
            names = tuple(name for column in _CLASSES if (name := row.get(column)))
            if names and names[0].casefold().startswith(_FIELD):
                continue
            if row.get("type") == _BOX:
                low_x, low_y, high_x, high_y = (
                    float(row[name]) for name in ("xmin", "ymin", "xmax", "ymax")
                )
                corners = [(low_x, low_y), (high_x, low_y), (high_x, high_y), (low_x, high_y)]
                yield Outline([corners], _BOX)
                continue
            x, y = (np.array(row[name].split(","), np.float64) for name in ("coords_x", "coords_y"))
            yield Outline([np.stack([x, y], axis=1)], names)


FORMAT = polygon_format(
    OutlineReader(read_objects, vertices=Vertices.PIXEL_CENTRES),
    name=Source.NUCLS,
    title="NuCLS table",
    endings=(".nucls.csv",),
)
