"""A mistake in the program is not reported as a damaged file, a decoder that gives up is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.files import guard
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from tests.support.builders import label_files


def _read(path: Path) -> list[int]:
    files = label_files(Lymphocyte=path)
    loaded = load_masks(files, MONUSAC_CLASSES, shape=(20, 30), region="R", team="T")
    return loaded.labels.class_index.tolist()


def _write(path: Path) -> Path:
    pixels = np.zeros((20, 30), np.uint8)
    pixels[3:9, 4:12] = 1
    match path.suffix:
        case ".tif":
            tifffile.imwrite(path, pixels)
        case ".npy":
            np.save(path, pixels)
        case _:
            Image.fromarray(pixels).save(path)
    return path


@pytest.mark.parametrize("name", ["label.tif", "label.npy", "label.png"])
def test_a_mistake_in_this_program_is_no_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = _write(tmp_path / name)
    assert len(_read(path)) == 1
    monkeypatch.delattr(guard, "BYTES_PER_PX")  # as after a typo
    with pytest.raises(NameError, match="BYTES_PER_PX"):
        _read(path)


def test_a_decoder_that_gives_up_with_such_an_error_still_means_damage(
    tmp_path: Path,
) -> None:
    """Pillow raises SyntaxError for a broken PNG."""
    path = _write(tmp_path / "label.png")
    content = path.read_bytes()
    at = content.index(b"IDAT")
    path.write_bytes(content[:at] + b"I\0\0\0" + content[at + 4 :])
    with pytest.raises(UnreadableFileError, match="damaged"):
        _read(path)
