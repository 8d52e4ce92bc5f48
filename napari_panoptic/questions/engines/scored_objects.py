"""The objects of a region with their scores, the input of every analysis of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.values.settings import Matching
from napari_panoptic.values.vocabulary import STATUS_CODE, Side, Status

if TYPE_CHECKING:
    import pandas as pd

FAILED = (Status.FP, Status.MISCLASSIFIED)
"""The predictions that are wrong."""


@dataclass(frozen=True, eq=False)
class ObjectPairs:
    """The pairs of objects that share a pixel outside ignored areas."""

    #: int64 (m,): rows of the objects in the outcomes.
    reference: NDArray[np.int64]
    prediction: NDArray[np.int64]
    #: float64 (m,): intersection over union, after the ambiguous policy.
    iou: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoredRegion:
    """The objects of one team in one region."""

    #: Names of the patient and the region.
    patient: str
    region: str
    #: The outcomes of all objects; the score is in ``outcomes.prediction.score``.
    outcomes: Outcomes
    #: All pairs that share a pixel.
    pairs: ObjectPairs
    #: bool (n,): whether each object is ignored unless it is matched.
    ignored_reference: NDArray[np.bool_]
    ignored_prediction: NDArray[np.bool_]
    #: Whether the matches among some of the predictions are those among all of them. Above an IoU
    #: of 0.5 each object has at most one partner, so that removing a prediction cannot give its
    #: partner another one. By the centroid rule, below 0.5, and where objects share pixels, it can.
    is_unique: bool

    @property
    def counts_for_scores(self) -> NDArray[np.bool_]:
        """Which predictions (bool, m) have a score and are not ignored."""
        prediction = self.outcomes.prediction
        is_ignored = prediction.status == STATUS_CODE[Status.IGNORED]
        has_score: NDArray[np.bool_] = ~np.isnan(prediction.score) & ~is_ignored
        return has_score


def scored_region(evaluation: Evaluation, patient: str, region: str) -> ScoredRegion:
    """Return the objects of an evaluated region with their scores.

    Parameters
    ----------
    evaluation
        Of that region; not changed.
    patient, region
        Names.
    """
    settings, judged = evaluation.settings, evaluation.judged
    return ScoredRegion(
        patient,
        region,
        evaluation.outcomes,
        ObjectPairs(
            judged.pair_reference.astype(np.int64),
            judged.pair_prediction.astype(np.int64),
            judged.iou,
        ),
        judged.ignored_if_unmatched(Side.REFERENCE),
        judged.ignored_if_unmatched(Side.PREDICTION),
        is_unique=settings.matching is Matching.STRICT_IOU
        and not settings.one_to_one_enforced
        and not evaluation.pair.has_planes,
    )


def failures_by_score(regions: Sequence[ScoredRegion]) -> pd.DataFrame:
    """Return the wrong predictions that have a score, the highest score first.

    Returns
    -------
    DataFrame
        Patient, region, and the columns of `Outcomes.side_frame`; FP and misclassified ones.
    """
    import pandas as pd

    frames = []
    for own in regions:
        frame = own.outcomes.side_frame(Side.PREDICTION)
        is_failure = np.isin(frame["status"], [str(status) for status in FAILED])
        frame = frame[is_failure & own.counts_for_scores]
        frame.insert(0, "patient", own.patient)
        frame.insert(1, "region", own.region)
        frames.append(frame)
    if not frames:
        return pd.DataFrame(columns=["patient", "region"])
    found = pd.concat(frames, ignore_index=True)
    return found.sort_values("score", ascending=False, kind="stable", ignore_index=True)
