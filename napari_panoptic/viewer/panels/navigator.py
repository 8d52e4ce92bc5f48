"""The cohort: its regions, or patients, and its teams, and how well each went."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from qtpy.QtWidgets import QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.cohort_lines import UNKNOWN, CohortLine, CohortLines, Summaries
from napari_panoptic.display.glossary import FIGURE_MEANINGS, STATUS_MEANINGS
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.vocabulary import Status
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.kit.widgets import share_text
from napari_panoptic.viewer.panels.part import Connections, Presenter, Surroundings
from napari_panoptic.viewer.panels.places import (
    PlaceNavigator,
    counts_column,
    figure_column,
    name_column,
)

NO_COHORT = (
    "No cohort is open. Press “Open cohort…” in the Settings panel and choose a folder with "
    "images, annotations and team predictions, or open File > Open Sample > Panoptic."
)
NO_TEAMS = "This cohort has no predictions: {expected}. Put them there and open it again."
AHEAD_MS = 30
"""How long after loading the neighbours of a region are read."""
_PQ = FIGURE_MEANINGS["pq"]
_ANNOTATION = "The annotation's own colour-coded version: shows what restoration costs."


class Navigator(PlaceNavigator):
    """Tables of the regions, or patients, and of the teams, with PQ and failures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("region", parent=parent)
        self._cohort: Cohort | None = None
        self._lines: CohortLines | None = None
        self._team = ""
        self._reviewed: Mapping[str, int] = {}
        self.show_stop("Stop", "Stop evaluating the rest of the cohort.")
        self.show_cohort(None, {})

    def show_cohort(self, cohort: Cohort | None, summaries: Summaries) -> None:
        """List the regions and teams of a cohort; a hint if there is none."""
        self._cohort, self._team = cohort, ""
        self._lines = None if cohort is None else CohortLines(cohort, summaries)
        self._reviewed = {}
        regions = () if cohort is None else cohort.regions
        self.list_places([(region.name, region.patient) for region in regions])
        self._fill_teams()
        if cohort is None:
            self.show_hint(NO_COHORT)
        else:
            expected = NO_TEAMS.format(expected=cohort.predictions_expected)
            self.show_hint("" if cohort.teams else expected)
        self.body.setVisible(cohort is not None)
        self.show_progress(0, 0)

    def show_region(self, name: str) -> None:
        """Mark the region that is shown."""
        self.mark_place(name)
        self._fill_teams()

    def show_team(self, name: str | None) -> None:
        """Show the figures of another team."""
        self._team = name or ""
        self.refresh()
        self.teams.mark(name)

    def show_summary(self, summary: RegionSummary) -> None:
        """Show figures that have just been computed."""
        if summary.team == self._team:
            self.fill_places()
        self._fill_teams()

    def show_reviewed(self, judged: Mapping[str, int]) -> None:
        """Show which share of the failures of the current team have a verdict.

        Parameters
        ----------
        judged
            Region -> its number of failures with a verdict; empty to hide the column.
        """
        self._reviewed = judged
        self.refresh()

    def refresh(self) -> None:
        """Show all figures again."""
        if self._cohort is not None:
            self.fill_places()
            self._fill_teams()

    def place_figures(self, names: Sequence[str]) -> list[Column]:
        """Make the columns with the figures of regions."""
        found = [self._line(name, self._team) for name in names]
        columns = _figures("PQ", _PQ, found)
        if self._reviewed:
            columns.append(_reviewed_column([self._reviewed.get(n, 0) for n in names], found))
        return columns

    def patient_figures(self, patients: Sequence[str]) -> list[Column]:
        """Make the columns with the figures of patients."""
        lines = self._lines
        found = [UNKNOWN if lines is None else lines.patient(p, self._team) for p in patients]
        return _figures("PQ", f"{_PQ} Of all regions of the patient together.", found)

    def _line(self, region: str, team: str) -> CohortLine:
        return UNKNOWN if self._lines is None else self._lines.region(region, team)

    def _fill_teams(self) -> None:
        teams = () if self._cohort is None else self._cohort.teams
        names = [team.name for team in teams]
        explained = [_ANNOTATION if team.is_annotation else team.name for team in teams]
        mean = [math.nan if self._lines is None else self._lines.mean_pq(name) for name in names]
        here = [self._line(self.marked or "", name) for name in names]
        meaning = "The team; choose it to show its predictions."
        columns = [
            name_column("Team", meaning, names, full=explained),
            figure_column("Mean PQ", f"{_PQ} Mean over the patients of the cohort.", mean),
            *_figures("Here", f"{_PQ} Of the region shown.", here),
        ]
        self.teams.show_rows(names, columns)


