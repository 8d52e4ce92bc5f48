"""From outcomes to counts, and from counts to figures.

Counts are sums over objects and can be added over regions; figures are
quotients of counts. Undefined figures are NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.distances import PairDistances
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.statistics.means import quotient, quotients, sums_by_group
from napari_panoptic.tables.columns import TableSpec, name_column, number, unshown, whole
from napari_panoptic.tables.figures import writer
from napari_panoptic.values.vocabulary import STATUS_CODE, Status

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
_FN, _FP, _IGNORED = (STATUS_CODE[own] for own in (Status.FN, Status.FP, Status.IGNORED))


@dataclass(frozen=True, eq=False)
class Counts:
    """Sums over the objects of a region, patient or team."""

    #: The C scored classes, in order.
    class_names: tuple[str, ...]
    #: int64 (C,): per class, as panoptic quality counts them: a misclassified pair is an FP of the
    #: predicted class and an FN of the reference class.
    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    fn: NDArray[np.int64]
    #: float64 (C,): summed IoU of the TPs of a class.
    iou_sum: FloatArray
    #: int64 (C + 1, C + 1): rows reference, columns prediction, index 0 none.
    confusion: NDArray[np.int64]
    #: float64 (C,): summed IoU of all matched pairs, by reference class.
    matched_iou_sum: FloatArray
    #: float64 and int64 (C,): summed Hausdorff distance, and the number of pairs for which it is
    #: defined, by reference class.
    hausdorff_sum_px: FloatArray
    hausdorff_pairs: NDArray[np.int64]
    #: float64 (C,): the same for its 95th percentile, over the same pairs.
    hausdorff95_sum_px: FloatArray
    #: int64 (C,): regions that count the class. A class counts if tp + fp + fn > 0; a scoring may
    #: also count one that has nothing left, whose PQ and DQ are then 0.
    present: NDArray[np.int64]
    #: Objects that the ambiguous policy excludes.
    ignored_reference: int = 0
    ignored_prediction: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Sum the counts of two units of the same classes."""
        if self.class_names != other.class_names:
            raise ValueError(f"classes differ: {self.class_names} and {other.class_names}")
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        return Counts(class_names=self.class_names, **sums)

    @cached_property
    def figures_by_class(self) -> dict[str, FloatArray]:
        """The quotients of each class, each (C,); NaN if undefined."""
        return _figures_by_class(self)

    @property
    def n_failures(self) -> int:
        """The number of FNs, FPs and misclassified pairs."""
        return int(self.confusion.sum() - np.trace(self.confusion))

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


_SUMS = tuple(f.name for f in fields(Counts) if f.name != "class_names")


@dataclass(frozen=True)
class Metrics(Mapping[str, float]):
    """The figures of a unit (region, patient, or pooled); NaN where undefined.

    Can be read as attributes or as a mapping.
    """

    #: Panoptic, segmentation and detection quality (Kirillov et al., CVPR 2019): PQ and DQ averaged
    #: over the classes present in reference or prediction, SQ over the classes with a TP.
    pq: float
    sq: float
    dq: float
    #: Class-blind; accuracy is TP / (TP + FP + FN).
    detection_precision: float
    detection_recall: float
    detection_f1: float
    detection_accuracy: float
    #: Mean recall over the classes with a matched reference object.
    balanced_accuracy: float
    #: Mean IoU of matched pairs per reference class, averaged over the classes with a matched pair.
    mean_iou: float
    #: Mean Hausdorff distance over all matched pairs, in px.
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


@dataclass(frozen=True)
class MetricText:
    """What the window and the report call a metric, and how they explain it."""

    #: Its name on axes and columns of the report.
    title: str
    #: Its name in the window.
    caption: str
    #: What it measures, in one sentence.
    meaning: str
    #: When it is undefined, such as "there is no TP".
    undefined: str


