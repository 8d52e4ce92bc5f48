"""The challenge's scoring against a plain re-telling of it with loops over objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.nuclei.class_masks import (
    BY_ID,
    BY_PAIR,
    ClassEvaluations,
    counted_by_id,
    evaluate_classes,
)
from napari_panoptic.nuclei.conventions import RegionPlace, RegionSums, Sum, TeamSums
from napari_panoptic.nuclei.metrics import Counts, unit_metrics
from napari_panoptic.nuclei.regions.cohort_evaluation import CohortEvaluation
from napari_panoptic.nuclei.regions.results import RegionResult, with_figures
from napari_panoptic.report.nuclei.tables import record_of
from napari_panoptic.statistics.means import spread
from napari_panoptic.values.cohort import ClassScheme, Cohort, Region
from napari_panoptic.values.conventions import Mistake, score_of, with_corrections
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings, protocol
from napari_panoptic.values.vocabulary import STATUS_CODE, Status
from tests.support.examples import seeds

CLASSES = ("E", "L", "N")
SETTINGS = EvaluationSettings(distances=False)
EVERY_CHOICE = [
    frozenset(c for bit, c in enumerate(Mistake) if choice >> bit & 1) for choice in range(8)
]
SUMS = {
    "in_reference": Sum.HAD_REFERENCE,
    "in_prediction": Sum.HAD_PREDICTION,
    "tp": Sum.TP,
    "fp": Sum.FP,
    "fn": Sum.FN,
    "iou_sum": Sum.IOU,
}
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


def plain_unit(regions: list[dict[str, dict]], corrections: frozenset[Mistake]) -> float | None:
    values = []
    for name in CLASSES:
        counted = [
            region[name]
            for region in regions
            if region[name]["in_reference"]
            or (Mistake.ABSENT_CLASS_FP in corrections and region[name]["in_prediction"])
        ]
        if not counted:
            continue
        fp_name = "fp" if Mistake.MATCHING in corrections else "fp_as_run"
        weight = sum(c["tp"] + c[fp_name] / 2 + c["fn"] / 2 for c in counted)
        values.append(sum(c["iou_sum"] for c in counted) / weight if weight else 0.0)
    return sum(values) / len(values) if values else None


def counted_score(
    regions: list[tuple[str, ClassEvaluations]], corrections: frozenset[Mistake]
) -> float:
    """Average the PQ of the counts of regions or patients."""
    convention = score_of(with_corrections(corrections)).convention
    units: dict[str, Counts] = {}
    for number, (patient, evaluation) in enumerate(regions):
        unit = patient if Mistake.PER_PATIENT in corrections else str(number)
        counts = evaluation.counts(convention)
        units[unit] = units[unit] + counts if unit in units else counts
    return spread([unit_metrics(counts).pq for counts in units.values()]).mean


def cohort_evaluation(
    regions: list[tuple[str, ClassEvaluations]], corrections: frozenset[Mistake]
) -> CohortEvaluation:
    """Evaluate a cohort without files, of which a team has these regions."""
    name = with_corrections(corrections)
    results = [
        with_figures(
            RegionResult("t", patient, f"r{number}", None, None),
            evaluation,
            protocol(name),
            with_objects=False,
        )
        for number, (patient, evaluation) in enumerate(regions)
    ]
    colours = tuple((n, n, n) for n in range(1, len(CLASSES) + 1))
    places = tuple(Region(one.region, one.patient, None, None) for one in results)
    cohort = Cohort("", Path(), ClassScheme(CLASSES, colours), places, (), {})
    return CohortEvaluation(cohort, protocol(name), name, results)


@pytest.mark.parametrize("seed", seeds(60))
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
        regions.append((patient, evaluate_classes(pair, SETTINGS)))
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
        assert list(evaluation.evaluations) == list(CLASSES)
        for number, (name, own) in enumerate(evaluation.evaluations.items()):
            as_run = expected[name] | {"fp": expected[name]["fp_as_run"]}
            for key, wanted in ((BY_PAIR, expected[name]), (BY_ID, as_run)):
                found = evaluation.sums[key][number]
                assert {word: found[column] for word, column in SUMS.items()} == pytest.approx(
                    {word: float(wanted[word]) for word in SUMS}
                )
            unlike = counted_by_id(own)
            unmatched = own.outcomes.prediction.status == STATUS_CODE[Status.FP]
            assert unlike.sum() == expected[name]["fp_as_run"]
            assert unmatched.sum() == expected[name]["fp"]

    sums = TeamSums(
        [RegionPlace(p) for p, _ in regions], [RegionSums(e.sums, None) for _, e in regions]
    )
    for corrections in EVERY_CHOICE:
        if Mistake.PER_PATIENT in corrections:
            units = [[r for p, r in plain if p == patient] for patient in "ab"]
        else:
            units = [[r] for _, r in plain]
        values = [v for v in (plain_unit(unit, corrections) for unit in units) if v is not None]
        _, formula, convention, *_ = score_of(with_corrections(corrections))
        found = sums.figure(formula, convention)
        # The same by way of the counts, which the tables of regions and patients show.
        from_counts = counted_score(regions, corrections)
        assert found.units == len(values)
        if values:
            assert found.value == pytest.approx(sum(values) / len(values), rel=1e-12)
            assert from_counts == pytest.approx(sum(values) / len(values), rel=1e-12)
        else:
            assert np.isnan([found.value, from_counts]).all()
        assert cohort_evaluation(regions, corrections).score("t") == pytest.approx(
            found.value, rel=1e-12, nan_ok=True
        )

    absent = [c["fp"] for _, r in plain for c in r.values() if not c["in_reference"] and c["fp"]]
    record = record_of(cohort_evaluation(regions, frozenset()))
    assert record["absent_classes"]["t"] == {"false_positives": sum(absent), "masks": len(absent)}


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
        sums = evaluate_classes(pair, SETTINGS).sums
        for key in (BY_PAIR, BY_ID):
            assert sums[key][0, [Sum.TP, Sum.FN]].tolist() == [4, 1]
        assert sums[BY_PAIR][0, Sum.FP] == 1
        return int(sums[BY_ID][0, Sum.FP])

    assert [fp_as_run(first) for first in (1, 44, 45, 46, 48, 49)] == [5, 4, 3, 2, 1, 2]
