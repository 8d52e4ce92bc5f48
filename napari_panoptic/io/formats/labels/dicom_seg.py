"""DICOM Segmentations and label map segmentations of slides, by the optional package highdicom.

https://dicom.nema.org/medical/dicom/current/output/chtml/part03/sect_A.51.html
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.files.guard import check_pixels, check_segment
from napari_panoptic.io.formats.class_numbers import ClassNumbers
from napari_panoptic.io.formats.dicom_files import (
    SEGMENTATIONS,
    decoding_dicom,
    import_dicom,
    read_dicom,
)
from napari_panoptic.io.formats.labels.mask_format import Numbered, mask_format
from napari_panoptic.io.formats.reading import note, refuse
from napari_panoptic.kernels.restore import components
from napari_panoptic.values.cohort import Source

WHAT = "a DICOM Segmentation"
_MOST_FRAMES = 2**18
_ITEM = b"\xfe\xff\x00\xe0"
"""First bytes of compressed pixels."""
_PADDING_BITS = 16


def read(path: Path, _: str | None, classes: ClassNumbers) -> Numbered:
    """Read the objects of a slide.

    If several segments have one label, each segment is an object and its number the id; otherwise
    a segment holds the objects of a class, which are its 8-connected components. The class is the
    label.
    """
    highdicom = import_dicom("highdicom", path)
    dataset = read_dicom(path, WHAT, SEGMENTATIONS)
    with decoding_dicom(path):
        labels = _labels(dataset)
        _check_frames(dataset, len(labels), path)
        numbers = _numbers(highdicom, dataset)
    known: dict[int, str | None] = dict(labels)
    if undescribed := _undescribed(numbers, labels):
        if classes.name_of(None):
            known |= dict.fromkeys(undescribed)
        else:
            numbers = np.where(np.isin(numbers, undescribed), 0, numbers)
            note(_left_out(undescribed))
    return Numbered(*_instances(numbers, known))


def size(path: Path, _: str | None) -> tuple[int, int]:
    """Return height and width of the slide in px."""
    dataset = read_dicom(path, WHAT, SEGMENTATIONS, with_pixels=False)
    with decoding_dicom(path):
        return _shape(dataset)


def _shape(dataset: Any) -> tuple[int, int]:
    if "TotalPixelMatrixRows" not in dataset:
        raise ValueError("it has no tiles of a slide, but separate images")
    return int(dataset.TotalPixelMatrixRows), int(dataset.TotalPixelMatrixColumns)


def _labels(dataset: Any) -> dict[int, str]:
    """Return the label of each segment by its number; number 0 is background in label maps."""
    labels = {
        int(segment.SegmentNumber): str(segment.SegmentLabel).strip()
        for segment in dataset.SegmentSequence
    }
    if len(labels) != len(dataset.SegmentSequence):
        raise ValueError("numbers of segments repeat")
    return {number: label for number, label in labels.items() if number != 0}


def _check_frames(dataset: Any, n_segments: int, path: Path) -> None:
    """Check that frames and slide are not larger than the file can hold."""
    kind = str(dataset.SegmentationType)
    if kind not in ("BINARY", "LABELMAP"):
        raise refuse(
            f"expected a DICOM Segmentation of the type BINARY or LABELMAP, found {kind[:40]}; "
            f"decide on a threshold, and save one of these"
        )
    rows, columns, frames = int(dataset.Rows), int(dataset.Columns), int(dataset.NumberOfFrames)
    bits = int(dataset.BitsAllocated)
    height, width = _shape(dataset)
    check_pixels((height, width), 4, path=path, what=WHAT)
    check_segment((rows, columns), 4, path=path)
    if min(rows, columns, frames, height, width) < 1:
        raise ValueError(f"{frames} frames of {rows} x {columns}")
    tiles = -(-height // rows) * -(-width // columns)
    per_tile = 1 if kind == "LABELMAP" else max(1, n_segments)
    # Tiles without objects may be left out, but all are counted by the decoder.
    if frames > min(_MOST_FRAMES, tiles * per_tile) or tiles > _MOST_FRAMES:
        raise ValueError(f"{frames} frames for {tiles} tiles")
    if not dataset.PixelData.startswith(_ITEM):
        spare = 8 * len(dataset.PixelData) - frames * rows * columns * bits
        if not 0 <= spare < _PADDING_BITS:
            raise ValueError(f"its pixels have another size than {frames} frames state")


def _numbers(highdicom: Any, dataset: Any) -> NDArray[np.integer[Any]]:
    """Return the number of the segment of each pixel; where they overlap, the highest."""
    segments = highdicom.seg.Segmentation.from_dataset(dataset, copy=False)
    options = {"combine_segments": True, "dtype": np.uint16}
    numbers: NDArray[np.integer[Any]]
    try:
        numbers = segments.get_total_pixel_matrix(**options)
        return numbers
    except RuntimeError as error:
        if "overlap" not in str(error).casefold():
            raise
    # Not within `except`: the error keeps the table of the first attempt locked.
    numbers = segments.get_total_pixel_matrix(**options, skip_overlap_checks=True)
    message = "segments share pixels, which belong to the segment with the highest number"
    note(Finding(FindingKind.OVERLAPPING, message))
    return numbers


def _undescribed(numbers: NDArray[np.integer[Any]], labels: dict[int, str]) -> tuple[int, ...]:
    """Return the numbers of pixels that no segment describes: such objects have no class."""
    known = np.isin(numbers, [0, *labels])
    return () if known.all() else tuple(np.unique(numbers[~known]).tolist())


def _left_out(ids: tuple[int, ...]) -> Finding:
    return Finding(
        FindingKind.UNKNOWN_CLASS,
        f"{counted(len(ids), 'number')} of the label map without a segment, and so without a "
        f"class, left out: {english_list(ids)}. Describe each in SegmentSequence",
        count=len(ids),
        object_ids=ids,
    )


def _instances(
    numbers: NDArray[np.integer[Any]], labels: dict[int, str | None]
) -> tuple[NDArray[np.int32], dict[int, str | None]]:
    """Return the id of each pixel's object, and the label of each id; None without a segment."""
    counts = Counter(label for label in labels.values() if label is not None)
    if any(count > 1 for count in counts.values()):
        return numbers.astype(np.int32), labels
    instances, label_of = np.zeros(numbers.shape, np.int32), dict[int, str | None]()
    for number, label in labels.items():
        pieces = components((numbers == number).astype(np.uint8))
        last = len(label_of)
        filled = pieces > 0
        instances[filled] = pieces[filled] + last
        label_of |= dict.fromkeys(range(last + 1, last + 1 + int(pieces.max(initial=0))), label)
    return instances, label_of


FORMAT = mask_format(
    name=Source.DICOM_SEG,
    title="DICOM Segmentation",
    what=WHAT,
    read=read,
    size=size,
    endings=(".seg.dcm",),
)
