"""TIAToolbox annotation stores (SQLite): the polygons of one region, read and written."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError, UnwritableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.files.json_files import parsed_json
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.collect import BATCH
from napari_panoptic.io.formats.polygons.geojson_writer import GeoObject, objects_and_areas
from napari_panoptic.io.formats.polygons.outline import LeftOut, Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.io.formats.polygons.trace import Part
from napari_panoptic.io.formats.scores import ScoreNames, score_or_none
from napari_panoptic.values.cohort import Source, Vertices

if TYPE_CHECKING:
    import shapely

WHAT = "a TIAToolbox annotation store (SQLite with a table 'annotations')"
MAGIC = b"SQLite format 3\0"
LARGEST_GEOMETRY = 1 << 26
"""Bytes that one geometry may have, so that a small file cannot fill the memory."""
LARGEST_PROPERTIES = 1 << 22
"""Characters that the properties of one object may have."""
CLASS_KEYS = ("type", "class", "classification", "label")
"""Properties that name the class, the usual one first."""
STORE_VERSION = "1.0.1"
"""The version that TIAToolbox 1.4 to 2.1 write into stores, and read."""

_NO_POLYGON = LeftOut(
    "row(s) whose geometry is neither a Polygon nor a MultiPolygon, left out",
    kind=FindingKind.UNREADABLE,
    is_numbered=True,
)
_NO_RING = LeftOut(
    "row(s) with a ring of fewer than four points, left out",
    kind=FindingKind.DEGENERATE,
    is_numbered=True,
)
_SCHEMA = (
    "CREATE TABLE metadata (key TEXT UNIQUE, value TEXT)",
    "CREATE VIRTUAL TABLE rtree USING rtree(id, min_x, max_x, min_y, max_y)",
    "CREATE TABLE annotations(id INTEGER PRIMARY KEY, key TEXT UNIQUE, objtype TEXT, "
    "cx FLOAT NOT NULL, cy FLOAT NOT NULL, geometry BLOB, properties TEXT, area FLOAT NOT NULL)",
    "CREATE INDEX area ON annotations(area)",
)


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the polygons of an annotation store.

    Nothing of the file is run: it is opened read-only, and no extension and no
    pickled object is loaded. The class is the first of the properties
    `CLASS_KEYS` that is there: a text, a number (see
    `napari_panoptic.io.formats.class_numbers`) or, from GeoJSON, a table with a
    ``name``. Ids are running numbers in the order of the rows. Rows with a ring of fewer than four
    points are left out, and reported.

    In a store, whole-number coordinates are the centres of pixels, as OpenCV
    has them. Where all vertices of the file are whole, they are pixels of the
    objects, as contours are: an object has the pixels on and within its
    outline, and those on the outlines of its holes. Otherwise an object has
    the pixels whose centres lie inside.
    """
    with file.path.open("rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            raise _unreadable("it is not an SQLite file")
    scores = ScoreNames(file.rules.score)
    try:
        with closing(_opened(file.path)) as connection:
            is_packed = _compression(connection)
            total = connection.execute("SELECT count(*) FROM annotations").fetchone()[0]
            rows = connection.execute("SELECT geometry, properties FROM annotations ORDER BY id")
            for number, (geometry, properties) in enumerate(rows, start=1):
                yield _row(geometry, properties, number, scores, is_packed=is_packed)
                if number % BATCH == 0 or number == total:
                    file.progress(number, total)
    except (sqlite3.Error, OverflowError) as error:
        raise _unreadable(f"it cannot be read ({error})") from error
    except UnicodeDecodeError as error:
        raise _unreadable("it cannot be read (text in it is not UTF-8)") from error
    yield from scores.findings(file.path)


def write_store(path: Path, objects: Iterable[GeoObject]) -> int:
    """Write objects as a store that TIAToolbox opens, and `read_store` to the same pixels.

    The class becomes the property ``type``; name, measurements and metadata
    are properties too. Outlines run along the edges of pixels, so that
    coordinates lie halfway between whole numbers. The file appears only when
    it is complete.

    Parameters
    ----------
    path
        The file to write; an existing one is replaced.
    objects
        The objects to write, with different keys.

    Returns
    -------
    int
        The number of objects written.

    Raises
    ------
    UnwritableFileError
        If the file cannot be written; an existing one stays as it was.
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
    """Write the objects of a region; see `napari_panoptic.io.formats.format.Format`."""
    write_store(path, objects_and_areas(objects))
    return (path,)


def _unreadable(reason: str, number: int | None = None) -> UnreadableFileError:
    return UnreadableFileError(f"expected {WHAT}, but {reason}; export it again", object_id=number)


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    # A view or a trigger in the file shall call nothing but plain SQL.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA query_only = ON")
    return connection


def _compression(connection: sqlite3.Connection) -> bool:
    """Return whether geometries are compressed."""
    tables = {
        name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
    }
    if "annotations" not in tables:
        raise _unreadable("it has no such table")
    if "metadata" not in tables:
        return False
    query = "SELECT value FROM metadata WHERE key = ?"
    found = connection.execute(query, ("compression",)).fetchone()
    try:
        compression = None if found is None else orjson.loads(found[0])
    except (orjson.JSONDecodeError, TypeError) as error:
        raise _unreadable("its metadata are not JSON") from error
    if compression not in (None, "zlib"):
        raise _unreadable(f"its geometries are compressed by {compression!r}, not by zlib")
    return compression == "zlib"


def _row(
    geometry: Any, properties: Any, number: int, scores: ScoreNames, *, is_packed: bool
) -> Outline | LeftOut:
    """Return what a row says."""
    import shapely

    try:
        shape = _shape(geometry, is_packed=is_packed)
        table = _table(properties)
        entry = _class_value(table)
    except shapely.errors.GEOSException as error:
        if "number of points" not in str(error):
            raise _not_valid(number, error) from error
        return _NO_RING
    except (ValueError, zlib.error, TypeError) as error:
        raise _not_valid(number, error) from error
    if not isinstance(shape, shapely.Polygon | shapely.MultiPolygon):
        return _NO_POLYGON
    rings: list[NDArray[np.float64]] = []
    is_hole: list[bool] = []
    for part in [shape] if isinstance(shape, shapely.Polygon) else shape.geoms:
        lines = [part.exterior, *part.interiors] if not part.is_empty else []
        rings += map(shapely.get_coordinates, lines)
        is_hole += [place > 0 for place in range(len(lines))]
    return Outline(rings, entry, score=score_or_none(scores.of(table)), is_hole=is_hole)


def _not_valid(number: int, error: Exception) -> UnreadableFileError:
    reason = f"row {number} has no valid geometry or properties ({error})"
    return _unreadable(reason, number)


def _shape(geometry: Any, *, is_packed: bool) -> Any:
    """Return the shape in well-known binary; None for a point, which stands in other columns."""
    import shapely

    if geometry is None:
        return None
    if not isinstance(geometry, bytes):
        raise TypeError("well-known binary was expected")
    data = _unpacked(geometry) if is_packed else geometry
    if data[:1] not in (b"\0", b"\1"):  # which GEOS does not check
        raise ValueError("the byte order is invalid")
    try:
        with np.errstate(invalid="ignore"):  # coordinates that are not numbers are found later
            return shapely.from_wkb(data)
    except shapely.errors.GEOSException as error:
        if "closed linestring" not in str(error):
            raise
        return shapely.from_wkb(data, on_invalid="fix")


def _unpacked(data: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    plain = unpacker.decompress(data, LARGEST_GEOMETRY)
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ValueError(f"it is cut off, or has more than {LARGEST_GEOMETRY} bytes")
    return plain


def _table(properties: Any) -> dict[str, Any]:
    """Return the properties of an object."""
    if properties is None:
        return {}
    if not isinstance(properties, str) or len(properties) > LARGEST_PROPERTIES:
        raise ValueError("the properties are not text, or too long")
    table = parsed_json(properties.encode())
    if not isinstance(table, dict):
        raise TypeError("the properties are not a table")
    return table


def _class_value(table: dict[str, Any]) -> Any:
    """Return the class stated in the properties of an object."""
    value = next((table[key] for key in CLASS_KEYS if table.get(key) is not None), None)
    if isinstance(value, dict):
        value = value.get("name")
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError("the class is neither a name nor a number")
    return value


def _write(connection: sqlite3.Connection, objects: Iterable[GeoObject]) -> int:
    """Fill an empty database; return the number of objects."""
    import shapely

    count = 0
    # An unfinished database is discarded: no journal is needed.
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
            shape = _shape_of(item.parts)
            low_x, low_y, high_x, high_y = shape.bounds
            properties = {
                **item.texts,
                **item.numbers,
                "name": item.name,
                "type": item.class_name,
            }
            connection.execute(
                "INSERT INTO annotations VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    count,
                    item.uuid,
                    shape.geom_type,
                    shape.centroid.x,
                    shape.centroid.y,
                    zlib.compress(shapely.to_wkb(shape, byte_order=1), 9),
                    orjson.dumps(properties).decode(),
                    shape.area,
                ),
            )
            connection.execute(
                "INSERT INTO rtree VALUES (?, ?, ?, ?, ?)",
                (count, low_x, high_x, low_y, high_y),
            )
    return count


def _shape_of(parts: tuple[Part, ...]) -> shapely.Polygon | shapely.MultiPolygon:
    """Return the shape of an object in the frame in which pixel 0 has its centre at 0."""
    import shapely

    shapes = [
        shapely.Polygon(part.exterior - 0.5, [hole - 0.5 for hole in part.holes]) for part in parts
    ]
    return shapes[0] if len(shapes) == 1 else shapely.MultiPolygon(shapes)


FORMAT = polygon_format(
    OutlineReader(
        read_objects, what=WHAT, vertices=Vertices.PIXEL_CENTRES, whole_only=True, most_bytes=None
    ),
    name=Source.ANNOTATION_STORE,
    title="TIAToolbox annotation store",
    endings=(".db",),
    write=write_files,
)
