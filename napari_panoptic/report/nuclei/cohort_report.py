"""Everything that a report shows of a cohort, under all conditions at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.common.text import english_list
from napari_panoptic.explain.breakdown import (
    RegionObjects,
    by_cause,
    by_size,
    quartile_classes,
)
from napari_panoptic.io.tables.metadata import Metadata
from napari_panoptic.nuclei.regions.cohort_evaluation import (
    CohortEvaluation,
    InputWatch,
    statistics_of,
)
from napari_panoptic.nuclei.regions.conditions import (
    LESSONS_NEIGHBOURS,
    Condition,
    Robustness,
    lessons_conditions,
    radius_conditions,
    shift_conditions,
    star,
    threshold_conditions,
)
from napari_panoptic.nuclei.regions.experiment import (
    Experiment,
    PatientSums,
    left_out_of_reports,
)
from napari_panoptic.nuclei.regions.result_store import PartStore, RegionResults
from napari_panoptic.nuclei.regions.results import RegionResult
from napari_panoptic.nuclei.regions.run import THREADS, RegionDone, run_regions
from napari_panoptic.nuclei.regions.shifts import SHIFTS
from napari_panoptic.questions.answer import Answer, UnansweredError
from napari_panoptic.questions.conventions import Conventions
from napari_panoptic.questions.question import (
    Question,
    question_kind,
    question_names,
    why_nothing,
)
from napari_panoptic.questions.scores import ScoreQuality
from napari_panoptic.questions.slices import Slices
from napari_panoptic.statistics.teams import TeamStatistics
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.reading import HELD_UP_TO_PX
from napari_panoptic.values.settings import EvaluationSettings, Overlaps
from napari_panoptic.values.vocabulary import Side, Status

if TYPE_CHECKING:
    import pandas as pd

    from napari_panoptic.report.answers import Asked
    from napari_panoptic.report.nuclei.region import AboutRegion

OWN_GROUP = "organ"
"""The column of the metadata by which patients are grouped if there is one of this name."""

_BOTH_WAYS = (Overlaps.FLATTEN, Overlaps.KEEP)


@dataclass(frozen=True)
class ReportRequest:
    """What a report is about.

    Raises
    ------
    PanopticError
        For a column that there is not.
    """

    #: What to evaluate, how, and by which name the settings are known.
    cohort: Cohort
    settings: EvaluationSettings
    protocol: str
    #: Which teams.
    team_names: tuple[str, ...]
    #: Which format of the predictions; None for the usual one.
    source: Source | None = None
    #: What is known of patients, or None.
    metadata: Metadata | None = None
    #: The column by which patients are grouped; empty for ``organ`` where there is one, else the
    #: first.
    group: str = ""
    #: Regions of more pixels are read in windows, never as a whole.
    held_up_to_px: int = HELD_UP_TO_PX

    def __post_init__(self) -> None:
        """Check that the column exists; raise a SettingsError if it is not."""
        columns = [] if self.metadata is None else list(self.metadata.columns)
        if self.group and self.group not in columns:
            known = english_list(columns) or "none; a table of patients is needed"
            raise SettingsError(f"there is no column '{self.group}' to group by; known: {known}")

    @property
    def detailed(self) -> EvaluationSettings:
        """The settings behind all that looks at single objects: never the challenge's scoring."""
        return self.settings.disentangled

    @property
    def group_column(self) -> str:
        """The column by which patients are grouped; empty if there is none."""
        columns = [] if self.metadata is None else list(self.metadata.columns)
        if self.group:
            return self.group
        return OWN_GROUP if OWN_GROUP in columns else next(iter(columns), "")

    def group_of(self, patient: str) -> str:
        """Return a patient's group; empty if there is none."""
        return "" if self.metadata is None else self.metadata.group_of(self.group_column, patient)


@dataclass(frozen=True, eq=False)
class Varied:
    """Figures under conditions that differ in one thing."""

    #: The conditions.
    conditions: tuple[Condition, ...]
    #: Their figures and ranks.
    found: Robustness


