"""Drawings: written to files, read from files, and recovered from an earlier window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from qtpy.QtWidgets import QFileDialog

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.cohorts.comparison import safe_name, unique_safe_names
from napari_panoptic.io.formats.format import LoadedMasks, Objects
from napari_panoptic.io.formats.saving import (
    form_for,
    losses_of,
    read_objects,
    readable_forms,
    replaced_by,
    writable_forms,
    write_objects,
)
from napari_panoptic.live.autosaves import Autosave, EditedPart
from napari_panoptic.live.session import Session
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.editing.ambiguous_shapes import AmbiguousShapes
from napari_panoptic.viewer.editing.autosaving import Autosaver
from napari_panoptic.viewer.editing.live_edits import LiveEdits
from napari_panoptic.viewer.jobs.jobs import Several
from napari_panoptic.viewer.kit.questions import folder_from, is_confirmed, may_replace, may_write
from napari_panoptic.viewer.kit.shown import show_error, show_info, show_warning
from napari_panoptic.viewer.panels.edits.panel import EditsPanel
from napari_panoptic.viewer.panels.part import Surroundings

STILL_UNSAVED = (
    "What you drew counts as not saved until it is saved in a format that holds all of it, such as "
    "a label image"
)
AREAS_LEFT_OUT = (
    "Ambiguous areas of the file were left out: they are the annotation's. To have them, choose "
    "the annotation beside Edit, and open the file again"
)
CHANGED_FILES = (
    " ⚠ The files have changed since. Restoring shows the objects as they were drawn, not what the "
    "files contain now."
)
T = TypeVar("T")
_Written = tuple[tuple[Path, ...], tuple[Finding, ...]]
"""Files, and the contents that they lack."""


class EditsFiles:
    """Saves drawings, and opens objects of files as if they had been drawn.

    Parameters
    ----------
    session
        The live state.
    edits, shapes
        The edits.
    panel
        Shows the progress of writing and reading, and names the side.
    ended
        Called after something was written or read, as long as this is not closed.
    """

    def __init__(
        self,
        session: Session,
        edits: LiveEdits,
        shapes: AmbiguousShapes,
        panel: EditsPanel,
        ended: Callable[[], None],
    ) -> None:
        self.session, self.edits, self.shapes = session, edits, shapes
        self.panel, self._ended = panel, ended
        self._jobs = Several(ended=self._on_job_ended)
        self.is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether something is being written or read."""
        return self._jobs.is_busy

    def close(self) -> None:
        """Touch no widget any more; files being written are still reported."""
        self.is_closed = True

    def start(self, compute: Callable[[], T], take: Callable[[T], None], state: str = "") -> None:
        """Read or write in another thread, and show that meanwhile."""
        if state:
            self.panel.state.setText(state)
        self._jobs.start(compute, take)

    # Saving.

    def save_as(self) -> None:
        """Ask for a place, and write the side that is edited there."""
        objects = self.edits.objects_to_save(self._side_to_save())
        path = self._ask_where(objects)
        if path is not None:
            self.save_to(path, objects)

    def save_to(self, path: Path, objects: Objects) -> None:
        """Write objects in the background, and say when they are saved."""
        take = partial(self._take_saved, path, objects, self.edits.revision)
        write = partial(_write, path, objects, self.session.cohort)
        self.start(write, take, f"Saving {path.name}…")

    def save_all(self) -> bool:
        """Ask where to save unsaved edits, and write them; True if all are saved."""
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
            try:
                written = _write(path, objects, self.session.cohort)
            except PanopticError as error:
                show_error(str(error))
            else:
                self._take_saved(path, objects, before, written)
        return not self.edits.unsaved

    def _side_to_save(self) -> Side:
        """Return which side is meant: the active layer's, else the one that was edited."""
        copies = self.edits.copies_here()
        mine = [c.side or Side.REFERENCE for c in copies if c.team in (None, self.session.team)]
        active = self.edits.active_side
        if active is not None and (active in mine or not copies):
            return active
        return mine[0] if mine else self.panel.chosen_side()

    def _ask_where(self, objects: Objects) -> Path | None:
        """Ask for the file to save objects in; None if the user cancels."""
        endings = {f"{f.title} (*{f.endings[0]})": f.endings[0] for f in writable_forms()}
        path, chosen = QFileDialog.getSaveFileName(
            self.panel,
            f"Save {objects.team or 'the annotation'} as",
            safe_name(_suggested_name(objects)),
            ";;".join(endings),
        )
        if not path:
            return None
        target = Path(path)
        if form_for(target) is None and chosen in endings:
            target = target.with_name(target.name + endings[chosen])
        may = may_write(self.panel, target, asked=Path(path), files=replaced_by(target))
        return target if may else None

    def _ask_folder(self, unsaved: list[Objects]) -> list[Path]:
        """Ask for a folder for several label images; return no path where there is none."""
        folder = folder_from(self.panel, "Save label images in a folder")
        if folder is None:
            return []
        # The annotation and a team called "annotation" have the same name.
        names = unique_safe_names(map(_suggested_name, unsaved))
        paths = [folder / f"{name}.tif" for name in names]
        files = [file for path in paths for file in replaced_by(path)]
        return paths if may_replace(self.panel, files) else []

    def _take_saved(self, path: Path, objects: Objects, before: int, answer: _Written) -> None:
        """Report written files; parts not edited since the revision `before` are saved."""
        written, losses = answer
        if losses:
            lost = ". ".join(finding.message for finding in losses)
            show_warning(
                f"Saved, but {path.name} cannot hold all: {lost}. It is in {path.parent}. "
                f"{STILL_UNSAVED}"
            )
            return
        show_info("Saved " + ", ".join(at.name for at in written) + f" in {path.parent}")
        if self.is_closed:
            return
        saved = [EditedPart(objects.region, objects.side, objects.team or None)]
        if objects.side is Side.REFERENCE:
            saved.append(EditedPart(objects.region, None))
        self.edits.note_saved(at for at in saved if self.edits.last_change(at) <= before)

    # Opening.

    def open_file(self) -> None:
        """Ask for a file, and let the side that is chosen have its objects."""
        part = self._side_to_open()
        if part is None:
            return
        endings = {f"{f.title} (*{f.endings[0]})": f for f in readable_forms()}
        every = " ".join(f"*{ending}" for f in endings.values() for ending in f.endings)
        path, _ = QFileDialog.getOpenFileName(
            self.panel,
            f"Open objects of {part.words} in {part.region}",
            "",
            ";;".join([f"Objects ({every})", *endings]),
        )
        if path and self.may_replace(part):
            self.open_from(Path(path))

    def open_from(self, path: Path) -> None:
        """Read a file in the background, and let the side that is chosen have its objects."""
        part, snapshot = self._side_to_open(), self.session.snapshot
        if part is None or snapshot is None:
            return
        take = partial(self._take_read, path, part, self.edits.revision)
        read = partial(read_objects, path, self.session.cohort.scheme, snapshot.shape)
        self.start(read, take, f"Opening {path.name}…")

    def may_replace(self, part: EditedPart) -> bool:
        """Ask before unsaved drawings are replaced."""
        at_stake = [part]
        if part.side is Side.REFERENCE:
            at_stake.append(EditedPart(part.region, None))  # the file may have areas
        lost = [at for at in at_stake if at in self.edits.unsaved]
        if not lost:
            return True
        words = " and ".join(at.words for at in lost)
        return is_confirmed(
            self.panel,
            "Replace edits",
            f"What you drew ({words}) is not saved, and will be replaced. Open the file?",
        )

    def _side_to_open(self) -> EditedPart | None:
        """Return the side to edit: that of the active layer, else the chosen one."""
        snapshot = self.session.snapshot
        if snapshot is None:
            return None
        side = self.edits.active_side or self.panel.chosen_side()
        return EditedPart(
            snapshot.region.name, side, self.session.team if side is Side.PREDICTION else None
        )

    def _take_read(self, path: Path, part: EditedPart, revision: int, masks: LoadedMasks) -> None:
        """Let a side have the objects of a file, unless something else is shown by now."""
        if self.is_closed or self._side_to_open() != part:
            show_error(f"{path.name} was not opened: another region or team is shown now")
            return
        if self.edits.revision != revision and not self.may_replace(part):
            return  # something was drawn while the file was read
        side, left_out = part.side or Side.PREDICTION, ""
        if side is Side.PREDICTION and masks.ambiguous is not None:
            masks, left_out = replace(masks, ambiguous=None), f". {AREAS_LEFT_OUT}"
        try:
            self.edits.open_objects(side, masks)
        except PanopticError as error:
            show_error(str(error))
            return
        self.shapes.show_region()  # else the next one drawn would be without the file's
        area = EditedPart(part.region, None)
        self.edits.note_saved([part] if masks.ambiguous is None else [part, area])
        odd = "".join(f". {finding.message}" for finding in masks.findings[:3])
        show_info(f"{part.words} has the objects of {path.name}{left_out}{odd}")

    def _on_job_ended(self) -> None:
        if not self.is_closed:
            self._ended()


