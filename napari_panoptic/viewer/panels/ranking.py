"""How teams rank over the cohort: under which protocol, by which average, and how firmly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QProgressBar, QSplitter, QTabBar, QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import counted
from napari_panoptic.display.cohort_lines import CohortLines
from napari_panoptic.display.glossary import FIGURE_MEANINGS
from napari_panoptic.display.names import distinct_names
from napari_panoptic.display.styles import count_text, ratio_text
from napari_panoptic.io.tables.metadata import metadata_beside
from napari_panoptic.nuclei.metrics import FIGURE_NAMES
from napari_panoptic.questions.answer import Answer, AnswerTable
from napari_panoptic.questions.conventions import Conventions, scores_of
from napari_panoptic.report.nuclei.cohort_report import CohortReport, ReportRequest
from napari_panoptic.statistics.teams import TeamStatistics
from napari_panoptic.tables.columns import TableColumn, texts
from napari_panoptic.values.settings import (
    protocol_name,
)
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.cohort_work import CohortWork
from napari_panoptic.viewer.jobs.jobs import Latest, Several, show_failure, single_shot, stop_timers
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import NO_MARGINS, PANEL_MARGINS, Grow, ScrollPanel, lay_out
from napari_panoptic.viewer.kit.name_table import NameTable
from napari_panoptic.viewer.kit.plot_view import DRAWING, PlotView
from napari_panoptic.viewer.kit.questions import file_to_save, folder_from
from napari_panoptic.viewer.kit.shown import WrappedLabel, show_error, show_info
from napari_panoptic.viewer.kit.widgets import PushButton, WorkControls, heading
from napari_panoptic.viewer.panels.navigator import figure_column, patient_column
from napari_panoptic.viewer.panels.part import Connections, Surroundings
from napari_panoptic.viewer.panels.question.presenter import NOT_EDITED
from napari_panoptic.viewer.panels.region_panel import SeenPresenter

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Plot, Point

SOON_MS = 150
"""How long after a region is evaluated the patients follow."""
WITHOUT_IMAGE = "Cohort"
"""The workspace without an image."""
OBJECTS = "Objects"
"""A panel beside the image."""
HINT = (
    "Evaluate the cohort to see how teams rank under each protocol and average, how firmly, and "
    "what changes it."
)
OF_OTHERS = "The settings or the files have changed: evaluate the cohort again."
NOT_EVALUATED = "Evaluate the cohort to see this plot."
GOING_ON = (
    "The cohort is being evaluated: {done} of {total} regions are done. The results appear here. "
    "“Stop” keeps what is done: the evaluation continues from there."
)
SUMMING_UP = "All regions are evaluated; averages, statistics and ranks are being computed …"


PLOTS = (
    *("PQ per patient", "DQ against SQ", "Precision against recall"),
    *("Confusion, counts", "Confusion, shares", "Mean ranks"),
    *("PQ against radius", "PQ against threshold", "Shifts by a pixel"),
    *("By size of nucleus", "Causes of failures"),
)
"""The plots, by their names in `napari_panoptic.report.nuclei.ranking_plots`."""
WITH_POINTS = PLOTS[:3]
"""Plots whose points lead to regions."""
LEAST_WIDE_PX = 760, 460
"""Width and height from which tables, plots and patients are all in sight."""
PLOTS_BESIDE_TABLES_PX = 1000
"""Width from which plots stand beside the tables; below, beside the patients."""
LEAST_TWO_PX = 560
"""Width or height from which there are two plots."""


class PlotPane(QWidget):
    """A plot of the cohort, the menu that chooses it, and a button that saves it."""

    def __init__(self, view: str) -> None:
        super().__init__()
        choices = [Choice(name, name) for name in PLOTS]
        self.menu = ChoiceBox(choices, "Plot of the cohort").shrinkable()
        self.menu.setMinimumContentsLength(8)
        self.menu.show_choice(view)
        self.save = PushButton("Save…", "Save this plot as SVG or PNG.")
        self.plot = PlotView()
        self.note = WrappedLabel()
        self.work: Latest[Plot] = Latest(self._show_plot)
        self._drawn: tuple[str, CohortReport] | None = None
        lay_out(self, (Grow(self.menu), self.save), self.note, Grow(self.plot))
        self.draw(None)

    @property
    def view(self) -> str:
        """The name of the plot that is chosen."""
        view: str = self.menu.choice
        return view

    def draw(self, found: CohortReport | None) -> None:
        """Draw the chosen plot in a worker, unless it is shown already; None shows a hint."""
        wanted = None if found is None else (self.view, found)
        if wanted is None or wanted != self._drawn:
            self._drawn = wanted
            self.work.drop()
            self.note.setText(NOT_EVALUATED if wanted is None else "Drawing …")
            self.plot.show_plot(None)
            self.save.setEnabled(False)
            if wanted is not None:
                self.work.start(partial(_drawn, *wanted))

    def _show_plot(self, plot: Plot) -> None:
        self.note.setText("Click a point to open its region." if self.view in WITH_POINTS else "")
        self.plot.show_plot(plot)
        self.save.setEnabled(True)


def _drawn(view: str, found: CohortReport) -> Plot:
    from napari_panoptic.report.nuclei.ranking_plots import cohort_plot

    with DRAWING:
        return cohort_plot(view, found)


_RANK_METHOD = (
    "Rank: 1 + the number of teams significantly better (Nemenyi, p < 0.05). Intervals: 95 %, by "
    "the bootstrap over patients."
)


class RankingPanel(QWidget):
    """Tables, plots and patients of a cohort: all in sight, or in tabs where there is less room."""

    plots_changed = Signal()  # others are chosen, or more are in sight

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.work = WorkControls(
            "Evaluate cohort",
            "Evaluate every region of all teams, also by the conventions of other codes.",
            stop_tooltip="",
            bar=QProgressBar(),
        )
        self.compute, self.stop = self.work.start, self.work.stop
        self.tables = PushButton("Tables…")
        self.report = PushButton("Report…")
        self.conventions = FigureTable(stretch_first=False)
        self.statistics = FigureTable(stretch_first=False)
        self.plots = (PlotPane(PLOTS[0]), PlotPane(PLOTS[1]))
        self.patients = NameTable("Patients", "Filter by patient")
        self.note, self.advice, self._statistics_note = (WrappedLabel() for _ in range(3))
        self.tabs = QTabBar()
        self._upper = QSplitter(Qt.Orientation.Horizontal)
        self._lower = QSplitter(Qt.Orientation.Horizontal)
        self._plots = QSplitter(Qt.Orientation.Horizontal)
        self._all = QSplitter(Qt.Orientation.Vertical)
        self._arranged: tuple[bool, bool] | None = None
        self._pages: tuple[QWidget, ...] = ()
        self._figures = QWidget()
        self._lay_out()
        self.show_hint(HINT)
        self.show_progress(None)

    def show_hint(self, text: str, *, note: str = "") -> None:
        """Show a sentence instead of figures of the cohort; else a note above them."""
        self.note.show_text(text or note)
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
        for team, short in zip(teams, distinct_names(teams), strict=True):
            found = [lines.patient(patient, team) for patient in patients]
            column = figure_column(
                short,
                f"{team}: {meaning}",
                [line.pq for line in found],
                [(line.lacking, line.reason) for line in found],
            )
            columns.append(replace(column, key=team, stretch=True))
        self.patients.show_rows(patients, columns)

    def plots_in_sight(self) -> list[PlotPane]:
        """Return the plots that there is room for."""
        return [pane for pane in self.plots if not pane.isHidden()]

    def show_conventions(self, answer: Answer | None) -> None:
        """Show the score of every team by each convention, and what to keep in mind."""
        self.conventions.setVisible(answer is not None)
        self.advice.show_text("" if answer is None else " ".join((answer.headline, *answer.notes)))
        if answer is None:
            return
        table = scores_of(answer)
        columns = table.spec.shown()
        rows = [
            [_cell(column, row, table, number) for column in columns]
            for number, row in enumerate(table.frame.to_dict("records"))
        ]
        titles = [str(column.title or column.keys[0]) for column in columns]
        teams = [title for title, own in zip(titles, columns, strict=True) if len(own.keys) > 1]
        short = dict(zip(teams, distinct_names(teams), strict=True))
        header = [
            Cell(short.get(title, title), column.about or title)
            for title, column in zip(titles, columns, strict=True)
        ]
        self.conventions.fill(header, rows)

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
            *map(Cell, distinct_names(teams), teams),
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
        said = "Means over patients; the rank in brackets counts the teams that are clearly better."
        self._statistics_note.setToolTip(_RANK_METHOD)
        if left_out:
            said += f" {counted(len(left_out), 'patient', write=count_text)} left out of the tests."
        self._statistics_note.setText(said)
        self.statistics.fill(header, rows)

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
        for word in ("Tables", "Plots", "Patients"):
            self.tabs.addTab(word)
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self._pages = (self._tables_page(), self._plots, self.patients)
        for splitter, widgets in (
            (self._plots, self.plots),
            (self._upper, self._pages[:2]),
            (self._lower, (self.patients,)),
            (self._all, (self._upper, self._lower)),
        ):
            for widget in widgets:
                splitter.addWidget(widget)
            splitter.setChildrenCollapsible(False)
        _share_out(self._plots, (1, 1))
        controls = (self.compute, Grow(bar), self.stop, None, self.tables, self.report)
        lay_out(self, controls, self.tabs, Grow(self._all), margins=PANEL_MARGINS)
        self.tabs.currentChanged.connect(lambda _: self._arrange())

    def _tables_page(self) -> ScrollPanel:
        """Make the page of tables, which scrolls down."""
        lay_out(
            self._figures,
            heading(
                "Conventions: figure (rank)", "Click a figure to see what is counted otherwise."
            ),
            self.advice,
            self.conventions,
            heading("Statistics: mean over patients (rank)"),
            self.statistics,
            self._statistics_note,
        )
        page = ScrollPanel(margins_px=NO_MARGINS)
        page.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for widget in (self.note, self._figures):
            page._rows.addWidget(widget)
        page._rows.addStretch(1)
        return page


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


_CLICK = "Click to see in “Conventions” which nuclei are counted otherwise."


def _cell(column: TableColumn, row: Mapping[Any, Any], table: AnswerTable, number: int) -> Cell:
    """Return a cell of an answer; figures of teams lead to what is counted otherwise."""
    (text,) = texts([column], [row])[1][0]
    is_figure, about = len(column.keys) > 1, "" if table.tooltip is None else table.tooltip(number)
    bold = is_figure and row[column.keys[1]] == 1
    return Cell(text, about, bold=bold, target=column.keys[0] if is_figure else None, hint=_CLICK)


class RankingPresenter(SeenPresenter[RankingPanel]):
    """Conventions, statistics, plots and patients of the whole cohort; a report of them."""

    title = "Ranking"
    key = "Alt-r"
    panel_type = RankingPanel

    def __init__(self, around: Surroundings, panel: RankingPanel) -> None:
        super().__init__(around, panel)
        self._work = CohortWork()
        self._work.progressed.connect(self._on_progress)
        self._work.finished.connect(self._on_finished)
        self._work.failed.connect(self._on_failed)
        self._writing = Several()
        self.asked: ReportRequest | None = None
        """What was asked; None once its figures are no longer shown or expected."""
        self.found: CohortReport | None = None
        """What is known of the cohort."""
        self._lines = CohortLines(self.session.cohort, self.session.summaries)
        self._hint = HINT
        self._shown: CohortReport | None = None
        self._soon = single_shot(SOON_MS, self.refresh)

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed or written."""
        drawing = any(pane.work.is_busy for pane in self.panel.plots)
        return self._work.is_busy or drawing or self.is_writing

    @property
    def is_writing(self) -> bool:
        """Whether a report is being written."""
        return self._writing.is_busy

    def connections(self) -> Connections:
        """Listen to session and panel."""
        panel = self.panel
        return [
            *super().connections(),
            (self.session.settings_changed, self._on_change),
            (self.session.source_changed, self._on_change),
            (self.session.summary_changed, self._on_summary),
            (panel.work.start.pushed, self.evaluate),
            (panel.work.stop.pushed, self._on_stop),
            (panel.tables.pushed, self._on_tables),
            (panel.report.pushed, self._on_report),
            (panel.plots_changed, self.refresh),
            (panel.conventions.chosen, self._on_convention),
            (panel.patients.table.cell_activated, self._on_patient),
            *((pane.menu.chosen, self.refresh) for pane in panel.plots),
            *((pane.save.pushed, partial(self._save_plot, pane)) for pane in panel.plots),
            *((pane.plot.point_chosen, self._on_point) for pane in panel.plots),
        ]

    def forget(self) -> None:
        """Forget what was evaluated."""
        self._drop(HINT)

    def close(self) -> None:
        """Stop all work."""
        self._work.stop()
        stop_timers(self._soon)
        for pane in self.panel.plots:
            pane.work.drop()

    def request(self) -> ReportRequest:
        """Return what would be evaluated now, without the table of patients."""
        session = self.session
        return ReportRequest(
            cohort=session.cohort,
            settings=session.settings,
            protocol=protocol_name(session.settings),
            team_names=tuple(team.name for team in session.cohort.competing_teams),
            source=session.source,
        )

    def evaluate(self) -> None:
        """Evaluate the whole cohort in a worker."""
        self.asked = asked = self.request()
        try:
            metadata = metadata_beside(asked.cohort.root, asked.cohort.patients)
        except PanopticError as error:
            metadata = None
            show_error(str(error))
        self._work.start(replace(asked, metadata=metadata))

    def compute_now(self) -> None:
        """Show what is known, and the plots that are chosen."""
        panel, found = self.panel, self.found
        panel.show_patients(self._lines, [team.name for team in self.session.cohort.teams])
        if not self._work.is_busy:
            panel.show_progress(None, is_there=found is not None)
        note = NOT_EDITED if self.session.has_any_edits else ""
        panel.show_hint(self._hint if found is None else "", note=note)
        if found is not None and found is not self._shown:
            panel.show_conventions(found.conventions)
            panel.show_statistics(FIGURE_NAMES, found.statistics)
        self._shown = found
        for pane in panel.plots_in_sight():
            pane.draw(found)

    # What was evaluated.

    def _on_progress(self, done: int, total: int) -> None:
        """Show the progress of the work, unless figures are shown meanwhile."""
        self._hint = going_on(done, total)
        self.panel.show_progress((done, total))
        if self.found is None:
            self.panel.show_hint(self._hint)

    def _on_finished(self, found: CohortReport) -> None:
        self.found = found
        self.refresh()

    def _on_failed(self, error: PanopticError) -> None:
        self._on_stop()
        show_failure(error)

    def _on_summary(self, _summary: object) -> None:
        """Show figures of patients a moment after they are computed: many come at a time."""
        if not self._soon.isActive():
            self._soon.start()

    def _on_stop(self) -> None:
        """Stop, and keep the figures that are shown."""
        self._work.stop()
        self.asked, self._hint = None if self.found is None else self.asked, HINT
        self.refresh()

    def _on_change(self, _changed: object) -> None:
        """Forget figures of other settings or files: none is shown beside the present ones."""
        if self.asked is not None and self.asked != self.request():
            self._drop(OF_OTHERS)

    def _drop(self, hint: str) -> None:
        self._work.stop()
        self.asked, self.found, self._hint = None, None, hint
        self.refresh()

    # What a figure leads to.

    def _on_convention(self, _team: object) -> None:
        self.link.reveal(Conventions.title)

    def _on_point(self, point: Point) -> None:
        if region := point.region or self._worst_region(point.patient, point.team):
            self._open(region, team=point.team)

    def _on_patient(self, _row: int, column: int) -> None:
        patient = self.panel.patients.selected()
        if patient is not None:
            team = self.panel.patients.table.key(column)
            region = self._worst_region(patient, team or self.session.team or "")
            self._open(region, team=team)

    def _worst_region(self, patient: str, team: str) -> str:
        if patient not in self._lines.regions_of:
            return ""
        return self._lines.worst_region(patient, team)

    def _open(
        self, region: str, side: Side | None = None, id_: int | None = None, *, team: str | None
    ) -> None:
        """Show a region and its image, and a predicted object in it."""
        link, known = self.link, {each.name for each in self.session.cohort.teams}
        link.go_to(region, side, id_, team=team if team in known else None)
        if link.state.workspace == WITHOUT_IMAGE:
            link.reveal(OBJECTS)

    # What is saved.

    def _save_plot(self, pane: PlotPane) -> None:
        plot = pane.plot.plot
        if plot is None:
            return
        from napari_panoptic.report.plots import save

        name = pane.view.lower().replace(" ", "-").replace(",", "")
        usual = self.session.cohort.root / f"{name}.svg"
        chosen = file_to_save(self.panel, "Save the plot", usual, "SVG (*.svg);;PNG (*.png)")
        if chosen is not None:
            with DRAWING:
                _report_on(lambda: f"The plot is in {save(plot, chosen)}")

    def _on_tables(self) -> None:
        if self.found is None:
            return
        root = self.session.cohort.root
        chosen = folder_from(self.panel, "Folder for the CSV files", root)
        if chosen is not None:
            self.save_tables(chosen)

    def save_tables(self, folder: Path) -> None:
        """Write ranking, statistics and patients as CSV files."""
        found = self.found
        if found is not None:
            from napari_panoptic.report.nuclei.ranking import write_ranking_tables

            _report_on(lambda: f"{len(write_ranking_tables(found, folder))} tables are in {folder}")

    def _on_report(self) -> None:
        if self.found is None:
            return
        usual = self.session.cohort.root / "report.html"
        chosen = file_to_save(self.panel, "Save the report", usual, "HTML (*.html)")
        if chosen is not None:
            self.save_report(chosen)

    def save_report(self, path: Path) -> None:
        """Write the report in a worker, and say when it is there."""
        if self.found is None:
            return
        self._writing.start(
            partial(_write, self.found, path),
            lambda _: show_info(f"The report is in {path}"),
        )


def _report_on(save: Callable[[], str]) -> None:
    """Save something; say where it is, or what went wrong."""
    try:
        show_info(save())
    except PanopticError as error:
        show_error(str(error))


def _write(found: CohortReport, path: Path) -> None:
    from napari_panoptic.report.nuclei.page import write_report

    write_report(found, path, date=date.today().isoformat())
