from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import openslide
import pytest
import tifffile
from PIL import Image

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.files import guard
from napari_panoptic.io.images import slides
from napari_panoptic.io.images.slides import (
    IMAGE_ENDINGS,
    SLIDE_ENDINGS,
    SlideLevel,
    probe_image,
    read_image,
)
from napari_panoptic.io.pixels import tiff_windows
from napari_panoptic.io.pixels.tiff_windows import level_windows
from tests.support.builders import noise, write_svs, write_tiff
from tests.support.paths import SHARED_CASES, needs_shared_cases


def test_a_slide_is_read_whole_with_its_resolution(tmp_path: Path) -> None:
    rgb = noise(86, 33)
    path = write_svs(tmp_path / "région é 试.svs", rgb, mpp=0.2525)
    image = read_image(path)
    np.testing.assert_array_equal(image.levels[0], rgb)
    assert (image.mpp, image.shape, image.findings) == (0.2525, (86, 33), ())
    info = probe_image(path)
    assert (info.mpp, info.shape, info.findings) == (0.2525, (86, 33), ())


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are seen on Linux only")
def test_no_file_stays_open(tmp_path: Path) -> None:
    path = write_svs(tmp_path / "a.svs", noise(300, 300))
    (tmp_path / "b.svs").write_bytes(path.read_bytes()[:400])
    write_tiff(tmp_path / "c.tif", noise(30, 30))
    for _ in range(3):
        probe_image(path)
        read_image(path)
        read_image(tmp_path / "c.tif")
        with pytest.raises(UnreadableFileError):
            read_image(tmp_path / "b.svs")
    opened = [str(fd.resolve()) for fd in Path("/proc/self/fd").iterdir()]
    assert not [name for name in opened if str(tmp_path) in name]


def test_without_mpp_there_is_a_finding(tmp_path: Path) -> None:
    path = write_svs(tmp_path / "a.svs", noise(20, 20), mpp=None)
    image = read_image(path)
    assert image.mpp is None
    assert [f.kind for f in image.findings] == [FindingKind.NO_MPP]
    assert probe_image(path).findings == image.findings


def test_resolution_tags_serve_where_they_are_plausible(tmp_path: Path) -> None:
    per_cm = 40_000
    path = write_tiff(
        tmp_path / "a.tif", noise(9, 9), resolution=(per_cm, per_cm), resolutionunit="CENTIMETER"
    )
    image = read_image(path)
    assert image.mpp == pytest.approx(0.25)
    assert [f.kind for f in image.findings] == [FindingKind.FALLBACK]
    screen = write_tiff(tmp_path / "b.tif", noise(9, 9), resolution=(72, 72), resolutionunit="INCH")
    assert probe_image(screen).mpp is None


def test_pixels_that_are_not_square(tmp_path: Path) -> None:
    path = write_tiff(
        tmp_path / "a.tif", noise(9, 9), resolution=(40_000, 20_000), resolutionunit="CENTIMETER"
    )
    info = probe_image(path)
    assert info.mpp == pytest.approx(0.375)
    assert any("not square" in finding.message for finding in info.findings)


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.jpg"])
def test_pictures_of_other_formats(tmp_path: Path, name: str) -> None:
    rgb = np.full((12, 17, 3), 200, np.uint8)
    path = tmp_path / name
    if name.endswith("tif"):
        write_tiff(path, rgb)
    else:
        Image.fromarray(rgb).save(path, quality=100)
    image = read_image(path)
    assert image.shape == probe_image(path).shape == (12, 17)
    np.testing.assert_allclose(image.levels[0], rgb, atol=2)


