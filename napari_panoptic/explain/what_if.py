"""Compute the metrics that would result from other outcomes of some objects.

Counts are sums over objects. If the outcomes of a few objects change, their old contribution is
subtracted and their new one is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.metrics import Counts, class_quality, class_sums
from napari_panoptic.nuclei.outcomes import Outcomes, SideOutcomes
from napari_panoptic.statistics.means import means_defined
from napari_panoptic.values.vocabulary import STATUS_CODE, Status

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def without_annotation_errors(
    evaluation: Evaluation,
    *,
    reference_rows: Sequence[int] | IntArray = (),
    prediction_rows: Sequence[int] | IntArray = (),
) -> Counts:
    """Count as if the reference followed the verdicts "prediction right".

    ==============================  =========================================
    object with the verdict          its new outcome
    ==============================  =========================================
    FN                               the reference object is dropped
    misclassified (either side)      the reference class becomes the predicted
                                     class: the pair is a TP with the IoU that
                                     it has
    FP                               a nucleus that the annotation lacks: a TP
                                     whose reference is the prediction itself
                                     (IoU 1)
    TP, ignored                      unchanged: there is no outcome to correct
    ==============================  =========================================

    A verdict applies to one object: the fragments of a dropped reference object remain FPs unless
    they have the verdict too. Other objects are not matched again. SQ, PQ and the mean IoU are
    upper bounds if a nucleus is added, because there is no outline with which the prediction could
    be compared.

    Parameters
    ----------
    evaluation
        What was evaluated; not changed.
    reference_rows, prediction_rows
        Rows of the objects of each side that have the verdict. Repeated rows count once, and so
        does a pair in which both objects have it.

    Returns
    -------
    Counts
        The mean Hausdorff distance is over the pairs that were measured already; predictions that
        become their own reference do not change it.

    Raises
    ------
    LabelError
        For a row without an object.
    """
    reference, prediction = evaluation.outcomes.reference, evaluation.outcomes.prediction
    wrong, right = _marked(reference, reference_rows), _marked(prediction, prediction_rows)
    dropped = wrong & (reference.status == STATUS_CODE[Status.FN])
    lacking = right & (prediction.status == STATUS_CODE[Status.FP])
    renamed = np.flatnonzero(reference.status == STATUS_CODE[Status.MISCLASSIFIED])
    renamed = renamed[wrong[renamed] | right[reference.partner[renamed]]]
    return _corrected(evaluation, dropped, renamed, lacking)


def _marked(side: SideOutcomes, rows: Sequence[int] | IntArray) -> BoolArray:
    chosen = np.asarray(rows, np.int64)
    if len(chosen) and (chosen.min() < 0 or chosen.max() >= len(side)):
        there = f"rows between 0 and {len(side) - 1}" if len(side) else "no objects"
        raise LabelError(
            f"expected verdicts on {there} of the {side.side}, found rows {chosen.min()} to "
            f"{chosen.max()}; check that they belong to this evaluation"
        )
    marked = np.zeros(len(side), bool)
    marked[chosen] = True
    return marked


def _corrected(
    evaluation: Evaluation,
    dropped: BoolArray,
    renamed: IntArray,
    lacking: BoolArray,
) -> Counts:
    """Move each object with the verdict to the cell of the confusion matrix that it belongs to."""
    reference, prediction = evaluation.outcomes.reference, evaluation.outcomes.prediction
    old = reference.class_index[renamed]
    new = prediction.class_index[reference.partner[renamed]]
    is_measured = ~np.isnan(reference.hausdorff_px[renamed])
    # Sums over pairs are by the class of the reference object, which has changed.
    moved = {
        "matched_iou_sum": reference.iou[renamed],
        "hausdorff_pairs": is_measured.astype(np.int64),
        "hausdorff_sum_px": np.where(is_measured, reference.hausdorff_px[renamed], 0.0),
        "hausdorff95_sum_px": np.where(is_measured, reference.hausdorff95_px[renamed], 0.0),
    }
    names = ("confusion", "iou_sum", *moved)
    counts = {name: getattr(evaluation.counts, name).copy() for name in names}
    confusion = counts.pop("confusion")

    np.subtract.at(confusion[:, 0], reference.class_index[dropped], 1)
    added = prediction.class_index[lacking]
    np.subtract.at(confusion[0], added, 1)
    np.add.at(confusion, (added, added), 1)
    np.add.at(counts["iou_sum"], added - 1, 1.0)
    np.add.at(counts["matched_iou_sum"], added - 1, 1.0)

    np.subtract.at(confusion, (old, new), 1)
    np.add.at(confusion, (new, new), 1)
    np.add.at(counts["iou_sum"], new - 1, reference.iou[renamed])
    for name, values in moved.items():
        np.subtract.at(counts[name], old - 1, values)
        np.add.at(counts[name], new - 1, values)
    return replace(_with_confusion(evaluation.counts, confusion), **counts)


def _with_confusion(counts: Counts, confusion: IntArray) -> Counts:
    """Replace a region's confusion matrix and the counts derived from it."""
    tp, fp, fn = class_sums(confusion)
    present = ((tp + fp + fn) > 0).astype(np.int64)
    return replace(counts, confusion=confusion, tp=tp, fp=fp, fn=fn, present=present)


