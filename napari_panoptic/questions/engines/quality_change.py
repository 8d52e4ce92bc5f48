"""Split the change of PQ between two versions into the shares of objects, causes and classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.questions.engines.version_diff import VersionDiff
from napari_panoptic.statistics.means import quotients
from napari_panoptic.values.vocabulary import Status

if TYPE_CHECKING:
    import pandas as pd

OUTLINES = "outlines"
"""The cause of rows that are a TP in both versions: only their outlines changed."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class QualityChange:
    """The change of PQ, mean over patients, as a sum of parts.

    ``total`` = ``sq`` + ``dq`` = sum of ``of_row`` = sum of ``by_class``.
    """

    #: New minus old PQ, mean over patients; NaN if no patient has a PQ of both versions.
    total: float
    #: The parts due to outlines and to detection.
    sq: float
    dq: float
    #: Class -> its part.
    by_class: Mapping[str, float]
    #: float64 (n,): the part of each row of the diff; 0 for patients without a PQ.
    of_row: FloatArray
    #: object (n,): the explanation of each row: its cause in the new version, else in the old one,
    #: else ``ignored`` or ``misclassified`` in one of them, else `OUTLINES`.
    cause: NDArray[np.object_]
    #: Number of patients with a PQ of both versions.
    patients: int

    def grouped(self, keys: pd.Series | NDArray[np.object_]) -> dict[str, float]:
        """Return the parts summed by a key of each row, the largest loss first."""
        import pandas as pd

        sums = pd.Series(self.of_row).groupby(np.asarray(keys, object)).sum()
        return {str(key): float(part) for key, part in sums.sort_values(kind="stable").items()}


def quality_change(diff: VersionDiff, class_names: Sequence[str]) -> QualityChange:
    """Split the change of PQ exactly.

    The PQ of a class c in a patient is S / W, with S the summed IoU of its TPs and W = TP + FP/2 +
    FN/2. Both are sums over objects; a misclassified object is half an FN of its class and half an
    FP of the predicted class. The PQ of the patient is the mean over its C classes that are
    present. Every product is split in the middle (the Shapley values of its two factors):

    - S1/W1 - S0/W0 = (1/W0 + 1/W1)/2 (S1 - S0) - (S0 + S1)/(2 W0 W1) (W1 - W0), in which
      every object has its own share of S1 - S0 and of W1 - W0;
    - S/W = SQ DQ, with SQ = S / TP and DQ = TP / W;
    - T1/C1 - T0/C0 = (1/C0 + 1/C1)/2 (T1 - T0) - (T0 + T1)/(2 C0 C1) (C1 - C0), with T the
      sum of PQ over classes. C changes if one of the versions has no objects of a class that count:
      the other has FPs, or nuclei that are ignored in the first. This part is divided among these
      objects by weight, and belongs to DQ.

    A version without a TP of a class has no SQ for it. The SQ of the other version replaces it, and
    the change belongs to DQ.

    Parameters
    ----------
    diff
        The two versions.
    class_names
        The scored classes, in order.
    """
    rows = diff.rows
    patients, patient = np.unique(rows["patient"].to_numpy(object), return_inverse=True)
    shape = len(patients), len(class_names)
    entries = [_entries(rows, patient, when, class_names) for when in ("before", "after")]
    s, w, tp = np.stack([one.sums(shape) for one in entries], axis=1)
    pq = _quotient(s, w)
    n_classes = (w > 0).sum(axis=2)
    used = (n_classes > 0).all(axis=0)
    n = int(used.sum())
    share = np.where(used, _mean_inverse(n_classes), 0.0) / max(n, 1)
    per_iou = _mean_inverse(w)
    per_weight = _quotient(s.sum(axis=0), 2 * w.prod(axis=0))
    # Classes that are present in one version only: PQ is a mean over more or fewer classes.
    appeared = (w[1] > 0).astype(np.int64) - (w[0] > 0)
    per_class = -_quotient(pq.sum(axis=2).mean(axis=0), n_classes.prod(axis=0)) / max(n, 1)
    by_presence = np.where(used, per_class, 0.0)[:, np.newaxis] * appeared
    of_row = np.zeros(len(rows))
    for sign, one, total in zip((-1, 1), entries, w, strict=True):
        at = one.patient, one.class_index
        part = sign * (per_iou[at] * one.iou - per_weight[at] * one.weight) * share[at[0]]
        part += by_presence[at] * _quotient(one.weight, total[at])
        of_row += np.bincount(one.row, part, len(rows))
    sq, dq = _quotient(s, tp), _quotient(tp, w)
    sq = np.where(tp > 0, sq, sq[::-1])
    sq_part = (sq[1] - sq[0]) * dq.mean(axis=0) * share[:, np.newaxis]
    dq_part = (dq[1] - dq[0]) * sq.mean(axis=0) * share[:, np.newaxis] + by_presence
    means = _quotient(pq.sum(axis=2), n_classes)[:, used]
    by_class = ((pq[1] - pq[0]) * share[:, np.newaxis] + by_presence).sum(axis=0)
    return QualityChange(
        total=float((means[1] - means[0]).mean()) if n else float("nan"),
        sq=float(sq_part.sum()),
        dq=float(dq_part.sum()),
        by_class=dict(zip(class_names, by_class.tolist(), strict=True)),
        of_row=of_row,
        cause=_explaining(rows),
        patients=n,
    )


