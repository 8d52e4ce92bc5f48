"""Columns to which rows are added one by one, as objects come to be under edit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Room for so many more rows, where there is none left.
_SPARE = 256


class GrowingColumn:
    """A column that takes more rows at its end without being copied each time.

    Parameters
    ----------
    values
        The rows to start from, (n,) or (n, k). Kept, not copied.

    Attributes
    ----------
    values
        All rows. A view of before stays as it is when rows are added.
    """

    def __init__(self, values: NDArray[Any]) -> None:
        self._store = self.values = values

    def append(self, values: NDArray[Any]) -> None:
        """Add rows at the end."""
        self._append(len(values), values)

    def append_blank(self, n: int, blank: float) -> None:
        """Add n rows of the same value."""
        self._append(n, blank)

    def _append(self, n: int, values: NDArray[Any] | float) -> None:
        length, end = len(self.values), len(self.values) + n
        if end > len(self._store):
            store = np.empty((end + _SPARE, *self._store.shape[1:]), self._store.dtype)
            store[:length] = self.values
            self._store = store
        self._store[length:end] = values
        self.values = self._store[:end]
