"""The documentation explains every figure that is shown, and no other."""

from __future__ import annotations

import re

import numpy as np

from napari_panoptic import evaluate_pair
from napari_panoptic.nuclei.metrics import METRIC_NAMES
from tests.support.paths import REPOSITORY

FIGURES = (REPOSITORY / "docs" / "reference" / "figures.md").read_text("utf-8")
METRICS = (REPOSITORY / "docs" / "reference" / "metrics.md").read_text("utf-8")


def test_every_metric_is_explained() -> None:
    explained = set(re.findall(r"`(\w+)`", FIGURES))
    assert set(METRIC_NAMES) <= explained
    assert "HD95" in FIGURES


def test_no_figure_is_defined_that_nothing_shows() -> None:
    assert "ASSD" not in METRICS
    labels = np.kron([[1, 0], [0, 2]], np.ones((9, 9), int))
    found = evaluate_pair(
        labels, labels, reference_classes={1: "A", 2: "A"}, prediction_classes={1: "A", 2: "A"}
    )
    named = " ".join([*found.objects.columns, *dict(found.metrics)])
    assert "surface" not in named


def test_overlaps_kept_are_assigned_one_to_one() -> None:
    for page in (FIGURES, METRICS):
        assert re.search(r"overlaps keep.{0,200}one.to.one", page, re.DOTALL)
