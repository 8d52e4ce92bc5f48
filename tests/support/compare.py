"""Comparing what the package computes with what the oracle computes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from napari_panoptic import EvaluationSettings, evaluate_pair
from napari_panoptic.nuclei.evaluate import Evaluation
from tests.support import oracle
from tests.support.label_cases import CLASS_NAMES, LabelCase


def evaluate_case(case: LabelCase, *, mpp: float | None = None, **settings: Any) -> Evaluation:
    return evaluate_pair(
        case.reference,
        case.prediction,
        reference_classes=case.reference_classes,
        prediction_classes=case.prediction_classes,
        ambiguous=case.ambiguous,
        settings=EvaluationSettings(**settings),
        mpp=mpp,
        class_names=CLASS_NAMES,
    )


def oracle_case(case: LabelCase, *, mpp: float | None = None, **settings: Any) -> Any:
    names = {"ambiguous": "policy"}
    return oracle.evaluate(
        case.reference,
        case.prediction,
        case.reference_classes,
        case.prediction_classes,
        CLASS_NAMES,
        case.ambiguous,
        mpp=mpp,
        **{names.get(name, name): value for name, value in settings.items()},
    )


def assert_same_value(found: Any, expected: Any, what: str) -> None:
    """Undefined is None or empty for the oracle, and NaN, NA or empty for us."""
    undefined = found is None or bool(pd.isna(found))
    if expected is None or expected == "":
        assert undefined or found == "", f"{what}: {found}, expected undefined"
    elif isinstance(expected, str):
        assert found == expected, what
    else:
        assert not undefined, f"{what}: undefined, expected {expected}"
        assert math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12), (
            f"{what}: {found}, expected {expected}"
        )


def assert_agrees(found: Evaluation, expected: Any) -> None:
    """Compare every object and every figure."""
    rows = found.objects.to_dict("records")
    assert len(rows) == len(expected.objects)
    for row, wanted in zip(rows, expected.objects, strict=True):
        place = f"{wanted['side']} {wanted['id']}"
        for column, value in row.items():
            assert_same_value(value, wanted[column], f"{place} {column}")
    sides = (found.outcomes.reference, found.outcomes.prediction)
    percentiles = np.concatenate([side.hausdorff95_px for side in sides])
    for value, wanted in zip(percentiles, expected.objects, strict=True):
        assert_same_value(float(value), wanted["hausdorff95_px"], f"hausdorff95 of {wanted['id']}")
    for name, value in found.metrics.items():
        assert_same_value(value, expected.unit[name], name)
    for row in found.by_class.to_dict("records"):
        for name, value in row.items():
            if name != "class":
                wanted = expected.by_class[row["class"]][name]
                assert_same_value(value, wanted, f"{row['class']} {name}")
    assert found.confusion.to_numpy().tolist() == [list(row) for row in expected.confusion]


def assert_close(found: float, expected: float) -> None:
    """Check that two figures are the same, or both undefined."""
    assert math.isclose(found, expected, abs_tol=1e-12) or (
        math.isnan(found) and math.isnan(expected)
    )
