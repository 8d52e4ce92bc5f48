import numpy as np
import pytest

from napari_panoptic.display.object_rows import COLUMNS, GivenVerdicts, ObjectFilter, ObjectRows
from napari_panoptic.values.vocabulary import Side
from tests.support.small_pairs import empty_pair, four_fates

BY_NAME = {column.name: column for column in COLUMNS}


@pytest.fixture
def rows():
    return ObjectRows.from_outcomes(four_fates().outcomes)


def texts(rows, name, order=None):
    order = range(len(rows)) if order is None else order
    return [rows.text(row, BY_NAME[name]) for row in order]


def test_rows_agree_with_the_frame(rows):
    frame = four_fates().objects
    assert texts(rows, "id") == frame["id"].astype(str).tolist()
    assert texts(rows, "status") == frame["status"].tolist()
    assert texts(rows, "cause") == frame["cause"].tolist()
    assert texts(rows, "class") == frame["class"].tolist()
    assert texts(rows, "partner_class") == frame["partner_class"].tolist()
    np.testing.assert_array_equal(rows.values["iou"], frame["iou"])
    np.testing.assert_array_equal(rows.values["hausdorff_um"], frame["hausdorff_um"])
    np.testing.assert_array_equal(rows.values["centroid_x_px"], frame["centroid_x_px"])


def test_undefined_values_are_dashes(rows):
    assert texts(rows, "partner_id") == ["21", "22", "–", "–", "11", "12", "–"]
    assert texts(rows, "hausdorff_px")[2:4] == ["–", "–"]


def test_an_object_is_found_both_ways(rows):
    for row in range(len(rows)):
        assert rows.row_of(*rows.object_of(row)) == row
    assert rows.object_of(4) == (Side.PREDICTION, 0)


def test_worst_come_first(rows):
    statuses = texts(rows, "status", rows.worst_first())
    assert statuses == ["FN", "FP", "misclassified", "misclassified", "TP", "TP", "ignored"]


def test_the_larger_of_equal_failures_comes_first(rows):
    order = rows.worst_first()
    areas = rows.values["area_px"][order]
    assert areas[0] > areas[1]


@pytest.mark.parametrize("descending", [False, True])
def test_undefined_comes_last_in_either_direction(rows, descending):
    order = rows.ordered_by("hausdorff_px", descending=descending)
    values = rows.values["hausdorff_px"][order]
    defined = values[~np.isnan(values)]
    assert np.isnan(values[len(defined) :]).all()
    assert (np.diff(defined) * (-1 if descending else 1) >= 0).all()


def test_words_are_ordered_by_the_alphabet(rows):
    order = rows.ordered_by("class", descending=False)
    assert texts(rows, "class", order) == sorted(texts(rows, "class"))


def test_ids_missing_come_last(rows):
    order = rows.ordered_by("partner_id", descending=True)
    assert texts(rows, "partner_id", order)[-3:] == ["–"] * 3


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (ObjectFilter(), [11, 12, 13, 14, 21, 22, 23]),
        (ObjectFilter(statuses=frozenset({"FN", "FP"})), [13, 23]),
        (ObjectFilter(sides=frozenset({"pred"}), classes=frozenset({"Long"})), [22, 23]),
        (ObjectFilter(causes=frozenset({"spurious"})), [23]),
        (ObjectFilter(statuses=frozenset()), []),
    ],
)
def test_filters_let_through_what_was_asked_for(rows, wanted, ids):
    assert rows.values["id"][rows.let_through(wanted)].tolist() == ids


def test_failures_are_marked(rows):
    assert rows.values["id"][rows.failures()].tolist() == [12, 13, 22, 23]


def test_verdicts_find_their_objects_in_any_order_and_number(rows):
    given = {
        Side.REFERENCE: GivenVerdicts(np.array([14, 11, 99]), np.array([3, 1, 4], np.int16)),
        Side.PREDICTION: GivenVerdicts(np.array([22]), np.array([2], np.int16)),
    }
    assert rows.verdicts_of(given).tolist() == [1, 0, 0, 3, 0, 2, 0]
    assert rows.with_verdicts(given).values["verdict"].tolist() == [1, 0, 0, 3, 0, 2, 0]
    assert rows.verdicts_of({}).tolist() == [0] * 7


@pytest.mark.parametrize("nothing", [ObjectRows.empty(), None])
def test_no_objects_are_no_trouble(nothing):
    rows = nothing or ObjectRows.from_outcomes(empty_pair().outcomes)
    assert len(rows) == 0
    assert len(rows.worst_first()) == 0
    assert len(rows.let_through(ObjectFilter(statuses=frozenset({"FN"})))) == 0
    assert len(rows.ordered_by("iou", descending=True)) == 0
