"""An ImageScope annotation after editing: the rest stays as it was in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.files.xml_files import xml_root
from napari_panoptic.io.formats.format import LoadedMasks, Objects
from napari_panoptic.io.formats.polygons.imagescope import (
    LAYER_ATTRIBUTES,
    READER,
    layer_names,
    traced_outlines,
    vertex_text,
    write_annotation,
)
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, Polygons, class_number
from napari_panoptic.io.formats.polygons.polygon_format import polygon_format
from napari_panoptic.io.formats.polygons.rasterize import rasterize_polygons
from napari_panoptic.io.formats.polygons.trace import connected_areas, lines_of
from napari_panoptic.kernels.fill import draw, draw_where_free
from napari_panoptic.values.cohort import ClassScheme, Source

_MEASURES = ("Length", "Area", "LengthMicrons", "AreaMicrons")
"""Measures of a region, which ImageScope computes again if they are 0."""


def write_files(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write the objects of a region; those read from ImageScope XML into a copy of that file."""
    original = objects.original
    # Outlines of a slide, and those that were swapped, scaled or moved, are in other px.
    is_of_region = original is not None and original.patch is None and not original.rules.is_placed
    is_edited = original is not None and original.source == Source.IMAGESCOPE and is_of_region
    if original is not None and is_edited and write_edited(path, original.all_paths[0], objects):
        return (path,)
    write_annotation(path, traced_outlines(objects), objects.mpp)
    return (path,)


def write_edited(path: Path, original: Path, objects: Objects) -> bool:
    """Write objects into a copy of the annotation that they come from.

    Layers, their colours and attributes, and all attributes of a region stay as
    they are, also of regions that show no object: without a pixel, covered, or
    of an unknown class. An object is redrawn if its outline touches a pixel that
    changed; a covered region that does so is removed, since it could show.

    Parameters
    ----------
    path
        The file to write; an existing one is replaced when the new one is complete.
    original
        The ImageScope file in which the ids of the objects are running numbers.
    objects
        The objects that the file shows when it is read and drawn again.

    Returns
    -------
    bool
        False if the original cannot be copied, and nothing was written.
    """
    polygons = READER.outlines(original, objects.scheme).polygons
    try:
        root = xml_root(original)
    except ValueError:
        return False
    tree = _Tree(root, objects.scheme)
    _edit(tree, polygons, objects)
    with replaced_when_complete(path) as file:
        file.write(etree.tostring(tree.root, encoding="utf-8", xml_declaration=True))
    return True


class _Tree:
    """The layers and regions of a file."""

    def __init__(self, root: etree._Element, scheme: ClassScheme) -> None:
        self.root, self._scheme = root, scheme
        self._layers: list[tuple[etree._Element, int]] = [
            (layer, class_number(_names(layer), scheme)) for layer in root.iter("Annotation")
        ]
        self.regions = list(self._in_order())

    def _in_order(self) -> Iterator[etree._Element]:
        """Yield the regions in the order in which they are numbered when the file is read."""
        for region in self.root.iter("Region"):
            parent = region.getparent()
            if parent is not None and parent.tag == "Regions":
                layer = parent.getparent()
                if layer is not None and layer.tag == "Annotation":
                    yield region

    def add(self, element: etree._Element, class_index: int) -> None:
        """Append a region to the last layer of its class; add a layer if there is none."""
        layers = [layer for layer, index in self._layers if index == class_index]
        layer = layers[-1] if layers else self._new_layer(class_index)
        parent = layer.find("Regions")
        (etree.SubElement(layer, "Regions") if parent is None else parent).append(element)

    def _new_layer(self, class_index: int) -> etree._Element:
        number = str(len(self._layers) + 1)
        layer = etree.SubElement(self.root, "Annotation", {"Id": number} | LAYER_ATTRIBUTES)
        names = [self._scheme.ambiguous or "Ambiguous", *self._scheme.names]
        attribute = {"Name": names[class_index], "Id": "0", "Value": ""}
        etree.SubElement(etree.SubElement(layer, "Attributes"), "Attribute", attribute)
        etree.SubElement(etree.SubElement(layer, "Regions"), "RegionAttributeHeaders")
        etree.SubElement(layer, "Plots")
        self._layers.append((layer, class_index))
        return layer


