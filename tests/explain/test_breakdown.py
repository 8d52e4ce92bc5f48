from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from napari_panoptic import evaluate_pair
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.explain.breakdown import (
    CAUSE_COUNTS,
    SIZES,
    AreaUnit,
    RegionObjects,
    SizeClasses,
    by_cause,
    by_size,
    quartile_classes,
)
from napari_panoptic.nuclei.outcomes import OBJECT_COLUMNS

Row = tuple[str, int, str, str, str, float, float, float]


def table(*rows: Row) -> pd.DataFrame:
    """Give an object table of (side, id, status, cause, partner class, iou, hausdorff, area)."""
    names = ["side", "id", "status", "cause", "partner_class", "iou", "hausdorff_px", "area_px"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(**{"class": "A"}).reindex(columns=list(OBJECT_COLUMNS))


NAN = float("nan")
FIRST = table(
    ("reference", 1, "TP", "", "A", 0.8, 2.0, 10.0),
    ("reference", 2, "FN", "split", "", 0.3, NAN, 40.0),
    ("reference", 3, "misclassified", "", "B", 0.6, 4.0, 20.0),
    ("reference", 4, "ignored", "", "", NAN, NAN, 500.0),
    ("reference", 5, "FN", "missed", "", NAN, NAN, 30.0),
    ("prediction", 1, "TP", "", "A", 0.8, 2.0, 12.0),
    ("prediction", 2, "misclassified", "", "A", 0.6, 4.0, 26.0),
    ("prediction", 3, "FP", "fragment", "", 0.3, NAN, 15.0),
    ("prediction", 4, "FP", "fragment", "", 0.2, NAN, 14.0),
    ("prediction", 5, "FP", "spurious", "", NAN, NAN, 400.0),
    ("prediction", 6, "ignored", "", "", NAN, NAN, 5.0),
)
SECOND = table(
    ("reference", 1, "TP", "", "A", 0.9, NAN, 20.0),
    ("prediction", 1, "TP", "", "A", 0.9, NAN, 21.0),
)


def sized(found: pd.DataFrame, team: str, size: int) -> dict[str, object]:
    (row,) = found[(found["team"] == team) & (found["size"] == size)].to_dict("records")
    return row


def test_figures_by_size() -> None:
    regions = [RegionObjects("t", "R", FIRST), RegionObjects("t", "S", SECOND)]
    found = by_size(regions, SizeClasses((20.0, 35.0)))
    assert list(found.columns) == SIZES.keys
    assert found["area_from"].tolist() == [0.0, 20.0, 35.0]
    assert found["area_below"].tolist() == [20.0, 35.0, float("inf")]
    small, middle, large = (sized(found, "t", size) for size in (1, 2, 3))
    # Below 20: reference 1; predictions 1, 3 and 4.
    assert (small["reference_objects"], small["found"], small["recall"]) == (1, 1, 1.0)
    assert (small["prediction_objects"], small["matched"]) == (3, 1)
    assert small["precision"] == pytest.approx(1 / 3)
    # From 20: references 3 and 5, and 1 of S; predictions 2, and 1 of S.
    assert (middle["reference_objects"], middle["found"]) == (3, 2)
    assert middle["recall"] == pytest.approx(2 / 3)
    assert middle["precision"] == 1.0
    assert (middle["right_class"], middle["class_accuracy"]) == (1, 0.5)
    assert middle["mean_iou"] == pytest.approx((0.6 + 0.9) / 2)
    assert (middle["pairs_with_hausdorff"], middle["mean_hausdorff_px"]) == (1, 4.0)
    # From 35: reference 2; prediction 5. Ignored objects are nowhere.
    assert (large["reference_objects"], large["found"], large["recall"]) == (1, 0, 0.0)
    assert (large["prediction_objects"], large["precision"]) == (1, 0.0)
    assert np.isnan([large["mean_iou"], large["class_accuracy"], large["mean_hausdorff_px"]]).all()


def test_what_a_class_of_size_lacks_is_undefined() -> None:
    row = sized(by_size([RegionObjects("t", "S", SECOND)], SizeClasses((5.0,))), "t", 1)
    assert (row["reference_objects"], row["prediction_objects"]) == (0, 0)
    assert np.isnan([row["recall"], row["precision"]]).all()


def test_quartiles_count_each_reference_object_once() -> None:
    one = [RegionObjects("t", "R", FIRST), RegionObjects("t", "S", SECOND)]
    other = [RegionObjects("u", "S", SECOND)]  # was not evaluated in R
    expected = np.quantile([10.0, 40.0, 20.0, 30.0, 20.0], [0.25, 0.5, 0.75])
    assert expected.tolist() == [20.0, 20.0, 30.0]
    assert quartile_classes([*one, *other]) == SizeClasses((20.0, 30.0))
    found = by_size([*one, *other], quartile_classes([*one, *other]))
    assert found["team"].tolist() == ["t"] * 3 + ["u"] * 3
    assert sized(found, "u", 2)["found"] == 1


def test_square_micrometres_by_the_resolution_of_each_region() -> None:
    regions = [RegionObjects("t", "R", FIRST, 0.5), RegionObjects("t", "S", SECOND, 1.0)]
    # 2.5, 10, 5 and 7.5 of R, and 20 of S.
    assert quartile_classes(regions, unit=AreaUnit.UM2).edges == (5.0, 7.5, 10.0)
    found = by_size(regions, SizeClasses((15.0,), AreaUnit.UM2))
    assert sized(found, "t", 2)["reference_objects"] == 1
    assert sized(found, "t", 2)["area_unit"] == "um2"
    with pytest.raises(SettingsError, match="region S: the micrometres per pixel are unknown"):
        by_size([regions[0], RegionObjects("t", "S", SECOND)], SizeClasses((9.0,), AreaUnit.UM2))


def test_failures_by_cause() -> None:
    regions = [RegionObjects("t", "R", FIRST), RegionObjects("u", "S", SECOND)]
    found = by_cause(regions)
    assert list(found.columns) == CAUSE_COUNTS.keys
    rows = found.set_index(["team", "side", "cause"])
    assert rows.loc[("t", "prediction", "fragment"), "count"] == 2
    assert rows.loc[("t", "prediction", "fragment"), "share"] == pytest.approx(2 / 3)
    assert rows.loc[("t", "prediction", "spurious"), "failures"] == 3
    assert rows.loc[("t", "reference", "split"), "share"] == 0.5
    assert rows.loc[("t", "reference", "missed"), "share"] == 0.5
    assert len(rows) == 8
    # A team without failures has no shares.
    assert (rows.loc["u"]["count"] == 0).all()
    assert rows.loc["u"]["share"].isna().all()


def test_of_nothing_there_are_no_rows() -> None:
    assert list(by_cause([]).columns) == CAUSE_COUNTS.keys
    assert by_size([], SizeClasses((1.0,))).empty
    with pytest.raises(SettingsError, match="quartiles of area need reference objects, found none"):
        quartile_classes([])


@pytest.mark.parametrize("edges", [(0.0, 5.0), (5.0, 5.0), (9.0, 5.0), (float("inf"),), (NAN,)])
def test_edges_have_to_rise(edges: tuple[float, ...]) -> None:
    with pytest.raises(SettingsError, match="expected increasing edges of size classes"):
        SizeClasses(edges)


def test_the_tables_of_an_evaluation_fit() -> None:
    """Counts by size and cause add up to those of the objects of a real evaluation."""
    rng = np.random.default_rng(8)
    reference, prediction = np.zeros((2, 120, 120), np.int32)
    for number, (y, x) in enumerate(np.ndindex(6, 6), start=1):
        size = int(rng.integers(4, 17))
        shift = int(rng.integers(0, 4))
        reference[y * 20 : y * 20 + size, x * 20 : x * 20 + size] = number
        prediction[y * 20 + shift : y * 20 + size, x * 20 : x * 20 + size] = number
    classes = {number: "AB"[number % 2] for number in range(1, 37)}
    objects = evaluate_pair(
        reference, prediction, reference_classes=classes, prediction_classes=classes
    ).objects
    regions = [RegionObjects("t", "R", objects)]
    found = by_size(regions, quartile_classes(regions))
    matched = objects["status"].isin(["TP", "misclassified"]) & (objects["side"] == "reference")
    assert found["reference_objects"].sum() == 36
    assert found["found"].sum() == matched.sum() > 10
    iou = (found["mean_iou"] * found["found"]).sum() / found["found"].sum()
    assert iou == pytest.approx(objects.loc[matched, "iou"].mean(), rel=1e-12)
    failed = objects["status"].isin(["FN", "FP"]).sum()
    assert by_cause(regions)["count"].sum() == failed > 0