class NavigatorPresenter(Presenter[Navigator]):
    """Goes to the chosen regions and teams, and reads the next ones ahead."""

    title = "Regions"

    def __init__(self, around: Surroundings, panel: Navigator) -> None:
        super().__init__(around, panel)
        self._ahead = single_shot(AHEAD_MS, self._look_ahead)

    def connections(self) -> Connections:
        """Listen to session, work and panel."""
        session, link, panel = self.session, self.link, self.panel
        return [
            (session.region_changed, self._show_region),
            (session.teams_came, self._show_region),
            (session.team_changed, panel.show_team),
            (session.summary_changed, panel.show_summary),
            (link.summary.progressed, panel.show_progress),
            (link.loader.failed, self._on_failed),
            (link.loader.busy_changed, self._on_busy),
            (panel.place_chosen, self._on_place),
            (panel.teams.chosen, session.set_team),
            (panel.following.pushed, self.go_on),
            (panel.previous.pushed, self.go_back),
            (panel.stop.pushed, link.summary.stop),
            (panel.places.filter_left, self.return_keys),
        ]

    def refresh(self) -> None:
        """List the regions and teams of the cohort."""
        self.panel.show_cohort(self.session.cohort, self.session.summaries)
        self.panel.show_team(self.session.team)

    def close(self) -> None:
        """Read nothing ahead any more."""
        stop_timers(self._ahead)

    def go_on(self) -> None:
        """Go to the next region, in the order of the table."""
        self.link.request(region=self._neighbour(1))

    def go_back(self) -> None:
        """Go to the previous region, in the order of the table."""
        self.link.request(region=self._neighbour(-1))

    def filter(self) -> None:
        """Put the cursor into the filter."""
        self.link.reveal(self.title)
        self.panel.focus_filter()

    def _on_place(self, name: str) -> None:
        self.link.request(region=name)

    def _neighbour(self, step: int) -> str | None:
        return self.panel.neighbour(self.session.wanted_region, step)

    def _show_region(self, snapshot: RegionSnapshot) -> None:
        self.panel.show_region(snapshot.region.name)

    def _on_failed(self, _error: PanopticError) -> None:
        # The region asked for stays asked for: the next one is the one after it.
        if self.session.snapshot is not None:
            self.panel.show_region(self.session.snapshot.region.name)

    def _on_busy(self, busy: bool) -> None:
        if not busy:
            self._ahead.start()

    def _look_ahead(self) -> None:
        """Read the regions that J and K lead to."""
        steps = (self._neighbour(1), self._neighbour(-1))
        self.link.loader.look_ahead([name for name in steps if name is not None])


def _figures(title: str, meaning: str, found: Sequence[CohortLine]) -> list[Column]:
    lacking = [(line.lacking, line.reason) for line in found]
    counts = (
        ("FN", Status.FN, [line.fn for line in found]),
        ("FP", Status.FP, [line.fp for line in found]),
        ("Mis.", Status.MISCLASSIFIED, [line.misclassified for line in found]),
    )
    return [
        figure_column(title, meaning, [line.pq for line in found], lacking, in_words=True),
        *(
            counts_column(word, STATUS_MEANINGS[status], values, lacking)
            for word, status, values in counts
        ),
    ]


def _reviewed_column(judged: Sequence[int], found: Sequence[CohortLine]) -> Column:
    """Make the column of reviewed shares; nothing is left to review without a failure."""
    shares = [
        1.0 if line.failures == 0 else min(n / line.failures, 1.0)
        for n, line in zip(judged, found, strict=True)
    ]
    meaning = "Share of the failures with a verdict of yours."
    return figure_column("Reviewed", meaning, shares, text=share_text)
