"""Asks a question over the cohort, and shows the answer until another one would be given.

An answer is outdated if another question would be asked now: questions are values, which are
compared, and no signal is needed for each change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.explain.failures import (
    FailureName,
    FailureSet,
    chosen_objects,
)
from napari_panoptic.io.formats.saving import check_not_in_cohort
from napari_panoptic.questions.answer import (
    Answer,
    Reason,
)
from napari_panoptic.questions.question import Question
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import protocol_name
from napari_panoptic.viewer.jobs.jobs import Job, Stream, show_failure
from napari_panoptic.viewer.kit.plot_view import DRAWING
from napari_panoptic.viewer.kit.questions import file_to_save, folder_from, may_replace
from napari_panoptic.viewer.kit.shown import show_info
from napari_panoptic.viewer.panels.notes import notes_in_tooltip
from napari_panoptic.viewer.panels.part import Connections, Presenter, Surroundings
from napari_panoptic.viewer.panels.question.asking import Asked, Asker, Found, ask_together
from napari_panoptic.viewer.panels.question.plots import PlotPicker
from napari_panoptic.viewer.panels.question.view import QuestionView

NO_TEAM = "Choose a team with predictions."
RUNNING = "Working through the cohort …"
STOPPED = "Stopped. Press “{verb}” to start again."
STALE = "Outdated: the team, the settings or the files have changed. Press “{verb}” again."
OPENED = "Click a line to see its objects."
NOT_EDITED = "Unsaved edits are not included: the files are read."
GALLERY_STALE = (
    "The settings or the files have changed. Press “Show in gallery” again for the objects as they "
    "are now."
)


def _sentence(message: str) -> str:
    """Return a message with a capital and a full stop; empty for an empty one."""
    return f"{message[0].upper()}{message[1:].removesuffix('.')}." if message else ""


class QuestionPresenter(Presenter[QuestionView]):
    """Asks a question about the cohort, and shows the answer while it is the one to be asked."""

    kind: ClassVar[type[Question]]
    """The question."""

    def __init__(self, around: Surroundings, panel: QuestionView) -> None:
        super().__init__(around, panel)
        self._gallery: Stream[FailureSet] = Stream(
            self.link.show_objects,
            ended=lambda: panel.show_making(None),
            progressed=panel.show_making,
        )
        self._saving: Stream[Path] = Stream(
            lambda folder: show_info(f"The files are in {folder}"),
            ended=lambda: panel.show_making(None),
        )
        self.asker = Asker(
            began=self._on_began,
            progressed=panel.work.show_progress,
            taken=self._on_taken,
            failed=self._on_failed,
        )
        self._shown: Found | None = None
        self._hint = self.kind.hint

    @property
    def found(self) -> Found | None:
        """What was found for the question that would be asked now; None if that is unknown."""
        return self.asker.found(self.question())

    @property
    def answer(self) -> Answer | None:
        """The answer to the question that would be asked now."""
        return None if self.found is None else self.found.answer

    @property
    def is_busy(self) -> bool:
        """Whether something is still to come."""
        is_drawing = any(picker.work.is_busy for picker in self.panel.pickers)
        is_making = self._gallery.is_busy or self._saving.is_busy
        return self.is_asking or is_making or is_drawing

    @property
    def is_asking(self) -> bool:
        """Whether an answer is still to come."""
        return self.asker.is_asking

    def connections(self) -> Connections:
        """Compare the question whenever it may be another one."""
        session, panel = self.session, self.panel
        return [
            (session.team_changed, self._on_team),
            (session.settings_changed, self._on_settings),
            (session.source_changed, self._on_settings),
            (session.edited, self._on_edit),
            (session.copies_changed, self._on_edit),
            (panel.changed, self._on_input),
            (panel.work.start.pushed, self.ask),
            (panel.all.pushed, self.ask_all),
            (panel.work.stop.pushed, self.stop),
            (panel.making.stop.pushed, self._stop_making),
            (panel.wanted, self.show_sets),
            (panel.object_wanted, self.go_to),
            (panel.centre_wanted, self.centre),
            (panel.link_wanted, self.copy_link),
            (panel.save.pushed, self._on_save),
            *((picker.save.pushed, partial(self._save_plot, picker)) for picker in panel.pickers),
        ]

    def refresh(self, *_changed: object) -> None:
        """Show the answer to the question that would be asked now, or why there is none."""
        found, why = self.found, self.why_not()
        self.panel.work.start.setEnabled(not why)
        has_others = len(self.link.asked_together(self.title)) > 1
        self.panel.all.setVisible(has_others and not self.is_asking)
        if found is None:
            self.panel.show_nothing(_sentence(why) or self._hint.format(verb=self.kind.verb))
        elif found is not self._shown:
            self.show_found(found)
        self._shown = found
        self._note()

    def close(self) -> None:
        """Stop all work."""
        self.asker.stop()
        self._gallery.close()
        self._saving.close()
        for picker in self.panel.pickers:
            picker.work.drop()

    # The question.

    def question(self) -> Asked | None:
        """Return what would be asked now; None if nothing can be."""
        session, kind = self.session, self.kind
        names = {field.name for field in fields(kind)}
        offered: dict[str, Any] = {
            "team": session.team,
            "teams": tuple(team.name for team in session.cohort.competing_teams),
        }
        inputs = {name: value for name, value in offered.items() if name in names}
        if None in inputs.values():
            return None
        settings = kind.suited(session.settings)
        question = kind(
            settings=settings,
            protocol=protocol_name(session.settings if kind.own_settings is None else settings),
            source=session.source,
            held_up_to_px=session.held_up_to_px,
            **inputs,
            **self.panel.values,
        )
        return Asked(session.cohort, question)

    def ask(self) -> None:
        """Ask, and compute the answer in a worker."""
        self._ask([self])

    def ask_all(self) -> None:
        """Ask all questions of the workspace in one pass over the files."""
        titles = self.link.asked_together(self.title)
        parts = [part.presenter for part in self.link.parts if part.title in titles]
        self._ask([each for each in parts if isinstance(each, QuestionPresenter)])

    def _ask(self, presenters: Sequence[QuestionPresenter]) -> None:
        asked = {each.asker: each.question() for each in presenters if not each.why_not()}
        ask_together({asker: own for asker, own in asked.items() if own is not None})

    def _on_began(self) -> None:
        self._hint = RUNNING
        self.panel.work.show_progress(0.0)
        self.refresh()

    def _on_taken(self) -> None:
        self._show_ended()
        self.refresh()

    def _on_failed(self, error: PanopticError | None) -> None:
        """Show that there is no answer, and the error; None if that is shown already."""
        self._drop(self.kind.hint)
        if error is not None:
            show_failure(error)

    def reason(self, name: FailureName) -> Reason | None:
        """Return why an object failed, if the answer tells and holds for what is shown of it."""
        answer, session = self.answer, self.session
        is_as_read = session.threshold is None and not session.has_edits(name.region)
        return answer.reason(name) if answer is not None and is_as_read else None

    def stop(self) -> None:
        """Stop, and show no answer."""
        self._drop(STOPPED)

    def forget(self) -> None:
        """Stop, and show that nothing was asked yet."""
        self._drop(self.kind.hint)

    def why_not(self) -> str:
        """Return why nothing can be asked; empty if something can."""
        asked = self.question()
        if asked is None:
            return NO_TEAM
        return self.panel.problem or asked.question.why_not(asked.cohort)

    def _on_team(self, team: object) -> None:
        """Follow the team that is shown: most questions are about it."""
        self._on_change(team)

    def _on_change(self, _changed: object = None) -> None:
        self._compare(STALE)

    def _on_settings(self, changed: object = None) -> None:
        """Show no objects of other settings, either."""
        if self._gallery.is_busy:
            self._gallery.stop()
            self.panel.show_making(None)
            show_info(GALLERY_STALE)
        self._on_change(changed)

    def _on_input(self) -> None:
        self._compare(self.kind.hint)

    def _on_edit(self, _edited: object = None) -> None:
        """Note unsaved edits, and read the files again for the next question."""
        self.asker.are_files_read = False
        self._note()

    def _compare(self, hint: str) -> None:
        """Compare what was asked with what would be now, and show a hint if that differs."""
        asked = None if self._shown is None else self._shown.asked
        if self.is_asking:
            asked = self.asker.asked
        if asked is not None and asked != self.question():
            self._halt()
            self._hint = hint
        elif not self.is_asking:
            self._hint = self.kind.hint
        self.refresh()

    def _drop(self, hint: str) -> None:
        self._halt()
        self.asker.forget()
        self._hint = hint
        self.refresh()

    def _halt(self) -> None:
        """Stop the work, but for files of what was asked before."""
        self.asker.stop()
        self._gallery.stop()
        if not self._saving.is_busy:
            self.panel.show_making(None)
        self._show_ended()

    # The answer.

    def show_found(self, found: Found) -> None:
        """Show an answer, or why there is none."""
        if found.answer is None:
            self.panel.show_nothing(found.why)
        else:
            self.panel.show_answer(found.answer)

    def notes(self, found: Found) -> Sequence[str]:
        """Return the sentences below the headline."""
        return () if found.answer is None else found.answer.notes

    def _show_ended(self) -> None:
        """Show that no answer is expected."""
        self.panel.work.show_progress(None)

    def _note(self) -> None:
        """Show the notes of the answer, and what it leaves out."""
        if self._shown is None:
            return
        answer = self._shown.answer
        findings = self._shown.findings if answer is None else answer.record.findings
        count, tooltip = notes_in_tooltip(findings)
        is_clicked = answer is not None and self.panel.sentences.count() > 0
        clicks = OPENED if is_clicked else ""
        edited = NOT_EDITED if self.session.has_any_edits else ""
        last = " ".join(filter(None, (clicks, edited, count)))
        self.panel.show_note("\n".join(filter(None, (*self.notes(self._shown), last))), tooltip)

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
            self.link.scene.camera.centre(selection)

    def copy_link(self, sets: Sequence[FailureSet]) -> None:
        """Copy a link to the objects of rows."""
        names = [name for own in sets for name in own.beside(self.session.team).in_order()]
        self.link.links.copy(names)

    def _save_plot(self, picker: PlotPicker) -> None:
        """Ask for a file, and draw the plot into it."""
        plot, chosen = picker.view.plot, picker.menu.choice
        if plot is None or chosen is None:
            return
        from napari_panoptic.report.plots import save

        name = chosen.title.lower().replace(" ", "-").replace(",", "")
        usual = self.session.cohort.root / f"{name}.svg"
        path = file_to_save(self.panel, "Save the plot", usual, "SVG (*.svg);;PNG (*.png)")
        if path is None:
            return
        try:
            with DRAWING:
                show_info(f"The plot is in {save(plot, path)}")
        except PanopticError as error:
            show_failure(error)

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


def _with_columns(now: Asked, wanted: FailureSet, job: Job[FailureSet]) -> Iterator[FailureSet]:
    """Read the objects of a set, some of which are no failures."""
    question = now.question
    reading = Reading(question.settings, question.source, held_up_to_px=question.held_up_to_px)
    given = chosen_objects(now.cohort, wanted.names, reading, job.progress)
    yield replace(wanted, given=given)


def _saved(found: Found, folder: Path, _job: Job[Path]) -> Iterator[Path]:
    from napari_panoptic.report.answers import write_answer

    if found.answer is not None:
        write_answer(found.asked.question, found.answer, found.asked.cohort, folder)
    yield folder
