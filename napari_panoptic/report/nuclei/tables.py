"""The tables that ``napari-panoptic evaluate`` writes. Their columns are a contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from glob import escape
from pathlib import Path
from typing import Any

import pandas as pd

from napari_panoptic.io.fingerprints import file_fingerprints
from napari_panoptic.nuclei.challenge import uncounted
from napari_panoptic.nuclei.cohort_evaluation import CohortEvaluation, input_files, statistics_of
from napari_panoptic.nuclei.metrics import (
    METRIC_NAMES,
    Counts,
    class_metrics,
    confusion_frame,
    unit_metrics,
)
from napari_panoptic.nuclei.objects_file import ObjectsFile
from napari_panoptic.nuclei.patients import summed
from napari_panoptic.nuclei.values.cohort import Cohort
from napari_panoptic.nuclei.values.settings import Overlaps, Scoring
from napari_panoptic.report.writing import RECORD, provenance, write_set
from napari_panoptic.statistics.bootstrap import RESAMPLES, SEED
from napari_panoptic.statistics.teams import (
    bootstrap_record,
    statistics_record,
)

_REGION_FIGURES = ("tp", "fp", "fn", "iou_sum", "pq", "sq", "dq")
TABLE_NAMES = (
    "objects.csv",
    "regions.csv",
    "patients.csv",
    "patients_by_class.csv",
    "teams.csv",
    "confusion.csv",
    RECORD,
)
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
        "regions.csv": regions_table(evaluation),
        "patients.csv": patients_table(evaluation),
        "patients_by_class.csv": patients_by_class_table(evaluation).drop(
            columns="mean_hausdorff95_px"  # the file's columns are a contract
        ),
        "teams.csv": teams_table(evaluation),
        "confusion.csv": confusion_table(evaluation),
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
        by_class = class_metrics(result.counts)[["class", *_REGION_FIGURES]]
        present = result.counts.present > 0
        rows.extend(
            place | {str(name): value for name, value in row.items()}
            for row in by_class[present].to_dict("records")
        )
        unit = unit_metrics(result.counts)
        rows.append({**place, "class": "mean", "pq": unit.pq, "sq": unit.sq, "dq": unit.dq})
    frame = pd.DataFrame(rows, columns=["team", "patient", "region", "class", *_REGION_FIGURES])
    return frame.astype(dict.fromkeys(("tp", "fp", "fn"), "Int64"))


def patients_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Return one row per team and patient with the figures of its summed counts."""
    rows = [
        {"team": team, "patient": patient, **metrics}
        for team, summary in evaluation.summaries.items()
        for patient, metrics in summary.metrics.items()
    ]
    return pd.DataFrame(rows, columns=["team", "patient", *METRIC_NAMES])


def patients_by_class_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Return one row per team, patient and class of the scheme."""
    frames = []
    for team, summary in evaluation.summaries.items():
        for patient, counts in summary.patients.items():
            frame = class_metrics(counts)
            frame.insert(0, "team", team)
            frame.insert(1, "patient", patient)
            frames.append(frame)
    empty = class_metrics(Counts.zero(evaluation.cohort.scheme.names)).iloc[:0]
    if not frames:
        return pd.DataFrame(columns=["team", "patient", *empty.columns])
    return pd.concat(frames, ignore_index=True)


def teams_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Return one row per team: mean and sample standard deviation over patients."""
    rows = []
    for team, summary in evaluation.summaries.items():
        row: dict[str, Any] = {"team": team, "patients": len(summary.patients)}
        for name in METRIC_NAMES:
            row[f"{name}_mean"] = summary.averaged[name].mean
            row[f"{name}_sd"] = summary.averaged[name].sd
        rows.append(row)
    figures = [f"{name}_{part}" for name in METRIC_NAMES for part in ("mean", "sd")]
    return pd.DataFrame(rows, columns=["team", "patients", *figures])


def confusion_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Return the confusion matrix of each team, summed over the cohort, one cell a row."""
    rows = []
    for team, summary in evaluation.summaries.items():
        total = summed(summary.patients.values(), evaluation.cohort.scheme.names)
        for reference, cells in confusion_frame(total).iterrows():
            for prediction, count in cells.items():
                rows.append(
                    {
                        "team": team,
                        "reference": reference,
                        "prediction": prediction,
                        "count": int(count),
                    }
                )
    return pd.DataFrame(rows, columns=["team", "reference", "prediction", "count"])


def record_of(evaluation: CohortEvaluation) -> dict[str, Any]:
    """Return settings, versions, fingerprints, scores, warnings and statistics."""
    record: dict[str, Any] = {
        "cohort": evaluation.cohort.name,
        "protocol": evaluation.protocol,
        "settings": evaluation.settings.as_record(),
        "classes": list(evaluation.cohort.scheme.names),
        "score": {team: evaluation.score(team) for team in evaluation.team_names},
        "evaluated_regions": {
            team: sum(result.team == team for result in evaluation.evaluated)
            for team in evaluation.team_names
        },
        "pooled": {team: dict(s.pooled) for team, s in evaluation.summaries.items()},
        "averaged": {
            team: {name: vars(spread) for name, spread in summary.averaged.items()}
            for team, summary in evaluation.summaries.items()
        },
        "bootstrap": bootstrap_record(RESAMPLES, SEED),
        "statistics": {
            name: statistics_record(found) for name, found in statistics_of(evaluation).items()
        },
        **provenance(
            evaluation.findings, input_fingerprints(evaluation.cohort, evaluation.team_names)
        ),
    }
    if evaluation.settings.scoring is Scoring.CHALLENGE:
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


def input_fingerprints(cohort: Cohort, team_names: Sequence[str]) -> dict[str, str]:
    """Return a SHA-256 of each input file, by its path relative to the cohort.

    For files above 64 MiB, only the size, the first and the last MiB are hashed; the
    fingerprint says so.
    """
    return file_fingerprints(input_files(cohort, team_names), cohort.root)


def _absent_classes(evaluation: CohortEvaluation) -> dict[str, dict[str, int]]:
    """Count, per team, the predictions that the challenge's scoring ignored."""
    record = {}
    for team in evaluation.team_names:
        objects, masks = uncounted(
            result.scores
            for result in evaluation.evaluated
            if result.team == team and result.scores is not None
        )
        record[team] = {"false_positives": objects, "masks": masks}
    return record
