"""Every word and figure that the window shows, defined in one sentence each.

All panels take their explanations from here; docs/reference/figures.md says the same at
length.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.explain.failure_groups import GroupKind
from napari_panoptic.nuclei.metrics import METRIC_TEXTS
from napari_panoptic.values.settings import (
    AmbiguousPolicy,
    EvaluationSettings,
    Matching,
    Outlines,
    Overlaps,
    Restoration,
    choices_of_figures,
)
from napari_panoptic.values.vocabulary import STATUS_MEANINGS as STATUS_MEANINGS
from napari_panoptic.values.vocabulary import Status, Verdict

NO_ANNOTATION = "no annotation"
"""Words in place of a figure if a region or frame has no annotation."""
NO_ANNOTATION_MEANING = "the region has no annotation: it can be viewed but not evaluated"
NO_IMAGE_MEANING = "the region has no image: its objects are evaluated, and shown on black"

FIGURE_MEANINGS: Mapping[str, str] = {name: text.meaning for name, text in METRIC_TEXTS.items()}


def choices_text(name: str, settings: EvaluationSettings) -> str:
    """Return the choices behind a metric, and what it compares with; empty for other figures."""
    choices = choices_of_figures(settings).get(name)
    if choices is None:
        return ""
    alike = english_list(choices.pop("comparable_with"), limit=9) or "no published convention"
    own = "; ".join(
        f"{k.replace('_', ' ')}: {v}" for k, v in choices.items() if v not in ("", "none")
    )
    return f"As a mean over patients: {own}. Comparable with: {alike}."


OBJECT_MEANINGS: Mapping[str, str] = {
    "status": "Outcome of the object.",
    "score": "How sure the model is of the prediction, as its file states.",
    "cause": "Why the object is unmatched.",
    "iou": "Overlap with the partner; unmatched: the best overlap; ignored: none.",
    "hausdorff_px": "Largest distance between the two outlines.",
    "hausdorff_um": "The same distance in micrometres.",
    "hausdorff95_px": "95th percentile of the outline distances.",
    "area_px": "Area that counts, after the ambiguous policy; the whole area if nothing is left.",
}

GROUP_MEANINGS: Mapping[GroupKind, str] = {
    GroupKind.SPLIT: "Several predictions share one annotated object.",
    GroupKind.MERGER: "One prediction covers several annotated objects.",
    GroupKind.DUPLICATE: "Further predictions are inside an object that one matched.",
    GroupKind.MIXED: "A merger, and a split or duplicate with it.",
}

POINT_STATUS_MEANINGS: Mapping[Status, str] = {
    Status.TP: "Found: annotated point and detection are a pair.",
    Status.FP: "False positive: a detection without an annotated point within the distance.",
    Status.FN: "False negative: an annotated point without a detection within the distance.",
    Status.IGNORED: "Left out: its confidence is below the threshold.",
}

DETECTION_MEANINGS: Mapping[str, str] = {
    "f_measure": "F-measure: 2 TP / (2 TP + FP + FN), the harmonic mean of precision and recall.",
    "precision": "Share of the detections that are right: TP / (TP + FP).",
    "recall": "Share of the annotated points that were found: TP / (TP + FN).",
    "confidence": "The team's confidence in a detection; for an annotated point, how many agreed.",
    "distance_um": "Distance to the partner; without one, to the nearest point of the other side.",
    "distance": "Largest distance between a detection and its annotated point, inclusive.",
    "threshold": "Detections below this confidence are left out; at the left end all count.",
    "reference": "Annotated points, in circles of the matching distance.",
    "prediction": "The team's detections, as crosses.",
}

COUNT_MEANINGS: Mapping[str, str] = {
    "matched": "Nuclei that a prediction matches, whatever its class.",
    "fp": "Predictions that match no nucleus (FP).",
    "fn": "Nuclei that no prediction matches (FN).",
    "ignored": "Nuclei and predictions that the ambiguous policy excludes from all metrics.",
}

FINDING_WORDS: Mapping[FindingKind, str] = {
    FindingKind.VANISHED: "vanished",
    FindingKind.OVERLAPPING: "overlapping",
    FindingKind.MISSING: "missing",
    FindingKind.UNREADABLE: "unreadable",
    FindingKind.CHANGED: "changed meanwhile",
    FindingKind.EXTRA: "not used",
    FindingKind.UNKNOWN_CLASS: "unknown class",
    FindingKind.UNKNOWN_COLOURS: "unknown colours",
    FindingKind.OUTSIDE_IMAGE: "outside the image",
    FindingKind.SELF_CROSSING: "crosses itself",
    FindingKind.DEGENERATE: "no real outline",
    FindingKind.NO_MPP: "no pixel size",
    FindingKind.FALLBACK: "read another way",
    FindingKind.OUTSIDE_FOLDER: "link not followed",
    FindingKind.MALFORMED: "malformed line",
    FindingKind.BROKEN_PLUGIN: "broken plugin",
    FindingKind.AMBIGUOUS_VARIABLE: "unclear variable",
    FindingKind.CONVENTION: "unclear convention",
    FindingKind.LITTLE_OVERLAP: "little overlap",
    FindingKind.CLASS_ORDER: "assumed order of classes",
}
"""Kind of a finding, in the column of a list; as a heading it is in `errors.FINDING_TITLES`."""

UNDEFINED_BECAUSE: Mapping[str, str] = {
    name: f"Undefined here: {text.undefined}." for name, text in METRIC_TEXTS.items()
}

VERDICT_WORDS: Mapping[Verdict, str] = {
    Verdict.ANNOTATION_RIGHT: "annotation right",
    Verdict.PREDICTION_RIGHT: "prediction right",
    Verdict.BOTH_WRONG: "both wrong",
    Verdict.CANNOT_TELL: "cannot tell",
}

VERDICT_MEANINGS: Mapping[Verdict, str] = {
    Verdict.ANNOTATION_RIGHT: "The annotation is correct; the failure is the team's.",
    Verdict.PREDICTION_RIGHT: "The team is correct; the annotation is wrong.",
    Verdict.BOTH_WRONG: "Neither is correct.",
    Verdict.CANNOT_TELL: "The image does not show who is right.",
}

KAPPA_MEANING = (
    "Cohen's kappa: agreement beyond what chance alone would give; 1 is perfect, 0 is chance."
)

OVERLAPS_MEANINGS: Mapping[Overlaps, str] = {
    Overlaps.FLATTEN: "A pixel that several objects claim goes to the one drawn last.",
    Overlaps.KEEP: "Every object keeps all of its pixels; the image shows the uppermost.",
}

SETTING_MEANINGS: Mapping[StrEnum, str] = {
    Matching.STRICT_IOU: "A pair matches if its IoU is above the threshold.",
    Matching.CENTROID: (
        "A pair matches if the best overlapping prediction has its centre in the nucleus."
    ),
    AmbiguousPolicy.CLIP: "Ambiguous areas are cut away from annotation and predictions.",
    AmbiguousPolicy.CLIP_PREDICTIONS: "Ambiguous areas are cut away from predictions only.",
    AmbiguousPolicy.MAJORITY: (
        "Ambiguous pixels do not count; unmatched objects mostly inside are ignored."
    ),
    AmbiguousPolicy.KEEP: "Ambiguous areas count like any other area.",
    Restoration.BORDER_REMOVED: "Objects of a colour-coded mask without their drawn borders.",
    Restoration.BORDER_DILATED: "Objects of a colour-coded mask, grown by the radius.",
    Outlines.AS_PUBLISHED: (
        "Whole prediction against the remaining part of the nucleus, as published."
    ),
    Outlines.BOTH_CLIPPED: "Both outlines after ambiguous areas were cut away.",
    Outlines.BOTH_WHOLE: "Both outlines before ambiguous areas were cut away.",
}

SETTING_WORDS: Mapping[StrEnum, str] = {
    Matching.STRICT_IOU: "Overlap",
    Matching.CENTROID: "Centre",
    AmbiguousPolicy.CLIP: "Removed from both",
    AmbiguousPolicy.CLIP_PREDICTIONS: "Removed from predictions",
    AmbiguousPolicy.MAJORITY: "Objects inside ignored",
    AmbiguousPolicy.KEEP: "Counted as usual",
    Restoration.BORDER_REMOVED: "Left out",
    Restoration.BORDER_DILATED: "Regrown by the radius",
    Outlines.AS_PUBLISHED: "Nucleus cut, prediction whole",
    Outlines.BOTH_CLIPPED: "Both cut",
    Outlines.BOTH_WHOLE: "Both whole",
}
"""The settings in the words of the form."""

OVERLAPS_WORDS: Mapping[Overlaps, str] = {
    Overlaps.FLATTEN: "Object on top",
    Overlaps.KEEP: "All objects",
}
"""Apart from the others: "keep" is also an ambiguous policy."""
