"""Compares the teams of a region: as a table, beside each other, or in one picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from napari_panoptic.display.palette import class_colours
from napari_panoptic.display.team_pictures import Count
from napari_panoptic.explain.consensus import FpPlace
from napari_panoptic.live.session import Selection
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.layers.consensus_view import ConsensusView
from napari_panoptic.viewer.layers.team_grid import MAX_TEAMS, TeamGrid
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.panels.seen_part import WAITING, SeenPresenter, material
from napari_panoptic.viewer.panels.slide_texts import on_slide
from napari_panoptic.viewer.panels.teams.comparison import TeamsComparison, compared
from napari_panoptic.viewer.panels.teams.panel import EMPTY, TeamsPanel
from napari_panoptic.viewer.state.modes import ViewMode


class TeamsPresenter(SeenPresenter[TeamsPanel]):
    """Compares the teams of the region that is shown."""

    title = "Teams"
    key = "u"
    panel_type = TeamsPanel

    def __init__(self, around: Surroundings, panel: TeamsPanel) -> None:
        super().__init__(around, panel)
        cohort, scene = self.session.cohort, self.link.scene
        self._state = self.link.state
        self.comparison: TeamsComparison | None = None
        self._latest: Latest[TeamsComparison] = Latest(self._show)
        self.grid = TeamGrid(
            around.viewer,
            scene,
            self.session,
            redraw_wanted=self.refresh,
            left=partial(self.set_mode, ViewMode.ONE),
            progress=panel.show_progress,
        )
        self.consensus_view = ConsensusView(around.viewer, scene, self.session)
        # Competing teams are compared first.
        teams = list(dict.fromkeys(t.name for t in (*cohort.competing_teams, *cohort.teams)))
        competing = [team.name for team in cohort.competing_teams] or teams
        panel.offer_teams(teams, competing[:MAX_TEAMS])

    @property
    def is_busy(self) -> bool:
        """Whether teams are being compared."""
        return self._latest.is_busy or self.grid.is_busy

    @property
    def mode(self) -> ViewMode:
        """What the canvas shows."""
        return self._state.mode

    @property
    def is_in_sight(self) -> bool:
        """Whether the panel or one of its views is seen."""
        return self.mode is not ViewMode.ONE or super().is_in_sight

    @classmethod
    def shortcuts(cls) -> tuple[tuple[Shortcut, Callable[[Any], None]], ...]:
        """Return the key that goes from view to view."""
        meaning = "one team, teams side by side, consensus of the teams"
        return ((Shortcut("Shift-u", meaning, "next_team_view"), cls.next_mode),)

    def connections(self) -> Connections:
        """Listen to session, state and panel."""
        session, panel, events = self.session, self.panel, self._state.events
        return [
            (session.region_changed, self.refresh),
            (session.teams_came, self.refresh),
            (self.link.edits_rested, self.refresh),
            (session.team_changed, self._on_team),
            (session.selection_changed, self._on_selection),
            (events.workspace, self._on_workspace),
            (events.mode, self._show_mode),
            (events.is_blind, self._on_blind),
            (self._sight.changed, self._on_sight),
            (panel.mode_chosen, self._choose_mode),
            (panel.teams_chosen, self.refresh),
            (panel.count.chosen, self._on_count),
            (panel.object_chosen, self._on_object),
            (panel.place_chosen, self._on_place),
            (panel.table.centre_wanted, self.centre_selected),
        ]

    def begin(self) -> None:
        """Show what the workspace is for."""
        self._on_workspace(self._state.workspace)

    def close(self) -> None:
        """Stop; the view of one team comes back where there is a window."""
        self._latest.close()
        restore = not self.is_window_gone
        self.grid.leave(restore=restore, at_once=True)
        self.consensus_view.leave(restore=restore)
        if restore:
            self._show_key()
        self._state.mode = ViewMode.ONE

    def set_mode(self, mode: ViewMode) -> None:
        """Show something else on the canvas; one team only where teams are not to be named."""
        self._state.mode = ViewMode.ONE if self._state.is_blind else mode

    def next_mode(self) -> None:
        """Show the next view on the canvas."""
        modes = list(ViewMode)
        self._choose_mode(modes[(modes.index(self.mode) + 1) % len(modes)])

    def compute_now(self) -> None:
        """Compare the teams in a worker."""
        snapshot = self.session.snapshot
        if snapshot is not None and snapshot.pending and not snapshot.is_slide:
            self._latest.drop()  # stale: the other teams are on their way
            if self._here is None:
                self.comparison = None
                self.panel.show_comparison(None, empty=WAITING)
            return
        known = material(self.session, teams=self.panel.chosen_teams())
        if known is None:
            self._latest.drop()
            self.comparison = None
            if snapshot is not None:  # the first region is still to come
                self.set_mode(ViewMode.ONE)
            self.panel.show_comparison(None, empty=on_slide(snapshot, slide_texts.TEAMS, EMPTY))
            return
        mode, grid = self.mode, self.grid
        if mode is ViewMode.GRID and not grid.is_on:
            widths = grid.widths_of_a_cell(known.snapshot, len(known.teams))
        else:
            widths = grid.wanted_widths()
        self._latest.start(lambda: compared(known, mode, widths))

    def _show(self, comparison: TeamsComparison) -> None:
        self.comparison = comparison
        self.panel.show_comparison(comparison)
        self._on_selection(self.session.selection)
        snapshot = comparison.snapshot
        if self.mode is ViewMode.GRID and comparison.cells is not None:
            self.consensus_view.leave()
            colours = class_colours(len(self.session.cohort.scheme.names))
            self.grid.show(snapshot, comparison.evaluations, comparison.cells, colours)
        elif self.mode is ViewMode.CONSENSUS and comparison.picture is not None:
            self.grid.leave()
            self.consensus_view.show(snapshot, comparison.picture, self.panel.count.choice)
        self._show_key()

    def _show_mode(self, mode: ViewMode) -> None:
        self.panel.show_mode(mode)
        if mode is not ViewMode.ONE:
            self.refresh()
            return
        self.grid.leave()
        self.consensus_view.leave()
        self._show_key()

    def _show_key(self) -> None:
        """Have the strip below the image say what the colours of a consensus mean."""
        if self._state.is_blind:  # it says then that there is nothing to see
            return
        key = self.panel.legend_text() if self.consensus_view.is_on else ""
        self.link.panels.legend.show_instead(key)

    def _choose_mode(self, mode: ViewMode) -> None:
        """Show a view, now and whenever the workspace for teams is shown.

        Being back at one team in another workspace says nothing about that for teams.
        """
        if mode is not ViewMode.ONE or self._state.workspace == self.title:
            self._state.team_view = mode
        self.set_mode(mode)

    def _on_workspace(self, name: str) -> None:
        """Show several teams on the canvas in the workspace for teams, and one in the others."""
        is_here = name == self.title and len(self.panel.chosen_teams()) > 1
        self.set_mode(self._state.team_view if is_here else ViewMode.ONE)

    def _on_blind(self, _is_blind: bool) -> None:
        self._on_workspace(self._state.workspace)

    def _on_team(self, _name: str) -> None:
        if self.grid.is_on:
            self.grid.show_team()

    def _on_count(self, count: Count) -> None:
        self.consensus_view.show_count(count)
        self._show_key()

    @property
    def _here(self) -> TeamsComparison | None:
        """The comparison, unless another region is shown by now."""
        found = self.comparison
        return found if found is not None and self.is_shown(found.snapshot) else None

    def _on_selection(self, selection: Selection | None) -> None:
        if self._here is not None:
            self.panel.show_selection(selection)

    def _on_object(self, row: int, team: str | None) -> None:
        if (found := self._here) is None:
            return
        if team is not None:
            self.session.set_team(team)
        self.select_id(Side.REFERENCE, int(found.consensus.reference.ids[row]))

    def _on_place(self, place: FpPlace, team: str | None) -> None:
        if team not in place.rows:
            team = self.session.team if self.session.team in place.rows else place.teams[0]
        if team is not None and (found := self._here) is not None:
            self.session.set_team(team)
            ids = found.evaluations[team].outcomes.prediction.ids
            self.select_id(Side.PREDICTION, int(ids[place.rows[team][0]]))
