"""The commands for cohorts of nuclei."""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from napari_panoptic.cli.console import (
    cell,
    check_report,
    chosen_teams,
    print_table,
    progress_bar,
    report_date,
    report_findings,
    tables_in,
    words,
)
from napari_panoptic.common.errors import SettingsError, checked_name
from napari_panoptic.common.progress import Progress
from napari_panoptic.common.text import counted, english_list, visible
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.cohorts.pair import pair_cohort
from napari_panoptic.io.files.locking import held_alone
from napari_panoptic.io.tables.covariates import read_covariates
from napari_panoptic.io.tables.metadata import Metadata, metadata_beside, read_metadata
from napari_panoptic.nuclei.cohort_report import (
    ReportRequest,
    cohort_report,
    n_passes,
    remove_kept,
)
from napari_panoptic.nuclei.explain.cohort_objects import CAUSES_OF
from napari_panoptic.nuclei.explain.cohort_slices import SliceRequest, cohort_slices
from napari_panoptic.nuclei.explain.cohort_suspects import (
    SUSPECT_SETTINGS,
    CohortSuspects,
    cohort_suspects,
)
from napari_panoptic.nuclei.explain.slices import SliceSearch
from napari_panoptic.nuclei.explain.suspects import LIKELY_SCORE, SuspectKind
from napari_panoptic.nuclei.explain.versions import MARGIN, check_metric, compare_teams_of
from napari_panoptic.nuclei.regions import conversion
from napari_panoptic.nuclei.regions.cohort_evaluation import CohortEvaluation, InputWatch
from napari_panoptic.nuclei.regions.conditions import Condition
from napari_panoptic.nuclei.regions.experiment import Experiment
from napari_panoptic.nuclei.regions.result_store import PartStore
from napari_panoptic.nuclei.regions.results import ObjectsFile, RegionResult
from napari_panoptic.nuclei.regions.run import RegionDone, run_regions
from napari_panoptic.nuclei.scores.cohort_scores import cohort_scores
from napari_panoptic.nuclei.values.cohort import Cohort, Source
from napari_panoptic.nuclei.values.settings import (
    Correction,
    EvaluationSettings,
    Overlaps,
    Restoration,
    Scoring,
    protocol,
)
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.report.nuclei.scores import (
    NO_SCORES_ADVICE,
    SCORES_NAMES,
    SCORES_RECORD,
    ScoresRecord,
    counts_sentence,
    failure_sentence,
    score_sentences,
    write_scores,
)
from napari_panoptic.report.nuclei.slices import (
    NOTHING,
    SLICES_NAMES,
    SLICES_RECORD,
    SearchRecord,
    search_sentence,
    slice_sentence,
    write_slices,
)
from napari_panoptic.report.nuclei.suspects import (
    SUSPECTS_NAMES,
    SUSPECTS_RECORD,
    suspects_about,
    write_suspects,
)
from napari_panoptic.report.nuclei.tables import (
    TABLE_NAMES,
    input_fingerprints,
    remove_unfinished,
    write_tables,
)
from napari_panoptic.report.writing import RECORD

_STORE, _LOCK = ".parts", ".lock"
_SUREST = 5
"""Number of wrong predictions that are printed."""


def evaluate(options: argparse.Namespace) -> int:
    """Write the tables of a cohort."""
    settings = settings_from(options)
    cohort = cohort_from(options)
    names = _team_names(cohort, options.teams)
    source = source_from(options, cohort, names)
    with tables_in(options.output, TABLE_NAMES, cohort.root):
        evaluation = _evaluate_alone(options, settings, cohort, names, source)
    if evaluation is None:
        return _stopped()
    if not evaluation.evaluated:
        return _nothing(cohort, names)
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
    remove_unfinished(options.output, TABLE_NAMES)
    try:
        with ObjectsFile(options.output) as objects:
            results, flattened = _results(cohort, work, store, objects, options)
            evaluation = watch.noted(
                CohortEvaluation(cohort, settings, options.protocol, results, flattened)
            )
            is_written = bool(evaluation.evaluated)
            report_findings(evaluation.findings, RECORD if is_written else None)
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


