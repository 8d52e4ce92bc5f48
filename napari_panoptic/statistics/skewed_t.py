"""Student's t statistic of a mean, corrected for skewness.

Of few patients of whom some lose much, most samples lack these losses: their mean is too high
and their standard deviation too small at once. Hall's transformation removes the effect of the
skewness on the t statistic, and can be inverted (Journal of the Royal Statistical Society B 54,
1992).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from napari_panoptic.statistics.ranks import ROUNDING

LEAST = 3
"""With fewer figures their skewness is undefined."""


@dataclass(frozen=True)
class SkewedT:
    """The mean of some figures, and what the distribution of its t statistic depends on."""

    #: Number, mean and sample standard deviation of the figures.
    n: int
    mean: float
    sd: float
    #: Their skewness; 0 if the figures are equal.
    skewness: float

    def p_above(self, boundary: float) -> float:
        """Return the one-sided p-value that the mean lies above a boundary."""
        return self._cumulated(boundary, 1.0)

    def p_below(self, boundary: float) -> float:
        """Return the one-sided p-value that the mean lies below a boundary."""
        return self._cumulated(boundary, -1.0)

    def limits(self, alpha: float) -> tuple[float, float]:
        """Return the boundaries between which neither one-sided p-value is below alpha."""
        below, above = self.reach(alpha)
        error = self.sd / math.sqrt(self.n)
        return self.mean - below * error, self.mean + above * error

    def reach(self, alpha: float) -> tuple[float, float]:
        """Return how many standard errors the limits lie below and above the mean."""
        from scipy.special import stdtrit

        t = float(stdtrit(self.n - 1, 1 - alpha))
        return self._inverse(t), -self._inverse(-t)

    def _cumulated(self, boundary: float, sign: float) -> float:
        from scipy.special import stdtr

        if not self.sd:
            return 0.0 if sign * (self.mean - boundary) > 0 else 1.0
        t, skew = (self.mean - boundary) / self.sd, self.skewness
        corrected = t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / (6 * self.n)
        return float(stdtr(self.n - 1, -sign * math.sqrt(self.n) * corrected))

    def _inverse(self, t: float) -> float:
        """Return the t statistic whose transformation is t."""
        if abs(self.skewness) < ROUNDING:
            return t
        corrected = t / math.sqrt(self.n) - self.skewness / (6 * self.n)
        root = float(np.cbrt(1 + self.skewness * corrected))
        return math.sqrt(self.n) * 3 * (root - 1) / self.skewness


def skewed_t(figures: ArrayLike, *, factor: float = 1.0) -> SkewedT:
    """Return the skewness-corrected t statistic of figures.

    Parameters
    ----------
    figures
        float64 (n,): all defined, n at least `LEAST`.
    factor
        Factor of the skewness, which few figures underestimate.
    """
    values = np.asarray(figures, np.float64)
    n, mean, sd = len(values), float(values.mean()), float(values.std(ddof=1))
    if sd <= ROUNDING * float(np.abs(values).max()):
        return SkewedT(n, mean, 0.0, 0.0)
    third = float(((values - mean) ** 3).mean() / values.std() ** 3)
    unbiased = math.sqrt(n * (n - 1)) / (n - 2)
    return SkewedT(n, mean, sd, factor * unbiased * third)
