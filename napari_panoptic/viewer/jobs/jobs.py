"""Computations in other threads; their values and errors arrive on the main thread.

A job computes and touches neither widgets nor layers. Errors are values too: one
that was foreseen is handed to the code that started the job, and an unforeseen one too,
after which it is raised on the main thread, where napari shows it. Both end the job.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from types import MethodType
from typing import Any, Generic, TypeVar
from weakref import WeakMethod, WeakSet, ref

from qtpy.QtCore import QObject, QThreadPool, QTimer
from superqt.utils import GeneratorWorker

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.progress import Progress
from napari_panoptic.viewer.kit.shown import show_error

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])
FORESEEN = (PanopticError, OSError, MemoryError)
"""Errors that files and machines cause; all others are defects of the program."""
PROGRESS_EVERY_MS = 100
"""Interval between reports of progress, each of which draws something."""
WAITED_MS = 20
"""How long the interpreter waits for jobs at a time when it ends."""


class UnforeseenError(PanopticError):
    """Stands for a defect of the program, which napari shows."""

    def __init__(self) -> None:
        super().__init__("an unexpected error occurred; napari shows it")


def as_value(error: Exception) -> PanopticError:
    """Return an error in words for the user."""
    if isinstance(error, PanopticError):
        return error
    if isinstance(error, FORESEEN):
        return PanopticError(str(error) or "there is not enough memory")
    return UnforeseenError()


def show_failure(error: PanopticError) -> None:
    """Show an error, unless napari shows it."""
    if not isinstance(error, UnforeseenError):
        show_error(str(error))


class Job(Generic[T]):
    """A generator that runs in another thread, from when the job is made.

    Receivers that are methods are kept weakly: a job does not keep a window alive,
    and reports nothing to an object that is gone.

    Parameters
    ----------
    generate
        Called in the other thread with the job; yields the values.
    take
        Called on the main thread with the job and each value.
    ended
        Called on the main thread with the job and its error, or None, once there is
        nothing more to come; also after `cancel`.
    progressed
        Called on the main thread with the job and its newest report.
    """

    def __init__(
        self,
        generate: Callable[[Job[T]], Iterator[T]],
        *,
        take: Callable[[Job[T], T], object],
        ended: Callable[[Job[T], PanopticError | None], object],
        progressed: Callable[..., object] | None = None,
    ) -> None:
        self._take, self._ended = _weakly(take), _weakly(ended)
        self._progressed = _weakly(progressed or _ignore)
        self._reported: tuple[object, ...] = ()
        self._raised: Exception | None = None
        self._is_pending = self._is_cancelled = self._has_ended = False
        worker: Any = GeneratorWorker(self._run, generate)
        # Weakly: PySide never frees a circle through a worker's signals.
        self._worker = ref(worker)
        # Lambdas keep the job as long as its worker; Qt would hold methods weakly.
        worker.yielded.connect(lambda value: self._on_yielded(value))
        worker.finished.connect(lambda: self._on_finished())
        _JOBS.add(self)
        _wait_at_exit()
        worker.start()

    @property
    def is_wanted(self) -> bool:
        """Whether the job was not cancelled; in any thread."""
        return not self._is_cancelled

    @property
    def progress(self) -> Progress:
        """Where the job reports its progress, and learns that it was cancelled."""
        return Progress(lambda: self.is_wanted, self.report)

    def cancel(self) -> None:
        """End the job after the value that is being computed."""
        self._is_cancelled = True
        worker = self._worker()
        if worker is not None:
            worker.quit()

    def report(self, *progress: object) -> None:
        """Report progress from the other thread; only the newest report arrives."""
        self._reported = progress
        worker = self._worker()
        if not self._is_pending and worker is not None:
            self._is_pending = True
            worker.yielded.emit(_PROGRESS)

    def _run(self, generate: Callable[[Job[T]], Iterator[T]]) -> Iterator[T]:
        """Run in the other thread; superqt would never end a generator with a RuntimeError."""
        try:
            yield from generate(self)
        except Exception as error:  # noqa: BLE001 - raised again on the main thread
            self._raised = error

    def _on_yielded(self, value: Any) -> None:
        if value is _PROGRESS:
            QTimer.singleShot(PROGRESS_EVERY_MS, lambda: self._show_progress())
        elif (take := self._take()) is not None:
            take(self, value)

    def _show_progress(self) -> None:
        self._is_pending = False  # before it is read: a report made meanwhile is not lost
        progressed = self._progressed()
        if progressed is not None and self.is_wanted and not self._has_ended:
            progressed(self, *self._reported)

    def _on_finished(self) -> None:
        self._has_ended = True
        # Its traceback holds the data of the job.
        raised, self._raised = self._raised, None
        ended = self._ended()
        if ended is None:
            return
        ended(self, None if raised is None else as_value(raised))
        if raised is not None and not isinstance(raised, FORESEEN) and self.is_wanted:
            raise raised


_JOBS: WeakSet[Job[Any]] = WeakSet()


@cache
def _wait_at_exit() -> None:
    """Have the interpreter wait for jobs before it ends, and before Qt's objects are deleted.

    A job that outlives them, as those that were cancelled with the desk in a napari of the user's,
    brings the process down.
    """
    atexit.register(_end_jobs)


def _end_jobs() -> None:
    for job in list(_JOBS):
        job.cancel()
    pool = QThreadPool.globalInstance()
    while pool is not None and not pool.waitForDone(WAITED_MS):
        pass  # other threads may have the interpreter in between


class Latest(Generic[T]):
    """Runs one computation at a time; only the newest one's answer counts.

    Parameters
    ----------
    take
        Called on the main thread with the answer.
    failed
        Called on the main thread where there is none; shows the error by default.
    """

    def __init__(
        self,
        take: Callable[[T], object],
        *,
        failed: Callable[[PanopticError], object] = show_failure,
    ) -> None:
        self._take, self._failed = take, failed
        self._job: Job[T] | None = None
        self._waiting: Callable[[Job[T]], Iterator[T]] | None = None
        self._is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether an answer is still to come."""
        is_running = self._job is not None and self._job.is_wanted
        return is_running or self._waiting is not None

    def start(self, compute: Callable[[], T]) -> None:
        """Compute something instead of whatever is being computed."""
        self.start_steps(partial(_once, compute))

    def start_steps(self, generate: Callable[[Job[T]], Iterator[T]]) -> None:
        """Compute something in steps, each of which is an answer of its own."""
        if self._is_closed:
            return
        if self._job is not None:
            self._job.cancel()
            self._waiting = generate
        else:
            self._job = Job(generate, take=self._on_value, ended=self._on_ended)

    def drop(self) -> None:
        """Cancel the computation."""
        self._waiting = None
        if self._job is not None:
            self._job.cancel()

    def close(self) -> None:
        """Cancel the computation, and start no other."""
        self._is_closed = True
        self.drop()

    def _on_value(self, job: Job[T], value: T) -> None:
        if job.is_wanted:
            self._take(value)

    def _on_ended(self, job: Job[T], error: PanopticError | None) -> None:
        self._job = None
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self.start_steps(waiting)
        elif error is not None and job.is_wanted:
            self._failed(error)


