"""CSV tables that users or other programs wrote."""

from __future__ import annotations

import csv
import io
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import composed, english_list
from napari_panoptic.io.files.guard import SMALL_TABLE_BYTES, check_length


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table; neither names of columns nor cells have spaces around them."""

    #: The names of the columns.
    header: list[str]
    #: The number of the line of each row.
    lines: list[int]
    #: The cells of each row, as many as there are columns.
    cells: list[list[str]]

    def __iter__(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the number of the line and the cells by column of each row."""
        for line, cells in zip(self.lines, self.cells, strict=True):
            yield line, dict(zip(self.header, cells, strict=True))


def read_rows(
    path: Path,
    what: str,
    needed: Sequence[str],
    *,
    unique: str | None = None,
    most_bytes: int = SMALL_TABLE_BYTES,
) -> Rows:
    """Read a CSV table in UTF-8, separated by commas or semicolons, without empty rows.

    Parameters
    ----------
    path
        The file.
    what
        Its content, for errors, such as "a table of patients".
    needed
        Columns that it must have.
    unique
        The column in which each text may occur once; None for none.
    most_bytes
        The largest file that is read.

    Raises
    ------
    UnreadableFileError
        If the file cannot be read, is too large, or is not a CSV table; if it lacks a column or
        names one twice; if a row has another length, or a text is in the unique column twice.
    """
    lines = csv_lines(read_text(path, what, most_bytes), path, what)
    header = [cell.strip() for _, cells in itertools.islice(lines, 1) for cell in cells]
    if lacking := [name for name in needed if name not in header]:
        columns = "column" if len(needed) == 1 else "columns"
        raise UnreadableFileError(
            f"expected {what} with the {columns} {english_list(needed, limit=len(needed))}, found "
            f"{english_list(header) or 'no columns'}; add {english_list(lacking)}, or give "
            "another file",
            path=path,
        )
    if doubled := sorted({name for name in header if name and header.count(name) > 1}):
        raise UnreadableFileError(
            f"expected each column once, found {english_list(doubled)} twice; keep one of them",
            path=path,
        )
    rows = Rows(header, [], [])
    for line, row in lines:
        if len(row) != len(header):
            raise UnreadableFileError(
                f"expected {len(header)} cells in line {line}, found {len(row)}; correct the line",
                path=path,
            )
        rows.lines.append(line)
        rows.cells.append([sys.intern(cell.strip()) for cell in row])
    if unique is not None:
        _check_unique(rows, unique, path)
    return rows


def read_text(path: Path, what: str, most_bytes: int) -> str:
    """Read a text in UTF-8, with composed letters.

    Raises
    ------
    UnreadableFileError
        If the file cannot be read, is too large, or is not UTF-8.
    """
    try:
        check_length(path, what, most_bytes)
        return composed(path.read_text(encoding="utf-8-sig"))
    except IsADirectoryError:
        raise UnreadableFileError(f"expected {what}, found a folder", path=path) from None
    except OSError as error:
        raise UnreadableFileError(f"cannot be read: {error.strerror}", path=path) from error
    except UnicodeDecodeError as error:
        raise UnreadableFileError(
            f"expected {what} as text in UTF-8, found an invalid byte at position {error.start}; "
            "save it as UTF-8",
            path=path,
        ) from error


def csv_lines(
    text: str, path: Path, what: str, separators: str = ",;"
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line and the cells of each row that is not empty.

    The separator is the one that occurs most often in the first line.

    Raises
    ------
    UnreadableFileError
        If it is not a CSV table.
    """
    first = text.split("\n", 1)[0]
    rows = csv.reader(
        io.StringIO(text, newline=""), delimiter=max(separators, key=first.count), strict=True
    )
    try:
        for row in rows:
            if "".join(row).strip():
                yield rows.line_num, row
    except csv.Error as error:
        raise UnreadableFileError(
            f"expected {what} in CSV, found: {error}; export it again", path=path
        ) from error


def read_sweep_table(path: Path) -> dict[str, dict[str, str]]:
    """Read which setting of a post-processing each team is: ``team``, and a column per parameter.

    Parameters
    ----------
    path
        CSV in UTF-8, separated by commas or semicolons.

    Returns
    -------
    dict
        Team -> parameter -> its value as in the file.

    Raises
    ------
    UnreadableFileError
        As `read_rows`, if it has no other column than ``team``, and for an empty cell.
    """
    rows = read_rows(path, "a table of settings", ("team",), unique="team")
    if len(rows.header) == 1 or "" in rows.header:
        raise UnreadableFileError(
            "expected a column 'team' and a named one for each parameter, found "
            f"{english_list(rows.header)}; name them in the first line",
            path=path,
        )
    found: dict[str, dict[str, str]] = {}
    for line, row in rows:
        if "" in row.values():
            raise UnreadableFileError(
                f"expected {len(row)} filled cells in line {line}, found an empty one; fill it in",
                path=path,
            )
        found[row.pop("team")] = row
    return found


def _check_unique(rows: Rows, column: str, path: Path) -> None:
    first_line: dict[str, int] = {}
    for line, row in rows:
        name = row[column]
        if name in first_line:
            raise UnreadableFileError(
                f"expected one row for each {column}, found '{name}' in line {first_line[name]} "
                f"and again in line {line}; keep one of them",
                path=path,
            )
        first_line[name] = line
