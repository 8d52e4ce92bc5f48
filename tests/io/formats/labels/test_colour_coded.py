from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from skimage.measure import label
from skimage.morphology import dilation, disk, erosion

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.formats.labels import colour_coded
from napari_panoptic.io.formats.labels.colour_coded import (
    ColourCodedMask,
    read_colour_coded,
    restore,
)
from napari_panoptic.io.formats.reading import reading
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import Restoration
from tests.support.builders import BORDER, colour_mask, write_tiff
from tests.support.examples import seeds

DILATED = Restoration.BORDER_DILATED
REMOVED = Restoration.BORDER_REMOVED


def random_classes(seed: int) -> NDArray[np.int64]:
    """Draw blobs of four classes with a border of -1 between and around them."""
    generator = np.random.default_rng(seed)
    shape = tuple(generator.integers(3, 50, 2))
    fields = [ndimage.gaussian_filter(generator.normal(size=shape), 2) for _ in range(4)]
    classes = np.argmax(fields, axis=0) + 1
    classes[np.max(fields, axis=0) < 0.02] = 0
    rim = (ndimage.maximum_filter(classes, 3) != ndimage.minimum_filter(classes, 3)) & (classes > 0)
    classes[rim] = -1
    return classes


def mask_of(classes: NDArray[Any]) -> ColourCodedMask:
    return ColourCodedMask(np.where(classes > 0, classes, 0).astype(np.uint8))


def read(
    path: Path, scheme: ClassScheme = MONUSAC_CLASSES, shape: tuple[int, int] | None = None
) -> tuple[ColourCodedMask, list[Finding]]:
    with reading(path, region="R", team="T") as found:
        return read_colour_coded(path, scheme, shape), found


def test_colours_become_classes(tmp_path: Path) -> None:
    classes = np.array([[0, 1, 2, 3], [4, -1, 0, 1]])
    path = write_tiff(tmp_path / "a.tif", colour_mask(classes))
    mask, found = read(path, shape=(2, 4))
    np.testing.assert_array_equal(mask.class_image, [[0, 1, 2, 3], [4, 0, 0, 1]])
    assert found == []


