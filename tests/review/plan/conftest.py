"""Populations that tests draw plans from."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.review.plan.units import population
from napari_panoptic.values.reading import Reading
from tests.support.review_units import units_of_kinds


@pytest.fixture(scope="session")
def small_units(small_folder):
    """All items of both teams of the small cohort."""
    return population(open_cohort(small_folder), Reading(teams=("alpha", "beta"))).units


@pytest.fixture(scope="session")
def many_units():
    """2,000 items of one team, six patients and two classes, without pixels behind them."""
    rng = np.random.default_rng(4)
    n = 2000
    kind = rng.choice(5, n, p=[0.4, 0.08, 0.15, 0.12, 0.25])
    own = rng.integers(1, 3, n)
    other = np.where(kind == 1, 3 - own, own)
    causes = np.array(["missed", "too-small", "split"], object)
    tiles = np.array(["empty", "partly"], object)
    detail = np.where(
        kind == 4,
        rng.choice(tiles, n),
        np.where((kind == 2) | (kind == 3), rng.choice(causes, n), ""),
    )
    patient = rng.integers(0, 6, n)
    return units_of_kinds(
        ("Round", "Long"), kind, patient, (own, other), rng.uniform(0.5, 1, n), detail
    )
