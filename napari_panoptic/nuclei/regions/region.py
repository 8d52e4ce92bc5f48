"""One region: its files are read once, and each team is evaluated under any settings.

A region is held in memory, or read in windows if it is too large. Errors that
concern a team become findings. What is known of a team is kept for its next
evaluation: its files, the overlap and the distances.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from napari_panoptic.common.errors import LabelError, PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress, StoppedError
from napari_panoptic.common.text import counted
from napari_panoptic.io.files.fingerprints import file_stamps
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.nuclei.class_masks import ClassEvaluations, evaluate_classes
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate, evaluate_again
from napari_panoptic.nuclei.regions.doubts import (
    findings_after,
    little_overlap,
    no_prediction,
    not_in_windows,
    unusual_form,
    vanished_in_zone,
)
from napari_panoptic.nuclei.regions.reading import (
    ImageSize,
    OpenedMasks,
    ReferenceMasks,
    TooLargeError,
    Way,
    load_reference,
    open_side,
    prediction_files,
    read_prediction,
    usual_form,
    way_of,
)
from napari_panoptic.nuclei.regions.shifts import NO_SHIFT, Shift, shifted
from napari_panoptic.nuclei.windowed_evaluation import evaluate_tiles, evaluate_tiles_again
from napari_panoptic.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.reading import HELD_UP_TO_PX
from napari_panoptic.values.settings import EvaluationSettings, Overlaps, Restoration
from napari_panoptic.values.windowed_labels import TiledPair

OPENING = 0.1
"""Share of the work on a slide that is opening its files."""
_KEPT_WAYS = 16
"""Ways in which a colour-coded annotation is kept restored."""

E_co = TypeVar("E_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Evaluated(Generic[E_co]):
    """One team in one region under one choice of settings."""

    #: The evaluation; None if there is none, for a reason among the findings.
    evaluation: E_co | None
    #: What was odd in the annotation, and in the team's prediction.
    of_annotation: tuple[Finding, ...] = ()
    of_team: tuple[Finding, ...] = ()
    #: The team's objects, as they were evaluated or else as they were read; None if they cannot be
    #: read, or are read in windows.
    labels: LabelImage | None = None
    #: Whether the region was left out because it has too many pixels to be held.
    is_too_large: bool = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, those of the annotation first."""
        return (*self.of_annotation, *self.of_team)


@lru_cache(maxsize=256)
def _reduced(
    settings: EvaluationSettings, *, is_restorable: bool, shares_pixels: bool
) -> EvaluationSettings:
    """Return settings with usual values for what makes no difference."""
    changes: dict[str, Any] = {}
    if not is_restorable:
        changes |= {"restoration": Restoration.BORDER_REMOVED, "radius": 0}
    if not shares_pixels:
        changes["overlaps"] = Overlaps.FLATTEN
    return settings.replaced(**changes)


# --- held in memory ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _KnownTeam:
    """What was read of a team, and evaluated last."""

    #: The format that was read, and the way in which it was restored last.
    source: Source
    way: Way
    #: Its objects, or None if they cannot be read; and the findings that are not those of the
    #: masks.
    masks: LoadedMasks | None
    others: tuple[Finding, ...]
    #: The last shift, and the objects moved by it.
    shift: Shift = NO_SHIFT
    moved: LabelImage | None = None
    #: The label pair that was evaluated last, and whether it shares pixels.
    pair: LabelPair | None = None
    overlaps: Overlaps | None = None
    #: Its evaluations, of all classes together and of each alone.
    evaluation: Evaluation | None = None
    by_class: ClassEvaluations | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*(() if self.masks is None else self.masks.findings), *self.others)

    def restored(self, way: Way) -> _KnownTeam:
        """Return the objects restored in another way; the same if there is nothing to restore."""
        if self.masks is None or self.masks.restored is None or way == self.way:
            return self
        return _KnownTeam(self.source, way, self.masks.restored(*way), self.others)

    def shifted(self, shift: Shift) -> _KnownTeam:
        """Return the objects moved by a shift."""
        if self.masks is None or (self.moved is not None and shift == self.shift):
            return self
        moved = shifted(self.masks.labels, shift)
        return _KnownTeam(self.source, self.way, self.masks, self.others, shift, moved)

    def paired(
        self, labels: LabelImage | None, reference: ReferenceMasks, overlaps: Overlaps
    ) -> _KnownTeam:
        """Return the objects with their label pair; the same if its images are the last ones."""
        last = self.pair
        if self.moved is None or labels is None or reference.masks is None:
            return self
        if last is not None and last.reference is labels and self.overlaps == overlaps:
            return self
        moved = self.moved.with_overlaps(overlaps)
        pair = LabelPair(labels, moved, reference.masks.ambiguous, reference.mpp)
        return replace(self, pair=pair, overlaps=overlaps, evaluation=None, by_class=None)


