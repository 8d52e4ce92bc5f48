from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scikit_posthocs
import scipy
from scipy import stats

from napari_panoptic.statistics.bootstrap import Interval, mean_interval
from napari_panoptic.statistics.friedman import MissingRule, TeamFigures
from napari_panoptic.statistics.pairwise import compare_pairs, holm, signed_ranks

NAN = float("nan")
# SciPy's word for the normal approximation.
ASYMPTOTIC = "approx" if scipy.__version__ < "1.15" else "asymptotic"


def figures(n_teams: int, n_patients: int, seed: int) -> dict[str, list[float]]:
    rng = np.random.default_rng(seed)
    values = rng.random((n_teams, n_patients)) + 0.1 * np.arange(n_teams)[:, None]
    return {f"team {t}": values[t].tolist() for t in range(n_teams)}


def assert_same_interval(found: Interval, alone: Interval) -> None:
    """Check that an interval is the one of a series that is resampled alone."""
    assert found == replace(alone, low=found.low, high=found.high)
    assert [found.low, found.high] == pytest.approx([alone.low, alone.high], abs=1e-11, nan_ok=True)


@pytest.mark.parametrize(("n_teams", "n_patients"), [(2, 6), (3, 12), (5, 25), (4, 49)])
def test_p_values_against_scikit_posthocs(n_teams: int, n_patients: int) -> None:
    given = figures(n_teams, n_patients, seed=n_patients)
    values = np.array(list(given.values()))
    plain = scikit_posthocs.posthoc_wilcoxon(values, method="exact").to_numpy()
    corrected = scikit_posthocs.posthoc_wilcoxon(values, method="exact", p_adjust="holm").to_numpy()
    found = compare_pairs(TeamFigures(given))
    places = list(itertools.combinations(range(n_teams), 2))
    assert [(p.first, p.second) for p in found] == [(f"team {a}", f"team {b}") for a, b in places]
    for pair, (a, b) in zip(found, places, strict=True):
        assert pair.wilcoxon_p == pytest.approx(plain[a, b], rel=1e-9)
        assert pair.holm_p == pytest.approx(corrected[a, b], rel=1e-9)
        assert pair.n_patients == n_patients
        apart = values[a] - values[b]
        assert_same_interval(pair.difference, mean_interval(apart))
        upper = stats.wilcoxon(apart, alternative="greater").statistic
        lower = stats.wilcoxon(apart, alternative="less", method="exact").statistic
        assert upper == lower  # SciPy gives the sum of positive ranks for either
        total = n_patients * (n_patients + 1) / 2
        assert pair.rank_biserial == pytest.approx((2 * upper - total) / total, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_exact_p_with_ties_and_zeros_against_all_signs(seed: int) -> None:
    apart = np.random.default_rng(seed).integers(-3, 5, 11).astype(np.float64)
    sizes = np.abs(apart[apart != 0])
    ranks = stats.rankdata(sizes)
    sums = np.array([(ranks * signs).sum() for signs in np.ndindex(*(2,) * len(ranks))])
    found = ranks[apart[apart != 0] > 0].sum()
    tail = min((sums >= found).mean(), (sums <= found).mean())
    correlation, p = signed_ranks(apart)
    assert p == pytest.approx(min(1.0, 2 * tail), rel=1e-12)
    assert correlation == pytest.approx((2 * found - ranks.sum()) / ranks.sum(), abs=1e-12)


def test_many_patients_by_the_normal_approximation() -> None:
    apart = np.round(np.random.default_rng(2).normal(0.1, 1, 400), 1)
    _, p = signed_ranks(apart)
    assert p == pytest.approx(stats.wilcoxon(apart, method=ASYMPTOTIC).pvalue, rel=1e-12)
    # Where both are possible they agree.
    few = np.random.default_rng(2).normal(0.1, 1, 200)
    approximate = stats.wilcoxon(few, method=ASYMPTOTIC).pvalue
    assert signed_ranks(few)[1] == pytest.approx(approximate, abs=2e-3)


@pytest.mark.parametrize(("count", "method"), [(200, "exact"), (201, ASYMPTOTIC)])
def test_up_to_two_hundred_differences_are_counted_exactly(count: int, method: str) -> None:
    apart = np.random.default_rng(5).normal(0.15, 1, count)
    expected, other = (
        stats.wilcoxon(apart, method=name, correction=False).pvalue
        for name in (method, ASYMPTOTIC if method == "exact" else "exact")
    )
    _, p = signed_ranks(apart)
    assert p == pytest.approx(expected, rel=1e-9)
    assert p != pytest.approx(other, rel=1e-6)


def test_rounding_errors_are_ties() -> None:
    # 0.3 - 0.1 and 0.4 - 0.6 differ in size by a rounding error.
    (pair,) = compare_pairs(TeamFigures({"a": [0.3, 0.4], "b": [0.1, 0.6]}))
    assert pair.rank_biserial == 0.0
    (same,) = compare_pairs(TeamFigures({"a": [0.1 + 0.2, 0.5], "b": [0.3, 0.5]}))
    assert same.why_undefined == "both teams have equal figures for each of the 2 patients"


def test_holm() -> None:
    # By hand: 0.01 x 4, then 0.02 x 3 and 0.03 x 2 which may not fall, and 0.04.
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    found = holm([NAN, 0.03, 0.02])
    assert np.isnan(found[0])
    assert found[1:] == pytest.approx([0.04, 0.04])
    assert holm([]) == []


def test_a_gap_of_a_third_team_leaves_nobody_out() -> None:
    given = {"a": [0.9, 0.8, 0.7], "b": [0.5, NAN, 0.3], "c": [NAN, 0.1, 0.2]}
    found = {
        (p.first, p.second): p for p in compare_pairs(TeamFigures(given, patients=["P", "Q", "R"]))
    }
    assert [p.figures.patients for p in found.values()] == [("P", "R"), ("Q", "R"), ("R",)]
    assert [o.reason for o in found["b", "c"].figures.omitted] == [
        "c has no figure for patient P",
        "b has no figure for patient Q",
    ]
    worst = compare_pairs(TeamFigures(given, missing=MissingRule.WORST))
    assert [p.n_patients for p in worst] == [3, 3, 3]
    assert worst[0].difference.mean == pytest.approx((0.4 + 0.8 + 0.4) / 3)


def test_undefined_pairs_say_why() -> None:
    (alike,) = compare_pairs(TeamFigures({"a": [0.5, 0.6], "b": [0.5, 0.6]}))
    assert np.isnan([alike.rank_biserial, alike.wilcoxon_p, alike.holm_p]).all()
    assert alike.why_undefined == "both teams have equal figures for each of the 2 patients"
    assert alike.difference.mean == 0.0
    (apart,) = compare_pairs(TeamFigures({"a": [0.5, NAN], "b": [NAN, 0.6]}))
    assert apart.n_patients == 0
    assert apart.why_undefined == "no patient has a figure of both teams"
    assert np.isnan(apart.difference.mean)
    assert compare_pairs(TeamFigures({"a": [0.5]})) == ()


def test_one_patient_has_no_interval_and_no_evidence() -> None:
    (pair,) = compare_pairs(TeamFigures({"a": [0.7], "b": [0.5]}))
    assert pair.difference.mean == pytest.approx(0.2)
    assert np.isnan(pair.difference.low)
    assert (pair.rank_biserial, pair.wilcoxon_p) == (1.0, 1.0)


def test_all_pairs_together_have_the_interval_of_each_alone() -> None:
    rng = np.random.default_rng(3)
    values = np.round(rng.random((8, 12)), 2)
    values[rng.random(values.shape) < 0.15] = NAN  # pairs have 12 patients or fewer
    values[1] = values[0]  # a point
    values[2] = [*values[3, :1], *[NAN] * 11]  # one patient
    values[4] = [*[NAN] * 11, 0.5]  # no patient in common with the third
    found = compare_pairs(TeamFigures({f"team {t}": row.tolist() for t, row in enumerate(values)}))
    pairs = itertools.combinations(values, 2)
    differences = [first - second for first, second in pairs]
    assert len({int((~np.isnan(apart)).sum()) for apart in differences}) > 5
    for pair, apart in zip(found, differences, strict=True):
        assert_same_interval(pair.difference, mean_interval(apart))
    assert {"equal:", "least", "no"} <= {
        word for pair in found for word in pair.difference.why.split()
    }
