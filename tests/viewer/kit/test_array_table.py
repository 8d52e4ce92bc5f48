import numpy as np
from qtpy.QtCore import Qt

from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from tests.viewer.finding import drawn_colours

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
        qtbot.wait(1)
    table.sortByColumn(0, Qt.SortOrder.DescendingOrder)
    qtbot.wait(1)
    assert len(written) - before < len(numbers)  # those in sight
    longest = table.fontMetrics().horizontalAdvance("4999 px")
    assert table.columnWidth(0) > longest
    numbers = numbers * 1000
    table.show_rows([Column(title, "", numbers, text=text, stretch=True) for title in "ab"])
    assert table.columnWidth(0) > table.fontMetrics().horizontalAdvance("4999000 px")
