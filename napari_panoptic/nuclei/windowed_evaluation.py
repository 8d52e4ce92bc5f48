"""The evaluation of a slide that is too large to hold: its pixels are read in windows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.nuclei.ambiguity import JudgedOverlap
from napari_panoptic.nuclei.distances import KnownDistances, cuts
from napari_panoptic.nuclei.evaluate import Evaluation, evaluated
from napari_panoptic.nuclei.overlap import OverlapCounter, OverlapTable
from napari_panoptic.nuclei.values.settings import EvaluationSettings, Matching
from napari_panoptic.nuclei.values.windowed_labels import Box, TiledPair
from napari_panoptic.nuclei.window_run import (
    WINDOW_PX,
    WindowRun,
    by_window,
    window_edge,
    windows,
)
from napari_panoptic.nuclei.windowed_distances import Outlined, tiled_distances


def evaluate_tiles(
    pair: TiledPair,
    settings: EvaluationSettings | None = None,
    *,
    progress: Progress = UNWATCHED,
    workers: int = 2,
    window_px: int = WINDOW_PX,
) -> Evaluation[TiledPair]:
    """Evaluate a slide, holding only a few windows at a time.

    Every figure equals that of `napari_panoptic.nuclei.evaluate.evaluate`
    on the same pixels.

    Parameters
    ----------
    pair
        Reference, prediction and ambiguous area. Read once, again for the
        distances, and in part for the centroid rule.
    settings
        How to evaluate; None for the defaults. The challenge's scoring, which
        needs the masks of each class, is not possible here.
    progress
        Reported after each window, from the calling thread; checked for
        cancellation before each.
    workers
        Windows at a time, each in a thread.
    window_px
        About the edge of a window; memory grows with its square.

    Raises
    ------
    StoppedError
        If cancelled.
    PanopticError
        If the pixels cannot be read.
    """
    settings = settings or EvaluationSettings()
    run = WindowRun(progress, max(workers, 1), window_px)
    counted = 0.4 if settings.distances else 0.9
    table = _counted(pair, run.part(0.0, counted))
    return _evaluated(pair, table, settings, KnownDistances.none(), run.part(counted, 1.0))


def evaluate_tiles_again(
    evaluation: Evaluation[TiledPair],
    settings: EvaluationSettings,
    *,
    progress: Progress = UNWATCHED,
    workers: int = 2,
    window_px: int = WINDOW_PX,
) -> Evaluation[TiledPair]:
    """Evaluate the same slide under other settings.

    Counts and known distances are reused: pixels are read for new distances and
    for the centroid rule. Parameters and result are those of
    :func:`evaluate_tiles`.
    """
    run = WindowRun(progress, max(workers, 1), window_px)
    return _evaluated(evaluation.pair, evaluation.table, settings, evaluation.distances, run)


def _counted(pair: TiledPair, run: WindowRun) -> OverlapTable:
    """Count every pixel once."""
    boxes = windows(pair.reference.shape, window_edge(pair, run.window_px))
    counter = OverlapCounter(len(pair.reference), len(pair.prediction), pair.reference.shape)
    one_at_a_time = threading.Lock()

    def add(box: Box) -> None:
        window = _read(pair, box)
        # Reading takes longer than counting, and a counter for each thread much memory.
        with one_at_a_time:
            counter.add(box[:2], *window)

    run.over(boxes, add, "counting overlaps")
    return counter.table()


def _read(
    pair: TiledPair, box: Box
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_] | None]:
    void = None if pair.ambiguous is None else pair.ambiguous.read(box)
    return pair.reference.read(box), pair.prediction.read(box), void


def _evaluated(
    pair: TiledPair,
    table: OverlapTable,
    settings: EvaluationSettings,
    known: KnownDistances,
    run: WindowRun,
) -> Evaluation[TiledPair]:
    """Evaluate a slide whose overlap is counted already."""
    found = evaluated(pair, table, settings, known, windows=_Windows(pair, table, run))
    run.progress.tell(1.0, "done")
    return found


@dataclass(frozen=True, eq=False)
class _Windows:
    """Reads what the stages after the overlap table need of a slide's pixels."""

    pair: TiledPair
    table: OverlapTable
    run: WindowRun

    def reference_at(self, y: NDArray[np.int64], x: NDArray[np.int64]) -> list[NDArray[np.int32]]:
        found = np.zeros(len(y), np.int32)
        self._look_up(self.pair.reference.read, y, x, found, self.run.part(0.0, 0.15))
        return [found]

    def ambiguous_at(self, y: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.bool_]:
        found = np.zeros(len(y), bool)
        if self.pair.ambiguous is not None:
            self._look_up(self.pair.ambiguous.read, y, x, found, self.run.part(0.15, 0.3))
        return found

    def measure(
        self, judged: JudgedOverlap, settings: EvaluationSettings
    ) -> Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.float64]]:
        outlined = Outlined(self.pair, self.table, *cuts(judged, settings.outlines))
        run = self.run.part(0.3 if settings.matching is Matching.CENTROID else 0.0, 1.0)
        return lambda rows, columns: tiled_distances(outlined, rows, columns, run)

    def _look_up(
        self,
        read: Callable[[Box], NDArray[Any] | None],
        y: NDArray[np.int64],
        x: NDArray[np.int64],
        found: NDArray[Any],
        run: WindowRun,
    ) -> None:
        """Set the values of an image at points (n,), reading the windows that hold any."""

        def look(group: NDArray[np.int64]) -> None:
            y0, x0 = int(y[group].min()), int(x[group].min())
            y1, x1 = int(y[group].max()) + 1, int(x[group].max()) + 1
            if (window := read((y0, x0, y1, x1))) is not None:
                found[group] = window[y[group] - y0, x[group] - x0]

        groups = by_window(y, x, window_edge(self.pair, run.window_px))
        run.over(groups, look, "matching by centroids")
