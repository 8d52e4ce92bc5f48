"""Two policies side by side, against figures summed object by object."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.explain.policy_audit import (
    AUDIT,
    SPILLS,
    PolicyAudit,
    audit_policies,
    reasons,
    spill_table,
)
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import Side
from tests.support.compare import assert_close, evaluate_case
from tests.support.examples import examples
from tests.support.label_cases import CASES, CLASS_NAMES, LabelCase, random_pair

seeds = st.integers(0, 2**32 - 1)
policies = st.sampled_from([str(policy) for policy in AmbiguousPolicy])
rules: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"matching": "centroid"}, {"iou_threshold": 0.2}]
)


def pq_of(rows: list[dict[str, Any]]) -> float:
    """Sum rows of the object table as the definition of PQ has it."""
    qualities = []
    for name in CLASS_NAMES:
        own = [row for row in rows if row["class"] == name]
        ious = [r["iou"] for r in own if r["side"] == "reference" and r["status"] == "TP"]
        fn = sum(r["side"] == "reference" and r["status"] in ("FN", "misclassified") for r in own)
        fp = sum(r["side"] == "prediction" and r["status"] in ("FP", "misclassified") for r in own)
        if ious or fn or fp:
            qualities.append(sum(ious) / (len(ious) + fp / 2 + fn / 2))
    return sum(qualities) / len(qualities) if qualities else math.nan


def expected_units(audit: PolicyAudit) -> dict[int, frozenset[int]]:
    """Join positions in the object table that change together; those that do not are left out."""
    first, second = (e.objects.to_dict("records") for e in (audit.first, audit.second))
    position = {(row["side"], row["id"]): k for k, row in enumerate(first)}
    units = {k: {k} for k in range(len(first))}
    for rows in (first, second):
        for k, row in enumerate(rows):
            if row["side"] == "reference" and row["status"] in ("TP", "misclassified"):
                other = position["prediction", row["partner_id"]]
                joined = units[k] | units[other]
                for member in joined:
                    units[member] = joined
    changed = {
        k
        for k, (one, other) in enumerate(zip(first, second, strict=True))
        if one["status"] != other["status"]
        or str(one["partner_id"]) != str(other["partner_id"])
        or (one["status"] in ("TP", "misclassified") and one["iou"] != other["iou"])
    }
    return {k: frozenset(unit) for k, unit in units.items() if unit & changed}


@settings(max_examples=examples(150), deadline=None)
@given(seed=seeds, first=policies, second=policies, rule=rules)
def test_audit_equals_two_evaluations_and_leave_one_out(
    seed: int, first: str, second: str, rule: dict[str, Any]
) -> None:
    case = random_pair(np.random.default_rng(seed), (20, 20))
    audit = audit_policies(evaluate_case(case, **rule), first, second)
    one = evaluate_case(case, ambiguous=first, **rule).objects
    other = evaluate_case(case, ambiguous=second, **rule).objects
    frame = audit.objects
    assert frame.columns.tolist() == AUDIT.keys
    for name in ("status", "cause"):
        assert frame[f"{name}_first"].tolist() == one[name].tolist()
        assert frame[f"{name}_second"].tolist() == other[name].tolist()
    assert frame["flips"].tolist() == (one["status"] != other["status"]).tolist()

    units = expected_units(audit)
    found: dict[int, set[int]] = {}
    for k, unit in enumerate(frame["unit"]):
        if unit >= 0:
            found.setdefault(unit, set()).add(k)
    assert {frozenset(unit) for unit in found.values()} == set(units.values())
    rows_first, rows_second = one.to_dict("records"), other.to_dict("records")
    for k, contribution in enumerate(frame["pq_contribution"]):
        unit = units.get(k, frozenset())
        without = [rows_first[i] if i in unit else row for i, row in enumerate(rows_second)]
        if unit:
            assert_close(contribution, pq_of(rows_second) - pq_of(without))
        else:
            assert contribution == 0.0
    assert_close(audit.pq_difference, pq_of(rows_second) - pq_of(rows_first))
    explained = audit.unit_contribution.sum() + audit.pq_unexplained
    assert math.isnan(audit.pq_unexplained) or math.isclose(
        explained, audit.pq_difference, abs_tol=1e-12
    )


@settings(max_examples=examples(40), deadline=None)
@given(seed=seeds, policy=policies)
def test_a_policy_against_itself_changes_nothing(seed: int, policy: str) -> None:
    case = random_pair(np.random.default_rng(seed), (15, 15))
    audit = audit_policies(evaluate_case(case), policy, policy)
    assert not audit.objects["flips"].any()
    assert len(audit.unit_contribution) == 0
    differences = audit.effect.filter(like="_difference").to_numpy()
    assert (np.isnan(differences) | (differences == 0)).all()


def test_effect_by_class_and_mean() -> None:
    # One object found exactly; one find inside the ambiguous area whose rim sticks out.
    audit = audit_policies(evaluate_case(CASES["spill-rim"]), "majority", "clip")
    effect = audit.effect.set_index("class")
    assert list(effect.index) == [*CLASS_NAMES, "mean"]
    assert effect.loc["Epithelial", ["fp_first", "fp_second", "fp_difference"]].tolist() == [
        0,
        1,
        1,
    ]
    assert effect.loc["mean", ["tp_first", "fp_second"]].tolist() == [1, 1]
    assert effect.loc["mean", "pq_first"] == 1.0
    assert math.isclose(effect.loc["mean", "pq_difference"], 1 / 1.5 - 1)
    assert math.isnan(effect.loc["Macrophage", "pq_difference"])
    assert math.isclose(audit.unit_contribution.sum(), 1 / 1.5 - 1)
    assert abs(audit.pq_unexplained) < 1e-12


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(SettingsError, match="ambiguous must be one of"):
        audit_policies(evaluate_case(CASES["perfect"]), "clip", "crop")


def areas() -> LabelCase:
    """Show objects of 100 px of which 100, 60, 50, 1 and 0 lie in the ambiguous area."""
    prediction = np.zeros((60, 20), np.int32)
    void = np.zeros(prediction.shape, bool)
    for label, columns in enumerate((10, 6, 5, 0, 0), start=1):
        top = 12 * (label - 1)
        prediction[top : top + 10, 5:15] = label
        void[top : top + 10, 5 : 5 + columns] = True
    void[36, 5] = True
    reference = np.where(np.isin(prediction, (3, 4)), prediction, 0)
    classes = dict.fromkeys(range(1, 6), CLASS_NAMES[0])
    return LabelCase(reference, prediction, classes, classes, void)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (
            "clip",
            [
                "cut away entirely: all 100 px in the ambiguous area",
                "sticks out by 40 px of 100 (40 %)",
                "sticks out by 50 px of 100 (50 %)",
                "sticks out by 99 px of 100 (99 %)",
                "",
            ],
        ),
        (
            "majority",
            [
                "100 % of its 100 px in the ambiguous area and unmatched: ignored",
                "60 % of its 100 px in the ambiguous area and unmatched: ignored",
                "50 % of its 100 px in the ambiguous area, matched: its IoU excludes these pixels",
                "1 % of its 100 px in the ambiguous area, matched: its IoU excludes these pixels",
                "",
            ],
        ),
        (
            "keep",
            [
                "judged whole, 100 % of its 100 px in the ambiguous area",
                "judged whole, 60 % of its 100 px in the ambiguous area",
                "judged whole, 50 % of its 100 px in the ambiguous area",
                "judged whole, 1 % of its 100 px in the ambiguous area",
                "",
            ],
        ),
    ],
)
def test_reasons_of_predictions(policy: str, expected: list[str]) -> None:
    evaluation = evaluate_case(areas(), ambiguous=policy)
    assert reasons(evaluation, Side.PREDICTION).tolist() == expected


def test_reasons_of_references_where_only_predictions_are_cut() -> None:
    evaluation = evaluate_case(areas(), ambiguous="clip-predictions")
    assert reasons(evaluation, Side.REFERENCE).tolist() == [
        "judged whole, 50 % of its 100 px in the ambiguous area",
        "judged whole, 1 % of its 100 px in the ambiguous area",
    ]
    assert reasons(evaluation, Side.PREDICTION)[0].startswith("cut away entirely")


def test_shares_are_never_rounded_over_a_border() -> None:
    # 1, 2499, 2501 and 4999 of 5000 px in the ambiguous area, and an unmatched rest.
    prediction = np.repeat(np.arange(1, 5, dtype=np.int32), 5000).reshape(4, 5000)
    void = np.zeros(prediction.shape, bool)
    for row, n in enumerate((1, 2499, 2501, 4999)):
        void[row, :n] = True
    classes = dict.fromkeys((1, 2, 3, 4), CLASS_NAMES[0])
    case = LabelCase(np.zeros_like(prediction), prediction, {}, classes, void)
    found = reasons(evaluate_case(case, ambiguous="majority"), Side.PREDICTION).tolist()
    place = "of its 5000 px in the ambiguous area"
    assert found == [
        f"over 0 % {place}, not more than half, and unmatched: counts",
        f"under 50 % {place}, not more than half, and unmatched: counts",
        f"over 50 % {place} and unmatched: ignored",
        f"under 100 % {place} and unmatched: ignored",
    ]


def test_spill_by_hand() -> None:
    table = spill_table(evaluate_case(areas(), ambiguous="clip"))
    assert table.columns.tolist() == SPILLS.keys
    assert table["id"].tolist() == [2, 3, 4]
    assert table["remainder_px"].tolist() == [40, 50, 99]
    assert table["status"].tolist() == ["FP", "TP", "TP"]
    assert table["fp_by_spill"].tolist() == [True, False, False]
    ignored = spill_table(evaluate_case(areas(), ambiguous="majority"))
    assert ignored["status"].tolist() == ["ignored", "TP", "TP"]
    assert not ignored["fp_by_spill"].any()
    assert spill_table(evaluate_case(CASES["perfect"])).empty


@settings(max_examples=examples(60), deadline=None)
@given(seed=seeds, policy=policies)
def test_spill_is_that_of_the_pixels(seed: int, policy: str) -> None:
    case = random_pair(np.random.default_rng(seed), (20, 20))
    evaluation = evaluate_case(case, ambiguous=policy)
    void = np.zeros((20, 20), bool) if case.ambiguous is None else case.ambiguous
    expected = {}
    for row in evaluation.objects.to_dict("records"):
        mask = case.prediction == row["id"]
        inside, outside = int((mask & void).sum()), int((mask & ~void).sum())
        if row["side"] == "prediction" and inside and outside:
            spills = row["status"] == "FP" and inside > outside
            expected[row["id"]] = (inside, outside, inside / (inside + outside), spills)
    columns = ["ambiguous_px", "remainder_px", "ambiguous_share", "fp_by_spill"]
    found = spill_table(evaluation).set_index("id")
    assert {int(id_): tuple(found.loc[id_, columns]) for id_ in found.index} == expected
    assert found["ambiguous_share"].is_monotonic_decreasing
