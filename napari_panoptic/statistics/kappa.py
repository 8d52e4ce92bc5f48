"""Cohen's kappa: the agreement of two reviewers beyond chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Z_95 = 1.959963984540054
"""97.5th percentile of the standard normal distribution."""


@dataclass(frozen=True, eq=False)
class Kappa:
    """Two reviewers compared over the objects that both have judged."""

    #: The verdicts that occur, in the requested order.
    categories: tuple[str, ...]
    #: int64 (c, c): objects by verdict of the first (rows) and of the second reviewer (columns).
    table: NDArray[np.int64]
    #: Share of objects with the same verdict; NaN without objects.
    observed: float
    #: Share expected by chance, from the frequencies of each reviewer's verdicts; NaN without
    #: objects.
    expected: float
    #: (observed - expected) / (1 - expected); NaN if that is 0 / 0: without objects, or if both
    #: always gave the same verdict.
    kappa: float
    #: 95 % interval of kappa, within -1 and 1; NaN if kappa is. It is an approximation for large
    #: numbers, which shrinks to a point for perfect agreement however few objects there are.
    low: float
    high: float

    @property
    def n(self) -> int:
        """Number of objects that both have judged."""
        return int(self.table.sum())


def cohens_kappa(
    first: Sequence[str], second: Sequence[str], *, order: Sequence[str] = ()
) -> Kappa:
    """Compare two reviewers' verdicts on the same objects.

    Kappa is that of Cohen (Educational and Psychological Measurement 1960).
    Its interval is kappa +- 1.96 standard errors, with the large-sample
    variance of Fleiss, Cohen and Everitt (Psychological Bulletin 1969): with
    shares p_ij of the table, margins r_i and c_j, observed agreement o, expected
    agreement e and n objects,

    var = (sum_i p_ii ((1 - e) - (r_i + c_i)(1 - o))^2
    + (1 - o)^2 sum_{i != j} p_ij (c_i + r_j)^2 - (o e - 2 e + o)^2) / (n (1 - e)^4).

    Parameters
    ----------
    first, second
        A verdict per object, in the same order of objects.
    order
        Order of the verdicts in the table; others follow, sorted.

    Raises
    ------
    ValueError
        If the two differ in length.
    """
    if len(first) != len(second):
        raise ValueError(
            f"both reviewers need a verdict for each object, found {len(first)} and {len(second)}"
        )
    found = {*first, *second}
    categories = (*(c for c in dict.fromkeys(order) if c in found), *sorted(found - {*order}))
    number = {category: i for i, category in enumerate(categories)}
    table = np.zeros((len(categories), len(categories)), np.int64)
    np.add.at(table, ([number[a] for a in first], [number[b] for b in second]), 1)
    return _kappa(categories, table)


def _kappa(categories: tuple[str, ...], table: NDArray[np.int64]) -> Kappa:
    n = int(table.sum())
    if n == 0:
        nan = math.nan
        return Kappa(categories, table, nan, nan, nan, nan, nan)
    observed = int(np.trace(table)) / n
    # Whole numbers: "always the same verdict" is recognised without rounding.
    by_chance = int(table.sum(axis=1) @ table.sum(axis=0))
    expected = by_chance / n**2
    if by_chance == n**2:
        return Kappa(categories, table, observed, expected, math.nan, math.nan, math.nan)
    kappa = (observed - expected) / (1 - expected)
    margin = Z_95 * _standard_error(table / n, n, observed, expected)
    return Kappa(
        categories,
        table,
        observed,
        expected,
        kappa,
        low=max(-1.0, kappa - margin),
        high=min(1.0, kappa + margin),
    )


def _standard_error(shares: NDArray[np.float64], n: int, observed: float, expected: float) -> float:
    if observed == 1.0:
        return 0.0  # exactly, without rounding errors
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    agreed = np.diag(shares)
    on = float((agreed * ((1 - expected) - (rows + columns) * (1 - observed)) ** 2).sum())
    off_shares = shares - np.diag(agreed)
    off = float((off_shares * (columns[:, None] + rows[None, :]) ** 2).sum())
    centre = observed * expected - 2 * expected + observed
    variance = (on + (1 - observed) ** 2 * off - centre**2) / (n * (1 - expected) ** 4)
    # A variance of zero may come out just below it.
    return math.sqrt(max(0.0, variance))
