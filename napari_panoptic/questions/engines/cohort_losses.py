"""What failure groups cost a team over a whole cohort, region by region."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from napari_panoptic.explain.failure_groups import CohortLoss, lost_over
from napari_panoptic.nuclei.regions.run import walk_teams
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings


@dataclass(frozen=True, eq=False)
class LossesSoFar:
    """The losses over the regions evaluated so far."""

    #: Number of regions processed so far, and of all regions.
    done: int
    total: int
    #: Regions among them that could not be evaluated.
    left_out: int = 0
    #: One per kind, then all kinds together; empty if nothing was evaluated yet.
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
        The team of the predictions.

    Yields
    ------
    LossesSoFar
        After each region.
    """
    quick = settings.replaced(distances=False)
    known: tuple[CohortLoss, ...] = ()
    left_out = 0
    total = len(cohort.regions)
    regions = walk_teams(
        cohort, (team,), quick, source, lambda found, *_: lost_over([found]), held_up_to_px=None
    )
    for done, region in enumerate(regions, start=1):
        if region.result is None:
            left_out += 1  # the navigator reports the reason
        else:
            known = _added(known, region.result)
        yield LossesSoFar(done, total, left_out, known)


def _added(one: tuple[CohortLoss, ...], other: tuple[CohortLoss, ...]) -> tuple[CohortLoss, ...]:
    if not one:
        return other
    return tuple(
        CohortLoss(a.kind, a.groups + b.groups, a.before + b.before, a.after + b.after)
        for a, b in zip(one, other, strict=True)
    )
