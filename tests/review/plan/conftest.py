"""Populations that tests draw plans from."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.review.plan.units import Units, population


@pytest.fixture(scope="session")
def small_units(small_folder):
    """All items of both teams of the small cohort."""
    return population(open_cohort(small_folder), ("alpha", "beta")).units


@pytest.fixture(scope="session")
def many_units():
    """2,000 items of one team, six patients and two classes, without pixels behind them."""
    rng = np.random.default_rng(4)
    n = 2000
    kind = rng.choice(5, n, p=[0.4, 0.08, 0.15, 0.12, 0.25])
    has_reference, has_prediction = kind <= 2, (kind <= 1) | (kind == 3)
    own = rng.integers(1, 3, n)
    other = np.where(kind == 1, 3 - own, own)
    causes = np.array(["missed", "too-small", "split"], object)
    tiles = np.array(["empty", "partly"], object)
    detail = np.where(
        kind == 4,
        rng.choice(tiles, n),
        np.where((kind == 2) | (kind == 3), rng.choice(causes, n), ""),
    )
    patient = np.array([f"P{k}" for k in rng.integers(0, 6, n)], object)
    return Units(
        class_names=("Round", "Long"),
        team=np.full(n, "T", object),
        patient=patient,
        region=np.array([f"{name}_1" for name in patient], object),
        side=np.where(kind == 4, 2, np.where(kind == 3, 1, 0)).astype(np.int8),
        kind=kind.astype(np.int8),
        id=np.where(kind == 4, -1, np.arange(n)),
        y_px=np.arange(n) * 64.0,
        x_px=np.zeros(n),
        reference_class=np.where(has_reference, own, 0).astype(np.int16),
        prediction_class=np.where(has_prediction, other, 0).astype(np.int16),
        iou=np.where(kind <= 1, rng.uniform(0.5, 1, n), 0),
        detail=detail.astype(object),
    )
