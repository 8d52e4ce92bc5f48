"""Annotation stores of TIAToolbox, and those written by hand with its tables."""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError, UnwritableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.common.progress import StoppedError
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.polygons import annotation_store
from napari_panoptic.io.formats.polygons.annotation_store import write_store
from napari_panoptic.io.formats.polygons.geojson_writer import geo_objects
from napari_panoptic.io.formats.polygons.model import PolygonFile
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.contour_files import label_image, tiatoolbox_store
from tests.support.examples import examples
from tests.support.outlines import read_outlines, stopped

Rings = Sequence[Sequence[Sequence[float]]]
SQUARE = [[(1, 1), (5, 1), (5, 5), (1, 5), (1, 1)]]


def polygon_wkb(rings: Rings, *, order: str = "<", code: int = 3) -> bytes:
    parts = [struct.pack(f"{order}BII", order == "<", code, len(rings))]
    for ring in rings:
        values = [value for point in ring for value in point]
        parts.append(struct.pack(f"{order}I{len(values)}d", len(ring), *values))
    return b"".join(parts)


def store(
    folder: Path,
    *rows: tuple[bytes | str | None, Any],
    compression: str | None = "zlib",
    statements: Sequence[str] = (),
) -> Path:
    """Write a store as TIAToolbox does; properties that are text are kept as they are."""
    path = folder / "a.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE metadata (key TEXT UNIQUE, value TEXT)")
        value = json.dumps(compression)
        connection.execute("INSERT INTO metadata VALUES ('compression', ?)", (value,))
        connection.execute(
            "CREATE TABLE annotations(id INTEGER PRIMARY KEY, key TEXT UNIQUE, objtype TEXT, "
            "cx FLOAT NOT NULL, cy FLOAT NOT NULL, geometry BLOB, properties TEXT, "
            "area FLOAT NOT NULL)"
        )
        for number, (geometry, properties) in enumerate(rows):
            if isinstance(geometry, bytes) and compression == "zlib":
                geometry = zlib.compress(geometry)
            text = properties if isinstance(properties, str) else json.dumps(properties)
            connection.execute(
                "INSERT INTO annotations VALUES (NULL, ?, 'Polygon', 0, 0, ?, ?, 0)",
                (str(number), geometry, text),
            )
        for statement in statements:
            connection.execute(statement)
    return path


def read(path: Path) -> PolygonFile:
    return read_outlines(Source.ANNOTATION_STORE, path)


def loaded(path: Path, shape: tuple[int, int]) -> LoadedMasks:
    files = MaskFiles(Source.ANNOTATION_STORE, {"": (path,)})
    return load_masks(files, MONUSAC_CLASSES, shape=shape)


def test_what_tiatoolbox_wrote_gives_its_objects_back(tmp_path: Path) -> None:
    expected = label_image()
    path = tiatoolbox_store(tmp_path)
    masks = loaded(path, expected.shape)
    assert np.array_equal(masks.labels.id_image(), expected)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT properties FROM annotations ORDER BY id").fetchall()
    assert masks.labels.class_names_of_objects().tolist() == [
        json.loads(text)["type"] for (text,) in rows
    ]
    assert not masks.findings


@given(
    image=arrays(
        np.int32,
        array_shapes(min_dims=2, max_dims=2, max_side=8),
        elements=st.integers(0, 3),
    )
)
@settings(max_examples=examples(60), deadline=None)
def test_what_is_written_comes_back_pixel_by_pixel(image: NDArray[np.int32]) -> None:
    names = dict(zip(range(1, 4), MONUSAC_CLASSES.names, strict=False))
    labels = LabelImage.from_array(image, names, MONUSAC_CLASSES.names)
    height, width = image.shape
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        assert write_store(path, geo_objects(labels, side=Side.PREDICTION)) == len(labels)
        again = loaded(path, (height, width)).labels
        with closing(sqlite3.connect(path)) as connection:
            areas = connection.execute(
                "SELECT area, cx, cy FROM annotations ORDER BY id"
            ).fetchall()
            boxes = connection.execute("SELECT * FROM rtree ORDER BY id").fetchall()
    assert np.array_equal(again.index, labels.index)
    assert again.class_index.tolist() == labels.class_index.tolist()
    for row, ((area, cx, cy), box) in enumerate(zip(areas, boxes, strict=True)):
        y, x = np.nonzero(labels.index == row + 1)
        assert (area, cx, cy) == pytest.approx((len(y), x.mean(), y.mean()))
        assert box[1:] == (x.min() - 0.5, x.max() + 0.5, y.min() - 0.5, y.max() + 0.5)


