"""The words for the status of an object and the cause of a failure."""

from __future__ import annotations

from enum import StrEnum


class Side(StrEnum):
    """Which of the two label images an object belongs to."""

    REFERENCE = "reference"  # the annotation
    PREDICTION = "prediction"  # a team's answer


class Status(StrEnum):
    """The outcome of an object."""

    TP = "TP"  # matched, same class
    FP = "FP"  # a prediction that matches nothing
    FN = "FN"  # a reference object that nothing matches
    MISCLASSIFIED = "misclassified"  # matched, another class
    IGNORED = "ignored"  # excluded by the ambiguous policy


class Cause(StrEnum):
    """Why an object is unmatched; the first that applies, in this order per side."""

    NONE = ""  # matched or ignored: there is nothing to explain
    AMBIGUOUS_SPILL = "ambiguous-spill"  # mostly inside an ambiguous region
    SPLIT = "split"  # FN: two or more predictions share it
    MERGED = "merged"  # FN: one prediction swallows it and another object
    FRAGMENT = "fragment"  # FP: a piece of a split object
    MERGER = "merger"  # FP: swallows two or more reference objects
    DUPLICATE = "duplicate"  # FP: lies in an object that another prediction matched
    TOO_SMALL = "too-small"  # the prediction covers too little of the object
    TOO_LARGE = "too-large"  # the prediction covers far more than the object
    DISPLACED = "displaced"  # overlaps, but lies beside it
    MISSED = "missed"  # FN: nothing there
    SPURIOUS = "spurious"  # FP: nothing there


STATUSES: tuple[Status, ...] = tuple(Status)
"""Status of each code (position) that outcome arrays hold."""
CAUSES: tuple[Cause, ...] = tuple(Cause)
"""Cause of each code (position) that outcome arrays hold."""
STATUS_CODE: dict[Status, int] = {status: code for code, status in enumerate(STATUSES)}
CAUSE_CODE: dict[Cause, int] = {cause: code for code, cause in enumerate(CAUSES)}
