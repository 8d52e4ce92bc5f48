"""The tables that ``napari-panoptic evaluate`` writes. Their columns are a contract."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from glob import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import pandas as pd

from napari_panoptic.common.errors import Finding, FindingKind
from napari_panoptic.common.visible import UNENCODABLE
from napari_panoptic.io.fingerprints import file_fingerprints, file_stamps
from napari_panoptic.nuclei.challenge import team_score, uncounted
from napari_panoptic.nuclei.metrics import (
    METRIC_NAMES,
    Counts,
    class_metrics,
    confusion_frame,
    unit_metrics,
)
from napari_panoptic.nuclei.outcomes import OBJECT_COLUMNS
from napari_panoptic.nuclei.patients import TeamSummary, summarise_team, summed
from napari_panoptic.nuclei.reading import PLACE_COLUMNS, RegionResult, write_rows
from napari_panoptic.nuclei.values.cohort import Cohort
from napari_panoptic.nuclei.values.settings import EvaluationSettings, Overlaps, Scoring
from napari_panoptic.report.team_statistics import (
    TeamStatistics,
    bootstrap_record,
    statistics_record,
    team_statistics,
)
from napari_panoptic.report.writing import RECORD, write_set
from napari_panoptic.statistics.bootstrap import RESAMPLES, SEED

_REGION_FIGURES = ("tp", "fp", "fn", "iou_sum", "pq", "sq", "dq")
_LOWER_IS_BETTER = ("mean_hausdorff_px",)
_COPIED_CHARACTERS = 2**20
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
    flattened
        The same where each pixel goes to one object, for comparison, if these
        results keep overlaps.
    """

    cohort: Cohort
    settings: EvaluationSettings
    protocol: str
    results: Sequence[RegionResult]
    flattened: Sequence[RegionResult] = ()

    @cached_property
    def without_overlaps(self) -> CohortEvaluation:
        """The evaluation in which each pixel goes to one object."""
        settings = self.settings.replaced(overlaps=Overlaps.FLATTEN)
        return replace(self, settings=settings, results=self.flattened, flattened=())

    def overlapping_objects(self, team: str) -> int:
        """Count the predicted objects of a team that share pixels and keep them."""
        return sum(
            finding.count
            for result in self.results
            for finding in result.findings
            if finding.kind is FindingKind.OVERLAPPING
            and result.team == finding.team == team
            and finding.object_ids
        )

    def overlapping_references(self, team: str) -> int:
        """Count the annotated objects that share pixels and keep them, where a team was scored."""
        found = {
            finding
            for result in self.results
            if result.team == team
            for finding in result.findings
            if finding.kind is FindingKind.OVERLAPPING
            and finding.team is None
            and finding.object_ids
        }
        return sum(finding.count for finding in found)

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
        """Return the one number of the protocol: mean over patients, or the challenge's."""
        if self.settings.scoring is Scoring.CHALLENGE:
            return team_score(self._patient_counts(team), self.settings.corrections)
        return self.summaries[team].averaged["pq"].mean

    def _patient_counts(self, team: str) -> list[tuple[str, Counts]]:
        return [
            (result.patient, result.counts)
            for result in self.evaluated
            if result.team == team and result.counts is not None
        ]


