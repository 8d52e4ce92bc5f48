from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QSize, Qt
from qtpy.QtWidgets import QApplication, QLabel, QWidget

from napari_panoptic.display import styles
from napari_panoptic.display.object_rows import COLUMNS, GivenVerdicts, ObjectFilter, WorstFirst
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.viewer.panels.objects.panel import (
    ALL_HIDDEN,
    EMPTY,
    ObjectTable,
)
from tests.support.small_pairs import four_fates
from tests.viewer.finding import drawn_colours, shown_text, tick_column

NAMES = [column.name for column in COLUMNS]


@pytest.fixture
def table(qtbot):
    table = ObjectTable()
    qtbot.addWidget(table)
    table.put_worst_first(WorstFirst.IOU)
    table.show_outcomes(four_fates().outcomes)
    return table


@pytest.fixture
def told(table):
    """Collect what the table says somebody chose."""
    told = []
    table.object_selected.connect(lambda side, row: told.append((side, row)))
    return told


def shown(table, name):
    column = NAMES.index(name)
    model = table.model
    return [model.index(row, column).data() for row in range(model.rowCount())]


def test_all_columns_are_there(table):
    assert table.model.columnCount() == len(COLUMNS) == 16
    titles = [table.model.headerData(k, Qt.Orientation.Horizontal) for k in range(len(COLUMNS))]
    assert titles[:7] == ["Side", "Id", "Status", "Cause", "IoU", "HD px", "Class"]


def test_long_ids_are_not_cut_off(table):
    column = NAMES.index("id")
    before = table.view.columnWidth(column)
    outcomes = four_fates().outcomes
    long = outcomes.reference.ids + 1_234_567_000
    table.show_outcomes(replace(outcomes, reference=replace(outcomes.reference, ids=long)))
    needed = table.view.fontMetrics().horizontalAdvance(max(shown(table, "id"), key=len))
    assert table.view.columnWidth(column) > max(before, needed + 4)


USUAL = ("side", "id", "status", "cause", "iou", "hausdorff_px", "class")


@pytest.mark.parametrize(("width", "points"), [(345, 9), (365, 12), (700, 9)])
def test_the_usual_columns_take_the_whole_width_and_no_more(table, width, points):
    font = table.font()
    font.setPointSize(points)
    table.view.setFont(font)
    table.hide_columns(set(NAMES) - set(USUAL))
    table.resize(width, 300)
    table.show()
    view = table.view
    assert sum(view.columnWidth(k) for k in range(len(NAMES))) == view.viewport().width()
    assert all(view.columnWidth(NAMES.index(name)) >= 24 for name in USUAL)
    figures = view.fontMetrics().horizontalAdvance("0.749")
    assert view.columnWidth(NAMES.index("iou")) >= figures + 4


def test_words_that_are_cut_are_in_the_tooltips(table):
    cells = [table.model.index(0, NAMES.index(name)) for name in ("status", "cause", "class")]
    tips = [cell.data(Qt.ItemDataRole.ToolTipRole) for cell in cells]
    assert tips[0].startswith("FN: ")
    assert tips[1].startswith("missed: ")
    assert tips[2] == cells[2].data()


def test_the_worst_come_first(table):
    assert shown(table, "id") == ["13", "23", "12", "22", "11", "21", "14"]


def test_a_click_on_a_header_sorts(table, qtbot):
    header = table.view.horizontalHeader()
    table.show()
    column = NAMES.index("id")
    where = header.viewport().rect().topLeft()
    where.setX(header.sectionViewportPosition(column) + 8)
    where.setY(header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=where)
    ascending = shown(table, "id")
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert ascending == ["11", "12", "13", "14", "21", "22", "23"]
    assert shown(table, "id") == ascending[::-1]


def test_filters_are_counted_and_undone(table):
    table.set_filter(ObjectFilter(statuses=frozenset({"FN"})))
    assert shown(table, "id") == ["13"]
    assert table.count_text().startswith("1 of 7")
    table.set_filter(ObjectFilter())
    assert len(shown(table, "id")) == 7


def test_a_filter_menu_filters(table):
    table.menu("class").uncheck("Round")
    assert set(shown(table, "class")) == {"Long"}
    assert table.menu("class").text() == "Class (1)"


def test_the_menu_of_classes_shows_a_filter_that_was_set_before_the_classes_were_known(table):
    outcomes = table.outcomes
    table.show_outcomes(None)
    table.set_filter(ObjectFilter(classes=frozenset({"Long"})))
    table.show_outcomes(outcomes)
    assert set(shown(table, "class")) == {"Long"}
    assert table.menu("class").checked() == {"Long"}
    assert table.menu("class").text() == "Class (1)"


def test_filters_are_named_on_their_button_in_the_words_of_the_menus(table):
    assert table.filters.text() == "Filter"
    table.set_filter(
        ObjectFilter(statuses=frozenset({"FN", "FP"}), causes=frozenset({"ambiguous-spill"}))
    )
    assert table.filters.text() == "Filter: FN, FP; mostly ambiguous"
    table.set_filter(ObjectFilter(verdicts=frozenset({""})))
    assert table.filters.text() == "Filter: no verdict"


def test_hints_say_what_to_do(table):
    table.set_filter(ObjectFilter(causes=frozenset()))
    assert shown_text(table.hint) == ALL_HIDDEN
    table.show_outcomes(None)
    assert shown_text(table.hint) == EMPTY