class Stream(Generic[T]):
    """Runs a generator and hands over its values, until stopped.

    Parameters
    ----------
    take
        Called on the main thread with each value.
    ended
        Called on the main thread when there is nothing more to come, after `failed`
        too; not when stopped.
    failed
        Called on the main thread with an error; shows it by default.
    progressed
        Called on the main thread with the reports of the job.
    dropped
        Called on the main thread with each value that comes too late.
    """

    def __init__(
        self,
        take: Callable[[T], object],
        *,
        ended: Callable[[], object] = lambda: None,
        failed: Callable[[PanopticError], object] = show_failure,
        progressed: Callable[..., object] = lambda *_progress: None,
        dropped: Callable[[T], object] = lambda _value: None,
    ) -> None:
        self._take, self._dropped = take, dropped
        self._ended, self._failed, self._progressed = ended, failed, progressed
        self._job: Job[T] | None = None
        self._is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether there is more to come."""
        return self._job is not None

    def start(self, generate: Callable[[Job[T]], Iterator[T]]) -> None:
        """Start again with another generator."""
        self.stop()
        if not self._is_closed:
            self._job = Job(
                generate,
                take=self._on_value,
                ended=self._on_ended,
                progressed=self._on_progress,
            )

    def stop(self) -> None:
        """Stop after the value that is being computed."""
        job, self._job = self._job, None
        if job is not None:
            job.cancel()

    def close(self) -> None:
        """Stop, and start nothing more."""
        self._is_closed = True
        self.stop()

    def _on_value(self, job: Job[T], value: T) -> None:
        (self._take if job is self._job else self._dropped)(value)

    def _on_progress(self, job: Job[T], *progress: object) -> None:
        if job is self._job:
            self._progressed(*progress)

    def _on_ended(self, job: Job[T], error: PanopticError | None) -> None:
        if job is not self._job:
            return
        self._job = None
        if error is not None:
            self._failed(error)
        self._ended()


class Several:
    """Runs computations beside each other, each with a receiver of its own.

    Parameters
    ----------
    ended
        Called on the main thread after each, also where it failed.
    """

    def __init__(self, ended: Callable[[], object] = lambda: None) -> None:
        self._ended = ended
        self._receivers: dict[Job[Any], tuple[Callable[..., object], Callable[..., object]]] = {}

    @property
    def is_busy(self) -> bool:
        """Whether answers are still to come."""
        return bool(self._receivers)

    def start(
        self,
        compute: Callable[[], T],
        take: Callable[[T], object],
        failed: Callable[[PanopticError], object] = show_failure,
    ) -> None:
        """Compute something, and hand over the answer or the error."""
        job = Job(partial(_once, compute), take=self._on_value, ended=self._on_ended)
        self._receivers[job] = (take, failed)

    def _on_value(self, job: Job[Any], value: Any) -> None:
        self._receivers[job][0](value)

    def _on_ended(self, job: Job[Any], error: PanopticError | None) -> None:
        _, failed = self._receivers.pop(job)
        if error is not None:
            failed(error)
        self._ended()


_PROGRESS = object()


def _once(compute: Callable[[], T], _job: Job[T]) -> Iterator[T]:
    yield compute()


def _weakly(receiver: F) -> Callable[[], F | None]:
    if isinstance(receiver, MethodType):
        return WeakMethod(receiver)
    return lambda: receiver


def _ignore(*_progress: object) -> None:
    pass


def single_shot(
    interval_ms: int, slot: Callable[[], object], parent: QObject | None = None
) -> QTimer:
    """Return a timer that calls a slot once, a while after its last start.

    Unlike superqt's `qdebounced` it can be stopped for good, and does not run on
    after the call.

    Parameters
    ----------
    interval_ms
        How long after.
    slot
        Called on the main thread. Qt keeps an object whose method it is weakly.
    parent
        Ends the timer with itself; without one, pass the timer to `stop_timers`.
    """
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(interval_ms)
    timer.timeout.connect(slot)
    return timer


def stop_timers(*timers: QTimer) -> None:
    """Stop timers whose owner goes away; they may be gone with their application.

    Garbage is collected in whatever thread needs memory. Unlike PyQt, PySide deletes
    a timer there, and Qt would still call one that was running.
    """
    for timer in timers:
        with suppress(RuntimeError):
            timer.stop()
