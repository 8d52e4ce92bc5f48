"""The page about the files of a review has the columns that there are."""

from __future__ import annotations

import re

import pytest

from napari_panoptic.review.export import AGREEMENT_COLUMNS, VERDICT_COLUMNS
from napari_panoptic.review.plan.corrected import QUANTITIES
from napari_panoptic.review.plan.tables import (
    ESTIMATE_COLUMNS,
    ITEM_VERDICT_COLUMNS,
    PLAN_COLUMNS,
)
from tests.support.paths import REPOSITORY

PAGE = (REPOSITORY / "docs" / "reference" / "review-files.md").read_text("utf-8")


@pytest.mark.parametrize(
    "columns",
    [VERDICT_COLUMNS, AGREEMENT_COLUMNS, PLAN_COLUMNS, ITEM_VERDICT_COLUMNS, ESTIMATE_COLUMNS],
    ids=["verdicts", "agreement", "plan", "verdicts on items", "estimates"],
)
def test_the_page_has_the_columns(columns: tuple[str, ...]) -> None:
    plain = re.sub(r" \([^)]*\)", "", PAGE)  # without explanations
    assert ", ".join(columns) in plain


def test_the_page_has_the_quantities() -> None:
    assert re.findall(r"^\| `([a-z0-9-]+)` \| .*\|$", section("Estimates"), re.MULTILINE) == [
        str(quantity) for quantity in QUANTITIES
    ]


def section(title: str) -> str:
    """Return what stands below a heading, up to the next one."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]
