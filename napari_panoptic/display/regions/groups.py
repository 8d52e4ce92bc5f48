"""List splits, mergers and duplicates of a region as groups, and what each of them costs.

To mend a group means to join its parts, or to cut a merger along the annotation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_panoptic.display import slide_texts
from napari_panoptic.display.glossary import GROUP_MEANINGS
from napari_panoptic.display.regions.here import Here
from napari_panoptic.display.regions.question import RegionQuestion, share
from napari_panoptic.display.styles import STATUS_MEANINGS, count_text, ratio_text, signed_text
from napari_panoptic.explain.failure_groups import (
    FailureGroup,
    GroupKind,
    counts_if_merged,
    failure_groups,
    pq_if_merged,
    statuses_if_merged,
)
from napari_panoptic.explain.failures import FailureSet
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import unit_metrics
from napari_panoptic.questions.answer import Answer, AnswerTable, UnansweredError
from napari_panoptic.tables.columns import CellContent, TableColumn, TableSpec, number, whole, words
from napari_panoptic.values.vocabulary import STATUS_CODE, STATUSES, Side, Status

NO_GROUPS = (
    "No splits, mergers or duplicates in this region. “Group costs” counts them in all "
    "regions; the panel Failures, grouped by cause, leads to them."
)
SHARED_PIXELS = (
    "Groups need objects that share no pixels: choose “Object on top” for “Shared pixels” in the "
    "settings."
)
_MEANING = (
    "PQ of this region now, and if every group were mended: the parts of an object joined, mergers "
    "cut along the annotation. Classes stay as predicted."
)
_MENDED: Mapping[GroupKind, tuple[str, str]] = {
    GroupKind.SPLIT: ("joined", "the joined object"),
    GroupKind.MERGER: ("cut apart", "each piece"),
    GroupKind.DUPLICATE: ("joined", "the joined object"),
    GroupKind.MIXED: ("cut and joined", "each object"),
}
"""The way in which a group is mended, and its result."""
GROUPS_HERE = TableSpec(
    "",
    "group",
    [
        words("kind", "Kind", "What went wrong."),
        whole("annotated", "Annotated", "How many annotated objects take part."),
        whole("predicted", "Predicted", "How many predictions take part."),
        share(
            "covered",
            "Covered",
            "The largest share of an annotated object that one prediction of the group covers.",
        ),
        number(
            "gain",
            "PQ gain",
            signed_text,
            "Change of the region's PQ if the group were mended: its parts joined, a merger cut "
            "along the annotation. With a minus sign the joined object would be the worse one.",
        ),
    ],
)


def _member(side: Side, title: str) -> TableColumn:
    """Return a column of ids in the colours of their statuses."""

    def cell(row: Mapping[Any, Any]) -> CellContent:
        status = row[f"{side}_status"]
        about = f"{row[f'{side}_class']}: {STATUS_MEANINGS[status]}"
        return CellContent(count_text(row[side]), row[side], status, about)

    about = f"Id of the {title.lower()} object; click to select it."
    return TableColumn(title, cell, (str(side), f"{side}_status", f"{side}_class"), about)


MEMBERS = TableSpec(
    "",
    "pair of objects",
    [
        _member(Side.REFERENCE, "Annotated"),
        _member(Side.PREDICTION, "Predicted"),
        share(
            "of_reference",
            "Of annotated",
            "Share of the annotated object's area in the prediction.",
        ),
        share(
            "of_prediction",
            "Of predicted",
            "Share of the prediction's area in the annotated object.",
        ),
        whole("shared_px", "Shared px", "Pixels that the two share, after the ambiguous policy."),
    ],
)


@dataclass(frozen=True, kw_only=True)
class RegionGroups(RegionQuestion):
    """The groups of a region, and what they cost."""

    title = "Groups"
    heading = "Splits, mergers and duplicates of a region"
    key = "Alt-g"
    marks_name = "failure group"
    on_slide = slide_texts.GROUPS

    def answered(self, here: Here) -> Answer:
        """Find the groups."""
        evaluation = here.evaluation
        if evaluation.pair.has_planes:
            raise UnansweredError(SHARED_PIXELS)
        groups = failure_groups(evaluation)
        if not groups:
            raise UnansweredError(NO_GROUPS)
        now = evaluation.metrics.pq
        then = unit_metrics(counts_if_merged(evaluation, groups)).pq
        is_undefined = math.isnan(now) or math.isnan(then)
        undefined = " PQ is undefined here: there are no objects." * is_undefined
        return Answer(
            headline=f"All mended: {_from_to(now, then)}",
            about=_MEANING + undefined,
            tables=tuple(_listed(here, groups, kind) for kind in (None, *GroupKind)),
        )


def _listed(here: Here, every: Sequence[FailureGroup], kind: GroupKind | None) -> AnswerTable:
    """Return the table of the groups of a kind, or of all; pages show only that of all."""
    groups = [group for group in every if kind in (None, group.kind)]

    def objects(row: int) -> FailureSet:
        group = groups[row]
        rows = {Side.REFERENCE: group.reference_rows, Side.PREDICTION: group.prediction_rows}
        return here.objects(rows)

    return AnswerTable(
        GROUPS_HERE,
        GROUPS_HERE.frame(map(_row, groups)),
        objects,
        has_others=True,
        tooltip=lambda row: _about(here.evaluation, groups[row]),
        is_of_objects=True,
        heading=kind or "all kinds",
        is_long=kind is not None,
        empty="No group of this kind here.",
        members=lambda row: _members(here, groups[row]),
    )


def _row(group: FailureGroup) -> Mapping[str, Any]:
    return {
        "kind": str(group.kind),
        "annotated": len(group.reference_rows),
        "predicted": len(group.prediction_rows),
        "covered": group.share_of_reference.max(initial=0.0),
        "gain": group.pq_lost,
    }


def _members(here: Here, group: FailureGroup) -> AnswerTable:
    """Return the pairs of objects in a group."""
    outcomes = here.evaluation.outcomes
    columns: dict[str, Any] = {
        "of_reference": group.share_of_reference,
        "of_prediction": group.share_of_prediction,
        "shared_px": group.intersection_px,
    }
    pairs = {Side.REFERENCE: group.pair_reference, Side.PREDICTION: group.pair_prediction}
    for side, rows in pairs.items():
        own = outcomes.side(side)
        columns[side] = own.ids[rows]
        columns[f"{side}_status"] = [STATUSES[code] for code in own.status[rows]]
        columns[f"{side}_class"] = np.array(outcomes.class_names)[own.class_index[rows] - 1]
    records = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    return AnswerTable(
        MEMBERS,
        MEMBERS.frame(records),
        lambda row: here.objects({side: [rows[row]] for side, rows in pairs.items()}),
        is_of_objects=True,
    )


def _about(evaluation: Evaluation, group: FailureGroup) -> str:
    """Describe a group, and PQ if it were mended."""
    change = _from_to(evaluation.metrics.pq, pq_if_merged(evaluation, group).pq)
    lines = (
        GROUP_MEANINGS[group.kind],
        f"If {_MENDED[group.kind][0]}: {change}",
        why_no_gain(evaluation, group),
    )
    return "\n".join(filter(None, lines))


def _from_to(now: float, then: float) -> str:
    return f"PQ {ratio_text(now)} → {ratio_text(then)} ({signed_text(then - now)})"


def why_no_gain(evaluation: Evaluation, group: FailureGroup) -> str:
    """Return a sentence on why mending a group does not raise PQ; empty if it does."""
    if math.isnan(group.pq_lost) or signed_text(group.pq_lost).startswith("+"):
        return ""
    now = evaluation.outcomes.reference.status[group.reference_rows]
    then = statuses_if_merged(evaluation, group)
    n, (_, what) = len(then), _MENDED[group.kind]
    tp, wrong, missed = (
        STATUS_CODE[status] for status in (Status.TP, Status.MISCLASSIFIED, Status.FN)
    )
    if (then == tp).sum() > (now == tp).sum():
        return f"No gain: more nuclei are matched, but {what} overlaps its nucleus less well."
    if (wrongs := int((then == wrong).sum())) > (then == missed).sum():
        of = "the nucleus" if n == 1 else f"{count_text(wrongs)} of the {count_text(n)} nuclei"
        return (
            f"No gain: {what} keeps the predicted class, which is the wrong one for {of}. "
            "A misclassified nucleus costs as much as a missed one."
        )
    if (then == missed).any():
        return f"No gain: {what} still overlaps its nucleus too little to match it."
    return f"No gain: {what} matches no better than what matches now."
