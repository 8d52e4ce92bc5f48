"""The choice of the best of several settings, and what it is worth for new patients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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
    figures
        float64 (n, k): the figures that are compared, as `comparable` returns them.
    is_filled
        bool (n,): which patients have a figure under some settings only.
    means
        float64 (k,): mean of each setting, over the same patients for all; NaN without any.
    best
        The setting of the best mean; the first of equals, None if there is no figure.
    chosen
        Per patient: the setting that is best over all other patients; None for a single patient.
    at_best
        float64 (n,): each patient's figure under the best setting.
    left_out
        float64 (n,): each patient's figure under the setting that the others chose.
    higher_is_better
        Whether the highest mean is the best.
    """

    figures: FloatArray
    is_filled: NDArray[np.bool_]
    means: FloatArray
    best: int | None
    chosen: tuple[int | None, ...]
    at_best: FloatArray
    left_out: FloatArray
    higher_is_better: bool = True

    @property
    def optimistic(self) -> float:
        """The mean at the best setting: too good, since the same patients chose it."""
        return math.nan if self.best is None else float(self.means[self.best])

    @cached_property
    def honest(self) -> Interval:
        """The mean of `left_out` with its interval: what to expect of new patients."""
        return mean_interval(self.left_out)

    @cached_property
    def optimism(self) -> Interval:
        """By how much `at_best` is better than `left_out`, paired by patient, with its interval."""
        gain = self.at_best - self.left_out
        return mean_interval(gain if self.higher_is_better else -gain)


def choose(
    figures: Sequence[Sequence[float]] | FloatArray, *, higher_is_better: bool = True
) -> Choice:
    """Choose the setting with the best mean over patients, and once without each patient.

    Parameters
    ----------
    figures
        float64 (n, k): of n patients under k settings; NaN if undefined, see `comparable`.
    higher_is_better
        Whether the highest mean is the best; the lowest otherwise.
    """
    given = np.asarray(figures, np.float64)
    values = comparable(given, higher_is_better=higher_is_better)
    sign = 1.0 if higher_is_better else -1.0
    n, undefined = len(values), np.full(len(values), np.nan)
    best = _best(sign * values)
    chosen = tuple(_best(sign * np.delete(values, row, axis=0)) for row in range(n))
    return Choice(
        figures=values,
        is_filled=(np.isnan(given) & ~np.isnan(values)).any(axis=1),
        means=_means(values),
        best=best,
        chosen=chosen,
        at_best=undefined if best is None else values[:, best],
        left_out=np.array(
            [math.nan if at is None else values[row, at] for row, at in enumerate(chosen)],
            np.float64,
        ),
        higher_is_better=higher_is_better,
    )


def comparable(figures: FloatArray, *, higher_is_better: bool = True) -> FloatArray:
    """Return figures of which every setting has the same patients.

    A patient without a figure under some settings counts there with the worst figure that any
    setting gives the patient: a setting that finds nothing in a difficult patient must not win
    by that. Patients without any figure are undefined under all settings.

    Parameters
    ----------
    figures
        float64 (n, k): of n patients under k settings; NaN if undefined.
    higher_is_better
        Whether the lowest figure is the worst; the highest otherwise.
    """
    if not figures.shape[1]:
        return figures
    worst = (np.fmin if higher_is_better else np.fmax).reduce(figures, axis=1)
    return np.where(np.isnan(figures), worst[:, np.newaxis], figures)


def _best(values: FloatArray) -> int | None:
    """Return the column with the highest mean, the first of equals; None if there is none."""
    means = _means(values)
    if np.isnan(means).all():
        return None
    highest = float(np.nanmax(means))
    return int(np.flatnonzero(means >= highest - ROUNDING * abs(highest))[0])


def _means(values: FloatArray) -> FloatArray:
    """Return the mean of what is defined in each column."""
    counts = (~np.isnan(values)).sum(axis=0)
    means: FloatArray = np.full(values.shape[1], np.nan)
    np.divide(np.nansum(values, axis=0), counts, out=means, where=counts > 0)
    return means
