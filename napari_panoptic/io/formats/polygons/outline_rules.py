"""Outlines in other conventions than QuPath's: reported, and read as the cohort states.

OpenCV traces an object through the centres of its border pixels, QuPath and ImageJ along the edges
of its pixels. Files do not state it. Read by the other rule, every object loses or gains a rim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted
from napari_panoptic.io.formats.polygons.collect import BETWEEN_PIXELS, object_findings
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, PolygonFile, Polygons
from napari_panoptic.io.formats.polygons.trace import as_contours
from napari_panoptic.values.cohort import Crowds, Multipolygons, OutlineRules, Vertices

LOOKED_AT = 2000
"""Outlines by which the convention of a file is recognised, from its first on."""
LEAST_DIAGONALS = 8
"""Least number of diagonal steps; a file with fewer may as well hold a drawn triangle."""
LEAST_SHARE = 0.9
"""Least share of traced outlines among those that fit only one of the two conventions."""
FAR_APART_TWO, FAR_APART_MANY = 4.0, 2.0
"""An object of two or of more parts is reported if its length exceeds this multiple of its longest
part; a nucleus cut in pieces does not."""


def in_convention(
    file: PolygonFile, rules: OutlineRules, path: Path, *, side: str, whole_only: bool = False
) -> PolygonFile:
    """Read outlines by the rules of the cohort, and report those that may need others.

    Parameters
    ----------
    file
        Outlines as they stand in the file.
    rules
        How they are read. Parts were split on reading.
    path
        The file, for findings.
    side
        ``reference`` or ``predictions``: where `rules` stand in a ``cohort.toml``.
    whole_only
        Whether vertices through pixel centres are pixels only if all of them are whole numbers, and
        not already if most are.
    """
    polygons, findings = file.polygons, list(file.findings)
    if rules.crowds is None and file.crowds:
        findings.append(_crowds(file.crowds, path, side))
    if rules.multipolygons is None:
        findings += _far_apart(polygons, path, side)
    if rules.vertices is None:
        findings += _look_traced(polygons, path, side)
    elif rules.vertices is Vertices.PIXEL_CENTRES:
        polygons, between = _through_centres(polygons, whole_only=whole_only)
        kind, message = BETWEEN_PIXELS
        findings += object_findings((kind, message.replace("contour", "outline")), between, path)
    return replace(file, polygons=polygons, findings=tuple(findings))


def _crowds(count: int, path: Path, side: str) -> Finding:
    message = (
        f"{counted(count, 'crowd')} (iscrowd), excluded from scoring, as areas in which single "
        f"objects are not annotated. If each is an object (as CVAT exports every mask), set "
        f'{side}.crowds = "{Crowds.OBJECTS}" under [files] in cohort.toml; if not, '
        f'"{Crowds.EXCLUDED}"'
    )
    return Finding(FindingKind.CONVENTION, message, path=path, count=count)


def _through_centres(polygons: Polygons, *, whole_only: bool) -> tuple[Polygons, NDArray[np.int64]]:
    """Read vertices as pixels; return the ids of objects with rounded vertices."""
    xy = polygons.vertices_xy
    whole = np.rint(xy)
    moved = (whole != xy).any(axis=1)
    if lie_between(xy) or (whole_only and moved.any()):
        # No contours of pixels: pixel 0 has its centre at 0 in the file, at 0.5 in `Polygons`.
        return replace(polygons, vertices_xy=xy + 0.5), polygons.ids[:0]
    objects = np.searchsorted(
        polygons.ring_starts[polygons.object_starts], np.flatnonzero(moved), side="right"
    )
    between = polygons.ids[np.unique(objects) - 1]
    return as_contours(replace(polygons, vertices_xy=whole)), between


def lie_between(xy: NDArray[np.float64]) -> bool:
    """Return whether most vertices (n, 2) are not pixels, but lie between some."""
    return 2 * int(np.count_nonzero((np.rint(xy) != xy).any(axis=1))) > len(xy)


def _look_traced(polygons: Polygons, path: Path, side: str) -> Iterator[Finding]:
    traced, others, diagonals = count_traced_outlines(polygons)
    if diagonals >= LEAST_DIAGONALS and traced >= LEAST_SHARE * (traced + others):
        yield Finding(
            FindingKind.CONVENTION,
            f"{counted(traced, 'outline')} like OpenCV contours, which run through the centres of "
            f"border pixels (whole numbers, steps of 45 degrees). They were read as pixel edges, "
            f"by which such objects lack their right and lower rim. If a program traced them so "
            f'(OpenCV, HoVer-Net, Cellpose), set {side}.vertices = "{Vertices.PIXEL_CENTRES}" '
            f'under [files] in cohort.toml; if not, "{Vertices.PIXEL_EDGES}"',
            path=path,
            count=traced,
        )


def count_traced_outlines(polygons: Polygons) -> tuple[int, int, int]:
    """Count the outlines that look traced through pixel centres, among the first of a file.

    A contour of OpenCV has whole-number vertices and only axis-parallel and
    diagonal edges, and cuts every notch by a diagonal: it never turns away from the
    object by a right angle between axis-parallel edges. An outline along pixel edges
    has nothing but such edges, and turns so at each notch. Rectangles fit both.

    Returns
    -------
    traced, others, diagonals
        Outlines that look traced; those that do not; diagonal edges of the former.
        Holes and outlines that fit both count as neither.
    """
    sizes = np.diff(polygons.ring_starts[: LOOKED_AT + 1])
    is_outer = ~polygons.is_hole[: len(sizes)] & (sizes > 2)
    xy = polygons.vertices_xy[: polygons.ring_starts[len(sizes)]]
    xy = xy[np.repeat(is_outer, sizes)]
    sizes = sizes[is_outer]
    if not len(sizes):
        return 0, 0, 0
    first = np.cumsum(sizes) - sizes
    following = np.arange(1, len(xy) + 1)
    following[first + sizes - 1] = first
    step = xy[following] - xy
    dx, dy = step.T
    is_along_axis, is_diagonal = (dx == 0) | (dy == 0), (dx != 0) & (np.abs(dx) == np.abs(dy))
    # At the vertex where a step ends: the turn of the outline, and the step before.
    turn, before = np.empty(len(xy)), np.empty(len(xy), np.bool_)
    turn[following] = dx * dy[following] - dy * dx[following]
    before[following] = is_along_axis
    area = np.add.reduceat(xy[:, 0] * xy[following, 1] - xy[:, 1] * xy[following, 0], first)
    is_notch = (turn * np.repeat(np.sign(area), sizes) < 0) & before & is_along_axis
    fits = (xy == np.rint(xy)).all(axis=1) & (is_along_axis | is_diagonal) & ~is_notch
    fits_all = np.logical_and.reduceat(fits, first)
    diagonals = np.add.reduceat(is_diagonal.astype(np.int64), first)
    traced = fits_all & (diagonals > 0)
    return int(traced.sum()), int((~fits_all).sum()), int(diagonals[traced].sum())


def _far_apart(polygons: Polygons, path: Path, side: str) -> Iterator[Finding]:
    """Report objects whose parts lie too far apart for one nucleus."""
    ids, total = objects_far_apart(polygons)
    if ids:
        split = Multipolygons.SPLIT
        message = (
            f"object(s) of {total} parts in all, which lie far apart: each MultiPolygon was read "
            f"as one object. If every part is a nucleus (as CellViT writes them), set "
            f'{side}.multipolygons = "{split}" under [files] in cohort.toml; if not, '
            f'"{Multipolygons.ONE_OBJECT}"'
        )
        yield from object_findings((FindingKind.CONVENTION, message), np.array(ids, np.int64), path)


def objects_far_apart(polygons: Polygons) -> tuple[list[int], int]:
    """Return the ids of objects whose parts lie too far apart for one nucleus, and their parts."""
    is_part = ~polygons.is_hole & (np.diff(polygons.ring_starts) > 0)
    counted = np.concatenate([[0], np.cumsum(is_part)])
    parts = np.diff(counted[polygons.object_starts])
    ids, total = [], 0
    for row in np.flatnonzero((parts > 1) & (polygons.class_index != AMBIGUOUS)).tolist():
        rings = range(*polygons.object_starts[row : row + 2].tolist())
        boxes = np.array([_box(polygons, ring) for ring in rings if is_part[ring]])
        longest = (boxes[:, 2:] - boxes[:, :2]).max()
        length = (boxes[:, 2:].max(axis=0) - boxes[:, :2].min(axis=0)).max()
        if length > (FAR_APART_TWO if len(boxes) == 2 else FAR_APART_MANY) * longest:
            ids.append(int(polygons.ids[row]))
            total += int(parts[row])
    return ids, total


def _box(polygons: Polygons, ring: int) -> NDArray[np.float64]:
    xy = polygons.vertices_xy[polygons.ring_starts[ring] : polygons.ring_starts[ring + 1]]
    return np.concatenate([xy.min(axis=0), xy.max(axis=0)])
