"""An ImageScope annotation after editing: what was not changed stays as it was in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree.ElementTree import Element, SubElement, tostring

import defusedxml.ElementTree
import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.files import replaced_when_complete
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.geojson_writer import connected_areas
from napari_panoptic.io.formats.polygons.imagescope import (
    LAYER_ATTRIBUTES,
    layer_names,
    read_polygons,
    vertex_text,
    write_annotation,
)
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, class_number
from napari_panoptic.io.formats.polygons.rasterize import RasterizedAnnotation, rasterize_polygons
from napari_panoptic.io.formats.polygons.trace import imagescope_polygons, imagescope_vertices
from napari_panoptic.nuclei.values.cohort import ClassScheme, Source

_MOST_ROUNDS = 8
_MEASURES = ("Length", "Area", "LengthMicrons", "AreaMicrons")
"""What ImageScope notes of a region and computes again where it is 0."""


def write_files(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write the objects of a region; those read from ImageScope XML into a copy of that file."""
    original = objects.original
    is_edited = original is not None and original.source == Source.IMAGESCOPE
    if original is not None and is_edited and write_edited(path, original.all_paths[0], objects):
        return (path,)
    polygons = imagescope_polygons(
        objects.labels, ambiguous=objects.ambiguous, ambiguous_class=objects.ambiguous_class
    )
    write_annotation(path, polygons, objects.mpp)
    return (path,)


def write_edited(path: Path, original: Path, objects: Objects) -> bool:
    """Write objects into a copy of the annotation that they come from.

    Layers, their colours and attributes, and all that is said of a region stay
    as they are, also of regions that no object shows: without a pixel, covered,
    or of an unknown class. (A covered one is taken out where it would come to
    light.) The vertices of an object are written anew only where its pixels
    have changed, or would not come out the same.

    Parameters
    ----------
    path
        Where to write; an existing file is replaced when the new one is complete.
    original
        The ImageScope file in which the ids of the objects are running numbers.
    objects
        What the file is to show when it is read and drawn again.

    Returns
    -------
    bool
        False where that cannot be done and nothing was written: the original
        is damaged, or uses what cannot be copied.
    """
    before = _drawn(original, objects)
    try:
        tree = _Tree(defusedxml.ElementTree.parse(original).getroot(), objects.scheme)
    except (defusedxml.ElementTree.ParseError, ValueError, LookupError):
        return False
    edits = _Edits(tree, before, objects)
    for _ in range(_MOST_ROUNDS):
        data = tostring(tree.root, encoding="utf-8", xml_declaration=True)
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "copy.xml"
            copy.write_bytes(data)
            if not edits.mended(_drawn(copy, objects)):
                continue
        with replaced_when_complete(path) as file:
            file.write(data)
        return True
    return False


def _drawn(path: Path, objects: Objects) -> RasterizedAnnotation:
    polygons = read_polygons(path, objects.scheme).polygons
    return rasterize_polygons(polygons, objects.labels.shape, objects.scheme)


@dataclass
class _Region:
    """A region of the file: its element, where it hangs, its class, and which object it shows."""

    element: Element
    parent: Element
    class_index: int
    object_id: int | None = None


class _Tree:
    """The layers and regions of a file, in document order."""

    def __init__(self, root: Element, scheme: ClassScheme) -> None:
        self.root, self._scheme = root, scheme
        self._layers: list[tuple[Element, int]] = [
            (layer, class_number(_names(layer), scheme)) for layer in root.iter("Annotation")
        ]
        self.regions: dict[int, _Region] = {}
        for region in self.in_order():
            self.regions[id(region.element)] = region

    def in_order(self) -> Iterator[_Region]:
        """Yield all regions as they are numbered when the file is read."""
        for layer, index in self._layers:
            for parent in layer.findall("Regions"):
                for element in parent.findall("Region"):
                    known = self.regions.get(id(element))
                    yield known or _Region(element, parent, index)

    def remove(self, region: _Region) -> None:
        """Take a region out of the file."""
        region.parent.remove(region.element)

    def add(self, element: Element, class_index: int, object_id: int | None) -> None:
        """Put a region last into the last layer of its class; make one where there is none."""
        layers = [layer for layer, index in self._layers if index == class_index]
        layer = layers[-1] if layers else self._new_layer(class_index)
        parent = layer.find("Regions")
        if parent is None:
            parent = SubElement(layer, "Regions")
        parent.append(element)
        self.regions[id(element)] = _Region(element, parent, class_index, object_id)

    def _new_layer(self, class_index: int) -> Element:
        number = str(len(self._layers) + 1)
        layer = SubElement(self.root, "Annotation", {"Id": number} | LAYER_ATTRIBUTES)
        names = [self._scheme.ambiguous or "Ambiguous", *self._scheme.names]
        attribute = {"Name": names[class_index], "Id": "0", "Value": ""}
        SubElement(SubElement(layer, "Attributes"), "Attribute", attribute)
        SubElement(SubElement(layer, "Regions"), "RegionAttributeHeaders")
        SubElement(layer, "Plots")
        self._layers.append((layer, class_index))
        return layer


