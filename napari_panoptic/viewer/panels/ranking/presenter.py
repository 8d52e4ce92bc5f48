"""How teams rank over the cohort, as part of the desk: every figure leads to its objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qtpy.QtWidgets import QFileDialog

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.cohort_lines import CohortLines
from napari_panoptic.io.tables.metadata import Metadata, metadata_beside
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.protocols import ProtocolDifference, differences
from napari_panoptic.report.nuclei.cohort_report import CohortReport, ReportRequest
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import (
    CHALLENGE_PROTOCOL,
    PROTOCOLS,
    EvaluationSettings,
    protocol,
)
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.cohort_work import CohortWork
from napari_panoptic.viewer.jobs.jobs import Latest, Several, show_failure
from napari_panoptic.viewer.jobs.timers import single_shot, stop_timers
from napari_panoptic.viewer.kit.plot_view import DRAWING
from napari_panoptic.viewer.kit.shown import show_error, show_info
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.panels.ranking.panel import (
    HINT,
    NOT_EVALUATED,
    OF_OTHERS,
    OF_REGION,
    PlotPane,
    RankingPanel,
    RankingPlot,
    going_on,
)
from napari_panoptic.viewer.panels.seen_part import SeenPresenter

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Plot, Point

SOON_MS = 150
"""How long after a region is evaluated the patients follow."""
WITHOUT_IMAGE = "Cohort"
"""The workspace without an image."""
OBJECTS = "Objects"
"""A panel beside the image."""

# matplotlib takes long to import: what draws is imported when something is drawn.


class _Slot:
    """A plot of the panel, and the work for it.

    Parameters
    ----------
    pane
        Where it is shown.
    """

    def __init__(self, pane: PlotPane) -> None:
        self.pane = pane
        self.work: Latest[Plot] = Latest(pane.show_plot)
        self._asked: tuple[object, ...] | None = None

    def ask(self, wanted: tuple[object, ...], hint: str, compute: Callable[[], Plot]) -> None:
        """Compute a plot, unless it is the one that was asked for last."""
        if wanted != self._asked:
            self._asked = wanted
            self.pane.show_hint(hint)
            self.work.start(compute)

    def say(self, hint: str) -> None:
        """Show a sentence, and want no plot any more."""
        self._asked = None
        self.work.drop()
        self.pane.show_hint(hint)


class RankingPresenter(SeenPresenter[RankingPanel]):
    """Protocols, averages, statistics, plots and patients of the whole cohort; a report of them."""

    title = "Ranking"
    key = "Alt-r"
    panel_type = RankingPanel

    def __init__(self, around: Surroundings, panel: RankingPanel) -> None:
        super().__init__(around, panel)
        self._work = CohortWork()
        self._work.progressed.connect(self._on_progress)
        self._work.finished.connect(self._on_finished)
        self._work.failed.connect(self._on_failed)
        self._slots = [_Slot(pane) for pane in panel.plots]
        self._writing = Several()
        self.found: CohortReport | None = None
        """What is known of the cohort."""
        self._lines = CohortLines(self.session.cohort, self.session.summaries)
        self._is_outdated = False
        self._team_of_differences = ""
        self._progress: tuple[int, int] | None = None
        self._shown: tuple[CohortReport | None, bool] | None = None
        self._soon = single_shot(SOON_MS, self.refresh)

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed or written."""
        drawing = any(slot.work.is_busy for slot in self._slots)
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
            (panel.cell_chosen, self._on_cell),
            (panel.difference_chosen, self._on_difference),
            (panel.patient_chosen, self._on_patient),
            *((pane.save.pushed, partial(self._save_plot, pane)) for pane in panel.plots),
            *((slot.pane.plot.point_chosen, self._on_point) for slot in self._slots),
        ]

    def forget(self) -> None:
        """Forget what was evaluated."""
        self.found, self._shown, self._is_outdated = None, None, False
        self.refresh()

    def close(self) -> None:
        """Stop all work."""
        self._work.stop()
        stop_timers(self._soon)
        for slot in self._slots:
            slot.work.close()

    def evaluate(self) -> None:
        """Evaluate the whole cohort in a worker."""
        session = self.session
        cohort, settings = session.cohort, session.settings
        metadata, problem = _metadata(cohort)
        if problem is not None:
            show_error(str(problem))
        names = tuple(team.name for team in cohort.competing_teams)
        self._is_outdated = False
        self._work.start(
            ReportRequest(
                cohort=cohort,
                settings=settings,
                protocol=_name_of(settings),
                team_names=names,
                source=session.source,
                metadata=metadata,
            )
        )

    def compute_now(self) -> None:
        """Show what is known, and the plots that are chosen."""
        teams = [team.name for team in self.session.cohort.teams]
        self.panel.show_patients(self._lines, teams)
        if self._shown != (self.found, self._is_outdated):
            self._shown = (self.found, self._is_outdated)
            self._show_tables()
        in_sight = self.panel.plots_in_sight()
        for slot in self._slots:
            if slot.pane in in_sight:
                self._show_plot(slot)

    def _show_tables(self) -> None:
        panel, found = self.panel, self.found
        if not self._work.is_busy:
            panel.show_progress(None, is_there=found is not None)
        if found is None:
            if not self._work.is_busy:  # which says how far it is
                panel.show_hint(OF_OTHERS if self._is_outdated else HINT)
            elif self._progress is not None:
                panel.show_hint(going_on(*self._progress))
            return
        from napari_panoptic.tables.figures import FIGURE_NAMES

        panel.show_hint("")
        panel.hide_differences()
        panel.show_protocols(found.protocols)
        panel.show_averages(found.aggregation)
        panel.show_statistics(FIGURE_NAMES, found.statistics)

    def _show_plot(self, slot: _Slot) -> None:
        view, found = slot.pane.view, self.found
        if view in OF_REGION:
            self._show_of_region(slot, view)
        elif found is None:
            slot.say(NOT_EVALUATED)
        else:
            slot.ask((view, found), "Drawing …", partial(_cohort_plot, view, found))

    # What was evaluated.

    def _on_progress(self, done: int, total: int) -> None:
        """Show the progress of the work, unless figures are shown meanwhile."""
        self._progress = (done, total)
        self.panel.show_progress((done, total))
        if self.found is None:
            self.panel.show_hint(going_on(done, total))

    def _on_finished(self, found: CohortReport) -> None:
        self.found = found
        self.panel.show_progress(None, is_there=True)
        self.refresh()

    def _on_failed(self, error: PanopticError) -> None:
        self.panel.show_progress(None)
        self._refresh()
        show_failure(error)

    def _on_stop(self) -> None:
        self._work.stop()
        self.panel.show_progress(None, is_there=self.found is not None)
        self._refresh()

    def _refresh(self) -> None:
        """Let what was said while the cohort was evaluated give way to what there is."""
        self._shown = None
        self.refresh()

    def _on_summary(self, _summary: object) -> None:
        """Show figures of patients a moment after they are computed."""
        if not self._soon.isActive():
            self._soon.start()

    def _on_change(self, _changed: object) -> None:
        """Forget figures of other settings or files: none is shown beside the present ones."""
        had_some = self.found is not None or self._work.is_busy
        self._work.stop()
        self.found = None
        self._is_outdated = self._is_outdated or had_some
        self._refresh()

    # What a figure leads to.

    def _on_cell(self, team: str, protocol_name: str) -> None:
        if self.found is None:
            return
        corrected = protocol(protocol_name).corrections
        as_run = protocol(CHALLENGE_PROTOCOL).corrections
        found = differences(self.found.scored.get(team, ()), as_run, corrected)
        said = (
            f"{team}, {protocol_name} against {CHALLENGE_PROTOCOL}: choose a row to go there."
            if found
            else f"{team}: nothing differs between {protocol_name} and {CHALLENGE_PROTOCOL}."
        )
        self.panel.show_differences(said, found)
        self._team_of_differences = team

    def _on_difference(self, found: ProtocolDifference) -> None:
        side, id_ = (Side.PREDICTION, found.ids[0]) if found.ids else (None, None)
        self._open(found.region, side, id_, team=self._team_of_differences)

    def _on_point(self, point: Point) -> None:
        if region := point.region or self._worst_region(point.patient, point.team):
            self._open(region, team=point.team)

    def _on_patient(self, patient: str, team: str | None) -> None:
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

    # The region that is shown.

    def _show_of_region(self, slot: _Slot, view: RankingPlot) -> None:
        session = self.session
        if session.snapshot is None or session.team is None:
            slot.say("Open a region first.")
        elif session.snapshot.is_slide:
            slot.say(slide_texts.CURVE)
        elif view is RankingPlot.ALIGNMENT:
            # As in the files: what is edited changes under a worker's hands.
            loaded = session.loaded
            evaluation = None if loaded is None else loaded.evaluations.get(session.team)
            if evaluation is None:
                slot.say("This team has nothing evaluated here.")
                return
            hint = "Numbering the same masks in other ways …"
            slot.ask((view, evaluation), hint, partial(_alignment_plot, evaluation))
        else:
            name = session.snapshot.region.name
            wanted = (name, session.settings, session.source, view)
            hint = "Evaluating this region under other radii and thresholds …"
            slot.ask(wanted, hint, partial(_region_curve, session.cohort, *wanted))

    # What is saved.

    def _save_plot(self, pane: PlotPane) -> None:
        plot = pane.plot.plot
        if plot is None:
            return
        from napari_panoptic.report.plots import save

        name = pane.view.value.lower().replace(" ", "-").replace(",", "")
        usual = self.session.cohort.root / f"{name}.svg"
        chosen, _ = QFileDialog.getSaveFileName(
            self.panel, "Save the plot", str(usual), "SVG (*.svg);;PNG (*.png)"
        )
        if chosen:
            with DRAWING:
                _report_on(lambda: f"The plot is in {save(plot, Path(chosen))}")

    def _on_tables(self) -> None:
        if self.found is None:
            return
        root = str(self.session.cohort.root)
        chosen = QFileDialog.getExistingDirectory(self.panel, "Folder for the CSV files", root)
        if chosen:
            self.save_tables(Path(chosen))

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
        chosen, _ = QFileDialog.getSaveFileName(
            self.panel, "Save the report", str(usual), "HTML (*.html)"
        )
        if chosen:
            self.save_report(Path(chosen))

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


def _name_of(settings: EvaluationSettings) -> str:
    return next((name for name, known in PROTOCOLS.items() if known == settings), "own settings")


def _metadata(cohort: Cohort) -> tuple[Metadata | None, PanopticError | None]:
    try:
        return metadata_beside(cohort.root, cohort.patients), None
    except PanopticError as error:
        return None, error


def _cohort_plot(view: RankingPlot, found: CohortReport) -> Plot:
    from napari_panoptic.viewer.panels.ranking.plots import cohort_plot

    with DRAWING:
        return cohort_plot(view, found)


def _alignment_plot(evaluation: Evaluation) -> Plot:
    from napari_panoptic.viewer.panels.ranking.plots import alignment_plot

    return alignment_plot(evaluation)


def _region_curve(
    cohort: Cohort,
    region_name: str,
    settings: EvaluationSettings,
    source: Source | None,
    view: RankingPlot,
) -> Plot:
    from napari_panoptic.viewer.panels.ranking.plots import region_curve

    return region_curve(cohort, region_name, settings, source, view)
