import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtGui import QFont
from qtpy.QtTest import QTest

from napari_panoptic.viewer.kit.array_table import ArrayTable, Column, share_room
from tests.viewer.finding import drawn_colours, handle_events

RED = (230, 30, 20)


def test_a_selected_row_keeps_its_colour(qtbot):
    table = ArrayTable()
    qtbot.addWidget(table)
    table.show_rows([Column("Status", "", np.array(["FN"]), colour=lambda _row: RED, is_text=True)])
    table.show()
    index = table.model().index(0, 0)
    for row in (None, 0):
        table.select(row)
        assert table.selection().isSelected(index) == (row is not None)
        assert RED in drawn_colours(table, index)


def test_a_long_table_is_resized_and_sorted_without_writing_all_of_its_texts(qtbot):
    written = []

    def text(value):
        written.append(value)
        return f"{value} px"

    table = ArrayTable()
    qtbot.addWidget(table)
    table.resize(600, 200)
    table.show()
    numbers = np.arange(5000)
    columns = [Column(title, "", numbers, text=text, stretch=True) for title in ("Area", "Other")]
    table.show_rows(columns)
    before = len(written)
    for width in range(610, 660, 10):
        table.resize(width, 200)
        handle_events()
    table.sortByColumn(0, Qt.SortOrder.DescendingOrder)
    handle_events()
    assert len(written) - before < len(numbers)  # those in sight
    longest = table.fontMetrics().horizontalAdvance("4999 px")
    assert table.columnWidth(0) > longest
    numbers = numbers * 1000
    table.show_rows([Column(title, "", numbers, text=text, stretch=True) for title in "ab"])
    assert table.columnWidth(0) > table.fontMetrics().horizontalAdvance("4999000 px")


def test_texts_are_written_once_for_a_fill_however_many_rows_there_are(qtbot):
    written = []

    def text(value):
        written.append(value)
        return f"{value} px"

    table = ArrayTable()
    qtbot.addWidget(table)  # not shown: nothing is drawn
    codes = np.arange(25_000) % 3
    values = (np.arange(25_000), np.linspace(0, 1, 25_000), codes, np.full(25_000, np.nan))
    titles = ("Area", "IoU", "Class", "Unknown")
    columns = [
        Column(t, "", v, text=text, stretch=True) for t, v in zip(titles, values, strict=True)
    ]
    table.show_rows(columns)
    assert len(written) == 2 + 2 + 3 + 0  # numbers: smallest and largest; codes: each of them
    for width in range(300, 400, 10):
        table.resize(width, 200)
        table.sortByColumn(width % 4, Qt.SortOrder.DescendingOrder)
    table.setFont(QFont("", 20))
    assert len(written) == 7
    table.update_rows(
        [Column(t, "", v, text=text, stretch=True) for t, v in zip(titles, values, strict=True)]
    )
    assert len(written) == 14


@pytest.mark.parametrize(
    ("room", "widths"),
    [
        (400, [30, 60, 310]),  # the rest goes to the column that grows
        (190, [30, 60, 100]),
        (130, [30, 50, 50]),  # the widest shrink first
        (60, [30, 20, 40]),  # to their least widths; the table scrolls
    ],
)
def test_columns_share_the_room(room, widths):
    assert share_room(room, [30, 20, 40], [30, 60, 100], [False, False, True]) == widths


@pytest.mark.parametrize("seed", range(5))
def test_columns_fill_the_room_and_none_is_cut_while_there_is_some(seed):
    random = np.random.default_rng(seed)
    for _ in range(50):
        wanted = random.integers(20, 200, 6)
        least = random.integers(10, wanted)
        grows = random.random(6) < 0.5
        room = int(random.integers(0, 1500))
        widths = share_room(room, least.tolist(), wanted.tolist(), grows.tolist())
        assert (widths >= least).all()
        if room < least.sum():
            assert widths == least.tolist()
        elif room < wanted.sum():
            assert sum(widths) == room
            assert (widths <= wanted).all()
        else:
            assert (widths >= wanted).all()
            assert sum(widths) == (room if grows.any() else wanted.sum())


def test_narrow_columns_leave_no_scroll_bar(qtbot):
    table = ArrayTable()
    qtbot.addWidget(table)
    table.resize(300, 200)
    table.show()
    table.show_rows([Column("", "", np.array([1])), Column("", "", np.array([2]), stretch=True)])
    widths = [table.columnWidth(number) for number in range(2)]
    assert sum(widths) == table.viewport().width()
    assert table.horizontalScrollBar().maximum() == 0


def test_of_texts_of_one_length_the_widest_fits(qtbot):
    table = ArrayTable()
    qtbot.addWidget(table)
    table.resize(600, 200)
    table.show()
    names = ["illiilliil", "WWWWWWWWWW", "lliilliill"]
    rest = Column("Cause", "", np.array(["a", "b", "c"]), is_text=True, stretch=True)
    table.show_rows([Column("Class", "", np.array(names), is_text=True, least=20), rest])
    widest = max(map(table.fontMetrics().horizontalAdvance, names))
    assert table.columnWidth(0) > widest


def test_a_click_or_a_key_asks_for_its_row_once(qtbot):
    table = ArrayTable()
    qtbot.addWidget(table)
    table.show_rows([Column("Id", "", np.arange(3))])
    table.show()
    wanted = []
    table.row_wanted.connect(lambda row, column: wanted.append((row, column)))
    for row in (1, 1, 2):  # another row, the current one, another one
        place = table.visualRect(table.model().index(row, 0)).center()
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert wanted == [(1, 0), (1, 0), (2, 0)]
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Return, Qt.Key.Key_Down):
        QTest.keyClick(table, key)
    assert wanted[3:] == [(1, 0), (1, 0), (2, 0)]