@dataclass(frozen=True, eq=False)
class _Entries:
    """Contributions of objects to the sums of their classes in one version; some have two."""

    row: NDArray[np.intp]
    patient: NDArray[np.intp]
    class_index: NDArray[np.intp]
    iou: FloatArray
    weight: FloatArray
    is_tp: FloatArray

    def sums(self, shape: tuple[int, int]) -> FloatArray:
        """Return the sums of IoU, weight and TPs, (3, patients, classes)."""
        cell = self.patient * shape[1] + self.class_index
        sums = [
            np.bincount(cell, values, np.prod(shape))
            for values in (self.iou, self.weight, self.is_tp)
        ]
        return np.reshape(sums, (3, *shape))


def _entries(
    rows: pd.DataFrame, patient: NDArray[np.intp], when: str, class_names: Sequence[str]
) -> _Entries:
    import pandas as pd

    names = pd.Index(class_names)
    status = rows[f"status_{when}"].to_numpy(object)
    own = rows["class_before" if when == "before" else "class"]
    there = np.flatnonzero((status != "") & (status != str(Status.IGNORED)))
    wrong = np.flatnonzero(status == str(Status.MISCLASSIFIED))
    row = np.concatenate([there, wrong])
    named = np.concatenate(
        [own.to_numpy(object)[there], rows[f"partner_class_{when}"].to_numpy(object)[wrong]]
    )
    is_tp = status[row] == str(Status.TP)
    return _Entries(
        row=row,
        patient=patient[row],
        class_index=names.get_indexer(pd.Index(named, dtype=object)),
        iou=np.where(is_tp, rows[f"iou_{when}"].to_numpy(np.float64)[row], 0.0),
        weight=np.where(is_tp, 1.0, 0.5),
        is_tp=is_tp.astype(np.float64),
    )


def _explaining(rows: pd.DataFrame) -> NDArray[np.object_]:
    before, after = (rows[f"cause_{when}"].to_numpy(object) for when in ("before", "after"))
    explained: NDArray[np.object_] = np.where(after != "", after, before)
    status = rows[["status_before", "status_after"]]
    for one in (Status.IGNORED, Status.MISCLASSIFIED):
        is_one = (status == str(one)).any(axis=1).to_numpy()
        explained = np.where((explained == "") & is_one, str(one), explained)
    return np.where(explained != "", explained, OUTLINES)


def _mean_inverse(values: NDArray[Any]) -> FloatArray:
    """Return the mean of 1 / old and 1 / new over the values above 0; 0 if neither is."""
    inverse = _quotient(np.ones(values.shape), values)
    return _quotient(inverse.sum(axis=0), (values > 0).sum(axis=0))


def _quotient(above: NDArray[Any], below: NDArray[Any]) -> FloatArray:
    """Return the quotient; 0 where the divisor is 0."""
    return quotients(above, below, undefined=0.0)
