"""The failures that N leads to, in their order, over one region after another or the cohort."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.text import shortened
from napari_panoptic.display.failure_sections import passing
from napari_panoptic.display.object_queue import ObjectQueue, QueueGap
from napari_panoptic.display.object_rows import ObjectFilter, ObjectRows, WorstFirst, worst_first
from napari_panoptic.display.styles import count_text
from napari_panoptic.explain.failures import (
    Block,
    CohortFailures,
    FailureName,
    FailureSet,
    RegionFailures,
)
from napari_panoptic.explain.impact import IMPACT_COLUMNS, PatientMean
from napari_panoptic.live.session import Session
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.values.cohort import Region
from napari_panoptic.values.vocabulary import SIDES, Side

SMALL_PERCENT = 1
"""Percentage of the annotated objects that are small, unless the user sets a size."""
UNKNOWN = -1
"""Side of a stop that is a region whose failures are not known yet."""
LIMIT_LETTERS = 40
"""The most letters that name what a queue is limited to."""


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
    """A failure, or a region whose failures are not known before it is shown."""

    #: Names of the team and the region.
    team: str
    region: str
    #: The object; None for a region.
    side: Side | None = None
    id: int | None = None

    @property
    def name(self) -> FailureName | None:
        """The failure; None for a region."""
        if self.side is None or self.id is None:
            return None
        return FailureName(self.team, self.region, self.side, self.id)


@dataclass(frozen=True, eq=False)
class FailureQueue(ObjectQueue[QueueStop]):
    """Failures in the order in which the queue leads to them, each once."""

    #: The failures. A region whose failures are not known yet has one row, of the side `UNKNOWN`.
    failures: CohortFailures
    #: int (n,): rows of the failures, in the order of the queue.
    rows: NDArray[np.intp]
    #: Names of the cohort's regions, in order.
    regions: Sequence[str] = ()

    def __len__(self) -> int:
        """Count the stops."""
        return len(self.rows)

    @property
    def n_failures(self) -> int:
        """The number of failures that are known."""
        return int(np.count_nonzero(self.failures.columns["side"][self.rows] != UNKNOWN))

    def item(self, place: int) -> QueueStop:
        """Return one stop."""
        row = int(self.rows[place])
        at, columns = self.failures.place(row), self.failures.columns
        if columns["side"][row] == UNKNOWN:
            return QueueStop(at.team, at.region)
        return QueueStop(at.team, at.region, self.failures.side(row), int(columns["id"][row]))

    def find(self, stop: QueueStop) -> int | None:
        """Return the place of a stop; None if it is not among them."""
        columns, rows = self.failures.columns, self.rows
        side = UNKNOWN if stop.side is None else SIDES.index(stop.side)
        blocks = [
            number
            for number, at in enumerate(self.failures.blocks)
            if (at.team, at.region) == (stop.team, stop.region)
        ]
        places = np.flatnonzero(
            np.isin(self.failures.block[rows], blocks)
            & (columns["side"][rows] == side)
            & (columns["id"][rows] == (stop.id or 0))
        )
        return int(places[0]) if len(places) else None

    def part(self, region: str) -> FailureQueue:
        """Return the part in a region."""
        is_in = self._region_of_stops == self.regions.index(region)
        return replace(self, rows=self.rows[is_in])

    def before_region(self, region: str, step: int) -> QueueGap:
        """Return where a region begins, or where it ends if the step leads back."""
        number = self.regions.index(region)
        places = np.flatnonzero(self._region_of_stops == number)
        if not len(places):  # between the regions before and after
            gap = int(np.count_nonzero(self._region_of_stops < number))
        else:
            gap = int(places[-1]) + 1 if step < 0 else int(places[0])
        return QueueGap(gap, gap)

    def standing(self, position: QueuePosition) -> QueueGap:
        """Return a position in this order.

        The order may have changed since, as when an edit removed the object: the position is
        then after the nearest earlier stop that is still there.
        """
        place = self.find(position.stop)
        if place is not None:
            return QueueGap.at(place)
        gap, before = 0, position.queue
        if before is not None:
            names = {(at.team, at.region): n for n, at in enumerate(self.failures.blocks)}
            earlier = before._keys(names)[: before.find(position.stop)]
            left = np.flatnonzero(np.isin(earlier, self._keys(names)))
            last = self.find(before.item(int(left[-1]))) if len(left) else None
            gap = 0 if last is None else last + 1
        return QueueGap(gap, gap)

    def _keys(self, names: Mapping[tuple[str, str], int]) -> NDArray[np.int64]:
        """Return a number per stop: equal stops have equal numbers, also in other queues.

        Parameters
        ----------
        names
            Team and region -> their number.
        """
        numbers = np.array(
            [names.get((at.team, at.region), len(names)) for at in self.failures.blocks], np.int64
        )
        columns, rows = self.failures.columns, self.rows
        ids = columns["id"][rows] * (len(SIDES) + 1) + columns["side"][rows]
        keys: NDArray[np.int64] = ids * (len(names) + 1) + numbers[self.failures.block[rows]]
        return keys

    @cached_property
    def _region_of_stops(self) -> NDArray[np.intp]:
        """Position in the cohort of the region of each stop."""
        numbers = {name: number for number, name in enumerate(self.regions)}
        of_block = np.array([numbers[at.region] for at in self.failures.blocks], np.intp)
        return of_block[self.failures.block[self.rows]]


@dataclass(frozen=True, eq=False)
class QueuePosition:
    """Where the user was in a queue."""

    #: The stop.
    stop: QueueStop
    #: The queue as it was then; None if only the stop is remembered.
    queue: FailureQueue | None = None


@dataclass(frozen=True, eq=False)
class TableListing:
    """What the object table lists of the region that is shown; equal if nothing has changed."""

    #: All objects of the region.
    rows: ObjectRows
    #: int (k,): the rows that are listed, in the order of the table.
    order: NDArray[np.intp]
    #: Whether the user has sorted the table by a column.
    is_sorted: bool
    #: The scored classes, in order.
    class_names: tuple[str, ...]
    #: Micrometres per pixel, or None.
    mpp: float | None

    def __eq__(self, other: object) -> bool:
        """Return whether the same arrays are listed."""
        return isinstance(other, TableListing) and (
            (self.rows is other.rows)
            and (self.order is other.order)
            and self.is_sorted == other.is_sorted
        )

    def __hash__(self) -> int:
        """Return a number that is equal for equal ones."""
        return hash((id(self.rows), id(self.order), self.is_sorted))

    def failures(self, small_px: int) -> RegionFailures:
        """Return the failures in the order of the table.

        Small ones come last unless the user has sorted the table by a column.
        """
        values, rows = self.rows.values, self.rows.listed_failures(self.order)
        if not len(rows):
            return RegionFailures(CohortFailures().columns, self.class_names, self.mpp)
        if not self.is_sorted:
            rows = small_last(rows, values["area_px"], small_px)
        columns = {name: values[name][rows] for name in CohortFailures().columns}
        return RegionFailures(columns, self.class_names, self.mpp)


@dataclass(frozen=True)
class ShownRegion:
    """The region that is shown: what is known of it is newer than its summary."""

    name: str
    #: What the object table lists; None if the team has no result there.
    listed: TableListing | None
    #: Whether the team is still being evaluated there.
    is_pending: bool = False


@dataclass(frozen=True)
class FailureOrder:
    """Which failures are wanted, and which come first. Equal as long as nothing has changed."""

    #: All regions of the cohort.
    regions: tuple[Region, ...]
    #: The team that is shown: its annotated objects tell what is small.
    team: str
    #: The teams whose failures are wanted, in order.
    teams: tuple[str, ...]
    #: What is known of the regions of all these teams, in order.
    lines: tuple[RegionSummary, ...]
    #: What makes one failure worse than another.
    by: WorstFirst
    #: The size that the user set for small objects; 0 for the measured one.
    chosen_small_px: int = 0
    #: Which failures are wanted.
    wanted: ObjectFilter = field(default_factory=ObjectFilter)
    #: The only objects that are wanted; None for no limit.
    limit: FailureSet | None = None
    #: Whether the impact is that on the PQ of the region, not on the mean over patients.
    is_alone: bool = False
    #: The region that is shown if one region comes after the other; None if all are one.
    shown: ShownRegion | None = None

    @cached_property
    def small_px(self) -> int:
        """The area below which failures are small, and come last."""
        lines = [line.failures for line in self.lines if line.team == self.team]
        parts = [failures.annotated_px for failures in lines if failures is not None]
        return self.chosen_small_px or small_below(np.concatenate([np.zeros(0, np.int64), *parts]))

    @cached_property
    def queue(self) -> FailureQueue:
        """The failures in this order."""
        limit = self.limit
        if self.shown is not None:
            return self._region_by_region(self.shown)
        if limit is not None and limit.given:
            failures = CohortFailures(limit.given)
        elif limit is not None:
            blocks = [at for at in self._blocks() if (at.team, at.region) in limit.ids]
            failures = CohortFailures([limit.part(block) for block in blocks])
        else:
            failures = CohortFailures(self._blocks())
        return FailureQueue(failures, self._worst_first(failures), self._names)

    def of_region(self, region: str) -> FailureOrder:
        """Return the order of the failures of one region, without those of others."""
        is_shown = self.shown is not None and self.shown.name == region
        return replace(
            self,
            regions=tuple(at for at in self.regions if at.name == region),
            lines=tuple(line for line in self.lines if line.region == region),
            chosen_small_px=self.small_px,
            shown=self.shown if is_shown else None,
        )

    @property
    def limit_text(self) -> str:
        """To which objects it is limited, in a few words; empty for no limit."""
        if self.limit is None:
            return ""
        words = f"{count_text(len(self.limit.names))} chosen: {self.limit.title}"
        return shortened(words, LIMIT_LETTERS)

    def listed(self, shown: ShownRegion) -> FailureQueue:
        """Return the failures that the object table lists, in its order."""
        failures = CohortFailures(self._listed(shown))
        return FailureQueue(failures, np.flatnonzero(passing(failures, self.wanted)), self._names)

    def impact_of(self, name: FailureName) -> float | None:
        """Return the impact of one failure; None where its region is not evaluated."""
        blocks = [at for at in self._blocks() if (at.team, at.region) == (name.team, name.region)]
        failures = CohortFailures(blocks)
        row = failures.find(name)
        return None if row is None else float(self._impact(failures)[row])

    @property
    def _names(self) -> list[str]:
        return [region.name for region in self.regions]

    @cached_property
    def _patients(self) -> dict[str, str]:
        return {region.name: region.patient for region in self.regions}

    def _blocks(self) -> list[Block]:
        """Return the failures that are known, team by team."""
        return [
            Block(line.team, self._patients[line.region], line.region, line.failures)
            for line in self.lines
            if line.team in self.teams and line.failures is not None
        ]

    def _listed(self, shown: ShownRegion) -> list[Block]:
        if shown.listed is None:
            return []
        failures = shown.listed.failures(self.small_px)
        return [Block(self.team, self._patients[shown.name], shown.name, failures)]

    def _region_by_region(self, shown: ShownRegion) -> FailureQueue:
        """Return the failures region by region; of the one that is shown, those listed."""
        failures = CohortFailures([at for at in self._blocks() if at.region != shown.name])
        evaluated = {line.region for line in self.lines if not line.is_slide}
        unknown = [name for name in self._names if name not in evaluated and name != shown.name]
        if shown.is_pending:
            unknown.append(shown.name)
        stops = [Block(self.team, "", name, _UNKNOWN_FAILURES) for name in unknown]
        everything = CohortFailures([*failures.blocks, *self._listed(shown), *stops])
        rows = np.append(
            self._worst_first(failures), np.arange(len(failures), len(everything), dtype=np.intp)
        )
        numbers = {name: number for number, name in enumerate(self._names)}
        of_block = np.array([numbers[at.region] for at in everything.blocks], np.intp)
        by_region = np.argsort(of_block[everything.block[rows]], kind="stable")
        return FailureQueue(everything, rows[by_region], self._names)

    def _worst_first(self, failures: CohortFailures) -> NDArray[np.intp]:
        """Return the rows that are wanted, the worst first and the small ones last."""
        columns = failures.columns
        if self.by is WorstFirst.IMPACT:
            columns = {**columns, "impact": self._impact(failures)}
        order = worst_first(columns, self.by)
        order = order[passing(failures, self.wanted)[order]]
        return small_last(order, columns["area_px"], self.small_px)

    def _impact(self, failures: CohortFailures) -> NDArray[np.float64]:
        """Return what mending each failure would add to a PQ: the team's, or the region's."""
        impact = np.zeros(len(failures))
        # Regions of one patient count as one, unless each stands alone.
        whose = {name: name for name in self._names} if self.is_alone else self._patients
        for team in dict.fromkeys(at.team for at in failures.blocks):
            lines = [line for line in self.lines if line.team == team]
            if self.is_alone:  # then other regions do not matter
                regions = {at.region for at in failures.blocks}
                lines = [line for line in lines if line.region in regions]
            counted = ((whose[at.region], at.counts) for at in lines if at.counts is not None)
            mean = PatientMean.of(counted, is_alone=self.is_alone)
            is_own = np.array([at.team == team for at in failures.blocks])[failures.block]
            rows = mean.rows(whose[at.region] for at in failures.blocks)[failures.block]
            columns = {name: failures.columns[name][is_own] for name in IMPACT_COLUMNS}
            impact[is_own] = mean.gains(rows[is_own], columns)
        return impact


def known_lines(session: Session, teams: Collection[str]) -> tuple[RegionSummary, ...]:
    """Return what is known of the regions of teams, in the cohort's order, team by team."""
    cohort, known = session.cohort, session.summaries
    places = ((region.name, team) for team in cohort.team_names for region in cohort.regions)
    return tuple(known[at] for at in places if at[1] in teams and at in known)


_UNKNOWN_FAILURES = RegionFailures(
    {
        name: np.full((1, *column.shape[1:]), UNKNOWN if name == "side" else 0, column.dtype)
        for name, column in CohortFailures().columns.items()
    },
    (),
    None,
)
"""The one row of a region whose failures are not known yet."""
