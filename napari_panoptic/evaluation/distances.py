"""Contours of objects, and how far two contours lie apart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from napari_panoptic._compiled import compiled
from napari_panoptic.evaluation.ambiguity import JudgedOverlap
from napari_panoptic.evaluation.labels import LabelImage, LabelPair
from napari_panoptic.evaluation.settings import DISTANCE_PERCENTILE, Outlines

# Above this product of contour lengths a search tree beats comparing all pixels.
_TREE_FROM = 2_000_000
# From so many pairs on a second thread is worth its start.
_THREADS_FROM = 200


@dataclass(frozen=True, eq=False)
class Contours:
    """Contour pixels of every object of one label image, object by object.

    A contour is the object minus its erosion by a disk of radius 1 (the 3 x 3
    cross). Pixels beyond the image edge count as object, so the image edge is
    no contour.

    Parameters
    ----------
    start
        int64 (n + 2,): the contour of the object with index ``k`` (1-based)
        is ``yx[start[k]:start[k + 1]]``.
    yx
        int32 (m, 2): pixel coordinates, in raster order within an object.
    """

    start: NDArray[np.int64]
    yx: NDArray[np.int32]

    def of(self, row: int) -> NDArray[np.int32]:
        """Give the contour pixels (m, 2) of the object in a row (0-based)."""
        return self.yx[self.start[row + 1] : self.start[row + 2]]


@dataclass(frozen=True, eq=False)
class PairDistances:
    """Distances between the contours of matched pairs, in px.

    Parameters
    ----------
    hausdorff_px
        float64 (k,): greatest distance from a contour pixel of one object to
        the nearest of the other, both directions. NaN where an outline is empty.
    hausdorff95_px
        float64 (k,): the same with the 95th percentile (linear interpolation)
        of the nearest distances of each direction instead of their maximum.
    average_surface_px
        float64 (k,): mean of the nearest distances over the pixels of both
        contours.
    """

    hausdorff_px: NDArray[np.float64]
    hausdorff95_px: NDArray[np.float64]
    average_surface_px: NDArray[np.float64]


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
    start, yx = _contours(np.ascontiguousarray(index), n)
    return Contours(start, yx)


def pair_distances(
    pair: LabelPair,
    judged: JudgedOverlap,
    reference_rows: NDArray[np.int32],
    prediction_rows: NDArray[np.int32],
    outlines: Outlines,
) -> PairDistances:
    """Compute the distances of matched pairs.

    Parameters
    ----------
    pair, judged
        The label pair and its judged overlap (which tells what is cut).
    reference_rows, prediction_rows
        int32 (k,): the pairs.
    outlines
        Which outlines to compare where ambiguous pixels are cut away.
    """
    cut_reference, cut_prediction = cuts(judged, outlines)

    def outlined(labels: LabelImage, is_cut: bool) -> Contours:
        return contours(labels.index, len(labels), without=pair.ambiguous if is_cut else None)

    # Kernels let go of the interpreter: one side each.
    with ThreadPoolExecutor(max_workers=2) as pool:
        reference = pool.submit(outlined, pair.reference, cut_reference)
        prediction = pool.submit(outlined, pair.prediction, cut_prediction)
    return contour_distances(
        reference.result(), prediction.result(), reference_rows, prediction_rows
    )


def cuts(judged: JudgedOverlap, outlines: Outlines) -> tuple[bool, bool]:
    """Tell whether ambiguous pixels are cut from the reference's and the prediction's outlines."""
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
    halves = [pairs] if len(pairs) < _THREADS_FROM else np.array_split(pairs, 2)

    def measured(part: NDArray[np.int64]) -> NDArray[np.float64]:
        return _all_distances(
            reference.start,
            reference.yx,
            prediction.start,
            prediction.yx,
            part,
            _TREE_FROM,
            DISTANCE_PERCENTILE,
        )

    if len(halves) == 1:
        figures = measured(pairs)
    else:
        # Kernels let go of the interpreter.
        with ThreadPoolExecutor(max_workers=2) as pool:
            figures = np.concatenate(list(pool.map(measured, halves)))
    for k in np.flatnonzero(figures[:, 0] < 0):
        figures[k] = _tree_distances(
            reference.of(int(reference_rows[k])), prediction.of(int(prediction_rows[k]))
        )
    return PairDistances(figures[:, 0], figures[:, 1], figures[:, 2])


def _tree_distances(a: NDArray[np.int32], b: NDArray[np.int32]) -> tuple[float, float, float]:
    """Do what the kernel does, for contours too long to compare pixel by pixel."""
    there = cKDTree(b).query(a)[0]
    back = cKDTree(a).query(b)[0]
    percentiles = [float(np.percentile(d, DISTANCE_PERCENTILE)) for d in (there, back)]
    # The tree's distances are square roots of whole numbers, as the kernel's are.
    return (
        max(float(there.max()), float(back.max())),
        max(percentiles),
        float((there.sum() + back.sum()) / (len(there) + len(back))),
    )


@compiled
def _contours(index: NDArray[np.int32], n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Find the contour pixels in raster order, then sort them by object."""
    height, width = index.shape
    start = np.zeros(n + 2, np.int64)
    found = np.empty((4096, 2), np.int32)
    count = 0
    for y in range(height):
        # Beyond the image edge counts as object: the edge pixel stands in for it.
        above = index[max(y - 1, 0)]
        here = index[y]
        below = index[min(y + 1, height - 1)]
        if count + width > len(found):
            larger = np.empty((2 * len(found) + width, 2), np.int32)
            larger[:count] = found[:count]
            found = larger
        for x in range(width):
            label = here[x]
            if label > 0 and (
                above[x] != label
                or below[x] != label
                or here[max(x - 1, 0)] != label
                or here[min(x + 1, width - 1)] != label
            ):
                found[count, 0] = y
                found[count, 1] = x
                count += 1
                start[label + 1] += 1
    for label in range(1, n + 2):
        start[label] += start[label - 1]
    yx = np.empty((count, 2), np.int32)
    place = start.copy()
    for k in range(count):
        label = index[found[k, 0], found[k, 1]]
        yx[place[label]] = found[k]
        place[label] += 1
    return start, yx


