"""Editing: switched on and off, shown, undone and discarded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from qtpy.QtCore import QPoint, QRect, QSize
from qtpy.QtWidgets import QWidget

from napari_panoptic.live.mends import Target
from napari_panoptic.live.session import EditedEvaluation
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.editing.ambiguous_shapes import AmbiguousShapes
from napari_panoptic.viewer.editing.autosaving import Autosaver
from napari_panoptic.viewer.editing.live_edits import LiveEdits
from napari_panoptic.viewer.editing.object_actions import (
    ACTION_TEXTS,
    Asking,
    ObjectAction,
    ObjectActions,
)
from napari_panoptic.viewer.kit.inputs import Choice
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.kit.napari_private import canvas_widget, napari_docks
from napari_panoptic.viewer.kit.questions import BoxQuestion, ask, is_confirmed
from napari_panoptic.viewer.kit.shown import show_info
from napari_panoptic.viewer.panels.edits.corrections import CorrectedAnnotations
from napari_panoptic.viewer.panels.edits.files import EditsFiles, RecoveredEdits
from napari_panoptic.viewer.panels.edits.panel import EditsPanel, state_text
from napari_panoptic.viewer.panels.edits.places import PlacesToDraw
from napari_panoptic.viewer.panels.part import Connections, Presenter, Surroundings
from napari_panoptic.viewer.state.preferences import PREFERENCES

SAVE, DISCARD = "Save…", "Discard"
"""Answers to the question about unsaved edits."""


class EditsPresenter(Presenter[EditsPanel]):
    """Joins the panel, the layers and the session's working copies."""

    title = "Edits"
    key = "Alt-e"
    panel_type = EditsPanel

    def __init__(self, around: Surroundings, panel: EditsPanel) -> None:
        super().__init__(around, panel)
        viewer, session, scene = around.viewer, self.session, self.link.scene
        self.edits = edits = LiveEdits(viewer, session, scene, self.link.history)
        self.shapes = shapes = AmbiguousShapes(viewer, session, edits)
        self.files = EditsFiles(session, edits, shapes, panel, self.refresh)
        self.autosaver = Autosaver(session, edits)
        self._recovered = RecoveredEdits(self.files, self.autosaver, around)
        self._is_given_up = False
        #: The actions on the chosen objects; other panels use them too.
        self.mending = ObjectActions(
            session,
            self.link.history,
            say=self.link.say,
            go_to=self._go_to,
            parent=panel,
            on_screen=self._on_screen,
            first_id=edits.next_id,
            settle=shapes.settle,
        )
        self.mending.asking = Asking(PREFERENCES.claims)
        self.corrected = CorrectedAnnotations(session, edits, self.mending, self.files)
        self._places = PlacesToDraw(around, panel, self.mending)
        panel.show_asking(self.mending.asking)

    @property
    def is_busy(self) -> bool:
        """Whether something is still to be compared or saved."""
        return self.edits.is_busy or self.shapes.is_busy or self.is_writing

    @property
    def is_writing(self) -> bool:
        """Whether files are being written or read."""
        return self.files.is_busy

    @classmethod
    def shortcuts(cls) -> tuple[tuple[Shortcut, Callable[[Any], None]], ...]:
        """Return the key that switches editing on and off."""
        actions = (
            (text.shortcut, partial(_do, action=action)) for action, text in ACTION_TEXTS.items()
        )
        return (
            (Shortcut("Alt-d", "switch editing on or off", "toggle_editing"), cls.toggle),
            *actions,
            *((key, partial(_undo, redo=redo)) for redo, key in enumerate(UNDO_KEYS)),
            (SAVE_CORRECTED, lambda presenter: presenter.corrected.save()),
        )

    def connections(self) -> Connections:
        """Return the signals of session and panel, and their slots."""
        session, panel, files = self.session, self.panel, self.files
        return [
            (session.region_changed, self._on_region),
            (session.teams_came, self._on_region),
            (session.team_changed, self._on_team),
            (session.selection_changed, self._on_selection),
            (session.edited, self._on_edited),
            (self.link.edits_rested, self.refresh),
            (session.copies_changed, self.edits.forget_discarded),
            (session.edits_discarded, self._on_discarded),
            (self.edits.changed, self._on_changed),
            (self.shapes.changed, self.refresh),
            (self.around.viewer.layers.selection.events.active, self._on_active),
            (panel.edit.pushed, self._on_edit),
            (panel.shapes.pushed, self._on_shapes),
            (panel.side.chosen, self._on_side),
            (panel.new_object.pushed, self._on_new_object),
            (panel.new_class.chosen, self._on_new_class),
            (panel.object_class.chosen, self.edits.set_class),
            (panel.undo.pushed, self.undo),
            (panel.redo.pushed, partial(self.undo, redo=True)),
            (panel.action_wanted, self.do),
            (panel.asking_chosen, self._on_asking),
            (self.link.history.changed, self._show_steps),
            (panel.save.pushed, files.save_as),
            (panel.corrected_wanted, self.corrected.save),
            (panel.open.pushed, files.open_file),
            (panel.discard.pushed, self.discard),
            (panel.place_wanted, self._on_place),
            (panel.restore.pushed, self._recovered.restore),
            (panel.discard_left.pushed, self._recovered.discard),
            (panel.shown, self.refresh),
        ]

    def begin(self) -> None:
        """Watch the layers, and offer what an earlier window left unsaved."""
        self.edits.watch()
        self._recovered.look(title=self.title)

    def close(self) -> None:
        """Let go of the layers; unsaved edits are kept for a restart."""
        self.files.close()
        self.shapes.close()
        self.autosaver.close(discard=self._is_given_up)
        self.edits.close()

    def may_leave(self) -> bool:
        """Ask before edits that are not saved are lost; True if they may be."""
        if not self.edits.unsaved:
            return True
        lines = [f"{part.region}: {part.words}" for part in self.edits.unsaved]
        answers = {SAVE: SAVE, DISCARD: DISCARD, "Cancel": ""}
        text = "These edits are not saved:"
        question = BoxQuestion("Unsaved edits", text, answers, lost=lines, usual=SAVE)
        answer = ask(self.panel.window(), question)
        if answer == SAVE:
            return self.files.save_all()
        self._is_given_up = answer == DISCARD
        return self._is_given_up

    def refresh(self) -> None:
        """Show the edits, and their effect."""
        panel, is_there = self.panel, self.session.evaluation is not None
        panel.edit.setChecked(self.edits.is_on)
        panel.shapes.setChecked(self.shapes.is_on)
        for field in (panel.edit, panel.shapes, panel.side):
            field.setEnabled(is_there)
        panel.new_object.setEnabled(self.edits.is_on)
        self._show_steps()
        self._fill_menus()
        self._recovered.show()
        if panel.isVisible():  # if not, when it comes to the front
            self._show_copies()

    def _show_steps(self) -> None:
        history, panel = self.link.history, self.panel
        panel.undo.setEnabled(history.may_undo())
        panel.redo.setEnabled(history.may_undo(redo=True))

    def discard(self) -> None:
        """Ask, and go back to the files."""
        words = " and ".join(part.words for part in self.edits.copies_here())
        text = f"Discard what was drawn in this region ({words})? This cannot be undone."
        if words and is_confirmed(self.panel, "Discard edits", text):
            self.edits.discard()

    def toggle(self) -> None:
        """Switch editing on or off."""
        self.panel.edit.setChecked(not self.edits.is_on)
        self._on_edit()

    def do(self, action: ObjectAction) -> None:
        """Do an action on the chosen objects of the shown region."""
        if reason := self.link.why_unseen:
            show_info(reason)
            return
        targets, chosen = self.targets(), self.link.failures.chosen
        self.mending.do(action, targets, elsewhere=max(len(chosen) - len(targets), 0))

    def targets(self) -> list[Target]:
        """Return the chosen objects of the region and team that are shown."""
        snapshot, selection = self.session.snapshot, self.session.selection
        if snapshot is None:
            return []
        chosen = [
            (name.side, name.id)
            for name in self.link.failures.chosen
            if name.region == snapshot.region.name and name.team == self.session.team
        ]
        if chosen or selection is None:
            return chosen
        shown = self.session.shown
        rows = self.link.panels.objects.selected_objects()
        if shown is None or len(rows) < 2:
            return [(selection.side, selection.id)]
        sides = {side: shown.outcomes.side(side).ids for side in Side}
        return [(side, int(sides[side][row])) for side, row in rows if row < len(sides[side])]

    def undo(self, *, redo: bool = False) -> None:
        """Undo the last step, or redo the one undone last."""
        if problem := self.link.history.undo(redo=redo):
            show_info(problem)

    def _go_to(self, region: str, team: str, target: Target | None) -> None:
        side, id_ = target or (None, None)
        self.link.go_to(region, side, id_, team=team)

    def _on_screen(self, targets: Iterable[Target]) -> list[QRect]:
        """Return where objects of this region are on the screen."""
        shown, canvas = self.session.shown, canvas_widget(self.around.viewer)
        if shown is None or canvas is None:
            return []
        found = []
        for side, id_ in targets:
            row = shown.outcomes.side(side).row_of(id_)
            if row is not None:
                box = shown.outcomes.side(side).bbox[row].tolist()
                y0, x0, y1, x1 = (round(value) for value in self.link.scene.camera.on_canvas(box))
                found.append(QRect(canvas.mapToGlobal(QPoint(x0, y0)), QSize(x1 - x0, y1 - y0)))
        return found

    def _on_asking(self, asking: Asking) -> None:
        self.mending.asking = asking
        PREFERENCES.claims = str(asking)

    # Display.

    def _show_copies(self) -> None:
        """Show the working copies, and their effect on the figures."""
        panel, session = self.panel, self.session
        copies = self.edits.copies_here()
        for button in (panel.save, panel.open):
            button.setEnabled(session.evaluation is not None)
        panel.corrected.setEnabled(session.has_drawn_annotations)
        panel.discard.setEnabled(bool(copies))
        self._places.show()
        panel.state.setText(
            state_text(
                session,
                copies,
                self.edits.unsaved,
                is_on=self.edits.is_on,
                draws_areas=self._draws_areas(),
            )
        )
        panel.show_difference(self._before() if copies else None, session.evaluation)

    def _before(self) -> Evaluation | None:
        """Return the evaluation of the files, under the same settings."""
        session, loaded = self.session, self.session.loaded
        if loaded is None or loaded.settings != session.settings:
            return None
        before = loaded.evaluations.get(session.team or "")
        is_flattened = before is not None and session.is_flattened
        return session.original_evaluation() if is_flattened else before

    def _fill_menus(self) -> None:
        session, panel = self.session, self.panel
        sides = [
            Choice(Side.REFERENCE, "annotation"),
            Choice(Side.PREDICTION, str(session.team)),
        ]
        classes = [Choice(name, name) for name in session.cohort.scheme.names]
        automatic = Choice(None, f"automatic: {self.edits.new_class()}")
        panel.side.show_among(sides, self.edits.active_side or panel.chosen_side())
        panel.new_class.show_among([automatic, *classes], self.edits.chosen_class)
        panel.object_class.show_among(classes, self.edits.selected_class())
        panel.object_class.setEnabled(session.selection is not None)

    def _draws_areas(self) -> bool:
        """Return whether napari's tools work on the shapes of ambiguous areas."""
        layer = self.shapes.layer
        return layer is not None and self.around.viewer.layers.selection.active is layer

    # What happens elsewhere.

    def _on_active(self, _event: Any) -> None:
        self.refresh()

    def _on_changed(self) -> None:
        self._is_given_up = False

    def _on_region(self, _snapshot: Any) -> None:
        self.edits.watch()
        self.shapes.show_region()
        if self.edits.is_on:
            self.edits.activate(self.panel.chosen_side())
        self._places.arrive()
        self.refresh()

    def _on_discarded(self, *_: object) -> None:
        self.edits.forget_histories()
        if (snapshot := self.session.snapshot) is not None:
            self.link.history.forget_region(snapshot.region.name)
            self.mending.forget_region(snapshot.region.name)

    def _on_team(self, _name: str) -> None:
        active = self.edits.active_side
        self.edits.watch()
        if self.edits.is_on:
            self.edits.activate(active or self.panel.chosen_side())
        self.refresh()

    def _on_selection(self, _selection: Any) -> None:
        self.edits.follow_selection()
        self._fill_menus()

    def _on_edited(self, result: EditedEvaluation) -> None:
        self.edits.on_edited(result)
        if result.is_area:
            snapshot = self.session.snapshot
            self.link.scene.show_ambiguous(None if snapshot is None else snapshot.ambiguous)
            self.shapes.follow_area(is_step=bool(self.mending.applying))

    # User actions.

    def _on_edit(self) -> None:
        on = self.panel.edit.isChecked()
        if self.edits.set_on(on, self.panel.chosen_side()) and on:
            _raise_layer_controls(self.panel.window())
        self.refresh()

    def _on_shapes(self) -> None:
        self.shapes.set_on(self.panel.shapes.isChecked())
        if self.shapes.is_on:
            _raise_layer_controls(self.panel.window())
        elif self.edits.is_on:
            self.edits.activate(self.panel.chosen_side())  # the brush works again
        self.refresh()

    def _on_side(self, side: Side) -> None:
        if self.edits.is_on:
            self.edits.activate(side)

    def _on_place(self, number: str) -> None:
        """Show a place, and let the brush paint the annotation there."""
        self._places.go_to(number)
        self.panel.side.choose(Side.REFERENCE)

    def _on_new_object(self) -> None:
        self.edits.activate(self.panel.chosen_side())
        self.edits.start_new_object()

    def _on_new_class(self, name: str | None) -> None:
        self.edits.chosen_class = name


UNDO_KEYS = (
    Shortcut("Ctrl-z", "undo the last step", "undo_edit"),
    Shortcut("Ctrl-Shift-z", "redo the last undone step", "redo_edit"),
)

SAVE_CORRECTED = Shortcut("", "save corrected annotation", "save_corrected_annotation")


def _do(presenter: EditsPresenter, *, action: ObjectAction) -> None:
    presenter.do(action)


def _undo(presenter: EditsPresenter, *, redo: int) -> None:
    presenter.undo(redo=bool(redo))


def _raise_layer_controls(window: QWidget | None) -> None:
    """Show napari's brushes and pens."""
    _, dock = napari_docks(window)
    if dock is not None:
        dock.show()
        dock.raise_()
