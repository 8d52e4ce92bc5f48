"""The methods section on a cohort of nuclei: describes the settings for its template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from napari_panoptic.nuclei.values.settings import (
    AmbiguousPolicy,
    Correction,
    EvaluationSettings,
    Matching,
    Outlines,
    Overlaps,
    Restoration,
    Scoring,
)

_AMBIGUOUS: Mapping[AmbiguousPolicy, str] = {
    AmbiguousPolicy.CLIP: "Pixels in areas that the annotation marks as ambiguous were removed "
    "from annotation and predictions; objects without remaining pixels were ignored.",
    AmbiguousPolicy.CLIP_PREDICTIONS: "Pixels in areas that the annotation marks as ambiguous "
    "were removed from the predictions; predictions without remaining pixels were ignored.",
    AmbiguousPolicy.MAJORITY: "Pixels in areas that the annotation marks as ambiguous did not "
    "count in any intersection or union; unmatched objects with more than half of their area in "
    "one were ignored.",
    AmbiguousPolicy.KEEP: "Areas that the annotation marks as ambiguous were treated like any "
    "other area.",
}
_OUTLINES: Mapping[Outlines, str] = {
    Outlines.AS_PUBLISHED: "the whole predicted object and the part of the annotated object that "
    "the ambiguous policy leaves",
    Outlines.BOTH_CLIPPED: "the parts of both objects that the ambiguous policy leaves",
    Outlines.BOTH_WHOLE: "the whole objects",
}
_CORRECTIONS: Mapping[Correction, str] = {
    Correction.MATCHING: "unmatched predictions were counted as such, whatever their ids",
    Correction.ABSENT_CLASS_FP: "false positives of classes without an annotated nucleus in the "
    "region were counted",
    Correction.PER_PATIENT: "counts were summed over the regions of a patient before PQ was "
    "computed",
}


def methods_values(settings: EvaluationSettings) -> dict[str, Any]:
    """Return the variables of the template ``methods_nuclei.html.j2``."""
    return {
        "settings": settings,
        "is_dilated": settings.restoration is Restoration.BORDER_DILATED,
        "is_centroid": settings.matching is Matching.CENTROID,
        "is_kept": settings.overlaps is Overlaps.KEEP,
        "is_challenge": settings.scoring is Scoring.CHALLENGE,
        "ambiguous": _AMBIGUOUS[settings.ambiguous],
        "outlines": _OUTLINES[settings.outlines],
        "corrections": [_CORRECTIONS[c] for c in Correction if c in settings.corrections],
    }
