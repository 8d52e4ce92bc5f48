"""What was drawn is written to files, and read from files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from qtpy.QtWidgets import QFileDialog, QMessageBox

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
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
from napari_panoptic.live.session import Session
from napari_panoptic.values.cohort import ClassScheme, Cohort
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.editing.ambiguous_shapes import AmbiguousShapes
from napari_panoptic.viewer.editing.live_edits import Copied, LiveEdits
from napari_panoptic.viewer.jobs.jobs import Several
from napari_panoptic.viewer.kit.questions import may_replace, may_write
from napari_panoptic.viewer.kit.shown import show_error, show_info, show_warning
from napari_panoptic.viewer.panels.edits.panel import EditsPanel

STILL_UNSAVED = (
    "What you drew counts as not saved until it is saved in a format that holds all of it, such as "
    "a label image"
)
AREAS_LEFT_OUT = (
    "Ambiguous areas of the file were left out: they are the annotation's. To have them, choose "
    "the annotation beside Edit, and open the file again"
)
T = TypeVar("T")
_Written = tuple[tuple[Path, ...], tuple[Finding, ...], str]
"""Files, what they do not hold, and what went wrong."""


class EditsFiles:
    """Saves what was drawn, and opens objects of files as if they had been drawn.

    Parameters
    ----------
    session
        The live state.
    edits, shapes
        What is drawn.
    panel
        Shows what is being written or read, and says which side is meant.
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
        self._session, self._edits, self._shapes = session, edits, shapes
        self._panel, self._ended = panel, ended
        self._jobs = Several(ended=self._on_job_ended)
        self._is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether something is being written or read."""
        return self._jobs.is_busy

    def close(self) -> None:
        """Touch no widget any more; what is being written is still reported."""
        self._is_closed = True

    def start(self, compute: Callable[[], T], take: Callable[[T], None], state: str = "") -> None:
        """Read or write in another thread, and show that meanwhile."""
        if state:
            self._panel.state.setText(state)
        self._jobs.start(compute, take)

    def copies_here(self) -> list[Copied]:
        """List the working copies of the region that is shown."""
        session, snapshot = self._session, self._session.snapshot
        if snapshot is None:
            return []
        name = snapshot.region.name
        found = [Copied(name, Side.REFERENCE)] if session.is_drawn(Side.REFERENCE) else []
        found += [
            Copied(name, Side.PREDICTION, team)
            for team in snapshot.predictions
            if session.is_drawn(Side.PREDICTION, team)
        ]
        return [*found, Copied(name, None)] if session.is_area_drawn else found

    # Saving.

    def save_as(self) -> None:
        """Ask for a place, and write the side that is edited there."""
        objects = self._edits.objects_to_save(self._side_to_save())
        path = self._ask_where(objects)
        if path is not None:
            self.save_to(path, objects)

    def save_to(self, path: Path, objects: Objects) -> None:
        """Write objects in the background, and say when they are saved."""
        take = partial(self._take_saved, path, objects, self._edits.revision)
        write = partial(_write, path, objects, self._session.cohort)
        self.start(write, take, f"Saving {path.name}…")

    def save_all(self) -> bool:
        """Ask where to save what is not saved, and write it; True if all of it is saved."""
        unsaved = self._edits.unsaved_objects()
        if len(unsaved) == 1:
            path = self._ask_where(unsaved[0])
            paths = [] if path is None else [path]
        else:
            paths = self._ask_folder(unsaved)
        if not paths:
            return False
        for path, objects in zip(paths, unsaved, strict=True):
            before = self._edits.revision
            written = _write(path, objects, self._session.cohort)
            self._take_saved(path, objects, before, written)
        return not self._edits.unsaved

    def _side_to_save(self) -> Side:
        """Return which side is meant: the active layer's, else the one that was edited."""
        copies = self.copies_here()
        mine = [c.side or Side.REFERENCE for c in copies if c.team in (None, self._session.team)]
        active = self._edits.active_side
        if active is not None and (active in mine or not copies):
            return active
        return mine[0] if mine else self._panel.chosen_side()

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
        may = may_write(self._panel, target, asked=path, files=replaced_by(target))
        return target if may else None

    def _ask_folder(self, unsaved: list[Objects]) -> list[Path]:
        """Ask for a folder for several label images; return no path where there is none."""
        folder = QFileDialog.getExistingDirectory(self._panel, "Save label images in a folder")
        if not folder:
            return []
        paths = [Path(folder) / f"{_suggested_name(objects)}.tif" for objects in unsaved]
        files = [file for path in paths for file in replaced_by(path)]
        return paths if may_replace(self._panel, files) else []

    def _take_saved(self, path: Path, objects: Objects, before: int, answer: _Written) -> None:
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
        if self._is_closed:
            return
        saved = [Copied(objects.region, objects.side, objects.team or None)]
        if objects.side is Side.REFERENCE:
            saved.append(Copied(objects.region, None))
        self._edits.note_saved(at for at in saved if self._edits.last_change(at) <= before)

    # Opening.

    def open_file(self) -> None:
        """Ask for a file, and let the side that is chosen have its objects."""
        copied = self._side_to_open()
        if copied is None:
            return
        endings = {f"{f.title} (*{f.endings[0]})": f for f in readable_forms()}
        every = " ".join(f"*{ending}" for f in endings.values() for ending in f.endings)
        path, _ = QFileDialog.getOpenFileName(
            self._panel,
            f"Open objects of {copied.words} in {copied.region}",
            "",
            ";;".join([f"Objects ({every})", *endings]),
        )
        if path and self.may_replace(copied):
            self.open_from(Path(path))

    def open_from(self, path: Path) -> None:
        """Read a file in the background, and let the side that is chosen have its objects."""
        copied, snapshot = self._side_to_open(), self._session.snapshot
        if copied is None or snapshot is None:
            return
        take = partial(self._take_read, path, copied, self._edits.revision)
        read = partial(_read, path, self._session.cohort.scheme, snapshot.shape)
        self.start(read, take, f"Opening {path.name}…")

    def may_replace(self, copied: Copied) -> bool:
        """Ask before what was drawn and not saved is replaced."""
        at_stake = [copied]
        if copied.side is Side.REFERENCE:
            at_stake.append(Copied(copied.region, None))  # the file may have areas
        lost = [at for at in at_stake if at in self._edits.unsaved]
        if not lost:
            return True
        words = " and ".join(at.words for at in lost)
        answer = QMessageBox.question(
            self._panel,
            "Replace edits",
            f"What you drew ({words}) is not saved, and will be replaced. Open the file?",
        )
        return answer == QMessageBox.StandardButton.Yes

    def _side_to_open(self) -> Copied | None:
        """Return the side to edit: that of the active layer, else the chosen one."""
        snapshot = self._session.snapshot
        if snapshot is None:
            return None
        side = self._edits.active_side or self._panel.chosen_side()
        team = self._session.team if side is Side.PREDICTION else None
        return Copied(snapshot.region.name, side, team)

    def _take_read(
        self, path: Path, copied: Copied, revision: int, answer: tuple[LoadedMasks | None, str]
    ) -> None:
        """Let a side have the objects of a file, unless something else is shown by now."""
        masks, problem = answer
        if masks is not None and (self._is_closed or self._side_to_open() != copied):
            masks = None
            problem = f"{path.name} was not opened: another region or team is shown now"
        if masks is None:
            show_error(problem)
            return
        if self._edits.revision != revision and not self.may_replace(copied):
            return  # something was drawn while the file was read
        side, left_out = copied.side or Side.PREDICTION, ""
        if side is Side.PREDICTION and masks.ambiguous is not None:
            masks, left_out = replace(masks, ambiguous=None), f". {AREAS_LEFT_OUT}"
        try:
            self._edits.open_objects(side, masks)
        except PanopticError as error:
            show_error(str(error))
            return
        self._shapes.show_region()  # else the next one drawn would be without the file's
        area = Copied(copied.region, None)
        self._edits.note_saved([copied] if masks.ambiguous is None else [copied, area])
        odd = "".join(f". {finding.message}" for finding in masks.findings[:3])
        show_info(f"{copied.words} has the objects of {path.name}{left_out}{odd}")

    def _on_job_ended(self) -> None:
        if not self._is_closed:
            self._ended()


def _suggested_name(objects: Objects) -> str:
    return f"{objects.region}_{objects.team or 'annotation'}_edited"


def _write(path: Path, objects: Objects, cohort: Cohort) -> _Written:
    """Write in a worker; return the files, what they do not hold, and what went wrong."""
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
    """Read in a worker; return the objects, or what went wrong."""
    try:
        return read_objects(path, scheme, shape), ""
    except PanopticError as error:
        return None, str(error)
