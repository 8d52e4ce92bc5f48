"""The panels of the desk for several raters: cases, levels, slices, raters, and two strips."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.common.findings import Finding
from napari_panoptic.nuclei.palette import hex_colour
from napari_panoptic.raters.cohort import RatedCohort, RatersSettings
from napari_panoptic.raters.levels import Comparison, RaterAgreement, Standing, standing
from napari_panoptic.raters.objects import ObjectAgreement
from napari_panoptic.raters.outlines import (
    DIVIDED_COLOUR,
    PREDICTION_COLOURS,
    REFERENCE_COLOURS,
    level_colours,
    rater_colour,
)
from napari_panoptic.raters.slice_outlines import Shown
from napari_panoptic.report.text import UNDEFINED, count, ratio
from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.shown import PlainLabel, RichLabel, shown
from napari_panoptic.viewer.kit.strip_buttons import KeysButton, NotesButton
from napari_panoptic.viewer.kit.widgets import (
    COMPACT_COMBO,
    Cell,
    ElidedLabel,
    Figure,
    FigureTable,
    heading,
)
from napari_panoptic.viewer.panels.raters.strips import SliceStrip, SpreadStrip

STANDING_WORDS = {
    Standing.BELOW: "below",
    Standing.WITHIN: "within",
    Standing.ABOVE: "above",
    Standing.UNDEFINED: UNDEFINED,
}
_STANDING_MEANING = (
    "Whether the team's Dice against all raters but one lies within that of the raters themselves, "
    "measured the same way: below the lowest, within, or above the highest."
)
NO_TEAMS = (
    "There are no predictions yet: add a folder per team, TEAM/CASE/STRUCTURE.nii.gz, or name "
    "files.predictions in the cohort.toml. The raters can be compared without them."
)
COMPUTING = "The figures are being computed …"
_SHOWN_MEANINGS = {
    Shown.RATERS: "The outline of each rater's mask, in a colour of their own.",
    Shown.REFERENCE: "Where the share of raters who marked a pixel reaches the level.",
    Shown.PREDICTION: "Where the predicted probability reaches the level.",
    Shown.DISAGREEMENT: "1 - |2 p - 1| of the raters' mean p: clear where all agree, "
    "pink where they differ.",
}


class CasesPanel(QWidget):
    """Menus of structure and team, and the cases, worst first."""

    open_wanted = Signal()
    structure_chosen = Signal(str)
    team_chosen = Signal(str)
    case_chosen = Signal(str)

    def __init__(self, cohort: RatedCohort) -> None:
        super().__init__()
        self.open = QPushButton("Open cohort…")
        self.open.setToolTip("Choose a folder with images, annotations and predictions.")
        self.open.clicked.connect(lambda _=False: self.open_wanted.emit())
        self._names: list[str] = []
        self.structures, self.teams = QComboBox(), QComboBox()
        for menu, names in ((self.structures, cohort.structures), (self.teams, cohort.teams)):
            for name in names:
                menu.addItem(shown(name), name)
            menu.setStyleSheet(COMPACT_COMBO)
            menu.setSizeAdjustPolicy(
                QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
            )
            menu.setMinimumContentsLength(10)
        self.teams.setEnabled(bool(cohort.teams))
        form = QFormLayout()
        form.setContentsMargins(4, 4, 4, 0)
        form.addRow(self.open)
        form.addRow("Structure", self.structures)
        form.addRow("Team", self.teams)
        self.table = ArrayTable()
        self.table.setAccessibleName("Cases")
        self.note = PlainLabel("" if cohort.teams else NO_TEAMS)
        self.note.setWordWrap(True)
        self.note.setVisible(not cohort.teams)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(form)
        layout.addWidget(self.note)
        layout.addWidget(self.table)
        self.structures.activated.connect(
            lambda _: self.structure_chosen.emit(self.structures.currentData())
        )
        self.teams.activated.connect(lambda _: self.team_chosen.emit(self.teams.currentData()))
        self.table.row_chosen.connect(self._on_row)

    def show_cases(self, cases: Sequence[str], rows: Mapping[str, Mapping[str, object]]) -> None:
        """Show the cases of a structure: Dice and standing as far as they are known.

        The lowest Dice comes first, unless another column was asked for.
        """
        selected = self.selected()
        dice = {name: _number(rows.get(name, {}).get("dice")) for name in cases}
        self._names = sorted(cases, key=lambda name: (math.isnan(dice[name]), dice[name]))
        values = np.array([dice[name] for name in self._names])
        stands = [_word(rows.get(name)) for name in self._names]
        states = [_state(rows.get(name, {})) for name in self._names]
        columns = (
            Column(
                "case",
                "The case.",
                np.array(self._names, dtype=object),
                tooltip=lambda row: f"{self._names[row]}; {states[row]}",
                width=118,
                is_text=True,
            ),
            Column("Dice", "Average over the levels.", values, text=ratio, width=56),
            Column("stands", _STANDING_MEANING, np.array(stands, dtype=object), width=64),
        )
        self.table.show_rows(columns)
        self.select(selected)

    def select(self, name: str | None) -> None:
        """Mark the case that is shown."""
        self.table.select(self._names.index(name) if name in self._names else None)

    def selected(self) -> str | None:
        """Return the marked case."""
        row = self.table.selected()
        return None if row is None or row >= len(self._names) else self._names[row]

    def neighbour(self, name: str | None, step: int) -> str | None:
        """Return the next or previous case in the order of the table; round at its ends."""
        order = [self._names[row] for row in self.table.rows()]
        if not order:
            return None
        place = order.index(name) if name in order else -step
        return order[(place + step) % len(order)]

    def _on_row(self, row: int, _column: int) -> None:
        self.case_chosen.emit(self._names[row])


class LevelsPanel(QWidget):
    """The average, Dice at each level, and what is drawn."""

    level_chosen = Signal(int)
    only_chosen = Signal(bool)
    shown_changed = Signal(object)

    def __init__(self, settings: RatersSettings, shown: set[Shown]) -> None:
        super().__init__()
        self._settings = settings
        self.average = Figure("Dice", "Average of Dice over the levels.", large=True)
        self.brier = Figure(
            "Brier",
            "Mean squared difference of probability and the raters' masks; lower is better.",
        )
        self.stands = Figure("among the raters", _STANDING_MEANING)
        figures = QHBoxLayout()
        for figure in (self.average, self.brier, self.stands):
            figures.addWidget(figure)
        self.table = FigureTable()
        self.table.chosen.connect(self._on_level)
        self.only = QCheckBox("draw the chosen level only")
        self.only.setChecked(True)
        self.only.toggled.connect(self.only_chosen.emit)
        self.boxes = {what: QCheckBox(str(what)) for what in Shown}
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        for number, (what, box) in enumerate(self.boxes.items()):
            box.setChecked(what in shown)
            box.setToolTip(_SHOWN_MEANINGS[what])
            box.toggled.connect(self._on_shown)
            grid.addWidget(box, number // 2, number % 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.addLayout(figures)
        layout.addWidget(self.table)
        layout.addWidget(self.only)
        layout.addWidget(heading("Over the image"))
        layout.addLayout(grid)
        layout.addStretch(1)

    def show_figures(
        self,
        found: Comparison | None,
        raters: RaterAgreement | None,
        level: int,
        *,
        why_none: str = COMPUTING,
    ) -> None:
        """Show the figures of a case; dashes without a team, and until they are there."""
        settings = self._settings
        n = len(settings.levels)
        dice = np.full(n, math.nan) if found is None else found.dice(settings)
        reason = why_none if raters is None else "There is no prediction." if found is None else ""
        average = math.nan if found is None else found.score(settings)
        self.average.set_text(ratio(average), reason=reason)
        self.brier.set_text(ratio(math.nan if found is None else found.brier), reason=reason)
        own = math.nan if found is None else found.left_out_score(settings)
        spread = (math.nan, math.nan) if raters is None else raters.spread
        self.stands.set_text(STANDING_WORDS[standing(own, spread)], reason=reason)
        blues = level_colours(REFERENCE_COLOURS, n)
        header = [
            Cell("level", "The compared pixels are those whose probability reaches it."),
            Cell("Dice", "2 both / (mean + prediction)"),
            Cell("raters' mean", "Pixels that reach the level."),
            Cell("prediction", "Pixels that reach the level."),
        ]
        rows = []
        for place, value in enumerate(settings.levels):
            sizes = [UNDEFINED, UNDEFINED]
            if found is not None:
                counts = found.counts[place]
                sizes = [count(float(counts.reference)), count(float(counts.prediction))]
            rows.append(
                [
                    Cell(f"{value:g}", "Draw this level.", colour=blues[place], target=place),
                    Cell(ratio(float(dice[place])), target=place, bold=True),
                    Cell(sizes[0], target=place),
                    Cell(sizes[1], target=place),
                ]
            )
        self.table.fill(header, rows)
        self.table.show_chosen(level)

    def _on_level(self, target: object) -> None:
        if isinstance(target, int):
            self.table.show_chosen(target)
            self.level_chosen.emit(target)

    def _on_shown(self, _is_on: bool) -> None:
        self.shown_changed.emit({what for what, box in self.boxes.items() if box.isChecked()})


class SlicesPanel(QWidget):
    """Dice of each slice of a volume, and the way to the worst ones."""

    slice_chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._scores: NDArray[np.float64] = np.zeros(0)
        self._worst_first: list[int] = []
        self._place = -1
        self._current = 0
        self._why_none = ""
        self.strip = SliceStrip()
        self.note = PlainLabel()
        self.note.setWordWrap(True)
        self.worst = QPushButton("Next worst slice")
        self.worst.setToolTip(
            "The lowest Dice among the slices in which a rater marked something, then the next "
            "lowest (W; Shift+W goes back)."
        )
        self.worst.clicked.connect(lambda: self.step_worst(1))
        self.strip.slice_chosen.connect(self.slice_chosen.emit)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.addWidget(self.note)
        layout.addWidget(self.strip, 1)
        layout.addWidget(self.worst)

    def show_slices(
        self, scores: NDArray[np.float64], is_marked: NDArray[np.bool_], *, why_none: str = ""
    ) -> None:
        """Show the slices of a volume, or say why there are no figures of them."""
        self._scores, self._why_none = scores, why_none
        self.strip.show_scores(scores, is_marked)
        counts = np.flatnonzero(is_marked & ~np.isnan(scores))
        self._worst_first = counts[np.argsort(scores[counts], kind="stable")].tolist()
        self._place = -1
        self.worst.setEnabled(bool(self._worst_first))
        self.strip.setVisible(bool(len(scores)))
        self.worst.setVisible(bool(len(scores)))
        self._say()

    def show_current(self, number: int) -> None:
        """Mark the slice that is looked at, and tell its figure."""
        self._current = number
        self.strip.show_current(number)
        self._say()

    def go_to_worst(self) -> None:
        """Go to the worst slice, where there is one."""
        self._place = -1
        self.step_worst(1)

    def step_worst(self, step: int) -> None:
        """Go to the worst slice, and from there to the next worst, or back."""
        if not self._worst_first:
            return
        is_there = self._place >= 0 and self._worst_first[self._place] == self._current
        self._place = (self._place + step) % len(self._worst_first) if is_there else 0
        self.slice_chosen.emit(self._worst_first[self._place])

    def _say(self) -> None:
        if not len(self._scores):
            self.note.setText(self._why_none)
            return
        text = ""
        if self._current < len(self._scores):
            text = f"Slice {self._current}: Dice {ratio(float(self._scores[self._current]))}."
        if self._worst_first:
            worst = self._worst_first[0]
            text += f" Worst: slice {worst} ({ratio(float(self._scores[worst]))})."
        self.note.setText(text)


class RatersPanel(QScrollArea):
    """The team among the raters, and each two raters compared."""

    rater_chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._chosen: int | None = None
        self.strip = SpreadStrip()
        self.note = PlainLabel()
        self.note.setWordWrap(True)
        self.pairs = FigureTable(stretch_first=False)
        self.pairs.chosen.connect(self._on_rater)
        self.quality = FigureTable(stretch_first=False)
        self._pairs_title = heading("Dice of each pair of raters")
        self._quality_title = heading("Objects: PQ above, F1 below the diagonal")
        inner = QWidget()
        layout = QVBoxLayout(inner)
        layout.setContentsMargins(6, 4, 6, 4)
        title = "Each rater against the mean of the others"
        for label in (
            head := heading(title, "Dice, averaged over the levels."),
            self._quality_title,
        ):
            label.setWordWrap(True)
        layout.addWidget(head)
        layout.addWidget(self.strip)
        layout.addWidget(self.note)
        layout.addWidget(self._pairs_title)
        layout.addWidget(self.pairs)
        layout.addWidget(self._quality_title)
        layout.addWidget(self.quality)
        layout.addStretch(1)
        self.setWidget(inner)
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_raters(
        self,
        found: RaterAgreement | None,
        numbers: Sequence[int],
        team: tuple[str, float] | None,
        objects: ObjectAgreement | None,
        structure: str,
        *,
        why_none: str = COMPUTING,
    ) -> None:
        """Show the agreement on a structure of a case; None until it is computed."""
        self._chosen = None
        for own in (self.strip, self.pairs, self._pairs_title):
            own.setVisible(found is not None)
        self.quality.setVisible(objects is not None)
        self._quality_title.setVisible(objects is not None)
        if found is None:
            self.note.setText(why_none)
            return
        colours = [rater_colour(number) for number in numbers]
        averages = found.left_out_mean.tolist()
        self.strip.show_spread(list(zip(found.raters, averages, colours, strict=True)), team)
        self.note.setText(_said(found, team))
        header = [Cell("rater"), *(Cell(name) for name in found.raters), Cell("others")]
        rows = [
            [
                Cell(
                    name,
                    f"{count(float(found.area_px[i]))} px. Click to draw this rater alone, again "
                    f"for all.",
                    colour=colours[i],
                    target=i,
                ),
                *(
                    Cell("", "") if i == j else _shaded(float(found.pairwise[i, j]))
                    for j in range(len(found.raters))
                ),
                Cell(ratio(averages[i]), "Against the mean of all others.", bold=True),
            ]
            for i, name in enumerate(found.raters)
        ]
        self.pairs.fill(header, rows)
        self.pairs.show_chosen(None)
        if objects is not None:
            pq, f1 = objects.of_class(structure)
            table = np.where(np.triu(np.ones(pq.shape, bool)), pq, f1)
            names = [Cell("rater"), *(Cell(name) for name in found.raters)]
            cells = [
                [
                    Cell(name, colour=colours[i]),
                    *(
                        Cell("") if i == j else _shaded(float(table[i, j]))
                        for j in range(len(found.raters))
                    ),
                ]
                for i, name in enumerate(found.raters)
            ]
            self.quality.fill(names, cells)

    def _on_rater(self, target: object) -> None:
        self._chosen = target if isinstance(target, int) and target != self._chosen else None
        self.pairs.show_chosen(self._chosen)
        self.rater_chosen.emit(self._chosen)


class RatedTitle(QWidget):
    """One line above the image: what is shown, and the way to what was odd and to all keys."""

    keys_clicked = Signal()
    notes_clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._title = ElidedLabel()
        self._title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._notes = NotesButton(
            "Problems in the files of this case. Click for the list.", self.notes_clicked.emit
        )
        self.keys = KeysButton(self, self.keys_clicked.emit)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(6, 2, 6, 2)
        layout.addWidget(self._title, 1)
        layout.addWidget(self._notes)
        layout.addWidget(self.keys)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_title(self, text: str, findings: Sequence[Finding] = ()) -> None:
        """Show what is looked at, and how much was odd in its files."""
        self._title.set_text(text, tooltip="\n".join(finding.message for finding in findings))
        self._notes.show_count(len(findings))

    def text(self) -> str:
        """Return the text."""
        return self._title.text()

    def notes_text(self) -> str:
        """Return the text of the notes button; empty if it is hidden."""
        return self._notes.said()


class RatedLegend(RichLabel):
    """Below the image: what the colours mean, and the keys; over two lines where it must."""

    def __init__(self, keys: str) -> None:
        super().__init__()
        self._keys = keys
        self.setWordWrap(True)
        self.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setContentsMargins(6, 2, 6, 2)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)

    def show_legend(self, raters: Sequence[str], numbers: Sequence[int]) -> None:
        """Name the raters' colours, and those of the levels."""
        chips = [
            (f"rater {name}", rater_colour(number))
            for name, number in zip(raters, numbers, strict=True)
        ]
        chips.append(("their mean", level_colours(REFERENCE_COLOURS, 5)[2]))
        chips.append(("prediction", level_colours(PREDICTION_COLOURS, 5)[2]))
        chips.append(("raters divided", DIVIDED_COLOUR))
        named = [
            f"<span style='color:{hex_colour(colour)}'>■</span>&nbsp;{_unbroken(word)}"
            for word, colour in chips
        ]
        keys = _unbroken(self._keys).replace("&nbsp;·&nbsp;", " · ")
        self.set_rich(f"{'&nbsp; '.join(named)}<br>{keys}")
        self._fit()

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Take as many lines as this width needs, and leave the rest to the image."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self.setMinimumHeight(0)  # Qt gives no height below the one that was fixed last
        height = self.heightForWidth(self.width())
        if height > 0:  # else it has no text yet
            self.setFixedHeight(height)


