import numpy as np

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
