"""The stratified test of many sets at once, against exact distributions and enumeration."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_array

from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.statistics.max_t import SetFamily, max_t, set_z, stratified_z
from tests.support.examples import examples

STRATA = np.array([0] * 6 + [7] * 6)
IS_FAILURE = np.array([1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0], bool)
SETS = np.array(
    [
        [1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1],
        [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0],  # a stratum: it cannot differ from itself
    ],
    bool,
)


def family_of(sets: NDArray[np.bool_]) -> SetFamily:
    """Count each set in a partition of its own: outside, inside."""
    k = len(sets)
    cells = sets.T.astype(np.int32) + 2 * np.arange(k, dtype=np.int32)
    return SetFamily(cells, csr_array(np.kron(np.eye(k, dtype=np.int64), [[0, 1]])))


def slow_z(inside: NDArray[np.bool_], fails: NDArray[np.bool_], strata: NDArray[np.int64]) -> float:
    found = expected = variance = 0.0
    for stratum in np.unique(strata):
        own = strata == stratum
        number = np.arange(own.sum() + 1)
        chance = stats.hypergeom.pmf(number, own.sum(), fails[own].sum(), inside[own].sum())
        mean = (number * chance).sum()
        found += (inside & fails & own).sum()
        expected += mean
        variance += ((number - mean) ** 2 * chance).sum()
    return (found - expected) / np.sqrt(variance) if variance > 1e-12 else np.nan


@settings(max_examples=examples(30), derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 5))
def test_the_statistic_is_that_of_hypergeometric_distributions(
    seed: int, n: int, n_strata: int
) -> None:
    rng = np.random.default_rng(seed)
    sets = rng.random((4, n)) < rng.random((4, 1))
    fails, strata = rng.random(n) < rng.random(), rng.integers(0, n_strata, n)
    found = stratified_z(family_of(sets), fails, strata)
    expected = [slow_z(inside, fails, strata) for inside in sets]
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)
    alone = [set_z(inside, fails, strata) for inside in sets]
    assert alone == pytest.approx(expected, abs=1e-9, nan_ok=True)


def assignments() -> list[NDArray[np.bool_]]:
    """All ways to assign the failures within strata."""
    found = []
    for first, second in product(combinations(range(6), 3), combinations(range(6, 12), 2)):
        fails = np.zeros(12, bool)
        fails[[*first, *second]] = True
        found.append(fails)
    return found


def test_family_wise_p_values_are_those_of_all_assignments() -> None:
    every = np.array([[slow_z(own, fails, STRATA) for own in SETS[:3]] for fails in assignments()])
    z = np.array([slow_z(own, IS_FAILURE, STRATA) for own in SETS[:3]])
    exact = (every.max(axis=1)[:, None] >= z - 1e-9).mean(axis=0)
    n = 4000
    found = max_t(family_of(SETS), IS_FAILURE, STRATA, permutations=n)
    assert found.z[:3] == pytest.approx(z)
    error = np.sqrt(exact * (1 - exact) / n)
    assert (np.abs(found.p[:3] - exact) <= 4 * error + 1 / n).all()
    assert np.isnan(found.z[3])
    assert found.p[3] == 1


def test_a_single_set_in_a_single_stratum_agrees_with_scipy() -> None:
    rng = np.random.default_rng(3)
    fails, inside = rng.random(60) < 0.3, rng.random(60) < 0.4
    n = 4000
    found = max_t(family_of(inside[None]), fails, np.zeros(60, np.int64), permutations=n).p[0]
    exact = stats.hypergeom(60, fails.sum(), inside.sum()).sf((inside & fails).sum() - 1)
    assert abs(found - exact) <= 4 * np.sqrt(exact * (1 - exact) / n) + 1 / n
    scipys = stats.permutation_test(
        (fails.astype(float), inside.astype(float)),
        lambda a, b: (a * b).sum(),
        permutation_type="pairings",
        alternative="greater",
        n_resamples=n,
        rng=np.random.default_rng(0),
    ).pvalue
    assert abs(found - scipys) <= 6 * np.sqrt(exact * (1 - exact) / n) + 2 / n


def test_strata_in_which_all_or_none_fail_change_nothing() -> None:
    alone = max_t(family_of(SETS), IS_FAILURE, STRATA, permutations=200)
    sets = np.concatenate([SETS, np.tile([True, False], (4, 3))], axis=1)
    fails = np.concatenate([IS_FAILURE, [True] * 3, [False] * 3])
    strata = np.concatenate([STRATA, [8] * 3, [9] * 3])
    with_them = max_t(family_of(sets), fails, strata, permutations=200)
    assert with_them.z == pytest.approx(alone.z, nan_ok=True)
    assert with_them.p.tolist() == alone.p.tolist()


def test_the_same_seed_gives_the_same_p_values_and_another_seed_others() -> None:
    first, again, other = (
        max_t(family_of(SETS), IS_FAILURE, STRATA, permutations=300, seed=seed).p.tolist()
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_nothing_to_test_has_no_p_values() -> None:
    found = max_t(family_of(SETS[:0]), IS_FAILURE, STRATA)
    assert len(found.p) == 0
    none_fail = max_t(family_of(SETS), np.zeros(12, bool), STRATA)
    assert none_fail.p.tolist() == [1, 1, 1, 1]


def test_the_test_can_be_cancelled_and_reports_its_progress() -> None:
    shares: list[float] = []
    progress = Progress(report=lambda share, _: shares.append(share))
    max_t(family_of(SETS), IS_FAILURE, STRATA, permutations=120, progress=progress)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    with pytest.raises(StoppedError):
        max_t(family_of(SETS), IS_FAILURE, STRATA, progress=Progress(is_wanted=lambda: False))
