"""The question about a region that the guide for developers adds."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from napari_panoptic.display import regions
from napari_panoptic.display.regions.question import RegionQuestion, region_questions
from tests.support.paths import REPOSITORY

_GUIDE = (REPOSITORY / "docs" / "developers.md").read_text(encoding="utf-8")
(TOUCHING,) = (
    text
    for text in re.findall(r"^```python\n(.*?)^```$", _GUIDE, re.M | re.S)
    if "class Touching" in text
)


@contextmanager
def added_to_questions(folder: Path) -> Iterator[type[RegionQuestion]]:
    """Add the module of the guide to the folder of the questions, and return its question."""
    (folder / "touching.py").write_text(TOUCHING, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regions, "__path__", [*regions.__path__, str(folder)])
        region_questions.cache_clear()
        yield region_questions()["touching"]
    region_questions.cache_clear()
    sys.modules.pop("napari_panoptic.display.regions.touching", None)
