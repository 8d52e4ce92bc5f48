"""Goes from failure to failure, over one region after another or over the whole cohort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_panoptic.display.failure_queue import (
    UNKNOWN,
    FailureQueue,
    QueuePlace,
    QueueStop,
    Stops,
    small_below,
    small_last,
)
from napari_panoptic.display.failure_sections import passing
from napari_panoptic.display.object_rows import WorstFirst, worst_first
from napari_panoptic.explain.failures import (
    Block,
    CohortFailures,
    FailureName,
    FailureSet,
    RegionFailures,
)
from napari_panoptic.explain.impact import IMPACT_COLUMNS, PatientMean
from napari_panoptic.live.session import Selection, Session
from napari_panoptic.live.summary import RegionSummary
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
        self._patients = {region.name: region.patient for region in session.cohort.regions}
        self._is_open = False
        # The region in which the first failure is looked for; None if the user chose the region.
        self._opening: int | None = None
        # The failure that was selected at opening, not by the user.
        self._opened_at: Selection | None = None
        # The stop of an earlier start, until the queue goes on from it.
        self._left_at = self._remembered()
        self._queue.reset(self._left_at)
        self._known: tuple[tuple[object, ...], Stops] | None = None
        self._sorted: WeakKeyDictionary[
            RegionSummary, tuple[tuple[object, ...], NDArray[np.intp]]
        ] = WeakKeyDictionary()
        self._order_kept: NDArray[np.intp] | None = None
        self._measured: tuple[list[RegionSummary], int] = ([], 0)

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
        """Begin with the first failure at the next step, whatever is selected."""
        self._queue.reset()
        self._left_at = None

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
        self._opening = 0

    def first(self) -> None:
        """Select the failure at which an earlier start ended, or else the worst one here.

        If that is small, the next region may be shown instead: see `open_anywhere`. Nothing
        happens if the user has selected an object, or on a slide, which opens as a map.
        """
        snapshot, shown, here = self._session.snapshot, self._session.shown, self._here()
        if snapshot is None or shown is None or here is None:
            return
        self._is_open = True
        if self._session.selection is not None or snapshot.is_slide:
            return
        stops = self._of_region(here)
        stop = self._left_at
        if stop is None or stop.region != here or stops.find(stop) is None:
            stop = stops.at(0) if len(stops) else None
        if self._opens_elsewhere(here, stop):
            return
        row = None
        if stop is not None and stop.side is not None and stop.id is not None:
            row = shown.outcomes.side(stop.side).row_of(stop.id)
        if stop is not None and stop.side is not None and row is not None:
            self._session.select_row(stop.side, row)
            self._opened_at = self._session.selection
            self._follow_selected()

    def _opens_elsewhere(self, here: int, stop: QueueStop | None) -> bool:
        """Go on to the next region while only small failures are found; at last to the first."""
        is_opening, self._opening = here == self._opening, None
        if not is_opening or (stop is not None and not self._is_small(stop)):
            return False
        following = here + 1 if here + 1 < min(len(self._names), MOST_OPENED) else 0
        self._opening, self._is_open = following or None, following == here
        if following != here:
            self._go_to(self._names[following])
        return following != here

    def place(self) -> QueuePlace:
        """Return where the selected failure is among those that N leads to."""
        here = self._here()
        is_by_region = self._is_by_region
        if is_by_region and here is None:
            return QueuePlace(None, 0)
        stops = self._of_region(here) if is_by_region and here is not None else self._stops()
        total = int(np.count_nonzero(stops.side != UNKNOWN))
        stop = self._selected_stop(stops)
        number = None if stop is None else stops.find(stop)
        if stop is None or number is None:
            return QueuePlace(None, total)
        impact = self._impact_of(stop)
        return QueuePlace(number + 1, total, self._is_small(stop), impact, is_by_region)

    def keep_stop(self) -> None:
        """Remember where the queue is, for the next start."""
        stop, root = self._queue.stop, self._session.cohort.root
        if self._only is not None:
            return
        kept: list[str | int] = []
        if stop is not None and stop.side is not None and stop.id is not None:
            kept = [self._team, self._names[stop.region], str(stop.side), stop.id]
        if kept != (PREFERENCES.stop(root) or []):
            PREFERENCES.keep_stop(root, kept)

    def order(self, failures: CohortFailures, *, alone: bool = False) -> NDArray[np.intp]:
        """Return the rows of failures, the worst first and the small ones last.

        Parameters
        ----------
        failures
            The failures.
        alone
            Whether the impact is that on the PQ of the region, not on the mean over patients.
        """
        order = self._worst_first(failures, alone=alone)
        return small_last(order, failures.columns["area_px"], self.small_px)

    @property
    def small_px(self) -> int:
        """The area below which failures are small, and come last."""
        if chosen := PREFERENCES.small_px:
            return chosen
        lines, (measured, known) = self._lines(self._team), self._measured
        if lines != measured:
            parts = [line.failures.annotated_px for line in lines if line.failures is not None]
            known = small_below(np.concatenate([np.zeros(0, np.int64), *parts]))
            self._measured = lines, known
        return known

    def stand_here(self) -> None:
        """Go on from the selected object, whatever becomes of it until the next step."""
        self._stand_here(self._here())

    def arrive(self) -> None:
        """Go on in a region whose failures were not known before it was shown.

        The first region that is shown begins with its worst failure.
        """
        if not self._is_open:
            self.first()
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
        stop = self._not_known_yet(stops)
        if stop is None:
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

    def _not_known_yet(self, stops: Stops) -> QueueStop | None:
        """Return where an earlier start ended, if its region is still to be evaluated."""
        stop, self._left_at = self._left_at, None
        if stop is None or self._is_by_region or stops.find(stop) is not None:
            return None
        is_coming = (self._names[stop.region], self._team) not in self._session.summaries
        return stop if is_coming and self._summary.is_busy else None

    def _remembered(self) -> QueueStop | None:
        """Return where an earlier start ended with the present team; None if unknown."""
        kept = PREFERENCES.stop(self._session.cohort.root) or []
        match kept:
            case [str(team), str(region), str(side), int(id_)]:
                if team == self._team and region in self._names and side in SIDES:
                    return QueueStop(self._names.index(region), Side(side), id_)
        return None

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
        chosen, selected = self._session.selection, self._selected_stop(stops)
        if selected is None or (stop is not None and chosen == self._opened_at):
            return stops
        if self._queue.stop is not None or selected == self._first_of(stops, here):
            self._queue.go_to(selected, stops)
        return stops

    def _first_of(self, stops: Stops, here: int | None) -> QueueStop | None:
        """Return the stop with which the queue begins."""
        own = np.flatnonzero(stops.region == here) if self._is_by_region else range(len(stops))
        return stops.at(int(own[0])) if len(own) else None

    def _selected_stop(self, stops: Stops) -> QueueStop | None:
        """Return the stop of the selected object, or of its partner; None if it has none."""
        snapshot, chosen, here = self._session.snapshot, self._session.selection, self._here()
        if chosen is None or snapshot is None or here is None:
            return None
        if snapshot.region.name != self._names[here]:
            return None
        place = self._number(here, chosen.team)
        found = [QueueStop(place, chosen.side, chosen.id)]
        if (partner := self._partner()) is not None:
            found.append(QueueStop(place, *partner))
        return next((stop for stop in found if stops.find(stop) is not None), None)

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
        """Return the stops of the queue; sorted again only if something has changed."""
        state, session, model = self._state, self._session, self._objects.model
        teams = self._teams if self._only is None else session.cohort.team_names
        given = (
            *(state.order, state.queue, state.object_filter, self._only, PREFERENCES.small_px),
            *(session.wanted_region, session.snapshot, session.shown, id(model.order)),
            *(line for team in teams for line in self._lines(team)),
        )
        # The order is kept too: another one would not have the same id.
        if self._known is None or self._known[0] != given:
            found = self._sorted_stops()
            self._known, self._order_kept = (given, found), model.order
        return self._known[1]

    def _sorted_stops(self) -> Stops:
        if not self._is_by_region:
            return self._over_the_cohort()
        return Stops.joined([self._of_region(at) for at in range(len(self._names))])

    def _lines(self, team: str) -> list[RegionSummary]:
        """Return what is known of a team's regions."""
        lines = self._session.summaries
        found = (lines.get((name, team)) for name in self._names)
        return [line for line in found if line is not None]

    def _of_region(self, region: int) -> Stops:
        """Return the failures of a region: of the one that is shown, as the table lists them."""
        snapshot, nothing = self._session.snapshot, Stops.joined([])
        if snapshot is not None and snapshot.region.name == self._names[region]:
            if self._session.shown is not None:
                return self._listed(region)
            return Stops.unknown(region) if self._session.team in snapshot.pending else nothing
        line = self._session.summaries.get((self._names[region], self._team))
        if line is None or line.is_slide:
            return Stops.unknown(region)
        if line.failures is None:
            return nothing
        return self._of_line(region, line, line.failures)

    def _of_line(self, region: int, line: RegionSummary, failures: RegionFailures) -> Stops:
        """Return the failures of another region; sorted again only if order or filter change."""
        wanted, columns = (self._state.order, self._state.object_filter), failures.columns
        known = self._sorted.get(line)
        if known is None or known[0] != wanted:
            own = CohortFailures([Block(line.team, "", line.region, failures)])
            order = self._worst_first(own, alone=True)
            order = order[passing(own, self._state.object_filter)[order]]
            known = self._sorted[line] = wanted, order
        order = small_last(known[1], columns["area_px"], self.small_px)
        return Stops.of_region(region, columns["side"][order], columns["id"][order])

    def _listed(self, region: int) -> Stops:
        """Return the failures that the table lists, in its order.

        Small ones come last unless the user has sorted the table by a column.
        """
        model = self._objects.model
        rows, values = model.failures(), model.rows.values
        if self._objects.view.sorted_by < 0:
            rows = small_last(rows, values["area_px"], self.small_px)
        side = (rows >= model.rows.n_reference).astype(np.int8)
        return Stops.of_region(region, side, values["id"][rows])

    def _over_the_cohort(self) -> Stops:
        only = self._only
        if only is not None and only.given:
            return self._ordered(CohortFailures(only.given))
        blocks = [
            Block(line.team, "", line.region, line.failures)
            for team in self._teams
            for line in self._lines(team)
            if line.failures is not None
        ]
        if only is not None:
            blocks = [only.part(block) for block in blocks]
        return self._ordered(CohortFailures(blocks))

    def _worst_first(self, failures: CohortFailures, *, alone: bool) -> NDArray[np.intp]:
        columns = failures.columns
        if self._state.order is WorstFirst.IMPACT:
            columns = {**columns, "impact": self._impact(failures, alone=alone)}
        return worst_first(columns, self._state.order)

    def _ordered(self, failures: CohortFailures) -> Stops:
        """Return failures in the order of the queue, as far as the filter lets them through.

        The filter has no effect on a set.
        """
        order = self.order(failures)
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

    def _impact(self, failures: CohortFailures, *, alone: bool) -> NDArray[np.float64]:
        """Return what mending each failure would add to a PQ: the team's, or the region's."""
        blocks, patients = failures.blocks, self._patients
        impact = np.zeros(len(failures))
        # The blocks whose mean is the same: those of a team, or each by itself.
        means: dict[str, list[int]] = {}
        for number, block in enumerate(blocks):
            means.setdefault(f"{number}" if alone else block.team, []).append(number)
        for numbers in means.values():
            lines = self._lines(blocks[numbers[0]].team)
            if alone:
                lines = [line for line in lines if line.region == blocks[numbers[0]].region]
            counted = ((patients[at.region], at.counts) for at in lines if at.counts is not None)
            mean = PatientMean.of(counted)
            rows = np.full(len(blocks), -1, np.intp)
            rows[numbers] = mean.rows(patients[blocks[number].region] for number in numbers)
            own = np.flatnonzero(np.isin(failures.block, numbers))
            columns = {name: failures.columns[name][own] for name in IMPACT_COLUMNS}
            impact[own] = mean.gains(rows[failures.block[own]], columns)
        return impact

    def _impact_of(self, stop: QueueStop) -> float | None:
        """Return the impact of one failure; None where its region is not evaluated."""
        region, team = self._place(stop.region)
        line = self._session.summaries.get((region, team))
        if line is None or line.failures is None or stop.side is None or stop.id is None:
            return None
        failures = CohortFailures([Block(team, "", region, line.failures)])
        row = failures.find(FailureName(team, region, stop.side, stop.id))
        return None if row is None else float(self._impact(failures, alone=self._is_by_region)[row])

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
