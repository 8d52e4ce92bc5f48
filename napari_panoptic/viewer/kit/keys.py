"""The one table of keys: their bindings, and the texts of the key list."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Shortcut:
    """A key and its effect."""

    #: As napari writes it: ``n``, ``Shift-n``, ``Alt-1``.
    key: str
    #: Its effect, in a few words.
    meaning: str
    #: Id of the command in napari's palette; empty if it is only a key.
    action: str = ""

    @property
    def text(self) -> str:
        """The key as it is written for people."""
        return key_text(self.key)

    @property
    def title(self) -> str:
        """The line as a title of a command: meaning, then key."""
        words = self.meaning[:1].upper() + self.meaning[1:]
        return f"{words} ({self.text})" if self.key else words


DESK_KEYS: tuple[Shortcut, ...] = (
    Shortcut("n", "next failure, also of other regions", "next_failure"),
    Shortcut("Shift-n", "previous failure", "previous_failure"),
    Shortcut("j", "next region", "next_region"),
    Shortcut("k", "previous region", "previous_region"),
    Shortcut("f", "filter the regions by name or patient", "filter_regions"),
    Shortcut("h", "objects as outlines, filled, hidden", "cycle_display"),
    Shortcut("q", "colours by status or by class", "toggle_colours"),
    Shortcut("w", "centre the selected object", "centre_selected"),
    Shortcut("Alt-x", "bring the Regions panel forward", "show_regions"),
    Shortcut("Alt-m", "bring the Metrics panel forward", "show_metrics"),
    Shortcut("Alt-o", "bring the Objects panel forward", "show_objects"),
)
"""Keys of the desk itself; parts add their own."""

EXPORT_OBJECTS = Shortcut("", "export the listed objects", "export_objects")
TOGGLE_OVERVIEW = Shortcut("", "show or hide the overview", "toggle_overview")
OPEN_COHORT = Shortcut("", "open another cohort", "open_another_cohort")
COPY_LINK = Shortcut("", "copy a link to the selected object", "copy_link")
OPEN_LINK = Shortcut("", "open the link in the clipboard", "open_link")
"""Commands without a key: only in napari's palette."""

DETECTION_KEYS: tuple[Shortcut, ...] = (
    Shortcut("n", "next failure, in the order of the table", "next_failure"),
    Shortcut("Shift-n", "previous failure", "previous_failure"),
    Shortcut("j", "next frame", "next_frame"),
    Shortcut("k", "previous frame", "previous_frame"),
    Shortcut("f", "filter the frames by name or patient", "filter_frames"),
    Shortcut("h", "points shown or hidden", "toggle_points"),
    Shortcut("w", "centre the selected point", "centre_selected_point"),
    Shortcut("Ctrl-z", "undo the last change of points", "undo_points"),
    Shortcut("Ctrl-Shift-z", "make it again", "redo_points"),
)
"""Keys of the desk of detections."""

DETECTION_NAPARI_KEYS: tuple[Shortcut, ...] = (
    Shortcut("2", "add points to the active layer"),
    Shortcut("3", "select and move points of the active layer"),
    Shortcut("Delete", "delete the points selected"),
    Shortcut("Home", "reset the view"),
)
"""Some of napari's own keys that suit it."""

KEY_LIST = Shortcut("?", "this list")
"""Bound through Qt: where this character is on a keyboard differs from land to land."""

SORT_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Ctrl-Left", "sort by the column before"),
    Shortcut("Ctrl-Right", "sort by the column after"),
    Shortcut("Ctrl-Up", "sort ascending"),
    Shortcut("Ctrl-Down", "sort descending"),
)
"""Keys of every table that can be sorted."""

FILTER_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Down", "go to the rows that are left"),
    Shortcut("Enter", "choose the first of them"),
    Shortcut("Escape", "clear the filter; the keys go to the image"),
)
"""Keys of the field that filters rows by name."""

TABLE_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Space", "centre the selected object"),
    Shortcut("Enter", "centre the selected object"),
    Shortcut("Ctrl-c", "copy the selected rows of the object table"),
    Shortcut("Up", "the object above"),
    Shortcut("Down", "the object below"),
    *SORT_KEYS,
)
"""Keys of the object table and of the lists of the other panels."""

DETECTION_LIST_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Space", "centre the selected point"),
    Shortcut("Enter", "centre the selected point"),
    Shortcut("Up", "the line above"),
    Shortcut("Down", "the line below"),
    *SORT_KEYS,
)
"""Keys of the lists on the detections desk."""

