"""The slices of a team's failures over a cohort: reading, searching, failures of a slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.io.tables.metadata import Metadata
from napari_panoptic.nuclei.regions.reading import HELD_UP_TO_PX
from napari_panoptic.questions.engines.cohort_failures import FailureName
from napari_panoptic.questions.engines.cohort_objects import (
    CohortObjects,
    cohort_objects,
    common_slices,
)
from napari_panoptic.questions.engines.slices import Slice, SliceSearch
from napari_panoptic.statistics.max_t import PERMUTATIONS, SEED
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side

if TYPE_CHECKING:
    import pandas as pd

_READING = 0.5
"""Share of the progress bar for reading and evaluating the cohort."""


@dataclass(frozen=True)
class SliceRequest:
    """The failures to search, and how objects are matched."""

    #: The cohort and the name of the team.
    cohort: Cohort
    team: str
    #: How objects are matched, and which format of the predictions is read.
    settings: EvaluationSettings
    source: Source | None = None
    #: The failures; see `napari_panoptic.questions.engines.cohort_objects.is_failure`.
    side: Side = Side.REFERENCE
    cause: str | None = None
    #: Settings of the permutation test.
    permutations: int = PERMUTATIONS
    seed: int = SEED


@dataclass(frozen=True, eq=False)
class CohortSlices:
    """The slices of a team's failures, and the objects that were searched."""

    #: The search that was made.
    request: SliceRequest
    #: All objects of the team, of both sides; none if nothing could be evaluated.
    objects: CohortObjects
    #: The slices; their rows are those of ``objects.of_side(request.side)``.
    found: SliceSearch

    def failures_of(self, own: Slice) -> list[FailureName]:
        """Return the objects of a slice that fail."""
        rows = own.rows[self.found.is_failure[own.rows]]
        frame: pd.DataFrame = self.objects.of_side(self.request.side).iloc[rows]
        return [
            FailureName(self.request.team, str(region), self.request.side, int(id_))
            for region, id_ in zip(frame["region"], frame["id"], strict=True)
        ]


def cohort_slices(
    request: SliceRequest,
    *,
    objects: CohortObjects | None = None,
    metadata: Metadata | None = None,
    table: pd.DataFrame | None = None,
    held_up_to_px: int = HELD_UP_TO_PX,
    jobs: int | None = 1,
    progress: Progress = UNWATCHED,
) -> CohortSlices:
    """Evaluate a team, and search for slices in which its objects fail often.

    Parameters
    ----------
    request
        The search to make.
    objects
        The objects of the team under the same settings, from an earlier search. None evaluates the
        cohort with `metadata`, `table` and `held_up_to_px`.
    metadata, table, held_up_to_px, jobs
        As in `napari_panoptic.questions.engines.cohort_objects.cohort_objects`.
    progress
        Receives the progress, and is checked for cancellation.

    Raises
    ------
    PanopticError
        If the side does not have the cause, or a covariate exists twice.
    StoppedError
        If cancelled.
    """
    if objects is None:
        objects = cohort_objects(
            request.cohort,
            (request.team,),
            request.settings,
            source=request.source,
            metadata=metadata,
            table=table,
            held_up_to_px=held_up_to_px,
            jobs=jobs,
            progress=progress.part(0, _READING),
        )[request.team]
    found = common_slices(
        objects,
        request.side,
        request.cause,
        permutations=request.permutations,
        seed=request.seed,
        progress=progress.part(_READING, 1),
    )
    return CohortSlices(request, objects, found)
