"""GeoJSON as QuPath writes it: objects of one region, read feature by feature."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.files.json_files import BYTE_ORDER_MARK, parsed_json
from napari_panoptic.io.formats.polygons.collect import UNREADABLE_VERTICES
from napari_panoptic.io.formats.polygons.geojson_writer import write_files
from napari_panoptic.io.formats.polygons.model import LARGEST_COORDINATE
from napari_panoptic.io.formats.polygons.outline import (
    LeftOut,
    MadeBy,
    Note,
    Outline,
    OutlineFile,
    Said,
)
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.io.formats.scores import ScoreNames, score_or_none
from napari_panoptic.kernels.geojson import ARMED, DEPTH, LIST_DEPTH, RING, split_features
from napari_panoptic.values.cohort import Multipolygons, Source

WHAT = "GeoJSON with a list of features, as QuPath exports it"
BLOCK_BYTES = 4 * 2**20
BATCH_FEATURES = 500
NOT_OBJECTS = frozenset(
    {"tile", "tmacore", "tma_core", "root", "pathtileobject", "tmacoreobject", "pathrootobject"}
)
"""QuPath's object types that outline no nucleus, in small letters; those of QuPath 0.2 stand
in ``id``."""
DETECTIONS = frozenset({"detection", "cell", "pathdetectionobject", "pathcellobject"})
ANNOTATIONS = frozenset({"annotation", "pathannotationobject"})
GZIP_MAGIC, ZIP_MAGIC = b"\x1f\x8b", b"PK\x03\x04"
_DAMAGED_ARCHIVE = (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile, NotImplementedError)

_NO_GEOMETRY = LeftOut(
    "feature(s) without a geometry, left out", kind=FindingKind.UNREADABLE, is_numbered=True
)
_OTHER_GEOMETRY = (
    "feature(s) whose geometry is neither a Polygon nor a MultiPolygon but {}, left out"
)
_NOT_AN_OBJECT = LeftOut(
    "outline(s) of tiles or of cores of a tissue array, left out", is_numbered=True
)
_NUCLEUS_TAKEN: Note = (
    FindingKind.FALLBACK,
    "cell(s) with a nucleus, of which the nucleus was taken",
)
_CELL_TAKEN: Note = (
    FindingKind.FALLBACK,
    "cell(s) without a nucleus, of which the outline of the whole cell was taken",
)
_CELLS = frozenset({"cell", "pathcellobject"})
_MADE_BY = dict.fromkeys(DETECTIONS, MadeBy.PROGRAM) | dict.fromkeys(ANNOTATIONS, MadeBy.HAND)


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the objects of a GeoJSON file.

    A file is a FeatureCollection, a list of features, or one feature; each feature a Polygon or a
    MultiPolygon, with or without holes, which is one object, unless the rules make each part one;
    ids then count parts. A QuPath cell is read by its nucleus, if it has one; findings count the
    cells read either way. Its class is the first known name of ``properties.classification``: a
    text, or the ``name`` or the ``names`` in it; of a derived class such as "Tumour: Positive" the
    whole, then its parts. Without it the class is ``properties.type``, a name or a number as in
    `napari_panoptic.io.formats.class_numbers`; without that the class that the scheme has as an
    alias of ``""``, or the only class there is. Ids count every feature of the file, whatever its
    class; the features that QuPath nests into another, its children, follow it. Scores are
    measurements or properties, see `napari_panoptic.io.formats.scores`.

    The file is in UTF-8; or packed by gzip, or alone in a ZIP archive, as QuPath exports it on
    request.
    """
    scores = ScoreNames(file.rules.score)
    planes: set[tuple[Any, Any]] = set()
    numbers = count(1)
    for batch in _batches(file):
        features = _with_children(batch.features)
        if file.rules.multipolygons is Multipolygons.SPLIT:
            features = _parts_alone(features)
        for feature, number in zip(features, numbers, strict=False):
            try:
                yield _said(feature, batch, scores, planes)
            except (TypeError, AttributeError, KeyError):
                raise UnreadableFileError(
                    f"expected {WHAT}, but its feature {number} is not a feature, or its geometry "
                    f"or classification is not as GeoJSON and QuPath have them; export it again",
                    object_id=number,
                ) from None
    if len(planes) > 1:
        raise UnreadableFileError(
            f"expected {WHAT}, of one plane, but its objects lie on {len(planes)} planes (z or t) "
            f"of a stack, and a region is one: export those of one plane"
        )
    yield from scores.findings(file.path)


