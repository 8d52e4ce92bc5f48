"""Outlines of Cellpose: ``REGION_cp_outlines.txt``, a line ``x1,y1,x2,y2,…`` for each object.

They are contours of OpenCV, px of the image. Objects whose contour has at most four points have an
empty line.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from napari_panoptic.io.formats.polygons.outline import Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.values.cohort import Source, Vertices


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the objects of a file; ids are the numbers of their lines, and there are no classes."""
    with file.path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            cells = line.split(",") if line.strip() else []
            points = np.array([float(cell) for cell in cells])
            if len(points) % 2:
                raise ValueError(f"line {number} is not a list x,y,x,y,…")
            yield Outline([points.reshape(-1, 2)], id=number)


FORMAT = polygon_format(
    OutlineReader(read_objects, vertices=Vertices.PIXEL_CENTRES),
    name=Source.CELLPOSE_OUTLINES,
    title="Cellpose outlines",
    endings=("_cp_outlines.txt",),
)
