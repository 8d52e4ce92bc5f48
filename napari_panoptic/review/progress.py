"""The progress of a review, and the figures that its verdicts lead to, region by region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.nuclei.averages import summarise_team
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import Counts
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.review.judged import Judged
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings

FIGURES = ("pq", "sq", "dq", "detection_f1")
"""The figures that are shown before and after."""


@dataclass(frozen=True, eq=False)
class ReviewProgress:
    """The review of one region and team."""

    region: str
    #: Failures with a verdict, and all failures.
    done: int
    total: int
    #: What was counted, and what would be if the verdicts were right.
    before: Counts
    after: Counts


def progress_of(judged: Judged, region: str) -> ReviewProgress:
    """Sum up the verdicts on one evaluation."""
    done, total = judged.counts()
    return ReviewProgress(region, done, total, judged.evaluation.counts, judged.corrected_counts())


def progress_without_verdicts(summary: RegionSummary) -> ReviewProgress | None:
    """Take the line of a region without a verdict from the cohort summary."""
    counts = summary.counts
    if counts is None:
        return None
    wrong = counts.confusion.copy()
    np.fill_diagonal(wrong, 0)
    return ReviewProgress(summary.region, 0, int(wrong.sum()), counts, counts)


def figures_of(
    lines: Sequence[ReviewProgress], cohort: Cohort
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return the figures before and after: those of a team, as means over patients."""
    names = cohort.scheme.names

    def figures(counts: Sequence[tuple[str, Counts]]) -> dict[str, float]:
        summary = summarise_team(counts, names)
        return {name: summary.averaged[name].mean for name in FIGURES}

    patients = {region.name: region.patient for region in cohort.regions}
    return (
        figures([(patients[line.region], line.before) for line in lines]),
        figures([(patients[line.region], line.after) for line in lines]),
    )


def evaluated_region(
    cohort: Cohort, region: str, team: str, settings: EvaluationSettings, source: Source | None
) -> Evaluation | None:
    """Evaluate a region without distances; None if annotation or prediction is missing.

    Raises
    ------
    PanopticError
        If a file cannot be read.
    """
    quick = settings.replaced(distances=False)
    return HeldRegion(cohort, cohort.region(region), quick).evaluate(team, quick, source).evaluation
