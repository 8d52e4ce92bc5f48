"""Everything that a report shows of a cohort, computed in two passes over its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path

import pandas as pd

from napari_panoptic.common.errors import (
    Finding,
    FindingKind,
    PanopticError,
    SettingsError,
    english_list,
)
from napari_panoptic.io.metadata import Metadata
from napari_panoptic.nuclei.averages import (
    AggregationTable,
    RegionCounts,
    aggregation_table,
)
from napari_panoptic.nuclei.cohort_evaluation import CohortEvaluation, InputWatch, statistics_of
from napari_panoptic.nuclei.conditions import (
    SHIFTS,
    Condition,
    Experiment,
    lessons_conditions,
    protocol_conditions,
    radius_conditions,
    scored_regions,
    shift_conditions,
    threshold_conditions,
)
from napari_panoptic.nuclei.explain.breakdown import (
    RegionObjects,
    by_cause,
    by_size,
    quartile_classes,
)
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.protocols import ProtocolTable, ScoredRegion, protocol_table
from napari_panoptic.nuclei.reading import HELD_UP_TO_PX, RegionResult
from napari_panoptic.nuclei.result_store import PartStore, RegionResults
from napari_panoptic.nuclei.robustness import (
    LESSONS_NEIGHBOURS,
    Robustness,
    robustness,
    star,
)
from napari_panoptic.nuclei.run import THREADS, RegionDone, run_regions
from napari_panoptic.nuclei.values.cohort import Cohort, Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings, Overlaps, Scoring
from napari_panoptic.nuclei.values.vocabulary import Side, Status
from napari_panoptic.nuclei.windowed_regions import left_out_of_reports
from napari_panoptic.statistics.teams import TeamStatistics

RADII = tuple(range(-3, 6))
THRESHOLDS = tuple(k / 100 for k in range(5, 100, 5))
OWN_GROUP = "organ"
"""The column of the metadata that patients are grouped by, where there is one of the name."""

_BOTH_WAYS = (Overlaps.FLATTEN, Overlaps.KEEP)
_PASSES = ("objects", "sums")
"""Of the two passes, the folders of what is done."""


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
    group
        The column by which patients are grouped; empty for ``organ`` where
        there is one, else the first.
    held_up_to_px
        Regions of more pixels are read in windows, never as a whole.

    Raises
    ------
    PanopticError
        For a column that there is not.
    """

    cohort: Cohort
    settings: EvaluationSettings
    protocol: str
    team_names: tuple[str, ...]
    source: Source | None = None
    metadata: Metadata | None = None
    group: str = ""
    held_up_to_px: int = HELD_UP_TO_PX

    def __post_init__(self) -> None:
        """Check that the column is there; a SettingsError where it is not."""
        columns = [] if self.metadata is None else list(self.metadata.columns)
        if self.group and self.group not in columns:
            known = english_list(columns) or "none; a table of patients is needed"
            raise SettingsError(f"there is no column '{self.group}' to group by; known: {known}")

    @property
    def detailed(self) -> EvaluationSettings:
        """The settings behind all that looks at single objects: never the challenge's scoring."""
        return self.settings.replaced(scoring=Scoring.DISENTANGLED, corrections=frozenset())

    @property
    def group_column(self) -> str:
        """The column by which patients are grouped; empty where there is none."""
        columns = [] if self.metadata is None else list(self.metadata.columns)
        if self.group:
            return self.group
        return OWN_GROUP if OWN_GROUP in columns else next(iter(columns), "")

    def group_of(self, patient: str) -> str:
        """Return a patient's group; empty where there is none."""
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
        Restoration and rule -> the evaluation under them, without findings,
        which are those of `evaluation`.
    two_by_two, radii, thresholds, shifts
        How figures change with restoration and rule, radius, threshold, and
        place of the predictions.
    protocols
        Scores and ranks under every version of the challenge's scoring.
    scored
        Team -> its regions, scored class by class: what tells why versions differ.
    overlaps
        Where objects keep the pixels that they share, and beside it where they do not;
        of the regions in which both is possible.
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
    overlaps: CohortEvaluation

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
    """Return how often `cohort_report` goes over all regions."""
    return len(_PASSES)


def n_kept(store: Path) -> int:
    """Count what `cohort_report` left in a store: at most `n_passes` times the regions.

    Whether it still holds is told only when it is taken over.
    """
    return sum(part.n_regions() for part in _parts(store))


