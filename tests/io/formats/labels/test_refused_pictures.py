"""Pictures in colours, of several pages or in JPEG are no label images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.formats.registry import load_masks, open_masks
from napari_panoptic.values.cohort import ClassScheme
from tests.support.builders import label_files, two_objects, write_tiff

COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255))
ONE = ClassScheme(("cell",), COLOURS[:1], ambiguous=None)
TWO = ClassScheme(("a", "b"), COLOURS[:2], ambiguous=None)
THREE = ClassScheme(("a", "b", "c"), COLOURS, ambiguous=None)
SHAPE = two_objects().shape


def in_colours(dtype: Any) -> NDArray[Any]:
    return np.stack([two_objects()] * 3, axis=-1).astype(dtype)


def refused(path: Path, scheme: ClassScheme, words: str) -> None:
    """Check that an image is refused, whole and in windows."""
    files = label_files(path)
    with pytest.raises(UnreadableFileError, match=words):
        load_masks(files, scheme, shape=SHAPE)
    with pytest.raises(UnreadableFileError):
        open_masks(files, scheme, SHAPE)


@pytest.mark.parametrize("scheme", [TWO, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("table", ["m.csv", "m.json"])
@pytest.mark.parametrize("image", ["m.png", "m.tif"])
def test_colours_beside_a_table_are_refused(
    image: str, table: str, scheme: ClassScheme, tmp_path: Path
) -> None:
    path = tmp_path / image
    if image.endswith(".png"):
        Image.fromarray(in_colours(np.uint8)).save(path)
    else:
        write_tiff(path, in_colours(np.uint16))
    text = "id,class\n1,a\n2,b\n" if table.endswith(".csv") else '{"1": "a", "2": "b"}'
    (tmp_path / table).write_text(text)
    refused(path, scheme, f"the table {table} gives the class")


def test_png_in_colours_of_16_bits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.png"
    path.write_bytes(imagecodecs.png_encode(in_colours(np.uint16)))
    refused(path, THREE, "colours of 16 bits")


def test_a_second_page_is_no_background(tmp_path: Path) -> None:
    path, page = tmp_path / "m.tif", two_objects().astype(np.uint16)
    for second in (np.roll(page, 1, axis=1), 5 * page, np.flipud(page)):
        tifffile.imwrite(path, np.stack([page, second]), photometric="minisblack")
        refused(path, ONE, "different numbers in the last")


def test_a_background_is_still_left_out(tmp_path: Path) -> None:
    path, page = tmp_path / "m.tif", two_objects().astype(np.uint16)
    tifffile.imwrite(path, np.stack([page, 7 * (page == 0)]), photometric="minisblack")
    labels = load_masks(label_files(path), ONE, shape=SHAPE).labels
    np.testing.assert_array_equal(labels.id_image(), page)


@pytest.mark.parametrize("name", ["m.jpg", "m.png", "m.tif"])
def test_jpeg_is_no_label_image(name: str, tmp_path: Path) -> None:
    path, page = tmp_path / name, two_objects().astype(np.uint8)
    if name.endswith(".tif"):
        write_tiff(path, page, compression="jpeg")
    else:
        Image.fromarray(page).save(path, format="JPEG")
    refused(path, ONE, "JPEG compression, which changes the numbers")
