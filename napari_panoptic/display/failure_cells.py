"""Where a team fails on a slide, seen from afar: squares that count and colour failures.

Pure: arrays in, arrays out.
"""

from __future__ import annotations

import html
import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.text import counted
from napari_panoptic.display import styles
from napari_panoptic.display.palette import hex_colour, rgba_table
from napari_panoptic.nuclei.outcomes import Outcomes
from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import STATUSES, Side, Status

SMALLEST_CELL_PX = 64
"""Edge of the smallest square in which failures are counted."""
CELL_ON_SCREEN_PX = 14
"""Approximate edge of a square on the screen."""
FEW_OBJECTS = 5
"""Squares with fewer objects are drawn fainter."""
FEW_ALPHA = 0.45
"""Opacity of squares with few objects."""
SHARES = (0.1, 0.2, 0.4, 0.6)
"""Shares of failed objects at which the colour of a square changes."""
SHARE_COLOURS: tuple[Rgb, ...] = (
    (255, 246, 6),
    (108, 198, 54),
    (24, 156, 98),
    (0, 70, 242),
    (0, 6, 21),
)
"""From few failures to many: yellow, green, blue, black. Ever darker, so that the order can be
seen by every eye, and without the pinks and purples of the tissue."""
_TISSUE = "#dcb4cc"
"""Behind colours in words, since they are made to be seen on tissue."""
SHARE_ALPHAS = (0.89, 0.7, 0.71, 0.68, 0.95)


@dataclass(frozen=True)
class CellCount:
    """Outcomes of the objects of one square."""

    #: How many: a matched pair counts once, at its reference object; ignored objects do not count.
    objects: int
    #: How many of them are FN, FP and misclassified.
    fn: int
    fp: int
    misclassified: int

    @property
    def failures(self) -> int:
        """How many failed."""
        return self.fn + self.fp + self.misclassified

    @property
    def text(self) -> str:
        """Return the outcomes in one line."""
        if not self.objects:
            return "no objects"
        text = f"{counted(self.objects, 'object', write=styles.count_text)}, "
        if not self.failures:
            return text + "no failures"
        parts = [
            f"{word} {styles.count_text(count)}"
            for word, count in (
                ("FN", self.fn),
                ("FP", self.fp),
                ("misclassified", self.misclassified),
            )
            if count
        ]
        failures = counted(self.failures, "failure", write=styles.count_text)
        return f"{text}{failures} ({', '.join(parts)})"


@dataclass(frozen=True, eq=False)
class FailureCells:
    """Where a team fails on a slide: objects and failures, counted in squares."""

    #: Height and width of the slide in px, which the squares divide evenly.
    shape: tuple[int, int]
    #: Edge that squares were to have; they are only about so large.
    cell_px: int
    #: int32 (4, rows, columns): objects, FN, FP, misclassified, as in `CellCount`.
    counts: NDArray[np.int32]

    @classmethod
    def count(cls, outcomes: Outcomes, shape: tuple[int, int], cell_px: int) -> FailureCells:
        """Count the objects of a slide by the squares that their centroids lie in."""
        rows, columns = (max(round(edge / cell_px), 1) for edge in shape)
        counts = np.zeros((4, rows, columns), np.int32)
        for side in Side:
            own = outcomes.side(side)
            kinds = _CELL_KINDS[side][own.status]
            counted = kinds >= 0
            # Whole pixels, so that a centroid lies in the same square at every size of squares.
            place = own.centroid_yx_px[counted].astype(np.int64) * (rows, columns) // shape
            np.add.at(counts[0], tuple(place.T), 1)
            failed = kinds[counted] > 0
            np.add.at(counts, (kinds[counted][failed], *place[failed].T), 1)
        return cls(shape, cell_px, counts)

    @property
    def size_yx_px(self) -> tuple[float, float]:
        """Height and width of a square."""
        rows, columns = self.counts.shape[1:]
        return self.shape[0] / rows, self.shape[1] / columns

    def at(self, y: int, x: int) -> CellCount | None:
        """Return the square that contains a pixel; None beyond the slide."""
        if not (0 <= y < self.shape[0] and 0 <= x < self.shape[1]):
            return None
        rows, columns = self.counts.shape[1:]
        row, column = y * rows // self.shape[0], x * columns // self.shape[1]
        return CellCount(*(int(count) for count in self.counts[:, row, column]))

    def picture(self) -> NDArray[np.uint8]:
        """Colour the squares by the share of objects that failed, uint8 (rows, columns, 4).

        Transparent if nothing failed; fainter if there are few objects.
        """
        objects, failures = self.counts[0], self.counts[1:].sum(axis=0)
        share = failures / np.maximum(objects, 1)
        table = rgba_table(SHARE_COLOURS)
        table[:, 3] = SHARE_ALPHAS
        rgba = table[np.searchsorted(SHARES, share, side="right")]
        rgba[..., 3] *= np.where(objects < FEW_OBJECTS, FEW_ALPHA, 1.0)
        rgba[failures == 0] = 0
        picture: NDArray[np.uint8] = np.rint(255 * rgba).astype(np.uint8)
        return picture


def cell_px_at(screen_px_per_px: float) -> int:
    """Return the edge of squares that are well seen at a zoom: a power of two."""
    wanted = CELL_ON_SCREEN_PX / screen_px_per_px
    return max(1 << max(round(math.log2(wanted)), 0), SMALLEST_CELL_PX)


def share_texts() -> list[str]:
    """Describe which share of objects each colour stands for."""
    percent = [f"{share:.0%}".removesuffix("%") for share in SHARES]
    first, last = f"<{percent[0]}", f"≥{percent[-1]}"
    middle = [f"{low}–{high}" for low, high in itertools.pairwise(percent)]
    return [first, *middle, last]


_COUNTED_IN = {
    Side.REFERENCE: {Status.TP: 0, Status.FN: 1, Status.MISCLASSIFIED: 3},
    Side.PREDICTION: {Status.FP: 2},
}
"""Side -> the column of counts of each status; others do not count."""
_CELL_KINDS = {
    side: np.array([columns.get(status, -1) for status in STATUSES], np.int8)
    for side, columns in _COUNTED_IN.items()
}
"""Side -> the same by status code, -1 for none."""


def scale_text() -> str:
    """Describe what the colours of squares mean, as rich text."""
    parts = [
        f"<span style='color:{hex_colour(colour)}; background-color:{_TISSUE}'>&nbsp;■&nbsp;</span>"
        f"&nbsp;{html.escape(text)}"
        for colour, text in zip(SHARE_COLOURS, share_texts(), strict=True)
    ]
    return f"<b>failed</b>, % per square: {' '.join(parts)}"


SCALE_MEANING = (
    "Objects that failed (FN, FP and misclassified), as a share of all objects of a square; a "
    f"matched pair is one object. Clear: none failed; fainter: fewer than {FEW_OBJECTS} objects. "
    "Hover for counts, click to zoom in."
)


def usual_diameter_px(outcomes: Outcomes) -> float:
    """Return the diameter of a disk of the median area."""
    areas = np.concatenate([outcomes.reference.area_px, outcomes.prediction.area_px])
    return 2 * math.sqrt(float(np.median(areas)) / math.pi) if len(areas) else 1.0
