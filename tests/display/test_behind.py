import numpy as np
import pytest

from napari_panoptic.display.behind import (
    behind_cell,
    behind_class,
    behind_column,
    behind_figure,
    behind_row,
)
from napari_panoptic.display.object_rows import (
    COLUMNS,
    NONE_WORD,
    ObjectFilter,
    ObjectRows,
    WorstFirst,
)
from napari_panoptic.nuclei.metrics import detection_counts
from tests.support.small_pairs import SCHEME, four_fates

NAMES = SCHEME.names


@pytest.fixture
def rows():
    return ObjectRows.from_outcomes(four_fates().outcomes)


def ids(rows, wanted):
    return rows.values["id"][rows.let_through(wanted)].tolist()


@pytest.mark.parametrize("name", ["tp", "fp", "fn"])
@pytest.mark.parametrize("of_class", NAMES)
def test_as_many_objects_stand_behind_a_count_as_it_says(rows, name, of_class):
    by_class = four_fates().by_class.set_index("class")
    assert len(ids(rows, behind_class(name, of_class, NAMES))) == by_class.loc[of_class, name]


@pytest.mark.parametrize("reference", [*NAMES, NONE_WORD])
@pytest.mark.parametrize("prediction", [*NAMES, NONE_WORD])
def test_as_many_objects_stand_behind_a_cell_as_it_says(rows, reference, prediction):
    count = four_fates().confusion.loc[reference, prediction]
    assert len(ids(rows, behind_cell(reference, prediction))) == count


def test_rows_and_columns_of_the_confusion_matrix_are_the_sums_of_their_cells(rows):
    confusion = four_fates().confusion
    for name in (*NAMES, NONE_WORD):
        assert len(ids(rows, behind_row(name, NAMES))) == confusion.loc[name].sum()
        assert len(ids(rows, behind_column(name, NAMES))) == confusion[name].sum()


def test_counts_of_the_region_list_their_objects(rows):
    matched, fp, fn = detection_counts(four_fates().counts)
    assert len(ids(rows, behind_figure("matched"))) == matched
    assert len(ids(rows, behind_figure("fp"))) == fp
    assert len(ids(rows, behind_figure("fn"))) == fn
    assert ids(rows, behind_figure("ignored")) == [14]


def test_ratios_list_what_they_are_computed_from(rows):
    assert ids(rows, behind_figure("sq")) == [11]
    assert ids(rows, behind_figure("detection_precision")) == [21, 22, 23]
    assert ids(rows, behind_figure("detection_recall")) == [11, 12, 13]
    assert ids(rows, behind_figure("pq")) == [11, 12, 13, 21, 22, 23]
    assert ids(rows, behind_class("mean_hausdorff_px", "Round", NAMES)) == [11, 12]
    assert ids(rows, behind_class("class", "Long", NAMES)) == [13, 14, 22, 23]


def test_ignored_objects_belong_to_no_cell(rows):
    everything = frozenset((a, b) for a in (*NAMES, NONE_WORD) for b in (*NAMES, NONE_WORD))
    assert 14 not in ids(rows, ObjectFilter(pairs=everything))


def test_the_title_does_not_make_another_filter():
    assert behind_cell("Round", "Long") == ObjectFilter(
        sides=frozenset({"ref"}), pairs=frozenset({("Round", "Long")})
    )
    assert behind_cell("Round", NONE_WORD).title == "Round → FN"


@pytest.mark.parametrize(
    ("by", "ids_in_order"),
    [
        (WorstFirst.IOU, [13, 23, 12, 22, 11, 21, 14]),
        (WorstFirst.AREA, [13, 12, 22, 23, 11, 21, 14]),
        (WorstFirst.CAUSE, [13, 23, 12, 22, 11, 21, 14]),
        (WorstFirst.SCORE, [13, 23, 12, 22, 11, 21, 14]),
    ],
)
def test_each_order_puts_its_worst_first(rows, by, ids_in_order):
    assert rows.values["id"][rows.worst_first(by)].tolist() == ids_in_order


def test_orders_agree_with_a_plain_sort_of_many_rows():
    rng = np.random.default_rng(3)
    n = 70_000  # more different values than one pass of the sort can tell apart
    values = {
        "id": np.arange(n),
        "iou": np.where(rng.random(n) < 0.1, np.nan, rng.random(n)),
    }
    rows = ObjectRows(n, values)
    for descending in (False, True):
        keys = -values["iou"] if descending else values["iou"]
        expected = np.argsort(keys, kind="stable")
        np.testing.assert_array_equal(rows.ordered_by("iou", descending=descending), expected)


def test_rows_are_written_for_spreadsheets(rows):
    columns = [column for column in COLUMNS if column.name in ("id", "status", "iou", "partner_id")]
    text = rows.tab_separated(np.array([0, 2, 3]), columns)
    assert text.splitlines() == [
        "id\tstatus\tiou\tpartner_id",
        "11\tTP\t0.9\t21",
        "13\tFN\t0.0\t",
        "14\tignored\t\t",
    ]
