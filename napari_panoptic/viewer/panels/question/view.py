"""The panel of any question over the cohort: inputs from its fields, results from its answer.

An answer is outdated if another question would be asked now: questions are values, which are
compared, and no signal is needed for each change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtCore import QSize, Qt
from qtpy.QtWidgets import QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.text import visible
from napari_panoptic.display.names import distinct_names, short_name
from napari_panoptic.display.styles import count_text
from napari_panoptic.io.formats.saving import check_not_in_cohort
from napari_panoptic.questions.answer import (
    Answer,
    AnswerPlot,
    AnswerTable,
    Reason,
    UnansweredError,
)
from napari_panoptic.questions.engines.cohort_failures import (
    FailureName,
    FailureSet,
    chosen_objects,
)
from napari_panoptic.questions.question import Question, options_of
from napari_panoptic.tables.columns import CellContent, TableColumn
from napari_panoptic.tables.markup import Html, plain_text
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.settings import protocol_name
from napari_panoptic.viewer.jobs.jobs import Job, Latest, Stream, show_failure
from napari_panoptic.viewer.kit.array_table import ArrayTable, Column
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceBox, TextInput
from napari_panoptic.viewer.kit.layouts import FlowBar, Grow, Row, ScrollPanel, lay_out
from napari_panoptic.viewer.kit.name_table import SentenceList
from napari_panoptic.viewer.kit.plot_view import DRAWING, PlotView
from napari_panoptic.viewer.kit.questions import folder_from, may_replace
from napari_panoptic.viewer.kit.shown import WrappedLabel, show_info
from napari_panoptic.viewer.kit.widgets import PushButton, WorkControls, offer_link
from napari_panoptic.viewer.panels.notes import notes_in_tooltip
from napari_panoptic.viewer.panels.part import Connections, Presenter, Surroundings

if TYPE_CHECKING:
    import pandas as pd

    from napari_panoptic.report.plots import Plot

NO_TEAM = "Choose a team with predictions."
RUNNING = "Working through the cohort …"
STOPPED = "Stopped. Press “{verb}” to start again."
STALE = "Outdated: the team, the settings or the files have changed. Press “{verb}” again."
OPENED = "Click a line to see its objects."
NOT_EDITED = "Unsaved edits are not included: the files are read."
NO_OBJECTS = "The rows of this table are not about objects, to which a link could lead."
_NAMES = ("patient", "region", "team")
"""Columns of names that are shortened."""
MOST_SENTENCES = 200
"""The most rows of a table that are listed as sentences."""
_LEAST_PLOT_PX, _LONG_TEXT, _BESIDE_TEXT_PX = 130, 40, 4
GALLERY_STALE = (
    "The settings or the files have changed. Press “Show in gallery” again for the objects as they "
    "are now."
)


# --- the widgets ------------------------------------------------------------------------------


class PlotPicker(QWidget):
    """A menu of plots above the one that is chosen; hidden without any."""

    def __init__(self) -> None:
        super().__init__()
        self.menu, self.view = ChoiceBox(meaning="Which plot is shown."), PlotView()
        self.view.setMinimumHeight(_LEAST_PLOT_PX)
        self.work: Latest[Plot] = Latest(self.view.show_plot)
        lay_out(self, ("Plot", Grow(self.menu)), Grow(self.view))
        self.menu.chosen.connect(self._draw)

    def fill(self, plots: Sequence[AnswerPlot]) -> None:
        """Offer plots, and draw the first one."""
        self.work.drop()
        self.view.show_plot(None)
        self.menu.offer([Choice(plot, plot.title, plot.caption) for plot in plots])
        self.setVisible(bool(plots))
        if plots:
            self._draw(plots[0])

    def choose(self, title: str) -> None:
        """Choose the plot of a title, if there is one."""
        for plot in self.menu.values:
            if plot.title == title:
                self.menu.choose(plot)

    def _draw(self, plot: AnswerPlot) -> None:
        self.work.start(partial(_drawn, plot))


def _drawn(plot: AnswerPlot) -> Plot:
    from napari_panoptic.report.answers import drawn

    with DRAWING:
        return drawn(plot)


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
    """

    changed = Signal()  # another question would be asked now
    wanted = Signal(list)  # of FailureSet: the objects of the chosen rows
    object_wanted = Signal(object)  # FailureSet: the object of a row
    centre_wanted = Signal(object)  # the same, in the middle of the view
    link_wanted = Signal(list)  # of FailureSet: the objects of the selected rows
    table_chosen = Signal()
    answer_changed = Signal()  # another answer is shown, or none

    def __init__(self, kind: type[Question], *above: Row) -> None:
        super().__init__()
        self.kind = kind
        own = options_of(kind).items()
        self.inputs = {
            name: _Input(meaning=option.help) for name, option in own if option.menu is not None
        }
        #: What is typed instead of chosen.
        self.typed = {
            name: TextInput(option.placeholder, option.help, option.read)
            for name, option in own
            if option.placeholder
        }
        self.work = WorkControls(kind.verb, kind.in_short())
        self.making = WorkControls(
            "Show in gallery", "Show the objects of the chosen rows, or of all rows if none is."
        )
        self.save = PushButton("Save…", "Save the files that the command writes.")
        self.headline, self.note = WrappedLabel(), WrappedLabel()
        self.which = ChoiceBox(meaning="Which table is shown.").shrinkable()
        self.table, self.sentences = ArrayTable(), SentenceList(kind.title)
        self.row_line = WrappedLabel()  # more about the row that was chosen
        self.plots = PlotPicker()
        self._answer: Answer | None = None
        self._offer()
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        body = QWidget()
        self._rows.addWidget(body)
        lay_out(
            body,
            *above,
            *self.typed.values(),
            FlowBar(*self.inputs.values(), self.work.start, self.work.stop, self.making.stop),
            self.work.bar,
            self.making.bar,
            self.headline,
            self.note,
            self.which,
            Grow(self.sentences),
            Grow(self.table),
            self.row_line,
            FlowBar(self.making.start, self.save),
            Grow(self.plots),
        )
        for signal in [box.chosen for box in self.inputs.values()] + [
            field.chosen for field in self.typed.values()
        ]:
            signal.connect(self._on_input)
        self.which.chosen.connect(lambda _table: self._show_table())
        self.making.start.pushed.connect(lambda: self._want(self.chosen_rows()))
        self.sentences.opened.connect(self._open)
        self.sentences.rested.connect(self._on_rest)
        self.table.row_wanted.connect(self._on_row)
        self.table.centre_wanted.connect(self._on_centre)
        offer_link(self.table, self._want_link)
        offer_link(self.sentences, self._want_link)
        self.show_nothing(kind.hint)

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

    def _show(self, answer: Answer | None, headline: str) -> None:
        self._answer = answer
        self.headline.setText(headline)
        tables = [] if answer is None else [own for own in answer.tables if own.is_shown]
        self.which.offer([_entry(own) for own in tables])
        self.which.setVisible(len(tables) > 1)
        self.save.setVisible(answer is not None)
        self.plots.fill(() if answer is None else answer.plots)
        self.setFocusProxy(self.work.start)
        self._show_table()
        self.answer_changed.emit()

    def _show_table(self) -> None:
        table = self.shown_table
        self.sentences.fill(*_listed(table))
        rows = [] if table is None or table.sentence is not None else table_columns(table)
        self.table.show_rows(rows, None if table is None or not rows else self.passing(table))
        self.row_line.show_text("")
        self.table.setVisible(bool(rows) and len(rows[0].values) > 0)
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

    def _object_of(self, row: int) -> FailureSet | None:
        """Return the object that a row is about; None if it is not about a single one."""
        table = self.shown_table
        if table is None or table.objects is None or not table.is_of_objects:
            return None
        return table.objects(row)

    def _open(self, row: int) -> None:
        """Ask for the object of a row, or for its objects."""
        one = self._object_of(row)
        if one is None:
            self._want([row])
        else:
            self.object_wanted.emit(one)

    def _on_row(self, row: int, _column: int) -> None:
        """Show more about a row of the table, and go to its object if it is about one."""
        table = self.shown_table
        if table is not None and table.tooltip is not None:
            self.row_line.show_text(table.tooltip(row))
        if (one := self._object_of(row)) is not None:
            self.object_wanted.emit(one)

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


