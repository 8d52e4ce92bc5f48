"""Sign-flip test of paired differences, and the limits that agree with it.

If neither version is better, each patient's difference has either sign with equal
chance. The test compares the mean with the means under all such signs (Fisher's
randomisation test). Subtracting a boundary from all differences first tests
whether the mean lies above or below that boundary.

Flipping the signs of a set of patients raises the mean exactly if the mean of
these patients alone lies below the boundary. So the means of all sets of patients
answer the test for every boundary at once, and their order statistics are its
confidence limits (Hartigan, JASA 1969: typical values).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_panoptic.statistics.bootstrap import SEED
from napari_panoptic.statistics.friedman import SIGNIFICANCE
from napari_panoptic.statistics.ranks import ROUNDING

EXACT_UP_TO = 16
"""Up to this number of patients all signs are tried; above, some are drawn."""
DRAWS = 20_000
LEAST_PATIENTS = 8
"""With fewer, nothing is decided: many such cohorts lack the patients who lose most."""
POWER = 0.8
_DRAWN_AT_ONCE = 2**24


@dataclass(frozen=True, eq=False)
class SignFlips:
    """The sign-flip distribution of some differences."""

    #: Number of patients.
    n: int
    #: float64 (k,): means of the differences of sets of patients, ascending.
    set_means: NDArray[np.float64]
    #: Number of signs that count, the observed ones included.
    n_signs: int
    #: Whether these are all signs there are.
    is_exact: bool
    #: Means that differ by no more are equal.
    tolerance: float

    def p_above(self, boundary: float) -> float:
        """Return the one-sided p-value that the mean lies above a boundary; NaN without patients.

        It is the share of signs under which the mean is at least as far above.
        """
        return self._p(int((self.set_means <= boundary + self.tolerance).sum()))

    def p_below(self, boundary: float) -> float:
        """Return the one-sided p-value that the mean lies below a boundary; see `p_above`."""
        return self._p(int((self.set_means >= boundary - self.tolerance).sum()))

    def p_two_sided(self, boundary: float = 0.0) -> float:
        """Return the p-value that the mean differs from a boundary: twice the smaller tail."""
        if self.n == 0:
            return math.nan
        return min(1.0, 2 * min(self.p_above(boundary), self.p_below(boundary)))

    def limits(self, alpha: float = SIGNIFICANCE) -> tuple[float, float]:
        """Return the boundaries between which neither one-sided p-value is below alpha.

        They are the ends of an interval of level 1 - 2 alpha; infinite if there
        are too few patients, NaN without any.
        """
        if self.n == 0:
            return math.nan, math.nan
        # The largest number of sets with which the p-value is still below alpha.
        most = math.ceil(alpha * self.n_signs) - 1 - self._always
        if most < 0:
            return -math.inf, math.inf
        return float(self.set_means[most]), float(self.set_means[-1 - most])

    @property
    def _always(self) -> int:
        """Signs that flip nothing: the observed ones, and equal ones among those drawn."""
        return self.n_signs - len(self.set_means)

    def _p(self, n_sets: int) -> float:
        return math.nan if self.n == 0 else (self._always + n_sets) / self.n_signs


def sign_flips(
    differences: ArrayLike,
    *,
    exact_up_to: int = EXACT_UP_TO,
    draws: int = DRAWS,
    seed: int = SEED,
) -> SignFlips:
    """Return the sign-flip distribution of paired differences.

    Parameters
    ----------
    differences
        float64 (n,): one per patient, all defined.
    exact_up_to
        Up to this number of patients all 2^n signs count.
    draws
        Number of random signs above; the observed ones count beside them, so that no
        p-value is 0 (Phipson and Smyth, Stat Appl Genet Mol Biol 2010).
    seed
        Seed of the random signs (`numpy.random.default_rng`).

    Raises
    ------
    ValueError
        For an undefined difference.
    """
    values = np.asarray(differences, np.float64)
    if np.isnan(values).any():
        raise ValueError("expected defined differences, found NaN: leave such patients out")
    n = len(values)
    tolerance = ROUNDING * float(np.abs(values).max(initial=0.0))
    if n <= exact_up_to:
        sums, sizes = np.zeros(1), np.zeros(1)
        for value in values:
            sums = np.concatenate([sums, sums + value])
            sizes = np.concatenate([sizes, sizes + 1])
        return SignFlips(n, np.sort(sums[1:] / sizes[1:]), 2**n, True, tolerance)
    rng = np.random.default_rng(seed)
    step = max(1, _DRAWN_AT_ONCE // n)
    parts = []
    for start in range(0, draws, step):
        flipped = rng.integers(0, 2, (min(step, draws - start), n), dtype=np.int8)
        sizes = flipped.sum(axis=1, dtype=np.int64)
        parts.append((flipped @ values)[sizes > 0] / sizes[sizes > 0])
    return SignFlips(n, np.sort(np.concatenate(parts)), draws + 1, False, tolerance)


def patients_needed(distance: float, sd: float, *, tail: float = SIGNIFICANCE) -> int | None:
    """Return how many patients would decide a mean difference, if it is as observed.

    n = ((z_(1 - tail) + z_power) sd / distance)^2 + z_(1 - tail)^2 / 2, rounded up, and at
    least `LEAST_PATIENTS`: the normal approximation of a one-sample t-test with
    Guenther's correction (The American Statistician 1981), to which the sign-flip
    test is asymptotically equivalent.

    Parameters
    ----------
    distance
        Observed mean difference, less the boundary it is compared with.
    sd
        Standard deviation of the differences over patients.
    tail
        Significance level of one tail: 0.05 one-sided, 0.025 two-sided.

    Returns
    -------
    int or None
        None if the distance is 0 or something is undefined: no number decides it.
    """
    if math.isnan(distance) or math.isnan(sd) or abs(distance) <= ROUNDING * sd or distance == 0:
        return None
    z = NormalDist().inv_cdf
    exact = ((z(1 - tail) + z(POWER)) * sd / distance) ** 2 + z(1 - tail) ** 2 / 2
    return max(LEAST_PATIENTS, math.ceil(exact))
