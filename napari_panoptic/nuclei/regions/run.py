"""All regions of a cohort: several at a time, on one machine or many, and resumable.

Regions are evaluated in any order and yielded in the cohort's. With a store,
each is saved as soon as it is finished, and a later run reuses those whose
files and settings have not changed.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, Protocol, TypeVar

from napari_panoptic import __version__
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.progress import Progress
from napari_panoptic.common.text import counted
from napari_panoptic.io.files.fingerprints import file_fingerprints, times_of_large
from napari_panoptic.nuclei.regions.cluster import Cluster
from napari_panoptic.nuclei.regions.experiment import Experiment
from napari_panoptic.nuclei.regions.reading import (
    usual_form,
)
from napari_panoptic.nuclei.regions.result_store import DamagedPartError, PartStore
from napari_panoptic.values.cohort import Cohort, MaskFiles, Region

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

THREADS, PROCESSES, AUTO = "threads", "processes", "auto"
"""Ways to do several regions at a time on this machine; any other is a Dask scheduler's address."""

_WORTH_PROCESSES_S = 10.0
"""How long the rest of a run must take to be worth processes, which start slowly."""
_NEVER = ""
"""A fingerprint that no region has: results stored with it are never reused."""
_PATIENCE_S = 0.5


class RegionWork(Protocol[T_co]):
    """What is done with each region; pickled if it is done in other processes."""

    @property
    def team_names(self) -> tuple[str, ...]:
        """The teams whose predictions it needs."""

    def evaluate(self, cohort: Cohort, region: Region, *, progress: Progress) -> T_co:
        """Return the results of a region; the cohort has only what these depend on."""


@dataclass(frozen=True)
class RegionDone:
    """A finished region; reported once per region, twice if stored results had to be redone."""

    #: Name of the region.
    region: str
    #: Whether its results are those of an earlier run.
    is_taken_over: bool
    #: What was wrong with the stored results of an earlier run; empty if nothing was.
    remark: str = ""
    #: Whether the region was reported before, and had to be evaluated again for the reason in the
    #: remark.
    is_again: bool = False


def counting(cohort: Cohort, progress: Progress) -> Callable[[RegionDone], None]:
    """Return what reports each finished region of `run_regions` to a progress."""
    total, names = len(cohort.regions), set[str]()

    def count(done: RegionDone) -> None:
        names.add(done.region)
        progress.tell(len(names) / total, f"{len(names)} of {counted(total, 'region')}")
        if done.remark and progress.remark is not None:
            progress.remark(done.remark)

    return count


