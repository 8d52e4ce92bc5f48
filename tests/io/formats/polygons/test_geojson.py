"""GeoJSON against a plain reading with the standard library."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import StoppedError
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons import geojson
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, PolygonFile
from napari_panoptic.io.formats.registry import load_masks, open_masks
from napari_panoptic.io.formats.saving import write_objects
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    MaskFiles,
    Multipolygons,
    OutlineRules,
    Source,
)
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.builders import square, two_objects
from tests.support.examples import examples, seeds
from tests.support.outlines import read_outlines, stopped

Json = Any


def feature(
    coordinates: Json, classification: Json = "Epithelial", *, kind: str = "Polygon", **more: Json
) -> dict[str, Json]:
    return {
        "type": "Feature",
        "geometry": {"type": kind, "coordinates": coordinates},
        "properties": {"objectType": "detection", "classification": classification},
        **more,
    }


def closed(*points: tuple[object, object]) -> list[Json]:
    return [*(list(point) for point in points), list(points[0])]


def collection(*features: Json) -> dict[str, Json]:
    return {"type": "FeatureCollection", "features": list(features)}


def read(tmp_path: Path, content: Json) -> PolygonFile:
    path = tmp_path / "a.geojson"
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    path.write_bytes(content)
    return read_outlines(Source.GEOJSON, path)


def rings_of(file: PolygonFile) -> list[list[tuple[list[list[float]], bool]]]:
    polygons = file.polygons
    starts = polygons.ring_starts
    return [
        [
            (polygons.vertices_xy[starts[k] : starts[k + 1]].tolist(), bool(polygons.is_hole[k]))
            for k in range(first, last)
        ]
        for first, last in zip(
            polygons.object_starts[:-1].tolist(), polygons.object_starts[1:].tolist(), strict=True
        )
    ]


def only(file: PolygonFile, kind: FindingKind) -> Finding:
    (finding,) = [finding for finding in file.findings if finding.kind is kind]
    return finding


SQUARE = closed(*square(1, 1))


def test_objects_come_in_document_order_with_running_ids(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        collection(
            feature([SQUARE], "Neutrophil"),
            feature([SQUARE], "Nonsense"),
            feature([closed((1.9, -0.9), (5, 0), (5, 5))], {"name": "Ambiguous"}),
            feature([[SQUARE], [closed(*square(9, 9)), SQUARE]], kind="MultiPolygon"),
        ),
    )
    assert file.polygons.ids.tolist() == [1, 3, 4]
    assert file.polygons.class_index.tolist() == [3, AMBIGUOUS, 1]
    corners = [list(point) for point in square(1, 1)]
    assert rings_of(file) == [
        [(corners, False)],
        [([[1.9, -0.9], [5, 0], [5, 5]], False)],
        [(corners, False), ([list(point) for point in square(9, 9)], False), (corners, True)],
    ]
    unknown = only(file, FindingKind.UNKNOWN_CLASS)
    assert (unknown.object_ids, unknown.class_name) == ((2,), "Nonsense")
    assert file.mpp is None


@pytest.mark.parametrize(
    "classification",
    [
        "Epithelial",
        " epithelial ",
        {"name": "Epithelial", "color": [1, 2, 3]},
        {"names": ["Epithelial"]},
        {"names": ["Epithelial", "Positive"]},
        {"name": "Epithelial: Positive"},
        ["Epithelial", "Positive"],
    ],
)
def test_classes_are_found_where_qupath_puts_them(tmp_path: Path, classification: Json) -> None:
    file = read(tmp_path, [feature([SQUARE], classification), feature([SQUARE], classification)])
    assert file.polygons.class_index.tolist() == [1, 1]
    assert file.findings == ()


@pytest.mark.parametrize("properties", [None, {}, {"classification": None}])
def test_objects_without_a_class(tmp_path: Path, properties: Json) -> None:
    file = read(tmp_path, [{**feature([SQUARE]), "properties": properties}])
    assert "without a class name" in only(file, FindingKind.UNKNOWN_CLASS).message
    assert len(file.polygons) == 0


def test_one_feature_alone_and_none_at_all(tmp_path: Path) -> None:
    assert len(read(tmp_path, feature([SQUARE])).polygons) == 1
    for nothing in ([], collection(), {"features": [], "type": "FeatureCollection", "bbox": [1]}):
        assert len(read(tmp_path, nothing).polygons) == 0
    assert (
        len(read(tmp_path, b"\xef\xbb\xbf \n" + json.dumps([feature([SQUARE])]).encode()).polygons)
        == 1
    )


def test_what_outlines_no_object_is_left_out_and_told(tmp_path: Path) -> None:
    tile = feature([SQUARE])
    tile["properties"]["objectType"] = "tile"
    file = read(
        tmp_path,
        [
            {**feature([]), "geometry": {"type": "GeometryCollection", "geometries": []}},
            feature([1, 2], kind="Point"),
            {**feature([]), "geometry": None},
            tile,
            feature([SQUARE]),
        ],
    )
    assert file.polygons.ids.tolist() == [5]
    unreadable = [f for f in file.findings if f.kind is FindingKind.UNREADABLE]
    assert [f.object_ids for f in unreadable] == [(1, 2), (3,)]
    assert "GeometryCollection, Point" in unreadable[0].message
    assert only(file, FindingKind.FALLBACK).object_ids == (4,)


def test_of_a_cell_the_nucleus_is_taken(tmp_path: Path) -> None:
    nucleus = {"type": "Polygon", "coordinates": [closed(*square(3, 3, 1))]}
    file = read(tmp_path, [feature([SQUARE], nucleusGeometry=nucleus), feature([SQUARE])])
    assert rings_of(file)[0] == [([list(point) for point in square(3, 3, 1)], False)]
    assert only(file, FindingKind.FALLBACK).object_ids == (1,)


def test_cells_are_counted_by_whether_they_have_a_nucleus(tmp_path: Path) -> None:
    nucleus = {"type": "Polygon", "coordinates": [closed(*square(3, 3, 1))]}
    cell = {"objectType": "cell", "classification": "Epithelial"}
    whole = feature([SQUARE], properties=cell)
    file = read(tmp_path, [{**whole, "nucleusGeometry": nucleus}, whole, whole])
    with_nucleus, without = file.findings
    assert (with_nucleus.object_ids, without.object_ids) == ((1,), (2, 3))
    assert without.message.startswith("2 cells without a nucleus")


def test_odd_outlines_are_kept_and_reported(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        [
            feature([closed((0, 0), (4, 4), (4, 0), (0, 4))]),
            feature([closed((3, 3), (3, 3))]),
            feature([]),
            feature([[[1e3, 0], [0, 1.5e1], ["x", 1], [1], None, [600000000, 1], [9, 9]]]),
        ],
    )
    assert only(file, FindingKind.SELF_CROSSING).object_ids == (1,)
    assert only(file, FindingKind.DEGENERATE).object_ids == (2, 3)
    assert only(file, FindingKind.UNREADABLE).object_ids == (4,)
    assert rings_of(file)[3] == [([[1000, 0], [0, 15], [9, 9]], False)]


DEEP = "[" * 3000 + "]" * 3000


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"   ", "cut off"),
        (b"<xml/>", "begins differently"),
        (b"\xff\xfe[\0]\0", "begins differently"),
        ("[", "cut off"),
        ('{"type": "FeatureCollection", "features": [', "cut off"),
        (json.dumps([feature([SQUARE])])[:-20], "cut off"),
        ('["', "cut off"),
        ("[1]", "feature 1"),
        ("[null]", "feature 1"),
        ('["Feature"]', "feature 1"),
        ('[{"type": "Polygon"}]', "feature 1"),
        ([feature([SQUARE]), feature(3)], "feature 2"),
        ([feature({"ring": 0})], "feature 1"),
        ([feature([{"ring": 0}])], "feature 1"),
        ([feature([{"ring": "x"}])], "feature 1"),
        ([feature([SQUARE], 3)], "feature 1"),
        ([feature([SQUARE], {"names": [1]})], "feature 1"),
        ([feature([SQUARE], {"names": 1})], "feature 1"),
        ([feature(SQUARE)], "feature 1"),
        ([{**feature([SQUARE]), "properties": [1]}], "feature 1"),
        ([{**feature([SQUARE]), "properties": {"objectType": [1]}}], "feature 1"),
        ([{**feature([SQUARE]), "geometry": "x"}], "feature 1"),
        ([{**feature([SQUARE]), "geometry": {"type": "Polygon"}}], "feature 1"),
        ("[[[01, 2], [3, 4]]]", "damaged"),
        ("[[[1., 2], [3, 4]]]", "damaged"),
        (f"[{DEEP}]", "damaged"),
        ("[,]", "damaged"),
        ("[{}},{}]", "brackets"),
        ("[]]", "cut off"),
        ("[][]", "damaged"),
        ('{"type": "Polygon", "coordinates": []}', "neither"),
        ('{"type": "FeatureCollection"}', "neither"),
        ('{"type": "FeatureCollection", "features": {"a": [{}]}}', "neither"),
        ('{"features": []}', "neither"),
        (b'[{"type": "\xff"}]', "damaged"),
    ],
)
def test_what_is_no_annotation(tmp_path: Path, content: Json, words: str) -> None:
    with pytest.raises(UnreadableFileError, match=words) as error:
        read(tmp_path, content)
    assert error.value.path == tmp_path / "a.geojson"
    assert "expected GeoJSON" in error.value.message


@pytest.mark.parametrize("text", ["[F,]", "[,F]", "[F,,F]", "[F F]"])
@pytest.mark.parametrize("features", [1, 2, 500])
def test_commas_between_features_are_checked_wherever_batches_end(
    tmp_path: Path, text: str, features: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geojson, "BATCH_FEATURES", features)
    with pytest.raises(UnreadableFileError):
        read(tmp_path, text.replace("F", json.dumps(feature([SQUARE]))))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="no such file"):
        read_outlines(Source.GEOJSON, tmp_path / "a.geojson")


def random_features(seed: int) -> list[Json]:
    generator = np.random.default_rng(seed)

    def ring() -> list[Json]:
        points = generator.normal(20, 9, (generator.integers(3, 9), 2))
        digits = int(generator.integers(0, 18))
        return closed(*((round(x, digits), round(y, digits)) for x, y in points.tolist()))

    found = []
    for name in generator.choice([*MONUSAC_CLASSES.names, "Ambiguous", 'É "[{,}]" \\'], 30):
        if generator.random() < 0.3:
            parts = [[ring(), ring()], [ring()]]
            found.append(feature(parts, str(name), kind="MultiPolygon"))
        else:
            found.append(feature([ring()], {"name": str(name)}, id="[[1,2],[3,4]]", x=[[1, 2]]))
    return found


def oracle(features: list[Json]) -> list[tuple[int, list[tuple[list[list[float]], bool]]]]:
    found = []
    for id_, item in enumerate(features, start=1):
        classification = item["properties"]["classification"]
        name = classification if isinstance(classification, str) else classification["name"]
        coordinates = item["geometry"]["coordinates"]
        parts = coordinates if item["geometry"]["type"] == "MultiPolygon" else [coordinates]
        rings = [(ring[:-1], place > 0) for part in parts for place, ring in enumerate(part)]
        if MONUSAC_CLASSES.canonical(name):
            found.append((id_, rings))
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("block", [1, 7, 64, 2**22])
@pytest.mark.parametrize("batch", [1, 4, 500])
def test_blocks_and_batches_of_any_size(
    tmp_path: Path, seed: int, block: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geojson, "BLOCK_BYTES", block)
    monkeypatch.setattr(geojson, "BATCH_FEATURES", batch)
    features = random_features(seed)
    content = [
        features,
        {"name": "features", "bbox": [[1, 2], [3, 4]], **collection(*features), "a": [[5, 6]]},
    ][seed % 2]
    file = read(tmp_path, json.dumps(content, indent=seed or None, ensure_ascii=seed > 2))
    found = list(zip(file.polygons.ids.tolist(), rings_of(file), strict=True))
    assert found == oracle(features)


def test_reading_tells_how_far_it_is_and_can_be_stopped(tmp_path: Path) -> None:
    read(tmp_path, random_features(0))
    path = tmp_path / "a.geojson"
    told: list[tuple[int, int]] = []
    read_outlines(
        Source.GEOJSON,
        path,
        MONUSAC_CLASSES,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
    with pytest.raises(StoppedError):
        read_outlines(Source.GEOJSON, path, progress=stopped)


def test_it_is_loaded_like_any_other_form(tmp_path: Path) -> None:
    hole = closed(*square(3, 3, 1))
    read(
        tmp_path,
        collection(feature([closed(*square(1, 1, 6)), hole]), feature([SQUARE], "Ambiguous")),
    )
    files = MaskFiles(Source.GEOJSON, {"": (tmp_path / "a.geojson",)})
    loaded = load_masks(files, MONUSAC_CLASSES, shape=(10, 12), region="R", team="T")
    expected = np.zeros((10, 12), int)
    expected[1:7, 1:7] = 1
    expected[3:4, 3:4] = 0
    np.testing.assert_array_equal(loaded.labels.id_image(), expected)
    assert loaded.ambiguous is not None
    assert loaded.ambiguous[1:5, 1:5].all()
    assert np.count_nonzero(loaded.ambiguous) == 16
    with pytest.raises(UnreadableFileError, match="size of the region"):
        load_masks(files, MONUSAC_CLASSES, shape=None)


def opened_again(path: Path, ids: NDArray[Any], ambiguous: NDArray[np.bool_] | None) -> None:
    """Write objects, read them, and find every pixel as it was, at once and window by window."""
    names = MONUSAC_CLASSES.names
    classes = {int(id_): names[int(id_) % len(names)] for id_ in np.unique(ids[ids > 0])}
    labels = LabelImage.from_array(ids.astype(np.int32), classes, names)
    write_objects(
        path, Objects(labels, Side.PREDICTION, "R", "T", ambiguous, MONUSAC_CLASSES, None)
    )
    # The parts of these objects lie anywhere, which would be reported.
    rules = OutlineRules(multipolygons=Multipolygons.ONE_OBJECT)
    files = MaskFiles(Source.GEOJSON, {"": (path,)}, rules=rules)
    loaded = load_masks(files, MONUSAC_CLASSES, shape=labels.shape)
    assert loaded.findings == ()
    # Ids are running numbers in the file, which has the objects by id.
    np.testing.assert_array_equal(loaded.labels.id_image(), labels.index)
    found = loaded.labels.class_names_of_objects()
    assert found.tolist() == labels.class_names_of_objects().tolist()
    if ambiguous is None or not ambiguous.any():
        assert loaded.ambiguous is None
    else:
        np.testing.assert_array_equal(loaded.ambiguous, ambiguous)
    tiles = open_masks(files, MONUSAC_CLASSES, labels.shape).labels
    y, x = labels.shape[0] // 2, labels.shape[1] // 2
    windows = [
        [tiles.read((0, 0, y, x)), tiles.read((0, x, y, labels.shape[1]))],
        [tiles.read((y, 0, labels.shape[0], x)), tiles.read((y, x, *labels.shape))],
    ]
    np.testing.assert_array_equal(np.concatenate([[0], tiles.ids])[np.block(windows)], labels.index)


@pytest.mark.parametrize("seed", seeds(40))
def test_what_this_program_writes_opens_again_as_it_was(tmp_path: Path, seed: int) -> None:
    """With holes, parts, diagonal touches, single pixels, and objects at the frame."""
    generator = np.random.default_rng(seed)
    shape = (int(generator.integers(1, 40)), int(generator.integers(1, 40)))
    coarse = int(generator.choice([1, 3, 7]))
    ids = generator.choice([0, 0, 2, 3, 5, 900], shape)
    ids = np.kron(ids, np.ones((coarse, coarse), int))[: shape[0], : shape[1]]
    ids[generator.random(shape) < 0.1] = 7
    ambiguous = generator.random(shape) < 0.5 if seed % 2 else None
    opened_again(tmp_path / "a.geojson", ids, ambiguous)


@settings(max_examples=examples(60), deadline=None)
@given(
    arrays(np.int32, array_shapes(min_dims=2, max_dims=2, max_side=7), elements=st.integers(0, 3))
)
def test_objects_of_few_pixels_open_again_as_they_were(ids: NDArray[np.int32]) -> None:
    with TemporaryDirectory() as folder:
        opened_again(Path(folder) / "a.geojson", ids, None)


def test_two_objects_open_again_as_they_were(tmp_path: Path) -> None:
    opened_again(tmp_path / "a.geojson", two_objects(), two_objects() == 2)


def qupath_export() -> bytes:
    """Write what QuPath 0.5 does for a cell with a nucleus in an annotation, by its source.

    Children nest in ``properties.childObjects``; undefined measurements are bare NaN.
    """
    cell = feature(
        [closed((2, 2), (12, 2), (12, 12), (2, 12))],
        {"name": "Lymphocyte", "color": [1, 2, 3]},
        nucleusGeometry={
            "type": "Polygon",
            "coordinates": [closed((4, 4), (8, 4), (8, 8), (4, 8))],
        },
    )
    cell["properties"] |= {"objectType": "cell", "measurements": {"Area": 1.5, "Ratio": "@"}}
    annotation = feature(
        [closed((0, 0), (20, 0), (20, 3), (0, 3))],
        {"name": "Epithelial", "color": [1, 2, 3]},
        id="7f3b0b5e-7b1e-4c0a-9d3e-0e0a5a3f8a11",
    )
    annotation["geometry"]["plane"] = {"c": -1, "z": 0, "t": 0}
    annotation["properties"] |= {"objectType": "annotation", "isLocked": True}
    annotation["properties"]["childObjects"] = [cell]
    core = feature([closed((0, 0), (9, 0), (9, 9))]) | {"id": "TMACoreObject"}
    del core["properties"]["objectType"]
    text = json.dumps(collection(annotation, core, feature([closed((0, 9), (3, 9), (0, 5))])))
    return text.replace('"@"', "NaN").encode()


def test_nested_children_and_undefined_measurements_as_qupath_writes_them(tmp_path: Path) -> None:
    file = read(tmp_path, qupath_export())
    assert file.polygons.ids.tolist() == [1, 2, 4]
    assert file.polygons.class_index.tolist() == [1, 2, 1]
    assert rings_of(file)[1] == [([[4, 4], [8, 4], [8, 8], [4, 8]], False)]
    assert {(f.kind, f.object_ids) for f in file.findings} == {
        (FindingKind.FALLBACK, (ids,)) for ids in (2, 3)
    }


@pytest.mark.parametrize("coordinates", [None, [], [[]]])
def test_one_feature_without_coordinates_is_listed(tmp_path: Path, coordinates: Json) -> None:
    file = read(tmp_path, collection(feature([SQUARE]), feature(coordinates), feature([SQUARE])))
    assert {1, 3} <= set(file.polygons.ids.tolist())
    assert [finding.object_ids for finding in file.findings] == [(2,)]


def test_annotations_that_contain_detections_are_no_nuclei(tmp_path: Path) -> None:
    def of_kind(kind: str, name: str, *corner_and_size: float) -> Json:
        own = feature([closed(*square(*corner_and_size))], name)
        own["properties"]["objectType"] = kind
        return own

    features = [
        of_kind("annotation", "Epithelial", 0, 0, 40),  # contains the next one
        of_kind("detection", "Epithelial", 10, 10, 6),
        of_kind("annotation", "Lymphocyte", 60, 0, 6),  # a nucleus of its own
        of_kind("annotation", "Ambiguous", 5, 5, 20),  # an excluded area
        of_kind("annotation", "Neutrophil", 10, 10, 7),  # the same nucleus once more
        of_kind("annotation", "Nonsense", 0, 0, 40),
    ]
    file = read(tmp_path, collection(*features))
    assert file.polygons.ids.tolist() == [2, 3, 4, 5]
    (finding,) = (f for f in file.findings if f.kind is FindingKind.FALLBACK)
    assert finding.object_ids == (1,)
    assert "around detections" in finding.message
    alone = read(tmp_path, collection(features[0], features[2]))
    assert (alone.polygons.ids.tolist(), alone.findings) == ([1, 2], ())


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_coordinates_that_are_no_numbers_are_left_out_and_listed(
    tmp_path: Path, odd: float
) -> None:
    file = read(tmp_path, [feature([[[1, 1], [5, 1], [odd, 3], [1, 5], [1, 1]]])])
    assert rings_of(file) == [[([[1, 1], [5, 1], [1, 5]], False)]]
    assert [(f.kind, f.object_ids) for f in file.findings] == [(FindingKind.UNREADABLE, (1,))]


def test_packed_files(tmp_path: Path) -> None:
    plain = read(tmp_path, qupath_export()).polygons
    (tmp_path / "a.geojson.gz").write_bytes(gzip.compress(qupath_export()))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.geojson", qupath_export())
        archive.writestr("__MACOSX/a.geojson", "")
    for name in ("a.geojson.gz", "a.zip"):
        packed = read_outlines(Source.GEOJSON, tmp_path / name).polygons
        for one, other in zip(plain.flat, packed.flat, strict=True):
            assert np.array_equal(one, other)


def test_packed_files_that_are_damaged(tmp_path: Path) -> None:
    packed = gzip.compress(qupath_export())
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.geojson", qupath_export())
        archive.writestr("b.geojson", qupath_export())
    two = (tmp_path / "two.zip").read_bytes()
    for damaged, message in (
        (packed[:-20], "cannot be unpacked"),
        (packed[:30] + b"?" * 10 + packed[40:], "cannot be unpacked"),
        (two[:-30], "cannot be unpacked"),
        (two, "found 2"),
    ):
        with pytest.raises(UnreadableFileError, match=message):
            read(tmp_path, damaged)


def on_plane(left: int, **plane: int) -> dict[str, Json]:
    own = feature([closed((left, 1), (left + 5, 1), (left + 5, 6), (left, 6))])
    own["geometry"]["plane"] = {"c": -1, "z": 0, "t": 0, **plane}
    return own


def test_objects_on_several_planes_of_a_stack_are_refused(tmp_path: Path) -> None:
    assert len(read(tmp_path, collection(on_plane(1, z=3), on_plane(9, z=3))).polygons) == 2
    for other in ({"z": 2}, {"z": 3, "t": 1}):
        with pytest.raises(UnreadableFileError, match=r"on 2 planes .* export those of one plane"):
            read(tmp_path, collection(on_plane(1, z=3), on_plane(9, **other)))