@pytest.mark.parametrize(
    "pixels",
    [
        np.full((6, 7), 9, np.uint8),
        np.full((6, 7), 9 * 256, np.uint16),
        np.full((6, 7, 4), 9, np.uint8),
        np.full((6, 7, 3), 9 * 257, np.uint16),
    ],
)
def test_grey_deep_and_transparent_pictures_become_rgb(tmp_path: Path, pixels: np.ndarray) -> None:
    image = read_image(write_tiff(tmp_path / "a.tif", pixels))
    np.testing.assert_array_equal(image.levels[0], np.full((6, 7, 3), 9, np.uint8))


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.tif"])
@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_a_turned_image_is_reported(tmp_path: Path, name: str, orientation: int) -> None:
    path, rgb = tmp_path / name, noise(20, 30)
    if name.endswith("tif"):
        tifffile.imwrite(
            path,
            rgb,
            metadata=None,
            extratags=[(274, "H", 1, orientation, True)],
            photometric="rgb",
        )
    else:
        exif = Image.Exif()
        exif[274] = orientation
        Image.fromarray(rgb).save(path, exif=exif)
    info = probe_image(path)
    with read_image(path) as image:
        assert info.shape == image.shape == (20, 30)
        for findings in (info.findings, image.findings):
            turned = [f.message for f in findings if "turned or mirrored" in f.message]
            assert len(turned) == (orientation != 1)
            assert all(f"orientation {orientation} of EXIF" in message for message in turned)


def test_planar_rgb(tmp_path: Path) -> None:
    rgb = noise(5, 7)
    planes = np.moveaxis(rgb, -1, 0)
    path = write_tiff(tmp_path / "a.tif", planes, photometric="rgb", planarconfig="separate")
    np.testing.assert_array_equal(read_image(path).levels[0], rgb)
    assert probe_image(path).shape == (5, 7)


def test_a_stripped_tiff_that_is_called_svs(tmp_path: Path) -> None:
    rgb = noise(40, 30)
    path = write_tiff(tmp_path / "a.svs", rgb)
    np.testing.assert_array_equal(read_image(path).levels[0], rgb)


@pytest.mark.parametrize("keep", [1, 100, 700, 3000, 5000])
def test_a_truncated_slide_is_refused(tmp_path: Path, keep: int) -> None:
    data = write_svs(tmp_path / "a.svs", noise(60, 60)).read_bytes()
    assert len(data) > 5000
    path = tmp_path / "b.svs"
    path.write_bytes(data[:keep])
    with pytest.raises(UnreadableFileError, match="copy or export it again"):
        read_image(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty file"), (b"this is no picture", "copy or export it again")],
)
@pytest.mark.parametrize("name", ["a.svs", "a.png", "a.tif"])
def test_what_is_no_picture(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for read in (read_image, probe_image):
        with pytest.raises(UnreadableFileError, match=words) as caught:
            read(path)
        assert caught.value.path == path


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="no such file"):
        read_image(tmp_path / "a.svs")
    with pytest.raises(UnreadableFileError, match="found a folder"):
        read_image(tmp_path)


def test_a_large_slide_is_read_lazily(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slides, "LARGEST_ARRAY_PX", 200 * 200)
    monkeypatch.setattr(slides, "LARGEST_OVERVIEW_PX", 200 * 200)
    rgb = noise(700, 900)
    path = write_svs(tmp_path / "a.svs", rgb)
    with read_image(path) as image:
        full, overview = image.levels
        assert isinstance(full, SlideLevel)
        assert (full.shape, full.dtype, full.ndim) == ((700, 900, 3), np.uint8, 3)
        assert (full.size, len(full), full.chunks) == (700 * 900 * 3, 700, (512, 512, 3))
        for key in (
            np.s_[10:300, 800:],
            np.s_[5],
            np.s_[5, -1],
            np.s_[..., 0],
            np.s_[::7, 100:20:-3, 1:],
            np.s_[699::-1, 3:3],
            np.s_[-1, ..., 2],
        ):
            np.testing.assert_array_equal(full[key], rgb[key])
        np.testing.assert_array_equal(np.asarray(full), rgb)
        assert overview.shape[0] * overview.shape[1] <= 200 * 200
        np.testing.assert_array_equal(overview, rgb[::4, ::4])
        with pytest.raises(IndexError, match="out of bounds"):
            full[700]
        with pytest.raises(IndexError, match="too many"):
            full[0, 0, 0, 0]
    image.close()
    with pytest.raises(UnreadableFileError, match="closed"):
        full[0]


