"""DICOM files as highdicom writes them, of a slide that exists as a header only."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from napari_panoptic.io.formats.dicom_files import SLIDE

needs_highdicom = pytest.mark.skipif(
    find_spec("highdicom") is None, reason="needs the optional package highdicom"
)


def slide_header(shape: tuple[int, int]) -> Any:
    """Describe a slide of one level with pixels of 0.25 um."""
    from pydicom import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, generate_uid

    slide = Dataset()
    slide.file_meta = FileMetaDataset()
    slide.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    slide.SOPClassUID, slide.SOPInstanceUID = SLIDE, generate_uid(entropy_srcs=["slide"])
    for name in ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID"):
        setattr(slide, name, generate_uid(entropy_srcs=[name]))
    for name in ("PatientID", "PatientName", "PatientSex", "PatientBirthDate", "StudyID"):
        setattr(slide, name, None)
    for name in ("AccessionNumber", "StudyDate", "StudyTime", "ReferringPhysicianName"):
        setattr(slide, name, None)
    slide.Modality, slide.Manufacturer = "SM", "none"
    slide.PositionReferenceIndicator = "SLIDE_CORNER"
    slide.Rows, slide.Columns = shape
    slide.TotalPixelMatrixRows, slide.TotalPixelMatrixColumns = shape
    slide.NumberOfFrames, slide.SamplesPerPixel, slide.PhotometricInterpretation = 1, 3, "RGB"
    slide.BitsAllocated = slide.BitsStored = 8
    slide.HighBit, slide.PixelRepresentation = 7, 0
    slide.ImageType = ["ORIGINAL", "PRIMARY", "VOLUME", "NONE"]
    slide.ImageOrientationSlide = [1, 0, 0, 0, 1, 0]
    slide.ContainerIdentifier = "1"
    slide.IssuerOfTheContainerIdentifierSequence = []
    slide.DimensionOrganizationType = "TILED_FULL"
    slide.TotalPixelMatrixFocalPlanes = slide.NumberOfOpticalPaths = 1
    origin = Dataset()
    origin.XOffsetInSlideCoordinateSystem = origin.YOffsetInSlideCoordinateSystem = 0.0
    slide.TotalPixelMatrixOriginSequence = [origin]
    slide.OpticalPathSequence = [Dataset()]
    slide.OpticalPathSequence[0].OpticalPathIdentifier = "1"
    slide.SpecimenDescriptionSequence = [_specimen()]
    measures = Dataset()
    measures.PixelSpacing, measures.SliceThickness = [0.00025, 0.00025], 0.001
    shared = Dataset()
    shared.PixelMeasuresSequence = [measures]
    slide.SharedFunctionalGroupsSequence = [shared]
    slide.ContainerTypeCodeSequence = []
    slide.ImagedVolumeWidth, slide.ImagedVolumeHeight = (0.00025 * size for size in shape[::-1])
    return slide


def _specimen() -> Any:
    from pydicom import Dataset
    from pydicom.uid import generate_uid

    specimen = Dataset()
    specimen.SpecimenIdentifier = "1"
    specimen.SpecimenUID = generate_uid(entropy_srcs=["specimen"])
    specimen.SpecimenPreparationSequence = []
    specimen.IssuerOfTheSpecimenIdentifierSequence = []
    return specimen


def ann_group(
    label: str,
    rings: Sequence[NDArray[Any]],
    *,
    kind: str = "POLYGON",
    number: int = 1,
    **more: Any,
) -> Any:
    """Make a group of annotations with highdicom."""
    from highdicom.ann import AnnotationGroup
    from pydicom.sr.codedict import codes
    from pydicom.uid import generate_uid

    return AnnotationGroup(
        number=number,
        uid=generate_uid(entropy_srcs=[label, str(number)]),
        label=label,
        annotated_property_category=codes.SCT.AnatomicalStructure,
        annotated_property_type=codes.SCT.Nucleus,
        algorithm_type="MANUAL",
        graphic_type=kind,
        graphic_data=list(rings),
        **more,
    )


def write_ann(path: Path, groups: Sequence[Any], *, space: str = "2D", **options: Any) -> Path:
    """Write Microscopy Bulk Simple Annotations with highdicom."""
    from highdicom.ann import MicroscopyBulkSimpleAnnotations

    with warnings.catch_warnings(action="ignore"):
        MicroscopyBulkSimpleAnnotations(
            source_images=[slide_header((512, 512))],
            annotation_coordinate_type=space,
            annotation_groups=groups,
            **_written_by_tests(3),
            **options,
        ).save_as(path)
    return path


def _written_by_tests(number: int) -> dict[str, Any]:
    from pydicom.uid import generate_uid

    return {
        "series_instance_uid": generate_uid(entropy_srcs=["series", str(number)]),
        "series_number": number,
        "sop_instance_uid": generate_uid(entropy_srcs=["instance", str(number)]),
        "instance_number": 1,
        "manufacturer": "tests",
        "manufacturer_model_name": "tests",
        "software_versions": "1",
        "device_serial_number": "1",
    }


def write_seg(
    path: Path, pixels: NDArray[Any], labels: Sequence[str], *, kind: str = "BINARY", **options: Any
) -> Path:
    """Write a Segmentation in tiles of 32 px with highdicom.

    Parameters
    ----------
    path
        Where to.
    pixels
        bool (y, x, segment), or numbers of segments (y, x).
    labels
        Of the segments, from number 1.
    kind
        The type of segmentation.
    options
        For highdicom.
    """
    from highdicom.seg import Segmentation, SegmentDescription
    from pydicom.sr.codedict import codes
    from pydicom.uid import generate_uid

    described = [
        SegmentDescription(
            segment_number=number,
            segment_label=label,
            segmented_property_category=codes.SCT.AnatomicalStructure,
            segmented_property_type=codes.SCT.Nucleus,
            algorithm_type="MANUAL",
            tracking_uid=generate_uid(entropy_srcs=[label, str(number)]),
            tracking_id=f"{label} {number}",
        )
        for number, label in enumerate(labels, start=1)
    ]
    with warnings.catch_warnings(action="ignore"):
        Segmentation(
            source_images=[slide_header(pixels.shape[:2])],
            pixel_array=pixels[np.newaxis],
            segmentation_type=kind,
            segment_descriptions=described,
            tile_pixel_array=True,
            tile_size=(32, 32),
            **_written_by_tests(4),
            **options,
        ).save_as(path)
    return path
