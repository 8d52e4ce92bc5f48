"""The evaluation of a whole cohort in a worker, with progress, and to be stopped at any time.

What is done is kept in the user's cache folder until all of it is done, so that
an evaluation that was stopped, or whose window was closed, goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from platformdirs import user_cache_path
from psygnal import Signal
from qtpy.QtCore import QTimer
from superqt.utils import create_worker

from napari_panoptic import __version__
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.nuclei.cohort_report import (
    CohortReport,
    ReportRequest,
    cohort_report,
    n_kept,
    n_passes,
)
from napari_panoptic.nuclei.run import RegionDone
from napari_panoptic.viewer.jobs.timers import stop_timers
from napari_panoptic.viewer.jobs.workers import connect_worker

LOOK_EVERY_MS = 100
KEPT_COHORTS = 4
"""Number of cohorts whose unfinished evaluations are kept."""


_BROKEN_OFF = PanopticError("the cohort could not be evaluated to its end")


@dataclass(frozen=True, eq=False)
class _Answer:
    value: CohortReport | None = None
    error: PanopticError | None = None


class _Counter:
    """How many regions are done; counted by the worker, read by the window."""

    def __init__(self) -> None:
        self._done = self._kept = 0
        self.stopped = Event()

    @property
    def done(self) -> int:
        """Regions that are done, at least those that an earlier evaluation has left."""
        return max(self._done, self._kept)

    def begin(self, kept: int) -> None:
        self._done, self._kept = 0, kept

    def count(self, done: RegionDone) -> None:
        self._done += not done.is_again

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
        connect_worker(worker, returned=self._take, finished=self._on_finished)
        self._worker = worker
        worker.start()
        self._look.start()
        self._tell()

    def stop(self) -> None:
        """Let what is under way come to nothing."""
        self._counter.stopped.set()
        self._worker = None
        stop_timers(self._look)

    def _tell(self) -> None:
        self.progressed.emit(min(self._counter.done, self._total), self._total)

    def _on_finished(self, worker: Any) -> None:
        self._take(worker, _Answer(error=_BROKEN_OFF))

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
    store = store_of(request)
    answer = _evaluated_with(request, counter, store if _make_room(store) else None)
    if answer is None:  # the cache cannot be written any more
        answer = _evaluated_with(request, counter, None)
    if answer is not None and (answer.value is not None or answer.error is not None):
        shutil.rmtree(store.parent, ignore_errors=True)
    return answer or _Answer()


def _evaluated_with(
    request: ReportRequest, counter: _Counter, store: Path | None
) -> _Answer | None:
    """Evaluate a cohort; None if it is the store that stands in the way."""
    counter.begin(0 if store is None else n_kept(store))
    try:
        # One region at a time: the window keeps a processor to itself.
        found = cohort_report(
            request,
            jobs=1,
            store=store,
            on_result=counter.count,
            is_wanted=counter.is_wanted,
        )
    except PanopticError as error:
        if store is None or error.path is None or not error.path.is_relative_to(store):
            return _Answer(error=error)
        return None
    return _Answer(found)


def store_of(request: ReportRequest) -> Path:
    """Return the folder for what is done of an evaluation: in one of its cohort's, in the cache."""
    record = {
        "version": __version__,
        "protocol": request.protocol,
        "settings": request.settings.as_record(),
        "source": request.source,
        "teams": request.team_names,
    }
    cohort = _digest(os.fsencode(request.cohort.root.resolve()))
    asked = _digest(json.dumps(record, sort_keys=True).encode())
    return user_cache_path("napari-panoptic") / "cohorts" / cohort / asked


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _make_room(store: Path) -> bool:
    """Make a store's folder, and remove what other settings and the oldest cohorts have left.

    Where the cache cannot be written to, nothing is kept, which is no error.
    """
    own = store.parent
    try:
        store.mkdir(parents=True, exist_ok=True)
        os.utime(own)
        by_age = sorted(own.parent.iterdir(), key=lambda path: path.stat().st_mtime)
        others = [path for path in by_age if path != own]
        left = [path for path in own.iterdir() if path != store]
    except OSError:
        return False
    for path in [*others[: -(KEPT_COHORTS - 1)], *left]:
        shutil.rmtree(path, ignore_errors=True)
    return True
