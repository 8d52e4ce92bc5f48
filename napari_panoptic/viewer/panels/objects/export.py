"""Save the listed objects as a table, in a worker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import QFileDialog
from superqt.utils import create_worker

from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.nuclei.regions.results import write_listed
from napari_panoptic.viewer.kit.shown import show_error, show_info
from napari_panoptic.viewer.panels.objects.panel import ObjectTable

NOTHING = "No objects are listed. Choose a region and a team with objects, or press “All”."


def export_listed(table: ObjectTable, session: Session) -> None:
    """Ask for a file, and save the listed objects as CSV in the order of the table.

    Parameters
    ----------
    table
        The object table.
    session
        Its team and region.
    """
    snapshot, team, outcomes = session.snapshot, session.team, table.outcomes
    rows = table.model.order.copy()
    if snapshot is None or team is None or outcomes is None or not len(rows):
        show_info(NOTHING)
        return
    region = snapshot.region
    usual = session.cohort.root / f"{region.name} {team} objects.csv"
    chosen, _ = QFileDialog.getSaveFileName(table, "Save the objects", str(usual), "CSV (*.csv)")
    if not chosen:
        return
    place = (team, region.patient, region.name)
    worker = create_worker(_written, Path(chosen), outcomes, rows, place, _start_thread=False)
    worker.returned.connect(_report)
    worker.start()


def _written(
    path: Path, outcomes: Outcomes, rows: NDArray[np.intp], place: tuple[str, str, str]
) -> tuple[Path, str]:
    """Write the table; an error is returned, since a raised one would count as a crash."""
    try:
        write_listed(path, outcomes, rows, place)
    except OSError as error:
        return path, error.strerror or str(error)
    return path, ""


def _report(answer: tuple[Path, str]) -> None:
    path, reason = answer
    if reason:
        show_error(f"Cannot save the objects in {path}: {reason}. Choose another place.")
    else:
        show_info(f"The objects are in {path}")
