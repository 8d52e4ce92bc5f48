"""What is measured: this package and its peers, each behind the same call.

Every contender is called with the arrays of its stage and gives an array that can be compared:

- A matcher takes two label images and gives the pairs with an IoU above 0.5 as an int64 array
  (k, 2), sorted by the reference id, or where it does not tell them their number.
- A measure of distances takes two label images and pairs (k, 2), and gives a figure or two
  (Hausdorff distance, its 95th percentile) for each, in px.
- A restorer takes an RGB image and gives a label image.
- A rasterizer takes vertices (x, y), where each polygon starts among them, and the image's
  shape, and gives a label image of the polygons' numbers from 1.

A peer is imported where it is called, so that one that is not installed stops no other.
"""

from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from skimage.draw import polygon as skimage_polygon
from skimage.measure import label as skimage_label
from skimage.metrics import contingency_table, hausdorff_distance
from skimage.segmentation import expand_labels

from benchmarks.cases import CLASSES, Labels, strokes
from napari_panoptic.io.formats.labels.colour_coded import ColourCodedMask, restore
from napari_panoptic.io.formats.polygons.model import PixelRule, Polygons
from napari_panoptic.io.formats.polygons.rasterize import rasterize_polygons
from napari_panoptic.kernels.restore import classify
from napari_panoptic.nuclei.ambiguity import JudgedOverlap, judge
from napari_panoptic.nuclei.distances import KnownDistances, pair_distances
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.evaluate import evaluate, evaluated
from napari_panoptic.nuclei.matching import Matches, match
from napari_panoptic.nuclei.metrics import Counts, class_figures, count, unit_metrics
from napari_panoptic.nuclei.outcomes import Outcomes, outcomes
from napari_panoptic.nuclei.overlap import OverlapTable, overlap_table
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.settings import EvaluationSettings, Matching, Restoration
from napari_panoptic.values.vocabulary import Side

Pairs = NDArray[np.int64]
Distances = NDArray[np.float64]
Contender = Callable[..., NDArray[Any]]
SETTINGS = EvaluationSettings(distances=False)
CENTROID = EvaluationSettings(distances=False, matching=Matching.CENTROID)
_kept: dict[tuple[str, int], tuple[Any, Any]] = {}


def _once(what: str, make: Callable[..., Any], *arrays: NDArray[Any]) -> Any:
    """Make something from arrays the first time only: what is given to the work, not its part."""
    key = what, id(arrays[0])
    if key not in _kept:
        _kept[key] = make(*arrays), arrays  # the arrays too, so that no other gets their id
    return _kept[key][0]


def read_once(*arrays: NDArray[Any]) -> NDArray[Any]:
    """LIMIT: read every value of the input once."""
    return np.array([array.max() for array in arrays])


def read_colours(rgb: NDArray[np.uint8]) -> NDArray[Any]:
    """LIMIT: pack the colour of every pixel into one number."""
    return classify(rgb, np.zeros(0, np.int32), np.zeros(0, np.uint8))


# --- Matching ----------------------------------------------------------------


def trusted_pair(reference: Labels, prediction: Labels) -> LabelPair:
    """Make the value that this package keeps of two label images while it works with them."""
    return LabelPair.from_arrays(reference, prediction, CLASSES[0], CLASSES[0], CLASSES)


def counted(reference: Labels, prediction: Labels) -> tuple[LabelPair, OverlapTable]:
    """Make the same and count its overlap, as `evaluate_pair` does."""
    pair = LabelPair.from_arrays(reference, prediction, CLASSES[0], CLASSES[0], CLASSES)
    return pair, overlap_table(pair)


def match_pair(pair: LabelPair, table: OverlapTable, *rules: EvaluationSettings) -> Pairs:
    """Match a label pair by each rule; the pairs of the last."""
    judged = judge(table, SETTINGS.ambiguous)
    matched = [match(pair, table, judged, rule).pair for rule in rules or (SETTINGS,)][-1]
    return np.stack(
        [
            pair.reference.ids[judged.pair_reference[matched]],
            pair.prediction.ids[judged.pair_prediction[matched]],
        ],
        axis=1,
    )


