"""What a cohort's folder is about: nuclei, detected points, or several raters' structures."""

from __future__ import annotations

from pathlib import Path

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts.description import DESCRIPTION, TASK_KEY, read_toml
from napari_panoptic.io.cohorts.detections import known_layout
from napari_panoptic.io.cohorts.raters_layout import looks_like_qubiq
from napari_panoptic.values.cohort import Task


def task_of(folder: str | Path) -> Task:
    """Return what a cohort is about, by the ``task`` of its ``cohort.toml``.

    Parameters
    ----------
    folder
        The cohort's folder, or its ``cohort.toml``.

    Returns
    -------
    Task
        Nuclei by default; detections also where the folders are
        those of MITOS-ATYPIA-14 or MIDOG, raters where masks are named as in QUBIQ.

    Raises
    ------
    CohortError
        If the ``cohort.toml`` cannot be read or names an unknown task.
    """
    root = Path(folder)
    description = root if root.name == DESCRIPTION else root / DESCRIPTION
    if not description.is_file():
        if known_layout(root) is not None:
            return Task.DETECTIONS
        return Task.RATERS if looks_like_qubiq(root) else Task.NUCLEI
    value = read_toml(description).get(TASK_KEY, Task.NUCLEI)
    known = [str(task) for task in Task]
    if value not in known:
        raise CohortError(
            f"{TASK_KEY} must be one of {english_list(known)}, found {value!r}", path=description
        )
    return Task(value)