@compiled
def _nearest(a: NDArray[np.int32], b: NDArray[np.int32], out: NDArray[np.float64]) -> None:
    """Write the distance from each pixel of ``a`` to the nearest of ``b``.

    Both are in raster order, so the search goes outward from the rows nearest
    in y and stops where the difference in y alone is too great.
    """
    n = len(b)
    middle = 0
    for i in range(len(a)):
        y = a[i, 0]
        x = a[i, 1]
        while middle < n - 1 and b[middle, 0] < y:
            middle += 1
        best = np.int64(1) << 62
        j = middle
        while j < n:
            dy = np.int64(b[j, 0] - y)
            if dy > 0 and dy * dy >= best:
                break
            dx = np.int64(b[j, 1] - x)
            best = min(best, dy * dy + dx * dx)
            j += 1
        j = middle - 1
        while j >= 0:
            dy = np.int64(y - b[j, 0])
            if dy * dy >= best:
                break
            dx = np.int64(b[j, 1] - x)
            best = min(best, dy * dy + dx * dx)
            j -= 1
        out[i] = np.sqrt(best)


@compiled
def _percentile(ascending: NDArray[np.float64], percent: float) -> float:
    """Interpolate linearly between the two nearest ranks."""
    rank = percent / 100.0 * (len(ascending) - 1)
    low = int(rank)
    high = min(low + 1, len(ascending) - 1)
    return float(ascending[low] + (ascending[high] - ascending[low]) * (rank - low))


@compiled
def _all_distances(
    reference_start: NDArray[np.int64],
    reference_yx: NDArray[np.int32],
    prediction_start: NDArray[np.int64],
    prediction_yx: NDArray[np.int32],
    pairs: NDArray[np.int64],
    tree_from: int,
    percent: float,
) -> NDArray[np.float64]:
    """Give (hausdorff, its percentile, average) per pair; -1 for "too long for here"."""
    figures = np.empty((len(pairs), 3), np.float64)
    for k in range(len(pairs)):
        row = pairs[k, 0] + 1
        a = reference_yx[reference_start[row] : reference_start[row + 1]]
        row = pairs[k, 1] + 1
        b = prediction_yx[prediction_start[row] : prediction_start[row + 1]]
        if len(a) == 0 or len(b) == 0:
            figures[k] = np.nan
            continue
        if len(a) * len(b) > tree_from:
            figures[k] = -1.0
            continue
        there = np.empty(len(a), np.float64)
        back = np.empty(len(b), np.float64)
        _nearest(a, b, there)
        _nearest(b, a, back)
        total = there.sum() + back.sum()
        there.sort()
        back.sort()
        figures[k, 0] = max(there[-1], back[-1])
        figures[k, 1] = max(_percentile(there, percent), _percentile(back, percent))
        figures[k, 2] = total / (len(a) + len(b))
    return figures
