"""What cohorts of all tasks share when their files are sought: folders, teams and regions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts.description import cohort_listing
from napari_panoptic.io.cohorts.layouts import ONLY_TEAM
from napari_panoptic.io.cohorts.patterns import (
    Listing,
    Match,
    check_listing,
    links_told,
    missing,
    natural_key,
    outside_findings,
)
from napari_panoptic.values.cohort import SlidePatch


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
        told: set[str] = set()
        for (key, _), paths in self._spelt.items():
            if len(paths) > 1 and key not in told:
                told.add(key)
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
    """Report, for each team, what it has no file of.

    Parameters
    ----------
    what, names
        What a team should have files of, such as ``frame(s)``, and their names.
    there
        Team and name of each file.
    why
        Team -> what they lack, and what follows from it.
    """
    for team in sorted({team for team, _ in there}, key=natural_key):
        lacking = [name for name in names if (team, name) not in there]
        if lacking:
            yield missing(what, lacking, why(team), team=team)


# --- files by region and patient ------------------------------------------------------------------

Key = tuple[str, str | None]
"""The name of a region in its files, and its patient if a folder names one."""


@dataclass
class Found:
    """The files of one region, of one team or of the annotation.

    Parameters
    ----------
    region, patient
        Of the files; the patient is None if no folder names one.
    paths
        By class; under ``""`` files of all classes.
    item
        The region's key in a file that holds many.
    patch
        Where the region lies in the slide of a file of outlines.
    probability
        A probability map, or None.
    """

    region: str
    patient: str | None
    paths: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))
    item: str | None = None
    patch: SlidePatch | None = None
    probability: Path | None = None

    @property
    def key(self) -> Key:
        """The key under which the files are found again."""
        return self.region, self.patient


class Shelf:
    """What was found, by region and patient; spelling is compared without case."""

    def __init__(self) -> None:
        self._by_region: dict[str, list[Found]] = defaultdict(list)

    def __iter__(self) -> Iterator[Found]:
        return chain.from_iterable(self._by_region.values())

    def repeats(self, region: str) -> bool:
        """Return whether several patients have a region of this name."""
        return len(self._by_region[region.casefold()]) > 1

    def get(self, region: str, patient: str | None) -> Found | None:
        """Return the files of a region, or None; an unknown patient fits any."""
        for found in self._by_region.get(region.casefold(), []):
            own = found.patient
            if own is None or patient is None or own.casefold() == patient.casefold():
                return found
        return None

    def need(self, region: str, patient: str | None) -> Found:
        """Return the files of a region, with none yet if the region is new."""
        if (found := self.get(region, patient)) is None:
            found = Found(region, patient)
            self._by_region[region.casefold()].append(found)
        found.patient = found.patient or patient
        return found


@dataclass(frozen=True)
class Place:
    """A region of a cohort.

    Parameters
    ----------
    name
        Unique in the cohort: if folders repeat a name, the patient precedes it.
    patient
        Its patient.
    key
        By which its files are found on shelves.
    """

    name: str
    patient: str
    key: Key


def places_on(shelves: Iterable[Shelf], patient_of: Callable[[str], str]) -> list[Place]:
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
        places.append(Place(name, patient, found.key))
    return sorted(places, key=lambda place: (natural_key(place.patient), natural_key(place.name)))
