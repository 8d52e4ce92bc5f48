"""Compares the teams of a region: as a table, beside each other, or in one picture."""

from __future__ import annotations

from collections.abc import Callable

from napari_panoptic.nuclei.display.consensus_picture import Count
from napari_panoptic.nuclei.explain.consensus import InventedPlace
from napari_panoptic.nuclei.palette import class_colours
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.layers.consensus_view import ConsensusView
from napari_panoptic.viewer.layers.team_grid import MAX_TEAMS, TeamGrid
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.panels.seen_part import SeenPart, material
from napari_panoptic.viewer.panels.slide_texts import on_slide
from napari_panoptic.viewer.panels.teams.comparison import Comparison, ViewMode, compared
from napari_panoptic.viewer.panels.teams.panel import EMPTY, TeamsPanel


class TeamsPart(SeenPart):
    """Compares the teams of the region that is shown."""

    title = "Teams"
    key = "u"

    def __init__(self) -> None:
        super().__init__()
        self._panel = TeamsPanel()
        self._latest: Latest[Comparison] = Latest(self._show)
        self._mode = ViewMode.ONE
        self._chosen_mode = ViewMode.GRID
        """What the workspace for teams shows."""
        self._comparison: Comparison | None = None
        self._grid: TeamGrid | None = None
        self._consensus: ConsensusView | None = None
        self.watch(self._panel)

    @property
    def widget(self) -> TeamsPanel:
        """The panel."""
        return self._panel

    @property
    def is_busy(self) -> bool:
        """Whether teams are being compared."""
        return self._latest.is_busy or (self._grid is not None and self._grid.is_busy)

    @property
    def mode(self) -> ViewMode:
        """What the canvas shows."""
        return self._mode

    @property
    def grid(self) -> TeamGrid | None:
        """The view of several teams."""
        return self._grid

    @property
    def consensus_view(self) -> ConsensusView | None:
        """The view of the consensus."""
        return self._consensus

    @property
    def is_in_sight(self) -> bool:
        """Whether the panel or one of its views is seen."""
        return self._mode is not ViewMode.ONE or super().is_in_sight

    def shortcuts(self) -> tuple[tuple[Shortcut, Callable[[], None]], ...]:
        """Return the key that goes from view to view."""
        meaning = "one team, teams side by side, consensus of the teams"
        return ((Shortcut("Shift-u", meaning, "next_team_view"), self._next_mode),)

    def connections(self, around: Surroundings) -> Connections:
        """Listen to session and panel."""
        panel = self._panel
        return [
            (around.session.region_changed, self.refresh),
            (around.link.edits_rested, self.refresh),
            (around.session.team_changed, self._on_team),
            (around.link.state.events.workspace, self._on_workspace),
            (around.session.selection_changed, panel.show_selection),
            (panel.mode_chosen, self._on_mode),
            (panel.teams_chosen, self.refresh),
            (panel.count_chosen, self._on_count),
            (panel.object_chosen, self._on_object),
            (panel.place_chosen, self._on_place),
            (panel.centre_wanted, self.centre_selected),
        ]

    def attach(self, around: Surroundings) -> None:
        """Join in with a cohort: its competing teams are compared first."""
        cohort, scene = around.session.cohort, around.link.scene
        self._grid = TeamGrid(
            around.viewer,
            scene,
            around.session,
            redraw_wanted=self.refresh,
            left=self._left,
            progress=self._panel.show_progress,
        )
        self._consensus = ConsensusView(around.viewer, scene, around.session)
        teams = list(dict.fromkeys(t.name for t in (*cohort.competing_teams, *cohort.teams)))
        competing = [team.name for team in cohort.competing_teams] or teams
        self._panel.offer_teams(teams, competing[:MAX_TEAMS])
        super().attach(around)
        self._on_workspace(around.link.state.workspace)

    def detach(self) -> None:
        """Leave a cohort; the view of one team comes back where there is a window."""
        self._latest.drop()
        restore = not self.is_window_gone
        if self._grid is not None:
            self._grid.leave(restore=restore, at_once=True)
        if self._consensus is not None:
            self._consensus.leave(restore=restore)
            if restore:
                self._show_key()
        self._mode = ViewMode.ONE
        self._comparison = self._grid = self._consensus = None
        super().detach()

    def set_mode(self, mode: ViewMode) -> None:
        """Show something else on the canvas."""
        if mode is ViewMode.ONE:
            self._left()
            return
        self._mode = mode
        self._panel.show_mode(mode)
        self.refresh()

    def compute_now(self) -> None:
        """Compare the teams in a worker."""
        around = self.around
        if around is None or self._grid is None:
            return
        snapshot = around.session.snapshot
        if snapshot is not None and snapshot.pending and not snapshot.is_slide:
            self._latest.drop()  # stale: the other teams are on their way
            return
        known = material(around.session, teams=self._panel.chosen_teams())
        if known is None:
            self._latest.drop()
            self._comparison = None
            self._left()
            self._panel.show_comparison(None, empty=on_slide(snapshot, slide_texts.TEAMS, EMPTY))
            return
        mode, grid = self._mode, self._grid
        if mode is ViewMode.GRID and not grid.is_on:
            widths = grid.widths_of_a_cell(known.snapshot, len(known.teams))
        else:
            widths = grid.wanted_widths()
        self._latest.start(lambda: compared(known, mode, widths))

    def _show(self, comparison: Comparison) -> None:
        around = self.around
        if around is None or self._grid is None or self._consensus is None:
            return
        self._comparison = comparison
        self._panel.show_comparison(comparison)
        self._panel.show_selection(around.session.selection)
        snapshot = comparison.snapshot
        if self._mode is ViewMode.GRID and comparison.cells is not None:
            self._consensus.leave()
            colours = class_colours(len(around.session.cohort.scheme.names))
            self._grid.show(snapshot, comparison.evaluations, comparison.cells, colours)
        elif self._mode is ViewMode.CONSENSUS and comparison.picture is not None:
            self._grid.leave()
            self._consensus.show(snapshot, comparison.picture, self._panel.count())
        self._show_key()

    def _show_key(self) -> None:
        """Have the strip below the image say what the colours of a consensus mean."""
        if self.around is not None:
            is_on = self._consensus is not None and self._consensus.is_on
            key = self._panel.legend_text() if is_on else ""
            self.around.link.panels.legend.show_instead(key)

    def _left(self) -> None:
        """Be back at the view of one team."""
        self._mode = ViewMode.ONE
        for view in (self._grid, self._consensus):
            if view is not None:
                view.leave()
        self._panel.show_mode(ViewMode.ONE)
        self._show_key()

    def _next_mode(self) -> None:
        modes = list(ViewMode)
        self._on_mode(modes[(modes.index(self._mode) + 1) % len(modes)])

    def _on_mode(self, mode: ViewMode) -> None:
        self._chosen_mode = mode
        self.set_mode(mode)

    def _on_workspace(self, name: str) -> None:
        """Show several teams on the canvas in the workspace for teams, and one in the others."""
        is_here = name == self.title and len(self._panel.chosen_teams()) > 1
        self.set_mode(self._chosen_mode if is_here else ViewMode.ONE)

    def _on_team(self, _name: str) -> None:
        if self._grid is not None and self._grid.is_on:
            self._grid.show_team()

    def _on_count(self, count: Count) -> None:
        if self._consensus is not None:
            self._consensus.show_count(count)
            self._show_key()

    def _on_object(self, row: int, team: str | None) -> None:
        around = self.around
        if around is None:
            return
        if team is not None:
            around.session.set_team(team)
        around.session.select_row(Side.REFERENCE, row)

    def _on_place(self, place: InventedPlace, team: str | None) -> None:
        around = self.around
        if around is None:
            return
        if team not in place.rows:
            team = around.session.team if around.session.team in place.rows else place.teams[0]
        if team is not None:
            around.session.set_team(team)
            around.session.select_row(Side.PREDICTION, int(place.rows[team][0]))
