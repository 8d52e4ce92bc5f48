"""Loading and evaluating cases of several raters in other threads, the newest request first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.raters.evaluate import (
    CaseImages,
    LoadedMap,
    LoadedReference,
    RatedResult,
    evaluate_structure,
    load_images,
    load_map,
    load_reference,
)
from napari_panoptic.raters.levels import MapComparison, RaterAgreement, agreement, compare
from napari_panoptic.raters.objects import ObjectAgreement, object_agreement
from napari_panoptic.raters.slice_outlines import CasePicture, contrast
from napari_panoptic.values.raters import RatedCase, RatedCohort
from napari_panoptic.viewer.jobs.jobs import FORESEEN, Job, Latest, Stream, show_failure

PICTURE_FIRST_VOXELS = 1 << 21
"""Of larger cases the picture is shown before there are figures, which take as long again."""


@dataclass(frozen=True)
class WantedCase:
    """The user's choice; no team if there is none."""

    case: str
    structure: str
    team: str | None


@dataclass(frozen=True, eq=False)
class CaseView:
    """A case as read and evaluated for the window."""

    #: The request.
    wanted: WantedCase
    #: The raters' masks.
    loaded: LoadedReference
    #: The team's map; None without a team.
    prediction: LoadedMap | None
    #: Its figures; None without a team, and as long as they are being computed.
    comparison: MapComparison | None
    #: How far the raters agree; None as long as that is being computed, and without objects.
    raters: RaterAgreement | None
    objects: ObjectAgreement | None
    #: The chosen case and team.
    images: CaseImages
    #: What layers show.
    picture: CasePicture
    #: Problems found.
    findings: tuple[Finding, ...]


def load_view(
    cohort: RatedCohort, wanted: WantedCase, previous: CaseView | None
) -> Iterator[CaseView]:
    """Load and evaluate the wanted case; if it is the same, only another team's map is read.

    Yields
    ------
    CaseView
        The picture of a large case, without figures; then all of it.

    Raises
    ------
    PanopticError
        Where the raters' masks cannot be read.
    """
    if previous is not None and (previous.wanted.case, previous.wanted.structure) == (
        wanted.case,
        wanted.structure,
    ):
        loaded, raters, objects = previous.loaded, previous.raters, previous.objects
        images = previous.images
    else:
        loaded = load_reference(cohort, cohort.region(wanted.case), wanted.structure)
        raters = objects = None
        images = load_images(loaded)
    prediction = None
    values: NDArray[np.floating] = np.broadcast_to(np.float32(0), loaded.reference.shape)
    if wanted.team is not None:
        prediction = load_map(cohort, wanted.team, loaded)
        values = prediction.values
    findings = (*loaded.findings, *images.findings, *(prediction.findings if prediction else ()))
    view = CaseView(
        wanted,
        loaded,
        prediction,
        None,
        None,
        None,
        images,
        _picture(cohort, loaded, images, values),
        tuple(dict.fromkeys(findings)),
    )
    if values.size > PICTURE_FIRST_VOXELS:
        yield view
    if raters is None:
        raters = agreement(loaded.reference, cohort.settings)
        objects = None if loaded.objects is None else object_agreement(loaded.objects)
    has_team = wanted.team is not None
    comparison = compare(loaded.reference, values, cohort.settings) if has_team else None
    yield replace(view, comparison=comparison, raters=raters, objects=objects)


def load_picture(cohort: RatedCohort, case: RatedCase, structure: str) -> CasePicture:
    """Load what layers show of a case without a team."""
    loaded = load_reference(cohort, case, structure)
    nothing: NDArray[np.floating] = np.broadcast_to(np.float32(0), loaded.reference.shape)
    return _picture(cohort, loaded, load_images(loaded), nothing)


def _picture(
    cohort: RatedCohort,
    loaded: LoadedReference,
    images: CaseImages,
    values: NDArray[np.floating],
) -> CasePicture:
    reference = loaded.reference
    ndim = len(reference.shape)
    known_mm = loaded.spacing_mm or images.spacing_mm
    spacing = known_mm or (1.0,) * ndim
    is_few = len(reference.raters) < 256  # bytes are sent to the display sooner
    votes = reference.votes.astype(np.uint8) if is_few else reference.votes
    volumes = {name: as_volume(image, ndim) for name, image in images.images.items()}
    return CasePicture(
        pictures=volumes,
        contrasts={name: contrast(image) for name, image in volumes.items() if image.ndim == 3},
        masks=reference.masks if ndim == 3 else reference.masks[:, np.newaxis],
        raters=tuple(cohort.raters.index(rater) for rater in reference.raters),
        votes=as_volume(votes, ndim),
        probabilities=as_volume(values, ndim),
        spacing=(spacing[0] if ndim == 3 else 1.0, spacing[-2], spacing[-1]),
        is_mm=known_mm is not None,
        start=middle_slice(as_volume(votes, ndim)),
    )


