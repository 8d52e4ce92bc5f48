"""Aperio ImageScope XML: polygons of one region, read and written."""

from __future__ import annotations

import math
import re
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.parsers.expat import ErrorString, errors
from xml.sax.saxutils import quoteattr

import defusedxml.ElementTree
import numpy as np
from defusedxml.common import DefusedXmlException
from numpy.typing import NDArray

from napari_panoptic.common.errors import Finding, FindingKind, UnreadableFileError
from napari_panoptic.io.files import check_file, replaced_when_complete
from napari_panoptic.io.formats.polygons.model import (
    LARGEST_COORDINATE,
    ODD_SHAPES,
    UNKNOWN,
    PolygonFile,
    PolygonStore,
    ReadingStoppedError,
    class_number,
    ids_array,
    object_findings,
    unknown_class_findings,
)
from napari_panoptic.io.formats.polygons.scanners import UNUSUAL, split_vertices
from napari_panoptic.io.guard import check_length
from napari_panoptic.nuclei.values.cohort import ClassScheme

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
"""What a new layer says of itself beside its number."""

ELLIPSE = "2"
"""What ImageScope writes as a region's type when an ellipse was drawn."""

_DESCRIPTION = "description"

_Dtype = type[np.int32] | type[np.float64]
# The parser's messages that mean: the bytes are not in the encoding they claim.
_ENCODING_ERRORS = {
    errors.XML_ERROR_INVALID_TOKEN,
    errors.XML_ERROR_UNKNOWN_ENCODING,
    errors.XML_ERROR_INCORRECT_ENCODING,
}


@dataclass(frozen=True, eq=False)
class Polygon:
    """The outline of one object.

    Parameters
    ----------
    id
        Running number among all ``Region`` elements of the file, from 1.
    class_name
        Its class, in the scheme's spelling.
    vertices_xy
        float64 (n, 2): x and y in px of the image at full resolution, as in
        the file. Not closed: the last vertex is joined to the first.
    """

    id: int
    class_name: str
    vertices_xy: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Annotation:
    """The polygons of one file.

    Parameters
    ----------
    polygons
        In document order, ambiguous ones included, those of unknown classes
        left out (their ids are, too).
    mpp
        Micrometres per pixel, or None where the file does not say.
    findings
        What was odd.
    """

    polygons: tuple[Polygon, ...]
    mpp: float | None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class _Watch:
    """Whom to tell how far reading is, and whom to ask whether to go on."""

    path: Path
    progress: Callable[[int, int], None] | None = None
    is_wanted: Callable[[], bool] = lambda: True

    def blocks(self) -> Generator[bytes, None, None]:
        """Yield the file block by block."""
        total = self.path.stat().st_size
        with self.path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                if not self.is_wanted():
                    raise ReadingStoppedError("reading was stopped", path=self.path)
                yield block
                if self.progress is not None:
                    self.progress(file.tell(), total)


def read_annotation(path: Path, scheme: ClassScheme) -> Annotation:
    """Read the polygons of an ImageScope XML file.

    The class of a polygon is the first known name among the
    ``Attributes/Attribute@Name`` of its layer and ``Annotation@Name``, or, where
    the latter is empty, the value of an attribute called Description.
    Ids count every ``Region`` of the file, whatever its class, so that an
    object can be found in the file again.

    Parameters
    ----------
    path
        The file.
    scheme
        The classes.

    Returns
    -------
    Annotation
        A file without a single region gives no polygons: nothing is annotated.

    Raises
    ------
    UnreadableFileError
        Where the file is missing, empty, cut off, no XML, of another vendor, or
        defines entities. A file that is cut off is refused as a whole: with half
        an annotation, good predictions would count as false.
    """
    file = _read(_Watch(path), scheme, np.float64)
    polygons = file.polygons
    starts = polygons.ring_starts.tolist()
    names = [scheme.ambiguous or "", *scheme.names]
    numbers = zip(polygons.ids.tolist(), polygons.class_index.tolist(), strict=True)
    return Annotation(
        tuple(
            Polygon(id_, names[number], polygons.vertices_xy[start:stop].astype(np.float64))
            for (id_, number), start, stop in zip(numbers, starts, starts[1:], strict=False)
        ),
        file.mpp,
        file.findings,
    )