def remove_kept(store: Path) -> None:
    """Remove what `cohort_report` left in a store, and the folder where nothing else is in it.

    Raises
    ------
    PanopticError
        Where that is not allowed.
    """
    for part in _parts(store):
        part.remove()
    try:
        if store.is_dir() and not any(store.iterdir()):
            store.rmdir()
    except OSError as error:
        raise PanopticError(
            f"the folder of an earlier run cannot be removed: {error.strerror}; remove it by hand",
            path=store,
        ) from error


def _parts(store: Path) -> list[PartStore]:
    return [PartStore(store / name) for name in _PASSES]


def cohort_report(
    request: ReportRequest,
    *,
    jobs: int | None = None,
    scheduler: str = THREADS,
    store: Path | None = None,
    on_result: Callable[[RegionDone], None] | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> CohortReport | None:
    """Evaluate a cohort in every way that a report shows.

    Parameters
    ----------
    request
        What to report on.
    jobs, scheduler
        Regions at a time, and where they are done; see
        `napari_panoptic.nuclei.run.run_regions`.
    store
        A folder for the regions that are done; what an earlier run has left
        there is taken over. It stays until :func:`remove_kept` is called, but
        for a cohort of which nothing could be evaluated. None to keep nothing.
    on_result
        Called `n_passes` times per region, from the thread that computes.
    is_wanted
        Asked again and again; where it says no, None comes back.

    Raises
    ------
    PanopticError
        Where nothing could be evaluated, the store cannot be written, or
        workers cannot be reached or die again and again.
    """
    watch = InputWatch(request.cohort, request.team_names)
    run = _Run(request.cohort, jobs, scheduler, store, on_result, is_wanted)
    own, detailed = _own_conditions(request)
    first: list[RegionResults] = []
    work = Experiment(request.team_names, own, held_up_to_px=request.held_up_to_px)
    if not run.go(0, work, first.append):
        return None
    evaluation = _evaluation(request, own[0], [results for results, *_ in first])
    if not evaluation.evaluated:
        if store is not None:
            remove_kept(store)
        raise PanopticError(_why_nothing(request), path=request.cohort.root)
    place = own.index(detailed)
    in_detail = _evaluation(request, detailed, [results[place] for results in first])
    second = _Second(request)
    if not run.go(1, second.work, second.add):
        return None
    return second.gathered(watch.noted(evaluation), watch.noted(in_detail))


@dataclass(frozen=True, eq=False)
class _Run:
    """How all regions are gone over."""

    cohort: Cohort
    jobs: int | None
    scheduler: str
    store: Path | None
    on_result: Callable[[RegionDone], None] | None
    is_wanted: Callable[[], bool]

    def go(self, number: int, work: Experiment, add: Callable[[RegionResults], None]) -> bool:
        """Go over all regions, and tell whether the whole of it was wanted."""
        for region in run_regions(
            self.cohort,
            work,
            jobs=self.jobs,
            scheduler=self.scheduler,
            store=None if self.store is None else self.store / _PASSES[number],
            on_result=self.on_result,
            is_wanted=self.is_wanted,
        ):
            add(region)
        return self.is_wanted()


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
        tuple(Condition(str(o), base.replaced(overlaps=o), source) for o in _BOTH_WAYS),
    )


def _evaluation(
    request: ReportRequest, condition: Condition, regions: Sequence[Sequence[RegionResult]]
) -> CohortEvaluation:
    results = [result for region in regions for result in region]
    return CohortEvaluation(request.cohort, condition.settings, condition.name, results)


class PatientSums:
    """Counts under many conditions, of which only the sums over patients are kept.

    They are summed in the order in which regions come, so that figures are the
    same, bit by bit, as those of `napari_panoptic.nuclei.conditions.cohort_robustness`.

    Parameters
    ----------
    team_names, conditions
        Which teams were evaluated, and how.
    class_names
        The scored classes.
    """

    def __init__(
        self,
        team_names: Sequence[str],
        conditions: tuple[Condition, ...],
        class_names: tuple[str, ...],
    ) -> None:
        self._conditions, self._class_names = conditions, class_names
        self._zero = Counts.zero(class_names)
        self._sums: dict[str, list[dict[str, Counts]]] = {
            team: [{} for _ in conditions] for team in team_names
        }

    def add(self, region: Sequence[Sequence[RegionResult]]) -> None:
        """Add the results of a region: per condition, the teams."""
        for number, results in enumerate(region):
            for result in results:
                if result.counts is not None:
                    sums = self._sums[result.team][number]
                    known = sums.get(result.patient, self._zero)
                    sums[result.patient] = known + result.counts

    def varied(self, neighbours: Sequence[tuple[int, int]] | None = None) -> Varied:
        """Return figures and ranks under each condition, and where ranks change between neighbours.

        Parameters
        ----------
        neighbours
            As in `napari_panoptic.nuclei.robustness.robustness`.
        """
        counts = {
            team: [list(sums.items()) for sums in by_condition]
            for team, by_condition in self._sums.items()
        }
        names = tuple(condition.name for condition in self._conditions)
        found = robustness(counts, names, self._class_names, neighbours=neighbours)
        return Varied(self._conditions, found)


