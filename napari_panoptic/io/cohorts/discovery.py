"""What cohorts of all tasks share when their files are sought: folders, teams and regions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts.description import cohort_listing
from napari_panoptic.io.cohorts.layouts import ONLY_TEAM
from napari_panoptic.io.cohorts.patterns import (
    Listing,
    Match,
    Pattern,
    check_listing,
    links_told,
    missing,
    natural_key,
    outside_findings,
)
from napari_panoptic.io.formats.class_numbers import TYPE_INFO
from napari_panoptic.io.formats.format import FileItem


@contextmanager
def opened_folder(
    folder: str | Path, expected: str, *, allow_outside: bool = False
) -> Iterator[Listing]:
    """List a cohort's folder, in which files are then sought.

    Parameters
    ----------
    folder
        The folder, or its ``cohort.toml``.
    expected
        What a folder must be, for the message about an empty one.
    allow_outside
        Whether links that lead out of the folder are followed.

    Raises
    ------
    CohortError
        If the folder is missing, is a file, is empty, or cannot be read.
    OutsideLinksError
        In place of any CohortError that is raised inside, if links were not followed.
    """
    listing = cohort_listing(folder, allow_outside=allow_outside)
    with links_told(listing):
        check_listing(listing, expected)
        yield listing


def unread(listing: Listing) -> tuple[Finding, ...]:
    """Return the findings about folders that cannot be read, and links that were not followed."""
    return (*listing.findings, *outside_findings(listing))


def cohort_name(stated: str | None, listing: Listing) -> str:
    """Return the name of a cohort: the stated one, or that of its folder."""
    return stated or listing.root.resolve().name


class TeamNames:
    """The names of teams as folders spell them first; they are compared without regard to case."""

    def __init__(self) -> None:
        self._names = {"": ONLY_TEAM}
        self._spelt: dict[tuple[str, str], dict[str, Path]] = defaultdict(dict)

    def key(self, match: Match) -> str:
        """Return the key of the team of a file, ``""`` if the pattern names none."""
        name = match.fields.get("team", "")
        key = name.casefold()
        self._names.setdefault(key, name)
        if name:
            place = str(match.path.parent).casefold()
            self._spelt[key, place].setdefault(name, match.path)
        return key

    def findings(self) -> Iterator[Finding]:
        """Report names that differ in case only at one place, as two teams or copies may."""
        reported: set[str] = set()
        for (key, _), paths in self._spelt.items():
            if len(paths) > 1 and key not in reported:
                reported.add(key)
                message = (
                    f"the names {english_list(list(paths))} differ in case only and are taken for "
                    f"one team, '{self._names[key]}': of two files for a region one is read. "
                    f"Rename one of them if they are two teams"
                )
                team, path = self._names[key], next(reversed(paths.values()))
                yield Finding(FindingKind.EXTRA, message, path=path, team=team)

    def __getitem__(self, key: str) -> str:
        return self._names[key]


def missing_by_team(
    what: str,
    names: Sequence[str],
    there: Collection[tuple[str, str]],
    why: Callable[[str], str],
) -> Iterator[Finding]:
    """Report, for each team, the regions without a file.

    Parameters
    ----------
    what, names
        What a team should have files of, such as ``frame``, and their names.
    there
        Team and name of each file.
    why
        Team -> the missing files and the consequence, in words.
    """
    for team in sorted({team for team, _ in there}, key=natural_key):
        lacking = [name for name in names if (team, name) not in there]
        if lacking:
            yield missing(what, lacking, why(team), team=team)


# --- files by region and patient ------------------------------------------------------------------

Key = tuple[str, str | None]
"""The name of a region in its files, and its patient if a folder names one."""


@dataclass
class FoundFiles:
    """The files of one region, of one team or of the annotation."""

    #: Region and patient of the files; the patient is None if no folder names one.
    region: str
    patient: str | None
    #: Class -> its files; under ``""`` files of all classes.
    paths: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))
    #: The region's key in a file that holds many.
    item: str | None = None
    #: Whether the files have outlines of a whole slide.
    is_of_slide: bool = False
    #: Files of patterns that come later, which are not used.
    spare: list[Path] = field(default_factory=list)
    #: A probability map, or None.
    probability: Path | None = None

    _rank: dict[str, int] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """The key under which the files are found again."""
        return self.region, self.patient

    @property
    def first(self) -> Path:
        """The preferred file of all classes."""
        return self.paths[""][0]

    def put(self, class_name: str, rank: int, match: Match, item: FileItem) -> bool:
        """Add a file; return whether it is used. The first pattern with files is the one used."""
        if self._rank.setdefault(class_name, rank) != rank:
            self.spare.append(match.path)
            return False
        if not self.paths:
            self.item = item.key or None
        self.paths[class_name] += (match.path, *item.paths)
        self.is_of_slide |= "slide" in match.fields
        return True


class Shelf:
    """What was found, by region and patient; spelling is compared without case."""

    def __init__(self) -> None:
        self._by_region: dict[str, list[FoundFiles]] = defaultdict(list)

    def __iter__(self) -> Iterator[FoundFiles]:
        return chain.from_iterable(self._by_region.values())

    def repeats(self, region: str) -> bool:
        """Return whether several patients have a region of this name."""
        return len(self._by_region[region.casefold()]) > 1

    def get(self, region: str, patient: str | None) -> FoundFiles | None:
        """Return the files of a region, or None; an unknown patient fits any."""
        for found in self._by_region.get(region.casefold(), []):
            own = found.patient
            if own is None or patient is None or own.casefold() == patient.casefold():
                return found
        return None

    def has(self, path: Path, region: str, patient: str | None) -> bool:
        """Return whether a file is among those of a region."""
        found = self.get(region, patient)
        return found is not None and any(path in paths for paths in found.paths.values())

    def need(self, region: str, patient: str | None) -> FoundFiles:
        """Return the files of a region, with none yet if the region is new."""
        if (found := self.get(region, patient)) is None:
            found = FoundFiles(region, patient)
            self._by_region[region.casefold()].append(found)
        found.patient = found.patient or patient
        return found

    def others(self, keys: Iterable[Key]) -> list[FoundFiles]:
        """Return the files of regions that have none of these keys."""
        used = {id(self.get(*key)) for key in keys}
        return [found for found in self if id(found) not in used]


class Search:
    """A search for the files of a cohort: the files found, those in use, and findings.

    Parameters
    ----------
    listing
        The cohort's folder.
    """

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._teams = TeamNames()
        self._used: set[Path] = set()
        self._findings: list[Finding] = []

    def _collect(
        self,
        patterns: Iterable[Pattern],
        items: Callable[[Match], Iterable[FileItem]],
        class_of: Callable[[Match], str | None] = lambda _: "",
        taken: Container[Path] = (),
        *,
        shared: bool = False,
    ) -> defaultdict[str, Shelf]:
        """Find the files of one kind, by team (casefolded; "" where there are no teams).

        Parameters
        ----------
        patterns
            The preferred first.
        items
            Lists the regions of a file.
        class_of
            Returns the class of a file, "" for all classes, or None if the file is not used.
        taken
            Files that patterns of teams leave out: a team may have any name, also that of the
            folder with the images.
        shared
            Whether a file may belong to a region of each pattern that it fits, not of the first
            alone.
        """
        shelves: defaultdict[str, Shelf] = defaultdict(Shelf)
        known: set[Path] = set()
        for rank, pattern in enumerate(patterns):
            for match in self._marked(pattern):
                is_taken = "team" in pattern.fields and match.path in taken
                is_known = match.path in known
                if is_taken or (is_known and not shared) or (name := class_of(match)) is None:
                    continue
                known.add(match.path)
                shelf = shelves[self._teams.key(match)]
                for item in items(match):
                    if is_known and shelf.has(match.path, item.name, item.patient):
                        continue
                    if shelf.need(item.name, item.patient).put(name, rank, match, item):
                        self._used.update(item.paths)
        return shelves

    def _marked(self, pattern: Pattern) -> Iterator[Match]:
        """Find the files that fit a pattern, and note that they are in use."""
        for match in pattern.files(self._listing):
            if match.path.name != TYPE_INFO:
                self._used.add(match.path)
                yield match

    def _common_findings(self) -> Iterator[Finding]:
        """Return what cohorts of all tasks report."""
        yield from unread(self._listing)
        yield from self._teams.findings()
        yield from self._findings

    def _nothing_found(self, patterns: Iterable[Pattern]) -> CohortError:
        """Return the error for a folder without a file that fits one of these patterns."""
        unreadable = [f"'{f.path}'" for f in self._listing.findings]
        reason = f"; {english_list(unreadable)} cannot be read" if unreadable else ""
        for finding in self._findings:
            if finding.kind is FindingKind.UNREADABLE:
                reason += f"; {finding.path}: {finding.message}"
        looked_for = english_list([f"'{pattern.text}'" for pattern in patterns], limit=4)
        return CohortError(
            f"no image and no annotation was found in this folder{reason}; looked for {looked_for}",
            path=self._listing.root,
        )


@dataclass(frozen=True)
class FoundRegion:
    """A region of a cohort."""

    #: Unique in the cohort: if folders repeat a name, the patient precedes it.
    name: str
    #: Its patient.
    patient: str
    #: By which its files are found on shelves.
    key: Key


def places_on(shelves: Iterable[Shelf], patient_of: Callable[[str], str]) -> list[FoundRegion]:
    """Return every region on some shelves, by patient and name in natural order.

    Parameters
    ----------
    shelves
        Of images and annotations.
    patient_of
        Returns the patient in the name of a region, if no folder names one.
    """
    known = Shelf()
    for found in chain.from_iterable(shelves):
        known.need(*found.key)
    places = []
    for found in known:
        patient = found.patient or patient_of(found.region)
        name = f"{patient}_{found.region}" if known.repeats(found.region) else found.region
        places.append(FoundRegion(name, patient, found.key))
    return sorted(places, key=lambda place: (natural_key(place.patient), natural_key(place.name)))
