"""Goes through failures one by one, over one region after another or over the whole cohort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.values.vocabulary import SIDES, Side

SMALL_PERCENT = 1
"""Percentage of the annotated objects that are small, unless the user sets a size."""
UNKNOWN = -1
"""Side of a stop that is a region whose failures are not known yet."""


def small_below(annotated_px: NDArray[np.integer]) -> int:
    """Return the area below which objects are small, given the areas of annotated ones (n,)."""
    if not len(annotated_px):
        return 0
    return int(np.percentile(annotated_px, SMALL_PERCENT, method="lower"))


def small_last(
    order: NDArray[np.intp], area_px: NDArray[np.integer], small_px: int
) -> NDArray[np.intp]:
    """Put objects of a smaller area at the end of an order (k,) of rows; each part keeps it."""
    return order[np.argsort(area_px[order] < small_px, kind="stable")]


@dataclass(frozen=True)
class QueuePlace:
    """Where the selected failure is among those that the queue leads to."""

    #: From 1; None if no failure of the queue is selected.
    number: int | None
    #: Failures that the queue leads to, as far as they are known.
    total: int
    #: Whether the selected one is small, and so among the last.
    is_small: bool = False
    #: What mending it alone would add to the mean PQ over patients; None if unknown.
    impact: float | None = None
    #: Whether that is what it would add to the PQ of its region instead.
    is_of_region: bool = False


@dataclass(frozen=True)
class QueueStop:
    """A place that the queue leads to."""

    #: Position of the region in the cohort.
    region: int
    #: The object; None for a region whose failures are not known before it is shown.
    side: Side | None = None
    id: int | None = None


@dataclass(frozen=True, eq=False)
class Stops:
    """Places in the order in which the queue leads to them, each once."""

    #: int64 (n,): positions of regions in the cohort.
    region: NDArray[np.int64]
    #: int8 (n,): positions in ``SIDES``, or ``UNKNOWN``.
    side: NDArray[np.int8]
    #: int64 (n,): ids of the objects; 0 where the side is unknown.
    id: NDArray[np.int64]

    def __len__(self) -> int:
        """Count the stops."""
        return len(self.region)

    @classmethod
    def of_region(cls, region: int, side: NDArray[np.generic], ids: NDArray[np.generic]) -> Stops:
        """Return the failures of one region."""
        return cls(np.full(len(ids), region, np.int64), side.astype(np.int8), ids.astype(np.int64))

    @classmethod
    def unknown(cls, region: int) -> Stops:
        """Return a stop at a region whose failures are not known yet."""
        return cls.of_region(region, np.array([UNKNOWN]), np.array([0]))

    @classmethod
    def joined(cls, parts: Sequence[Stops]) -> Stops:
        """Return the stops of several parts, one part after the other."""
        parts = [cls.of_region(0, np.zeros(0), np.zeros(0)), *parts]
        return cls(
            np.concatenate([part.region for part in parts]),
            np.concatenate([part.side for part in parts]),
            np.concatenate([part.id for part in parts]),
        )

    def at(self, place: int) -> QueueStop:
        """Return one stop."""
        side = int(self.side[place])
        if side == UNKNOWN:
            return QueueStop(int(self.region[place]))
        return QueueStop(int(self.region[place]), SIDES[side], int(self.id[place]))

    def find(self, stop: QueueStop) -> int | None:
        """Return the place of a stop; None if it is not among them."""
        side = UNKNOWN if stop.side is None else SIDES.index(stop.side)
        found = np.flatnonzero(
            (self.region == stop.region) & (self.side == side) & (self.id == (stop.id or 0))
        )
        return int(found[0]) if len(found) else None

    def keys(self, n_regions: int) -> NDArray[np.int64]:
        """Return a number per stop: equal stops of any order have equal numbers."""
        return (self.id * (len(SIDES) + 1) + self.side) * n_regions + self.region


class FailureQueue:
    """Remembers where the user is, and finds what comes next.

    The order may change between two steps, as when an edit removes the object that the user
    is at: the queue then goes on from the nearest earlier failure that is still there.
    """

    def __init__(self) -> None:
        self._stops = Stops.joined([])
        self._stop: QueueStop | None = None

    @property
    def stop(self) -> QueueStop | None:
        """Where the user is; None before the first step."""
        return self._stop

    def reset(self, stop: QueueStop | None = None) -> None:
        """Forget where the user is, or go on from a stop that is remembered."""
        self._stop, self._stops = stop, Stops.joined([])

    def go_to(self, stop: QueueStop, stops: Stops) -> bool:
        """Go on from a failure that the user chose.

        Parameters
        ----------
        stop
            The failure.
        stops
            The order now.

        Returns
        -------
        bool
            False if it is not in the queue, which then stays where it is.
        """
        if stops.find(stop) is None:
            return False
        self._stop, self._stops = stop, stops
        return True

    def step(
        self,
        stops: Stops,
        step: int,
        *,
        start: int | None = None,
        wanted: NDArray[np.bool_] | None = None,
        wraps: bool = False,
    ) -> QueueStop | None:
        """Go to the next or previous stop.

        Parameters
        ----------
        stops
            The order now.
        step
            1 for the next one, -1 for the previous one.
        start
            Position of the region to begin with if the user is not in the queue yet; None for
            the first stop of all.
        wanted
            bool (n,): the stops to consider; None for all.
        wraps
            Whether the first stop follows the last one, and the other way round.

        Returns
        -------
        QueueStop or None
            None at the end: the queue stays where it is.
        """
        before, after = self._gap(stops, step, start)
        chosen = np.ones(len(stops), bool) if wanted is None else wanted
        ahead, behind = np.flatnonzero(chosen[after:]) + after, np.flatnonzero(chosen[:before])
        if step < 0:
            ahead, behind = behind, ahead
        if wraps and not len(ahead):
            ahead = behind
        if not len(ahead):
            return None
        place = int(ahead[0] if step > 0 else ahead[-1])
        self._stop, self._stops = stops.at(place), stops
        return self._stop

    def _gap(self, stops: Stops, step: int, start: int | None) -> tuple[int, int]:
        """Return the number of stops before the user, and the place of the first one after."""
        if self._stop is None:
            return self._beginning(stops, step, start)
        place = stops.find(self._stop)
        if place is not None:
            return place, place + 1
        gap = self._gap_left(stops)
        return gap, gap

    def _beginning(self, stops: Stops, step: int, start: int | None) -> tuple[int, int]:
        if start is None:
            return len(stops), 0
        own = np.flatnonzero(stops.region == start)
        if not len(own):  # between the regions before and after
            gap = int(np.count_nonzero(stops.region < start))
            return gap, gap
        return (int(own[-1]) + 1,) * 2 if step < 0 else (int(own[0]),) * 2

    def _gap_left(self, stops: Stops) -> int:
        """Return the place after the nearest earlier stop that is still there."""
        if self._stop is None:
            return 0
        known = self._stops.find(self._stop)
        n = int(max(self._stops.region.max(initial=0), stops.region.max(initial=0))) + 1
        earlier = self._stops.keys(n)[:known]
        left = np.flatnonzero(np.isin(earlier, stops.keys(n)))
        if not len(left):
            return 0
        found = stops.find(self._stops.at(int(left[-1])))
        return 0 if found is None else found + 1
