"""A cache of the regions next to the shown one, loaded in the background.

A cached snapshot is passed to `napari_panoptic.live.snapshots.load_in_steps` as the
previous one, which computes what other settings or another format need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.formats.labels.label_images import SIDECAR_SUFFIXES
from napari_panoptic.io.formats.registry import reference_shape
from napari_panoptic.live.actions import split_functions
from napari_panoptic.live.snapshots import RegionSnapshot, load_in_steps
from napari_panoptic.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.values.settings import EvaluationSettings

MOST_NEIGHBOURS = 2
"""The largest number of cached regions beside the shown one."""
LARGEST_PX = 4096 * 4096
"""Larger regions are not cached: one of this size takes some 0.5 GB."""

Stamps = tuple[tuple[Path, int, int], ...]
"""Path, modification time in ns, and size in bytes of each existing file."""


@dataclass(frozen=True)
class ReadAheadSettings:
    """The settings with which neighbours are loaded."""

    #: Those of the shown region.
    settings: EvaluationSettings
    source: Source | None
    #: The shown team, which is loaded first.
    team: str | None


@dataclass(frozen=True, eq=False)
class Read:
    """A cached snapshot, with the stamps of its files taken before they were read."""

    snapshot: RegionSnapshot
    stamps: Stamps


class ReadAhead:
    """Loads neighbours in one thread, and caches a few that are not large.

    Parameters
    ----------
    cohort
        The cohort of the regions.
    """

    def __init__(self, cohort: Cohort) -> None:
        self._cohort = cohort
        self._lock = Lock()
        self._may_go_on = Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="read-ahead")
        self._known: dict[str, Read] = {}
        self._coming: dict[str, Future[None]] = {}
        self._is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether a region is being loaded."""
        return any(not future.done() for future in self._coming.values())

    @property
    def names(self) -> frozenset[str]:
        """The cached regions."""
        return frozenset(self._known)

    def want(self, shown: str, neighbours: Sequence[str], wanted: ReadAheadSettings) -> None:
        """Load these regions, in this order, and evict all others; then import what splits need.

        Parameters
        ----------
        shown
            The shown region, which stays cached.
        neighbours
            The first ``MOST_NEIGHBOURS`` of them are loaded.
        wanted
            How to load them.
        """
        if self._is_closed:
            return
        self.pause()
        names = [name for name in dict.fromkeys(neighbours) if name != shown][:MOST_NEIGHBOURS]
        with self._lock:
            kept = {shown, *names}
            self._known = {name: read for name, read in self._known.items() if name in kept}
        self._may_go_on = Event()
        self._may_go_on.set()
        self._coming = {
            name: self._pool.submit(self._read, name, wanted, self._may_go_on) for name in names
        }
        self._pool.submit(split_functions)

    def pause(self) -> None:
        """Cancel loading; cached regions stay."""
        self._may_go_on.clear()
        for future in self._coming.values():
            future.cancel()

    def take(self, name: str) -> Read | None:
        """Return the cached snapshot of a region; None if there is none, or its files changed.

        Blocks while the region is being loaded, until the shown team is
        done: call it from workers.
        """
        coming = self._coming.get(name)
        if coming is not None and not coming.cancel():
            coming.result()
        return self._unchanged(name)

    def keep(self, snapshot: RegionSnapshot, stamps: Stamps) -> None:
        """Cache a region, unless it is large.

        Parameters
        ----------
        snapshot
            The loaded region.
        stamps
            The stamps of its files, taken before the first of them was read.
        """
        height, width = snapshot.shape
        if height * width <= LARGEST_PX and not self._is_closed:
            with self._lock:
                self._known[snapshot.region.name] = Read(snapshot, stamps)

    def close(self) -> None:
        """Cancel loading and clear the cache."""
        self._is_closed = True
        self.pause()
        self._pool.shutdown(wait=False)
        with self._lock:
            self._known.clear()

    def _unchanged(self, name: str) -> Read | None:
        with self._lock:
            read = self._known.get(name)
        if read is None or read.stamps == stamps_of(self._cohort, read.snapshot.region):
            return read
        with self._lock:
            self._known.pop(name, None)
        return None

    def _read(self, name: str, wanted: ReadAheadSettings, may_go_on: Event) -> None:
        try:
            region, read = self._cohort.region(name), self._unchanged(name)
            if not may_go_on.is_set() or (read is None and not _is_small(self._cohort, region)):
                return
            stamps = stamps_of(self._cohort, region) if read is None else read.stamps
            for snapshot in load_in_steps(
                self._cohort,
                name,
                wanted.settings,
                source=wanted.source,
                previous=None if read is None else read.snapshot,
                first=wanted.team,
                is_wanted=may_go_on.is_set,
            ):
                self.keep(snapshot, stamps)
        except (PanopticError, OSError):
            return  # reported when the region is shown


def stamps_of(cohort: Cohort, region: Region) -> Stamps:
    """Return modification times and sizes of the files of a region.

    Files with the same stamps are regarded as the same.
    """
    stamps = []
    for path in dict.fromkeys(_files(cohort, region)):
        try:
            status = path.stat()
        except OSError:
            continue
        stamps.append((path, status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def _files(cohort: Cohort, region: Region) -> Iterator[Path]:
    """Yield every file that is read for a region, and possible tables of classes."""
    if region.image is not None:
        yield region.image
    for files in _masks(cohort, region):
        for path in (path for paths in files.paths.values() for path in paths):
            yield path
            if files.source == Source.LABELS:
                yield from (path.with_suffix(suffix) for suffix in SIDECAR_SUFFIXES)


def _masks(cohort: Cohort, region: Region) -> Iterator[MaskFiles]:
    """Yield all formats of the annotation and of every team's prediction."""
    if region.reference is not None:
        yield region.reference
    for team in cohort.teams:
        yield from cohort.predictions.get((team.name, region.name), {}).values()


def _is_small(cohort: Cohort, region: Region) -> bool:
    """Return whether a region is known to be small enough for the cache."""
    shape = reference_shape(region.image, _masks(cohort, region), image_item=region.image_item)
    return shape is not None and shape[0] * shape[1] <= LARGEST_PX
