"""The choice of the best of several settings, and what it is worth for new patients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.statistics.bootstrap import Interval, mean_interval
from napari_panoptic.statistics.ranks import ROUNDING

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Choice:
    """The best of k settings, chosen over all patients, and once without each patient.

    Parameters
    ----------
    means
        Mean of each setting over the patients with a figure, with its interval.
    best
        The setting of the best mean; the first of equals, None if there is no figure.
    chosen
        Per patient: the setting that is best over all other patients; None for a single patient.
    left_out
        float64 (n,): each patient's figure under the setting that the others chose.
    honest
        The mean of `left_out`: what to expect of new patients.
    optimism
        By how much the figure at the best setting exceeds `left_out`, paired by patient; positive
        if the choice flatters, whether high or low figures are better.
    """

    means: tuple[Interval, ...]
    best: int | None
    chosen: tuple[int | None, ...]
    left_out: FloatArray
    honest: Interval
    optimism: Interval

    @property
    def optimistic(self) -> float:
        """The mean at the best setting: too good, since the same patients chose it."""
        return math.nan if self.best is None else self.means[self.best].mean


def choose(
    figures: Sequence[Sequence[float]] | FloatArray, *, higher_is_better: bool = True
) -> Choice:
    """Choose the setting with the best mean over patients, and once without each patient.

    Parameters
    ----------
    figures
        float64 (n, k): of n patients under k settings; NaN if undefined. Means are over the
        patients with a figure.
    higher_is_better
        Whether the highest mean is the best; the lowest otherwise.
    """
    values = np.asarray(figures, np.float64)
    sign = 1.0 if higher_is_better else -1.0
    best = best_column(sign * values)
    chosen = tuple(best_column(sign * np.delete(values, row, axis=0)) for row in range(len(values)))
    left_out = np.array(
        [math.nan if at is None else values[row, at] for row, at in enumerate(chosen)], np.float64
    )
    at_best = np.full(len(values), math.nan) if best is None else values[:, best]
    return Choice(
        means=tuple(mean_interval(column) for column in values.T),
        best=best,
        chosen=chosen,
        left_out=left_out,
        honest=mean_interval(left_out),
        optimism=mean_interval(sign * (at_best - left_out)),
    )


def best_column(values: FloatArray) -> int | None:
    """Return the column (of n, k) with the highest mean of what is defined, the first of equals.

    None if nothing is defined.
    """
    defined = ~np.isnan(values)
    means = np.full(values.shape[1], np.nan)
    sums, counts = np.where(defined, values, 0.0).sum(axis=0), defined.sum(axis=0)
    np.divide(sums, counts, out=means, where=counts > 0)
    if np.isnan(means).all():
        return None
    highest = float(np.nanmax(means))
    return int(np.flatnonzero(means >= highest - ROUNDING * abs(highest))[0])
