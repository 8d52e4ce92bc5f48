"""The comparison of an old and a new version: ``diff.csv``, ``compare.json``, a report section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.records import fields_of
from napari_panoptic.common.text import english_list
from napari_panoptic.questions.engines.quality_change import QualityChange
from napari_panoptic.questions.engines.version_diff import (
    CHANGE_MEANINGS,
    VersionDiff,
    outcome_names,
)
from napari_panoptic.questions.engines.versions import VersionComparison
from napari_panoptic.report.columns import table
from napari_panoptic.report.page import team_label
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, SEED
from napari_panoptic.statistics.differences import (
    PairedDifference,
    decision_record,
    difference_record,
)
from napari_panoptic.statistics.sign_flip import DRAWS, EXACT_UP_TO, LEAST_PATIENTS
from napari_panoptic.statistics.teams import bootstrap_record
from napari_panoptic.tables.columns import (
    TableColumn,
    TableSpec,
    bounds,
    name_column,
    number,
    unshown,
    whole,
    words,
)
from napari_panoptic.tables.figures import FIGURE_NAMES, count, counted, interval, p_value, signed
from napari_panoptic.tables.markup import Child, Html, element, note, paragraph
from napari_panoptic.values.vocabulary import Side

if TYPE_CHECKING:
    import pandas as pd

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
            about="broken, fixed, still-failing, reclassified, still-right, ignored-once; "
            "new, persistent, gone",
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
PART = number("delta_pq", "part of the change of PQ", lambda part: signed(part, 4))
COMPARE_NAMES = (DIFF.file, COMPARE_RECORD)
"""The files of a set, the record last."""


def diff_table(comparison: VersionComparison) -> pd.DataFrame:
    """Return the rows of ``diff.csv``."""
    return comparison.diff.rows.assign(delta_pq=comparison.change.of_row)[DIFF.keys]


def comparison_record(
    comparison: VersionComparison,
    *,
    settings: Mapping[str, Any],
    **more: Any,
) -> dict[str, Any]:
    """Return the content of ``compare.json``: with the settings of the evaluations, and more."""
    deciding, decision, diff = comparison.deciding, comparison.decision, comparison.diff
    return {
        **fields_of(diff, "old", "new"),
        "metric": comparison.metric,
        "difference": deciding.interval.mean,
        **fields_of(deciding.interval, "low", "high"),
        **fields_of(deciding, "p", "patients"),
        **fields_of(decision, "verdict", "reason"),
        "unit": deciding.figures.unit,
        "level": LEVEL,
        "margin": decision.margin,
        "needed_patients": decision.needed,
        "decision": decision_record(decision),
        **fields_of(comparison, "regions", "only_old", "only_new"),
        **fields_of(diff, "counts", "flags", "ignored", "ignored_once"),
        "fp_pairing": comparison.pairing,
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
    }


def change_record(change: QualityChange, diff: VersionDiff) -> dict[str, Any]:
    """Return the parts of the change of PQ as plain values."""
    return {
        **fields_of(change, "total", "patients", "sq", "dq", "by_class"),
        "by_cause": change.grouped(change.cause),
        "by_change": change.grouped(diff.rows["change"]),
    }


# --- a section of a report --------------------------------------------------------------------


def versions_section(comparison: VersionComparison, teams: Sequence[str]) -> list[Child]:
    """Show the changes by a new version, their certainty, and the objects.

    Parameters
    ----------
    comparison
        The two versions.
    teams
        All teams of the cohort, in its order, which decides their colours.
    """
    diff, decision = comparison.diff, comparison.decision
    lead = paragraph(
        "From ",
        team_label(diff.old, teams),
        " to ",
        team_label(diff.new, teams),
        f" in {counted(comparison.regions, 'region')}, {FIGURE_NAMES[comparison.metric]}: ",
        element("b", str(decision.verdict)),
        f" ({decision.reason}; {decision.level:.0%} limits of the tests "
        f"{interval(decision.low, decision.high)}, margin {decision.margin:g}).",
    )
    method = note(
        f"Differences are new minus old, means over patients. Intervals: {LEVEL:.0%} BCa bootstrap "
        f"of patients. p: sign-flip test over patients, exact up to {EXACT_UP_TO}, corrected by "
        f"Holm's method over the rows of the table. With fewer than {LEAST_PATIENTS} patients "
        "nothing is decided."
    )
    left_out = [
        paragraph(f"Left out, since evaluated for {which} only: {english_list(regions)}.")
        for which, regions in ((diff.old, comparison.only_old), (diff.new, comparison.only_new))
        if regions
    ]
    return [
        lead,
        method,
        *left_out,
        _differences("versions_metrics", "metric", comparison.metrics, FIGURE_NAMES),
        _changes(comparison),
        *(_matrix(diff, side) for side in Side if (diff.rows["side"] == str(side)).any()),
        _parts(comparison),
        _differences("versions_classes", "class", comparison.classes, {}),
        _by_patient(comparison),
    ]


def _differences(
    slug: str, key: str, found: Sequence[PairedDifference], names: Mapping[str, str]
) -> Html:
    caption = (
        "Every metric in both versions." if key == "metric" else "PQ of each class, both versions."
    )
    columns = [name_column(key), *difference_columns("old", "new"), words("note", " ")]
    return table(slug, caption, columns, differences_table(key, found, names))


def difference_columns(old: str, new: str) -> list[TableColumn]:
    """Return the columns of figures of two versions, under their names."""
    return [
        number("old", old),
        number("new", new),
        number("difference", "difference", signed),
        bounds("low", "high", f"{LEVEL:.0%} interval"),
        number("p", "p", p_value),
        number("holm_p", "Holm p", p_value),
        whole("patients"),
    ]


def differences_table(
    key: str, found: Sequence[PairedDifference], names: Mapping[str, str]
) -> pd.DataFrame:
    """Return a row per figure: both versions and their difference; ``key`` names the figures."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                key: names.get(one.name, one.name),
                **fields_of(one, "old", "new"),
                "difference": one.interval.mean,
                **fields_of(one.interval, "low", "high"),
                **fields_of(one, "p", "holm_p", "patients", "note"),
            }
            for one in found
        ]
    )


