"""A folder is shown before it is opened: counts, both outlines, doubts and their settings."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from qtpy.QtCore import QCoreApplication, QEvent

from napari_panoptic.viewer.desk.nuclei import desk_of
from napari_panoptic.viewer.kit.napari_private import window_of
from napari_panoptic.viewer.opening import open_dropped
from napari_panoptic.viewer.panels.inspection import NO_DOUBTS, InspectionDialog
from napari_panoptic.viewer.state.preferences import PREFERENCES
from tests.support import planted_import as planted


@pytest.fixture(scope="module")
def clean(nuclei_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted.write_clean(tmp_path_factory.mktemp("planted") / "clean", nuclei_sample)


@pytest.fixture
def dialog_of(window: Any, wait_until: Any) -> Any:
    """Give a function that drops a folder on the window and waits for the dialog."""

    def dropped(folder: Path) -> InspectionDialog:
        open_dropped(window, [folder])
        wait_until(lambda: bool(_dialogs(window)))
        (dialog,) = _dialogs(window)
        return dialog

    yield dropped
    for dialog in _dialogs(window):
        dialog.reject()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def _dialogs(viewer: Any) -> list[InspectionDialog]:
    found = window_of(viewer).findChildren(InspectionDialog)
    return [dialog for dialog in found if dialog.isVisible()]


def test_a_setting_is_applied_and_written_only_when_the_cohort_is_opened(
    window: Any, dialog_of: Any, close_desk: Any, clean: Path, tmp_path: Path, wait_until: Any
) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    planted.change_points(folder, "teams/alpha", lambda xy: xy[:, ::-1])
    before = (folder / "cohort.toml").read_text()
    dialog = dialog_of(folder)
    (row,) = dialog.doubts
    assert row.doubt.name == "axes:alpha"
    assert row.line.text() == 'files.predictions.axes = { alpha = "swapped" }'
    assert not dialog.picture.image.pixmap().isNull()
    assert dialog.isAncestorOf(dialog.open_button)
    assert dialog.open_button.isVisible()
    row.apply_button.click()
    assert not dialog.open_button.isEnabled()
    wait_until(lambda: NO_DOUBTS in dialog.texts())
    assert (folder / "cohort.toml").read_text() == before
    assert "keeps a copy" in dialog.note.text()
    desk = desk_of(window)
    dialog.open_button.click()
    wait_until(lambda: desk.session is not None and desk.is_settled)
    assert desk.session.cohort.root == folder
    assert (folder / "cohort.toml.bak").read_text() == before
    assert PREFERENCES.last_cohort == folder
    close_desk(desk)
    assert planted.objects_of(folder) == planted.objects_of(clean)


def test_a_choice_must_be_made_where_none_is_clear_and_cancel_writes_nothing(
    window: Any, dialog_of: Any, clean: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    for name in planted.REGIONS:
        planted.without_mpp(folder, name)
    (folder / "cohort.toml").unlink()
    for mask in (*folder.glob("annotation/*.tif"), *folder.glob("teams/*/*.tif")):
        mask.unlink()
    for table in (*folder.glob("annotation/*.csv"), *folder.glob("teams/*/*.csv")):
        table.unlink()
    dialog = dialog_of(folder)
    assert "Objects in the regions read (2 of 2)" in "\n".join(dialog.texts())
    assert "writes cohort.toml into the folder" in dialog.note.text()
    (row,) = dialog.doubts
    assert row.doubt.name == "mpp"
    assert not row.apply_button.isEnabled()
    row.choices.setCurrentIndex(0)
    assert row.apply_button.isEnabled()
    dialog.reject()
    assert not _dialogs(window)
    assert not (folder / "cohort.toml").exists()
