"""Dataclasses as JSON values: back with every digit, and nothing of another type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from napari_panoptic.common.records import decoded, encoded


class Kind(StrEnum):
    ONE = "one"


@dataclass(frozen=True, eq=False)
class Inner:
    kind: Kind
    sums: NDArray[np.int64]
    share: float
    path: Path | None = None


@dataclass(frozen=True, eq=False)
class Outer:
    names: tuple[str, ...]
    inner: Mapping[str, Inner]
    table: pd.DataFrame | None


OUTER = Outer(
    ("a", "b"),
    {"x": Inner(Kind.ONE, np.array([[1, 2], [3, 2**53 + 1]]), 0.1 + 0.2, Path("p"))},
    pd.DataFrame(
        {
            "n": pd.array([1, None], "Int64"),
            "f": [np.nan, 1 / 3],
            "s": ["t", ""],
            "missing": pd.Series(["t", None], dtype="str"),
            "object": pd.Series(["t", None], dtype="object"),
            "is": [True, False],
        }
    ),
)


def test_everything_comes_back_as_it_was() -> None:
    found = decoded(list[Outer], json.loads(json.dumps(encoded([OUTER]))))[0]
    assert found.names == OUTER.names
    inner, wanted = found.inner["x"], OUTER.inner["x"]
    assert (inner.kind, inner.share, inner.path) == (wanted.kind, wanted.share, wanted.path)
    assert inner.sums.dtype == np.int64
    np.testing.assert_array_equal(inner.sums, wanted.sums)
    pd.testing.assert_frame_equal(found.table, OUTER.table, check_exact=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"names": "ab"},
        {"names": [1]},
        {"inner": []},
        {"inner": {"x": {"kind": "two", "sums": [1], "share": 1.0}}},
        {"inner": {"x": {"kind": "one", "sums": ["a"], "share": 1.0}}},
        {"inner": {"x": {"kind": "one", "sums": [1], "share": True}}},
        {"inner": {"x": {"kind": "one", "sums": [1]}}},
        {"more": 1},
        *(
            {"table": [["n", dtype, [1]]]}
            for dtype in ("no type", "9" * 5000, "a", "int99", "i4,i4", "M8[ns]", "category", 5)
        ),
        *(
            {"inner": {"x": {"kind": "one", "sums": sums, "share": 1.0}}}
            for sums in ([1.5], [True], ["1"], [None], [2**63], [[1], [2.0]], [[1], [2, 3]])
        ),
        {"inner": {"x": {"kind": "one", "sums": [1], "share": 10**400}}},
        *(
            {"table": [["n", dtype, [value]]]}
            for dtype, values in (
                ("Int64", (1e300, 1.5, "1", True, 2**63)),
                ("int64", (1e300, 1.0, "1", True, None, 2**63)),
                ("uint8", (-1, 256)),
                ("float32", (1e300,)),
                ("float64", ("1", True, None, [1], 10**400)),
                ("bool", (1, 1.5, "", None)),
                ("str", (1, 1.5, True, [])),
                ("object", ([], {})),
            )
            for value in values
        ),
    ],
)
def test_other_values_are_refused(changes: dict[str, Any]) -> None:
    record = json.loads(json.dumps(encoded(OUTER)))
    with pytest.raises((TypeError, ValueError, LookupError)):
        decoded(Outer, record | changes)
