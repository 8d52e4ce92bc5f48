"""Tables as CSV, with cells that no spreadsheet reads as formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from napari_panoptic.common.text import utf8

if TYPE_CHECKING:
    import pandas as pd

_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r")


def inert(text: str) -> str:
    """Return a text as a cell, with a quote before one that a spreadsheet would compute.

    A name such as ``=HYPERLINK(...)`` would otherwise run when the table is opened
    (OWASP, "CSV injection").
    """
    return f"'{text}" if text.startswith(_BEGINNINGS) else text


def plain(cell: str) -> str:
    """Return the text of a cell that `inert` made."""
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_BEGINNINGS) else cell


def inert_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with inert texts, including headers; numbers are unchanged.

    Does not mutate.
    """
    import pandas as pd

    safe = frame.rename(columns=lambda name: inert(name) if isinstance(name, str) else name)
    for place, dtype in enumerate(frame.dtypes):
        if pd.api.types.is_numeric_dtype(dtype):
            continue
        # Iterating over a column of texts itself takes ten times as long.
        values = frame.iloc[:, place].to_numpy(object).tolist()
        known = {text: inert(text) for text in values if isinstance(text, str)}
        if any(text != safe_text for text, safe_text in known.items()):
            cells = [known[cell] if isinstance(cell, str) else cell for cell in values]
            safe.isetitem(place, np.array([*cells, None], object)[:-1])
    return safe


def csv_bytes(frame: pd.DataFrame, *, with_header: bool = True) -> bytes:
    """Return a table as a CSV file in UTF-8, or its rows: empty if undefined, and inert cells."""
    return utf8(inert_cells(frame).to_csv(index=False, header=with_header, lineterminator="\n"))