METRIC_TEXTS: Mapping[str, MetricText] = {
    "pq": MetricText(
        "PQ",
        "PQ",
        "Panoptic quality: detection and outlines in one figure, averaged over the classes.",
        "there are no objects",
    ),
    "sq": MetricText(
        "SQ",
        "SQ",
        "Segmentation quality: mean IoU of the TPs, averaged over the classes with a TP.",
        "there is no TP",
    ),
    "dq": MetricText(
        "DQ",
        "DQ",
        "Detection quality: TP / (TP + FP/2 + FN/2), averaged over the classes.",
        "there are no objects",
    ),
    "detection_precision": MetricText(
        "detection precision",
        "Precision",
        "Share of the predictions that match a nucleus, whatever its class.",
        "nothing was predicted",
    ),
    "detection_recall": MetricText(
        "detection recall",
        "Recall",
        "Share of the annotated nuclei that were found, whatever their class.",
        "nothing was annotated",
    ),
    "detection_f1": MetricText(
        "detection F1",
        "F1",
        "Harmonic mean of precision and recall, whatever the class.",
        "there are no objects",
    ),
    "detection_accuracy": MetricText(
        "detection accuracy",
        "Accuracy",
        "TP / (TP + FP + FN), whatever the class.",
        "there are no objects",
    ),
    "balanced_accuracy": MetricText(
        "balanced accuracy",
        "Balanced",
        "Of the nuclei found, the share given the right class, mean over classes.",
        "there is no matched pair",
    ),
    "mean_iou": MetricText(
        "mean IoU",
        "Mean IoU",
        "Mean overlap of matched pairs, averaged over the classes.",
        "there is no matched pair",
    ),
    "mean_hausdorff_px": MetricText(
        "mean Hausdorff distance (px)",
        "Mean HD",
        "Mean over matched pairs of the largest distance between their outlines.",
        "there is no matched pair, or distances are off",
    ),
}
"""The texts of each metric, from which window and report take them."""

FIGURE_NAMES: Mapping[str, str] = {
    **{name: text.title for name, text in METRIC_TEXTS.items()},
    "mean_hausdorff95_px": "mean Hausdorff distance, 95th percentile (px)",
}
"""Titles of axes and columns."""

CLASSES = TableSpec(
    "",
    "class",
    [
        name_column("class"),
        *(whole(key, key.upper()) for key in ("tp", "fp", "fn")),
        unshown("iou_sum"),
        *(number(key, FIGURE_NAMES[key]) for key in ("pq", "sq", "dq")),
        *map(number, ("precision", "recall", "f1")),
        *(
            number(key, FIGURE_NAMES[key], writer(key))
            for key in ("mean_iou", "mean_hausdorff_px", "mean_hausdorff95_px")
        ),
    ],
)


def count(outcomes: Outcomes) -> Counts:
    """Count the outcomes of one label pair.

    Parameters
    ----------
    outcomes
        The outcomes of all objects.
    """
    reference, prediction = outcomes.reference, outcomes.prediction
    rows = np.flatnonzero(reference.partner != NO_PARTNER)
    return count_matched(
        outcomes.class_names,
        (reference.class_index, prediction.class_index),
        (reference.status, prediction.status),
        (rows, reference.partner[rows]),
        reference.iou[rows],
        PairDistances(reference.hausdorff_px[rows], reference.hausdorff95_px[rows]),
    )


