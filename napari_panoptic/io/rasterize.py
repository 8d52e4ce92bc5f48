"""Polygons become label images, with an account of what vanished and what overlapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.errors import Finding, FindingKind, UnreadableFileError, english_list
from napari_panoptic.evaluation.labels import LabelImage, Vanished, size_text
from napari_panoptic.io._kernels import fill_polygon
from napari_panoptic.io._masks import vanished_findings
from napari_panoptic.io.imagescope import Annotation, Polygon, read_annotation
from napari_panoptic.io.registry import LoadedMasks, LoadRequest, located, register
from napari_panoptic.regions import ClassScheme, MaskFiles, Source

NO_PIXEL = "no inner pixel"
OUTSIDE = "outside the image"
COVERED = "covered by later objects of the class"


@dataclass(frozen=True, eq=False)
class RasterizedAnnotation:
    """An annotation in pixels.

    Parameters
    ----------
    labels
        The scored objects; ids are those of the polygons.
    ambiguous
        bool (y, x), True where a polygon of the ambiguous class lies; None
        where there is no such pixel. It is not burnt into the labels.
    findings
        What vanished, overlapped, or lies outside the image.
    """

    labels: LabelImage
    ambiguous: NDArray[np.bool_] | None
    findings: tuple[Finding, ...] = ()


def rasterize(
    annotation: Annotation,
    shape: tuple[int, int],
    scheme: ClassScheme,
    *,
    region: str | None = None,
) -> RasterizedAnnotation:
    """Fill the polygons of an annotation.

    Vertices are truncated to whole numbers (towards zero), and each polygon
    covers the pixels of ``skimage.draw.polygon``. Within a class a later
    polygon overwrites an earlier one; then classes are flattened in the
    scheme's order.

    Parameters
    ----------
    annotation
        The polygons. Not changed.
    shape
        Height and width of the image in px.
    scheme
        The classes.
    region
        Name of the region, for the findings.
    """
    claims = np.zeros(shape, np.uint8)
    masks: dict[str, NDArray[np.int32]] = {}
    vanished: list[Vanished] = []
    for name in scheme.names:
        polygons = [p for p in annotation.polygons if p.class_name == name]
        if polygons:
            masks[name], lost = _fill(polygons, shape, claims)
            vanished.extend(lost)
    labels = LabelImage.from_class_masks(masks, scheme.names, shape, vanished=vanished)
    # Counted once per pixel, however many objects and classes claim it.
    labels = replace(labels, overlapping_px=int(np.count_nonzero(claims > 1)))
    findings = (
        *vanished_findings(labels, region=region),
        *_overlapping(labels, region),
        *_outside(annotation.polygons, shape, region),
    )
    return RasterizedAnnotation(labels, _ambiguous(annotation, shape, scheme), findings)


def _fill(
    polygons: Sequence[Polygon], shape: tuple[int, int], claims: NDArray[np.uint8]
) -> tuple[NDArray[np.int32], list[Vanished]]:
    mask = np.zeros(shape, np.int32)
    written = [_fill_one(polygon, mask, claims) for polygon in polygons]
    survivors = np.bincount(mask.ravel(), minlength=max(p.id for p in polygons) + 1) > 0
    lost = [
        Vanished(polygon.id, polygon.class_name, _why_vanished(polygon, pixels))
        for polygon, pixels in zip(polygons, written, strict=True)
        if not survivors[polygon.id]
    ]
    return mask, lost


def _fill_one(polygon: Polygon, mask: NDArray[np.int32], claims: NDArray[np.uint8]) -> int:
    if not len(polygon.vertices_xy):
        return 0
    xs, ys = np.ascontiguousarray(np.trunc(polygon.vertices_xy).astype(np.int64).T)
    return int(fill_polygon(xs, ys, polygon.id, mask, claims))


def _why_vanished(polygon: Polygon, written: int) -> str:
    if written:
        return COVERED
    # Vertices always are pixels of their polygon, so whatever has one lies elsewhere.
    return OUTSIDE if len(polygon.vertices_xy) else NO_PIXEL


def _ambiguous(
    annotation: Annotation, shape: tuple[int, int], scheme: ClassScheme
) -> NDArray[np.bool_] | None:
    mask = np.zeros(shape, np.int32)
    claims = np.zeros(shape, np.uint8)
    for polygon in annotation.polygons:
        if polygon.class_name == scheme.ambiguous:
            _fill_one(polygon, mask, claims)
    return mask > 0 if mask.any() else None


def _overlapping(labels: LabelImage, region: str | None) -> Iterator[Finding]:
    if labels.overlapping_px:
        yield Finding(
            FindingKind.OVERLAPPING,
            f"{labels.overlapping_px} px claimed by more than one object of the annotation; "
            f"the last one has them",
            region=region,
            count=labels.overlapping_px,
        )


def _outside(
    polygons: Sequence[Polygon], shape: tuple[int, int], region: str | None
) -> Iterator[Finding]:
    height, width = shape
    ids = tuple(p.id for p in polygons if _sticks_out(p.vertices_xy, height, width))
    if ids:
        yield Finding(
            FindingKind.OUTSIDE_IMAGE,
            f"{len(ids)} polygon(s) with vertices outside the image of {size_text(shape)}, "
            f"cut at its edge: {english_list(ids)}",
            region=region,
            count=len(ids),
            object_ids=ids,
        )


def _sticks_out(vertices_xy: NDArray[np.float64], height: int, width: int) -> bool:
    if not len(vertices_xy):
        return False
    inside = np.trunc(vertices_xy)
    return bool((inside < 0).any() or (inside >= (width, height)).any())


def _load(files: MaskFiles, scheme: ClassScheme, request: LoadRequest) -> LoadedMasks:
    path = files.all_paths[0]
    if request.shape is None:
        raise UnreadableFileError(
            "polygons can only be drawn where the size of the region is known, and neither its "
            "image nor a mask of it could be read",
            path=path,
            region=request.region,
        )
    annotation = read_annotation(path, scheme)
    drawn = rasterize(annotation, request.shape, scheme, region=request.region)
    findings = located((*annotation.findings, *drawn.findings), request, path=path)
    return LoadedMasks(drawn.labels, drawn.ambiguous, findings, mpp=annotation.mpp)


register(Source.IMAGESCOPE, _load)
