from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.common.errors import LabelError, UnwritableFileError
from napari_panoptic.io.formats.polygons.geojson_writer import (
    OTHER_COLOUR,
    GeoObject,
    ObjectType,
    geo_objects,
    write_geojson,
)
from napari_panoptic.io.formats.polygons.trace import pixel_outlines
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side


def labels() -> LabelImage:
    """Two objects: 4, a ring; 9, two parts."""
    image = np.zeros((6, 12), np.int32)
    image[1:4, 1:4] = 4
    image[2, 2] = 0
    image[1:3, 6:8] = 9
    image[4, 10] = 9
    return LabelImage.from_array(image, {4: "Epithelial", 9: "Lymphocyte"}, MONUSAC_CLASSES.names)


def written(path: Path, objects: Iterator[GeoObject]) -> list[dict[str, Any]]:
    count = write_geojson(path, objects, scheme=MONUSAC_CLASSES)
    # Strict: what is not JSON, such as NaN, is refused by other readers.
    text = path.read_text(encoding="utf-8")
    collection = json.loads(text, parse_constant=lambda word: pytest.fail(f"found {word}"))
    assert collection["type"] == "FeatureCollection"
    assert len(collection["features"]) == count
    features: list[dict[str, Any]] = collection["features"]
    return features


def test_what_qupath_reads(tmp_path: Path) -> None:
    details = {4: {"status": "FN", "iou": 0.25, "verdict": "annotation-right", "note": "größer"}}
    objects = geo_objects(labels(), side=Side.REFERENCE, region="R_1", team="Ä", details=details)
    ring, pair = written(tmp_path / "objects.geojson", objects)
    assert ring["type"] == "Feature"
    assert UUID(ring["id"]) != UUID(pair["id"])
    assert ring["properties"] == {
        "objectType": "annotation",
        "name": "reference 4",
        "classification": {"name": "Epithelial", "color": [255, 0, 0]},
        "measurements": {"iou": 0.25, "id": 4.0, "area_px": 8.0},
        "metadata": {
            "status": "FN",
            "verdict": "annotation-right",
            "note": "größer",
            "region": "R_1",
            "team": "Ä",
            "side": "reference",
        },
    }
    assert pair["properties"]["measurements"] == {"id": 9.0, "area_px": 5.0}


def test_geometry(tmp_path: Path) -> None:
    ring, pair = written(tmp_path / "o.geojson", geo_objects(labels(), side=Side.PREDICTION))
    assert ring["geometry"]["type"] == "Polygon"
    exterior, hole = ring["geometry"]["coordinates"]
    assert exterior[0] == exterior[-1]
    assert {tuple(corner) for corner in exterior} == {(1, 1), (4, 1), (4, 4), (1, 4)}
    assert {tuple(corner) for corner in hole} == {(2, 2), (3, 2), (3, 3), (2, 3)}
    assert pair["geometry"]["type"] == "MultiPolygon"
    assert [len(rings) for rings in pair["geometry"]["coordinates"]] == [1, 1]


def test_ids_are_the_same_in_every_file(tmp_path: Path) -> None:
    def ids(**place: str) -> list[str]:
        objects = geo_objects(labels(), side=Side.PREDICTION, **place)  # type: ignore[arg-type]
        return [feature["id"] for feature in written(tmp_path / "o.geojson", objects)]

    assert ids(region="R_1", team="A") == ids(region="R_1", team="A")
    assert not {*ids(region="R_1", team="A")} & {*ids(region="R_1", team="B")}


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    row = {
        "iou": float("nan"),
        "hausdorff_px": float("inf"),
        "partner_id": pd.NA,
        "cause": "",
        "note": None,
        "n": np.int64(3),
        "share": np.float32(0.5),
        "edited": True,
    }
    objects = geo_objects(labels(), side=Side.REFERENCE, details={4: row})
    properties = written(tmp_path / "o.geojson", objects)[0]["properties"]
    assert properties["measurements"] == {"n": 3.0, "share": 0.5, "id": 4.0, "area_px": 8.0}
    assert properties["metadata"] == {"edited": "True", "side": "reference"}


def test_detections_and_classes_without_a_colour(tmp_path: Path) -> None:
    parts = pixel_outlines(np.ones((2, 2), np.int32), 1).of(0)
    item = GeoObject(parts, "Ambiguous", "area", "key", ObjectType.DETECTION)
    (feature,) = written(tmp_path / "o.geojson", iter([item]))
    assert feature["properties"] == {
        "objectType": "detection",
        "name": "area",
        "classification": {"name": "Ambiguous", "color": list(OTHER_COLOUR)},
    }


def test_nothing_to_write(tmp_path: Path) -> None:
    empty = LabelImage.empty((4, 4), MONUSAC_CLASSES.names)
    assert written(tmp_path / "o.geojson", geo_objects(empty, side=Side.REFERENCE)) == []


def test_an_object_needs_a_part() -> None:
    with pytest.raises(LabelError, match="at least one pixel"):
        GeoObject((), "Epithelial", "nothing", "key")


def test_half_a_file_is_never_seen(tmp_path: Path) -> None:
    path = tmp_path / "o.geojson"
    path.write_text("the old one", encoding="utf-8")

    def broken() -> Iterator[GeoObject]:
        yield next(geo_objects(labels(), side=Side.REFERENCE))
        raise KeyError("in the middle")

    with pytest.raises(KeyError):
        write_geojson(path, broken(), scheme=MONUSAC_CLASSES)
    assert path.read_text(encoding="utf-8") == "the old one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "o.geojson"
    with pytest.raises(UnwritableFileError, match="choose another place") as caught:
        write_geojson(path, [], scheme=MONUSAC_CLASSES)
    assert caught.value.path == path
