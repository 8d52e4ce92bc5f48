"""The oracle itself, on cases small enough to be worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.label_cases import (
    CASES,
    CLASS_NAMES,
    INTEGER_DTYPES,
    KINDS,
    LabelCase,
    random_pair,
)
from tests.support.oracle import CAUSES, OracleResult, aggregate, evaluate

EPITHELIAL, LYMPHOCYTE, NEUTROPHIL, MACROPHAGE = CLASS_NAMES
POLICIES = ("clip", "clip-predictions", "majority", "keep")


def run(case: LabelCase, **settings: object) -> OracleResult:
    return evaluate(
        case.reference,
        case.prediction,
        case.reference_classes,
        case.prediction_classes,
        CLASS_NAMES,
        case.ambiguous,
        **settings,  # type: ignore[arg-type]
    )


def fates(result: OracleResult) -> dict[str, str]:
    """Map objects, as R1 or P2, to their status and cause."""
    return {
        f"{row['side'][0].upper()}{row['id']}": f"{row['status']} {row['cause']}".strip()
        for row in result.objects
    }


def test_strip_of_pixels() -> None:
    # columns      0  1  2  3  4  5  6  7  8  9
    reference = [[1, 1, 1, 1, 0, 0, 2, 2, 2, 0]]
    prediction = [[0, 5, 5, 5, 5, 0, 0, 0, 0, 7]]
    result = evaluate(
        np.array(reference),
        np.array(prediction),
        {1: EPITHELIAL, 2: LYMPHOCYTE},
        {5: EPITHELIAL, 7: EPITHELIAL},
        CLASS_NAMES,
        mpp=0.25,
    )
    # 1 and 5 share columns 1-3 of the five they cover together: IoU 3/5. 2 and 7 share nothing.
    assert fates(result) == {"R1": "TP", "R2": "FN missed", "P5": "TP", "P7": "FP spurious"}
    first, second = result.objects[:2]
    assert (first["iou"], first["partner_id"], first["partner_class"]) == (0.6, 5, EPITHELIAL)
    # Rows above and below are beyond the edge, so only ends are contour: column 3 of 1 (column 0
    # is at the edge), columns 1 and 4 of 5. From 3 to the nearest: 1. From 1: 2; from 4: 1.
    assert first["hausdorff_px"] == 2.0
    assert first["hausdorff_um"] == 0.5
    # 95th percentile of {1}: 1; of {1, 2}: 1 + 0.95.
    assert first["hausdorff95_px"] == pytest.approx(1.95)
    assert (first["area_px"], first["centroid_y_px"], first["centroid_x_px"]) == (4, 0.0, 1.5)
    assert (second["iou"], second["partner_id"], second["hausdorff_px"]) == (0.0, None, None)

    # Epithelial: TP 1, FP 1 (object 7), FN 0. PQ = 0.6 / 1.5, DQ = 1 / 1.5.
    epithelial = result.by_class[EPITHELIAL]
    assert [epithelial[k] for k in ("tp", "fp", "fn")] == [1, 1, 0]
    assert [epithelial[k] for k in ("pq", "sq", "dq")] == pytest.approx([0.4, 0.6, 2 / 3])
    # Lymphocyte: FN 1 only, so PQ and DQ are 0 and SQ is undefined.
    lymphocyte = result.by_class[LYMPHOCYTE]
    assert [lymphocyte[k] for k in ("pq", "sq", "dq")] == [0.0, None, 0.0]
    assert [result.by_class[NEUTROPHIL][k] for k in ("pq", "sq", "dq")] == [None, None, None]
    # The unit: mean over the two classes present; SQ over the one that has a TP.
    assert result.unit["pq"] == pytest.approx(0.2)
    assert result.unit["sq"] == pytest.approx(0.6)
    assert result.unit["dq"] == pytest.approx(1 / 3)
    # Detection: one pair, one prediction too many, one reference object missed.
    assert result.unit["detection_precision"] == 0.5
    assert result.unit["detection_recall"] == 0.5
    assert result.unit["detection_f1"] == 0.5
    assert result.unit["detection_accuracy"] == pytest.approx(1 / 3)
    assert result.confusion[0] == [0, 1, 0, 0, 0]
    assert result.confusion[1] == [0, 1, 0, 0, 0]
    assert result.confusion[2] == [1, 0, 0, 0, 0]


def test_misclassified_pair_counts_for_two_classes_but_is_detected() -> None:
    result = run(CASES["misclassified"])
    assert fates(result) == {"R1": "TP", "R2": "misclassified", "P1": "TP", "P2": "misclassified"}
    assert [result.by_class[LYMPHOCYTE][k] for k in ("tp", "fp", "fn")] == [0, 0, 1]
    assert [result.by_class[MACROPHAGE][k] for k in ("tp", "fp", "fn")] == [0, 1, 0]
    # Classes present: Epithelial 1, Lymphocyte 0, Macrophage 0.
    assert result.unit["pq"] == pytest.approx(1 / 3)
    assert result.unit["detection_f1"] == 1.0
    # NCM: Epithelial -> Epithelial 1, Lymphocyte -> Macrophage 1.
    figures = [
        [result.by_class[name][k] for k in ("recall", "precision", "f1")] for name in CLASS_NAMES
    ]
    assert figures == [[1, 1, 1], [0, None, 0], [None, None, None], [None, 0, 0]]
    assert result.unit["balanced_accuracy"] == 0.5
    # The pair is a pair for the segmentation, under the reference class.
    assert result.by_class[LYMPHOCYTE]["mean_iou"] == 1.0
    assert result.by_class[MACROPHAGE]["mean_iou"] is None


def test_classification_is_on_the_row_normalised_matrix() -> None:
    # Four single pixels: three epithelial, of which one is called lymphocyte; one lymphocyte.
    labels = np.array([[1, 2, 3, 4]])
    result = evaluate(
        labels,
        labels,
        {1: EPITHELIAL, 2: EPITHELIAL, 3: EPITHELIAL, 4: LYMPHOCYTE},
        {1: EPITHELIAL, 2: EPITHELIAL, 3: LYMPHOCYTE, 4: LYMPHOCYTE},
        CLASS_NAMES,
    )
    # NCM rows: [2/3, 1/3], [0, 1]. Columns sum to 2/3 and 4/3.
    epithelial, lymphocyte = result.by_class[EPITHELIAL], result.by_class[LYMPHOCYTE]
    assert [epithelial[k] for k in ("recall", "precision")] == pytest.approx([2 / 3, 1.0])
    assert [lymphocyte[k] for k in ("recall", "precision")] == pytest.approx([1.0, 3 / 4])
    assert epithelial["f1"] == pytest.approx(2 * (2 / 3) / (1 + 2 / 3))
    assert lymphocyte["f1"] == pytest.approx(2 / (1 + 4 / 3))
    assert result.unit["balanced_accuracy"] == pytest.approx(5 / 6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("split-in-two", {"R1": "FN split", "P1": "FP fragment", "P2": "FP fragment"}),
        # 30 of 60 pixels, 20 of 60, and 8 of the 12 of the piece that sticks out.
        (
            "fragment",
            {"R1": "FN split", "P1": "FP fragment", "P2": "FP fragment", "P3": "FP fragment"},
        ),
        ("merged-two", {"R1": "FN merged", "R2": "FN merged", "P1": "FP merger"}),
        ("duplicate", {"R1": "TP", "P1": "TP", "P2": "FP duplicate"}),
        # 18 of 36 pixels shared: exactly half, hence neither lies in the other.
        ("displaced", {"R1": "FN displaced", "P1": "FP displaced"}),
        # 12 pixels inside 36.
        ("too-small", {"R1": "FN too-small", "P1": "FP too-small"}),
        ("too-large", {"R1": "FN too-large", "P1": "FP too-large"}),
        ("spurious", {"R1": "TP", "P1": "TP", "P2": "FP spurious"}),
        ("missed", {"R1": "TP", "R2": "FN missed", "P1": "TP"}),
        # 16 of 32 pixels: 0.5 is not above 0.5.
        ("exactly-half-iou", {"R1": "FN too-large", "P1": "FP too-large"}),
        # Ring of 144 - 16 pixels, all in the prediction of 144: IoU 128/144. The core is swallowed.
        ("nested-ring", {"R1": "TP", "R2": "FN merged", "P1": "TP"}),
        ("empty-both", {}),
        ("empty-prediction", {"R1": "FN missed"}),
        ("empty-reference", {"P1": "FP spurious"}),
        ("uint8-wrap", {"R56": "TP", "R200": "TP", "P56": "TP", "P200": "TP"}),
    ],
)
def test_status_and_cause(name: str, expected: dict[str, str]) -> None:
    assert fates(run(CASES[name])) == expected


def test_ids_are_not_compared_between_the_sides() -> None:
    partners = {row["id"]: row["partner_id"] for row in run(CASES["uint8-wrap"]).objects[:2]}
    assert partners == {56: 200, 200: 56}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # Without the 8 left columns both have columns 8-12 of 6 rows: 30 of 30 pixels.
        ("clip", ("TP", 1.0, 30)),
        # The prediction keeps 30 of the 60 pixels of the reference object: exactly half.
        ("clip-predictions", ("FN", 0.5, 60)),
        # Void pixels leave the union: 30 of 30 again, but the object keeps its area.
        ("majority", ("TP", 1.0, 60)),
        # 60 of the 66 pixels of the prediction.
        ("keep", ("TP", 60 / 66, 60)),
    ],
)
def test_policies_on_an_object_that_straddles(
    policy: str, expected: tuple[str, float, int]
) -> None:
    reference = run(CASES["straddles-ambiguous"], policy=policy).objects[0]
    assert (reference["status"], reference["iou"], reference["area_px"]) == expected


@pytest.mark.parametrize(
    ("policy", "reference", "prediction"),
    [
        ("clip", "ignored", "ignored"),
        ("clip-predictions", "FN ambiguous-spill", "ignored"),
        ("majority", "ignored", "ignored"),
        # 9 of 23 pixels shared.
        ("keep", "FN ambiguous-spill", "FP ambiguous-spill"),
    ],
)
def test_policies_on_objects_inside(policy: str, reference: str, prediction: str) -> None:
    result = run(CASES["inside-ambiguous"], policy=policy)
    assert (fates(result)["R1"], fates(result)["P1"]) == (reference, prediction)
    # With nothing left, place and area are those of the whole object: rows and columns 2-5.
    row = result.objects[0]
    assert (row["area_px"], row["centroid_y_px"], row["centroid_x_px"]) == (16, 3.5, 3.5)
    # The ignored ones are in no count.
    counted = sum(map(sum, result.confusion))
    assert counted == 1 + (reference != "ignored") + (prediction != "ignored")


def test_spill_shows_the_rim_alone() -> None:
    row = run(CASES["spill-rim"]).objects[-1]
    # Rows and columns 3-8, of which 3-7 are cut: 36 - 25 pixels stay.
    assert (row["status"], row["cause"], row["area_px"]) == ("FP", "ambiguous-spill", 11)


@pytest.mark.parametrize(
    ("outlines", "expected"),
    [
        # Reference cut to columns 8-12, prediction whole from column 2: 6 columns apart.
        ("as-published", 6.0),
        # Both are columns 8-12.
        ("both-clipped", 0.0),
        # Columns 3-12 and 2-12.
        ("both-whole", 1.0),
    ],
)
def test_outlines(outlines: str, expected: float) -> None:
    result = run(CASES["straddles-ambiguous"], outlines=outlines)
    assert result.unit["mean_hausdorff_px"] == expected


def test_outline_without_contour_has_no_distance() -> None:
    result = run(CASES["whole-image"], mpp=0.25)
    assert result.objects[0]["status"] == "TP"
    assert result.objects[0]["hausdorff_px"] is None
    assert result.objects[0]["hausdorff_um"] is None
    assert result.unit["mean_hausdorff_px"] is None


def test_hausdorff_is_diagonal_between_corners() -> None:
    # Rows 8-13, columns 1-5 against the same without the first row and column: from corner
    # (8, 1) to corner (9, 2).
    rows = run(CASES["sparse-ids-up-to-2^31"]).objects
    assert rows[2]["id"] == 2**31
    assert rows[2]["hausdorff_px"] == math.sqrt(2)


def test_centroid_needs_no_overlap_threshold() -> None:
    # A prediction of 9 pixels in an object of 49; its centroid (3, 3) lies inside.
    reference, prediction = np.zeros((7, 7), int), np.zeros((7, 7), int)
    reference[:, :] = 1
    prediction[2:5, 2:5] = 1
    classes = {1: EPITHELIAL}
    settings = (reference, prediction, classes, classes, CLASS_NAMES)
    assert fates(evaluate(*settings)) == {"R1": "FN too-small", "P1": "FP too-small"}
    result = evaluate(*settings, matching="centroid")
    assert fates(result) == {"R1": "TP", "P1": "TP"}
    assert result.objects[0]["iou"] == pytest.approx(9 / 49)


def test_centroid_is_rounded_half_to_even() -> None:
    # Centroid 0.5 goes to column 0, outside of object 1; 2.5 would go to 2, 3.5 to 4.
    reference = np.array([[0, 1, 0, 0, 2, 0]])
    prediction = np.array([[1, 1, 0, 2, 2, 0]])
    classes = {1: EPITHELIAL, 2: EPITHELIAL}
    result = evaluate(
        reference, prediction, classes, classes, CLASS_NAMES, matching="centroid", near_iou=0.6
    )
    assert fates(result) == {"R1": "FN missed", "R2": "TP", "P1": "FP spurious", "P2": "TP"}


def test_centroid_tie_goes_to_the_lowest_label() -> None:
    # Two halves of an object, IoU 1/2 each, both with their centroid inside.
    reference = np.array([[1, 1, 1, 1, 1, 1]])
    prediction = np.array([[8, 8, 8, 3, 3, 3]])
    result = evaluate(
        reference,
        prediction,
        {1: EPITHELIAL},
        {3: EPITHELIAL, 8: EPITHELIAL},
        CLASS_NAMES,
        matching="centroid",
    )
    assert fates(result) == {"R1": "TP", "P3": "TP", "P8": "FP duplicate"}


def test_assignment_below_half_gains_the_greatest_sum() -> None:
    # 1 is columns 0-3, 2 is 4-9; 5 is columns 2-6, 6 is 7-9.
    reference = np.array([[1, 1, 1, 1, 2, 2, 2, 2, 2, 2]])
    prediction = np.array([[0, 0, 5, 5, 5, 5, 5, 6, 6, 6]])
    reference_classes = {1: EPITHELIAL, 2: EPITHELIAL}
    prediction_classes = {5: EPITHELIAL, 6: EPITHELIAL}
    # IoU: 1-5 2/7, 2-5 3/8, 2-6 3/6. Best one-to-one: 1-5 and 2-6, 2/7 + 1/2.
    result = evaluate(
        reference, prediction, reference_classes, prediction_classes, CLASS_NAMES, iou_threshold=0.2
    )
    assert [row["partner_id"] for row in result.objects] == [5, 6, 1, 2]
    assert result.by_class[EPITHELIAL]["iou_sum"] == pytest.approx(2 / 7 + 1 / 2)
    assert result.unique_matching


def test_assignment_reports_a_tie() -> None:
    result = run(CASES["split-in-two"], iou_threshold=0.4)
    assert result.unit["sq"] == 0.5
    assert not result.unique_matching


def test_unit_sums_its_regions_first() -> None:
    # Regions: one exact TP; then one FN. PQ of the unit is 1 / 1.5, not the mean of 1 and 0.
    unit = aggregate([run(CASES["whole-image"]), run(CASES["empty-prediction"])])
    assert unit.unit["pq"] == pytest.approx(2 / 3)
    assert unit.unit["detection_recall"] == 0.5
    assert unit.confusion[1] == [1, 1, 0, 0, 0]
    # A pair without a contour gives no distance to the mean; the other three give 0, 0 and 6.
    cases = ["whole-image", "one-pixel", "straddles-ambiguous"]
    distances = aggregate([run(CASES[name]) for name in cases]).unit["mean_hausdorff_px"]
    assert distances == pytest.approx((0 + 0 + 6) / 3)


def test_nothing_is_undefined() -> None:
    result = run(CASES["empty-both"])
    assert set(result.unit.values()) == {None}
    assert sum(map(sum, result.confusion)) == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("matching", ["strict-iou", "centroid"])
def test_rows_of_random_pairs_are_consistent(policy: str, matching: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(15):
        case = random_pair(rng, (20, 17))
        result = run(case, policy=policy, matching=matching)
        references = [row for row in result.objects if row["side"] == "reference"]
        assert [row["id"] for row in references] == sorted(case.reference_classes)
        for row in result.objects:
            assert (row["cause"] != "") == (row["status"] in ("FP", "FN"))
            assert (row["partner_id"] is None) == (row["status"] in ("FP", "FN", "ignored"))
            assert (row["iou"] is None) == (row["status"] == "ignored")


@pytest.mark.parametrize("dtype", INTEGER_DTYPES)
def test_random_pairs_fit_their_type(dtype: str) -> None:
    rng = np.random.default_rng(11)
    highest = 0
    for kind in KINDS:
        case = random_pair(rng, (24, 24), dtype=dtype, reference_kind=kind)
        assert case.reference.dtype == case.prediction.dtype == dtype
        assert case.reference.min() >= 0
        assert set(np.unique(case.reference[case.reference > 0])) == set(case.reference_classes)
        assert set(np.unique(case.prediction[case.prediction > 0])) == set(case.prediction_classes)
        highest = max(highest, *case.reference_classes, *case.prediction_classes, 0)
    assert highest <= min(np.iinfo(dtype).max, 2**31)


def test_random_pairs_reach_every_status_and_cause() -> None:
    rng = np.random.default_rng(3)
    met = {
        (row["status"], row["cause"])
        for number in range(120)
        for row in run(random_pair(rng), policy=POLICIES[number % 4]).objects
    }
    expected = {(status, cause) for status, causes in CAUSES.items() for cause in causes}
    assert met == expected | {("TP", ""), ("misclassified", ""), ("ignored", "")}


def test_cases_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        CASES["perfect"].reference[0, 0] = 1
