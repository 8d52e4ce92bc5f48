"""Findings: what a reader noticed and handled, for lists and reports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from napari_panoptic.common.errors import LONGEST_MESSAGE, PanopticError, UnreadableFileError
from napari_panoptic.common.text import shortened


class FindingKind(StrEnum):
    """What a reader noticed and handled; nothing is dropped silently."""

    VANISHED = "vanished"  # an object without a single pixel left
    OVERLAPPING = "overlapping"  # pixels claimed by more than one object
    MISSING = "missing"  # a file that should be there and is not
    UNREADABLE = "unreadable"  # a file that is there and cannot be used
    CHANGED = "changed"  # a file that changed during the evaluation
    EXTRA = "extra"  # a file that belongs to no known region or class
    UNKNOWN_CLASS = "unknown-class"  # a class name that the scheme does not know
    UNKNOWN_COLOURS = "unknown-colours"  # mask pixels of a colour that no class has
    OUTSIDE_IMAGE = "outside-image"  # vertices or objects beyond the image
    SELF_CROSSING = "self-crossing"  # a polygon whose outline crosses itself
    DEGENERATE = "degenerate"  # a polygon with fewer than three different vertices
    NO_MPP = "no-mpp"  # micrometres per pixel unknown: distances stay in pixels
    FALLBACK = "fallback"  # read in a different format than requested or usual
    OUTSIDE_FOLDER = "outside-folder"  # a link out of the cohort's folder, not followed
    MALFORMED = "malformed"  # a line of a table with unexpected content
    BROKEN_PLUGIN = "broken-plugin"  # an installed package that should bring a format
    AMBIGUOUS_VARIABLE = "ambiguous-variable"  # a .mat file with several candidates
    CONVENTION = "convention"  # objects that may have to be read in another way
    LITTLE_OVERLAP = "little-overlap"  # objects of both sides that hardly lie over each other
    CLASS_ORDER = "class-order"  # numbers of classes that no file names


FINDING_TITLES: Mapping[FindingKind, str] = {
    FindingKind.VANISHED: "objects that vanished",
    FindingKind.OVERLAPPING: "overlaps",
    FindingKind.MISSING: "missing",
    FindingKind.UNREADABLE: "unreadable",
    FindingKind.CHANGED: "files that changed while they were being evaluated",
    FindingKind.EXTRA: "left over",
    FindingKind.UNKNOWN_CLASS: "unknown class names",
    FindingKind.UNKNOWN_COLOURS: "mask pixels in a colour that no class has",
    FindingKind.OUTSIDE_IMAGE: "vertices or objects beyond the image",
    FindingKind.SELF_CROSSING: "polygons whose outline crosses itself",
    FindingKind.DEGENERATE: "polygons with fewer than three different vertices",
    FindingKind.NO_MPP: "unknown pixel size",
    FindingKind.FALLBACK: "read in another format than usual",
    FindingKind.OUTSIDE_FOLDER: "links that lead out of the cohort's folder",
    FindingKind.MALFORMED: "lines of tables that are not what they should be",
    FindingKind.BROKEN_PLUGIN: "installed packages that do not work",
    FindingKind.AMBIGUOUS_VARIABLE: "files with several variables to choose from",
    FindingKind.CONVENTION: "objects that may have to be read in another way",
    FindingKind.LITTLE_OVERLAP: "little overlap of both sides",
    FindingKind.CLASS_ORDER: "numbers of classes without names",
}
"""Titles of the kinds for users; machine-readable files contain the kinds themselves."""


@dataclass(frozen=True)
class Finding:
    """Something odd that a reader handled and reports.

    Parameters
    ----------
    kind
        The kind of oddity.
    message
        One sentence for the user.
    path, region, team
        Where it was found, as far as known.
    class_name
        The class concerned, if any.
    count
        Number of objects, pixels or files concerned.
    object_ids
        Ids of the objects concerned, if any.
    """

    kind: FindingKind
    message: str
    path: Path | None = None
    region: str | None = None
    team: str | None = None
    class_name: str | None = None
    count: int = 1
    object_ids: tuple[int, ...] = ()

    @classmethod
    def unreadable(
        cls, error: PanopticError | OSError, *, region: str | None = None, team: str | None = None
    ) -> Finding:
        """Return the finding for an error that prevented the evaluation of a region or team.

        An ``OSError`` comes from a file that changes while it is being read.
        """
        if isinstance(error, OSError):
            path = None if error.filename is None else Path(os.fsdecode(error.filename))
            reason = error.strerror or str(error)
            error = UnreadableFileError(
                f"the file disappeared while it was being read ({reason}). Restore it and "
                f"evaluate again",
                path=path,
            )
        return cls(FindingKind.UNREADABLE, str(error), error.path, region, team)

    def __post_init__(self) -> None:
        """Shorten a message that quotes a long text from a file."""
        object.__setattr__(self, "message", shortened(self.message, LONGEST_MESSAGE))

    def as_record(self) -> dict[str, Any]:
        """Return a plain dictionary, for JSON."""
        record = asdict(self)
        record["kind"] = str(self.kind)
        record["path"] = None if self.path is None else str(self.path)
        record["object_ids"] = list(self.object_ids)
        return record
