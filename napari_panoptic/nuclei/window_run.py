"""The windows of an image, processed several at a time, with progress and cancellation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.nuclei.values.windowed_labels import Box, TiledPair

WINDOW_PX = 1024
"""About the edge of a window: its work outweighs its overhead, and several fit in memory."""
_PATIENCE_S = 0.2

T = TypeVar("T")


@dataclass(frozen=True)
class WindowRun:
    """How windows are processed, and where progress is reported.

    Parameters
    ----------
    progress
        Reported from the thread that asked for the work; checked for
        cancellation before each window.
    workers
        Windows at a time, each in a thread.
    window_px
        About the edge of a window.
    """

    progress: Progress = UNWATCHED
    workers: int = 2
    window_px: int = WINDOW_PX

    def part(self, start: float, end: float) -> WindowRun:
        """Return a part of this work, from one share of it to another."""
        return replace(self, progress=self.progress.part(start, end))

    def over(self, items: Sequence[T], work: Callable[[T], None], doing: str) -> None:
        """Process all items, a few at a time, in threads.

        Parameters
        ----------
        items
            What to work on, started in this order.
        work
            Called once with each item, in one of several threads.
        doing
            What is being done, for the progress.

        Raises
        ------
        StoppedError
            If cancelled; tasks already started have finished by then.
        """
        self.progress.tell(0.0, doing)
        pool = ThreadPoolExecutor(max_workers=max(self.workers, 1))
        rest = iter(items)
        running: set[Future[None]] = set()
        done = 0
        try:
            while True:
                self.progress.check()
                free = 2 * self.workers - len(running)
                running |= {pool.submit(work, item) for item in islice(rest, free)}
                if not running:
                    return
                ended, running = wait(running, timeout=_PATIENCE_S, return_when=FIRST_COMPLETED)
                for future in ended:
                    future.result()
                    done += 1
                    self.progress.tell(done / len(items), doing)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def window_edge(pair: TiledPair, about_px: int) -> int:
    """Return the edge of windows in px: about the one given, and a multiple of the files' tiles."""
    tile = max(pair.reference.tile_px, pair.prediction.tile_px)
    return tile * max(1, round(about_px / tile)) if tile else about_px


def windows(shape: tuple[int, int], edge: int) -> list[Box]:
    """Return the windows of an image, row by row, given their edge in px; they cover it once."""
    height, width = shape
    return [
        (y, x, min(y + edge, height), min(x + edge, width))
        for y in range(0, height, edge)
        for x in range(0, width, edge)
    ]


def by_window(y: NDArray[np.integer], x: NDArray[np.integer], edge: int) -> list[NDArray[np.int64]]:
    """Group points by the window that they lie in.

    Parameters
    ----------
    y, x
        (n,): the points, in px, not negative.
    edge
        Of the windows, in px.

    Returns
    -------
    list of array
        int64 (m,): positions of the points of a window, for each window that
        has any, row by row.
    """
    if not len(y):
        return []
    row, column = np.asarray(y, np.int64) // edge, np.asarray(x, np.int64) // edge
    window = row * (int(column.max()) + 1) + column
    order = np.argsort(window, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(window[order])) + 1)


def boxes_touched(boxes: Iterable[Box], shape: tuple[int, int], edge: int) -> list[Box]:
    """Return the windows of an image that share a pixel with any of some boxes."""
    all_windows = windows(shape, edge)
    across = -(-shape[1] // edge)
    is_touched = np.zeros((-(-shape[0] // edge), across), bool)
    for y0, x0, y1, x1 in boxes:
        is_touched[y0 // edge : (y1 - 1) // edge + 1, x0 // edge : (x1 - 1) // edge + 1] = True
    return [all_windows[k] for k in np.flatnonzero(is_touched).tolist()]
