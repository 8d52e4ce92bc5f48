from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from napari_panoptic.statistics.means import mean_defined, quotient, spread, sums_by_group


def test_a_quotient_by_zero_is_undefined() -> None:
    assert quotient(1, 4) == 0.25
    assert math.isnan(quotient(0, 0))


def test_a_mean_leaves_out_what_is_undefined() -> None:
    assert mean_defined([1.0, math.nan, 3.0]) == 2.0
    assert math.isnan(mean_defined([math.nan]))


def test_spread_counts_what_is_defined() -> None:
    found = spread([1.0, float("nan"), 3.0, 8.0])
    assert (found.n, found.mean, found.median) == (3, 4.0, 3.0)
    assert found.sd == pytest.approx(np.std([1.0, 3.0, 8.0], ddof=1))
    assert np.isnan(spread([]).mean)
    assert np.isnan(spread([2.0]).sd)
    assert spread([1.0, 4.0]).sd == pytest.approx(np.sqrt(4.5))


@pytest.mark.parametrize("value", [0.1, 0.7137, 1 / 3, 1e-9, 0.9999999999999999])
def test_equal_figures_are_their_mean_and_spread_by_nothing(value: float) -> None:
    for n in range(2, 60):
        found = spread([value] * n)
        assert (found.mean, found.sd, found.median) == (value, 0.0, value)


def test_the_order_of_patients_does_not_matter() -> None:
    values = np.random.default_rng(4).random(25)
    found = spread(values.tolist())
    assert spread(values[::-1].tolist()) == spread(sorted(values.tolist())) == found
    assert found.mean == pytest.approx(values.mean(), rel=1e-15)
    assert found.sd == pytest.approx(values.std(ddof=1), rel=1e-14)


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(2**-20, 2**20) | st.just(0.0)), max_size=60))
@example([])
@example([(1, 0.0)])
def test_sums_by_group_are_exact(pairs: list[tuple[int, float]]) -> None:
    groups, values = np.array([group for group, _ in pairs], int), np.array([v for _, v in pairs])
    wanted = [math.fsum(value for group, value in pairs if group == own) for own in range(3)]
    assert sums_by_group(values, groups, 3).tolist() == wanted


def test_sums_by_group_of_very_unequal_numbers_do_not_depend_on_the_order() -> None:
    values, groups = np.geomspace(1e-300, 1e200, 1_000), np.zeros(1_000, int)
    shuffled = np.random.default_rng(1).permutation(values)
    assert sums_by_group(shuffled, groups, 1) == sums_by_group(values, groups, 1)
    assert sums_by_group(values, groups, 1) == pytest.approx(math.fsum(values), rel=1e-12)
