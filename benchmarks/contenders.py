"""What is measured: this package and its peers, each behind the same call.

Every contender is called with the arrays of its stage and returns an array that can be compared:

- A matcher takes two label images and returns the pairs with an IoU above 0.5 as an int64 array
  (k, 2), sorted by the reference id, or, if it does not report them, their number.
- A measure of distances takes two label images and pairs (k, 2), and returns a figure or two
  (Hausdorff distance, its 95th percentile) for each, in px.
- A restorer takes an RGB image and returns a label image.
- A rasterizer takes vertices (x, y), where each polygon starts among them, and the image's
  shape, and returns a label image of the polygons' numbers from 1.

A peer is imported where it is called, so that one that is not installed stops no other.
"""

from collections.abc import Callable
from functools import partial
from itertools import cycle
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

from benchmarks.cases import CLASSES, Floats, Labels, strokes
from napari_panoptic.io.formats.labels.colour_coded import ColourCodedMask, restore
from napari_panoptic.io.formats.polygons.model import PixelRule, Polygons
from napari_panoptic.io.formats.polygons.rasterize import rasterize_polygons
from napari_panoptic.kernels.restore import classify
from napari_panoptic.nuclei.ambiguity import judge
from napari_panoptic.nuclei.causes import statuses_of
from napari_panoptic.nuclei.distances import KnownDistances, pair_distances
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.nuclei.evaluate import evaluate, evaluated
from napari_panoptic.nuclei.matching import match
from napari_panoptic.nuclei.metrics import Counts, class_figures, count, unit_metrics
from napari_panoptic.nuclei.outcomes import outcomes
from napari_panoptic.nuclei.overlap import OverlapTable, overlap_table
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.settings import EvaluationSettings, Matching, Restoration
from napari_panoptic.values.vocabulary import Side

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Contender = Callable[..., NDArray[Any]]
SETTINGS = EvaluationSettings(distances=False)
CENTROID = EvaluationSettings(distances=False, matching=Matching.CENTROID)
_kept: dict[tuple[Any, int], tuple[Any, Any]] = {}


def _once(make: Callable[..., Any], *arrays: NDArray[Any]) -> Any:
    """Make something from arrays the first time only, which is not part of the work."""
    key = make, id(arrays[0])
    if key not in _kept:
        _kept[key] = make(*arrays), arrays  # the arrays too, so that no other gets their id
    return _kept[key][0]


def read_once(*arrays: NDArray[Any]) -> NDArray[Any]:
    """LIMIT: read every value of the input once."""
    return np.array([array.max() for array in arrays])


# --- matching -----------------------------------------------------------------------------------


def label_pair(reference: Labels, prediction: Labels) -> LabelPair:
    """Make the value of two label images of one class that this package works with."""
    return LabelPair.from_arrays(reference, prediction, CLASSES[0], CLASSES[0], CLASSES)


def counted(reference: Labels, prediction: Labels) -> tuple[LabelPair, OverlapTable]:
    """Count its overlap, as `evaluate_pair` does."""
    pair = label_pair(reference, prediction)
    return pair, overlap_table(pair)


def classed(reference: Labels, prediction: Labels) -> tuple[LabelPair, OverlapTable]:
    """Make the same with four classes, where the figures are measured."""
    classes = [
        {id_: CLASSES[id_ % len(CLASSES)] for id_ in np.unique(labels[labels > 0]).tolist()}
        for labels in (reference, prediction)
    ]
    pair = LabelPair.from_arrays(reference, prediction, classes[0], classes[1], CLASSES)
    return pair, overlap_table(pair)


def match_pair(pair: LabelPair, table: OverlapTable, *rules: EvaluationSettings) -> Ints:
    """Match a label pair by each rule; the pairs of the last."""
    judged = judge(table, SETTINGS)
    matched = [match(pair, table, judged, rule).pair for rule in rules or (SETTINGS,)][-1]
    ids = pair.reference.ids[judged.pair_reference[matched]]
    return _pairs(ids, pair.prediction.ids[judged.pair_prediction[matched]])


