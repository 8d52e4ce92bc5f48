"""Rows of counted objects and tables of counted pairs, for compiled kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic._compiled import compiled

# Columns of a row of counts.
AREA, SUM_Y, SUM_X, VOID_AREA, VOID_SUM_Y, VOID_SUM_X = 0, 1, 2, 3, 4, 5
Y0, X0, Y1, X1, FIRST = 6, 7, 8, 9, 10
FAR = np.int64(1) << 40
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

PairCounts = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""An open-addressing table: keys, 0 for a free place; shared pixels; those in the void."""


def blank_rows(n: int) -> NDArray[np.int64]:
    """Make rows of objects without a pixel, int64 (n, 11)."""
    rows = np.zeros((n, 11), np.int64)
    rows[:, [Y0, X0, FIRST]] = FAR
    return rows


@compiled
def pair_counts(size: int) -> PairCounts:
    """Make an empty table; its size is a power of two."""
    return np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)


@compiled
def pair_key(reference: np.int32, prediction: np.int32) -> np.int64:
    """Give the key of a pair: one more than its two numbers, so that 0 marks a free place."""
    return ((np.int64(reference) << 32) | np.int64(prediction)) + 1


@compiled
def place_of(keys: NDArray[np.int64], key: np.int64) -> np.int64:
    """Find a key's place in an open-addressing table, or the free place for it."""
    mask = len(keys) - 1
    # Fibonacci hashing: neighbouring pairs of labels spread over the table.
    place = np.int64((np.uint64(key) * _GOLDEN) >> np.uint64(32)) & mask
    while keys[place] != 0 and keys[place] != key:
        place = (place + 1) & mask
    return place


@compiled
def grown(
    keys: NDArray[np.int64], total: NDArray[np.int64], in_void: NDArray[np.int64]
) -> PairCounts:
    """Move a hash table into one of four times the size."""
    new_keys, new_total, new_void = pair_counts(len(keys) * 4)
    for old in range(len(keys)):
        if keys[old] != 0:
            place = place_of(new_keys, keys[old])
            new_keys[place] = keys[old]
            new_total[place] = total[old]
            new_void[place] = in_void[old]
    return new_keys, new_total, new_void


@compiled
def filled(
    keys: NDArray[np.int64], total: NDArray[np.int64], in_void: NDArray[np.int64]
) -> PairCounts:
    """List what a table holds, without its free places; 0 is the key of (0, 0)."""
    at = np.flatnonzero(keys)
    return keys[at] - 1, total[at], in_void[at]
