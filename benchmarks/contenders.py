"""What is measured: this package and its peers, each behind the same call.

A matcher takes two label images and gives the pairs with an IoU above 0.5, as
an int64 array (k, 2) sorted by the reference id. A distance takes the images
and the pairs and gives a Hausdorff distance for each. A restorer takes an image
of class numbers and gives a label image.
"""

from collections.abc import Callable

import cc3d
import fastremap
import medpy.metric.binary
import numpy as np
import stardist.matching
import traccuracy.matchers._compute_overlap as traccuracy_overlap
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from skimage.measure import label as skimage_label
from skimage.metrics import contingency_table, hausdorff_distance
from skimage.segmentation import expand_labels

from benchmarks.cases import CLASSES, Labels
from napari_panoptic.evaluation.ambiguity import judge
from napari_panoptic.evaluation.distances import pair_distances
from napari_panoptic.evaluation.labels import LabelImage, LabelPair
from napari_panoptic.evaluation.matching import match
from napari_panoptic.evaluation.overlap import overlap_table
from napari_panoptic.evaluation.settings import EvaluationSettings, Restoration
from napari_panoptic.io.colour_coded import ColourCodedMask, restore
from napari_panoptic.regions import MONUSAC_CLASSES

Pairs = NDArray[np.int64]
Distances = NDArray[np.float64]
Matcher = Callable[[Labels, Labels], Pairs]
SETTINGS = EvaluationSettings()


# --- Matching ----------------------------------------------------------------


def trusted_pair(reference: Labels, prediction: Labels) -> LabelPair:
    """Make the value that this package keeps of two label images while it works with them."""
    sides = []
    for labels in (reference, prediction):
        classes = dict.fromkeys(range(1, int(labels.max()) + 1), CLASSES[0])
        sides.append(LabelImage.from_array(labels, classes, CLASSES))
    return LabelPair(*sides)


def match_pair(pair: LabelPair) -> Pairs:
    """Match what is already a label pair."""
    table = overlap_table(pair)
    judged = judge(table, SETTINGS.ambiguous)
    matched = match(pair, table, judged, SETTINGS).pair
    return np.stack(
        [
            pair.reference.ids[judged.pair_reference[matched]],
            pair.prediction.ids[judged.pair_prediction[matched]],
        ],
        axis=1,
    )


def match_here(reference: Labels, prediction: Labels) -> Pairs:
    return _sorted(match_pair(trusted_pair(reference, prediction)))


def match_numpy_unique(reference: Labels, prediction: Labels) -> Pairs:
    fused = _fused(reference, prediction)
    return _from_fused(prediction, *np.unique(fused, return_counts=True))


def match_numpy_bincount(reference: Labels, prediction: Labels) -> Pairs:
    counts = np.bincount(_fused(reference, prediction).ravel())
    present = np.flatnonzero(counts)
    return _from_fused(prediction, present, counts[present])


def match_fastremap(reference: Labels, prediction: Labels) -> Pairs:
    fused = _fused(reference, prediction)
    return _from_fused(prediction, *fastremap.unique(fused, return_counts=True))


def match_skimage(reference: Labels, prediction: Labels) -> Pairs:
    table = contingency_table(reference, prediction).tocoo()
    reference_area = np.bincount(table.row, table.data)
    prediction_area = np.bincount(table.col, table.data)
    union = reference_area[table.row] + prediction_area[table.col] - table.data
    good = (table.data / union > 0.5) & (table.row > 0) & (table.col > 0)
    return _sorted(np.stack([table.row[good], table.col[good]], axis=1))


def match_stardist(reference: Labels, prediction: Labels) -> Pairs:
    result = stardist.matching.matching(reference, prediction, thresh=0.5, report_matches=True)
    pairs = np.array(result.matched_pairs, dtype=np.int64).reshape(-1, 2)
    # It accepts an IoU of exactly the threshold, and lists pairs below it too.
    return _sorted(pairs[np.array(result.matched_scores) > 0.5])


def match_traccuracy(reference: Labels, prediction: Labels) -> Pairs:
    boxes = [_boxes(labels) for labels in (reference, prediction)]
    overlaps = traccuracy_overlap.get_labels_with_overlap(
        reference,
        prediction,
        gt_boxes=boxes[0][1],
        res_boxes=boxes[1][1],
        gt_labels=boxes[0][0],
        res_labels=boxes[1][0],
        overlap="iou",
    )
    return _sorted(np.array([(a, b) for a, b, iou in overlaps if iou > 0.5], dtype=np.int64))


MATCHERS: dict[str, Matcher] = {
    "NumPy unique of fused ids": match_numpy_unique,
    "NumPy bincount of fused ids": match_numpy_bincount,
    "fastremap": match_fastremap,
    "scikit-image contingency_table": match_skimage,
    "traccuracy": match_traccuracy,
    "stardist.matching": match_stardist,
}
DENSE = {"NumPy bincount of fused ids", "traccuracy", "stardist.matching"}
"""Matchers whose memory grows with the product of the numbers of objects."""


def _fused(reference: Labels, prediction: Labels) -> Pairs:
    return reference.astype(np.int64) * (int(prediction.max()) + 1) + prediction


def _from_fused(prediction: Labels, fused: Pairs, shared: Pairs) -> Pairs:
    rows, columns = np.divmod(fused.astype(np.int64), int(prediction.max()) + 1)
    reference_area = np.bincount(rows, shared)
    prediction_area = np.bincount(columns, shared)
    union = reference_area[rows] + prediction_area[columns] - shared
    good = (shared / union > 0.5) & (rows > 0) & (columns > 0)
    return _sorted(np.stack([rows[good], columns[good]], axis=1))


