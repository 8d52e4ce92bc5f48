"""The columns of a table of an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from napari_panoptic.common.text import visible
from napari_panoptic.display.names import distinct_names, short_name
from napari_panoptic.display.styles import STATUS_COLOURS
from napari_panoptic.questions.answer import AnswerTable
from napari_panoptic.tables.columns import CellContent, TableColumn
from napari_panoptic.tables.markup import Html, plain_text
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.viewer.kit.array_table import Column

if TYPE_CHECKING:
    import pandas as pd

_NAMES = ("patient", "region", "team")
"""Columns of names that are shortened."""
_LONG_TEXT = 40


def table_columns(table: AnswerTable) -> list[Column]:
    """Return the columns of a table of an answer for `ArrayTable`."""
    frame, records = table.frame, table.frame.to_dict("records")
    short = {key: short_names(frame, key) for key in _NAMES if key in frame}
    columns = [
        _column(
            column,
            [column.cell(record) for record in records],
            short.get(column.keys[0]) if len(column.keys) == 1 else None,
            table.tooltip,
        )
        for column in table.spec.shown()
        if column.cell is not None
    ]
    if any(column.stretch for column in columns):
        return columns
    marked = [column for column in columns if column.colour is not None]
    texts = [column for column in columns if column.is_text]
    growing = marked or texts or columns
    return [replace(column, stretch=column in growing) for column in columns]


def short_names(frame: pd.DataFrame, key: str) -> list[str]:
    """Return names of a column, shortened to what distinguishes them.

    Names of regions stand without the patient if that has a column of its own.
    """
    names = [str(name) for name in frame[key]]
    if key == "region" and "patient" in frame:
        return [short_name(*each) for each in zip(names, map(str, frame["patient"]), strict=True)]
    return distinct_names(names)


def _column(
    column: TableColumn,
    cells: Sequence[CellContent],
    short: Sequence[str] | None,
    tooltip: Callable[[int], str] | None,
) -> Column:
    """Return a column; those of names and of long texts share the room that others leave.

    Without such columns, those of statuses share it, else those of other texts, else all.

    Parameters
    ----------
    column, cells
        The column and its cells.
    short
        Short names that are shown instead; the tooltips have the full ones.
    tooltip
        Returns more about a row.
    """
    full = [plain_text(cell.shown) for cell in cells]
    texts = full if short is None else [visible(name) for name in short]
    if short is not None and tooltip is None:
        tooltip = full.__getitem__
    is_name = any(isinstance(cell.shown, Html) for cell in cells)
    is_text = all(cell.value is None for cell in cells)
    numbers = [np.nan if cell.value is None else cell.value for cell in cells]
    about_cells = any(cell.about for cell in cells)

    def colour(row: int) -> Rgb | None:
        status = cells[row].status
        return None if status is None else STATUS_COLOURS[status]

    return Column(
        plain_text(column.title),
        column.about,
        np.array(texts, str) if is_text else np.array(numbers, np.float64),
        text=str if is_text else lambda _value: "",
        instead={} if is_text else dict(enumerate(texts)),
        is_text=is_text,
        # The ends of names distinguish regions; no heading of two lines is cut.
        is_whole=column.keys == ("region",) or "\n" in plain_text(column.title),
        key=column.keys[0] if column.keys else None,
        colour=colour if any(cell.status is not None for cell in cells) else None,
        stretch=is_text and (is_name or max(map(len, texts), default=0) > _LONG_TEXT),
        tooltip=(lambda row: cells[row].about) if about_cells else tooltip,
    )