class _Second:
    """Gathers the second pass: sums of patients, and of regions no more than is shown of them."""

    def __init__(self, request: ReportRequest) -> None:
        self._request = request
        families = _families(request)
        self._lessons = families[1]
        all_conditions = tuple(condition for family in families for condition in family)
        self.work = Experiment(
            request.team_names,
            all_conditions,
            with_objects=False,
            held_up_to_px=request.held_up_to_px,
        )
        ends = accumulate((len(family) for family in families), initial=0)
        self._places = [slice(*bounds) for bounds in pairwise(ends)]
        names = request.cohort.scheme.names
        self._sums = [PatientSums(request.team_names, family, names) for family in families]
        self._by_lesson: list[RegionResults] = []
        self._challenge: list[RegionResult] = []
        self._overlaps = families[-1]
        self._both_ways: list[tuple[RegionResult, RegionResult]] = []

    def add(self, region: RegionResults) -> None:
        """Take what is needed of a region's results."""
        for sums, place in zip(self._sums, self._places, strict=True):
            sums.add(region[place])
        (_, challenge), lessons, *_ = (region[place] for place in self._places)
        self._challenge += [replace(result, findings=()) for result in challenge]
        self._by_lesson.append([[replace(r, findings=()) for r in found] for found in lessons])
        flat, kept = region[self._places[-1]]
        self._both_ways += [
            (one, _with_shared_pixels_alone(other))
            for one, other in zip(flat, kept, strict=True)
            if one.counts is not None and other.counts is not None
        ]

    def gathered(self, evaluation: CohortEvaluation, detailed: CohortEvaluation) -> CohortReport:
        """Return the report, once all regions are there."""
        protocols, two_by_two, radii, thresholds, shifts, _ = self._sums
        scored = scored_regions(self._challenge)
        disentangled = protocols.varied().found
        means = {
            team: (float(disentangled.pq[row, 0]), int(disentangled.n_patients[row, 0]))
            for row, team in enumerate(disentangled.teams)
        }
        return CohortReport(
            request=self._request,
            evaluation=_with_words_on_slides(evaluation, detailed),
            detailed=detailed,
            lessons={
                condition.name: _evaluation(
                    self._request, condition, [region[number] for region in self._by_lesson]
                )
                for number, condition in enumerate(self._lessons)
            },
            two_by_two=two_by_two.varied(LESSONS_NEIGHBOURS),
            radii=radii.varied(),
            thresholds=thresholds.varied(),
            shifts=shifts.varied(star(len(SHIFTS))),
            protocols=protocol_table(scored, means),
            scored=scored,
            overlaps=CohortEvaluation(
                self._request.cohort,
                self._overlaps[1].settings,
                self._overlaps[1].name,
                [kept for _, kept in self._both_ways],
                [replace(flat, findings=()) for flat, _ in self._both_ways],
            ),
        )


def _with_shared_pixels_alone(result: RegionResult) -> RegionResult:
    """Leave out all findings but those on objects that share pixels."""
    findings = (f for f in result.findings if f.kind is FindingKind.OVERLAPPING and f.object_ids)
    return replace(result, findings=tuple(findings))


def _with_words_on_slides(
    evaluation: CohortEvaluation, detailed: CohortEvaluation
) -> CohortEvaluation:
    """Describe what the report leaves out of regions that were evaluated in windows."""
    left_out = left_out_of_reports(detailed.results)
    if left_out is None:
        return evaluation
    cohort = evaluation.cohort
    return replace(evaluation, cohort=replace(cohort, findings=(*cohort.findings, left_out)))


def _why_nothing(request: ReportRequest) -> str:
    if not request.cohort.regions:
        return "there is nothing to report: the cohort has no regions"
    if not request.team_names:
        return (
            "there is nothing to report: the cohort has no predictions; "
            f"{request.cohort.predictions_expected}"
        )
    return (
        "there is nothing to report: no region has both a readable annotation and a readable "
        "prediction that can be scored (regions too large to be held cannot be scored as the "
        "challenge did); napari-panoptic evaluate tells of every file what is wrong with it"
    )
