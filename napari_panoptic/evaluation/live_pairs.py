"""The pairs of objects that share pixels, kept in order while pixels change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic._compiled import compiled
from napari_panoptic.evaluation.overlap import OverlapTable, SideTable

_LOW = np.int64(0xFFFFFFFF)
Column = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Joined:
    """Objects that chains of overlaps join, and all pairs among them.

    Parameters
    ----------
    reference, prediction
        int64 (n,), ascending: the rows of the objects of each side.
    pair_reference, pair_prediction
        int32 (m,): the rows of each pair, sorted as in `OverlapTable`.
    intersection, void_intersection
        int64 (m,): as there.
    """

    reference: NDArray[np.int64]
    prediction: NDArray[np.int64]
    pair_reference: NDArray[np.int32]
    pair_prediction: NDArray[np.int32]
    intersection: NDArray[np.int64]
    void_intersection: NDArray[np.int64]


class LivePairs:
    """The pairs of an overlap table under edit.

    Arrays that were handed out are never changed.

    Parameters
    ----------
    table
        The pairs to start from; not changed.
    """

    def __init__(self, table: OverlapTable) -> None:
        self.pair_reference, self.pair_prediction = table.pair_reference, table.pair_prediction
        self.intersection = table.intersection
        self.void_intersection = table.void_intersection
        self._keys = _key(table.pair_reference + 1, table.pair_prediction + 1)
        self._turned = np.sort(_turned(self._keys))

    def add(
        self, keys: NDArray[np.int64], change: NDArray[np.int64], void_change: NDArray[np.int64]
    ) -> None:
        """Add to what pairs share; pairs come to be and go with their shared pixels.

        Parameters
        ----------
        keys
            int64 (k,): ``reference << 32 | prediction`` by 1-based rows, each once.
        change, void_change
            int64 (k,): by how many pixels they share more, and in the ambiguous area.
        """
        order = np.argsort(keys)
        keys, change, void_change = keys[order], change[order], void_change[order]
        at = np.searchsorted(self._keys, keys)
        known = at < len(self._keys)
        known[known] = self._keys[at[known]] == keys[known]
        self.intersection = _increased(self.intersection, at[known], change[known])
        self.void_intersection = _increased(self.void_intersection, at[known], void_change[known])
        gone = at[known][self.intersection[at[known]] == 0]
        new = ~known & (change > 0)
        if new.any():
            self._insert(at[new], keys[new], change[new], void_change[new])
            gone += np.searchsorted(at[new], gone, side="right")
        if len(gone):
            self._delete(gone)

    def table(self, reference: SideTable, prediction: SideTable) -> OverlapTable:
        """Give the pairs as they are now, with what is known of the objects."""
        return OverlapTable(
            reference=reference,
            prediction=prediction,
            pair_reference=self.pair_reference,
            pair_prediction=self.pair_prediction,
            intersection=self.intersection,
            void_intersection=self.void_intersection,
        )

    def joined_to(
        self,
        reference: NDArray[np.int64],
        prediction: NDArray[np.int64],
        numbers: tuple[int, int],
        *,
        limit: int,
    ) -> Joined | None:
        """Find all objects that chains of overlaps join to given ones.

        Parameters
        ----------
        reference, prediction
            Rows of these objects, which are among those found.
        numbers
            How many objects there are on either side.
        limit
            Up to how many objects to look for.

        Returns
        -------
        Joined or None
            None where there are more.
        """
        found, rows, columns, at = _joined(
            self._keys, self._turned, reference, prediction, *numbers, limit
        )
        if not found:
            return None
        return Joined(
            rows,
            columns,
            self.pair_reference[at],
            self.pair_prediction[at],
            self.intersection[at],
            self.void_intersection[at],
        )

    def _insert(
        self,
        at: NDArray[np.intp],
        keys: NDArray[np.int64],
        shared: NDArray[np.int64],
        void_shared: NDArray[np.int64],
    ) -> None:
        self._keys = _with_more(self._keys, at, keys)
        self.intersection = _with_more(self.intersection, at, shared)
        self.void_intersection = _with_more(self.void_intersection, at, void_shared)
        rows, columns = (_high(keys) - 1).astype(np.int32), ((keys & _LOW) - 1).astype(np.int32)
        self.pair_reference = _with_more(self.pair_reference, at, rows)
        self.pair_prediction = _with_more(self.pair_prediction, at, columns)
        turned = np.sort(_turned(keys))
        self._turned = _with_more(self._turned, np.searchsorted(self._turned, turned), turned)

    def _delete(self, at: NDArray[np.intp]) -> None:
        turned = np.sort(_turned(self._keys[at]))
        self._turned = _with_fewer(self._turned, np.searchsorted(self._turned, turned))
        self._keys = _with_fewer(self._keys, at)
        self.intersection = _with_fewer(self.intersection, at)
        self.void_intersection = _with_fewer(self.void_intersection, at)
        self.pair_reference = _with_fewer(self.pair_reference, at)
        self.pair_prediction = _with_fewer(self.pair_prediction, at)


@compiled
def _with_more(column: Column, at: NDArray[np.int64], values: Column) -> Column:
    """Put values before places, which ascend; a fraction of the time of `numpy.insert`."""
    longer = np.empty(len(column) + len(at), column.dtype)
    done = 0
    for k in range(len(at)):
        longer[done + k : at[k] + k] = column[done : at[k]]
        longer[at[k] + k] = values[k]
        done = at[k]
    longer[done + len(at) :] = column[done:]
    return longer


@compiled
def _with_fewer(column: Column, at: NDArray[np.int64]) -> Column:
    """Leave places out, which ascend."""
    shorter = np.empty(len(column) - len(at), column.dtype)
    done = 0
    for k in range(len(at)):
        shorter[done - k : at[k] - k] = column[done : at[k]]
        done = at[k] + 1
    shorter[done - len(at) :] = column[done:]
    return shorter


def _increased(
    column: NDArray[np.int64], at: NDArray[np.intp], change: NDArray[np.int64]
) -> NDArray[np.int64]:
    if not change.any():
        return column
    column = column.copy()
    column[at] += change
    return column


def _key(reference: NDArray[np.integer], prediction: NDArray[np.integer]) -> NDArray[np.int64]:
    return (reference.astype(np.int64) << 32) | prediction.astype(np.int64)


def _high(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    return keys >> 32


def _turned(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Put the prediction before the reference object."""
    return _key(keys & _LOW, _high(keys))