def test_choosing_a_row_tells_the_object(table, told, qtbot):
    table.show()
    where = table.view.visualRect(table.model.index(1, 1)).center()
    qtbot.mouseClick(table.view.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert told == [(Side.PREDICTION, 2)]


def test_being_told_selects_without_telling_back(table, told):
    table.select((Side.REFERENCE, 3))
    assert table.selected() == (Side.REFERENCE, 3)
    assert told == []


def test_a_hidden_object_cannot_be_selected(table):
    table.set_filter(ObjectFilter(statuses=frozenset({"FN"})))
    table.select((Side.REFERENCE, 0))
    assert table.selected() is None


def test_a_selection_outlives_sorting_and_filtering(table, told):
    table.select((Side.REFERENCE, 2))
    table.set_filter(ObjectFilter(statuses=frozenset({"FN", "FP"})))
    table.model.sort(NAMES.index("id"), Qt.SortOrder.DescendingOrder)
    table.view.sortByColumn(NAMES.index("id"), Qt.SortOrder.AscendingOrder)
    assert table.selected() == (Side.REFERENCE, 2)
    assert told == []


def failures(table):
    return [table.model.rows.object_of(int(row)) for row in table.model.failures()]


def test_failures_come_worst_first_and_a_misclassified_pair_once(table):
    assert failures(table) == [
        (Side.REFERENCE, 2),
        (Side.PREDICTION, 2),
        (Side.REFERENCE, 1),  # the pair 12-22
    ]


def test_a_misclassified_prediction_counts_where_only_predictions_are_listed(table):
    table.set_filter(ObjectFilter(sides=frozenset({"pred"})))
    assert failures(table)[-1] == (Side.PREDICTION, 1)


def test_failures_that_a_filter_hides_are_not_among_them(table):
    table.set_filter(ObjectFilter(statuses=frozenset({"TP"})))
    assert failures(table) == []


@pytest.mark.parametrize("key", [Qt.Key.Key_Space])
def test_space_asks_for_the_object_to_be_centred(table, qtbot, key):
    wanted = []
    table.centre_wanted.connect(lambda side, row: wanted.append((side, row)))
    table.select((Side.REFERENCE, 0))
    qtbot.keyClick(table.view, key)
    assert wanted == [(Side.REFERENCE, 0)]


def test_statuses_and_causes_are_explained(table):
    status = table.model.index(0, NAMES.index("status"))
    cause = table.model.index(0, NAMES.index("cause"))
    assert "no prediction matches" in status.data(Qt.ItemDataRole.ToolTipRole)
    assert cause.data(Qt.ItemDataRole.ToolTipRole) == "missed: Nothing was predicted here."


def test_a_selected_row_keeps_its_colour(table):
    table.show()
    index = table.model.index(0, NAMES.index("status"))
    for row in (None, (Side.REFERENCE, 2)):
        table.select(row)
        assert table.view.selection().isSelected(index) == (row is not None)
        assert styles.STATUS_COLOURS[Status.FN] in drawn_colours(table.view, index)


def test_the_outcomes_that_are_listed_already_change_nothing(table):
    outcomes = table.outcomes
    table.model.sort(NAMES.index("id"))
    table.set_filter(ObjectFilter(sides=frozenset({"ref"})))
    table.select((Side.REFERENCE, 2))
    told = []
    table.model.modelReset.connect(lambda: told.append("reset"))
    table.model.layoutChanged.connect(lambda: told.append("layout"))
    table.listed_changed.connect(lambda: told.append("listed"))
    rows = table.model.rows
    table.show_outcomes(outcomes)
    assert told == []
    assert table.model.rows is rows
    assert table.selected() == (Side.REFERENCE, 2)
    assert shown(table, "id") == ["11", "12", "13", "14"]
    table.show_outcomes(four_fates().outcomes)
    assert "reset" in told


def test_verdicts_stay_with_their_objects_when_others_are_listed(table):
    outcomes = table.outcomes
    given = {
        Side.REFERENCE: GivenVerdicts(np.array([14, 12]), np.array([1, 3], np.int16)),
        Side.PREDICTION: GivenVerdicts(outcomes.prediction.ids, np.array([0, 0, 2], np.int16)),
    }
    expected = {"14": "annotation right", "12": "both wrong", "23": "prediction right"}
    table.show_verdicts(given)
    for _ in range(2):
        found = dict(zip(shown(table, "id"), shown(table, "verdict"), strict=True))
        assert {id_: word for id_, word in found.items() if word} == expected
        table.show_outcomes(four_fates().outcomes)
    table.show_verdicts({})
    assert set(shown(table, "verdict")) == {""}


def test_columns_are_hidden_and_told(table):
    told = []
    table.columns_chosen.connect(told.append)
    table.hide_columns({"iou", "id", "no such column"})
    assert told == []  # only what somebody chose is told
    assert table.view.isColumnHidden(NAMES.index("iou"))
    assert not table.view.isColumnHidden(NAMES.index("id"))
    tick_column(table, "cause")
    assert told == [frozenset({"iou", "cause"})]
    assert table.view.isColumnHidden(NAMES.index("cause"))


@pytest.mark.long
@pytest.mark.parametrize("outcomes", [None, "some"])
@pytest.mark.parametrize("size", [(300, 90), (420, 150)])
def test_nothing_overlaps_in_a_low_panel(qtbot, outcomes, size):
    table = ObjectTable()
    qtbot.addWidget(table)
    table.show_outcomes(None if outcomes is None else four_fates().outcomes)
    table.show()
    table.resize(QSize(*size))
    for _ in range(5):  # each line of buttons that is added changes the height
        QApplication.processEvents()
        table.resize(QSize(*size))
    shown = [w for w in table.findChildren(QWidget) if w.isVisible() and w.parent() is table]
    for number, one in enumerate(shown):
        for other in shown[number + 1 :]:
            assert not one.geometry().intersects(other.geometry())
    for one in shown:
        for child in one.findChildren(QWidget):
            if child.isVisible() and child.parent() is one and not isinstance(one, QLabel):
                assert one.rect().contains(child.geometry()) or one is table.view
