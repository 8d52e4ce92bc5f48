"""Paths with placeholders: which files of a folder belong to which region, team, class."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from napari_panoptic.common.errors import CohortError, OutsideLinksError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import composed, counted, english_list, similar
from napari_panoptic.io.files.links import is_link, leads_out

FIELDS = ("patient", "region", "team", "class", "slide")
"""Names that can stand between braces in a pattern."""
MOST_IN_A_NAME = 4
"""Placeholders and ``*`` in the name of one folder or file: each multiplies the ways it can fit."""
ARRAY_FOLDERS = (".zarr",)
"""Endings of folders that hold one image each: for patterns they are files."""
_OF_SYSTEMS = frozenset(
    {
        *("thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "@eadir"),
        *("__macosx", "$recycle.bin", "system volume information", "lost+found"),
    }
)
"""Files and folders that Windows, macOS, Linux and network storage leave, beside hidden ones."""


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """Return a sort key under which region_2 comes before region_10."""
    parts = re.split(r"([0-9]+)", text.casefold())
    return [_number_key(part) if part.isdecimal() else (0, 0, part) for part in parts]


def _number_key(digits: str) -> tuple[int, int, str]:
    # Python refuses to make numbers of thousands of digits; more digits are a larger number.
    significant = digits.lstrip("0")
    return 1, len(significant), significant


@dataclass(frozen=True)
class Match:
    """A file or folder that fits a pattern."""

    #: Path of the file or folder.
    path: Path
    #: What the placeholders stand for, with letters as `composed` returns them.
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Pattern:
    """A path below a cohort's folder, with placeholders and ``*``.

    Subclasses may know other placeholders.

    Fixed parts are compared without regard to case. A placeholder or ``*``
    never reaches over a ``/``; the same placeholder stands for the same text
    everywhere in a path.

    Raises
    ------
    CohortError
        For unknown placeholders, too many of them in a name, and for paths that
        leave the folder.
    """

    #: Such as ``Teams/{team}/{region}_mask.png``.
    text: str

    known: ClassVar[tuple[str, ...]] = FIELDS

    @property
    def in_words(self) -> str:
        """The path for people: ``Teams/TEAM/REGION_mask.png``."""
        return re.sub(r"\{(\w+)\}", lambda field: field[1].upper(), self.text)

    def __post_init__(self) -> None:
        """Check that the pattern can be used."""
        if not self.text or self.text.startswith(("/", "\\")) or ":" in self.text:
            raise CohortError(f"a pattern is a path below the cohort's folder, found '{self.text}'")
        if ".." in re.split(r"[/\\]", self.text) or "**" in self.text:
            raise CohortError(
                f"a pattern cannot leave the cohort's folder or skip levels, found '{self.text}'"
            )
        unknown = set(re.findall(r"\{([^}]*)\}", self.text)) - set(self.known)
        if unknown or self.text.count("{") != self.text.count("}"):
            known = ", ".join(f"{{{name}}}" for name in self.known)
            raise CohortError(f"placeholders are {known}; found '{self.text}'")
        for part in self.parts:
            if part.count("{") + part.count("*") > MOST_IN_A_NAME:
                raise CohortError(
                    f"the name of a folder or file can have {MOST_IN_A_NAME} placeholders and * "
                    f"together, found '{part}'; write one * for several of them"
                )

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of folders and of the file."""
        return tuple(part for part in self.text.split("/") if part not in ("", "."))

    @property
    def fields(self) -> frozenset[str]:
        """The placeholders in use."""
        return frozenset(name for name in self.known if f"{{{name}}}" in self.text)

    @property
    def fixed(self) -> tuple[str, ...]:
        """The leading folders without placeholder or ``*``."""
        folders = self.parts[:-1]
        end = next((i for i, p in enumerate(folders) if "{" in p or "*" in p), len(folders))
        return folders[:end]

    def folder_of(self, name: str) -> Pattern | None:
        """Return the pattern of the folder named by a placeholder, None if a file is."""
        holders = [i for i, part in enumerate(self.parts[:-1]) if f"{{{name}}}" in part]
        return type(self)("/".join(self.parts[: holders[0] + 1])) if holders else None

    def files(self, listing: Listing) -> Iterator[Match]:
        """Find the files that fit, in natural order."""
        return self._walk(listing, listing.root, {}, 0, folders=False)

    def folders(self, listing: Listing) -> Iterator[Match]:
        """Find the folders that fit, in natural order."""
        return self._walk(listing, listing.root, {}, 0, folders=True)

    def _walk(
        self,
        listing: Listing,
        folder: Path,
        fields: Mapping[str, str],
        depth: int,
        *,
        folders: bool,
    ) -> Iterator[Match]:
        last = depth == len(self.parts) - 1
        expression = name_expression(self.parts[depth], fields)
        for entry in listing.entries(folder):
            if entry.is_folder != (folders or not last):
                continue
            if found := expression.fullmatch(composed(entry.path.name)):
                bound = {**fields, **_unmangled(found.groupdict())}
                if last:
                    yield Match(entry.path, bound)
                else:
                    yield from self._walk(listing, entry.path, bound, depth + 1, folders=folders)


