"""A cohort under many conditions at once: files are read once, and pixels counted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.nuclei.class_masks import ClassEvaluations
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.regions.conditions import Condition, Robustness, robustness
from napari_panoptic.nuclei.regions.reading import (
    TooLargeError,
    region_size,
)
from napari_panoptic.nuclei.regions.region import (
    Evaluated,
    HeldRegion,
    WindowedRegion,
    one_slide,
    slide_workers,
)
from napari_panoptic.nuclei.regions.result_store import PartStore
from napari_panoptic.nuclei.regions.results import (
    RegionResult,
    stored_rows,
    unreadable_region,
    with_figures,
)
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.reading import HELD_UP_TO_PX
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.windowed_labels import TiledPair


@dataclass(frozen=True)
class Experiment:
    """Which teams are evaluated under which conditions."""

    #: The teams.
    team_names: tuple[str, ...]
    #: The conditions.
    conditions: tuple[Condition, ...]
    #: Whether to include the rows of the objects, or the sums only.
    with_objects: bool = True
    #: Further conditions, of which only the sums are included. Their results follow the others.
    sums_of: tuple[Condition, ...] = ()
    #: Larger regions are read in windows: see :func:`evaluate_slide`. Without effect on figures.
    held_up_to_px: int = HELD_UP_TO_PX

    @property
    def all_conditions(self) -> tuple[Condition, ...]:
        """The conditions in the order of results."""
        return (*self.conditions, *self.sums_of)

    def includes_objects(self, number: int) -> bool:
        """Return whether to include the rows of the objects under one of `all_conditions`."""
        return self.with_objects and number < len(self.conditions)

    def evaluate(
        self,
        cohort: Cohort,
        region: Region,
        *,
        store: PartStore | None = None,
        progress: Progress = UNWATCHED,
    ) -> list[list[RegionResult]]:
        """Evaluate one region, window by window if it is too large to hold: see `evaluate_slide`.

        Every file is read once. Masks are restored once per restoration and radius,
        the overlap of two masks is counted once, and distances are measured once
        per pair of outlines. Each result equals that of a single evaluation.

        Returns
        -------
        list of list of RegionResult
            Per condition, in their order, the teams in theirs. What cannot be
            read is a finding.
        """
        if not self.all_conditions:
            return []
        settings = self.all_conditions[0].settings
        try:
            held = HeldRegion(cohort, region, settings, held_up_to_px=self.held_up_to_px)
        except TooLargeError:
            return evaluate_slide(cohort, region, self, store=store, progress=progress)
        except (PanopticError, OSError) as error:
            return [unreadable_region(region, self.team_names, error) for _ in self.all_conditions]
        by_team = [_of_team(held, region, team, self) for team in self.team_names]
        numbers = range(len(self.all_conditions))
        return [[results[number] for results in by_team] for number in numbers]

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """All of it as a plain dictionary, for JSON."""
        return {
            "teams": list(self.team_names),
            "conditions": [condition.as_record() for condition in self.conditions],
            "with_objects": self.with_objects,
            "sums_of": [condition.as_record() for condition in self.sums_of],
        }


# --- one region, held in memory ---------------------------------------------------------------


def _of_team(
    held: HeldRegion,
    region: Region,
    team: str,
    work: Experiment,
) -> list[RegionResult]:
    """Evaluate a team, one restoration after the other, so that one is in memory at a time."""
    results: dict[int, RegionResult] = {}
    known: dict[tuple[Any, ...], RegionResult] = {}
    conditions = work.all_conditions
    for number in sorted(range(len(conditions)), key=lambda number: _pair_of(conditions[number])):
        condition = conditions[number]
        settings = condition.settings
        source, shift = condition.source, condition.shift
        with_objects = work.includes_objects(number)
        key = held.in_effect(team, settings, source), source, shift, with_objects
        if key not in known:
            evaluate = held.score if settings.takes_class_masks else held.evaluate
            found: Evaluated[Evaluation | ClassEvaluations] = evaluate(
                team, settings, source, shift
            )
            known[key] = region_result(region, team, found, settings, with_objects=with_objects)
        results[number] = known[key]
    held.forget(team)
    return [results[number] for number in range(len(conditions))]


def region_result(
    region: Region,
    team: str,
    found: Evaluated[Evaluation | Evaluation[TiledPair] | ClassEvaluations],
    settings: EvaluationSettings,
    *,
    with_objects: bool = True,
) -> RegionResult:
    """Return the result of a team in a region without the pixels behind it."""
    result = RegionResult(team, region.patient, region.name, None, None, findings=found.findings)
    if found.evaluation is None:
        return result
    return with_figures(result, found.evaluation, settings, with_objects=with_objects)


def _pair_of(condition: Condition) -> tuple[Any, ...]:
    """Return what decides the label pair: conditions that share it are evaluated together."""
    settings = condition.settings
    return (
        str(condition.source),
        str(settings.restoration),
        settings.dilation_radius,
        condition.shift,
        str(settings.overlaps),
    )


# --- one region, read in windows --------------------------------------------------------------


def evaluate_slide(
    cohort: Cohort,
    region: Region,
    work: Experiment,
    *,
    store: PartStore | None = None,
    progress: Progress = UNWATCHED,
) -> list[list[RegionResult]]:
    """Evaluate one region window by window.

    Figures equal those of `Experiment.evaluate`.

    Parameters
    ----------
    cohort, region, work
        What to evaluate.
    store
        Where to store the rows of objects, which may be too many to hold; None
        to hold them in memory.
    progress
        Reported after each window, and checked for cancellation before each.

    Returns
    -------
    list of list of RegionResult
        Per condition, in their order, the teams in theirs. What cannot be
        read, or not be done in windows, is a finding.

    Raises
    ------
    StoppedError
        If cancelled.
    """
    try:
        size = region_size(cohort, region)
    except (PanopticError, OSError) as error:
        return [unreadable_region(region, work.team_names, error) for _ in work.all_conditions]
    results: list[list[RegionResult]] = [[] for _ in work.all_conditions]
    with one_slide(progress):
        slide = WindowedRegion(cohort, region, size)
        for place, team in enumerate(work.team_names):
            for number, condition in enumerate(work.all_conditions):
                found = slide.evaluate(
                    team,
                    condition.settings,
                    condition.source,
                    condition.shift,
                    progress=progress,
                    workers=slide_workers(),
                )
                found = replace(found, of_annotation=(*size.findings, *found.of_annotation))
                has_rows = work.includes_objects(number)
                result = region_result(
                    region,
                    team,
                    found,
                    condition.settings,
                    with_objects=has_rows and store is None,
                )
                if has_rows and store is not None and found.evaluation is not None:
                    path = store.rows_path(region.name, place * len(work.conditions) + number)
                    result = stored_rows(result, found.evaluation.outcomes, path)
                results[number].append(result)
            slide.forget(team)
    return results


def left_out_of_reports(results: Sequence[RegionResult]) -> Finding | None:
    """Return a finding on what a report leaves out of regions that were read in windows.

    Parameters
    ----------
    results
        As evaluated with a store, which keeps rows of such regions in files.

    Returns
    -------
    Finding or None
        None if there is no such region among them.
    """
    names = list(dict.fromkeys(result.region for result in results if result.rows is not None))
    if not names:
        return None
    message = (
        f"{counted(len(names), 'region')} too large to be held, evaluated in windows: "
        f"{english_list(names)}. Such regions count in every figure but those by size and by "
        f"cause, the worst failures, shifts, and the challenge's scoring, which are of the other "
        f"regions alone and do not compare with those that have them"
    )
    region = names[0] if len(names) == 1 else None
    return Finding(FindingKind.FALLBACK, message, region=region, count=len(names))


# --- the whole cohort -------------------------------------------------------------------------


class PatientSums:
    """Counts under many conditions, summed over patients in the order of the regions.

    Parameters
    ----------
    team_names, conditions
        Which teams were evaluated, and how.
    class_names
        The scored classes.
    """

    def __init__(
        self,
        team_names: Sequence[str],
        conditions: tuple[Condition, ...],
        class_names: tuple[str, ...],
    ) -> None:
        self._conditions, self._class_names = conditions, class_names
        self._zero = Counts.zero(class_names)
        self._sums: dict[str, list[dict[str, Counts]]] = {
            team: [{} for _ in conditions] for team in team_names
        }

    def add(self, region: Sequence[Sequence[RegionResult]]) -> None:
        """Add the results of a region: per condition, the teams."""
        for number, results in enumerate(region):
            for result in results:
                if result.counts is not None:
                    sums = self._sums[result.team][number]
                    known = sums.get(result.patient, self._zero)
                    sums[result.patient] = known + result.counts

    def robustness(self, neighbours: Sequence[tuple[int, int]] | None = None) -> Robustness:
        """Return curves of PQ, SQ and DQ and their ranks under each condition.

        Parameters
        ----------
        neighbours
            Which conditions are compared; see
            `napari_panoptic.nuclei.regions.conditions.robustness`.
        """
        counts = {
            team: [list(sums.items()) for sums in by_condition]
            for team, by_condition in self._sums.items()
        }
        names = tuple(condition.name for condition in self._conditions)
        return robustness(counts, names, self._class_names, neighbours=neighbours)


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
        Per region the result of `Experiment.evaluate`; only sums are kept.
    experiment
        The teams and conditions that they were evaluated for.
    class_names
        The scored classes.
    neighbours
        Which conditions are compared; see
        `napari_panoptic.nuclei.regions.conditions.robustness`.
    """
    sums = PatientSums(experiment.team_names, experiment.conditions, class_names)
    for by_condition in regions:
        sums.add(by_condition)
    return sums.robustness(neighbours)
