"""What other windows do to a review file, found out in a thread of its own. No Qt here."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from napari_panoptic.review.file import ReviewError, may_be_there
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import ReviewRecord


@dataclass(frozen=True)
class Place:
    """What a window shows, whose verdicts it needs.

    Parameters
    ----------
    region
        None if nothing is evaluated.
    team
        None if there is none.
    age
        How often the window itself has changed what it knows of the file.
    """

    region: str | None
    team: str | None
    age: int


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What stands in a review file for what a window shows.

    Parameters
    ----------
    records
        The reviewer's verdicts in the region, oldest first.
    reviewed
        The regions in which the reviewer has judged the team.
    """

    records: list[ReviewRecord]
    reviewed: frozenset[str]


@dataclass(frozen=True, eq=False)
class Looked:
    """The answer to a look at a review file.

    Parameters
    ----------
    place
        What it was asked for.
    regions
        Where others changed verdicts since the look before.
    verdicts
        What stands now; None if nothing has changed.
    is_there
        Whether there is a file, if the window has opened none.
    error
        Why the file could not be looked at.
    """

    place: Place
    regions: tuple[str, ...] = ()
    verdicts: Verdicts | None = None
    is_there: bool = False
    error: ReviewError | None = None


def look_for_file(path: Path, place: Place) -> Looked:
    """Look whether another window has started a review."""
    return Looked(place, is_there=may_be_there(path))


class Watch:
    """Looks at a review file that a window has open, on a connection of its own.

    A look takes as long as the file system does; the window never waits for
    it, and neither does :meth:`close`.

    Parameters
    ----------
    store
        The window's own.
    """

    def __init__(self, store: ReviewStore) -> None:
        self._store = store
        self.times_opened = store.times_opened
        self._twin: ReviewStore | None = None
        self._looking = threading.Lock()
        self._is_closed = False

    def look(self, place: Place, *, is_outdated: bool) -> Looked:
        """Return what others changed since the previous call; thread-safe.

        Parameters
        ----------
        place
            What the window shows.
        is_outdated
            Whether the window needs the verdicts although none changed.
        """
        with self._looking:
            try:
                looked = Looked(place) if self._is_closed else self._looked(place, is_outdated)
            except ReviewError as error:
                looked = Looked(place, error=error)
        if self._is_closed:
            self.close()  # which could not do it meanwhile
        return looked

    def close(self) -> None:
        """Let go of the file, now or when the look that is under way has ended."""
        self._is_closed = True
        if self._looking.acquire(blocking=False):
            twin, self._twin = self._twin, None
            if twin is not None:
                twin.close()
            self._looking.release()

    def _looked(self, place: Place, is_outdated: bool) -> Looked:
        if self._twin is None:
            try:
                self._twin = self._store.twin()
            except ReviewError:
                if may_be_there(self._store.path):
                    raise
                return Looked(place)  # the file was moved away
        regions = self._twin.poll()
        if not regions and not is_outdated:
            return Looked(place)
        records = [] if place.region is None else self._twin.current(region=place.region)
        reviewed = [] if place.team is None else self._twin.regions(team=place.team)
        return Looked(place, regions, Verdicts(records, frozenset(reviewed)))
