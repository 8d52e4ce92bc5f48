"""From outcomes to counts, and from counts to figures.

Counts are sums over objects and can be added over regions; figures are
quotients of counts. Undefined figures are NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.nuclei.values.vocabulary import STATUS_CODE, Status

FloatArray = NDArray[np.float64]
_FN, _FP = STATUS_CODE[Status.FN], STATUS_CODE[Status.FP]
_IGNORED = STATUS_CODE[Status.IGNORED]

CLASS_COLUMNS = (
    "class",
    "tp",
    "fp",
    "fn",
    "iou_sum",
    "pq",
    "sq",
    "dq",
    "precision",
    "recall",
    "f1",
    "mean_iou",
    "mean_hausdorff_px",
    "mean_hausdorff95_px",
)


@dataclass(frozen=True, eq=False)
class Counts:
    """Sums over the objects of a region, patient or team.

    Parameters
    ----------
    class_names
        The C scored classes, in order.
    tp, fp, fn
        int64 (C,): per class, as panoptic quality counts them: a misclassified
        pair is an FP of the predicted class and an FN of the reference class.
    iou_sum
        float64 (C,): summed IoU of the TPs of a class.
    confusion
        int64 (C + 1, C + 1): rows reference, columns prediction, index 0 none.
    matched_iou_sum
        float64 (C,): summed IoU of all matched pairs, by reference class.
    hausdorff_sum_px, hausdorff_pairs
        float64 and int64 (C,): summed Hausdorff distance, and the number of
        pairs for which it is defined, by reference class.
    hausdorff95_sum_px
        float64 (C,): the same for its 95th percentile, over the same pairs.
    present
        int64 (C,): regions that count the class. A class counts where
        tp + fp + fn > 0; a scoring may also count one that has nothing left,
        whose PQ and DQ are then 0.
    ignored_reference, ignored_prediction
        Objects that the ambiguous policy excludes.
    """

    class_names: tuple[str, ...]
    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    fn: NDArray[np.int64]
    iou_sum: FloatArray
    confusion: NDArray[np.int64]
    matched_iou_sum: FloatArray
    hausdorff_sum_px: FloatArray
    hausdorff_pairs: NDArray[np.int64]
    hausdorff95_sum_px: FloatArray
    present: NDArray[np.int64]
    ignored_reference: int = 0
    ignored_prediction: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Sum the counts of two units of the same classes."""
        if self.class_names != other.class_names:
            raise ValueError(f"classes differ: {self.class_names} and {other.class_names}")
        sums = {
            f.name: getattr(self, f.name) + getattr(other, f.name)
            for f in fields(self)
            if f.name != "class_names"
        }
        return Counts(class_names=self.class_names, **sums)

    @classmethod
    def zero(cls, class_names: tuple[str, ...]) -> Counts:
        """Make the counts of a unit without objects."""
        n = len(class_names)
        return cls(
            class_names=class_names,
            tp=np.zeros(n, np.int64),
            fp=np.zeros(n, np.int64),
            fn=np.zeros(n, np.int64),
            iou_sum=np.zeros(n),
            confusion=np.zeros((n + 1, n + 1), np.int64),
            matched_iou_sum=np.zeros(n),
            hausdorff_sum_px=np.zeros(n),
            hausdorff_pairs=np.zeros(n, np.int64),
            hausdorff95_sum_px=np.zeros(n),
            present=np.zeros(n, np.int64),
        )


@dataclass(frozen=True)
class Metrics(Mapping[str, float]):
    """The figures of a unit (region, patient, or pooled); NaN where undefined.

    Can be read as attributes or as a mapping.

    Parameters
    ----------
    pq, sq, dq
        Panoptic, segmentation and detection quality (Kirillov et al., CVPR
        2019): PQ and DQ averaged over the classes present in reference or
        prediction, SQ over the classes with a TP.
    detection_precision, detection_recall, detection_f1, detection_accuracy
        Class-blind; accuracy is TP / (TP + FP + FN).
    balanced_accuracy
        Mean recall over the classes with a matched reference object.
    mean_iou
        Mean IoU of matched pairs per reference class, averaged over the
        classes with a matched pair.
    mean_hausdorff_px
        Mean Hausdorff distance over all matched pairs, in px.
    """

    pq: float
    sq: float
    dq: float
    detection_precision: float
    detection_recall: float
    detection_f1: float
    detection_accuracy: float
    balanced_accuracy: float
    mean_iou: float
    mean_hausdorff_px: float

    def __getitem__(self, name: str) -> float:
        """Return the figure of a name."""
        if name not in METRIC_NAMES:
            raise KeyError(name)
        return float(getattr(self, name))

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(METRIC_NAMES)

    def __len__(self) -> int:
        """Count the figures."""
        return len(METRIC_NAMES)


