"""Work in other threads: loading regions, evaluating the cohort, compiling kernels.

Workers compute and touch nothing; what they bring is handed over on the main
thread. Each kind of work runs at most once at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Generic, TypeVar

import numpy as np
from napari.utils.transforms import Affine
from psygnal import Signal
from qtpy.QtCore import QObject, QThreadPool, QTimer
from qtpy.QtCore import Signal as QtSignal  # type: ignore[attr-defined]
from superqt.utils import create_worker

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.nuclei.display.object_rows import ObjectRows, WorstFirst
from napari_panoptic.nuclei.read_ahead import ReadAhead, Stamps, Wanted, stamps_of
from napari_panoptic.nuclei.session import Request, Session
from napari_panoptic.nuclei.snapshots import RegionSnapshot, load_in_steps, picture_first
from napari_panoptic.nuclei.summary import RegionSummary, evaluate_cohort_summary
from napari_panoptic.nuclei.values.cohort import Cohort, Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.viewer.jobs.timers import stop_timers
from napari_panoptic.viewer.jobs.workers import connect_worker
from napari_panoptic.viewer.state.preferences import PREFERENCES
from napari_panoptic.viewer.warm import WARM_UP

T = TypeVar("T")
DRAWING_MS = 10
"""So long after the team that is looked at was shown, its drawing has been dealt with."""
LONGEST_DRAWING_S = 2.0
"""How long the other teams wait at most while the one that is looked at is drawn."""
TOLD_EVERY_S = 0.1
"""Interval between reports of a slide's progress."""
ABANDONED_AFTER_MS = 1000
"""How long a newer request waits at most for the reading of an outdated one, as from a network."""
MOST_ABANDONED = 3
"""The largest number of outdated workers that are left to finish unattended."""
LONGEST_HOLD_S = 5.0
"""How long the background pauses at most for work that the user waits for."""


@dataclass(frozen=True, eq=False)
class _Answer(Generic[T]):
    """What a worker brings back: a value, or why there is none."""

    value: T | None = None
    error: PanopticError | None = None
    picture: RegionSnapshot | None = None
    """The pixels of a region whose objects are still to come."""


class _Teller(QObject):
    """Carries what a worker tells to the main thread."""

    told = QtSignal(float, str)