def run_regions(
    cohort: Cohort,
    work: RegionWork[T],
    *,
    jobs: int | None = None,
    scheduler: str = THREADS,
    store: Path | None = None,
    on_result: Callable[[RegionDone], None] | None = None,
    on_progress: Callable[[str, float, str], None] | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Iterator[T]:
    """Do some work on all regions of a cohort, several at a time.

    Parameters
    ----------
    cohort
        What to evaluate. Files that vanish or change meanwhile are findings.
    work
        What is done with each region, such as an `Experiment`.
    jobs
        Regions at a time. None for the number of processors, or for twice the
        number of threads of the cluster.
    scheduler
        ``threads``, ``processes``, ``auto`` (threads, and processes as soon as
        the rest is long enough), or the address of a Dask scheduler whose
        workers see the same files under the same paths. Where processes may
        be used, a script must be guarded by ``if __name__ == "__main__"``.
    store
        A folder for finished regions of an `Experiment`, which reuses those of an earlier run.
        None to keep nothing.
    on_result
        Called with each finished region, from the thread that iterates.
    on_progress
        Called with the name of a region that is read in windows, how much of it
        is done (0 to 1), and what is being done, from any thread of this
        process. Other processes report nothing.
    is_wanted
        Polled; nothing more is yielded once it returns False.

    Yields
    ------
    The results of one region after the other, in the cohort's order; of an `Experiment` per
    condition those of the teams. What was yielded is not kept in memory, and without a store at
    most a few regions per job are in memory at a time.

    Raises
    ------
    PanopticError
        If the store cannot be written, the scheduler does not answer, or
        workers keep dying; a SettingsError for a malformed address.
    """
    # Workers may have another current folder.
    kept = None if store is None else PartStore(store.absolute())
    pool = _Pool(jobs, scheduler, on_progress)
    try:
        run = _Run(cohort, work, pool, kept, on_result)
        yield from run.in_order(is_wanted)
    finally:
        pool.close()


def region_fingerprint(cohort: Cohort, region: Region, work: Experiment) -> str:
    """Return a digest of everything that the results of a region depend on.

    That is the content of its files (for masks that are too large, also their
    modification time), the list of its files, the conditions, the classes, and
    the version of this package.

    Parameters
    ----------
    cohort
        Where the region is from; its other regions do not matter.
    region, work
        What is done.
    """
    own = {t: cohort.predictions.get((t, region.name), {}) for t in work.team_names}
    masks = [path for forms in own.values() for files in forms.values() for path in files.all_paths]
    masks += [] if region.reference is None else region.reference.all_paths
    image = [] if region.image is None else [region.image]
    record = {
        "version": __version__,
        "work": work.record,
        "scheme": asdict(cohort.scheme),
        "region": [
            *(region.name, region.patient, str(region.image), region.image_item, region.mpp),
            _named(region.reference),
        ],
        "predictions": {t: [_named(files) for files in forms.values()] for t, forms in own.items()},
        "usual": {t: usual_form(cohort, t) for t in work.team_names},
        "inputs": file_fingerprints([*masks, *image], cohort.root),
        "changed": times_of_large(masks),
    }
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _named(files: MaskFiles | None) -> Any:
    if files is None:
        return None
    paths = {name: [str(p) for p in paths] for name, paths in files.paths.items()}
    patch = None if files.patch is None else asdict(files.patch)
    probability = None if files.probability is None else str(files.probability)
    return [files.source, paths, files.item, asdict(files.rules), patch, probability]


def _example(cohort: Cohort, team: str) -> tuple[str, str] | None:
    """Return the key of a prediction in the usual format of a team; None without predictions."""
    form = usual_form(cohort, team)
    found = cohort.predictions.items()
    return next((key for key, forms in found if key[0] == team and form in forms), None)


# --- one region, in any process ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Done:
    """A finished region: its results, or None if the stored ones are still valid."""

    fingerprint: str
    results: Any


def _do_region(
    part: Cohort,
    work: RegionWork[Any],
    known: str | None,
    version: str,
    store: PartStore | None,
    progress: Progress,
) -> _Done:
    """Evaluate the one region of a cut cohort, unless its fingerprint is the known one."""
    if version != __version__:
        raise PanopticError(
            f"a worker has napari-panoptic {__version__}, but this is {version}: install the "
            f"same version everywhere"
        )
    (region,) = part.regions
    if store is None or not isinstance(work, Experiment):
        return _Done(_NEVER, work.evaluate(part, region, progress=progress))
    fingerprint = region_fingerprint(part, region, work)
    if known is not None and fingerprint == known:
        return _Done(fingerprint, None)
    results = work.evaluate(part, region, store=store, progress=progress)
    if region_fingerprint(part, region, work) != fingerprint:
        fingerprint = _NEVER  # files changed during evaluation: do not reuse
    return _Done(fingerprint, results)


# --- the run ----------------------------------------------------------------------------------


class _Run:
    """Submits a bounded number of regions at a time, and yields them in order."""

    def __init__(
        self,
        cohort: Cohort,
        work: RegionWork[Any],
        pool: _Pool,
        store: PartStore | None,
        on_result: Callable[[RegionDone], None] | None,
    ) -> None:
        self._cohort, self._work, self._pool, self._store = cohort, work, pool, store
        self._regions, self._on_result = cohort.regions, on_result
        examples = [_example(cohort, team) for team in work.team_names]
        # A team's usual format is a property of the whole cohort; workers see it in one example.
        self._examples = {key: cohort.predictions[key] for key in examples if key is not None}
        self._running: dict[Future[_Done], int] = {}
        # Place -> results, or None if they are in the store only.
        self._ready: dict[int, Any] = {}
        self._again: list[int] = []
        self._remarks: dict[int, str] = {}
        self._told: set[int] = set()
        self._next = self._handed = 0

    def in_order(self, is_wanted: Callable[[], bool]) -> Iterator[Any]:
        for place in range(len(self._regions)):
            self._handed = place
            while (found := self._take(place)) is None:
                if not is_wanted():
                    return
                self._start_more()
                self._collect()
            yield found

    def _take(self, place: int) -> Any:
        """Return a region's results, from memory or the store; None if it is not finished."""
        if place not in self._ready:
            return None
        results = self._ready.pop(place)
        if results is None and self._store is not None:
            try:
                results = self._store.read(self._regions[place].name)
            except DamagedPartError as error:
                self._remarks[place] = str(error)
        if results is None:  # the stored file was removed or damaged meanwhile
            self._again.append(place)
        return results

    def _start_more(self) -> None:
        while len(self._running) < self._pool.limit and (place := self._next_place()) is not None:
            known = self._known(place)
            part = self._with_one(self._regions[place])
            try:
                future = self._pool.submit(part, self._work, self._store, known)
            except PanopticError:
                self._collect()  # keeps what is finished; names a region that was not, if there is
                raise
            self._running[future] = place

    def _with_one(self, region: Region) -> Cohort:
        """Reduce the cohort to what one region needs, so that little is sent to a worker."""
        keys = [(team, region.name) for team in self._work.team_names]
        own = {k: self._cohort.predictions[k] for k in keys if k in self._cohort.predictions}
        predictions = self._examples | own
        return replace(self._cohort, regions=(region,), predictions=predictions, findings=())

    def _next_place(self) -> int | None:
        if self._again:
            return self._again.pop()
        # Without a store, regions that are finished early stay in memory: limit their number.
        is_far = self._store is None and self._next >= self._handed + 2 * self._pool.limit
        if self._next == len(self._regions) or is_far:
            return None
        self._next += 1
        return self._next - 1

    def _known(self, place: int) -> str | None:
        if self._store is None or place in self._remarks:
            return None
        try:
            return self._store.fingerprint(self._regions[place].name)
        except DamagedPartError as error:
            self._remarks[place] = str(error)
            return None

    def _collect(self) -> None:
        done, _ = wait(self._running, timeout=_PATIENCE_S, return_when=FIRST_COMPLETED)
        if not done:
            self._pool.check()
        # Those that failed last, so that the others are kept.
        for future in sorted(done, key=_has_failed):
            place = self._running.pop(future)
            with self._pool.explaining(self._regions[place].name):
                found = future.result()
            self._settle(place, found)

    def _settle(self, place: int, done: _Done) -> None:
        name = self._regions[place].name
        is_near = place < self._handed + self._pool.limit
        self._ready[place] = done.results if self._store is None or is_near else None
        if self._store is not None and done.results is not None:
            self._store.write(name, done.fingerprint, done.results)
        remark = self._remarks.pop(place, "")
        is_again = place in self._told  # its stored results were deleted or damaged
        self._told.add(place)
        self._pool.consider(len(self._told), len(self._regions) - len(self._told))
        if self._on_result is not None and (remark or not is_again):
            self._on_result(RegionDone(name, done.results is None, remark, is_again))


def _has_failed(future: Future[Any]) -> bool:
    return future.cancelled() or future.exception() is not None


# --- where regions are evaluated --------------------------------------------------------------


_OnProgress = Callable[[str, float, str], None] | None


class _Pool:
    """Threads, processes, or a cluster, to which regions are submitted.

    Reading XML holds the GIL, so that threads do not help there; processes take
    seconds to start.
    """

    def __init__(self, jobs: int | None, scheduler: str, on_progress: _OnProgress) -> None:
        is_local = scheduler in (THREADS, PROCESSES, AUTO)
        self._cluster = None if is_local else Cluster(scheduler)
        self._jobs = jobs or (os.cpu_count() or 1 if is_local else None)
        self._on_progress = on_progress
        self._may_change = scheduler == AUTO and self._jobs != 1
        # Cancel a region that is evaluated in windows, in threads and in processes.
        self._cancelled = threading.Event()
        self._cancelled_in_processes: Any = None
        self._executors: list[Executor] = []
        if scheduler == PROCESSES:
            self._start_processes()
        elif is_local:
            self._executors.append(ThreadPoolExecutor(self._jobs))
        self._start = time.perf_counter()

    @property
    def limit(self) -> int:
        """The number of regions that may be running or waiting."""
        if self._cluster is not None:
            return self._jobs or max(2 * self._cluster.n_threads, 2)
        return 2 * (self._jobs or 1)

    def submit(
        self,
        part: Cohort,
        work: RegionWork[Any],
        store: PartStore | None,
        known: str | None,
    ) -> Future[_Done]:
        """Start evaluating a region."""
        executor = self._executors[-1] if self._cluster is None else self._cluster.executor
        progress = Progress(_is_wanted_here)
        (region,) = part.regions
        if isinstance(executor, ThreadPoolExecutor):
            report = None if self._on_progress is None else partial(self._on_progress, region.name)
            progress = Progress(lambda: not self._cancelled.is_set(), report)
        with self.explaining(region.name):
            return executor.submit(_do_region, part, work, known, __version__, store, progress)

    @contextmanager
    def explaining(self, region: str) -> Iterator[None]:
        """Raise a PanopticError that says what to do if the worker of a region died."""
        try:
            yield
        except BrokenProcessPool as error:
            raise PanopticError(
                "a worker process died, possibly out of memory. Finished regions are kept: run "
                "the same again with fewer --jobs",
                region=region,
            ) from error
        except (Exception, CancelledError) as error:
            if self._cluster is None:
                raise
            raise self._cluster.explained(error, region) from error

    def consider(self, n_done: int, n_left: int) -> None:
        """Change from threads to processes if the rest takes long enough."""
        if not self._may_change or n_done < self.limit:
            return
        rest_s = (time.perf_counter() - self._start) / n_done * n_left
        if rest_s > _WORTH_PROCESSES_S:
            self._may_change = False
            self._start_processes()

    def check(self) -> None:
        """Raise a PanopticError if a cluster has been lost; other executors fail by themselves."""
        if self._cluster is not None:
            self._cluster.check()

    def close(self) -> None:
        """Cancel what has not begun, and wait for the rest."""
        self._cancelled.set()
        if self._cancelled_in_processes is not None:
            self._cancelled_in_processes.set()
        for executor in self._executors:
            executor.shutdown(wait=True, cancel_futures=True)
        if self._cluster is not None:
            self._cluster.close()

    def _start_processes(self) -> None:
        executor, self._cancelled_in_processes = _processes(self._jobs or 1)
        self._executors.append(executor)


def _processes(jobs: int) -> tuple[ProcessPoolExecutor, Any]:
    """Start processes; return them and the event that cancels work between two windows."""
    # Forking a process that has threads can deadlock: fork from a server without threads.
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload([__name__])
    cancelled = context.Event()
    executor = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_begin_worker, initargs=(cancelled,)
    )
    return executor, cancelled


_cancelled_here: Any = None


def _is_wanted_here() -> bool:
    """Return whether the process that started this worker still wants results."""
    return _cancelled_here is None or not _cancelled_here.is_set()


def _begin_worker(cancelled: Any) -> None:
    """Leave Ctrl-C to the process that started this one, and end when that one is gone."""
    global _cancelled_here
    _cancelled_here = cancelled
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        wait_for([sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