@dataclass(frozen=True, eq=False)
class CohortReport:
    """Everything that a report shows but its pictures."""

    #: What was requested.
    request: ReportRequest
    #: Under the requested settings.
    evaluation: CohortEvaluation
    #: By the same settings under disentangled scoring, with the objects; the same as `evaluation`
    #: if that was requested.
    detailed: CohortEvaluation
    #: Restoration and rule -> the evaluation under them, without findings, which are those of
    #: `evaluation`.
    lessons: dict[str, CohortEvaluation]
    #: How figures change with restoration and rule, radius, threshold, and place of the
    #: predictions.
    two_by_two: Varied
    radii: Varied
    thresholds: Varied
    shifts: Varied
    #: With objects that keep the pixels that they share, and flattened; of the regions in which
    #: both is possible.
    overlaps: CohortEvaluation
    #: The questions over the cohort that could be answered, with their answers.
    answers: Sequence[Asked]
    #: What the window shows of the region in which the teams do worst; None without one.
    about_region: AboutRegion | None = None

    @property
    def cohort(self) -> Cohort:
        """The cohort."""
        return self.request.cohort

    @property
    def findings(self) -> list[Finding]:
        """What was missing, odd or unreadable, each once."""
        extra = [] if self.request.metadata is None else self.request.metadata.findings
        answer = self.conventions
        left_out = [] if answer is None else answer.record.findings
        return list(dict.fromkeys([*self.evaluation.findings, *extra, *left_out]))

    @property
    def conventions(self) -> Answer | None:
        """The answer to `Conventions`, if there is one."""
        return next((own for asked, own in self.answers if isinstance(asked, Conventions)), None)

    @cached_property
    def statistics(self) -> dict[str, TeamStatistics]:
        """Metric -> statistics of the competing teams; empty for fewer than two."""
        return statistics_of(self.evaluation)

    @cached_property
    def sizes(self) -> pd.DataFrame | None:
        """Figures by size of object; None if no nucleus is annotated."""
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


def n_kept(store: Path) -> int:
    """Return the number of regions in a store of `cohort_report`.

    Whether they are still valid is checked when they are reused.
    """
    return PartStore(store).n_regions()


