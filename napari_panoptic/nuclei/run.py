"""All regions of a cohort: several at a time, on one machine or many, and resumable.

Regions are done in any order and handed on in the cohort's. Where there is a
store, each is kept there as soon as it is done, and a later run takes over
those of which neither files nor settings have changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, Protocol

from napari_panoptic import __version__
from napari_panoptic.common.errors import PanopticError, SettingsError, similar
from napari_panoptic.io.fingerprints import file_fingerprints, times_of_large
from napari_panoptic.nuclei.conditions import Experiment
from napari_panoptic.nuclei.reading import TooLargeError, preferred_form
from napari_panoptic.nuclei.result_store import DamagedPartError, PartStore, RegionResults
from napari_panoptic.nuclei.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.nuclei.windowed_regions import SlideRun, evaluate_slide

THREADS, PROCESSES, AUTO = "threads", "processes", "auto"
"""Ways to do several regions at a time on this machine; any other is a Dask scheduler's address."""
_SCHEDULERS = (
    f"{THREADS}, {PROCESSES}, or what 'dask scheduler' prints, such as tcp://10.0.0.5:8786"
)

_WORTH_PROCESSES_S = 10.0
"""So long must the rest of a run take before processes, slow to start, are worth it."""
_NEVER = ""
"""A fingerprint that no region has: what is kept under it is not taken over."""
_PATIENCE_S = 0.5
_CONNECT_S = 10.0
_WITHOUT_WORKERS_S = 60.0


@dataclass(frozen=True)
class RegionDone:
    """News of a region that is done; they come in any order, once for each but for remarks.

    Parameters
    ----------
    region
        Its name.
    is_taken_over
        Whether it was done in an earlier run, and nothing has changed since.
    remark
        What was wrong with the stored results of an earlier run; empty where
        nothing was.
    is_again
        Whether the region was told of before, and had to be done again for the
        reason in the remark.
    """

    region: str
    is_taken_over: bool
    remark: str = ""
    is_again: bool = False


