"""How teams rank over the cohort: under which protocol, by which average, and how firmly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from psygnal import Signal
from qtpy.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.nuclei.averages import UNDEFINED_RULES, AggregationTable
from napari_panoptic.nuclei.cohort_report import n_passes
from napari_panoptic.nuclei.display.styles import count_text, ratio_text
from napari_panoptic.nuclei.protocols import Difference, ProtocolTable
from napari_panoptic.nuclei.values.settings import (
    CHALLENGE_PROTOCOL,
    CORRECTED_PROTOCOL,
    DEFAULT_PROTOCOL,
)
from napari_panoptic.statistics.teams import TeamStatistics
from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.plot_view import PlotView
from napari_panoptic.viewer.kit.shown import PlainLabel
from napari_panoptic.viewer.kit.widgets import COMPACT_COMBO, Cell, FigureTable

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Plot

HINT = (
    "Evaluate the cohort to see how teams rank under each protocol and average, how firmly, and "
    "what changes it. It takes about a second per region."
)
OF_OTHERS = "Settings have changed: evaluate the cohort again."
GOING_ON = (
    "The cohort is being evaluated: {done} of {total} done; every region is evaluated {times}. "
    "The results appear here. “Stop” keeps what is done: the evaluation continues from there."
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
    DEFAULT_PROTOCOL: "Class-blind matching, figures per patient.",
}


class View(StrEnum):
    """What the panel can show."""

    PROTOCOLS = "Protocols"
    AVERAGES = "Averages"
    STATISTICS = "Statistics"
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


OF_REGION = (View.REGION_RADIUS, View.REGION_THRESHOLD, View.ALIGNMENT)
"""Views that need no evaluation of the cohort."""


class RankingPanel(QWidget):
    """One view at a time: a table or a plot, and what lies behind it."""

    cohort_wanted = Signal()
    stop_wanted = Signal()
    report_wanted = Signal()
    picture_wanted = Signal()
    view_chosen = Signal(View)
    cell_chosen = Signal(str, str)  # team, protocol
    difference_chosen = Signal(Difference)
    point_chosen = Signal(object)  # Point

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = QComboBox()
        self.compute = QPushButton("Evaluate cohort")
        self.stop = QPushButton("Stop")
        self.report = QPushButton("Report…")
        self.picture = QPushButton("Save…")
        self.table = FigureTable(stretch_first=False)
        self.differences = ArrayTable()
        self.plot = PlotView()
        self._progress = QProgressBar()
        self._note, self._why = PlainLabel(), PlainLabel()
        self._pages = QStackedWidget()
        self._shown_differences: list[Difference] = []
        self._lay_out()
        self.show_hint(HINT)
        self.show_progress(None)

    def chosen_view(self) -> View:
        """Return the view that is asked for."""
        return View(self.view.currentData())

    def note_text(self) -> str:
        """Return the text about the current view."""
        return self._note.text()

    def show_hint(self, text: str) -> None:
        """Show nothing but a sentence."""
        self._note.setText(text)
        self._pages.hide()
        self.picture.hide()

    def show_progress(self, progress: tuple[int, int] | None, *, is_there: bool = False) -> None:
        """Show how far the evaluation is; None if none is under way."""
        busy = progress is not None
        self._progress.setVisible(busy)
        self.stop.setVisible(busy)
        self.compute.setVisible(not busy)
        self.report.setEnabled(is_there and not busy)
        if progress is not None:
            self._progress.setMaximum(max(progress[1], 1))
            self._progress.setValue(progress[0])

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
        self._show_table(
            header,
            rows,
            "Score (rank). Click a score to see what differs from the challenge as run.",
        )

    def show_differences(self, title: str, found: Sequence[Difference]) -> None:
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
            Cell("classes", "How the classes become one figure."),
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
        self._show_table(header, rows, "PQ (rank) by every way to average the same counts.")

    def show_statistics(
        self, names: Mapping[str, str], found: Mapping[str, TeamStatistics]
    ) -> None:
        """Show ranks and intervals for every metric."""
        if not found:
            self.show_hint("Statistics compare teams: this cohort has fewer than two.")
            return
        teams = next(iter(found.values())).comparison.teams
        header = [
            Cell("Metric", "Mean over patients with 95 % bootstrap interval, (rank)."),
            Cell("n", "Patients with a figure of every team: those the tests compare."),
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
        self._show_table(header, rows, f"Means over patients. {said}")

    def show_plot(self, plot: Plot, note: str = "") -> None:
        """Show a plot."""
        self._note.setText(note)
        self.plot.show_plot(plot)
        self._pages.setCurrentWidget(self.plot)
        self._pages.show()
        self.picture.show()

    def _show_table(self, header: list[Cell], rows: list[list[Cell]], note: str) -> None:
        self._note.setText(note)
        self.table.fill(header, rows)
        self.differences.hide()
        self._why.hide()
        self._pages.setCurrentIndex(0)
        self._pages.show()
        self.picture.hide()

    def _on_difference(self, row: int) -> None:
        self.difference_chosen.emit(self._shown_differences[row])

    def _lay_out(self) -> None:
        for view in View:
            self.view.addItem(view.value, view)
        self.view.setStyleSheet(COMPACT_COMBO)
        self.view.setMinimumContentsLength(8)
        self.view.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.view.setToolTip("What to show of the cohort, or of this region.")
        self.compute.setToolTip("Evaluate every region of all teams under every protocol.")
        self.report.setToolTip("Save everything as one HTML file that opens anywhere.")
        self._note.setWordWrap(True)
        self._why.setWordWrap(True)
        self._progress.setFormat("%v of %m")
        self._progress.setMinimumWidth(40)
        top = QHBoxLayout()
        self.picture.setToolTip("Save this plot as SVG or PNG.")
        buttons = (self.compute, self._progress, self.stop, self.picture, self.report)
        for widget in (self.view, *buttons):
            top.addWidget(widget, 1 if widget in (self.view, self._progress) else 0)
        page = QWidget()
        rows = QVBoxLayout(page)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.addWidget(self.table)
        rows.addWidget(self._why)
        rows.addWidget(self.differences, 1)
        rows.addStretch()
        self._pages.addWidget(page)
        self._pages.addWidget(self.plot)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.addLayout(top)
        layout.addWidget(self._note)
        layout.addWidget(self._pages, 1)
        self.view.currentIndexChanged.connect(lambda _: self.view_chosen.emit(self.chosen_view()))
        self.compute.clicked.connect(lambda: self.cohort_wanted.emit())
        self.stop.clicked.connect(lambda: self.stop_wanted.emit())
        self.report.clicked.connect(lambda: self.report_wanted.emit())
        self.picture.clicked.connect(lambda: self.picture_wanted.emit())
        self.table.chosen.connect(lambda target: self.cell_chosen.emit(*target))
        self.differences.row_chosen.connect(lambda row, _column: self._on_difference(row))
        self.plot.point_chosen.connect(self.point_chosen.emit)


def going_on(done: int, total: int) -> str:
    """Describe how far the evaluation of a cohort is."""
    if done >= total:
        return SUMMING_UP
    times = {1: "once", 2: "twice"}.get(n_passes(), f"{n_passes()} times")
    return GOING_ON.format(done=count_text(done), total=count_text(total), times=times)


def _ranked(value: float, rank: int) -> str:
    return f"{ratio_text(value)} ({rank})" if rank else ratio_text(value)


def _p_text(p: float) -> str:
    if math.isnan(p):
        return ratio_text(p)
    return "< 0.001" if p < 0.001 else ratio_text(p)


def _difference_columns(found: Sequence[Difference]) -> list[Column]:
    words = ("region", "class_name", "reason")
    region, class_name, reason = (
        np.array([str(getattr(one, word)) for one in found], object) for word in words
    )
    return [
        Column("Region", "The place; choose a row to go there.", region, width=190, is_text=True),
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
            text=lambda shift: "" if math.isnan(shift) else f"{100 * shift:+.1f} %",
            tooltip=lambda row: _weight_text(found[row]),
            width=60,
        ),
        Column("Why", "What the two versions do differently.", reason, width=320, is_text=True),
    ]


def _weight_text(one: Difference) -> str:
    if one.ids:
        return ""
    return f"{one.share[0]:.1%} of the score by region, {one.share[1]:.1%} by nuclei of the patient"
