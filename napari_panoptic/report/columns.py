"""Tables on a page, with the CSV file of each as a link."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from napari_panoptic.common.spreadsheets import csv_bytes
from napari_panoptic.report.page import team_label
from napari_panoptic.tables.columns import CellContent, Record, TableColumn, TableSpec
from napari_panoptic.tables.markup import Child, Html, download, element

if TYPE_CHECKING:
    import pandas as pd

_SHORT_TABLE = 16


def shown_columns(
    spec: TableSpec, teams: Sequence[str] = (), first: Sequence[str] = ()
) -> list[TableColumn]:
    """Return the columns for `table`, those of ``first`` at the front; teams are coloured."""
    return [
        team_column(teams, title=column.title) if teams and column.keys == ("team",) else column
        for column in spec.shown(first)
    ]


def spec_table(
    spec: TableSpec,
    frame: pd.DataFrame,
    teams: Sequence[str] = (),
    first: Sequence[str] = (),
    rows: Iterable[Record] | None = None,
) -> Html:
    """Return the table of a specification, with the columns `shown_columns`; see `table`."""
    columns = shown_columns(spec, teams, first)
    return table(spec.file.removesuffix(".csv"), spec.caption, columns, frame, rows)


def table(
    slug: str,
    caption: Child,
    columns: Sequence[TableColumn],
    content: pd.DataFrame | Sequence[Record],
    rows: Iterable[Record] | None = None,
) -> Html:
    """Return a table with a link to its CSV file.

    Parameters
    ----------
    slug
        Name of the CSV file, without ``.csv``.
    caption
        A sentence that describes the content.
    columns
        The columns shown; the first one names the rows.
    content
        The content of the CSV file, in full precision: a frame, or its rows.
    rows
        The rows shown; default: those of the file.
    """
    import pandas as pd

    frame = pd.DataFrame(content)
    link = download("CSV", f"{slug}.csv", "text/csv;charset=utf-8", csv_bytes(frame))
    records = frame.to_dict("records") if rows is None else rows
    makers = [column.cell for column in columns if column.cell is not None]
    cells = [[cell(record) for cell in makers] for record in records]
    if not cells:
        return element(
            "div",
            element("p", caption, " ", link, class_="caption"),
            element("p", "The table has no rows.", class_="nothing"),
            class_="table",
        )
    is_number = [any(cell.value is not None for cell in own) for own in zip(*cells, strict=True)]
    head = (
        element("th", column.title, scope="col", class_="number" if right else None)
        for column, right in zip(columns, is_number, strict=True)
    )
    body = (element("tr", *(_written(c, n) for n, c in enumerate(row))) for row in cells)
    shown = element(
        "table",
        element("caption", caption, " ", link),
        element("thead", element("tr", *head)),
        element("tbody", *body),
        class_="sortable",
    )
    size = "table short" if len(cells) <= _SHORT_TABLE else "table"
    return element("div", element("div", shown, class_="scroll", tabindex="0"), class_=size)


def team_column(teams: Sequence[str], key: str = "team", title: Child = None) -> TableColumn:
    """Return a column of teams, each with its colour, which depends on its place among all."""
    return TableColumn(title or key, lambda row: CellContent(team_label(row[key], teams)), (key,))


def _written(cell: CellContent, column: int) -> Html:
    kind = value = None
    if cell.value is not None:
        kind, value = "number", "" if math.isnan(cell.value) else repr(float(cell.value))
    if column == 0:
        return element("th", cell.shown, scope="row", class_=kind, data_value=value)
    return element("td", cell.shown, class_=kind, data_value=value)
