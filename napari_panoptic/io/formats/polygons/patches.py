"""Outlines of a whole slide in px of a region that is a patch of it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.cache import ByteCache
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted
from napari_panoptic.io.formats.polygons.model import PixelRule, PolygonFile, Polygons
from napari_panoptic.kernels.fill import bounds, have_pixels
from napari_panoptic.values.cohort import SlidePatch

HELD: ByteCache[Hashable, PolygonFile] = ByteCache(2**29, keeps_last=True)
"""Outlines of the slides that were read last: a slide has many regions."""


def size_of(file: PolygonFile) -> int:
    """Return the memory that the vertices of outlines take, in bytes."""
    return file.polygons.vertices_xy.nbytes


def of_patch(
    file: PolygonFile, patch: SlidePatch, shape: tuple[int, int], path: Path
) -> PolygonFile:
    """Return the outlines that touch a region, in its px, and report how many do.

    Ids stay those in the slide. Outlines through the centres of pixels keep that meaning if the
    scale is 1; at another scale, objects have the pixels whose centres are within their outline.

    Parameters
    ----------
    file
        The outlines of the slide. Not changed.
    patch
        Where the region lies.
    shape
        Height and width of the region in px.
    path
        The file, for the finding.
    """
    polygons = file.polygons
    corner = np.array([patch.x_px, patch.y_px])
    size = np.array(shape[::-1], np.float64)
    low, high = _extents(polygons)
    margin = max(1.0, patch.scale)
    is_before, is_behind = high < corner - margin, low > corner + size * patch.scale + margin
    is_far: NDArray[np.bool_] = np.any(is_before | is_behind | np.isnan(low), axis=1)
    placed = _placed(polygons.of_rows(~is_far), corner, patch.scale)
    touching = _touching(placed, shape)
    used = placed.of_rows(touching)
    return replace(
        file,
        polygons=used,
        mpp=None if file.mpp is None else file.mpp * patch.scale,
        magnification=None if file.magnification is None else file.magnification / patch.scale,
        findings=(*file.findings, _counted(used, len(polygons), shape, path)),
    )


def _extents(polygons: Polygons) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return float64 (n, 2) each: the lowest and highest x and y of each object; NaN if empty."""
    starts = polygons.ring_starts[polygons.object_starts]
    low = np.full((len(polygons), 2), np.nan)
    high = low.copy()
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        low[filled] = np.minimum.reduceat(polygons.vertices_xy, starts[filled])
        high[filled] = np.maximum.reduceat(polygons.vertices_xy, starts[filled])
    return low, high


def _placed(polygons: Polygons, corner: NDArray[np.float64], scale: float) -> Polygons:
    """Move outlines into px of the region."""
    xy = polygons.vertices_xy
    if polygons.rule is PixelRule.VERTEX:
        # A vertex is a pixel: its centre moves.
        xy = np.floor(xy) + 0.5
    xy = (xy - corner) / scale
    if polygons.rule is PixelRule.CENTRE or scale != 1:
        return replace(polygons, vertices_xy=xy, rule=PixelRule.CENTRE)
    return replace(polygons, vertices_xy=np.floor(xy))


def _touching(polygons: Polygons, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which objects have a pixel in the region, or lie in it without any."""
    low, high = _extents(polygons)
    sticks_out: NDArray[np.bool_] = np.any((low < 0) | (high > shape[::-1]), axis=1)
    others = np.flatnonzero(sticks_out)
    sticks_out[others] = ~have_pixels(polygons.flat, others, shape)
    return ~sticks_out


def _counted(used: Polygons, total: int, shape: tuple[int, int], path: Path) -> Finding:
    boxes = bounds(used.flat)
    cut = (boxes[:, :2] < 0).any(axis=1) | (boxes[:, 2:] > shape).any(axis=1)
    message = (
        f"{len(used)} of {counted(total, 'outline')} of the slide used, since they touch this "
        f"region, {np.count_nonzero(cut)} of them cut at its edge"
    )
    if total and not len(used):
        message += ". Check the x, y and scale of the region"
    return Finding(FindingKind.OUTSIDE_IMAGE, message, path=path, count=total - len(used))
