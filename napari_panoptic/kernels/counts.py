"""Rows of counted objects and tables of counted pairs, for compiled kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled

# Columns of a row of counts.
AREA, SUM_Y, SUM_X, VOID_AREA, VOID_SUM_Y, VOID_SUM_X = 0, 1, 2, 3, 4, 5
Y0, X0, Y1, X1, FIRST = 6, 7, 8, 9, 10
FAR = np.int64(1) << 40
# From so many places on a table doubles when it is full; below, it grows faster.
_LARGE = 1 << 18
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

# Columns of a place in a pair table.
KEY, TOTAL, IN_VOID = 0, 1, 2

PairCounts = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Keys ``reference << 32 | prediction`` of pairs; shared pixels; those of them in the void."""

PairTable = NDArray[np.int64]
"""An open-addressing table of pairs, int64 (m, 3), m a power of two: KEY (one more than
the pair's key, 0 for a free place), TOTAL and IN_VOID, shared pixels as in PairCounts."""


def blank_rows(n: int) -> NDArray[np.int64]:
    """Make rows of objects without a pixel, int64 (n, 11)."""
    rows = np.zeros((n, 11), np.int64)
    rows[:, [Y0, X0, FIRST]] = FAR
    return rows


@compiled
def pair_table(size: int) -> PairTable:
    """Make an empty table; its size is a power of two."""
    return np.zeros((size, 3), np.int64)


@compiled
def pair_key(reference: np.int32, prediction: np.int32) -> np.int64:
    """Return the key of a pair: one more than its two numbers, so that 0 marks a free place."""
    return ((np.int64(reference) << 32) | np.int64(prediction)) + 1


@compiled
def place_of(table: PairTable, key: np.int64) -> np.int64:
    """Find a key's place in an open-addressing table, or the free place for it."""
    mask = len(table) - 1
    # Fibonacci hashing: neighbouring pairs of labels spread over the table.
    place = np.int64((np.uint64(key) * _GOLDEN) >> np.uint64(32)) & mask
    while table[place, KEY] != 0 and table[place, KEY] != key:
        place = (place + 1) & mask
    return place


@compiled
def add_to_pair(table: PairTable, key: np.int64, total: np.int64, in_void: np.int64) -> np.int64:
    """Add shared pixels to a pair; return 1 where it is new to the table."""
    place = table[place_of(table, key)]
    is_new = place[KEY] == 0
    place[KEY] = key
    place[TOTAL] += total
    place[IN_VOID] += in_void
    return np.int64(is_new)


@compiled
def with_room(table: PairTable, used: int, new: int) -> PairTable:
    """Return a table with room for so many new pairs: itself, or a larger one with its pairs."""
    size = len(table)
    while 2 * (used + new) > size:
        # Large ones only double: they count in memory.
        size *= 4 if size < _LARGE else 2
    if size == len(table):
        return table
    larger = pair_table(size)
    for old in range(len(table)):
        if table[old, KEY] != 0:
            add_to_pair(larger, table[old, KEY], table[old, TOTAL], table[old, IN_VOID])
    return larger


@compiled
def filled(table: PairTable) -> PairCounts:
    """List what a table holds, in the order of its places."""
    at = np.flatnonzero(table[:, KEY])
    return table[at, KEY] - 1, table[at, TOTAL], table[at, IN_VOID]
