"""Rankings and differences of teams, and estimates in words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy.stats import norm

from napari_panoptic.review.plan.conclusions import DRAWS, difference, ranking, sentences
from napari_panoptic.review.plan.corrected import ALL, QUANTITIES, Quantity
from napari_panoptic.review.plan.estimates import Estimate, Estimates


def estimated(**teams):
    """Return estimates of teams, each an estimate and a standard error for every quantity."""
    rows = [
        Estimate(
            *(q, team, ALL, value, value - 0.1, value + 0.1, 50, error, 0.0, 1.0),
            *((value, value), value - 0.02),
        )
        for team, (value, error) in teams.items()
        for q in QUANTITIES
    ]
    return Estimates(tuple(rows), (), 50, 0, ())


def test_the_certainty_of_two_ranks_is_that_of_their_difference():
    first, second = ranking(estimated(B=(0.5, 0.03), A=(0.55, 0.04)), Quantity.PQ)
    wanted = norm.cdf(0.05 / math.hypot(0.03, 0.04))
    assert (first.team, first.rank, second.team, second.rank) == ("A", 1, "B", 2)
    # 5 standard deviations of a share of that many draws.
    assert first.certainty == pytest.approx(wanted, abs=5 * math.sqrt(0.25 / DRAWS))
    assert second.certainty == first.certainty
    assert (first.best, first.worst) == (1, 2)


def test_teams_far_apart_have_certain_ranks():
    ranked = ranking(estimated(A=(0.2, 0.01), B=(0.9, 0.01), C=(0.5, 0.01)), Quantity.F1)
    assert [own.team for own in ranked] == ["B", "C", "A"]
    assert [(own.rank, own.certainty, own.best, own.worst) for own in ranked] == [
        (k, 1.0, k, k) for k in (1, 2, 3)
    ]


def test_teams_with_an_undefined_figure_have_no_rank():
    assert ranking(estimated(A=(math.nan, math.nan)), Quantity.PQ) == ()
    ranked = ranking(estimated(A=(math.nan, math.nan), B=(0.3, 0.1)), Quantity.PQ)
    assert [own.team for own in ranked] == ["B"]


def test_a_difference_has_the_variance_of_both_teams():
    found = difference(estimated(A=(0.55, 0.04), B=(0.5, 0.03)), Quantity.PQ, "A", "B")
    assert found.estimate == pytest.approx(0.05)
    assert found.high - found.estimate == pytest.approx(1.96 * 0.05, rel=1e-3)
    assert found.low == pytest.approx(0.05 - 1.96 * 0.05, rel=1e-3)


def test_estimates_in_words():
    found = sentences(estimated(A=(0.25, 0.05)))
    assert found[0] == (
        "Reviewed against A, the annotation is wrong for 25.0% of its nuclei (95 % interval: 15.0% "
        "to 35.0%; 50 items)."
    )
    assert found[4] == (
        "If the annotation were right, the PQ of A, pooled over the cohort, would be 0.250 (95 % "
        "interval: 0.150 to 0.350; 50 items); as annotated, it is 0.230."
    )
    assert len(found) == 5
    two = sentences(estimated(A=(0.9, 0.01), B=(0.1, 0.01)))
    assert two[-2:] == [
        "A has rank 1 of 2 by PQ, with a certainty of 100%.",
        "B has rank 2 of 2 by PQ, with a certainty of 100%.",
    ]
    undefined = estimated(A=(0.5, 0.1))
    rows = tuple(replace(row, estimate=math.nan) for row in undefined.rows)
    assert sentences(replace(undefined, rows=rows))[1] == (
        "The precision of A cannot be estimated yet."
    )
