"""Sentences on how figures that look alike differ by definition. No Qt here."""

from __future__ import annotations

from napari_panoptic.common.text import counted, english_list
from napari_panoptic.nuclei.display.styles import count_text
from napari_panoptic.nuclei.metrics import Counts, detection_counts


def absent_classes(counts: Counts) -> list[str]:
    """Return the classes that are predicted but not annotated: their PQ and DQ of 0 count."""
    absent = (counts.tp + counts.fn == 0) & (counts.fp > 0)
    return [name for name, is_absent in zip(counts.class_names, absent, strict=True) if is_absent]


def absent_text(counts: Counts) -> str:
    """Describe in a few words how many absent classes PQ counts; empty for none."""
    n = len(absent_classes(counts))
    if n == 0:
        return ""
    return f"{n} absent class{'' if n == 1 else 'es'} count{'s' if n == 1 else ''} as 0"


def mean_sentence(counts: Counts) -> str:
    """Describe over which classes PQ and DQ are averaged; empty if all are annotated."""
    absent = absent_classes(counts)
    if not absent:
        return ""
    n = int(((counts.tp + counts.fp + counts.fn) > 0).sum())
    names = english_list(absent, limit=len(absent))
    return (
        f"PQ and DQ: mean over {n} class{'' if n == 1 else 'es'}; {names}, predicted but not "
        f"annotated here, count{'s' if len(absent) == 1 else ''} as 0."
    )


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
