"""The cohort: patients and their regions, teams, and how well each went."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import add

import numpy as np
from psygnal import Signal
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QProgressBar,
    QPushButton,
    QSplitter,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.nuclei.display.glossary import (
    FIGURE_MEANINGS,
    NO_ANNOTATION,
    NO_ANNOTATION_MEANING,
    STATUS_MEANINGS,
)
from napari_panoptic.nuclei.display.styles import UNDEFINED, count_text, ratio_text
from napari_panoptic.nuclei.metrics import Counts, unit_metrics
from napari_panoptic.nuclei.summary import RegionSummary
from napari_panoptic.nuclei.values.cohort import Cohort
from napari_panoptic.nuclei.values.vocabulary import Status
from napari_panoptic.viewer.kit.shown import PlainLabel, shown
from napari_panoptic.viewer.kit.widgets import is_desk_key

Summaries = Mapping[tuple[str, str], RegionSummary]

_FAILURE_MEANINGS = {
    "FN": STATUS_MEANINGS[Status.FN],
    "FP": STATUS_MEANINGS[Status.FP],
    "mis": STATUS_MEANINGS[Status.MISCLASSIFIED],
}
_PQ_MEANING = f"{FIGURE_MEANINGS['pq']} Of a patient: all regions together."
_REGION_HEADER = {
    "Patient / region": "A region of a patient; click to show it.",
    "PQ": _PQ_MEANING,
    **_FAILURE_MEANINGS,
}
_TEAM_HEADER = {
    "Team": "The team; click to show its predictions.",
    "mean PQ": f"{FIGURE_MEANINGS['pq']} Mean over the patients of the cohort.",
    "here": f"{FIGURE_MEANINGS['pq']} Of the region shown.",
    **_FAILURE_MEANINGS,
}
_MISSING = "missing"
NO_COHORT = (
    "No cohort is open. Press “Open cohort…” and choose a folder with images, annotations and "
    "team predictions, or open File > Open Sample > Panoptic."
)
NO_TEAMS = "This cohort has no predictions: {expected}. Put them there and open it again."
NAME_ROLE = Qt.ItemDataRole.UserRole
"""Under this an item keeps the name of its region or team, however it is shown."""
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class Navigator(QWidget):
    """Patients, regions and teams with their PQ and failures."""

    region_chosen = Signal(str)
    team_chosen = Signal(str)
    next_wanted = Signal()
    previous_wanted = Signal()
    stop_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cohort: Cohort | None = None
        self._team: str | None = None
        self._region: str | None = None
        self._summaries: Summaries = {}
        self._unannotated: set[str] = set()
        self._regions_of: dict[str, list[str]] = {}
        self._known_pqs: dict[tuple[str, str], tuple[list[RegionSummary], float]] = {}
        self._region_items: dict[str, QTreeWidgetItem] = {}
        self._patient_items: dict[str, QTreeWidgetItem] = {}
        self._team_items: dict[str, QTreeWidgetItem] = {}
        self._hint = PlainLabel(NO_COHORT)
        self._hint.setWordWrap(True)
        self._tree = figure_tree(_REGION_HEADER)
        self._teams = figure_tree(_TEAM_HEADER)
        self._teams.setRootIsDecorated(False)
        self._progress = QProgressBar()
        self._stop = QPushButton("stop")
        self._progress_row = QWidget()
        self._tree.currentItemChanged.connect(self._on_region)
        self._teams.currentItemChanged.connect(self._on_team)
        self._lay_out()
        self.show_cohort(None, {})

    def show_cohort(self, cohort: Cohort | None, summaries: Summaries) -> None:
        """List the regions and teams of a cohort; a hint if there is none."""
        self._cohort, self._summaries, self._region, self._team = cohort, summaries, None, None
        self._known_pqs = {}
        self._regions_of = {}
        for region in () if cohort is None else cohort.regions:
            self._regions_of.setdefault(region.patient, []).append(region.name)
        with QSignalBlocker(self._tree), QSignalBlocker(self._teams):
            self._rebuild(cohort)
        if cohort is None:
            self._hint.setText(NO_COHORT)
        else:
            self._hint.setText(NO_TEAMS.format(expected=cohort.predictions_expected))
        self._hint.setVisible(cohort is None or not cohort.teams)
        self._body.setVisible(cohort is not None)
        self.show_progress(0, 0)

    def show_region(self, name: str) -> None:
        """Mark the region that is shown."""
        self._region = name
        item = self._region_items.get(name)
        if item is not None:
            with QSignalBlocker(self._tree):
                self._tree.setCurrentItem(item)
                self._tree.scrollToItem(item)
        self._refresh_teams()

    def show_team(self, name: str | None) -> None:
        """Show the figures of another team."""
        self._team = name
        item = self._team_items.get(name or "")
        if item is not None:
            with QSignalBlocker(self._teams):
                self._teams.setCurrentItem(item)
        self.refresh()

    def show_summary(self, summary: RegionSummary) -> None:
        """Show one line that has just been computed."""
        if summary.team == self._team:
            self._fill_region(summary.region)
            if self._cohort is not None:
                self._fill_patient(self._cohort.region(summary.region).patient)
        self._fill_team(summary.team)

    def refresh(self) -> None:
        """Refresh all lines."""
        for name in self._region_items:
            self._fill_region(name)
        for patient in self._patient_items:
            self._fill_patient(patient)
        self._refresh_teams()

    def show_progress(self, done: int, total: int) -> None:
        """Show how much of the cohort has been evaluated; hidden when all is done."""
        self._progress_row.setVisible(done < total)
        self._progress.setRange(0, max(total, 1))
        self._progress.setValue(done)
        self._progress.setFormat(f"cohort: {done} of {total}")

    def region_text(self, name: str, column: int) -> str:
        """Return what is shown of a region."""
        return self._region_items[name].text(column)

    def region_tooltip(self, name: str, column: int) -> str:
        """Return what is explained of a region."""
        return self._region_items[name].toolTip(column)

    def hint_text(self) -> str:
        """Return the hint; empty if there is nothing to hint at."""
        return "" if self._hint.isHidden() else self._hint.text()

    def choose_region(self, name: str) -> None:
        """Choose a region, as a click on it does."""
        self._tree.setCurrentItem(self._region_items[name])

    def team_text(self, name: str, column: int) -> str:
        """Return what is shown of a team."""
        return self._team_items[name].text(column)

    def _lay_out(self) -> None:
        previous, following = QPushButton("◀ previous"), QPushButton("next ▶")
        previous.setToolTip("Previous region (K)")
        following.setToolTip("Next region (J)")
        previous.clicked.connect(lambda _=False: self.previous_wanted.emit())
        following.clicked.connect(lambda _=False: self.next_wanted.emit())
        self._stop.clicked.connect(lambda _=False: self.stop_wanted.emit())
        self._stop.setToolTip("Stop evaluating the rest of the cohort.")
        buttons = QHBoxLayout()
        buttons.addWidget(previous)
        buttons.addWidget(following)
        row = QHBoxLayout(self._progress_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._progress, 1)
        row.addWidget(self._stop)
        splitter = QSplitter(Qt.Orientation.Vertical)
        splitter.addWidget(self._tree)
        splitter.addWidget(self._teams)
        splitter.setStretchFactor(0, 3)
        splitter.setStretchFactor(1, 1)
        splitter.setChildrenCollapsible(False)
        self._body = QWidget()
        body = QVBoxLayout(self._body)
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(3)
        body.addLayout(buttons)
        body.addWidget(splitter, 1)
        body.addWidget(self._progress_row)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self._hint)
        layout.addWidget(self._body, 1)
        layout.addStretch(0)

    def _rebuild(self, cohort: Cohort | None) -> None:
        self._tree.clear()
        self._teams.clear()
        self._region_items, self._patient_items, self._team_items = {}, {}, {}
        self._unannotated = set()
        if cohort is None:
            return
        self._unannotated = {at.name for at in cohort.regions if at.reference is None}
        places = [(region.patient, region.name) for region in cohort.regions]
        self._patient_items, self._region_items = list_by_patient(self._tree, places)
        for team in cohort.teams:
            item = QTreeWidgetItem([shown(team.name)])
            item.setData(0, NAME_ROLE, team.name)
            if team.is_annotation:
                item.setToolTip(
                    0, "The annotation's own colour-coded version: shows what restoration costs."
                )
            self._teams.addTopLevelItem(item)
            self._team_items[team.name] = item

    def _fill_region(self, name: str) -> None:
        item = self._region_items[name]
        summary = self._summaries.get((name, self._team or ""))
        if summary is None:
            fill_item(item, 1, ("", "", "", ""))
        elif summary.counts is None or summary.metrics is None:
            fill_item(item, 1, (self._lacking(name), UNDEFINED, UNDEFINED, UNDEFINED))
            reason = summary.findings[0].message if summary.findings else "It cannot be evaluated."
            if name in self._unannotated:
                reason = NO_ANNOTATION_MEANING
            for column in range(1, 5):
                item.setToolTip(column, shown(reason))
        else:
            fill_item(item, 1, (ratio_text(summary.metrics.pq), *_failures(summary.counts)))

    def _lacking(self, region: str) -> str:
        """Return in a word what a region without figures lacks."""
        return NO_ANNOTATION if region in self._unannotated else _MISSING

    def _fill_patient(self, patient: str) -> None:
        lines = self._lines(patient, self._team or "")
        counts = _summed(lines)
        texts = ("", "", "", "")
        if counts is not None:
            pq = self._patient_pq(patient, self._team or "", lines)
            texts = (ratio_text(pq), *_failures(counts))
        fill_item(self._patient_items[patient], 1, texts)

    def _refresh_teams(self) -> None:
        for name in self._team_items:
            self._fill_team(name)

    def _fill_team(self, name: str) -> None:
        item = self._team_items.get(name)
        if item is None:
            return
        here = self._summaries.get((self._region or "", name))
        if here is None:
            texts: tuple[str, ...] = ("", "", "", "")
        elif here.counts is None or here.metrics is None:
            texts = (self._lacking(self._region or ""), UNDEFINED, UNDEFINED, UNDEFINED)
        else:
            texts = (ratio_text(here.metrics.pq), *_failures(here.counts))
        fill_item(item, 1, (self._team_pq(name), *texts))

    def _team_pq(self, team: str) -> str:
        """Return the mean PQ over patients, once all of them are known."""
        if any((name, team) not in self._summaries for name in self._region_items):
            return ""
        figures = [
            self._patient_pq(patient, team, self._lines(patient, team))
            for patient in self._patient_items
        ]
        defined = [figure for figure in figures if not math.isnan(figure)]
        return ratio_text(float(np.mean(defined))) if defined else ""

    def _patient_pq(self, patient: str, team: str, lines: list[RegionSummary]) -> float:
        """Return the PQ of a patient's regions together; computed once for the same lines."""
        known = self._known_pqs.get((patient, team))
        if known is None or list(map(id, known[0])) != list(map(id, lines)):
            counts = _summed(lines)
            known = (lines, math.nan if counts is None else unit_metrics(counts).pq)
            self._known_pqs[patient, team] = known
        return known[1]

    def _lines(self, patient: str, team: str) -> list[RegionSummary]:
        """List the lines of a patient's regions; none before all of them are known."""
        lines = [self._summaries.get((name, team)) for name in self._regions_of[patient]]
        known = [line for line in lines if line is not None]
        return known if len(known) == len(lines) else []

    def _on_region(self, item: QTreeWidgetItem | None, _previous: QTreeWidgetItem | None) -> None:
        name = None if item is None else item.data(0, NAME_ROLE)
        if name:
            self.region_chosen.emit(name)

    def _on_team(self, item: QTreeWidgetItem | None, _previous: QTreeWidgetItem | None) -> None:
        if item is not None:
            self.team_chosen.emit(item.data(0, NAME_ROLE))


