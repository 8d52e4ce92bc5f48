"""The columns of the lists of two versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.display import styles
from napari_panoptic.display.styles import MINUS, count_text, ratio_text, signed_text
from napari_panoptic.nuclei.metrics import METRIC_TEXTS
from napari_panoptic.questions.engines.version_diff import (
    CHANGE_MEANINGS,
    NO_OBJECT,
    Change,
    outcome_names,
)
from napari_panoptic.questions.engines.versions import VersionComparison
from napari_panoptic.statistics.differences import PairedDifference
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import Status
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.panels.versions.words import interval_text, p_text, part_rows

if TYPE_CHECKING:
    import pandas as pd

BEFORE = "before"
"""Key of the columns about the old version."""


class VersionsList(StrEnum):
    """What is listed beside the matrix."""

    OBJECTS = "Objects"
    METRICS = "Metrics"
    CLASSES = "By class"
    PATIENTS = "By patient"
    REGIONS = "By region"
    PARTS = "Parts of ΔPQ"


VIEW_MEANINGS: dict[VersionsList, str] = {
    VersionsList.OBJECTS: "Objects of the selected cell, broken ones first.",
    VersionsList.METRICS: "Difference of every metric, paired by patient, with Holm-corrected p.",
    VersionsList.CLASSES: "PQ of every class in both versions, with its objects by change.",
    VersionsList.PATIENTS: "Objects of every patient by change, with the patient's part of ΔPQ.",
    VersionsList.REGIONS: "Objects of every region by change, with the region's part of ΔPQ.",
    VersionsList.PARTS: "ΔPQ split by quality, change, cause and class; each split adds up to ΔPQ.",
}


def columns_of(view: VersionsList, comparison: VersionComparison) -> list[Column]:
    """Return the rows that a view lists of a comparison."""
    makers: dict[VersionsList, Callable[[VersionComparison], list[Column]]] = {
        VersionsList.OBJECTS: _object_columns,
        VersionsList.METRICS: lambda one: _difference_columns("metric", one.metrics),
        VersionsList.CLASSES: _class_columns,
        VersionsList.PATIENTS: lambda one: _group_columns(one, "patient"),
        VersionsList.REGIONS: lambda one: _group_columns(one, "patient", "region"),
        VersionsList.PARTS: _part_columns,
    }
    return makers[view](comparison)


def _object_columns(comparison: VersionComparison) -> list[Column]:
    diff, rows = comparison.diff, comparison.diff.rows
    meanings = {str(change): meaning for change, meaning in CHANGE_MEANINGS.items()}
    changes = rows["change"].to_numpy(str)
    columns = [
        _words("Change", "Change by the new version.", changes, width=86),
        _words("Region", "Click to go to the object.", rows["region"].to_numpy(str), width=172),
        _words("Side", "Annotated nucleus or FP.", rows["side"].to_numpy(str), width=74),
        Column(
            "Id", "For a gone FP, that of the old version.", rows["id"].to_numpy(np.int64), width=46
        ),
        _words("Class", "Class of the object.", rows["class"].to_numpy(str), width=86),
    ]
    columns[0] = _with_tooltip(columns[0], lambda row: meanings[changes[row]])
    for when, name in ((BEFORE, diff.old), ("after", diff.new)):
        outcome = outcome_names(rows, when).to_numpy(str)
        partner = rows[f"partner_class_{when}"].to_numpy(str)
        columns.append(
            Column(
                when.capitalize(),
                f"Outcome in {name}; click to see it there.",
                outcome,
                text=lambda text: "–" if text == NO_OBJECT else str(text),
                tooltip=partial(_partner_tooltip, name, partner),
                colour=_colour_of(rows[f"status_{when}"].to_numpy(object)),
                width=118,
                is_text=True,
                key=when,
            )
        )
    for when, name in ((BEFORE, diff.old), ("after", diff.new)):
        iou = rows[f"iou_{when}"].to_numpy(np.float64)
        title, meaning = f"IoU {when}", f"IoU with the partner in {name}, or the highest IoU."
        columns.append(Column(title, meaning, iou, text=ratio_text, width=78, key=when))
    parts = comparison.change.of_row
    meaning = "The object's part of ΔPQ."
    columns.append(Column("ΔPQ", meaning, parts, text=_small_text, width=78))
    return columns


def _difference_columns(key: str, found: Sequence[PairedDifference]) -> list[Column]:
    names = [METRIC_TEXTS[one.name].title if key == "metric" else one.name for one in found]
    p, holm = (np.array([getattr(one, name) for one in found]) for name in ("p", "holm_p"))
    notes = [one.note for one in found]
    return [
        _words(key.capitalize(), f"The {key}.", np.array(names, str), width=150),
        _ratios("Old", "Mean over patients in the old version.", [one.old for one in found]),
        _ratios("New", "Mean over patients in the new version.", [one.new for one in found]),
        Column(
            "Difference",
            "New minus old, mean over patients.",
            np.array([one.interval.mean for one in found], np.float64),
            text=signed_text,
            tooltip=lambda row: notes[row] or None,
            width=84,
        ),
        _words(
            "95 % interval",
            "BCa bootstrap over patients.",
            np.array([interval_text(one) or "–" for one in found], str),
            width=134,
        ),
        Column("p", "Two-sided sign-flip test over patients.", p, text=p_text, width=64),
        Column("Holm p", f"Corrected over every {key}.", holm, text=p_text, width=64),
        Column(
            "Patients",
            "Patients with a figure in both versions.",
            np.array([one.patients for one in found], np.int64),
            tooltip=lambda row: notes[row] or None,
            width=64,
        ),
    ]


def _class_columns(comparison: VersionComparison) -> list[Column]:
    """Return the PQ of every class, and its objects by change."""
    names = [one.name for one in comparison.classes]
    counts = comparison.diff.by("class").set_index("class").reindex(names, fill_value=0)
    parts = [comparison.change.by_class.get(name, 0.0) for name in names]
    return [
        *_difference_columns("class", comparison.classes),
        *_change_columns(counts, comparison.diff.changes),
        _part_column(np.array(parts, np.float64)),
    ]


def _group_columns(comparison: VersionComparison, *keys: str) -> list[Column]:
    found = comparison.diff.by(*keys)
    last = keys[-1]
    parts = comparison.change.grouped(comparison.diff.rows[last])
    named = [
        _words(
            key.capitalize(),
            f"The {key}.",
            found[key].to_numpy(str),
            width=190 if key == "region" else 120,
        )
        for key in keys
    ]
    values = np.array([parts.get(str(name), 0.0) for name in found[last]], np.float64)
    changes = _change_columns(found, comparison.diff.changes)
    return [*named, *changes, _part_column(values)]


def _part_columns(comparison: VersionComparison) -> list[Column]:
    rows = part_rows(comparison)
    values = rows["delta_pq"].to_numpy(np.float64)
    largest = max(np.abs(values).max(initial=0.0), 1e-12)
    bars = np.array([_bar(value / largest) for value in values], str)
    return [
        _words("Split by", "Each split adds up to ΔPQ.", rows["by"].to_numpy(str), width=84),
        _words("Part", "Quality, change, cause or class.", rows["part"].to_numpy(str), width=150),
        _part_column(values),
        _words("", "Length: size of the part. ◀ lowers PQ, ▶ raises it.", bars, width=150),
    ]


def _bar(share: float) -> str:
    length = round(10 * abs(share))
    if length == 0:
        return ""
    return f"◀{'■' * length}" if share < 0 else f"{'■' * length}▶"


def _change_columns(found: pd.DataFrame, changes: Sequence[Change]) -> list[Column]:
    return [
        Column(
            str(change).replace("-", " ").capitalize(),
            CHANGE_MEANINGS[change],
            found[str(change)].to_numpy(np.int64),
            text=lambda n: count_text(int(n)),
            width=78,
        )
        for change in changes
    ]


def _part_column(values: NDArray[np.float64]) -> Column:
    return Column("ΔPQ", "Its part of ΔPQ.", values, text=_small_text, width=78)


def _small_text(value: float) -> str:
    if value == 0 or abs(value) >= 5e-5:
        return signed_text(value)
    return f"{value:+.0e}".replace("-", MINUS)


def _words(title: str, meaning: str, values: NDArray[np.str_], *, width: int) -> Column:
    return Column(title, meaning, values, width=width, is_text=True)


def _with_tooltip(column: Column, tooltip: Callable[[int], str | None]) -> Column:
    return Column(
        column.title,
        column.meaning,
        column.values,
        tooltip=tooltip,
        width=column.width,
        is_text=True,
    )


def _ratios(title: str, meaning: str, values: Sequence[float]) -> Column:
    return Column(title, meaning, np.array(values, np.float64), text=ratio_text, width=64)


def _partner_tooltip(name: str, partner: NDArray[np.str_], row: int) -> str:
    return f"{name}: matched as {partner[row]}" if partner[row] else f"In {name}"


def _colour_of(status: NDArray[np.object_]) -> Callable[[int], Rgb | None]:
    return lambda row: styles.STATUS_COLOURS[Status(status[row])] if status[row] else None
