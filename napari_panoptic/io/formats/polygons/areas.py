"""Outlines that a user drew around detected nuclei."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.io.formats.polygons.model import Polygons
from napari_panoptic.kernels.fill import bounds


def areas_around(
    polygons: Polygons, outer_ids: NDArray[np.int64], inner_ids: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return bool (n,): which of the outer objects contain an inner one of at most half their box.

    The centre of the box counts. One of nearly the same size is the same nucleus outlined twice.
    """
    import shapely

    outer, inner = (np.isin(polygons.ids, ids) for ids in (outer_ids, inner_ids))
    boxes = bounds(polygons.flat)
    inside, size = boxes[inner], (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    inside = inside[np.argsort(inside[:, 1] + inside[:, 3])]
    y, x = ((inside[:, :2] + inside[:, 2:]) / 2).T
    areas = (inside[:, 2:] - inside[:, :2]).prod(axis=1)
    found = np.zeros(len(polygons), np.bool_)
    for row in np.flatnonzero(outer).tolist():
        y0, x0, y1, x1 = boxes[row].tolist()
        near = slice(*np.searchsorted(x, (x0, x1)).tolist())
        fits = (y[near] >= y0) & (y[near] <= y1) & (2 * areas[near] <= size[row])
        for ring in range(*polygons.object_starts[row : row + 2].tolist()) if fits.any() else ():
            line = polygons.vertices_xy[polygons.ring_starts[ring] : polygons.ring_starts[ring + 1]]
            if len(line) > 2 and not polygons.is_hole[ring]:
                shape = shapely.Polygon(line)
                found[row] |= shapely.contains_xy(shape, x[near][fits], y[near][fits]).any()
    return found