@dataclass(frozen=True, eq=False)
class _Batch:
    """Some features: their skeletons, and the rings taken out of them with their ends."""

    features: list[Any]
    vertices_xy: NDArray[np.float64]
    ring_ends: list[int]

    def ring(self, ring: Any) -> tuple[NDArray[np.float64], int]:
        """Return a ring of a feature, and the number of its vertices that cannot be read.

        Raises
        ------
        TypeError
            If it is not a ring.
        """
        if type(ring) is not dict:
            return _listed(ring)
        number = ring.get(RING)
        if type(number) is not int or not 0 <= number < len(self.ring_ends):
            raise TypeError
        first = self.ring_ends[number - 1] if number else 0
        return self.vertices_xy[first : self.ring_ends[number]], 0


def _said(
    feature: Any, batch: _Batch, scores: ScoreNames, planes: set[tuple[Any, Any]]
) -> Outline | LeftOut:
    """Return what a feature says; add its plane to the others."""
    if feature["type"] != "Feature":
        raise TypeError
    properties = feature.get("properties") or {}
    kind = properties.get("objectType") or properties.get("object_type")
    kind = (kind or str(feature.get("id"))).casefold()
    if kind in NOT_OBJECTS:
        return _NOT_AN_OBJECT
    nucleus = feature.get("nucleusGeometry")
    if nucleus is None:  # where QuPath's library for Python has it
        nucleus = (properties.get("extra_geometries") or {}).get("nucleus")
    geometry = feature.get("geometry") if nucleus is None else nucleus
    if geometry is None or geometry.get("coordinates", ()) is None:
        return _NO_GEOMETRY
    if geometry["type"] == "Polygon":
        parts = [geometry["coordinates"]]
    elif geometry["type"] == "MultiPolygon":
        parts = geometry["coordinates"]
    else:
        detail = str(geometry["type"])
        return LeftOut(_OTHER_GEOMETRY, detail, FindingKind.UNREADABLE, is_numbered=True)
    rings: list[NDArray[np.float64]] = []
    is_hole: list[bool] = []
    unreadable = 0
    for part in parts:
        if type(part) is not list:
            raise TypeError
        for place, ring in enumerate(part):
            points, missing = batch.ring(ring)
            rings.append(points)
            is_hole.append(place > 0)
            unreadable += missing
    plane = geometry.get("plane") or {}
    planes.add((plane.get("t") or 0, plane.get("z") or 0))
    notes = [UNREADABLE_VERTICES] if unreadable else []
    if nucleus is not None:
        notes.append(_NUCLEUS_TAKEN)
    elif kind in _CELLS:
        notes.append(_CELL_TAKEN)
    return Outline(
        rings,
        _class_entry(properties),
        score=score_or_none(scores.of(properties.get("measurements"), properties)),
        is_hole=is_hole,
        notes=notes,
        made_by=_MADE_BY.get(kind, MadeBy.UNSTATED),
    )


def _class_entry(properties: dict[str, Any]) -> Hashable:
    """Return the class of a feature: possible names, or a number."""
    value = properties.get("classification")
    if type(value) is dict:
        names = value.get("names")
        value = value.get("name") if names is None else tuple(names)
    elif type(value) is list:
        value = tuple(value)
    if value is None:
        kind = properties.get("type")  # of TIAToolbox
        if type(kind) in (int, float) or (type(kind) is str and kind.isdecimal()):
            return kind
        value = kind if type(kind) is str else None
    return _class_names(value)


@lru_cache
def _class_names(classification: Any) -> tuple[str, ...]:
    """Return possible names of a class, the most precise first.

    Raises
    ------
    TypeError
        If QuPath never writes such a value.
    """
    if classification is None:
        return ()
    if isinstance(classification, str):
        parts = classification.split(":")
    elif isinstance(classification, tuple):
        parts = list(classification)
        classification = ": ".join(parts)
    else:
        raise TypeError
    names = dict.fromkeys(name.strip() for name in (classification, *parts))
    return tuple(name for name in names if name)


