"""How teams rank over the cohort: under which protocol, by which average, and how firmly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import (
    QHBoxLayout,
    QProgressBar,
    QScrollArea,
    QSplitter,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.display.cohort_lines import CohortLines
from napari_panoptic.display.glossary import FIGURE_MEANINGS
from napari_panoptic.display.styles import count_text, ratio_text
from napari_panoptic.nuclei.averages import UNDEFINED_RULES, AggregationTable
from napari_panoptic.nuclei.protocols import ProtocolDifference, ProtocolTable
from napari_panoptic.statistics.teams import TeamStatistics
from napari_panoptic.values.settings import (
    CHALLENGE_PROTOCOL,
    CORRECTED_PROTOCOL,
    DEFAULT_PROTOCOL,
)
from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.name_table import NameTable
from napari_panoptic.viewer.kit.plot_view import PlotView
from napari_panoptic.viewer.kit.shown import WrappedLabel
from napari_panoptic.viewer.kit.widgets import PushButton, WorkControls, heading
from napari_panoptic.viewer.panels.places import figure_column, patient_column

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Plot

HINT = (
    "Evaluate the cohort to see how teams rank under each protocol and average, how firmly, and "
    "what changes it."
)
OF_OTHERS = "The settings or the files have changed: evaluate the cohort again."
NOT_EVALUATED = "Evaluate the cohort to see this plot."
LEAST_DIFFERENCES_PX = 120
GOING_ON = (
    "The cohort is being evaluated: {done} of {total} regions are done. The results appear here. "
    "“Stop” keeps what is done: the evaluation continues from there."
)
SUMMING_UP = "All regions are evaluated; averages, statistics and ranks are being computed …"


_PROTOCOL_TITLES = {
    CHALLENGE_PROTOCOL: "as run",
    f"{CHALLENGE_PROTOCOL}+matching": "match.",
    f"{CHALLENGE_PROTOCOL}+absent-class-fp": "absent",
    f"{CHALLENGE_PROTOCOL}+per-patient": "patient",
    CORRECTED_PROTOCOL: "all three",
    DEFAULT_PROTOCOL: "disent.",
}
"""The columns of table 4 of the errors paper; the report has every combination."""
_PROTOCOL_MEANINGS = {
    CHALLENGE_PROTOCOL: "The challenge's scoring with its errors.",
    f"{CHALLENGE_PROTOCOL}+matching": "False positives are unmatched predictions, not ids.",
    f"{CHALLENGE_PROTOCOL}+absent-class-fp": "Predictions of classes that a region lacks count.",
    f"{CHALLENGE_PROTOCOL}+per-patient": "Regions of a patient are summed before dividing.",
    CORRECTED_PROTOCOL: "All three errors corrected.",
    DEFAULT_PROTOCOL: "Class-blind matching, metrics per patient.",
}


class RankingPlot(StrEnum):
    """The plots."""

    PATIENTS = "PQ per patient"
    QUALITY = "DQ against SQ"
    DETECTION = "Precision against recall"
    CONFUSION = "Confusion, counts"
    SHARES = "Confusion, shares"
    MEAN_RANKS = "Mean ranks"
    RANK_LINES = "Ranks by protocol"
    RADIUS = "PQ against radius"
    THRESHOLD = "PQ against threshold"
    SHIFTS = "Shifts by a pixel"
    SIZES = "By size of nucleus"
    CAUSES = "Causes of failures"
    REGION_RADIUS = "This region against radius"
    REGION_THRESHOLD = "This region against threshold"
    ALIGNMENT = "This region with other ids"


OF_REGION = (RankingPlot.REGION_RADIUS, RankingPlot.REGION_THRESHOLD, RankingPlot.ALIGNMENT)
"""Plots that need no evaluation of the cohort."""
WITH_POINTS = (RankingPlot.PATIENTS, RankingPlot.QUALITY, RankingPlot.DETECTION)
"""Plots whose points lead to regions."""
LEAST_WIDE_PX = 760, 460
"""Width and height from which tables, plots and patients are all in sight."""
PLOTS_BESIDE_TABLES_PX = 1000
"""Width from which plots stand beside the tables; below, beside the patients."""
LEAST_TWO_PX = 560
"""Width or height from which there are two plots."""


class PlotPane(QWidget):
    """A plot, the menu that chooses it, and a button that saves it."""

    def __init__(self, view: RankingPlot) -> None:
        super().__init__()
        choices = [Choice(each, each.value) for each in RankingPlot]
        self.menu = ChoiceBox(choices, "Plot of the cohort, or of this region").shrinkable()
        self.menu.setMinimumContentsLength(8)
        self.menu.show_choice(view)
        self.save = PushButton("Save…", "Save this plot as SVG or PNG.")
        self.plot = PlotView()
        self.note = WrappedLabel()
        row, layout = QHBoxLayout(), QVBoxLayout(self)
        row.addWidget(self.menu, 1)
        row.addWidget(self.save)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(row)
        layout.addWidget(self.note)
        layout.addWidget(self.plot, 1)
        self.show_hint("")

    @property
    def view(self) -> RankingPlot:
        """The plot that is chosen."""
        view: RankingPlot = self.menu.choice
        return view

    def show_hint(self, text: str) -> None:
        """Show a sentence and no plot."""
        self.note.setText(text)
        self.plot.show_plot(None)
        self.save.setEnabled(False)

    def show_plot(self, plot: Plot) -> None:
        """Show a plot."""
        self.note.setText("Click a point to open its region." if self.view in WITH_POINTS else "")
        self.plot.show_plot(plot)
        self.save.setEnabled(True)


class RankingPanel(QWidget):
    """Tables, plots and patients of a cohort: all in sight, or in tabs where there is less room."""

    plots_changed = Signal()  # others are chosen, or more are in sight
    cell_chosen = Signal(str, str)  # team, protocol
    difference_chosen = Signal(ProtocolDifference)
    patient_chosen = Signal(str, object)  # patient, team or None

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.work = WorkControls(
            "Evaluate cohort",
            "Evaluate every region of all teams under every protocol.",
            stop_tooltip="",
            bar=QProgressBar(),
        )
        self.compute, self.stop = self.work.start, self.work.stop
        self.tables = PushButton("Tables…")
        self.report = PushButton("Report…")
        self.protocols = FigureTable(stretch_first=False)
        self.averages = FigureTable(stretch_first=False)
        self.statistics = FigureTable(stretch_first=False)
        self.differences = ArrayTable()
        self.plots = (PlotPane(RankingPlot.PATIENTS), PlotPane(RankingPlot.QUALITY))
        self.patients = NameTable("Patients", "Filter by patient")
        self.note, self._why, self._statistics_note = (WrappedLabel() for _ in range(3))
        self._shown_differences: list[ProtocolDifference] = []
        self.tabs = QTabBar()
        self._upper = QSplitter(Qt.Orientation.Horizontal)
        self._lower = QSplitter(Qt.Orientation.Horizontal)
        self._plots = QSplitter(Qt.Orientation.Horizontal)
        self._all = QSplitter(Qt.Orientation.Vertical)
        self._arranged: tuple[bool, bool] | None = None
        self._pages: tuple[QWidget, ...] = ()
        self._figures = QWidget()
        self._lay_out()
        self._connect()
        self.show_hint(HINT)
        self.show_progress(None)

    def show_hint(self, text: str) -> None:
        """Show a sentence instead of figures of the cohort."""
        self.note.show_text(text)
        self._figures.setVisible(not text)

    def show_progress(self, progress: tuple[int, int] | None, *, is_there: bool = False) -> None:
        """Show how far the evaluation is; None if none is under way."""
        self.work.show_count(progress)
        for button in (self.tables, self.report):
            button.setEnabled(is_there and progress is None)

    def show_patients(self, lines: CohortLines, teams: Sequence[str]) -> None:
        """Show the PQ of every team for every patient, as far as it is known."""
        patients = list(lines.regions_of)
        meaning = f"{FIGURE_MEANINGS['pq']} Of all regions of the patient together, as set now."
        columns = [patient_column("Choose one to open its region.", patients)]
        for team in teams:
            found = [lines.patient(patient, team) for patient in patients]
            column = figure_column(
                team,
                f"{team}: {meaning}",
                [line.pq for line in found],
                [(line.lacking, line.reason) for line in found],
            )
            columns.append(replace(column, key=team, stretch=True))
        self.patients.show_rows(patients, columns)

    def plots_in_sight(self) -> list[PlotPane]:
        """Return the plots that there is room for."""
        return [pane for pane in self.plots if not pane.isHidden()]

    def show_protocols(self, table: ProtocolTable) -> None:
        """Show scores and ranks, a column per protocol."""
        columns = [
            (column, protocol)
            for column, protocol in enumerate(table.protocols)
            if protocol in _PROTOCOL_TITLES
        ]
        header = [
            Cell("Team", "Whose predictions."),
            *(
                Cell(_PROTOCOL_TITLES[p], f"{_PROTOCOL_MEANINGS[p]} Protocol {p}.")
                for _, p in columns
            ),
        ]
        rows = []
        for row, team in enumerate(table.teams):
            cells = [Cell(team, team)]
            for column, protocol in columns:
                score, rank = float(table.scores[row, column]), int(table.ranks[row, column])
                n = int(table.n_units[row, column])
                is_link = protocol.startswith("monusac") and protocol != CHALLENGE_PROTOCOL
                cells.append(
                    Cell(
                        _ranked(score, rank),
                        f"Mean over {count_text(n)}." if rank else "Undefined: nothing evaluated.",
                        bold=rank == 1,
                        target=(team, protocol) if is_link else None,
                    )
                )
            rows.append(cells)
        self.protocols.fill(header, rows)

    def show_differences(self, title: str, found: Sequence[ProtocolDifference]) -> None:
        """List what makes a score differ from the one as run."""
        self._shown_differences = list(found)
        self.differences.setVisible(bool(found))
        self._why.setVisible(True)
        self._why.setText(title)
        self.differences.show_rows(_difference_columns(found))

    def show_averages(self, table: AggregationTable) -> None:
        """Show PQ averaged in every way, with what that does to the ranking."""
        header = [
            Cell("PQ averaged over", "What counts are summed over before PQ is computed."),
            Cell("classes", "How the classes are combined."),
            *(Cell(team) for team in table.teams),
        ]
        rows = []
        for unit, mean in table.ways:
            found = [table.aggregates[team, unit, mean] for team in table.teams]
            ranks = [table.ranks[team, unit, mean] for team in table.teams]
            cells = [
                Cell(unit.value + ("s" if unit.value != "pooled" else "")),
                Cell(mean.value, UNDEFINED_RULES[mean]),
            ]
            for one, rank in zip(found, ranks, strict=True):
                cells.append(
                    Cell(
                        _ranked(one.spread.mean, rank),
                        f"{count_text(one.spread.n)} of {count_text(one.n_units)} units; "
                        f"{one.undefined_rule}.",
                        bold=rank == 1,
                    )
                )
            rows.append(cells)
        self.averages.fill(header, rows)

    def show_statistics(
        self, names: Mapping[str, str], found: Mapping[str, TeamStatistics]
    ) -> None:
        """Show ranks and intervals for every metric."""
        self.statistics.setVisible(bool(found))
        if not found:
            self._statistics_note.setText("This cohort has fewer than two teams to compare.")
            return
        teams = next(iter(found.values())).comparison.teams
        header = [
            Cell("Metric", "Mean over patients with 95 % bootstrap interval, (rank)."),
            Cell("n", "Patients with a value for every team: those the tests compare."),
            Cell("p", "Friedman test: is there any difference between teams?"),
            *(Cell(team) for team in teams),
        ]
        rows = []
        for metric, one in found.items():
            comparison = one.comparison
            p = comparison.friedman_p
            cells = [
                Cell(names.get(metric, metric)),
                Cell(count_text(comparison.n_patients)),
                Cell(_p_text(p), comparison.why_undefined if math.isnan(p) else ""),
            ]
            for team, rank in zip(teams, comparison.ranks, strict=True):
                interval = one.means[team]
                cells.append(
                    Cell(
                        f"{ratio_text(interval.mean)} ({rank})",
                        f"{ratio_text(interval.low)} to {ratio_text(interval.high)}",
                        bold=rank == 1,
                    )
                )
            rows.append(cells)
        left_out = next(iter(found.values())).comparison.figures.omitted
        said = "Rank: 1 + the number of teams significantly better (Nemenyi, p < 0.05)."
        if left_out:
            said += f" {count_text(len(left_out))} patient(s) left out of the tests."
        self._statistics_note.setText(said)
        self.statistics.fill(header, rows)

    def hide_differences(self) -> None:
        """Show no differences any more."""
        self.differences.hide()
        self._why.hide()

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Show side by side what there is room for."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        width, height = LEAST_WIDE_PX
        is_wide = self.width() >= width and self.height() >= height
        self.tabs.setVisible(not is_wide)
        for number, page in enumerate(self._pages):
            page.setVisible(is_wide or number == self.tabs.currentIndex())
        has_low_plots = is_wide and self.width() < PLOTS_BESIDE_TABLES_PX
        row = self._lower if has_low_plots else self._upper
        if self._plots.parent() is not row:
            row.insertWidget(0 if has_low_plots else 1, self._plots)
        self._upper.setVisible(is_wide or self.tabs.currentIndex() < 2)
        self._lower.setVisible(is_wide or self.tabs.currentIndex() == 2)
        if (is_wide, has_low_plots) != self._arranged:
            self._arranged = is_wide, has_low_plots
            _share_out(row, (2, 3) if has_low_plots else (5, 3))
            _share_out(self._all, (1, 1) if has_low_plots else (3, 1))
        if has_low_plots:
            self._turn_plots(self.width() // 2, self.height() // 2)
        elif is_wide:
            self._turn_plots(self.width() // 2, 3 * self.height() // 4)
        else:
            self._turn_plots(self.width(), self.height())

    def _turn_plots(self, width: int, height: int) -> None:
        """Put the plots beside or above each other, or show one alone."""
        beside = width >= height
        turned = Qt.Orientation.Horizontal if beside else Qt.Orientation.Vertical
        has_two = max(width, height) >= LEAST_TWO_PX
        is_other = self.plots[1].isHidden() == has_two
        self._plots.setOrientation(turned)
        self.plots[1].setVisible(has_two)
        if is_other:
            self.plots_changed.emit()

    def _lay_out(self) -> None:
        self.tables.setToolTip("Save ranking, statistics and patients as CSV files.")
        self.report.setToolTip("Save everything as one HTML file that opens anywhere.")
        bar = self.work.bar
        bar.setFormat("%v of %m")
        bar.setMinimumWidth(40)
        top = QHBoxLayout()
        for widget in (self.compute, bar, self.stop):
            top.addWidget(widget, 1 if widget is bar else 0)
        top.addStretch()
        top.addWidget(self.tables)
        top.addWidget(self.report)
        for word in ("Tables", "Plots", "Patients"):
            self.tabs.addTab(word)
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        for pane in self.plots:
            self._plots.addWidget(pane)
        self._pages = (self._tables_page(), self._plots, self.patients)
        self._upper.addWidget(self._pages[0])
        self._upper.addWidget(self._plots)
        self._lower.addWidget(self.patients)
        self._all.addWidget(self._upper)
        self._all.addWidget(self._lower)
        _share_out(self._plots, (1, 1))
        for splitter in (self._upper, self._lower, self._all, self._plots):
            splitter.setChildrenCollapsible(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.addLayout(top)
        layout.addWidget(self.tabs)
        layout.addWidget(self._all, 1)

    def _tables_page(self) -> QScrollArea:
        """Make the page of tables, which scrolls down."""
        self.differences.setMinimumHeight(LEAST_DIFFERENCES_PX)
        rows = QVBoxLayout(self._figures)
        rows.setContentsMargins(0, 0, 0, 0)
        for widget in (
            heading("Protocols: score (rank)", "Click a score to see what differs as run."),
            self.protocols,
            self._why,
            self.differences,
            heading("Averages: PQ (rank)", "PQ by every way to average the same counts."),
            self.averages,
            heading("Statistics: mean over patients (rank)"),
            self.statistics,
            self._statistics_note,
        ):
            rows.addWidget(widget)
        self.hide_differences()
        body, page = QWidget(), QScrollArea()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.note)
        column.addWidget(self._figures)
        column.addStretch(1)
        page.setWidget(body)
        page.setWidgetResizable(True)
        page.setFrameShape(QScrollArea.Shape.NoFrame)
        page.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        return page

    def _connect(self) -> None:
        self.tabs.currentChanged.connect(lambda _: self._arrange())
        for pane in self.plots:
            pane.menu.chosen.connect(lambda _view: self.plots_changed.emit())
        self.protocols.chosen.connect(lambda target: self.cell_chosen.emit(*target))
        self.differences.cell_activated.connect(lambda row, _column: self._on_difference(row))
        self.patients.table.cell_activated.connect(lambda _row, column: self._on_patient(column))

    def _on_difference(self, row: int) -> None:
        self.difference_chosen.emit(self._shown_differences[row])

    def _on_patient(self, column: int) -> None:
        patient = self.patients.selected()
        if patient is not None:
            self.patient_chosen.emit(patient, self.patients.table.key(column))


def _share_out(splitter: QSplitter, shares: Sequence[int]) -> None:
    """Divide the room of a splitter, now and when it is resized."""
    for number, share in enumerate(shares):
        splitter.setStretchFactor(number, share)
    # Qt scales sizes to the room that there is, which is not known before the first layout.
    splitter.setSizes([1000 * share for share in shares])


def going_on(done: int, total: int) -> str:
    """Describe how far the evaluation of a cohort is."""
    if done >= total:
        return SUMMING_UP
    return GOING_ON.format(done=count_text(done), total=count_text(total))


def _ranked(value: float, rank: int) -> str:
    return f"{ratio_text(value)} ({rank})" if rank else ratio_text(value)


def _p_text(p: float) -> str:
    if math.isnan(p):
        return ratio_text(p)
    return "< 0.001" if p < 0.001 else ratio_text(p)


def _difference_columns(found: Sequence[ProtocolDifference]) -> list[Column]:
    words = ("region", "class_name", "reason")
    region, class_name, reason = (
        np.array([str(getattr(one, word)) for one in found], object) for word in words
    )
    return [
        Column(
            "Region",
            "The place; choose a row to go there.",
            region,
            tooltip=lambda row: region[row],
            is_text=True,
            stretch=True,
        ),
        Column("Class", "Of the predicted objects.", class_name, width=80, is_text=True),
        Column(
            "Objects",
            "How many predicted objects; empty for a whole region.",
            np.array([len(one.ids) or np.nan for one in found], np.float64),
            text=lambda n: "" if math.isnan(n) else count_text(int(n)),
            width=60,
        ),
        Column(
            "Weight",
            "The region's share in the score as one region of many, and by its nuclei.",
            np.array([one.share[1] - one.share[0] for one in found], np.float64),
            text=lambda shift: "" if math.isnan(shift) else f"{100 * shift:+z.1f} %",
            tooltip=lambda row: _weight_text(found[row]),
            width=60,
        ),
        Column(
            "Why",
            "What the two versions do differently.",
            reason,
            tooltip=lambda row: reason[row],
            is_text=True,
            stretch=True,
            is_cut_at_end=True,
        ),
    ]


def _weight_text(one: ProtocolDifference) -> str:
    if one.ids:
        return ""
    return f"{one.share[0]:.1%} of the score by region, {one.share[1]:.1%} by nuclei of the patient"