class RegionLoader:
    """Answers the requests of a session, the newest first and no outdated one.

    While a request is being answered only the newest later one is kept. An
    outdated one ends between two steps; one that does not, since a file does
    not come, is left to itself after a while.

    Parameters
    ----------
    session
        Whose requests are answered.
    is_open
        Tells whether the window that shows the answers is still there.
    ahead
        What reads regions before they are asked for; it may have begun.
    """

    busy_changed = Signal(bool)
    failed = Signal(PanopticError)
    picture_read = Signal(RegionSnapshot)  # the pixels only: the objects take longer
    progressed = Signal(float, str)  # how far a slide is, from 0 to 1, and in words

    def __init__(
        self,
        session: Session,
        is_open: Callable[[], bool] = lambda: True,
        ahead: ReadAhead | None = None,
    ) -> None:
        self._session, self._is_open = session, is_open
        self._teller = _Teller()
        self._teller.told.connect(self._tell)
        self._stopped: Request | None = None
        self._under_way: Request | None = None
        self.ahead = ReadAhead(session.cohort) if ahead is None else ahead
        self._worker: Any | None = None
        self._waiting: Request | None = None
        self._is_drawn = Event()
        self._is_closed = False
        self._abandoned = 0
        self._patience = QTimer()
        self._patience.setSingleShot(True)
        self._patience.setInterval(ABANDONED_AFTER_MS)
        self._patience.timeout.connect(self._abandon)

    @property
    def is_busy(self) -> bool:
        """Whether something is being loaded."""
        return self._worker is not None

    def load(self, request: Request) -> None:
        """Answer a request, at once or after the one that is being answered."""
        self.ahead.pause()
        self._is_drawn.set()
        if self._worker is not None:
            self._waiting = request
            self._patience.start()
            return
        self._start(request)
        self.busy_changed.emit(True)

    def look_ahead(self, neighbours: Sequence[str]) -> None:
        """Read neighbours of the shown region until something is asked for."""
        session, shown = self._session, self._session.loaded
        if shown is not None and not (self.is_busy or self._is_closed):
            wanted = Wanted(session.settings, session.source, session.team)
            self.ahead.want(shown.region.name, neighbours, wanted)

    def stop(self) -> None:
        """Stop evaluating a slide; it stays unevaluated until it is asked for again."""
        self._stopped = self._under_way

    def close(self) -> None:
        """Let whatever is under way come to nothing."""
        self._is_closed = True
        self._waiting = None
        stop_timers(self._patience)
        self._is_drawn.set()
        self.ahead.close()

    def _start(self, request: Request) -> None:
        session = self._session
        is_drawn = self._is_drawn = Event()
        self._under_way = request
        watch = _Watch(
            lambda: not self._is_closed and session.is_current(request),
            lambda: self._stopped is not request,
            self._teller.told.emit,
            session.held_up_to_px,
        )
        worker = create_worker(
            _load,
            session.cohort,
            request,
            session.loaded,
            self.ahead,
            watch,
            is_drawn,
            _start_thread=False,
        )
        connect_worker(worker, yielded=self._deliver)
        # Painting comes before timers that are due later.
        worker.yielded.connect(lambda _answer: QTimer.singleShot(DRAWING_MS, is_drawn.set))
        worker.finished.connect(WARM_UP.go_on)
        connect_worker(worker, finished=self._on_finished)
        self._worker = worker
        worker.start()

    def _tell(self, share: float, saying: str) -> None:
        if self.is_busy and not self._is_closed:
            self.progressed.emit(share, saying)

    def _deliver(self, worker: Any, answer: _Answer[RegionSnapshot]) -> None:
        request = self._under_way
        # What an abandoned worker still yields is outdated.
        if self._is_closed or request is None or worker is not self._worker:
            return
        if not (self._session.is_current(request) and self._is_open()):
            return
        if answer.value is not None:
            self._session.deliver(request, answer.value)
        elif answer.picture is not None:
            self.picture_read.emit(answer.picture)
        elif answer.error is not None:
            self.failed.emit(answer.error)

    def _abandon(self) -> None:
        """Show another region though the worker of an outdated one has not come back."""
        waiting, under_way = self._waiting, self._under_way
        if waiting is None or under_way is None or self._abandoned == MOST_ABANDONED:
            return
        if waiting.region != under_way.region:
            # Its thread is as good as asleep: another one may run in its stead.
            _threads().releaseThread()
            self._abandoned += 1
            self._waiting = None
            self._start(waiting)

    def _on_finished(self, worker: Any) -> None:
        if worker is not self._worker:
            # One that was abandoned has come back.
            _threads().reserveThread()
            self._abandoned -= 1
            return
        self._patience.stop()
        self._worker, self._under_way = None, None
        waiting, self._waiting = self._waiting, None
        if self._is_closed:
            return
        if waiting is not None:
            self._start(waiting)
        else:
            self.busy_changed.emit(False)