def remove_kept(store: Path) -> None:
    """Remove the results of `cohort_report` in a store, and the folder if nothing else is in it.

    Raises
    ------
    PanopticError
        If that is not permitted.
    """
    PartStore(store).remove()


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
        Regions at a time, and where they are evaluated; see
        `napari_panoptic.nuclei.regions.run.run_regions`.
    store
        A folder for finished regions, which reuses those of an earlier run. It
        stays until :func:`remove_kept` is called, unless nothing could be
        evaluated. None to keep nothing.
    on_result
        Called with each region, from the thread that computes.
    is_wanted
        Polled; None is returned once it returns False.

    Raises
    ------
    UnansweredError
        If nothing could be evaluated.
    PanopticError
        If the store cannot be written, or workers cannot be reached or keep dying.
    """
    from napari_panoptic.report.nuclei.region import about_region, worst_region

    watch = InputWatch(request.cohort, request.team_names)
    regions = _Regions(request)
    for region in run_regions(
        request.cohort,
        regions.work,
        jobs=jobs,
        scheduler=scheduler,
        store=store,
        on_result=on_result,
        is_wanted=is_wanted,
    ):
        regions.add(region)
    if not is_wanted():
        return None
    evaluation, detailed = regions.evaluations()
    if not evaluation.evaluated:
        if store is not None:
            remove_kept(store)
        why = why_nothing(request.cohort, request.team_names)
        message = f"there is nothing to report in {request.cohort.root}: {why}"
        raise UnansweredError(message, evaluation.findings)
    try:
        progress = Progress(is_wanted)
        answers = _answers(request, detailed, jobs, progress)
        about = about_region(request, worst_region(detailed.evaluated), progress)
    except StoppedError:
        return None
    return regions.report(watch.noted(evaluation), watch.noted(detailed), answers, about)


def _answers(
    request: ReportRequest, detailed: CohortEvaluation, jobs: int | None, progress: Progress
) -> list[Asked]:
    """Answer the questions that reports ask, in one pass over the regions."""
    from napari_panoptic.report.answers import answers_to  # takes long to import

    common = _common(request)
    # The table beside the cohort was looked for before.
    metadata = Metadata({}) if request.metadata is None else request.metadata
    scored = {
        result.team
        for result in detailed.evaluated
        if result.objects is not None and result.objects["score"].notna().any()
    }
    questions = [
        *(Slices(team=team, metadata=metadata, **common) for team in request.team_names),
        *(ScoreQuality(team=team, **common) for team in request.team_names if team in scored),
        *_questions(request),
    ]
    return answers_to(questions, request.cohort, progress, jobs=jobs)


def _common(request: ReportRequest) -> dict[str, Any]:
    """Return how objects are matched, as fields of questions."""
    return {
        "settings": request.detailed,
        "protocol": request.protocol,
        "source": request.source,
        "held_up_to_px": request.held_up_to_px,
    }


def _questions(request: ReportRequest) -> list[Question]:
    """Return the questions that the report asks of the cohort besides its own."""
    from napari_panoptic.report.answers import asked_by_reports  # takes long to import

    own = ("slices", "scores", "ranking")  # asked above, or among the report's own figures
    kinds = [question_kind(name) for name in question_names() if name not in own]
    return [
        question
        for kind in kinds
        for question in asked_by_reports(
            kind,
            request.cohort,
            request.team_names,
            **_common(request) | {"settings": kind.suited(request.detailed)},
            **({"metadata": request.metadata} if kind is Conventions else {}),
        )
    ]


def _own_conditions(request: ReportRequest) -> tuple[tuple[Condition, ...], Condition]:
    own = Condition(request.protocol, request.settings, request.source)
    if request.settings == request.detailed:
        return (own,), own
    detailed = Condition(f"{request.protocol}, objects", request.detailed, request.source)
    return (own, detailed), detailed


def _families(request: ReportRequest) -> dict[str, tuple[Condition, ...]]:
    """Return the conditions under which only sums are needed, by what they vary."""
    base, source = request.detailed.replaced(distances=False), request.source
    return {
        "lessons": lessons_conditions(base, source=source),
        "radii": radius_conditions(base=base, source=source),
        "thresholds": threshold_conditions(base=base, source=source),
        "shifts": shift_conditions(base=base, source=source),
        "overlaps": tuple(Condition(str(o), base.replaced(overlaps=o), source) for o in _BOTH_WAYS),
    }


def _evaluation(
    request: ReportRequest, condition: Condition, regions: Sequence[Sequence[RegionResult]]
) -> CohortEvaluation:
    results = [result for region in regions for result in region]
    cohort, metadata = request.cohort, request.metadata
    return CohortEvaluation(cohort, condition.settings, condition.name, results, metadata=metadata)


class _Regions:
    """What a report keeps of the regions: results under its own settings, else mostly sums."""

    def __init__(self, request: ReportRequest) -> None:
        self._request = request
        self._own, self._detailed = _own_conditions(request)
        self._families = families = _families(request)
        self.work = Experiment(
            request.team_names,
            self._own,
            sums_of=tuple(chain.from_iterable(families.values())),
            held_up_to_px=request.held_up_to_px,
        )
        names = request.cohort.scheme.names
        self._sums = {
            name: PatientSums(request.team_names, family, names)
            for name, family in families.items()
        }
        self._by_own: list[RegionResults] = []
        self._by_lesson: list[RegionResults] = []
        self._both_ways: list[tuple[RegionResult, RegionResult]] = []

    def add(self, region: RegionResults) -> None:
        """Add the results of a region."""
        results = iter(region)
        self._by_own.append(list(islice(results, len(self._own))))
        found = {name: list(islice(results, len(own))) for name, own in self._families.items()}
        for name, sums in self._sums.items():
            sums.add(found[name])
        self._by_lesson.append(
            [[replace(one, findings=()) for one in results] for results in found["lessons"]]
        )
        flat, kept = found["overlaps"]
        self._both_ways += [
            (one, _with_shared_pixels_alone(other))
            for one, other in zip(flat, kept, strict=True)
            if one.counts is not None and other.counts is not None
        ]

    def evaluations(self) -> tuple[CohortEvaluation, CohortEvaluation]:
        """Return the evaluation under the requested settings, and by disentangled scoring."""
        requested, detailed = (
            _evaluation(self._request, self._own[place], [own[place] for own in self._by_own])
            for place in (0, self._own.index(self._detailed))
        )
        return requested, detailed

    def report(
        self,
        evaluation: CohortEvaluation,
        detailed: CohortEvaluation,
        answers: Sequence[Asked],
        about: AboutRegion | None,
    ) -> CohortReport:
        """Return the report, once all regions are there."""
        _, with_overlaps = self._families["overlaps"]
        return CohortReport(
            request=self._request,
            evaluation=_with_words_on_slides(evaluation, detailed),
            detailed=detailed,
            lessons={
                condition.name: _evaluation(
                    self._request, condition, [region[number] for region in self._by_lesson]
                )
                for number, condition in enumerate(self._families["lessons"])
            },
            two_by_two=self._varied("lessons", LESSONS_NEIGHBOURS),
            radii=self._varied("radii"),
            thresholds=self._varied("thresholds"),
            shifts=self._varied("shifts", star(len(SHIFTS))),
            overlaps=CohortEvaluation(
                self._request.cohort,
                with_overlaps.settings,
                with_overlaps.name,
                [kept for _, kept in self._both_ways],
                [replace(flat, findings=()) for flat, _ in self._both_ways],
            ),
            answers=answers,
            about_region=about,
        )

    def _varied(self, family: str, neighbours: Sequence[tuple[int, int]] | None = None) -> Varied:
        return Varied(self._families[family], self._sums[family].robustness(neighbours))


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
