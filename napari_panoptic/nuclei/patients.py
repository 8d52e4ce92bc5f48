"""From regions to patients to teams: figures averaged over patients, or pooled."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from napari_panoptic.nuclei.metrics import METRIC_NAMES, Counts, Metrics, unit_metrics


@dataclass(frozen=True)
class Spread:
    """A figure over several units.

    Parameters
    ----------
    n
        The number of units in which the figure is defined.
    mean, sd, median
        Over these units; sd is the sample standard deviation (n - 1). NaN
        if there are no units, or for sd fewer than two.
    """

    n: int
    mean: float
    sd: float
    median: float


@dataclass(frozen=True, eq=False)
class TeamSummary:
    """A team over a cohort.

    Parameters
    ----------
    patients
        Patient -> counts summed over the patient's regions.
    metrics
        Patient -> figures of these counts.
    averaged
        Metric -> its spread over the patients.
    pooled
        Figures of the counts summed over all patients.
    """

    patients: Mapping[str, Counts]
    metrics: Mapping[str, Metrics]
    averaged: Mapping[str, Spread]
    pooled: Metrics


def summed(counts: Iterable[Counts], class_names: tuple[str, ...]) -> Counts:
    """Return the sum of counts; zero for none."""
    return reduce(add, counts, Counts.zero(class_names))


def summarise_team(
    regions: Sequence[tuple[str, Counts]], class_names: tuple[str, ...]
) -> TeamSummary:
    """Aggregate a team's regions.

    Parameters
    ----------
    regions
        ``(patient, counts)`` of every evaluated region.
    class_names
        The scored classes.
    """
    patients = {
        patient: summed((c for p, c in regions if p == patient), class_names)
        for patient in sorted({patient for patient, _ in regions})
    }
    metrics = {patient: unit_metrics(counts) for patient, counts in patients.items()}
    averaged = {
        name: spread([figures[name] for figures in metrics.values()]) for name in METRIC_NAMES
    }
    pooled = unit_metrics(summed(patients.values(), class_names))
    return TeamSummary(patients, metrics, averaged, pooled)


def spread(values: Sequence[float]) -> Spread:
    """Compute mean, standard deviation and median of the defined values.

    Sums are exact and rounded once, at the end. So the mean of equal values is
    that value and their standard deviation 0, which sums of rounded numbers
    miss by a rounding error, and the order of the values does not matter.
    """
    defined = [float(value) for value in values if not np.isnan(value)]
    nan = float("nan")
    return Spread(
        n=len(defined),
        mean=statistics.mean(defined) if defined else nan,
        sd=statistics.stdev(defined) if len(defined) > 1 else nan,
        median=statistics.median(defined) if defined else nan,
    )
