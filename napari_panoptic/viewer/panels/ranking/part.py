"""How teams rank over the cohort, as part of the desk: every figure leads to its objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qtpy.QtWidgets import QFileDialog

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.metadata import Metadata, metadata_beside
from napari_panoptic.nuclei.cohort_report import CohortReport, ReportRequest
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.protocols import Difference, differences
from napari_panoptic.nuclei.session import Selection
from napari_panoptic.nuclei.snapshots import RegionSnapshot
from napari_panoptic.nuclei.values.cohort import Cohort, Source
from napari_panoptic.nuclei.values.settings import (
    CHALLENGE_PROTOCOL,
    PROTOCOLS,
    EvaluationSettings,
    protocol,
)
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.viewer.jobs.cohort_work import CohortWork
from napari_panoptic.viewer.jobs.jobs import Latest, Several, show_failure
from napari_panoptic.viewer.kit.shown import show_error, show_info
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections
from napari_panoptic.viewer.panels.ranking.panel import (
    HINT,
    OF_OTHERS,
    OF_REGION,
    RankingPanel,
    View,
    going_on,
)
from napari_panoptic.viewer.panels.seen_part import SeenPart

if TYPE_CHECKING:
    from napari_panoptic.report.plots import Plot, Point

# matplotlib takes long to import: what draws is imported when something is drawn.


class RankingPart(SeenPart):
    """Protocols, averages, statistics and plots of the whole cohort, and a report of them."""

    title = "Ranking"
    key = "Alt-r"

    def __init__(self) -> None:
        super().__init__()
        self._panel = RankingPanel()
        self._work = CohortWork()
        self._work.progressed.connect(self._on_progress)
        self._work.finished.connect(self._on_finished)
        self._work.failed.connect(self._on_failed)
        self._region: Latest[Plot] = Latest(self._panel.show_plot)
        self._writing = Several()
        self._found: CohortReport | None = None
        self._is_outdated = False
        self._wanted: tuple[str, str, int] | None = None
        self._team_of_differences = ""
        self._progress: tuple[int, int] | None = None
        self._drawn: tuple[View, CohortReport | None, bool] | None = None
        self._asked: tuple[object, ...] | None = None
        self.watch(self._panel)

    @property
    def widget(self) -> RankingPanel:
        """The panel."""
        return self._panel

    @property
    def found(self) -> CohortReport | None:
        """What is known of the cohort."""
        return self._found

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed or written."""
        return self._work.is_busy or self._region.is_busy or self._writing.is_busy

    def connections(self, around: Surroundings) -> Connections:
        """Listen to session and panel."""
        panel = self._panel
        return [
            *super().connections(around),
            (around.session.region_changed, self._on_region),
            (around.session.settings_changed, self._on_settings),
            (panel.cohort_wanted, self.evaluate),
            (panel.stop_wanted, self._on_stop),
            (panel.report_wanted, self._on_report),
            (panel.picture_wanted, self._on_picture),
            (panel.view_chosen, self._on_view),
            (panel.cell_chosen, self._on_cell),
            (panel.difference_chosen, self._on_difference),
            (panel.point_chosen, self._on_point),
        ]

    def attach(self, around: Surroundings) -> None:
        """Join in with a cohort."""
        self._found, self._wanted, self._is_outdated = None, None, False
        self._drawn = self._asked = None
        super().attach(around)

    def detach(self) -> None:
        """Leave a cohort: stop all work."""
        self._work.stop()
        self._region.drop()
        super().detach()

    def evaluate(self) -> None:
        """Evaluate the whole cohort in a worker."""
        if self.around is None:
            return
        session = self.around.session
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
        """Show the view that is asked for."""
        view = self._panel.chosen_view()
        if view in OF_REGION:
            self._drawn = None
            self._show_region(view)
            return
        self._forget_region()
        if self._drawn == (view, self._found, self._is_outdated):
            return  # nothing in it depends on the region that is shown
        self._drawn = (view, self._found, self._is_outdated)
        if not self._work.is_busy:
            self._panel.show_progress(None, is_there=self._found is not None)
        if self._found is None:
            if not self._work.is_busy:  # which says how far it is
                self._panel.show_hint(OF_OTHERS if self._is_outdated else HINT)
            elif self._progress is not None:
                self._panel.show_hint(going_on(*self._progress))
            return
        self._show(view, self._found)

    # What was evaluated.

    def _on_progress(self, done: int, total: int) -> None:
        """Show the progress of the work, unless figures are shown meanwhile."""
        self._progress = (done, total)
        self._panel.show_progress((done, total))
        if self._found is None and self._panel.chosen_view() not in OF_REGION:
            self._panel.show_hint(going_on(done, total))

    def _on_finished(self, found: CohortReport) -> None:
        self._found = found
        self._panel.show_progress(None, is_there=True)
        self.refresh()

    def _on_failed(self, error: PanopticError) -> None:
        self._panel.show_progress(None)
        self._refresh()
        show_failure(error)

    def _on_stop(self) -> None:
        self._work.stop()
        self._panel.show_progress(None, is_there=self._found is not None)
        self._refresh()

    def _refresh(self) -> None:
        """Let what was said while the cohort was evaluated give way to what there is."""
        self._drawn = None
        self.refresh()

    def _on_settings(self, _settings: EvaluationSettings) -> None:
        """Forget figures of other settings: none is shown beside those of the present ones."""
        had_some = self._found is not None or self._work.is_busy
        self._work.stop()
        self._found = None
        self._is_outdated = self._is_outdated or had_some
        self._refresh()

    def _on_view(self, _view: View) -> None:
        self.refresh()

    def _show(self, view: View, found: CohortReport) -> None:
        panel = self._panel
        if view is View.PROTOCOLS:
            panel.show_protocols(found.protocols)
        elif view is View.AVERAGES:
            panel.show_averages(found.aggregation)
        elif view is View.STATISTICS:
            from napari_panoptic.report.text import FIGURE_NAMES

            panel.show_statistics(FIGURE_NAMES, found.statistics)
        else:
            note = (
                "Click a point to open its region."
                if view in (View.PATIENTS, View.QUALITY, View.DETECTION)
                else ""
            )
            from napari_panoptic.viewer.panels.ranking.plots import cohort_plot

            panel.show_plot(cohort_plot(view, found), note)

    # What a figure leads to.

    def _on_cell(self, team: str, protocol_name: str) -> None:
        if self._found is None:
            return
        corrected = protocol(protocol_name).corrections
        as_run = protocol(CHALLENGE_PROTOCOL).corrections
        found = differences(self._found.scored.get(team, ()), as_run, corrected)
        said = (
            f"{team}, {protocol_name} against {CHALLENGE_PROTOCOL}: choose a row to go there."
            if found
            else f"{team}: nothing differs between {protocol_name} and {CHALLENGE_PROTOCOL}."
        )
        self._panel.show_differences(said, found)
        self._team_of_differences = team

    def _on_difference(self, found: Difference) -> None:
        if self.around is None:
            return
        session = self.around.session
        session.set_team(self._team_of_differences)
        self._go_to(found.region, self._team_of_differences, found.ids[0] if found.ids else 0)

    def _on_point(self, point: Point) -> None:
        if self.around is None:
            return
        session = self.around.session
        regions = session.cohort.regions
        name = point.region or next((r.name for r in regions if r.patient == point.patient), "")
        if not name:
            return
        if point.team in {team.name for team in session.cohort.teams}:
            session.set_team(point.team)
        self._go_to(name, point.team, 0)

    def _go_to(self, region: str, team: str, id_: int) -> None:
        """Show a region, and in it a predicted object once it is there."""
        if self.around is None:
            return
        self._wanted = (region, team, id_) if id_ else None
        snapshot = self.around.session.snapshot
        if snapshot is None or snapshot.region.name != region:
            self.around.link.panels.navigator.region_chosen.emit(region)
        else:
            self._select_wanted(snapshot)

    def _on_region(self, snapshot: RegionSnapshot) -> None:
        self._select_wanted(snapshot)

    def _select_wanted(self, snapshot: RegionSnapshot) -> None:
        if self.around is None or self._wanted is None:
            return
        region, team, id_ = self._wanted
        evaluation = snapshot.evaluations.get(team)
        if snapshot.region.name != region or evaluation is None:
            return
        self._wanted = None
        row = evaluation.outcomes.prediction.row_of(id_)
        if row is not None:
            chosen = Selection(team, Side.PREDICTION, row, id_)
            self.around.session.select(chosen)
            self.around.link.scene.centre(chosen, only_if_hidden=True)

    # The region that is shown.

    def _show_region(self, view: View) -> None:
        session = None if self.around is None else self.around.session
        if session is None or session.snapshot is None or session.team is None:
            self._forget_region()
            self._panel.show_hint("Open a region first.")
            return
        if session.snapshot.is_slide:
            self._forget_region()
            self._panel.show_hint(slide_texts.CURVE)
            return
        if view is View.ALIGNMENT:
            # As in the files: what is edited changes under a worker's hands.
            loaded = session.loaded
            evaluation = None if loaded is None else loaded.evaluations.get(session.team)
            if evaluation is None:
                self._forget_region()
                self._panel.show_hint("This team has nothing evaluated here.")
                return
            hint = "Numbering the same masks in other ways …"
            self._ask((view, evaluation), hint, partial(_alignment_plot, evaluation))
            return
        name = session.snapshot.region.name
        wanted = (name, session.settings, session.source, view)
        hint = "Evaluating this region under other radii and thresholds …"
        self._ask(wanted, hint, partial(_region_curve, session.cohort, *wanted))

    def _ask(self, wanted: tuple[object, ...], hint: str, compute: Callable[[], Plot]) -> None:
        """Compute a plot of the region, unless it is the one that was asked for last."""
        if wanted != self._asked:
            self._asked = wanted
            self._panel.show_hint(hint)
            self._region.start(compute)

    def _forget_region(self) -> None:
        """Want no plot of a region any more."""
        self._asked = None
        self._region.drop()

    # The report, and single plots.

    def _on_picture(self) -> None:
        plot = self._panel.plot.plot
        if self.around is None or plot is None:
            return
        from napari_panoptic.report.plots import save

        name = self._panel.chosen_view().value.lower().replace(" ", "-").replace(",", "")
        usual = self.around.session.cohort.root / f"{name}.svg"
        chosen, _ = QFileDialog.getSaveFileName(
            self._panel, "Save the plot", str(usual), "SVG (*.svg);;PNG (*.png)"
        )
        if not chosen:
            return
        try:
            show_info(f"The plot is in {save(plot, Path(chosen))}")
        except PanopticError as error:
            show_error(str(error))

    def _on_report(self) -> None:
        if self.around is None or self._found is None:
            return
        usual = self.around.session.cohort.root / "report.html"
        chosen, _ = QFileDialog.getSaveFileName(
            self._panel, "Save the report", str(usual), "HTML (*.html)"
        )
        if chosen:
            self.save_report(Path(chosen))

    def save_report(self, path: Path) -> None:
        """Write the report in a worker, and say when it is there."""
        if self._found is None:
            return
        self._writing.start(
            partial(_write, self._found, path),
            lambda _: show_info(f"The report is in {path}"),
        )


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


def _alignment_plot(evaluation: Evaluation) -> Plot:
    from napari_panoptic.viewer.panels.ranking.plots import alignment_plot

    return alignment_plot(evaluation)


def _region_curve(
    cohort: Cohort,
    region_name: str,
    settings: EvaluationSettings,
    source: Source | None,
    view: View,
) -> Plot:
    from napari_panoptic.viewer.panels.ranking.plots import region_curve

    return region_curve(cohort, region_name, settings, source, view)