APERIO = "Aperio Image Library v11.2.1 \r\n900x700|AppMag = 40|MPP = 0.25"


def write_pyramid(path: Path, rgb: np.ndarray, *, steps: tuple[int, ...], **options: Any) -> Path:
    with tifffile.TiffWriter(path) as tiff:
        for step in steps:
            kind = {"subfiletype": int(step > 1), "metadata": None, "description": APERIO}
            tiff.write(rgb[::step, ::step], tile=(128, 128), photometric="rgb", **kind, **options)
    return path


def smooth(height: int, width: int) -> np.ndarray:
    """Draw what JPEG keeps without large errors; no two tiles are alike."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(y / 31 + x / 17), np.cos(y / 13 - x / 41), np.sin(x * y / 9000)]
    return np.uint8(127 + 100 * np.stack(waves, axis=-1))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "lzw"},
        {"compression": "adobe_deflate", "predictor": True},
        {"compression": "jpeg"},
        {"compression": "jpeg", "compressionargs": {"level": 100}, "subsampling": (1, 1)},
        {"compression": "APERIO_JP2000_RGB"},
    ],
    ids=str,
)
def test_tiles_are_decoded_to_the_pixels_that_openslide_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(slides, "LARGEST_ARRAY_PX", 200 * 200)
    monkeypatch.setattr(tiff_windows, "KEPT_BYTES", 5 * 128 * 128 * 3)  # fewer than a level has
    path = write_pyramid(tmp_path / "a.svs", smooth(700, 900), steps=(1, 2, 4), **options)
    with read_image(path) as image, openslide.OpenSlide(path) as slide:
        for number, level in enumerate(image.levels[:2]):
            assert isinstance(level, SlideLevel)
            assert level._windows is not None
            height, width, _ = level.shape
            expected = np.asarray(slide.read_region((0, 0), number, (width, height)))[..., :3]
            for _ in range(2):
                np.testing.assert_array_equal(np.asarray(level), expected)
            np.testing.assert_array_equal(level[100:300, 250:270], expected[100:300, 250:270])


def test_what_openslide_gives_otherwise_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slides, "LARGEST_ARRAY_PX", 200 * 200)
    # Levels that are smaller by no whole number: OpenSlide blends their pixels.
    path = write_pyramid(tmp_path / "a.svs", smooth(701, 903), steps=(1, 2, 4))
    with read_image(path) as image:
        full, half, _ = image.levels
        assert isinstance(full, SlideLevel)
        assert isinstance(half, SlideLevel)
        assert (full._windows is None, half._windows is None) == (False, True)
        other = np.zeros_like(np.asarray(full))
    reader = lambda box: other[box[0] : box[2], box[1] : box[3]]  # noqa: E731
    assert level_windows(path, (701, 903), reader) is None
    assert level_windows(path, (702, 903), reader) is None
    # Tiles that were never written.
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        counts = list(tiff.pages[0].databytecounts)
        tiff.pages[0].tags["TileByteCounts"].overwrite([0, *counts[1:]])
    with read_image(path) as image:
        assert isinstance(image.levels[0], SlideLevel)
        assert image.levels[0]._windows is None


def test_a_damaged_tile_is_told_of_when_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slides, "LARGEST_ARRAY_PX", 200 * 200)
    path = write_pyramid(tmp_path / "a.svs", smooth(700, 900), steps=(1, 4), compression="jpeg")
    with read_image(path) as image, tifffile.TiffFile(path) as tiff:
        at, size = (getattr(tiff.pages[0], name)[1] for name in ("dataoffsets", "databytecounts"))
        with path.open("rb+") as file:
            file.seek(at)
            file.write(bytes(size))
        full = image.levels[0]
        assert full[:100, :100].any()
        with pytest.raises(UnreadableFileError, match="copy or export it again"):
            full[:100, 128:200]


@needs_shared_cases
@pytest.mark.parametrize("name", ["CMU-1-Small-Region", "TCGA-CR-7395-01A-01-TS1"])
def test_tiles_of_real_slides_are_openslides_pixels(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(slides, "LARGEST_ARRAY_PX", 200 * 200)
    path = SHARED_CASES / "slides" / f"{name}.svs"
    with read_image(path) as image, openslide.OpenSlide(path) as slide:
        full = image.levels[0]
        assert isinstance(full, SlideLevel)
        assert full._windows is not None
        height, width, _ = full.shape
        for y, x in ((0, 0), (height - 900, width - 1100), (1000, 777)):
            theirs = np.asarray(slide.read_region((x, y), 0, (1100, 900)))[..., :3]
            np.testing.assert_array_equal(full[y : y + 900, x : x + 1100], theirs)


def test_the_smallest_level_of_a_pyramid_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slides, "LARGEST_ARRAY_PX", 200 * 200)
    rgb = noise(600, 800)
    path = tmp_path / "a.svs"
    with tifffile.TiffWriter(path) as tiff:
        for step in (1, 4):
            tiff.write(
                rgb[::step, ::step],
                tile=(256, 256),
                photometric="rgb",
                compression="adobe_deflate",
                metadata=None,
                subfiletype=int(step > 1),
                description="Aperio Image Library v11.2.1 \r\n800x600|AppMag = 40|MPP = 0.25",
            )
    with read_image(path) as image:
        full, overview = image.levels
        assert isinstance(full, SlideLevel)
        assert isinstance(overview, np.ndarray)
        np.testing.assert_array_equal(overview, rgb[::4, ::4])
    np.testing.assert_array_equal(overview, rgb[::4, ::4])  # needs no open file


def test_a_large_tiff_gets_smaller_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slides, "LARGEST_ARRAY_PX", 100)
    rgb = noise(30, 40)
    image = read_image(write_tiff(tmp_path / "a.tif", rgb))
    assert [level.shape for level in image.levels] == [(30, 40, 3), (15, 20, 3), (8, 10, 3)]
    monkeypatch.setenv(guard.VARIABLE, "1000")
    with pytest.raises(UnreadableFileError, match="too large"):
        read_image(tmp_path / "a.tif")


def test_floating_point_pictures_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, np.zeros((4, 4), np.float32))
    with pytest.raises(UnreadableFileError, match="8 or 16 bits"):
        read_image(path)


@needs_shared_cases
def test_real_slides(tmp_path: Path) -> None:
    folder = SHARED_CASES / "slides"
    image = read_image(folder / "CMU-1-Small-Region.svs")
    assert (image.shape, image.mpp) == ((2967, 2220), 0.499)
    without = read_image(folder / "TCGA-CR-7395-01A-01-TS1.svs")
    assert without.mpp is None
    assert [f.kind for f in without.findings] == [FindingKind.NO_MPP]
    for read in (read_image, probe_image):
        with pytest.raises(UnreadableFileError, match="copy or export it again"):
            read(folder / "broken.svs")
    cut = tmp_path / "cut.svs"
    shutil.copyfile(folder / "CMU-1-Small-Region.svs", cut)
    with cut.open("rb+") as file:
        file.truncate(1_000_000)
    with pytest.raises(UnreadableFileError, match="copy or export it again"):
        read_image(cut)


def test_a_generic_tiled_pyramid_is_read_by_openslide(tmp_path: Path) -> None:
    rgb = noise(300, 520, seed=3)
    options: dict[str, Any] = {"tile": (128, 128), "photometric": "rgb", "metadata": None}
    with tifffile.TiffWriter(tmp_path / "a.tif") as tiff:
        resolution = {"resolution": (40_000, 40_000), "resolutionunit": "CENTIMETER"}
        tiff.write(rgb, subifds=0, **options, **resolution)
        tiff.write(rgb[::2, ::2], subfiletype=1, **options)
    assert openslide.OpenSlide.detect_format(tmp_path / "a.tif") == "generic-tiff"
    info = probe_image(tmp_path / "a.tif")
    assert (info.shape, info.mpp) == ((300, 520), pytest.approx(0.25))
    np.testing.assert_array_equal(read_image(tmp_path / "a.tif").levels[0], rgb)


@pytest.mark.parametrize("ending", [e for e in SLIDE_ENDINGS if e != "svs"])
def test_the_first_picture_in_a_damaged_slide_is_not_taken_for_it(
    tmp_path: Path, ending: str
) -> None:
    """A MIRAX slide, for one, is a JPEG of its label without the folder beside it."""
    path = tmp_path / f"a.{ending}"
    Image.fromarray(noise(12, 17)).save(path, format="JPEG")
    for read in (probe_image, read_image):
        with pytest.raises(UnreadableFileError, match=rf"a\.{ending}: expected a slide"):
            read(path)


def test_slides_of_every_scanner_are_images_of_a_cohort(tmp_path: Path) -> None:
    folder = tmp_path / "MoNuSAC Testing Data and Annotations" / "P"
    folder.mkdir(parents=True)
    for number, ending in enumerate(IMAGE_ENDINGS):
        (folder / f"P_{number}.{ending.upper()}").touch()
    images = {region.name: region.image for region in open_cohort(tmp_path).regions}
    assert images == {
        f"P_{number}": folder / f"P_{number}.{ending.upper()}"
        for number, ending in enumerate(IMAGE_ENDINGS)
    }


COLOURS = {
    "white-is-zero": ("miniswhite", 225, "with white as 0"),
    "white-is-zero-16-bit": ("miniswhite", 225, "with white as 0"),
    "cmyk": ("separated", (200, 100, 40), "in CMYK"),
    "black-is-zero": ("minisblack", 30, ""),
    "rgb": ("rgb", (200, 100, 40), ""),
    "palette": ("palette", (200, 100, 40), "with a palette"),
}


@pytest.mark.parametrize("tile", [None, (32, 32)])
@pytest.mark.parametrize("kind", COLOURS)
def test_colours_are_those_of_the_photometric_tag(
    tmp_path: Path, kind: str, tile: tuple[int, int] | None
) -> None:
    """CMYK and white-is-zero were shown inverted, unless OpenSlide read the file."""
    photometric, shown, said = COLOURS[kind]
    colour = np.broadcast_to(np.array((200, 100, 40), np.uint8), (64, 64, 3))
    options: dict[str, Any] = {"photometric": photometric, "tile": tile}
    match kind:
        case "cmyk":
            stored = np.dstack([255 - colour, np.zeros((64, 64), np.uint8)])
        case "rgb":
            stored = colour
        case "palette":
            stored = np.ones((64, 64), np.uint8)
            options["colormap"] = np.zeros((3, 256), np.uint16)
            options["colormap"][:, 1] = np.array((200, 100, 40)) * 257
        case _:
            stored = np.full((64, 64), 30, np.uint8)
    if kind.endswith("16-bit"):
        stored = stored.astype(np.uint16) * 257
    tifffile.imwrite(tmp_path / "a.tif", stored, **options)
    image, info = read_image(tmp_path / "a.tif"), probe_image(tmp_path / "a.tif")
    expected = np.broadcast_to(np.array(shown, np.uint8), (64, 64, 3))
    np.testing.assert_array_equal(image.levels[0], expected)
    for findings in (image.findings, info.findings):
        found = [each.message for each in findings if "is stored" in each.message]
        assert found == (
            [f"the image is stored {said}, and is shown converted to RGB"] * bool(said)
        )


@pytest.mark.parametrize("is_one_bit", [True, False])
def test_white_as_zero_in_one_bit(tmp_path: Path, is_one_bit: bool) -> None:
    stored = np.zeros((20, 20), bool if is_one_bit else np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", stored, photometric="miniswhite")
    assert (np.asarray(read_image(tmp_path / "a.tif").levels[0]) == 255).all()


def test_cmyk_with_black(tmp_path: Path) -> None:
    """Against Pillow."""
    inks = np.dstack([noise(20, 30), noise(20, 30)[..., :1]])
    tifffile.imwrite(tmp_path / "a.tif", inks, photometric="separated")
    image = np.asarray(read_image(tmp_path / "a.tif").levels[0]).astype(int)
    theirs = np.asarray(Image.fromarray(inks, "CMYK").convert("RGB")).astype(int)
    assert np.abs(image - theirs).max() <= 1


@pytest.mark.parametrize("photometric", ["cielab", "ycbcr", "mask", "cfa"])
def test_other_colours_are_refused(tmp_path: Path, photometric: str) -> None:
    is_colour = photometric in ("cielab", "ycbcr")
    pixels = noise(20, 30) if is_colour else noise(20, 30)[..., 0]
    options: dict[str, Any] = {"subsampling": (1, 1)} if photometric == "ycbcr" else {}
    tifffile.imwrite(tmp_path / "a.tif", pixels, photometric=photometric, **options)
    with pytest.raises(UnreadableFileError, match="save it as 8-bit RGB"):
        read_image(tmp_path / "a.tif")


@pytest.mark.parametrize("photometric", ["miniswhite", "separated"])
def test_colours_of_ome_tiff_that_are_not_read_are_refused(
    tmp_path: Path, photometric: str
) -> None:
    shape = (20, 30, 4) if photometric == "separated" else (20, 30)
    pixels = np.zeros(shape, np.uint8)
    path = tmp_path / "a.ome.tif"
    tifffile.imwrite(path, pixels, photometric=photometric, metadata={"axes": "YXS"[: pixels.ndim]})
    for read in (read_image, probe_image):
        with pytest.raises(UnreadableFileError, match="save it as 8-bit RGB"):
            read(path)


@pytest.mark.parametrize(
    ("unit", "mpp"), [("um", 0.25), ("micron", 0.25), ("\\u00B5m", 0.25), ("nm", 0.00025 * 1000)]
)
def test_the_unit_of_imagej_is_that_of_its_resolution(
    tmp_path: Path, unit: str, mpp: float
) -> None:
    """Its resolution has no unit by the tag, so the image had no micrometres per pixel."""
    per_unit = 4.0 if unit != "nm" else 0.004
    options: dict[str, Any] = {"resolution": (per_unit, per_unit), "metadata": {"unit": unit}}
    tifffile.imwrite(tmp_path / "a.tif", noise(20, 30)[..., 0], imagej=True, **options)
    assert probe_image(tmp_path / "a.tif").mpp == pytest.approx(mpp)
    assert read_image(tmp_path / "a.tif").mpp == pytest.approx(mpp)


@pytest.mark.parametrize("is_imagej", [True, False])
def test_a_stack_is_called_a_stack(tmp_path: Path, is_imagej: bool) -> None:
    """Its size was given as planes x height."""
    path = tmp_path / "a.tif"
    if is_imagej:
        stack = np.zeros((5, 40, 50), np.uint8)
        tifffile.imwrite(path, stack, imagej=True, metadata={"axes": "ZYX"})
    else:
        tifffile.imwrite(path, np.zeros((5, 40, 50, 3), np.uint8), photometric="rgb")
    for read in (read_image, probe_image):
        with pytest.raises(UnreadableFileError, match="found a stack of 5 planes; export one"):
            read(path)
