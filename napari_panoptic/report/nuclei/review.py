"""The section on a planned review: its design, its estimates, and the ranking of teams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from napari_panoptic.report.columns import (
    bounds,
    name_column,
    number,
    table,
    team_column,
    whole,
    words,
)
from napari_panoptic.report.page import Child, bullets, definitions, note, paragraph
from napari_panoptic.report.text import counted
from napari_panoptic.review.plan.conclusions import RANKED, ranking, sentences
from napari_panoptic.review.plan.design import Plan, stratified
from napari_panoptic.review.plan.estimates import Estimates
from napari_panoptic.review.plan.tables import estimates_frame
from napari_panoptic.review.plan.units import Units


@dataclass(frozen=True, eq=False)
class ReviewedPlan:
    """A plan that was reviewed.

    Parameters
    ----------
    plan
        The plan.
    units
        The population that it was drawn from.
    estimates
        What its verdicts say.
    """

    plan: Plan
    units: Units
    estimates: Estimates


def review_section(review: ReviewedPlan, teams: Sequence[str]) -> list[Child]:
    """Describe what a planned review says about the annotation and the teams.

    Parameters
    ----------
    review
        The reviewed plan.
    teams
        All teams of the report, for their colours.
    """
    estimates = review.estimates
    columns = [
        words("quantity"),
        team_column(teams),
        name_column("class"),
        number("estimate"),
        bounds("low", "high", "95 % interval"),
        whole("items"),
    ]
    caption = (
        "Figures of the cohort if the annotation were right, and the share of wrong annotations, "
        "estimated from the reviewed items."
    )
    return [
        bullets(sentences(estimates)),
        table("review-estimates", caption, columns, estimates_frame(estimates)),
        *_ranks(estimates, teams),
        paragraph(
            "The sample is a stratified simple random sample without replacement; sums are "
            "Horvitz-Thompson estimates, variances are linearised and moderated, and intervals are "
            "Wilson's for the effective number of items. Verdicts outside of the plan are not "
            "included: these objects were not drawn with a known probability."
        ),
        definitions(_design(review)),
        _strata(review),
        *(note(finding.message) for finding in estimates.findings),
    ]


def _design(review: ReviewedPlan) -> dict[str, Child]:
    plan, estimates = review.plan, review.estimates
    return {
        "population": counted(len(review.units), "item"),
        "plan": counted(len(plan), "item"),
        "with a verdict": counted(estimates.given, "item"),
        "cannot be told": counted(estimates.unclear, "item"),
        "strata": f"{len(set(plan.stratum))}, by {plan.level}",
        "seed": "not stated in the plan's table" if plan.seed is None else str(plan.seed),
    }


def _strata(review: ReviewedPlan) -> Child:
    strata = stratified(review.units, review.plan.level)
    drawn = review.plan.drawn(strata)
    frame = pd.DataFrame(
        {
            "stratum": list(strata.names),
            "all": strata.sizes,
            "drawn": drawn,
            "weight": strata.sizes / drawn,
        }
    )
    columns = [name_column("stratum"), whole("all"), whole("drawn"), number("weight")]
    caption = "Strata: all items, those drawn, and the items that each of these stands for."
    return table("review-strata", caption, columns, frame)


def _ranks(estimates: Estimates, teams: Sequence[str]) -> list[Child]:
    rows = [
        {
            "quantity": str(quantity),
            "team": own.team,
            "estimate": own.estimate,
            "rank": own.rank,
            "certainty": own.certainty,
            "best": own.best,
            "worst": own.worst,
        }
        for quantity in RANKED
        for own in ranking(estimates, quantity)
    ]
    if len({row["team"] for row in rows}) < 2:
        return []
    columns = [
        words("quantity"),
        team_column(teams),
        number("estimate"),
        whole("rank"),
        number("certainty"),
        whole("best"),
        whole("worst"),
    ]
    caption = (
        "Ranks by the estimates. Certainty is the share of draws from their distributions in which "
        "a team has this rank; best and worst enclose it in 95 % of the draws."
    )
    return [table("review-ranks", caption, columns, pd.DataFrame(rows))]
