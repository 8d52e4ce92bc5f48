"""A MultiPolygon is one object or one for each part, as the cohort says."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.support.outlined_cohort import (
    contours,
    evaluated,
    feature,
    multipolygon,
    nuclei,
    write_cohort,
    write_features,
)

CLASSES = {number: "Tumour" if number % 2 else "Stroma" for number in range(1, 11)}
SPLIT = 'predictions.multipolygons = "split"'
CENTRES = 'predictions.vertices = "pixel-centres"'


def write_cellvit(path: Path) -> None:
    """Write a MultiPolygon of OpenCV contours per class."""
    rings = dict(enumerate(contours(nuclei()), start=1))
    write_features(
        path,
        [
            multipolygon(
                [rings[number] for number in rings if CLASSES[number] == name],
                objectType="annotation",
                classification={"name": name, "color": [1, 2, 3]},
            )
            for name in ("Tumour", "Stroma")
        ],
    )


@pytest.mark.parametrize("windows", [False, True])
def test_parts_are_objects_where_the_cohort_says_so(tmp_path: Path, windows: bool) -> None:
    cohort = write_cohort(tmp_path, nuclei(), SPLIT, CENTRES, classes=CLASSES)
    write_cellvit(cohort / "cellvit" / "P_1.geojson")
    found = evaluated(cohort, windows=windows)
    assert found.score == {"cellvit": 1.0}
    assert found.messages("convention") == []
    objects = pd.read_csv(cohort / "tables" / "objects.csv")
    assert sorted(objects[objects["side"] == "prediction"]["id"]) == list(range(1, 11))


def test_parts_far_apart_are_reported(tmp_path: Path) -> None:
    cohort = write_cohort(tmp_path, nuclei(), CENTRES, classes=CLASSES)
    write_cellvit(cohort / "cellvit" / "P_1.geojson")
    found = evaluated(cohort)
    assert 0 <= (found.score["cellvit"] or 0) < 0.1
    (message,) = found.messages("convention")
    assert "2 objects of 10 parts" in message
    assert SPLIT in message


def test_a_nucleus_in_pieces_is_not_reported(tmp_path: Path) -> None:
    """Nor one whose pieces are meant, where the cohort says so, nor an excluded area."""
    near = [[(2, 2), (9, 2), (9, 9), (2, 9)], [(10, 2), (14, 2), (14, 9), (10, 9)]]
    far = [near[0], [(70, 70), (75, 70), (75, 75), (70, 75)]]
    pieces = write_cohort(tmp_path / "near", nuclei())
    write_features(pieces / "team" / "P_1.geojson", [multipolygon(near, type="Nucleus")])
    meant = write_cohort(tmp_path / "meant", nuclei(), SPLIT.replace("split", "one-object"))
    write_features(meant / "team" / "P_1.geojson", [multipolygon(far, type="Nucleus")])
    for cohort in (pieces, meant):
        assert evaluated(cohort).messages("convention") == []


def test_holes_and_plain_polygons_stay_with_their_parts(tmp_path: Path) -> None:
    cohort = write_cohort(tmp_path, nuclei(), SPLIT)
    outer = [(2, 2), (22, 2), (22, 22), (2, 22)]
    hole = [(5, 5), (8, 5), (8, 8), (5, 8)]
    far = [(60, 60), (66, 60), (66, 66), (60, 66)]
    ringed = feature([outer, hole], type="Nucleus")
    both = multipolygon([outer, far], type="Nucleus")
    both["geometry"]["coordinates"][0] = ringed["geometry"]["coordinates"]
    write_features(cohort / "team" / "P_1.geojson", [both, feature([[(70, 5), (80, 5), (80, 9)]])])
    evaluated(cohort)
    objects = pd.read_csv(cohort / "tables" / "objects.csv")
    predicted = objects[objects["side"] == "prediction"].set_index("id")["area_px"]
    assert predicted[[1, 2]].tolist() == [20 * 20 - 9, 36]
    assert len(predicted) == 3
