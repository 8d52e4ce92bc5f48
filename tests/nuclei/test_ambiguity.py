"""What counts under the four ambiguous policies, against masks of the objects."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from napari_panoptic.nuclei.ambiguity import JudgedSide, judge
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import AmbiguousPolicy, EvaluationSettings
from tests.support.compare import evaluate_case
from tests.support.examples import examples
from tests.support.label_cases import random_pair

Mask = NDArray[np.bool_]


def masks_of(labels: LabelImage) -> list[Mask]:
    return [labels.index == row + 1 for row in range(len(labels))]


def assert_side(found: JudgedSide, whole: list[Mask], counting: list[Mask], void: Mask) -> None:
    assert found.area.tolist() == [int(mask.sum()) for mask in counting]
    assert found.gone.tolist() == [not mask.any() for mask in counting]
    for row, (mask, own) in enumerate(zip(whole, counting, strict=True)):
        seen = own if own.any() else mask
        np.testing.assert_allclose(found.centroid_yx_px[row], np.argwhere(seen).mean(axis=0))
        assert found.ambiguous_share[row] == pytest.approx(void[mask].mean())


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), policy=st.sampled_from(list(AmbiguousPolicy)))
def test_what_counts_is_what_the_policy_leaves_of_the_masks(
    seed: int, policy: AmbiguousPolicy
) -> None:
    evaluation = evaluate_case(random_pair(np.random.default_rng(seed), (15, 15)), distances=False)
    pair = evaluation.pair
    void = np.zeros(pair.reference.shape, bool) if pair.ambiguous is None else pair.ambiguous
    references, predictions = masks_of(pair.reference), masks_of(pair.prediction)
    cuts_reference = policy is AmbiguousPolicy.CLIP
    cuts_prediction = policy in (AmbiguousPolicy.CLIP, AmbiguousPolicy.CLIP_PREDICTIONS)
    left = [mask & ~void if cuts_reference else mask for mask in references]
    right = [mask & ~void if cuts_prediction else mask for mask in predictions]
    judged = judge(evaluation.table, EvaluationSettings(ambiguous=policy))
    assert (judged.cuts_reference, judged.cuts_prediction) == (cuts_reference, cuts_prediction)
    assert_side(judged.reference, references, left, void)
    assert_side(judged.prediction, predictions, right, void)
    ignored = void if policy is AmbiguousPolicy.MAJORITY else np.zeros_like(void)
    expected = {}
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            if (one & other).any():
                shared, union = one & other & ~ignored, (one | other) & ~ignored
                iou = shared.sum() / union.sum() if union.any() else 0.0
                expected[i, j] = (int((one & other).sum()), pytest.approx(iou))
    pairs = zip(judged.pair_reference.tolist(), judged.pair_prediction.tolist(), strict=True)
    values = zip(judged.intersection.tolist(), judged.iou.tolist(), strict=True)
    assert dict(zip(pairs, values, strict=True)) == expected
