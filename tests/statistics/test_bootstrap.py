"""Intervals of means and bands of rates, against SciPy's and slow formulas."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from napari_panoptic.statistics.bootstrap import (
    Interval,
    IntervalMethod,
    mean_interval,
    rate_bands,
)


def drawn_means(values: np.ndarray, weights: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Draw patients with replacement, and return the weighted mean of each draw."""
    n = len(values)
    patients = np.random.default_rng(seed).integers(0, n, (resamples, n))
    weighted = (weights * values)[patients].sum(axis=1)
    return weighted / weights[patients].sum(axis=1)


def bca_ends(
    values: np.ndarray, weights: np.ndarray, drawn: np.ndarray, level: float
) -> np.ndarray:
    """Compute the ends by the formula of Efron and Tibshirani (1993), chapter 14."""
    mean = (weights * values).sum() / weights.sum()
    jackknife = np.array(
        [
            np.average(np.delete(values, p), weights=np.delete(weights, p))
            for p in range(len(values))
        ]
    )
    d = jackknife.mean() - jackknife
    acceleration = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
    # A resample that holds each patient once may miss the mean by a rounding error.
    equal = np.isclose(drawn, mean, rtol=1e-12, atol=0)
    z0 = stats.norm.ppf(((drawn < mean) & ~equal).mean() + equal.mean() / 2)
    z = z0 + stats.norm.ppf([(1 - level) / 2, (1 + level) / 2])
    return np.quantile(drawn, stats.norm.cdf(z0 + z / (1 - acceleration * z)))


@pytest.mark.parametrize("n", [2, 3, 8, 25, 200])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_ends_are_those_of_the_formula_from_the_same_draws(n: int, level: float) -> None:
    rng = np.random.default_rng(n)
    for weights in (np.ones(n), rng.integers(1, 9, n).astype(float)):
        values = rng.exponential(1_000, n)
        found = mean_interval(values, weights=weights, level=level, seed=7)
        drawn = drawn_means(values, weights, 10_000, seed=7)
        assert found.method is IntervalMethod.BCA
        assert found.mean == pytest.approx(np.average(values, weights=weights), rel=1e-12)
        expected = bca_ends(values, weights, drawn, level)
        np.testing.assert_allclose([found.low, found.high], expected, rtol=1e-9)


def test_a_weighted_mean_is_resampled_by_patient() -> None:
    """A mean over regions, drawn patient by patient, region by region as an oracle."""
    rng = np.random.default_rng(3)
    regions = [rng.random(count) for count in (1, 4, 2, 7, 3, 5)]
    found = mean_interval([r.mean() for r in regions], weights=[len(r) for r in regions])
    every = np.concatenate(regions)
    assert found.n == 6
    assert found.mean == pytest.approx(every.mean(), rel=1e-12)
    own = np.random.default_rng(99)
    means = [
        np.concatenate([regions[p] for p in own.integers(0, 6, 6)]).mean() for _ in range(10_000)
    ]
    percentile = np.quantile(means, [0.025, 0.975])
    assert found.low == pytest.approx(percentile[0], abs=0.03)
    assert found.high == pytest.approx(percentile[1], abs=0.03)


def test_the_seed_decides_and_nothing_else() -> None:
    values = np.random.default_rng(0).random(20)
    assert mean_interval(values) == mean_interval(values.tolist())
    assert mean_interval(values, seed=1) != mean_interval(values, seed=2)
    with_gaps = np.insert(values, [3, 9], np.nan)
    assert mean_interval(with_gaps) == mean_interval(values)
    with_nobody = mean_interval([*values, 5.0], weights=[*np.ones(20), 0.0])
    assert with_nobody == mean_interval(values)


def test_intervals_cover_the_true_mean_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for seed in range(300):
        found = mean_interval(rng.exponential(size=40), resamples=1_000, seed=seed)
        covered += found.low <= 1.0 <= found.high
    # BCa is known to fall a little short for skewed samples of this size.
    assert 0.88 <= covered / 300 <= 0.98


def test_many_patients_take_bounded_memory() -> None:
    values = np.random.default_rng(0).random(3_000)
    tracemalloc.start()
    try:
        found = mean_interval(values)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60 * 2**20  # all draws at once would be 240 MB and more
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / 3_000**0.5, rel=0.05)


def test_equal_figures_give_a_point_and_say_so() -> None:
    found = mean_interval([0.1 + 0.2, 0.3, 0.3])
    assert found.method is IntervalMethod.PERCENTILE
    assert found.low == found.high == found.mean
    assert found.why == "all 3 figures are equal: the interval is a point"
    assert mean_interval([0.0, 0.0]).why == "all 2 figures are equal: the interval is a point"