def report(options: argparse.Namespace) -> int:
    """Write the report of a cohort."""
    settings = _protocol_from(options)
    if options.overlaps is not None:
        settings = settings.replaced(overlaps=options.overlaps)
    check_report(options.output, options.cohort or options.reference)
    cohort = cohort_from(options)
    names = tuple(_team_names(cohort, options.teams))
    versions = _versions_from(options, cohort)
    metadata = _metadata_from(options, cohort)
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
    with held_alone(lock, "a report", "choose another --output"):
        return _report_alone(options, request, store, versions)


def _versions_from(options: argparse.Namespace, cohort: Cohort) -> tuple[str, str] | None:
    """Return the names of the two versions that a report compares."""
    if options.compare is None:
        if options.margin is not None:
            raise SettingsError("--margin is for --compare OLD NEW; give that as well")
        return None
    if options.margin is not None:
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
    # matplotlib takes long to import: only the report needs it.
    from napari_panoptic.report.nuclei.page import write_report

    if options.resume is False:
        remove_kept(store)
    remove_unfinished(options.output.parent, [options.output.name])
    try:
        with RegionProgress(request.cohort, n_passes()) as progress:
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
            compared = compare_teams_of(
                request.cohort,
                *versions,
                request.detailed,
                source=request.source,
                margin=MARGIN if options.margin is None else options.margin,
                jobs=options.jobs,
                scheduler=options.scheduler,
                held_up_to_px=request.held_up_to_px,
            )
        report_findings(found.findings, "the report")
        review = None
        if options.plan is not None:
            from napari_panoptic.cli.review_plan import reviewed

            review = reviewed(options, request.cohort, request.source)
        date = report_date(is_wanted=options.date)
        write_report(found, options.output, date=date, review=review, versions=compared)
    except KeyboardInterrupt:
        return _stopped()
    remove_kept(store)
    print(visible(f"report written to {options.output}"))
    return 0


def slices(options: argparse.Namespace) -> int:
    """Write what the failures of a team have in common."""
    cohort, team, settings, source = _one_team(options)
    side = _side_from(options.side, options.cause)
    metadata = _metadata_from(options, cohort)
    table = None if options.covariates is None else read_covariates(options.covariates)
    request = SliceRequest(
        cohort, team, settings, source, side, options.cause, options.permutations, options.seed
    )
    about = SearchRecord(
        team, side, options.cause, settings, options.protocol, options.permutations, options.seed
    )
    with tables_in(options.output, SLICES_NAMES, cohort.root), _share_bar() as progress:
        searched = cohort_slices(
            request,
            metadata=metadata,
            table=table,
            held_up_to_px=options.held_up_to,
            progress=progress,
        )
        findings = tuple(dict.fromkeys((*cohort.findings, *searched.objects.findings)))
        is_written = not searched.objects.frame.empty
        if is_written:
            inputs = input_fingerprints(cohort, (team,))
            write_slices(searched.found, about, options.output, findings=findings, inputs=inputs)
    report_findings(findings, SLICES_RECORD if is_written else None)
    if not is_written:
        return _nothing(cohort, (team,))
    _print_slices(searched.found, about)
    print(visible(f"tables written to {options.output}"))
    return 0


def _one_team(
    options: argparse.Namespace,
) -> tuple[Cohort, str, EvaluationSettings, Source | None]:
    """Return the cohort, one team of it, and how its objects are matched."""
    settings = settings_from(options).replaced(
        scoring=Scoring.DISENTANGLED, corrections=frozenset()
    )
    cohort = open_cohort(options.cohort, allow_outside=options.allow_outside)
    team = checked_name("--team", options.team, cohort.checked_team)
    return cohort, team, settings, source_from(options, cohort, (team,))


def _side_from(side: str | None, cause: str | None) -> Side:
    """Return the side to search: the given one, or the first that has the cause."""
    sides = [own for own in Side if cause is None or cause in CAUSES_OF[own]]
    if side is None:
        return sides[0]
    if Side(side) not in sides:
        raise SettingsError(
            f"--cause: objects of the {side} have no cause '{cause}'; expected one of "
            f"{english_list(CAUSES_OF[Side(side)], limit=9)}"
        )
    return Side(side)


