"""The one function that a script needs."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic import EvaluationSettings, evaluate_pair
from napari_panoptic.common.errors import LabelError
from napari_panoptic.nuclei.metrics import METRIC_NAMES, METRIC_TEXTS
from napari_panoptic.nuclei.outcomes import OBJECT_COLUMNS

IMAGE = np.kron(np.array([[1, 0], [0, 2]]), np.ones((4, 4), int))


def test_what_comes_back() -> None:
    result = evaluate_pair(
        IMAGE,
        IMAGE * 100,
        reference_classes={1: "Lymphocyte", 2: "Macrophage"},
        prediction_classes={100: "Lymphocyte", 200: "Epithelial"},
        mpp=0.25,
    )
    assert tuple(result.objects.columns) == OBJECT_COLUMNS
    assert result.objects["id"].tolist() == [1, 2, 100, 200]
    assert result.objects.index.tolist() == [0, 1, 2, 3]
    assert result.objects["partner_id"].tolist() == [100, 200, 1, 2]
    assert result.objects["status"].tolist() == ["TP", "misclassified"] * 2
    assert result.objects["hausdorff_um"].tolist() == [0.0] * 4
    assert tuple(result.metrics) == METRIC_NAMES == tuple(METRIC_TEXTS)
    assert result.metrics["pq"] == result.metrics.pq == 1 / 3
    assert result.metrics["detection_f1"] == 1.0


def test_monusac_classes_come_in_the_challenges_order() -> None:
    result = evaluate_pair(
        IMAGE,
        IMAGE,
        reference_classes={1: "Macrophage", 2: "Lymphocyte"},
        prediction_classes={1: "Macrophage", 2: "Epithelial"},
    )
    names = ["none", "Epithelial", "Lymphocyte", "Neutrophil", "Macrophage"]
    assert result.confusion.index.tolist() == result.confusion.columns.tolist() == names
    assert result.confusion.loc["Lymphocyte", "Epithelial"] == 1


def test_other_classes_come_in_order_of_mention() -> None:
    result = evaluate_pair(
        IMAGE,
        IMAGE,
        reference_classes={1: "Plasma", 2: "Epithelial"},
        prediction_classes={1: "Eosinophil", 2: "Epithelial"},
    )
    assert result.confusion.index.tolist() == ["none", "Plasma", "Epithelial", "Eosinophil"]


def test_settings_are_taken_as_words() -> None:
    half = IMAGE.copy()
    half[:, :2] = 0
    how = EvaluationSettings(iou_threshold=0.4, ambiguous="keep", distances=False)
    classes = {1: "A", 2: "A"}
    found = evaluate_pair(
        IMAGE, half, reference_classes=classes, prediction_classes=classes, settings=how
    )
    assert found.metrics.pq == 0.75
    assert found.objects["hausdorff_px"].isna().all()


@pytest.mark.parametrize("unit", ["s", "D"])
def test_differences_of_times_are_no_labels(unit: str) -> None:
    labels = np.ones((4, 4), np.int32)
    times = labels.astype(f"timedelta64[{unit}]")
    with pytest.raises(LabelError, match="must hold whole numbers, found type timedelta64"):
        evaluate_pair(times, labels, reference_classes={1: "a"}, prediction_classes={1: "a"})
