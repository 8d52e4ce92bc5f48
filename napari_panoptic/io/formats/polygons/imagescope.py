"""Aperio ImageScope XML: outlines of one region, read and written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.files.guard import check_length
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.files.xml_files import safe_parser
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.collect import DECIMAL_COMMAS, UNREADABLE_VERTICES
from napari_panoptic.io.formats.polygons.model import LARGEST_COORDINATE, PixelRule
from napari_panoptic.io.formats.polygons.outline import (
    LeftOut,
    Outline,
    OutlineFile,
    Said,
    Stated,
)
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader
from napari_panoptic.io.formats.polygons.shapes import ellipse, rectangle
from napari_panoptic.io.formats.polygons.trace import lines_of, outlined_entries

WHAT = "an ImageScope XML annotation"
BLOCK_BYTES = 4 * 2**20

LAYER_ATTRIBUTES = {
    "Name": "",
    "ReadOnly": "0",
    "NameReadOnly": "0",
    "LineColorReadOnly": "0",
    "Incremental": "0",
    "Type": "4",
    "LineColor": "65280",
    "Visible": "1",
    "Selected": "0",
    "MarkupImagePath": "",
    "MacroName": "",
}
"""Attributes of a new layer, besides its number."""

_RECTANGLE, _ELLIPSE = "1", "2"
"""Types of regions that may be given by two corners of a box; 0 is an outline."""
_WITHOUT_AREA = {"3": "arrow", "4": "ruler"}
_NEGATIVE = "negative region"
_LEFT_OUT = "{}(s) of ImageScope, no outlines of nuclei, left out"

_DESCRIPTION = "description"

_DEEPEST = 100
"""Elements within each other; ImageScope writes six."""
_LONGEST_TEXT = 2**24
"""Bytes between two elements, or in one of them."""

Outlined = tuple[str, NDArray[np.float64] | NDArray[np.int32]]
"""The class of an object, in the scheme's spelling, and its vertices (n, 2): x and y in px of the
image at full resolution, not closed."""


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the polygons of an ImageScope XML file.

    The class of a polygon is the first known name among the
    ``Attributes/Attribute@Name`` of its layer and ``Annotation@Name``, or, if
    the latter is empty, the value of an attribute called Description. Without any, the
    objects have no class.
    Ids count every ``Region`` of the file, whatever its class, so that an
    object can be found in the file again. Vertices count by their pixels; ellipses,
    and rectangles of two vertices, fill their box. Arrows, rulers and negative regions
    are left out. A file that declares a document type is refused.
    """

    def blocks() -> Generator[bytes]:
        total = file.path.stat().st_size
        with file.path.open("rb") as opened:
            while block := opened.read(BLOCK_BYTES):
                yield block
                file.progress(opened.tell(), total)

    content, encoding = _parsed(file.path, blocks)
    if encoding is not None:
        message = f"the file is not in the encoding that it states; it was read as {encoding}"
        yield Finding(FindingKind.FALLBACK, message)
    if content.root_tag != "Annotations":
        raise UnreadableFileError(
            f"expected {WHAT} with the root element Annotations, found "
            f"<{content.root_tag[:60]}>, an XML file of another program; export the annotation "
            f"from ImageScope, or state its format in cohort.toml"
        )
    if content.mpp is not None:
        yield _mpp(content.mpp)
    yield from content.regions()


def write_annotation(path: Path, outlines: Iterable[Outlined], mpp: float | None = None) -> None:
    """Write outlines so that ImageScope and `read_polygons` open them.

    Outlines keep their order, since later ones lie over earlier ones: each run
    of one class becomes a layer. Read again, they are numbered from 1 in this
    order, and their vertices are exactly the same. The file appears only when
    it is complete.

    Parameters
    ----------
    path
        The file to write; an existing one is replaced.
    outlines
        In the order in which they lie over each other.
    mpp
        Micrometres per pixel, if known.
    """
    text = "\n".join(_document(outlines, mpp))
    with replaced_when_complete(path) as file:
        file.write(text.encode("utf-8"))


