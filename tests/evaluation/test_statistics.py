from __future__ import annotations

import itertools

import numpy as np
import pytest

from napari_panoptic.evaluation.aggregate import spread
from napari_panoptic.evaluation.statistics import compare_teams


def test_friedman_against_the_sum_of_ranks() -> None:
    # Ranks per patient, best first: (1, 2, 3) five times and (2, 1, 3) once.
    figures = {
        "a": [0.9, 0.8, 0.7, 0.9, 0.6, 0.5],
        "b": [0.8, 0.7, 0.6, 0.8, 0.5, 0.6],
        "c": [0.1, 0.2, 0.3, 0.1, 0.2, 0.1],
    }
    found = compare_teams(figures)
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
        found = compare_teams({str(t): values[t].tolist() for t in range(k)})
        assert found.nemenyi_p is not None
        for a, b in itertools.combinations(range(k), 2):
            apart = abs(found.mean_ranks[a] - found.mean_ranks[b])
            assert (found.nemenyi_p[a, b] < 0.05) == (apart > critical)


def test_equal_teams_share_a_rank_and_have_no_post_hoc() -> None:
    found = compare_teams({"a": [0.5, 0.6, 0.7], "b": [0.6, 0.5, 0.7], "c": [0.5, 0.6, 0.7]})
    assert found.nemenyi_p is None
    assert found.ranks == (1, 1, 1)
    identical = compare_teams({team: [0.5, 0.6] for team in "abc"})
    assert identical.friedman_p == 1.0


def test_lower_is_better_for_distances() -> None:
    patients = 30
    figures = {"near": [1.0] * patients, "mid": [2.0] * patients, "far": [9.0] * patients}
    found = compare_teams(figures, higher_is_better=False)
    assert found.ranks == (1, 2, 3)
    assert compare_teams(figures).ranks == (3, 2, 1)


def test_patients_without_a_figure_for_every_team_are_left_out() -> None:
    nan = float("nan")
    found = compare_teams({"a": [0.9, nan, 0.8], "b": [0.8, 0.7, 0.7], "c": [0.1, 0.1, 0.1]})
    assert found.n_patients == 2


@pytest.mark.parametrize("figures", [{"a": [0.1, 0.2], "b": [0.2, 0.3]}, {"a": [0.1]}, {}])
def test_undefined_where_too_few_compare(figures: dict[str, list[float]]) -> None:
    found = compare_teams(figures)
    assert np.isnan(found.friedman_p)
    assert found.ranks == (1,) * len(figures)


def test_spread_counts_what_is_defined() -> None:
    found = spread([1.0, float("nan"), 3.0, 8.0])
    assert (found.n, found.mean, found.median) == (3, 4.0, 3.0)
    assert found.sd == pytest.approx(np.std([1.0, 3.0, 8.0], ddof=1))
    assert np.isnan(spread([]).mean)
    assert np.isnan(spread([2.0]).sd)