def test_figures_become_properties(tmp_path: Path) -> None:
    labels = LabelImage.from_array([[0, 4]], "Macrophage", MONUSAC_CLASSES.names)
    details = {4: {"iou": 0.75, "status": "TP", "hausdorff_px": float("nan")}}
    objects = geo_objects(labels, side=Side.PREDICTION, region="R", team="A", details=details)
    write_store(tmp_path / "a.db", objects)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        ((text,),) = connection.execute("SELECT properties FROM annotations").fetchall()
    assert json.loads(text) == {
        "name": "prediction 4",
        "type": "Macrophage",
        "iou": 0.75,
        "status": "TP",
        "region": "R",
        "team": "A",
        "side": "prediction",
        "id": 4.0,
        "area_px": 1.0,
    }


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("code", "more"), [(3, 0), (1003, 1), (3003, 2), (0x80000003, 1)])
def test_byte_orders_and_axes(tmp_path: Path, order: str, code: int, more: int) -> None:
    rings = [[(*point, *[9.0] * more) for point in SQUARE[0]]]
    path = store(tmp_path, (polygon_wkb(rings, order=order, code=code), {"type": "Epithelial"}))
    assert read(path).polygons.vertices_xy.tolist() == [[1, 1], [5, 1], [5, 5], [1, 5]]


@pytest.mark.parametrize("compression", ["zlib", None])
def test_contours_with_holes_and_parts(tmp_path: Path, compression: str | None) -> None:
    """The pixels on the outlines are the object's, also those around a hole."""
    hole = [(2, 2), (2, 4), (4, 4), (4, 2), (2, 2)]
    inner = polygon_wkb([[(7, 1), (7, 3), (7, 1)]])
    several = struct.pack("<BII", 1, 6, 2) + polygon_wkb([*SQUARE, hole]) + inner
    path = store(tmp_path, (several, {"type": "Epithelial"}), compression=compression)
    expected = np.zeros((7, 9), bool)
    expected[1:6, 1:6] = True
    expected[3, 3] = False
    expected[1:4, 7] = True
    assert np.array_equal(loaded(path, (7, 9)).labels.index > 0, expected)


