"""The slow, obvious evaluation that the fast one is compared with.

Written from the definitions alone, in the plainest way: one set of pixels per object, exact
fractions for every comparison, all pairs of contour pixels for every distance. It imports nothing
of the package, so the two can only agree by both being right. Meant for arrays of up to about
40 x 40 pixels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

Pixel = tuple[int, int]
PixelSet = frozenset[Pixel]
Row = dict[str, Any]
Figures = dict[str, Any]

NO_PIXELS: PixelSet = frozenset()
HALF = Fraction(1, 2)

TP, FP, FN = "TP", "FP", "FN"
MISCLASSIFIED, IGNORED = "misclassified", "ignored"


@dataclass(frozen=True)
class Thing:
    """One object: all its pixels, and those that are left of it."""

    id: int
    cls: str
    whole: PixelSet
    #: Without the ambiguous area, if the policy cuts it.
    cut: PixelSet
    #: Without the uncertain border, too; nothing if too much of the object is ambiguous.
    kept: PixelSet


@dataclass(frozen=True)
class OracleResult:
    """One row per object, and the figures counted from these rows."""

    objects: list[Row]
    class_names: list[str]
    by_class: dict[str, Figures] = field(init=False)
    unit: Figures = field(init=False)
    confusion: list[list[int]] = field(init=False)
    unique_matching: bool = True
    """False where another one-to-one assignment has the same sum of IoU (thresholds below 0.5)."""

    def __post_init__(self) -> None:
        by_class = {name: _class_figures(self.objects, name) for name in self.class_names}
        _add_classification(by_class, self.objects, self.class_names)
        object.__setattr__(self, "by_class", by_class)
        object.__setattr__(self, "unit", _unit_figures(self.objects, by_class))
        object.__setattr__(self, "confusion", _confusion(self.objects, self.class_names))


def evaluate(
    reference: np.ndarray,
    prediction: np.ndarray,
    reference_classes: dict[int, str],
    prediction_classes: dict[int, str],
    class_names: Sequence[str],
    ambiguous: np.ndarray | None = None,
    *,
    matching: str = "strict-iou",
    iou_threshold: float = 0.5,
    policy: str = "clip",
    outlines: str = "as-published",
    near_iou: float = 0.1,
    ambiguous_share: float | None = None,
    zone_px: int = 0,
    mpp: float | None = None,
) -> OracleResult:
    """Evaluate one pair of label images; undefined figures are None."""
    shape: Pixel = (int(reference.shape[0]), int(reference.shape[1]))
    ambiguous_pixels = _true_pixels(ambiguous)
    cut_references = ambiguous_pixels if policy == "clip" else NO_PIXELS
    cut_predictions = ambiguous_pixels if policy in ("clip", "clip-predictions") else NO_PIXELS
    void = ambiguous_pixels if policy == "majority" else NO_PIXELS

    usual = HALF if policy == "majority" else Fraction(1)
    limit = usual if ambiguous_share is None else _exact(ambiguous_share)
    references = _things(reference, reference_classes, cut_references, limit)
    predictions = _things(prediction, prediction_classes, cut_predictions, limit)
    zone = _zone([thing.kept for thing in references.values()], zone_px, shape)
    references, predictions = (
        {i: replace(thing, kept=thing.kept - zone) for i, thing in things.items()}
        for things in (references, predictions)
    )
    ious = _ious(references, predictions, void)

    unique = True
    if matching == "centroid":
        matches = _match_by_centroid(references, predictions, ious)
    elif iou_threshold >= 0.5:
        matches = _match_strictly(ious, _exact(iou_threshold))
    else:
        matches, unique = _match_by_assignment(ious, _exact(iou_threshold))
    matched_by = {p: r for r, p in matches.items()}

    ignored_references = _ignored(references, set(matches), policy, void, limit)
    ignored_predictions = _ignored(predictions, set(matched_by), policy, void, limit)
    causes = _Causes(
        {i: thing for i, thing in references.items() if i not in ignored_references},
        {i: thing for i, thing in predictions.items() if i not in ignored_predictions},
        ious,
        matches,
        ambiguous_pixels,
        _exact(near_iou),
    )

    rows: list[Row] = []
    for r, thing in references.items():
        row = _object_row("reference", thing)
        if r in ignored_references:
            row.update(status=IGNORED)
        elif r in matches:
            partner = predictions[matches[r]]
            row.update(_matched_cells(thing, partner, ious[r, partner.id]))
            row.update(_distance_cells(thing, partner, shape, outlines, mpp))
        else:
            best = max((iou for (a, _), iou in ious.items() if a == r), default=Fraction(0))
            row.update(status=FN, cause=causes.of_reference(r), iou=float(best))
        rows.append(row)
    for p, thing in predictions.items():
        row = _object_row("prediction", thing)
        if p in ignored_predictions:
            row.update(status=IGNORED)
        elif p in matched_by:
            partner = references[matched_by[p]]
            row.update(_matched_cells(thing, partner, ious[partner.id, p]))
            row.update(_distance_cells(partner, thing, shape, outlines, mpp))
        else:
            best = max((iou for (_, b), iou in ious.items() if b == p), default=Fraction(0))
            row.update(status=FP, cause=causes.of_prediction(p), iou=float(best))
        rows.append(row)
    return OracleResult(rows, list(class_names), unique_matching=unique)


def aggregate(results: Iterable[OracleResult]) -> OracleResult:
    """Figures of several regions taken as one unit: the objects of all of them are counted."""
    results = list(results)
    return OracleResult(
        [row for result in results for row in result.objects],
        results[0].class_names,
        unique_matching=all(result.unique_matching for result in results),
    )


# --- objects and their overlaps ---------------------------------------------------------------


def _exact(number: float) -> Fraction:
    """Return the decimal number that was meant: 0.1 is one tenth, not the double beside it."""
    return Fraction(str(number))


def _true_pixels(mask: np.ndarray | None) -> PixelSet:
    if mask is None:
        return NO_PIXELS
    return frozenset(
        (y, x) for y, line in enumerate(mask.tolist()) for x, inside in enumerate(line) if inside
    )


def _things(
    labels: np.ndarray, classes: dict[int, str], cut: PixelSet, limit: Fraction
) -> dict[int, Thing]:
    """Collect the objects of a label image, by ascending id."""
    pixels: dict[int, set[Pixel]] = {}
    for y, line in enumerate(labels.tolist()):
        for x, label in enumerate(line):
            if label != 0:
                pixels.setdefault(label, set()).add((y, x))
    things = {}
    for label, whole in sorted(pixels.items()):
        left = frozenset(whole - cut)
        is_ambiguous = _share(cut, of=frozenset(whole)) > limit
        kept = NO_PIXELS if is_ambiguous else left
        things[label] = Thing(label, classes[label], frozenset(whole), left, kept)
    return things


def _zone(objects: list[PixelSet], reach: int, shape: Pixel) -> PixelSet:
    """Collect the pixels from which one at most `reach` away lies across an object's edge."""
    height, width = shape
    near = [
        (dy, dx)
        for dy in range(-reach, reach + 1)
        for dx in range(-reach, reach + 1)
        if dy * dy + dx * dx <= reach * reach
    ]
    return frozenset(
        (y, x)
        for y in range(height)
        for x in range(width)
        for dy, dx in near
        if 0 <= y + dy < height and 0 <= x + dx < width
        for pixels in objects
        if ((y, x) in pixels) != ((y + dy, x + dx) in pixels)
    )


