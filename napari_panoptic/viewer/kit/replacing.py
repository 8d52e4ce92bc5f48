"""Files that are there already are asked about before they are replaced."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from qtpy.QtWidgets import QMessageBox, QWidget

from napari_panoptic.common.text import english_list
from napari_panoptic.viewer.kit.shown import shown


def may_replace(parent: QWidget, files: Iterable[Path]) -> bool:
    """Ask before files are replaced that no dialog has asked about: True if they may be.

    A name gets its ending after the dialog has looked whether it is there, and
    some forms have files beside the one that is named.

    Parameters
    ----------
    parent
        Above which window.
    files
        What would be written; only those that are there already are asked about.
    """
    there = [file.name for file in files if file.exists()]
    if not there:
        return True
    words = "exists already and" if len(there) == 1 else "exist already and all"
    answer = QMessageBox.question(
        parent, "Replace files", shown(f"{english_list(there)} {words} will be replaced. Save?")
    )
    return answer == QMessageBox.StandardButton.Yes
