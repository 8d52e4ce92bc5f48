"""TIAToolbox annotation stores (SQLite): the polygons of one region, read and written."""

from __future__ import annotations

import math
import sqlite3
import struct
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import orjson
from numpy.typing import NDArray

from napari_panoptic.common.errors import FindingKind, UnreadableFileError, UnwritableFileError
from napari_panoptic.io.files import check_file, replaced_when_complete
from napari_panoptic.io.formats.class_numbers import ClassNumbers
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.contours import as_contours
from napari_panoptic.io.formats.polygons.geojson_writer import GeoObject, objects_and_areas
from napari_panoptic.io.formats.polygons.model import (
    LARGEST_COORDINATE,
    ODD_SHAPES,
    UNKNOWN,
    PolygonFile,
    PolygonStore,
    ReadingStoppedError,
    ids_array,
    object_findings,
    unknown_class_findings,
)
from napari_panoptic.nuclei.values.cohort import ClassScheme

WHAT = "a TIAToolbox annotation store (SQLite with a table 'annotations')"
MAGIC = b"SQLite format 3\0"
BATCH = 1000
"""Rows that are held as Python objects at a time."""
LARGEST_GEOMETRY = 1 << 26
"""Bytes that one geometry may have, so that a small file cannot fill the memory."""
LARGEST_PROPERTIES = 1 << 22
"""Characters that the properties of one object may have."""
CLASS_KEYS = ("type", "class", "classification", "label")
"""Which property tells the class, the usual one first."""
STORE_VERSION = "1.0.1"
"""The version that TIAToolbox 1.4 to 2.1 write into stores, and read."""

_POLYGON, _MULTI_POLYGON = 3, 6
_HAS_Z, _HAS_M, _HAS_SYSTEM = 0x80000000, 0x40000000, 0x20000000
_SCHEMA = (
    "CREATE TABLE metadata (key TEXT UNIQUE, value TEXT)",
    "CREATE VIRTUAL TABLE rtree USING rtree(id, min_x, max_x, min_y, max_y)",
    "CREATE TABLE annotations(id INTEGER PRIMARY KEY, key TEXT UNIQUE, objtype TEXT, "
    "cx FLOAT NOT NULL, cy FLOAT NOT NULL, geometry BLOB, properties TEXT, area FLOAT NOT NULL)",
    "CREATE INDEX area ON annotations(area)",
)


def read_store(
    path: Path,
    scheme: ClassScheme,
    *,
    progress: Callable[[int, int], None] | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> PolygonFile:
    """Read the polygons of an annotation store.

    Nothing of the file is run: it is opened read-only, and no extension and no
    pickled object is loaded. The class is the first of the properties
    `CLASS_KEYS` that is there: a text, a number (see
    `napari_panoptic.io.formats.class_numbers`) or, from GeoJSON, a table with a
    ``name``. Ids are running numbers in the order of the rows.

    In a store, whole-number coordinates are the centres of pixels, as OpenCV
    has them. Where all vertices of the file are whole, they are pixels of the
    objects, as contours are: an object has the pixels on and within its
    outline, and those on the outlines of its holes. Otherwise an object has
    the pixels whose centres lie inside.

    Parameters
    ----------
    path
        The file.
    scheme
        The classes.
    progress
        Is told rows read and rows in all.
    is_wanted
        Asked now and then whether to go on.

    Returns
    -------
    PolygonFile
        With int32 vertices, or float64 ones in the frame in which the pixel
        at 0, 0 is the square to 1, 1.

    Raises
    ------
    UnreadableFileError
        Where the file is missing, damaged or no such store, or a row of it is
        none. It is refused as a whole.
    ReadingStoppedError
        Where ``is_wanted`` said no.
    """
    check_file(path, WHAT)
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise _unreadable(path, "it is no SQLite file")
    objects = _Objects(path, scheme)
    try:
        with closing(_opened(path)) as connection:
            is_packed = _compression(connection, path)
            total = connection.execute("SELECT count(*) FROM annotations").fetchone()[0]
            rows = connection.execute("SELECT geometry, properties FROM annotations ORDER BY id")
            while batch := rows.fetchmany(BATCH):
                if not is_wanted():
                    raise ReadingStoppedError("reading was stopped", path=path)
                objects.add(batch, is_packed=is_packed)
                if progress is not None:
                    progress(len(objects), total)
    except (sqlite3.Error, OverflowError) as error:
        raise _unreadable(path, f"it cannot be read ({error})") from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, "it cannot be read (text in it is no UTF-8)") from error
    return objects.finished()


