"""Microscopy Bulk Simple Annotations, written by highdicom 0.28.2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.one_file import format_of
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    MaskFiles,
    OutlineRules,
    Source,
    Vertices,
)
from tests.support.dicom import ann_group, needs_highdicom, slide_header, write_ann

pytestmark = needs_highdicom


CELL = 12
"""Edge in px of the square in which a drawn object lies."""


def loaded(path: Path, shape: tuple[int, int] = (60, 80)) -> LoadedMasks:
    return load_masks(MaskFiles(Source.DICOM_ANN, {"": (path,)}), MONUSAC_CLASSES, shape=shape)


def drawn(across: int) -> tuple[NDArray[np.int64], list[NDArray[np.float64]]]:
    """Draw objects of one run of pixels per row, and the outlines around them."""
    rng = np.random.default_rng(3)
    image = np.zeros((across * CELL, across * CELL), np.int64)
    rings = []
    for number in range(across * across):
        top, start = (CELL * place for place in divmod(number, across))
        left, right = [], []
        for y in range(top + rng.integers(0, 3), top + rng.integers(8, CELL)):
            x0, x1 = start + rng.integers(0, 5), start + rng.integers(6, CELL)
            image[y, x0:x1] = number + 1
            left += [(x0, y), (x0, y + 1)]
            right += [(x1, y), (x1, y + 1)]
        rings.append(np.array(left + right[::-1], np.float64))
    return image, rings


def test_ten_thousand_outlines_come_back_pixel_by_pixel(tmp_path: Path) -> None:
    from highdicom.ann import Measurements
    from pydicom.sr.coding import Code

    image, rings = drawn(100)
    half = len(rings) // 2
    name = Code("123", "99TEST", "Model confidence")
    values = np.linspace(0, 1, half, dtype=np.float32)
    scores = Measurements(name, values, Code("1", "UCUM", "no units"))
    groups = [
        ann_group("Epithelial", rings[:half], measurements=[scores]),
        ann_group("Lymphocyte", [ring.astype(np.float32) for ring in rings[half:]], number=2),
    ]
    path = write_ann(tmp_path / "a.dcm", groups)
    assert format_of(path) == Source.DICOM_ANN
    masks = loaded(path, image.shape)
    assert masks.findings == ()
    assert np.array_equal(masks.labels.id_image(), image)
    names = masks.labels.class_names_of_objects().tolist()
    assert names == ["Epithelial"] * half + ["Lymphocyte"] * half
    np.testing.assert_array_equal(masks.labels.scores, [*values, *[np.nan] * half])


def test_contours_of_opencv_are_listed_and_read_as_the_cohort_states(tmp_path: Path) -> None:
    octagon = np.array([(4, 0), (0, 4), (0, 6), (4, 10), (8, 6), (8, 4)], np.float64)
    rings = [octagon + np.array(corner) for corner in ((2, 2), (20, 2), (2, 30))]
    path = write_ann(tmp_path / "a.dcm", [ann_group("Epithelial", rings)])
    (finding,) = loaded(path).findings
    assert finding.message.startswith("3 outlines like OpenCV contours")
    rules = OutlineRules(vertices=Vertices.PIXEL_CENTRES)
    files = MaskFiles(Source.DICOM_ANN, {"": (path,)}, rules=rules)
    masks = load_masks(files, MONUSAC_CLASSES, shape=(60, 80))
    area = sum((1, 3, 5, 7, 9, 9, 9, 7, 5, 3, 1))  # of the rows, rim included
    assert np.bincount(masks.labels.index.ravel())[1:].tolist() == [area] * 3
    assert not masks.findings


def test_shapes_and_what_has_no_area(tmp_path: Path) -> None:
    rectangle = np.array([(2, 3), (12, 3), (12, 9), (2, 9)], np.float64)
    centre, major, minor = np.array((40.0, 30.0)), np.array((12.0, 16.0)), np.array((-8.0, 6.0))
    ends = np.array([centre + major, centre - major, centre + minor, centre - minor])
    groups = [
        ann_group("Epithelial", [rectangle], kind="RECTANGLE"),
        ann_group("Lymphocyte", [np.array([(5.0, 5.0)])], kind="POINT", number=2),
        ann_group("Macrophage", [ends], kind="ELLIPSE", number=3),
    ]
    masks = loaded(write_ann(tmp_path / "a.dcm", groups))
    image = np.zeros((60, 80), np.int64)
    image[3:9, 2:12] = 1
    y, x = np.mgrid[:60, :80] + 0.5
    along = ((x - 40) * 12 + (y - 30) * 16) / 20
    across = ((x - 40) * -8 + (y - 30) * 6) / 10
    inside = (along / 20) ** 2 + (across / 10) ** 2
    (finding,) = masks.findings
    assert finding.message == "1 group of annotations without an area (POINT) left out"
    found = masks.labels.id_image()
    sure = np.abs(inside - 1) > 0.05
    assert np.array_equal(found[sure & (image == 0)] == 2, inside[sure & (image == 0)] < 1)
    assert np.array_equal(found == 1, image == 1)
    assert masks.labels.class_names_of_objects().tolist() == ["Epithelial", "Macrophage"]


def test_what_is_refused(tmp_path: Path) -> None:
    _, rings = drawn(3)
    solid = [np.insert(ring, 2, 1.0, axis=1) for ring in rings]
    path = write_ann(tmp_path / "mm.dcm", [ann_group("Epithelial", solid)], space="3D")
    with pytest.raises(UnreadableFileError, match=r"in mm; export them in px \(2D\)"):
        loaded(path)
    points = ann_group("Epithelial", [np.array([(5.0, 5.0)])], kind="POINT")
    with pytest.raises(UnreadableFileError, match="outline no nucleus"):
        loaded(write_ann(tmp_path / "points.dcm", [points]))
    path = write_ann(tmp_path / "a.dcm", [ann_group("Epithelial", rings)])
    whole = path.read_bytes()
    starts = np.cumsum([0, *(2 * len(ring) for ring in rings[:-1])]) + 1
    at = whole.index(starts.astype("<u4").tobytes())
    for place in range(len(rings)):
        for value in (0, 2, 4_000_000_001):
            broken = bytearray(whole)
            broken[at + 4 * place : at + 4 * place + 4] = value.to_bytes(4, "little")
            (tmp_path / "b.dcm").write_bytes(broken)
            with pytest.raises(UnreadableFileError, match="export it again"):
                loaded(tmp_path / "b.dcm")
    for length in range(140, len(whole) - 400, 97):
        (tmp_path / "b.dcm").write_bytes(whole[:length])
        with pytest.raises(UnreadableFileError):
            loaded(tmp_path / "b.dcm")
    with pytest.raises(UnreadableFileError, match="This is a file of the format 'dicom-ann'"):
        load_masks(MaskFiles(Source.GEOJSON, {"": (path,)}), MONUSAC_CLASSES, shape=(60, 80))
    slide_header((8, 8)).save_as(tmp_path / "s.dcm", enforce_file_format=True)
    with pytest.raises(UnreadableFileError, match="a slide, which holds no objects"):
        format_of(tmp_path / "s.dcm")
