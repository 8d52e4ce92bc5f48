"""The table of what edits did to the figures."""

from __future__ import annotations

import math

from napari_panoptic.nuclei.display import styles
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import METRIC_TEXTS
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.viewer.kit.widgets import Cell

HEADER = [
    Cell("", "Figures of this region and team."),
    Cell("files", "From the files."),
    Cell("edited", "From the working copy."),
    Cell("difference", "Edited minus files."),
]
_LENGTHS = ("mean_hausdorff_px",)


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
    text = _text(name, abs(change))
    # A change too small for the decimals still tells its direction.
    return text if not change else ("+" if change > 0 else "−") + text


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
        side = Side.PREDICTION if status.value == "FP" else Side.REFERENCE
        old, new = (e.outcomes.side(side).count(status) for e in (before, now))
        rows.append((styles.STATUS_WORDS[status], old, new))
    return rows