def read_polygons(
    path: Path,
    scheme: ClassScheme,
    *,
    progress: Callable[[int, int], None] | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> PolygonFile:
    """Read what `read_annotation` reads into few arrays, vertices truncated.

    Parameters
    ----------
    path
        The file.
    scheme
        The classes.
    progress
        Is told bytes read and bytes in all.
    is_wanted
        Asked now and then whether to go on.

    Raises
    ------
    UnreadableFileError
        As `read_annotation` does.
    ReadingStoppedError
        Where ``is_wanted`` said no.
    """
    return _read(_Watch(path, progress, is_wanted), scheme, np.int32)


def write_annotation(path: Path, polygons: Iterable[Polygon], mpp: float | None = None) -> None:
    """Write polygons so that ImageScope and `read_annotation` open them.

    Polygons keep their order, since later ones lie over earlier ones: each run
    of one class becomes a layer. Read again, they are numbered from 1 in this
    order, and their vertices are exactly the same. The file appears only when
    it is complete.

    Parameters
    ----------
    path
        Where to write; an existing file is replaced.
    polygons
        In the order in which they lie over each other.
    mpp
        Micrometres per pixel, if known.
    """
    text = "\n".join(_document(polygons, mpp))
    with replaced_when_complete(path) as file:
        file.write(text.encode("utf-8"))


def _read(watch: _Watch, scheme: ClassScheme, dtype: _Dtype) -> PolygonFile:
    path = watch.path
    check_file(path, WHAT)
    content, findings = _content(watch, dtype)
    if content.root_tag != "Annotations":
        raise UnreadableFileError(
            f"expected {WHAT} with the root element Annotations, found "
            f"<{content.root_tag[:60]}>, an XML file of another program; export the annotation "
            f"from ImageScope, or describe its form in cohort.toml",
            path=path,
        )
    mpp, mpp_findings = _mpp(content.mpp, path)
    file = content.finished(scheme, path)
    return PolygonFile(file.polygons, mpp, (*findings, *mpp_findings, *file.findings))


def _content(watch: _Watch, dtype: _Dtype) -> tuple[_Content, list[Finding]]:
    path = watch.path
    try:
        return _scanned(watch, dtype), []
    except (_UnusualError, defusedxml.ElementTree.ParseError, ValueError, LookupError):
        # Slower, and right in every case; it also words the error, if there is one.
        pass
    try:
        with closing(watch.blocks()) as blocks:
            return _parsed(blocks, path, dtype), []
    except defusedxml.ElementTree.ParseError as error:
        if ErrorString(error.code) not in _ENCODING_ERRORS:
            raise _broken(path, error) from error
        first: Exception = error
    except (LookupError, ValueError) as error:
        first = error
    # The bytes are not in the encoding that the file claims; try what such files are in.
    check_length(path, f"{WHAT} in the encoding that it claims, or a file")
    text, encoding = _decoded(path.read_bytes())
    try:
        content = _parsed([re.sub(r"^\s*<\?xml[^>]*\?>", "", text)], path, dtype)
    except (defusedxml.ElementTree.ParseError, LookupError, ValueError):
        raise _broken(path, first) from first
    message = f"the file is not in the encoding that it claims; it was read as {encoding}"
    return content, [Finding(FindingKind.FALLBACK, message, path=path)]


def _parsed(blocks: Iterable[bytes | str], path: Path, dtype: _Dtype) -> _Content:
    content = _Content(dtype)
    parser = defusedxml.ElementTree.XMLParser(target=content)
    try:
        for block in blocks:
            content.note_bytes(len(block), path)
            parser.feed(block)
            content.store()
        parser.close()
    except _TooDeepError as error:
        raise UnreadableFileError(
            f"expected {WHAT}, found more than {_DEEPEST} elements within each other; it was not "
            f"read",
            path=path,
        ) from error
    except _HaloError as error:
        raise UnreadableFileError(
            f"expected {WHAT}, found annotations of HALO (Indica Labs): vertices are called V "
            f"there, not Vertex. HALO's format is not read; export GeoJSON from HALO, or convert "
            f"the file",
            path=path,
        ) from error
    except DefusedXmlException as error:
        raise UnreadableFileError(
            f"expected {WHAT}, found a file that defines XML entities, which annotations never "
            f"need and which can exhaust the memory; it was not read",
            path=path,
        ) from error
    content.store()
    return content


_DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?\s*(<\?xml[^<>]*\?>)?")
_PLAIN_ENCODING = re.compile(rb"encoding\s*=\s*[\"'](utf-8|us-ascii|ascii)[\"']", re.IGNORECASE)


class _UnusualError(Exception):
    """The file is not plain enough for the scanner."""


def _scanned(watch: _Watch, dtype: _Dtype) -> _Content:
    """Read a plain file: its vertices by a compiled scanner, the rest by the safe parser.

    Raises
    ------
    _UnusualError
        Where the file is not so plain that both ways certainly agree: with
        comments, other sections or another encoding, with vertices written
        otherwise than ImageScope does, or outside of regions.
    """
    content = _Content(dtype, is_scanned=True)
    parser = defusedxml.ElementTree.XMLParser(target=content)
    # Straight to the target: the parser's own steps between them treat name spaces.
    parser.parser.ordered_attributes = False
    parser.parser.StartElementHandler = content.start
    parser.parser.EndElementHandler = content.end
    rest = b""
    is_first = True
    with closing(watch.blocks()) as blocks:
        for block in blocks:
            if is_first:
                declaration = _declaration(block)
                block = block[len(declaration) :]
                parser.feed(declaration)
                is_first = False
            content.note_bytes(len(block), watch.path)
            rest = _feed(parser, content, rest + block, is_last=False)
    _feed(parser, content, rest, is_last=True)
    # The parser may keep an end for later, and the regions in it.
    parser.close()
    content.store(np.zeros((0, 2)))
    if content.root_tag != "Annotations":
        raise _UnusualError
    return content


def _declaration(start: bytes) -> bytes:
    found = _DECLARATION.match(start)
    if found is None:
        raise _UnusualError
    if b"encoding" in found[0] and not _PLAIN_ENCODING.search(found[0]):
        raise _UnusualError
    return found[0]


def _feed(parser: Any, content: _Content, block: bytes, *, is_last: bool) -> bytes:
    """Hand a block on without its vertices; give the bytes that belong to the next one."""
    data = np.frombuffer(block, np.uint8)
    # The shortest vertex has 21 bytes.
    skeleton = np.empty(len(data) + 9, np.uint8)
    xy = np.empty((len(data) // 21 + 1, 2), np.float64)
    sizes = np.empty(len(data) // 21 + 1, np.int64)
    used, kept, points, runs = split_vertices(data, is_last, skeleton, xy, sizes)
    if used == UNUSUAL or len(data) - used > BLOCK_BYTES:
        raise _UnusualError
    content.runs.extend(sizes[:runs].tolist())
    parser.feed(skeleton[:kept].tobytes())
    content.store(xy[:points])
    return block[used:]


def _decoded(data: bytes) -> tuple[str, str]:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace"), "UTF-16"
    try:
        return data.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace"), "Windows-1252"


def _broken(path: Path, error: Exception) -> UnreadableFileError:
    return UnreadableFileError(
        f"expected {WHAT}, but its XML is cut off or damaged ({error}); export it again. "
        f"Nothing of it was used: half an annotation would turn good predictions into false ones",
        path=path,
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


_DEEPEST = 100
"""Elements within each other; ImageScope writes six."""


_LONGEST_TEXT = 2**24
"""Bytes between two elements, or in one of them."""


class _TooDeepError(ValueError):
    """There are more elements within each other than any annotation has."""


class _HaloError(ValueError):
    """The vertices are those of HALO, which calls them V."""


class _Content:
    """What a parser is told of an annotation, kept in arrays.

    Parameters
    ----------
    dtype
        Of the vertices that are kept.
    is_scanned
        Whether a scanner takes the vertices out and leaves an empty ``Vertex``
        for each run of them.
    """

    def __init__(self, dtype: _Dtype, *, is_scanned: bool = False) -> None:
        self.root_tag = ""
        self.mpp: str | None = None
        # How many vertices the runs have that were taken out and not met yet.
        self.runs: deque[int] = deque()
        self._is_scanned = is_scanned
        self._since_element = 0
        self._store = PolygonStore(dtype)
        self._kinds: list[int] = []
        self._open_layers: list[int] = []
        self._attributes: list[list[dict[str, str]]] = []
        self._layer_names: list[str] = []
        # Of each region: its layer, its vertices, whether some are unreadable, whether odd.
        self._layer = array("q")
        self._sizes = array("q")
        self._unreadable = array("q")
        self._drawn_otherwise = array("q")
        self._stored = 0
        self._xy = array("d")
        self._pending = np.zeros((0, 2))

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take note of an element that begins."""
        kinds = self._kinds
        self._since_element = 0
        if len(kinds) > _DEEPEST:
            raise _TooDeepError
        if not kinds:
            self.root_tag = tag
            self.mpp = attributes.get("MicronsPerPixel")
        kind = _KINDS.get((kinds[-1], tag), _OTHER) if kinds else _OTHER
        if kind == _VERTEX:
            self._vertex(attributes)
        elif tag == "V" and kinds and kinds[-1] == _VERTICES:
            raise _HaloError
        elif tag == "Vertex" and self._is_scanned:
            raise _UnusualError  # its run belongs to no region
        elif kind == _REGION:
            self._region(attributes)
        elif kind == _ATTRIBUTE:
            self._attributes[self._open_layers[-1]].append(attributes)
        elif tag == "Annotation":
            kind = _LAYER
            if _REGION in kinds:
                raise ValueError("an Annotation inside a Region")
            self._open_layers.append(len(self._layer_names))
            self._layer_names.append(attributes.get("Name", ""))
            self._attributes.append([])
        kinds.append(kind)

    def note_bytes(self, count: int, path: Path) -> None:
        """Refuse a file with nothing but text for longer than any annotation has.

        The parser holds what it reads of an element until that is complete.
        """
        if self._since_element > _LONGEST_TEXT:
            raise UnreadableFileError(
                f"expected {WHAT}, found more than {_LONGEST_TEXT >> 20} MiB without an element; "
                f"it is damaged, or made to exhaust the memory. Export it again",
                path=path,
            )
        self._since_element += count

    def end(self, tag: str) -> None:  # noqa: ARG002 - what the parser calls
        """Take note of an element that ends."""
        if self._kinds.pop() == _LAYER:
            self._open_layers.pop()

    def store(self, xy: NDArray[np.float64] | None = None) -> None:
        """Store the regions that are complete.

        Parameters
        ----------
        xy
            float64 (n, 2): the vertices of the runs that a scanner took out
            since; None where there was no scanner.
        """
        if xy is None:
            xy = np.array(self._xy, np.float64).reshape(-1, 2)
            self._xy = array("d")
        xy = np.concatenate([self._pending, xy])
        complete = len(self._sizes) - (_REGION in self._kinds)
        sizes = np.array(self._sizes[self._stored : complete], np.int64)
        used = int(sizes.sum())
        one = np.ones(len(sizes), np.int64)
        self._store.add(xy[:used], sizes, np.zeros(len(sizes), np.bool_), one)
        self._pending = xy[used:].copy()
        self._stored = complete

    def finished(self, scheme: ClassScheme, path: Path) -> PolygonFile:
        """Return the polygons, and what was odd about them."""
        called = [
            layer_names(attributes, name)
            for attributes, name in zip(self._attributes, self._layer_names, strict=True)
        ]
        of_layer = np.array([class_number(names, scheme) for names in called], np.int16)
        layer = ids_array(self._layer)
        index = of_layer[layer]
        polygons, odd = self._store.finished(index)
        odd[FindingKind.UNREADABLE] = _of_known(self._unreadable, index)
        unknown: dict[str | None, list[int]] = {}
        for row in np.flatnonzero(index == UNKNOWN).tolist():
            names = called[layer[row]]
            unknown.setdefault(names[0] if names else None, []).append(row + 1)
        findings = list(unknown_class_findings(unknown, scheme, path))
        for kind, message in ODD_SHAPES.items():
            findings += object_findings(kind, odd[kind], message, path)
        otherwise = _of_known(self._drawn_otherwise, index)
        message = "ellipse(s) or negative region(s) of ImageScope, filled like any other polygon"
        findings += object_findings(FindingKind.FALLBACK, otherwise, message, path)
        return PolygonFile(polygons, None, tuple(findings))

    def _region(self, attributes: dict[str, str]) -> None:
        self._layer.append(self._open_layers[-1])
        self._sizes.append(0)
        if attributes.get("Type") == ELLIPSE or attributes.get("NegativeROA") == "1":
            self._drawn_otherwise.append(len(self._sizes))

    def _vertex(self, attributes: dict[str, str]) -> None:
        if self._is_scanned:
            if attributes or not self.runs:
                raise _UnusualError
            self._sizes[-1] += self.runs.popleft()
            return
        try:
            x, y = float(attributes["X"]), float(attributes["Y"])
        except (KeyError, ValueError):
            x = math.nan
        if abs(x) <= LARGEST_COORDINATE and abs(y) <= LARGEST_COORDINATE:
            self._xy.append(x)
            self._xy.append(y)
            self._sizes[-1] += 1
        elif not self._unreadable or self._unreadable[-1] != len(self._sizes):
            self._unreadable.append(len(self._sizes))


def _of_known(ids: array[int], class_index: NDArray[np.int16]) -> NDArray[np.int64]:
    """Leave out the objects of unknown classes."""
    every = ids_array(ids)
    known: NDArray[np.int64] = every[class_index[every - 1] != UNKNOWN]
    return known


def _mpp(text: str | None, path: Path) -> tuple[float | None, list[Finding]]:
    if text is None:
        return None, []
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if value > 0 and math.isfinite(value):
        return value, []
    message = (
        f"MicronsPerPixel should be a positive number, found '{text}': the annotation gives no "
        f"micrometres per pixel"
    )
    return None, [Finding(FindingKind.NO_MPP, message, path=path)]


def _document(polygons: Iterable[Polygon], mpp: float | None) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8" standalone="no"?>'
    scale = f' MicronsPerPixel="{vertex_text(mpp)}"' if mpp is not None else ""
    yield f"<Annotations{scale}>"
    number = 0
    for layer, (name, run) in enumerate(groupby(polygons, key=lambda p: p.class_name), start=1):
        attributes = "".join(f' {key}="{value}"' for key, value in LAYER_ATTRIBUTES.items())
        yield f'<Annotation Id="{layer}"{attributes}>'
        yield f'<Attributes><Attribute Name={quoteattr(name)} Id="0" Value=""/></Attributes>'
        yield "<Regions><RegionAttributeHeaders/>"
        for polygon in run:
            number += 1
            yield (
                f'<Region Id="{number}" Type="0" Zoom="1" Selected="0" ImageLocation="" '
                f'ImageFocus="-1" Length="0" Area="0" LengthMicrons="0" AreaMicrons="0" Text="" '
                f'NegativeROA="0" InputRegionId="0" Analyze="1" DisplayId="{number}">'
                f"<Attributes/><Vertices>"
            )
            for x, y in polygon.vertices_xy.tolist():
                yield f'<Vertex X="{vertex_text(x)}" Y="{vertex_text(y)}" Z="0"/>'
            yield "</Vertices></Region>"
        yield "</Regions><Plots/></Annotation>"
    yield "</Annotations>"


def layer_names(attributes: Iterable[Mapping[str, str]], own_name: str) -> tuple[str, ...]:
    """Return the names of a layer, of which the first that is a class counts.

    ImageScope itself calls the attribute of each layer "Description" and leaves the name of the
    layer empty: then what the attribute says is a name.

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
    """Write a coordinate with every digit that matters and no exponent, as ImageScope expects."""
    return np.format_float_positional(value, trim="-")
