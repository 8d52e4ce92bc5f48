"""The panels of the desk for several raters: cases, levels, slices, raters, and two strips."""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QGridLayout,
    QSizePolicy,
    QWidget,
)

from napari_panoptic.common.findings import Finding
from napari_panoptic.display.palette import hex_colour
from napari_panoptic.raters.levels import RaterAgreement, Standing, standing
from napari_panoptic.raters.slice_outlines import (
    DIVIDED_COLOUR,
    PREDICTION_COLOURS,
    REFERENCE_COLOURS,
    Shown,
    level_colours,
    rater_colour,
)
from napari_panoptic.tables.figures import UNDEFINED, count, ratio
from napari_panoptic.values.raters import RatedCohort, RatersSettings
from napari_panoptic.viewer.jobs.rater_work import CaseView, WantedCase
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.kit.figures import Cell, Figure, FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import Grow, ScrollPanel, lay_out, row_of
from napari_panoptic.viewer.kit.shown import RichLabel, WrappedLabel
from napari_panoptic.viewer.kit.title_strip import KeysButton, NotesButton, TitleLines
from napari_panoptic.viewer.kit.widgets import ElidedLabel, PushButton, heading
from napari_panoptic.viewer.panels.navigator import PlaceNavigator, figure_column, name_column
from napari_panoptic.viewer.panels.raters.strips import ONE_RATER, SliceStrip, SpreadStrip

