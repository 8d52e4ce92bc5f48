"""The one table of keys: what is bound, and what the key list says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Shortcut:
    """A key and what it does.

    Parameters
    ----------
    key
        As napari writes it: ``n``, ``Shift-n``, ``Alt-1``.
    meaning
        What it does, in a few words.
    """

    key: str
    meaning: str

    @property
    def text(self) -> str:
        """The key as it is written for people."""
        return key_text(self.key)


DESK_KEYS: tuple[Shortcut, ...] = (
    Shortcut("n", "next failure, in the order of the table"),
    Shortcut("Shift-n", "previous failure"),
    Shortcut("j", "next region"),
    Shortcut("k", "previous region"),
    Shortcut("h", "objects as outlines, filled, hidden"),
    Shortcut("q", "colours by status or by class"),
    Shortcut("w", "centre the selected object"),
)
"""Keys of the desk itself; parts add their own."""

KEY_LIST = Shortcut("?", "this list")
"""Bound through Qt: where this character is on a keyboard differs from land to land."""

TABLE_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Space", "in the table: centre the selected object"),
    Shortcut("Up", "in the table: the object above"),
    Shortcut("Down", "in the table: the object below"),
)

NAPARI_KEYS: tuple[Shortcut, ...] = (
    Shortcut("2", "paint on the active labels layer"),
    Shortcut("1", "erase on the active labels layer"),
    Shortcut("Ctrl-z", "undo an edit"),
    Shortcut("Ctrl-Shift-z", "redo an edit"),
    Shortcut("Home", "reset the view"),
)
"""Some of napari's own keys that the desk leaves alone."""

_WORDS = {"Ctrl": "Ctrl", "Shift": "Shift", "Alt": "Alt", "Up": "↑", "Down": "↓"}
_MAC_WORDS = {"Ctrl": "⌘", "Shift": "⇧", "Alt": "⌥", "Up": "↑", "Down": "↓"}


def key_text(key: str) -> str:
    """Write a key for people: ``Shift-n`` becomes ``Shift+N``."""
    words = _MAC_WORDS if sys.platform == "darwin" else _WORDS
    parts = [words.get(part, part) for part in key.split("-")]
    return "+".join(part.upper() if len(part) == 1 else part for part in parts)


def key_sections(
    parts: Sequence[tuple[str, Sequence[Shortcut]]] = (),
) -> list[tuple[str, Sequence[Shortcut]]]:
    """Give the whole key list: title and keys of each section, empty ones left out.

    Parameters
    ----------
    parts
        Title and keys of the panels beside the table.
    """
    sections = [
        ("Desk", (*DESK_KEYS, *TABLE_KEYS, KEY_LIST)),
        *parts,
        ("napari", NAPARI_KEYS),
    ]
    return [(title, keys) for title, keys in sections if keys]