def _entry(table: AnswerTable) -> Choice:
    """Return the entry of a table in the menu, with the number of its sentences."""
    title, n = table.title, len(table.frame)
    if table.sentence is not None:
        listed = f"{count_text(MOST_SENTENCES)} of " if n > MOST_SENTENCES else ""
        title = f"{title}: {listed}{count_text(n)}"
    return Choice(table, title, table.spec.caption)


def _listed(table: AnswerTable | None) -> tuple[list[str], list[str]]:
    """Return the sentences of a table and their tooltips; none if it has columns instead."""
    if table is None:
        return [], []
    sentences = table.sentences(MOST_SENTENCES)
    about = table.tooltip
    return sentences, [] if about is None else [about(row) for row in range(len(sentences))]


def table_columns(table: AnswerTable) -> list[Column]:
    """Return the columns of a table of an answer for `ArrayTable`."""
    frame, records = table.frame, table.frame.to_dict("records")
    short = {key: short_names(frame, key) for key in _NAMES if key in frame}
    return [
        _column(
            column,
            [column.cell(record) for record in records],
            short.get(column.keys[0]) if len(column.keys) == 1 else None,
            table.tooltip,
        )
        for column in table.spec.shown()
        if column.cell is not None
    ]


def short_names(frame: pd.DataFrame, key: str) -> list[str]:
    """Return names of a column, shortened to what distinguishes them.

    Names of regions stand without the patient if that has a column of its own.
    """
    names = [str(name) for name in frame[key]]
    if key == "region" and "patient" in frame:
        return [short_name(*each) for each in zip(names, map(str, frame["patient"]), strict=True)]
    return distinct_names(names)


