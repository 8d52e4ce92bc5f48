"""Goes from failure to failure, over one region after another or over the whole cohort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from psygnal import Signal

from napari_panoptic.display.failure_queue import (
    QueueStop,
    TableListing,
)
from napari_panoptic.display.failure_walk import ChosenOrder, FailureWalk, IsWanted, WalkStep
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.live.session import Selection, Session
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


class FailureSteps:
    """Goes to the next and the previous failure in the order of the table and of the cohort.

    Knows also which failures the user chose together, in whatever regions.

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
        self.walk = FailureWalk(session, self._chosen_order, self._listed)
        """The order of the failures, and where the user is."""
        self.walk.resume(PREFERENCES.stop(session.cohort.root))
        self._names = [region.name for region in session.cohort.regions]
        self._going_on: WalkStep | None = None
        self._chosen: tuple[FailureName, ...] = ()
        self._is_open = False
        # The region in which the first failure is looked for; None if the user chose the region.
        self._opening: str | None = None

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
        asked = WalkStep(step, is_wanted)
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
        self._go_on(WalkStep(1, is_open, wraps=True))

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
        return self.walk.limit

    def show_only(self, only: FailureSet | None) -> None:
        """Limit the gallery and N to a set of failures; None for no limit."""
        if only is None and self.only is None:
            return
        self.walk.limit = only
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
        named = [(selection.side, selection.id), self.walk.partner()]
        if not any((name.side, name.id) in named for name in self._chosen_here()):
            self.choose(())

    def choose_none(self, _changed: object = None) -> None:
        """Choose no failures together."""
        self.choose(())

    def leave(self, _changed: object = None) -> None:
        """Begin with the first failure at the next step, whatever is selected."""
        self.walk.begin_anew()

    def _on_team(self, _name: str) -> None:
        """Begin again with another team; a set without objects of it ends."""
        if self.only is None:
            self.leave()
        elif self.walk.team not in self.only.teams:
            self.show_all()

    @property
    def is_as_opened(self) -> bool:
        """Whether no object was selected but at opening."""
        return self._session.selection in (None, self.walk.opened_at)

    def open_anywhere(self) -> None:
        """Open the cohort in the first region with a failure that is not small."""
        self._opening = self._names[0] if self._names else None

    def first(self) -> None:
        """Select the failure at which an earlier start ended, or else the worst one here.

        If that is small, the next region may be shown instead: see `open_anywhere`. Nothing
        happens if the user has selected an object, or on a slide, which opens as a map.
        """
        snapshot, shown, here = self._session.snapshot, self._session.shown, self.walk.here
        if snapshot is None or shown is None or here is None:
            return
        self._is_open = True
        if self._session.selection is not None or snapshot.is_slide:
            return
        stop = self.walk.opening()
        if self._opens_elsewhere(here, stop):
            return
        row = None
        if stop is not None and stop.side is not None and stop.id is not None:
            row = shown.outcomes.side(stop.side).row_of(stop.id)
        if stop is not None and stop.side is not None and row is not None:
            self._session.select_row(stop.side, row)
            self.walk.opened_at = self._session.selection
            self._follow_selected()

    def _opens_elsewhere(self, here: str, stop: QueueStop | None) -> bool:
        """Go on to the next region while only small failures are found; at last to the first."""
        is_opening, self._opening = here == self._opening, None
        if not is_opening or (stop is not None and not self.walk.is_small(stop)):
            return False
        names = self._names[:MOST_OPENED]
        number = names.index(here) + 1
        following = names[number] if number < len(names) else names[0]
        self._opening = following if number < len(names) else None
        self._is_open = following == here
        if following != here:
            self._go_to(following)
        return following != here

    def keep_stop(self) -> None:
        """Remember where the queue is, for the next start."""
        root, kept = self._session.cohort.root, self.walk.to_keep()
        if self.only is None and kept != (PREFERENCES.stop(root) or []):
            PREFERENCES.keep_stop(root, kept)

    def _listed(self) -> TableListing | None:
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

    def arrive(self) -> None:
        """Go on in a region whose failures were not known before it was shown.

        The first region that is shown begins with its worst failure.
        """
        if not self._is_open:
            self.first()
        snapshot = self._session.snapshot
        if self._going_on is None or snapshot is None or self.walk.here is None:
            return
        if snapshot.region.name != self._session.wanted_region:
            return
        if self._session.shown is None and self._session.team in snapshot.pending:
            return
        self.walk.begin_here()
        asked = self._going_on
        if asked.wraps:
            self._go_on(asked)
        elif not self._take(asked):
            self._say(self._why_none(asked.step))

    def _go_on(self, asked: WalkStep) -> None:
        if not self._take(asked):
            self.ended.emit()

    def _take(self, asked: WalkStep) -> bool:
        """Go where a step leads; False if there is nothing."""
        self._going_on = None
        stop = self.walk.go(asked, more_come=self._summary.is_busy)
        if stop is not None:
            self._visit(stop, asked)
        return stop is not None

    def _chosen_order(self) -> ChosenOrder:
        state = self._state
        is_by_region = state.queue is Queue.REGION
        return ChosenOrder(state.order, state.object_filter, PREFERENCES.small_px, is_by_region)

    def _chosen_here(self) -> list[FailureName]:
        snapshot, team = self._session.snapshot, self._session.team
        if snapshot is None:
            return []
        place = team, snapshot.region.name
        return [name for name in self._chosen if (name.team, name.region) == place]

    def _visit(self, stop: QueueStop, asked: WalkStep) -> None:
        agreeing: tuple[str, ...] = ()
        if stop.name is None:
            self._going_on = replace(asked, looked_at=asked.looked_at | {stop.region})
            if stop.region == self.walk.here:  # it is still being evaluated
                self._say(self._objects.empty_text)
        elif self.only is not None:
            agreeing = self.only.agreeing.get(stop.name, ())
        self._go_to(stop.region, stop.side, stop.id, team=stop.team or None, beside=agreeing)

    def _why_none(self, step: int) -> str:
        if not len(self.walk.order.queue):
            if not len(self._objects.model.rows):
                return self._objects.empty_text
            if self._summary.is_busy:
                return STILL_COMING
            if self.only is not None:
                return NONE_CHOSEN
            return NONE if self._state.object_filter.is_open else NONE_LISTED
        if step < 0:
            return FIRST if self.only is None else FIRST_CHOSEN
        last = LAST if self.only is None else LAST_CHOSEN
        is_coming = self._summary.is_busy and not self.walk.is_by_region
        return f"{last} {STILL_COMING}" if is_coming else last