@pytest.mark.parametrize("seed", seeds(25))
@pytest.mark.parametrize("radius", [-3, -1, 0, 1, 2, 4])
def test_restoration_against_the_plain_way(seed: int, radius: int) -> None:
    classes = random_classes(seed)
    flat = np.zeros(classes.shape, int)
    next_id = 1
    for number in (1, 2, 3, 4):
        objects = label(classes == number)
        grown = objects.copy() if radius >= 0 else np.zeros_like(objects)
        for one in range(1, objects.max() + 1):
            if radius == 1:
                grown[dilation(objects == one, disk(1))] = one
            elif radius > 1:
                grown[dilation(objects == one, disk(radius)) & (objects == 0)] = one
            elif radius < 0:
                # The default of erosion: beyond the image counts as object.
                grown[erosion(objects == one, disk(-radius))] = one
        flat[grown > 0] = grown[grown > 0] + 100_000 * number
        next_id += objects.max()
    found = restore(mask_of(classes), MONUSAC_CLASSES, DILATED, radius)
    # The same objects, whatever their numbers.
    pairs = set(zip(flat.ravel().tolist(), found.index.ravel().tolist(), strict=True))
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert len(found) == len(np.unique(flat[flat > 0]))
    for row, number in enumerate(found.class_index, start=1):
        assert set((flat[found.index == row] // 100_000).tolist()) == {int(number)}
    assert set(found.class_masks) == {
        name for k, name in enumerate(MONUSAC_CLASSES.names, start=1) if np.any(classes == k)
    }
    # Masks of single classes, laid over each other, are the same again.
    again = LabelImage.from_class_masks(found.class_masks, MONUSAC_CLASSES.names, classes.shape)
    np.testing.assert_array_equal(found.index, again.index)
    for name in ("ids", "original_ids", "class_index"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
    assert found.overlapping_px == again.overlapping_px
    eroded = [v for v in found.vanished if v.reason == "eroded away"]
    assert (*eroded, *again.vanished) == found.vanished
    assert len(found) + len(found.vanished) == next_id - 1


@pytest.mark.parametrize("radius", [-2, 0, 5])
def test_border_removed_knows_no_radius(radius: int) -> None:
    mask = mask_of(random_classes(3))
    found = restore(mask, MONUSAC_CLASSES, REMOVED, radius)
    expected = restore(mask, MONUSAC_CLASSES, DILATED, 0)
    np.testing.assert_array_equal(found.index, expected.index)


def test_dilated_objects_take_pixels_of_earlier_classes() -> None:
    classes = np.zeros((5, 7), int)
    classes[2, 1:3] = 1
    classes[2, 3:5] = 2
    found = restore(mask_of(classes), MONUSAC_CLASSES, DILATED, 1)
    image = found.class_index[found.index - 1] * (found.index > 0)
    # Column 2 is epithelial in the mask, and rim of the lymphocyte after it.
    assert image[2].tolist() == [1, 1, 2, 2, 2, 2, 0]
    assert found.overlapping_px > 0


def test_an_object_that_erodes_away_has_vanished() -> None:
    classes = np.zeros((9, 9), int)
    classes[1:3, 1:3] = 1
    classes[4:9, 4:9] = 1
    found = restore(mask_of(classes), MONUSAC_CLASSES, DILATED, -1)
    assert [(v.id, v.class_name, v.reason) for v in found.vanished] == [
        (1, "Epithelial", "eroded away")
    ]
    # The image's edge erodes nothing: of 5 x 5 px in the corner 4 x 4 stay.
    assert np.count_nonzero(found.index) == 16


def test_an_empty_mask() -> None:
    found = restore(mask_of(np.zeros((4, 5))), MONUSAC_CLASSES, DILATED, 1)
    assert (len(found), found.shape, found.class_masks) == (0, (4, 5), {})


def test_unknown_colours_are_counted_and_named(tmp_path: Path) -> None:
    rgb = colour_mask(np.array([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0]]))
    rgb[1, :3] = (250, 3, 1)
    rgb[1, 3] = (9, 9, 9)
    path = write_tiff(tmp_path / "a.tif", rgb)
    mask, (finding,) = read(path)
    assert finding.kind is FindingKind.UNKNOWN_COLOURS
    assert (finding.count, finding.region, finding.team, finding.path) == (4, "R", "T", path)
    assert "40.00%" in finding.message
    assert "(250, 3, 1) with 75%" in finding.message
    assert "(9, 9, 9) with 25%" in finding.message
    assert not mask.class_image[1].any()


def test_a_jpeg_mask_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    classes = np.zeros((40, 40), int)
    classes[10:30, 10:30] = 1
    path = tmp_path / "a.jpg"
    Image.fromarray(colour_mask(classes)).save(path, quality=80)
    _, (finding,) = read(path)
    assert finding.kind is FindingKind.UNKNOWN_COLOURS
    assert "JPEG" in finding.message


def test_alpha_channels(tmp_path: Path) -> None:
    rgb = colour_mask(np.array([[1, 2], [3, 4]]))
    alpha = np.full((2, 2, 1), 255, np.uint8)
    opaque = tmp_path / "a.png"
    Image.fromarray(np.concatenate([rgb, alpha], axis=2)).save(opaque)
    mask, found = read(opaque)
    np.testing.assert_array_equal(mask.class_image, [[1, 2], [3, 4]])
    assert [f.kind for f in found] == [FindingKind.FALLBACK]
    alpha[0, 0] = 0
    path = write_tiff(tmp_path / "b.tif", np.concatenate([rgb, alpha], axis=2))
    mask, found = read(path)
    np.testing.assert_array_equal(mask.class_image, [[0, 2], [3, 4]])
    assert "1 transparent" in found[0].message


def test_other_ways_to_save_the_same_colours(tmp_path: Path) -> None:
    classes = np.array([[1, 2, 0, 3, 4], [4, -1, 0, 1, 0]])
    rgb = colour_mask(classes)
    paths = [
        write_tiff(
            tmp_path / "planar.tif",
            np.moveaxis(rgb, -1, 0),
            photometric="rgb",
            planarconfig="separate",
        ),
        write_tiff(tmp_path / "page.tif", rgb[np.newaxis]),
        write_tiff(tmp_path / "deep.tif", rgb.astype(np.uint16) * 257),
        write_tiff(tmp_path / "wide.tif", rgb.astype(np.uint16)),
        tmp_path / "palette.png",
        tmp_path / "palette.tif",
    ]
    Image.fromarray(rgb).quantize(8).save(paths[-2])
    Image.fromarray(rgb).quantize(8).save(paths[-1])
    for path in paths:
        mask, _ = read(path, shape=(2, 5))
        np.testing.assert_array_equal(mask.class_image, np.where(classes > 0, classes, 0))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.arange(12, dtype=np.uint8).reshape(3, 4), "label image"),
        (np.zeros((3, 4), np.float32), "save the mask in colour"),
        (np.full((3, 4, 3), 1000, np.uint16), "8-bit RGB"),
        (np.zeros((3, 4, 3), np.float32), "8-bit RGB"),
        (np.full((3, 4, 3), 77, np.uint8), "no pixel of a known colour"),
        (np.zeros((4, 3, 3), np.uint8), "width and height are swapped"),
        (np.zeros((5, 9, 3), np.uint8), "found 9 x 5 px"),
    ],
)
def test_what_is_no_mask_of_this_region(tmp_path: Path, array: NDArray[Any], words: str) -> None:
    path = write_tiff(tmp_path / "a.tif", array)
    with pytest.raises(UnreadableFileError, match=words) as caught:
        read(path, shape=(3, 4))
    assert (caught.value.path, caught.value.region) == (path, "R")


