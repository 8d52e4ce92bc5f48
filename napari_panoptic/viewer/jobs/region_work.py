"""Loading regions, and evaluating the cohort behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Event

from psygnal import Signal
from qtpy.QtCore import QThreadPool, QTimer

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.object_rows import ObjectRows, WorstFirst
from napari_panoptic.live.read_ahead import ReadAhead, ReadAheadSettings, Stamps, stamps_of
from napari_panoptic.live.session import Request, Session
from napari_panoptic.live.snapshots import RegionSnapshot, load_in_steps
from napari_panoptic.live.summary import RegionSummary, evaluate_cohort_summary
from napari_panoptic.viewer.jobs.jobs import Job, Stream, single_shot, stop_timers
from napari_panoptic.viewer.state.preferences import PREFERENCES

DRAWING_MS = 10
"""So long after the team that is looked at was shown, its drawing has been dealt with."""
LONGEST_DRAWING_S = 2.0
"""How long the other teams wait at most while the one that is looked at is drawn."""
ABANDONED_AFTER_MS = 1000
"""Maximum wait of a newer request for the reading of an outdated one."""
MOST_ABANDONED = 3
"""Maximum number of abandoned workers."""
LONGEST_HOLD_S = 5.0
"""How long the background pauses at most for work that the user waits for."""


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
    """

    busy_changed = Signal(bool)
    failed = Signal(PanopticError)
    progressed = Signal(float, str)  # how far a slide is, from 0 to 1, and in words

    def __init__(self, session: Session, is_open: Callable[[], bool] = lambda: True) -> None:
        self._session, self._is_open = session, is_open
        self._stopped: Request | None = None
        self._under_way: Request | None = None
        self.ahead = ReadAhead(session.cohort)
        self._job: Job[RegionSnapshot] | None = None
        self._waiting: Request | None = None
        self._is_drawn = Event()
        self._is_closed = False
        self._abandoned = 0
        self._patience = single_shot(ABANDONED_AFTER_MS, self._abandon)

    @property
    def is_busy(self) -> bool:
        """Whether something is being loaded."""
        return self._job is not None

    def load(self, request: Request) -> None:
        """Answer a request, at once or after the one that is being answered."""
        self.ahead.pause()
        self._is_drawn.set()
        if self._job is not None:
            self._waiting = request
            self._patience.start()
            return
        self._start(request)
        self.busy_changed.emit(True)

    def look_ahead(self, neighbours: Sequence[str]) -> None:
        """Read neighbours of the shown region until something is asked for."""
        session, shown = self._session, self._session.loaded
        if shown is not None and not (self.is_busy or self._is_closed):
            wanted = ReadAheadSettings(session.settings, session.source, session.team)
            self.ahead.want(shown.region.name, neighbours, wanted)

    def stop(self) -> None:
        """Stop evaluating a slide; it stays unevaluated until it is asked for again."""
        self._stopped = self._under_way

    def close(self) -> None:
        """Show nothing more, and end running jobs."""
        self._is_closed = True
        self._waiting = None
        stop_timers(self._patience)
        self._is_drawn.set()
        self.ahead.close()

    def _start(self, request: Request) -> None:
        self._is_drawn = Event()
        self._under_way = request
        self._job = Job(
            partial(self._load, request, self._session.loaded, self._is_drawn),
            take=self._deliver,
            ended=self._on_ended,
            progressed=self._on_progress,
        )

    def _load(
        self,
        request: Request,
        previous: RegionSnapshot | None,
        is_drawn: Event,
        job: Job[RegionSnapshot],
    ) -> Iterator[RegionSnapshot]:
        """Load a region in steps, in the other thread.

        The other teams wait until the first one is drawn. Until then the interpreter
        belongs to the window, and a hand on a slider may ask for more meanwhile.
        """
        session = self._session

        def is_wanted() -> bool:
            return not self._is_closed and session.is_current(request)

        stamps: Stamps = ()
        if previous is None or previous.region.name != request.region:
            read = self.ahead.take(request.region)
            previous = None if read is None else read.snapshot
            region = session.cohort.region(request.region)
            stamps = stamps_of(session.cohort, region) if read is None else read.stamps
        for snapshot in load_in_steps(
            session.cohort,
            request.region,
            request.settings,
            source=request.source,
            previous=previous,
            first=request.team,
            is_wanted=lambda: is_wanted() and self._stopped is not request,
            progress=job.report,
            held_up_to_px=session.held_up_to_px,
        ):
            if snapshot.is_slide:
                # Hundreds of thousands of rows: the window must not wait for them.
                for evaluation in snapshot.results.values():
                    ObjectRows.prepared(evaluation.outcomes, WorstFirst(PREFERENCES.order))
            elif stamps:
                self.ahead.keep(snapshot, stamps)
            yield snapshot
            if snapshot.pending and is_wanted():
                is_drawn.wait(LONGEST_DRAWING_S)

    def _is_shown(self, job: Job[RegionSnapshot]) -> bool:
        """Return whether answers of a job are shown; those of an abandoned one are outdated."""
        request = self._under_way
        is_open = job is self._job and not self._is_closed and self._is_open()
        return is_open and request is not None and self._session.is_current(request)

    def _deliver(self, job: Job[RegionSnapshot], answer: RegionSnapshot) -> None:
        if self._under_way is not None and self._is_shown(job):
            self._session.deliver(self._under_way, answer)
        # Painting comes before timers that are due later.
        QTimer.singleShot(DRAWING_MS, self._is_drawn.set)

    def _on_progress(self, job: Job[RegionSnapshot], share: float, saying: str) -> None:
        if job is self._job and not self._is_closed:
            self.progressed.emit(share, saying)

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

    def _on_ended(self, job: Job[RegionSnapshot], error: PanopticError | None) -> None:
        if job is not self._job:
            # One that was abandoned has come back.
            _threads().reserveThread()
            self._abandoned -= 1
            return
        if error is not None and self._is_shown(job):
            self.failed.emit(error)
        self._patience.stop()
        self._job, self._under_way = None, None
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
        self._stream: Stream[RegionSummary] = Stream(self._take, ended=self._on_ended)
        self._done = 0
        self._gate = Event()
        self._gate.set()

    @property
    def is_busy(self) -> bool:
        """Whether lines are still to come."""
        return self._stream.is_busy

    def start(self) -> None:
        """Start over with the session's settings; lines of older ones are dropped."""
        self.stop()
        self._session.clear_summaries()
        self.go_on()

    def go_on(self) -> None:
        """Evaluate the regions and teams that have no line yet."""
        self.stop()
        session = self._session
        self._done = len(session.summaries)
        lines = partial(
            evaluate_cohort_summary,
            session.cohort,
            session.reading,
            known=frozenset(session.summaries),
        )
        self._stream.start(partial(_held, self._gate, lines))
        self.progressed.emit(self._done, self.total)

    def stop(self) -> None:
        """Stop after the line that is being computed."""
        if self.is_busy:
            self._stream.stop()
            self._on_ended()

    def hold(self, held: bool) -> None:
        """Pause or continue: work that the user waits for comes first."""
        (self._gate.clear if held else self._gate.set)()

    @property
    def total(self) -> int:
        """How many lines there are in all."""
        return len(self._session.cohort.regions) * len(self._session.cohort.teams)

    def _take(self, line: RegionSummary) -> None:
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
        return is_slide or session.has_edits(line.region)

    def _on_ended(self) -> None:
        self.progressed.emit(self.total, self.total)


def _threads() -> QThreadPool:
    """Return the pool in which workers run."""
    pool = QThreadPool.globalInstance()
    if pool is None:
        raise RuntimeError("Qt has no threads")
    return pool


def _held(
    gate: Event, lines: Callable[[], Iterator[RegionSummary]], _job: Job[RegionSummary]
) -> Iterator[RegionSummary]:
    """Yield line by line, and between lines wait for the gate to open.

    The workers' own pausing misses a "go on" that comes before the pause was
    taken notice of. The wait ends by itself, so that no thread outlives its
    window for long.
    """
    for line in lines():
        gate.wait(LONGEST_HOLD_S)
        yield line