def count_matched(
    class_names: tuple[str, ...],
    classes: tuple[NDArray[np.int16], NDArray[np.int16]],
    statuses: tuple[NDArray[np.int8], NDArray[np.int8]],
    matched: tuple[NDArray[np.integer], NDArray[np.integer]],
    iou: FloatArray,
    distances: PairDistances | None,
) -> Counts:
    """Count the outcomes of one label pair from its matched pairs.

    Parameters
    ----------
    class_names
        The scored classes, in order.
    classes, statuses
        Of the reference objects (n,) and the predictions (m,); see `SideOutcomes`.
    matched
        Rows (k,) of the matched objects of both sides.
    iou, distances
        Of the matched pairs; None if no distances are computed.
    """
    (reference, prediction), (missed, spurious) = classes, statuses
    n = len(class_names) + 1
    own, other = reference[matched[0]].astype(np.intp), prediction[matched[1]]
    is_tp = own == other

    def by_class(values: FloatArray, chosen: NDArray[np.bool_]) -> FloatArray:
        return sums_by_group(values[chosen], own[chosen], n)[1:]

    confusion = np.bincount(own * n + other, minlength=n * n).reshape(n, n)
    confusion[:, 0] = np.bincount(reference[missed == _FN], minlength=n)
    confusion[0] = np.bincount(prediction[spurious == _FP], minlength=n)
    tp, fp, fn = class_sums(confusion)
    hausdorff_sum = hausdorff95_sum = np.zeros(n - 1)
    hausdorff_pairs = np.zeros(n - 1, np.int64)
    if distances is not None:
        is_measured = ~np.isnan(distances.hausdorff_px)
        hausdorff_sum = by_class(distances.hausdorff_px, is_measured)
        hausdorff95_sum = by_class(distances.hausdorff95_px, is_measured)
        hausdorff_pairs = np.bincount(own[is_measured], minlength=n)[1:]
    matched_iou = sums_by_group(iou, own, n)[1:]
    return Counts(
        class_names=class_names,
        tp=tp,
        fp=fp,
        fn=fn,
        iou_sum=matched_iou if is_tp.all() else by_class(iou, is_tp),
        confusion=confusion,
        matched_iou_sum=matched_iou,
        hausdorff_sum_px=hausdorff_sum,
        hausdorff_pairs=hausdorff_pairs,
        hausdorff95_sum_px=hausdorff95_sum,
        present=(tp + fp + fn > 0).astype(np.int64),
        ignored_reference=int(np.count_nonzero(missed == _IGNORED)),
        ignored_prediction=int(np.count_nonzero(spurious == _IGNORED)),
    )


def unit_metrics(counts: Counts) -> Metrics:
    """Compute the figures of a unit from its counts."""
    figures = counts.figures_by_class
    true, spurious, missed = detection_counts(counts)
    return Metrics(
        pq=_mean_defined(figures["pq"]),
        sq=_mean_defined(figures["sq"]),
        dq=_mean_defined(figures["dq"]),
        detection_precision=quotient(true, true + spurious),
        detection_recall=quotient(true, true + missed),
        detection_f1=quotient(2 * true, 2 * true + spurious + missed),
        detection_accuracy=quotient(true, true + spurious + missed),
        balanced_accuracy=_mean_defined(figures["recall"]),
        mean_iou=_mean_defined(figures["mean_iou"]),
        mean_hausdorff_px=quotient(
            float(counts.hausdorff_sum_px.sum()), int(counts.hausdorff_pairs.sum())
        ),
    )


def class_metrics(counts: Counts) -> pd.DataFrame:
    """Compute the figures of each class; one row per class, columns of `CLASSES`.

    precision, recall and f1 are those of the classification of matched pairs,
    on the row-normalised confusion matrix.
    """
    import pandas as pd

    columns = {"class": list(counts.class_names), **class_figures(counts)}
    return pd.DataFrame(columns, columns=CLASSES.keys)


def class_figures(counts: Counts) -> dict[str, NDArray[np.int64] | FloatArray]:
    """Compute the columns of :func:`class_metrics` except ``class``, each (C,)."""
    return {
        "tp": counts.tp,
        "fp": counts.fp,
        "fn": counts.fn,
        "iou_sum": counts.iou_sum,
        **counts.figures_by_class,
    }


