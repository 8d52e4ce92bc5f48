"""Regions too large to hold, evaluated in windows: for the runs over whole cohorts."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

import pandas as pd

from napari_panoptic.common.errors import Finding, FindingKind, PanopticError, english_list
from napari_panoptic.common.progress import UNWATCHED, Progress, StoppedError
from napari_panoptic.common.visible import UNENCODABLE
from napari_panoptic.io.fingerprints import file_stamps
from napari_panoptic.nuclei.conditions import NO_SHIFT, Condition, Experiment
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.outcomes import Outcomes, SideOutcomes
from napari_panoptic.nuclei.reading import (
    OpenedMasks,
    RegionResult,
    RegionSize,
    RowsFile,
    choose_files,
    findings_after,
    no_prediction,
    not_in_windows,
    open_side,
    region_size,
    unreadable,
    unreadable_region,
    unusual_form,
    write_rows,
)
from napari_panoptic.nuclei.result_store import PartStore
from napari_panoptic.nuclei.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.nuclei.values.settings import Overlaps, Scoring
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.nuclei.values.windowed_labels import TiledPair
from napari_panoptic.nuclei.windowed_evaluation import (
    evaluate_tiles,
    evaluate_tiles_again,
)

_ROWS_AT_A_TIME = 50_000
_PATIENCE_S = 0.2
_MOST_WORKERS = 8
# Each slide keeps all processors busy, and takes much memory.
_ONE_SLIDE = threading.Lock()


def evaluate_slide(
    cohort: Cohort,
    region: Region,
    work: Experiment,
    *,
    store: PartStore | None = None,
    progress: Progress = UNWATCHED,
) -> list[list[RegionResult]]:
    """Evaluate one region window by window.

    Figures equal those of `napari_panoptic.nuclei.conditions.evaluate_conditions`.

    Parameters
    ----------
    cohort, region, work
        What to evaluate.
    store
        Where to keep the rows of objects, which may be too many to hold; None
        to hold them nevertheless.
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
        return [unreadable_region(region, work.team_names, error) for _ in work.conditions]
    with _turn(progress):
        slide = _Slide(cohort, region, size, work, store, progress)
        by_team = [slide.evaluate(place, team) for place, team in enumerate(work.team_names)]
    return [[results[number] for results in by_team] for number in range(len(work.conditions))]


@contextmanager
def _turn(progress: Progress) -> Iterator[None]:
    """Wait until no other slide is in work."""
    while not _ONE_SLIDE.acquire(timeout=_PATIENCE_S):
        progress.check()
    try:
        yield
    finally:
        _ONE_SLIDE.release()