def _column(
    column: TableColumn,
    cells: Sequence[CellContent],
    short: Sequence[str] | None,
    tooltip: Callable[[int], str] | None,
) -> Column:
    """Return a column; those of names, and of long texts, share the room that others leave.

    Parameters
    ----------
    column, cells
        The column and its cells.
    short
        Short names that are shown instead; the tooltips have the full ones.
    tooltip
        Returns more about a row.
    """
    full = [plain_text(cell.shown) for cell in cells]
    texts = full if short is None else [visible(name) for name in short]
    if short is not None and tooltip is None:
        tooltip = full.__getitem__
    is_name = any(isinstance(cell.shown, Html) for cell in cells)
    is_text = all(cell.value is None for cell in cells)
    numbers = [np.nan if cell.value is None else cell.value for cell in cells]
    return Column(
        plain_text(column.title),
        column.about,
        np.array(texts, str) if is_text else np.array(numbers, np.float64),
        text=str if is_text else lambda _value: "",
        instead={} if is_text else dict(enumerate(texts)),
        is_text=is_text,
        is_whole=column.keys == ("region",),  # the ends of names distinguish regions
        stretch=is_text and (is_name or max(map(len, texts), default=0) > _LONG_TEXT),
        tooltip=tooltip,
    )


# --- the presenter ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A question, and the cohort that it is about."""

    cohort: Cohort
    question: Question


@dataclass(frozen=True, eq=False)
class Found:
    """What a worker found: an answer, or the reason why there is none."""

    asked: Asked
    answer: Answer | None
    why: str = ""
    findings: tuple[Finding, ...] = ()
    #: What was read of the cohort.
    gathered: Any = None


