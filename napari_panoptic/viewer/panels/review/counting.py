"""The progress of the review, and the figures with and without annotation errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from psygnal import Signal

from napari_panoptic.review.judged import Judged, Subjects
from napari_panoptic.review.progress import (
    ReviewProgress,
    evaluated_region,
    figures_of,
    progress_of,
    progress_without_verdicts,
)
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import Share
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.viewer.jobs.jobs import FORESEEN, Job, Stream
from napari_panoptic.viewer.panels.region_panel import Sight
from napari_panoptic.viewer.panels.review.chosen import UnderReview
from napari_panoptic.viewer.panels.review.panel import BeforeAfter


@dataclass(frozen=True)
class CountingTask:
    """Which regions to go through, and how; equal tasks have equal answers."""

    #: Whose predictions, and how they are judged.
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
        self._task: CountingTask | None = None
        self._stream: Stream[ReviewProgress | None] = Stream(self._take, ended=self.changed.emit)
        self._lines: dict[str, ReviewProgress] = {}
        self.done, self.total = 0, 0

    @property
    def lines(self) -> Mapping[str, ReviewProgress]:
        """Region -> its line, as far as computed."""
        return self._lines

    @property
    def is_busy(self) -> bool:
        """Whether lines are still to come."""
        return self._stream.is_busy

    def put(self, task: CountingTask, line: ReviewProgress) -> None:
        """Take the line of the region that is shown, which is known already."""
        self._follow(task)
        self._lines[line.region] = line

    def forget(self, regions: Sequence[str]) -> None:
        """Forget lines that are outdated."""
        for region in regions:
            self._lines.pop(region, None)

    def start(self, task: CountingTask, store: ReviewStore, regions: Sequence[str]) -> None:
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

    def _follow(self, task: CountingTask) -> None:
        if task != self._task:
            self.stop()
            self._task = task
            self._lines = {}

    def _take(self, line: ReviewProgress | None) -> None:
        self.done += 1
        if line is not None:
            # The region shown is up to date; what the worker read may not be.
            self._lines.setdefault(line.region, line)
        self.changed.emit()


def _lines(
    cohort: Cohort,
    task: CountingTask,
    store: ReviewStore,
    regions: Sequence[str],
    _job: Job[ReviewProgress | None],
) -> Iterator[ReviewProgress | None]:
    for region in regions:
        try:
            yield _line(cohort, task, store, region)
        except FORESEEN:
            # Shown with the region itself; here it only cannot be counted.
            yield None


def _line(
    cohort: Cohort, task: CountingTask, store: ReviewStore, name: str
) -> ReviewProgress | None:
    evaluation = evaluated_region(cohort, name, task.team, task.settings, task.source)
    if evaluation is None:
        return None
    subjects = Subjects(evaluation, region=name, team=task.team)
    return progress_of(Judged(evaluation, subjects.find(store.current(region=name))), name)


class ReviewCounting:
    """Counts the verdicts of the cohort in the background, and shows them while seen.

    Parameters
    ----------
    review
        The review.
    sight
        Whether the panel is visible.
    """

    def __init__(self, review: UnderReview, sight: Sight) -> None:
        self._session, self._link = review.around.session, review.around.link
        self._panel, self._reviewing = review.panel, review.reviewing
        self._verdicts, self._sight = review.verdicts, sight
        self._shown: dict[str, int] = {}
        self._lines = ReviewLines(self._session.cohort)
        self._lines.changed.connect(self.show)
        self.is_stale = True

    @property
    def is_busy(self) -> bool:
        """Whether regions are being counted."""
        return self._lines.is_busy

    def close(self) -> None:
        """Stop counting."""
        self._lines.changed.disconnect(self.show)
        self._lines.stop()

    def stop(self) -> None:
        """Stop counting after the region that is being counted."""
        self._lines.stop()

    def forget(self, regions: Sequence[str]) -> None:
        """Count some regions again."""
        self._lines.forget([region for region in regions if region != self._region])

    def forget_all(self) -> None:
        """Count all regions again: other verdicts apply."""
        self._lines.stop()
        self._lines.forget([region.name for region in self._session.cohort.regions])

    def take(self, judged: Judged | None) -> None:
        """Take the verdicts on what is shown; out of sight, figures are computed later."""
        self._verdicts.keep(judged)
        self.show_reviewed()
        if not self._sight.is_seen:
            self.is_stale = True
            self._lines.forget([self._region])  # outdated
            return
        task = self._task()
        if task is not None and judged is not None:
            self._lines.put(task, progress_of(judged, self._region))
        self.show()

    def count_others(self) -> None:
        """Count the regions with verdicts that are not counted yet."""
        task, store = self._task(), self._reviewing.store
        if task is None or store is None or self._session.snapshot is None:
            return
        known = {region.name for region in self._session.cohort.regions} - {self._region}
        reviewed = self._reviewing.reviewed_regions()
        self._lines.start(task, store, [region for region in reviewed if region in known])

    def show_reviewed(self) -> None:
        """Show in the table of regions how much is reviewed, whether the panel is seen or not."""
        numbers = self._verdicts.reviewed()
        shown = numbers if any(numbers.values()) else {}
        if shown != self._shown:
            self._shown = shown
            self._link.panels.navigator.show_reviewed(shown)

    def show(self) -> None:
        """Show progress and figures, once the panel is seen."""
        self.is_stale = not self._sight.is_seen
        if self.is_stale:
            return
        of_regions = self._all_lines()
        lines = list(of_regions.values())
        here = self._lines.lines.get(self._region)
        if self._session.evaluation is None:
            here = None
        cohort = Share(*self._verdicts.counts())
        self._panel.show_progress(
            None if here is None else Share(here.done, here.total),
            cohort if lines else None,
            busy=self._busy(),
            can_stop=self._lines.is_busy,
        )
        units = []
        if here is not None:
            units.append(BeforeAfter("region", *figures_of([here], self._session.cohort)))
        if lines:
            units.append(BeforeAfter("cohort", *figures_of(lines, self._session.cohort)))
        self._panel.show_figures(units)

    def _all_lines(self) -> dict[str, ReviewProgress]:
        found = {}
        for (region, team), summary in self._session.summaries.items():
            if team == self._session.team:
                line = self._lines.lines.get(region) or progress_without_verdicts(summary)
                if line is not None:
                    found[region] = line
        return found

    def _busy(self) -> tuple[int, int] | None:
        """Return the number of regions counted, and to count; None if all are."""
        if self._lines.is_busy:
            return self._lines.done, self._lines.total
        evaluated = sum(team == self._session.team for _, team in self._session.summaries)
        total = len(self._session.cohort.regions)
        is_evaluating = self._link.summary.is_busy and evaluated < total
        return (evaluated, total) if is_evaluating else None

    @property
    def _region(self) -> str:
        snapshot = self._session.snapshot
        return "" if snapshot is None else snapshot.region.name

    def _task(self) -> CountingTask | None:
        session = self._session
        if session.team is None:
            return None
        return CountingTask(session.team, session.settings, session.source)
