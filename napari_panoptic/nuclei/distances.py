"""Contours of objects, and how far two contours lie apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled, in_threads
from napari_panoptic.nuclei.ambiguity import JudgedOverlap
from napari_panoptic.nuclei.overlap import OverlapTable, SideTable
from napari_panoptic.nuclei.values.labels import LabelImage, LabelPair
from napari_panoptic.nuclei.values.settings import DISTANCE_PERCENTILE, Outlines

# Above this product of contour lengths a search tree beats comparing all pixels.
_TREE_FROM = 2_000_000
# From so many pairs on a second thread is worth its start.
_THREADS_FROM = 200
# Of two contours no further across than this, no squared distance exceeds an int32.
_NARROW_PX = 32767
# Marks of a line are looked at so many at a time: bytes of a word.
_WORD = 8


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
        """Return the contour pixels (m, 2) of the object in a row (0-based)."""
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
    """

    hausdorff_px: NDArray[np.float64]
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
    start, yx = _contours(np.ascontiguousarray(index), n)
    return Contours(start, yx)


def contours_in_boxes(
    index: NDArray[np.int32],
    rows: NDArray[np.int32],
    boxes: NDArray[np.int32],
    *,
    without: NDArray[np.bool_] | None = None,
) -> Contours:
    """Collect the contour pixels of some objects, each from its bounding box alone.

    Parameters
    ----------
    index
        int32 image (y, x): 0 for background, ``k`` for the object of row ``k - 1``.
    rows
        int32 (k,): the objects; they are numbered anew from 1 in this order.
    boxes
        int32 (k, 4): y0, x0, y1, x1 of their bounding boxes, half open.
    without
        bool image (y, x): pixels cut from every object first.
    """
    void = np.zeros((0, 0), np.bool_) if without is None else np.ascontiguousarray(without)
    start, yx = _contours_in_boxes(
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
        The label pair, its overlap table (which tells where objects are) and
        its judged overlap (which tells what is cut).
    reference_rows, prediction_rows
        int32 (k,): the pairs.
    outlines
        Which outlines to compare where ambiguous pixels are cut away.
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

    halves = np.array_split(pairs, 1 if len(pairs) < _THREADS_FROM else 2)
    figures = np.concatenate(in_threads(measured, halves))
    for k in np.flatnonzero(figures[:, 0] < 0):
        figures[k] = _tree_distances(
            reference.of(int(reference_rows[k])), prediction.of(int(prediction_rows[k]))
        )
    return PairDistances(figures[:, 0], figures[:, 1])


def _outlined(
    labels: LabelImage,
    table: SideTable,
    rows: NDArray[np.int32],
    without: NDArray[np.bool_] | None,
) -> tuple[Contours, NDArray[np.int32]]:
    """Collect the contours of some objects, the cheaper way; give each one's row among them."""
    # Under a threshold below 0.5 or another rule, an object may be in several pairs.
    once, place = np.unique(rows, return_inverse=True)
    boxes = table.bbox[once]
    if labels.planes:
        return _outlined_in_planes(labels, once, boxes, without), place.astype(np.int32)
    sides_px = (boxes[:, 2:] - boxes[:, :2]).astype(np.int64)
    if sides_px.prod(axis=1).sum() > labels.index.size:
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
    """Do what the kernel does, for contours too long to compare pixel by pixel."""
    from scipy.spatial import cKDTree

    there = cKDTree(b).query(a)[0]
    back = cKDTree(a).query(b)[0]
    percentiles = [float(np.percentile(d, DISTANCE_PERCENTILE)) for d in (there, back)]
    # The tree's distances are square roots of whole numbers, as the kernel's are.
    return max(float(there.max()), float(back.max())), max(percentiles)


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
def _contours_in_boxes(
    index: NDArray[np.int32],
    void: NDArray[np.uint8],
    labels: NDArray[np.int32],
    boxes: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Find the contour pixels of one object after the other; an empty ``void`` cuts nothing."""
    start = np.zeros(len(labels) + 2, np.int64)
    yx, count = np.empty((4096, 2), np.int32), 0
    for k in range(len(labels)):
        marks, marked = _contour_of_one(_object_alone(index, void, labels[k], boxes[k]))
        if count + marked >= len(yx):
            larger = np.empty((2 * len(yx) + marked, 2), np.int32)
            larger[:count] = yx[:count]
            yx = larger
        count = _append_marked(marks, (boxes[k, 0] - 1, boxes[k, 1] - 1), yx, count)
        start[k + 2] = count
    return start, yx[:count].copy()


@compiled
def _object_alone(
    index: NDArray[np.int32], void: NDArray[np.uint8], label: np.int32, box: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Cut an object out: 1 for its pixels that are not in the void, which may be empty.

    There is a frame of one pixel around: 0, but what lies beyond the image
    edge counts as object, so the edge pixels stand in for it, as 2. Lines are
    filled up to whole words.
    """
    y0, x0, y1, x1 = box
    width = x1 - x0
    alone = np.zeros((y1 - y0 + 2, (width + 2 + _WORD - 1) // _WORD * _WORD), np.uint8)
    for y in range(y0, y1):
        here, line = alone[y - y0 + 1, 1:], index[y, x0:x1]
        for x in range(width):
            here[x] = line[x] == label
        if void.size:
            cut = void[y, x0:x1]
            for x in range(width):
                here[x] &= cut[x] == 0
    if x0 == 0:
        alone[:, 0] = 2 * alone[:, 1]
    if x1 == index.shape[1]:
        alone[:, width + 1] = 2 * alone[:, width]
    if y0 == 0:
        alone[0] = alone[1]
    if y1 == index.shape[0]:
        alone[-1] = alone[-2]
    return alone


@compiled
def _contour_of_one(alone: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], int]:
    """Mark the pixels of an object in its frame that have a neighbour outside; count them.

    All lines are taken as one: by themselves they are too short for vector
    instructions.
    """
    width = alone.shape[1]
    flat = alone.ravel()
    above, here, below = flat[: -2 * width], flat[width:-width], flat[2 * width :]
    left, right = flat[width - 1 :], flat[width + 1 :]
    marks = np.zeros_like(alone)
    target = marks.ravel()[width:-width]
    count = 0
    for x in range(len(here)):
        is_inner = (above[x] != 0) & (below[x] != 0) & (left[x] != 0) & (right[x] != 0)
        target[x] = (here[x] == 1) & (not is_inner)
        count += target[x]
    return marks, count


@compiled
def _append_marked(
    marks: NDArray[np.uint8], origin: tuple[int, int], yx: NDArray[np.int32], count: int
) -> int:
    """Append the marked pixels of a window in raster order; return how many there are then.

    Each pixel of a word is written, and the next one over it if it was not
    marked: there must be room for one more than there are.
    """
    words = marks.view(np.uint64)
    for y in range(len(marks)):
        for word in range(words.shape[1]):
            if words[y, word] != 0:
                for x in range(word * _WORD, (word + 1) * _WORD):
                    yx[count, 0] = origin[0] + y
                    yx[count, 1] = origin[1] + x
                    count += int(marks[y, x])
    return count


@compiled
def _squares_to_nearest(
    a: NDArray[np.int32], b: NDArray[np.int32], there: NDArray[np.int32], back: NDArray[np.int32]
) -> None:
    """Write the squared distance from each pixel to the nearest one of the other contour.

    All pixels are compared with all: that compiles to vector instructions,
    which beat a search that leaves pixels out, up to where a tree beats both.

    Parameters
    ----------
    a, b
        int32 or int64 (2, n) and (2, m): the contours, y and x.
    there, back
        Of their type, (n,) and (m,): written.
    """
    number = back.dtype.type
    b_y, b_x = b[0], b[1]
    back[:] = np.iinfo(back.dtype).max
    for i in range(len(there)):
        y, x = a[0, i], a[1, i]
        nearest = number(np.iinfo(back.dtype).max)
        for j in range(len(back)):
            dy, dx = number(b_y[j] - y), number(b_x[j] - x)
            square = number(dy * dy + dx * dx)
            nearest = min(nearest, square)
            back[j] = min(back[j], square)
        there[i] = nearest


@compiled
def _ranked(values: NDArray[np.int32], rank: int) -> int:
    """Return the value of a rank (from 0) in ascending order, by halving the range it is in."""
    below, up_to = -1, int(values.max())
    while up_to - below > 1:
        middle = (below + up_to) // 2
        limit = values.dtype.type(middle)
        count = 0
        for value in values:
            count += value <= limit
        if count > rank:
            up_to = middle
        else:
            below = middle
    return up_to


@compiled
def _percentile_of_roots(squares: NDArray[np.int32], percent: float) -> float:
    """Interpolate linearly between the square roots of the two nearest ranks."""
    rank = percent / 100.0 * (len(squares) - 1)
    low = int(rank)
    below = np.sqrt(np.float64(_ranked(squares, low)))
    above = np.sqrt(np.float64(_ranked(squares, min(low + 1, len(squares) - 1))))
    return float(below + (above - below) * (rank - low))


@compiled
def _distances(a: NDArray[np.int32], b: NDArray[np.int32], percent: float) -> tuple[float, float]:
    """Return the Hausdorff distance and its percentile of two contours (2, n), y and x."""
    there, back = np.empty_like(a[0]), np.empty_like(b[0])
    _squares_to_nearest(a, b, there, back)
    return (
        np.sqrt(np.float64(max(there.max(), back.max()))),
        max(_percentile_of_roots(there, percent), _percentile_of_roots(back, percent)),
    )


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
    """Return the Hausdorff distance and its percentile per pair; -1 for "too long for here"."""
    figures = np.empty((len(pairs), 2), np.float64)
    for k in range(len(pairs)):
        row = pairs[k, 0] + 1
        a = reference_yx[reference_start[row] : reference_start[row + 1]].T.copy()
        row = pairs[k, 1] + 1
        b = prediction_yx[prediction_start[row] : prediction_start[row + 1]].T.copy()
        if a.size == 0 or b.size == 0:
            figures[k] = np.nan
        elif a.shape[1] * b.shape[1] > tree_from:
            figures[k] = -1.0
        elif max(_across(a[0], b[0]), _across(a[1], b[1])) <= _NARROW_PX:
            figures[k] = _distances(a, b, percent)
        else:
            figures[k] = _distances(a.astype(np.int64), b.astype(np.int64), percent)
    return figures


@compiled
def _across(a: NDArray[np.int32], b: NDArray[np.int32]) -> int:
    """Return the greatest difference that there can be between two coordinates."""
    return int(max(a.max(), b.max()) - min(a.min(), b.min()))
