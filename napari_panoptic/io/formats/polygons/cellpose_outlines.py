"""Outlines of Cellpose: ``REGION_cp_outlines.txt``, a line ``x1,y1,x2,y2,…`` for each object.

They are contours of OpenCV, px of the image. Objects whose contour has at most four points have an
empty line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from napari_panoptic.io.formats.polygons.polygon_format import Outline


def read_objects(path: Path) -> Iterator[Outline]:
    """Yield the objects of a file; ids are the numbers of their lines, and there are no classes."""
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            cells = line.split(",") if line.strip() else []
            points = np.array([float(cell) for cell in cells])
            if len(points) % 2:
                raise ValueError(f"line {number} is no list x,y,x,y,…")
            yield [points.reshape(-1, 2)], None, number
