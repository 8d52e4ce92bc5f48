"""Everything that a report shows of a cohort, computed in two passes over its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import pandas as pd

from napari_panoptic.errors import Finding, PanopticError
from napari_panoptic.evaluation.aggregation import (
    AggregationTable,
    RegionCounts,
    aggregation_table,
)
from napari_panoptic.evaluation.breakdown import (
    RegionObjects,
    by_cause,
    by_size,
    quartile_classes,
)
from napari_panoptic.evaluation.protocols import ProtocolTable, ScoredRegion, protocol_table
from napari_panoptic.evaluation.robustness import LESSONS_NEIGHBOURS, Robustness, star
from napari_panoptic.evaluation.settings import EvaluationSettings, Scoring
from napari_panoptic.evaluation.vocabulary import Side, Status
from napari_panoptic.experiment import (
    SHIFTS,
    Condition,
    Experiment,
    cohort_robustness,
    lessons_conditions,
    protocol_conditions,
    radius_conditions,
    scored_regions,
    shift_conditions,
    threshold_conditions,
)
from napari_panoptic.io.metadata import Metadata
from napari_panoptic.jobs import run_regions
from napari_panoptic.pipeline import RegionResult
from napari_panoptic.regions import Cohort, Source
from napari_panoptic.report.tables import CohortEvaluation, statistics_of
from napari_panoptic.report.team_statistics import TeamStatistics

RADII = tuple(range(-3, 6))
THRESHOLDS = tuple(k / 100 for k in range(5, 100, 5))
OWN_GROUP = "organ"
"""The column of the metadata that patients are grouped by, where there is one of the name."""

OnRegion = Callable[[], object]


@dataclass(frozen=True)
class ReportRequest:
    """What to report on.

    Parameters
    ----------
    cohort, settings, protocol
        What to evaluate, how, and by which name the settings are known.
    team_names
        Which teams.
    source
        Which form of the predictions; None for the usual one.
    metadata
        What is known of patients, or None.
    """

    cohort: Cohort
    settings: EvaluationSettings
    protocol: str
    team_names: tuple[str, ...]
    source: Source | None = None
    metadata: Metadata | None = None

    @property
    def detailed(self) -> EvaluationSettings:
        """The settings behind all that looks at single objects: never the challenge's scoring."""
        return self.settings.replaced(scoring=Scoring.DISENTANGLED, corrections=frozenset())

    @property
    def group_column(self) -> str:
        """The column by which patients are grouped; empty where there is none."""
        columns = [] if self.metadata is None else list(self.metadata.columns)
        return OWN_GROUP if OWN_GROUP in columns else next(iter(columns), "")

    def group_of(self, patient: str) -> str:
        """Give a patient's group; empty where there is none."""
        return "" if self.metadata is None else self.metadata.group_of(self.group_column, patient)


@dataclass(frozen=True, eq=False)
class Varied:
    """Figures under conditions that differ in one thing.

    Parameters
    ----------
    conditions
        The conditions.
    found
        What came of them.
    """

    conditions: tuple[Condition, ...]
    found: Robustness


@dataclass(frozen=True, eq=False)
class CohortReport:
    """Everything that a report shows but its pictures.

    Parameters
    ----------
    request
        What was asked for.
    evaluation
        By the settings asked for.
    detailed
        By the same settings under disentangled scoring, with the objects; the
        same as `evaluation` where that is what was asked for.
    lessons
        Restoration and rule -> the evaluation under them.
    two_by_two, radii, thresholds, shifts
        How figures change with restoration and rule, radius, threshold, and
        place of the predictions.
    protocols
        Scores and ranks under every version of the challenge's scoring.
    scored
        Team -> its regions, scored class by class: what tells why versions differ.
    """

    request: ReportRequest
    evaluation: CohortEvaluation
    detailed: CohortEvaluation
    lessons: dict[str, CohortEvaluation]
    two_by_two: Varied
    radii: Varied
    thresholds: Varied
    shifts: Varied
    protocols: ProtocolTable
    scored: Mapping[str, Sequence[ScoredRegion]]

    @property
    def cohort(self) -> Cohort:
        """The cohort."""
        return self.request.cohort

    @property
    def findings(self) -> list[Finding]:
        """What was missing, odd or unreadable, each once."""
        extra = [] if self.request.metadata is None else self.request.metadata.findings
        return list(dict.fromkeys([*self.evaluation.findings, *extra]))

    @cached_property
    def aggregation(self) -> AggregationTable:
        """PQ averaged in every way there is."""
        regions: dict[str, list[RegionCounts]] = {t: [] for t in self.detailed.team_names}
        for result in self.detailed.evaluated:
            if result.counts is not None:
                group = self.request.group_of(result.patient)
                regions[result.team].append(
                    RegionCounts(result.region, result.patient, group, result.counts)
                )
        return aggregation_table(regions, self.cohort.scheme.names)

    @cached_property
    def statistics(self) -> dict[str, TeamStatistics]:
        """Metric -> what can be said about the competing teams; empty for fewer than two."""
        return statistics_of(self.evaluation)

    @cached_property
    def sizes(self) -> pd.DataFrame | None:
        """Figures by size of object; None where no nucleus is annotated."""
        regions = self._objects()
        counted = any(
            (
                (r.objects["side"] == str(Side.REFERENCE))
                & (r.objects["status"] != str(Status.IGNORED))
            ).any()
            for r in regions
        )
        return by_size(regions, quartile_classes(regions)) if counted else None

    @cached_property
    def causes(self) -> pd.DataFrame:
        """Failures by cause."""
        return by_cause(self._objects())

    def _objects(self) -> list[RegionObjects]:
        return [
            RegionObjects(result.team, result.region, result.objects)
            for result in self.detailed.evaluated
            if result.objects is not None
        ]


