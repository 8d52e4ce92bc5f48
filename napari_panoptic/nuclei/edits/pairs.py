"""The pairs of objects that share pixels, kept in order while pixels change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled
from napari_panoptic.nuclei.overlap import OverlapTable, SideTable

_LOW = np.int64(0xFFFFFFFF)
# Room for so many more, where values come to be.
_SPARE = 1024
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
    place_reference, place_prediction
        int32 (m,): where these rows stand in `reference` and `prediction`.
    intersection, void_intersection
        int64 (m,): as there.
    """

    reference: NDArray[np.int64]
    prediction: NDArray[np.int64]
    pair_reference: NDArray[np.int32]
    pair_prediction: NDArray[np.int32]
    place_reference: NDArray[np.int32]
    place_prediction: NDArray[np.int32]
    intersection: NDArray[np.int64]
    void_intersection: NDArray[np.int64]


class _LiveColumn:
    """Values in a row that change, come and go in place."""

    def __init__(self, values: Column) -> None:
        self._length = len(values)
        self._store = np.empty(self._length + _SPARE, values.dtype)
        self.values[:] = values

    @property
    def values(self) -> Column:
        """All values, until the next change."""
        return self._store[: self._length]

    def insert(self, at: NDArray[np.int64], values: Column) -> None:
        """Put values before places, which ascend."""
        length = self._length + len(at)
        if length > len(self._store):
            store = np.empty(length + _SPARE, self._store.dtype)
            store[: self._length] = self.values
            self._store = store
        _insert(self._store, self._length, at, values)
        self._length = length

    def delete(self, at: NDArray[np.int64]) -> None:
        """Leave places out, which ascend."""
        _delete(self.values, at)
        self._length -= len(at)


