"""The inputs of a question, from its fields, and the tables and plots of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QSize, Qt

from napari_panoptic.display.styles import count_text
from napari_panoptic.explain.failures import FailureSet
from napari_panoptic.questions.answer import Answer, AnswerTable
from napari_panoptic.questions.question import AnyQuestion, options_of
from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.figures import FigureTable
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox, ChoiceButtons, TextInput
from napari_panoptic.viewer.kit.layouts import FlowBar, Grow, Row, ScrollPanel, fill
from napari_panoptic.viewer.kit.name_table import SentenceList
from napari_panoptic.viewer.kit.shown import WrappedLabel, show_info
from napari_panoptic.viewer.kit.widgets import PushButton, WorkControls, offer_link
from napari_panoptic.viewer.panels.question.columns import table_columns
from napari_panoptic.viewer.panels.question.plots import PlotPicker

NO_OBJECTS = "The rows of this table are not about objects, to which a link could lead."
MOST_SENTENCES = 200
"""The most rows of a table that are listed as sentences."""
_BESIDE_TEXT_PX = 4
_MOST_MEMBERS, _BESIDE_ROWS_PX = 5, 16
"""The rows of members that have room, and the room for a scroll bar."""


class _Input(ChoiceBox):
    """A menu in a line that makes nothing wider than it asks for."""

    def sizeHint(self) -> QSize:  # noqa: N802
        """Leave room beside the longest entry."""
        return super().sizeHint() + QSize(_BESIDE_TEXT_PX, 0)


class QuestionView(ScrollPanel):
    """What is asked, a button, a sentence, and below it the tables and plots of the answer.

    Parameters
    ----------
    kind
        The question.
    above
        Rows above it; see `lay_out`.
    plots
        Shows its plots in place of the usual menu.
    """

    changed = Signal()  # another question would be asked now
    wanted = Signal(list)  # of FailureSet: the objects of the chosen rows
    object_wanted = Signal(object)  # FailureSet: the object of a row
    centre_wanted = Signal(object)  # the same, in the middle of the view
    link_wanted = Signal(list)  # of FailureSet: the objects of the selected rows
    table_chosen = Signal()
    answer_changed = Signal()  # another answer is shown, or none

    def __init__(
        self, kind: type[AnyQuestion], *above: Row, plots: PlotPicker | None = None
    ) -> None:
        super().__init__()
        self.kind = kind
        options = options_of(kind).items()
        self.inputs = {
            name: _Input(meaning=option.help) for name, option in options if option.menu is not None
        }
        #: What is typed instead of chosen.
        self.typed = {
            name: TextInput(option.placeholder, option.help, option.read)
            for name, option in options
            if option.placeholder
        }
        self.work = WorkControls(kind.verb, kind.in_short())
        self.all = PushButton(
            "Evaluate all", "Ask all questions of this workspace in one pass over the files."
        )
        self.all.hide()
        self.making = WorkControls(
            "Show in gallery", "Show the objects of the chosen rows, or of all rows if none is."
        )
        self.save = PushButton("Save…", "Save the files that the command writes.")
        self.headline, self.note = WrappedLabel(), WrappedLabel()
        self.summary = FigureTable()
        self.which = self.chooser()
        self.table, self.sentences = ArrayTable(), SentenceList(kind.title)
        self.row_line = WrappedLabel()  # more about the row that was chosen
        self.members = ArrayTable()  # the objects that it is made of
        self.tools = FlowBar(self.making.start, self.save)
        self.plots = PlotPicker() if plots is None else plots
        self._listed = ""  # title of the table that the user chose last
        self._parts: AnswerTable | None = None
        self._offer()
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.arrange(above)
        self._rows.addStretch(0)
        for signal in [box.chosen for box in self.inputs.values()] + [
            field.chosen for field in self.typed.values()
        ]:
            signal.connect(self._on_input)
        self.which.chosen.connect(self._on_which)
        self.making.start.pushed.connect(lambda: self._want(self.chosen_rows()))
        self.sentences.opened.connect(self._open)
        self.sentences.rested.connect(self._on_rest)
        self.table.row_wanted.connect(self._on_row)
        self.table.centre_wanted.connect(self._on_centre)
        self.members.row_wanted.connect(self._on_member)
        offer_link(self.table, self._want_link)
        offer_link(self.sentences, self._want_link)
        self.show_nothing(kind.hint)

    def arrange(self, above: Sequence[Row]) -> None:
        """Lay out the widgets; a panel with others of its own makes them here."""
        fill(
            self._rows,
            *above,
            *self.typed.values(),
            FlowBar(
                *self.inputs.values(),
                *(self.work.start, self.all, self.work.stop, self.making.stop),
            ),
            self.work.bar,
            self.making.bar,
            self.headline,
            self.note,
            self.summary,
            self.which,
            Grow(self.sentences),
            Grow(self.table),
            self.row_line,
            self.members,
            self.tools,
            Grow(self.plots),
        )

    @property
    def pickers(self) -> tuple[PlotPicker, ...]:
        """The menus of plots."""
        return (self.plots,)

    @property
    def values(self) -> dict[str, Any]:
        """The values of the inputs, by the names of the fields."""
        return {name: box.choice for name, box in (self.inputs | self.typed).items()}

    @property
    def problem(self) -> str:
        """Why what was typed cannot be read; empty if it can."""
        return next(filter(None, (field.problem for field in self.typed.values())), "")

    @property
    def shown_table(self) -> AnswerTable | None:
        """The table that is shown."""
        table: AnswerTable | None = self.which.choice
        return table

    def show_nothing(self, hint: str) -> None:
        """Show a sentence and no answer."""
        self.show_note("")
        self._show(None, hint)

    def show_answer(self, answer: Answer) -> None:
        """Show an answer; the keys go to its first table."""
        self._show(answer, answer.headline)
        self.setFocusProxy(self.sentences if self.sentences.count() else self.table)

    def show_note(self, text: str, tooltip: str = "") -> None:
        """Show a note about the answer; an empty text hides it."""
        self.note.show_text(text)
        self.note.setToolTip(tooltip)

    def show_making(self, share: float | None, doing: str = "") -> None:
        """Show the share of a gallery or of files that is done; None if none is being made."""
        table = self.shown_table
        has_objects = table is not None and table.objects is not None and len(table.frame) > 0
        self.making.show_progress(share, doing, may_start=has_objects)

    def chooser(self) -> ChoiceBox | ChoiceButtons:
        """Return what the tables are chosen with."""
        return ChoiceBox(meaning="Which table is shown.").shrinkable()

    def entry(self, table: AnswerTable) -> Choice:
        """Return the choice of a table, with the number of its sentences."""
        title, n = table.title, len(table.frame)
        if table.sentence is not None:
            listed = f"{count_text(MOST_SENTENCES)} of " if n > MOST_SENTENCES else ""
            title = f"{title}: {listed}{count_text(n)}"
        return Choice(table, title, table.spec.caption)

    def columns_of(self, table: AnswerTable) -> list[Column]:
        """Return the columns of a table."""
        return table_columns(table)

    def tables_of(self, answer: Answer) -> list[AnswerTable]:
        """Return the tables of an answer that are listed."""
        return [table for table in answer.tables if table.is_shown]

    def list_table(self, title: str) -> None:
        """List the table of a title, if there is one, also of the next answers."""
        self._listed = title
        if (table := self._titled(title)) is not None:
            self.which.show_choice(table)
            self._show_table()

    def _titled(self, title: str) -> AnswerTable | None:
        tables: Sequence[AnswerTable] = self.which.values
        return next((table for table in tables if table.title == title), None)

    def _on_which(self, table: AnswerTable) -> None:
        self._listed = table.title
        self._show_table()

    def _show(self, answer: Answer | None, headline: str) -> None:
        self.headline.setText(headline)
        self.headline.setToolTip("" if answer is None else answer.about)
        tables = [] if answer is None else self.tables_of(answer)
        summary = next((own for own in tables if own.is_summary), None)
        self.summary.show_rows([] if summary is None else self.columns_of(summary))
        self.summary.setVisible(summary is not None)
        tables = [own for own in tables if own is not summary]
        self.which.offer([self.entry(own) for own in tables])
        if (listed := self._titled(self._listed)) is not None:
            self.which.show_choice(listed)
        self.which.setVisible(len(tables) > 1)
        self.save.setVisible(answer is not None)
        for picker in self.pickers:
            picker.fill(() if answer is None else answer.plots)
        self.setFocusProxy(self.work.start)
        self._show_table()
        self.answer_changed.emit()

    def _show_table(self) -> None:
        table = self.shown_table
        self.sentences.fill(*_listed(table))
        rows = [] if table is None or table.sentence is not None else self.columns_of(table)
        self.table.show_rows(rows, None if table is None or not rows else self.passing(table))
        self.show_row(None)
        has_rows = table is not None and len(table.frame) > 0
        self.table.setVisible(bool(rows) and has_rows)
        if table is not None and not has_rows:
            self.row_line.show_text(table.empty)
        if not self.making.is_running:
            self.show_making(None)
        self.table_chosen.emit()

    def passing(self, table: AnswerTable) -> NDArray[np.bool_] | None:  # noqa: ARG002
        """Return which rows of a table are listed; None for all."""
        return None

    def chosen_rows(self) -> Sequence[int]:
        """Return the rows whose objects are shown in the gallery: the chosen one, or all."""
        table = self.shown_table
        if table is None or table.sentence is not None:
            return range(self.sentences.count())
        chosen = self.table.selected()
        return self.table.rows() if chosen is None else [chosen]

    def _want(self, rows: Sequence[int]) -> None:
        """Ask for the objects of rows."""
        table = self.shown_table
        if table is not None and table.objects is not None:
            self.wanted.emit([table.objects(row) for row in rows])

    def _want_link(self) -> None:
        """Ask for a link to the objects of the selected rows."""
        table = self.shown_table
        if table is None or table.objects is None:
            show_info(NO_OBJECTS)
            return
        if table.sentence is not None:
            rows = [self.sentences.currentRow()]
        else:
            listed = self.table.rows()
            chosen = self.table.selection().selectedRows()
            rows = [listed[place] for place in sorted(index.row() for index in chosen)]
        self.link_wanted.emit([table.objects(row) for row in rows])

    def show_row(self, row: int | None) -> None:
        """Show more about a row of the table, and the objects that it is made of."""
        text, self._parts = "", None
        if (table := self.shown_table) is not None and row is not None:
            text = "" if table.tooltip is None else table.tooltip(row)
            self._parts = None if table.members is None else table.members(row)
        self.row_line.show_text(text)
        rows = [] if self._parts is None else self.columns_of(self._parts)
        self.members.show_rows(rows)
        self.members.setVisible(bool(rows))
        self.members.setFixedHeight(self._members_px())

    def _members_px(self) -> int:
        heading = self.members.heading.sizeHint().height()
        rows_px = self.members.row_height * min(len(self.members.rows()), _MOST_MEMBERS)
        return heading + rows_px + _BESIDE_ROWS_PX

    def _object_of(self, row: int, column: str | None = None) -> FailureSet | None:
        """Return the object that a row is about, or the one that a column of it names."""
        table = self.shown_table
        if table is None or table.objects is None or not table.is_of_objects:
            return None
        return _of_column(table.objects(row), column)

    def _open(self, row: int) -> None:
        """Ask for the object of a row, or for its objects."""
        one = self._object_of(row)
        if one is None:
            self._want([row])
        else:
            self.object_wanted.emit(one)

    def _on_row(self, row: int, column: int) -> None:
        """Show more about a row of the table, and go to its object if it is about one."""
        self.show_row(row)
        if (one := self._object_of(row, self.table.key(column))) is not None:
            self.object_wanted.emit(one)

    def _on_member(self, row: int, column: int) -> None:
        """Go to an object that a row is made of."""
        if self._parts is not None and self._parts.objects is not None:
            objects = self._parts.objects(row)
            self.object_wanted.emit(_of_column(objects, self.members.key(column)))

    def _on_centre(self, row: int) -> None:
        one = self._object_of(row)
        if one is None:
            self._want([row])
        else:
            self.centre_wanted.emit(one)

    def _on_rest(self, row: int) -> None:
        """Show the plot of a row."""
        table = self.shown_table
        if table is not None and table.plot is not None:
            self.plots.choose(table.plot(row))

    def _offer(self) -> None:
        """Offer the entries of all menus, which may depend on each other's choices."""
        for name, option in options_of(self.kind).items():
            if option.menu is not None:
                box = self.inputs[name]
                entries = [Choice(*entry) for entry in option.menu(self.values)]
                values = [entry.value for entry in entries]
                box.show_among(entries, box.choice if box.choice in values else values[0])

    def _on_input(self, _value: object) -> None:
        self._offer()
        self.changed.emit()


def _of_column(objects: FailureSet, column: str | None) -> FailureSet:
    """Return the objects that a column names by its team or side; all if it names none."""
    names = frozenset(name for name in objects.names if column in (name.team, name.side))
    return replace(objects, names=names) if names else objects


def _listed(table: AnswerTable | None) -> tuple[list[str], list[str]]:
    """Return the sentences of a table and their tooltips; none if it has columns instead."""
    if table is None:
        return [], []
    sentences = table.sentences(MOST_SENTENCES)
    about = table.tooltip
    return sentences, [] if about is None else [about(row) for row in range(len(sentences))]
