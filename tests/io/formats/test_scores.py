"""Scores of objects travel from every kind of file to the table of objects."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import tifffile

from napari_panoptic.common.errors import CohortError
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.polygons.annotation_store import write_store
from napari_panoptic.io.formats.polygons.geojson_writer import geo_objects
from napari_panoptic.io.formats.registry import load_masks, open_masks
from napari_panoptic.io.formats.scores import ScoreNames
from napari_panoptic.notebook import open_cohort as opened
from napari_panoptic.nuclei.regions.conversion import Conversion, convert, form_to_write
from napari_panoptic.values.cohort import MaskFiles, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side

SHAPE = (30, 40)
BOXES = ((2, 2, 8, 9), (12, 5, 20, 11), (22, 22, 28, 30))
SCORES = (0.75, 0.25, math.nan)

DESCRIPTION = """
[classes]
Nucleus = [255, 0, 0]

[files]
reference.labels = "annotation/{region}.tif"
predictions.geojson = "{team}/{region}.geojson"
predictions.annotation-store = "{team}/{region}.db"
predictions.labels = "{team}/{region}.tif"
predictions.probability = "maps/{team}/{region}.npy"
predictions.score = { named = "p(Nucleus)", misspelt = "prop" }
"""


def labels() -> np.ndarray:
    """Draw three rectangles, numbered from 1."""
    image = np.zeros(SHAPE, np.uint16)
    for number, (y0, x0, y1, x1) in enumerate(BOXES, start=1):
        image[y0:y1, x0:x1] = number
    return image


def feature(box: tuple[int, int, int, int], properties: dict) -> dict:
    """Return a GeoJSON feature."""
    y0, x0, y1, x1 = box
    ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def write_geojson(path: Path, properties: list[dict]) -> None:
    """Write the three rectangles with properties."""
    path.parent.mkdir()
    features = [feature(box, own) for box, own in zip(BOXES, properties, strict=True)]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))


def measured(name: str, *, as_list: bool = False) -> list[dict]:
    """Return properties as QuPath writes them, without the score where there is none."""
    found = []
    for score in SCORES:
        own = {"Nucleus: Area": 42.0} | ({} if math.isnan(score) else {name: score})
        listed = [{"name": key, "value": value} for key, value in own.items()]
        found.append({"objectType": "detection", "measurements": listed if as_list else own})
    return found


def probability_map() -> np.ndarray:
    """Return a map whose means in the rectangles are the scores."""
    image = np.full(SHAPE, 0.5, np.float32)
    for (y0, x0, y1, x1), score in zip(BOXES, SCORES, strict=True):
        middle = (x0 + x1) // 2
        image[y0:y1, x0:x1] = score
        # The two halves have different values, and the same mean.
        image[y0:y1, x0], image[y0:y1, middle] = score - 0.25, score + 0.25
    return image


@pytest.fixture(scope="module")
def every_format(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a region with predictions in every kind of file that may have scores."""
    root = tmp_path_factory.mktemp("scored")
    (root / "cohort.toml").write_text(DESCRIPTION)
    for folder in ("annotation", "table", "map"):
        (root / folder).mkdir()
        tifffile.imwrite(root / folder / "p_1.tif", labels())
    (root / "table" / "p_1.csv").write_text("id,Prob\n1,0.75\n2,0.25\n3,\n")
    write_geojson(root / "qupath" / "p_1.geojson", measured("Detection probability"))
    write_geojson(root / "qupath-0.3" / "p_1.geojson", measured("Probability", as_list=True))
    named = [own | {"prob": 0.5} for own in measured("p(Nucleus)")]
    write_geojson(root / "named" / "p_1.geojson", named)
    write_geojson(root / "misspelt" / "p_1.geojson", measured("prob"))
    (root / "store").mkdir()
    image = LabelImage.from_array(labels(), "Nucleus", ["Nucleus"])
    details = {id_: {"prob": score} for id_, score in zip((1, 2, 3), SCORES, strict=True)}
    objects = geo_objects(image, side=Side.PREDICTION, details=details)
    write_store(root / "store" / "p_1.db", objects)
    (root / "maps" / "map").mkdir(parents=True)
    np.save(root / "maps" / "map" / "p_1.npy", probability_map())
    return root


def test_scores_reach_the_table_of_objects(every_format: Path) -> None:
    result = opened(every_format).evaluate()
    table = result.objects
    assert list(table)[-1] == "score"
    predicted = table[table["side"] == "prediction"]
    assert set(predicted["team"]) == {
        *("qupath", "qupath-0.3", "named", "misspelt", "store", "table", "map")
    }
    for team, own in predicted.groupby("team"):
        wanted = [math.nan] * 3 if team == "misspelt" else SCORES
        np.testing.assert_allclose(own.sort_values("id")["score"], wanted, rtol=1e-6, err_msg=team)
    assert table.loc[table["side"] == "reference", "score"].isna().all()
    (message,) = result.findings.loc[result.findings["team"] == "misspelt", "message"]
    assert "'prop'" in message
    assert "Nucleus: Area and prob" in message


@pytest.mark.parametrize("form", ["labels", "geojson", "annotation-store", "hovernet", "ome-zarr"])
def test_scores_are_converted(every_format: Path, tmp_path: Path, form: str) -> None:
    found, written = open_cohort(every_format), form_to_write(form)
    convert(Conversion(found, "qupath", written, EvaluationSettings()), tmp_path / "out")
    path = tmp_path / "out" / f"p_1{written.endings[0]}"
    source = Source.LABELS if form == "ome-zarr" else written.source
    files = MaskFiles(source, {"": (path,)})
    loaded = load_masks(files, found.scheme, shape=SHAPE)
    np.testing.assert_array_equal(loaded.labels.scores, SCORES)


def test_windows_of_slides_have_the_scores_of_tables(every_format: Path) -> None:
    found = open_cohort(every_format)
    forms = found.predictions["table", "p_1"]
    (files,) = forms.values()
    tiled = open_masks(files, found.scheme, SHAPE)
    np.testing.assert_array_equal(tiled.labels.scores, SCORES)
    (files,) = found.predictions["map", "p_1"].values()
    assert files.probability in files.all_paths
    tiled = open_masks(files, found.scheme, SHAPE)
    assert np.isnan(tiled.labels.scores).all()
    assert "too large" in tiled.findings[-1].message
    assert np.isfinite(load_masks(files, found.scheme, shape=SHAPE).labels.scores[:2]).all()


def test_a_score_needs_a_format_that_names_it(tmp_path: Path) -> None:
    text = DESCRIPTION.split("predictions.geojson")[0]
    text += 'predictions.hovernet = "{team}/{region}.json"\npredictions.score = "p"\n'
    (tmp_path / "cohort.toml").write_text(text)
    with pytest.raises(CohortError, match="score"):
        open_cohort(tmp_path)


@pytest.mark.parametrize(
    ("tables", "score"),
    [
        (({"prob": 0.5, "Score": 0.25},), 0.25),
        (({"prob": True}, {"confidence": "0.5"}), 0.5),
        (({"prob": math.inf, "score": "high"}, None, 3), math.nan),
        (([{"name": "prob", "value": 1}, "odd", {}],), 1.0),
        (({"prob": 10**400},), math.nan),
    ],
)
def test_the_first_well_known_name_counts(tables: tuple, score: float) -> None:
    np.testing.assert_equal(ScoreNames(None).of(*tables), score)
