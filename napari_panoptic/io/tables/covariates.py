"""Tables of covariates: a row per object, with values that this program does not compute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import english_list, shortened
from napari_panoptic.io.files.guard import TABLE_BYTES, check_file
from napari_panoptic.io.tables.csv_tables import read_rows
from napari_panoptic.values.vocabulary import Side

if TYPE_CHECKING:
    import pandas as pd

KEY_COLUMNS = ("patient", "region", "side", "id")
"""The columns that say which object a row is about, as in ``objects.csv``."""
_WHAT = "a table of covariates"
_SHOWN = 60


def read_covariates(path: Path) -> pd.DataFrame:
    """Read a table with the columns patient, region, side, id, and one for each covariate.

    Parameters
    ----------
    path
        CSV in UTF-8, separated by commas or semicolons.

    Returns
    -------
    pandas.DataFrame
        The four columns first; ``id`` is int64, all others are words as in the file.

    Raises
    ------
    UnreadableFileError
        As `read_rows`, if it has no other column than these four, names an object twice, or has a
        side or an id that is none.
    """
    import pandas as pd

    check_file(path, _WHAT)
    rows = read_rows(path, _WHAT, KEY_COLUMNS, most_bytes=TABLE_BYTES)
    values = [name for name in rows.header if name not in KEY_COLUMNS]
    if not values or "" in values:
        raise UnreadableFileError(
            f"expected a named column for each covariate beside {english_list(KEY_COLUMNS)}, "
            f"found {english_list(values) or 'none'}; name them in the first line",
            path=path,
        )
    frame = pd.DataFrame(rows.cells, columns=rows.header, dtype=str)
    _check_cells(frame, "side", frame["side"].isin([str(side) for side in Side]), path)
    ids = pd.to_numeric(frame["id"], errors="coerce")
    _check_cells(frame, "id", ids.notna() & (ids % 1 == 0) & (ids.abs() < 2**53), path)
    frame["id"] = ids.astype("int64")
    keys = list(KEY_COLUMNS)
    if (again := frame.duplicated(keys)).any():
        first = frame[again].iloc[0]
        raise UnreadableFileError(
            f"expected one row per object, found {first['side']} {first['id']} of region "
            f"'{shortened(first['region'], _SHOWN)}' twice; keep one of them",
            path=path,
        )
    return frame[[*keys, *values]]


def _check_cells(frame: pd.DataFrame, column: str, is_right: pd.Series[bool], path: Path) -> None:
    if is_right.all():
        return
    row = int((~is_right).to_numpy().argmax())
    found = shortened(str(frame[column].iloc[row]), _SHOWN)
    expected = english_list(list(Side)) if column == "side" else "a whole number"
    raise UnreadableFileError(
        f"expected {expected} in the column '{column}', found '{found}' in row {row + 1}; correct "
        f"it",
        path=path,
    )
