"""The figures that every evaluation shows, however its pixels were counted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_panoptic.nuclei.metrics import (
    Counts,
    Metrics,
    class_figures,
    class_metrics,
    confusion_frame,
    unit_metrics,
)
from napari_panoptic.nuclei.outcomes import Outcomes


class EvaluatedFigures:
    """Tables and figures from outcomes and their counts, made when they are asked for."""

    outcomes: Outcomes
    counts: Counts

    @cached_property
    def objects(self) -> pd.DataFrame:
        """One row per object: side, id, class, status, cause, partner, IoU, distances, place."""
        return self.outcomes.to_frame()

    @cached_property
    def metrics(self) -> Metrics:
        """The figures of the pair; NaN where undefined."""
        return unit_metrics(self.counts)

    @cached_property
    def class_figures(self) -> Mapping[str, NDArray[np.int64] | NDArray[np.float64]]:
        """The figures of each class: arrays (C,), in the order of the classes."""
        return class_figures(self.counts)

    @cached_property
    def by_class(self) -> pd.DataFrame:
        """The figures of each class."""
        return class_metrics(self.counts)

    @cached_property
    def confusion(self) -> pd.DataFrame:
        """The confusion matrix: rows reference, columns prediction, ``none`` first."""
        return confusion_frame(self.counts)
