"""Reads given objects of a cohort, failing or not, by region, team, side and id."""

from __future__ import annotations

from collections.abc import Iterable

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.nuclei.explain.cohort_failures import (
    Block,
    FailureName,
    FailureSet,
    objects_with_ids,
)
from napari_panoptic.nuclei.regions.reading import HELD_UP_TO_PX
from napari_panoptic.nuclei.regions.region import held_regions
from napari_panoptic.nuclei.values.cohort import Cohort, Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings


def chosen_objects(
    cohort: Cohort,
    names: Iterable[FailureName],
    settings: EvaluationSettings,
    source: Source | None = None,
    *,
    held_up_to_px: int = HELD_UP_TO_PX,
    progress: Progress = UNWATCHED,
) -> tuple[Block, ...]:
    """Evaluate the regions of given objects, and return these objects as columns.

    Objects that do not exist under the settings are left out, and so are regions that cannot be
    read.

    Parameters
    ----------
    cohort, settings, source
        The cohort of the objects, and how to evaluate it; distances are not measured.
    names
        The objects.
    held_up_to_px
        Number of pixels that a region may have.
    progress
        Receives the progress, and is checked for cancellation.

    Raises
    ------
    StoppedError
        If cancelled.
    """
    ids = FailureSet("", frozenset(names)).ids
    settings = settings.replaced(distances=False)
    wanted = {region for _, region in ids}
    regions = [region for region in cohort.regions if region.name in wanted]
    found = []
    # Regions that cannot be read are reported when they are shown.
    for region, held in held_regions(
        cohort,
        settings,
        regions=regions,
        held_up_to_px=held_up_to_px,
        progress=progress,
    ):
        for team in cohort.team_names:
            if (team, region.name) not in ids:
                continue
            evaluation = held.evaluate(team, settings, source).evaluation
            if evaluation is not None:
                own = objects_with_ids(evaluation, ids[team, region.name])
                found.append(Block(team, region.patient, region.name, own))
            held.forget(team)
    return tuple(found)
