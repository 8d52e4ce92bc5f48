"""What is the same for cohorts of all tasks when their files are sought in a folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from napari_panoptic.common.findings import Finding
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

    def key(self, match: Match) -> str:
        """Return the key of the team of a file, ``""`` if the pattern names none."""
        name = match.fields.get("team", "")
        self._names.setdefault(name.casefold(), name)
        return name.casefold()

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
