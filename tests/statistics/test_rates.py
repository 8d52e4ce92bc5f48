"""Bands of rates, against SciPy's intervals."""

import numpy as np
import pytest
from scipy import stats

from napari_panoptic.statistics.rates import rate_bands


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


def test_groups_that_agree_leave_no_doubt_and_empty_bins_have_no_band() -> None:
    objects = np.array([[10] * 8, [0] * 8, [0] * 7 + [4]])
    bands = rate_bands(objects // 2, objects)
    assert bands.low[0] == bands.high[0] == 0.5
    assert np.isnan([bands.low[1], bands.high[1]]).all()
    assert bands.low[2] == bands.high[2] == 0.5  # in resamples that have the eighth group
