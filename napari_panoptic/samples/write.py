"""The sample cohort of each task; what draws one is imported only where it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.nuclei.values.cohort import Task


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
