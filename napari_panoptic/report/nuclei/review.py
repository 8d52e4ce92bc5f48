"""A planned review in a report, and as tables: its design, its estimates, the ranking of teams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from napari_panoptic.common.findings import Finding
from napari_panoptic.report.columns import shown_columns, table, team_column
from napari_panoptic.report.writing import check_replaceable, provenance, write_set
from napari_panoptic.review.plan.conclusions import RANKED, ranking, sentences
from napari_panoptic.review.plan.design import Plan, stratified
from napari_panoptic.review.plan.estimates import Estimates, ItemVerdict
from napari_panoptic.review.plan.tables import (
    ESTIMATES,
    ITEM_VERDICTS,
    PLAN,
    estimates_record,
    plan_frame,
    verdicts_frame,
)
from napari_panoptic.review.plan.units import Units
from napari_panoptic.tables.columns import name_column, number, whole, words
from napari_panoptic.tables.figures import counted
from napari_panoptic.tables.markup import Child, bullets, definitions, note, paragraph

if TYPE_CHECKING:
    import pandas as pd

ESTIMATES_RECORD = "estimates.json"


@dataclass(frozen=True, eq=False)
class ReviewedPlan:
    """A plan that was reviewed."""

    #: The plan.
    plan: Plan
    #: The population that it was drawn from.
    units: Units
    #: Estimates from its verdicts.
    estimates: Estimates


def write_estimates(
    folder: Path,
    review: ReviewedPlan,
    findings: Iterable[Finding],
    inputs: Mapping[str, str],
    *,
    others: Mapping[str, pd.DataFrame] | None = None,
) -> list[Path]:
    """Write the estimates of a planned review and the record of its design.

    Parameters
    ----------
    folder
        The folder; created if missing.
    review
        The reviewed plan.
    findings
        Further warnings for the reader.
    inputs
        Fingerprints of the files that they were computed from.
    others
        File name -> further tables of the set.

    Returns
    -------
    list of Path
        The files, the record last.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    estimates = review.estimates
    warnings = [*findings, *estimates.findings]
    record = estimates_record(estimates, review.plan, review.units) | provenance(warnings, inputs)
    tables = {**(others or {}), ESTIMATES.file: ESTIMATES.frame(estimates.rows)}
    return write_set(folder, tables, (ESTIMATES_RECORD, record))


def write_reviewed_plan(
    folder: Path,
    review: ReviewedPlan,
    answers: Sequence[ItemVerdict],
    findings: Iterable[Finding],
) -> list[Path]:
    """Write a plan, its verdicts and its estimates, in the files of `plan` and `estimate`.

    Parameters
    ----------
    folder
        The folder; created if missing.
    review
        The reviewed plan.
    answers
        Its verdicts.
    findings
        Warnings about the population.

    Returns
    -------
    list of Path
        The files, the record last.

    Raises
    ------
    OSError, PanopticError
        If they cannot be written.
    """
    others = {PLAN.file: plan_frame(review.plan), ITEM_VERDICTS.file: verdicts_frame(answers)}
    names = (*others, ESTIMATES.file, ESTIMATES_RECORD)
    check_replaceable(folder, names)
    return write_estimates(folder, review, findings, {}, others=others)


def review_section(review: ReviewedPlan, teams: Sequence[str]) -> list[Child]:
    """Show the estimates of a planned review on the annotation and the teams.

    Parameters
    ----------
    review
        The reviewed plan.
    teams
        All teams of the report, for their colours.
    """
    estimates = review.estimates
    frame = ESTIMATES.frame(estimates.rows)
    return [
        bullets(sentences(estimates)),
        table("review-estimates", ESTIMATES.caption, shown_columns(ESTIMATES, teams), frame),
        *_ranks(estimates, teams),
        paragraph(
            "The sample is a stratified simple random sample without replacement; sums are "
            "difference estimates, variances are linearised and moderated, and intervals are "
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
    import pandas as pd

    strata = stratified(review.units, review.plan.level)
    drawn = review.plan.drawn(strata)
    # A stratum has no items if they were removed from the plan's table.
    weight = strata.sizes / np.where(drawn > 0, drawn, np.nan)
    frame = pd.DataFrame(
        {"stratum": strata.names, "all": strata.sizes, "drawn": drawn, "weight": weight}
    )
    columns = [name_column("stratum"), whole("all"), whole("drawn"), number("weight")]
    caption = "Strata: number of items, number drawn, and items that each drawn one represents."
    return table("review-strata", caption, columns, frame)


def _ranks(estimates: Estimates, teams: Sequence[str]) -> list[Child]:
    rows = [
        {"quantity": str(quantity), **asdict(own)}
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
    return [table("review-ranks", caption, columns, rows)]