def run_regions(
    cohort: Cohort,
    work: Experiment,
    *,
    jobs: int | None = None,
    scheduler: str = THREADS,
    store: Path | None = None,
    on_result: Callable[[RegionDone], None] | None = None,
    on_progress: Callable[[str, float, str], None] | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Iterator[RegionResults]:
    """Evaluate all regions of a cohort, several at a time.

    Parameters
    ----------
    cohort
        What to evaluate. Files that vanish or change meanwhile are findings.
    work
        Which teams, under which conditions.
    jobs
        Regions at a time. None for as many as there are processors here, or
        twice as many as the cluster has threads.
    scheduler
        ``threads``, ``processes``, ``auto`` (threads, and processes as soon as
        the rest is long enough), or the address of a Dask scheduler whose
        workers see the same files under the same paths. Where processes may
        be used, a script must be guarded by ``if __name__ == "__main__"``.
    store
        A folder for the regions that are done; what an earlier run has left
        there is taken over. None to keep nothing.
    on_result
        Called, from the thread that asks for the results, with each region
        that is done.
    on_progress
        Called, from any thread of this process, with the name of a region too
        large to hold that is being gone over, how much of it is done (0 to
        1), and what is being done. Other processes do not tell.
    is_wanted
        Asked again and again; where it says no, nothing more is yielded.

    Yields
    ------
    list of list of RegionResult
        One region after the other, in the cohort's order: per condition, the
        teams. Of what was yielded nothing is kept in memory, and without a
        store at most a few regions per job are there at a time.

    Raises
    ------
    PanopticError
        Where the store cannot be written, the scheduler does not answer, or
        workers die again and again; a SettingsError for what is no address.
    """
    # Workers may have another current folder.
    kept = None if store is None else PartStore(store.absolute())
    pool = _open_pool(jobs, scheduler, on_progress)
    try:
        run = _Run(cohort, work, pool, kept, on_result)
        yield from run.in_order(is_wanted)
    finally:
        pool.close()


def region_fingerprint(cohort: Cohort, region: Region, work: Experiment) -> str:
    """Return one number for everything that the results of a region depend on.

    That is the content of its files (of masks that are too large for that,
    their time, too), which files there are, the conditions, the classes, and
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
    usual = {t: _usual_form(cohort, t) for t in work.team_names}
    record = {
        "version": __version__,
        "work": work.as_record(),
        "scheme": asdict(cohort.scheme),
        "region": [
            *(region.name, region.patient, str(region.image), region.image_item),
            _named(region.reference),
        ],
        "predictions": {t: [_named(files) for files in forms.values()] for t, forms in own.items()},
        "usual": {t: None if found is None else found[1] for t, found in usual.items()},
        "inputs": file_fingerprints([*masks, *image], cohort.root),
        "changed": times_of_large(masks),
    }
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _named(files: MaskFiles | None) -> Any:
    if files is None:
        return None
    paths = {name: [str(p) for p in paths] for name, paths in files.paths.items()}
    return [files.source, paths, files.item, asdict(files.rules)]


def _usual_form(cohort: Cohort, team: str) -> tuple[tuple[str, str], Source] | None:
    """Find the form that a team's predictions usually have, and where one is there."""
    own = {key: forms for key, forms in cohort.predictions.items() if key[0] == team}
    form = preferred_form({form for forms in own.values() for form in forms})
    if form is None:
        return None
    return next(key for key, forms in own.items() if form in forms), form


# --- one region, wherever it is done ----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Done:
    """What comes back: results, or None where those known already hold."""

    fingerprint: str
    results: RegionResults | None


def _do_region(
    part: Cohort, work: Experiment, known: str | None, version: str, slides: SlideRun
) -> _Done:
    """Evaluate the one region of a cut cohort, unless its fingerprint is the known one."""
    if version != __version__:
        raise PanopticError(
            f"a worker has napari-panoptic {__version__}, but this is {version}: install the "
            f"same version everywhere"
        )
    (region,) = part.regions
    fingerprint = _NEVER if slides.store is None else region_fingerprint(part, region, work)
    if known is not None and fingerprint == known:
        return _Done(fingerprint, None)
    try:
        results = work.evaluate(part, region)
    except TooLargeError:
        results = evaluate_slide(part, region, work, slides)
    if slides.store is not None and region_fingerprint(part, region, work) != fingerprint:
        fingerprint = _NEVER  # of before or of after, nobody knows
    return _Done(fingerprint, results)


class _Cutter:
    """Cuts a cohort down to what one region needs, so that little travels to a worker."""

    def __init__(self, cohort: Cohort, team_names: tuple[str, ...]) -> None:
        self._cohort = cohort
        self._teams = team_names
        usual = [_usual_form(cohort, team) for team in team_names]
        # Which form of a team is the usual one is told by the whole cohort: one example will do.
        self._examples = {found[0]: cohort.predictions[found[0]] for found in usual if found}

    def cut(self, region: Region) -> Cohort:
        keys = [(team, region.name) for team in self._teams]
        own = {k: self._cohort.predictions[k] for k in keys if k in self._cohort.predictions}
        predictions = self._examples | own
        return replace(self._cohort, regions=(region,), predictions=predictions, findings=())


# --- the run ----------------------------------------------------------------------------------


class _Run:
    """Keeps a bounded number of regions in work, and hands them on in order."""

    def __init__(
        self,
        cohort: Cohort,
        work: Experiment,
        pool: _Pool,
        store: PartStore | None,
        on_result: Callable[[RegionDone], None] | None,
    ) -> None:
        self._regions, self._work, self._pool, self._store = cohort.regions, work, pool, store
        self._cutter = _Cutter(cohort, work.team_names)
        self._on_result = on_result
        self._running: dict[Future[_Done], int] = {}
        # Place -> results, or None where they are in the store only.
        self._ready: dict[int, RegionResults | None] = {}
        self._again: list[int] = []
        self._remarks: dict[int, str] = {}
        self._told: set[int] = set()
        self._next = self._handed = 0

    def in_order(self, is_wanted: Callable[[], bool]) -> Iterator[RegionResults]:
        for place in range(len(self._regions)):
            self._handed = place
            while (found := self._take(place)) is None:
                if not is_wanted():
                    return
                self._start_more()
                self._collect()
            yield found

    def _take(self, place: int) -> RegionResults | None:
        """Return a region's results, from memory or the store; None where it is not done."""
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
            part = self._cutter.cut(self._regions[place])
            future = self._pool.submit(part, self._work, self._store, known)
            self._running[future] = place

    def _next_place(self) -> int | None:
        if self._again:
            return self._again.pop()
        # Without a store, what is ready before its turn stays in memory: not too much of it.
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
        for future in done:
            place = self._running.pop(future)
            self._settle(place, self._pool.result(future, self._regions[place].name))

    def _settle(self, place: int, done: _Done) -> None:
        name = self._regions[place].name
        is_near = place < self._handed + self._pool.limit
        self._ready[place] = done.results if self._store is None or is_near else None
        if self._store is not None and done.results is not None:
            self._store.write(name, done.fingerprint, done.results)
        remark = self._remarks.pop(place, "")
        is_again = place in self._told  # what was stored of it vanished or is damaged
        self._told.add(place)
        self._pool.consider(len(self._told), len(self._regions) - len(self._told))
        if self._on_result is not None and (remark or not is_again):
            self._on_result(RegionDone(name, done.results is None, remark, is_again))


# --- where regions are done -------------------------------------------------------------------


class _Pool(Protocol):
    """Threads, processes, or a cluster."""

    @property
    def limit(self) -> int:
        """How many regions may be in work or waiting for it."""

    def submit(
        self, part: Cohort, work: Experiment, store: PartStore | None, known: str | None
    ) -> Future[_Done]:
        """Start with a region."""

    def result(self, future: Future[_Done], region: str) -> _Done:
        """Return what came of a region, with a clear error where its worker died."""

    def consider(self, n_done: int, n_left: int) -> None:
        """Learn how far the run is."""

    def check(self) -> None:
        """Look after the workers, when nothing has come from them for a while."""

    def close(self) -> None:
        """Give up what has not begun, and wait for the rest."""


_OnProgress = Callable[[str, float, str], None] | None


def _open_pool(jobs: int | None, scheduler: str, on_progress: _OnProgress) -> _Pool:
    if scheduler in (THREADS, PROCESSES, AUTO):
        return _LocalPool(jobs or os.cpu_count() or 1, scheduler, on_progress)
    return _DaskPool(scheduler, jobs)


class _LocalPool:
    """Threads or processes of this machine.

    Much of reading, of XML above all, keeps the interpreter to itself, so that
    threads do not help there; processes take seconds to start.
    """

    def __init__(self, jobs: int, scheduler: str, on_progress: _OnProgress) -> None:
        self._jobs, self._on_progress = jobs, on_progress
        self._may_change = scheduler == AUTO and jobs > 1
        # Ends a slide between two windows, in whichever process it is gone over.
        self._given_up = threading.Event()
        self._given_up_everywhere: Any = None
        is_processes = scheduler == PROCESSES
        first = self._started_processes() if is_processes else ThreadPoolExecutor(jobs)
        self._executors: list[Executor] = [first]
        self._start = time.perf_counter()

    @property
    def limit(self) -> int:
        return 2 * self._jobs

    def submit(
        self, part: Cohort, work: Experiment, store: PartStore | None, known: str | None
    ) -> Future[_Done]:
        executor = self._executors[-1]
        slides = SlideRun(store, _is_wanted_here)
        if isinstance(executor, ThreadPoolExecutor):
            tell = self._on_progress
            (region,) = part.regions
            progress = None if tell is None else partial(tell, region.name)
            slides = SlideRun(store, lambda: not self._given_up.is_set(), progress)
        return executor.submit(_do_region, part, work, known, __version__, slides)

    def result(self, future: Future[_Done], region: str) -> _Done:
        try:
            return future.result()
        except BrokenProcessPool as error:
            raise PanopticError(
                "a worker process ended all of a sudden, perhaps for lack of memory; what is "
                "done is kept: run the same again with fewer --jobs",
                region=region,
            ) from error

    def consider(self, n_done: int, n_left: int) -> None:
        if not self._may_change or n_done < 2 * self._jobs:
            return
        rest_s = (time.perf_counter() - self._start) / n_done * n_left
        if rest_s > _WORTH_PROCESSES_S:
            self._may_change = False
            self._executors.append(self._started_processes())

    def check(self) -> None:
        """Threads and processes need no looking after: the executor tells of their end."""

    def close(self) -> None:
        self._given_up.set()
        if self._given_up_everywhere is not None:
            self._given_up_everywhere.set()
        for executor in self._executors:
            executor.shutdown(wait=True, cancel_futures=True)

    def _started_processes(self) -> ProcessPoolExecutor:
        executor, self._given_up_everywhere = _processes(self._jobs)
        return executor


def _processes(jobs: int) -> tuple[ProcessPoolExecutor, Any]:
    """Start processes; give them, and the event that ends their work between two windows."""
    # Forking a process with threads can deadlock: a server without any does it, where there is one.
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload([__name__])
    given_up = context.Event()
    executor = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_begin_worker, initargs=(given_up,)
    )
    return executor, given_up