def _with_children(features: list[Any]) -> Iterator[Any]:
    """Yield features, each followed by those nested in it."""
    waiting = features[::-1]
    while waiting:
        feature = waiting.pop()
        yield feature
        properties = feature.get("properties") if type(feature) is dict else None
        if type(properties) is dict:
            children = properties.get("childObjects") or properties.get("children")
            waiting += children[::-1] if type(children) is list else []


def _parts_alone(features: Iterator[Any]) -> Iterator[Any]:
    """Yield a feature for each part of a MultiPolygon, and other features as they are."""
    for feature in features:
        geometry = feature.get("geometry") if type(feature) is dict else None
        parts = geometry.get("coordinates") if type(geometry) is dict else None
        if geometry is None or geometry.get("type") != "MultiPolygon" or not parts:
            yield feature
            continue
        if type(parts) is not list or feature.get("nucleusGeometry") is not None:
            yield feature
            continue
        for part in parts:
            yield {**feature, "geometry": {"type": "Polygon", "coordinates": part}}


def _listed(ring: Any) -> tuple[NDArray[np.float64], int]:
    """Read a ring that the scanner left; return its vertices, and the number of unreadable ones."""
    if not isinstance(ring, list):
        raise TypeError
    points = []
    for position in ring:
        if isinstance(position, list) and len(position) > 1:
            x, y = position[:2]
            if _is_coordinate(x) and _is_coordinate(y):
                points.append((float(x), float(y)))
    unreadable = len(ring) - len(points)
    if len(points) > 1 and points[0] == points[-1]:
        points.pop()
    return np.array(points, np.float64).reshape(-1, 2), unreadable


def _is_coordinate(value: Any) -> bool:
    # Not `math.fabs`, which fails for whole numbers of hundreds of digits.
    return type(value) in (int, float) and abs(value) <= LARGEST_COORDINATE


def _batches(source: OutlineFile) -> Iterator[_Batch]:
    """Split a file into batches of features, and check the rest."""
    total = source.path.stat().st_size
    with source.path.open("rb") as file, _unpacked(file) as plain:
        splitter = _Splitter(plain)
        try:
            while splitter.read_on():
                yield from splitter.complete_batches()
                source.progress(file.tell(), total)
        except _DAMAGED_ARCHIVE as error:
            raise _damaged_archive(error) from error
        yield splitter.last_batch()


@contextmanager
def _unpacked(file: BinaryIO) -> Iterator[BinaryIO]:
    """Open the file, unpacked if it is packed."""
    start = file.read(4)
    file.seek(0)
    if start.startswith(GZIP_MAGIC):
        with gzip.GzipFile(fileobj=file) as plain:
            yield cast("BinaryIO", plain)
    elif start == ZIP_MAGIC:
        with _archive(file) as archive:
            names = [
                name
                for name in archive.namelist()
                if name.lower().endswith((".geojson", ".json")) and not name.startswith("__MACOSX/")
            ]
            if len(names) != 1:
                raise UnreadableFileError(
                    f"expected one GeoJSON file in the archive, found {len(names)}; unpack it, or "
                    f"export each region into its own"
                )
            try:
                member = archive.open(names[0])
            except (RuntimeError, *_DAMAGED_ARCHIVE) as error:  # encrypted, for one
                raise _damaged_archive(error) from error
            with member:
                yield cast("BinaryIO", member)
    else:
        yield file


