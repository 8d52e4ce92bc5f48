"""Changes of a review file by other windows, found in a background thread. No Qt here."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from napari_panoptic.review.file import ReviewError, may_be_there
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import ReviewRecord


@dataclass(frozen=True, eq=False)
class Known:
    """What a window knows of a review file, replaced as a whole whenever it knows something else.

    Whether two are the same tells whether anything changed in between.
    """

    #: The region whose verdicts are known; None if those of none are.
    region: str | None = None
    #: The verdicts there that count for the reviewer, oldest first.
    records: tuple[ReviewRecord, ...] = ()
    #: Team -> the regions in which the reviewer has judged it, as far as they are known.
    reviewed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def with_reviewed(self, team: str, regions: Iterable[str]) -> Known:
        """Return a copy that also knows the regions in which a team was judged."""
        return replace(self, reviewed={**self.reviewed, team: frozenset(regions)})

    def with_verdict(self, record: ReviewRecord, old: ReviewRecord | None) -> Known:
        """Return a copy with a new verdict, in place of the one that it replaced."""
        records = (*(other for other in self.records if other is not old), record)
        regions = self.reviewed.get(record.team)
        known = replace(self, records=records)
        return (
            known
            if regions is None
            else known.with_reviewed(record.team, regions | {record.region})
        )


@dataclass(frozen=True, eq=False)
class FileChanges:
    """The result of a check of a review file."""

    #: What the window knew when the check was requested.
    asked: Known
    #: Regions in which others changed verdicts since the previous check.
    regions: tuple[str, ...] = ()
    #: What there is to know of the region and the team shown; None if nothing has changed.
    known: Known | None = None
    #: Whether there is a file, if the window has opened none.
    file_exists: bool = False
    #: Why the file could not be checked.
    error: ReviewError | None = None


def check_for_file(path: Path, asked: Known) -> FileChanges:
    """Check whether another window has started a review."""
    return FileChanges(asked, file_exists=may_be_there(path))


class Watch:
    """Checks a review file that a window has open, on a connection of its own.

    A check takes as long as the file system does; neither the window nor :meth:`close`
    waits for it.

    Parameters
    ----------
    store
        The store of the window.
    """

    def __init__(self, store: ReviewStore) -> None:
        self._store = store
        self.times_opened = store.times_opened
        self._twin: ReviewStore | None = None
        self._checking = threading.Lock()
        self._is_closed = False

    def check(self, asked: Known, region: str | None, team: str | None) -> FileChanges:
        """Return what others changed since the previous call; thread-safe.

        Parameters
        ----------
        asked
            What the window knows.
        region, team
            What it shows, if anything.
        """
        with self._checking:
            try:
                changes = FileChanges(asked) if self._is_closed else self._find(asked, region, team)
            except ReviewError as error:
                changes = FileChanges(asked, error=error)
        if self._is_closed:
            self.close()  # a call of it during the check left the file open
        return changes

    def close(self) -> None:
        """Close the file, now or at the end of the check that is running."""
        self._is_closed = True
        if self._checking.acquire(blocking=False):
            twin, self._twin = self._twin, None
            if twin is not None:
                twin.close()
            self._checking.release()

    def _find(self, asked: Known, region: str | None, team: str | None) -> FileChanges:
        if self._twin is None:
            try:
                self._twin = self._store.twin()
            except ReviewError:
                if may_be_there(self._store.path):
                    raise
                return FileChanges(asked)  # the file was moved away
        regions = self._twin.poll()
        if not regions:
            return FileChanges(asked)
        records = () if region is None else tuple(self._twin.current(region=region))
        known = Known(region, records)
        if team is not None:
            known = known.with_reviewed(team, self._twin.regions(team=team))
        return FileChanges(asked, regions, known)
