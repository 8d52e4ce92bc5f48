"""The page about the window has its panels and workspaces, and no others."""

from __future__ import annotations

import re
import sys

import pytest

from napari_panoptic.viewer.desk.nuclei import PARTS, WORKSPACES
from napari_panoptic.viewer.kit import keys
from tests.support.paths import REPOSITORY

DESK = (REPOSITORY / "docs" / "reference" / "desk.md").read_text("utf-8")
RAISING = re.compile(r"bring the (\w+) panel forward")
PANELS = {part.title: part.key for part in PARTS if part.key is not None} | {
    found[1]: line.key for line in keys.DESK_KEYS if (found := RAISING.fullmatch(line.meaning))
}


@pytest.fixture(autouse=True)
def on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write keys as the page does: on a Mac, Ctrl is another sign."""
    monkeypatch.setattr(sys, "platform", "linux")


def test_panels_are_described_under_their_keys() -> None:
    described = dict(re.findall(r"^#+ ([\w ]+) \(([^)]*)\)$", DESK, re.MULTILINE))
    assert described == {title: keys.key_text(key) for title, key in PANELS.items()}


def test_the_workspaces_are_those_of_the_window() -> None:
    (section,) = re.findall(r"^## Workspaces\n(.*?)^## ", DESK, re.DOTALL | re.MULTILINE)
    listed = re.findall(r"^(\d)\. \*\*(\w+)\*\*: ", section, re.MULTILINE)
    assert listed == [(str(n), at.name) for n, at in enumerate(WORKSPACES, 1)]