def _names(layer: etree._Element) -> tuple[str, ...]:
    attributes = (dict(attribute.attrib) for attribute in layer.findall("Attributes/Attribute"))
    return layer_names(attributes, layer.get("Name", ""))


def _edit(tree: _Tree, polygons: Polygons, objects: Objects) -> None:
    """Change the regions that must change.

    Where no pixel changed, the uppermost region stays the same one: it keeps its
    outline, or is redrawn with its own pixels, and its place. Where pixels did
    change, every region is redrawn with its own pixels, and no two share any.
    """
    labels = objects.labels
    before = rasterize_polygons(polygons, labels.shape, objects.scheme).held()
    shown = dict(zip(before.labels.ids.tolist(), before.labels.class_index.tolist(), strict=True))
    wanted = dict(zip(labels.ids.tolist(), labels.class_index.tolist(), strict=True))
    lines = dict(zip(wanted, lines_of(labels), strict=True))
    old, new = before.labels.id_image(), labels.id_image()
    moved = [id_ for id_, index in shown.items() if wanted.get(id_, index) != index]
    changed = old != new
    scored = np.flatnonzero(polygons.class_index > AMBIGUOUS)
    # An object may have grown by pixels that its outline does not touch.
    grown = set(np.unique(new[changed]).tolist()) & shown.keys()
    concerned = grown.union(_touching(polygons, scored, changed, moved))
    for id_ in sorted(concerned):
        region = tree.regions[id_ - 1]
        if id_ not in wanted or id_ not in shown:
            _remove(region)
            continue
        _set_vertices(region, lines[id_])
        if wanted[id_] != shown[id_]:
            _remove(region)
            tree.add(region, wanted[id_])
    for id_ in sorted(wanted.keys() - shown.keys()):
        tree.add(_region(lines[id_]), wanted[id_])
    if not _is_same_area(before, objects.ambiguous):
        _replace_area(tree, polygons, objects)


def _touching(
    polygons: Polygons, rows: NDArray[np.int64], changed: NDArray[np.bool_], moved: list[int]
) -> list[int]:
    """Return the ids of regions with a pixel that changed, or that a moved region also has."""
    marks = changed.astype(np.int32)
    of_moved = rows[np.isin(polygons.ids[rows], moved)]
    draw(polygons.flat, of_moved, np.ones(len(polygons), np.int32), (0, 0, *changed.shape), marks)
    nothing = np.zeros(len(polygons), np.int32)
    is_free = draw_where_free(polygons.flat, rows, nothing, marks)
    ids: list[int] = polygons.ids[rows[~is_free]].tolist()
    return ids


def _replace_area(tree: _Tree, polygons: Polygons, objects: Objects) -> None:
    for id_ in polygons.ids[polygons.class_index == AMBIGUOUS].tolist():
        _remove(tree.regions[id_ - 1])
    if objects.ambiguous is None:
        return
    areas = connected_areas(objects.ambiguous, objects.ambiguous_class)
    for line in lines_of(areas):
        tree.add(_region(line), AMBIGUOUS)


def _is_same_area(before: LoadedMasks, area: NDArray[np.bool_] | None) -> bool:
    if before.ambiguous is None or area is None:
        return before.ambiguous is None and (area is None or not area.any())
    return np.array_equal(before.ambiguous, area)


def _remove(region: etree._Element) -> None:
    parent = region.getparent()
    if parent is not None:
        parent.remove(region)


def _region(line: NDArray[np.int32]) -> etree._Element:
    element = etree.Element("Region", {"Type": "0", "Zoom": "1", "Text": "", "NegativeROA": "0"})
    etree.SubElement(element, "Attributes")
    _set_vertices(element, line)
    return element


def _set_vertices(element: etree._Element, line: NDArray[np.int32]) -> None:
    for old in element.findall("Vertices"):
        element.remove(old)
    for name in _MEASURES:
        if name in element.attrib:
            element.set(name, "0")
    # An ellipse is drawn by its box; a redrawn region is not an ellipse any longer.
    element.set("Type", "0")
    vertices = etree.SubElement(element, "Vertices")
    for x, y in line.tolist():
        etree.SubElement(vertices, "Vertex", {"X": vertex_text(x), "Y": vertex_text(y), "Z": "0"})


FORMAT = polygon_format(
    READER,
    name=Source.IMAGESCOPE,
    title="ImageScope XML",
    endings=(".xml",),
    write=write_files,
)