def match_checked(reference: Labels, prediction: Labels) -> Ints:
    pair = _once(label_pair, reference, prediction)
    return match_pair(pair, overlap_table(pair))


def _by_rules(*rules: EvaluationSettings) -> Contender:
    return lambda reference, prediction: match_pair(*counted(reference, prediction), *rules)


def _evaluation(settings: EvaluationSettings) -> Contender:
    """Evaluate as a whole: statuses, causes and metrics besides the pairs; their number."""

    def number(reference: Labels, prediction: Labels) -> Ints:
        found = evaluated(*counted(reference, prediction), settings, KnownDistances.none())
        return np.array(_figures(found.counts).sum(), np.int64)

    return number


def _figures(counts: Counts) -> Ints:
    """Compute all figures of a unit and of its classes; its pairs by class, to be compared."""
    unit_metrics(counts)
    class_figures(counts)
    return counts.confusion[1:, 1:]


def _fused(unique: Callable[[Ints], tuple[Ints, Ints]]) -> Contender:
    """Match by counting the values of both images fused into one number per pixel."""

    def matched(reference: Labels, prediction: Labels) -> Ints:
        n = int(prediction.max()) + 1
        fused, shared = unique(reference.astype(np.int64) * n + prediction)
        return _accepted(*np.divmod(fused.astype(np.int64), n), shared)

    return matched


def _bincount(fused: Ints) -> tuple[Ints, Ints]:
    counts = np.bincount(fused.ravel())
    present = np.flatnonzero(counts)
    return present, counts[present]


def _fastremap(fused: Ints) -> tuple[Ints, Ints]:
    import fastremap

    values, counts = fastremap.unique(fused, return_counts=True)
    return values, counts


def match_skimage(reference: Labels, prediction: Labels) -> Ints:
    table = contingency_table(reference, prediction).tocoo()
    return _accepted(table.row, table.col, table.data)


def _accepted(rows: Ints, columns: Ints, shared: Ints) -> Ints:
    """Return the pairs with an IoU above 0.5 of all pairs of ids with the pixels they share."""
    areas = np.bincount(rows, shared)[rows] + np.bincount(columns, shared)[columns]
    good = (shared / (areas - shared) > 0.5) & (rows > 0) & (columns > 0)
    return _pairs(rows[good], columns[good])


def match_stardist(reference: Labels, prediction: Labels) -> Ints:
    import stardist.matching

    result = stardist.matching.matching(reference, prediction, thresh=0.5, report_matches=True)
    pairs = np.array(result.matched_pairs, np.int64).reshape(-1, 2)
    # It lists pairs below the threshold too.
    return _pairs(*pairs[np.array(result.matched_tps, np.int64)].T)


def match_traccuracy(reference: Labels, prediction: Labels) -> Ints:
    import traccuracy.matchers._compute_overlap as traccuracy_overlap

    (ids, boxes), (other_ids, other_boxes) = map(_boxes, (reference, prediction))
    named = {"gt_boxes": boxes, "res_boxes": other_boxes, "gt_labels": ids, "res_labels": other_ids}
    overlaps = traccuracy_overlap.get_labels_with_overlap(
        reference, prediction, **named, overlap="iou"
    )
    return _pairs(*np.array([(a, b) for a, b, iou in overlaps if iou > 0.5]).T)


def _boxes(labels: Labels) -> tuple[Ints, Ints]:
    found = [(k, box) for k, box in enumerate(ndimage.find_objects(labels), start=1) if box]
    corners = [(b[0].start, b[1].start, b[0].stop, b[1].stop) for _, b in found]
    return np.array([k for k, _ in found]), np.array(corners)


def _pairs(rows: Ints, columns: Ints) -> Ints:
    pairs = np.stack([rows, columns], axis=1)
    return pairs[np.argsort(rows, kind="stable")].astype(np.int64)