@dataclass(frozen=True)
class Entry:
    """Something in a folder; what holds one image counts as a file, even if it is a folder."""

    path: Path
    is_folder: bool


@dataclass
class Listing:
    """The contents of a cohort's folders, each read once."""

    #: The cohort's folder.
    root: Path
    #: Whether links that lead out of the folder are followed: a cohort from another person could
    #: name any file of this machine.
    allow_outside: bool = False
    #: What could not be read, or was left out.
    findings: list[Finding] = field(default_factory=list)
    #: The links that were not followed.
    outside: list[Path] = field(default_factory=list)

    _known: dict[Path, tuple[Entry, ...]] = field(default_factory=dict)

    @property
    def within(self) -> Path | None:
        """The folder that links may not lead out of; None if they may lead anywhere."""
        return None if self.allow_outside else self.root

    def entries(self, folder: Path) -> tuple[Entry, ...]:
        """Return the entries of a folder, in natural order, without hidden and system ones."""
        if folder not in self._known:
            self._known[folder] = self._read(folder)
        return self._known[folder]

    def files_below(self, folder: Path) -> Iterator[Path]:
        """Yield every file in a folder and its folders."""
        for entry in self.entries(folder):
            if not entry.is_folder:
                yield entry.path
            elif not entry.path.is_symlink():
                yield from self.files_below(entry.path)

    def below(self, parts: tuple[str, ...]) -> Iterator[Path]:
        """Find the folders at a fixed place, without regard to case."""
        if not parts:
            yield self.root
            return
        for match in Pattern("/".join(parts)).folders(self):
            yield match.path

    def _read(self, folder: Path) -> tuple[Entry, ...]:
        try:
            with os.scandir(folder) as found:
                entries = [
                    Entry(folder / entry.name, _is_folder(entry))
                    for entry in found
                    if not is_of_system(entry.name) and self._is_wanted(folder, entry)
                ]
        except OSError as error:
            if folder == self.root:
                raise
            message = f"the folder cannot be read ({error.strerror}): nothing in it was used"
            self.findings.append(Finding(FindingKind.UNREADABLE, message, path=folder))
            return ()
        return tuple(sorted(entries, key=lambda entry: natural_key(entry.path.name)))

    def _is_wanted(self, folder: Path, entry: os.DirEntry[str]) -> bool:
        """Return whether an entry belongs to the cohort (no outside links, pipes or devices)."""
        path = folder / entry.name
        if is_link(entry) and not self.admits(path):
            return False
        # A broken link stays: its reader reports what is missing.
        is_special = not entry.is_dir() and not entry.is_file() and path.exists()
        if is_special:
            message = f"'{entry.name}' is a pipe, a socket or a device, and was left out"
            self.findings.append(Finding(FindingKind.EXTRA, message, path=path))
        return not is_special

    def admits(self, path: Path) -> bool:
        """Return whether a file may be read; note links out of the folder."""
        if self.within is None or not leads_out(path, self.within):
            return True
        if path not in self.outside:
            self.outside.append(path)
        return False


