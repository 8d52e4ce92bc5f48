"""What must hold whatever the labels are."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.values.vocabulary import Cause
from tests.support.compare import evaluate_case
from tests.support.examples import examples
from tests.support.label_cases import LabelCase, random_pair

seeds = st.integers(0, 2**32 - 1)
shapes = st.tuples(st.integers(1, 30), st.integers(1, 30))
policies = st.sampled_from(["clip", "clip-predictions", "majority", "keep"])
symmetric_policies = st.sampled_from(["clip", "majority", "keep"])
rules = st.sampled_from(["strict-iou", "centroid"])
thresholds = st.sampled_from([0.5, 0.6, 0.9])


def relabelled(
    rng: np.random.Generator, labels: np.ndarray, classes: dict[int, str], *, ascending: bool
) -> tuple[np.ndarray, dict[int, str]]:
    """Give every object another id; in the same order, or in any."""
    ids = np.array(sorted(classes), np.int64)
    new = np.sort(rng.choice(np.arange(1, 10 * len(ids) + 10), len(ids), replace=False))
    if not ascending:
        new = rng.permutation(new)
    new = new + int(rng.integers(0, 2**31))
    lookup = dict(zip(ids.tolist(), new.tolist(), strict=True)) | {0: 0}
    image = np.array([lookup[int(v)] for v in labels.ravel()], np.int64).reshape(labels.shape)
    return image, {lookup[old]: name for old, name in classes.items()}


def figures(evaluation: Evaluation) -> dict[str, Any]:
    """Everything but ids, rounded to what sums in another order may change."""
    objects = evaluation.objects.drop(columns=["id", "partner_id"]).fillna(-1)
    rows = sorted(
        tuple(round(v, 9) if isinstance(v, float) else str(v) for v in row)
        for row in objects.itertuples(index=False)
    )
    return {
        "objects": [tuple(map(str, row)) for row in rows],
        "metrics": {k: None if v != v else round(v, 12) for k, v in evaluation.metrics.items()},
        "confusion": evaluation.confusion.to_numpy().tolist(),
    }


@settings(max_examples=examples(70), deadline=None)
@given(seed=seeds, shape=shapes, policy=policies, threshold=st.sampled_from([0.2, 0.5, 0.7]))
def test_relabelling_changes_nothing(
    seed: int, shape: tuple[int, int], policy: str, threshold: float
) -> None:
    rng = np.random.default_rng(seed)
    case = random_pair(rng, shape)
    other = LabelCase(
        *_both_relabelled(rng, case, ascending=False),
        ambiguous=case.ambiguous,
    )
    chosen = {"ambiguous": policy, "iou_threshold": threshold}
    assert figures(evaluate_case(case, **chosen)) == figures(evaluate_case(other, **chosen))


@settings(max_examples=examples(40), deadline=None)
@given(seed=seeds, shape=shapes, policy=policies)
def test_relabelling_in_order_changes_nothing_under_the_centroid_rule(
    seed: int, shape: tuple[int, int], policy: str
) -> None:
    # The rule itself breaks ties by label, so that only the order must be kept.
    rng = np.random.default_rng(seed)
    case = random_pair(rng, shape)
    other = LabelCase(
        *_both_relabelled(rng, case, ascending=True),
        ambiguous=case.ambiguous,
    )
    chosen = {"ambiguous": policy, "matching": "centroid"}
    assert figures(evaluate_case(case, **chosen)) == figures(evaluate_case(other, **chosen))


@settings(max_examples=examples(50), deadline=None)
@given(seed=seeds, shape=shapes, policy=symmetric_policies, threshold=thresholds)
def test_swapping_sides_swaps_fp_and_fn(
    seed: int, shape: tuple[int, int], policy: str, threshold: float
) -> None:
    case = random_pair(np.random.default_rng(seed), shape)
    swapped = LabelCase(
        case.prediction,
        case.reference,
        case.prediction_classes,
        case.reference_classes,
        case.ambiguous,
    )
    chosen = {"ambiguous": policy, "iou_threshold": threshold, "outlines": "both-clipped"}
    there, back = evaluate_case(case, **chosen), evaluate_case(swapped, **chosen)
    np.testing.assert_array_equal(there.counts.tp, back.counts.tp)
    np.testing.assert_array_equal(there.counts.fp, back.counts.fn)
    np.testing.assert_array_equal(there.counts.fn, back.counts.fp)
    np.testing.assert_array_equal(there.counts.confusion, back.counts.confusion.T)
    np.testing.assert_allclose(there.counts.iou_sum, back.counts.iou_sum, rtol=1e-12)
    np.testing.assert_allclose(
        there.counts.hausdorff_sum_px.sum(), back.counts.hausdorff_sum_px.sum(), rtol=1e-12
    )


@settings(max_examples=examples(70), deadline=None)
@given(
    seed=seeds,
    shape=shapes,
    policy=policies,
    rule=rules,
    threshold=st.sampled_from([0.1, 0.5, 0.8]),
)
def test_every_object_is_accounted_for(
    seed: int, shape: tuple[int, int], policy: str, rule: str, threshold: float
) -> None:
    case = random_pair(np.random.default_rng(seed), shape)
    evaluation = evaluate_case(case, ambiguous=policy, matching=rule, iou_threshold=threshold)
    objects, counts = evaluation.objects, evaluation.counts
    n_reference = len(np.unique(case.reference[case.reference > 0]))
    n_prediction = len(np.unique(case.prediction[case.prediction > 0]))
    by_side = objects.groupby("side").size().to_dict()
    assert by_side.get("reference", 0) == n_reference
    assert by_side.get("prediction", 0) == n_prediction

    unmatched = objects["status"].isin(["FP", "FN"])
    assert ((objects["cause"] != str(Cause.NONE)) == unmatched).all()
    allowed = {
        "reference": {"TP", "FN", "misclassified", "ignored"},
        "prediction": {"TP", "FP", "misclassified", "ignored"},
    }
    for side, statuses in allowed.items():
        assert set(objects.loc[objects["side"] == side, "status"]) <= statuses
    has_partner = objects["partner_id"].notna()
    assert (has_partner == objects["status"].isin(["TP", "misclassified"])).all()

    assert counts.confusion[1:].sum() + counts.ignored_reference == n_reference
    assert counts.confusion[:, 1:].sum() + counts.ignored_prediction == n_prediction
    assert (counts.tp + counts.fn == counts.confusion[1:].sum(axis=1)).all()
    assert (counts.tp + counts.fp == counts.confusion[:, 1:].sum(axis=0)).all()


@settings(max_examples=examples(60), deadline=None)
@given(seed=seeds, shape=shapes)
def test_partners_point_at_each_other(seed: int, shape: tuple[int, int]) -> None:
    case = random_pair(np.random.default_rng(seed), shape)
    for rule in ("strict-iou", "centroid"):
        outcomes = evaluate_case(case, matching=rule, iou_threshold=0.3).outcomes
        rows = np.flatnonzero(outcomes.reference.partner >= 0)
        there = outcomes.reference.partner[rows]
        assert (outcomes.prediction.partner[there] == rows).all()
        assert len(np.unique(there)) == len(there)


@settings(max_examples=examples(40), deadline=None)
@given(seed=seeds)
def test_nothing_is_changed_by_evaluating(seed: int) -> None:
    case = random_pair(np.random.default_rng(seed), (15, 15))
    before = [case.reference.copy(), case.prediction.copy()]
    first, second = (figures(evaluate_case(case)) for _ in range(2))
    assert first == second
    np.testing.assert_array_equal(before[0], case.reference)
    np.testing.assert_array_equal(before[1], case.prediction)


def _both_relabelled(
    rng: np.random.Generator, case: LabelCase, *, ascending: bool
) -> tuple[np.ndarray, np.ndarray, dict[int, str], dict[int, str]]:
    reference, reference_classes = relabelled(
        rng, case.reference, case.reference_classes, ascending=ascending
    )
    prediction, prediction_classes = relabelled(
        rng, case.prediction, case.prediction_classes, ascending=ascending
    )
    return reference, prediction, reference_classes, prediction_classes
