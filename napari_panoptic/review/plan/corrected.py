"""What an item adds to the figures under each verdict, and the figures as functions of sums.

The rules extend those of `napari_panoptic.explain.what_if` to every verdict:

=================  ==================  =====================  ==============
item               annotation-right    prediction-right       both-wrong
=================  ==================  =====================  ==============
TP                 TP                  TP, with its IoU       FP
misclassified      misclassified       TP of the predicted    FP
                                       class, with its IoU
FN                 FN                  nothing                nothing
FP                 FP                  TP with an IoU of 1    FP
=================  ==================  =====================  ==============

A tile of background adds as many FNs as there are nuclei without an outline.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.review.plan.units import Units
from napari_panoptic.values.vocabulary import Verdict

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
ALL = "all"
"""Name of the row over all classes."""
DECIDED = (Verdict.ANNOTATION_RIGHT, Verdict.PREDICTION_RIGHT, Verdict.BOTH_WRONG)
"""The verdicts under which an item adds something to the figures."""


class Quantity(StrEnum):
    """What a review estimates."""

    ERROR_RATE = "annotation-error-rate"  # of the reference objects that take part
    PRECISION = "precision"
    RECALL = "recall"
    F1 = "f1"
    PQ = "pq"


QUANTITIES = tuple(Quantity)
_LEAST_SUM = 1e-9


@dataclass(frozen=True)
class SumPositions:
    """The positions of the sums from which the figures are computed.

    Per class: reference objects, erroneous ones, and TP, FP, FN and summed IoU as panoptic
    quality counts them; over all classes: matched pairs, unmatched predictions, unmatched
    reference objects, and nuclei that neither side has.
    """

    #: Number of classes C.
    n_classes: int

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """References, errors, TP, FP, FN and IoU by class (C,)."""
        c = self.n_classes
        return tuple(slice(k * c, (k + 1) * c) for k in range(6))

    @property
    def overall(self) -> int:
        """First of the four sums over all classes."""
        return 6 * self.n_classes

    def __len__(self) -> int:
        """Count the sums."""
        return self.overall + 4

    def of(self, units: Units) -> FloatArray:
        """Return what each item adds under each of `DECIDED`, (n, 3, K).

        Tiles of background add nothing here: their verdict is a count.
        """
        result = np.zeros((len(units), len(DECIDED), len(self)))
        annotated, predicted = (
            units.reference_class.astype(np.intp),
            units.prediction_class.astype(np.intp),
        )
        nothing, is_matched = np.zeros_like(annotated), (annotated > 0) & (predicted > 0)
        # The class of the reference object if a verdict is right, in the order of `DECIDED`.
        for number, reference in enumerate((annotated, predicted, nothing)):
            iou = np.where(is_matched, units.iou, 1.0)
            self._add_outcomes(result[:, number], reference, predicted, iou)
            self._add(result[:, number], 0, annotated)
            if DECIDED[number] is not Verdict.ANNOTATION_RIGHT:
                self._add(result[:, number], 1, annotated)
        return result

    def _add_outcomes(
        self, sums: FloatArray, reference: IntArray, predicted: IntArray, iou: FloatArray
    ) -> None:
        """Add TP, FP, FN and IoU of items with a reference and a predicted class, 0 for none."""
        is_tp = (reference == predicted) & (reference > 0)
        self._add(sums, 2, np.where(is_tp, reference, 0))
        self._add(sums, 3, np.where(is_tp, 0, predicted))
        self._add(sums, 4, np.where(is_tp, 0, reference))
        self._add(sums, 5, np.where(is_tp, reference, 0), iou)
        sums[:, self.overall] += (reference > 0) & (predicted > 0)
        sums[:, self.overall + 1] += (reference == 0) & (predicted > 0)
        sums[:, self.overall + 2] += (reference > 0) & (predicted == 0)

    def _add(
        self, sums: FloatArray, column: int, classes: IntArray, values: FloatArray | None = None
    ) -> None:
        """Add 1, or a value, to the sum of each item's class; class 0 is none."""
        rows = np.flatnonzero(classes)
        places = column * self.n_classes + classes[rows] - 1
        sums[rows, places] += 1.0 if values is None else values[rows]

    @property
    def lacked(self) -> int:
        """Position of the number of nuclei that neither side has."""
        return self.overall + 3

    def possible(self, sums: FloatArray) -> FloatArray:
        """Return estimated sums (..., K), at least 0.

        A summed IoU is at most the number of TPs, and that of errors at most that of reference
        objects.
        """
        # Differences of weighted sums leave a rounding error where nothing is left.
        result: FloatArray = np.where(sums < _LEAST_SUM, 0.0, sums)
        references, errors, tp, _, _, iou = self.columns
        for part, whole in ((errors, references), (iou, tp)):
            result[..., part] = np.minimum(result[..., part], result[..., whole])
        return result

    def figures(self, sums: NDArray[Any]) -> NDArray[Any]:
        """Compute the figures from sums; analytic, for real and complex numbers.

        Nuclei that neither side has are FNs. Their class is unknown: they are shared out over the
        classes in proportion to the corrected reference objects.

        Parameters
        ----------
        sums
            (..., K).

        Returns
        -------
        array (..., Q, C + 1)
            Of each quantity the classes, then all of them; NaN if undefined. Over all classes
            precision, recall and f1 are class-blind, and pq is the mean over the classes.
        """
        references, errors, tp, fp, fn, iou = (sums[..., part] for part in self.columns)
        matched, spurious, missed, lacked = np.moveaxis(sums[..., self.overall :], -1, 0)
        everything = (tp + fn).sum(-1)
        fn = fn + (tp + fn) * _ratio(lacked, everything)[..., None] if lacked.any() else fn
        missed = missed + lacked
        by_class = [
            _ratio(errors, references),
            _ratio(tp, tp + fp),
            _ratio(tp, tp + fn),
            _ratio(2 * tp, 2 * tp + fp + fn),
            _ratio(2 * iou, 2 * tp + fp + fn),
        ]
        is_there = ~np.isnan(by_class[-1].real)
        overall = [
            _ratio(errors.sum(-1), references.sum(-1)),
            _ratio(matched, matched + spurious),
            _ratio(matched, matched + missed),
            _ratio(2 * matched, 2 * matched + spurious + missed),
            _ratio(np.where(is_there, by_class[-1], 0).sum(-1), is_there.sum(-1)),
        ]
        return np.concatenate(
            [np.stack(by_class, axis=-2), np.stack(overall, axis=-1)[..., None]], axis=-1
        )

    def gradient(self, sums: FloatArray) -> FloatArray:
        """Return the derivatives of each figure by each sum, (Q, C + 1, K).

        By complex steps, which are exact to rounding (Squire and Trapp, SIAM Review 40, 1998,
        110-112).
        """
        step = 1e-30
        stepped = sums[None, :] + 1j * step * np.eye(len(self))
        result: FloatArray = np.moveaxis(self.figures(stepped).imag / step, 0, -1)
        return result


def _ratio(above: NDArray[Any], below: NDArray[Any]) -> NDArray[Any]:
    """Return quotients, NaN where the denominator is not positive."""
    above, below = np.asarray(above), np.asarray(below)
    is_defined = below.real > 0
    dtype = np.result_type(above, below, np.float64)
    result = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan, dtype)
    np.divide(above, below, out=result, where=is_defined)
    return result
