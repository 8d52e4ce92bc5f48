"""Figures when predictions of low score are removed, exactly as if they were evaluated again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import counted
from napari_panoptic.nuclei.evaluate import Evaluation, evaluated
from napari_panoptic.nuclei.metrics import Counts, Metrics, class_quality, unit_metrics
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.questions.engines.scored_objects import ScoredRegion
from napari_panoptic.statistics.bootstrap import Interval
from napari_panoptic.statistics.choice import choose, comparable
from napari_panoptic.statistics.means import means_defined, quotients
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import STATUS_CODE, Status

MOST_THRESHOLDS = 2000
"""Most points of a curve; with more distinct scores, quantiles are used."""
FIGURES = (
    *("pq", "sq", "dq"),
    *("detection_precision", "detection_recall", "detection_f1"),
)
"""The figures of a curve, as in `napari_panoptic.nuclei.metrics.Metrics`."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


# --- one region, everything -------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Thresholded:
    """A region without the predictions of low score."""

    #: Predictions of a lower score are removed; those without a score stay.
    threshold: float
    #: bool (m,): which rows of the prediction's label image are removed.
    removed: NDArray[np.bool_]
    #: As in an `Evaluation` of the other predictions.
    outcomes: Outcomes
    counts: Counts

    def __repr__(self) -> str:
        removed = counted(int(self.removed.sum()), "prediction")
        return f"<Thresholded at {self.threshold:g}: PQ {self.metrics.pq:.3f}, {removed} removed>"

    @cached_property
    def metrics(self) -> Metrics:
        """The figures; NaN where undefined."""
        return unit_metrics(self.counts)


def at_threshold(evaluation: Evaluation, threshold: float) -> Thresholded:
    """Evaluate a region without the predictions of low score.

    Equal to the evaluation of the pair of which `without_low_scores` removed these, under any
    rule and policy: nothing is counted again, but everything is matched and decided again.

    Parameters
    ----------
    evaluation
        Of the region, with all predictions; not changed.
    threshold
        Predictions of a lower score are removed.
    """
    removed = evaluation.pair.prediction.scores < threshold
    found = evaluation_at_threshold(evaluation, threshold)
    return Thresholded(threshold, removed, found.outcomes, found.counts)


def evaluation_at_threshold(evaluation: Evaluation, threshold: float) -> Evaluation:
    """Evaluate a region without the predictions of low score; see `at_threshold`.

    Returns
    -------
    Evaluation
        Of the label pair without the removed predictions; `evaluation` itself if nothing is
        removed.
    """
    pair = evaluation.pair
    removed = pair.prediction.scores < threshold
    if not removed.any():
        return evaluation
    places = np.arange(len(pair.reference)), np.where(removed, -1, np.cumsum(~removed) - 1)
    return evaluated(
        replace(pair, prediction=without_low_scores(pair.prediction, threshold)),
        evaluation.table.renumbered(*places),
        evaluation.settings,
        evaluation.distances.renumbered(*places),
    )


def without_low_scores(labels: LabelImage, threshold: float) -> LabelImage:
    """Return the objects without those of a lower score; their pixels become background."""
    return labels.only(~(labels.scores < threshold))


# --- many regions, sums -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ThresholdCounts:
    """Counts of a region or patient at k thresholds, each (k, C) or (k,)."""

    #: Per class, as in `napari_panoptic.nuclei.metrics.Counts`.
    tp: IntArray
    fp: IntArray
    fn: IntArray
    iou_sum: FloatArray
    #: Class-blind: matched pairs, unmatched predictions, unmatched reference objects.
    matched: IntArray
    spurious: IntArray
    missed: IntArray

    def __add__(self, other: ThresholdCounts) -> ThresholdCounts:
        """Sum the counts of two regions."""
        names = [field.name for field in fields(self)]
        return ThresholdCounts(
            **{name: getattr(self, name) + getattr(other, name) for name in names}
        )

    def figures(self) -> dict[str, FloatArray]:
        """Return `FIGURES`, each (k,); NaN where undefined."""
        quality = class_quality(self.tp, self.fp, self.fn, self.iou_sum)
        both = 2 * self.matched
        figures = {
            "detection_precision": quotients(self.matched, self.matched + self.spurious),
            "detection_recall": quotients(self.matched, self.matched + self.missed),
            "detection_f1": quotients(both, both + self.spurious + self.missed),
        }
        means = {name: means_defined(own, axis=-1) for name, own in quality._asdict().items()}
        return {**means, **figures}


