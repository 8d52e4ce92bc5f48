"""The sample cohort of each task, unpacked from ``data``."""

from __future__ import annotations

import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from napari_panoptic.common.errors import CohortError, UnreadableFileError
from napari_panoptic.values.cohort import Task

DATA = Path(__file__).parent / "data"
"""The folder with one archive for each task."""
_NOTES = {
    Task.NUCLEI: "README.txt",
    Task.DETECTIONS: "README.txt",
    Task.RATERS: "cohort.toml",
}
"""The file by which the cohort is recognised where it was written before."""


def write_sample(folder: Path, task: Task = Task.NUCLEI) -> Path:
    """Write the sample cohort of a task; one that is there is left as it is.

    The files are always the same. The folder appears only when it is complete. What was edited
    in a cohort that was written before is kept.

    Parameters
    ----------
    folder
        A folder that does not exist, is empty, or holds this cohort.
    task
        What the cohort is to be about.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    CohortError
        If the folder holds something else, or cannot be written.
    UnreadableFileError
        If the files are not in the installed package, or are damaged.
    """
    folder, note, files = Path(folder), _NOTES[task], _packed(task)
    try:
        path = folder / note
        if path.is_file() and path.read_bytes() == files[note]:
            return folder
        _check_free(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _write_at_once(folder, files)
    except OSError as error:
        raise CohortError(
            f"the sample cohort cannot be written here ({error.strerror or error}); "
            f"choose a folder that you may write to",
            path=folder,
        ) from error
    return folder


def write_sample_cohort(folder: Path) -> Path:
    """Write the sample cohort of nuclei: three patients, six regions, four teams."""
    return write_sample(folder, Task.NUCLEI)


def write_detection_sample(folder: Path) -> Path:
    """Write the sample cohort of detections: three patients, six frames, four teams."""
    return write_sample(folder, Task.DETECTIONS)


def write_raters_sample(folder: Path) -> Path:
    """Write the sample cohort of several raters: four slices, one volume, three teams."""
    return write_sample(folder, Task.RATERS)


def _packed(task: Task) -> dict[str, bytes]:
    """Return path in the cohort -> content of its files."""
    path = DATA / f"{task}.tar.xz"
    try:
        # All of it first: only at its end does a damaged archive show.
        unpacked = lzma.decompress(path.read_bytes(), lzma.FORMAT_XZ)
    except (OSError, lzma.LZMAError) as error:
        found = "no such file" if isinstance(error, FileNotFoundError) else "a damaged one"
        raise UnreadableFileError(
            f"expected the archive with the sample cohort, found {found}; "
            f"install napari-panoptic again",
            path=path,
        ) from error
    with tarfile.open(fileobj=BytesIO(unpacked)) as archive:
        content = ((entry.name, archive.extractfile(entry)) for entry in archive)
        return {name: file.read() for name, file in content if file is not None}


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


def _write_at_once(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write beside the folder and move into place, so that no half of it is ever seen."""
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as workshop:
        draft = Path(workshop) / "sample"
        for name, content in files.items():
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if folder.is_dir():
            folder.rmdir()
        shutil.move(draft, folder)
