from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic import EvaluationSettings, evaluate_pair
from napari_panoptic.questions.engines.quality_change import OUTLINES, quality_change
from napari_panoptic.questions.engines.version_diff import version_diff
from napari_panoptic.questions.engines.versions import compare_in_region
from napari_panoptic.values.cohort import Region
from tests.support.version_rows import CLASSES, two_versions


def slow_pq(objects: pd.DataFrame, patient: str) -> dict[str, tuple[float, float, float]]:
    """Return summed IoU, TP and weight of each class that is present, object by object."""
    found = {name: [0.0, 0.0, 0.0] for name in CLASSES}
    for row in objects.to_dict("records"):
        if row["patient"] != patient:
            continue
        own = found[row["class"]]
        is_reference = row["side"] == "reference"
        if row["status"] == "TP" and is_reference:
            own[0] += row["iou"]
            own[1] += 1
            own[2] += 1
        elif row["status"] in ("FN", "FP", "misclassified"):
            own[2] += 0.5
    return {name: tuple(own) for name, own in found.items() if own[2] > 0}


def mean_pq(classes: dict[str, tuple[float, float, float]]) -> float:
    return sum(s / w for s, _, w in classes.values()) / len(classes) if classes else math.nan


@settings(max_examples=12, derandomize=True, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 8]))
def test_the_parts_add_up_to_the_difference_of_pq(seed: int, objects: int) -> None:
    rng = np.random.default_rng(seed)
    old, new = two_versions(rng, objects=objects)
    for version in (old, new):  # as under "majority": what is not matched is ignored in it alone
        is_missed = (version["status"] == "FN").to_numpy()
        once = np.flatnonzero(is_missed & (rng.random(len(version)) < 0.5))
        version.iloc[once, version.columns.get_indexer(["status", "cause"])] = ["ignored", ""]
    diff = version_diff(old, new)
    change = quality_change(diff, CLASSES)
    differences = []
    for patient in dict.fromkeys(old["patient"]):
        apart = mean_pq(slow_pq(new, patient)) - mean_pq(slow_pq(old, patient))
        differences += [] if math.isnan(apart) else [apart]
    assert change.patients == len(differences)
    expected = np.mean(differences) if differences else math.nan
    assert change.total == pytest.approx(expected, abs=1e-12, nan_ok=True)
    if not differences:
        return
    for parts in (
        [change.sq, change.dq],
        change.of_row,
        list(change.by_class.values()),
        list(change.grouped(change.cause).values()),
        list(change.grouped(diff.rows["change"]).values()),
    ):
        assert np.sum(parts) == pytest.approx(expected, abs=1e-12)
    of_change = {name: change.of_row[diff.rows["change"] == name] for name in ("fixed", "broken")}
    assert (of_change["fixed"] >= 0).all()
    assert (of_change["broken"] <= 0).all()


