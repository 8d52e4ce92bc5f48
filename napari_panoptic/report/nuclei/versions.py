"""The comparison of an old and a new version: ``diff.csv``, ``compare.json``, a report section."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from napari_panoptic.nuclei.explain.quality_change import QualityChange
from napari_panoptic.nuclei.explain.version_diff import VersionDiff, outcome_names
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.nuclei.versions import VersionComparison
from napari_panoptic.report.columns import TableSpec, unshown
from napari_panoptic.report.writing import provenance, write_set
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, SEED
from napari_panoptic.statistics.differences import (
    PairedDifference,
    decision_record,
    difference_record,
)
from napari_panoptic.statistics.sign_flip import DRAWS, EXACT_UP_TO, LEAST_PATIENTS
from napari_panoptic.statistics.teams import bootstrap_record

COMPARE_RECORD = "compare.json"
"""The record beside the table of objects."""
DIFF = TableSpec(
    "diff.csv",
    "reference object, and FP of either version",
    [
        unshown("patient", "region", "side"),
        unshown("id", about="of the new version; of a gone FP, of the old one"),
        unshown("partner_before", "partner_after"),
        unshown("status_before", "status_after", about="empty if the version lacks the FP"),
        unshown("cause_before", "cause_after"),
        unshown("iou_before", "iou_after", about="as in `objects.csv`"),
        unshown(
            "change",
            about="broken, fixed, still-failing, reclassified, still-right; new, persistent, gone",
        ),
        unshown("class", about="of the object itself, in the new version if it is there"),
        unshown("id_before", "class_before", about="of the old version; empty if it is new"),
        unshown("partner_class_before", "partner_class_after"),
        unshown("class_changed", about="matched in both versions, as different classes"),
        unshown("cause_changed", about="unmatched in both, for different causes"),
        unshown("iou_change", about="`up` or `down` if by more than the setting"),
        unshown("area_px", "centroid_y_px", "centroid_x_px"),
        unshown("delta_pq", about="its part of the change of PQ"),
    ],
)
COMPARE_NAMES = (DIFF.file, COMPARE_RECORD)
"""The files of a set, the record last."""


def diff_table(comparison: VersionComparison) -> pd.DataFrame:
    """Return the rows of ``diff.csv``."""
    return comparison.diff.rows.assign(delta_pq=comparison.change.of_row)[DIFF.keys]


def comparison_record(
    comparison: VersionComparison,
    *,
    settings: Mapping[str, Any],
    inputs: Mapping[str, str],
    **more: Any,
) -> dict[str, Any]:
    """Return the content of ``compare.json``.

    Parameters
    ----------
    comparison
        The comparison.
    settings
        The settings of the evaluations.
    inputs
        Fingerprints of the input files.
    more
        Further entries.
    """
    deciding, decision, diff = comparison.deciding, comparison.decision, comparison.diff
    return {
        "old": diff.old,
        "new": diff.new,
        "metric": comparison.metric,
        "difference": deciding.interval.mean,
        "low": deciding.interval.low,
        "high": deciding.interval.high,
        "p": deciding.p,
        "patients": deciding.patients,
        "verdict": str(decision.verdict),
        "reason": decision.reason,
        "unit": deciding.figures.unit,
        "level": LEVEL,
        "margin": decision.margin,
        "needed_patients": decision.needed,
        "decision": decision_record(decision),
        "regions": comparison.regions,
        "only_old": comparison.only_old,
        "only_new": comparison.only_new,
        "counts": {str(change): n for change, n in diff.counts.items()},
        "flags": diff.flags,
        "ignored": diff.ignored,
        "ignored_once": diff.ignored_once,
        "fp_pairing": str(comparison.pairing),
        "before_after": {str(side): _matrix_record(diff, side) for side in Side},
        "by_class": diff.by("class").to_dict("records"),
        "by_patient": diff.by("patient").to_dict("records"),
        "by_region": diff.by("patient", "region").to_dict("records"),
        "delta_pq": change_record(comparison.change, diff),
        "metrics": [difference_record(one) for one in comparison.metrics],
        "classes": [{"class": one.name, **_of_class(one)} for one in comparison.classes],
        "bootstrap": bootstrap_record(RESAMPLES, SEED),
        "sign_flip": {
            "exact_up_to": EXACT_UP_TO,
            "draws": DRAWS,
            "seed": SEED,
            "least_patients": LEAST_PATIENTS,
        },
        **more,
        "settings": settings,
        **provenance(comparison.findings, inputs),
    }


def change_record(change: QualityChange, diff: VersionDiff) -> dict[str, Any]:
    """Return the parts of the change of PQ as plain values."""
    return {
        "total": change.total,
        "patients": change.patients,
        "sq": change.sq,
        "dq": change.dq,
        "by_class": dict(change.by_class),
        "by_cause": change.grouped(change.cause),
        "by_change": change.grouped(diff.rows["change"]),
    }


def write_comparison(
    comparison: VersionComparison, folder: Path, record: Mapping[str, Any]
) -> list[Path]:
    """Write ``diff.csv`` and ``compare.json``; existing ones are replaced, both or neither.

    Parameters
    ----------
    comparison
        The comparison.
    folder
        The folder; created if missing.
    record
        The content of `comparison_record`.
    """
    return write_set(folder, {DIFF.file: diff_table(comparison)}, (COMPARE_RECORD, record))


def _matrix_record(diff: VersionDiff, side: Side) -> dict[str, dict[str, int]]:
    """Return the cells with objects: outcome before -> outcome after -> count."""
    cells = diff.matrix(side)
    return {
        str(before): {str(after): int(n) for after, n in row.items() if n}
        for before, row in cells.iterrows()
    }


def _of_class(difference: PairedDifference) -> dict[str, Any]:
    return {**difference_record(difference), "metric": "pq"}


def transitions(comparison: VersionComparison) -> list[tuple[str, int, float]]:
    """Return the outcomes before and after that differ, with objects and part of the PQ change.

    The most frequent come first.
    """
    rows = comparison.diff.rows
    before, after = (outcome_names(rows, when) for when in ("before", "after"))
    moved = (before != after).to_numpy()
    named = (before + " -> " + after)[moved]
    found = pd.DataFrame({"name": named, "part": comparison.change.of_row[moved]})
    sums = found.groupby("name")["part"].agg(["size", "sum"])
    ordered = sums.sort_values("size", ascending=False, kind="stable")
    return [(str(name), int(row["size"]), float(row["sum"])) for name, row in ordered.iterrows()]
