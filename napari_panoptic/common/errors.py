"""Errors and findings: what went wrong or was odd, where, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from napari_panoptic.common.visible import shortened, visible

LONGEST_MESSAGE = 2000
"""Longest error message in characters; longer ones lose their middle."""
LONGEST_WORD = 200
"""Longest word that a message quotes from a file, in characters."""


class PanopticError(Exception):
    """Base of every error that this package raises on purpose.

    The message is one or two plain sentences for the user: what was expected, what
    was found, and what to do.

    Parameters
    ----------
    message
        What went wrong, in words for the user.
    path
        The file or folder concerned.
    region
        Name of the region concerned.
    object_id
        Id of the object concerned.
    """

    def __init__(
        self,
        message: str,
        *,
        path: Path | None = None,
        region: str | None = None,
        object_id: int | None = None,
    ) -> None:
        # A name quoted from a file can have any length; the remedy is at the end.
        self.message = shortened(message, LONGEST_MESSAGE)
        self.path = path
        self.region = region
        self.object_id = object_id
        super().__init__(self.message)

    def __str__(self) -> str:
        """Return the message with its place; names are made safe for terminals."""
        place = [f"{self.path}"] if self.path is not None else []
        if self.region is not None and (self.path is None or self.region not in self.path.name):
            place.append(f"region {self.region}")
        if self.object_id is not None:
            place.append(f"object {self.object_id}")
        text = f"{', '.join(place)}: {self.message}" if place else self.message
        # Escaped characters take more room.
        return shortened(visible(text, longest=2 * LONGEST_MESSAGE), 2 * LONGEST_MESSAGE)


class UnreadableFileError(PanopticError):
    """A file cannot be read, or its content is invalid."""


class UnwritableFileError(PanopticError):
    """A file cannot be written to the requested place, or in the requested format."""


class CohortError(PanopticError):
    """A folder is not a cohort, or its description cannot be understood."""


class OutsideLinksError(CohortError):
    """A folder is a cohort only together with files that links reach outside of it."""


class SettingsError(PanopticError, ValueError):
    """A setting has a value that it cannot have."""


class LabelError(PanopticError, ValueError):
    """Label arrays do not fit together, or are not label arrays."""


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
    FALLBACK = "fallback"  # read in a different form than requested or usual
    OUTSIDE_FOLDER = "outside-folder"  # a link out of the cohort's folder, not followed
    MALFORMED = "malformed"  # a line of a table that is not what it should be
    BROKEN_PLUGIN = "broken-plugin"  # an installed package that should bring a format
    AMBIGUOUS_VARIABLE = "ambiguous-variable"  # a .mat file with several candidates
    CONVENTION = "convention"  # outlines that may have to be read in another way


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
    FindingKind.FALLBACK: "read in another form than usual",
    FindingKind.OUTSIDE_FOLDER: "links that lead out of the cohort's folder",
    FindingKind.MALFORMED: "lines of tables that are not what they should be",
    FindingKind.BROKEN_PLUGIN: "installed packages that do not work",
    FindingKind.AMBIGUOUS_VARIABLE: "files with several variables to choose from",
    FindingKind.CONVENTION: "outlines that may have to be read in another way",
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
    def unreadable(cls, error: PanopticError, *, region: str, team: str | None = None) -> Finding:
        """Return the finding for a file that could not be read."""
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


def english_list(words: Sequence[object], *, limit: int = 8) -> str:
    """Join words with commas and an "and"; a long list is cut and counted, a long word cut.

    Examples
    --------
    >>> english_list(["a", "b", "c"])
    'a, b and c'
    """
    texts = [shortened(str(word), LONGEST_WORD) for word in words]
    if len(texts) > limit:
        return f"{', '.join(texts[:limit])} and {len(texts) - limit} more"
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def no_such(what: str, name: str, known: Sequence[str]) -> str:
    """Return a message that a name is unknown, with similar names or all known ones."""
    if not known:
        return f"there is no {what} '{name}': this cohort has no {what}s"
    if close := similar(name, known):
        return f"there is no {what} '{name}' in this cohort; did you mean {' or '.join(close)}?"
    return f"there is no {what} '{name}' in this cohort; it has {english_list(known)}"


def similar(name: str, known: Sequence[str]) -> list[str]:
    """Return up to three known names similar to a name, the most similar first."""
    import difflib

    # Case is ignored.
    by_folded: dict[str, list[str]] = {}
    for each in known:
        by_folded.setdefault(each.casefold(), []).append(each)
    close = difflib.get_close_matches(name.casefold(), list(by_folded), n=3)
    return [each for folded in close for each in by_folded[folded]][:3]


def checked_name(option: str, name: str, name_of: Callable[[str], str]) -> str:
    """Return a name given to an option after a check that the cohort has it.

    Raises
    ------
    SettingsError
        If the cohort does not have it; the message names the option.
    """
    try:
        return name_of(name)
    except CohortError as error:
        raise SettingsError(f"{option}: {error}") from error