def _archive(file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except _DAMAGED_ARCHIVE as error:
        raise _damaged_archive(error) from error


def _damaged_archive(error: Exception) -> UnreadableFileError:
    return UnreadableFileError(
        f"expected {WHAT}, packed, but it cannot be unpacked ({error}); export it again"
    )


class _Splitter:
    """A file on its way through `split_features`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._data = b""
        self._state = np.zeros(5, np.int64)
        self._frame = bytearray()
        self._counts = np.zeros(4, np.int64)
        self._batch = np.empty(0, np.uint8)
        self._xy = np.empty((0, 2), np.float64)
        self._ring_sizes = np.empty(0, np.int64)
        self._features = 0
        self._was_split = False

    def read_on(self) -> bool:
        """Read the next block, a larger one if the last held no complete token."""
        block = self._file.read(max(BLOCK_BYTES, len(self._data)))
        if not self._features and not self._frame and not self._counts[1] and not self._data:
            block = self._begin(block)
        self._data += block
        return bool(block)

    def _begin(self, block: bytes) -> bytes:
        block = block.removeprefix(BYTE_ORDER_MARK).lstrip(b" \t\r\n")
        if block and block[:1] not in (b"{", b"["):
            raise self._error("it begins differently (or is not in UTF-8)")
        is_list = block[:1] == b"["
        self._state[LIST_DEPTH] = 1 if is_list else 2
        self._state[ARMED] = is_list
        return block

    def complete_batches(self) -> Iterator[_Batch]:
        """Yield the batches that end in the block."""
        data = np.frombuffer(self._data, np.uint8)
        at, is_complete = 0, True
        while is_complete:
            more = len(data) - at
            # The mark of a ring is longer than the shortest rings are.
            self._batch = _with_room(self._batch, self._counts[1], 3 * more + 64)
            self._xy = _with_room(self._xy, self._counts[2], more // 6 + 2)
            self._ring_sizes = _with_room(self._ring_sizes, self._counts[3], more // 6 + 2)
            frame = np.empty(more, np.uint8)
            at, is_complete = split_features(
                data,
                at,
                BATCH_FEATURES,
                self._state,
                frame,
                self._batch,
                self._xy,
                self._ring_sizes,
                self._counts,
            )
            self._frame += frame[: self._counts[0]].tobytes()
            self._counts[0] = 0
            if is_complete:
                yield self._parsed(is_last=False)
        self._data = self._data[at:]

    def last_batch(self) -> _Batch:
        """Return the features after the last full batch, and check the text around them."""
        if self._data or self._state[DEPTH] != 0 or not self._frame:
            raise self._error("it is cut off, or its brackets do not match")
        batch = self._parsed(is_last=True)
        root = self._loaded(bytes(self._frame))
        if isinstance(root, dict):
            if root.get("type") == "Feature" and not self._features:
                return _Batch([root], batch.vertices_xy, batch.ring_ends)
            if root.get("type") != "FeatureCollection" or root.get("features") != []:
                raise self._error(
                    "it is neither a FeatureCollection, a Feature, nor a list of them"
                )
        return batch

    def _parsed(self, *, is_last: bool) -> _Batch:
        _, text, points, rings = self._counts.tolist()
        features = self._loaded(b"[" + self._batch[:text].tobytes() + b"]")
        # A comma was taken away before or behind: there has to be something.
        if not features and (self._was_split or not is_last):
            raise self._error("it has a comma with no feature after it")
        ends = np.cumsum(self._ring_sizes[:rings]).tolist()
        batch = _Batch(features, self._xy[:points].copy(), ends)
        self._features += len(features)
        self._counts[:] = 0
        self._was_split = True
        return batch

    def _loaded(self, text: bytes) -> Any:
        try:
            return parsed_json(text)
        except ValueError as error:
            raise self._error(f"it is damaged ({error})") from error

    def _error(self, found: str) -> UnreadableFileError:
        place = f", after {self._features} features" if self._features else ""
        return UnreadableFileError(
            f"expected {WHAT}, but {found}{place}; export it again. Nothing of it was used: half "
            f"an annotation would turn good predictions into false ones"
        )


def _with_room(values: NDArray[Any], used: int, more: int) -> NDArray[Any]:
    """Return an array with the used part of another, and room for more."""
    if len(values) >= used + more:
        return values
    larger = np.empty((used + more, *values.shape[1:]), values.dtype)
    larger[:used] = values[:used]
    return larger


FORMAT = polygon_format(
    OutlineReader(read_objects, what=WHAT, vertices=None, most_bytes=None),
    name=Source.GEOJSON,
    title="GeoJSON, opens in QuPath",
    endings=(".geojson", ".json"),
    write=write_files,
)
