"""The tables that ``napari-panoptic evaluate`` writes. Their columns are a contract."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from napari_panoptic.errors import Finding, FindingKind
from napari_panoptic.evaluation.aggregate import TeamSummary, summarise_team, summed
from napari_panoptic.evaluation.challenge import team_score, uncounted
from napari_panoptic.evaluation.metrics import (
    METRIC_NAMES,
    Counts,
    class_metrics,
    confusion_frame,
    unit_metrics,
)
from napari_panoptic.evaluation.outcomes import OBJECT_COLUMNS
from napari_panoptic.evaluation.settings import EvaluationSettings, Scoring
from napari_panoptic.evaluation.statistics import TeamComparison, compare_teams
from napari_panoptic.pipeline import RegionResult
from napari_panoptic.regions import Cohort

_REGION_FIGURES = ("tp", "fp", "fn", "iou_sum", "pq", "sq", "dq")
_LOWER_IS_BETTER = ("mean_hausdorff_px",)
_WHOLE_FILE_BYTES = 64 * 2**20
_END_BYTES = 2**20


@dataclass(frozen=True, eq=False)
class CohortEvaluation:
    """Everything that was evaluated of a cohort.

    Parameters
    ----------
    cohort, settings
        What, and how.
    protocol
        The name of the settings that were started from.
    results
        Every team in every region, also those that could not be evaluated.
    """

    cohort: Cohort
    settings: EvaluationSettings
    protocol: str
    results: Sequence[RegionResult]

    @cached_property
    def team_names(self) -> list[str]:
        """The teams, in order of first appearance."""
        return list(dict.fromkeys(result.team for result in self.results))

    @cached_property
    def evaluated(self) -> list[RegionResult]:
        """The results with figures."""
        return [result for result in self.results if result.counts is not None]

    @cached_property
    def summaries(self) -> dict[str, TeamSummary]:
        """Team -> its patients and averages."""
        return {
            team: summarise_team(self._patient_counts(team), self.cohort.scheme.names)
            for team in self.team_names
        }

    @cached_property
    def findings(self) -> list[Finding]:
        """What was missing, odd or unreadable, each once."""
        found = [*self.cohort.findings]
        for result in self.results:
            found.extend(result.findings)
        return list(dict.fromkeys(found))

    def score(self, team: str) -> float:
        """Give the one number of the protocol: mean over patients, or the challenge's."""
        if self.settings.scoring is Scoring.CHALLENGE:
            return team_score(self._patient_counts(team), self.settings.corrections)
        return self.summaries[team].averaged["pq"].mean

    def _patient_counts(self, team: str) -> list[tuple[str, Counts]]:
        return [
            (result.patient, result.counts)
            for result in self.evaluated
            if result.team == team and result.counts is not None
        ]


