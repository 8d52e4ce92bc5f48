"""Drawing a plan: reproducible, of exact probabilities, and extensible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.review.plan.design import (
    RARE,
    StratumLevel,
    draw,
    extend,
    rows_of,
    stratified,
    with_seed,
)
from napari_panoptic.review.plan.units import ItemKind
from tests.support.examples import examples


def test_the_same_seed_gives_the_same_plan_whatever_the_order_of_items(many_units):
    shuffled = many_units[np.random.default_rng(0).permutation(len(many_units))]
    one, other = draw(many_units, 150, 7), draw(shuffled, 150, 7)
    assert one.units.keys == other.units.keys
    assert one.stratum == other.stratum
    assert one.probability.tolist() == other.probability.tolist()
    assert set(one.units.keys) != set(draw(many_units, 150, 8).units.keys)


def test_probabilities_are_the_share_of_the_stratum_that_is_drawn(many_units):
    plan = draw(many_units, 150, 1)
    strata = stratified(many_units, plan.level)
    size = dict(zip(strata.names, strata.sizes.tolist(), strict=True))
    for name in set(plan.stratum):
        own = [
            p for stratum, p in zip(plan.stratum, plan.probability, strict=True) if stratum == name
        ]
        assert set(own) == {len(own) / size[name]}
    assert (1 / plan.probability).sum() == pytest.approx(len(many_units))
    assert set(plan.stratum) == set(strata.names)
    assert len(set(plan.units.keys)) == len(plan) == 150


def test_each_item_is_drawn_as_often_as_its_probability_says(many_units):
    """Over many seeds; the bound is 5 standard deviations of a binomial share."""
    n_seeds, few = 200, many_units[:300]
    counts = np.zeros(len(few))
    for seed in range(n_seeds):
        plan = draw(few, 60, seed)
        counts[rows_of(plan, few)] += 1
    expected = np.zeros(len(few))
    strata = stratified(few, plan.level)
    drawn = plan.drawn(strata)
    expected[:] = (drawn / strata.sizes)[strata.of_unit]
    spread = np.sqrt(expected * (1 - expected) / n_seeds)
    assert (np.abs(counts / n_seeds - expected) <= 5 * spread + 1e-12).all()


def test_the_order_of_a_plan_is_unrelated_to_its_strata(many_units):
    """The mean place of each outcome's items lies in the middle; bounds of 4.5 sigma."""
    plan = draw(many_units, 400, 5)
    place = np.arange(len(plan))
    for kind in ItemKind:
        own = place[plan.units.is_kind(kind)]
        sigma = len(plan) / np.sqrt(12 * len(own))
        assert abs(own.mean() - (len(plan) - 1) / 2) < 4.5 * sigma


@settings(derandomize=True, deadline=None, max_examples=examples(15))
@given(st.integers(60, 300), st.integers(0, 200), st.integers(0, 1000))
def test_an_extended_plan_keeps_its_items(many_units, n, more, seed):
    plan = draw(many_units, n, seed)
    larger = extend(plan, many_units, n + more)
    assert larger.units.keys[:n] == plan.units.keys
    assert larger.stratum[:n] == plan.stratum
    assert len(set(larger.units.keys)) == len(larger) == n + more
    assert (1 / larger.probability).sum() == pytest.approx(len(many_units))
    fresh = draw(many_units, n + more, seed)
    if fresh.level is plan.level:
        assert set(fresh.units.keys) == set(larger.units.keys)


def test_the_seed_of_a_plan_is_checked(many_units):
    plan = replace(draw(many_units, 100, 1), seed=None)
    assert with_seed(plan, many_units, 1).seed == 1
    with pytest.raises(SettingsError, match="not drawn with the seed 2"):
        with_seed(plan, many_units, 2)
    with pytest.raises(SettingsError, match="only be extended with its seed"):
        extend(plan, many_units, 150)
    with pytest.raises(SettingsError, match="are not in this cohort"):
        with_seed(plan, many_units[:500], 1)


def test_rare_causes_share_a_stratum(small_units):
    strata = stratified(small_units, StratumLevel.CAUSE)
    unmatched = [
        n for n, kind in zip(strata.names, strata.kinds, strict=True) if kind in ("FN", "FP")
    ]
    assert len(small_units) < 10 * RARE
    assert unmatched
    assert all("/other/" in name for name in unmatched)


def test_few_items_make_coarser_strata(many_units):
    levels = [draw(many_units, n, 1).level for n in (150, 50, 20, 5)]
    assert levels == [
        StratumLevel.CAUSE,
        StratumLevel.CLASS,
        StratumLevel.STATUS,
        StratumLevel.STATUS,
    ]
    with pytest.raises(SettingsError, match="expected at least 5, one for each outcome"):
        draw(many_units, 4, 1)


def test_a_plan_can_hold_everything(many_units):
    plan = draw(many_units, 10**6, 1)
    assert sorted(plan.units.keys) == sorted(many_units.keys)
    assert set(plan.probability) == {1.0}


def test_nothing_to_draw_is_an_error(many_units):
    with pytest.raises(SettingsError, match="nothing to review"):
        draw(many_units[:0], 10, 1)
