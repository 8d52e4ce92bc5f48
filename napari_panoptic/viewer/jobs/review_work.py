"""Counts the verdicts of a cohort in the background, region by region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from psygnal import Signal

from napari_panoptic.nuclei.values.cohort import Cohort, Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.review.judged import Judged, Subjects
from napari_panoptic.review.progress import RegionLine, evaluated_region, line_of
from napari_panoptic.review.reviewing import read_verdicts
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.viewer.jobs.jobs import FORESEEN, Job, Stream


@dataclass(frozen=True)
class Task:
    """Which regions to go through, and how; equal tasks have equal answers.

    Parameters
    ----------
    team, settings, source
        Whose predictions, and how they are judged.
    """

    team: str
    settings: EvaluationSettings
    source: Source | None


class ReviewLines:
    """Goes through the regions with verdicts in the background, and keeps their lines.

    Parameters
    ----------
    cohort
        What is reviewed.
    """

    changed = Signal()

    def __init__(self, cohort: Cohort) -> None:
        self._cohort = cohort
        self._task: Task | None = None
        self._stream: Stream[RegionLine | None] = Stream(self._take, ended=self.changed.emit)
        self._lines: dict[str, RegionLine] = {}
        self.done, self.total = 0, 0

    @property
    def lines(self) -> Mapping[str, RegionLine]:
        """Region -> its line, as far as computed."""
        return self._lines

    @property
    def is_busy(self) -> bool:
        """Whether lines are still to come."""
        return self._stream.is_busy

    def put(self, task: Task, line: RegionLine) -> None:
        """Take the line of the region that is shown, which is known already."""
        self._follow(task)
        self._lines[line.region] = line

    def forget(self, regions: Sequence[str]) -> None:
        """Forget lines that are outdated."""
        for region in regions:
            self._lines.pop(region, None)

    def start(self, task: Task, store: ReviewStore, regions: Sequence[str]) -> None:
        """Compute the lines of the regions that are not known yet."""
        self._follow(task)
        missing = [region for region in regions if region not in self._lines]
        if not missing or self.is_busy:
            return
        self.done, self.total = 0, len(missing)
        self._stream.start(partial(_lines, self._cohort, task, store, missing))
        self.changed.emit()

    def stop(self) -> None:
        """Stop after the region that is being computed."""
        if self.is_busy:
            self._stream.stop()
            self.changed.emit()

    def _follow(self, task: Task) -> None:
        if task != self._task:
            self.stop()
            self._task = task
            self._lines = {}

    def _take(self, line: RegionLine | None) -> None:
        self.done += 1
        if line is not None:
            # The region shown is up to date; what the worker read may not be.
            self._lines.setdefault(line.region, line)
        self.changed.emit()


def _lines(
    cohort: Cohort,
    task: Task,
    store: ReviewStore,
    regions: Sequence[str],
    _job: Job[RegionLine | None],
) -> Iterator[RegionLine | None]:
    for region in regions:
        try:
            yield _line(cohort, task, store, region)
        except FORESEEN:
            # Shown with the region itself; here it only cannot be counted.
            yield None


def _line(cohort: Cohort, task: Task, store: ReviewStore, name: str) -> RegionLine | None:
    evaluation = evaluated_region(cohort, name, task.team, task.settings, task.source)
    if evaluation is None:
        return None
    subjects = Subjects(evaluation, region=name, team=task.team)
    return line_of(Judged(evaluation, read_verdicts(store, subjects, region=name)), name)
