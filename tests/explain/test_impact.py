"""The impact of single failures: cohorts counted again with one object mended."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_panoptic.display.object_rows import ObjectRows
from napari_panoptic.explain.impact import PatientMean
from napari_panoptic.live.summary import evaluate_cohort_summary
from napari_panoptic.nuclei.averages import summarise_team
from napari_panoptic.nuclei.metrics import Counts, unit_metrics
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import AmbiguousPolicy, EvaluationSettings, Matching
from napari_panoptic.values.vocabulary import STATUS_CODE, Status

CLASSES = ("Epithelial", "Lymphocyte", "Neutrophil")


@dataclass(frozen=True)
class Thing:
    """A matched pair, an FN (no prediction class) or an FP (no reference class), by class."""

    reference: int
    prediction: int
    iou: float

    @property
    def status(self) -> Status:
        if not self.prediction:
            return Status.FN
        if not self.reference:
            return Status.FP
        return Status.TP if self.reference == self.prediction else Status.MISCLASSIFIED

    @property
    def mended(self) -> list[Thing]:
        """The object without its failure."""
        if self.status is Status.FN:
            return [Thing(self.reference, self.reference, 1.0)]
        if self.status is Status.FP:
            return []
        if self.status is Status.TP:
            return [self]
        return [Thing(self.reference, self.reference, 1.0)]


Region = tuple[str, list[Thing]]


def counts_of(things: list[Thing]) -> Counts:
    """Count objects one after the other."""
    counts = Counts.zero(CLASSES)
    tp, fp, fn, iou_sum = (getattr(counts, name).copy() for name in ("tp", "fp", "fn", "iou_sum"))
    for thing in things:
        if thing.status is Status.TP:
            tp[thing.reference - 1] += 1
            iou_sum[thing.reference - 1] += thing.iou
            continue
        if thing.reference:
            fn[thing.reference - 1] += 1
        if thing.prediction:
            fp[thing.prediction - 1] += 1
    present = (tp + fp + fn > 0).astype(np.int64)
    return replace(counts, tp=tp, fp=fp, fn=fn, iou_sum=iou_sum, present=present)


def mean_pq(regions: list[Region]) -> float:
    """Return the mean PQ over patients, as the evaluation computes it."""
    counts = [(patient, counts_of(things)) for patient, things in regions]
    return summarise_team(counts, CLASSES).averaged["pq"].mean


def columns_of(things: list[Thing], side: int) -> dict[str, np.ndarray]:
    """Return objects in columns, misclassified ones as those of a side."""
    on_prediction = [
        thing.status is Status.FP or (side == 1 and thing.status is not Status.FN)
        for thing in things
    ]
    pairs = [
        (thing.prediction, thing.reference) if flipped else (thing.reference, thing.prediction)
        for thing, flipped in zip(things, on_prediction, strict=True)
    ]
    own, other = np.array(pairs, np.int16).reshape(-1, 2).T
    return {
        "id": np.arange(len(things)),
        "side": np.array(on_prediction, np.int8),
        "status": np.array([STATUS_CODE[thing.status] for thing in things], np.int8),
        "class": own,
        "partner_class": other,
        "iou": np.array([thing.iou for thing in things], np.float64),
    }


def gains_of(mean: PatientMean, patient: str, columns: dict) -> np.ndarray:
    """Return the impact of objects of one patient."""
    return mean.gains(np.repeat(mean.rows([patient]), len(columns["id"])), columns)


classes = st.integers(0, len(CLASSES))
things = st.builds(Thing, classes, classes, st.floats(0.5, 1)).filter(
    lambda thing: thing.reference or thing.prediction
)
regions = st.tuples(st.sampled_from(["P1", "P2", "P3"]), st.lists(things, max_size=6))


@given(st.lists(regions, min_size=1, max_size=5), st.sampled_from([0, 1]))
def test_it_is_the_change_of_the_mean_if_one_object_is_mended(cohort, side):
    mean = PatientMean.of((patient, counts_of(own)) for patient, own in cohort)
    now = mean_pq(cohort)
    for number, (patient, own) in enumerate(cohort):
        gains = gains_of(mean, patient, columns_of(own, side))
        for at, thing in enumerate(own):
            mended = [*own[:at], *thing.mended, *own[at + 1 :]]
            after = mean_pq([*cohort[:number], (patient, mended), *cohort[number + 1 :]])
            expected = 0.0 if math.isnan(after) else after - now
            assert gains[at] == pytest.approx(expected, abs=1e-12)


def test_a_class_that_is_absent_otherwise_costs_most():
    """A lone FP of a class counts as 0: without it the class is left out of the mean."""
    found = Thing(1, 1, 0.9)
    own = [found, found, Thing(1, 0, 0.0), Thing(0, 1, 0.0), Thing(0, 3, 0.0)]
    mean = PatientMean.of([("P1", counts_of(own))])
    gains = gains_of(mean, "P1", columns_of(own, 0))
    assert np.argmax(gains) == 4
    assert gains[4] == pytest.approx(1.8 / 3 / 2)
    assert gains[:2].tolist() == [0, 0]


def test_nothing_is_known_of_other_patients():
    own = [Thing(1, 0, 0.0)]
    assert gains_of(PatientMean.of([]), "P1", columns_of(own, 0)).tolist() == [0]
    known = PatientMean.of([("P1", counts_of(own))])
    assert gains_of(known, "P2", columns_of(own, 0)).tolist() == [0]
    assert len(gains_of(known, "P1", columns_of([], 0))) == 0


PROTOCOLS = [
    EvaluationSettings(),
    EvaluationSettings(matching=Matching.CENTROID, ambiguous=AmbiguousPolicy.KEEP),
    EvaluationSettings(iou_threshold=0.75, ambiguous=AmbiguousPolicy.MAJORITY),
]


@pytest.mark.parametrize("settings", PROTOCOLS)
def test_it_is_that_of_the_objects_of_a_cohort(small_cohort, settings):
    """Every failure of a cohort, against its confusion matrices with one object mended."""
    patient_of = {region.name: region.patient for region in small_cohort.regions}
    lines = list(
        evaluate_cohort_summary(small_cohort, Reading(settings, teams=small_cohort.team_names))
    )
    for team in small_cohort.team_names:
        own = [line for line in lines if line.team == team and line.counts is not None]
        known = [(patient_of[line.region], line.counts) for line in own]
        mean, now = PatientMean.of(known), summarise_team(known, small_cohort.scheme.names)
        n_checked = 0
        for number, line in enumerate(own):
            columns = line.failures.columns
            gains = gains_of(mean, patient_of[line.region], columns)
            for row in range(len(line.failures)):
                counts = mended_counts(line.counts, {n: c[row] for n, c in columns.items()})
                after = [*known[:number], (known[number][0], counts), *known[number + 1 :]]
                changed = summarise_team(after, small_cohort.scheme.names).averaged["pq"].mean
                expected = changed - now.averaged["pq"].mean
                assert gains[row] == pytest.approx(expected, abs=1e-12)
                n_checked += 1
        assert n_checked


def mended_counts(counts: Counts, failure: dict) -> Counts:
    """Count a region again with one failure mended."""
    tp, fp, fn, iou_sum = (getattr(counts, name).copy() for name in ("tp", "fp", "fn", "iou_sum"))
    own, other = int(failure["class"]) - 1, int(failure["partner_class"]) - 1
    if failure["status"] == STATUS_CODE[Status.FP]:
        fp[own] -= 1
    else:
        tp[own] += 1
        fn[own] -= 1
        iou_sum[own] += 1.0
        if failure["status"] != STATUS_CODE[Status.FN]:
            fp[other] -= 1
    present = (tp + fp + fn > 0).astype(np.int64)
    return replace(counts, tp=tp, fp=fp, fn=fn, iou_sum=iou_sum, present=present)


def test_the_table_has_the_impact_on_the_region(small_cohort):
    region = small_cohort.regions[0]
    held = HeldRegion(small_cohort, region, EvaluationSettings())
    for _, found in held.each_team(small_cohort.team_names, EvaluationSettings(), None):
        if found.evaluation is None:
            continue
        outcomes = found.evaluation.outcomes
        rows, now = ObjectRows.from_outcomes(outcomes), unit_metrics(found.evaluation.counts).pq
        is_failure = rows.failures()
        assert not rows.values["impact"][~is_failure].any()
        for row in np.flatnonzero(is_failure):
            own = {name: column[row] for name, column in rows.values.items()}
            if own["status"] == STATUS_CODE[Status.MISCLASSIFIED] and own["side"] == 1:
                own |= {"class": own["partner_class"], "partner_class": own["class"]}
            after = unit_metrics(mended_counts(found.evaluation.counts, own)).pq
            assert rows.values["impact"][row] == pytest.approx(after - now, abs=1e-12)