def _ious(
    references: dict[int, Thing], predictions: dict[int, Thing], void: PixelSet
) -> dict[tuple[int, int], Fraction]:
    """Measure the IoU of every pair that shares a pixel outside the void; all others have 0."""
    ious = {}
    for r, reference in references.items():
        for p, prediction in predictions.items():
            shared = (reference.kept & prediction.kept) - void
            if shared:
                union = (reference.kept | prediction.kept) - void
                ious[r, p] = Fraction(len(shared), len(union))
    return ious


def _share(part: PixelSet, of: PixelSet) -> Fraction:
    """Return which part of the pixels `of` lies in `part`."""
    return Fraction(len(part & of), len(of))


# --- matching: reference id -> prediction id --------------------------------------------------


def _match_strictly(ious: dict[tuple[int, int], Fraction], threshold: Fraction) -> dict[int, int]:
    """Match all pairs above a threshold of at least one half: nobody can have two partners."""
    return {r: p for (r, p), iou in ious.items() if iou > threshold}


def _match_by_assignment(
    ious: dict[tuple[int, int], Fraction], threshold: Fraction
) -> tuple[dict[int, int], bool]:
    """Find the one-to-one matching with the greatest sum of IoU, and whether it is the only one."""
    candidates = {pair: iou for pair, iou in ious.items() if iou > threshold}
    best = _assignment(candidates)
    total = sum(candidates[pair] for pair in best)
    unique = True
    # Any other optimum lacks at least one of these pairs: forbid each in turn.
    for pair in best:
        others = {other: iou for other, iou in candidates.items() if other != pair}
        if sum(others[other] for other in _assignment(others)) == total:
            unique = False
    return dict(best), unique


