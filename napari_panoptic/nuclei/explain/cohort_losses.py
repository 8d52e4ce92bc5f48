"""What failure groups cost a team over a whole cohort, region by region."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.nuclei.explain.failure_groups import CohortLoss, lost_over
from napari_panoptic.nuclei.reading import load_prediction, load_reference
from napari_panoptic.nuclei.values.cohort import Cohort, Source
from napari_panoptic.nuclei.values.labels import LabelPair
from napari_panoptic.nuclei.values.settings import EvaluationSettings


@dataclass(frozen=True, eq=False)
class LossesSoFar:
    """What is known after some regions.

    Parameters
    ----------
    done, total
        Regions looked at, and in all.
    left_out
        Regions among them that could not be evaluated.
    losses
        One per kind, then all kinds together; empty if nothing was
        evaluated yet.
    """

    done: int
    total: int
    left_out: int = 0
    losses: tuple[CohortLoss, ...] = ()


def cohort_losses(
    cohort: Cohort, team: str, settings: EvaluationSettings, source: Source | None
) -> Iterator[LossesSoFar]:
    """Sum what each kind of group costs a team, region by region, from the files.

    Parameters
    ----------
    cohort, settings, source
        What to evaluate, and how.
    team
        Whose predictions.

    Yields
    ------
    LossesSoFar
        After each region.
    """
    quick = settings.replaced(distances=False)
    known: tuple[CohortLoss, ...] = ()
    left_out = 0
    total = len(cohort.regions)
    for done, region in enumerate(cohort.regions, start=1):
        pair = _pair(cohort, region.name, team, quick, source)
        if pair is None:
            left_out += 1
        else:
            known = _added(known, lost_over([evaluate(pair, quick)]))
        yield LossesSoFar(done, total, left_out, known)


def _pair(
    cohort: Cohort, name: str, team: str, settings: EvaluationSettings, source: Source | None
) -> LabelPair | None:
    region = cohort.region(name)
    try:
        reference = load_reference(cohort, region, settings)
    except PanopticError:  # the navigator tells about it
        return None
    masks, _ = load_prediction(cohort, region, team, reference.shape, settings, source)
    if masks is None or reference.masks is None:
        return None
    own = reference.masks
    return LabelPair(own.labels, masks.labels, own.ambiguous, reference.mpp)


def _added(one: tuple[CohortLoss, ...], other: tuple[CohortLoss, ...]) -> tuple[CohortLoss, ...]:
    if not one:
        return other
    return tuple(
        CohortLoss(a.kind, a.groups + b.groups, a.before + b.before, a.after + b.after)
        for a, b in zip(one, other, strict=True)
    )