class ObjectsFile:
    """The table ``objects.csv``, written result by result: it may be larger than the memory.

    Until all of it is there it has another name; as a context manager it is
    removed where that never comes to be.

    Parameters
    ----------
    folder
        Where to write it; must exist.
    """

    def __init__(self, folder: Path) -> None:
        self._temporary = folder / ".objects.csv.part"
        # Closed by finish, or by leaving the context.
        self._file = self._temporary.open("w", encoding="utf-8", errors=UNENCODABLE, newline="")
        self._file.write(",".join([*PLACE_COLUMNS, *OBJECT_COLUMNS]) + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()  # fails on a full disk
        finally:
            self._temporary.unlink(missing_ok=True)

    def add(self, result: RegionResult) -> None:
        """Write the objects of a team in a region, if it has any."""
        if result.rows is not None:
            with result.rows.path.open(encoding="utf-8", newline="") as rows:
                shutil.copyfileobj(rows, self._file, _COPIED_CHARACTERS)
        elif result.objects is not None:
            write_rows(self._file, result.objects, result)

    def finish(self, folder: Path) -> Path:
        """Close the complete table, and move it to a folder on the same disk."""
        self._file.close()
        return self._temporary.replace(folder / "objects.csv")


def write_tables(
    evaluation: CohortEvaluation, folder: Path, objects: ObjectsFile | None = None
) -> list[Path]:
    """Write all tables into a folder, which is made where it is not there.

    Parameters
    ----------
    evaluation
        What to write.
    folder
        Where to; files of the same names are replaced, all of them or none.
    objects
        The table of the objects in the same folder, where it is written
        already; the results then need not have them any more.

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
    """Remove what a killed program has left of files that it had not finished."""
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


def warnings_record(findings: Iterable[Finding]) -> dict[str, list[dict[str, Any]]]:
    """List findings by kind, for JSON; the kinds that readers look for are always there."""
    usual = (
        FindingKind.VANISHED,
        FindingKind.OVERLAPPING,
        FindingKind.MISSING,
        FindingKind.UNREADABLE,
    )
    warnings: dict[str, list[dict[str, Any]]] = {str(kind): [] for kind in usual}
    for finding in findings:
        warnings.setdefault(str(finding.kind), []).append(finding.as_record())
    return warnings


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
        "warnings": warnings_record(evaluation.findings),
        "versions": versions(),
        "inputs": input_fingerprints(evaluation.cohort, evaluation.team_names),
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

    Of a file above 64 MiB only its size, first and last MiB enter, and the
    fingerprint says so.
    """
    return file_fingerprints(_inputs(cohort, team_names), cohort.root)


def _inputs(cohort: Cohort, team_names: Sequence[str]) -> set[Path]:
    paths: set[Path] = set()
    for region in cohort.regions:
        paths.update([region.image] if region.image else [])
        paths.update(region.reference.all_paths if region.reference else ())
    for (team, _), forms in cohort.predictions.items():
        if team in team_names:
            paths.update(path for files in forms.values() for path in files.all_paths)
    return paths


class InputWatch:
    """Notices input files that become other ones while they are evaluated.

    Parameters
    ----------
    cohort, team_names
        What is about to be evaluated.
    """

    def __init__(self, cohort: Cohort, team_names: Sequence[str]) -> None:
        self._cohort, self._teams = cohort, tuple(team_names)
        self._before = file_stamps(_inputs(cohort, self._teams))

    def noted(self, evaluation: CohortEvaluation) -> CohortEvaluation:
        """Add a finding for each file that is not any more what it was."""
        now = file_stamps(_inputs(self._cohort, self._teams))
        changed = tuple(
            Finding(
                FindingKind.CHANGED,
                f"{path.name} was {_became(now[path])} while the cohort was being evaluated; the "
                f"figures can be those of before or of after: run the same again",
                path=path,
            )
            for path, before in self._before.items()
            if now[path] != before
        )
        if not changed:
            return evaluation
        cohort = evaluation.cohort
        return replace(evaluation, cohort=replace(cohort, findings=(*cohort.findings, *changed)))


def _became(stamp: object | None) -> str:
    return "removed" if stamp is None else "changed"


def statistics_of(evaluation: CohortEvaluation) -> dict[str, TeamStatistics]:
    """Compare the competing teams by every metric over the same patients; empty for fewer than two.

    A patient in whom a team was not evaluated has no figure of that team.
    """
    competing = {team.name for team in evaluation.cohort.competing_teams}
    teams = [team for team in evaluation.team_names if team in competing]
    if len(teams) < 2:
        return {}
    compared = {}
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
        compared[name] = team_statistics(
            figures, evaluation.cohort.patients, higher_is_better=name not in _LOWER_IS_BETTER
        )
    return compared


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


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that figures depend on."""
    packages = ("napari-panoptic", "numpy", "scipy", "scikit-image", "numba", "pandas")
    readers = ("tifffile", "openslide-python", "openslide-bin")
    found = {name: version(name) for name in (*packages, *readers)}
    return {"python": platform.python_version(), **found}
