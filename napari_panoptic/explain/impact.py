"""What mending single failures would add to a team's mean PQ over patients.

A mended FN is a TP with an IoU of 1, a mended FP is gone, and a mended misclassified pair is a TP
of the right class with an IoU of 1. Everything else stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.metrics import Counts, class_quality
from napari_panoptic.nuclei.outcomes import ObjectColumns
from napari_panoptic.statistics.means import means_defined
from napari_panoptic.values.vocabulary import SIDES, STATUS_CODE, Side, Status

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
IMPACT_COLUMNS = ("side", "status", "class", "partner_class")
"""Columns of objects that their impact depends on."""


@dataclass(frozen=True, eq=False)
class PatientMean:
    """The counts of a team's patients, whose mean PQ is its score."""

    #: Patient -> row of the counts.
    patients: dict[str, int]
    #: int64 (P, C): counts of each patient, by class.
    tp: IntArray
    fp: IntArray
    fn: IntArray
    #: float64 (P, C): summed IoU of the TPs.
    iou_sum: FloatArray
    #: Whether a gain is one of the PQ of its patient alone, not of the mean.
    is_alone: bool = False

    @classmethod
    def of(cls, regions: Iterable[tuple[str, Counts]], *, is_alone: bool = False) -> PatientMean:
        """Sum the counts of regions, given with their patients."""
        known = list(regions)
        patients = {name: row for row, name in enumerate(dict.fromkeys(name for name, _ in known))}
        shape = len(patients), len(known[0][1].class_names) if known else 0
        tp, fp, fn = np.zeros((3, *shape), np.int64)
        iou_sum = np.zeros(shape)
        for name, counts in known:
            row = patients[name]
            tp[row] += counts.tp
            fp[row] += counts.fp
            fn[row] += counts.fn
            iou_sum[row] += counts.iou_sum
        return cls(patients, tp, fp, fn, iou_sum, is_alone)

    def rows(self, patients: Iterable[str]) -> NDArray[np.intp]:
        """Return the row of each patient; -1 for one that is unknown."""
        return np.array([self.patients.get(name, -1) for name in patients], np.intp)

    def gains(self, row: NDArray[np.intp], columns: ObjectColumns) -> FloatArray:
        """Return what mending each object alone would add to the mean PQ, as float64 (n,).

        Parameters
        ----------
        row
            The row of each object's patient (n,).
        columns
            The objects. Those that are no failures, or of an unknown patient, add 0, and so does
            a failure without which there is nothing left.
        """
        gains, status = np.zeros(len(row)), columns["status"]
        own, is_known = columns["class"].astype(np.intp) - 1, row >= 0
        for of, table in ((Status.FN, self._of_fn), (Status.FP, self._of_fp)):
            chosen = is_known & (status == STATUS_CODE[of])
            gains[chosen] = table[row[chosen], own[chosen]]
        mixed = np.flatnonzero(is_known & (status == STATUS_CODE[Status.MISCLASSIFIED]))
        if len(mixed):
            one = self._one
            other = columns["partner_class"].astype(np.intp)[mixed] - 1
            is_reference = columns["side"][mixed] == SIDES.index(Side.REFERENCE)
            right = one[np.where(is_reference, own[mixed], other)]
            wrong = one[np.where(is_reference, other, own[mixed])]
            gains[mixed] = self._gains(row[mixed], right, -wrong, -right, right)
        return gains

    @cached_property
    def _one(self) -> IntArray:
        """One object of each class, by class."""
        return np.eye(self.tp.shape[1], dtype=np.int64)

    @cached_property
    def _of_fn(self) -> FloatArray:
        """The gain of an FN of each patient and class (P, C)."""
        return self._by_class(self._one, np.zeros_like(self._one), -self._one, self._one)

    @cached_property
    def _of_fp(self) -> FloatArray:
        """The gain of an FP of each patient and class (P, C)."""
        none = np.zeros_like(self._one)
        return self._by_class(none, -self._one, none, none)

    def _by_class(self, *changes: IntArray) -> FloatArray:
        """Return the gains (P, C) of changes (C, C) of each patient's counts."""
        n_patients, n_classes = self.tp.shape
        row = np.repeat(np.arange(n_patients), n_classes)
        found = self._gains(row, *(np.tile(change, (n_patients, 1)) for change in changes))
        return found.reshape(n_patients, n_classes)

    def _gains(
        self,
        row: NDArray[np.intp],
        tp: IntArray,
        fp: IntArray,
        fn: IntArray,
        iou_sum: IntArray,
    ) -> FloatArray:
        """Return the change of the mean (m,) for changes (m, C) of patients' counts (m,)."""
        mended = class_quality(
            self.tp[row] + tp, self.fp[row] + fp, self.fn[row] + fn, self.iou_sum[row] + iou_sum
        )
        after = means_defined(mended.pq, axis=-1)
        defined, was_defined = ~np.isnan(after), ~np.isnan(self._pq)
        if self.is_alone:
            return np.where(defined, after - np.nan_to_num(self._pq[row]), 0.0)
        # The mean over the patients of whom anything is left.
        n = was_defined.sum() - was_defined[row] + defined
        others = np.nansum(self._pq) - np.nan_to_num(self._pq[row])
        means = (others + np.where(defined, after, 0.0)) / np.maximum(n, 1)
        return np.where(n > 0, means - np.nansum(self._pq) / max(was_defined.sum(), 1), 0.0)

    @cached_property
    def _pq(self) -> FloatArray:
        """The PQ of each patient (P,); NaN for one without any object."""
        quality = class_quality(self.tp, self.fp, self.fn, self.iou_sum)
        return means_defined(quality.pq, axis=-1)
