"""Work in other threads: loading regions, evaluating the cohort, compiling kernels.

Workers compute and touch nothing; what they bring is handed over on the main
thread. Each kind of work runs at most once at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Generic, TypeVar

import numpy as np
from psygnal import Signal
from superqt.utils import create_worker

from napari_panoptic.errors import PanopticError
from napari_panoptic.evaluation.evaluate import evaluate
from napari_panoptic.evaluation.labels import LabelImage, LabelPair
from napari_panoptic.evaluation.settings import EvaluationSettings
from napari_panoptic.io.cohort import open_cohort
from napari_panoptic.pipeline import RegionSummary, evaluate_cohort_summary
from napari_panoptic.regions import Cohort, Source
from napari_panoptic.session import Request, Session
from napari_panoptic.snapshots import RegionSnapshot, load_in_steps

T = TypeVar("T")
DRAWN_FIRST_S = 0.04
"""How long the other teams wait while the one that is looked at is drawn."""
LONGEST_HOLD_S = 5.0
"""How long the background waits at most for what somebody waits for."""


@dataclass(frozen=True, eq=False)
class _Answer(Generic[T]):
    """What a worker brings back: a value, or why there is none."""

    value: T | None = None
    error: PanopticError | None = None


class RegionLoader:
    """Answers the requests of a session, the newest first and no outdated one.

    While a request is being answered only the newest later one is kept.

    Parameters
    ----------
    session
        Whose requests are answered.
    """

    busy_changed = Signal(bool)
    failed = Signal(PanopticError)

    def __init__(self, session: Session) -> None:
        self._session = session
        self._worker: Any | None = None
        self._waiting: Request | None = None
        self._is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether something is being loaded."""
        return self._worker is not None

    def load(self, request: Request) -> None:
        """Answer a request, at once or after the one that is being answered."""
        if self._worker is not None:
            self._waiting = request
            return
        self._start(request)
        self.busy_changed.emit(True)

    def close(self) -> None:
        """Let whatever is under way come to nothing."""
        self._is_closed = True
        self._waiting = None

    def _start(self, request: Request) -> None:
        session = self._session
        worker = create_worker(
            _load,
            session.cohort,
            request,
            session.loaded,
            lambda: not self._is_closed and session.is_current(request),
            _start_thread=False,
        )
        worker.yielded.connect(lambda answer: self._deliver(request, answer))
        worker.finished.connect(self._on_finished)
        self._worker = worker
        worker.start()

    def _deliver(self, request: Request, answer: _Answer[RegionSnapshot]) -> None:
        if self._is_closed or not self._session.is_current(request):
            return
        if answer.value is not None:
            self._session.deliver(request, answer.value)
        elif answer.error is not None:
            self.failed.emit(answer.error)

    def _on_finished(self) -> None:
        self._worker = None
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
            _start_thread=False,
        )
        worker.yielded.connect(lambda line: self._take(worker, line))
        worker.finished.connect(lambda: self._on_finished(worker))
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
        """Pause or go on: what somebody waits for comes first."""
        (self._gate.clear if held else self._gate.set)()

    @property
    def total(self) -> int:
        """How many lines there are in all."""
        return len(self._session.cohort.regions) * len(self._session.cohort.teams)

    def _take(self, worker: Any, line: RegionSummary) -> None:
        if worker is not self._worker:
            return
        self._done += 1
        if not self._shows_edits(line):
            self._session.add_summary(line)
        self.progressed.emit(self._done, self.total)

    def _shows_edits(self, line: RegionSummary) -> bool:
        """Tell whether a line that is there already is that of a working copy."""
        session = self._session
        is_there = (line.region, line.team) in session.summaries
        return is_there and session.copies.has_edits(line.region)

    def _on_finished(self, worker: Any) -> None:
        if worker is self._worker:
            self._worker = None
            self.progressed.emit(self.total, self.total)


def open_in_background(
    folder: Path,
    on_cohort: Callable[[Cohort], None],
    on_error: Callable[[PanopticError], None],
) -> None:
    """Find the regions and teams of a folder; one of the callbacks gets the answer."""

    def take(answer: _Answer[Cohort]) -> None:
        if answer.value is not None:
            on_cohort(answer.value)
        elif answer.error is not None:
            on_error(answer.error)

    worker = create_worker(_open, folder, _start_thread=False)
    worker.returned.connect(take)
    worker.start()


def warm_up() -> None:
    """Compile the kernels while the window opens, so that nobody waits for them later."""
    create_worker(_evaluate_something, _start_thread=False).start()


def _load(
    cohort: Cohort,
    request: Request,
    previous: RegionSnapshot | None,
    is_wanted: Callable[[], bool],
) -> Iterator[_Answer[RegionSnapshot]]:
    try:
        for snapshot in load_in_steps(
            cohort,
            request.region,
            request.settings,
            source=request.source,
            previous=previous,
            first=request.team,
            is_wanted=is_wanted,
        ):
            yield _Answer(snapshot)
            if snapshot.pending:
                # The processor goes to the window; a hand on a slider asks for more meanwhile.
                time.sleep(DRAWN_FIRST_S)
    except PanopticError as error:
        yield _Answer(error=error)


def _lines(
    gate: Event, cohort: Cohort, settings: EvaluationSettings, source: Source | None
) -> Iterator[RegionSummary]:
    """Evaluate line by line, and between lines wait for the gate to open.

    The workers' own pausing misses a "go on" that comes before the pause was
    taken notice of. The wait ends by itself, so that no thread outlives its
    window for long.
    """
    for line in evaluate_cohort_summary(cohort, settings, source=source):
        gate.wait(LONGEST_HOLD_S)
        yield line


def _open(folder: Path) -> _Answer[Cohort]:
    try:
        return _Answer(open_cohort(folder))
    except PanopticError as error:
        return _Answer(error=error)


def _evaluate_something() -> None:
    square = np.zeros((8, 8), np.int32)
    square[2:6, 2:6] = 1
    labels = LabelImage.from_array(square, {1: "nucleus"}, ("nucleus",))
    evaluate(LabelPair(labels, labels, ambiguous=square == 0))
