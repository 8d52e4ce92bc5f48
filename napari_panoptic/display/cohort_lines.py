"""The figures of regions, patients and teams, as lists of a cohort show them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.display.glossary import NO_ANNOTATION, NO_ANNOTATION_MEANING
from napari_panoptic.display.styles import UNDEFINED
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.nuclei.metrics import Counts, Metrics, unit_metrics
from napari_panoptic.values.cohort import Cohort

Summaries = Mapping[tuple[str, str], RegionSummary]
MISSING, UNREADABLE = "missing", "unreadable"
"""Words in place of a figure if a file is missing or cannot be used."""


@dataclass(frozen=True)
class CohortLine:
    """PQ and failures of a region or a patient; NaN while they are not known."""

    #: The figures.
    pq: float = math.nan
    fn: float = math.nan
    fp: float = math.nan
    misclassified: float = math.nan
    #: Word for why a figure is NaN; empty if none is, or if they are not known yet.
    lacking: str = ""
    #: The same in a sentence.
    reason: str = ""

    @property
    def failures(self) -> float:
        """Number of failures."""
        return self.fn + self.fp + self.misclassified


UNKNOWN = CohortLine()


class CohortLines:
    """Figures of a cohort, each computed once for the same summaries.

    Parameters
    ----------
    cohort
        The cohort.
    summaries
        ``(region, team)`` -> its results as far as they are known; may grow.
    """

    def __init__(self, cohort: Cohort, summaries: Summaries) -> None:
        self._summaries = summaries
        self._unannotated = {at.name for at in cohort.regions if at.reference is None}
        self._regions: dict[tuple[str, str], tuple[RegionSummary, CohortLine]] = {}
        self._patients: dict[tuple[str, str], tuple[list[RegionSummary], CohortLine]] = {}
        self.regions_of: dict[str, list[str]] = {}
        """Patient -> its regions, both in the order of the cohort."""
        for region in cohort.regions:
            self.regions_of.setdefault(region.patient, []).append(region.name)

    def region(self, name: str, team: str) -> CohortLine:
        """Return the line of a team in a region."""
        summary = self._summaries.get((name, team))
        return UNKNOWN if summary is None else self._of_summary(summary)

    def patient(self, patient: str, team: str) -> CohortLine:
        """Return the line of all regions of a patient together, once all are known."""
        known = self._known(self.regions_of[patient], team)
        if known is None:
            return UNKNOWN
        found = self._patients.get((patient, team))
        if found is None or any(
            one is not other for one, other in zip(found[0], known, strict=True)
        ):
            counts = [summary.counts for summary in known if summary.counts is not None]
            found = known, _of_counts(reduce(add, counts)) if counts else UNKNOWN
            self._patients[patient, team] = found
        return found[1]

    def mean_pq(self, team: str) -> float:
        """Return the mean PQ over the patients, once all of them are known; else NaN."""
        every = [name for names in self.regions_of.values() for name in names]
        if not every or self._known(every, team) is None:
            return math.nan
        pqs = np.array([self.patient(patient, team).pq for patient in self.regions_of])
        return math.nan if np.isnan(pqs).all() else float(np.nanmean(pqs))

    def worst_region(self, patient: str, team: str) -> str:
        """Return the region of a patient with the lowest PQ; the first if none is known."""
        pqs = [self.region(name, team).pq for name in self.regions_of[patient]]
        place = 0 if np.isnan(pqs).all() else int(np.nanargmin(pqs))
        return self.regions_of[patient][place]

    def _of_summary(self, summary: RegionSummary) -> CohortLine:
        key = summary.region, summary.team
        known = self._regions.get(key)
        if known is None or known[0] is not summary:
            known = summary, self._computed(summary)
            self._regions[key] = known
        return known[1]

    def _computed(self, summary: RegionSummary) -> CohortLine:
        if summary.counts is not None and summary.metrics is not None:
            return _of_counts(summary.counts, summary.metrics)
        if summary.region in self._unannotated:
            return CohortLine(lacking=NO_ANNOTATION, reason=NO_ANNOTATION_MEANING)
        reason = summary.findings[0].message if summary.findings else "It cannot be evaluated."
        is_unreadable = any(at.kind is FindingKind.UNREADABLE for at in summary.findings[:1])
        lacking = UNREADABLE if is_unreadable and not summary.is_slide else MISSING
        return CohortLine(lacking=lacking, reason=reason)

    def _known(self, names: Sequence[str], team: str) -> list[RegionSummary] | None:
        found = [self._summaries.get((name, team)) for name in names]
        known = [summary for summary in found if summary is not None]
        return known if len(known) == len(found) else None


def _of_counts(counts: Counts, metrics: Metrics | None = None) -> CohortLine:
    confusion = counts.confusion
    matched = confusion[1:, 1:]
    pq = (metrics or unit_metrics(counts)).pq
    return CohortLine(
        pq,
        float(confusion[1:, 0].sum()),
        float(confusion[0, 1:].sum()),
        float(matched.sum() - np.trace(matched)),
        lacking=UNDEFINED if math.isnan(pq) else "",
    )
