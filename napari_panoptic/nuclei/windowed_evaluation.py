"""The whole chain for one slide that is too large to hold: its pixels are read in windows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.ambiguity import judge
from napari_panoptic.nuclei.distance_cache import KnownDistances, known_or_measured
from napari_panoptic.nuclei.distances import PairDistances, cuts
from napari_panoptic.nuclei.matching import match
from napari_panoptic.nuclei.metrics import Counts, count
from napari_panoptic.nuclei.outcomes import Outcomes, outcomes
from napari_panoptic.nuclei.overlap import CountedPart, OverlapCounter, OverlapTable
from napari_panoptic.nuclei.tables import EvaluatedFigures
from napari_panoptic.nuclei.values.labels import LabelPair
from napari_panoptic.nuclei.values.settings import EvaluationSettings, Matching
from napari_panoptic.nuclei.values.windowed_labels import Box, TiledArea, TiledLabels, TiledPair
from napari_panoptic.nuclei.window_run import (
    WINDOW_PX,
    Elsewhere,
    Progress,
    Run,
    by_window,
    window_edge,
    windows,
)
from napari_panoptic.nuclei.windowed_distances import Outlined, tiled_distances

_COUNTING = "counting overlaps"
# So many windows are counted at a time elsewhere: sending what came of them costs little then.
_WINDOWS_IN_STRIP = 64


@dataclass(frozen=True, eq=False)
class TiledEvaluation(EvaluatedFigures):
    """What came of evaluating a slide; `napari_panoptic.nuclei.evaluate.Evaluation` for it.

    Parameters
    ----------
    pair
        What was evaluated.
    settings
        How.
    table
        Areas and intersections; a row per object of the pair, also of those
        without a pixel.
    outcomes
        Status, cause, partner, IoU and distances of every object with a pixel.
    counts
        Their sums, which can be added over regions.
    distances
        What was measured on these pixels so far, under whatever settings.
    """

    pair: TiledPair
    settings: EvaluationSettings
    table: OverlapTable
    outcomes: Outcomes
    counts: Counts
    distances: KnownDistances


def evaluate_tiles(
    pair: TiledPair,
    settings: EvaluationSettings | None = None,
    *,
    progress: Progress | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
    workers: int = 2,
    window_px: int = WINDOW_PX,
    elsewhere: Elsewhere | None = None,
) -> TiledEvaluation:
    """Evaluate a slide, of which only a few windows are held at a time.

    Every figure equals that of `napari_panoptic.nuclei.evaluate.evaluate`
    on the same pixels.

    Parameters
    ----------
    pair
        Reference, prediction and ambiguous area. Read once, and once more for
        the distances, and in part for the centroid rule.
    settings
        How to evaluate; the defaults where None. The challenge's scoring,
        which needs the masks of each class, is not done here.
    progress
        Told of each window that is done, from the calling thread.
    is_wanted
        Asked between windows.
    workers
        Windows that are read at a time, each in a thread.
    window_px
        About the edge of a window; memory grows with its square.
    elsewhere
        Who goes over the windows in the place of threads, but for single
        pixels and objects larger than a window; None for threads.

    Raises
    ------
    StoppedError
        Where ``is_wanted`` says no.
    PanopticError
        What reading raises.
    """
    settings = settings or EvaluationSettings()
    run = Run(max(workers, 1), is_wanted, progress, window_px, elsewhere)
    counted = 0.4 if settings.distances else 0.9
    table = _counted(pair, run.part(0.0, counted))
    return _evaluated(pair, table, settings, KnownDistances.none(), run.part(counted, 1.0))


def evaluate_tiles_again(
    evaluation: TiledEvaluation,
    settings: EvaluationSettings,
    *,
    progress: Progress | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
    workers: int = 2,
    window_px: int = WINDOW_PX,
    elsewhere: Elsewhere | None = None,
) -> TiledEvaluation:
    """Evaluate the same slide under other settings.

    Counts and known distances are taken over: pixels are read for distances
    that are new, and for the centroid rule. The result and all else are as in
    :func:`evaluate_tiles`.
    """
    run = Run(max(workers, 1), is_wanted, progress, window_px, elsewhere)
    return _evaluated(evaluation.pair, evaluation.table, settings, evaluation.distances, run)


def _counted(pair: TiledPair, run: Run) -> OverlapTable:
    """Count every pixel once."""
    boxes = windows(pair.reference.shape, window_edge(pair, run.window_px))
    counter = _counter_for(pair)
    if run.elsewhere is not None:
        starts = range(0, len(boxes), _WINDOWS_IN_STRIP)
        strips = [boxes[start : start + _WINDOWS_IN_STRIP] for start in starts]
        for _, strip in run.results(pair, count_windows, strips, _COUNTING):
            counter.add_part(strip.part)
            for labels, ids in zip((pair.reference, pair.prediction), strip.unknown, strict=True):
                if labels.unknown_ids is not None:
                    labels.unknown_ids.note(ids)
        return counter.table()
    one_at_a_time = threading.Lock()

    def add(box: Box) -> None:
        window = _read(pair, box)
        # Reading takes longer than counting, and a counter for each thread much memory.
        with one_at_a_time:
            counter.add(box[:2], *window)

    run.over(boxes, add, _COUNTING)
    return counter.table()


@dataclass(frozen=True, eq=False)
class CountedStrip:
    """What was counted of some windows; and of both sides the unknown ids met there."""

    part: CountedPart
    unknown: tuple[list[int], list[int]]


def count_windows(pair: TiledPair, boxes: Sequence[Box]) -> CountedStrip:
    """Count some windows of a slide, for a count of all of it."""
    counter = _counter_for(pair)
    for box in boxes:
        counter.add(box[:2], *_read(pair, box))
    reference, prediction = (
        [] if labels.unknown_ids is None else labels.unknown_ids.ids()
        for labels in (pair.reference, pair.prediction)
    )
    return CountedStrip(counter.part(), (reference, prediction))


def _counter_for(pair: TiledPair) -> OverlapCounter:
    return OverlapCounter(len(pair.reference), len(pair.prediction), pair.reference.shape)


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
    run: Run,
) -> TiledEvaluation:
    """Evaluate a slide whose overlap is counted already."""
    judged = judge(table, settings.ambiguous)
    is_centroid = settings.matching is Matching.CENTROID
    begin = 0.3 if is_centroid else 0.0
    matches = match(_held(pair, run.part(0.0, begin)), table, judged, settings)
    distances: PairDistances | None = None
    if settings.distances:
        outlined = Outlined(pair, table, *cuts(judged, settings.outlines))
        measuring = run.part(begin, 1.0)
        distances, known = known_or_measured(
            table,
            judged,
            matches,
            settings.outlines,
            known,
            lambda rows, columns: tiled_distances(outlined, rows, columns, measuring),
        )
    result = outcomes(
        _held(pair, run), table, judged, matches, distances, near_iou=settings.near_iou
    )
    if run.progress is not None:
        run.progress(run.end, "done")
    return TiledEvaluation(
        pair=pair,
        settings=settings,
        table=table,
        outcomes=result,
        counts=count(result),
        distances=known,
    )


# --- a slide where a label pair is asked for --------------------------------------------------


class _PixelsAt:
    """Stands for an image of which single pixels are asked for: ``image[y, x]``, y and x (n,).

    Reads the windows that hold any of them.
    """

    def __init__(
        self, read: Callable[[Box], NDArray[np.generic] | None], kind: type, edge: int, run: Run
    ) -> None:
        self._read, self._kind, self._edge, self._run = read, kind, edge, run

    def __getitem__(self, yx: tuple[NDArray[np.int64], NDArray[np.int64]]) -> NDArray[np.generic]:
        y, x = yx
        values: NDArray[np.generic] = np.zeros(len(y), self._kind)

        def look(group: NDArray[np.int64]) -> None:
            y0, x0 = int(y[group].min()), int(x[group].min())
            y1, x1 = int(y[group].max()) + 1, int(x[group].max()) + 1
            if (window := self._read((y0, x0, y1, x1))) is not None:
                values[group] = window[y[group] - y0, x[group] - x0]

        self._run.over(by_window(y, x, self._edge), look, "matching by centroids")
        return values


@dataclass(frozen=True, eq=False)
class _HeldLabels:
    """The parts of a `LabelImage` that matching and outcomes look at."""

    index: _PixelsAt
    ids: NDArray[np.int64]
    class_index: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def sheets(self) -> tuple[_PixelsAt]:
        """The one image in which all objects are."""
        return (self.index,)


@dataclass(frozen=True, eq=False)
class _HeldPair:
    """The parts of a `LabelPair` that matching and outcomes look at."""

    reference: _HeldLabels
    prediction: _HeldLabels
    ambiguous: _PixelsAt | None
    class_names: tuple[str, ...]
    mpp: float | None
    # In windows every pixel goes to one object.
    has_planes: bool = False


def _held(pair: TiledPair, run: Run) -> LabelPair:
    """Let a slide pass for a label pair: single pixels of it can be asked for, not all."""
    edge = window_edge(pair, run.window_px)

    def side(labels: TiledLabels) -> _HeldLabels:
        pixels = _PixelsAt(labels.read, np.int32, edge, run.part(0.0, 0.5))
        return _HeldLabels(pixels, labels.ids, labels.class_index)

    area: TiledArea | None = pair.ambiguous
    ambiguous = None if area is None else _PixelsAt(area.read, np.bool_, edge, run.part(0.5, 1.0))
    held = _HeldPair(
        side(pair.reference), side(pair.prediction), ambiguous, pair.class_names, pair.mpp
    )
    return cast("LabelPair", held)
