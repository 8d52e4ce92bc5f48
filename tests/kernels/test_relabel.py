"""Lookups of labels against NumPy's, on random images."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.kernels import relabel, threads

seeds = pytest.mark.parametrize("seed", range(10))


@pytest.fixture(autouse=True)
def shared_out(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two threads work on every other image, small as they are."""
    if request.node.callspec.params.get("seed", 1) % 2:
        monkeypatch.setattr(threads, "THREADS_FROM_PX", 1)


def image(seed: int, highest: int = 99) -> NDArray[np.int32]:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 50, 2))
    return rng.integers(0, highest + 1, shape, np.int32).repeat(2, 1)


@seeds
def test_values_are_looked_up(seed: int) -> None:
    values, table = image(seed), np.random.default_rng(seed).permutation(100).astype(np.int32)
    expected = table[values]
    np.testing.assert_array_equal(relabel.look_up(table, values, values), expected)
    np.testing.assert_array_equal(values, expected)


@seeds
@pytest.mark.parametrize("highest", [3, 99, 300_000])
def test_labels_are_listed(seed: int, highest: int) -> None:
    values = image(seed, highest)
    expected = np.bincount(values.ravel(), minlength=highest + 1) > 0
    expected[0] = False
    np.testing.assert_array_equal(relabel.present_labels(values, highest), expected)
    low, present = relabel.list_labels(values, highest)
    assert low == 0
    np.testing.assert_array_equal(present, expected[: values.max() + 1])
    assert len(relabel.list_labels(values, int(values.max()) - 1)[1]) == 0
    values[-1, -1] = -7
    low, present = relabel.list_labels(values, highest)
    assert (low, len(present)) == (-7, 0)


@seeds
def test_objects_are_laid_over_others(seed: int) -> None:
    flat, index = image(seed, 2), image(seed, 1)[:, ::-1].copy()
    expected = np.where(index > 0, index + 40, flat)
    taken = relabel.lay_over(flat, index, 40)
    np.testing.assert_array_equal(flat, expected)
    assert taken == ((image(seed, 2) > 0) & (index > 0)).sum()


@seeds
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_ids_have_their_numbers(seed: int, dtype: type) -> None:
    window = image(seed).astype(dtype) * dtype(3)
    ids = np.unique(window)[::2].astype(np.int64)
    numbers_of = np.random.default_rng(seed).permutation(len(ids)).astype(np.int32)
    places = np.full(303, -1, np.int32)
    places[ids] = numbers_of
    expected = places[window.astype(np.int64)]
    for find in (
        lambda numbers: relabel.look_up_ids(window, places, numbers),
        lambda numbers: relabel.search_ids(window, ids, numbers_of, numbers),
    ):
        numbers = np.zeros_like(expected)
        assert find(numbers) == (expected < 0).any()
        np.testing.assert_array_equal(numbers, expected)
    runs = [row[np.append(True, row[1:] != row[:-1])] for row in window]
    np.testing.assert_array_equal(relabel.run_values(window), np.concatenate(runs))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 0.5, 2.0**31, -(2.0**31) - 1])
def test_channels_of_whole_numbers_are_split(odd: float) -> None:
    pixels = np.arange(24.0).reshape(2, 3, 4)
    pixels[0, 1, 2], pixels[1, 2, 3] = -(2.0**31), 2.0**31 - 1
    np.testing.assert_array_equal(relabel.split_channels(pixels), np.moveaxis(pixels, -1, 0))
    pixels[0, 0, 1] = odd
    assert relabel.split_channels(pixels) is None


@seeds
def test_labels_are_shifted(seed: int) -> None:
    before = image(seed)
    for first, by, last, to in ((40, -1, -1, -1), (40, 1, 99, 40), (1, 3, -1, -1)):
        lookup = np.arange(100, dtype=np.int32)
        lookup[first:] += by
        if last > 0:
            lookup[last] = to
        shifted = before.copy()
        relabel.shift_labels(shifted, first, by, last, to)
        np.testing.assert_array_equal(shifted, lookup[before])
