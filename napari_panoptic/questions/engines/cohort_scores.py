"""The scores of a team over a cohort, and their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from napari_panoptic.common.findings import Finding
from napari_panoptic.common.text import counted
from napari_panoptic.questions.engines.calibration import Reliability, reliability
from napari_panoptic.questions.engines.precision import (
    PrecisionRecall,
    average_precisions,
    precision_recall,
)
from napari_panoptic.questions.engines.scored_objects import (
    ScoredRegion,
    failures_by_score,
)
from napari_panoptic.questions.engines.thresholds import (
    BestThreshold,
    ThresholdCurve,
    best_threshold,
    threshold_curve,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class CohortScores:
    """The scored objects of a team over a cohort; figures are computed on first use."""

    #: Name of the team.
    team: str
    #: The regions that could be evaluated.
    regions: Sequence[ScoredRegion]
    #: Problems found, and files that could not be read.
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        counts = counted(self.predictions, "prediction"), counted(len(self.regions), "region")
        return f"<CohortScores{self.team and f' of {self.team}'}: {' in '.join(counts)}>"

    @cached_property
    def predictions(self) -> int:
        """The number of predictions."""
        return sum(len(region.outcomes.prediction) for region in self.regions)

    @cached_property
    def unscored(self) -> int:
        """The number of predictions without a score."""
        return sum(int(np.isnan(region.outcomes.prediction.score).sum()) for region in self.regions)

    @property
    def has_scores(self) -> bool:
        """Whether any prediction has a score."""
        return self.unscored < self.predictions

    @property
    def has_curve(self) -> bool:
        """Whether figures over thresholds are available; see `ScoredRegion.is_unique`."""
        return self.has_scores and all(region.is_unique for region in self.regions)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The scored classes, in order; empty without regions."""
        return self.regions[0].outcomes.class_names if self.regions else ()

    @cached_property
    def average_precisions(self) -> pd.DataFrame:
        """Average precision: a row per class and one ``mean``, a column per IoU of COCO."""
        return average_precisions(self.regions)

    def precision_recall(self, iou: float, class_name: str = "") -> PrecisionRecall:
        """Return precision and recall over the detections of a class, or of all as one."""
        return precision_recall(self.regions, iou, class_name)

    @cached_property
    def reliability(self) -> Reliability | None:
        """Scores against the share of right predictions; None if they are not probabilities."""
        return reliability(self.regions)

    @cached_property
    def failures(self) -> pd.DataFrame:
        """The wrong predictions, the highest score first."""
        return failures_by_score(self.regions)

    @cached_property
    def curve(self) -> ThresholdCurve | None:
        """Figures over thresholds; None if not available."""
        return threshold_curve(self.regions) if self.has_curve else None

    def best(self, figure: str = "pq") -> BestThreshold | None:
        """Return the threshold at which a figure is best; None if curves are not available."""
        return None if self.curve is None else best_threshold(self.curve, figure)
