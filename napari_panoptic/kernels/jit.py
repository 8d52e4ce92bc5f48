"""Compile the numerical kernels, and run them in two threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
Array = TypeVar("Array", bound=np.ndarray[Any, Any])
Part = TypeVar("Part")
Result = TypeVar("Result")

THREADS_FROM_PX = 1 << 20
"""Images of at least this many pixels are worth a second thread."""


def compiled(function: F) -> F:
    """Compile a kernel with numba; cache it on disk and release the GIL.

    Kernels are compiled again when a file beside theirs changes. If no cache folder is
    writable, they are compiled in each process.
    """
    try:
        kernel = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba: "no locator available"
        return cast("F", numba.njit(nogil=True)(function))
    _discard_outdated(Path(kernel.stats.cache_path), Path(function.__code__.co_filename).parent)
    return cast("F", kernel)


@cache
def _discard_outdated(folder: Path, sources: Path) -> None:
    """Delete the cached kernels of a folder if any source file has changed since.

    Numba looks at a kernel's own file alone: it would keep the constants and callees that a
    kernel took from another file. It also reads the types of a kernel's arguments from the
    cache before it looks at that file, which fails if such a type was renamed.
    """
    stamps = sorted((path.name, path.stat().st_mtime_ns) for path in sources.glob("*.py"))
    stamp, known = repr(stamps), folder / "sources.txt"
    with suppress(OSError):
        if not (known.is_file() and known.read_text("utf-8") == stamp):
            for path in folder.glob("*.nbi"):
                path.unlink(missing_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            known.write_text(stamp, "utf-8")


def read_only(array: Array) -> Array:
    """Return a read-only view of an array.

    Numba compiles a kernel twice if it gets writable and read-only arrays, such as files in
    memory. Passing only read-only views avoids the second compilation.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def bands_of(shape: tuple[int, ...]) -> list[slice]:
    """Split the rows of an image for :func:`in_threads`.

    Parameters
    ----------
    shape
        Height and width in px.

    Returns
    -------
    list
        Two slices of rows, ascending; one if the image is too small for a second thread.
    """
    height, width = shape[:2]
    if height * width < THREADS_FROM_PX:
        return [slice(0, height)]
    return [slice(0, height // 2), slice(height // 2, height)]


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Process the first part in this thread and each other part in a thread of its own.

    Parameters
    ----------
    work
        What to do with a part. Threads help only where it releases the GIL.
    parts
        At least one.

    Returns
    -------
    list
        The results, in the order of the parts. An error of any part is raised after all
        threads have finished.
    """
    if len(parts) == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(len(parts) - 1, thread_name_prefix="kernels") as pool:
        others = [pool.submit(work, part) for part in parts[1:]]
        return [work(parts[0]), *(other.result() for other in others)]
