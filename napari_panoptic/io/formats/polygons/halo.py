"""HALO (Indica Labs) ``.annotations``: outlines of one region in layers.

``Annotations/Annotation[@Name]/Regions/Region[@Type, @NegativeROA]/Vertices/V[@X, @Y]``, in px at
full resolution.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.files.xml_files import Element, xml_root
from napari_panoptic.io.formats.polygons.model import LARGEST_COORDINATE
from napari_panoptic.io.formats.polygons.outline import LeftOut, Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.io.formats.polygons.shapes import contains, ellipse, rectangle
from napari_panoptic.values.cohort import Source

_POLYGON, _RECTANGLE, _ELLIPSE = "Polygon", "Rectangle", "Ellipse"
_OUTSIDE = "negative region(s) outside of all regions of their layer left out"
_MOST_TESTS = 10**8
"""Largest number of comparisons of a hole with the box of a region, in a layer."""


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the outlines of a file; rulers, pins and texts are left out, and listed.

    The class is the name of the layer. A negative region is a hole in the last region of its
    layer that contains its first vertex; outside of all, it is left out. Rectangles and
    ellipses are given by two corners of their boxes. Ids are running numbers.
    """
    root = xml_root(file.path)
    if root.tag != "Annotations":
        raise ValueError(f"its root element is <{str(root.tag)[:60]}>, not <Annotations>")
    for layer in root.iterfind("Annotation"):
        regions: list[list[NDArray[np.float64]]] = []
        holes: list[NDArray[np.float64]] = []
        for region in layer.iterfind("Regions/Region"):
            if (kind := region.get("Type")) not in (_POLYGON, _RECTANGLE, _ELLIPSE):
                yield LeftOut(f"region(s) without an area ({str(kind)[:40]}) left out")
            elif region.get("NegativeROA") == "1":
                holes.append(_ring(region))
            else:
                regions.append([_ring(region)])
        for _ in range(_add_holes(regions, holes)):
            yield LeftOut(_OUTSIDE)
        for rings in regions:
            yield Outline(rings, layer.get("Name"))


def _add_holes(regions: list[list[NDArray[np.float64]]], holes: list[NDArray[np.float64]]) -> int:
    """Add holes to the regions that contain them; return how many are in none."""
    if len(regions) * len(holes) > _MOST_TESTS:
        raise ValueError(f"a layer has {len(regions)} regions and {len(holes)} negative ones")
    if not regions:
        return len(holes)
    outside = 0
    boxes = np.array([_box(rings[0]) for rings in regions])
    for hole in holes:
        if not len(hole):
            outside += 1
            continue
        x, y = hole[0]
        near = (boxes[:, 0] <= x) & (boxes[:, 1] <= y) & (x <= boxes[:, 2]) & (y <= boxes[:, 3])
        for place in np.flatnonzero(near)[::-1].tolist():
            if contains(regions[place][0], (float(x), float(y))):
                regions[place].append(hole)
                break
        else:
            outside += 1
    return outside


def _box(ring: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """Return the least and largest x and y of a region, NaN if it has none or is damaged."""
    if not len(ring) or not (np.abs(ring) <= LARGEST_COORDINATE).all():
        return (np.nan,) * 4
    (x0, y0), (x1, y1) = ring.min(axis=0).tolist(), ring.max(axis=0).tolist()
    return x0, y0, x1, y1


def _ring(region: Element) -> NDArray[np.float64]:
    points = [
        (float(at.attrib["X"]), float(at.attrib["Y"])) for at in region.iterfind("Vertices/V")
    ]
    kind = region.get("Type")
    if kind == _POLYGON:
        return np.array(points, np.float64).reshape(-1, 2)
    if len(points) != 2:
        raise ValueError(f"{kind} regions have two vertices, found one with {len(points)}")
    (x0, y0), (x1, y1) = points
    shape = rectangle if kind == _RECTANGLE else ellipse
    return shape(((x0 + x1) / 2, (y0 + y1) / 2), (abs(x1 - x0) / 2, abs(y1 - y0) / 2))


FORMAT = polygon_format(
    OutlineReader(read_objects, vertices=None),
    name=Source.HALO,
    title="HALO annotations",
    endings=(".annotations",),
)