RATED_KEYS: tuple[Shortcut, ...] = (
    Shortcut("j", "next case", "next_case"),
    Shortcut("k", "previous case", "previous_case"),
    Shortcut("f", "filter the cases", "filter_cases"),
    Shortcut("n", "next level", "next_level"),
    Shortcut("w", "next worst slice", "next_worst_slice"),
    Shortcut("Shift-w", "the one before", "previous_worst_slice"),
)
"""Keys of the desk of raters."""
RATED_LIST_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Up", "the case above"),
    Shortcut("Down", "the case below"),
    Shortcut("Enter", "draw the level, or the rater alone; again: all"),
    *SORT_KEYS,
)
"""Keys of its lists."""
RATED_NAPARI_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Left", "previous slice"),
    Shortcut("Right", "next slice"),
    Shortcut("Home", "reset the view"),
)
"""Some of napari's own keys that suit that desk."""
GALLERY_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Left", "the crop before"),
    Shortcut("Right", "the crop after"),
    Shortcut("Up", "the crop above"),
    Shortcut("Down", "the crop below"),
    Shortcut("PageUp", "a page up"),
    Shortcut("PageDown", "a page down"),
    Shortcut("Home", "the first crop"),
    Shortcut("End", "the last crop"),
    Shortcut("Enter", "go to the object"),
    Shortcut("Space", "go to the object"),
)

FIGURE_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Enter", "list only the objects behind it; again: all"),
    Shortcut("Space", "list only the objects behind it; again: all"),
)
"""Keys of figures and of cells that can be clicked."""

SLICE_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Enter", "show the failures of the slice in the gallery"),
    Shortcut("Space", "show the failures of the slice in the gallery"),
)
"""Keys of the list of slices."""

SLIDER_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Left", "a step down"),
    Shortcut("Right", "a step up"),
    Shortcut("Down", "a step down"),
    Shortcut("Up", "a step up"),
)
"""Keys of a slider of the settings."""

FIELD_KEYS: tuple[Shortcut, ...] = (
    Shortcut("Enter", "save tag and note with the verdict, or the number of nuclei in a square"),
    Shortcut("Shift-Enter", "another line in the note"),
    Shortcut("Escape", "leave the field; its text stays as a draft"),
)
"""Keys of the review's text fields."""

NAPARI_KEYS: tuple[Shortcut, ...] = (
    Shortcut("2", "paint on the active labels layer; not in Review"),
    Shortcut("1", "erase on the active labels layer; not in Review"),
    Shortcut("Home", "reset the view"),
)
"""Some of napari's own keys that the desk leaves alone."""

_ARROWS = {"Left": "←", "Right": "→", "Up": "↑", "Down": "↓"}
_WORDS = {**_ARROWS, "Return": "Enter", "PageUp": "Page ↑", "PageDown": "Page ↓", "Escape": "Esc"}
_MAC_WORDS = {**_WORDS, "Ctrl": "⌘", "Shift": "⇧", "Alt": "⌥"}


def key_text(key: str) -> str:
    """Write a key for people: ``Shift-n`` becomes ``Shift+N``."""
    words = _MAC_WORDS if sys.platform == "darwin" else _WORDS
    parts = [words.get(part, part) for part in key.split("-")]
    return "+".join(part.upper() if len(part) == 1 else part for part in parts)


def panel_shortcut(key: str, title: str) -> Shortcut:
    """Return the line about the key that brings a panel forward."""
    name = title.lower().replace(" ", "_")
    return Shortcut(key, f"bring the {title} panel forward", f"show_{name}")


def workspace_shortcut(number: int, name: str) -> Shortcut:
    """Return the line about the key that shows a workspace."""
    return Shortcut(f"Ctrl-{number}", f"show the workspace {name}", f"workspace_{name.lower()}")


def sections_of(
    desk: Sequence[Shortcut], lists: Sequence[Shortcut], filtered: str, napari: Sequence[Shortcut]
) -> list[tuple[str, Sequence[Shortcut]]]:
    """Return the key list of a desk without panels that have keys of their own.

    Parameters
    ----------
    desk, lists, napari
        Keys of the desk, of its lists, and those of napari that suit it.
    filtered
        What its list of places contains, as a plural.
    """
    return [
        ("Desk", (*desk, KEY_LIST)),
        ("In lists", lists),
        (f"In the filter of the {filtered}", FILTER_KEYS),
        ("napari", napari),
    ]


def key_sections(
    parts: Sequence[tuple[str, Sequence[Shortcut]]] = (),
) -> list[tuple[str, Sequence[Shortcut]]]:
    """Return the whole key list: title and keys of each section, empty ones left out.

    Parameters
    ----------
    parts
        Title and keys of the panels beside the table.
    """
    sections = [
        ("Desk", (*DESK_KEYS, KEY_LIST)),
        *parts,
        ("In the object table and other lists", TABLE_KEYS),
        ("In the filter of the regions", FILTER_KEYS),
        ("In the Failures panel", GALLERY_KEYS),
        ("In the list of slices", SLICE_KEYS),
        ("On a metric or a cell of a matrix", FIGURE_KEYS),
        ("On a slider", SLIDER_KEYS),
        ("In the fields of the review", FIELD_KEYS),
        ("napari", NAPARI_KEYS),
    ]
    return [(title, keys) for title, keys in sections if keys]
