"""JSON of the Digital Slide Archive and HistomicsUI: the elements of annotations.

An annotation is ``{"name": …, "elements": [{"type": "polyline", "closed": true, "points": [[x, y,
z], …], "holes": …, "group": …, "label": {"value": …}}, …]}`` in px at full resolution. A file has
one or a list of them; as the server exports them, each within ``"annotation"``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.files.json_files import parsed_json
from napari_panoptic.io.formats.polygons.outline import LeftOut, Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.io.formats.polygons.shapes import ellipse, rectangle
from napari_panoptic.values.cohort import Source


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the closed outlines of a file: polylines, rectangles, ellipses and circles.

    Points, arrows, open lines, grids, heat maps and images are left out, and listed. The class is
    the group of an element, else its label, else the name of its annotation. Ids are running
    numbers.
    """
    table = parsed_json(file.path.read_bytes())
    planes: set[float] = set()
    for outer in table if isinstance(table, list) else [table]:
        annotation = outer.get("annotation", outer)
        for element in annotation["elements"]:
            if rings := _rings(element):
                planes |= _planes(element)
                if len(planes) > 1:
                    raise ValueError("its elements lie on several planes (z); keep those of one")
                label = (element.get("label") or {}).get("value")
                yield Outline(rings, element.get("group") or label or annotation.get("name"))
            else:
                kind = str(element["type"])[:40]
                is_line = kind == "polyline"
                what = "open line(s)" if is_line else "element(s) without an area"
                yield LeftOut(f"{what if is_line else f'{what} ({kind})'} left out")


def _rings(element: dict[str, Any]) -> list[NDArray[np.float64]]:
    """Return the outline of an element and its holes; empty if it has no area."""
    kind = element["type"]
    if kind == "polyline" and element.get("closed"):
        return [_points(element["points"]), *map(_points, element.get("holes") or ())]
    if kind == "circle":
        radius = float(element["radius"])
        return [ellipse(_centre(element), (radius, radius))]
    if kind in ("rectangle", "ellipse"):
        radii = float(element["width"]) / 2, float(element["height"]) / 2
        shape = rectangle if kind == "rectangle" else ellipse
        return [shape(_centre(element), radii, float(element.get("rotation") or 0))]
    return []


def _planes(element: dict[str, Any]) -> set[float]:
    """Return the z of the points of an element."""
    points = [*(element.get("points") or ()), element.get("center") or ()]
    return {float(point[2]) for point in points if len(point) > 2}


def _points(points: Any) -> NDArray[np.float64]:
    array = np.array(points or np.zeros((0, 3)), np.float64)
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise ValueError("points are lists [x, y, z]")
    return array[:, :2]


def _centre(element: dict[str, Any]) -> tuple[float, float]:
    x, y = element["center"][:2]
    return float(x), float(y)


FORMAT = polygon_format(
    OutlineReader(read_objects, vertices=None),
    name=Source.DSA,
    title="DSA and HistomicsUI JSON",
    endings=(".dsa.json",),
)
