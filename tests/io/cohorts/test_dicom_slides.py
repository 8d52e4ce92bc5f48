"""DICOM slides in cohorts.

``dicom_slide.zip`` is what wsidicomizer 0.26.1 made of a drawn Aperio slide of 256 x 192 px, with
0.25 um per pixel, in JPEG tiles of 64 px: one file per level.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import numpy as np
import tifffile

from napari_panoptic.io.cohorts.folder_scan import scan_folder
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.images.slides import probe_image, read_image

DATA = Path(__file__).resolve().parents[2] / "data" / "formats"
SHAPE = (192, 256)


def smooth() -> np.ndarray:
    """Draw what the slide was made of."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    waves = [np.sin(y / 31 + x / 17), np.cos(y / 13 - x / 41), np.sin(x * y / 9000)]
    return np.uint8(127 + 100 * np.stack(waves, axis=-1))


def test_the_files_of_a_dicom_slide_are_one_image(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with ZipFile(DATA / "dicom_slide.zip") as file:
            file.extractall(tmp_path / "slides" / name)
        for folder in ("gt", "teams/one", "teams/two"):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            tifffile.imwrite(tmp_path / folder / f"{name}.tif", np.ones(SHAPE, np.uint8))
    scan = scan_folder(tmp_path)
    assert scan.images is not None
    assert scan.images.pattern == "slides/{region}/*.dcm"
    assert scan.unknown == ()
    (tmp_path / "cohort.toml").write_text(scan.description())
    cohort = open_cohort(tmp_path)
    assert [region.name for region in cohort.regions] == ["a", "b"]
    for region in cohort.regions:
        assert region.image is not None
        assert probe_image(region.image).mpp == 0.25
        image = read_image(region.image)
        assert (image.shape, image.mpp, image.findings) == (SHAPE, 0.25, ())
        difference = np.abs(np.asarray(image.levels[0]).astype(int) - smooth())
        assert difference.mean() < 3  # of JPEG
