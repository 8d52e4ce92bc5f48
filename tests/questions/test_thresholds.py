"""Figures without low scores equal those of an evaluation from which they were removed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.io.formats.polygons.rasterize import rasterize_polygons
from napari_panoptic.notebook import evaluate_pair
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.nuclei.metrics import unit_metrics
from napari_panoptic.questions.engines.cohort_scores import CohortScores
from napari_panoptic.questions.engines.scored_objects import ScoredRegion, scored_region
from napari_panoptic.questions.engines.thresholds import (
    FIGURES,
    ThresholdCurve,
    at_threshold,
    best_threshold,
    sums_at,
    threshold_curve,
    without_low_scores,
)
from napari_panoptic.questions.scores import best_sentence
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.labels import LabelPair, Scores
from napari_panoptic.values.settings import (
    AmbiguousPolicy,
    EvaluationSettings,
    Matching,
    Overlaps,
)
from tests.support.examples import seeds
from tests.support.label_cases import CLASS_NAMES, LabelCase, random_pair
from tests.support.outlines import polygons_of

CHOICES = (0.1, 0.25, 0.25, 0.5, 0.9, math.nan)


def scored(case: LabelCase, rng: np.random.Generator) -> LabelPair:
    """Return the pair of a case with scores, some of which are equal, and some missing."""
    pair = LabelPair.from_arrays(
        case.reference,
        case.prediction,
        case.reference_classes,
        case.prediction_classes,
        CLASS_NAMES,
        ambiguous=case.ambiguous,
    )
    scores = Scores(pair.prediction.ids, rng.choice(CHOICES, len(pair.prediction)))
    return replace(pair, prediction=replace(pair.prediction, known_scores=scores))


def again(evaluation: Evaluation, threshold: float) -> Evaluation:
    """Remove the predictions of low score from the pixels, and evaluate."""
    pair = evaluation.pair
    fewer = replace(pair, prediction=without_low_scores(pair.prediction, threshold))
    assert not (fewer.prediction.scores < threshold).any()
    return evaluate(fewer, evaluation.settings)


def assert_same(region: ScoredRegion, evaluation: Evaluation, threshold: float) -> None:
    """Compare one threshold with an evaluation without the low scores."""
    found, wanted = at_threshold(evaluation, threshold), again(evaluation, threshold)
    pd.testing.assert_frame_equal(found.outcomes.to_frame(), wanted.objects)
    np.testing.assert_equal(dict(found.metrics), dict(wanted.metrics))
    np.testing.assert_array_equal(found.counts.confusion, wanted.counts.confusion)
    if not region.is_unique:
        with pytest.raises(SettingsError, match=region.region):
            sums_at(region, np.array([threshold]))
        return
    sums = sums_at(region, np.array([threshold]))
    counts = wanted.counts
    for name in ("tp", "fp", "fn"):
        np.testing.assert_array_equal(getattr(sums, name)[0], getattr(counts, name))
    np.testing.assert_allclose(sums.iou_sum[0], counts.iou_sum, rtol=1e-12, atol=1e-15)
    for name, values in sums.figures().items():
        np.testing.assert_allclose(values[0], wanted.metrics[name], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("seed", seeds(120))
def test_a_threshold_equals_another_evaluation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    settings = EvaluationSettings(
        matching=list(Matching)[seed % 4 == 3],
        ambiguous=list(AmbiguousPolicy)[seed // 4 % 4],
        iou_threshold=(0.5, 0.5, 0.7, 0.3)[seed // 16 % 4],
        distances=seed % 8 == 3,
    )
    evaluation = evaluate(scored(random_pair(rng, (20, 24)), rng), settings)
    region = scored_region(evaluation, "p", "odd region")
    assert_same(region, evaluation, float(rng.choice([0.0, 0.1, 0.2, 0.25, 0.4, 0.9, 2.0])))


def test_objects_that_share_pixels_are_matched_again() -> None:
    rng = np.random.default_rng(5)
    sides = []
    for _ in range(2):
        corners = rng.integers(0, 16, (12, 2)).tolist()
        outlines = [
            (CLASS_NAMES[n % 2], [(x, y), (x + 6, y), (x + 6, y + 5), (x, y + 5)])
            for n, (x, y) in enumerate(corners)
        ]
        polygons = polygons_of(outlines, MONUSAC_CLASSES)
        drawn = rasterize_polygons(polygons, (24, 24), MONUSAC_CLASSES).held().labels
        scores = Scores(np.arange(1, 13), rng.random(12))
        sides.append(replace(drawn, known_scores=scores).with_overlaps(Overlaps.KEEP))
    evaluation = evaluate(LabelPair(*sides), EvaluationSettings(overlaps=Overlaps.KEEP))
    region = scored_region(evaluation, "p", "shared")
    assert not region.is_unique
    for threshold in (0.3, 0.6):
        assert_same(region, evaluation, threshold)


def test_the_best_threshold_is_chosen_without_the_patient_it_is_judged_on() -> None:
    rng = np.random.default_rng(1)
    evaluations: dict[str, list[Evaluation]] = {}
    regions = []
    for number in range(12):
        pair = scored(random_pair(rng, (24, 24), reference_kind="blobs"), rng)
        found = evaluate(pair, EvaluationSettings(distances=False))
        evaluations.setdefault(f"p{number // 3}", []).append(found)
        regions.append(scored_region(found, f"p{number // 3}", str(number)))
    curve = threshold_curve(regions)
    assert curve is not None
    assert curve.thresholds.tolist() == sorted({s for s in CHOICES if not math.isnan(s)})
    # Each figure, from evaluations without the low scores that are summed by patient.
    slow: dict[str, list[list[float]]] = {name: [] for name in FIGURES}
    for own in evaluations.values():
        of_patient: dict[str, list[float]] = {name: [] for name in FIGURES}
        for threshold in curve.thresholds:
            first, *rest = (again(evaluation, threshold).counts for evaluation in own)
            metrics = unit_metrics(sum(rest, first))
            for name in FIGURES:
                of_patient[name].append(metrics[name])
        for name in FIGURES:
            slow[name].append(of_patient[name])
    for name in FIGURES:
        np.testing.assert_allclose(curve.figures[name], slow[name], rtol=1e-12, err_msg=name)
        best = best_threshold(curve, name)
        by_row = pd.DataFrame(slow[name])
        same_patients = by_row.apply(lambda row: row.fillna(row.min()), axis=1)
        means = same_patients.mean()
        np.testing.assert_allclose(curve.mean(name), means, rtol=1e-12)
        assert best.optimistic == pytest.approx(means.max(), rel=1e-12)
        assert best.baseline == pytest.approx(means[0], rel=1e-12)
        for row in range(4):
            others = same_patients.drop(index=row).mean()
            place = curve.thresholds.tolist().index(best.chosen[row])
            assert others[place] == pytest.approx(others.max(), rel=1e-12)
            assert best.left_out[row] == pytest.approx(
                same_patients.loc[row, place], rel=1e-12, nan_ok=True
            )
        assert best.honest.mean == pytest.approx(np.nanmean(best.left_out))
        assert best.gain.mean == pytest.approx(np.nanmean(best.left_out - same_patients[0]))


def test_a_patient_alone_chooses_no_honest_threshold() -> None:
    figures = {name: np.array([[0.5, 0.75, 0.75]]) for name in FIGURES}
    best = best_threshold(ThresholdCurve(np.array([0.1, 0.2, 0.3]), ("p",), figures, True))
    assert (best.threshold, best.optimistic, best.baseline) == (0.2, 0.75, 0.5)
    assert math.isnan(best.honest.mean)
    assert math.isnan(best.gain.mean)


def test_a_threshold_does_not_win_by_patients_without_predictions() -> None:
    regions = []
    for patient, (good, bad, score_good, score_bad) in enumerate(
        [(8, 2, 0.9, 0.6), (9, 1, 0.9, 0.6), (1, 9, 0.4, 0.4), (2, 8, 0.4, 0.4)]
    ):
        reference, prediction = np.zeros((2, 40, 100), np.int32)
        scores = {}
        for n in range(10):
            y, x = 10 * (n // 5), 20 * (n % 5)
            reference[y : y + 9, x : x + 9] = n + 1
            if n < good:
                prediction[y : y + 9, x : x + 9] = n + 1
                scores[n + 1] = score_good
            if n < bad:
                prediction[34:40, 10 * n : 10 * n + 6] = 50 + n
                scores[50 + n] = score_bad
        evaluation = evaluate_pair(reference, prediction, scores=scores)
        regions.append(scored_region(evaluation, str(patient), f"region {patient}"))
    scores_of = CohortScores("team", regions)
    best = scores_of.best("detection_precision")
    assert best is not None
    # Above 0.4 two patients have no prediction; they count with their figures of 0.1 and 0.2.
    assert best.honest.n == best.gain.n == 4
    assert best.optimistic == pytest.approx((1 + 1 + 0.1 + 0.2) / 4)
    assert best.counted_as_worst == ("2", "3")
    assert best.gain.mean == pytest.approx((0.2 + 0.1) / 4)
    assert "over 4 patients; undefined at some thresholds: 2 patients (2 and 3)" in best_sentence(
        best
    )