def traced_outlines(objects: Objects) -> Iterator[Outlined]:
    """Yield the outlines of objects, and then one for each piece of the excluded area.

    Written by `write_annotation`, read and filled again, they give the same
    pixels, classes and ambiguous area. Ids become running numbers then.
    """
    for entry in outlined_entries(objects, lines_of):
        yield entry.class_name, entry.outline


def _parsed(path: Path, blocks: Callable[[], Generator[bytes]]) -> tuple[_Content, str | None]:
    """Return the content, and the encoding if it is not the one that the file states."""
    first: etree.XMLSyntaxError | None = None
    try:
        if not _is_utf_16_by_mistake(path):
            # Closed here: an error keeps a generator, and the file that it has open.
            with closing(blocks()) as read:
                return _fed(read, None), None
    except etree.XMLSyntaxError as error:
        if error.code not in _ENCODING_ERRORS:
            raise _broken(error) from error
        first = error
    check_length(path, WHAT)
    text, encoding = _decoded(path.read_bytes())
    try:
        return _fed([text.encode("utf-8", errors="replace")], "utf-8"), encoding
    except etree.XMLSyntaxError as error:
        raise _broken(first or error) from error


def _is_utf_16_by_mistake(path: Path) -> bool:
    """Return whether a file is in UTF-16 and states another encoding, which libxml2 ignores."""
    with path.open("rb") as file:
        start = file.read(400)
    stated = _ENCODING.search(start.decode("utf-16", errors="replace"))
    is_utf_16 = start[:2] in (b"\xff\xfe", b"\xfe\xff")
    return is_utf_16 and stated is not None and not stated[1].lower().startswith("utf-16")


_ENCODING = re.compile(r"<\?xml[^<>]*encoding\s*=\s*[\"']([^\"']*)")
# The parser's errors that mean: the bytes are not in the encoding that the file states.
_ENCODING_ERRORS = {
    etree.ErrorTypes.ERR_DOCUMENT_EMPTY,
    etree.ErrorTypes.ERR_INVALID_CHAR,
    etree.ErrorTypes.ERR_INVALID_ENCODING,
    etree.ErrorTypes.ERR_UNKNOWN_ENCODING,
    etree.ErrorTypes.ERR_UNSUPPORTED_ENCODING,
}


def _fed(blocks: Iterable[bytes], encoding: str | None) -> _Content:
    """Parse a file without building a tree of it."""
    content = _Content()
    parser = safe_parser(target=content, encoding=encoding)
    for block in blocks:
        content.note_bytes(len(block))
        parser.feed(block)
    parser.close()
    return content


def _decoded(data: bytes) -> tuple[str, str]:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace"), "UTF-16"
    try:
        return data.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace"), "Windows-1252"


def _broken(error: Exception) -> UnreadableFileError:
    return UnreadableFileError(
        f"expected {WHAT}, but its XML is cut off or damaged ({error}); export it again. "
        f"Nothing of it was used: half an annotation would turn good predictions into false ones"
    )


# What an element is, by its parent and its name; a layer may stand anywhere.
_OTHER, _LAYER, _ATTRIBUTES, _ATTRIBUTE, _REGIONS, _REGION, _VERTICES, _VERTEX = range(8)
_KINDS = {
    (_LAYER, "Attributes"): _ATTRIBUTES,
    (_ATTRIBUTES, "Attribute"): _ATTRIBUTE,
    (_LAYER, "Regions"): _REGIONS,
    (_REGIONS, "Region"): _REGION,
    (_REGION, "Vertices"): _VERTICES,
    (_VERTICES, "Vertex"): _VERTEX,
}