def write_store(path: Path, objects: Iterable[GeoObject]) -> int:
    """Write objects as a store that TIAToolbox opens, and `read_store` to the same pixels.

    The class becomes the property ``type``; name, measurements and metadata
    are properties too. Outlines run along the edges of pixels, so that
    coordinates lie halfway between whole numbers. The file appears only when
    it is complete.

    Parameters
    ----------
    path
        Where to write; an existing file is replaced.
    objects
        What to write, with different keys.

    Returns
    -------
    int
        How many objects were written.

    Raises
    ------
    UnwritableFileError
        Where the file cannot be written; an existing one is as it was.
    """
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            count = _write(connection, objects)
            data = connection.serialize()
        with replaced_when_complete(path) as file:
            file.write(data)
    except (OSError, sqlite3.Error) as error:
        raise UnwritableFileError(
            f"the annotation store cannot be written ({error}); choose another place, or free "
            f"some space",
            path=path,
        ) from error
    return count


def write_files(path: Path, objects: Objects) -> tuple[Path, ...]:
    """Write the objects of a region; see `napari_panoptic.io.formats.format.Form`."""
    write_store(path, objects_and_areas(objects))
    return (path,)


def _unreadable(path: Path, reason: str, number: int | None = None) -> UnreadableFileError:
    return UnreadableFileError(
        f"expected {WHAT}, but {reason}; export it again", path=path, object_id=number
    )


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    # A view or a trigger in the file shall call nothing but plain SQL.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA query_only = ON")
    return connection