_given_up_here: Any = None


def _is_wanted_here() -> bool:
    """Tell, in a worker process, whether the process that started it still wants results."""
    return _given_up_here is None or not _given_up_here.is_set()


def _begin_worker(given_up: Any) -> None:
    """Leave Ctrl-C to the process that started this one, and end when that one is gone."""
    global _given_up_here
    _given_up_here = given_up
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        wait_for([sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


class _DaskPool:
    """The workers of a Dask cluster."""

    def __init__(self, address: str, jobs: int | None) -> None:
        self._address, self._jobs = address, jobs
        self._distributed = _distributed()
        _check_address(address)
        self._speak_again = _silenced(["distributed.batched", "distributed.client"])
        try:
            self._client = self._distributed.Client(
                address, timeout=_CONNECT_S, set_as_default=False, name="napari-panoptic"
            )
        except (OSError, ValueError) as error:  # a time-out is an OSError
            self._speak_again()
            raise PanopticError(
                f"no Dask scheduler answers at '{address}' ({error}); start one with 'dask "
                f"scheduler' and give the address that it prints, such as tcp://10.0.0.5:8786"
            ) from error
        self._n_threads = self._count_threads()
        if not self._n_threads:
            self._client.close()
            self._speak_again()
            raise PanopticError(
                f"the Dask scheduler at '{address}' has no workers: start some with "
                f"'dask worker {address}'"
            )
        self._tasks: dict[Future[_Done], Any] = {}
        self._counted = self._alive = time.monotonic()

    @property
    def limit(self) -> int:
        self._count_sometimes()
        return self._jobs or max(2 * self._n_threads, 2)

    def submit(
        self, part: Cohort, work: Experiment, store: PartStore | None, known: str | None
    ) -> Future[_Done]:
        task = self._client.submit(
            _do_region,
            part,
            work,
            known,
            __version__,
            SlideRun(store),
            pure=False,
        )
        # Tells only that the task has come to an end; what came of it is fetched by result.
        ended: Future[_Done] = Future()
        task.add_done_callback(lambda _: ended.set_result(_Done("", None)))
        self._tasks[ended] = task
        return ended

    def result(self, future: Future[_Done], region: str) -> _Done:
        try:
            done = self._fetched(self._tasks.pop(future))
        except (CancelledError, asyncio.CancelledError, OSError) as error:
            raise self._gone() from error
        except self._distributed.KilledWorker as error:
            raise PanopticError(
                "several workers ended all of a sudden at this region, perhaps for lack of "
                "memory; what is done is kept: run the same again with larger workers",
                region=region,
            ) from error
        except ImportError as error:
            raise PanopticError(
                f"the Dask workers cannot import what they need ({error}): install "
                f"napari-panoptic {__version__} where they run"
            ) from error
        self._alive = time.monotonic()
        return done

    def _fetched(self, task: Any) -> _Done:
        """Fetch a result; it is computed anew where its worker has died in the meantime."""
        timeout_s = 1.0
        while True:
            try:
                done: _Done = task.result(timeout=timeout_s)
            except TimeoutError:
                self.check()
                timeout_s *= 2  # a large result on a slow network takes its time
            else:
                return done

    def consider(self, n_done: int, n_left: int) -> None:
        """Nothing to decide: the cluster is what it is."""

    def check(self) -> None:
        if self._client.status != "running":
            raise self._gone()
        self._count_sometimes()
        if self._n_threads:
            self._alive = time.monotonic()
        elif time.monotonic() > self._alive + _WITHOUT_WORKERS_S:
            raise PanopticError(
                f"the Dask scheduler at '{self._address}' has lost all its workers; what is done "
                f"is kept: start new ones and run the same again"
            )

    def close(self) -> None:
        try:
            if self._client.status == "running":
                self._client.cancel(list(self._tasks.values()))
            self._client.close()
        finally:
            self._speak_again()

    def _count_sometimes(self) -> None:
        """Count the threads of the cluster anew: workers come and go."""
        if time.monotonic() > self._counted + 1:
            self._counted = time.monotonic()
            self._n_threads = self._count_threads()

    def _count_threads(self) -> int:
        try:
            return sum(self._client.nthreads().values())
        except OSError:
            return 0

    def _gone(self) -> PanopticError:
        return PanopticError(
            f"the Dask scheduler at '{self._address}' does not answer any more; what is done is "
            f"kept: start it and run the same again"
        )


def _silenced(names: Sequence[str]) -> Callable[[], None]:
    """Keep loggers from telling of lost connections, which are errors already; gives the undoing.

    They would show tracebacks beside the error.
    """
    levels = {name: logging.getLogger(name).level for name in names}

    def set_levels(chosen: Mapping[str, int]) -> None:
        for name, level in chosen.items():
            logging.getLogger(name).setLevel(level)

    set_levels(dict.fromkeys(names, logging.CRITICAL))
    return lambda: set_levels(levels)


def _check_address(address: str) -> None:
    """Refuse what is no address, before a client waits for an answer from nowhere.

    Raises
    ------
    SettingsError
        For a word without a port, or with a way to connect that is not known.
    """
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    try:
        scheme, place = parse_address(address)
        get_backend(scheme)
        if scheme != "inproc":  # in this very process, without a port
            parse_host_port(place)
    except ValueError as error:
        close = similar(address, [THREADS, PROCESSES])
        hint = f"did you mean {' or '.join(close)}?" if close else f"expected {_SCHEDULERS}"
        raise SettingsError(f"scheduler: '{address}' is no address ({error}); {hint}") from error


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise PanopticError(
            "a Dask scheduler needs the package distributed, which is not installed: "
            "pip install 'napari-panoptic[dask]'"
        ) from error
    return distributed
