"""The tables that ``napari-panoptic evaluate`` writes. Their columns are a contract."""

from __future__ import annotations

import math
from collections.abc import Iterable
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_panoptic.io.files.fingerprints import input_fingerprints
from napari_panoptic.nuclei.averages import summed
from napari_panoptic.nuclei.class_masks import BY_PAIR
from napari_panoptic.nuclei.conventions import Sum
from napari_panoptic.nuclei.metrics import (
    CLASSES,
    FIGURE_NAMES,
    METRIC_NAMES,
    class_figures,
    class_metrics,
    confusion_frame,
    unit_metrics,
)
from napari_panoptic.nuclei.outcomes import OBJECTS
from napari_panoptic.nuclei.regions.cohort_evaluation import (
    CohortEvaluation,
    statistics_of,
)
from napari_panoptic.nuclei.regions.results import ObjectsFile
from napari_panoptic.report.writing import RECORD, provenance, write_set
from napari_panoptic.statistics.bootstrap import RESAMPLES, SEED
from napari_panoptic.statistics.teams import (
    bootstrap_record,
    statistics_record,
)
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    TableSpec,
    name_column,
    number,
    unshown,
    whole,
)
from napari_panoptic.tables.figures import UNDEFINED, places_of, ratio, writer
from napari_panoptic.tables.markup import element, fragment
from napari_panoptic.values.settings import Overlaps, choices_of_figures

if TYPE_CHECKING:
    import pandas as pd

_REGION_FIGURES = ("tp", "fp", "fn", "iou_sum", "pq", "sq", "dq")


def _spread(key: str) -> TableColumn:
    """Return a column of means above standard deviations, and medians if there are any."""
    places = places_of(key)

    def cell(row: Record) -> CellContent:
        mean, sd, median = (float(row[f"{key}_{part}"]) for part in ("mean", "sd", "median"))
        spread = "" if math.isnan(sd) else f"±\N{NO-BREAK SPACE}{ratio(sd, places)}"
        below = element("span", spread, class_="rank")
        lowest = element("span", f"({ratio(median, places)})", class_="rank")
        line_break = element("br")
        return CellContent(
            fragment(ratio(mean, places), line_break, below, line_break, lowest), mean
        )

    return TableColumn(FIGURE_NAMES[key], cell, (f"{key}_mean", f"{key}_sd"))


_TEAM, _PATIENT = name_column("team"), name_column("patient")
REGIONS = TableSpec(
    "regions.csv",
    "class present in a region, and one row `mean`",
    [
        unshown("team", "patient", "region", "class"),
        unshown("tp", "fp", "fn", "iou_sum", about="empty in the row `mean`"),
        unshown("pq", "sq", "dq"),
    ],
)
PATIENTS = TableSpec(
    "patients.csv",
    "team and patient",
    [_TEAM, _PATIENT, *(number(key, FIGURE_NAMES[key], writer(key)) for key in METRIC_NAMES)],
    "Figures of the counts summed over each patient's regions.",
)
PATIENTS_BY_CLASS = TableSpec(
    "patients_by_class.csv",
    "team, patient and class",
    # The file's columns are a contract; this one is in reports only.
    [_TEAM, _PATIENT, *(c for c in CLASSES.columns if c.keys != ("mean_hausdorff95_px",))],
)
TEAMS = TableSpec(
    "teams.csv",
    "team: mean and sample standard deviation (n − 1; exactly 0 for equal values, undefined for "
    "fewer than two) over patients of every figure",
    [_TEAM, whole("patients", about="number"), *(_spread(key) for key in METRIC_NAMES)],
    "Mean ± sample standard deviation (median) over the patients for whom the figure is defined. "
    f"{UNDEFINED}: defined for no patient; no ±: defined for one patient only.",
)
CONFUSION = TableSpec(
    "confusion.csv",
    "cell of a team's confusion matrix",
    [
        unshown("team"),
        unshown("reference", "prediction", about="`none` for the empty side"),
        unshown("count"),
    ],
)
TABLES = (OBJECTS, REGIONS, PATIENTS, PATIENTS_BY_CLASS, TEAMS, CONFUSION)
TABLE_NAMES = (*(spec.file for spec in TABLES), RECORD)
"""The files of a set, the record last."""