METRIC_NAMES: tuple[str, ...] = tuple(f.name for f in fields(Metrics))


def count(outcomes: Outcomes) -> Counts:
    """Count the outcomes of one label pair.

    Parameters
    ----------
    outcomes
        What became of every object.
    """
    reference, prediction = outcomes.reference, outcomes.prediction
    confusion, numbers, sums, ignored = _counted(
        (reference.status, reference.class_index, reference.partner),
        (prediction.status, prediction.class_index),
        (reference.iou, reference.hausdorff_px, reference.hausdorff95_px),
        len(outcomes.class_names),
    )
    tp, fp, fn, present, hausdorff_pairs = numbers
    iou_sum, matched_iou_sum, hausdorff_sum, hausdorff95_sum = sums
    return Counts(
        class_names=outcomes.class_names,
        tp=tp,
        fp=fp,
        fn=fn,
        iou_sum=iou_sum,
        confusion=confusion,
        matched_iou_sum=matched_iou_sum,
        hausdorff_sum_px=hausdorff_sum,
        hausdorff_pairs=hausdorff_pairs,
        hausdorff95_sum_px=hausdorff95_sum,
        present=present,
        ignored_reference=ignored[0],
        ignored_prediction=ignored[1],
    )


# Classes and partners are unsigned below: a kernel asks of signed ones whether they count
# from the end.


@compiled
def _counted(
    references: tuple[NDArray[np.int8], NDArray[np.int16], NDArray[np.int32]],
    predictions: tuple[NDArray[np.int8], NDArray[np.int16]],
    figures: tuple[FloatArray, FloatArray, FloatArray],
    n: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray, tuple[int, int]]:
    """Count the confusions and sum the figures of matched pairs by reference class.

    Returns
    -------
    confusion
        int64 (n + 1, n + 1).
    numbers
        int64 (5, n): TPs, FPs, FNs, whether the class counts, and the pairs whose
        Hausdorff distance is defined.
    sums
        float64 (4, n): IoU of the TPs, IoU of all pairs, Hausdorff distance,
        its 95th percentile.
    ignored
        The numbers of ignored reference objects and predictions.
    """
    reference_status, reference_class, partner = references
    prediction_status, prediction_class = predictions
    iou, hausdorff, hausdorff95 = figures
    confusion = np.zeros((n + 1, n + 1), np.int64)
    sums, measured = np.zeros((n + 1, 4)), np.zeros(n + 1, np.int64)
    ignored_reference = ignored_prediction = 0
    for row in range(len(partner)):
        own = np.uint16(reference_class[row])
        if partner[row] == NO_PARTNER:
            confusion[own, 0] += reference_status[row] == _FN
            ignored_reference += reference_status[row] == _IGNORED
            continue
        other = np.uint16(prediction_class[np.uint32(partner[row])])
        confusion[own, other] += 1
        sums[own, 0] += iou[row] if own == other else 0.0
        sums[own, 1] += iou[row]
        if not np.isnan(hausdorff[row]):
            sums[own, 2] += hausdorff[row]
            sums[own, 3] += hausdorff95[row]
            measured[own] += 1
    for row in range(len(prediction_status)):
        confusion[0, np.uint16(prediction_class[row])] += prediction_status[row] == _FP
        ignored_prediction += prediction_status[row] == _IGNORED
    numbers = np.empty((5, n), np.int64)
    for c in range(n):
        tp = confusion[c + 1, c + 1]
        fp, fn = confusion[:, c + 1].sum() - tp, confusion[c + 1].sum() - tp
        numbers[0, c], numbers[1, c], numbers[2, c] = tp, fp, fn
        numbers[3, c], numbers[4, c] = tp + fp + fn > 0, measured[c + 1]
    return confusion, numbers, sums[1:].T.copy(), (ignored_reference, ignored_prediction)


def unit_metrics(counts: Counts) -> Metrics:
    """Compute the figures of a unit from its counts."""
    figures = _figures_by_class(counts)
    true, spurious, missed = detection_counts(counts)
    return Metrics(
        pq=_mean_defined(figures["pq"]),
        sq=_mean_defined(figures["sq"]),
        dq=_mean_defined(figures["dq"]),
        detection_precision=_ratio(true, true + spurious),
        detection_recall=_ratio(true, true + missed),
        detection_f1=_ratio(2 * true, 2 * true + spurious + missed),
        detection_accuracy=_ratio(true, true + spurious + missed),
        balanced_accuracy=_mean_defined(figures["recall"]),
        mean_iou=_mean_defined(figures["mean_iou"]),
        mean_hausdorff_px=_ratio(counts.hausdorff_sum_px.sum(), counts.hausdorff_pairs.sum()),
    )


