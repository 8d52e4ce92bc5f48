"""OME-TIFF and OME-Zarr as images.

The OME-TIFF are written here by tifffile, the OME-Zarr are those of ome-zarr 0.18.0 in
tests/data/formats, whose image is the sum of seeded numbers; see test_foreign_files.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.cohorts.folder_scan import scan_folder
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.one_file import format_of
from napari_panoptic.io.images import slides
from napari_panoptic.io.images.lazy_levels import LazyLevel
from napari_panoptic.io.images.slides import probe_image, read_image
from napari_panoptic.nuclei.regions.reading import read_picture
from tests.support.builders import noise
from tests.support.zarr_stores import unzipped

UM = {"PhysicalSizeX": 0.25, "PhysicalSizeXUnit": "µm", "PhysicalSizeY": 250}
METRES = {**UM, "PhysicalSizeYUnit": "nm"}


def write_ome(path: Path, pixels: np.ndarray, levels: int = 1, **options: Any) -> Path:
    """Write OME-TIFF with its smaller levels in SubIFDs, as Bio-Formats does."""
    metadata = {**METRES, **options.pop("metadata", {})}
    rows, columns = (0, 1) if metadata.get("axes", "YXS").endswith("S") else (1, 2)
    with tifffile.TiffWriter(path, ome=True) as tiff:
        tiff.write(pixels, subifds=levels - 1, metadata=metadata, **options)
        for number in range(1, levels):
            step: list[Any] = [slice(None)] * pixels.ndim
            step[rows] = step[columns] = slice(None, None, 2**number)
            tiff.write(pixels[tuple(step)], subfiletype=1, **options)
    return path


def composed(pixels: np.ndarray, colours: list[tuple[int, int, int]], most: int) -> np.ndarray:
    """Add up colours pixel by pixel."""
    image = np.zeros((*pixels.shape[1:], 3))
    for plane, colour in zip(pixels, colours, strict=True):
        for y, x in np.ndindex(plane.shape):
            image[y, x] += np.array(colour) * min(max(plane[y, x] / most, 0), 1)
    return np.minimum(image, 255)


def messages(image: Any) -> str:
    return " | ".join(finding.message for finding in image.findings)


def test_a_pyramid_of_ome_tiff_is_read_lazily(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slides, "LARGEST_ARRAY_PX", 200 * 200)
    rgb = noise(700, 900)
    options = {"tile": (128, 128), "photometric": "rgb", "compression": "zlib", "predictor": True}
    path = write_ome(tmp_path / "a.ome.tif", rgb, levels=3, **options)
    with read_image(path) as image:
        full, half, overview = image.levels
        assert isinstance(full, LazyLevel)
        assert isinstance(half, LazyLevel)
        np.testing.assert_array_equal(full[100:300, 800:], rgb[100:300, 800:])
        np.testing.assert_array_equal(np.asarray(half), rgb[::2, ::2])
        np.testing.assert_array_equal(overview, rgb[::4, ::4])
        assert (image.shape, image.mpp, image.findings) == ((700, 900), 0.25, ())
    info = probe_image(path)
    assert (info.shape, info.mpp, info.findings) == ((700, 900), 0.25, ())


def test_channels_of_ome_tiff_have_their_declared_colours(tmp_path: Path) -> None:
    planes = np.moveaxis(noise(30, 40), -1, 0)
    colours = [(0, 0, 255), (255, 255, 0), (200, 0, 90)]
    packed = [int.from_bytes(bytes([*rgb, 255]), "big", signed=True) for rgb in colours]
    kind = {"axes": "CYX", "Channel": {"Name": ["DAPI", "CD3", "CD8"], "Color": packed}}
    path = write_ome(tmp_path / "a.ome.tif", planes, metadata=kind, photometric="minisblack")
    image = read_image(path)
    np.testing.assert_allclose(image.levels[0], composed(planes, colours, 255), atol=0.51)
    assert image.findings == ()
    # Twelve of sixteen bits, which the metadata state.
    deep = planes.astype(np.uint16) * 16
    kind["SignificantBits"] = 12
    path = write_ome(tmp_path / "b.ome.tif", deep, metadata=kind, photometric="minisblack")
    image = read_image(path)
    np.testing.assert_allclose(image.levels[0], composed(deep, colours, 4095), atol=0.51)
    assert "from 0 to 4,095" in messages(image)


def test_what_ome_tiff_does_not_declare_is_reported(tmp_path: Path) -> None:
    planes = np.stack([np.full((20, 30), 10 * n, np.uint8) for n in range(1, 6)])
    shown = {}
    for name, count in (("two", 2), ("three", 3), ("five", 5)):
        kind = {"axes": "CYX"}
        path = write_ome(
            tmp_path / f"{name}.ome.tif", planes[:count], metadata=kind, photometric="minisblack"
        )
        image = read_image(path)
        shown[name] = image.levels[0][0, 0].tolist(), messages(image)
    assert shown["two"][0] == shown["five"][0] == [10, 10, 10]
    assert "only number 1 is shown, in grey" in shown["five"][1]
    assert shown["three"][0] == [10, 20, 30]
    assert "shown as red, green and blue" in shown["three"][1]
    # Names of primary colours declare them.
    kind = {"axes": "CYX", "Channel": {"Name": ["Blue", "Green", "Red"]}}
    path = write_ome(tmp_path / "n.ome.tif", planes[:3], metadata=kind, photometric="minisblack")
    image = read_image(path)
    assert (image.levels[0][0, 0].tolist(), image.findings) == ([30, 20, 10], ())


def test_ome_tiff_that_is_no_single_image_is_refused(tmp_path: Path) -> None:
    stack = write_ome(
        tmp_path / "z.ome.tif", np.zeros((4, 20, 30), np.uint8), metadata={"axes": "ZYX"}
    )
    with pytest.raises(UnreadableFileError, match=r"found a stack \(Z = 4\)"):
        read_image(stack)
    path = write_ome(tmp_path / "a.ome.tif", noise(20, 30), photometric="rgb")
    with tifffile.TiffFile(path) as tiff:
        xml = tiff.pages[0].description
    elsewhere = '><UUID FileName="b.ome.tif">urn:uuid:1</UUID></TiffData>'
    tag = '<!DOCTYPE OME SYSTEM "file:///etc/passwd"><OME'
    for changed, words in (
        (xml.replace("<Pixels", "<Pixel"), "copy or export it again"),
        (xml.replace('SizeC="3"', 'SizeC="999999999"'), None),
        (
            re.sub(
                r"<TiffData([^>]*)/>|<TiffData([^>]*)></TiffData>", rf"<TiffData\1{elsewhere}", xml
            ),
            "planes in others",
        ),
        (re.sub(r"<OME", tag, xml, count=1), None),
    ):
        assert changed != xml
        tifffile.imwrite(
            path, noise(20, 30), photometric="rgb", description=changed.encode(), metadata=None
        )
        if words is None:
            np.testing.assert_array_equal(read_image(path).levels[0], noise(20, 30))
            continue
        for read in (read_image, probe_image):
            with pytest.raises(UnreadableFileError, match=words):
                read(path)


@pytest.mark.parametrize("name", ["ome_zarr_0_4", "ome_zarr_0_5"])
def test_images_of_ome_zarr(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unzipped(name, tmp_path)
    levels = [np.moveaxis(zarr.open(path)[f"s{n}"][:], 0, -1) for n in range(3)]
    image = read_image(path)
    np.testing.assert_array_equal(image.levels[0], levels[0])
    assert image.mpp is None
    assert "shown as red, green and blue" in messages(image)
    monkeypatch.setattr(slides, "LARGEST_ARRAY_PX", 100)
    for held, level in zip(read_image(path).levels, levels, strict=True):
        np.testing.assert_array_equal(np.asarray(held), level)
    # As Bio-Formats and OMERO describe the same image.
    file = path / (".zattrs" if name.endswith("4") else "zarr.json")
    attributes = json.loads(file.read_text())
    inside = attributes if name.endswith("4") else attributes["attributes"]["ome"]
    for axis in inside["multiscales"][0]["axes"][1:]:
        axis["unit"] = "micrometer"
    inside["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"] = [1, 0.5, 0.5]
    inside["omero"] = {
        "channels": [
            {"color": "0000FF", "window": {"start": 10, "end": 200}, "label": "DAPI"},
            {"color": "FFFF00", "active": False},
            {"color": "FF0000", "window": {"start": 0, "end": 255}},
        ]
    }
    file.write_text(json.dumps(attributes))
    image = read_image(path)
    assert (image.mpp, image.findings) == (0.5, ())
    planes = np.moveaxis(levels[0], -1, 0).astype(float)
    expected = composed(planes[:1] - 10, [(0, 0, 255)], 190)
    expected += composed(planes[2:], [(255, 0, 0)], 255)
    np.testing.assert_allclose(np.asarray(image.levels[0]), expected, atol=0.51)
    chunk = next(place for place in (path / "s0").rglob("0") if place.is_file())
    outside = tmp_path / "elsewhere"
    chunk.rename(outside)
    chunk.symlink_to(outside)
    with pytest.raises(UnreadableFileError, match="link that leads out"):
        np.asarray(read_image(path).levels[0])


def test_ome_images_of_a_cohort(tmp_path: Path) -> None:
    root = tmp_path / "cohort"
    (root / "images").mkdir(parents=True)
    shutil.rmtree(unzipped("ome_zarr_0_4", tmp_path) / "labels")
    (tmp_path / "ome_zarr_0_4.ome.zarr").rename(root / "images" / "a.ome.zarr")
    write_ome(root / "images" / "b.ome.tif", noise(48, 60), photometric="rgb")
    for name in ("gt/a.tif", "gt/b.tif", "teams/one/a.tif", "teams/one/b.tif"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        tifffile.imwrite(root / name, np.ones((48, 60), np.uint8))
    names = '["images/{region}.ome.zarr", "images/{region}.ome.tif"]'
    (root / "cohort.toml").write_text(
        f"[classes]\ncell = [255, 0, 0]\n[files]\nimage = {names}\n"
        'reference.labels = "gt/{region}.tif"\npredictions.labels = "teams/{team}/{region}.tif"\n'
    )
    cohort = open_cohort(root)
    assert [region.name for region in cohort.regions] == ["a", "b"]
    for region, mpp in zip(cohort.regions, (None, 0.25), strict=True):
        image, _ = read_picture(region)
        assert image is not None
        assert (image.shape, image.mpp) == ((48, 60), mpp)
    # Without a description, or with both files chosen, the content decides.
    (root / "cohort.toml").unlink()
    for name in ("a.tif", "b.tif"):
        (root / "gt" / name).rename(root / "gt" / name.replace(".tif", ".ome.tif"))
    (root / "images" / "b.ome.tif").unlink()
    scan = scan_folder(root)
    assert scan.images is not None
    assert [file.path.name for file in scan.images.files] == ["a.ome.zarr"]
    assert "gt/{region}.ome.tif" in scan.description()
    with pytest.raises(UnreadableFileError, match="without labels; give it as the image"):
        format_of(root / "images" / "a.ome.zarr")