class _Tree(QTreeWidget):
    """A tree that hands the keys of the desk on."""

    def keyPressEvent(self, event: QKeyEvent | None) -> None:  # noqa: N802
        """Leave letters to the desk instead of searching for them."""
        if event is not None and is_desk_key(event):
            event.ignore()
        else:
            super().keyPressEvent(event)


def figure_tree(header: Mapping[str, str]) -> QTreeWidget:
    """Make a tree with figures; the header's titles and what they mean."""
    tree = _Tree()
    tree.setColumnCount(len(header))
    tree.setHeaderLabels(list(header))
    tree.setIndentation(10)
    tree.setUniformRowHeights(True)
    tree.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    tree.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)
    labels = tree.headerItem()
    horizontal = tree.header()
    if labels is None or horizontal is None:
        raise RuntimeError("a tree widget always has a header")
    for column, meaning in enumerate(header.values()):
        labels.setToolTip(column, meaning)
        if column:
            labels.setTextAlignment(column, Qt.AlignmentFlag.AlignRight)
    horizontal.setMinimumSectionSize(24)
    horizontal.setStretchLastSection(False)
    horizontal.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    horizontal.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
    return tree


@contextmanager
def measured_once(tree: QTreeWidget) -> Iterator[None]:
    """Fill many lines of a tree of figures; its columns become as wide as all of them, at the end.

    Qt measures all lines after each text otherwise: half a million for 500 regions.
    """
    header = tree.header()
    if header is None:
        raise RuntimeError("a tree widget always has a header")
    columns = range(1, tree.columnCount())
    for column in columns:
        header.setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
    try:
        yield
    finally:
        for column in columns:
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)


