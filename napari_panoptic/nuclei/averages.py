"""From regions to patients to teams: figures averaged in every usual way, with the ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from itertools import product
from operator import add

import numpy as np

from napari_panoptic.nuclei.metrics import (
    METRIC_NAMES,
    Counts,
    Metrics,
    unit_metrics,
)
from napari_panoptic.statistics.means import Spread, spread
from napari_panoptic.statistics.ranks import competition_ranks


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


class Unit(StrEnum):
    """The unit over which counts are summed before a figure is computed."""

    REGION = "region"  # every region by itself
    PATIENT = "patient"  # all regions of a patient together
    GROUP = "group"  # all regions of a group (an organ, say) together; others are left out
    POOLED = "pooled"  # everything together


class ClassMean(StrEnum):
    """How the figures of the classes become one."""

    PRESENT = "present"  # mean over the classes present in reference or prediction
    ALL = "all"  # mean over all classes; an absent one counts 0
    WEIGHTED = "weighted"  # each class by its reference objects


UNDEFINED_RULES: Mapping[ClassMean, str] = {
    ClassMean.PRESENT: "classes absent from both sides are left out; a unit without any is too",
    ClassMean.ALL: "classes absent from both sides count 0",
    ClassMean.WEIGHTED: "classes not annotated weigh 0; a unit without any is left out",
}
"""How each mean treats undefined values."""

FIGURES = ("pq", "sq", "dq")


@dataclass(frozen=True)
class RegionCounts:
    """The counts of one team in one region, with its patient and group."""

    region: str
    patient: str
    counts: Counts
    #: Empty if there are no groups.
    group: str = ""


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One figure of one team, averaged in one way."""

    #: The team, and one of ``pq``, ``sq``, ``dq``.
    team: str
    figure: str
    #: The way of averaging.
    unit: Unit
    class_mean: ClassMean
    #: Over the units in which the figure is defined.
    spread: Spread
    #: Number of all units, including those left out.
    n_units: int
    #: Unit -> its figure, NaN where undefined.
    values: Mapping[str, float]

    @property
    def undefined_rule(self) -> str:
        """How undefined values are treated."""
        return UNDEFINED_RULES[self.class_mean]


@dataclass(frozen=True, eq=False)
class AggregationTable:
    """Every way to average one figure, with its ranking."""

    #: T names.
    teams: tuple[str, ...]
    #: The W ways, as pairs of unit and class mean.
    ways: tuple[tuple[Unit, ClassMean], ...]
    #: ``(team, unit, class mean)`` -> the figure.
    aggregates: Mapping[tuple[str, Unit, ClassMean], Aggregate]
    #: ``(team, unit, class mean)`` -> 1 for the best; 0 where undefined.
    ranks: Mapping[tuple[str, Unit, ClassMean], int]


def aggregate(
    team: str,
    regions: Sequence[RegionCounts],
    class_names: tuple[str, ...],
    *,
    unit: Unit,
    class_mean: ClassMean,
    figure: str = "pq",
) -> Aggregate:
    """Average a team's figure in one way.

    Parameters
    ----------
    team
        The name of the team.
    regions
        Its evaluated regions.
    class_names
        The scored classes.
    unit, class_mean
        How to average.
    figure
        ``pq``, ``sq`` or ``dq``.
    """
    groups = {Unit.REGION: "region", Unit.PATIENT: "patient", Unit.GROUP: "group"}
    members: dict[str, list[Counts]] = {}
    for region in regions:
        name = "all" if unit is Unit.POOLED else str(getattr(region, groups[unit]))
        if not name:
            continue  # belongs to no group
        members.setdefault(name, []).append(region.counts)
    values = {
        name: unit_figure(summed(own, class_names), figure, class_mean)
        for name, own in sorted(members.items())
    }
    return Aggregate(
        team=team,
        figure=figure,
        unit=unit,
        class_mean=class_mean,
        spread=spread(list(values.values())),
        n_units=len(values),
        values=values,
    )


def unit_figure(counts: Counts, figure: str, class_mean: ClassMean) -> float:
    """Compute PQ, SQ or DQ of a unit, the classes averaged in one way; NaN where undefined.

    Over all classes, and by weight, the SQ of a class without a TP counts 0.
    """
    if class_mean is ClassMean.PRESENT:
        return unit_metrics(counts)[figure]
    by_class = counts.figures_by_class[figure]
    known = np.where(np.isnan(by_class), 0.0, by_class)
    if class_mean is ClassMean.ALL:
        return float(known.mean()) if len(known) else float("nan")
    weights = (counts.tp + counts.fn).astype(np.float64)
    return float((known * weights).sum() / weights.sum()) if weights.sum() > 0 else float("nan")


def aggregation_table(
    regions: Mapping[str, Sequence[RegionCounts]],
    class_names: tuple[str, ...],
) -> AggregationTable:
    """Average the PQ of all teams in every way.

    Groups are included only if a region has one.

    Parameters
    ----------
    regions
        Team -> its evaluated regions.
    class_names
        The scored classes.
    """
    has_groups = any(region.group for own in regions.values() for region in own)
    units = [unit for unit in Unit if unit is not Unit.GROUP or has_groups]
    ways = tuple(product(units, ClassMean))
    aggregates = {
        (team, unit, mean): aggregate(team, own, class_names, unit=unit, class_mean=mean)
        for team, own in regions.items()
        for unit, mean in ways
    }
    means = np.array(
        [[aggregates[team, *way].spread.mean for way in ways] for team in regions]
    ).reshape(len(regions), len(ways))
    ranked = competition_ranks(means)
    ranks = {
        (team, *way): int(ranked[row, column])
        for row, team in enumerate(regions)
        for column, way in enumerate(ways)
    }
    return AggregationTable(tuple(regions), ways, aggregates, ranks)