def _names(layer: Element) -> tuple[str, ...]:
    attributes = (attribute.attrib for attribute in layer.findall("Attributes/Attribute"))
    return layer_names(attributes, layer.get("Name", ""))


@dataclass
class _Edits:
    """Brings a file to show certain objects."""

    tree: _Tree
    before: RasterizedAnnotation
    objects: Objects
    anew: set[int] = field(default_factory=set)
    lines: list[NDArray[np.int32]] = field(init=False)

    def __post_init__(self) -> None:
        """Make the changes that are known at once."""
        labels, before = self.objects.labels, self.before.labels
        self.lines = imagescope_vertices(labels.index, len(labels))
        self._rows = {id_: row for row, id_ in enumerate(labels.ids.tolist())}
        old, new = before.id_image(), labels.id_image()
        differs = old != new
        changed = {*old[differs].tolist(), *new[differs].tolist()}
        shown = dict(zip(before.ids.tolist(), before.class_index.tolist(), strict=True))
        for number, region in enumerate(list(self.tree.in_order()), start=1):
            if number not in shown:
                continue
            if number not in self._rows:
                self.tree.remove(region)
                continue
            region.object_id = number
            index = int(labels.class_index[self._rows[number]])
            if index != shown[number]:
                self.tree.remove(region)
                self.tree.add(region.element, index, number)
            if number in changed or index != shown[number]:
                self._write_anew(region.element, number)
        for id_ in sorted(self._rows.keys() - shown.keys()):
            index = int(labels.class_index[self._rows[id_]])
            self.anew.add(id_)
            self.tree.add(_region(self.lines[self._rows[id_]]), index, id_)
        if not _is_same_area(self.before.ambiguous, self.objects.ambiguous):
            self._replace_area()

    def mended(self, drawn: RasterizedAnnotation) -> bool:
        """Return whether a file shows the objects; change the tree where it does not."""
        order = list(self.tree.in_order())
        ids = np.array([0, *(region.object_id or -1 for region in order)], np.int64)
        found, wanted = drawn.labels.id_image(), self.objects.labels.id_image()
        wrong = ids[found] != wanted
        classes_are_right = all(
            index == self.objects.labels.class_index[self._rows[int(ids[number])]]
            for number, index in zip(
                drawn.labels.ids.tolist(), drawn.labels.class_index.tolist(), strict=True
            )
            if ids[number] > 0
        )
        if not wrong.any() and classes_are_right:
            return _is_same_area(drawn.ambiguous, self.objects.ambiguous)
        concerned = {*ids[found[wrong]].tolist(), *wanted[wrong].tolist()}
        intruders = {number for number in np.unique(found[wrong]).tolist() if ids[number] < 0}
        for number, region in enumerate(order, start=1):
            if number in intruders:
                self.tree.remove(region)
            elif (id_ := region.object_id) is not None and id_ in concerned - self.anew:
                self._write_anew(region.element, id_)
        return False

    def _write_anew(self, element: Element, object_id: int) -> None:
        self.anew.add(object_id)
        _set_vertices(element, self.lines[self._rows[object_id]])

    def _replace_area(self) -> None:
        for region in list(self.tree.in_order()):
            if region.class_index == AMBIGUOUS:
                self.tree.remove(region)
        if self.objects.ambiguous is None:
            return
        areas = connected_areas(self.objects.ambiguous, self.objects.ambiguous_class)
        for line in imagescope_vertices(areas.index, len(areas)):
            self.tree.add(_region(line), AMBIGUOUS, None)


def _is_same_area(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> bool:
    if one is None or other is None:
        return not any(area is not None and area.any() for area in (one, other))
    return np.array_equal(one, other)


def _region(line: NDArray[np.int32]) -> Element:
    element = Element("Region", {"Type": "0", "Zoom": "1", "Text": "", "NegativeROA": "0"})
    SubElement(element, "Attributes")
    _set_vertices(element, line)
    return element


def _set_vertices(element: Element, line: NDArray[np.int32]) -> None:
    for old in element.findall("Vertices"):
        element.remove(old)
    for name in _MEASURES:
        if name in element.attrib:
            element.set(name, "0")
    # An ellipse is drawn by its box: what was redrawn is none any more.
    element.set("Type", "0")
    vertices = SubElement(element, "Vertices")
    for x, y in line.tolist():
        SubElement(vertices, "Vertex", {"X": vertex_text(x), "Y": vertex_text(y), "Z": "0"})
