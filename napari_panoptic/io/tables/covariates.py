"""Tables of covariates: a row per object, with values that this program does not compute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.text import english_list, shortened
from napari_panoptic.io.files.guard import check_file, check_length
from napari_panoptic.values.vocabulary import Side

if TYPE_CHECKING:
    import pandas as pd

KEY_COLUMNS = ("patient", "region", "side", "id")
"""The columns that say which object a row is about, as in ``objects.csv``."""
_WHAT = "a CSV table of covariates"
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
        If the file cannot be read, lacks one of the four columns or has no other, names a column
        or an object twice, or has a side or an id that is none.
    """
    import pandas as pd

    frame = _table(path)
    columns = [str(column).strip() for column in frame.columns]
    frame.columns = pd.Index(columns)
    if missing := [name for name in KEY_COLUMNS if name not in columns]:
        raise UnreadableFileError(
            f"expected the columns {english_list(KEY_COLUMNS)} and those of covariates, found "
            f"{english_list(columns) or 'none'}; add {english_list(missing)}",
            path=path,
        )
    if doubled := sorted({name for name in columns if columns.count(name) > 1}):
        raise UnreadableFileError(f"the column {english_list(doubled)} is there twice", path=path)
    values = [name for name in columns if name not in KEY_COLUMNS]
    if not values or "" in values:
        raise UnreadableFileError(
            f"expected a named column for each covariate beside {english_list(KEY_COLUMNS)}, "
            f"found {english_list(values) or 'none'}; name them in the first line",
            path=path,
        )
    frame = pd.DataFrame({name: frame[name].str.strip().str.normalize("NFC") for name in columns})
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


def _table(path: Path) -> pd.DataFrame:
    import pandas as pd

    check_file(path, _WHAT)
    try:
        check_length(path, _WHAT)
        with path.open(encoding="utf-8-sig") as file:
            first = file.readline()
        separator = ";" if first.count(";") > first.count(",") else ","
        frame = pd.read_csv(
            path,
            sep=separator,
            dtype=str,
            keep_default_na=False,
            encoding="utf-8-sig",
            header=None,
            index_col=False,
            skip_blank_lines=True,
        )
    except OSError as error:
        raise UnreadableFileError(f"cannot be read: {error.strerror}", path=path) from error
    except UnicodeDecodeError as error:
        raise UnreadableFileError("expected text in UTF-8; save it as such", path=path) from error
    except ValueError as error:  # pandas raises subclasses of it
        raise UnreadableFileError(f"expected {_WHAT}, found: {error}", path=path) from error
    # Read as a row, the header is not changed where a name is there twice.
    header, rows = frame.iloc[0].fillna(""), frame.iloc[1:].fillna("").reset_index(drop=True)
    return rows.set_axis(header.tolist(), axis=1)


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
