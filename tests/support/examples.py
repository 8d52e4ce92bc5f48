"""How many examples tests try: some in each run, all with the tests that are marked as long."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

WHOLE, QUICK = 100, 30
"""Examples that Hypothesis tries by default: with the long tests, and without them."""
FEW = 10
"""Seeds and examples of which all are tried in each run."""


def examples(number: int) -> int:
    """Return how many examples Hypothesis tries where it tries `number` with the long tests."""
    return min(number, max(FEW, number * settings().max_examples // WHOLE))


def seeds(number: int) -> list[Any]:
    """Return the seeds below `number`: a quarter for each run, the others marked as long."""
    n_quick = max(FEW, number // 4)
    return [
        seed if seed < n_quick else pytest.param(seed, marks=pytest.mark.long)
        for seed in range(number)
    ]
