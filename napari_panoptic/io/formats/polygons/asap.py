"""ASAP XML, as CAMELYON and TIGER have it: polygons of one region.

``ASAP_Annotations/Annotations/Annotation[@PartOfGroup, @Type]/Coordinates/Coordinate[@X, @Y,
@Order]``, in px at full resolution.
"""

from __future__ import annotations

from collections.abc import Iterator

from napari_panoptic.io.files.xml_files import xml_root
from napari_panoptic.io.formats.polygons.outline import LeftOut, Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.values.cohort import Source

ROOT = "ASAP_Annotations"
OUTLINES = ("Polygon", "Rectangle", "Spline")
"""Types with an area; points and measurements have none."""
NO_GROUP = "None"
"""The group of annotations that are in none."""


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the outlines of a file; points and measurements are left out, and listed.

    The class is the group, or, without a group, none. Ids are running numbers.
    """
    root = xml_root(file.path)
    if root.tag != ROOT:
        raise ValueError(f"its root element is <{str(root.tag)[:60]}>, not <{ROOT}>")
    for annotation in root.iterfind("Annotations/Annotation"):
        if (kind := annotation.get("Type")) not in OUTLINES:
            yield LeftOut(f"annotation(s) without an area ({str(kind)[:40]}) left out")
            continue
        points = [
            (int(at.get("Order", place)), float(at.attrib["X"]), float(at.attrib["Y"]))
            for place, at in enumerate(annotation.iterfind("Coordinates/Coordinate"))
        ]
        group = annotation.get("PartOfGroup", NO_GROUP)
        ring = [(x, y) for _, x, y in sorted(points, key=lambda point: point[0])]
        yield Outline([ring], None if group == NO_GROUP else group)


FORMAT = polygon_format(
    OutlineReader(read_objects, vertices=None),
    name=Source.ASAP,
    title="ASAP XML",
    endings=(".asap.xml",),
)
