"""Autosaves: whole after a kill, gone when they are not needed, and read or refused."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.live.autosaves import AutosaveFolder, EditedPart
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side

PART = EditedPart("region", Side.PREDICTION, "team")
AREA = EditedPart("region", None)
CLASSES = ("Epithelial", "Lymphocyte")

WRITES_FOR_EVER = """
import sys
from pathlib import Path
from tests.live.test_autosaves import PART, image_of
from napari_panoptic.live.autosaves import AutosaveFolder
folder = AutosaveFolder(Path(sys.argv[1]))
for number in range(1, 1_000_000):
    folder.write(PART, image_of(number, size=600), {})
    print(number, flush=True)
"""


def image_of(number: int, size: int = 20) -> LabelImage:
    """Make an image whose every pixel tells the same number."""
    return LabelImage.from_array(
        np.full((size, size), number, np.int32), {number: "Lymphocyte"}, CLASSES
    )


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_what_was_written_before_a_kill_is_there_and_whole(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITES_FOR_EVER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        written = [int(process.stdout.readline()) for _ in range(5)]
        assert AutosaveFolder(tmp_path).left_behind() == []  # it is being edited there
        process.send_signal(signal.SIGKILL)
    (found,) = AutosaveFolder(tmp_path).left_behind()
    assert found.part == PART
    labels = found.read()
    assert isinstance(labels, LabelImage)
    assert labels.ids[0] >= written[-1]
    assert (labels.index == 1).all()
    assert labels.class_names_of_objects().tolist() == ["Lymphocyte"]


def test_autosaves_end_with_saving_discarding_and_restoring(tmp_path: Path) -> None:
    area = np.zeros((4, 5), bool)
    area[1] = True
    crashed = AutosaveFolder(tmp_path)
    crashed.write(PART, image_of(7), {})
    crashed.write(AREA, area, {})
    crashed.remove(PART)
    crashed.write(PART, image_of(8), {})
    crashed.close(discard=False)
    later = AutosaveFolder(tmp_path)
    found = {autosave.part: autosave for autosave in later.left_behind()}
    assert set(found) == {PART, AREA}
    np.testing.assert_array_equal(found[AREA].read(), area)
    later.adopt(found[PART])
    assert [autosave.part for autosave in AutosaveFolder(tmp_path).left_behind()] == [AREA]
    later.close(discard=True)
    later.discard(found[AREA])
    assert AutosaveFolder(tmp_path).left_behind() == []
    assert list(tmp_path.iterdir()) == []  # nothing stays for ever


def test_discarded_edits_do_not_come_back_as_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("time.time", lambda: float(next(clock)))
    for number in (1, 2, 3):  # windows that crashed one after the other, the same part edited
        crashed = AutosaveFolder(tmp_path)
        crashed.write(PART, image_of(number), {})
        if number == 2:
            crashed.write(AREA, np.zeros((4, 5), bool), {})
        crashed.close(discard=False)
    window = AutosaveFolder(tmp_path)
    found = {autosave.part: autosave for autosave in window.left_behind()}
    labels = found[PART].read()
    assert isinstance(labels, LabelImage)
    assert labels.ids.tolist() == [3]
    assert (len(found[PART].older), len(found[AREA].older)) == (2, 0)
    window.discard(found[PART])
    assert [autosave.part for autosave in window.left_behind()] == [AREA]
    window.discard(found[AREA])
    assert window.left_behind() == []
    assert list(tmp_path.iterdir()) == []


def test_restored_edits_leave_older_ones_to_be_offered(tmp_path: Path) -> None:
    for number in (1, 2):
        crashed = AutosaveFolder(tmp_path)
        crashed.write(PART, image_of(number), {})
        crashed.close(discard=False)
    window = AutosaveFolder(tmp_path)
    (newest,) = window.left_behind()
    window.adopt(newest)
    (older,) = window.left_behind()
    assert (older.part, older.older) == (PART, ())
    window.close(discard=True)


def test_changed_files_are_noticed(tmp_path: Path) -> None:
    source = tmp_path / "annotation.xml"
    source.write_text("before")
    folder = AutosaveFolder(tmp_path / "autosaves")
    folder.write(PART, image_of(1), file_fingerprints([source], tmp_path))
    folder.close(discard=False)
    (found,) = AutosaveFolder(tmp_path / "autosaves").left_behind()
    assert found.is_of_these_files(tmp_path)
    source.write_text("after")
    assert not found.is_of_these_files(tmp_path)
    source.unlink()
    assert not found.is_of_these_files(tmp_path)


def test_a_damaged_autosave_is_no_obstacle(tmp_path: Path) -> None:
    folder = AutosaveFolder(tmp_path)
    folder.write(PART, image_of(1), {})
    folder.close(discard=False)
    (found,) = AutosaveFolder(tmp_path).left_behind()
    found.path.write_bytes(found.path.read_bytes()[:100])
    with pytest.raises(UnreadableFileError, match="discard them"):
        found.read()
    assert AutosaveFolder(tmp_path).left_behind() == []
