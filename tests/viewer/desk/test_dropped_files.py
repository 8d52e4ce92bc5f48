"""Files dropped on the inspector are compared; a folder is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from qtpy.QtCore import QMimeData, QPointF, Qt, QUrl
from qtpy.QtGui import QDropEvent

from napari_panoptic.viewer.desk.nuclei import desk_in, desk_of


def labels(path: Path, shift: int = 0) -> Path:
    image = np.zeros((40, 60), np.uint16)
    image[5:15, 5 + shift : 15 + shift] = 1
    image[20:30, 30:45] = 2
    tifffile.imwrite(path, image)
    return path


@pytest.fixture
def viewer(make_napari_viewer: Any) -> Any:
    return make_napari_viewer()


def drop(viewer: Any, paths: list[Path]) -> None:
    """Drop files on the inspector, as the window system does."""
    inspector = desk_of(viewer).strip
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    event = QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, left, none)
    inspector.dropEvent(event)
    assert event.isAccepted()


@pytest.mark.long
def test_two_label_files_are_compared(viewer: Any, tmp_path: Path, qtbot: Any) -> None:
    files = [labels(tmp_path / "model.tif", 2), labels(tmp_path / "ground_truth.tif")]
    drop(viewer, files)
    desk = desk_in(viewer)
    qtbot.waitUntil(lambda: desk.session is not None, timeout=60_000)
    qtbot.waitUntil(lambda: desk.is_settled and desk.session.snapshot is not None, timeout=60_000)
    # The name says which file is the annotation, not the order.
    assert desk.session.cohort.team_names == ("model",)
    assert desk.session.shown.metrics.detection_f1 == 1
    desk.close()


def test_one_file_alone_is_explained(
    viewer: Any, tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("napari_panoptic.viewer.kit.shown.show_error", said.append)
    drop(viewer, [labels(tmp_path / "model.tif")])
    qtbot.waitUntil(lambda: bool(said), timeout=30_000)
    assert "at least one prediction" in said[0]
    desk_in(viewer).close()
