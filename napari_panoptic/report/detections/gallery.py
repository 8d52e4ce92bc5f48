"""Pictures of failures: circles around annotated points, crosses on detections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from napari_panoptic.detections.evaluate import FrameResult
from napari_panoptic.display.crops import tissue_at
from napari_panoptic.display.palette import STATUS_COLOURS
from napari_panoptic.report.pictures import jpeg, readable_image
from napari_panoptic.values.vocabulary import STATUS_CODE, STATUSES, Side, Status

PICTURE_PX = 336
"""Width of the picture file; pages show it at half of this."""
FIELD_UM = 64.0
"""Width of the field of view of a picture."""
_CIRCLE_WIDTH, _ARM, _ARM_WIDTH = 6, 14, 8
_DARK = (13, 13, 13)
"""Outline of crosses. Circles and crosses look as in the window."""
_DRAWN_PX = 2 * PICTURE_PX  # pictures are drawn at twice the size and reduced: smooth edges


@dataclass(frozen=True, eq=False)
class PointPicture:
    """A failure and its surroundings."""

    #: The team's result in the frame.
    result: FrameResult
    #: The side of the point, and its row there.
    side: Side
    row: int
    #: The picture, `PICTURE_PX` wide and high.
    jpeg: bytes

    @property
    def status(self) -> Status:
        """FP or FN."""
        return Status.FN if self.side is Side.REFERENCE else Status.FP


def worst_frames(results: Sequence[FrameResult], n: int) -> list[FrameResult]:
    """Return the ``n`` frames with the most failures; ties keep their order."""
    failed = [result for result in results if result.counts.fp + result.counts.fn]
    return sorted(failed, key=lambda result: -(result.counts.fp + result.counts.fn))[:n]


def failures_of(result: FrameResult, n: int) -> list[tuple[Side, int]]:
    """Return failures of a frame: FN first, then the FP with the highest confidence."""
    judged = result.judged
    missed = np.flatnonzero(judged.reference_status == STATUS_CODE[Status.FN])
    wrong = np.flatnonzero(judged.prediction_status == STATUS_CODE[Status.FP])
    sure = np.nan_to_num(judged.prediction.confidence[wrong], nan=-np.inf)
    wrong = wrong[np.argsort(-sure, kind="stable")]
    chosen = [(Side.REFERENCE, int(row)) for row in missed]
    # Half from each side, if both have enough.
    half = max(n - len(wrong), (n + 1) // 2)
    chosen = chosen[:half]
    return chosen + [(Side.PREDICTION, int(row)) for row in wrong[: n - len(chosen)]]


def failure_pictures(result: FrameResult, radius_um: float, n: int) -> Iterator[PointPicture]:
    """Draw the worst failures of a frame, on grey if its image cannot be read."""
    image, mpp_xy = readable_image(result.frame.image), result.mpp_xy
    try:
        field_px = max(round(FIELD_UM / mpp_xy[0]), 8)
        for side, row in failures_of(result, n):
            points = result.judged.side(side).points
            x, y = (round(value) for value in points.xy_px[row].tolist())
            corner = (y - field_px // 2, x - field_px // 2)
            tissue = tissue_at(image, corner, field_px, PICTURE_PX)
            picture = _picture(tissue, corner, field_px, result, mpp_xy, radius_um)
            yield PointPicture(result, side, row, jpeg(picture))
    finally:
        if image is not None:
            image.close()


def _picture(
    tissue: NDArray[np.uint8],
    corner: tuple[int, int],
    field_px: int,
    result: FrameResult,
    mpp_xy: tuple[float, float],
    radius_um: float,
) -> Image.Image:
    picture = Image.fromarray(tissue).resize((_DRAWN_PX, _DRAWN_PX), Image.Resampling.BILINEAR)
    draw = ImageDraw.Draw(picture)
    factor = _DRAWN_PX / field_px
    reach = [factor * radius_um / mpp for mpp in mpp_xy]
    for side in Side:
        own = result.judged.side(side)
        # The middle of a pixel lies half a pixel inside the picture.
        places = (own.points.xy_px - np.array(corner[::-1]) + 0.5) * factor
        for (x, y), code in zip(places.tolist(), own.status.tolist(), strict=True):
            if not (-reach[0] <= x <= _DRAWN_PX + reach[0]):
                continue
            colour = STATUS_COLOURS[STATUSES[code]]
            if side is Side.REFERENCE:
                box = (x - reach[0], y - reach[1], x + reach[0], y + reach[1])
                draw.ellipse(box, outline=colour, width=_CIRCLE_WIDTH)
                continue
            for arm, width, ink in ((_ARM + 3, _ARM_WIDTH + 6, _DARK), (_ARM, _ARM_WIDTH, colour)):
                draw.line((x - arm, y, x + arm, y), fill=ink, width=width)
                draw.line((x, y - arm, x, y + arm), fill=ink, width=width)
    return picture.resize((PICTURE_PX, PICTURE_PX), Image.Resampling.LANCZOS)
