"""Every team in every region evaluated by itself: slow and obvious, to compare with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from napari_panoptic.common.errors import LabelError, PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.nuclei.class_masks import ClassEvaluations, evaluate_classes
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.regions.conditions import Robustness, robustness
from napari_panoptic.nuclei.regions.experiment import Experiment
from napari_panoptic.nuclei.regions.reading import (
    ReferenceMasks,
    load_prediction,
    load_reference,
)
from napari_panoptic.nuclei.regions.results import RegionResult, unreadable_region, with_figures
from napari_panoptic.values.cohort import Cohort, Region, Source
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.settings import EvaluationSettings


def evaluate_alone(
    cohort: Cohort,
    region: Region,
    team_names: Sequence[str],
    settings: EvaluationSettings,
    source: Source | None,
) -> list[RegionResult]:
    """Evaluate each team on one region, reading and counting everything for each of them."""
    try:
        reference = load_reference(cohort, region, settings)
    except (PanopticError, OSError) as error:
        return unreadable_region(region, team_names, error)
    return [
        _evaluate_team(cohort, region, reference, team, settings, source) for team in team_names
    ]


def _evaluate_team(
    cohort: Cohort,
    region: Region,
    reference: ReferenceMasks,
    team: str,
    settings: EvaluationSettings,
    source: Source | None,
) -> RegionResult:
    masks, found = load_prediction(cohort, region, team, reference.shape, settings, source)
    result = RegionResult(
        team, region.patient, region.name, None, None, findings=(*reference.findings, *found)
    )
    if masks is None or reference.masks is None:
        return result
    pair = LabelPair(reference.masks.labels, masks.labels, reference.masks.ambiguous, reference.mpp)
    if settings.takes_class_masks:
        return with_figures(result, evaluate_classes(pair, settings), settings)
    try:
        evaluation = evaluate(pair, settings)
    except LabelError as error:
        problem = Finding.unreadable(error, region=region.name, team=team)
        return replace(result, findings=(*result.findings, problem))
    shared = shared_pixel_findings(evaluation, region.name, team)
    result = replace(result, findings=(*result.findings, *shared))
    return with_figures(result, evaluation, settings)


def shared_pixel_findings(
    evaluation: Evaluation | ClassEvaluations, region: str, team: str
) -> tuple[Finding, ...]:
    """Describe which objects share pixels with others of their side, where overlaps are kept."""
    if not isinstance(evaluation, Evaluation) or not evaluation.pair.has_planes:
        return ()
    findings = []
    for labels, name, owner in (
        (evaluation.pair.reference, "annotated", None),
        (evaluation.pair.prediction, "predicted", team),
    ):
        ids = tuple(labels.ids[labels.overlapping_rows()].tolist())
        if ids:
            message = (
                f"{len(ids)} of {len(labels)} {name} objects share pixels with others of their "
                f"side, and keep them"
            )
            findings.append(
                Finding(
                    FindingKind.OVERLAPPING,
                    message,
                    region=region,
                    team=owner,
                    count=len(ids),
                    object_ids=ids,
                )
            )
    return tuple(findings)


def robustness_of_results(
    regions: Iterable[Sequence[Sequence[RegionResult]]],
    experiment: Experiment,
    class_names: tuple[str, ...],
    *,
    neighbours: Sequence[tuple[int, int]] | None = None,
) -> Robustness:
    """Compute the figures and ranks of all conditions from the results of all regions."""
    counts: dict[str, list[list[tuple[str, Counts]]]] = {
        team: [[] for _ in experiment.conditions] for team in experiment.team_names
    }
    for by_condition in regions:
        for number, results in enumerate(by_condition):
            for result in results:
                if result.counts is not None:
                    counts[result.team][number].append((result.patient, result.counts))
    names = tuple(condition.name for condition in experiment.conditions)
    return robustness(counts, names, class_names, neighbours=neighbours)
