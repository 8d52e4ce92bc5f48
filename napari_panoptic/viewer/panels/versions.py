"""Compare two teams as an old and a new version, in one region or over the cohort."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QFrame, QPushButton, QScrollArea, QSplitter, QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display import slide_texts, styles
from napari_panoptic.display.names import distinct_names
from napari_panoptic.display.slide_texts import on_slide
from napari_panoptic.display.styles import count_text, ratio_text
from napari_panoptic.display.title import why_nothing
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.questions.compare import (
    CLASSES,
    METRICS,
    PARTS,
    PATIENTS,
    REGIONS,
    Compare,
    comparison_table,
    failure_names,
    headline,
    left_out,
    object_name,
    part_text,
)
from napari_panoptic.questions.engines.version_diff import (
    CHANGE_MEANINGS,
    NO_OBJECT,
    Change,
    VersionDiff,
    outcome_names,
)
from napari_panoptic.questions.engines.versions import VersionComparison, compare_in_region
from napari_panoptic.values.cohort import Cohort, Rgb
from napari_panoptic.values.settings import protocol_name
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.viewer.jobs.jobs import Job, Latest, Stream
from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox, name_choices
from napari_panoptic.viewer.kit.layouts import PANEL_MARGINS, FlowBar, Grow, lay_out
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel
from napari_panoptic.viewer.kit.widgets import WorkControls, offer_link
from napari_panoptic.viewer.panels.part import Connections, Surroundings
from napari_panoptic.viewer.panels.question.columns import table_columns
from napari_panoptic.viewer.panels.region_panel import Material, SeenPresenter, material
from napari_panoptic.viewer.state.preferences import VersionChoice, VersionScope

EMPTY = "Nothing to compare. Open a cohort."
NO_PREDICTION = (
    "One version has no prediction here. Choose another region or compare over the whole cohort."
)
ONE_TEAM = "This cohort has one team only. Add the folder of a second team to compare versions."
PRESS = Compare.hint
_SCOPE_MEANINGS = {
    VersionScope.REGION: "The current region, with your edits.",
    VersionScope.COHORT: "All regions, as on disk; figures are paired by patient.",
}
_SIDE_WORDS = {Side.REFERENCE: "nuclei", Side.PREDICTION: "FPs"}
_STACKED_BELOW_PX = 640
"""Width below which the list stands under the matrix."""
OUTDATED = "Outdated: the settings or the files have changed. Press “Compare” again."
UNSAVED = "Compared as on disk: unsaved edits are not included. Save them and compare again."
STOPPED = "Stopped. Press “Compare” to start again."
COMPARING = "Comparing both versions …"
BEFORE = "before"
"""Key of the columns about the old version."""
_FAILS = (str(Status.MISCLASSIFIED), str(Status.FN), str(Status.FP))
_ORDER = (str(Status.TP), *_FAILS, str(Status.IGNORED), NO_OBJECT)


# --- what is listed ---------------------------------------------------------------------------


class VersionsList(StrEnum):
    """What is listed beside the matrix."""

    OBJECTS = "Objects"
    METRICS = METRICS
    CLASSES = CLASSES
    PATIENTS = PATIENTS
    REGIONS = REGIONS
    PARTS = PARTS


VIEW_MEANINGS: dict[VersionsList, str] = {
    VersionsList.OBJECTS: "Objects of the selected cell, broken ones first.",
    VersionsList.METRICS: "Difference of every metric, paired by patient, with Holm-corrected p.",
    VersionsList.CLASSES: "PQ of every class in both versions, with its objects by change.",
    VersionsList.PATIENTS: "Objects of every patient by change, with the patient's part of ΔPQ.",
    VersionsList.REGIONS: "Objects of every region by change, with the region's part of ΔPQ.",
    VersionsList.PARTS: "ΔPQ split by quality, change, cause and class; each split adds up to ΔPQ.",
}


@dataclass(frozen=True)
class MatrixCell:
    """A cell of the matrix of outcomes before and after."""

    side: Side
    before: str
    after: str


Chosen = Change | MatrixCell | None
"""Which objects are listed: those of a change, of a cell, or all."""


def outcome_order(names: Sequence[str]) -> list[str]:
    """Return outcomes of a matrix, right ones first, then failures by cause."""
    return sorted(names, key=lambda name: (_ORDER.index(name.split(": ")[0]), name))


def outcome_status(name: str) -> Status | None:
    """Return the status of an outcome; None if the version lacks the object."""
    status = name.split(": ")[0]
    return None if status == NO_OBJECT else Status(status)


def listed_rows(diff: VersionDiff, chosen: Chosen) -> NDArray[np.bool_]:
    """Return bool (n,): whether each row of a diff is listed."""
    rows = diff.rows
    if chosen is None:
        found: NDArray[np.bool_] = np.ones(len(rows), np.bool_)
        return found
    if isinstance(chosen, Change):
        return (rows["change"] == str(chosen)).to_numpy(np.bool_)
    is_in = rows["side"] == str(chosen.side)
    is_in &= outcome_names(rows, "before") == chosen.before
    is_in &= outcome_names(rows, "after") == chosen.after
    return is_in.to_numpy(np.bool_)


def chosen_text(chosen: Chosen) -> str:
    """Return the listed objects in a few words."""
    if chosen is None:
        return "all objects"
    if isinstance(chosen, Change):
        return str(chosen).replace("-", " ")
    return f"{chosen.before} → {chosen.after}"


def columns_of(view: VersionsList, comparison: VersionComparison) -> list[Column]:
    """Return the rows that a view lists of a comparison."""
    if view is VersionsList.OBJECTS:
        return _object_columns(comparison)
    columns = table_columns(comparison_table(comparison, str(view)))
    return [replace(column, is_whole=column.is_text) for column in columns]


def _object_columns(comparison: VersionComparison) -> list[Column]:
    diff, rows = comparison.diff, comparison.diff.rows
    meanings = {str(change): meaning for change, meaning in CHANGE_MEANINGS.items()}
    changes = rows["change"].to_numpy(str)
    columns = [
        _words("Change", "Change by the new version.", changes, width=86),
        _region_column(rows["region"].tolist()),
        _words("Side", "Annotated nucleus or FP.", rows["side"].to_numpy(str), width=74),
        Column(
            "Id", "For a gone FP, that of the old version.", rows["id"].to_numpy(np.int64), width=46
        ),
        _words("Class", "Class of the object.", rows["class"].to_numpy(str), width=86),
    ]
    columns[0] = replace(columns[0], tooltip=lambda row: meanings[changes[row]])
    for when, name in ((BEFORE, diff.old), ("after", diff.new)):
        outcome = outcome_names(rows, when).to_numpy(str)
        partner = rows[f"partner_class_{when}"].to_numpy(str)
        columns.append(
            Column(
                when.capitalize(),
                f"Outcome in {name}; click to see it there.",
                outcome,
                text=lambda text: "–" if text == NO_OBJECT else str(text),
                tooltip=partial(_partner_tooltip, name, partner),
                colour=_colour_of(rows[f"status_{when}"].to_numpy(object)),
                width=118,
                is_text=True,
                key=when,
            )
        )
    for when, name in ((BEFORE, diff.old), ("after", diff.new)):
        iou = rows[f"iou_{when}"].to_numpy(np.float64)
        title, meaning = f"IoU {when}", f"IoU with the partner in {name}, or the highest IoU."
        columns.append(Column(title, meaning, iou, text=ratio_text, width=78, key=when))
    parts = comparison.change.of_row
    meaning = "The object's part of ΔPQ."
    columns.append(Column("ΔPQ", meaning, parts, text=part_text, width=78))
    return columns


def _region_column(names: list[str]) -> Column:
    short = np.array(distinct_names(names), np.str_)
    column = _words("Region", "Click to go to the object.", short, width=140)
    return replace(column, tooltip=names.__getitem__)


def _words(title: str, meaning: str, values: NDArray[np.str_], *, width: int) -> Column:
    return Column(title, meaning, values, width=width, is_text=True)


def _partner_tooltip(name: str, partner: NDArray[np.str_], row: int) -> str:
    return f"{name}: matched as {partner[row]}" if partner[row] else f"In {name}"


def _colour_of(status: NDArray[np.object_]) -> Callable[[int], Rgb | None]:
    return lambda row: styles.STATUS_COLOURS[Status(status[row])] if status[row] else None


# --- the panel --------------------------------------------------------------------------------


class VersionsPanel(QWidget):
    """Choice of two versions, and their changes as a sentence, a matrix and lists."""

    choice_changed = Signal(VersionChoice)
    object_chosen = Signal(FailureName)
    region_chosen = Signal(str)
    link_wanted = Signal(FailureName)
    gallery_wanted = Signal(str, object)  # title, list of FailureName

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.old, self.new = ChoiceBox(meaning="Old version"), ChoiceBox(meaning="New version")
        self.swap = QPushButton("⇄")
        self.scope = ChoiceBox(
            [Choice(scope, scope.value, _SCOPE_MEANINGS[scope]) for scope in VersionScope],
            "Where the versions are compared",
        )
        self.work = WorkControls(
            "Compare", "Evaluate both versions in all regions, in the background."
        )
        self.compare, self.stop = self.work.start, self.work.stop
        self.view = ChoiceBox(
            [Choice(view, view.value, VIEW_MEANINGS[view]) for view in VersionsList], "List to show"
        )
        self.gallery = QPushButton("Gallery")
        self.changes = FigureTable(stretch_first=False)
        self.matrices = {side: FigureTable(stretch_first=False) for side in Side}
        self.table = ArrayTable()
        self.headline, self.note, self.hint = (WrappedLabel() for _ in range(3))
        self._listed = PlainLabel()
        self._body = QSplitter(Qt.Orientation.Horizontal)
        self._comparison: VersionComparison | None = None
        self._chosen: Chosen = None
        self._shown = VersionChoice()
        self._lay_out()
        self._connect()
        self.compare.hide()
        self.show_comparison(None)

    # Texts.

    @property
    def choice(self) -> VersionChoice:
        """The selected versions, and where they are compared."""
        return VersionChoice(
            self.old.choice or "", self.new.choice or "", VersionScope(self.scope.choice)
        )

    @property
    def chosen(self) -> Chosen:
        """Which objects are listed."""
        return self._chosen

    def listed(self) -> list[int]:
        """Return the rows of the diff that are listed, in the order of the table."""
        return self.table.rows() if self.view.choice is VersionsList.OBJECTS else []

    # View.

    def offer_teams(self, teams: Sequence[str]) -> None:
        """List teams as versions."""
        choices = name_choices(teams)
        self.old.offer(choices)
        self.new.offer(choices)

    def show_choice(self, choice: VersionChoice) -> None:
        """Show which versions are compared; emits nothing."""
        self.old.show_choice(choice.old)
        self.new.show_choice(choice.new)
        self.scope.show_choice(choice.scope)
        self._shown = choice

    def show_comparison(
        self, comparison: VersionComparison | None, *, hint: str = EMPTY, note: str = ""
    ) -> None:
        """Show a comparison, or a hint if there is none.

        Parameters
        ----------
        comparison
            The comparison; the same one again keeps the list and the selection.
        hint
            Shown in its place.
        note
            Shown with the comparison, for example if it is outdated.
        """
        is_new, self._comparison = comparison is not self._comparison, comparison
        for widget in (self.headline, self._body):
            widget.setVisible(comparison is not None)
        self.hint.setText(hint)
        self.hint.setVisible(comparison is None)
        if comparison is not None:
            note = " ".join(text for text in (note, left_out(comparison)) if text)
        self.note.setText(note)
        self.note.setVisible(comparison is not None and bool(note))
        if comparison is not None and is_new:
            self.headline.setText(headline(comparison))
            self._fit_headline()
            self._chosen = None
            self._fill_matrices(comparison)
            self._fill_list()

    def choose(self, chosen: Chosen) -> None:
        """List the objects of a change or a cell; the same again lists all."""
        self._chosen = None if chosen == self._chosen else chosen
        self.view.show_choice(VersionsList.OBJECTS)
        self._fill_list()

    def _fill_matrices(self, comparison: VersionComparison) -> None:
        diff = comparison.diff
        header, by_change = [], []
        for change in diff.changes:
            meaning, n = CHANGE_MEANINGS[change], diff.counts[change]
            header.append(Cell(str(change).replace("-", " "), meaning))
            target = change if n else None
            by_change.append(Cell(count_text(n), meaning, bold=True, target=target))
        self.changes.fill(header, [by_change])
        for side, table in self.matrices.items():
            cells = diff.matrix(side)
            table.setVisible(not cells.empty)
            before = outcome_order([str(name) for name in cells.index])
            after = outcome_order([str(name) for name in cells.columns])
            counts = cells.loc[before, after].to_numpy(np.int64)
            is_changed = np.array(before)[:, np.newaxis] != np.array(after)
            largest = int((counts * is_changed).max(initial=1))
            corner = Cell(
                f"{_SIDE_WORDS[side]}: before ↓\nafter →",
                f"Rows: outcomes in {diff.old}. Columns: outcomes in {diff.new}.",
            )
            rows = [
                [
                    Cell(b, f"In {diff.old}.", colour=_colour(b)),
                    *(_cell(side, b, a, int(n), largest) for a, n in zip(after, ns, strict=True)),
                ]
                for b, ns in zip(before, counts, strict=True)
            ]
            headings = [Cell(_heading(a), f"{a} in {diff.new}.") for a in after]
            table.fill([corner, *headings], rows)

    def _fill_list(self) -> None:
        comparison, view = self._comparison, VersionsList(self.view.choice)
        is_of_objects = view is VersionsList.OBJECTS
        for table in (self.changes, *self.matrices.values()):
            table.show_chosen(self._chosen if is_of_objects else None)
        self.gallery.setVisible(is_of_objects)
        if comparison is None:
            self.table.show_rows([])
            return
        rows = listed_rows(comparison.diff, self._chosen) if is_of_objects else None
        self.table.show_rows(columns_of(view, comparison), rows)
        n = len(self.table.rows())
        self._listed.setText(f"{chosen_text(self._chosen)}: {count_text(n)}" * is_of_objects)
        without = (Change.STILL_RIGHT, Change.IGNORED_ONCE)
        has_failures = is_of_objects and self._chosen not in without and n > 0
        self.gallery.setEnabled(has_failures)

    # User actions.

    def _connect(self) -> None:
        self.old.chosen.connect(lambda name: self._on_team(name, is_old=True))
        self.new.chosen.connect(lambda name: self._on_team(name, is_old=False))
        self.scope.chosen.connect(lambda _scope: self._emit_choice())
        self.swap.clicked.connect(lambda _=False: self._on_swap())
        self.view.chosen.connect(lambda _view: self._fill_list())
        self.gallery.clicked.connect(lambda _=False: self._on_gallery())
        for table in (self.changes, *self.matrices.values()):
            table.chosen.connect(self.choose)
        self.table.row_chosen.connect(self._on_row)
        offer_link(self.table, self._on_link)
        self.table.centre_wanted.connect(
            lambda row: self._on_row(row, self.table.currentIndex().column())
        )

    def _on_team(self, name: str, *, is_old: bool) -> None:
        """Compare another team; choosing the same team twice swaps the versions."""
        other = self.new if is_old else self.old
        if name == other.choice:
            other.show_choice(self._shown.old if is_old else self._shown.new)
        self._emit_choice()

    def _on_swap(self) -> None:
        old, new = self.old.choice, self.new.choice
        self.old.show_choice(new)
        self.new.show_choice(old)
        self._emit_choice()

    def _emit_choice(self) -> None:
        self._shown = self.choice
        self.choice_changed.emit(self._shown)

    def _on_row(self, row: int, column: int) -> None:
        comparison, view = self._comparison, VersionsList(self.view.choice)
        if comparison is None:
            return
        if view is VersionsList.OBJECTS:
            before = self.table.key(column) == BEFORE
            self.object_chosen.emit(object_name(comparison.diff, row, before=before))
        elif view is VersionsList.REGIONS:
            regions = comparison.diff.by("patient", "region")["region"]
            self.region_chosen.emit(str(regions.iloc[row]))

    def _on_link(self) -> None:
        row, comparison = self.table.selected(), self._comparison
        is_of_objects = self.view.choice is VersionsList.OBJECTS
        if row is not None and comparison is not None and is_of_objects:
            before = self.table.key(self.table.currentIndex().column()) == BEFORE
            self.link_wanted.emit(object_name(comparison.diff, row, before=before))

    def _on_gallery(self) -> None:
        comparison = self._comparison
        if comparison is not None:
            diff = comparison.diff
            changes = chosen_text(self._chosen)
            title = f"{diff.old} → {diff.new}: {changes} · dashed: the other version"
            self.gallery_wanted.emit(title, failure_names(diff, self.listed()))

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Put the list under the matrix if there is no space beside it."""
        super().resizeEvent(event)
        self._fit_headline()
        is_stacked = self.width() < _STACKED_BELOW_PX
        wanted = Qt.Orientation.Vertical if is_stacked else Qt.Orientation.Horizontal
        if self._body.orientation() != wanted:
            self._body.setOrientation(wanted)

    def _fit_headline(self) -> None:
        """Use as many lines as this width needs; Qt's layout would use one."""
        layout = self.layout()
        margins = self.contentsMargins() if layout is None else layout.contentsMargins()
        self.headline.setMinimumHeight(0)  # Qt returns no height below the last one set
        width = self.width() - margins.left() - margins.right()
        self.headline.setMinimumHeight(max(self.headline.heightForWidth(width), 0))

    def _lay_out(self) -> None:
        self.swap.setToolTip("Swap old and new")
        self.swap.setFixedWidth(30)
        self.gallery.setToolTip("Show crops of the listed failures in this order.")
        self.work.bar.setFixedWidth(120)
        font = self.headline.font()
        font.setBold(True)
        self.headline.setFont(font)
        for box in (self.old, self.new, self.scope):
            box.setMinimumContentsLength(10)
        self._body.addWidget(self._matrix_area())
        self._body.addWidget(self._list_area())
        self._body.setSizes([660, 580])
        self._body.setChildrenCollapsible(False)
        choices = (self.old, PlainLabel("→"), self.new, self.swap, self.scope)
        column = lay_out(
            self,
            FlowBar(*choices, self.compare, self.stop, self.work.bar),
            self.headline,
            self.note,
            self.hint,
            Grow(self._body),
            margins=PANEL_MARGINS,
        )
        column.addStretch(0)  # keeps the hint at the top while there is nothing else

    def _matrix_area(self) -> QWidget:
        area, inside = QScrollArea(), QWidget()
        tables = (self.changes, *self.matrices.values())
        lay_out(inside, *tables)
        for table in tables:
            header = table.horizontalHeader()
            if header is not None:  # Qt cuts headings of two lines as if they were one
                header.setTextElideMode(Qt.TextElideMode.ElideNone)
        area.setWidget(inside)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setMinimumSize(200, 80)
        return area

    def _list_area(self) -> QWidget:
        area = QWidget()
        lay_out(area, (self.view, Grow(self._listed), self.gallery), Grow(self.table))
        self.table.setMinimumHeight(60)
        return area


