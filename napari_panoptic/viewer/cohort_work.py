"""The evaluation of a whole cohort in a worker, with progress, and to be stopped at any time."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import Any

from psygnal import Signal
from qtpy.QtCore import QTimer
from superqt.utils import create_worker

from napari_panoptic.errors import PanopticError
from napari_panoptic.report.cohort_report import (
    CohortReport,
    ReportRequest,
    cohort_report,
    n_passes,
)

LOOK_EVERY_MS = 100


@dataclass(frozen=True, eq=False)
class _Answer:
    value: CohortReport | None = None
    error: PanopticError | None = None


class _Counter:
    """How many regions are done; counted by the worker, read by the window."""

    def __init__(self) -> None:
        self.done = 0
        self.stopped = Event()

    def count(self) -> None:
        self.done += 1

    def is_wanted(self) -> bool:
        return not self.stopped.is_set()


class CohortWork:
    """Evaluates a cohort in every way that a report shows, one request at a time."""

    progressed = Signal(int, int)
    finished = Signal(CohortReport)
    failed = Signal(PanopticError)

    def __init__(self) -> None:
        self._worker: Any | None = None
        self._counter = _Counter()
        self._total = 0
        self._look = QTimer()
        self._look.setInterval(LOOK_EVERY_MS)
        self._look.timeout.connect(self._tell)

    @property
    def is_busy(self) -> bool:
        """Whether a cohort is being evaluated."""
        return self._worker is not None

    def start(self, request: ReportRequest) -> None:
        """Evaluate a cohort instead of whatever is being evaluated."""
        self.stop()
        counter = self._counter = _Counter()
        self._total = n_passes() * len(request.cohort.regions)
        worker = create_worker(_evaluated, request, counter, _start_thread=False)
        worker.returned.connect(lambda answer: self._take(worker, answer))
        self._worker = worker
        worker.start()
        self._look.start()
        self._tell()

    def stop(self) -> None:
        """Let what is under way come to nothing."""
        self._counter.stopped.set()
        self._worker = None
        self._look.stop()

    def _tell(self) -> None:
        self.progressed.emit(min(self._counter.done, self._total), self._total)

    def _take(self, worker: Any, answer: _Answer) -> None:
        if worker is not self._worker:
            return
        self._worker = None
        self._look.stop()
        if answer.error is not None:
            self.failed.emit(answer.error)
        elif answer.value is not None:
            self.finished.emit(answer.value)


def _evaluated(request: ReportRequest, counter: _Counter) -> _Answer:
    try:
        # One region at a time: the window keeps a processor to itself.
        found = cohort_report(request, jobs=1, on_region=counter.count, is_wanted=counter.is_wanted)
    except PanopticError as error:
        return _Answer(error=error)
    return _Answer(found)