class SummaryWork:
    """Evaluates the whole cohort line by line in the background.

    Parameters
    ----------
    session
        Whose cohort is evaluated, and who gets the lines.
    """

    progressed = Signal(int, int)

    def __init__(self, session: Session) -> None:
        self._session = session
        self._worker: Any | None = None
        self._done = 0
        self._gate = Event()
        self._gate.set()

    @property
    def is_busy(self) -> bool:
        """Whether lines are still to come."""
        return self._worker is not None

    def start(self) -> None:
        """Start over with the session's settings; lines of older ones are dropped."""
        self.stop()
        session = self._session
        session.clear_summaries()
        self._done = 0
        worker = create_worker(
            _lines,
            self._gate,
            session.cohort,
            session.settings,
            session.source,
            session.held_up_to_px,
            _start_thread=False,
        )
        connect_worker(worker, yielded=self._take, finished=self._on_finished)
        self._worker = worker
        worker.start()
        self.progressed.emit(0, self.total)

    def stop(self) -> None:
        """Stop after the line that is being computed."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.quit()
            self.progressed.emit(self.total, self.total)

    def hold(self, held: bool) -> None:
        """Pause or continue: work that the user waits for comes first."""
        (self._gate.clear if held else self._gate.set)()

    @property
    def total(self) -> int:
        """How many lines there are in all."""
        return len(self._session.cohort.regions) * len(self._session.cohort.teams)

    def _take(self, worker: Any, line: RegionSummary) -> None:
        if worker is not self._worker:
            return
        self._done += 1
        if not self._is_known_better(line):
            self._session.add_summary(line)
        self.progressed.emit(self._done, self.total)

    def _is_known_better(self, line: RegionSummary) -> bool:
        """Return whether the line that is there is of a working copy, or of a slide looked at."""
        session = self._session
        known = session.summaries.get((line.region, line.team))
        if known is None:
            return False
        is_slide = line.counts is None and known.counts is not None
        return is_slide or session.copies.has_edits(line.region)

    def _on_finished(self, worker: Any) -> None:
        if worker is self._worker:
            self._worker = None
            self.progressed.emit(self.total, self.total)


def _threads() -> QThreadPool:
    """Return the pool in which workers run."""
    pool = QThreadPool.globalInstance()
    if pool is None:
        raise RuntimeError("Qt has no threads")
    return pool


def warm_up() -> None:
    """Compile what the window needs while it opens, so that the user need not wait later."""
    # napari's units are defined when a layer is first created. In two threads at once that fails.
    Affine(affine_matrix=np.eye(3), ndim=2)
    WARM_UP.start()


@dataclass(frozen=True, eq=False)
class _Watch:
    """What a worker asks and reports to.

    Parameters
    ----------
    is_wanted
        Whether nothing newer was asked for.
    may_go_on
        Whether the evaluation of the slide has not been stopped.
    tell
        Takes the progress of a slide, in any thread.
    held_up_to_px
        Regions of more pixels are evaluated in windows.
    """

    is_wanted: Callable[[], bool]
    may_go_on: Callable[[], bool]
    tell: Callable[[float, str], None]
    held_up_to_px: int

    def told_now_and_then(self) -> Callable[[float, str], None]:
        """Return a callable that passes on only as many reports as can be read."""
        last = 0.0

        def tell(share: float, saying: str) -> None:
            nonlocal last
            if time.monotonic() - last >= TOLD_EVERY_S:
                last = time.monotonic()
                self.tell(share, saying)

        return tell


def _load(
    cohort: Cohort,
    request: Request,
    previous: RegionSnapshot | None,
    ahead: ReadAhead,
    watch: _Watch,
    is_drawn: Event,
) -> Iterator[_Answer[RegionSnapshot]]:
    """Load a region in steps; the other teams wait until the first one is drawn.

    Until then the interpreter belongs to the window, and a hand on a slider
    may ask for more meanwhile.
    """
    try:
        if WARM_UP.is_compiling:
            picture = picture_first(cohort, request.region, request.settings)
            if picture is not None and previous is None:
                yield _Answer(picture=picture)
            WARM_UP.wait_for_compilers()
        stamps: Stamps = ()
        if previous is None or previous.region.name != request.region:
            read = ahead.take(request.region)
            previous = None if read is None else read.snapshot
            region = cohort.region(request.region)
            stamps = stamps_of(cohort, region) if read is None else read.stamps
        for snapshot in load_in_steps(
            cohort,
            request.region,
            request.settings,
            source=request.source,
            previous=previous,
            first=request.team,
            is_wanted=lambda: watch.is_wanted() and watch.may_go_on(),
            progress=watch.told_now_and_then(),
            held_up_to_px=watch.held_up_to_px,
        ):
            for evaluation in snapshot.slides.values():
                # Hundreds of thousands of rows: the window must not wait for them.
                ObjectRows.prepared(evaluation.outcomes, WorstFirst(PREFERENCES.order))
            if stamps and not snapshot.is_slide:
                ahead.keep(snapshot, stamps)
            WARM_UP.wait()
            yield _Answer(snapshot)
            for evaluation in snapshot.slides.values():
                ObjectRows.prepared(evaluation.outcomes).make_ready_to_sort()
            if snapshot.pending and watch.is_wanted():
                is_drawn.wait(LONGEST_DRAWING_S)
    except PanopticError as error:
        yield _Answer(error=error)


def _lines(
    gate: Event,
    cohort: Cohort,
    settings: EvaluationSettings,
    source: Source | None,
    held_up_to_px: int,
) -> Iterator[RegionSummary]:
    """Evaluate line by line, and between lines wait for the gate to open.

    The workers' own pausing misses a "go on" that comes before the pause was
    taken notice of. The wait ends by itself, so that no thread outlives its
    window for long.
    """
    WARM_UP.wait_for_compilers()
    lines = evaluate_cohort_summary(cohort, settings, source=source, held_up_to_px=held_up_to_px)
    for line in lines:
        gate.wait(LONGEST_HOLD_S)
        yield line
