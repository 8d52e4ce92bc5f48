"""The pages about the window have its keys, panels and workspaces, and no others."""

from __future__ import annotations

import re
import sys

import pytest

from napari_panoptic.viewer.desk.nuclei import PARTS, WORKSPACES
from napari_panoptic.viewer.kit import keys
from napari_panoptic.viewer.kit.keys import Shortcut, key_sections
from tests.support.paths import REPOSITORY

REFERENCE = REPOSITORY / "docs" / "reference"
KEYS = (REFERENCE / "keys.md").read_text("utf-8")
DESK = (REFERENCE / "desk.md").read_text("utf-8")
PANEL = re.compile(r"bring the (\w+) panel forward")
WITHOUT_KEY = (
    keys.EXPORT_OBJECTS,
    keys.TOGGLE_OVERVIEW,
    keys.OPEN_COHORT,
    keys.COPY_LINK,
    keys.OPEN_LINK,
)


def section(page: str, title: str) -> str:
    """Return what stands below a heading, up to the next one."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]


def rows(title: str) -> set[tuple[str, str]]:
    """Return key and action of each line of a list; a line can have several keys."""
    lines = re.findall(r"^- (.+?): (.+)$", section(KEYS, title), flags=re.MULTILINE)
    return {(key, action) for named, action in lines for key in named.split(", ")}


def is_of_panel(line: Shortcut) -> bool:
    """Return whether a key only brings a panel forward."""
    return PANEL.fullmatch(line.meaning) is not None


LISTED = key_sections(
    [(part.title, (*part.single_keys, *(line for line, _ in part.shortcuts()))) for part in PARTS]
)
PANELS = {part.key: part.title for part in PARTS if part.key is not None} | {
    line.key: PANEL.findall(line.meaning)[0] for line in keys.DESK_KEYS if is_of_panel(line)
}


@pytest.fixture(autouse=True)
def on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write keys as the page does: on a Mac, Ctrl is another sign."""
    monkeypatch.setattr(sys, "platform", "linux")


@pytest.mark.parametrize(("title", "lines"), LISTED, ids=[title for title, _ in LISTED])
def test_the_page_has_the_keys_of_a_section(title: str, lines: tuple[Shortcut, ...]) -> None:
    own = {(line.text, line.meaning) for line in lines if line.key and not is_of_panel(line)}
    assert rows(title) == own


def test_the_page_has_no_other_section() -> None:
    others = {"Panels", "Commands without a key", "On the offline review page"}
    assert set(re.findall(r"^## (.*)$", KEYS, re.MULTILINE)) == {t for t, _ in LISTED} | others


def test_the_page_has_the_keys_of_the_panels() -> None:
    listed = re.findall(r"(\S+) (\w+)(?=[,.])", section(KEYS, "Panels").rpartition(": ")[2])
    assert set(listed) == {(keys.key_text(key), title) for key, title in PANELS.items()}


def test_the_page_has_the_commands_without_a_key() -> None:
    of_parts = {line.meaning for _, lines in LISTED for line in lines if not line.key}
    listed = re.findall(r"^- (.*)$", section(KEYS, "Commands without a key"), re.MULTILINE)
    assert set(listed) == of_parts | {line.meaning for line in WITHOUT_KEY}


def test_panels_are_described_under_their_keys() -> None:
    described = dict(re.findall(r"^#+ (\w+) \(([^)]*)\)$", DESK, re.MULTILINE))
    assert described == {title: keys.key_text(key) for key, title in PANELS.items()}


def test_the_workspaces_are_those_of_the_window() -> None:
    listed = re.findall(r"^(\d)\. \*\*(\w+)\*\*: ", section(DESK, "Workspaces"), re.MULTILINE)
    assert listed == [(str(n), at.name) for n, at in enumerate(WORKSPACES, 1)]