class RecoveredEdits:
    """Offers what an earlier window left unsaved.

    Parameters
    ----------
    files
        Runs the search, and asks before something is replaced.
    autosaver
        Finds the autosaves.
    around
        Has the link, which leads to other regions.
    """

    def __init__(self, files: EditsFiles, autosaver: Autosaver, around: Surroundings) -> None:
        self._files, self._autosaver, self._link = files, autosaver, around.link
        self._session, self._panel = files.session, files.panel
        self._edits, self._shapes = files.edits, files.shapes
        self._left: list[tuple[Autosave, bool]] = []

    def look(self, *, title: str = "") -> None:
        """Look for autosaves in the background; bring a dock to the front if there are any.

        Parameters
        ----------
        title
            Title of the dock; empty to leave the docks as they are.
        """

        def take(found: list[tuple[Autosave, bool]]) -> None:
            if not self._files.is_closed:
                self._left = found
                self.show()
                if found and title:
                    self._link.reveal(title)

        self._files.start(self._autosaver.left_behind, take)

    def show(self) -> None:
        """Offer the autosaves of the shown region, or to go to another one."""
        here = self._here()
        offered = here or self._left
        if not offered:
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
            text += CHANGED_FILES
        snapshot = self._session.snapshot
        may_restore = not here or (snapshot is not None and not snapshot.pending)
        button = "Restore" if here else f"Go to {elsewhere[0]}"
        self._panel.show_left(text, button, may_restore=may_restore)

    def restore(self) -> None:
        """Continue with the autosave of this region, or go to its region."""
        here = [autosave for autosave, _ in self._here()]
        if not here:
            if self._left:
                self._link.go_to(self._left[0][0].part.region)
            return
        if not all(self._files.may_replace(autosave.part) for autosave in here):
            return
        team = self._session.team
        for autosave in here:
            try:
                self._restore(autosave)
            except PanopticError as error:
                show_error(f"{autosave.part.words} cannot be restored: {error}")
                continue
            self._autosaver.adopt(autosave)
            self._left = [at for at in self._left if at[0] != autosave]
        if team is not None:
            self._session.set_team(team)
        self._shapes.show_region()
        self.look()

    def discard(self) -> None:
        """Ask, and delete the edits that are offered."""
        offered = [autosave for autosave, _ in self._here() or self._left]
        if not offered:
            return
        words = ", ".join(f"{autosave.part.region}: {autosave.part.words}" for autosave in offered)
        older = sum(len(autosave.older) for autosave in offered)
        text = f"Delete the unsaved edits of an earlier session ({words})?"
        if older:
            text += f" {counted(older, 'older version')} of them will be deleted, too."
        if is_confirmed(self._panel, "Discard edits", text):
            for autosave in offered:
                self._autosaver.discard(autosave)
            self._left = [at for at in self._left if at[0] not in offered]
            self.show()
            self.look()

    def _here(self) -> list[tuple[Autosave, bool]]:
        """List the left edits of the shown region."""
        snapshot = self._session.snapshot
        name = None if snapshot is None else snapshot.region.name
        return [(autosave, same) for autosave, same in self._left if autosave.part.region == name]

    def _restore(self, autosave: Autosave) -> None:
        """Let a side of the shown region, or its ambiguous area, be what was drawn."""
        session, part, content = self._session, autosave.part, autosave.read()
        if session.snapshot is None or content.shape != session.snapshot.shape:
            raise PanopticError("the image now has another size; discard these edits")
        if part.team is not None:
            session.set_team(part.team)
        if isinstance(content, LabelImage):
            side = Side(part.side or Side.REFERENCE)
            scores = session.edited_labels(side).known_scores  # as edits keep them
            masks = LoadedMasks(replace(content, known_scores=scores), None)
            self._edits.open_objects(side, masks)
        else:
            self._edits.set_ambiguous(content)


def _suggested_name(objects: Objects) -> str:
    return f"{objects.region}_{objects.team or 'annotation'}_edited"


def _write(path: Path, objects: Objects, cohort: Cohort) -> _Written:
    """Write objects, but over no file of the cohort."""
    kept = cohort.files  # thousands of looks, on a network perhaps
    for at in replaced_by(path):
        if at.resolve() in kept:
            raise PanopticError(
                f"{at.name} is a file of the cohort, which stays as it is: choose another"
            )
    return write_objects(path, objects), losses_of(path, objects)
