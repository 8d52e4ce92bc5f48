"""What the panel says about the region: what is drawn and saved, and how to go on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from napari_panoptic.nuclei.live.session import Session
from napari_panoptic.viewer.editing.live_edits import Copied
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.slide_texts import on_slide

NOTHING_EDITED = (
    "Nothing is edited here. Press Edit, choose the brush (2) or the eraser (1), and paint on the "
    "image: every figure follows. The brush draws a new object, or continues the selected one. "
    "Files are never changed; what you draw is a working copy."
)
NOTHING_DRAWN = (
    "Nothing is drawn yet. Choose the brush (2) or the eraser (1) and paint on the image: every "
    "figure follows. The brush continues one object, also elsewhere, until you press “New "
    "object” (or M) or select another one. Files are never changed; what you draw is a copy."
)
GOES_ON = "The brush continues one object, also elsewhere, until “New object” (or M)."
DRAW_AREAS = (
    "Ambiguous areas: draw one as a polygon (P; a double click ends it), a rectangle (R) or an "
    "ellipse (E). Select one (S) to move it, or to delete it (Delete). Undo (Ctrl+Z) takes back "
    "what was done last to them."
)
PREPARING = "Preparing shapes. The first time this takes some seconds…"
WILL_FLATTEN = (
    "Objects of this region share pixels: as soon as one is edited, all are flattened, and so are "
    "the figures."
)
NO_REGION = "Nothing can be edited: open a cohort and choose a region with an annotation."


def state_text(
    session: Session,
    copies: Sequence[Copied],
    unsaved: Collection[Copied],
    *,
    is_on: bool,
    draws_areas: bool,
) -> str:
    """Describe the working copies of a region, or how to begin.

    Parameters
    ----------
    session
        The live state.
    copies
        The working copies of the region that is shown.
    unsaved
        What is not saved, of all regions.
    is_on
        Whether editing is switched on.
    draws_areas
        Whether napari's tools work on ambiguous areas.
    """
    if session.evaluation is None:
        return on_slide(session.snapshot, slide_texts.EDITS, NO_REGION)
    if not copies:
        text = DRAW_AREAS if draws_areas else NOTHING_DRAWN if is_on else NOTHING_EDITED
        is_kept = session.snapshot is not None and session.snapshot.keeps_overlaps
        return f"{text} {WILL_FLATTEN}" if is_kept else text
    lines = [f"{c.words} ({'not saved' if c in unsaved else 'saved'})" for c in copies]
    elsewhere = len({c.region for c in unsaved} - {copies[0].region})
    more = f" Not saved in {elsewhere} other region(s) either." if elsewhere else ""
    if session.is_flattened:
        more += " Both are compared with overlaps flattened."
    if draws_areas:
        more += f" {DRAW_AREAS}"
    elif is_on:
        more += f" {GOES_ON}"
    return f"✎ Working copies: {', '.join(lines)}. The files are unchanged.{more}"
