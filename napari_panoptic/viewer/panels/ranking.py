"""How teams rank over the cohort: under which protocol, by which average, and how firmly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QSizePolicy, QSplitter, QTabBar, QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.cohort_lines import CohortLines
from napari_panoptic.display.glossary import FIGURE_MEANINGS
from napari_panoptic.display.names import distinct_names
from napari_panoptic.questions.answer import Answer, AnswerTable
from napari_panoptic.questions.conventions import SCORES, Conventions
from napari_panoptic.report.nuclei.cohort_report import CohortReport
from napari_panoptic.report.nuclei.ranking_answer import STATISTICS
from napari_panoptic.tables.columns import TableColumn, texts
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.cohort_work import WholeCohort, patients_of
from napari_panoptic.viewer.jobs.jobs import Several, single_shot, stop_timers
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.layouts import NO_MARGINS, Grow, Row, ScrollPanel, fill, lay_out
from napari_panoptic.viewer.kit.name_table import NameTable
from napari_panoptic.viewer.kit.questions import file_to_save
from napari_panoptic.viewer.kit.shown import WrappedLabel, show_error, show_info
from napari_panoptic.viewer.kit.widgets import PushButton, heading
from napari_panoptic.viewer.panels.navigator import figure_column, patient_column
from napari_panoptic.viewer.panels.part import Connections, Surroundings
from napari_panoptic.viewer.panels.question.plots import PlotPicker
from napari_panoptic.viewer.panels.question.presenter import QuestionPresenter
from napari_panoptic.viewer.panels.question.view import QuestionView
from napari_panoptic.viewer.panels.region_panel import SeenPresenter

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Point

SOON_MS = 150
"""How long after a region is evaluated the patients follow."""
WITHOUT_IMAGE = "Cohort"
"""The workspace without an image."""
OBJECTS = "Objects"
"""A panel beside the image."""
NOT_EVALUATED = "Evaluate the cohort to see this plot."
CLICK_A_POINT = "Click a point to open its region."
FIRST_PLOTS = "PQ per patient", "DQ against SQ"
"""Titles of the plots that are shown first."""
ONE_TEAM = "This cohort has fewer than two teams to compare."
LEAST_WIDE_PX = 760, 460
"""Width and height from which tables, plots and patients are all in sight."""
LEAST_HEIGHT_PX = 200
PLOTS_BESIDE_TABLES_PX = 1000
"""Width from which plots stand beside the tables; below, beside the patients."""
LEAST_TWO_PX = 560
"""Width or height from which there are two plots."""
_RANK_METHOD = (
    "Rank: 1 + the number of teams significantly better (Nemenyi, p < 0.05). Intervals: 95 %, by "
    "the bootstrap over patients."
)


class RankingView(QuestionView):
    """Tables, plots and patients of a cohort: all in sight, or in tabs where there is less room."""

    def __init__(self) -> None:
        super().__init__(WholeCohort, plots=_picker(FIRST_PLOTS[0]))

    def arrange(self, above: Sequence[Row]) -> None:
        """Lay out tables, plots and patients."""
        self.report = PushButton("Report…", "Save everything as one HTML file that opens anywhere.")
        self.conventions = FigureTable(stretch_first=False)
        self.statistics = FigureTable(stretch_first=False)
        self.plots_beside = _picker(FIRST_PLOTS[1])
        self.patients = NameTable("Patients", "Filter by patient")
        self.tabs, self._figures, self._statistics_note = QTabBar(), QWidget(), WrappedLabel()
        self._statistics_note.setToolTip(_RANK_METHOD)
        sideways = Qt.Orientation.Horizontal
        self._upper, self._lower, self._plots = (QSplitter(sideways) for _ in range(3))
        self._all = QSplitter(Qt.Orientation.Vertical)
        self._arranged: tuple[bool, bool] | None = None
        for word in ("Tables", "Plots", "Patients"):
            self.tabs.addTab(word)
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        self._pages: tuple[QWidget, ...] = (self._tables_page(), self._plots, self.patients)
        for splitter, widgets in (
            (self._plots, self.pickers),
            (self._upper, self._pages[:2]),
            (self._lower, (self.patients,)),
            (self._all, (self._upper, self._lower)),
        ):
            for widget in widgets:
                splitter.addWidget(widget)
            splitter.setChildrenCollapsible(False)
        _share_out(self._plots, (1, 1))
        # No higher than the dock: its parts scroll.
        self._all.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self._all.setMinimumHeight(LEAST_HEIGHT_PX)
        asking = (self.work.start, self.all, Grow(self.work.bar), self.work.stop)
        saving = (self.making.bar, self.making.stop, self.save, self.report)
        fill(self._rows, *above, (*asking, None, *saving), self.tabs, Grow(self._all))
        self.tabs.currentChanged.connect(lambda _: self._arrange())

    @property
    def pickers(self) -> tuple[PlotPicker, ...]:
        """Both menus of plots."""
        return self.plots, self.plots_beside

    def plots_in_sight(self) -> list[PlotPicker]:
        """Return the plots that there is room for."""
        return [picker for picker in self.pickers if not picker.isHidden()]

    def tables_of(self, answer: Answer) -> list[AnswerTable]:  # noqa: ARG002
        """Return none: the tables are below each other."""
        return []

    def show_nothing(self, hint: str) -> None:
        """Show a sentence and no tables."""
        super().show_nothing(hint)
        self.report.setEnabled(False)
        self._figures.hide()

    def show_answer(self, answer: Answer) -> None:
        """Show ranks by every convention and metric."""
        super().show_answer(answer)
        self.report.setEnabled(True)
        self._figures.show()
        tables = {table.title: table for table in answer.tables}
        statistics = tables.get(STATISTICS)
        _fill(self.conventions, tables.get(SCORES), hint=_CLICK)
        _fill(self.statistics, statistics)
        caption = ONE_TEAM if statistics is None else statistics.spec.caption
        self._statistics_note.setText(caption)

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
        self._plots.setOrientation(turned)
        self.plots_beside.setVisible(has_two)

    def _tables_page(self) -> ScrollPanel:
        """Make the page of tables, which scrolls down."""
        lay_out(
            self._figures,
            heading(
                "Conventions: figure (rank)", "Click a figure to see what is counted differently."
            ),
            self.conventions,
            heading("Statistics: mean over patients (rank)"),
            self.statistics,
            self._statistics_note,
        )
        page = ScrollPanel(margins_px=NO_MARGINS)
        page.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        listed = (self.summary, self.which, self.sentences, self.table, self.row_line)
        for widget in (
            self.headline,
            self.note,
            self._figures,
            *listed,
            self.members,
            self.tools,
        ):
            page._rows.addWidget(widget)
        page._rows.addStretch(1)
        return page


def _picker(title: str) -> PlotPicker:
    return PlotPicker(title, NOT_EVALUATED, CLICK_A_POINT)


def _share_out(splitter: QSplitter, shares: Sequence[int]) -> None:
    """Divide the room of a splitter, now and when it is resized."""
    for number, share in enumerate(shares):
        splitter.setStretchFactor(number, share)
    # Qt scales sizes to the room that there is, which is not known before the first layout.
    splitter.setSizes([1000 * share for share in shares])


_CLICK = "Click to see in “Conventions” which nuclei are counted differently."


def _fill(shown: FigureTable, table: AnswerTable | None, *, hint: str = "") -> None:
    """Show a table of an answer; figures of teams can be clicked where there is a hint."""
    shown.setVisible(table is not None)
    if table is None:
        return
    columns = table.spec.shown()
    rows = [
        [_cell(column, row, table, number, hint) for column in columns]
        for number, row in enumerate(table.frame.to_dict("records"))
    ]
    titles = [str(column.title or column.keys[0]) for column in columns]
    teams = [title for title, own in zip(titles, columns, strict=True) if len(own.keys) > 1]
    short = dict(zip(teams, distinct_names(teams), strict=True))
    header = [
        Cell(short.get(title, title), column.about or title)
        for title, column in zip(titles, columns, strict=True)
    ]
    shown.fill(header, rows)


def _cell(
    column: TableColumn, row: Mapping[Any, Any], table: AnswerTable, number: int, hint: str
) -> Cell:
    """Return a cell of an answer; the best figure of a row is bold."""
    (text,) = texts([column], [row])[1][0]
    is_figure, about = len(column.keys) > 1, "" if table.tooltip is None else table.tooltip(number)
    bold = is_figure and row[column.keys[1]] == 1
    target = column.keys[0] if is_figure and hint else None
    return Cell(text, about, bold=bold, target=target, hint=hint)


class RankingPresenter(QuestionPresenter, SeenPresenter[QuestionView]):
    """Conventions, statistics, plots and patients of the whole cohort; a report of them."""

    kind = WholeCohort
    title, key = WholeCohort.title, WholeCohort.key
    panel_type = RankingView
    panel: RankingView

    def __init__(self, around: Surroundings, panel: RankingView) -> None:
        super().__init__(around, panel)
        self._writing = Several()
        self._lines = CohortLines(self.session.cohort, self.session.summaries)
        self._soon = single_shot(SOON_MS, self.refresh)

    @property
    def report(self) -> CohortReport | None:
        """What is known of the cohort under the present settings."""
        report: CohortReport | None = None if self.found is None else self.found.gathered
        return report

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed or written."""
        return super().is_busy or self.is_writing

    @property
    def is_writing(self) -> bool:
        """Whether a report is being written."""
        return self._writing.is_busy

    def connections(self) -> Connections:
        """Listen to session and panel."""
        panel = self.panel
        return [
            *super().connections(),
            (self._sight.changed, self._on_sight),
            (self.session.summary_changed, self._on_summary),
            (panel.report.pushed, self._on_report),
            (panel.conventions.chosen, self._on_convention),
            (panel.patients.table.cell_activated, self._on_patient),
            *((picker.view.point_chosen, self._on_point) for picker in panel.pickers),
        ]

    def close(self) -> None:
        """Stop all work."""
        super().close()
        stop_timers(self._soon)

    def ask(self) -> None:
        """Evaluate the whole cohort; say what is wrong with the table of its patients."""
        try:
            patients_of(self.session.cohort)
        except PanopticError as error:
            show_error(str(error))
        super().ask()

    def refresh(self, *changed: object) -> None:
        """Show what is known, now or when the panel comes into sight."""
        SeenPresenter.refresh(self, *changed)

    def compute_now(self) -> None:
        """Show what is known of the cohort and its patients."""
        self.panel.show_patients(self._lines, [team.name for team in self.session.cohort.teams])
        QuestionPresenter.refresh(self)

    def _on_summary(self, _summary: object) -> None:
        """Show figures of patients a moment after they are computed: many come at a time."""
        if not self._soon.isActive():
            self._soon.start()

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

    def _on_report(self) -> None:
        usual = self.session.cohort.root / "report.html"
        chosen = file_to_save(self.panel, "Save the report", usual, "HTML (*.html)")
        if chosen is not None:
            self.save_report(chosen)

    def save_report(self, path: Path) -> None:
        """Write the report in a worker, and say when it is there."""
        if self.report is not None:
            self._writing.start(
                partial(_write, self.report, path),
                lambda _: show_info(f"The report is in {path}"),
            )


def _write(found: CohortReport, path: Path) -> None:
    from napari_panoptic.report.nuclei.page import write_report

    write_report(found, path, date=date.today().isoformat())