STANDING_WORDS = {
    Standing.BELOW: "below all",
    Standing.WITHIN: "within",
    Standing.ABOVE: "above all",
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
COMPUTING = "Computing the metrics …"
NO_PREDICTION = "There is no prediction of this case."
_SHOWN_MEANINGS = {
    Shown.RATERS: "The outline of each rater's mask, in a colour of their own.",
    Shown.REFERENCE: "Where the share of raters who marked a pixel reaches the level.",
    Shown.PREDICTION: "Where the predicted probability reaches the level.",
    Shown.DISAGREEMENT: "1 - |2 p - 1| of the raters' mean p: clear where all agree, "
    "pink where they differ.",
}


class CasesPanel(PlaceNavigator):
    """A menu of structures, the cases, worst first, and the teams."""

    def __init__(self, cohort: RatedCohort) -> None:
        super().__init__("case", with_patients=False)
        self._teams, self._team = cohort.teams, ""
        self._cases: tuple[str, ...] = ()
        self._rows: Mapping[tuple[str, str], Mapping[str, object]] = {}
        self._unread: Collection[str] = ()
        self.open = PushButton(
            "Open cohort…", "Choose a folder with images, annotations and predictions."
        )
        self.structures = ChoiceBox([Choice(name, name) for name in cohort.structures]).shrinkable()
        self.structures.setMinimumContentsLength(10)
        form = QFormLayout()
        form.addRow(self.open)
        form.addRow("Structure", self.structures)
        self.above.addLayout(form)
        self.show_hint("" if cohort.teams else NO_TEAMS)
        self.teams.setVisible(bool(cohort.teams))

    def show_cases(
        self,
        cases: Sequence[str],
        wanted: WantedCase,
        rows: Mapping[tuple[str, str], Mapping[str, object]],
        unread: Collection[str],
    ) -> None:
        """Show the cases of a structure, and the teams; mark the wanted ones.

        The lowest Dice comes first, unless another column was asked for.

        Parameters
        ----------
        cases
            Their names.
        wanted
            The case and the team that are shown, or loading.
        rows
            ``(case, team)`` -> the figures, as far as they are known.
        unread
            Cases that cannot be read.
        """
        self._team, self._rows, self._unread = wanted.team or "", rows, unread
        if self._cases == tuple(cases):
            self.fill_places()
        else:
            is_first, self._cases = not self._cases, tuple(cases)
            self.list_places([(name, "") for name in cases])
            if is_first:
                self.places.table.sortByColumn(1, Qt.SortOrder.AscendingOrder)
        if self.marked != wanted.case:  # it scrolls to the row
            self.mark_place(wanted.case)
        self._fill_teams()

    def place_figures(self, names: Sequence[str]) -> list[Column]:
        """Make the columns with the figures of cases."""
        return self._figures([(name, self._team) for name in names])

    def _fill_teams(self) -> None:
        known = [
            [self._dice(case, team) for case in self._cases if (case, team) in self._rows]
            for team in self._teams
        ]
        mean = [float(np.mean(dice)) if dice else math.nan for dice in known]
        columns = [
            name_column("Team", "The team; choose it to show its predictions.", self._teams),
            figure_column("Mean Dice", "Mean over the cases that are known.", mean),
            *self._figures([(self.marked or "", team) for team in self._teams]),
        ]
        self.teams.show_rows(self._teams, columns)
        self.teams.mark(self._team)

    def _figures(self, keys: Sequence[tuple[str, str]]) -> list[Column]:
        """Make the columns of Dice and standing of some cases and teams."""
        lacking = [(UNDEFINED, self._state(*key)) for key in keys]
        return [
            figure_column(
                "Dice", "Average over the levels.", [self._dice(*key) for key in keys], lacking
            ),
            Column(
                "Among raters",
                _STANDING_MEANING,
                np.array([self._standing(*key) for key in keys], dtype=object),
            ),
        ]

    def _dice(self, case: str, team: str) -> float:
        dice = self._rows.get((case, team), {}).get("dice")
        return float(dice) if isinstance(dice, (int, float)) else math.nan

    def _standing(self, case: str, team: str) -> str:
        if case in self._unread:
            return "unreadable"
        row = self._rows.get((case, team))
        return "" if row is None else STANDING_WORDS[Standing(str(row["standing"]))]

    def _state(self, case: str, team: str) -> str:
        if case in self._unread:
            return "The case cannot be read; choose it to see why."
        state = self._rows.get((case, team), {}).get("prediction")
        return f"Prediction {state}." if state else "Not evaluated yet."


class LevelsPanel(ScrollPanel):
    """The average, Dice at each level, and the choice of drawings."""

    shown_changed = Signal(object)  # set[Shown]

    def __init__(self, settings: RatersSettings, shown: set[Shown]) -> None:
        super().__init__(margins_px=(6, 4, 6, 4), spacing_px=None)
        self._settings = settings
        self.average = Figure("Dice", "Average of Dice over the levels.", large=True)
        self.brier = Figure(
            "Brier",
            "Mean squared difference of probability and the raters' masks; lower is better.",
        )
        self.stands = Figure("among the raters", _STANDING_MEANING)
        self.table = FigureTable()
        self.only = QCheckBox("Draw the chosen level only")
        self.only.setChecked(True)
        self.boxes = {what: QCheckBox(str(what)) for what in Shown}
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        for number, (what, box) in enumerate(self.boxes.items()):
            box.setChecked(what in shown)
            box.setToolTip(_SHOWN_MEANINGS[what])
            box.toggled.connect(self._on_shown)
            grid.addWidget(box, number // 2, number % 2)
        rows = self._rows
        rows.addLayout(row_of(self.average, self.brier, self.stands))
        for widget in (self.table, self.only, heading("Over the image")):
            rows.addWidget(widget)
        rows.addLayout(grid)
        rows.addStretch(1)

    def show_view(self, view: CaseView | None, level: int, why_none: str) -> None:
        """Show the figures of a case; dashes without a team, and until they are there."""
        settings, comparison = self._settings, None if view is None else view.comparison
        n = len(settings.levels)
        texts, dice, sizes = [UNDEFINED] * 3, [math.nan] * n, [(UNDEFINED, UNDEFINED)] * n
        if comparison is not None:
            spread = (math.nan, math.nan)
            if view is not None and view.raters is not None:
                spread = view.raters.spread
            stands = standing(comparison.left_out_score(settings), spread)
            score, words = ratio(comparison.score(settings)), STANDING_WORDS[stands]
            texts = [score, ratio(comparison.brier), words]
            dice = comparison.dice(settings).tolist()
            counts = [comparison.counts[k] for k in range(n)]
            sizes = [(count(float(c.reference)), count(float(c.prediction))) for c in counts]
        for figure, text in zip((self.average, self.brier, self.stands), texts, strict=True):
            figure.set_text(text, reason=why_none if comparison is None else "")
        blues = level_colours(REFERENCE_COLOURS, n)
        header = [
            Cell("Level", "The compared pixels are those whose probability reaches it."),
            Cell("Dice", "2 both / (mean + prediction)"),
            Cell("Raters' mean", "Pixels that reach the level."),
            Cell("Prediction", "Pixels that reach the level."),
        ]
        rows = [
            [
                Cell(f"{value:g}", "Draw this level.", colour=blues[k], target=k),
                Cell(ratio(dice[k]), target=k, bold=True),
                *(Cell(size, target=k) for size in sizes[k]),
            ]
            for k, value in enumerate(settings.levels)
        ]
        self.table.fill(header, rows)
        self.table.show_chosen(level)

    def _on_shown(self, _is_on: bool) -> None:
        self.shown_changed.emit({what for what, box in self.boxes.items() if box.isChecked()})


class VolumeSlicesPanel(QWidget):
    """Dice of each slice of a volume, and the way to the worst ones."""

    def __init__(self) -> None:
        super().__init__()
        self._worst_first: list[int] = []
        self._place = -1
        self._why_none = ""
        self.strip = SliceStrip()
        self.note = WrappedLabel()
        self.worst = PushButton(
            "Next worst slice",
            "The lowest Dice among the slices in which a rater marked something, then the next "
            "lowest (W; Shift+W goes back).",
        )
        self.worst.pushed.connect(lambda: self.step_worst(1))
        lay_out(self, self.note, Grow(self.strip), self.worst, margins=(6, 4, 6, 4))

    def show_view(self, view: CaseView | None, settings: RatersSettings, why_none: str) -> None:
        """Show the slices of a volume, or why there are no figures of them."""
        self._why_none = why_none
        scores, is_marked = np.zeros(0), np.zeros(0, bool)
        if view is not None and view.comparison is not None:
            scores = view.comparison.slice_scores(settings)
            votes = view.picture.votes[: len(scores)]
            is_marked = np.array([plane.any() for plane in votes], bool)
        self.strip.show_scores(scores, is_marked)
        counts = np.flatnonzero(is_marked & ~np.isnan(scores))
        self._worst_first = counts[np.argsort(scores[counts], kind="stable")].tolist()
        self._place = -1
        self.worst.setEnabled(bool(self._worst_first))
        self.strip.setVisible(bool(len(scores)))
        self.worst.setVisible(bool(len(scores)))
        self._fill_note()

    def show_current(self, number: int) -> None:
        """Mark the slice that is looked at, and show its figure."""
        self.strip.show_current(number)
        self._fill_note()

    def go_to_worst(self) -> None:
        """Go to the worst slice, where there is one."""
        self._place = -1
        self.step_worst(1)

    def step_worst(self, step: int) -> None:
        """Go to the worst slice, and from there to the next worst, or back."""
        if not self._worst_first:
            return
        is_there = self._place >= 0 and self._worst_first[self._place] == self.strip.current
        self._place = (self._place + step) % len(self._worst_first) if is_there else 0
        self.strip.slice_chosen.emit(self._worst_first[self._place])

    def _fill_note(self) -> None:
        scores, current = self.strip.scores, self.strip.current
        if not len(scores):
            self.note.setText(self._why_none)
            return
        text = ""
        if current < len(scores):
            text = f"Slice {current}: Dice {ratio(float(scores[current]))}."
        if self._worst_first:
            worst = self._worst_first[0]
            text += f" Worst: slice {worst} ({ratio(float(scores[worst]))})."
        self.note.setText(text)


class RatersPanel(ScrollPanel):
    """The team among the raters, and each two raters compared."""

    def __init__(self) -> None:
        super().__init__(margins_px=(6, 4, 6, 4), spacing_px=None)
        self.strip = SpreadStrip()
        self.note = WrappedLabel()
        self.pairs = FigureTable(stretch_first=False)
        self.quality = FigureTable(stretch_first=False)
        head = heading(
            "Each rater against the mean of the others", "Dice, averaged over the levels."
        )
        self._pairs_title = heading("Dice of each pair of raters")
        self._quality_title = heading("Objects: PQ above, F1 below the diagonal")
        for label in (head, self._quality_title):
            label.setWordWrap(True)
        of_pairs, of_objects = (self._pairs_title, self.pairs), (self._quality_title, self.quality)
        for widget in (head, self.strip, self.note, *of_pairs, *of_objects):
            self._rows.addWidget(widget)
        self._rows.addStretch(1)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_view(self, view: CaseView | None, settings: RatersSettings, why_none: str) -> None:
        """Show the agreement on a structure of a case, or why there is none."""
        comparison = None if view is None else view.raters
        objects = None if view is None else view.objects
        for widget in (self.strip, self.pairs, self._pairs_title):
            widget.setVisible(comparison is not None)
        self.quality.setVisible(objects is not None)
        self._quality_title.setVisible(objects is not None)
        if view is None or comparison is None:
            self.note.setText(why_none)
            return
        team = None
        if view.wanted.team is not None and view.comparison is not None:
            team = (view.wanted.team, view.comparison.left_out_score(settings))
        colours = [rater_colour(number) for number in view.picture.raters]
        averages = comparison.left_out_mean.tolist()
        self.strip.show_spread(list(zip(comparison.raters, averages, colours, strict=True)), team)
        self.note.setText(_comparison_text(comparison, team))
        names = [
            Cell(
                name,
                f"{count(float(area))} px. Click to draw this rater alone, again for all.",
                colour=colour,
                target=k,
            )
            for k, (name, area, colour) in enumerate(
                zip(comparison.raters, comparison.area_px, colours, strict=True)
            )
        ]
        meaning = "Against the mean of all others."
        others = [Cell(ratio(average), meaning, bold=True) for average in averages]
        _fill_pairs(self.pairs, names, comparison.pairwise, others)
        if objects is not None:
            pq, f1 = objects.of_class(view.wanted.structure)
            table = np.where(np.triu(np.ones(pq.shape, bool)), pq, f1)
            _fill_pairs(self.quality, [Cell(at.text, colour=at.colour) for at in names], table)


def _fill_pairs(
    table: FigureTable,
    names: Sequence[Cell],
    values: NDArray[np.float64],
    others: Sequence[Cell] = (),
) -> None:
    """Show a figure of each pair of raters, and in a last column of each against the others."""
    header = [Cell("Rater"), *(Cell(name.text) for name in names)]
    if others:
        header.append(Cell("others"))
    rows = [
        [
            name,
            *(Cell("") if i == j else _shaded(float(values[i, j])) for j in range(len(names))),
            *others[i : i + 1],
        ]
        for i, name in enumerate(names)
    ]
    table.fill(header, rows)


class RaterTitle(TitleLines):
    """One line above the image: the shown case, and the way to the findings and to all keys."""

    notes_clicked = Signal()
    keys_clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.selected = ElidedLabel()
        self.notes = NotesButton(
            "Problems in the files of this case. Click for the list.", self.notes_clicked.emit
        )
        self.keys = KeysButton(self, self.keys_clicked.emit)
        lay_out(self, (Grow(self.selected), self.notes, self.keys), margins=(6, 2, 6, 2))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_title(self, text: str, findings: Sequence[Finding] = ()) -> None:
        """Show the chosen case, and the number of findings in its files."""
        self.selected.set_text(text, tooltip="\n".join(finding.message for finding in findings))
        self.notes.show_count(len(findings))

    def text(self) -> str:
        """Return the text."""
        return self.selected.text()


class RaterLegend(RichLabel):
    """Below the image: the meaning of colours, and the keys; over two lines if necessary."""

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


def _comparison_text(found: RaterAgreement, team: tuple[str, float] | None) -> str:
    low, high = found.spread
    if math.isnan(low):
        return ONE_RATER
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