@contextmanager
def links_told(listing: Listing) -> Iterator[None]:
    """Mention links that were not followed in errors about a folder.

    Raises
    ------
    OutsideLinksError
        In place of a CohortError, where there are such links.
    """
    try:
        yield
    except CohortError as error:
        if not listing.outside:
            raise
        message = f"{error.message}. {_outside_text(listing)}"
        raise OutsideLinksError(message, path=listing.root) from error


def outside_findings(listing: Listing) -> Iterator[Finding]:
    """Report the links out of a folder that were not followed, all in one."""
    if links := listing.outside:
        message = _outside_text(listing)
        yield Finding(FindingKind.OUTSIDE_FOLDER, message, path=links[0], count=len(links))


def _outside_text(listing: Listing) -> str:
    names = [path.relative_to(listing.root).as_posix() for path in listing.outside]
    return (
        f"{counted(len(names), 'link leads', 'links lead')} out of the cohort's folder, not "
        f"followed: {english_list(names, limit=5)}; where you know and want what is there, "
        f"allow it (in the window when it asks, on the command line by --allow-outside)"
    )


def _meant(root: Path) -> str:
    """Suggest folders beside a missing one that have similar names."""
    try:
        beside = [entry.name for entry in root.parent.iterdir() if entry.is_dir()]
    except OSError:
        return f", and no folder '{root.parent}' to hold it either; look at how it is spelt"
    if close := similar(root.name, beside):
        return f"; did you mean {' or '.join(close)}?"
    return "; give the folder that holds the whole cohort"


def check_listing(listing: Listing, expected: str) -> None:
    """Check that a cohort's folder can be read.

    Raises
    ------
    CohortError
        If it is missing, a file, closed or empty; then it says what was
        expected.
    """
    root = listing.root
    try:
        entries = listing.entries(root)
    except FileNotFoundError:
        raise CohortError(f"there is no such folder{_meant(root)}", path=root) from None
    except NotADirectoryError:
        raise CohortError(
            "this is a file; open the folder that holds the whole cohort", path=root
        ) from None
    except PermissionError:
        raise CohortError(
            "there is no permission to read this folder; ask its owner for access", path=root
        ) from None
    except OSError as error:
        raise CohortError(f"the folder cannot be read ({error.strerror})", path=root) from error
    if not entries:
        raise CohortError(f"the folder is empty; {expected}", path=root)


def missing(what: str, names: Sequence[str], why: str, *, team: str | None = None) -> Finding:
    """Return the finding that files are missing.

    Parameters
    ----------
    what
        What is named, such as ``region``.
    names
        Of those that lack one; at least one.
    why
        What they have or lack, such as ``no image``, and what follows from it.
    team
        Whose file, if a team's.
    """
    return Finding(
        FindingKind.MISSING,
        f"{counted(len(names), f'{what} has', f'{what}s have')} {why}: {english_list(names)}",
        region=names[0] if len(names) == 1 else None,
        team=team,
        count=len(names),
    )


def is_of_system(name: str) -> bool:
    """Return whether a file or folder is hidden, or one that an operating system leaves."""
    return name.startswith(".") or name.casefold() in _OF_SYSTEMS


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir() and not entry.name.casefold().endswith(ARRAY_FOLDERS)


def name_expression(part: str, fields: Mapping[str, str] = MappingProxyType({})) -> re.Pattern[str]:
    """Turn one name of a pattern into a regular expression; groups have the prefix ``f_``.

    Parameters
    ----------
    part
        The name of a folder or file, with placeholders and ``*``.
    fields
        What placeholders are known to stand for.
    """
    text = ""
    seen: set[str] = set()
    for piece in re.split(r"(\{[a-z]+\}|\*)", composed(part)):
        name = piece[1:-1] if piece.startswith("{") else None
        if piece == "*":
            text += ".*"
        elif name is None:
            text += re.escape(piece)
        elif name in fields:
            text += re.escape(fields[name])
        elif name in seen:
            text += f"(?P=f_{name})"
        else:
            seen.add(name)
            text += f"(?P<f_{name}>.+)"
    return re.compile(text, re.IGNORECASE | re.DOTALL)


def _unmangled(groups: Mapping[str, str]) -> dict[str, str]:
    # "class" alone would do as a group name, yet a prefix keeps clear of surprises.
    return {name.removeprefix("f_"): value for name, value in groups.items()}
