"""Going over a slide window by window: several at a time, with progress and an end at any time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.nuclei.values.windowed_labels import Box, TiledPair

WINDOW_PX = 1024
"""About the edge of a window: its work outweighs its overhead, and several fit in memory."""
_PATIENCE_S = 0.2

Progress = Callable[[float, str], None]
"""Told how much is done, from 0 to 1, and in words what is being done."""

T = TypeVar("T")


class StoppedError(PanopticError):
    """Work was given up because nobody wants it any more."""


@dataclass(frozen=True)
class Run:
    """How to go over windows, and who hears of it.

    Parameters
    ----------
    workers
        Windows at a time.
    is_wanted
        Asked before each window; where it says no, `StoppedError` is raised.
    progress
        Told of each window that is done, from the thread that asked for the
        work; None where nobody listens.
    window_px
        About the edge of a window.
    start, end
        Which part of the whole work this is, for ``progress``.
    """

    workers: int = 2
    is_wanted: Callable[[], bool] = lambda: True
    progress: Progress | None = None
    window_px: int = WINDOW_PX
    start: float = 0.0
    end: float = 1.0

    def part(self, start: float, end: float) -> Run:
        """Return a part of this work, from one share of it to another."""
        length = self.end - self.start
        begin = self.start
        return replace(self, start=begin + start * length, end=begin + end * length)

    def over(self, items: Sequence[T], work: Callable[[T], None], saying: str) -> None:
        """Do all items, a few at a time, in threads.

        Parameters
        ----------
        items
            What to work on; begun in their order.
        work
            Called with each item once, in a thread, of which there may be several.
        saying
            What is being done, for the progress.

        Raises
        ------
        StoppedError
            Where it is no longer wanted; what was begun is at an end then.
        """
        self._tell(0.0, saying)
        pool = ThreadPoolExecutor(max_workers=max(self.workers, 1))
        rest = iter(items)
        running: set[Future[None]] = set()
        done = 0
        try:
            while True:
                if not self.is_wanted():
                    raise StoppedError("the evaluation was stopped before it was done")
                free = 2 * self.workers - len(running)
                running |= {pool.submit(work, item) for item in islice(rest, free)}
                if not running:
                    return
                ended, running = wait(running, timeout=_PATIENCE_S, return_when=FIRST_COMPLETED)
                for future in ended:
                    future.result()
                    done += 1
                    self._tell(done / len(items), saying)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _tell(self, share: float, saying: str) -> None:
        if self.progress is not None:
            self.progress(self.start + share * (self.end - self.start), saying)


def window_edge(pair: TiledPair, about_px: int) -> int:
    """Choose how large windows are: about so many px, and along the tiles of the files."""
    tile = max(pair.reference.tile_px, pair.prediction.tile_px)
    return tile * max(1, round(about_px / tile)) if tile else about_px


def windows(shape: tuple[int, int], edge: int) -> list[Box]:
    """Cut an image into windows of an edge in px, line by line; together they cover it once."""
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
        has any, line by line.
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
