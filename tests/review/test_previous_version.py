"""Files that the version before objects could be mended wrote; they are in tests/data/previous."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.live.autosaves import AutosaveFolder
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side

PREVIOUS = Path(__file__).parents[1] / "data" / "previous"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PREVIOUS, tmp_path / "previous"))


def test_autosaves_open(folder: Path) -> None:
    found = {
        (autosave.part.side, autosave.part.team): autosave.read()
        for autosave in AutosaveFolder(folder / "edits").left_behind()
    }
    assert found.keys() == {(Side.REFERENCE, None), (Side.PREDICTION, "t"), (None, None)}
    for content in found.values():
        if isinstance(content, LabelImage):
            assert content.ids.tolist() == [5, 9]
            assert content.class_names_of_objects().tolist() == ["A", "B"]
            assert np.bincount(content.index.ravel()).tolist() == [1090, 30, 80]
        else:
            assert int(content.sum()) == 110