def _assignment(weights: dict[tuple[int, int], Fraction]) -> list[tuple[int, int]]:
    rows = sorted({r for r, _ in weights})
    columns = sorted({p for _, p in weights})
    dense = np.zeros((len(rows), len(columns)))
    for (r, p), weight in weights.items():
        dense[rows.index(r), columns.index(p)] = float(weight)
    chosen = zip(*linear_sum_assignment(dense, maximize=True), strict=True)
    pairs = [(rows[i], columns[j]) for i, j in chosen]
    return [pair for pair in pairs if pair in weights]


def _match_by_centroid(
    references: dict[int, Thing],
    predictions: dict[int, Thing],
    ious: dict[tuple[int, int], Fraction],
) -> dict[int, int]:
    """Match the best touching prediction if its rounded centroid lies in the reference object."""
    matches = {}
    for r, reference in references.items():
        touching = [p for (a, p) in ious if a == r]
        if not touching:
            continue
        best = min(touching, key=lambda p: (-ious[r, p], p))
        y, x = _centroid(predictions[best].kept)
        # round() of a Fraction goes half to even.
        if (round(y), round(x)) in reference.kept:
            matches[r] = best
    return matches


def _centroid(pixels: PixelSet) -> tuple[Fraction, Fraction]:
    return (
        Fraction(sum(y for y, _ in pixels), len(pixels)),
        Fraction(sum(x for _, x in pixels), len(pixels)),
    )


def _ignored(
    things: dict[int, Thing], matched: set[int], policy: str, void: PixelSet, limit: Fraction
) -> set[int]:
    gone = {i for i, t in things.items() if not t.kept}
    if policy == "majority":
        mostly = {i for i, t in things.items() if _share(void, of=t.whole) > limit}
        return gone | (mostly - matched)
    return gone


# --- causes -----------------------------------------------------------------------------------

_EITHER_CAUSES = ("ambiguous-spill", "too-small", "too-large", "displaced")
CAUSES = {
    FN: {*_EITHER_CAUSES, "split", "merged", "missed"},
    FP: {*_EITHER_CAUSES, "fragment", "merger", "duplicate", "spurious"},
}


@dataclass(frozen=True)
class _Causes:
    """Why objects are unmatched; `references` and `predictions` are those not ignored."""

    references: dict[int, Thing]
    predictions: dict[int, Thing]
    ious: dict[tuple[int, int], Fraction]
    matches: dict[int, int]
    ambiguous: PixelSet
    near_iou: Fraction

    def of_reference(self, r: int) -> str:
        thing = self.references[r]
        if _share(self.ambiguous, of=thing.whole) > HALF:
            return "ambiguous-spill"

        inside = [p.kept for p in self.predictions.values() if _share(thing.kept, of=p.kept) > HALF]
        covered = sum((_share(piece, of=thing.kept) for piece in inside), Fraction(0))
        if len(inside) >= 2 and covered > HALF:
            return "split"

        for p in self.predictions.values():
            swallowed = [
                other for other, t in self.references.items() if _share(p.kept, of=t.kept) > HALF
            ]
            if r in swallowed and len(swallowed) >= 2:
                return "merged"

        unmatched = [p for p in self.predictions if p not in self.matches.values()]
        near = [
            (self.ious[r, p], self.predictions[p].kept) for p in unmatched if (r, p) in self.ious
        ]
        best = self._best_near(thing.kept, near)
        return "missed" if best is None else _fit(prediction=best, reference=thing.kept)

    def of_prediction(self, p: int) -> str:
        thing = self.predictions[p]
        if _share(self.ambiguous, of=thing.whole) > HALF:
            return "ambiguous-spill"

        homes = [r for r, t in self.references.items() if _share(t.kept, of=thing.kept) > HALF]
        for r in homes:
            if r not in self.matches and self.of_reference(r) == "split":
                return "fragment"

        swallowed = [r for r, t in self.references.items() if _share(thing.kept, of=t.kept) > HALF]
        if len(swallowed) >= 2:
            return "merger"

        if any(r in self.matches for r in homes):
            return "duplicate"

        unmatched = [r for r in self.references if r not in self.matches]
        near = [
            (self.ious[r, p], self.references[r].kept) for r in unmatched if (r, p) in self.ious
        ]
        best = self._best_near(thing.kept, near)
        return "spurious" if best is None else _fit(prediction=thing.kept, reference=best)

    def _best_near(self, own: PixelSet, near: list[tuple[Fraction, PixelSet]]) -> PixelSet | None:
        """Pick the highest IoU, then the larger shared part, then the smaller object."""
        ranked = [
            (iou, len(other & own), -len(other), other)
            for iou, other in near
            if iou >= self.near_iou
        ]
        if not ranked:
            return None
        return max(ranked, key=lambda entry: entry[:3])[3]


