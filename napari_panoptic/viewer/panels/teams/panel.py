"""Several teams on one region: beside each other, as one picture, and in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.display import styles
from napari_panoptic.display.styles import count_text
from napari_panoptic.display.team_pictures import (
    FP_COLOUR,
    SEVERAL,
    Count,
    level_colours,
)
from napari_panoptic.explain.consensus import FpPlace
from napari_panoptic.live.session import Selection
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.kit.array_table import ArrayTable
from napari_panoptic.viewer.kit.choice_menus import TickMenu
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import FlowBar
from napari_panoptic.viewer.kit.shown import RichLabel, WrappedLabel, shown
from napari_panoptic.viewer.kit.widgets import ThinBar, opens_menu
from napari_panoptic.viewer.layers.team_grid import MAX_TEAMS
from napari_panoptic.viewer.panels.teams.comparison import (
    TeamsComparison,
    object_columns,
    object_sentence,
    place_columns,
    place_sentence,
)
from napari_panoptic.viewer.state.modes import ViewMode

EMPTY = (
    "Nothing to compare. Without a cohort: open one. Otherwise this region has no annotation, or "
    "no team has a prediction here: choose another region, or see the notes above the image."
)
ONE_TEAM = "Only one team has a prediction here: add a second team's folder to compare them."
NONE_LISTED = "No object of this kind here. Press “All” to see every annotated object."
NONE_ANNOTATED = "Nothing is annotated here. Press “FP in 2+ teams”, or choose another region."


class TeamsList(StrEnum):
    """Which rows the table lists."""

    ALL = "All"
    FN = "FN in all teams"
    ONE_ONLY = "TP in one team only"
    FP = "FP in 2+ teams"


_MODE_MEANINGS: Mapping[ViewMode, str] = {
    ViewMode.ONE: "The canvas shows one team, as usual (Shift+U: next view).",
    ViewMode.GRID: (
        f"Up to {MAX_TEAMS} teams side by side, each coloured by its own outcomes; "
        "they move and zoom as one (Shift+U)."
    ),
    ViewMode.CONSENSUS: (
        "One picture of all teams: how many found each annotated nucleus, and where several "
        "have an FP (Shift+U)."
    ),
}
_LISTED_MEANINGS: Mapping[TeamsList, str] = {
    TeamsList.ALL: "Every annotated object, those found by the fewest teams first.",
    TeamsList.FN: "Annotated objects that are FN in every team evaluated on them.",
    TeamsList.ONE_ONLY: "Annotated objects that exactly one team found with the right class (TP).",
    TeamsList.FP: "Places where two or more teams have an FP.",
}
_COUNT_WORDS: Mapping[Count, str] = {
    Count.FOUND: "TP in",
    Count.FN: "FN in",
    Count.MISCLASSIFIED: "Misclassified in",
}


class TeamsPanel(QWidget):
    """The choice of a view, and the table with a column per team."""

    mode_chosen = Signal(ViewMode)
    teams_chosen = Signal()
    object_chosen = Signal(int, object)  # row of the reference, team or None
    place_chosen = Signal(object, object)  # FpPlace, team or None

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table = ArrayTable()
        self._modes: dict[ViewMode, QPushButton] = {}
        self._lists: dict[TeamsList, QPushButton] = {}
        self._teams = QToolButton()
        self._menu = TickMenu(self._teams)
        self.hint = WrappedLabel(EMPTY)
        self._legend = RichLabel()
        self._legend.setToolTip(
            "Colours go from light (no team) to dark (all teams). Outlines get thicker the fewer "
            "teams found the object; hatching gets denser the more teams have an FP there."
        )
        self._legend.setWordWrap(True)
        self.sentence = WrappedLabel()
        self.count = ChoiceBox(
            [Choice(count, _COUNT_WORDS[count]) for count in Count],
            "What the colours of the consensus count.",
        )
        self.progress = ThinBar()
        self._listed = TeamsList.ALL
        self._comparison: TeamsComparison | None = None
        self._empty = EMPTY
        self._rows: NDArray[np.intp] = np.zeros(0, np.intp)
        self._places: tuple[FpPlace, ...] = ()
        self._lay_out()
        self.show_mode(ViewMode.ONE)
        self.show_progress(0, 0)
        self.show_comparison(None)

    @property
    def listed(self) -> TeamsList:
        """Which rows the table lists."""
        return self._listed

    def button(self, which: ViewMode | TeamsList) -> QPushButton:
        """Return the button of a view or of a list."""
        return self._modes[which] if isinstance(which, ViewMode) else self._lists[which]

    def legend_text(self) -> str:
        """Return the legend of the consensus; empty if it is not shown."""
        return "" if self._legend.isHidden() else self._legend.text()

    def offer_teams(self, teams: Sequence[str], chosen: Sequence[str]) -> None:
        """Offer teams to compare; at most six can be chosen."""
        self._menu.clear()
        for team in teams:
            # In menus "&" marks a key.
            action = self._menu.addAction(shown(team).replace("&", "&&"))
            if action is not None:
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
        for name, button in self._modes.items():
            with QSignalBlocker(button):
                button.setChecked(name is mode)
        self._legend.setVisible(mode is ViewMode.CONSENSUS)
        self.count.setVisible(mode is ViewMode.CONSENSUS)

    def show_progress(self, done: int, total: int) -> None:
        """Show how much of a view is there; nothing if all is, or nothing is to come."""
        self.progress.setVisible(done < total)
        self.progress.setMaximum(total)
        self.progress.setValue(done)

    def show_comparison(self, comparison: TeamsComparison | None, *, empty: str = EMPTY) -> None:
        """Show the teams of a region; a hint if there is nothing to compare."""
        self._comparison, self._empty = comparison, empty
        for button in (*self._modes.values(), *self._lists.values()):
            button.setEnabled(comparison is not None)
        if comparison is not None:
            result = comparison.consensus
            counts = {
                TeamsList.ALL: len(result.reference),
                TeamsList.FN: int(result.fn_for_all.sum()),
                TeamsList.ONE_ONLY: int(result.found_by_one_only.sum()),
                TeamsList.FP: len(result.shared_fp_places(SEVERAL)),
            }
            for name, number in counts.items():
                self._lists[name].setText(f"{name} {count_text(number)}")
            self._show_legend(len(result.teams))
        self._fill()

    def choose_list(self, listed: TeamsList) -> None:
        """List other rows."""
        self._listed = listed
        for name, button in self._lists.items():
            with QSignalBlocker(button):
                button.setChecked(name is listed)
        self._fill()

    def show_selection(self, selection: Selection | None) -> None:
        """Select the row of an object, where it is listed."""
        row: int | None = None
        if selection is not None and self._listed is TeamsList.FP:
            row = self._place_of(selection)
        elif selection is not None and selection.side is Side.REFERENCE:
            found = np.flatnonzero(self._rows == selection.row)
            row = int(found[0]) if len(found) else None
        if row != self.table.selected():
            self.table.select(row)
        self._show_sentence(row)

    def _place_of(self, selection: Selection) -> int | None:
        for number, place in enumerate(self._places):
            is_in = selection.row in place.rows.get(selection.team, ())
            if selection.side is Side.PREDICTION and is_in:
                return number
        return None

    def _fill(self) -> None:
        comparison = self._comparison
        if comparison is None:
            self.table.show_rows([])
            self.hint.setText(self._empty)
            self.hint.show()
            self.table.hide()
            self.sentence.clear()
            return
        result = comparison.consensus
        if self._listed is TeamsList.FP:
            self._places = result.shared_fp_places(SEVERAL)
            self.table.show_rows(place_columns(comparison, self._places))
        else:
            chosen = {
                TeamsList.FN: result.fn_for_all,
                TeamsList.ONE_ONLY: result.found_by_one_only,
            }.get(self._listed)
            order = np.lexsort((-result.reference.area_px, -result.fn, result.found))
            self._rows = order
            self.table.show_rows(
                object_columns(comparison, order), None if chosen is None else chosen[order]
            )
        is_empty = not self.table.rows()
        self.table.setVisible(not is_empty)
        none = NONE_ANNOTATED if self._listed is TeamsList.ALL else NONE_LISTED
        self.hint.setText(none if is_empty else ONE_TEAM)
        self.hint.setVisible(is_empty or len(result.teams) == 1)
        self.sentence.clear()

    def _show_sentence(self, row: int | None) -> None:
        comparison = self._comparison
        if comparison is None or row is None:
            self.sentence.clear()
        elif self._listed is TeamsList.FP:
            self.sentence.setText(place_sentence(self._places[row]))
        else:
            self.sentence.setText(object_sentence(comparison.consensus, int(self._rows[row])))

    def _show_legend(self, teams: int) -> None:
        """Explain the colours of the consensus, from none to all teams."""
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

    def _lay_out(self) -> None:
        views = QHBoxLayout()
        views.setSpacing(3)
        group = QButtonGroup(self)
        for mode in ViewMode:
            button = self._modes[mode] = QPushButton(mode.value)
            button.setCheckable(True)
            button.setToolTip(_MODE_MEANINGS[mode])
            button.clicked.connect(lambda _=False, m=mode: self.mode_chosen.emit(m))
            group.addButton(button)
            views.addWidget(button)
        views.addStretch(1)
        self._menu.setToolTipsVisible(True)
        self._teams.setMenu(self._menu)
        opens_menu(self._teams)
        self._teams.setToolTip(f"Which teams are compared: up to {MAX_TEAMS}.")
        views.addWidget(self._teams)
        own = QButtonGroup(self)
        for listed in TeamsList:
            button = self._lists[listed] = QPushButton(listed.value)
            button.setCheckable(True)
            button.setChecked(listed is TeamsList.ALL)
            button.setToolTip(_LISTED_MEANINGS[listed])
            button.clicked.connect(lambda _=False, chosen=listed: self.choose_list(chosen))
            own.addButton(button)
        self.count.chosen.connect(lambda _count: self._on_count())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.setSpacing(3)
        layout.addLayout(views)
        self.progress.setToolTip("How many layers of the view are there.")
        layout.addWidget(self.progress)
        legend = QHBoxLayout()
        legend.addWidget(self.count)
        legend.addWidget(self._legend, 1)
        layout.addLayout(legend)
        layout.addWidget(FlowBar(*self._lists.values()))
        layout.addWidget(self.hint)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.sentence)
        layout.addStretch(0)
        self.table.row_chosen.connect(self._on_row)

    def _on_count(self) -> None:
        if self._comparison is not None:
            self._show_legend(len(self._comparison.consensus.teams))

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
        self._teams.setText(f"{n} team{'' if n == 1 else 's'}")

    def _on_row(self, row: int, column: int) -> None:
        comparison = self._comparison
        if comparison is None:
            return
        team = self.table.key(column)
        if self._listed is TeamsList.FP:
            self.place_chosen.emit(self._places[row], team)
        else:
            self.object_chosen.emit(int(self._rows[row]), team)
        self._show_sentence(row)


def _chip(colour: Rgb, text: str) -> str:
    """Write a word on a ground of some colour, so that both can be read."""
    luma = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
    ink = "#000000" if luma > 120 else "#ffffff"
    return (
        f"<span style='background-color: {styles.hex_colour(colour)}; color: {ink}'>"
        f"&nbsp;{text}&nbsp;</span>"
    )
