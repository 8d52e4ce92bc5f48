"""Contours of objects, distances between them, and a cache of the distances of pairs.

A setting changes which objects match, but not the distance between two outlines, unless it
cuts ambiguous pixels from one of them. So a step of a slider measures only the few new pairs,
and a stroke of the brush only those that it touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels import contours as kernels
from napari_panoptic.kernels.counts import pair_keys, pair_rows
from napari_panoptic.kernels.threads import in_threads
from napari_panoptic.nuclei.ambiguity import JudgedOverlap
from napari_panoptic.nuclei.matching import Matches
from napari_panoptic.nuclei.overlap import OverlapTable, SideTable
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import DISTANCE_PERCENTILE, Outlines

# Above this product of contour lengths a search tree beats comparing all pixels.
_TREE_FROM = 2_000_000
# At least this many pairs are worth a second thread.
_THREADS_FROM = 200


@dataclass(frozen=True, eq=False)
class Contours:
    """Contour pixels of every object of one label image, object by object.

    A contour is the object minus its erosion by a disk of radius 1 (the 3 x 3
    cross). Pixels beyond the image edge count as object, so the image edge is
    no contour.
    """

    #: int64 (n + 2,): the contour of the object with index ``k`` (1-based) is ``yx[start[k]:start[k
    #: + 1]]``.
    start: NDArray[np.int64]
    #: int32 (m, 2): pixel coordinates, in raster order within an object.
    yx: NDArray[np.int32]

    def of(self, row: int) -> NDArray[np.int32]:
        """Return the contour pixels (m, 2) of the object in a row (0-based)."""
        return self.yx[self.start[row + 1] : self.start[row + 2]]


@dataclass(frozen=True, eq=False)
class PairDistances:
    """Distances between the contours of matched pairs, in px."""

    #: float64 (k,): greatest distance from a contour pixel of one object to the nearest of the
    #: other, both directions. NaN if an outline is empty.
    hausdorff_px: NDArray[np.float64]
    #: float64 (k,): the same with the 95th percentile (linear interpolation) of the nearest
    #: distances of each direction instead of their maximum.
    hausdorff95_px: NDArray[np.float64]

    @property
    def figures(self) -> NDArray[np.float64]:
        """Both as columns, float64 (k, 2)."""
        return np.stack((self.hausdorff_px, self.hausdorff95_px), axis=1)


def contours(
    index: NDArray[np.int32], n: int, *, without: NDArray[np.bool_] | None = None
) -> Contours:
    """Collect the contour pixels of all objects in one pass.

    Parameters
    ----------
    index
        int32 image (y, x), 0 for background, objects 1..n.
    n
        The number of objects.
    without
        bool image (y, x): pixels cut from every object first.
    """
    if without is not None:
        index = np.where(without, np.int32(0), index)
    # Beyond the image edge counts as object: the edge pixel stands in for it.
    framed = np.pad(index, 1, mode="edge")
    is_inner = (
        (framed[:-2, 1:-1] == index)
        & (framed[2:, 1:-1] == index)
        & (framed[1:-1, :-2] == index)
        & (framed[1:-1, 2:] == index)
    )
    yx = np.argwhere((index > 0) & ~is_inner).astype(np.int32)
    labels = index[yx[:, 0], yx[:, 1]]
    order = np.argsort(labels, kind="stable")
    return Contours(np.searchsorted(labels[order], np.arange(n + 2)), yx[order])


def contours_in_boxes(
    index: NDArray[np.int32],
    rows: NDArray[np.int32],
    boxes: NDArray[np.int32],
    *,
    without: NDArray[np.bool_] | None = None,
) -> Contours:
    """Collect the contour pixels of some objects from their bounding boxes.

    Parameters
    ----------
    index
        int32 image (y, x): 0 for background, ``k`` for the object of row ``k - 1``.
    rows
        int32 (k,): the objects; their contours are numbered from 1 in this order.
    boxes
        int32 (k, 4): y0, x0, y1, x1 of their bounding boxes, half open.
    without
        bool image (y, x): pixels cut from every object first.
    """
    void = np.zeros((0, 0), np.bool_) if without is None else np.ascontiguousarray(without)
    start, yx = kernels.contours_in_boxes(
        np.ascontiguousarray(index), void.view(np.uint8), rows + np.int32(1), boxes.astype(np.int64)
    )
    return Contours(start, yx)


def pair_distances(
    pair: LabelPair,
    table: OverlapTable,
    judged: JudgedOverlap,
    reference_rows: NDArray[np.int32],
    prediction_rows: NDArray[np.int32],
    outlines: Outlines,
) -> PairDistances:
    """Compute the distances of matched pairs.

    Parameters
    ----------
    pair, table, judged
        The label pair, its overlap table (for the boxes of objects) and
        its judged overlap (for what is cut).
    reference_rows, prediction_rows
        int32 (k,): the pairs.
    outlines
        Which outlines to compare if ambiguous pixels are cut.
    """
    cut_reference, cut_prediction = cuts(judged, outlines)
    sides = (
        (pair.reference, table.reference, reference_rows, cut_reference),
        (pair.prediction, table.prediction, prediction_rows, cut_prediction),
    )

    def outlined(place: int) -> tuple[Contours, NDArray[np.int32]]:
        labels, objects, rows, is_cut = sides[place]
        return _outlined(labels, objects, rows, pair.ambiguous if is_cut else None)

    if len(reference_rows) < _THREADS_FROM:
        found = [outlined(0), outlined(1)]
    else:
        found = in_threads(outlined, (0, 1))
    (reference, numbers), (prediction, other_numbers) = found
    return contour_distances(reference, prediction, numbers, other_numbers)


def cuts(judged: JudgedOverlap, outlines: Outlines) -> tuple[bool, bool]:
    """Return whether ambiguous pixels are cut from reference outlines, and from predicted ones."""
    return (
        judged.cuts_reference and outlines is not Outlines.BOTH_WHOLE,
        judged.cuts_prediction and outlines is Outlines.BOTH_CLIPPED,
    )


def contour_distances(
    reference: Contours,
    prediction: Contours,
    reference_rows: NDArray[np.int32],
    prediction_rows: NDArray[np.int32],
) -> PairDistances:
    """Compute the distances between given contours, pair by pair."""
    pairs = np.stack([reference_rows, prediction_rows], axis=1).astype(np.int64)

    def measured(part: NDArray[np.int64]) -> NDArray[np.float64]:
        return kernels.contour_distances(
            reference.start,
            reference.yx,
            prediction.start,
            prediction.yx,
            part,
            _TREE_FROM,
            DISTANCE_PERCENTILE,
        )

    halves = np.array_split(pairs, 1 if len(pairs) < _THREADS_FROM else 2)
    figures = np.concatenate(in_threads(measured, halves))
    for k in np.flatnonzero(figures[:, 0] < 0):
        figures[k] = _tree_distances(
            reference.of(int(reference_rows[k])), prediction.of(int(prediction_rows[k]))
        )
    return PairDistances(figures[:, 0], figures[:, 1])


@dataclass(frozen=True, eq=False)
class KnownDistances:
    """Distances of pairs of one label pair, whole and cut."""

    #: int64 (n,), ascending: the pairs. The keys of `pair_keys`, with twice the row, plus one if
    #: ambiguous pixels are cut from the outline.
    keys: NDArray[np.int64]
    #: float64 (n, 2): their `PairDistances`, a column each, in px.
    figures: NDArray[np.float64]

    @classmethod
    def none(cls) -> KnownDistances:
        """Return an empty cache."""
        return cls(np.zeros(0, np.int64), np.zeros((0, 2)))

    def without(
        self, reference_rows: NDArray[np.integer], prediction_rows: NDArray[np.integer]
    ) -> KnownDistances:
        """Return the distances without those of objects whose pixels changed."""
        if not len(self.keys):
            return self
        rows, columns = pair_rows(self.keys)
        kept = ~np.isin(rows // 2, reference_rows) & ~np.isin(columns // 2, prediction_rows)
        return self if kept.all() else KnownDistances(self.keys[kept], self.figures[kept])

    def renumbered(
        self, reference: NDArray[np.integer], prediction: NDArray[np.integer]
    ) -> KnownDistances:
        """Return the distances of objects in other rows, see `OverlapTable.renumbered`."""
        if not len(self.keys):
            return self
        rows, columns = pair_rows(self.keys)
        new_rows, new_columns = reference[rows // 2], prediction[columns // 2]
        kept = np.flatnonzero((new_rows >= 0) & (new_columns >= 0))
        keys = pair_keys(
            (2 * new_rows + rows % 2)[kept].astype(np.int32),
            (2 * new_columns + columns % 2)[kept].astype(np.int32),
        )
        if (keys[1:] > keys[:-1]).all():
            return KnownDistances(keys, self.figures[kept])
        order = np.argsort(keys)
        return KnownDistances(keys[order], self.figures[kept[order]])

    def find(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Look up pairs.

        Returns
        -------
        place
            int64 (k,): the row of each pair in `figures`, if it is there.
        found
            bool (k,): whether it is there.
        """
        place = np.searchsorted(self.keys, keys)
        found = place < len(self.keys)
        found[found] = self.keys[place[found]] == keys[found]
        return place, found

    def with_new(self, keys: NDArray[np.int64], figures: NDArray[np.float64]) -> KnownDistances:
        """Return the cache with more pairs, which it does not have yet."""
        if not len(keys):
            return self
        all_keys = np.concatenate([self.keys, keys])
        order = np.argsort(all_keys, kind="stable")
        return KnownDistances(all_keys[order], np.concatenate([self.figures, figures])[order])