def _sentence(message: str) -> str:
    """Return a message with a capital and a full stop; empty for an empty one."""
    return f"{message[0].upper()}{message[1:].removesuffix('.')}." if message else ""


class QuestionPresenter(Presenter[QuestionView]):
    """Asks a question about the cohort, and takes the answer away when another would be given."""

    kind: ClassVar[type[Question]]
    """The question."""

    def __init__(self, around: Surroundings, panel: QuestionView) -> None:
        super().__init__(around, panel)
        self._work: Stream[Found] = Stream(
            self._on_found,
            ended=lambda: panel.work.show_progress(None),
            failed=self._on_failed,
            progressed=panel.work.show_progress,
        )
        self._gallery: Stream[FailureSet] = Stream(
            self.link.show_objects,
            ended=lambda: panel.show_making(None),
            progressed=panel.show_making,
        )
        self._saving: Stream[Path] = Stream(
            lambda folder: show_info(f"The files are in {folder}"),
            ended=lambda: panel.show_making(None),
        )
        self.asked: Asked | None = None
        """What was asked; None once the answer is no longer shown or expected."""
        self.found: Found | None = None
        """What was found; None if that is unknown."""
        self._known: Found | None = None

    @property
    def answer(self) -> Answer | None:
        """The answer that is shown."""
        return None if self.found is None else self.found.answer

    @property
    def is_busy(self) -> bool:
        """Whether something is still to come."""
        works = (self._work, self._gallery, self._saving, self.panel.plots.work)
        return any(work.is_busy for work in works)

    def connections(self) -> Connections:
        """Compare the question whenever it may be another one."""
        session, panel = self.session, self.panel
        return [
            (session.team_changed, self._on_change),
            (session.settings_changed, self._on_settings),
            (session.source_changed, self._on_settings),
            (session.edited, self._on_edit),
            (session.copies_changed, self._on_edit),
            (panel.changed, self._on_input),
            (panel.work.start.pushed, self.ask),
            (panel.work.stop.pushed, self.stop),
            (panel.making.stop.pushed, self._stop_making),
            (panel.wanted, self.show_sets),
            (panel.object_wanted, self.go_to),
            (panel.centre_wanted, self.centre),
            (panel.link_wanted, self.copy_link),
            (panel.save.pushed, self._on_save),
        ]

    def refresh(self) -> None:
        """Show that nothing was asked yet."""
        self._show_nothing(self.kind.hint)

    def close(self) -> None:
        """Stop all work."""
        for work in (self._work, self._gallery, self._saving):
            work.close()
        self.panel.plots.work.drop()

    # The question.

    def question(self) -> Asked | None:
        """Return what would be asked now; None if nothing can be."""
        session, kind = self.session, self.kind
        names = {field.name for field in fields(kind)}
        known: dict[str, Any] = {
            "team": session.team,
            "teams": tuple(team.name for team in session.cohort.competing_teams),
        }
        own = {name: value for name, value in known.items() if name in names}
        if None in own.values():
            return None
        settings = kind.suited(session.settings)
        question = kind(
            settings=settings,
            protocol=protocol_name(session.settings if kind.own_settings is None else settings),
            source=session.source,
            held_up_to_px=session.held_up_to_px,
            **own,
            **self.panel.values,
        )
        return Asked(session.cohort, question)

    def ask(self) -> None:
        """Ask, and compute the answer in a worker."""
        if (asked := self.question()) is None or self.why_not():
            return
        if asked == self.asked:  # the same again: files may have changed meanwhile
            self._known = None
        known, self._known = self._known, None
        if known is not None and known.asked.question.gathering != asked.question.gathering:
            known = None
        self._show_nothing(RUNNING)
        self.asked, self._known = asked, known
        self.panel.work.show_progress(0.0)
        self._work.start(partial(_found, asked, known))

    def reason(self, name: FailureName) -> Reason | None:
        """Return why an object failed, if the answer tells and holds for what is shown of it."""
        session, found = self.session, self.found
        is_as_read = session.threshold is None and not session.has_edits(name.region)
        if found is None or found.answer is None or not is_as_read:
            return None
        return found.answer.reason(name) if found.asked == self.question() else None

    def stop(self) -> None:
        """Stop, and show no answer."""
        self._drop(STOPPED)

    def why_not(self) -> str:
        """Return why nothing can be asked; empty if something can."""
        asked = self.question()
        if asked is None:
            return NO_TEAM
        return self.panel.problem or asked.question.why_not(asked.cohort)

    def _on_change(self, _changed: object = None) -> None:
        if self.asked is not None and self.asked != self.question():
            self._drop(STALE)
        elif self.asked is None:
            self._show_nothing(self.kind.hint)

    def _on_settings(self, changed: object = None) -> None:
        """Show no objects of other settings, either."""
        if self._gallery.is_busy:
            self._gallery.stop()
            self.panel.show_making(None)
            show_info(GALLERY_STALE)
        self._on_change(changed)

    def _on_input(self) -> None:
        if self.asked != self.question():
            self._drop(self.kind.hint)

    def _on_edit(self, _edited: object = None) -> None:
        """Note unsaved edits, and read the files again for the next question."""
        self._known = None
        self._note()

    def _drop(self, hint: str) -> None:
        self._work.stop()
        self._gallery.stop()
        if not self._saving.is_busy:  # files of what was asked before may be completed
            self.panel.show_making(None)
        self.asked = None
        self._show_nothing(hint)

    def _show_nothing(self, hint: str) -> None:
        self.found = None
        self.panel.work.show_progress(None)
        why = self.why_not()
        self.panel.work.start.setEnabled(not why)
        self.panel.show_nothing(_sentence(why) or hint.format(verb=self.kind.verb))

    # The answer.

    def _on_found(self, found: Found) -> None:
        self.found = self._known = found
        if found.answer is None:
            self.panel.show_nothing(found.why)
        else:
            self.panel.show_answer(found.answer)
            self.show(found.answer)
        self._note()

    def show(self, answer: Answer) -> None:
        """Show more of an answer than all panels do."""

    def _on_failed(self, error: PanopticError) -> None:
        self._drop(self.kind.hint)
        show_failure(error)

    def _note(self) -> None:
        """Show the notes of the answer, and what it leaves out."""
        if self.found is None:
            return
        answer = self.found.answer
        findings = self.found.findings if answer is None else answer.record.findings
        count, tooltip = notes_in_tooltip(findings)
        notes = () if answer is None else answer.notes
        is_clicked = answer is not None and self.panel.sentences.count() > 0
        clicks = OPENED if is_clicked else ""
        edited = NOT_EDITED if self.session.has_any_edits else ""
        last = " ".join(filter(None, (clicks, edited, count)))
        self.panel.show_note("\n".join(filter(None, (*notes, last))), tooltip)

    # The way to the objects, and to files.

    def show_sets(self, sets: Sequence[FailureSet]) -> None:
        """Show the objects of rows in the gallery, as they are under the settings of the desk."""
        sets = [own.beside(self.session.team) for own in sets]
        titles = list(dict.fromkeys(own.title for own in sets))
        names = frozenset().union(*(own.names for own in sets))
        title = titles[0] if len(titles) == 1 else self.kind.title
        agreeing: dict[FailureName, tuple[str, ...]] = {}
        for own in sets:  # two rows may be about one object
            for name in own.names:
                teams = (*agreeing.get(name, ()), *own.agreeing.get(name, ()))
                agreeing[name] = tuple(dict.fromkeys(teams))
        wanted = FailureSet(title, names, sets[0].versions if sets else None, agreeing=agreeing)
        table = self.panel.shown_table
        if table is None or not table.has_others:
            self.link.show_failures(title, names, wanted.versions)
        elif self.found is not None:
            self.panel.show_making(0.0)
            question = replace(self.found.asked.question, settings=self.session.settings)
            now = Asked(self.found.asked.cohort, question)
            self._gallery.start(partial(_with_columns, now, wanted))

    def go_to(self, one: FailureSet) -> None:
        """Go to the object of a row, with the outlines of the other teams that agree on it.

        Of several objects, such as those of a group, to the first annotated one.
        """
        one = one.beside(self.session.team)
        name = first_name(one)
        beside = one.outlined(name)
        self.link.go_to(name.region, name.side, name.id, team=name.team, beside=beside)

    def centre(self, one: FailureSet) -> None:
        """Go to the object of a row, in the middle of the view."""
        self.go_to(one)
        name = first_name(one)
        snapshot, selection = self.session.snapshot, self.session.selection
        if snapshot is not None and selection is not None and snapshot.region.name == name.region:
            self.link.scene.centre(selection)

    def copy_link(self, sets: Sequence[FailureSet]) -> None:
        """Copy a link to the objects of rows."""
        names = [name for own in sets for name in own.beside(self.session.team).in_order()]
        self.link.links.copy(names)

    def _stop_making(self) -> None:
        self._gallery.stop()
        self._saving.stop()
        self.panel.show_making(None)

    def _on_save(self) -> None:
        """Ask for a folder, and write the files of the command into it."""
        found, kind = self.found, self.kind
        if found is None or found.answer is None:
            return
        folder = folder_from(self.panel, f"Save {kind.title.lower()} in")
        if folder is None:
            return
        files = [folder / name for name in kind.file_names()]
        try:
            check_not_in_cohort(files, found.asked.cohort.root)
        except PanopticError as error:
            show_failure(error)
            return
        if may_replace(self.panel, files):
            self.panel.show_making(0.0)
            self._saving.start(partial(_saved, found, folder))


