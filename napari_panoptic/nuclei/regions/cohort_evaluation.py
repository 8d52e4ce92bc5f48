"""The results of a cohort under one choice of settings, with averages and team statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.files.fingerprints import file_stamps
from napari_panoptic.io.tables.metadata import Metadata
from napari_panoptic.nuclei.averages import TeamSummary, summarise_team
from napari_panoptic.nuclei.conventions import RegionPlace, RegionSums, TeamSums, Value
from napari_panoptic.nuclei.metrics import METRIC_NAMES, Counts
from napari_panoptic.nuclei.regions.doubts import (
    little_overlap,
)
from napari_panoptic.nuclei.regions.results import RegionResult
from napari_panoptic.statistics.friedman import TeamFigures
from napari_panoptic.statistics.teams import TeamStatistics, team_statistics
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.conventions import DEFAULT_PROTOCOL
from napari_panoptic.values.settings import EvaluationSettings, Overlaps

LOWER_IS_BETTER = ("mean_hausdorff_px",)
"""Metrics of which lower ones are better."""


@dataclass(frozen=True, eq=False)
class CohortEvaluation:
    """The results of a cohort under one choice of settings."""

    #: What was evaluated, and how.
    cohort: Cohort
    settings: EvaluationSettings
    #: The name of the protocol that the settings are based on.
    protocol: str
    #: Every team in every region, also those that could not be evaluated.
    results: Sequence[RegionResult]
    #: The results with each pixel in one object, for comparison, if these results keep overlaps.
    flattened: Sequence[RegionResult] = ()
    #: What is known of patients, or None.
    metadata: Metadata | None = None

    @cached_property
    def without_overlaps(self) -> CohortEvaluation:
        """The evaluation with each pixel in one object."""
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
            found.extend(_of_all_regions(finding) for finding in result.findings)
        for team in self.team_names:
            areas = [r.areas for r in self.results if r.team == team and r.areas is not None]
            pooled = sum(areas[1:], areas[0]) if areas else None
            if pooled is not None and (pooled.shared_px or len(areas) > 1):  # else the region's
                found.extend(little_overlap(pooled, team))
        return list(dict.fromkeys(found))

    def score(self, team: str) -> float:
        """Return the one number of the protocol."""
        return self.scores[team].value

    @cached_property
    def scores(self) -> dict[str, Value]:
        """Team -> the one number of the protocol."""
        if self.settings.convention == DEFAULT_PROTOCOL:
            found = {team: summary.averaged["pq"] for team, summary in self.summaries.items()}
            return {team: Value(spread.mean, spread.n) for team, spread in found.items()}
        _, formula, convention, *_ = self.settings.score
        return {
            team: TeamSums(*self._sums(team)).figure(formula, convention)
            for team in self.team_names
        }

    def _sums(self, team: str) -> tuple[list[RegionPlace], list[RegionSums]]:
        known = [one for one in self.evaluated if one.team == team and one.sums is not None]
        regions = {region.name: region for region in self.cohort.regions}
        places = [place_of(regions[one.region], self.metadata) for one in known]
        return places, [one.sums for one in known if one.sums is not None]

    def _patient_counts(self, team: str) -> list[tuple[str, Counts]]:
        return [
            (result.patient, result.counts)
            for result in self.evaluated
            if result.team == team and result.counts is not None
        ]


def _of_all_regions(finding: Finding) -> Finding:
    """Return a finding that says the same of every file without its place."""
    if finding.kind is not FindingKind.CLASS_ORDER:
        return finding
    return replace(finding, path=None, region=None)


@cache
def _names_tissues(folder: Path) -> bool:
    """Return whether a folder has the tissues of PanNuke's arrays."""
    return (folder / "types.npy").is_file()


TISSUE_COLUMNS = ("tissue", "organ")
"""The columns of a table of patients that may hold their tissue; the first that is there does."""


def place_of(region: Region, metadata: Metadata | None) -> RegionPlace:
    """Return where a region belongs, as far as it is known.

    The arrays of PanNuke name tissues, which stand for patients there.
    """
    patient, paths = region.patient, () if region.reference is None else region.reference.all_paths
    folders = {path.parent for path in (*paths, *([] if region.image is None else [region.image]))}
    tissue = patient if any(map(_names_tissues, folders)) else ""
    if metadata is None:
        return RegionPlace(patient, tissue)
    column = next((name for name in TISSUE_COLUMNS if name in metadata.columns), "")
    known = metadata.group_of(column, patient) if column else tissue
    return RegionPlace(patient, known, metadata.group_of("fold", patient))


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
            TeamFigures(
                figures, evaluation.cohort.patients, higher_is_better=name not in LOWER_IS_BETTER
            )
        )
    return compared


class InputWatch:
    """Detects input files that change while they are evaluated.

    Parameters
    ----------
    cohort, team_names
        What will be evaluated.
    """

    def __init__(self, cohort: Cohort, team_names: Sequence[str]) -> None:
        self._cohort, self._teams = cohort, tuple(team_names)
        self._before = file_stamps(cohort.input_files(self._teams))

    def findings(self) -> tuple[Finding, ...]:
        """Return a finding for each file that has changed."""
        now = file_stamps(self._cohort.input_files(self._teams))
        return tuple(
            Finding(
                FindingKind.CHANGED,
                f"{path.name} was {_became(now[path])} while the cohort was being evaluated; the "
                f"figures may be of either version: run the same again",
                path=path,
            )
            for path, before in self._before.items()
            if now[path] != before
        )

    def noted(self, evaluation: CohortEvaluation) -> CohortEvaluation:
        """Return the evaluation with a finding for each file that has changed."""
        changed = self.findings()
        if not changed:
            return evaluation
        cohort = evaluation.cohort
        return replace(evaluation, cohort=replace(cohort, findings=(*cohort.findings, *changed)))


def _became(stamp: object | None) -> str:
    return "removed" if stamp is None else "changed"