def matched_distances(
    table: OverlapTable,
    judged: JudgedOverlap,
    matches: Matches,
    outlines: Outlines,
    known: KnownDistances,
    measure: Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.float64]],
) -> tuple[PairDistances, KnownDistances]:
    """Return the distances of matched pairs; measure those that are not known.

    Parameters
    ----------
    table, judged, matches
        The stages before this one.
    outlines
        Which outlines to compare if ambiguous pixels are cut.
    known
        Distances measured before on the same pixels.
    measure
        Returns the figures (k, 2) of pairs of rows, int32 (k,) each.

    Returns
    -------
    distances
        Those of ``matches.pair``, in its order.
    known
        With the new ones among them.
    """
    rows = judged.pair_reference[matches.pair]
    columns = judged.pair_prediction[matches.pair]
    cut_reference, cut_prediction = cuts(judged, outlines)
    # An outline without an ambiguous pixel is the same, cut or whole.
    reference_cut = cut_reference & (table.reference.void_area[rows] > 0)
    prediction_cut = cut_prediction & (table.prediction.void_area[columns] > 0)
    keys = pair_keys(2 * rows + reference_cut, 2 * columns + prediction_cut)
    place, found = known.find(keys)
    figures = np.full((len(keys), 2), np.nan)
    figures[found] = known.figures[place[found]]
    new = ~found
    if new.any():
        figures[new] = measure(rows[new], columns[new])
    distances = PairDistances(figures[:, 0], figures[:, 1])
    return distances, known.with_new(keys[new], figures[new])


