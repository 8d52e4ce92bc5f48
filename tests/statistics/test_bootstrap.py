from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from napari_panoptic.statistics.bootstrap import (
    Interval,
    IntervalMethod,
    mean_interval,
    resampled_means,
)


class Drawn:
    """What SciPy takes for an earlier bootstrap: the resampled means."""

    def __init__(self, distribution: np.ndarray) -> None:
        self.bootstrap_distribution = distribution


@pytest.mark.parametrize("n", [2, 3, 8, 25, 200])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_ends_are_those_that_scipy_finds_from_the_same_draws(n: int, level: float) -> None:
    # Whole numbers: SciPy does not see past rounding errors that a resample equals the mean.
    values = np.rint(np.random.default_rng(n).exponential(1_000, n))
    drawn = resampled_means(values, np.ones(n), 10_000, seed=7)
    expected = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=0,
        bootstrap_result=Drawn(drawn),
        confidence_level=level,
        method="BCa",
    ).confidence_interval
    found = mean_interval(values, level=level, seed=7)
    assert found.method is IntervalMethod.BCA
    assert found.mean == pytest.approx(values.mean(), rel=1e-12)
    assert found.low == pytest.approx(expected.low, rel=1e-12)
    assert found.high == pytest.approx(expected.high, rel=1e-12)


def test_resamples_are_means_of_patients_drawn_with_replacement() -> None:
    values, weights = np.array([0.2, 0.5, 0.9]), np.array([1.0, 3.0, 2.0])
    possible = {
        round(float((weights[list(d)] * values[list(d)]).sum() / weights[list(d)].sum()), 12)
        for d in np.ndindex(3, 3, 3)
    }
    drawn = resampled_means(values, weights, 5_000, seed=1)
    assert {round(float(mean), 12) for mean in drawn} == possible
    # Each of the 27 draws is as likely: (0, 0, 0) alone gives 0.2.
    assert (np.abs(drawn - 0.2) < 1e-12).mean() == pytest.approx(1 / 27, abs=0.01)


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
    jackknife = [
        np.concatenate([r for q, r in enumerate(regions) if q != p]).mean() for p in range(6)
    ]
    d = np.mean(jackknife) - jackknife
    acceleration = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
    drawn = resampled_means(
        np.array([r.mean() for r in regions]), np.array([float(len(r)) for r in regions]), 10_000, 0
    )
    z0 = stats.norm.ppf((drawn < found.mean).mean() + (drawn == found.mean).mean() / 2)
    z = z0 + stats.norm.ppf([0.025, 0.975])
    ends = np.quantile(drawn, stats.norm.cdf(z0 + z / (1 - acceleration * z)))
    np.testing.assert_allclose([found.low, found.high], ends, atol=1e-3)


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