def first_name(objects: FailureSet) -> FailureName:
    """Return the annotated object of a set with the lowest id; of predictions, if there is none."""
    return objects.in_order()[0]


def question_presenter(kind: type[Question]) -> type[QuestionPresenter]:
    """Return the presenter of a question that needs no widgets of its own."""
    return type(
        f"{kind.__name__}Presenter",
        (QuestionPresenter,),
        {
            "kind": kind,
            "title": kind.title,
            "key": kind.key,
            "panel_type": partial(QuestionView, kind),
        },
    )


# --- in workers -------------------------------------------------------------------------------


def _found(asked: Asked, known: Found | None, job: Job[Found]) -> Iterator[Found]:
    question, cohort, progress = asked.question, asked.cohort, job.progress
    try:
        gathered = None if known is None else known.gathered
        if gathered is None:
            gathered = question.gather(cohort, progress.part(0, question.share_of_gathering))
        answer = question.answered(cohort, gathered, progress.part(question.share_of_gathering, 1))
        yield Found(asked, answer, gathered=gathered)
    except UnansweredError as error:
        why = f"Nothing could be {question.done}: {error}."
        yield Found(asked, None, why, error.findings)


def _with_columns(now: Asked, wanted: FailureSet, job: Job[FailureSet]) -> Iterator[FailureSet]:
    """Read the objects of a set, some of which are no failures."""
    question = now.question
    given = chosen_objects(
        now.cohort,
        wanted.names,
        question.settings,
        question.source,
        held_up_to_px=question.held_up_to_px,
        progress=job.progress,
    )
    yield replace(wanted, given=given)


def _saved(found: Found, folder: Path, _job: Job[Path]) -> Iterator[Path]:
    from napari_panoptic.report.answers import write_answer

    if found.answer is not None:
        write_answer(found.asked.question, found.answer, found.asked.cohort, folder)
    yield folder
