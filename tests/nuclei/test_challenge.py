"""The challenge's scoring against a plain re-telling of it with loops over objects."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic.nuclei.challenge import (
    challenge_counts,
    evaluate_challenge,
    team_score,
    uncounted,
)
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import Correction, EvaluationSettings

CLASSES = ("E", "L", "N")
SETTINGS = EvaluationSettings(distances=False)
EVERY_CHOICE = [
    frozenset(c for bit, c in enumerate(Correction) if choice >> bit & 1) for choice in range(8)
]
Masks = dict[str, np.ndarray]


def random_masks(rng: np.random.Generator, shape: tuple[int, int], *, restart: bool) -> Masks:
    """One n-ary mask per class; the masks of different classes overlap."""
    masks, next_id = {}, 1
    for name in CLASSES:
        if rng.random() < 0.3:
            continue
        mask = np.zeros(shape, np.int32)
        next_id = 1 if restart else next_id
        for _ in range(int(rng.integers(0, 5))):
            y, x = rng.integers(0, shape[0] - 4), rng.integers(0, shape[1] - 4)
            mask[y : y + rng.integers(2, 6), x : x + rng.integers(2, 6)] = next_id
            next_id += 1
        masks[name] = mask
    return masks


def plain_class(reference: np.ndarray, prediction: np.ndarray, void: np.ndarray) -> dict:
    """Score one class with loops over objects."""
    cut_reference, cut_prediction = np.where(void, 0, reference), np.where(void, 0, prediction)
    reference_ids = set(np.unique(cut_reference).tolist()) - {0}
    prediction_ids = set(np.unique(cut_prediction).tolist()) - {0}
    matched_reference, matched_prediction, iou_sum = set(), set(), 0.0
    for r in reference_ids:
        for p in prediction_ids:
            shared = np.sum((cut_reference == r) & (cut_prediction == p))
            union = np.sum((cut_reference == r) | (cut_prediction == p))
            if 2 * shared > union:
                matched_reference.add(r)
                matched_prediction.add(p)
                iou_sum += shared / union
    return {
        "tp": len(matched_reference),
        "fn": len(reference_ids - matched_reference),
        "iou_sum": iou_sum,
        "fp_as_run": len(prediction_ids - matched_reference),
        "fp": len(prediction_ids - matched_prediction),
        "in_reference": bool(reference.any()),
        "in_prediction": bool(prediction.any()),
    }


def plain_unit(regions: list[dict[str, dict]], corrections: frozenset[Correction]) -> float | None:
    values = []
    for name in CLASSES:
        counted = [
            region[name]
            for region in regions
            if region[name]["in_reference"]
            or (Correction.ABSENT_CLASS_FP in corrections and region[name]["in_prediction"])
        ]
        if not counted:
            continue
        fp_name = "fp" if Correction.MATCHING in corrections else "fp_as_run"
        weight = sum(c["tp"] + c[fp_name] / 2 + c["fn"] / 2 for c in counted)
        values.append(sum(c["iou_sum"] for c in counted) / weight if weight else 0.0)
    return sum(values) / len(values) if values else None


@pytest.mark.parametrize("seed", range(60))
def test_scores_and_corrections(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (14, 18)
    regions, plain = [], []
    for number in range(4):
        void = np.zeros(shape, bool)
        if rng.random() < 0.6:
            void[rng.integers(0, 8) :, : rng.integers(1, 15)] = True
        reference = random_masks(rng, shape, restart=False)
        prediction = random_masks(rng, shape, restart=True)
        pair = LabelPair(
            LabelImage.from_class_masks(reference, CLASSES, shape),
            LabelImage.from_class_masks(prediction, CLASSES, shape),
            void,
        )
        patient = "ab"[number // 2]
        regions.append((patient, evaluate_challenge(pair, SETTINGS)))
        nothing = np.zeros(shape, np.int32)
        plain.append(
            (
                patient,
                {
                    name: plain_class(
                        reference.get(name, nothing), prediction.get(name, nothing), void
                    )
                    for name in CLASSES
                },
            )
        )

    for (_, evaluation), (_, expected) in zip(regions, plain, strict=True):
        for name, score in evaluation.scores.items():
            assert {key: getattr(score, key) for key in expected[name]} == pytest.approx(
                expected[name]
            )
            assert score.fp_as_run == score.fp + len(score.only_as_run) - len(score.only_corrected)

    for corrections in EVERY_CHOICE:
        if Correction.PER_PATIENT in corrections:
            units = [[r for p, r in plain if p == patient] for patient in "ab"]
        else:
            units = [[r] for _, r in plain]
        values = [v for v in (plain_unit(unit, corrections) for unit in units) if v is not None]
        counts = [(p, challenge_counts(e.scores, corrections)) for p, e in regions]
        score = team_score(counts, corrections)
        if values:
            assert score == pytest.approx(sum(values) / len(values), rel=1e-12)
        else:
            assert np.isnan(score)

    absent = [c["fp"] for _, r in plain for c in r.values() if not c["in_reference"] and c["fp"]]
    assert uncounted(e.scores for _, e in regions) == (sum(absent), len(absent))


def test_label_alignment_changes_the_score_as_in_the_published_table() -> None:
    """Table 1 of Foucart et al. (2021): the same objects, numbered differently."""
    shape = (10, 60)
    reference, prediction = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for number in range(5):
        reference[2:8, 10 * number : 10 * number + 8] = 48 + number
        prediction[2:8, 10 * number : 10 * number + (8 if number < 4 else 2)] = 1 + number

    def fp_as_run(first: int) -> int:
        moved = np.where(prediction > 0, prediction - 1 + first, 0).astype(np.int32)
        pair = LabelPair(
            LabelImage.from_class_masks({"E": reference}, CLASSES, shape),
            LabelImage.from_class_masks({"E": moved}, CLASSES, shape),
        )
        score = evaluate_challenge(pair, SETTINGS).scores["E"]
        assert (score.tp, score.fp, score.fn) == (4, 1, 1)
        return score.fp_as_run

    assert [fp_as_run(first) for first in (1, 44, 45, 46, 48, 49)] == [5, 4, 3, 2, 1, 2]
