"""The comparison of two versions as text, and the objects behind its figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display.styles import count_text, ratio_text, signed_text
from napari_panoptic.nuclei.metrics import METRIC_TEXTS
from napari_panoptic.questions.engines.cohort_failures import FailureName
from napari_panoptic.questions.engines.version_diff import (
    NO_OBJECT,
    Change,
    VersionDiff,
    outcome_names,
)
from napari_panoptic.questions.engines.versions import VersionComparison
from napari_panoptic.statistics.differences import PairedDifference
from napari_panoptic.statistics.sign_flip import LEAST_PATIENTS
from napari_panoptic.tables.figures import counted
from napari_panoptic.values.vocabulary import Side, Status

if TYPE_CHECKING:
    import pandas as pd

_FAILS = (str(Status.MISCLASSIFIED), str(Status.FN), str(Status.FP))
_ORDER = (str(Status.TP), *_FAILS, str(Status.IGNORED), NO_OBJECT)


@dataclass(frozen=True)
class MatrixCell:
    """A cell of the matrix of outcomes before and after."""

    side: Side
    before: str
    after: str


Chosen = Change | MatrixCell | None
"""Which objects are listed: those of a change, of a cell, or all."""


def headline(comparison: VersionComparison) -> str:
    """Describe the changes by the new version, their certainty, and the verdict."""
    diff, one = comparison.diff, comparison.deciding
    counts = diff.counts
    nuclei = "nucleus" if counts[Change.FIXED] == 1 else "nuclei"
    text = (
        f"{diff.new} fixed {count_text(counts[Change.FIXED])} {nuclei} of {diff.old} and broke "
        f"{count_text(counts[Change.BROKEN])}; {count_text(counts[Change.NEW])} new FP, "
        f"{count_text(counts[Change.GONE])} gone"
    )
    figures = [f"{METRIC_TEXTS[one.name].title} {signed_text(one.interval.mean)}"]
    if one.patients >= LEAST_PATIENTS:
        figures[0] += f" {interval_text(one)}"
        figures += [f"p = {p_text(one.p)}", counted(one.patients, one.figures.unit)]
    decision = comparison.decision
    verdict = str(decision.verdict).replace("-", " ")
    why = "" if decision.reason.startswith(verdict) else f": {decision.reason}"
    if one.patients < LEAST_PATIENTS:
        return f"{text}; {figures[0]}{why}"
    return f"{text}; {', '.join(figures)}: {verdict}{why.replace(': ', ' (', 1)}{')' * bool(why)}"


def interval_text(one: PairedDifference) -> str:
    """Return the interval of a difference, or nothing if it is undefined."""
    low, high = one.interval.low, one.interval.high
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"[{signed_text(low)}, {signed_text(high)}]"


def p_text(p: float) -> str:
    """Format a p-value; an en dash if undefined."""
    return "< 0.001" if p < 0.001 else ratio_text(p)


def left_out(comparison: VersionComparison) -> str:
    """Describe the regions that are not compared; empty if all are."""
    diff = comparison.diff
    parts = [
        f"{counted(len(regions), 'region')} of {name} only"
        for name, regions in ((diff.old, comparison.only_old), (diff.new, comparison.only_new))
        if regions
    ]
    omitted = comparison.deciding.figures.omitted
    if n := sum(len(one.teams) < one.of for one in omitted):
        parts.append(f"{counted(n, 'patient')} with a figure of one version only")
    return f"Left out: {', '.join(parts)}." if parts else ""


def outcome_order(names: Sequence[str]) -> list[str]:
    """Return outcomes of a matrix, right ones first, then failures by cause."""
    return sorted(names, key=lambda name: (_ORDER.index(name.split(": ")[0]), name))


def outcome_status(name: str) -> Status | None:
    """Return the status of an outcome; None if the version lacks the object."""
    status = name.split(": ")[0]
    return None if status == NO_OBJECT else Status(status)


def listed_rows(diff: VersionDiff, chosen: Chosen) -> NDArray[np.bool_]:
    """Return bool (n,): whether each row of a diff is listed."""
    rows = diff.rows
    if chosen is None:
        found: NDArray[np.bool_] = np.ones(len(rows), np.bool_)
        return found
    if isinstance(chosen, Change):
        return (rows["change"] == str(chosen)).to_numpy(np.bool_)
    is_in = rows["side"] == str(chosen.side)
    is_in &= outcome_names(rows, "before") == chosen.before
    is_in &= outcome_names(rows, "after") == chosen.after
    return is_in.to_numpy(np.bool_)


def chosen_text(chosen: Chosen) -> str:
    """Return the listed objects in a few words."""
    if chosen is None:
        return "all objects"
    if isinstance(chosen, Change):
        return str(chosen).replace("-", " ")
    return f"{chosen.before} → {chosen.after}"


def object_name(diff: VersionDiff, row: int, *, before: bool) -> FailureName:
    """Return the object of a row in one version, or in the version that has it.

    Parameters
    ----------
    diff
        The two versions.
    row
        Position among its rows.
    before
        Whether to return the object of the old version.
    """
    one = diff.rows.iloc[row]
    is_old = bool(one["status_before"] != "" if before else one["status_after"] == "")
    id_ = int(one["id_before"] if is_old else one["id"])
    return FailureName(diff.old if is_old else diff.new, str(one["region"]), Side(one["side"]), id_)


def failure_names(diff: VersionDiff, rows: Sequence[int]) -> list[FailureName]:
    """Return objects as failures, in the version that fails.

    Objects that fail in the new version are those of the new version, also if the old one
    failed before; objects that fail in neither are left out.
    """
    was, is_ = (diff.rows[f"status_{when}"].isin(_FAILS).to_numpy() for when in ("before", "after"))
    return [object_name(diff, row, before=not is_[row]) for row in rows if was[row] or is_[row]]


def part_rows(comparison: VersionComparison) -> pd.DataFrame:
    """Return every split of ΔPQ: columns ``by``, ``part``, ``delta_pq``."""
    import pandas as pd

    change = comparison.change
    groups = {
        "quality": {"outlines (SQ)": change.sq, "detection (DQ)": change.dq},
        "change": {
            name.replace("-", " "): part
            for name, part in change.grouped(comparison.diff.rows["change"]).items()
        },
        "cause": change.grouped(change.cause),
        "class": dict(change.by_class),
    }
    rows = [(by, name, part) for by, parts in groups.items() for name, part in parts.items()]
    return pd.DataFrame(rows, columns=["by", "part", "delta_pq"])