class HeldRegion:
    """A region whose label images are held in memory.

    May be used from several threads, each with a team of its own.

    Parameters
    ----------
    cohort, region
        The region.
    settings
        How objects are recovered from a colour-coded annotation at first.
    held_up_to_px
        The number of pixels that the region may have; None for any number.

    Raises
    ------
    TooLargeError
        If it has more.
    PanopticError
        If its size cannot be found out.
    """

    def __init__(
        self,
        cohort: Cohort,
        region: Region,
        settings: EvaluationSettings,
        *,
        held_up_to_px: int | None = None,
    ) -> None:
        self._cohort, self._region = cohort, region
        read = load_reference(cohort, region, settings, held_up_to_px=held_up_to_px)
        self.shape, self.mpp = read.shape, read.mpp
        self._references: dict[Way, ReferenceMasks] = {way_of(settings): read}
        self._read = read
        # Overlaps -> the annotation as it was restored, and as it is evaluated.
        self._labels: dict[Overlaps, tuple[LabelImage, LabelImage]] = {}
        self._known: dict[str, _KnownTeam] = {}

    def reference(self, settings: EvaluationSettings) -> ReferenceMasks:
        """Return the annotation, restored as the settings ask for."""
        way = way_of(settings)
        if not self._read.is_restorable:
            return self._read
        if way not in self._references:
            if len(self._references) == _KEPT_WAYS:
                self._references.pop(next(iter(self._references)), None)
            self._references[way] = self._read.restored(way)
        return self._references[way]

    def reference_labels(self, settings: EvaluationSettings) -> LabelImage | None:
        """Return the annotated objects, with the pixels that they share if the settings say so.

        Raises
        ------
        LabelError
            If too many objects lie over one another.
        """
        masks, overlaps = self.reference(settings).masks, settings.overlaps
        if masks is None:
            return None
        known = self._labels.get(overlaps)
        if known is None or known[0] is not masks.labels:
            known = masks.labels, masks.labels.with_overlaps(overlaps)
            self._labels[overlaps] = known
        return known[1]

    def evaluate(
        self,
        team: str,
        settings: EvaluationSettings,
        source: Source | None = None,
        shift: Shift = NO_SHIFT,
    ) -> Evaluated[Evaluation]:
        """Evaluate a team; whatever prevents it is a finding.

        Parameters
        ----------
        team
            Its name.
        settings
            How to restore and match; the scoring has no effect.
        source
            Which format of the predictions; None for the usual one.
        shift
            By how many whole px the predictions are moved, (dy, dx).
        """

        def evaluated(known: _KnownTeam, pair: LabelPair) -> tuple[_KnownTeam, Evaluation]:
            if known.evaluation is None:
                evaluation = evaluate(pair, settings)
            else:
                evaluation = evaluate_again(known.evaluation, settings)
            return replace(known, evaluation=evaluation), evaluation

        found = self._of_pair(team, settings, source, shift, evaluated)
        if found.evaluation is None:
            return found
        odd = vanished_in_zone(found.evaluation, team, self._region.name)
        if shift == NO_SHIFT:
            odd += little_overlap(found.evaluation.table.areas, team, self._region.name)
        return replace(found, of_team=(*found.of_team, *odd)) if odd else found

    def score(
        self,
        team: str,
        settings: EvaluationSettings,
        source: Source | None = None,
        shift: Shift = NO_SHIFT,
    ) -> Evaluated[ClassEvaluations]:
        """Evaluate each class of a team alone, on its own masks; else as :meth:`evaluate`."""

        def scored(known: _KnownTeam, pair: LabelPair) -> tuple[_KnownTeam, ClassEvaluations]:
            by_class = evaluate_classes(pair, settings, known.by_class)
            return replace(known, by_class=by_class), by_class

        # The classes have masks of their own, which are not the pixels that objects share.
        flat = settings.replaced(overlaps=Overlaps.FLATTEN)
        return self._of_pair(team, flat, source, shift, scored)

    def each_team(
        self, team_names: Sequence[str], settings: EvaluationSettings, source: Source | None = None
    ) -> Iterator[tuple[str, Evaluated[Evaluation]]]:
        """Evaluate teams one after the other, and release each before the next."""
        for team in team_names:
            yield team, self.evaluate(team, settings, source)
            self.forget(team)

    def copy(self) -> HeldRegion:
        """Return the region with all that is known of it; neither learns from the other."""
        other = copy(self)
        other._references, other._labels = dict(self._references), dict(self._labels)
        other._known = dict(self._known)
        return other

    def in_effect(
        self, team: str, settings: EvaluationSettings, source: Source | None = None
    ) -> EvaluationSettings:
        """Return the settings without what makes no difference to the masks of a team.

        Settings are in effect the same here if they differ in the restoration of masks that there
        is nothing to restore in, or in the pixels that objects share where none do.
        """
        files = prediction_files(self._cohort, self._region.name, team, source)
        if files is None:
            return settings
        sides = self.reference(settings).masks, self._known_team(team, files, settings).masks
        masks = [own for own in sides if own is not None]
        return _reduced(
            settings,
            is_restorable=any(own.restored is not None for own in masks),
            shares_pixels=any(own.labels.other_form is not None for own in masks),
        )

    def forget(self, team: str) -> None:
        """Release what is kept of a team."""
        self._known.pop(team, None)

    def _known_team(self, team: str, files: MaskFiles, settings: EvaluationSettings) -> _KnownTeam:
        """Return a team's objects, read if need be, and restored as the settings ask for."""
        known, way = self._known.get(team), way_of(settings)
        if known is None or known.source != files.source:
            masks, found = read_prediction(
                self._cohort, self._region, team, files, self.shape, settings
            )
            others = found if masks is None else found[len(masks.findings) :]
            known = _KnownTeam(files.source, way, masks, others)
        known = known.restored(way)
        self._known[team] = known
        return known

    def _of_pair(
        self,
        team: str,
        settings: EvaluationSettings,
        source: Source | None,
        shift: Shift,
        evaluated: Callable[[_KnownTeam, LabelPair], tuple[_KnownTeam, E_co]],
    ) -> Evaluated[E_co]:
        """Read both sides and evaluate their label pair, the last one if it is the same."""
        reference = self.reference(settings)
        files = prediction_files(self._cohort, self._region.name, team, source)
        if files is None:
            missing = no_prediction(self._region, team, source)
            return Evaluated(None, reference.findings, (missing,))
        known = self._known_team(team, files, settings)
        if known.masks is None:
            return Evaluated(None, reference.findings, known.findings)
        unusual = unusual_form(usual_form(self._cohort, team), self._region, team, files, source)
        nothing: Evaluated[E_co] = Evaluated(
            None, reference.findings, (*known.findings, *unusual), known.masks.labels
        )
        if reference.masks is None:
            return nothing
        try:
            labels = self.reference_labels(settings)
            known = known.shifted(shift).paired(labels, reference, settings.overlaps)
            pair = known.pair
            if pair is None:
                return nothing
            known, evaluation = evaluated(known, pair)
        except LabelError as error:
            problem = Finding.unreadable(error, region=self._region.name, team=team)
            return replace(nothing, of_team=(*known.findings, problem, *unusual))
        self._known[team] = known
        found = (
            *known.findings,
            *self._lost(known, team),
            *self._shared(pair, team),
            *unusual,
        )
        return Evaluated(evaluation, reference.findings, found, pair.prediction)

    def _lost(self, known: _KnownTeam, team: str) -> tuple[Finding, ...]:
        """Describe the objects that left the image with a shift."""
        if known.masks is None or known.moved is None or known.shift == NO_SHIFT:
            return ()
        gone = known.moved.vanished[len(known.masks.labels.vanished) :]
        if not gone:
            return ()
        message = (
            f"{counted(len(gone), 'predicted object')} left the image with a shift of "
            f"{known.shift} px (y, x)"
        )
        return (
            Finding(
                FindingKind.OUTSIDE_IMAGE,
                message,
                region=self._region.name,
                team=team,
                count=len(gone),
                object_ids=tuple(object_.id for object_ in gone),
            ),
        )

    def _shared(self, pair: LabelPair, team: str) -> tuple[Finding, ...]:
        """Describe the objects that share pixels with others of their side, and keep them."""
        if not pair.has_planes:
            return ()
        findings = []
        for labels, name, owner in (
            (pair.reference, "annotated", None),
            (pair.prediction, "predicted", team),
        ):
            ids = tuple(labels.ids[labels.overlapping_rows()].tolist())
            if ids:
                message = (
                    f"{len(ids)} of {len(labels)} {name} objects share pixels with others of "
                    f"their side, and keep them"
                )
                findings.append(
                    Finding(
                        FindingKind.OVERLAPPING,
                        message,
                        region=self._region.name,
                        team=owner,
                        count=len(ids),
                        object_ids=ids,
                    )
                )
        return tuple(findings)


