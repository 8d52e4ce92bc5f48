"""The sample cohort of each task; what draws one is imported only where it is wanted."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from napari_panoptic.common.errors import CohortError, PanopticError
from napari_panoptic.nuclei.values.cohort import Task

NOTE_NAME = "README.txt"


def _write_nuclei(folder: Path) -> Path:
    from napari_panoptic.samples.nuclei import write_sample_cohort

    return write_sample_cohort(folder)


def _write_detections(folder: Path) -> Path:
    from napari_panoptic.samples.detections import write_detection_sample

    return write_detection_sample(folder)


def _write_raters(folder: Path) -> Path:
    from napari_panoptic.samples.raters import write_raters_sample

    return write_raters_sample(folder)


SAMPLES: Mapping[Task, Callable[[Path], Path]] = {
    Task.NUCLEI: _write_nuclei,
    Task.DETECTIONS: _write_detections,
    Task.RATERS: _write_raters,
}
"""What writes the sample of each task."""


def write_sample(folder: Path, task: Task = Task.NUCLEI) -> Path:
    """Write the sample cohort of a task; one that is there is left as it is.

    Parameters
    ----------
    folder
        A folder that does not exist, is empty, or holds this cohort.
    task
        What the cohort is to be about.

    Raises
    ------
    PanopticError
        If the folder holds something else, or cannot be written.
    """
    try:
        return SAMPLES[task](folder)
    except OSError as error:
        raise PanopticError(
            f"the sample cohort cannot be written: {error.strerror}; choose another folder",
            path=folder,
        ) from error


def write_once(
    folder: Path, note: str, write: Callable[[Path], None], *, note_name: str = NOTE_NAME
) -> Path:
    """Write a sample cohort into a folder, whole or not at all.

    Parameters
    ----------
    folder
        Does not exist or is empty. One that holds this cohort already, as its
        note says, is left as it is.
    note
        What its ``note_name`` says.
    write
        Fills the folder that it is given.
    note_name
        Name of a text file by which the cohort is known again.

    Raises
    ------
    CohortError
        If the folder holds something else, or cannot be written.
    """
    folder = Path(folder)
    path = folder / note_name
    if path.is_file() and path.read_bytes() == note.encode():
        return folder
    try:
        _check_free(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _write_at_once(folder, note_name, note, write)
    except OSError as error:
        raise CohortError(
            f"the sample cohort cannot be written here ({error.strerror or error}); "
            f"choose a folder that you may write to",
            path=folder,
        ) from error
    return folder


def _check_free(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() and not folder.is_dir():
        raise CohortError(
            "the sample cohort needs a new or empty folder, and this is a file; name another place",
            path=folder,
        )
    if folder.exists():
        raise CohortError(
            "the sample cohort needs a new or empty folder, and this one holds something else; "
            "name another one",
            path=folder,
        )


def _write_at_once(folder: Path, note_name: str, note: str, write: Callable[[Path], None]) -> None:
    """Write beside the folder and move into place, so that no half of it is ever seen."""
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as workshop:
        draft = Path(workshop) / "sample"
        draft.mkdir()
        write(draft)
        (draft / note_name).write_bytes(note.encode())
        if folder.is_dir():
            folder.rmdir()
        shutil.move(draft, folder)
