"""Tables: one list of columns says how a frame is shown and sorted; the CSV file is the frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from napari_panoptic.common.spreadsheets import inert_cells
from napari_panoptic.common.visible import utf8
from napari_panoptic.report.page import (
    Child,
    Html,
    download,
    element,
    fragment,
    named,
    team_label,
)
from napari_panoptic.report.text import UNDEFINED, count, interval, ratio

_SHORT_TABLE = 16
Record = Mapping[Any, Any]


@dataclass(frozen=True)
class Cell:
    """The content of a cell.

    Parameters
    ----------
    shown
        Markup or text.
    value
        The number by which rows are sorted, NaN if undefined; None to sort by the text.
    """

    shown: Child
    value: float | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table that is shown.

    Parameters
    ----------
    title
        Its heading.
    cell
        Makes its cell of a row of the table.
    """

    title: Child
    cell: Callable[[Record], Cell]


def table(
    slug: str,
    caption: Child,
    columns: Sequence[Column],
    frame: pd.DataFrame,
    rows: Iterable[Record] | None = None,
) -> Html:
    """Return a table with a link to its CSV file.

    Parameters
    ----------
    slug
        Name of the CSV file, without ``.csv``.
    caption
        A sentence that says what the table shows.
    columns
        The columns shown; the first one names the rows.
    frame
        The content of the CSV file, in full precision.
    rows
        The rows shown; default: those of the frame.
    """
    csv = inert_cells(frame).to_csv(index=False, lineterminator="\n")
    # File names may contain characters that UTF-8 cannot encode.
    link = download("CSV", f"{slug}.csv", "text/csv;charset=utf-8", utf8(csv))
    records = frame.to_dict("records") if rows is None else rows
    cells = [[column.cell(record) for column in columns] for record in records]
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


def _written(cell: Cell, column: int) -> Html:
    kind = value = None
    if cell.value is not None:
        kind, value = "number", "" if math.isnan(cell.value) else repr(float(cell.value))
    if column == 0:
        return element("th", cell.shown, scope="row", class_=kind, data_value=value)
    return element("td", cell.shown, class_=kind, data_value=value)


# --- kinds of columns ----------------------------------------------------------------------------


def words(key: str, title: Child = None) -> Column:
    """Return a column of our own words."""
    return Column(title or key, lambda row: Cell(str(row[key])))


def name_column(key: str, title: Child = None) -> Column:
    """Return a column of names from outside."""
    return Column(title or key, lambda row: Cell(named(str(row[key]))))


def team_column(teams: Sequence[str], key: str = "team", title: Child = None) -> Column:
    """Return a column of teams, each beside its colour, which its place among all decides."""
    return Column(title or key, lambda row: Cell(team_label(row[key], teams)))


def number(key: str, title: Child = None, write: Callable[[float], str] = ratio) -> Column:
    """Return a column of numbers, undefined if NaN or missing."""
    return Column(title or key, lambda row: number_cell(row[key], write))


def whole(key: str, title: Child = None) -> Column:
    """Return a column of whole numbers."""
    return number(key, title, count)


def bounds(low: str, high: str, title: Child, places: int = 3) -> Column:
    """Return a column of intervals, sorted by their lower ends."""
    return Column(title, lambda row: bounds_cell(row[low], row[high], places))


def ranked(title: Child, key: Any, value: str = "pq", rank: str = "rank") -> Column:
    """Return a column of figures with their ranks; see `across` for the key."""
    return Column(title, lambda row: ranked_cell(row[key][value], row[key][rank]))


def number_cell(value: Any, write: Callable[[float], str] = ratio) -> Cell:
    """Return a cell with a number, undefined if NaN or missing."""
    figure = math.nan if pd.isna(value) else float(value)
    return Cell(write(figure), figure)


def bounds_cell(low: float, high: float, places: int = 3) -> Cell:
    """Return a cell with an interval."""
    return Cell(interval(low, high, places), low)


def ranked_cell(value: float, rank: float) -> Cell:
    """Return a cell with a figure and its rank; the best is bold."""
    if math.isnan(value):
        return Cell(UNDEFINED, math.nan)
    shown = element("span", ratio(value), class_="best" if rank == 1 else None)
    return Cell(fragment(shown, element("span", f" ({rank:.0f})", class_="rank")), value)


def across(frame: pd.DataFrame, by: Sequence[str], column: str) -> list[dict[Any, Any]]:
    """Return wide rows: one per value of ``by``, with the record of each value of ``column``."""
    rows: dict[tuple[Any, ...], dict[Any, Any]] = {}
    for record in frame.to_dict("records"):
        place = tuple(record[key] for key in by)
        row = rows.setdefault(place, dict(zip(by, place, strict=True)))
        row[column, record[column]] = record
    return list(rows.values())
