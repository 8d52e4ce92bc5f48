"""Find the files of a cohort: a table of files, from which cohorts of all tasks are assembled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from napari_panoptic.values.cohort import Region, Source
from napari_panoptic.values.detections import Frame

IMAGE, REFERENCE, PREDICTIONS = "image", "reference", "predictions"
"""Content of files: values of `FoundFile.role` in all tasks, as the keys of ``[files]``."""
NO_FORMAT = Source("")


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


# --- the table ------------------------------------------------------------------------------------

Key = tuple[str, str | None]
"""The name of a region in its files, and its patient if a folder names one."""


@dataclass(frozen=True)
class FoundFile:
    """A file of one region: a row of a `FileTable`."""

    #: The file.
    path: Path
    #: What it holds, such as `REFERENCE`.
    role: str
    #: Its region, and its patient if a folder or the file names one.
    region: str
    patient: str | None = None
    #: The key of its team, see `TeamNames`; ``""`` if its pattern names none.
    team: str = ""
    #: The format of its objects; `NO_FORMAT` for other files.
    source: Source = NO_FORMAT
    #: Its class; ``""`` for all classes.
    class_name: str = ""
    #: The region's key in a file that holds many.
    item: str | None = None
    #: Further files of this region that belong to it.
    further: tuple[Path, ...] = ()
    #: The position of its pattern: those of the first pattern with any are used.
    rank: int = 0
    #: Whether it has outlines of a whole slide.
    is_of_slide: bool = False
    #: Whether it is the folder of a region, which may have no files.
    is_folder: bool = False

    @property
    def key(self) -> Key:
        """The region and its patient."""
        return self.region, self.patient


@dataclass
class RegionFiles:
    """The rows of one region that have the same role, team and format."""

    #: The first of them.
    row: FoundFile
    #: The patient, if any of them has one.
    patient: str | None
    #: Class -> the files in use; under ``""`` files of all classes. Empty for a folder.
    paths: dict[str, list[Path]] = field(default_factory=dict)
    #: Files of patterns that come later, which are not used.
    spare: list[Path] = field(default_factory=list)
    #: Whether the files in use have outlines of a whole slide.
    is_of_slide: bool = False

    _rank: dict[str, int] = field(default_factory=dict)
    _found_by: dict[Path, int] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """The key under which the files are found again."""
        return self.row.region, self.patient

    @property
    def first(self) -> Path:
        """The preferred file of all classes."""
        return self.paths[""][0]

    def row_of(self, class_name: str, path: Path) -> FoundFile:
        """Return the row of a further file of a class."""
        rank = self._rank[class_name]
        return replace(self.row, path=path, class_name=class_name, further=(), rank=rank)

    def fits(self, patient: str | None) -> bool:
        """Return whether the region may be one of a patient; an unknown patient fits any."""
        own = self.patient
        return own is None or patient is None or own.casefold() == patient.casefold()

    def put(self, row: FoundFile) -> None:
        """Add a row; what an earlier pattern found is left to it."""
        if self._found_by.setdefault(row.path, row.rank) != row.rank:
            return
        self.patient = self.patient or row.patient
        if row.is_folder:
            return
        if self._rank.setdefault(row.class_name, row.rank) == row.rank:
            self.paths.setdefault(row.class_name, []).extend((row.path, *row.further))
            self.is_of_slide |= row.is_of_slide
        else:
            self.spare.append(row.path)


@dataclass(frozen=True)
class FoundRegion:
    """A region of a cohort."""

    #: Unique in the cohort: if folders repeat a name, the patient precedes it.
    name: str
    #: Its patient.
    patient: str
    #: By which its files are found in the table.
    key: Key


class FileTable:
    """The files of a cohort, in the order in which they were found.

    Names of regions and patients are compared without regard to case.
    """

    def __init__(self, rows: Iterable[FoundFile] = ()) -> None:
        self._rows = tuple(rows)

    def __iter__(self) -> Iterator[FoundFile]:
        return iter(self._rows)

    def __or__(self, other: Iterable[FoundFile]) -> FileTable:
        rows = tuple(other)
        return FileTable((*self, *rows)) if rows else self  # which keeps its index

    @cached_property
    def _by_region(self) -> dict[tuple[object, ...], dict[str, list[RegionFiles]]]:
        """By role, team, format and whether it is a folder, then by region."""
        found: dict[tuple[object, ...], dict[str, list[RegionFiles]]] = {}
        for row in self:
            kind = (row.role, row.team, row.source, row.is_folder)
            same = found.setdefault(kind, {}).setdefault(row.region.casefold(), [])
            own = next((each for each in same if each.fits(row.patient)), None)
            if own is None:
                own = RegionFiles(row, row.patient)
                same.append(own)
            own.put(row)
        return found

    def of(self, role: str) -> Iterator[RegionFiles]:
        """Yield the files of each region, team and format that have a role."""
        for (own, _, _, is_folder), regions in self._by_region.items():
            if own == role and not is_folder:
                yield from chain.from_iterable(regions.values())

    def teams(self, role: str) -> dict[str, None]:
        """Return the keys of the teams with files of a role."""
        return dict.fromkeys(row.team for row in self if row.role == role and not row.is_folder)

    def at(
        self, key: Key, role: str, team: str = "", source: Source = NO_FORMAT
    ) -> RegionFiles | None:
        """Return the files of a region, or its folder, or None."""
        region, patient = key
        for is_folder in (False, True):
            regions = self._by_region.get((role, team, source, is_folder), {})
            for found in regions.get(region.casefold(), ()):
                if found.fits(patient):
                    return found
        return None

    def first(self, key: Key, role: str, team: str = "") -> Path | None:
        """Return the preferred file of a region, or None."""
        found = self.at(key, role, team)
        return None if found is None else found.first

    def others(self, role: str, keys: Collection[Key]) -> Iterator[RegionFiles]:
        """Yield the files with a role of regions that have none of these keys."""
        kinds = dict.fromkeys((own.row.team, own.row.source) for own in self.of(role))
        known = {id(self.at(key, role, *kind)) for kind in kinds for key in keys}
        return (found for found in self.of(role) if id(found) not in known)

    def places(self, roles: Collection[str], patient_of: Callable[[str], str]) -> list[FoundRegion]:
        """Return every region with a file of some roles, by patient and name in natural order.

        Parameters
        ----------
        roles
            Such as images and annotations.
        patient_of
            Returns the patient in the name of a region, if no folder names one.
        """
        rows = chain.from_iterable((row for row in self if row.role == role) for role in roles)
        known = FileTable(FoundFile(row.path, "", *row.key) for row in rows)
        patients = Counter(found.row.region.casefold() for found in known.of(""))
        places = []
        for found in known.of(""):
            region = found.row.region
            patient = found.patient or patient_of(region)
            name = f"{patient}_{region}" if patients[region.casefold()] > 1 else region
            places.append(FoundRegion(name, patient, found.key))
        return sorted(places, key=lambda at: (natural_key(at.patient), natural_key(at.name)))


# --- the search -----------------------------------------------------------------------------------


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


def one_region(match: Match) -> Iterator[FileItem]:
    """Yield the only region of a file, which its path names."""
    yield FileItem(match.fields["region"], "", match.fields.get("patient"))


class Search:
    """A search for the files of a cohort: the files in use, and findings.

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

    def _find(
        self,
        role: str,
        patterns: Iterable[Pattern],
        items: Callable[[Match], Iterable[FileItem]] = one_region,
        class_of: Callable[[Match], str | None] = lambda _: "",
        taken: Container[Path] = (),
        *,
        source: Source = NO_FORMAT,
        shared: bool = False,
    ) -> FileTable:
        """Find the files of one role.

        Parameters
        ----------
        role, source
            What the files hold, and their format.
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
        rows: list[FoundFile] = []
        known: set[Path] = set()
        for rank, pattern in enumerate(patterns):
            for match in self._marked(pattern):
                is_taken = "team" in pattern.fields and match.path in taken
                is_known = match.path in known and not shared
                if is_taken or is_known or (name := class_of(match)) is None:
                    continue
                known.add(match.path)
                team, is_of_slide = self._teams.key(match), "slide" in match.fields
                rows += (
                    FoundFile(
                        match.path,
                        role,
                        item.name,
                        item.patient,
                        team=team,
                        source=source,
                        class_name=name,
                        item=item.key or None,
                        further=item.paths,
                        rank=rank,
                        is_of_slide=is_of_slide,
                    )
                    for item in items(match)
                )
        table = FileTable(rows)
        if any(row.further for row in rows):
            for found in table.of(role):
                self._used.update(*found.paths.values())
        return table

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


# --- missing files --------------------------------------------------------------------------------


def missing_sides(
    what: str,
    regions: Sequence[Region | Frame],
    consequence: str = "",
    *,
    has_images: bool,
    has_references: bool,
) -> Iterator[Finding]:
    """Report regions without an image, or without an annotation.

    Parameters
    ----------
    what, regions
        What they are called, such as ``frame``, and all of them.
    consequence
        What follows where the image is missing.
    has_images, has_references
        Whether the layout states where these files lie.
    """
    lacking = [region.name for region in regions if region.image is None]
    if lacking and has_images:
        yield missing(what, lacking, f"an annotation but no image{consequence}")
    lacking = [region.name for region in regions if region.reference is None]
    if lacking and has_references:
        yield missing(what, lacking, "no annotation: shown, but not evaluated")


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
