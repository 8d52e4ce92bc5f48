"""Sorting inside kernels, and that no kernel uses numba's own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import napari_panoptic.kernels
from napari_panoptic.kernels.sorting import first_not_below, order_of, sort

FOLDER = Path(napari_panoptic.kernels.__file__).parent
# Numba makes all of these in functions whose names two processes can give to different code.
AVOIDED = {"sort", "argsort", "partition", "argpartition", "searchsorted", "unique", "median"}
AVOIDED |= {"percentile", "quantile", "nanmedian", "nanpercentile", "nanquantile", "digitize"}

numbers = st.lists(st.integers(-50, 50), max_size=200)


@settings(deadline=None)
@given(numbers)
def test_values_are_sorted(values: list[int]) -> None:
    for dtype in (np.int32, np.int64):
        array = np.array(values, dtype)
        sort(array)
        assert array.tolist() == sorted(values)


def test_long_arrays_are_sorted() -> None:
    array = np.random.default_rng(1).integers(0, 1 << 40, 30_000)
    expected = np.sort(array)
    sort(array)
    np.testing.assert_array_equal(array, expected)


@settings(deadline=None)
@given(numbers)
def test_the_order_is_that_of_the_keys(values: list[int]) -> None:
    keys = np.array(values, np.float64)
    order = order_of(keys)
    assert sorted(order.tolist()) == list(range(len(keys)))
    assert keys[order].tolist() == sorted(values)


@settings(deadline=None)
@given(numbers, st.integers(-60, 60))
def test_places_are_those_of_numpy(values: list[int], value: int) -> None:
    ascending = np.sort(np.array(values, np.int64))
    assert first_not_below(ascending, value) == np.searchsorted(ascending, value)


def sorting_calls(path: Path) -> Iterator[str]:
    """Yield each call in a compiled function of something that numba sorts by."""
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        if not any(isinstance(d, ast.Name) and d.id == "compiled" for d in function.decorator_list):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and node.attr in AVOIDED:
                yield f"{path.name}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_kernels_sort_by_themselves(path: Path) -> None:
    assert list(sorting_calls(path)) == []


def test_calls_are_found(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text("@compiled\ndef kernel(keys):\n    keys.sort()\n    return np.argsort(keys)\n")
    assert len(list(sorting_calls(path))) == 2
