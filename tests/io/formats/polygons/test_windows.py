"""Windows of polygons against the whole, drawn at once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.polygons import rasterize
from napari_panoptic.io.formats.polygons.rasterize import SquareIndex, rasterize_polygons
from napari_panoptic.io.formats.registry import open_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from napari_panoptic.values.windowed_labels import Box, TiledLabels
from tests.support.builders import square, write_xml
from tests.support.examples import seeds
from tests.support.outlines import read_outlines

SHAPE = (150, 210)


def random_features(seed: int, *, ambiguous: bool = True) -> list[dict[str, Any]]:
    generator = np.random.default_rng(seed)
    names = [*MONUSAC_CLASSES.names, *(["Ambiguous"] if ambiguous else []), "Unknown"]

    def ring(size: float) -> list[list[float]]:
        centre = generator.uniform(-10, 220, 2)
        points = centre + generator.normal(0, size, (generator.integers(1, 9), 2))
        return [*points.tolist(), points[0].tolist()]

    features = []
    for name in generator.choice(names, 60):
        size = float(generator.choice([2, 9, 60]))
        parts = [[ring(size), *([ring(size)] if generator.random() < 0.3 else [])]]
        parts += [[ring(size)]] if generator.random() < 0.2 else []
        geometry = {"type": "MultiPolygon", "coordinates": parts}
        properties = {"classification": str(name)}
        features.append({"type": "Feature", "geometry": geometry, "properties": properties})
    return features


def geojson(path: Path, features: list[dict[str, Any]]) -> MaskFiles:
    path.write_text(json.dumps(features), encoding="utf-8")
    return MaskFiles(Source.GEOJSON, {"": (path,)})


def id_window(labels: TiledLabels, box: Box) -> NDArray[np.int64]:
    return np.concatenate([[0], labels.ids])[labels.read(box)]


def boxes(seed: int) -> list[Box]:
    generator = np.random.default_rng(seed)
    found = [(0, 0, *SHAPE), (64, 64, 128, 128), (63, 127, 65, 129), (5, 5, 5, 9)]
    for _ in range(12):
        y0, x0 = int(generator.integers(0, SHAPE[0])), int(generator.integers(0, SHAPE[1]))
        y1 = int(generator.integers(y0 + 1, SHAPE[0] + 1))
        found.append((y0, x0, y1, int(generator.integers(x0 + 1, SHAPE[1] + 1))))
    return found


@pytest.mark.parametrize("seed", seeds(25))
def test_any_window_is_that_of_the_whole(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rasterize, "SQUARE_PX", [16, 64, 1024][seed % 3])
    files = geojson(tmp_path / "a.geojson", random_features(seed))
    tiles = open_masks(files, MONUSAC_CLASSES, SHAPE, region="R", team="T")
    file = read_outlines(Source.GEOJSON, files.all_paths[0])
    whole = rasterize_polygons(file.polygons, SHAPE, MONUSAC_CLASSES).held()
    ids = whole.labels.id_image()
    assert tiles.ambiguous is not None
    assert whole.ambiguous is not None
    for box in boxes(seed):
        y0, x0, y1, x1 = box
        window = id_window(tiles.labels, box)
        assert tiles.labels.read(box).dtype == np.int32
        np.testing.assert_array_equal(window, ids[y0:y1, x0:x1])
        area = tiles.ambiguous.read(box)
        expected = whole.ambiguous[y0:y1, x0:x1]
        assert (area is None) == (not expected.any())
        if area is not None:
            np.testing.assert_array_equal(area, expected)
    # Those without a pixel have a row here, too.
    lost = {v.id for v in whole.labels.vanished}
    assert set(tiles.labels.ids.tolist()) == set(whole.labels.ids.tolist()) | lost
    rows = np.searchsorted(tiles.labels.ids, whole.labels.ids)
    np.testing.assert_array_equal(tiles.labels.class_index[rows], whole.labels.class_index)


def test_findings_say_where_they_were_met(tmp_path: Path) -> None:
    files = geojson(tmp_path / "a.geojson", random_features(3))
    told: list[tuple[int, int]] = []
    tiles = open_masks(
        files,
        MONUSAC_CLASSES,
        SHAPE,
        region="R",
        team="T",
        progress=lambda done, total: told.append((done, total)),
    )
    kinds = {finding.kind for finding in tiles.findings}
    assert {FindingKind.UNKNOWN_CLASS, FindingKind.OUTSIDE_IMAGE} <= kinds
    places = {(f.region, f.team, f.path) for f in tiles.findings}
    assert places == {("R", "T", tmp_path / "a.geojson")}
    assert told


def test_imagescope_polygons_without_an_ambiguous_area(tmp_path: Path) -> None:
    path = write_xml(tmp_path / "a.xml", ("Lymphocyte", [square(3, 5), square(6, 7)]))
    tiles = open_masks(MaskFiles(Source.IMAGESCOPE, {"": (path,)}), MONUSAC_CLASSES, SHAPE)
    assert tiles.ambiguous is None
    assert tiles.findings == ()
    whole = rasterize_polygons(
        read_outlines(Source.IMAGESCOPE, path).polygons, SHAPE, MONUSAC_CLASSES
    ).held()
    window = id_window(tiles.labels, (0, 0, 20, 20))
    np.testing.assert_array_equal(window, whole.labels.id_image()[:20, :20])
    assert set(np.unique(window)) == {0, 1, 2}


def test_nothing_is_annotated(tmp_path: Path) -> None:
    tiles = open_masks(geojson(tmp_path / "a.geojson", []), MONUSAC_CLASSES, SHAPE)
    assert (len(tiles.labels), tiles.ambiguous) == (0, None)
    assert not tiles.labels.read((0, 0, 9, 9)).any()


def test_threads_read_at_the_same_time(tmp_path: Path) -> None:
    files = geojson(tmp_path / "a.geojson", random_features(1))
    labels = open_masks(files, MONUSAC_CLASSES, SHAPE).labels
    wanted = boxes(0) * 4
    alone = [labels.read(box) for box in wanted]
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(alone, pool.map(labels.read, wanted), strict=True):
            np.testing.assert_array_equal(one, other)


def test_many_objects_over_the_whole_slide_take_few_places(tmp_path: Path) -> None:
    everywhere = [[0, 0], [99_999, 0], [99_999, 99_999], [0, 0]]
    feature = {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [everywhere]},
        "properties": {"classification": "Epithelial"},
    }
    files = geojson(tmp_path / "a.geojson", [feature] * 50)
    file = read_outlines(Source.GEOJSON, files.all_paths[0])
    rows, shape = np.arange(50), (100_000, 100_000)
    index = SquareIndex.of(file.polygons.flat, rows, rows.astype(np.int32) + 1, shape)
    assert len(index.places) <= 50 * rasterize.MOST_PER_OBJECT
    labels = rasterize_polygons(file.polygons, shape, MONUSAC_CLASSES).labels
    assert labels.read((99_000, 99_000, 99_010, 99_010))[0].max() == 50
