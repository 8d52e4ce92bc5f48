"""The page about the files of a review has the quantities that there are."""

from __future__ import annotations

import re

from napari_panoptic.review.plan.corrected import QUANTITIES
from tests.support.paths import REPOSITORY

PAGE = (REPOSITORY / "docs" / "reference" / "review-files.md").read_text("utf-8")


def test_the_page_has_the_quantities() -> None:
    assert re.findall(r"^\| `([a-z0-9-]+)` \| .*\|$", section("Estimates"), re.MULTILINE) == [
        str(quantity) for quantity in QUANTITIES
    ]


def section(title: str) -> str:
    """Return what stands below a heading, up to the next one."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]
