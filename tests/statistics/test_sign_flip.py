from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from napari_panoptic.statistics.sign_flip import LEAST_PATIENTS, patients_needed, sign_flips
from tests.support.examples import examples

ALTERNATIVES = ("greater", "less", "two-sided")
few = st.lists(st.integers(-5, 5).map(lambda tenths: tenths / 10), min_size=1, max_size=9)


def p_of(differences: np.ndarray, boundary: float, alternative: str) -> float:
    """Return our p-value under SciPy's name of the alternative."""
    flips = sign_flips(differences)
    ways = {"greater": flips.p_above, "less": flips.p_below, "two-sided": flips.p_two_sided}
    return ways[alternative](boundary)


@pytest.mark.parametrize("n", [2, 3, 6, 9, 12])
@pytest.mark.parametrize("boundary", [0.0, -0.125, 0.25])
def test_p_values_against_scipy(n: int, boundary: float) -> None:
    rng = np.random.default_rng(n)
    for differences in (rng.normal(0.1, 0.3, n), rng.integers(-3, 4, n) / 8):
        # SciPy finds ties of sums that have no rounding error.
        for alternative in ALTERNATIVES:
            expected = stats.permutation_test(
                (differences - boundary,),
                np.mean,
                permutation_type="samples",
                alternative=alternative,
                n_resamples=2**n,
            ).pvalue
            found = p_of(differences, boundary, alternative)
            assert found == pytest.approx(expected, abs=1e-12)


@settings(max_examples=examples(60), derandomize=True, deadline=None)
@given(few, st.sampled_from([-0.3, -0.01, 0.0, 0.1, 0.25]))
def test_p_values_against_all_signs(differences: list[float], boundary: float) -> None:
    shifted = [value - boundary for value in differences]
    observed = sum(shifted)
    sums = [
        sum(sign * value for sign, value in zip(signs, shifted, strict=True))
        for signs in itertools.product((1, -1), repeat=len(shifted))
    ]
    above = sum(one >= observed - 1e-9 for one in sums) / len(sums)
    below = sum(one <= observed + 1e-9 for one in sums) / len(sums)
    flips = sign_flips(differences)
    assert flips.p_above(boundary) == pytest.approx(above, abs=1e-12)
    assert flips.p_below(boundary) == pytest.approx(below, abs=1e-12)
    assert flips.p_two_sided(boundary) == pytest.approx(min(1, 2 * min(above, below)), abs=1e-12)


@settings(max_examples=examples(60), derandomize=True, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(5, 12), st.floats(-1, 1))
def test_the_limits_and_the_tests_decide_alike(seed: int, n: int, boundary: float) -> None:
    flips = sign_flips(np.random.default_rng(seed).normal(0, 0.5, n))
    low, high = flips.limits()
    assert (flips.p_above(boundary) < 0.05) == (boundary < low)
    assert (flips.p_below(boundary) < 0.05) == (boundary > high)


def test_too_few_patients_have_no_limits() -> None:
    assert sign_flips([0.1, 0.2, 0.3, 0.4]).limits() == (-math.inf, math.inf)
    assert all(math.isfinite(end) for end in sign_flips([0.1, 0.2, 0.3, 0.4, 0.5]).limits())
    # Two-sided, six are the fewest that can differ significantly.
    assert sign_flips([0.1] * 5).p_two_sided() == 2 / 2**5 > 0.05
    assert sign_flips([0.1] * 6).p_two_sided() == 2 / 2**6 < 0.05


def test_no_patient_and_equal_versions() -> None:
    none = sign_flips([])
    assert math.isnan(none.p_above(0.0))
    assert math.isnan(none.p_two_sided())
    assert all(math.isnan(end) for end in none.limits())
    equal = sign_flips([0.0] * 8)
    assert equal.p_above(0.0) == equal.p_below(0.0) == equal.p_two_sided() == 1.0
    assert equal.p_above(-0.01) == 1 / 2**8
    with pytest.raises(ValueError, match="NaN"):
        sign_flips([0.1, math.nan])


@pytest.mark.parametrize("n", [14, 16])
def test_drawn_signs_agree_with_all_signs(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.05, 0.2, n)
    draws = 20_000
    exact, drawn = sign_flips(differences), sign_flips(differences, exact_up_to=0, draws=draws)
    assert exact.is_exact
    assert not drawn.is_exact
    for boundary in (-0.05, 0.0, 0.05):
        p = exact.p_above(boundary)
        # Five standard errors of a share of so many draws.
        assert drawn.p_above(boundary) == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / draws))
    assert drawn.p_above(-10) == pytest.approx(1 / (draws + 1), abs=5 / draws)
    again = sign_flips(differences, exact_up_to=0, draws=draws)
    assert np.array_equal(again.set_means, drawn.set_means)


def test_above_sixteen_patients_signs_are_drawn() -> None:
    assert sign_flips(np.arange(16.0)).n_signs == 2**16
    assert sign_flips(np.arange(17.0)).n_signs == 20_001


def power_of_t_test(n: int, distance: float, sd: float, alpha: float) -> float:
    """Return the power of a one-sided one-sample t-test, from its noncentral distribution."""
    bound = stats.t.ppf(1 - alpha, n - 1)
    return float(stats.nct.sf(bound, n - 1, distance / sd * math.sqrt(n)))


@pytest.mark.parametrize("tail", [0.05, 0.025])
@pytest.mark.parametrize(("distance", "sd"), [(0.05, 0.1), (-0.03, 0.1), (0.08, 0.1), (0.01, 0.1)])
def test_the_number_of_patients_has_the_power_of_a_t_test(
    distance: float, sd: float, tail: float
) -> None:
    n = patients_needed(distance, sd, tail=tail)
    assert n is not None
    assert power_of_t_test(n, abs(distance), sd, tail) > 0.795
    assert power_of_t_test(n - 1, abs(distance), sd, tail) < 0.805


def test_when_no_number_of_patients_decides() -> None:
    assert patients_needed(0.0, 0.1) is None
    assert patients_needed(math.nan, 0.1) is None
    assert patients_needed(0.1, math.nan) is None
    assert patients_needed(0.1, 0.0) == LEAST_PATIENTS
    assert patients_needed(1.0, 0.001) == LEAST_PATIENTS
