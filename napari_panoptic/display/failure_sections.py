"""Filters and groups failures for a gallery and a queue. Pure: arrays only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.choices import MenuChoice
from napari_panoptic.display import styles
from napari_panoptic.display.object_rows import ObjectFilter, let_through, object_words
from napari_panoptic.explain.failures import CohortFailures
from napari_panoptic.values.vocabulary import (
    CAUSE_CODE,
    CAUSES,
    STATUSES,
    Cause,
)

_BY_STATUS = 100
"""Plus the code of a status: the section of objects without a cause."""
SMALL = "small objects"
"""Title of the section of failures too small to matter."""
SMALL_MEANING = "Failures of less than {} px: they come last. napari's Preferences have the size."


class GroupBy(MenuChoice):
    """What the sections of the gallery are."""

    CAUSE = (
        "cause",
        "One section per cause of failure; the cause of the worst failure comes first.",
    )
    CLASS = "class", "One section per class of the objects."
    TEAM = "team", "One section per team; shows the failures of all teams."
    REGION = "region", "One section per region."


@dataclass(frozen=True, eq=False)
class FailureSection:
    """Failures under one heading."""

    #: The heading.
    title: str
    #: One sentence about it; may be empty.
    meaning: str
    #: int (n,): rows of the failures, worst first.
    rows: NDArray[np.intp]


def passing(failures: CohortFailures, wanted: ObjectFilter) -> NDArray[np.bool_]:
    """Mark the failures that a filter of the object table lets through, of any verdict."""
    return let_through(failures.columns, object_words(failures.class_names), wanted)


def sections(
    failures: CohortFailures, order: NDArray[np.intp], by: GroupBy, small_px: int = 0
) -> tuple[FailureSection, ...]:
    """Group failures; empty sections are left out, and small failures have one at the end.

    Parameters
    ----------
    failures
        The failures.
    order
        int (k,): the rows to show, in the order that each section keeps.
    by
        What the sections are.
    small_px
        Failures of a smaller area are small.

    Returns
    -------
    tuple of FailureSection
        Causes by their worst failure; classes, teams and regions in the cohort's order.
    """
    is_small = failures.columns["area_px"][order] < small_px
    if is_small.any():
        small = FailureSection(SMALL, SMALL_MEANING.format(small_px), order[is_small])
        return (*sections(failures, order[~is_small], by), small)
    codes, titled = _grouping(failures, by)
    own = codes[order]
    if not len(own):
        return ()
    present, firsts = np.unique(own, return_index=True)
    if by is GroupBy.CAUSE:
        present = present[np.argsort(firsts)]
    by_code = np.argsort(own, kind="stable")
    starts = np.searchsorted(own[by_code], present)
    ends = np.searchsorted(own[by_code], present, side="right")
    return tuple(
        FailureSection(*titled(int(code)), order[by_code[start:end]])
        for code, start, end in zip(present, starts, ends, strict=True)
    )


def _grouping(
    failures: CohortFailures, by: GroupBy
) -> tuple[NDArray[np.intp], Callable[[int], tuple[str, str]]]:
    """Return the section code of every row, and title and meaning of each code."""
    if by is GroupBy.CAUSE:
        cause = failures.columns["cause"].astype(np.intp)
        status = failures.columns["status"].astype(np.intp)
        has_none = cause == CAUSE_CODE[Cause.NONE]
        return np.where(has_none, _BY_STATUS + status, cause), _cause_heading
    if by is GroupBy.CLASS:
        names = ("", *failures.class_names)
        return failures.columns["class"].astype(np.intp), lambda code: (names[code], "")
    is_team = by is GroupBy.TEAM
    owners = [block.team if is_team else block.region for block in failures.blocks]
    titles: Sequence[str] = list(dict.fromkeys(owners))
    numbers = np.array([titles.index(owner) for owner in owners], np.intp)
    return numbers[failures.block], lambda code: (titles[code], "")


def _cause_heading(code: int) -> tuple[str, str]:
    if code >= _BY_STATUS:
        status = STATUSES[code - _BY_STATUS]
        return str(status), styles.STATUS_MEANINGS[status]
    cause = CAUSES[code]
    return styles.CAUSE_WORDS[cause], styles.CAUSE_MEANINGS[cause]