def class_sums(
    confusion: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Read TP, FP and FN of each class (..., C) from confusion matrices (..., C + 1, C + 1).

    As panoptic quality counts them: a misclassified pair is an FP of the
    predicted class and an FN of the reference class.
    """
    tp = np.diagonal(confusion, axis1=-2, axis2=-1)[..., 1:].copy()
    fp = confusion[..., :, 1:].sum(axis=-2) - tp
    fn = confusion[..., 1:, :].sum(axis=-1) - tp
    return tp, fp, fn


def detection_sums(confusion: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both sides (..., C) of the fraction that is the detection F1 of each class.

    A class has its nuclei, whatever their predicted class, and the predictions without a nucleus.

    Parameters
    ----------
    confusion
        (..., C + 1, C + 1): confusion matrices.
    """
    found = 2 * confusion[..., 1:, 1:].sum(axis=-1)
    return found, found + confusion[..., 1:, 0] + confusion[..., 0, 1:]


class ClassQuality(NamedTuple):
    """PQ, SQ and DQ of classes, in arrays of any shape; NaN where undefined."""

    pq: FloatArray
    sq: FloatArray
    dq: FloatArray


def class_quality(
    tp: NDArray[np.integer],
    fp: NDArray[np.integer],
    fn: NDArray[np.integer],
    iou_sum: FloatArray,
) -> ClassQuality:
    """Compute PQ, SQ and DQ of classes from arrays of one shape.

    PQ = sum of IoU / (TP + FP/2 + FN/2), SQ = sum of IoU / TP and
    DQ = TP / (TP + FP/2 + FN/2) (Kirillov et al., CVPR 2019).
    """
    weight = tp + fp / 2 + fn / 2
    return ClassQuality(quotients(iou_sum, weight), quotients(iou_sum, tp), quotients(tp, weight))


def _figures_by_class(counts: Counts) -> dict[str, FloatArray]:
    """Compute the quotients of each class, each (C,)."""
    matched = _matched(counts)
    pairs = matched.sum(axis=1)
    # The row-normalised confusion matrix of matched pairs; empty rows are 0.
    shares = matched / np.maximum(pairs, 1)[:, np.newaxis]
    right, predicted = np.diagonal(shares), shares.sum(axis=0)
    quality = class_quality(counts.tp, counts.fp, counts.fn, counts.iou_sum)
    others = {
        "precision": (right, predicted),
        "recall": (np.diagonal(matched), pairs),
        "f1": (2 * right, shares.sum(axis=1) + predicted),
        "mean_iou": (counts.matched_iou_sum, pairs),
        "mean_hausdorff_px": (counts.hausdorff_sum_px, counts.hausdorff_pairs),
        "mean_hausdorff95_px": (counts.hausdorff95_sum_px, counts.hausdorff_pairs),
    }
    figures = quotients(*np.array(list(others.values()), np.float64).swapaxes(0, 1))
    # A class that counts, but has nothing left, has a PQ and DQ of 0.
    is_left_out = np.isnan(quality.pq) & (counts.present > 0)
    quality.pq[is_left_out] = quality.dq[is_left_out] = 0.0
    return {**quality._asdict(), **dict(zip(others, figures, strict=True))}


def detection_counts(counts: Counts) -> tuple[int, int, int]:
    """Return the class-blind numbers of matched pairs, unmatched predictions and misses."""
    confusion = counts.confusion
    return int(_matched(counts).sum()), int(confusion[0].sum()), int(confusion[:, 0].sum())


def confusion_frame(counts: Counts) -> pd.DataFrame:
    """Return the confusion matrix with named rows (reference) and columns (prediction)."""
    import pandas as pd

    names = ["none", *counts.class_names]
    frame = pd.DataFrame(counts.confusion, index=names, columns=names)
    frame.index.name, frame.columns.name = "reference", "prediction"
    return frame


def _matched(counts: Counts) -> NDArray[np.int64]:
    return counts.confusion[1:, 1:]


def _mean_defined(values: FloatArray) -> float:
    defined = values[values == values]  # NaN differs from itself
    return float(np.add.reduce(defined) / len(defined)) if len(defined) else float("nan")
