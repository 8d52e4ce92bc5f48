"""Columns that take more rows."""

import numpy as np

from napari_panoptic.nuclei.edits.columns import GrowingColumn


def test_rows_are_added_and_views_of_before_stay_as_they_are() -> None:
    start = np.arange(3)
    column = GrowingColumn(start)
    held = [column.values]
    for k in range(3, 1000):
        column.append(np.array([k]))
        held.append(column.values)
    assert start.tolist() == [0, 1, 2]
    assert [view.tolist() for view in held] == [list(range(n)) for n in range(3, 1001)]


def test_blank_rows_have_the_shape_and_type_of_the_others() -> None:
    column = GrowingColumn(np.ones((2, 4), np.int32))
    column.append_blank(2, -1)
    assert column.values.dtype == np.int32
    assert column.values.tolist() == [[1] * 4] * 2 + [[-1] * 4] * 2
