"""Segmentations of slides, written by highdicom 0.28.2."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage.measure import label

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.format import LoadedMasks
from napari_panoptic.io.formats.one_file import format_of
from napari_panoptic.io.formats.registry import load_masks, reference_shape
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from tests.support.dicom import needs_highdicom, write_seg

pytestmark = needs_highdicom
SHAPE = (70, 90)
NAMES = ("Epithelial", "Lymphocyte")


def files(path: Path) -> MaskFiles:
    return MaskFiles(Source.DICOM_SEG, {"": (path,)})


def loaded(path: Path, shape: tuple[int, int] | None = SHAPE) -> LoadedMasks:
    return load_masks(files(path), MONUSAC_CLASSES, shape=shape)


def class_map(density: float) -> NDArray[np.uint8]:
    """Draw scattered pixels of two classes; a part of the slide stays empty."""
    rng = np.random.default_rng(5)
    image = rng.choice(3, SHAPE, p=[1 - density, density / 2, density / 2]).astype(np.uint8)
    image[:, 40:] = 0
    return image


@pytest.mark.parametrize(
    ("kind", "syntax"),
    [
        ("BINARY", "1.2.840.10008.1.2.1"),
        ("LABELMAP", "1.2.840.10008.1.2.1"),
        ("LABELMAP", "1.2.840.10008.1.2.5"),  # in run lengths
    ],
)
def test_a_segment_for_each_class(tmp_path: Path, kind: str, syntax: str) -> None:
    image = class_map(0.2)
    path = write_seg(tmp_path / "a.dcm", image, NAMES, kind=kind, transfer_syntax_uid=syntax)
    assert format_of(path) == Source.DICOM_SEG
    assert reference_shape(None, [files(path)]) == SHAPE
    masks = loaded(path, None)
    expected, count = np.zeros(SHAPE, np.int64), 0
    for number in (1, 2):
        pieces = label(image == number, connectivity=2)
        expected[pieces > 0] = pieces[pieces > 0] + count
        count += pieces.max()
    assert np.array_equal(masks.labels.id_image(), expected)
    names = [NAMES[image[expected == id_][0] - 1] for id_ in range(1, count + 1)]
    assert masks.labels.class_names_of_objects().tolist() == names
    assert (masks.findings, masks.ambiguous) == ((), None)


def test_a_segment_for_each_object(tmp_path: Path) -> None:
    ids = np.zeros(SHAPE, np.uint16)
    ids[2:9, 3:30] = 1
    ids[2:9, 50:60] = 1  # in two pieces
    ids[30:50, 30:50] = 2
    ids[50:60, 30:50] = 3
    ids[0:2, 80:90] = 4
    labels = ("Epithelial", "Lymphocyte", "Epithelial", "Ambiguous")
    masks = loaded(write_seg(tmp_path / "a.dcm", ids, labels, kind="LABELMAP"))
    assert np.array_equal(masks.labels.id_image(), np.where(ids == 4, 0, ids))
    assert masks.labels.class_names_of_objects().tolist() == list(labels[:3])
    assert masks.ambiguous is not None
    assert np.array_equal(masks.ambiguous, ids == 4)


@pytest.mark.parametrize(
    "labels", [("Epithelial",) * 3, ("Epithelial", "Lymphocyte", "Macrophage")]
)
def test_numbers_that_no_segment_describes_are_listed(
    labels: tuple[str, ...], tmp_path: Path
) -> None:
    import pydicom

    ids = np.zeros(SHAPE, np.uint16)
    ids[2:9, 3:30], ids[30:50, 30:50], ids[50:60, 30:50] = 1, 2, 3
    path = write_seg(tmp_path / "a.dcm", ids, labels, kind="LABELMAP")
    dataset = pydicom.dcmread(path)
    described = [own for own in dataset.SegmentSequence if own.SegmentNumber != 3]
    dataset.SegmentSequence = pydicom.Sequence(described)
    dataset.save_as(path)
    masks = loaded(path)
    assert np.array_equal(masks.labels.id_image(), np.where(ids == 3, 0, ids))
    (finding,) = masks.findings
    assert (finding.kind, finding.object_ids) == (FindingKind.UNKNOWN_CLASS, (3,))
    unnamed = replace(MONUSAC_CLASSES, aliases={"": "Neutrophil"})
    masks = load_masks(files(path), unnamed, shape=SHAPE)
    assert np.array_equal(masks.labels.id_image(), ids)
    assert masks.labels.class_names_of_objects().tolist() == [*labels[:2], "Neutrophil"]
    assert masks.findings == ()


def test_segments_that_overlap_are_reported(tmp_path: Path) -> None:
    pixels = np.zeros((*SHAPE, 2), np.uint8)
    pixels[5:20, 5:20, 0] = pixels[10:30, 10:40, 1] = 1
    masks = loaded(write_seg(tmp_path / "a.dcm", pixels, NAMES))
    expected = pixels[..., 0].astype(int)
    expected[pixels[..., 1] == 1] = 2
    assert np.array_equal(masks.labels.id_image(), expected)
    assert [finding.kind for finding in masks.findings] == [FindingKind.OVERLAPPING]


def test_what_is_refused(tmp_path: Path) -> None:
    path = write_seg(tmp_path / "a.dcm", class_map(0.02), NAMES)
    with pytest.raises(UnreadableFileError, match="must have the region's size"):
        loaded(path, (71, 90))
    share = write_seg(
        tmp_path / "f.dcm", class_map(0.1).astype(float) / 2, NAMES[:1], kind="FRACTIONAL"
    )
    with pytest.raises(UnreadableFileError, match="BINARY or LABELMAP, found FRACTIONAL"):
        loaded(share)
    whole = path.read_bytes()
    for length in range(140, len(whole) - 8, len(whole) // 40):
        (tmp_path / "b.dcm").write_bytes(whole[:length])
        with pytest.raises(UnreadableFileError):
            loaded(tmp_path / "b.dcm")
    # Tiles of one pixel, and a slide beyond any memory: rows and columns of the frames and of all.
    for tag, value in ((b"\x28\x00\x10\x00US\x02\x00", 1), (b"\x48\x00\x07\x00UL\x04\x00", 2**31)):
        at = whole.index(tag) + len(tag)
        size = tag[6]
        changed = whole[:at] + value.to_bytes(size, "little") + whole[at + size :]
        (tmp_path / "b.dcm").write_bytes(changed)
        with pytest.raises(UnreadableFileError):
            loaded(tmp_path / "b.dcm")
