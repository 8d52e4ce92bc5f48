"""The teams of a region compared: in lists, beside each other, and in one picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from psygnal import Signal
from qtpy.QtWidgets import QToolButton

from napari_panoptic.common.text import counted
from napari_panoptic.display import styles
from napari_panoptic.display.names import distinct_names
from napari_panoptic.display.palette import class_colours
from napari_panoptic.display.regions.here import Here
from napari_panoptic.display.regions.question import RegionQuestion
from napari_panoptic.display.regions.teams import RegionTeams, teams_answer
from napari_panoptic.display.team_pictures import (
    FP_COLOUR,
    SEVERAL,
    CellPictures,
    ConsensusPicture,
    Count,
    cell_pictures,
    consensus_picture,
    level_colours,
)
from napari_panoptic.explain.consensus import Consensus, consensus
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox, ChoiceButtons
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.kit.layouts import Grow
from napari_panoptic.viewer.kit.menus import TickMenu
from napari_panoptic.viewer.kit.shown import RichLabel, shown
from napari_panoptic.viewer.kit.widgets import opens_menu
from napari_panoptic.viewer.layers.consensus_view import ConsensusView
from napari_panoptic.viewer.layers.team_grid import MAX_TEAMS, TeamGrid
from napari_panoptic.viewer.panels.part import Connections, Surroundings
from napari_panoptic.viewer.panels.region_question import (
    AnsweredHere,
    RegionPresenter,
    RegionView,
    prepared_columns,
)
from napari_panoptic.viewer.state.preferences import ViewMode

NO_PREDICTION = "No chosen team has a prediction here. Choose other teams or another region."

_MODES = [
    Choice(
        ViewMode.ONE, str(ViewMode.ONE), "The canvas shows one team, as usual (Shift+U: next view)."
    ),
    Choice(
        ViewMode.GRID,
        str(ViewMode.GRID),
        f"Up to {MAX_TEAMS} teams side by side, each coloured by its own outcomes; "
        "they move and zoom as one (Shift+U).",
    ),
    Choice(
        ViewMode.CONSENSUS,
        str(ViewMode.CONSENSUS),
        "One picture of all teams: how many found each annotated nucleus, and where several "
        "have an FP (Shift+U).",
    ),
]
_COUNT_WORDS = {
    Count.FOUND: "TP in",
    Count.FN: "FN in",
    Count.MISCLASSIFIED: "Misclassified in",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class TeamsComparison(AnsweredHere):
    """What is shown: the teams of a region, compared and, where asked for, drawn."""

    consensus: Consensus
    cells: CellPictures | None = None
    picture: ConsensusPicture | None = None


def compared(
    snapshot: RegionSnapshot,
    here: Here,
    mode: ViewMode = ViewMode.ONE,
    widths: tuple[int, int] | None = None,
) -> TeamsComparison:
    """Compare the teams and draw what a view needs; for workers."""
    here = here.complete()
    evaluations = here.evaluations
    picture = consensus_picture(evaluations) if mode is ViewMode.CONSENSUS else None
    result = consensus(evaluations) if picture is None else picture.consensus
    answer = teams_answer(here, result)
    return TeamsComparison(
        snapshot=snapshot,
        here=here,
        answer=answer,
        columns=prepared_columns(answer),
        consensus=result,
        cells=cell_pictures(evaluations, widths) if mode is ViewMode.GRID else None,
        picture=picture,
    )


class TeamsPanel(RegionView):
    """The choice of a view, and the lists with a column per team."""

    teams_chosen = Signal()

    def __init__(self) -> None:
        self.modes = ChoiceButtons(_MODES)
        self._teams = QToolButton()
        self._menu = TickMenu(self._teams)
        self._menu.setToolTipsVisible(True)
        self._teams.setMenu(self._menu)
        opens_menu(self._teams)
        self._teams.setToolTip(f"Which teams are compared: up to {MAX_TEAMS}.")
        self.count = ChoiceBox(
            [Choice(count, words) for count, words in _COUNT_WORDS.items()],
            "What the colours of the consensus count.",
        )
        self._legend = RichLabel(wraps=True)
        self._legend.setToolTip(
            "Colours go from light (no team) to dark (all teams). Outlines get thicker the fewer "
            "teams found the object; hatching gets denser the more teams have an FP there."
        )
        self._n_teams = 0
        super().__init__(
            RegionTeams, (Grow(self.modes), self._teams), (self.count, Grow(self._legend))
        )
        self.count.chosen.connect(lambda _count: self._show_legend())
        self.show_mode(ViewMode.ONE)

    def legend_text(self) -> str:
        """Return the legend of the consensus; empty if it is not shown."""
        return "" if self._legend.isHidden() else self._legend.text()

    def offer_teams(self, teams: Sequence[str], chosen: Sequence[str]) -> None:
        """Offer teams to compare; at most six can be chosen."""
        self._menu.clear()
        for team, short in zip(teams, distinct_names(teams), strict=True):
            # In menus "&" marks a key.
            action = self._menu.addAction(shown(short).replace("&", "&&"))
            if action is not None:
                action.setToolTip(shown(team))
                action.setData(team)
                action.setCheckable(True)
                action.setChecked(team in chosen)
                action.triggered.connect(lambda _=False: self._on_teams())
        self._show_team_count()

    def chosen_teams(self) -> tuple[str, ...]:
        """Return the teams that are to be compared."""
        return tuple(action.data() for action in self._menu.actions() if action.isChecked())

    def show_mode(self, mode: ViewMode) -> None:
        """Mark the view that is on."""
        self.modes.show_choice(mode)
        self._legend.setVisible(mode is ViewMode.CONSENSUS)
        self.count.setVisible(mode is ViewMode.CONSENSUS)

    def show_nothing(self, hint: str) -> None:
        """Show why there is nothing to compare."""
        self.modes.setEnabled(False)
        self.headline.show()
        super().show_nothing(hint)

    def show_comparison(self, comparison: TeamsComparison) -> None:
        """Show the teams of a region."""
        self.modes.setEnabled(True)
        self._n_teams = len(comparison.consensus.teams)
        self._show_legend()
        self.show_answered(comparison)
        self.headline.hide()  # the buttons have its numbers

    def _show_legend(self) -> None:
        """Explain the colours of the consensus, from none to all teams."""
        if not (teams := self._n_teams):
            return
        colours = level_colours(teams)
        count = self.count.choice
        numbers = range(teams + 1) if count is Count.FOUND else range(teams, -1, -1)
        ladder = "".join(
            _chip(colour, str(number)) for colour, number in zip(colours, numbers, strict=True)
        )
        self._legend.set_rich(
            f"{ladder} of {teams} teams · thicker: found by fewer · "
            f"{_chip(FP_COLOUR, '▨')} FP in {SEVERAL}+ teams"
        )

    def _on_teams(self) -> None:
        """Keep one team at least, and six at most."""
        chosen = self.chosen_teams()
        actions = self._menu.actions()
        if not chosen:
            actions[0].setChecked(True)
        for action in [a for a in actions if a.isChecked()][MAX_TEAMS:]:
            action.setChecked(False)
        self._show_team_count()
        self.teams_chosen.emit()

    def _show_team_count(self) -> None:
        n = len(self.chosen_teams())
        self._teams.setText(counted(n, "team"))


class TeamsPresenter(RegionPresenter):
    """Compares the teams of the region that is shown."""

    title, key, kind = RegionTeams.title, RegionTeams.key, RegionTeams
    panel_type = TeamsPanel
    panel: TeamsPanel

    def __init__(self, around: Surroundings, panel: TeamsPanel) -> None:
        super().__init__(around, panel)
        cohort, scene = self.session.cohort, self.link.scene
        self._state = self.link.state
        self.grid = TeamGrid(
            around.viewer,
            scene,
            self.session,
            redraw_wanted=self.refresh,
            left=partial(self.set_mode, ViewMode.ONE),
        )
        self.consensus_view = ConsensusView(around.viewer, scene, self.session)
        # Competing teams are compared first.
        teams = list(dict.fromkeys(t.name for t in (*cohort.competing_teams, *cohort.teams)))
        competing = [team.name for team in cohort.competing_teams] or teams
        panel.offer_teams(teams, competing[:MAX_TEAMS])

    @property
    def is_busy(self) -> bool:
        """Whether teams are being compared."""
        return super().is_busy or self.grid.is_busy

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
            (events.workspace, self._on_workspace),
            (events.mode, self._show_mode),
            (events.is_blind, self._on_blind),
            (self._sight.changed, self._on_sight),
            (panel.modes.chosen, self._choose_mode),
            (panel.teams_chosen, self.refresh),
            (panel.count.chosen, self._on_count),
            *self.connections_of_lists(),
        ]

    def begin(self) -> None:
        """Show what the workspace is for."""
        self._on_workspace(self._state.workspace)

    def close(self) -> None:
        """Stop; the view of one team comes back where there is a window."""
        super().close()
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

    def refresh(self, *_changed: object) -> None:
        """Compare again, even what is compared already: a view may have to be drawn."""
        self._asked = ()
        super().refresh()

    def teams(self) -> tuple[str, ...]:
        """Return the teams that are compared."""
        return self.panel.chosen_teams()

    def is_present(self, value: AnsweredHere) -> bool:
        """Return whether a comparison is of the region that is shown."""
        return self.is_shown(value.snapshot)

    def on_waiting(self, snapshot: RegionSnapshot) -> None:
        """Show the images of the cells."""
        if self.mode is ViewMode.GRID and snapshot.reference is not None and len(self.teams()) > 1:
            self.grid.show_images(snapshot, self.teams())

    def start(self, snapshot: RegionSnapshot, here: Here, _question: RegionQuestion) -> None:
        """Compare the teams in a worker."""
        mode, grid = self.mode, self.grid
        if mode is ViewMode.GRID and not grid.is_on:
            widths = grid.widths_of_a_cell(snapshot, len(here.teams))
        else:
            widths = grid.wanted_widths()
        self._latest.start(partial(compared, snapshot, here, mode, widths))
        if mode is ViewMode.GRID:
            grid.show_images(snapshot, here.teams)

    def forget(self, why: str) -> None:
        """Show one team, and why none are compared."""
        if self.session.snapshot is not None:  # the first region is still to come
            self.set_mode(ViewMode.ONE)
        super().forget(why)

    def why_nothing(self) -> str:
        """Return why no teams are compared: of the teams, any may lack its prediction."""
        snapshot = self.session.snapshot
        has_annotation = snapshot is not None and snapshot.reference is not None
        return NO_PREDICTION if has_annotation else super().why_nothing()

    def show(self, value: AnsweredHere) -> None:
        """Show the lists, and the view that is chosen."""
        if not isinstance(value, TeamsComparison):
            return
        self.panel.show_comparison(value)
        self._on_selection(self.session.selection)
        snapshot, evaluations = value.snapshot, value.here.evaluations
        if self.mode is ViewMode.GRID and value.cells is not None:
            self.consensus_view.leave()
            colours = class_colours(len(self.session.cohort.scheme.names))
            self.grid.show(snapshot, evaluations, value.cells, colours)
        elif self.mode is ViewMode.CONSENSUS and value.picture is not None:
            self.grid.leave()
            self.consensus_view.show(snapshot, value.picture, self.panel.count.choice)
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


def _chip(colour: Rgb, text: str) -> str:
    """Write a word on a ground of some colour, so that both can be read."""
    luma = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
    ink = "#000000" if luma > 120 else "#ffffff"
    return (
        f"<span style='background-color: {styles.hex_colour(colour)}; color: {ink}'>"
        f"&nbsp;{text}&nbsp;</span>"
    )