def write_tables(
    evaluation: CohortEvaluation, folder: Path, objects: ObjectsFile | None = None
) -> list[Path]:
    """Write all tables into a folder, which is created if missing.

    Parameters
    ----------
    evaluation
        The evaluation.
    folder
        The folder; existing files of the same names are replaced, all of them or none.
    objects
        The table of objects, if it was already written in the same folder; the results
        then need no objects.

    Returns
    -------
    list of Path
        The files written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if objects is None:
        with ObjectsFile(folder) as objects:
            for result in evaluation.results:
                objects.add(result)
            return write_tables(evaluation, folder, objects)
    tables = {
        REGIONS.file: regions_table(evaluation),
        PATIENTS.file: patients_table(evaluation),
        PATIENTS_BY_CLASS.file: patients_by_class_table(evaluation)[PATIENTS_BY_CLASS.keys],
        TEAMS.file: teams_table(evaluation),
        CONFUSION.file: confusion_table(evaluation),
    }
    return write_set(folder, tables, (RECORD, record_of(evaluation)), add=objects.finish)


def remove_unfinished(folder: Path, names: Iterable[str]) -> None:
    """Remove unfinished files of a killed run."""
    for name in names:
        for path in folder.glob(f".{escape(name[:40])}.*.part"):
            path.unlink(missing_ok=True)


def regions_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Return one row per class present in a region, and one with class ``mean``."""
    rows: list[dict[str, Any]] = []
    for result in evaluation.evaluated:
        if result.counts is None:
            continue
        place = {"team": result.team, "patient": result.patient, "region": result.region}
        figures = class_figures(result.counts)
        rows.extend(
            place | {"class": class_name, **{name: figures[name][k] for name in _REGION_FIGURES}}
            for k, class_name in enumerate(result.counts.class_names)
            if result.counts.present[k] > 0
        )
        unit = unit_metrics(result.counts)
        rows.append({**place, "class": "mean", "pq": unit.pq, "sq": unit.sq, "dq": unit.dq})
    return REGIONS.frame(rows).astype(dict.fromkeys(("tp", "fp", "fn"), "Int64"))


def patients_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Return one row per team and patient with the figures of its summed counts."""
    return PATIENTS.frame(
        {"team": team, "patient": patient, **metrics}
        for team, summary in evaluation.summaries.items()
        for patient, metrics in summary.metrics.items()
    )


def patients_by_class_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Return one row per team, patient and class of the scheme."""
    import pandas as pd

    frames = []
    for team, summary in evaluation.summaries.items():
        for patient, counts in summary.patients.items():
            frame = class_metrics(counts)
            frame.insert(0, "team", team)
            frame.insert(1, "patient", patient)
            frames.append(frame)
    if not frames:
        return pd.DataFrame(columns=["team", "patient", *CLASSES.keys])
    return pd.concat(frames, ignore_index=True)


def teams_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Return one row per team: mean and sample standard deviation over patients."""
    return TEAMS.frame(
        {"team": team, "patients": len(summary.patients)}
        | {f"{name}_mean": summary.averaged[name].mean for name in METRIC_NAMES}
        | {f"{name}_sd": summary.averaged[name].sd for name in METRIC_NAMES}
        for team, summary in evaluation.summaries.items()
    )


def confusion_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Return the confusion matrix of each team, summed over the cohort, one cell a row."""
    rows: list[dict[str, Any]] = []
    for team, summary in evaluation.summaries.items():
        total = summed(summary.patients.values(), evaluation.cohort.scheme.names)
        rows += (
            {"team": team, "reference": reference, "prediction": prediction, "count": int(n)}
            for reference, cells in confusion_frame(total).iterrows()
            for prediction, n in cells.items()
        )
    return CONFUSION.frame(rows)


def record_of(evaluation: CohortEvaluation) -> dict[str, Any]:
    """Return settings, versions, fingerprints, scores, warnings and statistics."""
    record: dict[str, Any] = {
        "cohort": evaluation.cohort.name,
        "protocol": evaluation.protocol,
        "settings": evaluation.settings.as_record(),
        "classes": evaluation.cohort.scheme.names,
        "score": {team: evaluation.score(team) for team in evaluation.team_names},
        "figures": choices_of_figures(evaluation.settings),
        "evaluated_regions": {
            team: sum(result.team == team for result in evaluation.evaluated)
            for team in evaluation.team_names
        },
        "pooled": {team: summary.pooled for team, summary in evaluation.summaries.items()},
        "averaged": {team: summary.averaged for team, summary in evaluation.summaries.items()},
        "bootstrap": bootstrap_record(RESAMPLES, SEED),
        "statistics": {
            name: statistics_record(found) for name, found in statistics_of(evaluation).items()
        },
        **provenance(
            evaluation.findings, input_fingerprints(evaluation.cohort, evaluation.team_names)
        ),
    }
    if evaluation.settings.takes_class_masks:
        record["absent_classes"] = _absent_classes(evaluation)
    if evaluation.settings.overlaps is Overlaps.KEEP:
        other = evaluation.without_overlaps
        record["overlaps"] = {
            team: {
                "overlapping_objects": evaluation.overlapping_objects(team),
                str(Overlaps.KEEP): evaluation.score(team),
                str(Overlaps.FLATTEN): other.score(team),
            }
            for team in evaluation.team_names
        }
    return record


def _absent_classes(evaluation: CohortEvaluation) -> dict[str, dict[str, int]]:
    """Count, per team, the predictions that the challenge's scoring ignored."""
    record = {}
    for team in evaluation.team_names:
        own = (result for result in evaluation.evaluated if result.team == team)
        absent = [
            int(one[Sum.FP])
            for result in own
            if result.sums is not None
            for one in result.sums.sums[BY_PAIR]
            if not one[Sum.HAD_REFERENCE] and one[Sum.FP]
        ]
        record[team] = {"false_positives": sum(absent), "masks": len(absent)}
    return record