def _print_slices(found: SliceSearch, about: SearchRecord) -> None:
    print(visible(search_sentence(found, about.team, about.side, about.cause)))
    for place, own in enumerate(found.slices, start=1):
        print(visible(f"{place}. {slice_sentence(own, about.side, about.cause)}"))
    if not found.slices:
        print(NOTHING)


def scores(options: argparse.Namespace) -> int:
    """Write what the scores of a team are worth."""
    cohort, team, settings, source = _one_team(options)
    with tables_in(options.output, SCORES_NAMES, cohort.root), _share_bar() as progress:
        found = cohort_scores(
            cohort,
            (team,),
            settings,
            source=source,
            held_up_to_px=options.held_up_to,
            progress=progress,
        )[team]
        findings = tuple(dict.fromkeys((*cohort.findings, *found.findings)))
        if found.has_scores:
            write_scores(
                found,
                ScoresRecord(settings, options.protocol),
                options.output,
                findings=findings,
                inputs=input_fingerprints(cohort, (team,)),
            )
    report_findings(findings, SCORES_RECORD if found.has_scores else None)
    if not found.has_scores:
        reason = NO_SCORES_ADVICE if found.predictions else _why_nothing(cohort, (team,))
        print(visible(f"napari-panoptic: {counts_sentence(found)}: {reason}"), file=sys.stderr)
        return 1
    for sentence in score_sentences(found):
        print(visible(sentence))
    print("Wrong predictions, highest score first:")
    for row in found.failures.head(_SUREST).to_dict("records"):
        print(visible(failure_sentence({str(key): value for key, value in row.items()})))
    print(visible(f"tables written to {options.output}"))
    return 0


def suspects(options: argparse.Namespace) -> int:
    """List the suspect annotations of a cohort."""
    chosen = _restoration_from(options)
    if options.ambiguous is not None:
        chosen["ambiguous"] = options.ambiguous
    settings = SUSPECT_SETTINGS.replaced(**chosen)
    cohort = cohort_from(options)
    names = _team_names(cohort, options.teams)
    if len(names) < 2:
        raise SettingsError(
            f"suspects are found where two or more teams agree; found {counted(len(names), 'team')}"
        )
    source = source_from(options, cohort, names)
    with (
        tables_in(options.output, SUSPECTS_NAMES, cohort.root),
        progress_bar(len(cohort.regions), "region") as bar,
    ):
        found = cohort_suspects(cohort, names, settings, source, on_region=bar.update)
        report_findings(found.findings, SUSPECTS_RECORD if found.regions else None)
        if not found.regions:
            return _nothing(cohort, names, "compared")
        about = suspects_about(cohort, names, settings)
        write_suspects(found, options.output, about, input_fingerprints(cohort, names))
    _print_suspects(found, options.output)
    return 0


def _print_suspects(found: CohortSuspects, folder: Path) -> None:
    counts = Counter(suspect.kind for suspect in found.suspects if suspect.score >= LIKELY_SCORE)
    print_table(("suspect", "number"), [(kind, counts[kind]) for kind in SuspectKind])
    print(
        f"number: suspects with a score of at least {LIKELY_SCORE}, of "
        f"{counted(found.objects, 'annotated object')} in {counted(found.regions, 'region')}; "
        "teams can make the same errors"
    )
    print(visible(f"tables written to {folder}"))


def convert(options: argparse.Namespace) -> int:
    """Write a team, or the annotation, in another format."""
    cohort = open_cohort(options.cohort, allow_outside=options.allow_outside)
    team = options.team
    if team is not None:
        team = checked_name("--team", team, cohort.checked_team)
    settings = EvaluationSettings().replaced(**_restoration_from(options))
    source = source_from(options, cohort, () if team is None else (team,))
    form = conversion.form_to_write(options.to)
    work = conversion.Conversion(cohort, team, form, settings, source, options.force)
    report_findings(conversion.convert(work, options.output), None)
    print(visible(f"{options.to} written to {options.output}"))
    return 0


