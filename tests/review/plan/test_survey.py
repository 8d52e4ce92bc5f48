"""Allocation, variance and intervals of stratified samples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.review.plan.survey import (
    allocation,
    effective_df,
    share_interval,
    variance_factors,
)
from tests.support.examples import examples

sizes = st.lists(st.integers(1, 9), min_size=1, max_size=4)


def variance(sizes, spreads, drawn):
    """Compute the variance of the total, by its definition."""
    return sum(
        size**2 * (1 - n / size) * spread**2 / n
        for size, spread, n in zip(sizes, spreads, drawn, strict=True)
    )


@settings(derandomize=True, deadline=None, max_examples=examples(60))
@given(sizes, st.integers(0, 20), st.integers(0, 2**32 - 1))
def test_no_other_allocation_has_a_smaller_variance(sizes, more, seed):
    spreads = np.random.default_rng(seed).uniform(0.05, 1, len(sizes))
    least = [1] * len(sizes)
    total = min(len(sizes) + more, sum(sizes))
    found = allocation(sizes, spreads, total, least)
    assert found.sum() == total
    every = itertools.product(*(range(1, size + 1) for size in sizes))
    best = min(variance(sizes, spreads, n) for n in every if sum(n) == total)
    assert variance(sizes, spreads, found.tolist()) == pytest.approx(best)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(0, 40), st.integers(0, 99))
def test_a_larger_sample_takes_nothing_away(sizes, more, seed):
    spreads = np.random.default_rng(seed).uniform(0.05, 1, len(sizes))
    least = np.minimum(sizes, 2)
    smaller = allocation(sizes, spreads, int(least.sum()) + more, least)
    larger = allocation(sizes, spreads, int(least.sum()) + more + 5, least)
    assert (least <= smaller).all()
    assert (smaller <= larger).all()
    assert (larger <= sizes).all()


def test_more_than_there_is_takes_everything():
    assert allocation([3, 5], [0.1, 0.2], 100, [1, 1]).tolist() == [3, 5]


@pytest.mark.parametrize(("total", "least"), [(3, [2, 2]), (10, [4, 1])])
def test_least_numbers_that_do_not_fit_are_refused(total, least):
    with pytest.raises(ValueError, match="expected least numbers"):
        allocation([3, 5], [1, 1], total, least)


def test_the_variance_of_a_total_is_that_of_all_samples():
    """Enumerate every stratified sample of a small population."""
    strata = [np.array([1.0, 0, 4, 2]), np.array([3.0, 3, 8])]
    drawn = np.array([2, 2])
    totals = [
        sum(len(values) * np.mean(one) for values, one in zip(strata, sample, strict=True))
        for sample in itertools.product(*(itertools.combinations(values, 2) for values in strata))
    ]
    factors = variance_factors(np.array([4, 3]), drawn)
    spreads = [values.var(ddof=1) for values in strata]
    assert np.mean(totals) == pytest.approx(sum(values.sum() for values in strata))
    assert factors @ spreads == pytest.approx(np.var(totals))


def test_strata_that_are_complete_or_empty_add_no_variance():
    assert variance_factors(np.array([5, 5, 5]), np.array([5, 0, 1])).tolist() == [0, 0, 20]


def test_effective_df_of_equal_parts_is_their_sum():
    parts = np.full((4, 1), 2.0)
    assert effective_df(parts, np.full(4, 3.0)).tolist() == [12.0]
    assert effective_df(np.array([[2.0], [0.0]]), np.array([3.0, 1.0])).tolist() == [3.0]
    assert effective_df(np.zeros((2, 1)), np.ones(2)).tolist() == [np.inf]


def test_the_interval_of_a_simple_random_sample_is_wilsons():
    """7 of 20 with replacement: the interval of R's prop.test without correction."""
    n, share = 1e9, 7 / 20  # many items behind it, so that p~ is p
    found = share_interval(
        np.array([share]), np.array([share * (1 - share) / 20]), np.array([n]), np.array([1.959964])
    )
    assert np.concatenate(found) == pytest.approx([0.1811918, 0.5671457], abs=1e-6)


@settings(derandomize=True, deadline=None)
@given(st.floats(0, 1), st.floats(0, 0.2), st.integers(0, 500))
def test_an_interval_holds_the_estimate_and_stays_within_0_and_1(share, variance, n):
    low, high = share_interval(
        np.array([share]), np.array([variance]), np.array([n]), np.array([2.0])
    )
    assert 0 <= low[0] <= share + 1e-12
    assert share - 1e-12 <= high[0] <= 1


def test_an_undefined_share_has_no_interval():
    low, high = share_interval(*(np.array([x]) for x in (np.nan, 0.1, 3.0, 2.0)))
    assert np.isnan([low[0], high[0]]).all()
