"""CellViT: ``cells.json``, the contours and types of the cells of a slide.

CellViT writes it as ``{"wsi_metadata": …, "type_map": {"1": "Neoplastic", …}, "cells": [{"contour":
[[x, y], …], "type": 1, "type_prob": …}, …]}``; contours are those of OpenCV in px at full
resolution. Its ``cells.geojson`` is read as GeoJSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from napari_panoptic.io.files.json_files import parsed_json
from napari_panoptic.io.formats.polygons.polygon_format import Outline


def read_objects(path: Path) -> Iterator[Outline]:
    """Yield the cells of a file.

    The class is the name that ``type_map`` has for the type; without it the number.
    """
    table = parsed_json(path.read_bytes())
    names = {str(key): str(name) for key, name in (table.get("type_map") or {}).items()}
    for cell in table["cells"]:
        if "contour" not in cell:
            raise ValueError(
                "its cells have no contour, as in cell_detection.json; use cells.json, which has"
            )
        kind = cell.get("type")
        yield [cell["contour"]], names.get(str(kind), kind), None, cell.get("type_prob")