def _classed_pair(reference: Labels, prediction: Labels) -> LabelPair:
    """Make the same with four classes, where the figures are what is measured."""
    classes_of = [_four_classes(labels) for labels in (reference, prediction)]
    return LabelPair.from_arrays(reference, prediction, classes_of[0], classes_of[1], CLASSES)


def _four_classes(labels: Labels) -> dict[int, str]:
    ids = np.unique(labels[labels > 0]).tolist()
    return {id_: CLASSES[id_ % len(CLASSES)] for id_ in ids}


def match_here(reference: Labels, prediction: Labels) -> Pairs:
    return _sorted(match_pair(*counted(reference, prediction)))


def match_checked(reference: Labels, prediction: Labels) -> Pairs:
    pair = _once("pair", trusted_pair, reference, prediction)
    return _sorted(match_pair(pair, overlap_table(pair)))


def match_centroid(reference: Labels, prediction: Labels) -> Pairs:
    return _sorted(match_pair(*counted(reference, prediction), CENTROID))


def match_both(reference: Labels, prediction: Labels) -> Pairs:
    return _sorted(match_pair(*counted(reference, prediction), CENTROID, SETTINGS))


def evaluate_here(reference: Labels, prediction: Labels) -> Pairs:
    """Evaluate as a whole: statuses, causes and metrics besides the pairs; their number."""
    evaluation = evaluated(*counted(reference, prediction), SETTINGS, KnownDistances.none())
    return np.array(_figures(evaluation.counts).sum(), np.int64)


def evaluate_all(reference: Labels, prediction: Labels) -> Pairs:
    """Do the same with distances."""
    settings = EvaluationSettings()
    evaluation = evaluated(*counted(reference, prediction), settings, KnownDistances.none())
    return np.array(_figures(evaluation.counts).sum(), np.int64)


def _figures(counts: Counts) -> NDArray[np.int64]:
    """Compute all figures of a unit and of its classes; its pairs by class, to be compared."""
    unit_metrics(counts)
    class_figures(counts)
    return counts.confusion[1:, 1:]


def match_numpy_unique(reference: Labels, prediction: Labels) -> Pairs:
    fused = _fused(reference, prediction)
    return _from_fused(prediction, *np.unique(fused, return_counts=True))


def match_numpy_bincount(reference: Labels, prediction: Labels) -> Pairs:
    counts = np.bincount(_fused(reference, prediction).ravel())
    present = np.flatnonzero(counts)
    return _from_fused(prediction, present, counts[present])


def match_fastremap(reference: Labels, prediction: Labels) -> Pairs:
    import fastremap

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
    import stardist.matching

    result = stardist.matching.matching(reference, prediction, thresh=0.5, report_matches=True)
    pairs = np.array(result.matched_pairs, dtype=np.int64).reshape(-1, 2)
    # It lists pairs below the threshold too.
    return _sorted(pairs[np.array(result.matched_tps, dtype=np.int64)])


def match_traccuracy(reference: Labels, prediction: Labels) -> Pairs:
    import traccuracy.matchers._compute_overlap as traccuracy_overlap

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


# --- Distances ---------------------------------------------------------------


def distances_here(reference: Labels, prediction: Labels, pairs: Pairs) -> Distances:
    pair, table, judged, rows = _once("judged", _judged, reference, prediction, pairs)
    found = pair_distances(pair, table, judged, rows[0], rows[1], SETTINGS.outlines)
    return np.stack([found.hausdorff_px, found.hausdorff95_px], axis=1)


def _judged(reference: Labels, prediction: Labels, pairs: Pairs) -> tuple[Any, ...]:
    pair = trusted_pair(reference, prediction)
    table = overlap_table(pair)
    rows = [
        np.searchsorted(side.ids, ids).astype(np.int32)
        for side, ids in zip((pair.reference, pair.prediction), pairs.T, strict=True)
    ]
    return pair, table, judge(table, SETTINGS.ambiguous), rows


def _crops(
    reference: Labels, prediction: Labels, pairs: Pairs
) -> list[tuple[NDArray[np.bool_], ...]]:
    """Cut both objects of each pair out, with one px of what is around them."""
    boxes = ndimage.find_objects(reference), ndimage.find_objects(prediction)
    crops: list[tuple[NDArray[np.bool_], ...]] = []
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


