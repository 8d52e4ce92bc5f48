"""Everything there is to show of one region: read, restored and evaluated.

Loading is a pure function that may run in any thread. What new settings do not
touch is taken over from an earlier snapshot, not computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import Finding, LabelError, UnreadableFileError
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.images import SlideImage, read_image
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate, evaluate_again
from napari_panoptic.nuclei.reading import (
    OpenedMasks,
    ReferenceMasks,
    Way,
    load_prediction,
    load_reference,
    shared_pixel_findings,
    unreadable,
    way_of,
)
from napari_panoptic.nuclei.values.cohort import Cohort, Placement, Region, Source
from napari_panoptic.nuclei.values.labels import LabelImage, LabelPair
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.nuclei.values.windowed_labels import TiledPair

AT_A_TIME = 2
"""How many teams are restored and evaluated side by side: kernels let go of the interpreter."""


@dataclass(frozen=True, eq=False)
class KnownTeam:
    """What is known of one team in one region.

    Parameters
    ----------
    masks
        Its objects, or None where they cannot be read.
    findings
        What was odd, those of the masks among them.
    way
        The restoration and radius by which the masks came to be.
    evaluation
        What came of them last, under whatever settings; None without a reference.
    of_overlaps
        Which objects share pixels, where they keep them, or why they cannot.
    """

    masks: LoadedMasks | None
    findings: tuple[Finding, ...]
    way: Way
    evaluation: Evaluation | None = None
    of_overlaps: tuple[Finding, ...] = ()

    @property
    def shown(self) -> LabelImage | None:
        """Its objects as they were evaluated, or else as they were read."""
        if self.evaluation is not None:
            return self.evaluation.pair.prediction
        return None if self.masks is None else self.masks.labels


@dataclass(frozen=True, eq=False)
class KnownSlide:
    """What is known of a region that is too large to hold.

    Parameters
    ----------
    is_slide
        Whether the region is one.
    reference
        The annotation; None where it has not been opened yet.
    predictions
        Team -> its objects, as far as opened.
    evaluations
        Team -> what came of it last, under whatever settings.
    """

    is_slide: bool = False
    reference: OpenedMasks | None = None
    predictions: Mapping[str, OpenedMasks] = field(default_factory=dict)
    evaluations: Mapping[str, Evaluation[TiledPair]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RegionSnapshot:
    """Everything there is to show of one region under one set of settings.

    Parameters
    ----------
    region
        Which region.
    shape
        Height and width in px.
    mpp
        Micrometres per pixel, or None.
    image
        The pixels, or None where there are none to show.
    reference
        The annotated objects, or None where there is no usable annotation. With the
        pixels that they share where the settings keep overlaps, and so below.
    ambiguous
        bool image (y, x) of the excluded area, or None.
    predictions
        Team -> its objects; teams without a usable prediction are absent.
    evaluations
        Team -> what came of it; empty without a reference.
    settings, source
        What was asked for.
    findings
        What was missing, vanished, overlapping or unreadable in this region.
    pending
        Teams that are still being read or evaluated: absent above, for now.
    read_reference
        The annotation as it was read, so that it need not be read again.
    known_teams
        Team -> what was read and evaluated of it last, likewise; of a pending
        team that is of earlier settings.
    slides
        Team -> what came of it, where the region is too large to hold: then
        there is no reference, prediction or evaluation in memory.
    slide
        What is known of such a region, so that it need not be read again.
    placement
        Where its pixels lie in a viewer; None for micrometres per pixel.
    """

    region: Region
    shape: tuple[int, int]
    mpp: float | None
    image: SlideImage | None
    reference: LabelImage | None
    ambiguous: NDArray[np.bool_] | None
    predictions: Mapping[str, LabelImage]
    evaluations: Mapping[str, Evaluation]
    settings: EvaluationSettings
    source: Source | None
    findings: tuple[Finding, ...]
    pending: frozenset[str] = frozenset()
    read_reference: ReferenceMasks | None = None
    known_teams: Mapping[str, KnownTeam] = field(default_factory=dict)
    slides: Mapping[str, Evaluation[TiledPair]] = field(default_factory=dict)
    slide: KnownSlide = field(default_factory=KnownSlide)
    placement: Placement | None = None

    @property
    def keeps_overlaps(self) -> bool:
        """Whether there are objects that share pixels, and keep them."""
        sides = (self.reference, *self.predictions.values())
        return any(labels is not None and labels.planes for labels in sides)

    def result(self, team: str | None) -> Evaluation | Evaluation[TiledPair] | None:
        """Return what came of a team, in memory or in windows; None where it was not evaluated."""
        if team is None:
            return None
        return self.evaluations.get(team) or self.slides.get(team)

    def is_whole_for(self, settings: EvaluationSettings, source: Source | None) -> bool:
        """Return whether all teams are there, and as these settings and this source ask for."""
        return not self.pending and self.settings == settings and self.source == source

    def row_at(self, side: Side, team: str | None, y: int, x: int) -> int | None:
        """Find the object at a pixel.

        Parameters
        ----------
        side, team
            The reference as the team's evaluation has it, or the team's
            prediction.
        y, x
            A pixel inside the region.

        Returns
        -------
        int or None
            The object's 0-based row in the team's outcomes; None for background.
        """
        labels = self.reference if side is Side.REFERENCE else self.predictions.get(team or "")
        if labels is None or not labels.index[y, x]:
            return None
        row = int(labels.index[y, x]) - 1
        evaluation = self.evaluations.get(team or "")
        if evaluation is None:
            return row
        return evaluation.outcomes.side(side).row_of(int(labels.ids[row]))

    def index_of(self, side: Side, team: str | None, row: int) -> int | None:
        """Find the number by which an object's pixels are marked in its label image.

        While objects are edited that is not their row plus one.

        Parameters
        ----------
        side, team
            The reference as the team's evaluation has it, or the team's
            prediction.
        row
            0-based row in the team's outcomes.

        Returns
        -------
        int or None
            The value in ``LabelImage.index``; None where there is no such object.
        """
        labels = self.reference if side is Side.REFERENCE else self.predictions.get(team or "")
        evaluation = self.evaluations.get(team or "")
        if labels is None or evaluation is None:
            return None if labels is None or row >= len(labels) else row + 1
        ids = evaluation.outcomes.side(side).ids
        if row >= len(ids):
            return None
        if row < len(labels) and labels.ids[row] == ids[row]:
            return row + 1
        slots = np.flatnonzero(labels.ids == ids[row])
        return int(slots[0]) + 1 if len(slots) else None


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
        Where the region is from.
    region_name
        Its name.
    settings
        How to restore and evaluate.
    source
        Which form of the predictions to read; None for the usual one.
    previous
        An earlier snapshot; what the new settings do not touch is taken over
        from it, not read again.

    Raises
    ------
    PanopticError
        Where not even the size of the region can be found out.
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
    is_wanted: Callable[[], bool] = lambda: True,
) -> Iterator[RegionSnapshot]:
    """Read and evaluate one region, the team that is looked at before the others.

    Parameters
    ----------
    cohort, region_name, settings, source, previous
        As in :func:`load_region`.
    first
        The team that is wanted at once; None for all at the same time.
    is_wanted
        Asked between teams; where it says no, nothing more is yielded.

    Yields
    ------
    RegionSnapshot
        With that team alone, where it can be evaluated and there are others;
        then with all teams.

    Raises
    ------
    PanopticError
        Where not even the size of the region can be found out.
    """
    region = cohort.region(region_name)
    kept = previous if previous is not None and previous.region == region else None
    if kept is not None and kept.is_whole_for(settings, source):
        yield kept
        return
    names = [team.name for team in cohort.teams]
    done: dict[str, KnownTeam] = {}
    with ThreadPoolExecutor(max_workers=1) as pool:
        # Pixels are decoded without the interpreter, beside the annotation and the first team.
        pixels = pool.submit(_pixels, region, kept)
        start = _without_teams(_reference(cohort, region, settings, kept), region, settings, source)
        start = replace(start, placement=cohort.placement)
        if kept is not None and kept.source == source:
            start = replace(start, known_teams=kept.known_teams)
        if first in names and len(names) > 1:
            done[first] = _team(cohort, start, first)
    image, odd = pixels.result()
    findings = (*odd, *(finding for finding in start.findings if finding not in odd))
    start = replace(start, image=image, findings=findings)
    if any(known.evaluation is not None for known in done.values()):
        yield _with_teams(start, names, done)
    others = [name for name in names if name not in done]
    with ThreadPoolExecutor(max_workers=AT_A_TIME) as pool:
        for name, known in zip(
            others,
            pool.map(lambda name: _team(cohort, start, name) if is_wanted() else None, others),
            strict=True,
        ):
            if known is None:
                return
            done[name] = known
    yield _with_teams(start, names, done)


def _without_teams(
    reference: ReferenceMasks,
    region: Region,
    settings: EvaluationSettings,
    source: Source | None,
) -> RegionSnapshot:
    """Begin a snapshot with the annotation; pixels and teams are still to come."""
    labels = None if reference.masks is None else reference.masks.labels
    if labels is not None:
        # Where that is too much, every team is told so: none can be evaluated.
        with suppress(LabelError):
            labels = labels.with_overlaps(settings.overlaps)
    return RegionSnapshot(
        region=region,
        shape=reference.shape,
        mpp=reference.mpp,
        image=None,
        reference=labels,
        ambiguous=None if reference.masks is None else reference.masks.ambiguous,
        predictions={},
        evaluations={},
        settings=settings,
        source=source,
        findings=reference.findings,
        read_reference=reference,
    )


def _with_teams(
    start: RegionSnapshot, names: list[str], done: Mapping[str, KnownTeam]
) -> RegionSnapshot:
    """Put the teams that are done into a snapshot without any, in the cohort's order."""
    ready = {name: done[name] for name in names if name in done}
    found = (f for known in ready.values() for f in (*known.findings, *known.of_overlaps))
    return replace(
        start,
        predictions={n: k.shown for n, k in ready.items() if k.shown is not None},
        evaluations={n: k.evaluation for n, k in ready.items() if k.evaluation is not None},
        findings=tuple(dict.fromkeys((*start.findings, *found))),
        pending=frozenset(names) - frozenset(done),
        known_teams={**start.known_teams, **ready},
    )


