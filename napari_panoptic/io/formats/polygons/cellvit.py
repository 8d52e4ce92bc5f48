"""CellViT: ``cells.json``, the contours and types of the cells of a slide.

CellViT writes it as ``{"wsi_metadata": …, "type_map": {"1": "Neoplastic", …}, "cells": [{"contour":
[[x, y], …], "type": 1, "type_prob": …}, …]}``; contours are those of OpenCV in px at full
resolution. Its ``cells.geojson`` is read as GeoJSON.
"""

from __future__ import annotations

from collections.abc import Iterator

from napari_panoptic.io.files.json_files import parsed_json
from napari_panoptic.io.formats.polygons.outline import Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.values.cohort import Source, Vertices


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the cells of a file.

    The class is the name that ``type_map`` has for the type; without it the number.
    """
    table = parsed_json(file.path.read_bytes())
    names = {str(key): str(name) for key, name in (table.get("type_map") or {}).items()}
    for cell in table["cells"]:
        if "contour" not in cell:
            raise ValueError(
                "its cells have no contour, as in cell_detection.json; use cells.json, which has"
            )
        kind = cell.get("type")
        yield Outline([cell["contour"]], names.get(str(kind), kind), score=cell.get("type_prob"))


FORMAT = polygon_format(
    OutlineReader(read_objects, vertices=Vertices.PIXEL_CENTRES),
    name=Source.CELLVIT,
    title="CellViT cells.json",
    endings=(".cellvit.json",),
)
