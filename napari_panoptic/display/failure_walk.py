"""The way from failure to failure: which are wanted, where the user is, and what is next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from napari_panoptic.display.failure_queue import (
    FailureOrder,
    FailureQueue,
    QueuePlace,
    QueuePosition,
    QueueStop,
    ShownRegion,
    TableListing,
    known_lines,
)
from napari_panoptic.display.object_queue import QueueGap
from napari_panoptic.display.object_rows import ObjectFilter, WorstFirst
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.live.session import Selection, Session
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.values.vocabulary import SIDES, Side

IsWanted = Callable[[FailureName], bool]


@dataclass(frozen=True)
class ChosenOrder:
    """What the user chose about the order of failures."""

    #: What makes one failure worse than another.
    by: WorstFirst
    #: Which failures are wanted.
    wanted: ObjectFilter
    #: The size below which objects are small; 0 for the measured one.
    small_px: int = 0
    #: Whether one region comes after the other.
    is_by_region: bool = True


@dataclass(frozen=True)
class WalkStep:
    """A step that may go on in regions whose failures are not known before they are shown."""

    #: 1 or -1.
    step: int
    #: Which failures to consider; None for all.
    is_wanted: IsWanted | None = None
    #: Whether the first failure follows the last one.
    wraps: bool = False
    #: Names of the regions that were shown to know their failures: none is shown twice.
    looked_at: frozenset[str] = frozenset()


class FailureWalk:
    """Knows the order of failures, the set that they are limited to, and where the user is.

    Parameters
    ----------
    session
        What is shown, and what is known of the other regions.
    chosen
        Returns what the user chose about the order.
    listed
        Returns what the object table lists of the region that is shown; None if the team has no
        result there.
    """

    def __init__(
        self,
        session: Session,
        chosen: Callable[[], ChosenOrder],
        listed: Callable[[], TableListing | None],
    ) -> None:
        self._session, self._chosen, self._listed = session, chosen, listed
        self._order: FailureOrder | None = None
        self._position: QueuePosition | None = None
        # Where an earlier start ended, until the queue goes on from it.
        self._left_at: QueueStop | None = None
        self.limit: FailureSet | None = None
        """The only objects that are wanted; None for no limit."""
        self.opened_at: Selection | None = None
        """The failure that was selected at opening, not by the user."""

    @property
    def team(self) -> str:
        """The team that is shown; empty if none is."""
        return self._session.team or ""

    @property
    def here(self) -> str | None:
        """The region that was asked for last, even if it is not there yet."""
        return self._session.wanted_region

    @property
    def is_by_region(self) -> bool:
        """Whether one region comes after the other, and not all failures of the cohort at once."""
        return self._chosen().is_by_region and self.limit is None

    @property
    def order(self) -> FailureOrder:
        """The order of the failures; the same object until something changes."""
        session, limit, chosen = self._session, self.limit, self._chosen()
        is_by_region = self.is_by_region
        teams: tuple[str, ...] = (self.team,)
        if limit is not None:  # the failures of all its teams
            teams = tuple(team for team in session.cohort.team_names if team in limit.teams)
        order = FailureOrder(
            regions=session.cohort.regions,
            team=self.team,
            teams=teams,
            lines=known_lines(session, {*teams, self.team}),
            by=chosen.by,
            chosen_small_px=chosen.small_px,
            # The filter has no effect on a set.
            wanted=chosen.wanted if limit is None else ObjectFilter(),
            limit=limit,
            is_alone=is_by_region,
            shown=self.shown_region() if is_by_region else None,
        )
        if order != self._order:
            self._order = order
        return self._order

    def shown_region(self) -> ShownRegion:
        """Return what is known of the region that is shown, in place of its summary."""
        snapshot = self._session.snapshot
        if snapshot is None:
            return ShownRegion("", None)
        listed = self._listed()
        is_pending = listed is None and self._session.team in snapshot.pending
        return ShownRegion(snapshot.region.name, listed, is_pending)

    # Where the user is.

    def begin_anew(self) -> None:
        """Begin with the first failure at the next step, whatever is selected."""
        self._position = self._left_at = None

    def begin_here(self) -> None:
        """Begin with the first failure of a region that has come."""
        self._position = None

    def stand_here(self) -> None:
        """Continue from the selected object, even if it changes before the next step."""
        self._stand(self.order.queue)

    def place(self) -> QueuePlace:
        """Return where the selected failure is among those that the walk leads to."""
        is_by_region, order, here = self.is_by_region, self.order, self.here
        if is_by_region and here is None:
            return QueuePlace(None, 0)
        if is_by_region and here is not None:
            order = order.of_region(here)
        queue = order.queue
        stop = self._selected_stop(queue)
        place = None if stop is None else queue.find(stop)
        if stop is None or stop.name is None or place is None:
            return QueuePlace(None, queue.n_failures)
        impact, small = order.impact_of(stop.name), self.is_small(stop)
        return QueuePlace(place + 1, queue.n_failures, small, impact, is_by_region)

    def partner(self) -> tuple[Side, int] | None:
        """Return the object that the selected one is matched with: a pair is one failure."""
        shown, chosen = self._session.shown, self._session.selection
        if shown is None or chosen is None:
            return None
        partner = int(shown.outcomes.side(chosen.side).partner[chosen.row])
        if partner == NO_PARTNER:
            return None
        other = shown.outcomes.other(chosen.side)
        return other.side, int(other.ids[partner])

    def is_small(self, stop: QueueStop) -> bool:
        """Return whether the object of a stop in the region that is shown is small."""
        shown = self._session.shown
        if shown is None or stop.side is None or stop.id is None:
            return False
        objects = shown.outcomes.side(stop.side)
        row = objects.row_of(stop.id)
        return row is not None and int(objects.area_px[row]) < self.order.small_px

    # Where it goes.

    def opening(self) -> QueueStop | None:
        """Return where an earlier start ended if that is in this region, or its worst failure."""
        queue, stop = self.order.listed(self.shown_region()), self._left_at
        if stop is None or stop.region != self.here or queue.find(stop) is None:
            return queue.item(0) if len(queue) else None
        return stop

    def go(self, asked: WalkStep, *, more_come: bool) -> QueueStop | None:
        """Return the stop that a step leads to; None if there is none.

        Parameters
        ----------
        asked
            The step.
        more_come
            Whether other regions are still being evaluated: where an earlier start ended may then
            be in one of them.
        """
        queue = self.order.queue
        standing = self._stand(queue, asked.step)
        stop = self._not_known_yet(queue) if more_come else None
        self._left_at = None
        if stop is None:
            wants = None if asked.is_wanted is None else self._wants(asked)
            place = queue.step(asked.step, standing, wants, wraps=asked.wraps)
            if place is not None:
                stop = queue.item(place)
                self._position = QueuePosition(stop, queue)
        return stop

    # Where it ended.

    def to_keep(self) -> list[str | int]:
        """Return where the user is, as `resume` takes it; empty for nowhere."""
        name = None if self._position is None else self._position.stop.name
        return [] if name is None else [self.team, name.region, str(name.side), name.id]

    def resume(self, kept: Sequence[object] | None) -> None:
        """Go on where an earlier start ended, unless that was with another team."""
        regions = [region.name for region in self._session.cohort.regions]
        match kept:
            case [str(team), str(region), str(side), int(id_)]:
                if team == self.team and region in regions and side in SIDES:
                    self._left_at = QueueStop(team, region, Side(side), id_)
                    self._position = QueuePosition(self._left_at)

    def _not_known_yet(self, queue: FailureQueue) -> QueueStop | None:
        """Return where an earlier start ended if its region is still to be evaluated."""
        stop = self._left_at
        if stop is None or self.is_by_region or queue.find(stop) is not None:
            return None
        return None if (stop.region, self.team) in self._session.summaries else stop

    def _stand(self, queue: FailureQueue, step: int = 1) -> QueueGap | None:
        """Go on from the region and object that the user chose; return where that is."""
        here, before = self.here, self._position
        chosen, selected = self._session.selection, self._selected_stop(queue)
        if before is not None and before.stop.region != here and self.is_by_region:
            self._position = None
        is_by_user = before is None or chosen != self.opened_at
        has_begun = self._position is not None or selected == self._first_of(queue)
        if selected is not None and is_by_user and has_begun:
            self._position = QueuePosition(selected, queue)
        if self._position is not None:
            return queue.standing(self._position)
        return queue.before_region(here, step) if self.is_by_region and here else None

    def _first_of(self, queue: FailureQueue) -> QueueStop | None:
        """Return the stop with which the queue begins."""
        here = self.here
        begin = queue.part(here) if self.is_by_region and here is not None else queue
        return begin.item(0) if len(begin) else None

    def _selected_stop(self, queue: FailureQueue) -> QueueStop | None:
        """Return the stop of the selected object, or of its partner; None if it has none."""
        snapshot, chosen, here = self._session.snapshot, self._session.selection, self.here
        if chosen is None or snapshot is None or snapshot.region.name != here:
            return None
        stops = [QueueStop(chosen.team, here, chosen.side, chosen.id)]
        if (partner := self.partner()) is not None:
            stops.append(QueueStop(chosen.team, here, *partner))
        return next((stop for stop in stops if queue.find(stop) is not None), None)

    def _wants(self, asked: WalkStep) -> Callable[[QueueStop], bool]:
        """Return what tells which stops to consider: regions that are not known only once."""

        def wants(stop: QueueStop) -> bool:
            if stop.name is not None:
                return asked.is_wanted is None or asked.is_wanted(stop.name)
            return stop.region not in asked.looked_at and not self._is_slide(stop.region)

        return wants

    def _is_slide(self, region: str) -> bool:
        """Return whether a region is known to be too large to be held."""
        snapshot = self._session.snapshot
        if snapshot is not None and snapshot.region.name == region:
            return snapshot.is_slide
        line = self._session.summaries.get((region, self.team))
        return line is not None and line.is_slide
