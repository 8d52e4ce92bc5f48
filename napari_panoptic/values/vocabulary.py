"""The words for the status of an object and the cause of a failure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from napari_panoptic.common.errors import SettingsError

_T = TypeVar("_T")


class Side(StrEnum):
    """Which of the two label images an object belongs to."""

    REFERENCE = "reference"  # the annotation
    PREDICTION = "prediction"  # a team's answer

    @property
    def other(self) -> Side:
        """The opposite side."""
        return Side.PREDICTION if self is Side.REFERENCE else Side.REFERENCE


def of_side(side: Side | str, reference: _T, prediction: _T) -> _T:
    """Return what belongs to a side, which may be its name.

    Raises
    ------
    SettingsError
        For anything else than a side.
    """
    if side == Side.REFERENCE:
        return reference
    if side == Side.PREDICTION:
        return prediction
    raise SettingsError(
        f"expected the side '{Side.REFERENCE}' or '{Side.PREDICTION}', found {side!r}"
    )


class Status(StrEnum):
    """The outcome of an object."""

    TP = "TP"  # matched, same class
    FP = "FP"  # a prediction that matches nothing
    FN = "FN"  # a reference object that nothing matches
    MISCLASSIFIED = "misclassified"  # matched, another class
    IGNORED = "ignored"  # excluded by the ambiguous policy


class Verdict(StrEnum):
    """Which side is right about an object."""

    ANNOTATION_RIGHT = "annotation-right"  # the prediction is wrong
    PREDICTION_RIGHT = "prediction-right"  # the annotation is wrong
    BOTH_WRONG = "both-wrong"  # something else is there
    CANNOT_TELL = "cannot-tell"  # the image does not decide it


STATUS_MEANINGS: Mapping[Status, str] = {
    Status.TP: "Found: reference and prediction match and have the same class.",
    Status.FP: "False positive: a predicted object that matches no reference object.",
    Status.FN: "False negative: a reference object that no prediction matches.",
    Status.MISCLASSIFIED: "Found, but with another class than the annotation.",
    Status.IGNORED: "Excluded from all metrics because of an ambiguous area.",
}
"""The explanation of each status in the window."""


class Cause(StrEnum):
    """Why an object is unmatched; the first that applies, in this order per side."""

    NONE = ""  # matched or ignored: there is nothing to explain
    AMBIGUOUS_SPILL = "ambiguous-spill"  # FN and FP
    SPLIT = "split"  # FN
    MERGED = "merged"  # FN
    FRAGMENT = "fragment"  # FP
    MERGER = "merger"  # FP
    DUPLICATE = "duplicate"  # FP
    TOO_SMALL = "too-small"  # FN and FP
    TOO_LARGE = "too-large"  # FN and FP
    DISPLACED = "displaced"  # FN and FP
    MISSED = "missed"  # FN
    SPURIOUS = "spurious"  # FP


CAUSE_MEANINGS: Mapping[Cause, str] = {
    Cause.NONE: "",
    Cause.AMBIGUOUS_SPILL: "Most of it lies inside an ambiguous area; only the rest was judged.",
    Cause.SPLIT: "Two or more predictions share this nucleus.",
    Cause.MERGED: "One prediction covers this nucleus and another one.",
    Cause.FRAGMENT: "A piece of a nucleus that was cut into several predictions.",
    Cause.MERGER: "This prediction covers two or more nuclei.",
    Cause.DUPLICATE: "It is inside a nucleus that another prediction already matched.",
    Cause.TOO_SMALL: "The prediction covers too little of the nucleus to match.",
    Cause.TOO_LARGE: "The prediction covers far more than the nucleus.",
    Cause.DISPLACED: "The prediction overlaps the nucleus but is shifted.",
    Cause.MISSED: "Nothing was predicted here.",
    Cause.SPURIOUS: "There is no annotated nucleus here.",
}
"""The explanation of each cause in the window."""

CAUSES_OF: Mapping[Side, tuple[Cause, ...]] = {
    Side.REFERENCE: (
        *(Cause.MISSED, Cause.SPLIT, Cause.MERGED, Cause.TOO_SMALL, Cause.TOO_LARGE),
        *(Cause.DISPLACED, Cause.AMBIGUOUS_SPILL),
    ),
    Side.PREDICTION: (
        *(Cause.SPURIOUS, Cause.FRAGMENT, Cause.MERGER, Cause.DUPLICATE),
        *(Cause.TOO_SMALL, Cause.TOO_LARGE, Cause.DISPLACED, Cause.AMBIGUOUS_SPILL),
    ),
}
"""The causes that objects of a side can have, in the order in which menus list them."""


SIDES: tuple[Side, ...] = tuple(Side)
"""Side of each code (position) that columns of objects hold."""
STATUSES: tuple[Status, ...] = tuple(Status)
"""Status of each code (position) that outcome arrays hold."""
CAUSES: tuple[Cause, ...] = tuple(Cause)
"""Cause of each code (position) that outcome arrays hold."""
STATUS_CODE: dict[Status, int] = {status: code for code, status in enumerate(STATUSES)}
CAUSE_CODE: dict[Cause, int] = {cause: code for code, cause in enumerate(CAUSES)}