@pytest.mark.parametrize("keep", [0, 4, 60, 200, 2000])
@pytest.mark.parametrize("compression", [None, "adobe_deflate", "lzw"])
def test_truncated_masks(tmp_path: Path, keep: int, compression: str | None) -> None:
    rgb = np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    data = write_tiff(tmp_path / "a.tif", rgb, compression=compression).read_bytes()
    assert len(data) > 2000
    (tmp_path / "b.tif").write_bytes(data[:keep])
    with pytest.raises(UnreadableFileError, match="copy or export it again"):
        read(tmp_path / "b.tif")


def test_border_and_background_colours_of_other_schemes(tmp_path: Path) -> None:
    scheme = ClassScheme(
        ("A",), ((1, 1, 1),), border=((2, 2, 2), BORDER), background=((9, 9, 9), (255, 255, 255))
    )
    rgb = np.array([[(1, 1, 1), (2, 2, 2), BORDER, (9, 9, 9), (255, 255, 255)]], np.uint8)
    mask, found = read(write_tiff(tmp_path / "a.tif", rgb), scheme)
    assert (mask.class_image.tolist(), found) == ([[1, 0, 0, 0, 0]], [])


def test_threads_number_different_masks_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Barrier(2)
    count = colour_coded.counted_components

    def counted(class_image: NDArray[np.uint8]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        both.wait(20)
        return count(class_image)

    monkeypatch.setattr(colour_coded, "counted_components", counted)
    masks = [mask_of(random_classes(seed)) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(ColourCodedMask.numbered, masks))
    for mask, numbered in zip(masks, found, strict=True):
        assert mask.numbered() is numbered  # kept, not counted again
        np.testing.assert_array_equal(numbered[0], count(mask.class_image)[0])