def _fit(*, prediction: PixelSet, reference: PixelSet) -> str:
    """Say how a prediction that lies near an object fails to fit it."""
    prediction_inside = _share(reference, of=prediction)
    reference_inside = _share(prediction, of=reference)
    if prediction_inside > HALF and reference_inside <= HALF:
        return "too-small"
    if reference_inside > HALF and prediction_inside <= HALF:
        return "too-large"
    return "displaced"


# --- distances --------------------------------------------------------------------------------


def _contour(pixels: PixelSet, shape: Pixel) -> list[Pixel]:
    """List the pixels with a 4-neighbour that is in the image and not in the object."""
    height, width = shape
    contour = []
    for y, x in sorted(pixels):
        neighbours = [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
        if any(0 <= v < height and 0 <= u < width and (v, u) not in pixels for v, u in neighbours):
            contour.append((y, x))
    return contour


def _nearest(from_contour: list[Pixel], to_contour: list[Pixel]) -> list[float]:
    """Measure how far each pixel of one contour is from the other contour."""
    return [
        math.sqrt(min((y - v) ** 2 + (x - u) ** 2 for v, u in to_contour)) for y, x in from_contour
    ]


def _distance_cells(
    reference: Thing, prediction: Thing, shape: Pixel, outlines: str, mpp: float | None
) -> Row:
    """Compare the outlines of a matched pair; the cells stay empty where one has no contour."""
    reference_outline = reference.whole if outlines == "both-whole" else reference.cut
    prediction_outline = prediction.cut if outlines == "both-clipped" else prediction.whole
    a = _contour(reference_outline, shape)
    b = _contour(prediction_outline, shape)
    if not a or not b:
        return {}
    there, back = _nearest(a, b), _nearest(b, a)
    hausdorff = max(there + back)
    return {
        "hausdorff_px": hausdorff,
        "hausdorff_um": None if mpp is None else hausdorff * mpp,
        "hausdorff95_px": float(max(np.percentile(there, 95), np.percentile(back, 95))),
    }


# --- rows -------------------------------------------------------------------------------------


def _object_row(side: str, thing: Thing) -> Row:
    pixels = thing.kept or thing.whole
    y, x = _centroid(pixels)
    return {
        "side": side,
        "id": thing.id,
        "class": thing.cls,
        "status": "",
        "cause": "",
        "partner_id": None,
        "partner_class": None,
        "iou": None,
        "hausdorff_px": None,
        "hausdorff_um": None,
        "hausdorff95_px": None,
        "area_px": len(pixels),
        "centroid_y_px": float(y),
        "centroid_x_px": float(x),
        "score": None,
    }


def _matched_cells(thing: Thing, partner: Thing, iou: Fraction) -> Row:
    return {
        "status": TP if thing.cls == partner.cls else MISCLASSIFIED,
        "partner_id": partner.id,
        "partner_class": partner.cls,
        "iou": float(iou),
    }


# --- figures, counted from the rows -----------------------------------------------------------


def _pick(rows: list[Row], side: str, *statuses: str) -> list[Row]:
    return [row for row in rows if row["side"] == side and row["status"] in statuses]


def _of_class(rows: list[Row], name: str) -> list[Row]:
    return [row for row in rows if row["class"] == name]


def _mean(values: Iterable[float | None]) -> float | None:
    """Mean of the defined values; undefined without any."""
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None


def _ratio(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None


def _class_figures(rows: list[Row], name: str) -> Figures:
    matched = _of_class(_pick(rows, "reference", TP, MISCLASSIFIED), name)
    true_positives = [row for row in matched if row["status"] == TP]
    tp = len(true_positives)
    fp = len(_of_class(_pick(rows, "prediction", FP, MISCLASSIFIED), name))
    fn = len(_of_class(_pick(rows, "reference", FN, MISCLASSIFIED), name))
    iou_sum = math.fsum(row["iou"] for row in true_positives)
    return {
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "iou_sum": iou_sum,
        "pq": _ratio(iou_sum, tp + fp / 2 + fn / 2),
        "sq": _ratio(iou_sum, tp),
        "dq": _ratio(tp, tp + fp / 2 + fn / 2),
        "mean_iou": _mean(row["iou"] for row in matched),
        "mean_hausdorff_px": _mean(row["hausdorff_px"] for row in matched),
        "mean_hausdorff95_px": _mean(row["hausdorff95_px"] for row in matched),
    }


def _add_classification(by_class: dict[str, Figures], rows: list[Row], names: list[str]) -> None:
    """Add precision, recall and F1 on the row-normalised matrix of the matched pairs."""
    counts = {a: dict.fromkeys(names, 0) for a in names}
    for row in _pick(rows, "reference", TP, MISCLASSIFIED):
        counts[row["class"]][row["partner_class"]] += 1
    ncm = {a: dict.fromkeys(names, Fraction(0)) for a in names}
    for a in names:
        row_count = sum(counts[a].values())
        for b in names:
            if row_count:
                ncm[a][b] = Fraction(counts[a][b], row_count)
    for name in names:
        hit = ncm[name][name]
        row_sum = sum(ncm[name].values())
        column_sum = sum(ncm[a][name] for a in names)
        by_class[name].update(
            recall=float(hit / row_sum) if row_sum else None,
            precision=float(hit / column_sum) if column_sum else None,
            f1=float(2 * hit / (row_sum + column_sum)) if row_sum + column_sum else None,
        )


def _unit_figures(rows: list[Row], by_class: dict[str, Figures]) -> Figures:
    classes = by_class.values()
    matched = _pick(rows, "reference", TP, MISCLASSIFIED)
    tp = len(matched)
    fp = len(_pick(rows, "prediction", FP))
    fn = len(_pick(rows, "reference", FN))
    return {
        "pq": _mean(figures["pq"] for figures in classes),
        "sq": _mean(figures["sq"] for figures in classes),
        "dq": _mean(figures["dq"] for figures in classes),
        "detection_precision": _ratio(tp, tp + fp),
        "detection_recall": _ratio(tp, tp + fn),
        "detection_f1": _ratio(2 * tp, 2 * tp + fp + fn),
        "detection_accuracy": _ratio(tp, tp + fp + fn),
        "balanced_accuracy": _mean(figures["recall"] for figures in classes),
        "mean_iou": _mean(figures["mean_iou"] for figures in classes),
        "mean_hausdorff_px": _mean(row["hausdorff_px"] for row in matched),
    }


def _confusion(rows: list[Row], names: list[str]) -> list[list[int]]:
    """Count reference (rows) against prediction (columns) classes; index 0 is nobody."""
    index = {name: position for position, name in enumerate(names, start=1)}
    matrix = [[0] * (len(names) + 1) for _ in range(len(names) + 1)]
    for row in _pick(rows, "reference", TP, MISCLASSIFIED):
        matrix[index[row["class"]]][index[row["partner_class"]]] += 1
    for row in _pick(rows, "reference", FN):
        matrix[index[row["class"]]][0] += 1
    for row in _pick(rows, "prediction", FP):
        matrix[0][index[row["class"]]] += 1
    return matrix
