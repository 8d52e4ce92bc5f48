"""Figures without annotation errors, against recounting the objects one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.common.errors import LabelError
from napari_panoptic.explain.what_if import (
    tally,
    tally_all,
    without_annotation_errors,
)
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.nuclei.metrics import Counts, unit_metrics
from napari_panoptic.values.labels import LabelImage, LabelPair
from tests.support.compare import assert_close, evaluate_case
from tests.support.examples import examples
from tests.support.label_cases import CASES, random_pair

seeds = st.integers(0, 2**32 - 1)
policies = st.sampled_from(["clip", "clip-predictions", "majority", "keep"])


def assert_same_counts(found: Counts, expected: Counts) -> None:
    assert found.class_names == expected.class_names
    np.testing.assert_array_equal(found.confusion, expected.confusion)
    for name in ("tp", "fp", "fn", "present", "hausdorff_pairs"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    for name in ("iou_sum", "matched_iou_sum", "hausdorff_sum_px", "hausdorff95_sum_px"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12, err_msg=name
        )
    assert found.ignored_reference == expected.ignored_reference
    assert found.ignored_prediction == expected.ignored_prediction


def recounted(evaluation: Evaluation, wrong: set[int], right: set[int]) -> dict[str, Any]:
    """Walk over the objects with their verdicts and count what each becomes."""
    names = evaluation.pair.class_names
    place = {name: k for k, name in enumerate(names)}
    tp, fp, fn, iou_sum, hausdorff, hausdorff95, pairs = np.zeros((7, len(names)))
    objects = evaluation.objects
    sides = {
        side: objects[objects["side"] == side].reset_index(drop=True).to_dict("records")
        for side in ("reference", "prediction")
    }
    row_of = {row["id"]: k for k, row in enumerate(sides["prediction"])}
    for k, row in enumerate(sides["reference"]):
        if row["status"] in ("TP", "misclassified"):
            corrected = k in wrong or row_of[row["partner_id"]] in right
            true_class = row["partner_class"] if corrected else row["class"]
            if true_class == row["partner_class"]:
                tp[place[true_class]] += 1
                iou_sum[place[true_class]] += row["iou"]
            else:
                fn[place[true_class]] += 1
                fp[place[row["partner_class"]]] += 1
            if not math.isnan(row["hausdorff_px"]):
                hausdorff[place[true_class]] += row["hausdorff_px"]
                percentile = evaluation.outcomes.reference.hausdorff95_px[k]
                hausdorff95[place[true_class]] += percentile
                pairs[place[true_class]] += 1
        elif row["status"] == "FN" and k not in wrong:
            fn[place[row["class"]]] += 1
    for k, row in enumerate(sides["prediction"]):
        if row["status"] == "FP" and k not in right:
            fp[place[row["class"]]] += 1
        elif row["status"] == "FP":
            tp[place[row["class"]]] += 1
            iou_sum[place[row["class"]]] += 1
    return {
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "iou_sum": iou_sum,
        "hausdorff_sum_px": hausdorff,
        "hausdorff95_sum_px": hausdorff95,
        "hausdorff_pairs": pairs,
        "present": (tp + fp + fn) > 0,
    }


@settings(max_examples=examples(150), deadline=None)
@given(seed=seeds, policy=policies)
def test_figures_are_those_of_the_recounted_objects(seed: int, policy: str) -> None:
    rng = np.random.default_rng(seed)
    evaluation = evaluate_case(random_pair(rng, (20, 20)), ambiguous=policy)
    wrong = np.flatnonzero(rng.random(len(evaluation.outcomes.reference)) < 0.4)
    right = np.flatnonzero(rng.random(len(evaluation.outcomes.prediction)) < 0.4)
    found = without_annotation_errors(evaluation, reference_rows=wrong, prediction_rows=right)
    expected = recounted(evaluation, set(wrong.tolist()), set(right.tolist()))
    for name, values in expected.items():
        np.testing.assert_allclose(
            getattr(found, name), values, rtol=1e-12, atol=1e-12, err_msg=name
        )
    confusion = found.confusion
    assert (confusion >= 0).all()
    np.testing.assert_array_equal(np.diag(confusion)[1:], expected["tp"])
    np.testing.assert_array_equal(confusion[1:].sum(axis=1), expected["tp"] + expected["fn"])
    np.testing.assert_array_equal(confusion[:, 1:].sum(axis=0), expected["tp"] + expected["fp"])
    assert found.ignored_reference == evaluation.counts.ignored_reference
    assert found.ignored_prediction == evaluation.counts.ignored_prediction


def verdict_case() -> Evaluation:
    """Evaluate a TP, an FN, an FP and a misclassified pair, far apart from each other."""
    reference, prediction = np.zeros((2, 30, 30), np.int32)
    reference[1:9, 1:9], prediction[1:9, 1:7] = 1, 1  # TP, IoU 0.75
    reference[1:9, 20:28] = 2  # FN
    prediction[20:28, 1:9] = 3  # FP
    reference[20:28, 20:28], prediction[20:28, 20:28] = 4, 4  # misclassified
    names = ("A", "B")
    return evaluate(
        LabelPair(
            LabelImage.from_array(reference, {1: "A", 2: "A", 4: "A"}, names),
            LabelImage.from_array(prediction, {1: "A", 3: "B", 4: "B"}, names),
        )
    )


def test_the_corrected_annotation_gives_the_same_figures() -> None:
    evaluation = verdict_case()
    found = without_annotation_errors(evaluation, reference_rows=[1, 2], prediction_rows=[1, 2])
    pair = evaluation.pair
    labels = pair.reference.id_image()
    labels[labels == 2] = 0
    labels[pair.prediction.id_image() == 3] = 9
    corrected = LabelImage.from_array(labels, {1: "A", 4: "B", 9: "B"}, pair.class_names)
    expected = evaluate(LabelPair(corrected, pair.prediction))
    # Only the outline that nobody drew has no distance.
    np.testing.assert_array_equal(expected.counts.hausdorff_pairs, [1, 2])
    np.testing.assert_array_equal(found.hausdorff_pairs, [1, 1])
    figures = unit_metrics(found)
    for name, value in expected.metrics.items():
        if name != "mean_hausdorff_px":
            assert math.isclose(figures[name], value), name


def test_either_object_of_a_misclassified_pair_may_have_the_verdict() -> None:
    evaluation = verdict_case()
    by_reference = without_annotation_errors(evaluation, reference_rows=[2])
    by_prediction = without_annotation_errors(evaluation, prediction_rows=[2])
    by_both = without_annotation_errors(evaluation, reference_rows=[2, 2], prediction_rows=[2])
    assert_same_counts(by_reference, by_prediction)
    assert_same_counts(by_reference, by_both)
    assert by_both.tp.tolist() == [1, 1]


def test_a_verdict_on_what_is_right_changes_nothing() -> None:
    evaluation = verdict_case()
    found = without_annotation_errors(evaluation, reference_rows=[0], prediction_rows=[0])
    assert_same_counts(found, evaluation.counts)


def test_a_class_that_loses_its_last_object_is_absent() -> None:
    evaluation = evaluate_case(CASES["empty-prediction"])
    found = without_annotation_errors(evaluation, reference_rows=[0])
    assert evaluation.metrics.pq == 0.0
    assert math.isnan(unit_metrics(found).pq)
    assert not found.present.any()


@pytest.mark.parametrize("rows", [[3], [-1]])
def test_rows_that_no_object_has_are_refused(rows: list[int]) -> None:
    with pytest.raises(LabelError, match="between 0 and 2"):
        without_annotation_errors(verdict_case(), reference_rows=rows)


def test_rows_of_an_empty_side_are_refused() -> None:
    with pytest.raises(LabelError, match="no objects"):
        without_annotation_errors(evaluate_case(CASES["empty-prediction"]), prediction_rows=[0])


@settings(max_examples=examples(80), deadline=None)
@given(seed=seeds, policy=policies)
def test_tallies_of_all_sets_add_up_to_the_counts(seed: int, policy: str) -> None:
    rng = np.random.default_rng(seed)
    evaluation = evaluate_case(random_pair(rng, (20, 20)), ambiguous=policy, distances=False)
    outcomes = evaluation.outcomes
    assert_same_counts(tally_all(outcomes).counts(outcomes.class_names), evaluation.counts)
    assert_close(float(tally_all(outcomes).pq()[0]), evaluation.metrics.pq)
    sets = rng.integers(0, 4, len(outcomes.reference))
    others = rng.integers(0, 4, len(outcomes.prediction))
    parts = tally(outcomes, sets, others, 4)
    np.testing.assert_array_equal(parts.confusion.sum(axis=0), evaluation.counts.confusion)
    np.testing.assert_allclose(parts.iou_sum.sum(axis=0), evaluation.counts.iou_sum, atol=1e-12)
    assert parts.ignored_reference.sum() == evaluation.counts.ignored_reference
    none = tally(outcomes, np.full_like(sets, -1), np.full_like(others, -1), 1)
    assert not none.confusion.any()
    assert math.isnan(float(none.pq()[0]))