def _unbroken(text: str) -> str:
    return html.escape(text).replace(" ", "&nbsp;")


def _said(found: RaterAgreement, team: tuple[str, float] | None) -> str:
    low, high = found.spread
    if math.isnan(low):
        return "One rater has no spread to compare with."
    text = f"Raters reach {ratio(low)} to {ratio(high)}; two agree by {ratio(found.mean_pairwise)}."
    if team is None or math.isnan(team[1]):
        return text
    where = {
        Standing.BELOW: "below every rater",
        Standing.WITHIN: "within the raters' spread",
        Standing.ABOVE: "above every rater",
    }[standing(team[1], (low, high))]
    return f"{text} {team[0]} reaches {ratio(team[1])} against the same references: {where}."


def _shaded(value: float) -> Cell:
    return Cell(ratio(value), shade=0.0 if math.isnan(value) else max(0.0, value) ** 2 * 0.6)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else math.nan


def _state(row: Mapping[str, object]) -> str:
    if "unread" in row:
        return "it cannot be read; choose it to see why"
    return f"prediction {row.get('prediction') or 'unknown'}"


def _word(row: Mapping[str, object] | None) -> str:
    if row is None:
        return ""
    return "unreadable" if "unread" in row else STANDING_WORDS[Standing(str(row["standing"]))]
