"""The cohort: its regions, or patients, and its teams, and how well each went.

The lists of frames and of cases on the other desks have the same two tables, and the way on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QCheckBox, QProgressBar, QSplitter, QVBoxLayout, QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.cohort_lines import UNKNOWN, CohortLine, CohortLines, Summaries
from napari_panoptic.display.glossary import FIGURE_MEANINGS, STATUS_MEANINGS
from napari_panoptic.display.names import distinct_names, short_name
from napari_panoptic.display.styles import UNDEFINED, count_text, ratio_text
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.live.summary import RegionSummary
from napari_panoptic.tables.figures import percent
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.vocabulary import Status
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.kit.layouts import Grow, lay_out, row_of
from napari_panoptic.viewer.kit.name_table import NameTable
from napari_panoptic.viewer.kit.shown import WrappedLabel
from napari_panoptic.viewer.kit.widgets import PushButton
from napari_panoptic.viewer.panels.part import Connections, Presenter, Surroundings

_PLACE_ROWS, _TEAM_ROWS = 3, 4
"""How many rows of places remain in sight while that many teams get the room they need."""


class PlaceNavigator(QWidget):
    """A table of places with a filter, a table of teams, and buttons to go through the places.

    Subclasses implement `place_figures` and `patient_figures`.

    Parameters
    ----------
    noun
        The word for a place: region, frame or case.
    with_patients
        Whether places belong to patients.
    """

    place_chosen = Signal(str)

    def __init__(
        self, noun: str, *, with_patients: bool = True, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._place, self._with_patients = noun, with_patients
        self._patients: dict[str, str] = {}
        self._shown: str | None = None
        or_patient = " or patient" if with_patients else ""
        self.places = NameTable(f"{noun.capitalize()}s", f"Filter by {noun}{or_patient}")
        self.teams = NameTable("Teams")
        self.by_patient = QCheckBox("By patient")
        self.by_patient.setToolTip(f"One row per patient: the counts of all {noun}s together.")
        self.by_patient.toggled.connect(lambda _: self.fill_places())
        self.by_patient.setVisible(with_patients)
        self.places.filter_row.addWidget(self.by_patient)
        self.hint = WrappedLabel()
        self._splitter = _Tables(self.places, self.teams)
        self._progress, self.stop = QProgressBar(), PushButton("Stop")
        self.previous = PushButton("◀ Previous", f"Previous {noun}, in the order of the table (K)")
        self.following = PushButton("Next ▶", f"Next {noun}, in the order of the table (J)")
        self._progress_row, self.body = QWidget(), QWidget()
        self.above = QVBoxLayout()
        self.places.chosen.connect(self._on_place)
        self.places.clicked.connect(self._on_clicked)
        self._lay_out()

    def place_figures(self, names: Sequence[str]) -> list[Column]:
        """Make the columns with the figures of some places, the most important first."""
        raise NotImplementedError

    def patient_figures(self, patients: Sequence[str]) -> list[Column]:
        """Make the columns with the figures of some patients."""
        raise NotImplementedError

    def list_places(self, places: Sequence[tuple[str, str]]) -> None:
        """List other places: name and patient of each; nothing is filtered or marked."""
        self._patients, self._shown = dict(places), None
        self.places.filter.clear()
        self.places.mark(None)
        self.teams.mark(None)
        self.fill_places()

    def fill_places(self) -> None:
        """Show the figures of the places again."""
        names, patients = list(self._patients), list(self._patients.values())
        if self.by_patient.isChecked():
            patients = list(dict.fromkeys(patients))
            columns = [*self._patient_columns(patients), *self.patient_figures(patients)]
            self.places.show_rows(patients, columns)
        else:
            columns = [*self._place_columns(names, patients), *self.place_figures(names)]
            self.places.show_rows(names, columns, patients)
        if self.places.selected() is None:
            self._mark()

    @property
    def marked(self) -> str | None:
        """The shown place."""
        return self._shown

    def mark_place(self, name: str | None) -> None:
        """Mark the shown place."""
        self._shown = name
        self._mark()

    def neighbour(self, name: str | None, step: int) -> str | None:
        """Return the place after (1) or before (-1) one in the order of the table, round."""
        order = self.places.listed()
        if self.by_patient.isChecked():
            order = [place for patient in order for place in self._of_patient(patient)]
        if not order:
            return None
        place = order.index(name) + step if name in order else min(step, 0)
        return order[place % len(order)]

    def focus_filter(self) -> None:
        """Put the keyboard focus into the filter."""
        self.places.focus_filter()

    def show_progress(self, done: int, total: int, word: str = "cohort") -> None:
        """Show for how much of the cohort the figures are known; hidden for all of it."""
        self._progress_row.setVisible(done < total)
        self._progress.setRange(0, max(total, 1))
        self._progress.setValue(done)
        self._progress.setFormat(f"{word}: {done} of {total}")

    def progress_text(self) -> str:
        """Return for how much of the cohort the figures are known; empty for all of it."""
        return "" if self._progress_row.isHidden() else self._progress.format()

    def show_stop(self, text: str, tooltip: str) -> None:
        """Set the action of the button beside the progress."""
        self.stop.setText(text)
        self.stop.setToolTip(tooltip)

    def show_hint(self, text: str) -> None:
        """Show a text above the tables; none if empty."""
        self.hint.show_text(text)

    def _mark(self) -> None:
        """Mark the place, or its patient."""
        by_patient = self.by_patient.isChecked()
        self.places.mark(self._patients.get(self._shown or "") if by_patient else self._shown)

    def _of_patient(self, patient: str) -> list[str]:
        return [name for name, own in self._patients.items() if own == patient]

    def _on_place(self, name: str) -> None:
        """Choose a place; of a patient the one with the lowest value."""
        self.place_chosen.emit(self._lowest_of(name) if self.by_patient.isChecked() else name)

    def _on_clicked(self, name: str) -> None:
        """Choose the lowest place of the patient of whom another one is shown."""
        if self.by_patient.isChecked() and self._patients.get(self._shown or "") == name:
            lowest = self._lowest_of(name)
            if lowest != self._shown:
                self.place_chosen.emit(lowest)

    def _lowest_of(self, patient: str) -> str:
        names = self._of_patient(patient)
        figures = self.place_figures(names)[0].values
        return names[0 if np.isnan(figures).all() else int(np.nanargmin(figures))]

    def _place_columns(self, names: Sequence[str], patients: Sequence[str]) -> list[Column]:
        short = [short_name(*each) for each in zip(names, patients, strict=True)]
        meaning = f"Choose a {self._place} to show it."
        column = name_column(self._place.capitalize(), meaning, short, full=names)
        if not self._with_patients:
            return [column]
        return [patient_column("The patient that it is of.", patients), column]

    def _patient_columns(self, patients: Sequence[str]) -> list[Column]:
        meaning = f"Choose a patient to show the {self._place} with the lowest value."
        counted = Counter(self._patients.values())
        return [
            patient_column(meaning, patients),
            counts_column(
                f"{self._place.capitalize()}s",
                f"The number of {self._place}s.",
                [counted[patient] for patient in patients],
            ),
        ]

    def _lay_out(self) -> None:
        self.hint.hide()
        self._progress_row.hide()
        self._progress_row.setLayout(row_of(Grow(self._progress), self.stop))
        steps = (self.previous, self.following)
        lay_out(self.body, steps, Grow(self._splitter), self._progress_row)
        column = lay_out(self, self.above, self.hint, Grow(self.body), margins=(4, 4, 4, 4))
        column.addStretch(0)  # below a hint without tables


class _Tables(QSplitter):
    """The places above the teams; the teams get the height they need, or that the user sets."""

    def __init__(self, places: NameTable, teams: NameTable) -> None:
        super().__init__(Qt.Orientation.Vertical)
        self._places, self._teams = places, teams
        self._is_users = False
        for number, table in enumerate((places, teams)):
            self.addWidget(table)
            self.setStretchFactor(number, (2, 1)[number])
        self.setChildrenCollapsible(False)
        self.splitterMoved.connect(self._on_moved)

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Set the height of the teams: a third, and more if they need it."""
        super().resizeEvent(event)
        if self._is_users:
            return
        total = sum(self.sizes())
        left = total - self._places.height_for(_PLACE_ROWS)
        teams = max(total // 3, min(self._teams.height_for(_TEAM_ROWS), left))
        self.setSizes([total - teams, teams])

    def _on_moved(self, _place: int, _number: int) -> None:
        self._is_users = True


def name_column(
    title: str,
    meaning: str,
    names: Sequence[str],
    *,
    full: Sequence[str] | None = None,
) -> Column:
    """Make a column of names that shares the room, with the full names as tooltips."""
    explained = names if full is None else full
    return Column(
        title,
        meaning,
        np.array(names, dtype=object),
        tooltip=lambda row: explained[row],
        is_text=True,
        stretch=True,
    )


def patient_column(meaning: str, patients: Sequence[str]) -> Column:
    """Make a column of patients, as short as they stay distinct."""
    return name_column("Patient", meaning, distinct_names(patients), full=patients)


def figure_column(
    title: str,
    meaning: str,
    values: Sequence[float],
    lacking: Sequence[tuple[str, str]] = (),
    *,
    text: Callable[[Any], str] = ratio_text,
    in_words: bool = False,
) -> Column:
    """Make a column of figures, some of which are not known, or cannot be.

    Parameters
    ----------
    title, meaning, values, text
        As for any column; NaN is not known.
    lacking
        Word and sentence why a row may have no figure; empty while it is not known.
        None at all where every row is like that.
    in_words
        Whether the word stands in place of the figure; a dash if not.
    """
    instead = {
        row: word if in_words else UNDEFINED
        for row, (word, _) in enumerate(lacking)
        if word and math.isnan(values[row])
    }
    return Column(
        title,
        meaning,
        np.array(values, np.float64),
        text=lambda value: "" if math.isnan(value) else text(value),
        tooltip=lambda row: lacking[row][1] if lacking else None,
        instead=instead,
    )


def counts_column(
    title: str, meaning: str, values: Sequence[float], lacking: Sequence[tuple[str, str]] = ()
) -> Column:
    """Make a column of counts, some of which are not known, or cannot be."""
    return figure_column(title, meaning, values, lacking, text=lambda n: count_text(int(n)))


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
        self._mended: Mapping[str, int] = {}
        self.show_stop("Stop", "Stop evaluating the rest of the cohort.")
        self.show_cohort(None, {})

    def show_cohort(self, cohort: Cohort | None, summaries: Summaries) -> None:
        """List the regions and teams of a cohort; a hint if there is none."""
        self._cohort, self._team = cohort, ""
        self._lines = None if cohort is None else CohortLines(cohort, summaries)
        self._reviewed, self._mended = {}, {}
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
        """Mark the shown region."""
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

    def show_reviewed(self, judged: Mapping[str, int], mended: Mapping[str, int]) -> None:
        """Show which share of the failures of the current team have a verdict or were mended.

        Parameters
        ----------
        judged, mended
            Region -> its number of failures with a verdict, and of those that there are no
            longer; empty to hide the column.
        """
        self._reviewed, self._mended = judged, mended
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
        if self._reviewed or self._mended:
            judged = [self._reviewed.get(n, 0) for n in names]
            mended = [self._mended.get(n, 0) for n in names]
            columns.append(_reviewed_column(judged, mended, found))
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
            (panel.places.filter.left, self.return_keys),
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


def _reviewed_column(
    judged: Sequence[int], mended: Sequence[int], found: Sequence[CohortLine]
) -> Column:
    """Make the column of reviewed shares; nothing is left to review without a failure."""
    shares = [
        1.0 if line.failures == 0 else min((n + gone) / (line.failures + gone), 1.0)
        for n, gone, line in zip(judged, mended, found, strict=True)
    ]
    meaning = "Share of the failures with a verdict of yours, or mended."
    return figure_column("Reviewed", meaning, shares, text=percent)
