"""Tables: one list of columns defines how a table is shown, sorted, written and documented."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.spreadsheets import csv_bytes
from napari_panoptic.common.text import visible
from napari_panoptic.tables.figures import UNDEFINED, count, interval, ratio
from napari_panoptic.tables.markup import (
    Child,
    element,
    fragment,
    named,
    plain_text,
)
from napari_panoptic.values.vocabulary import Status

if TYPE_CHECKING:
    import pandas as pd

Record = Mapping[Any, Any]


@dataclass(frozen=True)
class CellContent:
    """The content of a cell."""

    #: Markup or text.
    shown: Child
    #: The number by which rows are sorted, NaN if undefined; None to sort by the text.
    value: float | None = None
    #: The status whose colour marks the cell; None for no mark.
    status: Status | None = None
    #: More about it, for its tooltip; empty for what is said of its row.
    about: str = ""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table."""

    #: Its heading in a report.
    title: Child
    #: Returns the cell of a row; None if reports do not show the column.
    cell: Callable[[Record], CellContent] | None
    #: Its columns in the CSV file: several if they are shown as one.
    keys: tuple[str, ...] = ()
    #: The meaning of the column, for the documentation.
    about: str = ""


@dataclass(frozen=True)
class TableSpec:
    """A CSV file, and the table of a report with the same rows."""

    #: The name of the file.
    file: str
    #: The content of a row, for the documentation.
    row: str
    #: The columns, in the order of the file.
    columns: Sequence[TableColumn]
    #: A sentence that describes the content, in a report.
    caption: str = ""

    @cached_property
    def keys(self) -> list[str]:
        """The names of the columns."""
        return [key for column in self.columns for key in column.keys]

    def frame(self, rows: Iterable[Any]) -> pd.DataFrame:
        """Return rows as a frame, which has all columns even if there are no rows.

        Parameters
        ----------
        rows
            Each a record, an object with attributes of the names of columns (``class_name`` for
            ``class``), or a tuple of these: of each column the first that has it gives the value.
        """
        import pandas as pd

        return pd.DataFrame([self._record(row) for row in rows], columns=self.keys)

    def frame_of(self, *columns: Any) -> pd.DataFrame:
        """Return the values of each column as a frame; one value counts for all rows."""
        import pandas as pd

        return pd.DataFrame(dict(zip(self.keys, columns, strict=True)))

    def extended(self, *keys: str) -> TableSpec:
        """Return the table with further columns at its end, such as one per class of a cohort."""
        return replace(self, columns=[*self.columns, unshown(*keys)])

    def _record(self, row: Any) -> dict[Any, Any]:
        parts = row if type(row) is tuple else (row,)
        records = [part if isinstance(part, Mapping) else self._read(part) for part in parts]
        return {key: value for record in reversed(records) for key, value in record.items()}

    def _read(self, source: object) -> Record:
        names = {key: "class_name" if key == "class" else key for key in self.keys}
        return {key: getattr(source, name) for key, name in names.items() if hasattr(source, name)}

    def csv(self, frame: pd.DataFrame, *, with_header: bool = True) -> bytes:
        """Return the columns of a frame as the CSV file, or further rows for its end."""
        return csv_bytes(frame[self.keys], with_header=with_header)

    def only(self, *keys: str) -> list[TableColumn]:
        """Return the columns whose first keys are given, in this order."""
        by_key = {column.keys[0]: column for column in self.columns}
        return [by_key[key] for key in keys]

    def shown(self, first: Sequence[str] = ()) -> list[TableColumn]:
        """Return the columns that are shown, those of ``first`` at the front."""
        columns = [column for column in self.columns if column.cell is not None]
        order: dict[tuple[str, ...], int] = {(key,): place for place, key in enumerate(first)}
        return sorted(columns, key=lambda column: order.get(column.keys, len(order)))


