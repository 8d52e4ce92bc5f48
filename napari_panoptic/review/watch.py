"""Changes of a review file by other windows, found in a background thread. No Qt here."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from napari_panoptic.review.file import ReviewError, may_be_there
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import ReviewRecord


@dataclass(frozen=True)
class ReviewScope:
    """The part of a review that a window shows."""

    #: None if nothing is evaluated.
    region: str | None
    #: None if there is none.
    team: str | None
    #: Counts the changes that the window itself has made to its copy of the verdicts.
    revision: int


@dataclass(frozen=True, eq=False)
class FileChanges:
    """The result of a check of a review file."""

    #: What the window showed when the check was requested.
    shown: ReviewScope
    #: Regions in which others changed verdicts since the previous check.
    regions: tuple[str, ...] = ()
    #: The verdicts in the region shown, oldest first; None if nothing has changed.
    records: list[ReviewRecord] | None = None
    #: Regions in which the reviewer has judged the team; only with `records`.
    reviewed: frozenset[str] = frozenset()
    #: Whether there is a file, if the window has opened none.
    file_exists: bool = False
    #: Why the file could not be checked.
    error: ReviewError | None = None


def check_for_file(path: Path, shown: ReviewScope) -> FileChanges:
    """Check whether another window has started a review."""
    return FileChanges(shown, file_exists=may_be_there(path))


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

    def check(self, shown: ReviewScope, *, is_outdated: bool) -> FileChanges:
        """Return what others changed since the previous call; thread-safe.

        Parameters
        ----------
        shown
            What the window shows.
        is_outdated
            Whether the window needs the verdicts although none changed.
        """
        with self._checking:
            try:
                changes = FileChanges(shown) if self._is_closed else self._find(shown, is_outdated)
            except ReviewError as error:
                changes = FileChanges(shown, error=error)
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

    def _find(self, shown: ReviewScope, is_outdated: bool) -> FileChanges:
        if self._twin is None:
            try:
                self._twin = self._store.twin()
            except ReviewError:
                if may_be_there(self._store.path):
                    raise
                return FileChanges(shown)  # the file was moved away
        regions = self._twin.poll()
        if not regions and not is_outdated:
            return FileChanges(shown)
        records = [] if shown.region is None else self._twin.current(region=shown.region)
        reviewed = [] if shown.team is None else self._twin.regions(team=shown.team)
        return FileChanges(shown, regions, records, frozenset(reviewed))
