from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.registry import load_masks, reference_shape
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from napari_panoptic.values.settings import Restoration
from tests.support.builders import (
    colour_mask,
    label_files,
    noise,
    square,
    submission,
    two_objects,
    write_mat,
    write_svs,
    write_tiff,
    write_xml,
)

SHAPE = (12, 16)


def single(source: Source, path: Path) -> MaskFiles:
    return MaskFiles(source, {"": (path,)})


def load(files: MaskFiles, shape: tuple[int, int] | None = SHAPE, radius: int = 1) -> LoadedMasks:
    return load_masks(
        files,
        MONUSAC_CLASSES,
        shape=shape,
        restoration=Restoration.BORDER_DILATED,
        radius=radius,
        region="R_1",
        team="T",
    )


def test_polygons_with_ambiguous_area_and_resolution(tmp_path: Path) -> None:
    path = write_xml(
        tmp_path / "a.xml",
        ("Epithelial", [square(1, 1), square(1, 1), square(14, 2)]),
        ("Ambiguous", [square(6, 6)]),
        ("Other", [square(0, 0)]),
    )
    loaded = load(single(Source.IMAGESCOPE, path))
    assert loaded.labels.ids.tolist() == [2, 3]
    assert loaded.ambiguous is not None
    assert np.count_nonzero(loaded.ambiguous) == 25
    assert loaded.mpp == 0.25
    assert {f.kind for f in loaded.findings} == {
        FindingKind.VANISHED,
        FindingKind.OVERLAPPING,
        FindingKind.OUTSIDE_IMAGE,
        FindingKind.UNKNOWN_CLASS,
    }
    assert {(f.path, f.region, f.team) for f in loaded.findings} == {(path, "R_1", "T")}


def test_polygons_need_the_size(tmp_path: Path) -> None:
    path = write_xml(tmp_path / "a.xml", ("Epithelial", [square(1, 1)]))
    with pytest.raises(UnreadableFileError, match="size of the region"):
        load(single(Source.IMAGESCOPE, path), shape=None)


def test_colour_coded_masks_are_restored_as_asked(tmp_path: Path) -> None:
    classes = np.zeros(SHAPE, int)
    classes[4, 4] = 2
    files = single(Source.COLOUR_CODED, write_tiff(tmp_path / "a.tif", colour_mask(classes)))
    assert [np.count_nonzero(load(files, radius=r).labels.index) for r in (0, 1, 2)] == [1, 5, 13]
    eroded = load(files, radius=-1)
    assert [(f.kind, f.team) for f in eroded.findings] == [(FindingKind.VANISHED, "T")]
    assert load(files, shape=None).labels.shape == SHAPE
    with pytest.raises(UnreadableFileError, match="found 16 x 12 px"):
        load(files, shape=(5, 5))


def test_submissions_and_label_images(tmp_path: Path) -> None:
    mat = submission(Neutrophil=write_mat(tmp_path / "a.mat", img=two_objects()))
    tiff = label_files(Neutrophil=write_tiff(tmp_path / "a.tif", two_objects()))
    for files in (mat, tiff):
        assert load(files).labels.class_index.tolist() == [3, 3]


def test_the_size_of_a_region_comes_from_whatever_can_be_read(tmp_path: Path) -> None:
    image = write_svs(tmp_path / "a.svs", noise(20, 30))
    broken = tmp_path / "b.svs"
    broken.write_bytes(b"broken")
    xml = single(Source.IMAGESCOPE, write_xml(tmp_path / "a.xml"))
    unreadable = single(Source.COLOUR_CODED, broken)
    masks = {
        "colours": single(
            Source.COLOUR_CODED, write_tiff(tmp_path / "a.tif", colour_mask(np.zeros(SHAPE, int)))
        ),
        "mat": submission(Epithelial=write_mat(tmp_path / "a.mat", img=two_objects(), n=1)),
        "tiff": label_files(Epithelial=write_tiff(tmp_path / "l.tif", two_objects())),
        "npy": label_files(tmp_path / "l.npy"),
    }
    np.save(tmp_path / "l.npy", np.stack([two_objects()] * 2, axis=-1))
    assert reference_shape(image, [masks["mat"]]) == (20, 30)
    for files in masks.values():
        assert reference_shape(broken, [xml, unreadable, files]) == SHAPE
        assert reference_shape(None, [files]) == SHAPE
    empty = MaskFiles(Source.SUBMISSION, {})
    assert reference_shape(None, [xml, empty, label_files()]) is None
