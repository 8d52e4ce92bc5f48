"""Names that somebody chose in a dialog become the names of files."""

from __future__ import annotations

from pathlib import Path

from qtpy.QtWidgets import QMessageBox, QWidget

from napari_panoptic.viewer.shown import shown


def with_ending(parent: QWidget, path: Path, ending: str) -> Path | None:
    """Give a file that was chosen without an ending its ending.

    The dialog asks before it replaces the file of the name that was typed. Of the
    name with its ending it knows nothing, so somebody is asked here.

    Parameters
    ----------
    parent
        The widget that asks.
    path
        What was chosen.
    ending
        With its dot.

    Returns
    -------
    Path or None
        The file to write; None where the one that is there is to stay.
    """
    path = path.with_name(path.name + ending)
    if not path.exists():
        return path
    answer = QMessageBox.question(
        parent, "Replace the file", shown(f"{path.name} is there already. Replace it?")
    )
    return path if answer == QMessageBox.StandardButton.Yes else None
