"""Small CSV tables that a user gives to a command."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.guard import SMALL_TABLE_BYTES, check_length


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
        text = path.read_text(encoding="utf-8-sig")
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
