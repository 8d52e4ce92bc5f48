"""Polygons become label images, with an account of what vanished and what overlapped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import (
    Finding,
    FindingKind,
    LabelError,
    UnreadableFileError,
    english_list,
)
from napari_panoptic.io.formats.format import LoadedMasks, LoadRequest, located
from napari_panoptic.io.formats.labels.masks import vanished_findings
from napari_panoptic.io.formats.polygons.annotation_store import read_store
from napari_panoptic.io.formats.polygons.geojson_reader import read_geojson
from napari_panoptic.io.formats.polygons.hovernet import read_hovernet
from napari_panoptic.io.formats.polygons.imagej_rois import read_rois
from napari_panoptic.io.formats.polygons.imagescope import Annotation, read_polygons
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, PolygonFile, Polygons, class_number
from napari_panoptic.io.formats.polygons.outline_rules import in_convention
from napari_panoptic.kernels.fill import (
    Flat,
    bounds,
    draw_counted,
    draw_where_free,
    draw_window,
    have_pixels,
)
from napari_panoptic.nuclei.values.cohort import ClassScheme, MaskFiles, Source
from napari_panoptic.nuclei.values.labels import LabelImage, Vanished, size_text

NO_PIXEL = "no inner pixel"
OUTSIDE = "outside the image"
COVERED = "covered by later objects of the class"
MOST_PLANES = 64
"""Objects that share pixels are spread over no more images than this."""


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
    """Fill the polygons of an ImageScope annotation, as `rasterize_polygons` does.

    Vertices are truncated to whole numbers (towards zero).

    Parameters
    ----------
    annotation
        The polygons; ids ascending, vertices of at most 2^29 px. Not changed.
    shape
        Height and width of the image in px.
    scheme
        The classes.
    region
        Name of the region, for the findings.
    """
    return rasterize_polygons(_flattened(annotation, scheme), shape, scheme, region=region)


def rasterize_polygons(
    polygons: Polygons,
    shape: tuple[int, int],
    scheme: ClassScheme,
    *,
    region: str | None = None,
    team: str | None = None,
) -> RasterizedAnnotation:
    """Fill polygons.

    Objects of whole-number vertices have the pixels of
    ``skimage.draw.polygon``, all others those whose centres lie inside, see
    `Polygons`. Within a class a later object overwrites an earlier one; then
    classes are flattened in the scheme's order.

    Parameters
    ----------
    polygons
        The objects.
    shape
        Height and width of the image in px.
    scheme
        The classes.
    region, team
        Names, for the findings; no team for the annotation.
    """
    labels = _drawn(polygons, shape, scheme)
    findings = (
        *vanished_findings(labels, region=region),
        *_overlapping(labels, region, team),
        *outside_findings(polygons, shape, region=region),
    )
    return RasterizedAnnotation(labels, _ambiguous(polygons, shape), findings)


def scored_rows(polygons: Polygons) -> NDArray[np.int64]:
    """Return int64 (n,): the rows of the scored objects, in document order."""
    return np.flatnonzero(polygons.class_index > AMBIGUOUS)


def drawing_order(polygons: Polygons) -> NDArray[np.int64]:
    """Return int64 (n,): the rows of the scored objects, later ones lie over earlier ones."""
    rows = scored_rows(polygons)
    return rows[np.argsort(polygons.class_index[rows], kind="stable")]


def labels_by_row(polygons: Polygons, rows: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return int32 (n,): 1, 2 … for the objects in some rows, 0 for all others."""
    labels = np.zeros(len(polygons), np.int32)
    labels[rows] = np.arange(1, len(rows) + 1, dtype=np.int32)
    return labels


