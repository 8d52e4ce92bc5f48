"""The progress of the review, and the figures with and without annotation errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from napari_panoptic.review.cohort_verdicts import CohortVerdicts
from napari_panoptic.review.judged import Judged, Subjects
from napari_panoptic.review.progress import (
    ReviewProgress,
    evaluated_region,
    figures_of,
    progress_of,
    progress_without_verdicts,
)
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import Share
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.viewer.jobs.jobs import FORESEEN, Job, Stream
from napari_panoptic.viewer.panels.part import Surroundings
from napari_panoptic.viewer.panels.region_panel import Sight
from napari_panoptic.viewer.panels.review.panel import BeforeAfter, ReviewPanel


@dataclass(frozen=True)
class CountingTask:
    """Which regions to go through, and how; equal tasks have equal answers."""

    #: Whose predictions, and how they are judged.
    team: str
    settings: EvaluationSettings
    source: Source | None


class ReviewCounting:
    """Counts the verdicts of the cohort in the background, and shows them while seen.

    Parameters
    ----------
    around
        The session and the desk.
    panel
        Where progress and figures are shown.
    reviewing
        The review.
    verdicts
        The verdicts on the failures of the cohort.
    """

    def __init__(
        self,
        around: Surroundings,
        panel: ReviewPanel,
        reviewing: Reviewing,
        verdicts: CohortVerdicts,
    ) -> None:
        self._session, self._link, self._panel = around.session, around.link, panel
        self._reviewing, self._verdicts = reviewing, verdicts
        self._sight = Sight.of(panel)
        self._shown: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})
        self._task: CountingTask | None = None
        self._lines: dict[str, ReviewProgress] = {}
        """Region -> its line, as far as computed."""
        self._work: Stream[ReviewProgress | None] = Stream(self._take_line, ended=self.show)
        self._counted, self._to_count = 0, 0
        self.is_stale = True
        self.mended: Callable[[str], Mapping[str, int]] = lambda _team: {}
        """Return region -> the number of failures of a team that were mended."""

    @property
    def is_busy(self) -> bool:
        """Whether regions are being counted."""
        return self._work.is_busy

    def close(self) -> None:
        """Stop counting."""
        self._work.close()

    def stop(self) -> None:
        """Stop counting after the region that is being counted."""
        if self.is_busy:
            self._work.stop()
            self.show()

    def forget(self, regions: Iterable[str]) -> None:
        """Count some regions again; the shown one is up to date."""
        for region in set(regions) - {self._region}:
            self._lines.pop(region, None)

    def forget_all(self) -> None:
        """Count all regions again: other verdicts apply."""
        self.stop()
        self._lines.clear()

    def take(self, judged: Judged | None) -> None:
        """Take the verdicts on the shown region; out of sight, figures are computed later."""
        self._verdicts.keep(judged)
        self.show_reviewed()
        if not self._sight.is_seen:
            self.is_stale = True
            self._lines.pop(self._region, None)  # outdated
            return
        if judged is not None and self._follow_task() is not None:
            self._lines[self._region] = progress_of(judged, self._region)
        self.show()

    def count_others(self) -> None:
        """Count the regions with verdicts that are not counted yet."""
        store, session = self._reviewing.store, self._session
        if store is None or session.snapshot is None or (task := self._follow_task()) is None:
            return
        known = {region.name for region in session.cohort.regions} - {self._region, *self._lines}
        missing = [name for name in self._reviewing.reviewed_regions() if name in known]
        if missing and not self.is_busy:
            self._counted, self._to_count = 0, len(missing)
            self._work.start(partial(_lines, session.cohort, task, store, missing))
            self.show()

    def show_reviewed(self) -> None:
        """Show in the table of regions how much is reviewed, whether the panel is seen or not."""
        numbers = self._verdicts.reviewed()
        judged = numbers if any(numbers.values()) else {}
        shown = judged, self.mended(self._session.team or "")
        if shown != self._shown:
            self._shown = shown
            self._link.panels.navigator.show_reviewed(*shown)

    def show(self) -> None:
        """Show progress and figures, once the panel is seen."""
        self.is_stale = not self._sight.is_seen
        if self.is_stale:
            return
        session = self._session
        lines = list(self._all_lines())
        here = None if session.evaluation is None else self._lines.get(self._region)
        mended = self.mended(session.team or "")
        self._panel.show_progress(
            None if here is None else Share(here.done, here.total),
            Share(*self._verdicts.counts()) if lines else None,
            mended=(mended.get(self._region, 0), sum(mended.values())),
            busy=self._busy(),
            can_stop=self.is_busy,
        )
        units = []
        if here is not None:
            units.append(BeforeAfter("region", *figures_of([here], session.cohort)))
        if lines:
            units.append(BeforeAfter("cohort", *figures_of(lines, session.cohort)))
        self._panel.show_figures(units)

    def _take_line(self, line: ReviewProgress | None) -> None:
        self._counted += 1
        if line is not None:
            # The region shown is up to date; what the worker read may not be.
            self._lines.setdefault(line.region, line)
        self.show()

    def _follow_task(self) -> CountingTask | None:
        """Return the subject of counting, None without a team; forget the lines of others."""
        session = self._session
        if session.team is None:
            return None
        task = CountingTask(session.team, session.settings, session.source)
        if task != self._task:
            self.stop()
            self._task, self._lines = task, {}
        return task

    def _all_lines(self) -> Iterator[ReviewProgress]:
        for (region, team), summary in self._session.summaries.items():
            if team == self._session.team:
                line = self._lines.get(region) or progress_without_verdicts(summary)
                if line is not None:
                    yield line

    def _busy(self) -> tuple[int, int] | None:
        """Return the number of regions counted, and to count; None if all are."""
        if self.is_busy:
            return self._counted, self._to_count
        evaluated = sum(team == self._session.team for _, team in self._session.summaries)
        total = len(self._session.cohort.regions)
        is_evaluating = self._link.summary.is_busy and evaluated < total
        return (evaluated, total) if is_evaluating else None

    @property
    def _region(self) -> str:
        snapshot = self._session.snapshot
        return "" if snapshot is None else snapshot.region.name


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
