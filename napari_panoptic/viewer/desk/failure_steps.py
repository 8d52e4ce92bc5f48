"""Goes from failure to failure, over one region after another or over the whole cohort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from psygnal import Signal

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
from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.live.session import Selection, Session
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.values.vocabulary import SIDES, Side
from napari_panoptic.viewer.jobs.region_work import SummaryWork
from napari_panoptic.viewer.panels.objects.panel import ObjectTable
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.state.desk_state import DeskState
from napari_panoptic.viewer.state.preferences import PREFERENCES, Queue

LAST = "This is the last failure of the cohort. Shift+N goes back."
FIRST = "This is the first failure of the cohort. N goes on."
LAST_CHOSEN = "This is the last of the chosen failures. Shift+N goes back."
FIRST_CHOSEN = "This is the first of the chosen failures. N goes on."
NONE_CHOSEN = "None of the chosen objects is a failure now: press “Show all” in the gallery."
STILL_COMING = "The other regions are still being evaluated."
NONE_LISTED = (
    "The filters hide all failures. Choose “Failures” in the menu “Filter” of the object table."
)
NONE = "No failures: nothing is FN, FP or misclassified in any region."

MOST_OPENED = 10
"""The most regions in which a cohort is opened in search of a failure that is not small."""

IsWanted = Callable[[FailureName], bool]


@dataclass(frozen=True)
class _Asked:
    """A step that may go on in regions whose failures are not known before they are shown."""

    #: 1 or -1.
    step: int
    #: Which failures to consider; None for all.
    is_wanted: IsWanted | None = None
    #: Whether the first failure follows the last one.
    wraps: bool = False
    #: Names of the regions that were shown to know their failures: none is shown twice.
    looked_at: frozenset[str] = frozenset()


class FailureSteps:
    """Finds the next and the previous failure in the order of the table and of the cohort.

    Knows also which failures the user chose together, in whatever regions, and the set of
    failures that the gallery and N are limited to.

    Parameters
    ----------
    session, state
        What is shown, and the order that the user chose.
    objects
        The object table: in the region that is shown, its order and filter count.
    summary
        Evaluates the other regions.
    go_to
        Goes to a region, and an object in it.
    follow_selected
        Brings the selected object into view.
    say
        Shows a text where the user is looking.
    """

    ended = Signal()
    """`go_on` found no open failure."""
    chosen_changed = Signal(tuple)
    """Other failures, or none, are chosen together."""
    only_changed = Signal(object)  # FailureSet | None
    """The gallery and N are limited to a set of failures, or no longer."""

    def __init__(
        self,
        session: Session,
        state: DeskState,
        objects: ObjectTable,
        summary: SummaryWork,
        *,
        go_to: Callable[..., None],
        follow_selected: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._session, self._state, self._objects = session, state, objects
        self._summary, self._go_to = summary, go_to
        self._follow_selected, self._say = follow_selected, say
        self._names = [region.name for region in session.cohort.regions]
        self._order: FailureOrder | None = None
        self._position: QueuePosition | None = None
        self._going_on: _Asked | None = None
        self._chosen: tuple[FailureName, ...] = ()
        self._only: FailureSet | None = None
        self._is_open = False
        # The region in which the first failure is looked for; None if the user chose the region.
        self._opening: str | None = None
        # The failure that was selected at opening, not by the user.
        self._opened_at: Selection | None = None
        # The stop of an earlier start, until the queue goes on from it.
        self._left_at = self._remembered()
        self._position = None if self._left_at is None else QueuePosition(self._left_at)

    def connections(self) -> Connections:
        """Return what begins the walk again, or lets go of what was chosen for it."""
        session, events = self._session, self._state.events
        return [
            # Another order begins with its worst failure.
            (events.order, self.leave),
            (events.queue, self.leave),
            (events.object_filter, self.leave),
            (session.team_changed, self._on_team),
            (session.team_changed, self.choose_none),
            (session.settings_changed, self.choose_none),
            (session.settings_changed, self.show_all),
            (session.source_changed, self.choose_none),
            (session.source_changed, self.show_all),  # objects may have other ids
            (session.selection_changed, self.follow_selection),
        ]

    def step(self, step: int = 1, is_wanted: IsWanted | None = None) -> bool:
        """Go to the next (1) or previous (-1) failure; at the end, report that.

        Parameters
        ----------
        step
            1 or -1.
        is_wanted
            Which failures to consider; None for all.

        Returns
        -------
        bool
            Whether there is one, or a region that may have one is being loaded.
        """
        self.choose(())
        asked = _Asked(step, is_wanted)
        if self._take(asked):
            return True
        self._follow_selected()
        self._say(self._why_none(step))
        return False

    def go_on(self, is_open: IsWanted) -> None:
        """Go to the next open failure, from the first again after the last.

        `ended` is emitted if there is none: at once, or when the regions whose failures were
        not known have been shown. Whole slides are left out.
        """
        self.choose(())
        self._go_on(_Asked(1, is_open, wraps=True))

    @property
    def _team(self) -> str:
        """The team that is shown."""
        return self._session.team or ""

    @property
    def _teams(self) -> tuple[str, ...]:
        """The teams whose failures N leads to over the cohort, the one that is shown first."""
        if self._only is None:
            return (self._team,)
        teams = self._session.cohort.team_names
        return tuple(team for team in teams if team in self._only.teams)

    @property
    def _is_by_region(self) -> bool:
        return self._state.queue is Queue.REGION and self._only is None

    @property
    def chosen(self) -> tuple[FailureName, ...]:
        """The failures that the user chose together; empty if fewer than two."""
        return self._chosen

    def choose(self, names: Sequence[FailureName]) -> None:
        """Choose several failures together; fewer than two are none."""
        chosen = tuple(names) if len(names) > 1 else ()
        if chosen != self._chosen:
            self._chosen = chosen
            self.chosen_changed.emit(chosen)

    @property
    def only(self) -> FailureSet | None:
        """The failures that the gallery and N are limited to; None for no limit."""
        return self._only

    def show_only(self, only: FailureSet | None) -> None:
        """Limit the gallery and N to a set of failures; None for no limit."""
        if only is None and self._only is None:
            return
        self._only = only
        self.leave()
        self.choose(())
        self.only_changed.emit(only)

    def show_all(self, _changed: object = None) -> None:
        """Limit the gallery and N no longer."""
        self.show_only(None)

    def follow_selection(self, selection: Selection | None) -> None:
        """Choose no failures together any more if the user selects another object."""
        if selection is None or not self._chosen:
            return
        named = [(selection.side, selection.id), self._partner()]
        if not any((name.side, name.id) in named for name in self._chosen_here()):
            self.choose(())

    def choose_none(self, _changed: object = None) -> None:
        """Choose no failures together."""
        self.choose(())

    def leave(self, _changed: object = None) -> None:
        """Begin with the first failure at the next step, whatever is selected."""
        self._position = self._left_at = None

    def _on_team(self, _name: str) -> None:
        """Begin again with another team; a set without objects of it ends."""
        if self._only is None:
            self.leave()
        elif self._team not in self._only.teams:
            self.show_all()

    @property
    def is_as_opened(self) -> bool:
        """Whether no object was selected but at opening."""
        return self._session.selection in (None, self._opened_at)

    def open_anywhere(self) -> None:
        """Open the cohort in the first region with a failure that is not small."""
        self._opening = self._names[0] if self._names else None

    def first(self) -> None:
        """Select the failure at which an earlier start ended, or else the worst one here.

        If that is small, the next region may be shown instead: see `open_anywhere`. Nothing
        happens if the user has selected an object, or on a slide, which opens as a map.
        """
        snapshot, shown, here = self._session.snapshot, self._session.shown, self._here
        if snapshot is None or shown is None or here is None:
            return
        self._is_open = True
        if self._session.selection is not None or snapshot.is_slide:
            return
        queue, stop = self.order.listed(self.shown_region()), self._left_at
        if stop is None or stop.region != here or queue.find(stop) is None:
            stop = queue.item(0) if len(queue) else None
        if self._opens_elsewhere(here, stop):
            return
        row = None
        if stop is not None and stop.side is not None and stop.id is not None:
            row = shown.outcomes.side(stop.side).row_of(stop.id)
        if stop is not None and stop.side is not None and row is not None:
            self._session.select_row(stop.side, row)
            self._opened_at = self._session.selection
            self._follow_selected()

    def _opens_elsewhere(self, here: str, stop: QueueStop | None) -> bool:
        """Go on to the next region while only small failures are found; at last to the first."""
        is_opening, self._opening = here == self._opening, None
        if not is_opening or (stop is not None and not self._is_small(stop)):
            return False
        names = self._names[:MOST_OPENED]
        number = names.index(here) + 1
        following = names[number] if number < len(names) else names[0]
        self._opening = following if number < len(names) else None
        self._is_open = following == here
        if following != here:
            self._go_to(following)
        return following != here

    def place(self) -> QueuePlace:
        """Return where the selected failure is among those that N leads to."""
        is_by_region, order, here = self._is_by_region, self.order, self._here
        if is_by_region and here is None:
            return QueuePlace(None, 0)
        if is_by_region and here is not None:
            order = order.of_region(here)
        queue = order.queue
        stop = self._selected_stop(queue)
        place = None if stop is None else queue.find(stop)
        if stop is None or stop.name is None or place is None:
            return QueuePlace(None, queue.n_failures)
        impact = order.impact_of(stop.name)
        small = self._is_small(stop)
        return QueuePlace(place + 1, queue.n_failures, small, impact, is_by_region)

    def keep_stop(self) -> None:
        """Remember where the queue is, for the next start."""
        root, position = self._session.cohort.root, self._position
        if self._only is not None:
            return
        kept: list[str | int] = []
        if position is not None and (name := position.stop.name) is not None:
            kept = [self._team, name.region, str(name.side), name.id]
        if kept != (PREFERENCES.stop(root) or []):
            PREFERENCES.keep_stop(root, kept)

    @property
    def order(self) -> FailureOrder:
        """The order in which N leads to failures; the same object until something changes."""
        session, state, only = self._session, self._state, self._only
        is_by_region = self._is_by_region
        order = FailureOrder(
            regions=session.cohort.regions,
            team=self._team,
            teams=self._teams,
            lines=known_lines(session, {*self._teams, self._team}),
            by=state.order,
            chosen_small_px=PREFERENCES.small_px,
            # The filter has no effect on a set.
            wanted=state.object_filter if only is None else ObjectFilter(),
            limit=only,
            is_alone=is_by_region,
            shown=self.shown_region() if is_by_region else None,
        )
        if order != self._order:
            self._order = order
        return self._order

    @property
    def small_px(self) -> int:
        """The area below which failures are small, and come last."""
        return self.order.small_px

    def listed(self) -> TableListing | None:
        """Return what the object table lists; None if the team has no result here."""
        shown, table = self._session.shown, self._objects
        if shown is None:
            return None
        return TableListing(
            table.model.rows,
            table.model.order,
            table.view.sorted_by >= 0,
            shown.outcomes.class_names,
            shown.outcomes.mpp,
        )

    def stand_here(self) -> None:
        """Go on from the selected object, whatever becomes of it until the next step."""
        self._stand(self.order.queue)

    def arrive(self) -> None:
        """Go on in a region whose failures were not known before it was shown.

        The first region that is shown begins with its worst failure.
        """
        if not self._is_open:
            self.first()
        snapshot = self._session.snapshot
        if self._going_on is None or snapshot is None or self._here is None:
            return
        if snapshot.region.name != self._session.wanted_region:
            return
        if self._session.shown is None and self._session.team in snapshot.pending:
            return
        self._position = None
        asked = self._going_on
        if asked.wraps:
            self._go_on(asked)
        elif not self._take(asked):
            self._say(self._why_none(asked.step))

    def _go_on(self, asked: _Asked) -> None:
        if not self._take(asked):
            self.ended.emit()

    def _take(self, asked: _Asked) -> bool:
        """Go where a step leads; False if there is nothing."""
        self._going_on = None
        queue = self.order.queue
        standing = self._stand(queue, asked.step)
        stop = self._not_known_yet(queue)
        if stop is None:
            wants = None if asked.is_wanted is None else self._wants(asked)
            place = queue.step(asked.step, standing, wants, wraps=asked.wraps)
            if place is None:
                return False
            stop = queue.item(place)
            self._position = QueuePosition(stop, queue)
        self._visit(stop, asked)
        return True

    def _not_known_yet(self, queue: FailureQueue) -> QueueStop | None:
        """Return where an earlier start ended, if its region is still to be evaluated."""
        stop, self._left_at = self._left_at, None
        if stop is None or self._is_by_region or queue.find(stop) is not None:
            return None
        is_coming = (stop.region, self._team) not in self._session.summaries
        return stop if is_coming and self._summary.is_busy else None

    def _remembered(self) -> QueueStop | None:
        """Return where an earlier start ended with the present team; None if unknown."""
        kept = PREFERENCES.stop(self._session.cohort.root) or []
        match kept:
            case [str(team), str(region), str(side), int(id_)]:
                if team == self._team and region in self._names and side in SIDES:
                    return QueueStop(team, region, Side(side), id_)
        return None

    def _chosen_here(self) -> list[FailureName]:
        snapshot, team = self._session.snapshot, self._session.team
        if snapshot is None:
            return []
        place = team, snapshot.region.name
        return [name for name in self._chosen if (name.team, name.region) == place]

    @property
    def _here(self) -> str | None:
        """The region last asked for, even if it is not there yet."""
        return self._session.wanted_region

    def shown_region(self) -> ShownRegion:
        """Return what is known of the region that is shown, in place of its summary."""
        snapshot, team = self._session.snapshot, self._session.team
        if snapshot is None:
            return ShownRegion("", None)
        listed = self.listed()
        is_pending = listed is None and team in snapshot.pending
        return ShownRegion(snapshot.region.name, listed, is_pending)

    def _stand(self, queue: FailureQueue, step: int = 1) -> QueueGap | None:
        """Go on from the region and object that the user chose; return where that is."""
        here, before = self._here, self._position
        chosen, selected = self._session.selection, self._selected_stop(queue)
        if before is not None and before.stop.region != here and self._is_by_region:
            self._position = None
        is_by_user = before is None or chosen != self._opened_at
        has_begun = self._position is not None or selected == self._first_of(queue)
        if selected is not None and is_by_user and has_begun:
            self._position = QueuePosition(selected, queue)
        if self._position is not None:
            return queue.standing(self._position)
        return queue.before_region(here, step) if self._is_by_region and here else None

    def _first_of(self, queue: FailureQueue) -> QueueStop | None:
        """Return the stop with which the queue begins."""
        here = self._here
        begin = queue.part(here) if self._is_by_region and here is not None else queue
        return begin.item(0) if len(begin) else None

    def _selected_stop(self, queue: FailureQueue) -> QueueStop | None:
        """Return the stop of the selected object, or of its partner; None if it has none."""
        snapshot, chosen, here = self._session.snapshot, self._session.selection, self._here
        if chosen is None or snapshot is None or snapshot.region.name != here:
            return None
        stops = [QueueStop(chosen.team, here, chosen.side, chosen.id)]
        if (partner := self._partner()) is not None:
            stops.append(QueueStop(chosen.team, here, *partner))
        return next((stop for stop in stops if queue.find(stop) is not None), None)

    def _is_small(self, stop: QueueStop) -> bool:
        """Return whether the object of a stop in the region that is shown is small."""
        shown = self._session.shown
        if shown is None or stop.side is None or stop.id is None:
            return False
        own = shown.outcomes.side(stop.side)
        row = own.row_of(stop.id)
        return row is not None and int(own.area_px[row]) < self.small_px

    def _partner(self) -> tuple[Side, int] | None:
        """Return the object that the selected one is matched with: a pair is one failure."""
        shown, chosen = self._session.shown, self._session.selection
        if shown is None or chosen is None:
            return None
        partner = int(shown.outcomes.side(chosen.side).partner[chosen.row])
        if partner == NO_PARTNER:
            return None
        other = shown.outcomes.other(chosen.side)
        return other.side, int(other.ids[partner])

    def _visit(self, stop: QueueStop, asked: _Asked) -> None:
        agreeing: tuple[str, ...] = ()
        if stop.name is None:
            self._going_on = replace(asked, looked_at=asked.looked_at | {stop.region})
            if stop.region == self._here:  # it is still being evaluated
                self._say(self._objects.empty_text)
        elif self._only is not None:
            agreeing = self._only.agreeing.get(stop.name, ())
        self._go_to(stop.region, stop.side, stop.id, team=stop.team or None, beside=agreeing)

    def _wants(self, asked: _Asked) -> Callable[[QueueStop], bool]:
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
        line = self._session.summaries.get((region, self._team))
        return line is not None and line.is_slide

    def _why_none(self, step: int) -> str:
        if not len(self.order.queue):
            if not len(self._objects.model.rows):
                return self._objects.empty_text
            if self._summary.is_busy:
                return STILL_COMING
            if self._only is not None:
                return NONE_CHOSEN
            return NONE if self._state.object_filter.is_open else NONE_LISTED
        if step < 0:
            return FIRST if self._only is None else FIRST_CHOSEN
        last = LAST if self._only is None else LAST_CHOSEN
        is_coming = self._summary.is_busy and not self._is_by_region
        return f"{last} {STILL_COMING}" if is_coming else last
