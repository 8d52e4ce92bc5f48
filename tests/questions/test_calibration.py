"""Planted probabilities are found calibrated, and others are not."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic.notebook import PairResult, evaluate_pair
from napari_panoptic.questions.engines.calibration import reliability
from napari_panoptic.questions.engines.scored_objects import failures_by_score, scored_region

STEP = 6
PER_PATIENT = 50


def planted(rng: np.random.Generator, *, power: float = 1.0) -> tuple[PairResult, np.ndarray]:
    """Draw a patient's nuclei, of which a prediction is right with the probability of its score."""
    edge = PER_PATIENT * STEP
    reference, prediction = np.zeros((2, edge, edge), np.int32)
    probability = rng.random(PER_PATIENT**2)
    is_right = rng.random(PER_PATIENT**2) < probability**power
    for number in range(PER_PATIENT**2):
        y, x = np.array(divmod(number, PER_PATIENT)) * STEP
        reference[y : y + 4, x : x + 4] = number + 1
        # The IoU of a wrong one is 1/3.
        shift = 0 if is_right[number] else 2
        prediction[y : y + 4, x + shift : x + shift + 4] = number + 1
    return evaluate_pair(reference, prediction, scores=probability), is_right


def test_planted_probabilities_are_calibrated() -> None:
    rng = np.random.default_rng(3)
    found = [planted(rng) for _ in range(8)]
    regions = [scored_region(own, f"p{n}", "r") for n, (own, _) in enumerate(found)]
    curve = reliability(regions)
    assert curve is not None
    assert curve.over_patients
    assert curve.ece <= 0.02
    assert curve.ece < 3 * curve.by_chance
    assert curve.objects.sum() == 8 * PER_PATIENT**2
    assert ((curve.low <= curve.share) & (curve.share <= curve.high)).all()
    # Bins, share and error, object by object.
    scores = np.concatenate([own.outcomes.prediction.score for own, _ in found])
    right = np.concatenate([is_right for _, is_right in found])
    error = 0.0
    for k in range(10):
        inside = (scores >= k / 10) & (scores < (k + 1) / 10)
        assert curve.objects[k] == inside.sum()
        assert curve.right[k] == right[inside].sum()
        error += abs(right[inside].sum() - scores[inside].sum())
    assert curve.ece == pytest.approx(error / len(scores))
    table = failures_by_score(regions)
    wrong = np.sort(scores[~right])[::-1]
    np.testing.assert_array_equal(table["score"], wrong)
    assert set(table["status"]) == {"FP"}


def test_scores_that_promise_too_much_have_a_large_error() -> None:
    own, _ = planted(np.random.default_rng(4), power=3)
    curve = reliability([scored_region(own, "p", "r")])
    assert curve is not None
    assert not curve.over_patients
    # The mean of s - s³ for s between 0 and 1.
    assert curve.ece == pytest.approx(0.25, abs=0.03)


def test_scores_outside_zero_to_one_are_no_probabilities() -> None:
    image = np.array([[1, 0, 2]])
    assert evaluate_pair(image, image, scores=[0.5, 1.5]).scores.reliability is None
    assert evaluate_pair(image, image).scores.reliability is None
    both = evaluate_pair(image, image, scores=[0.0, 1.0]).scores.reliability
    assert both is not None
    assert both.objects.tolist() == [1, *[0] * 8, 1]
