"""The uncertain border: the zone along annotated borders in which no pixel counts.

A pixel lies in the zone if a pixel at most N px away lies across the edge of an annotated object,
as the ambiguous policy has left it: one of the two is in the object, and the other is not. The
image's own edge has no zone. After `NucEval <https://arxiv.org/abs/2605.03144>`_, whose own
element is not symmetric: see `Element.NUCEVAL`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.kernels.threads import bands_of, in_threads
from napari_panoptic.kernels.zone import UNCERTAIN, mark_zone
from napari_panoptic.nuclei.ambiguity import cuts_reference, removed
from napari_panoptic.nuclei.overlap import OverlapTable, table_outside
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.values.windowed_labels import Box, TiledPair

_NO_AREA = np.zeros((0, 0), np.uint8)
_ALL_KEPT = np.zeros(0, np.uint8)


class Element(StrEnum):
    """Which pixels are at most N px away."""

    DISK = "disk"  # by Euclidean distance
    NUCEVAL = "nuceval"  # OpenCV's ellipse, which is not symmetric


@dataclass(frozen=True, eq=False)
class Zone:
    """What decides which pixels of a region lie in its zone."""

    #: Its width N in px, at least 1, and what is at most N px away.
    px: int
    element: Element
    #: Whether ambiguous areas are cut from annotated objects first.
    cuts_reference: bool
    #: uint8 (n + 1,): which annotated objects count; (0,) for all. Row 0 is the background.
    kept: NDArray[np.uint8]

    @classmethod
    def of(
        cls, table: OverlapTable, settings: EvaluationSettings, element: Element = Element.DISK
    ) -> Zone | None:
        """Return the zone of a region under some settings, given its counts; None for none."""
        if not settings.zone_px:
            return None
        gone = removed(table.reference, Side.REFERENCE, settings)
        kept = np.append(True, ~gone).astype(np.uint8) if gone.any() else _ALL_KEPT
        return cls(settings.zone_px, element, cuts_reference(settings.ambiguous), kept)

    def is_same(self, other: Zone | None) -> bool:
        """Whether another zone of the same pixels is this one."""
        return (
            other is not None
            and (self.px, self.element, self.cuts_reference)
            == (other.px, other.element, other.cuts_reference)
            and np.array_equal(self.kept, other.kept)
        )

    @property
    def reach(self) -> NDArray[np.int32]:
        """int32 (2 N + 1,): how far the element reaches to each side, line by line."""
        n = self.px
        squares = [n * n - dy * dy for dy in range(-n, n + 1)]
        if self.element is Element.NUCEVAL:
            return np.array([round(sqrt(square)) for square in squares], np.int32)
        return np.array([isqrt(square) for square in squares], np.int32)

    def codes(self, pair: LabelPair | TiledPair, box: Box) -> NDArray[np.uint8]:
        """Return which pixels of a box (y0, x0, y1, x1) lie in the zone.

        Returns
        -------
        uint8 (y, x)
            1 in the ambiguous area, plus 2 in the zone.
        """
        y0, x0, y1, x1 = box
        height, width = pair.reference.shape
        top, left = max(y0 - self.px, 0), max(x0 - self.px, 0)
        around = (top, left, min(y1 + self.px, height), min(x1 + self.px, width))
        sheets, void = _read(pair, around)
        area = _NO_AREA if void is None else np.ascontiguousarray(void).view(np.uint8)
        lines = y0 - top, y1 - top
        codes = np.zeros((y1 - y0, around[3] - left), np.uint8)
        if void is not None:
            codes[:] = area[lines[0] : lines[1]]
        cut = area if self.cuts_reference else _NO_AREA
        for sheet in sheets:
            mark_zone(sheet, cut, self.kept, self.reach, lines, codes)
        return np.ascontiguousarray(codes[:, x0 - left : x1 - left])

    def mask(self, pair: LabelPair | TiledPair, box: Box) -> NDArray[np.bool_]:
        """Return which pixels (y, x) of a box lie in the zone."""
        y0, x0, y1, x1 = box
        found = np.empty((y1 - y0, x1 - x0), np.bool_)

        def mark(rows: slice) -> None:
            found[rows] = self.codes(pair, (y0 + rows.start, x0, y0 + rows.stop, x1)) >= UNCERTAIN

        in_threads(mark, bands_of(found.shape))
        return found


def _read(
    pair: LabelPair | TiledPair, box: Box
) -> tuple[list[NDArray[np.int32]], NDArray[np.bool_] | None]:
    """Return the annotated objects, image by image, and the ambiguous area of a box."""
    if isinstance(pair, TiledPair):
        void = None if pair.ambiguous is None else pair.ambiguous.read(box)
        return [pair.reference.read(box)], void
    y0, x0, y1, x1 = box
    window = np.s_[y0:y1, x0:x1]
    void = None if pair.ambiguous is None else pair.ambiguous[window]
    return [sheet[window] for sheet in pair.reference.sheets], void


def counted_outside(
    pair: LabelPair,
    table: OverlapTable,
    settings: EvaluationSettings,
    element: Element = Element.DISK,
) -> OverlapTable | None:
    """Count the pixels of a label pair that lie outside of the zone of some settings.

    Returns
    -------
    OverlapTable
        In the rows of the counts of all pixels, and with their boxes and first pixels; None
        without a zone.
    """
    zone = Zone.of(table, settings, element)
    return None if zone is None else table_outside(pair, table, zone.codes)
