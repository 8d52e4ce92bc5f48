"""Several teams on one region: beside each other, as one picture, and in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.evaluation.consensus import Consensus, InventedPlace, consensus
from napari_panoptic.evaluation.evaluate import Evaluation
from napari_panoptic.evaluation.vocabulary import STATUSES, Side, Status
from napari_panoptic.regions import Rgb
from napari_panoptic.session import RegionSnapshot, Selection
from napari_panoptic.viewer import styles
from napari_panoptic.viewer.consensus_view import (
    INVENTED_COLOUR,
    SEVERAL,
    ConsensusPicture,
    ConsensusView,
    Count,
    consensus_picture,
    level_colours,
)
from napari_panoptic.viewer.desk_part import Connections, Surroundings
from napari_panoptic.viewer.keys import Shortcut
from napari_panoptic.viewer.part_work import Latest, Material, SeenPart, material
from napari_panoptic.viewer.styles import count_text, ratio_text
from napari_panoptic.viewer.team_grid import MAX_TEAMS, CellPictures, TeamGrid, cell_pictures
from napari_panoptic.viewer.widgets.array_table import ArrayTable, Column
from napari_panoptic.viewer.widgets.parts import COMPACT_COMBO

EMPTY = (
    "Nothing to compare. Without a cohort: open one. Otherwise this region has no annotation, or "
    "no team has a prediction here: choose another region, or see the notes above the image."
)
ONE_TEAM = "Only one team has a prediction here: add a second team's folder to compare them."
NONE_LISTED = "No object of this kind here. Press “all” to see every annotated object."


class ViewMode(StrEnum):
    """What the canvas shows."""

    ONE = "one team"
    GRID = "side by side"
    CONSENSUS = "consensus"


class Listed(StrEnum):
    """Which rows the table lists."""

    ALL = "all"
    MISSED = "missed by all"
    ONE_ONLY = "found by one only"
    INVENTED = "invented by 2+"


SHORT_WORDS: Mapping[Status, str] = {**styles.STATUS_WORDS, Status.MISCLASSIFIED: "mis."}
"""Statuses in narrow columns; the tooltip has the whole sentence."""

_MODE_MEANINGS: Mapping[ViewMode, str] = {
    ViewMode.ONE: "The canvas shows one team, as usual (Shift+U goes on).",
    ViewMode.GRID: (
        f"Up to {MAX_TEAMS} teams beside each other, each coloured by its own outcomes; "
        "they move and zoom as one (Shift+U)."
    ),
    ViewMode.CONSENSUS: (
        "One picture of all teams: how many found each annotated nucleus, and where several "
        "invent one (Shift+U)."
    ),
}
_LISTED_MEANINGS: Mapping[Listed, str] = {
    Listed.ALL: "Every annotated object, those found by the fewest teams first.",
    Listed.MISSED: "Annotated objects that every team missed which is judged on them.",
    Listed.ONE_ONLY: "Annotated objects that exactly one team found under the right name.",
    Listed.INVENTED: "Places where two or more teams predict an object that is not annotated.",
}
_COUNT_WORDS: Mapping[Count, str] = {
    Count.FOUND: "found by",
    Count.MISSED: "missed by",
    Count.MISNAMED: "misnamed by",
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """What is shown: the teams of a region, compared and, where asked for, drawn."""

    snapshot: RegionSnapshot
    evaluations: Mapping[str, Evaluation]
    consensus: Consensus
    cells: CellPictures | None
    picture: ConsensusPicture | None


def compared(known: Material, mode: ViewMode, widths: tuple[int, int]) -> Comparison:
    """Compare the teams and draw what a view needs; for workers."""
    evaluations = known.complete()
    picture = consensus_picture(evaluations, widths[1]) if mode is ViewMode.CONSENSUS else None
    return Comparison(
        snapshot=known.snapshot,
        evaluations=evaluations,
        consensus=consensus(evaluations) if picture is None else picture.consensus,
        cells=cell_pictures(evaluations, widths) if mode is ViewMode.GRID else None,
        picture=picture,
    )


class TeamsPanel(QWidget):
    """The choice of a view, and the table with a column per team."""

    mode_chosen = Signal(ViewMode)
    teams_chosen = Signal()
    count_chosen = Signal(Count)
    object_chosen = Signal(int, object)  # row of the reference, team or None
    place_chosen = Signal(object, object)  # InventedPlace, team or None
    centre_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table = ArrayTable()
        self._modes: dict[ViewMode, QPushButton] = {}
        self._lists: dict[Listed, QPushButton] = {}
        self._teams = QToolButton()
        self._menu = QMenu(self._teams)
        self._hint = QLabel(EMPTY)
        self._hint.setWordWrap(True)
        self._legend = QLabel()
        self._legend.setTextFormat(Qt.TextFormat.RichText)
        self._legend.setToolTip(
            "Colours go from light (no team) to dark (all teams); outlines are the heavier the "
            "fewer teams found the object, and places that several teams invent are hatched, the "
            "closer the more teams."
        )
        self._legend.setWordWrap(True)
        self._sentence = QLabel()
        self._sentence.setWordWrap(True)
        self._count = QComboBox()
        self._listed = Listed.ALL
        self._comparison: Comparison | None = None
        self._rows: NDArray[np.intp] = np.zeros(0, np.intp)
        self._places: tuple[InventedPlace, ...] = ()
        self._lay_out()
        self.show_mode(ViewMode.ONE)
        self.show_comparison(None)

    @property
    def listed(self) -> Listed:
        """Which rows the table lists."""
        return self._listed

    def button(self, which: ViewMode | Listed) -> QPushButton:
        """Give the button of a view or of a list."""
        return self._modes[which] if isinstance(which, ViewMode) else self._lists[which]

    def hint_text(self) -> str:
        """Give the hint; empty where there is something to see."""
        return "" if self._hint.isHidden() else self._hint.text()

    def sentence_text(self) -> str:
        """Give what is said about the selected row."""
        return self._sentence.text()

    def count(self) -> Count:
        """Give what the colours of the consensus count."""
        return Count(self._count.currentData())

    def legend_text(self) -> str:
        """Give the legend of the consensus; empty where it is not shown."""
        return "" if self._legend.isHidden() else self._legend.text()

    def offer_teams(self, teams: Sequence[str], chosen: Sequence[str]) -> None:
        """Offer teams to compare; at most six can be chosen."""
        self._menu.clear()
        for team in teams:
            action = self._menu.addAction(team)
            if action is not None:
                action.setCheckable(True)
                action.setChecked(team in chosen)
                action.triggered.connect(lambda _=False: self._on_teams())
        self._show_team_count()

    def chosen_teams(self) -> tuple[str, ...]:
        """Give the teams that are to be compared."""
        return tuple(action.text() for action in self._menu.actions() if action.isChecked())

    def show_mode(self, mode: ViewMode) -> None:
        """Mark the view that is on."""
        for name, button in self._modes.items():
            with QSignalBlocker(button):
                button.setChecked(name is mode)
        self._legend.setVisible(mode is ViewMode.CONSENSUS)
        self._count.setVisible(mode is ViewMode.CONSENSUS)

    def show_comparison(self, comparison: Comparison | None) -> None:
        """Show the teams of a region; a hint where there is nothing to compare."""
        self._comparison = comparison
        for button in (*self._modes.values(), *self._lists.values()):
            button.setEnabled(comparison is not None)
        if comparison is not None:
            result = comparison.consensus
            counts = {
                Listed.ALL: len(result.reference),
                Listed.MISSED: int(result.missed_by_all.sum()),
                Listed.ONE_ONLY: int(result.found_by_one_only.sum()),
                Listed.INVENTED: len(result.invented_by(SEVERAL)),
            }
            for name, number in counts.items():
                self._lists[name].setText(f"{name} {count_text(number)}")
            self._show_legend(len(result.teams))
        self._fill()

    def choose_list(self, listed: Listed) -> None:
        """List other rows."""
        self._listed = listed
        for name, button in self._lists.items():
            with QSignalBlocker(button):
                button.setChecked(name is listed)
        self._fill()

    def show_selection(self, selection: Selection | None) -> None:
        """Select the row of an object, where it is listed."""
        row: int | None = None
        if selection is not None and self._listed is Listed.INVENTED:
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
            self._hint.setText(EMPTY)
            self._hint.show()
            self.table.hide()
            self._sentence.clear()
            return
        result = comparison.consensus
        if self._listed is Listed.INVENTED:
            self._places = result.invented_by(SEVERAL)
            self.table.show_rows(_place_columns(comparison, self._places))
        else:
            chosen = {
                Listed.MISSED: result.missed_by_all,
                Listed.ONE_ONLY: result.found_by_one_only,
            }.get(self._listed)
            order = np.lexsort((-result.reference.area_px, -result.missed, result.found))
            self._rows = order
            self.table.show_rows(
                _object_columns(comparison, order), None if chosen is None else chosen[order]
            )
        is_empty = not self.table.rows()
        self.table.setVisible(not is_empty)
        self._hint.setText(NONE_LISTED if is_empty else ONE_TEAM)
        self._hint.setVisible(is_empty or len(result.teams) == 1)
        self._sentence.clear()

    def _show_sentence(self, row: int | None) -> None:
        comparison = self._comparison
        if comparison is None or row is None:
            self._sentence.clear()
        elif self._listed is Listed.INVENTED:
            self._sentence.setText(_place_sentence(self._places[row]))
        else:
            self._sentence.setText(_object_sentence(comparison.consensus, int(self._rows[row])))

    def _show_legend(self, teams: int) -> None:
        """Say what the colours of the consensus mean, from none to all teams."""
        colours = level_colours(teams)
        count = self.count()
        numbers = range(teams + 1) if count is Count.FOUND else range(teams, -1, -1)
        ladder = "".join(
            _chip(colour, str(number)) for colour, number in zip(colours, numbers, strict=True)
        )
        self._legend.setText(
            f"{ladder} of {teams} teams · heavier: found by fewer · "
            f"{_chip(INVENTED_COLOUR, '▨')} invented by {SEVERAL}+"
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
        self._teams.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._teams.setToolTip(f"Which teams are compared: up to {MAX_TEAMS}.")
        views.addWidget(self._teams)
        lists = QGridLayout()
        lists.setSpacing(3)
        own = QButtonGroup(self)
        for place, listed in enumerate(Listed):
            button = self._lists[listed] = QPushButton(listed.value)
            button.setCheckable(True)
            button.setChecked(listed is Listed.ALL)
            button.setToolTip(_LISTED_MEANINGS[listed])
            button.clicked.connect(lambda _=False, chosen=listed: self.choose_list(chosen))
            own.addButton(button)
            lists.addWidget(button, place // 2, place % 2)
        for count in Count:
            self._count.addItem(_COUNT_WORDS[count], count.value)
        self._count.setStyleSheet(COMPACT_COMBO)
        self._count.setToolTip("What the colours of the consensus count.")
        self._count.currentIndexChanged.connect(lambda _index: self._on_count())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.setSpacing(3)
        layout.addLayout(views)
        legend = QHBoxLayout()
        legend.addWidget(self._count)
        legend.addWidget(self._legend, 1)
        layout.addLayout(legend)
        layout.addLayout(lists)
        layout.addWidget(self._hint)
        layout.addWidget(self.table, 1)
        layout.addWidget(self._sentence)
        layout.addStretch(0)
        self.table.row_chosen.connect(self._on_row)
        self.table.centre_wanted.connect(lambda _row: self.centre_wanted.emit())

    def _on_count(self) -> None:
        if self._comparison is not None:
            self._show_legend(len(self._comparison.consensus.teams))
        self.count_chosen.emit(self.count())

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
        title = self.table.titles()[column].split("\n")[0]
        team = title if title in comparison.consensus.teams else None
        if self._listed is Listed.INVENTED:
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


def _team_width(team: str) -> int:
    """Leave room for a name of usual length; longer ones are cut."""
    return min(max(62, 8 * len(team) + 10), 118)


def _object_columns(comparison: Comparison, order: NDArray[np.intp]) -> list[Column]:
    result = comparison.consensus
    own, n = result.reference, len(result.teams)
    names = np.array(result.class_names)
    columns = [
        Column("Id", "Id of the annotated object.", own.ids[order], width=44),
        Column(
            "Class",
            "Class in the annotation.",
            names[own.class_index[order] - 1] if len(names) else own.ids[order].astype(str),
            width=80,
            is_text=True,
        ),
        Column(
            "Found",
            "How many teams found it under its right name (TP), of how many.",
            result.found[order],
            text=lambda value: f"{value} / {n}",
            width=50,
        ),
    ]
    columns += [_team_column(comparison, number, order) for number in range(len(result.teams))]
    columns.append(
        Column(
            "Area",
            "Its area in px, after the ambiguous policy.",
            own.area_px[order],
            text=lambda value: count_text(int(value)),
        )
    )
    return columns


def _team_column(comparison: Comparison, number: int, order: NDArray[np.intp]) -> Column:
    result = comparison.consensus
    team = result.teams[number]
    codes = result.status[order, number]

    def tooltip(row: int) -> str:
        return f"{team}: {styles.STATUS_MEANINGS[STATUSES[codes[row]]]} Click to see this team."

    return Column(
        f"{team}\n{ratio_text(comparison.evaluations[team].metrics.pq)}",
        f"What became of the object with {team}, and below its name the team's PQ here.",
        codes,
        text=lambda code: SHORT_WORDS[STATUSES[code]],
        tooltip=tooltip,
        colour=lambda row: styles.STATUS_COLOURS[STATUSES[codes[row]]],
        width=_team_width(team),
        is_text=True,
    )


def _place_columns(comparison: Comparison, places: Sequence[InventedPlace]) -> list[Column]:
    teams = comparison.consensus.teams
    n = len(teams)
    numbers = np.array([[len(p.rows.get(t, ())) for t in teams] for p in places], np.int64)
    numbers = numbers.reshape(len(places), n)
    columns = [
        Column("Place", "Number of the place, most teams first.", np.arange(1, len(places) + 1)),
        Column(
            "Teams",
            "How many teams invent something here, of how many.",
            (numbers > 0).sum(axis=1),
            text=lambda value: f"{value} / {n}",
        ),
    ]
    columns += [
        Column(
            f"{team}\n{ratio_text(comparison.evaluations[team].metrics.pq)}",
            f"How many FPs {team} has here; below its name the team's PQ.",
            numbers[:, k],
            text=lambda value: count_text(int(value)) if value else "",
            colour=_place_colour(numbers[:, k]),
            width=_team_width(team),
            is_text=True,
        )
        for k, team in enumerate(teams)
    ]
    return columns


def _place_colour(numbers: NDArray[np.int64]) -> Callable[[int], Rgb | None]:
    return lambda row: INVENTED_COLOUR if numbers[row] else None


def _object_sentence(result: Consensus, row: int) -> str:
    own = result.reference
    words: dict[str, list[str]] = {}
    for team, code in zip(result.teams, result.status[row], strict=True):
        words.setdefault(_FATES[str(STATUSES[code])], []).append(team)
    fates = "; ".join(f"{fate} {', '.join(teams)}" for fate, teams in words.items())
    return f"Reference {own.ids[row]} · {result.class_names[own.class_index[row] - 1]}: {fates}."


_FATES = {
    "TP": "found by",
    "FN": "missed by",
    "misclassified": "misnamed by",
    "ignored": "not judged for",
    "FP": "invented by",
}


def _place_sentence(place: InventedPlace) -> str:
    y, x = place.centroid_yx_px
    return f"Nothing is annotated at ({y:.0f}, {x:.0f}) px: invented by {', '.join(place.teams)}."


class TeamsPart(SeenPart):
    """Compares the teams of the region that is shown."""

    title = "Teams"
    key = "u"

    def __init__(self) -> None:
        super().__init__()
        self._panel = TeamsPanel()
        self._latest: Latest[Comparison] = Latest(self._show)
        self._mode = ViewMode.ONE
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
        return self._latest.is_busy

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
        """Give the key that goes from view to view."""
        meaning = "one team, teams side by side, consensus of the teams"
        return ((Shortcut("Shift-u", meaning), self._next_mode),)

    def connections(self, around: Surroundings) -> Connections:
        """Listen to session and panel."""
        panel = self._panel
        return [
            (around.session.region_changed, self._on_change),
            (around.session.edited, self._on_edit),
            (around.session.team_changed, self._on_team),
            (around.session.selection_changed, panel.show_selection),
            (panel.mode_chosen, self.set_mode),
            (panel.teams_chosen, self.refresh),
            (panel.count_chosen, self._on_count),
            (panel.object_chosen, self._on_object),
            (panel.place_chosen, self._on_place),
            (panel.centre_wanted, self._on_centre),
        ]

    def attach(self, around: Surroundings) -> None:
        """Join in with a cohort: its competing teams are compared first."""
        cohort, scene = around.session.cohort, around.link.scene
        self._grid = TeamGrid(
            around.viewer, scene, around.session, self.refresh, lambda: self._left()
        )
        self._consensus = ConsensusView(around.viewer, scene, around.session)
        teams = list(dict.fromkeys(t.name for t in (*cohort.competing_teams, *cohort.teams)))
        competing = [team.name for team in cohort.competing_teams] or teams
        self._panel.offer_teams(teams, competing[:MAX_TEAMS])
        super().attach(around)

    def detach(self) -> None:
        """Leave a cohort; the view of one team comes back where there is a window."""
        self._latest.drop()
        self._leave(restore=not self.is_window_gone)
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
        known = material(around.session, teams=self._panel.chosen_teams())
        if known is None:
            self._latest.drop()
            self._comparison = None
            self._left()
            self._panel.show_comparison(None)
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
            colours = around.session.cohort.scheme.colours
            self._grid.show(snapshot, comparison.evaluations, comparison.cells, colours)
        elif self._mode is ViewMode.CONSENSUS and comparison.picture is not None:
            self._grid.leave()
            self._consensus.show(snapshot, comparison.picture, self._panel.count())

    def _leave(self, *, restore: bool = True) -> None:
        for view in (self._grid, self._consensus):
            if view is not None:
                view.leave(restore=restore)

    def _left(self) -> None:
        """Be back at the view of one team."""
        self._mode = ViewMode.ONE
        self._leave()
        self._panel.show_mode(ViewMode.ONE)

    def _next_mode(self) -> None:
        modes = list(ViewMode)
        self.set_mode(modes[(modes.index(self._mode) + 1) % len(modes)])

    def _on_team(self, _name: str) -> None:
        if self._grid is not None and self._grid.is_on:
            self._grid.show_team()

    def _on_count(self, count: Count) -> None:
        if self._consensus is not None:
            self._consensus.show_count(count)

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

    def _on_centre(self) -> None:
        around = self.around
        if around is not None and around.session.selection is not None:
            around.link.scene.centre(around.session.selection)