def write_tables(evaluation: CohortEvaluation, folder: Path) -> list[Path]:
    """Write all tables into a folder, which is made where it is not there.

    Parameters
    ----------
    evaluation
        What to write.
    folder
        Where to; files of the same names are replaced, each at once and whole.

    Returns
    -------
    list of Path
        The files written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "objects.csv": objects_table(evaluation),
        "regions.csv": regions_table(evaluation),
        "patients.csv": patients_table(evaluation),
        "patients_by_class.csv": patients_by_class_table(evaluation),
        "teams.csv": teams_table(evaluation),
        "confusion.csv": confusion_table(evaluation),
    }
    written = []
    for name, table in tables.items():
        written.append(_replace(folder / name, table.to_csv(index=False, lineterminator="\n")))
    record = json.dumps(_plain(record_of(evaluation)), indent=1, ensure_ascii=False)
    written.append(_replace(folder / "evaluation.json", record + "\n"))
    return written


def objects_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Give one row per object of every team and region."""
    place = ["team", "patient", "region"]
    frames = []
    for result in evaluation.evaluated:
        if result.objects is None or result.objects.empty:
            continue
        frame = result.objects.copy()
        for position, name in enumerate(place):
            frame.insert(position, name, getattr(result, name))
        frames.append(frame)
    columns = [*place, *OBJECT_COLUMNS]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def regions_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Give one row per class present in a region, and one with class ``mean``."""
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
    """Give one row per team and patient with the figures of its summed counts."""
    rows = [
        {"team": team, "patient": patient, **metrics}
        for team, summary in evaluation.summaries.items()
        for patient, metrics in summary.metrics.items()
    ]
    return pd.DataFrame(rows, columns=["team", "patient", *METRIC_NAMES])


def patients_by_class_table(evaluation: CohortEvaluation) -> pd.DataFrame:
    """Give one row per team, patient and class of the scheme."""
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
    """Give one row per team: mean and sample standard deviation over patients."""
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
    """Give the confusion matrix of each team, summed over the cohort, one cell a row."""
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
    """Give settings, versions, fingerprints, scores, warnings and statistics."""
    warnings: dict[str, list[dict[str, Any]]] = {
        str(kind): []
        for kind in (
            FindingKind.VANISHED,
            FindingKind.OVERLAPPING,
            FindingKind.MISSING,
            FindingKind.UNREADABLE,
        )
    }
    for finding in evaluation.findings:
        warnings.setdefault(str(finding.kind), []).append(finding.as_record())
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
        "statistics": _statistics(evaluation),
        "warnings": warnings,
        "versions": _versions(),
        "inputs": input_fingerprints(evaluation.cohort, evaluation.team_names),
    }
    if evaluation.settings.scoring is Scoring.CHALLENGE:
        record["absent_classes"] = _absent_classes(evaluation)
    return record


def input_fingerprints(cohort: Cohort, team_names: Sequence[str]) -> dict[str, str]:
    """Give a SHA-256 of each input file, by its path relative to the cohort.

    Of a file above 64 MiB only its size, first and last MiB enter, and the
    fingerprint says so.
    """
    paths: set[Path] = set()
    for region in cohort.regions:
        paths.update([region.image] if region.image else [])
        paths.update(region.reference.all_paths if region.reference else ())
    for (team, _), forms in cohort.predictions.items():
        if team in team_names:
            paths.update(path for files in forms.values() for path in files.all_paths)
    return {_relative(path, cohort.root): _fingerprint(path) for path in sorted(paths)}


def _fingerprint(path: Path) -> str:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            if size <= _WHOLE_FILE_BYTES:
                return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            digest = hashlib.sha256(str(size).encode())
            digest.update(file.read(_END_BYTES))
            file.seek(-_END_BYTES, os.SEEK_END)
            digest.update(file.read())
            return f"sha256-of-size-and-ends:{digest.hexdigest()}"
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _statistics(evaluation: CohortEvaluation) -> dict[str, Any]:
    """Compare the competing teams by every metric over the same patients."""
    competing = {team.name for team in evaluation.cohort.competing_teams}
    teams = [team for team in evaluation.team_names if team in competing]
    compared: dict[str, Any] = {}
    for name in METRIC_NAMES:
        figures = {
            team: [
                evaluation.summaries[team].metrics[patient][name]
                if patient in evaluation.summaries[team].metrics
                else float("nan")
                for patient in evaluation.cohort.patients
            ]
            for team in teams
        }
        if len(teams) > 1:
            better_high = name not in _LOWER_IS_BETTER
            compared[name] = _comparison_record(
                compare_teams(figures, higher_is_better=better_high)
            )
    return compared


def _comparison_record(comparison: TeamComparison) -> dict[str, Any]:
    teams = comparison.teams
    record: dict[str, Any] = {
        "patients": comparison.n_patients,
        "friedman_p": comparison.friedman_p,
        "mean_ranks": dict(zip(teams, comparison.mean_ranks.tolist(), strict=True)),
        "ranks": dict(zip(teams, comparison.ranks, strict=True)),
        "nemenyi_p": None,
    }
    if comparison.nemenyi_p is not None:
        record["nemenyi_p"] = {
            team: dict(zip(teams, row, strict=True))
            for team, row in zip(teams, comparison.nemenyi_p.tolist(), strict=True)
        }
    return record


def _absent_classes(evaluation: CohortEvaluation) -> dict[str, dict[str, int]]:
    """Say per team what the challenge never looked at."""
    record = {}
    for team in evaluation.team_names:
        objects, masks = uncounted(
            result.scores
            for result in evaluation.evaluated
            if result.team == team and result.scores is not None
        )
        record[team] = {"false_positives": objects, "masks": masks}
    return record


def _versions() -> dict[str, str]:
    packages = ("napari-panoptic", "numpy", "scipy", "scikit-image", "numba", "pandas")
    readers = ("tifffile", "openslide-python", "openslide-bin")
    found = {name: version(name) for name in (*packages, *readers)}
    return {"python": platform.python_version(), **found}


def _plain(value: Any) -> Any:
    """Make JSON's own values of everything: undefined numbers become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _replace(path: Path, text: str) -> Path:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