class _Slide:
    """One slide, whose annotation is opened once for all teams."""

    def __init__(
        self,
        cohort: Cohort,
        region: Region,
        size: RegionSize,
        work: Experiment,
        store: PartStore | None,
        progress: Progress,
    ) -> None:
        self._cohort, self._region, self._size = cohort, region, size
        self._work, self._store, self._progress = work, store, progress
        self._stamps: dict[Path, str | None] = {}
        self._reference = OpenedMasks(None)
        if region.reference is not None:
            self._reference = self._opened(region.reference, None)

    def evaluate(self, place: int, team: str) -> list[RegionResult]:
        """Evaluate one team under all conditions; its files are opened, and counted, once."""
        forms = self._cohort.predictions.get((team, self._region.name), {})
        opened: dict[Source, OpenedMasks] = {}
        known: dict[Source, Evaluation[TiledPair]] = {}
        results = []
        for number, condition in enumerate(self._work.conditions):
            files = choose_files(forms, condition.source)
            if files is None:
                missing = no_prediction(self._region, team, condition.source)
                results.append(self._result(team, (*self._reference.findings, missing)))
                continue
            if files.source not in opened:
                opened[files.source] = self._opened(files, team)
            rows_number = place * len(self._work.conditions) + number
            results.append(
                self._of_condition(team, condition, files, opened[files.source], known, rows_number)
            )
        return results

    def _of_condition(
        self,
        team: str,
        condition: Condition,
        files: MaskFiles,
        prediction: OpenedMasks,
        known: dict[Source, Evaluation[TiledPair]],
        rows_number: int,
    ) -> RegionResult:
        reference = self._reference
        findings = (*reference.findings, *prediction.findings)
        if prediction.masks is None:
            return self._result(team, findings)
        unusual = unusual_form(self._cohort, self._region, team, files, condition.source)
        if reference.masks is None:
            return self._result(team, (*findings, *unusual))
        if (not_here := self._not_here(condition, team)) is not None:
            return self._result(team, (*findings, *unusual, not_here))
        try:
            found = self._evaluated(
                TiledPair(
                    reference.masks.labels,
                    prediction.masks.labels,
                    reference.masks.ambiguous,
                    self._size.mpp,
                ),
                condition,
                known.get(files.source),
            )
        except StoppedError:
            raise
        except (PanopticError, OSError) as error:
            # A file that is being replaced can look damaged.
            broken = unreadable(error, region=self._region.name, team=team)
            what = self._changed(files, team) or (broken,)
            return self._result(team, (*findings, *unusual, *what))
        if changed := self._changed(files, team):
            return self._result(team, (*findings, *unusual, *changed))
        known[files.source] = found
        findings = (
            *reference.findings,
            *findings_after(reference.masks, found.table.reference.area > 0, self._region, None),
            *prediction.findings,
            *findings_after(prediction.masks, found.table.prediction.area > 0, self._region, team),
            *unusual,
        )
        result = replace(self._result(team, findings), counts=found.counts)
        return self._with_objects(result, found, rows_number)

    def _evaluated(
        self,
        pair: TiledPair,
        condition: Condition,
        known: Evaluation[TiledPair] | None,
    ) -> Evaluation[TiledPair]:
        workers = min(os.cpu_count() or 1, _MOST_WORKERS)
        if known is not None:
            return evaluate_tiles_again(
                known,
                condition.settings,
                progress=self._progress,
                workers=workers,
            )
        return evaluate_tiles(
            pair,
            condition.settings,
            progress=self._progress,
            workers=workers,
        )

    def _opened(self, files: MaskFiles, team: str | None) -> OpenedMasks:
        # What changes from here on can be read in part as it was, in part as it is then.
        self._stamps = file_stamps(files.all_paths) | self._stamps
        return open_side(self._cohort, self._region, self._size.shape, files, team, self._progress)

    def _changed(self, files: MaskFiles, team: str) -> tuple[Finding, ...]:
        """Tell of the files of a pair that are not those any more that were opened."""
        own = self._region.reference
        now = file_stamps((*(() if own is None else own.all_paths), *files.all_paths))
        return tuple(
            Finding(
                FindingKind.CHANGED,
                f"{path.name} was changed or removed while the slide was read, window by window, "
                f"of which some would be of before and some of after: {team} is not evaluated "
                f"in {self._region.name}; run the same again",
                path=path,
                region=self._region.name,
                team=team,
            )
            for path, stamp in now.items()
            if stamp != self._stamps[path]
        )

    def _not_here(self, condition: Condition, team: str) -> Finding | None:
        """Describe what cannot be done in windows."""
        what = ""
        if condition.settings.scoring is Scoring.CHALLENGE:
            what = "the challenge's scoring, which scores the masks of each class by themselves,"
        elif condition.shift != NO_SHIFT:
            what = "a shift of the predictions"
        elif condition.settings.overlaps is Overlaps.KEEP:
            what = "keeping the pixels that objects share"
        return not_in_windows(self._region, team, what) if what else None

    def _result(self, team: str, findings: tuple[Finding, ...]) -> RegionResult:
        region = self._region
        return RegionResult(
            team,
            region.patient,
            region.name,
            None,
            None,
            findings=(*self._size.findings, *findings),
        )

    def _with_objects(
        self, result: RegionResult, found: Evaluation[TiledPair], number: int
    ) -> RegionResult:
        if not self._work.with_objects:
            return result
        if self._store is None:
            return replace(result, objects=found.objects)
        path = self._store.rows_path(self._region.name, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", errors=UNENCODABLE, newline="") as file:
            for frame in object_frames(found.outcomes, _ROWS_AT_A_TIME):
                write_rows(file, frame, result)
        return replace(result, rows=RowsFile.of(path))


def left_out_of_reports(results: Sequence[RegionResult]) -> Finding | None:
    """Describe what a report does not show of regions that were evaluated in windows.

    Parameters
    ----------
    results
        As evaluated with a store, where rows of such regions are kept in files.

    Returns
    -------
    Finding or None
        None where there is no such region among them.
    """
    names = list(dict.fromkeys(result.region for result in results if result.rows is not None))
    if not names:
        return None
    message = (
        f"{len(names)} region(s) were too large to be held and evaluated in windows: "
        f"{english_list(names)}. They count in every figure but those by size and by cause, the "
        f"worst failures, shifts, and the challenge's scoring, which are of the other regions "
        f"alone and do not compare with those that have them"
    )
    region = names[0] if len(names) == 1 else None
    return Finding(FindingKind.FALLBACK, message, region=region, count=len(names))


def object_frames(outcomes: Outcomes, at_most: int) -> Iterator[pd.DataFrame]:
    """Yield the rows of `Outcomes.to_frame` in their order, a bounded number at a time.

    Parameters
    ----------
    outcomes
        What became of every object.
    at_most
        So many rows in a frame.
    """
    for side in Side:
        own = outcomes.side(side)
        for start in range(0, len(own), at_most):
            part = _part(own, slice(start, start + at_most))
            is_reference = side is Side.REFERENCE
            yield replace(
                outcomes,
                reference=part if is_reference else outcomes.reference,
                prediction=outcomes.prediction if is_reference else part,
            ).side_frame(side)


def _part(side: SideOutcomes, rows: slice) -> SideOutcomes:
    arrays = {f.name: getattr(side, f.name)[rows] for f in fields(side) if f.name != "side"}
    return SideOutcomes(side=side.side, **arrays)