def sums_at(region: ScoredRegion, thresholds: FloatArray) -> ThresholdCounts:
    """Count a region at several thresholds at once.

    Parameters
    ----------
    region
        The region; its matches must be unique.
    thresholds
        float64 (k,), ascending: predictions of a lower score are removed.

    Raises
    ------
    SettingsError
        If its matches depend on the other predictions; see `ScoredRegion`.
    """
    if not region.is_unique:
        raise SettingsError(
            "curves over thresholds need matches that do not depend on the other predictions: "
            "expected strict-iou with an IoU of at least 0.5 and objects that share no pixel, "
            f"found other settings in region {region.region}. Choose --matching strict-iou"
        )
    reference, prediction = region.outcomes.reference, region.outcomes.prediction
    n, k = len(region.outcomes.class_names), len(thresholds)
    # The first threshold that removes a prediction; k if none does, as without a score.
    steps = np.searchsorted(thresholds, prediction.score, side="right")
    steps[np.isnan(prediction.score)] = k

    def present(
        chosen: NDArray[np.bool_], classes: IntArray, weights: FloatArray | None = None
    ) -> NDArray[Any]:
        """Sum chosen predictions that are there at each threshold, (k, C)."""
        cells = steps[chosen] * n + classes[chosen]
        added = np.bincount(cells, None if weights is None else weights[chosen], (k + 1) * n)
        # Summed from the top, so that no rounding error remains above the highest score.
        there: NDArray[Any] = np.cumsum(added.reshape(k + 1, n)[::-1], axis=0)[::-1][1:]
        return there

    is_tp, is_mixed, is_fp = (
        prediction.status == STATUS_CODE[status]
        for status in (Status.TP, Status.MISCLASSIFIED, Status.FP)
    )
    is_matched = is_tp | is_mixed
    partner = prediction.partner[is_matched]
    own_class = prediction.class_index.astype(np.int64) - 1
    partner_class = np.zeros(len(prediction), np.int64)
    partner_class[is_matched] = reference.class_index[partner] - 1
    # A reference object that loses its partner is FN, unless the policy ignores it then.
    leaves_fn = is_matched.copy()
    leaves_fn[is_matched] = ~region.ignored_reference[partner]
    is_fn = reference.status == STATUS_CODE[Status.FN]
    missed = (
        np.bincount(reference.class_index[is_fn] - 1, minlength=n)
        + np.bincount(partner_class[leaves_fn], minlength=n)
        - present(leaves_fn, partner_class)
    )
    return ThresholdCounts(
        tp=present(is_tp, own_class),
        fp=present(is_fp | is_mixed, own_class),
        fn=missed + present(is_mixed, partner_class),
        iou_sum=present(is_tp, own_class, prediction.iou),
        matched=present(is_matched, own_class).sum(axis=1),
        spurious=present(is_fp, own_class).sum(axis=1),
        missed=missed.sum(axis=1),
    )


@dataclass(frozen=True, eq=False)
class ThresholdCurve:
    """Figures of each patient over thresholds."""

    #: float64 (k,), ascending; the first one is the lowest score and removes nothing.
    thresholds: FloatArray
    #: Names of the patients.
    patients: tuple[str, ...]
    #: Name, of `FIGURES` -> float64 (patients, k); NaN where undefined.
    figures: Mapping[str, FloatArray]
    #: Whether every distinct score is a threshold.
    is_complete: bool

    def mean(self, figure: str) -> FloatArray:
        """Return float64 (k,): the mean over the same patients at every threshold.

        A patient without a figure at some thresholds counts there as in `comparable`; where all
        patients have one, the mean is that of ``teams.csv``.
        """
        return means_defined(comparable(self.figures[figure]), axis=0)


def threshold_curve(regions: Sequence[ScoredRegion]) -> ThresholdCurve | None:
    """Return figures over all distinct thresholds; None if no prediction has a score.

    Parameters
    ----------
    regions
        The regions of a team.

    Raises
    ------
    SettingsError
        If matches depend on the other predictions.
    """
    thresholds, is_complete = _candidates(regions)
    if not len(thresholds):
        return None
    by_patient: dict[str, ThresholdCounts] = {}
    for region in regions:
        own = sums_at(region, thresholds)
        known = by_patient.get(region.patient)
        by_patient[region.patient] = own if known is None else known + own
    found = [sums.figures() for sums in by_patient.values()]
    figures = {name: np.stack([own[name] for own in found]) for name in FIGURES}
    return ThresholdCurve(thresholds, tuple(by_patient), figures, is_complete)


def _candidates(regions: Sequence[ScoredRegion]) -> tuple[FloatArray, bool]:
    every = [region.outcomes.prediction.score for region in regions]
    scores = np.unique(np.concatenate([np.zeros(0), *every]))
    scores = scores[~np.isnan(scores)]
    if len(scores) <= MOST_THRESHOLDS:
        return scores, True
    places = np.linspace(0, len(scores) - 1, MOST_THRESHOLDS).round().astype(np.int64)
    return scores[places], False


# --- the best threshold -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BestThreshold:
    """The threshold at which a figure is best, and its honest figure for new patients."""

    #: The figure, of `FIGURES`.
    figure: str
    #: The best one over all patients; the lowest of equals.
    threshold: float
    #: The mean over patients at it, too high since these patients chose the threshold.
    optimistic: float
    #: The mean over patients with all predictions.
    baseline: float
    #: Names of the patients.
    patients: tuple[str, ...]
    #: float64 (patients,): the threshold that is best over all other patients.
    chosen: FloatArray
    #: float64 (patients,): each patient's figure at the threshold that the others chose.
    left_out: FloatArray
    #: float64 (patients,): each patient's figure with all predictions.
    before: FloatArray
    #: Patients without a figure at some thresholds, where they count as in `comparable`.
    counted_as_worst: tuple[str, ...]
    #: The mean of `left_out` with its interval.
    honest: Interval
    #: The mean of ``left_out - before`` with its interval, paired by patient.
    gain: Interval


def best_threshold(curve: ThresholdCurve, figure: str = "pq") -> BestThreshold:
    """Choose the threshold at which a figure is best, and once without each patient.

    Parameters
    ----------
    curve
        The figures of each patient.
    figure
        Which of them is to be high.
    """
    values = curve.figures[figure]
    choice = choose(values)
    chosen = [math.nan if at is None else curve.thresholds[at] for at in choice.chosen]
    before = choice.figures[:, 0]
    return BestThreshold(
        figure=figure,
        threshold=math.nan if choice.best is None else float(curve.thresholds[choice.best]),
        optimistic=choice.optimistic,
        baseline=float(choice.means[0]),
        patients=curve.patients,
        chosen=np.array(chosen, np.float64),
        left_out=choice.left_out,
        before=before,
        counted_as_worst=tuple(np.array(curve.patients, object)[choice.is_filled]),
        honest=choice.honest,
        gain=choice.gain_over(0),
    )
