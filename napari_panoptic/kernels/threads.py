"""Run kernels in two threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

THREADS_FROM_PX = 1 << 20
"""Images of at least this many pixels are worth a second thread."""


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
