"""DICOM Microscopy Bulk Simple Annotations: groups of outlines in px of the slide.

https://dicom.nema.org/medical/dicom/current/output/chtml/part03/sect_C.37.html
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.formats.dicom_files import ANNOTATIONS, decoding_dicom, read_dicom
from napari_panoptic.io.formats.polygons.outline import LeftOut, Outline, OutlineFile, Said
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.io.formats.polygons.shapes import ellipse
from napari_panoptic.io.formats.scores import score_or_none
from napari_panoptic.values.cohort import Source

WHAT = "DICOM Microscopy Bulk Simple Annotations"
_OUTLINES = ("POLYGON", "RECTANGLE", "ELLIPSE")
_WITHOUT_AREA = ("POINT", "POLYLINE")
_SCORES = ("probability", "confidence", "score")
"""Words in the names of measurements that are the score of a model."""


def read_objects(file: OutlineFile) -> Iterator[Said]:
    """Yield the outlines of a file; groups of points and lines are left out, and listed.

    The class is the label of the group. Ids are running numbers. A measurement called probability,
    confidence or score is the score.
    """
    dataset = read_dicom(file.path, WHAT, (ANNOTATIONS,))
    with decoding_dicom(file.path):
        groups = _groups(dataset)
    for group in groups:
        if group.GraphicType not in _OUTLINES:
            kind = group.GraphicType
            yield LeftOut(f"group(s) of annotations without an area ({kind}) left out")
            continue
        with decoding_dicom(file.path):
            outlines = _outlines(group)
        yield from outlines


def _groups(dataset: Any) -> list[Any]:
    """Return the groups, of which one has outlines."""
    if (kind := dataset.get("AnnotationCoordinateType")) != "2D":
        raise ValueError(f"its coordinates are of the type {kind}, in mm; export them in px (2D)")
    if dataset.get("PixelOriginInterpretation", "VOLUME") != "VOLUME":
        raise ValueError("its coordinates count from single frames, not from the whole slide")
    groups = dataset.AnnotationGroupSequence
    kinds = {str(group.GraphicType) for group in groups}
    if unknown := kinds.difference(_OUTLINES, _WITHOUT_AREA):
        raise ValueError(f"graphics of the type {sorted(unknown)[0][:40]}")
    if kinds and not kinds.intersection(_OUTLINES):
        raise ValueError("it has points or lines only, which outline no nucleus")
    return list(groups)


def _outlines(group: Any) -> list[Outline]:
    rings, label = _rings(group), str(group.AnnotationGroupLabel)
    if len(rings) != (stated := int(group.NumberOfAnnotations)):
        raise ValueError(f"{len(rings)} annotations in a group that states {stated}")
    scores = _scores(group, len(rings))
    return [
        Outline([ring], label, score=score_or_none(score))
        for ring, score in zip(rings, scores.tolist(), strict=True)
    ]


def _rings(group: Any) -> list[NDArray[np.float64]]:
    points = _points(group)
    if group.GraphicType == "POLYGON":
        firsts = np.frombuffer(group.LongPrimitivePointIndexList, "<u4").astype(np.int64) - 1
        # Places of x among the numbers, from 1: two for a point.
        if (firsts % 2).any():
            raise ValueError("an outline begins within a point")
        starts = firsts // 2
        if starts[:1].any() or (np.diff(starts, append=len(points)) <= 0).any():
            raise ValueError("the places where outlines begin do not ascend, or are out of range")
        return np.split(points, starts[1:])
    if len(points) % 4:
        raise ValueError(f"{len(points)} points for shapes of four")
    fours = list(points.reshape(-1, 4, 2))
    return fours if group.GraphicType == "RECTANGLE" else [_ellipse(four) for four in fours]


def _points(group: Any) -> NDArray[np.float64]:
    is_double = "DoublePointCoordinatesData" in group
    data = group.DoublePointCoordinatesData if is_double else group.PointCoordinatesData
    numbers = np.frombuffer(data, "<f8" if is_double else "<f4")
    return numbers.reshape(-1, 2).astype(np.float64)


def _ellipse(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the outline of an ellipse by the ends of its major and its minor axis."""
    major, minor = ends[1] - ends[0], ends[3] - ends[2]
    centre_x, centre_y = ends.mean(axis=0).tolist()
    radii = float(np.hypot(*major)) / 2, float(np.hypot(*minor)) / 2
    return ellipse((centre_x, centre_y), radii, math.atan2(major[1], major[0]))


def _scores(group: Any, count: int) -> NDArray[np.float64]:
    scores = np.full(count, np.nan)
    for measurement in group.get("MeasurementsSequence") or ():
        name = str(measurement.ConceptNameCodeSequence[0].CodeMeaning).casefold()
        if not any(word in name for word in _SCORES):
            continue
        (stored,) = measurement.MeasurementValuesSequence
        values = np.frombuffer(stored.FloatingPointValues, "<f4")
        places = np.arange(count)
        if "AnnotationIndexList" in stored:
            places = np.frombuffer(stored.AnnotationIndexList, "<u4").astype(np.int64) - 1
        if len(values) != len(places) or not ((places >= 0) & (places < count)).all():
            raise ValueError(f"{len(values)} measurements for {count} annotations")
        scores[places] = values
        break
    return scores


FORMAT = polygon_format(
    OutlineReader(read_objects, vertices=None),
    name=Source.DICOM_ANN,
    title="DICOM bulk annotations",
    endings=(".ann.dcm",),
)