def _flattened(annotation: Annotation, scheme: ClassScheme) -> Polygons:
    polygons = annotation.polygons
    sizes = np.array([len(polygon.vertices_xy) for polygon in polygons], np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    numbers = {name: class_number([name], scheme) for name in {p.class_name for p in polygons}}
    return Polygons(
        np.concatenate([np.zeros((0, 2)), *(polygon.vertices_xy for polygon in polygons)]).astype(
            np.int32
        ),
        starts,
        np.zeros(len(polygons), np.bool_),
        np.arange(len(polygons) + 1),
        np.array([polygon.id for polygon in polygons], np.int64),
        np.array([numbers[polygon.class_name] for polygon in polygons], np.int16),
    )


def _drawn(polygons: Polygons, shape: tuple[int, int], scheme: ClassScheme) -> LabelImage:
    """Draw all classes into one image: what is below is covered, and counted as it is."""
    rows = scored_rows(polygons)
    labels = labels_by_row(polygons, rows)
    order = drawing_order(polygons)
    flat = polygons.flat
    image = np.zeros(shape, np.int32)
    visible = np.zeros(len(rows) + 1, np.int64)
    claimed_twice = np.zeros(shape, np.bool_)
    overlapping = 0
    vanished: list[Vanished] = []
    for number, name in enumerate(scheme.names, start=1):
        own = order[polygons.class_index[order] == number]
        if not len(own):
            continue
        overlapping += draw_counted(flat, own, labels, image, visible, claimed_twice)
        gone = own[visible[labels[own]] == 0]
        reasons = _why_vanished(flat, gone, shape)
        ids = polygons.ids[gone].tolist()
        vanished += [Vanished(id_, name, why) for id_, why in zip(ids, reasons, strict=True)]
    lost_before = {lost.id for lost in vanished}
    ids = polygons.ids[rows]
    names = np.array(scheme.names, dtype=object)[polygons.class_index[rows] - 1]
    vanished += [
        Vanished(id_, name, "covered by another class")
        for id_, name in zip(ids[visible[1:] == 0].tolist(), names[visible[1:] == 0], strict=True)
        if id_ not in lost_before
    ]
    drawn = LabelImage(
        index=image,
        ids=ids,
        class_index=polygons.class_index[rows],
        original_ids=ids,
        class_names=scheme.names,
        class_masks=_ClassMasks(polygons, shape, scheme),
        vanished=tuple(vanished),
        overlapping_px=int(overlapping),
    )
    drawn = drawn.of_rows(visible[1:] > 0, image) if vanished else drawn
    return replace(drawn, otherwise=_Whole(polygons, drawn)) if overlapping else drawn


class _Whole:
    """Polygons with all their pixels, drawn when they are asked for: they mostly are not.

    Parameters
    ----------
    polygons
        The objects.
    drawn
        The same with each pixel given to the uppermost one.
    """

    def __init__(self, polygons: Polygons, drawn: LabelImage) -> None:
        self._polygons, self._drawn = polygons, drawn
        self._known: LabelImage | None = None

    def __call__(self) -> LabelImage:
        if self._known is None:
            rows = scored_rows(self._polygons)
            ids = self._polygons.ids[rows]
            index = self._polygons.class_index[rows]
            self._known = self._drawn.in_planes(self._planes(rows), ids, index, ids)
        return self._known

    def _planes(self, rows: NDArray[np.int64]) -> list[NDArray[np.int32]]:
        """Draw each object into the first image where it covers none that came before it."""
        labels, waiting = labels_by_row(self._polygons, rows), drawing_order(self._polygons)
        planes: list[NDArray[np.int32]] = []
        while len(waiting):
            if len(planes) == MOST_PLANES:
                raise LabelError(
                    f"too many objects lie over one another to keep all of their pixels: more "
                    f"than {MOST_PLANES} in one place; leave overlaps at flatten",
                    object_id=int(self._polygons.ids[waiting[0]]),
                )
            image = np.zeros(self._drawn.shape, np.int32)
            waiting = waiting[~draw_where_free(self._polygons.flat, waiting, labels, image)]
            planes.append(image)
        return planes


class _ClassMasks(Mapping[str, NDArray[np.int32]]):
    """A mask per class that has polygons, drawn when it is asked for: most never are."""

    def __init__(self, polygons: Polygons, shape: tuple[int, int], scheme: ClassScheme) -> None:
        self._polygons, self._shape = polygons, shape
        present = set(polygons.class_index.tolist())
        self._numbers = {n: k for k, n in enumerate(scheme.names, start=1) if k in present}

    def __getitem__(self, name: str) -> NDArray[np.int32]:
        own = np.flatnonzero(self._polygons.class_index == self._numbers[name])
        mask = np.zeros(self._shape, np.int32)
        draw_window(self._polygons.flat, own, self._polygons.ids.astype(np.int32), 0, 0, mask)
        return mask

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def _why_vanished(flat: Flat, rows: NDArray[np.int64], shape: tuple[int, int]) -> list[str]:
    """Say of objects without a pixel in their class why they have none."""
    reasons = []
    boxes = bounds(flat)[rows].tolist()
    drawn = have_pixels(flat, rows, shape)
    for (y0, x0, y1, x1), any_pixel in zip(boxes, drawn.tolist(), strict=True):
        inside = 0 <= y0 <= y1 <= shape[0] and 0 <= x0 <= x1 <= shape[1]
        reasons.append(COVERED if any_pixel else NO_PIXEL if inside else OUTSIDE)
    return reasons


def _ambiguous(polygons: Polygons, shape: tuple[int, int]) -> NDArray[np.bool_] | None:
    rows = np.flatnonzero(polygons.class_index == AMBIGUOUS)
    if not len(rows):
        return None
    mask = np.zeros(shape, np.bool_)
    draw_window(polygons.flat, rows, np.ones(len(polygons), np.int32), 0, 0, mask)
    return mask if mask.any() else None


def _overlapping(labels: LabelImage, region: str | None, team: str | None) -> Iterator[Finding]:
    if labels.overlapping_px:
        side = "annotation" if team is None else "prediction"
        yield Finding(
            FindingKind.OVERLAPPING,
            f"{labels.overlapping_px} px claimed by more than one object of the {side}; "
            f"the last one has them, unless overlaps are kept",
            region=region,
            count=labels.overlapping_px,
        )


def outside_findings(
    polygons: Polygons, shape: tuple[int, int], *, region: str | None
) -> Iterator[Finding]:
    """Report the objects, ambiguous ones too, with vertices outside the image."""
    boxes = bounds(polygons.flat)
    sticks_out = (boxes[:, :2] < 0).any(axis=1) | (boxes[:, 2:] > shape).any(axis=1)
    ids = tuple(polygons.ids[sticks_out].tolist())
    if ids:
        yield Finding(
            FindingKind.OUTSIDE_IMAGE,
            f"{len(ids)} polygon(s) with vertices outside the image of {size_text(shape)}, "
            f"cut at its edge: {english_list(ids)}",
            region=region,
            count=len(ids),
            object_ids=ids,
        )


READERS: Mapping[Source, Callable[..., PolygonFile]] = {
    Source.IMAGESCOPE: read_polygons,
    Source.GEOJSON: read_geojson,
    Source.HOVERNET: read_hovernet,
    Source.ANNOTATION_STORE: read_store,
    Source.IMAGEJ_ROI: read_rois,
}
"""How the polygons of each form are read."""
WITH_RULES = (Source.GEOJSON, Source.IMAGEJ_ROI)
"""Forms that programs write in several conventions."""


def read_outlines(
    files: MaskFiles,
    scheme: ClassScheme,
    *,
    team: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> PolygonFile:
    """Read the outlines of one side of a region by the rules of its cohort.

    Parameters
    ----------
    files, scheme
        The file, in one of the forms of `READERS`, and the classes.
    team
        Whose it is; None for the annotation.
    progress, is_wanted
        As for the readers.
    """
    read, path = READERS[files.source], files.all_paths[0]
    if files.source not in WITH_RULES:
        return read(path, scheme, progress=progress, is_wanted=is_wanted)
    rules = files.rules
    file = read(path, scheme, progress=progress, is_wanted=is_wanted, rules=rules)
    side = "reference" if team is None else "predictions"
    return in_convention(file, rules, path, side=side)


def load_files(files: MaskFiles, scheme: ClassScheme, request: LoadRequest) -> LoadedMasks:
    """Read the objects of one side of a region; see `napari_panoptic.io.formats.format.Form`."""
    path = files.all_paths[0]
    if request.shape is None:
        raise UnreadableFileError(
            "polygons can only be drawn where the size of the region is known, and neither its "
            "image nor a mask of it could be read",
            path=path,
            region=request.region,
        )
    file = read_outlines(files, scheme, team=request.team)
    drawn = rasterize_polygons(
        file.polygons, request.shape, scheme, region=request.region, team=request.team
    )
    findings = located((*file.findings, *drawn.findings), request, path=path)
    return LoadedMasks(
        replace(drawn.labels, known_scores=file.scores),
        drawn.ambiguous,
        findings,
        mpp=file.mpp,
        magnification=file.magnification,
    )
