"""The evaluation of a slide that is too large to hold: its pixels are read in windows.

A matched pair that is small beside a window is measured with others of its neighbourhood, in a
window that holds both objects wholly. The contours of larger objects are gathered from all windows
that they reach into.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.nuclei.ambiguity import JudgedOverlap
from napari_panoptic.nuclei.distances import (
    Contours,
    KnownDistances,
    contour_distances,
    contours_in_boxes,
    cuts,
)
from napari_panoptic.nuclei.evaluate import Evaluation, evaluated, has_same_zone
from napari_panoptic.nuclei.overlap import OverlapCounter, OverlapTable
from napari_panoptic.nuclei.zone import Zone
from napari_panoptic.values.settings import EvaluationSettings, Matching
from napari_panoptic.values.windowed_labels import Box, TiledArea, TiledLabels, TiledPair

WINDOW_PX = 1024
"""About the edge of a window: its work outweighs its overhead, and several fit in memory."""
_PATIENCE_S = 0.2
_SAYING = "measuring distances"

Rows = NDArray[np.int32]
T = TypeVar("T")


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
    on the same pixels. The pair of the result lacks the objects without a pixel.

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
    has_pixel = table.reference.area > 0, table.prediction.area > 0
    pair = replace(
        pair,
        reference=pair.reference.only(has_pixel[0]),
        prediction=pair.prediction.only(has_pixel[1]),
    )
    table = table.renumbered(*(np.where(kept, np.cumsum(kept) - 1, -1) for kept in has_pixel))
    zone, rest = Zone.of(table, settings), run.part(counted, 1.0)
    outside = None
    if zone is not None:
        outside = _outside(pair, table, zone, rest.part(0.0, 0.4))
        rest = rest.part(0.4, 1.0)
    return _evaluated(pair, table, settings, KnownDistances.none(), rest, outside)


def tiles_outside(pair: TiledPair, whole: OverlapTable, zone: Zone | None) -> OverlapTable | None:
    """Count the pixels of a slide outside of a zone, if there is one, given those of all pixels."""
    return None if zone is None else _outside(pair, whole, zone, WindowRun())


def evaluate_tiles_again(
    evaluation: Evaluation[TiledPair],
    settings: EvaluationSettings,
    *,
    progress: Progress = UNWATCHED,
    workers: int = 2,
    window_px: int = WINDOW_PX,
) -> Evaluation[TiledPair]:
    """Evaluate the same slide under other settings.

    Counts and known distances are reused: pixels are read for new distances, for
    another zone and for the centroid rule. Parameters and result are those of
    :func:`evaluate_tiles`.
    """
    run = WindowRun(progress, max(workers, 1), window_px)
    pair, table, outside = evaluation.pair, evaluation.table, evaluation.judged.counted
    if not has_same_zone(evaluation, settings):
        zone, outside = Zone.of(table, settings), table
        if zone is not None:
            outside = _outside(pair, table, zone, run.part(0.0, 0.4))
            run = run.part(0.4, 1.0)
    return _evaluated(pair, table, settings, evaluation.distances, run, outside)


@dataclass(frozen=True)
class WindowRun:
    """How windows are processed, and where progress is reported."""

    #: Reported from the calling thread; checked for cancellation before each
    #: window.
    progress: Progress = UNWATCHED
    #: Windows at a time, each in a thread.
    workers: int = 2
    #: About the edge of a window.
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


def _counted(pair: TiledPair, run: WindowRun) -> OverlapTable:
    """Count every pixel once."""
    boxes = windows(pair.reference.shape, window_edge(pair, run.window_px))
    counter = OverlapCounter(len(pair.reference), len(pair.prediction), pair.reference.shape)
    one_at_a_time = threading.Lock()

    def add(box: Box) -> None:
        void = None if pair.ambiguous is None else pair.ambiguous.read(box)
        sides = pair.reference.read(box), pair.prediction.read(box)
        # Reading takes longer than counting, and a counter for each thread much memory.
        with one_at_a_time:
            counter.add(box[:2], *sides, void)

    run.over(boxes, add, "counting overlaps")
    return counter.table()


def _outside(pair: TiledPair, whole: OverlapTable, zone: Zone, run: WindowRun) -> OverlapTable:
    """Count the pixels outside of a zone: all but those in it, which lie near annotated objects."""
    shape, edge = pair.reference.shape, window_edge(pair, run.window_px)
    near = whole.reference.bbox + np.array([-zone.px, -zone.px, zone.px, zone.px], np.int32)
    near = np.clip(near, 0, [*shape, *shape])
    counter = OverlapCounter.from_table(whole, shape)
    one_at_a_time = threading.Lock()

    def subtract(box: Box) -> None:
        codes = zone.codes(pair, box)
        sides = pair.reference.read(box), pair.prediction.read(box)
        with one_at_a_time:
            counter.add_zone(box[:2], *sides, codes, sign=-1)

    run.over(boxes_touched(near.tolist(), shape, edge), subtract, "leaving out borders")
    return counter.table().with_places_of(whole)


def _evaluated(
    pair: TiledPair,
    table: OverlapTable,
    settings: EvaluationSettings,
    known: KnownDistances,
    run: WindowRun,
    outside: OverlapTable | None,
) -> Evaluation[TiledPair]:
    """Evaluate a slide whose overlap is counted already, also outside of the zone."""
    reads = _Windows(pair, table, run)
    found = evaluated(pair, table, settings, known, counted=outside, windows=reads)
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

    def in_zone(self, zone: Zone, y: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.bool_]:
        found = np.zeros(len(y), bool)
        self._look_up(partial(zone.mask, self.pair), y, x, found, self.run.part(0.15, 0.3))
        return found

    def measure(
        self, judged: JudgedOverlap, settings: EvaluationSettings, rows: Rows, columns: Rows
    ) -> NDArray[np.float64]:
        pair, table = self.pair, self.table
        cut_reference, cut_prediction = cuts(judged, settings.outlines)
        # Twice the usual edge: margins of windows are read twice.
        edge = 2 * window_edge(pair, self.run.window_px)
        run = self.run.part(0.3 if settings.matching is Matching.CENTROID else 0.0, 1.0)
        void = pair.ambiguous if cut_reference else None
        other_void = pair.ambiguous if cut_prediction else None
        reference = _Objects(pair.reference, rows, table.reference.bbox[rows], void)
        prediction = _Objects(pair.prediction, columns, table.prediction.bbox[columns], other_void)
        return _distances(reference, prediction, edge, run)

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


@dataclass(frozen=True, eq=False)
class _Objects:
    """Some objects of one side: rows (k,), boxes (k, 4), and the area to cut from them."""

    labels: TiledLabels
    rows: Rows
    boxes: NDArray[np.int32]
    void: TiledArea | None

    def of(self, chosen: NDArray[np.int64]) -> _Objects:
        return replace(self, rows=self.rows[chosen], boxes=self.boxes[chosen])

    def void_in(self, box: Box) -> NDArray[np.bool_] | None:
        return None if self.void is None else self.void.read(box)


def _distances(
    reference: _Objects, prediction: _Objects, edge: int, run: WindowRun
) -> NDArray[np.float64]:
    """Compute the distances of objects, the k-th of one side and the k-th of the other.

    Equal to `napari_panoptic.nuclei.distances.pair_distances` on the whole image:
    the image edge is no contour, and the edge of a window makes no difference.

    Returns
    -------
    float64 (k, 2)
        Hausdorff distance and its 95th percentile, in px.
    """
    figures = np.full((len(reference.rows), 2), np.nan)
    boxes = _pair_boxes(reference, prediction)
    is_small = ((boxes[:, 2:] - boxes[:, :2]) <= max(edge // 4, 1)).all(axis=1)
    small, large = np.flatnonzero(is_small), np.flatnonzero(~is_small)

    def measure(group: NDArray[np.int64]) -> None:
        box = _hull(boxes[group])
        figures[group] = _measured(
            _outlined(reference.of(group), box), _outlined(prediction.of(group), box)
        )

    groups = [small[group] for group in by_window(boxes[small, 0], boxes[small, 1], edge)]
    run.part(0.0, 0.9 if len(large) else 1.0).over(groups, measure, _SAYING)
    if len(large):
        figures[large] = _measured(
            _gathered(reference.of(large), edge, run.part(0.9, 0.95)),
            _gathered(prediction.of(large), edge, run.part(0.95, 1.0)),
        )
    return figures


def _pair_boxes(reference: _Objects, prediction: _Objects) -> NDArray[np.int64]:
    """Return the box of each pair and one pixel more, so that only the image edge is an edge."""
    one, other = reference.boxes.astype(np.int64), prediction.boxes.astype(np.int64)
    start = np.maximum(np.minimum(one[:, :2], other[:, :2]) - 1, 0)
    end = np.maximum(one[:, 2:], other[:, 2:]) + 1
    return np.concatenate([start, np.minimum(end, reference.labels.shape)], axis=1)


def _hull(boxes: NDArray[np.int64]) -> Box:
    y0, x0 = boxes[:, :2].min(axis=0).tolist()
    y1, x1 = boxes[:, 2:].max(axis=0).tolist()
    return y0, x0, y1, x1


def _measured(reference: Contours, prediction: Contours) -> NDArray[np.float64]:
    """Measure the k-th object of one side with the k-th of the other."""
    numbers = np.arange(len(reference.start) - 2, dtype=np.int32)
    return contour_distances(reference, prediction, numbers, numbers).figures


def _outlined(side: _Objects, box: Box) -> Contours:
    """Find the contours of objects that lie in a window wholly, in px from its corner."""
    boxes = side.boxes - np.array([*box[:2], *box[:2]], np.int32)
    return contours_in_boxes(side.labels.read(box), side.rows, boxes, without=side.void_in(box))


def _gathered(side: _Objects, edge: int, run: WindowRun) -> Contours:
    """Collect the contours of objects of any size; they are held, and a few windows."""
    height, width = side.labels.shape
    found: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []

    def collect(window: Box) -> None:
        y0, x0, y1, x1 = window
        start, end = side.boxes[:, :2], side.boxes[:, 2:]
        here = np.flatnonzero(((start < (y1, x1)) & (end > (y0, x0))).all(axis=1))
        # One pixel more, whose own contours belong to the neighbour.
        box = max(y0 - 1, 0), max(x0 - 1, 0), min(y1 + 1, height), min(x1 + 1, width)
        boxes = side.boxes[here] - np.array([*box[:2], *box[:2]], np.int32)
        boxes = np.clip(boxes, 0, [box[2] - box[0], box[3] - box[1]] * 2).astype(np.int32)
        own = contours_in_boxes(
            side.labels.read(box), side.rows[here], boxes, without=side.void_in(box)
        )
        yx = own.yx + np.array(box[:2], np.int32)
        inside = ((yx >= (y0, x0)) & (yx < (y1, x1))).all(axis=1)
        found.append((np.repeat(here, np.diff(own.start[1:]))[inside], yx[inside]))

    run.over(boxes_touched(side.boxes.tolist(), side.labels.shape, edge), collect, _SAYING)
    place = np.concatenate([part[0] for part in found])
    yx = np.concatenate([part[1] for part in found])
    start = np.zeros(len(side.rows) + 2, np.int64)
    np.cumsum(np.bincount(place, minlength=len(side.rows)), out=start[2:])
    return Contours(start, yx[np.lexsort((yx[:, 1], yx[:, 0], place))])
