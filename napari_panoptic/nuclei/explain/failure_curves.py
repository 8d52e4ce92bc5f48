"""Failure rate by the values of a covariate, with confidence bands over patients."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.explain.slice_conditions import (
    Condition,
    conditions_on,
    rounded_threshold,
)
from napari_panoptic.statistics.rates import rate_bands

_BINS = 10


@dataclass(frozen=True, eq=False)
class Curve:
    """Failure rate by the values of a covariate.

    Parameters
    ----------
    covariate
        Its name.
    bins
        One condition per bin: deciles of numbers, or values. They do not overlap.
    objects, failures
        int64 (b,): number in each bin.
    low, high
        float64 (b,): 95 % band of the rate; see `rate`.
    over_patients
        Whether the band is a bootstrap over patients. With fewer than six patients it is Wilson's
        interval over objects, which ignores that objects of one patient are alike.
    """

    covariate: str
    bins: tuple[Condition, ...]
    objects: NDArray[np.int64]
    failures: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    over_patients: bool

    @property
    def rate(self) -> NDArray[np.float64]:
        """float64 (b,): share of failures; NaN in an empty bin."""
        with np.errstate(invalid="ignore"):
            rate: NDArray[np.float64] = self.failures / self.objects
        return rate


def failure_curve(
    name: str, values: NDArray[Any], is_failure: NDArray[np.bool_], patients: NDArray[Any]
) -> Curve:
    """Return the failure rate by the values of a covariate, for plots.

    Parameters
    ----------
    name
        The covariate.
    values, is_failure, patients
        (n,): as in `search_slices`.
    """
    bins = _curve_bins(name, values)
    _, strata = np.unique(patients, return_inverse=True)
    n_patients = int(strata.max(initial=-1)) + 1
    objects, failures = np.zeros((2, len(bins), n_patients), np.int64)
    for place, condition in enumerate(bins):
        inside = condition.holds(values)
        objects[place] = np.bincount(strata[inside], minlength=n_patients)
        failures[place] = np.bincount(strata[inside & is_failure], minlength=n_patients)
    bands = rate_bands(failures, objects)
    return Curve(
        name,
        bins,
        objects.sum(axis=1),
        failures.sum(axis=1),
        bands.low,
        bands.high,
        bands.over_groups,
    )


def _curve_bins(name: str, values: NDArray[Any]) -> tuple[Condition, ...]:
    conditions = conditions_on(name, values)
    if any(condition.value is not None for condition in conditions):
        return conditions
    defined = values[~np.isnan(values)]
    cuts = sorted({rounded_threshold(defined, k / _BINS) for k in range(1, _BINS)})
    edges = [-np.inf, *cuts, np.inf]
    found = [Condition(name, low=a, high=b) for a, b in pairwise(edges)]
    return tuple(condition for condition in found if condition.holds(defined).any())