def plan(options: argparse.Namespace) -> int:
    """Write a plan of a review."""
    from napari_panoptic.cli.review_plan import write_plan

    cohort = open_cohort(options.cohort, allow_outside=options.allow_outside)
    names = tuple(checked_name("--team", name, cohort.checked_team) for name in options.team)
    settings = EvaluationSettings().replaced(**_restoration_from(options))
    return write_plan(options, cohort, names, settings, source_from(options, cohort, names))


def estimate(options: argparse.Namespace) -> int:
    """Write what the verdicts of a plan say about a cohort."""
    from napari_panoptic.cli.review_plan import estimate_cohort

    cohort = open_cohort(options.cohort, allow_outside=options.allow_outside)
    settings = EvaluationSettings().replaced(**_restoration_from(options))
    return estimate_cohort(
        options, cohort, settings, source_from(options, cohort, cohort.team_names)
    )


def package(options: argparse.Namespace) -> int:
    """Write the package of a review."""
    from napari_panoptic.cli import review_package
    from napari_panoptic.review.package.choosing import Reading

    check_report(options.output, options.cohort)
    cohort = open_cohort(options.cohort, allow_outside=options.allow_outside)
    settings = EvaluationSettings().replaced(**_restoration_from(options), distances=False)
    reading = Reading(settings, source_from(options, cohort, cohort.team_names))
    return review_package.write(options, cohort, reading)


def cohort_from(options: argparse.Namespace) -> Cohort:
    """Open the cohort, or make one of the two files given in its place."""
    if options.reference is None:
        return open_cohort(options.cohort, allow_outside=options.allow_outside)
    classes = options.classes
    is_table = classes is not None and Path(classes).is_file()
    return pair_cohort(
        options.reference,
        options.prediction,
        image=options.image,
        classes=None if classes is None or is_table else words(classes),
        class_table=Path(classes) if is_table else None,
    )


def _team_names(cohort: Cohort, wanted: str | None) -> tuple[str, ...]:
    usual = [team.name for team in cohort.competing_teams]
    return chosen_teams(wanted, usual, cohort.checked_team)


def _metadata_from(options: argparse.Namespace, cohort: Cohort) -> Metadata | None:
    if options.metadata is None:
        return metadata_beside(cohort.root, cohort.patients)
    return read_metadata(options.metadata, cohort.patients)


def source_from(options: argparse.Namespace, cohort: Cohort, names: Sequence[str]) -> Source | None:
    """Return the requested form of predictions.

    Raises
    ------
    SettingsError
        If these teams have predictions, but none in this form.
    """
    if options.source is None:
        return None
    source = Source(options.source)
    given = [forms for (team, _), forms in cohort.predictions.items() if team in names]
    there = sorted({str(form) for forms in given for form in forms})
    if there and source not in there:
        raise SettingsError(
            f"--source: no prediction of {english_list(names)} has the form '{source}'; there is "
            f"{english_list(there)}"
        )
    return source


def settings_from(options: argparse.Namespace) -> EvaluationSettings:
    """Combine the protocol and the options given beside it.

    Raises
    ------
    SettingsError
        For a value that is not allowed, or options that do not go together.
    """
    settings = _protocol_from(options)
    given = _restoration_from(options) | {
        name: value
        for name in ("matching", "iou_threshold", "ambiguous", "overlaps", "outlines")
        if (value := getattr(options, name)) is not None
    }
    if options.no_distances:
        given["distances"] = False
    return settings.replaced(**given)


def _restoration_from(options: argparse.Namespace) -> dict[str, Any]:
    """Return restoration and radius if given; a radius alone means border-dilated."""
    names = ("restoration", "radius")
    given = {n: value for n in names if (value := getattr(options, n)) is not None}
    if "radius" not in given:
        return given
    grown = {"restoration": Restoration.BORDER_DILATED} | given
    if grown["restoration"] != Restoration.BORDER_DILATED:
        raise SettingsError(
            f"--radius: only --restoration {Restoration.BORDER_DILATED} grows objects; "
            f"leave one of the two out"
        )
    return grown


