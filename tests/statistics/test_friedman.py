from __future__ import annotations

import itertools

import numpy as np
import pytest
import scikit_posthocs
from scipy import stats

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.statistics.friedman import (
    MissingRule,
    TeamFigures,
    compare_teams,
    critical_difference,
)

NAN = float("nan")


def test_friedman_against_the_sum_of_ranks() -> None:
    # Ranks per patient, best first: (1, 2, 3) five times and (2, 1, 3) once.
    figures = {
        "a": [0.9, 0.8, 0.7, 0.9, 0.6, 0.5],
        "b": [0.8, 0.7, 0.6, 0.8, 0.5, 0.6],
        "c": [0.1, 0.2, 0.3, 0.1, 0.2, 0.1],
    }
    found = compare_teams(TeamFigures(figures))
    np.testing.assert_allclose(found.mean_ranks, [7 / 6, 11 / 6, 3.0])
    # chi2 = 12 n / (k (k + 1)) * (sum of squared mean ranks) - 3 n (k + 1), two degrees of freedom
    chi2 = 12 * 6 / (3 * 4) * float((found.mean_ranks**2).sum()) - 3 * 6 * 4
    assert found.friedman_p == pytest.approx(np.exp(-chi2 / 2), rel=1e-12)


def test_nemenyi_uses_the_published_critical_differences() -> None:
    # Demsar (2006), table 5: q at 0.05 is 2.343 for three and 2.569 for four classifiers.
    for k, q in ((3, 2.343), (4, 2.569)):
        n = 40
        critical = q * np.sqrt(k * (k + 1) / (6 * n))
        rng = np.random.default_rng(k)
        values = rng.random((k, n)) + 0.3 * np.arange(k)[:, None]
        found = compare_teams(TeamFigures({str(t): values[t].tolist() for t in range(k)}))
        assert found.nemenyi_p is not None
        for a, b in itertools.combinations(range(k), 2):
            apart = abs(found.mean_ranks[a] - found.mean_ranks[b])
            assert (found.nemenyi_p[a, b] < 0.05) == (apart > critical)


def test_equal_teams_share_a_rank_and_have_no_post_hoc() -> None:
    found = compare_teams(
        TeamFigures({"a": [0.5, 0.6, 0.7], "b": [0.6, 0.5, 0.7], "c": [0.5, 0.6, 0.7]})
    )
    assert found.nemenyi_p is None
    assert found.ranks == (1, 1, 1)
    identical = compare_teams(TeamFigures({team: [0.5, 0.6] for team in "abc"}))
    assert np.isnan(identical.friedman_p)
    assert identical.ranks == (1, 1, 1)


def test_lower_is_better_for_distances() -> None:
    patients = 30
    figures = {"near": [1.0] * patients, "mid": [2.0] * patients, "far": [9.0] * patients}
    found = compare_teams(TeamFigures(figures, higher_is_better=False))
    assert found.ranks == (1, 2, 3)
    assert compare_teams(TeamFigures(figures)).ranks == (3, 2, 1)


def test_patients_without_a_figure_for_every_team_are_left_out() -> None:
    nan = float("nan")
    found = compare_teams(
        TeamFigures({"a": [0.9, nan, 0.8], "b": [0.8, 0.7, 0.7], "c": [0.1, 0.1, 0.1]})
    )
    assert found.n_patients == 2


@pytest.mark.parametrize("figures", [{"a": [0.1, 0.2], "b": [0.2, 0.3]}, {"a": [0.1]}, {}])
def test_undefined_where_too_few_compare(figures: dict[str, list[float]]) -> None:
    found = compare_teams(TeamFigures(figures))
    assert np.isnan(found.friedman_p)
    assert found.ranks == (1,) * len(figures)