class LivePairs:
    """The pairs of an overlap table under edit.

    Parameters
    ----------
    table
        The pairs to start from; not changed.
    """

    def __init__(self, table: OverlapTable) -> None:
        keys = _key(table.pair_reference + 1, table.pair_prediction + 1)
        self._keys, self._turned = _LiveColumn(keys), _LiveColumn(np.sort(_turned(keys)))
        self._shared = _LiveColumn(table.intersection)
        self._void_shared = _LiveColumn(table.void_intersection)
        # Copies for tables, as long as they are what they would be copied from.
        self._frozen_rows: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None
        self._frozen_shared: Column | None = None
        self._frozen_void_shared: Column | None = None

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
        gone, at, new = _add_to_known(
            (self._keys.values, self._shared.values, self._void_shared.values),
            (keys, change, void_change),
        )
        self._frozen_shared = None
        if len(at) or len(gone):
            self._frozen_rows = self._frozen_void_shared = None
        elif void_change.any():
            self._frozen_void_shared = None
        if len(at):
            self._insert(at, keys[new], change[new], void_change[new])
        if len(gone):
            self._delete(gone)

    def table(self, reference: SideTable, prediction: SideTable) -> OverlapTable:
        """Return the pairs as they are now, with what is known of the objects."""
        if self._frozen_rows is None:
            self._frozen_rows = _rows(self._keys.values)
        if self._frozen_shared is None:
            self._frozen_shared = self._shared.values.copy()
        if self._frozen_void_shared is None:
            self._frozen_void_shared = self._void_shared.values.copy()
        return OverlapTable(
            reference,
            prediction,
            *self._frozen_rows,
            self._frozen_shared,
            self._frozen_void_shared,
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
        keys = self._keys.values
        found, rows, columns = _joined(
            keys, self._turned.values, reference, prediction, *numbers, limit
        )
        if not found:
            return None
        pairs = _pairs_among(keys, self._shared.values, self._void_shared.values, rows, columns)
        return Joined(rows, columns, *pairs)

    def _insert(
        self,
        at: NDArray[np.intp],
        keys: NDArray[np.int64],
        shared: NDArray[np.int64],
        void_shared: NDArray[np.int64],
    ) -> None:
        self._keys.insert(at, keys)
        self._shared.insert(at, shared)
        self._void_shared.insert(at, void_shared)
        turned = np.sort(_turned(keys))
        self._turned.insert(np.searchsorted(self._turned.values, turned), turned)

    def _delete(self, at: NDArray[np.intp]) -> None:
        turned = np.sort(_turned(self._keys.values[at]))
        self._turned.delete(np.searchsorted(self._turned.values, turned))
        for column in (self._keys, self._shared, self._void_shared):
            column.delete(at)


# Numbers below are unsigned: a kernel asks of signed ones whether they count from the end.


@compiled
def _insert(store: Column, length: int, at: NDArray[np.int64], values: Column) -> None:
    """Put values before places of the first `length`, which ascend; there is room for them."""
    end = np.uint64(length)
    for k in range(len(at) - 1, -1, -1):
        begin, by = np.uint64(at[k]), np.uint64(k + 1)
        place = end
        while place > begin:
            place -= np.uint64(1)
            store[place + by] = store[place]
        store[begin + np.uint64(k)] = values[k]
        end = begin


@compiled
def _delete(column: Column, at: NDArray[np.int64]) -> None:
    """Let what follows places, which ascend, move up."""
    for k in range(len(at)):
        end = np.uint64(at[k + 1] if k + 1 < len(at) else len(column))
        by = np.uint64(k + 1)
        for place in range(np.uint64(at[k] + 1), end):
            column[place - by] = column[place]


@compiled
def _add_to_known(
    pairs: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    changes: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Add to the pairs that are there.

    Returns
    -------
    gone
        int64, ascending: the places of pairs that share nothing any more, once the new
        pairs are among them.
    at
        int64, ascending: before which places the new pairs belong.
    new
        int64: which of the changes these are.
    """
    known, shared, void_shared = pairs
    keys, change, void_change = changes
    gone, at, new = (
        np.empty(len(keys), np.int64),
        np.empty(len(keys), np.int64),
        np.empty(len(keys), np.int64),
    )
    n_gone = n_new = 0
    for k in np.argsort(keys):
        place = np.searchsorted(known, keys[k])
        if place < len(known) and known[place] == keys[k]:
            shared[place] += change[k]
            void_shared[place] += void_change[k]
            if shared[place] == 0:
                gone[n_gone] = place + n_new
                n_gone += 1
        elif change[k] > 0:
            at[n_new], new[n_new] = place, k
            n_new += 1
    return gone[:n_gone], at[:n_new], new[:n_new]


def _key(reference: NDArray[np.integer], prediction: NDArray[np.integer]) -> NDArray[np.int64]:
    return (reference.astype(np.int64) << 32) | prediction.astype(np.int64)


def _high(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    return keys >> 32


@compiled
def _rows(keys: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the rows of reference and prediction, counted from 0."""
    reference, prediction = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
    for k in range(len(keys)):
        reference[k], prediction[k] = (keys[k] >> 32) - 1, (keys[k] & _LOW) - 1
    return reference, prediction


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
) -> tuple[bool, NDArray[np.int64], NDArray[np.int64]]:
    nothing = np.zeros(0, np.int64)
    if max(len(reference), len(prediction)) >= limit:
        return False, nothing, nothing
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
            return False, nothing, nothing
    return True, np.sort(rows[:n_rows]) - 1, np.sort(columns[:n_columns]) - 1


@compiled
def _pairs_among(
    keys: NDArray[np.int64],
    shared: NDArray[np.int64],
    void_shared: NDArray[np.int64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> tuple[
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int64],
]:
    """Return the pairs of some rows, all of whose columns are given, as `Joined` has them."""
    first = np.searchsorted(keys, (rows + 1) << 32)
    last = np.searchsorted(keys, (rows + 2) << 32)
    n = (last - first).sum()
    pair_row, pair_column = np.empty(n, np.int32), np.empty(n, np.int32)
    place_row, place_column = np.empty(n, np.int32), np.empty(n, np.int32)
    pair_shared, pair_void_shared = np.empty(n, np.int64), np.empty(n, np.int64)
    end = 0
    for row in range(len(rows)):
        for k in range(first[row], last[row]):
            column = (keys[k] & _LOW) - 1
            pair_row[end], pair_column[end] = rows[row], column
            place_row[end], place_column[end] = row, np.searchsorted(columns, column)
            pair_shared[end], pair_void_shared[end] = shared[k], void_shared[k]
            end += 1
    return pair_row, pair_column, place_row, place_column, pair_shared, pair_void_shared
