"""Figures that differ by rounding only are equal, and have equal ranks."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic.statistics.friedman import TeamFigures, compare_teams
from napari_panoptic.statistics.pairwise import compare_pairs

NEXT = [(value, float(np.nextafter(value, 1))) for value in (0.5001220703125, 0.1234567890125)]


@pytest.mark.parametrize(
    "pair", [*NEXT, (0.1234567890125, 0.12345678901250001), (3e-7, 3e-7 * (1 + 4e-16))]
)
def test_neighbouring_numbers_tie(pair: tuple[float, float]) -> None:
    """They lie on the two sides of a number that is rounded at its last digit."""
    low, high = pair
    assert low < high
    figures = {"a": [high, low, high], "b": [low, high, low], "c": [low / 2, low / 3, low / 4]}
    found = compare_teams(TeamFigures(figures))
    assert found.mean_ranks.tolist() == [1.5, 1.5, 3.0]
    first = compare_pairs(TeamFigures(figures))[0]
    assert first.why_undefined == "both teams have equal figures for each of the 3 patients"


def test_small_figures_keep_their_order() -> None:
    """Twelve digits of the largest, however small: not fifteen decimals."""
    figures = {"a": [3e-7, 3e-7], "b": [2.9999999e-7, 2.9999999e-7], "c": [1e-7, 1e-7]}
    assert compare_teams(TeamFigures(figures)).mean_ranks.tolist() == [1.0, 2.0, 3.0]
    tiny = {team: [value * 1e-9 for value in values] for team, values in figures.items()}
    assert compare_teams(TeamFigures(tiny)).mean_ranks.tolist() == [1.0, 2.0, 3.0]


def test_equal_differences_tie() -> None:
    """0.3 - 0.2 and 0.2 - 0.1 differ in their last digit, but are one difference."""
    (pair,) = compare_pairs(TeamFigures({"a": [0.3, 0.1, 0.5], "b": [0.2, 0.2, 0.2]}))
    # Sizes 0.1, 0.1, 0.3 have the ranks 1.5, 1.5, 3, the second with a minus.
    assert pair.rank_biserial == pytest.approx((4.5 - 1.5) / 6)
