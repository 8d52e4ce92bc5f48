"""Evaluating the same pixels again under other settings equals evaluating them afresh."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic import EvaluationSettings
from napari_panoptic.nuclei import distance_cache as known_distances
from napari_panoptic.nuclei.evaluate import evaluate, evaluate_again
from napari_panoptic.nuclei.values.settings import AmbiguousPolicy, Matching, Outlines
from tests.nuclei.test_edits import assert_same, pair_of
from tests.support.label_cases import random_pair


@pytest.mark.parametrize("seed", range(20))
def test_any_walk_through_the_settings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pair = pair_of(random_pair(rng))
    evaluation = evaluate(pair)
    for _ in range(12):
        settings = EvaluationSettings(
            matching=rng.choice(list(Matching)),
            iou_threshold=float(rng.choice([0.05, 0.3, 0.5, 0.8])),
            ambiguous=rng.choice(list(AmbiguousPolicy)),
            outlines=rng.choice(list(Outlines)),
            distances=bool(rng.random() < 0.8),
        )
        evaluation = evaluate_again(evaluation, settings)
        assert_same(evaluation, evaluate(pair, settings))


def test_a_step_of_the_threshold_measures_only_new_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = pair_of(random_pair(np.random.default_rng(1), (60, 60)))
    evaluation = evaluate(pair, EvaluationSettings(iou_threshold=0.05))
    known = len(evaluation.distances.keys)
    assert known > 0

    def no_more(*_args: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(known_distances, "pair_distances", no_more)
    stricter = evaluate_again(evaluation, EvaluationSettings(iou_threshold=0.8))
    assert len(stricter.distances.keys) == known  # what is not needed now is kept
    assert_same(stricter, evaluate_again(stricter, EvaluationSettings(iou_threshold=0.8)))