def held_region(
    cohort: Cohort,
    region: Region,
    settings: EvaluationSettings,
    *,
    held_up_to_px: int | None = HELD_UP_TO_PX,
    too_large: str = "",
) -> HeldRegion | Finding:
    """Hold a region, or return the finding that says why it cannot be held.

    Parameters
    ----------
    cohort, region, settings, held_up_to_px
        As of `HeldRegion`.
    too_large
        What follows if the region has more pixels; by default that it is not read.
    """
    try:
        return HeldRegion(cohort, region, settings, held_up_to_px=held_up_to_px)
    except (PanopticError, OSError) as error:
        if too_large and isinstance(error, TooLargeError):
            return Finding(FindingKind.FALLBACK, too_large, region=region.name)
        return Finding.unreadable(error, region=region.name)


# --- read in windows --------------------------------------------------------------------------


_PATIENCE_S = 0.2
_MOST_WORKERS = 8
# Each slide keeps all processors busy, and takes much memory.
_ONE_SLIDE = threading.Lock()


def slide_workers() -> int:
    """Return how many windows of a slide are evaluated at a time."""
    return min(os.cpu_count() or 1, _MOST_WORKERS)


@contextmanager
def one_slide(progress: Progress) -> Iterator[None]:
    """Wait until no other slide is being evaluated; raise StoppedError if cancelled."""
    while not _ONE_SLIDE.acquire(timeout=_PATIENCE_S):
        progress.check()
    try:
        yield
    finally:
        _ONE_SLIDE.release()