@pytest.mark.parametrize(("n_teams", "n_patients"), [(3, 30), (4, 25), (6, 12), (9, 40)])
@pytest.mark.parametrize("decimals", [1, 6])  # with one decimal many figures tie
def test_against_scipy_and_scikit_posthocs(n_teams: int, n_patients: int, decimals: int) -> None:
    rng = np.random.default_rng(n_teams)
    values = rng.random((n_teams, n_patients)) + 0.3 * np.arange(n_teams)[:, None]
    values = np.round(values, decimals)
    found = compare_teams(TeamFigures({f"team {t}": values[t].tolist() for t in range(n_teams)}))
    expected = stats.friedmanchisquare(*values)
    assert found.friedman_chi2 == pytest.approx(expected.statistic, rel=1e-12)
    assert found.friedman_p == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.friedman_p < 0.05
    assert found.nemenyi_p is not None
    nemenyi = scikit_posthocs.posthoc_nemenyi_friedman(values.T).to_numpy()
    np.testing.assert_allclose(found.nemenyi_p, nemenyi, rtol=1e-6, atol=1e-9)
    best_last = stats.rankdata(-values, axis=0).mean(axis=1)
    np.testing.assert_allclose(found.mean_ranks, best_last, rtol=1e-12)


def test_kendalls_w_is_one_for_full_agreement_and_that_of_its_definition() -> None:
    agreed = compare_teams(
        TeamFigures({"a": [0.9, 0.8, 0.7], "b": [0.6, 0.5, 0.4], "c": [0.1, 0.2, 0.3]})
    )
    assert agreed.kendall_w == pytest.approx(1.0, rel=1e-12)
    values = np.random.default_rng(4).random((5, 14))
    found = compare_teams(TeamFigures({str(t): values[t].tolist() for t in range(5)}))
    sums = stats.rankdata(-values, axis=0).sum(axis=1)
    w = 12 * ((sums - sums.mean()) ** 2).sum() / (14**2 * (5**3 - 5))
    assert found.kendall_w == pytest.approx(w, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_groups_are_the_maximal_sets_without_a_difference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((6, 30)) + 0.15 * rng.permutation(6)[:, None]
    comparison = compare_teams(TeamFigures({f"team {t}": values[t].tolist() for t in range(6)}))
    assert comparison.nemenyi_p is not None
    found = critical_difference(comparison)
    assert list(found.mean_ranks) == sorted(comparison.mean_ranks)
    assert (found.n_patients, found.alpha) == (30, 0.05)
    rank = dict(zip(comparison.teams, comparison.mean_ranks, strict=True))
    alike = [
        set(group)
        for size in range(2, 7)
        for group in itertools.combinations(comparison.teams, size)
        if all(
            abs(rank[a] - rank[b]) <= found.difference for a, b in itertools.combinations(group, 2)
        )
    ]
    maximal = [group for group in alike if not any(group < other for other in alike)]
    assert sorted(map(sorted, found.groups)) == sorted(map(sorted, maximal))
    firsts = [rank[group[0]] for group in found.groups]
    assert firsts == sorted(firsts)


def test_critical_differences_are_those_of_the_table() -> None:
    # Demsar (2006), table 5(a), q at 0.05 for 2 to 10 classifiers; 2 have no Friedman test.
    table = {3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}
    for k, q in table.items():
        values = np.random.default_rng(k).random((k, 20))
        found = critical_difference(
            compare_teams(TeamFigures({str(t): values[t].tolist() for t in range(k)}))
        )
        assert found.difference == pytest.approx(q * np.sqrt(k * (k + 1) / 120), rel=5e-4)


def test_without_a_difference_all_are_one_group() -> None:
    comparison = compare_teams(
        TeamFigures(
            {"a": [0.5, 0.6, 0.7], "b": [0.6, 0.5, 0.7], "c": [0.5, 0.6, 0.8]},
            patients=["P", "Q", "R"],
        )
    )
    assert comparison.friedman_p > 0.05
    found = critical_difference(comparison)
    assert found.groups == (found.teams,)
    assert found.difference > 0


def test_who_is_left_out_is_named_with_the_reason() -> None:
    figures = {"a": [0.9, NAN, NAN, 0.8], "b": [0.8, 0.7, NAN, 0.7], "c": [0.1, NAN, NAN, 0.1]}
    patients = ["P", "Q", "R", "S"]
    found = compare_teams(TeamFigures(figures, patients=patients))
    assert found.figures.patients == ("P", "S")
    assert [(o.patient, o.reason) for o in found.figures.omitted] == [
        ("Q", "a and c have no figure for patient Q"),
        ("R", "no team has a figure for patient R"),
    ]
    worst = compare_teams(TeamFigures(figures, patients=patients, missing=MissingRule.WORST))
    assert worst.figures.patients == ("P", "Q", "S")
    assert [o.patient for o in worst.figures.omitted] == ["R"]
    assert worst.figures.counted_as_worst == (("a", "Q"), ("c", "Q"))
    np.testing.assert_array_equal(worst.figures.values[:, 1], [0.0, 0.7, 0.0])
    np.testing.assert_allclose(worst.mean_ranks, [(1 + 2.5 + 1) / 3, 5 / 3, (3 + 2.5 + 3) / 3])


def test_a_team_absent_from_half_the_patients() -> None:
    given = {team: np.linspace(0.3, 0.9, 10) + 0.05 * t for t, team in enumerate("abcd")}
    given["d"][::2] = np.nan
    found = compare_teams(TeamFigures({team: values.tolist() for team, values in given.items()}))
    assert found.n_patients == 5
    assert {o.teams for o in found.figures.omitted} == {("d",)}
    worst = compare_teams(
        TeamFigures(
            {team: values.tolist() for team, values in given.items()}, missing=MissingRule.WORST
        )
    )
    assert worst.n_patients == 10
    assert worst.mean_ranks[3] == (5 * 1 + 5 * 4) / 10


def test_missing_cannot_be_0_where_0_is_best() -> None:
    with pytest.raises(SettingsError, match="use complete-cases"):
        compare_teams(TeamFigures({"a": [NAN]}, missing=MissingRule.WORST, higher_is_better=False))


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        ({}, "the Friedman test needs at least three teams, found 0"),
        ({"a": [0.1, 0.2]}, "the Friedman test needs at least three teams, found 1"),
        ({"a": [0.1], "b": [0.2], "c": [0.3]}, "needs at least two patients, found 1"),
        ({team: [NAN, NAN] for team in "abc"}, "no patient has a figure of every team"),
        (
            {team: [0.5, 0.6] for team in "abc"},
            "all teams have equal figures for each of the 2 patients",
        ),
        (
            {"a": [0.1 + 0.2, 0.5], "b": [0.3, 0.5], "c": [0.3, 0.5]},  # but for rounding
            "all teams have equal figures for each of the 2 patients",
        ),
    ],
)
def test_what_is_undefined_says_why(figures: dict[str, list[float]], why: str) -> None:
    found = compare_teams(TeamFigures(figures))
    assert why in found.why_undefined
    assert np.isnan([found.friedman_chi2, found.friedman_p, found.kendall_w]).all()
    assert found.nemenyi_p is None
    diagram = critical_difference(found)
    assert diagram.why_undefined == found.why_undefined
    assert np.isnan(diagram.difference)
    assert diagram.groups == ()


def test_one_figure_that_differs_is_enough_for_a_test() -> None:
    found = compare_teams(TeamFigures({"a": [0.5, 0.6], "b": [0.5, 0.6], "c": [0.5, 0.7]}))
    assert found.why_undefined == ""
    assert found.friedman_p == pytest.approx(stats.chi2.sf(2.0, 2), rel=1e-12)


def test_figures_that_do_not_fit_together() -> None:
    with pytest.raises(ValueError, match="2 of each team, found 1 of b"):
        compare_teams(TeamFigures({"a": [0.1, 0.2], "b": [0.1]}))
    with pytest.raises(ValueError, match="1 of each team, found 2 of a"):
        compare_teams(TeamFigures({"a": [0.1, 0.2]}, patients=["P"]))
    with pytest.raises(ValueError, match="infinite"):
        compare_teams(TeamFigures({"a": [0.1, float("inf")]}))
