"""The plan of a review in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted
from napari_panoptic.display.styles import CAUSE_WORDS, UNDEFINED, count_text
from napari_panoptic.review.plan.conclusions import (
    RANKED,
    difference,
    difference_sentence,
    ranking_sentences,
    sentence,
)
from napari_panoptic.review.plan.corrected import ALL, QUANTITIES, Quantity
from napari_panoptic.review.plan.design import Plan, StratumLevel
from napari_panoptic.review.plan.estimates import CauseEstimate, Estimate, Estimates
from napari_panoptic.review.plan.goal import EstimateInterval, Goal, Offer
from napari_panoptic.review.verdicts import Share
from napari_panoptic.values.vocabulary import Cause
from napari_panoptic.viewer.kit.figures import Cell
from napari_panoptic.viewer.kit.inputs import Choice

_NO_BREAK = "\u00a0"
"""A space at which no line is broken."""
QUANTITY_WORDS: Mapping[Quantity, str] = {
    Quantity.ERROR_RATE: "Annotation errors",
    Quantity.PRECISION: "Precision",
    Quantity.RECALL: "Recall",
    Quantity.F1: "F1",
    Quantity.PQ: "PQ",
}
_MEANINGS: Mapping[Quantity, str] = {
    Quantity.ERROR_RATE: "Share of annotated nuclei whose annotation is wrong: there is no "
    "nucleus, or its class or outline is wrong.",
    Quantity.PRECISION: "Share of predictions that would be right if the annotation were right.",
    Quantity.RECALL: "Share of nuclei that the team would find if the annotation were right.",
    Quantity.F1: "Harmonic mean of precision and recall if the annotation were right.",
    Quantity.PQ: "Mean panoptic quality over the classes if the annotation were right.",
}
_QUESTIONS: Mapping[Quantity, str] = {
    Quantity.ERROR_RATE: "annotation error rate",
    **{q: f"{QUANTITY_WORDS[q]} with errors corrected" for q in QUANTITIES[1:]},
}
QUESTIONS = tuple(Choice(q, _QUESTIONS[q], _MEANINGS[q]) for q in QUANTITIES)

ABOUT = (
    "Verdicts on a random sample estimate a figure for the whole cohort, with an interval. "
    "The sample includes matched nuclei and squares of background."
)
ASK_FOR_NAME = "Enter your name first. Verdicts are saved under it, and your plan continues."
NO_TEAM = "No team has predictions. Open a cohort with predictions."
COUNTING = "Counting the items of the cohort …"
STOPPED = "Stopped. Press “Count the items” to continue."
TILE_QUESTION = "How many nuclei centred in the square have neither an annotation nor a prediction?"
COUNT_NEEDED = "Enter the number of nuclei without an outline, or choose “cannot tell”."
SHOWN_AGAIN = "Item {} was not in view, so nothing was saved. Check it and give the verdict again."
ALL_DONE = "All items reviewed"
AFTER_PAUSE = "The results name teams. They are shown when you pause."
WHAT_NEXT = "Results are below. Press “Add items” just below to make them more precise."
OUTSIDE = (
    "Verdicts given without a plan are not used for these estimates: their objects were chosen "
    "by hand, not drawn with a known probability."
)
NOT_EDITED = "Unsaved edits are not included: the estimates use the files on disk."
METHOD = (
    "Simple random samples without replacement in each stratum; sums are difference "
    "estimates, variances are linearised, intervals are Wilson's."
)
_LEVELS = {
    StratumLevel.CAUSE: "team, status, cause and class",
    StratumLevel.CLASS: "team, status and class",
    StratumLevel.STATUS: "team and status",
}


def figure_text(quantity: Quantity, value: float) -> str:
    """Format a figure of a quantity: errors in percent, all others as a ratio."""
    if math.isnan(value):
        return UNDEFINED
    return f"{100 * value:.1f} %" if quantity is Quantity.ERROR_RATE else f"{value:.2f}"


def goal_words(goal: Goal) -> str:
    """Name the figure that a goal asks for."""
    name = QUANTITY_WORDS[goal.quantity]
    if len(goal.teams) == 2:
        return f"{name} of {goal.teams[0]} minus {goal.teams[1]}"
    return f"{name} of {goal.teams[0]}"


def duration(items: int, seconds_per_item: float) -> str:
    """Return the time that a number of items takes, as text."""
    minutes = math.ceil(items * seconds_per_item / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def offer_text(goal: Goal, found: Offer) -> str:
    """Describe the plan for a goal and its expected precision."""
    n = len(found.plan)
    needed, width = (
        counted(found.needed, "item", write=count_text),
        figure_text(goal.quantity, found.half_width),
    )
    plan = f"{counted(n, 'item', write=count_text)}, about {duration(n, goal.seconds_per_item)}"
    wanted = figure_text(goal.quantity, goal.half_width)
    if found.has_all:
        return f"All {plan}: the figure will be exact."
    expects = f"{goal_words(goal)} to within about ± {width} (95 % interval)"
    if n >= found.needed:
        return f"{plan}: {expects}."
    time = duration(found.needed, goal.seconds_per_item)
    why = f"± {wanted} needs {needed} ({time})"
    if n == found.least:
        return f"{plan}, the minimum for a valid figure: {expects}. {why}."
    return f"{plan}: {expects}. {why}."


def progress_text(share: Share, goal: Goal, found: EstimateInterval | None) -> str:
    """Return the progress of a review and the figure so far, such as 34 of 200 · F1 0.71 ± 0.05."""
    done = f"{count_text(share.done)} of {count_text(share.total)}"
    if found is None or math.isnan(found.estimate):
        return done
    width, q = figure_text(goal.quantity, found.half_width), goal.quantity
    if len(goal.teams) == 2:
        return f"{done} · difference in {QUANTITY_WORDS[q]} {found.estimate:+z.2f} ± {width}"
    return f"{done} · {QUANTITY_WORDS[q]} {figure_text(q, found.estimate)} ± {width}"


def precision_text(goal: Goal, found: EstimateInterval | None, at_end: float) -> str:
    """Describe the precision of a review now, or as expected at the end of the plan."""
    if found is not None and found.half_width <= goal.half_width:
        wanted = figure_text(goal.quantity, goal.half_width)
        return f"Target precision of ± {wanted} reached. You can stop here."
    if math.isnan(at_end):
        return ""
    return f"Expected at the end of the plan: ± {figure_text(goal.quantity, at_end)}."


def result_sentences(goal: Goal, estimates: Estimates) -> str:
    """Describe the estimate of the goal, and the ranks of teams by it."""
    lines = []
    if len(goal.teams) == 2:
        found = difference(estimates, goal.quantity, *goal.teams)
        lines.append(difference_sentence(found, goal.quantity))
    wanted = (goal.quantity, ALL)
    lines += [
        sentence(row) + _why_undefined(row, estimates.findings)
        for row in estimates.rows
        if (row.quantity, row.class_name) == wanted
    ]
    if goal.quantity in RANKED:
        lines += ranking_sentences(estimates, goal.quantity)
    return "\n".join(lines).replace("95 %", f"95{_NO_BREAK}%")


def _why_undefined(row: Estimate, findings: Sequence[Finding]) -> str:
    """Return a sentence on what is missing for an estimate; empty if it is there or unknown."""
    if not math.isnan(row.estimate):
        return ""
    reasons = [at for at in findings if at.kind is FindingKind.MISSING and at.team == row.team]
    return "".join(f" {note(at)}" for at in reasons)


def note(finding: Finding) -> str:
    """Return the message of a finding as a sentence."""
    return f"{finding.message[:1].upper()}{finding.message[1:]}."


def design_text(plan: Plan, n_units: int, estimates: Estimates | None) -> str:
    """State the design of a plan."""
    strata = len(set(plan.stratum))
    given = ""
    if estimates is not None:
        given = f" {estimates.given} have a verdict, {estimates.unclear} cannot be judged."
    return (
        f"Design: {count_text(len(plan))} of {count_text(n_units)} items from {strata} strata "
        f"({_LEVELS[plan.level]}), seed {plan.seed}.{given}"
    )


HEADER = (
    Cell("", "Figure if the annotation were right."),
    Cell("estimate", "Estimate for the whole cohort."),
    Cell("95 % interval", "Contains the true figure of the cohort in 95 of 100 reviews."),
    Cell("items", "Reviewed items behind the figure."),
)
"""Of the table of results."""


def result_rows(estimates: Estimates, class_name: str) -> list[list[Cell]]:
    """Return the figures of a class; among those of all classes, also annotation errors by cause.

    These are the shares of annotation errors among the FNs of each cause.
    """
    teams = list(dict.fromkeys(row.team for row in estimates.rows))
    of = {team: f" ({team})" if len(teams) > 1 else "" for team in teams}
    rows = [
        _row(QUANTITY_WORDS[at.quantity] + of[team], at.quantity, at)
        for team in teams
        for at in estimates.rows
        if (at.team, at.class_name) == (team, class_name)
    ]
    if class_name == ALL:
        rows += [
            _row(f"Errors, FN {CAUSE_WORDS[Cause(at.cause)]}{of[at.team]}", Quantity.ERROR_RATE, at)
            for at in estimates.by_cause
        ]
    return rows


def _row(name: str, quantity: Quantity, found: Estimate | CauseEstimate) -> list[Cell]:
    interval = UNDEFINED
    if not math.isnan(found.estimate):
        low, high = (figure_text(quantity, end) for end in (found.low, found.high))
        interval = f"{low} – {high}"
    return [
        Cell(name, _MEANINGS[quantity]),
        Cell(figure_text(quantity, found.estimate), bold=True),
        Cell(interval),
        Cell(count_text(found.items)),
    ]
