"""Arrange the files of an unknown folder in groups, whose places one pattern describes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from napari_panoptic.io.cohorts.pair import REFERENCE_WORDS
from napari_panoptic.values.cohort import Source

IMAGE = "image"
"""Kind of a group of files that are images; other kinds are formats of objects."""
TEAM, PATIENT = "{team}", "{patient}"
"""Fields of a level, as patterns have them."""
ANY = "*"
"""Field of a level with names that do not matter."""
_SEPARATORS = "_-. "
_SPLIT = re.compile(
    r"(stage\d+_)?(train(ing)?|test(ing)?|val(id(ation)?)?|fold[ _-]?\d+)", re.IGNORECASE
)
"""Names of folders that divide a data set, and are neither patients nor teams."""
_FOLDER_OF_TEAMS = re.compile(
    r"(teams?|models?|methods?|algorithms?|pred(iction)?s?|results?|submissions?)", re.IGNORECASE
)
"""Names of folders that hold a folder for each team."""
_NUMBERED = re.compile(r"(?P<side>.*[A-Za-z].*[_\- ])(?P<number>\d+)")
"""Names of folders of a side and a patient, as ``Slide_01`` and ``GT_01`` of the TNBC data set."""


@dataclass(frozen=True)
class ScannedFile:
    """A file and the parts of its place; one that names many regions has a row for each."""

    #: The file.
    path: Path
    #: Names of the folders below the cohort's.
    folders: tuple[str, ...]
    #: What names its region, perhaps with affixes.
    name: str
    #: What follows the name.
    ending: str
    #: Whether its folder has the name, and holds one region in several files with the ending.
    is_folder: bool = False


@dataclass(frozen=True)
class FolderLevel:
    """The folders of a group at one depth."""

    #: What their names have in common; all of it without a field.
    name: str
    #: What the rest of their names says: `TEAM`, `PATIENT` or `ANY`.
    field: str = ""


@dataclass(frozen=True)
class Group:
    """Files of one kind whose places follow one pattern."""

    #: `IMAGE`, or the format of the objects.
    kind: str
    #: The folders below the cohort's.
    levels: tuple[FolderLevel, ...]
    #: How the files' names end.
    ending: str
    #: The files.
    files: tuple[ScannedFile, ...]
    #: What stands before and behind the region in the files' names.
    affixes: tuple[str, str] = ("", "")
    #: Whether each file holds many regions, which it names; its own name is the last of `levels`.
    is_set: bool = False
    #: Folders between that of a region, which holds all files with the ending, and its files; None
    #: if files are named after regions.
    below: tuple[FolderLevel, ...] | None = None

    @property
    def pattern(self) -> str:
        """The pattern of these files, as a ``cohort.toml`` has it."""
        folders = [level.name + level.field for level in self.levels]
        before, behind = self.affixes
        region = f"{before}{{region}}{behind}"
        if self.is_set:
            return "/".join(folders) + self.ending
        if self.below is None:
            return "/".join((*folders, region + self.ending))
        below = [level.name + level.field for level in self.below]
        return "/".join((*folders, region, *below, f"{ANY}{self.ending}"))

    @property
    def fields(self) -> list[str]:
        """The fields of the levels."""
        return [level.field for level in self.levels]

    @property
    def has_teams(self) -> bool:
        """Whether the pattern names the team."""
        return TEAM in self.fields

    @property
    def paths(self) -> set[Path]:
        """The files."""
        return {file.path for file in self.files}

    @property
    def regions(self) -> set[str]:
        """Names of the regions that have a file."""
        before, behind = self.affixes
        names = (file.name for file in self.files)
        return {name[len(before) : len(name) - len(behind) or None] for name in names}

    @property
    def by_team(self) -> dict[str, list[Path]]:
        """The files of each team; all of one without a name if the pattern does not name teams."""
        level = max((at for at, field in enumerate(self.fields) if field == TEAM), default=None)
        found: dict[str, list[Path]] = defaultdict(list)
        for file in self.files:
            found["" if level is None else file.folders[level]].append(file.path)
        return found

    @property
    def teams(self) -> list[str]:
        """Names of the teams, where the pattern has them."""
        return sorted(self.by_team) if self.has_teams else []

    @property
    def reference_rank(self) -> int | None:
        """How clearly its names point to an annotation: 0 is clearest, None not at all."""
        ending = self.ending if self.below is None else "/".join(_names(self.below))
        return reference_rank(*_names(self.levels), *self.affixes, ending.split(".")[0])

    def of_team(self) -> Group | None:
        """Return the group with its only folder as that of a team; None if that cannot be.

        The folder is the only one, or one in a folder such as ``models``.
        """
        levels = self.levels[:-1] if self.is_set else self.levels
        is_inside = len(levels) > 1 and _FOLDER_OF_TEAMS.fullmatch(levels[0].name)
        at = 0 if len(levels) == 1 else 1 if is_inside else None
        if self.has_teams or at is None or levels[at].field:
            return None
        return replace(self, levels=_with_level(self.levels, at, FolderLevel("", TEAM)))

    def per_nucleus(self, regions: set[str]) -> Group:
        """Return it with one region per folder that is named so and has a mask per nucleus."""
        own = FolderLevel("", PATIENT)
        if self.kind != Source.LABELS or own not in self.levels:
            return self
        level = self.levels.index(own)
        below = self.levels[level + 1 :]
        of_region: dict[tuple[str, ...], ScannedFile] = {}
        for file in self.files:
            region = replace(file, folders=file.folders[:level], name=file.folders[level])
            of_region.setdefault(file.folders[: level + 1], region)
        names = {region.name for region in of_region.values()}
        if any(each.field for each in below) or not names & regions or self.regions & regions:
            return self
        files = tuple(of_region.values())
        return Group(Source.NUCLEUS_MASKS, self.levels[:level], self.ending, files, below=below)

    def with_affixes(self, regions: set[str]) -> Group:
        """Find what stands around the names of regions in the names of files."""
        counts = affixes_of((file.name for file in self.files), regions)
        if self.is_set or not counts:
            return self
        best = max(counts, key=lambda affixes: (counts[affixes], -len("".join(affixes))))
        return replace(self, affixes=best)


def _names(levels: Iterable[FolderLevel]) -> list[str]:
    return [level.name for level in levels]


def _with_level(
    levels: tuple[FolderLevel, ...], at: int, level: FolderLevel
) -> tuple[FolderLevel, ...]:
    return (*levels[:at], level, *levels[at + 1 :])


def reference_rank(*names: str) -> int | None:
    """Return how clearly names of folders and files point to an annotation.

    Returns
    -------
    int or None
        A position in `REFERENCE_WORDS`; None without such a word.
    """
    text = "/".join(names).casefold().replace("_cp_masks", "")  # Cellpose's, which is a prediction
    words = re.split(r"[^a-z]+", text)
    return next(
        (
            rank
            for rank, word in enumerate(REFERENCE_WORDS)
            if any(part in (word, f"{word}s") or (len(word) > 2 and word in part) for part in words)
        ),
        None,
    )


def merged(groups: Iterable[Group], reference: Path | None) -> list[Group]:
    """Join groups whose folders differ at one level, from the innermost folders outwards.

    Parameters
    ----------
    groups
        One for each folder; no level has a field.
    reference
        The folder or file of the annotation, if the user said. It is joined with no other.
    """
    groups = list(groups)
    for level in reversed(range(max((len(group.levels) for group in groups), default=0))):
        sides = _numbered_sides(groups, level)
        alike: dict[tuple[object, ...], list[Group]] = defaultdict(list)
        for group in groups:
            place = _joint_level(group, level, sides, reference)
            others = group.levels[:level], group.levels[level + 1 :]
            alike[group.kind, group.ending, group.below, place, others].append(group)
        groups = [_joined(same, level, sides) for same in alike.values()]
    return groups


_Sides = dict[tuple[str, ...], str]
"""What names the side in a folder of a numbered patient, by the names of folders down to it."""


def _joint_level(
    group: Group, level: int, sides: _Sides, reference: Path | None
) -> FolderLevel | None:
    """Return what the folders at a level have in common that groups may be joined over."""
    folder = tuple(_names(group.levels[: level + 1]))
    if len(folder) <= level:
        return None
    if folder in sides:
        return FolderLevel(sides[folder], PATIENT)
    is_reference = (
        reference_rank(folder[-1]) is not None if reference is None else Path(*folder) == reference
    )
    return group.levels[level] if is_reference else FolderLevel("", ANY)


def _numbered_sides(groups: Iterable[Group], level: int) -> _Sides:
    """Return the sides of folders at a level, where several sides have the same numbers.

    Those are the numbers of patients: ``Slide_01``, ``Slide_02`` beside ``GT_01``, ``GT_02``.
    """
    numbers: dict[tuple[tuple[str, ...], str], set[str]] = defaultdict(set)
    sides_of: dict[tuple[tuple[str, ...], str], set[str]] = defaultdict(set)
    found: _Sides = {}
    for group in groups:
        folder = tuple(_names(group.levels[: level + 1]))
        name = _NUMBERED.fullmatch(folder[-1]) if len(folder) > level else None
        is_free = FolderLevel("", PATIENT) not in group.levels
        if name and is_free and not _SPLIT.fullmatch(name[0]):
            above = folder[:-1]
            numbers[above, name["side"]].add(name["number"])
            sides_of[above, name["number"]].add(name["side"])
            found[folder] = name["side"]
    shared: set[tuple[tuple[str, ...], str]] = set()
    for (above, side), own in numbers.items():
        if (above, side) not in shared:
            common = Counter(other for number in own for other in sides_of[above, number])
            alike = {(above, other) for other, count in common.items() if count > 1}
            shared |= alike if len(alike) > 1 else set()
    return {folder: side for folder, side in found.items() if (folder[:-1], side) in shared}


def _joined(same: Sequence[Group], level: int, sides: _Sides) -> Group:
    """Join groups: folders are teams where names of files repeat, patients where they do not.

    Folders above those of patients, and parts of a data set, have names that do not matter.
    """
    first = same[0]
    side = sides.get(tuple(_names(first.levels[: level + 1])))
    if len(same) == 1 and side is None:
        return first
    varying = [at for at, each in enumerate(first.levels) if each.field]
    files = tuple(file for group in same for file in group.files)
    names = {(*(file.folders[at] for at in varying), file.name) for file in files}
    is_annotation = any(reference_rank(each.name) is not None for each in first.levels[:level])
    is_split = all(_SPLIT.fullmatch(group.levels[level].name) for group in same)
    if side is not None:
        joint = FolderLevel(side, PATIENT)
    elif first.kind != IMAGE and not is_annotation and len(names) < len(files):
        joint = FolderLevel("", TEAM)
    elif is_split or FolderLevel("", PATIENT) in first.levels:
        joint = FolderLevel("", ANY)
    else:
        joint = FolderLevel("", PATIENT)
    return replace(first, levels=_with_level(first.levels, level, joint), files=files)


def affixes_of(names: Iterable[str], regions: Iterable[str]) -> Counter[tuple[str, str]]:
    """Count what stands before and behind the names of regions in the names of files."""
    counts: Counter[tuple[str, str]] = Counter()
    wanted = set(regions)
    lengths = sorted({len(region) for region in wanted})
    for name in names:
        found: set[str] = set()  # the first place of each counts
        for at, length in product(range(len(name)), lengths):
            region = name[at : at + length]
            if region in wanted and region not in found:
                found.add(region)
                before, behind = name[:at], name[at + length :]
                if before[-1:] in _SEPARATORS and behind[:1] in _SEPARATORS:
                    counts[before, behind] += 1
    return counts
