"""Objects of masks whose pieces lie far apart: numbers that wrapped or were cut off, or classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.formats.polygons.collect import object_findings
from napari_panoptic.io.formats.polygons.outline_rules import FAR_APART_MANY, FAR_APART_TWO
from napari_panoptic.kernels.counts import AREA, X0, X1, Y0, Y1, blank_rows, count_window
from napari_panoptic.kernels.restore import counted_components
from napari_panoptic.kernels.threads import bands_of
from napari_panoptic.values.cohort import MaskObjects
from napari_panoptic.values.labels import LabelImage

MOST_LOOKED_AT = 255
"""Number of the longest objects that are cut into pieces, if pieces may be far apart."""
STRETCHED = 8.0
"""Ratio of the squared length to the area, from which an object may have pieces far apart."""
LONG = 4.0
"""Ratio of the length to that of the median object, from which it may."""
THIN, VERY_LONG = 50.0, 20.0
"""As the last two, where pieces are not looked at: no nucleus is as thin, or as long and as thin
as `STRETCHED`."""


def far_apart_findings(labels: LabelImage, path: Path, side: str) -> Iterator[Finding]:
    """Report objects whose pieces lie far apart; ``side`` is where their rules stand."""
    yield from _found(ids_far_apart(labels), path, side)


def stretched_findings(
    ids: NDArray[np.int64],
    area: NDArray[np.int64],
    boxes: NDArray[np.int32],
    path: Path,
    side: str,
) -> Iterator[Finding]:
    """Report objects of a slide that their area cannot fill; ``boxes`` (n, 4) are y0, x0, y1, x1.

    Objects without a pixel are passed over.
    """
    has_pixel = area > 0
    length = (boxes[:, 2:] - boxes[:, :2]).max(axis=1, initial=0).astype(np.float64)
    shape = np.where(has_pixel, length**2 / np.maximum(area, 1), 0.0)
    usual = np.median(length[has_pixel]) if has_pixel.any() else 0.0
    is_odd = (shape > THIN) | ((shape > STRETCHED) & (length > VERY_LONG * usual))
    yield from _found(ids[is_odd], path, side)


def _found(ids: NDArray[np.int64], path: Path, side: str) -> Iterator[Finding]:
    message = (
        "object(s) whose pieces lie far apart, as where numbers wrapped or were cut off at 255 "
        "(8 bits) or 65535 (16 bits), where overlaps have a number of their own (OMERO: the "
        "largest), or where they are numbers of classes. Save them with more "
        f'bits; or set {side}.objects = "{MaskObjects.PIECES}" under [files] in cohort.toml, by '
        f'which each connected piece is an object; if they are right, "{MaskObjects.NUMBERS}"'
    )
    yield from object_findings((FindingKind.CONVENTION, message), ids, path)


def ids_far_apart(labels: LabelImage) -> NDArray[np.int64]:
    """Return the ids of objects whose pieces lie too far apart for one nucleus."""
    if not len(labels):
        return labels.ids
    rows = _counted(labels.index, len(labels))
    lengths = _lengths(rows)
    may_be = (lengths**2 > STRETCHED * rows[:, AREA]) | (lengths > LONG * np.median(lengths))
    order = np.argsort(-lengths, kind="stable")
    chosen = order[may_be[order]][:MOST_LOOKED_AT]
    if not len(chosen):
        return labels.ids[:0]
    number_of = np.zeros(len(labels) + 1, np.uint8)
    number_of[chosen + 1] = np.arange(1, len(chosen) + 1)
    pieces, last = counted_components(number_of[labels.index])
    ends = last[: len(chosen) + 1]
    of_pieces = _lengths(_counted(pieces, int(ends[-1])))
    longest, count = np.maximum.reduceat(of_pieces, ends[:-1]), np.diff(ends)
    times = np.where(count == 2, FAR_APART_TWO, FAR_APART_MANY)
    is_apart = (count > 1) & (lengths[chosen] > times * longest)
    return np.sort(labels.ids[chosen[is_apart]])


def _counted(index: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    """Return the counts of n objects, as `napari_panoptic.kernels.counts` has them."""
    rows, nothing = blank_rows(n + 1), np.zeros((0, 0), np.uint8)
    for band in bands_of(index.shape):
        window = index[band]
        corner, other = (band.start, 0), np.zeros_like(window)
        count_window(window, other, nothing, corner, index.shape[1], 1, rows, rows[:1])
    return rows[1:]


def _lengths(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    lengths: NDArray[np.int64] = np.maximum(rows[:, Y1] - rows[:, Y0], rows[:, X1] - rows[:, X0])
    return np.maximum(lengths, 0)  # of objects that others cover completely
