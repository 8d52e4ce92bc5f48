"""Goes from failure to failure, over one region after another or over the whole cohort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_panoptic.display.failure_queue import FailureQueue, QueueStop, Stops
from napari_panoptic.display.failure_sections import passing
from napari_panoptic.display.object_rows import worst_first
from napari_panoptic.live.session import Selection, Session
from napari_panoptic.nuclei.matching import NO_PARTNER
from napari_panoptic.questions.engines.cohort_failures import (
    Block,
    CohortFailures,
    FailureName,
    FailureSet,
)
from napari_panoptic.values.vocabulary import SIDES, Side
from napari_panoptic.viewer.jobs.region_work import SummaryWork
from napari_panoptic.viewer.panels.objects.panel import ObjectTable
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.state.desk_state import DeskState
from napari_panoptic.viewer.state.preferences import Queue

LAST = "This is the last failure of the cohort. Shift+N goes back."
FIRST = "This is the first failure of the cohort. N goes on."
LAST_CHOSEN = "This is the last of the chosen failures. Shift+N goes back."
FIRST_CHOSEN = "This is the first of the chosen failures. N goes on."
NONE_CHOSEN = "None of the chosen objects is a failure now: press “Show all” in the gallery."
STILL_COMING = "The other regions are still being evaluated."
NONE_LISTED = "All failures are hidden by the filters: press “Failures” above the object table."
NONE = "No failures: nothing is FN, FP or misclassified in any region."

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
    #: Positions of the regions that were shown to know their failures: none is shown twice.
    looked_at: frozenset[int] = frozenset()


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
        self._queue = FailureQueue()
        self._names = [region.name for region in session.cohort.regions]
        self._going_on: _Asked | None = None
        self._chosen: tuple[FailureName, ...] = ()
        self._only: FailureSet | None = None

    def connections(self) -> Connections:
        """Return what begins the walk again, or lets go of what was chosen for it."""
        session, events = self._session, self._state.events
        return [
            # Another order begins with its worst failure.
            (events.order, self.leave),
            (events.queue, self.leave),
            (events.object_filter, self.leave),
            (session.team_changed, self.leave),
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
        self._say(self._why_none(self._stops(), step))
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

    def _number(self, region: int, team: str) -> int:
        """Return what stands for a region in a stop: of a set, for its team too."""
        teams = self._session.cohort.team_names
        if self._only is None or team not in teams:
            return region
        return teams.index(team) * len(self._names) + region

    def _place(self, number: int) -> tuple[str, str]:
        """Return the region and team that a number stands for."""
        team, region = divmod(number, max(len(self._names), 1))
        teams = self._session.cohort.team_names
        return self._names[region], self._team if self._only is None else teams[team]

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
        """Begin again with the next step, unless an object is selected then."""
        self._queue.reset()

    def stand_here(self) -> None:
        """Go on from the selected object, whatever becomes of it until the next step."""
        self._stand_here(self._here())

    def arrive(self) -> None:
        """Go on in a region whose failures were not known before it was shown."""
        snapshot = self._session.snapshot
        if self._going_on is None or snapshot is None or self._here() is None:
            return
        if snapshot.region.name != self._session.wanted_region:
            return
        if self._session.shown is None and self._session.team in snapshot.pending:
            return
        self._queue.reset()
        asked = self._going_on
        if asked.wraps:
            self._go_on(asked)
        elif not self._take(asked):
            self._say(self._why_none(self._stops(), asked.step))

    def _go_on(self, asked: _Asked) -> None:
        if not self._take(asked):
            self.ended.emit()

    def _take(self, asked: _Asked) -> bool:
        """Go where a step leads; False if there is nothing."""
        self._going_on = None
        here = self._here()
        stops = self._stand_here(here)
        stop = self._queue.step(
            stops,
            asked.step,
            start=here if self._is_by_region else None,
            wanted=self._mask(stops, asked),
            wraps=asked.wraps,
        )
        if stop is not None:
            self._visit(stop, asked)
        return stop is not None

    def _chosen_here(self) -> list[FailureName]:
        snapshot, team = self._session.snapshot, self._session.team
        if snapshot is None:
            return []
        place = team, snapshot.region.name
        return [name for name in self._chosen if (name.team, name.region) == place]

    def _here(self) -> int | None:
        """Return the position of the region last asked for, even if it is not there yet."""
        name = self._session.wanted_region
        return self._names.index(name) if name in self._names else None

    def _stand_here(self, here: int | None) -> Stops:
        """Return the order now, and go on from the region and object that the user chose."""
        stops = self._stops()
        stop = self._queue.stop
        if stop is not None and stop.region != here and self._is_by_region:
            self._queue.reset()
        snapshot, chosen = self._session.snapshot, self._session.selection
        if chosen is None or snapshot is None or here is None:
            return stops
        if snapshot.region.name == self._names[here]:
            place = self._number(here, chosen.team)
            own = QueueStop(place, chosen.side, chosen.id)
            if not self._queue.go_to(own, stops) and (partner := self._partner()) is not None:
                self._queue.go_to(QueueStop(place, *partner), stops)
        return stops

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
        if stop.side is None or stop.id is None:
            self._going_on = replace(asked, looked_at=asked.looked_at | {stop.region})
            if stop.region == self._here():  # it is still being evaluated
                self._say(self._objects.empty_text)
        region, team = self._place(stop.region)
        agreeing: tuple[str, ...] = ()
        if self._only is not None and stop.side is not None and stop.id is not None:
            name = FailureName(team, region, stop.side, stop.id)
            agreeing = self._only.agreeing.get(name, ())
        self._go_to(region, stop.side, stop.id, team=team or None, beside=agreeing)

    def _stops(self) -> Stops:
        if not self._is_by_region:
            return self._over_the_cohort()
        return Stops.joined([self._of_region(at) for at in range(len(self._names))])

    def _of_region(self, region: int) -> Stops:
        """Return the failures of a region: of the one that is shown, as the table lists them."""
        snapshot, nothing = self._session.snapshot, Stops.joined([])
        if snapshot is not None and snapshot.region.name == self._names[region]:
            if self._session.shown is not None:
                return self._listed(region)
            return Stops.unknown(region) if self._session.team in snapshot.pending else nothing
        line = self._session.summaries.get((self._names[region], self._session.team or ""))
        if line is None or line.is_slide:
            return Stops.unknown(region)
        if line.failures is None:
            return nothing
        return self._ordered(CohortFailures([Block(line.team, "", line.region, line.failures)]))

    def _listed(self, region: int) -> Stops:
        model = self._objects.model
        rows = model.failures()
        side = (rows >= model.rows.n_reference).astype(np.int8)
        return Stops.of_region(region, side, model.rows.values["id"][rows])

    def _over_the_cohort(self) -> Stops:
        lines, only = self._session.summaries, self._only
        if only is not None and only.given:
            return self._ordered(CohortFailures(only.given))
        known = [lines.get((name, team)) for team in self._teams for name in self._names]
        blocks = [
            Block(line.team, "", line.region, line.failures)
            for line in known
            if line is not None and line.failures is not None
        ]
        if only is not None:
            blocks = [only.part(block) for block in blocks]
        return self._ordered(CohortFailures(blocks))

    def _ordered(self, failures: CohortFailures) -> Stops:
        """Return failures in the order of the table, as far as its filter lets them through.

        The filter has no effect on a set.
        """
        order = worst_first(failures.columns, self._state.order)
        if self._only is None:
            order = order[passing(failures, self._state.object_filter)[order]]
        numbers = [
            self._number(self._names.index(block.region), block.team) for block in failures.blocks
        ]
        regions = np.array(numbers, np.int64)[failures.block[order]]
        columns = failures.columns
        return Stops(
            regions, columns["side"][order].astype(np.int8), columns["id"][order].astype(np.int64)
        )

    def _mask(self, stops: Stops, asked: _Asked) -> NDArray[np.bool_] | None:
        """Mark the stops to consider; None for all."""
        is_wanted = asked.is_wanted
        if is_wanted is None:
            return None
        found = []
        for number, side, id_ in zip(
            stops.region.tolist(), stops.side.tolist(), stops.id.tolist(), strict=True
        ):
            region, team = self._place(number)
            found.append(
                is_wanted(FailureName(team, region, SIDES[side], id_))
                if side >= 0
                else number not in asked.looked_at and not self._is_slide(region)
            )
        return np.array(found, bool)

    def _is_slide(self, region: str) -> bool:
        """Return whether a region is known to be too large to be held."""
        snapshot = self._session.snapshot
        if snapshot is not None and snapshot.region.name == region:
            return snapshot.is_slide
        line = self._session.summaries.get((region, self._session.team or ""))
        return line is not None and line.is_slide

    def _why_none(self, stops: Stops, step: int) -> str:
        if not len(stops):
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