def test_between_pixels_the_centres_decide(tmp_path: Path) -> None:
    ring = [[(0.5, 0.5), (2.5, 0.5), (2.5, 1.5), (0.5, 1.5), (0.5, 0.5)]]
    path = store(tmp_path, (polygon_wkb(ring), {"type": "Epithelial"}))
    assert loaded(path, (3, 4)).labels.index.tolist() == [[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]


def test_classes(tmp_path: Path) -> None:
    square = polygon_wkb(SQUARE)
    kinds = [
        {"type": "lymphocyte", "class": "Epithelial"},
        {"class": 3},
        {"classification": {"name": "Macrophage"}},
        {"type": "Plasma"},
        {},
    ]
    file = read(store(tmp_path, *((square, kind) for kind in kinds)))
    assert file.polygons.ids.tolist() == [1, 2, 3]
    assert file.polygons.class_index.tolist() == [2, 3, 4]
    *others, order = file.findings
    assert order.kind is FindingKind.CLASS_ORDER
    unknown = {f.class_name: f.object_ids for f in others}
    assert unknown == {"Plasma": (4,), None: (5,)}


def test_other_geometries_are_left_out_and_listed(tmp_path: Path) -> None:
    line = struct.pack("<BII4d", 1, 2, 2, 0, 0, 5, 5)
    file = read(
        store(tmp_path, (None, {"type": 1}), (line, {}), (polygon_wkb(SQUARE), {"type": 1}))
    )
    assert file.polygons.ids.tolist() == [3]
    assert [(f.kind, f.object_ids) for f in file.findings] == [
        (FindingKind.UNREADABLE, (1, 2)),
        (FindingKind.CLASS_ORDER, ()),
    ]


def test_an_empty_store_has_no_objects(tmp_path: Path) -> None:
    assert len(read(store(tmp_path)).polygons) == 0


GOOD = polygon_wkb(SQUARE)


@pytest.mark.parametrize(
    "row",
    [
        (GOOD[:-1], {}),
        (b"\2" + GOOD[1:], {}),
        (b"", {}),
        (polygon_wkb([[(0, 0), (1, float("nan")), (0, 1), (0, 0)]]), {}),
        (polygon_wkb([[(0, 0), (1, 1e12), (0, 1), (0, 0)]]), {}),
        (struct.pack("<BIII", 1, 3, 1, 2**31), {}),
        (struct.pack("<BII", 1, 6, 1) + struct.pack("<BII4d", 1, 2, 2, 0, 0, 5, 5), {}),
        ("POLYGON ((0 0, 1 0, 0 1, 0 0))", {}),
        (GOOD, "{"),
        (GOOD, "[1]"),
        (GOOD, {"type": [1]}),
    ],
)
def test_rows_that_are_none_are_refused_by_number(
    tmp_path: Path, row: tuple[bytes | str, Any]
) -> None:
    path = store(tmp_path, (GOOD, {"type": 1}), row)
    with pytest.raises(UnreadableFileError, match=r"a\.db.*(row|object) 2") as caught:
        read(path)
    assert caught.value.object_id == 2


def test_a_geometry_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(annotation_store, "LARGEST_GEOMETRY", 64)
    with pytest.raises(UnreadableFileError, match="more than 64 bytes"):
        read(store(tmp_path, (GOOD, {"type": 1})))


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"SQLite format 4\0 and more")
    with pytest.raises(UnreadableFileError, match="not an SQLite file"):
        read(path)
    path.write_bytes(annotation_store.MAGIC + b"damage" * 100)
    with pytest.raises(UnreadableFileError, match="annotation store"):
        read(path)
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE others (a TEXT)")
    with pytest.raises(UnreadableFileError, match="no such table"):
        read(path)
    with pytest.raises(UnreadableFileError, match="'lzma'"):
        read(store(tmp_path, compression="lzma"))
    with pytest.raises(UnreadableFileError, match="no such file"):
        read(tmp_path / "none.db")


def test_a_store_is_never_changed_or_made(tmp_path: Path) -> None:
    path = store(tmp_path, (GOOD, {"type": 1}))
    before = path.read_bytes()
    odd = tmp_path / "a?mode=rwc#b%20.db"
    odd.write_bytes(before)
    for one in (path, odd):
        assert len(read(one).polygons) == 1
        assert one.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == sorted([path, odd])


def test_a_view_in_place_of_the_table_is_refused(tmp_path: Path) -> None:
    view = [
        "DROP TABLE annotations",
        "CREATE VIEW annotations AS SELECT 1 AS id, x'00' AS geometry, '{}' AS properties",
    ]
    with pytest.raises(UnreadableFileError, match="no such table"):
        read(store(tmp_path, statements=view))


def test_batches_and_stopping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiatoolbox_store(tmp_path)
    whole = read(path)
    monkeypatch.setattr(annotation_store, "BATCH", 5)
    told: list[tuple[int, int]] = []
    file = read_outlines(
        Source.ANNOTATION_STORE, path, MONUSAC_CLASSES, progress=lambda *done: told.append(done)
    )
    for one, other in zip(whole.polygons.flat, file.polygons.flat, strict=True):
        assert np.array_equal(one, other)
    assert told[-1] == (28, 28)
    with pytest.raises(StoppedError):
        read_outlines(Source.ANNOTATION_STORE, path, progress=stopped)


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_text("before")
    labels = LabelImage.from_array([[4]], "Macrophage", MONUSAC_CLASSES.names)
    item = next(geo_objects(labels, side=Side.PREDICTION))
    with pytest.raises(UnwritableFileError, match="cannot be written"):
        write_store(path, [item, item])
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
