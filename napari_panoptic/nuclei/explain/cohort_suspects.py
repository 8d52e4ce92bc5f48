"""The suspect annotations of a whole cohort, read region by region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.nuclei.explain.suspects import Agreement, Suspect, agreement, find_suspects
from napari_panoptic.nuclei.reading import HELD_UP_TO_PX
from napari_panoptic.nuclei.region import held_region
from napari_panoptic.nuclei.values.cohort import Cohort, Region, Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings, Restoration

SUSPECT_SETTINGS = EvaluationSettings(restoration=Restoration.BORDER_DILATED)
"""How teams are compared by default: they draw borders over objects, and outlines count here."""


@dataclass(frozen=True, eq=False)
class CohortSuspects:
    """The suspects of a cohort.

    Parameters
    ----------
    suspects
        The most suspect first.
    regions
        Number of regions that were compared.
    objects
        Number of their reference objects.
    findings
        What was odd, and why other regions were left out.
    """

    suspects: tuple[Suspect, ...]
    regions: int
    objects: int
    findings: tuple[Finding, ...]


def cohort_suspects(
    cohort: Cohort,
    teams: Sequence[str],
    settings: EvaluationSettings,
    source: Source | None = None,
    *,
    held_up_to_px: int = HELD_UP_TO_PX,
    on_region: Callable[[], object] = lambda: None,
) -> CohortSuspects:
    """Find the suspect annotations of a cohort from its files.

    Regions without an annotation or without the predictions of at least two teams are left
    out, and so are those too large to be held.

    Parameters
    ----------
    cohort, teams, settings, source
        What to compare, and how; distances are not needed.
    held_up_to_px
        Number of pixels that a region may have.
    on_region
        Called after each region; an error that it raises ends the search.
    """
    settings = settings.replaced(distances=False)
    found: list[Agreement] = []
    findings: list[Finding] = []
    for region in cohort.regions:
        own, odd = _agreement(cohort, region, teams, settings, source, held_up_to_px)
        findings += odd
        if own is not None:
            found.append(own)
        on_region()
    return CohortSuspects(
        suspects=find_suspects(found),
        regions=len(found),
        objects=sum(len(own.reference) for own in found),
        findings=tuple(findings),
    )


def _agreement(
    cohort: Cohort,
    region: Region,
    teams: Sequence[str],
    settings: EvaluationSettings,
    source: Source | None,
    held_up_to_px: int,
) -> tuple[Agreement | None, tuple[Finding, ...]]:
    held = held_region(cohort, region, settings, held_up_to_px=held_up_to_px)
    if isinstance(held, Finding):
        return None, (held,)
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
            f"region {region.name} has readable predictions of {len(evaluations)} team(s), and "
            "two are needed to find suspects: left out"
        )
        return None, (*findings, Finding(FindingKind.MISSING, message, region=region.name))
    return agreement(evaluations, patient=region.patient, region=region.name), findings
