"""Distances of matched pairs on a slide: only windows of it are ever held.

A pair that is small beside a window is measured with others of its
neighbourhood, in a window that holds both objects wholly. The contours of
larger objects are gathered from all windows that they reach into.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.distances import (
    Contours,
    contour_distances,
    contours_in_boxes,
)
from napari_panoptic.nuclei.overlap import OverlapTable
from napari_panoptic.nuclei.values.windowed_labels import Box, TiledArea, TiledLabels, TiledPair
from napari_panoptic.nuclei.window_run import WindowRun, boxes_touched, by_window, window_edge

_SAYING = "measuring distances"

Rows = NDArray[np.int32]


@dataclass(frozen=True)
class Outlined:
    """A slide whose pairs are measured, with or without ambiguous pixels.

    Parameters
    ----------
    pair, table
        The slide, and its counts.
    cut_reference, cut_prediction
        Whether ambiguous pixels are cut from the outlines first.
    """

    pair: TiledPair
    table: OverlapTable
    cut_reference: bool
    cut_prediction: bool


def tiled_distances(
    what: Outlined, reference_rows: Rows, prediction_rows: Rows, run: WindowRun
) -> NDArray[np.float64]:
    """Compute the distances of pairs of objects of a slide.

    Equal to `napari_panoptic.nuclei.distances.pair_distances` on the whole image:
    the image edge is no contour, and the edge of a window makes no difference.

    Parameters
    ----------
    what
        The slide, and which outlines.
    reference_rows, prediction_rows
        int32 (k,): the pairs, one to one.
    run
        How windows are processed.

    Returns
    -------
    float64 (k, 2)
        Hausdorff distance and its 95th percentile, in px.
    """
    figures = np.full((len(reference_rows), 2), np.nan)
    # Twice the usual edge: margins of windows are read twice.
    edge = 2 * window_edge(what.pair, run.window_px)
    boxes = _pair_boxes(what, reference_rows, prediction_rows)
    is_small = ((boxes[:, 2:] - boxes[:, :2]) <= max(edge // 4, 1)).all(axis=1)
    small, large = np.flatnonzero(is_small), np.flatnonzero(~is_small)

    def measure(group: NDArray[np.int64]) -> None:
        box = _hull(boxes[group])
        reference, prediction = _sides(what, reference_rows[group], prediction_rows[group])
        figures[group] = _measured(
            _outlined(reference, box), _outlined(prediction, box), len(group)
        )

    groups = [small[group] for group in by_window(boxes[small, 0], boxes[small, 1], edge)]
    run.part(0.0, 0.9 if len(large) else 1.0).over(groups, measure, _SAYING)
    if len(large):
        figures[large] = _over_windows(
            what, reference_rows[large], prediction_rows[large], edge, run.part(0.9, 1.0)
        )
    return figures


def _pair_boxes(what: Outlined, rows: Rows, columns: Rows) -> NDArray[np.int64]:
    """Return the box of each pair and one pixel more, so that only the image edge is an edge."""
    reference = what.table.reference.bbox[rows].astype(np.int64)
    prediction = what.table.prediction.bbox[columns].astype(np.int64)
    start = np.maximum(np.minimum(reference[:, :2], prediction[:, :2]) - 1, 0)
    end = np.maximum(reference[:, 2:], prediction[:, 2:]) + 1
    return np.concatenate([start, np.minimum(end, what.pair.reference.shape)], axis=1)


def _hull(boxes: NDArray[np.int64]) -> Box:
    y0, x0 = boxes[:, :2].min(axis=0).tolist()
    y1, x1 = boxes[:, 2:].max(axis=0).tolist()
    return y0, x0, y1, x1


def _over_windows(
    what: Outlined, rows: Rows, columns: Rows, edge: int, run: WindowRun
) -> NDArray[np.float64]:
    """Measure pairs of any size, gathering their contours from window to window."""
    reference, prediction = _sides(what, rows, columns)
    return _measured(
        _gathered(reference, edge, run.part(0.0, 0.5)),
        _gathered(prediction, edge, run.part(0.5, 1.0)),
        len(rows),
    )


def _measured(reference: Contours, prediction: Contours, n: int) -> NDArray[np.float64]:
    """Measure the k-th object of one side with the k-th of the other."""
    numbers = np.arange(n, dtype=np.int32)
    return contour_distances(reference, prediction, numbers, numbers).figures


@dataclass(frozen=True, eq=False)
class _Side:
    """Some objects of one side: rows (k,), boxes (k, 4), and the area to cut from them."""

    labels: TiledLabels
    rows: Rows
    boxes: NDArray[np.int32]
    void: TiledArea | None

    def of(self, chosen: NDArray[np.int64]) -> _Side:
        return replace(self, rows=self.rows[chosen], boxes=self.boxes[chosen])

    def void_in(self, box: Box) -> NDArray[np.bool_] | None:
        return None if self.void is None else self.void.read(box)


def _sides(what: Outlined, rows: Rows, columns: Rows) -> tuple[_Side, _Side]:
    area = what.pair.ambiguous
    return (
        _Side(
            what.pair.reference,
            rows,
            what.table.reference.bbox[rows],
            area if what.cut_reference else None,
        ),
        _Side(
            what.pair.prediction,
            columns,
            what.table.prediction.bbox[columns],
            area if what.cut_prediction else None,
        ),
    )


def _outlined(side: _Side, box: Box) -> Contours:
    """Find the contours of objects that lie in a window wholly, in px from its corner."""
    boxes = side.boxes - np.array([*box[:2], *box[:2]], np.int32)
    return contours_in_boxes(side.labels.read(box), side.rows, boxes, without=side.void_in(box))


def _gathered(side: _Side, edge: int, run: WindowRun) -> Contours:
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
