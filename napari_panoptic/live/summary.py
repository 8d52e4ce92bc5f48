"""Every region and team in a line, for the navigator."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from napari_panoptic.common.findings import Finding
from napari_panoptic.explain.failures import RegionFailures, region_failures
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import Counts, Metrics
from napari_panoptic.nuclei.regions.looks import RegionLook, Teams, look_at
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.windowed_labels import TiledPair


@dataclass(frozen=True, eq=False)
class RegionSummary:
    """One team in one region, in a line."""

    #: Names of the region and the team.
    region: str
    team: str
    #: Summed outcomes, or None if it could not be evaluated.
    counts: Counts | None
    #: The figures; None if it could not be evaluated.
    metrics: Metrics | None
    #: Findings, also those that prevented the evaluation.
    findings: tuple[Finding, ...] = ()
    #: The failed objects; None if it could not be evaluated, or is a whole slide.
    failures: RegionFailures | None = None
    #: Whether the region is too large to be held: its failures are not collected.
    is_slide: bool = False

    @classmethod
    def of(
        cls,
        region: str,
        team: str,
        evaluation: Evaluation[LabelPair] | Evaluation[TiledPair] | None,
        findings: tuple[Finding, ...] = (),
    ) -> RegionSummary:
        """Summarise an evaluation; None if there is none."""
        if evaluation is None:
            return cls(region, team, None, None, findings)
        line = cls(region, team, evaluation.counts, evaluation.metrics, findings)
        if isinstance(evaluation.pair, TiledPair):
            return replace(line, is_slide=True)
        return replace(line, failures=region_failures(evaluation))


def evaluate_cohort_summary(
    cohort: Cohort, reading: Reading, *, known: Collection[tuple[str, str]] = ()
) -> Iterator[RegionSummary]:
    """Evaluate the whole cohort region by region, without distances.

    Parameters
    ----------
    cohort, reading
        What to evaluate, and how. Regions that are too large to be held are left out: their lines
        have a finding and no counts.
    known
        Regions and teams that are not evaluated again.
    """
    every = {(team, region.name) for region in cohort.regions for team in reading.teams}
    wanted = every - {(team, region) for region, team in known}
    look = RegionLook(reading.without_distances, _summary, only=wanted)
    for (seen,) in look_at(cohort, [look]):
        yield from seen.parts


def _summary(region: Region, teams: Teams, _image: object) -> RegionSummary:
    ((team, evaluated),) = teams.items()
    findings = evaluated.of_team
    is_readable = evaluated.labels is not None
    if evaluated.evaluation is None and (is_readable or not findings):
        findings = evaluated.findings  # what is odd in the annotation is the reason
    line = RegionSummary.of(region.name, team, evaluated.evaluation, findings)
    if not evaluated.is_too_large:
        return line
    (finding,) = findings
    message = finding.message.removeprefix(f"region {region.name}: ")
    message += ": it is evaluated when it is looked at"
    return replace(line, findings=(replace(finding, message=message),), is_slide=True)