def texts(
    columns: Sequence[TableColumn], rows: Iterable[Record]
) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the cells of a table as a report shows them, without markup."""
    header = [plain_text(column.title) for column in columns]
    makers = [column.cell for column in columns if column.cell is not None]
    return header, [[plain_text(cell(row).shown) for cell in makers] for row in rows]


def aligned(header: Sequence[str], rows: Iterable[Sequence[str]], *, names: int = 1) -> list[str]:
    """Return the lines of a table: the first `names` columns aligned left, the others right."""
    lines = [[visible(text) for text in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            text.ljust(width) if place < names else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]


def values(
    columns: Sequence[TableColumn], rows: Iterable[Record]
) -> tuple[list[str], list[list[Any]]]:
    """Return the headings and the values of a table, each bound of an interval on its own."""
    header = [
        name
        for column in columns
        for name in (column.keys if len(column.keys) > 1 else (plain_text(column.title),))
    ]
    keys = [key for column in columns for key in column.keys]
    return header, [[row[key] for key in keys] for row in rows]


# --- kinds of columns ----------------------------------------------------------------------------


def unshown(*keys: str, about: str = "") -> TableColumn:
    """Return columns that only the CSV file has."""
    return TableColumn(None, None, keys, about)


def link_column() -> TableColumn:
    """Return the column of links to the objects of rows."""
    return unshown("link", about="to the object, for `view --link`; empty if there can be none")


def words(key: str, title: Child = None, about: str = "") -> TableColumn:
    """Return a column of words of this program, such as statuses."""
    return TableColumn(title or key, lambda row: CellContent(str(row[key])), (key,), about)


def name_column(key: str, title: Child = None, about: str = "") -> TableColumn:
    """Return a column of names from outside."""
    return TableColumn(title or key, lambda row: CellContent(named(str(row[key]))), (key,), about)


def class_column() -> TableColumn:
    """Return the column of classes; an empty class stands for all."""
    return TableColumn("class", lambda row: CellContent(row["class"] or "all classes"), ("class",))


def number(
    key: str,
    title: Child = None,
    write: Callable[[float], str] = ratio,
    about: str = "",
) -> TableColumn:
    """Return a column of numbers, undefined if NaN or missing."""
    return TableColumn(title or key, lambda row: number_cell(row[key], write), (key,), about)


def whole(key: str, title: Child = None, about: str = "") -> TableColumn:
    """Return a column of whole numbers."""
    return number(key, title, count, about)


def bounds(low: str, high: str, title: Child, about: str = "") -> TableColumn:
    """Return a column of intervals, sorted by their lower ends."""
    return TableColumn(title, lambda row: bounds_cell(row[low], row[high]), (low, high), about)


def ranked(title: Child, key: Any, value: str = "pq") -> TableColumn:
    """Return a column of figures with their ranks; see `across` for the key."""
    return TableColumn(title, lambda row: ranked_cell(row[key][value], row[key]["rank"]))


def figure_of(
    title: Child, key: Any, value: str = "pq", write: Callable[[float], str] = ratio
) -> TableColumn:
    """Return a column of figures; see `across` for the key."""
    return TableColumn(title, lambda row: number_cell(row[key][value], write))


def number_cell(value: Any, write: Callable[[float], str] = ratio) -> CellContent:
    """Return a cell with a number, undefined if NaN or missing."""
    import pandas as pd

    figure = math.nan if pd.isna(value) else float(value)
    return CellContent(write(figure), figure)


def bounds_cell(low: float, high: float, places: int = 3) -> CellContent:
    """Return a cell with an interval."""
    return CellContent(interval(low, high, places), low)


def ranked_cell(value: float, rank: float) -> CellContent:
    """Return a cell with a figure and its rank; the best is bold."""
    if math.isnan(value):
        return CellContent(UNDEFINED, math.nan)
    shown = element("span", ratio(value), class_="best" if rank == 1 else None)
    return CellContent(fragment(shown, element("span", f" ({rank:.0f})", class_="rank")), value)


def stacked(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of the frames of teams as one frame, whose first column is the team."""
    import pandas as pd

    named = [frame.assign(team=team)[["team", *frame.columns]] for team, frame in frames.items()]
    return pd.concat(named, ignore_index=True)


def across(frame: pd.DataFrame, by: Sequence[str], column: str) -> list[dict[Any, Any]]:
    """Return wide rows: one per value of ``by``, with the record of each value of ``column``."""
    rows: dict[tuple[Any, ...], dict[Any, Any]] = {}
    for record in frame.to_dict("records"):
        place = tuple(record[key] for key in by)
        row = rows.setdefault(place, dict(zip(by, place, strict=True)))
        row[column, record[column]] = record
    return list(rows.values())
