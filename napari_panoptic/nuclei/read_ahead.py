"""The neighbours of the region that is shown, read before anybody asks for them.

Nothing here decides what is shown: a region that was read ahead is handed to
:func:`napari_panoptic.nuclei.snapshots.load_in_steps` as what is known of it already, and
what other settings or another source of predictions ask for is computed there.
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
from napari_panoptic.nuclei.snapshots import RegionSnapshot, load_in_steps
from napari_panoptic.nuclei.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings

MOST_NEIGHBOURS = 2
"""So many regions are kept at most beside the one that is shown."""
LARGEST_PX = 4096 * 4096
"""Larger regions are not read ahead: what belongs to one of this size takes some 0.5 GB."""

Stamps = tuple[tuple[Path, int, int], ...]
"""Path, time of the last change in ns, and size in bytes of each file that is there."""


@dataclass(frozen=True)
class Wanted:
    """How neighbours are to be read.

    Parameters
    ----------
    settings, source
        As the shown region was.
    team
        The team that is looked at, which is read first.
    no_others
        Whether the other teams are left for later.
    """

    settings: EvaluationSettings
    source: Source | None
    team: str | None
    no_others: bool = False


@dataclass(frozen=True, eq=False)
class Read:
    """A snapshot, and its files as they were before the first of them was read."""

    snapshot: RegionSnapshot
    stamps: Stamps


class ReadAhead:
    """Reads neighbours in one thread, and keeps few and none that is large.

    Parameters
    ----------
    cohort
        Where the regions are from.
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
        """Whether something is being read."""
        return any(not future.done() for future in self._coming.values())

    @property
    def names(self) -> frozenset[str]:
        """The regions of which something is kept."""
        return frozenset(self._known)

    def want(self, shown: str, neighbours: Sequence[str], wanted: Wanted) -> None:
        """Read these regions, in this order, and forget all others.

        Parameters
        ----------
        shown
            The region that is shown: kept as long as it may become a neighbour.
        neighbours
            At most ``MOST_NEIGHBOURS`` of them are read.
        wanted
            How to read them.
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

    def pause(self) -> None:
        """Read nothing more: somebody waits for something else. What is done stays."""
        self._may_go_on.clear()
        for future in self._coming.values():
            future.cancel()

    def take(self, name: str) -> Read | None:
        """Return what is known of a region; None where that is nothing, or its files changed.

        Where the region is just being read, that is waited for until the team
        that is looked at is done. For workers.
        """
        coming = self._coming.get(name)
        if coming is not None and not coming.cancel():
            coming.result()
        return self._unchanged(name)

    def keep(self, snapshot: RegionSnapshot, stamps: Stamps) -> None:
        """Keep a region, in case that it becomes a neighbour.

        Parameters
        ----------
        snapshot
            What was read; not kept where it is large.
        stamps
            Of its files, taken before the first of them was read.
        """
        height, width = snapshot.shape
        if height * width <= LARGEST_PX and not self._is_closed:
            with self._lock:
                self._known[snapshot.region.name] = Read(snapshot, stamps)

    def close(self) -> None:
        """Stop reading and forget everything."""
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

    def _read(self, name: str, wanted: Wanted, may_go_on: Event) -> None:
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
                if wanted.no_others:
                    return
        except (PanopticError, OSError):
            return  # whoever asks for the region hears of it then


def stamps_of(cohort: Cohort, region: Region) -> Stamps:
    """Note when the files of a region were changed last, and how large they are.

    Two files of the same stamps are taken for the same.
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
    """List every file that is read for a region, and tables of classes that may be there."""
    if region.image is not None:
        yield region.image
    for files in _masks(cohort, region):
        for path in (path for paths in files.paths.values() for path in paths):
            yield path
            if files.source == Source.LABELS:
                yield from (path.with_suffix(suffix) for suffix in SIDECAR_SUFFIXES)


def _masks(cohort: Cohort, region: Region) -> Iterator[MaskFiles]:
    """List all forms of the annotation and of every team's prediction."""
    if region.reference is not None:
        yield region.reference
    for team in cohort.teams:
        yield from cohort.predictions.get((team.name, region.name), {}).values()


def _is_small(cohort: Cohort, region: Region) -> bool:
    """Return whether a region may be read ahead; one whose size nobody knows may not."""
    shape = reference_shape(region.image, _masks(cohort, region), image_item=region.image_item)
    return shape is not None and shape[0] * shape[1] <= LARGEST_PX
