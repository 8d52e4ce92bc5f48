"""Aperio ImageScope XML: polygons of one region, read and written."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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

from napari_panoptic.errors import Finding, FindingKind, UnreadableFileError, english_list
from napari_panoptic.io._files import check_file, replaced_when_complete
from napari_panoptic.io._kernels import crosses_itself
from napari_panoptic.regions import ClassScheme

WHAT = "an ImageScope XML annotation"
LARGEST_COORDINATE = 2.0**29
"""Vertices farther out than this, in px, are taken for damage."""

ELLIPSE = "2"
"""What ImageScope writes as a region's type when an ellipse was drawn."""

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


@dataclass(frozen=True, eq=False)
class _Outline:
    """A ``Region`` element as it is in the file."""

    id: int
    class_names: tuple[str, ...]
    vertices_xy: NDArray[np.float64]
    unreadable_vertices: int
    is_ellipse: bool
    is_hole: bool


def read_annotation(path: Path, scheme: ClassScheme) -> Annotation:
    """Read the polygons of an ImageScope XML file.

    The class of a polygon is the first known name among the
    ``Attributes/Attribute@Name`` of its layer and ``Annotation@Name``.
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
    check_file(path, WHAT)
    root, findings = _parse(path)
    if root.tag != "Annotations":
        raise UnreadableFileError(
            f"expected {WHAT} with the root element Annotations, found "
            f"<{str(root.tag)[:60]}>, an XML file of another program; export the annotation "
            f"from ImageScope, or describe its form in cohort.toml",
            path=path,
        )
    outlines = list(_outlines(root))
    polygons = tuple(
        Polygon(outline.id, name, outline.vertices_xy)
        for outline in outlines
        if (name := _known(outline.class_names, scheme)) is not None
    )
    mpp, mpp_findings = _mpp(root, path)
    return Annotation(
        polygons,
        mpp,
        (*findings, *mpp_findings, *_oddities(outlines, scheme, path)),
    )


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


def _parse(path: Path) -> tuple[Any, list[Finding]]:
    data = path.read_bytes()
    try:
        return _root(data, path), []
    except defusedxml.ElementTree.ParseError as error:
        if ErrorString(error.code) not in _ENCODING_ERRORS:
            raise _broken(path, error) from error
        first = error
    except (LookupError, ValueError) as error:
        first = error
    # The bytes are not in the encoding that the file claims; try what such files are in.
    text, encoding = _decoded(data)
    try:
        root = _root(re.sub(r"^\s*<\?xml[^>]*\?>", "", text), path)
    except (defusedxml.ElementTree.ParseError, LookupError, ValueError):
        raise _broken(path, first) from first
    message = f"the file is not in the encoding that it claims; it was read as {encoding}"
    return root, [Finding(FindingKind.FALLBACK, message, path=path)]


def _root(source: bytes | str, path: Path) -> Any:
    try:
        return defusedxml.ElementTree.fromstring(source)
    except DefusedXmlException as error:
        raise UnreadableFileError(
            f"expected {WHAT}, found a file that defines XML entities, which annotations never "
            f"need and which can exhaust the memory; it was not read",
            path=path,
        ) from error


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


def _outlines(root: Any) -> Iterator[_Outline]:
    number = 0
    for layer in root.iter("Annotation"):
        names = [a.get("Name", "") for a in layer.iterfind("Attributes/Attribute")]
        names.append(layer.get("Name", ""))
        class_names = tuple(name.strip() for name in names if name.strip())
        for region in layer.iterfind("Regions/Region"):
            number += 1
            vertices, unreadable = _vertices(region)
            yield _Outline(
                number,
                class_names,
                vertices,
                unreadable,
                is_ellipse=region.get("Type") == ELLIPSE,
                is_hole=region.get("NegativeROA") == "1",
            )


def _vertices(region: Any) -> tuple[NDArray[np.float64], int]:
    elements = region.findall("Vertices/Vertex")
    points = []
    for element in elements:
        try:
            x, y = float(element.get("X")), float(element.get("Y"))
        except (TypeError, ValueError):
            continue
        if abs(x) <= LARGEST_COORDINATE and abs(y) <= LARGEST_COORDINATE:
            points.append((x, y))
    vertices = np.array(points, dtype=np.float64).reshape(-1, 2)
    return vertices, len(elements) - len(points)


def _known(names: Sequence[str], scheme: ClassScheme) -> str | None:
    return next((known for name in names if (known := scheme.canonical(name))), None)


def _mpp(root: Any, path: Path) -> tuple[float | None, list[Finding]]:
    text = root.get("MicronsPerPixel")
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


def _oddities(outlines: list[_Outline], scheme: ClassScheme, path: Path) -> Iterator[Finding]:
    def finding(kind: FindingKind, found: list[_Outline], message: str) -> Iterator[Finding]:
        if found:
            ids = tuple(outline.id for outline in found)
            text = f"{len(ids)} {message} ({'object' if len(ids) == 1 else 'objects'} "
            text += f"{english_list(ids)})"
            yield Finding(kind, text, path=path, count=len(ids), object_ids=ids)

    yield from _unknown_classes(outlines, scheme, path)
    known = [outline for outline in outlines if _known(outline.class_names, scheme)]
    yield from finding(
        FindingKind.UNREADABLE,
        [outline for outline in known if outline.unreadable_vertices],
        "polygon(s) with vertices without a readable X and Y, drawn without these vertices",
    )
    degenerate = [o for o in known if len(np.unique(o.vertices_xy, axis=0)) < 3]
    yield from finding(
        FindingKind.DEGENERATE,
        degenerate,
        "polygon(s) with fewer than three different vertices, kept as they are",
    )
    yield from finding(
        FindingKind.SELF_CROSSING,
        [o for o in known if len(o.vertices_xy) > 3 and _crosses(o.vertices_xy)],
        "polygon(s) whose outline crosses itself, filled by the even-odd rule",
    )
    yield from finding(
        FindingKind.FALLBACK,
        [outline for outline in known if outline.is_ellipse or outline.is_hole],
        "ellipse(s) or negative region(s) of ImageScope, filled like any other polygon",
    )


def _unknown_classes(
    outlines: list[_Outline], scheme: ClassScheme, path: Path
) -> Iterator[Finding]:
    unknown = [outline for outline in outlines if not _known(outline.class_names, scheme)]
    names = Counter(outline.class_names[:1] for outline in unknown)
    known = [*scheme.names, *([scheme.ambiguous] if scheme.ambiguous else [])]
    for name, count in names.items():
        called = f"of the unknown class '{name[0]}'" if name else "without a class name"
        yield Finding(
            FindingKind.UNKNOWN_CLASS,
            f"{count} polygon(s) {called} left out; known are {english_list(known)} "
            f"(other spellings can be listed under [aliases] in cohort.toml)",
            path=path,
            class_name=name[0] if name else None,
            count=count,
            object_ids=tuple(o.id for o in unknown if o.class_names[:1] == name),
        )


def _crosses(vertices_xy: NDArray[np.float64]) -> bool:
    xs, ys = np.ascontiguousarray(vertices_xy.T)
    return bool(crosses_itself(xs, ys))


def _document(polygons: Iterable[Polygon], mpp: float | None) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8" standalone="no"?>'
    scale = f' MicronsPerPixel="{_number(mpp)}"' if mpp is not None else ""
    yield f"<Annotations{scale}>"
    number = 0
    for layer, (name, run) in enumerate(groupby(polygons, key=lambda p: p.class_name), start=1):
        yield (
            f'<Annotation Id="{layer}" Name="" ReadOnly="0" NameReadOnly="0" '
            f'LineColorReadOnly="0" Incremental="0" Type="4" LineColor="65280" Visible="1" '
            f'Selected="0" MarkupImagePath="" MacroName="">'
        )
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
                yield f'<Vertex X="{_number(x)}" Y="{_number(y)}" Z="0"/>'
            yield "</Vertices></Region>"
        yield "</Regions><Plots/></Annotation>"
    yield "</Annotations>"


def _number(value: float) -> str:
    # Every digit that matters and no exponent, which ImageScope would not expect.
    return np.format_float_positional(value, trim="-")