def _by_contours(distance: Callable[[NDArray[np.bool_], NDArray[np.bool_]], Any]) -> Contender:
    def measure(reference: Labels, prediction: Labels, pairs: Pairs) -> Distances:
        crops = _crops(reference, prediction, pairs)
        return np.array([distance(_contour(a), _contour(b)) for a, b in crops])

    return measure


def _cdist(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    table = cdist(np.argwhere(a), np.argwhere(b))
    return float(max(table.min(axis=0).max(), table.min(axis=1).max()))


def _cdist_all(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> tuple[float, float]:
    table = cdist(np.argwhere(a), np.argwhere(b))
    to_a, to_b = table.min(axis=0), table.min(axis=1)
    return (
        float(max(to_a.max(), to_b.max())),
        float(max(np.percentile(to_a, 95), np.percentile(to_b, 95))),
    )


def _tree(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    one, other = np.argwhere(a), np.argwhere(b)
    return float(max(cKDTree(one).query(other)[0].max(), cKDTree(other).query(one)[0].max()))


def _edt(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    to_a, to_b = ndimage.distance_transform_edt(~a), ndimage.distance_transform_edt(~b)
    return float(max(to_a[b].max(), to_b[a].max()))


def distances_medpy(reference: Labels, prediction: Labels, pairs: Pairs) -> Distances:
    import medpy.metric.binary

    crops = _crops(reference, prediction, pairs)
    return np.array([medpy.metric.binary.hd(b, a) for a, b in crops])


# --- Restoration -------------------------------------------------------------


def _classes_of(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Turn colours into class numbers, as reading a file does."""
    colours = (*MONUSAC_CLASSES.background, *MONUSAC_CLASSES.border, *MONUSAC_CLASSES.colours)
    others = len(colours) - len(CLASSES)
    codes = np.array([r << 16 | g << 8 | b for r, g, b in colours], np.int32)
    values = np.array([0] * others + list(range(1, len(CLASSES) + 1)), np.uint8)
    return classify(rgb, codes, values)


def restore_dilated(rgb: NDArray[np.uint8]) -> Labels:
    return _restored_here(rgb, Restoration.BORDER_DILATED)


def restore_removed(rgb: NDArray[np.uint8]) -> Labels:
    return _restored_here(rgb, Restoration.BORDER_REMOVED)


def _restored_here(rgb: NDArray[np.uint8], restoration: Restoration) -> Labels:
    mask = ColourCodedMask(_classes_of(rgb), Path("in-memory"))
    return restore(mask, MONUSAC_CLASSES, restoration, 1).index


def _restored(rgb: NDArray[np.uint8], grown: Callable[[NDArray[np.bool_]], Labels]) -> Labels:
    """Flatten the restored objects of each class, later classes over earlier ones."""
    flat = np.zeros(rgb.shape[:2], np.int32)
    code = rgb @ np.array([65536, 256, 1], np.int32)
    used = 0
    for r, g, b in MONUSAC_CLASSES.colours:
        labels = grown(code == (r << 16 | g << 8 | b))
        flat = np.where(labels > 0, labels + used, flat)
        used += int(labels.max(initial=0))
    return flat


def _cross_maximum(labels: Labels) -> Labels:
    padded = np.pad(labels, 1)
    result = labels.copy()
    for window in (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]):
        np.maximum(result, window, out=result)
    return result


def _label_scipy(mask: NDArray[np.bool_]) -> Labels:
    return np.asarray(ndimage.label(mask, np.ones((3, 3)))[0], np.int32)


def _label_cc3d(mask: NDArray[np.bool_]) -> Labels:
    import cc3d

    return np.asarray(cc3d.connected_components(mask, connectivity=8), np.int32)


def _label_skimage(mask: NDArray[np.bool_]) -> Labels:
    return np.asarray(skimage_label(mask, connectivity=2), np.int32)


def _restorer(
    label: Callable[[NDArray[np.bool_]], Labels], grow: Callable[[Labels], Labels] | None = None
) -> Contender:
    def restored(rgb: NDArray[np.uint8]) -> Labels:
        return _restored(rgb, lambda mask: grow(label(mask)) if grow else label(mask))

    return restored


# --- Polygons ----------------------------------------------------------------


def allocate(*given: NDArray[Any]) -> Labels:
    """LIMIT: allocate the image and touch it."""
    image = np.empty(tuple(given[-1]), np.int32)
    image.fill(0)
    return image


def rasterize_here(
    vertices: NDArray[np.float64], starts: NDArray[np.int64], shape: NDArray[np.int64]
) -> Labels:
    polygons = _once("polygons", _polygons, vertices, starts)
    height, width = shape.tolist()
    labels = rasterize_polygons(polygons, (height, width), MONUSAC_CLASSES).labels
    # Numbered 1..n without those that later ones cover: only compared, so not worth a lookup.
    return labels.index


def rasterized_ids(
    vertices: NDArray[np.float64], starts: NDArray[np.int64], shape: NDArray[np.int64]
) -> Labels:
    """Give the numbers of the polygons, for the comparison."""
    height, width = shape.tolist()
    drawn = rasterize_polygons(_polygons(vertices, starts), (height, width), MONUSAC_CLASSES)
    return drawn.labels.id_image().astype(np.int32)


def _polygons(vertices: NDArray[np.float64], starts: NDArray[np.int64]) -> Polygons:
    """Make the value that readers hand over."""
    n = len(starts) - 1
    return Polygons(
        vertices,
        starts,
        np.zeros(n, np.bool_),
        np.arange(n + 1),
        np.arange(1, n + 1),
        np.ones(n, np.int16),
        PixelRule.VERTEX,
    )


def _drawer(draw: Callable[[Labels, NDArray[np.int64], int], None]) -> Contender:
    def drawn(
        vertices: NDArray[np.float64], starts: NDArray[np.int64], shape: NDArray[np.int64]
    ) -> Labels:
        image = np.zeros(tuple(shape), np.int32)
        outlines = np.split(np.trunc(vertices).astype(np.int64), starts[1:-1])
        for k, xy in enumerate(outlines, start=1):
            draw(image, xy, k)
        return image

    return drawn


def _draw_skimage(image: Labels, xy: NDArray[np.int64], label: int) -> None:
    image[skimage_polygon(xy[:, 1], xy[:, 0], image.shape)] = label


def _draw_cv2(image: Labels, xy: NDArray[np.int64], label: int) -> None:
    import cv2

    cv2.fillPoly(image, [xy.astype(np.int32)], label)


def rasterize_pillow(
    vertices: NDArray[np.float64], starts: NDArray[np.int64], shape: NDArray[np.int64]
) -> Labels:
    from PIL import Image, ImageDraw

    image = Image.new("I", (int(shape[1]), int(shape[0])))
    draw = ImageDraw.Draw(image)
    outlines = np.split(np.trunc(vertices).astype(np.int64), starts[1:-1])
    for k, xy in enumerate(outlines, start=1):
        draw.polygon(xy.ravel().tolist(), fill=k, outline=k)
    return np.asarray(image, np.int32)


# --- From the overlap table to the figures -----------------------------------


def _counted(reference: Labels, prediction: Labels) -> tuple[LabelPair, OverlapTable]:
    pair = _classed_pair(reference, prediction)
    return pair, overlap_table(pair)


def figures_of_table(reference: Labels, prediction: Labels) -> Pairs:
    pair, table = _once("counted", _counted, reference, prediction)
    counts = evaluated(pair, table, SETTINGS, KnownDistances.none()).counts
    return _figures(counts)


def matches_of_table(reference: Labels, prediction: Labels) -> Pairs:
    pair, table = _once("counted", _counted, reference, prediction)
    judged = judge(table, SETTINGS.ambiguous)
    return match(pair, table, judged, SETTINGS).pair


def _matched(reference: Labels, prediction: Labels) -> tuple[Any, ...]:
    pair, table = _counted(reference, prediction)
    judged = judge(table, SETTINGS.ambiguous)
    return pair, table, judged, match(pair, table, judged, SETTINGS)


def outcomes_of_matches(reference: Labels, prediction: Labels) -> Pairs:
    found = _decided(*_once("matched", _matched, reference, prediction))
    return np.array(len(found.reference) + len(found.prediction))


def _decided(
    pair: LabelPair, table: OverlapTable, judged: JudgedOverlap, matches: Matches
) -> Outcomes:
    return outcomes(pair, table, judged, matches, None, near_iou=SETTINGS.near_iou)


def figures_of_outcomes(reference: Labels, prediction: Labels) -> Pairs:
    found = _once("outcomes", lambda *given: _decided(*_matched(*given)), reference, prediction)
    return _figures(count(found))


# --- A stroke ----------------------------------------------------------------


class _Edited:
    """A pair under edit, and strokes on its prediction."""

    def __init__(self, reference: Labels, prediction: Labels) -> None:
        self.live = EditedPair(_classed_pair(reference, prediction))
        self.live.evaluate(SETTINGS)
        labels = prediction.copy()
        # Drawn beforehand: finding out where to draw is no part of a stroke.
        self._strokes = cycle([stroke for _ in range(3) for stroke in strokes(labels)])

    def stroke(self) -> None:
        """Paint the next one; after the last they begin anew."""
        y, x, ids = next(self._strokes)
        classes = {ids: CLASSES[0]} if isinstance(ids, int) else {}
        self.live.set_pixels(Side.PREDICTION, y, x, ids, classes=classes)


def stroke_figures(reference: Labels, prediction: Labels) -> Pairs:
    """Give all figures of the region after a stroke."""
    edited = _once("figures", _Edited, reference, prediction)
    edited.stroke()
    return _figures(edited.live.evaluate(SETTINGS).counts)


def stroke_recounted(reference: Labels, prediction: Labels) -> Pairs:
    """Give the same by evaluating the whole pair."""
    edited = _once("recounted", _Edited, reference, prediction)
    edited.stroke()
    return _figures(evaluate(edited.live.pair(), SETTINGS).counts)


CONTENDERS: dict[str, Contender] = {
    "LIMIT": read_once,
    "read colours": read_colours,
    "match": match_here,
    "match checked": match_checked,
    "match centroid": match_centroid,
    "match both": match_both,
    "evaluate": evaluate_here,
    "evaluate with distances": evaluate_all,
    "NumPy unique": match_numpy_unique,
    "NumPy bincount": match_numpy_bincount,
    "fastremap": match_fastremap,
    "scikit-image contingency_table": match_skimage,
    "traccuracy": match_traccuracy,
    "stardist.matching": match_stardist,
    "distances": distances_here,
    "SciPy cdist, both": _by_contours(_cdist_all),
    "SciPy cdist": _by_contours(_cdist),
    "SciPy distance transform": _by_contours(_edt),
    "SciPy cKDTree": _by_contours(_tree),
    "scikit-image hausdorff_distance": _by_contours(lambda a, b: float(hausdorff_distance(a, b))),
    "medpy": distances_medpy,
    "restore dilated": restore_dilated,
    "restore removed": restore_removed,
    "cc3d, maxima": _restorer(_label_cc3d, _cross_maximum),
    "SciPy label, maxima": _restorer(_label_scipy, _cross_maximum),
    "scikit-image label, maxima": _restorer(_label_skimage, _cross_maximum),
    "scikit-image expand_labels": _restorer(_label_skimage, partial(expand_labels, distance=1)),
    "cc3d": _restorer(_label_cc3d),
    "SciPy label": _restorer(_label_scipy),
    "scikit-image label": _restorer(_label_skimage),
    "allocate": allocate,
    "rasterize": rasterize_here,
    "rasterized ids": rasterized_ids,
    "skimage.draw.polygon": _drawer(_draw_skimage),
    "OpenCV fillPoly": _drawer(_draw_cv2),
    "Pillow": rasterize_pillow,
    "figures of table": figures_of_table,
    "matches of table": matches_of_table,
    "outcomes of matches": outcomes_of_matches,
    "figures of outcomes": figures_of_outcomes,
    "stroke figures": stroke_figures,
    "stroke recounted": stroke_recounted,
}
