"""The compiled scanner against Python's own reading of numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from napari_panoptic.kernels import geojson as scanners
from tests.support.examples import examples


def read(text: str) -> tuple[float, int]:
    data = np.frombuffer(text.encode() + b'"', np.uint8)
    return scanners.number_at(data, 0)


def written_numbers(seed: int) -> Iterator[str]:
    """Write numbers of all lengths, among them many halfway between two floats."""
    generator = np.random.default_rng(seed)
    for _ in range(3000):
        whole = int(generator.integers(0, 10 ** int(generator.integers(1, 9))))
        decimals = "".join(generator.choice(list("0123456789"), generator.integers(0, 17)))
        yield f"{'-' if generator.random() < 0.2 else ''}{whole}.{decimals}0"
        # Between a float and the next, as far as 18 digits say it.
        value = float(generator.uniform(0, 10.0 ** int(generator.integers(-1, 5))))
        between = (int(value * 2**40) * 2 + 1) / 2**41
        yield f"{between:.{18 - len(str(int(between)))}f}"


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_those_of_python(seed: int) -> None:
    taken = 0
    for text in written_numbers(seed):
        value, end = read(text)
        if end > 0:
            taken += 1
            assert (value, end) == (float(text), len(text)), text
    assert taken > 5000


@settings(max_examples=examples(500), deadline=None)
@given(st.floats(-1e7, 1e7))
@example(0.00047676658427490726)
def test_shortest_forms_are_taken_exactly(value: float) -> None:
    text = repr(value)
    found, end = read(text)
    if "e" in text or end < 0:
        # What is left to Python: exponents, and digits beyond the eighteenth decimal.
        assert "e" in text or len(text.strip("-0.")) > 18 or len(text.partition(".")[2]) > 18
    else:
        assert found == value


@pytest.mark.parametrize(
    "text", ["", "-", ".", "1e3", "1E3", "nan", "inf", "--1", "1_0x", "536870913", "1" * 19, "٣"]
)
def test_what_is_not_plain_is_not_taken(text: str) -> None:
    assert read(text)[1] < 0 or read(text)[1] < len(text)


@pytest.mark.parametrize("text", ["+1", "01", "-01", ".5", "5.", "1e5", "0x1"])
def test_json_takes_no_more_than_json(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(text if text != "1e5" else "1e")
    end = read(text)[1]
    assert end < 0 or end < len(text)


def test_numbers_at_the_end_of_a_block_are_cut_off() -> None:
    data = np.frombuffer(b"12.5", np.uint8)
    assert scanners.number_at(data, 0)[1] == scanners.CUT_OFF