# --- distances ----------------------------------------------------------------------------------


def distances_here(reference: Labels, prediction: Labels, pairs: Ints) -> Floats:
    pair, table, judged, rows = _once(_judged, reference, prediction, pairs)
    found = pair_distances(pair, table, judged, rows[0], rows[1], SETTINGS.outlines)
    return np.stack([found.hausdorff_px, found.hausdorff95_px], axis=1)


def _judged(reference: Labels, prediction: Labels, pairs: Ints) -> tuple[Any, ...]:
    pair, table = counted(reference, prediction)
    sides = zip((pair.reference, pair.prediction), pairs.T, strict=True)
    rows = [np.searchsorted(side.ids, ids).astype(np.int32) for side, ids in sides]
    return pair, table, judge(table, SETTINGS), rows


def _on_crops(distance: Callable[[Mask, Mask], Any]) -> Contender:
    """Cut both objects of each pair out, with one px of what is around them, and measure each."""

    def measure(reference: Labels, prediction: Labels, pairs: Ints) -> Floats:
        boxes = ndimage.find_objects(reference), ndimage.find_objects(prediction)
        found = []
        for a, b in pairs:
            box = tuple(
                slice(max(0, min(p.start, q.start) - 1), max(p.stop, q.stop) + 1)
                for p, q in zip(boxes[0][a - 1], boxes[1][b - 1], strict=True)
            )
            found.append(distance(reference[box] == a, prediction[box] == b))
        return np.array(found)

    return measure


def _by_contours(distance: Callable[[Mask, Mask], Any]) -> Contender:
    def contour(mask: Mask) -> Mask:
        edge: Mask = mask & ~ndimage.binary_erosion(mask, border_value=1)
        return edge

    return _on_crops(lambda a, b: distance(contour(a), contour(b)))


def _cdist(a: Mask, b: Mask) -> tuple[float, float]:
    table = cdist(np.argwhere(a), np.argwhere(b))
    ways = table.min(axis=0), table.min(axis=1)
    return max(way.max() for way in ways), max(np.percentile(way, 95) for way in ways)


def _tree(a: Mask, b: Mask) -> float:
    one, other = np.argwhere(a), np.argwhere(b)
    return float(max(cKDTree(one).query(other)[0].max(), cKDTree(other).query(one)[0].max()))


def _edt(a: Mask, b: Mask) -> float:
    to_a, to_b = ndimage.distance_transform_edt(~a), ndimage.distance_transform_edt(~b)
    return float(max(to_a[b].max(), to_b[a].max()))


def _medpy(a: Mask, b: Mask) -> float:
    import medpy.metric.binary

    return float(medpy.metric.binary.hd(b, a))


# --- restoration --------------------------------------------------------------------------------


def read_colours(rgb: NDArray[np.uint8]) -> NDArray[Any]:
    """LIMIT: pack the colour of every pixel into one number."""
    return classify(rgb, np.zeros(0, np.int32), np.zeros(0, np.uint8))


def _restored_here(restoration: Restoration) -> Contender:
    def restored(rgb: NDArray[np.uint8]) -> Labels:
        # Colours become class numbers as in reading a file.
        others = (*MONUSAC_CLASSES.background, *MONUSAC_CLASSES.border)
        colours = (*others, *MONUSAC_CLASSES.colours)
        codes = np.array([r << 16 | g << 8 | b for r, g, b in colours], np.int32)
        values = np.array([0] * len(others) + list(range(1, len(CLASSES) + 1)), np.uint8)
        mask = ColourCodedMask(classify(rgb, codes, values))
        return restore(mask, MONUSAC_CLASSES, restoration, 1).index

    return restored


def _cross_maximum(labels: Labels) -> Labels:
    padded = np.pad(labels, 1)
    result = labels.copy()
    for window in (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]):
        np.maximum(result, window, out=result)
    return result


def _label_scipy(mask: Mask) -> Labels:
    return np.asarray(ndimage.label(mask, np.ones((3, 3)))[0], np.int32)


