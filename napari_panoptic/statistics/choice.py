"""The choice of the best of several settings, and what it is worth for new patients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.statistics.bootstrap import (
    LEAST_GROUPS,
    LEVEL,
    SEED,
    Interval,
    IntervalMethod,
    mean_interval,
)
from napari_panoptic.statistics.means import means_defined
from napari_panoptic.statistics.ranks import ROUNDING
from napari_panoptic.statistics.skewed_t import skewed_t

RESAMPLES = 1000
"""Of the patients and, with them, of the choice; only a standard deviation is taken from them."""
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BestSetting:
    """The best of k settings, chosen over all patients, and once without each patient."""

    #: float64 (n, k): the figures that are compared, as `comparable` returns them.
    figures: FloatArray
    #: bool (n,): which patients have a figure under some settings only.
    is_filled: NDArray[np.bool_]
    #: float64 (k,): mean of each setting, over the same patients for all; NaN without any.
    means: FloatArray
    #: The setting of the best mean; the first of equals, None if there is no figure.
    best: int | None
    #: Per patient: the setting that is best over all other patients; None for a single patient.
    chosen: tuple[int | None, ...]
    #: float64 (n,): each patient's figure under the best setting.
    at_best: FloatArray
    #: float64 (n,): each patient's figure under the setting that the others chose.
    left_out: FloatArray
    #: Whether the highest mean is the best.
    higher_is_better: bool = True

    @property
    def optimistic(self) -> float:
        """The mean at the best setting: too good, since the same patients chose it."""
        return math.nan if self.best is None else float(self.means[self.best])

    @cached_property
    def honest(self) -> Interval:
        """The mean of `left_out` with its interval: what to expect of new patients."""
        return self._interval(self.left_out, self._resampled[1])

    @cached_property
    def optimism(self) -> Interval:
        """By how much `at_best` is better than `left_out`, paired by patient, with its interval."""
        sign = 1.0 if self.higher_is_better else -1.0
        at_best, left_out = self._resampled
        return self._interval(sign * (self.at_best - self.left_out), sign * (at_best - left_out))

    def gain_over(self, setting: int) -> Interval:
        """Return the mean of `left_out` minus the figures of a setting, with its interval."""
        means = self._weights @ self._used[:, setting] / max(len(self._used), 1)
        return self._interval(self.left_out - self.figures[:, setting], self._resampled[1] - means)

    @cached_property
    def _used(self) -> FloatArray:
        """The figures of patients who have any."""
        used: FloatArray = self.figures[~np.isnan(self.figures).any(axis=1)]
        return used

    @cached_property
    def _weights(self) -> FloatArray:
        """How often each of these patients is in each resample."""
        n = len(self._used)
        if not n:
            return np.zeros((RESAMPLES, 0))
        drawn = np.random.default_rng(SEED).multinomial(n, np.full(n, 1 / n), RESAMPLES)
        return drawn.astype(np.float64)

    @cached_property
    def _resampled(self) -> tuple[FloatArray, FloatArray]:
        """The means of `at_best` and `left_out` when each resample makes the choice again.

        All copies of a patient are left out together.
        """
        values, weights = self._used, self._weights
        sign = 1.0 if self.higher_is_better else -1.0
        sums = weights @ values
        scale = np.abs(sums).max(axis=1, initial=0.0)
        left_out = np.zeros(len(weights))
        for row, figures in enumerate(values):
            drawn = np.flatnonzero(weights[:, row])
            times = weights[drawn, row]
            others = sums[drawn] - times[:, np.newaxis] * figures
            left_out[drawn] += times * figures[_first_best(sign * others, scale[drawn])]
        at_best = sign * (sign * sums).max(axis=1)
        return at_best / max(len(values), 1), left_out / max(len(values), 1)

    def _interval(self, figures: FloatArray, resampled: FloatArray) -> Interval:
        """Return the mean of figures that share one choice, with its interval.

        An interval of independent figures would be too narrow. The standard error is that of the
        resampled means, in which the choice varies too, unless that of independent figures is
        larger. The interval is that of Student's t, wider on the side of a skewed tail.
        """
        values = figures[~np.isnan(figures)]
        n = len(values)
        if n < LEAST_GROUPS:
            mean = float(values.mean()) if n else math.nan
            why = f"an interval of a choice needs at least {LEAST_GROUPS} patients, found {n}"
            return Interval(n, mean, math.nan, math.nan, IntervalMethod.UNDEFINED, why)
        of_choice = float(resampled.std(ddof=1)) * math.sqrt(n / (n - 1))
        found = skewed_t(values)
        error = max(of_choice, found.sd / math.sqrt(n))
        if error <= ROUNDING * float(np.abs(self._used).max()):
            return mean_interval(values)
        # Never narrower than the symmetric interval of Student's t.
        symmetric = replace(found, skewness=0.0).reach((1 - LEVEL) / 2)
        below, above = map(max, found.reach((1 - LEVEL) / 2), symmetric)
        why = "the choice is resampled together with the patients"
        low, high = found.mean - below * error, found.mean + above * error
        return Interval(n, found.mean, low, high, IntervalMethod.STUDENTISED, why)


def choose(
    figures: Sequence[Sequence[float]] | FloatArray, *, higher_is_better: bool = True
) -> BestSetting:
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
    return BestSetting(
        figures=values,
        is_filled=np.asarray((np.isnan(given) & ~np.isnan(values)).any(axis=1)),
        means=means_defined(values, axis=0),
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
    means = means_defined(values, axis=0)
    if np.isnan(means).all():
        return None
    return int(_first_best(means, np.nanmax(np.abs(means))))


def _first_best(values: FloatArray, scale: FloatArray) -> NDArray[np.intp]:
    """Return the columns of the highest values (..., k), the first of equals.

    Values that differ by no more than a rounding error are equal; see `ROUNDING`. `scale` (...) is
    the largest of the figures that they were computed from.
    """
    highest = np.nanmax(values, axis=-1, keepdims=True)
    columns: NDArray[np.intp] = (values >= highest - ROUNDING * scale[..., np.newaxis]).argmax(-1)
    return columns