def _summed(lines: Sequence[RegionSummary]) -> Counts | None:
    """Sum the counts of lines, as far as they could be evaluated."""
    known = [line.counts for line in lines if line.counts is not None]
    return reduce(add, known) if known else None


def fill_item(item: QTreeWidgetItem, first: int, texts: tuple[str, ...]) -> None:
    """Set the texts that differ: Qt measures the columns after each."""
    for column, text in enumerate(texts, start=first):
        if item.text(column) != text:
            item.setText(column, text)
            item.setTextAlignment(column, _RIGHT)


def _failures(counts: Counts) -> tuple[str, str, str]:
    """Count FNs, FPs and misclassified objects."""
    confusion = counts.confusion
    matched = confusion[1:, 1:]
    misclassified = int(matched.sum() - np.trace(matched))
    missed, invented = int(confusion[1:, 0].sum()), int(confusion[0, 1:].sum())
    return count_text(missed), count_text(invented), count_text(misclassified)


def list_by_patient(
    tree: QTreeWidget, places: Iterable[tuple[str, str]]
) -> tuple[dict[str, QTreeWidgetItem], dict[str, QTreeWidgetItem]]:
    """Fill a tree, which is empty, with regions below their patients.

    Parameters
    ----------
    tree
        The tree; its first column gets the names.
    places
        Patient and name of each region, in order.

    Returns
    -------
    patients, regions
        Name -> item.
    """
    patients: dict[str, QTreeWidgetItem] = {}
    regions: dict[str, QTreeWidgetItem] = {}
    for patient, name in places:
        if patient not in patients:
            patients[patient] = QTreeWidgetItem([shown(patient)])
            patients[patient].setFlags(Qt.ItemFlag.ItemIsEnabled)
            tree.addTopLevelItem(patients[patient])
            patients[patient].setExpanded(True)
        item = QTreeWidgetItem([shown(short_name(name, patient))])
        item.setData(0, NAME_ROLE, name)
        item.setToolTip(0, shown(name))
        patients[patient].addChild(item)
        regions[name] = item
    return patients, regions


def short_name(name: str, patient: str) -> str:
    """Leave the patient out of a region's name, since it stands above it."""
    if name.startswith(patient) and name != patient:
        return "…" + name[len(patient) :]
    return name
