"""Small CSV tables that a user gives to a command."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import composed, english_list
from napari_panoptic.io.files.guard import SMALL_TABLE_BYTES, check_length


def table_rows(path: Path, what: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Read a CSV table in UTF-8, separated by commas or semicolons.

    Parameters
    ----------
    path
        The file.
    what
        Its content, for errors, such as "a table of patients".

    Returns
    -------
    header
        Names of the columns, without spaces around them; empty for an empty table.
    rows
        Number of the line and cells of each row that is not empty.

    Raises
    ------
    UnreadableFileError
        If the file cannot be read, is too large, or is no CSV table.
    """
    try:
        check_length(path, what, SMALL_TABLE_BYTES)
        text = composed(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UnreadableFileError(f"cannot be read: {error.strerror}", path=path) from error
    except UnicodeDecodeError as error:
        raise UnreadableFileError("expected text in UTF-8; save it as such", path=path) from error
    first = text.split("\n", 1)[0]
    separator = ";" if first.count(";") > first.count(",") else ","
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        rows = [(lines.line_num, row) for row in lines if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise UnreadableFileError(f"expected a CSV table, found: {error}", path=path) from error
    if not rows:
        return [], []
    return [cell.strip() for cell in rows[0][1]], rows[1:]


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
        If the file cannot be read, has no column ``team`` or no other, names a column or a team
        twice, or has an empty cell or a row of another length.
    """
    header, rows = table_rows(path, "a table of settings")
    parameters = [name for name in header if name != "team"]
    if len(parameters) != len(header) - 1 or not parameters or "" in parameters:
        raise UnreadableFileError(
            "expected a column 'team' and a named one for each parameter, found "
            f"{english_list(header) or 'no columns'}; name them in the first line",
            path=path,
        )
    if doubled := sorted({name for name in parameters if parameters.count(name) > 1}):
        raise UnreadableFileError(f"the column {english_list(doubled)} is there twice", path=path)
    found: dict[str, dict[str, str]] = {}
    for line, row in rows:
        cells = [cell.strip() for cell in row]
        if len(cells) != len(header) or "" in cells:
            raise UnreadableFileError(
                f"expected {len(header)} filled cells in line {line}, found "
                f"{sum(cell != '' for cell in cells)}; fill them in",
                path=path,
            )
        values = dict(zip(header, cells, strict=True))
        team = values.pop("team")
        if team in found:
            raise UnreadableFileError(
                f"expected one row per team, found '{team}' again in line {line}; keep one of them",
                path=path,
            )
        found[team] = values
    return found