def _compression(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether geometries are compressed."""
    tables = {
        name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
    }
    if "annotations" not in tables:
        raise _unreadable(path, "it has no such table")
    if "metadata" not in tables:
        return False
    found = connection.execute(
        "SELECT value FROM metadata WHERE key = ?", ("compression",)
    ).fetchone()
    compression = None if found is None else _json(found[0], path)
    if compression not in (None, "zlib"):
        raise _unreadable(path, f"its geometries are compressed by {compression!r}, not by zlib")
    return compression == "zlib"


def _json(text: Any, path: Path) -> Any:
    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, TypeError) as error:
        raise _unreadable(path, "its metadata are no JSON") from error


class _Objects:
    """Turns rows into objects, and notes what is odd."""

    def __init__(self, path: Path, scheme: ClassScheme) -> None:
        self._path, self._scheme = path, scheme
        self._classes = ClassNumbers(path, scheme)
        self._store = PolygonStore(np.float64)
        self._class_index = array("h")
        self._unknown: dict[str | None, list[int]] = defaultdict(list)
        self._other_geometry = array("q")
        self._is_whole = True

    def __len__(self) -> int:
        return len(self._class_index)

    def add(self, rows: list[tuple[Any, Any]], *, is_packed: bool) -> None:
        """Take rows: geometry and properties."""
        rings: list[NDArray[np.float64]] = []
        is_hole: list[bool] = []
        object_sizes = []
        for geometry, properties in rows:
            number = len(self) + 1
            before = len(rings)
            try:
                parts = _parts(geometry, is_packed=is_packed)
                value = _class_value(properties)
            except (ValueError, struct.error, zlib.error, TypeError) as error:
                reason = f"the geometry or the properties of row {number} are none ({error})"
                raise _unreadable(self._path, reason, number) from error
            if parts is None:
                self._other_geometry.append(number)
                self._class_index.append(UNKNOWN)
            else:
                index, unknown = self._classes.of(value)
                if index == UNKNOWN:
                    self._unknown[unknown].append(number)
                self._class_index.append(index)
                for part in parts:
                    rings += part
                    is_hole += [place > 0 for place in range(len(part))]
            object_sizes.append(len(rings) - before)
        vertices = np.concatenate([np.zeros((0, 2)), *rings])
        self._is_whole &= bool((vertices == np.rint(vertices)).all())
        # Pixel 0 has its centre at 0 in the file, and at 0.5 in `Polygons`.
        self._store.add(
            vertices + 0.5,
            np.array([len(ring) for ring in rings], np.int64),
            np.array(is_hole, np.bool_),
            np.array(object_sizes, np.int64),
        )

    def finished(self) -> PolygonFile:
        """Return everything, with the findings."""
        index = np.array(self._class_index, np.int16)
        polygons, odd = self._store.finished(index)
        findings = list(unknown_class_findings(self._unknown, self._scheme, self._path))
        if self._is_whole:
            pixels = np.rint(polygons.vertices_xy - 0.5).astype(np.int32)
            polygons = as_contours(replace(polygons, vertices_xy=pixels))
        message = "row(s) whose geometry is neither a Polygon nor a MultiPolygon, left out"
        for kind, ids, text in (
            (FindingKind.UNREADABLE, ids_array(self._other_geometry), message),
            *((kind, odd[kind], ODD_SHAPES[kind]) for kind in odd),
        ):
            findings += object_findings(kind, ids, text, self._path)
        return PolygonFile(polygons, None, tuple(findings))


_Rings = list[NDArray[np.float64]]


def _parts(geometry: Any, *, is_packed: bool) -> list[_Rings] | None:
    """Read well-known binary: the rings of each part; None for anything but polygons."""
    if geometry is None:
        return None  # a point, which stands in other columns
    if not isinstance(geometry, bytes):
        raise TypeError("well-known binary was expected")
    reader = _Wkb(_unpacked(geometry) if is_packed else geometry)
    kind = reader.kind()
    if kind == _POLYGON:
        return [reader.polygon()]
    if kind != _MULTI_POLYGON:
        return None
    parts = []
    for _ in range(reader.count()):
        if reader.kind() != _POLYGON:
            raise ValueError("a MultiPolygon must be made of polygons")
        parts.append(reader.polygon())
    return parts


def _unpacked(data: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    plain = unpacker.decompress(data, LARGEST_GEOMETRY)
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ValueError(f"it is cut off, or has more than {LARGEST_GEOMETRY} bytes")
    return plain


class _Wkb:
    """Reads well-known binary (OGC 06-103r4, section 8.2) from its beginning.

    Third and fourth axes are skipped, both as in the standard and as PostGIS has them.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._order = "<"
        self._axes = 2

    def kind(self) -> int:
        """Read the byte order and the type of a geometry."""
        order = self._data[self._at : self._at + 1]
        if order not in (b"\0", b"\1"):
            raise ValueError("the byte order is none")
        self._order = "<" if order == b"\1" else ">"
        self._at += 1
        code = self.count()
        if code & _HAS_SYSTEM:
            self._at += 4  # the number of a coordinate system
        more = bool(code & _HAS_Z) + bool(code & _HAS_M)
        code &= ~(_HAS_SYSTEM | _HAS_Z | _HAS_M)
        if code >= 4000:
            raise ValueError(f"there is no geometry of type {code}")
        self._axes = 2 + max(more, (0, 1, 1, 2)[code // 1000])
        return code % 1000

    def count(self) -> int:
        """Read a number."""
        (number,) = struct.unpack_from(f"{self._order}I", self._data, self._at)
        self._at += 4
        return int(number)

    def polygon(self) -> _Rings:
        """Read the rings of a polygon, without the vertex that closes them."""
        rings = []
        for _ in range(self.count()):
            n = self.count()
            n_bytes = 8 * self._axes * n
            if n_bytes > len(self._data) - self._at:
                raise ValueError("the geometry is cut off")
            values = np.frombuffer(self._data, f"{self._order}f8", self._axes * n, self._at)
            self._at += n_bytes
            ring = values.reshape(n, self._axes)[:, :2].astype(np.float64)
            if not (np.abs(ring) <= LARGEST_COORDINATE).all():
                raise ValueError("a coordinate is no number, or far outside")
            rings.append(ring[:-1] if n > 1 and np.array_equal(ring[0], ring[-1]) else ring)
        return rings


def _class_value(properties: Any) -> Any:
    """Find what the properties of an object say of its class."""
    if properties is None:
        return None
    if not isinstance(properties, str) or len(properties) > LARGEST_PROPERTIES:
        raise ValueError("the properties are no text, or too long")
    table = orjson.loads(properties)
    if not isinstance(table, dict):
        raise TypeError("the properties are no table")
    value = next((table[key] for key in CLASS_KEYS if table.get(key) is not None), None)
    if isinstance(value, dict):
        value = value.get("name")
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError("the class is neither a name nor a number")
    return value


def _write(connection: sqlite3.Connection, objects: Iterable[GeoObject]) -> int:
    """Fill an empty data base; give the number of objects."""
    count = 0
    # What is unfinished is thrown away: nothing has to be written twice.
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    with connection:
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.executemany(
            "INSERT INTO metadata VALUES (?, ?)",
            [
                ("version", f'"{STORE_VERSION}"'),
                ("compression", '"zlib"'),
                ("compression_level", "9"),
            ],
        )
        for count, item in enumerate(objects, start=1):
            parts = [
                [np.asarray(ring, np.float64) - 0.5 for ring in (part.exterior, *part.holes)]
                for part in item.parts
            ]
            area, centre = _area_and_centroid(parts)
            every = np.concatenate([part[0] for part in parts])
            low, high = every.min(axis=0).tolist(), every.max(axis=0).tolist()
            connection.execute(
                "INSERT INTO annotations VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    count,
                    str(uuid5(NAMESPACE_URL, f"napari-panoptic:{item.key}")),
                    "Polygon" if len(parts) == 1 else "MultiPolygon",
                    *centre,
                    zlib.compress(_wkb(parts), 9),
                    orjson.dumps(_properties(item)).decode(),
                    area,
                ),
            )
            connection.execute(
                "INSERT INTO rtree VALUES (?, ?, ?, ?, ?)",
                (count, low[0], high[0], low[1], high[1]),
            )
    return count


def _properties(item: GeoObject) -> dict[str, Any]:
    numbers = {key: value for key, value in item.measurements.items() if math.isfinite(value)}
    texts = {key: text for key, text in item.metadata.items() if text}
    return {**texts, **numbers, "name": item.name, "type": item.class_name}


def _wkb(parts: list[_Rings]) -> bytes:
    polygons = [_wkb_polygon(rings) for rings in parts]
    if len(polygons) == 1:
        return polygons[0]
    return struct.pack("<BII", 1, _MULTI_POLYGON, len(polygons)) + b"".join(polygons)


def _wkb_polygon(rings: _Rings) -> bytes:
    pieces = [struct.pack("<BII", 1, _POLYGON, len(rings))]
    for ring in rings:
        closed = np.concatenate([ring, ring[:1]]).astype("<f8")
        pieces += [struct.pack("<I", len(closed)), closed.tobytes()]
    return b"".join(pieces)


def _area_and_centroid(parts: list[_Rings]) -> tuple[float, tuple[float, float]]:
    """Return area and centroid by the shoelace formula; holes run the other way round."""
    area, moment = 0.0, np.zeros(2)
    origin = parts[0][0][0]
    for ring in (ring - origin for part in parts for ring in part):
        following = np.roll(ring, -1, axis=0)
        cross = ring[:, 0] * following[:, 1] - following[:, 0] * ring[:, 1]
        area += float(cross.sum()) / 2
        moment += ((ring + following) * cross[:, None]).sum(axis=0) / 6
    x, y = (origin + moment / area).tolist()
    return abs(area), (x, y)