class WindowedRegion:
    """A region that is too large to hold: its pixels are read in windows.

    Parameters
    ----------
    cohort, region
        The region.
    size
        Its size.
    """

    def __init__(self, cohort: Cohort, region: Region, size: ImageSize) -> None:
        self._cohort, self._region = cohort, region
        self.size = size
        self._stamps: dict[Path, str | None] = {}
        self._opened: dict[tuple[str | None, Source], OpenedMasks] = {}
        self._known: dict[tuple[str, Source], Evaluation[TiledPair]] = {}

    def copy(self, *, with_teams: bool = True) -> WindowedRegion:
        """Return the region with what was opened, of the annotation only if without teams."""
        other = copy(self)
        kept = {key: found for key, found in self._opened.items() if with_teams or key[0] is None}
        other._opened, other._stamps = kept, dict(self._stamps)
        other._known = dict(self._known) if with_teams else {}
        return other

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was odd in the files that were opened so far."""
        return tuple(found for opened in self._opened.values() for found in opened.findings)

    def reference(self, progress: Progress = UNWATCHED) -> OpenedMasks:
        """Return the annotation, opened once.

        Raises
        ------
        StoppedError
            If cancelled.
        """
        files = self._region.reference
        return OpenedMasks(None) if files is None else self._open(files, None, progress)

    def evaluate(
        self,
        team: str,
        settings: EvaluationSettings,
        source: Source | None = None,
        shift: Shift = NO_SHIFT,
        *,
        progress: Progress = UNWATCHED,
        workers: int = 2,
    ) -> Evaluated[Evaluation[TiledPair]]:
        """Evaluate a team window by window; whatever prevents it is a finding.

        Parameters
        ----------
        team, settings, source, shift
            As in :meth:`HeldRegion.evaluate`.
        progress
            Reported after each window, and checked for cancellation before each.
        workers
            Windows at a time, each in a thread.

        Raises
        ------
        StoppedError
            If cancelled.
        """
        files = prediction_files(self._cohort, self._region.name, team, source)
        is_known = files is not None and (team, files.source) in self._known
        opening = progress if is_known else progress.part(0.0, OPENING)
        reference = self.reference(opening)
        if files is None:
            missing = no_prediction(self._region, team, source)
            return Evaluated(None, reference.findings, (missing,))
        prediction = self._open(files, team, opening)
        if prediction.masks is None:
            return Evaluated(None, reference.findings, prediction.findings)
        unusual = unusual_form(usual_form(self._cohort, team), self._region, team, files, source)
        of_team = (*prediction.findings, *unusual)
        if reference.masks is None:
            return Evaluated(None, reference.findings, of_team)
        if what := _not_possible(settings, shift):
            not_here = not_in_windows(self._region, team, what)
            return Evaluated(None, reference.findings, (*of_team, not_here))
        pair = TiledPair(
            reference.masks.labels,
            prediction.masks.labels,
            reference.masks.ambiguous,
            self.size.mpp,
        )
        evaluating = progress if is_known else progress.part(OPENING, 1.0)
        problem: tuple[Finding, ...] = ()
        try:
            known = self._known.get((team, files.source))
            if known is None:
                found = evaluate_tiles(pair, settings, progress=evaluating, workers=workers)
            else:
                found = evaluate_tiles_again(known, settings, progress=evaluating, workers=workers)
        except StoppedError:
            raise
        except (PanopticError, OSError) as error:
            problem = (Finding.unreadable(error, region=self._region.name, team=team),)
        # A file that is being replaced can look damaged.
        problem = self._changed(files, team) or problem
        if problem:
            return Evaluated(None, reference.findings, (*of_team, *problem))
        self._known[team, files.source] = found
        counted = found.pair, found.table
        return Evaluated(
            found,
            (
                *reference.findings,
                *findings_after(reference.masks, *counted, self._region, None),
            ),
            (
                *prediction.findings,
                *findings_after(prediction.masks, *counted, self._region, team, files),
                *little_overlap(found.table.areas, team, self._region.name),
                *vanished_in_zone(found, team, self._region.name),
                *unusual,
            ),
        )

    def forget(self, team: str) -> None:
        """Release what is kept of a team."""
        self._opened = {key: found for key, found in self._opened.items() if key[0] != team}
        self._known = {key: found for key, found in self._known.items() if key[0] != team}

    def _open(self, files: MaskFiles, team: str | None, progress: Progress) -> OpenedMasks:
        key = team, files.source
        if key not in self._opened:
            # Windows that are read after a change would not fit those read before.
            self._stamps = file_stamps(files.all_paths) | self._stamps
            self._opened[key] = open_side(
                self._cohort, self._region, self.size.shape, files, team, progress
            )
        return self._opened[key]

    def _changed(self, files: MaskFiles, team: str) -> tuple[Finding, ...]:
        """Describe the files of a pair that have changed since they were opened."""
        own = self._region.reference
        now = file_stamps((*(() if own is None else own.all_paths), *files.all_paths))
        return tuple(
            Finding(
                FindingKind.CHANGED,
                f"{path.name} was changed or removed while the slide was read in windows, so that "
                f"they are of different versions: {team} is not evaluated in "
                f"{self._region.name}; run the same again",
                path=path,
                region=self._region.name,
                team=team,
            )
            for path, stamp in now.items()
            if stamp != self._stamps[path]
        )


def _not_possible(settings: EvaluationSettings, shift: Shift) -> str:
    """Return what the settings ask for that needs the region as a whole; empty for nothing."""
    if settings.takes_class_masks:
        return "the challenge's scoring"
    if shift != NO_SHIFT:
        return "a shift of the predictions"
    return "keeping the pixels that objects share" if settings.overlaps is Overlaps.KEEP else ""
