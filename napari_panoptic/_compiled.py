"""One way to compile the numerical kernels."""

import hashlib
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

F = TypeVar("F", bound=Callable[..., Any])
Array = TypeVar("Array", bound=np.ndarray[Any, Any])
Part = TypeVar("Part")
Result = TypeVar("Result")

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
        """Give a kernel as it was kept; None where it was not, or is damaged."""
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


def _cache_file(dispatcher: Any) -> Any:
    """Give what numba keeps of a kernel on disk; None for one that is not kept."""
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
    """Give a view of an array that nobody can write to.

    A kernel is compiled once for arrays that can be written to and once for
    those that cannot, as a file in memory; given such views, only once.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Do kernels' work on several parts at once: one in this thread, each other in its own.

    Parameters
    ----------
    work
        What to do with a part; gains where it spends its time in kernels.
    parts
        At least one.

    Returns
    -------
    list
        The results, in the order of the parts.
    """
    if len(parts) == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(max_workers=len(parts) - 1) as pool:
        others = [pool.submit(work, part) for part in parts[1:]]
        first = work(parts[0])
    return [first, *(other.result() for other in others)]