class _Content:
    """The regions and layers of an annotation, as the parser reports them."""

    def __init__(self) -> None:
        self.root_tag = ""
        self.mpp: str | None = None
        self._since_element = 0
        self._kinds: list[int] = []
        self._open_layers: list[int] = []
        self._attributes: list[list[dict[str, str]]] = []
        self._layer_names: list[str] = []
        self._regions: list[_Region] = []
        self._xy: list[float] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element."""
        kinds = self._kinds
        self._since_element = 0
        if len(kinds) > _DEEPEST:
            raise self._refused(f"found more than {_DEEPEST} elements within each other")
        if not kinds:
            self.root_tag = tag
            self.mpp = attributes.get("MicronsPerPixel")
        kind = _KINDS.get((kinds[-1], tag), _OTHER) if kinds else _OTHER
        if kind == _VERTEX:
            self._vertex(attributes)
        elif tag == "V" and kinds and kinds[-1] == _VERTICES:
            raise self._refused(
                "found annotations of HALO (Indica Labs): vertices are called V there, not Vertex",
                "export GeoJSON from HALO, or convert the file",
            )
        elif kind == _REGION:
            self._regions.append(_Region(self._open_layers[-1], attributes))
        elif kind == _ATTRIBUTE:
            self._attributes[self._open_layers[-1]].append(dict(attributes))
        elif tag == "Annotation":
            kind = _LAYER
            if _REGION in kinds:
                raise self._refused("found an Annotation inside a Region")
            self._open_layers.append(len(self._layer_names))
            self._layer_names.append(attributes.get("Name", ""))
            self._attributes.append([])
        kinds.append(kind)

    def end(self, tag: str) -> None:  # noqa: ARG002 - what the parser calls
        """Handle the end of an element."""
        kind = self._kinds.pop()
        if kind == _LAYER:
            self._open_layers.pop()
        elif kind == _REGION:
            self._regions[-1].xy = np.array(self._xy, np.float64).reshape(-1, 2)
            self._xy.clear()

    def doctype(self, name: str, public: str | None, system: str | None) -> None:  # noqa: ARG002
        """Refuse a document type."""
        raise self._refused(
            "found a document type declaration, which annotations never need, and by which "
            "entities can exhaust the memory"
        )

    def close(self) -> None:
        """Handle the end of the file."""

    def note_bytes(self, count: int) -> None:
        """Refuse a file with nothing but text for longer than any annotation has.

        The parser keeps what it reads of an element until that is complete.
        """
        if self._since_element > _LONGEST_TEXT:
            raise self._refused(
                f"found more than {_LONGEST_TEXT >> 20} MiB without an element; it is damaged, or "
                f"made to exhaust the memory"
            )
        self._since_element += count

    def regions(self) -> Iterator[Outline | LeftOut]:
        """Yield the regions as objects."""
        entries = [
            # As in MoNuSeg: the attribute of ImageScope without a value names no class.
            (*names, None) if [*map(str.casefold, names)] == [_DESCRIPTION] else names
            for names in map(layer_names, self._attributes, self._layer_names)
        ]
        for region in self._regions:
            if region.no_nucleus:
                yield LeftOut(_LEFT_OUT.format(region.no_nucleus), is_numbered=True)
                continue
            note = DECIMAL_COMMAS if region.has_commas else UNREADABLE_VERTICES
            notes = [note] if region.is_unreadable else []
            yield Outline([region.outline()], entries[region.layer], notes=notes)

    def _vertex(self, attributes: Mapping[str, str]) -> None:
        try:
            x, y = float(attributes["X"]), float(attributes["Y"])
        except (KeyError, ValueError):
            x = math.nan
        if abs(x) <= LARGEST_COORDINATE and abs(y) <= LARGEST_COORDINATE:
            self._xy += (x, y)
        else:
            self._regions[-1].is_unreadable = True
            self._regions[-1].has_commas |= _COMMA.fullmatch(attributes.get("X", "")) is not None

    def _refused(self, found: str, remedy: str = "export it again") -> UnreadableFileError:
        return UnreadableFileError(f"expected {WHAT}, {found}; {remedy}")


_COMMA = re.compile(r"\s*-?\d+,\d+\s*")


class _Region:
    """A region: its layer, its vertices, and its kind if it outlines no nucleus."""

    __slots__ = ("_kind", "has_commas", "is_unreadable", "layer", "no_nucleus", "xy")

    def __init__(self, layer: int, attributes: Mapping[str, str]) -> None:
        self.layer = layer
        self._kind = attributes.get("Type", "")
        is_negative = attributes.get("NegativeROA") == "1"
        self.no_nucleus = _NEGATIVE if is_negative else _WITHOUT_AREA.get(self._kind, "")
        self.is_unreadable = self.has_commas = False
        self.xy: NDArray[np.float64] = np.zeros((0, 2))

    def outline(self) -> NDArray[np.float64]:
        """Return the vertices (n, 2), of an ellipse or rectangle those that fill its box."""
        shape = {_RECTANGLE: rectangle, _ELLIPSE: ellipse}.get(self._kind)
        if shape is None or not 2 <= len(self.xy) <= (2 if shape is rectangle else 4):
            return self.xy
        low, high = self.xy.min(axis=0), self.xy.max(axis=0)
        (x, y), (width, height) = ((low + high) / 2).tolist(), (high - low).tolist()
        # A polygon of the same area is a trace larger, and its vertices count by their pixels.
        filling: NDArray[np.float64] = shape((x, y), (width / 2, height / 2)).clip(low, high)
        return filling


def _mpp(text: str) -> Stated | Finding:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if value > 0 and math.isfinite(value):
        return Stated(mpp=value)
    return Finding(
        FindingKind.NO_MPP,
        f"MicronsPerPixel should be a positive number, found '{text}': the annotation gives no "
        f"micrometres per pixel",
    )


def _document(outlines: Iterable[Outlined], mpp: float | None) -> Iterator[str]:
    from xml.sax.saxutils import quoteattr

    yield '<?xml version="1.0" encoding="UTF-8" standalone="no"?>'
    scale = f' MicronsPerPixel="{vertex_text(mpp)}"' if mpp is not None else ""
    yield f"<Annotations{scale}>"
    number = 0
    for layer, (name, run) in enumerate(groupby(outlines, key=itemgetter(0)), start=1):
        attributes = "".join(f' {key}="{value}"' for key, value in LAYER_ATTRIBUTES.items())
        yield f'<Annotation Id="{layer}"{attributes}>'
        yield f'<Attributes><Attribute Name={quoteattr(name)} Id="0" Value=""/></Attributes>'
        yield "<Regions><RegionAttributeHeaders/>"
        for _, vertices in run:
            number += 1
            yield (
                f'<Region Id="{number}" Type="0" Zoom="1" Selected="0" ImageLocation="" '
                f'ImageFocus="-1" Length="0" Area="0" LengthMicrons="0" AreaMicrons="0" Text="" '
                f'NegativeROA="0" InputRegionId="0" Analyze="1" DisplayId="{number}">'
                f"<Attributes/><Vertices>"
            )
            for x, y in vertices.tolist():
                yield f'<Vertex X="{vertex_text(x)}" Y="{vertex_text(y)}" Z="0"/>'
            yield "</Vertices></Region>"
        yield "</Regions><Plots/></Annotation>"
    yield "</Annotations>"


def layer_names(attributes: Iterable[Mapping[str, str]], own_name: str) -> tuple[str, ...]:
    """Return the names of a layer; the first that is a class counts.

    ImageScope itself calls the attribute of each layer "Description" and leaves the name of the
    layer empty: then the value of the attribute is a name.

    Parameters
    ----------
    attributes
        The XML attributes of each ``Attributes/Attribute`` of the layer.
    own_name
        The ``Name`` of the layer.
    """
    names, described = [], []
    for attribute in attributes:
        name, value = attribute.get("Name", "").strip(), attribute.get("Value", "").strip()
        if name.casefold() != _DESCRIPTION:
            names.append(name)
        else:
            described += [name] if own_name.strip() else [value, name]
    return tuple(filter(None, [*names, own_name.strip(), *described]))


def vertex_text(value: float) -> str:
    """Return a coordinate with every significant digit and no exponent, as ImageScope expects."""
    return np.format_float_positional(value, trim="-")


READER = OutlineReader(
    read_objects, what=WHAT, vertices=PixelRule.VERTEX, has_numbers=False, most_bytes=None
)
"""Reads the polygons; see `read_objects`."""
