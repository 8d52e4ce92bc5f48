"""Unsaved edits kept on disk, so that they can be restored after a crash.

Every window writes to a folder of its own and holds a lock there. A folder
without a held lock belongs to a window that ended without saving or discarding.
"""

from __future__ import annotations

import json
import shutil
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError, UnreadableFileError
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.io.files.locking import InUseError, exclusive_lock
from napari_panoptic.io.files.replacing import replaced_when_complete
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side

_FORMAT = 1
_LOCK = "lock"
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, BadZipFile)


@dataclass(frozen=True)
class EditedPart:
    """A part of a region that can be edited by itself."""

    #: The region's name.
    region: str
    #: Reference or prediction; None for the ambiguous area.
    side: Side | None
    #: The team, for a prediction.
    team: str | None = None

    @property
    def words(self) -> str:
        """A description for people."""
        if self.side is None:
            return "ambiguous areas"
        return "annotation" if self.side is Side.REFERENCE else str(self.team)


@dataclass(frozen=True)
class Autosave:
    """One file of unsaved edits."""

    #: The file.
    path: Path
    #: The edited part.
    part: EditedPart
    #: When it was written, in seconds since 1970.
    saved_at: float
    #: Those of the files that were edited, by their path relative to the cohort.
    fingerprints: dict[str, str]
    #: Older files of the same part, which other windows left: discarded with it.
    older: tuple[Path, ...] = ()

    def is_of_these_files(self, root: Path) -> bool:
        """Return whether the files that were edited are still as they were then."""
        paths = [root / name for name in self.fingerprints]
        return file_fingerprints(paths, root) == self.fingerprints

    def read(self) -> LabelImage | NDArray[np.bool_]:
        """Read the objects, or the ambiguous area.

        Raises
        ------
        UnreadableFileError
            If the file is damaged or gone.
        """
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                if self.part.side is None:
                    return np.asarray(stored["ambiguous"], np.bool_)
                return LabelImage(
                    index=stored["index"].astype(np.int32),
                    ids=stored["ids"].astype(np.int64),
                    class_index=stored["class_index"].astype(np.int16),
                    original_ids=stored["ids"].astype(np.int64),
                    class_names=tuple(_metadata(stored)["class_names"]),
                ).tidied()
        except _UNREADABLE as error:
            raise UnreadableFileError(
                f"cannot read autosaved edits ({error}); discard them", path=self.path
            ) from error


class AutosaveFolder:
    """Autosaves of one cohort: those of this window, and those that earlier ones left.

    Parameters
    ----------
    folder
        Where the autosaves of the cohort lie. Made when the first one is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = folder / token_hex(8)
        self._lock = ExitStack()

    def write(
        self,
        part: EditedPart,
        content: LabelImage | NDArray[np.bool_],
        fingerprints: dict[str, str],
    ) -> None:
        """Replace the autosave of a part, whole or not at all.

        Parameters
        ----------
        part
            The edited part.
        content
            Objects, or an ambiguous area. Strokes may go on meanwhile: what is
            written then is a moment in the midst of them.
        fingerprints
            Those of the files that were edited.

        Raises
        ------
        OSError
            If it cannot be written; the one before stays.
        """
        metadata: dict[str, Any] = {
            "format": _FORMAT,
            "region": part.region,
            "side": None if part.side is None else part.side.value,
            "team": part.team,
            "saved_at": time.time(),
            "fingerprints": fingerprints,
        }
        arrays: dict[str, NDArray[Any]] = {}
        if isinstance(content, LabelImage):
            metadata["class_names"] = content.class_names
            n = len(content.ids)
            index = content.index.copy()
            index[index > n] = 0  # objects that were drawn since
            arrays["index"] = index.astype(np.min_scalar_type(n))
            arrays["ids"], arrays["class_index"] = content.ids, content.class_index
        else:
            arrays["ambiguous"] = content
        text = json.dumps(metadata).encode()
        self._hold()
        with replaced_when_complete(self._path(part)) as file:
            np.savez_compressed(
                file, allow_pickle=False, metadata=np.frombuffer(text, np.uint8), **arrays
            )

    def remove(self, part: EditedPart) -> None:
        """Remove this window's autosave of a part."""
        self._path(part).unlink(missing_ok=True)

    def adopt(self, autosave: Autosave) -> None:
        """Make an autosave that another window left one of this window.

        Raises
        ------
        OSError
            If it is gone.
        """
        self._hold()
        autosave.path.replace(self._path(autosave.part))

    def discard(self, autosave: Autosave) -> None:
        """Delete an autosave that another window left, and all older ones of its part.

        Raises
        ------
        OSError
            If one of them cannot be deleted.
        """
        # The newest last: after an error it is still the one that is offered.
        for path in (*autosave.older, autosave.path):
            path.unlink(missing_ok=True)

    def left_behind(self) -> list[Autosave]:
        """List what windows left that ended without saving or discarding, newest first.

        Of each part only the newest is listed, with the files of the older ones.
        """
        found: list[Autosave] = []
        with suppress(OSError):
            for folder in self._folder.iterdir():
                if folder != self._own and folder.is_dir():
                    found += _autosaves_in(folder)
        found.sort(key=lambda autosave: -autosave.saved_at)
        of_part: dict[EditedPart, list[Autosave]] = {}
        for autosave in found:
            of_part.setdefault(autosave.part, []).append(autosave)
        return [
            replace(newest, older=tuple(autosave.path for autosave in older))
            for newest, *older in of_part.values()
        ]

    def close(self, *, discard: bool) -> None:
        """Let go of this window's autosaves; the next window finds those that are not discarded."""
        if discard:
            shutil.rmtree(self._own, ignore_errors=True)
        self._lock.close()
        with suppress(OSError):  # unless something is left in it
            self._own.rmdir()

    def _hold(self) -> None:
        if not self._own.is_dir():
            self._own.mkdir(parents=True)
            held = exclusive_lock(self._own / _LOCK, "autosaving", "close the other window")
            self._lock.enter_context(held)

    def _path(self, part: EditedPart) -> Path:
        name = json.dumps([part.region, part.side and part.side.value, part.team])
        return self._own / f"{sha256(name.encode()).hexdigest()[:16]}.npz"


def _autosaves_in(folder: Path) -> list[Autosave]:
    """List the autosaves of a window that has ended; of one that is open there are none."""
    try:
        with exclusive_lock(folder / _LOCK, "autosaving", "close the other window"):
            found = [_described(path) for path in folder.glob("*.npz")]
    except InUseError:
        return []
    if not found:
        shutil.rmtree(folder, ignore_errors=True)
    return [autosave for autosave in found if autosave is not None]


def _described(path: Path) -> Autosave | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            metadata = _metadata(stored)
        side = None if metadata["side"] is None else Side(metadata["side"])
        part = EditedPart(metadata["region"], side, metadata["team"])
        return Autosave(path, part, float(metadata["saved_at"]), dict(metadata["fingerprints"]))
    except (*_UNREADABLE, PanopticError):
        return None


def _metadata(stored: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = json.loads(stored["metadata"].tobytes())
    if metadata["format"] != _FORMAT:
        raise ValueError(f"expected format {_FORMAT}, found {metadata['format']}")
    return metadata
