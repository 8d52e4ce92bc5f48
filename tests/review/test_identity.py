import numpy as np
import pytest

from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.review.identity import Fingerprint, Subject, matched, object_key
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.vocabulary import Side
from tests.support.review_cases import CLASSES, subject, subjects_of


def test_fingerprints_are_of_the_whole_object() -> None:
    labels = np.zeros((8, 9), np.int32)
    labels[2:4, 1:6] = 7
    image = LabelImage.from_array(labels, {7: "Epithelial"}, CLASSES)
    void = np.zeros(labels.shape, bool)
    void[:, :3] = True
    found = evaluate(LabelPair(image, LabelImage.empty((8, 9), CLASSES), void))
    (only,) = subjects_of(found, Side.REFERENCE, region="R_1", team="T")
    assert (only.object_id, only.side) == (7, Side.REFERENCE)
    assert only.fingerprint == Fingerprint("Epithelial", 2.5, 3.0, 10)
    assert subjects_of(found, Side.PREDICTION, region="R_1", team="T") == []


@pytest.mark.parametrize("seed", range(6))
def test_matching_many_is_matching_pair_by_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def some(count: int) -> list[Subject]:
        return [
            subject(
                number,
                team=str(rng.choice(["A", "B"])),
                y=float(rng.integers(0, 30)),
                x=float(rng.integers(0, 30)),
                area=int(rng.choice([0, 1, 30, 40, 300])),
            )
            for number in range(count)
        ]

    own, others = some(120), some(150)
    pairs = sorted(
        (likeness, i, j)
        for i, one in enumerate(own)
        for j, other in enumerate(others)
        if one.team == other.team
        and (likeness := one.fingerprint.likeness(other.fingerprint)) is not None
    )
    expected: list[int | None] = [None] * len(own)
    for _, i, j in pairs:
        if expected[i] is None and j not in expected:
            expected[i] = j
    assert 20 < sum(number is not None for number in expected) < len(own)
    assert matched(map(object_key, own), map(object_key, others)) == expected