def _protocol_from(options: argparse.Namespace) -> EvaluationSettings:
    settings = protocol(options.protocol)
    if options.correct is None:
        return settings
    if settings.scoring is not Scoring.CHALLENGE:
        raise SettingsError(
            "--correct corrects errors of the challenge's scoring: "
            "give --protocol monusac-2020-as-run with it"
        )
    # In addition to those of the protocol.
    return settings.replaced(corrections=settings.corrections | frozenset(words(options.correct)))


class RegionProgress:
    """A progress bar, and a note on regions reused from an interrupted run."""

    def __init__(self, cohort: Cohort, n_passes: int = 1) -> None:
        self._n_regions, self._n_passes = len(cohort.regions), n_passes
        self._taken_over = 0
        self._bar = progress_bar(n_passes * self._n_regions, "region")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._bar.close()
        if error is not None or not self._taken_over:
            return
        passes = "" if self._n_passes == 1 else f", each evaluated {self._n_passes} times,"
        print(
            f"napari-panoptic: {self._taken_over} of {self._n_passes * self._n_regions} regions"
            f"{passes} were done by an interrupted run and have not changed since",
            file=sys.stderr,
        )

    def on_result(self, done: RegionDone) -> None:
        """Count a finished region."""
        if not done.is_again:
            self._bar.update()
            self._taken_over += done.is_taken_over
        if done.remark:
            self._bar.write(visible(f"napari-panoptic: {done.remark}"), file=sys.stderr)

    def on_progress(self, region: str, share: float, saying: str) -> None:
        """Show the progress within a large region."""
        self._bar.set_postfix_str(visible(f"{region}: {saying}, {share:.0%}"))


@contextmanager
def _share_bar() -> Iterator[Progress]:
    """Show the share that is done of work on a whole cohort."""
    with progress_bar(100, "%") as bar:

        def report(share: float, doing: str) -> None:
            bar.update(max(0, int(100 * share) - bar.n))
            bar.set_postfix_str(visible(doing))

        yield Progress(report=report)


def _stopped() -> int:
    print("napari-panoptic: stopped; run the same command again to resume", file=sys.stderr)
    return 130


def _nothing(cohort: Cohort, names: Sequence[str], done: str = "evaluated") -> int:
    where = visible(str(cohort.root))
    why = _why_nothing(cohort, names)
    print(f"napari-panoptic: nothing could be {done} in {where}: {why}", file=sys.stderr)
    return 1


def _why_nothing(cohort: Cohort, names: Sequence[str]) -> str:
    if not cohort.regions:
        return "it has no regions"
    if not names:
        return f"it has no predictions; {cohort.predictions_expected}"
    if all(region.reference is None for region in cohort.regions):
        return f"no region has an annotation; {cohort.annotation_expected}"
    return "no region has both a readable annotation and a readable prediction"


def _print_scores(evaluation: CohortEvaluation, folder: Path) -> None:
    scores = {team: evaluation.score(team) for team in evaluation.team_names}
    # The best first; teams without a score last.
    ordered = sorted(scores, key=lambda team: (math.isnan(scores[team]), -scores[team]))
    print_table(("team", "score"), [(team, scores[team]) for team in ordered])
    regions = {(result.patient, result.region) for result in evaluation.evaluated}
    per_region = (
        evaluation.settings.scoring is Scoring.CHALLENGE
        and Correction.PER_PATIENT not in evaluation.settings.corrections
    )
    n_patients = len({patient for patient, _ in regions})
    unit = "regions" if per_region else "patients"
    evaluated = f"{counted(len(regions), 'region')} of {counted(n_patients, 'patient')}"
    print(f"score: PQ, mean over {unit} ({evaluated})")
    if evaluation.settings.overlaps is Overlaps.KEEP:
        for team in scores:
            flat = cell(evaluation.without_overlaps.score(team))
            print(
                f"overlaps kept: {evaluation.overlapping_objects(team)} predicted objects of "
                f"{visible(team)} share pixels; if the last one has them, the score is {flat}"
            )
    print(visible(f"tables written to {folder}"))
