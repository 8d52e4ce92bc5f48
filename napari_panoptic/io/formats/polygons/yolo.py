"""YOLO segmentation text: a line ``class x1 y1 x2 y2 …`` for each object, perhaps with a score.

Coordinates are shares of the width and height of the image, between the pixels; classes count
from 0. A score, as ``save_conf`` of Ultralytics adds it, makes the number of coordinates odd.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from napari_panoptic.io.formats.class_numbers import FromZero
from napari_panoptic.io.formats.polygons.outline import Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.values.cohort import Source

_LEAST = 6
"""Numbers of an outline; a box has four."""
_FARTHEST = 2.0
"""Shares of outlines that reach out of the image."""


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the outlines of a file in shares of the image; ids are the numbers of their lines."""
    with file.path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            kind, *cells = line.split()
            shares = np.array([float(cell) for cell in cells])
            if len(shares) < _LEAST:
                raise ValueError(f"line {number} is a box, which outlines no nucleus")
            score = float(shares[-1]) if len(shares) % 2 else None
            shares = shares[: len(shares) // 2 * 2]
            if not (np.abs(shares) <= _FARTHEST).all():
                raise ValueError(f"line {number} has coordinates that are not shares of the image")
            yield Outline([shares.reshape(-1, 2)], FromZero(kind), number, score)


FORMAT = polygon_format(
    OutlineReader(read_objects, in_shares=True),
    name=Source.YOLO,
    title="YOLO segmentation text",
    endings=(".yolo.txt",),
)