def _outlined(
    labels: LabelImage,
    table: SideTable,
    rows: NDArray[np.int32],
    without: NDArray[np.bool_] | None,
) -> tuple[Contours, NDArray[np.int32]]:
    """Return the contours of some objects, and each one's position among them."""
    # Under a threshold below 0.5 or another rule, an object may be in several pairs.
    once, place = np.unique(rows, return_inverse=True)
    boxes = table.bbox[once]
    if labels.planes:
        return _outlined_in_planes(labels, once, boxes, without), place.astype(np.int32)
    sides_px = (boxes[:, 2:] - boxes[:, :2]).astype(np.int64)
    if sides_px.prod(axis=1).sum() > labels.index.size:
        # Scattered objects with large boxes, as in noise.
        return contours(labels.index, len(labels), without=without), rows
    return contours_in_boxes(labels.index, once, boxes, without=without), place.astype(np.int32)


def _outlined_in_planes(
    labels: LabelImage,
    rows: NDArray[np.int32],
    boxes: NDArray[np.int32],
    without: NDArray[np.bool_] | None,
) -> Contours:
    """Collect the contours of objects that may share pixels, each from the plane it lies in."""
    found = [contours_in_boxes(p, rows, boxes, without=without) for p in labels.planes]
    # In the planes in which an object does not lie it has no contour.
    sizes = np.array([np.diff(contour.start) for contour in found])
    start = np.concatenate([[0], np.cumsum(sizes.sum(axis=0))])
    pieces = [contour.of(row) for row in range(len(rows)) for contour in found]
    return Contours(start, np.concatenate([np.zeros((0, 2), np.int32), *pieces]))


def _tree_distances(a: NDArray[np.int32], b: NDArray[np.int32]) -> tuple[float, float]:
    """Compute the two distances of contours that are too long, or too far apart, for the kernel."""
    from scipy.spatial import cKDTree

    there = cKDTree(b).query(a)[0]
    back = cKDTree(a).query(b)[0]
    percentiles = [float(np.percentile(d, DISTANCE_PERCENTILE)) for d in (there, back)]
    # Like the kernel's, the tree's distances are square roots of whole numbers.
    return max(float(there.max()), float(back.max())), max(percentiles)
