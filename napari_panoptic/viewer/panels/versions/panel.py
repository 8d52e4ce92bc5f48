"""Panel of two versions: changed outcomes, differences with intervals, and objects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.display import styles
from napari_panoptic.display.styles import count_text
from napari_panoptic.questions.engines.cohort_failures import FailureName
from napari_panoptic.questions.engines.version_diff import CHANGE_MEANINGS, Change
from napari_panoptic.questions.engines.versions import VersionComparison
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.viewer.kit.array_table import ArrayTable
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox
from napari_panoptic.viewer.kit.layouts import FlowBar
from napari_panoptic.viewer.kit.shown import PlainLabel, WrappedLabel
from napari_panoptic.viewer.kit.work_controls import WorkControls
from napari_panoptic.viewer.panels.versions.columns import (
    BEFORE,
    VIEW_MEANINGS,
    VersionsList,
    columns_of,
)
from napari_panoptic.viewer.panels.versions.words import (
    Chosen,
    MatrixCell,
    chosen_text,
    failure_names,
    headline,
    left_out,
    listed_rows,
    object_name,
    outcome_order,
    outcome_status,
)
from napari_panoptic.viewer.state.modes import VersionChoice, VersionScope

EMPTY = (
    "Nothing to compare. Open a cohort first. If one is open, this region lacks an annotation or "
    "a prediction of one version: choose another region or the whole cohort."
)
ONE_TEAM = "This cohort has one team only. Add the folder of a second team to compare versions."
PRESS = "Press “Compare” to evaluate both versions in all regions."
_SCOPE_MEANINGS = {
    VersionScope.REGION: "The current region, with your edits.",
    VersionScope.COHORT: "All regions, as on disk; figures are paired by patient.",
}
_SIDE_WORDS = {Side.REFERENCE: "nuclei", Side.PREDICTION: "FPs"}
_STACKED_BELOW_PX = 640
"""Width below which the list stands under the matrix."""


class VersionsPanel(QWidget):
    """Choice of two versions, and their changes as a sentence, a matrix and lists."""

    choice_changed = Signal(VersionChoice)
    object_chosen = Signal(FailureName)
    region_chosen = Signal(str)
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
        choices = [Choice(team, team) for team in teams]
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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.setSpacing(3)
        choices = (self.old, PlainLabel("→"), self.new, self.swap, self.scope)
        layout.addWidget(FlowBar(*choices, self.compare, self.stop, self.work.bar))
        for label in (self.headline, self.note, self.hint):
            layout.addWidget(label)
        self._body.addWidget(self._matrix_area())
        self._body.addWidget(self._list_area())
        self._body.setSizes([660, 580])
        self._body.setChildrenCollapsible(False)
        layout.addWidget(self._body, 1)
        layout.addStretch(0)

    def _matrix_area(self) -> QWidget:
        area, inside = QScrollArea(), QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for table in (self.changes, *self.matrices.values()):
            column.addWidget(table)
            header = table.horizontalHeader()
            if header is not None:  # Qt cuts headings of two lines as if they were one
                header.setTextElideMode(Qt.TextElideMode.ElideNone)
        column.addStretch(1)
        area.setWidget(inside)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setMinimumSize(200, 80)
        return area

    def _list_area(self) -> QWidget:
        area = QWidget()
        column, top = QVBoxLayout(area), QHBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        top.addWidget(self.view)
        top.addWidget(self._listed, 1)
        top.addWidget(self.gallery)
        column.addLayout(top)
        column.addWidget(self.table, 1)
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
