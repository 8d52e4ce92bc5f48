"""Tables of things with names: sorted and filtered by mouse and keys."""

import numpy as np
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.keys import FILTER_KEYS, SORT_KEYS
from napari_panoptic.viewer.kit.name_table import NameTable

NAMES = ["a_1", "a_2", "b_1", "b_2"]
PATIENTS = ["a", "a", "b", "b"]
PQ = [0.5, np.nan, 0.9, 0.1]
FN = [3.0, 1.0, 2.0, 2.0]


def columns(pq=PQ):
    return [
        Column("Name", "", np.array(NAMES, object), is_text=True, stretch=True),
        Column("PQ", "", np.array(pq), text="{:.1f}".format, instead={1: "missing"}),
        Column("FN", "", np.array(FN), text="{:.0f}".format),
    ]


@pytest.fixture
def table(qtbot):
    table = NameTable("Regions", "Filter")
    qtbot.addWidget(table)
    table.show_rows(NAMES, columns(), PATIENTS)
    table.resize(300, 200)
    table.show()
    return table


@pytest.fixture
def chosen(table):
    found = []
    table.chosen.connect(found.append)
    return found


def press_shortcut(widget, shortcut):
    assert shortcut.key.startswith("Ctrl-")
    key = getattr(Qt.Key, f"Key_{shortcut.key.removeprefix('Ctrl-')}")
    QTest.keyClick(widget, key, Qt.KeyboardModifier.ControlModifier)


class TestSorting:
    @pytest.mark.parametrize("order", list(Qt.SortOrder))
    def test_undefined_values_come_last(self, table, order):
        table.table.sortByColumn(1, order)
        known = ["b_2", "a_1", "b_1"]
        if order == Qt.SortOrder.DescendingOrder:
            known.reverse()
        assert table.listed() == [*known, "a_2"]

    def test_the_selected_row_stays_selected_and_in_sight(self, qtbot, chosen):
        names = [f"r{number:03}" for number in range(300)]
        table = NameTable("Regions")
        qtbot.addWidget(table)
        values = Column("PQ", "", np.arange(300.0))
        table.show_rows(names, [values])
        table.resize(200, 200)
        table.show()
        table.mark("r000")
        table.table.sortByColumn(0, Qt.SortOrder.DescendingOrder)
        assert table.selected() == "r000"
        assert table.table.selection().isSelected(table.table.currentIndex())
        place = table.table.visualRect(table.table.currentIndex())
        assert table.table.viewport().rect().contains(place.center())
        assert chosen == []

    def test_a_third_click_brings_back_the_own_order(self, table):
        header = table.table.horizontalHeader()
        x = header.sectionViewportPosition(2) + 10
        orders = []
        for _ in range(3):
            QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(x, 5))
            orders.append(table.listed())
        assert orders[0] == ["a_2", "b_1", "b_2", "a_1"]
        assert orders[1] == ["a_1", "b_1", "b_2", "a_2"]
        assert orders[2] == NAMES

    def test_every_column_is_reached_by_keys(self, table):
        before, after, ascending, descending = SORT_KEYS
        view = table.table
        sorted_by = []
        for _ in range(4):
            press_shortcut(view, after)
            sorted_by.append(view.sorted_by)
        assert sorted_by == [0, 1, 2, -1]
        press_shortcut(view, before)
        assert view.sorted_by == 2
        press_shortcut(view, descending)
        assert table.listed()[0] == "a_1"
        press_shortcut(view, ascending)
        assert table.listed()[0] == "a_2"

    def test_new_values_keep_order_and_selection(self, table, chosen):
        table.mark("b_1")
        table.table.sortByColumn(1, Qt.SortOrder.AscendingOrder)
        table.show_rows(NAMES, columns([0.5, 0.2, 0.0, 0.1]), PATIENTS)
        assert table.listed() == ["b_1", "b_2", "a_2", "a_1"]
        assert table.selected() == "b_1"
        assert chosen == []


class TestFilter:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [("B", ["b_1", "b_2"]), ("_1", ["a_1", "b_1"]), ("a _2", ["a_2"]), ("x", []), (" ", NAMES)],
    )
    def test_it_searches_names_and_patients(self, table, text, expected):
        table.filter.setText(text)
        assert table.listed() == expected

    def test_esc_clears_it_and_gives_the_keys_back(self, table, qtbot):
        table.focus_filter()
        QTest.keyClicks(table.filter, "b_2")
        assert table.listed() == ["b_2"]
        with qtbot.waitSignal(table.filter.left):
            QTest.keyClick(table.filter, Qt.Key.Key_Escape)
        assert table.filter.text() == ""
        assert table.listed() == NAMES

    def test_enter_chooses_the_first_row(self, table, chosen, qtbot):
        QTest.keyClicks(table.filter, "b")
        with qtbot.waitSignal(table.filter.left):
            QTest.keyClick(table.filter, Qt.Key.Key_Return)
        assert chosen == ["b_1"]

    def test_the_arrow_leads_into_the_table_and_through_it(self, table, chosen):
        QTest.keyClicks(table.filter, "b")
        QTest.keyClick(table.filter, Qt.Key.Key_Down)
        QTest.keyClick(table.table, Qt.Key.Key_Down)
        QTest.keyClick(table.table, Qt.Key.Key_Return)
        assert chosen == ["b_1", "b_2", "b_2"]

    def test_a_marked_row_is_marked_again_when_it_is_back(self, table, chosen):
        table.mark("a_1")
        table.filter.setText("b")
        assert table.selected() is None
        table.filter.clear()
        assert table.selected() == "a_1"
        assert chosen == []

    def test_its_tooltip_lists_its_keys(self, table):
        assert all(key.text in table.filter.toolTip() for key in FILTER_KEYS)


def test_texts_that_replace_values_are_shown(table):
    assert [row[1] for row in table.table.texts()] == ["0.5", "missing", "0.9", "0.1"]
    assert table.text("a_2", "PQ") == "missing"


def test_columns_take_the_whole_width_and_no_more(table):
    view = table.table
    for width in (200, 500):
        table.resize(width, 200)
        taken = sum(view.columnWidth(number) for number in range(3))
        assert taken == view.viewport().width()


def test_rows_of_others_deselect(qtbot):
    table = ArrayTable()
    qtbot.addWidget(table)
    for _ in range(2):
        table.show_rows(columns())
        assert table.selected() is None
        table.select(2)