def _team(cohort: Cohort, start: RegionSnapshot, name: str) -> KnownTeam:
    """Read, restore and evaluate one team, as far as that is not known."""
    settings = start.settings
    way = way_of(settings)
    known = start.known_teams.get(name)
    if known is None:
        masks, findings = load_prediction(
            cohort, start.region, name, start.shape, settings, start.source
        )
        known = KnownTeam(masks, findings, way)
    elif known.way != way and known.masks is not None and known.masks.restored is not None:
        masks = known.masks.restored(*way)
        others = tuple(f for f in known.findings if f not in known.masks.findings)
        known = KnownTeam(masks, (*masks.findings, *others), way)
    known = replace(known, way=way)
    if known.masks is None or start.reference is None:
        return replace(known, evaluation=None, of_overlaps=())
    try:
        prediction = known.masks.labels.with_overlaps(settings.overlaps)
        pair = LabelPair(start.reference, prediction, start.ambiguous, start.mpp)
        if known.evaluation is not None and _are_same(known.evaluation.pair, pair):
            return replace(known, evaluation=evaluate_again(known.evaluation, settings))
        evaluation = evaluate(pair, settings)
    except LabelError as error:
        problem = unreadable(error, region=start.region.name, team=name)
        return replace(known, evaluation=None, of_overlaps=(problem,))
    shared = shared_pixel_findings(evaluation, start.region.name, name)
    return replace(known, evaluation=evaluation, of_overlaps=shared)


