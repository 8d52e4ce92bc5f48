"""One way to compile the numerical kernels."""

import ctypes
import hashlib
import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])
Array = TypeVar("Array", bound=np.ndarray[Any, Any])
Part = TypeVar("Part")
Result = TypeVar("Result")

THREADS = 2
"""So many threads do kernels' work at once."""
THREADS_FROM_PX = 1 << 20
"""From so many pixels on a second thread is worth its start to a kernel that reads them once."""

_DIGEST_MARK = b"napari-panoptic sha256"
"""Stands in a kept kernel before the SHA-256 of all that precedes it."""


def compiled(function: F) -> F:
    """Compile a kernel with numba, cached on disk and without the GIL.

    Kernels release the GIL so that a worker thread never holds up the
    interface. Where neither the package's folder nor the user's cache can be
    written they are compiled anew in each process.
    """
    try:
        dispatcher = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba: "no locator available"
        return cast("F", numba.njit(nogil=True)(function))
    known = _cache_file(dispatcher)
    stamp = (known._source_stamp, *_stamps_of_imports(function))
    base = known._index_name.removesuffix(".nbi")
    dispatcher._cache._cache_file = _CheckedCacheFile(known._cache_path, base, stamp)
    return cast("F", dispatcher)


class _CheckedCacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """What numba keeps of a kernel on disk; damaged files count as none.

    Numba itself would give up where a file is cut off, run whatever code is in
    one that was changed, and fail where the disk is full.
    """

    def load(self, key: Any) -> Any:
        """Return a kernel as it was kept; None where it was not, or is damaged."""
        try:
            return super().load(key)
        except Exception:  # noqa: BLE001 - damaged pickles raise anything
            return None

    def save(self, key: Any, data: Any) -> None:
        """Keep a kernel; where there is no room it is compiled anew the next time."""
        with suppress(OSError):
            super().save(key, data)

    def _load_index(self) -> dict[Any, str]:
        try:
            return dict(super()._load_index())
        except Exception:  # noqa: BLE001 - damaged pickles raise anything
            return {}

    def _load_data(self, name: str) -> Any:
        content = Path(self._data_path(name)).read_bytes()
        # Files of before have no digest; pickle takes no notice of one.
        body, mark, digest = content.rpartition(_DIGEST_MARK)
        if mark and digest != hashlib.sha256(body).digest():
            return None
        return pickle.loads(body if mark else content)  # noqa: S301 - numba's own format

    def _save_data(self, name: str, data: Any) -> None:
        body = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(body + _DIGEST_MARK + hashlib.sha256(body).digest())


def waits_to_be_kept(kernel: Callable[..., Any]) -> bool:
    """Return whether a kernel can be kept on disk, and no process has done so yet."""
    known = _cache_file(kernel)
    return known is not None and not known._load_index()


def _cache_file(dispatcher: Any) -> Any:
    """Return what numba keeps of a kernel on disk; None for one that is not kept."""
    return getattr(dispatcher._cache, "_cache_file", None)


def _stamps_of_imports(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """List what a kernel takes from other modules: stamps of kernels, values of constants.

    Numba compiles them into the kernel but looks at the kernel's own file alone
    when it asks whether what it has on disk is still valid: after an upgrade a
    kernel would go on with the constants and callees of the version before.
    """
    stamps: list[tuple[str, Any]] = []
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Dispatcher):
            stamps.append((name, getattr(_cache_file(value), "_source_stamp", None)))
        elif isinstance(value, (bool, int, float, np.generic)):
            stamps.append((name, repr(value)))
    return stamps


