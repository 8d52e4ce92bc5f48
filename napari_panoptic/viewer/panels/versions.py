"""Compare two teams as an old and a new version, in one region or over the cohort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QFrame, QPushButton, QScrollArea, QSizePolicy, QSplitter, QWidget

from napari_panoptic.display import slide_texts, styles
from napari_panoptic.display.names import distinct_names
from napari_panoptic.display.regions.here import Here, present
from napari_panoptic.display.slide_texts import on_slide
from napari_panoptic.display.styles import count_text, ratio_text
from napari_panoptic.display.title import why_nothing
from napari_panoptic.explain.failures import FailureSet
from napari_panoptic.questions.answer import Answer, AnswerRecord, AnswerTable
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
from napari_panoptic.tables.columns import TableSpec, words
from napari_panoptic.values.cohort import Region, Rgb
from napari_panoptic.values.vocabulary import Side, Status
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.kit.figures import Cell, FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox, name_choices
from napari_panoptic.viewer.kit.layouts import FlowBar, Grow, Row, fill, lay_out
from napari_panoptic.viewer.kit.shown import PlainLabel
from napari_panoptic.viewer.panels.part import Connections, Surroundings
from napari_panoptic.viewer.panels.question.asking import Found
from napari_panoptic.viewer.panels.question.columns import table_columns
from napari_panoptic.viewer.panels.question.presenter import QuestionPresenter
from napari_panoptic.viewer.panels.question.view import QuestionView
from napari_panoptic.viewer.panels.region_panel import SeenPresenter
from napari_panoptic.viewer.state.preferences import VersionChoice, VersionScope

NO_PREDICTION = (
    "One version has no prediction here. Choose another region or compare over the whole cohort."
)
ONE_TEAM = "This cohort has one team only. Add the folder of a second team to compare versions."
_SCOPE_MEANINGS = {
    VersionScope.REGION: "The current region, with your edits.",
    VersionScope.COHORT: "All regions, as on disk; figures are paired by patient.",
}
_SIDE_WORDS = {Side.REFERENCE: "nuclei", Side.PREDICTION: "FPs"}
_STACKED_BELOW_PX = 640
"""Width below which the list stands under the matrix."""
_LEAST_BODY_PX = 90
COMPARING = "Comparing both versions …"
BEFORE = "before"
"""Key of the columns about the old version."""
OBJECTS = "Objects"
LISTS = (OBJECTS, METRICS, CLASSES, PATIENTS, REGIONS, PARTS)
"""Titles of what is listed beside the matrix."""
_OBJECTS = TableSpec(
    "", "object", [words("change")], "Objects of the selected cell, broken ones first."
)
_FAILS = (str(Status.MISCLASSIFIED), str(Status.FN), str(Status.FP))
_ORDER = (str(Status.TP), *_FAILS, str(Status.IGNORED), NO_OBJECT)


# --- what is listed ---------------------------------------------------------------------------


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


def comparison_shown(
    comparison: VersionComparison, objects: Callable[[int], FailureSet] | None = None
) -> Answer:
    """Return a comparison as the panel shows it: its headline, what it leaves out, and lists.

    Parameters
    ----------
    comparison
        The comparison.
    objects
        Returns the object of a row of the list of objects.
    """
    diff = comparison.diff
    return Answer(
        headline=headline(comparison),
        notes=(),
        tables=(
            AnswerTable(_OBJECTS, diff.rows, objects, heading=OBJECTS, is_of_objects=True),
            *(comparison_table(comparison, title) for title in LISTS[1:]),
        ),
        plots=(),
        record=AnswerRecord({}, comparison.findings, (diff.old, diff.new)),
    )


def columns_of(table: AnswerTable, comparison: VersionComparison) -> list[Column]:
    """Return the columns of a list of a comparison."""
    if table.title == OBJECTS:
        return _object_columns(comparison)
    return [replace(column, is_whole=column.is_text) for column in table_columns(table)]


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


class VersionsView(QuestionView):
    """Choice of two versions, and their changes as a sentence, a matrix and lists."""

    choice_changed = Signal(VersionChoice)
    region_chosen = Signal(str)

    def __init__(self) -> None:
        self.comparison: VersionComparison | None
        super().__init__(Compare)
        self.chosen: Chosen = None
        self._choice = VersionChoice()
        self.making.start.setToolTip("Show crops of the listed failures in this order.")
        self._connect()

    def arrange(self, above: Sequence[Row]) -> None:
        """Lay out the choice of versions, the matrix, and the list beside it."""
        self.old, self.new = ChoiceBox(meaning="Old version"), ChoiceBox(meaning="New version")
        self.swap = QPushButton("⇄")
        self.swap.setToolTip("Swap old and new")
        self.swap.setFixedWidth(30)
        self.scope = ChoiceBox(
            [Choice(scope, scope.value, _SCOPE_MEANINGS[scope]) for scope in VersionScope],
            "Where the versions are compared",
        )
        for box in (self.old, self.new, self.scope):
            box.setMinimumContentsLength(10)
        self.changes = FigureTable(stretch_first=False)
        self.matrices = {side: FigureTable(stretch_first=False) for side in Side}
        self._listed_text = PlainLabel()
        self.work.bar.setFixedWidth(120)
        font = self.headline.font()
        font.setBold(True)
        self.headline.setFont(font)
        self._body = QSplitter(Qt.Orientation.Horizontal)
        self._body.addWidget(self._matrix_area())
        self._body.addWidget(self._list_area())
        self._body.setSizes([660, 580])
        self._body.setChildrenCollapsible(False)
        # No higher than the dock: its parts scroll.
        self._body.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self._body.setMinimumHeight(_LEAST_BODY_PX)
        choices = (self.old, PlainLabel("→"), self.new, self.swap, self.scope)
        asking = (self.work.start, self.all, self.work.stop, self.work.bar)
        making = (self.making.start, self.making.stop, self.making.bar, self.save)
        fill(
            self._rows,
            *above,
            FlowBar(*choices, *asking, *making),
            self.headline,
            self.note,
            self.summary,
            Grow(self._body),
            self.tools,
            self.plots,
        )

    @property
    def values(self) -> dict[str, Any]:
        """The two versions."""
        return {"old": self.old.choice or "", "new": self.new.choice or ""}

    def listed(self) -> list[int]:
        """Return the rows of the diff that are listed, in the order of the table."""
        table = self.shown_table
        return self.table.rows() if table is not None and table.title == OBJECTS else []

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
        self._choice = choice

    def show_comparison(self, comparison: VersionComparison) -> None:
        """Show a comparison; the objects of all its cells are listed."""
        self.comparison, self.chosen = comparison, None
        self._fill_matrices(comparison)
        self._body.show()
        self.show_answer(comparison_shown(comparison, self._object_in_column))
        self.show_note(left_out(comparison))

    def show_nothing(self, hint: str) -> None:
        """Show a sentence and no comparison."""
        self.comparison = None
        self._body.hide()
        super().show_nothing(hint)

    def choose(self, chosen: Chosen) -> None:
        """List the objects of a change or a cell; the same again lists all."""
        self.chosen = None if chosen == self.chosen else chosen
        self.list_table(OBJECTS)

    def columns_of(self, table: AnswerTable) -> list[Column]:
        """Return the columns of a list."""
        return [] if self.comparison is None else columns_of(table, self.comparison)

    def passing(self, table: AnswerTable) -> NDArray[np.bool_] | None:
        """Return which objects are listed: those of the chosen change or cell."""
        if self.comparison is None or table.title != OBJECTS:
            return None
        return listed_rows(self.comparison.diff, self.chosen)

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

    def _on_table(self) -> None:
        """Show what is listed."""
        table = self.shown_table
        is_of_objects = table is not None and table.title == OBJECTS
        for figures in (self.changes, *self.matrices.values()):
            figures.show_chosen(self.chosen if is_of_objects else None)
        n = len(self.listed())
        self._listed_text.setText(f"{chosen_text(self.chosen)}: {count_text(n)}" * is_of_objects)
        without = (Change.STILL_RIGHT, Change.IGNORED_ONCE)
        self.making.start.setEnabled(n > 0 and self.chosen not in without)

    # User actions.

    def _connect(self) -> None:
        self.old.chosen.connect(lambda name: self._on_team(name, is_old=True))
        self.new.chosen.connect(lambda name: self._on_team(name, is_old=False))
        self.scope.chosen.connect(lambda _scope: self._emit_choice())
        self.swap.clicked.connect(lambda _=False: self._on_swap())
        for table in (self.changes, *self.matrices.values()):
            table.chosen.connect(self.choose)
        self.table_chosen.connect(self._on_table)

    def _on_team(self, name: str, *, is_old: bool) -> None:
        """Compare another team; choosing the same team twice swaps the versions."""
        other = self.new if is_old else self.old
        if name == other.choice:
            other.show_choice(self._choice.old if is_old else self._choice.new)
        self._emit_choice()

    def _on_swap(self) -> None:
        old, new = self.old.choice, self.new.choice
        self.old.show_choice(new)
        self.new.show_choice(old)
        self._emit_choice()

    def _emit_choice(self) -> None:
        scope = VersionScope(self.scope.choice)
        self._choice = VersionChoice(**self.values, scope=scope)
        self.choice_changed.emit(self._choice)

    def chosen_rows(self) -> Sequence[int]:
        """Return the objects that are listed."""
        return self.listed()

    def _want(self, rows: Sequence[int]) -> None:
        """Ask for objects that fail in either version."""
        if self.comparison is not None:
            diff, changes = self.comparison.diff, chosen_text(self.chosen)
            title = f"{diff.old} → {diff.new}: {changes} · dashed: the other version"
            names = frozenset(failure_names(diff, rows))
            self.wanted.emit([FailureSet(title, names, (diff.old, diff.new))])

    def _object_in_column(self, row: int) -> FailureSet:
        """Return the object of a row, in the version of the column that was clicked."""
        comparison = self.comparison
        if comparison is None:
            raise LookupError("no comparison is shown")
        before = self.table.key(self.table.currentIndex().column()) == BEFORE
        name = object_name(comparison.diff, row, before=before)
        return FailureSet("", frozenset({name}))

    def _on_row(self, row: int, column: int) -> None:
        """Go to the object of a row, or to its region."""
        super()._on_row(row, column)
        table = self.shown_table
        if table is not None and table.title == REGIONS:
            self.region_chosen.emit(str(table.frame["region"].iloc[row]))

    def resizeEvent(self, event: QResizeEvent | None) -> None:  # noqa: N802
        """Put the list under the matrix if there is no space beside it."""
        super().resizeEvent(event)
        is_stacked = self.width() < _STACKED_BELOW_PX
        wanted = Qt.Orientation.Vertical if is_stacked else Qt.Orientation.Horizontal
        if self._body.orientation() != wanted:
            self._body.setOrientation(wanted)

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
        lay_out(
            area,
            (self.which, Grow(self._listed_text)),
            Grow(self.sentences),
            Grow(self.table),
            self.row_line,
            self.members,
        )
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


class VersionsPresenter(QuestionPresenter, SeenPresenter[QuestionView]):
    """Compare two teams as an old and a new version: in the region while seen, or when asked."""

    kind = Compare
    title, key = Compare.title, Compare.key
    panel_type = VersionsView
    panel: VersionsView

    def __init__(self, around: Surroundings, panel: VersionsView) -> None:
        super().__init__(around, panel)
        self._state = self.link.state
        self._in_region: Latest[VersionComparison] = Latest(
            self._show_region, failed=lambda error: self._show_hint(str(error))
        )
        cohort = self.session.cohort
        teams = [team.name for team in (*cohort.competing_teams, *cohort.teams)]
        self._teams = list(dict.fromkeys(teams))
        panel.offer_teams(self._teams)
        panel.show_choice(self.choice)

    @property
    def comparison(self) -> VersionComparison | None:
        """The comparison on screen."""
        return self.panel.comparison

    @property
    def is_busy(self) -> bool:
        """Whether versions are being compared."""
        return self._in_region.is_busy or super().is_busy

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
            *super().connections(),
            (session.region_changed, self.refresh),
            (session.teams_came, self.refresh),
            (session.copies_changed, self.refresh),
            (link.edits_rested, self.refresh),
            (self._state.events.versions, self._on_choice),
            (self._sight.changed, self._on_sight),
            (panel.choice_changed, partial(setattr, self._state, "versions")),
            (panel.region_chosen, link.go_to),
        ]

    def close(self) -> None:
        """Stop all work."""
        self._in_region.close()
        super().close()

    def why_not(self) -> str:
        """Return why nothing can be compared; empty if something can."""
        return ONE_TEAM if len(self._teams) < 2 else super().why_not()

    def refresh(self, *changed: object) -> None:
        """Compare the region or show the cohort, now or when the panel comes into sight."""
        SeenPresenter.refresh(self, *changed)

    def compute_now(self) -> None:
        """Compare both versions in the region, or show what is known over the cohort."""
        is_of_cohort = self.choice.scope is VersionScope.COHORT
        self._offer_asking()
        if is_of_cohort or self.why_not():
            self._in_region.drop()
            QuestionPresenter.refresh(self)
        else:
            self._compare_region()

    def show_found(self, found: Found) -> None:
        """Show what was found over the cohort."""
        if isinstance(found.gathered, VersionComparison):
            self.panel.show_comparison(found.gathered)
        else:
            super().show_found(found)

    def notes(self, found: Found) -> Sequence[str]:
        """Return what a comparison leaves out: the command has its method and figures."""
        comparison = found.gathered
        return [left_out(comparison)] if isinstance(comparison, VersionComparison) else []

    def _show_ended(self) -> None:
        super()._show_ended()
        self._offer_asking()

    def _offer_asking(self) -> None:
        """Offer to compare over the cohort, where that is chosen."""
        if not self.is_asking:
            is_of_cohort = self.choice.scope is VersionScope.COHORT
            may_start = is_of_cohort and len(self._teams) > 1
            self.panel.work.show_progress(None, may_start=may_start)

    def _on_team(self, team: object) -> None:
        """Keep the list where it leads to an object of the other version."""

    def _on_choice(self, _choice: object) -> None:
        """Show which versions are compared, and compare them if they are others."""
        self.panel.show_choice(self.choice)
        self._on_input()

    # In the current region.

    def _compare_region(self) -> None:
        choice, snapshot = self.choice, self.session.snapshot
        if snapshot is not None and snapshot.pending and not snapshot.is_slide:
            self._in_region.drop()  # stale: new evaluations are being computed
            self._show_hint(COMPARING)
            return
        teams = (choice.old, choice.new)
        here = present(self.session, teams)
        if snapshot is None or here is None or {*here.teams} != {*teams}:
            self._in_region.drop()
            self._show_hint(on_slide(snapshot, slide_texts.VERSIONS, self._why_nothing()))
            return
        if self.comparison is None or self._shown is not None:
            self._show_hint(COMPARING)
        names = self.session.cohort.scheme.names
        self._in_region.start(partial(_compared_in_region, snapshot.region, here, choice, names))

    def _show_region(self, comparison: VersionComparison) -> None:
        self._shown = None
        self.panel.show_comparison(comparison)
        self.panel.save.hide()  # these are not the files of the command

    def _show_hint(self, hint: str) -> None:
        self._shown = None
        self.panel.show_nothing(hint)

    def _why_nothing(self) -> str:
        snapshot = self.session.snapshot
        has_annotation = snapshot is not None and snapshot.reference is not None
        return NO_PREDICTION if has_annotation else why_nothing(self.session)


def _after(teams: list[str], old: str) -> str:
    """Return the team after another, the first one after the last."""
    return teams[(teams.index(old) + 1) % len(teams)]


def _compared_in_region(
    region: Region, here: Here, choice: VersionChoice, class_names: tuple[str, ...]
) -> VersionComparison:
    """Compare two versions in a region; for workers."""
    evaluations = here.complete().evaluations
    old, new = ((name, evaluations[name]) for name in (choice.old, choice.new))
    return compare_in_region(region, old, new, class_names)
