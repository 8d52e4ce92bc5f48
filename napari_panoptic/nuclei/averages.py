"""From regions to patients to teams: counts are added over a patient, figures averaged then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from napari_panoptic.nuclei.metrics import (
    METRIC_NAMES,
    Counts,
    Metrics,
    unit_metrics,
)
from napari_panoptic.statistics.means import Spread, spread


@dataclass(frozen=True, eq=False)
class TeamSummary:
    """A team over a cohort."""

    #: Patient -> counts summed over the patient's regions.
    patients: Mapping[str, Counts]
    #: Patient -> figures of these counts.
    metrics: Mapping[str, Metrics]
    #: Metric -> its spread over the patients.
    averaged: Mapping[str, Spread]
    #: Figures of the counts summed over all patients.
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
    of_patients: dict[str, list[Counts]] = {}
    for patient, counts in regions:
        of_patients.setdefault(patient, []).append(counts)
    patients = {patient: summed(own, class_names) for patient, own in sorted(of_patients.items())}
    metrics = {patient: unit_metrics(counts) for patient, counts in patients.items()}
    averaged = {
        name: spread([figures[name] for figures in metrics.values()]) for name in METRIC_NAMES
    }
    pooled = unit_metrics(summed(patients.values(), class_names))
    return TeamSummary(patients, metrics, averaged, pooled)


@dataclass(frozen=True)
class RegionCounts:
    """The counts of one team in one region, with its patient."""

    region: str
    patient: str
    counts: Counts
