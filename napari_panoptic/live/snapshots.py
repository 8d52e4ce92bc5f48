"""Everything there is to show of one region: read, restored and evaluated.

Loading may run in any thread. What new settings do not change is taken from an
earlier snapshot of the region, not computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import Progress, Report, StoppedError, always
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.regions.doubts import (
    little_overlap,
)
from napari_panoptic.nuclei.regions.reading import (
    ImageSize,
    read_picture,
    region_size,
)
from napari_panoptic.nuclei.regions.region import Evaluated, HeldRegion, WindowedRegion
from napari_panoptic.values.cohort import Cohort, Placement, Region, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.reading import HELD_UP_TO_PX
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import TiledPair

AT_A_TIME = 2
"""How many teams are restored and evaluated side by side: kernels release the GIL."""


@dataclass(frozen=True, eq=False)
class RegionSnapshot:
    """Everything there is to show of one region under one set of settings."""

    #: The region.
    region: Region
    #: Height and width in px.
    shape: tuple[int, int]
    #: Micrometres per pixel, or None.
    mpp: float | None
    #: The settings, and the format of the predictions that was requested.
    settings: EvaluationSettings
    source: Source | None = None
    #: The pixels, or None if there are none to show.
    image: SlideImage | None = None
    #: The annotated objects, or None if there is no usable annotation. With the pixels that they
    #: share if the settings keep overlaps, and so below.
    reference: LabelImage | None = None
    #: bool image (y, x) of the excluded area, or None.
    ambiguous: NDArray[np.bool_] | None = None
    #: Team -> its objects; teams without a usable prediction are absent.
    predictions: Mapping[str, LabelImage] = field(default_factory=dict)
    #: Team -> its evaluation; empty without a reference. A region that is read in windows has no
    #: reference and prediction above.
    results: Mapping[str, Evaluation | Evaluation[TiledPair]] = field(default_factory=dict)
    #: Missing, vanished, overlapping or unreadable parts of this region.
    findings: tuple[Finding, ...] = ()
    #: Teams that are still being read or evaluated: absent above, for now.
    pending: frozenset[str] = frozenset()
    #: Teams of a region that is read in windows that were evaluated, or cannot be.
    tried: frozenset[str] = frozenset()
    #: Keeps what was read and counted, so that it need not be read again.
    work: HeldRegion | WindowedRegion | None = None
    #: Where its pixels lie in a viewer; None to place them by micrometres per pixel.
    placement: Placement | None = None

    @property
    def is_slide(self) -> bool:
        """Whether the region is read in windows."""
        return isinstance(self.work, WindowedRegion)

    @property
    def keeps_overlaps(self) -> bool:
        """Whether there are objects that share pixels, and keep them."""
        sides = (self.reference, *self.predictions.values())
        return any(labels is not None and labels.planes for labels in sides)

    def result(self, team: str | None) -> Evaluation | Evaluation[TiledPair] | None:
        """Return a team's evaluation, of a held region or of a slide; None if there is none."""
        return self.results.get(team or "")

    @property
    def evaluations(self) -> Mapping[str, Evaluation]:
        """Team -> its evaluation, of a held region; empty for a slide."""
        return {} if self.is_slide else cast("Mapping[str, Evaluation]", self.results)

    def slide(self, team: str | None) -> Evaluation[TiledPair] | None:
        """Return a team's evaluation of a slide; None if there is none."""
        found = self.result(team) if self.is_slide else None
        return cast("Evaluation[TiledPair] | None", found)

    def is_whole_for(self, settings: EvaluationSettings, source: Source | None) -> bool:
        """Return whether all teams are there, under these settings and from this source."""
        return not self.pending and self.settings == settings and self.source == source

    def labels(self, side: Side, team: str | None) -> LabelImage | None:
        """Return the reference as a team's evaluation has it, or the team's prediction.

        Without the predictions that a threshold leaves out, if there is an evaluation.
        """
        evaluation = self.evaluations.get(team or "")
        if evaluation is not None:
            return evaluation.pair.side(side)
        return self.reference if side is Side.REFERENCE else self.predictions.get(team or "")

    def row_at(self, side: Side, team: str | None, y: int, x: int) -> int | None:
        """Find the object at a pixel.

        Parameters
        ----------
        side, team
            As in :meth:`labels`.
        y, x
            A pixel inside the region.

        Returns
        -------
        int or None
            The object's 0-based row; None for background.
        """
        labels = self.labels(side, team)
        return None if labels is None or not labels.index[y, x] else int(labels.index[y, x]) - 1


