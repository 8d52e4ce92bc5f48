"""Texts of panels that cannot show a whole slide, since it is too large."""

from __future__ import annotations

from napari_panoptic.live.snapshots import RegionSnapshot

_TOO_LARGE = "This is a whole slide, too large to be held in memory. "

GALLERY = _TOO_LARGE + (
    "Instead of crops, step through its failures with N and Shift+N, or double-click a row of the "
    "object table."
)
TEAMS = _TOO_LARGE + (
    "Teams are shown side by side on smaller regions only. Choose one team after another above: "
    "each is evaluated once, and the Regions panel keeps the PQ of all."
)
VERSIONS = _TOO_LARGE + (
    "Versions are compared on smaller regions here; choose “whole cohort” to include slides."
)
REGION = _TOO_LARGE + "Choose a smaller region in the Regions panel."
GROUPS = _TOO_LARGE + (
    "Instead of groups, filter the table by cause: split, merged, fragment, merger and duplicate "
    "list the same objects one by one."
)
AUDIT = _TOO_LARGE + (
    "To compare policies, choose another one for ambiguous areas in the settings: the slide is not "
    "evaluated again. Which objects change is listed on smaller regions only."
)
REVIEW = (
    "No verdicts on whole slides: they are too large to be held in memory. Choose a smaller region "
    "in the Regions panel, or add the part in question to the cohort as a region of its own."
)
EDITS = _TOO_LARGE + (
    "It cannot be edited: choose a smaller region in the Regions panel, or add the part in "
    "question to the cohort as a region of its own."
)
STOPPED = (
    "No metrics yet: this team has not been evaluated on this slide. Press “Evaluate” above the "
    "image."
)

OVERLAPS = _TOO_LARGE + (
    "Objects of such slides cannot keep the pixels that they share: choose “Object on top” for "
    "“Shared pixels” in the settings."
)


def on_slide(snapshot: RegionSnapshot | None, words: str, otherwise: str) -> str:
    """Return one text for a whole slide, and another for other regions or none."""
    return words if snapshot is not None and snapshot.is_slide else otherwise


def waiting(saying: str, share: float) -> str:
    """Describe how far the evaluation of a slide is.

    Parameters
    ----------
    saying
        What is being done, such as "counting".
    share
        How much of all is done, from 0 to 1.
    """
    return (
        f"This slide is being evaluated: {saying}, {share:.0%}. Metrics and objects follow when "
        "all of it has been evaluated; the image can be viewed meanwhile."
    )
