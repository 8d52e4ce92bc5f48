"""Counts of windows against NumPy's, on random images."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.kernels import counts
from tests.support.examples import seeds

HEIGHT, WIDTH, MOST = 30, 41, 9


def images(seed: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]:
    """Draw two images of objects from 1 to `MOST`, in runs of a few pixels, and a void."""
    rng = np.random.default_rng(seed)
    sides = (rng.integers(0, MOST + 1, (HEIGHT, WIDTH)).repeat(3, 1)[:, :WIDTH] for _ in range(2))
    a, b = (np.ascontiguousarray(side, np.int32) for side in sides)
    return a, b, (rng.random((HEIGHT, WIDTH)) < 0.3).astype(np.uint8)


def counted(
    a: NDArray[np.int32], b: NDArray[np.int32], void: NDArray[np.uint8], corner: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], counts.Pairs]:
    rows = counts.blank_rows(MOST + 1), counts.blank_rows(MOST + 1)
    runs = counts.count_window(a, b, void, corner, 100, 1, *rows)
    return *rows, counts.sum_runs(runs, MOST + 1, MOST + 1)


def plain_row(
    own: NDArray[np.bool_], void: NDArray[np.uint8], corner: tuple[int, int]
) -> list[int]:
    y, x = np.nonzero(own)
    in_void = void[y, x] > 0
    y, x = y + corner[0], x + corner[1]
    sums = [len(y), y.sum(), x.sum(), in_void.sum(), y[in_void].sum(), x[in_void].sum()]
    box = [y.min(), x.min(), y.max() + 1, x.max() + 1, (100 * y + x).min()]
    return [int(value) for value in sums + box]


@pytest.mark.parametrize("seed", seeds(20))
def test_rows_and_pairs_are_those_of_single_pixels(seed: int) -> None:
    a, b, void = images(seed)
    rows, other_rows, pairs = counted(a, b, void, (5, 7))
    for image, found in ((a, rows), (b, other_rows)):
        for label in range(1, MOST + 1):
            assert found[label].tolist() == plain_row(image == label, void, (5, 7))
    keys, expected = np.unique(counts.pair_keys(a, b)[(a > 0) & (b > 0)], return_counts=True)
    np.testing.assert_array_equal(pairs.keys, keys)
    np.testing.assert_array_equal(pairs.shared, expected)
    i, j = counts.pair_rows(pairs.keys)
    in_void = [((a == p) & (b == q) & (void > 0)).sum() for p, q in zip(i, j, strict=True)]
    np.testing.assert_array_equal(pairs.void_shared, in_void)


@pytest.mark.parametrize("seed", range(10))
def test_windows_add_up_and_an_edit_is_a_difference(seed: int) -> None:
    a, b, void = images(seed)
    whole = counted(a, b, void, (0, 0))
    rows = counts.blank_rows(MOST + 1), counts.blank_rows(MOST + 1)
    found = counts.no_pairs()
    for y, sign in ((0, 1), (11, 1), (0, -1), (0, 1)):
        part = slice(y, 11 if y == 0 else HEIGHT)
        runs = counts.count_window(a[part], b[part], void[part], (y, 0), 100, sign, *rows)
        found = counts.add_pairs(found, counts.sum_runs(runs, MOST + 1, MOST + 1))
    np.testing.assert_array_equal(rows[0], whole[0])
    np.testing.assert_array_equal(rows[1], whole[1])
    for column, expected in zip(found, whole[2], strict=True):
        np.testing.assert_array_equal(column, expected)
