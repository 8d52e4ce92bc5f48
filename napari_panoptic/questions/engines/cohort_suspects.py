"""The suspect annotations of a whole cohort, read region by region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import counted
from napari_panoptic.nuclei.regions.reading import HELD_UP_TO_PX
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.nuclei.regions.run import walk
from napari_panoptic.questions.engines.suspects import Agreement, Suspect, agreement, find_suspects
from napari_panoptic.values.cohort import Cohort, Region, Source
from napari_panoptic.values.settings import EvaluationSettings, Restoration

SUSPECT_SETTINGS = EvaluationSettings(restoration=Restoration.BORDER_DILATED)
"""The default settings. They restore the borders that teams draw over objects: outlines count."""


@dataclass(frozen=True, eq=False)
class CohortSuspects:
    """The suspects of a cohort."""

    #: The most suspect first.
    suspects: tuple[Suspect, ...]
    #: Number of regions that were compared.
    regions: int
    #: Number of their reference objects.
    objects: int
    #: Warnings about the inputs, and the reasons why regions were left out.
    findings: tuple[Finding, ...]


def cohort_suspects(
    cohort: Cohort,
    teams: Sequence[str],
    settings: EvaluationSettings,
    source: Source | None = None,
    *,
    held_up_to_px: int = HELD_UP_TO_PX,
    jobs: int | None = 1,
    progress: Progress = UNWATCHED,
) -> CohortSuspects:
    """Find the suspect annotations of a cohort from its files.

    Regions without an annotation, with the predictions of fewer than two teams, or with too many
    pixels are left out.

    Parameters
    ----------
    cohort, teams, settings, source
        The teams to compare, and how; distances are not measured.
    held_up_to_px
        Number of pixels that a region may have.
    jobs
        Regions at a time; None for the number of processors.
    progress
        Reported to after each region, and checked for cancellation.

    Raises
    ------
    StoppedError
        If cancelled.
    """
    settings = settings.replaced(distances=False)
    found: list[Agreement] = []
    findings: list[Finding] = []
    compared = partial(_agreement, teams, settings, source)
    for _, region in walk(
        cohort,
        teams,
        settings,
        compared,
        jobs=jobs,
        held_up_to_px=held_up_to_px,
        progress=progress,
    ):
        own, odd = (None, (region,)) if isinstance(region, Finding) else region
        findings += odd
        if own is not None:
            found.append(own)
    return CohortSuspects(
        suspects=find_suspects(found),
        regions=len(found),
        objects=sum(len(own.reference) for own in found),
        findings=tuple(findings),
    )


def _agreement(
    teams: Sequence[str],
    settings: EvaluationSettings,
    source: Source | None,
    region: Region,
    held: HeldRegion,
) -> tuple[Agreement | None, tuple[Finding, ...]]:
    reference = held.reference(settings)
    findings = reference.findings
    if reference.masks is None:
        return None, findings
    evaluations = {}
    for team in teams:
        found = held.evaluate(team, settings, source)
        findings += found.of_team
        if found.evaluation is not None:
            evaluations[team] = found.evaluation
    if len(evaluations) < 2:
        message = (
            f"region {region.name} is left out: it has readable predictions of "
            f"{counted(len(evaluations), 'team')}, and the search for suspects needs two"
        )
        return None, (*findings, Finding(FindingKind.MISSING, message, region=region.name))
    return agreement(evaluations, patient=region.patient, region=region.name), findings