def _label_cc3d(mask: Mask) -> Labels:
    import cc3d

    return np.asarray(cc3d.connected_components(mask, connectivity=8), np.int32)


def _label_skimage(mask: Mask) -> Labels:
    return np.asarray(skimage_label(mask, connectivity=2), np.int32)


def _restorer(
    label: Callable[[Mask], Labels], grow: Callable[[Labels], Labels] = lambda labels: labels
) -> Contender:
    """Flatten the restored objects of each class, later classes over earlier ones."""

    def restored(rgb: NDArray[np.uint8]) -> Labels:
        flat = np.zeros(rgb.shape[:2], np.int32)
        code = rgb @ np.array([65536, 256, 1], np.int32)
        used = 0
        for r, g, b in MONUSAC_CLASSES.colours:
            labels = grow(label(code == (r << 16 | g << 8 | b)))
            flat = np.where(labels > 0, labels + used, flat)
            used += int(labels.max(initial=0))
        return flat

    return restored


# --- polygons -----------------------------------------------------------------------------------


def allocate(*given: NDArray[Any]) -> Labels:
    """LIMIT: allocate the image and touch it."""
    image = np.empty(tuple(given[-1]), np.int32)
    image.fill(0)
    return image


def rasterize_here(vertices: Floats, starts: Ints, shape: Ints) -> Labels:
    height, width = shape.tolist()
    polygons = _once(_polygons, vertices, starts)
    drawn = rasterize_polygons(polygons, (height, width), MONUSAC_CLASSES).held()
    # Numbered 1..n without those that later ones cover: only compared, so not worth a lookup.
    return drawn.labels.index


def _polygons(vertices: Floats, starts: Ints) -> Polygons:
    """Make the value that readers hand over."""
    n = len(starts) - 1
    rings = np.zeros(n, np.bool_), np.arange(n + 1)
    classes = np.ones(n, np.int16)
    return Polygons(vertices, starts, *rings, np.arange(1, n + 1), classes, PixelRule.VERTEX)


def _drawer(draw: Callable[[Labels, Ints, int], object]) -> Contender:
    def drawn(vertices: Floats, starts: Ints, shape: Ints) -> Labels:
        image = np.zeros(tuple(shape), np.int32)
        outlines = np.split(np.trunc(vertices).astype(np.int64), starts[1:-1])
        for k, xy in enumerate(outlines, start=1):
            draw(image, xy, k)
        return image

    return drawn


def _draw_skimage(image: Labels, xy: Ints, label: int) -> None:
    image[skimage_polygon(xy[:, 1], xy[:, 0], image.shape)] = label


def _draw_cv2(image: Labels, xy: Ints, label: int) -> None:
    import cv2

    cv2.fillPoly(image, [xy.astype(np.int32)], label)


def rasterize_pillow(vertices: Floats, starts: Ints, shape: Ints) -> Labels:
    from PIL import Image, ImageDraw

    image = Image.new("I", (int(shape[1]), int(shape[0])))
    draw = ImageDraw.Draw(image)
    outlines = np.split(np.trunc(vertices).astype(np.int64), starts[1:-1])
    for k, xy in enumerate(outlines, start=1):
        draw.polygon(xy.ravel().tolist(), fill=k, outline=k)
    return np.asarray(image, np.int32)


# --- from the overlap table to the figures ------------------------------------------------------


def figures_of_table(reference: Labels, prediction: Labels) -> Ints:
    pair, table = _once(classed, reference, prediction)
    return _figures(evaluated(pair, table, SETTINGS, KnownDistances.none()).counts)


def _matched(reference: Labels, prediction: Labels) -> tuple[Any, ...]:
    pair, table = _once(classed, reference, prediction)
    judged = judge(table, SETTINGS)
    return pair, table, judged, match(pair, table, judged, SETTINGS)