@dataclass(frozen=True, eq=False)
class Tally:
    """The contributions of k sets of objects to the counts of their region.

    Tallies of the same number of sets can be added and subtracted. A tally of one set can be
    combined with a tally of any number of sets.
    """

    #: int64 (k, C + 1, C + 1): rows reference, columns prediction, index 0 none.
    confusion: IntArray
    #: float64 (k, C): summed IoU of the TPs of a class.
    iou_sum: FloatArray
    #: float64 (k, C): summed IoU of all matched pairs, by reference class.
    matched_iou_sum: FloatArray
    #: int64 (k,): objects that the ambiguous policy excludes.
    ignored_reference: IntArray
    ignored_prediction: IntArray

    def __add__(self, other: Tally) -> Tally:
        """Add the contributions, set by set."""
        return Tally(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: Tally) -> Tally:
        """Subtract contributions, set by set."""
        return Tally(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))

    def pq(self) -> FloatArray:
        """Compute the mean PQ over the classes present, for each set (k,); NaN if there is none."""
        quality = class_quality(*class_sums(self.confusion), self.iou_sum)
        return means_defined(quality.pq, axis=-1)

    def counts(self, class_names: tuple[str, ...]) -> Counts:
        """Return the first set's contribution as counts, without distances."""
        return replace(
            _with_confusion(Counts.zero(class_names), self.confusion[0]),
            iou_sum=self.iou_sum[0],
            matched_iou_sum=self.matched_iou_sum[0],
            ignored_reference=int(self.ignored_reference[0]),
            ignored_prediction=int(self.ignored_prediction[0]),
        )


def tally_all(outcomes: Outcomes) -> Tally:
    """Tally all objects as one set."""
    return tally(
        outcomes,
        np.zeros(len(outcomes.reference), np.int64),
        np.zeros(len(outcomes.prediction), np.int64),
        1,
    )


def tally(
    outcomes: Outcomes, reference_set: IntArray, prediction_set: IntArray, n_sets: int
) -> Tally:
    """Tally several sets of objects at once.

    Parameters
    ----------
    outcomes
        The outcomes of all objects.
    reference_set, prediction_set
        int64 (n,): the set (from 0) of each object, -1 for none. A matched
        pair counts in the set of its reference object.
    n_sets
        Number of sets k.
    """
    n = len(outcomes.class_names) + 1
    reference, prediction = outcomes.reference, outcomes.prediction
    fn = reference.status == STATUS_CODE[Status.FN]
    fp = prediction.status == STATUS_CODE[Status.FP]
    rows = np.flatnonzero((reference.partner != NO_PARTNER) & (reference_set >= 0))
    sets = reference_set[rows]
    old = reference.class_index[rows].astype(np.int64)
    new = prediction.class_index[reference.partner[rows]].astype(np.int64)
    none_of_p, none_of_r = np.zeros(len(prediction), np.int64), np.zeros(len(reference), np.int64)
    cells = [
        _cells(sets, old, new, n),
        _cells(reference_set, reference.class_index, none_of_r, n)[fn & (reference_set >= 0)],
        _cells(prediction_set, none_of_p, prediction.class_index, n)[fp & (prediction_set >= 0)],
    ]
    confusion = np.bincount(np.concatenate(cells), minlength=n_sets * n * n)
    return Tally(
        confusion=confusion.reshape(n_sets, n, n),
        iou_sum=_sums(sets, old, np.where(old == new, reference.iou[rows], 0.0), n_sets, n),
        matched_iou_sum=_sums(sets, old, reference.iou[rows], n_sets, n),
        ignored_reference=_ignored(reference, reference_set, n_sets),
        ignored_prediction=_ignored(prediction, prediction_set, n_sets),
    )


def _cells(
    sets: IntArray, rows: NDArray[np.integer], columns: NDArray[np.integer], n: int
) -> IntArray:
    return (sets * n + rows.astype(np.int64)) * n + columns.astype(np.int64)


def _sums(
    sets: IntArray, class_index: IntArray, values: FloatArray, n_sets: int, n: int
) -> FloatArray:
    sums = np.bincount(sets * n + class_index, weights=values, minlength=n_sets * n)
    return sums.astype(np.float64).reshape(n_sets, n)[:, 1:]


def _ignored(side: SideOutcomes, sets: IntArray, n_sets: int) -> IntArray:
    chosen = (side.status == STATUS_CODE[Status.IGNORED]) & (sets >= 0)
    return np.bincount(sets[chosen], minlength=n_sets)