def class_metrics(counts: Counts) -> pd.DataFrame:
    """Compute the figures of each class; one row per class, columns ``CLASS_COLUMNS``.

    precision, recall and f1 are those of the classification of matched pairs,
    on the row-normalised confusion matrix.
    """
    columns = {"class": list(counts.class_names), **class_figures(counts)}
    return pd.DataFrame(columns, columns=list(CLASS_COLUMNS))


def class_figures(counts: Counts) -> dict[str, NDArray[np.int64] | FloatArray]:
    """Compute the same without the names: the columns but ``class``, each (C,)."""
    return {
        "tp": counts.tp,
        "fp": counts.fp,
        "fn": counts.fn,
        "iou_sum": counts.iou_sum,
        **_figures_by_class(counts),
    }


def class_quality(counts: Counts) -> dict[str, FloatArray]:
    """Compute PQ, SQ and DQ per class (C,), NaN where undefined.

    PQ = sum of IoU / (TP + FP/2 + FN/2), SQ = sum of IoU / TP and
    DQ = TP / (TP + FP/2 + FN/2) (Kirillov et al., CVPR 2019).
    """
    figures = _figures_by_class(counts)
    return {name: figures[name] for name in ("pq", "sq", "dq")}


def _figures_by_class(counts: Counts) -> dict[str, FloatArray]:
    """Compute what is a quotient, each (C,)."""
    # As floats of one array, which hold all counts exactly: of another kind of array
    # another kernel would be compiled.
    per_class = np.array(
        [
            counts.tp,
            counts.fp,
            counts.fn,
            counts.present,
            counts.iou_sum,
            counts.matched_iou_sum,
            counts.hausdorff_sum_px,
            counts.hausdorff95_sum_px,
            counts.hausdorff_pairs,
        ],
        np.float64,
    )
    quotients = _divided(per_class, np.array(_matched(counts), np.float64))
    return dict(zip(CLASS_COLUMNS[-len(quotients) :], quotients, strict=True))


@compiled
def _divided(per_class: FloatArray, matched: FloatArray) -> FloatArray:
    """Compute the quotients of each class in the order of `CLASS_COLUMNS`, (9, C)."""
    tp, fp, fn, present, iou_sum, matched_iou_sum, distances, distances95, measured = per_class
    n = len(tp)
    pairs = matched.sum(axis=1)
    # The row-normalised confusion matrix of matched pairs; empty rows are 0.
    shares = np.zeros((n, n))
    for c in range(n):
        if pairs[c] > 0:
            shares[c] = matched[c] / pairs[c]
    figures = np.empty((9, n))
    for c in range(n):
        weight = tp[c] + fp[c] / 2 + fn[c] / 2
        nothing_left = 0.0 if present[c] > 0 else np.nan
        figures[0, c] = iou_sum[c] / weight if weight > 0 else nothing_left
        figures[1, c] = _quotient(iou_sum[c], tp[c])
        figures[2, c] = tp[c] / weight if weight > 0 else nothing_left
        right, predicted = shares[c, c], shares[:, c].sum()
        figures[3, c] = _quotient(right, predicted)
        figures[4, c] = _quotient(matched[c, c], pairs[c])
        figures[5, c] = _quotient(2 * right, shares[c].sum() + predicted)
        figures[6, c] = _quotient(matched_iou_sum[c], pairs[c])
        figures[7, c] = _quotient(distances[c], measured[c])
        figures[8, c] = _quotient(distances95[c], measured[c])
    return figures


@compiled
def _quotient(above: float, below: float) -> float:
    return above / below if below > 0 else np.nan


def detection_counts(counts: Counts) -> tuple[int, int, int]:
    """Return the class-blind numbers of matched pairs, unmatched predictions and misses."""
    confusion = counts.confusion
    return int(_matched(counts).sum()), int(confusion[0].sum()), int(confusion[:, 0].sum())


def confusion_frame(counts: Counts) -> pd.DataFrame:
    """Return the confusion matrix with named rows (reference) and columns (prediction)."""
    names = ["none", *counts.class_names]
    frame = pd.DataFrame(counts.confusion, index=names, columns=names)
    frame.index.name, frame.columns.name = "reference", "prediction"
    return frame


def _matched(counts: Counts) -> NDArray[np.int64]:
    return counts.confusion[1:, 1:]


def _ratio(above: float, below: float) -> float:
    return float(above / below) if below > 0 else float("nan")


def _mean_defined(values: FloatArray) -> float:
    defined = values[values == values]  # NaN differs from itself
    return float(np.add.reduce(defined) / len(defined)) if len(defined) else float("nan")