def _decided(reference: Labels, prediction: Labels) -> Any:
    matched = _once(_matched, reference, prediction)
    pair, _, judged, matches = matched
    statuses = statuses_of(pair, judged, matches)
    return outcomes(*matched, statuses, None, near_iou=SETTINGS.near_iou)


# --- a stroke -----------------------------------------------------------------------------------


class _Edited:
    """A pair under edit, and strokes on its prediction."""

    def __init__(self, reference: Labels, prediction: Labels) -> None:
        self.live = EditedPair(classed(reference, prediction)[0])
        self.live.evaluate(SETTINGS)
        labels = prediction.copy()
        # Drawn beforehand: finding out where to draw is no part of a stroke.
        self._strokes = cycle([stroke for _ in range(3) for stroke in strokes(labels)])

    def stroke(self) -> EditedPair:
        """Paint the next one; after the last they begin again."""
        y, x, ids = next(self._strokes)
        classes = {ids: CLASSES[0]} if isinstance(ids, int) else {}
        self.live.set_pixels(Side.PREDICTION, y, x, ids, classes=classes)
        return self.live


class _Recounted(_Edited):
    """The same for the other contender, which gets the same strokes."""


def stroke_figures(reference: Labels, prediction: Labels) -> Ints:
    """Return all figures of the region after a stroke."""
    edited = _once(_Edited, reference, prediction).stroke()
    return _figures(edited.evaluate(SETTINGS).counts)


def stroke_recounted(reference: Labels, prediction: Labels) -> Ints:
    """Return the same by evaluating the whole pair."""
    edited = _once(_Recounted, reference, prediction).stroke()
    return _figures(evaluate(edited.pair(), SETTINGS).counts)


CONTENDERS: dict[str, Contender] = {
    "LIMIT": read_once,
    "read colours": read_colours,
    "match": _by_rules(),
    "match checked": match_checked,
    "match centroid": _by_rules(CENTROID),
    "match both": _by_rules(CENTROID, SETTINGS),
    "evaluate": _evaluation(SETTINGS),
    "evaluate with distances": _evaluation(EvaluationSettings()),
    "NumPy unique": _fused(partial(np.unique, return_counts=True)),
    "NumPy bincount": _fused(_bincount),
    "fastremap": _fused(_fastremap),
    "scikit-image contingency_table": match_skimage,
    "traccuracy": match_traccuracy,
    "stardist.matching": match_stardist,
    "distances": distances_here,
    "SciPy cdist, both": _by_contours(_cdist),
    "SciPy distance transform": _by_contours(_edt),
    "SciPy cKDTree": _by_contours(_tree),
    "scikit-image hausdorff_distance": _by_contours(lambda a, b: float(hausdorff_distance(a, b))),
    "medpy": _on_crops(_medpy),
    "restore dilated": _restored_here(Restoration.BORDER_DILATED),
    "restore removed": _restored_here(Restoration.BORDER_REMOVED),
    "cc3d, maxima": _restorer(_label_cc3d, _cross_maximum),
    "SciPy label, maxima": _restorer(_label_scipy, _cross_maximum),
    "scikit-image label, maxima": _restorer(_label_skimage, _cross_maximum),
    "scikit-image expand_labels": _restorer(_label_skimage, partial(expand_labels, distance=1)),
    "cc3d": _restorer(_label_cc3d),
    "SciPy label": _restorer(_label_scipy),
    "scikit-image label": _restorer(_label_skimage),
    "allocate": allocate,
    "rasterize": rasterize_here,
    "skimage.draw.polygon": _drawer(_draw_skimage),
    "OpenCV fillPoly": _drawer(_draw_cv2),
    "Pillow": rasterize_pillow,
    "figures of table": figures_of_table,
    "matches of table": lambda *labels: _matched(*labels)[-1].pair,
    "outcomes of matches": lambda *labels: np.array(len(_decided(*labels).reference)),
    "figures of outcomes": lambda *labels: _figures(count(_once(_decided, *labels))),
    "stroke figures": stroke_figures,
    "stroke recounted": stroke_recounted,
}
