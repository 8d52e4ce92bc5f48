"""Edits that an earlier window left unsaved: offered, restored or discarded."""

from __future__ import annotations

from datetime import datetime

from qtpy.QtWidgets import QMessageBox

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.live.autosaves import Autosave
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.editing.ambiguous_shapes import AmbiguousShapes
from napari_panoptic.viewer.editing.autosaving import Autosaver
from napari_panoptic.viewer.editing.live_edits import LiveEdits
from napari_panoptic.viewer.kit.shown import show_error, shown
from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.edits.files import EditsFiles
from napari_panoptic.viewer.panels.edits.panel import EditsPanel

CHANGED_FILES = (
    " ⚠ The files have changed since. Restoring shows the objects as they were drawn, not what the "
    "files contain now."
)


class LeftEdits:
    """Offers what an earlier window left unsaved.

    Parameters
    ----------
    around
        Session and link.
    panel
        Shows the offer.
    edits, shapes
        Take what is restored.
    autosaver
        Finds what was left.
    files
        Runs what looks for it, and asks before something is replaced.
    title
        Title of the dock.
    """

    def __init__(
        self,
        around: Surroundings,
        panel: EditsPanel,
        edits: LiveEdits,
        shapes: AmbiguousShapes,
        *,
        autosaver: Autosaver,
        files: EditsFiles,
        title: str,
    ) -> None:
        self._session, self._link, self._panel = around.session, around.link, panel
        self._edits, self._shapes = edits, shapes
        self._autosaver, self._files, self._title = autosaver, files, title
        self._left: list[tuple[Autosave, bool]] = []
        self._is_closed = False

    def close(self) -> None:
        """Offer nothing any more."""
        self._is_closed = True

    def look(self, *, is_start: bool = False) -> None:
        """Look in the background for what is left; bring the offer to the front at the start."""

        def take(found: list[tuple[Autosave, bool]]) -> None:
            if not self._is_closed:
                self._left = found
                self.show()
                if found and is_start:
                    self._link.reveal(self._title)

        self._files.start(self._autosaver.left_behind, take)

    def show(self) -> None:
        """Offer what is left of the region that is shown, or to go to another one."""
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
        """Continue with what is left of this region, or go to its region."""
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
        answer = QMessageBox.question(
            self._panel,
            "Discard edits",
            shown(f"Delete the unsaved edits of an earlier session ({words})?"),
        )
        if answer == QMessageBox.StandardButton.Yes:
            for autosave in offered:
                self._autosaver.discard(autosave)
            self._left = [at for at in self._left if at[0] not in offered]
            self.show()
            self.look()

    def _here(self) -> list[tuple[Autosave, bool]]:
        """List the left edits of the region that is shown."""
        snapshot = self._session.snapshot
        name = None if snapshot is None else snapshot.region.name
        return [(autosave, same) for autosave, same in self._left if autosave.part.region == name]

    def _restore(self, autosave: Autosave) -> None:
        """Let a side of the region that is shown, or its ambiguous area, be what was drawn."""
        session, part, content = self._session, autosave.part, autosave.read()
        if session.snapshot is None or content.shape != session.snapshot.shape:
            raise PanopticError("the image now has another size; discard these edits")
        if part.team is not None:
            session.set_team(part.team)
        if isinstance(content, LabelImage):
            masks = LoadedMasks(content, None)
            self._edits.open_objects(Side(part.side or Side.REFERENCE), masks)
        else:
            self._edits.set_ambiguous(content)
