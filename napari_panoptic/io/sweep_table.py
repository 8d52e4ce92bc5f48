"""The table of a sweep: which setting of the post-processing each team is."""

from __future__ import annotations

from pathlib import Path

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.tables import table_rows


def read_sweep_table(path: Path) -> dict[str, dict[str, str]]:
    """Read a table with a column ``team`` and one for each parameter.

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
