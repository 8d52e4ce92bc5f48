"""The commands ``evaluate`` and ``report`` for cohorts of nuclei."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from napari_panoptic.cli.console import (
    RegionProgress,
    cell,
    check_report,
    print_table,
    report_date,
    report_findings,
    report_nothing,
    report_stopped,
    tables_in,
)
from napari_panoptic.cli.inputs import (
    cohort_from,
    metadata_from,
    protocol_from,
    settings_from,
    source_from,
    team_names_from,
)
from napari_panoptic.cli.printing import say
from napari_panoptic.common.errors import SettingsError, checked_name
from napari_panoptic.common.text import counted
from napari_panoptic.io.files.locking import exclusive_lock
from napari_panoptic.io.tables.metadata import metadata_beside
from napari_panoptic.nuclei.regions.cohort_evaluation import CohortEvaluation, InputWatch
from napari_panoptic.nuclei.regions.conditions import Condition
from napari_panoptic.nuclei.regions.experiment import Experiment
from napari_panoptic.nuclei.regions.result_store import PartStore
from napari_panoptic.nuclei.regions.results import ObjectsFile, RegionResult
from napari_panoptic.nuclei.regions.run import run_regions
from napari_panoptic.report.nuclei.tables import TABLE_NAMES, remove_unfinished, write_tables
from napari_panoptic.report.writing import RECORD
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.conventions import MeanOver, figure_words
from napari_panoptic.values.settings import EvaluationSettings, Overlaps

if TYPE_CHECKING:
    from napari_panoptic.report.nuclei.cohort_report import ReportRequest

_STORE, _LOCK = ".parts", ".lock"


def evaluate(options: argparse.Namespace) -> int:
    """Write the tables of a cohort."""
    settings = settings_from(options)
    cohort = cohort_from(options)
    names = team_names_from(cohort, options.teams)
    source = source_from(options, cohort, names)
    with tables_in(options.output, TABLE_NAMES):
        evaluation = _evaluate_alone(options, settings, cohort, names, source)
    if evaluation is None:
        return report_stopped()
    if not evaluation.evaluated:
        return report_nothing(cohort, names)
    _print_scores(evaluation, options.output)
    return 0


def _evaluate_alone(
    options: argparse.Namespace,
    settings: EvaluationSettings,
    cohort: Cohort,
    names: Sequence[str],
    source: Source | None,
) -> CohortEvaluation | None:
    """Evaluate into a folder that is locked; return None if it was stopped."""
    conditions = [Condition(options.protocol, settings, source)]
    if settings.overlaps is Overlaps.KEEP:
        # Their effect is printed beside the figures.
        other = settings.replaced(overlaps=Overlaps.FLATTEN, distances=False)
        conditions.append(Condition(str(Overlaps.FLATTEN), other, source))
    work = Experiment(tuple(names), tuple(conditions), held_up_to_px=options.held_up_to)
    store = PartStore(options.output / _STORE)
    if options.resume is False:
        store.remove()
    watch = InputWatch(cohort, names)
    needs_tissues = settings.score.convention.mean_over in (MeanOver.TISSUES, MeanOver.FOLDS)
    metadata = metadata_beside(cohort.root, cohort.patients) if needs_tissues else None
    remove_unfinished(options.output, TABLE_NAMES)
    try:
        with ObjectsFile(options.output) as objects:
            results, flattened = _results(cohort, work, store, objects, options)
            evaluation = watch.noted(
                CohortEvaluation(cohort, settings, options.protocol, results, flattened, metadata)
            )
            is_written = bool(evaluation.evaluated)
            are_files = options.reference is not None
            listed_in = RECORD if is_written else None
            report_findings(evaluation.findings, listed_in, are_files=are_files)
            if is_written:
                write_tables(evaluation, options.output, objects)
    except KeyboardInterrupt:
        return None
    store.remove()
    return evaluation


def _results(
    cohort: Cohort,
    work: Experiment,
    store: PartStore,
    objects: ObjectsFile,
    options: argparse.Namespace,
) -> tuple[list[RegionResult], list[RegionResult]]:
    """Evaluate all regions; write objects to their file immediately, and keep only sums.

    Returns
    -------
    results, flattened
        Of the first condition, and of the second, if there is one.
    """
    results: list[RegionResult] = []
    flattened: list[RegionResult] = []
    with RegionProgress(cohort) as progress:
        for found, *others in run_regions(
            cohort,
            work,
            jobs=options.jobs,
            scheduler=options.scheduler,
            store=store.folder,
            on_result=progress.on_result,
            on_progress=progress.on_progress,
        ):
            for result in found:
                objects.add(result)
                results.append(result.without_objects())
            flattened += [result.without_objects() for other in others for result in other]
    return results, flattened


def _print_scores(evaluation: CohortEvaluation, folder: Path) -> None:
    scores = {team: evaluation.score(team) for team in evaluation.team_names}
    # The best first; teams without a score last.
    ordered = sorted(scores, key=lambda team: (math.isnan(scores[team]), -scores[team]))
    print_table(("team", "score"), [(team, scores[team]) for team in ordered])
    regions = {(result.patient, result.region) for result in evaluation.evaluated}
    score = evaluation.settings.score
    n_patients = len({patient for patient, _ in regions})
    mean = f"mean over {score.convention.mean_over or 'the whole set, pooled'}"
    evaluated = f"{counted(len(regions), 'region')} of {counted(n_patients, 'patient')}"
    say(f"score: {figure_words(score.name)}, {mean} ({evaluated})")
    if evaluation.settings.overlaps is Overlaps.KEEP:
        for team in scores:
            flat = cell(evaluation.without_overlaps.score(team))
            say(
                f"overlaps kept: {evaluation.overlapping_objects(team)} predicted objects of "
                f"{team} share pixels; if the last one has them, the score is {flat}"
            )
    say(f"tables written to {folder}")


def report(options: argparse.Namespace) -> int:
    """Write the report of a cohort."""
    from napari_panoptic.report.nuclei.cohort_report import ReportRequest

    settings = protocol_from(options)
    if options.overlaps is not None:
        settings = settings.replaced(overlaps=options.overlaps)
    check_report(options.output, options.cohort or options.reference)
    cohort = cohort_from(options)
    names = tuple(team_names_from(cohort, options.teams))
    versions = _versions_from(options, cohort)
    metadata = metadata_from(options, cohort)
    if (options.plan is None) != (options.verdicts is None):
        raise SettingsError("--plan and --verdicts go together: give both or neither")
    request = ReportRequest(
        cohort,
        settings,
        options.protocol,
        names,
        source_from(options, cohort, names),
        metadata,
        options.group,
        options.held_up_to,
    )
    store = options.output.with_name(f".{options.output.name}{_STORE}")
    lock = options.output.with_name(f".{options.output.name}{_LOCK}")
    with exclusive_lock(lock, "a report", "choose another --output"):
        return _report_alone(options, request, store, versions)


def _versions_from(options: argparse.Namespace, cohort: Cohort) -> tuple[str, str] | None:
    """Return the names of the two versions that a report compares."""
    if options.compare is None:
        if options.margin is not None:
            raise SettingsError("--margin is for --compare OLD NEW; give that as well")
        return None
    if options.margin is not None:
        from napari_panoptic.questions.engines.versions import check_metric

        check_metric("pq", options.margin)
    old, new = (checked_name("--compare", name, cohort.checked_team) for name in options.compare)
    return old, new


def _report_alone(
    options: argparse.Namespace,
    request: ReportRequest,
    store: Path,
    versions: tuple[str, str] | None,
) -> int:
    """Write a report whose file is locked."""
    # They take long to import, and evaluate does not need them.
    from napari_panoptic.questions.answer import UnansweredError
    from napari_panoptic.questions.compare import Compare
    from napari_panoptic.questions.engines.versions import MARGIN
    from napari_panoptic.report.nuclei.cohort_report import cohort_report, remove_kept
    from napari_panoptic.report.nuclei.page import write_report

    if options.resume is False:
        remove_kept(store)
    remove_unfinished(options.output.parent, [options.output.name])
    try:
        with RegionProgress(request.cohort) as progress:
            found = cohort_report(
                request,
                jobs=options.jobs,
                scheduler=options.scheduler,
                store=store,
                on_result=progress.on_result,
            )
        if found is None:
            return 1
        compared = None
        if versions is not None:
            old, new = versions
            compare = Compare(
                old=old,
                new=new,
                settings=request.detailed,
                source=request.source,
                margin=MARGIN if options.margin is None else options.margin,
                scheduler=options.scheduler,
                held_up_to_px=request.held_up_to_px,
            )
            compared = compare.answer(request.cohort, jobs=options.jobs)
        report_findings(found.findings, "the report", are_files=options.reference is not None)
        review = None
        if options.plan is not None:
            from napari_panoptic.cli.estimate import reviewed

            review = reviewed(options, request.cohort, request.source)
        date = report_date(is_wanted=options.date)
        write_report(found, options.output, date=date, review=review, versions=compared)
    except UnansweredError as error:
        report_findings(error.findings, None, are_files=options.reference is not None)
        raise
    except KeyboardInterrupt:
        return report_stopped()
    remove_kept(store)
    say(f"report written to {options.output}")
    return 0