@settings(max_examples=5, derandomize=True, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_swapped_versions_have_the_opposite_parts(seed: int) -> None:
    old, new = two_versions(np.random.default_rng(seed))
    there, back = version_diff(old, new), version_diff(new, old)
    one, other = quality_change(there, CLASSES), quality_change(back, CLASSES)
    assert one.total == pytest.approx(-other.total, abs=1e-12, nan_ok=True)
    assert (one.sq, one.dq) == pytest.approx((-other.sq, -other.dq), abs=1e-12)
    for name, part in one.by_class.items():
        assert part == pytest.approx(-other.by_class[name], abs=1e-12)


def one_patient(*rows: tuple[str, str, str, str, float]) -> pd.DataFrame:
    """Return objects of a patient: side, class, status, class of the partner, IoU."""
    return pd.DataFrame(
        [
            {
                "patient": "P",
                "region": "R",
                "side": side,
                "id": number,
                "class": name,
                "status": status,
                "cause": {"FN": "missed", "FP": "spurious"}.get(status, ""),
                "partner_id": None,
                "partner_class": partner,
                "iou": iou,
                "area_px": 10,
                "centroid_y_px": 10.0 * number,
                "centroid_x_px": 0.0,
            }
            for number, (side, name, status, partner, iou) in enumerate(rows, start=1)
        ]
    )


def test_a_fixed_object_by_hand() -> None:
    # PQ 0.8 / 1.5 before, (0.8 + 0.6) / 2 after.
    kept = ("reference", "Epithelial", "TP", "Epithelial", 0.8)
    old = one_patient(kept, ("reference", "Epithelial", "FN", "", 0.0))
    new = one_patient(kept, ("reference", "Epithelial", "TP", "Epithelial", 0.6))
    diff = version_diff(old, new)
    change = quality_change(diff, CLASSES)
    assert change.total == pytest.approx(0.7 - 0.8 / 1.5)
    assert change.grouped(diff.rows["change"]) == pytest.approx(
        {"still-right": 0.0, "fixed": 0.7 - 0.8 / 1.5}
    )
    assert change.grouped(change.cause) == pytest.approx({OUTLINES: 0.0, "missed": 0.7 - 0.8 / 1.5})
    # SQ falls from 0.8 to 0.7, DQ rises from 2/3 to 1.
    assert change.sq == pytest.approx(-0.1 * (2 / 3 + 1) / 2)
    assert change.dq == pytest.approx(1 / 3 * 0.75)


def test_a_nucleus_matched_by_one_version_and_ignored_in_the_other_has_a_part() -> None:
    # The new version misses nucleus 1, most of which is ambiguous, and finds all others.
    reference = np.zeros((24, 60), np.int32)
    for number in range(1, 7):
        reference[4:20, 10 * number - 9 : 10 * number - 2] = number
    ambiguous = np.zeros(reference.shape, np.bool_)
    ambiguous[4:16, :8] = True
    lost = np.where(reference == 1, 0, reference)
    majority = EvaluationSettings(ambiguous="majority", distances=False)
    old, new = (
        evaluate_pair(reference, found, ambiguous=ambiguous, settings=majority)
        for found in (np.where(reference == 6, 0, reference), lost)
    )
    region = Region("R", "P", None, None)
    found = compare_in_region(region, ("old", old), ("new", new), ("Nucleus",))
    change, rows = found.change, found.diff.rows
    expected = new.metrics.pq - old.metrics.pq
    assert expected > 0
    assert change.of_row.sum() == pytest.approx(expected)
    assert change.total == pytest.approx(expected)
    assert sum(change.by_class.values()) == pytest.approx(expected)
    own = rows[rows["change"] == "ignored-once"]
    assert own[["id", "status_before", "status_after"]].to_numpy().tolist() == [
        [1, "TP", "ignored"]
    ]
    assert change.of_row[own.index[0]] < 0
    assert change.grouped(change.cause)["ignored"] == pytest.approx(change.of_row[own.index[0]])


def test_an_fp_of_a_class_that_is_not_there_by_hand() -> None:
    # PQ 0.8 before; afterwards the mean of 0.8 and 0.
    kept = ("reference", "Epithelial", "TP", "Epithelial", 0.8)
    old = one_patient(kept)
    new = one_patient(kept, ("prediction", "Neutrophil", "FP", "", 0.0))
    diff = version_diff(old, new)
    change = quality_change(diff, CLASSES)
    assert change.total == pytest.approx(-0.4)
    assert change.grouped(diff.rows["change"]) == pytest.approx({"new": -0.4, "still-right": 0.0})
    assert change.by_class == pytest.approx(
        {"Epithelial": 0.0, "Lymphocyte": 0.0, "Neutrophil": -0.4}
    )
    assert (change.sq, change.dq) == pytest.approx((0.0, -0.4))


def test_a_patient_without_objects_has_no_part() -> None:
    old = one_patient(("prediction", "Neutrophil", "FP", "", 0.0))
    change = quality_change(version_diff(old, old.iloc[:0]), CLASSES)
    assert math.isnan(change.total)
    assert change.patients == 0
    assert (change.of_row == 0).all()
