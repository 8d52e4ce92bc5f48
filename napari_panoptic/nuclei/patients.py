"""From regions to patients to teams: figures averaged over patients, or pooled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from napari_panoptic.nuclei.metrics import METRIC_NAMES, Counts, Metrics, unit_metrics
from napari_panoptic.statistics.means import Spread, spread


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
