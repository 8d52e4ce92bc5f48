"""What the panel of edits says: how to go on, and what edits did to the figures."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from napari_panoptic.display import styles
from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import METRIC_TEXTS
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.viewer.editing.live_edits import Copied
from napari_panoptic.viewer.kit.figures import Cell
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


HEADER = [
    Cell("", "Figures of this region and team."),
    Cell("files", "From the files."),
    Cell("edited", "From the working copy."),
    Cell("difference", "Edited minus files."),
]
_LENGTHS = ("mean_hausdorff_px",)
_SIDES = {Status.FP: (Side.PREDICTION,), Status.IGNORED: tuple(Side)}
"""Where the objects of a status are counted, if not in the annotation; as in the metrics."""


def difference_rows(before: Evaluation, now: Evaluation) -> list[list[Cell]]:
    """Return one row per figure and count: of the files, edited, and their difference."""
    return [
        *(_figure_row(name, before, now) for name in METRIC_TEXTS),
        *(_count_row(*line) for line in _counts(before, now)),
    ]


def _figure_row(name: str, before: Evaluation, now: Evaluation) -> list[Cell]:
    about = METRIC_TEXTS[name]
    old, new = float(before.metrics[name]), float(now.metrics[name])
    texts = [_text(name, value) for value in (old, new)]
    return [
        Cell(about.caption + (" px" if name in _LENGTHS else ""), about.meaning),
        *(Cell(text, _why(value)) for text, value in zip(texts, (old, new), strict=True)),
        Cell(signed(name, old, new), f"{new - old:+.6f}", bold=texts[0] != texts[1]),
    ]


def _count_row(name: str, old: int, new: int) -> list[Cell]:
    return [
        Cell(name, f"Number of {name}."),
        Cell(styles.count_text(old)),
        Cell(styles.count_text(new)),
        Cell(styles.signed_count_text(new - old), bold=old != new),
    ]


def signed(name: str, before: float, now: float) -> str:
    """Write how a figure changed, with its sign; an en dash if one is undefined."""
    change = now - before
    if math.isnan(change):
        return styles.UNDEFINED
    return styles.with_sign(change, _text(name, abs(change)))


def _text(name: str, value: float) -> str:
    return styles.decimal_text(value) if name in _LENGTHS else styles.ratio_text(value)


def _why(value: float) -> str:
    return "Undefined: there is nothing to measure." if math.isnan(value) else ""


def _counts(before: Evaluation, now: Evaluation) -> list[tuple[str, int, int]]:
    rows = []
    for title, side in (
        ("annotated objects", Side.REFERENCE),
        ("predicted objects", Side.PREDICTION),
    ):
        rows.append((title, len(before.outcomes.side(side)), len(now.outcomes.side(side))))
    for status in styles.STATUS_WORDS:
        sides = _SIDES.get(status, (Side.REFERENCE,))
        old, new = (
            sum(e.outcomes.side(side).count(status) for side in sides) for e in (before, now)
        )
        rows.append((styles.STATUS_WORDS[status], old, new))
    return rows