def changes_table(comparison: VersionComparison) -> pd.DataFrame:
    """Return the number of objects of each change, and their part of the change of PQ."""
    import pandas as pd

    parts = comparison.change.grouped(comparison.diff.rows["change"])
    rows = [
        {
            "change": str(change),
            "meaning": CHANGE_MEANINGS[change],
            "objects": n,
            "delta_pq": parts.get(str(change), 0.0),
        }
        for change, n in comparison.diff.counts.items()
    ]
    return pd.DataFrame(rows)


def _changes(comparison: VersionComparison) -> Html:
    columns = [words("change"), words("meaning"), whole("objects"), PART]
    flags = ", ".join(
        f"{name.replace('_', ' ')} {count(n)}" for name, n in comparison.diff.flags.items()
    )
    caption = f"Objects by change. Of all: {flags}. FPs are recognised by {comparison.pairing}."
    return table("versions_changes", caption, columns, changes_table(comparison))


def _matrix(diff: VersionDiff, side: Side) -> Html:
    cells = diff.matrix(side)
    columns = [words("before"), *(whole(str(after)) for after in cells.columns)]
    what = "annotated nuclei" if side is Side.REFERENCE else "predictions without a match"
    caption = f"Number of {what} by outcome: rows in the old version, columns in the new one."
    return table(f"versions_{side}", caption, columns, cells.reset_index())


def _parts(comparison: VersionComparison) -> Html:
    change = comparison.change
    groups = {
        "quality": {"outlines (SQ)": change.sq, "detection (DQ)": change.dq},
        "class": dict(change.by_class),
        "cause": change.grouped(change.cause),
    }
    rows = [
        {"by": by, "part": name, "delta_pq": part}
        for by, parts in groups.items()
        for name, part in parts.items()
    ]
    caption = (
        f"The change of PQ, {signed(change.total, 4)}, split in three ways; each adds up to it."
    )
    columns = [words("by"), name_column("part"), PART]
    return table("versions_parts", caption, columns, rows)


def _by_patient(comparison: VersionComparison) -> Html:
    frame = comparison.diff.by("patient")
    parts = comparison.change.grouped(comparison.diff.rows["patient"])
    frame["delta_pq"] = [parts.get(patient, 0.0) for patient in frame["patient"]]
    changes = (
        whole(str(change), str(change).replace("-", " ")) for change in comparison.diff.changes
    )
    columns = [name_column("patient"), *changes, PART]
    return table("versions_patients", "Objects of each patient by change.", columns, frame)


def _matrix_record(diff: VersionDiff, side: Side) -> dict[str, dict[str, int]]:
    """Return the cells with objects: outcome before -> outcome after -> count."""
    cells = diff.matrix(side)
    return {
        str(before): {str(after): int(n) for after, n in row.items() if n}
        for before, row in cells.iterrows()
    }


def _of_class(difference: PairedDifference) -> dict[str, Any]:
    return {**difference_record(difference), "metric": "pq"}


def transitions(comparison: VersionComparison) -> pd.DataFrame:
    """Return the outcomes before and after that differ, with objects and part of the PQ change.

    The most frequent come first.
    """
    import pandas as pd

    rows = comparison.diff.rows
    before, after = (outcome_names(rows, when) for when in ("before", "after"))
    moved = (before != after).to_numpy()
    named = (before + " -> " + after)[moved]
    found = pd.DataFrame({"outcomes": named, "part": comparison.change.of_row[moved]})
    sums = found.groupby("outcomes")["part"].agg(objects="size", delta_pq="sum").reset_index()
    return sums.sort_values("objects", ascending=False, kind="stable")