def _cell(side: Side, before: str, after: str, n: int, largest: int) -> Cell:
    """Return a cell of the matrix; changed outcomes are shaded by their number."""
    if n == 0:
        return Cell("")
    return Cell(
        count_text(n),
        f"{before} → {after}: {count_text(n)}.",
        shade=n / largest if before != after else 0.0,
        target=MatrixCell(side, before, after),
    )


def _heading(outcome: str) -> str:
    """Return an outcome as a narrow heading, in two lines if it can be split."""
    cause = outcome.split(": ")[-1].replace(str(Status.MISCLASSIFIED), "mis-classified")
    return cause.replace("-", "-\n", 1)


def _colour(outcome: str) -> tuple[int, int, int] | None:
    status = outcome_status(outcome)
    return None if status is None else styles.STATUS_COLOURS[status]


# --- the presenter ----------------------------------------------------------------------------


class VersionsPresenter(SeenPresenter[VersionsPanel]):
    """Compare two teams as an old and a new version."""

    title = "Versions"
    key = "Alt-n"  # V is the mnemonic of napari's menu View
    panel_type = VersionsPanel

    def __init__(self, around: Surroundings, panel: VersionsPanel) -> None:
        super().__init__(around, panel)
        self._state = self.link.state
        self._in_region: Latest[VersionComparison] = Latest(
            self._take, failed=self._on_region_failed
        )
        self._over_cohort: Stream[tuple[Compare, VersionComparison]] = Stream(
            self._take_cohort,
            ended=self._on_ended,
            failed=self._on_failed,
            progressed=panel.work.show_progress,
        )
        self.comparison: VersionComparison | None = None
        """The comparison on screen."""
        self._asked: Compare | None = None
        self._found: tuple[Compare, VersionComparison] | None = None
        self._hint = PRESS
        cohort = self.session.cohort
        teams = [team.name for team in (*cohort.competing_teams, *cohort.teams)]
        self._teams = list(dict.fromkeys(teams))
        panel.offer_teams(self._teams)

    @property
    def is_busy(self) -> bool:
        """Whether versions are being compared."""
        return self._in_region.is_busy or self._over_cohort.is_busy

    @property
    def choice(self) -> VersionChoice:
        """The compared teams and where; teams of this cohort if it has two."""
        kept, teams = self._state.versions, self._teams
        if len(teams) < 2:
            return replace(kept, old="", new="")
        old = kept.old if kept.old in teams else next(t for t in teams if t != kept.new)
        is_usable = kept.new in teams and kept.new != old
        return replace(kept, old=old, new=kept.new if is_usable else _after(teams, old))

    def connections(self) -> Connections:
        """Listen to session, state and panel."""
        session, link, panel = self.session, self.link, self.panel
        return [
            (session.region_changed, self.refresh),
            (session.teams_came, self.refresh),
            (session.settings_changed, self._on_change),
            (session.source_changed, self._on_change),
            (session.copies_changed, self.refresh),
            (link.edits_rested, self.refresh),
            (self._state.events.versions, self._on_change),
            (self._sight.changed, self._on_sight),
            (panel.choice_changed, partial(setattr, self._state, "versions")),
            (panel.work.start.pushed, self.compare),
            (panel.work.stop.pushed, self._on_stop),
            (panel.object_chosen, self._on_object),
            (panel.region_chosen, link.go_to),
            (panel.gallery_wanted, self._on_gallery),
            (panel.link_wanted, self._on_link),
        ]

    def close(self) -> None:
        """Stop all work."""
        self._in_region.close()
        self._over_cohort.close()

    def compute_now(self) -> None:
        """Compare both versions in the region, or show the known result over the cohort."""
        choice, panel = self.choice, self.panel
        panel.show_choice(choice)
        is_of_cohort = choice.scope is VersionScope.COHORT and len(self._teams) > 1
        if not self._over_cohort.is_busy:
            panel.work.show_count(None, may_start=is_of_cohort)
        why_not = self._why_not()
        if why_not:
            self._in_region.drop()
            self._show(None, hint=why_not)
        elif is_of_cohort:
            self._in_region.drop()
            self._show_cohort(choice)
        else:
            self._compare_region(choice)

    def compare(self) -> None:
        """Compare both versions over the cohort, in a worker."""
        choice = self.choice
        if self._why_not():
            return
        self._asked, self._hint = self._question(choice), COMPARING
        self._over_cohort.start(partial(_compared, self.session.cohort, self._asked))
        self.panel.work.show_progress(0.0)
        self.refresh()

    def _question(self, choice: VersionChoice) -> Compare:
        """Return what would be asked now over the cohort."""
        session = self.session
        return Compare(
            old=choice.old,
            new=choice.new,
            settings=session.settings,
            protocol=protocol_name(session.settings),
            source=session.source,
            held_up_to_px=session.held_up_to_px,
        )

    def _why_not(self) -> str:
        if len(self._teams) < 2:
            return ONE_TEAM
        return self._question(self.choice).why_not(self.session.cohort)

    def _show(
        self, comparison: VersionComparison | None, *, hint: str = EMPTY, note: str = ""
    ) -> None:
        self.comparison = comparison
        self.panel.show_comparison(comparison, hint=hint, note=note)

    # In the current region.

    def _compare_region(self, choice: VersionChoice) -> None:
        snapshot = self.session.snapshot
        if snapshot is not None and snapshot.pending and not snapshot.is_slide:
            self._in_region.drop()  # stale: new evaluations are being computed
            self._show(None, hint=COMPARING)
            return
        teams = (choice.old, choice.new)
        known = material(self.session, teams=teams)
        if known is None or set(known.teams) != set(teams):
            self._in_region.drop()
            self._show(None, hint=on_slide(snapshot, slide_texts.VERSIONS, self._why_nothing()))
            return
        if self.comparison is None:
            self._show(None, hint=COMPARING)
        names = self.session.cohort.scheme.names
        self._in_region.start(partial(_compared_in_region, known, choice, names))

    def _why_nothing(self) -> str:
        snapshot = self.session.snapshot
        has_annotation = snapshot is not None and snapshot.reference is not None
        return NO_PREDICTION if has_annotation else why_nothing(self.session)

    def _take(self, comparison: VersionComparison) -> None:
        self._show(comparison)

    def _on_region_failed(self, error: PanopticError) -> None:
        self._show(None, hint=str(error))

    # Over the cohort.

    def _show_cohort(self, choice: VersionChoice) -> None:
        found = self._found
        if found is None or (found[0].old, found[0].new) != (choice.old, choice.new):
            self._show(None, hint=self._hint)
            return
        asked, comparison = found
        note = UNSAVED if self.session.has_any_edits else ""
        if asked != self._question(choice):
            note = OUTDATED
        self._show(comparison, note=note)

    def _take_cohort(self, found: tuple[Compare, VersionComparison]) -> None:
        self._found = found

    def _on_ended(self) -> None:
        if self._hint == COMPARING:
            self._hint = PRESS
        self.refresh()

    def _on_failed(self, error: PanopticError) -> None:
        self._hint = str(error)
        self._show(None, hint=self._hint)

    def _on_stop(self) -> None:
        self._over_cohort.stop()
        self._hint = STOPPED
        self.refresh()

    # Changes elsewhere.

    def _on_change(self, _changed: object = None) -> None:
        """Stop a comparison that would be another one now; a finished one is marked as outdated."""
        if self._asked != self._question(self.choice):
            self._over_cohort.stop()
        self._hint = COMPARING if self._over_cohort.is_busy else PRESS
        self.refresh()

    def _on_object(self, name: FailureName) -> None:
        self.link.go_to(name.region, name.side, name.id, team=name.team)

    def _on_link(self, name: FailureName) -> None:
        self.link.links.copy([name])

    def _on_gallery(self, title: str, names: list[FailureName]) -> None:
        self.link.show_failures(title, names, (self.choice.old, self.choice.new))


def _after(teams: list[str], old: str) -> str:
    """Return the team after another, the first one after the last."""
    return teams[(teams.index(old) + 1) % len(teams)]


def _compared_in_region(
    known: Material, choice: VersionChoice, class_names: tuple[str, ...]
) -> VersionComparison:
    """Compare two versions in a region; for workers."""
    evaluations = known.complete()
    old, new = ((name, evaluations[name]) for name in (choice.old, choice.new))
    return compare_in_region(known.snapshot.region, old, new, class_names)


def _compared(
    cohort: Cohort, question: Compare, job: Job[tuple[Compare, VersionComparison]]
) -> Iterator[tuple[Compare, VersionComparison]]:
    """Compare two versions over a cohort, one region at a time; for workers."""
    yield question, question.gather(cohort, job.progress)
