"""The teams of a region compared: as a table, beside each other, and in one picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtWidgets import QToolButton, QWidget

from napari_panoptic.common.text import counted
from napari_panoptic.display import slide_texts, styles
from napari_panoptic.display.names import distinct_names
from napari_panoptic.display.palette import class_colours
from napari_panoptic.display.slide_texts import on_slide
from napari_panoptic.display.team_pictures import FP_COLOUR, SEVERAL, Count, level_colours
from napari_panoptic.display.title import why_nothing
from napari_panoptic.explain.consensus import FpPlace
from napari_panoptic.live.session import Selection
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.kit.array_table import ArrayTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox, ChoiceButtons
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.kit.layouts import PANEL_MARGINS, Grow, lay_out
from napari_panoptic.viewer.kit.menus import TickMenu
from napari_panoptic.viewer.kit.shown import RichLabel, WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import opens_menu
from napari_panoptic.viewer.layers.consensus_view import ConsensusView
from napari_panoptic.viewer.layers.team_grid import MAX_TEAMS, TeamGrid
from napari_panoptic.viewer.panels.part import Connections, Surroundings
from napari_panoptic.viewer.panels.region_panel import WAITING, SeenPresenter, material
from napari_panoptic.viewer.panels.teams.comparison import (
    TeamsComparison,
    compared,
    object_columns,
    object_sentence,
    place_columns,
    place_sentence,
)
from napari_panoptic.viewer.state.preferences import ViewMode

EMPTY = "Nothing to compare. Open a cohort."
NO_PREDICTION = "No chosen team has a prediction here. Choose other teams or another region."
ONE_TEAM = "Only one team has a prediction here: add a second team's folder to compare them."
NONE_LISTED = "No object of this kind here. Press “All” to see every annotated object."
NONE_ANNOTATED = "Nothing is annotated here. Press “FP in 2+ teams”, or choose another region."


class TeamsList(StrEnum):
    """Which rows the table lists."""

    ALL = "All"
    FN = "FN in all teams"
    ONE_ONLY = "TP in one team only"
    FP = "FP in 2+ teams"


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
_LISTED_MEANINGS = {
    TeamsList.ALL: "Every annotated object, those found by the fewest teams first.",
    TeamsList.FN: "Annotated objects that are FN in every team evaluated on them.",
    TeamsList.ONE_ONLY: "Annotated objects that exactly one team found with the right class (TP).",
    TeamsList.FP: "Places where two or more teams have an FP.",
}
_COUNT_WORDS = {
    Count.FOUND: "TP in",
    Count.FN: "FN in",
    Count.MISCLASSIFIED: "Misclassified in",
}


class TeamsPanel(QWidget):
    """The choice of a view, and the table with a column per team."""

    teams_chosen = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
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
        self.lists = ChoiceButtons(
            [Choice(listed, str(listed), why) for listed, why in _LISTED_MEANINGS.items()]
        )
        self.hint, self.table, self.sentence = WrappedLabel(), ArrayTable(), WrappedLabel()
        self._comparison: TeamsComparison | None = None
        # Rows of the reference, or places, in the order of the table.
        self._rows: NDArray[np.intp] = np.zeros(0, np.intp)
        self._places: tuple[FpPlace, ...] = ()
        lay_out(
            self,
            (Grow(self.modes), self._teams),
            (self.count, Grow(self._legend)),
            self.lists,
            self.hint,
            Grow(self.table),
            self.sentence,
            margins=PANEL_MARGINS,
        ).addStretch(0)
        self.count.chosen.connect(lambda _count: self._show_legend())
        self.lists.chosen.connect(lambda _listed: self._fill())
        self.table.row_chosen.connect(lambda row, _column: self._show_sentence(row))
        self.show_mode(ViewMode.ONE)
        self.show_nothing(EMPTY)

    def legend_text(self) -> str:
        """Return the legend of the consensus; empty if it is not shown."""
        return "" if self._legend.isHidden() else self._legend.text()

    def at(self, row: int) -> int | FpPlace:
        """Return what a row is about: the row of a reference object, or a place."""
        return self._places[row] if self._lists_places else int(self._rows[row])

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

    def show_nothing(self, why: str) -> None:
        """Show why there is nothing to compare."""
        self._comparison = None
        self._enable(comparable=False)
        self.table.show_rows([])
        self.table.hide()
        self.hint.show_text(why)
        self.sentence.clear()

    def show_comparison(self, comparison: TeamsComparison) -> None:
        """Show the teams of a region."""
        self._comparison = comparison
        self._enable(comparable=True)
        result = comparison.consensus
        self.lists.show_counts(
            {
                TeamsList.ALL: len(result.reference),
                TeamsList.FN: int(result.fn_for_all.sum()),
                TeamsList.ONE_ONLY: int(result.found_by_one_only.sum()),
                TeamsList.FP: len(result.shared_fp_places(SEVERAL)),
            }
        )
        self._show_legend()
        self._fill()

    def show_selection(self, selection: Selection | None) -> None:
        """Select the row of an object, where it is listed."""
        row = None if selection is None else self._row_of(selection)
        if row != self.table.selected():
            self.table.select(row)
        self._show_sentence(row)

    @property
    def _lists_places(self) -> bool:
        return self.lists.choice is TeamsList.FP

    def _row_of(self, selection: Selection) -> int | None:
        own, team = selection.row, selection.team
        is_reference = selection.side is Side.REFERENCE
        if self._lists_places == is_reference:
            return None
        if is_reference:
            found = np.flatnonzero(self._rows == own).tolist()
        else:
            found = [n for n, place in enumerate(self._places) if own in place.rows.get(team, ())]
        return found[0] if found else None

    def _enable(self, *, comparable: bool) -> None:
        for buttons in (self.modes, self.lists):
            buttons.setEnabled(comparable)

    def _fill(self) -> None:
        comparison = self._comparison
        if comparison is None:
            return
        result, listed = comparison.consensus, self.lists.choice
        if self._lists_places:
            self._places = result.shared_fp_places(SEVERAL)
            self.table.show_rows(place_columns(comparison, self._places))
        else:
            chosen = {
                TeamsList.FN: result.fn_for_all,
                TeamsList.ONE_ONLY: result.found_by_one_only,
            }.get(listed)
            order = np.lexsort((-result.reference.area_px, -result.fn, result.found))
            self._rows = order
            self.table.show_rows(
                object_columns(comparison, order), None if chosen is None else chosen[order]
            )
        is_empty = not self.table.rows()
        self.table.setVisible(not is_empty)
        none = NONE_ANNOTATED if listed is TeamsList.ALL else NONE_LISTED
        self.hint.setText(none if is_empty else ONE_TEAM)
        self.hint.setVisible(is_empty or len(result.teams) == 1)
        self.sentence.clear()

    def _show_sentence(self, row: int | None) -> None:
        if self._comparison is None or row is None:
            self.sentence.clear()
            return
        at, result = self.at(row), self._comparison.consensus
        text = place_sentence(at) if isinstance(at, FpPlace) else object_sentence(result, at)
        self.sentence.setText(text)

    def _show_legend(self) -> None:
        """Explain the colours of the consensus, from none to all teams."""
        if self._comparison is None:
            return
        teams = len(self._comparison.consensus.teams)
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
            (panel.modes.chosen, self._choose_mode),
            (panel.teams_chosen, self.refresh),
            (panel.count.chosen, self._on_count),
            (panel.table.row_chosen, self._on_row),
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

    def refresh(self, *_changed: object) -> None:
        """Let go of the comparison of another region at once, and compare as soon as seen."""
        if self.comparison is not None and not self.is_shown(self.comparison.snapshot):
            self.comparison = None
        super().refresh()

    def compute_now(self) -> None:
        """Compare the teams in a worker."""
        snapshot = self.session.snapshot
        if snapshot is not None and snapshot.pending and not snapshot.is_slide:
            self._latest.drop()  # stale: the other teams are on their way
            if self.comparison is None:
                self.panel.show_nothing(WAITING)
            teams = self.panel.chosen_teams()
            if self.mode is ViewMode.GRID and snapshot.reference is not None and len(teams) > 1:
                self.grid.show_images(snapshot, teams)
            return
        known = material(self.session, teams=self.panel.chosen_teams())
        if known is None:
            self._latest.drop()
            self.comparison = None
            if snapshot is not None:  # the first region is still to come
                self.set_mode(ViewMode.ONE)
            self.panel.show_nothing(on_slide(snapshot, slide_texts.TEAMS, self._why_nothing()))
            return
        mode, grid = self.mode, self.grid
        if mode is ViewMode.GRID and not grid.is_on:
            widths = grid.widths_of_a_cell(known.snapshot, len(known.teams))
        else:
            widths = grid.wanted_widths()
        self._latest.start(partial(compared, known, mode, widths))
        if mode is ViewMode.GRID:
            grid.show_images(known.snapshot, known.teams)

    def _why_nothing(self) -> str:
        """Return why no teams are compared: of the teams, any may lack its prediction."""
        snapshot = self.session.snapshot
        has_annotation = snapshot is not None and snapshot.reference is not None
        return NO_PREDICTION if has_annotation else why_nothing(self.session)

    def _show(self, comparison: TeamsComparison) -> None:
        snapshot = comparison.snapshot
        if not self.is_shown(snapshot):
            return  # the panel was hidden when another region came
        self.comparison = comparison
        self.panel.show_comparison(comparison)
        self._on_selection(self.session.selection)
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

    def _on_selection(self, selection: Selection | None) -> None:
        if self.comparison is not None:
            self.panel.show_selection(selection)

    def _on_row(self, row: int, column: int) -> None:
        """Select the object of a row, and show the team of the column."""
        if (found := self.comparison) is None:
            return
        team, at = self.panel.table.key(column), self.panel.at(row)
        if isinstance(at, FpPlace):
            own = [name for name in (team, self.session.team) if name and name in at.rows]
            team = (*own, *at.teams)[0]
            ids, rows = found.evaluations[team].outcomes.prediction.ids, at.rows[team]
            side, id_ = Side.PREDICTION, ids[rows[0]]
        else:
            side, id_ = Side.REFERENCE, found.consensus.reference.ids[at]
        if team is not None:
            self.session.set_team(team)
        self.select_id(side, int(id_))


def _chip(colour: Rgb, text: str) -> str:
    """Write a word on a ground of some colour, so that both can be read."""
    luma = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
    ink = "#000000" if luma > 120 else "#ffffff"
    return (
        f"<span style='background-color: {styles.hex_colour(colour)}; color: {ink}'>"
        f"&nbsp;{text}&nbsp;</span>"
    )