def _boxes(labels: Labels) -> tuple[Pairs, Pairs]:
    found = [(k, box) for k, box in enumerate(ndimage.find_objects(labels), start=1) if box]
    corners = [(b[0].start, b[1].start, b[0].stop, b[1].stop) for _, b in found]
    return np.array([k for k, _ in found]), np.array(corners)


def _sorted(pairs: Pairs) -> Pairs:
    return pairs[np.argsort(pairs[:, 0], kind="stable")].astype(np.int64)


# --- Hausdorff ---------------------------------------------------------------


def distances_here(pair: LabelPair, rows: Pairs) -> Distances:
    """Measure pairs given as rows (k, 2) of the two sides."""
    judged = judge(overlap_table(pair), SETTINGS.ambiguous)
    result = pair_distances(
        pair, judged, rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int32), SETTINGS.outlines
    )
    return np.asarray(result.hausdorff_px)


def _crops(
    reference: Labels, prediction: Labels, pairs: Pairs
) -> list[tuple[NDArray[np.bool_], ...]]:
    """Cut both objects of each pair out, with one px of what is around them."""
    boxes = ndimage.find_objects(reference), ndimage.find_objects(prediction)
    crops = []
    for a, b in pairs:
        one, other = boxes[0][a - 1], boxes[1][b - 1]
        box = tuple(
            slice(max(0, min(p.start, q.start) - 1), max(p.stop, q.stop) + 1)
            for p, q in zip(one, other, strict=True)
        )
        crops.append((reference[box] == a, prediction[box] == b))
    return crops


def _contour(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    contour: NDArray[np.bool_] = mask & ~ndimage.binary_erosion(mask, border_value=1)
    return contour


def _by_contours(
    distance: Callable[[NDArray[np.bool_], NDArray[np.bool_]], float],
) -> Callable[[Labels, Labels, Pairs], Distances]:
    def measure(reference: Labels, prediction: Labels, pairs: Pairs) -> Distances:
        crops = _crops(reference, prediction, pairs)
        return np.array([distance(_contour(a), _contour(b)) for a, b in crops])

    return measure


def _cdist(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    table = cdist(np.argwhere(a), np.argwhere(b))
    return float(max(table.min(axis=0).max(), table.min(axis=1).max()))


def _tree(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    one, other = np.argwhere(a), np.argwhere(b)
    return float(max(cKDTree(one).query(other)[0].max(), cKDTree(other).query(one)[0].max()))


def _edt(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    to_a, to_b = ndimage.distance_transform_edt(~a), ndimage.distance_transform_edt(~b)
    return float(max(to_a[b].max(), to_b[a].max()))


def distances_medpy(reference: Labels, prediction: Labels, pairs: Pairs) -> Distances:
    crops = _crops(reference, prediction, pairs)
    return np.array([medpy.metric.binary.hd(b, a) for a, b in crops])


DISTANCES: dict[str, Callable[[Labels, Labels, Pairs], Distances]] = {
    "SciPy cdist on crops": _by_contours(_cdist),
    "SciPy distance transform on crops": _by_contours(_edt),
    "SciPy cKDTree": _by_contours(_tree),
    "scikit-image on crops": _by_contours(lambda a, b: float(hausdorff_distance(a, b))),
    "medpy": distances_medpy,
}


# --- Restoration -------------------------------------------------------------


def restore_here(mask: ColourCodedMask) -> Labels:
    return restore(mask, MONUSAC_CLASSES, Restoration.BORDER_DILATED, 1).index


def _restored(classes: NDArray[np.uint8], grown: Callable[[NDArray[np.bool_]], Labels]) -> Labels:
    """Flatten the restored objects of each class, later classes over earlier ones."""
    flat = np.zeros(classes.shape, np.int32)
    used = 0
    for number in range(1, len(CLASSES) + 1):
        labels = grown(classes == number)
        flat = np.where(labels > 0, labels + used, flat)
        used += int(labels.max(initial=0))
    return flat


def _cross_maximum(labels: Labels) -> Labels:
    padded = np.pad(labels, 1)
    result = labels.copy()
    for window in (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]):
        np.maximum(result, window, out=result)
    return result


def restore_scipy(classes: NDArray[np.uint8]) -> Labels:
    return _restored(classes, lambda mask: _cross_maximum(ndimage.label(mask, np.ones((3, 3)))[0]))


def restore_cc3d(classes: NDArray[np.uint8]) -> Labels:
    return _restored(
        classes,
        lambda mask: _cross_maximum(cc3d.connected_components(mask, connectivity=8).astype("i4")),
    )


def restore_skimage(classes: NDArray[np.uint8]) -> Labels:
    return _restored(
        classes, lambda mask: _cross_maximum(skimage_label(mask, connectivity=2).astype("i4"))
    )


def restore_expand_labels(classes: NDArray[np.uint8]) -> Labels:
    return _restored(
        classes, lambda mask: expand_labels(skimage_label(mask, connectivity=2).astype("i4"), 1)
    )


RESTORERS: dict[str, Callable[[NDArray[np.uint8]], Labels]] = {
    "cc3d + shifted maxima": restore_cc3d,
    "SciPy label + shifted maxima": restore_scipy,
    "scikit-image label + shifted maxima": restore_skimage,
    "scikit-image expand_labels": restore_expand_labels,
}
