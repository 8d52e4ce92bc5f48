from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.statistics.kappa import Kappa, cohens_kappa


def compare(table: list[list[int]]) -> Kappa:
    """Write out a table as two lists of verdicts, and compare them."""
    names = "abcdef"
    pairs = [
        (names[i], names[j])
        for i, row in enumerate(table)
        for j, count in enumerate(row)
        for _ in range(count)
    ]
    return cohens_kappa([a for a, _ in pairs], [b for _, b in pairs])


def test_worked_by_hand() -> None:
    # Of 50: 20 both yes, 15 both no. o = 35/50; the first says yes in 25/50, the second in 30/50:
    # e = 0.5 * 0.6 + 0.5 * 0.4 = 0.5; kappa = 0.2 / 0.5.
    found = compare([[20, 5], [10, 15]])
    assert (found.n, found.observed, found.expected) == (50, 0.7, 0.5)
    assert found.kappa == pytest.approx(0.4, abs=1e-15)
    # Agreed: 0.4 (0.5 - 1.1 * 0.3)^2 + 0.3 (0.5 - 0.9 * 0.3)^2 = 0.01156 + 0.01587.
    # Apart: 0.3^2 (0.1 (0.6 + 0.5)^2 + 0.2 (0.4 + 0.5)^2) = 0.09 * 0.283; centre: 0.35 - 1 + 0.7.
    variance = (0.01156 + 0.01587 + 0.09 * 0.283 - 0.05**2) / (50 * 0.5**4)
    assert found.low == pytest.approx(0.4 - 1.959964 * math.sqrt(variance), abs=1e-6)
    assert found.high == pytest.approx(0.4 + 1.959964 * math.sqrt(variance), abs=1e-6)


def test_the_textbook_of_fleiss() -> None:
    # Fleiss, Levin and Paik (2003), table 18.1: kappa 0.68, standard error 0.087.
    found = compare([[75, 1, 4], [5, 4, 1], [0, 0, 10]])
    assert found.kappa == pytest.approx(0.676, abs=5e-4)
    assert (found.high - found.low) / (2 * 1.959964) == pytest.approx(0.087, abs=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_standard_error_against_the_slope_of_kappa(seed: int) -> None:
    """The variance formula is the delta method: squared slopes, weighted with the shares."""
    generator = np.random.default_rng(seed)
    table = generator.integers(0, 40, (4, 4)) + 30 * np.eye(4, dtype=int)
    found = compare(table.tolist())
    n = int(table.sum())
    shares = table / n

    def kappa(p: NDArray[np.float64]) -> float:
        total = float(p.sum())
        observed = float(np.trace(p)) / total
        expected = float(p.sum(axis=1) @ p.sum(axis=0)) / total**2
        return (observed - expected) / (1 - expected)

    step = 1e-6
    slopes = np.zeros((4, 4))
    for place in np.ndindex(4, 4):
        nudge = np.zeros((4, 4))
        nudge[place] = step
        slopes[place] = (kappa(shares + nudge) - kappa(shares - nudge)) / (2 * step)
    variance = ((shares * slopes**2).sum() - (shares * slopes).sum() ** 2) / n
    expected = kappa(shares) + 1.959964 * np.sqrt(variance)
    assert found.high == pytest.approx(expected, abs=1e-6)


def test_perfect_and_none() -> None:
    perfect = compare([[5, 0], [0, 7]])
    assert (perfect.kappa, perfect.low, perfect.high) == (1.0, 1.0, 1.0)
    opposite = compare([[0, 5], [5, 0]])
    assert (opposite.kappa, opposite.low, opposite.high) == (-1.0, -1.0, -1.0)
    chance = compare([[9, 9], [9, 9]])
    assert chance.kappa == 0.0
    assert chance.low < 0 < chance.high


def test_undefined_where_nothing_could_differ() -> None:
    one_category = cohens_kappa(["a"] * 9, ["a"] * 9)
    assert (one_category.n, one_category.observed, one_category.expected) == (9, 1.0, 1.0)
    assert math.isnan(one_category.kappa)
    assert math.isnan(one_category.low)
    nothing = cohens_kappa([], [])
    assert nothing.n == 0
    assert math.isnan(nothing.observed)
    assert math.isnan(nothing.kappa)
    assert nothing.table.shape == (0, 0)


def test_one_reviewer_who_never_changes_the_verdict_agrees_as_by_chance() -> None:
    found = cohens_kappa(["a", "a", "a", "a"], ["a", "a", "b", "b"])
    assert (found.observed, found.expected, found.kappa) == (0.5, 0.5, 0.0)


def test_the_interval_stays_between_minus_one_and_one() -> None:
    found = compare([[1, 1], [0, 2]])
    assert -1.0 <= found.low < found.kappa < found.high <= 1.0


def test_verdicts_stand_in_the_order_asked_for() -> None:
    found = cohens_kappa(["z", "b", "a"], ["z", "b", "c"], order=["z", "unused", "c"])
    assert found.categories == ("z", "c", "a", "b")
    assert found.table[2, 1] == 1
    assert np.trace(found.table) == 2


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="found 2 and 1"):
        cohens_kappa(["a", "b"], ["a"])
