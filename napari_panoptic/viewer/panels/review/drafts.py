"""Tags and notes that were typed without a verdict, kept until one is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from napari_panoptic.viewer.state.preferences import PREFERENCES

ObjectName = tuple[str, str, str, str, int]
"""Reviewer, region, team, side and id of an object."""


class Drafts:
    """The drafts of a cohort, by object.

    Parameters
    ----------
    root
        The cohort's folder; drafts are not remembered where None.
    """

    def __init__(self, root: Path | None = None) -> None:
        self._root = root
        self._texts: dict[ObjectName, tuple[str, str]] = {}
        self._is_written = True

    @classmethod
    def read(cls, root: Path) -> Drafts:
        """Return the drafts that are remembered for a cohort."""
        drafts = cls(root)
        for line in PREFERENCES.drafts(root):
            if _is_draft(line):
                *texts, id_, tag, note = line
                drafts._texts[(*texts, id_)] = tag, note
        return drafts

    def of(self, name: ObjectName) -> tuple[str, str] | None:
        """Return tag and note of an object; None if nothing was typed."""
        return self._texts.get(name)

    def put(self, name: ObjectName, details: tuple[str, str]) -> None:
        """Set tag and note of an object."""
        self._texts[name] = details
        self._is_written = False

    def forget(self, name: ObjectName) -> None:
        """Remove the draft of an object."""
        if self._texts.pop(name, None) is not None:
            self._is_written = False

    def give_to(self, reviewer: str) -> None:
        """Assign the drafts that were typed before the reviewer was named."""
        unnamed = {name: text for name, text in self._texts.items() if not name[0]}
        for name, details in unnamed.items():
            self.forget(name)
            self.put((reviewer, *name[1:]), details)

    def write(self) -> None:
        """Remember the drafts where they changed."""
        if self._root is not None and not self._is_written:
            lines = [[*name, *details] for name, details in self._texts.items()]
            PREFERENCES.keep_drafts(self._root, lines)
            self._is_written = True


def _is_draft(line: Any) -> bool:
    kinds = (str, str, str, str, int, str, str)
    return (
        isinstance(line, list)
        and len(line) == len(kinds)
        and all(isinstance(value, kind) for value, kind in zip(line, kinds, strict=True))
    )
