"""Every region and team in a line, for the navigator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.nuclei.metrics import Counts, Metrics, unit_metrics
from napari_panoptic.nuclei.reading import HELD_UP_TO_PX, TooLargeError, unreadable
from napari_panoptic.nuclei.region import HeldRegion
from napari_panoptic.nuclei.values.cohort import Cohort, Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings


@dataclass(frozen=True, eq=False)
class RegionSummary:
    """One team in one region, in a line.

    Parameters
    ----------
    region, team
        Names.
    counts
        Summed outcomes, or None if it could not be evaluated.
    metrics
        The figures, or None likewise.
    findings
        What was odd, or prevented the evaluation.
    """

    region: str
    team: str
    counts: Counts | None
    metrics: Metrics | None
    findings: tuple[Finding, ...] = ()


def evaluate_cohort_summary(
    cohort: Cohort,
    settings: EvaluationSettings,
    *,
    source: Source | None = None,
    team_names: tuple[str, ...] | None = None,
    held_up_to_px: int = HELD_UP_TO_PX,
) -> Iterator[RegionSummary]:
    """Evaluate the whole cohort region by region, without distances.

    Parameters
    ----------
    cohort, settings
        What to evaluate, and how.
    source
        Which format of the predictions; None for the usual one.
    team_names
        Which teams; None for all.
    held_up_to_px
        Regions of more pixels are left out: their lines have a finding and no counts.
    """
    quick = settings.replaced(distances=False)
    teams = tuple(team.name for team in cohort.teams) if team_names is None else team_names
    for region in cohort.regions:
        try:
            held = HeldRegion(cohort, region, quick, held_up_to_px=held_up_to_px)
        except (PanopticError, OSError) as error:
            finding = unreadable(error, region=region.name)
            if isinstance(error, TooLargeError):
                message = f"{error.message}: it is evaluated when it is looked at"
                finding = replace(finding, message=message)
            for team in teams:
                yield RegionSummary(region.name, team, None, None, (finding,))
            continue
        for team in teams:
            found = held.evaluate(team, quick, source)
            counts = None if found.evaluation is None else found.evaluation.counts
            metrics = None if counts is None else unit_metrics(counts)
            yield RegionSummary(region.name, team, counts, metrics, found.of_team)
            held.forget(team)