def load_region(
    cohort: Cohort,
    region_name: str,
    settings: EvaluationSettings,
    *,
    source: Source | None = None,
    previous: RegionSnapshot | None = None,
) -> RegionSnapshot:
    """Read and evaluate everything of one region.

    Parameters
    ----------
    cohort
        The cohort of the region.
    region_name
        Its name.
    settings
        How to restore and evaluate.
    source
        Which format of the predictions to read; None for the usual one.
    previous
        An earlier snapshot; what the new settings do not change is taken from
        it, not read again.

    Raises
    ------
    PanopticError
        If not even the size of the region can be found out.
    """
    *_, whole = load_in_steps(cohort, region_name, settings, source=source, previous=previous)
    return whole


def load_in_steps(
    cohort: Cohort,
    region_name: str,
    settings: EvaluationSettings,
    *,
    source: Source | None = None,
    previous: RegionSnapshot | None = None,
    first: str | None = None,
    is_wanted: Callable[[], bool] = always,
    progress: Report | None = None,
    held_up_to_px: int = HELD_UP_TO_PX,
) -> Iterator[RegionSnapshot]:
    """Read and evaluate one region, the shown team before the others.

    Of a region that is too large to hold, only the shown team is
    evaluated, in windows: one takes gigabytes to read.

    Parameters
    ----------
    cohort, region_name, settings, source, previous
        As in :func:`load_region`.
    first
        The shown team; None to evaluate all at the same time.
    is_wanted
        Called between teams, and between windows; nothing more is yielded
        once it returns False.
    progress
        Called with the progress of a region that is read in windows, from the
        calling thread.
    held_up_to_px
        Regions of more pixels are read in windows.

    Yields
    ------
    RegionSnapshot
        First with the shown team only (if there are others), then with
        all teams. Of a region that is read in windows first the picture, then
        with the shown team.

    Raises
    ------
    PanopticError
        If not even the size of the region can be found out.
    """
    region = cohort.region(region_name)
    kept = previous if previous is not None and previous.region == region else None
    size = region_size(cohort, region) if kept is None else ImageSize(kept.shape, kept.mpp, ())
    if size.shape[0] * size.shape[1] > held_up_to_px:
        # A region that was read ahead as a whole is of no use here.
        kept = kept if kept is not None and kept.is_slide else None
        start = _begun(cohort, region, size, settings, source, kept)
        watched = Progress(is_wanted, progress)
        yield from _slide_in_steps(cohort, start, kept, first, watched)
        return
    kept = None if kept is None or kept.is_slide else kept
    if kept is not None and kept.is_whole_for(settings, source):
        yield kept
        return
    yield from _held_in_steps(cohort, region, settings, source, kept, first, is_wanted)


# --- held in memory ---------------------------------------------------------------------------


def _held_in_steps(
    cohort: Cohort,
    region: Region,
    settings: EvaluationSettings,
    source: Source | None,
    kept: RegionSnapshot | None,
    first: str | None,
    is_wanted: Callable[[], bool],
) -> Iterator[RegionSnapshot]:
    names = [team.name for team in cohort.teams]
    done: dict[str, Evaluated[Evaluation]] = {}
    with ThreadPoolExecutor(max_workers=1) as pool:
        # Decoding pixels releases the GIL, beside the annotation and the first team.
        pixels = pool.submit(_pixels, region, kept)
        if kept is not None and isinstance(kept.work, HeldRegion):
            held = kept.work.copy()
        else:
            held = HeldRegion(cohort, region, settings)
        start = _without_teams(cohort, held, region, settings, source)
        if first in names and len(names) > 1:
            done[first] = _with_outcomes(held.evaluate(first, settings, source))
    image, odd = pixels.result()
    findings = (*odd, *(finding for finding in start.findings if finding not in odd))
    start = replace(start, image=image, findings=findings)
    if any(evaluated_team.evaluation is not None for evaluated_team in done.values()):
        yield _with_teams(cohort, start, names, done)
    others = [name for name in names if name not in done]

    def evaluated(name: str) -> Evaluated[Evaluation] | None:
        return _with_outcomes(held.evaluate(name, settings, source)) if is_wanted() else None

    with ThreadPoolExecutor(max_workers=AT_A_TIME) as pool:
        for name, evaluated_team in zip(others, pool.map(evaluated, others), strict=True):
            if evaluated_team is None:
                return
            done[name] = evaluated_team
    yield _with_teams(cohort, start, names, done)


def _without_teams(
    cohort: Cohort,
    work: HeldRegion,
    region: Region,
    settings: EvaluationSettings,
    source: Source | None,
) -> RegionSnapshot:
    """Return a snapshot with the annotation; pixels and teams are still to come."""
    reference = work.reference(settings)
    masks = reference.masks
    try:
        labels = work.reference_labels(settings)
    except LabelError:  # every team has a finding then: none can be evaluated
        labels = None if masks is None else masks.labels
    return RegionSnapshot(
        region,
        reference.shape,
        reference.mpp,
        settings,
        source,
        reference=labels,
        ambiguous=None if masks is None else masks.ambiguous,
        findings=reference.findings,
        work=work,
        placement=cohort.placement,
    )


