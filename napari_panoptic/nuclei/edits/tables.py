"""The counts of one side as they were after each of its edits."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.nuclei.overlap import SideTable

# With more rows that are other than at the start, they become a start of their own.
_FEW_ROWS = 200


class LaterTable(SideTable):
    """The counts of one side, of which few are other than at the start.

    There is another one after each stroke, and hardly anybody asks for the counts of
    all objects before the next: a column is put together when it is asked for.

    Parameters
    ----------
    start
        The counts at the start.
    length
        The number of rows, of which there may be more than at the start; 0 where nothing
        was written.
    later
        Rows that were written since, each time with their counts.
    """

    def __init__(
        self,
        start: SideTable,
        length: int,
        later: tuple[tuple[NDArray[np.int64], SideTable], ...] = (),
    ) -> None:
        vars(self).update(_start=start, _length=length, _later=later)

    def rewritten(self, rows: NDArray[np.int64], counts: SideTable, length: int) -> LaterTable:
        """Return the table with other counts in some rows; this one stays as it is."""
        start, later = self._start, self._later
        if sum(len(known) for known, _ in later) + len(rows) > _FEW_ROWS:
            start, later = SideTable(*self._columns()), ()
        return LaterTable(start, length, (*later, (rows, counts)))

    def __len__(self) -> int:
        """Count the objects."""
        return int(self._length)

    def __getattr__(self, name: str) -> Any:
        """Put a column together that nobody has asked for yet."""
        if name.startswith("_"):
            raise AttributeError(name)
        before = getattr(self._start, name)
        column = np.zeros((self._length, *before.shape[1:]), before.dtype)
        column[: len(before)] = before
        for rows, counts in self._later:
            column[rows] = getattr(counts, name)
        vars(self)[name] = column
        return column

    def __reduce__(self) -> tuple[type[SideTable], tuple[NDArray[Any], ...]]:
        """Travel between processes as a table like any other."""
        return SideTable, self._columns()

    def _columns(self) -> tuple[NDArray[Any], ...]:
        return tuple(getattr(self, field.name) for field in fields(SideTable))
