"""Editing: switched on and off, what it did to the figures, saved or discarded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from psygnal import Signal
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import (
    QComboBox,
    QFileDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QMessageBox,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.text import english_list
from napari_panoptic.io.autosaves import Autosave
from napari_panoptic.io.formats.format import LoadedMasks, Objects
from napari_panoptic.io.formats.saving import (
    files_of,
    form_for,
    losses_of,
    read_objects,
    readable_forms,
    replaced_by,
    writable_forms,
    write_objects,
)
from napari_panoptic.nuclei.display import styles
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import METRIC_TEXTS
from napari_panoptic.nuclei.session import EditedEvaluation
from napari_panoptic.nuclei.values.cohort import ClassScheme, Cohort
from napari_panoptic.nuclei.values.labels import LabelImage
from napari_panoptic.nuclei.values.vocabulary import Side
from napari_panoptic.viewer.editing.ambiguous_shapes import AmbiguousShapes
from napari_panoptic.viewer.editing.autosaving import Autosaver
from napari_panoptic.viewer.editing.live_edits import Copied, LiveEdits
from napari_panoptic.viewer.jobs.jobs import Several
from napari_panoptic.viewer.jobs.timers import single_shot, stop_timers
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.kit.napari_private import napari_docks
from napari_panoptic.viewer.kit.replacing import may_replace
from napari_panoptic.viewer.kit.shown import PlainLabel, show_error, show_info, show_warning, shown
from napari_panoptic.viewer.kit.widgets import COMPACT_COMBO, Cell, FigureTable, separator
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import Connections, DeskPart
from napari_panoptic.viewer.panels.slide_texts import on_slide

FOLLOW_MS = 60
"""How long after an edit the comparison follows."""
AS_SELECTED = "as the selected object"
NOTHING_EDITED = (
    "Nothing is edited here. Press Edit, choose the brush (2) or the eraser (1), and paint on the "
    "image: every figure follows. The brush draws a new object, or continues the selected one. "
    "Files are never changed; what you draw is a working copy."
)
NOTHING_DRAWN = (
    "Nothing is drawn yet. Choose the brush (2) or the eraser (1) and paint on the image: every "
    "figure follows. The brush continues one object, also elsewhere, until you press “New "
    "object” (or M) or select another one. Files are never changed; what you draw is a copy."
)
GOES_ON = "The brush continues one object, also elsewhere, until “New object” (or M)."
DRAW_AREAS = (
    "Ambiguous areas: draw one as a polygon (P; a double click ends it), a rectangle (R) or an "
    "ellipse (E). Select one (S) to move it, or to delete it (Delete). Undo (Ctrl+Z) takes back "
    "what was done last to them."
)
PREPARING = "Preparing shapes. The first time this takes some seconds…"
STILL_UNSAVED = (
    "What you drew counts as not saved until it is saved in a format that holds all of it, such as "
    "a label image"
)
AREAS_LEFT_OUT = (
    "Ambiguous areas of the file were left out: they are the annotation's. To have them, choose "
    "the annotation beside Edit, and open the file again"
)
WILL_FLATTEN = (
    "Objects of this region share pixels: as soon as one is edited, all are flattened, and so are "
    "the figures."
)
NO_REGION = "Nothing can be edited: open a cohort and choose a region with an annotation."
T = TypeVar("T")
_LENGTHS = ("mean_hausdorff_px",)
_Written = tuple[tuple[Path, ...], tuple[Finding, ...], str]
"""Files, what they do not hold, and what went wrong."""


class EditsPanel(QScrollArea):
    """The controls of editing; knows nothing of what they do."""

    edit_toggled = Signal(bool)
    shapes_toggled = Signal(bool)
    side_chosen = Signal(Side)
    new_object_wanted = Signal()
    new_class_chosen = Signal(object)  # str | None
    class_chosen = Signal(str)
    undo_wanted = Signal()
    redo_wanted = Signal()
    save_wanted = Signal()
    open_wanted = Signal()
    discard_wanted = Signal()
    restore_wanted = Signal()
    discard_left_wanted = Signal()
    shown = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.edit = _button("Edit", "Make the objects editable (Alt+D).", checkable=True)
        self.side = _menu("Whose objects the brush paints: the annotation's or the team's.")
        self.new_object = _button("New object", "Paint a new object with the brush.")
        self.new_class = _menu("The class of newly painted objects.")
        self.object_class = _menu(
            "The class of the selected object; choose another to change it. Undo (Ctrl+Z) takes "
            "it back, as it does a stroke."
        )
        self.undo = _button(
            "Undo",
            "Take back what was done last on the active layer: a stroke, a class given, or an "
            "ambiguous area (Ctrl+Z).",
        )
        self.redo = _button("Redo", "Redo the last undone change (Ctrl+Shift+Z).")
        self.shapes = _button(
            "Ambiguous areas as shapes",
            "Draw, move and delete the areas that the annotation excludes; figures follow.",
            checkable=True,
        )
        self.state = PlainLabel(NO_REGION)
        self.state.setWordWrap(True)
        self.state.setToolTip(
            "A working copy is what you drew; the files are as they were until you save elsewhere."
        )
        self.differences = FigureTable()
        self.save = _button("Save as…", "Write what you drew to a file of your choice.")
        self.open = _button(
            "Open…",
            "Go on with objects that were saved: those of the side chosen above become those of a "
            "file, as if you had drawn them.",
        )
        self.discard = _button("Discard…", "Go back to the files of this region.")
        self.left = QFrame()
        self.left.setFrameShape(QFrame.Shape.StyledPanel)
        self.left_state = PlainLabel()
        self.left_state.setWordWrap(True)
        self.restore = _button("Restore", "Continue with these edits, as if just drawn.")
        self.discard_left = _button("Discard", "Delete these edits for good.")
        self._lay_out()
        self._connect()
        self.show_left("", "")

    def show_left(self, text: str, button: str, *, may_restore: bool = True) -> None:
        """Offer edits of an earlier window; an empty text hides the offer."""
        self.left.setVisible(bool(text))
        self.left_state.setText(text)
        self.restore.setText(shown(button))
        self.restore.setEnabled(may_restore)

    def show_difference(self, before: Evaluation | None, now: Evaluation | None) -> None:
        """Show every figure of the files beside that of the working copy."""
        both = before is not None and now is not None
        self.differences.setVisible(both)
        if before is None or now is None:
            return
        header = [
            Cell("", "Figures of this region and team."),
            Cell("files", "From the files."),
            Cell("edited", "From the working copy."),
            Cell("difference", "Edited minus files."),
        ]
        rows = []
        for name, about in METRIC_TEXTS.items():
            old, new = float(before.metrics[name]), float(now.metrics[name])
            texts = [_text(name, value) for value in (old, new)]
            rows.append(
                [
                    Cell(about.caption + (" px" if name in _LENGTHS else ""), about.meaning),
                    *(
                        Cell(text, _why(value))
                        for text, value in zip(texts, (old, new), strict=True)
                    ),
                    Cell(signed(name, old, new), f"{new - old:+.6f}", bold=texts[0] != texts[1]),
                ]
            )
        for name, old_count, new_count in _counts(before, now):
            change = Cell(signed_count(new_count - old_count), bold=old_count != new_count)
            rows.append(
                [
                    Cell(name, f"Number of {name}."),
                    Cell(styles.count_text(old_count)),
                    Cell(styles.count_text(new_count)),
                    change,
                ]
            )
        self.differences.fill(header, rows)

    def showEvent(self, event: QShowEvent | None) -> None:  # noqa: N802
        """Be up to date when the panel comes to the front."""
        super().showEvent(event)
        self.shown.emit()

    def _lay_out(self) -> None:
        content = QWidget()
        layout = QVBoxLayout(content)
        layout.setContentsMargins(4, 4, 4, 2)
        layout.setSpacing(4)
        first, second = QHBoxLayout(), QHBoxLayout()
        for widget in (self.edit, self.side, self.new_object):
            first.addWidget(widget)
        for widget in (self.undo, self.redo, self.shapes):
            second.addWidget(widget)
        second.addStretch(1)
        grid = QGridLayout()
        grid.setHorizontalSpacing(6)
        for line, (text, field) in enumerate(
            (("New objects", self.new_class), ("Selected object", self.object_class))
        ):
            label = PlainLabel(text)
            label.setToolTip(field.toolTip())
            grid.addWidget(label, line, 0)
            grid.addWidget(field, line, 1)
        grid.setColumnStretch(1, 1)
        buttons = QHBoxLayout()
        for button in (self.save, self.open, self.discard):
            buttons.addWidget(button)
        buttons.addStretch(1)
        left, choices = QVBoxLayout(self.left), QHBoxLayout()
        left.setContentsMargins(6, 4, 6, 4)
        left.addWidget(self.left_state)
        for button in (self.restore, self.discard_left):
            choices.addWidget(button)
        choices.addStretch(1)
        left.addLayout(choices)
        layout.addWidget(self.left)
        for part in (first, grid, second):
            layout.addLayout(part)
        layout.addWidget(separator())
        layout.addWidget(self.state)
        layout.addLayout(buttons)
        layout.addWidget(self.differences)
        layout.addStretch(1)
        self.setWidget(content)

    def chosen_side(self) -> Side:
        """Return which side is to be edited."""
        return Side(self.side.currentData() or Side.PREDICTION)  # PySide gives texts

    def _connect(self) -> None:
        self.edit.toggled.connect(lambda on: self.edit_toggled.emit(on))
        self.shapes.toggled.connect(lambda on: self.shapes_toggled.emit(on))
        self.side.activated.connect(lambda _: self.side_chosen.emit(self.chosen_side()))
        self.new_class.activated.connect(
            lambda at: self.new_class_chosen.emit(self.new_class.itemData(at))
        )
        self.object_class.activated.connect(
            lambda at: self.class_chosen.emit(self.object_class.itemText(at))
        )
        for button, signal in (
            (self.new_object, self.new_object_wanted),
            (self.undo, self.undo_wanted),
            (self.redo, self.redo_wanted),
            (self.save, self.save_wanted),
            (self.open, self.open_wanted),
            (self.discard, self.discard_wanted),
            (self.restore, self.restore_wanted),
            (self.discard_left, self.discard_left_wanted),
        ):
            button.clicked.connect(lambda _=False, s=signal: s.emit())


class EditsPart(DeskPart):
    """Joins the panel, the layers and the session's working copies."""

    title = "Edits"
    key = "Alt-e"

    def __init__(self) -> None:
        super().__init__()
        self._panel = EditsPanel()
        self.edits: LiveEdits | None = None
        self.shapes: AmbiguousShapes | None = None
        self._jobs = Several(ended=self._on_job_ended)
        self._autosaver: Autosaver | None = None
        self._left: list[tuple[Autosave, bool]] = []
        self._is_given_up = False
        self._later = single_shot(FOLLOW_MS, self.refresh)

    @property
    def widget(self) -> EditsPanel:
        """The panel."""
        return self._panel

    @property
    def is_busy(self) -> bool:
        """Whether something is still to be compared or saved."""
        waits = self.edits is not None and self.edits.is_busy
        draws = self.shapes is not None and self.shapes.is_busy
        return waits or draws or self._later.isActive() or self._jobs.is_busy

    @property
    def is_autosaving(self) -> bool:
        """Whether unsaved edits are still to be written for a restart."""
        return self._autosaver is not None and self._autosaver.is_busy

    def shortcuts(self) -> tuple[tuple[Shortcut, Callable[[], None]], ...]:
        """Return the key that switches editing on and off."""
        return ((Shortcut("Alt-d", "switch editing on or off", "toggle_editing"), self.toggle),)

    def connections(self, around: Surroundings) -> Connections:
        """List what is listened to."""
        session, panel = around.session, self._panel
        return [
            (session.region_changed, self._on_region),
            (session.team_changed, self._on_team),
            (session.selection_changed, self._on_selection),
            (session.edited, self._on_edited),
            (session.copies_changed, self._on_copies),
            (panel.edit_toggled, self._on_edit),
            (panel.shapes_toggled, self._on_shapes),
            (panel.side_chosen, self._on_side),
            (panel.new_object_wanted, self._on_new_object),
            (panel.new_class_chosen, self._on_new_class),
            (panel.class_chosen, self._on_class),
            (panel.undo_wanted, self._on_undo),
            (panel.redo_wanted, self._on_redo),
            (panel.save_wanted, self.save_as),
            (panel.open_wanted, self.open_file),
            (panel.discard_wanted, self.discard),
            (panel.restore_wanted, self.restore_left),
            (panel.discard_left_wanted, self.discard_left),
            (panel.shown, self.refresh),
        ]

    def attach(self, around: Surroundings) -> None:
        """Watch the layers of a cohort."""
        self.edits = LiveEdits(around.viewer, around.session, around.link.scene)
        self.shapes = AmbiguousShapes(around.viewer, around.session, around.link.scene, self.edits)
        self._autosaver = Autosaver(around.session, self.edits)
        self._is_given_up = False
        self.edits.changed.connect(self._on_changed)
        self.shapes.changed.connect(self._refresh_later)
        around.viewer.layers.selection.events.active.connect(self._refresh_later)
        super().attach(around)
        self.edits.watch()
        self._look_for_left(is_start=True)

    def detach(self) -> None:
        """Let go of the layers."""
        around = self.around
        if around is not None:
            around.viewer.layers.selection.events.active.disconnect(self._refresh_later)
        if self.shapes is not None:
            self.shapes.close()
        if self._autosaver is not None:
            self._autosaver.close(discard=self._is_given_up)
            self._autosaver = None
        self._left = []
        if self.edits is not None:
            self.edits.close()
        self.edits = self.shapes = None
        stop_timers(self._later)
        super().detach()

    def may_leave(self) -> bool:
        """Ask before edits that are not saved are lost; True if they may be."""
        if self.edits is None or not self.edits.unsaved:
            return True
        lines = [f"{copied.region}: {copied.words}" for copied in self.edits.unsaved]
        more = f"\n… and {len(lines) - 8} more" if len(lines) > 8 else ""
        box = QMessageBox(self._panel.window())
        box.setIcon(QMessageBox.Icon.Warning)
        box.setWindowTitle("Unsaved edits")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(shown("These edits are not saved:\n" + "\n".join(lines[:8]) + more))
        save = box.addButton("Save…", QMessageBox.ButtonRole.AcceptRole)
        discard = box.addButton("Discard", QMessageBox.ButtonRole.DestructiveRole)
        cancel = box.addButton("Cancel", QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(save)
        box.setEscapeButton(cancel)
        box.exec()
        if box.clickedButton() is save:
            return self._save_all()
        self._is_given_up = box.clickedButton() is discard
        return self._is_given_up

    def _save_all(self) -> bool:
        """Ask where to save what is not saved, and write it; True if all of it is saved."""
        if self.edits is None or self.around is None:
            return True
        unsaved = self.edits.unsaved_objects()
        if len(unsaved) == 1:
            path = self._ask_where(unsaved[0])
            paths = [] if path is None else [path]
        else:
            paths = self._ask_folder(unsaved)
        if not paths:
            return False
        for path, objects in zip(paths, unsaved, strict=True):
            before = self.edits.revision
            self._take_saved(
                path, objects, before, _write(path, objects, self.around.session.cohort)
            )
        return not self.edits.unsaved

    def _ask_folder(self, unsaved: list[Objects]) -> list[Path]:
        """Ask for a folder for several label images; give no path where there is none."""
        folder = QFileDialog.getExistingDirectory(self._panel, "Save label images in a folder")
        if not folder:
            return []
        paths = [Path(folder) / f"{_suggested_name(objects)}.tif" for objects in unsaved]
        files = [file for path in paths for file in replaced_by(path)]
        return paths if may_replace(self._panel, files) else []

    def _look_for_left(self, *, is_start: bool = False) -> None:
        """Look in the background for edits that an earlier window left unsaved."""
        autosaver = self._autosaver
        if autosaver is None:
            return

        def take(found: list[tuple[Autosave, bool]]) -> None:
            if self._autosaver is autosaver and self.around is not None:
                self._left = found
                self.refresh()
                if found and is_start:
                    self.around.link.reveal(self.title)

        self._start(autosaver.left_behind, take)

    def _left_here(self) -> list[tuple[Autosave, bool]]:
        """List the left edits of the region that is shown."""
        snapshot = None if self.around is None else self.around.session.snapshot
        name = None if snapshot is None else snapshot.region.name
        return [(autosave, same) for autosave, same in self._left if autosave.part.region == name]

    def _show_left(self) -> None:
        """Offer what an earlier window left unsaved."""
        here = self._left_here()
        offered = here or self._left
        if not offered or self.around is None:
            self._panel.show_left("", "")
            return
        when = datetime.fromtimestamp(max(a.saved_at for a, _ in offered))
        parts = ", ".join(autosave.part.words for autosave, _ in here)
        elsewhere = list(dict.fromkeys(a.part.region for a, _ in self._left if (a, _) not in here))
        text = f"Unsaved edits of an earlier session ({when:%d %B %Y, %H:%M}): {parts}."
        if not here:
            text = f"Unsaved edits of an earlier session in {english_list(elsewhere)}."
        elif elsewhere:
            text += f" More in {english_list(elsewhere)}."
        if not all(is_same for _, is_same in here):
            text += (
                " ⚠ The files have changed since. Restoring shows the objects as they were drawn, "
                "not what the files contain now."
            )
        snapshot = self.around.session.snapshot
        may_restore = not here or (snapshot is not None and not snapshot.pending)
        button = "Restore" if here else f"Go to {elsewhere[0]}"
        self._panel.show_left(text, button, may_restore=may_restore)

    def restore_left(self) -> None:
        """Continue with what an earlier window left of this region, or go to its region."""
        around, edits, autosaver = self.around, self.edits, self._autosaver
        if around is None or edits is None or autosaver is None or not self._left:
            return
        here = [autosave for autosave, _ in self._left_here()]
        if not here:
            around.link.go_to(self._left[0][0].part.region)
            return
        if not all(self._may_replace(autosave.part) for autosave in here):
            return
        team = around.session.team
        for autosave in here:
            try:
                self._restore(autosave, edits)
            except PanopticError as error:
                show_error(f"{autosave.part.words} cannot be restored: {error}")
                continue
            autosaver.adopt(autosave)
            self._left = [at for at in self._left if at[0] != autosave]
        if team is not None:
            around.session.set_team(team)
        if self.shapes is not None:
            self.shapes.show_region()
        self._look_for_left()

    def _restore(self, autosave: Autosave, edits: LiveEdits) -> None:
        """Let a side of the region that is shown, or its ambiguous area, be what was drawn."""
        session, part, content = self.around.session, autosave.part, autosave.read()  # type: ignore[union-attr]
        if session.snapshot is None or content.shape != session.snapshot.shape:
            raise PanopticError("the image has another size now")
        if part.team is not None:
            session.set_team(part.team)
        if isinstance(content, LabelImage):
            edits.open_objects(Side(part.side or Side.REFERENCE), LoadedMasks(content, None))
        else:
            edits.set_ambiguous(content)

    def discard_left(self) -> None:
        """Ask, and delete the edits that are offered."""
        offered = [autosave for autosave, _ in self._left_here() or self._left]
        if self._autosaver is None or not offered:
            return
        words = ", ".join(f"{autosave.part.region}: {autosave.part.words}" for autosave in offered)
        answer = QMessageBox.question(
            self._panel,
            "Discard edits",
            shown(f"Delete the unsaved edits of an earlier session ({words})?"),
        )
        if answer == QMessageBox.StandardButton.Yes:
            for autosave in offered:
                self._autosaver.discard(autosave)
            self._left = [at for at in self._left if at[0] not in offered]
            self.refresh()
            self._look_for_left()

    def refresh(self) -> None:
        """Show what is edited, and what it did."""
        around, edits, panel = self.around, self.edits, self._panel
        if around is None or edits is None:
            return  # a timer ran out after the cohort was left
        self._later.stop()
        session = around.session
        evaluation = session.evaluation
        with QSignalBlocker(panel.edit), QSignalBlocker(panel.shapes):
            panel.edit.setChecked(edits.is_on)
            shapes = self.shapes
            panel.shapes.setChecked(shapes is not None and (shapes.is_on or shapes.is_preparing))
        for button in (panel.edit, panel.shapes):
            button.setEnabled(evaluation is not None)
        panel.new_object.setEnabled(edits.is_on)
        history = self.shapes if self.shapes is not None and self._draws_areas() else edits
        panel.undo.setEnabled(history.may_undo())
        panel.redo.setEnabled(history.may_undo(redo=True))
        panel.side.setEnabled(evaluation is not None)
        self._fill_menus()
        self._show_left()
        if not panel.isVisible():
            return  # shown when the panel comes to the front
        copies = self._copies_here()
        for button in (panel.save, panel.open):
            button.setEnabled(evaluation is not None)
        panel.discard.setEnabled(bool(copies))
        panel.state.setText(self._state_text(copies))
        loaded = session.loaded
        known = loaded is not None and loaded.settings == session.settings and copies
        before = loaded.evaluations.get(session.team or "") if loaded and known else None
        if before is not None and session.is_flattened:
            before = session.original_evaluation()  # flattened, too
        panel.show_difference(before, evaluation)

    def save_as(self) -> None:
        """Ask for a place, and write the side that is edited there."""
        side = self._side_to_save()
        if side is None or self.edits is None or self.around is None:
            return
        objects = self.edits.objects_to_save(side)
        path = self._ask_where(objects)
        if path is not None:
            self.save_to(path, objects)

    def _ask_where(self, objects: Objects) -> Path | None:
        """Ask for the file to save objects in; None if the user cancels."""
        endings = {f"{f.title} (*{f.endings[0]})": f.endings[0] for f in writable_forms()}
        path, chosen = QFileDialog.getSaveFileName(
            self._panel,
            f"Save {objects.team or 'the annotation'} as",
            _suggested_name(objects),
            ";;".join(endings),
        )
        if not path:
            return None
        target = Path(path)
        if form_for(target) is None and chosen in endings:
            target = target.with_name(target.name + endings[chosen])
        # The dialog has asked about the name that was chosen, as it was written.
        was_asked = target == Path(path) and target.exists()
        return target if was_asked or may_replace(self._panel, replaced_by(target)) else None

    def save_to(self, path: Path, objects: Objects) -> None:
        """Write objects in the background, and say when they are saved."""
        around, edits = self.around, self.edits
        if around is None or edits is None:
            return
        before = edits.revision

        def take(answer: _Written) -> None:
            self._take_saved(path, objects, before, answer, edits)

        write = partial(_write, path, objects, around.session.cohort)
        self._start(write, take, f"Saving {path.name}…")

    def _take_saved(
        self,
        path: Path,
        objects: Objects,
        before: int,
        answer: _Written,
        edits: LiveEdits | None = None,
    ) -> None:
        """Report what was written; what was not edited since the revision `before` is saved."""
        written, losses, problem = answer
        if problem:
            show_error(problem)
            return
        if losses:
            lost = ". ".join(finding.message for finding in losses)
            show_warning(
                f"Saved, but {path.name} cannot hold all: {lost}. It is in {path.parent}. "
                f"{STILL_UNSAVED}"
            )
            return
        show_info("Saved " + ", ".join(at.name for at in written) + f" in {path.parent}")
        edits = edits or self.edits
        if edits is None or self.edits is not edits:
            return
        saved = [Copied(objects.region, objects.side, objects.team or None)]
        if objects.side is Side.REFERENCE:
            saved.append(Copied(objects.region, None))
        edits.note_saved(at for at in saved if edits.last_change(at) <= before)

    def _start(self, compute: Callable[[], T], take: Callable[[T], None], state: str = "") -> None:
        """Read or write in another thread, and show that meanwhile."""
        if state:
            self._panel.state.setText(state)
        self._jobs.start(compute, take)

    def _on_job_ended(self) -> None:
        if self.around is not None:
            self.refresh()

    def open_file(self) -> None:
        """Ask for a file, and let the side that is chosen have its objects."""
        if self.edits is None or self.around is None or self.around.session.snapshot is None:
            return
        copied = self._side_to_open()
        endings = {f"{f.title} (*{f.endings[0]})": f for f in readable_forms()}
        every = " ".join(f"*{ending}" for f in endings.values() for ending in f.endings)
        path, _ = QFileDialog.getOpenFileName(
            self._panel,
            f"Open objects of {copied.words} in {copied.region}",
            "",
            ";;".join([f"Objects ({every})", *endings]),
        )
        if path and self._may_replace(copied):
            self.open_from(Path(path))

    def open_from(self, path: Path) -> None:
        """Read a file in the background, and let the side that is chosen have its objects."""
        around, edits = self.around, self.edits
        if around is None or edits is None or around.session.snapshot is None:
            return
        session, copied = around.session, self._side_to_open()
        side, area = copied.side or Side.PREDICTION, Copied(copied.region, None)
        shape, revision = around.session.snapshot.shape, edits.revision

        def take(answer: tuple[LoadedMasks | None, str]) -> None:
            masks, problem = answer
            if masks is not None and (self.edits is not edits or self._side_to_open() != copied):
                masks = None
                problem = f"{path.name} was not opened: another region or team is shown now"
            if masks is None:
                show_error(problem)
                return
            if edits.revision != revision and not self._may_replace(copied):
                return  # something was drawn while the file was read
            left_out = ""
            if side is Side.PREDICTION and masks.ambiguous is not None:
                masks, left_out = replace(masks, ambiguous=None), f". {AREAS_LEFT_OUT}"
            try:
                edits.open_objects(side, masks)
            except PanopticError as error:
                show_error(str(error))
                return
            if self.shapes is not None:
                self.shapes.show_region()  # else the next one drawn would be without the file's
            edits.note_saved([copied] if masks.ambiguous is None else [copied, area])
            odd = "".join(f". {finding.message}" for finding in masks.findings[:3])
            show_info(f"{copied.words} has the objects of {path.name}{left_out}{odd}")

        read = partial(_read, path, session.cohort.scheme, shape)
        self._start(read, take, f"Opening {path.name}…")

    def _may_replace(self, copied: Copied) -> bool:
        """Ask before what was drawn and not saved is replaced."""
        at_stake = [copied]
        if copied.side is Side.REFERENCE:
            at_stake.append(Copied(copied.region, None))  # the file may have areas
        lost = [] if self.edits is None else [at for at in at_stake if at in self.edits.unsaved]
        if not lost:
            return True
        words = " and ".join(at.words for at in lost)
        answer = QMessageBox.question(
            self._panel,
            "Replace edits",
            f"What you drew ({words}) is not saved, and will be replaced. Open the file?",
        )
        return answer == QMessageBox.StandardButton.Yes

    def _side_to_open(self) -> Copied:
        """Return the side to edit: that of the active layer, else the chosen one."""
        edits, around = self.edits, self.around
        active = None if edits is None else edits.active_side
        side = active or self._panel.chosen_side()
        if around is None or around.session.snapshot is None:
            return Copied("", side)
        team = around.session.team if side is Side.PREDICTION else None
        return Copied(around.session.snapshot.region.name, side, team)

    def discard(self) -> None:
        """Ask, and go back to the files."""
        if self.edits is None or not (copies := self._copies_here()):
            return
        words = " and ".join(copied.words for copied in copies)
        answer = QMessageBox.question(
            self._panel,
            "Discard edits",
            f"Discard what was drawn in this region ({words})? This cannot be undone.",
        )
        if answer == QMessageBox.StandardButton.Yes:
            self.edits.discard()

    def _side_to_save(self) -> Side | None:
        """Return which side is meant: the active layer's, else the one that was edited."""
        if self.edits is None or self.around is None:
            return None
        copies = self._copies_here()
        edited = [copied.side or Side.REFERENCE for copied in copies]
        session = self.around.session
        mine = [c.side or Side.REFERENCE for c in copies if c.team in (None, session.team)]
        active = self.edits.active_side
        if active is not None and (active in mine or not edited):
            return active
        return mine[0] if mine else self._panel.chosen_side()

    def _copies_here(self) -> list[Copied]:
        """List the working copies of the region that is shown."""
        if self.around is None or self.around.session.snapshot is None:
            return []
        session, snapshot = self.around.session, self.around.session.snapshot
        name = snapshot.region.name
        found = [Copied(name, Side.REFERENCE)] if session.is_drawn(Side.REFERENCE) else []
        found += [
            Copied(name, Side.PREDICTION, team)
            for team in snapshot.predictions
            if session.is_drawn(Side.PREDICTION, team)
        ]
        is_redrawn = session.is_area_drawn
        return [*found, Copied(name, None)] if is_redrawn else found

    def _state_text(self, copies: list[Copied]) -> str:
        if self.around is None:
            return NO_REGION
        if self.shapes is not None and self.shapes.is_preparing:
            return PREPARING
        if self.around.session.evaluation is None:
            return on_slide(self.around.session.snapshot, slide_texts.EDITS, NO_REGION)
        if not copies or self.edits is None:
            shown = self.around.session.snapshot
            is_kept = shown is not None and shown.keeps_overlaps
            is_on = self.edits is not None and self.edits.is_on
            text = NOTHING_DRAWN if is_on else NOTHING_EDITED
            if self._draws_areas():
                text = DRAW_AREAS
            return f"{text} {WILL_FLATTEN}" if is_kept else text
        unsaved = set(self.edits.unsaved)
        lines = [f"{c.words} ({'not saved' if c in unsaved else 'saved'})" for c in copies]
        elsewhere = len({c.region for c in unsaved} - {copies[0].region})
        more = f" Not saved in {elsewhere} other region(s) either." if elsewhere else ""
        if self.around.session.is_flattened:
            more += " Both are compared with overlaps flattened."
        if self._draws_areas():
            more += f" {DRAW_AREAS}"
        elif self.edits.is_on:
            more += f" {GOES_ON}"
        return f"✎ Working copies: {', '.join(lines)}. The files are unchanged.{more}"

    def _draws_areas(self) -> bool:
        """Return whether napari's tools work on the shapes of ambiguous areas."""
        if self.around is None or self.shapes is None or self.shapes.layer is None:
            return False
        return self.around.viewer.layers.selection.active is self.shapes.layer

    def _fill_menus(self) -> None:
        if self.around is None or self.edits is None:
            return
        session, panel = self.around.session, self._panel
        names = list(session.cohort.scheme.names)
        _offer(panel.side, {"annotation": Side.REFERENCE, str(session.team): Side.PREDICTION})
        automatic = f"{AS_SELECTED}: {self.edits.new_class()}"
        _offer(panel.new_class, {automatic: None, **{name: name for name in names}})
        _offer(panel.object_class, {name: name for name in names})
        _choose(panel.new_class, self.edits.chosen_class)
        if (active := self.edits.active_side) is not None:
            _choose(panel.side, active)
        chosen, evaluation = session.selection, session.evaluation
        panel.object_class.setEnabled(chosen is not None)
        with QSignalBlocker(panel.object_class):
            if chosen is None or evaluation is None:
                panel.object_class.setCurrentIndex(-1)
            else:
                own = evaluation.outcomes.side(chosen.side)
                panel.object_class.setCurrentIndex(int(own.class_index[chosen.row]) - 1)

    def _refresh_later(self, _event: Any = None) -> None:
        if not self._later.isActive():
            self._later.start()

    def _on_changed(self) -> None:
        self._is_given_up = False
        self._refresh_later()

    def _on_region(self, _snapshot: Any) -> None:
        if self.edits is not None and self.shapes is not None:
            self.edits.watch()
            self.shapes.show_region()
            if self.edits.is_on:
                self.edits.activate(self._panel.chosen_side())
        self._refresh_later()

    def _on_team(self, _name: str) -> None:
        if self.edits is not None:
            active = self.edits.active_side
            self.edits.watch()
            if self.edits.is_on:
                self.edits.activate(active or Side.PREDICTION)
        self._refresh_later()

    def _on_copies(self) -> None:
        if self.edits is not None:
            self.edits.forget_discarded()

    def _on_selection(self, _selection: Any) -> None:
        if self.edits is not None:
            self.edits.follow_selection()
        self._refresh_later()

    def _on_edited(self, result: EditedEvaluation) -> None:
        if self.edits is None or self.shapes is None or self.around is None:
            return
        self.edits.on_edited(result)
        if result.edit is None and not self.shapes.is_on:
            snapshot = self.around.session.snapshot
            self.around.link.scene.show_ambiguous(None if snapshot is None else snapshot.ambiguous)
        self._refresh_later()

    def _on_edit(self, on: bool) -> None:
        if self.edits is None:
            return
        side = self._panel.chosen_side()
        if self.edits.set_on(on, side) and on:
            _raise_layer_controls(self._panel.window())
        self.refresh()

    def toggle(self) -> None:
        """Switch editing on or off."""
        if self.edits is not None:
            self._on_edit(not self.edits.is_on)

    def _on_shapes(self, on: bool) -> None:
        if self.shapes is not None:
            self.shapes.set_on(on)
            if self.shapes.is_on or self.shapes.is_preparing:
                _raise_layer_controls(self._panel.window())
            elif self.edits is not None and self.edits.is_on:
                self.edits.activate(self._panel.chosen_side())  # the brush works again
        self.refresh()

    def _on_side(self, side: Side) -> None:
        if self.edits is not None and self.edits.is_on:
            self.edits.activate(side)

    def _on_new_object(self) -> None:
        if self.edits is not None:
            self.edits.activate(self._panel.chosen_side())
            self.edits.start_new_object()

    def _on_new_class(self, name: str | None) -> None:
        if self.edits is not None:
            self.edits.chosen_class = name

    def _on_class(self, name: str) -> None:
        if self.edits is not None:
            self.edits.set_class(name)

    def _undo(self, *, redo: bool) -> None:
        if self.shapes is not None and self._draws_areas():
            self.shapes.undo(redo=redo)
        elif self.edits is not None:
            self.edits.undo(redo=redo)

    def _on_undo(self) -> None:
        self._undo(redo=False)

    def _on_redo(self) -> None:
        self._undo(redo=True)


def signed(name: str, before: float, now: float) -> str:
    """Write how a figure changed, with its sign; an en dash if one is undefined."""
    change = now - before
    if math.isnan(change):
        return styles.UNDEFINED
    text = _text(name, abs(change))
    # A change too small for the decimals still tells its direction.
    return text if not change else ("+" if change > 0 else "−") + text


def signed_count(change: int) -> str:
    """Write how a count changed, with its sign."""
    text = styles.count_text(abs(change))
    return text if not change else ("+" if change > 0 else "−") + text


def _text(name: str, value: float) -> str:
    return styles.decimal_text(value) if name in _LENGTHS else styles.ratio_text(value)


def _why(value: float) -> str:
    return "Undefined: there is nothing to measure." if math.isnan(value) else ""


def _counts(before: Evaluation, now: Evaluation) -> list[tuple[str, int, int]]:
    rows = []
    for title, side in (
        ("annotated objects", Side.REFERENCE),
        ("predicted objects", Side.PREDICTION),
    ):
        rows.append((title, len(before.outcomes.side(side)), len(now.outcomes.side(side))))
    for status in styles.STATUS_WORDS:
        side = Side.PREDICTION if status.value == "FP" else Side.REFERENCE
        old, new = (e.outcomes.side(side).count(status) for e in (before, now))
        rows.append((styles.STATUS_WORDS[status], old, new))
    return rows


def _suggested_name(objects: Objects) -> str:
    return f"{objects.region}_{objects.team or 'annotation'}_edited"


def _write(path: Path, objects: Objects, cohort: Cohort) -> _Written:
    """Write in a worker; give the files, what they do not hold, and what went wrong."""
    kept = files_of(cohort)  # thousands of looks, on a network perhaps
    for at in replaced_by(path):
        if at.resolve() in kept:
            reason = f"{at.name} is a file of the cohort, which stays as it is: choose another"
            return (), (), reason
    try:
        return write_objects(path, objects), losses_of(path, objects), ""
    except PanopticError as error:
        return (), (), str(error)


def _read(
    path: Path, scheme: ClassScheme, shape: tuple[int, int]
) -> tuple[LoadedMasks | None, str]:
    """Read in a worker; give the objects, or what went wrong."""
    try:
        return read_objects(path, scheme, shape), ""
    except PanopticError as error:
        return None, str(error)


def _button(text: str, tooltip: str, *, checkable: bool = False) -> QPushButton:
    button = QPushButton(text)
    button.setToolTip(tooltip)
    button.setCheckable(checkable)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the keys with the image
    return button


def _menu(tooltip: str) -> QComboBox:
    menu = QComboBox()
    menu.setToolTip(tooltip)
    menu.setStyleSheet(COMPACT_COMBO)
    menu.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    menu.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    menu.setMinimumContentsLength(6)
    menu.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    return menu


def _offer(menu: QComboBox, choices: dict[str, Any]) -> None:
    """Offer choices; what was chosen stays chosen."""
    choices = {shown(text): value for text, value in choices.items()}
    if [menu.itemText(at) for at in range(menu.count())] == list(choices):
        return
    before = menu.currentIndex()
    with QSignalBlocker(menu):
        menu.clear()
        for text, value in choices.items():
            menu.addItem(text, value)
        menu.setCurrentIndex(min(before, menu.count() - 1) if before >= 0 else menu.count() - 1)


def _choose(menu: QComboBox, value: Any) -> None:
    places = [at for at in range(menu.count()) if menu.itemData(at) == value]
    if places:
        with QSignalBlocker(menu):
            menu.setCurrentIndex(places[0])


def _raise_layer_controls(window: QWidget | None) -> None:
    """Show napari's brushes and pens."""
    _, dock = napari_docks(window)
    if dock is not None:
        dock.show()
        dock.raise_()