def _are_same(one: LabelPair, other: LabelPair) -> bool:
    """Return whether two label pairs have the very same images."""
    return (
        one.reference.index is other.reference.index
        and one.prediction.index is other.prediction.index
        and one.ambiguous is other.ambiguous
        and one.mpp == other.mpp
    )


def _reference(
    cohort: Cohort, region: Region, settings: EvaluationSettings, kept: RegionSnapshot | None
) -> ReferenceMasks:
    """Read the annotation, or take it over; one that is colour-coded is restored anew."""
    if kept is None or kept.read_reference is None:
        return load_reference(cohort, region, settings)
    known, way = kept.read_reference, way_of(settings)
    return known if way == way_of(kept.settings) else known.restored(way)


def _pixels(
    region: Region, kept: RegionSnapshot | None
) -> tuple[SlideImage | None, tuple[Finding, ...]]:
    """Read the image, or take it over with what was odd about it."""
    if kept is not None:
        own = (f for f in kept.findings if f.path == region.image and f.path)
        return kept.image, tuple(own)
    return read_picture(region)


def read_picture(region: Region) -> tuple[SlideImage | None, tuple[Finding, ...]]:
    """Read the image of a region, with what is odd about it; None where there is none to show."""
    if region.image is None:
        return None, ()
    try:
        image = read_image(region.image, region.image_item)
    except (UnreadableFileError, OSError) as error:
        return None, (unreadable(error, region=region.name),)
    return image, tuple(replace(finding, region=region.name) for finding in image.findings)
