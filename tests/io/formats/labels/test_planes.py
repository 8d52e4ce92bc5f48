"""Label images opened as slides are those that are read whole."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.formats.format import TiledMasks
from napari_panoptic.io.formats.registry import load_masks, open_masks
from napari_panoptic.io.pixels.label_windows import is_zarr, open_pixels
from napari_panoptic.values.cohort import ClassScheme, MaskFiles, MaskObjects, OutlineRules, Source
from napari_panoptic.values.windowed_labels import TiledLabels
from tests.support.examples import examples
from tests.support.zarr_stores import KINDS, write_zarr

SCHEME = ClassScheme(("a", "b"), ((255, 0, 0), (0, 255, 0)), ambiguous="unclear")
ONE_CLASS = ClassScheme(("cell",), ((255, 0, 0),), ambiguous=None)


def mask_files(**paths: Path) -> MaskFiles:
    return MaskFiles(Source.LABELS, {name: (path,) for name, path in paths.items()})


def single(*paths: Path) -> MaskFiles:
    return MaskFiles(Source.LABELS, {"": paths})


def some_ids(rng: np.random.Generator, shape: tuple[int, int], highest: int) -> np.ndarray:
    """Draw rectangles of random ids, half of the image left empty."""
    image = np.zeros(shape, np.int64)
    for _ in range(12):
        y, x = (int(rng.integers(0, size)) for size in shape)
        height, width = rng.integers(1, 9, 2)
        image[y : y + height, x : x + width] = rng.integers(0, highest + 1)
    return image


def write_table(path: Path, classes: Mapping[int, str]) -> Path:
    path.write_text(json.dumps({str(id_): name for id_, name in classes.items()}))
    return path


def in_windows(labels: TiledLabels, edge: int) -> np.ndarray:
    whole = np.full(labels.shape, -1, np.int32)
    for y in range(0, labels.shape[0], edge):
        for x in range(0, labels.shape[1], edge):
            box = y, x, min(y + edge, labels.shape[0]), min(x + edge, labels.shape[1])
            window = labels.read(box)
            assert window.dtype == np.int32
            whole[box[0] : box[2], box[1] : box[3]] = window
    return whole


def as_told(findings: tuple[Finding, ...]) -> list[tuple[Any, ...]]:
    """Give findings without what only one of the two ways says."""
    return sorted((f.kind, f.message, f.path, f.region, f.team, f.class_name) for f in findings)


def assert_same(files: MaskFiles, scheme: ClassScheme, shape: tuple[int, int]) -> TiledMasks:
    """Compare with the whole image: objects, classes, ambiguous area, and findings."""
    # Whether pieces lie far apart is only found in whole images here; on slides, afterwards.
    files = replace(files, rules=OutlineRules(objects=MaskObjects.NUMBERS))
    expected = load_masks(files, scheme, shape=shape, region="r", team="t")
    found = open_masks(files, scheme, shape, region="r", team="t")
    labels = found.labels
    assert (np.diff(labels.ids) > 0).all()
    whole = in_windows(labels, 7)
    np.testing.assert_array_equal(
        np.concatenate([[0], labels.ids])[whole], expected.labels.id_image()
    )
    has_pixel = np.isin(np.arange(1, len(labels) + 1), whole)
    np.testing.assert_array_equal(labels.ids[has_pixel], expected.labels.ids)
    np.testing.assert_array_equal(labels.class_index[has_pixel], expected.labels.class_index)
    np.testing.assert_array_equal(labels.original_ids[has_pixel], expected.labels.original_ids)
    height, width = shape
    area = found.ambiguous.read((0, 0, height, width)) if found.ambiguous is not None else None
    if expected.ambiguous is None:
        assert area is None
    else:
        np.testing.assert_array_equal(area, expected.ambiguous)
    after = found.findings_after(has_pixel) if found.findings_after is not None else ()
    assert as_told((*found.findings, *after)) == as_told(expected.findings)
    return found


seeds = st.integers(0, 2**32 - 1)
shapes = st.tuples(st.integers(1, 30), st.integers(1, 30))


@settings(max_examples=examples(60), deadline=None)
@given(seed=seeds, shape=shapes, highest=st.sampled_from([3, 40, 2**24, 2**31 + 5]))
def test_one_image_with_a_table(
    seed: int, shape: tuple[int, int], highest: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("labels")
    image = some_ids(rng, shape, highest)
    known = [int(id_) for id_ in np.unique(image) if id_ and rng.random() < 0.8]
    classes = {
        id_: str(rng.choice(["a", "B", "unclear", "2", "strange"]))
        for id_ in [*known, int(rng.integers(1, 50))]
    }
    dtype = np.int64 if highest > 2**31 else np.uint32
    tifffile.imwrite(folder / "m.tif", image.astype(dtype))
    write_table(folder / "m.json", classes)
    assert_same(single(folder / "m.tif"), SCHEME, shape)


@settings(max_examples=examples(60), deadline=None)
@given(seed=seeds, shape=shapes, highest=st.sampled_from([1, 3, 40, 2**31 + 5]))
def test_one_image_per_class(
    seed: int, shape: tuple[int, int], highest: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("labels")
    paths = {}
    for name in ("b", "unclear", "a"):
        if rng.random() < 0.8:
            paths[name] = folder / f"{name}.npy"
            np.save(paths[name], some_ids(rng, shape, highest))
    if paths:
        assert_same(mask_files(**paths), SCHEME, shape)


@pytest.mark.parametrize("value", [1, 255])
@pytest.mark.parametrize("n_pieces", [0, 1, 3])
def test_binary_masks(value: int, n_pieces: int, tmp_path: Path) -> None:
    image = np.zeros((20, 30), np.uint8)
    for piece in range(n_pieces):
        image[4 + piece : 7 + piece, 8 * piece + 2 : 8 * piece + 5] = value
    np.save(tmp_path / "m.npy", image)
    found = assert_same(single(tmp_path / "m.npy"), ONE_CLASS, image.shape)
    assert len(found.labels) == n_pieces


def tiff_ways() -> dict[str, dict[str, Any]]:
    return {
        "contiguous": {},
        "deflate tiles": {"tile": (16, 16), "compression": "adobe_deflate"},
        "oblong tiles": {"tile": (32, 16), "compression": "adobe_deflate"},
        "lzw tiles": {"tile": (16, 16), "compression": "lzw"},
        "zstd tiles, predictor": {"tile": (16, 16), "compression": "zstd", "predictor": True},
        "deflate, predictor": {"tile": (16, 16), "compression": "zlib", "predictor": True},
        "plain tiles": {"tile": (16, 16)},
        "strips": {"rowsperstrip": 3, "compression": "adobe_deflate"},
        "packed strips": {"rowsperstrip": 7, "compression": "packbits"},
        "one strip": {"rowsperstrip": 1000, "compression": "lzw"},
        "big endian": {"byteorder": ">", "tile": (16, 16), "compression": "adobe_deflate"},
        "big endian contiguous": {"byteorder": ">"},
        "bigtiff": {"bigtiff": True, "tile": (16, 16), "compression": "adobe_deflate"},
    }


@pytest.mark.parametrize("way", tiff_ways())
@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_every_tiff(way: str, dtype: str, tmp_path: Path) -> None:
    options = tiff_ways()[way]
    if dtype.endswith("8"):
        options.pop("predictor", None)  # which the writer does not have for these
    image = some_ids(np.random.default_rng(3), (50, 61), 100)
    tifffile.imwrite(tmp_path / "m.tif", image.astype(dtype), photometric="minisblack", **options)
    assert_same(single(tmp_path / "m.tif"), ONE_CLASS, image.shape)


def test_sparse_tiles_are_background(tmp_path: Path) -> None:
    with tifffile.TiffWriter(tmp_path / "m.tif") as tiff:
        tile = np.full((16, 16), 7, np.uint32)
        tiff.write(
            iter([b"", imagecodecs_deflate(tile), b"", b""]),
            shape=(30, 32),
            dtype="uint32",
            tile=(16, 16),
            compression="adobe_deflate",
        )
    found = open_masks(single(tmp_path / "m.tif"), ONE_CLASS, (30, 32))
    expected = np.zeros((30, 32), int)
    expected[:16, 16:] = 1
    np.testing.assert_array_equal(in_windows(found.labels, 9), expected)


def imagecodecs_deflate(tile: np.ndarray) -> bytes:
    import zlib

    return zlib.compress(tile.tobytes())


def test_the_largest_level_of_a_pyramid(tmp_path: Path) -> None:
    image = some_ids(np.random.default_rng(5), (64, 80), 30).astype(np.uint16)
    with tifffile.TiffWriter(tmp_path / "m.ome.tif") as tiff:
        how = {"tile": (16, 16), "compression": "adobe_deflate", "photometric": "minisblack"}
        tiff.write(image, subifds=2, **how)
        tiff.write(image[::2, ::2], subfiletype=1, **how)
        tiff.write(image[::4, ::4], subfiletype=1, **how)
    found = assert_same(single(tmp_path / "m.ome.tif"), ONE_CLASS, image.shape)
    assert found.labels.tile_px == 16


@pytest.mark.parametrize("leading", [(), (1,), (1, 1, 1)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<i4", ">u2", "<f8"])
def test_npy(leading: tuple[int, ...], order: Any, dtype: str, tmp_path: Path) -> None:
    image = some_ids(np.random.default_rng(5), (40, 33), 30).astype(dtype)
    np.save(tmp_path / "m.npy", np.asarray(image.reshape(*leading, 40, 33), order=order))
    assert_same(single(tmp_path / "m.npy"), ONE_CLASS, image.shape)


def test_png_is_held(tmp_path: Path) -> None:
    image = some_ids(np.random.default_rng(5), (40, 33), 30).astype(np.uint8)
    Image.fromarray(image).save(tmp_path / "m.png")
    assert_same(single(tmp_path / "m.png"), ONE_CLASS, image.shape)


@pytest.mark.parametrize("way", [{"default": "b"}, {"aliases": {"": "b"}}])
@pytest.mark.parametrize("highest", [9, 2**31 + 9])
def test_objects_that_the_table_lacks_may_have_a_class(
    way: dict[str, Any], highest: int, tmp_path: Path
) -> None:
    image = np.zeros((20, 30), np.int64)
    for number, id_ in enumerate((3, 5, highest)):
        image[4, 8 * number : 8 * number + 5] = id_
    np.save(tmp_path / "m.npy", image)
    write_table(tmp_path / "m.json", {3: "a"})
    found = assert_same(single(tmp_path / "m.npy"), replace(SCHEME, **way), image.shape)
    assert found.labels.class_index.tolist()[-2:] == [2, 2]


def test_ids_beyond_int64_need_no_table(tmp_path: Path) -> None:
    image = np.zeros((5, 6), np.uint64)
    image[2, 3], image[2, 5] = 2**63 + 5, 2**63 + 9
    np.save(tmp_path / "m.npy", image)
    read = load_masks(single(tmp_path / "m.npy"), ONE_CLASS, shape=(5, 6))
    assert read.labels.ids.tolist() == [1, 2]
    assert f"ids up to {2**63 + 9}" in read.findings[0].message
    write_table(tmp_path / "m.json", {1: "a"})
    with pytest.raises(UnreadableFileError, match=r"ids above 2\^63"):
        load_masks(single(tmp_path / "m.npy"), SCHEME, shape=(5, 6))


# --- OME-Zarr ---------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("leading", [(), (1, 1, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_ome_zarr(zarr_format: Any, leading: tuple[int, ...], kind: str, tmp_path: Path) -> None:
    image = some_ids(np.random.default_rng(7), (40, 50), 30).astype(np.int32)
    path = write_zarr(
        tmp_path / "m.ome.zarr", image, kind=kind, zarr_format=zarr_format, leading=leading
    )
    assert is_zarr(path)
    found = open_masks(single(path), ONE_CLASS, image.shape)
    assert found.labels.tile_px == 16
    whole = np.concatenate([[0], found.labels.ids])[in_windows(found.labels, 11)]
    np.testing.assert_array_equal(whole, image)


def test_a_zarr_without_an_image_says_so(tmp_path: Path) -> None:
    zarr.create_group(str(tmp_path / "m.zarr"))
    with pytest.raises(UnreadableFileError, match="multiscales"):
        open_masks(single(tmp_path / "m.zarr"), ONE_CLASS, (4, 4))


# --- what is wrong is said in words -----------------------------------------------------------


def test_another_size(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.zeros((5, 6), int))
    with pytest.raises(UnreadableFileError, match="width and height are swapped"):
        open_masks(single(tmp_path / "m.npy"), ONE_CLASS, (6, 5))


def test_several_planes(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.zeros((2, 50, 60), int))
    with pytest.raises(UnreadableFileError, match="one plane"):
        open_masks(single(tmp_path / "m.npy"), ONE_CLASS, (50, 60))


@pytest.mark.parametrize("value", [-1, 0.5, np.nan])
def test_what_is_no_id(value: float, tmp_path: Path) -> None:
    image = np.zeros((5, 6), np.float64 if value != -1 else np.int32)
    image[2, 3] = value
    np.save(tmp_path / "m.npy", image)
    write_table(tmp_path / "m.json", {1: "a"})
    found = open_masks(single(tmp_path / "m.npy"), SCHEME, (5, 6))
    with pytest.raises(UnreadableFileError, match="whole numbers"):
        found.labels.read((0, 0, 5, 6))


def test_no_classes(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.zeros((5, 6), int))
    with pytest.raises(UnreadableFileError, match="no class information"):
        open_masks(single(tmp_path / "m.npy"), SCHEME, (5, 6))


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "m.tif"
    image = np.random.default_rng(1).integers(0, 99, (64, 64))
    tifffile.imwrite(path, image, tile=(16, 16), compression="adobe_deflate")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(UnreadableFileError, match="cannot be decoded"):
        open_masks(single(path), ONE_CLASS, (64, 64))
    path.write_bytes(data)
    with tifffile.TiffFile(path) as tiff:
        start = tiff.pages[0].dataoffsets[5]
    path.write_bytes(data[:start] + b"\0" * 40 + data[start + 40 :])
    with pytest.raises(UnreadableFileError, match="cannot be decoded"):
        open_masks(single(path), ONE_CLASS, (64, 64))


def test_pieces_too_large_for_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = np.ones((50, 60), np.uint8)
    tifffile.imwrite(tmp_path / "m.tif", image, compression="lzw", rowsperstrip=50)
    monkeypatch.setattr("napari_panoptic.io.files.guard.SEGMENT_BYTES", 1000)
    with pytest.raises(UnreadableFileError, match="smaller tiles"):
        open_pixels(tmp_path / "m.tif", "a mask")


def test_progress_and_giving_up(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "m.tif", np.ones((50, 60), np.uint8), tile=(16, 16))
    told: list[tuple[int, int]] = []
    files = single(tmp_path / "m.tif")
    open_masks(files, ONE_CLASS, (50, 60), progress=lambda done, n: told.append((done, n)))
    assert told[0] == (1, 1)

    def give_up(done: int, n: int) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_masks(files, ONE_CLASS, (50, 60), progress=give_up)


def test_extra_files_are_told(tmp_path: Path) -> None:
    for name in ("m", "n"):
        np.save(tmp_path / f"{name}.npy", np.ones((5, 6), int))
    found = assert_same(single(tmp_path / "m.npy", tmp_path / "n.npy"), ONE_CLASS, (5, 6))
    assert [f.kind for f in found.findings] == [FindingKind.EXTRA]
    assert re.search("n.npy not", found.findings[0].message)
