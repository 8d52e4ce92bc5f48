"""What estimates mean: teams ranked and compared, and everything in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from napari_panoptic.review.plan.corrected import ALL, QUANTITIES, Quantity
from napari_panoptic.review.plan.estimates import LEVEL, Estimate, Estimates
from napari_panoptic.statistics.kappa import Z_95

DRAWS = 20_000
SEED = 0


@dataclass(frozen=True)
class RankedTeam:
    """A team in the ranking by an estimated figure."""

    team: str
    #: The figure by which it is ranked.
    estimate: float
    #: 1 + the number of teams with a higher estimate.
    rank: int
    #: Share of draws in which it has this rank, between 0 and 1.
    certainty: float
    #: The ranks between which it lies in 95 % of the draws.
    best: int
    worst: int


@dataclass(frozen=True)
class TeamDifference:
    """Two teams compared."""

    #: Names of the teams.
    first: str
    second: str
    #: The first team's figure minus the second's, with its 95 % interval.
    estimate: float
    low: float
    high: float
    #: The difference in the cohort as it is annotated.
    as_annotated: float


def ranking(estimates: Estimates, quantity: Quantity) -> tuple[RankedTeam, ...]:
    """Rank the teams by a figure over all classes, with the certainty of each rank.

    The figures of the teams are drawn from normal distributions with their standard errors,
    independently: each team has a sample of its own.

    Parameters
    ----------
    estimates
        Of the teams; those without this figure are left out.
    quantity
        The figure.

    Returns
    -------
    tuple of RankedTeam
        The best first.
    """
    rows = [row for row in _overall(estimates, quantity) if not math.isnan(row.estimate)]
    rows.sort(key=lambda row: -row.estimate)
    if not rows:
        return ()
    middle = np.array([row.estimate for row in rows])
    spread = np.array([row.standard_error for row in rows])
    drawn = np.random.default_rng(SEED).normal(middle, spread, (DRAWS, len(rows)))
    ranks = 1 + (drawn[:, None, :] > drawn[:, :, None]).sum(axis=2)
    rank = 1 + (middle[None, :] > middle[:, None]).sum(axis=1)
    tail = (1 - LEVEL) / 2
    ends = np.quantile(ranks, [tail, 1 - tail], axis=0, method="nearest").astype(int)
    return tuple(
        RankedTeam(
            row.team, row.estimate, int(rank[k]), float((ranks[:, k] == rank[k]).mean()), *pair
        )
        for k, (row, pair) in enumerate(zip(rows, ends.T.tolist(), strict=True))
    )


def difference(estimates: Estimates, quantity: Quantity, first: str, second: str) -> TeamDifference:
    """Compare two teams by a figure over all classes.

    Parameters
    ----------
    estimates
        Of both teams.
    quantity
        The figure.
    first, second
        Their names.
    """
    by_team = {row.team: row for row in _overall(estimates, quantity)}
    one, other = by_team[first], by_team[second]
    middle = one.estimate - other.estimate
    margin = Z_95 * math.hypot(one.standard_error, other.standard_error)
    low, high = max(-1.0, middle - margin), min(1.0, middle + margin)
    return TeamDifference(first, second, middle, low, high, one.as_annotated - other.as_annotated)


def sentences(estimates: Estimates) -> list[str]:
    """Describe the estimates over all classes, and the ranking of several teams by PQ."""
    described = [sentence(row) for row in estimates.rows if row.class_name == ALL]
    return [*described, *ranking_sentences(estimates, Quantity.PQ)]


def difference_sentence(found: TeamDifference, quantity: Quantity) -> str:
    """Describe how far two teams are apart."""
    name = _name(quantity)
    if math.isnan(found.estimate):
        return f"How far {found.first} and {found.second} differ in {name} cannot be told yet."
    if found.low <= 0 <= found.high:
        outcome = "which of them is better cannot be told"
    else:
        outcome = f"{found.first if found.estimate > 0 else found.second} is better"
    return (
        f"If the annotation were right, the {name} of {found.first} minus that of {found.second} "
        f"would be {found.estimate:+z.3f} (95 % interval: {found.low:+z.3f} to {found.high:+z.3f}; "
        f"as annotated, it is {found.as_annotated:+z.3f}): {outcome}."
    )


def sentence(row: Estimate) -> str:
    """Describe an estimate over all classes."""
    if math.isnan(row.estimate):
        return f"The {_name(row.quantity)} of {row.team} cannot be estimated yet."
    if row.quantity is Quantity.ERROR_RATE:
        return (
            f"Reviewed against {row.team}, the annotation is wrong for {row.estimate:.1%} of its "
            f"nuclei (95 % interval: {row.low:.1%} to {row.high:.1%}; {row.items} items)."
        )
    return (
        f"If the annotation were right, the {_name(row.quantity)} of {row.team}, pooled over the "
        f"cohort, would be {row.estimate:.3f} (95 % interval: {row.low:.3f} to {row.high:.3f}; "
        f"{row.items} items); as annotated, it is {row.as_annotated:.3f}."
    )


def ranking_sentences(estimates: Estimates, quantity: Quantity) -> list[str]:
    """Describe the ranks of several teams and how certain they are; nothing of one team."""
    ranked = ranking(estimates, quantity)
    if len(ranked) < 2:
        return []
    return [
        f"{row.team} has rank {row.rank} of {len(ranked)} by {_name(quantity)}, with a certainty "
        f"of {row.certainty:.0%}{_range(row)}."
        for row in ranked
    ]


def _range(row: RankedTeam) -> str:
    if row.best == row.worst:
        return ""
    return f" (between {row.best} and {row.worst} in 95 % of draws)"


def _name(quantity: Quantity) -> str:
    names = {Quantity.PQ: "PQ", Quantity.F1: "F1", Quantity.ERROR_RATE: "annotation error rate"}
    return names.get(quantity, str(quantity))


def _overall(estimates: Estimates, quantity: Quantity) -> list[Estimate]:
    return [row for row in estimates.rows if (row.quantity, row.class_name) == (quantity, ALL)]


RANKED = tuple(quantity for quantity in QUANTITIES if quantity is not Quantity.ERROR_RATE)
"""The figures by which teams are ranked."""