def test_percentiles_where_bca_is_undefined() -> None:
    """With one resample all means are on one side: the bias is infinite."""
    found = mean_interval([0.1, 0.2, 0.4, 0.9], resamples=1)
    assert found.method is IntervalMethod.PERCENTILE
    assert found.low == found.high
    assert "infinite" in found.why


@pytest.mark.parametrize(
    ("figures", "n", "why"),
    [
        ([], 0, "no patient has a figure"),
        ([float("nan")] * 3, 0, "no patient has a figure"),
        ([0.4, float("nan")], 1, "an interval needs at least two patients, found 1"),
    ],
)
def test_no_interval_of_fewer_than_two(figures: list[float], n: int, why: str) -> None:
    found = mean_interval(figures)
    assert isinstance(found, Interval)
    assert (found.n, found.why, found.method) == (n, why, IntervalMethod.UNDEFINED)
    assert np.isnan([found.low, found.high]).all()
    assert np.isnan(found.mean) == (n == 0)


@pytest.mark.parametrize("wrong", [{"level": 1.0}, {"level": 0.0}, {"resamples": 0}])
def test_settings_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected a level between 0 and 1"):
        mean_interval([0.1, 0.2], **wrong)


def test_few_groups_have_wilsons_interval_over_objects() -> None:
    events, objects = np.array([[3, 4], [0, 0], [0, 0]]), np.array([[10, 20], [5, 5], [0, 0]])
    bands = rate_bands(events, objects)
    assert not bands.over_groups
    for place, (k, n) in enumerate([(7, 30), (0, 10)]):
        own = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert (bands.low[place], bands.high[place]) == pytest.approx((own.low, own.high))
    assert np.isnan([bands.low[2], bands.high[2]]).all()


def test_the_band_over_groups_is_the_percentile_bootstrap_of_the_ratio() -> None:
    rng = np.random.default_rng(5)
    objects = rng.integers(20, 200, 12)
    events = rng.binomial(objects, rng.uniform(0.05, 0.4, 12))
    bands = rate_bands(events[None], objects[None], resamples=20_000)
    own = stats.bootstrap(
        (events, objects),
        lambda k, n, axis: k.sum(axis) / n.sum(axis),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert bands.over_groups
    width = own.high - own.low
    assert bands.low[0] == pytest.approx(own.low, abs=0.03 * width)
    assert bands.high[0] == pytest.approx(own.high, abs=0.03 * width)


def test_bands_without_differences_between_groups_are_wilsons() -> None:
    objects = np.array([[10] * 8, [0] * 8, [0] * 7 + [4], [1] * 8])
    events = np.array([[5] * 8, [0] * 8, [0] * 7 + [4], [0] * 8])
    bands = rate_bands(events, objects)
    assert bands.over_groups
    for place, (k, n) in enumerate([(40, 80), (0, 0), (4, 4), (0, 8)]):
        if not n:
            assert np.isnan([bands.low[place], bands.high[place]]).all()
            continue
        own = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert (bands.low[place], bands.high[place]) == pytest.approx((own.low, own.high))
        assert bands.high[place] - bands.low[place] > 0.2


@pytest.mark.parametrize("groups", [1, 8])
def test_shares_are_within_their_bands_exactly(groups: int) -> None:
    rng = np.random.default_rng(0)
    objects = rng.integers(1, 50, (2000, groups))
    events = np.where(rng.random((2000, 1)) < 0.5, objects, rng.integers(0, objects + 1))
    events[::3] = 0
    bands = rate_bands(events, objects)
    rates = events.sum(axis=1) / objects.sum(axis=1)
    assert (bands.low <= rates).all()
    assert (rates <= bands.high).all()
    assert (bands.low < bands.high).all()


@pytest.mark.parametrize(("alike", "least"), [(0.0, 0.93), (0.05, 0.8), (0.2, 0.5)])
@pytest.mark.parametrize("with_objects", [1, 6, 12])
def test_how_often_bands_hold_the_true_rate(alike: float, least: float, with_objects: int) -> None:
    # The table of docs/decisions/0024-certainty.md, for unequal patients.
    rng, shape = np.random.default_rng(1), (500, 12)
    for rate, mean in [(0.05, 4), (0.05, 30), (0.5, 4), (0.5, 30)]:
        objects = np.maximum(1, np.round(mean * rng.lognormal(-0.32, 0.8, shape))).astype(int)
        objects[:, with_objects:] = 0
        scale = (1 - alike) / alike if alike else 1e9
        own = rng.beta(scale * rate, scale * (1 - rate), shape)
        bands = rate_bands(rng.binomial(objects, own), objects, resamples=500)
        assert ((bands.low <= rate) & (rate <= bands.high)).mean() >= least - 0.03
