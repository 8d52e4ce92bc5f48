"""Groups of failures, against a label image that is really merged and cut."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.explain.failure_groups import (
    FailureGroup,
    GroupKind,
    counts_if_merged,
    failure_groups,
    lost_over,
    pq_if_merged,
    statuses_if_merged,
)
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.nuclei.metrics import Counts, unit_metrics
from napari_panoptic.values.labels import LabelImage, LabelPair
from tests.support.compare import evaluate_case
from tests.support.examples import examples
from tests.support.label_cases import CASES, random_pair

Mask = npt.NDArray[np.bool_]
seeds = st.integers(0, 2**32 - 1)
FAILING = {"split", "merged", "fragment", "merger", "duplicate"}

RULES: list[dict[str, Any]] = [
    {"ambiguous": "clip"},
    {"ambiguous": "clip-predictions", "iou_threshold": 0.7},
    {"ambiguous": "majority"},
    {"ambiguous": "keep"},
    {"ambiguous": "clip", "matching": "centroid"},
    {"ambiguous": "majority", "matching": "centroid"},
    {"ambiguous": "clip", "iou_threshold": 0.2},
    {"ambiguous": "keep", "iou_threshold": 0.2},
]


class Pixels:
    """The objects of an evaluation as masks: the slow and obvious way."""

    def __init__(self, evaluation: Evaluation) -> None:
        pair, policy = evaluation.pair, evaluation.settings.ambiguous
        void = np.zeros(pair.reference.shape, bool) if pair.ambiguous is None else pair.ambiguous
        keep_r = ~void if policy == "clip" else np.ones_like(void)
        keep_p = ~void if policy in ("clip", "clip-predictions") else np.ones_like(void)
        self.whole_r = [pair.reference.index == k + 1 for k in range(len(pair.reference))]
        self.whole_p = [pair.prediction.index == k + 1 for k in range(len(pair.prediction))]
        self.r = [mask & keep_r for mask in self.whole_r]
        self.p = [mask & keep_p for mask in self.whole_p]
        objects = evaluation.objects
        ignored = objects["status"] == "ignored"
        self.ignored_r = ignored[objects["side"] == "reference"].to_numpy()
        self.ignored_p = ignored[objects["side"] == "prediction"].to_numpy()

    def shared(self, r: int, p: int) -> int:
        if self.ignored_r[r] or self.ignored_p[p]:
            return 0
        return int((self.r[r] & self.p[p]).sum())

    def reference_inside(self, r: int, p: int) -> bool:
        return 2 * self.shared(r, p) > int(self.r[r].sum())

    def prediction_inside(self, r: int, p: int) -> bool:
        return 2 * self.shared(r, p) > int(self.p[p].sum())


def expected_members(evaluation: Evaluation) -> set[tuple[frozenset[int], frozenset[int]]]:
    """Grow the components object by object."""
    pixels = Pixels(evaluation)
    sides = (evaluation.outcomes.reference, evaluation.outcomes.prediction)
    nodes = [("r", k) for k in range(len(sides[0]))] + [("p", k) for k in range(len(sides[1]))]
    neighbours: dict[tuple[str, int], set[tuple[str, int]]] = {node: set() for node in nodes}
    for r in range(len(sides[0])):
        for p in range(len(sides[1])):
            inside = pixels.reference_inside(r, p) or pixels.prediction_inside(r, p)
            if inside or sides[0].partner[r] == p:
                neighbours["r", r].add(("p", p))
                neighbours["p", p].add(("r", r))
    objects = evaluation.objects
    causes = dict(zip(nodes, objects["cause"], strict=True))
    found = set()
    seen: set[tuple[str, int]] = set()
    for start in nodes:
        if start in seen:
            continue
        component, waiting = {start}, [start]
        while waiting:
            for node in neighbours[waiting.pop()] - component:
                component.add(node)
                waiting.append(node)
        seen |= component
        if any(causes[node] in FAILING for node in component):
            found.add(
                (
                    frozenset(k for side, k in component if side == "r"),
                    frozenset(k for side, k in component if side == "p"),
                )
            )
    return found


def really_merged(evaluation: Evaluation, groups: list[FailureGroup]) -> Evaluation:
    """Edit the label image as the docstring says, and evaluate it from the start."""
    pixels, pair = Pixels(evaluation), evaluation.pair
    partner = evaluation.outcomes.prediction.partner
    labels = pair.prediction.index.astype(np.int64)
    classes = {k + 1: pair.prediction.class_names_of_objects()[k] for k in range(len(partner))}
    new: dict[int, list[tuple[Mask, int, int]]] = {}  # reference row -> mask, area, prediction
    for group in groups:
        references, predictions = group.reference_rows.tolist(), group.prediction_rows.tolist()
        for p in predictions:
            swallowed = [r for r in references if pixels.reference_inside(r, p)]
            if len(swallowed) >= 2:
                labels[pixels.whole_p[p]] = 0
                for r in swallowed:
                    piece = pixels.whole_p[p] & pixels.whole_r[r]
                    new.setdefault(r, []).append((piece, pixels.shared(r, p), p))
                continue
            home = [r for r in references if pixels.prediction_inside(r, p)] or [int(partner[p])]
            if home[0] >= 0:
                area = int(pixels.p[p].sum())
                new.setdefault(home[0], []).append((pixels.whole_p[p], area, p))
    next_id = len(classes) + 1
    for r in sorted(new):
        parts = new[r]
        if len(parts) == 1 and (parts[0][0] == pixels.whole_p[parts[0][2]]).all():
            uncut = labels[parts[0][0]] != 0
            if uncut.all():
                continue
        votes = [
            sum(area for _, area, p in parts if classes[p + 1] == name) for name in pair.class_names
        ]
        for mask, _, _ in parts:
            labels[mask] = next_id
        classes[next_id] = pair.class_names[int(np.argmax(votes))]
        next_id += 1
    edited = LabelImage.from_array(labels, classes, pair.class_names)
    quick = evaluation.settings.replaced(distances=False)
    changed = LabelPair(pair.reference, edited, pair.ambiguous, pair.mpp)
    return evaluate(changed, quick)


def assert_same_counts(found: Counts, expected: Counts) -> None:
    assert found.class_names == expected.class_names
    np.testing.assert_array_equal(found.confusion, expected.confusion)
    for name in ("tp", "fp", "fn", "present", "hausdorff_pairs"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    np.testing.assert_allclose(found.iou_sum, expected.iou_sum, rtol=1e-12)
    np.testing.assert_allclose(found.matched_iou_sum, expected.matched_iou_sum, rtol=1e-12)
    assert found.ignored_reference == expected.ignored_reference
    assert found.ignored_prediction == expected.ignored_prediction


@pytest.mark.parametrize(
    ("case", "kind", "n_reference", "n_prediction"),
    [
        ("split-in-two", GroupKind.SPLIT, 1, 2),
        ("split-in-three", GroupKind.SPLIT, 1, 3),
        ("fragment", GroupKind.SPLIT, 1, 3),
        ("merged-two", GroupKind.MERGER, 2, 1),
        ("duplicate", GroupKind.DUPLICATE, 1, 2),
    ],
)
def test_named_failures_are_one_group_and_perfect_when_undone(
    case: str, kind: GroupKind, n_reference: int, n_prediction: int
) -> None:
    evaluation = evaluate_case(CASES[case])
    (group,) = failure_groups(evaluation)
    assert group.kind is kind
    assert (len(group.reference_rows), len(group.prediction_rows)) == (n_reference, n_prediction)
    assert pq_if_merged(evaluation, group).pq > evaluation.metrics.pq
    if case != "fragment":
        assert pq_if_merged(evaluation, group).pq == 1.0
        assert group.pq_lost == 1.0 - evaluation.metrics.pq


@pytest.mark.parametrize(
    "case", ["perfect", "empty-both", "missed", "spurious", "displaced", "too-small", "too-large"]
)
def test_other_failures_are_no_group(case: str) -> None:
    assert failure_groups(evaluate_case(CASES[case])) == ()


def test_shares_and_box_of_a_split() -> None:
    # An object of 6 x 9 px and three predictions of 6 x 3 px.
    (group,) = failure_groups(evaluate_case(CASES["split-in-three"]))
    assert group.intersection_px.tolist() == [18, 18, 18]
    np.testing.assert_allclose(group.share_of_reference, 1 / 3)
    np.testing.assert_allclose(group.share_of_prediction, 1.0)
    assert group.bbox == (5, 3, 11, 12)


def test_the_metrics_that_need_outlines_are_undefined() -> None:
    evaluation = evaluate_case(CASES["duplicate"])
    (group,) = failure_groups(evaluation)
    assert not math.isnan(evaluation.metrics.mean_hausdorff_px)
    assert math.isnan(pq_if_merged(evaluation, group).mean_hausdorff_px)


def test_the_majority_of_the_area_names_the_merged_object() -> None:
    reference, prediction = np.zeros((2, 6, 12), np.int32)
    reference[1:5, 1:11] = 1
    prediction[1:5, 1:5], prediction[1:5, 5:8], prediction[1:5, 8:11] = 1, 2, 3
    names = ("A", "B")
    pair = LabelPair(
        LabelImage.from_array(reference, {1: "B"}, names),
        LabelImage.from_array(prediction, {1: "A", 2: "B", 3: "B"}, names),
    )
    evaluation = evaluate(pair)
    (group,) = failure_groups(evaluation)
    after = counts_if_merged(evaluation, [group])
    assert after.tp.tolist() == [0, 1]
    assert after.present.tolist() == [0, 1]


@settings(max_examples=examples(60), deadline=None)
@given(seed=seeds)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(map(str, rule.values())))
def test_groups_and_their_losses_equal_those_of_edited_images(
    rule: dict[str, Any], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    kind = "edited" if rng.random() < 0.7 else None  # full of splits and mergers
    evaluation = evaluate_case(random_pair(rng, (26, 26), prediction_kind=kind), **rule)
    groups = failure_groups(evaluation)
    members = {
        (frozenset(g.reference_rows.tolist()), frozenset(g.prediction_rows.tolist()))
        for g in groups
    }
    assert members == expected_members(evaluation)
    assert [g.pq_lost for g in groups] == sorted((g.pq_lost for g in groups), reverse=True)
    for group in groups:
        merged = really_merged(evaluation, [group])
        assert_same_counts(counts_if_merged(evaluation, [group]), merged.counts)
        statuses = merged.outcomes.reference.status[group.reference_rows]
        np.testing.assert_array_equal(statuses_if_merged(evaluation, group), statuses)
        lost = unit_metrics(merged.counts).pq - evaluation.metrics.pq
        assert math.isclose(group.pq_lost, lost, abs_tol=1e-12)
    everything = counts_if_merged(evaluation, groups)
    assert_same_counts(everything, really_merged(evaluation, list(groups)).counts)


@settings(max_examples=examples(40), deadline=None)
@given(seed=seeds)
def test_shares_are_those_of_the_pixels(seed: int) -> None:
    evaluation = evaluate_case(random_pair(np.random.default_rng(seed), (20, 20)))
    pixels = Pixels(evaluation)
    for group in failure_groups(evaluation):
        expected = [
            (r, p, pixels.shared(r, p))
            for r in group.reference_rows.tolist()
            for p in group.prediction_rows.tolist()
            if pixels.shared(r, p)
        ]
        rows = (group.pair_reference, group.pair_prediction, group.intersection_px)
        assert list(zip(*(values.tolist() for values in rows), strict=True)) == expected
        for k, (r, p, shared) in enumerate(expected):
            assert group.share_of_reference[k] == shared / pixels.r[r].sum()
            assert group.share_of_prediction[k] == shared / pixels.p[p].sum()
        masks = [pixels.whole_r[r] for r in group.reference_rows]
        masks += [pixels.whole_p[p] for p in group.prediction_rows]
        yx = np.argwhere(np.any(masks, axis=0))
        assert group.bbox == (*yx.min(axis=0), *(yx.max(axis=0) + 1))


def test_losses_over_a_cohort_are_those_of_the_summed_counts() -> None:
    names = ("split-in-two", "merged-two", "duplicate", "perfect", "missed")
    evaluations = [evaluate_case(CASES[name]) for name in names]
    losses = {loss.kind: loss for loss in lost_over(iter(evaluations))}
    assert {kind: loss.groups for kind, loss in losses.items()} == {
        GroupKind.SPLIT: 1,
        GroupKind.MERGER: 1,
        GroupKind.DUPLICATE: 1,
        GroupKind.MIXED: 0,
        None: 3,
    }
    # Epithelial: three TPs, one of them (duplicate) with an IoU of 36 / 48; four FPs
    # (2 split, 1 merged, 1 duplicate) and four FNs (1 split, 2 merged, 1 missed).
    before = (0.75 + 2) / (3 + 4 / 2 + 4 / 2)
    # The split undone: TP 1 more, FP 2 and FN 1 fewer. Lymphocyte stays at a PQ of 1.
    split = (0.75 + 3) / (4 + 2 / 2 + 3 / 2)
    everything = (3 + 1 + 2) / (6 + 0 / 2 + 1 / 2)
    assert math.isclose(losses[GroupKind.SPLIT].pq_lost, (split - before) / 2)
    assert math.isclose(losses[None].pq_lost, (everything - before) / 2)
    assert losses[GroupKind.MIXED].pq_lost == 0.0
    assert losses[None].before.hausdorff_pairs.sum() > 0
    assert losses[None].after.hausdorff_pairs.sum() == 0


def test_nothing_is_lost_over_no_regions() -> None:
    assert lost_over([]) == ()
