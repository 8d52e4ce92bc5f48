"""Doubts about a folder, the settings that remove them, and counts of what was recognised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import english_list, no_such
from napari_panoptic.io.cohorts.description_edits import Key, toml_key, toml_text

REFERENCE = "annotation"
"""The annotation, where names of sides and teams are expected."""


@dataclass(frozen=True)
class Fix:
    """A setting that removes a doubt."""

    #: Its name on the command line.
    name: str
    #: Label of the button.
    label: str
    #: Entries to write into the ``cohort.toml``; a mapping adds to the existing one.
    settings: tuple[tuple[Key, Any], ...]

    @property
    def lines(self) -> list[str]:
        """The settings, as a ``cohort.toml`` has them."""
        return [f"{toml_key(key)} = {toml_text(value)}" for key, value in self.settings]


@dataclass(frozen=True)
class Doubt:
    """Something that makes the figures of a cohort doubtful."""

    #: Unique among the doubts of a folder: the kind, and the team or class.
    name: str
    #: One or two sentences for the user.
    message: str
    #: The settings that remove it, the best first; empty if only other files do.
    fixes: tuple[Fix, ...] = ()
    #: Whether the first of them is proposed, so that no choice is needed.
    is_clear: bool = True

    def fix(self, name: str | None = None) -> Fix:
        """Return a setting by its name; the proposed one where None.

        Raises
        ------
        SettingsError
            If there is none of this name, or none is proposed.
        """
        if not self.fixes:
            raise SettingsError(f"no setting removes the doubt '{self.name}': {self.message}")
        known = [fix.name for fix in self.fixes]
        if name is None and not self.is_clear:
            choices = english_list([f"{self.name}={each}" for each in known])
            raise SettingsError(f"'{self.name}' needs a choice; give one of {choices}")
        found = [fix for fix in self.fixes if name in (None, fix.name)]
        if not found:
            raise SettingsError(no_such("choice", str(name), known))
        return found[0]


@dataclass(frozen=True)
class SideCount:
    """The recognised files of one side."""

    #: ``images``, `REFERENCE`, or the team.
    name: str
    #: The formats of the files.
    forms: tuple[str, ...]
    #: The number of regions with files, and how many of them have a partner: an annotation for
    #: images and predictions, an image or a prediction for annotations.
    found: int
    matched: int
    #: The number of regions of the cohort without files.
    missing: int
    #: The number of predicted regions and files that the cohort does not have.
    unused: int
    #: The number of objects of each class in the regions that were read; None for images.
    objects: Mapping[str, int] | None = None


@dataclass(frozen=True)
class InspectedSide:
    """The files whose reading a setting changes."""

    #: ``reference`` or ``predictions``.
    side: str
    #: The team of the predictions; None if the setting is for the whole side.
    team: str | None
    #: The team, or `REFERENCE`.
    name: str

    @property
    def in_words(self) -> str:
        """The side in a sentence."""
        return f"the {REFERENCE}" if self.name == REFERENCE else self.name

    @property
    def other(self) -> str:
        """The side that its objects are compared with."""
        return "predictions" if self.name == REFERENCE else "annotation"

    def fix(self, key: str, value: Any, label: str) -> Fix:
        """Return a rule by which the files are read."""
        own: Any = value if self.team is None else {self.team: value}
        text = toml_text(value).strip('"')
        return Fix(text, label, ((("files", self.side, key), own),))


def count_rows(counts: Sequence[SideCount]) -> tuple[list[str], list[list[str]]]:
    """Return a header, and a row of texts for each side, the objects last (without a header)."""
    header = ["", "Regions", "Matched", "Without file", "Not used", "Format"]
    rows = []
    for side in counts:
        numbers = (side.found, side.matched, side.missing, side.unused)
        objects = "" if side.objects is None else "no objects"
        if side.objects:
            classes = ", ".join(f"{name} {n}" for name, n in side.objects.items() if n)
            objects = f"{sum(side.objects.values())} ({classes})"
        rows.append([side.name, *map(str, numbers), ", ".join(side.forms), objects])
    return header, rows