def middle_slice(votes: NDArray[np.unsignedinteger]) -> int:
    """Return the middle one of the slices that a rater marked; of all if no rater did."""
    marked = np.flatnonzero([plane.any() for plane in votes])
    return int(marked[len(marked) // 2]) if marked.size else len(votes) // 2


def as_volume(image: NDArray[Any], ndim: int) -> NDArray[Any]:
    """Make a volume of one slice of an image of two spatial dimensions."""
    return image[np.newaxis] if ndim == 2 else image


class CaseLoader:
    """Answers requests one at a time; of those that come meanwhile only the newest is kept.

    Parameters
    ----------
    cohort
        Where from.
    on_view
        Receives, on the main thread, the case to show.
    on_error
        Told why something cannot be.
    """

    def __init__(
        self,
        cohort: RatedCohort,
        on_view: Callable[[CaseView], None],
        on_error: Callable[[WantedCase, str], None],
    ) -> None:
        self._cohort, self._on_error = cohort, on_error
        self._latest: Latest[CaseView] = Latest(on_view, failed=self._on_failed)
        self._wanted: WantedCase | None = None
        self._known: CaseView | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is being loaded."""
        return self._latest.is_busy

    def load(self, wanted: WantedCase) -> None:
        """Load something, at once or after the running load."""
        if not (self.is_busy and wanted == self._wanted):
            self._wanted = wanted
            self._latest.start_steps(partial(self._load, wanted))

    def close(self) -> None:
        """Cancel running jobs."""
        self._latest.close()

    def _load(self, wanted: WantedCase, job: Job[CaseView]) -> Iterator[CaseView]:
        """Load in the other thread; files read for an outdated case serve the next one."""
        for view in load_view(self._cohort, wanted, self._known):
            self._known = view
            if not job.is_wanted:
                return
            yield view

    def _on_failed(self, error: PanopticError) -> None:
        if self._wanted is not None:
            self._on_error(self._wanted, str(error))


class CaseEvaluator:
    """Evaluates all cases in the background, a structure at a time.

    Parameters
    ----------
    cohort
        What.
    on_result
        Called, on the main thread, for each structure of each case; with None if it
        cannot be evaluated.
    """

    def __init__(
        self, cohort: RatedCohort, on_result: Callable[[str, str, RatedResult | None], None]
    ) -> None:
        self._cohort, self._on_result = cohort, on_result
        self._stream: Stream[_Scored] = Stream(self._take, failed=self._on_failed)
        self._done: set[tuple[str, str]] = set()
        self._has_begun = False

    @property
    def is_done(self) -> bool:
        """Whether everything was evaluated."""
        return not self._left()

    def start_once(self, first: str) -> None:
        """Evaluate all, a structure before the others, unless that has begun."""
        if not self._has_begun:
            self.start(first)

    def start(self, first: str) -> None:
        """Evaluate the rest, a structure before the others."""
        self._has_begun = True
        if left := self._left():
            left.sort(key=lambda pair: pair[1] != first)
            self._stream.start(partial(_scores, self._cohort, left))

    def close(self) -> None:
        """Stop."""
        self._stream.close()

    def _left(self) -> list[tuple[str, str]]:
        pairs = [(case.name, name) for case in self._cohort.cases for name in case.masks]
        return [pair for pair in pairs if pair not in self._done]

    def _take(self, found: _Scored) -> None:
        self._done.add(found[:2])
        self._on_result(*found)

    def _on_failed(self, error: PanopticError) -> None:
        """Count the rest as not evaluated: it would fail again."""
        show_failure(error)
        for case, structure in self._left():
            self._take((case, structure, None))


_Scored = tuple[str, str, RatedResult | None]


def _scores(
    cohort: RatedCohort, pairs: Sequence[tuple[str, str]], _job: Job[_Scored]
) -> Iterator[_Scored]:
    for case, structure in pairs:
        try:
            loaded = load_reference(cohort, cohort.region(case), structure)
            result = evaluate_structure(cohort, loaded, cohort.teams)
        except FORESEEN:
            result = None
        yield case, structure, result