def _with_teams(
    cohort: Cohort,
    start: RegionSnapshot,
    names: list[str],
    done: Mapping[str, Evaluated[Evaluation]],
) -> RegionSnapshot:
    """Return a snapshot with the teams that are done, in the cohort's order."""
    ready = {name: done[name] for name in names if name in done}
    findings = (finding for found in ready.values() for finding in found.of_team)
    results = {n: found.evaluation for n, found in ready.items() if found.evaluation is not None}
    return replace(
        start,
        predictions={n: found.labels for n, found in ready.items() if found.labels is not None},
        results=results,
        findings=_merged(start.findings, (*findings, *_of_only_region(cohort, results))),
        pending=frozenset(names) - frozenset(done),
    )


def _pixels(
    region: Region, kept: RegionSnapshot | None
) -> tuple[SlideImage | None, tuple[Finding, ...]]:
    """Return the image and its findings, from an earlier snapshot if there is one."""
    if kept is not None:
        own = (f for f in kept.findings if f.path == region.image and f.path)
        return kept.image, tuple(own)
    return read_picture(region)


# --- read in windows --------------------------------------------------------------------------


def _begun(
    cohort: Cohort,
    region: Region,
    size: ImageSize,
    settings: EvaluationSettings,
    source: Source | None,
    kept: RegionSnapshot | None,
) -> RegionSnapshot:
    """Return a snapshot of a slide with its picture, and with what is known already."""
    if kept is not None and isinstance(kept.work, WindowedRegion):
        of_source = kept.source == source
        return replace(
            kept,
            settings=settings,
            source=source,
            results=kept.results if of_source and kept.settings == settings else {},
            tried=kept.tried if of_source else frozenset(),
            work=kept.work.copy(with_teams=of_source),
            findings=tuple(finding for finding in kept.findings if finding.team is None),
            pending=frozenset(),
            placement=cohort.placement,
        )
    image, odd = read_picture(region)
    return RegionSnapshot(
        region,
        size.shape,
        size.mpp,
        settings,
        source,
        image=image,
        findings=(*odd, *(finding for finding in size.findings if finding not in odd)),
        work=WindowedRegion(cohort, region, size),
        placement=cohort.placement,
    )


def _slide_in_steps(
    cohort: Cohort,
    start: RegionSnapshot,
    kept: RegionSnapshot | None,
    first: str | None,
    progress: Progress,
) -> Iterator[RegionSnapshot]:
    names = [team.name for team in cohort.teams]
    team = first if first in names else next(iter(names), None)
    if kept is None and team is not None:
        yield replace(start, pending=frozenset({team}))
    if team is None or team in start.results:
        yield start
        return
    try:
        yield _with_slide(cohort, start, team, progress)
    except StoppedError:
        message = f"evaluating team '{team}' was stopped: press “evaluate” above the picture"
        stopped = Finding(FindingKind.MISSING, message, region=start.region.name, team=team)
        yield replace(start, findings=_merged(start.findings, (stopped,)))


def _with_slide(
    cohort: Cohort, start: RegionSnapshot, team: str, progress: Progress
) -> RegionSnapshot:
    """Return a snapshot with a team evaluated in windows."""
    work = start.work
    if not isinstance(work, WindowedRegion):
        raise TypeError("a slide is read in windows")
    found = _with_outcomes(work.evaluate(team, start.settings, start.source, progress=progress))
    findings = _merged(start.findings, (*work.findings, *found.findings))
    if any(finding.kind is FindingKind.CHANGED for finding in found.of_team):
        work = WindowedRegion(cohort, start.region, work.size)  # opens the new files next time
    results = start.results
    if found.evaluation is not None:
        results = {**results, team: found.evaluation}
        findings = _merged(findings, _of_only_region(cohort, {team: found.evaluation}))
    return replace(start, results=results, tried=start.tried | {team}, work=work, findings=findings)


def _with_outcomes(found: Evaluated[Any]) -> Evaluated[Any]:
    """Compute the outcomes of a team in this thread, so that the window need not."""
    if found.evaluation is not None:
        _ = found.evaluation.outcomes
    return found


def _of_only_region(
    cohort: Cohort, results: Mapping[str, Evaluation | Evaluation[TiledPair]]
) -> tuple[Finding, ...]:
    """Return what is known of teams once all regions of the cohort, which has one, are done."""
    if len(cohort.regions) != 1:
        return ()
    areas = {team: result.table.areas for team, result in results.items()}
    found = (little_overlap(own, team) for team, own in areas.items() if own.shared_px)
    return tuple(finding for own in found for finding in own)


def _merged(known: tuple[Finding, ...], new: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(dict.fromkeys((*known, *new)))
