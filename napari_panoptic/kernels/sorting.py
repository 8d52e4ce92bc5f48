"""Sorting inside kernels.

Kernels do not use numba's versions of `sort`, `argsort`, `partition` or `searchsorted`. Numba
renumbers these functions in each process, and cached kernels of two processes can contain
different ones under the same name; the linker then takes either for both, which gives wrong
results or ends the process (numba issue 10486).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.jit import compiled


@compiled
def sort(values: NDArray[Any]) -> None:
    """Sort values in place, by Shell's method: short arrays, as here, by insertion."""
    gap = 1
    while 3 * gap < len(values):
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(values)):
            value, k = values[i], i
            while k >= gap and values[k - gap] > value:
                values[k] = values[k - gap]
                k -= gap
            values[k] = value
        gap //= 3


@compiled
def order_of(keys: NDArray[Any]) -> NDArray[np.int64]:
    """Return the order of keys, ascending; equal keys in any order."""
    order = np.arange(len(keys))
    gap = 1
    while 3 * gap < len(keys):
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, len(keys)):
            index, k = order[i], i
            while k >= gap and keys[order[k - gap]] > keys[index]:
                order[k] = order[k - gap]
                k -= gap
            order[k] = index
        gap //= 3
    return order


@compiled
def first_not_below(ascending: NDArray[np.int64], value: int | np.int64) -> int:
    """Return the place of the first number that is not below a value; the length if all are."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
