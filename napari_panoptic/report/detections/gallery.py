"""Pictures of failures: circles around annotated points, crosses where something was detected."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.detections.evaluate import FrameResult
from napari_panoptic.io.images import SlideImage, read_image
from napari_panoptic.nuclei.crops import tissue_at
from napari_panoptic.nuclei.palette import STATUS_COLOURS
from napari_panoptic.nuclei.values.vocabulary import STATUS_CODE, STATUSES, Side, Status

PICTURE_PX = 336
"""Width of a picture in its file; pages show it at half of that."""
FIELD_UM = 64.0
"""Width of what a picture of a failure shows."""
_CIRCLE_WIDTH, _ARM, _ARM_WIDTH = 6, 14, 8
_DARK = (13, 13, 13)
"""How circles around annotated points and crosses of detections are drawn, as in the window."""
_DRAWN_PX = 2 * PICTURE_PX  # rings are drawn twice as fine and made smaller: smooth edges
_QUALITY = 82


@dataclass(frozen=True, eq=False)
class PointPicture:
    """A failure and its surroundings.

    Parameters
    ----------
    result
        Whose, and in which frame.
    side, row
        Which point.
    jpeg
        The file, `PICTURE_PX` wide and high.
    """

    result: FrameResult
    side: Side
    row: int
    jpeg: bytes

    @property
    def status(self) -> Status:
        """FP or FN."""
        return Status.FN if self.side is Side.REFERENCE else Status.FP


def worst_frames(results: Sequence[FrameResult], n: int) -> list[FrameResult]:
    """Choose the frames with the most failures, of equal ones the first."""
    failed = [result for result in results if result.counts.fp + result.counts.fn]
    return sorted(failed, key=lambda result: -(result.counts.fp + result.counts.fn))[:n]


def failures_of(result: FrameResult, n: int) -> list[tuple[Side, int]]:
    """Choose failures of a frame: missed points first, then what was wrongly found most surely."""
    judged = result.judged
    missed = np.flatnonzero(judged.reference_status == STATUS_CODE[Status.FN])
    wrong = np.flatnonzero(judged.prediction_status == STATUS_CODE[Status.FP])
    sure = np.nan_to_num(judged.prediction.confidence[wrong], nan=-np.inf)
    wrong = wrong[np.argsort(-sure, kind="stable")]
    chosen = [(Side.REFERENCE, int(row)) for row in missed]
    # Half of them of each side, where there are so many of both.
    half = max(n - len(wrong), (n + 1) // 2)
    chosen = chosen[:half]
    return chosen + [(Side.PREDICTION, int(row)) for row in wrong[: n - len(chosen)]]


def failure_pictures(result: FrameResult, radius_um: float, n: int) -> Iterator[PointPicture]:
    """Draw the worst failures of a frame, on grey where its image cannot be read."""
    image, mpp_xy = _image(result), result.mpp_xy
    try:
        field_px = max(round(FIELD_UM / mpp_xy[0]), 8)
        for side, row in failures_of(result, n):
            points = result.judged.reference if side is Side.REFERENCE else result.judged.prediction
            x, y = (round(value) for value in points.xy_px[row].tolist())
            corner = (y - field_px // 2, x - field_px // 2)
            tissue = tissue_at(image, corner, field_px, PICTURE_PX)
            yield PointPicture(
                result, side, row, _jpeg(tissue, corner, field_px, result, mpp_xy, radius_um)
            )
    finally:
        if image is not None:
            image.close()


def _image(result: FrameResult) -> SlideImage | None:
    try:
        return None if result.frame.image is None else read_image(result.frame.image)
    except (PanopticError, OSError):
        return None  # the rings on grey still tell something


def _jpeg(
    tissue: NDArray[np.uint8],
    corner: tuple[int, int],
    field_px: int,
    result: FrameResult,
    mpp_xy: tuple[float, float],
    radius_um: float,
) -> bytes:
    picture = Image.fromarray(tissue).resize((_DRAWN_PX, _DRAWN_PX), Image.Resampling.BILINEAR)
    draw = ImageDraw.Draw(picture)
    factor = _DRAWN_PX / field_px
    judged = result.judged
    reach = [factor * radius_um / mpp for mpp in mpp_xy]
    for side, xy_px, status in (
        (Side.REFERENCE, judged.reference.xy_px, judged.reference_status),
        (Side.PREDICTION, judged.prediction.xy_px, judged.prediction_status),
    ):
        # The middle of a pixel lies half a pixel inside the picture.
        places = (xy_px - np.array(corner[::-1]) + 0.5) * factor
        for (x, y), code in zip(places.tolist(), status.tolist(), strict=True):
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
    target = io.BytesIO()
    small = picture.resize((PICTURE_PX, PICTURE_PX), Image.Resampling.LANCZOS)
    small.save(target, "JPEG", quality=_QUALITY, subsampling=0, optimize=True)
    return target.getvalue()