def read_only(array: Array) -> Array:
    """Return a view of an array that nobody can write to.

    A kernel is compiled once for arrays that can be written to and once for
    those that cannot, as a file in memory; given such views, only once.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def bands_of(shape: tuple[int, ...]) -> list[slice]:
    """Share the lines of an image out to :func:`in_threads`, where that is worth it.

    Parameters
    ----------
    shape
        Height and width in px.

    Returns
    -------
    list
        One slice of lines for each thread, ascending.
    """
    height, width = shape[:2]
    if height * width < THREADS_FROM_PX:
        return [slice(0, height)]
    return [slice(0, height // 2), slice(height // 2, height)]


@intrinsic  # type: ignore[untyped-decorator]
def take_next(_: Any, taken: Any) -> Any:
    """Return the first number of an int64 array and raise it by one, in one step for all threads.

    For kernels that run in several threads at once and share work out among them.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        one = context.get_constant(types.int64, 1)
        return builder.atomic_rmw("add", array.data, one, "monotonic")

    return types.int64(taken), generate


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Do kernels' work on several parts, in this thread and another one beside it.

    Each takes the next part when it is done with one: where the other comes late, as it may by
    half a millisecond on a virtual machine, this one does all there is. Between parts both need
    the interpreter, so few long parts are better than many.

    Parameters
    ----------
    work
        What to do with a part; gains where it spends its time in kernels. Where it fails,
        parts that nobody has taken are left undone.
    parts
        At least one.

    Returns
    -------
    list
        The results, in the order of the parts.
    """
    left = deque(enumerate(parts))
    results: dict[int, Result] = {}
    turn = _Task(partial(_work_off, work, left, results))
    helper = _helper() if len(parts) > 1 else None
    if helper is not None:
        helper.stay_off_this_processor()
        helper.tasks.put(turn)
    try:
        _work_off(work, left, results)
    finally:
        left.clear()
        if helper is not None:
            turn.wait()
            _IDLE.append(helper)
    if turn.error is not None:
        raise turn.error
    return [results[number] for number in range(len(parts))]


def _work_off(
    work: Callable[[Part], Result], left: deque[tuple[int, Part]], results: dict[int, Result]
) -> None:
    """Take part after part until none is left."""
    while left:
        try:
            number, part = left.popleft()
        except IndexError:  # the other thread was faster
            return
        results[number] = work(part)


class _Task:
    """What a helper is asked to do, unless it comes too late."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.error: BaseException | None = None
        self._work = work
        self._is_done = False
        self._begun, self._pending = Lock(), Lock()
        self._pending.acquire()

    def do(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised by who asked
            self.error = error
        self._is_done = True
        self._pending.release()

    def wait(self) -> None:
        """Wait until it is done, at first without sleeping; not at all where nobody has begun."""
        if self._begun.acquire(blocking=False):
            return
        end = time.perf_counter() + _AWAKE_S
        while not self._is_done and time.perf_counter() < end:
            time.sleep(0)  # lets go of the interpreter, which the helper needs
        self._pending.acquire()


class _Helper:
    """A thread that stays, since to start one takes as long as a small kernel runs."""

    def __init__(self) -> None:
        self.tasks: SimpleQueue[_Task] = SimpleQueue()
        self._thread = Thread(target=self._run, name="kernels", daemon=True)
        self._thread.start()

    def stay_off_this_processor(self) -> None:
        """Let the system run this thread on any processor but the one of who calls.

        Linux on a virtual machine was seen to wake the thread where it is called from, again
        and again: both shared one processor while the other had nothing to do.
        """
        if _current_processor is None or self._thread.native_id is None:
            return
        with suppress(OSError):  # not allowed here: the system chooses
            others = os.sched_getaffinity(0) - {_current_processor()}
            if others:
                os.sched_setaffinity(self._thread.native_id, others)

    def _run(self) -> None:
        while True:
            # In one expression, so that nothing is kept alive until the next task.
            self.tasks.get().do()


def _asks_for_processor() -> Callable[[], int] | None:
    """Return what tells the processor that runs this thread; None where the system cannot be asked.

    Where threads cannot be kept off a processor, it is not worth asking.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        return cast("Callable[[], int]", ctypes.CDLL(None).sched_getcpu)
    except (OSError, AttributeError):
        return None


_current_processor = _asks_for_processor()
_IDLE: list[_Helper] = []
_AWAKE_S = 0.001
"""How long a thread looks whether its helper is done before it sleeps."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_IDLE.clear)  # a child has no threads but one


def _helper() -> _Helper:
    """Return a helper that has nothing to do, a new one where all are at work."""
    try:
        return _IDLE.pop()
    except IndexError:
        return _Helper()
