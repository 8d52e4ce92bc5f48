"""Precision and recall over scores, and average precision as COCO computes it.

Detections are matched in the order of their scores, each with the free reference object of its
class of highest IoU, as in https://github.com/cocodataset/cocoapi (COCOeval, masks). Unlike
there, the number of detections is not limited to 100 per image by default, and detections of one
score count together: COCO ranks them by image, so that its figure depends on the order of images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.questions.engines.scored_objects import ScoredRegion

if TYPE_CHECKING:
    import pandas as pd

COCO_IOUS: tuple[float, ...] = tuple(np.linspace(0.5, 0.95, 10).tolist())
"""The IoU thresholds over which COCO averages."""
RECALLS = np.linspace(0.0, 1.0, 101)
"""The recalls at which COCO reads precision."""
_HIGHEST_IOU = 1 - 1e-10

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Precision and recall over the scores of the detections of a class, the highest first."""

    #: The class; empty for all classes as one.
    class_name: str
    #: A pair matches from this IoU on.
    iou: float
    #: float64 (k,): at each distinct score, of all detections with this score or a higher one.
    score: FloatArray
    precision: FloatArray
    recall: FloatArray
    #: The number of reference objects.
    references: int

    @property
    def average_precision(self) -> float:
        """Mean of the interpolated precision at `RECALLS`; NaN without a reference object."""
        return float(self.at_recalls()[0].mean())

    def at_recalls(self) -> tuple[FloatArray, FloatArray]:
        """Interpolate precision.

        Returns
        -------
        precision
            float64 (101,): the highest precision at each of `RECALLS` or a higher recall; 0 where
            none is reached, NaN without a reference object.
        score
            float64 (101,): the highest threshold at which that recall is reached, NaN where none
            is.
        """
        if not self.references:
            return np.full(len(RECALLS), np.nan), np.full(len(RECALLS), np.nan)
        envelope = np.maximum.accumulate(self.precision[::-1])[::-1]
        places = np.searchsorted(self.recall, RECALLS, side="left")
        return np.append(envelope, 0.0)[places], np.append(self.score, np.nan)[places]


def precision_recall(
    regions: Sequence[ScoredRegion], iou: float, class_name: str = ""
) -> PrecisionRecall:
    """Return precision and recall over the detections of a class.

    Predictions without a score are not detections. Objects that the ambiguous policy ignores are
    left out; so are detections that match such a reference object, and unmatched detections that
    the policy ignores then.

    Parameters
    ----------
    regions
        The regions of a team.
    iou
        A pair matches from this IoU on.
    class_name
        The class; empty for all classes as one.
    """
    parts = [_matched(region, iou, class_name) for region in regions]
    nothing = np.zeros(0)
    score = np.concatenate([nothing, *(part.score for part in parts)])
    order = np.argsort(-score, kind="stable")
    is_tp = np.concatenate([nothing > 0, *(part.is_tp for part in parts)])[order]
    score = score[order]
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True)) if len(score) else order
    tp = np.cumsum(is_tp)[last]
    references = sum(part.references for part in parts)
    return PrecisionRecall(
        class_name,
        iou,
        score[last],
        tp / (last + 1),
        tp / max(references, 1),
        references,
    )


def average_precisions(
    regions: Sequence[ScoredRegion], ious: Sequence[float] = COCO_IOUS
) -> pd.DataFrame:
    """Return average precision per class and IoU.

    Parameters
    ----------
    regions
        The regions of a team.
    ious
        The IoU thresholds.

    Returns
    -------
    DataFrame
        A row per class, and one ``mean`` over the classes with a reference object; a column per
        IoU. NaN where there is no reference object. The mean of row ``mean`` is COCO's AP.
    """
    import pandas as pd

    names = regions[0].outcomes.class_names if regions else ()
    rows = {
        name: [precision_recall(regions, iou, name).average_precision for iou in ious]
        for name in names
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(ious), dtype=np.float64)
    table.loc["mean"] = table.mean(axis=0)
    return table.rename_axis("class")


@dataclass(frozen=True, eq=False)
class _Detections:
    """The detections of a region that count: their scores and whether they match."""

    score: FloatArray
    is_tp: BoolArray
    references: int


def _matched(region: ScoredRegion, iou: float, class_name: str) -> _Detections:
    """Match the detections of a region."""
    reference, prediction = region.outcomes.reference, region.outcomes.prediction
    is_detection = ~np.isnan(prediction.score)
    is_reference = np.ones(len(reference), np.bool_)
    if class_name:
        number = region.outcomes.class_names.index(class_name) + 1
        is_detection &= prediction.class_index == number
        is_reference &= reference.class_index == number
    pairs = region.pairs
    chosen = pairs.iou >= min(iou, _HIGHEST_IOU)
    chosen &= is_detection[pairs.prediction] & is_reference[pairs.reference]
    partner = _partners(
        pairs.reference[chosen],
        pairs.prediction[chosen],
        pairs.iou[chosen],
        prediction.score,
        region.ignored_reference,
    )
    is_matched = partner >= 0
    left_out = (
        np.where(is_matched, region.ignored_reference[partner], region.ignored_prediction)
        if len(reference)
        else region.ignored_prediction
    )
    counts = is_detection & ~left_out
    return _Detections(
        prediction.score[counts],
        is_matched[counts],
        int(np.count_nonzero(is_reference & ~region.ignored_reference)),
    )


def _partners(
    rows: IntArray, columns: IntArray, iou: FloatArray, score: FloatArray, ignored: BoolArray
) -> IntArray:
    """Return int64 (m,): the reference object that each detection matches, -1 for none."""
    partner = np.full(len(score), -1, np.int64)
    if not len(rows):
        return partner
    # Most detections compete for nothing: above an IoU of 0.5 all but those that share pixels.
    is_alone = (np.bincount(rows)[rows] == 1) & (np.bincount(columns)[columns] == 1)
    partner[columns[is_alone]] = rows[is_alone]
    contested = np.flatnonzero(~is_alone)
    # By score, the highest first, then as in the file; the candidates of a detection with those
    # that are ignored last, since COCO prefers the others whatever their IoU.
    order = np.lexsort(
        (
            rows[contested],
            ignored[rows[contested]],
            columns[contested],
            -score[columns[contested]],
        )
    )
    taken: set[int] = set()
    best: tuple[int, float, int] = (-1, 0.0, -1)
    for place in contested[order].tolist():
        row, column = int(rows[place]), int(columns[place])
        if column != best[0]:
            taken.add(best[2])
            best = (column, 0.0, -1)
        is_worse = best[2] >= 0 and ignored[row] and not ignored[best[2]]
        if row not in taken and not is_worse and iou[place] >= best[1]:
            best = (column, float(iou[place]), row)
            partner[column] = row
    return partner
