"""The skewness-corrected t statistic: its limits and p-values agree, and it is Student's t."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from napari_panoptic.statistics.skewed_t import skewed_t


def test_of_symmetric_figures_it_is_students_t() -> None:
    figures = np.array([-0.3, -0.1, 0.0, 0.1, 0.3]) + 0.2
    found = skewed_t(figures)
    expected = stats.ttest_1samp(figures, 0.05, alternative="greater").pvalue
    assert found.p_above(0.05) == pytest.approx(expected)
    assert found.p_below(0.05) == pytest.approx(1 - expected)
    interval = stats.ttest_1samp(figures, 0).confidence_interval(0.9)
    assert found.limits(0.05) == pytest.approx(tuple(interval))


@pytest.mark.parametrize("factor", [1.0, 1.5])
@pytest.mark.parametrize("seed", range(10))
def test_the_limits_and_the_p_values_decide_alike(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    found = skewed_t(1 - rng.exponential(1, 12), factor=factor)
    low, high = found.limits(0.05)
    assert low < found.mean < high
    assert found.p_above(low) == pytest.approx(0.05)
    assert found.p_below(high) == pytest.approx(0.05)
    assert found.p_above(low - 0.01) < 0.05 < found.p_above(low + 0.01)


def test_losses_of_a_few_widen_the_lower_side() -> None:
    figures = np.array([0.1, 0.12, 0.09, 0.11, 0.1, -0.4, 0.08, 0.13])
    below, above = skewed_t(figures).reach(0.025)
    assert below > stats.t.ppf(0.975, 7) > above


def test_equal_figures_are_certain() -> None:
    found = skewed_t(np.full(7, 0.1))
    assert found.limits(0.05) == pytest.approx((0.1, 0.1))
    assert (found.p_above(0.0), found.p_below(0.0), found.p_above(0.2)) == (0.0, 1.0, 1.0)
