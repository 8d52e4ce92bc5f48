"""Objects without a class name, or with one in another place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from tests.support.outlined_cohort import evaluated, feature, write_cohort, write_features

CLASSES = {1: "Epithelial", 2: "Lymphocyte"}


def labels() -> Any:
    image = np.zeros((40, 60), np.int32)
    image[5:15, 5:15], image[20:30, 30:50] = 1, 2
    return image


def outlines() -> list[list[tuple[int, int]]]:
    """Outline both objects along pixel edges."""
    return [[(5, 5), (15, 5), (15, 15), (5, 15)], [(30, 20), (50, 20), (50, 30), (30, 30)]]


def test_the_only_class_is_that_of_objects_without_one(tmp_path: Path) -> None:
    """QuPath's detections have no classification, those of dlup and large_image neither."""
    cohort = write_cohort(tmp_path, labels())
    for team, properties in (
        ("qupath", {"objectType": "detection"}),
        ("null", {"objectType": "annotation", "classification": None}),
        ("plain", {}),
        ("empty", {"classification": {"name": ""}}),
    ):
        path = cohort / team / "P_1.geojson"
        write_features(path, [feature([ring], **properties) for ring in outlines()])
    found = evaluated(cohort)
    assert found.score == dict.fromkeys(("empty", "null", "plain", "qupath"), 1.0)
    assert found.messages("unknown-class") == []


def test_an_annotation_around_detections_is_no_nucleus(tmp_path: Path) -> None:
    """QuPath detects cells within an annotation, which has no class, and exports both."""
    parent = feature([[(0, 0), (60, 0), (60, 40), (0, 40)]], objectType="annotation")
    parts = [feature([ring], objectType="detection") for ring in outlines()]
    cohort = write_cohort(tmp_path, labels())
    write_features(cohort / "qupath" / "P_1.geojson", [parent, *parts])
    found = evaluated(cohort)
    assert found.score == {"qupath": 1.0}
    assert any("1 annotation without a class" in text for text in found.messages("fallback"))


def test_an_alias_names_the_class_of_objects_without_one(tmp_path: Path) -> None:
    cohort = write_cohort(tmp_path, labels(), classes=CLASSES, aliases='"" = "Epithelial"')
    first, second = outlines()
    named = feature([second], classification={"name": "Lymphocyte"})
    write_features(cohort / "team" / "P_1.geojson", [feature([first]), named])
    assert evaluated(cohort).score == {"team": 1.0}


def test_without_an_alias_the_report_names_it(tmp_path: Path) -> None:
    cohort = write_cohort(tmp_path, labels(), classes=CLASSES)
    write_features(cohort / "team" / "P_1.geojson", [feature([ring]) for ring in outlines()])
    found = evaluated(cohort)
    assert found.score["team"] == 0
    (message,) = found.messages("unknown-class")
    assert '"" = "Epithelial"' in message


@pytest.mark.parametrize("types", [("Epithelial", "Lymphocyte"), (1, 2), ("1", "2"), (1.0, 2.0)])
def test_tiatoolbox_has_the_class_in_type(tmp_path: Path, types: tuple[Any, Any]) -> None:
    cohort = write_cohort(tmp_path, labels(), classes=CLASSES)
    features = [feature([r], type=kind) for r, kind in zip(outlines(), types, strict=True)]
    write_features(cohort / "tiatoolbox" / "P_1.geojson", features)
    assert evaluated(cohort).score == {"tiatoolbox": 1.0}


def test_numbers_may_have_names(tmp_path: Path) -> None:
    cohort = write_cohort(tmp_path, labels(), classes=CLASSES)
    features = [feature([r], type=kind) for r, kind in zip(outlines(), (7, 3), strict=True)]
    path = write_features(cohort / "tiatoolbox" / "P_1.geojson", features)
    names = '{"7": ["Epithelial", [1, 2, 3]], "3": ["Lymphocyte", [4, 5, 6]]}'
    (path.parent / "type_info.json").write_text(names)
    found = evaluated(cohort)
    assert found.score == {"tiatoolbox": 1.0}
    assert found.messages("extra") == []


def test_lizard(tmp_path: Path) -> None:
    """Its ids are no running numbers, and stand in ``id`` beside ``class``."""
    predictions = 'predictions.hovernet-mat = "{team}/{region}.mat"'
    cohort = write_cohort(tmp_path, labels(), classes=CLASSES, predictions=predictions)
    (cohort / "lizard").mkdir()
    savemat(
        cohort / "lizard" / "P_1.mat",
        {
            "inst_map": np.where(labels() == 1, 40, np.where(labels() == 2, 7, 0)),
            "id": np.array([[7], [40]]),
            "class": np.array([[2], [1]]),
            "bbox": np.zeros((2, 4)),
            "centroid": np.zeros((2, 2)),
        },
    )
    assert evaluated(cohort).score == {"lizard": 1.0}
