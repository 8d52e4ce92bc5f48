"""Snapshots of regions that may be too large to hold: these are evaluated in windows.

Of such a region only the team that is looked at is read: one takes gigabytes to
go through. What was counted is kept for other settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from napari_panoptic.common.errors import Finding, FindingKind, PanopticError
from napari_panoptic.io.formats.format import TiledMasks
from napari_panoptic.nuclei.reading import (
    HELD_UP_TO_PX,
    OpenedMasks,
    RegionSize,
    choose_files,
    findings_after,
    no_prediction,
    not_in_windows,
    open_side,
    region_size,
    unreadable,
    unusual_form,
)
from napari_panoptic.nuclei.snapshots import KnownSlide, RegionSnapshot, read_picture
from napari_panoptic.nuclei.snapshots import load_in_steps as load_held_in_steps
from napari_panoptic.nuclei.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings, Overlaps, Scoring
from napari_panoptic.nuclei.values.windowed_labels import TiledPair
from napari_panoptic.nuclei.window_run import Progress, StoppedError
from napari_panoptic.nuclei.windowed_evaluation import (
    TiledEvaluation,
    evaluate_tiles,
    evaluate_tiles_again,
)

OPENING = 0.1
"""Share of the work that opening the files is taken for."""


@dataclass(frozen=True)
class Watch:
    """Who waits for a slide, and hears how far it is.

    Parameters
    ----------
    is_wanted
        Asked between windows; where it says no, the slide is left unevaluated.
    progress
        Told of what is done; None where nobody listens.
    """

    is_wanted: Callable[[], bool] = lambda: True
    progress: Progress | None = None

    def told_of_opening(self, share: float, saying: str) -> None:
        """Pass on how much of a file was opened."""
        if self.progress is not None:
            self.progress(OPENING * share, saying)


def load_in_steps(
    cohort: Cohort,
    region_name: str,
    settings: EvaluationSettings,
    *,
    source: Source | None = None,
    previous: RegionSnapshot | None = None,
    first: str | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
    progress: Progress | None = None,
    held_up_to_px: int = HELD_UP_TO_PX,
) -> Iterator[RegionSnapshot]:
    """Read and evaluate one region, whatever its size.

    Parameters
    ----------
    cohort, region_name, settings, source, previous, first, is_wanted
        As in :func:`napari_panoptic.nuclei.snapshots.load_in_steps`.
    progress
        Told how far a slide is, from the calling thread.
    held_up_to_px
        Regions of more pixels are evaluated in windows.

    Yields
    ------
    RegionSnapshot
        As :func:`napari_panoptic.nuclei.snapshots.load_in_steps`; of a slide first
        its picture alone, then with the team ``first`` evaluated.

    Raises
    ------
    PanopticError
        Where not even the size of the region can be found out.
    """
    region = cohort.region(region_name)
    kept = previous if previous is not None and previous.region == region else None
    size = (
        region_size(cohort, region)
        if kept is None
        else RegionSize(kept.shape, kept.mpp, findings=())
    )
    if size.shape[0] * size.shape[1] > held_up_to_px:
        # What was read ahead as a whole is of no use here.
        kept = kept if kept is not None and kept.slide.is_slide else None
        start = _begun(region, size, settings, source, kept)
        start = replace(start, placement=cohort.placement)
        yield from _slide_in_steps(cohort, start, kept, first, Watch(is_wanted, progress))
        return
    yield from load_held_in_steps(
        cohort,
        region_name,
        settings,
        source=source,
        previous=previous,
        first=first,
        is_wanted=is_wanted,
    )


def _begun(
    region: Region,
    size: RegionSize,
    settings: EvaluationSettings,
    source: Source | None,
    kept: RegionSnapshot | None,
) -> RegionSnapshot:
    """Begin a snapshot of a slide with its picture, and with what is known already."""
    if kept is not None:
        of_source = kept.source == source
        return replace(
            kept,
            settings=settings,
            source=source,
            slides=kept.slides if of_source and kept.settings == settings else {},
            slide=kept.slide if of_source else KnownSlide(True, kept.slide.reference),
            findings=tuple(finding for finding in kept.findings if finding.team is None),
            pending=frozenset(),
        )
    image, odd = read_picture(region)
    return RegionSnapshot(
        region=region,
        shape=size.shape,
        mpp=size.mpp,
        image=image,
        reference=None,
        ambiguous=None,
        predictions={},
        evaluations={},
        settings=settings,
        source=source,
        findings=(*odd, *(finding for finding in size.findings if finding not in odd)),
        slide=KnownSlide(True),
    )


def _slide_in_steps(
    cohort: Cohort,
    start: RegionSnapshot,
    kept: RegionSnapshot | None,
    first: str | None,
    watch: Watch,
) -> Iterator[RegionSnapshot]:
    names = [team.name for team in cohort.teams]
    team = first if first in names else next(iter(names), None)
    if kept is None and team is not None:
        yield replace(start, pending=frozenset({team}))
    if team is None or team in start.slides:
        yield start
        return
    try:
        yield _with_team(cohort, start, team, watch)
    except StoppedError:
        message = f"evaluating team '{team}' was stopped: press “evaluate” above the picture"
        stopped = Finding(FindingKind.MISSING, message, region=start.region.name, team=team)
        yield replace(start, findings=_merged(start.findings, (stopped,)))


def _with_team(cohort: Cohort, start: RegionSnapshot, team: str, watch: Watch) -> RegionSnapshot:
    """Open the files of a team, and evaluate it."""
    region, slide = start.region, start.slide
    reference = slide.reference
    if reference is None:
        reference = _opened(cohort, start, region.reference, None, watch)
        slide = replace(slide, reference=reference)
    prediction = slide.predictions.get(team)
    if prediction is None:
        prediction = _opened_prediction(cohort, start, team, watch)
        slide = replace(slide, predictions={**slide.predictions, team: prediction})
    of_teams = [found for opened in slide.predictions.values() for found in opened.findings]
    findings = _merged(start.findings, (*reference.findings, *of_teams))
    whole = replace(start, slide=slide, findings=findings)
    if reference.masks is None or prediction.masks is None:
        return whole
    if start.settings.scoring is Scoring.CHALLENGE:
        not_here = not_in_windows(region, team, "the challenge's scoring")
        return replace(whole, findings=_merged(whole.findings, (not_here,)))
    if start.settings.overlaps is Overlaps.KEEP:
        not_here = not_in_windows(region, team, "keeping the pixels that objects share")
        return replace(whole, findings=_merged(whole.findings, (not_here,)))
    try:
        found = _evaluated(start, slide, reference.masks, prediction.masks, team, watch)
    except StoppedError:
        raise
    except (PanopticError, OSError) as error:
        broken = unreadable(error, region=region.name, team=team)
        return replace(whole, findings=_merged(whole.findings, (broken,)))
    after = (
        *findings_after(reference.masks, found.table.reference.area > 0, region, None),
        *findings_after(prediction.masks, found.table.prediction.area > 0, region, team),
    )
    return replace(
        whole,
        findings=_merged(whole.findings, after),
        slides={**start.slides, team: found},
        slide=replace(slide, evaluations={**slide.evaluations, team: found}),
    )


def _evaluated(
    start: RegionSnapshot,
    slide: KnownSlide,
    reference: TiledMasks,
    prediction: TiledMasks,
    team: str,
    watch: Watch,
) -> TiledEvaluation:
    known = slide.evaluations.get(team)
    if known is not None:
        return evaluate_tiles_again(
            known, start.settings, progress=watch.progress, is_wanted=watch.is_wanted
        )
    pair = TiledPair(reference.labels, prediction.labels, reference.ambiguous, start.mpp)

    def progress(share: float, saying: str) -> None:
        if watch.progress is not None:
            watch.progress(OPENING + (1 - OPENING) * share, saying)

    return evaluate_tiles(pair, start.settings, progress=progress, is_wanted=watch.is_wanted)


def _opened_prediction(
    cohort: Cohort, start: RegionSnapshot, team: str, watch: Watch
) -> OpenedMasks:
    region = start.region
    files = choose_files(cohort.predictions.get((team, region.name), {}), start.source)
    if files is None:
        return OpenedMasks(None, (no_prediction(region, team, start.source),))
    opened = _opened(cohort, start, files, team, watch)
    unusual = unusual_form(cohort, region, team, files, start.source)
    return replace(opened, findings=(*opened.findings, *unusual))


def _opened(
    cohort: Cohort,
    start: RegionSnapshot,
    files: MaskFiles | None,
    team: str | None,
    watch: Watch,
) -> OpenedMasks:
    """Open the objects of a side; None with a finding where that fails."""
    if files is None:
        return OpenedMasks(None)
    return open_side(
        cohort,
        start.region,
        start.shape,
        files,
        team,
        is_wanted=watch.is_wanted,
        progress=watch.told_of_opening,
    )


def _merged(known: tuple[Finding, ...], new: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return (*known, *(finding for finding in new if finding not in known))
