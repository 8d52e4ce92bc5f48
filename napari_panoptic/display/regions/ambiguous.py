"""Compare two policies for ambiguous areas: what changes, why, and the change in PQ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from napari_panoptic.display import slide_texts
from napari_panoptic.display.glossary import SETTING_MEANINGS, SETTING_WORDS
from napari_panoptic.display.regions.here import Here
from napari_panoptic.display.regions.question import RegionQuestion, outcome, share
from napari_panoptic.display.styles import (
    CAUSE_WORDS,
    ratio_text,
    signed_count_text,
    signed_text,
)
from napari_panoptic.explain.policy_audit import PolicyAudit, audit_policies, spill_table
from napari_panoptic.questions.answer import Answer, AnswerTable, UnansweredError
from napari_panoptic.questions.question import option
from napari_panoptic.tables.columns import TableColumn, TableSpec, number, whole, words
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import Cause, Side

if TYPE_CHECKING:
    import pandas as pd

NO_AREA = (
    "This region has no ambiguous area: every policy gives the same figures. Choose a region "
    "with a hatched area."
)
NOTHING = "No object of this kind here. Choose other policies, or another list."
_PQ_COUNTS = (
    "As PQ counts: a misclassified object is an FP of the predicted class and an FN of the "
    "annotated one."
)
_SIDE_WORDS = {str(Side.REFERENCE): "ref.", str(Side.PREDICTION): "pred."}


def _policy(which: str, usual: str, meaning: str) -> Any:
    """Return an input for a policy, which begins with the one that holds without a choice."""
    entries: list[tuple[Any, str, str]] = [(None, usual, meaning)]
    entries += [
        (policy, SETTING_WORDS[policy], f"{SETTING_MEANINGS[policy]} Code name: {policy}.")
        for policy in AmbiguousPolicy
    ]
    about = f"The {which} policy. Open the menu and rest on a policy to read what it does."
    return option(about, None, menu=lambda _values: entries)


def _change(count: str, about: str) -> TableColumn:
    key, title = f"{count}_difference", f"Δ{count.upper()}"
    return number(key, title, lambda value: signed_count_text(int(value)), about)


EFFECT = TableSpec(
    "",
    "class with another figure",
    [
        words("class", "Class", "Classes that change; the last line is the region."),
        _change("tp", "Change in TP from the first policy to the second."),
        _change("fp", f"Change in FP. {_PQ_COUNTS}"),
        _change("fn", f"Change in FN. {_PQ_COUNTS}"),
        number("pq_second", "PQ", ratio_text, "Panoptic quality under the second policy."),
        number(
            "pq_difference",
            "ΔPQ",
            signed_text,
            "PQ under the second policy minus that under the first.",
        ),
    ],
)
_INSIDE = share("inside", "Inside", "Share of its pixels in the ambiguous area.")
SPILL = TableSpec(
    "",
    "prediction that sticks out",
    [
        whole("id", "Id", "Id of the prediction."),
        words("class", "Class", "Predicted class."),
        outcome("", "Status", "Its outcome under the current policy."),
        _INSIDE,
        whole("remainder_px", "Outside px", "Pixels that stick out of the ambiguous area."),
        words(
            "by_spill",
            "FP by that",
            "It is an FP only because it sticks out: most of it is in the ambiguous area.",
        ),
    ],
    "Predictions that stick out of an ambiguous area, under the current policy: the part outside "
    "may count as an FP (spill).",
)


@dataclass(frozen=True, kw_only=True)
class Ambiguous(RegionQuestion):
    """What the choice of a policy for ambiguous areas changes in a region."""

    title = "Ambiguous"
    heading = "What the policy for ambiguous areas changes"
    key = "Alt-a"
    marks_name = "audited objects"
    on_slide = slide_texts.AUDIT

    #: The policies; None for that of the evaluation, and for the usual alternative.
    first: AmbiguousPolicy | None = _policy("first", "Policy as set", "That of the settings.")
    second: AmbiguousPolicy | None = _policy(
        "second", "Usual alternative", "By majority; if that is the first, removed from both."
    )

    def answered(self, here: Here) -> Answer:
        """Compare the policies."""
        evaluation, area = here.evaluation, here.evaluation.pair.ambiguous
        if area is None or not area.any():
            raise UnansweredError(NO_AREA)
        first = self.first or evaluation.settings.ambiguous
        is_majority = first is AmbiguousPolicy.MAJORITY
        usual = AmbiguousPolicy.CLIP if is_majority else AmbiguousPolicy.MAJORITY
        policies = first, self.second or usual
        names = [SETTING_WORDS[policy] for policy in policies]
        audit, spill = audit_policies(evaluation, *policies), spill_table(evaluation)
        before, after = audit.first.metrics.pq, audit.second.metrics.pq
        objects = audit.objects.assign(
            inside=lambda own: own["ambiguous_px"] / own["area_px"],
            side_word=lambda own: own["side"].map(_SIDE_WORDS),
        )
        by_cost = objects.sort_values(
            "pq_contribution", key=lambda own: -own.abs().fillna(0), kind="stable"
        )
        # The reference comes first among the objects.
        places = len(evaluation.outcomes.reference) + spill["row"].to_numpy()
        spill = spill.set_index(places).assign(
            side=str(Side.PREDICTION),
            inside=lambda own: own["ambiguous_share"],
            by_spill=lambda own: own["fp_by_spill"].map({True: "yes", False: ""}),
        )

        def listed(heading: str, spec: TableSpec, rows: pd.DataFrame) -> AnswerTable:
            return here.table(
                spec,
                rows.reset_index(drop=True),
                tooltip=partial(_fates, objects.loc[rows.index], names),
                heading=heading,
                empty=NOTHING,
            )

        changed = "Objects whose status is not the same under both policies."
        inside = "All objects with a pixel in an ambiguous area, and their treatment."
        return Answer(
            headline=f"PQ {ratio_text(before)} → {ratio_text(after)} "
            f"({signed_text(audit.pq_difference)}) from “{names[0]}” to “{names[1]}”",
            about=_leave_one_out(audit),
            tables=(
                _effect(audit),
                listed("Changed", _objects(policies, changed), by_cost[by_cost["flips"]]),
                listed(
                    "In the area", _objects(policies, inside), by_cost[by_cost["ambiguous_px"] > 0]
                ),
                listed("Sticking out", SPILL, spill),
            ),
        )


def _objects(policies: Sequence[AmbiguousPolicy], caption: str) -> TableSpec:
    """Return the columns of objects under two policies."""
    outcomes = [
        outcome(
            which,
            SETTING_WORDS[policy],
            f"Its outcome under the policy “{SETTING_WORDS[policy]}” ({policy}).",
        )
        for policy, which in zip(policies, ("_first", "_second"), strict=True)
    ]
    contribution = number(
        "pq_contribution",
        "ΔPQ",
        signed_text,
        "Contribution to the difference in PQ, leave-one-out; partners that change together "
        "have one contribution between them.",
    )
    side = words("side_word", "Side", "Annotation or prediction.")
    columns = [side, whole("id", "Id", "Id of the object."), *outcomes, contribution, _INSIDE]
    return TableSpec("", "object", columns, caption)


def _effect(audit: PolicyAudit) -> AnswerTable:
    """Return what changes class by class, and in the region."""
    effect = audit.effect
    changes = effect[[f"{key}_difference" for key in ("tp", "fp", "fn", "iou_sum")]]
    rows = effect[(changes != 0).any(axis=1) | (effect["class"] == "mean")]
    rows = rows.replace({"class": {"mean": "region"}}).reset_index(drop=True)
    records = rows.to_dict("records")

    def counts(row: int) -> str:
        counted = (
            f"{key.upper()}: {records[row][f'{key}_first']:.0f} under the first policy, "
            f"{records[row][f'{key}_second']:.0f} under the second."
            for key in ("tp", "fp", "fn")
        )
        is_undefined = math.isnan(records[row]["pq_difference"])
        why = "ΔPQ is undefined: no such object under one of the policies." * is_undefined
        return "\n".join(filter(None, (*counted, why)))

    return AnswerTable(EFFECT, rows, tooltip=counts, heading="By class", is_summary=True)


def _leave_one_out(audit: PolicyAudit) -> str:
    meaning = (
        "PQ of the region under the first policy and under the second. The contributions in "
        "the list are leave-one-out: what the PQ would lose if only this change were undone."
    )
    if math.isnan(audit.pq_difference):
        return f"{meaning} Undefined: under one of them there are no objects."
    if math.isnan(audit.pq_unexplained):
        return meaning
    rest = signed_text(audit.pq_unexplained)
    return f"{meaning} They leave {rest} unexplained, since PQ is a quotient."


def _fates(objects: pd.DataFrame, names: Sequence[str], row: int) -> str:
    """Describe the outcome of an object under each policy, and why."""
    record: Mapping[Any, Any] = objects.iloc[row].to_dict()
    lines = [f"{record['side']} {record['id']} · {record['class']}"]
    for name, which in zip(names, ("first", "second"), strict=True):
        cause, status = record[f"cause_{which}"], record[f"status_{which}"]
        fate = f"{status} ({CAUSE_WORDS[Cause(cause)]})" if cause else status
        reason = record[f"reason_{which}"] or "does not touch the ambiguous area"
        lines.append(f"{name}: {fate} – {reason}")
    return "\n".join(lines)
