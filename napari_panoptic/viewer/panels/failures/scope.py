"""The subject of the gallery: the failures in scope, and their regions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from napari_panoptic.common.choices import MenuChoice
from napari_panoptic.display.failure_queue import FailureOrder, FailureQueue, known_lines
from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.explain.failures import (
    Block,
    FailureName,
    FailureSet,
    objects_with_ids,
)
from napari_panoptic.live.session import Session
from napari_panoptic.live.summary import RegionSummary


class Scope(MenuChoice):
    """Which failures the gallery shows."""

    ALL = "all regions", "The failures of all regions of the cohort, except whole slides."
    REGION = "this region", "The failures of the shown region."
    LISTED = "listed objects", "The failures that the object table lists, in its order."
    CHOSEN = "chosen failures", "The failures that another panel chose, such as those of a slice."


@dataclass(frozen=True, eq=False)
class InScope:
    """The subject of the gallery at one moment."""

    session: Session
    scope: Scope
    #: Whether the failures of all teams are shown, unless some were chosen.
    by_team: bool
    #: The failures that were chosen; None if those in scope were not.
    only: FailureSet | None

    @property
    def is_over_cohort(self) -> bool:
        """Whether failures of all regions are shown."""
        return self.scope in (Scope.ALL, Scope.CHOSEN)

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams whose failures are shown, in the cohort's order."""
        names, team = self.session.cohort.team_names, self.session.team
        if self.only is not None:
            return tuple(name for name in names if name in self.only.teams)
        if self.by_team:
            return names
        return () if team is None else (team,)

    @cached_property
    def lines(self) -> dict[tuple[str, str], RegionSummary | None]:
        """Region and team -> their failures as far as known; team by team."""
        only, known = self.only, self.session.summaries
        regions = self.session.cohort.regions
        places = [(region.name, team) for team in self.teams for region in regions]
        if only is not None:
            places = [at for at in places if (at[1], at[0]) in only.ids]
        return {at: known.get(at) for at in places}

    @property
    def n_missing(self) -> int:
        """The number of regions and teams whose failures are still to come."""
        return sum(line is None for line in self.lines.values())

    @property
    def left_out(self) -> list[RegionSummary]:
        """Regions without failures to show, such as whole slides."""
        lines = self.lines.values() if self.is_over_cohort else ()
        return [line for line in lines if line is not None and line.failures is None]

    @property
    def has_other_regions(self) -> bool:
        """Whether another region than the one shown may have failures to show."""
        others = [line for (region, _), line in self.lines.items() if region != self._region_name]
        return any(line is None or line.failures is not None for line in others)

    def outlined(self, name: FailureName) -> tuple[str, ...]:
        """Return the other teams whose outlines a crop shows."""
        return () if self.only is None else self.only.outlined(name)

    def queue(self, now: FailureOrder, wanted: ObjectFilter) -> FailureQueue:
        """Return the failures in scope that are known, in their order.

        Parameters
        ----------
        now
            The order in which N leads to failures.
        wanted
            Which of them the gallery shows.
        """
        only, lines = self.only, known_lines(self.session, self.teams)
        if not self.is_over_cohort:
            lines = tuple(line for line in lines if line.region == self._region_name)
        if only is not None:
            only = replace(only, given=tuple(map(self._as_now, only.given)))
        order = replace(
            now,
            teams=self.teams,
            lines=lines,
            chosen_small_px=now.small_px,
            wanted=wanted,
            limit=only,
            is_alone=self.scope is Scope.REGION,
            shown=None,
        )
        return order.queue

    @property
    def _region_name(self) -> str | None:
        snapshot = self.session.snapshot
        return None if snapshot is None else snapshot.region.name

    def _as_now(self, block: Block) -> Block:
        """Return given objects as later edits have left them."""
        only, snapshot = self.only, self.session.snapshot
        if only is None or snapshot is None or snapshot.region.name != block.region:
            return block
        found = snapshot.evaluations.get(block.team)
        if found is None:
            return block
        ids = only.ids[block.team, block.region]
        return replace(block, failures=objects_with_ids(found, ids))
