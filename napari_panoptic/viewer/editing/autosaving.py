"""Unsaved edits are kept in the user's cache while they are drawn."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.live.autosaves import Autosave, AutosaveFolder, EditedPart
from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.regions.reading import prediction_files
from napari_panoptic.values.cohort import MaskFiles
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.viewer.editing.live_edits import LiveEdits
from napari_panoptic.viewer.jobs.jobs import single_shot, stop_timers
from napari_panoptic.viewer.kit.shown import show_warning

AUTOSAVE_MS = 2000
"""How long after an edit it is written. Longer than the hand rests between two strokes: a file
holds a whole side of the region, which would be written for every stroke."""


def autosave_folder(root: Path) -> Path:
    """Return where the autosaves of a cohort lie."""
    digest = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]
    return user_cache_path("napari-panoptic") / "edits" / digest


class Autosaver:
    """Writes unsaved drawings to files, in another thread.

    Parameters
    ----------
    session
        The live state.
    edits
        The unsaved drawings.
    """

    def __init__(self, session: Session, edits: LiveEdits) -> None:
        self._session, self._edits = session, edits
        self._files = AutosaveFolder(autosave_folder(session.cohort.root))
        self._fingerprints: dict[EditedPart, dict[str, str]] = {}
        self._written: dict[EditedPart, int] = {}
        """Revision that each file holds, or will hold."""
        self._pool = ThreadPoolExecutor(1, "autosave")  # one after the other
        self._tasks: list[tuple[Future[None], EditedPart | None]] = []
        self._has_warned = False
        self._later = single_shot(AUTOSAVE_MS, self._on_time)
        self._look = single_shot(AUTOSAVE_MS, self.follow)  # whether that has failed
        edits.changed.connect(self.follow)

    @property
    def is_busy(self) -> bool:
        """Whether something is still to be written or removed."""
        return self._later.isActive() or not all(task.done() for task, _ in self._tasks)

    def left_behind(self) -> list[tuple[Autosave, bool]]:
        """List the autosaves of earlier windows, and whether the edited files are still the same.

        Safe to call in another thread.
        """
        root = self._session.cohort.root
        return [(found, found.is_of_these_files(root)) for found in self._files.left_behind()]

    def adopt(self, autosave: Autosave) -> None:
        """Take over an autosave of an earlier window whose edits were restored."""
        self._written[autosave.part] = 0
        self._do(lambda: self._files.adopt(autosave))
        self.follow()

    def discard(self, autosave: Autosave) -> None:
        """Delete an autosave of an earlier window, and the older ones of its part."""
        self._do(lambda: self._files.discard(autosave))

    def follow(self) -> None:
        """Write new drawings, a moment later; remove saved or discarded ones."""
        if (problem := self._take_problem()) and not self._has_warned:
            self._has_warned = True
            show_warning(
                f"Unsaved edits cannot be kept for a restart ({problem}). Save them, or free space."
            )
        unsaved = self._edits.unsaved
        for part in [at for at in self._written if at not in unsaved]:
            del self._written[part]
            self._fingerprints.pop(part, None)
            self._do(lambda at=part: self._files.remove(at))  # type: ignore[misc]
        if self._due() and not self._later.isActive():
            self._later.start()

    def close(self, *, discard: bool) -> None:
        """Write or discard the rest, and wait for the end."""
        stop_timers(self._later, self._look)
        self._edits.changed.disconnect(self.follow)
        if not discard:
            self._take_problem()
            self._write()
        self._do(lambda: self._files.close(discard=discard))
        self._pool.shutdown()

    def _due(self) -> list[EditedPart]:
        edits = self._edits
        return [at for at in edits.unsaved if edits.last_change(at) > self._written.get(at, -1)]

    def _on_time(self) -> None:
        self._write()
        self._look.start()

    def _write(self) -> None:
        for part in self._due():
            drawn = self._edits.drawn(part)
            self._written[part] = self._edits.last_change(part)
            if drawn is None:
                continue
            # Later edits renumber the pixels of the objects in place.
            content = _copy(drawn.content(part))
            self._do(partial(self._write_one, part, content), part)

    def _write_one(self, part: EditedPart, content: LabelImage | NDArray[np.bool_]) -> None:
        if part not in self._fingerprints:
            cohort = self._session.cohort
            files = self._files_of(part)
            paths = [] if files is None else files.all_paths
            self._fingerprints[part] = file_fingerprints(paths, cohort.root)
        self._files.write(part, content, self._fingerprints[part])

    def _files_of(self, part: EditedPart) -> MaskFiles | None:
        cohort = self._session.cohort
        if part.team is None:
            return cohort.region(part.region).reference
        return prediction_files(cohort, part.region, part.team, self._session.source)

    def _do(self, task: Callable[[], None], written: EditedPart | None = None) -> None:
        """Run a task after the others; it may write a part."""
        try:
            self._tasks.append((self._pool.submit(task), written))
        except RuntimeError:  # at interpreter shutdown, pools accept no more tasks
            with suppress(OSError):  # no window is left that could report it
                task()

    def _take_problem(self) -> str:
        """Return why a task failed; the parts it did not write are due again."""
        done = [(task, part) for task, part in self._tasks if task.done()]
        self._tasks = [(task, part) for task, part in self._tasks if not task.done()]
        failed = [(error, part) for task, part in done if (error := task.exception()) is not None]
        for _, part in failed:
            if part in self._written:
                self._written[part] = -1
        return str(failed[0][0]) if failed else ""


def _copy(content: LabelImage | NDArray[np.bool_]) -> LabelImage | NDArray[np.bool_]:
    if isinstance(content, LabelImage):
        return replace(content, index=content.index.copy())
    return content  # it is replaced, never changed