def n_passes() -> int:
    """Tell how often `cohort_report` goes over all regions."""
    return 2


def cohort_report(
    request: ReportRequest,
    *,
    jobs: int | None = None,
    on_region: OnRegion = lambda: None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> CohortReport | None:
    """Evaluate a cohort in every way that a report shows.

    Parameters
    ----------
    request
        What to report on.
    jobs
        Regions at a time; as many as there are processors where None.
    on_region
        Called `n_passes` times per region.
    is_wanted
        Asked again and again; where it says no, None comes back.

    Raises
    ------
    PanopticError
        Where nothing could be evaluated.
    """
    own, detailed = _own_conditions(request)
    first = _run(request, own, with_objects=True, jobs=jobs, on_region=on_region, wanted=is_wanted)
    if first is None:
        return None
    evaluation = _evaluation(request, own[0], [results for results, *_ in first])
    if not evaluation.evaluated:
        raise PanopticError(_why_nothing(request), path=request.cohort.root)
    place = own.index(detailed)
    in_detail = _evaluation(request, detailed, [results[place] for results in first])
    families = _families(request)
    varied = tuple(condition for family in families for condition in family)
    second = _run(
        request, varied, with_objects=False, jobs=jobs, on_region=on_region, wanted=is_wanted
    )
    if second is None:
        return None
    return _gathered(request, evaluation, in_detail, families, second)


def _own_conditions(request: ReportRequest) -> tuple[tuple[Condition, ...], Condition]:
    own = Condition(request.protocol, request.settings, request.source)
    if request.settings.scoring is Scoring.DISENTANGLED:
        return (own,), own
    detailed = Condition(f"{request.protocol}, objects", request.detailed, request.source)
    return (own, detailed), detailed


def _families(request: ReportRequest) -> tuple[tuple[Condition, ...], ...]:
    base, source = request.detailed.replaced(distances=False), request.source
    disentangled, challenge = protocol_conditions(source=source)
    return (
        (
            replace(disentangled, settings=disentangled.settings.replaced(distances=False)),
            challenge,
        ),
        lessons_conditions(base, source=source),
        radius_conditions(RADII, base, source=source),
        threshold_conditions(THRESHOLDS, base, source=source),
        shift_conditions(SHIFTS, base, source=source),
    )


Results = list[list[list[RegionResult]]]
"""Per region, per condition, the teams."""


def _run(
    request: ReportRequest,
    conditions: tuple[Condition, ...],
    *,
    with_objects: bool,
    jobs: int | None,
    on_region: OnRegion,
    wanted: Callable[[], bool],
) -> Results | None:
    work = Experiment(request.team_names, conditions, with_objects=with_objects)
    found = []
    for region in run_regions(request.cohort, work, jobs=jobs, is_wanted=wanted):
        on_region()
        found.append([list(results) for results in region])
    return found if wanted() else None


def _evaluation(
    request: ReportRequest, condition: Condition, regions: Sequence[Sequence[RegionResult]]
) -> CohortEvaluation:
    results = [result for region in regions for result in region]
    return CohortEvaluation(request.cohort, condition.settings, condition.name, results)


def _gathered(
    request: ReportRequest,
    evaluation: CohortEvaluation,
    detailed: CohortEvaluation,
    families: tuple[tuple[Condition, ...], ...],
    regions: Results,
) -> CohortReport:
    """Share the results of the second pass out to the families of conditions."""
    per_family: list[Results] = [[] for _ in families]
    for region in regions:
        rest = iter(region)
        for own, family in zip(per_family, families, strict=True):
            own.append(list(islice(rest, len(family))))
    protocols, lessons, radii, thresholds, shifts = families
    by_protocol, by_lesson, by_radius, by_threshold, by_shift = per_family
    names = request.cohort.scheme.names

    def varied(
        family: tuple[Condition, ...],
        results: Results,
        neighbours: Sequence[tuple[int, int]] | None = None,
    ) -> Varied:
        work = Experiment(request.team_names, family, with_objects=False)
        return Varied(family, cohort_robustness(results, work, names, neighbours=neighbours))

    disentangled = _evaluation(request, protocols[0], [region[0] for region in by_protocol])
    means = {
        team: (summary.averaged["pq"].mean, summary.averaged["pq"].n)
        for team, summary in disentangled.summaries.items()
    }
    challenge = scored_regions(result for region in by_protocol for result in region[1])
    return CohortReport(
        request=request,
        evaluation=evaluation,
        detailed=detailed,
        lessons={
            condition.name: _evaluation(request, condition, [region[place] for region in by_lesson])
            for place, condition in enumerate(lessons)
        },
        two_by_two=varied(lessons, by_lesson, LESSONS_NEIGHBOURS),
        radii=varied(radii, by_radius),
        thresholds=varied(thresholds, by_threshold),
        shifts=varied(shifts, by_shift, star(len(shifts))),
        protocols=protocol_table(challenge, means),
        scored=challenge,
    )


def _why_nothing(request: ReportRequest) -> str:
    if not request.cohort.regions:
        return "there is nothing to report: the cohort has no regions"
    if not request.team_names:
        return (
            "there is nothing to report: the cohort has no predictions; put a folder per team "
            "into Teams/ or Submissions/"
        )
    return (
        "there is nothing to report: no region has both a readable annotation and a readable "
        "prediction"
    )
