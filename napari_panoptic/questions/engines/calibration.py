"""Whether scores are probabilities: the share of right predictions over their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.questions.engines.scored_objects import ScoredRegion
from napari_panoptic.statistics.bootstrap import rate_bands
from napari_panoptic.statistics.means import quotients
from napari_panoptic.values.vocabulary import STATUS_CODE, Status

BINS = 10

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often predictions are right, over bins of their scores.

    A prediction is right if it is a TP: matched, and of the right class. Ignored predictions and
    those without a score do not count.
    """

    #: float64 (b + 1,): ends of the bins. A bin includes its lower end, the last one both.
    edges: FloatArray
    #: int64 (b,): number of predictions in each bin, and of those that are right.
    objects: IntArray
    right: IntArray
    #: float64 (b,): their mean score; NaN in an empty bin.
    score: FloatArray
    #: float64 (b,): 95 % band of the share that is right; see `over_patients`.
    low: FloatArray
    high: FloatArray
    #: Whether the band is the wider of a bootstrap over patients and Wilson's interval over
    #: objects; with fewer than six patients it is the latter, which neglects that those of a
    #: patient are alike.
    over_patients: bool
    #: The ECE to expect of scores that are exactly calibrated, from the number of objects alone.
    by_chance: float

    @property
    def share(self) -> FloatArray:
        """float64 (b,): share of right predictions; NaN in an empty bin."""
        return quotients(self.right, self.objects)

    @property
    def ece(self) -> float:
        """Expected calibration error: mean of |share - score| over the objects; NaN for none."""
        if not self.objects.sum():
            return float("nan")
        filled = self.objects > 0
        gaps = np.abs(self.share - self.score)[filled]
        return float((gaps * self.objects[filled]).sum() / self.objects.sum())


def reliability(regions: Sequence[ScoredRegion]) -> Reliability | None:
    """Compare scores with the share of right predictions.

    The expected calibration error is that of Guo et al., On calibration of modern neural
    networks, ICML 2017, with `BINS` bins of equal width.

    Parameters
    ----------
    regions
        The regions of a team.

    Returns
    -------
    Reliability or None
        None if no prediction has a score, or one is below 0 or above 1: such scores are no
        probabilities.
    """
    nothing = np.zeros(0)
    counts = [region.counts_for_scores for region in regions]
    predictions = [region.outcomes.prediction for region in regions]
    score = np.concatenate(
        [nothing, *(own.score[kept] for own, kept in zip(predictions, counts, strict=True))]
    )
    if not len(score) or score.min() < 0 or score.max() > 1:
        return None
    is_right = np.concatenate(
        [
            own.status[kept] == STATUS_CODE[Status.TP]
            for own, kept in zip(predictions, counts, strict=True)
        ]
    )
    _, of_region = np.unique([region.patient for region in regions], return_inverse=True)
    patient = np.repeat(of_region, [int(kept.sum()) for kept in counts])
    n_patients = int(of_region.max()) + 1
    place = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    cells, size = place * n_patients + patient, BINS * n_patients
    objects = np.bincount(cells, minlength=size).reshape(BINS, n_patients)
    right = np.bincount(cells[is_right], minlength=size).reshape(BINS, n_patients)
    bands = rate_bands(right, objects)
    n = objects.sum(axis=1)
    sums = np.bincount(place, score, minlength=BINS)
    variance = np.bincount(place, score * (1 - score), minlength=BINS)
    return Reliability(
        edges=np.linspace(0.0, 1.0, BINS + 1),
        objects=n,
        right=right.sum(axis=1),
        score=quotients(sums, n),
        low=bands.low,
        high=bands.high,
        over_patients=bands.over_groups,
        # The mean of the size of a normal deviate with this variance.
        by_chance=float(np.sqrt(2 * variance / np.pi).sum() / n.sum()),
    )
