"""What mending single failures would add to a team's mean PQ over patients.

A mended FN is a TP with an IoU of 1, a mended FP is gone, and a misclassified pair has the right
class, with the IoU that it has. Everything else stays.
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

    @classmethod
    def of(cls, regions: Iterable[tuple[str, Counts]]) -> PatientMean:
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
        return cls(patients, tp, fp, fn, iou_sum)

    def gains(self, patient: str, columns: ObjectColumns) -> FloatArray:
        """Return what mending each object alone would add to the mean PQ, as float64 (n,).

        Parameters
        ----------
        patient
            Whose objects they are.
        columns
            The objects. Those that are no failures, or of an unknown patient, add 0, and so does
            a failure without which there is nothing left.
        """
        gains = np.zeros(len(columns["id"]))
        row = self.patients.get(patient)
        if row is None or not len(gains):
            return gains
        status, own = columns["status"], columns["class"].astype(np.intp) - 1
        one = np.eye(self.tp.shape[1], dtype=np.int64)
        none = np.zeros_like(one)
        is_fn, is_fp = (status == STATUS_CODE[at] for at in (Status.FN, Status.FP))
        gains[is_fn] = self._gains(row, one, none, -one, one)[own[is_fn]]
        gains[is_fp] = self._gains(row, none, -one, none, none)[own[is_fp]]
        mixed = np.flatnonzero(status == STATUS_CODE[Status.MISCLASSIFIED])
        if len(mixed):
            other = columns["partner_class"].astype(np.intp)[mixed] - 1
            is_reference = columns["side"][mixed] == SIDES.index(Side.REFERENCE)
            right = one[np.where(is_reference, own[mixed], other)]
            wrong = one[np.where(is_reference, other, own[mixed])]
            iou = columns["iou"][mixed, np.newaxis]
            gains[mixed] = self._gains(row, right, -wrong, -right, right * iou)
        return gains

    def _gains(
        self, row: int, tp: IntArray, fp: IntArray, fn: IntArray, iou_sum: NDArray[np.generic]
    ) -> FloatArray:
        """Return the change of the mean (m,) for changes (m, C) of a patient's counts."""
        mended = class_quality(
            self.tp[row] + tp, self.fp[row] + fp, self.fn[row] + fn, self.iou_sum[row] + iou_sum
        )
        after = means_defined(mended.pq, axis=-1)
        defined, was_defined = ~np.isnan(after), ~np.isnan(self._pq)
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
