"""What figures mean on a region: the objects behind each, and how those that look alike differ.

The objects behind a count are as many as the count says: a matched pair is listed once, by its
reference object. Pure: names and counts in, filters and sentences out.
"""

from __future__ import annotations

from collections.abc import Sequence

from napari_panoptic.common.text import counted, english_list
from napari_panoptic.display.object_rows import NONE_WORD, SIDE_WORDS, ObjectFilter
from napari_panoptic.display.styles import count_text
from napari_panoptic.nuclei.metrics import METRIC_TEXTS, Counts, detection_counts
from napari_panoptic.values.vocabulary import SIDES, Side, Status

_REFERENCE = frozenset({SIDE_WORDS[SIDES.index(Side.REFERENCE)]})
_PREDICTION = frozenset({SIDE_WORDS[SIDES.index(Side.PREDICTION)]})
_EVERY_STATUS_BUT_IGNORED = frozenset(str(s) for s in Status if s is not Status.IGNORED)
_MATCHED = frozenset({str(Status.TP), str(Status.MISCLASSIFIED)})


_FN, _FP = str(Status.FN), str(Status.FP)
"""Names of the empty sides of the confusion matrix."""

_FIGURE_TITLES = {
    "sq": "SQ: all TP",
    "detection_precision": "precision: all predictions",
    "detection_recall": "recall: all nuclei",
    "detection_accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy: matched pairs",
    "mean_iou": "mean IoU: matched pairs",
    "mean_hausdorff_px": "mean HD: matched pairs",
    "matched": "matched pairs",
    "fp": _FP,
    "fn": _FN,
}


def behind_cell(reference: str, prediction: str) -> ObjectFilter:
    """List what a cell of the confusion matrix counts.

    Parameters
    ----------
    reference, prediction
        Its row and column; ``none`` for the empty side.
    """
    cell = [(reference, prediction)]
    if reference == NONE_WORD:
        return _behind_cells(cell, _PREDICTION, f"{_FP} → {prediction}")
    found = _FN if prediction == NONE_WORD else prediction
    return _behind_cells(cell, _REFERENCE, f"{reference} → {found}")


def behind_row(reference: str, class_names: Sequence[str]) -> ObjectFilter:
    """List what a row of the confusion matrix counts: the objects annotated as a class."""
    pairs = [(reference, other) for other in (*class_names, NONE_WORD)]
    if reference == NONE_WORD:
        return _behind_cells(pairs, _PREDICTION, _FP)
    return _behind_cells(pairs, _REFERENCE, f"annotated as {reference}")


def behind_column(prediction: str, class_names: Sequence[str]) -> ObjectFilter:
    """List what a column of the confusion matrix counts: the objects predicted as a class."""
    pairs = [(other, prediction) for other in (*class_names, NONE_WORD)]
    if prediction == NONE_WORD:
        return _behind_cells(pairs, _REFERENCE, _FN)
    return _behind_cells(pairs, _PREDICTION, f"predicted as {prediction}")


def _behind_cells(
    pairs: Sequence[tuple[str, str]], sides: frozenset[str], title: str
) -> ObjectFilter:
    cells = frozenset(pairs) - {(NONE_WORD, NONE_WORD)}
    return ObjectFilter(sides=sides, pairs=cells, title=title)


def behind_class(name: str, of_class: str, class_names: Sequence[str]) -> ObjectFilter:
    """List what a figure of one class is computed from.

    Parameters
    ----------
    name
        A column of the figures by class: class, tp, fp, fn, pq, sq, dq, or
        mean_hausdorff_px.
    of_class
        The class.
    class_names
        All classes.
    """
    others = [other for other in (*class_names, NONE_WORD) if other != of_class]
    right = frozenset({(of_class, of_class)})
    fp = frozenset((other, of_class) for other in others)
    fn = frozenset((of_class, other) for other in others)
    found = (right | fn) - {(of_class, NONE_WORD)}
    if name == "class":
        return ObjectFilter(classes=frozenset({of_class}), title=f"all {of_class}")
    sides, pairs, title = {
        "tp": (_REFERENCE, right, "TP"),
        "fp": (_PREDICTION, fp, "FP"),
        "fn": (_REFERENCE, fn, "FN"),
        "sq": (_REFERENCE, right, "SQ"),
        "mean_hausdorff_px": (_REFERENCE, found, "HD"),
    }.get(name, (None, right | fp | fn, name.upper()))
    return ObjectFilter(sides=sides, pairs=pairs, title=f"{title} of {of_class}")


def behind_figure(name: str) -> ObjectFilter:
    """List what a figure of the whole region is computed from.

    Parameters
    ----------
    name
        A metric, or one of matched, fp, fn, ignored.
    """
    sides, statuses = {
        "sq": (_REFERENCE, frozenset({str(Status.TP)})),
        "detection_precision": (_PREDICTION, _EVERY_STATUS_BUT_IGNORED),
        "detection_recall": (_REFERENCE, _EVERY_STATUS_BUT_IGNORED),
        "matched": (_REFERENCE, _MATCHED),
        "balanced_accuracy": (_REFERENCE, _MATCHED),
        "mean_iou": (_REFERENCE, _MATCHED),
        "mean_hausdorff_px": (_REFERENCE, _MATCHED),
        "fp": (_PREDICTION, frozenset({str(Status.FP)})),
        "fn": (_REFERENCE, frozenset({str(Status.FN)})),
        "ignored": (None, frozenset({str(Status.IGNORED)})),
    }.get(name, (None, _EVERY_STATUS_BUT_IGNORED))
    caption = METRIC_TEXTS[name].caption if name in METRIC_TEXTS else name
    title = _FIGURE_TITLES.get(name, caption)
    return ObjectFilter(sides=sides, statuses=statuses, title=title)


def absent_classes(counts: Counts) -> list[str]:
    """Return the classes that are predicted but not annotated: their PQ and DQ of 0 count."""
    absent = (counts.tp + counts.fn == 0) & (counts.fp > 0)
    return [name for name, is_absent in zip(counts.class_names, absent, strict=True) if is_absent]


def absent_text(counts: Counts) -> str:
    """Describe in a few words how many classes of PQ 0 are not annotated; empty for none."""
    n = len(absent_classes(counts))
    return f"includes {counted(n, 'class')} without annotation" if n else ""


def mean_sentence(counts: Counts) -> str:
    """Describe over which classes PQ and DQ are averaged; empty if all are annotated."""
    absent = absent_classes(counts)
    if not absent:
        return ""
    n = int(((counts.tp + counts.fp + counts.fn) > 0).sum())
    names = english_list(absent, limit=len(absent))
    return (
        f"PQ and DQ: mean over {counted(n, 'class')}; {names}, predicted but not annotated here, "
        f"{_count_as_0(len(absent))}."
    )


def _count_as_0(n: int) -> str:
    return "counts as 0" if n == 1 else "count as 0"


def by_class_sentence(counts: Counts) -> str:
    """Describe why the FP and FN of the classes sum to more than unmatched objects."""
    _, unmatched, _ = detection_counts(counts)
    fp, fn = int(counts.fp.sum()), int(counts.fn.sum())
    pairs = fp - unmatched
    if pairs == 0:
        return ""
    return (
        f"By class, FP {count_text(fp)} and FN {count_text(fn)} each include "
        f"{counted(pairs, 'misclassified pair', write=count_text)}."
    )
