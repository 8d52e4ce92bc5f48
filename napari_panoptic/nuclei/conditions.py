"""A cohort under many conditions at once: files are read once, and pixels counted once.

A condition is a choice of settings, of the form of the predictions, and of a
shift of them. What conditions share is computed for all of them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import Finding, FindingKind, LabelError, PanopticError
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.nuclei.challenge import ChallengeEvaluation, evaluate_challenge
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate, evaluate_again
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.protocols import ScoredRegion
from napari_panoptic.nuclei.reading import (
    HELD_UP_TO_PX,
    ReferenceMasks,
    RegionResult,
    TooLargeError,
    Way,
    choose_files,
    load_reference,
    no_prediction,
    read_prediction,
    shared_pixel_findings,
    unreadable,
    unreadable_region,
    unusual_form,
    way_of,
    with_figures,
)
from napari_panoptic.nuclei.robustness import Robustness, robustness
from napari_panoptic.nuclei.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.nuclei.values.labels import LabelImage, LabelPair, Vanished
from napari_panoptic.nuclei.values.settings import (
    CHALLENGE_PROTOCOL,
    DEFAULT_PROTOCOL,
    PROTOCOLS,
    EvaluationSettings,
    Matching,
    Overlaps,
    Restoration,
    Scoring,
)

Shift = tuple[int, int]
NO_SHIFT: Shift = (0, 0)
SHIFTS: tuple[Shift, ...] = (
    NO_SHIFT,
    *((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != NO_SHIFT),
)
"""None, and one pixel in each of eight directions, as (dy, dx)."""

THRESHOLDS: tuple[float, ...] = tuple(percent / 100 for percent in range(5, 100, 5))
"""From 0.05 to 0.95 in steps of 0.05."""


@dataclass(frozen=True)
class Condition:
    """One way to evaluate.

    Parameters
    ----------
    name
        Unique among the conditions of an experiment.
    settings
        How to restore, match and score.
    source
        Which form of the predictions; None for the usual one.
    shift
        By how many whole px the predictions are moved, (dy, dx): down and to
        the right where positive. What leaves the image is lost, and a
        prediction that leaves it wholly is no prediction any more.
    """

    name: str
    settings: EvaluationSettings
    source: Source | None = None
    shift: Shift = NO_SHIFT

    def as_record(self) -> dict[str, Any]:
        """Return a plain dictionary, for JSON."""
        return {
            "name": self.name,
            "settings": self.settings.as_record(),
            "source": None if self.source is None else str(self.source),
            "shift": list(self.shift),
        }


@dataclass(frozen=True)
class Experiment:
    """Which teams are evaluated under which conditions: what is done with each region.

    Parameters
    ----------
    team_names
        The teams.
    conditions
        The conditions.
    with_objects
        Whether the rows of the objects are wanted, or the sums alone.
    held_up_to_px
        Larger regions are not evaluated here, but in windows: see
        `napari_panoptic.nuclei.windowed_regions`. Without effect on figures.
    """

    team_names: tuple[str, ...]
    conditions: tuple[Condition, ...]
    with_objects: bool = True
    held_up_to_px: int = HELD_UP_TO_PX

    def evaluate(self, cohort: Cohort, region: Region) -> list[list[RegionResult]]:
        """Evaluate one region; see :func:`evaluate_conditions`.

        Raises
        ------
        TooLargeError
            For a region that is not to be held.
        """
        return evaluate_conditions(
            cohort,
            region,
            self.team_names,
            self.conditions,
            with_objects=self.with_objects,
            held_up_to_px=self.held_up_to_px,
        )

    def as_record(self) -> dict[str, Any]:
        """Return a plain dictionary, for JSON."""
        return {
            "teams": list(self.team_names),
            "conditions": [condition.as_record() for condition in self.conditions],
            "with_objects": self.with_objects,
        }


# --- ready-made families ----------------------------------------------------------------------


def lessons_conditions(
    base: EvaluationSettings | None = None, *, source: Source | None = None
) -> tuple[Condition, ...]:
    """Return the four conditions of table 1 of Foucart et al. (Pattern Recognition, 2023).

    Two restorations by two matching rules, the rules of one restoration beside
    each other. Names are those of both, such as ``border-removed centroid``.

    Parameters
    ----------
    base
        All other settings; the defaults where None.
    source
        Which form of the predictions.
    """
    base = base or EvaluationSettings()
    return tuple(
        Condition(
            f"{restoration} {matching}",
            base.replaced(restoration=restoration, matching=matching),
            source,
        )
        for restoration in Restoration
        for matching in Matching
    )


def radius_conditions(
    radii: Iterable[int] = range(-3, 6),
    base: EvaluationSettings | None = None,
    *,
    source: Source | None = None,
) -> tuple[Condition, ...]:
    """Return a condition per radius in px by which objects grow, or shrink where negative."""
    base = (base or EvaluationSettings()).replaced(restoration=Restoration.BORDER_DILATED)
    return tuple(Condition(f"radius {r}", base.replaced(radius=r), source) for r in radii)


def threshold_conditions(
    thresholds: Iterable[float] = THRESHOLDS,
    base: EvaluationSettings | None = None,
    *,
    source: Source | None = None,
) -> tuple[Condition, ...]:
    """Return a condition per IoU that a pair must exceed to match."""
    base = (base or EvaluationSettings()).replaced(matching=Matching.STRICT_IOU)
    return tuple(
        Condition(f"IoU > {threshold:.2f}", base.replaced(iou_threshold=threshold), source)
        for threshold in thresholds
    )


def shift_conditions(
    shifts: Iterable[Shift] = SHIFTS,
    base: EvaluationSettings | None = None,
    *,
    source: Source | None = None,
) -> tuple[Condition, ...]:
    """Return a condition per shift in px: none first, then one pixel in eight directions."""
    settings = base or EvaluationSettings()
    return tuple(
        Condition(
            "no shift" if shift == NO_SHIFT else f"shift {shift[0]:+d} {shift[1]:+d}",
            settings,
            source,
            shift,
        )
        for shift in shifts
    )


def protocol_conditions(*, source: Source | None = None) -> tuple[Condition, ...]:
    """Return the disentangled evaluation, and the challenge's own scoring as it was run.

    The class scores of the latter tell every choice of corrections: see
    :func:`scored_regions` and `napari_panoptic.nuclei.protocols`.
    """
    names = (DEFAULT_PROTOCOL, CHALLENGE_PROTOCOL)
    return tuple(Condition(name, PROTOCOLS[name], source) for name in names)


# --- one region -------------------------------------------------------------------------------


def evaluate_conditions(
    cohort: Cohort,
    region: Region,
    team_names: Sequence[str],
    conditions: Sequence[Condition],
    *,
    with_objects: bool = True,
    held_up_to_px: int | None = None,
) -> list[list[RegionResult]]:
    """Evaluate several teams on one region under several conditions.

    Every file is read once. Masks are restored once per restoration and radius,
    the overlap of two masks is counted once, and distances are measured once
    per pair of outlines. Each result equals that of a single evaluation.

    Parameters
    ----------
    cohort, region, team_names
        What to evaluate.
    conditions
        How; in any order.
    with_objects
        Whether the rows of the objects are wanted, or the sums alone.
    held_up_to_px
        How many pixels the region may have; None for any number.

    Returns
    -------
    list of list of RegionResult
        Per condition, in their order, the teams in theirs. What cannot be
        read is a finding.

    Raises
    ------
    TooLargeError
        Where the region has more pixels.
    """
    if not conditions:
        return []
    try:
        reference = load_reference(
            cohort, region, conditions[0].settings, held_up_to_px=held_up_to_px
        )
    except TooLargeError:
        raise
    except (PanopticError, OSError) as error:
        return [unreadable_region(region, team_names, error) for _ in conditions]
    annotation = _Annotation(reference, way_of(conditions[0].settings))
    by_team = [
        _Team(cohort, region, annotation, team).evaluate(conditions, with_objects=with_objects)
        for team in team_names
    ]
    return [[results[number] for results in by_team] for number in range(len(conditions))]


def shifted(labels: LabelImage, shift: Shift) -> LabelImage:
    """Move all objects by whole pixels; not in place.

    Parameters
    ----------
    labels
        The objects.
    shift
        (dy, dx) in px.

    Returns
    -------
    LabelImage
        Of the same shape. Objects keep their ids; pixels that leave the image
        are lost, and objects of which none is left have vanished.
    """
    if shift == NO_SHIFT:
        return labels
    masks = _ShiftedMasks(labels.class_masks, shift)
    otherwise = None if labels.otherwise is None else partial(_shifted_whole, labels, shift)
    moved = replace(
        labels, index=_moved(labels.index, shift), class_masks=masks, otherwise=otherwise
    ).tidied()
    is_gone = ~np.isin(labels.ids, moved.ids)
    names = labels.class_names_of_objects()[is_gone].tolist()
    gone = [
        Vanished(id_, name, "moved out of the image")
        for id_, name in zip(labels.ids[is_gone].tolist(), names, strict=True)
    ]
    return replace(moved, vanished=(*labels.vanished, *gone))


def _shifted_whole(labels: LabelImage, shift: Shift) -> LabelImage:
    """Move objects with the pixels that they share."""
    whole = labels.with_overlaps(Overlaps.KEEP)
    planes = [_moved(plane, shift) for plane in whole.planes]
    flat = shifted(labels, shift)
    return flat.in_planes(planes, whole.ids, whole.class_index, whole.original_ids)


class _ShiftedMasks(Mapping[str, NDArray[np.int32]]):
    """The masks of single classes, moved when they are asked for, which few are."""

    def __init__(self, masks: Mapping[str, NDArray[np.int32]], shift: Shift) -> None:
        self._masks, self._shift = masks, shift

    def __getitem__(self, name: str) -> NDArray[np.int32]:
        return _moved(self._masks[name], self._shift)

    def __iter__(self) -> Iterator[str]:
        return iter(self._masks)

    def __len__(self) -> int:
        return len(self._masks)


def _moved(image: NDArray[np.int32], shift: Shift) -> NDArray[np.int32]:
    moved = np.zeros_like(image)
    (y_from, y_to), (x_from, x_to) = (
        (slice(max(-step, 0), max(size - step, 0)), slice(max(step, 0), max(size + step, 0)))
        for size, step in zip(image.shape, shift, strict=True)
    )
    moved[y_to, x_to] = image[y_from, x_from]
    return moved


class _Annotation:
    """The annotation of a region, restored once per way where it is colour-coded."""

    def __init__(self, read: ReferenceMasks, way: Way) -> None:
        self._read, self._known = read, {way: read}

    @property
    def is_restorable(self) -> bool:
        return self._read.is_restorable

    @property
    def shape(self) -> tuple[int, int]:
        return self._read.shape

    def restored(self, way: Way) -> ReferenceMasks:
        if not self.is_restorable:
            return self._read
        if way not in self._known:
            self._known[way] = self._read.restored(way)
        return self._known[way]


class _Team:
    """One team in one region, each of whose files is read once."""

    def __init__(self, cohort: Cohort, region: Region, annotation: _Annotation, name: str) -> None:
        self._cohort, self._region, self._annotation, self._name = cohort, region, annotation, name
        self._forms = cohort.predictions.get((name, region.name), {})
        self._read: dict[Source, tuple[LoadedMasks | None, tuple[Finding, ...], Way]] = {}

    def evaluate(
        self, conditions: Sequence[Condition], *, with_objects: bool
    ) -> list[RegionResult]:
        results: dict[int, RegionResult] = {}
        groups: dict[tuple[Source, Way | None], dict[Shift, list[int]]] = {}
        for number, condition in enumerate(conditions):
            files = choose_files(self._forms, condition.source)
            if files is None:
                missing = no_prediction(self._region, self._name, condition.source)
                results[number] = self._result(condition, (missing,))
                continue
            key = files.source, self._way(files, condition.settings)
            groups.setdefault(key, {}).setdefault(condition.shift, []).append(number)
        # One restoration after the other, so that the images of one are there at a time.
        for (form, way), by_shift in groups.items():
            restored = self._restored(form, way)
            for shift, numbers in by_shift.items():
                chosen = {number: conditions[number] for number in numbers}
                results |= self._of_pair(form, restored, shift, chosen, with_objects)
        return [results[number] for number in range(len(conditions))]

    def _way(self, files: MaskFiles, settings: EvaluationSettings) -> Way | None:
        """Return the way of restoration; None where there is nothing to restore."""
        if files.source not in self._read:
            masks, findings = read_prediction(
                self._cohort, self._region, self._name, files, self._annotation.shape, settings
            )
            self._read[files.source] = masks, findings, way_of(settings)
        masks = self._read[files.source][0]
        is_restorable = masks is not None and masks.restored is not None
        return way_of(settings) if is_restorable or self._annotation.is_restorable else None

    def _restored(
        self, form: Source, way: Way | None
    ) -> tuple[LoadedMasks | None, tuple[Finding, ...]]:
        masks, findings, first_way = self._read[form]
        if masks is None or masks.restored is None or way is None or way == first_way:
            return masks, findings
        restored = masks.restored(*way)
        return restored, restored.findings

    def _of_pair(
        self,
        form: Source,
        restored: tuple[LoadedMasks | None, tuple[Finding, ...]],
        shift: Shift,
        conditions: Mapping[int, Condition],
        with_objects: bool,
    ) -> dict[int, RegionResult]:
        """Evaluate one pair of masks under all conditions that ask for it."""
        masks, findings = restored
        results: dict[int, RegionResult] = {}
        known: _KnownPair | None = None
        lost: tuple[Finding, ...] = ()
        for number, condition in conditions.items():
            reference = self._annotation.restored(way_of(condition.settings))
            if masks is None or reference.masks is None:
                results[number] = self._result(condition, findings, None if masks is None else form)
                continue
            if known is None:
                moved = shifted(masks.labels, shift)
                lost = self._lost(masks.labels, moved, shift)
                known = _KnownPair(
                    LabelPair(
                        reference.masks.labels, moved, reference.masks.ambiguous, reference.mpp
                    )
                )
            try:
                evaluation = known.evaluate(condition.settings)
            except LabelError as error:
                problem = unreadable(error, region=self._region.name, team=self._name)
                results[number] = self._result(condition, (*findings, problem), form)
                continue
            shared = shared_pixel_findings(evaluation, self._region.name, self._name)
            results[number] = with_figures(
                self._result(condition, (*findings, *lost, *shared), form),
                evaluation,
                condition.settings,
                with_objects=with_objects,
            )
        return results

    def _result(
        self, condition: Condition, found: tuple[Finding, ...], form: Source | None = None
    ) -> RegionResult:
        """Return a result without figures: names, and what was odd."""
        reference = self._annotation.restored(way_of(condition.settings))
        findings = (*reference.findings, *found)
        if form is not None:
            files = self._forms[form]
            findings += unusual_form(
                self._cohort, self._region, self._name, files, condition.source
            )
        region = self._region
        return RegionResult(self._name, region.patient, region.name, None, None, findings=findings)

    def _lost(self, labels: LabelImage, moved: LabelImage, shift: Shift) -> tuple[Finding, ...]:
        gone = moved.vanished[len(labels.vanished) :]
        if not gone:
            return ()
        message = (
            f"{len(gone)} predicted object(s) left the image with a shift of {shift} px (y, x)"
        )
        return (
            Finding(
                FindingKind.OUTSIDE_IMAGE,
                message,
                region=self._region.name,
                team=self._name,
                count=len(gone),
                object_ids=tuple(object_.id for object_ in gone),
            ),
        )


class _KnownPair:
    """A label pair whose overlap and distances are kept for the next condition."""

    def __init__(self, pair: LabelPair) -> None:
        self._pair = pair
        self._whole: Evaluation | None = None
        self._by_class: ChallengeEvaluation | None = None

    def evaluate(self, settings: EvaluationSettings) -> Evaluation | ChallengeEvaluation:
        if settings.scoring is Scoring.CHALLENGE:
            self._by_class = evaluate_challenge(self._pair, settings, self._by_class)
            return self._by_class
        known = self._whole
        self._whole = (
            evaluate(self._pair, settings) if known is None else evaluate_again(known, settings)
        )
        return self._whole


# --- the whole cohort -------------------------------------------------------------------------


def cohort_robustness(
    regions: Iterable[Sequence[Sequence[RegionResult]]],
    experiment: Experiment,
    class_names: tuple[str, ...],
    *,
    neighbours: Sequence[tuple[int, int]] | None = None,
) -> Robustness:
    """Gather the results of all regions into curves of PQ, SQ and DQ and their ranks.

    Parameters
    ----------
    regions
        Per region what :func:`evaluate_conditions` gives; only sums are kept.
    experiment
        The teams and conditions that they were evaluated for.
    class_names
        The scored classes.
    neighbours
        Which conditions are compared; see
        `napari_panoptic.nuclei.robustness.robustness`.
    """
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


def scored_regions(results: Iterable[RegionResult]) -> dict[str, list[ScoredRegion]]:
    """Gather the class scores of results of the challenge's scoring, by team.

    From them `napari_panoptic.nuclei.protocols.protocol_table` computes
    every choice of corrections.
    """
    by_team: dict[str, list[ScoredRegion]] = {}
    for result in results:
        own = by_team.setdefault(result.team, [])
        if result.scores is not None:
            own.append(ScoredRegion(result.patient, result.region, result.scores))
    return by_team