@compiled
def _reach(
    keys: NDArray[np.int64],
    number: int,
    is_found: NDArray[np.bool_],
    queue: NDArray[np.int64],
    end: int,
) -> int:
    """Queue the objects across that an object overlaps; as many as there is room for."""
    first = np.searchsorted(keys, number << 32)
    last = np.searchsorted(keys, (number + 1) << 32)
    for k in range(first, last):
        across = keys[k] & _LOW
        if end < len(queue) and not is_found[across]:
            is_found[across] = True
            queue[end] = across
            end += 1
    return end


@compiled
def _joined(
    keys: NDArray[np.int64],
    turned: NDArray[np.int64],
    reference: NDArray[np.int64],
    prediction: NDArray[np.int64],
    n_reference: int,
    n_prediction: int,
    limit: int,
) -> tuple[bool, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    nothing = np.zeros(0, np.int64)
    if max(len(reference), len(prediction)) >= limit:
        return False, nothing, nothing, nothing
    # 1-based numbers, as in keys.
    rows, columns = np.empty(limit, np.int64), np.empty(limit, np.int64)
    is_row, is_column = np.zeros(n_reference + 1, np.bool_), np.zeros(n_prediction + 1, np.bool_)
    n_rows, n_columns = len(reference), len(prediction)
    rows[:n_rows], columns[:n_columns] = reference + 1, prediction + 1
    is_row[rows[:n_rows]], is_column[columns[:n_columns]] = True, True
    done_rows = done_columns = 0
    while done_rows < n_rows or done_columns < n_columns:
        while done_rows < n_rows:
            n_columns = _reach(keys, rows[done_rows], is_column, columns, n_columns)
            done_rows += 1
        while done_columns < n_columns:
            n_rows = _reach(turned, columns[done_columns], is_row, rows, n_rows)
            done_columns += 1
        if n_rows == limit or n_columns == limit:
            return False, nothing, nothing, nothing
    rows, columns = np.sort(rows[:n_rows]), np.sort(columns[:n_columns])
    first, last = np.searchsorted(keys, rows << 32), np.searchsorted(keys, (rows + 1) << 32)
    at = np.empty((last - first).sum(), np.int64)
    end = 0
    for row in range(n_rows):
        for k in range(first[row], last[row]):
            at[end] = k
            end += 1
    return True, rows - 1, columns - 1, at
